//! Any text is a duration or an error, and a duration that is shown is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relent::duration::{Human, parse_duration};

fuzz_target!(|text: &str| {
    if let Ok(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&Human(duration).to_string()), Ok(duration));
    }
});
