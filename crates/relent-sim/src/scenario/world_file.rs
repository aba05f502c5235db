//! What scenario files say about the world: which one it is, and the tables of each.

use super::{
    Access, Arrivals, Batch, Ethernet, Layers, OptimisticWriters, Saturated, Service, Windows, World,
    clients_file::{arrivals, clients_table, count, network, writes},
    protection_file as protection,
    server_file::{server, troubles},
    table::{MOST_OF_A_LIST, Result, Table},
};
use relent::config::BadSetting;
use std::{sync::OnceLock, time::Duration};
use toml::de::DeTable;

/// The clients of a file that says all about them by its populations.
static EMPTY: OnceLock<DeTable<'static>> = OnceLock::new();

/// Tables that say what a world is, and those that belong to each. The first that is there decides.
const WORLDS: [(&str, &[&str]); 6] = [
    ("batch", &[]),
    ("ethernet", &[]),
    ("channel", &[]),
    ("occ", &["clients", "network"]),
    ("lock", &["clients", "network", "layers", "trouble", "population", "layer"]),
    ("server", &["clients", "network", "layers", "trouble", "population", "layer"]),
];

/// Complains about tables of another world, which would mean nothing.
fn check_tables(root: &Table<'_>) -> Result<()> {
    const ALL: [&str; 12] = [
        "batch",
        "ethernet",
        "channel",
        "occ",
        "lock",
        "server",
        "clients",
        "network",
        "layers",
        "trouble",
        "population",
        "layer",
    ];
    const LAYERS: (&str, &[&str]) = ("layers", &["clients"]);
    let named = WORLDS.into_iter().find(|(name, _)| root.has(name));
    let Some((name, own)) = named.or_else(|| root.has("layers").then_some(LAYERS)) else { return Ok(()) };
    match ALL.into_iter().find(|other| *other != name && root.has(other) && !own.contains(other)) {
        None => Ok(()),
        Some(other) => Err(root.wrong(
            root.span(other),
            format!("a scenario with [{name}] has no [{other}]"),
            "leave one of them out",
        )),
    }
}

/// The world that a file describes; `own` are the arrivals of its populations.
pub(super) fn world(root: &Table<'_>, own: Option<Arrivals>) -> Result<World> {
    check_tables(root)?;
    if let Some(table) = root.table("batch")? {
        return batch(table);
    }
    if let Some(table) = root.table("ethernet")? {
        return ethernet(table);
    }
    if let Some(table) = root.table("channel")? {
        return channel(table);
    }
    if let Some(table) = root.table("occ")? {
        table.finish()?;
        let clients = clients_table(root)?;
        let writers = OptimisticWriters { clients: count(&clients)?, network: network(root)? };
        clients.finish()?;
        return Ok(World::OptimisticWriters(writers));
    }
    let layers = root.table("layers")?;
    if let Some(table) = &layers
        && !root.has("server")
    {
        let clients = clients_table(root)?;
        let world = Layers {
            calls: count(&clients)?,
            depth: table.small("depth")?.unwrap_or(1),
            failure: table.number("failure")?.unwrap_or(1.0),
            say_overloaded: table.flag("say_overloaded")?.unwrap_or(false),
        };
        clients.finish()?;
        layers.map(Table::finish).transpose()?;
        return Ok(World::Layers(world));
    }
    let (depth, say_overloaded) = match layers {
        None => (1, false),
        Some(table) => {
            let read = (table.small("depth")?.unwrap_or(1), table.flag("say_overloaded")?.unwrap_or(false));
            table.finish()?;
            read
        }
    };
    let clients = match (&own, root.has("clients")) {
        (Some(_), false) => Table::new(root.source(), "clients", EMPTY.get_or_init(DeTable::new)),
        _ => clients_table(root)?,
    };
    let service = Service {
        arrivals: match own {
            Some(_) if clients.has("count") || clients.has("rate") => {
                let key = if clients.has("count") { "count" } else { "rate" };
                let problem = "the populations have a count or rate of their own, and so have the clients";
                return Err(clients.wrong(clients.span(key), problem, "leave it out here"));
            }
            Some(together) => together,
            None => arrivals(&clients)?,
        },
        network: network(root)?,
        timeout: clients.duration("timeout")?,
        writes: writes(&clients)?,
        server: server(root)?,
        troubles: troubles(root)?,
        layers: depth,
        say_overloaded,
        leaving: clients.number("leaving")?.unwrap_or(0.0),
        newcomers: protection::newcomers(&clients)?,
        processes: protection::processes(&clients)?,
    };
    clients.finish()?;
    Ok(World::Service(service))
}

fn batch(table: Table<'_>) -> Result<World> {
    let mut windows = Vec::new();
    for value in table.bounded_list("window", MOST_OF_A_LIST, "window strategies")? {
        let name = table.text_of(value)?;
        windows.push(Windows::parse(name).ok_or_else(|| {
            let bad =
                BadSetting::unknown("window strategy", name, &["beb", "exp=1.5", "quad", "lb", "llb", "stb", "fixed"]);
            table.wrong(value.span(), bad.problem, bad.hint)
        })?);
    }
    if windows.is_empty() {
        windows = Windows::ALL.to_vec();
    }
    let packets = table.whole("n")?.unwrap_or(256);
    table.finish()?;
    Ok(World::Batch(Batch { packets, windows }))
}

fn ethernet(table: Table<'_>) -> Result<World> {
    let world = Ethernet {
        stations: table.whole("stations")?.unwrap_or(2),
        frame_slots: table.whole("frame_slots")?.unwrap_or(1),
        slot: table.duration("slot")?.unwrap_or(Duration::from_nanos(51_200)),
        capture: table.flag("capture")?.unwrap_or(false),
    };
    table.finish()?;
    Ok(World::Ethernet(world))
}

fn channel(table: Table<'_>) -> Result<World> {
    let stations = table.whole("stations")?.unwrap_or(10);
    let dcf = table.word("access", "access", &[("aloha", false), ("dcf", true)])?.unwrap_or(true);
    let access = match dcf {
        true => {
            Access::Dcf { window: table.whole("window")?.unwrap_or(32), stages: table.small("stages")?.unwrap_or(5) }
        }
        false => Access::Persistent(table.number("p")?.unwrap_or(1.0 / stations.max(1) as f64)),
    };
    let slots = table.whole("slots")?.unwrap_or(1_000_000);
    table.finish()?;
    Ok(World::Saturated(Saturated { stations, access, slots }))
}
