//! What a client writes in HTTP/2, followed from frame to frame (RFC 9113, 4.1): whether its request has come to its end.

/// As far as it has been written.
pub(super) struct Frames {
    /// What is left of the greeting, or of a frame whose head is known.
    left: usize,
    /// The head of the next frame, and how much of it is there.
    head: [u8; HEAD],
    have: usize,
    /// Whether the frame has some of a body.
    is_data: bool,
    /// Whether it is the last of the request.
    is_last: bool,
    has_ended: bool,
}

const GREETING: usize = 24;
const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

impl Default for Frames {
    fn default() -> Frames {
        Frames { left: GREETING, head: [0; HEAD], have: 0, is_data: false, is_last: false, has_ended: false }
    }
}

impl Frames {
    /// This is written next: whether some of a body is.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) -> bool {
        let mut has_body = false;
        loop {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            has_body |= self.is_data && skipped > 0;
            bytes = &bytes[skipped..];
            if self.left > 0 {
                return has_body;
            }
            self.has_ended |= self.is_last;
            self.is_last = false;
            let Some((byte, rest)) = bytes.split_first() else { return has_body };
            self.head[self.have] = *byte;
            self.have += 1;
            bytes = rest;
            if self.have == HEAD {
                self.have = 0;
                let [a, b, c, kind, flags, ..] = self.head;
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
                self.is_data = kind == DATA;
                self.is_last = [DATA, HEADERS].contains(&kind) && flags & END_STREAM != 0;
            }
        }
    }

    /// Whether all of the request is written.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    #[test]
    fn a_request_ends_with_the_last_byte_of_its_last_frame() {
        const SETTINGS: u8 = 4;
        const END_HEADERS: u8 = 4;
        const ACK: u8 = 1;
        let greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let begun = [
            &greeting[..],
            &frame(SETTINGS, 0, 0, &[0; 6]),
            &frame(SETTINGS, ACK, 0, &[]),
            &frame(HEADERS, END_HEADERS, 1, &[0, 9, 0, 1, 7]),
            &frame(DATA, 0, 1, &[0; 20]),
        ]
        .concat();
        for (last, kind) in [(&b"the end"[..], DATA), (b"", DATA), (b"trailers", HEADERS)] {
            let all = [&begun[..], &frame(kind, END_STREAM, 1, last)].concat();
            for size in [1, 2, 8, 9, 10, 1000] {
                let mut frames = Frames::default();
                let before = &all[..all.len() - 1];
                before.chunks(size).for_each(|piece| _ = frames.follow(piece));
                assert!(!frames.has_ended(), "{kind} in pieces of {size}");
                frames.follow(&all[all.len() - 1..]);
                assert!(frames.has_ended(), "{kind} in pieces of {size}");
                frames.follow(&frame(SETTINGS, ACK, 0, &[]));
                assert!(frames.has_ended());
            }
        }
    }

    #[test]
    fn what_is_none_of_a_body_is_known() {
        const PING: u8 = 6;
        let mut frames = Frames::default();
        assert!(!frames.follow(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        assert!(!frames.follow(&frame(HEADERS, 0, 1, &[0; 20])));
        let data = frame(DATA, 0, 1, &[0; 20]);
        assert!(!frames.follow(&data[..HEAD]));
        assert!(frames.follow(&data[HEAD..HEAD + 1]) && frames.follow(&data[HEAD + 1..]));
        assert!(!frames.follow(&frame(PING, 1, 0, &[0; 8])));
        assert!(!frames.follow(&frame(DATA, END_STREAM, 1, &[])));
    }
}
