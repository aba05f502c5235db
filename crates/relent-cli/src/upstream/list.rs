//! `relent upstream list` and `watch`.

use super::{
    args::{ListArgs, WatchArgs},
    of_the_file,
};
use crate::{
    breaks::{answer, broken, without_messages},
    escape::escape,
    json::{Object, array},
    output, redact, screen,
    store::{
        counted,
        open::{IfMissing, with},
        place,
    },
    talk::{self, Fault, write_out},
};
use relent_store::{Key, Kind, Listed, Shared};
use std::{
    fmt::Write,
    io::{self, IsTerminal},
    process::ExitCode,
    thread,
};

/// The most upstreams that are listed.
const MOST: u32 = 1000;

/// The columns of the figures beside a name, and what is shown of a name in any case.
const FIGURES: usize = 87;
const LEAST_NAME: usize = 12;

/// Upstreams by name, and the store that knows them.
struct Seen {
    url: String,
    upstreams: Vec<(Key, Shared)>,
}

fn ask(args: &ListArgs) -> Result<Seen, Fault> {
    let to = of_the_file(&args.to, args.policy.as_deref(), None)?;
    with(&to, IfMissing::Say, async |url, store| {
        let listed = store.list(Kind::Upstreams, MOST).await?;
        let upstreams = listed.into_iter().filter_map(|listed| match listed {
            Listed::Upstream { name, shared } => Some((name, shared)),
            _ => None,
        });
        Ok(Seen { url, upstreams: upstreams.collect() })
    })
}

pub(super) fn list(args: &ListArgs) -> Result<ExitCode, Fault> {
    let seen = ask(args)?;
    let text = match args.to.json {
        true => seen.json() + "\n",
        false if seen.upstreams.is_empty() => {
            format!("no process has told {} of an upstream\n", escape(&place::shown(&seen.url)))
        }
        false => seen.table(),
    };
    write_out(answer(&text, args.to.json).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Lists again and again. A store that goes away meanwhile is told of, and asked again.
pub(super) fn watch(args: &WatchArgs) -> Result<ExitCode, Fault> {
    let json = args.list.to.json;
    let is_live = io::stdout().is_terminal() && !screen::is_dumb() && !json;
    let mut left = args.times.unwrap_or(u64::MAX);
    let mut is_first = true;
    while left > 0 {
        left -= 1;
        let text = match ask(&args.list) {
            Ok(seen) if json => seen.json() + "\n",
            Ok(seen) if is_live => format!("\x1b[H\x1b[J{}", without_messages(&seen.table())),
            Ok(seen) if io::stdout().is_terminal() => broken(&seen.lines()).into_owned(),
            Ok(seen) => seen.lines(),
            // What never worked is a mistake of whoever asked.
            Err(fault) if is_first => return Err(fault),
            Err(fault) => {
                let _ = fault.tell_as(json);
                String::new()
            }
        };
        is_first = false;
        if is_closed(&text)? {
            break;
        }
        if left > 0 {
            thread::sleep(args.every);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes it; whether nobody reads it any more.
fn is_closed(text: &str) -> Result<bool, Fault> {
    match output::write(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(error) => Err(talk::unwritten(&error)),
        // There may have been nothing to write.
        Ok(()) => Ok(output::nobody_reads()),
    }
}

/// A name where words follow it: one that is none is quoted, so that a part of it is no word of ours.
fn as_a_word(name: &Key) -> String {
    let text = String::from_utf8_lossy(name.as_bytes());
    let told = match text.contains(|c: char| c.is_whitespace() || "=\"\\".contains(c)) {
        true => format!("{:?}", redact::text(&text)),
        false => counted::told(name, name.as_bytes()),
    };
    escape(&told).into_owned()
}

impl Seen {
    fn table(&self) -> String {
        // No name is broken by a terminal that has room for the rest.
        let room = screen::columns().map_or(usize::MAX, |columns| columns.saturating_sub(FIGURES).max(LEAST_NAME));
        let told = |name: &Key| screen::short(&escape(&counted::told(name, name.as_bytes())), room);
        let names: Vec<String> = self.upstreams.iter().map(|(name, _)| told(name)).collect();
        let width = names.iter().map(|name| screen::width(name)).max().unwrap_or(0).max("upstream".len());
        let mut out = format!(
            "{:<width$}  {:>8}  {:>8}  {:>8}  {:>8}  {:>6}  {:>9}  {:<13}  by hand\n",
            "upstream", "calls", "retries", "failed", "well", "in row", "processes", "permits"
        );
        for (name, (_, shared)) in names.iter().zip(&self.upstreams) {
            let beside = " ".repeat(width.saturating_sub(screen::width(name)));
            let _ = writeln!(
                out,
                "{name}{beside}  {:>8}  {:>8}  {:>8}  {:>8}  {:>6}  {:>9}  {:<13}  {}",
                shared.calls,
                shared.retries,
                shared.failures,
                shared.successes,
                shared.run,
                shared.processes,
                counted::permits(shared),
                counted::hand(shared).unwrap_or("-")
            );
        }
        out.push_str("over the last ten seconds, of all processes\n");
        out
    }

    fn lines(&self) -> String {
        let mut out = String::new();
        for (name, shared) in &self.upstreams {
            let _ = writeln!(
                out,
                "{} {} calls={} retries={} failed={} well={} run={} processes={} permits={} rate={} hand={}",
                shared.now,
                as_a_word(name),
                shared.calls,
                shared.retries,
                shared.failures,
                shared.successes,
                shared.run,
                shared.processes,
                shared.permits,
                shared.rate.map_or_else(|| "-".to_owned(), |rate| counted::rate(rate).replace(' ', "-")),
                counted::hand(shared).unwrap_or("-").replace(' ', "-")
            );
        }
        out
    }

    fn json(&self) -> String {
        let one = |(name, shared): &(Key, Shared)| {
            let mut object = Object::new();
            counted::members(&mut object, name, shared).text("now", &shared.now.to_string());
            object.finish()
        };
        let mut object = Object::new();
        object.text("store", &place::shown(&self.url)).raw("upstreams", &array(self.upstreams.iter().map(one)));
        object.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_name_is_a_word_of_the_line() {
        for (name, word) in [
            ("db", "db"),
            ("bank:eu/1", "bank:eu/1"),
            ("db calls=900", "\"db calls=900\""),
            ("a=1", "\"a=1\""),
            ("a\"b", "\"a\\\"b\""),
            ("a\\\" b=1", "\"a\\\\\\\" b=1\""),
            ("a\u{a0}b", "\"a\\u{a0}b\""),
        ] {
            assert_eq!(as_a_word(&Key::new(name).unwrap()), word);
        }
    }
}
