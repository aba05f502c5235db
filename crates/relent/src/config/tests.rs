//! Whole files in, policies and errors out.

use super::*;
use crate::{Curve, Jitter, Policy, Settings};
use proptest::prelude::*;
use std::{string::ToString, time::Duration, vec::Vec};

const SEC: Duration = Duration::from_secs(1);
const TWO: Duration = Duration::from_secs(2);

fn policy(keys: &str) -> Policy {
    Config::parse(&format!("[policy.x]\n{keys}")).unwrap().policy("x").unwrap()
}

#[test]
fn every_curve_and_key() {
    assert_eq!(policy(""), Policy::default());
    assert_eq!(policy("base = '100ms'\nfactor = 3"), Policy::exponential(SEC / 10).factor(3.0));
    assert_eq!(policy("curve = 'constant'\nbase = '5s'"), Policy::constant(5 * SEC));
    assert_eq!(policy("curve = 'linear'\nbase = '5s'\nstep = '1s'"), Policy::linear(5 * SEC).step(SEC));
    assert_eq!(policy("curve = 'linear'\nbase = '5s'"), Policy::linear(5 * SEC));
    assert_eq!(policy("curve = 'fibonacci'"), Policy::fibonacci(SEC));
    assert_eq!(policy("curve = 'immediate'"), Policy::immediate());
    assert_eq!(policy("curve = 'slots'"), Policy::slots(Duration::from_nanos(51_200)));
    assert_eq!(policy("delays = ['1s', '2s']"), Policy::list(&[SEC, TWO]));
    assert_eq!(policy("delays = ['1s']\nrepeat = true"), Policy::list_repeating(&[SEC]));
    assert_eq!(policy("jitter = { additive = '1s' }"), Policy::default().jitter(Jitter::Additive(SEC)));
    assert_eq!(policy("jitter.proportional = 0.2"), Policy::default().jitter(Jitter::Proportional(0.2)));
    assert_eq!(policy("max_attempts = 'unlimited'"), Policy::default().unlimited_attempts());
    assert_eq!(policy("max_attempts = 0x10"), Policy::default().max_attempts(16));
    assert_eq!(
        policy(
            "cap = '10s'\nmax_elapsed = '1m'\nmax_pushback = '1h'\ntimeout = '2m'\nattempt_timeout = '2s'\nspread = '3s'"
        ),
        Policy::default()
            .cap(10 * SEC)
            .max_elapsed(60 * SEC)
            .max_pushback(3600 * SEC)
            .timeout(120 * SEC)
            .attempt_timeout(2 * SEC)
            .spread(3 * SEC)
    );
}

#[test]
fn one_file_holds_several() {
    let config =
        Config::parse("[policy]\nbase='2s'\n[policy.a]\nbase='3s'\n[policy.b]\n[upstream.bank]\nbudget='finagle'")
            .unwrap();
    assert_eq!(config.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(config.upstreams().collect::<Vec<_>>(), ["bank"]);
    assert_eq!(config.draft(None).unwrap().base, Some(2 * SEC));
    assert_eq!(config.draft(Some("a")).unwrap().base, Some(3 * SEC));
    assert_eq!(config.draft(Some("b")).unwrap(), Draft::default());
    assert_eq!(config.policy("c").unwrap_err().hint, "did you mean \"a\"?");

    let two = Config::parse("[policy.alpha]\n[policy.beta]").unwrap();
    assert_eq!(two.draft(None).unwrap_err().problem, "the file has several policies: alpha, beta");
    assert_eq!(two.policy("gamma").unwrap_err().hint, "it has alpha, beta");
    let one = Config::parse("[policy.alpha]\nbase='2s'").unwrap();
    assert_eq!(one.draft(None).unwrap().base, Some(2 * SEC));
    assert_eq!(Config::parse("").unwrap().draft(None).unwrap(), Draft::default());
    assert_eq!(Config::parse("").unwrap().policy("x").unwrap_err().hint, "[policy.x] begins it");
}

#[test]
fn mistakes_are_shown_where_they_stand() {
    let shown = |text: &str| {
        let error = Config::parse(text).unwrap_err();
        format!("{error}\nhint: {}", error.hint())
    };
    for (text, expected) in [
        (
            "[policy.read]\nbase = \"100\"\n",
            "the duration has no unit\n --> 2:8\n  |\n2 | base = \"100\"\n  |        ^^^^^\n\
             hint: write it like 100ms, 1.5s, 1m30s or 2h; units are ns, us, ms, s, m, h, d",
        ),
        (
            "[policy.read]\nbase = \"2s\"\ncap = \"1s\"  # short\n",
            "the cap is shorter than the base\n --> 3:7\n  |\n3 | cap = \"1s\"  # short\n  |       ^^^^\n\
             hint: raise the cap or lower the base",
        ),
        (
            "[policy.read]\nmax_atempts = 3\n",
            "there is no key \"max_atempts\"\n --> 2:1\n  |\n2 | max_atempts = 3\n  | ^^^^^^^^^^^\n\
             hint: did you mean \"max_attempts\"?",
        ),
        (
            "[polcy.read]\n",
            "there is no table \"polcy\"\n --> 1:2\n  |\n1 | [polcy.read]\n  |  ^^^^^\nhint: did you mean \"policy\"?",
        ),
        (
            "base = \"1s\"\n",
            "base stands outside of a policy\n --> 1:1\n  |\n1 | base = \"1s\"\n  | ^^^^\n\
             hint: [policy] or [policy.NAME] begins one",
        ),
        (
            "[policy.'ümlaut']\ncurve = 'constant'\n\tfactor = 2\n",
            "curve constant has no factor\n --> 3:11\n  |\n3 | \tfactor = 2\n  | \t         ^\n\
             hint: factor goes with curve exponential",
        ),
        (
            "[policy]\ncurve = 'list'",
            "a list needs its delays\n --> 2:9\n  |\n2 | curve = 'list'\n  |         ^^^^^^\n\
             hint: delays = [\"15s\", \"30s\", \"3m\"]",
        ),
        (
            "[policy.spread]\nspread = \"5s\"",
            "spread is a setting of policies, and cannot be the name of one\n --> 1:9\n  |\n1 | [policy.spread]\n  |         ^^^^^^\nhint: give the policy another name",
        ),
        (
            "policy = 3",
            "policy is a table\n --> 1:10\n  |\n1 | policy = 3\n  |          ^\nhint: [policy.NAME] begins one",
        ),
    ] {
        assert_eq!(shown(text), expected);
    }
}

/// Each message has it, and looks through it.
#[test]
fn a_name_is_no_longer_than_messages_are() {
    let (most, more) = ("n".repeat(1000), "n".repeat(1001));
    for table in ["policy", "upstream", "server"] {
        let keys = if table == "server" { "pacer = { capacity = 5000 }" } else { "" };
        let text = |name: &str| format!("[{table}.{name}]\n{keys}");
        assert!(Config::parse(&text(&most)).is_ok(), "{table}");
        let error = Config::parse(&text(&more)).unwrap_err();
        assert_eq!((error.problem(), error.line()), ("a name is longer than 1000 bytes", Some(1)), "{table}");
    }
}

#[test]
fn the_url_of_a_store_is_no_longer_than_a_path() {
    let text = |length: usize| format!("[upstream.a]\nstore = \"sqlite:{}\"", "x".repeat(length - 7));
    assert!(Config::parse(&text(4096)).is_ok());
    let error = Config::parse(&text(4097)).unwrap_err();
    assert_eq!((error.problem(), error.line()), ("a store's URL is longer than 4096 bytes", Some(2)));
}

/// A file that somebody else wrote cannot speak to the terminal, nor forge a line of the error.
#[test]
fn quoted_lines_and_words_are_escaped() {
    for hostile in ['\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200f}', '\r', '\u{8}', '\u{7f}', '\u{2028}'] {
        let escaped = format!("\\u{{{:x}}}", u32::from(hostile));
        for text in [
            format!("[policy.read]\nbase = \"{hostile}100\"\n"),
            format!("[policy.read]\nbsae = \"1s\" # {hostile}[2Jerror: forged\n"),
            format!("[policy.'{hostile}']\nbase = \"1\"\n[policy.b]\nfactor = 0.5 # {hostile}"),
        ] {
            let error = Config::parse(&text).unwrap_err();
            let shown = format!("{error}\n{}", error.hint());
            assert!(!shown.contains(hostile), "{shown:?}");
            let bare = shown.contains(&escaped) || shown.contains("\\r") || !shown.contains("2J");
            assert!(bare, "{shown:?}");
        }
    }
    // The caret still stands under what it means.
    let error = Config::parse("[policy]\nbase = \"1s\u{202e}\"\n").unwrap_err().to_string();
    assert!(error.ends_with("2 | base = \"1s\\u{202e}\"\n  |        ^^^^^^^^^^^^"), "{error}");
}

#[test]
fn what_is_no_toml_is_an_error_with_its_place() {
    for (text, line) in [("[policy.read\n", 1), ("[policy]\nbase = \n", 2), ("[policy]\nbase='1s'\nbase='2s'", 3)] {
        let error = Config::parse(text).unwrap_err();
        assert_eq!(error.line(), Some(line), "{error}");
    }
    for (text, wanted) in [
        ("[policy]\nbase = \"1s\n", "a quotation mark"),
        ("[policy]\nbase = '1s\n", "an apostrophe"),
        ("[policy]\nbase = \"\"\"1s\n", "a quotation mark"),
    ] {
        let error = Config::parse(text).unwrap_err();
        assert!(error.problem().ends_with(&format!(", expected {wanted}")), "{error}");
    }
}

#[test]
fn wrong_values_of_every_key() {
    for (keys, problem) in [
        ("curve = 'expo'", "there is no curve \"expo\""),
        ("base = 100", "the duration has no unit"),
        ("base = true", "a duration is expected, and this is true or false"),
        ("base = 2026-01-01", "a duration is expected, and this is a date"),
        ("base = '0s'", "the base is zero"),
        ("base = '-1s'", "the duration is negative"),
        ("factor = 0.5", "the factor is less than 1 or not finite"),
        ("factor = nan", "the factor is less than 1 or not finite"),
        ("factor = inf", "the factor is less than 1 or not finite"),
        ("factor = 'two'", "\"two\" is not a number"),
        ("step = '1s'", "curve exponential has no step"),
        ("curve = 'immediate'\nbase = '1s'", "curve immediate has no base"),
        ("delays = []", "the list of delays is empty"),
        ("delays = ['1s', 2]", "the duration has no unit"),
        ("delays = ['1s', '0s']\nrepeat = true", "the delay that repeats is zero"),
        ("delays = ['1s']\nrepeat = 1", "true or false is expected, and this is a number"),
        ("repeat = true", "curve exponential has no repeat"),
        ("cap = '0s'", "the cap is zero"),
        ("jitter = 'half'", "there is no jitter \"half\""),
        ("jitter = 0.5", "a jitter is expected, and this is a number"),
        ("jitter = { proportional = 1.5 }", "the proportional jitter is not between 0 and 1"),
        ("jitter = { proportional = nan }", "the proportional jitter is not between 0 and 1"),
        ("jitter = { additive = '2m' }", "the additive jitter does not fit under the cap"),
        ("jitter = { proportional = 0.1, additive = '1s' }", "a jitter is one of its names, with its amount"),
        ("max_attempts = 0", "no attempt is allowed"),
        ("max_attempts = -1", "\"-1\" is not a number of attempts"),
        ("max_attempts = 99999999999999999999", "\"99999999999999999999\" is not a number of attempts"),
        ("timeout = '0s'", "the timeout is zero"),
        ("timeout = 30", "the duration has no unit"),
        ("attempt_timeout = '0s'", "the attempt timeout is zero"),
        ("compat = 'no-such-system'", "there is no profile \"no-such-system\""),
        ("compat = 1", "a text is expected, and this is a number"),
    ] {
        let error = Config::parse(&format!("[policy.x]\n{keys}\n")).expect_err(keys);
        assert_eq!(error.problem(), problem, "{keys}");
        assert!(!error.hint().is_empty(), "{keys}");
        assert!(error.line() > Some(1), "{keys} points at {error}");
    }
}

#[test]
fn flags_lie_over_a_file() {
    let draft = |keys: &str| Config::parse(&format!("[policy]\n{keys}\n")).unwrap().draft(None).unwrap();
    let file = draft("base = '100ms'\nfactor = 3\ncap = '10s'\nmax_attempts = 5");
    let over = |keys: &str| draft(keys).over(file.clone()).policy().unwrap();
    let base = Policy::exponential(SEC / 10).factor(3.0).cap(10 * SEC).max_attempts(5);
    assert_eq!(over(""), base);
    assert_eq!(over("max_attempts = 2"), base.max_attempts(2));
    assert_eq!(over("max_attempts = 'unlimited'"), base.unlimited_attempts());
    assert_eq!(over("curve = 'exponential'"), base);
    assert_eq!(over("curve = 'constant'"), Policy::constant(SEC / 10).cap(10 * SEC).max_attempts(5));
    assert_eq!(over("curve = 'immediate'"), Policy::immediate().cap(10 * SEC).max_attempts(5));
    assert_eq!(over("delays = ['1s']"), Policy::list(&[SEC]).cap(10 * SEC).max_attempts(5));
}

#[test]
fn every_profile_survives_being_written_and_read() {
    for profile in crate::compat::all() {
        let named = policy(&format!("compat = '{}'", profile.name));
        assert_eq!(named, profile.policy(), "{}", profile.name);
        let text = Draft::from(named).to_string();
        assert_eq!(policy(&text), named, "{}: {text}", profile.name);
    }
}

#[test]
fn a_profile_takes_limits_but_no_other_curve() {
    let celery = crate::compat::find("celery").or(crate::compat::find(crate::compat::all()[0].name)).unwrap();
    let named = format!("compat = '{}'", celery.name);
    assert_eq!(policy(&format!("{named}\nmax_attempts = 2")), celery.policy().max_attempts(2));
    let error = Config::parse(&format!("[policy]\n{named}\nbase = '1s'")).unwrap_err();
    assert_eq!(error.problem(), format!("the profile {:?} has a curve of its own", celery.name));
    assert_eq!((error.line(), error.hint()), (Some(3), "leave out either compat or base"));

    let draft = |keys: &str| Config::parse(&format!("[policy]\n{keys}\n")).unwrap().draft(None).unwrap();
    let over = |over: &str, under: &str| draft(over).over(draft(under)).policy().unwrap();
    assert_eq!(over(&named, "base = '5s'\njitter = 'none'\nmax_attempts = 3"), celery.policy().max_attempts(3));
    let base = Policy::exponential(5 * SEC);
    assert_eq!(over("base = '5s'", &format!("{named}\nmax_attempts = 3")), base.max_attempts(3));
}

#[test]
fn files_that_cannot_be_read_say_so() {
    let missing = Config::load("/nonexistent/relent.toml".as_ref()).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read the policy file \"/nonexistent/relent.toml\": "), "{missing}");
    assert_eq!(missing.line(), None);
    let folder = Config::load(std::env::temp_dir().as_ref()).unwrap_err();
    assert!(folder.to_string().starts_with("cannot read the policy file "), "{folder}");
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1..=u64::MAX).prop_map(Duration::from_nanos),
        (1..100_000u64).prop_map(Duration::from_millis),
        (1..100_000u64).prop_map(Duration::from_secs),
    ]
}

fn any_curve() -> impl Strategy<Value = Curve> {
    let leak = |delays: Vec<Duration>| -> &'static [Duration] { delays.leak() };
    prop_oneof![
        Just(Curve::Immediate),
        any_duration().prop_map(|base| Curve::Constant { base }),
        (any_duration(), any_duration()).prop_map(|(base, step)| Curve::Linear { base, step }),
        (any_duration(), prop_oneof![1.0..4.0f64, 1.0..f64::MAX, (1..9u8).prop_map(f64::from)])
            .prop_map(|(base, factor)| Curve::Exponential { base, factor }),
        any_duration().prop_map(|base| Curve::Fibonacci { base }),
        any_duration().prop_map(|slot| Curve::Slots { slot }),
        (prop::collection::vec(any_duration(), 1..5), any::<bool>())
            .prop_map(move |(delays, repeat)| Curve::List { delays: leak(delays), repeat }),
    ]
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        (0.0..=1.0f64).prop_map(Jitter::Proportional),
        any_duration().prop_map(Jitter::Additive),
    ]
}

prop_compose! {
    fn any_settings()(
        curve in any_curve(),
        cap in prop::option::of(any_duration()),
        jitter in any_jitter(),
        max_attempts in prop::option::of(1..=u32::MAX),
        max_elapsed in prop::option::of(any_duration()),
        max_pushback in prop::option::of(any_duration()),
        timeout in prop::option::of(any_duration()),
        attempt_timeout in prop::option::of(any_duration()),
        spread in any_duration(),
    ) -> Settings {
        Settings { curve, cap, jitter, max_attempts, max_elapsed, max_pushback, timeout, attempt_timeout, spread }
    }
}

proptest! {
    #[test]
    fn written_out_and_read_in_is_the_same(settings in any_settings()) {
        if let Ok(policy) = settings.policy() {
            let text = format!("[policy.x]\n{}", Draft::from(policy));
            prop_assert_eq!(Config::parse(&text).expect(&text).policy("x").unwrap(), policy, "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}", keys in prop::sample::select(&KEYS)) {
        let _ = Config::parse(&text).map_err(|e| e.to_string());
        let _ = Config::parse(&format!("[policy]\n{keys} = {text}")).map_err(|e| e.to_string());
        let _ = Draft::default().set(keys, &text);
    }
}
