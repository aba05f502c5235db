//! Whose certificates are believed: those that the authorities of a file or of the system signed, those of a file itself, or any.

use crate::{
    authorities,
    escape::escape,
    redact, regular,
    talk::{Fault, plain},
};
use rustls::{
    CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use std::{path::Path, sync::Arc};

/// Who judges certificates, and whose are believed.
pub(crate) type Believed = (Arc<dyn ServerCertVerifier>, Arc<[CertificateDer<'static>]>);

/// `--insecure`: any certificate will do, if the server has its key.
pub(crate) fn anyone(provider: Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(Anyone(provider))
}

/// `--cacert`: the certificates of this file alone, all of which must be readable.
pub(crate) fn only(file: &Path, provider: Arc<CryptoProvider>) -> Result<Believed, Fault> {
    let trusted = certificates(file, "--cacert")?;
    let mut readable = RootCertStore::empty();
    for certificate in &trusted {
        readable.add(certificate.clone()).map_err(|_| unreadable(file, CACERT_HINT))?;
    }
    Ok(verifier(trusted.into(), provider))
}

/// Those of the system, as far as they can be read.
pub(crate) fn system(provider: Arc<CryptoProvider>) -> Result<Believed, Fault> {
    Ok(verifier(authorities::system()?.into(), provider))
}

fn verifier(trusted: Arc<[CertificateDer<'static>]>, provider: Arc<CryptoProvider>) -> Believed {
    let mut authorities = RootCertStore::empty();
    let now = UnixTime::now();
    authorities.add_parsable_certificates(trusted.iter().filter(|own| is_authority(own, now, &provider)).cloned());
    (Arc::new(Trusted { authorities, trusted: trusted.clone(), provider }), trusted)
}

/// Whether a certificate may sign others, as far as is known: it is no server's alone, and its time has come and is not over. What is
/// said of servers' certificates alone, as of critical extensions and of the first version of X.509, says nothing against an authority.
fn is_authority(certificate: &CertificateDer<'_>, now: UnixTime, provider: &CryptoProvider) -> bool {
    use CertificateError::{
        Expired, ExpiredContext, InvalidPurpose, InvalidPurposeContext, NotValidYet, NotValidYetContext,
    };
    match by_itself(certificate, now, provider) {
        Ok(()) => false,
        Err(rustls::Error::InvalidCertificate(error)) => !matches!(
            error,
            Expired
                | ExpiredContext { .. }
                | NotValidYet
                | NotValidYetContext { .. }
                | InvalidPurpose
                | InvalidPurposeContext { .. }
        ),
        Err(_) => true,
    }
}

/// What there is to say against a certificate, if it is believed.
fn by_itself(certificate: &CertificateDer<'_>, now: UnixTime, provider: &CryptoProvider) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone().into_owned())?;
    let algorithms = provider.signature_verification_algorithms.all;
    let parsed = ParsedCertificate::try_from(certificate)?;
    match verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], now, algorithms) {
        // Somebody else signed it, which is looked at last.
        Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            Ok(())
        }
        judged => judged,
    }
}

/// Whether the only thing wrong with a certificate is that it is an authority's. The time is checked before that.
fn is_used_as_end(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

const CACERT_HINT: &str = "--cacert wants certificates in PEM: -----BEGIN CERTIFICATE-----";

/// The certificates of a file that a flag names, or of a pipe.
pub(crate) fn certificates(file: &Path, flag: &str) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let hint = CACERT_HINT.replace("--cacert", flag);
    let text = read(file, &hint)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Err(_) => Err(unreadable(file, &hint)),
        Ok(found) if found.is_empty() => {
            Err(Fault::new(format!("{} has no certificate in it", shown(file))).hint(hint))
        }
        Ok(found) => Ok(found),
    }
}

fn unreadable(file: &Path, hint: &str) -> Fault {
    Fault::new(format!("{} has a certificate that cannot be read", shown(file))).hint(hint.to_owned())
}

/// The most bytes of a file of certificates or keys.
const LONGEST: u64 = 16 << 20;

/// What is in such a file.
pub(crate) fn read(file: &Path, hint: &str) -> Result<Vec<u8>, Fault> {
    regular::bytes(file, LONGEST)
        .map_err(|error| Fault::new(format!("cannot read {}: {}", named(file), plain(&error))).hint(hint))
}

/// A file that is not there; curl takes a password after its name.
fn named(file: &Path) -> String {
    let shown = shown(file);
    match shown.split_once(':') {
        Some((name, _)) if !file.exists() => format!("{name}:{}", redact::HIDDEN),
        _ => shown,
    }
}

/// Its name, for people.
pub(crate) fn shown(file: &Path) -> String {
    escape(&redact::value(&file.to_string_lossy())).into_owned()
}

/// Certificate authorities, and certificates that are trusted as themselves: what `openssl req -x509` makes is both an
/// authority and a server's certificate, which the standard verification refuses.
#[derive(Debug)]
struct Trusted {
    /// Those that may sign others.
    authorities: RootCertStore,
    /// All of them.
    trusted: Arc<[CertificateDer<'static>]>,
    provider: Arc<CryptoProvider>,
}

impl Trusted {
    fn is_itself(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
        let judged = || by_itself(certificate, now, &self.provider);
        self.trusted.iter().any(|trusted| trusted == certificate)
            && judged().map_or_else(|error| is_used_as_end(&error), |()| true)
    }
}

/// Whether the certificate is for this name. One without any names, as old recipes make it, is for its common name.
fn is_for(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), rustls::Error> {
    match verify_server_name(&ParsedCertificate::try_from(certificate)?, name) {
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }))
            if presented.is_empty() && has_common_name(certificate, &name.to_str()) =>
        {
            Ok(())
        }
        verified => verified,
    }
}

/// Whether the subject has this common name: object identifier 2.5.4.3, then a string (tag, length, text).
fn has_common_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else { return false };
    parsed.subject().windows(COMMON_NAME.len()).enumerate().any(|(at, window)| {
        let string = parsed.subject().get(at + COMMON_NAME.len() + 1..).unwrap_or_default();
        let text = string.split_first().and_then(|(length, rest)| rest.get(..usize::from(*length)));
        window == COMMON_NAME && text.is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes()))
    })
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.is_itself(end_entity, now) {
            return is_for(end_entity, server_name).map(|()| ServerCertVerified::assertion());
        }
        let algorithms = self.provider.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.authorities, intermediates, now, algorithms)?;
        verify_server_name(&parsed, server_name).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
