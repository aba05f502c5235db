//! Who judges certificates.

use crate::{
    fields::{common_name, is_of_version_1},
    flaw::Flaw,
    signers::Signers,
    version1,
};
use rustls::{
    CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use std::sync::Arc;

/// The cryptography of all of relent: ring's.
///
/// ```
/// assert!(!relent_tls::provider().cipher_suites.is_empty());
/// ```
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Whether a certificate can be among those that are believed: as one that signs others, it has a name and a key.
///
/// ```
/// assert!(!relent_tls::is_readable(&vec![0; 3].into()));
/// ```
#[must_use]
pub fn is_readable(certificate: &CertificateDer<'_>) -> bool {
    RootCertStore::empty().add(certificate.clone().into_owned()).is_ok()
}

/// Judges servers' certificates: those that an authority signed, those that are believed as themselves (what `openssl req -x509`
/// makes is both an authority and a server's certificate, which the standard verification refuses), or any.
///
/// ```
/// use relent_tls::Verifier;
///
/// let (nobody, anyone) = (Verifier::of(Vec::new()), Verifier::anyone());
/// # _ = (nobody, anyone);
/// ```
#[derive(Debug)]
pub struct Verifier {
    believed: Option<Believed>,
    is_name_asked: bool,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
struct Believed {
    /// Those that may sign others.
    signers: Signers,
    /// All of them, and so as themselves.
    certificates: Arc<[CertificateDer<'static>]>,
}

impl Verifier {
    /// Any certificate will do, if the server has its key: who listens in learns nothing, who is in between everything.
    #[must_use]
    pub fn anyone() -> Verifier {
        Verifier { believed: None, is_name_asked: false, provider: provider() }
    }

    /// Certificates for the server's name, by these. Of them those sign for others that may, and whose time is now; that is looked at
    /// here, once. One that cannot be read is believed as nothing.
    ///
    /// Who may is who says so (`basicConstraints`), unless its key is for something else (`keyUsage`, `extendedKeyUsage`); who has
    /// only a key for it; and who is its own issuer and of version 1, in which nobody can say so. Who says how many authorities may stand
    /// between it and a server (`pathlen`) signs for no others. OpenSSL asks for the same.
    #[must_use]
    pub fn of(certificates: Vec<CertificateDer<'static>>) -> Verifier {
        let provider = provider();
        let signers = Signers::among(&certificates, UnixTime::now());
        let believed = Some(Believed { signers, certificates: certificates.into() });
        Verifier { believed, is_name_asked: true, provider }
    }

    /// Those that are believed: none by whom anyone is.
    #[must_use]
    pub fn certificates(&self) -> Arc<[CertificateDer<'static>]> {
        self.believed.as_ref().map_or_else(|| Arc::new([]) as _, |believed| believed.certificates.clone())
    }

    /// The same, whatever the server's name: what `sslmode=verify-ca` means to Postgres.
    #[must_use]
    pub fn for_any_name(self) -> Verifier {
        Verifier { is_name_asked: false, ..self }
    }
}

/// What there is to say against a certificate of a server's, whoever signed it.
fn by_itself(certificate: &CertificateDer<'_>, now: UnixTime, provider: &CryptoProvider) -> Result<(), rustls::Error> {
    let algorithms = provider.signature_verification_algorithms.all;
    let parsed = ParsedCertificate::try_from(certificate)?;
    match verify_server_cert_signed_by_trust_anchor(&parsed, &RootCertStore::empty(), &[], now, algorithms) {
        // Nobody can have signed it, which is looked at last.
        Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => Ok(()),
        judged => judged,
    }
}

/// Whether the certificate is for this name. One without any names of servers, as old recipes make it, is for its common name.
fn is_for(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), rustls::Error> {
    if is_of_version_1(certificate) {
        return version1::is_for(certificate, name);
    }
    match verify_server_name(&ParsedCertificate::try_from(certificate)?, name) {
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }))
            if presented.iter().all(|name| name.starts_with("Unsupported"))
                && common_name(certificate).is_some_and(|own| own.eq_ignore_ascii_case(name.to_str().as_bytes())) =>
        {
            Ok(())
        }
        verified => verified,
    }
}

impl Believed {
    fn is_itself(&self, certificate: &CertificateDer<'_>, now: UnixTime, provider: &CryptoProvider) -> bool {
        self.certificates.iter().any(|believed| believed == certificate)
            && match by_itself(certificate, now, provider) {
                Ok(()) => true,
                Err(rustls::Error::InvalidCertificate(wrong)) => match Flaw::of(&wrong) {
                    Some(Flaw::Authoritys) => true,
                    Some(Flaw::Version1) => version1::is_sound(certificate, now),
                    _ => false,
                },
                Err(_) => false,
            }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = Ok(ServerCertVerified::assertion());
        let Some(believed) = &self.believed else { return verified };
        if believed.is_itself(certificate, now, &self.provider) {
            return if self.is_name_asked { is_for(certificate, name).and(verified) } else { verified };
        }
        let algorithms = self.provider.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(certificate)?;
        believed.signers.have_signed(certificate, intermediates, now, algorithms)?;
        if self.is_name_asked { verify_server_name(&parsed, name).and(verified) } else { verified }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match is_of_version_1(certificate) {
            true => version1::verify_tls12_signature(message, certificate, signed, algorithms),
            false => verify_tls12_signature(message, certificate, signed, algorithms),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match is_of_version_1(certificate) {
            true => version1::verify_tls13_signature(message, certificate, signed, algorithms),
            false => verify_tls13_signature(message, certificate, signed, algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
