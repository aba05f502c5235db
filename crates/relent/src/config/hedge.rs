//! Hedges as text: `{ after = "50ms" }`, `{ quantile = 0.95 }`.

use super::part::{Fields, Read, Settings, Written};
use crate::{HedgeSettings, Invalid};
use std::{string::String, vec::Vec};

const KEYS: [&str; 4] = ["after", "quantile", "at_most", "min_samples"];

impl Settings for HedgeSettings {
    const NAME: &'static str = "hedge";
    const LIKE: &'static str = "hedge = { after = \"50ms\" } or { quantile = 0.95 }; on a flag after=50ms";

    fn named(_: &str) -> Result<HedgeSettings, Vec<&'static str>> {
        Err(["none"].to_vec())
    }

    fn read(fields: &mut Fields<'_>, start: Option<HedgeSettings>) -> Read<HedgeSettings> {
        let start = start.unwrap_or_default();
        let read = HedgeSettings {
            after: fields.duration("after")?.or(start.after),
            quantile: fields.float("quantile")?.or(start.quantile),
            at_most: fields.whole("at_most")?.unwrap_or(start.at_most),
            min_samples: fields.whole("min_samples")?.unwrap_or(start.min_samples),
        };
        fields.finish("a hedge", &KEYS)?;
        Ok(read)
    }

    fn check(&self) -> Result<(), Invalid> {
        self.hedge().map(drop)
    }
}

pub(super) fn write(settings: &HedgeSettings) -> String {
    Written::new()
        .maybe(settings.after, |text, after| text.duration("after", after))
        .maybe(settings.quantile, |text, quantile| text.number("quantile", quantile))
        .whole("at_most", settings.at_most)
        .whole("min_samples", settings.min_samples)
        .end()
}
