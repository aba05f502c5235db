//! Notifications and webhooks: lists of delays as published.

use super::{HOUR, MINUTE, secs};
use crate::Policy;
use crate::compat::{Evidence, Profile};
use core::time::Duration;

static WECHAT_PAY: [Duration; 15] = [
    secs(15),
    secs(15),
    secs(30),
    secs(3 * MINUTE),
    secs(10 * MINUTE),
    secs(20 * MINUTE),
    secs(30 * MINUTE),
    secs(30 * MINUTE),
    secs(30 * MINUTE),
    secs(60 * MINUTE),
    secs(3 * HOUR),
    secs(3 * HOUR),
    secs(3 * HOUR),
    secs(6 * HOUR),
    secs(6 * HOUR),
];
static ALIPAY: [Duration; 7] = [
    secs(4 * MINUTE),
    secs(10 * MINUTE),
    secs(10 * MINUTE),
    secs(HOUR),
    secs(2 * HOUR),
    secs(6 * HOUR),
    secs(15 * HOUR),
];
static SVIX: [Duration; 7] =
    [secs(5), secs(5 * MINUTE), secs(30 * MINUTE), secs(2 * HOUR), secs(5 * HOUR), secs(10 * HOUR), secs(10 * HOUR)];
static STANDARD_WEBHOOKS: [Duration; 9] = [
    secs(5),
    secs(5 * MINUTE),
    secs(30 * MINUTE),
    secs(2 * HOUR),
    secs(5 * HOUR),
    secs(10 * HOUR),
    secs(14 * HOUR),
    secs(20 * HOUR),
    secs(24 * HOUR),
];

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "wechat-pay",
        system: "WeChat Pay payment notifications",
        version: "2026",
        source: "pay.weixin.qq.com: payment notification",
        evidence: Evidence::Published,
        picks: "",
        warning: "24 h 4 min in 16 attempts; no jitter, so a merchant's outage comes back as a wave",
        policy: Policy::list(&WECHAT_PAY),
    },
    Profile {
        name: "alipay",
        system: "Alipay asynchronous notifications",
        version: "2026",
        source: "opendocs.alipay.com: asynchronous notification",
        evidence: Evidence::Published,
        picks: "",
        warning: "24 h 24 min in 8 attempts; no jitter, so a merchant's outage comes back as a wave",
        policy: Policy::list(&ALIPAY),
    },
    Profile {
        name: "svix",
        system: "Svix webhooks",
        version: "2026",
        source: "docs.svix.com/retries",
        evidence: Evidence::Published,
        picks: "",
        warning: "27 h 35 min in 8 attempts; no jitter here",
        policy: Policy::list(&SVIX),
    },
    Profile {
        name: "standard-webhooks",
        system: "Standard Webhooks example schedule",
        version: "2026",
        source: "github.com/standard-webhooks/standard-webhooks: spec/standard-webhooks.md",
        evidence: Evidence::Published,
        picks: "",
        warning: "75 h 35 min in 10 attempts; the specification asks for some jitter on top, and names none",
        policy: Policy::list(&STANDARD_WEBHOOKS),
    },
];
