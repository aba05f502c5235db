//! What of a value is plainly harmless, wherever it was written by mistake.
//!
//! Which words are secret nobody can list, so nothing here looks for them alone: a value is shown up to the first sign behind which a
//! secret could stand. Names of files, words, numbers, hosts with ports and relent's own settings have none.

use super::{
    HIDDEN,
    names::{is_password, is_secret, is_token},
};
use std::{
    borrow::Cow,
    net::{Ipv4Addr, Ipv6Addr},
};

/// The settings whose values are words or numbers, and no secrets: relent's own, and those of stores that say where one is.
const SETTINGS: [&str; 74] = [
    "additive",
    "after",
    "aimd",
    "at_most",
    "attempt_timeout",
    "aws_adaptive",
    "aws_quota",
    "base",
    "breaker",
    "budget",
    "burst",
    "calls",
    "cap",
    "capacity",
    "close_after",
    "compat",
    "concurrency",
    "connect_timeout",
    "consecutive",
    "cost",
    "curve",
    "database",
    "dbname",
    "delays",
    "factor",
    "failures",
    "finagle",
    "floor",
    "gradient",
    "grpc",
    "horizon",
    "host",
    "in_flight",
    "jitter",
    "longest",
    "max",
    "max_attempts",
    "max_elapsed",
    "max_pushback",
    "max_retry_share",
    "min",
    "min_calls",
    "min_per_second",
    "min_samples",
    "name",
    "open_at_most",
    "open_for",
    "owner",
    "per",
    "policy",
    "port",
    "prefix",
    "probe_again_after",
    "probes",
    "proportional",
    "pushback",
    "quantile",
    "queue",
    "ramp",
    "rate",
    "ratio",
    "reopen_share",
    "repeat",
    "share",
    "sleeping",
    "slow_after",
    "spread",
    "sslmode",
    "step",
    "throttle",
    "timeout",
    "token_ratio",
    "ttl",
    "window",
];

/// A character of a word, or of the name of a file.
pub(super) fn is_of_a_word(c: char) -> bool {
    // What stands for what is no text is as good as a letter.
    c.is_alphanumeric() || "_./~+-\u{fffd}".contains(c)
}

/// A character that goes on a name: what stands beside one is no word of its own.
pub(super) fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || "_-".contains(c)
}

/// Whether a value is the name of a file, a word, a number or a list of them, which may be called what they like.
pub(super) fn is_word(text: &str) -> bool {
    text.chars().all(|c| is_of_a_word(c) || c == ',')
}

/// How many bytes a value can be shown of.
pub(super) fn shown(text: &str) -> usize {
    // A bound of ours.
    if text.strip_prefix("<=").or(text.strip_prefix(">=")).is_some_and(|most| is_short_amount(most.trim_start())) {
        return text.len();
    }
    let (mut at, mut word, mut has_colon) = (0, 0, false);
    // Of all that stands before, asked once.
    let place = text.find(PLACE).unwrap_or(text.len());
    while let Some(c) = text[at..].chars().next() {
        let behind = &text[at + c.len_utf8()..];
        match c {
            ':' if !behind.is_empty() && !is_number(behind) => return at + 1,
            '=' if !behind.is_empty() && !is_setting(&text[word..at], behind, false) => return at + 1,
            '%' if behind.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2 => return at,
            '#' if has_colon => return at,
            '#' if !is_a_name(&text[..at], place < at, behind) => return at + 1,
            '?' if begins_a_query(place < at, behind) => return at + 1 + harmless(behind),
            '[' => at += address(behind),
            // Nothing but a port follows an address.
            ']' if behind.starts_with(is_of_a_word) => return at + 1,
            ' ' if is_flag_of_a_secret(&text[word..at]) => return at + 1,
            '-' if is_begin(text, at) && has_a_value(behind, text) => return at + 2,
            c if is_of_a_word(c) || ":=%#],*!^()?&@ ".contains(c) => {}
            _ => return at,
        }
        has_colon |= c == ':';
        at += c.len_utf8();
        if !is_of_a_word(c) && c != '%' {
            word = at;
        }
    }
    at
}

/// Whether what stands there may be a query of what was to be a URL, of which not all is harmless: none of a sentence.
fn begins_a_query(has_place: bool, behind: &str) -> bool {
    let is_of_a_sentence = behind.starts_with(' ') && !has_place;
    !behind.is_empty() && !is_of_a_sentence && harmless(behind) < behind.len()
}

/// Whether what stands where a name would is a value, which ends as what is in base64 does.
pub(super) fn is_a_value_alone(name: &str, value: &str) -> bool {
    let is_odd = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase();
    matches!(value, "" | "=") && (name.len() > 32 || name.contains(is_odd))
}

/// Where a host with a port, or a path, may stand.
const PLACE: [char; 3] = ['/', ':', '\\'];

/// How much of a query is shown: parameters that are plainly harmless, and the name of the next one.
fn harmless(query: &str) -> usize {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) && !is_token(name);
    let (pairs, fragment) = query.split_at(query.find('#').unwrap_or(query.len()));
    let mut at = 0;
    for pair in pairs.split('&') {
        match pair.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, value)) if is_a_value_alone(name, value) => return at,
            Some((name, value)) if is_harmless(name, value) => at += pair.len() + 1,
            Some((name, _)) => return at + name.len() + 1,
            None => return at,
        }
    }
    pairs.len() + fragment.len().min(1)
}

/// Whether what stands there may be the name of a policy behind its file, and nothing more: a word of small letters, or a short number. In a
/// sentence, and behind a file that is called like one of policies, a word may have a digit or two.
fn is_a_name(before: &str, has_place: bool, text: &str) -> bool {
    let is_of_a_sentence = before.ends_with(' ') && !has_place;
    let most = if before.ends_with(".toml") || is_of_a_sentence { 2 } else { 0 };
    // What is hidden behind a colon is not for this to say.
    let name = text.split(':').next().unwrap_or_default();
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_small =
        || name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte));
    is_short_amount(name) || (!name.is_empty() && digits <= most && is_small())
}

/// Whether a word of a command line begins there.
fn is_begin(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_none_or(char::is_whitespace)
}

/// Whether a value that may be a secret follows a word of a command line: one letter (`-p`), or a few of which the last is that of a password
/// (`-ap`, `-rP`).
fn is_flag_of_a_secret(word: &str) -> bool {
    let is_of_a_password = |flag: &str| {
        let is_bundle = || flag.len() <= 4 && flag.bytes().all(|byte| byte.is_ascii_alphabetic());
        flag.ends_with(['p', 'P']) && (flag.len() == 2 || is_bundle())
    };
    word.strip_prefix('-').is_some_and(|flag| flag.len() == 1 || is_of_a_password(flag))
}

/// Whether a value touches the letter of a flag, as in `-uroot`, in what is a command line: several flags are a few small letters.
fn has_a_value(flag: &str, line: &str) -> bool {
    let word = flag.split(char::is_whitespace).next().unwrap_or_default();
    let Some(value) = word.strip_prefix(|c: char| c.is_ascii_alphabetic()) else { return false };
    let is_short = value.len() <= 1 || (value.len() <= 3 && value.bytes().all(|byte| byte.is_ascii_lowercase()));
    !is_short && line.contains(char::is_whitespace)
}

/// A text that is hidden from a place on.
pub(super) fn up_to(text: &str, end: usize) -> String {
    if end < text.len() { format!("{}{HIDDEN}", &text[..end]) } else { text.to_owned() }
}

/// The same of a name that somebody chose, which may have signs in it (`backup:shop`), but is no setting.
pub(super) fn shown_of_a_name(text: &str) -> usize {
    let is_secret = |sign: usize| match text.as_bytes()[sign] {
        b'=' => {
            let word = text[..sign]
                .rfind(|c| !is_of_a_word(c))
                .map_or(0, |end| end + text[end..].chars().next().map_or(0, char::len_utf8));
            sign + 1 < text.len() && !is_setting(&text[word..sign], &text[sign + 1..], true)
        }
        _ => text[sign + 1..].bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2,
    };
    text.match_indices(['=', '%'])
        .map(|(sign, _)| sign)
        .find(|sign| is_secret(*sign))
        .map_or(text.len(), |sign| sign + 1)
}

/// Where a value goes on behind the name of a secret, and the sign that follows it, if it does. If it `has_to_be` one, `key=FILE` is none.
pub(super) fn secret(text: &str, has_to_be: bool) -> Option<usize> {
    secret_of(text, has_to_be, false)
}

/// The same of what may be a name that somebody chose, where a word behind another is no secret: `basic backoff`, `hot key, uncached`.
pub(super) fn secret_of(text: &str, has_to_be: bool, is_name: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find(is_of_a_word).map(|start| at + start) {
        let end = text[start..].find(|c| !is_of_a_word(c)).map_or(text.len(), |end| start + end);
        let (name, behind) = (&text[start..end], &text[end..]);
        if is_token(name) {
            return Some(start);
        }
        let bare = behind.trim_start_matches(['"', '\'', '\\', ' ', '\t']);
        // Between brackets, as XML has it.
        let is_open = text[..start].ends_with('<');
        let sign = bare.chars().next().filter(|c| "=:".contains(*c) || (is_open && *c == '>'));
        let after = sign.map_or(bare, |sign| &bare[sign.len_utf8()..]);
        // A host of such a name loses its port, but not where all of a value is hidden that is told elsewhere.
        let is_host = has_to_be && behind.starts_with(':') && is_number(after);
        let is_word_of_a_name = is_name && sign.is_none() && is_common(name) && begins_with_a_word(bare);
        // What limits calls is called so.
        let is_bucket = name.eq_ignore_ascii_case("token") && sign.is_none() && bare.starts_with("bucket");
        let is_scheme = ["basic", "bearer", "negotiate", "ssws"].contains(&name.to_ascii_lowercase().as_str());
        let is_one = match sign {
            Some('=') if has_to_be => is_password(name),
            None if has_to_be => is_scheme && behind.starts_with([' ', '\t']),
            _ => is_secret(name) || is_password(name) || is_scheme,
        };
        if is_one
            && !is_bucket
            && !is_word_of_a_name
            && !after.is_empty()
            && !behind.is_empty()
            && !is_host
            && !SETTINGS.contains(&name)
        {
            let length = behind.chars().next().map_or(0, char::len_utf8);
            return Some(if sign.is_some() { text.len() - after.len() } else { end + length });
        }
        at = end;
    }
    None
}

/// Whether the name of a secret is a word of everyday, too.
fn is_common(name: &str) -> bool {
    !is_password(name) && !["bearer", "negotiate", "ssws"].contains(&name.to_ascii_lowercase().as_str())
}

/// Whether what stands there is a word of small letters alone or a short number, or begins with a sign between words.
fn begins_with_a_word(text: &str) -> bool {
    // No more is looked at than one word may be: its end may be far away, and this is asked of each word.
    let ends = |text: &str| text.chars().next().is_none_or(|c| c.is_whitespace() || ",;()".contains(c));
    let signs = text.bytes().take(4).take_while(|byte| b"#v".contains(byte)).count();
    let number = &text[signs..];
    let digits = number.bytes().take(4).take_while(u8::is_ascii_digit).count();
    ends(text.trim_start_matches(|c: char| c.is_ascii_lowercase())) || (digits <= 3 && ends(&number[digits..]))
}

/// Whether a port stands there, up to what ends one, or an address.
fn is_number(text: &str) -> bool {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let address = &text[..text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len())];
    if address.parse::<Ipv4Addr>().is_ok() && !text[address.len()..].starts_with(is_of_a_word) {
        return true;
    }
    (1..=5).contains(&(text.len() - behind.len())) && behind.chars().next().is_none_or(|c| "/:?#,]".contains(c))
}

/// Whether what stands in a query under this name, or in a file, is plainly harmless: a short amount, or a setting of a store's.
pub(super) fn is_harmless(name: &str, value: &str) -> bool {
    const OF_STORES: [&str; 9] =
        ["connections", "durability", "links", "make", "others", "owner", "prefix", "prepared", "sslmode"];
    let is_setting = OF_STORES.contains(&name) && is_word(value) && !is_token(value);
    (is_setting || is_short_amount(value)) && !is_secret(name) && !is_password(name)
}

/// Whether it is a number of at most four digits, perhaps with a unit: too short for a secret.
pub(super) fn is_short_amount(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    (1..=4).contains(&digits) && text.len() <= 8 && ["", "%", "us", "ms", "s", "m", "h", "d", "k", "M"].contains(&unit)
}

/// Whether what stands before a sign is a setting of relent's, or what stands behind it an amount and nothing else, in a name that somebody
/// chose also a share, and more words.
fn is_setting(name: &str, value: &str, is_of_a_name: bool) -> bool {
    let is_share = name.ends_with('%') && name.starts_with(|c: char| c.is_ascii_digit());
    let (amount, behind) = value.split_at(value.find(|c| !is_of_a_word(c)).unwrap_or(value.len()));
    let signs = if is_of_a_name { ".+-/" } else { ".+-" };
    let unit = amount.trim_start_matches(|c: char| c.is_ascii_digit() || signs.contains(c));
    let ends = behind.is_empty() || is_of_a_name && behind.starts_with([',', ' ', ')']);
    let is_amount = amount.contains(|c: char| c.is_ascii_digit())
        && unit.len() <= 3
        && unit.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_no_secret = || !is_secret(name) && !is_password(name);
    is_share || is_setting_of_ours(name) || (is_amount && ends && is_no_secret())
}

/// Whether a name is that of a setting whose values are no secrets, as a key or a flag has it.
pub(super) fn is_setting_of_ours(name: &str) -> bool {
    SETTINGS.contains(&name.trim_start_matches("--").replace('-', "_").as_str())
}

/// How long the address is that stands before a bracket.
fn address(text: &str) -> usize {
    // The longest there is, with the name of an interface.
    const LONGEST: usize = 64;
    let end = text.char_indices().take(LONGEST).find_map(|(at, c)| (c == ']').then_some(at));
    let address = |end| text[..end].split('%').next().unwrap_or_default();
    end.filter(|end| address(*end).parse::<Ipv6Addr>().is_ok()).unwrap_or(0)
}

/// A text with the signs and letters that an input method writes wide as everybody else writes them, one for one.
pub(super) fn narrow(text: &str) -> Cow<'_, str> {
    match text.is_ascii() || text.chars().all(|c| narrowed(c) == c) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.chars().map(narrowed).collect()),
    }
}

/// The same for one of them.
pub(crate) fn narrowed(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        '\u{fe55}' | '\u{2236}' | '\u{a789}' => ':',
        '\u{fe6b}' => '@',
        '\u{fe66}' => '=',
        '\u{fe54}' => ';',
        '\u{fe56}' => '?',
        '\u{fe5f}' => '#',
        '\u{fe60}' => '&',
        '\u{2044}' | '\u{2215}' => '/',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_up_to_the_first_sign_behind_which_a_secret_could_stand() {
        for same in [
            "relent.toml#read",
            "/etc/my keys (2)/x.pem",
            "db:5432",
            "[::1]:5432,[fe80::1%eth0]:1",
            "ratio=0.1,min_per_second=1",
            "20%=new",
            "120s+5s=30",
            "x=5ms",
            "--curve=linear",
            "1s,2s",
            "!0",
            "h:443:127.0.0.1",
            "host/p?prefix=a&ttl=5",
            "why? a=1",
            "<= 60",
            "cb#5",
            "name:",
            "--retry many",
            "tar -xzf a.tar b",
            "make -j4 all",
            "rm -rf a-b --dry-run",
            "tool -rpf a --loop b --cap 5",
            "-pword",
        ] {
            assert_eq!(shown(same), same.len(), "{same}");
        }
        for (given, length) in [
            ("kennwort:x", 9),
            ("kennwort=x", 9),
            ("ann|x", 3),
            ("{x}", 0),
            ("<= hunter2", 0),
            ("a\"x\"", 1),
            ("x%3Dy", 1),
            ("h:1#x", 3),
            ("pin=1234", 4),
            ("a\\x", 1),
            ("h:1x", 2),
            ("[x:y]", 3),
            ("kennwort=12,x", 9),
            ("h:1_x", 2),
            ("h:1 x", 2),
            ("--kennwort=x", 11),
            ("-p x", 3),
            ("swaks -au ann -ap x", 18),
            ("zip -rP x y.zip z", 8),
            ("tool -vap x", 10),
            ("mysql -uroot -pHunter2 shop", 8),
            ("mysql -pHunter2 shop", 8),
            ("-pHunter2 shop", 2),
            ("a\t-pword1 b", 1),
            ("[::1]x", 5),
            ("host/p?timeout=5&Hunter2x9", 17),
            ("host/p?name=Hunter2x9", 12),
            ("host/p?ttl=5&name=x&Hunter2x9", 18),
            ("host/p?ttl=5#name=x", 13),
            ("cb?hunter2Kx7Long#page=2", 3),
            ("db/cb?hunter2Kx7Long;v=1", 6),
            ("db/cb?Zq7Lm3Vb9Kx+/w==1", 6),
            ("db/cb?ttl=5&hunter2Kx7Long#t=5", 12),
            ("host/p#name=Hunter2x9", 7),
            ("a.toml#name=Hunter2x9", 7),
            ("h:1/x? Hunter2x", 6),
            ("db/cb#!/hunter2Kx7", 6),
            ("a storm #Two", 9),
            ("cb#read, cb#5, x", 3),
            ("h/a.toml#Hunter2x9", 9),
            ("ho st#read Hunter2x9", 6),
            ("db/x#a,hunter2Kx9", 5),
            ("pro xy/#a hunter2Kx9=", 8),
            ("proxy!/#12,hunter2Kx9", 8),
            ("ex ample/f?hunter2Kx7=", 11),
            ("h/cb?page=2&aHVudGVyMktYNw==", 12),
            ("h/cb?page=", 10),
            ("db/cb#small&hunter2Kx7", 6),
            ("db/cb#5&hunter2Kx7", 6),
            ("db/cb#,hunter2Kx7", 6),
            ("ex ample/f# hunter2Kx7", 11),
            ("host/x #Hunter2x", 8),
        ] {
            assert_eq!(shown(given), length, "{given}");
        }
    }

    #[test]
    fn a_secret_stands_behind_its_name() {
        for (text, place) in [
            ("<a><password>x</password>", Some(13)),
            ("a=b password=x", Some(13)),
            ("a <b>password>x", None),
            ("password>file", None),
        ] {
            assert_eq!(secret(text, true), place, "{text}");
        }
    }

    #[test]
    fn a_word_is_one_up_to_its_end() {
        for (text, is_one) in [
            ("", true),
            ("backoff", true),
            ("rotation, and 5", true),
            ("(strict)", true),
            ("1", true),
            ("#12)", true),
            ("v123 x", true),
            ("vv#", true),
            ("v1234", false),
            ("a1", false),
            ("v1a", false),
            ("back%6fff", false),
            ("hunter2 x", false),
            ("Word", false),
            ("\u{e4}", false),
        ] {
            assert_eq!(begins_with_a_word(text), is_one, "{text}");
        }
    }

    /// A server may send hundreds of kilobytes of one header.
    #[test]
    fn long_values_are_looked_at_once() {
        for word in ["? ", "a? ", " #a", "#a ", "[", "a=5ms ", "-a ", "? #5 ", "1=5s, ", "%"] {
            let text = word.repeat((1 << 18) / word.len());
            assert!(shown(&text) <= text.len());
        }
    }

    /// Who writes a policy file chooses what policies are called.
    #[test]
    fn long_names_are_looked_at_once() {
        for word in ["\u{3164}%41", "a%", "token_ratio%", "a:", "key ", "v#", "key=", "\"a\"", "<a>", "key a%41"] {
            let text = word.repeat((1 << 18) / word.len());
            assert!(secret_of(&text, true, true).is_none_or(|at| at < text.len()));
            assert!(secret_of(&text, false, true).is_none_or(|at| at < text.len()));
            assert!(shown_of_a_name(&text) <= text.len());
        }
    }

    #[test]
    fn wide_signs_are_read_as_others() {
        assert_eq!(narrow("ａｎｎ：ｐｗ＠ｈ／？＃＝＆"), "ann:pw@h/?#=&");
        assert!(matches!(narrow("http://h/ü"), Cow::Borrowed(_)));
    }
}
