//! What stands behind the `?` of a store's URL.

use crate::{Error, ErrorKind};

/// Names and values, as they stand.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Of two values of a setting nobody knows which is meant.
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(crate) fn check_once(query: &str, names: &[&str]) -> Result<(), Error> {
    for name in names {
        let mut values = pairs(query).filter(|(found, _)| found == name).map(|(_, value)| value);
        if let Some(first) = values.next()
            && values.any(|other| other != first)
        {
            let what = format!("the store's URL has the setting '{name}' twice, with two values");
            return Err(Error::new(ErrorKind::Invalid, what).hint("leave out the one that is not meant"));
        }
    }
    Ok(())
}

/// A path that stands in a URL.
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(crate) fn path(value: &str) -> std::path::PathBuf {
    text(value).into()
}

/// What stands in a URL with percent signs, where `%2B` is a plus, and a plus is one, too.
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(crate) fn text(value: &str) -> String {
    let plain = value.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let decoded = url::form_urlencoded::parse(plain.as_bytes()).next();
    decoded.map_or_else(|| value.into(), |(text, _)| text.into_owned())
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
const MAKES: &str =
    "relent store migrate makes it, and so does the first command that uses it by --store or RELENT_STORE";

/// There is no store, and none was to be made.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn missing(what: &str) -> Error {
    Error::new(ErrorKind::Missing, what).hint(MAKES)
}

/// The store is of this version, and was not to be changed.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn too_old(version: impl std::fmt::Display, ours: impl std::fmt::Display) -> Error {
    let what = format!("the store has tables of version {version}, and this relent works with those of version {ours}");
    let hint = "relent store migrate brings them up to date, and so does the first command that uses it by --store or RELENT_STORE";
    Error::new(ErrorKind::TooOld, what).hint(hint)
}

/// What is said of a setting that is not known, or has a value that is not. Neither is shown: what is not known may be a part of a password.
pub(crate) fn unknown(name: &str, known: &'static str) -> Error {
    let is_known = known.split(", ").any(|one| one.split_once('=').is_some_and(|(known, _)| known == name));
    let what = match is_known {
        true => format!("the store's URL has a setting '{name}' that makes no sense"),
        false => "the store's URL has a setting that is not known".to_owned(),
    };
    Error::new(ErrorKind::Invalid, what).hint(format!("there are: {known}"))
}

/// It becomes part of SQL, so it is what a name may be and nothing else.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), Error> {
    let first = prefix.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let rest = prefix.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if first && rest && prefix.len() <= 32 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Invalid, "the prefix of names has characters that it must not have, or too many")
        .hint("1 to 32 of a-z, 0-9 and _, a letter first"))
}
