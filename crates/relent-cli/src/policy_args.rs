//! The policy flags, the same in every subcommand that takes a policy.
//!
//! A flag wins over the file. The file is the one that `--policy` names, or else `relent.toml` in the working folder,
//! unless `--compat` names another system's policy: that is a whole one, whose limits no file is meant to change unasked.
//! Which of a file's policies is meant: the one named after `#`, else the unnamed one, else the only one. Flags and
//! files are read by the same code (`relent::config`), so a value means the same in both.

use crate::talk::{self, Fault};
use clap::{Args, builder::PossibleValuesParser};
use relent::{
    Policy,
    config::{BadSetting, Config, CurveName, Draft},
};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::Path,
};

/// The policy file that is found by itself.
pub const FILE: &str = "relent.toml";

/// The flags of a policy: flatten them into a subcommand's flags, then ask for the [`policy`](PolicyArgs::policy).
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Policy")]
pub struct PolicyArgs {
    /// A policy from a file; flags win [default: relent.toml, if there].
    #[arg(long, value_name = "FILE[#NAME]")]
    pub policy: Option<String>,

    /// The behaviour of another system, by name.
    #[arg(long, value_name = "NAME", value_parser = setting("compat"))]
    pub compat: Option<String>,

    /// How the delay grows: exponential (default), constant, linear,
    /// fibonacci, list, slots (random, IEEE 802.3), immediate
    #[arg(long, verbatim_doc_comment, value_name = "CURVE", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(CurveName::ALL.map(CurveName::as_str)))]
    pub curve: Option<String>,

    /// The first delay [default: 1s].
    #[arg(long, value_name = "DURATION", value_parser = setting("base"))]
    pub base: Option<String>,

    /// The multiplier of curve exponential [default: 2].
    #[arg(long, value_name = "NUMBER", value_parser = setting("factor"))]
    pub factor: Option<String>,

    /// What each failure adds, curve linear [default: the base].
    #[arg(long, value_name = "DURATION", value_parser = setting("step"))]
    pub step: Option<String>,

    /// The delays of curve list: 15s,30s,3m.
    #[arg(long, value_name = "DURATIONS", value_parser = setting("delays"))]
    pub delays: Option<String>,

    /// Repeat the last delay of the list rather than give up.
    #[arg(long)]
    pub repeat: bool,

    /// The most one delay may be, jitter included [default: 64s].
    #[arg(long, value_name = "DURATION", value_parser = setting("cap"))]
    pub cap: Option<String>,

    /// How delays are spread: full (default), none, equal,
    /// decorrelated, proportional=0.2, additive=1s
    #[arg(long, verbatim_doc_comment, value_name = "JITTER", value_parser = setting("jitter"))]
    pub jitter: Option<String>,

    /// The most attempts, the first included, or unlimited [default: 8].
    #[arg(long, value_name = "NUMBER", value_parser = setting("max_attempts"), allow_negative_numbers = true)]
    pub max_attempts: Option<String>,

    /// Start no attempt later than this [default: unlimited].
    #[arg(long, value_name = "DURATION", value_parser = setting("max_elapsed"))]
    pub max_elapsed: Option<String>,

    /// The longest wait the far side may ask for [default: 2m].
    #[arg(long, value_name = "DURATION", value_parser = setting("max_pushback"))]
    pub max_pushback: Option<String>,

    /// The longest one attempt may take [default: unlimited].
    #[arg(long, value_name = "DURATION", value_parser = setting("attempt_timeout"))]
    pub attempt_timeout: Option<String>,

    /// At most this long a random wait before attempt 1 [default: 0s].
    #[arg(long, value_name = "DURATION", value_parser = setting("spread"))]
    pub spread: Option<String>,

    /// Make the jitter the same in every run.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

/// A value parser that takes what a policy file would take for the key.
fn setting(key: &'static str) -> impl Fn(&str) -> Result<String, BadSetting> + Clone + Send + Sync + 'static {
    move |text| Draft::default().set(key, text).map(|()| text.to_owned())
}

impl PolicyArgs {
    /// The policy: the file's, with the flags over it.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has no such policy, or the policy makes no sense.
    pub fn policy(&self) -> Result<Policy, Fault> {
        self.flags()?.over(self.file()?).policy().map_err(|bad| self.fault(&bad))
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
            ("attempt_timeout", &self.attempt_timeout),
            ("spread", &self.spread),
        ];
        let repeat = self.repeat.then_some(("repeat", "true"));
        flags.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))).chain(repeat)
    }

    /// The file the policy comes from, with its name in it, as flags write it; `None` without one.
    pub(crate) fn origin(&self) -> Option<String> {
        match &self.policy {
            Some(given) if given.starts_with('#') => Some(format!("{FILE}{given}")),
            Some(given) => Some(given.clone()),
            None => self.finds_file().then(|| FILE.to_owned()),
        }
    }

    /// Whether the file that nobody named counts.
    fn finds_file(&self) -> bool {
        self.compat.is_none() && is_there(Path::new(FILE))
    }

    /// Whether any flag says something about the policy.
    pub(crate) fn is_given(&self) -> bool {
        self.policy.is_some() || self.given().next().is_some()
    }

    /// What the file says; nothing without one.
    pub(crate) fn file(&self) -> Result<Draft, Fault> {
        let (file, name) = match &self.policy {
            None => (None, None),
            Some(given) => match given.rsplit_once('#') {
                Some(("", name)) => (Some(FILE), Some(name)),
                Some((file, name)) => (Some(file), Some(name)),
                None => (Some(given.as_str()), None),
            },
        };
        match file {
            None if !self.finds_file() => Ok(Draft::default()),
            file => draft_of(Path::new(file.unwrap_or(FILE)), name),
        }
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

fn is_there(path: &Path) -> bool {
    !matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

fn draft_of(path: &Path, name: Option<&str>) -> Result<Draft, Fault> {
    let config = Config::load(path)?;
    for upstream in config.upstreams() {
        talk::note(format!("{}: [upstream.{upstream}] has no effect in this version", path.display()));
    }
    config.draft(name).map_err(|bad| Fault::new(format!("{}: {}", path.display(), bad.problem)).hint(bad.hint))
}
