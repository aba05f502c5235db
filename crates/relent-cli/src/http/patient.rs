//! A connection on which an answer is heard whenever it comes: before the request is there, while it is sent, and after the server has
//! stopped reading it. A server that is overloaded, or refuses a large body, answers and hangs up; what it said is in the system's buffer
//! then, and the client would never look, since nothing can be written any more, or since nothing was asked yet.

use super::{
    backlog::{Gate, Held},
    frames::Frames,
    greeting::Greeting,
    idle::Pulse,
    linger::{self, Stream},
    ping::{Asked, QUESTION},
};
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::{
    io::{self, ErrorKind, IoSlice},
    mem,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
};
use tokio::{runtime::Handle, sync::watch};

/// A connection that is read to its end, though nothing can be written to it any more.
pub(super) struct Patient {
    stream: Box<dyn Stream>,
    speaks: Speaks,
    course: Arc<Course>,
    /// Whether the request has begun.
    has_begun: bool,
    /// Who wants to read before that.
    reader: Option<Waker>,
    /// What is written of HTTP/2 and has no way out yet.
    held: Held,
    /// Behind the end of a long request of HTTP/2, whether all of it was read.
    asked: Option<Asked>,
    /// What has come of the server's greeting in HTTP/2, until that is there.
    greeting: Greeting,
    /// Why nothing can be written any more.
    broken: Option<io::Error>,
    /// The most that was read of HTTP/2 since others had their turn.
    read: usize,
    /// Who reads was told that the connection is broken.
    is_reset: bool,
    /// Tells what becomes of it, and by its end that of the connection.
    told: watch::Sender<Fate>,
}

/// What is spoken on it.
pub(super) enum Speaks {
    /// A request and its answer: what comes before the request is read when it is sent, and what is left of a request that nobody takes
    /// is not sent.
    Http1,
    /// Frames: what nobody takes is thrown away, since who cannot write does not read either. That all of a body is made does not mean that
    /// it is written: the server may have no room for it, or end the stream before.
    Http2(Frames),
}

/// What is known elsewhere of what is said on it.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Beats when something of the request is taken that is no answer to what the server says.
    pub(super) pulse: Pulse,
    /// The request's body is longer than what a server of HTTP/2 takes in one frame.
    pub(super) is_long: bool,
    /// All of the request's body is made.
    pub(super) is_made: AtomicBool,
    /// The answer began before all of the request was written.
    pub(super) is_early: AtomicBool,
    /// The answer is a failure.
    pub(super) is_refused: AtomicBool,
    /// Shut while some of the request is held.
    pub(super) gate: Gate,
}

/// What has become of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Fate {
    /// All of it was written.
    pub(super) is_written: bool,
    /// The server says that it has read all of it, or has closed the connection.
    pub(super) is_taken: bool,
    /// Nothing can be written any more.
    pub(super) is_broken: bool,
    /// The server has greeted in HTTP/2.
    pub(super) is_greeted: bool,
    /// What TLS has against it, which comes after the handshake where a certificate is asked for (RFC 8446, 4.6.2).
    pub(super) tls: Option<rustls::Error>,
}

/// What is read of HTTP/2 before what waits for it has its turn: whatever the frames are, they are kept until then, and ten bytes of a hint take
/// a hundred times as much.
const AT_ONCE: usize = 64 << 10;

impl Patient {
    /// With what becomes of it, until it ends.
    pub(super) fn new(
        stream: Box<dyn Stream>,
        speaks: Speaks,
        course: Arc<Course>,
    ) -> (Patient, watch::Receiver<Fate>) {
        let (told, hears) = watch::channel(Fate::default());
        let patient = Patient {
            stream,
            speaks,
            course,
            has_begun: false,
            reader: None,
            held: Held::default(),
            asked: None,
            greeting: Greeting::default(),
            broken: None,
            read: 0,
            is_reset: false,
            told,
        };
        (patient, hears)
    }

    /// Writes, or flushes, unless nobody reads it any more; as if it were `all`.
    fn write(
        &mut self,
        all: usize,
        write: impl FnOnce(Pin<&mut dyn Stream>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.broken.is_none() {
            match write(Pin::new(&mut *self.stream)) {
                Poll::Ready(Err(error)) if is_gone(&error) => {
                    self.broken = Some(error);
                    self.told.send_modify(|fate| fate.is_broken = true);
                }
                written => return written,
            }
        }
        match self.speaks {
            // Whoever reads sees how it ends.
            Speaks::Http1 => Poll::Pending,
            Speaks::Http2(_) => Poll::Ready(Ok(all)),
        }
    }

    /// Follows what is written of these, and lets read who wants to, if the request has begun.
    fn has_written(&mut self, pieces: &[IoSlice<'_>], written: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(count @ 1..)), None) = (written, &self.broken) {
            let mut left = *count;
            for piece in pieces {
                let written = left.min(piece.len());
                left -= written;
                let moves = match &mut self.speaks {
                    Speaks::Http1 => true,
                    Speaks::Http2(frames) => frames.follow(&piece[..written]),
                };
                if moves {
                    self.course.pulse.beat();
                }
            }
        }
        self.has_begun |= self.broken.is_some() || written.is_ready();
        if let Some(reader) = self.reader.take_if(|_| self.has_begun) {
            reader.wake();
        }
    }

    /// Writes what is held.
    fn let_go(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.held.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut held = mem::take(&mut self.held);
        let ended = loop {
            let first = held.first();
            if first.is_empty() {
                self.course.gate.open();
                break Poll::Ready(Ok(()));
            }
            let written = self.write(first.len(), |stream| stream.poll_write(context, first));
            self.has_written(&[IoSlice::new(first)], &written);
            match written {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => held.forget(count),
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.held = held;
        ended
    }

    /// What cannot be written yet is held in HTTP/2, as far as there is room.
    fn hold(&mut self, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let count = match self.speaks {
            Speaks::Http1 => 0,
            Speaks::Http2(_) => self.held.keep(pieces),
        };
        if count == 0 {
            return Poll::Pending;
        }
        self.course.gate.shut();
        Poll::Ready(Ok(count))
    }

    /// Asks behind the end of a long request, between two frames, whether all of it is read.
    fn ask(&mut self) {
        let has_ended = matches!(&self.speaks, Speaks::Http2(frames) if frames.has_ended());
        if has_ended && self.course.is_long && self.asked.is_none() {
            self.held.keep(&[IoSlice::new(&QUESTION)]);
            self.asked = Some(Asked::default());
        }
    }

    /// Reads what comes, as it comes.
    fn reads(&mut self, context: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.read >= AT_ONCE {
            self.read = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let most = into.remaining();
        let read = ready!(Pin::new(&mut *self.stream).poll_read(context, into));
        if matches!(self.speaks, Speaks::Http2(_)) {
            self.read += most;
        }
        Poll::Ready(read.inspect_err(|error| self.has_failed(error)))
    }

    /// Looks for the greeting, and the answer.
    fn hears(&mut self, bytes: &[u8]) {
        if !self.told.borrow().is_greeted && self.greeting.hears(bytes) {
            self.told.send_modify(|fate| fate.is_greeted = true);
        }
        if self.asked.as_mut().is_some_and(|asked| asked.hears(bytes)) {
            self.told.send_modify(|fate| fate.is_taken = true);
        }
    }

    /// Keeps that a connection broke, after which it seems to have ended, and what TLS says, of which whoever speaks HTTP/2 keeps no more than
    /// the words.
    fn has_failed(&mut self, error: &io::Error) {
        self.is_reset |= is_gone(error);
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            self.told.send_modify(|fate| fate.tls = Some(tls.clone()));
        }
    }

    /// What was written has left.
    fn has_flushed(&self) {
        let is_all = match &self.speaks {
            // It is flushed when nothing is kept back.
            Speaks::Http1 => self.has_begun && self.course.is_made.load(Ordering::Relaxed),
            Speaks::Http2(frames) => frames.has_ended(),
        };
        if is_all && self.broken.is_none() && !self.told.borrow().is_written {
            self.told.send_modify(|fate| fate.is_written = true);
        }
    }
}

impl Drop for Patient {
    /// Who is sent all of a request is given the time to take it, and heard to the end.
    fn drop(&mut self) {
        let (true, Ok(runtime)) = (self.told.borrow().is_written, Handle::try_current()) else { return };
        // An end says nothing then.
        let is_broken = self.broken.is_some() || self.is_reset;
        let stream = mem::replace(&mut self.stream, Box::new(TokioIo::new(tokio::io::empty())));
        let (told, mut asked) = (self.told.clone(), self.asked.take().unwrap_or_default());
        // GOAWAY was the last that was said in HTTP/2. Who reads on would take more for the end of the request as well.
        let knows = matches!(self.speaks, Speaks::Http2(_)) && self.course.is_early.load(Ordering::Relaxed);
        runtime.spawn(async move {
            let is_taken = || told.send_modify(|fate| fate.is_taken = true);
            let heard = |bytes: &[u8]| {
                if asked.hears(bytes) {
                    is_taken()
                }
            };
            if linger::until_closed(stream, knows, heard).await && !is_broken {
                is_taken();
            }
            drop(told);
        });
    }
}

/// Whether a server has hung up.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}

impl Read for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_begun && matches!(self.speaks, Speaks::Http1) {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let fate = self.told.borrow().clone();
        let is_greeted = fate.is_greeted || matches!(self.speaks, Speaks::Http1);
        if self.broken.is_none() && is_greeted && (self.asked.is_none() || fate.is_taken) {
            return self.reads(context, into);
        }
        // Who speaks something else is left after its first words, of which whoever reads them makes nothing either.
        if !is_greeted && self.broken.is_none() && self.greeting.is_none() {
            let text = "it does not begin as that does";
            return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, text)));
        }
        let mut space = [0; 4 << 10];
        let length = space.len().min(into.remaining());
        let mut piece = ReadBuf::new(&mut space[..length]);
        ready!(Pin::new(&mut *self.stream).poll_read(context, piece.unfilled()))
            .inspect_err(|error| self.has_failed(error))?;
        match piece.filled() {
            // That it is over does not mean that it is whole.
            [] => match &self.broken {
                Some(error) if length > 0 => Poll::Ready(Err(again(error))),
                _ => Poll::Ready(Ok(())),
            },
            filled => {
                self.hears(filled);
                into.put_slice(filled);
                Poll::Ready(Ok(()))
            }
        }
    }
}

/// The same error once more.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

impl Write for Patient {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.let_go(context)?.is_pending() {
            return self.hold(pieces);
        }
        let all = pieces.iter().map(|piece| piece.len()).sum();
        let written = self.write(all, |stream| match pieces {
            [one] => stream.poll_write(context, one),
            _ => stream.poll_write_vectored(context, pieces),
        });
        self.has_written(pieces, &written);
        if written.is_pending() { self.hold(pieces) } else { written }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.let_go(context))?;
        // Whoever speaks HTTP/2 flushes what ends with a frame.
        self.ask();
        ready!(self.let_go(context))?;
        ready!(self.write(0, |stream| stream.poll_flush(context).map_ok(|()| 0)))?;
        self.has_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Of what is written whole the end is said afterwards.
        match self.broken.is_some() || self.told.borrow().is_written {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut *self.stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests;
