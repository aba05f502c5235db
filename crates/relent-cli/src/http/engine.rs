//! The loop: attempts until one succeeds or the call is given up.

use super::{
    above::{Above, Ending},
    attempt::{self, Line, Received, Success, Terms, Trail},
    client::Recipe,
    exit,
    failure::{Broken, Failure},
    hedge::{self, Race, Won},
    narrator::Narrator,
    rest, signals,
    sink::{Output, Sink, Written, print},
    stop::Stop,
    write_out::{End, WriteOut},
};
use crate::{
    ear::Ear,
    guard::{Answer, Guard, may_start, patience},
    output, runtime, screen,
    size::Size,
    talk::{Fault, TalkArgs, plain, unwritten},
    upstream::sharing::Sharing,
};
use http::{StatusCode, header};
use relent::{Call, Decision, Outcome, Policy, Reason, Timestamp, Upstream, Verdict, wire};
use std::{
    cell::Cell,
    future, io,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time;

/// Everything a call needs, checked.
pub(super) struct Engine {
    pub(super) policy: Policy,
    pub(super) limit: Limit,
    pub(super) seed: u64,
    pub(super) upstream: Option<Arc<Upstream>>,
    /// What is shared of it with other processes, until the call takes it.
    pub(super) sharing: Cell<Option<Sharing>>,
    /// What the run around is told.
    pub(super) above: Above,
    pub(super) retry_unsafe: bool,
    pub(super) fail_with_body: bool,
    pub(super) terms: Terms,
    pub(super) line: Line,
    /// How the lines of hedges are made.
    pub(super) recipe: Recipe,
    /// Signals are heard from before there was anything to be left behind.
    pub(super) ear: Ear,
    pub(super) output: Output,
    /// The largest body, if `--max-size` says it.
    pub(super) max_size: Option<Size>,
    pub(super) file: Option<String>,
    pub(super) write_out: Option<WriteOut>,
    pub(super) talk: TalkArgs,
}

/// When everything ends, from the start of the process on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// How long there was, if there is an end.
    pub(super) given: Option<Duration>,
    /// Whether `--timeout` said so, and not who runs us.
    pub(super) is_ours: bool,
    /// From when on.
    pub(super) began: Instant,
}

impl Limit {
    /// What is left now.
    pub(super) fn left(&self) -> Option<Duration> {
        self.given.map(|given| given.saturating_sub(self.began.elapsed()))
    }

    /// When that is, if there is an end.
    pub(super) fn ends(&self) -> Option<Instant> {
        self.began.checked_add(self.given?)
    }

    /// When the rest of a request has had its time: what has come in answer to it must be written by that end.
    fn is_near(&self) -> Option<time::Instant> {
        let margin = (self.given? / 10).min(Duration::from_secs(1));
        self.ends()?.checked_sub(margin).map(Into::into)
    }

    async fn is_over(&self) -> Duration {
        let Some(given) = self.given else { return future::pending().await };
        let left = self.left().unwrap_or_default();
        // What is over already does not wait for the clock's next step, while an attempt begins.
        if !left.is_zero() {
            time::sleep(left).await;
        }
        given
    }
}

/// Who listens to signals had no turn while somebody was waited for, and nothing starts after one.
async fn gives_way(ear: &Ear) {
    if ear.heard().is_some() {
        future::pending::<()>().await;
    }
}

impl Engine {
    /// Makes the call and says what to exit with.
    pub(super) fn run(mut self) -> Result<ExitCode, Fault> {
        let runtime = runtime::builder()
            .and_then(|mut builder| builder.build())
            .map_err(|error| Fault::new(format!("cannot start: {}", plain(&error))))?;
        let other = self.other_output();
        let output = std::mem::replace(&mut self.output, other);
        let reads_stdout = matches!(output, Output::Stdout { .. });
        let mut received = Received::nothing(Sink::new(output, self.max_size)?);
        let ear = self.ear.clone();
        let mut narrator = Narrator::new(&self.terms.request, self.policy, self.talk, self.fail_with_body);
        let ended = runtime.block_on(async {
            tokio::select! {
                // First of all: a limit that is over counts even if there is an answer at the same moment.
                biased;
                signal = signals::interrupted(&ear) => Ended::By(signal),
                given = self.limit.is_over() => Ended::OutOfTime(given),
                ended = self.call(&mut narrator, &mut received, &ear) => Ended::ByItself(ended),
                () = signals::reader_gone(), if reads_stdout => Ended::ReaderGone,
            }
        });
        // A name that is still being looked up, or a pipe that nobody empties, must not hold up the end.
        runtime.shutdown_background();
        let Received { sink, trail, .. } = received;
        let left = sink.left();
        // What has to go goes before signals end us again.
        drop(sink);
        self.ear.let_through();
        let is_for_machines = self.talk.json;
        let tell_left = || left.iter().for_each(|left| narrator.left(left));
        // For machines the end is the last event, for people what is to be done next the last line.
        let is_told = matches!(ended, Ended::ByItself(Ok(_)));
        if is_for_machines && !is_told {
            tell_left();
        }
        let ended = match ended {
            // Some systems say that once.
            Ended::ByItself(Ok(0)) => {
                Ended::ByItself(output::has_arrived().map(|()| 0).map_err(|error| unwritten(&error)))
            }
            ended => ended,
        };
        let end = match &ended {
            Ended::By(_) => Ending::Signal,
            Ended::ByItself(Ok(0)) => Ending::Done,
            Ended::ReaderGone | Ended::ByItself(Ok(exit::READER_GONE)) => Ending::ReaderGone,
            Ended::ByItself(Ok(_)) => Ending::Failed,
            Ended::OutOfTime(_) if self.limit.is_ours => Ending::Failed,
            Ended::OutOfTime(_) => Ending::OutOfTime,
            Ended::ByItself(Err(_)) => Ending::CutShort,
        };
        let ended = self.tell(&narrator, ended, &trail);
        if !is_for_machines {
            tell_left();
        }
        let code = ended.as_ref().map_or_else(Fault::code, |code| *code);
        self.above.ends(end, code, self.replay(true).is_allowed());
        ended.map(ExitCode::from)
    }

    /// Says how it ended from outside, and what to exit with.
    fn tell(&self, narrator: &Narrator, ended: Ended, trail: &Trail) -> Result<u8, Fault> {
        let code = match ended {
            Ended::ByItself(Err(fault)) if self.talk.json => {
                Narrator::fault(&fault);
                return Ok(fault.code());
            }
            Ended::ByItself(code) => return code,
            Ended::By((signal, code)) => {
                narrator.stopped(signal, code);
                return Ok(code);
            }
            Ended::ReaderGone => {
                narrator.reader_gone(exit::READER_GONE);
                return Ok(exit::READER_GONE);
            }
            Ended::OutOfTime(given) => {
                // The limit of an attempt is no end of a call.
                if self.limit.is_ours {
                    self.above.is_out_of_time(narrator, exit::OUT_OF_TIME);
                }
                narrator.out_of_time(given, self.limit.is_ours, exit::OUT_OF_TIME);
                exit::OUT_OF_TIME
            }
        };
        if let Some(text) = self.last_words(narrator, trail, 0, code) {
            match output::write_until(&text, Some(Instant::now())) {
                // Who does not read does not want it.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(unwritten(&error)),
                _ => {}
            }
        }
        Ok(code)
    }

    async fn call(&self, narrator: &mut Narrator, received: &mut Received, ear: &Ear) -> Result<u8, Fault> {
        let began = Instant::now();
        let now = || Timestamp::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let mut call = self.policy.call(now(), self.seed);
        if let Some(left) = self.limit.left() {
            call = call.deadline_at(now() + left);
        }
        narrator.begins(self.seed);
        narrator.put_off(1, call.spread());
        narrator.wait(call.spread()).await;
        let sharing = self.sharing.take().map(|sharing| sharing.hearing(ear.clone()));
        let mut guard = Guard::new(self.upstream.clone(), self.seed).sharing(sharing);
        let mut last = None;
        loop {
            let admitted = match self.admitted(&mut guard, narrator, (&call, &now), ear).await {
                Ok(()) => {
                    narrator.attempt_starts(call.attempt());
                    // Whoever reads that may have taken their time.
                    self.may_start(&call, now(), ear).await
                }
                refused => refused,
            };
            if let Err((reason, why)) = admitted {
                if reason != Reason::Elapsed {
                    narrator.remark(&why);
                }
                narrator.upstream(guard.told(now()));
                let failure = last.unwrap_or_else(|| Failure::not_sent(why));
                return self.fail(narrator, &call, now(), failure, Stop::GaveUp(reason), received).await;
            }
            if call.attempt() == 1 && !self.replay(true).is_allowed() {
                self.above.stand(narrator)?;
            }
            guard.begins();
            let failure = match self.attempt(&mut call, &now, (&mut guard, narrator), received).await {
                Ok(success) => {
                    narrator.upstream(guard.told(now()));
                    return self.succeed(narrator, &success, received).await;
                }
                Err(Broken::Ours(fault)) => return Err(fault),
                Err(Broken::Failed(failure)) => failure,
            };
            narrator.attempt_ended();
            match self.decide(&mut call, now(), &failure) {
                Next::Again(delay, why) if guard.pay(now(), failure.outcome()) => {
                    narrator.retries(&failure, why, delay);
                    // At once: what ends us then may leave no time for it.
                    self.above.waits(narrator, failure.verdict);
                    last = Some((*failure).without_response());
                    // What is left of the request is sent to nobody who wants to be left alone.
                    self.line.client.hang_up();
                    narrator.wait(delay).await;
                    self.above.has_heeded();
                }
                next => {
                    let stop = match next {
                        Next::Stop(stop) => stop,
                        Next::Again(..) => {
                            narrator.remark(&guard.out_of_budget());
                            Stop::GaveUp(Reason::Budget)
                        }
                    };
                    narrator.upstream(guard.told(now()));
                    return self.fail(narrator, &call, now(), *failure, stop, received).await;
                }
            }
        }
    }

    /// Waits until the upstream lets the next attempt through; why not, if it does not.
    async fn admitted(
        &self,
        guard: &mut Guard,
        narrator: &Narrator,
        (call, now): (&Call<&Policy>, &dyn Fn() -> Timestamp),
        ear: &Ear,
    ) -> Result<(), (Reason, String)> {
        let mut is_told = false;
        loop {
            self.may_start(call, now(), ear).await?;
            let at = now();
            let answer = guard.ask(at, patience(&self.policy, call.elapsed(at), self.limit.left()));
            for remark in guard.take_remarks() {
                narrator.remark(&remark);
            }
            // A store was asked, perhaps.
            gives_way(ear).await;
            match answer {
                Answer::Go => {
                    guard.starts(now());
                    return self.may_start(call, now(), ear).await;
                }
                Answer::Wait(delay) => {
                    if !std::mem::replace(&mut is_told, true) {
                        narrator.put_off(call.attempt(), delay);
                    }
                    narrator.wait(delay).await;
                }
                Answer::No(reason, why) => return Err((reason, why)),
            }
        }
    }

    /// Whether an attempt may start: whoever was stopped, or had too much to do, wakes later than asked. What ends everything has its turn.
    async fn may_start(&self, call: &Call<&Policy>, now: Timestamp, ear: &Ear) -> Result<(), (Reason, String)> {
        gives_way(ear).await;
        if may_start(call, now) {
            return Ok(());
        }
        if self.limit.left().is_some_and(|left| left.is_zero()) {
            future::pending::<()>().await;
        }
        Err((Reason::Elapsed, "there was no time left to ask".to_owned()))
    }

    /// One attempt, and its hedges; the upstream is told of each.
    async fn attempt(
        &self,
        call: &mut Call<&Policy>,
        now: &dyn Fn() -> Timestamp,
        (guard, narrator): (&mut Guard, &mut Narrator),
        received: &mut Received,
    ) -> Result<Success, Broken> {
        let have = received.begin()?;
        let limit = || self.attempt_limit(call, now());
        let may = have == 0 && hedge::is_allowed(&self.terms.request.meant(), &self.terms.request.headers);
        let Some(plan) = guard.hedged(now()).filter(|_| may) else {
            let limit = limit();
            let end = limit.and_then(|limit| time::Instant::now().checked_add(limit));
            let once = attempt::once(&self.terms, &self.line, call.attempt(), have, received);
            let ended = attempt::within(limit, limit, (&self.terms, &self.line), once).await;
            if let Some(outcome) = outcome(&ended) {
                guard.ended(now(), outcome);
            }
            return rest::sent(ended?, (&self.terms, &self.line), [end, self.limit.is_near()]).await;
        };
        let (terms, recipe) = (&self.terms, &self.recipe);
        let most = self.policy.settings().max_attempts;
        let mut race =
            Race { terms, recipe, call, most, limit: &limit, now, guard, narrator, hedges: 0, said: Vec::new() };
        let won = race.run(plan, &self.line).await;
        let Race { hedges, said, .. } = race;
        // Hedges are attempts like others.
        for _ in 0..hedges {
            let _ = call.on_failure(now(), Verdict::Transient);
        }
        let Won { answer, trail, line, permit, start, end } = won.map_err(|(broken, trail, lost)| {
            received.trail = trail;
            narrator.has_lost(lost);
            broken.judged_by(&said)
        })?;
        received.trail = trail;
        let line = line.as_ref().unwrap_or(&self.line);
        let (end, limit) = end.unzip();
        let left = end.map(|end| end.saturating_duration_since(time::Instant::now()));
        let accepted = attempt::accept(terms, line, answer, 0, received);
        let ended = attempt::within(limit, left, (terms, line), accepted).await;
        if let Some(outcome) = outcome(&ended) {
            guard.ended_by(permit, now(), outcome);
        }
        let success = ended.map_err(|broken| {
            narrator.has_lost(Some(start.lost()));
            broken.judged_by(&said)
        })?;
        rest::sent(success, (terms, line), [end, self.limit.is_near()]).await
    }

    /// The longest of an attempt that starts now. What ends the whole call ends the attempt too, and says so better.
    fn attempt_limit(&self, call: &Call<&Policy>, now: Timestamp) -> Option<Duration> {
        call.attempt_limit(now).filter(|limit| self.limit.left().is_none_or(|left| *limit < left))
    }

    /// The policy decides when, the rule of replay whether.
    fn decide(&self, call: &mut Call<&Policy>, now: Timestamp, failure: &Failure) -> Next {
        let rule = self.replay(failure.left);
        match call.on_failure(now, failure.verdict) {
            Decision::GiveUp(reason) => Next::Stop(Stop::GaveUp(reason)),
            Decision::Retry(_) if !rule.is_allowed() => Next::Stop(Stop::Unsafe(rule)),
            Decision::Retry(delay) => Next::Again(delay, rule),
        }
    }

    /// Whether the request may be sent again, if it has left.
    fn replay(&self, left: bool) -> wire::Replay {
        let request = &self.terms.request;
        let (method, headers) = (&request.meant(), &request.headers);
        wire::replay(&wire::Request { method, headers, left, unsafe_too: self.retry_unsafe })
    }

    async fn succeed(&self, narrator: &Narrator, success: &Success, received: &mut Received) -> Result<u8, Fault> {
        let length = received.sink.length();
        let sink = take(received)?;
        let to_its_place = success.status.is_success() || success.had_all;
        let is_wanted = success.status == StatusCode::NOT_MODIFIED && self.asks_on_a_condition();
        let is_left_out = !to_its_place && sink.is_for_a_file() && !is_wanted;
        let mut written = match (to_its_place, sink.is_for_a_file()) {
            // It waits for nobody, and is not left half done.
            (true, true) => sink.finish()?,
            (true, false) => blocking(move || sink.finish()).await?,
            (false, _) => blocking(sink.for_stdout()?).await?,
        };
        if written == Written::Whole {
            written = self.end(narrator, received, length, 0).await?;
        }
        if written == Written::ReaderGone {
            narrator.reader_gone(exit::READER_GONE);
            return Ok(exit::READER_GONE);
        }
        match (is_left_out, &self.file) {
            (true, Some(file)) => Err(not_written(file, success)),
            _ => {
                narrator.succeeded(success, length);
                Ok(0)
            }
        }
    }

    async fn fail(
        &self,
        narrator: &Narrator,
        call: &Call<&Policy>,
        now: Timestamp,
        mut failure: Failure,
        stop: Stop,
        received: &mut Received,
    ) -> Result<u8, Fault> {
        let (verdict, may_begin_anew) = (failure.verdict, self.replay(failure.left).is_allowed());
        if self.fail_with_body || self.write_out.is_some() {
            self.above.is_over(stop, verdict, may_begin_anew);
        }
        let shown = self.show(narrator, (call, now), (&mut failure, &stop), received).await;
        let exit = match &shown {
            Ok(Written::Whole) => stop.exit(),
            Ok(Written::ReaderGone) => exit::READER_GONE,
            Err(fault) => fault.code(),
        };
        // Whatever became of its page.
        self.above.judge(narrator, (stop, verdict), may_begin_anew, exit);
        shown?;
        if self.talk.json {
            received.sink.left().iter().for_each(|left| narrator.left(left));
        }
        narrator.gave_up(&failure, stop, may_begin_anew);
        Ok(exit)
    }

    /// Shows the page of a failure where that is wanted, and what is to be said at the end.
    async fn show(
        &self,
        narrator: &Narrator,
        (call, now): (&Call<&Policy>, Timestamp),
        (failure, stop): (&mut Failure, &Stop),
        received: &mut Received,
    ) -> Result<Written, Fault> {
        let mut length = 0;
        let mut written = Written::Whole;
        if let (true, Some(response)) = (self.fail_with_body, failure.response.take()) {
            let limit = call.attempt_limit(now).unwrap_or(Duration::MAX);
            let mut sink = Sink::new(self.other_output(), self.max_size)?;
            // What has come by then is shown.
            let read = attempt::failed_body(&self.terms, &self.line, response, &mut sink);
            if !time::timeout(limit, read).await.unwrap_or(Ok(false))? {
                narrator.page_is_cut();
            }
            length = sink.length();
            written = blocking(move || sink.finish()).await?;
        }
        if written == Written::Whole {
            written = self.end(narrator, received, length, stop.exit()).await?;
        }
        Ok(written)
    }

    /// Whether nothing is wanted if nothing has changed.
    fn asks_on_a_condition(&self) -> bool {
        let headers = &self.terms.request.headers;
        headers.contains_key(header::IF_NONE_MATCH) || headers.contains_key(header::IF_MODIFIED_SINCE)
    }

    /// The body of a failure goes to stdout, whatever `-o` says.
    fn other_output(&self) -> Output {
        Output::Stdout { anything: matches!(self.output, Output::Stdout { anything: true }) }
    }

    /// What `--write-out` prints at the end.
    async fn end(&self, narrator: &Narrator, received: &Received, bytes: u64, exit: u8) -> Result<Written, Fault> {
        match self.last_words(narrator, &received.trail, bytes, exit) {
            Some(text) => blocking(move || print(&text)).await,
            None => Ok(Written::Whole),
        }
    }

    fn last_words(&self, narrator: &Narrator, trail: &Trail, bytes: u64, exit: u8) -> Option<Vec<u8>> {
        let (attempts, elapsed) = narrator.spent();
        let (seen, url, file) = (trail.seen.as_ref(), &self.terms.request.url, self.file.as_deref());
        let columns = screen::columns_of(io::stdout());
        Some(self.write_out.as_ref()?.text(&End { seen, url, bytes, attempts, elapsed, exit, file, columns }))
    }
}

/// Whoever asked for a file must not take what is there for it.
fn not_written(file: &str, success: &Success) -> Fault {
    let to = success.location.as_ref().map_or(String::new(), |(to, _)| format!(", to {to}"));
    let hint = match success.location {
        Some((_, true)) => "-L follows it",
        _ => "without -o the answer is taken as it is",
    };
    let status = super::failure::status_text(success.status);
    Fault::new(format!("{file} is not written: the answer is {status}{to}")).hint(hint).exit(3)
}

/// The sink, for good; an empty one stays.
fn take(received: &mut Received) -> Result<Sink, Fault> {
    Ok(std::mem::replace(&mut received.sink, Sink::new(Output::Stdout { anything: true }, None)?))
}

/// Writes where writing may take as long as whoever reads likes: signals and limits still count.
async fn blocking<T: Send + 'static>(write: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
    let written = runtime::aside("writer", write).await;
    written.unwrap_or_else(|| Err(Fault::new("cannot write the body: whoever wrote it has failed")))
}

/// What an upstream is told of an attempt; nothing if our side failed.
fn outcome(ended: &Result<Success, Broken>) -> Option<Outcome> {
    match ended {
        Ok(_) => Some(Outcome::Success),
        Err(Broken::Failed(failure)) => Some(failure.outcome()),
        Err(Broken::Ours(_)) => None,
    }
}

/// What follows a failed attempt.
enum Next {
    Again(Duration, wire::Replay),
    Stop(Stop),
}

/// How it ended: by itself, or from outside.
enum Ended {
    ByItself(Result<u8, Fault>),
    By((&'static str, u8)),
    OutOfTime(Duration),
    ReaderGone,
}
