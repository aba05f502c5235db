//! The figures of a simulation, by name: one list from which tables, JSON, CSV and assertions are made.

/// A number that a simulation yields, one a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Figure {
    /// Attempts a client, the first included.
    AttemptsPerClient,
    /// Attempts a client that did not bring success.
    WastedPerClient,
    /// When the last client was connected, in seconds.
    DrainS,
    /// The drain time in units of the ideal: that of clients who know everything.
    DrainOverIdeal,
    /// Half of the successful clients waited no longer than this, in seconds.
    P50S,
    /// 90 % of the successful clients waited no longer than this, in seconds.
    P90S,
    /// 99 % of the successful clients waited no longer than this, in seconds.
    P99S,
    /// The longest wait of a successful client, in seconds.
    MaxS,
    /// The most attempts that reached the server within one millisecond.
    Peak1Ms,
    /// The most attempts that reached the server within any tenth of a second.
    Peak100Ms,
    /// The most attempts that reached the server within any second.
    Peak1S,
    /// The peak: the most attempts that reached the server within any tenth of a second, in units of what it can do in
    /// that time.
    PeakOverCapacity,
    /// The share of the time until the end that the server was busy, 0 to 1.
    Utilisation,
    /// Clients that gave up.
    GaveUp,
    /// The time from the end of the trouble until the system was healthy again, in seconds.
    RecoveryS,
    /// Successes a second: until drained for a herd, over the last stretch for open arrivals.
    Goodput,
    /// The share of the calls that began in the last stretch that succeeded, 0 to 1.
    GoodputShare,
    /// Attempts in units of the first attempts, over the stretch of `goodput`: the amplification.
    Load,
    /// Attempts for each success, over the stretch of `goodput`.
    LoadOverGoodput,
    /// The share of all calls that succeeded, 0 to 1.
    SuccessShare,
    /// The share of all calls that were given up, 0 to 1.
    GaveUpShare,
    /// The share of all calls that were still tried when the run ended, 0 to 1. It and the two before add up to one.
    StillTrying,
    /// The most attempts that any client made.
    MaxAttempts,
    /// Write calls that reached the row (optimistic concurrency).
    Calls,
    /// When the last writer was done, in milliseconds (optimistic concurrency).
    TimeMs,
    /// The slot of the last success in units of the number of packets (shared channel).
    MakespanOverN,
    /// Transmissions a packet (shared channel).
    AttemptsPerPacket,
    /// Successes a slot (shared channel).
    SuccessPerSlot,
    /// Collisions until the first success, the first included (shared channel).
    Collisions,
    /// Attempts that reached the server for each first attempt that did, over the whole run.
    Amplification,
    /// The share of the server's answers that brought no success: nobody waited for them any more, 0 to 1.
    WastedWork,
    /// The longest wait of a successful client in units of the median.
    Fairness,
    /// Retries and hedges a client that its own budget refused.
    RefusedBudget,
    /// Attempts a client that its own open breaker refused.
    RefusedOpen,
    /// Attempts a client that were shed: by its own limit, or by the server.
    RefusedShed,
    /// Attempts a client that the server answered with "overloaded, do not retry".
    RefusedOverloaded,
    /// Attempts a client that were given a turn.
    RefusedTurn,
    /// How often a client asked its own breaker in vain, and waited.
    PutOff,
}

impl Figure {
    /// All figures, in the order in which they are printed.
    pub const ALL: [Figure; 38] = [
        Figure::AttemptsPerClient,
        Figure::WastedPerClient,
        Figure::DrainS,
        Figure::DrainOverIdeal,
        Figure::P50S,
        Figure::P90S,
        Figure::P99S,
        Figure::MaxS,
        Figure::Peak1Ms,
        Figure::Peak100Ms,
        Figure::Peak1S,
        Figure::PeakOverCapacity,
        Figure::Utilisation,
        Figure::GaveUp,
        Figure::RecoveryS,
        Figure::Goodput,
        Figure::GoodputShare,
        Figure::Load,
        Figure::LoadOverGoodput,
        Figure::SuccessShare,
        Figure::GaveUpShare,
        Figure::StillTrying,
        Figure::MaxAttempts,
        Figure::Calls,
        Figure::TimeMs,
        Figure::MakespanOverN,
        Figure::AttemptsPerPacket,
        Figure::SuccessPerSlot,
        Figure::Collisions,
        Figure::Amplification,
        Figure::WastedWork,
        Figure::Fairness,
        Figure::RefusedBudget,
        Figure::RefusedOpen,
        Figure::RefusedShed,
        Figure::RefusedOverloaded,
        Figure::RefusedTurn,
        Figure::PutOff,
    ];

    /// The name in JSON, CSV and assertions: `"drain_s"`.
    pub const fn name(self) -> &'static str {
        match self {
            Figure::AttemptsPerClient => "attempts_per_client",
            Figure::WastedPerClient => "wasted_per_client",
            Figure::DrainS => "drain_s",
            Figure::DrainOverIdeal => "drain_over_ideal",
            Figure::P50S => "p50_s",
            Figure::P90S => "p90_s",
            Figure::P99S => "p99_s",
            Figure::MaxS => "max_s",
            Figure::Peak1Ms => "peak_1ms",
            Figure::Peak100Ms => "peak_100ms",
            Figure::Peak1S => "peak_1s",
            Figure::PeakOverCapacity => "peak_over_capacity",
            Figure::Utilisation => "utilisation",
            Figure::GaveUp => "gave_up",
            Figure::RecoveryS => "recovery_s",
            Figure::Goodput => "goodput",
            Figure::GoodputShare => "goodput_share",
            Figure::Load => "load",
            Figure::LoadOverGoodput => "load_over_goodput",
            Figure::SuccessShare => "success_share",
            Figure::GaveUpShare => "gave_up_share",
            Figure::StillTrying => "still_trying",
            Figure::MaxAttempts => "max_attempts",
            Figure::Calls => "calls",
            Figure::TimeMs => "time_ms",
            Figure::MakespanOverN => "makespan_over_n",
            Figure::AttemptsPerPacket => "attempts_per_packet",
            Figure::SuccessPerSlot => "success_per_slot",
            Figure::Collisions => "collisions",
            Figure::Amplification => "amplification",
            Figure::WastedWork => "wasted_work",
            Figure::Fairness => "fairness",
            Figure::RefusedBudget => "refused_budget",
            Figure::RefusedOpen => "refused_open",
            Figure::RefusedShed => "refused_shed",
            Figure::RefusedOverloaded => "refused_overloaded",
            Figure::RefusedTurn => "refused_turn",
            Figure::PutOff => "put_off",
        }
    }

    /// The figure of this name.
    pub fn parse(name: &str) -> Option<Figure> {
        Figure::ALL.into_iter().find(|figure| figure.name() == name)
    }

    /// What a table calls it.
    pub const fn title(self) -> &'static str {
        match self {
            Figure::AttemptsPerClient => "attempts/client",
            Figure::WastedPerClient => "wasted/client",
            Figure::DrainS => "drain s",
            Figure::DrainOverIdeal => "x ideal",
            Figure::P50S => "p50 s",
            Figure::P90S => "p90 s",
            Figure::P99S => "p99 s",
            Figure::MaxS => "max s",
            Figure::Peak1Ms => "peak/ms",
            Figure::Peak100Ms => "peak/100ms",
            Figure::Peak1S => "peak/s",
            Figure::PeakOverCapacity => "peak x capacity",
            Figure::Utilisation => "busy",
            Figure::GaveUp => "gave up",
            Figure::RecoveryS => "recovery s",
            Figure::Goodput => "goodput/s",
            Figure::GoodputShare => "goodput share",
            Figure::Load => "load",
            Figure::LoadOverGoodput => "load/goodput",
            Figure::SuccessShare => "succeed",
            Figure::GaveUpShare => "give up",
            Figure::StillTrying => "still trying",
            Figure::MaxAttempts => "max attempts",
            Figure::Calls => "calls",
            Figure::TimeMs => "time ms",
            Figure::MakespanOverN => "makespan/n",
            Figure::AttemptsPerPacket => "attempts/packet",
            Figure::SuccessPerSlot => "success/slot",
            Figure::Collisions => "collisions",
            Figure::Amplification => "amplification",
            Figure::WastedWork => "wasted work",
            Figure::Fairness => "max/median wait",
            Figure::RefusedBudget => "refused: budget",
            Figure::RefusedOpen => "refused: open",
            Figure::RefusedShed => "refused: shed",
            Figure::RefusedOverloaded => "told: overloaded",
            Figure::RefusedTurn => "told: turn",
            Figure::PutOff => "waits: open",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_every_figure_in_the_order_of_its_number() {
        for (i, figure) in Figure::ALL.into_iter().enumerate() {
            assert_eq!(figure as usize, i);
            assert_eq!(Figure::parse(figure.name()), Some(figure));
        }
        assert_eq!(Figure::parse("drain"), None);
    }
}
