//! Layers whose retries multiply.

use crate::lint::{Check, Rule, Warning};
use core::fmt;

pub(in crate::lint) const RULE: Rule = Rule {
    name: "multiplies",
    hint: "retry in one layer only, or give each upstream a budget: three layers with ratio = 0.1 make 1.331",
    check: Check::Chain,
    tell,
    is_note: |_| false,
};

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::Multiplies { layers, amplification } = *warning else { return Ok(()) };
    if amplification.is_finite() && amplification < 1e15 {
        let tenths = (amplification * 10.0 + 0.5) as u64;
        write!(f, "retries multiply: {layers} layers make up to {}", tenths / 10)?;
        if !tenths.is_multiple_of(10) {
            write!(f, ".{}", tenths % 10)?;
        }
        write!(f, " attempts of one call")
    } else {
        write!(f, "retries multiply: {layers} layers make attempts of one call without end")
    }
}
