//! What is wrong with a policy file, and where: the line with a caret under it.

use super::bad_setting::BadSetting;
use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    string::{String, ToString},
};

/// A range of bytes of the text.
pub(super) type Span = Range<usize>;

/// Why a text is no policy file. Shown, it has the line in question with a caret under it; the [`hint`] is apart.
///
/// [`hint`]: ConfigError::hint
///
/// ```
/// use relent::config::Config;
///
/// let error = Config::parse("[policy.read]\nbsae = \"1s\"").unwrap_err();
/// assert_eq!(error.to_string(), r#"there is no key "bsae"
///  --> 2:1
///   |
/// 2 | bsae = "1s"
///   | ^^^^"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    file: Option<PathBuf>,
    bad: BadSetting,
    place: Option<Box<Place>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
    width: usize,
    /// The line up to the place, as it is shown.
    before: String,
    source: String,
}

/// What a reader of TOML says, with words for the signs that it wants: a quotation mark alone is read as the beginning of a quotation.
fn in_words(problem: String) -> String {
    const SIGNS: [(&str, &str); 4] = [
        ("`\"\"\"`", "three quotation marks"),
        ("`\"`", "a quotation mark"),
        ("`'''`", "three apostrophes"),
        ("`'`", "an apostrophe"),
    ];
    match problem.contains("`\"") || problem.contains("`'") {
        true => SIGNS.iter().fold(problem, |text, (sign, word)| text.replace(sign, word)),
        false => problem,
    }
}

impl ConfigError {
    pub(super) fn at(text: &str, span: Span, bad: BadSetting) -> ConfigError {
        ConfigError { file: None, bad, place: Some(Box::new(Place::of(text, span))) }
    }

    /// A mistake at a place of a text, for whoever reads other tables of a policy file. `span` is in bytes.
    ///
    /// ```
    /// let error = relent::config::ConfigError::place("port = 0", 7..8, "no port is zero", "8080 is usual");
    /// assert_eq!((error.line(), error.column(), error.hint()), (Some(1), Some(8), "8080 is usual"));
    /// ```
    pub fn place(text: &str, span: Range<usize>, problem: impl Into<String>, hint: impl Into<String>) -> ConfigError {
        ConfigError::at(text, span, BadSetting::new(in_words(problem.into()), hint))
    }

    /// A mistake about a file as a whole.
    ///
    /// ```
    /// # use relent::config::ConfigError;
    /// # use std::path::Path;
    /// let error = ConfigError::whole(Path::new("relent.toml"), "the file is empty", "write [policy]");
    /// assert_eq!((error.line(), error.problem()), (None, "the file is empty"));
    /// ```
    pub fn whole(path: &Path, problem: impl Into<String>, hint: impl Into<String>) -> ConfigError {
        ConfigError { file: Some(path.to_owned()), bad: BadSetting::new(problem, hint), place: None }
    }

    pub(super) fn of_file(path: &Path, problem: String) -> ConfigError {
        let hint = "a policy file is named by --policy FILE or FILE#NAME";
        ConfigError { file: Some(path.to_owned()), bad: BadSetting::new(problem, hint), place: None }
    }

    /// The same mistake, with the file it is in.
    ///
    /// ```
    /// # use relent::config::Config;
    /// # use std::path::Path;
    /// let error = Config::parse("[policy]\nbsae = '1s'").unwrap_err().in_file(Path::new("relent.toml"));
    /// assert!(error.to_string().contains("relent.toml:2:1"));
    /// ```
    #[must_use]
    pub fn in_file(self, path: &Path) -> ConfigError {
        ConfigError { file: Some(path.to_owned()), ..self }
    }

    /// What is wrong, in one line.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let error = Config::parse("[policy]\nbsae = '1s'").unwrap_err();
    /// assert_eq!(error.problem(), "there is no key \"bsae\"");
    /// ```
    pub fn problem(&self) -> &str {
        &self.bad.problem
    }

    /// What to write instead.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let error = Config::parse("[policy]\nmax_attemps = 3").unwrap_err();
    /// assert_eq!(error.hint(), "did you mean \"max_attempts\"?");
    /// ```
    pub fn hint(&self) -> &str {
        &self.bad.hint
    }

    /// The key in question, where it is one that is known.
    ///
    /// ```
    /// # use relent::config::Config;
    /// assert_eq!(Config::parse("[policy]\ncap = '1ms'").unwrap_err().key(), Some("cap"));
    /// ```
    pub fn key(&self) -> Option<&'static str> {
        self.bad.key
    }

    /// The line, from 1.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let error = Config::parse("[policy]\nbsae = '1s'").unwrap_err();
    /// assert_eq!((error.line(), error.column()), (Some(2), Some(1)));
    /// ```
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.line)
    }

    /// The character of the line, from 1.
    ///
    /// ```
    /// # use relent::config::Config;
    /// assert_eq!(Config::parse("[policy]\n  bsae = '1s'").unwrap_err().column(), Some(3));
    /// ```
    pub fn column(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.column)
    }
}

/// Text of the file as it may be shown: nothing that a terminal obeys, that turns the reading order around or that ends
/// the line is left, but tabs.
fn shown(text: &str) -> String {
    let is_hostile = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hostile(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

impl Place {
    fn of(text: &str, span: Span) -> Place {
        let start = floor(text, span.start.min(text.len()));
        let end = floor(text, span.end.clamp(start, text.len()));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        Place {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: shown(&text[start..end.min(line_end).max(start)]).chars().count().max(1),
            before: shown(&text[line_start..start]),
            source: shown(text[line_start..line_end].trim_end()),
        }
    }

    /// The caret's line: tabs stay tabs, so that it stands under what it means.
    fn carets(&self) -> String {
        let mut line: String = self.before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        line.extend(std::iter::repeat_n('^', self.width));
        line
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.bad.problem))?;
        let Some(place) = &self.place else { return Ok(()) };
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        write!(f, "\n{margin}--> ")?;
        if let Some(file) = &self.file {
            write!(f, "{}:", shown(&file.display().to_string()))?;
        }
        write!(f, "{}:{}", place.line, place.column)?;
        write!(f, "\n{margin} |\n{number} | {}\n{margin} | {}", place.source, place.carets())
    }
}

impl std::error::Error for ConfigError {}
