//! Real servers that speak TLS, with a certificate of the test's own.

use crate::servers::{PostgresServer, RedisServer, free_port};
use relent::Policy;
use relent_store::{Error, ErrorKind, Key, Replaced, Store, Version};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A certificate for `localhost`, which is its own authority, and its key.
fn certificate(folder: &Path) -> [PathBuf; 2] {
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=test", "-addext", "subjectAltName=DNS:localhost"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]).arg(&key).arg("-out").arg(&cert);
    let made = openssl.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(made.is_ok_and(|made| made.success()), "openssl comes with the servers");
    [cert, key]
}

async fn refused(url: &str) -> Error {
    let begin = Instant::now();
    let error =
        Store::open_with(url, Policy::constant(Duration::from_millis(20)).timeout(Duration::from_secs(5))).await;
    let error = error.expect_err(url);
    assert_eq!(error.kind(), ErrorKind::Refused, "{url}: {error:?}");
    assert!(begin.elapsed() < Duration::from_secs(3), "{url}: {:?}", begin.elapsed());
    error
}

async fn works(url: &str, name: &str) -> Store {
    let store = Store::open(url).await.unwrap_or_else(|err| panic!("{url}: {err:?} {:?}", err.hint_text()));
    let key = Key::new(name).unwrap();
    assert!(matches!(store.replace(&key, Version::ABSENT, Some(b"x")).await, Ok(Replaced::Replaced(_))), "{url}");
    // Who listens does so over TLS, too.
    let guard = store.lease(&key).acquire().await.unwrap();
    let begin = Instant::now();
    let patient = Policy::constant(Duration::from_secs(20)).jitter(relent::Jitter::None).max_attempts(3);
    let (next, ()) = tokio::join!(store.lease(&key).wait(patient).acquire(), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(guard);
    });
    drop(next.unwrap());
    assert!(begin.elapsed() < Duration::from_secs(10), "{url}: {:?}", begin.elapsed());
    store
}

#[tokio::test]
async fn postgres_is_asked_who_it_is() {
    let roots = tempfile::tempdir().unwrap();
    let (root, other) = (roots.path().join("a+b.pem"), tempfile::tempdir().unwrap());
    let [other, _] = certificate(other.path()).map(|path| path.display().to_string());
    let server = PostgresServer::start_with(|folder| {
        let [cert, key] = certificate(folder);
        std::fs::copy(&cert, &root).unwrap();
        let rules = folder.join("rules");
        std::fs::write(&rules, "hostnossl guarded all 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 trust\n").unwrap();
        vec![
            "ssl=on".into(),
            format!("ssl_cert_file={}", cert.display()),
            format!("ssl_key_file={}", key.display()),
            format!("hba_file={}", rules.display()),
        ]
    });
    let root = root.display();
    let plain = server.url();
    let guarded = |host: &str, query: &str| format!("postgres://relent@{host}:{}/guarded{query}", server.port);
    works(&plain, "plain").await;
    let (client, connection) = tokio_postgres::connect(&plain, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE DATABASE guarded").await.unwrap();

    let error = refused(&guarded("localhost", "")).await;
    assert!(error.hint_text().is_some_and(|hint| hint.contains("sslmode")), "{error:?}");
    works(&guarded("localhost", &format!("?sslmode=verify-full&sslrootcert={root}")), "full").await;
    works(&guarded("127.0.0.1", &format!("?sslmode=verify-ca&sslrootcert={root}")), "authority").await;
    let store = works(&guarded("127.0.0.1", "?sslmode=require"), "any").await;
    let seen = client.query_one("SELECT count(*) FROM pg_stat_ssl WHERE ssl", &[]).await.unwrap().get::<_, i64>(0);
    assert!(seen >= 1, "{seen}");
    drop(store);
    // A password is not said in plain text to one of several hosts.
    let mixed = format!("postgres://relent@%2Fnowhere,127.0.0.1:{}/guarded?sslmode=verify-full", server.port);
    let error = Store::open(&mixed).await.expect_err("one of them is asked without TLS");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.to_string().contains("a socket and a host"), "{error}");

    let error = refused(&guarded("127.0.0.1", &format!("?sslmode=verify-full&sslrootcert={root}"))).await;
    assert!(error.to_string().contains("certificate"), "another name: {error}");
    for query in [
        "?sslmode=verify-full".to_owned(),
        "?sslrootcert=system".to_owned(),
        format!("?sslmode=verify-full&sslrootcert={other}"),
        format!("?sslmode=verify-ca&sslrootcert={other}"),
        format!("?sslmode=require&sslrootcert={other}"),
    ] {
        let error = refused(&guarded("localhost", &query)).await;
        assert!(error.to_string().contains("certificate"), "{query}: {error}");
    }
    for (query, says) in [
        ("?sslmode=require&sslrootcert=system", "`sslrootcert=system` asks for more than the URL's `sslmode` looks at"),
        ("?sslmode=verify-full&sslmode=require", "the store's URL has the setting 'sslmode' twice, with two values"),
        ("?sslmode=prefer", "`sslmode=prefer` lets whoever is in between choose plain text"),
        (
            "?sslmode=require&sslrootcert=/dev/null",
            "the file of certificates /dev/null cannot be used: it is no regular file",
        ),
    ] {
        let error = Store::open(&guarded("localhost", query)).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, says.to_owned()));
    }
}

#[tokio::test]
async fn a_postgres_without_tls_is_not_talked_to_in_plain_text() {
    let server = PostgresServer::start();
    let error = refused(&format!("{}?sslmode=require", server.url())).await;
    assert_eq!(error.to_string(), "the Postgres server does not speak TLS");
}

#[tokio::test]
async fn redis_is_asked_who_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path()).map(|path| path.display().to_string());
    let port = free_port();
    let settings = ["--tls-port", &port.to_string(), "--tls-cert-file", &cert, "--tls-key-file", &key];
    let server = RedisServer::start(&[&settings[..], &["--tls-auth-clients", "no"]].concat());
    works(&format!("rediss://localhost:{port}/0?sslrootcert={cert}"), "full").await;
    let error = refused(&format!("rediss://127.0.0.1:{port}/0?sslrootcert={cert}")).await;
    assert!(error.to_string().contains("certificate"), "another name: {error}");
    let error = refused(&format!("rediss://localhost:{port}/0")).await;
    assert!(error.to_string().contains("certificate"), "an authority that nobody knows: {error}");
    // One that speaks no TLS there.
    let url = format!("rediss://localhost:{}/0", server.port);
    let hasty = Policy::constant(Duration::from_millis(20)).timeout(Duration::from_millis(500));
    let begin = Instant::now();
    assert!(Store::open_with(&url, hasty).await.is_err());
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

/// A server's certificate in the file of those that are trusted is itself, and signs for nobody.
#[tokio::test]
async fn a_trusted_server_signs_for_nobody() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [cert, key] = certificate(folder.path()).map(|path| path.display().to_string());
    let at = |name: &str| servers.path().join(name).display().to_string();
    let openssl = |args: &[&str]| {
        let made = Command::new("openssl").args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(made.is_ok_and(|made| made.success()), "openssl {args:?}");
    };
    std::fs::write(at("names"), "subjectAltName=DNS:localhost").unwrap();
    let new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x"];
    openssl(&[&new[..], &["-keyout", &at("key"), "-out", &at("asked")]].concat());
    let signer = ["-CA", &cert, "-CAkey", &key, "-CAcreateserial", "-days", "2", "-extfile", &at("names")];
    openssl(&[&["x509", "-req", "-in", &at("asked"), "-out", &at("cert")], &signer[..]].concat());
    let port = free_port();
    let settings = ["--tls-port", &port.to_string(), "--tls-cert-file", &at("cert"), "--tls-key-file", &at("key")];
    let _server = RedisServer::start(&[&settings[..], &["--tls-auth-clients", "no"]].concat());
    let error = refused(&format!("rediss://localhost:{port}/0?sslrootcert={cert}")).await;
    assert!(error.to_string().contains("the server's certificate is not to be trusted"), "{error}");
    works(&format!("rediss://localhost:{port}/0?sslrootcert={}", at("cert")), "itself").await;
}

/// What `openssl req -x509` makes unless told otherwise is an authority's, and says so in words, with the way out.
#[tokio::test]
async fn a_server_that_is_its_own_authority_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=test", "-addext", "subjectAltName=DNS:localhost"]);
    let made = openssl.args(["-keyout", &at("key"), "-out", &at("cert")]).stderr(Stdio::null()).status();
    assert!(made.is_ok_and(|made| made.success()), "openssl comes with the servers");
    let port = free_port();
    let settings = ["--tls-port", &port.to_string(), "--tls-cert-file", &at("cert"), "--tls-key-file", &at("key")];
    let _server = RedisServer::start(&[&settings[..], &["--tls-auth-clients", "no"]].concat());
    let error = refused(&format!("rediss://localhost:{port}/0")).await;
    assert!(error.to_string().ends_with("it is that of an authority, and not one that is trusted"), "{error}");
    assert!(error.hint_text().unwrap().contains("sslrootcert=FILE"), "{error:?}");
    works(&format!("rediss://localhost:{port}/0?sslrootcert={}", at("cert")), "own").await;
}

/// What `openssl x509 -req -signkey` makes says nothing but its common name.
#[tokio::test]
async fn a_server_of_version_1_is_believed_as_itself() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let openssl = |args: &[&str]| {
        let made = Command::new("openssl").args(args).stderr(Stdio::null()).status();
        assert!(made.is_ok_and(|made| made.success()), "openssl comes with the servers");
    };
    let (key, request, cert) = (at("key"), at("request"), at("cert"));
    openssl(&["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", &key, "-out", &request]);
    openssl(&["x509", "-req", "-in", &request, "-signkey", &key, "-out", &cert]);
    let port = free_port();
    let settings = ["--tls-port", &port.to_string(), "--tls-cert-file", &cert, "--tls-key-file", &key];
    let _server = RedisServer::start(&[&settings[..], &["--tls-auth-clients", "no"]].concat());
    let error = refused(&format!("rediss://localhost:{port}/0")).await;
    assert!(error.to_string().ends_with("it is of version 1, and not trusted as itself"), "{error}");
    assert!(error.hint_text().unwrap().contains("sslrootcert=FILE"), "{error:?}");
    works(&format!("rediss://localhost:{port}/0?sslrootcert={cert}"), "version 1").await;
    refused(&format!("rediss://127.0.0.1:{port}/0?sslrootcert={cert}")).await;
}
