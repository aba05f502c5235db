//! Lines of a configuration that a message quotes, because something is wrong there: a store's password may be in them.

use super::{given, plain};

/// A message that quotes a line of a file, as it is told: of each text in the line, and of each that the message quotes, no more than what
/// is plainly harmless. What is hidden has as many stars as it had characters, so that the mark below is still where it was.
pub(crate) fn lines_of_a_file(message: &str) -> String {
    let one = |line: &str| match number(line) {
        Some(length) => format!("{}{}", &line[..length], strings(&line[length..], true)),
        None => strings(line, false),
    };
    message.split('\n').map(one).collect::<Vec<_>>().join("\n")
}

/// How long the number and the bar are before a line of the file.
fn number(line: &str) -> Option<usize> {
    let (number, _) = line.split_once(" | ")?;
    let is_one = !number.trim().is_empty() && number.trim().bytes().all(|byte| byte.is_ascii_digit());
    is_one.then_some(number.len() + " | ".len())
}

/// A line with less of the texts in it; outside of them, in a file, less of its words.
fn strings(line: &str, is_of_a_file: bool) -> String {
    let (mut out, mut rest) = (String::new(), line);
    // In what we say ourselves there are apostrophes.
    let quotes: &[char] = if is_of_a_file { &['"', '\''] } else { &['"'] };
    while let Some(start) = rest.find(quotes) {
        let quote = rest[start..].chars().next().unwrap_or('"');
        let (before, behind) = (&rest[..start], &rest[start + 1..]);
        let mut is_written_out = false;
        let end = behind.find(|c| {
            let is_end = c == quote && !is_written_out;
            is_written_out = c == '\\' && quote == '"' && !is_written_out;
            is_end
        });
        out.push_str(&words(before, is_of_a_file));
        out.push(quote);
        // One without an end goes on to the end of the line.
        let end = end.unwrap_or(behind.len());
        out.push_str(&less(&behind[..end]));
        out.push_str(if end < behind.len() { &behind[end..=end] } else { "" });
        rest = behind.get(end + 1..).unwrap_or_default();
    }
    out + &words(rest, is_of_a_file)
}

/// What stands outside of texts: numbers and names of settings, unless something has been forgotten.
fn words(text: &str, is_of_a_file: bool) -> String {
    if !is_of_a_file {
        return text.to_owned();
    }
    let end = plain::secret(text, true).unwrap_or(text.len());
    let (told, hidden) = text.split_at(end);
    let is_end = |c: char| c.is_whitespace() || "{}[],".contains(c);
    let told: String = told
        .split_inclusive(is_end)
        .map(|word| {
            let bare = word.trim_end_matches(is_end);
            less(bare) + &word[bare.len()..]
        })
        .collect();
    told + &stars(hidden)
}

/// No more of a text than what is harmless.
fn less(text: &str) -> String {
    let shown = given::shown(&text.replace("\\u0040", "@").replace("\\u003a", ":").replace("\\u002f", "/"));
    if shown == text {
        return shown;
    }
    let missing = text.chars().count().saturating_sub(shown.chars().count());
    shown + &"*".repeat(missing)
}

fn stars(text: &str) -> String {
    "*".repeat(text.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_file_are_shown_without_secrets() {
        for (line, shown) in [
            ("store=\"postgres://ann@h/db?password=a;pw\" x", "store=\"postgres://ann@h/db?password=****\" x"),
            ("store=\"ann:pw", "store=\"ann:***"),
            ("store = ann:pw", "store = ann:***"),
            ("store = 'Bearer pw'", "store = 'Bearer ***'"),
            ("stoer=\"kennwort=secret\"", "stoer=\"kennwort=******\""),
            ("budget = { ratio = nan, window = \"10s\" }", "budget = { ratio = nan, window = \"10s\" }"),
            ("base = 100ms # a comment", "base = 100ms # a comment"),
            ("jitter = full", "jitter = full"),
            ("[policy.\"read\"]", "[policy.\"read\"]"),
        ] {
            let told = lines_of_a_file(&format!("it is wrong\n --> p.toml:2:7\n  |\n2 | {line}\n  |       ^^"));
            let (before, mark) = (&told[..told.find("2 | ").unwrap()], "\n  |       ^^");
            assert_eq!(before, "it is wrong\n --> p.toml:2:7\n  |\n");
            let line = &told[before.len() + 4..];
            assert!(line.ends_with(mark) && !line.contains("pw") && !line.contains("secret"), "{line}");
            assert_eq!(&line[..line.len() - mark.len()], shown);
        }
        assert_eq!(lines_of_a_file("there is no breaker \"ann:pwpw\""), "there is no breaker \"ann:****\"");
        assert_eq!(lines_of_a_file("that's all"), "that's all");
    }
}
