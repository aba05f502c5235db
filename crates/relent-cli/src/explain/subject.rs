//! What is explained: a policy, its name, and where each of its settings came from.

use super::{
    call::limit,
    foreign::{Reading, Unreadable},
    setting::Setting,
};
use crate::{
    escape::escape,
    policy_args::PolicyArgs,
    redact,
    talk::{Fault, HushArgs},
};
use relent::{
    Curve, Jitter, Policy, Settings,
    compat::{Evidence, Profile},
    config::{BadSetting, Draft, KEYS},
    duration::Human,
};
use std::{borrow::Cow, fmt, path::Path, time::Duration};

/// A policy to explain.
#[derive(Debug)]
pub(super) struct Subject {
    /// A file and name, a profile, or another system's setting, fit to be told.
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) settings: Vec<Setting>,
    /// What the policy does not say.
    pub(super) notes: Vec<String>,
    /// Where the behaviour is written down, if it is another system's.
    pub(super) source: Option<&'static str>,
}

/// The name of a policy of flags alone, and of none at all.
const FLAGS: &str = "flags";
const DEFAULT: &str = "default";

impl Subject {
    /// The name as one line that no terminal obeys.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        escape(&self.name)
    }

    /// Whether the name is more than where it was written.
    pub(super) fn is_named(&self) -> bool {
        self.name != FLAGS && self.name != DEFAULT
    }

    /// When its rule stops by itself.
    pub(super) fn stops_after(&self) -> Option<Duration> {
        stops_after(&self.policy)
    }

    /// The policy of the flags and the file.
    pub(super) fn of_args(args: &PolicyArgs, hush: HushArgs) -> Result<Subject, Fault> {
        let (flags, file) = (args.flags()?, args.file()?);
        args.remarks()?.iter().for_each(|remark| hush.note(remark));
        let origin = args.origin();
        let name = match (&origin, &args.compat) {
            (Some(origin), _) => origin.clone(),
            (None, Some(profile)) => profile.clone(),
            (None, None) if args.is_given() => FLAGS.to_owned(),
            (None, None) => DEFAULT.to_owned(),
        };
        Subject::of_drafts(name, flags, origin.as_deref().unwrap_or_default(), file).map_err(|bad| args.fault(&bad))
    }

    /// One of the policies to compare: `FILE#NAME`, a file, or a profile.
    pub(super) fn of_spec(spec: &str, hush: HushArgs) -> Result<Subject, Fault> {
        if spec.contains('#') || spec.ends_with(".toml") || Path::new(spec).exists() {
            return Subject::of_args(&PolicyArgs::of_file(spec), hush);
        }
        let mut profile = Draft::default();
        profile
            .set("compat", spec)
            .and_then(|()| Subject::of_drafts(spec.to_owned(), profile, "", Draft::default()))
            .map_err(|bad| Fault::new(format!("--compare {spec}: {}", bad.problem)).hint(bad.hint))
    }

    fn of_drafts(name: String, flags: Draft, origin: &str, file: Draft) -> Result<Subject, BadSetting> {
        let said = flags.clone().over(file);
        let policy = said.policy()?;
        let (name, origin) = (redact::text(&name).into_owned(), redact::text(origin));
        let (in_flags, in_all) = (lines(&flags), lines(&said));
        let has = |lines: &[(&str, String)], key| lines.iter().any(|(given, _)| *given == key);
        let unsaid = said.compat.as_ref().map_or("default".to_owned(), |profile| format!("profile {profile}"));
        let is_rule = matches!(policy.settings().curve, Curve::Custom(_));
        let settings = lines(&Draft::from(policy)).into_iter().map(|(key, value)| {
            let from = match key {
                key if has(&in_flags, key) => format!("--{}", key.replace('_', "-")),
                key if has(&in_all, key) => origin.clone().into_owned(),
                _ => unsaid.clone(),
            };
            let has_own_jitter = is_rule && key == "jitter" && value == "none";
            Setting { key, value: if has_own_jitter { "the rule's own".to_owned() } else { value }, from }
        });
        let mut settings: Vec<Setting> = settings.collect();
        settings.extend(stops_after(&policy).map(|most| Setting::new("stops after", Human(most), &unsaid)));
        let profile = said.compat.as_deref().and_then(|name| relent::compat::find(name).ok());
        let notes = profile.map(about).unwrap_or_default();
        Ok(Subject { name, policy, settings, notes, source: profile.map(|profile| profile.source) })
    }
}

impl From<Reading> for Subject {
    fn from(reading: Reading) -> Subject {
        let Reading { name, policy, mut settings, notes, source } = reading;
        settings.iter_mut().for_each(|setting| setting.from = redact::text(&setting.from).into_owned());
        Subject { name: redact::text(&name).into_owned(), policy, settings, notes, source: Some(source) }
    }
}

impl From<Unreadable> for Fault {
    fn from(bad: Unreadable) -> Fault {
        Fault::new(bad.problem).hint(bad.hint)
    }
}

fn stops_after(policy: &Policy) -> Option<Duration> {
    match policy.settings().curve {
        Curve::Custom(rule) => rule.stops_after(),
        _ => None,
    }
}

/// What a profile does not say by its policy.
fn about(profile: &Profile) -> Vec<String> {
    let warning = format!("{} {}: {}", profile.system, profile.version, profile.warning);
    let picks = match profile.picks {
        "" => None,
        picks => Some(format!("the system leaves parameters to its user; this profile picks {picks}")),
    };
    let evidence = match profile.evidence {
        Evidence::Run => None,
        Evidence::Port => Some("the delays are those of the published formula; the system itself was not run"),
        _ => Some("the delays are as published; there are no numbers of the system's own to compare them with"),
    };
    [Some(warning), picks, evidence.map(str::to_owned)].into_iter().flatten().collect()
}

/// The keys a draft gives, with their values as people read them.
fn lines(draft: &Draft) -> Vec<(&'static str, String)> {
    let text = draft.to_string();
    let pairs = text.lines().filter_map(|line| line.split_once(" = "));
    let known = pairs.filter_map(|(key, value)| Some((KEYS.into_iter().find(|known| *known == key)?, value)));
    known.map(|(key, value)| (key, bare(value))).collect()
}

/// A value without the quotes and braces of TOML, as flags write it.
fn bare(value: &str) -> String {
    let table = value.strip_prefix("{ ").and_then(|rest| rest.strip_suffix(" }"));
    table.map_or(value.to_owned(), |inner| inner.replace(" = ", "=")).replace('"', "")
}

/// The flags of relent that make this policy, if flags can; those that say a default anyway are left out.
pub(super) fn as_flags(policy: &Policy) -> Option<String> {
    if matches!(policy.settings().curve, Curve::Custom(_)) {
        return None;
    }
    let mut given = lines(&Draft::from(*policy));
    let means_it = |given: &[(&'static str, String)]| {
        let mut draft = Draft::default();
        given.iter().all(|(key, value)| draft.set(key, value).is_ok()) && draft.policy().as_ref() == Ok(policy)
    };
    given.iter_mut().filter(|(key, _)| *key == "delays").for_each(|(_, list)| {
        *list = list.trim_matches(['[', ']']).replace(", ", ",");
    });
    for key in KEYS {
        let without: Vec<_> = given.iter().filter(|(other, _)| *other != key).cloned().collect();
        if key != "curve" && key != "base" && means_it(&without) {
            given = without;
        }
    }
    let flag = |(key, value): &(&str, String)| match *key {
        "repeat" => "--repeat".to_owned(),
        key => format!("--{} {value}", key.replace('_', "-")),
    };
    means_it(&given).then(|| given.iter().map(flag).collect::<Vec<_>>().join(" "))
}

/// The most attempts, by the limit or by the end of the delays.
fn most_attempts(settings: &Settings) -> Option<u32> {
    let by_delays = match settings.curve {
        Curve::List { delays, repeat: false } => Some(delays.len() as u32 + 1),
        Curve::Slots { .. } => Some(16),
        _ => None,
    };
    settings.max_attempts.into_iter().chain(by_delays).min()
}

/// A policy in one line: `exponential 1s * 2 up to 1m4s, full jitter, 8 attempts`.
pub(crate) struct InShort<'a>(pub(crate) &'a Policy);

impl fmt::Display for InShort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.0.settings();
        match settings.curve {
            Curve::Immediate => f.write_str("no delay")?,
            Curve::Constant { base } => write!(f, "constant {}", Human(base))?,
            Curve::Linear { base, step } => write!(f, "linear {} + {}", Human(base), Human(step))?,
            Curve::Exponential { base, factor } => write!(f, "exponential {} * {factor}", Human(base))?,
            Curve::Fibonacci { base } => write!(f, "fibonacci {}", Human(base))?,
            Curve::Slots { slot } => write!(f, "slots of {}", Human(slot))?,
            Curve::List { delays, repeat } => {
                let plural = if delays.len() == 1 { "" } else { "s" };
                let repeated = if repeat { ", the last for ever" } else { "" };
                write!(f, "list of {} delay{plural}{repeated}", delays.len())?;
            }
            Curve::Custom(rule) => write!(f, "the rule of {}", rule.name())?,
            _ => f.write_str("a curve")?,
        }
        let grows = !matches!(settings.curve, Curve::Constant { .. } | Curve::Immediate);
        if let (Some(cap), true) = (settings.cap, grows) {
            write!(f, " up to {}", Human(cap))?;
        }
        let own = matches!(settings.curve, Curve::Custom(_) | Curve::Slots { .. } | Curve::Immediate);
        match settings.jitter {
            Jitter::None if own => {}
            Jitter::None => f.write_str(", no jitter")?,
            Jitter::Full => f.write_str(", full jitter")?,
            Jitter::Equal => f.write_str(", equal jitter")?,
            Jitter::Proportional(share) => write!(f, ", jitter ±{} %", (share * 1e4).round() / 100.0)?,
            Jitter::Additive(most) => write!(f, ", jitter up to {} more", Human(most))?,
            Jitter::Decorrelated => f.write_str(", decorrelated jitter")?,
        }
        match most_attempts(&settings) {
            None => f.write_str(", attempts unlimited")?,
            Some(1) => f.write_str(", 1 attempt")?,
            Some(most) => write!(f, ", {most} attempts")?,
        }
        match limit(self.0) {
            None => Ok(()),
            Some(most) => write!(f, " within {}", Human(most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_in_short() {
        static LIST: [Duration; 1] = [Duration::from_secs(15)];
        let second = Duration::from_secs(1);
        for (policy, short) in [
            (Policy::default(), "exponential 1s * 2 up to 1m4s, full jitter, 8 attempts"),
            (Policy::constant(second).jitter(Jitter::None), "constant 1s, no jitter, 8 attempts"),
            (
                Policy::linear(second).jitter(Jitter::Proportional(0.2)).unlimited_attempts(),
                "linear 1s + 1s up to 1m4s, jitter ±20 %, attempts unlimited",
            ),
            (Policy::immediate().max_attempts(1), "no delay, 1 attempt"),
            (
                Policy::list(&LIST).max_elapsed(Duration::from_secs(60)),
                "list of 1 delay, no jitter, 2 attempts within 1m",
            ),
            (
                Policy::constant(second).max_elapsed(60 * second).timeout(5 * second).unlimited_attempts(),
                "constant 1s, full jitter, attempts unlimited within 5s",
            ),
        ] {
            assert_eq!(InShort(&policy).to_string(), short);
        }
    }

    #[test]
    fn policies_as_flags() {
        let flags = |text: &str| as_flags(&super::super::foreign::curl(text).unwrap().policy).unwrap();
        assert_eq!(
            flags("--retry 5"),
            "--curve exponential --base 1s --cap 10m --jitter none --max-attempts 6 --max-pushback unlimited"
        );
        assert_eq!(
            flags("--retry 2 --retry-delay 5 -m 3"),
            "--curve constant --base 5s --jitter none --max-attempts 3 --max-pushback unlimited --attempt-timeout 3s"
        );
        let kubernetes = super::super::foreign::kubernetes("max=20s").unwrap().policy;
        assert_eq!(
            as_flags(&kubernetes).unwrap(),
            "--curve list --delays 0s,10s,20s --repeat --max-attempts unlimited"
        );
        assert_eq!(as_flags(&super::super::foreign::envoy("default").unwrap().policy), None);
    }

    #[test]
    fn every_setting_says_where_it_came_from() {
        let args = PolicyArgs { base: Some("100ms".into()), max_attempts: Some("5".into()), ..PolicyArgs::default() };
        let mut file = Draft::default();
        file.set("cap", "10s").unwrap();
        file.set("max_attempts", "3").unwrap();
        let subject = Subject::of_drafts("x".into(), args.flags().unwrap(), "a.toml#x", file).unwrap();
        let from = |key| subject.settings.iter().find(|setting| setting.key == key).unwrap();
        assert_eq!(*from("base"), Setting::new("base", "100ms", "--base"));
        assert_eq!(*from("cap"), Setting::new("cap", "10s", "a.toml#x"));
        assert_eq!(*from("max_attempts"), Setting::new("max_attempts", "5", "--max-attempts"));
        assert_eq!(*from("jitter"), Setting::default("jitter", "full"));
    }
}
