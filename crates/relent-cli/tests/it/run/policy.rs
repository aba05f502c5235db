//! Where the policy comes from.

use super::{Place, sh};
use std::fs;

const FILE: &str = "[policy.read]\nmax_attempts = 2\nbase = '1ms'\n\n[policy.write]\nmax_attempts = 3\nbase = '1ms'\n";

fn attempts(place: &Place, flags: &[&str]) -> usize {
    let args = [&["run", "-q"], flags, &["--", "sh", "-c", "echo >> count; exit 1"]].concat();
    place.relent(&args).is(1, "", "");
    let count = place.0.read("count").len();
    fs::remove_file(place.0.path().join("count")).unwrap();
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
fn upstreams_that_no_policy_names_change_nothing() {
    let text =
        "[policy]\nmax_attempts = 2\nbase = '1ms'\n[upstream.bank]\nbudget = { ratio = 0, min_per_second = 1 }\n";
    let place = Place::new().file("relent.toml", text);
    assert_eq!(attempts(&place, &[]), 2);
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
        "error: relent.toml, found in this folder, is no policy file: the duration has no unit (line 2)\n\
         hint: --policy relent.toml shows the line; RELENT_CONFIG=none uses no file\n",
    );
    // The name of a policy does not name the file.
    place.relent(&["run", "--policy", "#read", "--", "true"]).is(
        125,
        "",
        "error: relent.toml, found in this folder, is no policy file: the duration has no unit (line 2)\n\
         hint: --policy relent.toml shows the line; RELENT_CONFIG=none uses no file\n",
    );
    place.relent(&["run", "--policy", "relent.toml", "--", "true"]).is(
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
        "error: cannot read the policy file \"no.toml\": No such file or directory\n\
         hint: a policy file is named by --policy FILE or FILE#NAME\n",
    );
    let place = Place::new().file("relent.toml", FILE);
    place.relent(&["run", "--policy", "relent.toml", "--", "true"]).is(
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

/// A file that nobody named is named by us, unless nothing is to be said.
#[test]
fn a_policy_file_that_was_found_is_named() {
    let place = Place::new().file("relent.toml", "[policy.only]\nmax_attempts = 2\nbase = '1ms'\n");
    let said = "relent: policy \"only\" of relent.toml, found in this folder\n";
    place.relent(&["run", "--", "true"]).is(0, "", said);
    place.relent(&["run", "-q", "--", "true"]).is(0, "", "");
    place.relent(&["run", "--policy", "relent.toml", "--", "true"]).is(0, "", "");
    place.relent(&["run", "--json", "--", "true"]).is(
        0,
        "",
        "{\"event\":\"remark\",\"remark\":\"policy \\\"only\\\" of relent.toml, found in this folder\"}\n\
         {\"event\":\"end\",\"outcome\":\"success\",\"attempts\":1,\"exit\":0,\"elapsed_ms\":0,\"reason\":null}\n",
    );
}

/// What is found and broken stops only a command that has no other policy.
#[test]
fn a_broken_file_that_was_found_does_not_stop_who_uses_none_of_it() {
    let place =
        || Place::new().file("relent.toml", "[policy]\nbase = \"1x\"\n").file("good.toml", "[policy]\nbase='1ms'");
    let stopped = place().relent(&["run", "--", "true"]);
    assert_eq!(stopped.code, Some(125), "{}", stopped.stderr);
    let said = "relent: relent.toml, found in this folder, is ignored: it is no policy file: \
                the duration has an unknown unit (line 2)\n";
    place().relent(&["run", "--base", "1ms", "--", "true"]).is(0, "", said);
    place().relent(&["run", "-q", "--timeout", "9s", "--", "true"]).is(0, "", "");
    place().relent(&["run", "--compat", "celery", "--", "true"]).is(0, "", "");
    place().relent(&["run", "--policy", "good.toml", "--", "true"]).is(0, "", "");
    for args in [
        &["explain", "--profiles"][..],
        &["explain", "--kubernetes"],
        &["explain", "--curl", "--retry 3"],
        &["explain", "--compare", "celery"],
        &["explain", "--policy", "good.toml"],
        &["simulate", "aws", "--clients", "2", "--seeds", "1", "--advice", "never"],
    ] {
        let outcome = place().relent(args);
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{args:?}");
    }
    let asked = place().relent(&["run", "--policy", "relent.toml", "--base", "1ms", "--", "true"]);
    assert_eq!(asked.code, Some(125), "{}", asked.stderr);
}

#[test]
fn a_file_with_several_policies_is_used_by_name_only() {
    let place = Place::new().file("relent.toml", FILE);
    place.relent(&["run", "--", "true"]).is(
        0,
        "",
        "relent: relent.toml, found in this folder, has several policies and none is used; --policy '#read' uses one\n",
    );
}

/// What is in a file that the user did not name may be anybody's secret.
#[test]
fn nothing_of_a_file_that_nobody_named_is_quoted() {
    let place = Place::new().file("relent.toml", "root:$6$secret:19000:0:99999:7:::\n");
    let outcome = place.relent(&["run", "--", "true"]);
    assert_eq!(outcome.code, Some(125));
    assert!(!outcome.stderr.contains("secret"), "{}", outcome.stderr);
    let place = Place::new().file("relent.toml", "[policy]\nsecret = 'other'\n");
    let outcome = place.relent(&["run", "--", "true"]);
    assert!(!outcome.stderr.contains("secret") && !outcome.stderr.contains("other"), "{}", outcome.stderr);
    assert_eq!(place.relent(&["run", "--compat", "celery", "--", "true"]).code, Some(0));
}

#[test]
fn what_others_can_write_is_ignored_with_a_note() {
    use std::os::unix::fs::PermissionsExt;
    let policy = "[policy]\nmax_attempts = 2\nbase = '1ms'\n";
    let open = Place::new().file("relent.toml", policy);
    fs::set_permissions(open.0.path().join("relent.toml"), PermissionsExt::from_mode(0o666)).unwrap();
    let said = "relent: relent.toml, found in this folder, is ignored: others can write to it\n";
    open.relent(&["run", "--", "true"]).is(0, "", said);
    let folder = Place::new();
    fs::create_dir(folder.0.path().join("relent.toml")).unwrap();
    let said = "relent: relent.toml, found in this folder, is ignored: it is a folder, and no file\n";
    folder.relent(&["run", "--", "true"]).is(0, "", said);
    let pipe = Place::new();
    nix::unistd::mkfifo(&pipe.0.path().join("relent.toml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let said = "relent: relent.toml, found in this folder, is ignored: it is a named pipe, and no file\n";
    pipe.relent(&["run", "--", "true"]).is(0, "", said);
}

/// Who may move what is in a folder gives what we wrote there, as a download, the name of a policy file.
#[test]
fn a_policy_file_of_ours_in_the_folder_of_another_user_is_ignored_with_a_note() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let place = Place::new().file("relent.toml", "[policy]\nmax_attempts = 2\nbase = '1ms'\n");
    let folder = place.0.path();
    let is = |owner: u32, group: u32, mode: u32| {
        chown(folder, Some(owner), Some(group))
            .expect("only root can give a folder away: cargo xtask test --without root");
        fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
        place.relent(&["run", "--", "true"]).stderr
    };
    let used = "relent: the policy of relent.toml, found in this folder\n";
    let ignored = |why: &str| format!("relent: relent.toml, found in this folder, is ignored: {why}\n");
    let (theirs, open) = (ignored("its folder belongs to somebody else"), ignored("others can write to its folder"));
    for (owner, group, mode, said) in [
        (0, 0, 0o755, used),
        (0, 0, 0o775, used),
        (0, 100, 0o755, used),
        (0, 100, 0o775, &open),
        (0, 0, 0o777, &open),
        // What is in a folder like `/tmp` stays where it is, but what we wrote in a folder of theirs they may bring here.
        (0, 0, 0o1777, &open),
        (0, 100, 0o1775, &open),
        (65534, 65534, 0o1777, &theirs),
        (65534, 65534, 0o755, &theirs),
    ] {
        assert_eq!(is(owner, group, mode), said, "{owner}:{group} {mode:o}");
    }
    let refused = "error: relent.toml, found in this folder, is not used: its folder belongs to somebody else\n\
                   hint: --policy ./relent.toml says that it is meant all the same\n";
    place.relent(&["run", "--policy", "#", "--", "true"]).is(125, "", refused);
    // Who says where it is means it.
    place.relent(&["run", "--policy", "./relent.toml", "--", "true"]).is(0, "", "");
    let mut by_variable = place.command(&["run", "--", "true"]);
    let said = "relent: the policy of ./relent.toml, which RELENT_CONFIG names\n";
    place.outcome(by_variable.env("RELENT_CONFIG", "./relent.toml")).is(0, "", said);
    // A link of ours leads to what is in their folder.
    let ours = Place::new();
    symlink(folder.join("relent.toml"), ours.0.path().join("relent.toml")).unwrap();
    let outcome = ours.relent(&["run", "--", "true"]);
    assert!(outcome.stderr.contains("is ignored: its folder belongs to somebody else: "), "{}", outcome.stderr);
    assert_eq!(is(0, 0, 0o755), used);
    ours.relent(&["run", "--", "true"]).is(0, "", used);
    // Who can put another folder of ours in the place of the one that it leads through decides as well.
    let (inner, link) = (folder.join("conf"), ours.0.path().join("relent.toml"));
    fs::create_dir(&inner).unwrap();
    fs::rename(folder.join("relent.toml"), inner.join("relent.toml")).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(inner.join("relent.toml"), &link).unwrap();
    for (owner, group, mode, why) in [
        (0, 0, 0o755, None),
        (65534, 65534, 0o755, Some("its folder belongs to somebody else: ")),
        (0, 100, 0o775, Some("others can write to its folder: ")),
        (0, 100, 0o1775, None),
    ] {
        is(owner, group, mode);
        let said = ours.relent(&["run", "--", "true"]).stderr;
        match why {
            Some(why) => assert!(said.contains(why), "{owner}:{group} {mode:o}: {said}"),
            None => assert_eq!(said, used, "{owner}:{group} {mode:o}"),
        }
    }
}

#[test]
fn what_belongs_to_another_user_is_ignored_with_a_note() {
    let foreign = Place::new().file("relent.toml", "[policy]\nmax_attempts = 2\nbase = '1ms'\n");
    std::os::unix::fs::chown(foreign.0.path().join("relent.toml"), Some(65534), None)
        .expect("only root can give a file away: cargo xtask test --without root");
    let said = "relent: relent.toml, found in this folder, is ignored: it belongs to somebody else\n";
    foreign.relent(&["run", "--", "true"]).is(0, "", said);
    // To name a policy is no word about whose file it is; to name the file is.
    for (given, meant) in [("#", "./relent.toml"), ("", "./relent.toml"), ("#nightly", "'./relent.toml#nightly'")] {
        let refused = format!(
            "error: relent.toml, found in this folder, is not used: it belongs to somebody else\n\
             hint: --policy {meant} says that it is meant all the same\n"
        );
        foreign.relent(&["run", "--policy", given, "--", "true"]).is(125, "", &refused);
    }
    let mut by_variable = foreign.command(&["run", "--policy", "#", "--", "true"]);
    let refused = "error: ./relent.toml, which RELENT_CONFIG names, is not used: it belongs to somebody else\n\
                   hint: --policy ./relent.toml says that it is meant all the same\n";
    foreign.outcome(by_variable.env("RELENT_CONFIG", "./relent.toml")).is(125, "", refused);
    let mut by_variable = foreign.command(&["run", "--", "true"]);
    foreign.outcome(by_variable.env("RELENT_CONFIG", "./relent.toml")).is(125, "", refused);
    foreign.relent(&["run", "--policy", "./relent.toml", "--", "true"]).is(0, "", "");
}

/// Nobody can name such a folder, and who is in it can work there.
#[test]
fn nothing_is_found_in_a_folder_whose_path_is_too_long() {
    let place = Place::new();
    let script = "name=$(printf %0200d 0); for i in $(seq 25); do mkdir $name; cd -P $name || exit 9; done; \
                  exec \"$0\" run -- echo text";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_relent")]).current_dir(place.0.path());
    command.env("TMPDIR", place.0.path().join("tmp")).env_remove("RELENT_KEY").env_remove("RELENT_CONFIG");
    place.outcome(&mut command).is(0, "text\n", "");
}

#[test]
fn the_environment_names_another_file_or_none() {
    let place = Place::new()
        .file("relent.toml", "[policy]\nmax_attempts = 2\nbase = '1ms'\n")
        .file("other.toml", "[policy.x]\nmax_attempts = 3\nbase = '1ms'\n[policy.y]\nmax_attempts = 4\nbase='1ms'");
    let with = |config: &str, flags: &[&str]| {
        let mut command = place.command(&[&["run"], flags, &["--", "sh", "-c", "echo >> n; exit 1"]].concat());
        let _ = fs::remove_file(place.0.path().join("n"));
        let outcome = place.outcome(command.env("RELENT_CONFIG", config));
        (fs::read_to_string(place.0.path().join("n")).map_or(0, |n| n.len()), outcome)
    };
    assert_eq!(with("relent.toml", &[]).0, 2);
    assert_eq!(with("none", &["--base", "1ms"]).0, 8);
    assert_eq!(with("", &["--base", "1ms"]).0, 8);
    assert_eq!(with("other.toml", &["--policy", "#y"]).0, 4);
    // By the name of the one that would be found, too.
    let used = with("relent.toml", &[]).1.stderr;
    assert!(used.starts_with("relent: the policy of relent.toml, which RELENT_CONFIG names\n"), "{used}");
    fs::remove_file(place.0.path().join("relent.toml")).unwrap();
    for name in ["missing.toml", "relent.toml"] {
        let said = format!(
            "error: cannot read the policy file {name}: there is no such file\nhint: RELENT_CONFIG=none uses none\n"
        );
        with(name, &[]).1.is(125, "", &said);
    }
}

#[test]
fn a_file_alone_makes_no_storm() {
    let storms = ["curve = 'immediate'", "curve = 'constant'\nbase = '1us'"];
    // Some ends are as good as none.
    let ends = [
        "max_attempts = 'unlimited'",
        "max_attempts = 4000000000",
        "max_attempts = 'unlimited'\nmax_elapsed = '200000d'",
    ];
    for (storm, end) in storms.iter().flat_map(|storm| ends.map(|end| (storm, end))) {
        let place = Place::new().file("relent.toml", &format!("[policy]\n{storm}\n{end}\n"));
        for flags in [&["run", "--", "true"][..], &["run", "--policy", "relent.toml", "--", "true"]] {
            place.relent(flags).is(
                125,
                "",
                "error: relent.toml asks for attempts without end or delay\n\
                 hint: --max-attempts N or unlimited beside it says that it is meant\n",
            );
        }
        let meant = place.relent(&["run", "-q", "--max-attempts", "unlimited", "--", "true"]);
        meant.is(0, "", "");
    }
    for end in [
        "max_attempts = 1000",
        "max_attempts = 'unlimited'\nmax_elapsed = '1m'",
        "max_attempts = 'unlimited'\ntimeout = '1m'",
    ] {
        let place = Place::new().file("relent.toml", &format!("[policy]\ncurve = 'immediate'\n{end}\n"));
        place.relent(&["run", "-q", "--policy", "relent.toml", "--", "true"]).is(0, "", "");
    }
    // Whose last delay is as good as none, however long the others are.
    let delays = vec!["'1m'"; 30].join(", ");
    let list = format!("[policy]\ndelays = [{delays}, '1us']\nrepeat = true\nmax_attempts = 'unlimited'\n");
    let late = Place::new().file("relent.toml", &list).relent(&["run", "--policy", "relent.toml", "--", "true"]);
    assert!(late.stderr.starts_with("error: relent.toml asks for attempts without end or delay\n"), "{late:?}");
}

/// Who goes into a folder has not said that whoever made it may have a thousand attempts at once.
#[test]
fn a_file_that_was_only_found_asks_for_no_flood() {
    let place = Place::new().file("relent.toml", "[policy]\nspread = '90000h'\n");
    let late = "error: relent.toml, found in this folder, puts the first attempt off for more than a minute\n\
                hint: --policy relent.toml says that it is meant, and so does --spread\n";
    place.relent(&["run", "--", "true"]).is(125, "", late);
    place.relent(&["run", "-q", "--spread", "0s", "--", "true"]).is(0, "", "");
    let said = "error: relent.toml, found in this folder, asks for more than 20 retries within a second\n\
                hint: --policy relent.toml says that it is meant, and so does --max-attempts N\n";
    let minutes = vec!["'1m'"; 30].join(", ");
    let nothing = vec!["'0s'"; 21].join(", ");
    for flood in [
        "curve = 'immediate'\nmax_attempts = 22",
        "curve = 'immediate'\nmax_attempts = 1000\nmax_elapsed = '1s'",
        "curve = 'constant'\nbase = '40ms'\njitter = 'none'\nmax_attempts = 'unlimited'",
        "base = '1ms'\ncap = '2ms'\nmax_attempts = 100",
        // Few of these are so long that the mean is.
        "base = '40us'\njitter = 'decorrelated'\nmax_attempts = 100",
        "base = '14ms'\njitter = 'decorrelated'\nmax_attempts = 100",
        "curve = 'constant'\nbase = '50ms'\njitter = 'full'\nmax_attempts = 'unlimited'",
        &format!("delays = [{minutes}, '1us']\nrepeat = true\nmax_attempts = 100"),
        &format!("delays = ['1h', {nothing}, '1h']\nmax_attempts = 100"),
    ] {
        let place = Place::new().file("relent.toml", &format!("[policy]\n{flood}\n"));
        place.relent(&["run", "--", "true"]).is(125, "", said);
        let meant: [&[&str]; 3] = [&["--policy", "relent.toml"], &["--max-attempts", "1000"], &["--compat", "celery"]];
        for flags in meant {
            place.relent(&[&["run", "-q"], flags, &["--", "true"]].concat()).is(0, "", "");
        }
        let mut named = place.command(&["run", "-q", "--", "true"]);
        place.outcome(named.env("RELENT_CONFIG", "./relent.toml")).is(0, "", "");
    }
    for fine in [
        "curve = 'immediate'\nmax_attempts = 21",
        "curve = 'constant'\nbase = '50ms'\njitter = 'none'\nmax_attempts = 'unlimited'",
        "base = '1ms'\nmax_attempts = 100",
        &format!("delays = [{minutes}, '1us']\nrepeat = true\nmax_attempts = 51"),
        &format!("delays = [{minutes}, '0s']"),
    ] {
        let place = Place::new().file("relent.toml", &format!("[policy]\n{fine}\n"));
        place.relent(&["run", "-q", "--", "true"]).is(0, "", "");
    }
}

/// Who names a policy has not said what else the file may ask for, nor that its lines may be shown.
#[test]
fn a_policy_by_its_name_alone_may_ask_for_no_more_than_what_is_found() {
    let flood = "curve = 'immediate'\nmax_attempts = 22\n";
    let said = |meant: &str| {
        format!(
            "error: relent.toml, found in this folder, asks for more than 20 retries within a second\n\
             hint: --policy {meant} says that it is meant, and so does --max-attempts N\n"
        )
    };
    let place = Place::new().file("relent.toml", &format!("[policy]\n{flood}[policy.nightly]\n{flood}"));
    for (given, meant) in [("", "relent.toml"), ("#", "relent.toml"), ("#nightly", "'relent.toml#nightly'")] {
        place.relent(&["run", "--policy", given, "--", "true"]).is(125, "", &said(meant));
        place.relent(&["run", "--policy", given, "--max-attempts", "30", "--", "true"]).is(0, "", "");
        let mut by_variable = place.command(&["run", "--policy", given, "--", "true"]);
        place.outcome(by_variable.env("RELENT_CONFIG", "./relent.toml")).is(0, "", "");
    }
    place.relent(&["run", "--policy", "relent.toml#nightly", "--", "true"]).is(0, "", "");
    let late = Place::new().file("relent.toml", "[policy.nightly]\nspread = '90000h'\n");
    let outcome = late.relent(&["run", "--policy", "#nightly", "--", "true"]);
    assert!(outcome.code == Some(125) && outcome.stderr.contains("puts the first attempt off"), "{}", outcome.stderr);
    let broken = Place::new().file("relent.toml", "[policy.nightly]\nsecret = 'other'\n");
    for given in ["", "#nightly", "#other"] {
        for config in ["relent.toml", "./relent.toml"] {
            let mut command = broken.command(&["run", "--policy", given, "--", "true"]);
            let outcome = broken.outcome(command.env("RELENT_CONFIG", config));
            let told = ["secret", "other"].iter().any(|word| outcome.stderr.contains(word));
            assert!(outcome.code == Some(125) && !told, "{given}: {}", outcome.stderr);
            assert!(
                outcome.stderr.contains("is no policy file: there is no key \"...\" (line 2)"),
                "{}",
                outcome.stderr
            );
        }
    }
}

#[test]
fn a_policy_is_read_from_standard_input() {
    let outcome = Place::new().0.relent_with(
        &["run", "--policy", "-", "--seed", "1", "--", "sh", "-c", "cat; exit 1"],
        "[policy]\nmax_attempts = 2\nbase = '1ms'\n",
    );
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("", Some(1)));
    assert!(outcome.stderr.contains("gave up after 2 attempts"), "{}", outcome.stderr);
}

/// So that an alias can have flags.
#[test]
fn a_later_flag_wins() {
    let verbose = |flags: &[&str]| sh(flags, ":").stderr;
    assert!(verbose(&["-q", "-v", "--cap", "3s", "--cap", "2s", "--seed", "1"]).contains("cap=\"2s\""));
    assert_eq!(verbose(&["-v", "-q"]), "");
    assert!(verbose(&["-v", "--consecutive", "3", "--consecutive", "1"]).contains("succeeded after 1 attempt"));
}

/// A link to what is gone once it is read, as the kernel's messages are, comes with a checkout.
#[cfg(target_os = "linux")]
#[test]
fn a_policy_file_that_is_the_systems_is_ignored_and_not_read() {
    let place = Place::new();
    let link = place.0.path().join("relent.toml");
    for target in ["/proc/self/status", "/proc/version", "/sys/kernel/uevent_seqnum", "/proc/kmsg"] {
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(target, &link).unwrap();
        let outcome = place.outcome(&mut place.command(&["run", "--", "true"]));
        let said = "relent: relent.toml, found in this folder, is ignored: it is a file of the system's\n";
        assert_eq!((outcome.stderr.as_str(), outcome.code), (said, Some(0)), "{target}");
    }
}
