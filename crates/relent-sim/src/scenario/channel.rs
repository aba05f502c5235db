//! Shared channels: who talks at the same time as another is not heard.

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

impl Windows {
    /// All strategies with the parameters of the literature.
    pub const ALL: [Windows; 7] = [
        Windows::Beb,
        Windows::Exponential(1.5),
        Windows::Quadratic,
        Windows::LogBackoff,
        Windows::LogLogBackoff,
        Windows::Sawtooth,
        Windows::Fixed,
    ];

    /// The least factor of exponential windows: with less, windows of one slot follow each other for ever and a day.
    pub const LEAST_FACTOR: f64 = 1.01;

    /// The name in flags and files: `beb`, `exp` (`exp=1.5`), `quad`, `lb`, `llb`, `stb`, `fixed`.
    pub fn name(self) -> String {
        match self {
            Windows::Beb => "beb".into(),
            Windows::Exponential(factor) => format!("exp={factor}"),
            Windows::Quadratic => "quad".into(),
            Windows::LogBackoff => "lb".into(),
            Windows::LogLogBackoff => "llb".into(),
            Windows::Sawtooth => "stb".into(),
            Windows::Fixed => "fixed".into(),
        }
    }

    /// The strategy of this name.
    pub fn parse(name: &str) -> Option<Windows> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "beb" => Windows::Beb,
            "quad" | "quadratic" => Windows::Quadratic,
            "lb" => Windows::LogBackoff,
            "llb" => Windows::LogLogBackoff,
            "stb" | "sawtooth" => Windows::Sawtooth,
            "fixed" | "fixed_n" => Windows::Fixed,
            _ => {
                let factor = name.strip_prefix("exp")?.trim_start_matches(['=', ':', '(']).trim_end_matches(')');
                let factor: f64 = if factor.is_empty() { 1.5 } else { factor.parse().ok()? };
                let growing = (Windows::LEAST_FACTOR..=1e6).contains(&factor);
                return growing.then_some(Windows::Exponential(factor));
            }
        })
    }
}

impl Access {
    /// The name in the output: `aloha p=0.1`, `dcf w=32 m=5`.
    pub fn name(self) -> String {
        match self {
            Access::Persistent(p) if p < 1e-6 => format!("aloha p={p:e}"),
            Access::Persistent(p) => format!("aloha p={p}"),
            Access::Dcf { window, stages } => format!("dcf w={window} m={stages}"),
        }
    }
}
