//! What scenario files say about the far side: `[server]` or `[lock]`, and its `[[trouble]]`.

use super::{
    RateLimit, RetryAfter, Server, Trouble, TroubleKind,
    table::{MOST_OF_A_LIST, Result, Table},
};
use relent::config::BadSetting;
use std::time::Duration;

pub(super) fn server(root: &Table<'_>) -> Result<Server> {
    if let Some(lock) = root.table("lock")? {
        // A lock is a server with one place: who holds it is being served.
        let Some(hold) = lock.duration("hold")? else {
            return Err(lock.wrong(root.span("lock"), "it is not said how long the lock is held", "hold = \"50ms\""));
        };
        if hold.is_zero() {
            return Err(lock.wrong(lock.span("hold"), "the lock is held for no time", "hold = \"50ms\""));
        }
        let exponential = service_times(&lock, "held")?;
        let retry_after = retry_after(&lock)?;
        lock.finish()?;
        let capacity = Some(1.0 / hold.as_secs_f64());
        return Ok(Server { capacity, exponential, queue: Some(1), retry_after, ..Server::default() });
    }
    let Some(table) = root.table("server")? else {
        return Err(root.wrong(0..0, "there is no server", "[server] with capacity = 5000"));
    };
    table.known(&[
        "capacity",
        "workers",
        "service",
        "queue",
        "order",
        "drop_expired",
        "latency",
        "retry_after",
        "say_overloaded",
        "failure",
        "rate_limit",
        "pacer",
        "admission",
        "whole_seconds",
    ])?;
    // These three are read where the policies are.
    let _ = (table.value("pacer"), table.value("admission"), table.value("whole_seconds"));
    let mut server = Server {
        capacity: table.number("capacity")?,
        workers: table.small("workers")?.unwrap_or(1),
        exponential: service_times(&table, "service")?,
        queue: table.whole("queue")?,
        lifo: table.word("order", "order", &[("fifo", false), ("lifo", true)])?.unwrap_or(false),
        drop_expired: table.flag("drop_expired")?.unwrap_or(false),
        latency: table.duration("latency")?.unwrap_or(Duration::ZERO),
        rate_limit: None,
        retry_after: retry_after(&table)?,
        refuse_for_good: table.flag("say_overloaded")?.unwrap_or(false),
        failure: table.number("failure")?.unwrap_or(0.0),
    };
    if let Some(limit) = table.table("rate_limit")? {
        let Some(rate) = limit.number("rate")? else {
            return Err(limit.wrong(
                table.span("rate_limit"),
                "the rate limit has no rate",
                "rate_limit = { rate = 100 }",
            ));
        };
        let burst = limit.whole("burst")?.unwrap_or((rate.max(1.0)) as u64);
        limit.finish()?;
        server.rate_limit = Some(RateLimit { rate, burst });
    }
    if server.capacity.is_none() && server.rate_limit.is_none() && server.failure == 0.0 && !table.has("latency") {
        return Err(table.wrong(
            table.span("capacity"),
            "the server has no capacity",
            "capacity = 5000, in requests a second",
        ));
    }
    table.finish()?;
    Ok(server)
}

fn service_times(table: &Table<'_>, key: &'static str) -> Result<bool> {
    let words = [("deterministic", false), ("exponential", true)];
    Ok(table.word(key, "distribution", &words)?.unwrap_or(false))
}

pub(super) fn retry_after(table: &Table<'_>) -> Result<RetryAfter> {
    match table.text("retry_after")? {
        None => Ok(RetryAfter::Silent),
        Some(word) => {
            RetryAfter::parse(word).map_err(|bad| table.wrong(table.span("retry_after"), bad.problem, bad.hint))
        }
    }
}

impl RetryAfter {
    /// Reads `silent`, `spread`, `exact`, or a duration.
    ///
    /// # Errors
    ///
    /// It is none of those.
    pub fn parse(word: &str) -> std::result::Result<RetryAfter, BadSetting> {
        match word {
            "silent" | "none" => Ok(RetryAfter::Silent),
            "spread" => Ok(RetryAfter::Spread),
            "exact" => Ok(RetryAfter::Exact),
            _ => match relent::duration::parse_duration(word) {
                Ok(after) => Ok(RetryAfter::Fixed(after)),
                Err(_) => Err(BadSetting::unknown("Retry-After", word, &["silent", "spread", "exact", "5s"])),
            },
        }
    }
}

pub(super) fn troubles(root: &Table<'_>) -> Result<Vec<Trouble>> {
    let mut troubles = Vec::new();
    for value in root.bounded_list("trouble", MOST_OF_A_LIST, "tables [[trouble]]")? {
        let table = root.table_of("a trouble", value)?;
        let words = [
            ("stall", TroubleKind::Stall),
            ("refuse", TroubleKind::Refuse),
            ("slow", TroubleKind::Slow(0.5)),
            ("failing", TroubleKind::Failing(0.5)),
            ("losing", TroubleKind::Losing(1.0)),
        ];
        let mut kind = table.word("kind", "kind of trouble", &words)?.unwrap_or(TroubleKind::Stall);
        match &mut kind {
            TroubleKind::Slow(speed) => {
                // What is left of the speed. `share` is its old name, which says less.
                *speed = table.number("speed")?.or(table.number("share")?).unwrap_or(*speed);
            }
            TroubleKind::Failing(share) | TroubleKind::Losing(share) => {
                *share = table.number("share")?.unwrap_or(*share);
            }
            TroubleKind::Stall | TroubleKind::Refuse => {}
        }
        let ramp = table.duration("ramp")?.unwrap_or(Duration::ZERO);
        let at = table.duration("at")?.unwrap_or(Duration::ZERO);
        let Some(lasts) = table.duration("for")? else {
            return Err(table.wrong(value.span(), "it is not said how long the trouble lasts", "for = \"10s\""));
        };
        troubles.push(Trouble { at, lasts, kind, ramp });
        table.finish()?;
    }
    Ok(troubles)
}
