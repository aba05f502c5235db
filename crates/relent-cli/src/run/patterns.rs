//! Looking for patterns in the command's output, line by line while it runs: each byte moves an automaton one step, so
//! that a line of any length is seen whole, in memory that does not grow with it.

use crate::size::Size;
use regex_automata::{
    Anchored,
    hybrid::{
        LazyStateID,
        dfa::{Cache, DFA},
    },
    nfa::thompson,
    util::{start, syntax},
};
use std::{cell::RefCell, sync::Arc};

/// The most bytes of an automaton: repetitions of repetitions have no end.
const LARGEST: usize = 8 << 20;

/// A pattern, compiled.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Arc<DFA>);

impl Pattern {
    /// Compiles it; bytes that are no UTF-8 can be matched over.
    pub(super) fn new(text: &str) -> Result<Pattern, String> {
        let compile = |unicode: bool| {
            DFA::builder()
                .syntax(syntax::Config::new().unicode(unicode).utf8(false))
                .thompson(thompson::Config::new().utf8(false).shrink(false).nfa_size_limit(Some(LARGEST)))
                .configure(DFA::config().skip_cache_capacity_check(true))
                .build(text)
                .map_err(Box::new)
        };
        // In bytes, `\w` and `\b` are those of ASCII; classes with other letters need the other mode.
        let compiled = compile(false).or_else(|error| compile(true).map_err(|_| error));
        compiled.map(|dfa| Pattern(Arc::new(dfa))).map_err(|error| {
            let mut innermost: &dyn std::error::Error = &*error;
            while let Some(source) = innermost.source() {
                innermost = source;
            }
            let text = innermost.to_string();
            if text.contains("exceeded limit of") || text.contains("size limit") {
                return format!("the pattern is larger than {}", Size(LARGEST as u64));
            }
            text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }
}

/// The patterns asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    /// Output that means the attempt has failed.
    pub(super) retry: Option<Pattern>,
    /// Output without which the attempt has not succeeded.
    pub(super) until: Option<Pattern>,
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
    retry: Option<Line<'a>>,
    until: Option<Line<'a>>,
    /// How many bytes take little time, whatever they are.
    pub(super) bit: usize,
}

/// The bytes of an automaton and of what it reads, multiplied, that take some hundredths of a second where each byte takes it to another state: one
/// of [`LARGEST`] took 13 ms a byte.
const LITTLE: usize = 2 * LARGEST;
/// The most bytes at once: most automata are small.
const BIT: usize = 1 << 8;

impl<'a> Search<'a> {
    pub(super) fn new(patterns: &'a Patterns) -> Search<'a> {
        let line = |pattern: &'a Option<Pattern>| pattern.as_ref().map(Line::new);
        let size = |pattern: &Pattern| pattern.0.get_nfa().memory_usage();
        let sizes: usize = patterns.retry.iter().chain(&patterns.until).map(size).sum();
        let bit = (LITTLE / sizes.max(1)).clamp(1, BIT);
        Search { retry: line(&patterns.retry), until: line(&patterns.until), bit }
    }

    /// The next bytes of the stream.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for line in self.retry.iter_mut().chain(&mut self.until) {
            line.feed(bytes);
        }
    }

    /// What was found so far.
    pub(super) fn found(&self) -> Found {
        let found = |line: &Option<Line<'_>>| line.as_ref().is_some_and(|line| line.found);
        Found { retry: found(&self.retry), until: found(&self.until) }
    }

    /// The end of the stream: what was found.
    pub(super) fn finish(self) -> Found {
        let found = |line: Option<Line<'_>>| line.is_some_and(Line::finish);
        Found { retry: found(self.retry), until: found(self.until) }
    }
}

/// The line that is being read, as far as one pattern goes.
#[derive(Debug)]
struct Line<'a> {
    dfa: &'a DFA,
    cache: RefCell<Cache>,
    /// Where the automaton is; none before the first byte of a line, and when the line can match no more.
    state: Option<LazyStateID>,
    is_begun: bool,
    found: bool,
}

impl<'a> Line<'a> {
    fn new(pattern: &'a Pattern) -> Line<'a> {
        let cache = RefCell::new(pattern.0.create_cache());
        Line { dfa: &pattern.0, cache, state: None, is_begun: false, found: false }
    }

    fn feed(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.found {
                return;
            }
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            self.step(text);
            if ends {
                self.end();
            }
        }
    }

    /// The end of the stream: whether any line matched.
    fn finish(mut self) -> bool {
        if self.is_begun && !self.found {
            self.end();
        }
        self.found
    }

    fn step(&mut self, text: &[u8]) {
        self.begin();
        let mut cache = self.cache.borrow_mut();
        for byte in text {
            let Some(state) = self.state else { return };
            // The cache is emptied as often as it takes, so there is always a next state.
            self.state = self.dfa.next_state(&mut cache, state, *byte).ok();
            match self.state {
                Some(state) if state.is_match() => {
                    self.found = true;
                    return;
                }
                Some(state) if state.is_dead() || state.is_quit() => self.state = None,
                _ => {}
            }
        }
    }

    fn begin(&mut self) {
        if !self.is_begun {
            let begin = start::Config::new().anchored(Anchored::No);
            self.state = self.dfa.start_state(&mut self.cache.borrow_mut(), &begin).ok();
            self.is_begun = true;
        }
    }

    fn end(&mut self) {
        self.begin();
        if let Some(state) = self.state {
            let last = self.dfa.next_eoi_state(&mut self.cache.borrow_mut(), state);
            self.found |= last.is_ok_and(|last| last.is_match());
        }
        self.is_begun = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, chunks: &[&[u8]]) -> bool {
        let patterns = Patterns { retry: Some(Pattern::new(pattern).unwrap()), until: None };
        let mut search = Search::new(&patterns);
        chunks.iter().for_each(|chunk| search.feed(chunk));
        search.finish().retry
    }

    #[test]
    fn finds_lines_across_chunks() {
        assert!(found("^timed out$", &[b"one\ntimed", b" out\ntwo"]));
        assert!(found("two$", &[b"one\ntwo"]));
        assert!(!found("one.two", &[b"one\ntwo"]));
        assert!(!found("one[^x]two", &[b"one\ntwo"]));
        assert!(found("^$", &[b"one\n\n"]));
        assert!(!found("^$", &[b"one\n"]));
        assert!(!found("^two", &[b"one", b"two\n"]));
        assert!(found(r"\bup\b", &[b"it is u", b"p now"]));
        assert!(found("a.{3}z", &[b"a", b"bc", b"dz\n"]));
    }

    #[test]
    fn takes_any_bytes_and_lines_of_any_length() {
        assert!(found("ok", &[b"\xff\xfe ok"]));
        let long = vec![b'x'; 1 << 20];
        assert!(found("end$", &[&long, &long, b"end\n"]));
        assert!(found("^begin.*end$", &[b"begin", &long, &long, b"end\n"]));
        assert!(!found("^end", &[&long, b"end\n"]));
        assert!(found("end", &[&long, b"\nend"]));
    }

    #[test]
    fn letters_of_any_language_are_letters() {
        assert!(found("größer", &["viel größer".as_bytes()]));
        assert!(found("[äö]l", &["öl".as_bytes()]));
        assert!(found("(?i)READY", &[b"ready"]));
    }

    /// However they are meant: the more states a byte may lead to, the more often is looked whether time is up.
    #[test]
    fn the_larger_the_automata_the_less_is_searched_at_once() {
        let bit = |pattern: &str, other: Option<&str>| {
            let [retry, until] = [Some(pattern), other].map(|text| text.map(|text| Pattern::new(text).unwrap()));
            Search::new(&Patterns { retry, until }).bit
        };
        assert_eq!((bit("timed out|refused", Some("^ok$")), bit(r"\w{3}", None)), (BIT, BIT));
        let large = "(?:x{0,382}){0,300}y";
        assert!(bit(large, None) <= 4 && bit(large, Some(large)) <= 2, "{}", bit(large, None));
        assert!((5..100).contains(&bit("(?:x{0,100}){0,100}y", None)));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        assert!(Pattern::new("(").is_err());
        assert!(Pattern::new("(?=x)").is_err());
    }
}
