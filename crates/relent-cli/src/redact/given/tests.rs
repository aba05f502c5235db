//! What is hidden of what was given, and of what was sent.

use super::*;

mod echoes;

fn known(value: &str) -> Known {
    let mut known = Known::default();
    known.add(of(value, false).into_iter());
    known
}

#[test]
fn what_was_sent_is_known_as_a_whole_and_in_parts() {
    know_secrets(["id=hunter2known; id=hunter2other".to_owned()].into_iter());
    assert_eq!(without_secrets("id=hunter2known"), "id=***");
    assert_eq!(without_secrets("id=hunter2known; id=hunter2other"), "***");
    assert_eq!(without("it says hunter2other"), "it says ***");
}

#[test]
fn a_short_secret_is_hidden_where_a_message_quotes_nothing_else() {
    // qan:qp7
    know_secrets(["zq3x".to_owned(), "Basic cWFuOnFwNw==".to_owned()].into_iter());
    let said = r#"no key "zq3x" of "qan", "qan:qp7", "QP7", zq3x, "a zq3x""#;
    assert_eq!(without(said), r#"no key "***" of "qan", "***", "***", zq3x, "a zq3x""#);
    know_secrets(["zq4\\".to_owned()].into_iter());
    assert_eq!(without(r#"no "zq4\" in 'zq4\'"#), r#"no "***" in '***'"#);
    // Other marks, or one too many, do not matter.
    let said = r#"a " no "zq3x" in "\"zq3x\"", 'zq3x' and `zq3x`: "a zq3x""#;
    assert_eq!(without(said), r#"a " no "***" in "\"***\"", '***' and `***`: "a zq3x""#);
}

/// Hosts and paths are called like what is signed.
#[test]
fn of_a_signed_request_what_it_says_of_itself_is_no_secret() {
    for (sent, said, told) in [
        (
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7/20261125/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=f00dcafe42",
            "no host \"b.s3.eu-west-1.amazonaws.com\" (\"eu-west-1\", x-amz-date) for AKIAIOSFODNN7, f00dcafe42",
            "no host \"b.s3.eu-west-1.amazonaws.com\" (\"eu-west-1\", x-amz-date) for ***, ***",
        ),
        (
            "AKIAIOSFODNN7%2F20261125%2Feu-west-1%2Fs3%2Faws4_request",
            "no host b.s3.eu-west-1.amazonaws.com (\"eu-west-1\") for AKIAIOSFODNN7",
            "no host b.s3.eu-west-1.amazonaws.com (\"eu-west-1\") for ***",
        ),
        (
            "Digest username=\"ann\", realm=\"Backup store 7\", nonce=\"dcd98b7102dd\", uri=\"/api/v2/orders\", response=\"8ca523f5e950\"",
            "no way to http://h/api/v2/orders, \"/api/v2/orders\": realm=\"Backup store 7\", nonce dcd98b7102dd, 8ca523f5e950",
            "no way to http://h/api/v2/orders, \"/api/v2/orders\": realm=\"Backup store 7\", nonce ***, ***",
        ),
    ] {
        let mut known = Known::default();
        learn(&mut known.secrets, &[sent.to_owned()], "");
        assert_eq!(hidden(said, &known), told);
        assert_eq!(hidden(&format!("it was {sent}!"), &known), "it was ***!");
    }
}

#[test]
fn what_is_hidden_ends_where_something_is_shown_again() {
    assert_eq!(hidden_parts("a=b&c=d", "a=***&c=***"), ["b", "d"]);
    assert_eq!(hidden_parts("{'a':'b}'}", "{'a':***}"), ["'b}'"]);
    assert_eq!(hidden_parts("a=b}c", "a=***"), ["b}c"]);
    assert_eq!(hidden_parts("abc", "***"), ["abc"]);
    assert_eq!(hidden_parts("abc", "abc"), [""; 0]);
}

#[test]
fn names_that_somebody_chose_have_signs() {
    let told = |words: &[&str], text: &str| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        hidden(text, &of_arguments(&words)).into_owned()
    };
    for words in [
        &["run", "--lease", "backup:shop", "--", "true"][..],
        &["run", "--lease=backup:shop"],
        &["upstream", "open", "backup:shop"],
        &["upstream", "open", "--store=sqlite:s.db", "backup:shop"],
    ] {
        assert_eq!(told(words, "lease backup:shop: held"), "lease backup:shop: held", "{words:?}");
    }
    for words in [&["explain", "--compare", "p.toml#backup:shop; a"][..], &["run", "--policy=p.toml#backup:shop; a"]] {
        let said = "p.toml#backup:shop; a: no such policy";
        assert_eq!(told(words, said), said, "{words:?}");
    }
    let joined = ["http", "--upstream=h:80:hunter2Zq9Xw"];
    let said = "--upstream h:80:hunter2Zq9Xw: the file has no upstream \"h:80:hunter2Zq9Xw\"";
    assert_eq!(told(&joined, said), said);
    assert_eq!(told(&["run", "--policy", "backup:shop"], "no file backup:shop"), "no file backup:***");
    assert_eq!(told(&["run", "--header", "p.toml#a:shop"], "no p.toml#a:shop"), "no p.toml#a:***");
    let command = ["run", "--lease", "invoice-mailer7", "--", "sh", "-c", "PASSWORD=hunter2longer ./invoice-mailer7"];
    let said = "lease invoice-mailer7: held, \"invoice-mailer7\", by hunter2longer";
    assert_eq!(told(&command, said), "lease invoice-mailer7: held, \"invoice-mailer7\", by ***");
    assert_eq!(told(&["run", "--lease", "ann:Hunter2Longer@h"], "by Hunter2Longer"), "by ***");
    let flag = ["upstream", "open", "--timeout=backup:shop", "x"];
    assert_eq!(told(&flag, "the value 'backup:shop' of"), "the value 'backup:***' of");
    assert_eq!(told(&["upstream", "open", "--", "-backup:shop"], "upstream -backup:shop"), "upstream -backup:shop");
    for name in ["password pw", "http：//ann:pw＠h", "ann:pw@h", "postgres://h?kennwort=pw", "kennwort=pw"] {
        let text = told(&["run", "--lease", name], &format!("lease {name}: held"));
        assert!(text.contains(HIDDEN) && !text.contains("pw"), "{text}");
    }
}

/// As a flag, or a program, is told of that is none.
#[test]
fn what_is_told_up_to_a_sign_of_it_is_known() {
    let told = |word: &str, text: &str| hidden(text, &of_arguments(&["run".into(), word.into()])).into_owned();
    let key = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIDFYL5htX7lA==\n-----END EC PRIVATE KEY-----";
    let said = format!("unexpected argument '{}' found", key.split('=').next().unwrap());
    assert!(!told(key, &said).contains("MHc"), "{}", told(key, &said));
    assert!(!told(key, &escape(&said)).contains("MHc"), "{}", told(key, &escape(&said)));
    let said = "unexpected argument '--token dG9rZW4tdG9rZW4' found";
    assert_eq!(told("--token dG9rZW4tdG9rZW4=", said), "unexpected argument '--token ***' found");
    assert_eq!(told("-kotok=Secret7/x", "cannot write to tok=Secret7/x: gone"), "cannot write to tok=***: gone");
    assert_eq!(told("-kLvon/backup:Secret7", "cannot write to n/backup:Secret7"), "cannot write to n/backup:***");
    assert_eq!(
        told("sqlite:n/tok=Secret7", "store sqlite:n/tok=***: n/tok=Secret7: no"),
        "store sqlite:n/tok=***: n/tok=***: no"
    );
    let store = "store sqlite:x.db?durability=process&links=no: it is locked";
    assert_eq!(told("sqlite:x.db?durability=process&links=no", store), store);
    let socket = "unix:/run/user@1000.service/x.sock: up after 1 attempt";
    assert_eq!(told("unix:/run/user@1000.service/x.sock", socket), socket);
    assert_eq!(told("T=9kQ2z", " --> T=9kQ2z:1:3"), " --> T=***:1:3");
    assert_eq!(told("-o=n/tok=Secret7/x", "cannot write to n/tok=Secret7/x"), "cannot write to n/tok=***");
    for (word, shown) in [("T=9kQ2z", "T=***"), ("u:Ab1x2", "u:***"), ("key=Ab1", "key=***")] {
        for place in ["cannot find the command {}", "cannot read the unit {}: gone", "at {}, or ({})", "'{}'"] {
            let said = place.replace("{}", word);
            let other = told(word, &said);
            assert_eq!(
                other.matches(shown).count(),
                place.matches(" {}").count() + place.matches("'{}").count(),
                "{said}: {other}"
            );
        }
        // What is a part of something else is by chance.
        assert_eq!(told(word, &format!("x{word} {word}x")), format!("x{word} {word}x"));
    }
}

#[test]
fn the_place_that_is_asked_is_told() {
    know_place(&Url::parse("http://Svc7.internal:8080/cart?x=1").unwrap());
    know_secrets(
        ["http://svc7.internal:8080/page?k=Hunter2Place".to_owned(), "http://svc7.internal:8080/".to_owned()]
            .into_iter(),
    );
    let said = "GET http://svc7.internal:8080/cart, host: svc7.internal:8080, \"http://svc7.internal:8080/\"";
    assert_eq!(without(said), said);
    for secret in ["http://svc7.internal:8080/page?k=Hunter2Place", "http://svc7.internal:8080/aB3dE9x"] {
        know_secrets([secret.to_owned()].into_iter());
        assert_eq!(without(&format!("at {secret}!")), "at http://svc7.internal:8080/***!");
    }
}

#[test]
fn the_name_of_a_user_in_the_path_that_is_asked_is_told() {
    let path = "/repos/octocat7/longer77/";
    for user in ["octocat7:known77x", "longer77:longer77", "octocat7:cat7", "longer77:", "repos"] {
        know_name_in_a_path(user, path);
        know_secrets([user.to_owned()].into_iter());
    }
    know_secrets(["octocat7".to_owned(), "known77x".to_owned()].into_iter());
    let said = "GET /repos/octocat7/hello of octocat7 by known77x, longer77";
    assert_eq!(without(said), "GET /repos/octocat7/hello of octocat7 by ***, ***");
}

#[test]
fn the_file_of_a_form_is_quoted() {
    for field in ["doc=@my report 7.pdf", "photo=@my report 7.pdf;filename=r.pdf", "a=<my report 7.pdf"] {
        let words = ["http", "-F", field].map(str::to_owned);
        let said = "cannot read my report 7.pdf: gone";
        assert_eq!(hidden(said, &of_arguments(&words)), said, "{field}");
    }
    for (field, told) in [("doc=@ann:Hunter2Longer@h", "***@h"), ("password=@Hunter2Longer", "***")] {
        let words = ["http", "-F", field].map(str::to_owned);
        let said = format!("cannot read {}", field.split_once("=@").unwrap().1);
        assert_eq!(hidden(&said, &of_arguments(&words)), format!("cannot read {told}"));
    }
}

#[test]
fn names_of_a_file_are_known_like_those() {
    let names = ["shop", "backup:shop", "ann:known1@h", "kennwort=known2", "m://h?kennwort=known3", "x%3Dknown4"];
    know(names.into_iter(), ["redis://:pw?known5@h/0"].into_iter());
    assert_eq!(without("it has 'known5@h/0', \"known5@h/0\""), "it has 'known5@h/0', \"***\"");
    let said = "shop, backup:shop, ann:known1@h: away; kennwort=known2; m://h?kennwort=known3; \"x%3Dknown4\"";
    let told = without(said);
    assert!(!told.contains("known") && told.starts_with("shop, backup:shop, ***@h: away; kennwort=***"), "{told}");
}

/// Each is looked for in each message.
#[test]
fn of_a_file_no_more_names_are_known_than_anybody_writes() {
    let names: Vec<String> = (0..20_000).map(|nth| format!("ann{nth}:known7@h")).collect();
    know(names.iter().map(String::as_str), iter::empty());
    assert!(GIVEN.read().unwrap().given.len() < 1000);
    assert_eq!(without("it has ann7:known7@h"), "it has ***@h");
}

/// Neither by a name nor by a store, used or not.
#[test]
fn who_writes_a_file_hides_nothing_of_what_relent_says() {
    let said =
        "store sqlite:/annd/s.db: /annd/secret belongs to somebody else, who can take it away; gave up after 1 attempt";
    let place = "/annd/secret belongs to somebody else, who can take it away";
    let stores =
        [&format!("redis://:{place}@h/0"), "redis://:gave up after 1 attempt@h/0", "token=gave up after 1 attempt"];
    know([place, "after 1 attempt"].into_iter(), stores.into_iter());
    assert_eq!(without(said), said);
    know_store(stores[0]);
    know_store("redis://:gave-up-after-1-attempt@h/0?password=longer7known");
    assert_eq!(without(said), said);
    assert_eq!(without("the server says: no longer7known, or \"longer7\""), "the server says: no ***, or \"***\"");
    know_store("redis://ann:longer8/known@h/0");
    assert_eq!(without("no user longer8/known"), "no user ***");
    // What others sent is not said by relent.
    know_store("redis://:longer6 is it@h/0");
    assert_eq!(without_secrets("no longer6 is it"), "no ***");
}

#[test]
fn a_password_of_a_store_is_one_that_stands_elsewhere_in_its_url() {
    for url in ["postgres://known2024x:known2024x@h/known2024x", "redis://:known2025@h/0?prefix=known2025prod"] {
        know_store(url);
    }
    know_store("postgres://known2026x:longer9known@h/known2026x");
    assert_eq!(without("no known2024x at h/known2024x"), "no *** at h/***");
    assert_eq!(without("no known2025"), "no ***");
    assert_eq!(without("no longer9known at h/known2026x"), "no *** at h/known2026x");
}

/// What takes four times as long for twice as much takes minutes for these.
#[test]
fn long_arguments_are_looked_at_once() {
    let json = "{\"id\":1,\"name\":\"x\"},";
    for word in [
        "x ",
        "a:",
        "a=",
        "key:1",
        "\"",
        "\" \"",
        " ",
        "@",
        "a:b@",
        "pw",
        "password=x ",
        "token: ",
        "\"key\":",
        "://",
        "http://a:b@h ",
        json,
    ] {
        let value = word.repeat(128 * 1024 / word.len());
        let all = known(&value);
        for said in ["attempt 1 of 8: exit 1".to_owned(), format!("cannot find {value:?}")] {
            assert!(!hidden(&said, &all).is_empty(), "{word}");
        }
    }
}

/// Whoever answers chooses how many texts are looked at, and how much they quote: looking through all that is known for each would take minutes.
#[test]
fn many_secrets_are_looked_for_at_once() {
    let secrets: Vec<String> = (0..20_000).map(|nth| format!("k{nth}=hunter{nth}longer")).collect();
    let mut known = Known::default();
    known.secrets.add(secrets.clone(), secrets);
    for nth in 0..20_000 {
        assert_eq!(hidden(&format!("x: {nth}"), &known), format!("x: {nth}"));
    }
    let quoted = "\"hunter99\" \"hunter-1\" ".repeat(10_000);
    assert_eq!(hidden(&quoted, &known), "\"***\" \"hunter-1\" ".repeat(10_000));
}

/// Whoever answers chooses how much they quote, and may quote what has to be looked for in all that was given.
#[test]
fn what_takes_too_long_to_look_for_is_hidden_where_it_is_quoted() {
    let mut known = Known::default();
    for nth in 0..16 {
        known.add(of(&format!("{{\"image\":\"{}\"}}", format!("{nth}aB+/=").repeat(20_000)), false).into_iter());
    }
    let short = r#"no "*/*", "br; q=1", "gzip", "image/png; a=b", "aB+/=1aB+/=1", or "gone: away""#;
    assert_eq!(hidden(short, &known), short.replace("aB+/=1aB+/=1", HIDDEN));
    let told = hidden(&"\"etaoinshrdlu=\",".repeat(100), &known).into_owned();
    assert!(told.starts_with("\"etaoin") && told.ends_with("\"***\","), "{told}");
}

/// Who writes a file chooses how long a message is, and who calls relent how much is known.
#[test]
fn what_takes_too_long_to_look_through_is_not_shown() {
    let mut known = Known::default();
    for nth in 0..10_000 {
        known.add(of(&format!("https://shop.example/item?id={nth}00000&ref=mail"), false).into_iter());
    }
    let long = "papa".repeat(100_000);
    assert_eq!(hidden(&long, &known), HIDDEN);
    let said = format!("gave up on https://shop.example/item?id=700000&ref=mail: it says {long:?}, and so on");
    assert_eq!(hidden(&said, &known), "gave up on https://shop.example/item?id=***&ref=***: it says ***");
    for told in ["attempt 1 of 8: exit 1", &"papa ".repeat(1000)] {
        assert_eq!(hidden(told, &known), told);
    }
    assert_eq!(hidden(&long, &Known::default()), long);
}

/// However a message writes it, and whichever part.
#[test]
fn what_was_given_is_hidden_wherever_it_is_quoted() {
    let secrets = [
        "zunter2",
        "zun ter2",
        "zun\"ter2",
        "zun'ter2",
        "z}}unter2",
        "zun\tter2",
        "zun\\ter2",
        "1/zunter2",
        "zunter2%40",
    ];
    for secret in secrets {
        for value in [
            format!("postgres://ann:{secret}@h/db"),
            format!("ann:{secret}@h"),
            format!("redis://:{secret}@h"),
            format!("host=h password='{secret}'"),
            format!("Server=h;Pwd={{{secret}}};"),
            format!("{{\"password\":\"{secret}\"}}"),
            format!("X-Api-Key: {secret}"),
            format!("Authorization: Bearer {secret}"),
        ] {
            let all = known(&value);
            let part = &value[value.find(secret).unwrap()..];
            let part = &part[..secret.len()];
            for said in [
                format!("cannot read {value}: gone"),
                format!("cannot read {value:?}: gone"),
                format!("invalid value '{value}': there is no service {part:?}"),
                format!("{:?} is no port", &part[..part.len() - 1]),
                format!("no command {}", escape(&value)),
                format!("{:?} has no port", format!("{}***", &part[..part.len() - 1])),
            ] {
                let told = hidden(&said, &all);
                let secret = [
                    secret.to_owned(),
                    escape(secret).into_owned(),
                    format!("{secret:?}").trim_matches('"').to_owned(),
                ];
                let is_told = secret.iter().any(|secret| told.contains(secret)) || told.contains("unter");
                assert!(!is_told, "{value}: {said}: {told}");
            }
        }
    }
}
