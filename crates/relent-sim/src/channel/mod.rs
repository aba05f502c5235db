//! A shared channel: who talks at the same time as another is not heard.

pub(crate) mod batch;
pub(crate) mod ethernet;
pub(crate) mod saturated;
pub mod theory;

use std::time::Duration;

/// A batch of packets, each sent in one slot of each window until it is alone in its slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Packets.
    pub packets: u64,
    /// How the windows grow: each of these is tried.
    pub windows: Vec<Windows>,
}

/// How the windows of a batch grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Windows {
    /// 1, 2, 4, 8 ...
    Beb,
    /// The whole part of `r^k`.
    Exponential(f64),
    /// 1, 4, 9, 16 ...
    Quadratic,
    /// Each window is `1 + 1/lg w` times the one before.
    LogBackoff,
    /// Each window is `1 + 1/lg lg w` times the one before.
    LogLogBackoff,
    /// Sawtooth: for i of 1, 2, 4 ... the windows i, i/2 ... 1.
    Sawtooth,
    /// Always as many slots as packets.
    Fixed,
}

/// Stations on an 802.3 segment, each with frames to send at the same moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Ethernet {
    /// Stations.
    pub stations: u64,
    /// Slots that a frame occupies.
    pub frame_slots: u64,
    /// The length of a slot.
    pub slot: Duration,
    /// Whether the first station has a new frame as soon as one is through (capture effect).
    pub capture: bool,
}

/// Stations that always have something to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Saturated {
    /// Stations.
    pub stations: u64,
    /// How they share the channel.
    pub access: Access,
    /// Slots simulated.
    pub slots: u64,
}

/// How saturated stations share the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Slotted ALOHA: each sends in each slot with this probability.
    Persistent(f64),
    /// 802.11 DCF: windows double from `window` over `stages` stages.
    Dcf {
        /// The first window, in slots.
        window: u64,
        /// How often it doubles.
        stages: u32,
    },
}
