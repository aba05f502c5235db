//! What processes are asked that may never answer.
//!
//! Anybody can make one whose memory nobody can read for as long as it likes (it maps a file of a file system of its own, which keeps
//! that waiting), and with the memory goes what the system shows of it: its environment and its command line. Who looks at all processes
//! would stand still with it. So they are asked one after another on a thread beside, and who is late is not waited for: another thread
//! goes on behind it.

use super::processes;
use nix::unistd::{Pid, geteuid};
use std::{
    any::Any,
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

/// Who has not answered in time, and how long was waited.
static LATE: LazyLock<Mutex<Late>> = LazyLock::new(Mutex::default);

/// How long answers are waited for in a row, those of one user and those of all others: many that are slow are no better than one that
/// never answers, and neither are many users. After that it is a tenth of the time; and our own are asked even then, as is who has kept
/// nobody waiting yet, but waited for no longer than the least.
const PATIENCE: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1500)];
const A_PART: u32 = 10;
const LEAST: Duration = Duration::from_millis(5);

/// What counts as no wait: of our own, who are many, and of a user of whom hardly anything is known yet. Who has a
/// limit of time for all of them waits no longer for each: it hears the next time what comes late. After five that others have taken it waits
/// for the least.
const A_MOMENT: Duration = Duration::from_millis(20);
const MOST_MOMENTS: u32 = 5;

/// So many may owe an answer, of our own user, of another, and of all others: then no more of them are asked.
const MOST_OWING: [usize; 3] = [10, 3, 300];

/// For so long an answer that came late is one.
const FRESH: Duration = Duration::from_secs(1);

/// What all of them answer within a moment each, and until then, or have answered a moment ago; of each that has not, `None`.
pub(super) fn all<T: Send + 'static>(
    pids: Vec<Pid>,
    until: Option<Instant>,
    ask: impl Fn(Pid) -> T + Send + Sync + 'static,
) -> All<T> {
    All { pids: pids.into(), until, ask: Arc::new(ask), next: 0, reader: None }
}

/// How long a user's processes have kept us waiting lately: who takes long is asked last.
pub(super) fn used(owner: u32) -> Duration {
    lock().used(owner)
}

pub(super) struct All<T> {
    pids: Arc<[Pid]>,
    until: Option<Instant>,
    ask: Arc<dyn Fn(Pid) -> T + Send + Sync>,
    next: usize,
    /// Who asks them from the next one on.
    reader: Option<Reader<T>>,
}

struct Reader<T> {
    number: u64,
    answers: Receiver<Option<T>>,
}

impl<T: Send + 'static> Iterator for All<T> {
    type Item = (Pid, Option<T>);

    fn next(&mut self) -> Option<(Pid, Option<T>)> {
        let pid = *self.pids.get(self.next)?;
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            (self.next, self.reader) = (self.next + 1, None);
            return Some((pid, None));
        }
        let reader = self.reader.take().or_else(|| self.begin());
        self.next += 1;
        let Some(reader) = reader else {
            // Where there is no thread to be had, it is waited for.
            return Some((pid, Some((self.ask)(pid))));
        };
        let told = reader.answers.try_recv().ok().or_else(|| reader.wait(pid, left));
        // It may be at the next ones already. Who waits for this one ends with its answer.
        if told.is_some() {
            self.reader = Some(reader);
        }
        Some((pid, told.flatten()))
    }
}

impl<T: Send + 'static> All<T> {
    fn begin(&self) -> Option<Reader<T>> {
        let number = {
            let mut late = lock();
            late.readers += 1;
            late.readers
        };
        let (tell, answers) = mpsc::channel();
        let (pids, ask, first) = (self.pids.clone(), self.ask.clone(), self.next);
        let read = move || read(number, &pids[first..], &*ask, &tell);
        let begun = thread::Builder::new().name("reader".into()).stack_size(256 << 10).spawn(read);
        begun.is_ok().then_some(Reader { number, answers })
    }
}

impl<T> Reader<T> {
    /// `None`: it owes the answer of this one.
    fn wait(&self, pid: Pid, most: Option<Duration>) -> Option<Option<T>> {
        let owner = processes::owner(pid).unwrap_or_else(own);
        let (began, patience) = (Instant::now(), lock().patience(owner, most));
        let in_time = self.answers.recv_timeout(patience);
        let mut late = lock();
        let (waited, told) = (began.elapsed(), in_time.ok().or_else(|| self.answers.try_recv().ok()));
        if told.is_none() {
            late.debts.insert(pid, Debt { owner, reader: self.number, answer: None });
        }
        // What others have taken for an answer is known where they were asked.
        if told.is_none() || owner == own() && waited >= A_MOMENT {
            late.wait(owner, waited);
        }
        told
    }
}

/// Asks one after another, until nobody listens any more.
fn read<T: Send + 'static>(number: u64, pids: &[Pid], ask: &dyn Fn(Pid) -> T, tell: &Sender<Option<T>>) {
    for pid in pids {
        // Not while it is asked: who waits for it looks there, too.
        let before = lock().before(*pid, number);
        let told = match before {
            Before::Ask => {
                let (began, owner) = (Instant::now(), processes::owner(*pid));
                let told = ask(*pid);
                let mut late = lock();
                if let Some(debt) = late.debts.get_mut(pid).filter(|debt| debt.reader == number) {
                    debt.answer = Some((Instant::now(), Box::new(told)));
                    return;
                }
                if let Some(owner) = owner.filter(|owner| *owner != own()) {
                    late.wait(owner, began.elapsed());
                }
                Some(told)
            }
            Before::Answered(answer) => answer.downcast().ok().map(|told| *told),
            Before::Owing => None,
            Before::GivenUp => return,
        };
        if tell.send(told).is_err() {
            return;
        }
    }
}

#[derive(Default)]
struct Late {
    readers: u64,
    debts: HashMap<Pid, Debt>,
    waited: HashMap<u32, Waited>,
    waited_for_others: Waited,
}

struct Debt {
    owner: u32,
    /// Who has asked it, or was about to.
    reader: u64,
    /// What came after all, and when.
    answer: Option<(Instant, Box<dyn Any + Send>)>,
}

/// What is known of one before it is asked.
enum Before {
    Ask,
    Answered(Box<dyn Any + Send>),
    Owing,
    /// Who asks was too late for it.
    GivenUp,
}

impl Late {
    fn before(&mut self, pid: Pid, reader: u64) -> Before {
        self.debts.retain(|_, debt| debt.answer.as_ref().is_none_or(|(at, _)| at.elapsed() < FRESH));
        // Who is gone, or is not shown, keeps nobody waiting.
        let Some(owner) = processes::owner(pid) else { return self.without_a_debt(pid, reader) };
        let owing = || self.debts.iter().filter(|(of, debt)| **of != pid && debt.answer.is_none());
        let of_user = owing().filter(|(_, debt)| debt.owner == owner).count();
        let is_not_asked = match owner == own() {
            true => of_user >= MOST_OWING[0],
            false => {
                let (used, used_by_others) = (self.used(owner), self.waited_for_others.by(Instant::now()));
                of_user >= MOST_OWING[1]
                    || owing().filter(|(_, debt)| debt.owner != own()).count() >= MOST_OWING[2]
                    || used >= PATIENCE[0]
                    || used >= A_MOMENT && used_by_others >= PATIENCE[1]
            }
        };
        match self.without_a_debt(pid, reader) {
            Before::Ask if is_not_asked => Before::Owing,
            before => before,
        }
    }

    fn without_a_debt(&mut self, pid: Pid, reader: u64) -> Before {
        match self.debts.remove(&pid) {
            None => Before::Ask,
            Some(Debt { answer: Some((_, told)), .. }) => Before::Answered(told),
            Some(debt) if debt.reader == reader => Before::GivenUp,
            Some(debt) => {
                self.debts.insert(pid, debt);
                Before::Owing
            }
        }
    }

    fn used(&self, owner: u32) -> Duration {
        self.waited.get(&owner).map_or(Duration::ZERO, |waited| waited.by(Instant::now()))
    }

    /// How long one of a user's is waited for, where all may take so long.
    fn patience(&self, owner: u32, most: Option<Duration>) -> Duration {
        let by_others = if owner == own() { Duration::ZERO } else { self.waited_for_others.by(Instant::now()) };
        let left = PATIENCE[0].saturating_sub(self.used(owner));
        let patience = left.min(PATIENCE[1].saturating_sub(by_others)).max(LEAST);
        let moment = if by_others < A_MOMENT * MOST_MOMENTS { A_MOMENT } else { LEAST };
        most.map_or(patience, |most| patience.min(most).min(moment))
    }

    fn wait(&mut self, owner: u32, time: Duration) {
        let now = Instant::now();
        self.waited.entry(owner).or_default().add(time, now);
        if owner != own() {
            self.waited_for_others.add(time, now);
        }
    }
}

/// How much patience was used up, at a time.
#[derive(Clone, Copy)]
struct Waited {
    used: Duration,
    at: Instant,
}

impl Default for Waited {
    fn default() -> Waited {
        Waited { used: Duration::ZERO, at: Instant::now() }
    }
}

impl Waited {
    fn by(self, now: Instant) -> Duration {
        self.used.saturating_sub(now.saturating_duration_since(self.at) / A_PART)
    }

    fn add(&mut self, more: Duration, now: Instant) {
        *self = Waited { used: self.by(now) + more, at: now };
    }
}

fn own() -> u32 {
    geteuid().as_raw()
}

fn lock() -> MutexGuard<'static, Late> {
    LATE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        process::{Child, Command},
        sync::atomic::{AtomicUsize, Ordering},
    };

    /// Processes of a user, who are asked for their numbers. `None`, which is said: it takes root.
    fn sleepers(test: &str, user: u32, count: usize) -> Option<Vec<Child>> {
        if !geteuid().is_root() {
            eprintln!("SKIPPED {test}: it takes root");
            return None;
        }
        use std::os::unix::process::CommandExt;
        let begin = |_| Command::new("sleep").arg("60").uid(user).gid(user).spawn().unwrap();
        Some((0..count).map(begin).collect())
    }

    fn pid(child: &Child) -> Pid {
        Pid::from_raw(child.id().cast_signed())
    }

    fn pids(children: &[Child]) -> Vec<Pid> {
        children.iter().map(pid).collect()
    }

    fn end(children: Vec<Child>) {
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Those wait until this is dropped.
    struct Gate(Mutex<Option<Sender<()>>>, Arc<Mutex<Receiver<()>>>);

    impl Gate {
        fn new() -> Gate {
            let (go, gate) = mpsc::channel();
            Gate(Mutex::new(Some(go)), Arc::new(Mutex::new(gate)))
        }

        fn wait(&self) -> impl Fn() + Send + Sync + 'static + use<> {
            let gate = self.1.clone();
            move || {
                let _ = gate.lock().unwrap().recv();
            }
        }

        fn open(&self) {
            drop(self.0.lock().unwrap().take());
            while lock().debts.values().any(|debt| debt.answer.is_none()) {
                thread::yield_now();
            }
        }
    }

    /// Who asks goes on behind each, hears those who have answered late, and asks no more of a user of whom several owe an answer.
    #[test]
    fn who_does_not_answer_holds_up_nobody() {
        let Some(theirs) = sleepers("who_does_not_answer_holds_up_nobody", 65_533, 6) else { return };
        let Some(others) = sleepers("who_does_not_answer_holds_up_nobody", 65_534, 2) else { return };
        let both = [pids(&theirs), pids(&others)].concat();
        let (gate, asked) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
        let (held, freed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let ask = |pids: &[Pid], silent: &[Pid]| {
            // As after a while.
            lock().waited.clear();
            let (wait, silent, noted) = (gate.wait(), silent.to_vec(), asked.clone());
            let (held, freed) = (held.clone(), freed.clone());
            let ask = move |pid: Pid| {
                noted.lock().unwrap().push(pid);
                if silent.contains(&pid) {
                    held.fetch_add(1, Ordering::SeqCst);
                    wait();
                    freed.fetch_add(1, Ordering::SeqCst);
                }
                pid.as_raw()
            };
            let told = all(pids.to_vec(), None, ask).map(|(_, told)| told);
            (told.collect::<Vec<_>>(), std::mem::take(&mut *asked.lock().unwrap()))
        };
        let told = |nth: usize| Some(both[nth].as_raw());
        let owing = || lock().debts.len();
        for round in 0..MOST_OWING[1] {
            let (first, _) = ask(&both[..6], &both[1..6]);
            assert!(owing() > round && first[1..] == [None; 5], "{first:?}");
        }
        assert_eq!(owing(), MOST_OWING[1]);
        let (again, asked_again) = ask(&both, &[]);
        assert_eq!(again, [None, None, None, None, None, None, told(6), told(7)]);
        assert_eq!(asked_again, both[6..]);
        gate.open();
        while freed.load(Ordering::SeqCst) < held.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        // From there to the answer they have a few instructions to go.
        thread::sleep(Duration::from_millis(50));
        let (late, asked_again) = ask(&both[1..4], &[]);
        assert_eq!((late, asked_again), (vec![told(1), told(2), told(3)], vec![]), "they have answered already");
        assert!(all(both.clone(), None, |_| 7).all(|(_, told)| told == Some(7)), "all are asked again");
        end(theirs);
        end(others);
    }

    /// What is never quite too late is waited for no longer than what is.
    #[test]
    fn many_who_answer_slowly_hold_up_nobody() {
        let Some(slow) = sleepers("many_who_answer_slowly_hold_up_nobody", 65_532, 60) else { return };
        let wait = |_: Pid| thread::sleep(Duration::from_millis(60));
        let answers = all(pids(&slow), None, wait).filter(|(_, told)| told.is_some()).count();
        assert!((1..20).contains(&answers), "{answers}");
        assert!(used(65_532) <= PATIENCE[0] * 2, "{:?}", used(65_532));
        // Nobody else is the worse for it.
        let other = sleepers("many_who_answer_slowly_hold_up_nobody", 65_531, 1).unwrap();
        assert_eq!(all(pids(&other), None, wait).next(), Some((pid(&other[0]), Some(()))));
        end(other);
        end(slow);
    }

    /// Who may be many users waits for no longer than who is one.
    #[test]
    fn many_users_who_do_not_answer_hold_up_nobody() {
        let one = |user| sleepers("many_users_who_do_not_answer_hold_up_nobody", user, 1);
        let Some(all_users) = (65_400..65_440).map(one).collect::<Option<Vec<_>>>() else { return };
        let sleepers: Vec<Child> = all_users.into_iter().flatten().collect();
        let gate = Gate::new();
        let wait = gate.wait();
        assert!(all(pids(&sleepers), None, move |_| wait()).all(|(_, told)| told.is_none()));
        let waited = lock().waited_for_others.used;
        assert!(waited < PATIENCE[1] * 2, "{waited:?}");
        gate.open();
        end(sleepers);
    }

    /// Ours, too: what a command does is no reason to wait.
    #[test]
    fn one_of_ours_is_no_more_waited_for() {
        let own = Command::new("sleep").arg("60").spawn().unwrap();
        let (gate, number) = (Gate::new(), pid(&own));
        let wait = gate.wait();
        let seven = || all(vec![number], None, |_| 7).next();
        assert_eq!(all(vec![number], None, move |_| wait()).next(), Some((number, None)));
        assert_eq!(seven(), Some((number, None)), "it owes an answer");
        gate.open();
        assert_eq!(seven(), Some((number, None)), "it was asked something else");
        assert_eq!(seven(), Some((number, Some(7))));
        end(vec![own]);
    }

    /// Then nobody is waited for as long as where there is time, and nobody at all once it is over.
    #[test]
    fn who_asks_has_a_limit_of_time() {
        let own: Vec<Child> = (0..4).map(|_| Command::new("sleep").arg("60").spawn().unwrap()).collect();
        let (gate, first) = (Gate::new(), pid(&own[1]));
        let wait = gate.wait();
        let ask = move |pid: Pid| {
            if pid == first {
                wait();
            }
        };
        let until = Instant::now() + Duration::from_secs(60);
        let told: Vec<_> = all(pids(&own), Some(until), ask).map(|(_, told)| told).collect();
        assert_eq!(told, [Some(()), None, Some(()), Some(())]);
        assert!(used(super::own()) < PATIENCE[0], "it was waited for as if there was time");
        gate.open();
        let told: Vec<_> = all(pids(&own), Some(Instant::now()), |_| ()).map(|(_, told)| told).collect();
        assert_eq!(told, [None; 4]);
        assert!(all(pids(&own), None, |_| ()).all(|(_, told)| told == Some(())));
        end(own);
    }

    /// Where there is a limit for all of them, many users may take no more of it than is left for who answers at once.
    #[test]
    fn the_more_others_have_taken_the_less_one_of_them_gets() {
        let (one, limit) = (own() + 1, Some(Duration::from_millis(200)));
        let mut late = Late::default();
        let patience = |late: &Late| [None, limit].map(|most| late.patience(one, most));
        assert_eq!(patience(&late), [PATIENCE[0], A_MOMENT]);
        late.wait(one + 1, Duration::from_millis(150));
        assert_eq!(patience(&late), [PATIENCE[0], LEAST]);
        late.wait(one + 2, Duration::from_secs(60));
        assert_eq!(patience(&late), [LEAST, LEAST]);
        assert_eq!([None, limit].map(|most| late.patience(own(), most)), [PATIENCE[0], A_MOMENT]);
        assert_eq!(late.patience(own(), Some(Duration::ZERO)), Duration::ZERO);
    }

    #[test]
    fn patience_comes_back_with_time() {
        let mut waited = Waited::default();
        let (now, second) = (waited.at, Duration::from_secs(1));
        waited.add(second / 2, now);
        assert_eq!([0, 1, 2, 5, 9].map(|s| waited.by(now + second * s).as_millis()), [500, 400, 300, 0, 0]);
        waited.add(second / 2, now + second);
        assert_eq!(waited.by(now + second).as_millis(), 900);
    }
}
