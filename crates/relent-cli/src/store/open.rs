//! A store, opened for a command that is there for the store alone: asked a few times, and not for long.

use super::{args::StoreArgs, place};
use crate::{
    ear::Ear,
    talk::{Fault, plain},
};
use relent::{Policy, duration::Human};
use relent_store::{Any, Error, ErrorKind, Store};
use std::{
    future::Future,
    time::{Duration, Instant},
};

/// What there is to say when a store could not be asked.
pub(crate) fn fault(url: &str, error: &Error) -> Fault {
    let fault = Fault::new(format!("store {}: {error}", place::shown(url)));
    match error.hint_text() {
        Some(hint) => fault.hint(hint),
        None => fault.hint("relent store check says more"),
    }
}

/// Whether a store that is not there yet is made, and one of an older relent brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Make,
    /// Also in the database of another program.
    MakeAnywhere,
    /// It is left as it is, and said: for who only wants to look, or has it from a policy file.
    Say,
}

/// Opens the store, and does something with it. All of it within the time that was given.
pub(crate) fn with<T, F: Future<Output = Result<T, Error>>>(
    args: &StoreArgs,
    missing: IfMissing,
    work: impl FnOnce(String, Store) -> F,
) -> Result<T, Fault> {
    let until = Instant::now().checked_add(args.timeout);
    let given = args.store.clone();
    let look = move || match missing {
        IfMissing::MakeAnywhere => place::any_url(given.as_deref()),
        IfMissing::Make => place::url(given.as_deref()),
        IfMissing::Say => place::url_to_look(given.as_deref()),
    };
    // Signals end who asks by hand at once.
    let found = place::in_time(look, until, &Ear::default())?;
    let named = args.store.as_deref().unwrap_or(place::DEFAULT);
    let url = found.ok_or_else(|| fault(named, &slow(args.timeout)))??;
    let cannot = |error| Fault::new(format!("cannot ask the store: {}", plain(&error)));
    let runtime = crate::runtime::builder().and_then(|mut builder| builder.build()).map_err(cannot)?;
    let done = runtime.block_on(async {
        let all = async {
            let engine = patience(args.timeout).when(Error::verdict).retry(|_| Any::open(&url)).await;
            let engine = engine.map_err(|err| err.last.clone().unwrap_or_else(|| slow(args.timeout)))?;
            work(url.clone(), Store::new(engine).patience(patience(args.timeout))).await
        };
        tokio::time::timeout(args.timeout, all).await.unwrap_or_else(|_| Err(slow(args.timeout)))
    });
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    done.map_err(|error| fault(&url, &error))
}

/// Who asks by hand wants an answer rather than a long wait.
fn patience(timeout: Duration) -> Policy {
    let slice = (timeout / 3).max(Duration::from_millis(1));
    let policy = Policy::exponential(Duration::from_millis(20)).cap(Duration::from_millis(500)).max_attempts(4);
    policy.attempt_timeout(slice).timeout(timeout.max(Duration::from_millis(1)))
}

fn slow(timeout: Duration) -> Error {
    let error = Error::new(ErrorKind::Timeout, format!("it did not answer within {}", Human(timeout)));
    error.hint("is it reachable, and is it overloaded? --timeout waits longer")
}
