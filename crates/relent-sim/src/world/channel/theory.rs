//! What theory says about shared channels, to compare simulations with.

/// The solution of Bianchi's model of the 802.11 DCF under saturation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bianchi {
    /// The probability that a station sends in a slot.
    pub tau: f64,
    /// The probability that a transmission collides.
    pub collision: f64,
    /// Successes a slot.
    pub success: f64,
}

/// Bianchi's model for `stations`, a first window of `window` slots and `stages` doublings.
///
/// Source: Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE JSAC 18(3), 2000.
///
/// ```
/// let solved = relent_sim::theory::bianchi(10, 32, 5);
/// assert!((solved.tau - 0.037305).abs() < 1e-6 && (solved.success - 0.26495).abs() < 1e-5);
/// ```
pub fn bianchi(stations: u64, window: u64, stages: u32) -> Bianchi {
    let (others, w) = (stations.saturating_sub(1) as f64, window as f64);
    // A geometric sum rather than (1 - (2p)^m) / (1 - 2p), which is 0/0 at p = 1/2.
    let send = |p: f64| {
        let sum: f64 = (0..stages).map(|stage| (2.0 * p).powi(stage as i32)).sum();
        2.0 / (1.0 + w + p * w * sum)
    };
    // The station sends less the more collisions there are, and collisions grow with sending: one crossing.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let p = f64::midpoint(low, high);
        if 1.0 - (1.0 - send(p)).powf(others) > p { low = p } else { high = p }
    }
    let (tau, collision) = (send(low), low);
    Bianchi { tau, collision, success: stations as f64 * tau * (1.0 - tau).powf(others) }
}

impl Bianchi {
    /// Normalised throughput with basic access, by the parameters of Bianchi's paper: payload 8184 bits, MAC 272,
    /// PHY 128, ACK 240, 1 Mb/s, slot 50 us, SIFS 28 us, DIFS 128 us, propagation 1 us.
    pub fn throughput(&self, stations: u64) -> f64 {
        let any = 1.0 - (1.0 - self.tau).powf(stations as f64);
        let one = self.success;
        let busy = one * SUCCESS_US as f64 + (any - one) * COLLISION_US as f64;
        one * PAYLOAD_US as f64 / ((1.0 - any) * SLOT_US as f64 + busy)
    }
}

// What slots last with the parameters of Bianchi's paper, in microseconds: at 1 Mb/s a bit is one.
pub(crate) const PAYLOAD_US: u64 = 8184;
pub(crate) const SLOT_US: u64 = 50;
/// Headers (MAC 272, PHY 128), payload, SIFS, ACK (with its PHY header), DIFS, and propagation twice.
pub(crate) const SUCCESS_US: u64 = 272 + 128 + PAYLOAD_US + 28 + 1 + 112 + 128 + 128 + 1;
/// Headers, payload, DIFS and propagation.
pub(crate) const COLLISION_US: u64 = 272 + 128 + PAYLOAD_US + 128 + 1;

/// Successes a slot of very many stations that together make `load` attempts a slot: slotted ALOHA, `G e^-G`.
///
/// Source: Roberts, "ALOHA packet system with and without slots and capture", 1975.
///
/// ```
/// assert!((relent_sim::theory::slotted_aloha(1.0) - 0.367879).abs() < 1e-6);
/// ```
pub fn slotted_aloha(load: f64) -> f64 {
    load * (-load).exp()
}

/// The same without slots, in units of a packet's length: pure ALOHA, `G e^-2G`.
///
/// Source: Abramson, "The ALOHA System", AFIPS 1970.
///
/// ```
/// assert!((relent_sim::theory::pure_aloha(0.5) - 0.18394).abs() < 1e-5);
/// ```
pub fn pure_aloha(load: f64) -> f64 {
    load * (-2.0 * load).exp()
}

/// Successes a slot of `stations` that each send with probability `p`: slotted ALOHA with a finite population.
///
/// ```
/// assert!((relent_sim::theory::aloha(10, 0.1) - 0.38742).abs() < 1e-5);
/// ```
pub fn aloha(stations: u64, p: f64) -> f64 {
    stations as f64 * p * (1.0 - p).powf(stations as f64 - 1.0)
}

/// The efficiency of an Ethernet on which `stations` contend for each frame of `bits`, by Metcalfe and Boggs:
/// 3 Mb/s, slots of 16 us.
///
/// Source: Metcalfe and Boggs, "Ethernet: Distributed Packet Switching for Local Computer Networks", CACM 19(7), 1976.
///
/// ```
/// assert!((relent_sim::theory::metcalfe_boggs(64, 512.0) - 0.8627).abs() < 1e-4);
/// ```
pub fn metcalfe_boggs(stations: u64, bits: f64) -> f64 {
    let acquisition = (1.0 - 1.0 / stations as f64).powf(stations as f64 - 1.0);
    let waiting_slots = (1.0 - acquisition) / acquisition;
    let transmission = bits / 3.0;
    transmission / (transmission + waiting_slots * 16.0)
}

/// The expected number of collisions of two stations with a frame each, the first included, by truncated binary
/// exponential backoff: the sum of `2^(-k(k+1)/2)`.
pub fn two_station_collisions() -> f64 {
    (0..40).map(|k| f64::powi(2.0, -(k * (k + 1) / 2))).sum()
}

/// Capture: the chance that a station which has just won (and draws from 2 slots) wins again, ties, and loses against
/// one at its `c`-th collision (which draws from `2^min(c, 10)`).
///
/// ```
/// assert_eq!(relent_sim::theory::capture(2), (5.0 / 8.0, 1.0 / 4.0, 1.0 / 8.0));
/// ```
pub fn capture(c: u32) -> (f64, f64, f64) {
    let slots = f64::from(1u32 << c.min(10));
    (1.0 - 1.5 / slots, 1.0 / slots, 0.5 / slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64, error: f64) {
        assert!((value - expected).abs() <= error, "{value} is not {expected}");
    }

    #[test]
    fn bianchi_is_solved_as_published() {
        for (window, stages, stations, tau, p, success) in [
            (32, 5, 5, 0.047846, 0.17808, 0.19663),
            (32, 5, 50, 0.015392, 0.53236, 0.35989),
            (32, 3, 20, 0.029112, 0.42956, 0.33214),
            (128, 3, 50, 0.008786, 0.35106, 0.28508),
        ] {
            let solved = bianchi(stations, window, stages);
            near(solved.tau, tau, 1e-6);
            near(solved.collision, p, 1e-5);
            near(solved.success, success, 1e-5);
        }
        for (window, stages, stations, expected) in
            [(32, 5, 5, 0.8102), (32, 5, 50, 0.6109), (32, 3, 20, 0.6788), (128, 3, 10, 0.8263), (128, 3, 50, 0.7252)]
        {
            near(bianchi(stations, window, stages).throughput(stations), expected, 1e-4);
        }
    }

    #[test]
    fn metcalfe_and_boggs() {
        for (stations, row) in [
            (1, [1.0, 1.0, 1.0, 1.0]),
            (2, [0.5, 0.9143, 0.9552, 0.9884]),
            (5, [0.4096, 0.881, 0.9367, 0.9834]),
            (10, [0.3874, 0.8709, 0.931, 0.9818]),
            (256, [0.3686, 0.8616, 0.9257, 0.9803]),
        ] {
            for (bits, expected) in [48.0, 512.0, 1024.0, 4096.0].into_iter().zip(row) {
                near(metcalfe_boggs(stations, bits), expected, 1e-4);
            }
        }
        near(aloha(1000, 0.001), 0.368063, 1e-6);
    }

    #[test]
    fn two_stations_and_capture() {
        near(two_station_collisions(), 1.641_632_560_655_153_8, 1e-15);
        let all = |from: u32| (from..=16).map(|c| capture(c).0).product::<f64>();
        near(all(3), 0.6645, 1e-4);
        near(all(4), 0.8179, 1e-4);
        near(capture(12).0, 0.99854, 1e-5);
    }
}
