//! Certificates that are not for the host's name, or from whomever: what some modes of Postgres's clients mean.

use super::provider;
use crate::{Error, ErrorKind};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::sync::Arc;

/// A client that takes any name, from these authorities or from any.
pub(super) fn config(
    config: rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>,
    roots: Option<Arc<RootCertStore>>,
) -> Result<ClientConfig, Error> {
    let authority = roots.map(|roots| WebPkiServerVerifier::builder_with_provider(roots, provider()).build());
    let authority = authority.transpose();
    let authority = authority.map_err(|_| Error::new(ErrorKind::Invalid, "no certificate authority can be used"))?;
    let lax = Arc::new(Lax { authority, provider: provider() });
    Ok(config.dangerous().with_custom_certificate_verifier(lax).with_no_client_auth())
}

/// Takes a certificate for whatever name, from an authority that is trusted, or from any.
#[derive(Debug)]
struct Lax {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lax {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(certificate, others, name, ocsp, now) {
            // The name is looked at last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
