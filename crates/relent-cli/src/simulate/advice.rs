//! What to do, at the end of the output: who recovers, how safe that is, and a policy to paste.

use super::{View, curves};
use crate::{
    breaks::{wrap, wrap_named},
    escape::escape,
    report::advice,
};
use relent_sim::{Outcome, Record, Safety, Scenario};
use std::fmt::Write;

/// The verdict on each policy where there is trouble, and what is recommended for a herd.
pub(super) fn draw(scenario: &Scenario, outcome: &Outcome, view: View) -> String {
    let (mut out, width) = (String::new(), view.columns.unwrap_or(usize::MAX));
    let none = Safety::default();
    let safeties = outcome.records.iter().enumerate().map(|(place, record)| {
        (record, outcome.advice.as_ref().and_then(|advice| advice.policies.get(place)).unwrap_or(&none))
    });
    let safeties: Vec<(&Record, &Safety)> = safeties.collect();
    let sentences: Vec<Vec<String>> =
        safeties.iter().map(|(record, safety)| advice::safety(scenario, record, safety)).collect();
    // What is true of all is said once.
    let common = |sentence: &String| sentences.len() > 1 && sentences.iter().all(|others| others.contains(sentence));
    for ((record, safety), own) in safeties.iter().zip(&sentences) {
        let Some(verdict) = advice::verdict(scenario, record, Some(safety)) else { continue };
        let runs = advice::confidence(record).map_or_else(String::new, |runs| format!(" ({runs})"));
        out.push_str(&wrap_named(&format!("{}: {verdict}{runs}", escape(&record.policy)), width));
        for sentence in own.iter().filter(|sentence| !common(sentence)) {
            out.push_str(&indented(sentence, width));
        }
    }
    for sentence in sentences.first().into_iter().flatten().filter(|sentence| common(sentence)) {
        out.push_str(&wrap_named(&escape(&format!("all: {sentence}")), width));
    }
    for (nth, sentence) in advice::harms(outcome).iter().enumerate() {
        if nth == 0 {
            let gap = if out.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}What populations do to each other, each changed by itself");
        }
        out.push_str(&indented(sentence, width));
    }
    let remedies = outcome.advice.iter().flat_map(|advice| &advice.remedies);
    for (nth, remedied) in remedies.enumerate() {
        let Some(before) = outcome.records.iter().find(|record| record.policy == remedied.policy) else { continue };
        if nth == 0 {
            let gap = if out.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}What helps, each change tried by itself");
        }
        let words = format!("{}: {}", remedied.policy, advice::remedy(before, remedied));
        out.push_str(&indented(&words, width));
    }
    out.push_str(&curves::before_and_after(outcome, view));
    if let Some(recommended) = outcome.advice.as_ref().and_then(|advice| advice.recommended.as_ref()) {
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}What to do");
        for sentence in advice::recommendation(scenario, recommended) {
            out.push_str(&indented(&sentence, width));
        }
        if recommended.as_good.is_none() {
            let _ = write!(out, "\n{}\n", indented(&recommended.flags(), width));
            for line in recommended.toml().lines() {
                let _ = writeln!(out, "  {line}");
            }
        }
    }
    if let Some(paced) = outcome.advice.as_ref().and_then(|advice| advice.paced.as_ref()) {
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}What the server can do");
        for sentence in advice::paced(outcome, paced) {
            out.push_str(&indented(&sentence, width));
        }
        out.push('\n');
        for line in paced.toml().lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

/// A sentence set in by two, and so are the lines that it breaks into.
fn indented(sentence: &str, width: usize) -> String {
    // Names of policies are in it.
    wrap(&escape(sentence), width.saturating_sub(2)).lines().map(|line| format!("  {line}\n")).collect()
}
