//! What was measured beside what is simulated: as a table, as JSON, as a report.

use super::{Args, plan::Plan};
use crate::{
    breaks,
    escape::escape,
    report::percent,
    screen,
    simulate::{View, files, table},
    talk::{self, Fault},
};
use relent::duration::Human;
use relent_sim::{Control, Figure, Observed, Outcome, Record, Scenario, Seen, World, simulate_with};
use std::time::Duration;

/// What was seen of all herds, in the order of the contenders.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) seen: Vec<Vec<(Duration, Seen)>>,
    /// Why a herd was not watched to its end.
    pub(super) stopped: Vec<Option<String>>,
    /// How many attempts did not come through, and why the last did not.
    pub(super) broken: Vec<Option<(u64, String)>>,
    pub(super) is_interrupted: bool,
}

/// Whether measured and simulated are as alike as they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    Holds,
    Fails,
}

/// Shows what was measured, and the same herd simulated.
///
/// # Errors
///
/// A file cannot be written.
pub(super) fn tell(args: &Args, plan: &Plan, measured: Measured, round_trip: Duration) -> Result<Agreement, Fault> {
    let window = window(&measured);
    let scenario = plan.scenario(round_trip, window);
    let simulated = match plan.capacity.map(|_| simulate_with(&scenario, 1, &Control::default())) {
        None => None,
        Some(Ok(simulated)) => Some(simulated),
        Some(Err(problem)) => {
            args.hush.warn(format!("it cannot be simulated: {}; {}", problem.problem, problem.hint));
            None
        }
    };
    let measured = observed(&scenario, measured);
    let (both, outcome) = side_by_side(&scenario, &measured, simulated.as_ref());
    files::write_report(args.html.as_deref(), args.svg.as_deref(), &both, &outcome)?;
    let unlike = simulated.as_ref().and_then(|simulated| differ(&measured, simulated));
    let text = if args.json {
        let none = Outcome { records: Vec::new(), ..measured.clone() };
        measured.to_json_beside(simulated.as_ref().unwrap_or(&none))
    } else {
        let view = View { columns: screen::columns(), unicode: screen::unicode() };
        let mut text = breaks::wrap_named(&escape(&measured.title), view.columns.unwrap_or(usize::MAX));
        text.push('\n');
        text.push_str(&table(&measured, simulated.as_ref(), view));
        text.push('\n');
        text.push_str(&words(&measured, simulated.as_ref(), unlike.as_ref(), (round_trip, window), view));
        text
    };
    let write_out = if measured.interrupted { talk::write_out_at_once } else { talk::write_out };
    write_out(breaks::answer(&text, args.json).as_bytes())?;
    Ok(agreement(args, unlike))
}

/// How long it took until every client of a herd had arrived for the first time: no machine has two thousand clients at one
/// moment. The mean of the herds.
fn window(measured: &Measured) -> Duration {
    let last = |seen: &Vec<(Duration, Seen)>| {
        let firsts = seen.iter().filter(|(_, seen)| matches!(seen, Seen::Arrived { failures: 0, .. }));
        firsts.map(|(at, _)| *at).max().unwrap_or_default()
    };
    let herds = u32::try_from(measured.seen.len()).unwrap_or(u32::MAX).max(1);
    let mean = measured.seen.iter().map(last).sum::<Duration>() / herds;
    Duration::from_millis(u64::try_from(mean.as_millis()).unwrap_or(u64::MAX))
}

/// What matters of a herd, measured to the left and simulated to the right.
fn table(measured: &Outcome, simulated: Option<&Outcome>, view: View) -> String {
    const SHOWN: [(Figure, &str); 3] =
        [(Figure::SuccessShare, "connected"), (Figure::AttemptsPerClient, "attempts"), (Figure::DrainS, "drain s")];
    let sides = if simulated.is_some() { 2 } else { 1 };
    let said = |figure: Figure, value: Option<f64>| match (figure, value) {
        (_, None) => "-".to_owned(),
        (Figure::SuccessShare, Some(share)) => percent(share),
        (_, Some(value)) => table::number(value),
    };
    let mut header = vec!["policy".to_owned()];
    header.extend(SHOWN.iter().map(|(_, title)| (*title).to_owned()));
    if sides == 2 {
        let titles = ["simulated"].into_iter().chain(SHOWN.iter().skip(1).map(|(_, title)| *title));
        header.extend(titles.map(str::to_owned));
    }
    let mut rows = vec![header];
    if let Some(ideal) = &measured.ideal {
        let cells: Vec<String> = SHOWN.iter().map(|(figure, _)| said(*figure, ideal.figure(*figure))).collect();
        rows.push(std::iter::once("ideal".to_owned()).chain((0..sides).flat_map(|_| cells.clone())).collect());
    }
    for (place, record) in measured.records.iter().enumerate() {
        let mut row = vec![escape(&record.policy).into_owned()];
        let twin = simulated.and_then(|simulated| simulated.records.get(place));
        for record in std::iter::once(record).chain(twin) {
            row.extend(SHOWN.iter().map(|(figure, _)| said(*figure, record.get(*figure))));
        }
        rows.push(row);
    }
    table::aligned(&rows, view.columns.unwrap_or(usize::MAX))
}

/// What was seen, as the records of a scenario.
fn observed(scenario: &Scenario, measured: Measured) -> Outcome {
    let World::Service(service) = &scenario.world else { return Outcome::observed(scenario, Vec::new(), true) };
    let clients = service.arrivals.clients() as u64;
    let mut stopped = measured.stopped.into_iter();
    let herds = measured.seen.into_iter().zip(&scenario.contenders);
    let records = herds.map(|(mut seen, contender)| {
        // Two threads tell; each in its order.
        seen.sort_by_key(|(at, _)| *at);
        let mut observed = Observed::new(clients);
        seen.into_iter().for_each(|(at, seen)| observed.see(at, seen));
        observed.record(service, contender, stopped.next().flatten())
    });
    Outcome::observed(scenario, records.collect(), measured.is_interrupted)
}

/// A scenario and an outcome in which each policy stands beside its simulated twin.
fn side_by_side(scenario: &Scenario, measured: &Outcome, simulated: Option<&Outcome>) -> (Scenario, Outcome) {
    let (mut both, mut outcome) = (scenario.clone(), measured.clone());
    let Some(simulated) = simulated else { return (both, outcome) };
    both.contenders.clear();
    outcome.records.clear();
    let pairs = measured.records.iter().zip(&simulated.records).zip(&scenario.contenders);
    for ((real, twin), contender) in pairs {
        let name = format!("{}, simulated", contender.name);
        both.contenders.extend([contender.clone(), relent_sim::Contender { name: name.clone(), ..contender.clone() }]);
        outcome.records.extend([real.clone(), Record { policy: name, ..twin.clone() }]);
    }
    (both, outcome)
}

/// The greatest difference between measured and simulated: its share, whose, and of what.
#[derive(Clone, Debug)]
struct Unlike {
    share: f64,
    policy: String,
    what: &'static str,
}

/// Compared are the time to drain, where both have drained, and the attempts.
fn differ(measured: &Outcome, simulated: &Outcome) -> Option<Unlike> {
    let compared = [(Figure::DrainS, "the time to drain"), (Figure::AttemptsPerClient, "attempts")];
    let pairs = measured.records.iter().zip(&simulated.records);
    let all = pairs.flat_map(|(real, twin)| {
        compared.into_iter().filter_map(|(figure, what)| {
            let (real_value, twin_value) = (real.get(figure)?, twin.get(figure)?);
            let share = (real_value / twin_value - 1.0).abs();
            share.is_finite().then(|| Unlike { share, policy: real.policy.clone(), what })
        })
    });
    all.max_by(|a, b| a.share.total_cmp(&b.share))
}

fn agreement(args: &Args, unlike: Option<Unlike>) -> Agreement {
    match (args.agree, unlike) {
        (Some(most), Some(unlike)) if unlike.share > most => {
            let problem = format!(
                "measured and simulated differ by {:.1} % in {} of {}, and --agree allows {:.1} %",
                100.0 * unlike.share,
                unlike.what,
                unlike.policy,
                100.0 * most
            );
            let hint = "on a machine that is busy with other things clients and server are late; try when it is idle";
            let _ = Fault::new(problem).hint(hint).tell();
            Agreement::Fails
        }
        (Some(_), None) => {
            let _ = Fault::new("--agree: there is nothing to compare")
                .hint("--capacity and --queue say what a --target is like")
                .tell();
            Agreement::Fails
        }
        _ => Agreement::Holds,
    }
}

/// What the numbers are, and how far they are apart.
fn words(
    measured: &Outcome,
    simulated: Option<&Outcome>,
    unlike: Option<&Unlike>,
    (round_trip, window): (Duration, Duration),
    view: View,
) -> String {
    let width = view.columns.unwrap_or(usize::MAX);
    let named = |line: String| breaks::wrap_named(&escape(&line), width);
    let mut text = String::new();
    for record in &measured.records {
        if let (Some(why), Some(share)) = (&record.stopped, record.get(Figure::SuccessShare)) {
            let percent = 100.0 * share;
            text +=
                &named(format!("{}: {why}, and {percent:.0} % of its clients were connected by then.", record.policy));
        }
    }
    let micros = Duration::from_micros(u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX));
    let of_numbers = match simulated {
        None => "Not simulated: of a server that is not the storm's own, --capacity and --queue say what it is like."
            .to_owned(),
        Some(_) => format!(
            "Measured on loopback with real sockets; simulated by the exact engine with the same seeds, and with the round \
             trip of {} and the rush of {} that were measured.",
            Human(micros),
            Human(window)
        ),
    };
    text += &breaks::wrap(&of_numbers, width);
    if let Some(unlike) = unlike {
        let share = 100.0 * unlike.share;
        text += &named(format!("They differ by {share:.1} % at most, in {} of {}.", unlike.what, unlike.policy));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{Policy, Verdict};
    use relent_sim::{Contender, Engine, Service};

    fn scenario() -> Scenario {
        Scenario::new("storm", World::Service(Service::herd(2, 100.0)))
            .contender(Contender::new("a", Policy::default()))
    }

    fn measured() -> Measured {
        let ms = Duration::from_millis;
        let seen = vec![
            (ms(11), Seen::Connected { attempts: 1 }),
            (ms(0), Seen::Arrived { client: 0, failures: 0 }),
            (ms(0), Seen::Arrived { client: 1, failures: 0 }),
            (ms(0), Seen::Refused(Verdict::Transient)),
            (ms(10), Seen::Served),
            (ms(50), Seen::Arrived { client: 1, failures: 1 }),
            (ms(60), Seen::Served),
            (ms(61), Seen::Connected { attempts: 2 }),
        ];
        Measured { seen: vec![seen], stopped: vec![None], broken: vec![None], is_interrupted: false }
    }

    #[test]
    fn what_was_seen_has_the_figures_of_the_simulator() {
        let outcome = observed(&scenario(), measured());
        let record = &outcome.records[0];
        assert_eq!(record.engine, Engine::Real);
        assert_eq!(record.get(Figure::AttemptsPerClient), Some(1.5));
        assert_eq!(record.get(Figure::DrainS), Some(0.061));
        assert_eq!(record.get(Figure::SuccessShare), Some(1.0));
        let json = outcome.to_json_beside(&outcome);
        assert!(json.contains("\"engine\": \"real\"") && json.contains("\"simulated\": {\"scenario\""), "{json}");
    }

    #[test]
    fn the_greatest_difference_is_told() {
        let scenario = scenario();
        let (real, twin) = (observed(&scenario, measured()), simulate_with(&scenario, 1, &Control::default()).unwrap());
        let unlike = differ(&real, &twin).unwrap();
        assert_eq!((unlike.what, unlike.policy.as_str()), ("the time to drain", "a"));
        let (both, outcome) = side_by_side(&scenario, &real, Some(&twin));
        let names: Vec<&str> = outcome.records.iter().map(|record| record.policy.as_str()).collect();
        assert_eq!(names, ["a", "a, simulated"]);
        assert_eq!(both.contenders.len(), 2);
        assert!(differ(&real, &real).unwrap().share < 1e-12);
    }

    #[test]
    fn who_was_cut_short_has_not_drained() {
        let mut measured = measured();
        measured.stopped = vec![Some("it was watched for 1s".to_owned())];
        measured.seen[0].pop();
        let outcome = observed(&scenario(), measured);
        assert_eq!(outcome.records[0].get(Figure::DrainS), None);
        let text =
            words(&outcome, None, None, (Duration::ZERO, Duration::ZERO), View { columns: Some(80), unicode: true });
        assert!(
            text.starts_with("a: it was watched for 1s, and 50 % of its clients were connected by then.\n"),
            "{text}"
        );
        // What is in a name begins no line, wherever that is broken.
        let mut forged = outcome;
        let name = format!("p\nerror: forged {} error: forged", "a".repeat(50));
        forged.records[0].policy.clone_from(&name);
        let unlike = Unlike { share: 0.1, what: "the time to drain", policy: name };
        let view = View { columns: Some(80), unicode: true };
        let text = words(&forged, None, Some(&unlike), (Duration::ZERO, Duration::ZERO), view);
        assert!(text.contains("They differ") && !text.lines().any(|line| line.starts_with("error")), "{text}");
    }
}
