//! What must hold, whoever was killed and when.

use super::{
    parent::World,
    worker::{LEASE, Rule, Worker, effects_of, key, number, scope},
};
use relent_store::{OnUnknown, Started};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

/// What was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breach {
    /// What was accepted is not there.
    Lost,
    /// Two claims of one key were both told that their result was kept.
    SettledTwice,
    /// An effect that happens once at most happened more often, or one that was told never did.
    NotOnce,
    /// Two were given the same fence.
    FenceTwice,
    /// Two were both told that they were first, or that they had made the same version.
    ToldTwice,
}

/// What workers wrote down, and what was made of it.
pub(super) struct Verdict {
    pub(super) breaches: Vec<(Breach, String)>,
    pub(super) fenced: usize,
    pub(super) completed: usize,
    pub(super) events: usize,
}

impl Verdict {
    pub(super) fn has(&self, breach: Breach) -> bool {
        self.breaches.iter().any(|(is, _)| *is == breach)
    }
}

/// Everything that was told of one name: event, two numbers.
type Told = BTreeMap<String, Vec<(String, u64, u64)>>;

fn journal(world: &World) -> Told {
    let text = fs::read_to_string(world.folder().join("journal")).unwrap_or_default();
    let mut told = Told::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap().to_owned();
        let (event, name, a, b) = (word(), word(), word(), word());
        told.entry(name).or_default().push((event, a.parse().unwrap(), b.parse().unwrap()));
    }
    told
}

/// Brings what was left to its end, as whoever comes next does, and judges.
pub(super) async fn judge(world: &World) -> Verdict {
    // All who are dead have lost what they held.
    tokio::time::sleep(LEASE + Duration::from_millis(20)).await;
    let worker = Worker::new(&world.url, world.folder()).await;
    let before = journal(world);
    let mut breaches = vec![];
    for (name, told) in &before {
        let all = |event: &str| -> Vec<(u64, u64)> {
            told.iter().filter(|(is, ..)| is == event).map(|(_, a, b)| (*a, *b)).collect()
        };
        let mut broken = |breach, why: String| breaches.push((breach, format!("{name}: {why}: {told:?}")));
        for event in ["started", "held"] {
            if has_twice(all(event).into_iter().map(|(fence, _)| fence)) {
                broken(Breach::FenceTwice, format!("the same fence was {event} twice"));
            }
        }
        match name.as_bytes()[0] {
            b'a' | b'c' | b'r' => {
                if let Some((breach, why)) = settled(world, &worker, name, &all("done")).await {
                    broken(breach, why);
                }
                if all("replayed").iter().any(|(value, _)| all("done").iter().any(|(_, done)| done != value)) {
                    broken(Breach::Lost, "replayed with another result".into());
                }
            }
            b'n' => {
                let added = all("added");
                let now = worker.store.read(&key(name)).await.unwrap().value.as_deref().map_or(0, number);
                if added.iter().any(|(value, _)| *value > now) {
                    broken(Breach::Lost, format!("the value is {now}"));
                }
                if has_twice(added.into_iter().map(|(value, _)| value)) {
                    broken(Breach::ToldTwice, "an update overwrote another".into());
                }
            }
            b'f' => {
                let firsts = all("first").len();
                if firsts > 1 {
                    broken(Breach::ToldTwice, "seen for the first time twice".into());
                }
                let is_first = worker.store.first_time(&scope(), &key(name), LEASE).await.unwrap();
                if is_first && firsts > 0 {
                    broken(Breach::Lost, "it was seen, and is not".into());
                }
            }
            b'm' => {
                let was_told = !all("consumed").is_empty();
                worker.consume(name);
                let orders = worker.orders(name);
                if orders != 1 {
                    broken(Breach::NotOnce, format!("{orders} effects in the database, told {was_told}"));
                }
            }
            _ => {}
        }
    }
    let count = |event: &str| before.values().flatten().filter(|(is, ..)| is == event).count();
    let events = before.values().map(Vec::len).sum();
    Verdict { breaches, fenced: count("fenced"), completed: count("done"), events }
}

/// What is wrong with a key that was to happen once.
async fn settled(world: &World, worker: &Worker, name: &str, done: &[(u64, u64)]) -> Option<(Breach, String)> {
    let fences: BTreeSet<u64> = done.iter().map(|(fence, _)| *fence).collect();
    if fences.len() > 1 {
        return Some((Breach::SettledTwice, format!("by {fences:?}")));
    }
    if let Some((_, value)) = done.first() {
        match worker.begin(name, OnUnknown::Tell).await {
            Some(Started::Replay(stored)) if number(stored.bytes()) == *value => {}
            other => return Some((Breach::Lost, format!("it was done, and is {other:?}"))),
        }
    }
    // Who comes next carries it to its end, where the rule lets it.
    worker.once(name).await;
    let text = fs::read_to_string(effects_of(world.folder(), name)).unwrap_or_default();
    let effects = text.lines().filter(|line| line.starts_with("effect")).count();
    let is_right = match Rule::of(name) {
        Rule::Conflict => effects <= 1 && (done.is_empty() || effects == 1),
        Rule::Reconcile => effects == 1,
        Rule::Rerun => effects >= 1,
    };
    (!is_right).then(|| (Breach::NotOnce, format!("{effects} effects")))
}

fn has_twice(values: impl Iterator<Item = u64>) -> bool {
    let mut seen = BTreeSet::new();
    values.into_iter().any(|value| !seen.insert(value))
}
