//! What was said in an attempt, by its command and by all that this has started, as lines of `RELENT_VERDICT`: what of it counts.

use super::exit_set::ExitSet;
use crate::outer::{ENDED, NOT_BEGUN, TAKEN_BACK, WAITED, is_by};
use relent::{Verdict, duration::parse_duration};
use std::{collections::HashMap, rc::Rc, time::Duration};

/// What was said in an attempt.
#[derive(Debug)]
pub(super) struct Said {
    /// By whom nothing is to be begun anew, how often.
    at_it: HashMap<String, u32>,
    /// Who has said here alone what became of that, and left it to this run to say so to those around it.
    have_ended: Vec<String>,
    /// What the command itself has said of its end, whatever that is.
    own: Option<Rc<str>>,
    /// What was said last of every code.
    every: Option<Rc<str>>,
    /// Who waits for as long as a far side has asked, if nothing has ended that, how long, and after how many words that count more.
    waits: HashMap<String, (Duration, u32)>,
    /// How many of those there were.
    words: u32,
    /// What was said last of each code, after that.
    of: [Option<Rc<str>>; 256],
}

impl Default for Said {
    fn default() -> Said {
        Said {
            at_it: HashMap::new(),
            have_ended: Vec::new(),
            own: None,
            every: None,
            waits: HashMap::new(),
            words: 0,
            of: [const { None }; 256],
        }
    }
}

/// No word of a verdict is so long.
const A_WORD: usize = 4096;

impl Said {
    /// Nobody knows that nobody is at something.
    pub(super) fn of_what_cannot_be_read() -> Said {
        Said { at_it: [("?".to_owned(), 1)].into(), ..Said::default() }
    }

    /// What relents have said of what they are at, and wait for, alone.
    pub(super) fn of_relents(self) -> Said {
        let Said { at_it, have_ended, waits, words, .. } = self;
        Said { at_it, have_ended, waits, words, ..Said::default() }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.at_it.is_empty()
            && self.have_ended.is_empty()
            && self.own.is_none()
            && self.every.is_none()
            && self.waits.is_empty()
            && self.of.iter().all(Option::is_none)
    }

    pub(super) fn hear(&mut self, line: &str, command: &str) {
        let line = if line.len() > A_WORD { "..." } else { line };
        let Some(About { codes, by, word }) = about(line) else {
            let is_cut_off = self.every.is_some() && is_cut_off(line);
            if parse(line).is_some() {
                // Who speaks of every end knows all of it.
                let Said { waits, have_ended, words, .. } = std::mem::take(self);
                *self = Said { every: Some(line.into()), waits, have_ended, words: words + 1, ..Said::default() };
            } else if !line.is_empty() && !is_cut_off {
                // What is no verdict, as the beginning of a line, takes nothing back.
                self.every = Some(line.into());
            }
            return;
        };
        match by {
            Some(by) if !codes.is_one() && word == ENDED => {
                self.at_it.remove(by);
                self.waits.remove(by);
                self.have_ended.push(by.to_owned());
            }
            Some(by) if !codes.is_one() && (word == TAKEN_BACK || word == NOT_BEGUN) => {
                if is_by(by, command) && word == NOT_BEGUN {
                    self.own = None;
                }
                let is_over = self.at_it.get_mut(by).is_some_and(|times| {
                    *times -= 1;
                    *times == 0
                });
                if is_over {
                    self.at_it.remove(by);
                }
            }
            Some(by) if !codes.is_one() && word == WAITED => drop(self.waits.remove(by)),
            // There was no room for the rest of it.
            Some(_) if parse(word).is_none() => {}
            Some(by) => {
                let is_of_all = !codes.is_one();
                if let (true, Some(Verdict::After(wait))) = (is_of_all, parse(word)) {
                    self.waits.insert(by.to_owned(), (wait, self.words));
                    return;
                }
                if is_of_all {
                    *self.at_it.entry(by.to_owned()).or_default() += 1;
                }
                // What it takes back of that is for those who go on: nothing does after the command, but that it may be cut off.
                if is_by(by, command) {
                    self.own = Some(word.into());
                } else if !is_of_all {
                    self.say(&codes, word);
                }
            }
            None => {
                // Who goes on says what is to be forgotten.
                if !codes.is_one() && word.is_empty() {
                    self.words += 1;
                }
                self.say(&codes, word);
            }
        }
    }

    fn say(&mut self, codes: &ExitSet, word: &str) {
        let word = Some(word).filter(|word| !word.is_empty()).map(Rc::from);
        let all = (0..=255).filter(|code| codes.contains(*code));
        all.for_each(|code| self.of[usize::from(code)].clone_from(&word));
    }

    /// Whether somebody was at something that may not be done twice, and has not said what became of it.
    pub(super) fn is_at_it(&self) -> bool {
        !self.at_it.is_empty()
    }

    /// Who has left it to this run to say to those around it that nobody is at it any more.
    pub(super) fn take_ended(&mut self) -> Vec<String> {
        std::mem::take(&mut self.have_ended)
    }

    /// Who was in a wait. Who was left by a success waits on, but for those of whom more was said since.
    pub(super) fn has_waited(&self, was_left: bool) -> Vec<String> {
        let waits = self.waits.iter().filter(|(_, (_, words))| !was_left || *words < self.words);
        waits.map(|(by, _)| by.clone()).collect()
    }

    /// A verdict on a failure, with the waits in it that somebody was ended in: what is to be begun anew is not begun sooner.
    pub(super) fn no_sooner(&self, verdict: Verdict) -> Verdict {
        let waits = self.waits.values().filter(|(_, words)| *words == self.words);
        match (verdict, waits.map(|(wait, _)| *wait).max()) {
            (Verdict::Transient, Some(wait)) => Verdict::After(wait),
            _ => verdict,
        }
    }

    /// What of it is about this exit code: nothing, a verdict, or something that is none.
    pub(super) fn about(&self, exit: u8) -> Option<Result<Verdict, String>> {
        if exit != 0 && self.is_at_it() {
            return Some(Ok(Verdict::Permanent));
        }
        let of_it = self.of[usize::from(exit)].as_ref();
        let word = self.own.as_ref().filter(|_| exit != 0).or(of_it).or(self.every.as_ref())?;
        Some(parse(word).ok_or_else(|| word.to_string()))
    }
}

/// What a text of it says of an exit code, whoever the command is.
pub(super) fn last(text: &str, exit: u8) -> Option<Result<Verdict, String>> {
    let mut said = Said::default();
    text.lines().for_each(|line| said.hear(line.trim(), "1.1"));
    said.about(exit)
}

/// What a line of some exit codes says.
struct About<'a> {
    codes: ExitSet,
    /// Who says it, if that is a relent.
    by: Option<&'a str>,
    word: &'a str,
}

/// `exit 22: permanent`, or as relent says it; nothing of a line that is about no code.
fn about(line: &str) -> Option<About<'_>> {
    let (codes, word) = line.strip_prefix("exit ")?.split_once(':')?;
    let (codes, by) = codes.split_once(" by ").map_or((codes, None), |(codes, by)| (codes, Some(by.trim())));
    Some(About { codes: codes.parse().ok()?, by, word: word.trim() })
}

/// Whether it begins as a line of some exit codes does, and says nothing: there was no room for the rest.
fn is_cut_off(line: &str) -> bool {
    line.starts_with("exit ") || "exit ".starts_with(line)
}

fn parse(word: &str) -> Option<Verdict> {
    match word {
        "transient" => Some(Verdict::Transient),
        "permanent" => Some(Verdict::Permanent),
        "overloaded" => Some(Verdict::Overloaded),
        _ => {
            let after = word.strip_prefix("after")?.strip_prefix([' ', '\t', '=', ':'])?;
            parse_duration(after).ok().map(Verdict::After)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_verdict() {
        assert_eq!(parse("transient"), Some(Verdict::Transient));
        assert_eq!(parse("permanent"), Some(Verdict::Permanent));
        assert_eq!(parse("overloaded"), Some(Verdict::Overloaded));
        assert_eq!(parse("after 30s"), Some(Verdict::After(Duration::from_secs(30))));
        assert_eq!(parse("after 30"), None);
        assert_eq!(parse("afterwards"), None);
        assert_eq!(parse("perhaps"), None);
    }

    #[test]
    fn what_is_about_another_end_does_not_count() {
        for (text, verdict) in [
            ("exit 22: permanent\n", Some(Ok(Verdict::Permanent))),
            ("exit 7: permanent\n", None),
            ("transient\nexit 7: permanent\n", Some(Ok(Verdict::Transient))),
            ("exit strategy: none", Some(Err("exit strategy: none".to_owned()))),
            ("exit 3,20-30: permanent\nexit 7,23-24: overloaded\n", Some(Ok(Verdict::Permanent))),
            ("exit 22: permanent\nexit 20-30: overloaded\n", Some(Ok(Verdict::Overloaded))),
            ("exit 20-30: permanent\nexit 22:\n", None),
            ("transient\nexit 20-30: permanent\nexit 22:\n", Some(Ok(Verdict::Transient))),
            ("exit 22: permanent\ntransient\n", Some(Ok(Verdict::Transient))),
            ("exit 22 by 1.7: overloaded\n", Some(Ok(Verdict::Overloaded))),
            ("exit 22 by 1.7: overloaded\nexit 23 by 1.8: permanent\n", Some(Ok(Verdict::Overloaded))),
            // What there was no room for.
            ("exit 22 by 1.7: overloaded\nexit 22 by 1.8: perm\n", Some(Ok(Verdict::Overloaded))),
            ("exit 22 by 1.7: overloaded\nexit 22 by 1.8:\n", Some(Ok(Verdict::Overloaded))),
            ("exit 22 by 1.7: overloaded\nexit 1-255 by 1.8\n", Some(Ok(Verdict::Overloaded))),
            ("exit 22 by 1.7: overloaded\nperm\n", Some(Ok(Verdict::Overloaded))),
            ("transient\nexit 1-255 by 1.8\n", Some(Ok(Verdict::Transient))),
            ("transient\nex\n", Some(Ok(Verdict::Transient))),
            ("transient\npermanant\n", Some(Err("permanant".to_owned()))),
            ("exit 22 by 1.1: overloaded\nex\n", Some(Ok(Verdict::Overloaded))),
        ] {
            assert_eq!(last(text, 22), verdict, "{text:?}");
        }
    }

    /// Until the same one takes it back: whoever else speaks, and whatever is said of one code.
    #[test]
    fn what_somebody_is_at_is_not_begun_anew() {
        let (seven, eight) = ("exit 1-255 by 1.7: permanent\n", "exit 1-255 by 1.8: permanent\n");
        let (seven_is_done, eight_is_done) = ("exit 1-255 by 1.7: taken back\n", "exit 1-255 by 1.8: taken back\n");
        let other = "exit 22 by 1.9: overloaded\n";
        let permanent = Some(Verdict::Permanent);
        for (text, verdict) in [
            ([seven, "", "", ""], permanent),
            ([seven, seven_is_done, "", ""], None),
            ([seven, eight, seven_is_done, ""], permanent),
            ([seven, eight, seven_is_done, eight_is_done], None),
            ([seven, eight, eight_is_done, seven_is_done], None),
            ([seven, other, "", ""], permanent),
            ([seven, other, seven_is_done, ""], Some(Verdict::Overloaded)),
            // Of another namespace.
            ([seven, "exit 1-255 by 2.7: taken back\n", "", ""], permanent),
            // One number again.
            ([seven, seven, seven_is_done, ""], permanent),
            ([seven_is_done, seven, "", ""], permanent),
            ([seven, "exit 1-255:\n", "", ""], permanent),
            // Who speaks of every end knows all of it.
            ([seven, "transient\n", "", ""], Some(Verdict::Transient)),
            ([seven, "transient\n", other, ""], Some(Verdict::Overloaded)),
            // What there was no room for.
            ([seven, "exit 1-255 by 1.\n", "", ""], permanent),
            ([seven, "exit 1-2\n", "perhaps\n", ""], permanent),
            ([seven, "exit 1-255 by 1.7:\n", "exit 1-255 by 1.7: take\n", ""], permanent),
            (["exit 1-255 by 1.7: perma\n", "exit 1-255 by 1.8: after 1.\n", "", ""], None),
            (["exit 1-255 by 1.7: wai\n", "exit 1-255 by 1.8: not be\n", "exit 1-255 by 1.9:\n", ""], None),
            (["transient\n", seven, "", ""], permanent),
        ] {
            assert_eq!(last(&text.concat(), 22), verdict.map(Ok), "{text:?}");
            let of_a_success = last(&text.concat(), 0).is_some_and(|said| said.is_ok());
            assert_eq!(of_a_success, text.contains(&"transient\n"), "{text:?}");
        }
    }

    #[test]
    fn who_leaves_it_to_this_run_to_say_so_is_named_and_not_at_it() {
        let (at_it, ended) = ("exit 1-255 by 1.7: permanent\n", "exit 1-255 by 1.7: ended\n");
        for (text, names, is_at_it) in [
            (at_it.to_owned(), 0, true),
            ([at_it, ended].concat(), 1, false),
            ([at_it, ended, "transient\n"].concat(), 1, false),
            // All that one has told: that nothing is to be begun anew for two reasons, and to wait.
            ([at_it, at_it, "exit 1-255 by 1.7: after 9s\n", ended].concat(), 1, false),
            ([at_it, "exit 1-255 by 1.8: permanent\n", ended].concat(), 1, true),
            ([at_it, "exit 1-255 by 1.7: taken back\n"].concat(), 0, false),
            // Of another process that has the number, and the namespace, that one had before.
            ([&at_it.replace("1.7", "1.7-a"), at_it, ended].concat(), 1, true),
            ([at_it, "exit 1-255 by 1.7: end\n"].concat(), 0, true),
            ([at_it, "exit 1-255: ended\n", "exit 7 by 1.7: ended\n"].concat(), 0, true),
        ] {
            let mut said = Said::default();
            text.lines().for_each(|line| said.hear(line, "1.1"));
            assert_eq!(said.is_at_it(), is_at_it, "{text:?}");
            assert_eq!(said.has_waited(false), Vec::<String>::new(), "{text:?}");
            assert_eq!(said.take_ended(), vec!["1.7"; names], "{text:?}");
            assert!(said.take_ended().is_empty());
        }
    }

    /// Its end is the attempt's, so that nobody goes on after it: it may only be cut off.
    #[test]
    fn what_the_command_says_is_about_its_end_whatever_that_is() {
        let (is_at_it, is_done) = ("exit 1-255 by 1.1: permanent\n", "exit 1-255 by 1.1: taken back\n");
        for (text, verdict) in [
            ([is_at_it, "", ""], Some(Verdict::Permanent)),
            ([is_at_it, is_done, ""], Some(Verdict::Permanent)),
            ([is_at_it, "exit 1-255 by 1.1: not begun\n", ""], None),
            (["exit 5 by 1.1-a: after 2s\n", "", ""], Some(Verdict::After(Duration::from_secs(2)))),
            (["exit 1-255 by 1.1-a: permanent\n", "exit 1-255 by 1.1-a: not begun\n", ""], None),
            (["exit 5 by 1.12: after 2s\n", "", ""], None),
            (["exit 1-255 by 1.7: permanent\n", "exit 1-255 by 1.7: not begun\n", ""], None),
            ([is_at_it, "exit 4 by 1.1: overloaded\n", is_done], Some(Verdict::Overloaded)),
            ([is_at_it, "exit 4 by 1.1: overloaded\n", ""], Some(Verdict::Permanent)),
            (["exit 5 by 1.1: after 2s\n", "", ""], Some(Verdict::After(Duration::from_secs(2)))),
            (
                ["exit 5 by 1.1: after 2s\n", "exit 124 by 1.9: permanent\n", ""],
                Some(Verdict::After(Duration::from_secs(2))),
            ),
            // Somebody else is at it beside the command.
            (["exit 1-255 by 1.7: permanent\n", "exit 5 by 1.1: after 2s\n", ""], Some(Verdict::Permanent)),
            ([is_at_it, "transient\n", ""], Some(Verdict::Transient)),
        ] {
            assert_eq!(last(&text.concat(), 124), verdict.map(Ok), "{text:?}");
            assert_eq!(
                last(&text.concat(), 0),
                text.contains(&"transient\n").then_some(Ok(Verdict::Transient)),
                "{text:?}"
            );
        }
    }

    /// With each of the others looked at for each of these, nobody would wait for the end.
    #[test]
    fn however_many_wait_and_whatever_counts_more_is_looked_at_once() {
        let mut said = Said::default();
        (0..100_000).for_each(|n| said.hear(&format!("exit 1-255 by 1.{n}: after 2s"), "1.1"));
        (0..300_000).for_each(|_| said.hear("transient", "1.1"));
        assert_eq!(said.no_sooner(Verdict::Transient), Verdict::Transient);
        assert_eq!((said.has_waited(true).len(), said.has_waited(false).len()), (100_000, 100_000));
    }

    #[test]
    fn who_is_ended_while_it_waits_is_not_begun_anew_sooner() {
        let secs = |secs| Verdict::After(Duration::from_secs(secs));
        let (two, one) = ("exit 1-255 by 1.7: after 2s\n", "exit 1-255 by 1.1: after 1s\n");
        for (text, verdict) in [
            ([two, "", ""], secs(2)),
            ([two, one, ""], secs(2)),
            ([two, "exit 1-255 by 1.7: after 1s\n", ""], secs(1)),
            ([two, one, "exit 1-255 by 1.7: waited\n"], secs(1)),
            ([two, "exit 1-255 by 1.7: waited\n", ""], Verdict::Transient),
            ([two, "exit 1-255 by 1.7: taken back\n", ""], secs(2)),
            ([two, "exit 1-255:\n", ""], Verdict::Transient),
            ([two, "transient\n", ""], Verdict::Transient),
            ([two, "exit 4 by 1.8: overloaded\n", ""], secs(2)),
        ] {
            let mut said = Said::default();
            text.concat().lines().for_each(|line| said.hear(line, "1.1"));
            assert_eq!(said.no_sooner(Verdict::Transient), verdict, "{text:?}");
            assert_eq!(said.no_sooner(Verdict::Permanent), Verdict::Permanent);
            assert_eq!(said.no_sooner(secs(9)), secs(9));
        }
        // What is known of an end is not forgotten for that, nor is what somebody is at.
        let (known, at_it) = ("exit 124 by 1.8: permanent\n", "exit 1-255 by 1.8: permanent\n");
        for before in [known, at_it] {
            assert_eq!(last(&[before, two].concat(), 124), Some(Ok(Verdict::Permanent)));
            assert_eq!(last(&[two, before, "exit 1-255 by 1.7: waited\n"].concat(), 124), Some(Ok(Verdict::Permanent)));
        }
        // Another one of the same number, in the next namespace of that number.
        assert_eq!(last("exit 1-255 by 1.7: permanent\nexit 1-255 by 1.7: waited\n", 7), Some(Ok(Verdict::Permanent)));
        assert_eq!(Said::of_what_cannot_be_read().about(1), Some(Ok(Verdict::Permanent)));
        assert_eq!(last(two, 124), None, "the rules say what an end means");
    }
}
