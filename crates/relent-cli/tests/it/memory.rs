//! Simulations that would not fit into what this process may have, which is less than the machine has where somebody said so.

use crate::binary::Folder;
use std::{fmt::Write, process::Command};

#[cfg(target_os = "linux")]
#[test]
fn what_does_not_fit_into_the_limit_of_a_process_is_refused() {
    let scenario = |seeds: u32, policies: u32| {
        let mut text = format!("name='n'\ntitle='t'\nseeds={seeds}\n[clients]\ncount=10\n[network]\nrtt='10ms'\n");
        text.push_str("[server]\ncapacity=50\nqueue=50\n");
        for policy in 0..policies {
            let _ = write!(text, "[policy.p{policy}]\nbase='100ms'\nmax_attempts=3\n[[run]]\npolicy='p{policy}'\n");
        }
        text
    };
    // Nobody can reckon how many wait at a server that never finds those who still wait.
    let grows = "[clients]\ncount=20000\ntimeout='1ms'\n[network]\nrtt='1ms'\n[server]\ncapacity=2\norder='lifo'\n\
                 [policy.a]\nbase='1ms'\ncap='1ms'\nmax_attempts='unlimited'\n";
    let folder = Folder::new().file("many.toml", &scenario(100_000, 20)).file("few.toml", &scenario(2, 2));
    let folder = folder.file("grows.toml", grows);
    let layers = [("a", "1s"), ("b", "1ms"), ("c", "1ms"), ("d", "1s")];
    let layers = layers.map(|(name, timeout)| format!("[[layer]]\nname='{name}'\ntimeout='{timeout}'\n"));
    let layers = format!(
        "limit='24h'\n[clients]\ncount=100\ntimeout='1h'\n[network]\nrtt='1ns'\n[server]\ncapacity=10\n\
         [[trouble]]\nat='0s'\nfor='10s'\nkind='slow'\nspeed=1e-9\nramp='1s'\n{}[policy.a]\ncurve='linear'\nbase='1ns'\n\
         max_attempts='unlimited'\n",
        layers.concat()
    );
    let folder = folder.file("layers.toml", &layers);
    let simulate = |file: &str, kib: &str| {
        let limited = "ulimit -v \"$2\"; exec \"$0\" simulate --advice never --threads 1 \"$1\"";
        let command = Command::new("sh")
            .args(["-c", limited, env!("CARGO_BIN_EXE_relent"), file, kib])
            .current_dir(folder.path())
            .output()
            .unwrap();
        (command.status.code(), String::from_utf8_lossy(&command.stderr).into_owned())
    };
    let (code, stderr) = simulate("many.toml", "1000000");
    assert_eq!(code, Some(125), "{stderr}");
    assert!(stderr.contains("GiB of memory and 0.") && stderr.contains("hint: use fewer seeds"), "{stderr}");
    assert_eq!(simulate("few.toml", "1000000").0, Some(0));
    assert_eq!(simulate("few.toml", "200000").0, Some(0), "what is small fits");
    // What is in memory at once takes addresses for twice that while it grows.
    let ends = ["100000", "150000", "200000", "250000", "500000"].map(|kib| simulate("layers.toml", kib));
    assert!(ends.iter().all(|(code, _)| matches!(code, Some(0 | 125))), "{ends:?}");
    assert!(ends[3].1.contains("GiB of addresses and 0.") && ends[4].0 == Some(0), "{ends:?}");
    let (code, stderr) = simulate("grows.toml", "350000");
    assert_eq!(code, Some(125), "{stderr}");
    assert!(stderr.starts_with("error: this takes more memory than is free"), "{stderr}");
}

/// What waits at a server is reckoned, and what nobody can reckon stops in time.
#[cfg(target_os = "linux")]
#[test]
fn queues_that_do_not_fit_are_refused_or_stop_in_time() {
    let scenario = |clients: &str, server: &str| {
        format!(
            "engine='exact'\n[clients]\n{clients}\n[network]\nrtt='10ms'\n[server]\ncapacity=100000\n{server}\n\
             [policy.a]\nbase='1s'\nmax_attempts=5\n"
        )
    };
    let stream = "rate=200000\nfor='5s'\ntimeout='1s'";
    let folder = Folder::new()
        .file("lifo.toml", &scenario("count=700000", "order='lifo'"))
        .file("admission.toml", &scenario("count=700000", "admission={}"))
        .file("line.toml", &scenario(stream, "queue=100000000"))
        .file("expired.toml", &scenario(stream, "order='lifo'\ndrop_expired=true"));
    let limited = "ulimit -v \"$2\"; exec \"$0\" simulate --advice never --threads 1 \"$1\"";
    for file in ["lifo", "admission", "line", "expired"] {
        let ends: Vec<_> = [60, 80, 100, 130, 400]
            .map(|mb| {
                let mut command = Command::new("sh");
                let args = [&format!("{file}.toml"), &format!("{mb}000")];
                command.args(["-c", limited, env!("CARGO_BIN_EXE_relent")]).args(args).current_dir(folder.path());
                let output = command.output().unwrap();
                (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
            })
            .into();
        let is_told = |(code, stderr): &(Option<i32>, String)| match code {
            Some(0) => stderr.is_empty(),
            _ => *code == Some(125) && stderr.starts_with("error: ") && stderr.contains(" free"),
        };
        assert!(ends.iter().all(is_told) && ends[4].0 == Some(0), "{file}: {ends:?}");
    }
}

/// The page takes more than the table, which is told first.
#[test]
fn a_page_that_cannot_be_made_leaves_the_table() {
    let folder = Folder::new();
    let args = ["simulate", "herd", "--clients", "5", "--capacity", "5", "--html", "missing/page.html"];
    let outcome = folder.relent(&args);
    assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("policy") && outcome.stderr.starts_with("error: cannot write"),
        "{}",
        outcome.stdout
    );
}

/// Of many populations in many runs it is most of what there is.
#[cfg(target_os = "linux")]
#[test]
fn a_page_that_does_not_fit_is_refused_before_it_is_made() {
    let mut text = "[clients]\nrate=10\nfor='100s'\n[server]\ncapacity=5000\n[policy.a]\nbase='1ms'\n".to_owned();
    for population in 0..63 {
        let _ = write!(text, "[[population]]\nname='p{population}'\nshare=0.015\n");
    }
    text.push_str("[[population]]\nname='z'\n");
    for run in 0..12 {
        let _ = write!(text, "[[run]]\nname='r{run}'\npolicy='a'\n");
    }
    let folder = Folder::new().file("page.toml", &text);
    let limited = "ulimit -v \"$1\"; exec \"$0\" simulate --advice never --threads 1 page.toml --html page.html";
    // Whatever there is, it is refused or done.
    let ends: Vec<_> = (1..=8)
        .map(|tenth| {
            let kib = (tenth * 100_000).to_string();
            let mut command = Command::new("sh");
            command.args(["-c", limited, env!("CARGO_BIN_EXE_relent"), &kib]).current_dir(folder.path());
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        })
        .collect();
    assert!(ends.iter().all(|(code, _)| matches!(code, Some(0 | 125))), "{ends:?}");
    assert!(ends[1].1.contains("hint: compare fewer policies at a time") && ends[7].0 == Some(0), "{ends:?}");
}

/// Each dot may make a table, and so may a bracket.
#[cfg(target_os = "linux")]
#[test]
fn a_file_of_dots_takes_no_memory() {
    const ARGS: [&str; 3] =
        ["simulate --advice never dots.toml", "explain --policy dots.toml", "run --policy dots.toml -- true"];
    let dots = format!("{{{}=1}},", ["a"; 75].join("."));
    for (one, args) in [dots.as_str(), "{a={b={}}},", "{a=1},"].into_iter().flat_map(|one| ARGS.map(|args| (one, args)))
    {
        let folder = Folder::new().file("dots.toml", &format!("a=[{}]", one.repeat(1_040_000 / one.len())));
        let limited = "ulimit -v 300000; exec \"$0\" $1";
        let command = Command::new("sh")
            .args(["-c", limited, env!("CARGO_BIN_EXE_relent"), args])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&command.stderr);
        let is_told = stderr.starts_with("error: the file has more than 100000 dots and brackets\n --> dots.toml:1:");
        assert!(
            is_told && command.status.code() == Some(125) && stderr.len() < 10_000,
            "{args}: {stderr:.300} {:?}",
            command.status
        );
    }
}
