//! The command line as its users meet it: arguments in; exact stdout, stderr and exit code out.

mod binary;
mod browser;
mod closed;
mod connect;
mod connect_tls;
mod demo;
mod engines;
mod every_page;
mod explain;
mod found_limits;
mod frame;
mod fuzzed;
mod http;
mod memory;
mod pages;
mod report;
mod run;
mod secrets;
mod shared;
mod simulate;
mod simulate_hostile;
mod store;
mod storm;
mod unread;
mod upstream;
mod waits;
