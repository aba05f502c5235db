//! Certificates of version 1, as `openssl x509 -req -signkey` makes them: rustls reads none, though one that is believed as itself has all
//! that is asked of it, a time, a common name and a key.

use crate::fields::{self, common_name, is_valid};
use rustls::{
    CertificateError, DigitallySignedStruct,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
};
use webpki::RawPublicKeyEntity;

/// Whether it can be read, and its time is now.
pub(crate) fn is_sound(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    is_valid(certificate, now) && key(certificate).is_ok_and(|key| RawPublicKeyEntity::try_from(&key).is_ok())
}

/// Whether its common name is this one: it has no other.
pub(crate) fn is_for(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), rustls::Error> {
    let own = common_name(certificate);
    if own.is_some_and(|own| own.eq_ignore_ascii_case(name.to_str().as_bytes())) {
        return Ok(());
    }
    let presented = own.map(|own| format!("CommonName({:?})", String::from_utf8_lossy(own))).into_iter().collect();
    Err(CertificateError::NotValidForNameContext { expected: name.to_owned(), presented }.into())
}

pub(crate) fn verify_tls12_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let key = key(certificate)?;
    let key = RawPublicKeyEntity::try_from(&key).map_err(|_| CertificateError::BadEncoding)?;
    let of_scheme = algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
    let has_signed = of_scheme
        .flat_map(|(_, algorithms)| algorithms.iter())
        .any(|algorithm| key.verify_signature(*algorithm, message, signed.signature()).is_ok());
    match has_signed {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(CertificateError::BadSignature.into()),
    }
}

pub(crate) fn verify_tls13_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    verify_tls13_signature_with_raw_key(message, &key(certificate)?, signed, algorithms)
}

fn key<'a>(certificate: &'a CertificateDer<'_>) -> Result<SubjectPublicKeyInfoDer<'a>, rustls::Error> {
    fields::key(certificate).map(Into::into).ok_or_else(|| CertificateError::BadEncoding.into())
}

#[cfg(test)]
mod tests;
