//! Who starts workers, and kills and stops them.

use super::worker::{Control, LEASE, POINTS};
use relent::rng::draw;
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

/// A store, and a folder for what the workers leave.
pub(super) struct World {
    pub(super) url: String,
    pub(super) folder: tempfile::TempDir,
    pub(super) seed: u64,
}

/// What was done to the workers.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) kills: u32,
    pub(super) pauses: u32,
}

/// What a worker is started for.
pub(super) struct Order<'a> {
    pub(super) point: &'a str,
    pub(super) nth: u64,
    pub(super) number: u32,
    pub(super) control: Control,
    /// One key or message, and no other work.
    pub(super) only: &'a str,
}

/// A worker, killed when this is dropped.
pub(super) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl World {
    /// A world around the store of this URL, or around an SQLite file of its own.
    pub(super) fn new(url: Option<String>) -> World {
        let folder = tempfile::tempdir().unwrap();
        let url = url.unwrap_or_else(|| format!("sqlite:{}", folder.path().join("state.db").display()));
        let told = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = told.unwrap_or_else(|| {
            draw(u64::from(std::process::id()), std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.subsec_nanos()))
        });
        let engine = url.split(':').next().unwrap_or_default();
        println!("{engine}: RELENT_SEED={seed} plays this again");
        World { url, folder, seed }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn start(&self, order: &Order<'_>) -> Running {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "faults::worker::child", "--nocapture", "--test-threads", "1"]);
        for (name, value) in [
            ("URL", self.url.clone()),
            ("WORKER_SEED", draw(self.seed, order.number << 8).to_string()),
            ("GENERATION", (order.number / 2).to_string()),
            ("POINT", order.point.into()),
            ("NTH", order.nth.to_string()),
            ("CONTROL", format!("{:?}", order.control)),
            ("ONLY", order.only.into()),
        ] {
            command.env(format!("RELENT_FAULT_{name}"), value);
        }
        command.env("RELENT_FAULT_FOLDER", self.folder());
        Running::start(&mut command)
    }

    /// Kills so many workers, two at a time, some of them stopped for longer than a lease before.
    pub(super) fn kill_many(&self, kills: u32) -> Done {
        let (next, killed, paused) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while killed.load(Ordering::SeqCst) < kills {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        assert!(number < 3 * kills + 30, "workers end before they can be killed");
                        let (was_killed, was_paused) = self.kill_one(number);
                        killed.fetch_add(was_killed.into(), Ordering::SeqCst);
                        paused.fetch_add(was_paused.into(), Ordering::SeqCst);
                    }
                });
            }
        });
        Done { kills: killed.into_inner(), pauses: paused.into_inner() }
    }

    /// Kills one: at a point that has a name, or at any instant. Whether it was, and whether it was stopped before.
    fn kill_one(&self, number: u32) -> (bool, bool) {
        let random = |nth, below| draw(self.seed, (number << 8) + nth) % below;
        let is_named = number.is_multiple_of(2);
        let point = if is_named { POINTS[number as usize / 2 % POINTS.len()] } else { "" };
        let control = Control::Right;
        let mut worker = self.start(&Order { point, nth: 1 + random(1, 2), number, control, only: "" });
        if is_named {
            return (worker.hear("at") && worker.kill(), false);
        }
        // One of eight is killed wherever it is while it opens the store.
        let heard = random(2, 8) == 0 || worker.hear("ready");
        thread::sleep(Duration::from_micros(random(3, 25_000)));
        let pauses = random(4, 8) == 0;
        if pauses {
            worker.stop();
            thread::sleep(LEASE + Duration::from_millis(20));
            worker.resume();
            thread::sleep(Duration::from_micros(random(5, 25_000)));
        }
        (heard && worker.kill(), pauses)
    }
}

impl Running {
    pub(super) fn start(command: &mut Command) -> Running {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }

    /// Waits until it says so. Whether it did, or ended without.
    pub(super) fn hear(&mut self, what: &str) -> bool {
        let what = format!("relent-fault {what}");
        let mut line = String::new();
        while self.out.read_line(&mut line).is_ok_and(|read| read > 0) {
            if line.trim_end().ends_with(&what) {
                return true;
            }
            line.clear();
        }
        false
    }

    /// `kill -9`. Whether it was still there to be killed.
    pub(super) fn kill(&mut self) -> bool {
        let was_running = self.child.try_wait().unwrap().is_none();
        self.child.kill().unwrap();
        let ended = self.child.wait().unwrap();
        was_running && !ended.success()
    }

    /// Waits for its end. Whether all went well.
    pub(super) fn ends_well(mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    pub(super) fn stop(&self) {
        self.signal("-STOP");
    }

    pub(super) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Lets it go on from where it stands, and waits for its end.
    pub(super) fn go_on(mut self) {
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "{ended}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
