//! What the `relent run` around this call is told of it, while it is under way and when it has ended: so that nothing is begun anew that may not
//! be done twice, or sooner than a server has asked, whatever ends us.

use super::{exchange, narrator::Narrator, stop::Stop};
use crate::{
    outer::{self, Untold},
    talk::{self, Fault, plain},
};
use relent::{Reason, Verdict};
use std::{cell::Cell, io};

/// What was told so far. Whether anybody listens is not asked here: where nobody does, nothing has to be heard.
#[derive(Default)]
pub(super) struct Above {
    /// That nothing may be begun anew, whatever ends us.
    stands: Cell<bool>,
    /// That the call is over, which may just not have been shown.
    is_over: Cell<bool>,
    /// What its end means.
    is_judged: Cell<bool>,
    /// The user, that we are not heard.
    is_unheard: Cell<bool>,
}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It has succeeded.
    Done,
    /// It has failed, or was out of time of its own.
    Failed,
    /// Something else on our side has ended it: a full disk.
    CutShort,
    /// The limit of an attempt around it has.
    OutOfTime,
    /// Nobody reads it any more, who may have been ended as we are about to be.
    ReaderGone,
    /// A signal has.
    Signal,
}

impl Above {
    /// Before a request is sent that may not be sent twice: nothing is to be begun anew.
    ///
    /// # Errors
    ///
    /// Somebody is there and has no room for that: it must not be sent.
    pub(super) fn stand(&self, narrator: &Narrator) -> Result<(), Fault> {
        match outer::nothing_again() {
            Ok(()) => {
                self.stands.set(true);
                // A run further out has heard it, perhaps, and the one that would begin anew has not.
                if let Err(Untold::Deaf(error)) = outer::hears() {
                    self.is_deaf(narrator, &error);
                }
            }
            Err(Untold::Deaf(error)) => self.is_deaf(narrator, &error),
            Err(Untold::NoRoom(error)) => {
                // Some of the runs around may have heard it.
                outer::was_not_begun();
                let what =
                    "the relent run around this one cannot be told what may not be sent twice, so it was not sent";
                let hint = talk::hint(&error, "RELENT_VERDICT names the file; empty tells nobody");
                return Err(Fault::new(format!("{what}: {}", plain(&error))).hint(hint));
            }
        }
        Ok(())
    }

    fn is_deaf(&self, narrator: &Narrator, error: &io::Error) {
        self.is_unheard.set(true);
        let what = "the relent run around this one is not told what may not be sent twice";
        narrator.remark(&format!("{what}: {}", plain(error)));
    }

    /// An attempt has failed, and another follows as this verdict says.
    pub(super) fn waits(&self, narrator: &Narrator, verdict: Verdict) {
        self.is_heard(narrator, outer::heed(verdict));
    }

    /// What a server has asked was waited for, or has ended in a success.
    #[expect(clippy::unused_self, reason = "what was asked is kept for the process")]
    pub(super) fn has_heeded(&self) {
        outer::has_heeded();
    }

    /// The call has failed, and to show how may take as long as a server or a reader likes: what ends us before changes nothing of it. How long to
    /// wait was told when it was heard.
    pub(super) fn is_over(&self, stop: Stop, verdict: Verdict, may_begin_anew: bool) {
        self.is_over.set(true);
        let is_put_off = matches!(stop, Stop::GaveUp(Reason::PushbackTooLong)) && may_begin_anew;
        if self.stands.get() || is_put_off && verdict.pushback().is_some() {
            return;
        }
        match outer::nothing_again() {
            Ok(()) => self.stands.set(true),
            Err(_) => outer::was_not_begun(),
        }
    }

    /// The call has failed, and we are about to exit with this code. What the server said counts; how long to wait only for who may begin anew.
    pub(super) fn judge(&self, narrator: &Narrator, (stop, verdict): (Stop, Verdict), may_begin_anew: bool, exit: u8) {
        let told = match (stop, verdict) {
            (Stop::GaveUp(reason), Verdict::After(told)) if may_begin_anew => outer::gave_up(reason, Some(told), exit),
            (Stop::GaveUp(reason), _) => outer::gave_up(reason, None, exit),
            (Stop::Unsafe(_), _) => outer::say(Verdict::Permanent, exit),
        };
        self.is_judged.set(self.is_heard(narrator, told));
    }

    /// The call has had all the time that it was given.
    pub(super) fn is_out_of_time(&self, narrator: &Narrator, exit: u8) {
        self.is_judged.set(self.is_heard(narrator, outer::gave_up(Reason::Elapsed, None, exit)));
    }

    /// At the very end: until then somebody may kill us.
    pub(super) fn ends(&self, end: Ending, exit: u8, may_begin_anew: bool) {
        let is_from_outside = matches!(end, Ending::Signal | Ending::OutOfTime);
        if is_from_outside && self.stands.get() && !exchange::has_begun() && !self.is_over.get() {
            outer::was_not_begun();
            self.stands.set(false);
        }
        let stands = self.stands.get();
        match end {
            Ending::Signal => return outer::was_ended(),
            Ending::Done => return outer::take_all_back(stands),
            Ending::ReaderGone => outer::wait_to_be_ended(stands),
            Ending::Failed | Ending::CutShort | Ending::OutOfTime => {}
        }
        let is_told = || {
            outer::say_what_was_asked(exit)?;
            if stands { outer::say(Verdict::Permanent, exit) } else { Ok(()) }
        };
        if self.is_judged.get() || is_told().is_ok() {
            match end {
                // That of a run further out, too, mostly.
                Ending::OutOfTime => outer::leave_it_to_the_nearest(stands),
                _ => outer::take_all_back(stands),
            }
            return;
        }
        if end == Ending::Failed {
            outer::has_heeded();
        }
        // Who does not hear it takes what may be sent again for what it is.
        if stands && may_begin_anew {
            outer::take_back();
        }
    }

    /// Whether nobody has to hear anything more. That the run around this one does not is said, once.
    fn is_heard(&self, narrator: &Narrator, told: Result<(), Untold>) -> bool {
        let Err(untold) = &told else { return true };
        if !self.is_unheard.replace(true) {
            narrator.remark(&format!("the relent run around this one is not told what that means: {untold}"));
        }
        false
    }
}
