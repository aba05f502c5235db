//! One attempt: send, judge, receive.

use super::{
    engine::Engine,
    failure::{self, Broken, Failure, Reached},
    head,
    narrator::Narrator,
    progress::Progress,
    resume::Resume,
    sink::Sink,
};
use crate::talk::Fault;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use relent::wire;
use reqwest::Response;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the attempts of a call leave to the next.
pub(super) struct Received {
    /// The body so far.
    pub(super) sink: Sink,
    /// How to go on with it.
    resume: Option<Resume>,
    /// Going on did not work once: do not try it again.
    from_the_start: bool,
}

/// A response that is no failure, its body received.
pub(super) struct Success {
    /// The status.
    pub(super) status: StatusCode,
    /// Where a redirect leads that was not followed.
    pub(super) location: Option<String>,
}

impl Received {
    /// Nothing yet.
    pub(super) fn nothing(sink: Sink) -> Received {
        Received { sink, resume: None, from_the_start: false }
    }

    /// Forgets what cannot be gone on with, and says where the next attempt begins.
    fn begin(&mut self) -> Result<u64, Broken> {
        if self.resume.is_none() || self.sink.length() == 0 {
            self.resume = None;
            self.sink.clear()?;
        }
        Ok(self.sink.length())
    }

    fn start_over(&mut self) -> Result<(), Broken> {
        self.resume = None;
        self.from_the_start = true;
        Ok(self.sink.clear()?)
    }
}

/// Makes one attempt.
pub(super) async fn once(engine: &Engine, attempt: u32, received: &mut Received) -> Result<Success, Broken> {
    let have = received.begin()?;
    let headers = headers(engine, attempt, received, have);
    engine.client.watch.reset();
    let response = send(engine, headers).await?;
    let now = unix_time();
    Narrator::head(engine.talk, || head::received(&response));
    if have > 0 {
        accept_part(&response, have, received)?;
    }
    if let Some(verdict) = engine.rules.verdict(response.status(), response.headers(), now) {
        return Err(Broken::Failed(Box::new(Failure::status(response, verdict, now))));
    }
    let success = Success { status: response.status(), location: location(&response) };
    if engine.request.method == Method::HEAD {
        received.sink.write(head::of(&response).as_bytes())?;
    } else {
        receive(engine, response, now, received).await?;
    }
    Ok(success)
}

fn headers(engine: &Engine, attempt: u32, received: &Received, have: u64) -> HeaderMap {
    let mut headers = engine.request.headers.clone();
    if attempt > 1 {
        headers.insert(wire::RELENT_ATTEMPT, wire::attempt_value(attempt));
    }
    if engine.to_file && !headers.contains_key(header::ACCEPT_ENCODING) {
        // What comes encoded has no length to show, and could not be gone on with.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let (Some(resume), 1..) = (&received.resume, have) {
        resume.ask(have, &mut headers);
    }
    headers
}

async fn send(engine: &Engine, headers: HeaderMap) -> Result<Response, Broken> {
    let request = &engine.request;
    Narrator::head(engine.talk, || head::sent(request, &headers));
    let mut sending = engine.client.http.request(request.method.clone(), request.url.clone()).headers(headers);
    if let Some(body) = &request.body {
        sending = sending.body(body.open()?);
    }
    let sent = sending.send().await;
    sent.map_err(|error| {
        let connected = engine.client.watch.is_connected();
        failure::before_head(&error, Reached { connected, redirects: engine.redirects }, request)
    })
}

/// Looks at the answer to a request for the rest of a body.
fn accept_part(response: &Response, have: u64, received: &mut Received) -> Result<(), Broken> {
    let fits = received.resume.as_ref().is_some_and(|resume| resume.is_answered_by(have, response.headers()));
    match response.status() {
        StatusCode::PARTIAL_CONTENT if fits => Ok(()),
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            received.start_over()?;
            let text = "the server has another rest of the body than was missing, so it starts over".to_owned();
            Err(Broken::Failed(Box::new(Failure::of(wire::Fault::EarlyEnd, text))))
        }
        // The whole body, from the start: it has changed, or the server does not do ranges.
        status if status.is_success() => {
            received.resume = None;
            Ok(received.sink.clear()?)
        }
        _ => Ok(()),
    }
}

async fn receive(
    engine: &Engine,
    mut response: Response,
    now: Duration,
    received: &mut Received,
) -> Result<(), Broken> {
    let have = received.sink.length();
    let total = response.content_length().map(|rest| rest.saturating_add(have));
    if have == 0 && !received.from_the_start && engine.may_resume() {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        received.resume = Resume::of(response.status(), response.headers(), total, now);
    }
    let mut progress = Progress::new(have, total, !engine.talk.quiet && !engine.talk.json);
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => received.sink.write(&piece)?,
            Ok(None) => break,
            Err(error) => return Err(failure::in_body(&error, received.sink.length(), total)),
        }
        if let Some(progress) = &mut progress {
            progress.at(received.sink.length());
        }
    }
    let whole = received.resume.as_ref().map(Resume::total);
    match whole {
        Some(whole) if whole != received.sink.length() => {
            Err(Broken::Failed(Box::new(failure::early_end(received.sink.length(), Some(whole)))))
        }
        _ => Ok(()),
    }
}

/// Reads the body of a failed response, as far as it comes; of a HEAD, the head is all there is.
pub(super) async fn failed_body(engine: &Engine, mut response: Response, sink: &mut Sink) -> Result<(), Fault> {
    sink.clear()?;
    if engine.request.method == Method::HEAD {
        sink.write(head::of(&response).as_bytes())?;
    }
    while let Ok(Some(piece)) = response.chunk().await {
        sink.write(&piece)?;
    }
    Ok(())
}

fn location(response: &Response) -> Option<String> {
    if !response.status().is_redirection() {
        return None;
    }
    response.headers().get(header::LOCATION)?.to_str().ok().map(str::to_owned)
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
