//! `relent connect` to what speaks TLS, with certificates of the tests' own.

use crate::binary::{Folder, Outcome, relent};
use std::{io::Write, net::TcpListener, thread};

/// A server that answers in TLS is there when the handshake is done, and one that does not is not.
#[test]
fn a_handshake_is_the_check() {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = Folder::new().file("ca.pem", &signed.cert.pem()).file("empty.pem", "none");
    let port = shakes_hands(&signed.cert, &signed.signing_key);
    let at = |host: &str| format!("https://{host}:{port}/");
    let connect =
        |flags: &[&str]| folder.relent(&[&["connect", "--base", "1ms", "--max-attempts", "2"], flags].concat());
    let trusted = connect(&["--cacert", "ca.pem", &at("localhost")]);
    assert_eq!((trusted.stderr.as_str(), trusted.code), ("", Some(0)));
    assert_eq!(connect(&["-k", &at("127.0.0.1")]).code, Some(0));
    let stranger = connect(&[&at("localhost")]);
    assert_eq!(stranger.code, Some(1));
    assert!(stranger.stderr.contains("its certificate is signed by nobody we trust"), "{}", stranger.stderr);
    let other = connect(&["--cacert", "ca.pem", &at("127.0.0.1")]);
    assert!(other.stderr.contains("its certificate is for another name"), "{}", other.stderr);
    let none = connect(&["--cacert", "empty.pem", &at("localhost")]);
    assert_eq!((none.stderr.lines().next(), none.code), (Some("error: empty.pem has no certificate in it"), Some(125)));
}

/// Certificates are read and believed as by `relent http`.
#[test]
fn authorities_are_those_of_http() {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let itself = params.self_signed(&key).unwrap();
    let broken = format!("{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", itself.pem());
    let folder = Folder::new().file("itself.pem", &itself.pem()).file("broken.pem", &broken);
    let port = shakes_hands(&itself, &key);
    let connect = |file: &str, host: &str| {
        folder.relent(&["connect", "--max-attempts=1", "--cacert", file, &format!("tls://{host}:{port}")])
    };
    let trusted = connect("itself.pem", "localhost");
    assert_eq!((trusted.stderr.as_str(), trusted.code), ("", Some(0)), "an authority that is the server, too");
    let other = connect("itself.pem", "127.0.0.1");
    assert!(other.stderr.contains("its certificate is for another name"), "{}", other.stderr);
    let hint = "hint: --cacert wants certificates in PEM: -----BEGIN CERTIFICATE-----\n";
    let refused = connect("broken.pem", "localhost");
    let why = format!("error: broken.pem has a certificate that cannot be read\n{hint}");
    assert_eq!((refused.stderr, refused.code), (why, Some(125)));
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let pem = itself.pem();
    let writer = thread::spawn(move || std::fs::write(pipe, pem));
    // Until the writer is there, nobody is.
    let is_early = |outcome: &Outcome| outcome.stderr.contains("a pipe that nobody writes to");
    let piped = (0..1000).map(|_| connect("pipe", "localhost")).find(|outcome| !is_early(outcome)).unwrap();
    // Whoever reads the pipe lets the writer go, whatever comes of it.
    assert_eq!((piped.stderr.as_str(), piped.code), ("", Some(0)), "of a pipe");
    writer.join().unwrap().unwrap();
}

/// Certificates that are of another time or name, whatever else is right with them.
#[test]
fn certificates_of_another_time_or_name() {
    let day = rcgen::date_time_ymd;
    for (names, from, to, why) in [
        (&["localhost"][..], day(2001, 1, 1), day(2002, 1, 1), "its certificate has expired"),
        (&["localhost"], day(3001, 1, 1), day(3002, 1, 1), "its certificate is not valid"),
        (&["other.example"], day(2001, 1, 1), day(3002, 1, 1), "its certificate is for another name"),
        (&["*"], day(2001, 1, 1), day(3002, 1, 1), "its certificate is for another name"),
        (&["localhost.example"], day(2001, 1, 1), day(3002, 1, 1), "its certificate is for another name"),
        (&["127.0.0.1"], day(2001, 1, 1), day(3002, 1, 1), "its certificate is for another name"),
        (&[], day(2001, 1, 1), day(3002, 1, 1), "its certificate is for another name"),
        (&["localhost"], day(2001, 1, 1), day(3002, 1, 1), ""),
    ] {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names.clone()).unwrap();
        (params.not_before, params.not_after) = (from, to);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = Folder::new().file("ca.pem", &certificate.pem());
        let port = shakes_hands(&certificate, &key);
        let url = format!("https://localhost:{port}/");
        let outcome = folder.relent(&["connect", "--max-attempts=1", "--cacert", "ca.pem", &url]);
        let exit = if why.is_empty() { 0 } else { 1 };
        assert_eq!(outcome.code, Some(exit), "{names:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(why), "{names:?}: {}", outcome.stderr);
        assert_eq!(folder.relent(&["connect", "-k", &url]).code, Some(0), "{names:?}: with -k any will do");
    }
}

/// What is in the file of authorities and is none, or whose time is not now, signs for nobody.
#[test]
fn only_authorities_of_today_sign_for_others() {
    let day = rcgen::date_time_ymd;
    let is_one = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    for (is_ca, from, to, is_taken) in [
        (is_one, day(2001, 1, 1), day(3002, 1, 1), true),
        // With the critical extension inhibitAnyPolicy, as authorities of states have it.
        (rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(7)), day(2001, 1, 1), day(3002, 1, 1), true),
        (is_one, day(2001, 1, 1), day(2002, 1, 1), false),
        (is_one, day(3001, 1, 1), day(3002, 1, 1), false),
        (rcgen::IsCa::NoCa, day(2001, 1, 1), day(3002, 1, 1), false),
        (rcgen::IsCa::ExplicitNoCa, day(2001, 1, 1), day(3002, 1, 1), false),
    ] {
        let mut params = rcgen::CertificateParams::new(vec!["other.example".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "who signs");
        (params.is_ca, params.not_before, params.not_after) = (is_ca, from, to);
        if is_ca == rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(7)) {
            let mut inhibits = rcgen::CustomExtension::from_oid_content(&[2, 5, 29, 54], vec![2, 1, 2]);
            inhibits.set_criticality(true);
            params.custom_extensions.push(inhibits);
        }
        let key = rcgen::KeyPair::generate().unwrap();
        let folder = Folder::new().file("ca.pem", &params.self_signed(&key).unwrap().pem());
        let signer = rcgen::Issuer::new(params, key);
        let key = rcgen::KeyPair::generate().unwrap();
        let signed =
            rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &signer).unwrap();
        let url = format!("https://localhost:{}/", shakes_hands(&signed, &key));
        for flags in [&["--cacert", "ca.pem"][..], &[]] {
            let args = [&["connect", "--max-attempts=1", &url][..], flags].concat();
            let mut command = folder.command(&args);
            if flags.is_empty() {
                command.env("SSL_CERT_FILE", folder.path().join("ca.pem"));
            }
            let output = command.output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            let what = format!("{is_ca:?} {from} {flags:?}: {stderr}");
            assert_eq!(output.status.code(), Some(if is_taken { 0 } else { 1 }), "{what}");
            assert_eq!(stderr.contains("its certificate is signed by nobody we trust"), !is_taken, "{what}");
        }
    }
}

/// The port of a server that does nothing but handshakes with this certificate.
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
fn shakes_hands(certificate: &rcgen::Certificate, key: &rcgen::KeyPair) -> u16 {
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
    let config =
        rustls::ServerConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
    let config = std::sync::Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut session = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = stream.unwrap();
            // A client that trusts nobody breaks the handshake off.
            while session.is_handshaking() && session.complete_io(&mut stream).is_ok() {}
        }
    });
    port
}

/// What accepts and says nothing, or something else, is not there yet.
#[test]
fn a_server_that_does_not_speak_tls_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("tls://{}", listener.local_addr().unwrap());
    let outcome = relent(&["connect", "-k", "--max-attempts", "1", "--attempt-timeout", "200ms", &silent]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("timed out"), "{}", outcome.stderr);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("tls://{}", other.local_addr().unwrap());
    thread::spawn(move || Write::write_all(&mut other.accept().unwrap().0, b"220 smtp ready\r\n").unwrap());
    let outcome = relent(&["connect", "-k", "--max-attempts", "1", &target]);
    assert!(outcome.stderr.contains("it does not speak TLS"), "{}", outcome.stderr);
}
