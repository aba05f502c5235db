//! From a scenario to its outcome: choosing the engine, running all seeds of all policies, and averaging.

use crate::{
    calendar::Calendar,
    figure::{Figure, Figures},
    luck::Luck,
    outcome::{Engine, Extras, Ideal, Outcome, Plots, Record, Share},
    run::{Control, Run},
    scenario::{Contender, Problem, Scenario, Service, World},
    service::predict::{self, Task},
};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Runs a scenario on all cores.
///
/// # Errors
///
/// [`Problem`] if the scenario is impossible, or the engine asked for cannot model it.
pub fn simulate(scenario: &Scenario) -> Result<Outcome, Problem> {
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    simulate_with(scenario, threads, &Control::default())
}

/// Runs a scenario on so many threads, under somebody's control. The outcome does not depend on the threads.
///
/// # Errors
///
/// As [`simulate`].
pub fn simulate_with(scenario: &Scenario, threads: usize, control: &Control) -> Result<Outcome, Problem> {
    let jobs: Vec<(usize, u32)> = (0..scenario.contenders.len())
        .flat_map(|contender| (0..scenario.seeds).map(move |seed| (contender, seed)))
        .collect();
    control.all_runs.store(jobs.len() as u64, Ordering::Relaxed);
    let results: Vec<Mutex<Option<Run>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
            && !control.is_stopped()
        {
            let run = run_one(scenario, &scenario.contenders[job.0], job.1, control);
            control.done_runs.fetch_add(1, Ordering::Relaxed);
            let place = job.0 * scenario.seeds as usize + job.1 as usize;
            *results[place].lock().expect("no thread panics while it holds this") = Some(run);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let runs: Vec<Option<Run>> =
        results.into_iter().map(|run| run.into_inner().expect("no thread panics while it holds this")).collect();
    let records = scenario.contenders.iter().zip(runs.chunks(scenario.seeds as usize));
    Ok(Outcome {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        ideal: ideal(scenario),
        records: records.map(|(contender, runs)| record(contender, runs)).collect(),
        extras: Extras::default(),
        interrupted: control.is_stopped(),
    })
}

fn run_one(scenario: &Scenario, contender: &Contender, seed: u32, control: &Control) -> Run {
    let luck = Luck::new(scenario.first_seed.wrapping_add(u64::from(seed)), scenario.forced);
    match &scenario.world {
        World::Service(service) => {
            let task = Task { service, contender, luck, limit: crate::nanos(scenario.limit), control };
            predict::run(&task, Calendar::new())
        }
        _ => unreachable!(),
    }
}

fn ideal(scenario: &Scenario) -> Option<Ideal> {
    let World::Service(service) = &scenario.world else { return None };
    let capacity_per_s = service.capacity()?;
    let clients = service.arrivals.clients();
    let begins_s = begins(service);
    Some(Ideal { clients: clients as u64, capacity_per_s, drain_s: clients / capacity_per_s, begins_s })
}

fn begins(service: &Service) -> f64 {
    let first = service.troubles.iter().filter(|trouble| trouble.at.is_zero());
    first.map(|trouble| trouble.lasts.as_secs_f64()).fold(0.0, f64::max)
}

/// The runs of one policy as one record. Runs that were interrupted are left out.
fn record(contender: &Contender, runs: &[Option<Run>]) -> Record {
    let runs: Vec<&Run> = runs.iter().flatten().collect();
    let figures: Vec<Figures> = runs.iter().map(|run| run.figures).collect();
    let (mean, sd) = mean_and_sd(&figures);
    let yes = runs.iter().filter(|run| run.recovered == Some(true)).count() as u32;
    let of = runs.iter().filter(|run| run.recovered.is_some()).count() as u32;
    let clients: u64 = runs.iter().map(|run| run.clients).sum();
    Record {
        policy: contender.name.clone(),
        engine: Engine::Exact,
        clients: clients / (runs.len() as u64).max(1),
        seeds: runs.len() as u32,
        mean,
        sd,
        recovered: (of > 0).then_some(Share { yes, of }),
        gave_up: reasons(&runs),
        stopped: runs.iter().find_map(|run| run.stopped.clone()),
        plots: runs.first().map_or_else(Plots::default, |run| run.plots.clone()),
        runs: figures,
    }
}

fn reasons(runs: &[&Run]) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for (reason, count) in runs.iter().flat_map(|run| &run.gave_up) {
        *all.entry(*reason).or_default() += count;
    }
    all
}

fn mean_and_sd(runs: &[Figures]) -> (Figures, Figures) {
    let (mut means, mut sds) = (Figures::NONE, Figures::NONE);
    for figure in Figure::ALL {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(figure)).collect();
        if values.is_empty() {
            continue;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        means = means.with(figure, mean);
        if values.len() > 1 {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            sds = sds.with(figure, (squares / (n - 1.0)).sqrt());
        }
    }
    (means, sds)
}
