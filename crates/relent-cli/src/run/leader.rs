//! The end of the command itself: on Linux it is noticed without waiting for it, so that its number stays its own.
//!
//! A process that has ended and that nobody has waited for keeps its number, and with it that of the group that it led. As long as
//! the group may be signalled, nobody else can get it.

use nix::unistd::Pid;
use std::{
    io,
    process::{Child, ExitStatus},
};

/// Its status, if it has ended.
#[cfg(target_os = "linux")]
pub(super) fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    use rustix::io::retry_on_intr;
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    use std::os::unix::process::ExitStatusExt;

    /// What the status of a process says besides the signal, if there is a core dump.
    const CORE: i32 = 0x80;

    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = retry_on_intr(|| waitid(WaitId::Pid(Pid::from_child(child)), how))?;
    let raw = status.and_then(|status| match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some((code & 0xff) << 8),
        (_, Some(signal)) => Some(signal | if status.dumped() { CORE } else { 0 }),
        _ => None,
    });
    Ok(raw.map(ExitStatus::from_raw))
}

/// Its status, if it has ended. Its number is free then.
#[cfg(not(target_os = "linux"))]
pub(super) fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    child.try_wait()
}

/// Lets go of the number of one that has ended.
pub(super) fn let_go(leader: Pid) {
    use nix::sys::wait::{WaitPidFlag, waitpid};
    let _ = waitpid(leader, Some(WaitPidFlag::WNOHANG));
}
