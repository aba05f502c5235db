//! Disks that are full, fail, tear what was written, or take no writes: nothing that was accepted is lost, nothing is accepted
//! that cannot be kept, and an error says what is the matter. SQLite, mostly: what is on a server's disk is the server's.

use crate::servers::{PostgresServer, is_root};
use relent::{Policy, rng::draw};
use relent_store::{
    Error, ErrorKind, Key, Kind, Replaced, Scope, Store, Version,
    in_sqlite::{Durability, Sqlite, SqliteSettings},
};
use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A frame of a write-ahead log: its head, and a page.
const FRAME: usize = 24 + 4096;
/// What stands before the first.
const HEAD: usize = 32;

fn key(nth: usize) -> Key {
    Key::new(format!("k{nth:04}")).unwrap()
}

fn wal(folder: &Path) -> PathBuf {
    folder.join("state.db-wal")
}

fn hasty() -> Policy {
    Policy::immediate().max_attempts(1).timeout(Duration::from_secs(20))
}

/// Sets a key to its own name, which is what must be read from then on.
async fn put(store: &Store<Sqlite>, nth: usize, bytes: usize) -> Result<(), Error> {
    let value = key(nth).as_bytes().repeat(bytes / 5 + 1);
    match store.replace(&key(nth), Version::ABSENT, Some(&value)).await? {
        Replaced::Replaced(_) => Ok(()),
        conflict => panic!("nobody else writes: {conflict:?}"),
    }
}

/// Whether a key is there. If it is, then as it was written.
async fn is_there(store: &Store<Sqlite>, nth: usize) -> Result<bool, Error> {
    let value = store.read(&key(nth)).await?.value;
    if let Some(value) = &value {
        assert!(value.chunks(5).all(|chunk| chunk == key(nth).as_bytes()), "k{nth} has another value");
    }
    Ok(value.is_some())
}

/// A folder in memory, where there are such: for what is synced hundreds of times, and need not be.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Operations of which it is known how long the log was when each had been accepted.
async fn written(folder: &Path) -> Vec<(usize, usize)> {
    fs::create_dir(folder).unwrap();
    // What is in the file itself is not to be torn here.
    drop(Sqlite::open(folder.join("state.db")).unwrap());
    let settings = SqliteSettings { durability: Durability::Process, ..SqliteSettings::default() };
    let store = Store::new(settings.open(&folder.join("state.db")).unwrap());
    let mut accepted = vec![];
    for nth in 0..18 {
        put(&store, nth, if nth % 4 == 3 { 9000 } else { 40 }).await.unwrap();
        accepted.push((nth, fs::metadata(wal(folder)).unwrap().len() as usize));
    }
    // As a power loss would find it, before it is tidied up.
    for name in ["state.db", "state.db-wal"] {
        fs::copy(folder.join(name), folder.join(name.replace("state", "lost"))).unwrap();
    }
    accepted
}

/// Puts this log beside a copy of the file, and opens it: how many of the operations are there. They are the first ones.
async fn first_ones(folder: &Path, log: &[u8], most: usize, what: &str) -> usize {
    let torn = folder.join("torn");
    let _ = fs::remove_dir_all(&torn);
    fs::create_dir(&torn).unwrap();
    fs::copy(folder.join("lost.db"), torn.join("state.db")).unwrap();
    fs::write(wal(&torn), log).unwrap();
    let settings = SqliteSettings { durability: Durability::Process, ..SqliteSettings::default() };
    let store = Store::new(settings.open(&torn.join("state.db")).unwrap_or_else(|err| panic!("{what}: {err:?}")));
    let mut there = vec![];
    for nth in 0..most {
        there.push(is_there(&store, nth).await.unwrap_or_else(|err| panic!("{what}: {err:?}")));
    }
    let first = there.iter().take_while(|is| **is).count();
    assert!(there[first..].iter().all(|is| !is), "{what}: one is gone, and a later one is not: {there:?}");
    put(&store, 9999, 40).await.unwrap_or_else(|err| panic!("{what}: nothing can be written: {err:?}"));
    first
}

/// At each boundary of a frame, within frames, with rubbish behind the tear, and with a frame in which a bit is wrong: what had
/// been accepted before the tear is there, wholly, and nothing of what came after.
#[tokio::test]
async fn a_torn_log_loses_the_last_and_nothing_before_it() {
    let folder = in_memory();
    let folder = folder.path().join("state");
    let accepted = written(&folder).await;
    let log = fs::read(folder.join("lost.db-wal")).unwrap();
    let frames = (log.len() - HEAD) / FRAME;
    assert!(frames > 30 && (log.len() - HEAD).is_multiple_of(FRAME), "{frames} frames in {} bytes", log.len());
    let kept = |whole: usize| accepted.iter().filter(|(_, until)| *until <= whole).count();
    for frame in 0..=frames {
        let boundary = HEAD + frame * FRAME;
        let mut lengths = vec![boundary];
        if frame < frames {
            let inside = draw(7, frame as u32) as usize % (FRAME - 2);
            lengths.extend([boundary + 1, boundary + inside, boundary + FRAME - 1]);
        }
        for length in lengths {
            let what = format!("torn after {length} of {} bytes", log.len());
            assert_eq!(first_ones(&folder, &log[..length], accepted.len(), &what).await, kept(length), "{what}");
        }
        if frame == frames {
            continue;
        }
        // Disks write out of order: the tear is followed by nothing, or by something else.
        let mut rubbish = log[..boundary].to_vec();
        if frame % 2 == 0 {
            rubbish.resize(log.len(), 0);
        } else {
            rubbish.extend((0..log.len() - boundary).map(|nth| draw(9, nth as u32) as u8));
        }
        let what = format!("rubbish after {boundary} bytes");
        assert_eq!(first_ones(&folder, &rubbish, accepted.len(), &what).await, kept(boundary), "{what}");
        let mut wrong = log.clone();
        wrong[boundary + draw(11, frame as u32) as usize % FRAME] ^= 1 << (frame % 8);
        let what = format!("a wrong bit in frame {frame}");
        assert_eq!(first_ones(&folder, &wrong, accepted.len(), &what).await, kept(boundary), "{what}");
    }
}

/// Pages of rubbish: an error that says so, or an answer, in bounded time; no panic, and what is damaged is not written over
/// unnoticed by a new store.
#[tokio::test]
async fn a_damaged_file_is_told_of_or_read() {
    let folder = in_memory();
    let path = folder.path().join("state.db");
    {
        let store = Store::new(Sqlite::open(&path).unwrap());
        for nth in 0..40 {
            put(&store, nth, 300).await.unwrap();
        }
    }
    // The last to close it puts everything into the file.
    let begin = Instant::now();
    while wal(folder.path()).exists() {
        assert!(begin.elapsed() < Duration::from_secs(10), "it is not closed");
        std::thread::sleep(Duration::from_millis(5));
    }
    let whole = fs::read(&path).unwrap();
    let pages = whole.len() / 4096;
    let (mut told, mut read) = (0, 0);
    for turn in 0..3 * pages as u32 {
        let mut damaged = whole.clone();
        let page = turn as usize % pages;
        for nth in 0..64 {
            let at = page * 4096 + draw(u64::from(turn), nth) as usize % 4096;
            damaged[at] = draw(u64::from(turn), 1000 + nth) as u8;
        }
        let path = folder.path().join(format!("damaged-{turn}.db"));
        fs::write(&path, &damaged).unwrap();
        fs::set_permissions(&path, fs::metadata(folder.path().join("state.db")).unwrap().permissions()).unwrap();
        let begin = Instant::now();
        match Sqlite::open(&path) {
            Err(error) => {
                assert!(!error.is_transient() || error.kind() == ErrorKind::Contended, "{error:?}");
                told += 1;
            }
            Ok(engine) => {
                let store = Store::new(engine).patience(hasty());
                for nth in 0..40 {
                    // The bytes of a value have no check of their own: what is asked here is only that there is an answer.
                    match store.read(&key(nth)).await {
                        Ok(_) => read += 1,
                        Err(error) => {
                            assert!(!error.to_string().is_empty());
                            told += 1;
                        }
                    }
                }
                let _ = store.list(Kind::Values, 100).await;
                let _ = store.purge(100).await;
                let (scope, once) = (Scope::new("s").unwrap(), key(1));
                let _ = store.once(&scope, &once).run(async |_| Ok::<_, String>("x")).await;
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }
    assert!(told > 10 && read > 10, "{told} told, {read} read");
}

/// What a process that was started for it does with a disk.
#[tokio::test]
async fn child() {
    let (Ok(folder), Ok(task)) = (env::var("RELENT_DISK_FOLDER"), env::var("RELENT_DISK_TASK")) else { return };
    let folder = PathBuf::from(folder);
    match task.as_str() {
        "fill" => fill(&folder).await,
        "fill_postgres" => fill_postgres(&folder).await,
        "write" => write(&folder, Durability::Machine).await,
        "write_hastily" => write(&folder, Durability::Process).await,
        "read_only" => {
            let error = Sqlite::open(folder.join("state.db")).unwrap_err();
            // SQLite cannot make what it needs beside the file.
            assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
            assert!(error.hint_text().is_some_and(|hint| hint.contains("may it be written")), "{error:?}");
            let error = Sqlite::open(folder.join("new.db")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error:?}");
        }
        task => panic!("{task}?"),
    }
}

/// Writes until there is no more room; makes room, and goes on.
async fn fill(folder: &Path) {
    let expected = env::var("RELENT_DISK_KIND").unwrap();
    let ballast = folder.join("ballast");
    if expected == "Full" {
        fs::write(&ballast, vec![1; 1_200_000]).unwrap();
    }
    let store = Store::new(Sqlite::open(folder.join("state.db")).unwrap()).patience(hasty());
    let mut accepted = 0;
    let error = loop {
        assert!(accepted < 1000, "there is room without end");
        match put(&store, accepted, 8000).await {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert!(accepted > 5, "{accepted}: {error:?}");
    assert_eq!(format!("{:?}", error.kind()), expected, "{error:?}");
    assert!(!error.to_string().is_empty());
    // What was accepted can be read, and nothing else is accepted.
    for nth in 0..accepted {
        assert!(is_there(&store, nth).await.unwrap(), "k{nth}");
    }
    assert!(!is_there(&store, accepted).await.unwrap());
    assert!(put(&store, accepted, 8000).await.is_err());
    let mut out = std::io::stdout();
    out.write_all(b"relent-disk full\n").unwrap();
    out.flush().unwrap();
    if expected == "Full" {
        fs::remove_file(ballast).unwrap();
    } else {
        let _ = std::io::stdin().read(&mut [0]);
    }
    // With room it goes on by itself.
    put(&store, accepted, 8000).await.unwrap();
    drop(store);
    let again = Store::new(Sqlite::open(folder.join("state.db")).unwrap());
    for nth in 0..=accepted {
        assert!(is_there(&again, nth).await.unwrap(), "k{nth} after it was opened again");
    }
    out.write_all(b"relent-disk done\n").unwrap();
    out.flush().unwrap();
}

/// Writes until the disk of a Postgres server has no more room for values; makes room, and goes on.
async fn fill_postgres(folder: &Path) {
    let server = PostgresServer::start();
    let store = Store::open(&server.url()).await.unwrap().patience(hasty());
    let (ballast, small) = (folder.join("ballast"), folder.join("small"));
    fs::write(&ballast, vec![1; 1_000_000]).unwrap();
    fs::create_dir(&small).unwrap();
    ran(Command::new("chown").arg("postgres").arg(&small));
    let (admin, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    admin.batch_execute(&format!("CREATE TABLESPACE small LOCATION '{}'", small.display())).await.unwrap();
    admin.batch_execute("ALTER TABLE relent_value SET TABLESPACE small").await.unwrap();
    let value = |nth: usize| -> Vec<u8> { (0..50_000).map(|byte| draw(nth as u64, byte) as u8).collect() };
    let put = async |nth: usize| store.replace(&key(nth), Version::ABSENT, Some(&value(nth))).await;
    let mut accepted = 0;
    let error = loop {
        assert!(accepted < 200, "there is room without end");
        match put(accepted).await {
            Ok(replaced) => assert!(matches!(replaced, Replaced::Replaced(_))),
            Err(error) => break error,
        }
        accepted += 1;
    };
    assert!(accepted > 3 && error.kind() == ErrorKind::Full, "{accepted}: {error:?}");
    assert!(put(accepted).await.is_err());
    fs::remove_file(ballast).unwrap();
    assert!(matches!(put(accepted).await.unwrap(), Replaced::Replaced(_)));
    for nth in 0..=accepted {
        assert_eq!(store.read(&key(nth)).await.unwrap().value.as_deref(), Some(&value(nth)[..]), "k{nth}");
    }
}

/// Writes, and tells in a journal what was accepted and what was not.
async fn write(folder: &Path, durability: Durability) {
    let settings = SqliteSettings { durability, ..SqliteSettings::default() };
    let store = Store::new(settings.open(&folder.join("state.db")).unwrap()).patience(hasty());
    let mut journal = fs::OpenOptions::new().append(true).create(true).open(folder.join("journal")).unwrap();
    for nth in 0..40 {
        let line = match put(&store, nth, 40).await {
            Ok(()) => format!("accepted {nth}\n"),
            Err(error) => format!("refused {nth} {:?}\n", error.kind()),
        };
        journal.write_all(line.as_bytes()).unwrap();
    }
}

/// This program, as the one that suffers.
fn child_args(command: &mut Command, folder: &Path, task: &str) {
    command.arg(env::current_exe().unwrap()).args(["--exact", "disk::child", "--nocapture", "--test-threads", "1"]);
    command.env("RELENT_DISK_FOLDER", folder).env("RELENT_DISK_TASK", task);
}

fn ran(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|err| panic!("{command:?}: {err}"));
    let told = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}: {}: {told}", out.status);
    told
}

/// A shell with file systems of its own, in which this folder is a small one in memory.
fn on_a_disk_of_its_own(folder: &Path, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.arg(if is_root() { "-m" } else { "-rm" });
    let mount = format!("mount -t tmpfs -o size=2m,mode=700 tmpfs '{}' && {script}", folder.display());
    command.args(["sh", "-c", &mount, "sh"]);
    command
}

#[test]
fn a_store_on_a_full_disk_loses_nothing_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = on_a_disk_of_its_own(folder.path(), "exec \"$@\"");
    child_args(&mut command, folder.path(), "fill");
    let told = ran(command.env("RELENT_DISK_KIND", "Full"));
    assert!(told.contains("relent-disk done"), "{told}");
}

/// The server cannot be root, and its disk is made by root.
#[test]
fn a_store_on_a_full_disk_of_postgres_which_is_another_user_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("chmod 755 '{}' && exec \"$@\"", folder.path().display());
    let mut command = on_a_disk_of_its_own(folder.path(), &script);
    child_args(&mut command, folder.path(), "fill_postgres");
    ran(&mut command);
}

#[test]
fn a_store_on_a_disk_that_takes_no_writes_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let script = format!(
        "RELENT_DISK_TASK=write \"$@\" && mount -o remount,ro '{at}' && \"$@\" && mount -o remount,rw '{at}' && \
         rm '{at}/journal' && rm '{at}'/state.db* && RELENT_DISK_TASK=write \"$@\""
    );
    let mut command = on_a_disk_of_its_own(folder.path(), &script);
    child_args(&mut command, folder.path(), "read_only");
    ran(&mut command);
}

/// No write goes beyond a length: to the store that is a disk that fails. Then it does not any more.
#[test]
fn a_store_whose_disk_fails_loses_nothing_and_goes_on_when_it_works() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec prlimit --fsize=300000:unlimited \"$@\"", "sh"]);
    child_args(&mut command, folder.path(), "fill");
    command.env("RELENT_DISK_KIND", "Unavailable").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut out = BufReader::new(running.stdout.take().unwrap());
    let (mut line, mut told) = (String::new(), String::new());
    while !line.contains("relent-disk full") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "it ended: {told}");
        told += &line;
    }
    ran(Command::new("prlimit").args(["--pid", &running.id().to_string(), "--fsize=unlimited"]));
    running.stdin.take().unwrap().write_all(b"\n").unwrap();
    out.read_to_string(&mut told).unwrap();
    assert!(running.wait().unwrap().success() && told.contains("relent-disk done"), "{told}");
}

/// Runs a child under `strace`, which writes down what it does with the log and the journal.
fn under_strace(folder: &Path, task: &str, more: &[&str]) -> Vec<String> {
    drop(Sqlite::open(folder.join("state.db")).unwrap());
    let trace = folder.join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-qq", "-e", "trace=pwrite64,write,fdatasync,fsync"]).args(more);
    command.arg("-o").arg(&trace);
    child_args(&mut command, folder, task);
    ran(&mut command);
    fs::read_to_string(trace).unwrap().lines().map(str::to_owned).collect()
}

/// How often it was told that something was accepted, and how often while the log was not on the disk.
fn told_early(trace: &[String]) -> (u32, u32) {
    let (mut is_dirty, mut told, mut early) = (false, 0, 0);
    for line in trace {
        if line.contains("pwrite64(") && line.contains("-wal>") {
            is_dirty = true;
        } else if (line.contains("sync(") && line.contains("-wal>") || line.contains("sync resumed"))
            && line.contains("= 0")
        {
            is_dirty = false;
        } else if line.contains("write(") && line.contains("/journal>") && line.contains("accepted") {
            told += 1;
            early += u32::from(is_dirty);
        }
    }
    (told, early)
}

#[test]
fn what_is_accepted_is_on_the_disk_before_it_is_told_under_strace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = under_strace(folder.path(), "write", &[]);
    assert_eq!(told_early(&trace), (40, 0), "{trace:#?}");
    // Who asked for less has less, as the page says; and the judge sees it.
    let folder = tempfile::tempdir().unwrap();
    let trace = under_strace(folder.path(), "write_hastily", &[]);
    assert_eq!(told_early(&trace), (40, 40), "{trace:#?}");
}

#[tokio::test]
async fn a_disk_that_cannot_sync_accepts_nothing_under_strace() {
    let folder = tempfile::tempdir().unwrap();
    // Of each thread of the child, some syncs fail; then they do not.
    let inject = ["-e", "inject=fdatasync,fsync:error=EIO:when=4..8"];
    let trace = under_strace(folder.path(), "write", &inject);
    let (told, early) = told_early(&trace);
    assert_eq!(early, 0, "accepted, and not on the disk: {trace:#?}");
    let journal = fs::read_to_string(folder.path().join("journal")).unwrap();
    let refused = journal.lines().filter(|line| line.starts_with("refused")).count();
    assert!(refused >= 3 && told >= 3, "{journal}");
    assert!(journal.lines().all(|line| !line.starts_with("refused") || line.ends_with("Unavailable")), "{journal}");
    let after = journal.lines().skip_while(|line| line.starts_with("accepted"));
    assert!(after.filter(|line| line.starts_with("accepted")).count() > 0, "it does not go on: {journal}");
    let store = Store::new(Sqlite::open(folder.path().join("state.db")).unwrap());
    for line in journal.lines().filter(|line| line.starts_with("accepted")) {
        let nth = line.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(is_there(&store, nth).await.unwrap(), "{line}, and it is gone: {journal}{trace:#?}");
    }
}
