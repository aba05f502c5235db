//! Against servers, files and neighbours that mean no good.

use super::{
    expect, http, http_in,
    server::{Reply, Server},
};
use crate::binary::{Folder, Outcome};
use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    process::Command,
};

const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// `relent http` as somebody else.
fn as_nobody(folder: &Folder, args: &[&str]) -> Outcome {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_relent"), "http", "-q"]);
    command.args(args).current_dir(folder.path());
    super::finish(command)
}

#[test]
fn a_replaced_file_never_runs_as_somebody_else() {
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    let path = folder.path().join("file");
    if is_root() {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
    let owner = fs::metadata(&path).unwrap().uid();
    expect(&http_in(&folder, &["-o", "file", &server.url("/")]), 0, "", "");
    let data = fs::metadata(&path).unwrap();
    assert_eq!((data.mode() & 0o7777, data.uid(), folder.read("file").as_str()), (0o755, owner, "new"));
}

#[test]
fn a_file_of_another_user_is_refused() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(folder.path().join("file"), Permissions::from_mode(0o666)).unwrap();
    let outcome = as_nobody(&folder, &["-o", "file", &server.url("/")]);
    assert_eq!((outcome.code, folder.read("file").as_str()), (Some(125), "old"), "{}", outcome.stderr);
    // As in /tmp: even for root, a file that somebody else put there is none to fill.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    chown(folder.path().join("file"), Some(NOBODY), None).unwrap();
    let outcome = http_in(&folder, &["-q", "-o", "file", &server.url("/")]);
    assert_eq!((outcome.code, folder.read("file").as_str()), (Some(125), "old"), "{}", outcome.stderr);
    // A part that somebody else has laid there is not used.
    fs::write(folder.path().join(".own.part"), "evil").unwrap();
    chown(folder.path().join(".own.part"), Some(NOBODY), None).unwrap();
    let outcome = http_in(&folder, &["-q", "-C", "-", "-o", "own", &server.url("/")]);
    assert_eq!((outcome.code, folder.read("own").as_str()), (Some(0), "new"), "{}", outcome.stderr);
    assert_eq!(as_nobody(&folder, &["-o", "mine", &server.url("/")]).code, Some(0), "a file of one's own is fine");
}

/// Who is not in a group can give it nothing, and is told so before.
#[test]
fn a_group_that_is_lost_is_told_of() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    let path = folder.path().join("file");
    chown(folder.path(), Some(NOBODY), None).unwrap();
    for (mode, new, is_told) in
        [(0o640, 0o600, true), (0o664, 0o644, true), (0o644, 0o644, false), (0o600, 0o600, false)]
    {
        fs::write(&path, "old").unwrap();
        chown(&path, Some(NOBODY), Some(0)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_relent"), "http"]);
        command.args(["-o", "file", &server.url("/")]).current_dir(folder.path());
        let outcome = super::finish(command);
        let data = fs::metadata(&path).unwrap();
        assert_eq!((outcome.code, data.mode() & 0o777, data.gid()), (Some(0), new, NOBODY), "{}", outcome.stderr);
        assert_eq!(
            outcome.stderr.contains("the file's group is one that you cannot give"),
            is_told,
            "{mode:o}: {}",
            outcome.stderr
        );
    }
}

/// As containers and services have it (`--cap-drop`, `CapabilityBoundingSet=`).
#[test]
fn root_that_may_give_nothing_away_is_told_so_before_anything_is_sent() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    let path = folder.path().join("file");
    let is_of = |owner, mode| {
        chown(&path, Some(owner), Some(NOBODY)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    };
    let http = || {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-chown", "--inh-caps=-chown", env!("CARGO_BIN_EXE_relent"), "http", "POST"]);
        command.args(["-o", "file", &server.url("/")]).current_dir(folder.path());
        super::finish(command)
    };
    is_of(NOBODY, 0o666);
    let refused = "error: cannot write to file: Operation not permitted\nhint: choose another place with -o\n";
    expect(&http(), 125, "", refused);
    assert_eq!((server.count(), folder.read("file"), folder.names()), (0, "old".into(), vec!["file".to_owned()]));
    is_of(0, 0o640);
    let said = "\
relent: the file's group is one that you cannot give: the new one gets that of new files, which may do no more than everybody
";
    expect(&http(), 0, "", said);
    let data = fs::metadata(&path).unwrap();
    assert_eq!((data.mode() & 0o777, data.gid(), folder.names().len()), (0o600, 0, 1));
}

/// As containers and services have it that may give away, and not change what is somebody else's.
#[test]
fn root_without_all_rights_leaves_a_file_of_another_user_its_permissions() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    let path = folder.path().join("file");
    for (group, mode) in [(NOBODY, 0o644), (NOBODY, 0o640), (12_345, 0o664), (12_345, 0o604), (0, 0o600)] {
        fs::write(&path, "old").unwrap();
        chown(&path, Some(NOBODY), Some(group)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-all,+chown,+dac_override", "--inh-caps=-all", env!("CARGO_BIN_EXE_relent")]);
        command.args(["http", "-o", "file", &server.url("/")]).current_dir(folder.path());
        expect(&super::finish(command), 0, "", "");
        let data = fs::metadata(&path).unwrap();
        let is = (folder.read("file"), data.uid(), data.gid(), data.mode() & 0o7777);
        assert_eq!(is, ("new".into(), NOBODY, group, mode), "{mode:o}");
    }
    assert_eq!(folder.names(), ["file"]);
}

/// As a container has a file of its host.
#[test]
fn a_file_that_is_mounted_is_refused_before_anything_is_sent() {
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old").file("host", "old");
    let mut command = Command::new("unshare");
    let line = "mount --bind host file || exit 99; exec \"$0\" http POST -o file \"$1\"";
    command.args(["-m", "sh", "-c", line, env!("CARGO_BIN_EXE_relent"), &server.url("/")]).current_dir(folder.path());
    let outcome = super::finish(command);
    if outcome.code == Some(99) || outcome.stderr.contains("unshare:") {
        eprintln!("SKIPPED a_file_that_is_mounted_is_refused_before_anything_is_sent: it takes root");
        return;
    }
    let refused = "error: cannot replace file: it is mounted by itself\nhint: write into it: relent http ... > file\n";
    expect(&outcome, 125, "", refused);
    assert_eq!((server.count(), folder.read("host")), (0, "old".into()));
}

/// What we have downloaded into a folder of theirs is ours, and they may move it, or give it another name.
#[test]
fn what_is_ours_in_a_folder_like_tmp_may_have_been_brought_there() {
    let folder = Folder::new().file("seed", "EVIL");
    let (server, path) = (Server::new(vec![Reply::ok("WHOLE")]), |name: &str| folder.path().join(name));
    let mode = |name: &str| fs::metadata(path(name)).unwrap().mode() & 0o7777;
    let is = |mode: u32| fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    let url = server.url("/");
    let args = ["--base", "1ms", "--max-attempts", "1", "-C", "-", "-o", "file", &url];
    // What a run that broke off leaves says what it is a part of; it would be gone on with.
    let broken = Server::new(vec![Reply::raw(
        b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\nContent-Length: 5\r\n\r\nEVI",
    )]);
    let to_broken = broken.url("/");
    let left = || http_in(&folder, &["-q", "--max-attempts", "1", "-C", "-", "-o", "file", &to_broken]);
    assert_eq!(left().code, Some(1));
    assert_eq!(folder.names(), [".file.part", ".file.part.from", "seed"]);
    is(0o1777);
    assert_eq!(left().code, Some(1));
    assert_eq!(broken.requests()[1].header("range"), None, "nothing is gone on with");
    fs::rename(path("seed"), path("file")).unwrap();
    fs::set_permissions(path("file"), Permissions::from_mode(0o666)).unwrap();
    let said = "relent: -C - begins anew: in a folder that others may write to, what is there may be theirs\n";
    expect(&http_in(&folder, &args), 0, "", said);
    assert_eq!(server.requests()[0].header("range"), None);
    assert_eq!(folder.read("file"), "WHOLE");
    assert_eq!(mode("file"), 0o644, "as a new one, however many may write to what was there");
    // A group of theirs gets no more than everybody, and that of a new file no more than with one.
    let own = fs::metadata(path("file")).unwrap().gid();
    for (group, before, after) in
        [(own, 0o660, 0o640), (own, 0o755, 0o755), (own, 0o664, 0o644), (own, 0o600, 0o600), (12_345, 0o660, 0o600)]
    {
        if chown(path("file"), None, Some(group)).is_err() {
            eprintln!("SKIPPED what_is_ours_in_a_folder_like_tmp_may_have_been_brought_there in part: it takes root");
            continue;
        }
        fs::set_permissions(path("file"), Permissions::from_mode(before)).unwrap();
        expect(&http_in(&folder, &["-o", "file", &url]), 0, "", "");
        assert_eq!(mode("file"), after, "{before:o}");
    }
    let _ = chown(path("file"), None, Some(own));
    fs::hard_link(path("file"), path("other")).unwrap();
    let refused = http_in(&folder, &["-o", "other", &url]);
    assert_eq!(refused.code, Some(125), "{}", refused.stderr);
    assert!(refused.stderr.contains("it has another name elsewhere, in a folder that others may write to"));
    // Where nobody else writes, all stays as it was.
    is(0o755);
    fs::set_permissions(path("file"), Permissions::from_mode(0o664)).unwrap();
    expect(&http_in(&folder, &["-o", "file", &url]), 0, "", "");
    assert_eq!(mode("file"), 0o664);
}

/// It is a log of a cron job's more often than a terminal.
#[test]
fn a_file_that_is_open_already_is_written_to_where_it_stands() {
    let server = Server::new(vec![Reply::ok("body;")]);
    let folder = Folder::new();
    let script = format!(
        "{{ printf 'before;'; relent http -o /dev/stdout {url}; printf 'between;'; relent http -o /dev/fd/3 {url}; \
         relent run --report /dev/stderr -- true; printf 'after\n'; }} >log 3>&1 2>&1; \
         relent explain --svg /dev/stdout --base 1s >>log",
        url = server.url("/")
    );
    let mut command = crate::binary::tool("sh");
    command.args(["-c", &format!("umask 022; {script}")]).current_dir(folder.path());
    expect(&super::finish(command), 0, "", "");
    let log = folder.read("log");
    assert!(log.starts_with("before;body;between;body;{\"command\":"), "{log}");
    assert!(log.contains("}\nafter\n") && log.contains("</svg>"), "{log}");
    assert_eq!(fs::metadata(folder.path().join("log")).unwrap().mode() & 0o777, 0o644);
    assert_eq!(folder.names(), ["log"]);
}

#[test]
fn a_link_that_leads_nowhere_yet() {
    let server = Server::new(vec![Reply::status(404), Reply::ok("new")]);
    let folder = Folder::new();
    symlink("target", folder.path().join("link")).unwrap();
    assert_eq!(http_in(&folder, &["-q", "-o", "link", &server.url("/")]).code, Some(3));
    assert_eq!(folder.names(), ["link"], "what fails leaves nothing behind");
    expect(&http_in(&folder, &["-o", "link", &server.url("/")]), 0, "", "");
    assert_eq!(folder.read("target"), "new");
    assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
}

#[test]
fn what_was_not_asked_for_is_not_decoded_and_bodies_have_a_limit() {
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
    let server = Server::new(vec![Reply::new(200, &["Content-Encoding: gzip"], gzip)]);
    let folder = Folder::new();
    assert_eq!(http_in(&folder, &["-q", "-o", "file", &server.url("/")]).code, Some(0));
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), gzip);
    let outcome = http(&["--compressed", "--max-size=4B", &server.url("/")]);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (the body is larger than the --max-size of 4B)
hint: --max-size takes more, or unlimited
";
    expect(&outcome, 3, "", stderr);
}

#[test]
fn secrets_are_not_printed() {
    let server = Server::new(vec![Reply::new(404, &["Set-Cookie: sid=hunter2", "Location: /?token=hunter2"], "")]);
    let url = server.url("/?api_key=hunter2").replace("//", "//ann:hunter2@");
    for args in [
        vec!["-v", "-H", "X-Api-Key: hunter2", "-H", "Private-Token: hunter2", &url],
        vec!["-v", "--json", &url],
        vec!["http://ann:hunter2@ho st/?token=hunter2"],
        vec!["--json", "http://ann:hunter2@host:99999/?token=hunter2"],
        vec!["-H", "hunter2", "localhost"],
        vec!["-v", "--max-attempts=1", "https:/ann:hunter2@127.0.0.1:1/"],
        vec!["-v", "--max-attempts=1", "http:\\\\ann:hunter2@127.0.0.1:1/"],
        vec!["-F", "password=a;type=x;hunter2", "localhost"],
        vec!["--resolve", "ann:hunter2@x", "localhost"],
        vec!["-E", "cert.pem:hunter2", "https://localhost"],
        vec!["--cacert", "http://ann:hunter2@x/", "https://localhost"],
        vec!["--policy", "http://ann:hunter2@x/", "localhost"],
        vec!["--headr=X: hunter2", "localhost"],
        vec!["localhost", "http://ann:hunter2@x/", "http://ann:hunter2@x/"],
        vec!["-H", "Authorization hunter2", "--json", "localhost"],
        vec!["http://ann:hunter2@host/", "GET"],
        vec!["-x", "socks9://ann:hunter2@proxy", "localhost"],
        vec!["-v", "--max-attempts=1", "http://hunter2@127.0.0.1:1/"],
        vec!["-v", "--max-attempts=1", "http://ann%3Ahunter2%40127.0.0.1:1/"],
        vec!["-v", "--max-attempts=1", "http://127.0.0.1:1/a;jsessionid=hunter2?x=1;sid=hunter2#token%3Dhunter2"],
        vec!["-v", "--max-attempts=1", "http://127.0.0.1:1/?to%256ben=hunter2&next=%252F%253Fpwd%253Dhunter2"],
        vec!["-v", "-u", "ann:hunter2", "-H", "Cookie: a=hunter2", "-H", "Proxy-Authorization: Basic hunter2", &url],
        vec!["-v", "-H", "X-Upstream: Bearer hunter2", "--data", "password=hunter2", &url],
        vec!["-v", "--json", "-F", "password=hunter2", &url],
        vec!["-F", "hunter2", "localhost"],
        vec!["-x", "socks5:///ann:hunter2@h:1", "localhost"],
        vec!["-v", "--max-attempts=1", "http:///ann:hunter2@127.0.0.1:1/"],
        vec!["--policy", "https:///ann:hunter2@h/x", "localhost"],
        vec!["--policy", "https:\\\\ann:hunter2@h", "localhost"],
        vec!["-F", "password=hunter2;type=x/y;headers=a", "localhost"],
        vec!["--dta", "password=hunter2", "localhost"],
        vec!["localhost", "password=hunter2", "x"],
        vec!["localhost", "Authorization: Bearer hunter2"],
        vec!["-u", "ann:hunter2"],
        vec!["-U", "ann:hunter2", "-x", "http://127.0.0.1:1", "-v", "--max-attempts=1", "http://far.invalid"],
        vec!["-x", "http://hunter2@127.0.0.1:1", "-v", "--max-attempts=1", "http://far.invalid"],
        vec!["-x", "http://ann%3Ahunter2%40127.0.0.1:1", "--max-attempts=1", "http://far.invalid"],
        vec!["--resolve", "hunter2@x:1:2", "localhost"],
        vec!["-x", "http://ann:hunter2@127.0.0.1:1", "--max-attempts=1", "http://far.invalid"],
    ] {
        let outcome = http(&args);
        assert!(outcome.code != Some(0) && !outcome.stderr.contains("hunter2"), "{args:?}: {}", outcome.stderr);
    }
}

/// Whoever writes a URL writes some signs out.
#[test]
fn a_secret_is_not_told_by_an_answer_that_has_it_written_out() {
    let written = ["%68unter2%2Flonger%2Bx", "hunter2%2flonger+%78", "hunter2%252Flonger%2Bx"];
    let places = ["Location: /x/", "Server: a/", "X-Echo: ", "Link: </x>; rel=", "X-Url: http://h/"];
    for said in written {
        let head = places.map(|place| format!("{place}{said}"));
        let server = Server::new(vec![Reply::new(302, &head.each_ref().map(String::as_str), "")]);
        for secret in [["-H", "X-Api-Key: hunter2/longer+x"], ["-u", "ann:hunter2/longer+x"]] {
            for how in ["-v", "--seed=1"] {
                let outcome = http(&[how, "--max-attempts=1", secret[0], secret[1], &server.url("/")]);
                assert!(outcome.stderr.contains("***") && !outcome.stderr.contains("longer"), "{}", outcome.stderr);
            }
        }
    }
}

/// As JSON, programs and pages write what is not of ASCII.
#[test]
fn a_secret_of_another_script_is_not_told_by_an_answer_that_has_it_written_out() {
    for said in [
        r"\u041f\u0430\u0440\u043e\u043b\u044c2024",
        r"\u{41f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}2024",
        "&#1055;&#1072;&#1088;&#1086;&#1083;&#1100;2024",
    ] {
        let heads = [&format!("Location: /x/{said}"), &*format!("Server: a {said}")];
        let server = Server::new(vec![Reply::new(302, &heads, "")]);
        for how in ["-v", "--seed=1"] {
            let told = http(&[how, "--max-attempts=1", "-u", "ann:Пароль2024", &server.url("/")]).stderr;
            assert!(told.contains("302") && !told.contains("2024"), "{told}");
        }
    }
}

/// Its letters alone are too few to be looked for.
#[test]
fn a_password_of_signs_is_hidden_as_pages_and_json_write_it() {
    let password = "K7&m!<2$/p9%";
    let folder = Folder::new().file("headers", &format!("X-Api-Key: {password}\n"));
    let file = format!("@{}", folder.path().join("headers").display());
    for said in [password, "K7&amp;m!&lt;2$/p9%", r"K7\u0026m!\u003c2$/p9%", r"K7&m!<2$\/p9%"] {
        let head = format!("WWW-Authenticate: Bearer error_description=\"unknown key {said} given\"");
        let server = Server::new(vec![Reply::new(401, &[&head], "")]);
        let header = format!("Authorization: Bearer {password}");
        for given in [["-u", &format!("ann:{password}")], ["-H", &header], ["-H", &file]] {
            let told = http(&[&["-v", "--max-attempts=1"], &given[..], &[&server.url("/")]].concat()).stderr;
            assert!(told.contains("unknown key *** given"), "{given:?}: {told}");
        }
    }
}

/// A long token has any short word in it somewhere.
#[test]
fn what_relent_says_itself_is_told_whatever_token_is_sent() {
    let head = ["Link: </x>; rel=\"next\"", "WWW-Authenticate: Bearer error=\"expired\""];
    let server = Server::new(vec![Reply::new(401, &head, "")]);
    let policy = |flags: &[&str]| {
        let said = http(&[&["-v", "--max-attempts=1", "--seed=1"], flags, &[&server.url("/")]].concat()).stderr;
        assert!(said.contains("rel=\"next\"") && said.contains("error=\"expired\""), "{said}");
        said.lines().next().unwrap_or_default().to_owned()
    };
    let header = "Authorization: Bearer QK1sPz2mTfullW0sexponential9.Anextexpired7.2m.100ms_fulb";
    assert_eq!(policy(&["-H", header]), policy(&[]));
    let wrong = http(&["-H", header, "--jitter=fulb", &server.url("/")]).stderr;
    assert!(wrong.contains("\"full\"") || wrong.contains("full"), "{wrong}");
    let wrong = http(&["-H", header, "--max-size=1sp", &server.url("/")]).stderr;
    assert!(wrong.contains("1sp"), "{wrong}");
}

/// It is called so because of the host, the region and the path, and no secret.
#[test]
fn where_a_signed_request_goes_is_told() {
    let aws = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7/20261125/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=f00dcafe42";
    let server = Server::new(vec![Reply::new(307, &["Location: http://b.s3.eu-west-1.localhost:1/"], "")]);
    let header = format!("Authorization: {aws}");
    let said = http(&["-L", "--max-attempts=1", "--connect-timeout=1s", "-H", &header, &server.url("/")]).stderr;
    assert!(said.contains("b.s3.eu-west-1.localhost") && !said.contains("AKIA"), "{said}");
    let digest = "Authorization: Digest username=\"ann\", realm=\"r\", nonce=\"dcd98b71\", uri=\"/api/v2/orders\", response=\"f00dcafe\"";
    let server = Server::new(vec![Reply::new(404, &["Server: f00dcafe"], "")]);
    let said = http(&["-v", "--max-attempts=1", "-H", digest, &server.url("/api/v2/orders")]).stderr;
    assert!(said.contains("GET /api/v2/orders") && !said.contains("f00dcafe"), "{said}");
}

/// As others that cannot be read are, but behind the name of a secret.
#[test]
fn a_file_of_a_form_that_is_missing_is_named() {
    for field in ["doc=@report.pdf", "photo=@my photo.jpg", "a=<report.pdf", "doc=@report.pdf;filename=r.pdf"] {
        let file = field.split(['@', '<']).nth(1).unwrap().split(';').next().unwrap();
        for given in [&["-F", field][..], &[&format!("--form={field}")], &[&format!("-F{field}")]] {
            let said = http(&[given, &["http://127.0.0.1:1/"]].concat()).stderr;
            assert!(said.contains(&format!("cannot read {file}: ")), "{given:?}: {said}");
        }
    }
}

/// As JSON writes it, and as whoever reads that says it again.
#[test]
fn a_password_with_a_quote_is_hidden_where_it_is_said_again() {
    let sent = r#"D4r,rG\"wqBeu"#;
    for (head, shown) in [
        (r#"WWW-Authenticate: Bearer error_description="key D4r,rG"wqBeu is unknown""#, "key *** is unknown"),
        (r#"Server: a D4r,rG\"wqBeu"#, "a ***"),
    ] {
        let server = Server::new(vec![Reply::new(401, &[head], "")]);
        for given in [
            ["-d", &format!(r#"{{"password":"{sent}","user":"ann"}}"#)],
            ["-d", &format!(r#"{{"user":"ann","password":"{sent}"}}"#)],
            ["-d", &format!(r#"{{"auth":{{"user":"ann","password":"{sent}"}},"x":[1,"b"]}}"#)],
            ["-H", &format!(r#"X-Auth: {{"key":"{sent}","user":"ann","n":1}}"#)],
        ] {
            let said = http(&[&["-v", "--max-attempts=1"], &given[..], &[&server.url("/")]].concat()).stderr;
            assert!(said.contains(shown) && !said.contains("wqBeu"), "{given:?}: {said}");
        }
    }
}

/// What is hidden where it is sent is hidden where it is said again, and a file is for secrets.
#[test]
fn what_is_hidden_of_a_request_is_hidden_of_its_answer() {
    let folder = Folder::new().file("headers", "X-Db-Kennwort: hunter2longer\nOrigin: http://far.test:4711\n");
    let file = format!("@{}", folder.path().join("headers").display());
    let head = ["Location: /x/hunter2longer", "X-Echo: hunter2longer", "Server: hunter2longer"];
    let server = Server::new(vec![Reply::new(302, &head, "")]);
    let url = server.url("/");
    let proxy = url.replace("//", "//hunter2longer@");
    let said = http(&["-v", "--max-attempts=1", "-H", &file, "-x", &url, "http://far.test:4711/"]).stderr;
    assert!(said.contains("GET http://far.test:4711/") && !said.contains("longer"), "{said}");
    for given in [
        ["-H", &file, &url],
        ["-H", "Referer: http://ann:hunter2longer@h/", &url],
        ["-H", "Referer: http://h/?x=hunter2longer", &url],
        ["-H", "X-Some: kennwort=hunter2longer", &url],
        ["-H", "Cookie: connect.sid=s%3Ahunter2longer.Sig%2B12", &url],
        ["-H", "Cookie: a=%7B%22token%22%3A%22hunter2longer%22%7D", &url],
        ["-x", &proxy, "http://far.test:4711/"],
    ] {
        let outcome = http(&[&["-v", "--max-attempts=1"], &given[..]].concat());
        assert!(outcome.stderr.contains("302") && !outcome.stderr.contains("longer"), "{given:?}: {}", outcome.stderr);
    }
}

/// Behind a scheme or the name of a cookie, though no piece between its signs is long enough to be known by itself.
#[test]
fn a_secret_of_short_pieces_is_hidden_where_it_is_said_again() {
    for secret in ["a1b2:c3d4:e5f6:g7h8", "a1b2,c3d4,e5f6,g7h8", "Correct Horse9 Stable7 Hay5x", "k1=v2=k3=v4=k5"] {
        let head = format!("Location: /x/{secret}");
        let server = Server::new(vec![Reply::new(302, &[&head], "")]);
        for sent in ["Authorization: Bearer ", "Cookie: b=c; sid=", "X-Api-Key: id "] {
            for how in ["-v", "--seed=1", "--json"] {
                let header = format!("{sent}{secret}");
                let said = http(&[how, "--max-attempts=1", "-H", &header, &server.url("/")]).stderr;
                assert!(said.contains("302") && !said.contains(&secret[5..9]), "{header}: {said}");
            }
        }
    }
}

/// What a URL makes of it: another way of writing a host, a path or an address.
#[test]
fn a_secret_that_a_redirect_is_made_of_is_hidden_where_the_url_is_told() {
    for (secret, told) in [
        ("Geheim2W\u{f6}rter9LangZ", "geheim2w"),
        ("Stra\u{df}e9Weg7Haus5", "weg7haus"),
        (r"p1\w2\x3\y4\z5", "w2/x3"),
        ("q1/./w2/./e3/./r4", "w2/e3"),
        ("2130772737", "127.1.2.1"),
        // In digits that are made plain ones: the host alone is another text then.
        ("213077273\u{b3}", "127.1.2.1"),
        ("\u{1d7d0}130772737", "127.1.2.1"),
    ] {
        for location in [
            format!("http://{secret}:1/"),
            format!("http://{secret}.localhost:1/"),
            format!("http://localhost:1/{secret}/"),
        ] {
            let head = format!("Location: {location}");
            let server = Server::new(vec![Reply::new(302, &[&head], "")]);
            for how in [&["--seed=1"][..], &["-v"], &["--json"], &["-L"], &["-L", "-v"]] {
                let header = format!("Authorization: Bearer {secret}");
                let flags = ["--max-attempts=1", "--connect-timeout=200ms", "-H", &header, &server.url("/")];
                let said = http(&[how, &flags].concat()).stderr;
                assert!(said.contains("302") || how.contains(&"-L"), "{said}");
                assert!(!said.contains(told) && !said.contains(secret), "{how:?} {location}: {said}");
            }
        }
    }
}

/// A user's own folder is asked for, and where that failed is no secret.
#[test]
fn a_host_is_told_though_the_path_behind_it_is_made_of_a_secret() {
    for location in ["http://127.0.0.1:1/deploy-bot7/x", "//127.0.0.1:1/Hunter2Longer", "\\\\127.0.0.1:1\\deploy-bot7"]
    {
        let server = Server::new(vec![Reply::new(307, &[&format!("Location: {location}")], "")]);
        let flags = ["-v", "-L", "--max-attempts=1", "-u", "deploy-bot7:Hunter2Longer", &server.url("/")];
        let said = http(&flags).stderr;
        assert!(said.contains("cannot connect to HOST: Connection refused"), "{location}: {said}");
        assert!(said.contains("> GET ***\n") && !said.contains("bot7") && !said.contains("Longer"), "{said}");
    }
}

/// Whoever gets a user and a password in base64 knows both.
#[test]
fn a_password_in_base64_is_hidden_where_it_is_said_again() {
    // ann:Hunter2Longer
    let header = "Authorization: Basic YW5uOkh1bnRlcjJMb25nZXI=";
    let folder = Folder::new().file("headers", &format!("{header}\n"));
    let file = format!("@{}", folder.path().join("headers").display());
    let heads = ["Location: /x/Hunter2Longer/y", "X-User: ann:Hunter2Longer", "Server: Hunter2Longer"];
    let server = Server::new(vec![Reply::new(302, &heads, "")]);
    for given in [["-H", header], ["-H", &file], ["-u", "ann:Hunter2Longer"]] {
        for how in ["-v", "--seed=1", "--json"] {
            let said = http(&[&[how, "--max-attempts=1"], &given[..], &[&server.url("/")]].concat()).stderr;
            assert!(said.contains("302") && !said.contains("Longer"), "{given:?}: {said}");
        }
    }
}

/// Services take a key for a user, with any password or none.
#[test]
fn a_key_that_is_a_user_is_hidden_where_it_is_said_again() {
    let heads = ["Location: /u/Hunter2Longer", "WWW-Authenticate: Bearer error=\"Hunter2Longer is unknown\""];
    let server = Server::new(vec![Reply::new(302, &heads, "")]);
    let url = server.url("/");
    let with_user = |user: &str| url.replace("//", &format!("//{user}@"));
    // Hunter2Longer:x
    let basic = "Authorization: Basic SHVudGVyMkxvbmdlcjp4";
    for given in [
        &["-u", "Hunter2Longer:x", &url][..],
        &["-u", "Hunter2Longer:", &url],
        &["-H", basic, &url],
        &[&with_user("Hunter2Longer:x-oauth-basic")],
        &[&with_user("Hunter2Longer")],
        &["-x", &with_user("Hunter2Longer:x"), "http://far.test/"],
        &["-x", &with_user("ann:Hunter2Longer"), "http://far.test/"],
        &["-x", &url, "-U", "Hunter2Longer:x", "http://far.test/"],
    ] {
        for how in ["-v", "--seed=1", "--json"] {
            let said = http(&[&[how, "--max-attempts=1"], given].concat()).stderr;
            assert!(said.contains("302") && !said.contains("Longer"), "{given:?}: {said}");
        }
    }
    // It may be called like the host, and whoever reads has to know which that is.
    let (flags, url) = (["--max-attempts=1", "--connect-timeout=200ms"], "http://production.localhost:1/");
    for sent in [["-u", "production:hunter2"], ["-H", "Authorization: Basic cHJvZHVjdGlvbjpodW50ZXIy"]] {
        let said = http(&[&sent[..], &flags, &[url]].concat()).stderr;
        assert!(said.contains("production.localhost:1") || said.contains("host production.localhost"), "{said}");
    }
}

/// Whatever signs are in it, and in what stands beside it.
#[test]
fn a_secret_parameter_is_hidden_where_it_is_said_again() {
    for secret in ["Hunter2Longer", "Hunter2L@m3ongerX", "Hunter2Lo,m3ngerXyz", "Hunt2;lo?n3/g#er4"] {
        let heads = [format!("WWW-Authenticate: Bearer error=\"key {secret} is unknown\"")];
        let server = Server::new(vec![Reply::new(401, &heads.each_ref().map(String::as_str), "")]);
        let url = |rest: &str| server.url(&rest.replace("PW", secret));
        let body = |text: &str| text.replace("PW", secret);
        let in_a_query = secret.replace('#', "%23");
        for given in [
            &["-d", &body("client_id=x&client_secret=PW&grant_type=client_credentials")][..],
            &["-d", &body("user=ann&key=PW&x=1")],
            &["-d", &body("code=PW")],
            &["-d", &body("a=1"), "-d", &body("code=PW")],
            &["-d", &body("{\"user\":\"ann\",\"password\":\"PW\",\"x\":[1,2]}")],
            &["-F", &body("pin=PW;type=text/plain")],
            &[&url("/?token=PW").replace(secret, &in_a_query)],
            &[&url("/?markers=color:red|label:A&key=PW&x=1").replace(secret, &in_a_query)],
            &[&url("/?$filter=Name eq 'x'&sig=PW").replace(secret, &in_a_query)],
            &[&url("/?to%6ben=PW&x=1").replace(secret, &in_a_query)],
            &[&url("/?data=%7B%22password%22%3A%22PW%22%7D").replace(secret, &in_a_query)],
        ] {
            let url = if given[0].starts_with('-') { url("/") } else { String::new() };
            let args = given.iter().copied().chain(Some(&*url).filter(|url| !url.is_empty()));
            let said = http(&["-v", "--max-attempts=1"].into_iter().chain(args).collect::<Vec<_>>()).stderr;
            assert!(said.contains("key *** is unknown"), "{given:?}: {said}");
        }
    }
    // What stands beside one is told.
    let body = r#"{"password":"Hunter2Longer","client":"Production7","url":"https://login7.example/x"}"#;
    let heads = ["Server: Production7", "Location: https://login7.example/x"];
    let server = Server::new(vec![Reply::new(302, &heads, "")]);
    let form = "password=Hunter2Longer&client=Production7&url=https://login7.example/x";
    for body in [body, form] {
        let said = http(&["-v", "--max-attempts=1", "-d", body, &server.url("/")]).stderr;
        assert!(said.contains("< server: Production7\n") && said.contains("to https://login7.example/x;"), "{said}");
    }
    let session = Server::new(vec![Reply::new(302, &["Location: /x/Hunter2Longer"], "")]);
    let said = http(&["-v", "--max-attempts=1", &session.url("/a|b;jsessionid=Hunter2Longer;v=1/c")]).stderr;
    assert!(said.contains("302") && !said.contains("Longer"), "{said}");
}

/// A quote in the wrong place makes a header a part of the URL.
#[test]
fn an_event_tells_no_more_of_the_command_line_than_a_line() {
    for given in [
        "http://127.0.0.1:1/ -H 'X-Api-Key: Hunter2Longer'",
        "http://127.0.0.1:1/x -d {\"password\":\"Hunter2Longer\"}",
        "http://127.0.0.1:1/ -H Authorization: Bearer Hunter2Longer",
    ] {
        for how in ["--seed=1", "--json"] {
            let said = http(&["-v", how, "--max-attempts=1", given]).stderr;
            assert!(said.contains("***") && !said.contains("Longer"), "{given:?}: {said}");
        }
    }
    let given = ["-H", "X-Api-Key: Hunter2Path", "http://127.0.0.1:1/x/Hunter2Path/y"];
    let said = http(&[&["-v", "--json", "--max-attempts=1"], &given[..]].concat()).stderr;
    assert!(said.contains("\"start\"") && !said.contains("Path"), "{said}");
}

/// Who makes a URL or a name of it makes letters small, and leaves tabs out.
#[test]
fn a_secret_is_not_told_by_what_is_made_of_an_answer() {
    for head in [
        "Location: http://Hunter2Longer.localhost:1/",
        "Location: http://\u{ff28}unter2Longer.localhost:1/",
        "Location: http://h%75nter2longer.localhost:1/",
        "Location: Hunter2Longer://x/y",
        "Location: /x/Hunter2\tLonger",
        "Refresh: 0; url=/Hunter2\tLonger",
        "X-Hunter2Longer: x",
    ] {
        let server = Server::new(vec![Reply::new(302, &[head], "")]);
        for sent in ["Hunter2Longer", "id/Hunter2Longer", "v1.Hunter2Longer", "1|Hunter2Longer", "Hunter2Longer=x"] {
            for how in [&["-v"][..], &["--seed=1"], &["-L", "--json"]] {
                let header = format!("X-Api-Key: {sent}");
                let outcome = http(&[how, &["--max-attempts=1", "-H", &header, &server.url("/")]].concat());
                assert!(!outcome.stderr.to_lowercase().contains("longer"), "{head:?}: {}", outcome.stderr);
            }
        }
    }
}

/// A header that says how long to wait is told, and not all of it: what is left of a secret is one, too.
#[test]
fn a_secret_is_hidden_before_what_tells_to_wait_is_cut() {
    let secret = "Zq7RtYpLm3Xc9VbNk2Wd8FgHj4Ks6QaTu5Ei1Oz0MxBvCnPr";
    let header = format!("X-Api-Key: {secret}");
    for head in [
        format!("RateLimit: \"{secret}\";r=0;t=3000"),
        format!("RateLimit: {secret};r=0;t=3000"),
        format!("RateLimit: {}{secret};r=0;t=3000", "x".repeat(20)),
        format!("RateLimit: a;r=0;t=3000;{secret}"),
        format!("RateLimit: a;r=0;t=3000;x=\"http://ann:{secret}@h/\""),
    ] {
        let server = Server::new(vec![Reply::new(429, &[&head], "")]);
        for how in ["-v", "--seed=1", "--json"] {
            let said = http(&[how, "--max-attempts=2", "-H", &header, &server.url("/")]).stderr;
            assert!(said.contains("429") && !said.contains("Zq7R") && !said.contains("ann"), "{head}: {said}");
        }
    }
}

/// What is missing of words that somebody knows would tell it.
#[test]
fn a_short_secret_is_looked_for_in_no_words_of_ours() {
    for (secret, words) in
        [("test", vec!["/latest"]), ("attempt", vec!["attempt 1 of 1", "--max-attempts"]), ("refused", vec!["refused"])]
    {
        let (header, pair) = (format!("X-Api-Key: {secret}"), format!("ann:{secret}"));
        for given in [["-H", &header], ["-u", &pair]] {
            let url = "http://127.0.0.1:1/latest";
            let outcome = http(&["-v", "--max-attempts=1", given[0], given[1], url]);
            assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
        }
    }
}

/// What looks for it takes no notice of the end of a line.
#[test]
fn a_secret_takes_no_line_away() {
    let server = Server::new(vec![Reply::new(302, &["Server: Hunter2Longe", "Location: /in"], "")]);
    let header = "Authorization: Bearer Hunter2Longel";
    let said = http(&["-v", "--max-attempts=1", "-H", header, &server.url("/")]).stderr;
    assert!(said.contains("\n< server: Hunter2Longe\n< location: /in\n"), "{said}");
}

#[test]
fn a_server_cannot_forge_a_line() {
    let server = Server::new(vec![Reply::new(302, &["Location: /\u{9b}2J\u{202e}x"], "")]);
    let outcome = http(&["-v", "--seed=1", &server.url("/")]);
    assert!(!outcome.stderr.contains(['\u{9b}', '\u{202e}']), "{:?}", outcome.stderr);
    assert!(outcome.stderr.contains("\\u{9b}2J"), "{}", outcome.stderr);
}

#[test]
fn what_lets_others_in_stays_at_home() {
    let other = Server::new(vec![Reply::ok("there\n")]);
    let server = Server::new(vec![Reply::new(302, &[&format!("Location: {}", other.url("/"))], "")]);
    let args = [
        "-L",
        "-u",
        "ann:pw",
        "-H",
        "X-Api-Key: k",
        "-H",
        "Cookie: c",
        "-H",
        "X-2FA-Code: 7",
        "-H",
        "Host: h",
        "-H",
        "Accept: text/plain",
        "-H",
        "Idempotency-Key: order-7",
        "-H",
        "Origin: http://ann:pw@h",
        &server.url("/"),
    ];
    expect(&http(&args), 0, "there\n", "");
    let (first, second) = (&server.requests()[0], &other.requests()[0]);
    assert_eq!(first.head.to_ascii_lowercase().matches("\nhost:").count(), 1, "{}", first.head);
    // Nobody knows what the third is for.
    for name in ["authorization", "x-api-key", "x-2fa-code", "cookie", "origin"] {
        assert!(first.header(name).is_some() && second.header(name).is_none(), "{name}");
    }
    assert_eq!((second.header("accept"), second.header("idempotency-key")), (Some("text/plain"), Some("order-7")));
}

#[test]
fn what_says_where_a_message_ends_is_refused() {
    for header in ["Content-Length: 2", "Transfer-Encoding: chunked", "Connection: close"] {
        assert_eq!(http(&["-d", "hello", "-H", header, "localhost"]).code, Some(125), "{header}");
    }
}

/// What a request to a server with this answer says, with a second for everything.
fn answered(reply: Reply, args: &[&str]) -> Outcome {
    let server = Server::new(vec![reply]);
    let url = server.url("/");
    http(&[args, &["--max-attempts=2", "--timeout=2s", &url]].concat())
}

#[test]
fn answers_that_are_no_answers() {
    let chunked = |rest: &str| Reply::raw(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{rest}"));
    for (reply, exit, words) in [
        (chunked("ffffffffffffffffff\r\nabc"), 3, "the body is not HTTP"),
        (chunked("-5\r\nabc"), 3, "the body is not HTTP"),
        (chunked("5\r\nhelloX"), 3, "the body is not HTTP"),
        (chunked("5\r\nhel"), 1, "the body ended early"),
        (Reply::raw("HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw"), 3, "the answer is 101"),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello"), 3, "not HTTP"),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello"), 3, "not HTTP"),
        (Reply::raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))), 3, "too large"),
        (Reply::raw("ICY 200 OK\r\n\r\n"), 3, "not HTTP"),
    ] {
        let outcome = answered(reply.clone(), &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(exit), ""), "{reply:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    let long = Reply::raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok", "x".repeat(64 << 10)));
    expect(&answered(long, &[]), 0, "ok", "");
    let outcome = answered(Reply::ok("hello").hang(), &["--http2"]);
    // The server answers the greeting, and the connection may be gone before the request is sent.
    let is_known = match outcome.code {
        Some(3) => outcome.stderr.contains("the answer is not HTTP/2"),
        _ => outcome.code == Some(1) && outcome.stderr.contains("the connection was closed before the answer"),
    };
    assert!(is_known && outcome.stderr.contains("hint: --http1.1 speaks the older version"), "{}", outcome.stderr);
}

#[test]
fn answers_that_never_begin() {
    let flood = "HTTP/1.1 103 X\r\nLink: x\r\n\r\n".repeat(50_000);
    let outcome = answered(Reply::raw(flood).hang(), &["--idle-timeout=200ms"]);
    assert!(matches!(outcome.code, Some(1 | 124)), "{:?} {}", outcome.code, outcome.stderr);
    let outcome = answered(Reply::raw("HTTP/1.1 200 OK\r\nX: y\r\n").hang(), &["--idle-timeout=200ms"]);
    assert!(outcome.code == Some(1) && outcome.stderr.contains("no head of an answer came"), "{}", outcome.stderr);
}

#[test]
fn a_wait_of_ages_is_not_advised() {
    let outcome = answered(Reply::new(503, &["Retry-After: 99999999999999999999"], ""), &[]);
    assert!(outcome.code == Some(5) && !outcome.stderr.contains("hint:"), "{}", outcome.stderr);
}

#[test]
fn redirects_with_a_user_or_nonsense_in_them() {
    for location in
        ["javascript:alert(1)", "http:///", "//[::1%25eth0]/", "http://a:99999/", "data:,hunter2", "http://xn--/"]
    {
        let outcome = answered(Reply::new(302, &[&format!("Location: {location}")], ""), &["-L"]);
        assert_eq!(outcome.code, Some(3), "{location}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("hunter2"), "{}", outcome.stderr);
    }
    let to = Reply::new(302, &["Location: http://ann:hunter2@127.0.0.1:1/?token=hunter2"], "");
    for args in [&["-L"][..], &[], &["-v"], &["-L", "-v"], &["-v", "--json"]] {
        let outcome = answered(to.clone(), args);
        assert!(!outcome.stderr.contains("hunter2"), "{args:?}: {}", outcome.stderr);
    }
}

/// The parser takes signs for a part of a host that no name has.
#[test]
fn a_redirect_to_no_name_is_not_followed() {
    for host in ["h.invalid;jsessionid=hunter2", "h.invalid&token=hunter2"] {
        for flags in [&["-L"][..], &["-L", "-v"], &["-L", "-v", "--json"], &[], &["-v"]] {
            let outcome = answered(Reply::new(302, &[&format!("Location: http://{host}/")], ""), flags);
            let is_asked = outcome.stderr.contains("> host: h.") || outcome.stderr.contains("cannot find");
            assert_eq!(outcome.code, Some(if flags.contains(&"-L") { 3 } else { 0 }), "{host}: {}", outcome.stderr);
            assert!(!is_asked && !outcome.stderr.contains("hunter2"), "{host} {flags:?}: {}", outcome.stderr);
            assert!(!outcome.stderr.contains("-L follows it"), "{}", outcome.stderr);
        }
    }
}

/// A name that looks like another one is shown as what it is.
#[test]
fn a_redirect_to_a_name_that_looks_like_another() {
    for (location, shown) in [
        ("https://\u{430}pple.example/in?token=hunter2", "to https://xn--pple-43d.example/in?token=***;"),
        ("//\u{440}\u{430}ypal.example/", "to http://xn--ypal-43d9g.example/;"),
        ("/\u{430}", "to /\u{430};"),
    ] {
        let outcome = answered(Reply::new(302, &[&format!("Location: {location}")], ""), &[]);
        assert!(outcome.code == Some(0) && outcome.stderr.contains(shown), "{location}: {}", outcome.stderr);
    }
    // Nor where all is told that goes over the wire; whoever follows it tells whom it asks.
    let location = "Location: http://\u{430}pple.localhost:1/x\u{430}";
    for (flags, shown) in [
        (&["-v"][..], "\n< location: http://%D0%B0pple.LOCALHOST/x%D0%B0\n"),
        (&["-v", "-L", "--max-attempts=1"], "\n> GET /x%D0%B0\n> host: xn--pple-43d.LOCALHOST\n"),
    ] {
        let outcome = answered(Reply::new(302, &[location], ""), flags);
        assert!(outcome.stderr.contains(shown), "{flags:?}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains('\u{430}'), "{}", outcome.stderr);
    }
}

#[test]
fn names_of_all_nations_and_addresses_with_zones() {
    let server = Server::new(vec![Reply::ok("here\n")]);
    let port = server.address().port();
    let place = format!("xn--bcher-kva.example:{port}:127.0.0.1");
    for name in ["b\u{fc}cher.example", "B\u{dc}CHER.example", "xn--bcher-kva.example"] {
        expect(&http(&["--resolve", &place, &format!("http://{name}:{port}/")]), 0, "here\n", "");
    }
    let host = format!("xn--bcher-kva.example:{port}");
    assert!(server.requests().iter().all(|request| request.header("host") == Some(&host)));
    for (bad, words) in [
        ("http://[fe80::1%25eth0]/", "has a zone in its address"),
        ("http://[fe80::1%eth0]/", "has a zone in its address"),
        ("http://xn--a.invalid/", "invalid international domain name"),
        ("http://\u{202e}evil.invalid/", "\"http://***\" is no URL"),
    ] {
        let outcome = http(&[bad]);
        assert!(outcome.code == Some(125) && outcome.stderr.contains(words), "{bad}: {}", outcome.stderr);
    }
}

/// What a server says at length is not told at length.
#[test]
fn long_words_of_a_server_are_told_in_short() {
    let long = "a".repeat(200_000);
    for (head, flags) in [
        (format!("302 Found\r\nLocation: http://{}/", "a.".repeat(100_000)), &["-L"][..]),
        (format!("302 Found\r\nLocation: gopher://h/{long}"), &["-L"]),
        (format!("302 Found\r\nLocation: http://h/{long}"), &[]),
        (format!("200 OK\r\nContent-Encoding: {long}"), &["--compressed"]),
        (format!("200 OK\r\nTransfer-Encoding: {long}, chunked"), &[]),
        (format!("503 {long}"), &[]),
        (format!("503 Busy\r\nRetry-After: {long}"), &[]),
    ] {
        let answer = format!("HTTP/1.1 {head}\r\n\r\n");
        let outcome = answered(Reply::raw(answer), &[&["--max-attempts=1", "--timeout=9s"], flags].concat());
        assert!(outcome.stderr.len() < 5_000, "{}: {} bytes", &head[..30], outcome.stderr.len());
    }
}

/// In a folder like `/tmp` anybody can listen in the place of a server that is not up.
#[test]
fn a_socket_of_another_user_is_told_nothing() {
    let folder = Folder::new();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    let path = folder.path().join("sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    chown(&path, Some(NOBODY), None).unwrap();
    let flags = ["--max-attempts=2", "--base=1ms", "-u", "ann:hunter2", "--unix-socket", "sock", "http://localhost/"];
    let outcome = http_in(&folder, &flags);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("it belongs to somebody else, in a folder that others may write to"),
        "{outcome:?}"
    );
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
    // One that is not there is waited for.
    fs::remove_file(&path).unwrap();
    let outcome = http_in(&folder, &flags);
    assert!(outcome.code == Some(1) && outcome.stderr.contains("No such file"), "{outcome:?}");
}

/// The method is an argument like any other.
#[test]
fn a_method_that_looks_like_a_secret_is_not_told() {
    let folder = Folder::new();
    for method in ["ghp_hunter2hunter2", "key|hunter2hunter2"] {
        for flags in [&["-v"][..], &["-v", "--json"]] {
            let server = Server::new(vec![Reply::ok("")]);
            let outcome = http_in(&folder, &[flags, &["-X", method, &server.url("/")]].concat());
            assert!(outcome.code == Some(0) && !outcome.stderr.contains("hunter2"), "{outcome:?}");
        }
    }
}
