//! A call of relent's, driven: each attempt is the command run once, and what happens between attempts is decided by
//! the same [`Call`] that every other part of relent uses.

use super::{
    args::Args,
    attempt,
    ended::{Ended, How, NOT_NOW, died_by},
    input::Input,
    judge::{Judged, judge},
    late_output,
    lease::{Leased, Taken, Terms},
    mark::Mark,
    narrator::Narrator,
    patterns::Patterns,
    plan::Plan,
    report::{End, Outcome, Report, Row},
    signals::Signals,
    spool::Spool,
    starting::Starting,
    terminal,
    verdict_file::VerdictFile,
    wait::wait,
    ways::Ways,
    without_verdict_file,
};
use crate::{
    brief::quoted,
    guard::{Answer, Guard, may_start, patience},
    json::millis,
    outer::{self, Untold},
    output, redact,
    talk::Fault,
};
use nix::sys::signal::Signal;
use relent::{Call, Decision, Outcome as Told, Policy, Reason, Timestamp, Verdict};
use std::{
    ffi::OsString,
    time::{Duration, Instant},
};

/// A run: what it was asked for, and what it holds.
pub(super) struct Driver<'a> {
    pub(super) args: &'a Args,
    pub(super) policy: &'a Policy,
    pub(super) key: OsString,
    /// What the processes of all attempts are known by.
    pub(super) mark: Mark,
    /// How long all of it may take.
    pub(super) limit: Option<Duration>,
    pub(super) started: Instant,
    /// Whether there were children before any attempt was made.
    pub(super) had_children: bool,
    pub(super) signals: &'a Signals,
    pub(super) starting: Starting,
    pub(super) input: Input,
    pub(super) patterns: Patterns,
    pub(super) stream: bool,
    pub(super) verdicts: VerdictFile,
    /// Whether it was said that whoever is above does not hear us.
    pub(super) is_unheard: bool,
    pub(super) narrator: Narrator,
    pub(super) report: Report,
    pub(super) guard: Guard,
    pub(super) lease: Option<Box<Leased>>,
}

/// How a run ended: what to exit with, and what to write out.
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) exit: u8,
    /// Whether it has come to its end, of which whoever is above was told that it must not be begun anew: that is to be taken back.
    pub(super) has_run: bool,
    pub(super) output: Spool,
    /// Why there is no report, if one is wanted.
    pub(super) unreported: Option<Fault>,
}

/// What has happened so far.
#[derive(Default)]
struct History {
    attempts: u64,
    successes: u32,
    last: Option<(How, String)>,
    output: Spool,
    verdict: Option<Verdict>,
    /// Whether somebody was at what may not be done twice when the last attempt ended.
    is_at_it: bool,
    /// Who was in a wait then that was told, and has not gone on with it.
    have_waited: Vec<String>,
    /// Who has left it to us to say to the runs around that what they were at has come to its end.
    have_ended: Vec<String>,
    /// Whether the runs around have heard that nothing is to be begun anew, before it was known what becomes of that end.
    stands: bool,
    /// Whether the command had succeeded, and all that was missing is that its output was read.
    is_done: bool,
    /// Whether the command has said what its end means.
    is_said: bool,
    /// Why there can be no other attempt, if what was kept for it was too much.
    last_one: Option<&'static str>,
    /// Whether nobody reads what is passed on.
    nobody_reads: bool,
    /// The signal that came while leftovers were ended.
    swept: Option<Signal>,
}

impl Driver<'_> {
    /// Runs the command until it succeeds, the policy gives up or a signal comes.
    pub(super) fn run(mut self, seed: u64) -> Result<Finished, Fault> {
        // Before anything is begun: afterwards is too late.
        self.say_unheard(outer::hears());
        let mut call = self.policy.call(Timestamp::ZERO, seed);
        if let Some(limit) = self.limit {
            call = call.deadline_at(Timestamp::ZERO + limit);
        }
        let mut history = History::default();
        if !may_start(&call, self.now()) {
            return Ok(self.finish(Outcome::GaveUp(Reason::Elapsed), history));
        }
        self.narrator.put_off(1, call.spread());
        let outcome = match wait(call.spread(), 1, self.signals, &mut self.narrator, None) {
            Some(outcome) => outcome,
            None if !may_start(&call, self.now()) => Outcome::GaveUp(Reason::Elapsed),
            None => match self.take_lease(seed)? {
                Some(outcome) => outcome,
                None if !may_start(&call, self.now()) => Outcome::GaveUp(Reason::Elapsed),
                None => match self.attempts(&mut call, &mut history) {
                    Ok(outcome) => outcome,
                    Err(fault) => {
                        self.lease.iter().for_each(|lease| lease.fails(&self.narrator));
                        // What the command is at nobody knows.
                        match self.verdicts.take(0).is_at_it() {
                            true => drop(outer::nothing_again()),
                            false => drop(outer::say(Verdict::Permanent, fault.code())),
                        }
                        return Err(fault);
                    }
                },
            },
        };
        Ok(self.finish(outcome, history))
    }

    /// Takes the lease, if one is wanted; what the run comes to without it.
    fn take_lease(&mut self, seed: u64) -> Result<Option<Outcome>, Fault> {
        let time = &self.args.time;
        let settings = self.policy.settings();
        let end = settings.max_elapsed.into_iter().chain(self.limit).min();
        let until = end.and_then(|end| self.started.checked_add(end));
        let (args, policy, grace, signal) = (&self.args.lease, self.policy, time.grace, time.signal);
        let (since, deadline) = (Instant::now(), self.deadline());
        let (mark, starting) = (&self.mark, &self.starting);
        let terms = Terms { args, policy, seed, grace, signal, mark, starting, since, until, deadline };
        Ok(match Leased::take(&terms, self.signals, &self.narrator)? {
            None => None,
            Some(Taken::Leased(lease)) => {
                self.lease = Some(lease);
                None
            }
            Some(Taken::Not(outcome)) => Some(outcome),
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.limit.and_then(|limit| self.started.checked_add(limit))
    }

    fn is_lease_lost(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.is_lost())
    }

    fn attempts(&mut self, call: &mut Call<&Policy>, history: &mut History) -> Result<Outcome, Fault> {
        loop {
            if let Some(refused) = self.ask(call) {
                return Ok(refused);
            }
            // The store was asked for leave, and may have taken the time.
            if let Some(outcome) = stops(call, self.now(), self.signals, self.lease.as_deref()) {
                return Ok(outcome);
            }
            let (began, attempt) = (self.now(), call.attempt());
            self.narrator.attempt_starts(attempt);
            let begun = self.attempt(call, history);
            if !matches!(begun, Ok(Err(_))) {
                self.guard.begins();
            }
            let ended = match begun? {
                Ok(ended) => ended,
                Err(outcome) => return Ok(outcome),
            };
            history.attempts += 1;
            let (mut interrupted, outlives) = (ended.interrupted, ended.outlives_a_hangup);
            let timed_out = ended.how == How::TimedOut;
            let row = self.judge(ended, attempt, began, history);
            interrupted = interrupted.or(history.swept);
            if interrupted.is_none() || outlives && row.verdict.is_none() {
                self.signals.goes_on();
            }
            let told = match row.verdict {
                // What somebody else has ended says nothing of the far side.
                Some(_) if interrupted.is_some() || self.is_lease_lost() => Told::Dropped,
                Some(Verdict::Transient) if timed_out => Told::TimedOut,
                // One of several successes that are wanted is no failure of the far side, and its repetition no retry.
                Some(verdict) if history.successes == 0 => Told::Failure(verdict),
                _ => Told::Success,
            };
            self.guard.ended(self.now(), told);
            let Some(verdict) = row.verdict else {
                self.report.add(row);
                return Ok(Outcome::Success);
            };
            history.verdict = Some(verdict);
            // Of what ends a run is told when it ends.
            if verdict.pushback().is_some() {
                self.say_unheard(outer::heed(verdict));
            }
            let decision = match interrupted {
                Some(signal) => Err(Outcome::Interrupted(signal)),
                None if self.is_lease_lost() => Err(Outcome::LeaseLost),
                None if history.nobody_reads => Err(Outcome::Interrupted(Signal::SIGPIPE)),
                None if history.last_one.is_some() => Err(Outcome::GaveUp(Reason::Permanent)),
                None => self.decide(call, verdict, row.ran).and_then(|delay| self.pay(told, delay)),
            };
            let delay = decision.as_ref().ok().copied();
            let reason = decision.as_ref().err().and_then(Outcome::reason);
            let row = Row { delay, reason, ..row };
            self.narrator.attempt_failed(&row);
            self.report.add(row);
            let delay = match decision {
                Ok(delay) => delay,
                Err(outcome) => return Ok(outcome),
            };
            outer::have_ended(&std::mem::take(&mut history.have_ended));
            if std::mem::take(&mut history.stands) {
                outer::take_back();
            }
            // From now on it is our wait, and nobody's who was in it.
            outer::have_waited(&std::mem::take(&mut history.have_waited));
            if let Some(outcome) = wait(delay, call.attempt(), self.signals, &mut self.narrator, self.lease.as_deref())
            {
                return Ok(outcome);
            }
            outer::has_heeded();
        }
    }

    /// Waits until the upstream lets the next attempt through; why not, if it does not.
    fn ask(&mut self, call: &Call<&Policy>) -> Option<Outcome> {
        let attempt = call.attempt();
        let mut is_told = false;
        loop {
            // Whoever was stopped, or had too much to do, wakes later than asked.
            if !may_start(call, self.now()) {
                return Some(Outcome::GaveUp(Reason::Elapsed));
            }
            let left = self.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let answer = self.guard.ask(self.now(), patience(self.policy, call.elapsed(self.now()), left));
            self.say_of_upstream();
            match answer {
                Answer::Go => {
                    self.guard.starts(self.now());
                    return None;
                }
                Answer::Wait(delay) => {
                    if !std::mem::replace(&mut is_told, true) {
                        self.narrator.put_off(attempt, delay);
                    }
                    let ended = wait(delay, attempt, self.signals, &mut self.narrator, self.lease.as_deref());
                    if ended.is_some() {
                        return ended;
                    }
                }
                Answer::No(reason, why) => {
                    self.narrator.remark(why);
                    return Some(Outcome::GaveUp(reason));
                }
            }
        }
    }

    /// The delay, if the budget pays for the retry after it.
    fn pay(&mut self, told: Told, delay: Duration) -> Result<Duration, Outcome> {
        let is_paid = self.guard.pay(self.now(), told);
        self.say_of_upstream();
        if is_paid {
            return Ok(delay);
        }
        self.narrator.remark(self.guard.out_of_budget());
        Err(Outcome::GaveUp(Reason::Budget))
    }

    /// Says, once, that whoever is above does not hear what there is to say.
    fn say_unheard(&mut self, said: Result<(), Untold>) {
        if let Err(untold) = said
            && !std::mem::replace(&mut self.is_unheard, true)
        {
            let told = "the relent run around this one is not told what may not be begun anew";
            self.narrator.remark(format_args!("{told}: {untold}"));
        }
    }

    fn say_of_upstream(&mut self) {
        for remark in self.guard.take_remarks() {
            self.narrator.remark(remark);
        }
    }

    fn attempt(&mut self, call: &Call<&Policy>, history: &History) -> Result<Result<Ended, Outcome>, Fault> {
        if let Err(error) = self.verdicts.renew() {
            return Ok(Ok(Ended::without_start(How::CannotRun(without_verdict_file(&error)))));
        }
        let limit = call.attempt_limit(self.now());
        let (lease, signals, started) = (self.lease.as_deref(), self.signals, self.started);
        let now = || Timestamp::ZERO + started.elapsed();
        let (say, latest) = (|text: &str| self.narrator.remark(text), || latest(lease));
        let plan = Plan {
            command: &self.args.command,
            starting: &self.starting,
            environment: self.environment(call.attempt(), limit, history),
            mark: &self.mark,
            limit,
            ways: self.ways(&say, &latest),
            stream: self.stream,
            most: self.args.streams.max_kept.0,
            patterns: &self.patterns,
            rules: &self.args.failure,
            is_enough: history.successes + 1 >= self.args.failure.consecutive,
            verdicts: &self.verdicts,
            had_children: self.had_children,
            shares_group: terminal::is_by_our_group(),
            lease,
            stops: &|| stops(call, now(), signals, lease),
        };
        attempt::run(&plan, &mut self.input, self.signals)
    }

    fn ways<'a>(&self, say: &'a dyn Fn(&str), latest: &'a dyn Fn() -> Option<Instant>) -> Ways<'a> {
        Ways { first: self.args.time.signal, grace: self.args.time.grace, latest, say }
    }

    fn environment(&self, attempt: u32, limit: Option<Duration>, history: &History) -> Vec<(&'static str, OsString)> {
        let most = self.policy.settings().max_attempts.map_or("unlimited".to_owned(), |most| most.to_string());
        let mut environment = vec![
            ("RELENT_ATTEMPT", attempt.to_string().into()),
            ("RELENT_MAX_ATTEMPTS", most.into()),
            (outer::KEY, self.key.clone()),
            ("RELENT_ELAPSED_MS", millis(self.started.elapsed()).to_string().into()),
            // Named and empty where there is none: that of a run around this one is not the command's.
            (outer::VERDICT, self.verdicts.path().map(Into::into).unwrap_or_default()),
            self.mark.variable(),
        ];
        if let Some(above) = outer::all_above() {
            environment.push((outer::ABOVE, above));
        }
        if let Some(limit) = limit {
            environment.push((outer::DEADLINE_MS, outer::millis(limit)));
        }
        if let Some(lease) = &self.lease {
            environment.push(lease.environment());
        }
        if let Some((how, _)) = &history.last {
            environment.push((attempt::LAST_EXIT, how.code().to_string().into()));
        }
        environment
    }

    /// What the attempt came to, as a row of the report. What a failed attempt left running is ended here.
    fn judge(&mut self, mut ended: Ended, attempt: u32, began: Timestamp, history: &mut History) -> Row {
        // What it said of its own end counts, though its output has cut that off.
        let own = || ended.said.about(ended.unread.as_ref()?.code());
        let said = ended.said.about(ended.how.code()).or_else(own).and_then(|said| {
            let no_verdict = |word: &String| {
                let word = quoted(&redact::value(word));
                self.narrator.remark(format_args!("{word} in RELENT_VERDICT is no verdict"));
            };
            said.inspect_err(no_verdict).ok()
        });
        let is_said = said.is_some();
        let (verdict, what) = match judge(&ended, said, &self.args.failure) {
            Judged::Failure(verdict, what) => {
                history.successes = 0;
                (Some(verdict), what)
            }
            Judged::Success => {
                history.successes += 1;
                if ended.is_held {
                    self.narrator.remark(late_output::ENDS);
                }
                let enough = self.args.failure.consecutive;
                let what = format!("success {} of {enough}", history.successes);
                ((history.successes < enough).then_some(Verdict::Transient), what)
            }
        };
        history.is_at_it = ended.said.is_at_it();
        // Whatever makes a failure of it: its code, its output, or that one success is not enough.
        let verdict = verdict.map(|verdict| if history.is_at_it { Verdict::Permanent } else { verdict });
        history.stands = ended.stands;
        history.have_ended.extend(ended.said.take_ended());
        history.have_waited = ended.said.has_waited(history.successes > 0);
        history.is_done = ended.unread == Some(How::Exited(0));
        history.is_said = is_said;
        history.nobody_reads = ended.nobody_reads || (self.stream && verdict.is_some() && output::nobody_reads());
        history.last_one = match () {
            () if ended.went_out => Some("some of its output is out already"),
            () if history.is_done => Some("the command had exited with 0, and its output was not read"),
            () if !self.input.is_whole() => Some("its input was too long to be kept"),
            () => None,
        };
        let what = match history.last_one {
            Some(why) if verdict.is_some() => format!("{what}; {why}"),
            _ => what,
        };
        let row = Row {
            attempt,
            exit: ended.how.code(),
            what: what.clone(),
            verdict,
            started: began.since(Timestamp::ZERO),
            ran: ended.ran,
            delay: None,
            reason: None,
        };
        if verdict.is_some()
            && history.successes == 0
            && let Some(group) = &mut ended.group
        {
            let lease = self.lease.as_deref();
            let (say, latest) = (|text: &str| self.narrator.remark(text), || latest(lease));
            let within = |until: Instant| lease.map_or(until, |lease| lease.tell_at().min(until));
            let wait = |until| late_output::wait_for_the_rest(group, &|| within(until), self.signals);
            let caught = ended.finishes.and_then(wait);
            let swept = group.sweep(ended.interrupted.or(caught), self.ways(&say, &latest), self.signals);
            history.swept = caught.or(swept);
        }
        if let (Some(lease), Some(group)) = (&self.lease, &ended.group) {
            lease.is_over(group);
        } else if let Some(lease) = &self.lease {
            lease.group(None);
        }
        drop(ended.group);
        history.last = Some((ended.how, what));
        history.output = ended.output;
        row
    }

    fn decide(&self, call: &mut Call<&Policy>, verdict: Verdict, ran: Duration) -> Result<Duration, Outcome> {
        let now = self.now();
        if self.args.time.reset_after.is_some_and(|healthy| ran >= healthy) {
            call.reset(now);
        }
        match call.on_failure(now, verdict) {
            Decision::Retry(delay) => Ok(delay),
            Decision::GiveUp(reason) => Err(Outcome::GaveUp(reason)),
        }
    }

    fn finish(mut self, outcome: Outcome, history: History) -> Finished {
        let exit = exit_code(outcome, history.last.as_ref().map(|(how, _)| how));
        let has_run = matches!(outcome, Outcome::Success | Outcome::GaveUp(_));
        let is_final = |verdict: &Verdict| matches!(verdict, Verdict::Permanent | Verdict::Overloaded);
        let known = history.verdict.filter(|verdict| history.is_said && is_final(verdict));
        let known = known.or(history.is_done.then_some(Verdict::Permanent)).filter(|_| !has_run);
        // What has run, or is under way, must not be begun anew for what ends us from here on.
        if has_run || history.is_at_it {
            self.say_unheard(outer::nothing_again().and_then(|()| outer::hears()));
        } else if let Some(verdict) = known {
            // Nor for who has ended us, whose limit it may have been.
            self.say_unheard(outer::say(verdict, exit));
            self.say_unheard(outer::say(verdict, How::TimedOut.code()));
        }
        match outcome {
            Outcome::Interrupted(_) => outer::was_ended(),
            Outcome::GaveUp(reason) => {
                self.say_unheard(outer::gave_up(reason, history.verdict.and_then(Verdict::pushback), exit));
                outer::has_heeded();
            }
            Outcome::Success => outer::has_heeded(),
            _ => outer::has_ended(exit),
        }
        if history.stands {
            outer::take_back();
        }
        outer::have_waited(&history.have_waited);
        // If we were ended, and have not said what comes of that, the end of them is known to nobody but us.
        if has_run || known.is_some() {
            outer::have_ended(&history.have_ended);
        }
        let fence = self.lease.as_ref().map(|lease| lease.fence());
        if let Some(lease) = self.lease.take() {
            if outcome == Outcome::LeaseLost {
                lease.say_lost(&|text| self.narrator.remark(text));
            }
            // What has ended nothing, since the command was through, is a wish all the same.
            let is_interrupted = matches!(outcome, Outcome::Interrupted(_)) || self.signals.ending().is_some();
            lease.end(is_interrupted, self.signals, &self.narrator);
        }
        if let Some(told) = self.guard.told(self.now()) {
            self.narrator.upstream(&told);
        }
        self.narrator.ended(&outcome, history.last.as_ref(), history.attempts, exit);
        let reported = self.report.write(&End {
            command: &self.args.command,
            key: &self.key.to_string_lossy(),
            outcome,
            fence,
            attempts: history.attempts,
            exit,
            elapsed: self.started.elapsed(),
        });
        // Somebody was at something whose end nobody knows: that stands.
        let has_run = has_run && !history.is_at_it;
        Finished { outcome, exit, has_run, output: history.output, unreported: reported.err() }
    }

    fn now(&self) -> Timestamp {
        Timestamp::ZERO + self.started.elapsed()
    }
}

/// Why no attempt may begin now, if none may.
fn stops(call: &Call<&Policy>, now: Timestamp, signals: &Signals, lease: Option<&Leased>) -> Option<Outcome> {
    match signals.ending() {
        Some(signal) => Some(Outcome::Interrupted(signal)),
        None if lease.is_some_and(Leased::is_lost) => Some(Outcome::LeaseLost),
        None => (!may_start(call, now)).then_some(Outcome::GaveUp(Reason::Elapsed)),
    }
}

/// When all of a command has to be gone: once its lease is lost, before somebody else can have that.
fn latest(lease: Option<&Leased>) -> Option<Instant> {
    lease.filter(|lease| lease.is_lost()).map(Leased::kill_at)
}

fn exit_code(outcome: Outcome, last: Option<&How>) -> u8 {
    const OUT_OF_TIME: u8 = 124;
    const NOT_AS_ASKED: u8 = 1;
    match (outcome, last) {
        (Outcome::Success | Outcome::Skipped, _) => 0,
        (Outcome::Held | Outcome::LeaseLost, _) => NOT_NOW,
        (Outcome::Interrupted(signal), _) => died_by(signal as i32),
        (Outcome::GaveUp(Reason::Elapsed), _) => OUT_OF_TIME,
        (Outcome::GaveUp(_), Some(How::Exited(0)) | None) => NOT_AS_ASKED,
        (Outcome::GaveUp(_), Some(how)) => how.code(),
    }
}
