//! Breakers as text: `{ consecutive = 5, open_for = "30s" }`, `"polly"`.

use super::part::{Fields, Read, Settings, Written};
use crate::{Breaker, BreakerQuirks, BreakerSettings, BreakerWindow, Invalid};
use std::{string::String, vec::Vec};

const KEYS: [&str; 20] = [
    "consecutive",
    "failures",
    "share",
    "slow_after",
    "slow_share",
    "window",
    "window_calls",
    "min_calls",
    "open_for",
    "factor",
    "open_at_most",
    "jitter",
    "probes",
    "close_after",
    "reopen_share",
    "probe_again_after",
    "ramp",
    "ramp_from",
    "quirks",
    "compat",
];

const QUIRKS: [(&str, BreakerQuirks); 3] =
    [("none", BreakerQuirks::None), ("gobreaker", BreakerQuirks::Gobreaker), ("cockatiel", BreakerQuirks::Cockatiel)];

impl Settings for BreakerSettings {
    const NAME: &'static str = "breaker";
    const LIKE: &'static str = "breaker = { consecutive = 5, open_for = \"30s\" } or \"polly\"; \
                                on a flag consecutive=5,open_for=30s";

    fn named(word: &str) -> Result<BreakerSettings, Vec<&'static str>> {
        Breaker::compat(word).map(|breaker| breaker.settings()).ok_or_else(|| Breaker::COMPAT.to_vec())
    }

    fn read(fields: &mut Fields<'_>, start: Option<BreakerSettings>) -> Read<BreakerSettings> {
        if let [(one, _), (other, ref at), ..] = fields.among(&["window", "window_calls"])[..] {
            let problem = std::format!("a breaker has one window, not {one} and {other}");
            return Err((at.clone(), super::BadSetting::new(problem, "leave one of them out")));
        }
        let start = start.unwrap_or_default();
        let time = fields.duration_or_ever("window")?.map(BreakerWindow::Time);
        let calls = fields.whole("window_calls")?.map(BreakerWindow::Calls);
        let read = BreakerSettings {
            consecutive: fields.whole("consecutive")?.or(start.consecutive),
            failures: fields.whole("failures")?.or(start.failures),
            share: fields.float("share")?.or(start.share),
            slow_after: fields.duration("slow_after")?.or(start.slow_after),
            slow_share: fields.float("slow_share")?.unwrap_or(start.slow_share),
            window: time.or(calls).unwrap_or(start.window),
            min_calls: fields.whole("min_calls")?.or(start.min_calls),
            open_for: fields.duration("open_for")?.unwrap_or(start.open_for),
            factor: fields.float("factor")?.unwrap_or(start.factor),
            open_at_most: fields.duration_or_ever("open_at_most")?.or(start.open_at_most),
            jitter: fields.float("jitter")?.unwrap_or(start.jitter),
            probes: fields.whole("probes")?.unwrap_or(start.probes),
            close_after: fields.whole("close_after")?.unwrap_or(start.close_after),
            reopen_share: fields.float("reopen_share")?.or(start.reopen_share),
            probe_again_after: fields.duration("probe_again_after")?.or(start.probe_again_after),
            ramp: fields.duration("ramp")?.unwrap_or(start.ramp),
            ramp_from: fields.float("ramp_from")?.unwrap_or(start.ramp_from),
            quirks: fields.word("quirks", &QUIRKS)?.unwrap_or(start.quirks),
        };
        fields.finish("a breaker", &KEYS)?;
        Ok(read)
    }

    fn check(&self) -> Result<(), Invalid> {
        self.breaker().map(drop)
    }
}

/// Every key that says something; those that are not said stand for nothing.
pub(super) fn write(settings: &BreakerSettings) -> String {
    let text = Written::new()
        .maybe(settings.consecutive, |text, n| text.whole("consecutive", n))
        .maybe(settings.failures, |text, n| text.whole("failures", n))
        .maybe(settings.share, |text, share| text.number("share", share))
        .maybe(settings.slow_after, |text, after| text.duration("slow_after", after))
        .number("slow_share", settings.slow_share);
    let text = match settings.window {
        BreakerWindow::Time(time) => text.duration("window", time),
        BreakerWindow::Calls(calls) => text.whole("window_calls", calls),
    };
    let text = text
        .maybe(settings.min_calls, |text, n| text.whole("min_calls", n))
        .duration("open_for", settings.open_for)
        .number("factor", settings.factor)
        .maybe(settings.open_at_most, |text, most| text.duration("open_at_most", most))
        .number("jitter", settings.jitter)
        .whole("probes", settings.probes)
        .whole("close_after", settings.close_after)
        .maybe(settings.reopen_share, |text, share| text.number("reopen_share", share))
        .maybe(settings.probe_again_after, |text, after| text.duration("probe_again_after", after))
        .duration("ramp", settings.ramp)
        .number("ramp_from", settings.ramp_from);
    match QUIRKS.iter().find(|(_, quirks)| *quirks == settings.quirks) {
        Some((name, _)) if *name != "none" => text.word("quirks", name).end(),
        _ => text.end(),
    }
}
