//! The policy file of a command line: which one it is, whether it may be believed, and what it says.
//!
//! A file is *named* by `--policy`, or *found*: `relent.toml` in the working folder, or what `RELENT_CONFIG` says
//! (`none`: no file at all). One that is found steers commands without being asked, so it is believed only if nobody
//! else can have written it, or given another its name in the working folder, it is named when it is used, and none of its lines is ever quoted: it may be a file that
//! is secret, under a name that is not.

use crate::{
    access, brief,
    escape::escape,
    links::Step,
    redact, regular,
    size::Size,
    talk::{Fault, plain},
    typed::typed,
};
use relent::config::{BadSetting, Config, ConfigError, Draft};
use std::{
    cell::Cell,
    env, fmt,
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The policy file that is found by itself.
const FILE: &str = "relent.toml";

/// The variable that names another, or none.
const VARIABLE: &str = "RELENT_CONFIG";

/// The longest policy file that is read.
const LONGEST: u64 = 1 << 20;

/// The longest of those that nobody named.
const LONGEST_BY_CHANCE: u64 = 64 << 10;

/// What the file of a command line says.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyFile {
    /// The policy; empty without a file.
    pub(crate) draft: Draft,
    /// Where it is from, as flags write it; `None` without a file.
    pub(crate) origin: Option<String>,
    /// Which policy of a file that nobody named is used.
    pub(crate) used: Option<String>,
    /// What else the user should know: that a file is ignored, or a part of it.
    pub(crate) remarks: Vec<String>,
    /// All of the file, for its upstreams.
    pub(crate) config: Config,
    /// The file as it is shown, if there is one.
    pub(crate) shown: Option<String>,
    /// Which policy of it is used, if it was named.
    pub(crate) name: Option<String>,
    /// Whether it happens to be in the working folder, and nobody named it: then nobody has said that its stores and its hedges are
    /// meant. Where a store is decides what is opened, made and connected to. To name a policy or an upstream of it is no word about that.
    pub(crate) is_by_chance: bool,
}

impl PolicyFile {
    /// Why it is used, if no flag names it.
    pub(crate) fn why(&self) -> String {
        why(self.is_by_chance)
    }

    /// Reads what `--policy` says, or what is found beside these flags.
    pub(crate) fn read(policy: Option<&str>, beside: Beside) -> Result<PolicyFile, Fault> {
        match policy.map(|given| given.rsplit_once('#').unwrap_or((given, ""))) {
            Some(("-", name)) => of_input(name, beside),
            Some(("", name)) => of_the_found_one(name, beside),
            Some((file, name)) => named(Path::new(file), name, beside),
            None if beside == Beside::Profile => Ok(PolicyFile::default()),
            None => found(beside),
        }
    }
}

/// What flags say about the policy, beside a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Nothing.
    Nothing,
    /// A part of it: a file that is broken and was not asked for does not stop the command.
    Flags,
    /// All of it, as another system has it: no file counts that was not named.
    Profile,
    /// No policy is wanted: the file is for its upstreams alone.
    Upstreams,
}

/// The file of `--policy -`.
fn of_input(name: &str, beside: Beside) -> Result<PolicyFile, Fault> {
    let text = regular::standard_input(LONGEST)
        .map_err(|error| plain(&error))
        .and_then(|bytes| text_of(&bytes[..], LONGEST))
        .map_err(|problem| cannot_read("standard input", &problem))?;
    let config = parsed(&text, Path::new("-"))?;
    known(&config);
    chosen(config, "-", name, beside)
}

/// The file of `--policy #NAME`: that which is found by itself. To name a policy is no word about whose file it is, nor about what else
/// is in it, so all holds for it that holds for what is found.
fn of_the_found_one(name: &str, beside: Beside) -> Result<PolicyFile, Fault> {
    let place = place().ok_or_else(|| {
        Fault::new(format!("--policy #{name} needs a file, and {VARIABLE} says none"))
            .hint("--policy FILE#NAME names one")
    })?;
    let text = match believable(&place) {
        Ok(None) => Err("there is no such file".to_owned()),
        Ok(Some(file)) => text_of(file, place.longest()),
        Err(Problem::Strange(problem)) => return Err(place.is_not_used(name, &problem)),
        Err(Problem::Unreadable(problem)) => Err(problem),
    };
    let text = text.map_err(|problem| cannot_read(&place.shown(), &problem))?;
    let config = Config::parse(&text).map_err(|error| place.no_policy_file(&unquoted(&error)))?;
    let file = chosen(config, &place.shown(), name, beside)?;
    Ok(PolicyFile { is_by_chance: place.is_here, ..file })
}

/// A file that was named.
fn named(path: &Path, name: &str, beside: Beside) -> Result<PolicyFile, Fault> {
    let shown = format!("{:?}", path.display().to_string());
    let text = regular::read(path)
        .map_err(|error| plain(&error))
        .and_then(|file| text_of(file, LONGEST))
        .map_err(|problem| cannot_read(&shown, &problem))?;
    let config = parsed(&text, path)?;
    known(&config);
    chosen(config, &path.display().to_string(), name, beside)
}

/// What a file says that was named: what is wrong is shown, but beneath the name of a secret.
fn parsed(text: &str, path: &Path) -> Result<Config, Fault> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    Config::parse(text).map_err(|error| match error.line() {
        Some(line) if redact::is_beneath_a_secret(text, line) => {
            Fault::new(format!("{shown}: {}", unquoted(&error))).hint(error.hint())
        }
        _ => Fault::from(error.in_file(Path::new(&shown))),
    })
}

/// What a file says that was named, and of which messages may tell, is known, as what flags say is. Whoever wrote one that was found has no say
/// in what is hidden of what relent says.
fn known(config: &Config) {
    redact::know(config.names().chain(config.upstreams()), config.upstreams().filter_map(|name| config.store_of(name)));
}

/// The policy of a name.
fn chosen(config: Config, shown: &str, name: &str, beside: Beside) -> Result<PolicyFile, Fault> {
    let wanted = Some(name).filter(|name| !name.is_empty());
    let draft = match config.draft(wanted) {
        Err(_) if wanted.is_none() && beside == Beside::Upstreams => Draft::default(),
        draft => draft.map_err(|bad| Fault::new(format!("{shown}: {}", bad.problem)).hint(bad.hint))?,
    };
    let origin = wanted.map_or_else(|| shown.to_owned(), |name| format!("{shown}#{name}"));
    let name = wanted.map(str::to_owned);
    Ok(PolicyFile { draft, origin: Some(origin), shown: Some(shown.to_owned()), name, config, ..PolicyFile::default() })
}

/// The file that nobody named.
fn found(beside: Beside) -> Result<PolicyFile, Fault> {
    place().map_or_else(|| Ok(PolicyFile::default()), |place| found_in(&place, beside))
}

fn found_in(place: &Place, beside: Beside) -> Result<PolicyFile, Fault> {
    let shown = place.shown();
    let text = match believable(place) {
        Ok(Some(file)) => text_of(file, place.longest()).map_err(|problem| cannot_read(&shown, &problem))?,
        Ok(None) if place.is_here => return Ok(PolicyFile::default()),
        Ok(None) => return Err(cannot_read(&shown, "there is no such file").hint(format!("{VARIABLE}=none uses none"))),
        // As in a folder that does not answer: nothing was found.
        Err(Problem::Unreadable(problem)) if place.is_here && place.path.symlink_metadata().is_err() => {
            return Ok(PolicyFile { remarks: vec![format!("no {shown} is used: {problem}")], ..PolicyFile::default() });
        }
        Err(Problem::Unreadable(problem)) => {
            return Err(cannot_read(&shown, &problem).hint(format!("{VARIABLE}=none uses none")));
        }
        Err(Problem::Strange(problem)) if place.is_here => return Ok(ignored(place, &problem)),
        Err(Problem::Strange(problem)) => return Err(place.is_not_used("", &problem)),
    };
    let error = match Config::parse(&text) {
        Ok(config) => {
            let only = only(&config, place);
            return Ok(PolicyFile { shown: Some(shown), config, is_by_chance: place.is_here, ..only });
        }
        Err(error) => error,
    };
    let problem = unquoted(&error);
    if beside == Beside::Flags && place.is_here {
        return Ok(ignored(place, &format!("it is no policy file: {problem}")));
    }
    Err(place.no_policy_file(&problem))
}

/// What is wrong with a file that was found, and in which line, without a word of it.
fn unquoted(error: &ConfigError) -> String {
    let line = error.line().map_or(String::new(), |line| format!(" (line {line})"));
    format!("{}{line}", without_quotes(error.problem()))
}

/// A file that was found and is not used, and why.
fn ignored(place: &Place, problem: &str) -> PolicyFile {
    PolicyFile { remarks: vec![format!("{place}, is ignored: {problem}")], ..PolicyFile::default() }
}

/// The policy that is used where none is named: the unnamed one, or else the only one.
fn only(config: &Config, place: &Place) -> PolicyFile {
    let names: Vec<&str> = config.names().collect();
    let what = |name: Option<&str>| match name {
        Some(name) => format!("policy {} of {place}", brief::quoted(name)),
        None => format!("the policy of {place}"),
    };
    match config.draft(None) {
        Err(BadSetting { .. }) => PolicyFile {
            remarks: vec![format!(
                "{place}, has several policies and none is used; --policy {} uses one",
                typed(&format!("#{}", names.first().unwrap_or(&"NAME")))
            )],
            ..PolicyFile::default()
        },
        Ok(draft) if draft == Draft::default() && config.upstream_of(None).is_none() => PolicyFile::default(),
        Ok(draft) => {
            let only =
                (names.len() == 1 && config.draft(names.first().copied()).as_ref() == Ok(&draft)).then(|| names[0]);
            let (origin, used) = (Some(place.shown()), Some(what(only)));
            PolicyFile { draft, origin, used, ..PolicyFile::default() }
        }
    }
}

/// Where the file is that nobody named, if there is one. Shown, it is told why it is used.
struct Place {
    path: PathBuf,
    /// Whether it happens to be here; else the variable names it.
    is_here: bool,
}

fn place() -> Option<Place> {
    match env::var_os(VARIABLE) {
        None => Some(Place { path: PathBuf::from(FILE), is_here: true }),
        Some(none) if none.is_empty() || none == "none" => None,
        Some(path) => Some(Place { path: PathBuf::from(path), is_here: false }),
    }
}

impl Place {
    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// The longest text that is read of it.
    fn longest(&self) -> u64 {
        if self.is_here { LONGEST_BY_CHANCE } else { LONGEST }
    }

    /// As `--policy` names it, with a policy of it.
    fn named(&self, name: &str) -> String {
        let here = if self.is_here { "./" } else { "" };
        format!("{here}{}{}{name}", self.shown(), if name.is_empty() { "" } else { "#" })
    }

    /// Others have a say in it.
    fn is_not_used(&self, name: &str, problem: &str) -> Fault {
        Fault::new(format!("{self}, is not used: {problem}"))
            .hint(format!("--policy {} says that it is meant all the same", typed(&self.named(name))))
    }

    /// It was found, and nobody has said that its lines may be shown.
    fn no_policy_file(&self, problem: &str) -> Fault {
        Fault::new(format!("{self}, is no policy file: {problem}"))
            .hint(format!("--policy {} shows the line; {VARIABLE}=none uses no file", typed(&self.shown())))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.path.display(), why(self.is_here))
    }
}

/// Why a file is used that no flag names.
fn why(is_here: bool) -> String {
    if is_here { "found in this folder".to_owned() } else { format!("which {VARIABLE} names") }
}

/// Why a file is not believed that is there.
#[derive(Debug)]
enum Problem {
    /// Others have a say in it, or it is no file.
    Strange(String),
    /// What it says may be meant, and is not known: the system does not let it be read.
    Unreadable(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        match error.raw_os_error() {
            Some(_) => Problem::Unreadable(plain(&error)),
            None => Problem::Strange(plain(&error)),
        }
    }
}

/// The file, `None` if there is none, or why it is not believed.
fn believable(place: &Place) -> Result<Option<File>, Problem> {
    // By no link of somebody else's, nor one that comes meanwhile. Whoever says where the file is has chosen the folder.
    let is_met = Cell::new(false);
    let objects = |step: &Step<'_>| {
        is_met.set(is_met.get() || step.is_last);
        match step.is_strange(&is_ours) {
            None if place.is_here => step.is_exchangeable(&is_ours),
            strange => strange,
        }
    };
    // Nothing is found in a folder that may not be entered, as that of whoever has changed the user.
    let is_no_place = |error: &io::Error| match error.kind() {
        // What the system says of it, and not of the way there.
        io::ErrorKind::NotFound => error.raw_os_error().is_some(),
        kind => kind == io::ErrorKind::PermissionDenied && place.is_here,
    };
    let is_none = || place.path.symlink_metadata().is_err_and(|error| is_no_place(&error));
    // The way to the working folder is not asked about for what is not in it. It may also go meanwhile, or come just then.
    if is_none() {
        return Ok(None);
    }
    let file = match regular::read_unless(&place.path, &objects) {
        Err(error) if is_no_place(&error) && (!is_met.get() || is_none()) => return Ok(None),
        file => file?,
    };
    let data = file.metadata()?;
    if !is_ours(&data) {
        return Err(Problem::Strange("it belongs to somebody else".to_owned()));
    }
    let by_group = data.mode() & 0o020 != 0 && (!access::is_own_group(data.gid()) || access::has_list(&file));
    if data.mode() & 0o002 != 0 || by_group {
        return Err(Problem::Strange("others can write to it".to_owned()));
    }
    Ok(Some(file))
}

/// Ours or root's, who could change our files anyway.
fn is_ours(data: &Metadata) -> bool {
    data.uid() == 0 || access::is_own(data.uid())
}

fn text_of(from: impl Read, longest: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(longest + 1).read_to_end(&mut bytes).map_err(|error| plain(&error))?;
    if bytes.len() as u64 > longest {
        return Err(format!("it is longer than {}", Size(longest)));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

fn cannot_read(what: &str, problem: &str) -> Fault {
    Fault::new(format!("cannot read the policy file {what}: {}", escape(problem)))
        .hint("a policy file is named by --policy FILE or FILE#NAME")
}

/// What is wrong, without the words of the file that it quotes.
fn without_quotes(problem: &str) -> String {
    let mut out = String::new();
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in problem.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => {
                is_quoted = !is_quoted;
                out.push_str(if is_quoted { "\"..." } else { "\"" });
            }
            c if !is_quoted => out.push(c),
            _ => {}
        }
    }
    escape(&out).into_owned()
}

#[cfg(test)]
mod tests;
