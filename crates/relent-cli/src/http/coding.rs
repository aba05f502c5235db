//! Encodings of bodies (RFC 9110, 8.4), undone as the bodies come: with `--compressed`, and no others.
//!
//! All header lines together are one list, in the order in which the encodings were applied, and all members of gzip are one
//! body (RFC 1952, 2.2), behind which there may be zeros. What is unpacked is handed on a piece at a time, so that memory stays small.

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use http_body::Frame;
use reqwest::Response;
use std::{
    error::Error,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf},
    task::coop,
};

/// What is asked for.
pub(super) const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, br");

/// What is asked for where bytes are counted.
pub(super) const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// The most that are undone. Each can make a small body a thousand times as large.
const MOST: usize = 5;

/// How much is unpacked at a time. Whoever runs beside is heard after a hundred of them or so, even if each holds as many empty
/// members as fit into it.
const CHUNK: usize = 4 << 10;

/// What a brotli stream begins with, but for one bit, whose window may be a gigabyte: all of which is kept, and unpacked at once. RFC 7932 (9.1)
/// ends at 16 MiB, and has no such beginning.
const LARGE_WINDOW: u8 = 0b001_0001;

/// What was done to a body, as its head says; nothing, if it came as it is.
pub(super) fn named(head: &HeaderMap) -> Vec<String> {
    let all = listed(head, header::CONTENT_ENCODING).into_iter();
    all.filter(|name| !name.eq_ignore_ascii_case("identity")).collect()
}

/// The elements of a header that is a list, of all its lines (RFC 9110, 5.6.1).
pub(super) fn listed(head: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lines = head.get_all(name).into_iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
    let split =
        |line: std::borrow::Cow<'_, str>| line.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
    lines.flat_map(split).filter(|part| !part.is_empty()).collect()
}

/// Whether a request asks for something to be done to the body: it names more than it as it is, and what it will not have (`gzip;q=0`).
pub(super) fn is_any_asked_for(head: &HeaderMap) -> bool {
    let is_none = |weight: &str| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0);
    listed(head, header::ACCEPT_ENCODING).iter().any(|element| {
        let mut parts = element.split(';').map(str::trim);
        let is_as_it_is = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("identity"));
        let mut weights =
            parts.filter_map(|part| part.split_once('=')).map(|(name, weight)| (name.trim(), weight.trim()));
        !is_as_it_is && !weights.any(|(name, weight)| name.eq_ignore_ascii_case("q") && is_none(weight))
    })
}

/// That a body comes without its encodings: what its head says of bytes is of those that were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undone;

/// The response with its body as it was before it was encoded; the same one if there is an encoding that is not known.
pub(super) fn undone(response: Response) -> Response {
    let codings: Option<Vec<Coding>> = named(response.headers()).iter().map(|name| Coding::of(name)).collect();
    let Some(codings) = codings.filter(|codings| (1..=MOST).contains(&codings.len())) else { return response };
    let (mut parts, body) = http::Response::<reqwest::Body>::from(response).into_parts();
    // They are those of what is gone now.
    parts.headers.remove(header::CONTENT_ENCODING);
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.extensions.insert(Undone);
    let coded: Reader = Box::pin(Frames {
        may_be_cut_off: is_until_it_hangs_up(&parts, &body),
        body,
        piece: Bytes::new(),
        is_over: false,
    });
    let plain = codings.iter().rev().enumerate().fold(coded, |reader, (nth, coding)| coding.undo(reader, nth > 0));
    Response::from(http::Response::from_parts(parts, reqwest::Body::wrap(Plain(plain))))
}

/// Whether a body ends where its server hangs up (RFC 9112, 6.3), which may be anywhere.
fn is_until_it_hangs_up(head: &http::response::Parts, body: &reqwest::Body) -> bool {
    let codings = listed(&head.headers, header::TRANSFER_ENCODING);
    let is_framed =
        head.version >= Version::HTTP_2 || codings.iter().any(|coding| !coding.eq_ignore_ascii_case("identity"));
    !is_framed && !http_body::Body::is_end_stream(body) && http_body::Body::size_hint(body).exact().is_none()
}

#[derive(Clone, Copy, Debug)]
enum Coding {
    Gzip,
    Brotli,
}

type Reader = Pin<Box<dyn AsyncBufRead + Send + Sync>>;

impl Coding {
    fn of(name: &str) -> Option<Coding> {
        match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(Coding::Gzip),
            "br" => Some(Coding::Brotli),
            _ => None,
        }
    }

    /// How much longer what was packed may be than what is known of what is in it: a window may be full before any of it is handed on.
    fn longer(self) -> u64 {
        match self {
            Coding::Gzip => 1 << 20,
            Coding::Brotli => 17 << 20,
        }
    }

    /// Undoes it, of what came so or another one `was_undone` of.
    fn undo(self, coded: Reader, was_undone: bool) -> Reader {
        let given = Arc::new(AtomicU64::new(0));
        let coded = match was_undone {
            true => Box::pin(Between { reader: coded, most: self.longer(), taken: 0, given: Arc::clone(&given) }),
            false => coded,
        };
        let decoder = match self {
            Coding::Gzip => Decoder::Gzip(GzipDecoder::new(coded)),
            Coding::Brotli => Decoder::Brotli(BrotliDecoder::new(coded)),
        };
        Box::pin(BufReader::with_capacity(CHUNK, Layer { decoder: Some(decoder), at: At::Begin, given }))
    }
}

enum Decoder {
    Gzip(GzipDecoder<Reader>),
    Brotli(BrotliDecoder<Reader>),
}

impl Decoder {
    fn coded(&mut self) -> Pin<&mut dyn AsyncBufRead> {
        match self {
            Decoder::Gzip(decoder) => decoder.get_mut().as_mut(),
            Decoder::Brotli(decoder) => decoder.get_mut().as_mut(),
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Decoder::Gzip(decoder) => Pin::new(decoder).poll_read(context, into),
            Decoder::Brotli(decoder) => Pin::new(decoder).poll_read(context, into),
        }
    }

    /// For the next member, if this is an encoding that has several.
    fn anew(self) -> Decoder {
        match self {
            Decoder::Gzip(decoder) => Decoder::Gzip(GzipDecoder::new(decoder.into_inner())),
            Decoder::Brotli(decoder) => Decoder::Brotli(decoder),
        }
    }
}

/// One encoding undone. It pauses now and then: what is unpacked may be nothing for as long as a server likes.
struct Layer {
    /// There but for the moment in which another takes its place.
    decoder: Option<Decoder>,
    at: At,
    /// How many bytes it has handed on.
    given: Arc<AtomicU64>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the first byte.
    Begin,
    /// Within what was packed, or a member of it.
    Within,
    /// Behind a member: another may follow.
    Between,
    /// In the zeros by which what was packed is filled up, as blocks of tapes and disks are. gzip takes no notice of them.
    Padding,
    End,
}

impl AsyncRead for Layer {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Layer { decoder: place, at, given } = self.get_mut();
        while let (Some(decoder), true) = (place.as_mut(), *at != At::End) {
            let pause = ready!(coop::poll_proceed(context));
            if *at == At::Within {
                let before = into.filled().len();
                ready!(decoder.poll_read(context, into))?;
                pause.made_progress();
                if into.filled().len() > before {
                    given.fetch_add((into.filled().len() - before) as u64, Ordering::Relaxed);
                    break;
                }
                *at = At::Between;
                continue;
            }
            let is_gzip = matches!(decoder, Decoder::Gzip(_));
            let next = ready!(decoder.coded().poll_fill_buf(context))?;
            pause.made_progress();
            let zeros = next.iter().take_while(|byte| **byte == 0).count();
            *at = match (*at, next) {
                // Nothing is nothing, whatever was done to it.
                (_, []) => At::End,
                (At::Begin, [first, ..]) if !is_gzip && first & 0x7f == LARGE_WINDOW => {
                    let text = "its window is larger than brotli's may be (RFC 7932)";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                (At::Begin, _) => At::Within,
                (At::Between, [0x1f, ..]) if is_gzip => {
                    *place = place.take().map(Decoder::anew);
                    At::Within
                }
                (At::Between | At::Padding, _) if is_gzip && zeros == next.len() => {
                    decoder.coded().consume(zeros);
                    At::Padding
                }
                _ => {
                    let error = io::Error::new(io::ErrorKind::InvalidData, "something follows its end");
                    return Poll::Ready(Err(error));
                }
            };
        }
        Poll::Ready(Ok(()))
    }
}

/// What is left when one encoding is undone, on its way to the next. Packed data is no longer than what is in it, but for a little: of what
/// holds hardly anything, as empty members do, no more is unpacked, since a small body may have any amount of that in it.
struct Between {
    reader: Reader,
    /// How much longer it may be.
    most: u64,
    taken: u64,
    given: Arc<AtomicU64>,
}

impl AsyncBufRead for Between {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Between { reader, most, taken, given } = self.get_mut();
        if *taken > most.saturating_add(given.load(Ordering::Relaxed).saturating_mul(2)) {
            let error = io::Error::new(io::ErrorKind::InvalidData, "what was encoded twice holds hardly anything");
            return Poll::Ready(Err(error));
        }
        reader.as_mut().poll_fill_buf(context)
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        let Between { reader, taken, .. } = self.get_mut();
        *taken += amount as u64;
        reader.as_mut().consume(amount);
    }
}

impl AsyncRead for Between {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        read_on(self, context, into)
    }
}

/// A body as it came.
struct Frames {
    body: reqwest::Body,
    piece: Bytes,
    is_over: bool,
    /// Whether nothing has come yet, and its end says nothing.
    may_be_cut_off: bool,
}

impl AsyncBufRead for Frames {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let frames = self.get_mut();
        let pause = ready!(coop::poll_proceed(context));
        while frames.piece.is_empty() && !frames.is_over {
            match ready!(http_body::Body::poll_frame(Pin::new(&mut frames.body), context)) {
                Some(Ok(frame)) => {
                    frames.piece = frame.into_data().unwrap_or_default();
                    frames.may_be_cut_off &= frames.piece.is_empty();
                }
                Some(Err(error)) => return Poll::Ready(Err(io::Error::new(kind(&error), error))),
                None if frames.may_be_cut_off => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                None => frames.is_over = true,
            }
        }
        pause.made_progress();
        Poll::Ready(Ok(&frames.piece[..frames.piece.len().min(CHUNK)]))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        let _ = self.get_mut().piece.split_to(amount);
    }
}

/// Of the error of input and output that is behind it.
fn kind(error: &reqwest::Error) -> io::ErrorKind {
    let mut behind: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = behind {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.kind();
        }
        behind = error.source();
    }
    io::ErrorKind::Other
}

impl AsyncRead for Frames {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        read_on(self, context, into)
    }
}

/// Reads from what has it in pieces.
fn read_on(
    mut from: Pin<&mut impl AsyncBufRead>,
    context: &mut Context<'_>,
    into: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    let piece = ready!(from.as_mut().poll_fill_buf(context))?;
    let amount = piece.len().min(into.remaining());
    into.put_slice(&piece[..amount]);
    from.consume(amount);
    Poll::Ready(Ok(()))
}

/// A body as it was.
struct Plain(Reader);

impl http_body::Body for Plain {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = match ready!(self.0.as_mut().poll_fill_buf(context)) {
            Ok([]) => return Poll::Ready(None),
            Ok(piece) => Bytes::copy_from_slice(piece),
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        self.0.as_mut().consume(piece.len());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}
