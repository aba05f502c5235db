//! Many calls of `once` for few keys, at once and by several processes: each effect happens once. Where processes are killed,
//! an effect that asks for the greatest fence happens once nevertheless.
//!
//! `RELENT_CROWD=CALLS,KEYS,PROCESSES,KILLS` makes it larger.

use super::{
    parent::{Running, World},
    worker::say,
};
use crate::servers::{PostgresServer, RedisServer};
use relent::{Policy, rng::draw};
use relent_store::{Effect, Key, OnceError, Scope, Store};
use std::{
    collections::BTreeMap,
    env, fs,
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// How many calls of one process are under way at a time: fewer where eight connections carry them.
fn at_once(url: &str) -> usize {
    if url.starts_with("postgres:") { 32 } else { 256 }
}

/// How long a claim holds after the last sign of life of a process that may be killed.
const LEASE: Duration = Duration::from_millis(500);

/// With a machine full of processes, nothing is quick: so patient are they with the store, and with each other.
const PATIENT: Policy = Policy::exponential(Duration::from_millis(5))
    .cap(Duration::from_millis(250))
    .unlimited_attempts()
    .attempt_timeout(Duration::from_secs(20))
    .timeout(Duration::from_secs(240));

#[derive(Clone, Copy, Debug)]
struct Size {
    calls: u32,
    keys: u32,
    processes: u32,
    kills: u32,
}

impl Size {
    fn told_or(usual: Size) -> Size {
        let Ok(told) = env::var("RELENT_CROWD") else { return usual };
        let numbers: Vec<u32> = told.split(',').map(|number| number.parse().unwrap()).collect();
        let [calls, keys, processes, kills] = numbers[..] else { panic!("RELENT_CROWD=CALLS,KEYS,PROCESSES,KILLS") };
        Size { calls, keys, processes, kills }
    }
}

/// What the far side does with an effect, and how processes name what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// It does what it is asked for. Nobody is killed.
    Plain,
    /// It refuses a fence that is older than one it saw.
    Fenced,
    /// As plain, but each process has a scope of its own: wrong on purpose.
    Strangers,
}

impl Manner {
    fn named(name: &str) -> Manner {
        let all = [Manner::Plain, Manner::Fenced, Manner::Strangers];
        all.into_iter().find(|manner| format!("{manner:?}") == name).unwrap()
    }
}

/// Effects of a key, by whom and under which fence.
type Effects = BTreeMap<String, Vec<String>>;

fn effects_file(folder: &Path) -> PathBuf {
    folder.join("crowd-effects")
}

fn fenced_file(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("crowd-{key}"))
}

/// An effect: a line, written at once. What comes of it is no other's.
fn act(folder: &Path, key: &str, by: u32, fence: u64) -> String {
    let value = format!("{by}-{fence}");
    let mut file = fs::OpenOptions::new().append(true).create(true).open(effects_file(folder)).unwrap();
    file.write_all(format!("{key} {value}\n").as_bytes()).unwrap();
    value
}

/// An effect at a far side that remembers the greatest fence, and tells what it did to whoever comes after one that went silent.
fn act_fenced(folder: &Path, key: &str, by: u32, effect: Effect) -> Result<String, String> {
    let path = fenced_file(folder, key);
    let mut file = fs::OpenOptions::new().read(true).append(true).create(true).open(path).unwrap();
    file.lock().unwrap();
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    let seen: Vec<(u64, &str)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(fence, value)| (fence.parse().unwrap(), value))
        .collect();
    let fence = effect.fence.0;
    if seen.iter().any(|(greater, _)| *greater > fence) {
        return Err("late".into());
    }
    let found = seen.iter().find(|(_, value)| !value.is_empty()).map(|(_, value)| (*value).to_owned());
    // The effect is a line that has a value: one write, which a kill cannot take apart.
    let (line, answer) = match found {
        Some(found) if effect.unknown.is_some() => (format!("{fence} \n"), found),
        _ => (format!("{fence} {by}-{fence}\n"), format!("{by}-{fence}")),
    };
    file.write_all(line.as_bytes()).unwrap();
    Ok(answer)
}

struct Caller {
    store: Store,
    folder: PathBuf,
    scope: Scope,
    number: u32,
    manner: Manner,
}

impl Caller {
    async fn call(&self, name: &str) -> Result<(String, bool), String> {
        let key = Key::new(name).unwrap();
        let once = self.store.once(&self.scope, &key).wait(PATIENT);
        let done = if self.manner == Manner::Fenced {
            once.lease(LEASE).rerun().run(async |effect| act_fenced(&self.folder, name, self.number, effect)).await
        } else {
            once.run(async |effect| {
                let value = act(&self.folder, name, self.number, effect.fence.0);
                // Long enough for others to come meanwhile.
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok::<_, String>(value)
            })
            .await
        };
        match done {
            Ok(done) => Ok((String::from_utf8(done.bytes().to_vec()).unwrap(), done.is_replayed)),
            // Late, or slower than a lease: somebody else has it. Who asks again is told what came of it.
            Err(OnceError::Failed(_) | OnceError::Fenced(_)) if self.manner == Manner::Fenced => {
                Box::pin(self.call(name)).await
            }
            // On a machine with much else to do; nothing was begun, or nobody will hear of it.
            Err(OnceError::NotKept { .. }) if self.manner == Manner::Fenced => Box::pin(self.call(name)).await,
            Err(OnceError::Store(error)) if error.is_transient() => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Box::pin(self.call(name)).await
            }
            Err(err) => Err(format!("{name}: {err}: {err:?}")),
        }
    }
}

/// A process of the crowd. Does nothing unless a test started it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(folder) = env::var("RELENT_CROWD_FOLDER") else { return };
    let var = |name: &str| env::var(format!("RELENT_CROWD_{name}")).unwrap();
    let number = |name: &str| var(name).parse::<u64>().unwrap();
    let (calls, keys, seed) = (number("CALLS") as u32, number("KEYS"), number("WORKER_SEED"));
    let (by, manner) = (number("NUMBER") as u32, Manner::named(&var("MANNER")));
    let store = Store::open_with(&var("URL"), PATIENT).await.unwrap();
    let own = if manner == Manner::Strangers { by.to_string() } else { String::new() };
    let scope = Scope::of(["crowd", &own]).unwrap();
    let caller = Arc::new(Caller { store, folder: folder.clone().into(), scope, number: by, manner });
    say("ready");
    let (turns, told) = (Arc::new(Semaphore::new(at_once(&var("URL")))), Arc::new(Mutex::new(BTreeMap::new())));
    let tasks: Vec<_> = (0..calls)
        .map(|nth| {
            // Whoever comes last to see that all is done asks for each key once, in order.
            let key = if u64::from(calls) == keys { u64::from(nth) } else { draw(seed, nth) % keys };
            let (caller, turns, told) = (caller.clone(), turns.clone(), told.clone());
            tokio::spawn(async move {
                let _turn = turns.acquire().await.unwrap();
                let name = format!("k{key}");
                let (value, is_replayed) = caller.call(&name).await.unwrap();
                let mut told = told.lock().unwrap();
                let known = told.entry(name).or_insert_with(|| (value.clone(), 0));
                assert_eq!(known.0, value, "the same key has the same result");
                known.1 += u32::from(!is_replayed);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let lines: Vec<String> =
        told.lock().unwrap().iter().map(|(key, (value, acted))| format!("{key} {value} {acted}\n")).collect();
    fs::write(Path::new(&folder).join(format!("crowd-told-{by}")), lines.concat()).unwrap();
}

fn start(world: &World, size: Size, manner: Manner, number: u32, turn: u32) -> Running {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "faults::crowd::child", "--nocapture", "--test-threads", "1"]);
    for (name, value) in [
        ("URL", world.url.clone()),
        ("CALLS", size.calls.to_string()),
        ("KEYS", size.keys.to_string()),
        ("WORKER_SEED", draw(world.seed, (number << 16) + turn).to_string()),
        ("NUMBER", number.to_string()),
        ("MANNER", format!("{manner:?}")),
    ] {
        command.env(format!("RELENT_CROWD_{name}"), value);
    }
    Running::start(command.env("RELENT_CROWD_FOLDER", world.folder()))
}

/// What the far side did.
fn effects(world: &World, size: Size) -> Effects {
    let mut effects = Effects::new();
    let mut add = |key: &str, value: &str| effects.entry(key.to_owned()).or_default().push(value.to_owned());
    let text = fs::read_to_string(effects_file(world.folder())).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once(' ')).for_each(|(key, value)| add(key, value));
    for key in (0..size.keys).map(|key| format!("k{key}")) {
        let text = fs::read_to_string(fenced_file(world.folder(), &key)).unwrap_or_default();
        let values = text.lines().filter_map(|line| line.split_once(' ')).map(|(_, value)| value);
        values.filter(|value| !value.is_empty()).for_each(|value| add(&key, value));
    }
    effects
}

/// What is wrong: keys whose effect did not happen once, and callers who were told something else than what came of it.
fn wrong(world: &World, size: Size, number: u32) -> Vec<String> {
    let effects = effects(world, size);
    let mut wrong: Vec<String> = effects
        .iter()
        .filter(|(_, done)| done.len() != 1)
        .map(|(key, done)| format!("{key}: done by {done:?}"))
        .collect();
    if effects.len() != size.keys as usize {
        wrong.push(format!("{} effects of {} keys", effects.len(), size.keys));
    }
    for number in 0..number {
        let told = fs::read_to_string(world.folder().join(format!("crowd-told-{number}"))).unwrap();
        for line in told.lines() {
            let mut words = line.split(' ');
            let (key, value) = (words.next().unwrap(), words.next().unwrap());
            if effects.get(key).is_none_or(|done| done.first().is_none_or(|done| done != value)) {
                wrong.push(format!("{key}: process {number} was told {value}, done was {:?}", effects.get(key)));
            }
        }
    }
    wrong
}

/// All processes at once, to their ends.
fn all_at_once(world: &World, size: Size, manner: Manner) -> Vec<String> {
    let share = Size { calls: size.calls.div_ceil(size.processes), ..size };
    let begin = Instant::now();
    let running: Vec<Running> = (0..size.processes).map(|number| start(world, share, manner, number, 0)).collect();
    for process in running {
        assert!(process.ends_well(), "each call is answered");
    }
    let took = begin.elapsed();
    // What nobody chose by chance is asked for now.
    assert!(start(world, Size { calls: size.keys, ..size }, manner, size.processes, 0).ends_well());
    println!("{} calls over {} keys by {} processes in {took:.1?}", size.calls, size.keys, size.processes);
    wrong(world, size, size.processes + 1)
}

fn of_all_one_acts(url: Option<String>) {
    let size = Size::told_or(Size { calls: 4000, keys: 200, processes: 3, kills: 0 });
    let wrong = all_at_once(&World::new(url), size, Manner::Plain);
    assert!(wrong.is_empty(), "{} are wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

/// Processes are killed while all are at it, and others go on in their place.
fn of_all_one_acts_though_some_are_killed(url: Option<String>) {
    let size = Size::told_or(Size { calls: 4000, keys: 200, processes: 3, kills: 9 });
    let world = World::new(url);
    let share = Size { calls: size.calls.div_ceil(size.processes), ..size };
    let mut running: Vec<Running> =
        (0..size.processes).map(|number| start(&world, share, Manner::Fenced, number, 0)).collect();
    let (mut killed, mut turn) = (0, 0);
    // Processes end sooner when most of it is done, by how quick the machine is: then they are killed sooner.
    let mut longest = u64::from(60 + size.calls / 100);
    while killed < size.kills {
        turn += 1;
        assert!(turn < 10 * size.kills + 10, "{killed} of {} were killed: processes end before", size.kills);
        let number = turn % size.processes;
        let process = &mut running[number as usize];
        let is_up = process.hear("ready");
        thread::sleep(Duration::from_millis(draw(world.seed, turn) % longest));
        match is_up && process.kill() {
            true => killed += 1,
            false => longest = (longest / 2).max(1),
        }
        running[number as usize] = start(&world, share, Manner::Fenced, number, turn);
    }
    for process in running {
        assert!(process.ends_well(), "each call is answered");
    }
    assert!(start(&world, Size { calls: size.keys, ..size }, Manner::Fenced, size.processes, 0).ends_well());
    println!("{} calls over {} keys, {killed} kills", size.calls, size.keys);
    let wrong = wrong(&world, size, size.processes + 1);
    assert!(wrong.is_empty(), "{} are wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

#[test]
fn each_effect_happens_once_on_sqlite() {
    of_all_one_acts(None);
}

#[test]
fn each_effect_happens_once_on_redis() {
    of_all_one_acts(Some(RedisServer::start(&[]).url()));
}

#[test]
fn each_effect_happens_once_on_postgres() {
    // Eight processes together have less than the hundred connections of a server.
    let server = PostgresServer::start();
    of_all_one_acts(Some(format!("{}?connections=8", server.url())));
}

#[test]
fn fenced_effects_happen_once_though_callers_are_killed_on_sqlite() {
    of_all_one_acts_though_some_are_killed(None);
}

#[test]
fn fenced_effects_happen_once_though_callers_are_killed_on_redis() {
    of_all_one_acts_though_some_are_killed(Some(RedisServer::start(&[]).url()));
}

#[test]
fn fenced_effects_happen_once_though_callers_are_killed_on_postgres() {
    let server = PostgresServer::start();
    of_all_one_acts_though_some_are_killed(Some(format!("{}?connections=8", server.url())));
}

/// Who does not share a scope shares nothing: the judge sees that.
#[test]
fn a_crowd_of_strangers_is_caught() {
    let size = Size { calls: 300, keys: 20, processes: 2, kills: 0 };
    assert!(!all_at_once(&World::new(None), size, Manner::Strangers).is_empty());
}
