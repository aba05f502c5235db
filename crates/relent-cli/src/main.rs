//! The command line of relent.
fn main() {}
