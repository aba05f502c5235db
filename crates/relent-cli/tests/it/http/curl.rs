//! What users know from curl.

use super::{
    command, expect, finish, http, http_in,
    server::{Reply, Request, Server},
};
use crate::binary::Folder;
use std::{fs, os::unix::net::UnixListener};

#[test]
fn a_user_and_headers_from_a_file() {
    let server = Server::new(vec![Reply::ok("")]);
    let folder = Folder::new().file("headers", "X-Api-Key: k\n\nAccept: a/b\n");
    expect(&http_in(&folder, &["-u", "ann:pw", "-H", "@headers", &server.url("/")]), 0, "", "");
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Basic YW5uOnB3"));
    assert_eq!((request.header("x-api-key"), request.header("accept")), (Some("k"), Some("a/b")));
}

#[test]
fn a_form() {
    let server = Server::new(vec![Reply::status(503), Reply::ok("")]);
    let folder = Folder::new().file("f.txt", "file");
    expect(&http_in(&folder, &["-q", "--retry-unsafe", "-F", "a=b", "-F", "f=@f.txt", &server.url("/")]), 0, "", "");
    let bodies: Vec<String> = server.requests().iter().map(|r| String::from_utf8_lossy(&r.body).into_owned()).collect();
    assert_eq!(bodies[0], bodies[1], "the same in each attempt");
    assert!(
        bodies[0].contains("name=\"f\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\nfile\r\n"),
        "{}",
        bodies[0]
    );
}

/// As curl has it: a header that was copied from somewhere says that it is a form, and not where a part ends.
#[test]
fn a_form_says_by_what_its_parts_are_told_from_each_other() {
    let server = Server::new(vec![Reply::ok("")]);
    for given in ["multipart/form-data", "Multipart/Form-Data ;", "multipart/mixed; charset=utf-8"] {
        let kind = format!("Content-Type: {given}");
        expect(&http(&["-q", "-F", "a=b", "-H", &kind, &server.url("/")]), 0, "", "");
        let request = server.requests().pop().unwrap();
        let kind = request.header("content-type").unwrap();
        let (begin, boundary) = kind.split_once("; boundary=").unwrap();
        assert_eq!(begin, given.trim_end_matches([' ', ';']));
        assert!(request.body.starts_with(format!("--{boundary}\r\n").as_bytes()), "{kind}");
        assert_eq!(request.head.to_ascii_lowercase().matches("\ncontent-type:").count(), 1);
    }
    let refused = "error: -F sends a form, and the Content-Type that -H sets is none of one, or says by what its parts are told from each other\n\
         hint: leave the header out: -F says it, and what the boundary is; -d sends a body of another type\n";
    for kinds in [&["text/plain"][..], &[""], &["multipart/form-data; boundary=x"], &["multipart/a", "multipart/b"]] {
        let kinds: Vec<String> = kinds.iter().map(|kind| format!("Content-Type: {kind}")).collect();
        let flags = kinds.iter().flat_map(|kind| ["-H", kind]);
        let args: Vec<&str> = ["-F", "a=b", "http://127.0.0.1:1/"].into_iter().chain(flags).collect();
        expect(&http(&args), 125, "", refused);
    }
}

#[test]
fn the_last_part_of_the_path_is_the_file() {
    let server = Server::new(vec![Reply::ok("hello")]);
    let folder = Folder::new();
    expect(&http_in(&folder, &["-O", &server.url("/a/b.txt?x=1")]), 0, "", "");
    assert_eq!((folder.read("b.txt").as_str(), folder.names()), ("hello", vec!["b.txt".to_owned()]));
    assert_eq!(http(&["-O", &server.url("/a/")]).code, Some(125));
}

#[test]
fn the_head_before_the_body_and_a_line_at_the_end() {
    let server = Server::new(vec![Reply::new(404, &[], "no")]);
    let outcome = http(&["-q", "-w", "%{http_code} %{num_retries}\\n", &server.url("/")]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), "404 0\n"));
    let server = Server::new(vec![Reply::ok("hello\n")]);
    expect(&http(&["-i", &server.url("/")]), 0, "HTTP/1.1 200 OK\ncontent-length: 6\n\nhello\n", "");
}

#[test]
fn hosts_are_where_the_user_says() {
    let server = Server::new(vec![Reply::ok("here\n")]);
    let port = server.address().port();
    let place = format!("far.invalid:{port}:127.0.0.1");
    expect(&http(&["--resolve", &place, &format!("http://far.invalid:{port}/")]), 0, "here\n", "");
    assert_eq!(server.requests()[0].header("host"), Some(format!("far.invalid:{port}").as_str()));
}

#[test]
fn a_socket_of_the_file_system() {
    let folder = Folder::new();
    let listener = UnixListener::bind(folder.path().join("sock")).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = std::io::Read::read(&mut stream, &mut [0; 1000]);
        let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n");
    });
    expect(&http_in(&folder, &["--unix-socket", "sock", "http://localhost/"]), 0, "ok\n", "");
}

#[test]
fn a_proxy_by_flag_and_what_it_does_is_named() {
    let proxy = Server::new(vec![Reply::ok("through\n")]);
    expect(&http(&["-x", &proxy.url(""), "-U", "ann:pw", "http://far.invalid/x"]), 0, "through\n", "");
    assert_eq!(proxy.requests()[0].line(), "GET http://far.invalid/x HTTP/1.1");
    assert_eq!(proxy.requests()[0].header("proxy-authorization"), Some("Basic YW5uOnB3"));
    let gone = format!("http://ann:pw@127.0.0.1:{}", super::server::free_port());
    let outcome = http(&["-x", &gone, "--max-attempts=1", "http://far.invalid/x"]);
    assert!(
        outcome.stderr.contains("cannot connect to far.invalid:80 through the proxy http://HOST: Connection refused"),
        "{}",
        outcome.stderr
    );
    let folder = Folder::new();
    let mut capitals = command(&folder, &["http", &proxy.url("/direct")]);
    capitals.env("HTTP_PROXY", gone);
    expect(&finish(capitals), 0, "through\n", "");
}

#[test]
fn schemes_that_there_are_not_are_errors_at_once() {
    let outcome = http(&["-x", "socks9://ann:pw@proxy", "http://far.invalid/"]);
    let stderr = "\
error: --proxy: there are no socks9:// proxies
hint: a proxy is one of http, https, socks4, socks4a, socks5, socks5h
";
    expect(&outcome, 125, "", stderr);
    for elsewhere in ["ftp://far.invalid/", "file:///etc/passwd"] {
        let server = Server::new(vec![Reply::new(302, &[&format!("Location: {elsewhere}")], "")]);
        assert_eq!((http(&["-L", &server.url("/")]).code, server.count()), (Some(3), 1), "{elsewhere}");
    }
}

#[test]
fn many_headers() {
    let headers: Vec<String> = (0..500).map(|k| format!("X-{k}: v")).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let server = Server::new(vec![Reply::new(200, &headers, "ok")]);
    expect(&http(&[&server.url("/")]), 0, "ok", "");
}

#[test]
fn curls_flags_are_answered_with_ours() {
    for (flag, hint) in [("-f", "leave it out"), ("-m", "--timeout"), ("-s", "-q"), ("--retry", "--max-attempts")] {
        let outcome = http(&[flag, "5", "localhost"]);
        assert!(outcome.code == Some(125) && outcome.stderr.contains(hint), "{flag}: {}", outcome.stderr);
    }
}

fn rest(request: &Request, body: &str) -> Option<Reply> {
    let from: usize = request.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()?;
    let range = format!("Content-Range: bytes {from}-{}/{}", body.len() - 1, body.len());
    Some(Reply::new(206, &[&range, "ETag: \"v1\""], &body[from..]))
}

#[test]
fn a_later_run_goes_on_where_an_earlier_one_stopped() {
    let server = Server::with(|k, request| match k {
        0 => Reply::new(200, &["ETag: \"v1\""], "0123456789").cut(6),
        _ => rest(request, "0123456789").expect("it asks for the rest"),
    });
    let folder = Folder::new();
    let args = ["-q", "--max-attempts=1", "-C", "-", "-o", "file", &server.url("/")];
    assert_eq!(http_in(&folder, &args).code, Some(1));
    assert_eq!(folder.names(), [".file.part", ".file.part.from"]);
    expect(&http_in(&folder, &args), 0, "", "");
    assert_eq!((folder.read("file").as_str(), folder.names()), ("0123456789", vec!["file".to_owned()]));
    assert_eq!(server.requests()[1].header("if-range"), Some("\"v1\""));
}

#[test]
fn a_file_that_curl_left_is_gone_on_with() {
    let server = Server::with(|_, request| rest(request, "0123456789").expect("it asks for the rest"));
    let folder = Folder::new().file("file", "0123");
    expect(&http_in(&folder, &["-C", "-", "-o", "file", &server.url("/")]), 0, "", "");
    assert_eq!((folder.read("file").as_str(), folder.names()), ("0123456789", vec!["file".to_owned()]));
    let server = Server::new(vec![Reply::new(416, &["Content-Range: bytes */10"], "")]);
    expect(&http_in(&folder, &["-q", "-C", "-", "-o", "file", &server.url("/")]), 0, "", "");
    assert_eq!(folder.read("file"), "0123456789");
    assert!(fs::metadata(folder.path().join("file")).unwrap().is_file());
}
