//! From a scenario to its outcome: choosing the engine, running all seeds of all policies, and averaging.

pub(crate) mod plan;

use self::plan::Plan;
use crate::{
    engine::{
        bulk::{self, Count, Fluid},
        control::{Control, INTERRUPTED},
        draws::Draws,
        memory, parallel,
        task::Task,
    },
    outcome::{
        Extras, Figures, Ideal, Outcome, Plots, Record, Share,
        bands::{Bands, MOST_TRACES},
        run::{Kept, Run},
    },
    scenario::{Arrivals, Contender, Engine, Figure, Problem, Scenario, Service, World},
    world::{
        channel::{batch, ethernet, saturated, theory},
        layers, optimistic_writers,
        service::{self},
    },
};
use relent::Policy;
use std::{collections::BTreeMap, sync::atomic::Ordering, thread};

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
    scenario.check()?;
    let contenders = contenders(scenario);
    let plans = contenders.iter().map(|contender| plan::plan(scenario, contender)).collect::<Result<Vec<_>, _>>()?;
    let needed = check_memory(scenario, &plans, threads)?;
    let jobs = contenders.len() * scenario.seeds as usize;
    control.all_runs.store(jobs as u64, Ordering::Relaxed);
    // Seed by seed, so that who is interrupted has as many runs of each policy.
    let each = |job: usize| {
        let (seed, contender) = ((job / contenders.len()) as u32, job % contenders.len());
        let run = run_one(scenario, &contenders, &plans, contender, seed, control);
        control.done_runs.fetch_add(1, Ordering::Relaxed);
        run.keep(seed)
    };
    let kept = control.watched(needed, || parallel::begun(jobs, threads, control, each)).ok_or_else(|| {
        let problem = "this takes more memory than is free, more than could be reckoned before it started";
        Problem::new("clients", problem, "use fewer clients, fewer policies at a time, or fewer threads")
    })?;
    let mut runs: Vec<Vec<Option<Kept>>> = contenders.iter().map(|_| Vec::new()).collect();
    for (job, kept) in kept.into_iter().enumerate() {
        runs[job % contenders.len()].push(kept.map(|kept| *kept));
    }
    let extras = extras(scenario, &contenders, &runs);
    let records = contenders.iter().zip(&plans).zip(&runs);
    Ok(Outcome {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        ideal: ideal(scenario),
        records: records.map(|((contender, plan), runs)| record(contender, plan.engine(), runs)).collect(),
        extras,
        advice: None,
        interrupted: control.is_stopped(),
    })
}

fn run_one(
    scenario: &Scenario,
    contenders: &[Contender],
    plans: &[Plan],
    index: usize,
    seed: u32,
    control: &Control,
) -> Run {
    let draws = Draws::new(scenario.first_seed.wrapping_add(u64::from(seed)), scenario.forced);
    let limit = crate::time::nanos(scenario.limit);
    let contender = &contenders[index];
    match &scenario.world {
        World::Service(service) => {
            let task = Task { service, contender, draws, limit, control };
            match &plans[index] {
                Plan::Exact => service::run(&task),
                Plan::Count(levels, grid) => {
                    let clients = Count::new(draws.seed(), levels.len(), *grid);
                    bulk::run(&task, levels, *grid, clients)
                }
                Plan::Fluid(levels, grid) => bulk::run(&task, levels, *grid, Fluid::new(levels.len(), *grid)),
            }
        }
        World::OptimisticWriters(writers) => optimistic_writers::run(writers, contender, draws, limit, control),
        World::Layers(layers) => layers::run(layers, contender, draws, control),
        World::Batch(batch) => batch::run(batch, batch.windows[index], draws, control),
        World::Ethernet(world) => ethernet::run(world, contender, draws, limit, control),
        World::Saturated(world) => saturated::run(world, draws, control),
    }
}

/// The policies; where a world has rules of its own in their place, one contender a rule.
fn contenders(scenario: &Scenario) -> Vec<Contender> {
    let rule = |name: String| Contender::new(name, Policy::immediate());
    match &scenario.world {
        World::Batch(batch) => batch.windows.iter().map(|windows| rule(windows.name())).collect(),
        World::Saturated(saturated) => vec![rule(saturated.access.name())],
        _ => scenario.contenders.clone(),
    }
}

/// Numbers with what theory expects of them.
fn extras(scenario: &Scenario, contenders: &[Contender], runs: &[Vec<Option<Kept>>]) -> Extras {
    let mut extras = Extras::default();
    let runs_of = |contender: usize| runs[contender].iter().flatten().map(|kept| &kept.run);
    let mean = |contender: usize, figure: Figure| {
        let values: Vec<f64> = runs_of(contender).filter_map(|run| run.figures.get(figure)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    for (i, contender) in contenders.iter().enumerate() {
        let mut note = |what: &str, figure: Figure, expected: Option<f64>| {
            if let Some(measured) = mean(i, figure) {
                extras.checks.push((format!("{}: {what}", contender.name), measured, expected));
            }
        };
        match &scenario.world {
            World::Layers(layers) => {
                note("amplification", Figure::AttemptsPerClient, layers::expected(layers, &contender.policy));
            }
            World::Saturated(world) => {
                note("success_per_slot", Figure::SuccessPerSlot, Some(saturated::expected(world)));
            }
            World::Ethernet(world) if world.stations == 2 && !world.capture => {
                note("collisions", Figure::Collisions, Some(theory::two_station_collisions()));
            }
            _ => {}
        }
        let notes = noted(&scenario.world, runs_of(i)).into_iter();
        extras
            .checks
            .extend(notes.map(|(name, share, expected)| (format!("{}: {name}", contender.name), share, expected)));
    }
    if let World::Layers(layers) = &scenario.world {
        extras.layers = Some(layers.matrix());
    }
    extras
}

fn noted<'a>(world: &World, runs: impl Iterator<Item = &'a Run>) -> Vec<(String, f64, Option<f64>)> {
    let mut notes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut order = Vec::new();
    for (name, count, all) in runs.flat_map(|run| &run.notes) {
        let sum = notes.entry(name).or_insert_with(|| {
            order.push(name.as_str());
            (0, 0)
        });
        *sum = (sum.0 + count, sum.1 + all);
    }
    let share = |name: &&str| notes[name].0 as f64 / notes[name].1 as f64;
    let expected = |name: &str| match world {
        World::Ethernet(_) => ethernet::expected(name),
        World::Saturated(saturated) => saturated::noted(saturated, name),
        _ => None,
    };
    order.iter().map(|name| ((*name).to_owned(), share(name), expected(name))).collect()
}

/// What a run leaves behind, in bytes: its figures, twice while they are put in order, and how often clients tried.
const A_RESULT: u64 = 4096;
/// What is kept of a layer of a run, but for its name.
const A_NOTE: u64 = 128;
/// What the first run of a policy leaves behind, of which plots are drawn: load over time, waits, sampled clients; and their part of a page.
const A_PLOT: u64 = 650_000;
/// What is kept of each of the first runs of a policy, of which bands are drawn.
const A_TRACE: u64 = 12_000;

/// A run that would not fit is refused before it starts; the bytes that it needs, about.
pub(crate) fn check_memory(scenario: &Scenario, plans: &[Plan], threads: usize) -> Result<u64, Problem> {
    let jobs = plans.len() * scenario.seeds as usize;
    let most = plan::memory(scenario, plans);
    let at_work = threads.clamp(1, jobs.max(1)) as u64;
    let at_once = most.saturating_mul(at_work);
    let traces = u64::from(scenario.seeds.min(MOST_TRACES)).saturating_mul(A_TRACE);
    let drawn = (plans.len() as u64).saturating_mul(A_PLOT.saturating_add(traces));
    let populations: usize = scenario.contenders.iter().map(|contender| contender.populations.len()).sum();
    let drawn = drawn.saturating_add((populations as u64).saturating_mul(A_PLOT));
    let jobs_and_parts = jobs as u64 + populations as u64 * u64::from(scenario.seeds);
    // Each run says how often each of its layers tried, by name.
    let named = |contender: &Contender| contender.layers.iter().map(|layer| A_NOTE + layer.name.len() as u64).sum();
    let a_result = A_RESULT + scenario.contenders.iter().map(named).max().unwrap_or(0);
    let results = jobs_and_parts.saturating_mul(a_result).saturating_add(drawn);
    let needed = at_once.saturating_add(results);
    let reserved = plan::reserved(scenario, plans).saturating_mul(at_work).min(at_once);
    let addresses = memory::in_addresses(at_once - reserved, at_work).saturating_add(reserved).saturating_add(results);
    let of_addresses = memory::addresses().map(|left| (addresses, left, "addresses"));
    let of_memory = memory::free().map(|left| (needed, left, "memory"));
    let short = [of_memory, of_addresses].into_iter().flatten().find(|(needed, left, _)| needed > left);
    match short {
        Some((needed, free, what)) => {
            let gib = |bytes: u64, digits| format!("{:.digits$}", bytes as f64 / f64::from(1 << 30));
            let digits = if gib(needed, 1) == gib(free, 1) { 3 } else { 1 };
            let [needed, free] = [needed, free].map(|bytes| gib(bytes, digits));
            let problem = format!("this needs {needed} GiB of {what} and {free} GiB are free");
            let (key, hint) = match &scenario.world {
                _ if results > at_once && drawn > results / 2 => ("policy", "compare fewer policies at a time"),
                _ if results > at_once => ("seeds", "use fewer seeds"),
                World::Service(Service { arrivals: Arrivals::Herd { .. }, .. }) => match scenario.engine {
                    Some(_) => ("clients.count", "use the count or fluid engine, fewer clients, or fewer threads"),
                    // The others would have been chosen if they could model it.
                    None => ("clients.count", "use fewer clients, or fewer threads"),
                },
                World::Service(_) => ("clients.rate", "use a lower rate, a shorter time, or fewer threads"),
                _ => ("clients.count", "use fewer of them, or fewer threads"),
            };
            Err(Problem::new(key, problem, hint))
        }
        None => Ok(needed),
    }
}

fn ideal(scenario: &Scenario) -> Option<Ideal> {
    match &scenario.world {
        World::Service(service) => Ideal::of(service),
        _ => None,
    }
}

/// The runs of one policy as one record. Runs that were interrupted are left out; if there are no others, the first,
/// which went furthest, is all there is.
pub(crate) fn record(contender: &Contender, engine: Engine, runs: &[Option<Kept>]) -> Record {
    let whole = |kept: &&Kept| kept.run.stopped.as_deref() != Some(INTERRUPTED);
    let (done, cut): (Vec<&Kept>, Vec<&Kept>) = runs.iter().flatten().partition(whole);
    let kept = if done.is_empty() { cut.into_iter().take(1).collect() } else { done };
    let first = runs.iter().flatten().map(|kept| &kept.run.plots).find(|plots| **plots != Plots::default());
    let runs: Vec<&Run> = kept.iter().map(|kept| &kept.run).collect();
    let figures: Vec<Figures> = runs.iter().map(|run| run.figures).collect();
    let (mean, sd) = mean_and_sd(&figures);
    let yes = runs.iter().filter(|run| run.recovered == Some(true)).count() as u32;
    let of = runs.iter().filter(|run| run.recovered.is_some()).count() as u32;
    let clients: u64 = runs.iter().map(|run| run.clients).sum();
    Record {
        policy: contender.name.clone(),
        engine,
        clients: clients / (runs.len() as u64).max(1),
        seeds: runs.len() as u32,
        mean,
        sd,
        recovered: (of > 0).then_some(Share { yes, of }),
        gave_up: reasons(&runs),
        stopped: runs.iter().find_map(|run| run.stopped.clone()),
        plots: Plots { attempts: attempts(&runs), ..first.cloned().unwrap_or_default() },
        bands: Bands::of(kept.iter().filter_map(|kept| kept.trace.clone()).collect()),
        runs: figures,
        populations: populations(contender, engine, &kept),
    }
}

/// The populations of the runs, each as the record of a policy.
fn populations(contender: &Contender, engine: Engine, kept: &[&Kept]) -> Vec<Record> {
    let own = |(place, own): (usize, Contender)| {
        let of = |kept: &&Kept| kept.run.populations.get(place).map(|run| Kept { run: run.clone(), trace: None });
        record(&own, engine, &kept.iter().map(of).collect::<Vec<_>>())
    };
    let has_some = kept.iter().any(|kept| !kept.run.populations.is_empty());
    contender.apart().enumerate().filter(|_| has_some).map(own).collect()
}

/// How many clients of all runs were done after so many attempts.
fn attempts(runs: &[&Run]) -> Vec<u64> {
    let mut all = Vec::new();
    for attempts in runs.iter().map(|run| &run.plots.attempts) {
        if all.len() < attempts.len() {
            all.resize(attempts.len(), 0);
        }
        all.iter_mut().zip(attempts).for_each(|(sum, count)| *sum += count);
    }
    all
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
        // Counted from the first, so that runs which are all the same do not differ by rounding.
        let mean = values[0] + values.iter().map(|value| value - values[0]).sum::<f64>() / n;
        means = means.with(figure, mean);
        if values.len() > 1 {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            sds = sds.with(figure, (squares / (n - 1.0)).sqrt());
        }
    }
    (means, sds)
}
