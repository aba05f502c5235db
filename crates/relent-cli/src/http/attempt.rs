//! One attempt: send, follow, judge, receive.

use super::{
    body::Unread,
    client::Client,
    coding,
    exchange::{self, Sending},
    failure::{self, Broken, Failure, authority},
    head,
    idle::{Patience, Pulse},
    left::{Doubt, Left},
    linger, most,
    progress::Progress,
    redirect::{self, Hop},
    request::Request,
    resume::{Resume, is_whole, part_length},
    sink::Sink,
    whole,
    word::Word,
    write_out::Seen,
};
use crate::{
    escape::escape,
    outer, redact, screen,
    talk::{self, Fault, TalkArgs},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use relent::wire::{self, Rules};
use reqwest::Response;
use std::{
    cell::RefCell,
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time;
use url::Url;

/// What all attempts of a call have in common.
pub(super) struct Terms {
    /// What is sent.
    pub(super) request: Request,
    /// Which statuses are failures.
    pub(super) rules: Rules,
    /// Whether redirects are followed.
    pub(super) redirects: bool,
    /// Whether encoded bodies are asked for, and undone.
    pub(super) compressed: bool,
    /// Whether heads are printed with bodies.
    pub(super) include: bool,
    /// The columns of the terminal that shows what is printed, if one does.
    pub(super) columns: Option<usize>,
    /// The longest without a byte.
    pub(super) patience: Patience,
    /// How much to say.
    pub(super) talk: TalkArgs,
    /// What was told last of headers that a redirect has lost.
    pub(super) lost: RefCell<String>,
}

impl Terms {
    /// Says which headers a redirect does not take along, where that was not said of the request before: it may be another without them.
    fn tell_what_is_lost(&self, hop: &Hop, next: &Hop) {
        let names: Vec<&str> = hop.lost(next).into_iter().map(HeaderName::as_str).collect();
        if names.is_empty() {
            return;
        }
        let place = if next.host_says_a_secret { redact::HIDDEN.to_owned() } else { authority(&next.url) };
        let told = format!("not sent on to {place}, where a redirect leads: {}", names.join(", "));
        if self.lost.replace(told.clone()) != told {
            talk::remark(self.talk, &told);
        }
    }

    /// Whether a body that breaks off may be gone on with: a plain GET.
    pub(super) fn may_resume(&self) -> bool {
        self.request.meant() == Method::GET && !self.include && !self.request.headers.contains_key(header::RANGE)
    }
}

/// What one request at a time is sent by: it knows of that one how far it came.
pub(super) struct Line {
    /// The client.
    pub(super) client: Client,
    /// What has moved of the request's body.
    pub(super) pulse: Pulse,
    /// What could not be read of it.
    pub(super) unread: Unread,
    /// What the head of the answer says of trying again, once it is there.
    word: RefCell<Option<Word>>,
}

impl Line {
    /// By which nothing has been sent yet.
    pub(super) fn of(client: Client) -> Line {
        let (pulse, unread) = (Pulse::default(), Unread::default());
        Line { client, pulse, unread, word: RefCell::default() }
    }
}

/// What came on the way to an answer.
#[derive(Default)]
pub(super) struct Trail {
    /// The last response, if there was one.
    pub(super) seen: Option<Seen>,
    /// The heads that are printed before the body.
    heads: Vec<u8>,
}

/// The head of a response that is no redirect to be followed.
pub(super) struct Answer {
    response: Response,
    /// The request that it answers.
    hop: Hop,
    /// When it was there, since 1970.
    at: Duration,
    /// A redirect led there from a request with a body that may not be taken yet.
    left: Option<Left>,
    /// The same before all of it was sent, which is sent to nobody any more.
    doubt: Option<Doubt>,
}

/// What the attempts of a call leave to the next.
pub(super) struct Received {
    /// The body so far.
    pub(super) sink: Sink,
    /// What came in the last attempt before the body.
    pub(super) trail: Trail,
    /// How to go on with it.
    resume: Option<Resume>,
    /// As much of it is the user's own part; what follows is known by nothing, and nothing can be joined to it.
    known: Option<u64>,
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
    /// The request that had a body, all of which may not be sent yet.
    pub(super) left: Option<Left>,
    /// Why some of the request's body may be lost.
    pub(super) doubt: Option<Doubt>,
}

impl Received {
    /// What an earlier run left, or nothing yet.
    pub(super) fn nothing(mut sink: Sink) -> Received {
        let resume = sink.take_resume();
        Received { sink, resume, known: None, trail: Trail::default(), from_the_start: false }
    }

    /// Forgets what cannot be gone on with, and says where the next attempt begins.
    pub(super) fn begin(&mut self) -> Result<u64, Broken> {
        self.trail = Trail::default();
        if let Some(length) = self.known.take() {
            self.sink.cut(length)?;
        }
        if self.resume.is_none() || self.sink.length() == 0 {
            self.resume = None;
            self.sink.clear()?;
        }
        Ok(self.sink.length())
    }

    fn start_over(&mut self) -> Result<(), Broken> {
        (self.resume, self.known) = (None, None);
        self.from_the_start = true;
        Ok(self.sink.clear()?)
    }
}

/// Makes one attempt, of whose body so much is there already.
pub(super) async fn once(
    terms: &Terms,
    line: &Line,
    attempt: u32,
    have: u64,
    received: &mut Received,
) -> Result<Success, Broken> {
    let rest = received.resume.as_ref().filter(|_| have > 0).map(|resume| (resume, have));
    let answer = ask(terms, line, headers(terms, attempt), rest, &mut received.trail).await?;
    accept(terms, line, answer, have, received).await
}

/// The answer to a request for all of it, unless it is a failure or takes longer than it may.
pub(super) async fn answer(
    terms: &Terms,
    line: &Line,
    attempt: u32,
    limit: Option<Duration>,
    trail: &mut Trail,
) -> Result<Answer, Broken> {
    let asked = async { judged(terms, ask(terms, line, headers(terms, attempt), None, trail).await?, 0) };
    within(limit, limit, (terms, line), asked).await
}

/// What comes of it, unless it is not over within what is `left` of its `limit`. However it fails, it is our side that failed if the data could
/// not be read; else what the head of an answer that is there says of trying again counts.
pub(super) async fn within<T>(
    limit: Option<Duration>,
    left: Option<Duration>,
    (terms, line): (&Terms, &Line),
    work: impl Future<Output = Result<T, Broken>>,
) -> Result<T, Broken> {
    let ended = match limit.zip(left) {
        Some((limit, left)) => {
            time::timeout(left, work).await.unwrap_or_else(|_| Err(line.client.late(limit, &terms.request.url)))
        }
        None => work.await,
    };
    ended.map_err(|broken| match line.unread.take() {
        Some(fault) => Broken::Ours(fault),
        None => broken.judged_by(&*line.word.borrow()),
    })
}

/// Receives what an answer brings, of which so much is there already.
pub(super) async fn accept(
    terms: &Terms,
    line: &Line,
    answer: Answer,
    have: u64,
    received: &mut Received,
) -> Result<Success, Broken> {
    received.sink.write_head(&std::mem::take(&mut received.trail.heads))?;
    let part = if have > 0 { accept_part(&answer, have, received)? } else { Part::Follows };
    if let Part::IsAll = part {
        return Ok(Success {
            status: answer.response.status(),
            location: None,
            had_all: true,
            encoding: None,
            left: None,
            doubt: None,
        });
    }
    let Answer { response, hop, at, left, doubt } = judged(terms, answer, have)?;
    if let Part::IsNone = part {
        let status = failure::status_text(response.status());
        let text = format!("the rest of the body was asked for, and {status} came, which is none");
        return Err(Broken::Failed(Box::new(Failure::of(wire::Fault::EarlyEnd, text))));
    }
    let location = redirect::location(response.status(), response.headers());
    let location = location.map(|to| (redirect::shown(&hop.url, &to), redirect::is_followable(&hop.url, &to)));
    let encodings = coding::named(response.headers());
    let is_asked_for = encodings.is_empty() || coding::is_any_asked_for(&hop.headers);
    let encoding = (!is_asked_for).then(|| escape(&encodings.join(", ")).into_owned());
    let sending = response.extensions().get::<Sending>().cloned().filter(|_| hop.has_body);
    let left = sending.map(Left::of).or(left);
    let status = response.status();
    if hop.method == Method::HEAD {
        received.sink.write_head(&head::printed(&response, terms.columns))?;
        drop(response);
    } else {
        receive(terms, line, (response, &hop.url), at, received).await?;
    }
    Ok(Success { status, location, had_all: false, encoding, left, doubt })
}

/// The same answer, unless its head says that it is a failure, or not what was asked for.
fn judged(terms: &Terms, answer: Answer, have: u64) -> Result<Answer, Broken> {
    let response = &answer.response;
    if let Some(coding) = foreign_coding(response.headers()) {
        let text = format!("the body has a transfer coding that was not asked for: {coding}");
        return Err(Broken::Failed(Box::new(Failure::of(wire::Fault::Protocol, text))));
    }
    if response.status().is_informational() {
        let text = format!("the answer is {}, which was not asked for", failure::status_text(response.status()));
        return Err(Broken::Failed(Box::new(Failure::of(wire::Fault::Protocol, text))));
    }
    let asked_for_a_part = have > 0 || terms.request.headers.contains_key(header::RANGE);
    if response.status() == StatusCode::PARTIAL_CONTENT && !asked_for_a_part && !is_whole(response.headers()) {
        let text = "a part of the body came, and all of it was asked for".to_owned();
        return Err(Broken::Failed(Box::new(Failure::of(wire::Fault::EarlyEnd, text))));
    }
    match terms.rules.verdict(response.status(), response.headers(), answer.at) {
        Some(verdict) => {
            if let Some(sending) = response.extensions().get::<Sending>() {
                sending.is_refused();
            }
            Err(Broken::Failed(Box::new(Failure::status(answer.response, verdict, answer.at))))
        }
        None => Ok(answer),
    }
}

/// What was done to a body on its way that nobody undoes (RFC 9112, 7): a server must ask before, by what a request says in `TE`. Where it is
/// not plain how a body is framed, nobody knows where it ends (RFC 9112, 6.3).
fn foreign_coding(head: &HeaderMap) -> Option<String> {
    if !head.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    let lines: Vec<_> = head.get_all(header::TRANSFER_ENCODING).iter().map(|line| line.as_bytes()).collect();
    // Word for word: what is an empty element of a list to one reader (`chunked,`) is another coding to the next.
    let is_plain = match lines.as_slice() {
        [one] if one.trim_ascii().eq_ignore_ascii_case(b"chunked") => true,
        // As servers said of old that there is none: the body ends with the connection.
        [one] if one.trim_ascii().eq_ignore_ascii_case(b"identity") => !head.contains_key(header::CONTENT_LENGTH),
        _ => false,
    };
    let all = || lines.iter().map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join(", ");
    // What is hidden is looked for before it is quoted, as which a `\` stands twice.
    let shown = || format!("{:?}", redact::without_given(redact::within_reach(&all())));
    (!is_plain).then(|| escape(&shown()).into_owned())
}

fn headers(terms: &Terms, attempt: u32) -> HeaderMap {
    let mut headers = terms.request.headers.clone();
    if attempt > 1 {
        headers.insert(wire::RELENT_ATTEMPT, wire::attempt_value(attempt));
    }
    headers
}

/// Sends the request, and those that redirects ask for, until there is an answer. Only who sent the part that is there is asked
/// for the rest.
async fn ask(
    terms: &Terms,
    line: &Line,
    headers: HeaderMap,
    rest: Option<(&Resume, u64)>,
    trail: &mut Trail,
) -> Result<Answer, Broken> {
    let mut hop = terms.request.hop(headers);
    let (mut left, mut doubt) = (None, None);
    line.client.begins();
    loop {
        line.word.take();
        line.unread.take();
        if let Some((resume, have)) = rest {
            resume.ask_at(&hop.url, have, &mut hop.headers);
        }
        let response = send(terms, line, &hop).await?;
        let at = unix_time();
        line.word.replace(Some(Word::of_head(terms.rules, response.status(), response.headers(), at)));
        head::tell(terms.talk, |look| head::received(&response, look));
        trail.seen = Some(Seen::of(&response, &hop));
        if terms.include && hop.method != Method::HEAD {
            trail.heads.extend_from_slice(&head::printed(&response, terms.columns));
            trail.heads.push(b'\n');
        }
        let next = if terms.redirects { hop.next(response.status(), response.headers()) } else { Ok(None) };
        match next.map_err(Broken::Failed)? {
            None => {
                // What follows may take long, and be ended from outside.
                let _ = line.word.borrow().as_ref().map(|word| outer::heed(word.verdict()));
                return Ok(Answer { response, hop, at, left, doubt });
            }
            Some(next) => {
                if hop.has_body && !next.has_body {
                    (left, doubt) = Left::behind(response);
                }
                terms.tell_what_is_lost(&hop, &next);
                hop = next;
            }
        }
    }
}

async fn send(terms: &Terms, line: &Line, hop: &Hop) -> Result<Response, Broken> {
    line.client.connects_to(&hop.url, hop.led())?;
    head::tell(terms.talk, |look| head::sent(hop, look));
    let mut headers = hop.headers.clone();
    let asked = hop.headers.get(header::ACCEPT_ENCODING);
    if terms.compressed && asked.is_none() {
        headers.insert(header::ACCEPT_ENCODING, coding::ACCEPTED);
    }
    // The rest of a body is asked for as it is, and what it says of bytes is of those that are sent.
    let is_a_rest = |response: &Response| {
        response.status() == StatusCode::PARTIAL_CONTENT && asked.is_some_and(|asked| asked == coding::IDENTITY)
    };
    let body = terms.request.body.as_ref().filter(|_| hop.has_body);
    let expects_one = [Method::POST, Method::PUT, Method::PATCH].contains(&hop.method);
    let opened = body.map(|body| body.open(&line.unread)).transpose()?;
    let opened = opened.flatten();
    // The client says nothing of an empty body; servers that are not told wait for one, or answer 411 (RFC 9110 8.6).
    if opened.is_none() && (body.is_some() || expects_one) {
        headers.insert(header::CONTENT_LENGTH, 0.into());
    }
    let cannot = |why| failure::not_sent(why, &line.client.way(&hop.url, hop.led()));
    let beside = line.client.beside().map_err(cannot)?;
    let asked = line.client.ask(hop, headers, opened, &line.pulse);
    let sent = terms.patience.wait(&line.pulse, beside.run(asked)).await.map(|sent| {
        sent.map(|mut response| {
            response.extensions_mut().insert(beside.clone());
            whole::checked(response)
        })
    });
    let way = || line.client.way(&hop.url, hop.led());
    match sent {
        Some(Ok(response)) if exchange::is_too_large(response.headers()) => Err(failure::too_large(&way())),
        Some(Ok(response)) if terms.compressed && !is_a_rest(&response) => Ok(coding::undone(response)),
        Some(Ok(response)) => Ok(response),
        Some(Err(error)) => Err(failure::before_head(&error, &way())),
        None => {
            // After that nothing leaves.
            line.client.hang_up();
            Err(failure::silent(terms.patience, &way()))
        }
    }
}

/// What the answer to a request for the rest of a body brings.
enum Part {
    /// Something to receive.
    Follows,
    /// Nothing: all is there.
    IsAll,
    /// Something else, as a redirect that is not followed, or word that there is no body: what is there stays as it is.
    IsNone,
}

/// Looks at the answer to a request for the rest of a body.
fn accept_part(answer: &Answer, have: u64, received: &mut Received) -> Result<Part, Broken> {
    let (response, url) = (&answer.response, &answer.hop.url);
    let resume = received.resume.as_ref().filter(|resume| resume.is_of(url));
    let fits = resume.is_some_and(|resume| resume.is_answered_by(have, response.headers()));
    let is_all = resume.is_some_and(|resume| resume.is_all(have, response.headers()));
    match response.status() {
        StatusCode::PARTIAL_CONTENT if fits => {
            if let Some(known) = Resume::of_part(response.headers(), seconds(unix_time())) {
                let known = known.at(url);
                received.sink.is_part_of(Some(&known))?;
                received.resume = Some(known);
            } else if resume.is_some_and(Resume::is_the_users_word) {
                received.known = Some(have);
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
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
            received.resume = None;
            received.sink.clear()?;
            Ok(Part::Follows)
        }
        _ => Ok(Part::IsNone),
    }
}

async fn receive(
    terms: &Terms,
    line: &Line,
    (mut response, url): (Response, &Url),
    now: Duration,
    received: &mut Received,
) -> Result<(), Broken> {
    let have = received.sink.length();
    let total = response.content_length().map(|rest| rest.saturating_add(have));
    // What a part says that it has, whether or not anything says what it is a part of.
    let is_counted = |response: &&Response| {
        response.status() == StatusCode::PARTIAL_CONTENT && response.extensions().get::<coding::Undone>().is_none()
    };
    let named = Some(&response).filter(is_counted);
    let named = named.and_then(|response| part_length(response.headers())).map(|length| length.saturating_add(have));
    fits(&received.sink, total.unwrap_or(have))?;
    if have == 0 && !received.from_the_start && terms.may_resume() {
        let resume = Resume::of(response.status(), response.headers(), total, seconds(now));
        received.resume = resume.map(|resume| resume.at(url));
        received.sink.is_part_of(received.resume.as_ref())?;
    }
    let mut progress = Progress::new(have, total, !terms.talk.quiet && !terms.talk.json);
    loop {
        let Some(piece) = terms.patience.wait(&line.pulse, piece(&mut response)).await else {
            line.client.hang_up();
            return Err(failure::stalled(received.sink.length(), total, terms.patience));
        };
        match piece {
            Ok(Some(piece)) => {
                let length = received.sink.length().saturating_add(piece.len() as u64);
                fits(&received.sink, length)?;
                if named.is_some_and(|named| length > named) {
                    received.start_over()?;
                    let text = "the server sent more than the part that it named, so it starts over".to_owned();
                    return Err(Broken::Failed(Box::new(Failure::of(wire::Fault::EarlyEnd, text))));
                }
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
    match whole.or(named) {
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
fn fits(sink: &Sink, length: u64) -> Result<(), Broken> {
    let Some(problem) = most::problem(length, sink.most()) else { return Ok(()) };
    Err(Broken::Failed(Box::new(Failure::of(wire::Fault::Protocol, problem).hint(most::HINT))))
}

/// Reads the body of a failed response, as far as it comes and as much as may be kept: whether that is all of it. Who waits for the rest of a
/// request before they go on, which they are not sent, is not waited for long.
pub(super) async fn failed_body(
    terms: &Terms,
    line: &Line,
    mut response: Response,
    sink: &mut Sink,
) -> Result<bool, Fault> {
    if terms.include || terms.request.method == Method::HEAD {
        sink.write_head(&head::printed(&response, screen::columns_of(io::stdout())))?;
    }
    if terms.include && terms.request.method != Method::HEAD {
        sink.write_head(b"\n")?;
    }
    let is_kept_back = response.extensions().get::<Sending>().is_some_and(Sending::is_kept_back);
    let patience = if is_kept_back { terms.patience.at_most(linger::ENOUGH) } else { terms.patience };
    loop {
        let piece = match patience.wait(&line.pulse, piece(&mut response)).await {
            Some(Ok(Some(piece))) => piece,
            ended => return Ok(matches!(ended, Some(Ok(None)))),
        };
        let room = sink.most().0.saturating_sub(sink.length());
        let length = usize::try_from(room).unwrap_or(usize::MAX).min(piece.len());
        sink.write(&piece[..length])?;
        if length < piece.len() {
            return Ok(false);
        }
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn seconds(now: Duration) -> i64 {
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
