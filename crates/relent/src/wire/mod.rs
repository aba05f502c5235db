//! What HTTP failures mean, and what servers say about trying again. Feature `http`, on the `http` crate's types alone.
//!
//! Every client that retries needs the same four answers: is this status worth another attempt ([`verdict`]), may this
//! request be sent twice ([`replay()`]), when does the server want to see us again ([`pushback()`]), and which attempt is
//! this ([`attempt()`]). Whoever waits for a job asks whether it is done ([`answer()`]). Servers ask two more: how long is
//! the answer still of use ([`deadline()`]), and how many attempts did this client make of late ([`attempts()`]); or all at
//! once ([`arrival()`]), and what to say instead of an answer ([`refusal()`]). The tables behind them are public, each row
//! with its source:
//! [`STATUSES`], [`METHODS`], [`FAULTS`], and of headers, read and written, [`DIALECTS`], [`COUNTERS`], [`DEADLINES`].
//!
//! ```
//! use http::{HeaderMap, StatusCode};
//! use relent::{Verdict, wire};
//! use std::time::Duration;
//!
//! let now = Duration::from_secs(1_790_000_000); // Since 1970; the clock is the caller's.
//! let mut headers = HeaderMap::new();
//! assert_eq!(wire::verdict(StatusCode::OK, &headers, now), None);
//! assert_eq!(wire::verdict(StatusCode::NOT_FOUND, &headers, now), Some(Verdict::Permanent));
//!
//! headers.insert("retry-after", "30".parse().unwrap());
//! let told = Verdict::After(Duration::from_secs(30));
//! assert_eq!(wire::verdict(StatusCode::SERVICE_UNAVAILABLE, &headers, now), Some(told));
//! ```
//!
//! With an executor, judge what the client gives back. A POST is the caller's to stop:
//!
//! ```
//! use http::{HeaderMap, Method, StatusCode};
//! use relent::{Policy, Verdict, wire};
//! use std::time::{Duration, SystemTime, UNIX_EPOCH};
//!
//! struct Refused { status: StatusCode, headers: HeaderMap }
//!
//! fn judge(refused: &Refused) -> Verdict {
//!     let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
//!     wire::verdict(refused.status, &refused.headers, now).unwrap_or(Verdict::Permanent)
//! }
//!
//! # let mut answers = [503, 404].into_iter();
//! # let mut send = || -> Result<(), Refused> {
//! #     let status = StatusCode::from_u16(answers.next().unwrap()).unwrap();
//! #     Err(Refused { status, headers: HeaderMap::new() })
//! # };
//! let policy = Policy::exponential(Duration::from_millis(10)).max_attempts(5);
//! let error = policy.when(judge).retry_blocking(|_attempt| send()).unwrap_err();
//! assert_eq!(error.attempts, 2, "503, then 404");
//!
//! let sent = HeaderMap::new();
//! let post = wire::Request { method: &Method::POST, headers: &sent, left: true, unsafe_too: false };
//! assert_eq!(wire::replay(&post), wire::Replay::NotIdempotent);
//! ```
//!
//! What is nonsense is ignored, never guessed at: a `Retry-After` of `abc`, `-1`, `2.5` or of the 32nd of December
//! leaves the policy's own delay as it was. Nothing here can shorten a delay, overflow or panic, and the work is linear
//! in the size of the headers.
//!
//! Nothing here reads a clock, opens a connection or sends anything.

mod answer;
mod arrival;
mod attempt;
mod date;
mod deadline;
mod dialect;
mod fault;
mod idempotency;
mod pushback;
mod refusal;
mod replay;
mod retry_info;
mod rules;
mod table;
mod value;

pub use answer::{answer, location};
pub use arrival::arrival;
pub use attempt::{attempt, attempt_value, attempts, attempts_value};
pub use date::http_date;
pub use deadline::deadline;
pub use dialect::{
    COUNTERS, Counter, DEADLINES, DIALECTS, Deadline, Dialect, RELENT_ATTEMPT, RELENT_ATTEMPTS, RELENT_DEADLINE,
    RELENT_RETRY, RELENT_TURN,
};
pub use fault::Fault;
pub use idempotency::{BadKey, IDEMPOTENCY_KEY, IdempotencyKey, has_idempotency_key};
pub use pushback::pushback;
pub use refusal::refusal;
#[cfg(feature = "tower")]
pub(crate) use refusal::{GRPC_MESSAGE, GRPC_PUSHBACK, GRPC_STATUS, grpc_pushback};
pub use replay::{Replay, Request, is_idempotent, replay};
pub use rules::{Rules, StatusSet, verdict};
pub use table::{FAULTS, FaultRow, METHODS, MethodRow, STATUSES, StatusRow};
pub use value::Pushback;
