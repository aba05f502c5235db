//! Secrets that a text says again.

use super::{
    HIDDEN,
    cut::Search,
    letters::{letters, signs},
    most::{Budget, most},
    table::{Begins, Table, reversed},
    told::is_told,
    undone::{in_small, once, undone},
    words::within_messages,
};
use std::{borrow::Cow, cmp::Reverse, iter, ops::Range};

/// A text without the secrets of these tables, but for what is a part of one of these, which are told all the same. Those that somebody else chose
/// hide nothing of what relent says.
pub(super) fn without<'a>(text: &'a str, tables: &[&Table], of_others: &Table, told: &[String]) -> Cow<'a, str> {
    without_within(text, tables, of_others, told, &mut Budget::of(text))
}

/// The same as far as something is left to look with.
pub(super) fn without_within<'a>(
    text: &'a str,
    tables: &[&Table],
    of_others: &Table,
    told: &[String],
    budget: &mut Budget,
) -> Cow<'a, str> {
    if iter::once(&of_others).chain(tables).all(|table| table.begins.all.is_empty()) {
        return Cow::Borrowed(text);
    }
    let (undone, places) = undone(text);
    let mut said = |tables: &[&Table]| {
        let mut ranges = said(&undone, &places, tables, budget);
        ranges.extend(said_as_it_is(text, tables, budget));
        ranges
    };
    let mut ranges = said(tables);
    let spaces = within_messages(text);
    let is_ours = |place: &Range<usize>| {
        let first = spaces.partition_point(|space| *space < place.start);
        spaces.get(first).is_some_and(|space| *space < place.end)
    };
    ranges.extend(said(&[of_others]).into_iter().filter(|place| !is_ours(place)));
    ranges.sort_unstable_by_key(|range| (range.start, Reverse(range.end)));
    // One that is within another says nothing more.
    let mut end = 0;
    ranges.retain(|range| {
        let is_farther = range.end > end;
        end = end.max(range.end);
        is_farther
    });
    ranges.iter_mut().for_each(|place| place.start += length_of_a_place(told, &text[place.clone()]));
    ranges.retain(|place| !place.is_empty() && !is_told(told, text, place));
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

/// Where a text, of which each sign has its place, says secrets of these tables again, as far as something is left to look with: behind that,
/// all that may begin or end a secret counts as one.
fn said(undone: &str, places: &[usize], tables: &[&Table], budget: &mut Budget) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    if tables.iter().all(|table| table.begins.all.is_empty()) {
        return ranges;
    }
    let begins = |of: fn(&Table) -> &Begins| tables.iter().map(|table| of(table)).collect::<Vec<_>>();
    let readings = signs(undone);
    // Mostly the first of them is the text itself.
    if readings.first().is_none_or(|(text, _)| *text != undone) {
        let (all, ends) = (begins(|table| &table.begins), begins(|table| &table.ends));
        for place in of_a_reading(undone, &all, &ends, budget) {
            ranges.push(places[place.start]..places[place.end]);
        }
    }
    let (all, ends) = (begins(|table| &table.signs), begins(|table| &table.sign_ends));
    for (text, stand) in readings {
        for place in of_a_reading(&text, &all, &ends, budget) {
            ranges.push(places[stand[place.start].start]..places[stand[place.end - 1].end]);
        }
    }
    let all = begins(|table| &table.letters);
    for (text, stand) in letters(undone).into_iter().filter(|_| all.iter().any(|begins| !begins.all.is_empty())) {
        let much = |secret: &mut Search, at| secret.said(at, |same| undone.get(stand[at + same - 1].end..));
        for (at, (length, sign)) in most(&text, &all, budget, much) {
            ranges.push(places[stand[at].start]..places[stand[at + length - 1].end + sign]);
        }
    }
    ranges
}

/// The same where what is written out in a secret is nothing that stands for something else: undone it may be too short.
fn said_as_it_is(text: &str, tables: &[&Table], budget: &mut Budget) -> Vec<Range<usize>> {
    if !text.contains(['%', '\\']) || !tables.iter().any(|table| table.has_written_out) {
        return Vec::new();
    }
    let begins = |of: fn(&Table) -> &Begins| tables.iter().map(|table| of(table)).collect::<Vec<_>>();
    let (all, ends) = (begins(|table| &table.begins), begins(|table| &table.ends));
    let mut ranges = Vec::new();
    for (small, places) in in_small(text).into_iter().chain(once(text)) {
        let found = of_a_reading(&small, &all, &ends, budget).into_iter();
        ranges.extend(found.map(|place| places[place.start]..places[place.end]));
    }
    ranges
}

/// Where a text says one of these again, or a piece of one that was cut off.
fn of_a_reading(text: &str, all: &[&Begins], ends: &[&Begins], budget: &mut Budget) -> Vec<Range<usize>> {
    let much = |secret: &mut Search, at| {
        secret.said(at, |same| text.get(at + same..)).or_else(|| Some((secret.piece(at)?, 0)))
    };
    let found = most(text, all, budget, much).into_iter();
    let mut ranges: Vec<_> = found.map(|(at, (length, sign))| at..at + length + sign).collect();
    let piece = |secret: &mut Search, at| Some((secret.piece(at)?, 0));
    let found = most(&reversed(text), ends, budget, piece).into_iter();
    ranges.extend(found.map(|(at, (length, _))| text.len() - at - length..text.len() - at));
    ranges
}

/// How long the address is with which a text begins, if it is told: what stands behind it may be secret all the same.
fn length_of_a_place(told: &[String], text: &str) -> usize {
    let begins = |one: &&String| {
        one.contains("://") && text.get(..one.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(one))
    };
    told.iter().filter(begins).map(String::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, secrets: &[&str]) -> String {
        without(text, &[&table(secrets)], &Table::default(), &[]).into_owned()
    }

    fn table(secrets: &[&str]) -> Table {
        let mut table = Table::default();
        table.add(secrets.iter().map(|secret| undone(secret).0), []);
        table
    }

    /// Who answers may know what begins many of them.
    #[test]
    fn many_secrets_that_begin_alike_are_told_apart() {
        let many = |begin: &str, end: &str| (0..4000).map(|nth| format!("{begin}{nth:04}{end}")).collect::<Vec<_>>();
        let table = |all: &[Vec<String>]| {
            let all: Vec<String> = all.concat();
            table(&all.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let told = |text: &str, table: &Table| without(text, &[table], &Table::default(), &[]).into_owned();
        let words =
            table(&[many("hunter2x", " q7Z!k9"), many("https://h/?t=", ""), many("aaaaaaaa", ""), many("ääää", "\"ö")]);
        for secret in
            ["hunter2x0007 q7Z!k9", "https://h/?t=3999", "aaaaaaaa0000", "ääää1234\"ö", "Hunter2X0007%20q7z!K9"]
        {
            assert_eq!(told(&format!("a {secret}, {secret}."), &words), "a ***, ***.", "{secret}");
        }
        assert_eq!(told("hunter2x0007 q7... hunter2x000", &words), "***... ***");
        let same = "hunter2 https://h/x https://h/? aaaaaaaa ääää123 hunter3x0007 q7Z!k9";
        assert_eq!(told(same, &words), same);
        // What is cut within a word is hidden as of few.
        let long = table(&[many("hunter2x", "longerthanthat")]);
        assert_eq!(told("hunter2x0007lon hunter2x12", &long), "*** ***");
        assert_eq!(told("...07longerthanthat", &long), "...***");
        // Some begin others, and stand in each other.
        let nested = table(&[(8..200).map(|length| "ab".repeat(length)).collect()]);
        assert_eq!(told(&format!("{}c {}", "ab".repeat(100), "ab".repeat(8)), &nested), "***c ***");
        let nested = (0..60).map(|length| format!("Zq7RtYpLm3Xc9VbK.{}-a", "z".repeat(length))).collect();
        let nested = table(&[nested, vec!["Zq7RtYpLm3Xc9VbK".to_owned()]]);
        assert_eq!(told(&format!("Zq7RtYpLm3Xc9VbK.{}", "z".repeat(70)), &nested), format!("***.{}", "z".repeat(70)));
        // Some that end before are no long ones.
        let long = (10..60).map(|nth| format!("acmekey_{nth}T.c0ffee{nth}12345678")).collect();
        let long = table(&[long, vec!["acmekey_7K4Qp9".to_owned(), "acmekey_7K4Qp9.Zp9Lm3Xc5VbK8wQ2".to_owned()]]);
        assert_eq!(told("gw (acmekey_7K4Qp#### unknown)", &long), "gw (***#### unknown)");
        assert_eq!(told(&"a".repeat(40_000), &words).len(), 40_000);
        assert!(!told(&"aaaaaaaa0007".repeat(3000), &words).contains("0007"));
    }

    /// Who gives a secret may send it again so that looking for its parts takes long.
    #[test]
    fn what_takes_too_long_is_hidden_from_there_on() {
        let nested = |ends: &[&str]| -> Vec<String> {
            (0..90).flat_map(|length| ends.iter().map(move |end| "a".repeat(8 + length) + end)).collect()
        };
        let long = (0..40).map(|nth| "a".repeat(20_000 + nth)).collect();
        let few = (0..30).map(|nth| "a".repeat(8 + nth) + "b9z").collect();
        for secrets in [nested(&["09z", "b9z", ".9z", "\u{e9}9z"]), nested(&[""]), long, few] {
            let table = table(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
            let text = format!("no {}, or aaaaaaa9", "a".repeat(30_000));
            let (undone, places) = undone(&text);
            let mut budget = Budget::of(&undone);
            said(&undone, &places, &[&table], &mut budget);
            assert!((100..=102).contains(&budget.taken()), "{} {}", secrets[0], budget.taken());
            let told = without(&text, &[&table], &Table::default(), &[]);
            assert!(told.ends_with(HIDDEN) && told.len() < text.len() / 2, "{}: {}", secrets[0], told.len());
        }
    }

    /// Thousands of keys that begin alike, in a head that is as long: all of its lines are one text.
    #[test]
    fn the_lines_of_a_head_are_looked_through_with_what_there_is_for_one_text() {
        let keys: Vec<String> = (0..400).map(|nth| format!("{}{nth}d9b", "a".repeat(8 + nth % 90))).collect();
        let table = table(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        let mut budget = Budget::of("");
        for key in &keys {
            budget.also(key);
            let told = without_within(key, &[&table], &Table::default(), &[], &mut budget);
            assert!(told.ends_with(HIDDEN) && !told.contains("d9b"), "{told}");
        }
        // A line goes on with what it has begun.
        assert!((100..=103).contains(&budget.taken()), "{}", budget.taken());
    }

    /// Of pages, and of the longest headers, whatever keys there are.
    #[test]
    fn hardly_any_of_that_is_taken_otherwise() {
        let keys = |begin: &str| (0..90).map(|nth| format!("{begin}{nth:04}.Zq7RtYp{}", nth * nth)).collect::<Vec<_>>();
        let all = [keys("acmekey_"), keys("Hunter"), keys("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx")].concat();
        let table = table(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let page = all.iter().map(|key| format!("<li><a href=\"/keys?id={key}\">acmekey_: {key}</a></li>\n"));
        for text in [page.collect::<String>(), "no such file ".repeat(28_000), "no acmekey_ here, ".repeat(4000)] {
            let (undone, places) = undone(&text);
            let mut budget = Budget::of(&undone);
            said(&undone, &places, &[&table], &mut budget);
            assert!(budget.taken() < 25, "{}: {}", &text[..30], budget.taken());
        }
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

    /// What is undone in it as well, or left out, leaves too little of a short one.
    #[test]
    fn a_short_secret_with_signs_by_which_others_are_written_out_is_hidden() {
        for (secret, said) in [
            (r"Pa/4\k9x", r"Pa\/4\\k9x"),
            (r"Pa<4\k9x", r"Pa\u003c4\\k9x"),
            (r"Pa&4\k9x", r"Pa\u00264\k9x"),
            (r"Pa 4\k9x", "Pa+4%5Ck9x"),
            (r"Pa 4\k9x", "pa%204%5ck9x"),
            (r"a\b\c/d99", r"a\\b\\c\/d99"),
            ("Rb/d9%5B", "Rb%2Fd9%255B"),
            ("Rb/d9%5B", r"Rb\/d9%5B"),
            ("RüFs9%5B", "R%C3%BCFs9%255B"),
            ("RüFs9%5B", r"R\u00fcFs9%5B"),
        ] {
            let mut table = Table::default();
            table.add(in_small(secret).into_iter().map(|(text, _)| text).chain([undone(secret).0]), []);
            let told = |text: &str| without(text, &[&table], &Table::default(), &[]).into_owned();
            assert_eq!(told(&format!("q {said}, so")), "q ***, so", "{secret}");
        }
    }

    /// In a policy file that the caller named.
    #[test]
    fn who_chooses_a_secret_hides_nothing_of_what_relent_says() {
        let told = |text: &str, secret: &str| without(text, &[], &table(&[secret]), &[]).into_owned();
        for secret in [
            "gave up after 1 attempt in",
            "gave-up-after-1-attempt-in-2.3ms",
            "/x belongs to somebody else, who can take the store away",
            "xbelongstosomebodyelse7",
            "ongs to som",
            "out of attempts (exit 1)",
        ] {
            for text in [
                "store sqlite:/x/s.db: /x belongs to somebody else, who can take the store away",
                "x belongs to somebody else 7 times",
                "gave up after 1 attempt in 2.3ms: out of attempts (exit 1)",
            ] {
                assert_eq!(told(text, secret), text, "{secret}");
            }
        }
        for secret in ["hunter2longer", "Horse9 Stable7 Hay5", "open/hunter2-up"] {
            let text = format!("its store is away, going on alone: no such key '{secret}' is there");
            assert_eq!(told(&text, secret), text.replace(secret, HIDDEN));
        }
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

    /// As old pages have it, and where some of it looks as if it were a name.
    #[test]
    fn a_secret_is_hidden_whatever_looks_like_a_name_in_it() {
        for (secret, said) in [
            ("Müller9Straße7", "M&uumlller9Stra&szlige7"),
            ("K9&a7h&Wm4", "K9&ampa7h&ampWm4"),
            ("afjord7x9", "a&fjlig;ord7x9"),
            ("Schön&Regen9", r"Sch\u00f6n&Regen9;"),
            ("rYIö&m1Vkvd", r"rYI\u00f6&m1Vkvd;"),
            ("rYI%C3%B6%26m1Vkvd", r"rYI\u00f6&m1Vkvd;"),
            ("2%C3%B6Q%3D%26k41DG%3B", r"2\u00f6Q=&k41DG;"),
            ("ann:Schön&Regen9", "Sch&ouml;n&Regen9;"),
            ("3t44hKnéttkYR", r"C:\\3t44hKn\u00e9ttkYR"),
        ] {
            let mut table = Table::default();
            crate::redact::learnt::learn(&mut table, &[secret.to_owned()], "");
            let text = format!("Via: \"{said}\" is wrong");
            let told = without(&text, &[&table], &Table::default(), &[]);
            assert!(told.ends_with("***;\" is wrong") || told.ends_with("***\" is wrong"), "{told}");
        }
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
            assert!(!without(&text, &[], &table(&["hunter2known"]), &[]).is_empty());
        }
    }
}
