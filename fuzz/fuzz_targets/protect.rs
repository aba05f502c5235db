//! Budgets and limiters under any settings that are accepted, whatever happens to them and to the clock.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relent::{AwsQuota, BudgetSettings, LimitAnswer, LimitSettings, Outcome, Timestamp, Verdict};
use std::time::Duration;

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&mut self) -> u64 {
        let (head, tail) = self.0.split_at(self.0.len().min(8));
        self.0 = tail;
        head.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn float(&mut self) -> f64 {
        let number = self.number();
        if number % 2 == 0 { f64::from_bits(number) } else { (number >> 11) as f64 / (1_u64 << 53) as f64 }
    }

    fn small(&mut self) -> u32 {
        self.number() as u32
    }

    fn duration(&mut self) -> Duration {
        Duration::from_nanos(self.number())
    }

    fn outcome(&mut self) -> Outcome {
        match self.number() % 6 {
            0 => Outcome::Success,
            1 => Outcome::Dropped,
            2 => Outcome::TimedOut,
            3 => Outcome::Failure(Verdict::After(self.duration())),
            4 => Outcome::Failure(Verdict::Permanent),
            _ => Outcome::Failure(Verdict::Transient),
        }
    }
}

fn budget(bytes: &mut Bytes) -> BudgetSettings {
    match bytes.number() % 6 {
        0 => BudgetSettings::Ratio { ratio: bytes.float(), min_per_second: bytes.small(), window: bytes.duration() },
        1 => BudgetSettings::AwsQuota(AwsQuota {
            capacity: bytes.small(),
            cost: bytes.small(),
            throttling_cost: bytes.small(),
            timeout_cost: bytes.small(),
        }),
        2 => BudgetSettings::Grpc { max_tokens: bytes.small() % 1001, token_ratio: bytes.float() },
        3 => BudgetSettings::Finagle { ttl: bytes.duration(), min_per_second: bytes.small(), ratio: bytes.float() },
        4 => BudgetSettings::InFlight {
            share: bytes.float(),
            floor: bytes.small(),
            sleeping: bytes.small() % 2 == 0,
            inclusive: bytes.small() % 2 == 0,
        },
        _ => BudgetSettings::Throttle { k: 1.0 + bytes.float(), window: bytes.duration(), at_most: bytes.float() },
    }
}

fn limit(bytes: &mut Bytes) -> LimitSettings {
    match bytes.number() % 5 {
        0 => LimitSettings::Rate { rate: bytes.small(), per: bytes.duration(), burst: bytes.small() },
        1 => LimitSettings::Concurrency { limit: bytes.small(), queue: bytes.small(), longest: bytes.duration() },
        2 => LimitSettings::Aimd {
            start: bytes.small() % 1000,
            min: bytes.small() % 1000,
            max: bytes.small(),
            slow_after: bytes.duration(),
        },
        3 => LimitSettings::Gradient { start: bytes.small() % 1000, max: bytes.small() },
        _ => LimitSettings::AwsAdaptive,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Bytes(bytes);
    let (budget, limit) = (budget(&mut bytes).budget(), limit(&mut bytes).limit());
    let mut paid = Vec::new();
    let mut flying = 0_u32;
    while !bytes.0.is_empty() {
        let what = bytes.number();
        let now = Timestamp::from_nanos(bytes.number());
        if let Ok(budget) = &budget {
            match what % 5 {
                0 => _ = budget.start(now, what),
                1 => paid.extend(budget.withdraw(now, bytes.outcome(), what)),
                2 => budget.outcome(now, bytes.outcome(), paid.pop()),
                3 => _ = paid.pop().map(|paid| budget.refund(now, paid)),
                _ => budget.reset(now),
            }
            assert!(budget.balance(now).is_finite());
        }
        if let Ok(limit) = &limit {
            match what % 3 {
                0 => flying += u32::from(limit.acquire(now) == LimitAnswer::Granted),
                1 if flying > 0 => {
                    flying -= 1;
                    limit.release(now, bytes.outcome(), bytes.duration());
                }
                _ if flying > 0 => {
                    flying -= 1;
                    limit.give_back(now);
                }
                _ => {}
            }
            let snapshot = limit.snapshot(now);
            assert!(snapshot.in_flight.is_none_or(|counted| counted == flying));
            assert!(!snapshot.available.is_nan());
        }
    }
});
