//! What is shown of URLs and headers.

use super::*;
use std::iter;

#[test]
fn what_was_hidden_is_shown_as_it_is() {
    let odd = "http\0os\0t/x?token=\u{3}http://\0\0 \u{15} --delay 2\0\u{fffd} -delay 2b";
    for given in [odd, "postgres://ann@h/db?password=p;w#x", "http://ann:pw@h/?key=http://b:pw@h2/ x"] {
        let once = url(given);
        assert_eq!(url(&once), once, "{given:?}");
    }
    for given in ["postgres://ann@h/db?password=hun;ter2", "redis://h?token=hun#ter2&x=1", "rediss://a:b@h?pw=hun?ter2"]
    {
        assert!(!server(given).contains("ter2") && server(given).contains("=***"), "{}", server(given));
    }
    for given in ["AccountKey=hunter2;x=1", "SharedAccessKey=hunter2", "pw=hunter2", "passwort=hunter2"] {
        assert!(!text(given).contains("hunter2"), "{given}");
    }
}

/// What was written down can be shown again, and no sign before or behind a value gets it out.
#[test]
fn whatever_is_made_of_signs_is_shown_once_as_twice() {
    const SIGNS: [&str; 30] = [
        "http", "://", "@", ":", "/", "?", "#", "&", ";", "=", "token", "***", "%40", "%3D", "a", "1", " ", "'", "\"",
        "\\", ".", ",", "sqlite:", "redis://", "{", "}", "key", "auth:80", "\u{ff20}", "-",
    ];
    let mut seed = 7_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for _ in 0..20_000 {
        let many = 1 + next() % 9;
        let mut signs = || (0..many).map(|_| SIGNS[next() % SIGNS.len()]).collect::<String>();
        let (before, behind) = (signs(), signs());
        let once = url(&before);
        assert_eq!(url(&once), once, "{before:?}");
        if before.contains('&') {
            continue;
        }
        let given = format!("http://h/?token={before}hunter2{behind}");
        assert!(!url(&given).contains("hunter2") && !value(&given).contains("hunter2"), "{given:?}");
        for name in ["kennwort=", "X-Api-Key:", "token "] {
            let given = format!("{name}{before}hunter2{behind}");
            assert!(!value(&given).contains("hunter2"), "{given:?}: {}", value(&given));
        }
    }
}

#[test]
fn a_host_without_a_scheme_has_users_too() {
    for (given, shown) in [
        ("//ann:pw@b/", "//***@b/"),
        ("///ann:pw@b/", "///***@b/"),
        ("\\\\ann:pw@b/x", "\\\\***@b/x"),
        ("/\\ann:pw@b/?token=pw", "/\\***@b/?token=***"),
        ("/\t/ann:pw@b/", "/\t/***@b/"),
        ("//ann:pw%40b/", "//***%40b/"),
    ] {
        assert_eq!(url(given), shown, "{given:?}");
        for name in ["Location", "Content-Location", "Referer"] {
            assert_eq!(header(name, given), shown.replace('\t', ""), "{given:?}");
        }
    }
    for given in ["https:\\\\ann:pw@b", "https:/ann:pw@b", "https:ann:pw@b", "http:\t//ann:pw@b/"] {
        assert!(!header("Location", given).contains("pw"), "{given:?}: {}", header("Location", given));
    }
    for path in ["/a/b@c", "?x=12", "in", "/"] {
        assert_eq!(header("Location", path), path);
    }
}

#[test]
fn a_password_in_the_place_of_a_port_is_hidden() {
    for (given, shown) in [
        ("http://ann:pw", "http://ann:***"),
        ("http://ann:pw/x", "http://ann:***"),
        ("http://ann:80pw?x", "http://ann:***"),
        ("http://ann:pw\u{ff20}h/", "http://***@h/"),
    ] {
        assert_eq!(url(given), shown, "{given:?}");
        assert_eq!(text(&format!("at {given}")), format!("at {shown}"), "{given:?}");
    }
    for port in [
        "http://h:80/",
        "http://h:/",
        "http://h:99999999",
        "http://[::1]:80/",
        "http://[::1]/",
        "m://a:1,b:2/x",
        "http://127.0.0.1:-1/",
    ] {
        assert_eq!(url(port), port);
    }
    assert_eq!(text("no connection to http://h:80: refused"), "no connection to http://h:80: refused");
}

#[test]
fn the_url_of_a_refresh_has_users_too() {
    for given in ["0;url=https:\\\\ann:pw@b/", "0; URL=//ann:pw@b/", "0; url=https:/ann:pw@b"] {
        assert!(!header("Refresh", given).contains("pw"), "{given:?}: {}", header("Refresh", given));
    }
    assert_eq!(header("Refresh", "5; url=/in?x=1"), "5; url=/in?x=1");
}

#[test]
fn secrets_inside_of_headers_are_found() {
    for (name, given, shown) in [
        ("Link", "</x?sig=pw&code=pw>; rel=next", "</x?sig=***&code=***>; rel=next"),
        ("Content-Type", "text/html;charset=utf-8;sid=pw", "text/html;charset=utf-8;sid=***"),
        ("Server", "x/?kennwort=pw", "x/?kennwort=***"),
        ("X-Original-URL", "/y?sig=pw&page=2", "/y?sig=***&page=2"),
        (
            "Content-Security-Policy",
            "default-src 'self'; report-uri /r?key=pw",
            "default-src 'self'; report-uri /r?key=***",
        ),
        ("X-Url", "https://h/x?page=2&token=pw", "https://h/x?page=2&token=***"),
        ("Link", "<//pw@h/x>; rel=next", "<//***@h/x>; rel=next"),
        ("Link", "<//pw@h/>,<\\\\pw@h/?token=pw>;rel=a", "<//***@h/>,<\\\\***@h/?token=***"),
        ("Via", "1.1 //pw@h", "1.1 //***@h"),
        ("Origin", "//pw@h", "//***@h"),
        ("Server", "{\"password\":\"pw\"}", "{\"password\":***}"),
        ("Server", "a SharedKey a:pw", "a SharedKey ***"),
        ("Server", "\"Basic pw\"", "\"Basic ***"),
        // Of others nobody can know.
        ("X-D", "//h#pw", "//h#***"),
        ("X-D", "//pw@h/x?y=pw", "***@h/x?y=***"),
        ("X-D", "?pw", "?***"),
        ("X-D", "#pw", "#***"),
        ("X-D", "?page=2", "?page=2"),
        ("X-D", "/ann:S3cretxyz", "/ann:***"),
        ("X-D", "/x/kennwort=S3cretxyz?page=2", "/x/kennwort=***"),
        ("X-D", "/x/~S3cret!xyz$", "/x/~S3cret!xyz***"),
        ("X-D", "/x/a b:S3cretxyz", "/x/a b:***"),
        ("X-D", "/ann:pw@h/x", "***@h/x"),
        ("X-D", "/x/y.txt;v=1?page=2", "/x/y.txt;v=***"),
        ("X-D", "{\"password\":\"pw\"}", "***"),
        ("X-D", "token: pw", "token:***"),
        ("X-D", "auth=Bearer pw", "auth=***"),
        ("X-D", "a SharedKey a:pw", "a SharedKey ***"),
        ("X-D", "glpat-secret7", "***"),
        ("X-D", "%7B%22password%22%3A%22pw%22%7D", "***"),
        ("X-D", "http%3A%2F%2Fann%3Apw%40h", "http***"),
        ("X-D", "Bearer:pw", "Bearer:***"),
        ("X-D", "[Bearer pw]", "[Bearer ***"),
        ("X-D", "Bearer,pw", "Bearer,***"),
        ("X-D", "AWS4-HMAC-SHA256 Credential=a/pw, Signature=pw", "AWS4-HMAC-SHA256 ***"),
        ("X-D", "a=1; sid=pw", "a=***"),
        ("X-D", "connect.sid=pw", "connect.sid=***"),
        ("X-D", "secret|pw", "secret***"),
        ("X-D", "a SSWS pw", "a SSWS ***"),
        ("X-D", "PRIVATE-TOKEN pw", "PRIVATE-TOKEN ***"),
        ("X-D", "kennwort=pw", "kennwort=***"),
        ("X-D", "postgres://ann:pw@h/db?password=pw;pw", "postgres://***@h/db?password=***"),
    ] {
        assert_eq!(header(name, given), shown, "{given}");
    }
    for same in ["text/html; q=0.9, */*", "max-age=1, public", "W/\"a?b\"", "application/basic x", "a key"] {
        assert_eq!(header("Accept", same), same);
    }
    for same in ["HIT", "1", "a key", "req-7f.3, b", "10.0.0.1", "h:80", "/x/y?page=2", "nosniff", "5ms"] {
        assert_eq!(header("X-Some", same), same);
    }
    assert_eq!(header("WWW-Authenticate", "Digest realm=x, Basic realm=y"), "Digest realm=x, Basic realm=y");
}

#[test]
fn whatever_stands_before_the_at_is_hidden() {
    for (given, shown) in [
        ("http://ann:pw@host/x", "http://***@host/x"),
        ("https://ghp_0123456789@github.com/x.git", "https://***@github.com/x.git"),
        ("ann:pw@host", "***@host"),
        ("http://a@b:c@host/", "http://***@host/"),
        ("http://ann:#pw@host/", "http://***@host/"),
        ("http://ann:/pw@host/", "http://***@host/"),
        // None of these can be parsed.
        ("http://ann:p/w@host/", "http://***@host/"),
        ("http://ann:p?w@host/", "http://***@host/"),
        ("http://ann:p#w@host/", "http://***@host/"),
        ("http://ann:pw@host:99999999/", "http://***@host:99999999/"),
        ("http://ann:pw@ho st/", "http://***@ho st/"),
        ("socks5h://ann:pw@proxy:1080", "socks5h://***@proxy:1080"),
        ("https:/ann:pw@host/", "https:/***@host/"),
        ("https:\\\\ann:pw@host", "https:\\\\***@host"),
        ("localhost:/x@y", "***@y"),
        ("https:///ann:pw@db/x", "https:///***@db/x"),
        ("postgres:///ann:pw@db/x", "postgres:///***@db/x"),
        ("redis:////:pw@db/x", "redis:////***@db/x"),
        ("https://\\ann:pw@db", "https://\\***@db"),
        // Written out as a whole.
        ("http://ann%3Apw%40host/x%40y", "http://***%40host/x%40y"),
        ("redis://hunter2%40host", "redis://***%40host"),
        ("redis://hunter2%2540host", "redis://***%2540host"),
        ("https://hunter2&#64;host/x", "https://***&#***"),
        ("https://hunter2&#0064;host/x", "https://***&#***"),
        ("https://hunter2&#x0040;host/x", "https://***&#***"),
        ("redis://hunter2%u0040host", "redis://***%u0040host"),
        ("https://hunter2%25host/x%40y", "https://hunter2%25host/x%40y"),
        ("hunter2%40host:80", "***%40host:80"),
        ("http://host/x%40y", "http://host/x%40y"),
        // A URL may stand in the path of another.
        ("http://h/get/https://ann:pw@b/x", "http://h/***@b/x"),
        ("http://h/get/https%3A%2F%2Fann%253Apw%2540b/x", "http://h/***%2540b/x"),
        ("/get/ann:pw@b/x", "/***@b/x"),
        ("http://h/x%3Ftoken%253Dpw", "http://h/x%3F***"),
        ("/x/token%3Dpw", "/x/token%3D***"),
        ("/x/token%3D", "/x/token%3D"),
        ("http://h/get/http%3A%2F%2Fann:pw%40b%3Fpw=1", "http://h/***%40b%3F***"),
        ("http://ann:/pw", "http://ann:***"),
        // An `@` of a path is none of a user.
        ("https://host/@scope/package", "https://host/@scope/package"),
    ] {
        assert_eq!(url(given), shown, "{given}");
    }
}

#[test]
fn of_a_query_what_is_plainly_harmless_is_shown() {
    for (given, shown) in [
        ("http://host/?token=abc&page=2", "http://host/?token=***&page=2"),
        ("http://host/?q=abc&wait=10s&q=0.9&limit=1000", "http://host/?q=***&wait=10s&q=0.9&limit=1000"),
        ("http://host/?n=10000&x=1234567", "http://host/?n=***&x=***"),
        ("http://host/?pin=4815&otp=12", "http://host/?pin=***&otp=***"),
        ("http://host/?abc&12&a=&=x", "http://host/?***&12&a=&***"),
        ("http://host/?X-Amz-Signature=f00&X-Amz-Expires=300", "http://host/?X-Amz-Signature=***&X-Amz-Expires=300"),
        ("m://host/db?sslmode=require&prefix=a_&key=a", "m://host/db?sslmode=require&prefix=a_&key=***"),
        ("http://host/?to%6ben=12&glpat-secret7=1", "http://host/?***&***"),
        ("http://host/?next=http://ann:pw@b/?token=12", "http://host/?next=***"),
        // Signs of a URL that stand in a value are a part of it.
        ("http://host/?token=ab?cd&page=2", "http://host/?token=***&page=2"),
        ("http://host/?token=?abc", "http://host/?token=***"),
        ("http://host/?page=2;api_key=abc", "http://host/?page=***"),
        ("/cb?code=abc&next=https://b/", "/cb?code=***&next=***"),
        ("cb?access_token=abc&u=http://c", "cb?access_token=***&u=***"),
        ("/a;jsessionid=abc;u=http://c/", "/a;jsessionid=***"),
        ("http://host/a;jsessionid=abc?page=2", "http://host/a;jsessionid=***"),
        ("http://host/a;v=1?page=2", "http://host/a;v=***"),
        ("http://host/a;v=1", "http://host/a;v=1"),
        // Nothing is shown of a fragment.
        ("http://host/#access_token=abc", "http://host/#***"),
        ("http://host/?a=1#b?session=abc", "http://host/?a=1#***"),
        ("http://host/?token=ab#cd&page=2", "http://host/?token=***#***"),
        ("http://host/#", "http://host/#"),
        ("http://host/?sig=abc&signal=1", "http://host/?sig=***&signal=1"),
        ("http://host/?token=&token", "http://host/?token=&***"),
        ("http://host/?aHVudGVyMg==&aHVudGVyMg=", "http://host/?***&***"),
        ("http://ho st/?password=abc", "http://ho st/?password=***"),
        // What is no URL but a header.
        ("Authorization: Bearer abc", "Authorization: ***"),
        ("X-Api-Key:abc", "X-Api-Key:***"),
        ("X-Api-Key:/abc", "X-Api-Key:***"),
        ("X-Upstream: Bearer abc", "X-Upstream: ***"),
        ("auth:8080/x", "auth:***"),
        ("token://host/x", "token:***"),
    ] {
        assert_eq!(url(given), shown);
        assert_eq!(url(shown), shown, "twice is once");
    }
    // What ends a sentence is no part of it.
    for same in ["to http://host/?page=2: refused", "(http://host/?page=2).", "http://host/?token=***; or"] {
        assert_eq!(text(same), same);
    }
}

#[test]
fn headers_that_say_so_are_hidden() {
    for name in [
        "Authorization",
        "proxy-authorization",
        "Cookie",
        "Set-Cookie",
        "X-Api-Key",
        "Private-Token",
        "X-Auth",
        "X-Auth-User",
        "x_session_id",
        "X-Amz-Security-Token",
        "X-Vault-Token",
        "Client-Secret",
        "X-Password",
        "X-Dbpass",
        "X-JFrog-Art-Api",
        "X-Pat",
        "X-Tkn",
        "pswd",
        "tok",
        "hdnts",
        "hdnea",
        "X-WSSE",
        "X-Pin",
        "X-Sas",
        "X-Creds",
        "X-Mfa",
        "Grpc-Metadata-Macaroon",
        "Authentication-Info",
    ] {
        assert_eq!(header(name, "abc"), HIDDEN, "{name}");
    }
    for name in ["Accept", "WWW-Authenticate", "X-Id", "Content-Type", "Author", "Idempotency-Key", "X-Cache-Bypass"] {
        assert_eq!(header(name, "abc"), "abc", "{name}");
    }
    assert_eq!(header("X-Upstream", "Bearer abc"), HIDDEN);
    assert_eq!(header("X-Upstream", "basic abc=="), HIDDEN);
    assert_eq!(header("X-Upstream", "Bearer\tabc"), HIDDEN);
    assert_eq!(header("WWW-Authenticate", "Basic realm=x"), "Basic realm=x");
    assert_eq!(header("X-Title", "Basic"), "Basic");
}

/// Whoever answers chooses how often it is said.
#[test]
fn a_secret_that_repeats_itself_is_looked_for_once() {
    const LONG: usize = 380_000;
    let without = |text: &str, secrets: &[&str]| {
        let mut table = table::Table::default();
        table.add(secrets.iter().map(|secret| undone::undone(secret).0), []);
        said_again::without(text, &[&table], &table::Table::default(), &[]).into_owned()
    };
    let others = ["a", "aB1-", "1a.", "ä1", "!", "%"].map(|unit| (unit, LONG / 8));
    for (unit, long) in iter::once(("ab1", LONG)).chain(others) {
        let repeated = |length: usize| unit.repeat(length / unit.len());
        let (text, secret) = (repeated(long), repeated(long / 4));
        assert_eq!(without(&text, &[&secret]), HIDDEN, "{unit}");
        // It goes on, or somebody cut it, or all but cut it.
        for behind in ["9z-", "...", "-", "...-z"] {
            let longer = [secret.clone() + "9z", format!("z9{secret}"), repeated(2 * long)];
            let secrets: Vec<&str> = longer.iter().map(String::as_str).collect();
            assert!(!without(&format!("{text}{behind}"), &secrets).is_empty(), "{unit}{behind}");
        }
        let (short, digits) = (repeated(long / 2), "f".repeat(long / 2));
        assert!(!without(&format!("{short}\\{digits}"), &[&text]).is_empty(), "{unit}");
    }
}
