//! A request that is slow is sent again before it has failed: the first answer wins, and the other is dropped.
//!
//! When is decided by [`relent::Hedge`]; whether, by the budget, the breaker and the limiter of the upstream, and by the
//! request, which must be one that may run twice at once. What wins is an answer's head: bodies are received one at a time.

use super::{
    attempt::{self, Answer, Line, Terms, Trail},
    client::Recipe,
    failure::{Broken, Failure},
    narrator::{Lost, Narrator, Start},
    word::Word,
};
use crate::guard::{Guard, Permit};
use http::{HeaderMap, Method};
use relent::{Call, HedgeStep, HedgedCall, Policy, Timestamp, Verdict, wire};
use std::{
    future::{self, Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::{Duration, Instant},
};
use tokio::time;

/// Whether a request may run twice at once: one that changes nothing, or whose server knows that it is the same.
pub(super) fn is_allowed(method: &Method, headers: &HeaderMap) -> bool {
    method.is_safe() || wire::has_idempotency_key(headers)
}

/// What a race is run with.
pub(super) struct Race<'a> {
    pub(super) terms: &'a Terms,
    pub(super) recipe: &'a Recipe,
    pub(super) call: &'a Call<&'a Policy>,
    /// The most attempts of the call.
    pub(super) most: Option<u32>,
    /// The longest of one attempt that starts now.
    pub(super) limit: &'a dyn Fn() -> Option<Duration>,
    pub(super) now: &'a dyn Fn() -> Timestamp,
    pub(super) guard: &'a mut Guard,
    pub(super) narrator: &'a mut Narrator,
    /// How many attempts there were besides the first.
    pub(super) hedges: u32,
    /// What those that failed were told.
    pub(super) said: Vec<Word>,
}

/// Who won.
pub(super) struct Won {
    pub(super) answer: Answer,
    pub(super) trail: Trail,
    /// By what it was sent, unless by what the first was.
    pub(super) line: Option<Line>,
    pub(super) permit: Permit,
    pub(super) start: Start,
    /// When it has to be over, and how long that is.
    pub(super) end: Option<(time::Instant, Duration)>,
}

/// An attempt under way.
struct Flight<'a> {
    start: Start,
    run: Pin<Box<dyn Future<Output = Landed> + 'a>>,
    permit: Permit,
    end: Option<(time::Instant, Duration)>,
}

struct Landed {
    answer: Result<Answer, Broken>,
    trail: Trail,
    line: Option<Line>,
}

impl<'a> Race<'a> {
    /// The first answer that is no failure; the failure, and whose it is, if no attempt is under way any more and none more may start.
    pub(super) async fn run(
        &mut self,
        mut plan: HedgedCall,
        line: &'a Line,
    ) -> Result<Won, (Broken, Trail, Option<Lost>)> {
        let first = self.call.attempt();
        let mut flights = vec![self.flight(first, Permit::own(), line, None)];
        loop {
            let now = (self.now)();
            let due = async {
                match plan.due() {
                    Some(due) => time::sleep(due.since(now)).await,
                    None => future::pending().await,
                }
            };
            let failed = match first_of(&mut flights, due).await {
                None => None,
                Some((nth, Landed { answer, trail, line: own })) => {
                    let Flight { start, permit, end, .. } = flights.swap_remove(nth);
                    match answer {
                        Ok(answer) => {
                            self.narrator.answered(start.number, self.hedges);
                            self.drop_all(flights);
                            // What the first goes on to hear is nobody's any more.
                            if own.is_some() {
                                line.client.hang_up();
                            }
                            return Ok(Won { answer, trail, line: own, permit, start, end });
                        }
                        // One that cannot be sent a second time ends none that is under way.
                        Err(Broken::Ours(fault)) => {
                            plan.on_failure((self.now)(), Verdict::Transient);
                            self.guard.give_back(permit);
                            if own.is_none() || !plan.refused() {
                                return Err((Broken::Ours(fault), trail, None));
                            }
                            continue;
                        }
                        Err(Broken::Failed(failure)) => {
                            let lost = start.lost();
                            self.said.push(failure.word());
                            self.guard.ended_by(permit, (self.now)(), failure.outcome());
                            match plan.on_failure((self.now)(), failure.verdict) {
                                HedgeStep::Fail => {
                                    self.drop_all(flights);
                                    return Err((Broken::Failed(failure), trail, Some(lost)));
                                }
                                HedgeStep::Wait => {
                                    self.narrator.failed_beside(lost, &failure);
                                    // Signals and limits come first.
                                    tokio::task::yield_now().await;
                                    continue;
                                }
                                HedgeStep::Start => Some((lost, failure, trail)),
                            }
                        }
                    }
                }
            };
            let number = first + self.hedges + 1;
            match self.leave(number) {
                Ok(permit) => {
                    if let Some((lost, failure, _)) = &failed {
                        self.narrator.failed_beside(*lost, failure);
                    }
                    let own = match self.recipe.client() {
                        Ok(client) => Line::of(client),
                        Err(fault) => return Err((Broken::Ours(fault), Trail::default(), None)),
                    };
                    self.hedges += 1;
                    self.narrator.hedges(number, self.hedges);
                    flights.push(self.flight(number, permit, line, Some(own)));
                    plan.begun((self.now)());
                }
                Err(why) => {
                    if let Some(why) = why {
                        self.narrator.no_hedge(&why);
                    }
                    match (plan.refused(), failed) {
                        (true, Some((lost, failure, _))) => self.narrator.failed_beside(lost, &failure),
                        (true, None) => {}
                        (false, failed) => {
                            let Some((lost, failure, trail)) = failed else {
                                let failure = Box::new(Failure::not_sent("no attempt is under way".into()));
                                return Err((Broken::Failed(failure), Trail::default(), None));
                            };
                            return Err((Broken::Failed(failure), trail, Some(lost)));
                        }
                    }
                }
            }
        }
    }

    /// Drops the requests that are under way.
    fn drop_all(&mut self, flights: Vec<Flight<'_>>) {
        flights.into_iter().for_each(|lost| self.guard.give_back(lost.permit));
    }

    /// Leave for the attempt of this number; why not, if that is worth a word.
    fn leave(&mut self, number: u32) -> Result<Permit, Option<String>> {
        let now = (self.now)();
        let most = self.most;
        if most.is_some_and(|most| number > most) || !self.call.may_start(now) {
            return Err(None);
        }
        self.guard.hedge(now).map_err(Some)
    }

    fn flight(&self, number: u32, permit: Permit, first: &'a Line, own: Option<Line>) -> Flight<'a> {
        let terms = self.terms;
        let limit = (self.limit)();
        let run = async move {
            let mut trail = Trail::default();
            let answer = attempt::answer(terms, own.as_ref().unwrap_or(first), number, limit, &mut trail).await;
            Landed { answer, trail, line: own }
        };
        let end = limit.map(|limit| (time::Instant::now() + limit, limit));
        Flight { start: Start::now(number), run: Box::pin(run), permit, end }
    }
}

/// The first attempt that is over; nothing if another is due before.
async fn first_of(flights: &mut [Flight<'_>], due: impl Future<Output = ()>) -> Option<(usize, Landed)> {
    /// What takes longer makes signals and limits wait: a server may answer all at once, and each answer has to be looked through.
    const A_MOMENT: Duration = Duration::from_millis(50);
    let (mut due, mut asked) = (pin!(due), 0);
    poll_fn(|context| {
        let (began, is_round) = (Instant::now(), asked == 0);
        while let Some(flight) = flights.get_mut(asked) {
            if let Poll::Ready(landed) = flight.run.as_mut().poll(context) {
                return Poll::Ready(Some((asked, landed)));
            }
            asked += 1;
            if began.elapsed() >= A_MOMENT {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        asked = 0;
        // Those before it have been woken by now, perhaps.
        if !is_round {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        due.as_mut().poll(context).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_what_may_run_twice_at_once_is_hedged() {
        let (none, mut keyed) = (HeaderMap::new(), HeaderMap::new());
        keyed.insert(wire::IDEMPOTENCY_KEY, HeaderValue::from_static("k"));
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(is_allowed(&method, &none), "{method}");
        }
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::CONNECT] {
            assert!(!is_allowed(&method, &none) && is_allowed(&method, &keyed), "{method}");
        }
    }
}
