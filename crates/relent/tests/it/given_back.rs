//! What was booked of a rate and is given back: nobody comes sooner for it, and nobody waits for those who have gone.

use crate::budgets::check;
use proptest::prelude::*;
use relent::{
    Breaker, Limit, LimitAnswer, LimitPermit, LimitSettings, Timestamp, Upstream, UpstreamAnswer, UpstreamCall,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

/// Who waits, and when it may start.
type Waiting<'a> = (UpstreamCall<&'a Upstream>, Timestamp);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn ask(gateway: &Upstream, now: Timestamp, within: Duration) -> Option<Waiting<'_>> {
    let mut call = gateway.call();
    match call.ask(now, 0, within) {
        UpstreamAnswer::Go => Some((call, now)),
        UpstreamAnswer::Wait(wait) => Some((call, now + wait)),
        UpstreamAnswer::Refused(_) => None,
        UpstreamAnswer::Queue(_) => unreachable!("a rate has no queue"),
    }
}

/// When those start whose time has come, unless they are refused.
fn start(line: &mut Vec<Waiting<'_>>, now: Timestamp) -> Vec<Timestamp> {
    let due: Vec<_> = line.extract_if(.., |(_, due)| *due <= now).collect();
    let start =
        |(mut call, due): Waiting<'_>| matches!(call.ask(due, 0, Duration::ZERO), UpstreamAnswer::Go).then_some(due);
    due.into_iter().filter_map(start).collect()
}

/// In every window there are at most a burst and what came due in it.
fn keeps(rate: u32, burst: u32, mut starts: Vec<Timestamp>) -> Result<(), TestCaseError> {
    starts.sort_unstable();
    for (first, from) in starts.iter().enumerate() {
        for (last, to) in starts.iter().enumerate().skip(first) {
            let most = to.since(*from).as_nanos() * u128::from(rate) / 1_000_000_000 + u128::from(burst);
            prop_assert!((last - first + 1) as u128 <= most, "{} from {from:?} to {to:?}", last - first + 1);
        }
    }
    Ok(())
}

#[test]
fn who_comes_next_has_the_time_of_who_has_gone() {
    let gateway = Upstream::new("gateway").limit(Limit::rate(10));
    let mut line: Vec<Waiting> = (0..21).map(|_| ask(&gateway, at(0), 9 * SEC).unwrap()).collect();
    assert!(line.iter().enumerate().all(|(nth, (_, due))| *due == at(100 * nth as u64)));
    let gone = [15, 5, 1, 19];
    line.retain(|(_, due)| gone.iter().all(|nth| *due != at(100 * nth)));
    let next: Vec<_> = (0..5).map(|_| ask(&gateway, at(50), 9 * SEC).unwrap()).collect();
    assert_eq!(next.iter().map(|(_, due)| *due).collect::<Vec<_>>(), [100, 500, 1500, 1900, 2100].map(at));
    // The last comes back as if nobody had ever had it, and what nobody wants in time lapses.
    line.pop();
    drop(next);
    let limit = gateway.its_limit().unwrap();
    let booked = [(); 4].map(|()| limit.book(at(1600), SEC).unwrap());
    assert_eq!(booked, [300, 400, 500, 600].map(|millis| millis * MS));
}

/// Whoever goes and whoever comes, also all at once as a breaker opens; and each comes when it was told to.
#[test]
fn a_rate_is_kept_whoever_goes_and_comes() {
    let steps = prop::collection::vec((0..8_u8, 0..1000_usize, 0..3000_u32), 1..200);
    check((1..200_u32, 1..8_u32, steps), |(rate, burst, steps)| {
        let limit = LimitSettings::Rate { rate, per: SEC, burst }.limit().unwrap();
        let gateway = Upstream::new("gateway").limit(limit).breaker(Breaker::consecutive(5));
        let (mut now, mut starts) = (Timestamp::ZERO, Vec::new());
        let (mut line, mut held) = (Vec::new(), Vec::<LimitPermit>::new());
        for (step, which, millis) in steps {
            match step {
                0 | 1 => now = now + MS * (millis % 50),
                2 if !line.is_empty() => drop(line.swap_remove(which % line.len())),
                3 => held.extend(gateway.its_limit().unwrap().permit(now)),
                4 if !held.is_empty() => held.swap_remove(which % held.len()).give_back(),
                5 if which < 200 => {
                    now = now + MS * (millis % 500);
                    gateway.hold_open_at(now);
                    let refused = start(&mut line, now);
                    prop_assert_eq!(refused, []);
                    gateway.release_at(now);
                }
                _ => match ask(&gateway, now, MS * millis) {
                    Some((call, _)) if call.is_under_way() => starts.push(now),
                    waits => line.extend(waits),
                },
            }
            let due = line.iter().filter(|(_, due)| *due <= now).count();
            let started = start(&mut line, now);
            prop_assert_eq!(started.len(), due, "each starts when it was told to");
            starts.extend(started);
        }
        keeps(rate, burst, starts)
    });
}

/// Callers who go after a second, because somebody else has limited their time, do not leave behind a line in which nobody stands.
#[test]
fn a_line_of_those_who_have_gone_holds_up_nobody() {
    for burst in [1, 5] {
        let gateway = Upstream::new("gateway").limit(Limit::rate(10).burst(burst));
        let (mut line, mut starts) = (Vec::new(), Vec::new());
        for step in 0..1200 {
            let now = at(50 * step);
            line.retain(|(came, _): &(Timestamp, Waiting)| now.since(*came) < SEC);
            let (due, waits) = line.into_iter().partition::<Vec<_>, _>(|(_, (_, due))| *due <= now);
            line = waits;
            starts.extend(start(&mut due.into_iter().map(|(_, waiting)| waiting).collect(), now));
            let (call, due) = ask(&gateway, now, 60 * SEC).expect("there is time");
            if call.is_under_way() { starts.push(now) } else { line.push((now, (call, due))) }
        }
        assert!(starts.len() > 590, "{} of 600 in a minute", starts.len());
        keeps(10, burst, starts).unwrap();
    }
}

/// Who has no guard says when its permit could be used. Without a burst that tells which it was.
#[test]
fn what_is_given_back_without_a_guard_is_nobody_elses() {
    let limit = Limit::rate(10);
    let booked = [(); 4].map(|()| limit.book(at(0), SEC).unwrap());
    assert_eq!(booked, [0, 100, 200, 300].map(|millis| millis * MS));
    limit.give_back(at(100));
    limit.give_back(at(100));
    assert_eq!(limit.book(at(20), SEC), Some(80 * MS));
    assert_eq!(limit.book(at(20), SEC), Some(380 * MS));
    [100, 300, 200].into_iter().for_each(|due| limit.give_back(at(due)));
    assert_eq!([(); 4].map(|()| limit.book(at(20), SEC)), [80, 180, 280, 480].map(|millis| Some(millis * MS)));
    // One that is too far ahead lapses, and takes nothing with it.
    (0..500).for_each(|_| assert!(limit.book(at(20), 90 * SEC).is_some()));
    [1_000, 45_000, 30_000].into_iter().for_each(|due| limit.give_back(at(due)));
    let booked = [(); 3].map(|()| limit.book(at(20), 90 * SEC).unwrap().as_millis());
    assert_eq!(booked, [980, 29_980, 50_580]);

    let limit = Limit::rate(10).burst(3);
    assert_eq!([(); 4].map(|()| limit.acquire(at(0)) == LimitAnswer::Granted), [true, true, true, false]);
    limit.give_back(at(0));
    assert_eq!(limit.acquire(at(0)), LimitAnswer::Wait(100 * MS), "it may be the first or the last");
    let held = limit.permit(at(100)).unwrap();
    assert_eq!(limit.snapshot(at(100)).available, 0.0);
    held.give_back();
    assert_eq!(limit.snapshot(at(100)).available, 1.0);
    assert_eq!([(); 2].map(|()| limit.acquire(at(100)) == LimitAnswer::Granted), [true, false]);
}

/// One of a burst that comes back in the midst of those who wait is there at once.
#[test]
fn one_of_a_burst_comes_back_at_once() {
    let limit = Limit::rate(10).burst(3);
    let held = [(); 3].map(|()| limit.permit(at(0)).unwrap());
    assert_eq!(limit.book(at(0), SEC), Some(100 * MS));
    let [first, second, third] = held;
    second.give_back();
    third.give_back();
    assert_eq!(limit.snapshot(at(0)).available, 2.0);
    assert_eq!([(); 3].map(|()| limit.acquire(at(0)) == LimitAnswer::Granted), [true, true, false]);
    drop(first);
}
