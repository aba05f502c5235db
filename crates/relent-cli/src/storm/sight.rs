//! What is seen while herds storm, told by servers and clients to whoever watches.

use relent_sim::Seen;
use std::{
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

/// Something that was seen.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    /// Of which herd.
    pub(super) herd: usize,
    /// How long after it was let loose.
    pub(super) at: Duration,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Seen(Seen),
    /// An attempt did not come through to the server, for this reason.
    Broken(String),
}

/// Where those of one herd tell what they see.
#[derive(Clone, Debug)]
pub(super) struct Witness {
    pub(super) herd: usize,
    /// When the herd is let loose.
    pub(super) begins: Instant,
    pub(super) news: Sender<Sight>,
}

impl Witness {
    pub(super) fn now(&self) -> Duration {
        self.begins.elapsed()
    }

    pub(super) fn see(&self, at: Duration, seen: Seen) {
        self.tell(at, What::Seen(seen));
    }

    pub(super) fn tell(&self, at: Duration, what: What) {
        // When nobody listens any more, the storm is over.
        let _ = self.news.send(Sight { herd: self.herd, at, what });
    }
}
