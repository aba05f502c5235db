//! Downloads that break off: gone on with where that is safe, begun anew where it is not, never left half done.

use super::{
    command, expect, finish, http, http_in,
    server::{Reply, Request, Server},
};
use crate::binary::Folder;
use std::{fs, os::unix::fs::MetadataExt};

const TAG: &str = "ETag: \"v1\"";

/// The part of a body that a request with `Range` asks for.
fn rest(request: &Request, body: &str, headers: &[&str]) -> Option<Reply> {
    let from: usize = request.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()?;
    let range = format!("Content-Range: bytes {from}-{}/{}", body.len() - 1, body.len());
    let mut all = vec![range.as_str()];
    all.extend(headers);
    Some(Reply::new(206, &all, &body[from..]))
}

#[test]
fn a_download_goes_on_where_it_broke_off() {
    let server = Server::with(|k, request| match k {
        0 => Reply::new(200, &[TAG], "0123456789").cut(6),
        1 => rest(request, "0123456789", &[TAG]).expect("it asks for a range").cut(3).reset(),
        _ => rest(request, "0123456789", &[TAG]).expect("it asks for a range"),
    });
    let folder = Folder::new().file("file", "old");
    let stderr = "\
relent: attempt 1 of 4: the body ended early, after 4 of 10 bytes, transient; next in 10ms
relent: attempt 2 of 4: the body ended early, after 7 of 10 bytes, transient; next in 20ms
relent: succeeded after 3 attempts in TIME
";
    expect(&http_in(&folder, &["-o", "file", &server.url("/")]), 0, "", stderr);
    assert_eq!(folder.read("file"), "0123456789");
    assert_eq!(folder.names(), ["file"]);
    let asked: Vec<_> = server.requests().iter().map(|r| r.header("range").map(str::to_owned)).collect();
    assert_eq!(asked, [None, Some("bytes=4-".into()), Some("bytes=7-".into())]);
    assert_eq!(server.requests()[1].header("if-range"), Some("\"v1\""));
    let encodings: Vec<_> = server.requests().iter().map(|r| r.header("accept-encoding").map(str::to_owned)).collect();
    assert_eq!(encodings, [None, Some("identity".into()), Some("identity".into())]);
}

/// Two URLs that differ in a secret alone, and two headers, are two things, though both may have the same tag and length. So is what two
/// callers are given, and what anybody in between may have sent.
#[test]
fn a_part_of_one_url_is_none_of_another() {
    let identity = || {
        let own = rcgen::generate_simple_self_signed(vec!["ann".to_owned()]).unwrap();
        own.cert.pem() + &own.signing_key.serialize_pem()
    };
    let (ann, bob) = (identity(), identity());
    for (first, second) in [
        (["/get?key=a"].as_slice(), ["/get?key=b"].as_slice()),
        (&["/", "-HX-A: a"], &["/", "-HX-A: b"]),
        (&["/", "-E", "ann.pem"], &["/", "-E", "bob.pem"]),
        (&["/", "-k"], &["/"]),
        (&["/"], &["/", "--cacert", "ann.pem"]),
        (&["/", "--cacert", "ca.pem"], &["/", "--cacert", "ca.pem"]),
        (&["/", "-L"], &["/", "-L"]),
    ] {
        let server = Server::with(|k, request| match (k, rest(request, "bbbbbbbbbb", &[TAG])) {
            (0, _) => Reply::new(200, &[TAG], "aaaaaaaaaa").cut(6),
            (_, Some(rest)) => rest,
            (_, None) => Reply::new(200, &[TAG], "bbbbbbbbbb"),
        });
        let folder = Folder::new().file("ann.pem", &ann).file("bob.pem", &bob).file("ca.pem", &ann);
        let get = |what: &[&str]| {
            let url = server.url(what[0]);
            let args = [&["http", "-q", "--max-attempts=1", "-C", "-", "-o", "file", &url][..], &what[1..]].concat();
            let mut relent = command(&folder, &args);
            relent.env("SSL_CERT_FILE", "ca.pem").env_remove("SSL_CERT_DIR");
            finish(relent).code
        };
        let begun = get(first);
        // The file of authorities has another one in it now.
        fs::write(folder.path().join("ca.pem"), &bob).unwrap();
        assert_eq!((begun, get(second)), (Some(1), Some(0)), "{first:?}");
        assert_eq!(folder.read("file"), "bbbbbbbbbb", "{first:?}");
    }
}

/// Nor is what another machine of the same name has sent.
#[test]
fn a_part_of_one_server_is_none_of_another() {
    let first = Server::with(|_, _| Reply::new(200, &[TAG], "aaaaaaaaaa").cut(6));
    let second =
        Server::with(|_, request| rest(request, "bbbbbbbbbb", &[TAG]).unwrap_or(Reply::new(200, &[TAG], "bbbbbbbbbb")));
    const GET: [&str; 8] = ["http", "-q", "--max-attempts=1", "-C", "-", "-o", "file", "http://name.example/f"];
    for variable in [None, Some("http_proxy"), Some("all_proxy")] {
        let folder = Folder::new();
        let get = |proxy: &str| {
            let mut relent = command(&folder, &GET);
            match variable {
                Some(variable) => relent.env(variable, proxy),
                None => relent.args(["-x", proxy]),
            };
            finish(relent).code
        };
        assert_eq!((get(&first.url("")), get(&second.url(""))), (Some(1), Some(0)), "{variable:?}");
        assert_eq!(folder.read("file"), "bbbbbbbbbb", "{variable:?}");
    }
}

/// A tag is one resource's alone, and what follows a `?` may name another one: in one run and in the next.
#[test]
fn what_a_redirect_leads_to_later_is_no_part_of_what_it_led_to_before() {
    for (first, then) in [("/a", "/b"), ("/x?f=a", "/x?f=b"), ("/x?signature=a", "/x?signature=b")] {
        let server = || {
            Server::with(move |k, request| match request.head.split(' ').nth(1) {
                Some(path) if path == first => Reply::new(200, &[TAG], "aaaaaaaaaa").cut(6),
                Some(path) if path == then => {
                    rest(request, "bbbbbbbbbb", &[TAG]).unwrap_or(Reply::new(200, &[TAG], "bbbbbbbbbb"))
                }
                _ => Reply::new(302, &[&format!("Location: {}", if k == 0 { first } else { then })], ""),
            })
        };
        let (one, folder) = (server(), Folder::new());
        expect(&http(&["-q", "-L", "--max-attempts=2", &one.url("/")]), 0, "bbbbbbbbbb", "");
        assert!(one.requests().iter().all(|request| request.header("range").is_none()), "{then}");
        let two = server();
        let get = || http_in(&folder, &["-q", "-L", "--max-attempts=1", "-C", "-", "-o", "file", &two.url("/")]);
        assert_eq!((get().code, get().code), (Some(1), Some(0)), "{then}");
        assert_eq!(folder.read("file"), "bbbbbbbbbb", "{then}");
    }
}

/// Whoever only leads to it is not asked for a part of it.
#[test]
fn what_a_redirect_leads_to_again_is_gone_on_with() {
    let server = Server::with(|_, request| match request.head.split(' ').nth(1) {
        Some("/x?f=a") => rest(request, "0123456789", &[TAG]).unwrap_or(Reply::new(200, &[TAG], "0123456789").cut(6)),
        _ => Reply::new(302, &["Location: /x?f=a"], ""),
    });
    expect(&http(&["-q", "-L", "--max-attempts=2", &server.url("/")]), 0, "0123456789", "");
    let ranges: Vec<_> = server.requests().iter().map(|r| r.header("range").map(str::to_owned)).collect();
    assert_eq!(ranges, [None, None, None, Some("bytes=4-".into())]);
}

#[test]
fn a_pipe_gets_one_whole_body() {
    // curl 7.88 --retry: the pipe gets the failed bodies too, one after the other.
    let server =
        Server::new(vec![Reply::ok("0123456789").cut(6), Reply::ok("0123456789").cut(1), Reply::ok("0123456789")]);
    let outcome = http(&["-q", &server.url("/")]);
    expect(&outcome, 0, "0123456789", "");
    assert!(server.requests().iter().all(|request| request.header("range").is_none()), "there was no validator");
}

#[test]
fn a_changed_file_is_taken_from_the_start() {
    let server = Server::new(vec![
        Reply::new(200, &[TAG], "0123456789").cut(6),
        Reply::new(200, &["ETag: \"v2\""], "abcdefghijk"),
    ]);
    expect(&http(&["-q", &server.url("/")]), 0, "abcdefghijk", "");
    assert_eq!(server.requests()[1].header("range"), Some("bytes=4-"));
}

#[test]
fn a_weak_validator_is_not_enough() {
    for header in ["ETag: W/\"v1\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Accept-Ranges: none"] {
        let first = Reply::new(200, &[header], "0123456789").cut(6);
        let server = Server::new(vec![first, Reply::ok("0123456789")]);
        expect(&http(&["-q", &server.url("/")]), 0, "0123456789", "");
        assert_eq!(server.requests()[1].header("range"), None, "{header}");
    }
}

#[test]
fn a_date_that_is_old_enough_is() {
    let headers = ["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Sun, 06 Nov 1994 09:00:00 GMT"];
    let server = Server::with(move |k, request| match k {
        0 => Reply::new(200, &headers, "0123456789").cut(6),
        _ => rest(request, "0123456789", &headers[..1]).expect("it asks for a range"),
    });
    expect(&http(&["-q", &server.url("/")]), 0, "0123456789", "");
    assert_eq!(server.requests()[1].header("if-range"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
}

/// A file that is replaced during its download, by one of the same length, on a server that does not know `If-Range`.
#[test]
fn parts_of_two_versions_are_not_joined() {
    const MADE: &str = "Date: Sun, 06 Nov 1994 10:00:00 GMT";
    for (first, then) in [
        (&["Last-Modified: Sun, 06 Nov 1994 09:00:00 GMT", MADE][..], "Last-Modified: Sun, 06 Nov 1994 09:59:00 GMT"),
        (&["Last-Modified: Sun, 06 Nov 1994 09:00:00 GMT", MADE], "ETag: \"b\""),
        (&["ETag: \"a\""], "Last-Modified: Sun, 06 Nov 1994 09:59:00 GMT"),
    ] {
        let server = Server::with(move |k, request| match k {
            0 => Reply::new(200, first, "0123456789").cut(6),
            _ => rest(request, "abcdefghij", &[then]).unwrap_or_else(|| Reply::ok("abcdefghij")),
        });
        let folder = Folder::new();
        let outcome = http_in(&folder, &["-q", "-o", "file", &server.url("/")]);
        assert_eq!((outcome.code, folder.read("file").as_str()), (Some(0), "abcdefghij"), "{first:?} {then}");
    }
}

/// FILE is a part of what is asked for since the user says so; of what an attempt added to it nobody says anything.
#[test]
fn what_nothing_is_known_by_is_not_gone_on_with() {
    for then in ["abcdefghij", "abcdefghijklmno"] {
        let server = Server::with(move |k, request| match k {
            0 => rest(request, "0123456789", &[]).expect("it asks for a range").cut(3),
            _ => rest(request, then, &[]).expect("it asks for a range"),
        });
        let folder = Folder::new().file("file", "xxx");
        let outcome = http_in(&folder, &["-q", "-C", "-", "-o", "file", &server.url("/")]);
        assert_eq!((outcome.code, folder.read("file")), (Some(0), format!("xxx{}", &then[3..])));
        let asked: Vec<_> = server.requests().iter().map(|r| r.header("range").map(str::to_owned)).collect();
        assert_eq!(asked, [Some("bytes=3-".to_owned()), Some("bytes=3-".to_owned())]);
        assert_eq!(folder.names(), ["file"]);
    }
}

#[test]
fn a_server_that_sends_another_range_is_asked_for_the_whole() {
    for range in ["bytes 3-9/10", "bytes 4-9/11", "bytes 0-9/10", "nonsense"] {
        let header = format!("Content-Range: {range}");
        let server = Server::with(move |k, _| match k {
            0 => Reply::new(200, &[TAG], "0123456789").cut(6),
            1 => Reply::new(206, &[&header, TAG], "xxxxxx"),
            _ => Reply::new(200, &[TAG], "0123456789"),
        });
        let stderr = "\
relent: attempt 1 of 4: the body ended early, after 4 of 10 bytes, transient; next in 10ms
relent: attempt 2 of 4: the server has another rest of the body than was missing, so it starts over, transient; next in 20ms
relent: succeeded after 3 attempts in TIME
";
        expect(&http(&[&server.url("/")]), 0, "0123456789", stderr);
        assert_eq!(server.requests()[2].header("range"), None, "{range}");
    }
}

/// Whoever says that there is no body, or only what has changed in it, brings no whole one.
#[test]
fn an_answer_without_a_body_is_no_rest() {
    for (status, body) in [(204, ""), (205, ""), (226, "xx"), (201, "made")] {
        let server = Server::new(vec![Reply::new(200, &[TAG], "0123456789").cut(5), Reply::new(status, &[], body)]);
        let folder = Folder::new().file("f", "old");
        let outcome = http_in(&folder, &["-o", "f", "--max-attempts=2", &server.url("/")]);
        assert_eq!((outcome.code, folder.read("f").as_str()), (Some(1), "old"), "{status}: {}", outcome.stderr);
        let folder = Folder::new().file("f", "01234");
        let server = Server::new(vec![Reply::new(status, &[], body)]);
        let outcome = http_in(&folder, &["-C", "-", "-o", "f", "--max-attempts=1", &server.url("/")]);
        assert_eq!((outcome.code, folder.read("f").as_str()), (Some(1), "01234"), "{status}: {}", outcome.stderr);
    }
}

/// A portal that wants a login in the middle of a download: its page is no rest of anything.
#[test]
fn what_is_no_rest_is_not_joined() {
    for (status, is) in
        [(302, "302 Found"), (300, "300 Multiple Choices"), (304, "304 Not Modified"), (399, "status 399")]
    {
        let answers = move |k, request: &Request| match k {
            0 => Reply::new(200, &[TAG], "0123456789").cut(6),
            1 => Reply::new(status, &["Location: /login"], if status == 304 { "" } else { "EVIL!!" }),
            _ => rest(request, "0123456789", &[TAG]).expect("it asks for a range"),
        };
        let folder = Folder::new();
        let server = Server::with(answers);
        let stderr = format!(
            "\
relent: attempt 1 of 4: the body ended early, after 4 of 10 bytes, transient; next in 10ms
relent: attempt 2 of 4: the rest of the body was asked for, and {is} came, which is none, transient; next in 20ms
relent: succeeded after 3 attempts in TIME
"
        );
        expect(&http_in(&folder, &["-o", "file", &server.url("/")]), 0, "", &stderr);
        assert_eq!(folder.read("file"), "0123456789", "{status}");
        let ranges: Vec<_> = server.requests().iter().map(|r| r.header("range").map(str::to_owned)).collect();
        assert_eq!(ranges, [None, Some("bytes=4-".into()), Some("bytes=4-".into())], "{status}");
        expect(&http(&["-q", &Server::with(answers).url("/")]), 0, "0123456789", "");
        let twice = http_in(&folder, &["-q", "--max-attempts=2", "-o", "other", &Server::with(answers).url("/")]);
        assert_eq!((twice.code, folder.names()), (Some(1), vec!["file".to_owned()]), "{status}: {}", twice.stderr);
    }
}

/// FILE changes only when it is complete, and an answer that says of itself that it is a part is not that.
#[test]
fn a_part_that_nobody_asked_for_is_not_the_whole() {
    for range in ["bytes 4-9/10", "bytes 0-3/10", "bytes 4-9/*"] {
        let header = format!("Content-Range: {range}");
        let server = Server::with(move |k, _| match k {
            0 => Reply::new(200, &[TAG], "0123456789").cut(6),
            _ => Reply::new(206, &[&header, "ETag: \"v2\""], "456789"),
        });
        let folder = Folder::new();
        let outcome = http_in(&folder, &["-o", "file", &server.url("/")]);
        assert_eq!((outcome.code, folder.names()), (Some(1), Vec::<String>::new()), "{range}: {}", outcome.stderr);
        let said = "a part of the body came, and all of it was asked for";
        assert!(outcome.stderr.contains(said), "{range}: {}", outcome.stderr);
        let outcome = http(&[&Server::new(vec![Reply::new(206, &[&format!("Content-Range: {range}")], "x")]).url("/")]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{range}: {}", outcome.stderr);
    }
}

/// A part that nobody asked for is the whole only if it says so, exactly and once.
#[test]
fn a_part_says_that_it_is_the_whole_or_is_not() {
    for (whole, ranges) in [
        (true, &["Content-Range: bytes 0-9/10"][..]),
        (true, &["Content-Range: Bytes 0-9/10"]),
        (false, &["Content-Range: Bytes 0-9/20"]),
        (false, &["Content-Range: bytes 0-9/*"]),
        (false, &["Content-Range: bytes */10"]),
        (false, &["Content-Range: bytes  0-9/20"]),
        (false, &["Content-Range: bytes=0-9/20"]),
        (false, &["Content-Range: bytes 0 - 9/20"]),
        (false, &["Content-Range: items 0-9/10"]),
        (false, &["Content-Range: bytes 0-18446744073709551615/0"]),
        (false, &["Content-Range: bytes 0-9/10", "Content-Range: bytes 0-9/20"]),
        (false, &["Content-Type: multipart/byteranges; boundary=x"]),
        (false, &[]),
    ] {
        let server = Server::new(vec![Reply::new(206, ranges, "0123456789")]);
        let folder = Folder::new().file("file", "old");
        let outcome = http_in(&folder, &["--max-attempts=1", "-o", "file", &server.url("/")]);
        let wanted = if whole { (Some(0), "0123456789") } else { (Some(1), "old") };
        assert_eq!((outcome.code, folder.read("file").as_str()), wanted, "{ranges:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_range_that_is_refused_is_given_up() {
    let server = Server::new(vec![
        Reply::new(200, &[TAG], "0123456789").cut(6),
        Reply::new(416, &["Content-Range: bytes */3"], ""),
        Reply::ok("new"),
    ]);
    expect(&http(&["-q", &server.url("/")]), 0, "new", "");
}

#[test]
fn a_failure_between_keeps_what_is_there() {
    let server = Server::with(|k, request| match k {
        0 => Reply::new(200, &[TAG], "0123456789").cut(6),
        1 => Reply::status(503),
        _ => rest(request, "0123456789", &[TAG]).expect("it asks for a range"),
    });
    expect(&http(&["-q", &server.url("/")]), 0, "0123456789", "");
}

#[test]
fn the_users_own_range_is_left_alone() {
    let part = || Reply::new(206, &[TAG, "Content-Range: bytes 2-9/10"], "23456789");
    let server = Server::new(vec![part().cut(3), part()]);
    expect(&http(&["-q", "-H", "Range: bytes=2-", &server.url("/")]), 0, "23456789", "");
    assert_eq!(server.requests()[1].header("range"), Some("bytes=2-"));
    assert_eq!(server.requests()[1].header("if-range"), None);
}

#[test]
fn an_encoded_body_is_begun_anew() {
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
    let reply = || Reply::new(200, &[TAG, "Content-Encoding: gzip"], gzip);
    let server = Server::new(vec![reply().cut(12), reply()]);
    expect(&http(&["-q", "--compressed", &server.url("/")]), 0, "hello", "");
    assert_eq!(server.requests()[1].header("range"), None);
    // Nor is the rest of one that was not, though it is called so.
    let length = gzip.len();
    let range = format!("Content-Range: bytes 6-{}/{}", 6 + length - 1, 6 + length);
    let rest = || Reply::new(206, &[TAG, &range, "Content-Encoding: gzip"], gzip);
    let first = Reply::new(200, &[TAG], vec![b'x'; 6 + length]).cut(6);
    let server = Server::new(vec![first, rest()]);
    let outcome = http(&["--compressed", "--max-attempts=2", &server.url("/")]);
    assert_eq!(server.requests()[1].header("accept-encoding"), Some("identity"));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", outcome.stderr);
}

#[test]
fn a_failed_download_destroys_nothing() {
    let folder = Folder::new().file("file", "old");
    let server = Server::new(vec![Reply::new(200, &[TAG], "0123456789").cut(6), Reply::status(404)]);
    let outcome = http_in(&folder, &["-q", "-o", "file", &server.url("/")]);
    assert_eq!(outcome.code, Some(3));
    assert_eq!((folder.read("file").as_str(), folder.names()), ("old", vec!["file".to_owned()]));
}

#[test]
fn a_large_body_comes_through_whole() {
    let body: String = (0..400_000).map(|i| format!("{i:07}\n")).collect();
    let server = Server::new(vec![Reply::ok(&body).cut(1_000_000), Reply::ok(&body)]);
    let outcome = http(&["-q", &server.url("/")]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout == body, "3.2 MB, through the file without a name");
}

/// Whatever ends the body, and though nothing says what it is a part of.
#[test]
fn a_part_has_what_it_says() {
    let range = |range: &str| format!("Content-Range: bytes {range}");
    for (what, of_file, body, range) in [
        ("shorter", Some("01234"), "hi", range("5-99/100")),
        ("longer", Some("01234"), "hi-longer", range("5-6/7")),
        ("the whole, shorter", None, "hi", range("0-99/100")),
        ("the whole, longer", None, "hi-longer", range("0-1/2")),
    ] {
        let server = Server::new(vec![Reply::new(206, &[&range], body)]);
        let folder = of_file.into_iter().fold(Folder::new(), |folder, text| folder.file("f", text));
        let go_on: &[_] = if of_file.is_some() { &["-C", "-"] } else { &[] };
        let url = server.url("/");
        let outcome = http_in(&folder, &[go_on, &["-o", "f", "--max-attempts=1", &url]].concat());
        assert_eq!(outcome.code, Some(1), "{what}: {}", outcome.stderr);
        let why = if what.contains("short") { "the body ended early" } else { "sent more than the part that it named" };
        assert!(outcome.stderr.contains(why), "{what}: {}", outcome.stderr);
        assert_eq!(folder.names().contains(&"f".to_owned()), of_file.is_some(), "{what}");
        assert!(of_file.is_none_or(|text| folder.read("f") == text), "{what}");
    }
    // The part that a user asks for, of something whose length nobody knows, too.
    for of in ["2-9/10", "2-9/*"] {
        let server = Server::new(vec![Reply::new(206, &[&range(of)], "23")]);
        let outcome = http(&["-H", "Range: bytes=2-", "--max-attempts=1", &server.url("/")]);
        assert!(outcome.code == Some(1) && outcome.stderr.contains("after 2 of 8 bytes"), "{}", outcome.stderr);
    }
    // What is undone has other bytes than were sent.
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
    let range = range(&format!("0-{}/{}", gzip.len() - 1, gzip.len()));
    let server = Server::new(vec![Reply::new(206, &[&range, "Content-Encoding: gzip"], gzip)]);
    expect(&http(&["-q", "--compressed", "--max-attempts=1", &server.url("/")]), 0, "hello", "");
    expect(
        &http(&["-q", "--max-attempts=1", "-H", "Range: bytes=0-", "--compressed", &server.url("/")]),
        0,
        "hello",
        "",
    );
}

/// What the user has of it is copied first: with its holes, which are nothing on disk, and not at all if it is too large.
#[test]
fn what_is_gone_on_with_takes_no_more_room_than_it_did() {
    const LENGTH: u64 = 64 << 20;
    let server = Server::with(|_, request| {
        assert_eq!(request.header("range"), Some("bytes=67108864-"));
        let range = format!("Content-Range: bytes {LENGTH}-{LENGTH}/{}", LENGTH + 1);
        Reply::new(206, &[&range, "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT"], "x")
    });
    let folder = Folder::new();
    let path = folder.path().join("file");
    fs::File::create(&path).unwrap().set_len(LENGTH).unwrap();
    expect(&http_in(&folder, &["-q", "-C", "-", "-o", "file", &server.url("/")]), 0, "", "");
    let data = fs::metadata(&path).unwrap();
    assert_eq!((data.len(), folder.names().len()), (LENGTH + 1, 1));
    assert!(data.blocks() * 512 < 1 << 20, "{} blocks", data.blocks());
    // More than a file gets without a word, and more than was said.
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    for (most, said) in [(None, "64GiB"), (Some("--max-size=1KiB"), "1KiB")] {
        let url = server.url("/");
        let args: Vec<&str> = ["-C", "-", "-o", "file", url.as_str()].into_iter().chain(most).collect();
        let text = format!("cannot go on with file: the body is larger than the --max-size of {said}");
        let stderr = format!("error: {text}\nhint: --max-size takes more, or unlimited\n");
        expect(&http_in(&folder, &args), 3, "", &stderr);
        assert_eq!(http_in(&folder, &[&args[..], &["--json"]].concat()).code, Some(3));
    }
    assert_eq!((server.count(), folder.names()), (1, vec!["file".to_owned()]));
}
