//! What the end of an attempt means: success, or a failure and its verdict.

use super::{
    args::FailureArgs,
    ended::{Ended, How},
    exit_set::ExitSet,
    patterns::Found,
};
use relent::{Verdict, duration::Human};

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Success,
    /// A failure, what it means, and what happened, for people.
    Failure(Verdict, String),
}

/// Judges an attempt. The first rule that applies decides:
///
/// 1. what the command wrote to `RELENT_VERDICT`
/// 2. `--stop-on-exit`: permanent
/// 3. `--retry-on-exit`, `--retry-on-output`: transient
/// 4. exit code 0: success, unless `--until-output` waits for more
/// 5. cannot be executed, not found: permanent, unless it is that the system has no room, or the file is being written
/// 6. `--sysexits`
/// 7. any other failure: permanent if it was said what to retry (3), else transient
///
/// What is transient by none but the last two is not begun anew sooner than somebody was told who was ended while it waited.
pub(super) fn judge(ended: &Ended, said: Option<Verdict>, rules: &FailureArgs) -> Judged {
    let code = ended.how.code();
    let what = happened(ended);
    if is_success(&ended.how, ended.found, said, rules) {
        return Judged::Success;
    }
    if let Some(verdict) = said {
        return Judged::Failure(verdict, what);
    }
    if is_in(&rules.stop_on_exit, code) && ended.how != How::Exited(0) {
        return Judged::Failure(Verdict::Permanent, what);
    }
    if is_in(&rules.retry_on_exit, code) {
        return Judged::Failure(Verdict::Transient, what);
    }
    if ended.found.retry {
        return Judged::Failure(Verdict::Transient, format!("{what}, its output asks for a retry"));
    }
    if ended.how == How::Exited(0) {
        return Judged::Failure(Verdict::Transient, format!("{what}, its output does not match yet"));
    }
    let is_choosy = rules.retry_on_exit.is_some() || rules.retry_on_output.is_some();
    let verdict = match code {
        _ if matches!(&ended.how, How::CannotRun(why) if why.may_pass) => Verdict::Transient,
        126 | 127 => Verdict::Permanent,
        75 if rules.sysexits => Verdict::Transient,
        64 | 65 | 77 | 78 if rules.sysexits => Verdict::Permanent,
        _ => Verdict::from(!is_choosy),
    };
    Judged::Failure(ended.said.no_sooner(verdict), what)
}

/// Whether it is a success, by the same rules, as far as its output is known.
pub(super) fn is_success(how: &How, found: Found, said: Option<Verdict>, rules: &FailureArgs) -> bool {
    let is_found = !found.retry && (found.until || rules.until_output.is_none());
    *how == How::Exited(0) && said.is_none() && !is_in(&rules.retry_on_exit, 0) && is_found
}

fn is_in(set: &Option<ExitSet>, code: u8) -> bool {
    set.as_ref().is_some_and(|set| set.contains(code))
}

/// What happened, in a few words.
fn happened(ended: &Ended) -> String {
    match &ended.how {
        How::Exited(code) => format!("exit {code}"),
        How::Died(number) => match signal_hook::low_level::signal_name(*number) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {number}"),
        },
        How::LeaseLost => "told to end, since its lease was lost".to_owned(),
        How::TimedOut => format!("timed out after {:.1}", Human(ended.ran)),
        How::CannotRun(why) => why.problem.clone(),
    }
}
