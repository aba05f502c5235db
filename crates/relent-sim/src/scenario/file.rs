//! Scenario files: TOML in, a scenario out, mistakes shown where they stand.

use super::{
    Access, Arrivals, Assertion, Batch, Engine, Ethernet, Layers, OptimisticWriters, Saturated, Subject, Windows,
};
use super::{
    Contender, Picture, Problem, Protection, RateLimit, RetryAfter, Scenario, Server, Service, Trouble, TroubleKind,
    World,
    clients_file::{arrivals, clients_table, count, network, writes},
    population_file::Draft,
    table::{Result, Table},
};
use super::{chain_file as chain, population_file as population, protection_file as protection};
use relent::config::{BadSetting, Config, ConfigError};
use std::{fs, io::Read, ops::Range, path::Path, sync::OnceLock, time::Duration};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The tables and keys of a scenario file, apart from `policy`.
const OTHERS: [&str; 22] = [
    "name",
    "title",
    "seeds",
    "seed",
    "engine",
    "limit",
    "clients",
    "network",
    "server",
    "trouble",
    "layers",
    "lock",
    "occ",
    "batch",
    "ethernet",
    "channel",
    "run",
    "assert",
    "pictures",
    "upstream",
    "population",
    "layer",
];

/// The clients of a file that says all about them by its populations.
static EMPTY: OnceLock<DeTable<'static>> = OnceLock::new();

/// The most runs, and the most troubles.
const MOST_OF_A_LIST: usize = 1000;

/// The longest scenario file that is read.
const LONGEST_FILE: u64 = 1 << 20;

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no scenario, or an impossible one; the error says where.
    pub fn load(path: &Path) -> std::result::Result<Scenario, ConfigError> {
        let file = fs::File::open(path).map_err(|error| unreadable(path, &error))?;
        Scenario::read(path, file)
    }

    /// Reads a scenario file that is open.
    ///
    /// # Errors
    ///
    /// As [`load`](Scenario::load).
    pub fn read(path: &Path, file: impl Read) -> std::result::Result<Scenario, ConfigError> {
        let cannot = |error: &dyn std::fmt::Display| unreadable(path, error);
        let mut text = String::new();
        // A device has no length, and may have no end.
        let read = file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(|error| cannot(&error))?;
        if read as u64 > LONGEST_FILE {
            return Err(cannot(&"it is longer than 1 MiB"));
        }
        let mut scenario = Scenario::parse(&text).map_err(|error| error.in_file(path))?;
        if scenario.name.is_empty() {
            scenario.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(scenario)
    }

    /// Reads the text of a scenario file.
    ///
    /// # Errors
    ///
    /// The text is no scenario, or an impossible one; the error says where.
    ///
    /// ```
    /// use relent_sim::Scenario;
    ///
    /// let scenario = Scenario::parse(r#"
    ///     [clients]
    ///     count = 1000
    ///     [server]
    ///     capacity = 50
    ///     queue = 50
    ///     [policy.full]
    ///     base = "100ms"
    ///     max_attempts = "unlimited"
    /// "#).unwrap();
    /// assert_eq!(scenario.contenders[0].name, "full");
    ///
    /// let error = Scenario::parse("[clients]\ncont = 1000").unwrap_err();
    /// assert_eq!((error.line(), error.hint()), (Some(2), "did you mean \"count\"?"));
    /// ```
    pub fn parse(text: &str) -> std::result::Result<Scenario, ConfigError> {
        let root = parse(text)?;
        let config = Config::parse_among(text, &OTHERS)?;
        let root = Table::new(text, "a scenario", root.get_ref());
        let scenario = read(&root, &config).map_err(|error| *error)?;
        match scenario.check() {
            Ok(()) => Ok(scenario),
            Err(problem) => Err(placed(text, &root, problem)),
        }
    }
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> ConfigError {
    const HINT: &str = "a scenario is a TOML file: see docs/simulate-reference.md";
    ConfigError::whole(path, format!("cannot read the scenario {path:?}: {error}"), HINT)
}

impl Problem {
    /// The problem at its place in the scenario file that it was found in, if the file can still be read.
    pub fn in_file(self, path: &Path) -> ConfigError {
        // A pipe has been read, and would be waited for.
        let is_file = fs::metadata(path).is_ok_and(|data| data.is_file());
        let text = is_file.then(|| fs::read_to_string(path).ok()).flatten().unwrap_or_default();
        let error = match parse(&text) {
            Ok(root) => placed(&text, &Table::new(&text, "a scenario", root.get_ref()), self),
            Err(_) => return ConfigError::whole(path, self.problem, &self.hint),
        };
        error.in_file(path)
    }
}

fn parse(text: &str) -> std::result::Result<Spanned<DeTable<'_>>, ConfigError> {
    const HINT: &str = "scenario files are TOML: key = \"value\" lines";
    DeTable::parse(text).map_err(|error| ConfigError::place(text, error.span().unwrap_or(0..0), error.message(), HINT))
}

/// A problem of the whole at the place of the key it is about.
fn placed(text: &str, root: &Table<'_>, problem: Problem) -> ConfigError {
    let key = match problem.key.as_str() {
        "server.capacity" if root.has("lock") => "lock.hold",
        key => key,
    };
    let span = problem.span.clone().unwrap_or_else(|| find(root, key));
    ConfigError::place(text, span, problem.problem, problem.hint)
}

fn find(root: &Table<'_>, path: &str) -> Range<usize> {
    let mut span = 0..0;
    let mut rest: Vec<&str> = path.split('.').collect();
    rest.reverse();
    let mut entries = root.entries();
    while let Some(name) = rest.pop()
        && let Some((_, value, key)) = entries.iter().find(|(key, ..)| *key == name)
    {
        span = if rest.is_empty() && !value.get_ref().is_table() { value.span() } else { key.clone() };
        entries = match root.table_of(name, value) {
            Ok(table) => table.entries(),
            Err(_) => break,
        };
    }
    span
}

fn read(root: &Table<'_>, config: &Config) -> Result<Scenario> {
    let populations = population::populations(root, config)?;
    let world = world(root, population::together(&populations))?;
    let mut scenario = Scenario::new(root.text("name")?.unwrap_or_default(), world);
    root.text("title")?.unwrap_or_default().clone_into(&mut scenario.title);
    scenario.seeds = root.small("seeds")?.unwrap_or(1);
    scenario.first_seed = root.whole("seed")?.unwrap_or(1);
    scenario.limit = root.duration("limit")?.unwrap_or(scenario.limit);
    let engines = [("exact", Engine::Exact), ("count", Engine::Count), ("fluid", Engine::Fluid)];
    scenario.engine = root.word("engine", "engine", &engines)?;
    scenario.contenders = contenders(root, config, &protection::server(root)?, &populations)?;
    scenario.asserts = asserts(root, &scenario.contenders)?;
    if let Some(table) = root.table("pictures")? {
        for picture in Picture::ALL {
            if let Some(wanted) = table.flag(picture.name())? {
                scenario.pictures = scenario.pictures.with(picture, wanted);
            }
        }
        table.finish()?;
    }
    Ok(scenario)
}

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

fn world(root: &Table<'_>, own: Option<Arrivals>) -> Result<World> {
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

fn server(root: &Table<'_>) -> Result<Server> {
    if let Some(lock) = root.table("lock")? {
        // A lock is a server with one place: who holds it is being served.
        let Some(hold) = lock.duration("hold")? else {
            return Err(lock.wrong(root.span("lock"), "it is not said how long the lock is held", "hold = \"50ms\""));
        };
        if hold.is_zero() {
            return Err(lock.wrong(lock.span("hold"), "the lock is held for no time", "hold = \"50ms\""));
        }
        let exponential = service_times(&lock, "held")?;
        let retry_after = retry_after(&lock)?;
        lock.finish()?;
        let capacity = Some(1.0 / hold.as_secs_f64());
        return Ok(Server { capacity, exponential, queue: Some(1), retry_after, ..Server::default() });
    }
    let Some(table) = root.table("server")? else {
        return Err(root.wrong(0..0, "there is no server", "[server] with capacity = 5000"));
    };
    table.known(&[
        "capacity",
        "workers",
        "service",
        "queue",
        "order",
        "drop_expired",
        "latency",
        "retry_after",
        "say_overloaded",
        "failure",
        "rate_limit",
        "pacer",
        "admission",
        "whole_seconds",
    ])?;
    // These three are read where the policies are.
    let _ = (table.value("pacer"), table.value("admission"), table.value("whole_seconds"));
    let mut server = Server {
        capacity: table.number("capacity")?,
        workers: table.small("workers")?.unwrap_or(1),
        exponential: service_times(&table, "service")?,
        queue: table.whole("queue")?,
        lifo: table.word("order", "order", &[("fifo", false), ("lifo", true)])?.unwrap_or(false),
        drop_expired: table.flag("drop_expired")?.unwrap_or(false),
        latency: table.duration("latency")?.unwrap_or(Duration::ZERO),
        rate_limit: None,
        retry_after: retry_after(&table)?,
        refuse_for_good: table.flag("say_overloaded")?.unwrap_or(false),
        failure: table.number("failure")?.unwrap_or(0.0),
    };
    if let Some(limit) = table.table("rate_limit")? {
        let Some(rate) = limit.number("rate")? else {
            return Err(limit.wrong(
                table.span("rate_limit"),
                "the rate limit has no rate",
                "rate_limit = { rate = 100 }",
            ));
        };
        let burst = limit.whole("burst")?.unwrap_or((rate.max(1.0)) as u64);
        limit.finish()?;
        server.rate_limit = Some(RateLimit { rate, burst });
    }
    if server.capacity.is_none() && server.rate_limit.is_none() && server.failure == 0.0 && !table.has("latency") {
        return Err(table.wrong(
            table.span("capacity"),
            "the server has no capacity",
            "capacity = 5000, in requests a second",
        ));
    }
    table.finish()?;
    Ok(server)
}

fn service_times(table: &Table<'_>, key: &'static str) -> Result<bool> {
    let words = [("deterministic", false), ("exponential", true)];
    Ok(table.word(key, "distribution", &words)?.unwrap_or(false))
}

fn retry_after(table: &Table<'_>) -> Result<RetryAfter> {
    match table.text("retry_after")? {
        None => Ok(RetryAfter::Silent),
        Some(word) => {
            RetryAfter::parse(word).map_err(|bad| table.wrong(table.span("retry_after"), bad.problem, bad.hint))
        }
    }
}

impl RetryAfter {
    /// Reads `silent`, `spread`, `exact`, or a duration.
    ///
    /// # Errors
    ///
    /// It is none of those.
    pub fn parse(word: &str) -> std::result::Result<RetryAfter, BadSetting> {
        match word {
            "silent" | "none" => Ok(RetryAfter::Silent),
            "spread" => Ok(RetryAfter::Spread),
            "exact" => Ok(RetryAfter::Exact),
            _ => match relent::duration::parse_duration(word) {
                Ok(after) => Ok(RetryAfter::Fixed(after)),
                Err(_) => Err(BadSetting::unknown("Retry-After", word, &["silent", "spread", "exact", "5s"])),
            },
        }
    }
}

/// The tables of a list, of which there are not more than anybody looks at.
fn bounded<'a>(root: &Table<'a>, key: &'static str) -> Result<Vec<&'a Spanned<DeValue<'a>>>> {
    let list = root.list(key);
    match list.get(MOST_OF_A_LIST) {
        Some(value) => Err(root.wrong(
            value.span(),
            format!("there are more than {MOST_OF_A_LIST} tables [[{key}]]"),
            "put the others into a file of their own",
        )),
        None => Ok(list),
    }
}

fn troubles(root: &Table<'_>) -> Result<Vec<Trouble>> {
    let mut troubles = Vec::new();
    for value in bounded(root, "trouble")? {
        let table = root.table_of("a trouble", value)?;
        let words = [
            ("stall", TroubleKind::Stall),
            ("refuse", TroubleKind::Refuse),
            ("slow", TroubleKind::Slow(0.5)),
            ("failing", TroubleKind::Failing(0.5)),
            ("losing", TroubleKind::Losing(1.0)),
        ];
        let mut kind = table.word("kind", "kind of trouble", &words)?.unwrap_or(TroubleKind::Stall);
        match &mut kind {
            TroubleKind::Slow(speed) => {
                // What is left of the speed. `share` is its old name, which says less.
                *speed = table.number("speed")?.or(table.number("share")?).unwrap_or(*speed);
            }
            TroubleKind::Failing(share) | TroubleKind::Losing(share) => {
                *share = table.number("share")?.unwrap_or(*share);
            }
            TroubleKind::Stall | TroubleKind::Refuse => {}
        }
        let ramp = table.duration("ramp")?.unwrap_or(Duration::ZERO);
        let at = table.duration("at")?.unwrap_or(Duration::ZERO);
        let Some(lasts) = table.duration("for")? else {
            return Err(table.wrong(value.span(), "it is not said how long the trouble lasts", "for = \"10s\""));
        };
        troubles.push(Trouble { at, lasts, kind, ramp });
        table.finish()?;
    }
    Ok(troubles)
}

fn batch(table: Table<'_>) -> Result<World> {
    let mut windows = Vec::new();
    for value in table.list("window") {
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

/// The policies that run: those of `[[run]]`, or all of them in the order of the file.
fn contenders(root: &Table<'_>, config: &Config, server: &Protection, all: &[Draft]) -> Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    let layers = chain::layers(root, config)?;
    for value in bounded(root, "run")? {
        let table = root.table_of("a run", value)?;
        let (own, alone) = (table.text("name")?, population::alone(all, server));
        let mut contender = match (table.text("policy")?, alone) {
            (Some(name), _) => {
                let span = table.span("policy");
                let policy = config.policy(name).map_err(|bad| table.wrong(span, bad.problem, bad.hint))?;
                let protection = protection::of_run(&table, config, name, server)?;
                let contender = Contender::new(own.unwrap_or(name), policy).protected(protection);
                population::of_run(&table, config, contender, name, all)?
            }
            // Who there is has policies already.
            (None, Some(together)) if population::all_have_policies(all) => {
                let named = Contender { populations: Vec::new(), ..together };
                let protection = protection::of_run(&table, config, "", server)?;
                let named = Contender { name: own.unwrap_or(&named.name).to_owned(), protection, ..named };
                population::of_run(&table, config, named, "", all)?
            }
            _ => return Err(table.wrong(value.span(), "a run names no policy", "policy = \"NAME\"")),
        };
        contender.layers = chain::of_run(&table, config, &layers)?;
        if table.has("retry_after") {
            contender.retry_after = Some(retry_after(&table)?);
        }
        contenders.push(contender);
        table.finish()?;
    }
    if !contenders.is_empty() {
        return Ok(contenders);
    }
    if population::all_have_policies(all) {
        return Ok(population::alone(all, server).into_iter().collect());
    }
    let Some(table) = root.table("policy")? else { return Ok(contenders) };
    for (name, _, span) in table.entries() {
        if config.names().any(|known| known == name) && !population::is_taken(root, name) {
            let policy = config.policy(name).map_err(|bad| table.wrong(span, bad.problem, bad.hint))?;
            let contender = Contender::new(name, policy).protected(protection::of_policy(config, Some(name), server));
            contenders.push(Contender { layers: layers.clone(), ..population::among(contender, all) });
        }
    }
    if contenders.is_empty() {
        let unnamed = config.draft(None).and_then(|draft| draft.policy());
        let policy = unnamed.map_err(|bad| table.wrong(root.span("policy"), bad.problem, bad.hint))?;
        let contender = Contender::new("policy", policy).protected(protection::of_policy(config, None, server));
        contenders.push(Contender { layers, ..population::among(contender, all) });
    }
    Ok(contenders)
}

/// `[assert]` bounds figures for every policy, `[assert.NAME]` for one.
fn asserts(root: &Table<'_>, contenders: &[Contender]) -> Result<Vec<Assertion>> {
    let Some(table) = root.table("assert")? else { return Ok(Vec::new()) };
    let mut asserts = Vec::new();
    for (name, value, span) in table.entries() {
        if let Some(subject) = Subject::parse(name) {
            asserts.push(bound(&table, subject, value, None)?);
            continue;
        }
        let apart: Vec<String> =
            contenders.iter().flat_map(Contender::apart).map(|population| population.name).collect();
        if !contenders.iter().any(|contender| contender.name == name) && !apart.iter().any(|own| own == name) {
            let mut names: Vec<&str> = contenders.iter().map(|contender| contender.name.as_str()).collect();
            names.extend(apart.iter().map(String::as_str));
            names.extend(crate::scenario::Figure::ALL.map(crate::scenario::Figure::name));
            names.push("recovered");
            let bad = BadSetting::unknown("figure or policy", name, &names);
            return Err(table.wrong(span, bad.problem, bad.hint));
        }
        let own = table.table_of(name, value)?;
        for (figure, value, span) in own.entries() {
            let Some(subject) = Subject::parse(figure) else {
                let bad = BadSetting::unknown(
                    "figure",
                    figure,
                    &crate::scenario::Figure::ALL.map(crate::scenario::Figure::name),
                );
                return Err(own.wrong(span, bad.problem, bad.hint));
            };
            asserts.push(bound(&own, subject, value, Some(name.to_owned()))?);
        }
    }
    Ok(asserts)
}

/// `{ max = 60 }`, `{ min = 1 }`, or `"<= 60"`.
fn bound<'a>(
    table: &Table<'a>,
    subject: Subject,
    value: &'a Spanned<DeValue<'a>>,
    policy: Option<String>,
) -> Result<Assertion> {
    const HINT: &str = "{ max = 60 }, { min = 1 } or \"<= 60\"";
    let (min, max) = match value.get_ref() {
        DeValue::String(text) => {
            let (most, number) = match (text.strip_prefix("<="), text.strip_prefix(">=")) {
                (Some(number), _) => (true, number),
                (_, Some(number)) => (false, number),
                _ => return Err(table.wrong(value.span(), format!("{text:?} is no bound"), HINT)),
            };
            match number.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    if most {
                        (None, Some(number))
                    } else {
                        (Some(number), None)
                    }
                }
                _ => return Err(table.wrong(value.span(), format!("{text:?} is no bound"), HINT)),
            }
        }
        DeValue::Table(_) => {
            let bounds = table.table_of("a bound", value)?;
            let read = (bounds.number("min")?, bounds.number("max")?);
            bounds.finish()?;
            read
        }
        _ => return Err(table.wrong(value.span(), "this is no bound", HINT)),
    };
    if min.is_none() && max.is_none() {
        return Err(table.wrong(value.span(), "the bound bounds nothing", HINT));
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let problem = format!("no number is at least {min} and at most {max}");
        return Err(table.wrong(value.span(), problem, "{ min = 1, max = 2 }"));
    }
    Ok(Assertion { policy, subject, min, max })
}
