//! State that outlives a process or is shared: what happens once, who holds what, which version is there, what all processes
//! know of a far side.
//!
//! A payment that is asked for three times by processes that die happens once:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use relent_store::{Key, OnceError, Scope, Store};
//!
//! # let url = "memory:";
//! let store = Store::open(url).await?; // "sqlite:state.db", "redis://..", "postgres://.."
//! let (scope, order) = (Scope::of(["bank", "pay"])?, Key::new("order-7")?);
//! # async fn pay() -> Result<&'static str, String> { Ok("receipt 7") }
//!
//! match store.once(&scope, &order).run(async |_| pay().await).await {
//!     Ok(done) => assert_eq!(done.bytes(), b"receipt 7"),
//!     Err(OnceError::Unknown { since }) => eprintln!("begun at {since}, by a process that died: look it up"),
//!     Err(err) => eprintln!("not paid: {err}"),
//! }
//! # Ok::<_, relent_store::Error>(())
//! # }).unwrap();
//! ```
//!
//! | to | use |
//! |---|---|
//! | do something once | [`Store::once`] |
//! | change a value that others change, too | [`Store::update`] |
//! | hold a lock that ends by itself | [`Store::lease`] |
//! | know whether a message was seen | [`Store::first_time`], or `first_time` in your own transaction |
//! | share a budget, a breaker and a rate among processes | [`Store::share`] |
//! | write an engine | [`Engine`], [`conformance`] |
//!
//! # Features
//!
//! | feature | for |
//! |---|---|
//! | `sqlite` (default) | `sqlite:` |
//! | `redis` | `redis://`, `rediss://` |
//! | `postgres` | `postgres://` |
//! | `tower` | `layer`: idempotency keys of requests, for servers |

mod any;
#[cfg(feature = "sqlite")]
mod at_once;
mod blocking;
pub mod conformance;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod ears;
mod engine;
mod error;
#[cfg(all(test, any(feature = "redis", feature = "postgres")))]
mod flood;
mod gate;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod gather;
mod heed;
mod hosted;
#[cfg(feature = "postgres")]
pub mod in_postgres;
#[cfg(feature = "redis")]
pub mod in_redis;
#[cfg(feature = "sqlite")]
pub mod in_sqlite;
#[cfg(feature = "tower")]
pub mod layer;
mod lease;
mod memory;
mod notice;
#[cfg(all(unix, any(feature = "sqlite", feature = "redis", feature = "postgres")))]
mod numbers;
mod once;
mod pace;
mod patience;
#[cfg(all(unix, any(feature = "redis", feature = "postgres")))]
mod peer;
mod race;
mod rows_changed;
mod rules;
#[cfg(any(feature = "sqlite", feature = "redis", feature = "postgres"))]
mod settings;
mod shared;
mod store;
mod time;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod tls;
mod types;
mod update;

pub use self::{
    any::{Any, SCHEMES},
    blocking::{Blocking, BlockingGuard, BlockingShared, NoRuntime},
    engine::{About, Engine, Kind, Listed, RecordState},
    error::{Error, ErrorKind},
    heed::Heed,
    hosted::Hosted,
    lease::{Guard, LeaseError, Leasing},
    memory::Memory,
    notice::Notice,
    once::{Done, Effect, Once, OnceError, Reconciled},
    rows_changed::rows_changed,
    shared::{SharedUpstream, Sharing},
    store::{MAX_VALUE, Store},
    time::{Clock, Time},
    types::{
        Abandon, Acquired, Begin, Booked, Booking, Claim, Delta, Fence, Fingerprint, Held, Holder, Holding, Kept, Key,
        Lease, MAX_KEY, MAX_SCOPE, Nonce, NotAKey, OnUnknown, Owner, Renewed, Replaced, Scope, Shared, SharedRate,
        Started, Stored, Version, Versioned,
    },
    update::{Conflict, UpdateError},
};

/// The page about stores compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/stores.md")]
struct Page;
