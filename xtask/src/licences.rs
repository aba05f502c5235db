//! Whether all dependencies have licences and come from places that `deny.toml` allows, asked of cargo itself: quick, and
//! with nothing to install.

use crate::shell::{self, Outcome};

/// Every dependency of every target, as cargo knows it.
pub(crate) fn check() -> Outcome {
    let config = shell::read("deny.toml")?;
    let allowed = allowed(&config);
    let tree = ["tree", "--locked", "--workspace", "--target", "all", "--prefix", "none", "--format", "{p}\t{l}"];
    let tree = shell::output("cargo", &tree)?;
    let mut lines: Vec<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    lines.sort_unstable();
    lines.dedup();
    let problems: Vec<String> = lines.iter().filter_map(|line| problem(line, &allowed)).collect();
    if lines.len() < 2 || allowed.is_empty() {
        return Err("cargo tree or deny.toml says nothing".into());
    }
    if !problems.is_empty() {
        return Err(format!("{}\nhint: allow it in deny.toml, or do without it", problems.join("\n")));
    }
    eprintln!("{} packages have allowed licences and sources", lines.len());
    Ok(())
}

/// The quoted words of `allow = [ .. ]`.
fn allowed(config: &str) -> Vec<&str> {
    let list = config.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
    list.split('"').skip(1).step_by(2).collect()
}

fn problem(line: &str, allowed: &[&str]) -> Option<String> {
    let (package, licence) = line.split_once('\t')?;
    if package.contains("://") {
        return Some(format!("{package} does not come from crates.io"));
    }
    (!is_allowed(licence, allowed)).then(|| format!("{package} has the licence '{licence}', which is not allowed"))
}

/// Whether one of the alternatives has nothing but allowed licences in it. `(A OR B) AND C` is read as `A OR (B AND C)`
/// would be if it had no brackets, which allows no more than one of its readings; a slash is an old `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    let flat = flat.split_whitespace().collect::<Vec<_>>().join(" ");
    flat.split(" OR ").any(|all| all.split(" AND ").all(|one| allowed.contains(&one.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alternative_will_do_and_all_of_it_must() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/GPL-3.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "GPL-3.0 OR MIT AND Unicode-3.0",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR LGPL-2.1"] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn a_package_from_elsewhere_is_a_problem() {
        assert_eq!(problem("a v1.0.0\tMIT", &["MIT"]), None);
        assert!(problem("a v1.0.0 (https://example.com/a)\tMIT", &["MIT"]).is_some());
    }

    #[test]
    fn the_list_is_read() {
        assert_eq!(allowed("[licenses]\nallow = [\n    \"MIT\",\n    \"ISC\",\n]\n"), ["MIT", "ISC"]);
    }
}
