//! The `relent run` that this process runs inside of, if it does: what it says to us, and what we say to it.
//!
//! It speaks through the environment. `RELENT_KEY` is the key of its call, `RELENT_DEADLINE_MS` is how many
//! milliseconds the attempt had when it started, and `RELENT_VERDICT` names a file for what a failure means. When one
//! of our own calls is given up, it says so there, so that three attempts around three attempts stay three.
//!
//! What relent writes begins with the exit code that it is about (`exit 22: permanent`) and counts only if the attempt
//! ends with that code: a script that copes with the failure and goes on is judged by its own end, unless that has the same code.
//! What has no verdict takes back what was said of the same codes before (`exit 1-255:`). The command itself, whose end is the attempt's
//! whatever it is, speaks of all of them.

use crate::regular;
use nix::{
    libc::{EMFILE, ENFILE, ENOMEM},
    unistd::{getpgrp, getpid},
};
use relent::{Reason, Verdict};
use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Display,
    io::{self, Write},
    os::unix::process::parent_id,
    path::{Path, PathBuf},
    process,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The variable with the idempotency key of the call.
pub const KEY: &str = "RELENT_KEY";
/// The variable with the name of the file for verdicts.
pub const VERDICT: &str = "RELENT_VERDICT";
/// What the name of that file begins with: who listens stands behind it, and which of its attempts it is.
pub(crate) const VERDICT_NAME: &str = "verdict-";
/// All ends but success, whoever it is that ends us, and with whatever code the program around us ends then.
const ENDS: &str = "1-255";
/// The variable with the milliseconds that are left.
pub const DEADLINE_MS: &str = "RELENT_DEADLINE_MS";

/// The key of the call that this process is a part of: one for all attempts, and for all layers.
pub fn key() -> Option<OsString> {
    env::var_os(KEY).filter(|key| !key.is_empty())
}

/// How long the caller gives us from now on, if it said so; zero when it is over. A value that is no number says nothing.
///
/// The time counts from the first time that this was asked, which is at the start of the process.
pub fn time_left() -> Option<Duration> {
    static ASKED: OnceLock<(Instant, Option<Duration>)> = OnceLock::new();
    let (began, given) = ASKED.get_or_init(|| {
        let given = env::var(DEADLINE_MS).ok().and_then(|text| text.trim().parse().ok());
        (Instant::now(), given.map(Duration::from_millis))
    });
    given.map(|given| given.saturating_sub(began.elapsed()))
}

/// The earlier of a limit of our own and the caller's.
pub fn clip(own: Option<Duration>) -> Option<Duration> {
    own.into_iter().chain(time_left()).min()
}

/// What is left as the value of [`DEADLINE_MS`], rounded down: nobody is promised time that there is not.
pub fn millis(left: Duration) -> OsString {
    left.as_millis().min(u64::MAX.into()).to_string().into()
}

/// Tells the caller that a call was given up, so that it does not start it again: out of attempts, out of time or
/// permanent is permanent to whoever is above; an overloaded server stays one; a wait that was too long for us may
/// not be for the caller. `told` is how long the far side asked to wait, `exit` is what we are about to exit with.
///
/// Says nothing where nobody listens, or where the call was ended from outside. Whether nobody has to hear anything more.
pub fn gave_up(reason: Reason, told: Option<Duration>, exit: u8) -> bool {
    let verdict = match (reason, told) {
        (Reason::Cancelled, _) => return true,
        (Reason::Overloaded, _) => Verdict::Overloaded,
        (Reason::PushbackTooLong, Some(told)) => Verdict::After(told),
        _ => Verdict::Permanent,
    };
    say(verdict, exit)
}

/// Tells the caller what an end with this exit code means. Whether that was heard, where anybody listens: who does not hear it judges by
/// the code.
pub fn say(verdict: Verdict, exit: u8) -> bool {
    let line = match is_the_command() {
        true => line(&word(verdict), ENDS),
        false => line(&word(verdict), exit),
    };
    tell(&line).is_ok()
}

/// Tells the caller to begin nothing anew, whatever ends us, until that is taken back: what is done from now on, or was done, may not be done
/// twice.
///
/// # Errors
///
/// See [`Untold`].
pub(crate) fn nothing_again() -> Result<(), Untold> {
    tell(&line(&word(Verdict::Permanent), ENDS))
}

/// Takes back what [`nothing_again`] has said: who goes on is judged by what comes of that. After the command itself nothing does, but that it
/// may be ended before it is seen that it has ended.
pub(crate) fn take_back() {
    if !is_the_command() {
        let _ = tell(&line("", ENDS));
    }
}

/// The name of the file for the verdicts of what this process starts.
pub(crate) fn verdict_name(nth: u64) -> String {
    format!("{VERDICT_NAME}{}-{nth}", process::id())
}

/// Whether whoever listens has started this process as what it runs: with a group of its own, and nobody in between.
fn is_the_command() -> bool {
    let path = env::var_os(VERDICT).map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
    let parent = name.and_then(|name| name.strip_prefix(VERDICT_NAME)?.split_once('-')?.0.parse().ok());
    parent == Some(parent_id()) && getpgrp() == getpid()
}

/// Why the caller has not heard it.
#[derive(Debug)]
pub(crate) enum Untold {
    /// It does not listen, or not to us: its run may have ended, and its file's name be anybody's.
    Deaf(io::Error),
    /// It does, and there was no room for it.
    NoRoom(io::Error),
}

/// Where nobody is to be told, nothing has to be heard.
fn tell(line: &str) -> Result<(), Untold> {
    let Some(path) = env::var_os(VERDICT).filter(|path| !path.is_empty()) else { return Ok(()) };
    let mut file = regular::append(Path::new(&path)).map_err(|error| match error.raw_os_error() {
        Some(EMFILE | ENFILE | ENOMEM) => Untold::NoRoom(error),
        _ => Untold::Deaf(error),
    })?;
    // What somebody else has written there may not end with a line.
    let before = if file.metadata().is_ok_and(|data| data.len() > 0) { "\n" } else { "" };
    file.write_all(format!("{before}{line}").as_bytes()).map_err(Untold::NoRoom)
}

fn line(word: &str, codes: impl Display) -> String {
    format!("exit {codes}: {word}").trim_end().to_owned() + "\n"
}

/// A verdict as `RELENT_VERDICT` has it.
pub fn word(verdict: Verdict) -> String {
    verdict.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_end_it_is_about() {
        assert_eq!(line(&word(Verdict::Permanent), 22), "exit 22: permanent\n");
        assert_eq!(line(&word(Verdict::After(Duration::from_millis(1500))), 1), "exit 1: after 1.5s\n");
        assert_eq!(line("", ENDS), "exit 1-255:\n");
    }

    #[test]
    fn time_left_is_never_rounded_up() {
        assert_eq!(millis(Duration::from_micros(1999)), "1");
        assert_eq!(millis(Duration::MAX), u64::MAX.to_string().as_str());
    }
}
