//! What tells the processes of an attempt from children that relent had before, as of a script that became relent.

use super::environ;
use crate::outer;
use nix::unistd::Pid;
use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

/// What the processes of an attempt have in their environment: the key of the call, which a run within hands on, and that there is
/// an attempt.
#[derive(Debug)]
pub(super) struct Mark {
    key: OsString,
    /// The file for verdicts that a run around this one has named: whoever has that is of the script there.
    around: Option<OsString>,
}

impl Mark {
    pub(super) fn of(environment: &[(&'static str, OsString)]) -> Mark {
        let key = environment.iter().find(|(name, _)| *name == outer::KEY);
        let around = env::var_os(outer::VERDICT).filter(|path| !path.is_empty());
        Mark { key: key.map(|(_, key)| key.clone()).unwrap_or_default(), around }
    }

    /// Whether a process has another environment.
    pub(super) fn is_missing(&self, pid: Pid) -> bool {
        self.is_missing_in(&environ::of(pid))
    }

    /// One that shows none may have cleared it, or written a title over it, as servers do. One that makes a key of its own of this one
    /// (`$RELENT_KEY-mails`) is of this call, too.
    fn is_missing_in(&self, environment: &[u8]) -> bool {
        let has = |name, is_so: &dyn Fn(&[u8]) -> bool| environ::values(environment, name).any(is_so);
        let has_key = has(outer::KEY, &|key| key.starts_with(self.key.as_bytes()));
        let is_of_one = has_key && has("RELENT_ATTEMPT", &|_| true);
        let around = self.around.as_deref().map(OsStr::as_bytes);
        let is_outside = around.is_some_and(|path| has(outer::VERDICT, &|one| one == path));
        environ::has_variables(environment) && (!is_of_one || is_outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_process_is() {
        let mark = |around: Option<&str>| Mark { key: "k".into(), around: around.map(Into::into) };
        let (alone, within) = (mark(None), mark(Some("/v/a/verdict")));
        for (environment, is_missing, is_missing_within) in [
            ("", false, false),
            ("nginx: worker", false, false),
            ("PATH=/bin", true, true),
            ("RELENT_KEY=k", true, true),
            ("RELENT_KEY=k\0RELENT_ATTEMPT=1", false, false),
            ("RELENT_KEY=k-mails\0RELENT_ATTEMPT=1\0RELENT_VERDICT=/v/b/verdict", false, false),
            ("RELENT_KEY=k\0RELENT_ATTEMPT=1\0RELENT_VERDICT=/v/a/verdict", false, true),
        ] {
            let answers = [&alone, &within].map(|mark| mark.is_missing_in(environment.as_bytes()));
            assert_eq!(answers, [is_missing, is_missing_within], "{environment:?}");
        }
    }
}
