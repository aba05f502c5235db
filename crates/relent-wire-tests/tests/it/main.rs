//! Layers between real clients and real servers.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

