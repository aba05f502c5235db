//! The pages of `docs/` show what `relent explain` and `relent simulate` really say. `RELENT_BLESS=1` writes what can be
//! written into them.

use crate::binary::{Folder, relent};
use std::{fs, path::Path};

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The words of a command line, single quotes respected.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is one from the start").push(c),
        }
    }
    words
}

#[test]
fn explain_says_what_its_page_shows() {
    let path = docs().join("explain.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut parts: Vec<String> = page.split("```console\n$ relent ").map(str::to_owned).collect();
    for part in &mut parts[1..] {
        let (line, _) = part.split_once('\n').unwrap();
        let (_, rest) = part.split_once("\n```\n").unwrap();
        let args = words(line);
        let outcome = relent(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{line}");
        *part = format!("{line}\n{}```\n{rest}", outcome.stdout);
    }
    let told = parts.join("```console\n$ relent ");
    if std::env::var_os("RELENT_BLESS").is_some() {
        fs::write(&path, &told).unwrap();
        return;
    }
    assert!(told == page, "docs/explain.md is not what relent says (RELENT_BLESS=1 writes it)");
}

/// The page leaves lines out; those that it has are those that are printed.
#[test]
fn simulate_says_what_its_pages_show() {
    let pages = ["simulate.md", "simulate-advice.md"].map(|name| fs::read_to_string(docs().join(name)).unwrap());
    let page = pages.concat();
    assert!(pages[0].split_whitespace().count() < 1000, "docs/simulate.md is for who begins: the rest has other pages");
    let scenarios = docs().join("../crates/relent-sim/scenarios");
    let says = |name: &str| relent(&["simulate", scenarios.join(name).to_str().unwrap()]).stdout;
    let said = ["herd.toml", "storm-stays.toml", "mobile-and-batch.toml"].map(says).concat();
    let said: Vec<&str> = said.lines().collect();
    let blocks = page.split("```text\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let shown: Vec<&str> = blocks.flat_map(|(block, _)| block.lines()).filter(|line| !line.is_empty()).collect();
    assert!(shown.len() > 20, "{shown:?}");
    let untrue: Vec<&str> = shown.into_iter().filter(|line| !said.contains(line)).collect();
    assert!(untrue.is_empty(), "docs/simulate*.md have what is not said:\n{}", untrue.join("\n"));
}

#[test]
fn the_plot_on_the_page_is_the_one_that_is_drawn() {
    let path = docs().join("explain.svg");
    let folder = Folder::new();
    let drawn = folder.relent(&["explain", "--jitter", "equal", "--svg", "-"]).stdout;
    if std::env::var_os("RELENT_BLESS").is_some() {
        fs::write(&path, &drawn).unwrap();
        return;
    }
    assert!(drawn == fs::read_to_string(&path).unwrap(), "docs/explain.svg is another (RELENT_BLESS=1 writes it)");
}
