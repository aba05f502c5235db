//! Who writes: one at a time, and what has gathered meanwhile in one commit.
//!
//! A commit waits for the disk, so it should carry as much as there is. An operation that is alone runs where it was asked
//! for, which saves the way to a thread and back; whether it is alone shows when the other tasks of its runtime have had
//! their turn, which costs time, too: where the last ones were alone, only some wait for it. Else a thread takes all that waits
//! into one transaction.

use super::{bounds, fault, opened::Opened, reader::Reader, tx::Tx};
use crate::{Clock, Error, ErrorKind, race::yield_once};
use relent::{SystemTimer, Timer, rng};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// How many operations one commit carries at most.
const BATCH: usize = 1024;

/// After how many operations that were alone the next is taken to be.
const LONELY: u32 = 16;

/// Of how many that are taken to be alone one looks.
const LOOKS: u32 = 8;

/// What a commit may take on the thread of whoever asked.
const QUICK: Duration = Duration::from_millis(5);

/// How long the file is waited for while another process has it, at once.
const PATIENCE: Duration = Duration::from_secs(2);

thread_local! {
    /// Until when this thread may wait for another process; `None` is not at all.
    static WAITS_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Whether nobody is there any more for whom it does.
    static IS_LEFT: RefCell<Arc<AtomicBool>> = RefCell::default();
}

trait Job: Send + Sync {
    fn run(&self, tx: &Tx<'_>) -> Result<(), Error>;
    fn answer(&self, outcome: Result<(), Error>);
    fn is_wanted(&self) -> bool;
}

struct Slot<T, F> {
    op: F,
    kept: Mutex<Option<T>>,
    asks: Mutex<Option<oneshot::Sender<Result<T, Error>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send, F: Fn(&Tx<'_>) -> Result<T, Error> + Send + Sync> Job for Slot<T, F> {
    fn run(&self, tx: &Tx<'_>) -> Result<(), Error> {
        let answer = (self.op)(tx)?;
        *lock(&self.kept) = Some(answer);
        Ok(())
    }

    fn answer(&self, outcome: Result<(), Error>) {
        let answer = outcome.and_then(|()| {
            lock(&self.kept).take().ok_or_else(|| Error::new(ErrorKind::Unavailable, "the operation was not run"))
        });
        if let Some(asks) = lock(&self.asks).take() {
            // Whoever asked may be gone.
            let _ = asks.send(answer);
        }
    }

    fn is_wanted(&self) -> bool {
        lock(&self.asks).as_ref().is_some_and(|asks| !asks.is_closed())
    }
}

pub(super) struct Writer(Arc<Shared>);

struct Shared {
    file: Mutex<Opened>,
    reader: Arc<Reader>,
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// Whether nobody can ask any more.
    is_closed: Arc<AtomicBool>,
    clock: Clock,
    /// Whether the last commit took long: then it is nothing for the thread of whoever asks.
    is_slow: AtomicBool,
    /// How many in a row were alone.
    lonely: AtomicU32,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<dyn Job>>,
    thread: Option<JoinHandle<()>>,
    /// Whether the thread waits to be woken, which is a call of the system.
    is_idle: bool,
}

impl Writer {
    pub(super) fn new(mut file: Opened, reader: Arc<Reader>, clock: Clock) -> Result<Writer, Error> {
        file.conn.busy_handler(Some(wait_for_others)).map_err(fault::of)?;
        Ok(Writer(Arc::new(Shared {
            file: Mutex::new(file),
            reader,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            is_closed: Arc::default(),
            clock,
            is_slow: AtomicBool::new(false),
            lonely: AtomicU32::new(0),
        })))
    }

    /// Runs `op` in a transaction, and answers when that is committed. `op` may be run more than once, and only the last
    /// counts. Whoever goes away before it began has not asked.
    pub(super) async fn run<T, F>(&self, op: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Tx<'_>) -> Result<T, Error> + Send + Sync + 'static,
    {
        let (asks, answer) = oneshot::channel();
        let slot = Arc::new(Slot { op, kept: Mutex::new(None), asks: Mutex::new(Some(asks)) });
        let is_alone = {
            let mut queue = lock(&self.0.queue);
            queue.jobs.push_back(slot.clone());
            queue.jobs.len() == 1
        };
        let mut is_done = false;
        if is_alone && !self.0.is_slow.load(Ordering::Relaxed) {
            let lonely = self.0.lonely.load(Ordering::Relaxed);
            if lonely < LONELY || lonely.is_multiple_of(LOOKS) {
                yield_once().await;
            }
            is_done = self.0.run_here(&(slot as Arc<dyn Job>));
        }
        if !is_done {
            self.0.kick()?;
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Unavailable, "the store was closed").maybe_happened()
}

/// The thread is waited for, which finishes what it is at: else a process that ends next would end while the file is closed, and leave
/// SQLite's log. For another process nobody waits any more.
impl Drop for Writer {
    fn drop(&mut self) {
        let thread = {
            let mut queue = lock(&self.0.queue);
            self.0.is_closed.store(true, Ordering::Relaxed);
            queue.thread.take()
        };
        self.0.arrived.notify_all();
        // Whoever is woken by an answer may be the last to let go, and that on this very thread.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Runs `job` on this thread if it is still alone and nobody writes. Whether there is nothing left to do for it.
    fn run_here(&self, job: &Arc<dyn Job>) -> bool {
        let file = {
            let mut queue = lock(&self.queue);
            let is_ours = queue.jobs.front().is_some_and(|first| Arc::ptr_eq(first, job));
            if !is_ours || queue.jobs.len() > 1 {
                self.lonely.store(0, Ordering::Relaxed);
                return false;
            }
            let Ok(file) = self.file.try_lock() else {
                self.lonely.store(0, Ordering::Relaxed);
                return false;
            };
            self.lonely.fetch_add(1, Ordering::Relaxed);
            // To open another takes time.
            if file.is_gone() {
                return false;
            }
            queue.jobs.clear();
            file
        };
        WAITS_UNTIL.set(None);
        let undone = match self.timed(|| commit(&file, &self.clock, std::slice::from_ref(job), bounds::HERE)) {
            Ok(()) => {
                job.answer(file.is_there());
                return true;
            }
            Err(undone) => undone,
        };
        match undone {
            // Another process writes, or it is much work: that is for the other thread.
            Undone::TooLong(_) => {}
            Undone::Failed(error) if error.kind() == ErrorKind::Contended => {}
            Undone::Failed(error) => {
                job.answer(Err(error));
                return true;
            }
        }
        lock(&self.queue).jobs.push_back(job.clone());
        false
    }

    fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let answer = work();
        self.is_slow.store(begin.elapsed() > QUICK, Ordering::Relaxed);
        answer
    }

    /// Wakes the thread, which is started when it is first needed.
    fn kick(self: &Arc<Shared>) -> Result<(), Error> {
        let mut queue = lock(&self.queue);
        if queue.thread.is_none() {
            let shared = self.clone();
            let thread = thread::Builder::new().name("relent-store".into()).spawn(move || shared.write());
            let none = |_| Error::new(ErrorKind::Unavailable, "no thread can be started");
            queue.thread = Some(thread.map_err(none)?);
        }
        if std::mem::take(&mut queue.is_idle) {
            self.arrived.notify_one();
        }
        Ok(())
    }

    fn write(&self) {
        IS_LEFT.set(self.is_closed.clone());
        loop {
            {
                let mut queue = lock(&self.queue);
                while queue.jobs.is_empty() {
                    if self.is_closed.load(Ordering::Relaxed) {
                        return;
                    }
                    queue.is_idle = true;
                    queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            }
            // What arrives while another commit is under way comes along.
            let mut file = lock(&self.file);
            let jobs: Vec<_> = {
                let mut queue = lock(&self.queue);
                let most = queue.jobs.len().min(BATCH);
                queue.jobs.drain(..most).filter(|job| job.is_wanted()).collect()
            };
            self.write_all(&mut file, &jobs);
        }
    }

    fn write_all(&self, file: &mut Opened, jobs: &[Arc<dyn Job>]) {
        if jobs.is_empty() {
            return;
        }
        if let Err(error) = opened(file, &self.reader) {
            return jobs.iter().for_each(|job| job.answer(Err(error.clone())));
        }
        WAITS_UNTIL.set(Some(Instant::now() + PATIENCE));
        let (error, is_too_long) = match self.timed(|| commit(file, &self.clock, jobs, bounds::OPERATION)) {
            Ok(()) => {
                let outcome = file.is_there();
                return jobs.iter().for_each(|job| job.answer(outcome.clone()));
            }
            Err(Undone::TooLong(error)) => (error, true),
            Err(Undone::Failed(error)) => (error, false),
        };
        if jobs.len() == 1 || is_too_long || error.is_transient() {
            return jobs.iter().for_each(|job| job.answer(Err(error.clone())));
        }
        // One of them does not fit, or nothing does: each has its own transaction, and its own answer.
        for job in jobs {
            WAITS_UNTIL.set(Some(Instant::now() + PATIENCE));
            let outcome = commit(file, &self.clock, std::slice::from_ref(job), bounds::OPERATION);
            job.answer(outcome.map_err(Error::from).and_then(|()| file.is_there()));
        }
    }
}

/// Opens what is at the path now, if the file was deleted or replaced.
fn opened(file: &mut Opened, reader: &Reader) -> Result<(), Error> {
    if file.is_gone() {
        reader.close();
    }
    if file.again()? {
        file.conn.busy_handler(Some(wait_for_others)).map_err(fault::of)?;
    }
    Ok(())
}

/// All of them in one transaction, or none. Each may take so long.
fn commit(file: &Opened, clock: &Clock, jobs: &[Arc<dyn Job>], most: Duration) -> Result<(), Undone> {
    let Opened { conn, fences, .. } = file;
    let begin = |sql| conn.prepare_cached(sql).and_then(|mut begin| begin.execute([])).map_err(fault::of);
    begin("BEGIN IMMEDIATE").map_err(Undone::Failed)?;
    // Nothing is built on what is not there any more.
    if let Err(error) = file.look() {
        let _ = conn.execute_batch("ROLLBACK");
        return Err(Undone::Failed(error));
    }
    // The time is read when nobody else writes, so that it does not go back from one transaction to the next.
    let tx = Tx { conn, now: clock.read(), fences: Some(fences) };
    fences.begin();
    let run = |job: &Arc<dyn Job>| {
        bounds::begin(most);
        job.run(&tx)
    };
    let outcome = jobs.iter().try_for_each(run);
    let is_interrupted = outcome.is_err() && bounds::is_over();
    bounds::end();
    let outcome = outcome.and_then(|()| begin("COMMIT").map(drop));
    if outcome.is_err() {
        fences.forget();
        // An error may have rolled it back already.
        if !conn.is_autocommit() {
            let _ = conn.execute_batch("ROLLBACK");
        }
    }
    outcome.map_err(|error| if is_interrupted { Undone::TooLong(error) } else { Undone::Failed(error) })
}

/// Why a transaction was not committed.
enum Undone {
    /// One of its operations took longer than it may.
    TooLong(Error),
    Failed(Error),
}

impl From<Undone> for Error {
    fn from(undone: Undone) -> Error {
        let (Undone::TooLong(error) | Undone::Failed(error)) = undone;
        error
    }
}

/// Sleeps a little while another process writes: longer each time, and not in step with others.
fn wait_for_others(times: i32) -> bool {
    let Some(until) = WAITS_UNTIL.get() else { return false };
    if Instant::now() >= until || IS_LEFT.with_borrow(|is_left| is_left.load(Ordering::Relaxed)) {
        return false;
    }
    let most = 200_000_u64.saturating_mul(1 << times.clamp(0, 5));
    thread::sleep(Duration::from_nanos(50_000 + rng::scale(SystemTimer.seed(), most)));
    true
}
