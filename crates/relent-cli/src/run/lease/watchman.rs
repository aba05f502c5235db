//! A second process that ends the command when the first one cannot: `relent run` may be killed or stopped, and its
//! command would go on under a lease that somebody else gets.
//!
//! It is this program again, in a process group of its own. It reads from a pipe which group the command has and how long
//! the lease holds. At the end of that time it kills the group, whatever the first process does. When the pipe is closed
//! without a goodbye, the first process is gone: then it tells the command to end, and kills it in the same way. It knows
//! the command's processes by a mark in their environment, too, where the system shows that (Linux): those that left the
//! group, and one that was started in the very moment in which the first process died.

use super::{
    duty::{Hands, LOOK, State},
    search::{Search, Sight},
    times::Moment,
};
use crate::{
    dumps,
    ear::{ENDING, ENDING_ALONE},
    run::{
        mark::{MARKS, Mark},
        processes,
        signals::Signals,
        unstopped::Unstopped,
    },
    talk::{TalkArgs, plain, remark},
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, ChildStdout, Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// The first argument of a watchman: no name that a subcommand could have.
pub(crate) const WORD: &str = "@lease-watchman";

/// Its last argument, if what it says is for machines.
const JSON: &str = "--json";

/// How the watchman is spoken to. Each line is written at once, by whichever thread.
pub(super) struct Line {
    pipe: File,
    process: Pid,
}

impl Line {
    pub(super) fn try_clone(&self) -> io::Result<Line> {
        Ok(Line { pipe: self.pipe.try_clone()?, process: self.process })
    }

    /// Whether it may have been heard. A watchman that was ended by somebody guards nothing; the command is still ended by relent itself.
    fn say(&self, line: &str) -> bool {
        match (&self.pipe).write_all(line.as_bytes()) {
            // One that was stopped would act on what is old when it goes on. As long as it has the pipe, the number is its own.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = kill(self.process, Signal::SIGKILL);
                false
            }
            said => said.is_ok(),
        }
    }

    /// A command is about to start: from now on it may be there.
    pub(super) fn starts(&self) -> bool {
        self.say("starts\n")
    }

    /// The command runs in this group; none does.
    pub(super) fn group(&self, group: Option<Pid>) -> bool {
        self.say(&format!("group {}\n", group.map_or(0, Pid::as_raw)))
    }

    /// How the lease holds: the command is told to end at the first time, killed at the second.
    pub(super) fn holds(&self, tell: Moment, kill: Moment) -> bool {
        // Points in time on the clock that both have: whoever reads late does not count from then on.
        self.say(&format!("lease {} {}\n", tell.as_millis(), kill.as_millis()))
    }

    /// The run has ended, and its command goes on.
    pub(super) fn leaves(&self) -> bool {
        self.say("leaves\n")
    }

    /// The command was told to end.
    pub(super) fn told(&self) -> bool {
        self.say("told\n")
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
    pub(super) fn start(signal: Signal, mark: &Mark, is_json: bool) -> io::Result<Watchman> {
        let link = Path::new("/proc/self/exe");
        // The link leads to this program even if its file was replaced.
        let program = if link.exists() { link.to_owned() } else { std::env::current_exe().unwrap_or_default() };
        let mut command = Command::new(program);
        command
            .arg0("relent")
            .args([WORD, signal.as_str()])
            .args(is_json.then_some(JSON))
            .process_group(0)
            .env_remove(MARKS);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipe = process.stdin.take().ok_or_else(|| io::Error::other("it has no input"))?;
        // One that does not read is not waited for. A line is written as a whole or not at all.
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let line = Line { pipe: OwnedFd::from(pipe).into(), process: Pid::from_raw(process.id().cast_signed()) };
        line.say(&format!("mark {}\n", mark.as_str()));
        Ok(Watchman { line, process })
    }

    /// Waits until it is up: whatever a command of its first moment does to it, it is there. One that is late may come all the same.
    ///
    /// # Errors
    ///
    /// It has ended.
    pub(super) fn comes_up(&mut self, signals: &Signals, until: Option<Instant>) -> io::Result<()> {
        /// No machine is so slow that has a lease to keep.
        const LATE: Duration = Duration::from_secs(1);
        let Some(mut word) = self.process.stdout.take() else { return Ok(()) };
        let began = Instant::now();
        let has_spoken = |word: &ChildStdout| {
            poll(&mut [PollFd::new(word.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
        };
        while !has_spoken(&word) {
            let left = LATE.saturating_sub(began.elapsed());
            let left = until.map_or(left, |until| left.min(until.saturating_duration_since(Instant::now())));
            let of_word = PollFd::new(word.as_fd(), PollFlags::POLLIN);
            // Whoever ends the run now has a command ended that never starts.
            if left.is_zero() || signals.wait_beside(vec![of_word], left).is_some() {
                return Ok(());
            }
        }
        word.read_exact(&mut [0]).map_err(|_| io::Error::other("it has ended at once"))
    }

    /// Its number, which is its own until it is [dismissed](Watchman::dismiss).
    pub(super) fn pid(&self) -> Pid {
        self.line.process
    }

    /// Lets it go home, whatever somebody has done to it: one that was stopped hears nothing.
    pub(super) fn dismiss(mut self) {
        self.line.say("done\n");
        let _ = self.process.kill();
        // Whoever traces it may keep it from being gone.
        for _ in 0..100 {
            match self.process.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                _ => break,
            }
        }
    }
}

/// The watchman itself: everything it does.
pub(crate) fn watch(signal: Option<&str>, form: Option<&str>) -> ExitCode {
    // The store's password may be in its environment.
    dumps::forbid();
    // What it says it says from the background.
    let _unstopped = Unstopped::now();
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in ENDING.iter().chain(&ENDING_ALONE) {
        // Whoever ends everything at once means the command, which relent ends; then we go home. So it is with what is only passed on.
        let _ = signal_hook::flag::register(*signal as i32, ignored.clone());
    }
    let _ = io::stdout().write_all(b"\n");
    let signal = signal.and_then(|name| name.parse().ok()).unwrap_or(Signal::SIGTERM);
    // Not what reads ahead, and keeps what nobody is told of by the system.
    let Ok(mut input) = io::stdin().as_fd().try_clone_to_owned().map(File::from) else { return ExitCode::FAILURE };
    // With `--quiet`, too: it says nothing but that the command is in trouble.
    let mut hands = Real { search: None, speaker: Speaker::new(form == Some(JSON)) };
    let mut state = State::new(signal);
    let (mut unread, mut buffer) = (Vec::new(), [0; 4096]);
    let is_silent = |input: &File, most: PollTimeout| {
        matches!(poll(&mut [PollFd::new(input.as_fd(), PollFlags::POLLIN)], most), Ok(0) | Err(Errno::EINTR))
    };
    loop {
        // Who was stopped for a while has much to read, of which the last counts: nothing is done on what is old. So the clock is asked
        // first: who is stopped after that knows of no time that has passed.
        let now = Moment::now();
        if state.is_alone || is_silent(&input, PollTimeout::ZERO) {
            let next = state.act(now, &mut hands);
            if state.is_done {
                return ExitCode::SUCCESS;
            }
            if state.is_alone {
                thread::sleep(next.unwrap_or(LOOK).min(LOOK));
                continue;
            }
            let millis = next.map(|next| next.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128));
            let most =
                millis.map_or(PollTimeout::NONE, |millis| PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
            if is_silent(&input, most) {
                continue;
            }
        }
        match input.read(&mut buffer) {
            Ok(0) => state.is_alone = true,
            Ok(count) => {
                unread.extend_from_slice(&buffer[..count]);
                while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = unread.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line);
                    match line.trim().strip_prefix("mark ") {
                        Some(mark) => match Search::new(Mark::of(mark)) {
                            Ok(search) => hands.search = Some(search),
                            // The group is still told.
                            Err(error) => hands.say(&format!(
                                "if relent is killed, what has left the group of the command goes on: {}",
                                plain(&error)
                            )),
                        },
                        None => state.hear(line.trim()),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                hands.say(&format!("the watch over the lease has ended: {}", plain(&error)));
                return ExitCode::FAILURE;
            }
        }
    }
}

struct Real {
    /// The search for those of the command's processes that left its group, as soon as their mark was told.
    search: Option<Search>,
    speaker: Speaker,
}

/// Says what there is to say on a thread beside: who does not read it must not keep the command from being killed in time.
struct Speaker {
    talk: TalkArgs,
    thread: Option<(Sender<String>, JoinHandle<()>)>,
}

impl Speaker {
    fn new(json: bool) -> Speaker {
        let talk = TalkArgs { json, ..TalkArgs::default() };
        let (texts, said) = mpsc::channel::<String>();
        let speak = move || said.iter().for_each(|text| remark(talk, &text));
        let thread = thread::Builder::new().name("speaker".into()).spawn(speak).ok();
        Speaker { talk, thread: thread.map(|thread| (texts, thread)) }
    }

    fn say(&self, text: &str) {
        match &self.thread {
            Some((texts, _)) => {
                let _ = texts.send(text.to_owned());
            }
            None => remark(self.talk, text),
        }
    }
}

/// What was said is waited for.
impl Drop for Speaker {
    fn drop(&mut self) {
        if let Some((texts, thread)) = self.thread.take() {
            drop(texts);
            let _ = thread.join();
        }
    }
}

impl Hands for Real {
    fn send(&mut self, group: Option<Pid>, signal: Option<Signal>) -> Sight {
        let mut seen = Sight::Nowhere;
        if let Some(group) = group {
            seen = if signal.is_some() { Sight::of(killpg(group, signal)) } else { left_of(group) };
            if signal.is_some() {
                // Who is stopped cannot end.
                let _ = killpg(group, Signal::SIGCONT);
            }
        }
        // To look at all processes takes as long as others like: the group is told first, and never waits for that.
        let others = match (&mut self.search, signal) {
            (None, _) => Sight::Nowhere,
            (Some(search), Some(signal)) => search.send(signal, group, LOOK),
            (Some(_), None) if seen == Sight::There => Sight::There,
            (Some(search), None) => search.look(LOOK),
        };
        seen.max(others)
    }

    fn is_gone(&mut self, group: Pid) -> bool {
        killpg(group, None) == Err(Errno::ESRCH)
    }

    fn names(&mut self, group: Option<Pid>) -> String {
        let mut all = group.map(|group| processes::of_group(group).unwrap_or_else(|| vec![group])).unwrap_or_default();
        let found = self.search.as_ref().map(Search::found).unwrap_or_default();
        all.extend(found.into_iter().filter(|pid| !all.contains(pid)).collect::<Vec<_>>());
        processes::names(&all)
    }

    fn say(&mut self, text: &str) {
        self.speaker.say(text);
    }
}

/// Whether any of a group is there that has not ended. Where that is not shown, those that have ended count, too.
fn left_of(group: Pid) -> Sight {
    match processes::of_group(group) {
        Some(left) => left.iter().map(|pid| Sight::of(kill(*pid, None))).max().unwrap_or(Sight::Nowhere),
        None => Sight::of(killpg(group, None)),
    }
}
