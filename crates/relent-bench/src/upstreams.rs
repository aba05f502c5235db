//! Calls on an upstream that succeed: what its machines cost where nothing is wrong.

use crate::{
    harness::{Case, Group},
    rival,
};
use relent::{Breaker, Budget, Limit, Policy, Timer, Timestamp, Upstream};
use std::{
    future::{Ready, ready},
    hint::black_box,
    time::{Duration, Instant},
};

static POLICY: Policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).max_attempts(4);

const fn breaker() -> Breaker {
    Breaker::consecutive(5).open_for(Duration::from_secs(30))
}

static BUDGET: Upstream = Upstream::new("budget").budget(Budget::ratio(0.1));
static IN_A_ROW: Upstream = Upstream::new("in a row").breaker(breaker());
static BOTH: Upstream = Upstream::new("both").budget(Budget::ratio(0.1)).breaker(breaker());
static ALL: Upstream =
    Upstream::new("all").budget(Budget::ratio(0.1)).breaker(breaker()).limit(Limit::concurrency(100));

/// A clock that stands still: what a real one costs is a case of its own.
struct Still;

impl Timer for Still {
    type Sleep = Ready<()>;

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(black_box(1_000_000_000))
    }

    fn sleep(&self, _: Duration) -> Ready<()> {
        ready(())
    }
}

#[inline(always)]
fn succeed() -> Result<u64, u32> {
    if black_box(true) { Ok(7) } else { Err(7) }
}

fn call(upstream: &'static Upstream) -> impl FnMut() + Send + 'static {
    move || _ = black_box(POLICY.on(upstream).timer(Still).retry_blocking(|_| succeed()).is_ok())
}

pub(crate) fn successes() -> Group {
    let cases = vec![
        Case::new("floor: a direct call", || _ = black_box(succeed().is_ok())),
        Case::new("floor: reading the clock", || _ = black_box(Instant::now())),
        Case::new("relent, no upstream", || _ = black_box(POLICY.retry_blocking(|_| succeed()).is_ok())),
        Case::new("relent, a budget", call(&BUDGET)),
        Case::new("relent, a breaker", call(&IN_A_ROW)),
        Case::new("relent, budget and breaker", call(&BOTH)),
        Case::new("relent, budget, breaker and limit", call(&ALL)),
        Case::new("relent, budget and breaker, the system's clock", || {
            _ = black_box(POLICY.on(&BOTH).retry_blocking(|_| succeed()).is_ok());
        }),
    ];
    Group { name: "upstream", title: "A call on an upstream, success at the first attempt", per: 1, cases }
}

/// Two threads call the same far side.
pub(crate) fn two_threads() -> Group {
    let cases = vec![
        rival::beside("floor: a direct call", || || _ = black_box(succeed().is_ok())),
        rival::beside("relent, a budget", || call(&BUDGET)),
        rival::beside("relent, a breaker", || call(&IN_A_ROW)),
        rival::beside("relent, budget and breaker", || call(&BOTH)),
        rival::beside("relent, budget, breaker and limit", || call(&ALL)),
    ];
    let title = "A call on an upstream, success at the first attempt, while a second thread does the same";
    Group { name: "upstream-two-threads", title, per: 1, cases }
}
