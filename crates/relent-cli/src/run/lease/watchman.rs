//! A second process that ends the command when the first one cannot: `relent run` may be killed or stopped, and its
//! command would go on under a lease that somebody else gets.
//!
//! It is this program again, in a process group of its own. It reads from a pipe which group the command has and how long
//! the lease holds. At the end of that time it kills the group, whatever the first process does. When the pipe is closed
//! without a goodbye, the first process is gone: then it tells the command to end, and kills it in the same way. It knows
//! the command's processes by a mark in their environment, too, where the system shows that (Linux): those that left the
//! group, and one that was started in the very moment in which the first process died.

pub(super) use super::search::MARK;

use super::search::{Search, Sight};
use crate::{dumps, stderr, talk::plain};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, killpg},
    time::{ClockId, clock_gettime},
    unistd::Pid,
};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// The first argument of a watchman: no name that a subcommand could have.
pub(crate) const WORD: &str = "@lease-watchman";

/// How the watchman is spoken to. Each line is written at once, by whichever thread.
pub(super) struct Line(File);

impl Line {
    pub(super) fn try_clone(&self) -> io::Result<Line> {
        self.0.try_clone().map(Line)
    }

    fn say(&self, line: &str) {
        // A watchman that was ended by somebody guards nothing; the command is still ended by relent itself.
        let _ = (&self.0).write_all(line.as_bytes());
    }

    /// A command is about to start: from now on it may be there.
    pub(super) fn starts(&self) {
        self.say("starts\n");
    }

    /// The command runs in this group; none does.
    pub(super) fn group(&self, group: Option<Pid>) {
        self.say(&format!("group {}\n", group.map_or(0, Pid::as_raw)));
    }

    /// How the lease holds: the command is told to end at the first time, killed at the second.
    pub(super) fn holds(&self, tell: Instant, kill: Instant) {
        // Points in time on the clock that both have: whoever reads late does not count from then on.
        let (now, clock) = (Instant::now(), clock());
        let point = |at: Instant| (clock + at.saturating_duration_since(now)).as_millis();
        self.say(&format!("lease {} {}\n", point(tell), point(kill)));
    }

    /// The command was told to end.
    pub(super) fn told(&self) {
        self.say("told\n");
    }
}

/// The watchman, from the process that it watches.
pub(super) struct Watchman {
    pub(super) line: Line,
    process: Child,
}

impl Watchman {
    /// Starts it; `signal` is what a command is told to end by, `mark` is in the environment of its processes. Others can list
    /// arguments, so it is not told the mark by them.
    ///
    /// Under another lease it is none of that one's command: it outlives whoever that one's watchman ends.
    pub(super) fn start(signal: Signal, mark: &str) -> io::Result<Watchman> {
        let link = Path::new("/proc/self/exe");
        // The link leads to this program even if its file was replaced.
        let program = if link.exists() { link.to_owned() } else { std::env::current_exe().unwrap_or_default() };
        let mut command = Command::new(program);
        command.arg0("relent").args([WORD, signal.as_str()]).process_group(0).env_remove(MARK);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let pipe = process.stdin.take().ok_or_else(|| io::Error::other("it has no input"))?;
        let line = Line(OwnedFd::from(pipe).into());
        line.say(&format!("mark {mark}\n"));
        Ok(Watchman { line, process })
    }

    /// Lets it go home.
    pub(super) fn dismiss(mut self) {
        self.line.say("done\n");
        let _ = self.process.wait();
    }
}

/// The watchman itself: everything it does.
pub(crate) fn watch(signal: Option<&str>) -> ExitCode {
    // The store's password may be in its environment.
    dumps::forbid();
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        // Whoever ends everything at once means the command, which relent ends; then we go home.
        let _ = signal_hook::flag::register(signal as i32, ignored.clone());
    }
    let signal = signal.and_then(|name| name.parse().ok()).unwrap_or(Signal::SIGTERM);
    let mut input = io::stdin().lock();
    let mut hands = Real { search: None };
    let mut state = State::new(signal);
    let (mut unread, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let next = state.act(Instant::now(), &mut hands);
        if state.is_done {
            return ExitCode::SUCCESS;
        }
        if state.is_alone {
            std::thread::sleep(next.unwrap_or(LOOK).min(LOOK));
            continue;
        }
        let millis = next.map(|next| next.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128));
        let most = millis.map_or(PollTimeout::NONE, |millis| PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
        let ready = poll(&mut [PollFd::new(input.as_fd(), PollFlags::POLLIN)], most);
        match ready {
            Ok(0) | Err(Errno::EINTR) => continue,
            _ => {}
        }
        match input.read(&mut buffer) {
            Ok(0) => state.is_alone = true,
            Ok(count) => {
                unread.extend_from_slice(&buffer[..count]);
                while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = unread.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line);
                    match line.trim().strip_prefix("mark ") {
                        Some(mark) => hands.search = Some(Search::new(mark.to_owned())),
                        None => state.hear(line.trim(), Instant::now(), clock()),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                say(&format!("the watch over the lease has ended: {}", plain(&error)));
                return ExitCode::FAILURE;
            }
        }
    }
}

/// How often it is looked whether a command that was told to end is gone.
const LOOK: Duration = Duration::from_millis(20);

/// How long a command has to end whose relent died before it said how long the lease holds.
const SHORT: Duration = Duration::from_secs(3);

/// How late relent may be before it counts as stopped.
const LATE: Duration = Duration::from_millis(50);

/// A clock that all processes of this machine share, and that nobody sets.
fn clock() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default()
}

fn say(text: &str) {
    let _ = writeln!(stderr::open(), "relent: {text}");
}

/// What is done to the command.
trait Hands {
    /// Sends a signal to all processes of the command, to its group at once, and says whether any is still there.
    fn send(&mut self, group: Option<Pid>, signal: Option<Signal>) -> Sight;
    fn say(&mut self, text: &str);
}

struct Real {
    /// The search for those of the command's processes that left its group, as soon as their mark was told.
    search: Option<Search>,
}

impl Hands for Real {
    fn send(&mut self, group: Option<Pid>, signal: Option<Signal>) -> Sight {
        let mut is_there = false;
        if let Some(group) = group {
            is_there = killpg(group, signal) != Err(Errno::ESRCH);
            if signal.is_some() {
                // Who is stopped cannot end.
                let _ = killpg(group, Signal::SIGCONT);
            }
        }
        // To look at all processes takes as long as others like: the group is told first, and never waits for that.
        let others = match (&mut self.search, signal) {
            (None, _) => Sight::Nowhere,
            (Some(search), Some(signal)) => search.send(signal, group, LOOK),
            (Some(_), None) if is_there => Sight::There,
            (Some(search), None) => search.look(LOOK),
        };
        if is_there { Sight::There } else { others }
    }

    fn say(&mut self, text: &str) {
        say(text);
    }
}

/// The mark of a command whose relent is marked already: the command is a part of what that one runs.
pub(super) fn beneath(outer: Option<OsString>, mark: &str) -> String {
    let is_one = |outer: &String| {
        let is_mark = |c: char| c.is_ascii_hexdigit() || c == ':';
        outer.len() <= LONGEST && !outer.is_empty() && outer.chars().all(is_mark)
    };
    match outer.and_then(|outer| outer.into_string().ok()).filter(is_one) {
        Some(outer) => format!("{outer}:{mark}"),
        None => mark.to_owned(),
    }
}

/// What an outer mark has at most, which anybody may have set.
const LONGEST: usize = 1000;

/// What the watchman knows.
struct State {
    signal: Signal,
    group: Option<Pid>,
    /// Whether a command may run of whose group nothing was heard yet.
    is_starting: bool,
    /// When the command is to be told to end, unless it was.
    tell: Option<Instant>,
    kill: Option<Instant>,
    /// Whether relent is gone.
    is_alone: bool,
    /// Whether the command was told to end because of that.
    was_told: bool,
    /// How often it was killed and did not go.
    kills: u32,
    /// How often nothing was found of it.
    looks: u32,
    is_done: bool,
}

/// A command that was not found so often is gone: it may have been about to start when relent died.
const ENOUGH_LOOKS: u32 = 10;

/// What the kernel does not let die is left after so many kills.
const MOST_KILLS: u32 = 500;

impl State {
    fn new(signal: Signal) -> State {
        let (group, tell, kill) = (None, None, None);
        State {
            signal,
            group,
            is_starting: false,
            tell,
            kill,
            is_alone: false,
            was_told: false,
            kills: 0,
            looks: 0,
            is_done: false,
        }
    }

    fn hear(&mut self, line: &str, now: Instant, clock: Duration) {
        let words: Vec<&str> = line.split(' ').collect();
        let after = |text: &str, more| {
            let left = Duration::from_millis(text.parse().ok()?).saturating_sub(clock);
            now.checked_add(left.saturating_add(more))
        };
        match words[..] {
            ["starts"] => self.is_starting = true,
            ["group", id] => {
                self.is_starting = false;
                self.group = id.parse().ok().filter(|id| *id > 1).map(Pid::from_raw);
            }
            ["lease", tell, kill] => {
                (self.tell, self.kill) = (after(tell, LATE), after(kill, Duration::ZERO));
            }
            ["told"] => self.tell = None,
            ["done"] => self.is_done = true,
            _ => {}
        }
    }

    /// Does what it is time for; how long until there is something to do again.
    fn act(&mut self, now: Instant, hands: &mut impl Hands) -> Option<Duration> {
        if self.is_alone {
            let seen = hands.send(self.group, None);
            if seen == Sight::Nowhere {
                self.looks += 1;
                self.is_done = self.was_told || self.looks >= ENOUGH_LOOKS;
                return Some(LOOK);
            }
            if self.kill.is_none() {
                (self.tell, self.kill) = (Some(now), Some(now + SHORT));
            }
            // What the search finds is told as it is found.
            if !self.was_told && hands.send(self.group, Some(self.signal)) == Sight::There {
                // Speaking may take a moment, and fail.
                hands.say("relent was killed: its command is told to end, since nobody renews its lease");
                self.was_told = true;
            }
            self.tell = None;
            if self.kills > MOST_KILLS {
                self.is_done = true;
                return None;
            }
        }
        if self.group.is_none() && !self.is_alone && !self.is_starting {
            return None;
        }
        if self.kill.is_some_and(|kill| kill <= now) {
            let seen = hands.send(self.group, Some(Signal::SIGKILL));
            if seen == Sight::There && self.kills == 0 {
                hands.say("the lease ends: its command was killed");
            }
            // A search that takes long is no kill that failed.
            self.kills += u32::from(seen != Sight::Unsure);
            (self.tell, self.kill) = (None, (self.is_alone || self.is_starting).then(|| now + LOOK));
        } else if self.tell.is_some_and(|tell| tell <= now) {
            hands.send(self.group, Some(self.signal));
            self.tell = None;
        }
        let next = [self.tell, self.kill].into_iter().flatten().min();
        next.map(|next| next.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Noted {
        sent: Vec<Signal>,
        is_gone: bool,
        /// Whether the search takes long.
        is_slow: bool,
        /// How often something was sent when something was said.
        said_after: Vec<usize>,
    }

    impl Hands for Noted {
        fn send(&mut self, _: Option<Pid>, signal: Option<Signal>) -> Sight {
            self.sent.extend(signal.filter(|_| !self.is_gone));
            match self.is_gone {
                _ if self.is_slow => Sight::Unsure,
                true => Sight::Nowhere,
                false => Sight::There,
            }
        }

        fn say(&mut self, _: &str) {
            self.said_after.push(self.sent.len());
        }
    }

    fn state() -> State {
        State::new(Signal::SIGINT)
    }

    const MS: Duration = Duration::from_millis(1);

    /// Stopped before it could say which group the command has.
    #[test]
    fn a_command_that_was_starting_when_relent_was_stopped_is_killed() {
        let (mut state, mut noted, start) = (state(), Noted::default(), Instant::now());
        state.hear("lease 1800 2700", start, Duration::ZERO);
        state.hear("starts", start, Duration::ZERO);
        let _ = state.act(start + 1000 * MS, &mut noted);
        assert!(noted.sent.is_empty());
        let _ = state.act(start + 2700 * MS, &mut noted);
        assert_eq!(noted.sent.last(), Some(&Signal::SIGKILL));
        state.hear("group 0", start + 2800 * MS, Duration::ZERO);
        assert_eq!(state.act(start + 2900 * MS, &mut noted), None);
    }

    #[test]
    fn a_lease_that_is_renewed_ends_nothing() {
        let (mut state, mut noted, start) = (state(), Noted::default(), Instant::now());
        assert_eq!(state.act(start, &mut noted), None, "without a command there is nothing to do");
        for round in 0..10_u32 {
            let now = start + 300 * MS * round;
            state.hear("group 77", now, Duration::ZERO);
            state.hear("lease 600 900", now, Duration::ZERO);
            assert_eq!(state.act(now, &mut noted), Some(650 * MS));
        }
        state.hear("group 0", start + 3000 * MS, Duration::ZERO);
        assert_eq!(state.act(start + 90_000 * MS, &mut noted), None);
        assert!(noted.sent.is_empty());
    }

    #[test]
    fn a_relent_that_is_stopped_is_stood_in_for() {
        let (mut state, mut noted, now) = (state(), Noted::default(), Instant::now());
        state.hear("group 77", now, Duration::ZERO);
        state.hear("lease 600 900", now, Duration::ZERO);
        state.act(now + 649 * MS, &mut noted);
        assert!(noted.sent.is_empty());
        assert_eq!(state.act(now + 650 * MS, &mut noted), Some(250 * MS));
        assert_eq!(noted.sent, [Signal::SIGINT]);
        state.act(now + 899 * MS, &mut noted);
        assert_eq!(noted.sent.len(), 1);
        state.act(now + 900 * MS, &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT, Signal::SIGKILL]);
    }

    #[test]
    fn a_command_that_relent_told_is_not_told_twice() {
        let (mut state, mut noted, now) = (state(), Noted::default(), Instant::now());
        state.hear("group 77", now, Duration::ZERO);
        state.hear("lease 600 900", now, Duration::ZERO);
        state.hear("told", now, Duration::ZERO);
        assert_eq!(state.act(now + 700 * MS, &mut noted), Some(200 * MS));
        assert!(noted.sent.is_empty());
    }

    #[test]
    fn without_relent_the_command_is_told_at_once_and_killed_with_the_lease() {
        let (mut state, mut noted, now) = (state(), Noted::default(), Instant::now());
        state.hear("group 77", now, Duration::ZERO);
        state.hear("lease 600 900", now, Duration::ZERO);
        state.is_alone = true;
        assert_eq!(state.act(now, &mut noted), Some(900 * MS));
        state.act(now + 10 * MS, &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT]);
        state.act(now + 900 * MS, &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT, Signal::SIGKILL]);
        noted.is_gone = true;
        state.act(now + 901 * MS, &mut noted);
        assert!(state.is_done);
    }

    #[test]
    fn who_hears_late_does_not_count_from_then_on() {
        let (mut state, mut noted, now) = (state(), Noted::default(), Instant::now());
        state.hear("group 77", now, 5400 * MS);
        state.hear("lease 5600 5900", now, 5400 * MS);
        assert_eq!(state.act(now, &mut noted), Some(250 * MS));
        state.hear("lease 5300 5350", now, 5400 * MS);
        state.act(now, &mut noted);
        assert_eq!(noted.sent, [Signal::SIGKILL]);
    }

    #[test]
    fn a_command_beneath_another_has_both_marks() {
        let beneath = |outer: &str| beneath(Some(OsString::from(outer)), "abc");
        assert_eq!(super::beneath(None, "abc"), "abc");
        assert_eq!(beneath("0f"), "0f:abc");
        assert_eq!(beneath("0f:1e"), "0f:1e:abc");
        for nonsense in ["", "x y", "\u{e9}", &"0".repeat(2000)] {
            assert_eq!(beneath(nonsense), "abc", "{nonsense:?}");
        }
    }

    #[test]
    fn nonsense_is_not_heard() {
        let (mut state, mut noted, now) = (state(), Noted::default(), Instant::now());
        for line in ["", "group", "group 1", "group -1", "group x", "lease 1", "lease x y", "kill 1"] {
            state.hear(line, now, Duration::ZERO);
        }
        assert_eq!(state.act(now, &mut noted), None);
        (state.is_alone, noted.is_gone) = (true, true);
        for _ in 0..ENOUGH_LOOKS {
            assert!(!state.is_done);
            state.act(now, &mut noted);
        }
        assert!(state.is_done && noted.sent.is_empty(), "without a command it goes home");
    }

    #[test]
    fn a_command_that_was_about_to_start_when_relent_died_is_found() {
        let (mut state, mut noted, now) = (state(), Noted { is_gone: true, ..Noted::default() }, Instant::now());
        state.hear("lease 600 900", now, Duration::ZERO);
        state.is_alone = true;
        state.act(now, &mut noted);
        noted.is_gone = false;
        state.act(now + LOOK, &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT]);
        state.act(now + 900 * MS, &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT, Signal::SIGKILL]);
    }

    /// What is said may be what ends the watchman, or what holds it up.
    #[test]
    fn the_command_is_told_before_anybody_else() {
        let (mut state, mut noted, now) = (state(), Noted::default(), Instant::now());
        state.hear("group 77", now, Duration::ZERO);
        state.hear("lease 600 900", now, Duration::ZERO);
        state.is_alone = true;
        state.act(now, &mut noted);
        state.act(now + 900 * MS, &mut noted);
        assert_eq!(noted.said_after, [1, 2]);
    }

    /// The group has gone, or ignores what it was told, and who else there is takes long to find out.
    #[test]
    fn a_search_that_takes_long_delays_no_kill_and_ends_nothing_early() {
        let (mut state, mut noted, now) = (state(), Noted::default(), Instant::now());
        state.hear("group 77", now, Duration::ZERO);
        state.hear("lease 600 900", now, Duration::ZERO);
        state.is_alone = true;
        state.act(now, &mut noted);
        noted.is_slow = true;
        state.act(now + 100 * MS, &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT]);
        for round in 0..3 * MOST_KILLS {
            state.act(now + 900 * MS + LOOK * round, &mut noted);
            assert!(noted.sent.len() == 2 + round as usize && !state.is_done, "{round}");
        }
        assert_eq!(noted.sent[1..], vec![Signal::SIGKILL; noted.sent.len() - 1]);
        (noted.is_slow, noted.is_gone) = (false, true);
        state.act(now + 60_000 * MS, &mut noted);
        assert!(state.is_done);
    }
}
