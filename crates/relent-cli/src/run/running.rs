//! A command under way: fed, listened to, timed, told to end, and waited for.
//!
//! The attempt is over when the command is over, whoever else still holds its output open.

use super::{
    command_end::{Came, CommandEnd},
    ended::{Ended, How},
    group::Group,
    input::{Feed, Input, Taken, Wants},
    late_output, leader,
    lease::Leased,
    patterns::Found,
    plan::Plan,
    said::Said,
    signals::{Signals, is_ending, is_from_people, poll_timeout},
    spool::Spool,
    stream::{Heard, Stream, Target},
    terminal::{self, Lent, Unattainable},
    ways::{LOOK, SAY_AFTER, Ways},
};
use crate::talk::{Fault, plain};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, poll},
    sys::signal::Signal,
};
use std::{
    os::fd::{AsFd, BorrowedFd},
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

/// A command under way.
pub(super) struct Running<'a> {
    pub(super) group: Group,
    ways: Ways<'a>,
    lent: Option<Lent>,
    /// Whether the command is in our group: then it has what the terminal sends.
    shares_group: bool,
    feed: Option<Feed<'a>>,
    /// What was taken of our standard input, and may not have been read by the command.
    taken: Taken,
    out: Option<Stream<'a>>,
    err: Option<Stream<'a>>,
    started: Instant,
    times_out: Option<Instant>,
    /// When it was told to end, and whether that was said.
    told: Option<(Instant, bool)>,
    /// What it was sent by us to end.
    sent: Vec<Signal>,
    kill: Option<Instant>,
    timed_out: Option<Instant>,
    interrupted: Option<Signal>,
    /// When it was told that the terminal is gone, or to read its settings again: it knows which.
    hung_up: Option<Instant>,
    /// Whether it could not be told that.
    is_unheard: bool,
    /// The lease, until the command was told to end because of it.
    lease: Option<&'a Leased>,
    whole_lease: Option<&'a Leased>,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        plan: &Plan<'a>,
        child: &mut Child,
        input: &'a mut Input,
        group: Group,
        lent: Option<Lent>,
        started: Instant,
    ) -> Running<'a> {
        let out_to = if plan.stream { Target::Out } else { Target::Keep(Spool::new(plan.most)) };
        Running {
            group,
            ways: plan.ways,
            lent,
            shares_group: plan.shares_group,
            feed: input.feed(child.stdin.take()),
            taken: Taken::default(),
            out: child.stdout.take().map(|pipe| Stream::new(pipe.into(), out_to, plan.patterns)),
            err: child.stderr.take().map(|pipe| Stream::new(pipe.into(), Target::Err, plan.patterns)),
            started,
            times_out: plan.limit.and_then(|limit| started.checked_add(limit)),
            told: None,
            sent: Vec::new(),
            kill: None,
            timed_out: None,
            interrupted: None,
            hung_up: None,
            is_unheard: false,
            lease: plan.lease,
            whole_lease: plan.lease,
        }
    }

    pub(super) fn follow(&mut self, child: &mut Child, signals: &Signals) -> Result<ExitStatus, Fault> {
        // To start it may have taken all the time.
        self.keep_time(Instant::now())?;
        loop {
            for signal in signals.take() {
                self.hear(signal, signals)?;
            }
            for signal in signals.besides() {
                self.send(signal)?;
            }
            self.group.reap();
            let status = leader::ended(child)
                .map_err(|error| Fault::new(format!("cannot wait for the command: {}", plain(&error))));
            if let Some(status) = status? {
                self.group.leader_has_ended();
                return Ok(status);
            }
            self.lent = match self.lent.take() {
                None if self.shares_group => None,
                Some(lent) => lent.follow_stop(&self.group, signals),
                None => match terminal::on_demand(&self.group, signals) {
                    Ok(lent) => lent,
                    Err(Unattainable) => self.cannot_ask()?,
                },
            };
            self.keep_time(Instant::now())?;
            self.move_bytes(signals)?;
        }
    }

    /// The command stays stopped for wanting a terminal that nobody can give it. Without relent it would read an error.
    fn cannot_ask(&mut self) -> Result<Option<Lent>, Fault> {
        if self.told.is_none() {
            (self.ways.say)(
                "the command wants the terminal, which others have, and nobody can call it to the foreground; it is told to end",
            );
            self.tell(self.ways.first)?;
        }
        Ok(None)
    }

    fn hear(&mut self, signal: Signal, signals: &Signals) -> Result<(), Fault> {
        match signal {
            Signal::SIGTSTP if self.shares_group => {
                signals.stop();
                Ok(())
            }
            // Who is not to end need not hear it.
            Signal::SIGTSTP => {
                let _ = self.group.pass_on(signal);
                let before = self.lent.take().map(Lent::give_back);
                signals.stop();
                self.lent = before.and_then(|before| Lent::again(&self.group, before));
                let _ = self.group.pass_on(Signal::SIGCONT);
                Ok(())
            }
            // It is only passed on: nobody is ended by it who does not end by itself.
            Signal::SIGHUP => {
                // Somebody else's cannot have read its settings anew.
                if self.group.signal(signal).is_err() && !self.is_unheard {
                    self.is_unheard = true;
                    (self.ways.say)(
                        "the command belongs to another user and cannot be told of the hangup; once it ends, nothing is started",
                    );
                }
                self.hung_up = Some(Instant::now()).filter(|_| self.interrupted.is_none());
                Ok(())
            }
            signal if !is_ending(signal) => {
                let _ = self.group.pass_on(signal);
                Ok(())
            }
            signal if is_from_people(signal) && self.interrupted.is_some_and(is_from_people) => {
                self.kill = Some(Instant::now());
                let killed = self.group.hurry();
                self.heard(killed)
            }
            // What the system sends to relent alone is none of the command's.
            signal if !is_from_people(signal) && self.interrupted.is_some() => Ok(()),
            signal => {
                self.interrupted = Some(signal);
                if self.shares_group && [Signal::SIGINT, Signal::SIGQUIT].contains(&signal) {
                    self.has_told(Instant::now());
                    return Ok(());
                }
                self.tell(if is_from_people(signal) { signal } else { self.ways.first })
            }
        }
    }

    /// A command that belongs to somebody else cannot be ended by us: nobody waits for that.
    fn heard(&self, sent: Result<(), Errno>) -> Result<(), Fault> {
        sent.map_err(|_| {
            Fault::new(format!(
                "the command (process {}) belongs to another user and cannot be sent a signal; it is left running",
                self.group.leader()
            ))
            .hint("run relent as that user, inside of what changes the user: sudo relent run ...")
        })
    }

    fn tell(&mut self, signal: Signal) -> Result<(), Fault> {
        self.has_told(Instant::now());
        self.send(signal)
    }

    fn send(&mut self, signal: Signal) -> Result<(), Fault> {
        self.sent.push(signal);
        let told = self.group.tell(signal);
        self.heard(told)
    }

    /// It was told to end, by us or by the terminal.
    fn has_told(&mut self, now: Instant) {
        self.told.get_or_insert((now, false));
        self.kill = self.kill.or(now.checked_add(self.ways.grace));
    }

    fn keep_time(&mut self, now: Instant) -> Result<(), Fault> {
        if self.times_out.is_some_and(|at| at <= now) {
            self.times_out = None;
            self.timed_out = Some(now);
            self.tell(self.ways.first)?;
        }
        if let Some(lease) = self.whole_lease {
            lease.say_unwatched(self.ways.say);
        }
        if let Some(lease) = self.lease.take_if(|lease| lease.is_lost()) {
            lease.say_lost(self.ways.say);
            self.tell(self.ways.first)?;
            lease.told();
            self.kill = self.kill.into_iter().chain([lease.kill_at()]).min();
        }
        if let Some((since, is_said)) = &mut self.told {
            if !*is_said && now.duration_since(*since) >= SAY_AFTER {
                *is_said = true;
                self.ways.say_waiting(self.kill);
            }
            self.group.tell_orphans(self.ways.first);
        }
        if self.kill.is_some_and(|at| at <= now) {
            // Again and again until it is over: who dies slowly leaves orphans only then, and a tracer keeps it from being waited for.
            self.kill = now.checked_add(LOOK);
            let killed = self.group.kill();
            self.heard(killed)?;
            if self.group.does_not_die() {
                let text =
                    format!("the command (process {}) was killed, and does not end; it is left", self.group.leader());
                return Err(Fault::new(text).hint("somebody traces it, or the system waits for a device"));
            }
        }
        Ok(())
    }

    /// Waits until something can be read or written, or it is time for something, and moves what can be moved.
    fn move_bytes(&mut self, signals: &Signals) -> Result<(), Fault> {
        let ready = self.wait(signals)?;
        if let Some(feed) = &mut self.feed {
            if ready.closed {
                feed.close();
            }
            if (ready.closed || ready.feed) && !feed.step(self.ways.say)? {
                self.end_feed()?;
            }
        }
        for (stream, _) in [(&mut self.out, ready.out), (&mut self.err, ready.err)].into_iter().filter(|(_, is)| *is) {
            stream.as_mut().map_or(Ok(()), |stream| stream.step(self.ways.say))?;
        }
        Ok(())
    }

    /// Closes the command's standard input, and takes note of what was taken for it.
    fn end_feed(&mut self) -> Result<(), Fault> {
        if let Some(feed) = self.feed.take() {
            self.taken = feed.finish(self.ways.say)?;
        }
        Ok(())
    }

    fn wait(&self, signals: &Signals) -> Result<Ready, Fault> {
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let out = self.out.as_ref().and_then(|stream| stream.poll(&mut fds));
        let err = self.err.as_ref().and_then(|stream| stream.poll(&mut fds));
        let sink = fds.len();
        let feed = self.feed.as_ref().map(|feed| {
            let (sink, source) = feed.polls();
            fds.push(sink);
            fds.extend(source);
            feed.wants()
        });
        // Who was told to end may leave others behind, which are told too.
        let look = self.told.is_some().then(|| Instant::now() + LOOK);
        let lease = self.lease.map(Leased::tell_at);
        let is_busy = |stream: &Option<Stream<'_>>| stream.as_ref().is_some_and(Stream::is_busy);
        let busy = (is_busy(&self.out) || is_busy(&self.err)).then(Instant::now);
        let next = [self.times_out, self.kill, look, lease, busy].into_iter().flatten().min();
        let timeout = poll_timeout(next.map(|at| at.saturating_duration_since(Instant::now())));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(Fault::new(format!("cannot wait for the command: {}", plain(&error.into())))),
        }
        let is_ready = |at: usize| fds[at].any().unwrap_or(true);
        let is_broken = |at: usize| fds[at].revents().is_none_or(|seen| seen.contains(PollFlags::POLLERR));
        Ok(Ready {
            out: out.is_some_and(is_ready) || is_busy(&self.out),
            err: err.is_some_and(is_ready) || is_busy(&self.err),
            feed: match feed {
                Some(Wants::Room) => is_ready(sink),
                Some(Wants::More) => is_ready(sink + 1),
                Some(Wants::Nothing) => true,
                None => false,
            },
            closed: feed.is_some() && is_broken(sink),
        })
    }

    /// Whether the command was told to end because of its lease, by us or by who watches over that.
    fn is_lease_lost(&self) -> bool {
        self.whole_lease.is_some_and(|lease| self.lease.is_none() || lease.may_have_ended_it())
    }

    /// Ends the command and what it has left: relent itself has failed. It may write yet, as it could without that.
    pub(super) fn fail(mut self, child: &mut Child, signals: &Signals) {
        let kill_at = self.kill.or_else(|| Instant::now().checked_add(self.ways.grace));
        self.streams().for_each(Stream::is_in_vain);
        let mut streams: Vec<_> = self.out.iter_mut().chain(&mut self.err).collect();
        let mut wait = || late_output::step(&mut streams, LOOK, signals, self.ways.say).unwrap_or_default();
        // It may be nobody's to end; then it is not waited for either.
        if self.group.end_leader(child, kill_at, self.ways, &mut wait) {
            self.streams().for_each(Stream::is_over);
            let _ = self.err.take().map(|stream| stream.finish(self.ways.say, |_| false));
            self.give_up(false, signals);
        }
    }

    /// Ends what the command has left, which has ended, unless it has succeeded: relent itself has failed.
    fn give_up(mut self, has_succeeded: bool, signals: &Signals) {
        // Nobody is to wait for us to read.
        (self.out, self.err, self.lent) = (None, None, None);
        if !has_succeeded {
            let _ = self.group.sweep(self.interrupted, self.ways, signals);
        }
        if let Some(lease) = self.whole_lease {
            lease.is_over(&self.group);
        }
    }

    /// Hears what else comes of the output of a command that has ended by itself, while somebody holds that: the time of the attempt and
    /// the lease may end meanwhile. The signal that has ended this.
    fn read_on(
        &mut self,
        latest: Instant,
        succeeds: &dyn Fn(Found) -> bool,
        signals: &Signals,
    ) -> Result<Option<Signal>, Fault> {
        let (lease, say) = (self.whole_lease, self.ways.say);
        let until = |stood_still| {
            let latest = latest + stood_still;
            lease.map_or(latest, |lease| lease.tell_at().min(latest))
        };
        let ending = late_output::read_on(self.streams().collect(), &until, succeeds, signals, say)?;
        self.streams().for_each(Stream::is_over);
        Ok(ending)
    }

    fn streams(&mut self) -> impl Iterator<Item = &mut Stream<'a>> {
        self.out.iter_mut().chain(&mut self.err)
    }

    /// Whether the command was told to end, or may have been.
    pub(super) fn was_told(&self) -> bool {
        self.told.is_some() || self.is_lease_lost()
    }

    /// What came of it, with what it has left; whether it is a success depends on what is found in its output.
    pub(super) fn ended(
        mut self,
        status: ExitStatus,
        succeeds: &dyn Fn(Found) -> bool,
        signals: &Signals,
    ) -> Result<Ended, Fault> {
        let over = Instant::now();
        let ran = self.timed_out.unwrap_or(over).duration_since(self.started);
        self.streams().for_each(Stream::is_over);
        // What is typed from now on is ours: the command has ended.
        let was_lent = self.lent.take().is_some();
        let end = CommandEnd {
            how: How::of(status),
            over,
            grace: self.ways.grace,
            told: self.told.map(|(at, _)| at),
            sent: std::mem::take(&mut self.sent),
            was_lent,
            hung_up: self.hung_up,
            is_unheard: self.is_unheard,
            times_out: self.times_out,
            is_lease_lost: self.is_lease_lost(),
        };
        if let Some(signal) = end.typed() {
            signals.was_heard(signal);
        }
        let latest = end.writes_until();
        let finishes = latest.filter(|_| self.out.is_none() || self.err.is_none());
        let read = self.end_feed().and_then(|()| match latest {
            Some(latest) => self.read_on(latest, succeeds, signals),
            None => Ok(end.ended_by(self.interrupted)),
        });
        let interrupted = match read {
            Ok(signal) => signal,
            Err(fault) => {
                self.give_up(end.has_succeeded(), signals);
                return Err(fault);
            }
        };
        let is_held = !end.is_told() && self.streams().any(|stream| stream.is_held());
        let lost = self.taken.unread();
        if lost > 0 && status.success() {
            (self.ways.say)(&format!(
                "took {lost} bytes of standard input that the command did not read; --stdin inherit leaves them"
            ));
        }
        let lease = self.whole_lease;
        let mut came =
            Came { interrupted, is_late: self.timed_out.is_some(), is_lost: self.is_lease_lost(), is_cut: false };
        // Nobody waits for a reader, or for a search, longer than for the command.
        let mut waits = |out: Option<BorrowedFd<'_>>| {
            came.interrupted = came.interrupted.or_else(|| signals.wait(Duration::ZERO));
            let now = Instant::now();
            came.is_late |= self.times_out.is_some_and(|at| at <= now);
            came.is_lost |= lease.is_some_and(Leased::is_lost);
            came.is_cut = !came.goes_on();
            if let Some(out) = out.filter(|_| came.goes_on()) {
                let mut fds = [PollFd::new(out, PollFlags::POLLOUT), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
                let next = self.times_out.into_iter().chain(lease.map(Leased::tell_at)).min();
                let _ = poll(&mut fds, poll_timeout(next.map(|at| at.saturating_duration_since(now))));
            }
            came.goes_on()
        };
        let mut heard = |stream: Option<Stream<'_>>| match stream {
            Some(stream) => stream.finish(self.ways.say, &mut waits),
            None => Ok(Heard::default()),
        };
        let (out, err) = match (heard(self.out.take()), heard(self.err.take())) {
            (Ok(out), Ok(err)) => (out, err),
            (Err(fault), _) | (_, Err(fault)) => {
                self.give_up(end.has_succeeded(), signals);
                return Err(fault);
            }
        };
        let how = end.how(&came);
        let found = out.found.or(err.found);
        // Nothing is missing of what a success has written.
        let is_short = out.is_short && succeeds(found);
        if let Some(fault) = out.cut.or(err.cut).or_else(|| is_short.then(no_room)).filter(|_| how == How::Exited(0)) {
            self.give_up(end.has_succeeded(), signals);
            return Err(fault);
        }
        // The system told the group that had it, and not ours; who means to outlive that ignores it.
        let is_gone = was_lent && came.interrupted.is_none() && terminal::is_gone() && signals.heeds(Signal::SIGHUP);
        let was_told = || how == How::Died(Signal::SIGHUP as i32) || terminal::is_session_over();
        if is_gone && self.hung_up.is_none() && !end.is_told() && was_told() {
            signals.tell_the_others(Signal::SIGHUP);
        }
        // Who says so by an exit status alone may have meant to live: a script around us goes on then, as without relent.
        if let Some(signal) =
            end.typed().filter(|signal| how == How::Died(*signal as i32) && came.interrupted.is_none())
        {
            signals.tell_the_others(signal);
        }
        let interrupted = end.interrupted(&came, is_gone);
        Ok(Ended {
            unread: (how != end.how && !end.is_told()).then(|| end.how.clone()),
            how,
            ran,
            output: out.output.unwrap_or_default(),
            found,
            said: Said::default(),
            stands: false,
            nobody_reads: out.nobody_reads,
            went_out: out.went_out,
            is_held,
            finishes: finishes.filter(|_| interrupted.is_none()),
            interrupted,
            outlives_a_hangup: end.outlives_a_hangup(&came, is_gone),
            group: Some(self.group),
        })
    }
}

/// The fault of a success that showed only in a last line without an end, when some of its output had been left out.
fn no_room() -> Fault {
    Fault::new("the command's output is longer than what is kept (--max-kept), and is cut where it succeeds")
        .hint("keep more of it, or use --stream")
}

struct Ready {
    out: bool,
    err: bool,
    feed: bool,
    closed: bool,
}
