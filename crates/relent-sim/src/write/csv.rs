//! Outcomes as CSV: a row a policy, figures as columns (RFC 4180).

use crate::{
    outcome::{Outcome, advice::Storm},
    scenario::Figure,
    write::object::{is_hostile, is_line_break},
};
use std::time::Duration;

impl Outcome {
    /// A header and a row a policy, and one for each of its populations: those name the policy whose clients they are among
    /// in the last field, `population_of`, which is empty where a row is of all clients. A figure without meaning is an
    /// empty field.
    pub fn to_csv(&self) -> String {
        let mut header: Vec<String> =
            ["scenario", "policy", "engine", "clients", "seeds"].map(ToOwned::to_owned).to_vec();
        for figure in Figure::ALL {
            header.extend([figure.name().to_owned(), format!("{}_sd", figure.name())]);
        }
        header.extend(
            ["recovered", "recovered_sd", "recovered_low", "recovered_high", "gave_up_by_reason", "stopped"]
                .map(ToOwned::to_owned),
        );
        header.extend(["safe_load", "fatal_outage_s", "survived_outage_s", "population_of"].map(ToOwned::to_owned));
        let mut lines = vec![header.join(",")];
        let records = self.records.iter().enumerate().flat_map(|(place, all)| {
            let own = all.populations.iter().map(move |own| (usize::MAX, own, all.policy.as_str()));
            std::iter::once((place, all, "")).chain(own)
        });
        for (place, record, population_of) in records {
            let mut row = vec![
                field(&self.scenario),
                field(&record.policy),
                record.engine.to_string(),
                record.clients.to_string(),
                record.seeds.to_string(),
            ];
            for figure in Figure::ALL {
                row.extend([number(record.get(figure)), number(record.sd(figure))]);
            }
            let share = record.recovered;
            row.push(number(share.map(|share| share.share())));
            row.push(number(share.and_then(|share| share.sd())));
            row.push(number(share.map(|share| share.wilson().0)));
            row.push(number(share.map(|share| share.wilson().1)));
            let reasons = record.gave_up.iter().map(|(reason, count)| {
                format!("{reason}: {}", *count as f64 / (record.clients as f64 * f64::from(record.seeds)).max(1.0))
            });
            row.push(field(&reasons.collect::<Vec<_>>().join("; ")));
            row.push(field(record.stopped.as_deref().unwrap_or("")));
            row.extend(self.safety(place));
            row.push(field(population_of));
            lines.push(row.join(","));
        }
        lines.join("\r\n") + "\r\n"
    }

    /// The safe load, the shortest fatal and the longest survived outage.
    fn safety(&self, place: usize) -> [String; 3] {
        let safety = self.advice.as_ref().and_then(|advice| advice.policies.get(place));
        let safe = safety.and_then(|safety| match safety.storm {
            Some(Storm::Above(safe)) => Some(safe.share),
            _ => None,
        });
        let outage = safety.and_then(|safety| safety.fatal_outage).unwrap_or_default();
        let seconds = |duration: Option<Duration>| duration.map(|duration| duration.as_secs_f64());
        [safe, seconds(outage.fatal), seconds(outage.survived)].map(number)
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// What a spreadsheet takes for the begin of a formula, full-width signs included.
const FORMULAS: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// What ends a field in some language or other, or by choice, whatever quotes are around it.
const ENDS: [char; 4] = [';', '\t', '|', '"'];

/// A text as a field. What a spreadsheet would take for a formula gets an apostrophe in front, which shows it as it is, behind what may
/// end a field, too; what moves a cursor, begins a line or turns the reading order around is written out. One with a semicolon or a tab is quoted.
fn field(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // What is skipped before a formula may stand there, too.
    let mut is_begin = !text.starts_with('\t');
    if !is_begin {
        out.push('\'');
    }
    for c in text.chars() {
        if is_begin && FORMULAS.contains(&c) {
            out.push('\'');
        }
        is_begin = ENDS.contains(&c) || (is_begin && c == ' ');
        // What a terminal would obey that shows the file.
        match c {
            '\n' | '\r' => out.extend(c.escape_default()),
            '\t' => out.push(c),
            _ if is_hostile(c) || is_line_break(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    match out.contains(',') || out.contains(ENDS) {
        true => format!("\"{}\"", out.replace('"', "\"\"")),
        false => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        assert_eq!(field("a"), "a");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        let formulas = ["=1+1", "+1", "-1", "@a", "\t=1", "=a,b", " =1"].map(field);
        assert_eq!(field("a\u{1b}[2J\u{9b}\u{202e}"), r"a\u{1b}[2J\u{9b}\u{202e}");
        assert_eq!(formulas, ["'=1+1", "'+1", "'-1", "'@a", "\"'\t'=1\"", "\"'=a,b\"", " '=1"]);
        let wide = ["\u{ff1d}1", "\u{ff0b}1", "\u{ff0d}1", "\u{ff20}a"].map(field);
        assert_eq!(wide, ["'\u{ff1d}1", "'\u{ff0b}1", "'\u{ff0d}1", "'\u{ff20}a"]);
        assert_eq!(field("a\r\nerror: b\u{2028}c"), r"a\r\nerror: b\u{2028}c");
        // A cell of its own, where these end one.
        for end in [";", "\t", "|", "; ", ";;"] {
            assert_eq!(field(&format!("a{end}@SUM(1)")), format!("\"a{end}'@SUM(1)\""));
        }
        assert_eq!(field("a\"=1"), "\"a\"\"'=1\"");
        assert_eq!(field("a - b = c; d"), "\"a - b = c; d\"");
    }
}
