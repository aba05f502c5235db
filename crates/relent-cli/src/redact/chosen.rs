//! What of a command line is quoted as it is: names that somebody chose, and files of forms.

use super::{
    names::{is_password, is_secret},
    plain,
};

/// The name that somebody chose, if such a one stands there, that of a policy with its file.
pub(super) fn name(arguments: &[String], nth: usize) -> Option<&str> {
    const NAMES: [&str; 2] = ["--lease", "--upstream"];
    const POLICIES: [&str; 2] = ["--policy", "--compare"];
    let of_names = word(arguments, 0) == "upstream" && ["open", "close", "release"].contains(&word(arguments, 1));
    let (text, before) = (word(arguments, nth), before(arguments, nth));
    let is_flag = before != "--" && text.starts_with('-');
    let is_behind_a_flag = before != "--" && before.starts_with('-') && !before.contains('=');
    let set = |flags: &[&str]| flags.iter().find_map(|flag| text.strip_prefix(flag)?.strip_prefix('='));
    let is_one = NAMES.contains(&before) || (of_names && nth > 1 && !is_flag && !is_behind_a_flag);
    let spec = set(&POLICIES).or(POLICIES.contains(&before).then_some(text));
    set(&NAMES).or(is_one.then_some(text)).or(spec.filter(|spec| has_a_name(spec)))
}

/// Whether the name of a policy stands behind that of its file.
fn has_a_name(spec: &str) -> bool {
    spec.split_once('#').is_some_and(|(file, _)| plain::is_word(file))
}

/// The file of a field of a form, if such a one stands there: nothing else in it is a secret.
pub(super) fn file(arguments: &[String], nth: usize) -> Option<&str> {
    let (text, before) = (word(arguments, nth), before(arguments, nth));
    let set = || text.strip_prefix("--form=").or_else(|| Some(text.strip_prefix("-F")?.trim_start_matches('=')));
    let field = if ["-F", "--form"].contains(&before) { Some(text) } else { set() };
    field.filter(|_| word(arguments, 0) == "http").and_then(file_of_a_field)
}

/// The file in `name=@FILE;type=text/csv`. A password may begin with the same sign, so behind the name of one there is none.
pub(crate) fn file_of_a_field(field: &str) -> Option<&str> {
    let (name, value) = field.split_once('=')?;
    let is_one = plain::is_word(name) && !is_secret(name) && !is_password(name);
    value.strip_prefix(['@', '<']).filter(|_| is_one)?.split(';').next()
}

fn word(arguments: &[String], nth: usize) -> &str {
    arguments.get(nth).map_or("", String::as_str)
}

fn before(arguments: &[String], nth: usize) -> &str {
    nth.checked_sub(1).map_or("", |nth| word(arguments, nth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_forms_are_found() {
        let found = |words: &[&str], nth| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            file(&words, nth).map(str::to_owned)
        };
        for words in [
            &["http", "-F", "doc=@a b.pdf;filename=c.pdf"][..],
            &["http", "--form", "a.b=<a b.pdf"],
            &["http", "-v", "--form=doc=@a b.pdf"],
            &["http", "-v", "-Fdoc=@a b.pdf;type=a/b"],
        ] {
            assert_eq!(found(words, 2).as_deref(), Some("a b.pdf"), "{words:?}");
        }
        for words in [
            &["http", "-F", "doc=a@b"][..],
            &["http", "-F", "token=@b"],
            &["http", "-d", "doc=@b"],
            &["run", "-F", "token=@b"],
            &["http", "-F"],
        ] {
            assert_eq!(found(words, 2), None, "{words:?}");
        }
    }
}
