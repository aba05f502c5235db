//! Whether the other side speaks HTTP/2. A server of that begins with a frame of its settings (RFC 9113, 3.4); what comes of one that takes lines for
//! commands is something else. Before it is known, nothing is said that a server somewhere else has chosen: what is encoded can be any lines.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// Whether a request waits for the server's greeting: who gives it up by then knows that nothing of it is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn(Arc<AtomicU8>);

impl Turn {
    const FREE: u8 = 0;
    const WAITS: u8 = 1;
    const OVER: u8 = 2;

    /// The request waits from now on.
    pub(super) fn waits(&self) {
        self.0.store(Turn::WAITS, Ordering::SeqCst);
    }

    /// It waits no more: whether it may be sent.
    pub(super) fn comes(&self) -> bool {
        self.0.compare_exchange(Turn::WAITS, Turn::FREE, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// It is not to be sent any more, if it still waits: whether it did.
    pub(super) fn give_up(&self) -> bool {
        self.0.compare_exchange(Turn::WAITS, Turn::OVER, Ordering::SeqCst, Ordering::SeqCst) != Err(Turn::FREE)
    }
}

/// What came of the first frame's head.
#[derive(Debug, Default)]
pub(super) struct Greeting(Vec<u8>);

/// How long a frame's head is.
const HEAD: usize = 9;

impl Greeting {
    /// This comes next: whether the greeting is there with it.
    pub(super) fn hears(&mut self, bytes: &[u8]) -> bool {
        let new = bytes.len().min(HEAD - self.0.len());
        self.0.extend_from_slice(&bytes[..new]);
        matches!(self.0[..], [_, _, _, 4, flags, 0 | 0x80, 0, 0, 0] if flags & 1 == 0)
    }

    /// Whether something else came.
    pub(super) fn is_none(&self) -> bool {
        self.0.len() == HEAD && !Greeting(vec![]).hears(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_give_up_before_its_turn_is_not_sent() {
        let turn = Turn::default();
        assert!(!turn.give_up(), "it waits for nobody");
        turn.waits();
        assert!(turn.comes() && !turn.give_up());
        let turn = Turn::default();
        turn.waits();
        assert!(turn.give_up() && turn.give_up() && !turn.comes());
    }

    #[test]
    fn settings_are_a_greeting_in_whatever_pieces_they_come() {
        let came = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64behind";
        for size in [1, 2, 8, 9, 10, 100] {
            let mut greeting = Greeting::default();
            let heard = came.chunks(size).position(|piece| greeting.hears(piece));
            assert_eq!(heard, Some((HEAD - 1) / size), "in pieces of {size}");
            assert!(!greeting.is_none());
        }
        for other in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"UNKNOWN_COMMAND\r\n",
            b"\0\0\0\x04\x01\0\0\0\0",
            b"\0\0\0\x04\0\0\0\0\x01",
            b"\0\0\x08\x06\0\0\0\0\0all read",
        ] {
            for size in [1, 9, 100] {
                let mut greeting = Greeting::default();
                assert!(!other.chunks(size).any(|piece| greeting.hears(piece)), "{other:?}");
                assert!(greeting.is_none(), "{other:?}");
            }
        }
        assert!(Greeting::default().hears(b"\0\0\0\x04\0\x80\0\0\0"), "a bit is not looked at");
        let mut greeting = Greeting::default();
        assert!(!greeting.hears(b"\0\0\x06\x04") && !greeting.is_none(), "more may come");
    }
}
