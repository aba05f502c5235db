//! Looking for patterns in the command's output, line by line while it runs.

use regex_lite::Regex;

/// The longest line that is looked at; of a longer one, the beginning.
const LONGEST_LINE: usize = 1 << 16;

/// The patterns asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    /// Output that means the attempt has failed.
    pub(super) retry: Option<Regex>,
    /// Output without which the attempt has not succeeded.
    pub(super) until: Option<Regex>,
}

impl Patterns {
    pub(super) fn is_empty(&self) -> bool {
        self.retry.is_none() && self.until.is_none()
    }
}

/// What was found in the output of one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) retry: bool,
    pub(super) until: bool,
}

impl Found {
    pub(super) fn or(self, other: Found) -> Found {
        Found { retry: self.retry || other.retry, until: self.until || other.until }
    }
}

/// One stream under search.
#[derive(Debug)]
pub(super) struct Search<'a> {
    patterns: &'a Patterns,
    line: Vec<u8>,
    found: Found,
}

impl<'a> Search<'a> {
    pub(super) fn new(patterns: &'a Patterns) -> Search<'a> {
        Search { patterns, line: Vec::new(), found: Found::default() }
    }

    /// The next bytes of the stream.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.look();
            }
        }
    }

    /// The end of the stream: what was found.
    pub(super) fn finish(mut self) -> Found {
        if !self.line.is_empty() {
            self.look();
        }
        self.found
    }

    fn look(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        let matches = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(&line));
        let found = Found { retry: matches(&self.patterns.retry), until: matches(&self.patterns.until) };
        self.found = self.found.or(found);
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, chunks: &[&[u8]]) -> bool {
        let patterns = Patterns { retry: Some(Regex::new(pattern).unwrap()), until: None };
        let mut search = Search::new(&patterns);
        chunks.iter().for_each(|chunk| search.feed(chunk));
        search.finish().retry
    }

    #[test]
    fn finds_lines_across_chunks() {
        assert!(found("^timed out$", &[b"one\ntimed", b" out\ntwo"]));
        assert!(found("two$", &[b"one\ntwo"]));
        assert!(!found("one.two", &[b"one\ntwo"]));
        assert!(found("^$", &[b"one\n\n"]));
        assert!(!found("^$", &[b"one\n"]));
    }

    #[test]
    fn takes_any_bytes_and_long_lines() {
        assert!(found("ok", &[b"\xff\xfe ok"]));
        assert!(!found("end", &[&[b'x'; LONGEST_LINE], b"end"]));
        assert!(found("end", &[&[b'x'; 2 * LONGEST_LINE], b"\nend"]));
    }
}
