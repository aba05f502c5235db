//! What is wrong with a certificate, where rustls has no words for it.

use rustls::CertificateError;
use std::fmt;
use webpki::Error;

/// What is wrong with a certificate, besides what rustls itself tells.
///
/// ```
/// use relent_tls::Flaw;
///
/// assert_eq!(Flaw::of(&rustls::CertificateError::Expired), None);
/// assert_eq!(Flaw::Authoritys.to_string(), "it is that of an authority, and not one that is trusted");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It is an authority's. Its time was looked at before that.
    Authoritys,
    /// It is of version 1, which says nothing of what it is for: it can be trusted as itself alone.
    Version1,
    /// It comes with so many others that nobody finds a way through them to an authority.
    TooMany,
    /// One of those between it and an authority that is trusted may not sign it, or may not stand there.
    Signers,
}

impl Flaw {
    /// What is wrong, if it is one of these.
    #[must_use]
    pub fn of(wrong: &CertificateError) -> Option<Flaw> {
        let CertificateError::Other(other) = wrong else { return None };
        match other.0.downcast_ref()? {
            Error::CaUsedAsEndEntity => Some(Flaw::Authoritys),
            Error::UnsupportedCertVersion => Some(Flaw::Version1),
            Error::MaximumPathBuildCallsExceeded | Error::MaximumSignatureChecksExceeded => Some(Flaw::TooMany),
            Error::EndEntityUsedAsCa | Error::PathLenConstraintViolated => Some(Flaw::Signers),
            _ => None,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::Authoritys => "it is that of an authority, and not one that is trusted",
            Flaw::Version1 => "it is of version 1, and not trusted as itself",
            Flaw::TooMany => "it comes with more certificates than any chain has",
            Flaw::Signers => "who signed it may not sign for it",
        })
    }
}
