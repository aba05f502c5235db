//! What the processes of a run are known by: a number of its own in their environment, behind those of the runs around it, to which
//! they belong as well.
//!
//! It tells the processes of an attempt from children that relent had before, as of a script that became relent, and from what such
//! children leave; and a watchman knows by it whom to end.

use super::{answer, environ};
use nix::unistd::Pid;
use relent_store::Nonce;
use std::{env, ffi::OsString, time::Instant};

/// The variable that has them, with colons in between.
pub(super) const MARKS: &str = "RELENT_RUN_ID";

/// The number of one run, which no other has.
#[derive(Clone, Debug)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Mark {
        Mark(format!("{:032x}", u128::from_be_bytes(Nonce::random().0)))
    }

    /// That of another process, as [`as_str`](Mark::as_str) has it there.
    pub(super) fn of(text: &str) -> Mark {
        Mark(text.to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The variable for the command, which is a part of what runs around this one run, too.
    pub(super) fn variable(&self) -> (&'static str, OsString) {
        (MARKS, self.beneath(env::var_os(MARKS)).into())
    }

    fn beneath(&self, outer: Option<OsString>) -> String {
        let mark = &self.0;
        let is_one = |outer: &String| {
            let is_mark = |c: char| c.is_ascii_hexdigit() || c == ':';
            outer.len() <= LONGEST && !outer.is_empty() && outer.chars().all(is_mark)
        };
        match outer.and_then(|outer| outer.into_string().ok()).filter(is_one) {
            Some(outer) => format!("{outer}:{mark}"),
            None => mark.clone(),
        }
    }

    /// Whether processes are known to be of this run, as far as the system shows their environment; `None` of each that does not
    /// [answer](answer), by then if there is a time.
    pub(super) fn marks(
        &self,
        pids: Vec<Pid>,
        until: Option<Instant>,
    ) -> impl Iterator<Item = (Pid, Option<bool>)> + use<> {
        let mark = self.clone();
        answer::all(pids, until, move |pid| mark.is_in(&environ::of(pid)))
    }

    /// Whether processes are known not to be of this run; `None` of each that does not answer until then, and of one that is
    /// [becoming another program](environ::settled) this is its answer.
    pub(super) fn are_missing(
        &self,
        pids: Vec<Pid>,
        until: Instant,
    ) -> impl Iterator<Item = (Pid, Option<Option<bool>>)> + use<> {
        let mark = self.clone();
        let is_missing = move |pid| environ::settled(pid).map(|environment| mark.is_missing_in(&environment));
        answer::all(pids, Some(until), is_missing)
    }

    fn is_in(&self, environment: &[u8]) -> bool {
        let is_mark = |one: &[u8]| one == self.0.as_bytes();
        environ::values(environment, MARKS).any(|marks| marks.split(|byte| *byte == b':').any(is_mark))
    }

    /// One that shows no environment may have cleared it, or written a title over it, as servers do.
    fn is_missing_in(&self, environment: &[u8]) -> bool {
        environ::has_variables(environment) && !self.is_in(environment)
    }
}

/// What those of the runs around have at most, which anybody may have set.
const LONGEST: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_beneath_another_has_both_marks() {
        let beneath = |outer: &str| Mark::of("abc").beneath(Some(OsString::from(outer)));
        assert_eq!(Mark::of("abc").beneath(None), "abc");
        assert_eq!(beneath("0f"), "0f:abc");
        assert_eq!(beneath("0f:1e"), "0f:1e:abc");
        for nonsense in ["", "x y", "\u{e9}", &"0".repeat(20_000)] {
            assert_eq!(beneath(nonsense), "abc", "{nonsense:?}");
        }
        assert_ne!(Mark::new().as_str(), Mark::new().as_str());
    }

    #[test]
    fn whose_a_process_is() {
        let mark = Mark::of("abc");
        for (environment, is_in, is_missing) in [
            ("", false, false),
            ("nginx: worker", false, false),
            ("PATH=/bin", false, true),
            ("RELENT_KEY=k\0RELENT_ATTEMPT=1", false, true),
            ("RELENT_RUN_ID=", false, true),
            ("RELENT_RUN_ID=abcd", false, true),
            ("RELENT_RUN_ID=0f", false, true),
            ("RELENT_RUN_ID=0f:1e", false, true),
            ("RELENT_RUN_ID=abc", true, false),
            ("PATH=/bin\0RELENT_RUN_ID=0f:abc:1e", true, false),
        ] {
            let answers = (mark.is_in(environment.as_bytes()), mark.is_missing_in(environment.as_bytes()));
            assert_eq!(answers, (is_in, is_missing), "{environment:?}");
        }
    }
}
