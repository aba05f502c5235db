//! systemd's restarts of a service: `Restart=`, `RestartSec=`, `RestartSteps=`, `RestartMaxDelaySec=`, `StartLimit*=`.
//!
//! Sources: systemd.service(5) and systemd.unit(5); `service_restart_usec_next` in src/core/service.c for the delays
//! (`RestartSec * (RestartMaxDelaySec / RestartSec)^(i / RestartSteps)` before restart `i + 1`, the greatest delay from
//! then on, whole microseconds, no jitter); `ratelimit_below` in src/basic/ratelimit.c for the start limit (windows
//! that open with a start and last `StartLimitIntervalSec`, each good for `StartLimitBurst` starts).
//!
//! The start limit counts starts in time, so how often a service is restarted depends on how long it runs. What is
//! explained is the worst case, a service that fails as soon as it has started.

use super::{Reading, Setting, Unreadable, list, policy};
use relent::{Curve, duration::Human};
use std::time::Duration;

/// Reads the text of a unit file, or what `systemctl cat` prints, `name` being its file; then those of its drop-ins, with their names,
/// in the order in which they hold.
///
/// # Errors
///
/// If a value makes no sense or there is no `[Service]` section.
pub fn systemd(name: &str, text: &str, drop_ins: &[(String, String)]) -> Result<Reading, Unreadable> {
    let unit = Unit::read(name, text, drop_ins)?;
    let delays = unit.delays();
    let restarts = unit.restart.value != "no";
    let most = if restarts { unit.most_starts(&delays) } else { Some(1) };
    let curve = if restarts { list(delays) } else { Curve::Immediate };
    let notes = unit.notes(restarts, most);
    Ok(Reading {
        name: name.to_string(),
        policy: policy(curve, most)?,
        settings: unit.settings(),
        notes,
        source: "systemd.service(5), systemd.unit(5); src/core/service.c, src/basic/ratelimit.c",
    })
}

/// A setting of the unit: its value and the line it is on, of the unit or of a drop-in.
struct Value<T> {
    value: T,
    from: Option<String>,
}

/// What a unit says about restarts. Times are in microseconds, as systemd keeps them; `u64::MAX` is infinity.
struct Unit {
    restart: Value<String>,
    sec: Value<u64>,
    steps: Value<u32>,
    most_delay: Value<u64>,
    interval: Value<u64>,
    burst: Value<u32>,
}

const SECOND: u64 = 1_000_000;
const INFINITY: u64 = u64::MAX;

/// More steps or starts than anybody waits for, and no more than a moment's work to lay out.
const MOST: u32 = 100_000;

impl Unit {
    fn read(name: &str, text: &str, drop_ins: &[(String, String)]) -> Result<Unit, Unreadable> {
        let mut unit = Unit {
            restart: Value { value: "no".to_string(), from: None },
            sec: Value { value: SECOND / 10, from: None },
            steps: Value { value: 0, from: None },
            most_delay: Value { value: INFINITY, from: None },
            interval: Value { value: 10 * SECOND, from: None },
            burst: Value { value: 5, from: None },
        };
        let mut is_service = unit
            .take(text, |line| format!("line {line}"))
            .map_err(|bad| Unreadable::new(format!("{name}, {}", bad.problem), bad.hint))?;
        for (drop_in, text) in drop_ins {
            is_service |= unit.take(text, |line| format!("{drop_in}, line {line}"))?;
        }
        match is_service {
            true => Ok(unit),
            false => Err(Unreadable::new(
                format!("{name} has no [Service] section"),
                "give the file of a service, or pipe `systemctl cat NAME` into --systemd -",
            )),
        }
    }

    /// Takes over what a file says; whether it has a `[Service]` section.
    fn take(&mut self, text: &str, from: impl Fn(usize) -> String) -> Result<bool, Unreadable> {
        let mut section = "";
        let mut is_service = false;
        for (line, assignment) in lines(text) {
            if let Some(header) = assignment.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = match header {
                    "Service" => "Service",
                    "Unit" => "Unit",
                    _ => "",
                };
                is_service |= section == "Service";
            } else if let Some((key, value)) = assignment.split_once('=') {
                let from = from(line);
                let said = self.set(section, key.trim(), value.trim(), &from);
                // Nobody may have named this file, so nothing of its lines is told.
                said.map_err(|bad| Unreadable::new(format!("{from}: what {key} says {}", bad.problem), bad.hint))?;
            }
        }
        Ok(is_service)
    }

    fn set(&mut self, section: &str, key: &str, value: &str, from: &str) -> Result<(), Unreadable> {
        let from = Some(from.to_owned());
        match (section, key) {
            ("Service", "Restart") => self.restart = Value { value: restart(value)?.to_string(), from },
            ("Service", "RestartSec") => self.sec = Value { value: time(value)?, from },
            ("Service", "RestartSteps") => self.steps = Value { value: count(value)?.min(MOST), from },
            ("Service", "RestartMaxDelaySec") => self.most_delay = Value { value: time(value)?, from },
            // Until systemd 230 the limits were settings of the service, and are still understood there.
            (_, "StartLimitIntervalSec" | "StartLimitInterval") => self.interval = Value { value: time(value)?, from },
            (_, "StartLimitBurst") => self.burst = Value { value: count(value)?, from },
            _ => {}
        }
        Ok(())
    }

    fn is_growing(&self) -> bool {
        self.steps.value > 0
            && self.sec.value > 0
            && self.most_delay.value != INFINITY
            && self.sec.value < self.most_delay.value
    }

    /// The delays before the restarts; the last one repeats.
    fn delays(&self) -> Vec<Duration> {
        if !self.is_growing() {
            return vec![Duration::from_micros(self.sec.value)];
        }
        let (first, last) = (self.sec.value as f64, self.most_delay.value as f64);
        let steps = self.steps.value;
        let grown = (0..steps).map(|i| {
            let exact = first * (last / first).powf(f64::from(i) / f64::from(steps));
            // The double's rounding must not take a microsecond off a delay that is whole in long double.
            Duration::from_micros((exact * (1.0 + f64::EPSILON * 4.0)) as u64)
        });
        grown.chain([Duration::from_micros(self.most_delay.value)]).collect()
    }

    /// The starts until one is refused, if the service fails at once each time; `None` if none ever is.
    fn most_starts(&self, delays: &[Duration]) -> Option<u32> {
        let (interval, burst) = (self.interval.value, self.burst.value);
        if interval == 0 || burst == 0 {
            return None;
        }
        let watched = delays.len() as u64 + 2 * (u64::from(burst) + 2);
        let (mut now, mut opened, mut in_window) = (0u64, 0u64, 0u32);
        for start in 0..watched.min(u64::from(MOST)) {
            if start == 0 || now - opened > interval {
                (opened, in_window) = (now, 0);
            }
            in_window += 1;
            if in_window > burst {
                return Some(start as u32);
            }
            let delay = delays[(start as usize).min(delays.len() - 1)];
            now = now.saturating_add(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX));
        }
        None
    }

    fn settings(&self) -> Vec<Setting> {
        vec![
            setting("Restart", &self.restart.value, self.restart.from.as_deref()),
            setting("RestartSec", span(self.sec.value), self.sec.from.as_deref()),
            setting("RestartSteps", self.steps.value, self.steps.from.as_deref()),
            setting("RestartMaxDelaySec", span(self.most_delay.value), self.most_delay.from.as_deref()),
            setting("StartLimitIntervalSec", span(self.interval.value), self.interval.from.as_deref()),
            setting("StartLimitBurst", self.burst.value, self.burst.from.as_deref()),
        ]
    }

    fn notes(&self, restarts: bool, most: Option<u32>) -> Vec<String> {
        let mut notes = Vec::new();
        if !restarts {
            notes.push("Restart=no: systemd never restarts this service".to_string());
            return notes;
        }
        if self.steps.value > 0 && !self.is_growing() {
            notes.push("RestartSteps has no effect without a RestartMaxDelaySec longer than RestartSec".to_string());
        }
        if self.steps.value == 0 && self.most_delay.value != INFINITY {
            notes.push("RestartMaxDelaySec has no effect without RestartSteps".to_string());
        }
        if self.is_growing() {
            notes.push(
                "only a stop or a manual start brings the delay back to RestartSec, not a healthy run".to_string(),
            );
        }
        let (burst, interval) = (self.burst.value, span(self.interval.value));
        match most {
            Some(most) => notes.push(format!(
                "a service that fails at once is started {most} times, then the start limit ({burst} in {interval}) \
                 refuses it until `systemctl reset-failed`"
            )),
            None if self.interval.value == 0 || burst == 0 => notes.push("the start limit is off".to_string()),
            None => notes.push(format!("the start limit ({burst} in {interval}) is never reached at these delays")),
        }
        notes
    }
}

fn setting(key: &'static str, value: impl std::fmt::Display, from: Option<&str>) -> Setting {
    match from {
        Some(from) => Setting::new(key, value, from),
        None => Setting::default(key, value),
    }
}

fn span(micros: u64) -> String {
    match micros {
        INFINITY => "infinity".to_string(),
        micros => Human(Duration::from_micros(micros)).to_string(),
    }
}

/// The assignments and section headers of a unit file with the lines they begin on; a backslash continues a line.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (part, more) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match found.last_mut() {
            Some((_, whole)) if continued => {
                whole.push(' ');
                whole.push_str(part);
            }
            _ => found.push((number + 1, part.to_string())),
        }
        continued = more;
    }
    found
}

fn restart(value: &str) -> Result<&str, Unreadable> {
    const KNOWN: [&str; 7] = ["no", "on-success", "on-failure", "on-abnormal", "on-watchdog", "on-abort", "always"];
    match value {
        "" => Ok("no"),
        value if KNOWN.contains(&value) => Ok(value),
        _ => Err(Unreadable::new("is not known to systemd", format!("it is one of {}", KNOWN.join(", ")))),
    }
}

fn count(value: &str) -> Result<u32, Unreadable> {
    value.parse().map_err(|_| Unreadable::new("is not a whole number", "systemd ignores such a line with a warning"))
}

/// A time span as systemd.time(7) writes it: units added up, seconds where there is none, or `infinity`.
fn time(value: &str) -> Result<u64, Unreadable> {
    let bad = || {
        Unreadable::new(
            "is not a time span",
            "systemd writes 100ms, 5s, 5min 20s, 1h or infinity; a number alone is seconds",
        )
    };
    if value == "infinity" {
        return Ok(INFINITY);
    }
    let mut rest = value;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let (unit, after) = after.split_at(after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len()));
        let micros = unit_micros(unit).ok_or_else(bad)?;
        total += number.parse::<f64>().map_err(|_| bad())? * micros;
        rest = after.trim_start();
    }
    match value.is_empty() {
        true => Err(bad()),
        false => Ok(total as u64),
    }
}

fn unit_micros(unit: &str) -> Option<f64> {
    Some(match unit {
        "usec" | "us" | "µs" | "μs" => 1.0,
        "msec" | "ms" => 1e3,
        "" | "seconds" | "second" | "sec" | "s" => 1e6,
        "minutes" | "minute" | "min" | "m" => 60e6,
        "hours" | "hour" | "hr" | "h" => 3600e6,
        "days" | "day" | "d" => 86_400e6,
        "weeks" | "week" | "w" => 7.0 * 86_400e6,
        "months" | "month" | "M" => 30.44 * 86_400e6,
        "years" | "year" | "y" => 365.25 * 86_400e6,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        systemd("x.service", text, &[]).unwrap()
    }

    fn delays(text: &str, count: usize) -> Vec<u128> {
        let policy = read(text).policy;
        let settings = relent::Settings { max_attempts: None, ..policy.settings() };
        settings.policy().unwrap().delays(0).take(count).map(|delay| delay.as_micros()).collect()
    }

    fn most(text: &str) -> Option<u32> {
        read(text).policy.settings().max_attempts
    }

    /// The example of systemd.service(5).
    #[test]
    fn steps_grow_geometrically() {
        let text = "[Service]\nRestart=always\nRestartSec=10s\nRestartSteps=4\nRestartMaxDelaySec=160s\n";
        assert_eq!(delays(text, 7), [10, 20, 40, 80, 160, 160, 160].map(|s| s * 1_000_000));
        let text = "[Service]\nRestart=always\nRestartMaxDelaySec=10\nRestartSteps=5\n";
        assert_eq!(delays(text, 6), [100_000, 251_188, 630_957, 1_584_893, 3_981_071, 10_000_000]);
    }

    #[test]
    fn the_start_limit_refuses_the_sixth_start() {
        assert_eq!(most("[Service]\nRestart=always\n"), Some(5));
        assert_eq!(most("[Service]\nRestart=always\nRestartSec=2\n"), Some(5), "starts at 0 2 4 6 8, refused at 10");
        assert_eq!(most("[Service]\nRestart=always\nRestartSec=2.1\n"), None, "a new window opens at 10.5");
        assert_eq!(most("[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\n"), None);
        assert_eq!(most("[Unit]\nStartLimitBurst=50\n[Service]\nRestart=always\nRestartSec=1\n"), None);
        let slow = "[Unit]\nStartLimitIntervalSec=1h\n[Service]\nRestart=always\nRestartSec=1min\n";
        assert_eq!(most(slow), Some(5));
    }

    #[test]
    fn a_service_that_is_not_restarted_has_one_attempt() {
        let reading = read("[Service]\nExecStart=/bin/true\n");
        assert_eq!(reading.policy.settings().max_attempts, Some(1));
        assert_eq!(reading.notes, ["Restart=no: systemd never restarts this service"]);
        assert!(reading.settings.iter().all(|setting| setting.from == "default"));
    }

    #[test]
    fn settings_say_their_line() {
        let reading = read("# a comment\n[Unit]\nDescription=a \\\n  b\n[Service]\nRestartSec=5min 20s\n");
        let sec = Setting { key: "RestartSec", value: "5m20s".into(), from: "line 6".into() };
        assert!(reading.settings.contains(&sec), "{:?}", reading.settings);
    }

    #[test]
    fn what_drop_ins_say_holds_and_tells_their_name() {
        let unit = "[Service]\nRestartSec=1\nRestart=always\n";
        let drop_in = |text: &str| [("a.conf".to_owned(), text.to_owned())];
        let reading = systemd("x.service", unit, &drop_in("RestartSec=9\n[Service]\n\nRestartSec=2\n")).unwrap();
        let from = |key| reading.settings.iter().find(|setting| setting.key == key).map(|setting| &*setting.from);
        assert_eq!((from("RestartSec"), from("Restart")), (Some("a.conf, line 4"), Some("line 3")));
        assert_eq!(reading.settings[1].value, "2s", "what stands before a section says nothing");
        let bad = systemd("x.service", unit, &drop_in("[Service]\nRestartSec=soon\n")).unwrap_err();
        assert_eq!(bad.problem, "a.conf, line 2: what RestartSec says is not a time span");
        assert!(systemd("x.service", "[Unit]\n", &drop_in("[Service]\n")).is_ok());
    }

    #[test]
    fn time_spans_are_those_of_systemd() {
        for (text, micros) in [
            ("5", 5_000_000),
            ("50ms", 50_000),
            ("2min", 120_000_000),
            ("1h 30m", 5_400_000_000),
            ("1.5s", 1_500_000),
            ("1w", 604_800_000_000),
            ("infinity", INFINITY),
        ] {
            assert_eq!(time(text), Ok(micros), "{text}");
        }
        for text in ["", "5 parsecs", "-1", "1..2s", "s"] {
            assert!(time(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let problem = |text| systemd("x.service", text, &[]).unwrap_err().problem;
        assert_eq!(problem("hello"), "x.service has no [Service] section");
        assert_eq!(
            problem("[Service]\nRestartSec=soon\n"),
            "x.service, line 2: what RestartSec says is not a time span"
        );
        assert_eq!(
            problem("[Service]\nRestart=maybe\n"),
            "x.service, line 2: what Restart says is not known to systemd"
        );
        assert_eq!(
            problem("[Service]\nRestartSteps=-1\n"),
            "x.service, line 2: what RestartSteps says is not a whole number"
        );
    }

    #[test]
    fn absurd_values_end() {
        let text = "[Unit]\nStartLimitBurst=4294967295\nStartLimitIntervalSec=infinity\n[Service]\nRestart=always\n\
                    RestartSec=1us\nRestartSteps=4294967295\nRestartMaxDelaySec=999999999y\n";
        read(text);
        read("[Service]\nRestart=always\nRestartSec=infinity\n");
    }
}
