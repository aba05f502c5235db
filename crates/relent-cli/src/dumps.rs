//! Core dumps: keys and passwords are in memory, and a dump of it would be a file.

/// Makes none of this process, where the system can be told so.
pub(crate) fn forbid() {
    // Where it is refused, all is as it was.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
