//! Whatever the command line, its files and a command say: a meaning, or one line that no terminal obeys and that tells no
//! secret.
//!
//! An input is the number of what reads it, in a byte, and a text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relent_cli::fuzzed;

fuzz_target!(|input: &[u8]| fuzzed::command_line(input));
