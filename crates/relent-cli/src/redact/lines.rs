//! Lines of a configuration that a message quotes, because something is wrong there: a store's password may be in them, and where a quote
//! is missing nobody can say where it ends.
//!
//! So a line is shown with its keys and what is plainly harmless: short amounts, and amounts and words of relent's own settings;
//! behind the name of a secret nothing. From the first thing on that is none of these, all is stars, as many as it had characters, so that
//! the mark below is still where it was.

use super::{
    AT, HIDDEN,
    names::{is_password, is_secret, is_token},
    plain, value,
};
use relent_sim::Scenario;
use std::borrow::Cow;

/// A message that quotes lines of a file, and its hint, as they are told: of each text that the message itself quotes no more than of an
/// argument, and nothing of what is hidden in the line.
pub(crate) fn lines_of_a_file(message: &str, hint: &str) -> (String, String) {
    let mut below = Vec::new();
    let lines = message.split('\n').map(|line| match number(line) {
        Some(length) => {
            below.push((plain::narrow(&line[length..]), shown(&line[length..])));
            (&line[..length], below.last().map(|(_, shown)| shown.clone()))
        }
        None => (line, None),
    });
    let lines: Vec<_> = lines.collect();
    let mut hidden = Vec::new();
    let one = |(line, shown): &(&str, Option<String>)| match shown {
        Some(shown) => format!("{line}{shown}"),
        None => quoted(line, &below, &mut hidden),
    };
    let message = lines.iter().map(one).collect::<Vec<_>>().join("\n");
    // What is hidden is looked for first, while it is whole. What the hint proposes stands in no line.
    let hint = hidden.iter().fold(hint.to_owned(), |hint, hidden| without_word(&hint, hidden));
    (message, quoted(&hint, &[], &mut Vec::new()))
}

/// A text with stars for a word, where that is no part of another.
fn without_word(text: &str, word: &str) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (begin, _) in text.match_indices(word) {
        let end = begin + word.len();
        let is_apart = !text[..begin].ends_with(plain::is_of_a_name) && !text[end..].starts_with(plain::is_of_a_name);
        if is_apart {
            out.extend([&text[at..begin], HIDDEN]);
            at = end;
        }
    }
    out + &text[at..]
}

/// Whether a line of a file, counted from 1, stands anywhere below a key or a table that is called like a secret, whose value may go on there:
/// what looks like the next table may be a part of it.
pub(crate) fn is_beneath_a_secret(text: &str, line: usize) -> bool {
    let is_secret = |word: &str| !plain::is_setting_of_ours(word) && (is_secret(word) || is_password(word));
    let before = text.lines().take(line.saturating_sub(1));
    let mut keys = before.map(|line| line.split('=').next().unwrap_or_default());
    keys.any(|key| key.split(|c| !plain::is_of_a_name(c)).any(is_secret))
}

/// How long the number and the bar are before a line of the file.
fn number(line: &str) -> Option<usize> {
    let (number, _) = line.split_once(" | ")?;
    let is_one = !number.trim().is_empty() && number.trim().bytes().all(|byte| byte.is_ascii_digit());
    is_one.then_some(number.len() + " | ".len())
}

/// What we say ourselves, with less of the texts that are quoted in it, each of which is added to the `hidden` if nothing of it is shown.
fn quoted(line: &str, below: &[(Cow<'_, str>, String)], hidden: &mut Vec<String>) -> String {
    let less = |text: &str| match (value::shown(text), text.rfind(AT)) {
        (shown, Some(at)) if shown.starts_with(&text[..at]) => format!("{HIDDEN}{}", &shown[at..]),
        (shown, _) => shown,
    };
    let (mut out, mut rest) = (String::new(), line);
    while let Some((before, behind)) = rest.split_once('"') {
        let (text, after) = behind.split_at(end_of(behind, '"'));
        let is_hidden = is_hidden_in(below, text);
        if is_hidden && !hidden.iter().any(|other| other == text) {
            hidden.push(text.to_owned());
        }
        out.extend([before, "\"", &if is_hidden { HIDDEN.to_owned() } else { less(text) }]);
        out.push_str(if after.is_empty() { "" } else { "\"" });
        rest = after.get(1..).unwrap_or_default();
    }
    out + rest
}

/// Whether a text is hidden in the lines that are shown below: it stands there, and nowhere as it is, or it is written otherwise there
/// and is no key of a person.
fn is_hidden_in(below: &[(Cow<'_, str>, String)], text: &str) -> bool {
    /// How often it is looked for in a line: whatever stands there more often is nobody's name.
    const MOST: usize = 16;
    let text = plain::narrow(text);
    let is_shown = |(line, shown): &(Cow<'_, str>, String)| {
        let mut places = line.match_indices(&*text).take(MOST).map(|(at, _)| line[..at].chars().count());
        places.any(|at| shown.chars().skip(at).take(text.chars().count()).eq(text.chars()))
    };
    let has_it = |(line, _): &&(Cow<'_, str>, String)| line.contains(&*text);
    match below.iter().find(has_it) {
        // What was taken for a table is its name.
        Some((line, _)) if line.trim_start().starts_with('[') && is_key_of_a_person(&text) => false,
        Some(_) => !below.iter().any(is_shown),
        None => !below.is_empty() && !is_key_of_a_person(&text) && !is_harmless(&text, false, false),
    }
}

/// Where a text ends that stands behind a quote: at the next one, or with the line.
fn end_of(text: &str, quote: char) -> usize {
    let mut is_written_out = false;
    let is_end = |c| {
        let is_end = c == quote && !is_written_out;
        is_written_out = c == '\\' && quote == '"' && !is_written_out;
        is_end
    };
    text.find(is_end).unwrap_or(text.len())
}

/// A line of the file.
fn shown(line: &str) -> String {
    let narrow = plain::narrow(line);
    // A value with a user in it may be taken apart by a quote.
    let has_user = narrow.contains('@') || narrow.to_ascii_lowercase().contains("0040");
    let mut reader = Reader {
        rest: &narrow,
        out: String::new(),
        is_known: false,
        is_secret: false,
        had_value: false,
        is_key_next: true,
        open: Vec::new(),
    };
    if !narrow.trim_start().starts_with('[') || narrow.contains('=') {
        while reader.next(has_user) {}
    } else if is_head(&narrow) {
        reader.is_known = true;
        while reader.next_of_a_header() {}
    } else {
        // A part of a list, perhaps of lists.
        while reader.signs("[") {}
    }
    let hidden = reader.rest.chars().map(|c| if c.is_whitespace() { c } else { '*' });
    reader.out.clone() + &hidden.collect::<String>()
}

/// Whether a line begins with the name of a table that files have, in brackets.
fn is_head(line: &str) -> bool {
    let line = line.trim_start();
    let name = line.strip_prefix("[[").or_else(|| line.strip_prefix('[')).unwrap_or_default().trim_start();
    let name = &name[..name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len())];
    name == "policy" || Scenario::KEYS.contains(&name)
}

/// What reads a line, up to what is not plainly harmless.
struct Reader<'a> {
    rest: &'a str,
    out: String,
    /// Whether the key is one of ours.
    is_known: bool,
    /// Whether a key before was that of a secret.
    is_secret: bool,
    /// Whether its value was there.
    had_value: bool,
    /// Whether a key may come: it is the first of the line, or the first of a setting in braces, or a part of one.
    is_key_next: bool,
    /// Which braces and brackets are open, and whether the key before each is one of ours.
    open: Vec<(char, bool)>,
}

impl<'a> Reader<'a> {
    /// The next sign, key or value; whether it could be shown.
    fn next(&mut self, has_user: bool) -> bool {
        if self.signs("={}[],.") {
            return true;
        }
        let Some((word, length)) = self.word() else { return false };
        let behind = self.rest[length..].trim_start();
        let is_key = self.is_key_next && behind.starts_with(['=', '.']) && !self.had_value;
        self.is_key_next = is_key && behind.starts_with('.');
        let is_shown = !self.is_secret
            && match is_key {
                true => is_key_of_a_person(word),
                false => !has_user && is_harmless(word, self.is_known, self.had_value),
            };
        // What touches a text is what somebody has forgotten to quote.
        let is_apart = !self.rest[length..].starts_with(|c: char| "\"'".contains(c) || c.is_alphanumeric());
        match is_key {
            true => self.is_known = plain::is_setting_of_ours(word),
            false => self.had_value = true,
        }
        // Whatever stands between it and its value.
        self.is_secret |= !plain::is_setting_of_ours(word) && (is_secret(word) || is_password(word));
        self.take(length, is_shown && is_apart)
    }

    /// The next sign or name in brackets, whose names are known until they are closed.
    fn next_of_a_header(&mut self) -> bool {
        let ends = self.rest.starts_with(']');
        if self.signs("[].") {
            self.is_known &= !ends;
            return true;
        }
        // Points are between its parts.
        self.is_key_next = true;
        let Some((word, length)) = self.word() else { return false };
        // What no point stands before is no part of the name.
        let is_part = self.out.trim_end().ends_with(['[', '.']);
        let is_taken = self.take(length, is_name(word) && self.is_known && is_part);
        self.is_known &= plain::is_setting_of_ours(word) || !(is_secret(word) || is_password(word));
        is_taken
    }

    /// Takes a space or a sign.
    fn signs(&mut self, signs: &str) -> bool {
        let Some(sign) = self.rest.chars().next().filter(|c| c.is_whitespace() || signs.contains(*c)) else {
            return false;
        };
        match sign {
            '{' | '[' => self.open.push((sign, self.is_known)),
            // That was the value.
            '}' | ']' => {
                (self.is_known, self.had_value) = (self.open.pop().is_some_and(|(_, is_known)| is_known), true)
            }
            // What follows in a list is of the same setting.
            ',' => {
                self.is_known &= self.open.last().is_some_and(|(open, _)| *open == '[');
                self.had_value = false;
            }
            // What stands before it was a key after all.
            '=' => self.is_known &= !self.had_value,
            _ => {}
        }
        self.is_key_next = match sign {
            '{' => true,
            ',' => self.open.iter().any(|(open, _)| *open == '{'),
            '=' | '[' | ']' | '}' => false,
            _ => self.is_key_next,
        };
        self.take(sign.len_utf8(), true)
    }

    /// The word or text that comes, and how long it is with its quotes.
    fn word(&self) -> Option<(&'a str, usize)> {
        let quote = self.rest.chars().next()?;
        if quote != '"' && quote != '\'' {
            // A key may have parts.
            let has_parts = self.is_key_next && !quote.is_ascii_digit();
            let is_end = |c: char| c.is_whitespace() || "={}[],\"'#".contains(c) || (has_parts && c == '.');
            let length = self.rest.find(is_end);
            let length = length.unwrap_or(self.rest.len());
            return (length > 0).then_some((&self.rest[..length], length));
        }
        let end = 1 + end_of(&self.rest[1..], quote);
        Some((&self.rest[1..end], (end + 1).min(self.rest.len())))
    }

    fn take(&mut self, length: usize, is_shown: bool) -> bool {
        if is_shown {
            self.out.push_str(&self.rest[..length]);
            self.rest = &self.rest[length..];
        }
        is_shown
    }
}

/// Whether a key may be shown: a word as people write one for a setting, perhaps `inThisWay`. What is in base64 ends as a key does.
fn is_key_of_a_person(word: &str) -> bool {
    // A capital stands between small letters, which are no fewer than two behind it.
    let is_small = |at: usize| word.as_bytes().get(at).is_some_and(u8::is_ascii_lowercase);
    let is_fine = |(at, c): (usize, char)| match c {
        'A'..='Z' => at > 0 && [at - 1, at + 1, at + 2].into_iter().all(is_small),
        c => c.is_ascii_lowercase() || "_-".contains(c),
    };
    plain::is_setting_of_ours(word) || (word.len() <= 32 && word.char_indices().all(is_fine) && !is_token(word))
}

/// Whether the name of a table, or of a setting of ours, may be shown.
fn is_name(word: &str) -> bool {
    plain::is_word(word) && !is_token(word)
}

/// Whether a value is plainly harmless: a short amount, a word that says so, or of a setting of ours any amount or a word.
fn is_harmless(word: &str, is_known: bool, had_value: bool) -> bool {
    const WORDS: [&str; 6] = ["true", "false", "inf", "nan", "none", "unlimited"];
    let is_amount = word
        .split(|c: char| c.is_ascii_digit() || "._+-:".contains(c))
        .all(|unit| unit.len() <= 2 && unit.chars().all(|c| "smhdnuµeTZ%".contains(c)));
    let is_short = is_amount && word.bytes().filter(u8::is_ascii_digit).count() <= 4;
    WORDS.contains(&word) || is_short || (is_known && (is_amount || (!had_value && is_name(word))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_file_are_shown_without_secrets() {
        for (line, shown) in [
            ("store=\"postgres://ann@h/db?password=a;pw\" x", "store=*********************************** *"),
            ("store=\"ann:pw", "store=*******"),
            ("store = ann:pw # pw", "store = ****** * **"),
            ("store = 'Bearer pw'", "store = ******* ***"),
            ("stoer=\"kennwort=secret\"", "stoer=*****************"),
            ("kennwort = 'secret'", "kennwort = ********"),
            // What a missing quote leaves over.
            ("base = 'a;'pw x", "base = ****** *"),
            ("base = \"1s\" pw", "base = \"1s\" **"),
            ("base = \"1s\"pw", "base = ******"),
            ("base = pw\"@h\"", "base = ******"),
            ("base = 12\"@h\"", "base = ******"),
            ("base = \"12\\u0040h\"", "base = ***********"),
            ("pw\"", "***"),
            ("secret", "******"),
            ("root:$6$pw:19000:0", "******************"),
            ("[upstream.\"pw@h\"]", "[upstream.*******"),
            ("[upstream.b] pw", "[upstream.b] **"),
            ("[[population]]", "[[population]]"),
            ("budget = { ratio = nan, window = \"10s\" }", "budget = { ratio = nan, window = \"10s\" }"),
            ("delays = [\"1m30s\", \"1.5h\", 1_000, 1e3]", "delays = [\"1m30s\", \"1.5h\", 1_000, 1e3]"),
            ("base = 100ms # a comment", "base = 100ms * * *******"),
            ("jitter = full", "jitter = full"),
            ("pin = 4815", "pin = ****"),
            ("a = { base = \"1s\", password, \"pw\" }", "a = { base = \"1s\", ********* **** *"),
            ("a = { base = \"1s\", x, \"pw\" }", "a = { base = \"1s\", ** **** *"),
            ("base = \"1s\", \"pw\"", "base = \"1s\", ****"),
            ("dsn = [ { base = \"1s\" }, \"pw\" ]", "dsn = [ { base = \"1s\" }, **** *"),
            ("dsn = [[1s], {cap=1}, pw]", "dsn = [[1s], {cap=1}, ***"),
            ("url = { base = \"1s\" } pw", "url = { base = \"1s\" } **"),
            ("url = { base = [\"1s\"] \"pw\" }", "url = { base = [\"1s\"] **** *"),
            ("dsn = { base = 1s } = pw", "dsn = { base = 1s } = **"),
            ("curve password ]= \"pw\"", "***** ******** ** ****"),
            ("curve = [\"1s\", dsn = , \"pw\"]", "curve = [\"1s\", dsn = , *****"),
            ("delays = [\"1m30s\", password, \"pw\"]", "delays = [\"1m30s\", password, *****"),
            ("pin.a = 4815", "pin.* * ****"),
            ("pin.max = 4815", "pin.*** * ****"),
            ("pwABpwABpw7/pwAB+pw=", "********************"),
            ("pwA = 1", "*** * *"),
            ("maxAttempts = 4", "maxAttempts = 4"),
            ("apiTokenPW = 4", "********** * *"),
            ("a.pwA = 1", "a.*** * *"),
            // What ends as base64 does is no key.
            ("private_key = pwAB==", "private_key = ******"),
            ("a = pwAB==", "a = ******"),
            ("[pwAB==],", "[********"),
            // What looks like the head of a table is a part of a list, or has the name of a secret in it.
            ("[pwABlonger],", "[************"),
            ("[[pwAB/longer+x]],", "[[****************"),
            ("  [ [ pwABlonger", "  [ [ **********"),
            ("[psk.pwABlonger", "[**************"),
            ("[kennwort pwABlonger]", "[******** ***********"),
            ("[policy.token.pwABlonger]", "[policy.token.***********"),
            ("[policy pwABlonger]", "[policy ***********"),
            ("[upstream.bank.rate]", "[upstream.bank.rate]"),
            ("x = [ pw=1 ]", "x = [ **** *"),
            ("x = { n = 1, a.b = 2 }", "x = { n = 1, a.b = 2 }"),
            ("x = { otp = 4815, n = 1 }", "x = { otp = ***** * * * *"),
            ("kennwort = 48151623", "kennwort = ********"),
            ("clients = 500", "clients = 500"),
            ("token_ratio = 12345", "token_ratio = 12345"),
            ("curve = \"expnential\"", "curve = \"expnential\""),
            ("budget.ratio = 1", "budget.ratio = 1"),
            ("breaker = \"consecutve\"", "breaker = \"consecutve\""),
            ("[policy.\"read\"]", "[policy.\"read\"]"),
        ] {
            let told = lines_of_a_file(&format!("it is wrong\n --> p.toml:2:7\n  |\n2 | {line}\n  |       ^^"), "").0;
            let (before, mark) = (&told[..told.find("2 | ").unwrap()], "\n  |       ^^");
            assert_eq!(before, "it is wrong\n --> p.toml:2:7\n  |\n");
            let line = &told[before.len() + 4..];
            assert!(line.ends_with(mark) && !line.contains("pw") && !line.contains("secret"), "{line}");
            assert_eq!(&line[..line.len() - mark.len()], shown);
            assert_eq!(shown.chars().count(), line.chars().count() - mark.len());
        }
        for (said, told) in
            [("ann:pw", "ann:***"), ("x1@h", "***@h"), ("a\\\"pw", "a***"), ("reed", "reed"), ("k=pw", "k=***")]
        {
            let told = format!("there is no breaker \"{told}\", and no \"x\"");
            assert_eq!(lines_of_a_file(&format!("there is no breaker \"{said}\", and no \"x\""), "").0, told);
        }
        assert_eq!(lines_of_a_file("that's all", "so").0, "that's all");
    }

    #[test]
    fn what_a_line_hides_neither_message_nor_hint_tells() {
        for (line, text, told) in [
            ("Hunter2Longer = 1", "Hunter2Longer", HIDDEN),
            ("\"hunter/longer+x\" = 1", "hunter/longer+x", HIDDEN),
            ("\"Hunter\\u0032Longer\" = 1", "Hunter2Longer", HIDDEN),
            ("Ｈunter2Longer = 1", "Ｈunter2Longer", HIDDEN),
            ("[Hunter2Longer]", "Hunter2Longer", HIDDEN),
            ("upstream = \"Hunter2Longer\"", "Hunter2Longer", HIDDEN),
            ("upstream = \"Hunter2$Longer\"", "Hunter2$Longer", HIDDEN),
            ("upstream = \"Hunter2\\tLon=ger\"", "Hunter2\\tLon=ger", HIDDEN),
            ("upstream = 'Hunter2\"Longer'", "Hunter2\\\"Longer", HIDDEN),
            ("budget = { Hunter2Longer = 1 }", "Hunter2Longer", HIDDEN),
            ("max_atempts = 1", "max_atempts", "max_atempts"),
            ("[polcy]", "polcy", "polcy"),
            ("base = \"5 bananas\"", "5 bananas", HIDDEN),
            ("base = \"5s\"", "5s", "5s"),
        ] {
            let message = format!("there is no table \"{text}\"\n --> 1:1\n  |\n1 | {line}\n  | ^");
            let (message, hint) = lines_of_a_file(
                &message,
                &format!("[upstream.\"{text}\"] begins it, and \"sqlite:state.db\" does not"),
            );
            assert!(message.starts_with(&format!("there is no table \"{told}\"\n")), "{message}");
            assert_eq!(hint, format!("[upstream.\"{told}\"] begins it, and \"sqlite:state.db\" does not"));
        }
        // Another word that has it in it is whole.
        let (_, hint) = lines_of_a_file("no \"Hunter2\"\n1 | Hunter2 = 1", "\"Hunter2s\", not [a.Hunter2] or Hunter2");
        assert_eq!(hint, "\"Hunter2s\", not [a.***] or ***");
        // Where no line is shown, it is as of an argument.
        assert_eq!(lines_of_a_file("there is no \"Hunter2\"", "").0, "there is no \"Hunter2\"");
    }

    #[test]
    fn what_stands_beneath_a_secret_is_known() {
        for (text, line) in [
            ("[password]\na = 1\nb = 48 x", 3),
            ("[a.token]\nb = 48 x", 2),
            ("pin = [\n 48 x", 2),
            ("pin = \"\"\"\n[x\nb = 48 x", 3),
            ("pin = \"\"\"\n[policy.b]\nb = 48 x", 3),
        ] {
            assert!(is_beneath_a_secret(text, line), "{text}");
        }
        for (text, line) in
            [("[a]\na = 1\n[policy.b]\nb = 48 x", 4), ("pin = 1", 1), ("token_ratio = 1\nx", 2), ("", 0)]
        {
            assert!(!is_beneath_a_secret(text, line), "{text}");
        }
    }

    /// A file may be of one line.
    #[test]
    fn long_lines_are_looked_at_once() {
        for word in
            ["[a ", "a ", "a.", "[", "]", "a=", "a=1,", "\"a\",", "\"", "'", " ", "a", "1 ", "{", "@", "\\\"", "[a.b] "]
        {
            let line = word.repeat((1 << 16) / word.len());
            let told = lines_of_a_file(&format!("it is {line:?}\n1 | {line}"), "").0;
            assert!(told.starts_with("it is ") && told.contains("\n1 | "), "{word}");
        }
    }
}
