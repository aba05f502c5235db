//! The error of a call that was given up: why, after what, and the last error itself.

use crate::{Reason, duration::Human, story::Story};
use core::{fmt, ops::Deref};

/// Why a call was given up, and what it went through.
///
/// Shown as `out of attempts after 3 attempts in 2.1s: connection refused`. What is read by every caller is in it; the
/// rest (`attempts`, `elapsed`, `timed_out`, `pushback`, `timeline()`) is in its [`Story`], and read as if it were a
/// field: `err.attempts`.
///
/// ```
/// use relent::{Policy, Reason};
/// use std::{io, time::Duration};
///
/// const TWICE: Policy = Policy::constant(Duration::from_millis(1)).max_attempts(2);
/// let err = TWICE.retry_blocking(|_| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut))).unwrap_err();
///
/// assert_eq!((err.reason, err.attempts), (Reason::Attempts, 2));
/// assert!(err.to_string().starts_with("out of attempts after 2 attempts"));
/// assert_eq!(err.into_last().unwrap().kind(), io::ErrorKind::TimedOut);
/// ```
///
/// # Its `source`
///
/// `Error<E>` implements [`core::error::Error`] for every `E` that can be shown, also for `String` and `anyhow::Error`,
/// which are no errors themselves. So it cannot know that `E` is one, shows it as part of itself, and has no `source`.
/// [`chained`](Error::chained) is for where the chain of sources must go on with the last error: then it is shown as
/// the next link, and can be downcast to.
#[non_exhaustive]
pub struct Error<E> {
    /// Why the call was given up.
    pub reason: Reason,
    /// The operation's last error. `None` if no attempt returned one: each was dropped at its timeout, the call was
    /// cancelled before the first ended, or no attempt was made.
    pub last: Option<E>,
    story: Told,
}

/// A story that says no more than that one attempt was made is not allocated.
#[cfg(feature = "std")]
type Told = Option<Box<Story>>;
#[cfg(not(feature = "std"))]
type Told = Option<Story>;

impl<E> Error<E> {
    /// Given up after one attempt, of which nothing else is known.
    #[inline]
    pub(crate) const fn at_once(reason: Reason, last: E) -> Error<E> {
        Error { reason, last: Some(last), story: None }
    }

    pub(crate) fn new(reason: Reason, last: Option<E>, story: Story) -> Error<E> {
        #[cfg(feature = "std")]
        let story = Box::new(story);
        Error { reason, last, story: Some(story) }
    }

    /// The same error about another last one.
    #[cfg(feature = "tower")]
    pub(crate) fn map_last<E2>(self, map: impl FnOnce(E) -> Option<E2>) -> Error<E2> {
        Error { reason: self.reason, last: self.last.and_then(map), story: self.story }
    }

    /// What there is to call is not ready for it, and will not be.
    #[cfg(feature = "tower")]
    pub(crate) fn before_the_first(last: E) -> Error<E> {
        let story = Story { attempts: 0, ..Story::ONE_ATTEMPT };
        Error::new(Reason::Permanent, Some(last), story)
    }

    /// The operation's last error, taken out.
    ///
    /// ```
    /// # let policy = relent::Policy::immediate().max_attempts(1);
    /// let err = policy.retry_blocking(|_| Err::<(), _>("refused")).unwrap_err();
    /// assert_eq!(err.into_last(), Some("refused"));
    /// ```
    #[must_use]
    pub fn into_last(self) -> Option<E> {
        self.last
    }

    /// The same error with the last error as its `source`, for `anyhow` and other reporters.
    ///
    /// ```
    /// use std::error::Error as _;
    /// # let policy = relent::Policy::immediate().max_attempts(1);
    /// let err = policy.retry_blocking(|_| "x".parse::<u8>()).map_err(relent::Error::chained).unwrap_err();
    /// assert_eq!(err.source().unwrap().to_string(), "invalid digit found in string");
    /// ```
    pub fn chained(self) -> ChainedError<E>
    where
        E: core::error::Error + 'static,
    {
        ChainedError(self)
    }

    fn say(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_asked(f) {
            return f.write_str(GAVE_UP);
        }
        write!(f, "{}", self.reason)?;
        if let (Reason::PushbackTooLong, Some(pushback)) = (self.reason, self.pushback) {
            write!(f, " ({})", Human(pushback))?;
        }
        self.say_attempts(f)?;
        if let Some(again) = self.again_in {
            write!(f, ", again in {:.1}", Human(again))?;
        }
        match self.timed_out {
            Some(limit) => write!(f, ": timed out after {}", Human(limit)),
            None => Ok(()),
        }
    }
}

impl<E> Deref for Error<E> {
    type Target = Story;

    #[inline]
    fn deref(&self) -> &Story {
        static ONE: Story = Story::ONE_ATTEMPT;
        match &self.story {
            Some(story) => story,
            None => &ONE,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.say(f)?;
        match &self.last {
            Some(last) if self.timed_out.is_none() && !is_asked(f) => write!(f, ": {last}"),
            _ => Ok(()),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("reason", &self.reason)
            .field("last", &self.last)
            .field("story", &**self)
            .finish_non_exhaustive()
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for Error<E> {}

/// A call that may not start its attempt, or may not any more: what [`Retry::ready`](crate::Retry::ready) fails with. `?` makes
/// an [`Error`] of any type of it.
///
/// ```
/// use relent::{Breaker, Policy, Reason, Upstream};
///
/// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
/// bank.hold_open();
/// let refused = Policy::default().start().on(&bank).ready_blocking().unwrap_err();
/// assert_eq!((refused.0.reason, refused.0.attempts), (Reason::Open, 0));
/// let err: relent::Error<std::io::Error> = refused.into();
/// assert_eq!(err.to_string(), "breaker open before the first attempt");
/// ```
#[derive(Debug)]
pub struct NotReady(pub Error<core::convert::Infallible>);

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for NotReady {}

impl<E> From<NotReady> for Error<E> {
    fn from(not: NotReady) -> Error<E> {
        Error { reason: not.0.reason, last: None, story: not.0.story }
    }
}

/// An [`Error`] whose last error is its `source`: see [`Error::chained`]. Shown without the last error, which reporters
/// print as the next link of the chain.
///
/// ```
/// # let policy = relent::Policy::immediate().max_attempts(1);
/// let err = policy.retry_blocking(|_| "x".parse::<u8>()).unwrap_err().chained();
/// assert_eq!(err.to_string(), "out of attempts after 1 attempt");
/// assert_eq!(err.0.attempts, 1);
/// ```
#[derive(Debug)]
pub struct ChainedError<E>(pub Error<E>);

impl<E> fmt::Display for ChainedError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.say(f)
    }
}

impl<E: core::error::Error + 'static> core::error::Error for ChainedError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.0.last.as_ref().map(|last| last as _)
    }
}

/// Whether a policy gave up on this error, or on one that it was made of: walks the chain of sources.
///
/// Attempts multiply when an operation that retries is retried: three layers of four attempts make 64. relent does not
/// retry what is a [`relent::Error`](Error) by its type; where that is wrapped (`anyhow`, `Box<dyn Error>`, a variant of
/// an enum), say so in [`when`](crate::Retrier::when):
///
/// ```
/// use relent::{Policy, Reason, gave_up};
///
/// const TWICE: Policy = Policy::immediate().max_attempts(2);
/// # fn load() -> Result<u32, std::num::ParseIntError> { "x".parse() }
/// let inner = || -> anyhow::Result<u32> { Ok(TWICE.retry_blocking(|_| load())?) };
/// let err = TWICE.when(|err: &anyhow::Error| !gave_up(err.as_ref())).retry_blocking(|_| inner()).unwrap_err();
/// assert_eq!((err.reason, err.attempts), (Reason::Permanent, 1));
/// ```
///
/// An error whose `source` does not lead to the inner one hides it. What shows itself as the inner one does, as
/// `#[error(transparent)]` and `Box<dyn Error>` do, does not.
pub fn gave_up(error: &(dyn core::error::Error + 'static)) -> bool {
    core::iter::successors(Some(error), |error| error.source()).any(is_give_up)
}

/// An error of unknown type can only be asked to show itself. It is asked with options that nobody would ask for
/// otherwise, and which whoever shows it as his own passes on.
fn is_give_up(link: &(dyn core::error::Error + 'static)) -> bool {
    struct Ear {
        heard: bool,
    }
    impl fmt::Write for Ear {
        fn write_str(&mut self, said: &str) -> fmt::Result {
            self.heard |= said == GAVE_UP;
            Ok(())
        }
    }
    let mut ear = Ear { heard: false };
    // An error that cannot be shown is none of ours.
    fmt::write(&mut ear, format_args!("{link:\u{10FADE}^+1.0}")).is_ok() && ear.heard
}

/// What the error of a policy says when it is asked.
const GAVE_UP: &str = "relent: a policy gave up";

fn is_asked(f: &fmt::Formatter<'_>) -> bool {
    f.fill() == '\u{10FADE}' && f.sign_plus() && f.width() == Some(1) && f.precision() == Some(0)
}

/// Whether `E` is itself the error of a policy that gave up. Decided when it is compiled.
#[inline]
pub(crate) fn is_given_up<E>() -> bool {
    const ERROR: &[u8] = concat!(module_path!(), "::Error<").as_bytes();
    const CHAINED: &[u8] = concat!(module_path!(), "::ChainedError<").as_bytes();
    let name = core::any::type_name::<E>().as_bytes();
    name.starts_with(ERROR) || name.starts_with(CHAINED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = assert!(size_of::<Error<u32>>() <= 24 || !cfg!(feature = "std"));

    #[test]
    fn the_error_of_a_policy_is_known_by_its_type() {
        assert!(is_given_up::<Error<&str>>());
        assert!(is_given_up::<Error<Error<u8>>>());
        assert!(is_given_up::<ChainedError<fmt::Error>>());
        assert!(!is_given_up::<&str>());
        assert!(!is_given_up::<crate::Failure<Error<&str>>>());
    }
}
