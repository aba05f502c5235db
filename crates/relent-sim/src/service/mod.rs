//! Clients that call a server: the exact engines.
//!
//! [`predict`] serves every queue in which the fate of a request is known when it arrives (first come, first served):
//! one event an attempt. [`dispatch`] serves the others (newest first, dropping expired work) with an event for each
//! thing that happens.

pub(crate) mod clients;
pub(crate) mod dispatch;
pub(crate) mod door;
pub(crate) mod meter;
pub(crate) mod predict;
pub(crate) mod speed;
pub(crate) mod work;
