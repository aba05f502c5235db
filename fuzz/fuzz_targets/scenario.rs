//! Any text is a scenario whose parts fit together, or an error with a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relent_sim::Scenario;

fuzz_target!(|text: &str| {
    match Scenario::parse(text) {
        Ok(scenario) => assert!(scenario.check().is_ok(), "it was taken, and makes no sense"),
        Err(err) => assert!(!err.to_string().is_empty() && !err.hint().is_empty()),
    }
});
