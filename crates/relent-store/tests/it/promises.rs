//! What the page about stores promises of crashes is tested by name: each row of its table names tests, and they are there.

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
fn each_row_about_crashes_names_tests_that_are_there() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stores.md");
    let page = fs::read_to_string(page).unwrap();
    let table = page.split("| killed | after restart |").nth(1).expect("the table is there");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 12, "{rows:#?}");
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
