//! Texts that may hold URLs, or what somebody wrote in the place of one.

use super::{given, looks::as_it_looks, plain};
use std::borrow::Cow;

/// A text that may hold URLs and settings, such as the message of a library, or what somebody wrote in the wrong place.
///
/// A password may hold what ends a URL elsewhere, a space or a quote. So a later `@` counts for the URL before it, unless a
/// word begins with it: too much is hidden rather than too little. What was given on the command line is known as a whole, and
/// hidden as such.
///
/// ```
/// use relent_cli::redact::text;
///
/// assert_eq!(text("no way to http://ann:pw@host/"), "no way to http://***@host/");
/// assert_eq!(text("invalid value 'http://ann:p w@host/'"), "invalid value 'http://***@host/'");
/// assert_eq!(text("host=db password=pw"), "host=db password=***");
/// ```
pub fn text(text: &str) -> Cow<'_, str> {
    match plain::narrow(text) {
        Cow::Borrowed(text) => with_signs(text),
        Cow::Owned(narrow) => match with_signs(&narrow) {
            same if same == narrow => with_signs(text),
            other => Cow::Owned(other.into_owned()),
        },
    }
}

/// A title that somebody chose: a text of which each word is shown as a name is.
pub(crate) fn title(title: &str) -> String {
    let is_between = |c: char| c.is_whitespace() || "()".contains(c);
    let text = text(title);
    let words = text.split_inclusive(is_between).map(|piece| {
        let word = piece.trim_end_matches(is_between);
        given::name(word) + &piece[word.len()..]
    });
    words.collect()
}

/// The same, if there are no wide signs in it.
fn with_signs(text: &str) -> Cow<'_, str> {
    match given::without(text) {
        Cow::Borrowed(text) => as_it_looks(text),
        Cow::Owned(text) => Cow::Owned(as_it_looks(&text).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{header, url, value};

    #[test]
    fn urls_inside_of_other_texts_are_found() {
        assert_eq!(header("Location", "https://ann:pw@host/?code=1"), "https://***@host/?code=***");
        assert_eq!(header("Location", "/back?code=1&page=2"), "/back?code=***&page=2");
        assert_eq!(header("Link", "<http://host/?token=1>; rel=\"next\""), "<http://host/?token=***>; rel=\"next\"");
        assert_eq!(text("a\nhttp://ann:pw@host/ b"), "a\nhttp://***@host/ b");
        assert_eq!(text(""), "");
    }

    #[test]
    fn of_a_title_each_word_is_looked_at() {
        for (given, shown) in [
            ("n=1000, lambda=0.9, \u{3bb}=0.9, mu=1 (p=1/2)", ""),
            ("a  herd:\n5% of 1,000 at base=1s, \u{201e}twice\u{201c} (base=0.5)", ""),
            ("see -dtoken=hunter2Kx7 ok", "see -dtoken=*** ok"),
            ("see http://127.0.0.1:hunter2Kx7/ ok", "see http://127.0.0.1:*** ok"),
        ] {
            assert_eq!(title(given), if shown.is_empty() { given } else { shown });
        }
    }

    /// It is what half of the policies are called.
    #[test]
    fn a_token_bucket_is_no_secret() {
        assert_eq!(given::name("grpc token bucket"), "grpc token bucket");
        assert_eq!(given::name("Token buckets: 5"), "Token buckets: 5");
        assert_eq!(given::name("token hunter2"), "token ***");
        assert_eq!(given::name("token: bucket2"), "token:***");
    }

    /// Names of everyday words are told apart, and amounts in them are shown.
    #[test]
    fn names_are_made_of_everyday_words() {
        for same in [
            "basic backoff",
            "basic jitter",
            "hot key, p=0.5, full",
            "key rotation",
            "session cache",
            "auth (strict)",
            "key 1",
            "api key #2",
            "basic v2",
            "p=1/2, full",
        ] {
            assert_eq!(given::name(same), same);
        }
        for (name, shown) in [
            ("basic YW5uOnB3", "basic ***"),
            ("key hunter2", "key ***"),
            ("key 4815", "key ***"),
            ("password reset", "password ***"),
            ("bearer backoff", "bearer ***"),
            ("key: word", "key:***"),
            ("pin=1234, full", "pin=***"),
        ] {
            assert_eq!(given::name(name), shown);
        }
        assert_eq!(text("key rotation"), "key rotation");
        assert_eq!(value("key rotation"), "key ***", "of an argument");
    }

    #[test]
    fn tokens_are_known_by_how_they_look() {
        assert_eq!(text("a herd: ghp_hunter2Kx7hunter2, 2"), "a herd: *** 2");
        assert_eq!(text("Bearer hunter2Kx7, of 10"), "Bearer *** of 10");
        for plain in ["Bearer tokens of 10", "bearer of 10", "sk-2 of 10", "a bearer 10"] {
            assert_eq!(text(plain), plain);
        }
    }

    /// Where something else was wanted than a URL, nobody has said where it ends.
    #[test]
    fn a_password_may_hold_what_ends_a_url() {
        for inside in
            ["p w", "p\"w", "p'w", "p|w", "p<w", "p>w", "p`w", "7 w", "7/w x", "p@ w", "p w@x", "p://w", "", "p "]
        {
            let given = format!("invalid value 'redis://ann:{inside}@host:6379/0' for '--flag'");
            assert_eq!(text(&given), "invalid value 'redis://***@host:6379/0' for '--flag'", "{given}");
        }
        assert_eq!(text(r#""redis://ann:p\"w@h/" is no size"#), r#""redis://***@h/" is no size"#);
        for inside in ["\"pw\"", "`pw`", "<pw>", "'pw'", "|pw|", "\tpw", "p\\w", "\npw\n"] {
            let given = format!("cannot read {:?}: gone", format!("http://ann:{inside}@h"));
            assert_eq!(text(&given), "cannot read \"http://***@h\": gone", "{given}");
            let given = format!("cannot read {:?}: gone", format!("ann:{inside}@h"));
            assert_eq!(text(&given), "cannot read \"***@h\": gone", "{given}");
        }
        assert_eq!(text("cannot read 'ann:pw @h'"), "cannot read '*** @h'");
        assert_eq!(url("redis://ann:p\\w@h/"), "redis://***@h/");
        for (given, shown) in [
            ("there is no profile \"ann:pw@host\"", "there is no profile \"***@host\""),
            ("cannot read /x/ann:pw@host: gone", "cannot read ***@host: gone"),
            ("http://host/ and ann:pw@host", "http://***@host"),
            ("RELENT_CONFIG=https:\\\\ann:pw@h: no", "***@h: no"),
            ("the value 'https:///ann:pw@db/x' is", "the value 'https:///***@db/x' is"),
            ("ann:pw@host and http://host/", "***@host and http://host/"),
        ] {
            assert_eq!(text(given), shown);
        }
        // What no user is, stays.
        for same in [
            "https://host/x; -H @FILE takes it from a file",
            "https://host/@scope/package: 404",
            "write it like https://example.com/path",
            "\"http://host:8080/\" and 'https://other/' are two",
            "store sqlite:/home/ann@example.org/state.db: it is locked",
            "git@example.org:relent.git, ann@example.org: and @FILE",
        ] {
            assert_eq!(text(same), same);
        }
    }
}
