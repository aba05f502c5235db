//! Where one answer of a Redis server ends and the next begins, and how large it may be.
//!
//! The client's parser believes what it is told: it makes room for as many values as an answer says it has, and waits for as
//! many bytes. So what comes is looked at before, for its outline alone.

use crate::MAX_VALUE;

/// How many bytes one answer may have: a value, and what is said about it.
pub(super) const MAX_ANSWER: u64 = MAX_VALUE as u64 + (1 << 20);

/// How many values an answer may have, inner ones included.
const MAX_VALUES: u64 = 65_536;

/// How deep values may be within values.
const MAX_DEPTH: usize = 8;

/// How long a line may be, in bytes: a word, a number, or what is wrong.
const MAX_LINE: usize = 65_536;

/// How long a number may be, in characters.
const MAX_NUMBER: usize = 24;

/// What is no answer, or too large for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// Reads the outline of what comes, in pieces of any size.
#[derive(Debug)]
pub(super) struct Frames {
    /// How many came to their end.
    pub(super) complete: u64,
    /// How many bytes each may have.
    most: u64,
    state: State,
    /// Of a number, what has come.
    text: Vec<u8>,
    /// For each value that has others in it, how many of these are still to come.
    inside: Vec<u64>,
    /// Of the present one.
    bytes: u64,
    values: u64,
}

#[derive(Debug, Default)]
enum State {
    /// A value begins.
    #[default]
    Kind,
    /// A line that counts for nothing: how long it is, and whether its last byte was a carriage return.
    Line { length: usize, is_ending: bool },
    /// A line with the number of bytes or values that follow.
    Number { kind: u8 },
    /// So many bytes, and an end of line.
    Bytes { left: u64 },
}

impl Default for Frames {
    fn default() -> Frames {
        Frames::of_at_most(MAX_ANSWER)
    }
}

impl Frames {
    /// None of which may have more bytes.
    pub(super) fn of_at_most(most: u64) -> Frames {
        Frames { complete: 0, most, state: State::Kind, text: Vec::new(), inside: Vec::new(), bytes: 0, values: 0 }
    }

    /// Reads on.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Nonsense> {
        while let Some(&first) = bytes.first() {
            let used = match &mut self.state {
                State::Kind => {
                    self.values += 1;
                    self.state = match first {
                        b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => State::Line { length: 0, is_ending: false },
                        b'$' | b'!' | b'=' | b'*' | b'~' | b'%' | b'|' | b'>' => {
                            self.text.clear();
                            State::Number { kind: first }
                        }
                        _ => return Err(Nonsense),
                    };
                    1
                }
                State::Line { length, is_ending } => {
                    let end = bytes.iter().position(|&byte| byte == b'\n');
                    let used = end.map_or(bytes.len(), |end| end + 1);
                    *length += used;
                    if *length > MAX_LINE {
                        return Err(Nonsense);
                    }
                    match end {
                        Some(0) if *is_ending => self.ended(),
                        Some(end) if end > 0 && bytes[end - 1] == b'\r' => self.ended(),
                        Some(_) => *is_ending = false,
                        None => *is_ending = bytes.last() == Some(&b'\r'),
                    }
                    used
                }
                State::Number { kind } => {
                    let text = &mut self.text;
                    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1);
                    if text.len() + end > MAX_NUMBER {
                        return Err(Nonsense);
                    }
                    text.extend_from_slice(&bytes[..end]);
                    if text.ends_with(b"\r\n") {
                        let (kind, number) = (*kind, number(text)?);
                        self.counted(kind, number)?;
                    }
                    end
                }
                State::Bytes { left } => {
                    let used = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= used as u64;
                    if *left == 0 {
                        self.ended();
                    }
                    used
                }
            };
            self.bytes += used as u64;
            if self.bytes > self.most || self.values > MAX_VALUES {
                return Err(Nonsense);
            }
            if self.inside.is_empty() && matches!(self.state, State::Kind) {
                (self.bytes, self.values) = (0, 0);
            }
            bytes = &bytes[used..];
        }
        Ok(())
    }

    /// A value says how much follows.
    fn counted(&mut self, kind: u8, number: i64) -> Result<(), Nonsense> {
        let is_absent = number < 0 && matches!(kind, b'$' | b'*' | b'~' | b'>');
        if is_absent {
            self.ended();
            return Ok(());
        }
        let number = u64::try_from(number).map_err(|_| Nonsense)?;
        let inner = match kind {
            b'$' | b'!' | b'=' if number <= self.most => {
                self.state = State::Bytes { left: number + 2 };
                return Ok(());
            }
            b'*' | b'~' | b'>' => number,
            b'%' => number.saturating_mul(2),
            b'|' => number.saturating_mul(2).saturating_add(1),
            _ => return Err(Nonsense),
        };
        if inner > MAX_VALUES || self.inside.len() >= MAX_DEPTH {
            return Err(Nonsense);
        }
        if inner == 0 {
            self.ended();
        } else {
            self.inside.push(inner);
            self.state = State::Kind;
        }
        Ok(())
    }

    /// A value has come to its end, and with it those whose last it is.
    fn ended(&mut self) {
        self.state = State::Kind;
        while let Some(left) = self.inside.last_mut() {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.inside.pop();
        }
        self.complete += 1;
    }
}

fn number(line: &[u8]) -> Result<i64, Nonsense> {
    let text = std::str::from_utf8(line).map_err(|_| Nonsense)?;
    text.trim().parse().map_err(|_| Nonsense)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*, sample::select};

    /// How many are complete after these bytes, in one piece and in pieces of one byte.
    fn complete(bytes: &[u8]) -> Result<u64, Nonsense> {
        let mut whole = Frames::default();
        let answer = whole.read(bytes).map(|()| whole.complete);
        let mut sliced = Frames::default();
        let slices = bytes.chunks(1).try_for_each(|byte| sliced.read(byte)).map(|()| sliced.complete);
        assert_eq!(answer, slices, "{}", bytes.escape_ascii());
        answer
    }

    #[test]
    fn answers_end_where_they_end() {
        for (bytes, frames) in [
            (&b"+OK\r\n"[..], 1),
            (b"+a\nb\rc\r\n", 1),
            (b"-ERR no\r\n:17\r\n", 2),
            (b"$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n", 4),
            (b"$5\r\n+OK\r\n\r\n", 1),
            (b"$5\r\n+OK\r\n", 0),
            (b"*2\r\n*1\r\n:1\r\n$1\r\n\n\r\n", 1),
            (b"*2\r\n*1\r\n:1\r\n", 0),
            (b"%1\r\n+a\r\n:1\r\n|1\r\n+a\r\n:1\r\n+OK\r\n~1\r\n_\r\n", 3),
            (b"=7\r\ntxt:abc\r\n#t\r\n,1.5\r\n(123\r\n!3\r\nERR\r\n", 5),
            (b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", 1),
        ] {
            assert_eq!(complete(bytes), Ok(frames), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_too_much_is_seen_before_it_comes() {
        for bytes in [
            &b"$4000000000\r\n"[..],
            b"$17825793\r\n",
            b"*65537\r\n",
            b"*4000000000\r\n",
            b"%40000\r\n",
            b"%9223372036854775807\r\n",
            b"!-1\r\n",
            b"$99999999999999999999999999",
            b"$1e9\r\n",
            b"$\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        ] {
            assert_eq!(complete(bytes), Err(Nonsense), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_comes_without_end_is_seen_when_it_is_too_much() {
        let line = vec![b'a'; 1 << 10];
        let mut frames = Frames::default();
        frames.read(b"+").unwrap();
        let pieces = (0..100).take_while(|_| frames.read(&line).is_ok()).count();
        assert_eq!(pieces, 64);
        // The values of all the arrays of one answer are counted together.
        let mut frames = Frames::default();
        frames.read(b"*60000\r\n").unwrap();
        let arrays =
            (0..100).take_while(|_| frames.read(format!("*1000\r\n{}", ":1\r\n".repeat(1000)).as_bytes()).is_ok());
        assert_eq!(arrays.count(), 65);
    }

    #[test]
    fn a_largest_value_passes_and_the_next_answer_is_counted_anew() {
        let mut frames = Frames::default();
        for nth in 1..=3 {
            frames.read(format!("*2\r\n$1\r\n7\r\n${MAX_VALUE}\r\n").as_bytes()).unwrap();
            frames.read(&vec![b'$'; MAX_VALUE]).unwrap();
            frames.read(b"\r\n").unwrap();
            assert_eq!(frames.complete, nth);
        }
    }

    /// Answers as servers make them.
    fn answer() -> impl Strategy<Value = Vec<u8>> {
        let line = |kind: &'static str, text: &'static str| {
            text.prop_map(move |text: String| format!("{kind}{text}\r\n").into_bytes())
        };
        let bulk = |kind: &'static str, before: &'static str| {
            vec(any::<u8>(), 0..40).prop_map(move |bytes| {
                let head = format!("{kind}{}\r\n{before}", before.len() + bytes.len());
                [head.as_bytes(), &bytes, b"\r\n"].concat()
            })
        };
        let leaf = prop_oneof![
            line("+", "[a-z\n$*]{0,9}"),
            line("-", "ERR [a-z]{0,9}"),
            line(":", "-?[0-9]{1,18}"),
            line("#", "[tf]"),
            line(",", "[0-9]{1,5}[.][0-9]{1,5}"),
            line("(", "[1-9][0-9]{0,30}"),
            select(vec![b"_\r\n".to_vec(), b"$-1\r\n".to_vec(), b"*-1\r\n".to_vec()]),
            bulk("$", ""),
            bulk("=", "txt:"),
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            (select(vec!["*", "~", "%"]), vec(inner, 0..5)).prop_map(|(kind, mut inner)| {
                inner.truncate(if kind == "%" { inner.len() / 2 * 2 } else { inner.len() });
                let number = if kind == "%" { inner.len() / 2 } else { inner.len() };
                [format!("{kind}{number}\r\n").into_bytes(), inner.concat()].concat()
            })
        })
    }

    proptest! {
        /// Else a server could send more than is counted.
        #[test]
        fn an_answer_ends_where_it_ends_for_the_client(answers in vec(answer(), 1..4)) {
            for answer in &answers {
                prop_assert!(redis::parse_redis_value(answer).is_ok(), "{}", answer.escape_ascii());
            }
            prop_assert_eq!(complete(&answers.concat()), Ok(answers.len() as u64));
        }

        #[test]
        fn what_is_an_answer_for_the_client_is_counted_or_refused(
            answer in answer(),
            changes in vec((any::<prop::sample::Index>(), select(b"\0\r\n$*~%|>!=+-:_,#(0129 .?\xff".to_vec())), 1..4),
        ) {
            let mut answer = answer;
            for (at, byte) in changes {
                let at = at.index(answer.len());
                answer[at] = byte;
            }
            let outline = complete(&answer);
            if redis::parse_redis_value(&answer).is_ok() {
                prop_assert!(outline != Ok(0), "{}", answer.escape_ascii());
            }
        }
    }
}
