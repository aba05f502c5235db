//! What was given on the command line and in the environment, known as a whole: whatever a message quotes of it, and however that is
//! written, the secret part is hidden.
//!
//! How a text looks tells little of where a value ends that somebody wrote in the wrong place. Here that is known, so the rules can be
//! coarse: what is no plain URL loses everything before its last `@`, and everything behind the name of a secret.

use super::{
    AT, HIDDEN, is_url,
    names::{is_password, is_secret},
    scheme, url,
};
use crate::escape::escape;
use std::{borrow::Cow, env, sync::OnceLock};

/// A value that holds a secret.
#[derive(Debug)]
struct Given {
    /// The value, as messages may write it, with what is shown in its place.
    forms: Vec<(String, String)>,
    /// What is hidden of it.
    hidden: Vec<String>,
}

/// A text without what was given and lets others in.
pub(super) fn without(text: &str) -> Cow<'_, str> {
    static GIVEN: OnceLock<Vec<Given>> = OnceLock::new();
    let all = GIVEN.get_or_init(|| {
        let arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
        let is_ours = |name: &str| name.starts_with("RELENT_") || name.to_ascii_lowercase().ends_with("_proxy");
        let variables = env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy()));
        let values = variables.map(|(_, value)| value.to_string_lossy().into_owned());
        arguments.chain(values).flat_map(|value| of(&value)).collect()
    });
    hidden(text, all)
}

fn hidden<'a>(text: &'a str, all: &[Given]) -> Cow<'a, str> {
    let mut out = Cow::Borrowed(text);
    for given in all {
        for (form, shown) in given.forms.iter().filter(|(form, _)| text.contains(form)) {
            out = Cow::Owned(out.replace(form, shown));
        }
        for part in &given.hidden {
            // A short one is a part of many words.
            if part.chars().count() >= LONG && out.contains(part) {
                out = Cow::Owned(out.replace(part, HIDDEN));
            }
            if let Some(less) = without_quoted(&out, part) {
                out = Cow::Owned(less);
            }
        }
    }
    out
}

/// From how many characters on a secret is looked for anywhere.
const LONG: usize = 4;

/// The text without what it quotes of a secret, if it does.
fn without_quoted(text: &str, secret: &str) -> Option<String> {
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
        let is_secret = !piece.is_empty() && piece != HIDDEN && secret.contains(piece);
        out.extend([before, if is_secret { HIDDEN } else { piece }, "\""]);
        (rest, is_one) = (&behind[1..], is_one || is_secret);
    }
    out.push_str(rest);
    is_one.then_some(out)
}

/// The secrets of an argument: of its value, if it is a flag with one.
fn of(argument: &str) -> Option<Given> {
    let value = match argument.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => value,
        _ => argument,
    };
    // As `-d @FILE` has it.
    let value = value.strip_prefix('@').unwrap_or(value);
    let shown = shown(value);
    if shown == value {
        return None;
    }
    let written = |text: &str| {
        let debug = format!("{text:?}");
        let escaped = text.escape_debug().to_string();
        [text.to_owned(), debug[1..debug.len() - 1].to_owned(), escaped, escape(text).into_owned()]
    };
    let forms = written(value).into_iter().zip(written(&shown)).collect();
    let (mut hidden, mut at) = (Vec::new(), 0);
    for piece in shown.split(HIDDEN) {
        // What is left of it stands there as it was.
        let Some(next) = value[at..].find(piece).map(|next| at + next) else { break };
        hidden.push(&value[at..if piece.is_empty() && at > 0 { value.len() } else { next }]);
        at = next + piece.len();
    }
    let hidden = hidden.into_iter().filter(|part| !part.is_empty()).flat_map(written).collect();
    Some(Given { forms, hidden })
}

/// A value as it is shown.
pub(super) fn shown(value: &str) -> String {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>|\\{}".contains(c);
    let is_plain = value.contains("://") && is_url(value) && !value.contains(is_odd);
    let is_of_the_web = ["http", "https", "ws", "wss"].iter().any(|name| value.starts_with(&format!("{name}://")));
    if is_plain && is_of_the_web && !is_cut_short(&value[scheme(value)..]) {
        return url(value);
    }
    let begin = scheme(value);
    let user = value.rfind(AT).filter(|at| value[..*at].contains(':') && !value.starts_with("sqlite:"));
    let rest = user.map_or(value, |at| &value[at..]);
    let head = if user.is_some() { format!("{}{HIDDEN}", &value[..begin]) } else { String::new() };
    let tail = match secret(rest) {
        Some(end) if end < rest.len() => format!("{}{HIDDEN}", &rest[..end]),
        _ => rest.to_owned(),
    };
    let shown = head + &tail;
    // A URL of a server, or what looks like one, may hide its secret elsewhere.
    if shown == value && value.contains("://") { url(value) } else { shown }
}

/// Whether what is behind a scheme may be a user whose password begins with digits and has a slash in it: it has a host like a name, a
/// port, and an `@` that begins no part of a path.
fn is_cut_short(rest: &str) -> bool {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let is_name = host.split_once(':').is_some_and(|(name, _)| !name.contains(['.', '[']) && name != "localhost");
    is_name && path.rfind(AT).is_some_and(|at| !path[..at].ends_with('/'))
}

/// Behind the first name of a secret, and the sign behind that.
fn secret(text: &str) -> Option<usize> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let mut at = 0;
    while let Some(start) = text[at..].find(is_name).map(|start| at + start) {
        let end = text[start..].find(|c| !is_name(c)).map_or(text.len(), |end| start + end);
        let (name, behind) = (&text[start..end], &text[end..]);
        let bare = behind.trim_start_matches(['"', '\'', '\\', ' ', '\t']);
        let sign = text.len() - bare.len();
        let after = bare.get(1..).unwrap_or_default();
        let is_set = match bare.chars().next() {
            Some('=') => is_password(name),
            Some(':') => is_secret(name) && !begins_with_a_port(after) && !after.starts_with("//"),
            _ => ["bearer", "basic"].contains(&name.to_ascii_lowercase().as_str()) && behind.starts_with([' ', '\t']),
        };
        if is_set {
            return Some(if bare.starts_with(['=', ':']) { sign + 1 } else { sign });
        }
        at = end;
    }
    None
}

/// Whether a number stands there, or nothing, up to what ends a host.
fn begins_with_a_port(text: &str) -> bool {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    behind.is_empty() || behind.starts_with(['/', '?', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_without_their_secrets() {
        for (given, is_shown) in [
            ("http://ann:pw@h/x", "http://***@h/x"),
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
            ("Server=h;Pwd={p w};x=1", "Server=h;Pwd=***"),
            ("{\"password\" : \"pw\"}", "{\"password\" :***"),
            ("Authorization: Bearer pw", "Authorization:***"),
            ("bearer pw", "bearer ***"),
            ("--store=host=h password=pw", "--store=host=h password=***"),
            ("PGPASSWORD=p w psql", "PGPASSWORD=***"),
            // None of these is one.
            ("sqlite:/home/ann@h/x.db", "sqlite:/home/ann@h/x.db"),
            ("getty@.service", "getty@.service"),
            ("@FILE", "@FILE"),
            ("auth:8080/x", "auth:8080/x"),
            ("grpc=10,token_ratio=0.1", "grpc=10,token_ratio=0.1"),
            ("--key=FILE", "--key=FILE"),
        ] {
            assert_eq!(shown(given), is_shown, "{given}");
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
            let value = word.repeat(256 * 1024 / word.len());
            let all: Vec<Given> = of(&value).into_iter().collect();
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
                let all: Vec<Given> = of(&value).into_iter().collect();
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
