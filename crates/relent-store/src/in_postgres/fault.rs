//! What Postgres's errors mean.

use crate::{Error, ErrorKind};
use std::error::Error as _;
use tokio_postgres::error::SqlState;

/// An error of ours for a question that was sent. The server's own words may hold values, so only their code is told.
pub(super) fn of(err: &tokio_postgres::Error) -> Error {
    match err.code() {
        Some(code) => of_code(code),
        None if is_nonsense(err) => nonsense(),
        None => Error::new(ErrorKind::Unavailable, "the connection to the Postgres server broke")
            .hint("is the server reachable?")
            .maybe_happened(),
    }
}

/// An error of ours for a connection that was not made.
pub(super) fn connecting(err: &tokio_postgres::Error) -> Error {
    if let Some(code) = err.code() {
        return of_code(code);
    }
    if let Some(ours) = err.source().and_then(|source| source.downcast_ref::<Error>()) {
        return ours.clone();
    }
    if is_nonsense(err) {
        return nonsense();
    }
    if err.source().is_some_and(|source| source.to_string().contains("does not support TLS")) {
        return Error::new(ErrorKind::Refused, "the Postgres server does not speak TLS")
            .hint("set ssl = on in postgresql.conf");
    }
    Error::new(ErrorKind::Unavailable, "the Postgres server cannot be reached")
        .hint("is it up, and does it listen there?")
}

/// The client has names for these, but no way to ask for them.
fn is_nonsense(err: &tokio_postgres::Error) -> bool {
    let says = err.to_string();
    says.starts_with("unexpected message") || says.starts_with("error parsing response")
}

pub(super) fn nonsense() -> Error {
    Error::new(ErrorKind::Corrupt, "the server answered what no Postgres answers").maybe_happened()
}

fn of_code(code: &SqlState) -> Error {
    let (kind, what, hint) = match code.code() {
        "40001" | "40P01" | "55P03" => (ErrorKind::Contended, "others were quicker", ""),
        "57P01" | "57P02" | "57P03" | "57P05" => {
            (ErrorKind::Unavailable, "the Postgres server is starting or ending", "")
        }
        "53300" => (ErrorKind::Unavailable, "the Postgres server has no connection left", "raise its max_connections"),
        "53200" => (ErrorKind::Unavailable, "the Postgres server is out of memory", ""),
        "53100" => {
            (ErrorKind::Full, "the Postgres server's disk is full", "make room; nothing that was accepted is lost")
        }
        "57014" => (ErrorKind::Timeout, "the Postgres server ended the question", ""),
        "25006" => (ErrorKind::ReadOnly, "the Postgres server takes no writes", "is it a replica?"),
        "28P01" => (ErrorKind::Refused, "the Postgres server does not accept the user or the password", ""),
        "28000" => {
            let hint = "if pg_hba.conf wants TLS: `?sslmode=verify-full`";
            (ErrorKind::Refused, "the Postgres server does not let this user in from here", hint)
        }
        "3D000" => (ErrorKind::Refused, "the Postgres server has no such database", "createdb makes one"),
        "42501" => {
            let hint = "the user must be allowed to make tables and functions once, and to use them then";
            (ErrorKind::Refused, "the Postgres user may not do that", hint)
        }
        // Two who make the tables at once.
        "23505" | "42P07" | "42710" | "42723" | "XX000" => (ErrorKind::Contended, "somebody else was at it", ""),
        "42P01" | "42883" => {
            let hint = "`relent store migrate` says which, and makes all anew where none is left";
            (ErrorKind::Corrupt, "a table or function of the store is gone", hint)
        }
        "26000" | "42P05" => {
            let hint = "is there a pooler in between? leave out `?prepared=1`";
            (ErrorKind::Unsupported, "a statement that was prepared is not there, or another is", hint)
        }
        code if code.starts_with("08") => (ErrorKind::Unavailable, "the connection to the Postgres server broke", ""),
        // Anything else would be the server's own words.
        code if code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            return Error::new(ErrorKind::Corrupt, format!("Postgres says {code}"));
        }
        _ => return nonsense(),
    };
    let error = Error::new(kind, what);
    if hint.is_empty() { error } else { error.hint(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_code_is_told() {
        let told = |code: &str| of_code(&SqlState::from_code(code)).to_string();
        assert!(told("0A000").contains("Postgres says 0A000"));
        let long = "A".repeat(1_000_000);
        assert!(of_code(&SqlState::from_code("26000")).hint_text().unwrap().contains("?prepared=1"));
        for code in ["", "hunter2", "pw=ab", "0A00", "\u{e9}abc", long.as_str()] {
            assert_eq!(told(code), nonsense().to_string(), "{} characters", code.len());
        }
    }
}
