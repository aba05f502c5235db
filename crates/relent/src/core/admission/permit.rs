//! A place in a server that cannot be forgotten: from the decision until the answer has been sent.

use super::{Admission, Admit, Arrival, LimitSettings, Priority, Room, Turn, refusal::Refusal};
use crate::core::{
    limiter::{Limit, LimitAnswer, LimitNext, Place},
    outcome::Outcome,
    time::Timestamp,
};
#[cfg(any(feature = "tower", all(test, loom)))]
use core::task::Waker;
use core::{fmt, ops::Deref, time::Duration};

/// One attempt inside a server. It has a place under the [`limit`](Admission::limit), which comes back when this is
/// dropped, however that happens: after the answer, by a panic, or because the client has gone.
///
/// `A` is a reference, or an `Arc`. Its two moments are told apart, because a body may take long for its reader's sake:
/// [`answered`](AdmissionPermit::answered) is when the answer was there, which is what the service takes, and the drop is when
/// the place is free.
///
/// ```
/// use relent::{Admission, Arrival, Limit, Outcome, Timestamp};
///
/// let door = Admission::new().limit(Limit::concurrency(1));
/// let (came, answered) = (Timestamp::ZERO, Timestamp::from_nanos(5_000_000));
/// let mut permit = door.permit(came, &Arrival::default()).unwrap();
/// assert_eq!(permit.waits_until(), None, "the work may begin");
/// permit.answered(answered, Outcome::Success);
/// // Its body broke off. The place is kept until the drop.
/// permit.failed(Outcome::TimedOut);
/// assert_eq!(permit.admission().snapshot(answered).limit.unwrap().in_flight, Some(1));
/// drop(permit);
/// assert_eq!(door.snapshot(answered).limit.unwrap().in_flight, Some(0));
/// ```
#[must_use = "the work is done while its permit is held"]
pub struct AdmissionPermit<A: Deref<Target = Admission>> {
    admission: A,
    phase: Phase,
    outcome: Outcome,
    /// What is asked about it again if it has waited in vain.
    attempt: u32,
    priority: Priority,
    /// When it came.
    came: Timestamp,
    /// When it got its place; while it waits, until when it may.
    mark: Timestamp,
    /// The latest that anybody told.
    now: Timestamp,
    /// Its place among those who wait.
    ticket: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Has no place: vital, without a limit, or gone.
    Free,
    Waiting,
    Inside,
}

impl Admission {
    /// Decides on an attempt that arrives at `now`, and takes its place. Where the limit has a queue, it may have to
    /// [wait](AdmissionPermit::waits_until) first.
    ///
    /// # Errors
    ///
    /// What the client is told instead: any answer but [`Admit::Accept`].
    #[inline]
    pub fn permit(&self, now: Timestamp, arrival: &Arrival) -> Result<AdmissionPermit<&Admission>, Admit> {
        AdmissionPermit::ask(self, now, arrival)
    }

    /// Of those who wait, the next one asks again.
    fn wake_next(&self, now: Timestamp) {
        if let Some(limit) = self.limit.as_ref().filter(|limit| limit.has_queue())
            && let Some(next) = limit.next(now)
        {
            // A pacer keeps the queue as full as it is, for as long as there is a herd: nobody in it is too late.
            self.lobby.wake(matches!(next, LimitNext::Newest) && self.pacer.is_none());
        }
    }

    /// What is in use, besides one attempt that has its place already.
    fn room(limit: &Limit, now: Timestamp) -> Room {
        let snapshot = limit.snapshot(now);
        let queue = match limit.settings() {
            LimitSettings::Concurrency { queue, .. } => u64::from(queue),
            _ => 0,
        };
        let most = snapshot.limit.map_or(u64::MAX, |limit| (limit as u64).saturating_add(queue));
        let used = match snapshot.in_flight {
            Some(flying) => u64::from(flying) + u64::from(snapshot.queued),
            None => most.saturating_sub(snapshot.available as u64),
        };
        Room { used: used.saturating_sub(1), most }
    }

    /// Whether the room that there is may be this attempt's.
    fn is_open_to(&self, limit: &Limit, now: Timestamp, arrival: &Arrival) -> bool {
        // Who comes back at their turn must find room, though clocks and networks are a little late: a tenth.
        let is_newcomer = arrival.attempt <= 1 && self.pacer.is_some();
        // Who may have all of the room has a place already.
        if !is_newcomer && arrival.priority == Priority::Normal && self.most_for(arrival, 100) == 100 {
            return true;
        }
        let room = Self::room(limit, now);
        let kept = if is_newcomer && room.most > 1 { (room.most / 10).max(1) } else { 0 };
        room.used < self.most_for(arrival, room.most).min(room.most - kept)
    }

    /// What somebody is told for whom there is no room, or none because it is kept for others.
    #[cold]
    fn turn_away(&self, now: Timestamp, arrival: &Arrival, is_kept: bool) -> Refusal {
        match &self.pacer {
            Some(pacer) => {
                // Without room the time is never now.
                let turn = pacer.arrive(now, arrival.attempt, false);
                self.paced(turn).err().unwrap_or_else(|| self.refuse(now, arrival, is_kept))
            }
            None => self.refuse(now, arrival, is_kept),
        }
    }
}

impl<A: Deref<Target = Admission>> AdmissionPermit<A> {
    /// As [`Admission::permit`], for what keeps the permit elsewhere: `A` may be an `Arc`.
    ///
    /// # Errors
    ///
    /// What the client is told instead: any answer but [`Admit::Accept`].
    ///
    /// ```
    /// use relent::{Admission, AdmissionPermit, Admit, Arrival, Limit, Timestamp};
    /// use std::sync::Arc;
    ///
    /// let door = Arc::new(Admission::new().limit(Limit::concurrency(1)));
    /// let permit = AdmissionPermit::ask(door.clone(), Timestamp::ZERO, &Arrival::default()).unwrap();
    /// let second = AdmissionPermit::ask(door.clone(), Timestamp::ZERO, &Arrival::default());
    /// assert!(matches!(second, Err(Admit::Shed(_))));
    /// std::thread::spawn(move || drop(permit)).join().unwrap();
    /// assert_eq!(door.snapshot(Timestamp::ZERO).limit.unwrap().in_flight, Some(0));
    /// ```
    #[inline]
    pub fn ask(admission: A, now: Timestamp, arrival: &Arrival) -> Result<AdmissionPermit<A>, Admit> {
        AdmissionPermit::of(admission, now, arrival).map_err(|refusal| refusal.answer)
    }

    #[inline]
    pub(crate) fn of(admission: A, now: Timestamp, arrival: &Arrival) -> Result<AdmissionPermit<A>, Refusal> {
        let door = &*admission;
        door.recent.add(now, arrival.attempt);
        let (mut phase, mut mark, mut place) = (Phase::Free, now, Place(now.as_nanos()));
        if arrival.priority != Priority::Vital {
            if door.is_hopeless(arrival) {
                return Err(door.hopeless());
            }
            if let Some(limit) = &door.limit {
                match limit.acquire_place(now) {
                    Ok(granted) => (phase, place) = (Phase::Inside, granted),
                    Err(LimitAnswer::Queue(longest)) => {
                        phase = Phase::Waiting;
                        mark = now + door.patience(arrival, longest);
                    }
                    Err(_) => return Err(door.turn_away(now, arrival, false)),
                }
                if !door.is_open_to(limit, now, arrival) {
                    door.never_mind(now, phase, place);
                    return Err(door.turn_away(now, arrival, true));
                }
            }
            if let Some(pacer) = &door.pacer {
                let turn = pacer.arrive(now, arrival.attempt, true);
                if turn != Turn::Now
                    && let Err(refusal) = door.paced(turn)
                {
                    door.never_mind(now, phase, place);
                    return Err(refusal);
                }
            }
        }
        if phase != Phase::Waiting {
            door.accepted.add(1);
        }
        let Arrival { attempt, priority, .. } = *arrival;
        let outcome = Outcome::Dropped;
        Ok(AdmissionPermit { admission, phase, outcome, attempt, priority, came: now, mark, now, ticket: 0 })
    }

    /// The admission it is of.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// What it was asked with.
    #[cfg(feature = "tower")]
    pub(crate) fn door(&self) -> &A {
        &self.admission
    }

    /// Until when it waits for room, before the work may begin; `None` if it may.
    #[inline]
    pub fn waits_until(&self) -> Option<Timestamp> {
        (self.phase == Phase::Waiting).then_some(self.mark)
    }

    /// Asks again, for one that waits: `true` if the work may begin now. Worth asking when an attempt has ended.
    ///
    /// # Errors
    ///
    /// It has waited for as long as it may, and this is what the client is told. It has left the queue.
    ///
    /// ```
    /// use relent::{Admission, Admit, Arrival, Limit, Timestamp};
    /// use std::time::Duration;
    ///
    /// let (long, now) = (Duration::from_millis(50), Timestamp::ZERO);
    /// let door = Admission::new().limit(Limit::concurrency(1).queue(1, long));
    /// let first = door.permit(now, &Arrival::default()).unwrap();
    /// let mut second = door.permit(now, &Arrival::default()).unwrap();
    /// assert_eq!((second.waits_until(), second.enter(now)), (Some(now + long), Ok(false)));
    /// drop(first);
    /// assert_eq!((second.enter(now), second.waits_until()), (Ok(true), None));
    /// ```
    pub fn enter(&mut self, now: Timestamp) -> Result<bool, Admit> {
        self.ask_again(now).map_err(|refusal| refusal.answer)
    }

    pub(crate) fn ask_again(&mut self, now: Timestamp) -> Result<bool, Refusal> {
        self.now = self.now.max(now);
        let (Phase::Waiting, Some(limit)) = (self.phase, &self.admission.limit) else { return Ok(true) };
        if limit.enter() {
            self.admission.lobby.leave(core::mem::take(&mut self.ticket));
            (self.phase, self.mark) = (Phase::Inside, self.now);
            self.admission.accepted.add(1);
            // There may be room for more than one, of whom only one was woken.
            self.admission.wake_next(self.now);
            return Ok(true);
        }
        if self.now < self.mark {
            return Ok(false);
        }
        let arrival = Arrival { attempt: self.attempt, priority: self.priority, client: None, left: None };
        let refused = self.admission.turn_away(self.now, &arrival, false);
        self.leave();
        Err(refused)
    }

    /// Is woken when there may be room. Asks after this, or a place that came free in between is missed.
    #[cfg(any(feature = "tower", all(test, loom)))]
    pub(crate) fn stand_in_line(&mut self, waker: &Waker) {
        if self.phase == Phase::Waiting {
            self.ticket = self.admission.lobby.enter(self.ticket, waker);
        }
    }

    /// The answer is there, or failed: what the service takes is learned from it, and, where it is measured, the
    /// capacity. The place is kept until this is dropped.
    #[inline]
    pub fn answered(&mut self, now: Timestamp, outcome: Outcome) {
        self.now = self.now.max(now);
        self.outcome = outcome;
        let door = &*self.admission;
        if outcome.is_answered() {
            door.completed(self.now.since(self.came));
        }
        if let Some(pacer) = &door.pacer
            && pacer.settings().measured
        {
            let waited = if self.phase == Phase::Inside { self.mark.since(self.came) } else { Duration::ZERO };
            pacer.completed(self.now, waited, door.is_used_up(self.now));
        }
    }

    /// What was answered has failed on its way after all.
    pub fn failed(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    fn leave(&mut self) {
        let phase = core::mem::replace(&mut self.phase, Phase::Free);
        let Some(limit) = &self.admission.limit else { return };
        match phase {
            Phase::Free => return,
            Phase::Inside => limit.release(self.now, self.outcome, self.now.since(self.mark)),
            Phase::Waiting => {
                limit.leave();
                self.admission.lobby.leave(core::mem::take(&mut self.ticket));
            }
        }
        self.admission.wake_next(self.now);
    }
}

impl Admission {
    /// A place that was granted is not wanted.
    fn never_mind(&self, now: Timestamp, phase: Phase, place: Place) {
        match (&self.limit, phase) {
            (Some(limit), Phase::Inside) => limit.give_place_back(place, now),
            (Some(limit), Phase::Waiting) => limit.leave(),
            _ => return,
        }
        self.wake_next(now);
    }

    /// How long somebody waits at most: no longer than an answer would still be of use.
    fn patience(&self, arrival: &Arrival, longest: Duration) -> Duration {
        let of_use = arrival.left.map(|left| left.saturating_sub(self.takes().unwrap_or_default()));
        of_use.map_or(longest, |of_use| of_use.min(longest))
    }

    /// Whether somebody waits, or, without a queue, three quarters of the room are in use: between the end of one and
    /// the beginning of the next it is never all of it.
    fn is_used_up(&self, now: Timestamp) -> bool {
        let Some(limit) = &self.limit else { return false };
        let snapshot = limit.snapshot(now);
        snapshot.queued > 0 || snapshot.limit.is_some_and(|limit| snapshot.available * 4.0 <= limit)
    }
}

impl<A: Deref<Target = Admission>> Drop for AdmissionPermit<A> {
    #[inline]
    fn drop(&mut self) {
        if self.phase != Phase::Free {
            self.leave();
        }
    }
}

impl<A: Deref<Target = Admission>> fmt::Debug for AdmissionPermit<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionPermit").field("phase", &self.phase).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
#[path = "permit_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "permit_models.rs"]
mod models;
