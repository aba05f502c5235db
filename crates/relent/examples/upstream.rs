//! Four protections of one far side: `cargo run -p relent --example upstream`.
#![expect(clippy::print_stdout, reason = "an example shows something")]

use relent::{Breaker, Budget, Limit, Policy, Upstream};
use std::time::{Duration, Instant};

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// Five failures in a row, then open; here for 300 ms, so that the example ends soon.
static FLAKY: Upstream = Upstream::new("flaky").breaker(Breaker::consecutive(5).open_for(Duration::from_millis(300)));

/// At most 10 % retries.
static BUSY: Upstream = Upstream::new("busy").budget(Budget::ratio(0.1).min_per_second(0));

/// 100 a second at the gateway.
static GATEWAY: Upstream = Upstream::new("gateway").limit(Limit::rate(100));

/// One upstream for reads and writes.
static BANK: Upstream = Upstream::new("bank").breaker(Breaker::consecutive(3));
const READ: Policy = Policy::constant(MS).max_attempts(3);
const WRITE: Policy = Policy::immediate().max_attempts(1);

fn main() {
    let policy = Policy::exponential(10 * MS).max_attempts(5);
    let down = policy.on(&FLAKY).retry_blocking(|_| Err::<(), _>("down"));
    println!("five in a row: {}", down.map_or_else(|err| err.to_string(), |()| String::new()));
    let refused = policy.on(&FLAKY).retry_blocking(|_| Ok::<_, &str>(()));
    println!("then:          {}", refused.map_or_else(|err| err.to_string(), |()| String::new()));
    let begin = Instant::now();
    let resumed = policy.on(&FLAKY).wait_while_open().retry_blocking(|_| Ok::<_, &str>(()));
    println!(
        "or waited for: {} after {:.1?}",
        if resumed.is_ok() { "well again" } else { "still down" },
        begin.elapsed()
    );

    for _ in 0..1000 {
        let _ = Policy::immediate().max_attempts(4).on(&BUSY).retry_blocking(|_| Err::<(), _>("down"));
    }
    let seen = BUSY.snapshot();
    println!("a tenth more:  {} calls made {} attempts", seen.calls, seen.attempts);

    let begin = Instant::now();
    for _ in 0..50 {
        let _ = policy.max_elapsed(10 * SEC).on(&GATEWAY).retry_blocking(|_| Ok::<_, &str>(()));
    }
    println!("100 a second:  50 attempts took {:.1?}", begin.elapsed());

    let _ = READ.on(&BANK).retry_blocking(|_| Err::<(), _>("down"));
    let spared = WRITE.on(&BANK).retry_blocking(|_| Ok::<_, &str>(()));
    println!("shared:        what reads found out spares writes: {}", spared.is_err());
}
