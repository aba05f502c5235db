//! Limits as text: `{ rate = 100, burst = 10 }`, `{ concurrency = 20 }`, `"aws_adaptive"`.
//!
//! The key of a kind's main number names the kind.

use super::part::{Fields, Read, Settings, Written};
use crate::{Invalid, Limit, LimitSettings};
use std::{format, string::String, time::Duration, vec::Vec};

const KINDS: [&str; 4] = ["rate", "concurrency", "aimd", "gradient"];
/// Without any number.
const AWS_ADAPTIVE: &str = "aws_adaptive";
/// How long an attempt may wait in a queue that is given without it.
const LONGEST: Duration = Duration::from_millis(100);

impl Settings for LimitSettings {
    const NAME: &'static str = "limit";
    const LIKE: &'static str = "limit = { rate = 100, burst = 10 } or { concurrency = 20 }; \
                                on a flag rate=100,burst=10";

    fn named(word: &str) -> Result<LimitSettings, Vec<&'static str>> {
        match word {
            AWS_ADAPTIVE => Ok(LimitSettings::AwsAdaptive),
            "aimd" | "gradient" => Ok(of_kind(word)),
            _ => Err([AWS_ADAPTIVE, "aimd", "gradient"].to_vec()),
        }
    }

    fn read(fields: &mut Fields<'_>, start: Option<LimitSettings>) -> Read<LimitSettings> {
        let start = match (start, fields.kind(&KINDS)?) {
            (Some(start), Some(kind)) if kind_of(&start) != kind => {
                let problem = format!("this limit is of kind {}, and {kind} is another", kind_of(&start));
                return Err(fields.wrong(problem, "leave one of them out"));
            }
            (Some(start), _) => start,
            (None, Some(kind)) => of_kind(kind),
            (None, None) => {
                fields.of_some_kind("a limit", &KINDS, keys)?;
                return Err(fields.wrong("nothing says what is limited", Self::LIKE));
            }
        };
        let read = read_over(fields, start)?;
        let kind = kind_of(&read);
        let article = super::part::article(kind);
        fields.finish(&format!("{article} {kind} limit"), keys(kind))?;
        Ok(read)
    }

    fn check(&self) -> Result<(), Invalid> {
        self.limit().map(drop)
    }
}

fn read_over(fields: &mut Fields<'_>, start: LimitSettings) -> Read<LimitSettings> {
    use LimitSettings::*;
    Ok(match start {
        Rate { rate, per, burst } => Rate {
            rate: fields.whole("rate")?.unwrap_or(rate),
            per: fields.duration("per")?.unwrap_or(per),
            burst: fields.whole("burst")?.unwrap_or(burst),
        },
        Concurrency { limit, queue, longest } => Concurrency {
            limit: fields.whole("concurrency")?.unwrap_or(limit),
            queue: fields.whole("queue")?.unwrap_or(queue),
            longest: fields.duration("longest")?.unwrap_or(longest),
        },
        Aimd { start, min, max, slow_after } => Aimd {
            start: fields.whole("aimd")?.unwrap_or(start),
            min: fields.whole("min")?.unwrap_or(min),
            max: fields.whole("max")?.unwrap_or(max),
            slow_after: fields.duration_or_ever("slow_after")?.unwrap_or(slow_after),
        },
        Gradient { start, max } => {
            Gradient { start: fields.whole("gradient")?.unwrap_or(start), max: fields.whole("max")?.unwrap_or(max) }
        }
        AwsAdaptive => AwsAdaptive,
    })
}

/// What a kind is where its number says nothing else.
fn of_kind(kind: &str) -> LimitSettings {
    match kind {
        "aimd" => Limit::aimd(20).settings(),
        "gradient" => Limit::gradient(20).settings(),
        "concurrency" => LimitSettings::Concurrency { limit: 20, queue: 0, longest: LONGEST },
        _ => Limit::rate(100).settings(),
    }
}

pub(super) fn kind_of(settings: &LimitSettings) -> &'static str {
    match settings {
        LimitSettings::Rate { .. } => "rate",
        LimitSettings::Concurrency { .. } => "concurrency",
        LimitSettings::Aimd { .. } => "aimd",
        LimitSettings::Gradient { .. } => "gradient",
        LimitSettings::AwsAdaptive => AWS_ADAPTIVE,
    }
}

fn keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "rate" => &["rate", "per", "burst"],
        "concurrency" => &["concurrency", "queue", "longest"],
        "aimd" => &["aimd", "min", "max", "slow_after"],
        "gradient" => &["gradient", "max"],
        _ => &[],
    }
}

pub(super) fn write(settings: &LimitSettings) -> String {
    let text = Written::new();
    match *settings {
        LimitSettings::Rate { rate, per, burst } => {
            text.whole("rate", rate).duration("per", per).whole("burst", burst).end()
        }
        LimitSettings::Concurrency { limit, queue, longest } => {
            text.whole("concurrency", limit).whole("queue", queue).duration("longest", longest).end()
        }
        LimitSettings::Aimd { start, min, max, slow_after } => {
            text.whole("aimd", start).whole("min", min).whole("max", max).duration("slow_after", slow_after).end()
        }
        LimitSettings::Gradient { start, max } => text.whole("gradient", start).whole("max", max).end(),
        LimitSettings::AwsAdaptive => super::write::quoted(AWS_ADAPTIVE),
    }
}
