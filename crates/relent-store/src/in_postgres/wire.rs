//! The way to the server: with TLS or without, and with an eye on how much comes back.
//!
//! The client keeps all rows of an answer, and what the server says of itself, and makes room for a message as soon as it is
//! told how long it will be. So lengths and numbers are looked at before.

use crate::{
    Error, ErrorKind, MAX_VALUE,
    tls::{Checked, Tls},
};
use std::{
    collections::HashMap,
    error, io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Config, Socket,
    config::{Host, SslMode, SslNegotiation, TargetSessionAttrs},
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
    types::{Kind, Type},
};

/// How long one message may be: a value, and what is said about it.
const MAX_MESSAGE: u64 = MAX_VALUE as u64 + (1 << 20);

/// How many bytes may come after something was asked, with what the client keeps of each row and each of its columns besides, and how many
/// messages.
const MAX_ANSWER: u64 = 64 << 20;
const MAX_MESSAGES: u64 = 1_000_000;
const OF_A_ROW: u64 = 128;
const OF_A_COLUMN: u64 = 24;

/// How many of these may be of the kinds that say something of the server, and are no answer.
const MAX_ASIDES: u64 = 1_000;

/// How many bytes may say of which types the columns of an answer are, or the parameters of a question: those of ours are few.
const MAX_TYPES: u64 = 64 << 10;

/// How many bytes a server may say of itself as long as a connection lasts, the last of each name: they are kept for as long.
const MAX_OF_ITSELF: usize = 256 << 10;

/// What is asked of TLS, as libpq has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ssl {
    /// What the URL says; of what it says, `None` is plain text.
    mode: Option<Option<Checked>>,
    roots: Roots,
}

/// Whose certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Roots {
    #[default]
    Unsaid,
    System,
    File(PathBuf),
}

impl Ssl {
    /// `sslmode=..`; whether it is known. `allow` and `prefer` are not, because they let whoever is in between choose.
    pub(super) fn mode(&mut self, mode: &str) -> bool {
        self.mode = Some(match mode {
            "disable" => None,
            "require" => Some(Checked::Nothing),
            "verify-ca" => Some(Checked::Authority),
            "verify-full" => Some(Checked::Name),
            _ => return false,
        });
        true
    }

    /// `sslrootcert=..`
    pub(super) fn roots(&mut self, path: PathBuf) {
        self.roots = if path.as_os_str() == "system" { Roots::System } else { Roots::File(path) };
    }

    /// A file of roots makes `require` look at the authority, too. Anybody can have a certificate from those that the system trusts, so
    /// who asks for them asks for the name.
    fn effective(&self) -> Result<Option<Checked>, Error> {
        match (self.mode, &self.roots) {
            (Some(Some(Checked::Nothing)), Roots::File(_)) => Ok(Some(Checked::Authority)),
            (None | Some(Some(Checked::Name)), Roots::System) => Ok(Some(Checked::Name)),
            (Some(_), Roots::System) => Err(Error::new(
                ErrorKind::Invalid,
                "`sslrootcert=system` asks for more than the URL's `sslmode` looks at",
            )
            .hint("`sslmode=verify-full`, which it means by itself")),
            (mode, _) => Ok(mode.flatten()),
        }
    }

    /// The file of certificates in the place of the system's.
    fn file(&self) -> Option<&Path> {
        match &self.roots {
            Roots::File(file) => Some(file),
            Roots::Unsaid | Roots::System => None,
        }
    }
}

/// What every connection is made with.
#[derive(Clone)]
pub(super) struct Wire {
    tls: Option<Tls>,
    pub(super) checked: Option<Checked>,
    /// Whether a server sent what is no answer, or too much of it.
    is_nonsense: Arc<AtomicBool>,
    /// Those of this machine that are asked, if any is.
    pub(super) sockets: Arc<[PathBuf]>,
    /// Whether it does not matter who listens there, nor whose the tables and functions are. A role that is named as the store's owner is
    /// believed about the latter alone: it is none of this machine's users.
    pub(super) believes_all: bool,
}

impl Wire {
    /// Also makes the client put the stream into our hands. On a socket of the same machine no TLS is spoken.
    pub(super) fn new(config: &mut Config, ssl: &Ssl, believes_all: bool) -> Result<Wire, Error> {
        let checked = ssl.effective()?;
        let is_direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        let protocol = is_direct.then_some("postgresql");
        let tls = checked.map(|checked| Tls::new(checked, ssl.file(), protocol)).transpose()?;
        if config.get_hosts().is_empty() {
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        let is_remote = |host: &Host| matches!(host, Host::Tcp(_));
        let hosts = config.get_hosts();
        if hosts.iter().any(is_remote) && !hosts.iter().all(is_remote) {
            return Err(Error::new(ErrorKind::Unsupported, "the store's URL names a socket and a host")
                .hint("name one of both: what is asked of TLS holds for hosts alone"));
        }
        let sockets: Arc<[PathBuf]> = sockets(config).into();
        config.ssl_mode(SslMode::Require);
        if sockets.is_empty() {
            if tls.is_none() {
                // To the client, what we do with the stream is TLS that needs no word before.
                config.ssl_negotiation(SslNegotiation::Direct);
            }
        } else {
            if tls.is_some() {
                let what = "the store's URL asks for TLS on a socket of this machine, which speaks none";
                return Err(Error::new(ErrorKind::Invalid, what).hint("leave `sslmode` out, or name a host"));
            }
            if sockets.len() > 1 && config.get_target_session_attrs() != TargetSessionAttrs::Any {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "the store's URL lets several sockets choose by what they take",
                )
                .hint("name one, or leave `target_session_attrs` out"));
            }
            config.ssl_negotiation(SslNegotiation::Direct);
        }
        Ok(Wire { tls, checked, is_nonsense: Arc::default(), sockets, believes_all })
    }

    /// The same, for a connection whose nonsense is its own affair.
    pub(super) fn apart(&self) -> Wire {
        Wire { is_nonsense: Arc::default(), ..self.clone() }
    }

    /// The way to one server.
    pub(super) fn to(&self, host: &str) -> To {
        To { wire: self.clone(), host: host.into() }
    }

    /// Whether a server sent nonsense since this was asked last.
    pub(super) fn took_nonsense(&self) -> bool {
        self.is_nonsense.swap(false, Ordering::Relaxed)
    }
}

/// The sockets that a configuration names.
fn sockets(config: &Config) -> Vec<PathBuf> {
    let ports = config.get_ports();
    let port = |nth: usize| ports.get(nth).or(ports.first()).copied().unwrap_or(5432);
    let path = |(nth, host): (usize, &Host)| match host {
        Host::Unix(folder) => Some(folder.join(format!(".s.PGSQL.{}", port(nth)))),
        Host::Tcp(_) => None,
    };
    config.get_hosts().iter().enumerate().filter_map(path).collect()
}

impl MakeTlsConnect<Socket> for Wire {
    type Stream = Watched;
    type TlsConnect = To;
    type Error = Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<To, Error> {
        Ok(self.to(host))
    }
}

/// One server.
pub(super) struct To {
    wire: Wire,
    host: String,
}

impl To {
    pub(super) fn believes_all(&self) -> bool {
        self.wire.believes_all
    }

    pub(super) fn watched(self, stream: Box<dyn Stream>) -> Watched {
        Watched { stream, messages: Messages::default(), is_nonsense: self.wire.is_nonsense }
    }
}

impl TlsConnect<Socket> for To {
    type Stream = Watched;
    type Error = Box<dyn error::Error + Sync + Send>;
    type Future = Pin<Box<dyn Future<Output = Result<Watched, Self::Error>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let stream: Box<dyn Stream> = match &self.wire.tls {
                None => Box::new(socket),
                Some(tls) => Box::new(tls.connect(&self.host, socket).await?),
            };
            Ok(self.watched(stream))
        })
    }
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

/// A stream that fails where the server sends what is no answer, or too much for one.
pub(super) struct Watched {
    stream: Box<dyn Stream>,
    messages: Messages,
    is_nonsense: Arc<AtomicBool>,
}

impl TlsStream for Watched {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        if this.messages.read(&buf.filled()[before..]) {
            return Poll::Ready(Ok(()));
        }
        this.is_nonsense.store(true, Ordering::Relaxed);
        Poll::Ready(Err(io::ErrorKind::InvalidData.into()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let sent = ready!(Pin::new(&mut this.stream).poll_write(cx, buf))?;
        this.messages.asked();
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The outline of what comes: messages of a kind (one byte) and a length (four, which count themselves).
#[derive(Debug, Default)]
struct Messages {
    head: Vec<u8>,
    /// Of the present message's body.
    left: u64,
    /// Its kind, and its body where that says of which types something is or something of the server, or of a row how many columns it has.
    kind: u8,
    kept: Vec<u8>,
    /// How long what the server says of itself is, by its name, and all of it together.
    of_itself: HashMap<Vec<u8>, usize>,
    all_of_itself: usize,
    /// Since something was asked.
    bytes: u64,
    number: u64,
    asides: u64,
}

impl Messages {
    fn asked(&mut self) {
        (self.bytes, self.number, self.asides) = (0, 0, 0);
    }

    /// Whether what came may be.
    fn read(&mut self, mut bytes: &[u8]) -> bool {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.left > 0 {
                let used = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                let kept = match self.kind {
                    b'D' => used.min(2 - self.kept.len()),
                    kind if is_of_types(kind) || kind == b'S' => used,
                    _ => 0,
                };
                self.kept.extend_from_slice(&bytes[..kept]);
                if let (b'D', 1.., &[a, b]) = (self.kind, kept, &self.kept[..]) {
                    self.bytes += OF_A_ROW + OF_A_COLUMN * u64::from(u16::from_be_bytes([a, b]));
                }
                (self.left, bytes) = (self.left - used as u64, &bytes[used..]);
                if self.left == 0 {
                    if is_of_types(self.kind) && !are_known(self.kind, &self.kept) || !self.may_be_kept() {
                        return false;
                    }
                    self.kept.clear();
                }
                continue;
            }
            let used = bytes.len().min(5 - self.head.len());
            self.head.extend_from_slice(&bytes[..used]);
            bytes = &bytes[used..];
            let &[kind, a, b, c, d] = &self.head[..] else { continue };
            let length = u64::from(u32::from_be_bytes([a, b, c, d]));
            if !kind.is_ascii_graphic() || !(4..=MAX_MESSAGE).contains(&length) {
                return false;
            }
            if is_of_types(kind) && length > MAX_TYPES || kind == b'S' && length > MAX_OF_ITSELF as u64 {
                return false;
            }
            (self.kind, self.left) = (kind, length - 4);
            self.number += 1;
            self.asides += u64::from(matches!(kind, b'S' | b'N'));
            self.head.clear();
        }
        self.bytes <= MAX_ANSWER && self.number <= MAX_MESSAGES && self.asides <= MAX_ASIDES
    }

    /// Whether there is room for what the server says of itself, if it does: the client keeps the last of each name.
    fn may_be_kept(&mut self) -> bool {
        if self.kind != b'S' {
            return true;
        }
        let name = self.kept.split(|byte| *byte == 0).next().unwrap_or_default();
        let length = self.kept.len() + OF_A_ROW as usize;
        let before = self.of_itself.insert(name.to_vec(), length).unwrap_or(0);
        self.all_of_itself = self.all_of_itself + length - before;
        self.all_of_itself <= MAX_OF_ITSELF
    }
}

/// Whether a message of this kind says of which types the columns of an answer are, or the parameters of a question.
fn is_of_types(kind: u8) -> bool {
    matches!(kind, b'T' | b't')
}

/// Whether all types in such a message are the server's own, as those of our tables are. Of another one the client would ask what it is made of,
/// and of what that is, as deep as somebody leads it. No answer of ours has an array: for one the client makes room for as many as it says it has.
fn are_known(kind: u8, body: &[u8]) -> bool {
    let known = |number: &[u8; 4]| Type::from_oid(u32::from_be_bytes(*number));
    let is_known = |number: &[u8; 4]| known(number).is_some();
    let Some((_, mut rest)) = body.split_first_chunk::<2>() else { return true };
    if kind == b't' {
        return rest.as_chunks().0.iter().all(is_known);
    }
    // A name up to its zero, a table and the number of a column there, a type, and what is said of that.
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let Some((field, behind)) = rest[end + 1..].split_first_chunk::<18>() else { break };
        let [_, _, _, _, _, _, a, b, c, d, ..] = *field;
        if known(&[a, b, c, d]).is_none_or(|known| matches!(known.kind(), Kind::Array(_))) {
            return false;
        }
        rest = behind;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn message(kind: u8, length: u32) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(length.to_be_bytes());
        bytes
    }

    #[test]
    fn messages_are_counted_whatever_they_are_cut_into() {
        let bytes = [message(b'Z', 5), b"I".to_vec(), message(b'1', 4), message(b'C', 10), b"123456".to_vec()].concat();
        for size in 1..bytes.len() {
            let mut messages = Messages::default();
            assert!(bytes.chunks(size).all(|piece| messages.read(piece)));
            assert_eq!((messages.number, messages.left, messages.bytes), (3, 0, bytes.len() as u64), "{size}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_judged_alike_whatever_it_is_cut_into(
            bytes in vec(prop_oneof![4 => 0_u8..6, 1 => any::<u8>()], 0..200),
            size in 1_usize..20,
        ) {
            let (mut whole, mut sliced) = (Messages::default(), Messages::default());
            let may = whole.read(&bytes);
            prop_assert_eq!(bytes.chunks(size).all(|piece| sliced.read(piece)), may);
            if may {
                prop_assert_eq!((sliced.number, sliced.left, sliced.bytes), (whole.number, whole.left, whole.bytes));
            }
        }
    }

    #[test]
    fn what_is_too_much_is_seen_before_it_comes() {
        for (kind, length, may) in [
            (b'D', 4, true),
            (b'D', MAX_MESSAGE as u32, true),
            (b'D', MAX_MESSAGE as u32 + 1, false),
            (b'D', u32::MAX, false),
            (b'D', 3, false),
            (0, 100, false),
        ] {
            assert_eq!(Messages::default().read(&message(kind, length)), may, "{kind} {length}");
        }
    }

    /// Of a type that is not the server's own its parts are asked, one in another.
    #[test]
    fn types_of_somebody_are_none_of_an_answer() {
        let column = |name: &str, number: u32| {
            let of_a_table = [0, 0, 0, 7, 0, 1];
            [name.as_bytes(), &[0], &of_a_table, &number.to_be_bytes(), &[0; 8]].concat()
        };
        let columns = |all: &[Vec<u8>]| {
            let body = [&(all.len() as u16).to_be_bytes()[..], &all.concat()].concat();
            [message(b'T', body.len() as u32 + 4), body].concat()
        };
        let parameters = |all: &[u32]| {
            let body: Vec<u8> = all.iter().flat_map(|number| number.to_be_bytes()).collect();
            [message(b't', body.len() as u32 + 6), vec![0, all.len() as u8], body].concat()
        };
        // `bytea`, `int8` and `text`; 16,384 is the first that somebody makes.
        for (bytes, may) in [
            (columns(&[]), true),
            (columns(&[column("a", 17), column("", 20), column("bc", 25)]), true),
            (columns(&[column("a", 17), column("bc", 16_384)]), false),
            (columns(&[column("a", u32::MAX), column("bc", 25)]), false),
            // Arrays: `name[]` and `oidvector`; a parameter may be one.
            (columns(&[column("a", 25), column("bc", 1003)]), false),
            (columns(&[column("a", 30)]), false),
            (parameters(&[17, 1003]), true),
            (parameters(&[17, 20]), true),
            (parameters(&[17, 70_000]), false),
            (message(b'T', 4), true),
            (message(b'T', MAX_TYPES as u32 + 1), false),
            ([message(b'T', 9), b"12345".to_vec(), message(b'Z', 4)].concat(), true),
        ] {
            for size in 1..=bytes.len() {
                let mut messages = Messages::default();
                assert_eq!(bytes.chunks(size).all(|piece| messages.read(piece)), may, "{bytes:?} {size}");
            }
        }
    }

    /// A column that is none takes four bytes on its way, and six times as much here.
    #[test]
    fn rows_count_as_what_is_kept_of_them() {
        let row = |columns: u16| {
            let body = [&columns.to_be_bytes()[..], &[0xff; 4].repeat(columns.into())].concat();
            [message(b'D', body.len() as u32 + 4), body].concat()
        };
        for (columns, most) in [(0, 1 << 19), (3, 1 << 19), (1000, 2500)] {
            let (row, mut messages) = (row(columns), Messages::default());
            let count = (0..1_000_000).take_while(|_| row.chunks(6).all(|piece| messages.read(piece))).count();
            assert!((most / 2..most).contains(&count), "{columns}: {count}");
        }
    }

    #[test]
    fn an_answer_without_end_ends_and_a_question_begins_anew() {
        let mut messages = Messages::default();
        let piece = message(b'1', 4).repeat(10_000);
        assert_eq!((0..1000).take_while(|_| messages.read(&piece)).count(), 100);
        let mut messages = Messages::default();
        for _ in 0..300 {
            assert!(messages.read(&piece));
            messages.asked();
        }
    }

    /// It is kept for as long as the connection lasts, whatever is asked meanwhile.
    #[test]
    fn what_a_server_says_of_itself_has_an_end() {
        let says = |name: &str, value: &str| {
            let body = [name.as_bytes(), &[0], value.as_bytes(), &[0]].concat();
            [message(b'S', body.len() as u32 + 4), body].concat()
        };
        let mut messages = Messages::default();
        for nth in 0..100_000 {
            assert!(says("TimeZone", &format!("zone {nth}")).chunks(7).all(|piece| messages.read(piece)), "{nth}");
            messages.asked();
        }
        let new = |nth: &usize| {
            messages.asked();
            messages.read(&says(&format!("name{nth}"), "value"))
        };
        let count = (0..10_000).take_while(new).count();
        assert!((1000..3000).contains(&count), "{count}");
        let mut messages = Messages::default();
        assert!(messages.read(&says("a", &"x".repeat(200_000))) && messages.read(&says("a", &"x".repeat(200_000))));
        assert!(!messages.read(&says("b", &"x".repeat(200_000))));
        assert!(!Messages::default().read(&message(b'S', MAX_OF_ITSELF as u32 + 1)));
        // One without a value or a name is one.
        assert!(Messages::default().read(&[message(b'S', 4), message(b'S', 5), b"x".to_vec()].concat()));
    }

    #[test]
    fn modes_are_those_of_libpq_that_leave_no_choice_to_who_is_in_between() {
        let is = |mode: &str, roots: &str| {
            let mut ssl = Ssl::default();
            assert!(mode.is_empty() || ssl.mode(mode));
            if !roots.is_empty() {
                ssl.roots(roots.into());
            }
            assert_eq!(ssl.file().is_some(), roots.ends_with(".pem"));
            ssl.effective().map_err(|err| err.kind())
        };
        for (mode, plain, with_file, with_system) in [
            ("", None, None, Ok(Some(Checked::Name))),
            ("disable", None, None, Err(ErrorKind::Invalid)),
            ("require", Some(Checked::Nothing), Some(Checked::Authority), Err(ErrorKind::Invalid)),
            ("verify-ca", Some(Checked::Authority), Some(Checked::Authority), Err(ErrorKind::Invalid)),
            ("verify-full", Some(Checked::Name), Some(Checked::Name), Ok(Some(Checked::Name))),
        ] {
            assert_eq!(is(mode, ""), Ok(plain), "{mode}");
            assert_eq!(is(mode, "roots.pem"), Ok(with_file), "{mode}");
            assert_eq!(is(mode, "system"), with_system, "{mode}");
        }
        let mut ssl = Ssl::default();
        assert!(!ssl.mode("prefer") && !ssl.mode("allow") && !ssl.mode("on"));
    }
}
