//! Who signs for others, and how far down: rustls knows the name and the key of an authority that is believed, and nothing of how many
//! others may stand between it and a server, nor what the keys of those are for.

use crate::fields::{has_key_that_signs, may_sign};
use rustls::{
    CertificateError, OtherError, RootCertStore,
    client::verify_server_cert_signed_by_trust_anchor,
    pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime},
    server::ParsedCertificate,
};
use std::{borrow::Cow, ptr, sync::Arc};
use webpki::{EndEntityCert, Error, KeyUsage, VerifiedPath};

/// Those that are believed and may sign for others.
#[derive(Debug)]
pub(crate) struct Signers {
    authorities: RootCertStore,
    /// How many authorities may stand between each of them, in their order, and a server.
    depths: Vec<usize>,
}

impl Signers {
    /// Those of these that may sign for others now.
    pub(crate) fn among(certificates: &[CertificateDer<'static>], now: UnixTime) -> Signers {
        let mut signers = Signers { authorities: RootCertStore::empty(), depths: Vec::new() };
        for certificate in certificates {
            if let Some(depth) = may_sign(certificate, now)
                && signers.authorities.add(certificate.clone()).is_ok()
            {
                signers.depths.push(depth);
            }
        }
        signers
    }

    /// Whether one of them has signed a server's certificate, or who may sign for it has.
    pub(crate) fn have_signed(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), rustls::Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let intermediates = &*above(certificate, intermediates)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.authorities, intermediates, now, algorithms)?;
        if intermediates.is_empty() {
            return Ok(());
        }
        // Again, by ways on which everybody may stand: there may be several, and rustls tells of none.
        let (server, roots) = (EndEntityCert::try_from(certificate).map_err(wrong)?, &self.authorities.roots);
        let usage = KeyUsage::server_auth();
        let may_be = |path: &VerifiedPath<'_>| self.may_be(path);
        server.verify_for_usage(algorithms, roots, intermediates, now, usage, None, Some(&may_be)).map_err(wrong)?;
        Ok(())
    }

    /// Whether all who stand on this way from an authority to a server may stand there. Who has signed itself anew counts for nothing, as
    /// OpenSSL has it (RFC 5280 4.2.1.9).
    fn may_be(&self, path: &VerifiedPath<'_>) -> Result<(), Error> {
        let between = || path.intermediate_certificates();
        if !between().all(|one| has_key_that_signs(&one.der())) {
            return Err(Error::EndEntityUsedAsCa);
        }
        let authorities = self.authorities.roots.iter().zip(&self.depths);
        let depth =
            authorities.filter(|(authority, _)| ptr::eq(*authority, path.anchor())).map(|(_, depth)| *depth).next();
        match depth.is_some_and(|depth| between().filter(|one| one.issuer() != one.subject()).count() <= depth) {
            true => Ok(()),
            false => Err(Error::PathLenConstraintViolated),
        }
    }
}

/// The most certificates that may be on the ways from a server to an authority: with more there are more ways than anybody has time for.
const MOST: usize = 16;

/// Those that a server has sent that may be on a way, by their names: some send all authorities that they know.
fn above<'a>(
    certificate: &CertificateDer<'_>,
    sent: &'a [CertificateDer<'a>],
) -> Result<Cow<'a, [CertificateDer<'a>]>, rustls::Error> {
    if sent.len() <= MOST {
        return Ok(Cow::Borrowed(sent));
    }
    let server = EndEntityCert::try_from(certificate).map_err(wrong)?;
    let mut left: Vec<_> = sent.iter().filter_map(|one| Some((one, EndEntityCert::try_from(one).ok()?))).collect();
    let (mut above, mut issuers) = (Vec::new(), vec![server.issuer().to_vec()]);
    while let Some(issuer) = issuers.pop() {
        for (one, parsed) in left.extract_if(.., |(_, parsed)| parsed.subject() == issuer) {
            issuers.push(parsed.issuer().to_vec());
            above.push(one.clone());
        }
        if above.len() > MOST {
            return Err(wrong(Error::MaximumPathBuildCallsExceeded));
        }
    }
    Ok(Cow::Owned(above))
}

fn wrong(error: Error) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(error))).into()
}
