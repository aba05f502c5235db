//! Settings inside of texts, as connection strings and command lines have them.

use super::{
    HIDDEN,
    names::{is_password, is_secret},
    words::begin_a_message,
};
use std::borrow::Cow;

/// Hides what is set under the name of a password, as in `host=db password=pw`, `"password": "pw"` and `password: pw`.
pub(super) fn settings(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(sign) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(sign + 1);
        out.push_str(before);
        rest = after;
        if is_set(&before[..sign], before.ends_with(':'), after) {
            let after = rest.trim_start_matches(SPACES);
            out.push_str(&rest[..rest.len() - after.len()]);
            rest = after;
            let (value, after) = rest.split_at(value(rest));
            out.push_str(if value.is_empty() { "" } else { HIDDEN });
            rest = after;
        }
    }
    match out.is_empty() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(out + rest),
    }
}

const SPACES: [char; 2] = [' ', '\t'];

/// Whether what stands before a sign ends with the name of a password.
fn is_set(before: &str, is_colon: bool, after: &str) -> bool {
    // Connection strings and TOML may have spaces around the sign, JSON has quotes around the name.
    let bare = before.trim_end_matches(SPACES);
    let unquoted = bare.trim_end_matches(['"', '\'', '\\']);
    let name = unquoted.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "_-".contains(c));
    let name = &unquoted[name.len()..];
    let is_one = match (is_colon, unquoted.len() < bare.len()) {
        (false, _) => is_password(name),
        (true, true) => is_secret(name),
        // A host may have such a name, and a port.
        (true, false) => is_password(name) && after.starts_with(SPACES),
    };
    // A file, a command or a lease may have such a name, and a message goes on behind it.
    is_one && !(is_colon && begin_a_message(after.trim_start_matches(SPACES)))
}

/// How long the value is that a text begins with, in quotes, in braces or neither. The quote around the whole setting is not a part of
/// it.
fn value(text: &str) -> usize {
    let quote = ["\\\"", "\\'", "\"", "'"].into_iter().find(|quote| text.starts_with(quote));
    if let Some(quote) = quote {
        return quoted(text, quote.len(), quote);
    }
    if let Some((_, end)) = [('{', "}"), ('[', "]")].into_iter().find(|(begin, _)| text.starts_with(*begin)) {
        return quoted(text, 1, end);
    }
    if let Some(after) = text.strip_prefix(HIDDEN)
        && after.starts_with(|c: char| !c.is_alphanumeric())
    {
        return HIDDEN.len();
    }
    // An empty one, of a query.
    if text.starts_with('&') {
        return 0;
    }
    // libpq takes a space for a part of the value if a backslash stands before it.
    let ends = |(at, c): &(usize, char)| c.is_whitespace() && !text[..*at].ends_with('\\');
    let word = text.char_indices().find(ends).map_or(text, |(end, _)| &text[..end]);
    word.trim_end_matches(['\'', '"', '\\']).len()
}

/// How long the value is whose `end` comes after the first `start` bytes: one that stands twice, or behind a backslash, is a part of
/// the value. Without an end it is all there is.
fn quoted(text: &str, start: usize, end: &str) -> usize {
    let mut from = start;
    while let Some(at) = text[from..].find(end).map(|at| from + at) {
        let behind = at + end.len();
        if text[behind..].starts_with(end) {
            from = behind + end.len();
        } else if at > start && text[..at].ends_with('\\') {
            from = behind;
        } else {
            return behind;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use crate::redact::{text, url};

    /// A server may send hundreds of kilobytes of one header.
    #[test]
    fn long_texts_are_looked_at_once() {
        for word in ["pw\\:&", "pw\\:***.", "pw: no", "pw=&", "\"pw\": ***.", "token\":"] {
            let long = word.repeat((1 << 18) / word.len());
            assert!(super::settings(&long).len() <= 2 * long.len(), "{word}");
        }
    }

    #[test]
    fn settings_with_the_name_of_a_password_are_hidden() {
        for (given, shown) in [
            ("host=h password=x", "host=h password=***"),
            ("postgres://h/db user=ann password=x", "postgres://h/db user=ann password=***"),
            ("invalid value 'host=h password=x' for '--store'", "invalid value 'host=h password=***' for '--store'"),
            ("password='a b' host=h", "password=*** host=h"),
            ("{\"password=\\\"a b\\\"\"}", "{\"password=***\"}"),
            ("sslpassword=x&y API_KEY=z", "sslpassword=*** API_KEY=***"),
            ("PGPASSWORD=x psql", "PGPASSWORD=*** psql"),
            ("password=***x", "password=***"),
            ("AWS_SECRET_ACCESS_KEY=x dbpass=y", "AWS_SECRET_ACCESS_KEY=*** dbpass=***"),
            ("host=h password = x", "host=h password = ***"),
            ("password= x and password ='x y'", "password= *** and password =***"),
            ("2 | password = \"x\"", "2 | password = ***"),
            // As libpq, ODBC and JSON write what has quotes in it.
            ("host=h password='p''w'", "host=h password=***"),
            (r"host=h password='p\'w'", "host=h password=***"),
            (r"host=h password=p\ w", "host=h password=***"),
            ("Server=h;Pwd={p w};x=1", "Server=h;Pwd=***;x=1"),
            ("Server=h;Pwd={p}}w};x=1", "Server=h;Pwd=***;x=1"),
            (r#"{"password":"p w","a":"b"}"#, r#"{"password":***,"a":"b"}"#),
            (r#""{\"api_key\": \"p\\\"w\", \"a\": 1}""#, r#""{\"api_key\": ***, \"a\": 1}""#),
            ("{'auth': 'p w'}", "{'auth': ***}"),
            ("{\"key\": [\"p\", \"w\"], \"a\": [1]}", "{\"key\": ***, \"a\": [1]}"),
            ("password: pw", "password: ***"),
            // None of these is one.
            ("cannot read /run/secrets/api_token: No such file or directory", ""),
            ("the policy file \"/x/password\": permission denied", ""),
            ("lease refresh_token: held, fence 41", ""),
            ("lease refresh_token: released", ""),
            ("unix:/x/password: up after 1 attempt in 2ms", ""),
            ("password: up2after", "password: ***"),
            ("password: hunter2 was refused", "password: *** was refused"),
            ("password: is-hunter2 no", "password: *** no"),
            ("{\"token\": \"open\"}", "{\"token\": ***}"),
            ("token:8080 refuses", "token:8080 refuses"),
            ("password =", "password ="),
            ("grpc=10,token_ratio=0.1", "grpc=10,token_ratio=0.1"),
            ("--idempotency-key=KEY and --key=FILE", "--idempotency-key=KEY and --key=FILE"),
        ] {
            let shown = if shown.is_empty() { given } else { shown };
            assert_eq!(text(given), shown, "{given}");
            assert_eq!(text(shown), shown, "twice is once");
            assert!(!given.contains("://") || url(given) == shown);
        }
        assert_eq!(url("host=h password=x"), "host=h password=***");
    }
}
