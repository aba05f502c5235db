use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, date_time_ymd as day,
};

const CA: IsCa = IsCa::Ca(BasicConstraints::Unconstrained);

/// The settings of a certificate that is called so, for these names, valid for long.
fn params(common_name: &str, names: &[&str], is_ca: IsCa) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.is_ca, params.not_before, params.not_after) = (is_ca, day(2001, 1, 1), day(3001, 1, 1));
    params
}

fn ends(mut params: CertificateParams, year: i32) -> CertificateParams {
    params.not_after = day(year, 1, 1);
    params
}

fn own(params: CertificateParams) -> CertificateDer<'static> {
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
}

/// An authority of these settings, and what it signed for `localhost`.
fn signed_by(params: CertificateParams) -> [CertificateDer<'static>; 2] {
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().der().clone();
    let server = self::params("localhost", &["localhost"], IsCa::NoCa);
    let signed = server.signed_by(&KeyPair::generate().unwrap(), &Issuer::new(params, key)).unwrap();
    [authority, signed.der().clone()]
}

/// What there is to say against it, as the server of this name.
fn against(verifier: &Verifier, certificate: &CertificateDer<'_>, name: &str) -> Option<CertificateError> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    match verifier.verify_server_cert(certificate, &[], &name, &[], UnixTime::now()) {
        Ok(_) => None,
        Err(rustls::Error::InvalidCertificate(why)) => Some(why),
        Err(other) => panic!("{other}"),
    }
}

fn is_believed(verifier: &Verifier, certificate: &CertificateDer<'_>, name: &str) -> bool {
    against(verifier, certificate, name).is_none()
}

/// A server's certificate that is trusted, and an authority whose time is not now, sign for nobody.
#[test]
fn only_authorities_of_today_sign_for_others() {
    let critical = |id: &[u64], content: Vec<u8>, is_ca| {
        let mut params = params("who signs", &[], is_ca);
        let mut extension = CustomExtension::from_oid_content(id, content);
        extension.set_criticality(true);
        params.custom_extensions.push(extension);
        params
    };
    let inhibits = |is_ca| critical(&[2, 5, 29, 54], vec![2, 1, 2], is_ca);
    let early = |mut params: CertificateParams| {
        params.not_before = day(3000, 1, 1);
        params
    };
    let with_uses = |is_ca, uses: &[KeyUsagePurpose]| {
        let mut params = params("who signs", &[], is_ca);
        params.key_usages = uses.to_vec();
        params
    };
    let with_purpose = |purpose| {
        let mut params = params("who signs", &[], CA);
        params.extended_key_usages = vec![purpose];
        params
    };
    for (what, params, is_one) in [
        ("an authority", params("who signs", &[], CA), true),
        ("with a limit", params("who signs", &[], IsCa::Ca(BasicConstraints::Constrained(0))), true),
        ("inhibitAnyPolicy", inhibits(CA), true),
        ("policyConstraints", critical(&[2, 5, 29, 36], vec![0x30, 3, 0x80, 1, 3], CA), true),
        ("an extension of one's own", critical(&[1, 3, 6, 1, 4, 1, 99999, 1], vec![5, 0], CA), true),
        ("a long path", critical(&[2, 5, 29, 19], vec![0x30, 7, 1, 1, 0xff, 2, 2, 1, 44], IsCa::NoCa), true),
        ("no path, a long one", critical(&[2, 5, 29, 19], vec![0x30, 7, 1, 1, 0, 2, 2, 1, 44], IsCa::NoCa), false),
        ("expired", ends(params("who signs", &[], CA), 2002), false),
        ("not valid yet", early(params("who signs", &[], CA)), false),
        ("expired, inhibitAnyPolicy", ends(inhibits(CA), 2002), false),
        ("not valid yet, inhibitAnyPolicy", early(inhibits(CA)), false),
        ("a server's", params("who signs", &["other.example"], IsCa::NoCa), false),
        ("a server's, which says so", params("who signs", &["other.example"], IsCa::ExplicitNoCa), false),
        ("a server's, inhibitAnyPolicy", inhibits(IsCa::ExplicitNoCa), false),
        ("a key that signs", with_uses(IsCa::NoCa, &[KeyUsagePurpose::KeyCertSign]), true),
        ("an authority's key that signs", with_uses(CA, &[KeyUsagePurpose::KeyCertSign]), true),
        ("an authority's key for something else", with_uses(CA, &[KeyUsagePurpose::DigitalSignature]), false),
        ("a server's key", with_uses(IsCa::NoCa, &[KeyUsagePurpose::DigitalSignature]), false),
        ("for servers", with_purpose(ExtendedKeyUsagePurpose::ServerAuth), true),
        ("for anything", with_purpose(ExtendedKeyUsagePurpose::Any), true),
        ("for mails", with_purpose(ExtendedKeyUsagePurpose::EmailProtection), false),
    ] {
        let [authority, signed] = signed_by(params);
        let verifier = Verifier::of(vec![authority]);
        assert_eq!(is_believed(&verifier, &signed, "localhost"), is_one, "{what}");
        assert_eq!(is_believed(&verifier.for_any_name(), &signed, "other.example"), is_one, "{what}");
    }
}

#[test]
fn who_is_trusted_is_so_for_its_own_name_and_time() {
    for (is_ca, what) in [(CA, "an authority, too"), (IsCa::NoCa, "a server's"), (IsCa::ExplicitNoCa, "no authority")] {
        let server = own(params("x", &["localhost"], is_ca));
        let verifier = Verifier::of(vec![server.clone()]);
        assert!(is_believed(&verifier, &server, "localhost"), "{what}");
        assert!(!is_believed(&verifier, &server, "other.example"), "{what}");
        assert!(is_believed(&verifier.for_any_name(), &server, "other.example"), "{what}");
        let late = own(ends(params("x", &["localhost"], is_ca), 2002));
        let verifier = Verifier::of(vec![late.clone()]);
        for verifier in [Verifier::of(vec![late.clone()]).for_any_name(), verifier] {
            assert!(!is_believed(&verifier, &late, "localhost"), "{what}, expired");
        }
    }
}

/// One without names is for its common name, if it is trusted itself; of others' nobody knows what they signed it for.
#[test]
fn a_common_name_is_one_where_there_is_no_other() {
    let old = own(params("db.example", &[], IsCa::NoCa));
    let verifier = Verifier::of(vec![old.clone()]);
    assert!(is_believed(&verifier, &old, "db.example") && is_believed(&verifier, &old, "DB.example"));
    assert!(!is_believed(&verifier, &old, "b.example") && !is_believed(&verifier, &old, "db.example.com"));
    let mut mailed = params("db.example", &[], IsCa::NoCa);
    mailed.subject_alt_names.push(rcgen::SanType::Rfc822Name("ann@db.example".try_into().unwrap()));
    let mailed = own(mailed);
    assert!(is_believed(&Verifier::of(vec![mailed.clone()]), &mailed, "db.example"));
    let named = own(params("db.example", &["localhost"], IsCa::NoCa));
    assert!(!is_believed(&Verifier::of(vec![named.clone()]), &named, "db.example"));
    let key = KeyPair::generate().unwrap();
    let authority = params("who signs", &[], CA);
    let root = authority.self_signed(&key).unwrap().der().clone();
    let signed = params("db.example", &[], IsCa::NoCa)
        .signed_by(&KeyPair::generate().unwrap(), &Issuer::new(authority, key))
        .unwrap();
    assert!(!is_believed(&Verifier::of(vec![root]), signed.der(), "db.example"));
}

/// Who is trusted itself is so whoever signed it, and with what: here another who has the same name, with another kind of key.
#[test]
fn what_is_trusted_itself_needs_no_signature() {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate_for(&PKCS_ED25519).unwrap());
    let signer = Issuer::new(params("localhost", &[], CA), other);
    let server = params("localhost", &["localhost"], IsCa::NoCa).signed_by(&key, &signer).unwrap().der().clone();
    assert!(is_believed(&Verifier::of(vec![server.clone()]), &server, "localhost"));
    assert!(!is_believed(&Verifier::of(Vec::new()), &server, "localhost"));
}

/// A server's certificate for `localhost`, behind a root and authorities below it, of these settings: the root, and what the server sends.
fn chain(settings: &[CertificateParams]) -> (CertificateDer<'static>, Vec<CertificateDer<'static>>) {
    let key = KeyPair::generate().unwrap();
    let root = settings[0].self_signed(&key).unwrap().der().clone();
    let (mut signer, mut sent) = (Issuer::new(settings[0].clone(), key), Vec::new());
    for params in settings[1..].iter().cloned() {
        let key = KeyPair::generate().unwrap();
        sent.insert(0, params.signed_by(&key, &signer).unwrap().der().clone());
        signer = Issuer::new(params, key);
    }
    let server = params("localhost", &["localhost"], IsCa::NoCa);
    sent.insert(0, server.signed_by(&KeyPair::generate().unwrap(), &signer).unwrap().der().clone());
    (root, sent)
}

/// Some servers send all authorities that they know; of so many that may be on the way nobody tries all ways.
#[test]
fn however_many_certificates_come_with_one_no_more_are_looked_at_than_a_chain_has() {
    let (root, sent) = chain(&["root", "a", "b"].map(|name| params(name, &[], CA)));
    let verifier = Verifier::of(vec![root]);
    let judged = |others: Vec<CertificateDer<'static>>| {
        let all = [others, sent[1..].to_vec()].concat();
        let name = ServerName::try_from("localhost").unwrap();
        verifier.verify_server_cert(&sent[0], &all, &name, &[], UnixTime::now()).map(|_| ())
    };
    let many = |count: usize, name: &dyn Fn(usize) -> String| {
        let made = (0..count).map(|nth| own(params(&name(nth), &[], CA)));
        made.collect::<Vec<CertificateDer<'static>>>()
    };
    assert_eq!(judged(many(60, &|nth| format!("somebody {nth}"))), Ok(()));
    assert_eq!(judged(many(3, &|_| "a".to_owned())), Ok(()));
    let Err(rustls::Error::InvalidCertificate(wrong)) = judged(many(20, &|_| "a".to_owned())) else { panic!() };
    assert_eq!(Flaw::of(&wrong), Some(Flaw::TooMany));
}

/// Who is believed to sign for servers alone has not let those whom it signed sign for anybody.
#[test]
fn no_more_authorities_stand_below_one_than_it_says() {
    let of = |name: &str, is_ca| params(name, &[], is_ca);
    let limited = |name: &str, most| of(name, IsCa::Ca(BasicConstraints::Constrained(most)));
    let written = |pathlen: &[u8]| {
        let mut params = of("root", IsCa::NoCa);
        let says = [&[0x30, 3 + 2 + pathlen.len() as u8, 1, 1, 0xff, 2, pathlen.len() as u8], pathlen].concat();
        params.custom_extensions.push(CustomExtension::from_oid_content(&[2, 5, 29, 19], says));
        params
    };
    let with_use = |usage| {
        let mut params = of("a", CA);
        params.key_usages = vec![usage];
        params
    };
    for (what, authorities, is_one) in [
        ("nothing is said", vec![of("root", CA), of("a", CA), of("b", CA)], true),
        ("none, and there is none", vec![limited("root", 0)], true),
        ("none, and there is one", vec![limited("root", 0), of("a", CA)], false),
        ("one, and there is one", vec![limited("root", 1), of("a", CA)], true),
        ("one, and there are two", vec![limited("root", 1), of("a", CA), of("b", CA)], false),
        ("two, and there are two", vec![limited("root", 2), of("a", CA), of("b", CA)], true),
        ("the one below says none", vec![of("root", CA), limited("a", 0), of("b", CA)], false),
        ("many", vec![written(&[1, 44]), of("a", CA), of("b", CA)], true),
        ("more than anybody counts", vec![written(&[127; 20]), of("a", CA)], true),
        ("a number below none", vec![written(&[0xff])], false),
        ("no number", vec![written(&[])], false),
        // Who signed itself anew, with another key, is the same authority.
        ("itself anew", vec![limited("root", 0), of("root", CA)], true),
        ("itself anew, and one", vec![limited("root", 0), of("root", CA), of("a", CA)], false),
        ("a key that signs", vec![of("root", CA), with_use(KeyUsagePurpose::KeyCertSign)], true),
        ("a key for something else", vec![of("root", CA), with_use(KeyUsagePurpose::DigitalSignature)], false),
    ] {
        let (root, sent) = chain(&authorities);
        let name = ServerName::try_from("localhost").unwrap();
        for verifier in [Verifier::of(vec![root.clone()]), Verifier::of(vec![root.clone()]).for_any_name()] {
            let judged = verifier.verify_server_cert(&sent[0], &sent[1..], &name, &[], UnixTime::now());
            assert_eq!(judged.is_ok(), is_one, "{what}: {judged:?}");
        }
        // Who is believed as an authority needs nobody above.
        if let [_, signer, ..] = &sent[..] {
            let verifier = Verifier::of(vec![root, signer.clone()]);
            let judged = verifier.verify_server_cert(&sent[0], &sent[1..], &name, &[], UnixTime::now());
            assert_eq!(judged.is_ok(), what != "a key for something else", "{what}, believed itself: {judged:?}");
        }
    }
}

#[test]
fn of_two_ways_to_one_that_is_trusted_either_will_do() {
    let (limited, free) = (IsCa::Ca(BasicConstraints::Constrained(0)), CA);
    let key = KeyPair::generate().unwrap();
    let root = |is_ca| params("root", &[], is_ca);
    let [strict, loose] = [root(limited), root(free)].map(|root| root.self_signed(&key).unwrap().der().clone());
    let (signer, between) = (Issuer::new(root(CA), key), KeyPair::generate().unwrap());
    let sent = params("a", &[], CA).signed_by(&between, &signer).unwrap().der().clone();
    let below = Issuer::new(params("a", &[], CA), between);
    let server = params("localhost", &["localhost"], IsCa::NoCa);
    let server = server.signed_by(&KeyPair::generate().unwrap(), &below).unwrap().der().clone();
    let judged = |believed: &[&CertificateDer<'static>]| {
        let verifier = Verifier::of(believed.iter().map(|one| (*one).clone()).collect());
        let name = ServerName::try_from("localhost").unwrap();
        verifier.verify_server_cert(&server, std::slice::from_ref(&sent), &name, &[], UnixTime::now()).map(drop)
    };
    for both in [[&strict, &loose], [&loose, &strict]] {
        assert_eq!(judged(&both), Ok(()));
    }
    let Err(rustls::Error::InvalidCertificate(why)) = judged(&[&strict]) else { panic!("it may sign servers alone") };
    assert_eq!(Flaw::of(&why), Some(Flaw::Signers));
}

#[test]
fn strangers_are_believed_by_who_believes_anyone() {
    let stranger = own(ends(params("x", &["other.example"], IsCa::NoCa), 2002));
    assert!(is_believed(&Verifier::anyone(), &stranger, "localhost"));
    let [_, signed] = signed_by(params("who signs", &[], CA));
    let [authority, _] = signed_by(params("another", &[], CA));
    let strict = Verifier::of(vec![authority.clone()]);
    assert_eq!(against(&strict, &signed, "localhost"), Some(CertificateError::UnknownIssuer));
    assert_eq!(against(&strict.for_any_name(), &signed, "localhost"), Some(CertificateError::UnknownIssuer));
    assert_eq!(Verifier::of(vec![authority.clone()]).certificates().as_ref(), [authority]);
    assert!(Verifier::anyone().certificates().is_empty());
}

#[test]
fn garbage_is_an_error_and_believes_nobody() {
    for bytes in [&[][..], &[0; 3], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30; 200]] {
        let garbage = CertificateDer::from(bytes.to_vec());
        assert!(!is_readable(&garbage));
        let server = own(params("x", &["localhost"], IsCa::NoCa));
        let verifier = Verifier::of(vec![garbage.clone()]);
        assert!(!is_believed(&verifier, &server, "localhost"));
        assert!(!is_believed(&verifier.for_any_name(), &garbage, "localhost"));
    }
}
