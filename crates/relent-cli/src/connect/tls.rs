//! A TLS handshake as the check: that a port accepts does not mean that who answers there is who it should be.

use crate::{talk::Fault, tls_words, trust};
use relent_tls::Flaw;
use relent_tls::{Verifier, provider};
use rustls::{CertificateError, ClientConfig, ClientConnection, Error, client::Resumption, pki_types::ServerName};
use std::{
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// How handshakes are made; nothing is read where no target takes one.
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    /// No target takes one.
    pub(super) fn none() -> Tls {
        Tls(None)
    }

    /// With the authorities of a file, or the system's; or believing anybody.
    pub(super) fn new(cacert: Option<&Path>, insecure: bool) -> Result<Tls, Fault> {
        let versions = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::new(format!("cannot speak TLS: {error}")))?;
        let verifier = match cacert {
            _ if insecure => Verifier::anyone(),
            Some(file) => trust::only(file)?,
            None => trust::system()?,
        };
        let mut config =
            versions.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
        // What a server gives to be known again by is shown to whoever has its name the next time, at another port or address, too.
        config.resumption = Resumption::disabled();
        Ok(Tls(Some(Arc::new(config))))
    }

    /// One attempt: connected, and the handshake is done within what is left of the limit.
    pub(super) fn connect(&self, address: &str, limit: Option<Duration>) -> io::Result<()> {
        let began = Instant::now();
        let stream = relent::net::connect_once(address, limit)?;
        let Some(config) = &self.0 else { return Ok(()) };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        let host = host.split('%').next().unwrap_or(host);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("{host:?} cannot be in a certificate")))?;
        let mut session =
            ClientConnection::new(Arc::clone(config), name).map_err(|error| io::Error::other(said(&error)))?;
        while session.is_handshaking() {
            let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(left)?;
            stream.set_write_timeout(left)?;
            if session.wants_write() {
                session.write_tls(&mut &stream).map_err(late)?;
                continue;
            }
            if session.read_tls(&mut &stream).map_err(late)? == 0 {
                return Err(io::Error::other("it closed the connection in the TLS handshake"));
            }
            if let Err(error) = session.process_new_packets() {
                // The alert that says why; who does not read it does not need it.
                let _ = session.write_tls(&mut &stream);
                return Err(io::Error::other(said(&error)));
            }
        }
        // The last words of the handshake, and a good-bye, so that the server has nothing to complain about.
        session.send_close_notify();
        while session.wants_write() {
            session.write_tls(&mut &stream).map_err(late)?;
        }
        Ok(())
    }
}

/// A timeout of a socket reads as one.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

/// What is wrong with the handshake, for people.
fn said(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is signed by nobody we trust (--cacert FILE, or -k to trust anybody)".to_owned()
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "its certificate is for another name".to_owned(),
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "its certificate has expired".to_owned()
        }
        Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => "it does not speak TLS".to_owned(),
        Error::InvalidCertificate(why) => match Flaw::of(why) {
            Some(flaw) => format!("its certificate is not trusted: {flaw}"),
            None => "its certificate is not valid".to_owned(),
        },
        _ => format!("the TLS handshake failed: {}", tls_words::of(error)),
    }
}
