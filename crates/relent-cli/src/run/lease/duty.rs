//! What a watchman knows of the command, and what it is time for: no process, clock or pipe is touched here.

use super::{search::Sight, times::Moment};
use nix::{sys::signal::Signal, unistd::Pid};
use std::time::Duration;

/// How often it is looked whether a command that was told to end is gone.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// How long a command has to end whose relent died before it said how long the lease holds.
const SHORT: Duration = Duration::from_secs(3);

/// How often it is looked at the clock while a lease holds: what waits does not wake when a machine wakes that slept.
const GLANCE: Duration = Duration::from_secs(1);

/// How late relent may be before it counts as stopped.
pub(super) const LATE: Duration = Duration::from_millis(50);

/// What is done to the command.
pub(super) trait Hands {
    /// Sends a signal to all processes of the command, to its group at once, and says whether any is still there.
    fn send(&mut self, group: Option<Pid>, signal: Option<Signal>) -> Sight;

    /// Whether nobody is left of a group.
    fn is_gone(&mut self, group: Pid) -> bool;

    /// The names of those of the command that were last there.
    fn names(&mut self, group: Option<Pid>) -> String;
    fn say(&mut self, text: &str);
}

/// What the watchman knows.
pub(super) struct State {
    signal: Signal,
    group: Option<Pid>,
    /// Whether a command may run of whose group nothing was heard yet.
    is_starting: bool,
    /// When a command is to be told to end, and killed, as was heard last.
    times: Option<(Moment, Moment)>,
    /// When this one is, unless it was.
    tell: Option<Moment>,
    kill: Option<Moment>,
    /// Whether relent is gone.
    pub(super) is_alone: bool,
    /// Whether it ended by itself, and said that its command goes on.
    has_left: bool,
    /// Whether the command was told to end because of that.
    was_told: bool,
    /// When it was killed first, and how often.
    killed: Option<Moment>,
    kills: u32,
    /// How often in a row nothing was found of it.
    looks: u32,
    pub(super) is_done: bool,
}

/// A command that was not found so often in a row is gone. Once is not enough: it may have been about to start when relent died, and who
/// forks and ends all the time is met by chance.
const ENOUGH_LOOKS: u32 = 10;

/// What does not die is left after so many kills in so much time.
const MOST_KILLS: u32 = 500;
const KILL_FOR: Duration = Duration::from_secs(5);

impl State {
    pub(super) fn new(signal: Signal) -> State {
        State {
            signal,
            group: None,
            is_starting: false,
            times: None,
            tell: None,
            kill: None,
            is_alone: false,
            has_left: false,
            was_told: false,
            killed: None,
            kills: 0,
            looks: 0,
            is_done: false,
        }
    }

    pub(super) fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let moment = |text: &str| text.parse().ok().map(Moment::from_millis);
        match words[..] {
            ["starts"] => {
                self.is_starting = true;
                self.begin_anew();
            }
            ["group", id] => {
                self.is_starting = false;
                self.begin_anew();
                self.group = id.parse().ok().filter(|id| *id > 1).map(Pid::from_raw);
            }
            ["lease", tell, kill] => {
                let times = moment(tell).map(|tell| tell.plus(LATE)).zip(moment(kill));
                // What was done goes on as long as it is not renewed.
                if self.times != times {
                    self.times = times;
                    self.begin_anew();
                }
            }
            ["told"] => self.tell = None,
            ["leaves"] => self.has_left = true,
            ["done"] => self.is_done = true,
            _ => {}
        }
    }

    /// What was done to a command before is over.
    fn begin_anew(&mut self) {
        (self.killed, self.kills, self.looks) = (None, 0, 0);
        (self.tell, self.kill) = self.times.unzip();
    }

    /// Takes note of whether anybody was seen.
    fn note(&mut self, seen: Sight) {
        match seen {
            Sight::There => self.looks = 0,
            Sight::Unsure => {}
            Sight::Denied | Sight::Nowhere => self.looks += 1,
        }
    }

    /// Does what it is time for; how long until there is something to do again.
    pub(super) fn act(&mut self, now: Moment, hands: &mut impl Hands) -> Option<Duration> {
        if self.is_alone {
            // Relent keeps its number no more: from now on it may be anybody's.
            self.group = self.group.filter(|group| !hands.is_gone(*group));
            let seen = hands.send(self.group, None);
            if seen == Sight::There || seen == Sight::Nowhere {
                self.note(seen);
            }
            if seen == Sight::Nowhere {
                self.is_done = self.looks >= ENOUGH_LOOKS;
                return Some(if self.kills > 0 { Duration::ZERO } else { LOOK });
            }
            if self.kill.is_none() {
                (self.tell, self.kill) = (Some(now), Some(now.plus(SHORT)));
            }
            // What the search finds is told as it is found.
            if !self.was_told {
                let why = if self.has_left { "relent has ended" } else { "relent was killed" };
                // Speaking may take a moment, and fail.
                self.was_told = match hands.send(self.group, Some(self.signal)) {
                    Sight::There => {
                        hands.say(&format!("{why}: its command is told to end, since nobody renews its lease"));
                        true
                    }
                    Sight::Denied => {
                        hands.say(&format!("{why}: its command goes on, since it belongs to another user"));
                        true
                    }
                    Sight::Unsure | Sight::Nowhere => false,
                };
            }
            self.tell = None;
        }
        if self.group.is_none() && !self.is_alone && !self.is_starting {
            return None;
        }
        if self.kill.is_some_and(|kill| kill <= now) {
            let seen = hands.send(self.group, Some(Signal::SIGKILL));
            match seen {
                Sight::There if self.kills == 0 => hands.say("the lease ends: its command was killed"),
                Sight::Denied if self.kills == 0 => {
                    hands.say("the lease ends, and its command goes on: it belongs to another user");
                }
                _ => {}
            }
            // A search that takes long is no kill that failed.
            self.kills += u32::from(seen != Sight::Unsure);
            (self.tell, self.kill) = (None, self.kill_again(now, hands));
        } else if self.tell.is_some_and(|tell| tell <= now) {
            hands.send(self.group, Some(self.signal));
            self.tell = None;
        }
        let next = [self.tell, self.kill].into_iter().flatten().min();
        next.map(|next| next.after(now).min(GLANCE))
    }

    /// When a command that was killed is killed again: without a pause as long as any of it is found, since who forks and leaves its
    /// session as it goes is caught by being looked for more often than it forks.
    fn kill_again(&mut self, now: Moment, hands: &mut impl Hands) -> Option<Moment> {
        let seen = hands.send(self.group, None);
        self.note(seen);
        let first = *self.killed.get_or_insert(now);
        let is_in_vain = self.kills > MOST_KILLS && now.after(first) >= KILL_FOR;
        if is_in_vain && seen == Sight::There {
            let who = hands.names(self.group);
            hands.say(&format!("still running, though it was killed again and again: {who}"));
        }
        if is_in_vain || self.looks >= ENOUGH_LOOKS {
            self.is_done = self.is_alone;
            // What is about to start may be late.
            return self.is_starting.then(|| now.plus(LOOK));
        }
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Noted {
        sent: Vec<Signal>,
        is_gone: bool,
        /// Whether it is another user's.
        is_denied: bool,
        said: Vec<String>,
        /// Whether the search takes long.
        is_slow: bool,
        /// After how many kills none of it is left.
        dies_after: Option<usize>,
        /// How often something was sent when something was said.
        said_after: Vec<usize>,
    }

    impl Hands for Noted {
        fn send(&mut self, _: Option<Pid>, signal: Option<Signal>) -> Sight {
            self.sent.extend(signal.filter(|_| !self.is_gone));
            let kills = self.sent.iter().filter(|sent| **sent == Signal::SIGKILL).count();
            match self.is_gone || self.dies_after.is_some_and(|most| kills >= most && signal.is_none()) {
                _ if self.is_denied => Sight::Denied,
                _ if self.is_slow => Sight::Unsure,
                true => Sight::Nowhere,
                false => Sight::There,
            }
        }

        fn is_gone(&mut self, _: Pid) -> bool {
            self.is_gone
        }

        fn names(&mut self, _: Option<Pid>) -> String {
            "sleep (7)".into()
        }

        fn say(&mut self, text: &str) {
            self.said.push(text.to_owned());
            self.said_after.push(self.sent.len());
        }
    }

    fn state() -> State {
        State::new(Signal::SIGINT)
    }

    const MS: Duration = Duration::from_millis(1);

    const fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    /// A command runs in a group, and its lease holds.
    fn holding() -> (State, Noted) {
        let mut state = state();
        state.hear("group 77");
        state.hear("lease 600 900");
        (state, Noted::default())
    }

    /// The same, and relent is gone.
    fn left_alone() -> (State, Noted) {
        let (mut state, noted) = holding();
        state.is_alone = true;
        (state, noted)
    }

    /// Stopped before it could say which group the command has.
    #[test]
    fn a_command_that_was_starting_when_relent_was_stopped_is_killed() {
        let (mut state, mut noted) = (state(), Noted::default());
        state.hear("lease 1800 2700");
        state.hear("starts");
        let _ = state.act(at(1000), &mut noted);
        assert!(noted.sent.is_empty());
        let _ = state.act(at(2700), &mut noted);
        assert_eq!(noted.sent.last(), Some(&Signal::SIGKILL));
        state.hear("group 0");
        assert_eq!(state.act(at(2900), &mut noted), None);
    }

    #[test]
    fn a_lease_that_is_renewed_ends_nothing() {
        let (mut state, mut noted) = (state(), Noted::default());
        assert_eq!(state.act(at(0), &mut noted), None, "without a command there is nothing to do");
        for round in 0..10 {
            let now = 300 * round;
            state.hear("group 77");
            state.hear(&format!("lease {} {}", now + 600, now + 900));
            assert_eq!(state.act(at(now), &mut noted), Some(650 * MS));
        }
        state.hear("group 0");
        assert_eq!(state.act(at(90_000), &mut noted), None);
        assert!(noted.sent.is_empty());
    }

    #[test]
    fn a_relent_that_is_stopped_is_stood_in_for() {
        let (mut state, mut noted) = holding();
        state.act(at(649), &mut noted);
        assert!(noted.sent.is_empty());
        assert_eq!(state.act(at(650), &mut noted), Some(250 * MS));
        assert_eq!(noted.sent, [Signal::SIGINT]);
        state.act(at(899), &mut noted);
        assert_eq!(noted.sent.len(), 1);
        state.act(at(900), &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT, Signal::SIGKILL]);
    }

    #[test]
    fn a_command_that_relent_told_is_not_told_twice() {
        let (mut state, mut noted) = holding();
        state.hear("told");
        assert_eq!(state.act(at(700), &mut noted), Some(200 * MS));
        assert!(noted.sent.is_empty());
    }

    /// As long as it cannot be renewed, it is said again and again how long it holds.
    #[test]
    fn what_was_done_for_a_lease_is_not_done_once_more_for_the_same() {
        let (mut state, mut noted) = holding();
        noted.dies_after = Some(1);
        state.hear("told");
        for millis in [700, 800, 900, 900, 1000, 1100] {
            state.hear("lease 600 900");
            state.act(at(millis), &mut noted);
        }
        assert!(noted.sent.iter().all(|sent| *sent == Signal::SIGKILL), "{:?}", noted.sent);
        assert_eq!(noted.said.len(), 1, "{:?}", noted.said);
        // The next command is ended for it, too.
        let kills = noted.sent.len();
        state.hear("starts");
        state.act(at(1200), &mut noted);
        assert!(noted.sent.len() > kills);
    }

    #[test]
    fn without_relent_the_command_is_told_at_once_and_killed_with_the_lease() {
        let (mut state, mut noted) = left_alone();
        assert_eq!(state.act(at(0), &mut noted), Some(900 * MS));
        state.act(at(10), &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT]);
        state.act(at(900), &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT, Signal::SIGKILL]);
        noted.is_gone = true;
        for _ in 0..ENOUGH_LOOKS {
            assert!(!state.is_done);
            state.act(at(901), &mut noted);
        }
        assert!(state.is_done);
    }

    #[test]
    fn who_hears_late_does_not_count_from_then_on() {
        let (mut state, mut noted) = (state(), Noted::default());
        state.hear("group 77");
        state.hear("lease 5600 5900");
        assert_eq!(state.act(at(5400), &mut noted), Some(250 * MS));
        state.hear("lease 5300 5350");
        state.act(at(5400), &mut noted);
        assert_eq!(noted.sent, [Signal::SIGKILL]);
    }

    /// What waits for a time does not wake when that came while the machine slept.
    #[test]
    fn a_machine_that_slept_beyond_the_lease_kills_within_a_second() {
        let (mut state, mut noted) = (state(), Noted::default());
        state.hear("group 77");
        state.hear("lease 18000 27000");
        assert_eq!(state.act(at(100), &mut noted), Some(GLANCE));
        assert!(noted.sent.is_empty());
        state.act(at(3_600_000), &mut noted);
        assert_eq!(noted.sent, [Signal::SIGKILL]);
    }

    #[test]
    fn nonsense_is_not_heard() {
        let (mut state, mut noted) = (state(), Noted::default());
        for line in ["", "group", "group 1", "group -1", "group x", "lease 1", "lease x y", "kill 1"] {
            state.hear(line);
        }
        assert_eq!(state.act(at(0), &mut noted), None);
        (state.is_alone, noted.is_gone) = (true, true);
        for _ in 0..ENOUGH_LOOKS {
            assert!(!state.is_done);
            state.act(at(0), &mut noted);
        }
        assert!(state.is_done && noted.sent.is_empty(), "without a command it goes home");
    }

    #[test]
    fn a_command_that_was_about_to_start_when_relent_died_is_found() {
        let (mut state, mut noted) = (state(), Noted { is_gone: true, ..Noted::default() });
        state.hear("lease 600 900");
        state.is_alone = true;
        state.act(at(0), &mut noted);
        noted.is_gone = false;
        state.act(at(20), &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT]);
        state.act(at(900), &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT, Signal::SIGKILL]);
    }

    /// What is said may be what ends the watchman, or what holds it up.
    #[test]
    fn the_command_is_told_before_anybody_else() {
        let (mut state, mut noted) = left_alone();
        state.act(at(0), &mut noted);
        state.act(at(900), &mut noted);
        assert_eq!(noted.said_after, [1, 2]);
    }

    /// Who forks and ends all the time is met by chance.
    #[test]
    fn who_was_not_met_once_is_looked_for_again() {
        let (mut state, mut noted) = left_alone();
        for _ in 0..3 * ENOUGH_LOOKS {
            for is_gone in [false, true, true] {
                noted.is_gone = is_gone;
                state.act(at(10), &mut noted);
                assert!(!state.is_done);
            }
        }
    }

    /// Relent may be stopped, or gone.
    #[test]
    fn the_command_is_killed_without_a_pause_until_none_is_found() {
        for (mut state, mut noted) in [holding(), left_alone()] {
            state.act(at(0), &mut noted);
            noted.dies_after = Some(7);
            let mut rounds = 0;
            while !state.is_done
                && let Some(next) = state.act(at(900), &mut noted)
            {
                rounds += 1;
                assert!(next == Duration::ZERO && rounds < 100, "{next:?}");
            }
            let kills = noted.sent.iter().filter(|sent| **sent == Signal::SIGKILL).count();
            assert!(kills >= 7, "{kills}");
            assert!(!noted.said.iter().any(|said| said.contains("still running")), "{:?}", noted.said);
            // Relent is heard again, and so is the next command.
            if !state.is_alone {
                state.hear("group 78");
                state.hear("lease 5600 5900");
                state.act(at(5900), &mut noted);
                assert_eq!(noted.sent.iter().filter(|sent| **sent == Signal::SIGKILL).count(), kills + 1);
            }
        }
    }

    #[test]
    fn what_does_not_die_is_left_and_said() {
        for (mut state, mut noted) in [holding(), left_alone()] {
            for round in 0..=MOST_KILLS + 1 {
                state.act(at(900), &mut noted);
                assert!(!state.is_done, "{round}");
            }
            let next = state.act(at(900).plus(KILL_FOR), &mut noted);
            assert!(state.is_done == state.is_alone && (next.is_none() || state.is_alone), "{next:?}");
            let last = noted.said.last().unwrap();
            assert_eq!(last, "still running, though it was killed again and again: sleep (7)");
        }
    }

    #[test]
    fn what_is_said_is_what_came_of_it() {
        let told = "its command is told to end, since nobody renews its lease";
        let denied = "its command goes on, since it belongs to another user";
        let lost = "the lease ends, and its command goes on: it belongs to another user";
        for (is_denied, has_left, said) in [
            (false, false, [format!("relent was killed: {told}"), "the lease ends: its command was killed".into()]),
            (false, true, [format!("relent has ended: {told}"), "the lease ends: its command was killed".into()]),
            (true, false, [format!("relent was killed: {denied}"), lost.into()]),
            (true, true, [format!("relent has ended: {denied}"), lost.into()]),
        ] {
            let (mut state, mut noted) = left_alone();
            noted.is_denied = is_denied;
            if has_left {
                state.hear("leaves");
            }
            for millis in [0, 100, 900, 920] {
                state.act(at(millis), &mut noted);
            }
            assert_eq!(noted.said, said);
        }
    }

    /// The group has gone, or ignores what it was told, and who else there is takes long to find out.
    #[test]
    fn a_search_that_takes_long_delays_no_kill_and_ends_nothing_early() {
        let (mut state, mut noted) = left_alone();
        state.act(at(0), &mut noted);
        noted.is_slow = true;
        state.act(at(100), &mut noted);
        assert_eq!(noted.sent, [Signal::SIGINT]);
        for round in 0..3 * MOST_KILLS {
            state.act(at(900).plus(LOOK * round), &mut noted);
            assert!(noted.sent.len() == 2 + round as usize && !state.is_done, "{round}");
        }
        assert_eq!(noted.sent[1..], vec![Signal::SIGKILL; noted.sent.len() - 1]);
        (noted.is_slow, noted.is_gone) = (false, true);
        for _ in 0..ENOUGH_LOOKS {
            assert!(!state.is_done);
            state.act(at(60_000), &mut noted);
        }
        assert!(state.is_done);
    }
}
