//! The map over base and cap: the same policy with others, by the fluid engine.

use super::Studio;
use crate::{
    engine::{
        bulk::{self, Fluid},
        draws::Draws,
        parallel,
        task::Task,
    },
    outcome::{Figures, Heat},
    scenario::{Arrivals, Contender, Engine, Figure, Scenario, Service},
    simulate::{
        check_memory,
        plan::{self, Plan},
    },
};
use relent::{Curve, Jitter, Policy, Settings};
use std::time::Duration;

/// The map's bases and caps: 1, 2, 5 of each power of ten, in milliseconds.
const MILLIS: [u64; 13] = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];
/// Runs that need more than this many times the ideal are off the map.
const OFF_THE_MAP: f64 = 20.0;
/// Below so many clients, expectations say little about what will happen.
const FEW: u64 = 1000;
/// The most steps of the fluid engine that a map may take without being asked for, in slots x levels.
const CHEAP: f64 = 2.5e9;

/// The map of one policy before it is drawn.
struct Sheet<'a> {
    studio: Studio<'a>,
    scenario: Scenario,
    service: &'a Service,
    contender: &'a Contender,
}

pub(super) fn is_cheap(studio: Studio<'_>) -> bool {
    let Some(sheet) = Sheet::new(&studio) else { return false };
    let work = |nth: usize| {
        let plan = sheet.policy(nth).and_then(|policy| sheet.plan(policy));
        plan.map_or(0.0, |(_, levels, grid)| {
            (crate::time::nanos(sheet.scenario.limit) >> grid.slot_bits) as f64 * levels.len() as f64
        })
    };
    sheet.service.arrivals.clients() >= FEW as f64 && (0..CELLS).map(work).sum::<f64>() <= CHEAP
}

pub(super) fn draw(studio: Studio<'_>) -> Option<Heat> {
    let sheet = Sheet::new(&studio)?;
    if sheet.is_too_large() {
        return None;
    }
    let cells = parallel::each(CELLS, studio.threads, studio.control, |nth| sheet.cell(nth));
    if studio.control.is_stopped() {
        return None;
    }
    let axis = || MILLIS.map(|ms| ms as f64 / 1e3).to_vec();
    let rows = |figure: Figure| {
        let cell = |cell: &Option<Option<Figures>>| (*cell)??.get(figure);
        cells.chunks(MILLIS.len()).map(|row| row.iter().map(cell).collect()).collect()
    };
    Some(Heat {
        policy: sheet.contender.name.clone(),
        base_s: axis(),
        cap_s: axis(),
        drain_over_ideal: rows(Figure::DrainOverIdeal),
        wasted_per_client: rows(Figure::WastedPerClient),
    })
}

const CELLS: usize = MILLIS.len() * MILLIS.len();

impl<'a> Sheet<'a> {
    /// The map of the policy with full jitter, or of the last one of which there can be one.
    fn new(studio: &'a Studio<'a>) -> Option<Sheet<'a>> {
        let service = studio.service()?;
        let Arrivals::Herd { clients, .. } = service.arrivals else { return None };
        let ideal = clients as f64 / service.capacity()?;
        let begins = service.trouble_ends().map_or(0.0, |end| end as f64 / 1e9);
        let limit = Duration::try_from_secs_f64(begins + ideal * OFF_THE_MAP).ok()?;
        let scenario = Scenario { engine: Some(Engine::Fluid), limit, ..studio.scenario.clone() };
        let contenders = &studio.scenario.contenders;
        let is_full = |contender: &&Contender| contender.policy.settings().jitter == Jitter::Full;
        let sheet = |contender| Sheet { studio: *studio, scenario: scenario.clone(), service, contender };
        let first = contenders.iter().filter(is_full).chain(contenders.iter().rev()).map(sheet);
        first.into_iter().find(|sheet| sheet.is_possible())
    }

    fn is_possible(&self) -> bool {
        let policy = self.contender.policy;
        varied(&policy, Duration::from_secs(1), Duration::from_secs(1)).is_some() && self.plan(policy).is_some()
    }

    /// The policy of a cell; none where the cap is shorter than the base.
    fn policy(&self, nth: usize) -> Option<Policy> {
        let (base, cap) = (MILLIS[nth % MILLIS.len()], MILLIS[nth / MILLIS.len()]);
        varied(&self.contender.policy, Duration::from_millis(base), Duration::from_millis(cap))
    }

    fn plan(&self, policy: Policy) -> Option<(Contender, bulk::Levels, bulk::Grid)> {
        let contender = Contender { policy, ..self.contender.clone() };
        match plan::plan(&self.scenario, &contender).ok()? {
            Plan::Fluid(levels, grid) => Some((contender, levels, grid)),
            _ => None,
        }
    }

    /// Whether the cells that are drawn at once take more memory than there is.
    fn is_too_large(&self) -> bool {
        let plans = (0..CELLS).filter_map(|nth| self.plan(self.policy(nth)?));
        let largest = plans.max_by_key(|(_, levels, grid)| grid.slots.saturating_mul(levels.len() as u64));
        let Some((contender, levels, grid)) = largest else { return false };
        let threads = self.studio.threads.clamp(1, CELLS);
        let scenario = Scenario { contenders: vec![contender], seeds: threads as u32, ..self.scenario.clone() };
        check_memory(&scenario, &[Plan::Fluid(levels, grid)], threads).is_err()
    }

    fn cell(&self, nth: usize) -> Option<Figures> {
        let (contender, levels, grid) = self.plan(self.policy(nth)?)?;
        let (service, control) = (self.service, self.studio.control);
        let (draws, limit) = (Draws::new(self.scenario.first_seed, None), crate::time::nanos(self.scenario.limit));
        let task = Task { service, contender: &contender, draws, limit, control };
        let run = bulk::run(&task, &levels, grid, Fluid::new(levels.len(), grid));
        run.stopped.is_none().then_some(run.figures)
    }
}

/// The policy with another base and cap, if it has a base that can grow.
fn varied(policy: &Policy, base: Duration, cap: Duration) -> Option<Policy> {
    let settings = policy.settings();
    let curve = match settings.curve {
        Curve::Exponential { factor, .. } => Curve::Exponential { base, factor },
        Curve::Linear { step, .. } => Curve::Linear { base, step },
        Curve::Fibonacci { .. } => Curve::Fibonacci { base },
        _ => return None,
    };
    Settings { curve, cap: Some(cap), ..settings }.policy().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::control::Control, scenario::World};

    #[test]
    fn a_map_has_holes_where_the_cap_is_below_the_base() {
        let mut service = Service::herd(100_000, 5000.0);
        service.server.queue = Some(5000);
        let full = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
        let scenario = Scenario::new("herd", World::Service(service))
            .policy("full", full)
            .policy("none", full.jitter(Jitter::None));
        let control = Control::default();
        let studio = |threads| Studio { scenario: &scenario, threads, control: &control };
        let heat = draw(studio(1)).unwrap();
        assert!(is_cheap(studio(1)));
        assert_eq!((heat.policy.as_str(), Some(&heat)), ("full", draw(studio(3)).as_ref()), "full jitter comes first");
        let at = |base_ms: u64, cap_ms: u64| {
            let place = |ms: u64| MILLIS.iter().position(|other| *other == ms).unwrap();
            heat.drain_over_ideal[place(cap_ms)][place(base_ms)]
        };
        assert_eq!(at(1000, 500), None);
        let (short, long) = (at(100, 10_000).unwrap(), at(100, 100_000).unwrap());
        assert!((short - 1.287).abs() < 0.02 && long > 2.0 * short, "{short} {long}");
    }
}
