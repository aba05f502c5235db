//! Whether the other side has read all of a request of HTTP/2. It is asked behind the end of one (RFC 9113, 6.7), and answers what it reads in
//! its order.

/// What is written.
pub(super) const QUESTION: [u8; 17] = *b"\0\0\x08\x06\0\0\0\0\0all read";

/// What comes back.
const ANSWER: [u8; 17] = *b"\0\0\x08\x06\x01\0\0\0\0all read";

/// What came last, in which the answer may have begun.
#[derive(Default)]
pub(super) struct Asked(Vec<u8>);

impl Asked {
    /// This comes next: whether the answer is there with it.
    pub(super) fn hears(&mut self, bytes: &[u8]) -> bool {
        self.0.extend_from_slice(bytes);
        let is_answered = self.0.windows(ANSWER.len()).any(|came| came == ANSWER);
        self.0.drain(..self.0.len().saturating_sub(ANSWER.len() - 1));
        is_answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_in_whatever_pieces_it_comes() {
        let came = [b"before\0\0\x08\x06", &ANSWER[..], b"behind"].concat();
        let end = came.len() - b"behind".len();
        for size in [1, 2, 16, 17, 18, 100] {
            let mut asked = Asked::default();
            let heard = came.chunks(size).position(|piece| asked.hears(piece));
            assert_eq!(heard, Some((end - 1) / size), "in pieces of {size}");
        }
        assert!(!Asked::default().hears(&QUESTION));
    }
}
