//! The search for a command's processes by the mark in their environment, on a thread beside.
//!
//! It reads something of every process there is, of whom some take long to [answer]. So nobody waits for it for longer than a moment, and
//! what it finds is told as it is found.

use crate::run::{answer, mark::Mark, processes};
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::{Pid, geteuid, getpgid, getsid},
};
use std::{
    collections::{HashMap, HashSet},
    io, iter,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Whether processes of the command are there.
///
/// Of two of them the greater holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sight {
    #[default]
    Nowhere,
    /// There are, and all are another user's, whom nobody may signal.
    Denied,
    /// The search is not over, or somebody has not answered, and none was found yet.
    Unsure,
    There,
}

impl Sight {
    /// What came of a signal says who is there.
    pub(super) fn of(sent: Result<(), Errno>) -> Sight {
        match sent {
            Err(Errno::ESRCH) => Sight::Nowhere,
            Err(Errno::EPERM) => Sight::Denied,
            _ => Sight::There,
        }
    }
}

/// The search, for whoever asks for it.
pub(super) struct Search {
    shared: Arc<Shared>,
    /// The round whose result somebody wants to hear.
    awaited: Option<u64>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Asked>,
    news: Condvar,
}

#[derive(Default)]
struct Asked {
    /// How many rounds were asked for.
    rounds: u64,
    /// The last one that is over, and all before it.
    over: u64,
    /// What that one found.
    seen: Sight,
    found: Vec<Pid>,
    /// What is sent to whom it finds, unless they are of this group, which somebody else tells.
    order: Option<(Signal, Option<Pid>)>,
    /// Whether nobody asks any more.
    is_done: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Search {
    /// A search that is done as soon as it is asked for.
    ///
    /// # Errors
    ///
    /// There is no room for its thread.
    pub(super) fn new(mark: Mark) -> io::Result<Search> {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let again = mark.clone();
        let is_one = move |pid| again.marks(vec![pid], None).any(|(_, is_one)| is_one == Some(true));
        let looked_at = move || {
            let mark = mark.clone();
            candidates(move |pids| mark.marks(pids, None))
        };
        let look = move || run(&of_thread, looked_at, is_one, LATE_FOR);
        thread::Builder::new().name("search".into()).spawn(look)?;
        Ok(Search { shared, awaited: None })
    }

    /// Sends a signal to all that is found from now on but is not of the group, and says what is known within the time.
    pub(super) fn send(&mut self, signal: Signal, group: Option<Pid>, patience: Duration) -> Sight {
        let order = Some((signal, group));
        // One that was ordered already goes on: to begin anew each time would never end.
        if std::mem::replace(&mut self.shared.lock().order, order) != order {
            self.awaited = None;
        }
        self.look(patience)
    }

    /// Whether any is there, as a round tells that began after the first asking, if it is over within the time.
    pub(super) fn look(&mut self, patience: Duration) -> Sight {
        let until = Instant::now() + patience;
        let mut asked = self.shared.lock();
        if asked.is_done {
            return Sight::Nowhere;
        }
        let awaited = *self.awaited.get_or_insert_with(|| {
            asked.rounds += 1;
            self.shared.news.notify_all();
            asked.rounds
        });
        while asked.over < awaited {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Sight::Unsure;
            }
            asked = self.shared.news.wait_timeout(asked, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.awaited = None;
        asked.seen
    }
}

impl Search {
    /// Those that the last round that is over has found.
    pub(super) fn found(&self) -> Vec<Pid> {
        self.shared.lock().found.clone()
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.shared.lock().is_done = true;
        self.shared.news.notify_all();
    }
}

/// For so long whoever does not answer may be one of those that are looked for, as one that a busy machine holds up. A neighbour's never
/// does, if that one likes.
const LATE_FOR: Duration = Duration::from_secs(5);

/// How long such are left alone.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks, round after round, as long as more of them are asked for.
fn run<I: Iterator<Item = (Pid, Option<bool>)>>(
    shared: &Shared,
    looked_at: impl Fn() -> I,
    is_one: impl Fn(Pid) -> bool,
    late_for: Duration,
) {
    // Who was told by which signal: each is told once, but killed again and again.
    let mut told: HashSet<(Pid, Signal)> = HashSet::new();
    // Whether some of our own, or of others, do not answer, since when, and when that was so last: who answers now and then is not waited for
    // anew each time, and neither is another user, of whom somebody may have many.
    let mut late: HashMap<bool, (Instant, Instant)> = HashMap::new();
    let own = geteuid().as_raw();
    let mut asked = shared.lock();
    'rounds: loop {
        while asked.over == asked.rounds && !asked.is_done {
            asked = shared.news.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
        if asked.is_done {
            return;
        }
        let (round, order) = (asked.rounds, asked.order);
        drop(asked);
        let (mut seen, mut found, mut unanswered) = (Sight::Nowhere, Vec::new(), HashSet::new());
        for (pid, answer) in looked_at() {
            // What was found before is told this, too: from the beginning.
            if shared.lock().order != order {
                asked = shared.lock();
                continue 'rounds;
            }
            match answer {
                Some(true) => {}
                Some(false) => continue,
                None => {
                    unanswered.extend(processes::owner(pid).map(|owner| owner == own));
                    continue;
                }
            }
            found.push(pid);
            // Whoever has just ended was there.
            seen = seen.max(if kill(pid, None) == Err(Errno::EPERM) { Sight::Denied } else { Sight::There });
            if let Some((signal, group)) = order
                && getpgid(Some(pid)).ok() != group
                && (told.insert((pid, signal)) || signal == Signal::SIGKILL)
                && processes::send_if(pid, signal, || is_one(pid)) != Err(Errno::ESRCH)
            {
                // Who is stopped cannot end.
                let _ = processes::send_if(pid, Signal::SIGCONT, || is_one(pid));
            }
        }
        let now = Instant::now();
        late.retain(|_, (_, last)| last.elapsed() < late_for);
        let since = unanswered.into_iter().map(|is_own| {
            let (since, last) = late.entry(is_own).or_insert((now, now));
            *last = now;
            *since
        });
        if since.max().is_some_and(|since| since.elapsed() < late_for) {
            seen = seen.max(Sight::Unsure);
            thread::sleep(PAUSE);
        }
        asked = shared.lock();
        (asked.over, asked.seen, asked.found) = (round, seen, found);
        shared.news.notify_all();
    }
}

/// All processes, as they answer, those of our session first, since a command of ours may have changed its user, then our user's: those of
/// others are there to be looked at last. Who comes while the others are looked at is looked at then.
fn candidates<I: Iterator>(ask: impl Fn(Vec<Pid>) -> I) -> impl Iterator<Item = I::Item> {
    /// Others may start processes without end.
    const MOST_LISTS: usize = 20;
    let mut seen = HashSet::<Pid>::new();
    let lists = iter::from_fn(move || {
        let new = listed(&|pid| !seen.contains(pid));
        seen.extend(&new);
        (!new.is_empty()).then_some(new)
    });
    lists.take(MOST_LISTS).flat_map(ask)
}

/// All processes of which this is so, in that order, and of others those last that took long to answer.
fn listed(is_wanted: &dyn Fn(&Pid) -> bool) -> Vec<Pid> {
    let (own, session) = (geteuid().as_raw(), getsid(None).ok());
    let nearness = |pid: Pid| match session.is_some() && getsid(Some(pid)).ok() == session {
        true => (0, Duration::ZERO),
        false => match processes::owner(pid) {
            Some(owner) if owner == own => (1, Duration::ZERO),
            other => (2, other.map_or(Duration::ZERO, answer::used)),
        },
    };
    let mut all: Vec<Pid> = processes::all().into_iter().flatten().filter(is_wanted).collect();
    all.sort_by_cached_key(|pid| nearness(*pid));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::mark::MARKS;
    use std::{
        io::Read,
        process::{Child, Command, Stdio},
        sync::mpsc::{Receiver, channel, sync_channel},
    };

    const LONG: Duration = Duration::from_secs(20);

    fn sleeper(mark: &str) -> Child {
        Command::new("sleep").arg("60").env(MARKS, mark).spawn().unwrap()
    }

    fn pid(child: &Child) -> Pid {
        Pid::from_raw(i32::try_from(child.id()).unwrap())
    }

    #[test]
    fn processes_are_found_by_their_mark_and_told() {
        if cfg!(not(target_os = "linux")) {
            eprintln!("SKIPPED processes_are_found_by_their_mark_and_told: the system shows no environment");
            return;
        }
        let mark = format!("test-{}", std::process::id());
        let mut sleeper = sleeper(&mark);
        let mut search = Search::new(Mark::of(&mark)).unwrap();
        // The system shows an environment a moment after a process has begun.
        let (began, mut seen) = (Instant::now(), Sight::Nowhere);
        while seen != Sight::There && began.elapsed() < Duration::from_secs(5) {
            seen = search.look(LONG);
        }
        // One that is of the group is left to whoever tells the group.
        let group = getpgid(Some(pid(&sleeper))).unwrap();
        let sent = search.send(Signal::SIGKILL, Some(group), LONG);
        let is_left = sleeper.try_wait().unwrap().is_none();
        search.send(Signal::SIGKILL, None, LONG);
        let status = sleeper.wait().unwrap();
        assert_eq!((seen, sent, is_left), (Sight::There, Sight::There, true));
        assert!(!status.success());
        assert_eq!(search.look(LONG), Sight::Nowhere);
    }

    /// As a command does that `su` or `setpriv` has begun.
    #[test]
    fn who_has_changed_the_user_is_looked_at_before_strangers() {
        let begin = |program: &str, args: &[&str]| Command::new(program).args(args).spawn();
        let changed = ["--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "60"];
        let (changed, elsewhere) = (begin("setpriv", &changed), begin("setsid", &["sleep", "60"]));
        let is_theirs = |child: &Child| {
            let owner = || processes::owner(pid(child)).unwrap_or(0);
            (0..500).any(|_| {
                owner() == 65_534 || {
                    thread::sleep(Duration::from_millis(2));
                    false
                }
            })
        };
        let (Ok(mut changed), Ok(mut elsewhere)) = (changed, elsewhere) else {
            eprintln!(
                "SKIPPED who_has_changed_the_user_is_looked_at_before_strangers: there is no setpriv, or no setsid"
            );
            return;
        };
        let is_root = geteuid().is_root() && is_theirs(&changed);
        while getsid(Some(pid(&elsewhere))).ok() == getsid(None).ok() {
            thread::sleep(Duration::from_millis(2));
        }
        let order: Vec<Pid> = candidates(IntoIterator::into_iter).collect();
        let place = |child: &Child| order.iter().position(|one| *one == pid(child));
        let (first, later) = (place(&changed), place(&elsewhere));
        for child in [&mut changed, &mut elsewhere] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        match is_root {
            true => assert!(first.is_some() && first < later, "{first:?} {later:?}"),
            false => eprintln!("SKIPPED who_has_changed_the_user_is_looked_at_before_strangers: it takes root"),
        }
    }

    /// A search each of whose rounds, once asked for, finds what a test gives it, and ends when that does.
    fn by_hand() -> (Search, impl Fn(Option<Receiver<Pid>>)) {
        let shared = Arc::new(Shared::default());
        // Whoever gives it knows that the round has begun.
        let (rounds, taken) = sync_channel::<Option<Receiver<Pid>>>(0);
        let of_thread = shared.clone();
        thread::spawn(move || {
            let looked_at = || taken.recv().ok().flatten().into_iter().flatten().map(|pid| (pid, Some(true)));
            run(&of_thread, looked_at, |_| true, LONG);
        });
        (Search { shared, awaited: None }, move |round| rounds.send(round).unwrap())
    }

    const MOMENT: Duration = Duration::from_millis(1);

    #[test]
    fn a_search_without_end_holds_up_nobody_and_tells_what_it_finds_at_once() {
        let (mut search, next) = by_hand();
        let (find, found) = channel();
        let mut sleeper = sleeper("none");
        let began = Instant::now();
        for _ in 0..5 {
            assert_eq!(search.send(Signal::SIGTERM, None, MOMENT), Sight::Unsure);
            assert_eq!(search.look(MOMENT), Sight::Unsure);
        }
        assert!(began.elapsed() < LONG);
        next(Some(found));
        find.send(pid(&sleeper)).unwrap();
        // The round goes on, and yet it is told.
        assert!(!sleeper.wait().unwrap().success());
        assert_eq!(search.look(MOMENT), Sight::Unsure);
        drop(find);
        assert_eq!(search.look(LONG), Sight::There);
    }

    #[test]
    fn who_was_told_to_end_is_killed_though_the_round_goes_on() {
        let (mut search, next) = by_hand();
        let ((find, found), (find_anew, found_anew)) = (channel(), channel());
        let mut sleeper = Command::new("sh")
            .args(["-c", "trap '' TERM; echo; exec sleep 60"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        sleeper.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(search.send(Signal::SIGTERM, None, MOMENT), Sight::Unsure);
        next(Some(found));
        find.send(pid(&sleeper)).unwrap();
        assert_eq!(search.send(Signal::SIGKILL, None, MOMENT), Sight::Unsure);
        // Whoever is looked at next, the search begins anew, if it has not yet.
        let _ = find.send(Pid::from_raw(i32::MAX));
        next(Some(found_anew));
        find_anew.send(pid(&sleeper)).unwrap();
        assert!(!sleeper.wait().unwrap().success());
    }

    /// A machine that is busy lets nobody get away, and nobody is waited for who never answers.
    #[test]
    fn who_is_late_with_an_answer_is_looked_for_on_for_a_while() {
        for (late_for, seen) in [(LONG, Sight::Unsure), (Duration::ZERO, Sight::Nowhere)] {
            let shared = Arc::new(Shared::default());
            let (answers, told) = channel();
            let of_thread = shared.clone();
            let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap());
            let looked_at = move || iter::once((own, told.recv().unwrap_or_default()));
            thread::spawn(move || run(&of_thread, looked_at, |_| true, late_for));
            let mut search = Search { shared, awaited: None };
            for (answer, seen) in
                [(None, seen), (None, seen), (Some(true), Sight::There), (Some(false), Sight::Nowhere)]
            {
                answers.send(answer).unwrap();
                assert_eq!(search.look(LONG), seen, "{answer:?}");
            }
        }
    }

    /// It could go on so without end.
    #[test]
    fn who_answers_now_and_then_is_waited_for_no_longer() {
        let shared = Arc::new(Shared::default());
        let (answers, told) = channel();
        let of_thread = shared.clone();
        let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap());
        let looked_at = move || iter::once((own, told.recv().unwrap_or_default()));
        thread::spawn(move || run(&of_thread, looked_at, |_| true, Duration::from_millis(100)));
        let mut search = Search { shared, awaited: None };
        let mut look = |answer| {
            answers.send(answer).unwrap();
            search.look(LONG)
        };
        let began = Instant::now();
        while look(None) == Sight::Unsure {
            assert!(began.elapsed() < LONG, "it is waited for yet");
            assert_eq!(look(Some(false)), Sight::Nowhere);
        }
        assert!(began.elapsed() >= Duration::from_millis(100));
    }

    /// What began before it was asked for says nothing about now.
    #[test]
    fn only_a_round_that_began_afterwards_counts() {
        let (mut search, next) = by_hand();
        let (find, found) = channel();
        assert_eq!(search.look(MOMENT), Sight::Unsure);
        next(Some(found));
        // The first round is under way: what is sent now is not answered by it.
        assert_eq!(search.send(Signal::SIGTERM, None, MOMENT), Sight::Unsure);
        drop(find);
        let (find, found) = channel();
        next(Some(found));
        find.send(Pid::from_raw(i32::MAX)).unwrap();
        drop(find);
        assert_eq!(search.look(LONG), Sight::There);
        assert_eq!(search.look(MOMENT), Sight::Unsure);
        next(None);
        assert_eq!(search.look(LONG), Sight::Nowhere);
    }
}
