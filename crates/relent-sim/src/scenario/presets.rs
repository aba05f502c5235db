//! Scenarios that are asked for by flags.
