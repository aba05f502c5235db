use super::*;
use std::{sync::Mutex, task::Wake};

/// What a server has left: a piece of an answer. Nothing is taken from whoever writes.
struct Gone(&'static [u8]);

impl Read for Gone {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let (piece, left) = self.0.split_at(self.0.len().min(into.remaining()).min(5));
        into.put_slice(piece);
        self.0 = left;
        Poll::Ready(Ok(()))
    }
}

impl Write for Gone {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(if bytes == b"more" { Err(ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(ErrorKind::NotConnected.into()))
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn read(stream: &mut Patient, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, ErrorKind>> {
    let mut space = [0; 16];
    let mut piece = ReadBuf::new(&mut space);
    let read = Pin::new(stream).poll_read(context, piece.unfilled());
    read.map(|read| read.map(|()| piece.filled().to_vec()).map_err(|error| error.kind()))
}

fn write(stream: &mut Patient, context: &mut Context<'_>, bytes: &[u8]) -> Option<usize> {
    match Pin::new(stream).poll_write(context, bytes) {
        Poll::Ready(written) => Some(written.unwrap()),
        Poll::Pending => None,
    }
}

#[test]
fn what_was_left_is_read_and_does_not_end_well() {
    let waker = Arc::new(Woken::default()).into();
    let mut context = Context::from_waker(&waker);
    for (speaks, written) in [(Speaks::Http1, None), (Speaks::Http2(Frames::default()), Some(4))] {
        let (mut stream, told) = Patient::new(Box::new(Gone(b"503 later")), speaks, Arc::default());
        assert_eq!(write(&mut stream, &mut context, b"head"), Some(4));
        for _ in 0..2 {
            assert_eq!(write(&mut stream, &mut context, b"more"), written);
        }
        assert_eq!(Pin::new(&mut stream).poll_flush(&mut context).is_ready(), written.is_some());
        assert_eq!(read(&mut stream, &mut context), Poll::Ready(Ok(b"503 l".to_vec())));
        assert_eq!(read(&mut stream, &mut context), Poll::Ready(Ok(b"ater".to_vec())));
        for _ in 0..2 {
            assert_eq!(read(&mut stream, &mut context), Poll::Ready(Err(ErrorKind::BrokenPipe)));
        }
        assert!(matches!(Pin::new(&mut stream).poll_shutdown(&mut context), Poll::Ready(Ok(()))));
        assert!(told.borrow().is_broken && !told.borrow().is_written && told.has_changed().is_ok());
        drop(stream);
        assert!(told.has_changed().is_err());
    }
}

#[test]
fn what_comes_before_a_request_waits_for_it() {
    let woken = Arc::new(Woken::default());
    let waker = woken.clone().into();
    let mut context = Context::from_waker(&waker);
    let (mut stream, told) = Patient::new(Box::new(Gone(b"503")), Speaks::Http1, Arc::default());
    assert!(Pin::new(&mut stream).poll_flush(&mut context).is_ready());
    assert_eq!(read(&mut stream, &mut context), Poll::Pending);
    assert!(!woken.0.load(Ordering::Relaxed));
    write(&mut stream, &mut context, b"head");
    assert!(woken.0.load(Ordering::Relaxed));
    assert_eq!(read(&mut stream, &mut context), Poll::Ready(Ok(b"503".to_vec())));
    assert_eq!(read(&mut stream, &mut context), Poll::Ready(Ok(Vec::new())), "nobody has hung up too early");
    assert!(!told.borrow().is_broken);
    let (mut stream, _) = Patient::new(Box::new(Gone(b"SETTINGS")), Speaks::Http2(Frames::default()), Arc::default());
    assert!(read(&mut stream, &mut context).is_ready(), "a server of HTTP/2 may begin");
}
/// Takes nothing until it may.
struct Shut(Arc<Mutex<(bool, Vec<u8>)>>);

impl Read for Shut {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl Write for Shut {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut shut = self.0.lock().unwrap();
        if !shut.0 {
            return Poll::Pending;
        }
        let count = bytes.len().min(1000);
        shut.1.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn who_reads_nothing_holds_up_no_frame_of_http2() {
    let woken = Arc::new(Woken::default());
    let waker = woken.clone().into();
    let mut context = Context::from_waker(&waker);
    let (taken, course) = (Arc::new(Mutex::new((false, Vec::new()))), Arc::new(Course::default()));
    let shut = || Box::new(Shut(taken.clone()));
    let (mut stream, _) = Patient::new(shut(), Speaks::Http1, course.clone());
    assert_eq!(write(&mut stream, &mut context, b"head"), None);
    assert!(!course.gate.is_shut(&context));
    let (mut stream, _) = Patient::new(shut(), Speaks::Http2(Frames::default()), course.clone());
    let frames: Vec<u8> = (0..100_000).map(|nth: u32| nth as u8).collect();
    for frame in frames.chunks(16_384) {
        assert_eq!(write(&mut stream, &mut context, frame), Some(frame.len()));
        assert!(Pin::new(&mut stream).poll_flush(&mut context).is_pending());
    }
    assert!(course.gate.is_shut(&context), "no more is made of the body");
    taken.lock().unwrap().0 = true;
    assert!(Pin::new(&mut stream).poll_flush(&mut context).is_ready());
    assert_eq!(taken.lock().unwrap().1, frames);
    assert!(woken.0.load(Ordering::Relaxed) && !course.gate.is_shut(&context));
}
