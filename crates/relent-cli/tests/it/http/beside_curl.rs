//! The same command line beside a real curl: the same requests, bodies and files.

use super::{
    command,
    server::{Reply, Request, Server},
};
use crate::binary::Folder;
use std::{collections::BTreeSet, process::Command};

/// What one of them did.
#[derive(Debug, PartialEq, Eq)]
struct Deed {
    stdout: Vec<u8>,
    files: Vec<(String, String)>,
    /// First line, headers and body of each.
    requests: Vec<(String, BTreeSet<String>, Vec<u8>)>,
}

/// Method, target, and headers without the order, the case of their names, and what says who asks.
fn plain(request: &Request) -> (String, BTreeSet<String>, Vec<u8>) {
    let mut lines = request.head.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let name = name.to_ascii_lowercase();
        // To a proxy curl says one thing more, which no standard knows; for the rest of a body relent does.
        let is_own = ["user-agent", "proxy-connection", "accept-encoding"].contains(&name.as_str());
        (!is_own).then(|| format!("{name}:{}", value.trim()))
    };
    (first, lines.filter_map(header).collect(), request.body.clone())
}

fn answer(request: &Request) -> Reply {
    // With no number in it that could be a port.
    let body = "0a1b2c3d4e";
    let type_and_tag = ["Content-Type: text/x", "ETag: \"v1\""];
    match (request.line().split(' ').nth(1).unwrap_or_default(), request.header("range")) {
        ("/moved", _) => Reply::new(302, &["Location: /there?x"], ""),
        ("/kept", _) => Reply::new(307, &["Location: /there"], "moved"),
        ("/not", _) => Reply::new(404, &[], "no"),
        (_, Some(range)) => {
            let from: usize = range.trim_start_matches("bytes=").split('-').next().unwrap().parse().unwrap();
            let range = format!("Content-Range: bytes {from}-9/10");
            Reply::new(206, &[range.as_str(), type_and_tag[1]], &body[from..])
        }
        _ if request.line().starts_with("HEAD") => Reply::new(200, &["X: y"], ""),
        _ => Reply::new(200, &type_and_tag, body),
    }
}

fn deed(program: &[&str], args: &[&str]) -> Deed {
    let server = Server::with(|_, request| answer(request));
    let folder = Folder::new().file("data", "a\nb").file("part", "0a1b").file("empty", "");
    let (place, port) = (server.address().to_string(), server.address().port().to_string());
    let args: Vec<String> = args.iter().map(|arg| arg.replace("HOST", &place).replace("PORT", &port)).collect();
    let mut it = match program {
        ["curl", flags @ ..] => {
            let mut curl = Command::new("curl");
            curl.args(flags).current_dir(folder.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
            curl
        }
        ours => command(&folder, ours),
    };
    let output = it.args(args).output().expect("there is no curl: `cargo xtask test` installs it");
    let shown = |text: &[u8]| String::from_utf8_lossy(text).replace(&place, "HOST").replace(&port, "PORT");
    let requests = server.requests().into_iter().map(|request| {
        let (line, headers, body) = plain(&request);
        (shown(line.as_bytes()), headers.iter().map(|header| shown(header.as_bytes())).collect(), body)
    });
    Deed {
        stdout: shown(&output.stdout).into_bytes(),
        files: folder.names().into_iter().map(|name| (name.clone(), folder.read(&name))).collect(),
        requests: requests.collect(),
    }
}

#[test]
fn the_same_flags_do_the_same() {
    let mut differ = Vec::new();
    for args in [
        &["http://HOST/a"][..],
        &["HOST/a"],
        &["http://HOST/b/../a/./c?q=%20x#fragment"],
        &["http://ann:p%20w@HOST/"],
        &["-o", "file", "http://HOST/a"],
        &["-O", "http://HOST/a/name.txt?x"],
        &["-C", "-", "-o", "part", "http://HOST/a"],
        &["-X", "DELETE", "http://HOST/a"],
        &["-XPATCH", "-d", "x", "http://HOST/a"],
        &["-d", "a=b", "-d", "c=d", "http://HOST/a"],
        &["-d", "", "http://HOST/a"],
        &["-d", "@empty", "http://HOST/a"],
        &["-X", "PUT", "-d", "", "http://HOST/a"],
        &["--data-binary", "@data", "http://HOST/a"],
        &["-X", "PUT", "--data-binary", "@data", "-H", "Content-Type: text/plain", "http://HOST/a"],
        &["-u", "ann:p:w", "http://HOST/a"],
        &["-u", "ann:", "http://HOST/a"],
        &["-H", "X: y", "-H", "Accept: b/c", "http://HOST/a"],
        &["-H", "Host: other.example", "http://HOST/a"],
        &["-H", "Range: bytes=3-", "http://HOST/a"],
        &["http://HOST/moved"],
        &["-L", "http://HOST/moved"],
        &["-L", "-d", "x", "http://HOST/moved"],
        &["-L", "-d", "x", "http://HOST/kept"],
        &["-L", "-X", "PUT", "-d", "x", "http://HOST/kept"],
        &["-w", "\\n%{http_code} %{size_download} %{content_type} %{method} %{url_effective}\\n", "http://HOST/a"],
        &["-w", "%{http_code} %{redirect_url} %{num_redirects}\\t%%|%x|\\q", "http://HOST/moved"],
        &[
            "-L",
            "-w",
            "%{num_redirects} %{url_effective} %{remote_ip} %{remote_port} %header{etag}",
            "http://HOST/moved",
        ],
        &["-o", "x", "-w", "%{filename_effective} %{exitcode}", "http://HOST/a"],
        &["--resolve", "far.example:PORT:127.0.0.1", "http://far.example:PORT/a"],
        &["-x", "http://HOST", "-U", "ann:pw", "http://far.example/a"],
        &["-x", "http://HOST", "--noproxy", "127.0.0.1", "http://HOST/a"],
        &["--connect-timeout", "5s", "http://HOST/a"],
    ] {
        // curl has seconds, and no unit.
        let theirs: Vec<&str> = args.iter().map(|arg| if *arg == "5s" { "5" } else { arg }).collect();
        let curl = deed(&["curl", "-s"], &theirs);
        let ours = deed(&["http", "-q", "--max-attempts=1", "--retry-unsafe"], args);
        if ours != curl {
            differ.push(format!("{args:?}:\ncurl {curl:?}\nours {ours:?}\n"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.concat());
}
