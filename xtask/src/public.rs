//! What the library shows to the world: every public item has a runnable example, and every public type a name of its own.
//!
//! The sources are read as text, which is enough for code that rustfmt has laid out and where `unreachable_pub` makes
//! `pub` mean public.

use crate::shell::{self, Outcome};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

const SOURCES: &str = "crates/relent/src";

/// Files whose items nobody can name, with why.
const HIDDEN: &[&str] = &[
    // Stands in for `cancel.rs` without `std`, where nothing can be cancelled.
    "no_cancel.rs",
];

/// Items without an example, a path a line. The list only ever gets shorter: what has an example by now is told.
const EXEMPT: &str = include_str!("public_exempt.txt");

/// Fences whose code is not run.
const NOT_RUN: &[&str] = &["text", "toml", "console", "sh", "json", "ignore", "compile_fail"];

/// One public item, and the code of the examples above it.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    file: String,
    line: usize,
    /// The type or trait of a method.
    owner: Option<String>,
    name: String,
    is_type: bool,
    example: String,
}

impl Item {
    fn path(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{owner}::{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Fails if a public item has no example, or two public types have one name.
pub(crate) fn check() -> Outcome {
    let mut files = Vec::new();
    collect(Path::new(SOURCES), &mut files)?;
    let mut items = Vec::new();
    for file in files {
        let name = file.strip_prefix(SOURCES).unwrap_or(&file).to_string_lossy().into_owned();
        if !HIDDEN.contains(&name.as_str()) {
            items.extend(read(&name, &shell::read(&file.to_string_lossy())?));
        }
    }
    let missing = without_example(&items);
    let exempt: Vec<&str> = EXEMPT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for path in exempt.iter().filter(|path| !missing.iter().any(|item| item.path() == **path)) {
        eprintln!("note: {path} has an example, and need not be in xtask/src/public_exempt.txt");
    }
    let line = |item: &Item| format!("{SOURCES}/{}:{}: {} has no example", item.file, item.line, item.path());
    let not_exempt = missing.iter().filter(|item| !exempt.contains(&item.path().as_str()));
    let problems: Vec<String> = not_exempt.map(|item| line(item)).chain(twice(&items, &exempt)).collect();
    match problems.as_slice() {
        [] => Ok(()),
        _ => Err(format!(
            "{} of {} public items: {}\nhint: write a runnable example above it, or use it in the example of its type",
            problems.len(),
            items.len(),
            problems.join("\n  ")
        )),
    }
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> Outcome {
    let unreadable = |err| format!("cannot read the folder {}: {err}", folder.display());
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            collect(&entry, into)?;
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            into.push(entry);
        }
    }
    Ok(())
}

/// A method is shown where its own text, or that of its type, has an example that names it.
fn without_example(items: &[Item]) -> Vec<&Item> {
    let is_shown = |item: &Item| {
        let by_type = |owner: &String| {
            items.iter().any(|it| it.is_type && it.name == *owner && words(&it.example).any(|word| word == item.name))
        };
        !item.example.trim().is_empty() || item.owner.as_ref().is_some_and(by_type)
    };
    items.iter().filter(|item| !is_shown(item)).collect()
}

fn twice(items: &[Item], exempt: &[&str]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.is_type && !exempt.contains(&item.name.as_str())) {
        by_name.entry(&item.name).or_default().push(format!("{}:{}", item.file, item.line));
    }
    let shared = by_name.into_iter().filter(|(_, places)| places.len() > 1);
    shared
        .map(|(name, places)| format!("{name} is the name of {} types: {}", places.len(), places.join(", ")))
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The public items of a file, up to its tests.
fn read(file: &str, text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut docs, mut owner, mut open) = (Vec::new(), None, false);
    for (at, line) in text.lines().enumerate() {
        let code = line.trim();
        if let Some(doc) = code.strip_prefix("///") {
            docs.push(doc);
            continue;
        }
        // A remark, or an attribute, which may go over several lines, stands between the text and the item.
        if code.starts_with("//") {
            continue;
        }
        if open || code.starts_with("#[") {
            open = if open { !code.ends_with(")]") && code != "]" } else { !code.ends_with(']') };
            continue;
        }
        let is_nested = line.starts_with(char::is_whitespace);
        if !is_nested && code.ends_with('{') && (code.starts_with("mod tests") || code.starts_with("mod models")) {
            break;
        }
        if !is_nested && code.starts_with("impl") {
            owner = inherent(code);
        } else if let Some((keyword, name)) = public(code) {
            let is_type = matches!(keyword, "struct" | "enum" | "trait");
            if !is_nested && keyword == "trait" {
                owner = Some(name.to_owned());
            }
            let is_method = is_nested && keyword == "fn";
            // A constructor in a macro has no owner that could be read off, and types may stand in modules.
            if is_type || keyword == "fn" && (!is_method || owner.is_some()) {
                items.push(Item {
                    file: file.to_owned(),
                    line: at + 1,
                    owner: owner.clone().filter(|_| is_method),
                    name: name.to_owned(),
                    is_type,
                    example: example(&docs),
                });
            }
        } else if line == "}" {
            owner = None;
        }
        docs.clear();
    }
    items
}

/// The keyword and the name of a public item.
fn public(code: &str) -> Option<(&str, &str)> {
    let mut words = code.strip_prefix("pub ")?.split(|c: char| !c.is_alphanumeric() && c != '_').peekable();
    while words.next_if(|word| matches!(*word, "async" | "unsafe")).is_some() {}
    let keyword = match words.next()? {
        // `const fn`, or a constant, which needs no example.
        "const" => words.next().filter(|word| *word == "fn")?,
        keyword => keyword,
    };
    matches!(keyword, "fn" | "struct" | "enum" | "trait").then_some((keyword, words.next()?))
}

/// The type of an `impl` that is not one of a trait.
fn inherent(code: &str) -> Option<String> {
    let mut rest = code.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let (mut depth, mut before) = (0, ' ');
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>' && before != '-');
            before = c;
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let name = rest.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next()?;
    let name = name.rsplit("::").next().filter(|name| !name.is_empty())?;
    (!rest.contains(" for ")).then(|| name.to_owned())
}

/// The code of what is run of a text.
fn example(docs: &[&str]) -> String {
    let (mut code, mut inside) = (String::new(), None);
    for line in docs {
        match (line.trim().strip_prefix("```"), inside) {
            (Some(_), Some(_)) => inside = None,
            (Some(language), None) => inside = Some(!NOT_RUN.iter().any(|not| language.contains(not))),
            (None, Some(true)) => code.extend([line, "\n"]),
            (None, _) => {}
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let items = read("a.rs", text);
        let missing =
            without_example(&items).into_iter().map(|item| format!("{}:{} {}", item.file, item.line, item.path()));
        missing.chain(twice(&items, &[])).collect()
    }

    #[test]
    fn a_remark_between_an_item_and_its_text_takes_nothing_away() {
        let text = "/// ```\n/// a();\n/// ```\n#[repr(C)]\n// As others do.\n#[must_use]\npub struct Thing;\n";
        assert!(problems(text).is_empty(), "{:?}", problems(text));
    }

    #[test]
    fn an_item_without_an_example_is_named() {
        let text =
            "/// A thing.\npub struct Thing;\n\nimpl Thing {\n    /// Does.\n    pub const fn act(&self) {}\n}\n";
        let all = problems(text);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0] == "a.rs:2 Thing" && all[1] == "a.rs:6 Thing::act");
    }

    #[test]
    fn the_example_of_a_type_shows_its_methods_by_name() {
        let shown =
            "/// ```\n/// Thing.act();\n/// ```\npub struct Thing;\nimpl Thing {\n    pub fn act(&self) {}\n}\n";
        assert_eq!(problems(shown), [""; 0]);
        assert_eq!(problems(&shown.replace("fn act", "fn acts")).len(), 1);
        assert_eq!(problems(&shown.replace("/// ```\n/// T", "/// ```text\n/// T")).len(), 2, "nobody runs text");
    }

    #[test]
    fn attributes_and_generics_do_not_hide_anything() {
        let text = "/// ```\n/// f();\n/// ```\n#[diagnostic::on(\n    note = \"a\"\n)]\npub trait Watch {}\n\
                    impl<F: Fn() -> u8> Other<F> {\n    pub fn of(self) {}\n}\n\
                    impl Watch for Other {\n    fn x() {}\n}\npub(crate) fn y() {}\nfn z() {}\n";
        let all = problems(text);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("Other::of"));
    }

    #[test]
    fn tests_are_no_part_of_what_is_public() {
        assert_eq!(problems("#[cfg(test)]\nmod tests {\n    pub fn x() {}\n}\npub fn y() {}\n"), [""; 0]);
    }

    #[test]
    fn two_types_of_one_name_are_told() {
        let text = "/// ```\n/// x\n/// ```\npub enum Limit {}\n/// ```\n/// x\n/// ```\npub struct Limit;\n";
        assert_eq!(problems(text), ["Limit is the name of 2 types: a.rs:4, a.rs:8"]);
    }
}
