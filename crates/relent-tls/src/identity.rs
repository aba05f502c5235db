//! Who the caller is: certificates, and the key of the first.

use crate::{
    fields::{self, is_of_version_1},
    verifier::provider,
};
use rustls::{
    CertificateError, Error, InconsistentKeys,
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::CertifiedKey,
};

/// Certificates that are shown, the caller's own first, and its key. That both belong together is seen where the key tells what
/// the certificate must say. A certificate of version 1, as `openssl x509 -req` makes it, is shown as others are: whoever is shown it judges it.
///
/// ```
/// use rcgen::{CertificateParams, KeyPair};
///
/// let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
/// let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().der().clone();
/// let identity = |key: &KeyPair| relent_tls::identity(vec![certificate.clone()], key.serialize_der().try_into().unwrap());
///
/// assert_eq!(identity(&key).unwrap().cert, [certificate.clone()]);
/// assert!(identity(&other).is_err(), "they do not belong together");
/// ```
///
/// # Errors
///
/// The key or the certificate cannot be read, or they do not belong together.
pub fn identity(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<CertifiedKey, Error> {
    let first = chain.first().ok_or(Error::NoCertificatesPresented)?;
    if !is_of_version_1(first) {
        return CertifiedKey::from_der(chain, key, &provider());
    }
    let said = fields::key(first).ok_or(CertificateError::BadEncoding)?;
    let key = provider().key_provider.load_private_key(key)?;
    match key.public_key() {
        Some(own) if own.as_ref() != said => Err(InconsistentKeys::KeyMismatch.into()),
        _ => Ok(CertifiedKey::new(chain, key)),
    }
}
