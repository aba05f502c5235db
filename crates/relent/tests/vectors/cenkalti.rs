//! cenkalti/backoff: delays of v4, and traces of its loop in all versions, whose names say what was done.

use crate::{
    case::{Case, Outcome, Verified, duration, equal, unknown},
    drive::{self, Trace, drive, keep},
};
use relent::{
    Backoff, Policy, Reason, Step, Verdict,
    compat::{Compound, Formula, OnPushback, Random, Unit, WholeSpread},
};
use std::time::Duration;

const STOP: i64 = -1;
const FIFTEEN_MINUTES: Duration = Duration::from_secs(900);

pub(crate) fn v4(case: &Case) -> Outcome {
    match case.text("kind")? {
        "sequence" => sequence(case),
        "getRandomValueFromInterval" => margin(case),
        "max_elapsed_sequence" => max_elapsed(case),
        "retry_trace" => {
            let told = Told::by(case)?;
            let policy = told.policy(OnPushback::Raises)?;
            // The original's loop is endless; ours ends it where the test of it does.
            let trace = told.drive(&policy, case)?;
            equal("calls", case.count("calls")?, trace.calls)?;
            equal("waits", case.wholes("waits_ns")?, trace.waits_ns())?;
            if case.get("notified").is_some() {
                equal("notified", case.list("notified")?.len(), trace.waits.len())?;
            }
            Ok(Verified::Ran)
        }
        kind => unknown(kind),
    }
}

fn sequence(case: &Case) -> Outcome {
    let rule = Compound {
        first: case.whole("initial_ns")?,
        factor: case.number("multiplier")?,
        cap: case.whole("max_ns")?,
        spread: WholeSpread::Margin(case.number("factor")?),
        ..Compound::CENKALTI
    };
    let expected = case.wholes("out_ns")?;
    equal("intervals", case.wholes("current_interval_ns")?, drive::intervals(rule, expected.len())?)?;
    equal("delays", expected.clone(), drive::compound(rule, expected.len(), case.forced()?)?)
}

fn margin(case: &Case) -> Outcome {
    let (current, factor, r) = (case.whole("current_ns")?, case.number("factor")?, case.number("random")?);
    let found = WholeSpread::Margin(factor).value(current, Random::Fraction(r)).ok_or("failed")?;
    // A conversion of more than an i64 holds is defined by the platform; ours saturates.
    if matches!(found, i64::MAX | i64::MIN) {
        return Ok(Verified::Skipped);
    }
    equal("value", case.whole("out_ns")?, found)
}

fn max_elapsed(case: &Case) -> Outcome {
    let limit = case.whole("max_elapsed_ns")? as u64;
    let policy = Policy::custom(&Compound::CENKALTI).unlimited_attempts();
    let policy = if limit == 0 { policy } else { policy.max_elapsed(Duration::from_nanos(limit)) };
    let expected = case.wholes("out_ns")?;
    let fail = |_| (Some(Verdict::Transient), Duration::ZERO);
    let trace = drive(&policy, case.forced()?, expected.len() as u32 + 1, fail);
    let mut found = trace.waits_ns();
    if trace.reason.is_some() {
        found.push(STOP);
    }
    equal("delays", expected, found)
}

pub(crate) fn v5_to_v7(case: &Case) -> Outcome {
    let told = Told::by(case)?;
    let policy = told.policy(OnPushback::Restarts)?;
    let trace = told.drive(&policy, case)?;
    equal("calls", case.count("calls")?, trace.calls)?;
    equal("waits", case.wholes("waits_ns")?, trace.waits_ns())?;
    if case.has("notified") {
        equal("notified", case.count("notified")? as usize, trace.waits.len())?;
    }
    match case.get("cause").and_then(|cause| cause.as_str()) {
        Some("backoff: retries exhausted") => equal("reason", Some(Reason::Attempts), trace.reason),
        Some("backoff: maximum elapsed time exceeded") => {
            let late = matches!(trace.reason, Some(Reason::Elapsed | Reason::PushbackTooLong));
            equal("out of time", true, late)
        }
        _ => Ok(Verified::Ran),
    }
}

/// What the name of a trace tells.
#[derive(Debug, Default)]
struct Told {
    rule: Rule,
    /// Attempts, the first included.
    max_attempts: Option<u32>,
    max_elapsed: Option<Duration>,
    /// How long each attempt takes.
    takes: Duration,
    succeeds_on: Option<u32>,
    /// The error of the last call, unless nothing is said of it.
    ends_well: bool,
    permanent_on: Option<u32>,
    cancelled_on: Option<u32>,
    pushback: Option<(Duration, u32)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Rule {
    #[default]
    Exponential,
    Constant(Duration),
    Stop,
    /// What says "stop" is a wait that the loop does not recognise.
    CustomStop(Duration),
}

/// The delays of v4 with a Stop of the user's own: past the limit of time, the loop waits that long, for ever.
#[derive(Debug)]
struct CustomStop {
    stop: Duration,
    limit: Option<Duration>,
}

impl Backoff for CustomStop {
    fn name(&self) -> &str {
        "custom stop"
    }

    fn delay(&self, step: &mut Step) -> Option<Duration> {
        let own = Compound::CENKALTI.delay(step)?;
        let late = self.limit.is_some_and(|limit| step.elapsed + own > limit);
        Some(if late { self.stop } else { own })
    }
}

impl Told {
    fn by(case: &Case) -> Result<Told, String> {
        let name = case.text("name")?;
        let lower = name.to_ascii_lowercase();
        let mut told = Told { max_elapsed: Some(FIFTEEN_MINUTES), ..Told::default() };
        let mut understood = lower.contains("always failing") || lower.contains("default maxelapsed");
        let mut on = |at: Option<u32>| {
            understood |= at.is_some();
            at
        };
        told.max_attempts = on(number_after(&lower, "withmaxretries(").map(|n| n.saturating_add(1)));
        told.max_attempts = on(number_after(&lower, "maxtries(")).or(told.max_attempts);
        told.succeeds_on = on(number_after(&lower, "success on "));
        told.succeeds_on = on(number_after(&lower, "succeeds on ")).or(told.succeeds_on);
        told.cancelled_on = on(lower.contains("cancel").then(|| call_number(&lower).unwrap_or(1)));
        let permanent = lower.contains("permanent").then(|| call_number(&lower).unwrap_or(1));
        told.permanent_on = on(permanent);
        if let Some(after) = text_after(&lower, "retryafter(") {
            // `RetryAfter(20s)`, `RetryAfter(20)` in seconds, `RetryAfter(20s, cause)`.
            let wait = until(until(after, ')'), ',');
            let wait = wait.parse().map_or_else(|_| duration(wait), |seconds| Ok(Duration::from_secs(seconds)))?;
            told.pushback = Some((wait, call_number(&lower).unwrap_or(1)));
            told.succeeds_on = number_after(&lower, " of ").or(told.succeeds_on);
            on(Some(1));
        }
        if lower.contains("stopbackoff") {
            told.rule = Rule::Stop;
            on(Some(1));
        } else if lower.contains("zerobackoff") {
            told.rule = Rule::Constant(Duration::ZERO);
            on(Some(1));
        } else if let Some(stop) = endless(&lower) {
            told.rule = Rule::CustomStop(stop);
            on(Some(1));
        } else if let Some(wait) = constant(case, told.cancelled_on) {
            told.rule = Rule::Constant(wait);
            on(Some(1));
        }
        for word in ["maxelapsedtime", "max elapsed time", "max elapsed"] {
            let text = text_after(&lower, word).map(|text| text.trim_start_matches([' ', '(', '=', ':', 'o', 'f']));
            if let Some(limit) = text.and_then(|text| duration(word_of(text)).ok()) {
                told.max_elapsed = Some(limit).filter(|limit| !limit.is_zero());
                on(Some(1));
            }
        }
        if let Some(takes) = text_after(&lower, "op takes ") {
            told.takes = duration(word_of(takes))?;
            on(Some(1));
        }
        told.ends_well = case.has("err") && matches!(case.get("err").map(|e| e.as_str()), None | Some(Some("")));
        if understood { Ok(told) } else { Err(format!("a trace that this test does not know: {name}")) }
    }

    fn policy(&self, pushback: OnPushback) -> Result<Policy, String> {
        let constant = |wait: Duration| Formula { first: wait.as_nanos() as f64, unit: Unit::Nanos, ..Formula::NANOS };
        let policy = match self.rule {
            Rule::Exponential => Policy::custom(keep(Compound { pushback, ..Compound::CENKALTI })),
            Rule::Constant(wait) => Policy::custom(keep(constant(wait))),
            Rule::Stop => Policy::custom(keep(constant(Duration::ZERO))).max_attempts(1),
            Rule::CustomStop(stop) => Policy::custom(keep(CustomStop { stop, limit: self.max_elapsed })),
        };
        let policy = match (self.rule, self.max_attempts) {
            (Rule::Stop, _) => policy,
            (_, Some(most)) => policy.max_attempts(most.max(1)),
            (_, None) => policy.unlimited_attempts(),
        };
        let policy = policy.max_pushback(Duration::MAX);
        Ok(match (self.rule, self.max_elapsed) {
            (Rule::Exponential, Some(limit)) => policy.max_elapsed(limit),
            _ => policy,
        })
    }

    fn drive(&self, policy: &Policy, case: &Case) -> Result<Trace, String> {
        // A loop that does not end by itself is ended where the original's was.
        let most = match self.rule {
            Rule::Constant(_) | Rule::CustomStop(_) => case.count("calls")?,
            _ => u32::MAX,
        };
        let most = self.cancelled_on.unwrap_or(most);
        // A name that does not say when it succeeds leaves that to its result.
        let ends = self.ends_well && self.succeeds_on.is_none();
        let succeeds_on = if ends { Some(case.count("calls")?) } else { self.succeeds_on };
        Ok(drive(policy, Random::Draw(1 << 63), most, |call| {
            let verdict = match call {
                call if Some(call) == self.permanent_on => Some(Verdict::Permanent),
                call if Some(call) == succeeds_on => None,
                call => match self.pushback {
                    Some((pushback, on)) if call == on => Some(Verdict::After(pushback)),
                    _ => Some(Verdict::Transient),
                },
            };
            (verdict, self.takes)
        }))
    }
}

/// A custom Stop value is not recognised as one, and becomes an endless loop.
fn endless(name: &str) -> Option<Duration> {
    let custom = ["withretrystopduration(", "retrystopduration ", "custom stop ", "stop=", "stop =", "stop: "];
    let text = custom.iter().find_map(|word| text_after(name, word))?;
    duration(word_of(text.trim_start_matches(['=', ':', ' ', '(']))).ok()
}

/// A constant wait, which a name may only imply: where the call is cancelled.
fn constant(case: &Case, cancelled_on: Option<u32>) -> Option<Duration> {
    let name = case.text("name").ok()?.to_ascii_lowercase();
    let told = text_after(&name, "constantbackoff(").and_then(|text| duration(until(text, ')')).ok());
    let first = || case.wholes("waits_ns").ok()?.first().map(|wait| Duration::from_nanos(*wait as u64));
    told.or_else(|| cancelled_on.and_then(|_| first()).filter(|wait| *wait != Duration::from_millis(500)))
}

fn text_after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.split_once(word).map(|(_, rest)| rest)
}

fn until(text: &str, end: char) -> &str {
    text.split(end).next().unwrap_or(text).trim()
}

fn word_of(text: &str) -> &str {
    text.split([' ', ',', ')', ';', ':']).next().unwrap_or(text)
}

fn number_after(text: &str, word: &str) -> Option<u32> {
    let rest = text_after(text, word)?;
    let rest = rest.strip_prefix("call ").unwrap_or(rest);
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

/// The number in "on call 2", "on 1st call", "inside 3rd call".
fn call_number(name: &str) -> Option<u32> {
    ["on call ", "on the ", "on ", "inside call ", "inside ", "in call ", "in "]
        .iter()
        .find_map(|word| number_after(name, word))
}
