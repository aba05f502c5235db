//! `relent store show`: what is in a store, without the values.

use super::{
    args::{KindName, ShowArgs},
    counted::{self, told},
    open::{IfMissing, with},
    place,
};
use crate::{
    breaks::{answer, wrap_named},
    escape::escape,
    json::{Object, array},
    redact, screen,
    talk::{Fault, write_out},
};
use relent::duration::Human;
use relent_store::{Listed, RecordState, Time};
use std::{fmt::Write, process::ExitCode};

/// What was found of a kind.
struct Found {
    kind: KindName,
    listed: Vec<Listed>,
    /// Whether there is more.
    is_cut: bool,
}

pub(super) fn run(args: &ShowArgs) -> Result<ExitCode, Fault> {
    let kinds: Vec<KindName> = args.kind.map_or(KindName::ALL.to_vec(), |kind| vec![kind]);
    let (url, now, found) = with(&args.to, IfMissing::Say, async |url, store| {
        let mut found = Vec::new();
        for kind in kinds {
            // One more than is shown tells whether there is more.
            let mut listed = store.list(kind.kind(), args.limit + 1).await?;
            let is_cut = listed.len() > args.limit as usize;
            listed.truncate(args.limit as usize);
            found.push(Found { kind, listed, is_cut });
        }
        Ok((url, store.about().await?.now, found))
    })?;
    let text = match (args.to.json, args.kind) {
        (true, _) => json(&place::shown(&url), now, &found),
        (false, Some(_)) => found.iter().map(|found| found.table(now)).collect(),
        (false, None) => {
            let counts = found.iter().map(|found| format!("{:<10} {}\n", found.kind.name(), found.count()));
            let leases = found.iter().filter(|found| found.kind == KindName::Leases && !found.listed.is_empty());
            counts.chain(leases.map(|leases| format!("\n{}", leases.table(now)))).collect()
        }
    };
    write_out(answer(&text, args.to.json).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

impl Found {
    fn count(&self) -> String {
        let more = if self.is_cut { "+" } else { "" };
        format!("{}{more}", self.listed.len())
    }

    fn table(&self, now: Time) -> String {
        let columns = screen::columns().unwrap_or(usize::MAX);
        let mut out = String::new();
        for listed in &self.listed {
            let line = line(listed, now);
            out.push_str(&wrap_named(&escape(&line), columns));
        }
        if self.is_cut {
            let _ = writeln!(out, "and more; --limit shows more than {}", self.listed.len());
        }
        out
    }
}

fn left(until: Time, now: Time) -> String {
    format!("{:.0}", Human(until.since(now)))
}

fn line(listed: &Listed, now: Time) -> String {
    match listed {
        Listed::Lease { name, owner, fence, until } => {
            let (name, owner) = (told(name, name.as_bytes()), redact::text(owner.as_str()));
            format!("{name}  held by {owner}, fence {fence}, {} left unless renewed", left(*until, now))
        }
        Listed::Record { scope, key, state, fence, since, expires, bytes } => format!(
            "{} {}  {} since {since}, fence {fence}, {bytes} bytes, forgotten in {}",
            told(scope, scope.as_bytes()),
            told(key, key.as_bytes()),
            state_name(*state),
            left(*expires, now)
        ),
        Listed::Value { key, version, bytes } => {
            format!("{}  version {}, {bytes} bytes", told(key, key.as_bytes()), version.0)
        }
        Listed::Seen { scope, key, expires } => {
            let (scope, key) = (told(scope, scope.as_bytes()), told(key, key.as_bytes()));
            format!("{scope} {key}  forgotten in {}", left(*expires, now))
        }
        Listed::Upstream { name, shared } => {
            let held = counted::hand(shared).map(|hand| format!(", {hand}")).unwrap_or_default();
            format!(
                "{}  in 10s: {} calls, {} retries, {} failures, {} processes{held}",
                told(name, name.as_bytes()),
                shared.calls,
                shared.retries,
                shared.failures,
                shared.processes
            )
        }
    }
}

fn state_name(state: RecordState) -> &'static str {
    match state {
        RecordState::Running => "running",
        RecordState::Unknown => "unknown",
        RecordState::Done => "done",
        RecordState::Failed => "failed",
    }
}

fn json(shown: &str, now: Time, found: &[Found]) -> String {
    let mut object = Object::new();
    object.text("store", shown).text("now", &now.to_string());
    for found in found {
        object.raw(found.kind.name(), &array(found.listed.iter().map(item)));
    }
    let cut = found.iter().filter(|found| found.is_cut).map(|found| crate::json::quoted(found.kind.name()));
    object.raw("cut", &array(cut));
    object.finish() + "\n"
}

fn item(listed: &Listed) -> String {
    let mut object = Object::new();
    match listed {
        Listed::Lease { name, owner, fence, until } => object
            .text("name", &told(name, name.as_bytes()))
            .text("owner", &redact::text(owner.as_str()))
            .number("fence", fence.0)
            .text("until", &until.to_string()),
        Listed::Record { scope, key, state, fence, since, expires, bytes } => object
            .text("scope", &told(scope, scope.as_bytes()))
            .text("key", &told(key, key.as_bytes()))
            .text("state", state_name(*state))
            .number("fence", fence.0)
            .text("since", &since.to_string())
            .text("expires", &expires.to_string())
            .number("bytes", *bytes),
        Listed::Value { key, version, bytes } => {
            object.text("key", &told(key, key.as_bytes())).number("version", version.0).number("bytes", *bytes)
        }
        Listed::Seen { scope, key, expires } => object
            .text("scope", &told(scope, scope.as_bytes()))
            .text("key", &told(key, key.as_bytes()))
            .text("expires", &expires.to_string()),
        Listed::Upstream { name, shared } => counted::members(&mut object, name, shared),
    };
    object.finish()
}
