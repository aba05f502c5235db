//! Servers as text: `[server.NAME]` in a policy file, `[server]` in a scenario.

use super::{
    ConfigError,
    bad_setting::BadSetting,
    part::{self, Fields, Part, Read, Settings, Written},
};
use crate::{AdmissionSettings, Invalid, Order, PacerSettings, Scope};
use std::{fmt, string::String, vec::Vec};
use toml::de::{DeTable, DeValue};

/// The keys of a server.
pub const SERVER_KEYS: [&str; 2] = ["admission", "pacer"];

/// What text says about a server that protects itself.
///
/// ```
/// use relent::config::Config;
/// use std::time::Duration;
///
/// let config = Config::parse("[server.api]\npacer = { capacity = 5000, horizon = '60s' }").unwrap();
/// let pacer = config.server(Some("api")).unwrap().pacer.into_option().unwrap();
/// assert_eq!((pacer.capacity, pacer.horizon), (5000.0, Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerDraft {
    /// What is taken and what is refused.
    pub admission: Part<AdmissionSettings>,
    /// Gives those who are refused their turns.
    pub pacer: Part<PacerSettings>,
}

impl ServerDraft {
    /// Sets a part to the value that a flag would give it: `set("pacer", "capacity=5000")`.
    ///
    /// # Errors
    ///
    /// The key is not one of [`SERVER_KEYS`], or the value is none for it.
    ///
    /// ```
    /// use relent::config::ServerDraft;
    ///
    /// let mut server = ServerDraft::default();
    /// server.set("pacer", "capacity=5000,horizon=60s")?;
    /// assert_eq!(server.pacer.into_option().unwrap().capacity, 5000.0);
    /// assert!(server.set("pacer", "horizon=60s").is_err(), "nobody can guess the capacity");
    /// # Ok::<(), relent::config::BadSetting>(())
    /// ```
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), BadSetting> {
        match key {
            "admission" => self.admission = part::of_text(value)?,
            "pacer" => self.pacer = part::of_text(value)?,
            _ => return Err(BadSetting::unknown("key of a server", key, &SERVER_KEYS)),
        }
        Ok(())
    }

    /// Reads what the table `[server]` of a text says about admission and pacer. Its other keys, and other tables, are
    /// somebody else's: a scenario's.
    ///
    /// # Errors
    ///
    /// The text is no TOML, or one of the two makes no sense; the error says where.
    ///
    /// ```
    /// use relent::config::ServerDraft;
    ///
    /// let server = ServerDraft::of_scenario("[server]\nqueue = 50\npacer = { capacity = 0 }").unwrap_err();
    /// assert_eq!((server.line(), server.column()), (Some(3), Some(22)));
    /// ```
    pub fn of_scenario(text: &str) -> Result<ServerDraft, ConfigError> {
        let root = super::text::tables(text)?;
        match root.get_ref().get("server").map(|server| server.get_ref()) {
            Some(DeValue::Table(table)) => read(table, false).map_err(|(at, bad)| ConfigError::at(text, at, bad)),
            _ => Ok(ServerDraft::default()),
        }
    }
}

/// The keys of one server.
pub(super) fn read(table: &DeTable<'_>, all: bool) -> Read<ServerDraft> {
    let mut server = ServerDraft::default();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "admission" => server.admission = part::of_file(value)?,
            "pacer" => server.pacer = part::of_file(value)?,
            other if all => return Err((key.span(), BadSetting::unknown("key of a server", other, &SERVER_KEYS))),
            _ => {}
        }
    }
    Ok(server)
}

impl fmt::Display for ServerDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::upstream::line(f, "admission", &self.admission, write_admission)?;
        super::upstream::line(f, "pacer", &self.pacer, write_pacer)
    }
}

const ORDERS: [(&str, Order); 3] = [
    ("as_they_come", Order::AsTheyCome),
    ("retries_first", Order::RetriesFirst),
    ("first_attempts_first", Order::FirstAttemptsFirst),
];
const SCOPES: [(&str, Scope); 2] = [("host", Scope::Host), ("service", Scope::Service)];

impl Settings for AdmissionSettings {
    const NAME: &'static str = "admission";
    const LIKE: &'static str = "admission = { max_retry_share = 0.5, pushback = \"1s\" }, or {} for the defaults";

    fn named(_: &str) -> Result<AdmissionSettings, Vec<&'static str>> {
        Err(["none"].to_vec())
    }

    fn read(fields: &mut Fields<'_>, start: Option<AdmissionSettings>) -> Read<AdmissionSettings> {
        let start = start.unwrap_or_default();
        let read = AdmissionSettings {
            service_time: fields.duration("service_time")?.or(start.service_time),
            max_retry_share: fields.float("max_retry_share")?.unwrap_or(start.max_retry_share),
            pushback: fields.duration("pushback")?.unwrap_or(start.pushback),
            order: fields.word("order", &ORDERS)?.unwrap_or(start.order),
            scope: fields.word("scope", &SCOPES)?.unwrap_or(start.scope),
        };
        fields.finish("an admission", &["service_time", "max_retry_share", "pushback", "order", "scope"])?;
        Ok(read)
    }

    fn check(&self) -> Result<(), Invalid> {
        self.admission().map(drop)
    }
}

impl Settings for PacerSettings {
    const NAME: &'static str = "pacer";
    const LIKE: &'static str = "pacer = { capacity = 5000, horizon = \"60s\" }";

    fn named(_: &str) -> Result<PacerSettings, Vec<&'static str>> {
        Err(["none"].to_vec())
    }

    fn read(fields: &mut Fields<'_>, start: Option<PacerSettings>) -> Read<PacerSettings> {
        let start = start.unwrap_or_default();
        let capacity = fields.float("capacity")?;
        let read = PacerSettings {
            capacity: capacity.unwrap_or(start.capacity),
            measured: fields.flag("measured")?.unwrap_or(start.measured),
            horizon: fields.duration("horizon")?.unwrap_or(start.horizon),
            kept: fields.float("kept")?.unwrap_or(start.kept),
            learned: fields.flag("learned")?.unwrap_or(start.learned),
        };
        fields.finish("a pacer", &PACER_KEYS)?;
        match capacity {
            // Nobody's server has the capacity that a default would give it.
            None => Err(fields.wrong("the pacer has no capacity", Self::LIKE)),
            Some(_) => Ok(read),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        self.pacer().map(drop)
    }
}

const PACER_KEYS: [&str; 5] = ["capacity", "measured", "horizon", "kept", "learned"];

fn write_admission(settings: &AdmissionSettings) -> String {
    let order = ORDERS.iter().find(|(_, order)| *order == settings.order).map_or("", |(name, _)| name);
    let scope = SCOPES.iter().find(|(_, scope)| *scope == settings.scope).map_or("", |(name, _)| name);
    Written::new()
        .maybe(settings.service_time, |text, time| text.duration("service_time", time))
        .number("max_retry_share", settings.max_retry_share)
        .duration("pushback", settings.pushback)
        .word("order", order)
        .word("scope", scope)
        .end()
}

fn write_pacer(settings: &PacerSettings) -> String {
    Written::new()
        .number("capacity", settings.capacity)
        .flag("measured", settings.measured)
        .duration("horizon", settings.horizon)
        .number("kept", settings.kept)
        .flag("learned", settings.learned)
        .end()
}
