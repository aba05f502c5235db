//! What is wrong with a policy that makes sense to the machine: warnings with a number each.
//!
//! [`Settings::policy`](crate::Settings::policy) refuses what cannot be meant. Warnings are about what can be meant
//! and still hurts: clients that stay in step, calls that never end, attempts that never happen. Every warning carries
//! the number that says how bad it is. Rules that are black boxes (other systems' profiles, the user's own) are judged
//! by what they do: they are run for a herd of 512 clients with evenly spread draws.

use crate::core::{backoff::Step, curve::Curve, jitter::Jitter, policy::Policy, rng, time::nanos, verdict::Verdict};
use core::{fmt, time::Duration};

/// Something about a policy that its user should know, with the number that says how bad it is.
///
/// Its `Display` is one sentence for people, [`name`](Warning::name) one word for machines, [`hint`](Warning::hint)
/// what to do about it.
///
/// ```
/// use relent::{Jitter, Policy, Warning};
/// use std::time::Duration;
///
/// let policy = Policy::constant(Duration::from_secs(5)).jitter(Jitter::None);
/// let warning = policy.warnings().next().unwrap();
/// assert_eq!(warning.name(), "no_jitter");
/// assert!(warning.to_string().starts_with("no jitter: 100 % of the clients that fail together"));
/// assert_eq!(Policy::default().warnings().filter(|w| !w.is_note()).count(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Clients that failed together wait the identical time, attempt after attempt.
    NoJitter {
        /// The first delay above zero, the same for all.
        delay: Duration,
    },
    /// Delays are spread at first, but many clients end up waiting the identical time.
    JitterDies {
        /// The first attempt before which they do.
        attempt: u32,
        /// The share of clients that wait the identical time in the end, 0 to 1.
        share: f64,
        /// That time.
        delay: Duration,
    },
    /// Delays are spread in the end, but before one attempt many clients wait the identical time.
    InStep {
        /// The attempt before which most do.
        attempt: u32,
        /// The share of them that do, 0 to 1.
        share: f64,
        /// That time.
        delay: Duration,
    },
    /// Nothing ends a call that keeps failing: neither attempts nor time are limited.
    NoLimit {
        /// Attempts in the first day, if they take no time; `None` if there is no delay to slow them down.
        attempts_in_a_day: Option<u64>,
    },
    /// A delay can be zero, so that some clients retry at once.
    ZeroDelay {
        /// The attempt before which most clients do.
        attempt: u32,
        /// The share of them that do, 0 to 1.
        share: f64,
        /// What counts as at once: zero, or less than a millisecond where exactly zero is rare.
        within: Duration,
    },
    /// `max_elapsed` ends calls before `max_attempts` can.
    AttemptsDoNotFit {
        /// Attempts allowed.
        max_attempts: u32,
        /// The limit they do not fit in.
        max_elapsed: Duration,
        /// Attempts that begin in time if every delay is the least possible and attempts take no time.
        at_most: u32,
        /// Attempts that begin in time if every delay is the mean and attempts take no time.
        typical: u32,
        /// The same if every attempt runs into the attempt timeout; equal to `typical` without one.
        timed_out: u32,
    },
    /// The delays end before `max_attempts` is reached.
    EndsEarly {
        /// Attempts allowed.
        max_attempts: u32,
        /// Attempts there are delays for.
        attempts: u32,
    },
    /// `max_elapsed` is set but an attempt that hangs is not ended by anything.
    AttemptCanHang {
        /// The limit that does not hold for an attempt under way.
        max_elapsed: Duration,
    },
}

impl Warning {
    /// The warning as one word, as JSON writes it: `"no_jitter"`.
    pub const fn name(&self) -> &'static str {
        match self {
            Warning::NoJitter { .. } => "no_jitter",
            Warning::JitterDies { .. } => "jitter_dies",
            Warning::InStep { .. } => "in_step",
            Warning::NoLimit { .. } => "no_limit",
            Warning::ZeroDelay { .. } => "zero_delay",
            Warning::AttemptsDoNotFit { .. } => "attempts_do_not_fit",
            Warning::EndsEarly { .. } => "ends_early",
            Warning::AttemptCanHang { .. } => "attempt_can_hang",
        }
    }

    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Warning::NoJitter { .. } => "full jitter spreads them over the whole delay",
            Warning::JitterDies { .. } => {
                "jitter has to be drawn below the cap, not cut at it: use jitter full or equal"
            }
            Warning::InStep { .. } => "full jitter spreads every delay, the first as well",
            Warning::NoLimit { .. } => "set max_attempts or max_elapsed",
            Warning::ZeroDelay { .. } => {
                "a first delay above zero with jitter equal or proportional keeps away from zero"
            }
            Warning::AttemptsDoNotFit { .. } => "raise max_elapsed, or lower max_attempts or the cap",
            Warning::EndsEarly { .. } => "let the list repeat, or lower max_attempts",
            Warning::AttemptCanHang { .. } => "set attempt_timeout",
        }
    }

    /// Whether it is worth knowing rather than worth changing: an expected price of something good.
    pub fn is_note(&self) -> bool {
        match *self {
            Warning::ZeroDelay { share, .. } => share < HOT,
            Warning::InStep { share, .. } => share < 0.5,
            Warning::AttemptsDoNotFit { max_attempts, typical, .. } => typical >= max_attempts,
            Warning::AttemptCanHang { .. } | Warning::EndsEarly { .. } => true,
            _ => false,
        }
    }
}

/// A share of clients that come back within a millisecond above which it is a load, not a tail.
const HOT: f64 = 0.1;

/// A share of identical delays from which on jitter counts as dying.
const DYING: f64 = 0.05;

/// A share of identical delays before one attempt from which on clients count as being in step.
const IN_STEP: f64 = 0.2;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::core::duration::Human;
        match *self {
            Warning::NoJitter { delay } => {
                let delay = Human(delay);
                write!(f, "no jitter: 100 % of the clients that fail together come back together, first after {delay}")
            }
            Warning::JitterDies { attempt, share, delay } => {
                let (share, delay) = (Percent(share), Human(delay));
                write!(f, "jitter dies: from attempt {attempt} on, {share} of clients wait the identical {delay}")
            }
            Warning::InStep { attempt, share, delay } => {
                let (share, delay) = (Percent(share), Human(delay));
                write!(f, "in step: before attempt {attempt}, {share} of clients wait the identical {delay}")
            }
            Warning::NoLimit { attempts_in_a_day: Some(count) } => {
                let count = three_digits(count);
                write!(f, "no limit: a call that keeps failing makes about {count} attempts in a day and never ends")
            }
            Warning::NoLimit { attempts_in_a_day: None } => {
                write!(f, "no limit: a call that keeps failing is repeated without a pause and never ends")
            }
            Warning::ZeroDelay { attempt, share, within } => {
                let share = Percent(share);
                write!(f, "a delay can be zero: before attempt {attempt}, {share} of clients ")?;
                if within.is_zero() {
                    f.write_str("do not wait at all")
                } else {
                    write!(f, "wait less than {}", Human(within))
                }
            }
            Warning::AttemptsDoNotFit { max_attempts, max_elapsed, at_most, typical, timed_out } => {
                let max_elapsed = Human(max_elapsed);
                write!(f, "attempts do not fit: of {max_attempts} allowed, ")?;
                if at_most < max_attempts {
                    write!(f, "never more than {at_most} begin within {max_elapsed}")
                } else if typical < max_attempts {
                    write!(f, "about {typical} begin within {max_elapsed}")
                } else {
                    write!(f, "about {timed_out} begin within {max_elapsed} if each runs into its timeout")
                }
            }
            Warning::EndsEarly { max_attempts, attempts } => {
                write!(f, "delays end early: of {max_attempts} attempts allowed, there are delays for {attempts}")
            }
            Warning::AttemptCanHang { max_elapsed } => {
                let max_elapsed = Human(max_elapsed);
                write!(f, "an attempt can hang: max_elapsed {max_elapsed} ends no attempt that is under way")
            }
        }
    }
}

/// A share as people read it, to a tenth of a percent.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 1000.0 + 0.5) as u64;
        match (tenths / 10, tenths % 10) {
            (0, 0) => f.write_str("less than 0.1 %"),
            (whole, 0) => write!(f, "{whole} %"),
            (whole, tenth) => write!(f, "{whole}.{tenth} %"),
        }
    }
}

/// A count rounded to three digits.
fn three_digits(count: u64) -> u64 {
    let place = 10u64.pow(count.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (count / place).saturating_mul(place)
}

impl Policy {
    /// What the user of this policy should know, the worst first; nothing for a policy without fault.
    ///
    /// Costs some hundred thousand steps and 13 KiB of stack, so it is for tools and tests rather than for every call.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> + use<> {
        let behaviour = Behaviour::of(self);
        let found = [
            self.no_limit(),
            behaviour.no_jitter(),
            behaviour.jitter_dies(),
            behaviour.in_step(),
            self.zero_delay(&behaviour),
            self.attempts_do_not_fit(),
            self.ends_early(&behaviour),
            self.attempt_can_hang(),
        ];
        let of_kind = move |note| found.into_iter().flatten().filter(move |warning| warning.is_note() == note);
        of_kind(false).chain(of_kind(true))
    }

    fn no_limit(&self) -> Option<Warning> {
        let settings = self.settings();
        if settings.max_attempts.is_some() || settings.max_elapsed.is_some() {
            return None;
        }
        let mut last = None;
        for row in self.schedule().take(ROWS as usize) {
            if nanos(row.total.mean) > DAY {
                return Some(Warning::NoLimit { attempts_in_a_day: Some(u64::from(row.attempt - 1)) });
            }
            last = Some(row);
        }
        let last = last.filter(|row| row.attempt > ROWS)?;
        let more = (DAY - nanos(last.total.mean)).checked_div(nanos(last.delay.mean));
        Some(Warning::NoLimit { attempts_in_a_day: more.map(|more| more + u64::from(last.attempt)) })
    }

    fn zero_delay(&self, behaviour: &Behaviour) -> Option<Warning> {
        let first = self.schedule().take(ROWS as usize).find(|row| row.delay.min.is_zero())?;
        let within = Duration::from_nanos(MILLISECOND);
        if let (Jitter::Full, false) = (self.settings().jitter, matches!(self.settings().curve, Curve::Custom(_))) {
            let width = nanos(first.delay.max).max(1);
            let share = (MILLISECOND as f64 / width as f64).min(1.0);
            return Some(Warning::ZeroDelay { attempt: first.attempt, share, within });
        }
        let told = |(share, attempt), within| Warning::ZeroDelay { attempt, share, within };
        Some(match (behaviour.not_at_all, behaviour.soonest) {
            (zero, _) if zero.0 > RARE => told(zero, Duration::ZERO),
            (_, soon) if soon.0 > 0.0 => told(soon, within),
            _ => told((0.0, first.attempt), within),
        })
    }

    fn attempts_do_not_fit(&self) -> Option<Warning> {
        let settings = self.settings();
        let (max_attempts, max_elapsed) = (settings.max_attempts?, settings.max_elapsed?);
        let timeout = settings.attempt_timeout.unwrap_or(Duration::ZERO);
        let (mut at_most, mut typical, mut timed_out, mut rows) = (1, 1, 1, 1);
        for row in self.schedule().take(MOST_ROWS as usize) {
            let attempts = timeout.saturating_mul(row.attempt - 1);
            rows = row.attempt;
            at_most += u32::from(row.total.min <= max_elapsed);
            typical += u32::from(row.total.mean <= max_elapsed);
            timed_out += u32::from(row.total.mean.saturating_add(attempts) <= max_elapsed);
        }
        // What the delays themselves, or the patience of this check, do not reach is not the limit's fault.
        (timed_out < rows).then_some(Warning::AttemptsDoNotFit {
            max_attempts,
            max_elapsed,
            at_most: if at_most == rows { max_attempts } else { at_most },
            typical: if typical == rows { max_attempts } else { typical },
            timed_out,
        })
    }

    fn ends_early(&self, behaviour: &Behaviour) -> Option<Warning> {
        let max_attempts = self.settings().max_attempts?;
        let attempts = behaviour.rows + 1;
        (behaviour.ended && attempts < max_attempts).then_some(Warning::EndsEarly { max_attempts, attempts })
    }

    fn attempt_can_hang(&self) -> Option<Warning> {
        let settings = self.settings();
        let max_elapsed = settings.max_elapsed?;
        settings.attempt_timeout.is_none().then_some(Warning::AttemptCanHang { max_elapsed })
    }
}

/// A share of delays of exactly zero up to which they are no more than the end of a range.
const RARE: f64 = 0.005;

const MILLISECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * 1_000_000_000;

/// Retries a herd is watched for: doubling a millisecond that often is half a million years.
const ROWS: u32 = 64;

/// Retries over which a share is averaged.
const RECENT: u32 = 8;

/// Retries that are counted against `max_elapsed`, so that the check ends whatever `max_attempts` is.
const MOST_ROWS: u32 = 1_000;

/// What a herd does under a policy.
#[derive(Default)]
struct Behaviour {
    /// Retries watched.
    rows: u32,
    /// Whether the delays ended by themselves.
    ended: bool,
    /// Whether all clients waited the identical time before every retry.
    in_step: bool,
    /// The first delay that is not zero.
    first: u64,
    /// The least share of clients that waited the identical time before a retry so far.
    least_share: f64,
    /// The retries up to now before which far more did, if there are any.
    run: Run,
    /// The greatest share of clients that waited the identical time, before which attempt, and that time.
    most_alike: (f64, u32, u64),
    /// The greatest share of clients that did not wait at all, and before which attempt.
    not_at_all: (f64, u32),
    /// The greatest share of clients that came back within a millisecond, and before which attempt.
    soonest: (f64, u32),
}

/// Consecutive retries before which more clients than before waited the identical time.
#[derive(Clone, Copy, Default)]
struct Run {
    attempt: u32,
    rows: u32,
    /// The share of those who did, averaged over the last eight or so: what it settles at.
    share: f64,
    delay: u64,
}

impl Behaviour {
    fn of(policy: &Policy) -> Behaviour {
        let mut behaviour = Behaviour { in_step: true, least_share: 1.0, ..Behaviour::default() };
        let mut herd = Herd::new(policy);
        let most = policy.settings().max_attempts.map_or(ROWS, |most| ROWS.min(most - 1));
        while behaviour.rows < most {
            let Some(delays) = herd.wait(policy) else {
                behaviour.ended = true;
                break;
            };
            behaviour.rows += 1;
            behaviour.watch(delays);
        }
        behaviour
    }

    /// Takes in the sorted delays of all clients before the next retry.
    fn watch(&mut self, delays: &[u64]) {
        let count = delays.len() as f64;
        let (same, delay) = most_frequent(delays);
        let share = same as f64 / count;
        let attempt = self.rows + 1;
        if self.first == 0 {
            self.first = delay;
        }
        self.in_step &= share == 1.0;
        if share > self.most_alike.0 {
            self.most_alike = (share, attempt, delay);
        }
        // A delay as long as time itself is one that was cut off there, by no cap of the policy's.
        if share >= DYING && share > 2.0 * self.least_share && delay > 0 && delay < u64::MAX {
            let run = Run { attempt, delay, ..Run::default() };
            let run = if self.run.rows > 0 { self.run } else { run };
            let rows = run.rows + 1;
            let recent = run.share + (share - run.share) / f64::from(rows.min(RECENT));
            self.run = Run { rows, share: recent, delay, ..run };
        } else {
            self.run = Run::default();
        }
        self.least_share = self.least_share.min(share);
        let within = |limit| delays.partition_point(|&delay| delay < limit) as f64 / count;
        for (greatest, share) in [(&mut self.not_at_all, within(1)), (&mut self.soonest, within(MILLISECOND))] {
            if share > greatest.0 {
                *greatest = (share, attempt);
            }
        }
    }

    fn no_jitter(&self) -> Option<Warning> {
        (self.in_step && self.first > 0).then_some(Warning::NoJitter { delay: Duration::from_nanos(self.first) })
    }

    /// Not where all clients are in step all the time or in the end, which is worse and told by other warnings, and
    /// not where they do not wait at all.
    fn in_step(&self) -> Option<Warning> {
        let (share, attempt, delay) = self.most_alike;
        let is_told = self.in_step || self.run.rows > 0 || share == self.not_at_all.0;
        let delay = Duration::from_nanos(delay);
        (share >= IN_STEP && !is_told).then_some(Warning::InStep { attempt, share, delay })
    }

    fn jitter_dies(&self) -> Option<Warning> {
        let Run { attempt, rows, share, delay } = self.run;
        let delay = Duration::from_nanos(delay);
        (rows > 0).then_some(Warning::JitterDies { attempt, share, delay })
    }
}

/// The longest run of equal values among sorted ones, and its value.
fn most_frequent(sorted: &[u64]) -> (usize, u64) {
    sorted.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0])).max().unwrap_or_default()
}

/// Clients that all fail at once, each time. Their draws before a retry are spread evenly, in another order each time.
struct Herd {
    failures: u32,
    memory: [u64; Herd::COUNT],
    elapsed: [u64; Herd::COUNT],
    delays: [u64; Herd::COUNT],
}

impl Herd {
    const COUNT: usize = 512;
    const STRATUM: u64 = u64::MAX / Herd::COUNT as u64;

    fn new(policy: &Policy) -> Herd {
        let zero = [0; Herd::COUNT];
        Herd { failures: 0, memory: [policy.first_memory(); Herd::COUNT], elapsed: zero, delays: zero }
    }

    /// The sorted delays of all clients that wait once more; `None` when none does.
    fn wait(&mut self, policy: &Policy) -> Option<&[u64]> {
        self.failures += 1;
        let order = rng::mix(u64::from(self.failures));
        let mut live = 0;
        for i in 0..Herd::COUNT {
            let stratum = (i as u64).wrapping_mul(order | 1).wrapping_add(order >> 32) % Herd::COUNT as u64;
            let within = rng::scale(rng::draw(order, i as u32), Herd::STRATUM);
            let mut step = Step {
                failures: self.failures,
                elapsed: Duration::from_nanos(self.elapsed[i]),
                verdict: Verdict::Transient,
                draw: stratum * Herd::STRATUM + within,
                memory: self.memory[i],
            };
            let Some(delay) = policy.delay(&mut step) else { continue };
            self.memory[i] = step.memory;
            self.elapsed[i] = self.elapsed[i].saturating_add(delay);
            self.delays[live] = delay;
            live += 1;
        }
        let delays = &mut self.delays[..live];
        delays.sort_unstable();
        (live > 0).then_some(delays)
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::{Backoff, Settings};
    use std::{
        string::{String, ToString},
        vec::Vec,
    };

    const SEC: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);

    fn told(policy: Policy) -> Vec<String> {
        policy.warnings().map(|warning| warning.to_string()).collect()
    }

    fn names(policy: Policy) -> Vec<&'static str> {
        policy.warnings().map(|warning| warning.name()).collect()
    }

    /// A rule written as a closure's function: failures, draw, memory.
    struct Rule(&'static str, fn(u32, f64, &mut u64) -> Option<Duration>);

    impl fmt::Debug for Rule {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Backoff for Rule {
        fn name(&self) -> &str {
            self.0
        }
        fn delay(&self, step: &mut Step) -> Option<Duration> {
            (self.1)(step.failures, rng::unit(step.draw), &mut step.memory)
        }
    }

    /// `min(2^n + random milliseconds, 32 s)`.
    static GOOGLE_CLOUD: Rule = Rule("google-cloud", |k, r, _| {
        let seconds = 2f64.powi(k.min(40) as i32 - 1) + (r * 1000.0).floor() / 1000.0;
        Some(Duration::from_secs_f64(seconds.min(32.0)))
    });

    /// `min(cap, U[base, 3 * previous))`, the draw clipped.
    static CLIPPED_DECORRELATED: Rule = Rule("clipped", |_, r, previous| {
        let before = (*previous).max(100_000_000) as f64;
        *previous = (100e6 + r * (3.0 * before - 100e6)).min(10e9) as u64;
        Some(Duration::from_nanos(*previous))
    });

    #[test]
    fn a_policy_without_fault_has_no_warnings() {
        let policy = Policy::default().jitter(Jitter::Equal);
        assert!(names(policy).is_empty());
        assert!(names(policy.max_elapsed(600 * SEC).attempt_timeout(SEC)).is_empty());
        assert!(names(Policy::default().max_attempts(1).jitter(Jitter::None)).is_empty(), "nothing is retried");
    }

    #[test]
    fn the_default_policy_has_one_note() {
        assert_eq!(
            told(Policy::default()),
            ["a delay can be zero: before attempt 2, 0.1 % of clients wait less than 1ms"]
        );
        assert!(Policy::default().warnings().all(|warning| warning.is_note()));
    }

    #[test]
    fn no_jitter() {
        let policy = Policy::exponential(SEC).jitter(Jitter::None);
        let text = "no jitter: 100 % of the clients that fail together come back together, first after 1s";
        assert_eq!(told(policy), [text]);
        assert_eq!(names(Policy::list(&[SEC, SEC])), ["no_jitter"]);
        assert_eq!(names(Policy::list(&[Duration::ZERO, SEC])), ["no_jitter", "zero_delay"]);
        assert_eq!(names(policy.jitter(Jitter::Proportional(0.0))), ["no_jitter"]);
    }

    /// The built-in jitters keep their width at the cap, so none of them dies, whatever the curve.
    #[test]
    fn no_jitter_of_ours_dies_at_the_cap() {
        for curve in [Policy::exponential(SEC), Policy::constant(SEC), Policy::fibonacci(SEC), Policy::linear(SEC)] {
            for jitter in
                [Jitter::Full, Jitter::Equal, Jitter::Proportional(0.2), Jitter::Additive(SEC), Jitter::Decorrelated]
            {
                let policy = curve.cap(10 * SEC).jitter(jitter).max_attempts(60);
                assert!(policy.warnings().all(|warning| warning.is_note()), "{policy:?}: {:?}", told(policy));
            }
        }
        let half = "a delay can be zero: before attempt 2, 50 % of clients do not wait at all";
        assert_eq!(told(Policy::slots(Duration::from_micros(51))), [half]);
    }

    #[test]
    fn jitter_that_is_clipped_dies() {
        let policy = Policy::custom(&GOOGLE_CLOUD).max_attempts(20);
        assert_eq!(told(policy), ["jitter dies: from attempt 7 on, 100 % of clients wait the identical 32s"]);
        assert!(names(policy.max_attempts(6)).is_empty(), "it does not get there");
    }

    /// A third of the clipped draws lie on the cap: 31.6 % in the stationary state.
    #[test]
    fn the_share_that_is_in_step_is_measured() {
        let policy = Policy::custom(&CLIPPED_DECORRELATED).max_attempts(60);
        let [Warning::JitterDies { share, delay, attempt }] = policy.warnings().collect::<Vec<_>>()[..] else {
            panic!("{:?}", told(policy));
        };
        assert_eq!(delay, 10 * SEC);
        assert!((share - 0.316).abs() < 0.02, "{share}");
        assert!((6..=12).contains(&attempt), "{attempt}");
    }

    /// As in gRPC's connections: the first delay is exact, the later ones are not.
    #[test]
    fn clients_that_are_in_step_once() {
        static FIRST: Rule =
            Rule("first", |k, r, _| Some(SEC * k + if k > 1 { SEC.mul_f64(r) } else { Duration::ZERO }));
        let policy = Policy::custom(&FIRST).max_attempts(9);
        assert_eq!(told(policy), ["in step: before attempt 2, 100 % of clients wait the identical 1s"]);
        static COARSE: Rule = Rule("coarse", |_, r, _| Some(SEC + SEC * (r * 4.0) as u32));
        let note = Policy::custom(&COARSE).max_attempts(9).warnings().next().unwrap();
        assert_eq!((note.name(), note.is_note()), ("in_step", true));
        assert!(note.to_string().contains("25 % of clients wait the identical"), "{note}");
    }

    /// Time ends after 584 years; what would be later is no cap that all clients meet at.
    #[test]
    fn delays_beyond_time_are_not_in_step() {
        static ENDLESS: Rule = Rule("endless", |k, r, _| {
            Some(Duration::try_from_secs_f64(r * 2f64.powi(k.min(900) as i32)).unwrap_or(Duration::MAX))
        });
        let policy = Settings { max_attempts: None, ..Policy::custom(&ENDLESS).settings() }.policy().unwrap();
        let told = told(policy);
        assert_eq!(told[0], "no limit: a call that keeps failing makes about 17 attempts in a day and never ends");
        assert!(!names(policy).contains(&"jitter_dies"), "{told:?}");
    }

    #[test]
    fn no_limit() {
        let policy = Policy::constant(SEC).jitter(Jitter::Equal).unlimited_attempts();
        let text = "no limit: a call that keeps failing makes about 115000 attempts in a day and never ends";
        assert_eq!(told(policy), [text]);
        assert!(names(policy.max_elapsed(60 * SEC).attempt_timeout(SEC)).is_empty());
        assert_eq!(names(Policy::immediate().unlimited_attempts()), ["no_limit", "zero_delay"]);
        assert_eq!(names(Policy::slots(SEC)), ["zero_delay"], "slots give up after the 16th attempt");
    }

    #[test]
    fn zero_delays() {
        let hot = Policy::exponential(2 * MS);
        assert_eq!(told(hot), ["a delay can be zero: before attempt 2, 50 % of clients wait less than 1ms"]);
        assert!(!hot.warnings().next().unwrap().is_note());
        assert_eq!(
            told(Policy::immediate().max_attempts(3)),
            ["a delay can be zero: before attempt 2, 100 % of clients do not wait at all"]
        );
        let long = told(Policy::constant(3600 * SEC));
        assert_eq!(long, ["a delay can be zero: before attempt 2, less than 0.1 % of clients wait less than 1ms"]);
    }

    #[test]
    fn attempts_that_do_not_fit() {
        let policy = Policy::constant(10 * SEC).jitter(Jitter::Equal).max_attempts(8).attempt_timeout(5 * SEC);
        let fit = |limit: Duration| {
            let warning = policy.max_elapsed(limit).warnings().next();
            warning.map(|warning| (warning.is_note(), warning.to_string()))
        };
        let start = "attempts do not fit: of 8 allowed, ";
        assert_eq!(fit(30 * SEC), Some((false, start.to_string() + "never more than 7 begin within 30s")));
        assert_eq!(fit(40 * SEC), Some((false, start.to_string() + "about 6 begin within 40s")));
        let slow = " if each runs into its timeout";
        assert_eq!(fit(60 * SEC), Some((true, start.to_string() + "about 5 begin within 1m" + slow)));
        assert_eq!(fit(90 * SEC), None);
    }

    #[test]
    fn limits_that_never_apply() {
        assert_eq!(
            told(Policy::list(&[SEC]).max_attempts(5)),
            [
                "no jitter: 100 % of the clients that fail together come back together, first after 1s",
                "delays end early: of 5 attempts allowed, there are delays for 2",
            ]
        );
        let policy = Policy::default().jitter(Jitter::Equal).max_elapsed(600 * SEC);
        assert_eq!(told(policy), ["an attempt can hang: max_elapsed 10m ends no attempt that is under way"]);
    }

    #[test]
    fn whatever_the_policy_the_check_ends() {
        for cap in [1, 1_000_000_000, u64::MAX] {
            for jitter in [Jitter::None, Jitter::Full, Jitter::Decorrelated] {
                let settings = Settings {
                    curve: Curve::Exponential { base: Duration::from_nanos(1), factor: f64::MAX },
                    cap: Some(Duration::from_nanos(cap)),
                    jitter,
                    max_attempts: Some(u32::MAX - 1),
                    max_elapsed: Some(Duration::MAX - SEC),
                    ..Settings::default()
                };
                settings.policy().unwrap().warnings().for_each(drop);
            }
        }
    }
}
