//! What SQLite's errors mean.

use crate::{Error, ErrorKind};
use rusqlite::{ErrorCode, ffi};

/// An error of ours out of one of SQLite's. Its text names no value.
pub(super) fn of(err: rusqlite::Error) -> Error {
    let Some(code) = err.sqlite_error_code() else {
        return match err {
            rusqlite::Error::QueryReturnedNoRows
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..) => corrupt("a row that no relent wrote"),
            _ => Error::new(ErrorKind::Corrupt, "SQLite was used in a way it does not allow"),
        };
    };
    if err.sqlite_error().is_some_and(|err| err.extended_code == ffi::SQLITE_IOERR_SHORT_READ) {
        // The index that others made says of a log that it has more than it has.
        return Error::new(ErrorKind::Unavailable, "the log beside the store's file is not the one that others use")
            .hint("was it deleted? end who else uses the store, without force: the last to close it saves what was accepted")
            .maybe_happened();
    }
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            Error::new(ErrorKind::Contended, "another process has locked the store")
                .hint("is somebody keeping a transaction open in it?")
        }
        ErrorCode::DiskFull => Error::new(ErrorKind::Full, "the disk is full, or the store has reached its limit")
            .hint("make room; nothing that was accepted is lost"),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            Error::new(ErrorKind::ReadOnly, "the store cannot be written").hint("whose is the file, and its folder?")
        }
        ErrorCode::CannotOpen => Error::new(ErrorKind::Refused, "the store's file cannot be opened")
            .hint("does its folder exist, may it be written, and may one more be open (ulimit -n)?"),
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => no_store(),
        ErrorCode::SystemIoFailure => Error::new(ErrorKind::Unavailable, "the disk failed").maybe_happened(),
        ErrorCode::TooBig => Error::new(ErrorKind::Invalid, "a value has more bytes than a store keeps"),
        ErrorCode::OperationInterrupted => {
            Error::new(ErrorKind::Unavailable, "the store takes too long for what it was asked")
                .hint("`relent store check` says how large it is; is it relent's own file?")
        }
        ErrorCode::OutOfMemory => Error::new(ErrorKind::Unavailable, "no memory is left"),
        ErrorCode::SchemaChanged => Error::new(ErrorKind::Contended, "the tables were changed meanwhile"),
        code => Error::new(ErrorKind::Corrupt, format!("SQLite says {code:?}")),
    }
}

pub(super) fn no_store() -> Error {
    corrupt("the file is no store, or is damaged")
}

pub(super) fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, what.to_owned()).hint("`sqlite3 FILE 'PRAGMA integrity_check'` says more")
}
