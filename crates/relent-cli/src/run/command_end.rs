//! The end of a command, decided: who has ended it, how long what it has left may write, and what all of that comes to. Nothing here
//! waits, or looks at a clock or at a process.

use super::{ended::How, late_output};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// What is known when a command has ended.
#[derive(Debug)]
pub(super) struct CommandEnd {
    pub(super) how: How,
    pub(super) over: Instant,
    /// How long who was told to end may take.
    pub(super) grace: Duration,
    /// When it was told to end, by us or by the terminal.
    pub(super) told: Option<Instant>,
    /// What it was sent by us to end.
    pub(super) sent: Vec<Signal>,
    /// Whether it had the terminal.
    pub(super) was_lent: bool,
    /// When it was told that the terminal is gone, or to read its settings again.
    pub(super) hung_up: Option<Instant>,
    /// Whether it could not be told that, as it is somebody else's.
    pub(super) is_unheard: bool,
    /// When the time of the attempt is up, if it is not yet.
    pub(super) times_out: Option<Instant>,
    /// Whether the lease was lost by then, or may have ended it.
    pub(super) is_lease_lost: bool,
}

/// What has come to relent while the command ran, or while it waited for a reader or for a search after that.
#[derive(Debug, Default)]
pub(super) struct Came {
    /// The signal that ends the run.
    pub(super) interrupted: Option<Signal>,
    /// Whether the time of the attempt was up.
    pub(super) is_late: bool,
    /// Whether the lease is lost, or may have ended the command.
    pub(super) is_lost: bool,
    /// Whether the output is not whole because of one of them.
    pub(super) is_cut: bool,
}

impl Came {
    /// Whether there is nothing that ends a wait for a reader or a search.
    pub(super) fn goes_on(&self) -> bool {
        self.interrupted.is_none() && !self.is_late && !self.is_lost
    }
}

impl CommandEnd {
    fn is_success(&self) -> bool {
        self.how == How::Exited(0)
    }

    /// The signal that the terminal has sent to the command alone, which had it: nobody else did, and no lease that was lost.
    pub(super) fn typed(&self) -> Option<Signal> {
        self.how.typed().filter(|signal| self.was_lent && !self.sent.contains(signal) && !self.is_lease_lost)
    }

    /// Whether it was told to end.
    pub(super) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether a hangup has come that it may have ended for, that came while it was to end, or of which it knows nothing. Who goes on for
    /// longer has read its settings anew.
    fn is_hung_up(&self) -> bool {
        let has_died = self.how == How::Died(Signal::SIGHUP as i32);
        let soon = self.grace.max(late_output::MOMENT);
        let is_after_it = |at| self.told.is_some_and(|told| at >= told);
        self.hung_up
            .is_some_and(|at| has_died || self.is_unheard || is_after_it(at) || self.over.duration_since(at) <= soon)
    }

    /// Whether nobody has ended it. Who was told to end has ended for that; and who has succeeded for nothing.
    fn ends_by_itself(&self) -> bool {
        !self.is_told() && self.typed().is_none() && (self.is_success() || !self.is_hung_up())
    }

    /// Whether it has succeeded, as far as its exit status says that.
    pub(super) fn has_succeeded(&self) -> bool {
        self.is_success() && self.ends_by_itself()
    }

    /// Until when something that it has left may finish what it writes, if it may. A success was in time: what that has left is not cut
    /// by a limit.
    pub(super) fn writes_until(&self) -> Option<Instant> {
        let moment = self.over + late_output::MOMENT;
        let limit = self.times_out.filter(|_| !self.is_success());
        self.ends_by_itself().then(|| limit.map_or(moment, |at| at.min(moment)))
    }

    /// The signal by which it was ended, or that came while it ended, where nobody waits for what it has left.
    pub(super) fn ended_by(&self, interrupted: Option<Signal>) -> Option<Signal> {
        // As one of the terminal's that has ended it.
        interrupted.or(self.is_hung_up().then_some(Signal::SIGHUP))
    }

    /// How the attempt ended, whatever the command says.
    pub(super) fn how(&self, came: &Came) -> How {
        match came.interrupted.filter(|_| came.is_cut) {
            _ if came.is_late => How::TimedOut,
            _ if came.is_lost => How::LeaseLost,
            // Its output is not whole.
            Some(signal) => How::Died(signal as i32),
            None => self.how.clone(),
        }
    }

    /// The signal that ends the run, where the terminal may have gone meanwhile.
    pub(super) fn interrupted(&self, came: &Came, is_gone: bool) -> Option<Signal> {
        let hung_up = (self.is_hung_up() || is_gone).then_some(Signal::SIGHUP);
        came.interrupted.or(hung_up).or(self.typed())
    }

    /// Whether that signal is a hangup, and the command has succeeded all the same.
    pub(super) fn outlives_a_hangup(&self, came: &Came, is_gone: bool) -> bool {
        self.is_hung_up() && self.has_succeeded() && came.interrupted.is_none() && !is_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

    const GRACE: Duration = Duration::from_secs(10);
    const MILLI: Duration = Duration::from_millis(1);

    /// A command that has ended by itself.
    fn end(how: How) -> CommandEnd {
        CommandEnd {
            how,
            over: Instant::now() + 10 * GRACE,
            grace: GRACE,
            told: None,
            sent: vec![],
            was_lent: false,
            hung_up: None,
            is_unheard: false,
            times_out: None,
            is_lease_lost: false,
        }
    }

    /// The same, told of a hangup so long before.
    fn hung_up(how: How, before: Duration) -> CommandEnd {
        let end = end(how);
        CommandEnd { hung_up: Some(end.over - before), ..end }
    }

    /// The same, which had the terminal.
    fn lent(how: How) -> CommandEnd {
        CommandEnd { was_lent: true, ..end(how) }
    }

    const SUCCESS: How = How::Exited(0);
    const FAILURE: How = How::Exited(1);

    #[test]
    fn what_a_command_has_left_has_a_moment_to_write_unless_somebody_ended_it() {
        for how in [SUCCESS, FAILURE, How::Died(9)] {
            let end = end(how.clone());
            assert_eq!(end.writes_until(), Some(end.over + late_output::MOMENT), "{how:?}");
            assert_eq!(CommandEnd { told: Some(end.over), ..end }.writes_until(), None, "{how:?}");
        }
        assert_eq!(hung_up(FAILURE, MILLI).writes_until(), None);
        let read_anew = hung_up(FAILURE, GRACE + MILLI);
        assert_eq!(read_anew.writes_until(), Some(read_anew.over + late_output::MOMENT));
        assert_eq!(lent(How::Died(SIGINT as i32)).writes_until(), None);
    }

    #[test]
    fn the_time_of_the_attempt_cuts_what_a_failure_has_left_and_not_a_success() {
        for (how, is_cut) in [(SUCCESS, false), (FAILURE, true), (How::Died(15), true)] {
            let end = end(how.clone());
            let (over, moment) = (end.over, end.over + late_output::MOMENT);
            let (soon, late) = (over + MILLI, moment + MILLI);
            let until = |at| CommandEnd { over, times_out: Some(at), ..self::end(how.clone()) }.writes_until();
            assert_eq!(until(soon), Some(if is_cut { soon } else { moment }), "{how:?}");
            assert_eq!(until(late), Some(moment), "{how:?}");
        }
    }

    #[test]
    fn a_success_that_was_told_to_end_has_ended_for_that() {
        assert!(end(SUCCESS).has_succeeded());
        assert!(!CommandEnd { told: Some(Instant::now()), ..end(SUCCESS) }.has_succeeded());
        assert!(hung_up(SUCCESS, MILLI).has_succeeded(), "nohup");
        assert!(!hung_up(FAILURE, MILLI).has_succeeded());
    }

    #[test]
    fn a_hangup_ends_the_run_if_the_command_ended_soon_after_it() {
        let nothing = Came::default();
        for (how, outlives) in [(SUCCESS, true), (FAILURE, false), (How::Died(SIGHUP as i32), false)] {
            let soon = hung_up(how.clone(), GRACE);
            assert_eq!(soon.interrupted(&nothing, false), Some(SIGHUP), "{how:?}");
            assert_eq!(soon.outlives_a_hangup(&nothing, false), outlives, "{how:?}");
            // Of a terminal that is gone nothing is read anew.
            assert!(!soon.outlives_a_hangup(&nothing, true), "{how:?}");
            if how == How::Died(SIGHUP as i32) {
                continue;
            }
            let late = hung_up(how.clone(), GRACE + MILLI);
            assert_eq!((late.interrupted(&nothing, false), late.ended_by(None)), (None, None), "{how:?}");
            assert_eq!(late.interrupted(&nothing, true), Some(SIGHUP), "{how:?}");
            assert!(!late.outlives_a_hangup(&nothing, false), "{how:?}");
        }
        // Another signal that came says more.
        let soon = hung_up(SUCCESS, MILLI);
        let came = Came { interrupted: Some(SIGTERM), ..Came::default() };
        assert_eq!((soon.interrupted(&came, false), soon.ended_by(Some(SIGTERM))), (Some(SIGTERM), Some(SIGTERM)));
        assert!(!soon.outlives_a_hangup(&came, false));
        assert_eq!(hung_up(How::Died(SIGHUP as i32), 10 * GRACE).ended_by(None), Some(SIGHUP), "as it says itself");
    }

    #[test]
    fn who_could_not_be_told_of_a_hangup_has_read_nothing_anew() {
        for (how, outlives) in [(SUCCESS, true), (FAILURE, false)] {
            let end = CommandEnd { is_unheard: true, ..hung_up(how, 9 * GRACE) };
            assert_eq!(end.interrupted(&Came::default(), false), Some(SIGHUP));
            assert_eq!(end.outlives_a_hangup(&Came::default(), false), outlives);
        }
    }

    /// Of who is killed at once some time is left to end by itself.
    #[test]
    fn without_any_grace_a_moment_is_soon() {
        for (before, is) in [(late_output::MOMENT, Some(SIGHUP)), (late_output::MOMENT + MILLI, None)] {
            let end = CommandEnd { grace: Duration::ZERO, ..hung_up(FAILURE, before) };
            assert_eq!(end.ended_by(None), is);
        }
    }

    /// Nothing is started after it, whatever else has ended the command.
    #[test]
    fn a_hangup_of_who_was_told_to_end_ends_the_run() {
        for how in [SUCCESS, FAILURE, How::Died(SIGTERM as i32)] {
            for (told, is) in [(GRACE, None), (5 * GRACE, Some(SIGHUP))] {
                let end = hung_up(how.clone(), 2 * GRACE);
                let end = CommandEnd { told: Some(end.over - told), ..end };
                assert_eq!(
                    (end.ended_by(None), end.interrupted(&Came::default(), false)),
                    (is, is),
                    "{how:?} {told:?}"
                );
                assert!(!end.outlives_a_hangup(&Came::default(), false));
            }
        }
    }

    #[test]
    fn who_had_the_terminal_and_died_by_ctrl_c_had_it_in_our_place() {
        for signal in [SIGINT, SIGQUIT] {
            for how in [How::Died(signal as i32), How::Exited(128 + signal as u8)] {
                assert_eq!(lent(how.clone()).typed(), Some(signal));
                assert_eq!(lent(how.clone()).interrupted(&Came::default(), false), Some(signal));
                assert_eq!(end(how.clone()).typed(), None, "it had no terminal");
                assert_eq!(CommandEnd { sent: vec![signal], ..lent(how.clone()) }.typed(), None, "it was ours");
                assert_eq!(
                    CommandEnd { is_lease_lost: true, ..lent(how) }.typed(),
                    None,
                    "it may have been the lease's"
                );
            }
        }
        assert_eq!(lent(How::Died(SIGTERM as i32)).typed(), None);
    }

    #[test]
    fn what_cuts_the_output_is_how_the_attempt_ended_whatever_the_command_says() {
        let end = end(SUCCESS);
        let signal = Came { interrupted: Some(SIGTERM), ..Came::default() };
        assert_eq!(end.how(&signal), SUCCESS, "nothing is missing");
        let cut = Came { is_cut: true, ..signal };
        assert_eq!(end.how(&cut), How::Died(SIGTERM as i32));
        let lost = Came { is_lost: true, ..cut };
        assert_eq!(end.how(&lost), How::LeaseLost);
        let late = Came { is_late: true, ..lost };
        assert_eq!(end.how(&late), How::TimedOut);
        assert_eq!(end.how(&Came { is_cut: true, ..Came::default() }), SUCCESS);
        assert!(!late.goes_on() && Came::default().goes_on());
    }
}
