//! Lists of scenario files that multiply what is made of them have bounds, which are looked at before anything is made.

use relent_sim::Scenario;

const HERD: &str = "[clients]\ncount = 10\n[server]\ncapacity = 5\n";

/// So many times the same, numbered.
fn many(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect()
}

fn policies(count: usize) -> String {
    many(count, |nth| format!("[policy.p{nth}]\n"))
}

/// Populations that share the clients.
fn populations(count: usize) -> String {
    many(count, |nth| match nth {
        0 => "[[population]]\nname = \"rest\"\n".to_owned(),
        _ => format!("[[population]]\nname = \"n{nth}\"\nshare = {:.6}\n", 1.0 / count as f64),
    })
}

#[track_caller]
fn refused(text: &str, problem: &str, line: usize) {
    let error = Scenario::parse(text).expect_err("it is too much");
    assert_eq!((error.problem(), error.line()), (problem, Some(line)), "{error}");
}

/// Each policy would get all of them, before anybody counts.
#[test]
fn populations_and_layers_are_counted_before_policies_get_them() {
    let text = format!("{HERD}{}{}", populations(65), policies(2));
    refused(&text, "there are more than 64 tables [[population]]", 4 + 2 + 63 * 3 + 1);
    let layers = many(9, |nth| format!("[[layer]]\nname = \"n{nth}\"\ntimeout = \"1s\"\n"));
    refused(&format!("{HERD}{layers}{}", policies(2)), "there are more than 8 tables [[layer]]", 4 + 8 * 3 + 1);
}

#[test]
fn many_policies_of_many_populations_are_too_many() {
    let with = |policies: &str| format!("{HERD}{}{policies}", populations(64));
    let most = Scenario::parse(&with(&policies(156))).expect("it is just not too much");
    assert_eq!((most.contenders.len(), most.contenders[155].populations.len()), (156, 64));
    let problem = "157 policies of 64 populations and layers each are more than 10000 in all";
    refused(&with(&policies(157)), problem, 5);
    let runs = many(157, |nth| format!("[[run]]\nname = \"r{nth}\"\npolicy = \"p0\"\n"));
    refused(&with(&(policies(1) + &runs)), &problem.replace("policies", "runs"), 5);
}

/// Those are counted that would run; whom populations and layers have, and who stands beside `[[run]]`, is not compared.
#[test]
fn policies_that_are_compared_are_counted() {
    let problem = "there are more than 1000 policies, and no [[run]] says which are compared";
    refused(&format!("{HERD}{}", policies(30_000)), problem, 4 + 1001);
    let text = format!("{HERD}[[layer]]\nname = \"n\"\npolicy = \"p7\"\n{}", policies(1001));
    assert_eq!(Scenario::parse(&text).expect("one is a layer's").contenders.len(), 1000);
    let text = format!("{HERD}{}[[run]]\npolicy = \"p7\"\n", policies(1001));
    assert_eq!(Scenario::parse(&text).expect("one runs").contenders.len(), 1);
}

#[test]
fn spikes_and_windows_have_bounds() {
    let spikes = many(1001, |nth| format!("{{ at = \"{nth}s\" }}, "));
    let text =
        format!("[clients]\nrate = 1\nfor = \"2000s\"\nspikes = [{spikes}]\n[server]\ncapacity = 5\n[policy.a]\n");
    refused(&text, "there are more than 1000 spikes", 4);
    let windows = many(1001, |nth| format!("\"exp=1.{:04}\", ", nth + 1000));
    refused(&format!("[batch]\nwindow = [{windows}]\n"), "there are more than 1000 window strategies", 2);
}

/// A promise names a policy or one of its populations, as the outcome does.
#[test]
fn promises_are_about_those_there_are() {
    let text = |name: &str| {
        let promise = format!("[assert.\"{name}\"]\ndrain_s = \"<= 5\"\n");
        format!("{HERD}{}{}{promise}", populations(2), policies(2))
    };
    for known in ["p0", "p1: rest", "p0: n1"] {
        assert_eq!(Scenario::parse(&text(known)).expect(known).asserts[0].policy.as_deref(), Some(known));
    }
    for unknown in ["rest", "p0: ", "p0n1", "p0: n1: n1", ": n1"] {
        refused(&text(unknown), &format!("there is no figure or policy {unknown:?}"), 12);
    }
}
