//! `-H 'Name: value'` as a header, and what is wrong with it.

use crate::talk::Fault;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The headers that the flags give, in order.
pub(super) fn resolve(lines: &[String]) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = one(line)?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn one(line: &str) -> Result<(HeaderName, HeaderValue), Fault> {
    if line.contains(['\r', '\n', '\0']) {
        return Err(Fault::new(format!("the header {line:?} has a line break in it"))
            .hint("give each header its own -H; a value is one line"));
    }
    let Some((name, value)) = line.split_once(':') else {
        return Err(
            Fault::new(format!("the header {line:?} has no colon")).hint("write it like -H 'Accept: text/plain'")
        );
    };
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        Fault::new(format!("{name:?} is no name of a header"))
            .hint("letters, digits and dashes, with no space before the colon")
    })?;
    let value = HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| {
        Fault::new(format!("the value of the header {name} has a control character in it"))
            .hint("values are one line of text")
    })?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values() {
        let headers = resolve(&["Accept: text/plain".into(), "X-Empty:".into(), "accept:a:b".into()]).unwrap();
        let accepts: Vec<_> = headers.get_all("accept").iter().collect();
        assert_eq!(accepts, ["text/plain", "a:b"]);
        assert_eq!(headers["x-empty"], "");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for line in ["Accept", "A b: c", ": c", "Accept : c", "A: b\nC: d", "A: b\r\n", "A: \u{1}", "Ä: b"] {
            assert!(resolve(&[line.to_owned()]).is_err(), "{line:?}");
        }
    }
}
