//! Certificates of one's own, with a real nginx and the certificates that `openssl` makes.

use super::{Nginx, command, expect, finish, http};
use crate::{
    binary::{Folder, Outcome},
    http::server::{Reply, Server},
};
use std::{fs, process::Command};

/// `openssl` in a folder.
fn openssl(folder: &Folder, args: &str) {
    let output = Command::new("openssl").args(args.split(' ')).current_dir(folder.path()).output();
    let output = output.expect("there is no openssl: `cargo xtask test` installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const SELF_SIGNED: &str = "req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem";

const TLS: &str = "listen 127.0.0.1:PORT ssl; ssl_certificate cert.pem; ssl_certificate_key key.pem;";

fn nginx(request: &str, more: &str) -> Nginx {
    let folder = Folder::new().file("www/file", "secret\n");
    openssl(&folder, request);
    Nginx::start_in(folder, "", &format!("{TLS} {more}"))
}

fn flag(name: &str, folder: &Folder, file: &str) -> String {
    format!("--{name}={}", folder.path().join(file).display())
}

/// `relent http` where nothing that this server has is trusted.
fn distrustful(folder: &Folder, args: &[&str]) -> Outcome {
    let folder_of_its_own = Folder::new();
    fs::copy(folder.path().join("other.pem"), folder_of_its_own.path().join("other.pem")).unwrap();
    let mut all = vec!["http", "--max-attempts=2", "--base=5ms"];
    all.extend(args);
    let mut command = command(&folder_of_its_own, &all);
    command.env("SSL_CERT_FILE", "other.pem").env_remove("SSL_CERT_DIR");
    finish(command)
}

const OTHER: &str = "req -x509 -newkey rsa:2048 -nodes -subj /CN=other -keyout other.key -out other.pem";

#[test]
fn what_openssl_req_makes_is_trusted_when_it_is_named_with_and_without_a_name() {
    for more in ["", " -addext subjectAltName=DNS:localhost"] {
        let nginx = nginx(&format!("{SELF_SIGNED}{more}"), "");
        let trusted = flag("cacert", nginx.folder(), "cert.pem");
        expect(&http(&[&trusted, &nginx.tls_url("/file")]), 0, "secret\n", "");
        // That it is trusted says nothing about other names.
        let by_address = nginx.tls_url("/file").replace("localhost", "127.0.0.1");
        let outcome = http(&[&trusted, &by_address]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{more}: {}", outcome.stderr);
        let why = if more.is_empty() { "it is for no name" } else { "it is for another name, localhost" };
        assert!(outcome.stderr.contains(why), "{more}: {}", outcome.stderr);
    }
}

/// What `openssl x509 -req -signkey` makes has neither names nor anything else: it is of version 1.
#[test]
fn a_certificate_of_version_1_is_trusted_when_it_is_named() {
    let folder = Folder::new().file("www/file", "secret\n");
    openssl(&folder, "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out csr.pem");
    openssl(&folder, "x509 -req -in csr.pem -signkey key.pem -out cert.pem");
    openssl(&folder, OTHER);
    let nginx = Nginx::start_in(folder, "", TLS);
    let (trusted, url) = (flag("cacert", nginx.folder(), "cert.pem"), nginx.tls_url("/file"));
    expect(&http(&[&trusted, &url]), 0, "secret\n", "");
    expect(&distrustful(nginx.folder(), &["-k", &url]), 0, "secret\n", "");
    let outcome = http(&[&trusted, &url.replace("localhost", "127.0.0.1")]);
    assert!(outcome.stderr.contains("it is for another name, localhost"), "{}", outcome.stderr);
    let outcome = distrustful(nginx.folder(), &[&url]);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("it is of version 1, and not trusted as itself"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: --cacert FILE"), "{}", outcome.stderr);
}

#[test]
fn insecure_trusts_what_nothing_else_does() {
    let nginx = nginx(SELF_SIGNED, "");
    openssl(nginx.folder(), OTHER);
    let (folder, url) = (nginx.folder(), nginx.tls_url("/file"));
    let outcome = distrustful(folder, &[&url]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{}", outcome.stderr);
    let named_wrong = flag("cacert", folder, "other.pem");
    assert_eq!(distrustful(folder, &[&named_wrong, &url]).code, Some(3), "another one of the same kind is not it");
    for insecure in ["-k", "--insecure"] {
        expect(&distrustful(folder, &[insecure, &url]), 0, "secret\n", "");
    }
    expect(&distrustful(folder, &["-k", &url.replace("localhost", "127.0.0.1")]), 0, "secret\n", "");
}

const ASKS: &str = "ssl_client_certificate client.pem; ssl_verify_client on;";

/// A server that lets nobody in but the owner of one certificate, which is in two files and in one.
fn asking() -> Nginx {
    let folder = Folder::new().file("www/file", "secret\n");
    openssl(&folder, SELF_SIGNED);
    openssl(&folder, OTHER);
    openssl(&folder, "req -x509 -newkey rsa:2048 -nodes -subj /CN=client -keyout client.key -out client.pem");
    openssl(&folder, "pkey -in client.key -aes256 -passout pass:x -out locked.key");
    let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
    let both = format!("{}{}", read("client.key"), read("client.pem"));
    let folder = folder.file("both.pem", &both);
    Nginx::start_in(folder, "", &format!("{TLS} {ASKS}"))
}

#[test]
fn a_certificate_of_the_clients() {
    let nginx = asking();
    let (folder, url) = (nginx.folder(), nginx.tls_url("/file"));
    let trusted = flag("cacert", folder, "cert.pem");
    let (cert, key) = (flag("cert", folder, "client.pem"), flag("key", folder, "client.key"));
    expect(&http(&[&trusted, &cert, &key, &url]), 0, "secret\n", "");
    expect(&http(&[&trusted, &flag("cert", folder, "both.pem"), &url]), 0, "secret\n", "");
    expect(&http(&[&trusted, "-E", &path(folder, "both.pem"), "-k", &url]), 0, "secret\n", "");
    // Without it, and with a stranger's, nginx answers 400.
    for args in [vec![], vec![flag("cert", folder, "other.pem"), flag("key", folder, "other.key")]] {
        let args: Vec<&str> =
            [trusted.as_str()].into_iter().chain(args.iter().map(String::as_str)).chain([url.as_str()]).collect();
        let outcome = http(&args);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("400 Bad Request"), "{}", outcome.stderr);
    }
    // Whoever a redirect names does not see it.
    let elsewhere = Server::new(vec![Reply::new(302, &[&format!("Location: {url}")], "")]);
    let outcome = http(&[&trusted, &cert, &key, "-L", &elsewhere.url("/")]);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("400 Bad Request"), "{}", outcome.stderr);
    // Nor does a proxy.
    let outcome = http(&[&trusted, &cert, &key, "-x", "https://127.0.0.1:1", &url]);
    assert!(outcome.stderr.starts_with("error: --cert: the certificate would be shown to the proxy"), "{outcome:?}");
}

/// What `openssl x509 -req` makes, without extensions.
#[test]
fn a_certificate_of_the_clients_may_be_of_version_1() {
    let folder = Folder::new().file("www/file", "secret\n");
    for request in [
        SELF_SIGNED,
        OTHER,
        "req -x509 -newkey rsa:2048 -nodes -subj /CN=ca -keyout ca.key -out client.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=ann -keyout ann.key -out ann.csr",
        "x509 -req -in ann.csr -CA client.pem -CAkey ca.key -set_serial 7 -out ann.pem",
    ] {
        openssl(&folder, request);
    }
    let nginx = Nginx::start_in(folder, "", &format!("{TLS} {ASKS}"));
    let (folder, url) = (nginx.folder(), nginx.tls_url("/file"));
    let (trusted, cert) = (flag("cacert", folder, "cert.pem"), flag("cert", folder, "ann.pem"));
    expect(&http(&[&trusted, &cert, &flag("key", folder, "ann.key"), &url]), 0, "secret\n", "");
    let outcome = http(&[&trusted, &cert, &flag("key", folder, "other.key"), &url]);
    assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("must belong together"), "{}", outcome.stderr);
}

fn path(folder: &Folder, file: &str) -> String {
    folder.path().join(file).display().to_string()
}

#[test]
fn a_key_that_does_not_fit_is_told_before_anything_is_sent() {
    let folder = Folder::new();
    openssl(&folder, OTHER);
    openssl(&folder, "req -x509 -newkey rsa:2048 -nodes -subj /CN=client -keyout client.key -out client.pem");
    openssl(&folder, "pkey -in client.key -aes256 -passout pass:x -out locked.key");
    let says = |args: &[&str], words: &[&str]| {
        let mut all = vec!["http"];
        all.extend(args);
        all.push("https://localhost:1/");
        let outcome = crate::http::run(&folder, &all);
        assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
        for word in words {
            assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
        }
        assert!(!outcome.stderr.contains("Error"), "no debug text: {}", outcome.stderr);
    };
    says(&["--cert=client.pem", "--key=other.key"], &["must belong together"]);
    says(&["--cert=client.pem"], &["client.pem has no key that can be read"]);
    says(&["--cert=client.pem", "--key=locked.key"], &["locked.key has no key", "openssl pkey"]);
    says(&["--cert=client.key"], &["client.key has no certificate in it"]);
    says(&["--cert=none.pem"], &["cannot read none.pem: No such file"]);
    says(&["--key=client.key"], &["--cert"]);
}
