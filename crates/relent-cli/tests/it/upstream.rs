//! What protects the far side: the flags, the file, `explain`, and `run` that obeys it.

use crate::binary::{Folder, golden, relent, shown_on, size};
use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

const BANK: &str = "\
[policy.pay]
curve = \"immediate\"
max_attempts = 9
upstream = \"bank\"

[policy.read]
base = \"1ms\"
jitter = \"none\"
max_attempts = 3

[upstream.bank]
budget = { grpc = 10, token_ratio = 0.1 }
breaker = { consecutive = 20, open_for = \"30s\" }

[upstream.shop]
limit = { rate = 100, burst = 10 }
hedge = { after = \"50ms\" }
";

#[track_caller]
fn explains(name: &str, args: &[&str]) {
    let folder = if args.contains(&"--policy") { Folder::new().file("relent.toml", BANK) } else { Folder::new() };
    let outcome = folder.relent(&[&["explain"], args].concat());
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    golden(name, &outcome.stdout);
}

#[track_caller]
fn refuses(args: &[&str], stderr: &str) {
    let folder = Folder::new().file("relent.toml", BANK);
    let outcome = folder.relent(args);
    assert_eq!((outcome.stderr.as_str(), outcome.stdout.as_str(), outcome.code), (stderr, "", Some(125)), "{args:?}");
}

#[test]
fn explain_shows_what_a_budget_and_a_breaker_allow() {
    let flags =
        ["--budget", "ratio=0.1,min_per_second=1", "--breaker", "consecutive=5,open_for=30s,factor=2,jitter=0.2"];
    explains("explain-upstream.txt", &[&["--base", "100ms", "--max-attempts", "3"], &flags[..]].concat());
}

#[test]
fn explain_shows_the_upstream_of_the_file_and_what_flags_change() {
    explains("explain-upstream-file.txt", &["--policy", "#pay", "--no-plot"]);
    explains("explain-upstream-over.txt", &["--policy", "#pay", "--no-plot", "--budget", "sre", "--breaker", "none"]);
    explains("explain-upstream-named.txt", &["--policy", "#read", "--upstream", "shop", "--no-plot"]);
}

#[test]
fn machines_get_the_upstream_in_the_policys_object() {
    explains("explain-upstream.json", &["--policy", "#pay", "--json", "--load", "10"]);
}

#[test]
fn the_plot_of_an_upstream_is_the_same_each_time() {
    let flags = ["--budget", "ratio=0.1", "--max-attempts", "3", "--svg", "-"];
    explains("explain-upstream.svg", &flags);
}

/// Three layers with three attempts each make 27, with a budget of a tenth 1.331.
#[test]
fn layers_multiply() {
    let told = |args: &[&str]| {
        let fixed = ["explain", "--no-plot", "--max-attempts", "3", "--layers", "3"];
        relent(&[&fixed[..], args].concat()).stdout.replace('\n', " ")
    };
    let bare = told(&[]);
    assert!(bare.contains("a call of the first becomes 27 attempts at the last"), "{bare}");
    assert!(bare.contains("warning: retries multiply: 3 layers make up to 27 attempts of one call"), "{bare}");
    let paid = told(&["--budget", "ratio=0.1"]);
    assert!(
        paid.contains("becomes 1.331 attempts at the last when every attempt fails; without what protects them 27.")
    );
    assert!(!paid.contains("multiply"), "{paid}");
}

#[test]
fn the_numbers_of_other_systems() {
    let told = |args: &[&str]| relent(&[&["explain", "--no-plot"], args].concat()).stdout.replace('\n', " ");
    let aws = told(&["--budget", "aws-2.1"]);
    assert!(aws.contains("gets 35 retries in all (500 tokens, 14 a retry), 100 if it throttles"), "{aws}");
    assert!(told(&["--budget", "aws-2.0"]).contains("gets 100 retries in all (500 tokens, 5 a retry)"));
    assert!(told(&["--budget", "finagle"]).contains("Up to 100 retries may come at once without any call."));
    assert!(told(&["--budget", "grpc-a6"]).contains("Retries stop at failure 5 in a row"));
    assert!(told(&["--budget", "ratio=0.1"]).contains("allows 11 retries a second."));
    assert!(told(&["--breaker", "gobreaker"]).contains("trips after 6 failures in a row"));
}

/// What a file that was only found has said, and will not be done.
#[test]
fn explain_says_what_of_a_file_is_left_out() {
    let file = "[policy]\nupstream = 'bank'\n[upstream.bank]\nstore = 'sqlite:s.db'\nhedge = { after = '1us' }\n";
    let folder = Folder::new().file("relent.toml", file);
    let uses = "of upstream \"bank\" in relent.toml is left out: --policy relent.toml uses it\n";
    let said = format!("note: the store {uses}note: the hedge, which asks for many attempts at once, {uses}");
    let outcome = folder.relent(&["explain", "--no-plot"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), (said.as_str(), Some(0)), "{outcome:?}");
    assert!(!outcome.stdout.contains("hedge"), "{outcome:?}");
    for args in [&["explain", "-q"][..], &["explain", "--policy", "relent.toml"]] {
        assert_eq!(folder.relent(args).stderr, "", "{args:?}");
    }
}

#[test]
fn combinations_that_hurt_are_warned_of() {
    let told = |args: &[&str]| relent(&[&["explain", "--no-plot"], args].concat()).stdout.replace('\n', " ");
    let hedge = told(&["--hedge", "after=50ms"]);
    assert!(hedge.contains("warning: hedges have no budget: a far side that is slow gets up to 2 attempts"), "{hedge}");
    let floor = told(&["--budget", "ratio=0.1,min_per_second=0"]);
    assert!(floor.contains("warning: the budget has no floor: with fewer than 10 calls in 10s"), "{floor}");
    let short = told(&["--breaker", "consecutive=5,open_for=1s", "--curve", "constant", "--base", "10s"]);
    assert!(short.contains("warning: the breaker is too short: 7 of 7 retries wait for longer than the 1s"), "{short}");
    let endless = told(&["--breaker", "polly", "--max-attempts", "unlimited", "--base", "10s"]);
    assert!(endless.contains("warning: endless retries have no budget"), "{endless}");
}

#[test]
fn bad_flags_say_what_and_why() {
    refuses(
        &["explain", "--budget", "ratio=1.5"],
        "error: invalid value 'ratio=1.5' for '--budget <BUDGET>': the ratio is not between 0 and 1\n\
         hint: 0.1 allows a retry for every tenth call\n",
    );
    refuses(
        &["explain", "--breaker", "consecutive=5,open_for=30"],
        "error: invalid value 'consecutive=5,open_for=30' for '--breaker <BREAKER>': open_for: the duration has no unit\n\
         hint: write it like 100ms, 1.5s, 1m30s or 2h; units are ns, us, ms, s, m, h, d\n",
    );
    refuses(
        &["explain", "--limit", "rate=18446744073709551616"],
        "error: invalid value 'rate=18446744073709551616' for '--limit <LIMIT>': rate: 18446744073709551616 is too \
         large\nhint: use at most 4294967295\n",
    );
    refuses(
        &["explain", "--hedge", "quantile=nan"],
        "error: invalid value 'quantile=nan' for '--hedge <HEDGE>': the quantile is not between 0 and 1\n\
         hint: 0.95 hedges one call in twenty\n",
    );
    refuses(
        &["explain", "--breaker", "poly"],
        "error: invalid value 'poly' for '--breaker <BREAKER>': there is no breaker \"poly\"\n\
         hint: did you mean \"polly\"?\n",
    );
    refuses(
        &["explain", "--policy", "#read", "--upstream", "banks"],
        "error: --upstream banks: the file has no upstream \"banks\"\nhint: did you mean \"bank\"?\n",
    );
    refuses(
        &["explain", "--load", "0"],
        "error: invalid value '0' for '--load <NUMBER>': a load of 0 calls a second is not possible\n\
         hint: write it like 100: calls a second, above 0 and up to 1000000000\n",
    );
    refuses(
        &["explain", "--compare", "celery", "--compare", "stamina", "--budget", "sre"],
        "error: an upstream is explained with one policy, and there are several\n\
         hint: leave out either --compare or the flags of the upstream\n",
    );
    refuses(
        &["run", "--policy", "#read", "--hedge", "after=50ms", "--", "true"],
        "error: --hedge: a command runs once at a time\n\
         hint: leave --hedge out; a hedge is for calls that are safe to run twice at once\n",
    );
}

/// A line that a name forges would be taken for relent's own.
#[test]
fn a_name_begins_no_line() {
    let folder = Folder::new();
    let text = "[upstream.\"bank\\nerror: forged\"]\nbudget = { ratio = 0.1 }\n[policy]\nmax_attempts = 2\n\
                upstream = \"bank\\nerror: forged\"\n";
    std::fs::write(folder.path().join("u.toml"), text).unwrap();
    let outcome = folder.relent(&["explain", "--policy", "u.toml"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("forged"), "{}", outcome.stdout);
    assert!(!outcome.stdout.lines().any(|line| line.starts_with("error: forged")), "{}", outcome.stdout);
}

/// One that obeys nothing gets lines, and breaks them where it likes.
#[test]
fn on_a_dumb_terminal_no_part_of_a_name_begins_a_line() {
    let folder = Folder::new();
    let name = format!("{}error:forged", "a".repeat(80 - "2026-11-29T09:03:26Z ".len()));
    let opened = folder.relent(&["upstream", "open", &name, "--store", "sqlite:s.db"]);
    assert_eq!(opened.code, Some(0), "{}", opened.stderr);
    let mut command = folder.command(&["upstream", "watch", "--times", "1", "--store", "sqlite:s.db"]);
    command.env("TERM", "dumb").stderr(std::process::Stdio::null());
    let (shown, code) = shown_on(Some(&size(24, 80)), |terminal| command.stdout(terminal));
    assert!(code == Some(0) && shown.contains("error:forged") && !shown.contains('\u{1b}'), "{code:?}: {shown:?}");
    let begins = |line: &str| (0..line.len()).step_by(80).any(|at| line[at..].starts_with("error:"));
    assert!(!shown.lines().any(begins), "{shown}");
}

#[test]
fn a_hint_shows_no_password() {
    let outcome = relent(&["run", "--upstream", "http://ann:s3cret@host/", "--", "true"]);
    assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
}

/// What is proposed for typing does what it says and nothing else, whatever somebody has called a thing.
#[test]
fn a_name_in_what_is_proposed_is_one_word_of_a_shell() {
    let text = "[policy.\"x y; touch pwned\"]\nupstream = \"bank\"\n[upstream.bank]\nstore = \"sqlite:s.db\"\n";
    let folder = Folder::new().file("relent.toml", text);
    let told = folder.relent(&["run", "--policy", "#x y; touch pwned", "--", "true"]).stderr;
    assert!(told.contains(": --policy 'relent.toml#x y; touch pwned' uses it\n"), "{told}");
    let held = folder.relent(&["upstream", "open", "it's; touch b", "--store", "sqlite:s.db"]);
    assert_eq!(held.code, Some(0), "{}", held.stderr);
    assert!(
        held.stdout.contains(", until relent upstream release 'it'\\''s; touch b' --store sqlite:s.db"),
        "{held:?}"
    );
    let held = folder.relent(&["upstream", "open", "--store=sqlite:s.db", "--", "$(x)"]).stdout;
    assert!(held.contains(", until relent upstream release '$(x)' --store sqlite:s.db"), "{held}");
    let flag = folder.relent(&["upstream", "open", "--store=sqlite:s.db", "--", "--store"]).stdout;
    assert!(flag.contains(", until relent upstream release --store sqlite:s.db -- --store"), "{flag}");
    let secret = folder.relent(&["upstream", "open", "ann:pw@h", "--store", "sqlite:s.db"]).stdout;
    assert!(secret.contains(", until relent upstream release lets it go ("), "{secret}");
    let none = folder.relent(&["run", "--policy", "relent.toml", "--upstream", "a b", "--", "true"]).stderr;
    assert!(none.starts_with("error: --upstream 'a b': "), "{none}");
}

/// gRPC's budget of 10 tokens stops at the fifth failure; the command's own status is kept.
#[test]
fn a_run_that_its_budget_stops_says_so_and_exits_as_the_command_did() {
    let folder = Folder::new().file("relent.toml", BANK);
    let outcome = folder.relent(&["run", "--policy", "#pay", "--", "sh", "-c", "echo >> attempts; exit 7"]);
    assert_eq!(outcome.code, Some(7), "{}", outcome.stderr);
    assert_eq!(folder.read("attempts").lines().count(), 5);
    assert!(outcome.stderr.contains("relent: bank: its grpc budget allows no retry now\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("out of retry budget"), "{}", outcome.stderr);
}

#[test]
fn a_run_that_its_breaker_stops_says_when_to_ask_again() {
    let folder = Folder::new();
    let flags = ["run", "--curve", "immediate", "--breaker", "consecutive=2,open_for=1h"];
    let outcome = folder.relent(&[&flags[..], &["--", "sh", "-c", "echo >> attempts; exit 9"]].concat());
    assert_eq!(outcome.code, Some(9), "{}", outcome.stderr);
    assert_eq!(folder.read("attempts").lines().count(), 2);
    assert!(outcome.stderr.contains("relent: upstream: breaker open; ask again in "), "{}", outcome.stderr);
}

#[test]
fn a_budget_that_is_not_used_up_changes_nothing() {
    let with = |flags: &[&str]| {
        let fixed = ["run", "--base", "1ms", "--jitter", "none", "--max-attempts", "3", "--seed", "1"];
        let outcome = relent(&[&fixed[..], flags, &["--", "sh", "-c", "exit 3"]].concat());
        (outcome.code, outcome.stderr.lines().count())
    };
    assert_eq!(with(&[]), with(&["--budget", "ratio=0.1", "--breaker", "consecutive=5", "--limit", "rate=1000"]));
}

#[test]
fn the_help_of_an_upstream() {
    let outcome = relent(&["help", "upstream"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    golden("help-upstream.txt", &outcome.stdout);
    assert!(outcome.stdout.lines().all(|line| line.chars().count() <= 100), "{}", outcome.stdout);
}

/// gRPC's budget pays for four retries; thirty repetitions of what succeeds are none.
#[test]
fn repetitions_that_were_asked_for_cost_the_budget_nothing() {
    let flags = ["run", "--curve", "immediate", "--max-attempts", "40", "--budget", "grpc=10", "--consecutive", "30"];
    let outcome = relent(&[&flags[..], &["--", "true"]].concat());
    assert_eq!((outcome.code, outcome.stderr.contains("budget")), (Some(0), false), "{}", outcome.stderr);
    let fails = relent(&[&flags[..], &["--", "false"]].concat());
    assert!(fails.stderr.contains("its grpc budget allows no retry now"), "{}", fails.stderr);
}

#[test]
fn a_run_says_that_it_leaves_out_the_hedge_of_a_file() {
    let folder = Folder::new().file("relent.toml", BANK);
    let outcome = folder.relent(&["run", "--policy", "#read", "--upstream", "shop", "--", "true"]);
    let said = "relent: shop: its hedge is left out: a command runs once at a time\n";
    assert_eq!((outcome.stderr.as_str(), outcome.code), (said, Some(0)));
    let outcome = folder.relent(&["run", "--policy", "#pay", "--", "true"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "there is none");
}

/// A retry costs five of twenty tokens, and fifteen after a timeout.
#[test]
fn a_run_tells_the_upstream_of_timeouts() {
    let quota = "aws_quota=20,cost=5,throttling_cost=5,timeout_cost=15";
    let flags = ["run", "--curve", "immediate", "--attempt-timeout", "60ms", "--grace", "0s", "--budget", quota];
    let folder = Folder::new();
    let outcome = folder.relent(&[&flags[..], &["--", "sh", "-c", "echo >> attempts; exec sleep 9"]].concat());
    assert!(outcome.stderr.contains("its aws_quota budget allows no retry now"), "{}", outcome.stderr);
    assert_eq!(folder.read("attempts").lines().count(), 2, "{}", outcome.stderr);
}

#[test]
fn completions_know_the_flags_that_help_does_not_show() {
    for shell in ["bash", "zsh", "fish"] {
        let script = relent(&["completions", shell]).stdout;
        for flag in ["upstream", "budget", "breaker", "hedge", "curve", "jitter"] {
            assert!(script.contains(flag), "{shell} does not complete --{flag}");
        }
    }
}

#[test]
fn simulate_shows_a_policy_without_and_with_what_protects() {
    let herd = ["simulate", "herd", "--clients", "2000", "--capacity", "100", "--advice", "never"];
    let told = |args: &[&str]| {
        let outcome = relent(&[&herd[..], args].concat());
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{args:?}");
        outcome.stdout
    };
    let paced = told(&["--pacer"]);
    let lines = paced.lines().skip(1).filter(|line| !line.is_empty());
    let names: Vec<&str> = lines.filter_map(|line| line.split("  ").next()).take(4).collect();
    assert_eq!(names, ["policy", "ideal", "full", "full + pacer"], "{paced}");
    let both = told(&["--admission", "--pacer", "horizon=60s", "--budget", "ratio=0.1", "--max-attempts", "4"]);
    assert!(both.contains("exponential full + pacer, admission, budget"), "{both}");
    let open =
        relent(&["simulate", "open", "--for", "20s", "--advice", "never", "--limiter", "rate=400", "--processes", "1"]);
    assert!(open.stdout.contains("immediate + limit"), "{}{}", open.stdout, open.stderr);
    let wrong = relent(&["simulate", "herd", "--limit", "rate=100"]);
    assert!(wrong.stderr.contains("a limit of attempts is --limiter here"), "{}", wrong.stderr);
}

/// Where nobody listens: a port that was ours a moment ago.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

#[test]
fn connecting_heeds_the_upstream_of_file_and_flags() {
    let folder = Folder::new().file("relent.toml", BANK);
    let target = nobody();
    let by_budget = folder.relent(&["connect", "--policy", "#pay", &target]);
    assert_eq!(by_budget.code, Some(1), "{}", by_budget.stderr);
    assert!(by_budget.stderr.contains(&format!("{target}: bank: its grpc budget allows no retry now\n")));
    assert!(by_budget.stderr.contains(&format!("{target}: gave up after 5 attempts in ")), "{}", by_budget.stderr);
    let breaker = ["connect", "--curve", "immediate", "--breaker", "consecutive=2,open_for=1h", &target];
    let open = relent(&breaker);
    assert!(
        open.stderr.contains("gave up after 2 attempts") && open.stderr.contains(": breaker open\n"),
        "{}",
        open.stderr
    );
    assert!(open.stderr.contains("upstream: breaker open; ask again in "), "{}", open.stderr);
    let json = relent(&[&breaker[..], &["--json"]].concat()).stderr;
    assert!(json.contains("{\"event\":\"remark\",\"target\""), "{json}");
    assert!(json.contains("\"outcome\":\"gave_up\"") && json.contains("\"reason\":\"open\""), "{json}");
}

/// Five a second, and none in store: the third attempt starts after 400 ms at the earliest.
#[test]
fn a_limit_makes_every_command_wait() {
    const LIMIT: [&str; 6] = ["--curve", "immediate", "--max-attempts", "3", "--limit", "rate=5,burst=1"];
    let (target, busy) = (nobody(), answers("503 Busy"));
    for args in [&["run", "--", "false"][..], &["http", &busy], &["connect", &target]] {
        let began = std::time::Instant::now();
        let outcome = relent(&[&args[..1], &LIMIT, &args[1..]].concat());
        assert!(outcome.stderr.contains("after 3 attempts"), "{}", outcome.stderr);
        assert!(began.elapsed() >= std::time::Duration::from_millis(390), "{args:?}: {:?}", began.elapsed());
    }
    // Who may not wait for so long is told so, and how long it is.
    let late = relent(&["run", "--limit", "rate=1,per=1h,burst=1", "--base", "1ms", "--timeout", "9s", "--", "false"]);
    assert!(late.stderr.contains("upstream: ") && !late.stderr.contains("after 2 attempts"), "{}", late.stderr);
}

/// By its name, whatever policy there is; the file's breaker is one for all attempts of the call.
#[test]
fn an_upstream_of_the_file_is_chosen_by_its_name() {
    let file = "[upstream.bank]\nbreaker = { consecutive = 2, open_for = \"1h\" }\nlimit = { concurrency = 1 }\n\
                hedge = { after = \"50ms\" }\n";
    let folder = Folder::new().file("bank.toml", file);
    let (target, busy) = (nobody(), answers("503 Busy"));
    for args in [&["run", "--", "false"][..], &["http", &busy], &["connect", &target]] {
        let flags = ["--policy", "bank.toml", "--upstream", "bank", "--curve", "immediate"];
        let outcome = folder.relent(&[&args[..1], &flags, &args[1..]].concat());
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("bank: breaker open; ask again in "), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("gave up after 2 attempts"), "{}", outcome.stderr);
    }
}

#[test]
fn what_is_wrong_with_an_upstream_is_shown_where_it_stands() {
    for (line, problem, hint) in [
        ("budget = { ratio = nan }", "the ratio is not between 0 and 1", "0.1 allows a retry"),
        ("budget = { ratio = -0.1 }", "the ratio is not between 0 and 1", "0.1 allows a retry"),
        ("budget = { ratio = 0.1, windo = \"1s\" }", "\"windo\"", "did you mean \"window\"?"),
        ("budget = { ratio = 0.1, window = \"0s\" }", "window", ""),
        ("breaker = { consecutive = 0 }", "no failure in a row trips", ""),
        ("breaker = { share = 0.5, window = \"0s\" }", "window", ""),
        ("limit = { rate = -1 }", "rate", ""),
        ("limit = { rate = 10, per = \"0s\" }", "per", ""),
        ("hedge = { quantile = 2.0 }", "the quantile is not between 0 and 1", "0.95 hedges one call in twenty"),
        ("limmit = { rate = 1 }", "\"limmit\"", "did you mean \"limit\"?"),
    ] {
        let folder = Folder::new().file("p.toml", &format!("[upstream.bank]\n{line}\n"));
        for command in [&["run", "--", "true"][..], &["http", "http://127.0.0.1:1/"], &["connect", "127.0.0.1:1"]] {
            let args = [&command[..1], &["--policy", "p.toml", "--upstream", "bank"], &command[1..]].concat();
            let outcome = folder.relent(&args);
            let (told, hints) = outcome.stderr.split_once("hint: ").unwrap_or((&outcome.stderr, ""));
            assert_eq!(outcome.code, Some(125), "{line}: {}", outcome.stderr);
            assert!(told.contains(problem) && hints.contains(hint) && !hints.is_empty(), "{line}: {}", outcome.stderr);
            // The line, and a mark below what is wrong in it.
            let mark = |text: &str| text.trim_start_matches([' ', '|']).starts_with('^');
            assert!(told.contains(line) && told.lines().any(mark), "{line}: {}", outcome.stderr);
        }
    }
}

/// One that is down opens no breaker of another.
#[test]
fn targets_are_far_sides_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (good, bad) = (listener.local_addr().expect("an address").to_string(), nobody());
    let flags = ["connect", "--any", "--curve", "immediate", "--breaker", "consecutive=1,open_for=1h"];
    assert_eq!(relent(&[&flags[..], &[&bad, &good]].concat()).code, Some(0));
}

/// Answers every request with this status, and counts nothing.
fn answers(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    url
}

#[test]
fn http_heeds_the_upstream_of_file_and_flags() {
    let folder = Folder::new().file("relent.toml", BANK);
    let busy = answers("503 Busy");
    let by_budget = folder.relent(&["http", "--policy", "#pay", &busy]);
    assert_eq!(by_budget.code, Some(1), "{}", by_budget.stderr);
    assert!(by_budget.stderr.contains("relent: bank: its grpc budget allows no retry now\n"), "{}", by_budget.stderr);
    assert!(by_budget.stderr.contains("error: gave up after 5 attempts in "), "{}", by_budget.stderr);
    let breaker = ["http", "--curve", "immediate", "--breaker", "consecutive=2,open_for=1h", &busy];
    let open = relent(&breaker);
    assert_eq!(open.code, Some(1), "{}", open.stderr);
    assert!(open.stderr.contains("upstream: breaker open; ask again in "), "{}", open.stderr);
    assert!(open.stderr.contains("gave up after 2 attempts") && open.stderr.contains("(503 "), "{}", open.stderr);
    let told = relent(&[&breaker[..], &["-v"]].concat()).stderr;
    assert!(told.contains("relent: upstream: 2 attempts, 1 retry; breaker open\n"), "{told}");
    let json = relent(&[&breaker[..], &["--json"]].concat()).stderr;
    assert!(json.contains("{\"event\":\"upstream\",\"upstream\":\"upstream\",\"attempts\":2,\"retries\":1"), "{json}");
    let fine = relent(&["http", "--budget", "sre", "--limit", "rate=1000", &answers("200 OK")]);
    assert_eq!((fine.code, fine.stderr.as_str()), (Some(0), ""));
}

/// An answer that says not to come back is no sign of load: it opens nothing.
#[test]
fn a_permanent_answer_is_no_failure_of_the_server() {
    let gone = answers("404 Not Found");
    let told = relent(&["http", "-v", "--breaker", "consecutive=1,open_for=1h", &gone]);
    assert!(told.stderr.contains("upstream: 1 attempt, 0 retries; breaker closed"), "{}", told.stderr);
}
