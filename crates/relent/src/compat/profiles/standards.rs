//! Standards, books and common practice.

use super::{MILLIS, NO_LIMIT, rule, secs};
use crate::Policy;
use crate::compat::{Evidence, Formula, Profile, Rounding, Spread};
use core::time::Duration;

static CONNECT_RETRY: [Duration; 7] = [secs(1), secs(2), secs(4), secs(8), secs(16), secs(32), secs(64)];
static BROWSER: Formula = Formula {
    name: "browser-reconnect",
    first: 1000.0,
    cap: 30_000.0,
    spread: Spread::Around { share: 0.2 },
    round: Rounding::Floor,
    ..MILLIS
};

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "ethernet",
        system: "IEEE 802.3 truncated binary exponential backoff, 10 Mb/s",
        version: "IEEE 802.3",
        source: "IEEE 802.3 clause 4.2.3.2.5",
        evidence: Evidence::Port,
        picks: "a slot of 51.2 us, that of 10 Mb/s",
        warning: "made for stations that hear each other: the first delay is 0 for half of them",
        policy: Policy::slots(Duration::from_nanos(51_200)),
    },
    Profile {
        name: "apue",
        system: "connect_retry of Advanced Programming in the UNIX Environment",
        version: "3rd edition",
        source: "Stevens, Rago: APUE, figure 16.10",
        evidence: Evidence::Published,
        picks: "",
        warning: "no jitter; each attempt may block as long as the system's connect does",
        policy: Policy::list(&CONNECT_RETRY),
    },
    Profile {
        name: "browser-reconnect",
        system: "floor(min(base * 2^n, cap) +- 20 %) in milliseconds, the reconnect of many browser clients",
        version: "2026",
        source: "common practice",
        evidence: Evidence::Published,
        picks: "base 1 s and cap 30 s",
        warning: "jitter exceeds the cap by a fifth, and clients that lost one server stay within 40 % of each other",
        policy: rule(&BROWSER, NO_LIMIT),
    },
];
