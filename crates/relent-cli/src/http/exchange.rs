//! A request and its answer, over a connection of their own. The client makes the connection (names, proxies, TLS); it is taken from it then,
//! and what is said on it is said here, so that an answer is heard whenever it comes.

use super::{
    frames::Frames,
    greeting::Turn,
    idle::Pulse,
    linger::Stream,
    patient::{Course, Fate, Patient, Speaks},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Uri, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioExecutor,
};
use reqwest::Response;
use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::{sync::watch, task::JoinHandle};
use url::{Position, Url};

type BoxError = Box<dyn Error + Send + Sync>;

/// Who asks.
pub(super) const USER_AGENT: &str = concat!("relent/", env!("CARGO_PKG_VERSION"));

/// The most headers of a response.
const MOST_HEADERS: usize = 1000;

/// The most bytes of them, which is ten times what servers themselves take: what is looked for in them is looked for while nothing else is heard.
pub(super) const MOST_HEADER_BYTES: u32 = 80 << 10;

/// What is made of a body in HTTP/2 before it can be sent: this, and a piece. While nothing can be written, all of it is held.
const MOST_SENT: usize = 64 << 10;

tokio::task_local! {
    /// Where the connection goes that is made for the request of this task.
    static PLACE: Place;
}

/// A place for a connection that is made.
#[derive(Clone, Default)]
pub(super) struct Place(Arc<Mutex<Option<Made>>>);

struct Made {
    stream: Box<dyn Stream>,
    about: Connected,
}

impl Place {
    /// That of the request of this task.
    pub(super) fn here() -> Place {
        PLACE.try_with(Place::clone).unwrap_or_default()
    }

    /// Takes a connection from whoever made it, who gets an error for it.
    pub(super) fn take<T: Stream + Connection + 'static>(&self, connection: T) -> BoxError {
        let about = connection.connected();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(Made { stream: Box::new(connection), about });
        "the connection is somebody else's now".into()
    }

    fn taken(&self) -> Option<Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether any request was begun.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether anything of a request can have left this process.
pub(super) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// The request that an answer came to, which may be under way still.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    told: watch::Receiver<Fate>,
    course: Arc<Course>,
    /// It was written when the answer began.
    was_written: bool,
    /// In HTTP/2, the length of its body.
    length: Option<u64>,
}

/// What a server of HTTP/2 has room for before it says more (RFC 9113, 6.9.2).
const ROOM: u64 = 65_535;

/// What a frame has at most that a server of HTTP/2 takes without having said more (RFC 9113, 4.2). Of what is longer it may have taken a part
/// when it answers, and say so when it takes the rest.
const ONE_FRAME: u64 = 16_384;

impl Sending {
    /// Nothing more is made of its body: it is refused, and why is still read.
    pub(super) fn is_refused(&self) {
        self.course.is_refused.store(true, Ordering::Relaxed);
    }

    /// Whether some of its body, which is refused, is kept back.
    pub(super) fn is_kept_back(&self) -> bool {
        !self.course.is_made.load(Ordering::Relaxed)
    }

    /// Waits until all of it has left, or until it cannot leave.
    pub(super) async fn leaves(&mut self) {
        let has_left = |fate: &Fate| fate.is_written || fate.is_broken;
        while !has_left(&self.told.borrow()) && self.told.changed().await.is_ok() {}
    }

    /// Waits until all of it is sent and the server has had the time to take it, or until it cannot be sent.
    pub(super) async fn ends(&mut self) {
        if self.was_written && !self.may_be_lost() {
            return;
        }
        // That all of it was read does not end the wait: some servers throw away what nobody has worked on yet when the connection is gone.
        // What had come before a connection of HTTP/2 broke is heard when it ends.
        let may_be_lost = self.may_be_lost();
        let is_over = |fate: &Fate| fate.is_broken && !(fate.is_written && may_be_lost);
        // The connection ends by itself when there is nothing more to say on it.
        while !is_over(&self.told.borrow()) && self.told.changed().await.is_ok() {}
    }

    /// Whether all of it is sent, and the server has taken it where a close of ours could lose some of it. What is short is sent, too, where the
    /// server does not want it, if that is how it `has_ended`.
    pub(super) fn is_sent(&self, has_ended: bool) -> bool {
        let fate = self.told.borrow();
        if fate.is_written {
            return !self.may_be_lost() || fate.is_taken;
        }
        // What is short goes right behind the head. Who answers before that and wants no more has not read on, and nobody asks them to.
        let is_short = self.length.is_some_and(|length| length <= ROOM) && self.course.is_made.load(Ordering::Relaxed);
        is_short && !fate.is_broken && (has_ended || !self.may_be_lost())
    }

    /// Whether all of it is written, and more than a server has at once, whatever it says of it: who has read it can throw it away.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.told.borrow().is_written && self.course.is_long
    }

    /// Whether a close of ours can lose some of it that was written.
    fn may_be_lost(&self) -> bool {
        self.length.is_some_and(|length| length > ONE_FRAME)
    }
}

/// A body of which is known whether all of it was made.
struct Handed {
    body: reqwest::Body,
    course: Arc<Course>,
}

impl Body for Handed {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        if self.course.is_refused.load(Ordering::Relaxed) || self.course.gate.is_shut(context) {
            return Poll::Pending;
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.course.is_made.fetch_or(frame.is_none() || self.body.is_end_stream(), Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What is asked, and over what.
pub(super) struct Asked {
    pub(super) client: reqwest::Client,
    pub(super) url: Url,
    /// The method, the headers and the body.
    pub(super) request: Request<reqwest::Body>,
    /// What a proxy is told that is sent the request itself, and not asked for a tunnel.
    pub(super) to_proxy: Option<HeaderValue>,
    /// HTTP/2 is spoken without having been agreed on.
    pub(super) http2_alone: bool,
    /// Beats when something of it is taken.
    pub(super) pulse: Pulse,
    /// Whether it waits to be sent.
    pub(super) turn: Turn,
}

/// There is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// There was no connection.
    Unconnected(reqwest::Error),
    /// There was one.
    Broken(hyper::Error),
    /// There was one, and it ended before anything of the request was sent.
    Unsent(hyper::Error),
    /// There was one, and TLS ended it.
    Insecure(rustls::Error),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::Unconnected(error) => error.fmt(f),
            Unanswered::Broken(error) | Unanswered::Unsent(error) => error.fmt(f),
            Unanswered::Insecure(error) => error.fmt(f),
        }
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Unanswered::Unconnected(error) => error,
            Unanswered::Broken(error) | Unanswered::Unsent(error) => error,
            Unanswered::Insecure(error) => error,
        })
    }
}

/// Whether there is more than that of them, as the client takes it in HTTP/1.
pub(super) fn is_too_large(headers: &HeaderMap) -> bool {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    bytes > MOST_HEADER_BYTES as usize
}

/// Makes the connection, and asks.
pub(super) async fn exchange(asked: Asked) -> Result<Response, Unanswered> {
    let Asked { client, url, request, to_proxy, http2_alone, pulse, turn } = asked;
    let length = request.body().size_hint().lower();
    let (is_made, is_long) = (request.body().is_end_stream().into(), length > ONE_FRAME);
    let course = Arc::new(Course { is_made, is_long, pulse, ..Course::default() });
    let mut request = request.map(|body| Handed { body, course: course.clone() });
    let place = Place::default();
    let connecting = PLACE.scope(place.clone(), client.get(url.clone()).send()).await;
    let made = match (place.taken(), connecting) {
        (Some(made), _) => made,
        (None, Err(error)) => return Err(Unanswered::Unconnected(error)),
        (None, Ok(_)) => unreachable!("all connections are taken"),
    };
    let uri: Uri = url.as_str().parse().expect("what is none of a request is refused before");
    let headers = request.headers_mut();
    headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
    if let Some(user) = to_proxy.filter(|_| made.about.is_proxied()) {
        headers.entry(header::PROXY_AUTHORIZATION).or_insert(user);
    }
    let (answer, told) = if http2_alone || made.about.is_negotiated_h2() {
        *request.uri_mut() = uri;
        let (stream, told) = Patient::new(made.stream, Speaks::Http2(Frames::default()), course.clone());
        // What TLS has agreed on is spoken there.
        let greeted = (!made.about.is_negotiated_h2()).then(|| (told.clone(), turn));
        (over_http2(stream, request, greeted).await, told)
    } else {
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        headers.entry(header::HOST).or_insert(host.expect("hosts are looked at before"));
        *request.uri_mut() = match (made.about.is_proxied(), uri.path_and_query()) {
            (false, Some(path)) => path.clone().into(),
            _ => uri,
        };
        let (stream, told) = Patient::new(made.stream, Speaks::Http1, course.clone());
        (over_http1(stream, request).await.map_err(Unanswered::Broken), told)
    };
    let mut answer = answer.map_err(|error| match told.borrow().tls.clone() {
        Some(tls) => Unanswered::Insecure(tls),
        None => error,
    })?;
    made.about.get_extras(answer.extensions_mut());
    let was_written = told.borrow().is_written;
    course.is_early.store(!was_written, Ordering::Relaxed);
    let length = (answer.version() == Version::HTTP_2).then_some(length);
    answer.extensions_mut().insert(Sending { told, course, was_written, length });
    Ok(Response::from(answer.map(reqwest::Body::wrap)))
}

async fn over_http1(stream: Patient, request: Request<Handed>) -> hyper::Result<http::Response<Incoming>> {
    let (mut sender, connection) = http1::Builder::new().max_headers(MOST_HEADERS).handshake(stream).await?;
    let connection = tokio::spawn(connection.with_upgrades());
    if let Err(error) = sender.ready().await {
        return Err(why(connection, error).await);
    }
    HAS_BEGUN.store(true, Ordering::Relaxed);
    sender.send_request(request).await
}

/// Sends nothing of a request before the server has `greeted`.
async fn over_http2(
    stream: Patient,
    request: Request<Handed>,
    greeted: Option<(watch::Receiver<Fate>, Turn)>,
) -> Result<http::Response<Incoming>, Unanswered> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let builder = builder.max_header_list_size(MOST_HEADER_BYTES).max_send_buf_size(MOST_SENT);
    let (mut sender, connection) = builder.handshake(stream).await.map_err(Unanswered::Unsent)?;
    let connection = tokio::spawn(connection);
    if let Some((mut greeted, turn)) = greeted {
        turn.waits();
        // Where the connection ends before that, whoever sends is told.
        let _ = greeted.wait_for(|fate| fate.is_greeted).await;
        if !turn.comes() {
            // Whoever has given it up ends this, too.
            std::future::pending::<()>().await;
        }
    }
    let unsent = match sender.ready().await {
        Err(error) => error,
        Ok(()) => {
            HAS_BEGUN.store(true, Ordering::Relaxed);
            match sender.try_send_request(request).await {
                Ok(answer) => return Ok(answer),
                // It comes back if nobody has taken it.
                Err(mut error) => match error.take_message() {
                    None => return Err(Unanswered::Broken(error.into_error())),
                    Some(_) => error.into_error(),
                },
            }
        }
    };
    drop(sender);
    Err(Unanswered::Unsent(why(connection, unsent).await))
}

/// Why nothing can be sent on a connection: it knows.
async fn why(connection: JoinHandle<hyper::Result<()>>, error: hyper::Error) -> hyper::Error {
    connection.await.ok().and_then(Result::err).unwrap_or(error)
}
