//! Policy files: TOML in, policies out, mistakes shown where they stand.

use super::{
    bad_setting::BadSetting,
    draft::{Draft, KEYS},
    error::{ConfigError, Span},
    part::Wrong,
    server::{self, ServerDraft},
    text::{is_bounded, neutral, tables},
    upstream::{self, UpstreamDraft},
};
use crate::{
    Policy,
    suggest::{listed, nearest},
};
use std::{collections::BTreeMap, format, fs::File, io::Read, path::Path, string::String, vec, vec::Vec};
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

/// The longest policy file that is read.
const LONGEST_FILE: u64 = 1 << 20;

/// The policies of one file.
///
/// ```
/// use relent::config::Config;
/// use std::time::Duration;
///
/// let config = Config::parse("
///     [policy.read]
///     curve = \"exponential\"
///     base = \"100ms\"
///     jitter = { proportional = 0.2 }
///     max_attempts = 5
/// ").unwrap();
/// assert_eq!(config.policy("read").unwrap().settings().max_attempts, Some(5));
///
/// let error = Config::parse("[policy.read]\nbase = \"100\"").unwrap_err();
/// assert_eq!((error.line(), error.column()), (Some(2), Some(8)));
/// assert_eq!(error.problem(), "the duration has no unit");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    unnamed: Option<Draft>,
    named: BTreeMap<String, Draft>,
    /// Which upstream a policy acts on; the unnamed one is `None`.
    acts_on: BTreeMap<Option<String>, String>,
    upstreams: BTreeMap<String, UpstreamDraft>,
    /// Where what is known of an upstream is shared.
    stores: BTreeMap<String, String>,
    servers: BTreeMap<Option<String>, ServerDraft>,
}

impl Config {
    /// Reads a policy file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is longer than 1 MiB, or is no policy file; the error says where.
    ///
    /// ```
    /// # fn doc() -> Result<(), relent::config::ConfigError> {
    /// let config = relent::config::Config::load(std::path::Path::new("/etc/app/relent.toml"))?;
    /// let read = config.policy("read").unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let cannot = |problem: String| ConfigError::of_file(path, problem);
        let file = File::open(path).map_err(|e| cannot(format!("cannot read the policy file {path:?}: {e}")))?;
        let mut bytes = Vec::new();
        file.take(LONGEST_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| cannot(format!("cannot read the policy file {path:?}: {e}")))?;
        if bytes.len() as u64 > LONGEST_FILE {
            return Err(cannot(format!("the policy file {path:?} is longer than 1 MiB")));
        }
        let text =
            String::from_utf8(bytes).map_err(|_| cannot(format!("the policy file {path:?} is not UTF-8 text")))?;
        Config::parse(&text).map_err(|error| error.in_file(path))
    }

    /// Reads the text of a policy file. Every policy in it is checked, whether it is asked for or not.
    ///
    /// # Errors
    ///
    /// The text is no TOML, has a key or value that is not known, a name of more than 1000 bytes, a URL of a store of more than 4096, or a policy that makes no sense; the error
    /// says where.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse_among(text, &[])
    }

    /// Reads the policies of a text that has other tables and keys beside them, which are somebody else's to read.
    ///
    /// # Errors
    ///
    /// As [`parse`](Config::parse).
    ///
    /// ```
    /// use relent::config::Config;
    ///
    /// let text = "[policy.read]\nbase = \"1s\"\n[server]\nport = 80";
    /// assert_eq!(Config::parse_among(text, &["server"]).unwrap().names().collect::<Vec<_>>(), ["read"]);
    /// assert!(Config::parse(text).is_err());
    /// ```
    pub fn parse_among(text: &str, others: &[&str]) -> Result<Config, ConfigError> {
        let table = tables(text)?;
        Config::of(table.get_ref(), others).map_err(|(span, bad)| ConfigError::at(text, span, bad))
    }

    /// That a text may be taken apart as TOML, for who does so before it is [parsed](Config::parse): a megabyte of keys such as
    /// `a.a.a` takes half a gigabyte. A text of policies has 100,000 dots and brackets (`[`, `{`) at most.
    ///
    /// # Errors
    ///
    /// It has more; the error says where.
    ///
    /// ```
    /// use relent::config::Config;
    ///
    /// assert!(Config::check_size("policy.read.base = \"1s\"").is_ok());
    /// assert!(Config::check_size(&"a.".repeat(200_000)).is_err());
    /// ```
    pub fn check_size(text: &str) -> Result<(), ConfigError> {
        is_bounded(text)
    }

    fn of(root: &DeTable<'_>, others: &[&str]) -> Result<Config, Wrong> {
        let mut config = Config::default();
        // Upstreams first, so that a policy that names none of them is told so at its place.
        if let Some(value) = root.get("upstream") {
            config.read_upstreams(value)?;
        }
        for (key, value) in root {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("policy", DeValue::Table(table)) => config.read_policies(key, table)?,
                ("upstream", _) => {}
                (other, _) if others.contains(&other) => {}
                ("server", DeValue::Table(table)) => config.read_servers(table)?,
                (name @ ("policy" | "server"), _) => return Err((value.span(), no_table(name))),
                (other, _) => return Err((key.span(), unknown_table(other, others))),
            }
        }
        Ok(config)
    }

    fn read_upstreams(&mut self, value: &Spanned<DeValue<'_>>) -> Result<(), Wrong> {
        let DeValue::Table(table) = value.get_ref() else { return Err((value.span(), no_table("upstream"))) };
        for (name, value) in table {
            let DeValue::Table(keys) = value.get_ref() else {
                let problem = format!("{:?} stands outside of an upstream", name.get_ref());
                return Err((name.span(), BadSetting::new(problem, "[upstream.NAME] begins one")));
            };
            let name = name_of(name)?;
            if let Some(store) = upstream::store(keys)? {
                self.stores.insert(name.clone(), store);
            }
            self.upstreams.insert(name, upstream::read(keys)?);
        }
        Ok(())
    }

    fn read_servers(&mut self, table: &DeTable<'_>) -> Result<(), Wrong> {
        let is_own = |key: &str| server::SERVER_KEYS.contains(&key);
        if table.keys().any(|key| is_own(key.get_ref())) {
            self.servers.insert(None, server::read(table, false)?);
        }
        for (name, value) in table.iter().filter(|(key, _)| !is_own(key.get_ref())) {
            let DeValue::Table(keys) = value.get_ref() else {
                let bad = BadSetting::unknown("key of a server", name.get_ref(), &server::SERVER_KEYS);
                return Err((name.span(), bad));
            };
            self.servers.insert(Some(name_of(name)?), server::read(keys, true)?);
        }
        Ok(())
    }

    fn read_policies(&mut self, header: &Spanned<DeString<'_>>, table: &DeTable<'_>) -> Result<(), Wrong> {
        let (named, own): (Vec<Entry<'_, '_>>, Vec<Entry<'_, '_>>) = table
            .iter()
            .partition(|(key, value)| value.get_ref().is_table() && !KEYS.contains(&key.get_ref().as_ref()));
        // Of the settings, only jitter can be a table.
        let named_as_a_key = |(key, value): &&Entry<'_, '_>| value.get_ref().is_table() && key.get_ref() != "jitter";
        if let Some((key, _)) = own.iter().find(named_as_a_key) {
            let problem = format!("{} is a setting of policies, and cannot be the name of one", key.get_ref());
            return Err((key.span(), BadSetting::new(problem, "give the policy another name")));
        }
        if !own.is_empty() || named.is_empty() {
            let own = self.without_upstream(None, own)?;
            self.unnamed = Some(read_policy(header.span(), &own)?);
        }
        for (name, value) in named {
            let DeValue::Table(keys) = value.get_ref() else { continue };
            let known_as = name_of(name)?;
            let keys = self.without_upstream(Some(known_as.clone()), keys.iter().collect())?;
            self.named.insert(known_as, read_policy(name.span(), &keys)?);
        }
        Ok(())
    }

    /// Takes out which upstream a policy acts on, which the policy itself does not say.
    fn without_upstream<'a, 'i>(
        &mut self,
        policy: Option<String>,
        keys: Vec<Entry<'a, 'i>>,
    ) -> Result<Vec<Entry<'a, 'i>>, Wrong> {
        let (upstream, keys): (Vec<Entry<'_, '_>>, Vec<Entry<'_, '_>>) =
            keys.into_iter().partition(|(key, _)| key.get_ref() == UPSTREAM);
        let Some((_, value)) = upstream.first() else { return Ok(keys) };
        let DeValue::String(name) = value.get_ref() else {
            return Err((value.span(), BadSetting::new("upstream is the name of one", "upstream = \"NAME\"")));
        };
        if !self.upstreams.contains_key(name.as_ref()) {
            return Err((value.span(), self.no_upstream(name)));
        }
        self.acts_on.insert(policy, name.clone().into_owned());
        Ok(keys)
    }

    /// The policy of a name.
    ///
    /// # Errors
    ///
    /// There is none of that name; the error names those there are.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let config = Config::parse("[policy.read]\nmax_attempts = 3")?;
    /// assert_eq!(config.policy("read")?.settings().max_attempts, Some(3));
    /// assert_eq!(config.policy("raed").unwrap_err().hint, "it has read");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(&self, name: &str) -> Result<Policy, BadSetting> {
        self.draft(Some(name))?.policy()
    }

    /// What the file says about a policy, for laying flags over it. Without a name: the unnamed policy (`[policy]`),
    /// or else the only one, or nothing at all in a file without policies.
    ///
    /// # Errors
    ///
    /// There is none of that name, or several and no name was given.
    ///
    /// ```
    /// # use relent::config::{Ceiling, Config, Draft};
    /// let config = Config::parse("[policy.read]\nmax_attempts = 3")?;
    /// let mut flags = Draft::default();
    /// flags.max_attempts = Some(Ceiling::At(5));
    /// let policy = flags.over(config.draft(None)?).policy()?;
    /// assert_eq!(policy.settings().max_attempts, Some(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn draft(&self, name: Option<&str>) -> Result<Draft, BadSetting> {
        match (name, &self.unnamed) {
            (Some(name), _) => self.named.get(name).cloned().ok_or_else(|| self.no_policy(name)),
            (None, Some(unnamed)) => Ok(unnamed.clone()),
            (None, None) => match self.named.len() {
                0 => Ok(Draft::default()),
                1 => Ok(self.named.values().next().cloned().unwrap_or_default()),
                _ => Err(BadSetting::new(
                    format!(
                        "the file has several policies: {}",
                        listed(&self.names().map(as_a_key).collect::<Vec<_>>())
                    ),
                    "name one: --policy FILE#NAME",
                )),
            },
        }
    }

    /// The names of the named policies, in order.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let config = Config::parse("[policy.write]\n[policy.read]")?;
    /// assert_eq!(config.names().collect::<Vec<_>>(), ["read", "write"]);
    /// # Ok::<(), relent::config::ConfigError>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// The name of the upstream that a policy acts on; without a name, of the policy that [`draft`](Config::draft)
    /// means then.
    ///
    /// ```
    /// use relent::config::Config;
    ///
    /// let config = Config::parse("[policy.pay]\nupstream = 'bank'\n[upstream.bank]\nbudget = 'aws-2.1'").unwrap();
    /// assert_eq!(config.upstream_of(Some("pay")), Some("bank"));
    /// assert_eq!(config.upstream_of(None), Some("bank"), "there is one policy only");
    ///
    /// let error = Config::parse("[policy.pay]\nupstream = 'bang'\n[upstream.bank]").unwrap_err();
    /// assert_eq!((error.line(), error.hint()), (Some(2), "did you mean \"bank\"?"));
    /// ```
    pub fn upstream_of(&self, policy: Option<&str>) -> Option<&str> {
        let policy = match policy {
            None if self.unnamed.is_none() && self.named.len() == 1 => self.named.keys().next().cloned(),
            policy => policy.map(String::from),
        };
        self.acts_on.get(&policy).map(String::as_str)
    }

    /// What the file says about an upstream.
    ///
    /// # Errors
    ///
    /// There is none of that name; the error names those there are.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let config = Config::parse("[upstream.bank]\nbudget = 'aws-2.1'")?;
    /// assert!(config.upstream("bank")?.settings().budget.is_some());
    /// assert!(config.upstream("mail").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upstream(&self, name: &str) -> Result<&UpstreamDraft, BadSetting> {
        self.upstreams.get(name).ok_or_else(|| self.no_upstream(name))
    }

    /// The names of the upstreams, in order.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let config = Config::parse("[upstream.mail]\n[upstream.bank]")?;
    /// assert_eq!(config.upstreams().collect::<Vec<_>>(), ["bank", "mail"]);
    /// # Ok::<(), relent::config::ConfigError>(())
    /// ```
    pub fn upstreams(&self) -> impl Iterator<Item = &str> {
        self.upstreams.keys().map(String::as_str)
    }

    /// The URL of the store by which the processes that call an upstream share what they know of it, if the file names one;
    /// at most 4096 bytes. The library passes it on: who has such a store asks it (`relent run` does).
    ///
    /// ```
    /// use relent::config::Config;
    ///
    /// let config = Config::parse("[upstream.bank]\nbudget = { ratio = 0.1 }\nstore = 'sqlite:state.db'").unwrap();
    /// assert_eq!(config.store_of("bank"), Some("sqlite:state.db"));
    /// ```
    pub fn store_of(&self, upstream: &str) -> Option<&str> {
        self.stores.get(upstream).map(String::as_str)
    }

    /// What the file says about a server; without a name, about the one of `[server]`, or else the only one.
    ///
    /// # Errors
    ///
    /// There is none of that name, or none or several and no name was given.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let config = Config::parse("[server]\npacer = { capacity = 5000 }")?;
    /// assert!(config.server(None).is_ok() && config.server(Some("front")).is_err());
    /// # Ok::<(), relent::config::ConfigError>(())
    /// ```
    pub fn server(&self, name: Option<&str>) -> Result<&ServerDraft, BadSetting> {
        let only = (self.servers.len() == 1).then(|| self.servers.values().next()).flatten();
        let found = self.servers.get(&name.map(String::from));
        found.or(only.filter(|_| name.is_none())).ok_or_else(|| {
            let what = name.map_or_else(String::new, |name| format!(" {name:?}"));
            none_of("server", &what, name.unwrap_or("NAME"), self.servers())
        })
    }

    /// The names of the named servers, in order.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let config = Config::parse("[server.front]\npacer = { capacity = 5000 }")?;
    /// assert_eq!(config.servers().collect::<Vec<_>>(), ["front"]);
    /// # Ok::<(), relent::config::ConfigError>(())
    /// ```
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().filter_map(Option::as_deref)
    }

    fn no_upstream(&self, name: &str) -> BadSetting {
        no_upstream(name, self.upstreams())
    }

    pub(super) fn drafts_of_upstreams(&self) -> impl Iterator<Item = (&String, &UpstreamDraft)> {
        self.upstreams.iter()
    }

    /// Which upstream each policy acts on, the one that is meant without a name included.
    pub(super) fn policies_on_upstreams(&self) -> BTreeMap<Option<String>, String> {
        let mut all = self.acts_on.clone();
        if let Some(unnamed) = self.upstream_of(None) {
            all.insert(None, String::from(unnamed));
        }
        all
    }

    fn no_policy(&self, name: &str) -> BadSetting {
        none_of("policy", &format!(" {name:?}"), name, self.names())
    }
}

/// The key by which a policy names its upstream.
const UPSTREAM: &str = "upstream";

/// That there is no such table, and which there are.
fn none_of<'a>(what: &str, named: &str, name: &str, there: impl Iterator<Item = &'a str>) -> BadSetting {
    let (problem, names) = (format!("the file has no {what}{named}"), there.collect::<Vec<&str>>());
    if names.is_empty() {
        return BadSetting::new(problem, format!("[{what}.{}] begins it", as_a_key(name)));
    }
    let hint = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("it has {}", listed(&names.iter().map(|name| as_a_key(name)).collect::<Vec<_>>())),
    };
    BadSetting::new(problem, hint)
}

/// A name as the key of a table is written: in quotes, if there is more in it than letters, digits, `-` and `_`.
fn as_a_key(name: &str) -> String {
    match !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        true => String::from(name),
        false => format!("{name:?}"),
    }
}

pub(super) fn no_upstream<'a>(name: &str, there: impl Iterator<Item = &'a str>) -> BadSetting {
    none_of("upstream", &format!(" {name:?}"), name, there)
}

fn no_table(name: &str) -> BadSetting {
    BadSetting::new(format!("{name} is a table"), format!("[{name}.NAME] begins one"))
}

type Entry<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

fn read_policy(header: Span, keys: &[Entry<'_, '_>]) -> Result<Draft, Wrong> {
    let mut draft = Draft::default();
    for (key, value) in keys {
        let name = key.get_ref().as_ref();
        if !KEYS.contains(&name) {
            let known: Vec<&str> = KEYS.into_iter().chain([UPSTREAM]).collect();
            return Err((key.span(), BadSetting::unknown("key", name, &known)));
        }
        let span = value.span();
        draft.read(name, &neutral(value.get_ref())).map_err(|bad| (span, bad))?;
    }
    match draft.policy() {
        Ok(_) => Ok(draft),
        Err(bad) => {
            let culprit = keys.iter().find(|(key, _)| Some(key.get_ref().as_ref()) == bad.key);
            Err((culprit.map_or(header, |(_, value)| value.span()), bad))
        }
    }
}

fn unknown_table(name: &str, others: &[&str]) -> BadSetting {
    if KEYS.contains(&name) {
        return BadSetting::new(format!("{name} stands outside of a policy"), "[policy] or [policy.NAME] begins one");
    }
    let mut known = vec!["policy", "upstream", "server"];
    known.extend(others.iter().filter(|other| !matches!(**other, "upstream" | "server")));
    BadSetting::unknown("table", name, &known)
}

/// The longest name of a policy, an upstream or a server: messages have it.
const LONGEST_NAME: usize = 1000;

fn name_of(key: &Spanned<DeString<'_>>) -> Result<String, Wrong> {
    match key.get_ref().len() {
        ..=LONGEST_NAME => Ok(key.get_ref().clone().into_owned()),
        _ => Err((key.span(), BadSetting::new("a name is longer than 1000 bytes", "say it in fewer words"))),
    }
}
