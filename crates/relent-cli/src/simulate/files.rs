//! The files that a simulation leaves for people: the report and its plots.

use super::OutputArgs;
use crate::{
    escape::shell,
    links, redact,
    report::Report,
    talk::{Fault, plain},
    whole_file,
};
use relent_sim::{Contender, Outcome, Scenario};
use std::{env, io, path::Path};

/// Writes the report and the plots that were asked for.
pub(super) fn write(output: &OutputArgs, scenario: &Scenario, outcome: &Outcome) -> Result<(), Fault> {
    write_report(output.html.as_deref(), output.svg.as_deref(), scenario, outcome)
}

/// Writes the report to a file and the plots to a folder.
///
/// # Errors
///
/// One of them cannot be written.
pub(crate) fn write_report(
    html: Option<&Path>,
    svg: Option<&Path>,
    scenario: &Scenario,
    outcome: &Outcome,
) -> Result<(), Fault> {
    if html.is_none() && svg.is_none() {
        return Ok(());
    }
    let command = command(env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()));
    let (scenario, outcome) = with_recommended(scenario, outcome);
    let report = Report { scenario: &scenario, outcome: &outcome, command: &command };
    if let Some(file) = html {
        whole_file::replace_after(outcome.interrupted, file, report.html().as_bytes())
            .map_err(|error| cannot("the report", file, &error))?;
    }
    if let Some(folder) = svg {
        let made = links::make_folders(folder, rustix::fs::Mode::from_raw_mode(0o777), &links::to_write);
        made.map_err(|error| cannot("the plots", folder, &error))?;
        for picture in report.pictures() {
            let file = folder.join(picture.name).with_extension("svg");
            whole_file::replace_after(outcome.interrupted, &file, picture.svg.as_bytes())
                .map_err(|error| cannot("a plot", &file, &error))?;
        }
    }
    Ok(())
}

/// What is recommended stands in every plot and table beside the policies that were asked for.
fn with_recommended(scenario: &Scenario, outcome: &Outcome) -> (Scenario, Outcome) {
    let paced = with_pacer(scenario, outcome);
    let (scenario, outcome) = paced.as_ref().map_or((scenario, outcome), |(scenario, outcome)| (scenario, outcome));
    let (mut scenario, mut outcome) = with_populations(scenario, outcome);
    let recommended = outcome.advice.as_ref().and_then(|advice| advice.recommended.as_ref());
    if let Some(recommended) = recommended.filter(|recommended| recommended.as_good.is_none()) {
        let record = recommended.record.clone();
        if outcome.records.iter().all(|other| other.policy != record.policy) {
            scenario.contenders.push(Contender::new(record.policy.clone(), recommended.policy));
            outcome.records.push(record);
        }
    }
    (scenario, outcome)
}

/// So does the herd with a pacer, where one was tried.
fn with_pacer(scenario: &Scenario, outcome: &Outcome) -> Option<(Scenario, Outcome)> {
    let paced = outcome.advice.as_ref()?.paced.as_ref()?;
    let own = scenario.contenders.iter().find(|contender| contender.name == paced.policy)?;
    let own = own.clone().told_turns(paced.pacer);
    let (mut scenario, mut outcome) = (scenario.clone(), outcome.clone());
    scenario.contenders.push(own);
    outcome.records.push(paced.record.clone());
    Some((scenario, outcome))
}

/// Each population stands below all clients of its policy, as a policy does.
fn with_populations(scenario: &Scenario, outcome: &Outcome) -> (Scenario, Outcome) {
    let (mut scenario, mut outcome) = (scenario.clone(), outcome.clone());
    if scenario.contenders.iter().all(|contender| contender.populations.is_empty()) {
        return (scenario, outcome);
    }
    let contenders = scenario.contenders.iter();
    scenario.contenders =
        contenders.flat_map(|contender| std::iter::once(contender.clone()).chain(contender.apart())).collect();
    let records = outcome.records.iter();
    outcome.records = records.flat_map(|record| record.with_populations().cloned()).collect();
    (scenario, outcome)
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Fault {
    Fault::new(format!("cannot write {what} to {}: {}", path.display(), plain(error)))
        .hint("--html takes a file, --svg a folder, where you may write")
}

/// The command line that was given, as a shell takes it, and as it may be told: the page is for others.
fn command(args: impl Iterator<Item = String>) -> String {
    let told = args.map(|arg| shell(&redact::text(&arg)).into_owned());
    std::iter::once("relent".to_owned()).chain(told).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted() {
        let args = ["simulate", "my herd.toml", "--seeds=5", "it's", ""].map(str::to_owned);
        assert_eq!(command(args.into_iter()), "relent simulate 'my herd.toml' --seeds=5 'it'\\''s' ''");
        let args =
            ["storm", "--target", "http://ann:pw@h/?token=pw&n=1", "--target=http://ann:p w@h/"].map(str::to_owned);
        assert_eq!(
            command(args.into_iter()),
            "relent storm --target 'http://***@h/?token=***&n=1' '--target=http://***@h/'"
        );
    }
}
