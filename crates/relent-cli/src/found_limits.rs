//! What relent limits by itself, a policy file that nobody named can make shorter and not longer: whoever goes into a folder has
//! not said for how long a server may have relent wait; and not shorter where silence is taken for an answer. What is left out is
//! told of, as stores are.

use crate::{escape::escape, policy_file::PolicyFile, typed::typed};
use relent::{
    Policy,
    config::{Ceiling, Draft},
    duration::Human,
};
use std::time::Duration;

/// When an attempt ends of which nobody says anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// How long it takes then.
    pub(crate) most: Duration,
    /// Whether that somebody was silent for so long is taken for an answer: then less is no answer.
    pub(crate) is_proof: bool,
}

/// What a file says beside these flags, and what of it is left out. An attempt has an end of relent's own in some commands.
pub(crate) fn within(file: &PolicyFile, flags: &Draft, attempt: Option<Attempt>) -> (Draft, Vec<String>) {
    let (mut draft, mut left_out) = (file.draft.clone(), Vec::new());
    if !file.is_by_chance {
        return (draft, left_out);
    }
    // What holds without the file: a profile that a flag names has its own.
    let own = flags.settings().unwrap_or_else(|_| Policy::default().settings());
    if let Some(most) = own.max_pushback.filter(|_| flags.max_pushback.is_none()) {
        let is_longer = |draft: &Draft| {
            let settings = flags.clone().over(draft.clone()).settings();
            settings.is_ok_and(|settings| settings.max_pushback.is_none_or(|wait| wait > most))
        };
        if is_longer(&draft) {
            draft.max_pushback = None;
            if is_longer(&draft) {
                // It is a profile's.
                draft.max_pushback = Some(Ceiling::At(most));
            }
            left_out.push(note(file, "max_pushback", ("longer", most)));
        }
    }
    if let Some(Attempt { most, is_proof }) = attempt.filter(|_| flags.attempt_timeout.is_none()) {
        let differs = match draft.attempt_timeout.map(Ceiling::into_option) {
            Some(said) if said.is_none_or(|time| time > most) => Some("longer"),
            Some(Some(time)) if is_proof && time < most => Some("shorter"),
            _ => None,
        };
        if let Some(word) = differs {
            draft.attempt_timeout = None;
            left_out.push(note(file, "attempt_timeout", (word, most)));
        }
    }
    (draft, left_out)
}

fn note(file: &PolicyFile, key: &str, (word, own): (&str, Duration)) -> String {
    let shown = file.shown.as_deref().unwrap_or_default();
    let (file, flag) = (typed(file.origin.as_deref().unwrap_or(shown)), key.replace('_', "-"));
    format!(
        "the {key} of {}, found in this folder, is left out, since it is {word} than {}: --policy {file} or --{flag} uses one",
        escape(shown),
        Human(own)
    )
}
