//! Whose certificates are believed: those that the authorities of a file or of the system signed, those of a file itself, or any.

use crate::{
    escape::escape,
    redact, regular,
    talk::{Fault, plain},
};
use relent_tls::{Verifier, is_readable};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::path::Path;

/// `--cacert`: the certificates of this file alone, all of which must be readable.
pub(crate) fn only(file: &Path) -> Result<Verifier, Fault> {
    let believed = certificates(file, "--cacert")?;
    match believed.iter().all(is_readable) {
        true => Ok(Verifier::of(believed)),
        false => Err(unreadable(file, CACERT_HINT)),
    }
}

/// Those of the system, as far as they can be read.
///
/// # Errors
///
/// There is none.
pub(crate) fn system() -> Result<Verifier, Fault> {
    relent_tls::system().map(Verifier::of).map_err(|nobody| {
        let why = nobody.file.as_ref().map(|(file, why)| format!(": SSL_CERT_FILE={}: {}", shown(file), plain(why)));
        Fault::new(format!("{nobody}{}", why.unwrap_or_default()))
            .hint("install ca-certificates, or name a file with --cacert or SSL_CERT_FILE")
    })
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
