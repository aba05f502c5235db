//! Whom we trust, and who we are: the settings of TLS.

use super::{args::Args, proxy::Proxies};
use crate::{talk::Fault, tls_words, trust};
use relent_tls::{Verifier, provider};
use rustls::{
    ClientConfig, InconsistentKeys, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::SingleCertAndKey,
};
use std::{path::Path, sync::Arc};
use url::Url;

/// Who the caller is: certificates, and the key of the first.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The settings that the flags describe, with a certificate of the caller's or without, where these are believed.
pub(super) fn config(
    args: &Args,
    identity: Option<Identity>,
    http1: bool,
    believed: Option<&Arc<Verifier>>,
) -> Result<ClientConfig, Fault> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring has what TLS 1.2 and 1.3 need");
    let builder = match believed {
        Some(verifier) => builder.dangerous().with_custom_certificate_verifier(verifier.clone()),
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let shown = relent_tls::identity(chain, key).map_err(unfit)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(shown)))
        }
    };
    // What a server gives to be known again by is shown to whoever has its name the next time, at another port or address, too.
    config.resumption = Resumption::disabled();
    let protocols: &[&[u8]] = match (http1, args.http2) {
        (true, _) => &[b"http/1.1"],
        (_, true) => &[b"h2"],
        _ => &[b"h2", b"http/1.1"],
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

fn unfit(error: rustls::Error) -> Fault {
    let fault = Fault::new(format!("--cert: {}", tls_words::of(&error)));
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            fault.hint("the certificate and its key (--key FILE, or in the same file) must belong together")
        }
        _ => fault,
    }
}

/// Who judges certificates; `None` if there will be none.
pub(super) fn believed(args: &Args, url: &Url, proxies: &Proxies) -> Result<Option<Arc<Verifier>>, Fault> {
    let verifier = match &args.cacert {
        _ if args.insecure => Verifier::anyone(),
        Some(file) => trust::only(file)?,
        None if args.location || url.scheme() == "https" || proxies.any_over_tls() => trust::system()?,
        // Reading the system's takes longer than a request on loopback, and there is no TLS.
        None => return Ok(None),
    };
    Ok(Some(Arc::new(verifier)))
}

/// The client's certificate and its key.
pub(super) fn identity(file: &Path, key: Option<&Path>) -> Result<Identity, Fault> {
    let chain = trust::certificates(file, "--cert")?;
    let key_file = key.unwrap_or(file);
    let hint = "a key in PEM is asked for: -----BEGIN PRIVATE KEY-----; one with a password has to be decrypted first \
                (openssl pkey -in key.pem -out plain.pem)";
    let text = trust::read(key_file, hint)?;
    let key = PrivateKeyDer::from_pem_slice(&text);
    let key =
        key.map_err(|_| Fault::new(format!("{} has no key that can be read", trust::shown(key_file))).hint(hint))?;
    Ok((chain, key))
}
