//! The parts of what was sent as a secret, of which whoever got it may say one again.
//!
//! Where a token ends nobody has to know: what stands behind a scheme, between two signs and behind the first of them is known at every level,
//! and the smallest pieces with it.

use super::table::LONG_PIECE;
use std::{collections::HashSet, iter};

/// How often a part is taken apart again.
const DEEPEST: usize = 3;

/// The longest part that has signs in it: of a longer one its pieces are known.
const LONGEST: usize = 4096;

/// How long all of them are.
const MOST: usize = 1 << 18;

/// The signs between which a part is one as a whole.
const BETWEEN: [fn(char) -> bool; 9] = [
    |c| c == ';',
    |c| c == ',',
    |c| c == '&',
    |c| c == '|',
    |c| c == '.',
    |c| "\"".contains(c),
    |c| "<>".contains(c),
    char::is_whitespace,
    // A key in groups.
    |c| !c.is_alphanumeric() && !"-_".contains(c),
];

/// A secret and its parts that are long enough, but for the names of settings in it. Words of small letters are no parts of a part.
pub(super) fn parts(secret: &str) -> Vec<&str> {
    let mut all = smallest(secret);
    let mut known: HashSet<&str> = all.iter().copied().collect();
    // However a secret is made, what is known of it grows no more than it does.
    let mut left = (16 * secret.len() + 4096).min(MOST);
    let mut level = vec![secret];
    for _ in 0..DEEPEST {
        let mut next = Vec::new();
        for part in level.iter().flat_map(|text| taken_apart(text)).filter(|part| is_one(part)) {
            if part.len() <= LONGEST && known.insert(part) {
                let Some(rest) = left.checked_sub(part.len()) else { break };
                left = rest;
                next.push(part);
            }
        }
        all.extend(&next);
        level = next;
    }
    all.retain(|part| part.len() >= LONG_PIECE);
    all
}

/// A secret and its smallest pieces.
fn smallest(secret: &str) -> Vec<&str> {
    let (mut all, mut rest) = (vec![secret], secret);
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(rest.find(is_sign).unwrap_or(rest.len()));
        let set = || behind.trim_start_matches(['"', '\'']).strip_prefix('=');
        // A `=` may be the end of what is in base64.
        let is_set =
            || behind.starts_with("\":") || set().is_some_and(|value| !value.is_empty() && !value.starts_with('='));
        if part.len() >= LONG_PIECE && (part.contains(|c: char| c.is_ascii_digit()) || !is_set()) {
            all.push(part);
            all.extend(part.split(|c: char| !c.is_alphanumeric()).filter(|word| *word != part && !is_small(word)));
        }
        rest = behind.strip_prefix(is_sign).unwrap_or_default();
    }
    all
}

/// What stands between the signs of one kind, and behind the first of some.
fn taken_apart(text: &str) -> Vec<&str> {
    let (strings, whole, text) = (strings(text), text, bare(text));
    let behind = |is_first: &dyn Fn(char) -> bool| {
        let (at, sign) = text.char_indices().find(|(_, c)| is_first(*c))?;
        Some(bare(&text[at + sign.len_utf8()..]))
    };
    let mut all: Vec<&str> = iter::once(text).chain(behind(&char::is_whitespace)).collect();
    // A list of settings is no value of its first one.
    if !text.split_once(';').is_some_and(|(_, others)| others.contains('=')) {
        all.extend(behind(&|c| "=:".contains(c)));
        all.extend(behind(&|c| !c.is_alphanumeric()));
    }
    // Behind the last point there may be a signature.
    all.extend(text.rsplit_once('.').map(|(signed, _)| bare(signed)));
    all.extend(strings);
    let kinds = BETWEEN.iter().filter(|is_between| text.contains(**is_between));
    all.extend(kinds.flat_map(|is_between| text.split(*is_between).map(bare)).filter(|part| !is_setting(part, 0)));
    all.extend(with_all(whole));
    all
}

/// What is long enough only with the signs that stand around a value, which may be of the value itself.
fn with_all(text: &str) -> impl Iterator<Item = &str> {
    let kinds = BETWEEN.iter().filter(|is_between| text.contains(**is_between));
    let pieces = iter::once(text).chain(kinds.flat_map(|is_between| text.split(*is_between)));
    let of_a_piece = |piece| {
        let behind = |is_first: fn(char) -> bool| Some(str::split_once(piece, is_first)?.1);
        [Some(piece), behind(char::is_whitespace), behind(|c| "=:".contains(c))].into_iter().flatten()
    };
    pieces.flat_map(of_a_piece).map(str::trim).filter(|part| bare(part).len() < LONG_PIECE)
}

/// The strings of JSON, in which a quote has a backslash before it.
fn strings(text: &str) -> Vec<&str> {
    let (mut all, mut begin, mut is_written_out) = (Vec::new(), None, false);
    for (at, c) in text.char_indices() {
        match begin {
            _ if is_written_out => is_written_out = false,
            _ if c == '\\' => is_written_out = true,
            Some(begun) if c == '"' => {
                all.push(&text[begun..at]);
                begin = None;
            }
            None if c == '"' => begin = Some(at + 1),
            _ => {}
        }
    }
    all
}

/// Without what stands around a value, but for a `=`, which may be the end of what is in base64.
pub(super) fn bare(text: &str) -> &str {
    let is_around = |c: char| c.is_whitespace() || "\"'{}[]()<>=;,".contains(c);
    text.trim_end_matches(|c| is_around(c) && c != '=').trim_start_matches(|c| is_around(c) || c == ':')
}

/// Whether a part is long enough and says something, and is no setting of which the value is known by itself.
fn is_one(part: &str) -> bool {
    part.len() >= LONG_PIECE && !is_small(part) && !is_setting(part, LONG_PIECE)
}

/// Whether a part is a name with one value that is so long.
fn is_setting(part: &str, least: usize) -> bool {
    let Some((name, value)) = part.split_once("\":").or_else(|| part.split_once('=')) else { return false };
    let value = bare(value);
    let is_name = name.chars().all(|c| c.is_alphabetic() || "_-\"'".contains(c));
    is_name && value.len() >= least && !value.contains(is_sign)
}

fn is_sign(c: char) -> bool {
    c.is_whitespace() || ",;=:\"'{}[]()<>&".contains(c)
}

fn is_small(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_secret_are_known_but_no_names_in_it() {
        assert_eq!(parts("short"), [""; 0]);
        assert_eq!(parts("Basic dXNlcjpwYXNz"), ["Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"]);
        assert_eq!(parts("Basic dXNlcjpwYXM="), ["Basic dXNlcjpwYXM=", "dXNlcjpwYXM", "dXNlcjpwYXM="]);
        assert_eq!(parts("username=1; session=hunter2longer")[1..], ["hunter2longer"]);
        for whole in
            ["id/hunter2longer", "v1.hunter2longer", "1|hunter2longer", "hunter2longer=x", "id+hunter2longer-x"]
        {
            assert!(parts(whole).contains(&"hunter2longer"), "{whole}");
        }
        assert_eq!(parts("word/sentences"), ["word/sentences"; 2]);
        assert!(parts("v1/a1b2c3-d4e5-f6g7/x").contains(&"a1b2c3-d4e5-f6g7"));
        assert_eq!(parts("{\"password\":\"hunter2longer\"}")[1..], ["hunter2longer"]);
    }

    /// No piece of these is long enough to be known by itself.
    #[test]
    fn what_stands_behind_a_scheme_or_a_name_is_known_as_a_whole() {
        for token in [
            "a1b2:c3d4:e5f6:g7h8",
            "a1b2,c3d4,e5f6,g7h8",
            "a1b2;c3d4;e5f6;g7h8",
            "a1b2&c3d4|e5f6/g7h8",
            "Horse9 Stable7 Hay5",
            "k1=v2=k3=v4=k5",
            "ab=cd=ef=gh=ij",
            "a1.b2-c3_d4+e5",
            "Horse=Batter7",
            "a1b2c3-d4e5-f6g7",
        ] {
            for whole in [
                format!("Bearer {token}"),
                format!("id {token}"),
                format!("id={token}"),
                format!("id: {token}"),
                format!("id|{token}"),
                format!("v1.id.{token}"),
                format!("Token token=\"{token}\""),
                format!("{{\"password\":\"{token}\"}}"),
                format!("{{\"user\":\"ann\",\"password\":\"{token}\",\"x\":1}}"),
            ] {
                assert!(parts(&whole).contains(&token), "{whole}: {:?}", parts(&whole));
            }
            for (whole, sign) in [
                (format!("sid={token}; b=c"), ';'),
                (format!("b=c; sid={token}"), ';'),
                (format!("s:{token}.Sig12+/"), '='),
                (format!("{token}</password></login>"), '='),
            ] {
                assert!(token.contains(sign) || parts(&whole).contains(&token), "{whole}: {:?}", parts(&whole));
            }
        }
    }

    /// What stands around it elsewhere may be of a token itself, which is shorter without it.
    #[test]
    fn a_token_is_known_with_the_signs_at_its_ends() {
        for token in [
            "((Abc1x9))",
            "ZY~7ccJ)",
            "]2yb}~Qf",
            "<Ab1x9Q>",
            "(((Abc1x)))",
            "QF#drzy'",
            ":QF#drzy",
            "=QF#drzy",
            "t=Ry2+<{",
            "'fT=dW~Q",
        ] {
            for whole in [
                format!("Bearer {token}"),
                format!("Token  {token}"),
                format!("sid={token}"),
                format!("a=b; sid={token}"),
                format!("abc {token}"),
                format!("v1:{token}"),
                format!("v1.{token}"),
                format!("Digest a=b, nonce=\"{token}\", c=d"),
            ] {
                assert!(parts(&whole).contains(&token), "{whole}: {:?}", parts(&whole));
            }
        }
        for token in ["Wint_r7;", ",Wint-r7", "\"Wint_r7", "Wint_r7\"", "Wint r7;"] {
            for whole in [format!("Bearer {token}"), format!("Token {token}"), format!("a {token}")] {
                assert!(parts(&whole).contains(&token), "{whole}: {:?}", parts(&whole));
            }
        }
        for token in ["((Abc1x9))", "<Ab1x9Q>"] {
            let whole = format!("sid={token}; c=d");
            assert!(parts(&whole).contains(&token), "{whole}: {:?}", parts(&whole));
        }
    }

    /// A quote within it ends nothing.
    #[test]
    fn strings_of_json_are_known_as_wholes() {
        for (secret, string) in [
            (r#"{"password":"D4r,rG\"wqBeu","user":"ann"}"#, r#"D4r,rG\"wqBeu"#),
            (r#""D4r,rG\"wqBeu","user":"ann"}"#, r#"D4r,rG\"wqBeu"#),
            (r#"{"user":"ann","a":[{"key":"Hunt2\\er\"Long3"}]}"#, r#"Hunt2\\er\"Long3"#),
        ] {
            assert!(parts(secret).contains(&string), "{secret}: {:?}", parts(secret));
        }
        assert_eq!(strings(r#"{"a\\":"b""#), [r"a\\", "b"]);
    }

    /// Whatever a secret is made of.
    #[test]
    fn what_is_known_of_a_long_secret_is_bounded() {
        for word in ["a=", "a:", "k1=v2;", "k1=v2, ", "Ab ", "=", "\"a\":", "a1b2c3d4e5&", "{", "x|y=z w:"] {
            let secret = word.repeat((1 << 15) / word.len());
            let known = parts(&secret).iter().map(|part| part.len()).sum::<usize>();
            assert!(known <= 20 * secret.len() + 4096, "{word}: {known}");
        }
    }
}
