//! TLS to a server, by rustls with ring.

use crate::{Error, ErrorKind};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::ServerName,
};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// How a server is asked who it is.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Its certificate must come from one of these roots, and be for its name.
    pub(crate) fn checked(roots: &Arc<RootCertStore>) -> Result<Tls, Error> {
        let config = versions()?.with_root_certificates(roots.clone()).with_no_client_auth();
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

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn versions() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, Error> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|_| Error::new(ErrorKind::Unsupported, "this build has no version of TLS"))
}

/// The roots that the system trusts.
pub(crate) fn system_roots() -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    // One that cannot be read is left out, as every program does.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Error::new(ErrorKind::Unsupported, "the system trusts no certificate authority")
            .hint("install ca-certificates, or set SSL_CERT_FILE"));
    }
    Ok(Arc::new(roots))
}

/// A handshake that failed: a certificate that is not to be trusted stays so, all else may pass.
fn refused(err: &std::io::Error) -> Error {
    match err.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            let what = format!("the server's certificate is not to be trusted: {why}");
            Error::new(ErrorKind::Refused, what)
                .hint("is the host's name the one in the certificate, and its authority known?")
        }
        Some(_) => {
            Error::new(ErrorKind::Refused, "the server and we do not agree on TLS").hint("does it speak TLS there?")
        }
        None => Error::new(ErrorKind::Unavailable, "the connection broke in the TLS handshake")
            .hint("does the server speak TLS there?"),
    }
}
