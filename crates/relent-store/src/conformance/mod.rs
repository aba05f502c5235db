//! What every engine must keep, as tests that run on any: on those of relent, and on yours.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! use relent_store::{Memory, conformance};
//!
//! conformance::check(&Memory::new()).await.unwrap();
//! # });
//! ```
//!
//! Keys are made for each run, so it may be run on a store that is in use; what it leaves there expires or is removed, but for
//! a few leases and upstreams.

mod leases;
mod once;
mod others;
mod values;

use crate::{Engine, Error, Key, Nonce, Scope};
use relent::{SystemTimer, Timer};
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

/// Long enough that it does not end during a test.
const LONG: Duration = Duration::from_secs(60);

/// Ended when [`over`] has been waited for. Nothing is asserted about what happens before.
const SHORT: Duration = Duration::from_millis(20);

/// What an engine does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub rule: &'static str,
    /// What happened instead.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

impl std::error::Error for Broken {}

type Case<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Whether an engine keeps all rules. They are tried side by side; it takes about two seconds, or none on a clock that is
/// moved.
///
/// # Errors
///
/// The first rule that is broken, or that could not be tried because the engine failed.
pub async fn check<E: Engine>(engine: &E) -> Result<(), Broken> {
    let rules = rules(engine);
    let names: Vec<_> = rules.iter().map(|(rule, _)| *rule).collect();
    let outcomes = all(rules.into_iter().map(|(_, case)| case).collect()).await;
    let mut broken = names.into_iter().zip(outcomes).filter_map(|(rule, outcome)| Some((rule, outcome.err()?)));
    broken.next().map_or(Ok(()), |(rule, what)| Err(Broken { rule, what }))
}

/// The rules, by name, each ready to be tried.
fn rules<E: Engine>(engine: &E) -> Vec<(&'static str, Case<'_>)> {
    let mut rules = once::rules(engine);
    rules.extend(leases::rules(engine));
    rules.extend(values::rules(engine));
    rules.extend(others::rules(engine));
    rules
}

/// All of them, side by side on this task.
async fn all<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(answer) = future.as_mut().poll(cx)
            {
                *done = Some(answer);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// A name that nobody else has.
fn name(of: &str) -> Key {
    Key::new(format!("conformance-{of}-{:032x}", u128::from_be_bytes(Nonce::random().0))).expect("it is short")
}

fn scope() -> Scope {
    Scope::of(["conformance"]).expect("it is short")
}

/// Waits until what held for [`SHORT`] has ended for sure.
async fn over() {
    SystemTimer.sleep(SHORT * 4).await;
}

/// Errors become the text of what is broken.
trait Must<T> {
    fn must(self, what: &str) -> Result<T, String>;
}

impl<T> Must<T> for Result<T, Error> {
    fn must(self, what: &str) -> Result<T, String> {
        self.map_err(|error| format!("{what} failed: {error:?}"))
    }
}

/// Says what there should be, and what there is.
fn same<T: PartialEq + fmt::Debug>(what: &str, is: T, should: T) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("{what}: {is:?}, and should be {should:?}")) }
}

fn holds(what: &str, is: bool) -> Result<(), String> {
    if is { Ok(()) } else { Err(format!("{what}: it is not so")) }
}
