//! What lets others in is told by nothing that relent says, however it was given and whoever says it again.

use super::{
    http, http_in,
    server::{Reply, Server},
};
use crate::binary::Folder;

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
        vec!["-v", "-u", "ann:hunter2", "-H", "Cookie: a=hunter2", "-H", "Upstream-Authorization: Basic hunter2", &url],
        vec!["-v", "-H", "Proxy-Authorization: Basic hunter2", &url],
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

/// A host that is called like a key is told: whose header it is takes the space before it for none of the key.
#[test]
fn a_host_that_is_called_like_a_key_is_told() {
    let url = "http://contoso2024.invalid/";
    let said = http(&["--max-attempts=1", "-H", "X-Api-Key: contoso2024", url]).stderr;
    assert!(
        said.contains("cannot find contoso2024.invalid") || said.contains("cannot find host contoso2024.invalid"),
        "{said}"
    );
}
