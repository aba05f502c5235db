//! Any text is a policy file or an error with a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relent::config::Config;

fuzz_target!(|text: &str| {
    match Config::parse(text) {
        Ok(config) => {
            for name in config.names() {
                let _ = config.policy(name);
            }
        }
        Err(err) => assert!(!err.to_string().is_empty()),
    }
});
