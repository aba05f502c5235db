//! One attempt: send, follow, judge, receive.

use super::{
    body::Body,
    engine::Engine,
    failure::{self, Broken, Failure},
    head,
    narrator::Narrator,
    progress::Progress,
    redirect::{self, Hop},
    resume::Resume,
    sink::Sink,
    write_out::Seen,
};
use crate::{escape::escape_bytes, talk::Fault};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use relent::wire;
use reqwest::Response;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the attempts of a call leave to the next.
pub(super) struct Received {
    /// The body so far.
    pub(super) sink: Sink,
    /// The last attempt's response, if there was one.
    pub(super) seen: Option<Seen>,
    /// How to go on with it.
    resume: Option<Resume>,
    /// Going on did not work once: do not try it again.
    from_the_start: bool,
}

/// A response that is no failure, its body received.
pub(super) struct Success {
    /// The status.
    pub(super) status: StatusCode,
    /// Where a redirect leads that was not followed, for people, and whether it could be.
    pub(super) location: Option<(String, bool)>,
    /// FILE was complete already.
    pub(super) had_all: bool,
    /// An encoding of the body that was not asked for, and is not undone.
    pub(super) encoding: Option<String>,
}

impl Received {
    /// What an earlier run left, or nothing yet.
    pub(super) fn nothing(mut sink: Sink) -> Received {
        let resume = sink.take_resume();
        Received { sink, resume, seen: None, from_the_start: false }
    }

    /// Forgets what cannot be gone on with, and says where the next attempt begins.
    fn begin(&mut self) -> Result<u64, Broken> {
        self.seen = None;
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
    let first = engine.request.hop(headers(engine, attempt, received, have));
    let (response, hop) = follow(engine, first, received).await?;
    let now = unix_time();
    if have > 0 {
        match accept_part(&response, have, received)? {
            Part::IsAll => {
                return Ok(Success { status: response.status(), location: None, had_all: true, encoding: None });
            }
            Part::Follows => {}
        }
    }
    if response.status().is_informational() {
        let text = format!("the answer is {}, which was not asked for", failure::status_text(response.status()));
        return Err(Broken::Failed(Box::new(Failure::of(wire::Fault::Protocol, text))));
    }
    if let Some(verdict) = engine.rules.verdict(response.status(), response.headers(), now) {
        return Err(Broken::Failed(Box::new(Failure::status(response, verdict, now))));
    }
    let location = redirect::location(response.status(), response.headers());
    let location = location.map(|to| (redirect::shown(&hop.url, &to), redirect::is_followable(&hop.url, &to)));
    let encoding = response.headers().get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity");
    let encoding = encoding.filter(|_| !hop.headers.contains_key(header::ACCEPT_ENCODING));
    let encoding = encoding.map(|coding| escape_bytes(coding.as_bytes()));
    let success = Success { status: response.status(), location, had_all: false, encoding };
    if hop.method == Method::HEAD {
        received.sink.write_head(&head::printed(&response, engine.to_terminal))?;
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
    if let (Some(resume), 1..) = (&received.resume, have) {
        resume.ask(have, &mut headers);
    }
    headers
}

/// Sends the request, and those that redirects ask for; the last response, and the request that it answers.
async fn follow(engine: &Engine, first: Hop, received: &mut Received) -> Result<(Response, Hop), Broken> {
    let mut hop = first;
    loop {
        let response = send(engine, &hop).await?;
        Narrator::head(engine.talk, || head::received(&response));
        received.seen = Some(Seen::of(&response, &hop));
        if engine.include && hop.method != Method::HEAD {
            received.sink.write_head(&head::printed(&response, engine.to_terminal))?;
            received.sink.write_head(b"\n")?;
        }
        let next = if engine.redirects { hop.next(response.status(), response.headers()) } else { Ok(None) };
        match next.map_err(Broken::Failed)? {
            None => return Ok((response, hop)),
            Some(next) => hop = next,
        }
    }
}

async fn send(engine: &Engine, hop: &Hop) -> Result<Response, Broken> {
    engine.client.connects_to(&hop.url)?;
    Narrator::head(engine.talk, || head::sent(hop));
    let mut sending = engine.client.http.request(hop.method.clone(), hop.url.clone()).headers(hop.headers.clone());
    let body = engine.request.body.as_ref().filter(|_| hop.has_body);
    let expects_one = [Method::POST, Method::PUT, Method::PATCH].contains(&hop.method);
    if body.map_or(expects_one, Body::is_empty) {
        // The client says nothing of an empty body; servers that are not told wait for one, or answer 411 (RFC 9110 8.6).
        sending = sending.header(header::CONTENT_LENGTH, 0);
    } else if let Some(body) = body {
        sending = sending.body(body.open(&engine.pulse)?);
    }
    let sent = engine.patience.wait(&engine.pulse, sending.send()).await;
    let connected = engine.client.watch.is_connected();
    let way = failure::Way { hop, connected, proxies: &engine.client.proxies };
    match sent {
        Some(Ok(response)) => Ok(response),
        Some(Err(error)) => Err(failure::before_head(&error, &way)),
        None => Err(failure::silent(engine.patience, &way)),
    }
}

/// What the answer to a request for the rest of a body brings.
enum Part {
    /// Something to receive.
    Follows,
    /// Nothing: all is there.
    IsAll,
}

/// Looks at the answer to a request for the rest of a body.
fn accept_part(response: &Response, have: u64, received: &mut Received) -> Result<Part, Broken> {
    let fits = received.resume.as_ref().is_some_and(|resume| resume.is_answered_by(have, response.headers()));
    let is_all = received.resume.as_ref().is_some_and(|resume| resume.is_all(have, response.headers()));
    match response.status() {
        StatusCode::PARTIAL_CONTENT if fits => {
            if let Some(known) = Resume::of_part(response.headers(), seconds(unix_time())) {
                received.sink.is_part_of(Some(&known))?;
                received.resume = Some(known);
            }
            Ok(Part::Follows)
        }
        StatusCode::RANGE_NOT_SATISFIABLE if is_all => Ok(Part::IsAll),
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            received.start_over()?;
            let text = "the server has another rest of the body than was missing, so it starts over".to_owned();
            Err(Broken::Failed(Box::new(Failure::of(wire::Fault::EarlyEnd, text))))
        }
        // The whole body, from the start: it has changed, or the server does not do ranges.
        status if status.is_success() => {
            received.resume = None;
            received.sink.clear()?;
            Ok(Part::Follows)
        }
        _ => Ok(Part::Follows),
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
    fits(engine, total.unwrap_or(have))?;
    if have == 0 && !received.from_the_start && engine.may_resume() {
        received.resume = Resume::of(response.status(), response.headers(), total, seconds(now));
        received.sink.is_part_of(received.resume.as_ref())?;
    }
    let mut progress = Progress::new(have, total, !engine.talk.quiet && !engine.talk.json);
    loop {
        let Some(piece) = engine.patience.wait(&engine.pulse, piece(&mut response)).await else {
            return Err(failure::stalled(received.sink.length(), total, engine.patience));
        };
        match piece {
            Ok(Some(piece)) => {
                fits(engine, received.sink.length().saturating_add(piece.len() as u64))?;
                received.sink.write(&piece)?;
            }
            Ok(None) => break,
            Err(error) => return Err(failure::in_body(&error, received.sink.length(), total)),
        }
        if let Some(progress) = &mut progress {
            progress.at(received.sink.length());
        }
    }
    let whole = received.resume.as_ref().and_then(Resume::total);
    match whole {
        Some(whole) if whole != received.sink.length() => {
            Err(Broken::Failed(Box::new(failure::early_end(received.sink.length(), Some(whole)))))
        }
        _ => Ok(()),
    }
}

/// The next piece of a body. Frames without a byte in them are none, or a server could go on with them for ever.
async fn piece(response: &mut Response) -> reqwest::Result<Option<Bytes>> {
    loop {
        match response.chunk().await {
            Ok(Some(piece)) if piece.is_empty() => {}
            piece => return piece,
        }
    }
}

/// Whether a body of this length is not too large.
fn fits(engine: &Engine, length: u64) -> Result<(), Broken> {
    if length <= engine.max_size.0 {
        return Ok(());
    }
    let text = format!("the body is larger than the --max-size of {}", engine.max_size);
    Err(Broken::Failed(Box::new(Failure::of(wire::Fault::Protocol, text).hint("--max-size takes more, or unlimited"))))
}

/// Reads the body of a failed response, as far as it comes and as much as may be kept.
pub(super) async fn failed_body(engine: &Engine, mut response: Response, sink: &mut Sink) -> Result<(), Fault> {
    if engine.include || engine.request.method == Method::HEAD {
        sink.write_head(&head::printed(&response, engine.to_terminal))?;
    }
    if engine.include && engine.request.method != Method::HEAD {
        sink.write_head(b"\n")?;
    }
    while let Some(Ok(Some(piece))) = engine.patience.wait(&engine.pulse, piece(&mut response)).await {
        let room = engine.max_size.0.saturating_sub(sink.length());
        let length = usize::try_from(room).unwrap_or(usize::MAX).min(piece.len());
        sink.write(&piece[..length])?;
        if length < piece.len() {
            break;
        }
    }
    Ok(())
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn seconds(now: Duration) -> i64 {
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
