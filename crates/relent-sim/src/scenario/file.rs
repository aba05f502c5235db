//! Scenario files: TOML in, a scenario out, mistakes shown where they stand.

use super::{
    Engine, Picture, Problem, Scenario, assert_file as asserts, population_file as population,
    protection_file as protection, runs_file as runs,
    table::{Result, Table},
    world_file as world,
};
use relent::config::{Config, ConfigError};
use std::{fs, io::Read, ops::Range, path::Path};
use toml::{Spanned, de::DeTable};

/// The longest scenario file that is read.
const LONGEST_FILE: u64 = 1 << 20;

impl Scenario {
    /// The tables and keys that a scenario file may have at its top, apart from `policy`.
    ///
    /// ```
    /// assert!(relent_sim::Scenario::KEYS.contains(&"clients"));
    /// ```
    pub const KEYS: &[&str] = &[
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

    /// Reads a scenario file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no scenario, or an impossible one; the error says where.
    pub fn load(path: &Path) -> std::result::Result<Scenario, ConfigError> {
        let file = fs::File::open(path).map_err(|error| unreadable(path, &error))?;
        Scenario::read(path, file).map(|(scenario, _)| scenario)
    }

    /// Reads a scenario file that is open: the scenario, and its text, in which [`Problem::in_text`] finds the place of what turns out to be
    /// wrong later.
    ///
    /// # Errors
    ///
    /// As [`load`](Scenario::load).
    pub fn read(path: &Path, file: impl Read) -> std::result::Result<(Scenario, String), ConfigError> {
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
        Ok((scenario, text))
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
        let config = Config::parse_among(text, Scenario::KEYS)?;
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
    /// The problem at its place in the text of a scenario file, as it was [read](Scenario::read): by now the file may be another one.
    pub fn in_text(self, path: &Path, text: &str) -> ConfigError {
        match parse(text) {
            Ok(root) => placed(text, &Table::new(text, "a scenario", root.get_ref()), self).in_file(path),
            Err(_) => ConfigError::whole(path, self.problem, &self.hint),
        }
    }
}

fn parse(text: &str) -> std::result::Result<Spanned<DeTable<'_>>, ConfigError> {
    const HINT: &str = "scenario files are TOML: key = \"value\" lines";
    Config::check_size(text)?;
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
    let world = world::world(root, population::together(&populations))?;
    let mut scenario = Scenario::new(root.text("name")?.unwrap_or_default(), world);
    root.text("title")?.unwrap_or_default().clone_into(&mut scenario.title);
    scenario.seeds = root.small("seeds")?.unwrap_or(1);
    scenario.first_seed = root.whole("seed")?.unwrap_or(1);
    scenario.limit = root.duration("limit")?.unwrap_or(scenario.limit);
    let engines = [("exact", Engine::Exact), ("count", Engine::Count), ("fluid", Engine::Fluid)];
    scenario.engine = root.word("engine", "engine", &engines)?;
    scenario.contenders = runs::contenders(root, config, &protection::server(root)?, &populations)?;
    scenario.asserts = asserts::asserts(root, &scenario.contenders)?;
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
