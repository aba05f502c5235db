//! `relent explain`: what a policy will do, before it does it.
//!
//! The policy comes from flags, a file or a profile, or from what people already have ([`foreign`]). Every default is
//! spelled out with where it came from; the schedule is a table and a plot; warnings carry numbers
//! ([`relent::Warning`]). Nothing is run and no time passes.

mod call;
mod chart;
mod compare;
pub mod foreign;
mod report;
mod rows;
mod setting;
mod subject;
mod text;
mod unit;
mod upstream;

pub use self::setting::Setting;
pub(crate) use self::subject::InShort;

use self::{subject::Subject, text::View};
use crate::{
    breaks::{broken, if_shown},
    escape::escape_lines,
    json::Object,
    plot::svg,
    policy_args::CallArgs,
    screen,
    talk::{Fault, HushArgs, plain, write_out},
    whole_file,
};
use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Show what a policy will do: its delays, the whole call, and what is wrong with it.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    policy: CallArgs,

    #[command(flatten)]
    upstream: upstream::OnArgs,

    /// Show another policy beside it: FILE#NAME or a profile.
    #[arg(long, value_name = "POLICY")]
    compare: Vec<String>,

    /// Explain a systemd unit's restarts (-: what `systemctl cat` prints).
    #[arg(long, value_name = "UNIT FILE", help_heading = "What you already have")]
    systemd: Option<PathBuf>,

    /// Explain a curl command line, or its retry flags.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "What you already have")]
    curl: Option<String>,

    /// Explain CrashLoopBackOff; =reduced, =max=DURATION: newer settings.
    #[arg(
        long,
        value_name = "OPTIONS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = "What you already have"
    )]
    kubernetes: Option<String>,

    /// Explain Envoy's: base_interval=25ms,num_retries=3, YAML, JSON.
    #[arg(long, value_name = "SETTINGS", help_heading = "What you already have")]
    envoy: Option<String>,

    /// List the profiles of other systems that --compat and --compare know.
    #[arg(long, help_heading = "What you already have")]
    profiles: bool,

    /// Show at most this many delays.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Output")]
    rows: u16,

    /// Leave out the plot.
    #[arg(long, help_heading = "Output")]
    no_plot: bool,

    /// Write the plot as SVG to a file (- writes it to stdout, and nothing else).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,

    /// One JSON object a policy instead of text.
    #[arg(long, help_heading = "Output")]
    json: bool,

    #[command(flatten)]
    hush: HushArgs,
}

const EXAMPLES: &str = "\
Examples:
  relent explain --base 100ms --cap 10s --max-attempts 6
  relent explain --policy relent.toml#read --svg read.svg
  relent explain --compare relent.toml#read --compare relent.toml#write
  relent explain --systemd /etc/systemd/system/my.service
  relent explain --curl '--retry 5 --retry-delay 0' --kubernetes";

/// Explains.
pub(crate) fn run(args: &Args) -> ExitCode {
    explain(args).unwrap_or_else(|fault| fault.tell_as(args.json))
}

fn explain(args: &Args) -> Result<ExitCode, Fault> {
    if args.profiles {
        write_out(profiles(args.json).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let subjects = subjects(args)?;
    subjects.iter().for_each(|subject| args.hush.policy(&subject.name, &subject.policy));
    let most = usize::from(args.rows);
    let on = on_upstream(args, &subjects)?;
    let left_out = on.iter().flat_map(|on| on.described.left_out());
    left_out.for_each(|note| args.hush.note(note));
    if let Some(path) = &args.svg {
        let chart = on.as_ref().and_then(upstream::chart).unwrap_or_else(|| chart::chart(&subjects, most));
        let drawn = svg::draw(&chart);
        if path.as_os_str() == "-" {
            write_out(if_shown(&drawn, io::stdout()).as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        write_svg(path, &drawn)?;
    }
    let view = View { rows: most, columns: screen::columns(), plot: !args.no_plot };
    let text = match &subjects[..] {
        _ if args.json => subjects.iter().map(|subject| report::report(subject, most) + "\n").collect(),
        [subject] => for_terminal(&text::explain(subject, view)),
        subjects => for_terminal(&compare::compare(subjects, view)),
    };
    let text = match &on {
        Some(on) if args.json => upstream::with(text.trim_end(), on) + "\n",
        Some(on) => text + &for_terminal(&upstream::explain(on, view.width(), view.plot)),
        None => text,
    };
    write_out(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The upstream of the one policy that is explained.
fn on_upstream(args: &Args, subjects: &[Subject]) -> Result<Option<upstream::OnUpstream>, Fault> {
    let has_others = args.systemd.is_some() || args.curl.is_some() || args.kubernetes.is_some() || args.envoy.is_some();
    match subjects {
        // What is another system's stands on no upstream of a file that happens to be there.
        [_] if (has_others || !args.compare.is_empty()) && !args.upstream.is_given() => Ok(None),
        [subject] => args.upstream.of(subject.policy, &args.policy.whole()),
        _ if args.upstream.is_given() => {
            Err(Fault::new("an upstream is explained with one policy, and there are several")
                .hint("leave out either --compare or the flags of the upstream"))
        }
        _ => Ok(None),
    }
}

/// Text that may name what others wrote.
fn for_terminal(text: &str) -> String {
    let text = if screen::unicode() { Cow::Borrowed(text) } else { Cow::Owned(text::ascii(text)) };
    broken(&escape_lines(&text)).into_owned()
}

/// The profiles, a line each.
fn profiles(json: bool) -> String {
    let all = relent::compat::all();
    let width = all.iter().map(|profile| profile.name.len()).max().unwrap_or(0);
    let line = |profile: &relent::compat::Profile| match json {
        false => format!("{:width$}  {} {}\n", profile.name, profile.system, profile.version),
        true => {
            let mut object = Object::new();
            object.text("name", profile.name).text("system", profile.system).text("version", profile.version);
            object.text("evidence", profile.evidence.as_str()).text("picks", profile.picks);
            object.text("source", profile.source).text("warning", profile.warning).finish() + "\n"
        }
    };
    all.iter().map(line).collect()
}

/// Everything that was asked about; the policy of flags and file if nothing else was, or if flags say something.
fn subjects(args: &Args) -> Result<Vec<Subject>, Fault> {
    let mut subjects =
        args.compare.iter().map(|spec| Subject::of_spec(spec, args.hush)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &args.systemd {
        let ((name, text), drop_ins) = unit::read(path, args.hush)?;
        subjects.push(foreign::systemd(&name, &text, &drop_ins)?.into());
    }
    if let Some(line) = &args.curl {
        subjects.push(foreign::curl(line)?.into());
    }
    if let Some(options) = &args.kubernetes {
        subjects.push(foreign::kubernetes(options)?.into());
    }
    if let Some(settings) = &args.envoy {
        subjects.push(foreign::envoy(settings)?.into());
    }
    let policy = args.policy.whole();
    if subjects.is_empty() || policy.is_given() {
        subjects.push(Subject::of_args(&policy, args.hush)?);
    }
    Ok(subjects)
}

fn write_svg(path: &Path, drawn: &str) -> Result<(), Fault> {
    whole_file::replace(path, drawn.as_bytes()).map_err(|error| {
        Fault::new(format!("cannot write the plot to {}: {}", path.display(), plain(&error)))
            .hint("the folder must exist and be writable; --svg - writes to stdout")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use relent::{Curve, Jitter, Policy, Settings, rng::draw};
    use std::time::Duration;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        policy: CallArgs,
    }

    /// Any policy: durations of every order of magnitude, every curve and jitter.
    fn any(seed: u64) -> Option<Policy> {
        let mut k = 0;
        let mut next = || {
            k += 1;
            draw(seed, k)
        };
        let mut duration = || Duration::from_nanos(next() >> (next() % 64));
        let (base, step) = (duration(), duration());
        let (cap, most_elapsed, timeout, spread) = (duration(), duration(), duration(), duration());
        let curve = match draw(seed, 100) % 5 {
            0 => Curve::Constant { base },
            1 => Curve::Linear { base, step },
            2 => Curve::Exponential { base, factor: 1.0 + (draw(seed, 101) % 1000) as f64 / 100.0 },
            3 => Curve::Fibonacci { base },
            _ => Curve::Slots { slot: base },
        };
        let jitter = match draw(seed, 102) % 5 {
            0 => Jitter::None,
            1 => Jitter::Full,
            2 => Jitter::Equal,
            3 => Jitter::Decorrelated,
            _ => Jitter::Proportional((draw(seed, 103) % 101) as f64 / 100.0),
        };
        let is_set = |bit: u32| draw(seed, 200 + bit).is_multiple_of(2);
        let some = |bit: u32, value: Duration| is_set(bit).then_some(value);
        let settings = Settings {
            curve,
            cap: some(0, cap.max(base)),
            jitter: if matches!(curve, Curve::Slots { .. }) { Jitter::None } else { jitter },
            max_attempts: is_set(1).then_some((draw(seed, 104) >> 32 >> (draw(seed, 105) % 32)).max(1) as u32),
            max_elapsed: some(2, most_elapsed),
            attempt_timeout: some(3, timeout),
            timeout: some(5, most_elapsed / 2),
            spread: some(4, spread).unwrap_or_default(),
            ..Settings::default()
        };
        settings.policy().ok()
    }

    #[test]
    fn any_policy_can_be_explained() {
        let policies = (0..400).filter_map(|seed| Some((seed, any(seed)?))).take(25);
        for (seed, policy) in policies {
            let subject = || Subject { name: "x".into(), policy, settings: vec![], notes: vec![], source: None };
            let view = View { rows: 20, columns: Some(80), plot: true };
            let text = text::explain(&subject(), view) + &compare::compare(&[subject(), subject()], view);
            let drawn = svg::draw(&chart::chart(&[subject()], 20));
            for said in [&text, &report::report(&subject(), 20), &drawn] {
                assert!(!said.contains("NaN") && !said.contains("inf,"), "seed {seed}: {policy:?}\n{said}");
            }
        }
    }

    /// What is said to be the same is the same.
    #[test]
    fn flags_make_the_policy_they_stand_for() {
        for (seed, policy) in (0..400).filter_map(|seed| Some((seed, any(seed)?))) {
            let flags = subject::as_flags(&policy).unwrap();
            let parsed = Flags::try_parse_from(format!("relent {flags}").split(' ')).unwrap_or_else(|e| panic!("{e}"));
            let read =
                parsed.policy.whole().flags().unwrap().policy().unwrap_or_else(|e| panic!("seed {seed}: {flags}: {e}"));
            assert_eq!(read, policy, "seed {seed}: {flags}");
        }
    }
}
