//! The way through time, slot by slot, that both engines share.

use super::{levels::Levels, tally::Tally};
use crate::{
    engine::{
        control::{Control, INTERRUPTED, past},
        task::Task,
    },
    outcome::{Ideal, run::Run},
    scenario::{Arrivals, Figure, Network, Service},
};
use std::collections::BTreeMap;

/// How clients are moved: as whole ones with luck, or as expectations.
pub(crate) trait Clients {
    /// Which of the clients of each level get one of `places`: `let_in[level]` out of `here[level]`.
    fn choose(&mut self, here: &[f64], places: f64, let_in: &mut [f64]);
    /// Sends clients on their way: those of `level` that were refused in `slot` arrive within `low..low + width` slots
    /// later, evenly. `spread` is how much of the slot they came from is spread: 1 for all of it.
    fn send(&mut self, slot: u64, level: usize, clients: f64, from: f64, width: f64);
    /// Takes the clients that arrive in a slot, by level. Slots come in order.
    fn take(&mut self, slot: u64, here: &mut [f64]);
    /// Whole clients, or fractions of them.
    fn floor(&self, clients: f64) -> f64;
    /// A time between 0 and 1, at random; nothing where there are no whole clients.
    fn luck(&mut self) -> Option<f64>;
    /// How many clients there may be at the end for the run to be over.
    fn nobody(&self) -> f64;
}

/// 2^20 ns, about a millisecond.
const SLOT_BITS: u32 = 20;

/// The size of the calendar: slots of how many bits, and how many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) slot_bits: u32,
    pub(crate) slots: u64,
}

/// Up to so many who come within a slot are let in one by one.
const FEW: f64 = 256.0;

/// The most numbers that the calendar may hold, unless attempts are many: then more, at a price.
const MOST_CELLS: u64 = 1 << 20;
const MOST_CELLS_OF_MANY: u64 = 1 << 24;
const MANY: usize = 256;

impl Grid {
    /// Slots fine enough for the shortest delay, and enough of them for the longest.
    pub(crate) fn new(service: &Service, levels: &Levels, spread: u64) -> Result<Grid, &'static str> {
        let window = match &service.arrivals {
            Arrivals::Herd { window, .. } => crate::time::nanos(*window),
            Arrivals::Open { .. } => 0,
        };
        let longest = levels.longest().saturating_add(round_trip(service)).max(window.saturating_add(spread));
        let shortest = levels.ranges.iter().map(|(low, width)| low.saturating_add(*width)).min().unwrap_or(longest);
        let mut slot_bits = SLOT_BITS;
        let most_cells = if levels.len() > MANY { MOST_CELLS_OF_MANY } else { MOST_CELLS };
        loop {
            let slots = (longest >> slot_bits).saturating_add(4).next_power_of_two();
            if slots.saturating_mul(levels.len() as u64) <= most_cells {
                return Ok(Grid { slot_bits, slots });
            }
            slot_bits += 1;
            if (shortest.saturating_add(round_trip(service))) >> slot_bits < 8 {
                return Err("its delays, from the shortest to the longest, do not fit into its calendar");
            }
        }
    }
}

pub(crate) fn round_trip(service: &Service) -> u64 {
    match service.network {
        Network::Constant(one_way) => 2 * crate::time::nanos(one_way).min(u64::MAX / 4),
        _ => 0,
    }
}

/// A server whose queue is a time: when its work will be done.
struct Server {
    period: f64,
    queue: f64,
    opens: f64,
    done_at: f64,
    /// Whole requests, or fractions.
    whole: bool,
}

impl Server {
    fn inside(&self, now: f64) -> f64 {
        let inside = ((self.done_at - now) / self.period).max(0.0);
        if self.whole { (inside - 1e-9).ceil() } else { inside }
    }

    fn free(&self, now: f64) -> f64 {
        if now < self.opens { 0.0 } else { (self.queue - self.inside(now)).max(0.0) }
    }
}

/// Runs a herd.
pub(crate) fn run<C: Clients>(task: &Task<'_>, levels: &Levels, grid: Grid, clients: C) -> Run {
    let Task { service, contender, limit, control, .. } = *task;
    let &Arrivals::Herd { clients: n, window } = &service.arrivals else { unreachable!("open arrivals were refused") };
    let capacity = service.capacity().expect("a server without capacity was refused");
    let opens = service.trouble_ends().unwrap_or(0);
    let back = (round_trip(service) / 2) as f64;
    let mut flow = Flow {
        levels,
        grid,
        server: Server {
            period: 1e9 / capacity,
            queue: service.server.queue.map_or(f64::INFINITY, |queue| queue as f64),
            opens: opens as f64,
            done_at: 0.0,
            whole: clients.floor(1.5) == 1.0,
        },
        round_trip: round_trip(service),
        back,
        tally: Tally::new(),
        atoms: BTreeMap::new(),
        outside: n as f64,
        here: vec![0.0; levels.len()],
        let_in: vec![0.0; levels.len()],
        clients,
    };
    let spread = crate::time::nanos(contender.policy.settings().spread);
    flow.begin(n as f64, back as u64, crate::time::nanos(window), spread);
    let stopped = flow.run(limit, control);
    let ideal_s = Ideal::of(service).and_then(|ideal| ideal.figure(Figure::DrainS));
    let mut run = flow.tally.finish(n, capacity, ideal_s, opens, levels.endless, stopped);
    if !window.is_zero() {
        // Nobody knows which client began when, so how long each has waited is not known.
        for wait in [Figure::P50S, Figure::P90S, Figure::P99S, Figure::MaxS] {
            run.figures = run.figures.without(wait);
        }
        run.plots.waits.clear();
    }
    run
}

struct Flow<'a, C> {
    clients: C,
    levels: &'a Levels,
    grid: Grid,
    server: Server,
    round_trip: u64,
    back: f64,
    tally: Tally,
    /// Clients that arrive at one and the same nanosecond, by level.
    atoms: BTreeMap<u64, Vec<f64>>,
    outside: f64,
    here: Vec<f64>,
    let_in: Vec<f64>,
}

impl<C: Clients> Flow<'_, C> {
    /// First attempts: all at once, or evenly over the window or the spread (over both, as if over their sum).
    fn begin(&mut self, clients: f64, out: u64, window: u64, spread: u64) {
        let over = window.saturating_add(spread);
        if over == 0 {
            let mut atom = vec![0.0; self.levels.len()];
            atom[0] = clients;
            self.atoms.insert(out, atom);
        } else {
            self.clients.send(0, 0, clients, self.slots(out), self.slots(over));
        }
    }

    fn slots(&self, nanos: u64) -> f64 {
        nanos as f64 / (1u64 << self.grid.slot_bits) as f64
    }

    fn run(&mut self, limit: u64, control: &Control) -> Option<String> {
        let mut quiet = 0;
        for slot in 0.. {
            let begins = slot << self.grid.slot_bits;
            if begins > limit {
                return Some(past(limit));
            }
            let before = self.tally.attempts;
            self.atoms_of(begins + (1 << self.grid.slot_bits));
            self.crowd_of(slot, begins);
            // A whole turn of the calendar without an arrival: what is left is rounding.
            quiet = if self.tally.attempts > before { 0 } else { quiet + 1 };
            if self.outside <= self.clients.nobody() || (quiet > self.grid.slots && self.atoms.is_empty()) {
                break;
            }
            if !control.tick((self.tally.attempts - before) as u64) {
                return Some(INTERRUPTED.to_owned());
            }
        }
        None
    }

    /// Those who arrive together before `until`.
    fn atoms_of(&mut self, until: u64) {
        while let Some(entry) = self.atoms.first_entry()
            && *entry.key() < until
        {
            let (now, here) = entry.remove_entry();
            self.here.copy_from_slice(&here);
            let free = self.server.free(now as f64);
            self.admit(now, free);
            self.refuse(now, |flow, level, clients, low, width| {
                let then = now.saturating_add(low);
                if width == 0 {
                    let levels = flow.levels.len();
                    flow.atoms.entry(then).or_insert_with(|| vec![0.0; levels])[level] += clients;
                } else {
                    let from = flow.slots(then) - flow.slots(now);
                    let slot = now >> flow.grid.slot_bits;
                    let within = flow.slots(now) - slot as f64;
                    flow.clients.send(slot, level, clients, within + from, flow.slots(width));
                }
            });
        }
    }

    /// Those who arrive some time within a slot.
    fn crowd_of(&mut self, slot: u64, begins: u64) {
        self.clients.take(slot, &mut self.here);
        let crowd: f64 = self.here.iter().sum();
        if crowd <= 0.0 {
            return;
        }
        let (now, end) = (begins as f64, (begins + (1 << self.grid.slot_bits)) as f64);
        if self.server.whole && crowd <= FEW && self.one_by_one(crowd as u64, now, end) {
            return self.resend(begins);
        }
        // Places that are free, and those that become free within the slot.
        let middle = f64::midpoint(now, end);
        let leaving = self.server.inside(now.max(self.server.opens)) - self.server.inside(end);
        let free = if middle < self.server.opens {
            0.0
        } else {
            self.server.free(now.max(self.server.opens)) + leaving.max(0.0)
        };
        // An empty server with work for less than the slot turns over its queue.
        let turnover = (end - now) / self.server.period;
        let free = if self.server.queue < turnover { free.max(turnover.min(crowd)) } else { free };
        self.admit(begins, free);
        self.resend(begins);
    }

    /// Those who were refused in the slot that begins here come again.
    fn resend(&mut self, begins: u64) {
        let slot = begins >> self.grid.slot_bits;
        self.refuse(begins, |flow, level, clients, low, width| {
            // Evenly over the slot they came from: a slot more of spread, or half a slot later.
            flow.clients.send(slot, level, clients, flow.slots(low), flow.slots(width).max(0.0));
        });
    }

    /// Lets in whom there is room for of a few, each at a moment of its own: what a short queue refuses depends on how they
    /// come within the slot, not only on how many. False if they are no whole clients.
    fn one_by_one(&mut self, crowd: u64, now: f64, end: f64) -> bool {
        let mut times = Vec::with_capacity(crowd as usize);
        for _ in 0..crowd {
            let Some(luck) = self.clients.luck() else { return false };
            times.push(now + luck * (end - now));
        }
        times.sort_by(f64::total_cmp);
        let mut places = 0.0;
        for time in times {
            if self.server.free(time) >= 1.0 {
                let starts = self.server.done_at.max(time);
                self.server.done_at = starts + self.server.period;
                self.tally.answered(starts + self.back, self.server.period, 1.0);
                places += 1.0;
            }
        }
        self.let_in_of(now as u64, crowd as f64, places);
        true
    }

    fn admit(&mut self, now: u64, free: f64) {
        let crowd: f64 = self.here.iter().sum();
        let places = self.clients.floor(free.min(crowd));
        if places > 0.0 {
            let starts = self.server.done_at.max(now as f64);
            self.server.done_at = starts + places * self.server.period;
            self.tally.answered(starts + self.back, self.server.period, places);
        }
        self.let_in_of(now, crowd, places);
    }

    /// Of the crowd so many were let in, and are on their way out.
    fn let_in_of(&mut self, now: u64, crowd: f64, places: f64) {
        self.let_in.fill(0.0);
        if places >= crowd {
            self.let_in.copy_from_slice(&self.here);
        } else if places > 0.0 {
            self.clients.choose(&self.here, places, &mut self.let_in);
        }
        let entered: f64 = self.let_in.iter().sum();
        self.tally.arrived(now, self.here[0], crowd - self.here[0], crowd - entered);
        if entered > 0.0 {
            self.outside -= entered;
            for (level, clients) in self.let_in.iter().enumerate() {
                if *clients > 0.0 {
                    self.tally.ended(*clients, level + 1);
                }
            }
        }
        for (here, entered) in self.here.iter_mut().zip(&self.let_in) {
            *here -= entered;
        }
    }

    /// Sends those who are left on their way, by level: `send(flow, next level, clients, least delay, width)`.
    fn refuse(&mut self, now: u64, mut send: impl FnMut(&mut Self, usize, f64, u64, u64)) {
        for level in 0..self.here.len() {
            let clients = self.here[level];
            if clients <= 0.0 {
                continue;
            }
            let last = self.levels.ranges.len().saturating_sub(1);
            match self.levels.ranges.get(level) {
                Some(&(low, width)) => {
                    send(self, level + 1, clients, low.saturating_add(self.round_trip), width);
                }
                None if self.levels.endless => {
                    let (low, width) = self.levels.ranges[last];
                    send(self, level, clients, low.saturating_add(self.round_trip), width);
                }
                None => {
                    self.outside -= clients;
                    self.tally.gave_up(now, clients, level + 1);
                }
            }
        }
    }
}
