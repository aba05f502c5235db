//! The loop: attempts until one succeeds or the call is given up.

use super::{
    attempt::{self, Received, Success},
    client::Client,
    exit,
    failure::{Broken, Failure},
    narrator::Narrator,
    request::Request,
    sink::{Output, Sink},
};
use crate::talk::{EXIT_FAULT, Fault, TalkArgs};
use http::{Method, header};
use relent::{
    Call, Decision, Policy, Timestamp,
    wire::{self, Rules},
};
use std::{
    future,
    process::ExitCode,
    time::{Duration, Instant},
};
use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
    time,
};

/// Everything a call needs, checked.
pub(super) struct Engine {
    pub(super) policy: Policy,
    pub(super) seed: u64,
    pub(super) rules: Rules,
    pub(super) retry_unsafe: bool,
    pub(super) fail_with_body: bool,
    pub(super) to_file: bool,
    pub(super) redirects: bool,
    pub(super) request: Request,
    pub(super) client: Client,
    pub(super) output: Output,
    pub(super) talk: TalkArgs,
}

impl Engine {
    /// Makes the call and says what to exit with.
    pub(super) fn run(mut self) -> Result<ExitCode, Fault> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::new(format!("cannot start: {error}")))?;
        let sink = Sink::new(std::mem::replace(&mut self.output, Output::Stdout));
        let mut narrator = Narrator::new(&self.request, self.policy, self.talk, self.fail_with_body);
        let ended = runtime.block_on(async {
            tokio::select! {
                ended = self.call(&mut narrator, sink) => Ended::ByItself(ended),
                // Dropping the call removes what was written under a temporary name.
                signal = interrupted() => Ended::By(signal),
            }
        });
        // A name that is still being looked up must not hold up the end.
        runtime.shutdown_background();
        match ended {
            Ended::ByItself(Err(fault)) if self.talk.json => {
                Narrator::fault(&fault);
                Ok(ExitCode::from(EXIT_FAULT))
            }
            Ended::ByItself(code) => code.map(ExitCode::from),
            Ended::By((signal, code)) => {
                narrator.stopped(signal, code);
                Ok(ExitCode::from(code))
            }
        }
    }

    /// Whether a body that breaks off may be gone on with: a plain GET.
    pub(super) fn may_resume(&self) -> bool {
        self.request.method == Method::GET && !self.request.headers.contains_key(header::RANGE)
    }

    async fn call(&self, narrator: &mut Narrator, sink: Sink) -> Result<u8, Fault> {
        let mut received = Received::nothing(sink);
        let began = Instant::now();
        let now = || Timestamp::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let mut call = self.policy.call(now(), self.seed);
        narrator.begins(self.seed, call.spread());
        if !call.spread().is_zero() {
            time::sleep(call.spread()).await;
        }
        loop {
            narrator.attempt_starts(call.attempt());
            let failure = match self.attempt(&call, now(), &mut received).await {
                Ok(success) => return self.succeed(narrator, &success, received),
                Err(Broken::Ours(fault)) => return Err(fault),
                Err(Broken::Failed(failure)) => failure,
            };
            match self.decide(&mut call, now(), &failure) {
                Next::Again(delay, why) => {
                    narrator.retries(&failure, why, delay);
                    narrator.wait(delay).await;
                }
                Next::Stop(stop) => return self.fail(narrator, &call, now(), *failure, stop, received).await,
            }
        }
    }

    async fn attempt(&self, call: &Call<'_>, now: Timestamp, received: &mut Received) -> Result<Success, Broken> {
        let once = attempt::once(self, call.attempt(), received);
        let Some(limit) = call.attempt_limit(now) else { return once.await };
        match time::timeout(limit, once).await {
            Ok(ended) => ended,
            Err(_) => {
                let connected = self.client.watch.is_connected();
                Err(Broken::Failed(Box::new(Failure::timeout(limit, connected, &self.request))))
            }
        }
    }

    /// The policy decides when, the rule of replay whether.
    fn decide(&self, call: &mut Call<'_>, now: Timestamp, failure: &Failure) -> Next {
        let rule = wire::replay(&wire::Request {
            method: &self.request.method,
            headers: &self.request.headers,
            left: failure.left,
            unsafe_too: self.retry_unsafe,
        });
        match call.on_failure(now, failure.verdict) {
            Decision::GiveUp(reason) => Next::Stop(Stop::GaveUp(reason)),
            Decision::Retry(_) if !rule.is_allowed() => Next::Stop(Stop::Unsafe(rule)),
            Decision::Retry(delay) => Next::Again(delay, rule),
        }
    }

    fn succeed(&self, narrator: &Narrator, success: &Success, received: Received) -> Result<u8, Fault> {
        let length = received.sink.length();
        if success.status.is_success() {
            received.sink.finish()?;
        } else {
            received.sink.finish_on_stdout()?;
        }
        narrator.succeeded(success, length);
        Ok(0)
    }

    async fn fail(
        &self,
        narrator: &Narrator,
        call: &Call<'_>,
        now: Timestamp,
        mut failure: Failure,
        stop: Stop,
        mut received: Received,
    ) -> Result<u8, Fault> {
        if let (true, Some(response)) = (self.fail_with_body, failure.response.take()) {
            let limit = call.attempt_limit(now).unwrap_or(Duration::MAX);
            // What has come by then is shown.
            if let Ok(read) = time::timeout(limit, attempt::failed_body(self, response, &mut received.sink)).await {
                read?;
            }
            received.sink.finish_on_stdout()?;
        }
        narrator.gave_up(&failure, stop);
        Ok(stop.exit())
    }
}

/// What follows a failed attempt.
enum Next {
    Again(Duration, wire::Replay),
    Stop(Stop),
}

/// Why there is no further attempt.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    /// The policy, or the far side, said so.
    GaveUp(relent::Reason),
    /// The request must not be sent twice.
    Unsafe(wire::Replay),
}

impl Stop {
    /// What to exit with.
    pub(super) const fn exit(self) -> u8 {
        match self {
            Stop::GaveUp(reason) => exit::of(reason),
            Stop::Unsafe(_) => exit::UNSAFE,
        }
    }
}

/// How it ended: by itself, or by a signal and with the exit code that means it.
enum Ended {
    ByItself(Result<u8, Fault>),
    By((&'static str, u8)),
}

/// Ends when the user or the system interrupts.
async fn interrupted() -> (&'static str, u8) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => ("SIGINT", 130),
        _ = terminate.recv() => ("SIGTERM", 143),
    }
}
