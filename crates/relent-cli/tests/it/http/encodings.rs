//! Encoded bodies: all that was packed is unpacked, or it is said that it was not.

use super::{
    bombs::{MOST_KIB, peak},
    expect, http, http_in,
    server::{Reply, Server},
};
use crate::binary::Folder;
use std::{
    io::{Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const BROTLI: &[u8] = b"\x0b\x02\x80hello\x03";

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut packer = Command::new("gzip").arg("-nc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = packer.stdin.take().unwrap();
    thread::scope(|scope| {
        // It says something before it has heard all.
        scope.spawn(move || stdin.write_all(plain).unwrap());
        packer.wait_with_output().unwrap().stdout
    })
}

/// What comes of such a body with `--compressed`.
fn unpacked(headers: &[&str], body: impl AsRef<[u8]>) -> super::Outcome {
    let server = Server::new(vec![Reply::new(200, headers, body)]);
    http(&["--compressed", &server.url("/")])
}

#[test]
fn all_members_are_one_body() {
    let members = [gzip(b"first "), gzip(b""), gzip(b"second"), gzip(&vec![b'x'; 20_000])].concat();
    let whole = format!("first second{}", "x".repeat(20_000));
    expect(&unpacked(&["Content-Encoding: gzip"], &members), 0, &whole, "");
    // Wherever it is cut into pieces on its way.
    for cut in (1..60).step_by(6) {
        let reply = Reply::new(200, &["Content-Encoding: gzip"], &members).paused(members.len() - cut, Duration::ZERO);
        expect(&http(&["--compressed", &Server::new(vec![reply]).url("/")]), 0, &whole, "");
    }
}

#[test]
fn a_member_that_is_cut_off_is_asked_for_again() {
    let (whole, second) = ([gzip(b"one"), gzip(b"two")].concat(), gzip(b"two").len());
    for missing in [1, 8, second - 12, second - 3] {
        let short = Reply::new(200, &["Content-Encoding: gzip"], &whole[..whole.len() - missing]);
        let server = Server::new(vec![short, Reply::new(200, &["Content-Encoding: gzip"], &whole)]);
        expect(&http(&["-q", "--compressed", &server.url("/")]), 0, "onetwo", "");
        assert_eq!(server.count(), 2, "without the last {missing}");
    }
}

#[test]
fn what_follows_the_end_is_not_lost_without_a_word() {
    for (encoding, body) in [("gzip", [&gzip(b"one")[..], b"EVIL"].concat()), ("br", [BROTLI, b"EVIL"].concat())] {
        let outcome = unpacked(&[&format!("Content-Encoding: {encoding}")], body);
        assert!(matches!(outcome.code, Some(1 | 3)) && outcome.stdout.is_empty(), "{encoding}: {outcome:?}");
        assert!(outcome.stderr.contains("the body cannot be decoded"), "{encoding}: {outcome:?}");
    }
}

/// As gzip does: what is written in blocks is filled up with them.
#[test]
fn zeros_behind_the_last_member_are_left_out() {
    let members = [gzip(b"one"), gzip(b"two")].concat();
    for zeros in [1, 7, 511, 100_000] {
        let padded = [&members[..], &vec![0; zeros]].concat();
        expect(&unpacked(&["Content-Encoding: gzip"], &padded), 0, "onetwo", "");
        let reply = Reply::new(200, &["Content-Encoding: gzip"], &padded).paused(members.len() + 1, Duration::ZERO);
        expect(&http(&["--compressed", &Server::new(vec![reply]).url("/")]), 0, "onetwo", "");
    }
    for behind in [&b"\0\0EVIL"[..], &[&[0; 5000][..], b"x"].concat(), &[&[0][..], &gzip(b"three")].concat()] {
        let outcome = unpacked(&["Content-Encoding: gzip"], [&members, behind].concat());
        assert!(matches!(outcome.code, Some(1 | 3)) && outcome.stdout.is_empty(), "{outcome:?}");
        assert!(outcome.stderr.contains("something follows its end"), "{outcome:?}");
    }
    let outcome = unpacked(&["Content-Encoding: br"], [BROTLI, &[0; 4]].concat());
    assert!(matches!(outcome.code, Some(1 | 3)) && outcome.stdout.is_empty(), "{outcome:?}");
}

/// A window of a gigabyte, which decoders know that go beyond the standard, would be kept whole, and unpacked at once.
#[test]
fn brotli_has_the_windows_of_its_standard_alone() {
    for (encoding, body) in
        [("br", vec![0x11, 0xde]), ("gzip, br", vec![0x91, 0xde]), ("br, gzip", gzip(&[0x11, 0xde]))]
    {
        let outcome = unpacked(&[&format!("Content-Encoding: {encoding}")], body);
        assert!(matches!(outcome.code, Some(1 | 3)) && outcome.stdout.is_empty(), "{encoding}: {outcome:?}");
        assert!(outcome.stderr.contains("its window is larger than brotli's may be"), "{encoding}: {outcome:?}");
    }
}

#[test]
fn encodings_are_undone_from_the_last_to_the_first() {
    let twice = gzip(&gzip(b"hello"));
    expect(&unpacked(&["Content-Encoding: gzip", "Content-Encoding: gzip"], &twice), 0, "hello", "");
    expect(&unpacked(&["Content-Encoding: gzip,identity , GZIP"], &twice), 0, "hello", "");
    expect(&unpacked(&["Content-Encoding: br", "Content-Encoding: x-gzip"], gzip(BROTLI)), 0, "hello", "");
    let wrong = unpacked(&["Content-Encoding: gzip, br"], gzip(BROTLI));
    assert!(wrong.code != Some(0) && wrong.stdout.is_empty(), "{wrong:?}");
}

#[test]
fn what_is_not_undone_is_said() {
    let note = |what: &str| format!("note: the body is encoded ({what}), which was not asked for\n");
    expect(&unpacked(&["Content-Encoding: gzip, zstd"], "as it is"), 0, "as it is", &note("gzip, zstd"));
    let lines = ["Content-Encoding: zstd", "Content-Encoding: gzip"];
    expect(&unpacked(&lines, "as it is"), 0, "as it is", &note("zstd, gzip"));
    let six = ["gzip"; 6].join(", ");
    expect(&unpacked(&[&format!("Content-Encoding: {six}")], "as it is"), 0, "as it is", &note(&six));
    // Longer than anybody reads, or looks through.
    let long = format!("Content-Encoding: {}", "x".repeat(20_000));
    expect(&unpacked(&[&long], "as it is"), 0, "as it is", &note("***"));
}

/// To ask for a body as it is asks for none of the others, be it the user or what goes on with a part that does so.
#[test]
fn what_comes_packed_though_it_was_to_come_as_it_is_is_said() {
    let note = "note: the body is encoded (zstd), which was not asked for\n";
    let packed = || Reply::new(200, &["ETag: \"2\"", "Content-Encoding: zstd"], "packed");
    let of = |asked: &str| {
        let server = Server::new(vec![packed()]);
        http(&["-H", &format!("Accept-Encoding: {asked}"), &server.url("/")])
    };
    for asked in ["identity", "Identity;q=1, zstd;q=0", "zstd ; Q=0.000"] {
        expect(&of(asked), 0, "packed", note);
    }
    for asked in ["zstd", "identity, zstd;q=0.001", "*"] {
        expect(&of(asked), 0, "packed", "");
    }
    let server = Server::new(vec![Reply::new(200, &["ETag: \"1\""], "0123456789").cut(4), packed()]);
    let outcome = http(&[&server.url("/")]);
    assert_eq!(server.requests()[1].header("accept-encoding"), Some("identity"));
    assert!(outcome.code == Some(0) && outcome.stdout == "packed" && outcome.stderr.ends_with(note), "{outcome:?}");
}

#[test]
fn nothing_is_nothing_however_it_was_packed() {
    for encoding in ["gzip", "br", "gzip, gzip"] {
        expect(&unpacked(&[&format!("Content-Encoding: {encoding}")], ""), 0, "", "");
    }
}

/// Where a body ends with the connection, nothing at all may be what was left of it.
#[test]
fn what_hangs_up_before_the_first_byte_of_what_was_packed_is_asked_again() {
    let until_it_hangs_up = |status: &str, encoding: &str| {
        Reply::raw(format!("HTTP/1.1 {status}\r\nContent-Encoding: {encoding}\r\nConnection: close\r\n\r\n"))
    };
    for encoding in ["gzip", "br", "gzip, gzip", "gzip\r\nTransfer-Encoding: identity"] {
        let server = Server::new(vec![until_it_hangs_up("200 OK", encoding), Reply::ok("all")]);
        expect(&http(&["-q", "--compressed", &server.url("/")]), 0, "all", "");
        assert_eq!(server.count(), 2, "{encoding}");
        // Neither is it asked for a head alone, nor is an answer another one by what became of its page.
        let server = Server::new(vec![until_it_hangs_up("200 OK", encoding)]);
        let outcome = http(&["-q", "--compressed", "-I", &server.url("/")]);
        assert_eq!((outcome.code, server.count()), (Some(0), 1), "{encoding}: {outcome:?}");
        let server = Server::new(vec![until_it_hangs_up("404 Not Found", encoding)]);
        let outcome = http(&["--compressed", &server.url("/")]);
        assert!(outcome.stderr.contains("404") && server.count() == 1, "{encoding}: {outcome:?}");
    }
}

/// Bodies that go on for ever and are nothing: there is time for limits.
#[test]
fn an_end_comes_however_much_of_nothing_does() {
    let empty = gzip(b"").repeat(3000);
    let zeros = vec![0; 100_000];
    for (encoding, begin, again) in [("gzip", vec![], empty), ("gzip", gzip(b"x"), zeros)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nConnection: close\r\n\r\n");
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&begin));
                while stream.write_all(&again).is_ok() {}
            }
        });
        let began = Instant::now();
        let (code, stderr, memory) = peak(&["--compressed", "--timeout=1s", &url]);
        assert_eq!(code, Some(124), "{encoding}: {stderr}");
        assert!(began.elapsed() < Duration::from_secs(8), "{encoding}: {:?}", began.elapsed());
        assert!((1..MOST_KIB).contains(&memory), "{encoding}: {memory} KiB");
    }
}

/// Some bytes of hours of work: what is hardly anything, packed several times.
#[test]
fn what_holds_hardly_anything_is_not_unpacked_to_its_end() {
    let members = [gzip(b"").repeat(20_000), gzip(b"x")].concat().repeat(4);
    for times in [2, 5] {
        let packed = (1..times).fold(members.clone(), |plain, _| gzip(&plain));
        let encoding = format!("Content-Encoding: {}", ["gzip"; 5][..times].join(", "));
        let server = Server::new(vec![Reply::new(200, &[&encoding], packed)]);
        let outcome = http(&["--compressed", "--max-attempts=1", &server.url("/")]);
        assert!(outcome.stderr.contains("what was encoded twice holds hardly anything"), "{times}: {outcome:?}");
    }
    // Packed again it is longer than what is in it, if that cannot be packed.
    let mut seed = 1_u32;
    let noise = |_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (seed >> 27) as u8 % 26
    };
    let plain: Vec<u8> = (0..3_000_000).map(noise).collect();
    let text = String::from_utf8(plain).unwrap();
    expect(&unpacked(&["Content-Encoding: gzip, gzip"], gzip(&gzip(text.as_bytes()))), 0, &text, "");
}

/// Nobody asked for it, so nobody undoes it (RFC 9112, 6.1): what is written is not what was meant.
#[test]
fn a_transfer_coding_that_was_not_asked_for_is_a_failure() {
    for coding in ["gzip, chunked", "x, chunked"] {
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n");
        let server = Server::new(vec![Reply::raw(head + "3\r\nabc\r\n0\r\n\r\n")]);
        let folder = Folder::new();
        let outcome = http_in(&folder, &["-o", "file", &server.url("/")]);
        assert_eq!((outcome.code, folder.names()), (Some(3), Vec::<String>::new()), "{}", outcome.stderr);
        let said = format!("the body has a transfer coding that was not asked for: {coding:?}");
        assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    }
    // Nor does anybody know where it ends, whatever else says so.
    for (lines, sent) in [
        ("Transfer-Encoding: identity", "abc"),
        ("Transfer-Encoding:", "abc"),
        ("Transfer-Encoding: ,", "abc"),
        ("Transfer-Encoding: chunked, identity", "3\r\nabc\r\n"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "3\r\nabc\r\n"),
        ("Transfer-Encoding: chunked, chunked", "3\r\nabc\r\n0\r\n\r\n"),
        // An empty element is none to some readers, and the last coding to others.
        ("Transfer-Encoding: chunked,", "3\r\nabc\r\n3\r\na"),
        ("Transfer-Encoding: chunked\t,,", "3\r\nabc\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding:", "3\r\nabc\r\n3\r\na"),
        ("Transfer-Encoding: chunked\u{a0}", "3\r\nabc\r\n3\r\na"),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n{lines}\r\n\r\n");
        let server = Server::new(vec![Reply::raw(head + sent)]);
        let folder = Folder::new().file("file", "old");
        let outcome = http_in(&folder, &["-q", "--max-attempts", "1", "-o", "file", &server.url("/")]);
        assert!(matches!(outcome.code, Some(1 | 3)), "{lines:?}: {}", outcome.stderr);
        assert_eq!(folder.read("file"), "old", "{lines:?}");
    }
    let of_old = "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nabc";
    expect(&http(&[&Server::new(vec![Reply::raw(of_old)]).url("/")]), 0, "abc", "");
    let known = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    expect(&http(&[&Server::new(vec![Reply::raw(known)]).url("/")]), 0, "abc", "");
}
