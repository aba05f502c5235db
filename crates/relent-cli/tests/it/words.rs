//! The list of words that messages have is that of the texts which are there.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

/// The list.
fn list() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/redact/words.txt")
}

/// All that stands in quotes in a file of Rust, but for its tests.
fn texts(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect();
    // A quotation mark as a character begins no text.
    let text = regex_lite::Regex::new(r#"'"'|"((?:[^"\\]|\\[\s\S])*)""#).expect("it is a pattern");
    text.captures_iter(&code).filter_map(|found| Some(found.get(1)?.as_str().to_owned())).collect()
}

fn look(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the sources are there").flatten() {
        let path = entry.path();
        // What pages call signs is in no message.
        if ["tests.rs", "tests", "entities.rs"].iter().any(|other| path.ends_with(other)) {
            continue;
        }
        if path.is_dir() {
            look(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.extend(texts(&fs::read_to_string(&path).expect("sources are text")));
        }
    }
}

#[test]
fn all_words_of_messages_are_known() {
    let mut all = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    for name in ["relent", "relent-cli", "relent-sim", "relent-store", "relent-tls"] {
        look(&crates.join(name).join("src"), &mut all);
    }
    all.extend(
        (100..600).filter_map(|code| Some(http::StatusCode::from_u16(code).ok()?.canonical_reason()?.to_owned())),
    );
    all.extend((1..134).map(|code| io::Error::from_raw_os_error(code).to_string()));
    // What libraries say that messages pass on.
    use url::ParseError::*;
    let of_urls =
        [EmptyHost, IdnaError, InvalidPort, InvalidIpv4Address, InvalidIpv6Address, InvalidDomainCharacter, Overflow];
    all.extend(of_urls.iter().chain(&[RelativeUrlWithoutBase]).map(ToString::to_string));
    let alerts = (0..=u8::MAX).map(|code| format!("{:?}", rustls::AlertDescription::from(code)));
    let parts =
        |name: String| name.chars().flat_map(|c| [c.is_ascii_uppercase().then_some(' '), Some(c)]).flatten().collect();
    all.extend(alerts.filter(|name| !name.contains("0x")).map(parts));
    let words = all
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphabetic()))
        .filter(|word| (3..=24).contains(&word.len()));
    let words: BTreeSet<String> = words.map(str::to_ascii_lowercase).collect();
    let known = fs::read_to_string(list()).unwrap_or_default();
    let known: BTreeSet<String> = known.lines().map(str::to_owned).collect();
    let missing: Vec<&String> = words.difference(&known).collect();
    if std::env::var_os("RELENT_WORDS").is_some() {
        let lines: String = words.iter().map(|word| format!("{word}\n")).collect();
        return fs::write(list(), lines).unwrap();
    }
    assert!(missing.is_empty(), "RELENT_WORDS=1 makes {} anew: {missing:?}", list().display());
    // Other systems say some things in other words.
    let gone = known.difference(&words).count();
    assert!(gone < 60, "{gone} words are in none of the texts: RELENT_WORDS=1 makes {} anew", list().display());
}
