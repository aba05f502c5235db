//! How outcomes are written: JSON and CSV.

mod csv;
mod json;
pub(crate) mod object;
