//! What the errors of clients mean, and whether the request left: told from the errors of the operating system, of hyper
//! and of h2 that they are made of.

use super::Terms;
use crate::{Verdict, gave_up, wire::Fault};
use std::{any::Any, error::Error, fmt::Write as _, io};

/// What an error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    pub(crate) verdict: Verdict,
    /// Whether the request may have reached the server.
    pub(crate) left: bool,
}

impl From<Fault> for Fate {
    fn from(fault: Fault) -> Fate {
        Fate { verdict: fault.verdict(), left: fault.left() }
    }
}

/// Nothing that another attempt would change.
pub(crate) const PERMANENT: Fate = Fate { verdict: Verdict::Permanent, left: true };

/// What is known of a service's error, by its type or by what it was made of; `None` if nothing is.
pub(crate) fn fate(error: &dyn Any, terms: &Terms) -> Option<Fate> {
    of_chain(as_error(error, terms)?)
}

/// The type of a service's error is a parameter that need not be an error (`Box<dyn Error>` is none), so it is asked for by name.
fn as_error<'a>(error: &'a dyn Any, terms: &Terms) -> Option<&'a (dyn Error + 'static)> {
    fn of<T: Error + 'static>(error: &dyn Any) -> Option<&(dyn Error + 'static)> {
        error.downcast_ref::<T>().map(|error| error as _)
    }
    let known: &[super::terms::Source] = &[
        of::<io::Error>,
        #[cfg(feature = "hyper")]
        of::<hyper_util::client::legacy::Error>,
        #[cfg(feature = "hyper")]
        of::<hyper::Error>,
        #[cfg(feature = "hyper")]
        of::<h2::Error>,
        |error| Some(&**error.downcast_ref::<Box<dyn Error + Send + Sync>>()?),
        |error| Some(&**error.downcast_ref::<Box<dyn Error + Send>>()?),
        |error| Some(&**error.downcast_ref::<Box<dyn Error>>()?),
    ];
    known.iter().chain(&terms.get().sources).find_map(|source| source(error))
}

/// What an error was made of, for people: `: tcp connect error: Connection refused (os error 111)`. Nothing where the type is not
/// known.
pub(crate) fn chain(error: &dyn Any, terms: &Terms) -> String {
    let mut text = String::new();
    let mut link = as_error(error, terms).and_then(Error::source);
    while let Some(error) = link {
        // Writing to a string does not fail.
        _ = write!(text, ": {error}");
        link = error.source();
    }
    text
}

/// What an error means, from what it was made of.
pub(crate) fn of_chain(error: &(dyn Error + 'static)) -> Option<Fate> {
    if gave_up(error) {
        return Some(PERMANENT);
    }
    let io = find::<io::Error>(error);
    #[cfg(feature = "hyper")]
    if let Some(fate) = of_hyper(error, io) {
        return Some(fate);
    }
    io.map(of_io)
}

/// Links of the chain that are errors of the operating system and hold another error say what that is.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut link = Some(error);
    while let Some(error) = link {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        link = match inside {
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    None
}

/// Some kinds are made by connecting alone; the others may come in the middle.
fn of_io(error: &io::Error) -> Fate {
    let left = !matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound | io::ErrorKind::AddrNotAvailable
    );
    Fate { left, ..Fault::of_io(error).into() }
}

#[cfg(feature = "hyper")]
fn of_hyper(error: &(dyn Error + 'static), io: Option<&io::Error>) -> Option<Fate> {
    use hyper_util::client::legacy;

    if find::<legacy::Error>(error).is_some_and(legacy::Error::is_connect) {
        // TLS says what it has against a certificate, or against what is no TLS, as invalid data.
        let is_tls = io.is_some_and(|io| io.kind() == io::ErrorKind::InvalidData);
        return Some(if is_tls { Fault::Handshake } else { Fault::Connect }.into());
    }
    if let Some(h2) = find::<h2::Error>(error)
        && h2.is_remote()
    {
        let is_refused = h2.reason() == Some(h2::Reason::REFUSED_STREAM)
            || (h2.is_go_away() && h2.reason() == Some(h2::Reason::NO_ERROR));
        return Some(if is_refused { Fault::Refused } else { Fault::Reset }.into());
    }
    let hyper = find::<hyper::Error>(error)?;
    Some(if hyper.is_canceled() {
        // The connection was closed before the request was taken from its queue.
        Fault::Refused.into()
    } else if hyper.is_parse() {
        Fault::Protocol.into()
    } else if hyper.is_user() {
        PERMANENT
    } else if hyper.is_timeout() {
        Fault::Timeout.into()
    } else {
        io.map_or(Fault::Reset.into(), of_io)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Wrapped(io::Error);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("wrapped")
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn only_what_cannot_have_left_has_not() {
        for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound] {
            assert!(!of_io(&kind.into()).left, "{kind}");
        }
        for kind in [
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::BrokenPipe,
            io::ErrorKind::TimedOut,
            io::ErrorKind::HostUnreachable,
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::Other,
        ] {
            assert!(of_io(&kind.into()).left, "{kind}");
        }
    }

    #[test]
    fn errors_are_known_by_their_type_in_boxes_and_by_name() {
        let terms = Terms::default();
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let never_left = Some(Fate::from(Fault::Connect));
        assert_eq!(fate(&refused(), &terms), never_left);
        let boxed: Box<dyn Error + Send + Sync> = Box::new(Wrapped(refused()));
        assert_eq!(fate(&boxed, &terms), never_left);
        assert_eq!(fate(&Wrapped(refused()), &terms), None, "a type that nobody has heard of");
        let mut terms = terms;
        terms.change().sources.push(|error| Some(error.downcast_ref::<Wrapped>()?));
        assert_eq!(fate(&Wrapped(refused()), &terms), never_left);
        assert_eq!(fate(&"text", &terms), None);
    }

    #[test]
    fn what_a_policy_gave_up_on_is_permanent_in_every_wrapping() {
        let inner = crate::Policy::immediate().max_attempts(2).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
        let boxed: Box<dyn Error + Send + Sync> = Box::new(io::Error::other(inner));
        assert_eq!(fate(&boxed, &Terms::default()), Some(PERMANENT));
    }
}
