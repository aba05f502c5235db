//! TLS to a server, by rustls with ring.

use crate::{Error, ErrorKind};
use relent_tls::{Flaw, Verifier, certificates, provider, system};
use rustls::{ClientConfig, client::Resumption, pki_types::ServerName};
use std::{io, path::Path, sync::Arc};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// What a server must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// A certificate for its name, from an authority that is trusted.
    Name,
    /// A certificate from an authority that is trusted.
    #[cfg(feature = "postgres")]
    Authority,
    /// Any certificate: who listens in learns nothing, who is in between everything.
    #[cfg(feature = "postgres")]
    Nothing,
}

/// How a server is asked who it is.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// TLS 1.2 or 1.3. `roots` is a file of certificates (PEM) in the place of those that the system trusts; `protocol` is what
    /// is spoken over it, where the server wants to be told.
    pub(crate) fn new(checked: Checked, roots: Option<&Path>, protocol: Option<&str>) -> Result<Tls, Error> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|_| Error::new(ErrorKind::Unsupported, "this build has no version of TLS"))?;
        let verifier = match checked {
            Checked::Name => verifier(roots)?,
            #[cfg(feature = "postgres")]
            Checked::Authority => verifier(roots)?.for_any_name(),
            #[cfg(feature = "postgres")]
            Checked::Nothing => Verifier::anyone(),
        };
        let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = config.with_no_client_auth();
        // What a server gives to be known again by is shown to whoever has its name the next time, at another port or address, too.
        config.resumption = Resumption::disabled();
        config.alpn_protocols = protocol.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Tls(Arc::new(config)))
    }

    /// Shakes hands with a server of this name.
    pub(crate) async fn connect<S>(&self, host: &str, stream: S) -> Result<TlsStream<S>, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .map_err(|_| Error::new(ErrorKind::Invalid, "the store's URL has a host that no certificate can be for"))?;
        let shaken = TlsConnector::from(self.0.clone()).connect(name, stream).await;
        shaken.map_err(|err| refused(&err))
    }
}

/// Who judges certificates: by those of a file in the place of the system's.
fn verifier(roots: Option<&Path>) -> Result<Verifier, Error> {
    let believed = match roots {
        Some(file) => certificates(file).map_err(|why| {
            let name = file.display().to_string();
            let what = format!("the file of certificates {} cannot be used: {why}", name.escape_debug());
            Error::new(ErrorKind::Invalid, what).hint("PEM, with BEGIN CERTIFICATE in it")
        })?,
        None => system().map_err(|nobody| {
            Error::new(ErrorKind::Unsupported, nobody.to_string()).hint("install ca-certificates, or set SSL_CERT_FILE")
        })?,
    };
    Ok(Verifier::of(believed))
}

/// A handshake that failed: a certificate that is not to be trusted stays so, all else may pass.
fn refused(err: &io::Error) -> Error {
    match err.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            let why = Flaw::of(why).map_or_else(|| why.to_string(), |flaw| flaw.to_string());
            let what = format!("the server's certificate is not to be trusted: {why}");
            Error::new(ErrorKind::Refused, what).hint(
                "is the host's name the one in the certificate, and its authority known? \
                 `sslrootcert=FILE` names certificates that are believed",
            )
        }
        Some(_) => {
            Error::new(ErrorKind::Refused, "the server and we do not agree on TLS").hint("does it speak TLS there?")
        }
        None => Error::new(ErrorKind::Unavailable, "the connection broke in the TLS handshake")
            .hint("does the server speak TLS there?"),
    }
}
