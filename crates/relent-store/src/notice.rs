//! What an operator should know of, told once.

use crate::Error;
use relent::duration::Human;
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Something that an operator should know of. Shown in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The store does not answer, or lost the connection. Told once until it is [`Back`](Notice::Back).
    Away(Error),
    /// The store answers again.
    Back,
    /// Somebody came with an old fence and was refused: it slept through the end of what it held.
    Fenced,
    /// A lease of this process could not be renewed in time, or was taken over.
    LeaseLost(String),
    /// Shared state of an upstream is not shared for now; this process goes on alone with its share.
    Alone(String),
    /// Shared state of an upstream is shared again.
    Together(String),
    /// The machine's time of day leapt forward by this much; what was held then is held for as long as it was left to be.
    ClockLeapt(Duration),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Away(error) => write!(f, "the store is away: {error}"),
            Notice::Back => f.write_str("the store is back"),
            Notice::Fenced => f.write_str("somebody who had lost a claim was refused"),
            Notice::LeaseLost(name) => write!(f, "the lease {name} was lost"),
            Notice::Alone(upstream) => write!(f, "upstream {upstream}: the store is away, going on alone"),
            Notice::Together(upstream) => write!(f, "upstream {upstream}: the store is back"),
            Notice::ClockLeapt(by) => {
                write!(f, "the machine's clock leapt forward by {}: leases keep what was left of them", Human(*by))
            }
        }
    }
}

type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Notices {
    listeners: Mutex<Vec<Listener>>,
    fenced: AtomicU64,
}

impl Notices {
    pub(crate) fn listen(&self, listener: Listener) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    pub(crate) fn tell(&self, notice: &Notice) {
        if *notice == Notice::Fenced {
            self.fenced.fetch_add(1, Ordering::Relaxed);
            #[cfg(feature = "metrics")]
            count_fenced();
        }
        // A listener may listen or be slow: it is not called under the lock.
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            heedless(|| listener(notice));
        }
    }

    pub(crate) fn fenced(&self) -> u64 {
        self.fenced.load(Ordering::Relaxed)
    }
}

/// For whoever exports figures.
#[cfg(feature = "metrics")]
fn count_fenced() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let says = "Claims and leases that were refused for an old fence.";
    ONCE.call_once(|| metrics::describe_counter!("relent_fenced_total", metrics::Unit::Count, says));
    metrics::counter!("relent_fenced_total").increment(1);
}

/// Calls what is somebody else's. A panic is told by its hook, and takes nothing with it that has to go on, as a lease that is renewed.
pub(crate) fn heedless(call: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    use super::*;
    use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

    #[derive(Default)]
    struct Fenced(Arc<AtomicU64>);

    impl Recorder for Fenced {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            assert_eq!(key.name(), "relent_fenced_total");
            Counter::from_arc(self.0.clone())
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn who_is_refused_for_an_old_fence_is_a_figure() {
        let (fenced, notices) = (Fenced::default(), Notices::default());
        metrics::with_local_recorder(&fenced, || {
            for notice in [Notice::Fenced, Notice::Back, Notice::Fenced] {
                notices.tell(&notice);
            }
        });
        assert_eq!((fenced.0.load(Ordering::Relaxed), notices.fenced()), (2, 2));
    }
}
