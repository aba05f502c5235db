//! Nothing: see `tests/`. `cargo xtask check` runs them with each feature of relent alone, and with none.
