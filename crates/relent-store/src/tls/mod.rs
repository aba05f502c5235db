//! TLS to a server, by rustls with ring.

#[cfg(feature = "postgres")]
mod lax;

use crate::{Error, ErrorKind, at_once};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{
    ffi::OsStr,
    fs,
    io::{self, Read},
    path::Path,
    sync::Arc,
};
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
        let roots = || roots.map_or_else(system_roots, roots_of);
        let mut config = match checked {
            Checked::Name => config.with_root_certificates(roots()?).with_no_client_auth(),
            #[cfg(feature = "postgres")]
            Checked::Authority => lax::config(config, Some(roots()?))?,
            #[cfg(feature = "postgres")]
            Checked::Nothing => lax::config(config, None)?,
        };
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

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The roots that the system trusts.
fn system_roots() -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    // One that cannot be read is left out, as every program does.
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let found = match (named("SSL_CERT_FILE"), named("SSL_CERT_DIR")) {
        (None, None) => rustls_native_certs::load_native_certs().certs,
        (file, folders) => of_the_environment(file.as_deref().map(Path::new), folders.as_deref()),
    };
    roots.add_parsable_certificates(found);
    if roots.is_empty() {
        return Err(Error::new(ErrorKind::Unsupported, "the system trusts no certificate authority")
            .hint("install ca-certificates, or set SSL_CERT_FILE"));
    }
    Ok(Arc::new(roots))
}

/// The certificates of a file.
fn roots_of(path: &Path) -> Result<Arc<RootCertStore>, Error> {
    let unusable = |why: String| {
        let what =
            format!("the file of certificates {} cannot be used: {why}", path.display().to_string().escape_debug());
        Error::new(ErrorKind::Invalid, what).hint("PEM, with BEGIN CERTIFICATE in it")
    };
    let text = text_of(path).map_err(|err| unusable(err.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|err| unusable(err.to_string()))?;
        roots.add(certificate).map_err(|err| unusable(err.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("there is no certificate in it".into()));
    }
    Ok(Arc::new(roots))
}

/// The most bytes of a file of certificates.
const LONGEST: u64 = 16 << 20;

/// What is in a regular file that is not longer than that. A pipe would be waited for without end.
fn text_of(path: &Path) -> io::Result<Vec<u8>> {
    let file = at_once::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut text)?;
    match text.len() as u64 > LONGEST {
        true => Err(io::Error::other("it is longer than 16 MiB")),
        false => Ok(text),
    }
}

/// The certificates that a file and the files of folders have, as OpenSSL reads these variables.
fn of_the_environment(file: Option<&Path>, folders: Option<&OsStr>) -> Vec<CertificateDer<'static>> {
    let folders: Vec<_> = folders.into_iter().flat_map(std::env::split_paths).collect();
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let files = file.map(Path::to_owned).into_iter().chain(entries.map(|entry| entry.path()));
    let texts = files.filter_map(|file| text_of(&file).ok());
    texts.flat_map(|text| CertificateDer::pem_slice_iter(&text).filter_map(Result::ok).collect::<Vec<_>>()).collect()
}

/// A handshake that failed: a certificate that is not to be trusted stays so, all else may pass.
fn refused(err: &io::Error) -> Error {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// However quick whoever may exchange it is.
    #[cfg(unix)]
    #[test]
    fn a_pipe_that_comes_and_goes_is_not_waited_for() {
        use std::sync::{
            atomic::{AtomicBool, Ordering::Relaxed},
            mpsc::channel,
        };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (file, pipe, aside) = (at("ca.pem"), at("pipe"), at("aside"));
        fs::write(&file, "none").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (is_over, (tell, told), path) = (AtomicBool::new(false), channel(), file.clone());
        std::thread::spawn(move || {
            (0..20_000).for_each(|_| drop(text_of(&path)));
            tell.send(())
        });
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    for (from, to) in [(&file, &aside), (&pipe, &file), (&file, &pipe), (&aside, &file)] {
                        fs::rename(from, to).unwrap();
                    }
                }
            });
            let ended = told.recv_timeout(std::time::Duration::from_secs(20));
            is_over.store(true, Relaxed);
            ended
        });
        assert!(ended.is_ok(), "it waits for who writes to the pipe");
    }

    /// None of it is waited for, or read without end.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file_of_certificates_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", at("endless")).unwrap();
        fs::File::create(at("long")).unwrap().set_len(LONGEST + 1).unwrap();
        for name in ["pipe", "endless", "long", "none"] {
            assert!(of_the_environment(Some(&at(name)), None).is_empty(), "{name}");
            assert!(roots_of(&at(name)).is_err(), "{name}");
        }
        assert!(of_the_environment(None, Some(folder.path().as_os_str())).is_empty());
        fs::write(at("own.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        for (file, folders) in
            [(Some("own.pem"), None), (None, Some(folder.path())), (Some("pipe"), Some(folder.path()))]
        {
            let found = of_the_environment(file.map(at).as_deref(), folders.map(Path::as_os_str));
            assert_eq!(found, [CertificateDer::from(vec![0; 3])], "{file:?} {folders:?}");
        }
    }
}
