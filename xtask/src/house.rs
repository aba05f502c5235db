//! How the files of a crate stand to each other: who uses whom goes one way only, because what stands in a circle cannot be
//! read, tested or changed alone.
//!
//! The sources are read as words. Names that a module passes on (`pub use`) are followed to the file that has them. A file and
//! the folder of its name are one family, which may use each other. The crate's root uses everything, and is left out.

use crate::shell::{self, Outcome};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

const CRATES: &[&str] = &["relent", "relent-sim", "relent-store", "relent-cli"];

/// Fails if files use each other.
pub(crate) fn check() -> Outcome {
    let mut told = String::new();
    for name in CRATES {
        let mut files = BTreeMap::new();
        collect(&Path::new("crates").join(name).join("src"), &[], &mut files)?;
        let arrows = arrows(&files);
        if files.len() < 20 || arrows.values().map(BTreeSet::len).sum::<usize>() < files.len() {
            return Err(format!("the sources of {name} were not understood: {} files", files.len()));
        }
        if *name == "relent-cli" {
            for file in cutters(&files) {
                told += &format!(
                    "\n  {name}: {file} cuts a text by itself, and not by `brief`, which looks for secrets before"
                );
            }
        }
        if *name == "relent-cli" {
            for file in tellers(&files) {
                told +=
                    &format!("\n  {name}: {file} puts a text into JSON that is looked at by nobody: `talk::told` does");
            }
        }
        for circle in circles(&arrows) {
            for file in &circle {
                let used: Vec<_> = arrows[file].intersection(&circle).map(String::as_str).collect();
                told += &format!("\n  {name}: {file} uses {}", used.join(", "));
            }
        }
    }
    match told.as_str() {
        "" => Ok(()),
        told => Err(format!("files use what they should not:{told}\nhint: move what two use into a file below them")),
    }
}

/// Files that may cut texts: the one that is for it, and those that only see what has no secrets any more.
const CUTTERS: [&str; 3] = ["brief", "screen", "storm::live"];

/// Files that cut texts, and are not for it: what is left of a secret is no more known to be one.
fn cutters(files: &Files) -> Vec<&String> {
    const WAYS: [[&str; 5]; 2] = [["chars", "(", ")", ".", "take"], ["char_indices", "(", ")", ".", "nth"]];
    let cuts = |words: &[String]| words.windows(5).any(|five| WAYS.iter().any(|way| five == way));
    let others = files.iter().filter(|(file, _)| !CUTTERS.contains(&file.as_str()));
    others.filter(|(_, words)| cuts(words)).map(|(file, _)| file).collect()
}

/// Where events and answers for machines are made: others wrote some of what is in them.
const TELLERS: [&str; 7] = ["connect", "guard", "http", "run", "store", "talk", "upstream"];

/// Files that put a text into JSON as it is: it has no name of a function in it that would look for secrets.
fn tellers(files: &Files) -> Vec<&String> {
    let is_one = |file: &str| TELLERS.contains(&file.split("::").next().unwrap_or_default());
    let is_bare = |words: &[String], at: usize| {
        let end = closing(words, at + 2);
        words[at + 3..end - 1].starts_with(&[",".to_owned(), "&".to_owned()])
            && !words[at + 5..end - 1].contains(&"(".to_owned())
    };
    let tells = |words: &[String]| {
        let texts = words.windows(3).enumerate().filter(|(_, three)| *three == [".", "text", "("]);
        texts.into_iter().any(|(at, _)| is_bare(words, at))
    };
    files.iter().filter(|(file, words)| is_one(file) && tells(words)).map(|(file, _)| file).collect()
}

/// A file as its words, by the path of its module: `core::call`; the root is empty.
type Files = BTreeMap<String, Vec<String>>;

fn collect(folder: &Path, path: &[&str], found: &mut Files) -> Outcome {
    let cannot = |err| format!("cannot read {}: {err}", folder.display());
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let file = entry.map_err(cannot)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if file.is_dir() {
            collect(&file, &[path, &[name.as_str()]].concat(), found)?;
        } else if let Some(name) = name.strip_suffix(".rs") {
            let whole = match name {
                "mod" => path.join("::"),
                "lib" | "main" if path.is_empty() => {
                    if name == "lib" {
                        found.insert(String::new(), words(&shell::read(&file.to_string_lossy())?));
                    }
                    continue;
                }
                name => [path, &[name]].concat().join("::"),
            };
            found.insert(whole, words(&shell::read(&file.to_string_lossy())?));
        }
    }
    Ok(())
}

/// Names, `::` and single signs; without comments and the text of literals.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(raw) = raw_string(rest) {
            raw
        } else if first == '"' {
            quoted(rest)
        } else if first == '\'' {
            character(rest)
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            words.push(rest[..end].to_owned());
            end
        } else if rest.starts_with("::") {
            words.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                words.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    words
}

/// How long `r"..."` or `r#"..."#` is, with a `b` or `c` before it too.
fn raw_string(text: &str) -> Option<usize> {
    let from_r = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let after_r = from_r.strip_prefix('r')?;
    let hashes = after_r.len() - after_r.trim_start_matches('#').len();
    let inside = after_r[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(text.len() - inside.len() + length)
}

/// How long a string in quotes is.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// How long a character in quotes is; of a lifetime it is the quote alone.
fn character(text: &str) -> usize {
    let inside = &text[1..];
    let c = inside.chars().next().unwrap_or_default();
    if c == '\\' {
        return inside[1..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(text.len(), |(at, _)| at + 3);
    }
    if inside[c.len_utf8().min(inside.len())..].starts_with('\'') { c.len_utf8() + 2 } else { 1 }
}

/// What the words of one file say.
#[derive(Default)]
struct Said {
    /// Paths of what it uses, from the root.
    uses: Vec<Vec<String>>,
    /// Names that it passes on, and from where.
    passes_on: BTreeMap<String, Vec<String>>,
    /// Modules of which it passes on everything.
    passes_all: Vec<Vec<String>>,
    /// Modules that are there for tests only.
    tests: Vec<String>,
}

/// Reads the words of the file of a module. `is_module` knows the path of one.
fn read(module: &str, words: &[String], is_module: impl Fn(&[String]) -> bool) -> Said {
    let own: Vec<String> = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let mut said = Said::default();
    let mut inside: Vec<(String, usize)> = Vec::new();
    let (mut at, mut depth) = (0, 0);
    while at < words.len() {
        let here: Vec<String> = own.iter().cloned().chain(inside.iter().map(|(name, _)| name.clone())).collect();
        match words[at].as_str() {
            "#" if words.get(at + 1).is_some_and(|word| word == "[") => {
                let end = closing(words, at + 1);
                let attribute = &words[at..end];
                let has = |name: &str| attribute.iter().any(|word| word == name);
                at = end;
                if has("cfg") && has("test") && !has("not") {
                    let (end, name) = item(words, at);
                    said.tests.extend(name.map(|name| [&here[..], &[name]].concat().join("::")));
                    at = end;
                }
                continue;
            }
            "mod" if words.get(at + 2).is_some_and(|word| word == "{") => {
                inside.push((words[at + 1].clone(), depth));
                at += 2;
                continue;
            }
            "use" => {
                let end = words[at..].iter().position(|word| word == ";").map_or(words.len(), |length| at + length);
                let passes = at > 0 && matches!(words[at - 1].as_str(), "pub" | ")");
                for (path, name) in tree(&words[at + 1..end]) {
                    let Some(path) = from_root(&here, &path, &is_module) else { continue };
                    match name.as_str() {
                        "*" if passes => said.passes_all.push(path),
                        name if passes => drop(said.passes_on.insert(name.to_owned(), path)),
                        _ => said.uses.push(path),
                    }
                }
                at = end;
                continue;
            }
            "crate" | "super" | "self" if words.get(at + 1).is_some_and(|word| word == "::") => {
                let mut path = vec![words[at].clone()];
                while words.get(at + 1).is_some_and(|word| word == "::")
                    && words.get(at + 2).is_some_and(|word| is_name(word))
                {
                    path.push(words[at + 2].clone());
                    at += 2;
                }
                said.uses.extend(from_root(&here, &path, &is_module));
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inside.pop_if(|(_, opened)| *opened == depth);
            }
            _ => {}
        }
        at += 1;
    }
    said
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Behind the bracket that closes the one at `at`.
fn closing(words: &[String], at: usize) -> usize {
    let mut depth = 0usize;
    for (nth, word) in words.iter().enumerate().skip(at) {
        match word.as_str() {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return nth + 1;
        }
    }
    words.len()
}

/// Behind the item that begins at `at`, its attributes included; and its name, if it is a module.
fn item(words: &[String], mut at: usize) -> (usize, Option<String>) {
    let mut module = None;
    while at < words.len() {
        match words[at].as_str() {
            ";" => return (at + 1, module),
            "{" => return (closing(words, at), module),
            "[" | "(" => at = closing(words, at),
            "mod" => {
                module = words.get(at + 1).cloned();
                at += 1;
            }
            _ => at += 1,
        }
    }
    (at, module)
}

/// The paths of a `use`, its braces multiplied out, and the names that they get.
fn tree(words: &[String]) -> Vec<(Vec<String>, String)> {
    let Some(open) = words.iter().position(|word| word == "{") else {
        let end = words.iter().position(|word| word == "as").unwrap_or(words.len());
        let mut path: Vec<String> = words[..end].iter().filter(|word| is_name(word) || *word == "*").cloned().collect();
        let name = words.last().cloned().unwrap_or_default();
        if path.last().is_some_and(|last| last == "*" || (last == "self" && path.len() > 1)) {
            path.pop();
        }
        let name = if name == "self" { path.last().cloned().unwrap_or_default() } else { name };
        return vec![(path, name)];
    };
    let inside = &words[open + 1..closing(words, open) - 1];
    let (mut parts, mut depth) = (vec![Vec::new()], 0);
    for word in inside {
        depth += i32::from(word == "{") - i32::from(word == "}");
        match word.as_str() {
            "," if depth == 0 => parts.push(Vec::new()),
            _ => parts.last_mut().expect("there is one").push(word.clone()),
        }
    }
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.flat_map(|part| tree(&[&words[..open], &part].concat())).collect()
}

/// A path as it counts from the root; `None` if it leads into another crate.
fn from_root(here: &[String], path: &[String], is_module: impl Fn(&[String]) -> bool) -> Option<Vec<String>> {
    let mut whole = here.to_vec();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            whole.clear();
            rest = &path[1..];
        }
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                whole.pop();
                rest = &rest[1..];
            }
        }
        name => {
            whole.push(name.to_owned());
            if !is_module(&whole) {
                return None;
            }
            rest = &path[1..];
        }
    }
    whole.extend_from_slice(rest);
    Some(whole)
}

/// Each file with those that it uses, but for its family and the root.
fn arrows(files: &Files) -> BTreeMap<String, BTreeSet<String>> {
    let is_module = |path: &[String]| files.contains_key(&path.join("::"));
    let said: BTreeMap<&str, Said> =
        files.iter().map(|(module, words)| (module.as_str(), read(module, words, is_module))).collect();
    let tests: BTreeSet<&String> = said.values().flat_map(|said| &said.tests).collect();
    let is_family = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}::"));
    let is_test = |module: &str| tests.iter().any(|test| is_family(module, test));
    let mut arrows = BTreeMap::new();
    for (module, said_here) in said.iter().filter(|(module, _)| !module.is_empty() && !is_test(module)) {
        let used: BTreeSet<String> = said_here.uses.iter().map(|path| owner(path, &said, 0)).collect();
        let used = used.into_iter().filter(|to| !to.is_empty() && !is_family(to, module) && !is_family(module, to));
        arrows.insert((*module).to_owned(), used.collect());
    }
    arrows
}

/// The file that has what a path names.
fn owner(path: &[String], said: &BTreeMap<&str, Said>, passed: usize) -> String {
    let mut module = String::new();
    for (nth, part) in path.iter().enumerate() {
        let below = if module.is_empty() { part.clone() } else { format!("{module}::{part}") };
        if said.contains_key(below.as_str()) {
            module = below;
            continue;
        }
        let Some(here) = said.get(module.as_str()) else { break };
        // Who passes on what it was passed does so a few times.
        if passed > 8 {
            break;
        }
        if let Some(from) = here.passes_on.get(part) {
            return owner(&[from, &path[nth + 1..]].concat(), said, passed + 1);
        }
        for from in &here.passes_all {
            let there = owner(&[from, &path[nth..]].concat(), said, passed + 1);
            let has = said.get(there.as_str()).is_some_and(|_| there != from.join("::"));
            if has {
                return there;
            }
        }
        break;
    }
    module
}

/// Those that reach each other, each circle once.
fn circles(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(file) = next.pop() {
            next.extend(arrows.get(file).into_iter().flatten().filter(|to| reached.insert((*to).clone())));
        }
        reached
    };
    let reach: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|file| (file, reached(file))).collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for (file, reached) in reach.iter().filter(|(file, reached)| reached.contains(**file)) {
        if !circles.iter().any(|circle| circle.contains(*file)) {
            circles.push(
                reached
                    .iter()
                    .filter(|other| reach.get(*other).is_some_and(|back| back.contains(*file)))
                    .cloned()
                    .collect(),
            );
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
        arrows(&files.iter().map(|(module, text)| ((*module).to_owned(), words(text))).collect())
    }

    fn uses(arrows: &BTreeMap<String, BTreeSet<String>>, file: &str) -> Vec<String> {
        arrows[file].iter().cloned().collect()
    }

    #[test]
    fn words_are_read_without_comments_and_literals() {
        let text = "use a; // use b;\n/* use c; */ let x = \"use d; \\\" use e;\"; 'q: loop { '\"' '\\'' r#\"use \"f\"#; b'x' }";
        let read = words(text).join(" ");
        assert_eq!(read, "use a ; let x = ; q : loop { ; b }");
    }

    #[test]
    fn names_that_are_passed_on_are_followed_to_their_file() {
        let arrows = crate_of(&[
            ("", "mod a; mod b; mod c; pub use self::{a::{deep::Thing as Other, One}, c::*};"),
            ("a", "mod deep; pub struct One;"),
            ("a::deep", "pub struct Thing; use super::One;"),
            ("b", "use crate::{Other, One}; fn f() { crate::c::g() } use std::fmt;"),
            ("c", "use super::b; pub use crate::a::One as Again;"),
            ("d", "use crate::c::Again;"),
        ]);
        assert_eq!(uses(&arrows, "b"), ["a", "a::deep", "c"]);
        assert_eq!(uses(&arrows, "c"), ["b"]);
        assert_eq!(uses(&arrows, "d"), ["a"]);
        assert!(uses(&arrows, "a::deep").is_empty(), "a family may use each other");
        assert_eq!(circles(&arrows).len(), 1);
    }

    #[test]
    fn who_cuts_texts_is_told() {
        let files = [
            ("brief", "text.chars().take(40)"),
            ("http::failure", "text.char_indices().nth(40)"),
            ("talk", "text.chars().take_while(f); words.iter().take(3)"),
        ];
        let files: Files = files.iter().map(|(module, text)| ((*module).to_owned(), words(text))).collect();
        assert_eq!(cutters(&files), ["http::failure"]);
    }

    #[test]
    fn a_text_in_json_is_looked_at_before() {
        let files = [
            ("http::narrator", r#"event.text("url", &self.url)"#),
            ("http::other", r#"event.text("url", &talk::told(&self.url)).text("outcome", outcome)"#),
            ("store::check", r#"o.text("engine", about.engine).text("version", &about.version);"#),
            ("report::data", r#"o.text("policy", &record.policy)"#),
        ];
        let files: Files = files.iter().map(|(module, text)| ((*module).to_owned(), words(text))).collect();
        assert_eq!(tellers(&files), ["http::narrator", "store::check"]);
    }

    #[test]
    fn tests_may_use_whom_they_like() {
        let arrows = crate_of(&[
            ("", "mod a; mod b;"),
            ("a", "pub struct A; #[cfg(test)] mod tests { use crate::b; } #[cfg(all(test, loom))] mod models;"),
            ("a::models", "use crate::b::B;"),
            ("b", "use crate::a::A; mod inner { use super::super::a; }"),
        ]);
        assert!(circles(&arrows).is_empty(), "{arrows:?}");
        assert_eq!(uses(&arrows, "b"), ["a"]);
        assert!(!arrows.contains_key("a::models"));
    }

    #[test]
    fn a_circle_is_found_once_and_who_stands_above_it_is_not_in_it() {
        let arrows = crate_of(&[
            ("", ""),
            ("a", "use crate::b;"),
            ("b", "use crate::c;"),
            ("c", "use crate::a; use crate::low;"),
            ("low", ""),
            ("top", "use crate::a;"),
        ]);
        let circle = ["a", "b", "c"].map(str::to_owned).into_iter().collect::<BTreeSet<_>>();
        assert_eq!(circles(&arrows), [circle]);
    }
}
