//! Upstreams and servers: text in, settings and errors out, and back.

mod kinds;
mod written;
mod wrong;

use super::{part::Settings, *};
use crate::{
    Admission, AdmissionSettings, AwsQuota, Breaker, BreakerQuirks, BreakerSettings, BreakerWindow, Budget,
    BudgetSettings, Hedge, HedgeSettings, Limit, LimitSettings, Order, Pacer, PacerSettings, Scope,
};
use std::{string::ToString, time::Duration, vec::Vec};

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn upstream(keys: &str) -> UpstreamDraft {
    *Config::parse(&format!("[upstream.x]\n{keys}")).unwrap_or_else(|e| panic!("{e}")).upstream("x").unwrap()
}

fn server(keys: &str) -> ServerDraft {
    *Config::parse(&format!("[server.x]\n{keys}")).unwrap_or_else(|e| panic!("{e}")).server(Some("x")).unwrap()
}

fn budget(text: &str) -> BudgetSettings {
    upstream(&format!("budget = {text}")).budget.into_option().unwrap()
}

fn breaker(text: &str) -> BreakerSettings {
    upstream(&format!("breaker = {text}")).breaker.into_option().unwrap()
}

fn limit(text: &str) -> LimitSettings {
    upstream(&format!("limit = {text}")).limit.into_option().unwrap()
}

fn hedge(text: &str) -> HedgeSettings {
    upstream(&format!("hedge = {text}")).hedge.into_option().unwrap()
}

/// The text is an error at this line and column, and what is said of it.
#[track_caller]
fn refused(text: &str, (line, column): (usize, usize), problem: &str, hint: &str) {
    let error = Config::parse(text).expect_err(text);
    assert_eq!((error.problem(), error.hint()), (problem, hint), "{text}");
    assert_eq!((error.line(), error.column()), (Some(line), Some(column)), "{text}\n{error}");
}
