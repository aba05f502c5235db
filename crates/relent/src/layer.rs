//! Retries, upstreams and admission as tower layers of clients and servers. Feature `tower`.

mod time_left;

pub use self::time_left::{TimeLeft, Within};
