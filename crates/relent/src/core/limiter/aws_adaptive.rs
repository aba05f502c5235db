//! The AWS SDKs' adaptive mode: a rate that grows by CUBIC and is cut when the far side throttles.
//!
//! Source: botocore 1.35.99 and 1.44.5 (`retries/adaptive.py`, `bucket.py`, `throttling.py`); the curve is that of
//! RFC 8312. Nothing is limited before the first throttling. All of it in doubles, as there.

use super::answer::LimitAnswer;
use crate::core::{cells::Cells, float::cbrt, outcome::Outcome, time::Timestamp, word::Word};
use core::time::Duration;

const BETA: f64 = 0.7;
const SCALE: f64 = 0.4;
const SMOOTHING: f64 = 0.8;
const MIN_RATE: f64 = 0.5;
const MIN_CAPACITY: f64 = 1.0;
const MOST_OVER_MEASURED: f64 = 2.0;

/// CUBIC, as the AWS SDKs compute it: rates a second, times in seconds.
///
/// ```
/// let mut cubic = relent::AwsCubic::new(10.0, 5.0);
/// assert!((cubic.success(5.0) - 7.0).abs() < 1e-9);
/// assert!((cubic.success(11.0) - 36.425998516920465).abs() < 1e-8);
/// assert!((cubic.throttle(10.0, 11.0) - 7.0).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AwsCubic {
    /// The rate before the last throttling.
    pub w_max: f64,
    /// How long after it the rate is `w_max` again.
    pub k: f64,
    /// When it was.
    pub last_throttle: f64,
}

impl AwsCubic {
    /// As if throttled at `start` with this rate.
    pub fn new(w_max: f64, start: f64) -> AwsCubic {
        AwsCubic { w_max, k: zero_point(w_max), last_throttle: start }
    }

    /// The rate after a success.
    pub fn success(&self, t: f64) -> f64 {
        let x = t - self.last_throttle - self.k;
        SCALE * (x * x * x) + self.w_max
    }

    /// The rate after throttling at this rate.
    pub fn throttle(&mut self, rate: f64, t: f64) -> f64 {
        *self = AwsCubic::new(rate, t);
        rate * BETA
    }
}

fn zero_point(w_max: f64) -> f64 {
    cbrt((w_max * (1.0 - BETA)) / SCALE)
}

/// The measured rate of answers, in half seconds, smoothed.
///
/// ```
/// let mut clocker = relent::AwsClocker::new(0.0);
/// assert_eq!(clocker.record(0.5), 1.6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AwsClocker {
    /// Answers a second.
    pub rate: f64,
    /// When the current half second began.
    pub bucket: f64,
    /// Answers in it.
    pub count: f64,
}

impl AwsClocker {
    /// Nothing measured yet; `start` in seconds, whose fraction does not count.
    pub fn new(start: f64) -> AwsClocker {
        AwsClocker { rate: 0.0, bucket: start as u64 as f64, count: 0.0 }
    }

    /// Counts an answer, and says the rate.
    pub fn record(&mut self, t: f64) -> f64 {
        let bucket = (t * 2.0) as u64 as f64 / 2.0;
        self.count += 1.0;
        if bucket > self.bucket {
            let current = self.count / (bucket - self.bucket);
            self.rate = (current * SMOOTHING) + (self.rate * (1.0 - SMOOTHING));
            self.count = 0.0;
            self.bucket = bucket;
        }
        self.rate
    }
}

/// The token bucket of the adaptive mode.
///
/// ```
/// let mut bucket = relent::AwsBucket::new(10.0, 0.0);
/// assert!(!bucket.acquire(1.0, 0.0));
/// assert!(bucket.acquire(1.0, 0.5));
/// assert_eq!(bucket.capacity, 4.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AwsBucket {
    /// Tokens a second, at least 0.5.
    pub fill_rate: f64,
    /// The most tokens there can be, at least 1.
    pub max_capacity: f64,
    /// Tokens there are.
    pub capacity: f64,
    /// When they were counted.
    pub last: f64,
}

impl AwsBucket {
    /// An empty bucket.
    pub fn new(rate: f64, start: f64) -> AwsBucket {
        let (fill_rate, max_capacity) = (rate.max(MIN_RATE), rate.max(MIN_CAPACITY));
        AwsBucket { fill_rate, max_capacity, capacity: 0.0, last: start }
    }

    /// Takes so many tokens, if they are there.
    pub fn acquire(&mut self, amount: f64, t: f64) -> bool {
        self.refill(t);
        let enough = amount <= self.capacity;
        if enough {
            self.capacity -= amount;
        }
        enough
    }

    /// Seconds until so many tokens are there.
    ///
    /// ```
    /// # use relent::AwsBucket;
    /// let bucket = AwsBucket::new(2.0, 0.0);
    /// assert_eq!(bucket.wait(1.0), 0.5);
    /// ```
    pub fn wait(&self, amount: f64) -> f64 {
        ((amount - self.capacity) / self.fill_rate).max(0.0)
    }

    /// Changes the rate; what has come in until now came at the old one.
    ///
    /// ```
    /// # use relent::AwsBucket;
    /// let mut bucket = AwsBucket::new(4.0, 0.0);
    /// bucket.set_rate(0.1, 1.0);
    /// assert_eq!((bucket.fill_rate, bucket.capacity), (0.5, 1.0), "never slower, nor smaller");
    /// ```
    pub fn set_rate(&mut self, rate: f64, t: f64) {
        self.refill(t);
        self.fill_rate = rate.max(MIN_RATE);
        self.max_capacity = rate.max(MIN_CAPACITY);
        self.capacity = self.capacity.min(self.max_capacity);
    }

    fn refill(&mut self, t: f64) {
        let since = (t - self.last).max(0.0);
        self.capacity = (self.capacity + since * self.fill_rate).min(self.max_capacity);
        self.last = self.last.max(t);
    }
}

/// All three together.
#[derive(Clone, Copy, Debug)]
struct Adaptive {
    started: bool,
    enabled: bool,
    bucket: AwsBucket,
    clocker: AwsClocker,
    cubic: AwsCubic,
}

impl Adaptive {
    fn new(t: f64) -> Adaptive {
        Adaptive {
            started: true,
            enabled: false,
            bucket: AwsBucket::new(1.0, t),
            clocker: AwsClocker::new(t),
            cubic: AwsCubic::new(0.0, t),
        }
    }

    fn answered(&mut self, throttled: bool, t: f64) {
        let measured = self.clocker.record(t);
        let rate = if throttled {
            let used = if self.enabled { measured.min(self.bucket.fill_rate) } else { measured };
            self.enabled = true;
            self.cubic.throttle(used, t)
        } else {
            self.cubic.success(t)
        };
        self.bucket.set_rate(rate.min(MOST_OVER_MEASURED * measured), t);
    }

    fn pack(&self) -> [u64; 11] {
        let flags = u64::from(self.started) | u64::from(self.enabled) << 1;
        let Adaptive { bucket: b, clocker: m, cubic: c, .. } = self;
        let floats =
            [b.fill_rate, b.max_capacity, b.capacity, b.last, m.rate, m.bucket, m.count, c.w_max, c.k, c.last_throttle];
        let mut packed = [flags; 11];
        for (word, float) in packed[1..].iter_mut().zip(floats) {
            *word = float.to_bits();
        }
        packed
    }

    fn unpack(packed: &[u64; 11]) -> Adaptive {
        let of = |at: usize| f64::from_bits(packed[at]);
        Adaptive {
            started: packed[0] & 1 != 0,
            enabled: packed[0] & 2 != 0,
            bucket: AwsBucket { fill_rate: of(1), max_capacity: of(2), capacity: of(3), last: of(4) },
            clocker: AwsClocker { rate: of(5), bucket: of(6), count: of(7) },
            cubic: AwsCubic { w_max: of(8), k: of(9), last_throttle: of(10) },
        }
    }
}

/// What an `aws_adaptive` limiter knows, in rates a second.
///
/// ```
/// use relent::{Limit, LimitAnswer, Outcome, Timestamp, Verdict};
/// use std::time::Duration;
///
/// let (limit, now) = (Limit::aws_adaptive(), Timestamp::ZERO);
/// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
/// limit.release(now, Outcome::Failure(Verdict::After(Duration::ZERO)), Duration::ZERO);
/// let state = limit.aws_state(now).unwrap();
/// assert_eq!((state.enabled, state.bucket.fill_rate), (true, 0.5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AwsAdaptiveState {
    /// Whether it limits: from the first throttling on.
    pub enabled: bool,
    /// The rate of answers.
    pub measured_rate: f64,
    /// The bucket.
    pub bucket: AwsBucket,
}

#[derive(Debug)]
pub(super) struct AwsAdaptive {
    cells: Cells<11>,
}

impl AwsAdaptive {
    pub(super) const fn new() -> AwsAdaptive {
        AwsAdaptive { cells: Cells::new() }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        self.cells.words(with);
    }

    fn with<R>(&self, now: Timestamp, change: impl FnOnce(&mut Adaptive, f64) -> R) -> Option<R> {
        let t = seconds(now);
        self.cells.with(|cells| {
            let mut adaptive = Adaptive::unpack(cells);
            if !adaptive.started {
                adaptive = Adaptive::new(t);
            }
            let result = change(&mut adaptive, t);
            *cells = adaptive.pack();
            result
        })
    }

    pub(super) fn acquire(&self, now: Timestamp) -> LimitAnswer {
        let wait = self.with(now, |adaptive, t| {
            if !adaptive.enabled || adaptive.bucket.acquire(1.0, t) { None } else { Some(adaptive.bucket.wait(1.0)) }
        });
        match wait {
            Some(None) => LimitAnswer::Granted,
            // A nanosecond more, so that rounding never makes the next time come too early. Never more than 2 s.
            Some(Some(wait)) => LimitAnswer::Wait(Duration::from_nanos((wait * 1e9) as u64 + 1)),
            None => LimitAnswer::Wait(Duration::from_micros(100)),
        }
    }

    pub(super) fn release(&self, now: Timestamp, outcome: Outcome) {
        if outcome != Outcome::Dropped {
            self.with(now, |adaptive, t| adaptive.answered(outcome.is_throttled(), t));
        }
    }

    pub(super) fn give_back(&self, now: Timestamp) {
        self.with(now, |adaptive, _| {
            if adaptive.enabled {
                let bucket = &mut adaptive.bucket;
                bucket.capacity = (bucket.capacity + 1.0).min(bucket.max_capacity);
            }
        });
    }

    pub(super) fn state(&self, now: Timestamp) -> AwsAdaptiveState {
        let adaptive = self.with(now, |adaptive, _| *adaptive).unwrap_or_else(|| Adaptive::new(seconds(now)));
        let Adaptive { enabled, bucket, clocker, .. } = adaptive;
        AwsAdaptiveState { enabled, measured_rate: clocker.rate, bucket }
    }

    pub(super) fn adopt(&self, old: &AwsAdaptive) {
        if let Some(theirs) = old.cells.with(|cells| *cells) {
            self.cells.with(|cells| *cells = theirs);
        }
    }

    pub(super) fn reset(&self, now: Timestamp) {
        self.cells.with(|cells| *cells = Adaptive::new(seconds(now)).pack());
    }
}

fn seconds(now: Timestamp) -> f64 {
    now.as_nanos() as f64 / 1e9
}
