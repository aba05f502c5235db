//! The `relent run` that this process runs inside of, if it does: what it says to us, and what we say to it.
//!
//! It speaks through the environment. `RELENT_KEY` is the key of its call, `RELENT_DEADLINE_MS` is how many
//! milliseconds the attempt had when it started, and `RELENT_VERDICT` names a file for what a failure means. When one
//! of our own calls is given up, it says so there, so that three attempts around three attempts stay three.
//!
//! What relent writes begins with the exit code that it is about, and with who says it (`exit 22 by 4026531836.77: permanent`), and counts
//! only if the attempt ends with that code: a script that copes with the failure and goes on is judged by its own end, unless that has the
//! same code. What the command itself says is about its end, whatever that is. Of all codes (`exit 1-255 by 4026531836.77: permanent`) is what
//! may not be begun anew while somebody is at it, until the same one takes that back (`exit 1-255 by 4026531836.77: taken back`), and what is waited
//! for as a far side has asked (`exit 1-255 by 4026531836.77: after 29s`), so that whoever is ended meanwhile is not begun anew sooner.
//! Whose time was that of an attempt says `ended` to the nearest run alone, which takes all of it back in those around it if it goes on.

use crate::{arrived, ear::HEARD_OUT, regular, talk::plain};
use nix::libc::{EMFILE, ENFILE, ENOMEM};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};
use relent::{Reason, Verdict};
use relent_store::Nonce;
use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::{self, Display},
    fs,
    io::{self, Write},
    mem,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
    process,
    sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The variable with the idempotency key of the call.
pub const KEY: &str = "RELENT_KEY";
/// The variable with the name of the file for verdicts.
pub const VERDICT: &str = "RELENT_VERDICT";
/// The variable with the names of those of the runs around that one, the nearest first, a `:` between them (`%3A` in them): for what may not
/// be begun anew by any of them.
pub(crate) const ABOVE: &str = "RELENT_VERDICTS_ABOVE";
/// All ends but success, whoever it is that ends us, and with whatever code the program around us ends then.
const ENDS: &str = "1-255";
/// What is said instead of a verdict by who takes back that nothing may be begun anew. It has a word, since a line may be cut off.
pub(crate) const TAKEN_BACK: &str = "taken back";
/// What is said instead of a verdict of what was not begun.
pub(crate) const NOT_BEGUN: &str = "not begun";
/// What is said to the nearest run of all that one has told who has ended: that run takes it back in those around it.
pub(crate) const ENDED: &str = "ended";
/// What is said when a wait that was told is over.
pub(crate) const WAITED: &str = "waited";
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
/// Says nothing where nobody listens, or where the call was ended from outside.
///
/// # Errors
///
/// See [`Untold`]: who does not hear it judges by the code.
pub(crate) fn gave_up(reason: Reason, told: Option<Duration>, exit: u8) -> Result<(), Untold> {
    let verdict = match (reason, told) {
        (Reason::Cancelled, _) => return Ok(()),
        (Reason::Overloaded, _) => Verdict::Overloaded,
        (Reason::PushbackTooLong, Some(told)) => Verdict::After(told),
        _ => Verdict::Permanent,
    };
    say(verdict, exit)
}

/// Tells the caller what an end with this exit code means.
///
/// # Errors
///
/// See [`Untold`]: who does not hear it judges by the code.
pub(crate) fn say(verdict: Verdict, exit: u8) -> Result<(), Untold> {
    tell(&line(&told(verdict), exit))
}

/// Tells the caller to begin nothing anew, whatever ends us, until that is taken back: what is done from now on, or was done, may not be done
/// twice.
///
/// # Errors
///
/// See [`Untold`].
pub(crate) fn nothing_again() -> Result<(), Untold> {
    tell_all(&line(&told(Verdict::Permanent), ENDS))
}

/// Longer than anybody waits, and as long as a clock can tell.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

/// What far sides have asked of this process, as long as that holds: the strictest of it.
static ASKED: Mutex<Asked> = Mutex::new(Asked { until: None, never: false });

#[derive(Clone, Copy, Default)]
struct Asked {
    /// Until when they want to be left alone.
    until: Option<Instant>,
    /// Whether one wants nobody to come back.
    never: bool,
}

/// Tells the caller, of whatever ends us, what a far side that has said this now asks of who comes back: nothing is begun anew, or not sooner.
///
/// # Errors
///
/// See [`Untold`].
pub(crate) fn heed(verdict: Verdict) -> Result<(), Untold> {
    if verdict == Verdict::Overloaded && !asked().never {
        nothing_again()?;
        asked().never = true;
    }
    let Some(wait) = verdict.pushback() else { return Ok(()) };
    let now = Instant::now();
    let until = now.checked_add(wait).unwrap_or(now + FOR_EVER);
    let until = asked().until.map_or(until, |before| before.max(until));
    asked().until = Some(until);
    tell_until(until)?;
    // One further out has heard it, perhaps, and the nearest is who waits or does not.
    hears()
}

/// Takes that back: it was waited for, or has become the end that was told.
pub(crate) fn has_heeded() {
    let asked = mem::take(&mut *asked());
    if asked.until.is_some() {
        let _ = tell_all(&line(WAITED, ENDS));
    }
    if asked.never {
        take_back();
    }
}

/// Tells the caller what is left of a wait, or that it is over: whoever is ended may have been in the jitter behind it.
pub(crate) fn was_ended() {
    let until = asked().until;
    match until.filter(|until| *until > Instant::now()) {
        Some(until) => drop(tell_until(until)),
        None if until.is_some() => drop(tell_all(&line(WAITED, ENDS))),
        None => {}
    }
}

/// What was asked is what an end of ours with this exit code means: whoever copes with that is judged by their own.
pub(crate) fn has_ended(exit: u8) {
    // If nobody hears that, what they have heard stands.
    if say_what_was_asked(exit).is_ok() {
        has_heeded();
    }
}

/// Tells the caller that what was asked is what an end with this exit code means.
///
/// # Errors
///
/// See [`Untold`]: what they have heard stands.
pub(crate) fn say_what_was_asked(exit: u8) -> Result<(), Untold> {
    let Asked { until, never } = *asked();
    let left = until.map(|until| until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
    let asked = if never { Some(Verdict::Overloaded) } else { left.map(Verdict::After) };
    asked.map_or(Ok(()), |asked| say(asked, exit))
}

fn tell_until(until: Instant) -> Result<(), Untold> {
    let left = until.saturating_duration_since(Instant::now());
    tell_all(&line(&told(Verdict::After(left)), ENDS))
}

fn asked() -> MutexGuard<'static, Asked> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes back what others have said so who were ended in a wait: it was heard here, and is ours to wait for.
pub(crate) fn have_waited(speakers: &[String]) {
    let all: String = speakers.iter().map(|speaker| line_by(speaker, WAITED, ENDS)).collect();
    if !all.is_empty() {
        let _ = tell_all(&all);
    }
}

/// Waits, where somebody is told what comes of this process, for a signal by which the same one may be ending it who has ended those beside it:
/// what they have heard stands, then.
pub(crate) fn wait_to_be_ended(stands: bool) {
    let Asked { until, never } = *asked();
    if listener().is_some() && (stands || never || until.is_some()) {
        thread::sleep(HEARD_OUT);
    }
}

/// Whether the caller would hear what there will be to say.
///
/// # Errors
///
/// See [`Untold`].
pub(crate) fn hears() -> Result<(), Untold> {
    tell("\n")
}

/// Takes back what [`nothing_again`] has said: who goes on is judged by what comes of that.
pub(crate) fn take_back() {
    let _ = tell_all(&line(TAKEN_BACK, ENDS));
}

/// Takes back all of it: what was asked and, if it `stands`, what [`nothing_again`] has said.
pub(crate) fn take_all_back(stands: bool) {
    has_heeded();
    if stands {
        take_back();
    }
}

/// Takes back what was asked and, if it `stands`, what [`nothing_again`] has said, in the nearest run alone, which knows what our end means and passes
/// that on if it goes on: the limit that has ended us may be that of a run around it, which would begin anew before it hears of that.
pub(crate) fn leave_it_to_the_nearest(stands: bool) {
    let Asked { until, never } = mem::take(&mut *asked());
    if stands || never || until.is_some() {
        have_ended(&[me()]);
    }
}

/// Takes back what others have said who have left that to us.
pub(crate) fn have_ended(speakers: &[String]) {
    let all: String = speakers.iter().map(|speaker| line_by(speaker, ENDED, ENDS)).collect();
    if !all.is_empty() {
        let _ = tell(&all);
    }
}

/// Takes back what [`nothing_again`] has said, since it was not begun: whoever ends us, it may be begun anew.
pub(crate) fn was_not_begun() {
    let _ = tell_all(&line(NOT_BEGUN, ENDS));
}

/// Who a process is to those who listen: by its number, and in which namespace of processes it has that. The system gives both anew once
/// they are free, so who speaks adds what nobody else has (see [`is_by`]).
pub(crate) fn speaker(pid: u32) -> String {
    let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |data| data.ino());
    format!("{namespace}.{pid}")
}

/// Whether what was said by somebody was said by a process that is this speaker.
pub(crate) fn is_by(by: &str, speaker: &str) -> bool {
    by.strip_prefix(speaker).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Who this process is to those who listen.
fn me() -> String {
    static OWN: LazyLock<String> = LazyLock::new(|| {
        let own: String = Nonce::random().0[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{own}", speaker(process::id()))
    });
    OWN.clone()
}

/// Why the caller has not heard it.
#[derive(Debug)]
pub(crate) enum Untold {
    /// It does not listen, or not to us: its run may have ended, and its file's name be anybody's.
    Deaf(io::Error),
    /// It does, and there was no room for it.
    NoRoom(io::Error),
}

impl Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Untold::Deaf(error) | Untold::NoRoom(error)) = self;
        f.write_str(&plain(error))
    }
}

/// Whose file that is. Where nobody is to be told, nothing has to be heard.
fn listener() -> Option<PathBuf> {
    env::var_os(VERDICT).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The files of all runs around what a run starts, but its own, as [`ABOVE`] has them.
pub(crate) fn all_above() -> Option<OsString> {
    Some(joined(&[vec![listener()?], above()].concat()))
}

fn above() -> Vec<PathBuf> {
    split(&env::var_os(ABOVE).unwrap_or_default())
}

/// What stands for itself in no name.
const APART: &AsciiSet = &CONTROLS.add(b':').add(b'%');

fn joined(paths: &[PathBuf]) -> OsString {
    let names = paths
        .iter()
        .map(|path| percent_encode(path.as_os_str().as_bytes(), APART).map(str::as_bytes).collect::<Vec<_>>().concat());
    OsString::from_vec(names.collect::<Vec<_>>().join(&b':'))
}

fn split(names: &OsStr) -> Vec<PathBuf> {
    let names = names.as_bytes().split(|byte| *byte == b':').filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(percent_decode(name).collect()).into()).collect()
}

fn tell(line: &str) -> Result<(), Untold> {
    listener().map_or(Ok(()), |path| tell_to(&path, line))
}

/// Tells the runs around that one, too: it may not come to that any more, or be over.
fn tell_all(line: &str) -> Result<(), Untold> {
    let Some(nearest) = listener() else { return Ok(()) };
    let heard = tell_to(&nearest, line);
    if let Err(Untold::NoRoom(_)) = heard {
        return heard;
    }
    above().iter().try_fold(heard, |heard, path| match tell_to(path, line) {
        // One of those is enough who is there.
        Ok(()) => Ok(Ok(())),
        Err(Untold::Deaf(_)) => Ok(heard),
        Err(untold) => Err(untold),
    })?
}

fn tell_to(path: &Path, line: &str) -> Result<(), Untold> {
    let mut file = regular::append(path).map_err(|error| match error.raw_os_error() {
        Some(EMFILE | ENFILE | ENOMEM) => Untold::NoRoom(error),
        _ => Untold::Deaf(error),
    })?;
    // What somebody else has written there may not end with a line.
    let before = if file.metadata().is_ok_and(|data| data.len() > 0) { "\n" } else { "" };
    let written = file.write_all(format!("{before}{line}").as_bytes());
    written.and_then(|()| arrived::check(&file)).map_err(Untold::NoRoom)
}

fn line(word: &str, codes: impl Display) -> String {
    line_by(&me(), word, codes)
}

fn line_by(speaker: &str, word: &str, codes: impl Display) -> String {
    format!("exit {codes} by {speaker}: {word}").trim_end().to_owned() + "\n"
}

/// A verdict as `RELENT_VERDICT` has it.
pub fn word(verdict: Verdict) -> String {
    verdict.to_string()
}

/// The same in a line: of a wait that is cut off nothing is left that is one (`after 1m` of `after 1m30s`).
fn told(verdict: Verdict) -> String {
    match verdict {
        Verdict::After(wait) => {
            let all = format!("{}.{:09}", wait.as_secs(), wait.subsec_nanos());
            format!("after {}s", all.trim_end_matches('0').trim_end_matches('.'))
        }
        other => word(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_end_it_is_about_and_who_says_it() {
        let me = me();
        let own = me.strip_prefix(&format!("{}-", speaker(process::id()))).unwrap();
        assert!(own.len() == 16 && own.bytes().all(|sign| sign.is_ascii_hexdigit()), "{own}");
        assert_eq!(line(&told(Verdict::Permanent), 22), format!("exit 22 by {me}: permanent\n"));
        assert_eq!(
            line(&told(Verdict::After(Duration::from_millis(1500))), 1),
            format!("exit 1 by {me}: after 1.5s\n")
        );
        assert_eq!(
            line(&told(Verdict::After(Duration::from_millis(5_400_001))), 1),
            format!("exit 1 by {me}: after 5400.001s\n")
        );
        assert_eq!(line(TAKEN_BACK, ENDS), format!("exit 1-255 by {me}: taken back\n"));
    }

    /// A verdict is read back by who knows no finer part of a second than the system's clock does.
    #[test]
    fn a_wait_is_told_to_the_nanosecond() {
        let millis = (1..=32_000).map(Duration::from_millis);
        let nanos = (0..32_000).map(|nth| Duration::from_nanos(1_000_000_000 + nth * 31_249));
        for wait in millis.chain(nanos).chain([Duration::ZERO, Duration::from_nanos(1), FOR_EVER]) {
            let line = told(Verdict::After(wait));
            let said = line.strip_prefix("after ").and_then(|text| relent::duration::parse_duration(text).ok());
            assert_eq!(said, Some(wait), "{line}");
        }
        for (millis, line) in [(1118, "after 1.118s"), (2000, "after 2s"), (0, "after 0s"), (100_000, "after 100s")] {
            assert_eq!(told(Verdict::After(Duration::from_millis(millis))), line);
        }
    }

    #[test]
    fn what_does_not_arrive_is_not_told() {
        let shut = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
        let folder = tempfile::Builder::new().permissions(shut).tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("said");
        fs::write(&path, "").unwrap();
        assert!(tell_to(&path, "a\n").is_ok());
        assert!(matches!(arrived::tests::refused(|| tell_to(&path, "b\n")), Err(Untold::NoRoom(_))));
    }

    #[test]
    fn whatever_a_folder_is_called_its_files_are_told_apart() {
        let bytes: Vec<u8> = (1..=255).collect();
        let all = [b"build-12:30:05/verdict-1", b"%3A:%3a".as_slice(), &bytes, b"b"];
        let all = all.map(|name| PathBuf::from(OsString::from_vec(name.to_vec())));
        assert_eq!(split(&joined(&all)), all);
        assert_eq!(joined(&all[..1]), "build-12%3A30%3A05/verdict-1");
        assert_eq!(split(OsStr::new("::")), Vec::<PathBuf>::new());
    }

    #[test]
    fn time_left_is_never_rounded_up() {
        assert_eq!(millis(Duration::from_micros(1999)), "1");
        assert_eq!(millis(Duration::MAX), u64::MAX.to_string().as_str());
    }
}
