//! What to do, and how safe one is: what advice says.

use super::Record;
use crate::scenario::Figure;
use relent::{
    Curve, PacerSettings, Policy,
    config::{Ceiling, CurveName, Draft},
    duration::Human,
};
use std::time::Duration;

/// Advice on a scenario, once it has been simulated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// How safe each policy is, in the order of the records.
    pub policies: Vec<Safety>,
    /// What a herd should do, where that can be said.
    pub recommended: Option<Recommended>,
    /// What a server that tells turns would do for a herd whose clients stay as they are, where it has no pacer and one helps.
    pub paced: Option<Paced>,
    /// Changes that help a stream or a chain whose calls are lost or multiplied, each tried by itself.
    pub remedies: Vec<Remedied>,
    /// What populations do to each other: each of them with each other one changed. Empty where there are none.
    pub harms: Vec<Harm>,
}

/// A population, in the same world with another one changed.
///
/// One that comes by itself is left out. Of a share of all clients the number stays as it is, or the others would be better off
/// for meeting fewer: it gets the policy and the machines of those whom it may hurt.
#[derive(Clone, Debug, PartialEq)]
pub struct Harm {
    /// The policy or run whose clients both are of.
    pub policy: String,
    /// The population that was changed.
    pub by: String,
    /// Whether it was left out; else it does as the other does.
    pub left_out: bool,
    /// The population whose figures these are.
    pub to: String,
    /// What its clients do then, under the name that it has in the outcome.
    pub record: Record,
}

impl Harm {
    /// Whether it is clearly worse off as things are than with the other one changed: fewer of its calls succeed, with more
    /// attempts, or later.
    pub fn hurts(&self, as_it_is: &Record) -> bool {
        is_clearly_worse(as_it_is, &self.record)
    }

    /// Whether it is clearly better off as things are: the other one spares it something.
    pub fn spares(&self, as_it_is: &Record) -> bool {
        !self.hurts(as_it_is) && is_clearly_worse(&self.record, as_it_is)
    }
}

fn is_clearly_worse(one: &Record, other: &Record) -> bool {
    let of = |figure: Figure| one.get(figure).zip(other.get(figure));
    of(Figure::SuccessShare).is_some_and(|(one, other)| one < other - 0.01)
        || of(Figure::AttemptsPerClient).is_some_and(|(one, other)| one > 1.1 * other)
        || of(Figure::P99S).is_some_and(|(one, other)| one > 1.1 * other + 0.01)
}

/// A change that was tried, and helped.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedied {
    /// The policy whose calls it helps.
    pub policy: String,
    /// The population or layer that is changed; `None` is all of them, or the server.
    pub whose: Option<String>,
    /// The change.
    pub remedy: Remedy,
    /// What the policy does with it.
    pub record: Record,
}

/// One change to a world, everything else the same.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Remedy {
    /// Only the layer next to the server retries, and the others pass on that it is overloaded; where it is said whose
    /// change it is, only that layer retries, and the others make one attempt.
    OneLayer,
    /// Each layer tells the one below how long it waits, which then does nothing later than that.
    Deadlines,
    /// A call makes at most so many attempts.
    Attempts(u32),
    /// The server lets in no more requests than this, which are answered in time.
    Queue(u64),
    /// The server can do so many requests a second.
    Capacity(f64),
    /// All calls together make no more retries than this share of them.
    Budget(f64),
    /// All calls of a population together make no more attempts a second than this.
    Limit(f64),
    /// Nothing is sent for so long once half of the calls of the last ten seconds have failed.
    Breaker(Duration),
    /// Who is refused is told a time of its own to come back, at this many a second.
    Pacer(f64),
}

/// How safe a policy is under a stream of calls. Everything is `None` for a herd.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Safety {
    /// Calls a second when the run ends: what a storm meets that something earlier began.
    pub calls_per_s: Option<f64>,
    /// Their first attempts' work in units of the capacity.
    pub load: Option<f64>,
    /// Whether retries can sustain a storm, and above which load; `None` where theory does not say.
    pub storm: Option<Storm>,
    /// How long after the trouble all should be well again, by theory, in seconds.
    pub recovery_by_theory_s: Option<f64>,
    /// The shortest outage that the policy does not survive, where the scenario has one outage that can be varied.
    pub fatal_outage: Option<FatalOutage>,
}

/// Whether retries can keep a storm alive that something else began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storm {
    /// They can, above this load.
    Above(SafeLoad),
    /// They cannot, at any load below the capacity.
    Never(Cure),
    /// There is nothing else: the way alone takes longer than clients wait, so no answer is in time.
    Always,
}

/// The most load at which every storm ends by itself, whatever began it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SafeLoad {
    /// In units of the capacity: 1 / attempts. Zero if attempts are not limited.
    pub share: f64,
    /// In calls a second.
    pub per_s: f64,
    /// Attempts of a call of which all fail (their mean, if it depends on luck); infinite if they are not limited.
    pub attempts: f64,
}

/// Why storms cannot sustain themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// The queue holds less work than clients wait for: whatever is let in is answered in time.
    ShortQueue,
    /// The newest request is served first: it is answered in time, however many old ones lie below it.
    NewestFirst,
    /// Clients wait as long as it takes, so no work is in vain.
    Patience,
}

impl Cure {
    /// The name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cure::ShortQueue => "short queue",
            Cure::NewestFirst => "newest first",
            Cure::Patience => "patience",
        }
    }
}

/// The shortest fatal outage, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FatalOutage {
    /// The longest outage that was tried and survived.
    pub survived: Option<Duration>,
    /// The shortest outage that was tried and fatal; `None` if none was.
    pub fatal: Option<Duration>,
    /// By theory, where there is one: the queue must come to hold more work than clients wait for.
    pub theory: Option<Duration>,
    /// Whether the search ended early because it would have taken too many attempts.
    pub too_dear: bool,
}

/// A policy for the herd of a scenario, and what it did there.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommended {
    /// The policy.
    pub policy: Policy,
    /// What it does after a failure.
    pub shape: Shape,
    /// Clients / capacity, in seconds: what nobody can beat.
    pub ideal_s: f64,
    /// How much longer than that the first attempts are spread: 0.05 is 5 %.
    pub margin: f64,
    /// The requests that must find room in the server's queue so that hardly one is refused, if the clients came within
    /// clients / capacity: `2 sqrt(N)`.
    pub queue_room: u64,
    /// Whether the queue is too short even for the longer time: then some are refused.
    pub queue_too_short: bool,
    /// What it did in the scenario's world, under the name `recommended`.
    pub record: Record,
    /// A policy of the scenario that does as well, or better: then there is nothing to change.
    pub as_good: Option<String>,
}

/// A pacer at the server, tried with a herd whose clients stay as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Paced {
    /// The pacer: each client that is refused is told a time of its own to come back.
    pub pacer: PacerSettings,
    /// The policy of the scenario that the clients have; it is the one that does best alone.
    pub policy: String,
    /// The longest that clients must be willing to wait when they are told, if that is longer than the policy says.
    pub max_pushback: Option<Duration>,
    /// What they did in the scenario's world, under the name `"POLICY + pacer"`.
    pub record: Record,
}

impl Paced {
    /// The pacer as a table of a scenario file; in `relent.toml`, the same key stands in `[server.NAME]`.
    ///
    /// ```
    /// use relent::Policy;
    /// use relent_sim::{Control, Effort, Figure, Scenario, Service, World, advise, simulate};
    /// use std::time::Duration;
    ///
    /// let mut service = Service::herd(1000, 50.0);
    /// service.server.queue = Some(50);
    /// let usual = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
    /// let scenario = Scenario::new("reconnect", World::Service(service)).policy("usual", usual);
    /// let mut outcome = simulate(&scenario).unwrap();
    /// advise(&scenario, &mut outcome, 1, Effort::Short, &Control::default());
    ///
    /// let paced = outcome.advice.unwrap().paced.unwrap();
    /// assert_eq!(paced.toml(), "[server]\npacer = { capacity = 50, horizon = \"1m\" }");
    /// assert!(paced.record.get(Figure::AttemptsPerClient).unwrap() < 2.0);
    /// ```
    pub fn toml(&self) -> String {
        let PacerSettings { capacity, horizon, kept, .. } = self.pacer;
        let kept = if kept < 1.0 { format!(", kept = {kept}") } else { String::new() };
        format!("[server]\npacer = {{ capacity = {capacity}, horizon = \"{}\"{kept} }}", Human(horizon))
    }
}

/// What a recommended policy does after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It waits the same time again over which the first attempts were spread.
    Steady,
    /// Its delays grow from a small part of that time.
    Growing,
}

/// The name of the record.
pub(crate) const NAME: &str = "recommended";

impl Recommended {
    /// The first delay after a failure, without jitter.
    pub fn base(&self) -> Duration {
        match self.policy.settings().curve {
            Curve::Exponential { base, .. } | Curve::Constant { base } => base,
            _ => Duration::ZERO,
        }
    }

    /// The keys that matter.
    fn draft(&self) -> Draft {
        let settings = self.policy.settings();
        let (curve, base) = match self.shape {
            Shape::Steady => (CurveName::Constant, self.base()),
            Shape::Growing => (CurveName::Exponential, self.base()),
        };
        let mut draft = Draft::default();
        (draft.curve, draft.base, draft.cap) = (Some(curve), Some(base), settings.cap.map(Ceiling::At));
        (draft.jitter, draft.max_attempts) = (Some(settings.jitter), Some(Ceiling::Unlimited));
        draft.attempt_timeout = settings.attempt_timeout.map(Ceiling::At);
        draft.spread = (!settings.spread.is_zero()).then_some(settings.spread);
        draft
    }

    /// The policy as a table of a policy or scenario file.
    pub fn toml(&self) -> String {
        format!("[policy.{NAME}]\n{}", self.draft())
    }

    /// The policy as the flags of any `relent` command, and of `relent simulate`.
    pub fn flags(&self) -> String {
        let draft = self.draft().to_string();
        let flag = |line: &str| {
            let (key, value) = line.split_once(" = ")?;
            let value = value.trim_matches(['"', '{', '}', ' ']).replace(" = ", "=").replace('"', "");
            Some(format!("--{} {value}", key.replace('_', "-")))
        };
        let (spread, rest): (Vec<String>, Vec<String>) =
            draft.lines().filter_map(flag).partition(|flag| flag.starts_with("--spread"));
        [spread, rest].concat().join(" ")
    }
}
