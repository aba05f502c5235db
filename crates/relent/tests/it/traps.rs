//! What other retry libraries were found to do, one test each, proving that we do not. Named after the library.

use crate::fake::Fake;
use relent::{Failure, Jitter, Policy, Reason, Timestamp, Verdict};
use std::{collections::BTreeSet, time::Duration};

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

#[test]
fn tower_gives_every_request_of_a_process_the_same_jitter() {
    let policy = Policy::exponential(SEC);
    let firsts: BTreeSet<u128> = (0..1000)
        .map(|_| {
            let fake = Fake::default();
            let _ = policy.timer(Seeded(&fake)).retry_blocking(|_| Err::<(), _>("down"));
            fake.slept()[0].as_nanos()
        })
        .collect();
    assert_eq!(firsts.len(), 1000);
}

/// A fake clock with the seeds of the real one.
struct Seeded<'a>(&'a Fake);

impl relent::Timer for Seeded<'_> {
    type Sleep = std::future::Ready<()>;
    fn now(&self) -> Timestamp {
        self.0.now()
    }
    fn sleep(&self, delay: Duration) -> Self::Sleep {
        self.0.sleep(delay)
    }
    fn seed(&self) -> u64 {
        relent::SystemTimer.seed()
    }
}

#[test]
fn tower_and_linkerd_and_tenacity_lose_their_jitter_at_the_cap() {
    for jitter in [Jitter::Full, Jitter::Equal, Jitter::Proportional(0.5), Jitter::Additive(SEC), Jitter::Decorrelated]
    {
        let policy = Policy::exponential(SEC).cap(10 * SEC).jitter(jitter).max_attempts(22);
        let last: BTreeSet<u128> =
            (0..1000).map(|seed| policy.delays(relent::rng::mix(seed)).last().unwrap().as_nanos()).collect();
        assert_eq!(last.len(), 1000, "{jitter:?}");
    }
}

#[test]
fn tokio_retry2_ignores_retry_after() {
    let fake = Fake::default();
    let policy = Policy::immediate().max_attempts(4).max_pushback(2 * 3600 * SEC);
    let _ =
        policy.timer(&fake).when(Failure::verdict).retry_blocking(|_| Err::<(), _>(Failure::after("busy", 3600 * SEC)));
    assert!(fake.elapsed() >= 3 * 3600 * SEC);
}

#[test]
fn tokio_retry2_draws_its_jitter_once_a_strategy() {
    let policy = Policy::constant(SEC).jitter(Jitter::Proportional(1.0)).max_attempts(100);
    let delays: BTreeSet<u128> = policy.delays(1).map(|delay| delay.as_nanos()).collect();
    assert_eq!(delays.len(), 99);
}

#[test]
fn backons_own_retry_after_recipe_ignores_its_limit() {
    let fake = Fake::default();
    let policy = Policy::constant(MS).max_attempts(4);
    let err = policy
        .timer(&fake)
        .when(Failure::verdict)
        .retry_blocking(|_| Err::<(), _>(Failure::after("busy", SEC)))
        .unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Attempts, 4));
}

#[test]
fn backoff_lets_retry_after_pass_its_max_elapsed() {
    let fake = Fake::default();
    let policy = Policy::constant(MS).unlimited_attempts().max_elapsed(10 * MS);
    let err = policy
        .timer(&fake)
        .when(Failure::verdict)
        .retry_blocking(|_| Err::<(), _>(Failure::after("busy", 3 * MS)))
        .unwrap_err();
    assert_eq!(err.reason, Reason::PushbackTooLong);
    assert!(fake.elapsed() <= 10 * MS, "{:?}", fake.elapsed());
}

#[test]
fn backon_exceeds_its_cap_and_starts_above_it() {
    for jitter in [Jitter::Full, Jitter::Additive(5 * SEC), Jitter::Proportional(1.0), Jitter::Decorrelated] {
        for policy in [Policy::exponential(SEC), Policy::fibonacci(SEC)] {
            let policy = policy.cap(10 * SEC).jitter(jitter).max_attempts(50);
            assert!((0..100).flat_map(|seed| policy.delays(seed)).all(|delay| delay <= 10 * SEC), "{jitter:?}");
        }
    }
    let above = relent::Settings { cap: Some(10 * SEC), ..Policy::exponential(100 * SEC).settings() };
    assert_eq!(above.policy().unwrap_err().key, "cap");
}

#[test]
fn backon_computes_in_f32() {
    let policy = Policy::exponential(100 * MS).jitter(Jitter::None).max_attempts(6);
    let delays: Vec<u128> = policy.delays(1).map(|delay| delay.as_nanos()).collect();
    assert_eq!(delays, [100_000_000, 200_000_000, 400_000_000, 800_000_000, 1_600_000_000]);
}

#[test]
fn backon_and_retry_policies_panic_on_huge_durations() {
    for base in [Duration::MAX, Duration::from_secs(1 << 33), Duration::from_nanos(2)] {
        for policy in [Policy::exponential(base), Policy::fibonacci(base), Policy::constant(base), Policy::linear(base)]
        {
            let policy = policy.factor_if_exponential(1e300).max_elapsed(Duration::MAX).max_attempts(1000);
            assert_eq!(policy.delays(1).count(), 999);
            assert_eq!(policy.schedule().count(), 999);
        }
    }
}

trait FactorIfExponential {
    fn factor_if_exponential(self, factor: f64) -> Policy;
}

impl FactorIfExponential for Policy {
    fn factor_if_exponential(self, factor: f64) -> Policy {
        match self.settings().curve {
            relent::Curve::Exponential { .. } => self.factor(factor),
            _ => self,
        }
    }
}

#[test]
fn tokio_retrys_base_is_ratio_and_unit_in_one() {
    let first =
        |base| Policy::exponential(base).cap(3600 * SEC).jitter(Jitter::None).delays(1).take(3).collect::<Vec<_>>();
    assert_eq!(first(MS), [MS, 2 * MS, 4 * MS]);
    assert_eq!(first(SEC), [SEC, 2 * SEC, 4 * SEC]);
}

#[test]
fn exponential_backoff_has_a_gap_and_a_bias_in_its_jitter() {
    let policy = Policy::constant(200 * MS).jitter(Jitter::Proportional(0.3)).max_attempts(2);
    let mut tenths = [0u32; 12];
    let runs = 120_000;
    let mut sum = Duration::ZERO;
    for seed in 0..runs {
        let delay = policy.delays(relent::rng::mix(seed)).next().unwrap();
        sum += delay;
        tenths[((delay - 140 * MS).as_micros() / 10_000) as usize] += 1;
    }
    assert!(tenths.iter().all(|count| count.abs_diff(10_000) < 500), "{tenths:?}");
    assert!((sum / runs as u32).abs_diff(200 * MS) < MS);
}

#[test]
fn retry_policies_hangs_with_a_zero_interval() {
    let settings = relent::Settings {
        curve: relent::Curve::Exponential { base: Duration::ZERO, factor: 2.0 },
        max_elapsed: Some(SEC),
        ..relent::Settings::default()
    };
    assert_eq!(settings.policy().unwrap_err().key, "base");
}

#[test]
fn retry_policies_goes_by_the_wall_clock() {
    // A clock that steps back yields no negative and no endless time.
    let policy = Policy::constant(SEC).unlimited_attempts().max_elapsed(10 * SEC);
    let start = Timestamp::ZERO + 100 * SEC;
    let mut call = policy.call(start, 1);
    assert!(matches!(call.on_failure(Timestamp::ZERO, Verdict::Transient), relent::Decision::Retry(_)));
    assert_eq!(call.elapsed(Timestamp::ZERO), Duration::ZERO);
}

#[test]
fn again_rounds_its_jitter_to_whole_milliseconds() {
    let policy = Policy::constant(Duration::from_micros(900)).jitter(Jitter::Equal).max_attempts(101);
    assert!(policy.delays(1).all(|delay| delay >= Duration::from_micros(450)));
}

#[test]
fn again_ends_silently_when_a_delay_overflows() {
    let policy = Policy::exponential(Duration::MAX).max_attempts(11);
    assert_eq!(policy.delays(1).count(), 10);
}

#[test]
fn retry_makes_zero_of_half_a_millisecond() {
    let policy = Policy::exponential(Duration::from_micros(500)).jitter(Jitter::None);
    assert_eq!(policy.delays(1).next(), Some(Duration::from_micros(500)));
}

#[test]
fn cenkaltis_first_delay_ignores_its_max_interval() {
    let settings = relent::Settings { cap: Some(SEC), ..Policy::exponential(2 * SEC).settings() };
    assert!(settings.policy().is_err());
}

#[test]
fn failsafe_spins_at_its_maximum_duration() {
    let fake = Fake::default();
    let policy = Policy::exponential(10 * MS).jitter(Jitter::None).unlimited_attempts().max_elapsed(100 * MS);
    let err = policy.timer(&fake).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Elapsed, 4), "at 0, 10, 30 and 70 ms; 150 is too late");
}

#[test]
fn restate_panics_at_retry_69_of_100_ms_doubled() {
    let policy = Policy::exponential(100 * MS).max_attempts(200);
    assert_eq!(policy.delays(1).count(), 199);
}

#[test]
fn celery_returns_no_delay_at_all() {
    // Full jitter may draw zero once; a floor has to be asked for by its name.
    let policy = Policy::exponential(SEC).jitter(Jitter::Equal);
    let mut delays = policy.delays(1);
    assert!(std::iter::from_fn(|| delays.next_with(0)).all(|delay| delay >= SEC / 2));
}

#[test]
fn backon_backoff_and_retry_accept_factors_that_are_none() {
    for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 0.999] {
        let curve = relent::Curve::Exponential { base: SEC, factor };
        let settings = relent::Settings { curve, ..relent::Settings::default() };
        assert_eq!(settings.policy().unwrap_err().key, "factor", "{factor}");
    }
}

#[test]
fn backoff_accepts_a_randomization_above_one_and_draws_zeros() {
    for share in [2.0, 1.000_001, -0.1, f64::NAN] {
        let settings = relent::Settings { jitter: Jitter::Proportional(share), ..relent::Settings::default() };
        assert_eq!(settings.policy().unwrap_err().key, "jitter", "{share}");
    }
}

#[test]
fn exponential_backoff_panics_on_a_small_jitter() {
    let policy = Policy::constant(200 * MS).jitter(Jitter::Proportional(0.005)).max_attempts(100);
    assert!(policy.delays(1).all(|delay| delay >= 199 * MS && delay <= 201 * MS));
}

#[test]
fn tower_resilience_applies_its_random_factor_after_the_cap() {
    let policy = Policy::exponential(SEC).cap(10 * SEC).jitter(Jitter::Proportional(0.5)).max_attempts(200);
    assert!((0..100).flat_map(|seed| policy.delays(seed)).all(|delay| delay <= 10 * SEC));
}

#[tokio::test(start_paused = true)]
async fn tokio_retry_runs_its_action_before_it_is_polled() {
    let runs = std::cell::Cell::new(0);
    let policy = Policy::default();
    let call = policy.retry(async |_| {
        runs.set(runs.get() + 1);
        Ok::<_, ()>(())
    });
    assert_eq!(runs.get(), 0);
    call.await.unwrap();
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn tokio_retry2_counts_its_limit_by_another_clock() {
    let begin = tokio::time::Instant::now();
    let policy = Policy::constant(SEC).jitter(Jitter::None).unlimited_attempts().max_elapsed(3600 * SEC);
    let err = policy.retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert_eq!((err.reason, begin.elapsed()), (Reason::Elapsed, 3600 * SEC));
}
