//! What must hold of the targets of `relent connect`.

use super::target::Target;
use crate::{
    escape::escape,
    promises::{PASSWORD, is_plain, is_refused},
};

/// A target is what it is shown as, and holds nothing of a URL but its host and port.
pub fn target(text: &str) {
    match text.parse::<Target>() {
        Ok(target) => {
            let shown = target.to_string();
            is_plain(&escape(&shown));
            let again = shown.parse::<Target>();
            assert!(again.is_ok_and(|again| again.to_string() == shown), "{text:?} is shown as {shown:?}");
        }
        Err(bad) => is_refused(&bad),
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("postgres", text));
    let secret = format!("{scheme}://ann:{PASSWORD}@{rest}");
    if scheme != "unix" && !scheme.contains(|c: char| !c.is_ascii_alphanumeric()) && !rest.contains('@') {
        let told = match secret.parse::<Target>() {
            Ok(target) => target.to_string(),
            Err(bad) => bad.problem,
        };
        assert!(!told.contains(PASSWORD), "{secret:?}: {told}");
    }
}
