//! Against a real nginx: what it answers when it limits, when its upstream is down, over TLS and HTTP/2, cut and packed.

mod own_certificates;

use super::{
    command, expect, filtered, finish, http, http_in,
    nginx::Nginx,
    server::{Reply, Server, free_port},
};
use crate::binary::{Folder, Outcome};
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    thread,
    time::{Duration, Instant},
};

const PLAIN: &str = "listen 127.0.0.1:PORT;";

#[test]
fn limit_req_answers_429_with_retry_after() {
    let nginx = Nginx::start(
        "limit_req_zone $binary_remote_addr zone=one:1m rate=60r/m;",
        "listen 127.0.0.1:PORT; limit_req_status 429; error_page 429 = @busy;
         location / { limit_req zone=one; return 200 'served\n'; }
         location = /page { limit_req zone=one; try_files /page.html =404; }
         location @busy { add_header Retry-After 1 always; return 429 'slow down\n'; }",
    );
    fs::write(nginx.folder().path().join("www/page.html"), "served\n").unwrap();
    expect(&http(&[&nginx.url("/page")]), 0, "served\n", "");
    let began = Instant::now();
    let outcome = http(&[&nginx.url("/page")]);
    let stderr = "\
relent: attempt 1 of 4: 429 Too Many Requests, told to wait 1s (Retry-After: 1); next in 1s
relent: succeeded after 2 attempts in TIME
";
    expect(&outcome, 0, "served\n", stderr);
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(nginx.log(3).len(), 3, "the attempts told are the attempts made");
}

#[test]
fn limit_req_answers_503() {
    let nginx = Nginx::start(
        "limit_req_zone $binary_remote_addr zone=one:1m rate=60r/m;",
        "listen 127.0.0.1:PORT; add_header Retry-After-Ms 300 always;
         location = /page { limit_req zone=one; try_files /page.html =404; }",
    );
    fs::write(nginx.folder().path().join("www/page.html"), "served\n").unwrap();
    expect(&http(&[&nginx.url("/page")]), 0, "served\n", "");
    let outcome = http(&["--max-attempts=10", &nginx.url("/page")]);
    let retries = outcome.stderr.lines().count() - 1;
    assert!(retries > 0, "the second was not limited: {}", outcome.stderr);
    let why = "503 Service Unavailable, told to wait 300ms (Retry-After-Ms: 300); next in 300ms";
    let mut stderr: String = (1..=retries).map(|k| format!("relent: attempt {k} of 10: {why}\n")).collect();
    stderr.push_str(&format!("relent: succeeded after {} attempts in TIME\n", retries + 1));
    expect(&outcome, 0, "served\n", &stderr);
    assert_eq!(nginx.log(retries + 2).len(), retries + 2, "the attempts told are the attempts made");
}

#[test]
fn an_upstream_that_is_down() {
    let upstream = free_port();
    let nginx = Nginx::start("", &format!("{PLAIN} location / {{ proxy_pass http://127.0.0.1:{upstream}; }}"));
    let outcome = http(&["--max-attempts=2", &nginx.url("/")]);
    let stderr = "\
relent: attempt 1 of 2: 502 Bad Gateway, transient; next in 10ms
error: gave up after 2 attempts in TIME: out of attempts (502 Bad Gateway)
hint: --max-attempts gives it more
";
    expect(&outcome, 1, "", stderr);
    // It comes back.
    let server = Server::on(TcpListener::bind(("127.0.0.1", upstream)).unwrap(), |_, _| Reply::ok("up\n"));
    expect(&http(&["-q", &nginx.url("/")]), 0, "up\n", "");
    assert_eq!(server.count(), 1);
}

#[test]
fn an_upstream_that_is_slow() {
    let upstream = Server::with(|k, _| match k {
        0 => Reply::ok("late").late(Duration::from_secs(20)),
        _ => Reply::ok("in time\n"),
    });
    let location =
        format!("{PLAIN} location / {{ proxy_read_timeout 400ms; proxy_pass http://{}; }}", upstream.address());
    let nginx = Nginx::start("", &location);
    let stderr = "\
relent: attempt 1 of 4: 504 Gateway Timeout, transient; next in 10ms
relent: succeeded after 2 attempts in TIME
";
    let outcome = http(&[&nginx.url("/")]);
    expect(&outcome, 0, "in time\n", stderr);
}

#[test]
fn a_truncated_body() {
    let upstream = Server::new(vec![Reply::ok("0123456789").cut(5), Reply::ok("0123456789")]);
    let location = format!("{PLAIN} location / {{ proxy_pass http://{}; }}", upstream.address());
    let nginx = Nginx::start("", &location);
    let stderr = "\
relent: attempt 1 of 4: the body ended early, after 5 of 10 bytes, transient; next in 10ms
relent: succeeded after 2 attempts in TIME
";
    expect(&http(&[&nginx.url("/")]), 0, "0123456789", stderr);
}

#[test]
fn a_download_that_is_cut_goes_on() {
    let nginx = Nginx::start("", PLAIN);
    let body: String = (0..100_000).map(|i| format!("{i:07}\n")).collect();
    fs::write(nginx.folder().path().join("www/file"), &body).unwrap();
    let cutter = cutter(nginx.port(), 300_000);
    let folder = Folder::new();
    let outcome = http_in(&folder, &["-o", "file", &format!("http://127.0.0.1:{cutter}/file")]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("relent: attempt 1 of 4: the body ended early, after "), "{}", outcome.stderr);
    assert!(folder.read("file") == body);
    let log = nginx.log(2);
    assert!(log[log.len() - 1].starts_with("HTTP/1.1 206 "), "nginx took the range: {log:?}");
}

/// Passes connections on to a port, and resets the first after this many bytes of the answer.
fn cutter(port: u16, after: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (k, client) in listener.incoming().map_while(Result::ok).enumerate() {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let limit = if k == 0 { after } else { usize::MAX };
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            thread::spawn(move || pass(server, client, limit));
        }
    });
    own
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut left: usize) {
    let mut piece = [0; 16_384];
    while left > 0 {
        let most = left.min(piece.len());
        match from.read(&mut piece[..most]) {
            Ok(read @ 1..) => {
                left -= read;
                if to.write_all(&piece[..read]).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
    // What was sent must arrive before the end does.
    thread::sleep(Duration::from_millis(50));
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn gzip() {
    let nginx = Nginx::start("gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;", PLAIN);
    let body = "the same line\n".repeat(1000);
    fs::write(nginx.folder().path().join("www/file"), &body).unwrap();
    expect(&http(&["--compressed", &nginx.url("/file")]), 0, &body, "");
    expect(&http(&[&nginx.url("/file")]), 0, &body, "");
    assert_eq!(nginx.log(2), ["HTTP/1.1 200 gzip", "HTTP/1.1 200 -"]);
}

/// A certificate authority and a server's certificate of it, as files.
fn certificates(folder: Folder, names: &[&str], days: i64) -> Folder {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("the authority of {}", names.join(" ")));
    let authority = params.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(params, key);
    let server_key = rcgen::KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut server = rcgen::CertificateParams::new(names).unwrap();
    server.not_before = rcgen::date_time_ymd(2020, 1, 1);
    server.not_after = if days < 0 { rcgen::date_time_ymd(2021, 1, 1) } else { rcgen::date_time_ymd(4000, 1, 1) };
    let certificate = server.signed_by(&server_key, &issuer).unwrap();
    folder
        .file("ca.pem", &authority.pem())
        .file("cert.pem", &certificate.pem())
        .file("key.pem", &server_key.serialize_pem())
}

const TLS: &str = "listen 127.0.0.1:PORT ssl http2; ssl_certificate cert.pem; ssl_certificate_key key.pem;";

fn tls_nginx(names: &[&str], days: i64) -> Nginx {
    let folder = certificates(Folder::new(), names, days).file("www/file", "secret\n");
    Nginx::start_in(folder, "", TLS)
}

/// `relent http` in a world that trusts another authority only.
fn elsewhere(args: &[&str]) -> Outcome {
    let folder = certificates(Folder::new(), &["elsewhere"], 1);
    let mut all = vec!["http", "--base=10ms", "--jitter=none"];
    all.extend(args);
    let mut command = command(&folder, &all);
    command.env("SSL_CERT_FILE", "ca.pem").env_remove("SSL_CERT_DIR");
    finish(command)
}

#[test]
fn tls_with_a_private_authority_and_http2() {
    let nginx = tls_nginx(&["localhost"], 1);
    let authority = nginx.folder().path().join("ca.pem");
    let trusted = format!("--cacert={}", authority.display());
    expect(&http(&[&trusted, &nginx.tls_url("/file")]), 0, "secret\n", "");
    expect(&http(&[&trusted, "--http1.1", &nginx.tls_url("/file")]), 0, "secret\n", "");
    expect(&http(&[&trusted, "--http2", &nginx.tls_url("/file")]), 0, "secret\n", "");
    assert_eq!(nginx.log(3), ["HTTP/2.0 200 -", "HTTP/1.1 200 -", "HTTP/2.0 200 -"]);
}

#[test]
fn a_certificate_that_is_not_trusted_is_permanent() {
    let nginx = tls_nginx(&["localhost"], 1);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (the certificate of LOCALHOST is not trusted: its issuer is unknown)
hint: --cacert FILE trusts a private certificate authority
";
    expect(&elsewhere(&[&nginx.tls_url("/file")]), 3, "", stderr);
}

/// What is asked for without TLS has none.
#[test]
fn a_certificate_of_a_proxy_is_said_to_be_the_proxys() {
    let nginx = tls_nginx(&["localhost"], 1);
    let proxy = nginx.tls_url("");
    let outcome = elsewhere(&["-x", &proxy, "http://example.test/"]);
    let said =
        format!("(the certificate of the proxy {} is not trusted: its issuer is unknown)", proxy.trim_end_matches('/'));
    let said = said.replace(proxy.split('/').nth(2).unwrap(), "LOCALHOST");
    assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    // Of two the client does not say whose.
    let outcome = elsewhere(&["-x", &proxy, "https://example.test/"]);
    let said = said.replace("(the certificate of", "(the certificate of example.test:443 or");
    assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
}

#[test]
fn a_certificate_for_another_name_or_time_is_permanent() {
    for (names, days, why, hint) in [
        (["elsewhere"], 1, "it is for another name, elsewhere", "ask for a name that the certificate has"),
        (["localhost"], -1, "it has expired", "look at the clock of this machine"),
    ] {
        let nginx = tls_nginx(&names, days);
        let trusted = format!("--cacert={}", nginx.folder().path().join("ca.pem").display());
        let stderr = format!(
            "error: gave up after 1 attempt in TIME: permanent failure (the certificate of LOCALHOST is not trusted: {why})\n"
        );
        let outcome = http(&[&trusted, &nginx.tls_url("/file")]);
        assert!(outcome.stderr.starts_with(&format!("{stderr}hint: {hint}")), "{}", outcome.stderr);
        assert_eq!(outcome.code, Some(3));
    }
}

/// A server whose certificate nobody takes speaks TLS all the same, and without TLS nothing would be better.
#[test]
fn a_certificate_that_is_too_large_is_said() {
    let names: Vec<String> = (0..8_000).map(|nth| format!("a-name-of-many-{nth}.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let nginx = tls_nginx(&names, 1);
    for command in ["http", "connect"] {
        let args = [command, "--max-attempts=1", "--timeout=20s", &nginx.tls_url("/file")];
        let said = super::run(&Folder::new(), &args).stderr;
        assert!(said.contains("HandshakePayloadTooLarge") || said.contains("oo large"), "{command}: {said}");
        assert!(!said.contains("http://") && !said.contains("does not speak TLS"), "{command}: {said}");
    }
}

#[test]
fn tls_where_there_is_none_is_permanent() {
    let nginx = Nginx::start("", PLAIN);
    let outcome = elsewhere(&[&nginx.tls_url("/")]);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (LOCALHOST does not speak TLS)
hint: try http://
";
    expect(&outcome, 3, "", stderr);
}

#[test]
fn a_server_that_is_restarted_is_waited_for() {
    let nginx = Nginx::start("", PLAIN);
    fs::write(nginx.folder().path().join("www/file"), "back\n").unwrap();
    let url = nginx.url("/file");
    drop(nginx);
    let outcome = http(&["--max-attempts=2", &url]);
    assert_eq!((outcome.code, filtered(&outcome.stdout).as_str()), (Some(1), ""));
    assert!(outcome.stderr.contains("cannot connect to HOST: Connection refused"), "{}", outcome.stderr);
}

/// As somebody works whose folders have names of several words, behind a proxy that the environment names.
#[test]
fn a_folder_with_a_space_and_a_real_proxy() {
    let server = Server::new(vec![Reply::status(503), Reply::ok("one\n")]);
    let nginx = Nginx::start(
        "",
        "listen 127.0.0.1:PORT; location / { proxy_pass http://$http_host$request_uri; proxy_set_header X-By nginx; }",
    );
    let folder = Folder::new()
        .file("my files/tmp dir/x", "")
        .file("my files/my policy.toml", "[policy.quick]\nbase = \"1ms\"\nmax_attempts = 3\n")
        .file("my files/my script", "#!/bin/sh\ncat\n[ $RELENT_ATTEMPT = 2 ]\n");
    let own = folder.path().join("my files");
    fs::set_permissions(own.join("my script"), fs::Permissions::from_mode(0o755)).unwrap();
    let relent = |args: &[&str]| {
        let mut command = folder.command(args);
        command.current_dir(&own).env("TMPDIR", own.join("tmp dir")).env("http_proxy", nginx.url("/"));
        finish(command)
    };
    let outcome = relent(&["http", "--policy", "my policy.toml#quick", "-o", "the answer.txt", &server.url("/a?b=c")]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(folder.read("my files/the answer.txt"), "one\n");
    let requests = server.requests();
    assert!(requests.len() == 2 && requests.iter().all(|request| request.header("x-by") == Some("nginx")));
    assert!(requests[0].line().starts_with("GET /a?b=c HTTP/"), "{requests:?}");
    let args = ["run", "-q", "--policy", "my policy.toml#quick", "--report", "my report.json", "--", "./my script"];
    assert_eq!(relent(&args).code, Some(0));
    assert!(folder.read("my files/my report.json").contains("./my script"));
}
