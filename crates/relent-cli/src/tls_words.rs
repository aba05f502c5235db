//! What went wrong with TLS, in words that are none of a library's.

use crate::escape::escape;
use rustls::Error;

/// What went wrong; what a certificate lacks, its caller may know better.
pub(crate) fn of(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => format!("the other side says: {}", name(&format!("{alert:?}"))),
        Error::PeerIncompatible(why) => name(&format!("{why:?}")),
        Error::PeerMisbehaved(why) => name(&format!("{why:?}")),
        Error::InconsistentKeys(why) => name(&format!("{why:?}")),
        Error::InvalidMessage(why) => format!("what it sends makes no sense: {}", name(&format!("{why:?}"))),
        Error::InvalidCertificate(why) => name(&format!("{why:?}")),
        Error::General(text) => escape(text).into_owned(),
        other => name(&format!("{other:?}")),
    }
}

/// The name of a variant as words: `HandshakeFailure` is "handshake failure".
pub(crate) fn name(variant: &str) -> String {
    let variant = variant.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let mut words = String::new();
    for c in variant.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{AlertDescription, InvalidMessage, PeerMisbehaved};

    #[test]
    fn names_of_variants_are_words() {
        for (error, told) in [
            (Error::AlertReceived(AlertDescription::HandshakeFailure), "the other side says: handshake failure"),
            (PeerMisbehaved::TooManyWarningAlertsReceived.into(), "too many warning alerts received"),
            (InvalidMessage::InvalidEmptyPayload.into(), "what it sends makes no sense: invalid empty payload"),
            (rustls::CertificateError::BadEncoding.into(), "bad encoding"),
            (Error::General("a\nb".into()), "a\\nb"),
            (Error::HandshakeNotComplete, "handshake not complete"),
        ] {
            assert_eq!(of(&error), told);
        }
    }
}
