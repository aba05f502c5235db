//! What scripts answer: numbers, times and names among them.

use super::nonsense;
use crate::{Acquired, Error, Fence, Kept, Owner, Scope, Started, Stored, Time};
use redis::{FromRedisValue, ParsingError, Value};
use std::time::Duration;

pub(super) type Fields = Vec<Vec<u8>>;

pub(super) fn number(field: Option<&Vec<u8>>) -> Result<u64, Error> {
    let text = field.and_then(|field| std::str::from_utf8(field).ok()).ok_or_else(nonsense)?;
    text.parse().map_err(|_| nonsense())
}

pub(super) fn time(field: Option<&Vec<u8>>) -> Result<Time, Error> {
    number(field).map(Time)
}

/// Of microseconds.
pub(super) fn moment(field: Option<&Vec<u8>>) -> Result<Time, Error> {
    number(field).map(|micros| Time(micros / 1000))
}

pub(super) fn duration(field: Option<&Vec<u8>>) -> Result<Duration, Error> {
    number(field).map(Duration::from_millis)
}

/// None for an empty field.
pub(super) fn optional(field: Option<&Vec<u8>>) -> Result<Option<u64>, Error> {
    match field {
        Some(field) if !field.is_empty() => number(Some(field)).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn owner(field: Option<&Vec<u8>>) -> Owner {
    Owner::new(&String::from_utf8_lossy(field.map_or(&[][..], |field| field)))
}

pub(super) fn scope_of(field: Option<&Vec<u8>>) -> Result<Scope, Error> {
    Scope::kept(field.map_or(&[][..], |field| field)).map_err(|_| nonsense())
}

pub(super) fn kept(answer: u64) -> Kept {
    if answer == 1 { Kept::Kept } else { Kept::Fenced }
}

/// What a script answers that claims.
pub(super) enum Answer {
    /// Nothing was there, and this is the fence.
    Anew(Fence),
    Fields(Fields),
}

impl FromRedisValue for Answer {
    fn from_redis_value(value: Value) -> Result<Answer, ParsingError> {
        match value {
            Value::BulkString(_) => u64::from_redis_value(value).map(|fence| Answer::Anew(Fence(fence))),
            _ => Fields::from_redis_value(value).map(Answer::Fields),
        }
    }
}

/// What became of a key.
pub(super) fn started(answer: Answer) -> Result<Started, Error> {
    let answer = match answer {
        Answer::Anew(fence) => return Ok(Started::Started { fence, unknown: None }),
        Answer::Fields(answer) => answer,
    };
    let first = answer.get(1);
    match answer.first().map(Vec::as_slice) {
        Some(b"started") => {
            let unknown = moment(answer.get(2))?;
            Ok(Started::Started { fence: Fence(number(first)?), unknown: Some(unknown).filter(|at| at.0 > 0) })
        }
        Some(b"mismatch") => Ok(Started::Mismatch),
        Some(b"replay") => {
            let value = answer.get(2).ok_or_else(nonsense)?;
            let is_failure = first.is_some_and(|state| state == b"f");
            Ok(Started::Replay(if is_failure { Stored::failure(value) } else { Stored::success(value) }))
        }
        Some(b"busy") => Ok(Started::Busy { retry_after: duration(first)? }),
        Some(b"unknown") => Ok(Started::Unknown { since: moment(first)? }),
        _ => Err(nonsense()),
    }
}

/// What became of a lease.
pub(super) fn acquired(answer: Answer, ttl: Duration) -> Result<Acquired, Error> {
    let answer = match answer {
        Answer::Anew(fence) => return Ok(Acquired::Acquired { fence, until: Time(fence.0 / 1000).after(ttl) }),
        Answer::Fields(answer) => answer,
    };
    let (first, second) = (answer.get(1), answer.get(2));
    match answer.first().map(Vec::as_slice) {
        Some(b"acquired") => Ok(Acquired::Acquired { fence: Fence(number(first)?), until: time(second)? }),
        Some(b"held") => Ok(Acquired::Held { by: owner(first), left: duration(second)? }),
        _ => Err(nonsense()),
    }
}
