//! Processes that are killed and stopped while they work on one store, again and again, and what must hold afterwards.
//!
//! `worker` is the process that suffers; `parent` starts, kills and stops it; `judge` looks at what is left. All that a worker was
//! told by the store it writes into a journal, in one write, which a kill cannot take back: what is in there was accepted.
//! `restarts` kills the servers instead.
//! `crowd` are many that call for the same few things at once.
//! `RELENT_SEED` plays a run again, as far as processes let themselves be played; `RELENT_FAULT_KILLS` says how many there are.
#![expect(clippy::print_stdout, reason = "a run says its seed, and what was done")]

mod controls;
mod crowd;
mod judge;
mod kills;
mod parent;
mod restarts;
mod worker;
