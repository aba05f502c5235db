//! Whatever a server answers: `relent http` goes nowhere but to http and https, takes no secret along, joins nothing that
//! does not belong together, and says it in plain lines.
//!
//! An input is a line with a status, how much of the body is there and a time, and then headers: the number of a name in a
//! byte, and a value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relent_cli::fuzzed;

fuzz_target!(|input: &[u8]| fuzzed::http_answer(input));
