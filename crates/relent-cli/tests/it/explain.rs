//! `relent explain`.

use crate::binary::{Folder, Outcome, golden, relent, shown_on, size};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

const UNIT: &str = "\
[Unit]
Description=A service
StartLimitIntervalSec=1h
StartLimitBurst=6

[Service]
ExecStart=/usr/bin/service
Restart=on-failure
RestartSec=1
RestartSteps=5
RestartMaxDelaySec=60
";

const POLICIES: &str = "\
[policy.read]
base = \"100ms\"
cap = \"10s\"
jitter = { proportional = 0.2 }
max_attempts = 5
max_elapsed = \"30s\"
attempt_timeout = \"2s\"

[policy.write]
curve = \"constant\"
base = \"5s\"
jitter = \"none\"
max_attempts = \"unlimited\"
";

#[track_caller]
fn explains(name: &str, outcome: &Outcome) {
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    golden(name, &outcome.stdout);
}

#[track_caller]
fn refuses(args: &[&str], stderr: &str) {
    let folder = Folder::new().file("unit.service", "[Service]\nRestartSec=soon\n").file("relent.toml", POLICIES);
    let outcome = folder.relent(&[&["explain"], args].concat());
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("", Some(125)), "{}", outcome.stderr);
    assert_eq!(outcome.stderr, stderr);
}

#[test]
fn the_default_policy() {
    explains("explain-default.txt", &relent(&["explain"]));
}

#[test]
fn flags_and_where_each_setting_came_from() {
    let folder = Folder::new().file("relent.toml", POLICIES);
    explains("explain-flags.txt", &folder.relent(&["explain", "--policy", "#read", "--cap", "1s", "--spread", "4s"]));
}

/// A file that lies about must not change what another system does; one that is named may.
#[test]
fn another_systems_policy_is_its_own_beside_a_file_that_was_found() {
    let folder = Folder::new().file("relent.toml", "[policy]\nmax_attempts = 2\n");
    let explain =
        |more: &[&str]| folder.relent(&[&["explain", "--compat", "google-cloud-32", "--json"], more].concat());
    let alone = relent(&["explain", "--compat", "google-cloud-32", "--json"]);
    assert_eq!(explain(&[]).stdout, alone.stdout);
    assert!(explain(&["--policy", "relent.toml"]).stdout.contains(r#""max_attempts":2"#));
}

#[test]
fn limits_of_time_show_in_the_table() {
    let args = ["explain", "--base", "1s", "--jitter", "equal", "--max-elapsed", "9s", "--max-attempts", "6"];
    explains("explain-too-late.txt", &relent(&args));
}

/// What ends a call is not asked for, and what may not be is not said.
#[test]
fn a_timeout_is_a_limit() {
    let said = |flags: &str| {
        let args: Vec<&str> = ["explain"].into_iter().chain(flags.split(' ')).collect();
        relent(&args).stdout.replace('\n', " ")
    };
    let endless = said("--max-attempts unlimited --timeout 1m --cap 2s --no-plot");
    assert!(endless.contains("After 1m its timeout ends it, an attempt under way included."), "{endless}");
    assert!(endless.contains("and so on until time is up"), "{endless}");
    assert!(!endless.contains("never ends") && !endless.contains("for ever"), "{endless}");
    let json = said("--max-attempts unlimited --timeout 1m --cap 2s --json");
    assert!(json.contains(r#""max_ms":60000}"#) && !json.contains("no_limit"), "{json}");
    let short = said("--base 50ms --cap 400ms --max-attempts 3 --attempt-timeout 800ms --timeout 2s --no-plot");
    assert!(short.contains("After 2s its timeout ends it"), "{short}");
    let over = said("--base 50ms --cap 400ms --max-attempts 3 --attempt-timeout 800ms --timeout 3s --no-plot");
    assert!(over.contains("With attempts of up to 800ms it ends within 2.55s."), "{over}");
    let elapsed = said("--max-elapsed 2s --timeout 5s --no-plot");
    assert!(!elapsed.contains("can hang"), "{elapsed}");
    let broken = said("--max-attempts unlimited --timeout 1m --breaker consecutive=5 --no-plot");
    assert!(!broken.contains("endless") && !broken.contains("never ends"), "{broken}");
    let late = said("--curve constant --base 2s --jitter none --max-attempts 3 --timeout 4s --no-plot");
    assert!(late.contains("too late") && late.contains("makes 2.0 of 3 attempts"), "{late}");
}

/// A page that says how to choose shows nothing that is warned of, where it does not mean it.
#[test]
fn what_is_there_to_paste_is_not_warned_of() {
    /// Two never end, as the page says of them; one waits for milliseconds, of which jitter leaves less.
    const MEANT: [(&str, &str); 3] = [("reconnect", "no_limit"), ("conflict", "zero_delay"), ("supervise", "no_limit")];
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/choosing.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let mut warned = Vec::new();
    for block in &blocks {
        let folder = Folder::new().file("relent.toml", block);
        let name = block.strip_prefix("[policy.").unwrap().split(']').next().unwrap();
        let outcome = folder.relent(&["explain", "--policy", &format!("relent.toml#{name}"), "--json"]);
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{name}");
        let before_each = outcome.stdout.split(r#"","level":"warning""#).collect::<Vec<_>>();
        let warnings = before_each[..before_each.len() - 1].iter().map(|before| before.rsplit('"').next().unwrap());
        warned.extend(warnings.map(|warning| (name, warning.to_owned())));
    }
    let warned: Vec<_> = warned.iter().map(|(name, warning)| (*name, warning.as_str())).collect();
    assert_eq!((blocks.len(), &warned[..]), (8, &MEANT[..]));
}

#[test]
fn a_schedule_without_end() {
    let args = ["explain", "--curve", "constant", "--base", "5s", "--max-attempts", "unlimited", "--jitter", "none"];
    explains("explain-endless.txt", &relent(&args));
}

#[test]
fn a_policy_that_does_not_retry() {
    explains("explain-once.txt", &relent(&["explain", "--max-attempts", "1"]));
}

#[test]
fn machines_get_one_object_a_policy() {
    let outcome = relent(&["explain", "--json", "--max-attempts", "3", "--kubernetes=max=20s"]);
    explains("explain.json", &outcome);
    assert_eq!(outcome.stdout.lines().count(), 2);
}

#[test]
fn machines_get_errors_as_objects() {
    let outcome = relent(&["explain", "--json", "--curl", "--retry many"]);
    let error =
        r#"{"event":"error","error":"--retry many: not a whole number","hint":"write it like --retry 5","code":125}"#;
    assert_eq!((outcome.stderr, outcome.code), (error.to_owned() + "\n", Some(125)));
}

#[test]
fn policies_side_by_side() {
    let folder = Folder::new().file("relent.toml", POLICIES);
    let args = ["explain", "--compare", "relent.toml#read", "--compare", "#write", "--jitter", "full", "--rows", "8"];
    // The flags lie over the file's only unnamed policy; with several named ones it has to be said which is meant.
    let unnamed = folder.relent(&[&args[..], &["--policy", "relent.toml"]].concat());
    assert_eq!(unnamed.code, Some(125));
    let args = ["explain", "--compare", "relent.toml#read", "--compare", "#write", "--rows", "8"];
    explains("explain-compare.txt", &folder.relent(&args));
}

#[test]
fn a_systemd_unit_and_its_drop_in() {
    let folder = Folder::new().file("my.service", UNIT);
    explains("explain-systemd.txt", &folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]));
    let stdin = folder.relent_with(&["explain", "--systemd", "-", "--no-plot"], UNIT).stdout;
    assert_eq!(
        stdin,
        folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]).stdout.replace("my.service", "unit")
    );
    let folder = folder.file("my.service.d/override.conf", "[Service]\nRestart=no\n");
    let dropped = folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]).stdout;
    assert!(dropped.contains("systemd never restarts this service"), "{dropped}");
}

/// However many there are, and though a file of a megabyte of zeros takes no room on the disk.
#[test]
fn a_unit_and_its_drop_ins_are_not_read_without_end() {
    let folder = Folder::new().file("my.service", UNIT).file("my.service.d/0.conf", "[Service]\n");
    let at = |number: usize| folder.path().join(format!("my.service.d/{number}.conf"));
    let refused = |why: &str| {
        let outcome = folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(125), format!("error: {why}\n").as_str()));
    };
    fs::File::create(at(1)).unwrap().set_len(600 << 10).unwrap();
    fs::File::create(at(2)).unwrap().set_len(600 << 10).unwrap();
    refused("the unit my.service.d/2.conf, with those before it, is longer than 1 MiB");
    (1..=500).for_each(|number| drop(fs::File::create(at(number)).unwrap()));
    refused("the unit my.service has more than 500 drop-ins");
    fs::remove_file(at(500)).unwrap();
    assert_eq!(folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]).code, Some(0));
}

/// Nobody has named what lies beside a unit, and in a shared folder anybody can lay something there.
#[test]
fn a_drop_in_of_another_user_is_ignored_with_a_note() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let folder = Folder::new().file("my.service", UNIT).file("my.service.d/w.conf", "[Service]\nRestart=no\n");
    let at = |name: &str| folder.path().join(name);
    let own = folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]).stdout;
    assert!(own.contains("systemd never restarts this service"), "{own}");
    let root = "only root can give a file away: cargo xtask test --without root";
    chown(at("my.service.d/w.conf"), Some(65534), None).expect(root);
    let ignores = || {
        let outcome = folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]);
        let said = "note: the drop-in my.service.d/w.conf is ignored: it belongs to somebody else\n";
        assert_eq!((outcome.stderr.as_str(), outcome.code), (said, Some(0)));
        assert!(!outcome.stdout.contains("systemd never restarts"), "{}", outcome.stdout);
    };
    ignores();
    // Nor one that a stranger's link leads to.
    fs::rename(at("my.service.d/w.conf"), at("own")).unwrap();
    chown(at("own"), Some(0), None).expect(root);
    symlink("../own", at("my.service.d/w.conf")).unwrap();
    std::os::unix::fs::lchown(at("my.service.d/w.conf"), Some(65534), None).expect(root);
    ignores();
    // Nor does anything else in its place hold up or end the command.
    let put: [&dyn Fn(&Path); 4] = [
        &|path| fs::create_dir(path).unwrap(),
        &|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        &|path| symlink("w.conf", path).unwrap(),
        &|path| symlink("/no/such", path).unwrap(),
    ];
    for put in put {
        let path = at("my.service.d/w.conf");
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        put(&path);
        std::os::unix::fs::lchown(&path, Some(65534), None).expect(root);
        let outcome = folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]);
        assert!(outcome.stderr.starts_with("note: the drop-in my.service.d/w.conf is ignored: it "), "{outcome:?}");
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    // Nor do many, of which few are told, nor any in a folder of theirs, whoever owns them.
    let _ = fs::remove_file(at("my.service.d/w.conf"));
    for number in 0..600 {
        let path = at(&format!("my.service.d/{number:03}.conf"));
        fs::write(&path, "[Service]\nRestart=no\n").unwrap();
        chown(path, Some(65534), None).expect(root);
    }
    let ignores = |lines: usize, last: &str| {
        let outcome = folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]);
        assert_eq!((outcome.stderr.lines().count(), outcome.code), (lines, Some(0)), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().last(), Some(last));
        assert!(!outcome.stdout.contains("systemd never restarts"), "{}", outcome.stdout);
    };
    ignores(11, "note: so are 590 more in my.service.d");
    chown(at("my.service.d"), Some(65534), None).expect(root);
    (0..600).for_each(|number| chown(at(&format!("my.service.d/{number:03}.conf")), Some(0), None).unwrap());
    ignores(1, "note: the folder my.service.d is ignored: it belongs to somebody else");
    // Nor in one where others may put what is root's.
    chown(at("my.service.d"), Some(0), None).unwrap();
    fs::set_permissions(at("my.service.d"), PermissionsExt::from_mode(0o777)).unwrap();
    ignores(1, "note: the folder my.service.d is ignored: others can write to it");
    fs::remove_dir_all(at("my.service.d")).unwrap();
    fs::create_dir(at("my.service.d")).unwrap();
    // Who owns the unit may own what belongs to it.
    fs::rename(at("own"), at("my.service.d/w.conf")).unwrap();
    chown(at("my.service.d/w.conf"), Some(65534), None).expect(root);
    chown(at("my.service"), Some(65534), None).expect(root);
    let theirs = folder.relent(&["explain", "--systemd", "my.service", "--no-plot"]).stdout;
    assert!(theirs.contains("systemd never restarts this service"), "{theirs}");
}

#[test]
fn kubernetes() {
    explains("explain-kubernetes.txt", &relent(&["explain", "--kubernetes"]));
}

#[test]
fn curl() {
    explains("explain-curl.txt", &relent(&["explain", "--curl", "--retry 5 --retry-delay 0", "--no-plot"]));
}

#[test]
fn envoy() {
    let settings = "retry_policy: {num_retries: 4, retry_back_off: {base_interval: 0.1s}}";
    explains("explain-envoy.txt", &relent(&["explain", "--envoy", settings]));
}

#[test]
fn profiles_of_other_systems() {
    explains("explain-profile.txt", &relent(&["explain", "--compat", "google-cloud", "--max-attempts", "10"]));
    let listed = relent(&["explain", "--profiles"]);
    assert!(listed.stdout.lines().any(|line| line.starts_with("celery ")), "{}", listed.stdout);
    assert_eq!(listed.stdout.lines().count(), relent(&["explain", "--profiles", "--json"]).stdout.lines().count());
    let folder = Folder::new().file("a.toml", POLICIES);
    let args = ["explain", "--compare", "a.toml#read", "--compat", "celery", "--no-plot"];
    explains("explain-compare-profile.txt", &folder.relent(&args));
}

/// What every profile is explained as: nothing may panic, hang or say nothing.
#[test]
fn every_profile_can_be_explained() {
    for name in relent::compat::all().iter().map(|profile| profile.name) {
        let outcome = relent(&["explain", "--compat", name]);
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{name}");
        assert!(outcome.stdout.contains("A call that keeps failing"), "{name}: {}", outcome.stdout);
    }
}

/// The words of a report say what its table says.
#[test]
fn profiles_do_not_contradict_themselves() {
    let told = |name| relent(&["explain", "--compat", name, "--no-plot", "--rows", "1000"]).stdout.replace('\n', " ");
    let ends = told("wechat-pay");
    assert!(ends.starts_with("wechat-pay: list of 15 delays, no jitter, 16 attempts "), "{ends}");
    assert!(ends.contains("makes 16 attempts and waits 24h4m.") && !ends.contains("never ends"), "{ends}");
    assert!(!ends.contains("for ever"), "{ends}");
    let stamina = told("stamina");
    assert!(stamina.contains("stops after      45s"), "{stamina}");
    assert!(stamina.contains("ends before that once 45s have passed, attempts included"), "{stamina}");
    let once = told("reconnecting-websocket");
    assert!(once.contains("from attempt 11 on, 100 % of clients wait the identical 10s"), "{once}");
    for (name, cap) in [("cockatiel", "30s"), ("jpillora-jitter", "10s")] {
        let nearly = told(name);
        assert!(nearly.contains(&format!("more than 99.9 % of clients wait the identical {cap}")), "{nearly}");
    }
    assert!(told("finagle-equal").contains("this profile picks start 100 ms and maximum 10 s"));
    assert!(told("envoy").contains("the system itself was not run"));
    assert!(told("svix").contains("no numbers of the system's own"));
}

#[test]
fn a_narrow_terminal() {
    let folder = Folder::new();
    let output =
        folder.command(&["explain", "--kubernetes", "--curl", "--retry 2"]).env("COLUMNS", "40").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    golden("explain-narrow.txt", &stdout);
    let body = stdout.lines().skip(2).map(|line| line.chars().count()).max();
    assert!(body <= Some(47), "{body:?}");
}

/// No part of a name begins a line as messages do, where a terminal would break the line there.
#[test]
fn names_of_policies_are_no_messages() {
    let long = format!("{} error: forged", "a".repeat(71));
    let folder = Folder::new().file("p.toml", &format!("[policy.\"{long}\"]\nbase = \"2s\"\n"));
    let file = format!("p.toml#{long}");
    for more in [&[][..], &["--compare", "p.toml"]] {
        let mut command = folder.command(&[&["explain", "--policy", &file], more].concat());
        let output = command.env("COLUMNS", "80").output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains("  error: ") && stdout.lines().all(|line| !line.starts_with("error:")), "{stdout}");
        assert!(stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
    }
}

/// Wherever it says what came from which file.
#[test]
fn a_secret_in_the_name_of_a_file_is_told_nowhere() {
    let policy =
        "[policy.x]\nupstream = \"u\"\n[upstream.u]\nbudget = { ratio = 0.1 }\nbreaker = { consecutive = 5 }\n";
    let folder = Folder::new().file("password=Hunter2Kx", policy).file("x.service", "[Service]\nRestart=always\n");
    let more = folder.path().join("password=Hunter2Kx.d/x.service.d");
    fs::create_dir_all(&more).unwrap();
    fs::write(more.join("a.conf"), "[Service]\nRestartSec=7\n").unwrap();
    fs::rename(folder.path().join("x.service"), more.with_file_name("x.service")).unwrap();
    for args in [["--policy", "password=Hunter2Kx"], ["--systemd", "password=Hunter2Kx.d/x.service"]] {
        for json in [&[][..], &["--json"]] {
            let outcome = folder.relent(&[&["explain"], &args[..], json].concat());
            assert!(outcome.code == Some(0) && outcome.stdout.contains("***"), "{outcome:?}");
            assert!(!outcome.stdout.contains("Hunter2Kx"), "{}", outcome.stdout);
        }
    }
}

#[test]
fn svg_is_the_same_each_time() {
    let folder = Folder::new();
    let args = ["explain", "--jitter", "equal", "--svg"];
    let to_file = folder.relent(&[&args[..], &["a.svg"]].concat());
    assert_eq!(to_file.code, Some(0));
    assert!(to_file.stdout.starts_with("flags: exponential"));
    let to_stdout = folder.relent(&[&args[..], &["-"]].concat());
    assert_eq!(to_stdout.stdout, folder.read("a.svg"));
    explains("explain.svg", &to_stdout);
    let several = folder.relent(&["explain", "--kubernetes", "--curl", "--retry 8", "--svg", "-"]);
    explains("explain-compare.svg", &several);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::{io::Read, process::Stdio};
    let folder = Folder::new();
    let mut child = folder.command(&["explain"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn bad_input_says_what_and_what_to_do() {
    refuses(
        &["--systemd", "none.service"],
        "error: cannot read the unit none.service: No such file or directory\n\
         hint: give the path of the file, or pipe `systemctl cat NAME` into --systemd -\n",
    );
    refuses(
        &["--systemd", "unit.service"],
        "error: unit.service, line 2: what RestartSec says is not a time span\n\
         hint: systemd writes 100ms, 5s, 5min 20s, 1h or infinity; a number alone is seconds\n",
    );
    refuses(
        &["--systemd", "relent.toml"],
        "error: relent.toml has no [Service] section\n\
         hint: give the file of a service, or pipe `systemctl cat NAME` into --systemd -\n",
    );
    refuses(&["--curl", "--retry many"], "error: --retry many: not a whole number\nhint: write it like --retry 5\n");
    refuses(
        &["--kubernetes=fast"],
        "error: \"fast\" is no option of Kubernetes' restarts\n\
         hint: use --kubernetes, --kubernetes=reduced or --kubernetes=max=30s\n",
    );
    refuses(
        &["--envoy", "base_interval=25"],
        "error: base_interval 25: the duration has no unit\n\
         hint: write it like 100ms, 1.5s, 1m30s or 2h; units are ns, us, ms, s, m, h, d\n",
    );
    refuses(
        &["--compare", "celary"],
        "error: --compare celary: there is no profile \"celary\"\nhint: did you mean celery?\n",
    );
    refuses(
        &["--policy", "#read", "--compat", "nothing-like-it"],
        "error: --compat: there is no profile \"nothing-like-it\"\n\
         hint: relent explain --profiles lists them; so do relent::compat::all() and COMPARE.md\n",
    );
    refuses(
        &["--compare", "none.toml#x"],
        "error: cannot read the policy file \"none.toml\": No such file or directory\n\
         hint: a policy file is named by --policy FILE or FILE#NAME\n",
    );
    refuses(
        &["--compare", "relent.toml#raed"],
        "error: relent.toml: the file has no policy \"raed\"\nhint: it has read, write\n",
    );
    refuses(
        &["--policy", "#read", "--svg", "none/a.svg"],
        "error: cannot write the plot to none/a.svg: No such file or directory\n\
         hint: the folder must exist and be writable; --svg - writes to stdout\n",
    );
    refuses(
        &["--policy", "#read", "--cap", "1ms"],
        "error: --cap: the cap is shorter than the base\nhint: raise the cap or lower the base\n",
    );
    refuses(
        &["--policy", "relent.toml"],
        "error: relent.toml: the file has several policies: read, write\nhint: name one: --policy FILE#NAME\n",
    );
}

/// Names that others chose move no cursor, begin no line and turn no reading order around.
#[test]
fn names_of_others_are_shown_and_not_obeyed() {
    let bad = "x\u{1b}[2J\nerror: forged\u{202e}\u{9b}";
    let quoted = "\"x\\u001b[2J\\nerror: forged\\u202e\\u009b\"";
    let file = format!("[policy.{quoted}]\nbase = \"1s\"\n[policy.other]\nbase = \"2s\"\n");
    let unit = "[Service]\nRestart=always\nRestartSec=1\n";
    let folder = Folder::new().file("p.toml", &file).file(&format!("{bad}.service"), unit);
    let named = format!("p.toml#{bad}");
    for args in [
        &["explain", "--policy", &named][..],
        &["explain", "--compare", &named, "--compare", "celery"],
        &["explain", "--policy", &named, "--svg", "-"],
        &["explain", "--policy", &named, "--json"],
        &["explain", "--systemd", &format!("{bad}.service")],
        &["explain", "-v", "--policy", &named],
        &["explain", "--policy", "p.toml"],
    ] {
        let Outcome { stdout, stderr, .. } = folder.relent(args);
        let text = stdout + &stderr;
        // Of the name of a file no more is told than what is harmless; that of a policy is what somebody chose.
        assert!(text.contains("forged") || args.contains(&"--systemd"), "{args:?}: {text}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{args:?}: {text}");
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.chars().any(obeyed), "{args:?}: {text}");
    }
}

#[test]
fn a_terminal_without_utf_8_gets_ascii() {
    for args in [
        &["explain", "--jitter", "proportional=0.2"][..],
        &["explain", "--compare", "celery", "--compare", "cenkalti-v4"],
        &["explain", "--kubernetes"],
    ] {
        let folder = Folder::new();
        let plain = folder.command(args).env("LC_ALL", "C").output().unwrap();
        assert!(plain.stdout.is_ascii(), "{}", String::from_utf8_lossy(&plain.stdout));
        let shown = String::from_utf8(plain.stdout).unwrap();
        assert!(shown.contains("**") && !shown.contains("\\u{"), "{shown}");
    }
}

/// Nobody waits for a pipe that nobody reads, or reads a device without end; a pipe of a shell is taken, and of one that nobody
/// writes to yet the writer waited for, until a signal.
#[test]
fn special_files_are_no_trouble() {
    let folder = Folder::new();
    nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (args, problem) in [
        (["--systemd", "/dev/zero"], "error: cannot read the unit /dev/zero: it is a device, and no file"),
        (["--svg", "pipe"], "error: cannot write the plot to pipe: it is a named pipe that nobody reads"),
        (["--svg", "/dev/full"], "error: cannot write the plot to /dev/full: No space left on device"),
    ] {
        let outcome = folder.relent(&["explain", args[0], args[1]]);
        assert_eq!((outcome.stderr.lines().next(), outcome.code), (Some(problem), Some(125)), "{args:?}");
    }
    let endless = folder.relent(&["simulate", "/dev/zero"]);
    assert!(endless.stderr.contains("it is a device, and no file"), "{}", endless.stderr);
    let unit = "printf '[Service]\\nRestart=always\\n'";
    let line = format!("{} explain --no-plot --systemd <({unit})", env!("CARGO_BIN_EXE_relent"));
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for (args, text, status) in [
        ("explain --no-plot --systemd", Some("[Service]\nRestart=always\n"), Some(0)),
        ("simulate", Some("[clients]\ncount=5\n[server]\ncapacity=5\n[policy.a]\nbase='1s'\n"), Some(0)),
        ("explain --systemd", None, None),
        ("simulate", None, None),
    ] {
        let mut waits = Command::new(env!("CARGO_BIN_EXE_relent"))
            .args(args.split(' '))
            .arg(folder.path().join("pipe"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(waits.try_wait().unwrap(), None, "{args}");
        match text {
            Some(text) => fs::write(folder.path().join("pipe"), text).unwrap(),
            None => kill(Pid::from_raw(waits.id() as i32), Signal::SIGINT).unwrap(),
        }
        assert_eq!(waits.wait().unwrap().code(), status, "{args}");
    }
}

/// What `-q` and `-v` mean everywhere.
#[test]
fn quiet_and_verbose_are_flags_here_too() {
    let folder = || Folder::new().file("relent.toml", "[policy]\nbase = '1x'\n");
    let said = |args: &[&str]| folder().relent(args).stderr;
    assert!(said(&["explain", "--cap", "9s"]).starts_with("note: relent.toml, found in this folder, is ignored: "));
    assert_eq!(said(&["explain", "-q", "--cap", "9s"]), "");
    assert!(said(&["explain", "-v", "--compat", "celery"]).starts_with("relent: policy celery: "));
    let simulate = ["simulate", "aws", "--clients", "2", "--seeds", "1", "--advice", "never"];
    assert_eq!(said(&[&simulate[..], &["-q"]].concat()), "");
    assert!(said(&[&simulate[..], &["-v"]].concat()).starts_with("relent: policy none: "));
}

/// A drawing is text, too, where it is a terminal that gets it.
#[test]
fn no_part_of_a_name_begins_a_line_of_a_drawing_on_a_terminal() {
    for begin in 0..40 {
        let name = format!("{} error: forged", "x".repeat(begin));
        let folder = Folder::new().file("p.toml", &format!("[policy.\"{name}\"]\nbase = '1s'\n"));
        let mut command = folder.command(&["explain", "--policy", &format!("p.toml#{name}"), "--svg", "-"]);
        command.stderr(Stdio::null());
        let (shown, code) = shown_on(Some(&size(24, 80)), |terminal| command.stdout(terminal));
        assert!(code == Some(0) && shown.contains("forged"), "{code:?}: {shown}");
        let begins =
            |line: &str| line.is_ascii() && (0..line.len()).step_by(80).any(|at| line[at..].starts_with("error:"));
        assert!(!shown.lines().any(begins), "{begin}: {shown}");
    }
}
