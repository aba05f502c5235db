//! What is retried: one list for the help of all commands that make calls.

/// The list. Each command's flags say otherwise for that command.
const LIST: &str = "\
What is retried, unless flags say otherwise (relent help upstream: budgets, breakers, hedges):
  run      every exit code but 0, 126 and 127; death by a signal and by --attempt-timeout
           (--retry-on-exit, --stop-on-exit, --sysexits, --retry-on-output, --until-output)
  http     connections that fail or break, silence, 408, 425, 429 and 5xx but 501 and 505
           (--retry-on-status, --stop-on-status; POST and PATCH: --idempotency-key, --retry-unsafe)
  connect  every failure but a missing permission";

/// What stands below the flags of a command: the list, and what is to be said of it alone.
pub(crate) fn and(own: &str) -> String {
    format!("{LIST}\n{own}")
}
