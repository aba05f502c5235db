//! Stations on an 802.3 segment: carrier sense, collisions, and truncated binary exponential backoff by the policy.
//!
//! Time is in slots. A station whose moment comes while the channel is busy waits for its end and sends then; those
//! that begin in one slot collide, and their policies decide how many slots they wait.

use crate::{
    engine::{
        control::{Control, INTERRUPTED, most_attempts, past, past_attempts},
        draws::Draws,
    },
    outcome::{Figures, Plots, histogram::Waits, run::Run},
    scenario::{Contender, Ethernet, Figure},
};
use relent::{Call, Decision, Policy, Timestamp, Verdict, rng::mix};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

struct Station<'a> {
    call: Call<&'a Policy>,
    /// The slot from which it may send.
    next: u64,
    /// Frames sent before this one.
    sent: u64,
}

/// How often a station that has just won met one at its `c`-th collision, and how that went.
#[derive(Clone, Copy, Default)]
struct Met {
    wins: u64,
    ties: u64,
    losses: u64,
}

/// Collisions after which 802.3 no longer counts.
const ATTEMPTS: usize = 16;

pub(crate) fn run(ethernet: &Ethernet, contender: &Contender, draws: Draws, limit: u64, control: &Control) -> Run {
    let slot_ns = crate::time::nanos(ethernet.slot).max(1);
    let frame = ethernet.frame_slots;
    let policy = &contender.policy;
    let frame_seed = |station: usize, frame: u64| mix(draws.call(station as u64) ^ mix(frame));
    let mut stations: Vec<Station<'_>> = (0..ethernet.stations as usize)
        .map(|station| Station { call: policy.call(Timestamp::ZERO, frame_seed(station, 0)), next: 0, sent: 0 })
        .collect();
    let mut tally = Tally::new();
    // When which station may send.
    let mut coming: BinaryHeap<Reverse<(u64, usize)>> = (0..stations.len()).map(|i| Reverse((0, i))).collect();
    let mut ready = Vec::new();
    let mut waiting = ethernet.stations - u64::from(ethernet.capture);
    let most = most_attempts(ethernet.stations);
    let mut now = 0;
    let mut stopped = None;
    while waiting > 0
        && let Some(Reverse((next, _))) = coming.peek()
    {
        now = now.max(*next);
        if now.saturating_mul(slot_ns) > limit {
            stopped = Some(past(limit));
            break;
        }
        if tally.attempts >= most {
            stopped = Some(past_attempts(most));
            break;
        }
        ready.clear();
        while let Some(&Reverse((next, station))) = coming.peek()
            && next <= now
        {
            coming.pop();
            ready.push(station);
        }
        tally.attempts += ready.len() as u64;
        if !control.tick(ready.len() as u64) {
            stopped = Some(INTERRUPTED.to_owned());
            break;
        }
        if let [winner] = ready[..] {
            let station = &mut stations[winner];
            tally.sent((now + frame).saturating_mul(slot_ns), station.call.attempt());
            now += frame;
            if ethernet.capture && winner == 0 {
                station.sent += 1;
                let call = policy.call(Timestamp::from_nanos(now.saturating_mul(slot_ns)), frame_seed(0, station.sent));
                *station = Station { call, next: now, sent: station.sent };
                coming.push(Reverse((now, winner)));
            } else {
                station.next = u64::MAX;
                waiting -= 1;
            }
            continue;
        }
        tally.collided();
        let collision_ends = now + 1;
        for &station in &ready {
            let at = Timestamp::from_nanos(collision_ends.saturating_mul(slot_ns));
            let station_state = &mut stations[station];
            match station_state.call.on_failure(at, Verdict::Transient) {
                Decision::Retry(delay) => {
                    let slots = crate::time::nanos(delay).div_ceil(slot_ns);
                    station_state.next = collision_ends.saturating_add(slots);
                }
                Decision::GiveUp(reason) => {
                    tally.discarded(reason.as_str(), station_state.call.failures());
                    station_state.next = u64::MAX;
                    if ethernet.capture && station == 0 {
                        // The station that captures goes on with a new frame.
                        station_state.sent += 1;
                        station_state.call = policy.call(at, frame_seed(0, station_state.sent));
                        station_state.next = collision_ends;
                    } else {
                        waiting -= 1;
                    }
                }
            }
            if station_state.next != u64::MAX {
                coming.push(Reverse((station_state.next, station)));
            }
        }
        if ethernet.capture && stations.len() == 2 && ready.len() == 2 {
            tally.met(&stations);
        }
        now = collision_ends;
    }
    tally.finish(ethernet, now.saturating_mul(slot_ns), stopped)
}

struct Tally {
    attempts: u64,
    collisions: u64,
    collisions_before_success: Option<u64>,
    frames: u64,
    last: u64,
    waits: Waits,
    by_attempts: Vec<u64>,
    gave_up: BTreeMap<&'static str, u64>,
    met: [Met; ATTEMPTS + 1],
}

impl Tally {
    fn new() -> Tally {
        Tally {
            attempts: 0,
            collisions: 0,
            collisions_before_success: None,
            frames: 0,
            last: 0,
            waits: Waits::new(),
            by_attempts: Vec::new(),
            gave_up: BTreeMap::new(),
            met: [Met::default(); ATTEMPTS + 1],
        }
    }

    fn sent(&mut self, at: u64, attempts: u32) {
        self.collisions_before_success.get_or_insert(self.collisions);
        self.frames += 1;
        self.last = at;
        self.waits.add(at);
        self.ended(attempts);
    }

    const fn collided(&mut self) {
        self.collisions += 1;
    }

    fn discarded(&mut self, reason: &'static str, attempts: u32) {
        *self.gave_up.entry(reason).or_default() += 1;
        self.ended(attempts);
    }

    fn ended(&mut self, attempts: u32) {
        let place = (attempts as usize).min(64);
        if self.by_attempts.len() <= place {
            self.by_attempts.resize(place + 1, 0);
        }
        self.by_attempts[place] += 1;
    }

    /// Two stations have drawn: how it went for the first, if it had just won.
    fn met(&mut self, stations: &[Station<'_>]) {
        let (first, second) = (&stations[0], &stations[1]);
        let c = second.call.failures() as usize;
        if first.call.failures() != 1 || first.sent == 0 || second.next == u64::MAX || c > ATTEMPTS {
            return;
        }
        let met = &mut self.met[c];
        match first.next.cmp(&second.next) {
            std::cmp::Ordering::Less => met.wins += 1,
            std::cmp::Ordering::Equal => met.ties += 1,
            std::cmp::Ordering::Greater => met.losses += 1,
        }
    }

    fn finish(self, ethernet: &Ethernet, end: u64, stopped: Option<String>) -> Run {
        let n = ethernet.stations as f64;
        let [p50, p90, p99, max] =
            self.waits.percentiles([0.5, 0.9, 0.99, 1.0]).map(|wait| wait.map(|nanos| nanos as f64 / 1e9));
        let slots = (end / crate::time::nanos(ethernet.slot).max(1)).max(1);
        let gave_up: u64 = self.gave_up.values().sum();
        let packets = (self.frames + gave_up).max(1) as f64;
        let busy = (self.frames * ethernet.frame_slots) as f64;
        let figures = Figures::NONE
            .with(Figure::AttemptsPerClient, self.attempts as f64 / n)
            .with(Figure::WastedPerClient, (self.attempts - self.frames) as f64 / n)
            .with(Figure::DrainS, self.last as f64 / 1e9)
            .with_some(Figure::P50S, p50)
            .with_some(Figure::P90S, p90)
            .with_some(Figure::P99S, p99)
            .with_some(Figure::MaxS, max)
            .with(Figure::Utilisation, busy / slots as f64)
            .with(Figure::GaveUp, gave_up as f64)
            .with(Figure::SuccessShare, self.frames as f64 / packets)
            .with(Figure::MaxAttempts, self.by_attempts.len().saturating_sub(1) as f64)
            .with(Figure::MakespanOverN, slots as f64 / n)
            .with(Figure::AttemptsPerPacket, self.attempts as f64 / packets)
            .with(Figure::SuccessPerSlot, self.frames as f64 / slots as f64)
            .with_some(Figure::Collisions, self.collisions_before_success.map(|count| count as f64));
        let mut notes = Vec::new();
        for (c, met) in self.met.iter().enumerate() {
            let all = met.wins + met.ties + met.losses;
            for (what, count) in [("wins", met.wins), ("ties", met.ties), ("loses", met.losses)] {
                if all > 0 {
                    notes.push((format!("capture_{what}_c{c}"), count, all));
                }
            }
        }
        let plots = Plots { waits: self.waits.curve(), attempts: self.by_attempts, ..Plots::default() };
        Run {
            clients: ethernet.stations,
            figures,
            recovered: None,
            stopped,
            plots,
            gave_up: self.gave_up,
            health: Vec::new(),
            notes,
            populations: Vec::new(),
        }
    }
}

/// What theory says about a note, where it does.
pub(crate) fn expected(name: &str) -> Option<f64> {
    let (what, c) = name.strip_prefix("capture_")?.split_once("_c")?;
    let (wins, ties, loses) = super::theory::capture(c.parse().ok()?);
    match what {
        "wins" => Some(wins),
        "ties" => Some(ties),
        "loses" => Some(loses),
        _ => None,
    }
}
