//! Every chore of the project, in one place.
fn main() {}
