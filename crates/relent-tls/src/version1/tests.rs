use crate::{Verifier, identity, is_readable, provider};
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd as day};
use rustls::{
    ClientConfig, ClientConnection, ServerConfig, ServerConnection, SupportedProtocolVersion,
    pki_types::CertificateDer,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use std::sync::Arc;

/// What `openssl x509 -req -signkey` makes: nothing but serial number, algorithm, issuer, times, subject and key. Who signed it is not
/// asked.
fn old(common_name: &str, until: i32, key: &KeyPair) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.not_before, params.not_after) = (day(2001, 1, 1), day(until, 1, 1));
    let new = params.self_signed(key).unwrap();
    let (mut all, mut whole) = (Vec::new(), &new.der()[..]);
    let mut signed = inside(&mut whole);
    let mut kept = inside(&mut signed);
    while let Some(tag) = kept.first().copied() {
        let (before, _) = (kept, inside(&mut kept));
        if tag < 0xa0 {
            all.extend_from_slice(&before[..before.len() - kept.len()]);
        }
    }
    sequence(&[&sequence(&[&all]), signed]).into()
}

/// What is in the next element, whose length is one of two bytes or of one.
fn inside<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (length, head) = match rest[1] {
        0x81 => (usize::from(rest[2]), 3),
        0x82 => (usize::from(rest[2]) << 8 | usize::from(rest[3]), 4),
        length => (usize::from(length), 2),
    };
    let (element, after) = rest.split_at(head + length);
    *rest = after;
    &element[head..]
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    let inner = parts.concat();
    let [high, low] = u16::try_from(inner.len()).unwrap().to_be_bytes();
    let head: &[u8] = match (high, low) {
        (0, 0..0x80) => &[0x30, low],
        (0, _) => &[0x30, 0x81, low],
        _ => &[0x30, 0x82, high, low],
    };
    [head, &inner[..]].concat()
}

/// A server's certificate and key.
#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesServerCert for Shows {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// What becomes of a handshake with a server that shows this certificate and has this key.
fn shaken(
    verifier: Verifier,
    certificate: &CertificateDer<'static>,
    key: &KeyPair,
    name: &str,
    version: &'static SupportedProtocolVersion,
) -> Result<(), String> {
    let key = rustls::crypto::ring::sign::any_supported_type(&key.serialize_der().try_into().unwrap()).unwrap();
    let shows = Shows(Arc::new(CertifiedKey::new(vec![certificate.clone()], key)));
    let server = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[version]).unwrap();
    let server = server.with_no_client_auth().with_cert_resolver(Arc::new(shows));
    let client = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[version]).unwrap();
    let client = client.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name.to_owned().try_into().unwrap()).unwrap();
    for _ in 0..10 {
        let (mut said, mut heard) = (Vec::new(), Vec::new());
        client.write_tls(&mut said).unwrap();
        server.read_tls(&mut &said[..]).unwrap();
        server.process_new_packets().map_err(|why| why.to_string())?;
        server.write_tls(&mut heard).unwrap();
        client.read_tls(&mut &heard[..]).unwrap();
        client.process_new_packets().map_err(|why| why.to_string())?;
    }
    assert!(!client.is_handshaking());
    Ok(())
}

#[test]
fn one_of_version_1_that_is_trusted_is_so_for_its_common_name_and_time() {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (own, late) = (old("localhost", 3001, &key), old("localhost", 2002, &key));
    assert!(is_readable(&own));
    let trusts = || Verifier::of(vec![own.clone(), late.clone()]);
    for version in [&TLS12, &TLS13] {
        let shaken = |verifier, own: &CertificateDer<'static>, key, name| shaken(verifier, own, key, name, version);
        assert_eq!(shaken(trusts(), &own, &key, "localhost"), Ok(()));
        assert_eq!(shaken(trusts(), &own, &key, "LOCALhost"), Ok(()));
        assert_eq!(shaken(trusts().for_any_name(), &own, &key, "other.example"), Ok(()));
        assert_eq!(shaken(Verifier::anyone(), &late, &key, "other.example"), Ok(()), "whoever it is");
        let why = shaken(trusts(), &own, &key, "other.example").unwrap_err();
        assert!(why.contains("not valid for name") && why.contains("localhost"), "{why}");
        for verifier in [trusts(), trusts().for_any_name()] {
            let why = shaken(verifier, &late, &key, "localhost").unwrap_err();
            assert!(why.contains("UnsupportedCertVersion"), "expired: {why}");
        }
        // Who has its certificate and not its key is not it.
        for verifier in [trusts(), Verifier::anyone()] {
            let why = shaken(verifier, &own, &other, "localhost").unwrap_err();
            assert!(why.contains("BadSignature"), "{why}");
        }
        let stranger = old("localhost", 3001, &other);
        assert!(shaken(trusts(), &stranger, &other, "localhost").unwrap_err().contains("UnsupportedCertVersion"));
    }
}

#[test]
fn whose_certificate_is_old_shows_it_with_its_own_key_alone() {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let of = |key: &KeyPair| key.serialize_der().try_into().unwrap();
    let certificate = old("ann", 2099, &key);
    let shown = identity(vec![certificate.clone()], of(&key)).unwrap();
    assert_eq!(shown.cert, std::slice::from_ref(&certificate));
    let mismatch = rustls::Error::from(rustls::InconsistentKeys::KeyMismatch);
    assert_eq!(identity(vec![certificate], of(&other)).unwrap_err(), mismatch);
    let new = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
    assert!(identity(vec![new.der().clone()], of(&key)).is_ok());
    assert_eq!(identity(vec![new.der().clone()], of(&other)).unwrap_err(), mismatch);
    assert!(identity(vec![vec![0x30, 0x03, 0, 0, 0].into()], of(&key)).is_err());
    assert!(identity(Vec::new(), of(&key)).is_err());
}
