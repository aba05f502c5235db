//! What to do, and how safe one is, in words: for the terminal and for the page.

use super::words::{count, percent, seconds};
use relent::duration::Human;
use relent_sim::{
    Arrivals, Cure, FatalOutage, Figure, Harm, Outcome, Paced, Recommended, Record, Remedied, Remedy, SafeLoad, Safety,
    Scenario, Service, Shape, Storm, World,
};

/// Whether a policy brings the world back, in a few words: for a stream of calls, and for a herd that meets trouble.
pub(crate) fn verdict(scenario: &Scenario, record: &Record, safety: Option<&Safety>) -> Option<String> {
    let World::Service(service) = &scenario.world else { return None };
    let runs = record.recovered?;
    match record.stopped.as_deref() {
        // Nobody knows what would have come of it.
        Some("interrupted") => return None,
        Some(_) if service.is_open() => return Some("does not come to an end".into()),
        _ => {}
    }
    let after = record.get(Figure::RecoveryS);
    let varies = matches!(&service.arrivals, Arrivals::Open { rate, .. } if rate.points().len() > 1);
    let troubled = !service.troubles.is_empty() || varies;
    let words = if !service.is_open() {
        if !troubled {
            return None;
        }
        match (runs.yes, after) {
            (yes, Some(after)) if yes == runs.of => {
                format!("recovers: everybody is connected {} after the trouble", seconds(after))
            }
            (0, _) if record.stopped.is_some() => "does not recover".into(),
            (0, _) => {
                let lost = record.get(Figure::GaveUp).unwrap_or(0.0) / record.clients.max(1) as f64;
                format!("does not recover: {} of the clients give up", percent(lost))
            }
            (yes, _) => format!("recovers in {yes} of {} runs only", runs.of),
        }
    } else {
        match (runs.yes, after) {
            (yes, Some(after)) if yes == runs.of && after > 0.0 => {
                lossy(&format!("recovers {} after the trouble", seconds(after)), record)
            }
            (yes, Some(_)) if yes == runs.of => lossy("recovers at once", record),
            (yes, None) if yes == runs.of => lossy("stays healthy", record),
            (0, _) if is_overloaded(safety) => "is overloaded: more calls come than the server can do".into(),
            (0, _) if safety.is_some_and(|safety| safety.storm == Some(Storm::Always)) => "cannot succeed".into(),
            (0, _) if heals_later(safety) => "is still in the storm when the run ends".into(),
            (0, _) if troubled => "stays in the storm".into(),
            (0, _) => "does not stay healthy".into(),
            (yes, _) => format!("recovers in {yes} of {} runs only", runs.of),
        }
    };
    Some(words)
}

/// Good words, unless calls were lost for them: who loses them is not healthy.
fn lossy(words: &str, record: &Record) -> String {
    let get = |figure: Figure| record.get(figure).unwrap_or(0.0);
    let (gave_up, trying) = (get(Figure::GaveUpShare), get(Figure::StillTrying));
    let words = if gave_up + trying >= 0.01 && words == "stays healthy" { "ends healthy" } else { words };
    match (gave_up >= 0.01, trying >= 0.01) {
        (false, false) => words.to_owned(),
        (true, false) => format!("{words}, but loses {} of the calls", percent(gave_up)),
        (false, true) => format!("{words}, but {} of the calls are still tried when it ends", percent(trying)),
        (true, true) => format!(
            "{words}, but loses {} of the calls, and {} are still tried when it ends",
            percent(gave_up),
            percent(trying)
        ),
    }
}

/// In how many runs, and what that says about the probability; nothing if there was one run.
pub(crate) fn confidence(record: &Record) -> Option<String> {
    let runs = record.recovered.filter(|runs| runs.of > 1)?;
    let (low, high) = runs.wilson();
    let interval = format!("95 %: {} to {}", percent(low), percent(high));
    let says_it = 0 < runs.yes && runs.yes < runs.of;
    Some(if says_it { interval } else { format!("{} of {} runs; {interval}", runs.yes, runs.of) })
}

fn is_overloaded(safety: Option<&Safety>) -> bool {
    safety.and_then(|safety| safety.load).is_some_and(|load| load >= 1.0)
}

/// Whether a storm ends by theory, however long it takes.
fn heals_later(safety: Option<&Safety>) -> bool {
    match safety.and_then(|safety| safety.storm.zip(safety.load)) {
        Some((Storm::Above(safe), load)) => load < safe.share,
        _ => false,
    }
}

/// How safe a policy is under a stream of calls: sentences.
pub(crate) fn safety(scenario: &Scenario, record: &Record, safety: &Safety) -> Vec<String> {
    let World::Service(service) = &scenario.world else { return Vec::new() };
    let recovered = record.recovered.is_some_and(|runs| runs.yes == runs.of);
    let mut words = Vec::new();
    words.extend(storm(service, safety, recovered));
    if let (false, true, Some(after)) = (recovered, heals_later(Some(safety)), safety.recovery_by_theory_s) {
        words
            .push(format!("By theory the storm ends {} after the outage: a longer run would show it.", seconds(after)));
    }
    words.extend(safety.fatal_outage.and_then(|outage| fatal(service, safety, outage)));
    words
}

fn storm(service: &Service, safety: &Safety, recovered: bool) -> Option<String> {
    let (load, calls) = (safety.load?, safety.calls_per_s?);
    match safety.storm? {
        Storm::Above(safe) => Some(above(service, safe, load, calls)),
        Storm::Always => Some("The way to the server and back takes longer than clients wait for an answer.".into()),
        // The proof of it would be missing.
        Storm::Never(_) if !recovered || load >= 1.0 => None,
        Storm::Never(cure) => {
            let why = match cure {
                Cure::ShortQueue => {
                    "the queue holds less work than clients wait for, so what is let in is answered in time"
                }
                Cure::NewestFirst => "the newest request is served first, and answered in time",
                Cure::Patience => "clients wait as long as it takes, so no work is in vain",
            };
            Some(format!("No storm can stay at any load below the capacity: {why}."))
        }
    }
}

fn above(service: &Service, safe: SafeLoad, load: f64, calls: f64) -> String {
    let capacity = service.server.capacity.unwrap_or(0.0);
    let comes = count(calls);
    if safe.attempts.is_infinite() {
        return "Safe load: none. Attempts are not limited, so a storm can feed itself at any load.".into();
    }
    let limit = if safe.attempts <= 1.0 {
        format!("Safe load: up to the capacity of {}, since nothing is retried; {comes} come", count(capacity))
    } else {
        format!(
            "Safe load: up to {} calls a second, {} of the capacity, since a call is up to {} attempts; {comes} come",
            count(safe.per_s),
            percent(safe.share),
            count(safe.attempts)
        )
    };
    match load {
        load if load >= 1.0 => format!("{limit}, which is too many even without retries."),
        load if load < safe.share => format!("{limit}, so every storm ends by itself."),
        _ => format!("{limit}, so a storm that has begun does not end by itself."),
    }
}

fn fatal(service: &Service, safety: &Safety, outage: FatalOutage) -> Option<String> {
    let theory = outage.theory.map_or_else(String::new, |theory| format!("; by theory {}", length(theory)));
    let dear = match outage.fatal {
        _ if !outage.too_dear => "",
        Some(_) => " Closer bounds take many attempts: --advice always.",
        None => " Longer ones take many attempts: --advice always.",
    };
    Some(match (outage.survived, outage.fatal) {
        (Some(survived), Some(fatal)) => {
            format!("Smallest fatal outage: {} (one of {} is survived{theory}).{dear}", length(fatal), length(survived))
        }
        (None, Some(fatal)) if outage.too_dear => {
            format!("An outage of {} is fatal{theory}.{dear}", length(fatal))
        }
        (None, Some(fatal)) => format!("Smallest fatal outage: {} or less{theory}.", length(fatal)),
        (Some(survived), None) => {
            let always = heals_later(Some(safety)) || matches!(safety.storm, Some(Storm::Never(_)));
            match always {
                true => format!(
                    "Smallest fatal outage: none. It recovers after one of {}, and by theory after any.",
                    length(survived)
                ),
                false => format!("Smallest fatal outage: none up to {}.{dear}", length(survived)),
            }
        }
        (None, None) => return service.troubles.first().map(|_| format!("No fatal outage was looked for.{dear}")),
    })
}

/// A length of time to three digits.
fn length(duration: std::time::Duration) -> String {
    seconds(duration.as_secs_f64())
}

/// What a herd should do: sentences.
pub(crate) fn recommendation(scenario: &Scenario, recommended: &Recommended) -> Vec<String> {
    let World::Service(service) = &scenario.world else { return Vec::new() };
    let settings = recommended.policy.settings();
    let mut words = Vec::new();
    if let Some(name) = &recommended.as_good {
        words.push(format!("{name} does as well as anything: there is nothing to change."));
        return words;
    }
    if settings.spread.is_zero() {
        words.push("The clients come over so long a time that they need no spread.".into());
    } else {
        words.push(format!(
            "Spread the first attempts over {}: clients / capacity is {}, and {} more is for {}.",
            Human(settings.spread),
            seconds(recommended.ideal_s),
            percent(recommended.margin),
            match recommended.margin {
                margin if margin > 0.05 => "a queue that is short",
                _ => "a server that is a little slower than it says",
            }
        ));
    }
    words.push(match recommended.shape {
        Shape::Steady => format!(
            "Who fails waits {} again, and so keeps its place: after an outage of any length they come back no faster than \
             the server can take them.",
            Human(recommended.base())
        ),
        Shape::Growing => format!("Who fails backs off, from {} on.", Human(recommended.base())),
    });
    words.extend(queue(service, recommended));
    words.push(figures(&recommended.record));
    words
}

/// What a pacer would do for the herd with its clients as they are: sentences.
pub(crate) fn paced(outcome: &Outcome, paced: &Paced) -> Vec<String> {
    let get = |record: &Record, figure: Figure| record.get(figure).unwrap_or(0.0);
    let lost = |record: &Record| get(record, Figure::GaveUp) / record.clients.max(1) as f64;
    let before = outcome.records.iter().find(|record| record.policy == paced.policy);
    let loses = before.filter(|before| lost(before) > lost(&paced.record) + 0.001);
    // Who loses clients is soon done with the others: nothing to compare with.
    let before = before.filter(|before| before.stopped.is_none() && loses.is_none());
    let said = |figure: Figure, words: fn(f64) -> String| {
        let was = before.and_then(|before| before.get(figure));
        let instead = was.map_or_else(String::new, |was| format!(" instead of {}", words(was)));
        (words(get(&paced.record, figure)), instead)
    };
    let (attempts, not_attempts) = said(Figure::AttemptsPerClient, count);
    let (drain, not_drain) = said(Figure::DrainS, seconds);
    let loss = loses
        .map_or_else(String::new, |before| format!("; without it, {} of the clients give up", percent(lost(before))));
    let mut words = vec![
        format!(
            "Have the server tell each client that it refuses a time of its own to come back, at {} a second. Clients that \
             wait as long as they are told need no change.",
            count(paced.pacer.capacity)
        ),
        format!(
            "Simulated with the clients of {:?}: {attempts} attempts a client{not_attempts}, drained after {drain}{not_drain} \
             ({} x ideal){loss}.",
            paced.policy,
            count(get(&paced.record, Figure::DrainOverIdeal)),
        ),
    ];
    words.extend(paced.max_pushback.map(|most| {
        let most = Human(most);
        format!("The last are told to wait for longer than their policy allows: it needs max_pushback = \"{most}\".")
    }));
    words
}

/// A change, in words; whose it is, where not all are changed.
pub(crate) fn change(remedied: &Remedied) -> String {
    let whose = remedied.whose.as_deref();
    // What all do, a population is made to do.
    let have = |all: &str, own: &str, rest: &str| match whose {
        Some(name) => format!("{own} {name} {rest}"),
        None => format!("{all} {rest}"),
    };
    match &remedied.remedy {
        Remedy::OneLayer => match whose {
            Some(layer) => format!("retry at {layer} only, and make one attempt everywhere else"),
            None => "retry at one layer only, and let the others pass on \"overloaded, do not retry\"".to_owned(),
        },
        Remedy::Deadlines => "have each layer tell the one below how long it waits".to_owned(),
        Remedy::Attempts(1) => whose.map_or_else(|| "do not retry".to_owned(), |name| format!("let {name} not retry")),
        Remedy::Attempts(most) => match whose {
            Some(name) => format!("let {name} make at most {most} attempts"),
            None => format!("make at most {most} attempts"),
        },
        Remedy::Queue(room) => format!("let at most {} requests into the server", count(*room as f64)),
        Remedy::Capacity(capacity) => format!("have a server that does {} a second", count(*capacity)),
        Remedy::Budget(ratio) => {
            have("give all calls together", "give all calls of", &format!("a budget of {} retries", percent(*ratio)))
        }
        Remedy::Limit(rate) => {
            have("put all calls", "put all calls of", &format!("behind one limiter of {} a second", count(*rate)))
        }
        Remedy::Breaker(open) => {
            have("have", "give", &format!("a breaker that opens for {} when half of the calls fail", Human(*open)))
        }
        Remedy::Pacer(capacity) => {
            format!("have the server tell each it refuses its own time to come back, at {} a second", count(*capacity))
        }
        _ => "change the world".to_owned(),
    }
}

/// What populations do to each other, each changed by itself: a sentence for each that is clearly better or worse off for
/// another, and one for each policy of which nobody is.
pub(crate) fn harms(outcome: &Outcome) -> Vec<String> {
    let mut words = Vec::new();
    for all in &outcome.records {
        let own = outcome.advice.iter().flat_map(|advice| &advice.harms).filter(|harm| harm.policy == all.policy);
        let as_it_is = |harm: &Harm| all.populations.iter().find(|record| record.policy == harm.record.policy);
        let pairs: Vec<(&Harm, &Record)> = own.filter_map(|harm| Some((harm, as_it_is(harm)?))).collect();
        let told: Vec<String> = pairs.iter().filter_map(|(harm, as_it_is)| self::harm(harm, as_it_is)).collect();
        if told.is_empty() && !pairs.is_empty() {
            words.push(format!("{}: no population is clearly better or worse off for another.", all.policy));
        }
        words.extend(told);
    }
    words
}

/// What one population takes from another, or spares it, in the figures that differ.
fn harm(harm: &Harm, as_it_is: &Record) -> Option<String> {
    let Harm { policy, by, to, record, .. } = harm;
    let verb = match (harm.hurts(as_it_is), harm.spares(as_it_is)) {
        (true, _) => "is hurt by",
        (_, true) => "is better off for",
        _ => return None,
    };
    let pair = |figure: Figure| as_it_is.get(figure).zip(record.get(figure));
    let differ = |pair: &(f64, f64)| (pair.0 / pair.1).max(pair.1 / pair.0) > 1.05;
    let mut differs = Vec::new();
    if let Some((is, then)) = pair(Figure::SuccessShare).filter(|(is, then)| percent(*is) != percent(*then)) {
        differs.push(format!("{} of its calls would succeed instead of {}", percent(then), percent(is)));
    }
    if let Some((is, then)) = pair(Figure::AttemptsPerClient).filter(differ) {
        differs.push(format!("it would make {} a call instead of {}", attempts(then), count(is)));
    }
    if let Some((is, then)) = pair(Figure::P99S).filter(differ) {
        differs.push(format!(
            "99 % of its calls would take no longer than {} instead of {}",
            seconds(then),
            seconds(is)
        ));
    }
    let last = differs.pop().unwrap_or_default();
    let all = if differs.is_empty() { last } else { format!("{}, and {last}", differs.join(", ")) };
    let changed = if harm.left_out { format!("Without {by}") } else { format!("If {by} did as {to} does") };
    Some(format!("{policy}: {to} {verb} {by}. {changed}, {all}."))
}

/// So many attempts: "one attempt", "1.5 attempts".
fn attempts(number: f64) -> String {
    match count(number).as_str() {
        "1" => "one attempt".to_owned(),
        number => format!("{number} attempts"),
    }
}

/// The change that helps the calls of a policy most.
pub(crate) fn best<'a>(outcome: &'a Outcome, policy: &str) -> Option<&'a Remedied> {
    let own = outcome.advice.iter().flat_map(|advice| &advice.remedies).filter(|remedied| remedied.policy == policy);
    // Of two that help as many calls, the one that takes less.
    let worth = |remedied: &&Remedied| {
        let get = |figure: Figure| remedied.record.get(figure).unwrap_or(0.0);
        ((get(Figure::SuccessShare) * 200.0).round(), -get(Figure::AttemptsPerClient))
    };
    own.max_by(|a, b| worth(a).0.total_cmp(&worth(b).0).then(worth(a).1.total_cmp(&worth(b).1)))
}

/// What was changed and what it bought, in a sentence; what each came from is the record of the policy as it is.
pub(crate) fn remedy(before: &Record, remedied: &Remedied) -> String {
    let (change, after) = (change(remedied), &remedied.record);
    let get = |record: &Record, figure: Figure| record.get(figure).unwrap_or(0.0);
    let differs = |before: &Record, after: &Record| {
        let (was, is) = (get(before, Figure::SuccessShare), get(after, Figure::SuccessShare));
        ((is - was).abs() >= 0.005).then(|| (percent(is), percent(was)))
    };
    let mut buys = Vec::new();
    for (was, is) in before.populations.iter().zip(&after.populations) {
        let name = is.policy.strip_prefix(&format!("{}: ", after.policy)).unwrap_or(&is.policy);
        buys.extend(differs(was, is).map(|(is, was)| format!("{is} of the calls of {name} succeed instead of {was}")));
    }
    if buys.is_empty() {
        buys.extend(differs(before, after).map(|(is, was)| format!("{is} of the calls succeed instead of {was}")));
    }
    let (was, is) = (get(before, Figure::AttemptsPerClient), get(after, Figure::AttemptsPerClient));
    if buys.is_empty() || was > 1.2 * is && was > 2.0 {
        buys.push(format!("{} a call instead of {}", attempts(is), count(was)));
    }
    if let Some(time) = after.get(Figure::RecoveryS).filter(|time| *time >= 1.0) {
        buys.push(format!("the backlog is gone {} after the trouble", seconds(time)));
    }
    let last = buys.pop().unwrap_or_default();
    let all = if buys.is_empty() { last } else { format!("{}, and {last}", buys.join(", ")) };
    format!("{change}: {all}.")
}

fn queue(service: &Service, recommended: &Recommended) -> Option<String> {
    let has = service.server.queue?;
    let enough = count(recommended.queue_room as f64);
    Some(match has {
        has if has >= recommended.queue_room => {
            format!(
                "A queue with room for {enough} (2 x the root of the clients) is enough; it has {}.",
                count(has as f64)
            )
        }
        has if recommended.queue_too_short => format!(
            "The queue has room for {} only, so some are refused; with {enough} hardly one would be.",
            count(has as f64)
        ),
        has => format!(
            "The queue has room for {}, which is enough at this pace; with {enough} they could come without the {}.",
            count(has as f64),
            percent(recommended.margin)
        ),
    })
}

/// What the simulation of it gave.
fn figures(record: &Record) -> String {
    let get = |figure: Figure| record.get(figure).unwrap_or(0.0);
    format!(
        "Simulated in this world: {} a client, drained after {} ({} x ideal), at most {} attempts in a tenth of a \
         second ({} x capacity).",
        attempts(get(Figure::AttemptsPerClient)),
        seconds(get(Figure::DrainS)),
        count(get(Figure::DrainOverIdeal)),
        count(get(Figure::Peak100Ms)),
        count(get(Figure::PeakOverCapacity))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::Policy;
    use relent_sim::{Control, Effort, Rate, Server, Trouble, TroubleKind, advise, simulate};
    use std::time::Duration;

    const SEC: Duration = Duration::from_secs(1);

    fn storm(rate: f64, policy: Policy) -> (Scenario, Outcome) {
        let service = Service {
            arrivals: Arrivals::Open { rate: Rate::constant(rate), poisson: true, until: 40 * SEC },
            timeout: Some(SEC),
            server: Server { capacity: Some(100.0), exponential: true, ..Server::default() },
            troubles: vec![Trouble::new(10 * SEC, 5 * SEC, TroubleKind::Stall)],
            ..Service::herd(1, 1.0)
        };
        let scenario = Scenario::new("storm", World::Service(service)).policy("p", policy);
        let mut outcome = simulate(&scenario).unwrap();
        advise(&scenario, &mut outcome, 1, Effort::Short, &Control::default());
        (scenario, outcome)
    }

    fn words(rate: f64, policy: Policy) -> (Option<String>, Vec<String>) {
        let (scenario, outcome) = storm(rate, policy);
        let (record, own) = (&outcome.records[0], &outcome.advice.as_ref().unwrap().policies[0]);
        (verdict(&scenario, record, Some(own)), safety(&scenario, record, own))
    }

    #[test]
    fn a_storm_in_words() {
        let (verdict, why) = words(60.0, Policy::immediate().unlimited_attempts().max_attempts(2));
        assert_eq!(verdict.as_deref(), Some("stays in the storm"));
        assert!(why[0].starts_with("Safe load: up to 50 calls a second, 50 % of the capacity"), "{why:?}");
        assert!(why[1].starts_with("Smallest fatal outage: 1."), "{why:?}");
        let (verdict, why) = words(60.0, Policy::default().unlimited_attempts());
        assert_eq!(verdict.as_deref(), Some("stays in the storm"));
        assert_eq!(why[0], "Safe load: none. Attempts are not limited, so a storm can feed itself at any load.");
        let (verdict, why) = words(150.0, Policy::immediate().max_attempts(1));
        assert_eq!(verdict.as_deref(), Some("is overloaded: more calls come than the server can do"));
        assert!(why[0].ends_with("150 come, which is too many even without retries."), "{why:?}");
        assert_eq!(why.len(), 1);
    }

    #[test]
    fn nobody_judges_a_run_that_was_cut_short() {
        let (scenario, mut outcome) = storm(10.0, Policy::immediate().max_attempts(2));
        assert!(verdict(&scenario, &outcome.records[0], None).is_some());
        outcome.records[0].stopped = Some("interrupted".into());
        assert_eq!(verdict(&scenario, &outcome.records[0], None), None);
        outcome.records[0].stopped = Some("not over after 10s".into());
        assert_eq!(verdict(&scenario, &outcome.records[0], None).as_deref(), Some("does not come to an end"));
    }

    #[test]
    fn what_a_pacer_buys_is_said_beside_what_was_without_it() {
        let told = |policy: Policy, clients: u64| {
            let mut service = Service::herd(clients, 100.0);
            service.server.queue = Some(100);
            let mut scenario = Scenario::new("herd", World::Service(service)).policy("p", policy);
            scenario.limit = 400 * SEC;
            let mut outcome = simulate(&scenario).unwrap();
            advise(&scenario, &mut outcome, 1, Effort::Short, &Control::default());
            let found = outcome.advice.as_ref().and_then(|advice| advice.paced.clone()).expect("it helps");
            paced(&outcome, &found)
        };
        let endless = Policy::constant(SEC).jitter(relent::Jitter::None).unlimited_attempts();
        let words = told(endless, 2000);
        assert_eq!(
            words[1],
            "Simulated with the clients of \"p\": 1.95 attempts a client instead of 10.5, drained after 20s instead of 20.2s \
             (1 x ideal)."
        );
        let words = told(Policy::immediate().max_attempts(2), 20_000);
        assert!(words[1].ends_with("(1 x ideal); without it, 99 % of the clients give up."), "{words:?}");
        assert!(words[2].ends_with("it needs max_pushback = \"6m40s\"."), "{words:?}");
    }

    #[test]
    fn a_herd_is_told_what_is_as_good_and_no_more() {
        let scenario = Scenario::new("few", World::Service(Service::herd(3, 10.0))).policy("p", Policy::default());
        let mut outcome = simulate(&scenario).unwrap();
        advise(&scenario, &mut outcome, 1, Effort::Short, &Control::default());
        let recommended = outcome.advice.as_ref().and_then(|advice| advice.recommended.as_ref()).unwrap();
        assert_eq!(recommendation(&scenario, recommended), ["p does as well as anything: there is nothing to change."]);
    }
}
