//! How the rooms of the program stand to each other: who uses whom goes one way only.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Each file by the path of its module, with its text but for comments and tests.
fn rooms(folder: &Path, path: &[&str], found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the sources are there").flatten() {
        let (file, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if file.is_dir() {
            rooms(&file, &[path, &[name.as_str()]].concat(), found);
        } else if let Some(name) = name.strip_suffix(".rs") {
            let whole = match name {
                "mod" => path.join("::"),
                name => [path, &[name]].concat().join("::"),
            };
            let text = fs::read_to_string(&file).expect("sources are text");
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            found.insert(whole, lines.collect::<Vec<_>>().join(" "));
        }
    }
}

/// The paths of a `use`, its braces multiplied out.
fn paths(tree: &str) -> Vec<String> {
    let Some(open) = tree.find('{') else { return vec![tree.split(" as ").next().unwrap_or_default().to_owned()] };
    let (before, inside) = (&tree[..open], &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())]);
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in inside.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().expect("there is one").push(c),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| paths(part)).map(|path| format!("{before}{path}")).collect()
}

/// The rooms that a room uses, but for those that it stands in and those that stand in it.
fn used(room: &str, text: &str, rooms: &BTreeMap<String, String>) -> BTreeSet<String> {
    let uses = regex_lite::Regex::new(r"\buse\s+([a-z_]+::[\w\s:{},*]+);").expect("it is one");
    let inline = regex_lite::Regex::new(r"\b(?:crate|super)(?:::\w+)+").expect("it is one");
    let named = uses.captures_iter(text).flat_map(|found| paths(&found[1]));
    let inline = inline.find_iter(text).map(|found| found.as_str().to_owned());
    let mut used = BTreeSet::new();
    for path in named.chain(inline) {
        let path: String = path.split_whitespace().collect();
        let mut whole: Vec<&str> = room.split("::").collect();
        for (nth, part) in path.split("::").enumerate() {
            match part {
                "crate" if nth == 0 => whole.clear(),
                "super" => drop(whole.pop()),
                "self" => {}
                part => whole.push(part),
            }
        }
        while !whole.is_empty() && !rooms.contains_key(&whole.join("::")) {
            whole.pop();
        }
        let to = whole.join("::");
        let is_family = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}::"));
        if !to.is_empty() && !is_family(&to, room) && !is_family(room, &to) {
            used.insert(to);
        }
    }
    used
}

/// What stands in a circle cannot be read, tested or changed alone.
#[test]
fn no_rooms_use_each_other() {
    let mut found = BTreeMap::new();
    rooms(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &[], &mut found);
    assert!(found.len() > 100, "{} files were found", found.len());
    let mut arrows: BTreeMap<_, _> = found.iter().map(|(room, text)| (room, used(room, text, &found))).collect();
    assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > 300, "the uses were not understood");
    // Who uses nobody that is left stands below; what cannot be taken away so stands in a circle, or above one.
    loop {
        let (below, rest): (BTreeMap<_, _>, BTreeMap<_, _>) = arrows.into_iter().partition(|(_, used)| used.is_empty());
        arrows = rest;
        if below.is_empty() {
            break;
        }
        arrows.values_mut().for_each(|used| used.retain(|room| !below.contains_key(room)));
    }
    assert!(arrows.is_empty(), "in a circle, or above one: {arrows:#?}");
}
