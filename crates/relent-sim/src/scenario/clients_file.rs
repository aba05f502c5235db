//! Clients and the network before them, as scenario files have them: those of all, and those of one population.

use super::{
    Arrivals, Network, Rate, Writes,
    table::{MOST_OF_A_LIST, Result, Table},
};
use std::time::Duration;
use toml::de::DeValue;

/// `[clients]`, whose keys are known.
pub(super) fn clients_table<'a>(root: &Table<'a>) -> Result<Table<'a>> {
    match root.table("clients")? {
        Some(table) => {
            table.known(&[
                "count",
                "window",
                "rate",
                "spikes",
                "arrivals",
                "for",
                "timeout",
                "writes",
                "leaving",
                "newcomers",
                "processes",
                "clients_per_process",
            ])?;
            Ok(table)
        }
        None => Err(root.wrong(
            0..0,
            "there are no clients",
            "[clients] with count = 1000, or rate = 450 and for = \"400s\"",
        )),
    }
}

/// How many they are.
pub(super) fn count(clients: &Table<'_>) -> Result<u64> {
    match clients.whole("count")? {
        Some(count) => Ok(count),
        None => Err(clients.wrong(0..0, "clients have no count", "count = 1000")),
    }
}

/// When they come: all at once, or as a stream.
pub(super) fn arrivals(clients: &Table<'_>) -> Result<Arrivals> {
    let Some(rate) = clients.value("rate") else {
        return Ok(Arrivals::Herd {
            clients: count(clients)?,
            window: clients.duration("window")?.unwrap_or(Duration::ZERO),
        });
    };
    if clients.has("count") {
        let problem = "clients are a herd (count) or a stream (rate), not both";
        return Err(clients.wrong(clients.span("count"), problem, "leave one of them out"));
    }
    let mut points = match rate.get_ref() {
        DeValue::Array(items) => {
            let mut lines = Vec::new();
            for item in items {
                let DeValue::Array(pair) = item.get_ref() else {
                    return Err(clients.wrong(item.span(), "a point of the rate is a pair", "[\"60s\", 450]"));
                };
                let [time, value] = pair.iter().collect::<Vec<_>>()[..] else {
                    return Err(clients.wrong(item.span(), "a point of the rate is a pair", "[\"60s\", 450]"));
                };
                lines.push((clients.duration_of(time)?.as_secs_f64(), clients.number_of(value)?));
            }
            Rate::lines(lines)
        }
        _ => Rate::constant(clients.number_of(rate)?),
    };
    for spike in clients.bounded_list("spikes", MOST_OF_A_LIST, "spikes")? {
        let table = clients.table_of("a spike", spike)?;
        let at = table.duration("at")?.unwrap_or(Duration::ZERO);
        let lasts = table.duration("for")?.unwrap_or(Duration::from_secs(1));
        points = points.spike(at, lasts, table.number("times")?.unwrap_or(2.0));
        table.finish()?;
    }
    let words = [("poisson", true), ("constant", false)];
    let Some(until) = clients.duration("for")? else {
        return Err(clients.wrong(clients.span("rate"), "it is not said for how long clients call", "for = \"400s\""));
    };
    Ok(Arrivals::Open {
        rate: points,
        poisson: clients.word("arrivals", "kind of arrivals", &words)?.unwrap_or(true),
        until,
    })
}

/// What they write.
pub(super) fn writes(clients: &Table<'_>) -> Result<Option<Writes>> {
    let Some(table) = clients.table("writes")? else { return Ok(None) };
    let writes = Writes {
        share: table.number("share")?.unwrap_or(0.1),
        retried: table.flag("retried")?.unwrap_or(false),
        cost: table.number("cost")?.unwrap_or(1.0),
    };
    table.finish()?;
    Ok(Some(writes))
}

#[derive(Clone, Copy)]
enum Shape {
    Constant,
    Normal,
    Exponential,
    LogNormal,
}

/// The way to the server.
pub(super) fn network(root: &Table<'_>) -> Result<Network> {
    match root.table("network")? {
        Some(table) => network_of(table),
        None => Ok(Network::round_trip(Duration::from_millis(10))),
    }
}

pub(super) fn network_of(table: Table<'_>) -> Result<Network> {
    let one_way = match (table.duration("rtt")?, table.duration("one_way")?) {
        (Some(_), Some(_)) => {
            return Err(table.wrong(table.span("rtt"), "rtt and one_way are the same twice", "leave one of them out"));
        }
        (Some(rtt), None) => rtt / 2,
        (None, one_way) => one_way.unwrap_or(Duration::from_millis(5)),
    };
    let shapes = [
        ("constant", Shape::Constant),
        ("normal", Shape::Normal),
        ("exponential", Shape::Exponential),
        ("lognormal", Shape::LogNormal),
    ];
    let network = match table.word("distribution", "distribution", &shapes)?.unwrap_or(Shape::Constant) {
        Shape::Constant => Network::Constant(one_way),
        Shape::Normal => Network::Normal { mean: one_way, sd: table.duration("sd")?.unwrap_or(one_way / 5) },
        Shape::Exponential => Network::Exponential(one_way),
        Shape::LogNormal => {
            // The time that is said is the mean, whatever the distribution.
            let sigma = table.number("sigma")?.unwrap_or(0.5);
            let below = if sigma.is_finite() { (-sigma * sigma / 2.0).exp() } else { 1.0 };
            Network::LogNormal { median: one_way.mul_f64(below), sigma }
        }
    };
    table.finish()?;
    Ok(network)
}
