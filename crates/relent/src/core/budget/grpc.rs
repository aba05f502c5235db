//! gRPC's retry throttle: failures take a token, successes give a part of one back, and there are no retries while half
//! of them or more are gone.
//!
//! Source: gRFC A6, "Throttling Retry Attempts and Hedged RPCs". Bit for bit what grpc-js 1.14.7 and grpc-go count,
//! in doubles. "Do not retry" counts as a failure; a permanent failure counts as nothing.

use super::allowance::{Allowance, Withdrawal};
use crate::core::{outcome::Outcome, time::Timestamp, word::Word};

#[derive(Debug)]
pub(super) struct Grpc {
    most: f64,
    ratio: f64,
    /// The bits of a double.
    tokens: Word,
}

impl Grpc {
    pub(super) const fn new(max_tokens: u32, token_ratio: f64) -> Grpc {
        // A6: three decimal places count, further ones are dropped. The product of 1.001 is just below 1001.
        let places = token_ratio * 1000.0;
        let nearest = (places + 0.5) as u64 as f64;
        let ratio = if nearest / 1000.0 == token_ratio { token_ratio } else { places as u64 as f64 / 1000.0 };
        let most = max_tokens as f64;
        Grpc { most, ratio, tokens: Word::new(most.to_bits()) }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.tokens);
    }

    fn change(&self, next: impl Fn(f64) -> f64) {
        self.tokens.update(|bits| {
            let new = next(f64::from_bits(bits)).to_bits();
            (new != bits).then_some(new)
        });
    }

    /// A6: when a new configuration comes, the tokens are scaled by what they may be at most.
    pub(super) fn adopt(&self, old: &Grpc) {
        let tokens = f64::from_bits(old.tokens.get());
        self.tokens.set((tokens * (self.most / old.most)).to_bits());
    }

    pub(super) fn reset(&self) {
        self.tokens.set(self.most.to_bits());
    }
}

impl Allowance for Grpc {
    fn name(&self) -> &str {
        "grpc"
    }

    #[inline]
    fn withdraw(&self, _: Timestamp, _: Outcome, _: u64) -> Option<Withdrawal> {
        (f64::from_bits(self.tokens.get()) > self.most / 2.0).then_some(Withdrawal::new(0, 0))
    }

    #[inline]
    fn outcome(&self, _: Timestamp, outcome: Outcome, _: Option<Withdrawal>) {
        if outcome == Outcome::Success {
            self.change(|tokens| (tokens + self.ratio).min(self.most));
        } else if outcome.is_load() {
            self.change(|tokens| (tokens - 1.0).max(0.0));
        }
    }

    /// A retry costs nothing by itself; the failure before it has taken its token.
    fn refund(&self, _: Timestamp, _: Withdrawal) {}

    /// Tokens, of which the upper half allows retries.
    fn balance(&self, _: Timestamp) -> f64 {
        f64::from_bits(self.tokens.get())
    }
}
