//! Whose the tables and functions of a store are: what is in them runs with the rights of whoever calls it.
//!
//! In a schema where others may make something, too, anybody could have made what bears the store's names before the store was; and
//! by a function or an operator that fits better than one of Postgres' own, they are called by the store's functions.
//! So it is looked whose all that is, by one question, before anything of it is asked.

use super::{
    Postgres, STEPS, fault,
    rows::{Param, get},
};
use crate::{Error, ErrorKind};
use std::collections::BTreeMap;
use tokio_postgres::types::Type;

/// What is asked, and what is asked where all are believed.
const WHOSE: &str = include_str!("whose.sql");
const THERE: &str = "SELECT 'there'::text, c.relname::text, c.relkind::text FROM pg_catalog.pg_class c
    WHERE c.relname = ANY ($1::name[]) AND pg_catalog.pg_table_is_visible(c.oid)
    UNION ALL SELECT 'there'::text, f.proname::text, 'f'::text FROM pg_catalog.pg_proc f
    WHERE f.proname = ANY ($2::name[]) AND $3::name[] IS NOT NULL AND pg_catalog.pg_function_is_visible(f.oid)";

/// Where names are looked for first: those of operators, too, that the store's functions have. One by one, since for an array the client would make
/// room for as many as the server says that there are.
/// And which of them has what is temporary of this session, if it has any, as another client of a pooler may have left it there.
const PATH: &str = "SELECT (pg_catalog.current_schemas(true))[1], (pg_catalog.current_schemas(true))[2], (SELECT n.nspname FROM pg_catalog.pg_namespace n
    WHERE n.oid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema())";

/// The functions of Postgres' own that the store's functions and questions call.
const CALLED: &[&str] =
    &["clock_timestamp", "count", "current_setting", "length", "md5", "nextval", "pg_notify", "sum", "unnest"];

/// What a step makes: how `pg_class` calls its kind (`f` for a function), and its name.
fn made(step: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    step.lines().filter_map(|line| {
        let (kind, rest) = [("r", "CREATE TABLE "), ("S", "CREATE SEQUENCE "), ("f", "CREATE FUNCTION ")]
            .iter()
            .find_map(|(kind, make)| Some((*kind, line.strip_prefix(make)?)))?;
        rest.split([' ', '(', ';']).next().map(|name| (kind, name))
    })
}

/// What of a store was found.
pub(super) struct Found {
    /// By name, in what is there of them.
    kinds: BTreeMap<String, Option<&'static str>>,
    /// A schema of the search path in which others may make something.
    pub(super) open: Option<String>,
}

impl Found {
    pub(super) fn has(&self, name: &str) -> bool {
        self.kinds.get(name).is_some_and(Option::is_some)
    }

    /// The first of what is not there.
    pub(super) fn missing(&self) -> Option<&str> {
        self.kinds.iter().find(|(_, kind)| kind.is_none()).map(|(name, _)| &**name)
    }
}

impl Postgres {
    /// Looks what is there of the store, and whose it is.
    ///
    /// # Errors
    ///
    /// It is somebody's who is not believed, or something else than a store's; or the server's.
    pub(super) async fn found(&self) -> Result<Found, Error> {
        let all: BTreeMap<String, &'static str> =
            STEPS.iter().flat_map(|step| made(step)).map(|(kind, name)| (self.named(name), kind)).collect();
        let of = |is_function: bool| {
            let those = all.iter().filter(move |(_, kind)| (**kind == "f") == is_function);
            those.map(|(name, _)| name.as_str()).collect::<Vec<&str>>()
        };
        let (tables, functions) = (of(false), of(true));
        let client = self.client().await?;
        let names = [&tables[..], &functions[..], CALLED];
        let owner = self.inner.owner.as_deref();
        let mut params: Vec<Param<'_>> = names.iter().map(|names| (names as _, Type::NAME_ARRAY)).collect();
        let sql = match self.inner.wire.believes_all {
            true => THERE,
            false => {
                let path = client.query_typed(PATH, &[]).await.map_err(|err| self.fault(&err))?;
                let row = path.first().ok_or_else(fault::nonsense)?;
                own_first([get(row, 0)?, get(row, 1)?], get(row, 2)?)?;
                params.push((&owner, Type::NAME));
                WHOSE
            }
        };
        let rows = client.query_typed(sql, &params).await.map_err(|err| self.fault(&err))?;
        for row in &rows {
            if get::<&str>(row, 0)? == "nobody" {
                return Err(Error::new(ErrorKind::Invalid, "the `owner` in the store's URL is no role of the server")
                    .hint(OWNER));
            }
        }
        let mut found = Found { kinds: all.keys().map(|name| (name.clone(), None)).collect(), open: None };
        let mut is_another_kind = None;
        for row in &rows {
            let (what, name, kind): (&str, &str, &str) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            // Whatever the server says, only what is known is told.
            let known = all.get_key_value(name).map(|(name, _)| name.as_str());
            let known = known.or_else(|| CALLED.iter().copied().find(|called| *called == name));
            match what {
                "there" => {
                    let Some((name, &ours)) = all.get_key_value(name) else { continue };
                    if ours != kind {
                        is_another_kind = Some(name);
                    }
                    found.kinds.insert(name.clone(), Some(ours));
                }
                "open" => found.open = Some(name.chars().take(63).collect()),
                "trigger" => {
                    let name = known.unwrap_or("?");
                    let what = format!(
                        "'{name}' has a trigger with a condition or arguments, or a table that refers to it, which may be of"
                    );
                    return Err(strangers(&what));
                }
                "part" => {
                    let what = format!("a trigger, rule or default of '{}' belongs to", known.unwrap_or("?"));
                    return Err(strangers(&what));
                }
                "table" | "function" | "type" => {
                    return Err(strangers(&format!("the {what} '{}' belongs to", known.unwrap_or("?"))));
                }
                _ => return Err(strangers("an operator that is called like one of Postgres' own belongs to")),
            }
        }
        match is_another_kind {
            Some(name) => {
                let what = format!("'{name}' of the store is something else than a store has under that name");
                Err(Error::new(ErrorKind::Corrupt, what).hint("`prefix=NAME_` in the store's URL names another store"))
            }
            None => Ok(found),
        }
    }
}

/// Postgres' own is found first, as it is unless the path names it behind others. What is temporary of this session has no functions that are
/// found and no operators; of another, it has.
fn own_first(path: [Option<&str>; 2], temporary: Option<&str>) -> Result<(), Error> {
    match path.into_iter().flatten().find(|schema| Some(*schema) != temporary) {
        Some("pg_catalog") => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Refused,
            "the search path names pg_catalog behind another schema, whose functions and operators would be called for Postgres' own",
        )
        .hint("leave pg_catalog out of the search path: it is the first then; `owner=any` believes everybody")),
    }
}

fn strangers(what: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("{what} another user of the database")).hint(
        "what they put there would run as this user: use a schema of one's own (`options=-c%20search_path%3DNAME`), \
             or give what is there to this user or to the database's owner; `owner=NAME` believes the role that made it, \
             `owner=any` everybody",
    )
}

const OWNER: &str = "`owner=NAME` names the role that made the store's tables, as Postgres writes it, in small letters unless it was quoted";

/// A role that a URL names as the owner of its store. Whether there is one is for the server to say.
///
/// # Errors
///
/// No role is called like that.
pub(super) fn role(value: &str) -> Result<String, Error> {
    /// As many bytes as a name has there.
    const LONGEST: usize = 63;
    let name = crate::settings::text(value);
    match (1..=LONGEST).contains(&name.len()) && !name.contains(['\0', '\u{fffd}']) {
        true => Ok(name),
        false => Err(crate::settings::unknown("owner", "owner=any|NAME")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever calls another one by its name has it looked at.
    #[test]
    fn all_functions_of_postgres_that_are_called_are_asked_about() {
        // These are grammar, or are looked for in pg_catalog alone.
        let grammar =
            ["coalesce", "extract", "filter", "greatest", "least", "values", "exists", "begin", "conflict", "key"];
        for step in STEPS {
            let code: String = step
                .lines()
                .map(|line| line.split_once("--").map_or(line, |(code, _)| code).to_owned() + "\n")
                .collect();
            for (at, _) in code.match_indices('(') {
                let is_name = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
                let name = code[..at].bytes().rev().take_while(|byte| is_name(byte)).count();
                let name = &code[at - name..at];
                let is_known = name.is_empty() || name.starts_with("relent_") || grammar.contains(&name);
                assert!(is_known || CALLED.contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn postgres_own_comes_first() {
        for path in
            [[Some("pg_catalog"), Some("public")], [Some("pg_catalog"), None], [Some("pg_temp_4"), Some("pg_catalog")]]
        {
            assert!(own_first(path, Some("pg_temp_4")).is_ok(), "{path:?}");
        }
        for path in [
            [Some("public"), Some("pg_catalog")],
            [Some("pg_temp_3"), Some("pg_catalog")],
            [Some("public"), None],
            [None, None],
        ] {
            for temporary in [None, Some("pg_temp_4")] {
                assert_eq!(own_first(path, temporary).unwrap_err().kind(), ErrorKind::Refused, "{path:?}");
            }
        }
    }

    #[test]
    fn all_that_steps_make_is_known_by_its_kind() {
        let all: Vec<_> = STEPS.iter().flat_map(|step| made(step)).collect();
        for (kind, name) in
            [("r", "relent_meta"), ("S", "relent_fence"), ("f", "relent_now"), ("f", "relent_complete_many")]
        {
            assert!(all.contains(&(kind, name)), "{kind} {name}");
        }
    }
}
