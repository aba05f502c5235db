//! An attempt that is hedged: further ones start before it has failed, the first success wins, and the rest is dropped.
//!
//! When is decided in `core/hedge.rs`. Here the attempts run, each with a permit of its own and paid from the budget.

use crate::{
    Attempt, HedgeStep, Outcome, Policy, Timer, Verdict, cancel::Cancel, failed::Fault, guard::Guard, retry::Retry,
};
use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

/// An attempt under way.
struct Flight<F, Z, G> {
    run: Pin<Box<F>>,
    end: Option<(Pin<Box<Z>>, Duration)>,
    guard: G,
}

/// What happened while attempts were under way.
enum Turn<V, E> {
    Ended(usize, Result<V, Fault<E>>),
    Due,
    Cancelled,
}

impl<F, Z: Future, G> Flight<F, Z, G> {
    fn new<T: Timer<Sleep = Z>>(run: F, limit: Option<Duration>, guard: G, timer: &T) -> Self {
        let end = limit.map(|limit| (Box::pin(timer.sleep(limit)), limit));
        Flight { run: Box::pin(run), end, guard }
    }

    fn poll<V, E>(&mut self, cx: &mut Context<'_>) -> Poll<Result<V, Fault<E>>>
    where
        F: Future<Output = Result<V, E>>,
    {
        if let Poll::Ready(result) = self.run.as_mut().poll(cx) {
            return Poll::Ready(result.map_err(Fault::Error));
        }
        match &mut self.end {
            Some((end, limit)) => end.as_mut().poll(cx).map(|_| Err(Fault::TimedOut(*limit, Verdict::Transient))),
            None => Poll::Pending,
        }
    }
}

/// Runs `attempt` and its hedges. What they tell the upstream they tell themselves, each once.
pub(crate) async fn hedged<T: Timer, G: Guard, V, E, F, Fut>(
    op: &mut F,
    retry: &mut Retry<&Policy, &T, G>,
    attempt: Attempt,
    (timer, switch): (&T, Option<&Cancel>),
    mut judge: impl FnMut(&E) -> Verdict,
) -> Result<V, Fault<E>>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<V, E>>,
{
    let mut plan = retry.hedge_plan(timer.now());
    let mut number = attempt.number();
    let mut flights = vec![Flight::new(op(attempt), attempt.timeout(), retry.split_off(), timer)];
    let mut cancelled = pin!(switch.map(Cancel::cancelled));
    loop {
        let due = plan.and_then(|plan| plan.due());
        let mut due = pin!(due.map(|due| timer.sleep(due.since(timer.now()))));
        let turn = poll_fn(|cx| {
            if cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
                return Poll::Ready(Turn::Cancelled);
            }
            for (nth, flight) in flights.iter_mut().enumerate() {
                if let Poll::Ready(result) = flight.poll(cx) {
                    return Poll::Ready(Turn::Ended(nth, result));
                }
            }
            match due.as_mut().as_pin_mut() {
                Some(due) => due.poll(cx).map(|_| Turn::Due),
                None => Poll::Pending,
            }
        })
        .await;
        let now = timer.now();
        let failed = match turn {
            Turn::Cancelled => {
                retry.count_hedges(number - attempt.number());
                return Err(Fault::Cancelled);
            }
            Turn::Ended(nth, Ok(value)) => {
                flights.swap_remove(nth).guard.outcome(now, Outcome::Success, retry.draw());
                return Ok(value);
            }
            Turn::Ended(nth, Err(fault)) => {
                let (verdict, outcome) = match &fault {
                    Fault::Error(error) => {
                        let verdict = judge(error);
                        (verdict, Outcome::Failure(verdict))
                    }
                    _ => (Verdict::Transient, Outcome::TimedOut),
                };
                flights.swap_remove(nth).guard.outcome(now, outcome, retry.draw());
                let step = plan.as_mut().map_or(HedgeStep::Fail, |plan| plan.on_failure(now, verdict));
                let verdict = plan.map_or(verdict, |plan| plan.verdict(now, verdict));
                let fault = match fault {
                    Fault::Error(error) => Fault::Judged(error, verdict),
                    Fault::TimedOut(limit, _) => Fault::TimedOut(limit, verdict),
                    fault => fault,
                };
                match step {
                    HedgeStep::Wait => continue,
                    HedgeStep::Fail => {
                        retry.count_hedges(number - attempt.number());
                        return Err(fault);
                    }
                    HedgeStep::Start => Some(fault),
                }
            }
            Turn::Due => None,
        };
        let Some(plan) = &mut plan else { continue };
        match retry.hedge(now, number) {
            Some((next, guard)) => {
                number = next.number();
                flights.push(Flight::new(op(next), next.timeout(), guard, timer));
                plan.begun(now);
            }
            None if plan.refused() => {}
            None => {
                retry.count_hedges(number - attempt.number());
                return Err(failed.unwrap_or(Fault::Cancelled));
            }
        }
    }
}
