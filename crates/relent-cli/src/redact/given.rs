//! What was given on the command line and in the environment, known as a whole: whatever a message quotes of it, and however that is
//! written, the secret part is hidden.
//!
//! How a text looks tells little of where a value ends that somebody wrote in the wrong place. Here that is known, so the rules can be
//! coarse: what is no plain URL loses everything before its last `@`, everything behind the name of a secret, and everything from the
//! first sign on behind which one could stand ([`plain`]).

use super::{AT, HIDDEN, is_url, names::is_token, plain, scheme, url};
use crate::escape::escape;
use percent_encoding::percent_decode_str;
use std::{
    borrow::Cow,
    env,
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
};

/// A value that is not shown as it is.
#[derive(Debug)]
struct Given {
    /// The value, as messages may write it, with what is shown in its place.
    forms: Vec<(String, String)>,
    /// What it says itself to be a secret.
    secrets: Vec<String>,
    /// What may be one, and may be a part of a script that happens to be a word of ours, too.
    others: Vec<String>,
}

/// A text without what was given and lets others in.
pub(crate) fn without(text: &str) -> Cow<'_, str> {
    static GIVEN: OnceLock<Vec<Given>> = OnceLock::new();
    let all = GIVEN.get_or_init(|| {
        let arguments: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let is_ours = |name: &str| name.starts_with("RELENT_") || name.to_ascii_lowercase().ends_with("_proxy");
        let variables = env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy()));
        let values = variables.map(|(_, value)| value.to_string_lossy().into_owned());
        of_arguments(&arguments).chain(values.flat_map(|value| of(&value, false))).collect()
    });
    hidden(text, all)
}

/// What is hidden of a command line. Names that somebody has chosen may have signs in them (`backup:shop`).
fn of_arguments(arguments: &[String]) -> impl Iterator<Item = Given> {
    const NAMES: [&str; 2] = ["--lease", "--upstream"];
    let of_names = ["upstream", "store"].contains(&arguments.first().map_or("", String::as_str));
    let is_name = move |nth: usize| {
        let before = nth.checked_sub(1).map_or("", |nth| arguments[nth].as_str());
        let is_one = |name: &str| arguments[nth].strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
        NAMES.contains(&before) || NAMES.iter().any(|name| is_one(name)) || (of_names && before != "--policy")
    };
    (0..arguments.len()).flat_map(move |nth| {
        let is_url = plain::narrow(&arguments[nth]).contains("://");
        of(&arguments[nth], is_name(nth) && !is_url)
    })
}

fn hidden<'a>(text: &'a str, all: &[Given]) -> Cow<'a, str> {
    let mut out = Cow::Borrowed(text);
    for given in all {
        let mut is_told = false;
        for (form, shown) in &given.forms {
            if !out.contains(form) {
                continue;
            }
            // A short one that says nothing of itself is a part of many words.
            let less = match !given.secrets.is_empty() || form.len() > LONG {
                true => out.replace(form, shown),
                false => QUOTES.iter().fold(out.clone().into_owned(), |text, quote| {
                    text.replace(&format!("{quote}{form}{quote}"), &format!("{quote}{shown}{quote}"))
                }),
            };
            is_told |= less != *out;
            out = Cow::Owned(less);
        }
        for part in given.secrets.iter().chain(given.others.iter().filter(|_| is_told)) {
            if part.chars().count() >= LONG && out.contains(part) {
                out = Cow::Owned(out.replace(part, HIDDEN));
            }
            if let Some(less) = without_quoted(&out, &|piece| part.contains(piece).then(|| HIDDEN.to_owned())) {
                out = Cow::Owned(less);
            }
        }
    }
    // A part of a value that reaches from what is shown into what is not.
    let is_part = |piece: &str| all.iter().flat_map(|given| &given.forms).any(|(form, _)| form.contains(piece));
    let part = |piece: &str| match shown(piece) {
        shown if shown != piece && !piece.contains(HIDDEN) && is_part(piece) => Some(shown),
        _ => None,
    };
    if all.is_empty() {
        return out;
    }
    match without_quoted(&out, &part) {
        Some(less) => Cow::Owned(less),
        None => out,
    }
}

/// From how many characters on a secret is looked for anywhere.
const LONG: usize = 4;

/// What stands around what a message quotes.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// The text with something else for what it quotes, where there is something.
fn without_quoted(text: &str, instead: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let (mut out, mut rest, mut is_one) = (String::new(), text, false);
    while let Some(start) = rest.find('"') {
        let (before, quoted) = rest.split_at(start + 1);
        let mut is_written_out = false;
        // A quote within has a backslash before it.
        let end = quoted.find(|c| {
            let is_end = c == '"' && !is_written_out;
            is_written_out = c == '\\' && !is_written_out;
            is_end
        });
        let Some(end) = end else { break };
        let (piece, behind) = quoted.split_at(end);
        let other = if piece.is_empty() || piece == HIDDEN { None } else { instead(piece) };
        is_one |= other.is_some();
        out.extend([before, other.as_deref().unwrap_or(piece), "\""]);
        rest = &behind[1..];
    }
    out.push_str(rest);
    is_one.then_some(out)
}

/// What is hidden of an argument: of itself, and of its value if it is a flag with one.
fn of(argument: &str, is_name: bool) -> Vec<Given> {
    let mut values = vec![argument];
    match argument.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => values.push(value),
        _ if argument.starts_with('-') && !argument.starts_with("--") => values.extend(argument.get(2..)),
        _ => {}
    }
    // As `-d @FILE` has it.
    values.extend(values.clone().into_iter().filter_map(|value| value.strip_prefix('@')));
    values.into_iter().filter_map(|value| of_value(value, is_name)).collect()
}

fn of_value(value: &str, is_name: bool) -> Option<Given> {
    let narrow = plain::narrow(value);
    let (shown, without_secrets) = as_shown(&narrow, is_name);
    if shown == narrow {
        return None;
    }
    // Who reads URLs undoes what is written out, and makes hosts small.
    let decoded = percent_decode_str(&narrow).decode_utf8_lossy().into_owned();
    let small = decoded.to_lowercase();
    let mut forms: Vec<(String, String)> = Vec::new();
    for form in [value, &narrow, &decoded, &small].into_iter().flat_map(written) {
        if !forms.iter().any(|(known, _)| *known == form) {
            forms.push((form, shown.clone()));
        }
    }
    // The form that Rust writes is shown so, too.
    forms.iter_mut().for_each(|(form, shown)| {
        if form.contains('\\') {
            *shown = escape(shown).escape_debug().to_string();
        }
    });
    let secrets = missing(&narrow, &without_secrets);
    Some(Given { forms, secrets, others: missing(&narrow, &shown) })
}

/// What is hidden of a value that is shown so.
fn missing(value: &str, shown: &str) -> Vec<String> {
    if shown == value {
        return Vec::new();
    }
    // What is left of it stands there as it was.
    let mut pieces = shown.split(HIDDEN);
    let (mut hidden, mut at) = (Vec::new(), pieces.next().map_or(0, str::len));
    for piece in pieces {
        let Some(left) = value.get(at..) else { break };
        let Some(next) = left.find(piece).map(|next| at + next).filter(|_| !piece.is_empty()) else {
            hidden.push(left);
            break;
        };
        hidden.push(&value[at..next]);
        at = next + piece.len();
    }
    hidden.into_iter().filter(|part| !part.is_empty()).flat_map(written).collect()
}

/// A text as messages write it: as it is, or as Rust or a terminal has it.
fn written(text: &str) -> Vec<String> {
    let debug = format!("{text:?}");
    let mut all = vec![text.to_owned()];
    // The last is how keys of a store are shown.
    let others = [
        debug[1..debug.len() - 1].to_owned(),
        text.escape_debug().to_string(),
        escape(text).into_owned(),
        text.as_bytes().escape_ascii().to_string(),
    ];
    for other in others {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// A value as it is shown.
pub(super) fn shown(value: &str) -> String {
    let narrow = plain::narrow(value);
    let shown = as_shown(&narrow, false).0;
    if shown == narrow { value.to_owned() } else { shown }
}

/// A value as it is shown, and as it would be if nothing were a secret but what says so. Names that somebody chose may have signs in them.
fn as_shown(value: &str, is_name: bool) -> (String, String) {
    let same = |text: String| (text.clone(), text);
    if is_token(value) {
        return same(HIDDEN.to_owned());
    }
    if plain::is_word(value) || value.parse::<IpAddr>().is_ok() || value.parse::<SocketAddr>().is_ok() {
        return same(value.to_owned());
    }
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>|\\{}".contains(c);
    let is_plain = value.contains("://") && is_url(value) && !value.contains(is_odd);
    let is_of_the_web = ["http", "https", "ws", "wss"].iter().any(|name| value.starts_with(&format!("{name}://")));
    let is_one = is_plain && is_of_the_web && !is_cut_short(&value[scheme(value)..]);
    if is_one || (!value.contains(is_odd) && begins_with_a_host(value)) {
        return same(url(value));
    }
    let begin = match ["sqlite:", "unix:", "memory:"].iter().find(|name| value.starts_with(*name)) {
        Some(name) => name.len(),
        None if plain::is_word(&value[..scheme(value)].replace([':', '\\'], "")) => scheme(value),
        None => 0,
    };
    let is_user = |at: &usize| !plain::is_word(&value[begin..*at]) && !value.starts_with("sqlite:");
    let user = value.rfind(AT).filter(|at| *at >= begin).filter(is_user);
    let (head, rest) = match user {
        Some(at) => (format!("{}{HIDDEN}", &value[..begin]), &value[at..]),
        None => (value[..begin].to_owned(), &value[begin..]),
    };
    // The name of a policy, behind its file, is what somebody chose.
    let is_named = value.split_once('#').is_some_and(|(file, _)| plain::is_word(file));
    let plain = if is_name || is_named { rest.len() } else { plain::shown(rest) };
    let secret = |has_to_be| plain::secret(rest, has_to_be).unwrap_or(rest.len());
    let shown = format!("{head}{}", up_to(rest, plain.min(secret(false))));
    // A URL of a server, or what looks like one, may hide its secret elsewhere.
    match shown == value && value.contains("://") {
        true => same(url(value)),
        false => (shown, format!("{head}{}", up_to(rest, secret(true)))),
    }
}

/// A text that is hidden from a place on.
fn up_to(text: &str, end: usize) -> String {
    if end < text.len() { format!("{}{HIDDEN}", &text[..end]) } else { text.to_owned() }
}

/// What follows the user of a server's URL, as it is shown.
pub(super) fn behind_a_user(text: &str) -> String {
    up_to(text, plain::shown(text).min(plain::secret(text, false).unwrap_or(text.len())))
}

/// Whether a value is a URL of the web without its scheme: a host with a dot or a port, and a path.
fn begins_with_a_host(value: &str) -> bool {
    let Some((host, _)) = value.split_once('/') else { return false };
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let is_host = !name.is_empty() && name.chars().all(is_name) && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = name == "localhost" || !port.is_empty() || name.trim_start_matches('.').contains('.');
    is_host && is_one && !name.starts_with('.') && !is_cut_short(value)
}

/// Whether what is behind a scheme may be a user whose password begins with digits and has a slash in it: it has a host like a name, a
/// port, and an `@` that begins no part of a path.
fn is_cut_short(rest: &str) -> bool {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let is_name = host.split_once(':').is_some_and(|(name, _)| !name.contains(['.', '[']) && name != "localhost");
    is_name && path.rfind(AT).is_some_and(|at| !path[..at].ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_without_their_secrets() {
        for (given, is_shown) in [
            ("http://ann:pw@h/x", "http://***@h/x"),
            ("localhost:80/x?page=a&token=pw", "localhost:80/x?page=a&token=***"),
            ("h.example/x?page=a", "h.example/x?page=a"),
            ("./x?kennwort=pw", "./x?kennwort=***"),
            ("http://h/@scope/x?token=pw", "http://h/@scope/x?token=***"),
            ("http://ann:12/pw@h/", "http://***@h/"),
            ("http://localhost:80/x@1", "http://localhost:80/x@1"),
            ("http://h:80/@scope", "http://h:80/@scope"),
            ("http://a.example:80/x@1", "http://a.example:80/x@1"),
            ("postgres://ann:12/pw@h/db", "postgres://***@h/db"),
            ("http://ann:\"pw\"@h", "http://***@h"),
            ("http://ann:\tpw@h", "http://***@h"),
            ("ann:p w @h", "***@h"),
            (":pw@h", "***@h"),
            ("redis://:pw", "redis://:***"),
            ("host=h password='p''w'", "host=h password=***"),
            ("Server=h;Pwd={p w};x=1", "Server=***"),
            ("{\"password\" : \"pw\"}", "***"),
            ("Authorization: Bearer pw", "Authorization:***"),
            ("bearer pw", "bearer ***"),
            ("--store=host=h password=pw", "--store=***"),
            ("PGPASSWORD=p w psql", "PGPASSWORD=***"),
            ("kennwort=pw", "kennwort=***"),
            ("kennwort: pw", "kennwort:***"),
            ("password|pw", "password***"),
            ("password pw", "password ***"),
            ("--password pw", "--password ***"),
            ("machine h login ann password pw", "machine h login ann password ***"),
            ("postgres://h/db?kennwort=pw", "postgres://h/db?kennwort=***"),
            ("ann|pw@h", "***@h"),
            ("glpat-secret7", "***"),
            ("-p pw", "-p ***"),
            ("http://h/?data=%7B%22password%22%3A%22pw%22%7D", "http://h/?data=***"),
            ("http://h/?data={%22password%22:%22pw%22}", "http://h/?data=***"),
            ("http://h/?r=//ann:pw@h/&page=2", "http://h/?r=***&page=2"),
            ("http://h/?r=%2F%2Fann%3Apw%40h", "http://h/?r=***"),
            ("http://h/?u=ann%253Apw%2540h2", "http://h/?u=***"),
            ("http://h/?h=Authorization:%20Bearer%20pw", "http://h/?h=***"),
            ("http://h/?h=Bearer+pw", "http://h/?h=***"),
            ("http://h/?q=a+b&at=12:30&mail=ann@h", "http://h/?q=a+b&at=12:30&mail=ann@h"),
            ("ann：pw＠h", "***@h"),
            ("http：//ann:pw＠h", "http://***@h"),
            ("password＝pw", "password=***"),
            // None of these is one.
            ("sqlite:/home/ann@h/x.db", "sqlite:/home/ann@h/x.db"),
            ("getty@.service", "getty@.service"),
            ("@FILE", "@FILE"),
            ("auth:8080/x", "auth:8080/x"),
            ("grpc=10,token_ratio=0.1", "grpc=10,token_ratio=0.1"),
            ("--key-file=x y", "--key-file=***"),
            ("/etc/ssl/private/key.pem", "/etc/ssl/private/key.pem"),
            ("my file (2).txt", "my file (2).txt"),
            ("tls://auth.example.com:5432", "tls://auth.example.com:5432"),
            ("relent.toml#read", "relent.toml#read"),
        ] {
            assert_eq!(shown(given), is_shown, "{given}");
        }
    }

    #[test]
    fn names_that_somebody_chose_have_signs() {
        let told = |words: &[&str], text: &str| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            hidden(text, &of_arguments(&words).collect::<Vec<_>>()).into_owned()
        };
        for words in [
            &["run", "--lease", "backup:shop", "--", "true"][..],
            &["run", "--lease=backup:shop"],
            &["upstream", "open", "backup:shop"],
            &["upstream", "open", "--store=sqlite:s.db", "backup:shop"],
        ] {
            assert_eq!(told(words, "lease backup:shop: held"), "lease backup:shop: held", "{words:?}");
        }
        assert_eq!(told(&["run", "--policy", "backup:shop"], "no file backup:shop"), "no file backup:***");
        for name in ["password pw", "http：//ann:pw＠h", "ann:pw@h", "postgres://h?kennwort=pw"] {
            let text = told(&["run", "--lease", name], &format!("lease {name}: held"));
            assert!(text.contains(HIDDEN) && !text.contains("pw"), "{text}");
        }
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
            "://",
            "http://a:b@h ",
            json,
        ] {
            let value = word.repeat(128 * 1024 / word.len());
            let all = of(&value, false);
            for said in ["attempt 1 of 8: exit 1".to_owned(), format!("cannot find {value:?}")] {
                assert!(!hidden(&said, &all).is_empty(), "{word}");
            }
        }
    }

    /// However a message writes it, and whichever part.
    #[test]
    fn what_was_given_is_hidden_wherever_it_is_quoted() {
        let secrets = [
            "hunter2",
            "hun ter2",
            "hun\"ter2",
            "hun'ter2",
            "h}}unter2",
            "hun\tter2",
            "hun\\ter2",
            "1/hunter2",
            "hunter2%40",
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
                let all = of(&value, false);
                let part = &value[value.find(secret).unwrap()..];
                let part = &part[..secret.len()];
                for said in [
                    format!("cannot read {value}: gone"),
                    format!("cannot read {value:?}: gone"),
                    format!("invalid value '{value}': there is no service {part:?}"),
                    format!("{:?} is no port", &part[..part.len() - 1]),
                    format!("no command {}", escape(&value)),
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
}
