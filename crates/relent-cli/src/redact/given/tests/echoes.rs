//! What a server can say again of what it was sent, and a message of what was given: each secret, in each place where one stands, written in
//! each way.

use super::*;
use crate::redact::{hidden_of_header, text};
use base64::{Engine, prelude::BASE64_STANDARD};

const SECRETS: [&str; 12] = [
    "Hunter2Longer",
    "glpat-Xy7kQ2mN9pR4sT6vW8zB",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    "p@ss:w0rd/Tr0ub4dor&3?",
    "correct horse 7 battery staple",
    "k7\"m'<2$>\\p9x",
    "Zm9vYmFyMTIzNDU2Nzg5MA==",
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "pässwört7längerß",
    "0123456789abcdef0123456789abcdef",
];

/// Headers that are sent with one, of which `Basic` is in base64.
const HEADERS: [(&str, &str); 10] = [
    ("Authorization", "Bearer {}"),
    ("Authorization", "token {}"),
    ("Authorization", "{}"),
    ("X-Api-Key", "{}"),
    ("Private-Token", "{}"),
    ("Cookie", "lang=en; session={}; theme=dark"),
    ("Cookie", "sid={}"),
    ("X-Custom", "{\"user\":\"ann\",\"token\":\"{}\"}"),
    ("X-Custom", "key={}"),
    ("Authorization", "Basic ann:{}"),
];

/// Arguments that are given with one, which is no word that stands alone.
const ARGUMENTS: [&str; 21] = [
    "{}@db.example:5432",
    "https//{}@h/x",
    "ann/{}@db",
    "ann:{}",
    "Authorization: Bearer {}",
    "PGPASSWORD={}",
    "postgres://ann:{}@h/db",
    "redis://:{}@h",
    "host=h user=ann password={}",
    "Server=h;Database=d;User Id=ann;Password={};Encrypt=yes",
    "--password={}",
    "PASSWORD={} ./x",
    "curl -u ann:{} http://h",
    "mysql -p{} db",
    "x --password {} y",
    "ann:{}@tcp(h:3306)/db",
    "{\"password\":\"{}\"}",
    "a=b&password={}&c=d",
    "api_key: {}",
    "https://h/?token={}&x=1",
    "-p={}",
];

/// Where it is said again.
const PLACES: [&str; 14] = [
    "{}",
    "bad token {}",
    "bad token {}.",
    "token '{}' is unknown",
    "{\"error\":\"bad token {}\"}",
    "{\"error\":{\"token\":\"{}\",\"code\":7}}",
    "<p>token <b>{}</b> is gone</p>",
    "https://h.example/login?next=/x&token={}&page=2",
    "https://h.example/{}/x",
    "Bearer realm=\"api\", error=\"invalid_token\", error_description=\"{} expired\"",
    "invalid:{}:end",
    "x{}y",
    "({})",
    "a,{},b",
];

/// How it is written, sign by sign: as it is, in other capitals, in URLs and forms, in JSON, and in pages.
const WAYS: [fn(char) -> String; 16] = [
    |c| c.to_string(),
    |c| c.to_lowercase().to_string(),
    |c| c.to_uppercase().to_string(),
    |c| if is_of_urls(c) { c.to_string() } else { percent(c) },
    |c| if is_of_urls(c) { c.to_string() } else { percent(c).to_lowercase() },
    |c| if is_of_urls(c) { c.to_string() } else { percent(c).replace("%20", "+") },
    |c| if is_of_urls(c) { c.to_string() } else { percent(c).replace('%', "%25") },
    percent,
    |c| if "\"\\/".contains(c) { format!("\\{c}") } else { c.to_string() },
    |c| if c.is_ascii() { json(c) } else { code(c) },
    |c| if "<>&'".contains(c) { code(c) } else { json(c) },
    code,
    |c| json(c).escape_default().to_string(),
    |c| match c {
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '&' => "&amp;".into(),
        '"' => "&quot;".into(),
        '\'' => "&#39;".into(),
        c => c.to_string(),
    },
    |c| format!("&#{};", u32::from(c)),
    |c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("&#x{:X};", u32::from(c)) },
];

fn is_of_urls(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.~".contains(c)
}

fn percent(c: char) -> String {
    c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn json(c: char) -> String {
    if "\"\\".contains(c) { format!("\\{c}") } else { c.to_string() }
}

fn code(c: char) -> String {
    format!("\\u{:04X}", u32::from(c))
}

fn written_in(way: fn(char) -> String, signs: &[char]) -> String {
    signs.iter().map(|c| way(*c)).collect()
}

/// What is known where a header was sent.
fn known_of(name: &str, value: &str) -> Known {
    let mut known = Known::default();
    learn(&mut known.secrets, &with_users(hidden_of_header(name, value).into_iter()), "");
    known
}

/// No eight signs in a row of a secret are told.
fn assert_untold(told: &str, secret: &[char], way: fn(char) -> String, said: &str) {
    let is_told = |piece: &[char]| told.contains(&written_in(way, piece));
    assert!(!secret.windows(LONG_PIECE).any(is_told), "{said}: {told}");
}

#[test]
fn what_was_sent_is_hidden_however_it_is_said_again() {
    for secret in SECRETS {
        let signs: Vec<char> = secret.chars().collect();
        for (name, value) in HEADERS {
            // In JSON it is sent as JSON writes it.
            let sent =
                if value.starts_with('{') && value.len() > 2 { written_in(json, &signs) } else { secret.to_owned() };
            let sent = value.replace("{}", &sent);
            let sent = sent
                .strip_prefix("Basic ")
                .map_or(sent.clone(), |user| format!("Basic {}", BASE64_STANDARD.encode(user)));
            let known = known_of(name, &sent);
            for way in WAYS {
                for place in PLACES {
                    let said = place.replace("{}", &written_in(way, &signs));
                    assert_untold(&hidden(&said, &known), &signs, way, &format!("{name}: {value}: {said}"));
                }
            }
        }
    }
}

/// A beginning or an end of a long one, letters and digits among it, where somebody cut it within a word.
#[test]
fn what_was_sent_is_hidden_where_it_was_cut_off() {
    for secret in SECRETS.into_iter().filter(|secret| secret.chars().count() >= 16) {
        let signs: Vec<char> = secret.chars().collect();
        for (name, value) in [HEADERS[0], HEADERS[5]] {
            let known = known_of(name, &value.replace("{}", secret));
            let pieces = (LONG_PIECE..signs.len())
                .flat_map(|at| [(at, 0..at), (signs.len() - at, signs.len() - at..signs.len())]);
            let is_within_a_word = |at: usize| signs[at - 1].is_alphanumeric() && signs[at].is_alphanumeric();
            for (nth, (_, place)) in pieces.filter(|(cut, _)| is_within_a_word(*cut)).enumerate() {
                let piece = &signs[place.clone()];
                if !piece.iter().any(|c| c.is_alphabetic()) || !piece.iter().any(char::is_ascii_digit) {
                    continue;
                }
                for way in WAYS {
                    let mark = ["...", "\u{2026}", "", " (truncated)", "***"][nth % 5];
                    let said = written_in(way, piece);
                    let said = if place.start == 0 { said + mark } else { format!("{mark}{said}") };
                    let said = PLACES[1 + nth % 4].replace("{}", &said);
                    assert_untold(&hidden(&said, &known), piece, way, &format!("{name}: {value}: {said}"));
                }
            }
        }
    }
}

#[test]
fn what_was_given_is_hidden_whatever_tells_of_it() {
    for (secret, argument) in SECRETS.into_iter().flat_map(|secret| ARGUMENTS.map(|argument| (secret, argument))) {
        let given = argument.replace("{}", secret);
        let words = ["run", "--", "env", &given].map(str::to_owned);
        let known = of_arguments(&words);
        for said in [
            given.clone(),
            format!("cannot run {given}: gone"),
            format!("cannot run {given:?}: gone"),
            format!("unexpected argument '{given}' found"),
            words.join(" "),
            format!("{words:?}"),
        ] {
            let signs: Vec<char> = secret.chars().collect();
            assert_untold(&text(&hidden(&said, &known)), &signs, |c| c.to_string(), &said);
        }
    }
}
