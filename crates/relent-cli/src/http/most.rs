//! The largest body: what `--max-size` says, or else what the place takes where it grows.

use crate::{size::Size, talk::Fault};
use relent::config::BadSetting;

/// Where nothing else is said: of a body that grows beside the file that it becomes.
pub(super) const IN_A_PART: Size = Size(64 << 30);

/// The same, of one that is kept until it is complete, for standard output, a device or a pipe.
pub(super) const KEPT: Size = Size(1 << 30);

/// What to do about a body that is too large.
pub(super) const HINT: &str = "--max-size takes more, or unlimited";

/// What `--max-size` says.
pub(super) fn given(text: Option<&str>) -> Result<Option<Size>, Fault> {
    let bad = |bad: BadSetting| Fault::new(format!("--max-size: {}", bad.problem)).hint(bad.hint);
    text.map(|text| text.parse().map_err(bad)).transpose()
}

/// What is wrong with a body of this length, if it is too large.
pub(super) fn problem(length: u64, most: Size) -> Option<String> {
    (length > most.0).then(|| format!("the body is larger than the --max-size of {most}"))
}
