//! The work that every simulator does: a herd of clients that lost their connection at one moment.
//!
//! The round trip is 10 ms. The server needs the same time for every request, so that all would be served in 20 s, and
//! has room for a second of work; who finds it full is refused at once and comes back after exponential backoff with
//! full jitter. The server's line is arithmetic, not events of its own: one event an attempt, which is kind to queues
//! of events.

use relent::rng::{draw, mix, scale};
use serde::{Deserialize, Serialize};

const SECOND: u64 = 1_000_000_000;
/// From a client to the server, or back.
pub(crate) const ONE_WAY: u64 = SECOND / 200;
const BASE: u64 = SECOND / 10;
const CAP: u64 = 10 * SECOND;

/// The server, and the bare formula of the delays: what the peers' events call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Herd {
    pub(crate) clients: u32,
    seed: u64,
    service: u64,
    free_at: u64,
    pub(crate) attempts: u64,
}

impl Herd {
    pub(crate) fn new(clients: u32, seed: u64) -> Herd {
        Herd { clients, seed, service: 20 * SECOND / u64::from(clients), free_at: 0, attempts: 0 }
    }

    /// An arrival at the server: nothing, or how long until the same client's next one.
    #[inline]
    pub(crate) fn arrive(&mut self, now: u64, client: u32, failures: u32) -> Option<u64> {
        self.attempts += 1;
        let room = (u64::from(self.clients) / 20).saturating_sub(1);
        if self.free_at.saturating_sub(now) > room * self.service {
            let draw = draw(mix(self.seed ^ mix(u64::from(client))), failures + 1);
            let width = CAP.min(BASE << failures.min(20));
            return Some(2 * ONE_WAY + scale(draw, width));
        }
        self.free_at = self.free_at.max(now) + self.service;
        None
    }

    pub(crate) fn result(&self) -> Done {
        Done { attempts: self.attempts, drained: self.free_at + ONE_WAY, questions: 0 }
    }
}

/// What came out: the same, or nearly, from everybody.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) attempts: u64,
    /// When the last client was connected, in nanoseconds.
    pub(crate) drained: u64,
    /// How often somebody asked whether an attempt may be made, where that is counted: attempts, and what clients' own machines
    /// refused or put off.
    pub(crate) questions: u64,
}
