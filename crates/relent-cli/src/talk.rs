//! The one voice of all subcommands: data on stdout, talk on stderr, `error:` then `hint:`.
//!
//! Colour only marks the words `error`, `hint` and `note`, never carries meaning, and is left out where stderr is no
//! terminal, where `NO_COLOR` is set to anything, or where `TERM` is `dumb`.

use crate::{
    brief,
    escape::{escape, escape_lines, in_its_characters},
    json::Object,
    output, redact, screen, stderr,
};
use nix::libc::{EMFILE, ENFILE};
use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, Write},
    os::fd::AsFd,
    process::ExitCode,
    time::{Duration, Instant},
};

/// What `relent` exits with when it failed itself: wrong flags, an unreadable policy file.
pub const EXIT_FAULT: u8 = 125;

/// What went wrong in `relent` itself, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    problem: String,
    /// Whether line breaks in the problem are our own.
    has_lines: bool,
    hint: Option<String>,
    exit: u8,
    /// Whether it may pass by itself.
    passes: bool,
}

impl Fault {
    /// A fault that exits with 125. It is one line: a line break in it comes from a name that somebody chose, and is
    /// written out.
    pub fn new(problem: impl Into<String>) -> Fault {
        Fault { problem: problem.into(), has_lines: false, hint: None, exit: EXIT_FAULT, passes: false }
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Fault {
        Fault { hint: Some(hint.into()), ..self }
    }

    /// With another exit code.
    #[must_use]
    pub fn exit(self, exit: u8) -> Fault {
        Fault { exit, ..self }
    }

    /// Because of what the system says of a file. What is full, lent to somebody, or used up by all together, need not stay so.
    #[must_use]
    pub(crate) fn by(self, error: &io::Error) -> Fault {
        use io::ErrorKind::{OutOfMemory, QuotaExceeded, StorageFull, WouldBlock};
        let passes = [OutOfMemory, QuotaExceeded, StorageFull, WouldBlock].contains(&error.kind());
        Fault { passes: passes || error.raw_os_error() == Some(ENFILE), ..self }
    }

    /// Whether it may pass by itself.
    pub(crate) fn may_pass(&self) -> bool {
        self.passes
    }

    /// What to exit with.
    pub(crate) fn code(&self) -> u8 {
        self.exit
    }

    /// Says it on stderr, and returns what to exit with.
    pub fn tell(&self) -> ExitCode {
        let (problem, hint) = self.shown();
        let mut stderr = stderr::open();
        // There is nobody left to tell when stderr is gone.
        let _ = writeln!(stderr, "{} {}", paint("error:", RED), problem);
        if let Some(hint) = hint {
            let _ = writeln!(stderr, "{} {}", paint("hint:", CYAN), hint);
        }
        ExitCode::from(self.exit)
    }

    /// The problem and the hint, as no terminal obeys them. What is named may be a URL, whatever it was named as.
    pub(crate) fn shown(&self) -> (String, Option<Cow<'_, str>>) {
        let problem = match self.has_lines {
            true => escape_lines(&told(&self.problem)).into_owned(),
            false => message(&self.problem),
        };
        (problem, self.hint.as_deref().map(|hint| Cow::Owned(message(hint))))
    }

    /// The fault as one line of JSON, for `--json`.
    pub fn to_json(&self) -> String {
        let mut event = Object::new();
        event.text("event", "error").text("error", &told(&self.problem));
        if let Some(hint) = &self.hint {
            event.text("hint", &told(hint));
        }
        event.number("code", self.exit.into()).finish()
    }

    /// Says it on stderr as people or machines want it, and returns what to exit with.
    pub fn tell_as(&self, json: bool) -> ExitCode {
        if !json {
            return self.tell();
        }
        let _ = writeln!(stderr::open(), "{}", self.to_json());
        ExitCode::from(self.exit)
    }
}

impl From<relent::config::ConfigError> for Fault {
    fn from(error: relent::config::ConfigError) -> Fault {
        let (told, hint) = redact::lines_of_a_file(&error.to_string(), error.hint());
        Fault { has_lines: true, ..Fault::new(told).hint(hint) }
    }
}

/// How much to say on stderr, and in which form.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct TalkArgs {
    /// Say nothing but errors.
    #[arg(short, long, overrides_with = "verbose")]
    pub quiet: bool,
    /// Say more: the policy, and each attempt as it starts.
    #[arg(short, long, overrides_with = "quiet")]
    pub verbose: bool,
    /// One JSON event a line instead of talk.
    #[arg(long)]
    pub json: bool,
}

/// How much to say on stderr, for commands that attempt nothing.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct HushArgs {
    /// Say nothing but errors.
    #[arg(short, long, overrides_with = "verbose", global = true)]
    pub quiet: bool,
    /// Say more: the policy.
    #[arg(short, long, overrides_with = "quiet", global = true)]
    pub verbose: bool,
}

impl HushArgs {
    /// Says a note, unless nothing is to be said.
    pub fn note(self, text: impl Display) {
        if !self.quiet {
            note(text);
        }
    }

    /// Says a warning, unless nothing is to be said.
    pub fn warn(self, text: impl Display) {
        if !self.quiet {
            warn(text);
        }
    }

    /// With `--verbose`: a policy in a line.
    pub(crate) fn policy(self, name: &str, policy: &relent::Policy) {
        if self.verbose {
            let text = format!("relent: policy {name}: {}", keys(*policy));
            let _ = writeln!(stderr::open(), "{}", brief::within(&escape(&text), 0));
        }
    }
}

/// The line of a policy. It is made of numbers and words of ours, so nothing in it is hidden, whatever secret has the same in it.
pub(crate) fn policy(policy: relent::Policy, seed: u64) -> String {
    let seed = format!(" seed={seed}");
    brief::within(&format!("relent: policy {}", keys(policy)), seed.len()) + &seed
}

fn keys(policy: relent::Policy) -> String {
    let keys = relent::config::Draft::from(policy).to_string();
    let keys: Vec<String> = keys.lines().map(|line| line.replace(" = ", "=")).collect();
    keys.join(" ")
}

/// What is wrong, without the number that only the system knows.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

/// What to do about it: of what the system itself says is missing, that; else what is `likely`.
pub(crate) fn hint(error: &io::Error, likely: &'static str) -> &'static str {
    match error.raw_os_error() {
        Some(EMFILE | ENFILE) => "ulimit -n says how many files may be open",
        _ => likely,
    }
}

/// What is told, to people and machines alike: without secrets, and no longer than anybody reads. Others wrote some of it.
pub(crate) fn told(text: &str) -> Cow<'_, str> {
    // What was given is known as a whole only.
    let known = redact::without_given(text);
    match brief::lines(&known) {
        Cow::Borrowed(same) if same == text => Cow::Borrowed(text),
        shown => Cow::Owned(shown.into_owned()),
    }
}

/// Which attempt it is, and of how many at most: `1 of 5`.
pub(crate) fn of_most(attempt: u32, most: Option<u32>) -> String {
    most.map_or_else(|| attempt.to_string(), |most| format!("{attempt} of {most}"))
}

/// The same as one line that no terminal obeys.
pub(crate) fn message(text: &str) -> String {
    escape(&told(text)).into_owned()
}

/// Says something that the user should know, as `relent: ...` or as an event, unless nothing is to be said.
pub fn remark(talk: TalkArgs, text: &str) {
    if talk.quiet {
        return;
    }
    let _ = writeln!(stderr::open(), "{}", remarked(talk.json, text));
}

/// The line of a remark.
fn remarked(is_json: bool, text: &str) -> String {
    match is_json {
        true => Object::new().text("event", "remark").text("remark", &told(text)).finish(),
        false => format!("relent: {}", message(text)),
    }
}

/// From when on a wait before the first attempt is told of: whoever waits does not know that anything goes on.
pub(crate) const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Says a note on stderr: something the user should know that is no error.
pub fn note(text: impl Display) {
    let _ = writeln!(stderr::open(), "{} {}", paint("note:", CYAN), message(&text.to_string()));
}

/// Says a warning on stderr: something that will probably not do what the user wants.
pub fn warn(text: impl Display) {
    let _ = writeln!(stderr::open(), "{} {}", paint("warning:", YELLOW), message(&text.to_string()));
}

const RED: &str = "31";
const YELLOW: &str = "33";
const CYAN: &str = "36";

fn paint(word: &str, colour: &str) -> String {
    if screen::colours() { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() }
}

/// Breaks lines between words so that none is wider than `width` columns, if no word is.
pub fn wrap(text: &str, width: usize) -> String {
    text.lines().map(|line| laid(line.split(' '), width, "\n", screen::width) + "\n").collect()
}

/// The same for one line with a name in it that somebody chose: what goes on below is set in by two more than the line, and a word that is too
/// wide is broken here, so that no part of the name begins a line.
pub fn wrap_named(line: &str, width: usize) -> String {
    if screen::widest(line) <= width {
        return format!("{line}\n");
    }
    let bare = line.trim_start_matches(' ');
    let before = &line[..(line.len() - bare.len()).min(width / 2)];
    let width = width.saturating_sub(before.len() + 2).max(2);
    let pieces = |word| {
        let (mut all, mut rest): (Vec<&str>, &str) = (Vec::new(), word);
        loop {
            // There are letters that take three.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let (piece, behind) = rest.split_at(screen::surely_fitting(rest, width).max(first));
            all.push(piece);
            if behind.is_empty() {
                return all;
            }
            rest = behind;
        }
    };
    let all = laid(bare.split(' ').flat_map(pieces), width, &format!("\n{before}  "), screen::widest);
    format!("{before}{}\n", all.trim_end())
}

/// Words beside each other as far as there is room, and below each other where this breaks the line.
fn laid<'a>(words: impl Iterator<Item = &'a str>, width: usize, breaks: &str, width_of: fn(&str) -> usize) -> String {
    let (mut out, mut taken) = (String::new(), 0);
    for word in words {
        let more = width_of(word);
        if taken > 0 && taken + 1 + more > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push_str(breaks);
            taken = 0;
        } else if taken > 0 {
            out.push(' ');
            taken += 1;
        }
        out.push_str(word);
        taken += more;
    }
    out
}

/// What there is to say when standard output cannot be written to.
pub(crate) fn unwritten(error: &io::Error) -> Fault {
    let fault = Fault::new(format!("cannot write to standard output: {}", plain(error)));
    match error.kind() {
        io::ErrorKind::Other => fault.hint(">/dev/null throws away what is not wanted"),
        _ => fault,
    }
}

/// Writes data to stdout. A reader that went away (`| head`) is no fault: the rest is not written.
///
/// # Errors
///
/// Any other failure to write: it is closed, or its disk full.
pub fn write_out(data: &[u8]) -> Result<(), Fault> {
    if data.is_empty() {
        return Ok(());
    }
    is_written(output::write(data))
}

/// A text for people in which names that somebody chose may stand anywhere: lines that look like messages are set in, and so is what a terminal
/// would take to a line of its own.
pub(crate) fn without_messages(text: &str) -> Cow<'_, str> {
    without_messages_within(text, screen::columns().unwrap_or(usize::MAX))
}

/// The same for a terminal of so many columns.
pub(crate) fn without_messages_within(text: &str, columns: usize) -> Cow<'_, str> {
    let lines = || text.split_inclusive('\n');
    if !lines().any(is_like_a_message) {
        return broken_at(text, columns);
    }
    let all: String = lines().flat_map(|line| [if is_like_a_message(line) { "  " } else { "" }, line]).collect();
    Cow::Owned(broken_at(&all, columns).into_owned())
}

/// The same, unless it is JSON, which is for programs.
pub(crate) fn answer(text: &str, is_json: bool) -> Cow<'_, str> {
    if is_json { Cow::Borrowed(text) } else { without_messages(text) }
}

/// A page, a drawing or a table, which are for files, where it is a terminal that gets them.
pub(crate) fn if_shown<'a>(text: &'a str, out: impl AsFd) -> Cow<'a, str> {
    match screen::columns_of(out) {
        Some(columns) => Cow::Owned(without_messages_within(&in_its_characters(text), columns).into_owned()),
        None => Cow::Borrowed(text),
    }
}

/// A text in which relent has messages of its own: lines that a terminal would break where what follows may look like one are broken here. What
/// is there to be copied stays as it is.
pub(crate) fn broken(text: &str) -> Cow<'_, str> {
    broken_at(text, screen::columns().unwrap_or(usize::MAX))
}

fn broken_at(text: &str, columns: usize) -> Cow<'_, str> {
    let is_wide = |line: &str| line.len() > columns / 2 && screen::widest(line) > columns;
    // Nothing that takes no column begins anything: so each sign is looked at a few times, however many of those there are.
    let begins = |line: &str, (at, c)| !screen::is_no_column(c) && is_like_a_message(&line[at..]);
    let may_begin = |line: &str| line.char_indices().skip(1).any(|sign| begins(line, sign));
    let is_broken = |line: &str| is_wide(line.trim_end()) && may_begin(line);
    if !text.split_inclusive('\n').any(is_broken) {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n').map(|line| match is_broken(line) {
        true => wrap_named(line.trim_end(), columns),
        false => line.to_owned(),
    });
    Cow::Owned(lines.collect())
}

/// Whether a line begins as messages do, for who sees it: some of its letters may be those of another script that look alike.
fn is_like_a_message(line: &str) -> bool {
    ["error:", "hint:", "note:", "relent:", "warning:"].iter().any(|begin| {
        let mut seen = line.chars().filter(|c| !screen::is_no_column(*c)).map(looks_like);
        let mut is_any_same = false;
        begin.chars().all(|a| {
            seen.next().is_some_and(|b| {
                let is_same = a == b || matches!((a, b), ('l', 'i') | ('i', 'l' | '!'));
                is_any_same |= is_same;
                is_same || !b.is_ascii()
            })
        }) && is_any_same
    })
}

/// The small letter, or the colon, that a sign looks like, if it is one of those that do; of the rest of Unicode nobody says.
fn looks_like(c: char) -> char {
    match c {
        '1' | '|' => 'l',
        '0' => 'o',
        '\u{2d0}' | '\u{2d1}' | '\u{2f8}' | '\u{589}' | '\u{5c3}' | '\u{703}' | '\u{704}' | '\u{1361}' | '\u{16ec}' => {
            ':'
        }
        '\u{17d6}' | '\u{1804}' | '\u{205a}' | '\u{2982}' | '\u{a4fd}' | '\u{fe13}' | '\u{fe30}' | '\u{1d108}' => ':',
        // Mathematical letters: alphabets, one behind the other.
        '\u{1d400}'..='\u{1d6a3}' => char::from(b'a' + ((u32::from(c) - 0x1d400) % 26) as u8),
        c => redact::narrowed(c).to_ascii_lowercase(),
    }
}

/// The same of what was done until a signal came, which was heard: a reader that does not read does not get the rest.
///
/// # Errors
///
/// As [`write_out`].
pub(crate) fn write_out_at_once(data: &[u8]) -> Result<(), Fault> {
    is_written(output::write_until(data, Some(Instant::now())).map(drop))
}

fn is_written(written: io::Result<()>) -> Result<(), Fault> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_name_begins_a_line_of_a_terminal() {
        let error = "error: forged";
        for name in [
            format!("{} {error}", "a".repeat(70)),
            format!("{}{error}", "\u{6f22}".repeat(40)),
            format!("{}error:\u{a0}forged", "a".repeat(80)),
            format!("{}error:\u{a0}forged", "1\u{fe0f}".repeat(40)),
            format!("{}>error:\u{a0}forged", "\u{644}\u{627}".repeat(40)),
            // A vowel sign, which terminals draw for itself.
            format!("{}>error:\u{a0}forged", "\u{995}\u{9be}".repeat(40)),
            format!("{}>error:\u{a0}forged", "\u{1f44b}\u{1f3fd}".repeat(40)),
            format!("{} error:\u{a0}forged {}", "a b".repeat(26), "c".repeat(200)),
        ] {
            let told = wrap_named(&name, 80);
            assert!(told.lines().all(|line| screen::width(line) <= 80), "{told}");
            assert!(told.lines().skip(1).all(|line| line.starts_with("  ")), "{told}");
            let whole: String = told.chars().filter(|c| !" \n".contains(*c)).collect();
            assert_eq!(whole, name.replace(' ', ""));
        }
        assert_eq!(wrap_named("a b", 80), "a b\n");
        assert_eq!(wrap_named("  key   value from", 16), "  key   value\n    from\n");
        assert_eq!(wrap_named("a\u{17d8}b", 1), "a\n  \u{17d8}\n  b\n");
    }

    #[test]
    fn no_terminal_makes_a_message_of_what_it_breaks() {
        let name = |begin: &str, times: usize| format!("a: {}error:\u{a0}x", begin.repeat(times));
        let like_json = |begin: &str| format!("{begin}{}error: x", "a".repeat(79));
        for (line, columns) in [
            (name("a", 77), 80),
            (name("\u{3b1}", 40), 80),
            (name("b ", 40), 80),
            (name("a", 5), 4),
            // No JSON, though it looks like it.
            (like_json("{"), 80),
            (like_json("{\"a\": \""), 80),
        ] {
            let told = broken_at(&line, columns).into_owned();
            assert!(told.lines().all(|line| screen::widest(line) <= columns), "{told}");
            assert!(told.lines().count() > 1 && told.lines().skip(1).all(|line| line.starts_with("  ")), "{told}");
        }
        let long = format!("error: {}\n", "a".repeat(90));
        assert!(matches!(broken_at(&long, 80), Cow::Borrowed(_)));
        assert!(matches!(broken_at(&name("a", 60), 80), Cow::Borrowed(_)));
    }

    /// A server may send hundreds of kilobytes of one header: a look at all of the rest from each place would have no end.
    #[test]
    fn signs_of_no_column_are_looked_at_a_few_times() {
        for sign in ["\u{301}", "e\u{301}", "\u{301}e", "er\u{301}", "\u{4e00}\u{301}\u{301}\u{301}"] {
            let all = sign.repeat(400_000 / sign.len());
            for line in [format!("X: {all}"), format!("X: {all}error: x"), format!("error{all}")] {
                let told = without_messages_within(&line, 80);
                assert!(!told.lines().skip(1).any(is_like_a_message), "{sign}");
            }
        }
    }

    #[test]
    fn what_begins_as_messages_do_is_like_one() {
        for line in ["error: x", "hint:", "relent: attempt 1\n", "\u{fe0f}error: x", "er\u{301}r\u{200d}or: x"] {
            assert!(is_like_a_message(line), "{line}");
        }
        let alike = [
            "error\u{a789} x",
            "error\u{2236} x",
            "\u{435}rror: x",
            "\u{ff45}\u{ff52}\u{ff52}\u{ff4f}\u{ff52}\u{ff1a} x",
            "\u{1d68e}\u{1d69b}\u{1d69b}\u{1d698}\u{1d69b}\u{2d0} x",
            "\u{435}\u{433}\u{433}\u{43e}\u{433}\u{205a} x",
            "reIent: x",
            "Err0r: x",
            "re|ent: x",
        ];
        for line in alike {
            assert!(is_like_a_message(line), "{line}");
        }
        for line in
            ["", "error", "errors: 5", "  error: x", "{\"error\": 1}", "\u{6570}\u{636e}\u{5e93}: a b", "f\u{fc}nf: 5"]
        {
            assert!(!is_like_a_message(line), "{line}");
        }
        assert_eq!(without_messages("error: a\nb\nhint: c\n"), "  error: a\nb\n  hint: c\n");
        assert!(matches!(without_messages("a\nb"), Cow::Borrowed(_)));
        assert_eq!([false, true].map(|is_json| answer("error: a\n", is_json)), ["  error: a\n", "error: a\n"]);
    }

    #[test]
    fn the_line_of_a_policy_is_no_longer_than_others() {
        const DELAYS: [Duration; 1000] = [Duration::from_nanos(1_000_000_001); 1000];
        let long = policy(relent::Policy::list(&DELAYS), u64::MAX);
        assert_eq!(long.chars().count(), 2_000);
        assert!(long.starts_with("relent: policy ") && long.ends_with("... seed=18446744073709551615"), "{long}");
    }

    #[test]
    fn a_name_that_a_process_has_chosen_is_no_line_of_its_own_and_moves_no_cursor() {
        let said = "still running: \x1b[31mX\nerror: Y (7)";
        assert_eq!(remarked(false, said), "relent: still running: \\u{1b}[31mX\\nerror: Y (7)");
        let event = r#"{"event":"remark","remark":"still running: \u001b[31mX\nerror: Y (7)"}"#;
        assert_eq!(remarked(true, said), event);
    }
}
