//! The command line as its users meet it: arguments in; exact stdout, stderr and exit code out.

mod binary;
mod connect;
mod explain;
mod http;
