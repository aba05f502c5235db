//! What the numbers mean: for each policy a verdict and the reasons, in words; and the one sentence on top.
//!
//! The words come from the figures alone, by fixed rules, so that the same numbers always read the same.

use super::{
    advice,
    words::{count, percent, seconds},
};
use relent_sim::{Figure, Outcome, Record, Scenario, World};
use std::{collections::BTreeMap, fmt::Write};

/// How a policy does, roughly. It only chooses a colour; the words say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    /// There is nothing to compare with.
    Plain,
    Good,
    Fair,
    Bad,
}

impl Tone {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Good => "good",
            Tone::Fair => "fair",
            Tone::Bad => "bad",
        }
    }
}

/// What is to be said about one policy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub(super) tone: Tone,
    /// The verdict, in a few words.
    pub(super) label: String,
    /// Why, in sentences; the weightiest first.
    pub(super) why: Vec<String>,
}

/// Retries are in step if they share their millisecond with this share of the clients.
const IN_STEP: f64 = 0.1;
/// Or if they come in stripes: in a tenth of a second with this share of the clients, and with so many times the load of
/// the four seconds around it. A network that delays each message by another time blurs milliseconds, but not stripes.
const STRIPE: f64 = 0.03;
const STRIPE_OVER: f64 = 3.0;
const AROUND: i64 = 20;

/// What a policy costs and how long it takes, where the scenario has both: the axes on which policies are compared.
pub(super) fn axes(outcome: &Outcome) -> Option<(Figure, Figure)> {
    let has = |figure: &Figure| outcome.records.iter().any(|record| record.get(*figure).is_some());
    let cost = [Figure::Calls, Figure::AttemptsPerPacket, Figure::AttemptsPerClient];
    let time = [Figure::TimeMs, Figure::MakespanOverN, Figure::DrainS, Figure::RecoveryS, Figure::P99S];
    Some((cost.into_iter().find(has)?, time.into_iter().find(has)?))
}

/// What an axis measures, in words.
pub(super) const fn in_words(figure: Figure) -> &'static str {
    match figure {
        Figure::AttemptsPerClient => "attempts a client",
        Figure::AttemptsPerPacket => "transmissions a packet",
        Figure::Calls => "calls",
        Figure::TimeMs => "time until all are done (ms)",
        Figure::MakespanOverN => "slots a packet",
        Figure::DrainS => "time until the last is connected",
        Figure::RecoveryS => "time to heal",
        Figure::P99S => "99 % wait no longer",
        other => other.title(),
    }
}

/// A finding a policy, in order.
pub(super) fn findings(scenario: &Scenario, outcome: &Outcome) -> Vec<Finding> {
    let find = |(place, record): (usize, &Record)| match &scenario.world {
        World::Service(service) if service.is_open() => stream(scenario, outcome, place),
        World::Service(_) => herd(scenario, record, outcome),
        World::Layers(layers) => chain(record, layers.say_overloaded),
        _ => contest(record, outcome),
    };
    outcome.records.iter().enumerate().map(find).collect()
}

/// The sentence on top: who hurts, who does not, and by how much.
pub(super) fn headline(outcome: &Outcome, findings: &[Finding]) -> String {
    let rank = |place: &usize| {
        let record = &outcome.records[*place];
        let figure = |figure: Figure| record.get(figure).unwrap_or(1.0);
        let (cost, time) =
            axes(outcome).map_or((figure(Figure::AttemptsPerClient), 1.0), |(cost, time)| (figure(cost), figure(time)));
        (findings[*place].tone, cost * time)
    };
    let order = |a: &usize, b: &usize| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    // Populations are no choice: it is all clients together that are compared.
    let is_part = |place: &usize| {
        let mut parts = outcome.records.iter().flat_map(|record| &record.populations);
        parts.any(|part| part.policy == outcome.records[*place].policy)
    };
    let places = || (0..findings.len().min(outcome.records.len())).filter(|place| !is_part(place));
    let (Some(best), Some(worst)) = (places().min_by(order), places().max_by(order)) else {
        return "Nothing was simulated.".into();
    };
    let name = |place: usize| &outcome.records[place].policy;
    if best == worst {
        return format!("{}: {}.", name(best), findings[best].label);
    }
    let verb = if findings[worst].tone == Tone::Bad { "hurts most" } else { "does worst" };
    let mut words = format!("{} {verb}: {}.", name(worst), findings[worst].label);
    for why in findings[worst].why.iter().take(if findings[worst].tone == Tone::Bad { 2 } else { 0 }) {
        words.push(' ');
        words.push_str(why);
    }
    // Who is best in one thing is not always best in both.
    let does_best =
        if findings[best].label.ends_with(" the best") { "does best in both together" } else { "does best" };
    let _ = write!(words, " {} {does_best}: {}.", name(best), findings[best].label);
    if let Some(times) = times_of(&outcome.records[worst], &outcome.records[best], outcome) {
        let _ = write!(words, " {} needs {times}.", name(worst));
    }
    words
}

/// How much less the better of two takes; nothing where the worse is soon done because it loses clients.
fn times_of(worse: &Record, better: &Record, outcome: &Outcome) -> Option<String> {
    let (cost, time) = axes(outcome)?;
    if time == Figure::DrainS && worse.get(Figure::GaveUp)? > better.get(Figure::GaveUp)? {
        return None;
    }
    let ratio = |figure: Figure| Some(worse.get(figure)? / better.get(figure)?).filter(|ratio| ratio.is_finite());
    let (cost_ratio, time_ratio) = (ratio(cost)?, ratio(time)?);
    let unit = |figure: Figure| match figure {
        Figure::Calls => "calls",
        Figure::AttemptsPerPacket => "transmissions",
        _ => "attempts",
    };
    let part = |ratio: f64, what: &str| match ratio {
        r if r > 1.05 => format!("{} times its {what}", count(r)),
        r if r < 0.95 => format!("{} of its {what}", percent(r)),
        _ => format!("about its {what}"),
    };
    let (time, cost) = (part(time_ratio, "time"), part(cost_ratio, unit(cost)));
    Some(format!("{time} and {cost}"))
}

fn herd(scenario: &Scenario, record: &Record, outcome: &Outcome) -> Finding {
    let get = |figure: Figure| record.get(figure);
    let lost = get(Figure::GaveUp).unwrap_or(0.0) / (record.clients.max(1) as f64);
    let ideal = outcome.ideal.and_then(|ideal| ideal.figure(Figure::DrainOverIdeal)).unwrap_or(1.0);
    let over = get(Figure::DrainOverIdeal).map(|over| over / ideal);
    let step = in_step(record);
    let mut finding = match over {
        _ if record.stopped.is_some() => Finding::new(Tone::Bad, "does not come to an end"),
        _ if lost > 0.001 => Finding::new(Tone::Bad, format!("loses {} of its clients", percent(lost))),
        Some(over) if over > 3.0 => Finding::new(Tone::Bad, format!("{} times as long as it need take", count(over))),
        Some(over) if over > 1.5 => Finding::new(Tone::Fair, format!("takes {} times the ideal", count(over))),
        Some(_) if step > 0.5 => Finding::new(Tone::Fair, "quick, but everybody calls at once"),
        Some(over) if over > 1.1 => Finding::new(Tone::Good, format!("takes {} times the ideal", count(over))),
        Some(_) => Finding::new(Tone::Good, "as quick as can be"),
        None => {
            let tone = if step > 0.5 { Tone::Fair } else { Tone::Good };
            Finding::new(tone, format!("drained in {}", seconds(get(Figure::DrainS).unwrap_or(0.0))))
        }
    };
    let why = &mut finding.why;
    why.extend(advice::verdict(scenario, record, None).map(|verdict| recovery(&verdict, record)));
    why.extend(record.stopped.clone().map(|stopped| format!("The run was stopped: {stopped}.")));
    if lost > 0.001 {
        why.push(format!("{} gave up ({}).", many(get(Figure::GaveUp).unwrap_or(0.0), "client"), reasons(record)));
    }
    if step > 0.5 {
        why.push(format!(
            "They come back in step: {} of the retries come in rushes that many clients share, with quiet between.",
            percent(step)
        ));
    }
    if let Some(busy) = get(Figure::Utilisation).filter(|busy| *busy < 0.6 && over.is_some_and(|over| over > 1.3)) {
        why.push(format!("The server is idle {} of the time while clients wait.", percent(1.0 - busy)));
    }
    if let (Some(peak), Some(times)) = (get(Figure::Peak100Ms), get(Figure::PeakOverCapacity))
        && times > 2.0
    {
        let peak = count(peak);
        let times = count(times);
        why.push(format!("In the worst tenth of a second {peak} attempts arrive: {times} times the capacity."));
    }
    if let Some(wasted) = get(Figure::WastedPerClient) {
        why.push(match wasted {
            w if w < 0.05 => "Hardly an attempt is wasted.".into(),
            w => format!("A client makes {} attempts, {} of them in vain.", count(w + 1.0 - lost), count(w)),
        });
    }
    finding
}

fn stream(scenario: &Scenario, outcome: &Outcome, place: usize) -> Finding {
    let record = &outcome.records[place];
    let safety = outcome.advice.as_ref().and_then(|advice| advice.policies.get(place));
    let get = |figure: Figure| record.get(figure);
    let (Some(share), Some(load)) = (get(Figure::GoodputShare), get(Figure::Load)) else { return over_before(record) };
    let tone = match record.recovered {
        Some(runs) if runs.yes < runs.of => Tone::Bad,
        None if share <= 0.9 => Tone::Bad,
        _ if get(Figure::RecoveryS).is_some_and(|after| after > 60.0) => Tone::Fair,
        // Who loses calls on the way is not all right, even if all is well in the end.
        _ if get(Figure::GaveUpShare).unwrap_or(0.0) >= 0.01 => Tone::Fair,
        _ => Tone::Good,
    };
    let verdict = advice::verdict(scenario, record, safety);
    let mut finding = Finding::new(tone, verdict.unwrap_or_else(|| format!("{} of the calls succeed", percent(share))));
    let why = &mut finding.why;
    if finding.tone == Tone::Bad {
        why.push(format!("In the end {} of the calls succeed.", percent(share)));
    }
    if load > 1.05 {
        let hedges = scenario.contenders.get(place).is_some_and(|contender| contender.protection.hedge.is_some());
        let sustained = match (finding.tone == Tone::Bad, hedges) {
            (true, false) => " The retries alone keep the server overloaded.",
            (true, true) => " Retries and hedges alone keep the server overloaded.",
            (false, _) => "",
        };
        why.push(format!("In the end the server gets {} attempts for each call.{sustained}", count(load)));
    } else {
        why.push("In the end each call is one attempt.".into());
    }
    // What stands in the table is of the whole run.
    if let Some(attempts) = get(Figure::AttemptsPerClient).filter(|attempts| (attempts / load - 1.0).abs() > 0.05) {
        why.push(format!("Over the whole time a call makes {} attempts.", count(attempts)));
    }
    why.extend(account(record));
    if let Some(runs) = record.recovered.filter(|runs| runs.of > 1) {
        let (low, high) = runs.wilson();
        why.push(format!(
            "It recovered in {} of {} runs: with 95 % confidence, the probability lies between {} and {}.",
            runs.yes,
            runs.of,
            percent(low),
            percent(high)
        ));
    }
    why.extend(safety.into_iter().flat_map(|safety| advice::safety(scenario, record, safety)));
    finding
}

/// A population whose calls are over before the run is: of the end there is nothing to say.
fn over_before(record: &Record) -> Finding {
    let get = |figure: Figure| record.get(figure).unwrap_or(0.0);
    let success = get(Figure::SuccessShare);
    let tone = if success < 0.99 { Tone::Bad } else { Tone::Good };
    let label = match success {
        1.0 => "all of its calls succeed".to_owned(),
        share => format!("{} of its calls succeed", percent(share)),
    };
    let mut finding = Finding::new(tone, label);
    finding.why.push(match count(get(Figure::AttemptsPerClient)).as_str() {
        "1" => "Its calls make one attempt each.".to_owned(),
        attempts => format!("A call makes {attempts} attempts."),
    });
    if let Some(longest) = record.get(Figure::P99S) {
        finding.why.push(format!("99 % of its calls take no longer than {}.", seconds(longest)));
    }
    finding.why.extend(account(record));
    finding
}

/// What became of all calls, where not all succeeded.
fn account(record: &Record) -> Option<String> {
    let get = |figure: Figure| record.get(figure).unwrap_or(0.0);
    let (gave_up, trying) = (get(Figure::GaveUpShare), get(Figure::StillTrying));
    if gave_up + trying < 0.001 {
        return None;
    }
    let trying =
        if trying > 0.0 { format!(", {} are still tried when it ends", percent(trying)) } else { String::new() };
    Some(format!(
        "Over the whole time {} of the calls succeed, {} are given up{trying}.",
        percent(get(Figure::SuccessShare)),
        percent(gave_up)
    ))
}

/// A herd's verdict as a sentence, with the runs it comes from.
fn recovery(verdict: &str, record: &Record) -> String {
    let runs = advice::confidence(record).map_or_else(String::new, |runs| format!(" ({runs})"));
    sentence(&format!("It {verdict}{runs}"))
}

fn chain(record: &Record, say_overloaded: bool) -> Finding {
    let attempts = record.get(Figure::AttemptsPerClient).unwrap_or(1.0);
    let tone = match attempts {
        a if a <= 2.0 => Tone::Good,
        a if a <= 5.0 => Tone::Fair,
        _ => Tone::Bad,
    };
    let mut finding = Finding::new(tone, format!("{} attempts at the bottom for one call", count(attempts)));
    if let Some(success) = record.get(Figure::SuccessShare) {
        finding.why.push(format!("{} of the calls succeed in the end.", percent(success)));
    }
    if say_overloaded {
        finding.why.push("Layers do not multiply: who is told \"overloaded, do not retry\" does not.".into());
    } else if tone != Tone::Good {
        finding.why.push("Layers multiply: each retries what the layer below has retried already.".into());
    }
    finding
}

/// Where only the others can say what is much: in units of the best.
fn contest(record: &Record, outcome: &Outcome) -> Finding {
    let Some((cost, time)) = axes(outcome) else {
        let slots = record.get(Figure::SuccessPerSlot).unwrap_or(0.0);
        return Finding::new(Tone::Plain, format!("{} of the slots carry a success", percent(slots)));
    };
    let over = |figure: Figure| {
        let best = outcome.records.iter().filter_map(|record| record.get(figure)).fold(f64::INFINITY, f64::min);
        record.get(figure).map_or(1.0, |value| value / best.max(f64::MIN_POSITIVE))
    };
    let (cost_over, time_over) = (over(cost), over(time));
    if outcome.records.len() == 1 {
        let words = |figure: Figure| format!("{} {}", count(record.get(figure).unwrap_or(0.0)), in_words(figure));
        return Finding::new(Tone::Plain, format!("{}, {}", words(cost), words(time)));
    }
    let what = if cost == Figure::Calls { "calls" } else { "attempts" };
    let tone = match cost_over.max(time_over / 2.0) {
        much if much > 2.0 => Tone::Bad,
        much if much > 1.5 => Tone::Fair,
        _ => Tone::Good,
    };
    let part = |over: f64, least: &str, what: &str| match over {
        o if o < 1.001 => least.to_owned(),
        o if o < 1.05 => format!("hardly more {what} than the best"),
        o => format!("{} times the {what} of the best", count(o)),
    };
    let (cost_words, time_words) =
        (part(cost_over, &format!("the fewest {what}"), what), part(time_over, "the first to be done", "time"));
    let mut finding = Finding::new(tone, cost_words.clone());
    if time_over > cost_over && time_over > 1.5 && tone != Tone::Good {
        finding.label.clone_from(&time_words);
        finding.why.push(sentence(&cost_words));
    } else {
        finding.why.push(sentence(&time_words));
    }
    finding
}

impl Finding {
    fn new(tone: Tone, label: impl Into<String>) -> Finding {
        Finding { tone, label: label.into(), why: Vec::new() }
    }
}

fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

/// So many of something: "1 client", "2 clients".
fn many(number: f64, what: &str) -> String {
    if number == 1.0 { format!("1 {what}") } else { format!("{} {what}s", count(number)) }
}

fn reasons(record: &Record) -> String {
    record.gave_up.keys().map(|reason| format!("reason: {reason}")).collect::<Vec<_>>().join(", ")
}

/// The share of the sampled clients' retries that come together with many others, with less before and after.
fn in_step(record: &Record) -> f64 {
    let counted = |per_s: f64| {
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for at in record.plots.raster.iter().flat_map(|client| client.iter().skip(1)) {
            *counts.entry((at * per_s) as i64).or_default() += 1;
        }
        counts
    };
    let clients = record.plots.raster.len() as f64;
    let (per_ms, per_tenth) = (counted(1000.0), counted(10.0));
    let all: u64 = per_ms.values().sum();
    let many = (clients * IN_STEP).max(3.0);
    let together: u64 = per_ms.values().filter(|count| **count as f64 >= many).sum();
    let stripes: u64 = per_tenth
        .iter()
        .filter(|(at, count)| is_stripe(&per_tenth, **at, **count, clients))
        .map(|(_, count)| count)
        .sum();
    if all == 0 { 0.0 } else { together.max(stripes) as f64 / all as f64 }
}

/// Whether a tenth of a second stands out from the seconds around it.
fn is_stripe(per_tenth: &BTreeMap<i64, u64>, at: i64, count: u64, clients: f64) -> bool {
    // Before the first retry and after the last there is no quiet that would make anything stand out.
    let (first, last) = (per_tenth.keys().next().copied(), per_tenth.keys().next_back().copied());
    let from = (at - AROUND).max(first.unwrap_or(at));
    let to = (at + AROUND).min(last.unwrap_or(at));
    let around: u64 = per_tenth.range(from..=to).map(|(_, count)| count).sum();
    let mean = around as f64 / (to - from + 1) as f64;
    count as f64 >= (clients * STRIPE).max(3.0) && count as f64 >= STRIPE_OVER * mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{Jitter, Policy};
    use relent_sim::{Arrivals, Contender, Layers, Network, Population, Rate, Service, presets, simulate};
    use std::time::Duration;

    fn herd() -> (Scenario, Outcome) {
        let mut service = Service::herd(2000, 100.0);
        service.server.queue = Some(100);
        let policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
        let scenario = Scenario::new("herd", World::Service(service))
            .policy("none", policy.jitter(Jitter::None))
            .policy("full", policy.jitter(Jitter::Full))
            .policy("constant", Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).unlimited_attempts())
            .policy("short", policy.jitter(Jitter::None).max_attempts(4));
        let outcome = simulate(&scenario).unwrap();
        (scenario, outcome)
    }

    #[test]
    fn a_herd_is_judged_by_time_waves_and_losses() {
        let (scenario, outcome) = herd();
        let findings = findings(&scenario, &outcome);
        let labels: Vec<&str> = findings.iter().map(|finding| finding.label.as_str()).collect();
        assert_eq!(labels[0], "8.17 times as long as it need take");
        assert_eq!((findings[0].tone, findings[1].tone), (Tone::Bad, Tone::Good));
        assert!(findings[0].why.iter().any(|why| why == "The server is idle 88 % of the time while clients wait."));
        assert_eq!(labels[2], "quick, but everybody calls at once");
        assert!(findings[2].why[0].starts_with("They come back in step: "), "{:?}", findings[2]);
        assert!(labels[3].starts_with("loses ") && findings[3].why[0].contains("reason: attempts"), "{findings:?}");
        assert!(headline(&outcome, &findings).starts_with("none hurts most: 8.17 times"));
        assert!(headline(&outcome, &findings).ends_with("times its attempts."));
        let losing =
            Outcome { records: [&outcome.records[1], &outcome.records[3]].map(Clone::clone).into(), ..outcome };
        let words = headline(&losing, &super::findings(&scenario, &losing));
        assert!(words.starts_with("short hurts most: loses ") && !words.contains("needs"), "{words}");
    }

    #[test]
    fn a_contest_is_judged_by_the_best() {
        let scenario = presets::aws(100).seeds(3);
        let outcome = simulate(&scenario).unwrap();
        let findings = findings(&scenario, &outcome);
        assert!(findings[0].label.ends_with("times the calls of the best"), "{:?}", findings[0]);
        assert_eq!(findings[0].why, ["The first to be done."]);
        assert_eq!(findings[1].tone, Tone::Bad);
        assert_eq!(findings[2].label, "the fewest calls");
    }

    /// A network that delays each message by another time blurs milliseconds, not stripes.
    #[test]
    fn in_step_is_seen_under_a_network_as_they_are() {
        let five = Policy::constant(Duration::from_secs(5)).jitter(Jitter::None).unlimited_attempts();
        let full = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
        let mut service = Service::herd(20_000, 1000.0);
        service.server.queue = Some(1000);
        service.network = Network::LogNormal { median: Duration::from_millis(20), sigma: 0.5 };
        let scenario = Scenario::new("herd", World::Service(service)).policy("five", five).policy("full", full);
        let outcome = simulate(&scenario).unwrap();
        let findings = findings(&scenario, &outcome);
        let in_step = |place: usize| findings[place].why.iter().any(|why| why.starts_with("They come back in step: "));
        assert!(in_step(0) && !in_step(1), "{findings:?}");
        assert_ne!(findings[0].tone, Tone::Good, "{findings:?}");
        assert!(headline(&outcome, &findings).starts_with("five "), "{}", headline(&outcome, &findings));
    }

    /// A population that is over says nothing of an end in which it makes no calls.
    #[test]
    fn who_is_over_before_the_run_is_judged_by_all_it_did() {
        let at_once = Policy::constant(Duration::from_millis(50)).unlimited_attempts();
        let until = Duration::from_secs(30);
        let stream = Arrivals::Open { rate: Rate::constant(20.0), poisson: true, until };
        let batch = Arrivals::Herd { clients: 300, window: Duration::ZERO };
        let both = Contender::new("both", at_once)
            .with(Population::own("all day", stream, Policy::default().max_attempts(1)))
            .with(Population::own("batch", batch, at_once));
        let mut service = Service::herd(1, 100.0);
        service.server.queue = Some(20);
        service.timeout = Some(Duration::from_secs(2));
        service.arrivals = Arrivals::together(&both.populations);
        let scenario = Scenario::new("x", World::Service(service)).contender(both);
        let mut outcome = simulate(&scenario).unwrap();
        outcome.records.extend(outcome.records[0].populations.clone());
        let findings = findings(&scenario, &outcome);
        let batch = &findings[2];
        assert_eq!((batch.tone, batch.label.as_str()), (Tone::Good, "all of its calls succeed"), "{batch:?}");
        assert!(batch.why[0].starts_with("A call makes ") && !batch.why.iter().any(|why| why.contains("In the end")));
        // Some of the others give up meanwhile: that is not all right.
        assert!(findings[1].label.contains("but loses ") && findings[1].tone == Tone::Fair, "{findings:?}");
        let all = &findings[0].why;
        assert!(all.contains(&"In the end each call is one attempt.".to_owned()), "{all:?}");
        assert!(all.iter().any(|why| why.starts_with("Over the whole time a call makes ")), "{all:?}");
    }

    /// Fifty workers that poll with jitter for a second are not in step, though there is quiet before and after.
    #[test]
    fn a_short_rush_with_jitter_is_not_in_step() {
        let every = Policy::constant(Duration::from_millis(40)).unlimited_attempts();
        let mut service = Service::herd(50, 50.0);
        service.server.queue = Some(1);
        let scenario = Scenario::new("lock", World::Service(service))
            .policy("jitter", every)
            .policy("none", every.jitter(Jitter::None));
        let outcome = simulate(&scenario).unwrap();
        let shares = [0, 1].map(|place: usize| in_step(&outcome.records[place]));
        assert!(shares[0] < 0.5 && shares[1] > 0.5, "{shares:?}");
    }

    #[test]
    fn layers_that_say_overloaded_do_not_multiply() {
        let why = |say_overloaded: bool| {
            let layers = Layers { calls: 10, depth: 3, failure: 1.0, say_overloaded };
            let scenario = Scenario::new("x", World::Layers(layers)).policy("p", Policy::immediate().max_attempts(4));
            let outcome = simulate(&scenario).unwrap();
            findings(&scenario, &outcome).remove(0).why.concat()
        };
        assert!(why(false).contains("Layers multiply") && why(true).contains("Layers do not multiply"));
    }

    #[test]
    fn nothing_is_no_reason_to_panic() {
        let (_, mut outcome) = herd();
        outcome.records.clear();
        assert_eq!(headline(&outcome, &[]), "Nothing was simulated.");
    }
}
