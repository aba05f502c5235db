//! What holds for all pages: links lead somewhere, policies that are shown can be read, commands that are shown have flags
//! that exist.

use crate::binary::Folder;
use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there")
}

/// All pages that are for users, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let root = root();
    let folders = [root.clone(), root.join("docs")];
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("the folder is there"))
        .map(|entry| entry.expect("it can be listed").path());
    let mut pages: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    pages.push(root.join("crates/relent/src/cookbook.md"));
    pages.sort();
    pages.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a page is text"))).collect()
}

/// The blocks of a page in one language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    let begun = page.split(opening.as_str()).skip(1);
    begun.map(|rest| rest.split_once("\n```").expect("a block is closed").0).collect()
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut lost = Vec::new();
    for (path, page) in pages() {
        for (at, _) in page.match_indices("](") {
            let target = page[at + 2..].split([')', ' ']).next().unwrap();
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            if file.contains("://") || (file.is_empty() && place.is_empty()) {
                continue;
            }
            let there = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let text = fs::read_to_string(&there).unwrap_or_default();
            let found = there.exists()
                && (place.is_empty() || text.lines().any(|line| line.starts_with('#') && anchor(line) == place));
            if !found {
                lost.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

#[test]
fn policies_that_are_shown_can_be_read() {
    let mut read = 0;
    for (path, page) in pages() {
        // A scenario has policies, too, and more tables; other tests read those.
        let is_policies = |block: &&str| {
            let mut tables = block.lines().filter(|line| line.starts_with('['));
            block.contains("[policy") && tables.all(|line| line.starts_with("[policy") || line.starts_with("[upstream"))
        };
        for block in blocks(&page, "toml").into_iter().filter(is_policies) {
            let folder = Folder::new().file("relent.toml", block);
            let tables = block.lines().filter_map(|line| line.trim().strip_prefix("[policy")?.split_once(']'));
            for (name, _) in tables {
                let policy = format!("relent.toml{}", name.replacen('.', "#", 1));
                let outcome = folder.relent(&["explain", "--policy", &policy, "--no-plot"]);
                assert_eq!(outcome.code, Some(0), "{}: {policy}\n{}", path.display(), outcome.stderr);
                read += 1;
            }
        }
    }
    assert!(read >= 10, "only {read} policies were found");
}

/// The long flags that a command has.
fn flags(command: &str) -> Vec<String> {
    let folder = Folder::new();
    let mut help = folder.relent(&[command, "--help"]).stdout;
    // Commands below it.
    let below =
        help.split_once("Commands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest)).to_owned();
    for name in below.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        help += &folder.relent(&[command, name, "--help"]).stdout;
    }
    help += &folder.relent(&["help", "policy"]).stdout;
    if ["run", "http", "connect", "explain"].contains(&command) {
        help += &folder.relent(&["help", "upstream"]).stdout;
    }
    if command == "run" {
        help += &folder.relent(&["help", "lease"]).stdout;
    }
    let words = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn commands_that_are_shown_have_flags_that_exist() {
    const COMMANDS: [&str; 5] = ["run", "http", "connect", "explain", "simulate"];
    let known = COMMANDS.map(flags);
    let mut unknown = Vec::new();
    let mut seen = 0;
    for (path, page) in pages() {
        let page = page.replace("\\\n", " ");
        for (at, _) in page.match_indices("relent ") {
            let line = page[at + 7..].split(['\n', '`', '|', ';']).next().unwrap();
            // What stands behind `--` belongs to another command.
            let mut words = line.split(" -- ").next().unwrap().split_whitespace();
            let Some(place) = words.next().and_then(|word| COMMANDS.iter().position(|command| *command == word)) else {
                continue;
            };
            seen += 1;
            for flag in words.filter(|word| word.starts_with("--") && word.len() > 2) {
                let flag = flag.trim_matches(|c: char| "\"'(),.[]".contains(c)).split('=').next().unwrap();
                if !known[place].iter().any(|known| known == flag) {
                    unknown.push(format!("{}: relent {}: {flag}", path.display(), COMMANDS[place]));
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} commands were found");
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}
