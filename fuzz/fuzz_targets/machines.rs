//! Breakers, pacers, hedges and admission keep their promises for any settings that are accepted and any order of calls,
//! drops and clock steps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relent::{
    Admission, Arrival, Attempts, BreakerPermit, BreakerSettings, BreakerState, BreakerWindow, HedgeSettings,
    PacerSettings, Room, Timestamp, Verdict,
};
use std::time::Duration;

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&mut self) -> u64 {
        let (head, tail) = self.0.split_at(self.0.len().min(8));
        self.0 = tail;
        head.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn float(&mut self) -> f64 {
        f64::from_bits(self.number())
    }

    fn time(&mut self) -> Duration {
        Duration::from_nanos(self.number())
    }

    fn some<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.number() & 1 == 1).then(|| value(self))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Bytes(bytes);
    breaker(&mut bytes);
    pacer(&mut bytes);
});

fn breaker(bytes: &mut Bytes<'_>) {
    let settings = BreakerSettings {
        consecutive: bytes.some(|b| b.number() as u32),
        failures: bytes.some(|b| b.number() as u32),
        share: bytes.some(Bytes::float),
        slow_after: bytes.some(Bytes::time),
        slow_share: bytes.float(),
        window: match bytes.number() {
            calls @ 0..2000 => BreakerWindow::Calls(calls as u32),
            nanos => BreakerWindow::Time(Duration::from_nanos(nanos)),
        },
        min_calls: bytes.some(|b| b.number() as u32),
        open_for: bytes.time(),
        factor: bytes.float(),
        open_at_most: bytes.some(Bytes::time),
        jitter: bytes.float(),
        probes: bytes.number() as u32,
        close_after: bytes.number() as u32,
        reopen_share: bytes.some(Bytes::float),
        probe_again_after: bytes.some(Bytes::time),
        ramp: bytes.time(),
        ramp_from: bytes.float(),
        ..BreakerSettings::default()
    };
    let Ok(breaker) = settings.breaker() else { return };
    let mut held: Vec<BreakerPermit<'_>> = Vec::new();
    let mut now = Timestamp::ZERO;
    while !bytes.0.is_empty() {
        let action = bytes.number();
        now = Timestamp::from_nanos(bytes.number());
        let before = breaker.snapshot(now);
        match (action % 4, held.pop()) {
            (0, other) => {
                held.extend(other);
                if let Ok(permit) = breaker.permit(now, bytes.number()) {
                    assert!(before.until.is_none_or(|until| now >= until), "open means no attempt");
                    held.push(permit);
                }
            }
            (1, Some(permit)) => drop(permit.succeeded(now, bytes.time(), bytes.number())),
            (2, Some(permit)) => drop(permit.failed(now, bytes.time(), bytes.number())),
            _ => {}
        }
        let snapshot = breaker.snapshot(now);
        assert!(snapshot.probes <= settings.probes);
        assert!(snapshot.since >= before.since);
        assert_eq!(snapshot.until.is_some(), snapshot.state == BreakerState::Open);
    }
    held.clear();
    assert_eq!(breaker.snapshot(now).probes, 0, "every place comes back");
}

fn pacer(bytes: &mut Bytes<'_>) {
    let settings = PacerSettings {
        capacity: bytes.float(),
        measured: bytes.number() & 1 == 1,
        horizon: bytes.time(),
        kept: bytes.float(),
        learned: bytes.number() & 1 == 1,
    };
    let hedge = HedgeSettings { quantile: Some(bytes.float()), ..HedgeSettings::default() }.hedge();
    let (Ok(pacer), Ok(hedge)) = (settings.pacer(), hedge) else { return };
    let admission = Admission::new();
    while !bytes.0.is_empty() {
        let now = Timestamp::from_nanos(bytes.number());
        let client = Attempts::parse(&String::from_utf8_lossy(&bytes.0[..bytes.0.len().min(40)]));
        let arrival =
            Arrival { attempt: bytes.number() as u32, client, left: bytes.some(Bytes::time), ..Arrival::default() };
        admission.decide(now, &arrival, Room { used: bytes.number(), most: bytes.number() }, Some(&pacer));
        if let Some(wait) = pacer.turn(now) {
            assert!(wait <= settings.horizon);
        }
        pacer.completed(now, bytes.time(), bytes.number() & 1 == 1);
        admission.completed(bytes.time());
        hedge.observe(bytes.time());
        let mut call = hedge.start(now);
        call.begun(now);
        call.on_failure(now, Verdict::from(bytes.number() & 1 == 1));
    }
}
