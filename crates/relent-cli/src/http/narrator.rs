//! What `relent http` says while it works: lines for people, or JSON events for machines. All of it on stderr.
//!
//! The events are those of `relent run`, one object a line. After each attempt that failed:
//! `{"event":"attempt","attempt":1,"status":503,"what":"503 Service Unavailable","verdict":"after 2s","ran_ms":3,
//! "elapsed_ms":3,"delay_ms":2100,"reason":null}`; the status is null if there was no response, and a reason stands in
//! place of the delay if there is no next attempt. At the end: `{"event":"end","outcome":"success","attempts":2,
//! "status":200,"bytes":512,"exit":0,"elapsed_ms":2110,"reason":null}`, the outcome being `success`, `gave_up` or
//! `interrupted`. Of hedges: `{"event":"hedge","attempt":2,"hedge":1,"elapsed_ms":50}` when one starts, an `attempt` with
//! neither delay nor reason when one of several fails, and `{"event":"answered","attempt":2,"elapsed_ms":71}`. What is a note for people is `{"event":"remark","remark":".."}`, before the end. When relent itself fails:
//! `{"event":"error","error":"..","hint":"..","code":125}`.

use super::{
    attempt::Success,
    failure::{Failure, status_text},
    left::Doubt,
    request::Request,
    stop::Stop,
};
use crate::{
    escape::escape,
    guard::Told,
    json::{Object, millis},
    outer::{self, word},
    redact, screen, stderr,
    talk::{self, Fault, TalkArgs, WORTH_TELLING},
};
use http::{Method, StatusCode};
use relent::{Policy, Reason, Verdict, duration::Human, wire::Replay};
use std::{
    fmt::Display,
    io::Write,
    time::{Duration, Instant},
};
use tokio::time;

/// Nobody is advised to wait longer than this: a year.
const WORTH_WAITING_FOR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Waits shorter than this have no countdown.
const COUNTDOWN_FROM: Duration = Duration::from_secs(1);

/// When an attempt began, and which.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) number: u32,
    began: Instant,
}

impl Start {
    /// Of one that begins.
    pub(super) fn now(number: u32) -> Start {
        Start { number, began: Instant::now() }
    }

    /// It has failed.
    pub(super) fn lost(self) -> Lost {
        Lost { number: self.number, ran: self.began.elapsed() }
    }
}

/// An attempt that has failed: which, and how long it ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    number: u32,
    ran: Duration,
}

/// Who says it.
pub(super) struct Narrator {
    talk: TalkArgs,
    policy: Policy,
    method: Method,
    /// The same as it is told with what a header makes of it.
    named: String,
    url: String,
    fail_with_body: bool,
    began: Instant,
    /// The newest attempt.
    attempt: u32,
    /// The first of those that are under way.
    first: Start,
    /// The last that has failed, until it is told: with hedges it need not be the newest.
    lost: Option<Lost>,
    /// What went wrong last.
    last: Option<String>,
}

impl Narrator {
    /// About a request under a policy.
    pub(super) fn new(request: &Request, policy: Policy, talk: TalkArgs, fail_with_body: bool) -> Narrator {
        let now = Instant::now();
        let (method, url) = (request.method.clone(), request.shown_url());
        Narrator {
            talk,
            policy,
            method,
            named: request.named(),
            url,
            fail_with_body,
            began: now,
            attempt: 0,
            first: Start::now(0),
            lost: None,
            last: None,
        }
    }

    /// With `--verbose`: the policy.
    pub(super) fn begins(&self, seed: u64) {
        if self.talk.verbose && !self.talk.json {
            write_line(&talk::policy(self.policy, seed));
        }
    }

    /// An attempt is put off, by the spread of the policy or by the upstream.
    pub(super) fn put_off(&self, attempt: u32, delay: Duration) {
        if delay < WORTH_TELLING && !(self.talk.verbose && !self.talk.json && !delay.is_zero()) {
            return;
        }
        if self.talk.json {
            let mut event = Object::new();
            event.text("event", "waiting").number("attempt", attempt.into()).number("left_ms", millis(delay));
            return self.event(event.number("elapsed_ms", self.elapsed_ms()));
        }
        let most = self.policy.settings().max_attempts.map_or_else(String::new, |most| format!(" of {most}"));
        self.say(format_args!("attempt {attempt}{most} in {:.1}", Human(delay)));
    }

    /// An attempt starts.
    pub(super) fn attempt_starts(&mut self, attempt: u32) {
        self.attempt = attempt;
        self.first = Start::now(attempt);
        self.lost = None;
        if !self.talk.verbose {
            return;
        }
        if self.talk.json {
            let mut event = Object::new();
            event
                .text("event", "start")
                .number("attempt", attempt.into())
                .text("method", &talk::told(self.method.as_str()));
            self.event(event.text("url", &talk::told(&self.url)).number("elapsed_ms", self.elapsed_ms()));
        } else {
            self.say(format_args!("attempt {}: {} {}", self.of_most(attempt), self.method, self.url));
        }
    }

    /// An attempt more starts beside those under way; the call's first hedge is number 1.
    pub(super) fn hedges(&mut self, attempt: u32, hedge: u32) {
        self.attempt = attempt;
        if self.talk.json {
            let mut event = Object::new();
            event.text("event", "hedge").number("attempt", attempt.into()).number("hedge", hedge.into());
            self.event(event.number("elapsed_ms", self.elapsed_ms()));
        } else if self.talk.verbose {
            self.say(format_args!(
                "attempt {}: a hedge, {:.1} after the first has started",
                self.of_most(attempt),
                Human(self.first.began.elapsed())
            ));
        }
    }

    /// No attempt more starts beside those under way.
    pub(super) fn no_hedge(&self, why: &str) {
        if self.talk.verbose || self.talk.json {
            self.remark(why);
        }
    }

    /// An attempt failed, and others are under way.
    pub(super) fn failed_beside(&mut self, lost: Lost, failure: &Failure) {
        self.last = Some(failure.text.clone());
        if self.talk.json {
            self.failed_event(lost, failure, None, None);
        } else if self.talk.verbose {
            self.say(format_args!("attempt {}: {}, and another is under way", lost.number, failure.text));
        }
    }

    /// None is under way any more; the one that failed last is this, if it is not the only one.
    pub(super) fn has_lost(&mut self, lost: Option<Lost>) {
        self.lost = lost;
    }

    /// None is under way any more, and the last has failed.
    pub(super) fn attempt_ended(&mut self) {
        self.lost = self.lost.or_else(|| Some(self.first.lost()));
    }

    /// One of several attempts has an answer; the others are dropped.
    pub(super) fn answered(&self, attempt: u32, hedges: u32) {
        if hedges == 0 {
            return;
        }
        if self.talk.json {
            let mut event = Object::new();
            event.text("event", "answered").number("attempt", attempt.into());
            self.event(event.number("elapsed_ms", self.elapsed_ms()));
        } else if self.talk.verbose {
            self.say(format_args!("attempt {attempt}: answered first"));
        }
    }

    /// What there is to say of the upstream.
    pub(super) fn remark(&self, text: &str) {
        match self.talk.json {
            true => self.event(Object::new().text("event", "remark").text("remark", &talk::told(text))),
            false => self.say(escape(text)),
        }
    }

    /// With `--verbose`: what the upstream counted. For machines always.
    pub(super) fn upstream(&self, told: Option<Told>) {
        let Some(told) = told.filter(|_| !self.talk.quiet) else { return };
        match self.talk.json {
            true => write_line(&told.to_json(None)),
            false if self.talk.verbose => self.say(told),
            false => {}
        }
    }

    /// An attempt failed, and another follows.
    pub(super) fn retries(&mut self, failure: &Failure, rule: Replay, delay: Duration) {
        self.last = Some(failure.text.clone());
        let lost = self.lost.take().unwrap_or_else(|| self.first.lost());
        if self.talk.json {
            return self.failed_event(lost, failure, Some(delay), None);
        }
        let next = if delay.is_zero() { "now".to_owned() } else { format!("in {:.1}", Human(delay)) };
        let attempt = self.of_most(lost.number);
        self.say(format_args!("attempt {attempt}: {}, {}; next {next}", failure.text, why(failure, rule)));
    }

    /// The wait before the next attempt, counted down for somebody who watches.
    pub(super) async fn wait(&self, delay: Duration) {
        let due = Instant::now() + delay;
        if self.talk.quiet || self.talk.json || delay < COUNTDOWN_FROM || !screen::is_lively() {
            return time::sleep_until(due.into()).await;
        }
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let seconds = u64::try_from(left.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
            let line = screen::cut(&format!("relent: next attempt in {}", Human(Duration::from_secs(seconds))));
            let mut stderr = stderr::open();
            let _ = write!(stderr, "\r\x1b[K{line}");
            let _ = stderr.flush();
            drop(stderr);
            // Until the number shown changes.
            time::sleep(left.saturating_sub(Duration::from_secs(seconds - 1)).max(Duration::from_millis(1))).await;
        }
        let _ = write!(stderr::open(), "\r\x1b[K");
    }

    /// The call succeeded, with a body of `bytes`.
    pub(super) fn succeeded(&self, success: &Success, bytes: u64) {
        if !self.talk.json && (self.attempt > 1 || self.talk.verbose) {
            self.say(format_args!("succeeded {}", self.after()));
        }
        if let Some((location, is_followable)) = &success.location {
            let tip = if *is_followable { "; -L follows it" } else { "" };
            self.note(format_args!("{}, to {location}{tip}", status_text(success.status)));
        }
        if let Some(encoding) = &success.encoding {
            let tip = if ["gzip", "br"].contains(&encoding.as_str()) { "; --compressed undoes it" } else { "" };
            let encoding = redact::within_reach(encoding);
            self.note(format_args!("the body is encoded ({encoding}), which was not asked for{tip}"));
        }
        match success.doubt {
            Some(Doubt::Untaken) => {
                self.note("the server answered before it had all of the request's body, and may not have taken the rest");
            }
            Some(Doubt::Page) => self.note(
                "the page of a redirect was not read to its end, and what its server had not taken of the request's body by then may be lost",
            ),
            None => {}
        }
        if success.had_all {
            self.note("all of it was there already");
        }
        if self.talk.json {
            let mut event = self.end("success", Some(success.status), 0, None);
            self.event(event.number("bytes", bytes));
        }
    }

    /// The body of a failure has not come to its end.
    pub(super) fn page_is_cut(&self) {
        self.note("the body of the answer has not come to its end");
    }

    /// There is no more time for the call.
    pub(super) fn out_of_time(&self, limit: Duration, is_ours: bool, exit: u8) {
        if self.talk.json {
            return self.event(&mut self.end("gave_up", None, exit, Some(Reason::Elapsed.as_str())));
        }
        self.clear_line();
        let last = self.last.as_ref().map(|last| format!(" ({last})")).unwrap_or_default();
        let (whose, hint) = match is_ours {
            true => ("the --timeout", "--timeout gives it more time"),
            false => ("what RELENT_DEADLINE_MS leaves", "the command that runs this one has no more time"),
        };
        let problem = format!("gave up {}: out of time, {whose} of {:.1} is over{last}", self.after(), Human(limit));
        Fault::new(problem).hint(hint).tell();
    }

    /// Whoever read standard output went away.
    pub(super) fn reader_gone(&self, exit: u8) {
        self.clear_line();
        if self.talk.json {
            self.event(&mut self.end("interrupted", None, exit, Some(Reason::Cancelled.as_str())));
        }
    }

    /// What a later run finds.
    pub(super) fn left(&self, (place, bytes): &(String, u64)) {
        self.note(format_args!("{bytes} bytes are kept in {place}; the same command goes on with them"));
    }

    /// How many attempts there were, and how long they took.
    pub(super) fn spent(&self) -> (u32, Duration) {
        (self.attempt, self.began.elapsed())
    }

    /// A countdown or a bar may stand there.
    fn clear_line(&self) {
        if screen::is_lively() && !self.talk.json {
            let _ = write!(stderr::open(), "\r\x1b[K");
        }
    }

    /// The call failed.
    pub(super) fn gave_up(&self, failure: &Failure, stop: Stop, may_begin_anew: bool) {
        let reason = match stop {
            Stop::GaveUp(reason) => reason.as_str(),
            Stop::Unsafe(_) => "unsafe",
        };
        if self.talk.json {
            // One that was told already is not told again because no other was let through.
            if let Some(lost) = self.lost {
                self.failed_event(lost, failure, None, Some(reason));
            }
            return self.event(&mut self.end("gave_up", failure.status, stop.exit(), Some(reason)));
        }
        let mut fault =
            Fault::new(format!("gave up {}: {} ({})", self.after(), self.because(failure, stop), failure.text));
        if let Some(hint) = self.hint(failure, stop, may_begin_anew) {
            fault = fault.hint(hint);
        }
        fault.tell();
    }

    /// Somebody told us to end.
    pub(super) fn stopped(&self, signal: &str, exit: u8) {
        if self.talk.json {
            return self.event(&mut self.end("interrupted", None, exit, Some(Reason::Cancelled.as_str())));
        }
        self.clear_line();
        self.say(format_args!("stopped {}: {signal}", self.after()));
    }

    /// A fault of ours, as an event.
    pub(super) fn fault(fault: &Fault) {
        write_line(&fault.to_json());
    }

    fn because(&self, failure: &Failure, stop: Stop) -> String {
        let told = failure.told.as_deref().map(|told| format!(" ({told})")).unwrap_or_default();
        match (stop, failure.verdict.pushback()) {
            (Stop::Unsafe(rule), _) => format!("{} is not sent again, since {rule}", self.named),
            (Stop::GaveUp(Reason::PushbackTooLong), Some(wait)) => {
                format!("told to wait {}{told}, {}", Human(wait), self.too_long(wait))
            }
            (Stop::GaveUp(reason @ Reason::Overloaded), _) => format!("{reason}{told}"),
            (Stop::GaveUp(reason), _) => reason.to_string(),
        }
    }

    /// Which limit a pushback passes.
    fn too_long(&self, wait: Duration) -> String {
        let settings = self.policy.settings();
        match (settings.max_pushback, settings.max_elapsed, settings.timeout) {
            (Some(most), ..) if wait > most => format!("longer than the max_pushback of {}", Human(most)),
            (_, Some(most), timeout) if timeout.is_none_or(|timeout| most < timeout) => {
                format!("past the max_elapsed of {}", Human(most))
            }
            (_, _, Some(most)) => format!("past the timeout of {}", Human(most)),
            _ => "longer than allowed".into(),
        }
    }

    fn hint(&self, failure: &Failure, stop: Stop, may_begin_anew: bool) -> Option<String> {
        /// Before that, more time is for nothing.
        const UNSAFE: &str = "--idempotency-key if the server honours it; --retry-unsafe if twice does no harm";
        let reason = match stop {
            Stop::Unsafe(_) => return Some(UNSAFE.into()),
            Stop::GaveUp(reason) => reason,
        };
        match (reason, failure.verdict.pushback()) {
            (Reason::PushbackTooLong, Some(wait))
                if self.policy.settings().max_pushback.is_some_and(|most| wait > most) =>
            {
                if wait > WORTH_WAITING_FOR {
                    return None;
                }
                Some(if may_begin_anew {
                    format!("--max-pushback {} waits for it", Human(wait))
                } else {
                    UNSAFE.into()
                })
            }
            (Reason::PushbackTooLong | Reason::Elapsed, _) if !may_begin_anew => Some(UNSAFE.into()),
            (Reason::PushbackTooLong | Reason::Elapsed, _) => Some(self.more_time().into()),
            _ if failure.hint.is_some() => failure.hint.clone(),
            (Reason::Attempts, _) => Some("--max-attempts gives it more".into()),
            (Reason::Permanent, _) if failure.status.is_some() && !self.fail_with_body => {
                Some("--fail-with-body shows what the server says about it".into())
            }
            _ => None,
        }
    }

    /// What would give the call more time.
    fn more_time(&self) -> &'static str {
        let settings = self.policy.settings();
        match (settings.timeout, settings.max_elapsed) {
            (None, None) if outer::time_left().is_some() => "the command that runs this one has no more time",
            (None, None) => "--timeout gives it more time",
            (Some(timeout), most) if most.is_none_or(|most| timeout <= most) => "--timeout gives it more time",
            _ => "--max-elapsed gives it more time",
        }
    }

    /// `after 3 attempts in 1.2s`.
    fn after(&self) -> String {
        let plural = if self.attempt == 1 { "" } else { "s" };
        format!("after {} attempt{plural} in {:.1}", self.attempt, Human(self.began.elapsed()))
    }

    /// `2 of 8`.
    fn of_most(&self, attempt: u32) -> String {
        talk::of_most(attempt, self.policy.settings().max_attempts)
    }

    fn failed_event(&self, lost: Lost, failure: &Failure, delay: Option<Duration>, reason: Option<&str>) {
        let mut event = Object::new();
        event.text("event", "attempt").number("attempt", lost.number.into());
        event.raw("status", &status_or_null(failure.status)).text("what", &talk::told(&failure.text));
        event.text("verdict", &word(failure.verdict));
        event.number("ran_ms", millis(lost.ran)).number("elapsed_ms", self.elapsed_ms());
        event.raw("delay_ms", &delay.map_or("null".to_owned(), |delay| millis(delay).to_string()));
        self.event(event.option("reason", reason));
    }

    fn end(&self, outcome: &str, status: Option<StatusCode>, exit: u8, reason: Option<&str>) -> Object {
        let mut event = Object::new();
        event.text("event", "end").text("outcome", outcome).number("attempts", self.attempt.into());
        event.raw("status", &status_or_null(status)).number("exit", exit.into());
        event.number("elapsed_ms", self.elapsed_ms()).option("reason", reason);
        event
    }

    fn elapsed_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }

    fn event(&self, event: &mut Object) {
        if !self.talk.quiet {
            write_line(&event.finish());
        }
    }

    /// What the user should know of what came: a note, or the event of a remark.
    fn note(&self, text: impl Display) {
        match self.talk.json {
            true => self.remark(&text.to_string()),
            false if self.talk.quiet => {}
            false => talk::note(text),
        }
    }

    fn say(&self, text: impl Display) {
        if !self.talk.quiet {
            write_line(&format!("relent: {}", talk::message(&text.to_string())));
        }
    }
}

/// Why an attempt is followed by another.
fn why(failure: &Failure, rule: Replay) -> String {
    let mut why = match failure.verdict {
        Verdict::After(wait) => format!("told to wait {}", Human(wait)),
        Verdict::Turn(turn) => format!("its turn is in {}", Human(turn)),
        _ => "transient".to_owned(),
    };
    if let Some(told) = &failure.told {
        why.push_str(&format!(" ({told})"));
    }
    if rule != Replay::Idempotent {
        why.push_str(&format!(", {rule}"));
    }
    why
}

fn status_or_null(status: Option<StatusCode>) -> String {
    status.map_or("null".to_owned(), |status| status.as_u16().to_string())
}

fn write_line(line: &str) {
    // There is nobody left to tell when stderr is gone.
    let _ = writeln!(stderr::open(), "{line}");
}
