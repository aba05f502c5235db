//! What public types promise of themselves, checked where they are compiled.

use relent::{
    Attempt, Call, Cancel, Cancelled, ChainedError, Delays, Error, Event, Failure, Jitter, Policy, Retrier, Retry,
    Saved, Schedule, Settings, Sleep, Story, SystemTimer, Ticker, Ticks, Timeline, Timestamp, Verdict,
};
use std::panic::{RefUnwindSafe, UnwindSafe};

const fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe + Unpin>() {}

const _: () = {
    all::<Policy>();
    all::<Settings>();
    all::<Jitter>();
    all::<Call>();
    all::<Call<&Policy>>();
    all::<Saved>();
    all::<Delays<'_>>();
    all::<Schedule<'_>>();
    all::<Retry>();
    all::<Retry<&Policy>>();
    all::<Retrier>();
    all::<Retrier<fn(&u8) -> Verdict, fn(&Event<'_, u8>)>>();
    all::<Attempt>();
    all::<Error<std::fmt::Error>>();
    all::<ChainedError<u8>>();
    all::<Failure<u8>>();
    all::<Story>();
    all::<Timeline>();
    all::<Timestamp>();
    all::<SystemTimer>();
    all::<Cancel>();
};

const fn sent<T: Send>() {}

const _: () = {
    sent::<Cancelled>();
    sent::<Sleep>();
    sent::<Ticker>();
    sent::<Ticks>();
};

/// What is generic over the judge needs no more than that it judges.
#[test]
fn generic_code_needs_but_a_judge() {
    fn twice<E, W: relent::Judge<E>>(retrier: Retrier<W>, op: impl Fn() -> Result<(), E>) -> u32 {
        retrier.retry_blocking(|_| op()).map_or_else(|err| err.attempts, |()| 0)
    }
    fn plain<E>(op: impl Fn() -> Result<(), E>) -> u32 {
        Policy::immediate().max_attempts(2).retry_blocking(|_| op()).map_or_else(|err| err.attempts, |()| 0)
    }
    let retrier = Policy::immediate().max_attempts(2).retrier();
    assert_eq!(twice(retrier, || Err("down")), 2);
    assert_eq!(twice(retrier.when(|_: &&str| false), || Err("down")), 1);
    assert_eq!(plain(|| Err(7)), 2);
}

#[test]
fn what_is_owned_is_kept_beside_its_policy() {
    struct Connection {
        policy: Policy,
        call: Call,
        retry: Retry,
        ticker: Ticker,
    }
    fn open(policy: Policy) -> Connection {
        let call = policy.call(Timestamp::ZERO, 1).into_owned();
        Connection { policy, call, retry: policy.start().into_owned(), ticker: policy.ticker() }
    }
    let mut kept = open(Policy::immediate().max_attempts(2));
    kept.call.on_failure(Timestamp::ZERO, Verdict::Transient);
    kept.retry.back_off_blocking("down").unwrap();
    assert_eq!((kept.call.attempt(), kept.retry.attempt().number()), (2, 2));
    assert_eq!((kept.ticker.into_iter().count(), kept.policy.schedule().count()), (2, 1));
}
