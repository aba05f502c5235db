//! What makes no sense is refused by every builder: at run time by a panic that says what is wrong, what to do and where it was
//! written; in a `const` the same panic is an error of the compiler, as the examples of each builder show.

use relent::{Admission, Breaker, Budget, Hedge, Jitter, Limit, Pacer, Policy};
use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
    time::Duration,
};

const ZERO: Duration = Duration::ZERO;
const SEC: Duration = Duration::from_secs(1);

thread_local! {
    /// Where the panic was that this thread expects.
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What a builder says, of this file; nothing if it takes what it is told.
fn refusal<T>(build: impl FnOnce() -> T) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            let expected = SEEN.with_borrow_mut(|seen| {
                let place = panic.location().map(|place| place.file().to_owned());
                seen.is_some().then(|| *seen = place).is_some()
            });
            if !expected {
                others(panic);
            }
        }));
    });
    SEEN.set(Some(Default::default()));
    let caught = catch_unwind(AssertUnwindSafe(build)).err();
    let file = SEEN.take().unwrap_or_default();
    let caught = caught?;
    assert!(file.ends_with("absurd.rs"), "the place of whoever wrote it, not {file}");
    let text = caught.downcast_ref::<String>().cloned();
    Some(text.or_else(|| caught.downcast_ref::<&str>().map(ToString::to_string)).expect("a text"))
}

/// Each line: what is written, and what is said of it.
macro_rules! refuses {
    ($($build:expr => $problem:literal,)*) => {
        [$((stringify!($build), $problem, refusal(|| $build))),*]
    };
}

#[track_caller]
fn all_say(cases: &[(&str, &str, Option<String>)]) {
    for (written, problem, said) in cases {
        let said = said.as_ref().unwrap_or_else(|| panic!("{written} is taken"));
        let (what, hint) = said.split_once("\nhint: ").unwrap_or_else(|| panic!("{written} has no hint: {said}"));
        assert_eq!(what, *problem, "{written}");
        assert!(!hint.is_empty(), "{written}");
    }
}

#[test]
fn budgets() {
    all_say(&refuses! {
        Budget::ratio(1.5) => "the ratio is not between 0 and 1",
        Budget::ratio(-0.1) => "the ratio is not between 0 and 1",
        Budget::ratio(f64::NAN) => "the ratio is not between 0 and 1",
        Budget::ratio(f64::INFINITY) => "the ratio is not between 0 and 1",
        Budget::ratio(0.1).min_per_second(u32::MAX) => "more than a million retries a second are always allowed",
        Budget::ratio(0.0).min_per_second(0) => "the budget never allows a retry",
        Budget::ratio(0.1).window(ZERO) => "the window is zero",
        Budget::ratio(0.1).window(SEC / 1001) => "the window is shorter than 1 ms",
        Budget::ratio(0.1).window(Duration::MAX) => "the window is longer than a day",
        Budget::grpc(0, 0.1) => "the tokens are not between 1 and 1000",
        Budget::grpc(1001, 0.1) => "the tokens are not between 1 and 1000",
        Budget::grpc(10, 0.0) => "the token ratio is not between 0.001 and 1000",
        Budget::grpc(10, f64::NAN) => "the token ratio is not between 0.001 and 1000",
        Budget::finagle(1000.1) => "the ratio is not between 0 and 1000",
        Budget::finagle(f64::NAN) => "the ratio is not between 0 and 1000",
        Budget::finagle(0.2).window(61 * SEC) => "the ttl is not between 1 s and 60 s",
        Budget::in_flight(1.1, 3) => "the share is not between 0 and 1",
        Budget::in_flight(f64::NAN, 3) => "the share is not between 0 and 1",
        Budget::throttle(0.99) => "k is less than 1 or not finite",
        Budget::throttle(f64::NAN) => "k is less than 1 or not finite",
        Budget::throttle(f64::INFINITY) => "k is less than 1 or not finite",
        Budget::throttle(2.0).window(ZERO) => "the window is zero",
    });
    let other = [refusal(|| Budget::grpc(10, 0.1).window(SEC)), refusal(|| Budget::grpc(10, 0.1).min_per_second(1))];
    let said = other.map(|said| said.expect("there is no such thing"));
    assert_eq!(said, ["this budget has no window", "only a ratio has a floor of retries a second"]);
    assert!(refusal(|| Budget::ratio(1.0).min_per_second(1_000_000).window(24 * 3600 * SEC)).is_none());
    assert!(refusal(|| Budget::ratio(0.0)).is_none(), "one a second is a budget");
    assert!(refusal(|| Budget::finagle(0.0).min_per_second(0)).is_none(), "Finagle has an empty budget");
    assert!(refusal(|| Budget::in_flight(0.0, 0)).is_none(), "Envoy can be told to allow none");
}

#[test]
fn breakers() {
    let five = || Breaker::consecutive(5);
    all_say(&refuses! {
        Breaker::consecutive(0) => "no failure in a row trips",
        Breaker::failures(0) => "no failure trips",
        five().or_failures(0) => "no failure trips",
        Breaker::share(0.0) => "the share of failures is not above 0 and up to 1",
        Breaker::share(1.1) => "the share of failures is not above 0 and up to 1",
        Breaker::share(f64::NAN) => "the share of failures is not above 0 and up to 1",
        five().or_share(-1.0) => "the share of failures is not above 0 and up to 1",
        Breaker::slow(ZERO, 0.5) => "every call would be slow",
        Breaker::slow(SEC, f64::NAN) => "the share of slow calls is not above 0 and up to 1",
        five().or_slow(SEC, 0.0) => "the share of slow calls is not above 0 and up to 1",
        Breaker::share(0.5).or_consecutive(0) => "no failure in a row trips",
        Breaker::share(0.5).window(ZERO) => "the window is zero",
        Breaker::share(0.5).window_calls(0) => "the window is not 1 to 1024 calls",
        Breaker::share(0.5).window_calls(u32::MAX) => "the window is not 1 to 1024 calls",
        Breaker::failures(10).window_calls(9) => "more failures are asked for than the window holds",
        Breaker::share(0.5).min_calls(0) => "a share of no calls is no share",
        Breaker::share(0.5).window_calls(9).min_calls(10) => "more calls are asked for than the window holds",
        five().open_for(ZERO) => "the open time is zero",
        five().factor(0.99) => "the factor is less than 1 or not finite",
        five().factor(f64::NAN) => "the factor is less than 1 or not finite",
        five().factor(f64::INFINITY) => "the factor is less than 1 or not finite",
        five().jitter(1.1) => "the jitter is not between 0 and 1",
        five().jitter(f64::NAN) => "the jitter is not between 0 and 1",
        five().open_at_most(29 * SEC) => "open_at_most is shorter than open_for and its jitter",
        five().open_at_most(33 * SEC).jitter(0.2) => "open_at_most is shorter than open_for and its jitter",
        five().probes(0) => "the probes are not 1 to 4095",
        five().probes(4096) => "the probes are not 1 to 4095",
        five().close_after(0) => "close_after is not 1 to 4095",
        five().close_after(u32::MAX) => "close_after is not 1 to 4095",
        five().reopen_share(0.0) => "the share of probes is not above 0 and up to 1",
        five().reopen_share(f64::NAN) => "the share of probes is not above 0 and up to 1",
        five().probe_again_after(ZERO) => "every probe would be lost at once",
        five().ramp(SEC).ramp_from(1.1) => "the first share of the ramp is not between 0 and 1",
        five().ramp(SEC).ramp_from(f64::NAN) => "the first share of the ramp is not between 0 and 1",
    });
    let longest = || five().open_for(Duration::MAX).ramp(Duration::MAX).window(Duration::MAX);
    assert!(refusal(longest).is_none(), "a time is never too long for a breaker");
}

#[test]
fn limits() {
    all_say(&refuses! {
        Limit::rate(0) => "the rate is not between 1 and a million",
        Limit::rate(1_000_001) => "the rate is not between 1 and a million",
        Limit::rate(100).burst(0) => "no permit may come at once",
        Limit::rate(100).per(ZERO) => "the rate is not over 1 ms to a day",
        Limit::rate(100).per(Duration::MAX) => "the rate is not over 1 ms to a day",
        Limit::concurrency(0) => "nothing may be in flight",
        Limit::concurrency(u32::MAX) => "more than a million may be in flight",
        Limit::concurrency(1).queue(1, ZERO) => "nobody may wait in the queue",
        Limit::aimd(0) => "the limit does not start between its least and its most",
        Limit::aimd(1001) => "the limit does not start between its least and its most",
        Limit::aimd(20).between(0, 100) => "the least limit is zero",
        Limit::aimd(20).between(1, u32::MAX) => "more than a million may be in flight",
        Limit::aimd(20).between(30, 10) => "the limit does not start between its least and its most",
        Limit::aimd(20).slow_after(ZERO) => "every success counts as slow",
        Limit::gradient(2) => "the limit does not start between 3 and its most",
        Limit::gradient(1001) => "the limit does not start between 3 and its most",
    });
    let other = [
        refusal(|| Limit::gradient(20).burst(2)),
        refusal(|| Limit::gradient(20).per(SEC)),
        refusal(|| Limit::rate(1).queue(1, SEC)),
        refusal(|| Limit::rate(1).between(1, 2)),
        refusal(|| Limit::rate(1).slow_after(SEC)),
    ];
    assert_eq!(
        other.map(|said| said.expect("there is no such thing")),
        [
            "only a rate has a burst",
            "only a rate is over a time",
            "only a concurrency has a queue",
            "only an aimd has a least and a most",
            "only an aimd knows slow successes",
        ]
    );
    let most = || Limit::rate(1_000_000).burst(u32::MAX).per(24 * 3600 * SEC);
    assert!(refusal(most).is_none());
}

#[test]
fn hedges() {
    all_say(&refuses! {
        Hedge::after(ZERO) => "a hedge would start with the first attempt",
        Hedge::quantile(0.0) => "the quantile is not between 0 and 1",
        Hedge::quantile(1.0) => "the quantile is not between 0 and 1",
        Hedge::quantile(f64::NAN) => "the quantile is not between 0 and 1",
        Hedge::quantile(0.95).or_after(ZERO) => "a hedge would start with the first attempt",
        Hedge::after(SEC).at_most(0) => "the hedges of a call are not 1 to 255",
        Hedge::after(SEC).at_most(256) => "the hedges of a call are not 1 to 255",
        Hedge::quantile(0.95).min_samples(0) => "the least samples are not 1 to 2048",
        Hedge::quantile(0.95).min_samples(2049) => "the least samples are not 1 to 2048",
    });
    assert!(refusal(|| Hedge::quantile(0.95).or_after(Duration::MAX).at_most(255).min_samples(2048)).is_none());
}

#[test]
fn servers() {
    all_say(&refuses! {
        Pacer::capacity(0.0) => "the capacity is not above 0 and up to 10^9 a second",
        Pacer::capacity(18_446_744_073_709_551_616.0) => "the capacity is not above 0 and up to 10^9 a second",
        Pacer::capacity(f64::NAN) => "the capacity is not above 0 and up to 10^9 a second",
        Pacer::measured(f64::INFINITY) => "the capacity is not above 0 and up to 10^9 a second",
        Pacer::capacity(1.0).horizon(ZERO) => "the horizon is zero: there would be no turns",
        Pacer::capacity(1.0).kept(0.0) => "the share of turns that are kept is not above 0 and up to 1",
        Pacer::capacity(1.0).kept(1.1) => "the share of turns that are kept is not above 0 and up to 1",
        Pacer::capacity(1.0).kept(f64::NAN) => "the share of turns that are kept is not above 0 and up to 1",
        Admission::new().max_retry_share(0.0) => "the share of retries is not above 0 and up to 1",
        Admission::new().max_retry_share(1.1) => "the share of retries is not above 0 and up to 1",
        Admission::new().max_retry_share(f64::NAN) => "the share of retries is not above 0 and up to 1",
    });
    assert!(refusal(|| Pacer::capacity(1e9).horizon(Duration::MAX).kept(f64::MIN_POSITIVE).learning()).is_none());
    assert!(refusal(|| Admission::new().max_retry_share(1.0).pushback(Duration::MAX)).is_none());
}

#[test]
fn policies() {
    let nan = Jitter::Proportional(f64::NAN);
    all_say(&refuses! {
        Policy::exponential(ZERO) => "the base is zero",
        Policy::constant(ZERO) => "the base is zero",
        Policy::linear(ZERO) => "the base is zero",
        Policy::fibonacci(ZERO) => "the base is zero",
        Policy::slots(ZERO) => "the slot is zero",
        Policy::list(&[]) => "the list of delays is empty",
        Policy::list_repeating(&[ZERO]) => "the delay that repeats is zero",
        Policy::exponential(SEC).factor(f64::NAN) => "the factor is less than 1 or not finite",
        Policy::default().cap(ZERO) => "the cap is zero",
        Policy::default().cap(SEC / 2) => "the cap is shorter than the base",
        Policy::default().jitter(nan) => "the proportional jitter is not between 0 and 1",
        Policy::default().max_attempts(0) => "no attempt is allowed",
        Policy::default().timeout(ZERO) => "the timeout is zero",
        Policy::default().attempt_timeout(ZERO) => "the attempt timeout is zero",
    });
    let other = [refusal(|| Policy::immediate().factor(2.0)), refusal(|| Policy::immediate().step(SEC))];
    let said = other.map(|said| said.expect("there is no such thing"));
    assert_eq!(said, ["only an exponential curve has a factor", "only a linear curve has a step"]);
}
