//! The policy flags, the same in every subcommand that takes a policy.
//!
//! A flag wins over the file (`policy_file`): the one that `--policy` names, or else one that is
//! found, unless `--compat` names another system's policy: that is a whole one, whose limits no file is meant to change
//! unasked. Which of a file's policies is meant: the one named after `#`, else the unnamed one, else the only one. Flags
//! and files are read by the same code (`relent::config`), so a value means the same in both.

use crate::{
    escape::escape,
    found_limits::{self, Attempt},
    outer,
    policy_file::{Beside, PolicyFile},
    talk::{self, Fault, TalkArgs},
    topic,
    typed::typed,
};
use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use relent::{
    Curve, Jitter, Policy,
    config::{BadSetting, CurveName, Draft},
    duration::Human,
};
use std::{
    ffi::OsStr,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Arc, OnceLock},
    time::Duration,
};

/// What stands over them in the help of a subcommand, where those that are rarely wanted are left out.
const HEADING: &str = "Policy (relent help policy tells all of it)";

/// What `--policy` is to commands that make calls; others take no file that nobody named.
const OR_FOUND: &str = "A policy from a file; flags win [default: relent.toml, if there]";

/// The flags of a policy: flatten them into a subcommand's flags, then ask for the [`policy`](PolicyArgs::policy).
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct PolicyArgs {
    /// A policy from a file; flags win.
    #[arg(long, value_name = "FILE[#NAME]")]
    pub policy: Option<String>,

    /// The behaviour of another system (relent explain --profiles).
    #[arg(long, value_name = "NAME", value_parser = ProfileName, hide_possible_values = true, hide = true)]
    pub compat: Option<String>,

    /// How the delay grows: exponential (default), constant, linear,
    /// fibonacci, list, slots (random, IEEE 802.3), immediate
    #[arg(long, verbatim_doc_comment, value_name = "CURVE", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(CurveName::ALL.map(CurveName::as_str)), hide = true)]
    pub curve: Option<String>,

    /// The first delay [default: 1s].
    #[arg(long, value_name = "DURATION", value_parser = setting("base"))]
    pub base: Option<String>,

    /// The multiplier of curve exponential [default: 2].
    #[arg(long, value_name = "NUMBER", value_parser = setting("factor"), hide = true)]
    pub factor: Option<String>,

    /// What each failure adds, curve linear [default: the base].
    #[arg(long, value_name = "DURATION", value_parser = setting("step"), hide = true)]
    pub step: Option<String>,

    /// The delays of curve list: 15s,30s,3m.
    #[arg(long, value_name = "DURATIONS", value_parser = setting("delays"), hide = true)]
    pub delays: Option<String>,

    /// Repeat the last delay of the list rather than give up.
    #[arg(long, hide = true)]
    pub repeat: bool,

    /// The most one delay may be, jitter included [default: 64s].
    #[arg(long, value_name = "DURATION", value_parser = setting("cap"))]
    pub cap: Option<String>,

    /// How delays are spread: full (default), none, equal,
    /// decorrelated, proportional=0.2, additive=1s
    #[arg(long, verbatim_doc_comment, value_name = "JITTER", value_parser = setting("jitter"), hide = true)]
    pub jitter: Option<String>,

    /// The most attempts, the first included, or unlimited [default: 8].
    #[arg(long, value_name = "NUMBER", value_parser = setting("max_attempts"), allow_negative_numbers = true)]
    pub max_attempts: Option<String>,

    /// Start no attempt later than this [default: unlimited].
    #[arg(long, value_name = "DURATION", value_parser = setting("max_elapsed"))]
    pub max_elapsed: Option<String>,

    /// The limit of the whole call, where the subcommand has one ([`CallArgs`]).
    #[arg(skip)]
    pub timeout: Option<String>,

    /// The longest wait the far side may ask for [default: 2m].
    #[arg(long, value_name = "DURATION", value_parser = setting("max_pushback"), hide = true)]
    pub max_pushback: Option<String>,

    /// The longest one attempt may take [default: unlimited].
    #[arg(long, value_name = "DURATION", value_parser = setting("attempt_timeout"))]
    pub attempt_timeout: Option<String>,

    /// At most this long a random wait before attempt 1 [default: 0s].
    #[arg(long, value_name = "DURATION", value_parser = setting("spread"), hide = true)]
    pub spread: Option<String>,

    /// Make the jitter the same in every run.
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub seed: Option<u64>,

    /// How long an attempt takes at most where nothing is said, if the command limits that by itself.
    #[arg(skip)]
    pub(crate) own_attempt: Option<Attempt>,

    /// What the file says, read once.
    #[arg(skip)]
    pub(crate) file: Arc<OnceLock<Result<PolicyFile, Fault>>>,
}

/// The flags of a policy that calls are made under: those of the policy, and what ends the call.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING, mut_arg("policy", |flag| flag.help(OR_FOUND)))]
pub struct CallArgs {
    #[command(flatten)]
    policy: PolicyArgs,

    /// End everything then, what is under way included.
    #[arg(long, value_name = "DURATION", value_parser = setting("timeout"))]
    timeout: Option<String>,
}

impl CallArgs {
    /// All of it as one.
    pub(crate) fn whole(&self) -> PolicyArgs {
        PolicyArgs { timeout: self.timeout.clone(), ..self.policy.clone() }
    }

    /// The policy, for a command that acts on it: says which file that was not asked for it comes from.
    ///
    /// # Errors
    ///
    /// As [`policy`](PolicyArgs::policy).
    pub fn policy_said(&self, talk: TalkArgs) -> Result<Policy, Fault> {
        self.whole().said(talk)
    }

    /// The same, for a command whose attempts end after this time, unless flags, or a file that was named, say something else.
    ///
    /// # Errors
    ///
    /// As [`policy`](PolicyArgs::policy).
    pub(crate) fn policy_said_within(&self, attempt: Attempt, talk: TalkArgs) -> Result<Policy, Fault> {
        let whole = PolicyArgs { own_attempt: Some(attempt), ..self.whole() };
        let policy = whole.said(talk)?;
        let said = whole.flags()?.over(whole.file()?).attempt_timeout;
        Ok(match policy.settings().attempt_timeout {
            None if said.is_none() => policy.attempt_timeout(attempt.most),
            _ => policy,
        })
    }

    /// How long everything may take from now on: by `--timeout` and by the `relent run` that this runs in.
    pub fn time_limit(&self) -> Option<Duration> {
        let own = self.timeout.as_deref().and_then(|text| relent::duration::parse_duration(text).ok());
        outer::clip(own)
    }

    /// The seed of the jitter: the given one, or one that no other run has.
    pub fn seed(&self) -> u64 {
        self.policy.seed()
    }
}

/// The text of `relent help policy`: every flag of a policy, and where policies come from.
pub(crate) fn help() -> String {
    topic::help::<CallArgs>("policy", "The flags of a policy, the same in every subcommand that makes calls.", ABOUT)
}

const ABOUT: &str = "\
A duration is 100ms, 1.5s, 1m30s or 2h. --max-elapsed starts no attempt later and cuts none off;
--timeout ends whatever is under way. Every delay is at most --cap, jitter included.

Where a policy comes from, each over the next: flags; --policy FILE, FILE#NAME, #NAME, or - for
standard input; the file that RELENT_CONFIG names (none: no file); relent.toml in the working
folder, if it is ours and nobody else can write to it. Its keys are the flags with underscores:

  [policy.upload]
  base = \"100ms\"
  max_attempts = 5

relent explain shows what a policy will do. relent explain --profiles lists what --compat knows.
";

/// A value parser that takes what a policy file would take for the key.
fn setting(key: &'static str) -> impl Fn(&str) -> Result<String, BadSetting> + Clone + Send + Sync + 'static {
    move |text| {
        Draft::default().set(key, text)?;
        match relent::duration::parse_duration(text) {
            // A policy without limit is written with the last duration there is, in full: that is what it says.
            Ok(given) if given >= longest(key) && text != Human(Duration::from_nanos(u64::MAX)).to_string() => {
                let problem = format!("the duration is longer than {}", Human(longest(key)));
                Err(BadSetting { key: None, problem, hint: "leave the flag out, if no limit is meant".to_owned() })
            }
            _ => Ok(text.to_owned()),
        }
    }
}

/// The longest that a policy can count; more would be another value than what was said.
fn longest(key: &str) -> Duration {
    match key {
        "timeout" | "attempt_timeout" | "max_pushback" | "spread" => Duration::from_millis(u32::MAX.into()),
        _ => Duration::from_nanos(u64::MAX),
    }
}

/// The name of a profile: checked as in a file, and completed by shells.
#[derive(Clone, Copy, Debug)]
struct ProfileName;

impl TypedValueParser for ProfileName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        TypedValueParser::parse_ref(&setting("compat"), command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(relent::compat::all().iter().map(|profile| PossibleValue::new(profile.name))))
    }
}

impl PolicyArgs {
    /// What `--policy` alone would say.
    pub(crate) fn of_file(spec: &str) -> PolicyArgs {
        PolicyArgs { policy: Some(spec.to_owned()), ..PolicyArgs::default() }
    }

    /// The policy: the file's, with the flags over it.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has no such policy, or the policy makes no sense.
    pub fn policy(&self) -> Result<Policy, Fault> {
        let policy = self.flags()?.over(self.file()?).policy().map_err(|bad| self.fault(&bad))?;
        self.check_storm(&policy)?;
        Ok(policy)
    }

    /// The policy, once it is said which file that was not asked for it comes from.
    fn said(&self, talk: TalkArgs) -> Result<Policy, Fault> {
        let policy = self.policy()?;
        for remark in self.read_file()?.used.iter().chain(&self.remarks()?) {
            talk::remark(talk, remark);
        }
        Ok(policy)
    }

    /// A file alone cannot make a command hammer somebody for ever, and one that was only found not even for a moment.
    ///
    /// # Errors
    ///
    /// It asks for that, and no flag says that it is meant.
    pub(crate) fn check_storm(&self, policy: &Policy) -> Result<(), Fault> {
        let asked = [&self.max_attempts, &self.max_elapsed, &self.timeout].iter().any(|flag| flag.is_some());
        if let Some(origin) = self.origin().filter(|_| !asked && is_storm(policy)) {
            let origin = escape(&origin);
            return Err(Fault::new(format!("{origin} asks for attempts without end or delay"))
                .hint("--max-attempts N or unlimited beside it says that it is meant"));
        }
        let file = self.read_file()?;
        let Some(origin) = file.origin.as_deref().filter(|_| file.is_by_chance) else { return Ok(()) };
        let shown = escape(file.shown.as_deref().unwrap_or_default());
        let refused = |what: &str, flag: &str| {
            Err(Fault::new(format!("{shown}, found in this folder, {what}"))
                .hint(format!("--policy {} says that it is meant, and so does {flag}", typed(origin))))
        };
        if self.spread.is_none() && policy.settings().spread > LONGEST_SPREAD {
            return refused("puts the first attempt off for more than a minute", "--spread");
        }
        if self.max_attempts.is_some() || !is_flood(policy, 1) {
            return Ok(());
        }
        refused(&format!("asks for more than {AT_A_TIME} retries within a second"), "--max-attempts N")
    }

    /// The seed of the jitter: the given one, or one that no other run has.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish())
    }

    /// What the flags alone say.
    ///
    /// # Errors
    ///
    /// A value is none for its key; the flag parser has refused it before.
    pub fn flags(&self) -> Result<Draft, Fault> {
        let mut draft = Draft::default();
        for (key, value) in self.given() {
            draft.set(key, value).map_err(|bad| self.fault(&bad))?;
        }
        Ok(draft)
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let flags = [
            ("compat", &self.compat),
            ("curve", &self.curve),
            ("base", &self.base),
            ("factor", &self.factor),
            ("step", &self.step),
            ("delays", &self.delays),
            ("cap", &self.cap),
            ("jitter", &self.jitter),
            ("max_attempts", &self.max_attempts),
            ("max_elapsed", &self.max_elapsed),
            ("max_pushback", &self.max_pushback),
            ("timeout", &self.timeout),
            ("attempt_timeout", &self.attempt_timeout),
            ("spread", &self.spread),
        ];
        let repeat = self.repeat.then_some(("repeat", "true"));
        flags.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))).chain(repeat)
    }

    /// The file the policy comes from, with its name in it, as flags write it; `None` without one.
    pub(crate) fn origin(&self) -> Option<String> {
        self.read_file().ok()?.origin.clone()
    }

    /// Whether any flag says something about the policy.
    pub(crate) fn is_given(&self) -> bool {
        self.policy.is_some() || self.given().next().is_some()
    }

    /// What the file says, without what is left out of one that nobody named; nothing without a file.
    pub(crate) fn file(&self) -> Result<Draft, Fault> {
        Ok(found_limits::within(self.read_file()?, &self.flags()?, self.own_attempt).0)
    }

    /// What the user should know about the file, beside that it is used.
    pub(crate) fn remarks(&self) -> Result<Vec<String>, Fault> {
        let file = self.read_file()?;
        let (_, left_out) = found_limits::within(file, &self.flags()?, self.own_attempt);
        Ok(file.remarks.iter().cloned().chain(left_out).collect())
    }

    /// All that the file says, for those who show what a policy would do, and wait for nobody.
    pub(crate) fn all_of_file(&self) -> Result<Draft, Fault> {
        Ok(self.read_file()?.draft.clone())
    }

    /// All that there is of the file.
    pub(crate) fn whole_file(&self) -> Result<&PolicyFile, Fault> {
        self.read_file()
    }

    fn read_file(&self) -> Result<&PolicyFile, Fault> {
        let beside = match self.given().next() {
            _ if self.compat.is_some() => Beside::Profile,
            Some(_) => Beside::Flags,
            None => Beside::Nothing,
        };
        let read = || PolicyFile::read(self.policy.as_deref(), beside);
        self.file.get_or_init(read).as_ref().map_err(Fault::clone)
    }

    /// A policy that makes no sense, with the name of the flag or key.
    pub(crate) fn fault(&self, bad: &BadSetting) -> Fault {
        let problem = match bad.key {
            Some(key) if self.given().any(|(given, _)| given == key) => {
                format!("--{}: {}", key.replace('_', "-"), bad.problem)
            }
            Some(key) => format!("{key}: {}", bad.problem),
            None => bad.problem.clone(),
        };
        Fault::new(problem).hint(&bad.hint)
    }
}

/// A duration as flags give it, if it is one that can pass.
pub(crate) fn duration(text: &str) -> Result<Duration, BadSetting> {
    let given = relent::duration::parse_duration(text)?;
    if given.as_nanos() >= u64::MAX.into() {
        let (problem, hint) = ("the duration is longer than 584 years", "leave the flag out, if no limit is meant");
        return Err(BadSetting { key: None, problem: problem.to_owned(), hint: hint.to_owned() });
    }
    Ok(given)
}

/// Whether the policy makes attempt after attempt at once, for ever or as good as that.
fn is_storm(policy: &Policy) -> bool {
    const AT_ONCE: Duration = Duration::from_millis(1);
    const MANY: u32 = 1000;
    const LONG: Duration = Duration::from_secs(60);
    let settings = policy.settings();
    let ends = settings.max_elapsed.into_iter().chain(settings.timeout).any(|end| end <= LONG);
    let is_endless = settings.max_attempts.is_none_or(|most| most > MANY) && !ends;
    let later = match settings.curve {
        Curve::List { delays, .. } => delays.len().max(20),
        _ => 20,
    };
    is_endless && policy.schedule().nth(later).is_some_and(|row| row.delay.max < AT_ONCE)
}

/// For how long at most a file that was only found may put the first attempt off: whoever does not know of it waits for nothing.
const LONGEST_SPREAD: Duration = Duration::from_secs(60);

/// How many retries a file that was only found may ask for within a second.
const AT_A_TIME: usize = 20;

/// What decorrelated delays are as often below as above, about: each is three times the one before it times a random number below one, of which
/// the logarithm is -1 in the mean. Few that are much longer make the mean of what it is.
fn typical_of_decorrelated(base: Duration, nth: i32) -> Duration {
    let growth = (3.0 / std::f64::consts::E).powi(nth);
    Duration::try_from_secs_f64(base.as_secs_f64() * growth).unwrap_or(Duration::MAX)
}

/// Whether the policy makes more attempts than that by retries within a second, on average, where one may be several at a time. But for lists,
/// delays only grow.
pub(crate) fn is_flood(policy: &Policy, at_once: usize) -> bool {
    const SECOND: Duration = Duration::from_secs(1);
    // So many delays lie between the rounds of one attempt more than may be.
    let between = (AT_A_TIME + 1) / at_once.clamp(1, AT_A_TIME);
    let most = match policy.settings().curve {
        Curve::List { delays, .. } => delays.len(),
        _ => 0,
    };
    let is_decorrelated = matches!(policy.settings().jitter, Jitter::Decorrelated);
    let typical = |(nth, row): (i32, relent::Row)| match is_decorrelated {
        true => typical_of_decorrelated(row.delay.min, nth).min(row.delay.mean),
        false => row.delay.mean,
    };
    let delays: Vec<Duration> = (0..).zip(policy.schedule()).take(most + between).map(typical).collect();
    let sum = |some: &[Duration]| some.iter().fold(Duration::ZERO, |sum, one| sum.saturating_add(*one));
    delays.windows(between).any(|some| sum(some) < SECOND)
}
