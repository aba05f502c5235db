//! What Redis's errors mean.

use super::packed;
use crate::{Error, ErrorKind};
use redis::{ErrorKind as Kind, RedisError, ServerErrorKind as Server};

/// An error of ours out of one of Redis's. The server's own words may hold values, so only their first word is told.
pub(super) fn of(err: &RedisError) -> Error {
    let away = |what: &str| Error::new(ErrorKind::Unavailable, what.to_owned()).hint("is the server reachable?");
    match err.kind() {
        // A server that lets nobody in for now answers nothing: what is sent to it is not done.
        Kind::Io if err.is_connection_refusal() => away("the Redis server refuses the connection"),
        Kind::Io if err.is_timeout() => Error::new(ErrorKind::Timeout, "the Redis server did not answer in time"),
        Kind::Io => away("the connection to the Redis server broke").maybe_happened(),
        Kind::AuthenticationFailed => refused("the Redis server does not accept the user or the password"),
        Kind::InvalidClientConfig => Error::new(ErrorKind::Invalid, "the store's URL makes no sense to Redis")
            .hint("write it like redis://host:6379/0; a user and a password stand before the host"),
        Kind::Server(kind) => of_server(kind, err.code()),
        Kind::Extension => of_server(Server::ResponseError, err.code()),
        // An answer whose end did not come is no nonsense; the client's only sign of it is what its parser says.
        Kind::Parse if err.to_string().contains("end of input") => {
            away("the connection to the Redis server broke").maybe_happened()
        }
        Kind::Parse | Kind::UnexpectedReturnType => {
            Error::new(ErrorKind::Corrupt, "the server answered what no Redis answers").maybe_happened()
        }
        kind => away(&format!("Redis says {kind:?}")).maybe_happened(),
    }
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Refused, what.to_owned()).hint("look at the URL's user and password, and at the server's ACL")
}

fn of_server(kind: Server, code: Option<&str>) -> Error {
    let transient = |what: &str| Error::new(ErrorKind::Unavailable, what.to_owned());
    match (kind, code.unwrap_or_default()) {
        (Server::BusyLoading, _) => transient("the Redis server is loading its data"),
        (Server::NoScript, _) => transient("the Redis server has forgotten a script"),
        (Server::ReadOnly, _) => transient("the Redis server is a replica, and takes no writes"),
        (Server::Moved | Server::Ask, _) => transient("the Redis server says that another of its cluster has the key")
            .hint("name a server that has all keys: one of its own, or the primary of a cluster of one node"),
        (Server::ClusterDown | Server::TryAgain, _) => transient("the Redis server's cluster is not complete for now"),
        (Server::MasterDown, _) => transient("the Redis server is a replica that has lost its primary"),
        (Server::NoPerm, _) | (_, "NOAUTH" | "WRONGPASS" | "NOPERM") => {
            refused("the Redis server does not let this user do that")
        }
        (_, "OOM") => Error::new(ErrorKind::Full, "the Redis server is out of memory")
            .hint("raise its maxmemory; with an eviction policy other than noeviction, state would be lost instead"),
        (_, "MISCONF" | "NOREPLICAS") => transient("the Redis server takes no writes for now"),
        (_, "BUSY") => transient("the Redis server is busy with a script"),
        (_, "OTHERVERSION") => packed::other_version(),
        (_, "WRONGTYPE") => Error::new(ErrorKind::Corrupt, "a key of the store holds something else")
            .hint("choose another prefix, by `?prefix=`"),
        (_, code) if (1..=20).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            Error::new(ErrorKind::Corrupt, format!("the Redis server answered {code}"))
        }
        // Anything else would be the server's own words.
        _ => Error::new(ErrorKind::Corrupt, "the Redis server answered with an error that no Redis has"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_word_of_capitals_is_told() {
        let told = |code: Option<&str>| of_server(Server::ResponseError, code).to_string();
        assert!(told(Some("CROSSSLOT")).contains("answered CROSSSLOT"));
        let long = "A".repeat(21);
        for code in [None, Some(""), Some("hunter2"), Some("PASSWORD=X"), Some(long.as_str())] {
            assert!(told(code).contains("an error that no Redis has"), "{code:?}");
        }
    }
}
