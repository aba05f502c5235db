//! Secrets that a text says again.

use super::{
    HIDDEN,
    cut::Search,
    letters::{letters, signs},
    plain::is_short_amount,
    undone::undone,
    words::are_ours,
};
use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    ops::Range,
    sync::OnceLock,
};

/// From which length on a secret, or a piece of one, is looked for anywhere. A shorter one is a part of many words: what is missing of them
/// would tell it.
pub(super) const LONG_PIECE: usize = 8;

/// Texts by their first bytes.
#[derive(Debug, Default)]
struct Begins {
    all: HashMap<[u8; LONG_PIECE], BTreeSet<String>>,
    /// The very first of them, since hardly any place of a text begins with one.
    first: BTreeSet<u8>,
}

impl Begins {
    fn put(&mut self, text: String) {
        self.first.extend(text.bytes().next());
        self.all.entry(row(text.as_bytes())).or_default().insert(text);
    }

    /// Those that begin as so many bytes do.
    fn get(&self, begin: &[u8]) -> Option<&BTreeSet<String>> {
        self.first.contains(&begin[0]).then(|| self.all.get(begin)).flatten()
    }
}

/// Secrets as they are looked for. It is made when they are known, so that a text costs its own length alone, however many they are.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Those that are long enough.
    begins: Begins,
    /// The letters and digits of those that have enough of them: who says one again writes the rest in many ways.
    letters: Begins,
    /// All with their signs, as they are read: fewer letters would stand in many words, and a word ends at a sign.
    signs: Begins,
    /// The long ones from their end on.
    ends: Begins,
    /// The same as they are read.
    sign_ends: Begins,
    /// Those that hold all of them.
    wholes: Vec<String>,
    /// What stands in these anywhere, so many bytes in a row, in order.
    rows: OnceLock<Vec<[u8; LONG_PIECE]>>,
    /// What is too short to be looked for anywhere, and is hidden where a message quotes nothing else.
    short: OnceLock<HashSet<[u8; LONG_PIECE]>>,
}

impl Table {
    /// Adds secrets, which are [`undone`], and those of which they are parts.
    pub(super) fn add(&mut self, secrets: impl IntoIterator<Item = String>, wholes: impl IntoIterator<Item = String>) {
        let is_looked_for = |secret: &String| secret.trim().len() >= LONG_PIECE && !are_ours(secret);
        for secret in secrets.into_iter().filter(is_looked_for) {
            for (letters, _) in letters(&secret).into_iter().filter(|(letters, _)| is_looked_for(letters)) {
                self.letters.put(letters);
            }
            for (signs, _) in signs(&secret).into_iter().filter(|(text, _)| is_looked_for(text)) {
                self.sign_ends.put(reversed(&signs));
                self.signs.put(signs);
            }
            self.ends.put(reversed(&secret));
            self.begins.put(secret);
        }
        self.wholes.extend(wholes);
        self.rows = OnceLock::new();
        self.short = OnceLock::new();
    }

    /// Whether a text is a part of a secret: all that stands in a row in it stands so in one.
    pub(super) fn has(&self, text: &str) -> bool {
        let rows = self.rows.get_or_init(|| {
            let all = self.wholes.iter().map(String::as_bytes);
            let mut rows: Vec<_> = all.flat_map(|whole| (0..whole.len()).map(|at| row(&whole[at..]))).collect();
            rows.sort_unstable();
            rows.dedup();
            rows
        });
        let is_there = |part: &[u8]| {
            let at = rows.partition_point(|row| row[..] < *part);
            rows.get(at).is_some_and(|row| row.starts_with(part))
        };
        match text.len() <= LONG_PIECE {
            true => is_there(text.as_bytes()),
            false => text.as_bytes().windows(LONG_PIECE).all(is_there),
        }
    }

    /// Whether a text says so much of a secret that nothing is left of it where a message quotes it: one that is short, what stands between
    /// signs in one, or a long piece. Words of ours are none.
    pub(super) fn says(&self, text: &str) -> bool {
        if text.len() >= LONG_PIECE {
            return !are_ours(text) && self.has(text);
        }
        let short = self.short.get_or_init(|| {
            let wholes = self.wholes.iter().map(String::as_str).filter(|whole| whole.len() < LONG_PIECE);
            let parts = self.wholes.iter().flat_map(|whole| short_parts(whole));
            wholes.chain(parts).map(|text| row(text.as_bytes())).collect()
        });
        text.is_empty() || short.contains(&row(text.as_bytes()))
    }
}

/// The parts of a secret that are no words of ours and no amounts, from where letters, digits or signs begin or end up to where they do. Any
/// other short piece stands in a long secret by chance.
fn short_parts(secret: &str) -> impl Iterator<Item = &str> {
    const LEAST: usize = 4;
    let kind = |c: char| (c.is_alphabetic(), c.is_numeric());
    let is_end = |c: char, next: char| kind(c) != kind(next) || !c.is_alphanumeric();
    let pairs = secret.char_indices().zip(secret.chars().skip(1));
    let mut ends = vec![0];
    ends.extend(pairs.filter(|((_, c), next)| is_end(*c, *next)).map(|((at, c), _)| at + c.len_utf8()));
    ends.push(secret.len());
    let pairs = ends.clone().into_iter().enumerate().flat_map(move |(nth, begin)| {
        let ends: Vec<usize> = ends[nth..].iter().copied().take_while(|end| end - begin < LONG_PIECE).collect();
        ends.into_iter().filter(move |end| end - begin >= LEAST).map(move |end| begin..end)
    });
    pairs.map(|place| &secret[place]).filter(|part| !are_ours(part) && !is_short_amount(part))
}

/// The first bytes of a text, filled up where it has fewer.
fn row(text: &[u8]) -> [u8; LONG_PIECE] {
    let mut row = [0; LONG_PIECE];
    row.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
    row
}

/// A text without the secrets of these tables, but for what is a part of one of these, which are told all the same.
pub(super) fn without<'a>(text: &'a str, tables: &[&Table], told: &[String]) -> Cow<'a, str> {
    if tables.iter().all(|table| table.begins.all.is_empty()) {
        return Cow::Borrowed(text);
    }
    let (undone, places) = undone(text);
    let mut ranges = Vec::new();
    let begins = |of: fn(&Table) -> &Begins| tables.iter().map(|table| of(table)).collect::<Vec<_>>();
    let readings = signs(&undone);
    // Mostly the first of them is the text itself.
    if readings.first().is_none_or(|(text, _)| *text != undone) {
        let (all, ends) = (begins(|table| &table.begins), begins(|table| &table.ends));
        for place in of_a_reading(&undone, &all, &ends) {
            ranges.push(places[place.start]..places[place.end]);
        }
    }
    let (all, ends) = (begins(|table| &table.signs), begins(|table| &table.sign_ends));
    for (text, stand) in readings {
        for place in of_a_reading(&text, &all, &ends) {
            ranges.push(places[stand[place.start].start]..places[stand[place.end - 1].end]);
        }
    }
    let all = begins(|table| &table.letters);
    for (text, stand) in letters(&undone).into_iter().filter(|_| all.iter().any(|begins| !begins.all.is_empty())) {
        let much = |secret: &mut Search, at| secret.said(at, |same| undone.get(stand[at + same - 1].end..));
        for (at, (length, sign)) in most(&text, &all, much) {
            ranges.push(places[stand[at].start]..places[stand[at + length - 1].end + sign]);
        }
    }
    ranges.sort_unstable_by_key(|range| (range.start, Reverse(range.end)));
    // One that is within another says nothing more.
    let mut end = 0;
    ranges.retain(|range| {
        let is_farther = range.end > end;
        end = end.max(range.end);
        is_farther
    });
    ranges.retain(|place| !is_of_one(told, &text[place.clone()]));
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for Range { start, end } in ranges {
        // One may begin within another.
        if start >= at {
            out.extend([&text[at..start], HIDDEN]);
        }
        at = at.max(end);
    }
    Cow::Owned(out + &text[at..])
}

/// Where a text says one of these again, or a piece of one that was cut off.
fn of_a_reading(text: &str, all: &[&Begins], ends: &[&Begins]) -> Vec<Range<usize>> {
    let much = |secret: &mut Search, at| {
        secret.said(at, |same| text.get(at + same..)).or_else(|| Some((secret.piece(at)?, 0)))
    };
    let found = most(text, all, much).into_iter();
    let mut ranges: Vec<_> = found.map(|(at, (length, sign))| at..at + length + sign).collect();
    let piece = |secret: &mut Search, at| Some((secret.piece(at)?, 0));
    let found = most(&reversed(text), ends, piece).into_iter();
    ranges.extend(found.map(|(at, (length, _))| text.len() - at - length..text.len() - at));
    ranges
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

/// How much is found, at most, of a secret at each place of a text where it begins as one does. The longest are asked first, and those that
/// have no more than was found are not.
fn most<'a>(
    text: &'a str,
    begins: &[&'a Begins],
    found: impl Fn(&mut Search<'a>, usize) -> Option<(usize, usize)>,
) -> Vec<(usize, (usize, usize))> {
    let mut all: HashMap<&[u8], Vec<Search>> = HashMap::new();
    let found = |(at, begin)| {
        let mut secrets = begins.iter().filter_map(|begins| begins.get(begin)).flatten().peekable();
        secrets.peek()?;
        let all = all.entry(begin).or_insert_with(|| {
            let mut all: Vec<&String> = secrets.collect();
            all.sort_by_key(|secret| Reverse(secret.len()));
            all.into_iter().map(|secret| Search::new(secret, text)).collect()
        });
        let mut most = None;
        for secret in all {
            if most.is_some_and(|(length, _)| length >= secret.len()) {
                break;
            }
            most = most.max(found(secret, at));
        }
        Some((at, most?))
    };
    text.as_bytes().windows(LONG_PIECE).enumerate().filter_map(found).collect()
}

/// Whether a text is a part of one of these, which are in small letters.
pub(super) fn is_of_one(all: &[String], text: &str) -> bool {
    // There are no less small letters than there are others, and each has four bytes at most.
    let mut all = all.iter().filter(|one| text.len() <= 4 * one.len()).peekable();
    let small = all.peek().map(|_| text.to_lowercase());
    small.is_some_and(|small| all.any(|one| one.contains(&small)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, secrets: &[&str]) -> String {
        without(text, &[&table(secrets)], &[]).into_owned()
    }

    fn table(secrets: &[&str]) -> Table {
        let secrets: Vec<String> = secrets.iter().map(|secret| undone(secret).0).collect();
        let mut table = Table::default();
        table.add(secrets.clone(), secrets);
        table
    }

    #[test]
    fn a_secret_is_hidden_however_it_stands_there() {
        let secret = "hunter2/ä+x";
        for said in [
            "hunter2%2F%C3%A4%2Bx",
            "hunter2%2fä+x",
            "%68unter2%252F%25c3%25A4+%78",
            "Hunter2/Ä+X",
            "ｈunt\te\nr2／ä＋%58",
            secret,
        ] {
            assert_eq!(told(&format!("/x/ä%2F{said}%2F%ff"), &[secret]), "/x/ä%2F***%2F%ff", "{said}");
        }
        assert_eq!(told("STRASSE9WEG7 Stra%C3%9Fe9Weg7", &["Straße9Weg7"]), "*** ***");
        // One may have such signs itself, or be a part of another.
        assert_eq!(told("a%41b%42c%43d%44 a%2541", &["a%41b%42c%43d%44"]), "*** a%2541");
        assert_eq!(told("hunter2known, hunter2known2", &["hunter2known", "hunter2known2", "ter2known2"]), "***, ***");
        assert_eq!(told("a shorter short", &["short", " shorter"]), "a shorter short");
    }

    /// It would be told by what is missing.
    #[test]
    fn words_of_messages_are_left() {
        for (text, secret) in [
            ("gave up (503 Service Unavailable)", "unavailable"),
            ("(403 Forbidden)", "Forbidden"),
            ("(500 Internal Server Error)", "internal"),
            ("--max-size takes more, or unlimited", "unlimited"),
            ("permanent failure (404 Not Found)", "NotFound"),
            ("gave up: out of attempts (502 Bad Gateway)", "out_of_attempts"),
            ("cannot connect: Connection refused", "connection-refused"),
        ] {
            assert_eq!(told(text, &[secret]), text);
        }
    }

    /// As forms, JSON, pages and who takes one alphabet for another write it.
    #[test]
    fn a_secret_is_hidden_whatever_becomes_of_its_signs() {
        let secret = "Wör\\ter/9 \"&é1+<x>2";
        for said in [
            r#"W\u00f6r\\ter\/9 \"&\u00e91+\u003cx\u003e2"#,
            "W&#246;r\\ter/9+&quot;&amp;&eacute;1+&lt;x&#x3e;2",
            "W\u{fffd}r\\ter/9 \"&\u{fffd}1+<x>2",
            "WÃ¶r\\ter/9 \"&Ã©1+<x>2",
            r"W\xf6r\\ter/9 \x22&\303\2511+<x>2",
            "w%F6r-ter_9.1x2",
        ] {
            assert_eq!(told(&format!("a=\"{said}\", b"), &[secret]).replace(['<', '>'], ""), "a=\"***\", b", "{said}");
        }
        assert_eq!(told("Horse9+Stable7+H...", &["Horse9 Stable7 Hay5"]), "***...");
        for said in [
            r"\u041f\u0430\u0440\u043e\u043b\u044c2024\u0421",
            "&#1055;&#1072;&#1088;&#1086;&#1083;&#1100;2024&#x421;",
            r"\u{41f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}2024\u{421}",
            "%D0%9Fароль2024С",
        ] {
            assert_eq!(
                told(&format!("key {said} is, or {said}..."), &["Пароль2024С"]),
                "key *** is, or ***...",
                "{said}"
            );
        }
        // One that looks as if something were written out in it.
        for secret in [r"pw\123\x4142", "pw&amper;sand"] {
            let doubled = secret.replace('\\', r"\\").replace('&', "&amp;");
            assert_eq!(told(&format!("{doubled} {secret}!"), &[secret]), "*** ***!");
        }
        // Of few letters: they would stand in many words.
        assert_eq!(told("p-w-1-2-3-4-x pw1234x", &["p.w.1.2.3.4.x"]), "p-w-1-2-3-4-x pw1234x");
    }

    /// Its letters alone would stand in many words, so its signs are read as well.
    #[test]
    fn a_secret_of_few_letters_is_hidden_whatever_its_signs_are_written_as() {
        let secret = r#"K7&m!<2$/"p9%"#;
        for said in [
            secret,
            "K7&amp;m!&lt;2$/&quot;p9%",
            "K7&amp;m!&lt;2$/&#34;p9%",
            "K7&amp;amp;m!&amp;lt;2$/&amp;#x22;p9%",
            "K7&AMP;m&excl;&LT;2&dollar;&sol;&QUOT;p9&percnt;",
            r#"K7\u0026m!\u003c2$/\"p9%"#,
            r#"K7&m!<2$\/\"p9%"#,
            r#"K7&m!<2$\\\/\\\"p9%"#,
            "K7%26m%21%3C2%24%2F%22p9%25",
        ] {
            assert_eq!(told(&format!("key {said} given"), &[secret]), "key *** given", "{said}");
        }
        assert_eq!(told("key K7&amp;m!&lt;2$/... given", &[secret]), "key ***... given");
        assert_eq!(told("a+b!c+d$e, a%20b!c+d%24e", &["a b!c d$e"]), "***, ***");
        assert_eq!(told(r"a\\b!c\\d$e7", &[r"a\b!c\d$e7"]), "***");
        assert_eq!(told("kmp k7m2p9 k7 m 2 p9", &[secret]), "kmp k7m2p9 k7 m 2 p9");
    }

    /// Whoever cut it did not know that it is one.
    #[test]
    fn the_beginning_of_a_secret_is_hidden_where_it_was_cut() {
        for (text, shown) in [
            ("hunter2long...", "***..."),
            ("hunter2%2Flon%4...", "***..."),
            ("\"hunter2/l\"...", "\"***\"..."),
            ("hunter2/longer\u{2026}", "***\u{2026}"),
            ("hunter2long[...]", "***[...]"),
            ("hunter2long [\u{2026}]", "*** [\u{2026}]"),
            ("hunter2long (truncated)", "*** (truncated)"),
            ("hunter2long<truncated>", "***<truncated>"),
            ("hunter2long&hellip;", "***&hellip;"),
            (r"hunter2long\u2026", r"***\u2026"),
            ("hunter2long****", "*******"),
            ("hunter2long#\"[...]", "***#\"[...]"),
            ("hunter2...", "hunter2..."),
            ("hunter2/ and ...", "hunter2/ and ..."),
            ("ähunter2/ä...", "ä***..."),
        ] {
            assert_eq!(told(text, &["hunter2/longer/ä", "hunter2long/longer", "hunter2/äö"]), shown);
        }
    }

    /// At either end, without a mark or with one that nobody knows.
    #[test]
    fn a_piece_of_a_long_secret_is_hidden() {
        let secret = "Zq7RtYpLm3Xc9VbK8wQ2";
        for (text, shown) in [
            ("token Zq7RtYpLm3Xc9Vb", "token ***"),
            ("token Zq7RtYpLm3Xc, etc.", "token ***, etc."),
            ("\"Zq7RtYpLm3\"[REDACTED] <Zq7RtYpLm3Xc9>", "\"***\"[REDACTED] <***>"),
            ("Zq7RtYpLm\u{2022}\u{2022} Zq7RtYpLmxxxxxxx Zq7RtYpLm###", "***\u{2022}\u{2022} ***xxxxxxx ***###"),
            ("ending in Xc9VbK8wQ2, *****Xc9VbK8wQ2", "ending in ***, ********"),
            ("\u{e4}-Zq7%52tYpLm\u{2025}Xc9VbK8%77Q2\u{e4}", "\u{e4}-***\u{2025}***\u{e4}"),
            ("Zq7RtYp Zq7RtYpLmO m3Xc9VbK RtYpLm3Xc", "Zq7RtYp Zq7RtYpLmO m3Xc9VbK RtYpLm3Xc"),
        ] {
            assert_eq!(told(text, &[secret]), shown);
        }
        // Words, hosts and days in one are told where they stand elsewhere.
        let secrets = [
            "productionKey7Qz9Lm",
            "app7.internal.example.com/x9",
            "AKIA7/2026-11-25T10:00/eu-west-1/s3",
            "Zq7RtYpLm3Xc",
        ];
        for text in [
            "production, production7",
            "app7.internal.example.org, app7.internal",
            "2026-11-25, eu-west-1/s3, west-1/s3",
            "Zq7RtYpLm",
        ] {
            assert_eq!(told(text, &secrets), text);
        }
    }

    /// Whoever answers chooses what is looked at.
    #[test]
    fn long_texts_are_looked_at_once() {
        for word in ["%", "%25", "%2", "a%41", "%ff", "ä", "hunter2known", "\\u", "&", "&#1", "h-"] {
            let text = word.repeat((1 << 20) / word.len());
            assert!(!told(&text, &["hunter2known"; 4]).is_empty());
        }
    }

    #[test]
    fn a_part_of_a_secret_is_known() {
        let table = table(&["hunter2longer", "pw"]);
        for part in ["h", "r", "2longer", "hunter2l", "hunter2longer", "unter2longe", "pw", "w"] {
            assert!(table.has(part), "{part}");
        }
        for other in ["x", "hunter2x", "2longerx", "hunter2longerx", "xhunter2longer", "pwh", "hunterlonger"] {
            assert!(!table.has(other), "{other}");
        }
        assert!(!Table::default().has("a"));
    }

    /// Any short text stands somewhere in a long secret.
    #[test]
    fn a_short_text_says_a_secret_only_if_it_is_one_or_stands_between_signs_in_it() {
        let token = table(&["QK1sPz2mTfullW0sexponential9", "p1/hay5x/30s.next-hor2se7", "pw", "full7"]);
        for said in ["pw", "full7", "hay5x", "hay5", "p1/hay", "hor2se", "QK1sPz2mTf", "w0sexponen"] {
            assert!(token.says(&said.to_lowercase()), "{said}");
        }
        for word in
            ["p", "1s", "2m", "full", "exponential", "30s", "next", "ayx5", "hor", "ay5x", "p1", "Tful", "q", "0", "w"]
        {
            assert!(!token.says(&word.to_lowercase()), "{word}");
        }
    }
}
