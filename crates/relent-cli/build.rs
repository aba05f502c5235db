//! Links the program to a fixed address on Linux with glibc.
//!
//! `relent run` is put before commands that take a millisecond, so its own start counts. Most of that start was the
//! dynamic linker writing 12,000 addresses into 50 pages before `main`, because the program might be loaded anywhere.
//! At a fixed address (as Go links its programs) they are in the file. The libraries and the stack are still placed at
//! random. Where the C library is linked statically nothing is changed.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |part: &str| var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if target("OS") == "linux" && target("ENV") == "gnu" && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
