//! What scenario files say about protection.

use super::{
    Newcomers, Protection,
    table::{Result, Table},
};
use relent::config::{Config, ServerDraft};
use std::time::Duration;

/// What `[server]` says about its machines.
pub(super) fn server(root: &Table<'_>) -> Result<Protection> {
    let draft = ServerDraft::of_scenario(root.source())?;
    let whole_seconds = match root.table("server")? {
        Some(server) => server.flag("whole_seconds")?.unwrap_or(false),
        None => false,
    };
    Ok(Protection {
        pacer: draft.pacer.into_option(),
        admission: draft.admission.into_option(),
        whole_seconds,
        ..Protection::default()
    })
}

/// The server's machines, and those of the upstream that a policy names.
pub(super) fn of_policy(config: &Config, policy: Option<&str>, server: &Protection) -> Protection {
    let named = config.upstream_of(policy).and_then(|name| config.upstream(name).ok());
    let upstream = named.map(|draft| draft.settings());
    Protection {
        budget: upstream.and_then(|upstream| upstream.budget),
        breaker: upstream.and_then(|upstream| upstream.breaker),
        limit: upstream.and_then(|upstream| upstream.limit),
        hedge: upstream.and_then(|upstream| upstream.hedge),
        ..*server
    }
}

/// What a `[[run]]` says besides: `pacer = false`, `admission = false`, `whole_seconds = true`, `upstream = "NAME"` or
/// `false`, `wait_while_open = true`.
pub(super) fn of_run(run: &Table<'_>, config: &Config, policy: &str, server: &Protection) -> Result<Protection> {
    let mut protection = of_policy(config, Some(policy), server);
    if run.flag("pacer")? == Some(false) {
        protection.pacer = None;
    }
    if run.flag("admission")? == Some(false) {
        protection.admission = None;
    }
    protection.whole_seconds = run.flag("whole_seconds")?.unwrap_or(protection.whole_seconds);
    protection.wait_while_open = run.flag("wait_while_open")?.unwrap_or(false);
    let Some(value) = run.value("upstream") else { return Ok(protection) };
    let upstream = match value.get_ref() {
        toml::de::DeValue::Boolean(false) => relent::UpstreamSettings::default(),
        _ => {
            let name = run.text_of(value)?;
            let draft = config.upstream(name);
            draft.map_err(|bad| run.wrong(value.span(), bad.problem, bad.hint))?.settings()
        }
    };
    protection.budget = upstream.budget;
    protection.breaker = upstream.breaker;
    protection.limit = upstream.limit;
    protection.hedge = upstream.hedge;
    Ok(protection)
}

/// `newcomers = { rate = 2500, for = "60s" }`.
pub(super) fn newcomers(clients: &Table<'_>) -> Result<Option<Newcomers>> {
    let Some(table) = clients.table("newcomers")? else { return Ok(None) };
    let Some(rate) = table.number("rate")? else {
        return Err(clients.wrong(clients.span("newcomers"), "it is not said how many newcomers come", "rate = 2500"));
    };
    let until = table.duration("for")?.unwrap_or(Duration::from_secs(60));
    table.finish()?;
    Ok(Some(Newcomers { rate, until }))
}

/// `processes = 4`, or for herds `clients_per_process = 10`.
pub(super) fn processes(clients: &Table<'_>) -> Result<Option<u64>> {
    let (processes, each) = (clients.whole("processes")?, clients.whole("clients_per_process")?);
    match (processes, each, clients.whole("count")?) {
        (Some(_), Some(_), _) => Err(clients.wrong(
            clients.span("processes"),
            "processes and clients_per_process say the same twice",
            "leave one of them out",
        )),
        (None, Some(each), Some(count)) if each > 0 => Ok(Some(count.div_ceil(each))),
        (None, Some(_), _) => Err(clients.wrong(
            clients.span("clients_per_process"),
            "clients_per_process divides a herd, and this is none or the number is zero",
            "clients_per_process = 10 beside count; processes = 10 for a stream",
        )),
        (Some(0), None, _) => Err(clients.wrong(clients.span("processes"), "there are no processes", "processes = 1")),
        (processes, None, _) => Ok(processes),
    }
}
