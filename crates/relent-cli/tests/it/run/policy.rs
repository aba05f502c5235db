//! Where the policy comes from.

use super::{Place, sh};

const FILE: &str = "[policy.read]\nmax_attempts = 2\nbase = '1ms'\n\n[policy.write]\nmax_attempts = 3\nbase = '1ms'\n";

fn attempts(place: &Place, flags: &[&str]) -> usize {
    let args = [&["run", "-q"], flags, &["--", "sh", "-c", "echo >> count; exit 1"]].concat();
    place.relent(&args).is(1, "", "");
    let count = place.0.read("count").len();
    std::fs::remove_file(place.0.path().join("count")).unwrap();
    count
}

#[test]
fn a_file_holds_several_and_a_name_chooses() {
    let place = Place::new().file("p.toml", FILE);
    assert_eq!(attempts(&place, &["--policy", "p.toml#read"]), 2);
    assert_eq!(attempts(&place, &["--policy", "p.toml#write"]), 3);
    assert_eq!(attempts(&place, &["--policy", "p.toml#write", "--max-attempts", "1"]), 1);
}

#[test]
fn relent_toml_is_found_by_itself() {
    let place = Place::new().file("relent.toml", "[policy]\nmax_attempts = 2\nbase = '1ms'\n[policy.x]\n");
    assert_eq!(attempts(&place, &[]), 2);
    assert_eq!(attempts(&place, &["--max-attempts", "3"]), 3);
    let only = Place::new().file("relent.toml", "[policy.only]\nmax_attempts = 2\nbase = '1ms'\n");
    assert_eq!(attempts(&only, &[]), 2);
    let named = Place::new().file("relent.toml", FILE);
    assert_eq!(attempts(&named, &["--policy", "#write"]), 3);
}

#[test]
fn upstreams_are_said_to_have_no_effect() {
    let place = Place::new().file("relent.toml", "[policy]\n[upstream.bank]\nbudget = { ratio = 0.1 }\n");
    place.relent(&["run", "--", "true"]).is(
        0,
        "",
        "note: relent.toml: [upstream.bank] has no effect in this version\n",
    );
}

#[test]
fn profiles_of_other_systems_serve() {
    let place = Place::new().file("relent.toml", "[policy.c]\ncompat = 'aws-2.1'\nmax_attempts = 2\n");
    let names: Vec<&str> = relent::compat::all().iter().map(|profile| profile.name).collect();
    for name in names {
        place.relent(&["run", "--compat", name, "--", "true"]).is(0, "", "");
    }
}

#[test]
fn every_flag_of_a_policy_is_taken() {
    let verbose = |flags: &[&str]| {
        let outcome = Place::new().relent(&[&["run", "-v", "--seed", "1"], flags, &["--", "true"]].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stderr.lines().next().unwrap().to_owned()
    };
    let all = [
        "--curve",
        "linear",
        "--base",
        "10ms",
        "--step",
        "5ms",
        "--cap",
        "1s",
        "--jitter",
        "proportional=0.2",
        "--max-attempts",
        "4",
        "--max-elapsed",
        "1m",
        "--max-pushback",
        "30s",
        "--attempt-timeout",
        "10s",
        "--spread",
        "1ms",
    ];
    assert_eq!(
        verbose(&all),
        "relent: policy curve=\"linear\" base=\"10ms\" step=\"5ms\" cap=\"1s\" jitter={ proportional=0.2 } \
         max_attempts=4 max_elapsed=\"1m\" max_pushback=\"30s\" attempt_timeout=\"10s\" spread=\"1ms\" seed=1"
    );
    assert!(verbose(&["--factor", "3"]).contains("curve=\"exponential\" base=\"1s\" factor=3 cap"));
    assert!(
        verbose(&["--delays", "15s,3m", "--repeat"]).contains("curve=\"list\" delays=[\"15s\", \"3m\"] repeat=true")
    );
    assert!(verbose(&["--jitter", "additive=2s"]).contains("jitter={ additive=\"2s\" }"));
}

#[test]
fn the_seed_makes_the_waits_the_same() {
    let events = |seed: &str| {
        let place = Place::new();
        let flags = ["run", "--json", "--base", "20ms", "--max-attempts", "4", "--seed", seed, "--", "false"];
        let stderr = place.command(&flags).output().unwrap().stderr;
        let stderr = String::from_utf8(stderr).unwrap();
        let delays = stderr.split("\"delay_ms\":").skip(1).map(|rest| rest.split(',').next().unwrap().to_owned());
        delays.collect::<Vec<_>>()
    };
    assert_eq!(events("3"), events("3"));
    assert_ne!(events("3"), events("4"));
}

#[test]
fn a_wrong_policy_is_told_with_its_flag_or_place() {
    sh(&["--cap", "1us"], ":").is(
        125,
        "",
        "error: --cap: the cap is shorter than the base\nhint: raise the cap or lower the base\n",
    );
    let place = Place::new().file("relent.toml", "[policy.read]\nbase = \"100\"\n");
    place.relent(&["run", "--", "true"]).is(
        125,
        "",
        "error: the duration has no unit\n --> relent.toml:2:8\n  |\n2 | base = \"100\"\n  |        ^^^^^\n\
         hint: write it like 100ms, 1.5s, 1m30s or 2h; units are ns, us, ms, s, m, h, d\n",
    );
    let place = Place::new().file("relent.toml", "[policy.read]\nbase = '10s'\n");
    place.relent(&["run", "--cap", "1s", "--", "true"]).is(
        125,
        "",
        "error: --cap: the cap is shorter than the base\nhint: raise the cap or lower the base\n",
    );
    place.relent(&["run", "--policy", "no.toml", "--", "true"]).is(
        125,
        "",
        "error: cannot read the policy file \"no.toml\": No such file or directory (os error 2)\n\
         hint: a policy file is named by --policy FILE or FILE#NAME\n",
    );
    let place = Place::new().file("relent.toml", FILE);
    place.relent(&["run", "--", "true"]).is(
        125,
        "",
        "error: relent.toml: the file has several policies: read, write\nhint: name one: --policy FILE#NAME\n",
    );
    place.relent(&["run", "--policy", "#raed", "--", "true"]).is(
        125,
        "",
        "error: relent.toml: the file has no policy \"raed\"\nhint: it has read, write\n",
    );
}
