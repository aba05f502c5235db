//! Everything a breaker is told, by name, and what of it makes no sense.

use super::state::MOST_PROBES;
use crate::core::{invalid::Invalid, time::nanos};
use core::time::Duration;

/// The longest window of calls.
pub(super) const MOST_CALLS: u32 = 1024;

/// Over what the shares of a breaker are taken.
///
/// ```
/// use relent::{Breaker, BreakerWindow};
/// use std::time::Duration;
///
/// assert_eq!(Breaker::share(0.5).settings().window, BreakerWindow::Time(Duration::from_secs(10)));
/// assert_eq!(Breaker::share(0.5).window_calls(100).settings().window, BreakerWindow::Calls(100));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BreakerWindow {
    /// The last calls, 1 to 1024.
    Calls(u32),
    /// The last time, in ten slices; it forgets a slice at a time. At least 10 ns.
    Time(Duration),
}

/// Where another system's breaker differs in small things, so that its traces hold.
///
/// ```
/// use relent::{BreakerQuirks, BreakerSettings};
///
/// let settings = BreakerSettings { quirks: BreakerQuirks::Gobreaker, consecutive: Some(6), ..BreakerSettings::default() };
/// assert!(settings.breaker().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerQuirks {
    /// None: as documented here.
    #[default]
    None,
    /// gobreaker: half-open strictly after the open time; a window of time is cleared as a whole, strictly after its
    /// length, and with it the failures in a row.
    Gobreaker,
    /// cockatiel: trips strictly above a share; a window of time drops a slice at an outcome and no sooner, in slices
    /// of a second but at least five; the probe that closes the breaker counts in the new window.
    Cockatiel,
}

/// Everything a [`Breaker`](crate::Breaker) is told, by name: what text is parsed into, and what `explain` prints.
///
/// ```
/// use relent::BreakerSettings;
///
/// let settings = BreakerSettings { consecutive: Some(5), ..BreakerSettings::default() };
/// assert_eq!(settings.breaker().unwrap().settings(), settings);
///
/// let bad = BreakerSettings { share: Some(1.5), ..settings };
/// assert_eq!(bad.breaker().unwrap_err().key, "share");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerSettings {
    /// Trips after this many failures in a row.
    pub consecutive: Option<u32>,
    /// Trips after this many failures in the window.
    pub failures: Option<u32>,
    /// Trips when this share of the calls in the window failed, above 0 and up to 1.
    pub share: Option<f64>,
    /// A call that takes longer than this is slow.
    pub slow_after: Option<Duration>,
    /// Trips when this share of the calls in the window was slow, above 0 and up to 1.
    pub slow_share: f64,
    /// Over what shares are taken.
    pub window: BreakerWindow,
    /// No share trips with fewer calls in the window than this; `None` is 20, or the window if that is less.
    pub min_calls: Option<u32>,
    /// How long it is open.
    pub open_for: Duration,
    /// By how much the open time grows when it trips again, at least 1.
    pub factor: f64,
    /// The longest open time, jitter included; a breaker that stays closed this long has forgotten its trips.
    /// `None` is ten times `open_for` where it grows.
    pub open_at_most: Option<Duration>,
    /// Up to this share of the open time is added, by draw: from 0 to 1.
    pub jitter: f64,
    /// The most probes at one time, 1 to 4095.
    pub probes: u32,
    /// Closes after this many probes have succeeded, 1 to 4095.
    pub close_after: u32,
    /// With a share, `close_after` outcomes are waited for, and it opens again if this share of them failed. Without,
    /// the first failure opens it.
    pub reopen_share: Option<f64>,
    /// Probes that have told nothing for so long are counted as lost, and others let through.
    pub probe_again_after: Option<Duration>,
    /// How long the share that is let through rises after the probes; zero is no ramp.
    pub ramp: Duration,
    /// The share that is let through at the start of the ramp, from 0 to 1.
    pub ramp_from: f64,
    /// Another system's ways.
    pub quirks: BreakerQuirks,
}

impl BreakerSettings {
    pub(super) const DEFAULT: BreakerSettings = BreakerSettings {
        consecutive: None,
        failures: None,
        share: None,
        slow_after: None,
        slow_share: 0.5,
        window: BreakerWindow::Time(Duration::from_secs(10)),
        min_calls: None,
        open_for: Duration::from_secs(30),
        factor: 1.0,
        open_at_most: None,
        jitter: 0.0,
        probes: 1,
        close_after: 1,
        reopen_share: None,
        probe_again_after: None,
        ramp: Duration::ZERO,
        ramp_from: 0.1,
        quirks: BreakerQuirks::None,
    };

    pub(super) const fn check(&self) -> Result<(), Invalid> {
        if let Err(invalid) = self.check_trips() {
            return Err(invalid);
        }
        if let Err(invalid) = self.check_window() {
            return Err(invalid);
        }
        if let Err(invalid) = self.check_open() {
            return Err(invalid);
        }
        self.check_half_open()
    }

    const fn check_trips(&self) -> Result<(), Invalid> {
        if matches!(self.consecutive, Some(0)) {
            return no("consecutive", "no failure in a row trips", "5 trips at the fifth failure in a row");
        }
        if matches!(self.failures, Some(0)) {
            return no("failures", "no failure trips", "10 trips at the tenth failure in the window");
        }
        if let Some(share) = self.share
            && !is_share(share)
        {
            return no("share", "the share of failures is not above 0 and up to 1", "0.5 trips when half have failed");
        }
        if !is_share(self.slow_share) {
            return no("slow_share", "the share of slow calls is not above 0 and up to 1", "0.5 trips at half");
        }
        if matches!(self.slow_after, Some(Duration::ZERO)) {
            return no("slow_after", "every call would be slow", "give the time from which on a call is slow");
        }
        if self.consecutive.is_none() && self.failures.is_none() && self.share.is_none() && self.slow_after.is_none() {
            return no("breaker", "nothing trips the breaker", "say consecutive, failures, share or slow_after");
        }
        Ok(())
    }

    const fn check_window(&self) -> Result<(), Invalid> {
        match self.window {
            BreakerWindow::Calls(calls) => {
                if calls == 0 || calls > MOST_CALLS {
                    return no("window_calls", "the window is not 1 to 1024 calls", "100, or a window of time");
                }
                if let Some(least) = self.min_calls
                    && least > calls
                {
                    return no("min_calls", "more calls are asked for than the window holds", "lower min_calls");
                }
                if let Some(failures) = self.failures
                    && failures > calls
                {
                    return no("failures", "more failures are asked for than the window holds", "lower failures");
                }
            }
            BreakerWindow::Time(time) if nanos(time) < 10 => {
                return no("window", "the window is zero", "10s looks at the last ten seconds");
            }
            BreakerWindow::Time(_) => {}
        }
        if matches!(self.min_calls, Some(0)) {
            return no("min_calls", "a share of no calls is no share", "1 lets the first failure trip");
        }
        Ok(())
    }

    const fn check_open(&self) -> Result<(), Invalid> {
        if self.open_for.is_zero() {
            return no("open_for", "the open time is zero", "30s keeps attempts away for thirty seconds");
        }
        if !(self.factor >= 1.0 && self.factor.is_finite()) {
            return no("factor", "the factor is less than 1 or not finite", "2 doubles the open time at each re-trip");
        }
        if !(self.jitter >= 0.0 && self.jitter <= 1.0) {
            return no("jitter", "the jitter is not between 0 and 1", "0.2 adds up to a fifth of the open time");
        }
        if let Some(most) = self.open_at_most
            && (nanos(most) as f64) < nanos(self.open_for) as f64 * (1.0 + self.jitter)
        {
            return no(
                "open_at_most",
                "open_at_most is shorter than open_for and its jitter",
                "raise open_at_most; in Rust, say open_for before it",
            );
        }
        Ok(())
    }

    const fn check_half_open(&self) -> Result<(), Invalid> {
        if self.probes == 0 || self.probes > MOST_PROBES {
            return no("probes", "the probes are not 1 to 4095", "1 lets one attempt at a time find out");
        }
        if self.close_after == 0 || self.close_after > MOST_PROBES {
            return no("close_after", "close_after is not 1 to 4095", "1 closes at the first success");
        }
        if let Some(share) = self.reopen_share
            && !is_share(share)
        {
            return no("reopen_share", "the share of probes is not above 0 and up to 1", "0.5 opens again at half");
        }
        if matches!(self.probe_again_after, Some(Duration::ZERO)) {
            return no("probe_again_after", "every probe would be lost at once", "leave it out to wait for probes");
        }
        if !(self.ramp_from >= 0.0 && self.ramp_from <= 1.0) {
            return no("ramp_from", "the first share of the ramp is not between 0 and 1", "0.1 starts with a tenth");
        }
        Ok(())
    }
}

/// Nothing trips it yet: say at least one of `consecutive`, `failures`, `share`, `slow_after`.
impl Default for BreakerSettings {
    fn default() -> BreakerSettings {
        BreakerSettings::DEFAULT
    }
}

/// False for NaN too.
const fn is_share(share: f64) -> bool {
    share > 0.0 && share <= 1.0
}

const fn no(key: &'static str, problem: &'static str, hint: &'static str) -> Result<(), Invalid> {
    Err(Invalid { key, problem, hint })
}
