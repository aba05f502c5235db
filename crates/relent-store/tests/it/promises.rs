//! What the page about stores promises of crashes and trouble is tested by name: each row of its tables names tests, and they
//! are there.

use std::{fs, process::Command};

/// The tests of this program.
fn tests() -> Vec<String> {
    let out = Command::new(std::env::current_exe().unwrap()).args(["--list", "--format", "terse"]).output().unwrap();
    let list = String::from_utf8(out.stdout).unwrap();
    list.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect()
}

/// The names of tests in a row: `room::test`, where `..` at the end stands for any.
fn names(row: &str) -> Vec<&str> {
    let words = row.split('`').skip(1).step_by(2);
    words.filter(|word| word.contains("::")).collect()
}

#[test]
fn each_row_about_crashes_and_trouble_names_tests_that_are_there() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stores.md");
    let page = fs::read_to_string(page).unwrap();
    let mut rows = vec![];
    for (head, least) in [("| killed | after restart |", 13), ("| trouble | error |", 9)] {
        let table = page.split(head).nth(1).expect("the table is there");
        let before = rows.len();
        rows.extend(table.lines().skip(2).take_while(|line| line.starts_with('|')));
        assert!(rows.len() >= before + least, "{rows:#?}");
    }
    let tests = tests();
    assert!(tests.len() > 50, "{tests:#?}");
    for row in rows {
        let names = names(row);
        assert!(!names.is_empty(), "no test is named: {row}");
        for name in names {
            let is_it = |test: &String| match name.strip_suffix("..") {
                Some(begin) => test.starts_with(begin),
                None => test == name,
            };
            assert!(tests.iter().any(is_it), "there is no test {name}: {row}");
        }
    }
}
