//! `relent simulate`: what a policy does to a server when many use it at once, seen before it happens.

mod advice;
mod curves;
mod ends;
mod fates;
pub(crate) mod files;
mod machines;
pub(crate) mod numbers;
pub(crate) mod policies;
pub(crate) mod table;
mod watch;
mod worlds;

use crate::{
    breaks,
    escape::{escape, escape_lines},
    redact, regular, screen,
    talk::{self, Fault, HushArgs, plain},
    whole_file,
};
use clap::Subcommand;
use relent_sim::{
    Control, Effort, Engine, Outcome, Picture, Pictures, Problem, Scenario, advise, draw_pictures, simulate_with,
};
use std::{collections::BTreeMap, mem, path::PathBuf, process::ExitCode, sync::Arc, thread, time::Duration};
use worlds::{Aws, BatchArgs, Channel, EthernetArgs, Herd, LayersArgs, Open};

/// Exit code for an assertion that does not hold.
const EXIT_BROKEN: u8 = 1;

/// The flags of `relent simulate`.
#[derive(Debug, clap::Args)]
#[command(
    args_override_self = true,
    args_conflicts_with_subcommands = false,
    subcommand_negates_reqs = true,
    arg_required_else_help = true,
    after_help = AFTER_HELP
)]
pub struct Args {
    /// The scenario, a TOML file.
    #[arg(value_name = "SCENARIO.toml", required = true)]
    pub file: Option<PathBuf>,

    /// A scenario by flags instead.
    #[command(subcommand)]
    pub world: Option<WorldArgs>,

    /// How to run it, and what to write.
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
The policies' delays are decided by the same code that runs them; the world around them is simulated.
Exit codes:
    0  simulated, and with --assert every promise of the scenario holds
    1  --assert: a promise does not hold; stderr has the numbers that broke it
  125  the scenario is impossible, or relent itself failed
  130  interrupted; what was done is written";

/// The scenarios that flags can describe.
#[derive(Debug, Subcommand)]
pub enum WorldArgs {
    /// Clients that all lose their connection at once, and a server with a queue.
    Herd(Box<Herd>),
    /// Calls that come in a stream, and an outage: does the storm end?
    Open(Box<Open>),
    /// Writers of one row under optimistic concurrency, as in the AWS post on jitter.
    Aws(Box<Aws>),
    /// Layers of services that each retry: amplification.
    Layers(Box<LayersArgs>),
    /// Stations on an 802.3 segment.
    Ethernet(Box<EthernetArgs>),
    /// A batch of packets on a slotted channel, by window strategies.
    Batch(Box<BatchArgs>),
    /// Stations that always have something to send: slotted ALOHA, 802.11 DCF.
    Channel(Box<Channel>),
}

/// How to run a scenario, and what to write.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Exit with 1 if a promise of the scenario's [assert] does not hold.
    #[arg(long, global = true)]
    pub assert: bool,

    /// How many runs each policy gets, with different luck.
    #[arg(long, visible_alias = "reps", value_name = "NUMBER", global = true, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub seeds: Option<u32>,

    /// What does the arithmetic [default: what suits the number of clients].
    #[arg(long, value_name = "ENGINE", global = true, value_parser = ["exact", "count", "fluid"])]
    pub engine: Option<String>,

    /// No run goes on longer than this in its own time [default: 1d].
    #[arg(long, value_name = "DURATION", global = true, value_parser = numbers::time_limit, allow_hyphen_values = true)]
    pub limit: Option<Duration>,

    /// How many threads share the runs [default: one a core].
    #[arg(long, value_name = "NUMBER", global = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// How far to look for advice: auto is about as much work as the runs themselves.
    #[arg(long, value_name = "WHEN", global = true, value_parser = ["auto", "always", "never"], default_value = "auto")]
    pub advice: String,

    /// Write an array with one JSON object a policy instead of the table.
    #[arg(long, global = true)]
    pub json: bool,

    /// With --json, add the series that plots are drawn from.
    #[arg(long, requires = "json", global = true)]
    pub plots: bool,

    /// Write the figures to this file as CSV, too.
    #[arg(long, value_name = "FILE", global = true)]
    pub csv: Option<PathBuf>,

    /// Write plots to this folder as SVG, which is made if it is not there.
    #[arg(long, value_name = "DIR", global = true)]
    pub svg: Option<PathBuf>,

    /// Write a report to this file: one page with all plots and figures, which works without a network.
    #[arg(long, value_name = "FILE", global = true)]
    pub html: Option<PathBuf>,

    /// Which pictures of the whole to add to the report: heat, hysteresis, recovery, layers, clients; all, none
    /// [default: those that take a second or less].
    #[arg(long, value_name = "PICTURES", global = true, value_delimiter = ',',
        value_parser = ["heat", "hysteresis", "recovery", "layers", "clients", "all", "none"])]
    pub pictures: Vec<String>,

    /// How much to say.
    #[command(flatten)]
    pub hush: HushArgs,
}

impl OutputArgs {
    /// Whether anything is written that has pictures in it.
    fn has_pictures(&self) -> bool {
        self.html.is_some() || self.svg.is_some() || self.plots
    }

    /// What the flags say about pictures, in the place of the scenario's own words.
    fn pictures(&self, scenario: &mut Scenario) -> Result<(), Fault> {
        if self.pictures.is_empty() {
            return Ok(());
        }
        if !self.has_pictures() {
            return Err(Fault::new("--pictures: there is nothing to draw them on")
                .hint("add --html FILE, --svg DIR, or --json --plots"));
        }
        let fitting = Picture::ALL.into_iter().filter(|picture| scenario.fits(*picture).is_ok());
        let all = self.pictures.iter().any(|name| name == "all").then_some(fitting).into_iter().flatten();
        let named = self.pictures.iter().filter_map(|name| Picture::parse(name));
        scenario.pictures = all.chain(named).fold(Pictures::NONE, |pictures, picture| pictures.with(picture, true));
        Ok(())
    }
}

/// Simulates.
///
/// # Errors
///
/// The scenario is impossible, or a file cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode, Fault> {
    let (mut scenario, text) = scenario(args)?;
    let output = &args.output;
    if let Some(seeds) = output.seeds {
        scenario.seeds = seeds;
    }
    if let Some(engine) = &output.engine {
        scenario.engine = Engine::parse(engine);
    }
    output.pictures(&mut scenario)?;
    if let Some(limit) = output.limit {
        scenario.limit = limit;
    }
    let threads = output.threads.map_or_else(cores, usize::from);
    let control = Arc::new(Control::default());
    for contender in &scenario.contenders {
        output.hush.policy(&contender.name, &contender.policy);
    }
    let watch = watch::Watch::start(Arc::clone(&control), output.hush)?;
    let outcome = simulate_with(&scenario, threads, &control).map_err(|problem| fault(args, &text, problem));
    let outcome = outcome.map(|mut outcome| {
        let effort = if output.advice == "always" { Effort::Any } else { Effort::Short };
        if output.advice != "never" && !outcome.interrupted {
            advise(&scenario, &mut outcome, threads, effort, &control);
        }
        let missing = match output.has_pictures() {
            true => draw_pictures(&scenario, &mut outcome, threads, &control),
            false => Vec::new(),
        };
        (outcome, missing)
    });
    let is_interrupted = watch.end();
    let (mut outcome, missing) = outcome?;
    outcome.interrupted |= is_interrupted;
    for picture in missing.into_iter().filter(|_| !outcome.interrupted) {
        output.hush.warn(format!("there is no picture {:?}: {}", picture.name(), why_not(picture)));
    }
    write(output, &scenario, &outcome)?;
    if outcome.interrupted {
        output.hush.note("interrupted: this is what was done");
        return Ok(ExitCode::from(130));
    }
    Ok(if output.assert { judge(&scenario, &outcome) } else { ExitCode::SUCCESS })
}

/// The scenario, and the text of its file, if it has one.
fn scenario(args: &Args) -> Result<(Scenario, String), Fault> {
    if let (Some(_), Some(file)) = (&args.world, &args.file) {
        return Err(Fault::new(format!(
            "there are two scenarios: {} and the command after it",
            escape(&file.to_string_lossy())
        ))
        .hint("a file is simulated by itself: relent simulate FILE.toml"));
    }
    let mut text = String::new();
    let mut scenario = match (&args.world, &args.file) {
        (Some(WorldArgs::Herd(herd)), _) => {
            herd.scenario(args.output.engine.as_deref().is_some_and(|engine| engine != "exact"))?
        }
        (Some(WorldArgs::Open(open)), _) => open.scenario()?,
        (Some(WorldArgs::Aws(aws)), _) => aws.scenario()?,
        (Some(WorldArgs::Layers(layers)), _) => layers.scenario()?,
        (Some(WorldArgs::Ethernet(ethernet)), _) => ethernet.scenario()?,
        (Some(WorldArgs::Batch(batch)), _) => batch.scenario(),
        (Some(WorldArgs::Channel(channel)), _) => channel.scenario(),
        (None, Some(file)) => {
            let open = regular::read_or_pipe(file).map_err(|error| {
                Fault::new(format!("cannot read the scenario {:?}: {}", file.to_string_lossy(), plain(&error)))
                    .hint("a scenario is a TOML file: see docs/simulate-reference.md")
            })?;
            let scenario;
            (scenario, text) = Scenario::read(file, open)?;
            scenario
        }
        (None, None) => return Err(Fault::new("there is no scenario").hint("see relent simulate --help")),
    };
    fit(&mut scenario);
    Ok((scenario, text))
}

/// Names and titles are those that somebody chose: they are made fit to be told here, before any table, page or picture has them.
fn fit(scenario: &mut Scenario) {
    (scenario.name, scenario.title) = (redact::name(&scenario.name), redact::title(&scenario.title));
    let mut names = Names::default();
    for contender in &mut scenario.contenders {
        let given = mem::take(&mut contender.name);
        contender.name = names.fit(&given);
        for population in &mut contender.populations {
            let one = mem::take(&mut population.name);
            population.name = names.fit(&one);
            // As promises name it.
            names.0.insert(format!("{given}: {one}"), format!("{}: {}", contender.name, population.name));
        }
        contender.layers.iter_mut().for_each(|layer| layer.name = names.fit(&layer.name));
    }
    scenario.asserts.iter_mut().filter_map(|assert| assert.policy.as_mut()).for_each(|name| *name = names.fit(name));
}

/// Names as they are told, by those that were given, and all that are told, with the last number that was tried behind each.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, String>, BTreeMap<String, usize>);

impl Names {
    /// One name is told in one way, and two in two ways.
    pub(crate) fn fit(&mut self, name: &str) -> String {
        if let Some(told) = self.0.get(name) {
            return told.clone();
        }
        let told = redact::name(name);
        let mut free = told.clone();
        let mut last = self.1.get(&told).copied().unwrap_or(1);
        while self.1.contains_key(&free) {
            last += 1;
            free = format!("{told} {last}");
        }
        self.1.insert(free.clone(), 1);
        self.1.insert(told, last);
        self.0.insert(name.to_owned(), free.clone());
        free
    }
}

/// Where people read the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The columns of the terminal; where there is none, lines are as long as they are.
    pub(crate) columns: Option<usize>,
    /// Whether it shows characters beyond ASCII.
    pub(crate) unicode: bool,
}

/// One thread a core, and fewer where somebody has limited the addresses of this process (`ulimit -v`), of which each takes many in advance.
fn cores() -> usize {
    const A_THREAD: u64 = 256 << 20;
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    limit.map_or(cores, |limit| cores.min(usize::try_from(limit / A_THREAD).unwrap_or(cores)).max(1))
}

fn write(output: &OutputArgs, scenario: &Scenario, outcome: &Outcome) -> Result<(), Fault> {
    // First of all what needs least: whatever becomes of the pages, that is not lost.
    let told = tell(output, scenario, outcome);
    if let Some(path) = &output.csv {
        whole_file::replace_after(outcome.interrupted, path, outcome.to_csv().as_bytes()).map_err(|error| {
            Fault::new(format!("cannot write {}: {}", escape(&path.to_string_lossy()), plain(&error)))
        })?;
    }
    files::write(output, scenario, outcome)?;
    told?;
    for record in outcome.records.iter().filter(|record| !output.json && record.stopped.is_some()) {
        let reason = record.stopped.as_deref().unwrap_or_default();
        output.hush.warn(format!("{}: {reason}", escape(&record.policy)));
    }
    if output.assert && scenario.asserts.is_empty() {
        output.hush.warn("the scenario promises nothing: it has no [assert]");
    }
    Ok(())
}

/// Writes the table, or the objects.
fn tell(output: &OutputArgs, scenario: &Scenario, outcome: &Outcome) -> Result<(), Fault> {
    let text = match (output.json, output.plots) {
        (true, true) => outcome.to_json_with_plots(),
        (true, false) => outcome.to_json(),
        (false, _) => {
            let view = View { columns: screen::columns(), unicode: screen::unicode() };
            [
                table::draw(outcome, view),
                ends::draw(scenario),
                machines::draw(outcome, view),
                fates::draw(outcome, view),
                curves::draw(outcome, view),
                advice::draw(scenario, outcome, view),
            ]
            .concat()
        }
    };
    // Every name is escaped where it is put in; this is for the one that is forgotten.
    let text = if output.json { text } else { escape_lines(&text).into_owned() };
    let write_out = if outcome.interrupted { talk::write_out_at_once } else { talk::write_out };
    write_out(breaks::answer(&text, output.json).as_bytes())
}

/// Why a world that could have a picture has none.
const fn why_not(picture: Picture) -> &'static str {
    match picture {
        Picture::Heat => "no policy has a base and a cap, in a world that the fluid engine knows",
        _ => "the server has no capacity with which a load could be compared, or it takes more memory than is free",
    }
}

/// Says which promises do not hold.
fn judge(scenario: &Scenario, outcome: &Outcome) -> ExitCode {
    let broken = outcome.broken(&scenario.asserts);
    for broken in &broken {
        // Told like any other error, but it is the scenario's own exit code that counts.
        let _ = Fault::new(escape(&broken.to_string())).tell();
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_BROKEN) }
}

/// A problem that was found when flags had had their say: with the name of the flag where there is one, else at its
/// place in the scenario file, which has this text.
fn fault(args: &Args, text: &str, problem: Problem) -> Fault {
    let output = &args.output;
    let by_flag = match problem.key.as_str() {
        "engine" => output.engine.is_some(),
        "seeds" => output.seeds.is_some(),
        "limit" => output.limit.is_some(),
        key if key.starts_with("pictures.") => !output.pictures.is_empty(),
        _ => false,
    };
    match &args.file {
        Some(file) if args.world.is_none() && !by_flag => Fault::from(problem.in_text(file, text)),
        _ => {
            if let Some(picture) = problem.key.strip_prefix("pictures.") {
                return Fault::new(format!("--pictures {picture}: {}", problem.problem))
                    .hint("--pictures all draws what there is");
            }
            let text = match flag(args.world.as_ref(), &problem.key) {
                Some(flag) => format!("--{flag}: {}", problem.problem),
                None => problem.problem,
            };
            Fault::new(text).hint(problem.hint)
        }
    }
}

/// The flag that says what a key of a scenario file says.
fn flag(world: Option<&WorldArgs>, key: &str) -> Option<String> {
    let name = match key {
        "clients.count" if matches!(world, Some(WorldArgs::Layers(_))) => "calls",
        "clients.count" => "clients",
        "network" => "rtt",
        "channel.p" => "aloha",
        "trouble" => "outage",
        _ if key.starts_with("policy") => return None,
        _ => key.rsplit('.').next()?,
    };
    Some(name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_told_alike_are_told_apart() {
        let mut names = Names::default();
        let given =
            ["a", "kennwort=x", "kennwort=y", "a 2", "kennwort=x", "kennwort=z", "kennwort=*** 5", "kennwort=*** 4"];
        let told = given.map(|name| names.fit(name));
        let hidden = "kennwort=***";
        assert_eq!(told[..6], ["a", hidden, "kennwort=*** 2", "a 2", hidden, "kennwort=*** 3"]);
        let all: std::collections::BTreeSet<&String> = told.iter().collect();
        assert_eq!(all.len(), given.len() - 1, "{told:?}");
        for nth in 0..20_000 {
            assert!(names.fit(&format!("kennwort=word{nth}x")).starts_with(hidden));
        }
    }
}
