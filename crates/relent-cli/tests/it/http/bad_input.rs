//! Wrong input: a clear message, a hint and an exit code each, before a byte is sent where that can be.

use super::{
    expect, http, http_in, run,
    server::{Reply, Server},
};
use crate::binary::{Folder, tool};

#[track_caller]
fn refused(args: &[&str], stderr: &str) {
    expect(&http(args), 125, "", stderr);
}

#[test]
fn a_url_that_is_none() {
    refused(
        &["not a url"],
        "error: \"not a url\" is no URL: invalid international domain name\nhint: write it like https://example.com/path\n",
    );
    refused(&["http://"], "error: \"http://\" is no URL: empty host\nhint: write it like https://example.com/path\n");
    refused(
        &["POST"],
        "error: \"POST\" is a method, and the URL is missing\nhint: write it like relent http POST https://example.com/path\n",
    );
}

#[test]
fn a_tunnel_that_nobody_would_use() {
    let said =
        "error: CONNECT asks for a tunnel, and here is nobody who would use it\nhint: -x PROXY goes through one\n";
    refused(&["-X", "CONNECT", "http://localhost:1/"], said);
    refused(&["connect", "http://localhost:1/"], said);
}

#[test]
fn no_url_at_all() {
    refused(&[], "error: no URL is given\nhint: write it like relent http https://example.com/path\n");
    refused(
        &["GET", "localhost", "of", "mine"],
        "error: one URL is asked for at a time, and 3 were given\nhint: quote a URL with spaces in it; run relent http for each of several\n",
    );
}

#[test]
fn an_unknown_scheme() {
    refused(
        &["ftp://example.com/"],
        "error: the scheme ftp:// is not supported\nhint: http:// and https:// are; relent connect waits for tcp:// and unix:\n",
    );
}

#[test]
fn a_port_out_of_range() {
    for (url, shown) in [
        ("http://127.0.0.1:99999/", "http://127.0.0.1:99999/"),
        ("127.0.0.1:65536", "127.0.0.1:65536"),
        // It may have been a password.
        ("http://127.0.0.1:-1/", "http://127.0.0.1:***"),
        ("http://127.0.0.1:http/", "http://127.0.0.1:***"),
    ] {
        let stderr = format!("error: {shown:?} has no valid port\nhint: a port is a number from 0 to 65535\n");
        refused(&[url], &super::filtered(&stderr));
    }
}

#[test]
fn a_host_that_does_not_resolve() {
    let stderr = "\
relent: attempt 1 of 2: cannot find host nowhere.invalid, transient; next in 10ms
error: gave up after 2 attempts in TIME: out of attempts (cannot find host nowhere.invalid)
hint: check the name; it was looked up anew in each attempt
";
    expect(&http(&["--max-attempts=2", "http://nowhere.invalid/"]), 1, "", stderr);
}

#[test]
fn a_header_that_is_none() {
    refused(
        &["-H", "A: b\nC: d", "localhost"],
        "error: the header of -H number 1 has a line break in it\nhint: give each header its own -H; a value is one line\n",
    );
    refused(
        &["-H", "Accept", "localhost"],
        "error: the header of -H number 1 has no colon\nhint: write it like -H 'Accept: text/plain'\n",
    );
    refused(
        &["-H", "A b: c", "localhost"],
        "error: the header of -H number 1 has a name that is none\nhint: letters, digits and dashes, with no space before the colon\n",
    );
}

/// A server would get it where no proxy, or a tunnel, leads there.
#[test]
fn who_somebody_is_to_a_proxy_is_no_header() {
    refused(
        &["-H", "Proxy-Authorization: Basic YTpi", "https://server.invalid/"],
        "error: the header proxy-authorization cannot be given\nhint: who you are to a proxy is said to it alone: -U USER:PASSWORD\n",
    );
}

#[test]
fn a_method_that_is_none() {
    refused(
        &["GE T", "localhost"],
        "error: \"GE T\" is no method\nhint: methods are words like GET, POST or PUT; see relent http --help\n",
    );
    refused(&["-I", "POST", "localhost"], "error: --head asks with HEAD, not with POST\nhint: leave out one of them\n");
}

#[test]
fn an_unreadable_data_file() {
    let hint = "hint: --data @FILE sends a file; --data '@text' is never a text\n";
    refused(
        &["-d", "@missing", "localhost"],
        &format!("error: cannot read missing: No such file or directory\n{hint}"),
    );
    refused(&["-d", "@.", "localhost"], &format!("error: cannot read .: it is a folder\n{hint}"));
    let device = format!("error: cannot read /dev/zero: it is a device, and no file\n{hint}");
    refused(&["-d", "@/dev/zero", "localhost"], &device);
}

/// What is named as a file is one, or a pipe that somebody writes to: nothing hangs, and nothing is read without end.
#[test]
fn files_that_are_none() {
    let folder = Folder::new();
    nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let large = std::fs::File::create(folder.path().join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    for (file, why) in [
        ("pipe", "it is a pipe that nobody writes to"),
        ("/dev/zero", "it is a device, and no file"),
        (".", "it is a folder, and no file"),
        ("large", "it is longer than 1"),
    ] {
        let at = format!("@{file}");
        for args in [["-H", &at], ["-w", &at], ["--cacert", file], ["-E", file]] {
            let outcome = http_in(&folder, &[&args[..], &["https://server.invalid/"]].concat());
            assert_eq!(outcome.code, Some(125), "{args:?}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(why), "{args:?}: {}", outcome.stderr);
        }
    }
}

/// A file of the system's has no length, or that of a page, and something else in it.
#[test]
#[cfg(target_os = "linux")]
fn files_that_are_made_as_they_are_read_are_sent() {
    let version = std::fs::read_to_string("/proc/version").unwrap();
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
    let folder = Folder::new().file("empty", "");
    for (args, expected) in [
        (["-d", "@/sys/class/net/lo/mtu"], mtu.as_str()),
        (["-F", "a=@/sys/class/net/lo/mtu"], &mtu),
        (["-d", "@/proc/version"], &version),
        (["-F", "a=@/proc/version"], &version),
        (["-d", "@empty"], ""),
        (["-F", "a=@empty"], "\r\n\r\n\r\n--"),
    ] {
        let server = Server::new(vec![Reply::status(503), Reply::ok("")]);
        let outcome = http_in(&folder, &["-q", "--retry-unsafe", args[0], args[1], &server.url("/")]);
        assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
        for request in server.requests() {
            let body = String::from_utf8(request.body.clone()).unwrap();
            assert!(body.contains(expected) && body.is_empty() == expected.is_empty(), "{args:?}: {request:?}");
        }
        assert_eq!(server.count(), 2);
    }
}

/// What is empty at first is a file like others, which is read anew for each attempt.
#[test]
fn a_file_that_is_filled_meanwhile_is_sent() {
    for (flag, name) in [("-d", "@file"), ("-F", "a=@file")] {
        let folder = Folder::new().file("file", "");
        let path = folder.path().join("file");
        let server = Server::with(move |k, _| match k {
            0 => {
                std::fs::write(&path, "filled").unwrap();
                Reply::status(503)
            }
            _ => Reply::ok(""),
        });
        let outcome = http_in(&folder, &["-q", "--retry-unsafe", flag, name, &server.url("/")]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let bodies: Vec<_> = server.requests().iter().map(|request| request.body.clone()).collect();
        let has = |nth: usize| String::from_utf8_lossy(&bodies[nth]).contains("filled");
        assert_eq!((has(0), has(1)), (false, true), "{flag}");
    }
}

/// What is sent is what was opened: something else that has come into the place of a file meanwhile is no empty body.
#[test]
#[cfg(target_os = "linux")]
fn what_is_no_file_any_more_is_not_sent() {
    type Made = (fn(&std::path::Path), &'static str);
    let made: [Made; 4] = [
        (|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(), "it is a named pipe, and no file"),
        (|path| std::os::unix::fs::symlink("/dev/null", path).unwrap(), "it is a device, and no file"),
        (|path| std::os::unix::fs::symlink("/proc/version", path).unwrap(), "it has no length by now"),
        (|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()), "No such device or address"),
    ];
    for (make, why) in made {
        for (flag, name) in [("-d", "@file"), ("-F", "a=@file")] {
            let folder = Folder::new().file("file", "content");
            let path = folder.path().join("file");
            let server = Server::with(move |_, _| {
                std::fs::remove_file(&path).unwrap();
                make(&path);
                Reply::status(503)
            });
            let outcome = http_in(&folder, &["-q", "PUT", flag, name, &server.url("/")]);
            assert_eq!((outcome.code, server.count()), (Some(125), 1), "{flag} {why}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(why), "{flag} {why}: {}", outcome.stderr);
        }
    }
}

/// Where a process may have few files, that is an error like others.
#[test]
fn too_few_files_are_an_error() {
    let server = Server::new(vec![Reply::ok("hello")]);
    let mut codes = Vec::new();
    for files in 4..24 {
        let limited = format!("ulimit -n {files}; exec \"$0\" http -q --max-attempts 1 {}", server.url("/"));
        let output = std::process::Command::new("sh").args(["-c", &limited, env!("CARGO_BIN_EXE_relent")]).output();
        let output = output.unwrap();
        let (code, stderr) = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
        let is_said = stderr.starts_with("error: ") && !stderr.contains("os error");
        assert!(code == Some(0) || (matches!(code, Some(1 | 125)) && is_said), "{files}: {code:?} {stderr}");
        codes.push(code);
    }
    assert!(codes.contains(&Some(125)) && codes.last() == Some(&Some(0)), "{codes:?}");
}

#[test]
fn a_body_of_several_files() {
    refused(
        &["-d", "@one", "-d", "two", "localhost"],
        "error: a file or stdin is the whole body, and there are several --data\nhint: texts can be joined, files cannot\n",
    );
    refused(
        &["-X", "PUT", "POST", "localhost"],
        "error: two methods are given, POST and PUT\nhint: leave out one of them\n",
    );
}

#[test]
fn an_output_that_cannot_be_written() {
    let server = Server::new(vec![Reply::ok("hello\n")]);
    let url = server.url("/");
    refused(
        &["-o", "missing/file", &url],
        "error: cannot write to missing/file: No such file or directory\nhint: make the folder first (mkdir -p)\n",
    );
    refused(&["-o", "/", &url], "error: cannot write to /: it is a folder\nhint: -o wants the name of a file\n");
    assert_eq!(server.count(), 0, "nothing was sent");
    refused(
        &["-o", "/dev/full", &url],
        "error: cannot write to /dev/full: No space left on device\nhint: make room, or choose another place with -o\n",
    );
    assert_eq!(server.count(), 1, "a full disk is not retried");
}

#[test]
fn a_folder_that_becomes_full() {
    let folder = Folder::new();
    let server = Server::new(vec![Reply::ok("x".repeat(100_000))]);
    // A file that may not grow is what a full folder looks like, without having to fill one.
    let script = "ulimit -f 8; trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut command = tool("bash");
    command.args(["-c", script, "relent", "http", "-o", "file", &server.url("/")]).current_dir(folder.path());
    let outcome = super::finish(command);
    let stderr = format!("error: cannot write to {}: File too large\nhint: choose another place with -o\n", "file");
    expect(&outcome, 125, "", &stderr);
    assert_eq!((folder.names(), server.count()), (vec![], 1));
}

#[test]
fn statuses_that_are_none() {
    refused(
        &["--retry-on-status=4xx", "localhost"],
        "error: --retry-on-status: \"4xx\" is no status\nhint: statuses are numbers from 100 to 999: 409,423 or 520-529\n",
    );
    refused(
        &["--stop-on-status=509-500", "localhost"],
        "error: --stop-on-status: 509-500 ends before it begins\nhint: write 500-509\n",
    );
}

#[test]
fn a_key_that_is_none() {
    refused(
        &["POST", "--idempotency-key=schlüssel", "localhost"],
        "error: the idempotency key has a character that is not printable ASCII\nhint: use 1 to 255 letters, digits and signs\n",
    );
}

#[test]
fn a_connect_timeout_that_is_none() {
    refused(
        &["--connect-timeout=5", "localhost"],
        "error: --connect-timeout: the duration has no unit\nhint: write it like 100ms, 1.5s, 1m30s or 2h; units are ns, us, ms, s, m, h, d\n",
    );
}

#[test]
fn certificates_that_are_none() {
    let hint = "hint: --cacert wants certificates in PEM: -----BEGIN CERTIFICATE-----\n";
    refused(
        &["--cacert=missing.pem", "https://localhost"],
        &format!("error: cannot read missing.pem: No such file or directory\n{hint}"),
    );
    let folder = Folder::new().file("empty.pem", "hello\n");
    let outcome = http_in(&folder, &["--cacert=empty.pem", "https://localhost"]);
    expect(&outcome, 125, "", &format!("error: empty.pem has no certificate in it\n{hint}"));
}

#[test]
fn a_policy_file_with_an_error() {
    let folder = Folder::new().file("relent.toml", "max_attempts = 0\n");
    let outcome = run(&folder, &["http", "localhost"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(125), ""));
    crate::binary::golden("http-policy-error.txt", &outcome.stderr);
}

#[test]
fn faults_are_events_too() {
    let stderr = r#"{"event":"error","error":"the scheme ftp:// is not supported","hint":"http:// and https:// are; relent connect waits for tcp:// and unix:","code":125}
"#;
    refused(&["--json", "ftp://example.com/"], stderr);
}

/// What is sent may decide what comes, and a part does not say what was sent.
#[test]
fn a_download_with_a_body_is_not_gone_on_with() {
    let stderr = "\
error: -C - goes on with a plain GET only
hint: leave out the method, the body and the range
";
    refused(&["-C", "-", "-o", "file", "-X", "GET", "-d", "q=a", "http://127.0.0.1:1/"], stderr);
    refused(&["-C", "-", "-o", "file", "-X", "GET", "-F", "q=a", "http://127.0.0.1:1/"], stderr);
    refused(&["-C", "-", "-o", "file", "-H", "X-HTTP-Method-Override: POST", "http://127.0.0.1:1/"], stderr);
}

/// Which of them is meant nobody knows, and with another one what was done is done again.
#[test]
fn a_key_is_given_once() {
    let stderr = "\
error: the idempotency key is given twice: by --idempotency-key and by -H
hint: leave one of them out; --idempotency-key=KEY says which
";
    for key in ["--idempotency-key", "--idempotency-key=order-18"] {
        refused(&["POST", key, "-H", "Idempotency-Key: order-17", "http://127.0.0.1:1/"], stderr);
    }
}

#[test]
fn a_url_with_a_tab_or_two_lines_is_none() {
    for url in ["http://127.0.0.1:1/a\tb", "PASSWORD\thost", "http://127.0.0.1\n:1/"] {
        let said = http(&[url]).stderr;
        assert!(said.contains("is no URL: it has a tab or the end of a line in it"), "{said}");
    }
}

/// What it stands for would be another password.
#[test]
fn a_proxy_of_the_environment_with_bytes_that_are_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let mut command = folder.command(&["http", "http://127.0.0.1:1/"]);
    let raw = std::ffi::OsStr::from_bytes(b"http://ann:p\xffw12345@127.0.0.1:2");
    let output = command.env("http_proxy", raw).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: http_proxy: ") && said.contains("has bytes in it that are no text"), "{said}");
    assert!(!said.contains("12345"), "{said}");
}

#[test]
fn a_url_that_is_too_long_is_refused_at_once() {
    let long = format!("http://127.0.0.1:1/{}", "a".repeat(70_000));
    let stderr = "\
error: the URL is too long to be asked for: 70019 bytes
hint: up to 65534 bytes are; -d sends more
";
    refused(&[&long], stderr);
}
