//! The policies that flags name: one by the policy flags, or a set to compare.

use crate::{policy_args::PolicyArgs, talk::Fault};
use relent::{
    Curve, Jitter, PacerSettings, Policy,
    config::{Ceiling, CurveName, Draft},
};
use relent_sim::{Contender, Population};
use std::time::Duration;

/// What goes without saying in a world, where the policy flags say nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsaid {
    /// The curve.
    pub(crate) curve: CurveName,
    /// The most attempts; `None` is no limit.
    pub(crate) max_attempts: Option<u32>,
}

/// The policy of the flags, if any is given.
pub(crate) fn given(args: &PolicyArgs, unsaid: Unsaid) -> Result<Option<Contender>, Fault> {
    if !args.is_given() {
        return Ok(None);
    }
    let file = if args.policy.is_some() { args.all_of_file()? } else { Draft::default() };
    let mut draft = args.flags()?.over(file);
    let shaped = draft.curve.is_some() || draft.base.is_some() || draft.factor.is_some() || draft.delays.is_some();
    if draft.compat.is_none() && !shaped {
        draft.curve = Some(unsaid.curve);
    }
    if draft.max_attempts.is_none() && args.policy.is_none() {
        draft.max_attempts = Some(unsaid.max_attempts.map_or(Ceiling::Unlimited, Ceiling::At));
    }
    let policy = draft.policy().map_err(|bad| args.fault(&bad))?;
    let name = draft.compat.clone().unwrap_or_else(|| name(&policy));
    Ok(Some(Contender::new(name, policy)))
}

/// The policy of the flags; retries are made at once unless told otherwise, up to 4 attempts.
pub(crate) fn at_once_unless_told(args: &PolicyArgs) -> Result<Contender, Fault> {
    let unsaid = Unsaid { curve: CurveName::Immediate, max_attempts: Some(4) };
    let at_once = || Contender::new("immediate", Policy::immediate().max_attempts(4));
    Ok(given(args, unsaid)?.unwrap_or_else(at_once))
}

/// The policies that `--compare` names: of a file, of another system, or by keys and values.
pub(crate) fn compared(specs: &[String]) -> Result<Vec<Contender>, Fault> {
    specs.iter().map(|spec| one_of(spec, &format!("--compare {spec}"), Draft::default())).collect()
}

/// What `--rollout SHARE=POLICY` makes of a policy: the same clients, of which a share has another one already. Keys and
/// values change the policy that is there.
pub(crate) fn rolled_out(specs: &[String], old: Option<&Contender>) -> Result<Vec<Contender>, Fault> {
    let Some(old) = old else {
        return match specs {
            [] => Ok(Vec::new()),
            _ => Err(Fault::new("--rollout: there is no policy that the others have")
                .hint("say it by flags: relent simulate herd --base 100ms --jitter none --rollout 20%=jitter=full")),
        };
    };
    specs.iter().map(|spec| rollout(spec, old)).collect()
}

fn rollout(spec: &str, old: &Contender) -> Result<Contender, Fault> {
    let wrong = |problem: &str| {
        Fault::new(format!("--rollout {}: {problem}", crate::escape::escape(spec)))
            .hint("such as 20%=celery, 0.2=relent.toml#new or 20%=jitter=full,base=1s")
    };
    let Some((share, new)) = spec.split_once('=') else { return Err(wrong("it is not said what is rolled out")) };
    let number = share
        .trim()
        .strip_suffix('%')
        .map_or_else(|| share.trim().parse(), |percent| percent.trim().parse().map(|percent: f64| percent / 100.0));
    let Some(part) = number.ok().filter(|part| (0.0..=1.0).contains(part)) else {
        return Err(wrong("the share is not between 0 % and 100 %"));
    };
    let new = one_of(new, &format!("--rollout {spec}"), Draft::from(old.policy))?;
    if new.name == old.name {
        return Err(wrong("that is the policy which is there already"));
    }
    let named = Contender::new(format!("{} {}", crate::report::percent(part), new.name), old.policy);
    Ok(named
        .with(Population::share(&old.name, 1.0 - part, old.policy))
        .with(Population::share(&new.name, part, new.policy)))
}

/// Whether a spec names a file, or a policy of the one that is found.
pub(crate) fn is_of_file(spec: &str) -> bool {
    spec.contains('#') || spec.ends_with(".toml")
}

/// A policy by its spec; keys and values change that of the draft.
fn one_of(spec: &str, said: &str, base: Draft) -> Result<Contender, Fault> {
    if is_of_file(spec) {
        let args = PolicyArgs::of_file(spec);
        let policy = args.all_of_file()?.policy().map_err(|bad| args.fault(&bad))?;
        let name = spec.rsplit_once('#').map_or(spec, |(_, name)| name);
        return Ok(Contender::new(name, policy));
    }
    let mut draft = if spec.contains('=') { base } else { Draft::default() };
    let mut set = || -> Result<Policy, relent::config::BadSetting> {
        if !spec.contains('=') {
            draft.set("compat", spec)?;
            return draft.policy();
        }
        for pair in spec.split(',') {
            // `jitter=proportional=0.2`: the first sign parts the key from the value.
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            draft.set(&key.trim().replace('-', "_"), value.trim())?;
        }
        draft.policy()
    };
    let policy =
        set().map_err(|bad| Fault::new(format!("{}: {}", crate::escape::escape(said), bad.problem)).hint(bad.hint))?;
    Ok(Contender::new(spec, policy))
}

/// A policy in two words: its curve and its jitter.
pub(crate) fn name(policy: &Policy) -> String {
    let settings = policy.settings();
    let curve = match settings.curve {
        Curve::Immediate if !matches!(settings.jitter, Jitter::Additive(_)) => return "immediate".into(),
        Curve::Immediate => "immediate",
        Curve::Slots { .. } => return "slots".into(),
        Curve::Constant { .. } => "constant",
        Curve::Linear { .. } => "linear",
        Curve::Exponential { .. } => "exponential",
        Curve::Fibonacci { .. } => "fibonacci",
        Curve::List { .. } => "list",
        Curve::Custom(rule) => return rule.name().into(),
        _ => "curve",
    };
    match settings.jitter {
        Jitter::None => format!("{curve} none"),
        Jitter::Full => format!("{curve} full"),
        Jitter::Equal => format!("{curve} equal"),
        Jitter::Decorrelated => format!("{curve} decorrelated"),
        Jitter::Proportional(share) => format!("{curve} +-{}%", share * 100.0),
        Jitter::Additive(most) => format!("{curve} +{}", relent::duration::Human(most)),
    }
}

/// What is compared when no policy is named: from the worst habit to the best.
pub(crate) fn usual() -> Vec<Contender> {
    let exponential = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
    let constant = Policy::constant(Duration::from_secs(1)).unlimited_attempts();
    vec![
        Contender::new("constant 1s", constant.jitter(Jitter::None)),
        Contender::new("none", exponential.jitter(Jitter::None)),
        Contender::new("+-20%", exponential.jitter(Jitter::Proportional(0.2))),
        Contender::new("full", exponential.jitter(Jitter::Full)),
        Contender::new("equal", exponential.jitter(Jitter::Equal)),
        Contender::new("decorrelated", exponential.jitter(Jitter::Decorrelated)),
    ]
}

/// Beside them, a server that gives each refused client its own time to come back. Clients who know of turns keep their
/// backoff, and wait for as long as they are told.
pub(crate) fn paced(pacer: PacerSettings) -> Contender {
    let policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
    Contender::new("paced", policy.max_pushback(pacer.horizon)).paced(pacer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_words_tell_a_policy() {
        let ms = Duration::from_millis;
        for (policy, told) in [
            (Policy::immediate(), "immediate"),
            (Policy::immediate().jitter(Jitter::Full), "immediate"),
            (Policy::immediate().cap(ms(9000)).jitter(Jitter::Additive(ms(5000))), "immediate +5s"),
            (Policy::linear(ms(10)).jitter(Jitter::Proportional(0.2)), "linear +-20%"),
            (Policy::slots(ms(10)), "slots"),
        ] {
            assert_eq!(name(&policy), told);
        }
    }
}
