//! What `relent run` says while it runs: lines for people, or JSON events for machines. All of it on stderr.
//!
//! JSON, one object a line. After each attempt that failed:
//! `{"event":"attempt","attempt":1,"exit":7,"what":"exit 7","verdict":"transient","ran_ms":3,"elapsed_ms":3,
//! "delay_ms":812,"reason":null}`, where a reason stands in place of the delay if there is no next attempt. While
//! waiting, with `--heartbeat`, and before the first attempt if that is put off for a second or more:
//! `{"event":"waiting","attempt":2,"left_ms":30000,"elapsed_ms":9}`. At the end:
//! `{"event":"end","outcome":"success","attempts":2,"exit":0,"elapsed_ms":815,"reason":null}`, the outcome being
//! `success`, `gave_up` or `interrupted`; before it, if there is an upstream, what that counted: `{"event":"upstream",
//! "upstream":"bank","attempts":5,"retries":4,"breaker":"open","balance":5}` and more. When relent itself fails:
//! `{"event":"error","error":"..","hint":"..","code":125}`.

use super::{
    ended::How,
    report::{Outcome, Row, verdict_name},
};
use crate::{
    guard::Told,
    json::{Object, millis},
    screen, stderr,
    talk::{self, Fault, TalkArgs, WORTH_TELLING},
};
use nix::sys::signal::Signal;
use relent::{Policy, duration::Human};
use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// Waits shorter than this have no countdown.
const COUNTDOWN_FROM: Duration = Duration::from_secs(1);

pub(super) struct Narrator {
    args: TalkArgs,
    heartbeat: Option<Duration>,
    started: Instant,
    /// Whether there is somebody who watches.
    countdown: bool,
    /// What the countdown shows.
    counting: Option<Duration>,
    /// How much of the wait was left when the last heartbeat was due.
    beat: Option<Duration>,
    most: Option<u32>,
    retried: bool,
}

impl Narrator {
    pub(super) fn new(args: TalkArgs, heartbeat: Option<Duration>, policy: &Policy, started: Instant) -> Narrator {
        Narrator {
            args,
            heartbeat,
            started,
            countdown: !args.quiet && !args.json && io::stderr().is_terminal() && !screen::is_dumb(),
            counting: None,
            beat: None,
            most: policy.settings().max_attempts,
            retried: false,
        }
    }

    /// Whether machines listen.
    pub(super) fn is_json(&self) -> bool {
        self.args.json
    }

    /// With `--verbose`: the policy.
    pub(super) fn begins(&self, policy: &Policy, seed: u64) {
        if self.args.verbose && !self.args.json {
            let _ = writeln!(stderr::open(), "{}", talk::policy(*policy, seed));
        }
    }

    /// An attempt is put off, by the spread of the policy or by the upstream.
    pub(super) fn put_off(&self, attempt: u32, delay: Duration) {
        match self.args.json {
            _ if delay < WORTH_TELLING => {}
            true => self.event(
                Object::new()
                    .text("event", "waiting")
                    .number("attempt", attempt.into())
                    .number("left_ms", millis(delay))
                    .number("elapsed_ms", self.elapsed_ms()),
            ),
            false => self.say(format_args!("attempt {} in {:.1}", self.of_most(attempt), Human(delay))),
        }
    }

    /// With `--verbose`: an attempt starts.
    pub(super) fn attempt_starts(&self, attempt: u32) {
        if self.args.verbose {
            match self.args.json {
                true => self.event(
                    Object::new()
                        .text("event", "start")
                        .number("attempt", attempt.into())
                        .number("elapsed_ms", self.elapsed_ms()),
                ),
                false => self.say(format_args!("attempt {}", self.of_most(attempt))),
            }
        }
    }

    /// An attempt has failed; the row says whether there is another.
    pub(super) fn attempt_failed(&mut self, row: &Row) {
        if self.args.json {
            return self.event(
                Object::new()
                    .text("event", "attempt")
                    .number("attempt", row.attempt.into())
                    .number("exit", row.exit.into())
                    .text("what", &talk::told(&row.what))
                    .text("verdict", &verdict_name(row.verdict))
                    .number("ran_ms", millis(row.ran))
                    .number("elapsed_ms", self.elapsed_ms())
                    .raw("delay_ms", &row.delay.map_or("null".to_owned(), |delay| millis(delay).to_string()))
                    .option("reason", row.reason.map(|reason| reason.as_str())),
            );
        }
        if let Some(delay) = row.delay {
            self.retried = true;
            let next = if delay.is_zero() { "now".to_owned() } else { format!("in {:.1}", Human(delay)) };
            self.say(format_args!("attempt {}: {}; next {next}", self.of_most(row.attempt), row.what));
        }
    }

    /// Something the command's author should know.
    pub(super) fn remark(&self, text: impl Display) {
        match self.args.json {
            true => self.event(Object::new().text("event", "remark").text("remark", &talk::told(&text.to_string()))),
            false => self.say(text),
        }
    }

    /// With `--verbose`: what the upstream counted. For machines always.
    pub(super) fn upstream(&self, told: &Told) {
        match self.args.json {
            true if !self.args.quiet => {
                let _ = writeln!(stderr::open(), "{}", told.to_json(None));
            }
            false if self.args.verbose => self.say(told),
            _ => {}
        }
    }

    /// Something about the lease; that all goes well only with `--verbose`, to people.
    pub(super) fn lease(&self, state: &str, text: &str, more: &dyn Fn(&mut Object)) {
        if self.args.json {
            let mut event = Object::new();
            event.text("event", "lease").text("state", state);
            more(&mut event);
            event.number("elapsed_ms", self.elapsed_ms());
            return self.event(&event);
        }
        if self.args.verbose || !["held", "kept", "released"].contains(&state) {
            self.say(text);
        }
    }

    /// Called while a wait goes on; returns when to be called again, if before its end.
    pub(super) fn waiting(&mut self, attempt: u32, delay: Duration, left: Duration) -> Option<Duration> {
        let countdown = self.count_down(attempt, delay, left);
        let heartbeat = self.beat(attempt, delay, left);
        countdown.into_iter().chain(heartbeat).min()
    }

    fn count_down(&mut self, attempt: u32, delay: Duration, left: Duration) -> Option<Duration> {
        if !self.countdown || delay < COUNTDOWN_FROM {
            return None;
        }
        let seconds = left.as_nanos().div_ceil(1_000_000_000);
        let whole = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
        // A wait may be looked at early.
        if self.counting.replace(whole) != Some(whole) {
            let line = screen::cut(&format!("relent: attempt {} in {}", self.of_most(attempt), Human(whole)));
            let mut stderr = stderr::open();
            let _ = write!(stderr, "\r\x1b[K{line}");
            let _ = stderr.flush();
        }
        Some(left.saturating_sub(whole.saturating_sub(Duration::from_secs(1))).max(Duration::from_millis(1)))
    }

    fn beat(&mut self, attempt: u32, delay: Duration, left: Duration) -> Option<Duration> {
        let every = self.heartbeat?;
        let due = self.beat.unwrap_or(delay).saturating_sub(every);
        if left > due {
            return Some(left - due);
        }
        self.beat = Some(due);
        match self.args.json {
            true => self.event(
                Object::new()
                    .text("event", "waiting")
                    .number("attempt", attempt.into())
                    .number("left_ms", millis(left))
                    .number("elapsed_ms", self.elapsed_ms()),
            ),
            false => self.say(format_args!("still waiting, attempt {} in {:.0}", self.of_most(attempt), Human(left))),
        }
        Some(left.saturating_sub(due.saturating_sub(every)).max(Duration::from_millis(1)))
    }

    pub(super) fn wait_is_over(&mut self) {
        self.beat = None;
        if self.counting.take().is_some() {
            let _ = write!(stderr::open(), "\r\x1b[K");
        }
    }

    /// The end of the run.
    pub(super) fn ended(&self, outcome: &Outcome, last: Option<&(How, String)>, attempts: u64, exit: u8) {
        if self.args.json {
            return self.event(
                Object::new()
                    .text("event", "end")
                    .text("outcome", outcome.name())
                    .number("attempts", attempts)
                    .number("exit", exit.into())
                    .number("elapsed_ms", self.elapsed_ms())
                    .option("reason", outcome.reason().map(|reason| reason.as_str())),
            );
        }
        if let Some((How::CannotRun(why), _)) = last {
            Fault::new(&why.problem).hint(&why.hint).tell();
            return;
        }
        let last = last.map_or_else(String::new, |(_, what)| format!(" ({what})"));
        let after = format!(
            "after {attempts} attempt{} in {:.1}",
            if attempts == 1 { "" } else { "s" },
            Human(self.started.elapsed())
        );
        match outcome {
            Outcome::Success if self.retried || self.args.verbose => self.say(format_args!("succeeded {after}")),
            Outcome::Success => {}
            Outcome::GaveUp(reason) => self.say(format_args!("gave up {after}: {reason}{last}")),
            // As any program in a pipe whose reader is gone.
            Outcome::Interrupted(Signal::SIGPIPE) if !self.args.verbose => {}
            Outcome::Interrupted(signal) => self.say(format_args!("stopped {after}: {signal}")),
            Outcome::LeaseLost => self.say(format_args!("stopped {after}: the lease was lost")),
            // Said when it was found out.
            Outcome::Held | Outcome::Skipped => {}
        }
    }

    fn of_most(&self, attempt: u32) -> String {
        talk::of_most(attempt, self.most)
    }

    fn elapsed_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }

    fn event(&self, event: &Object) {
        if !self.args.quiet {
            let _ = writeln!(stderr::open(), "{}", event.finish());
        }
    }

    fn say(&self, text: impl Display) {
        if !self.args.quiet {
            // The name of a lease may be a URL.
            let _ = writeln!(stderr::open(), "relent: {}", talk::message(&text.to_string()));
        }
    }
}
