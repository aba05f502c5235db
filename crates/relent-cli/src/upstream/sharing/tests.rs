use super::*;
use relent::{Verdict, config::UpstreamDraft};

const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

fn rules() -> Rules {
    let mut draft = UpstreamDraft::default();
    draft.set("budget", "ratio=0.1,min_per_second=0,window=1h").unwrap();
    draft.set("breaker", "consecutive=20,open_for=30s").unwrap();
    Rules::of(&draft.settings())
}

fn sharing(url: &str) -> Sharing {
    by(rules(), url)
}

fn by(rules: Rules, url: &str) -> Sharing {
    Sharing::start(url.to_owned(), Key::new("bank").unwrap(), rules, None).unwrap()
}

/// A folder, and a store in it that is not there yet.
fn file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("state.db").display());
    (folder, url)
}

/// An attempt that is let through, and ends so.
fn ends(mut process: Sharing, outcome: Outcome) {
    assert_eq!(process.ask(true, Duration::ZERO), Leave::Go);
    process.ended(outcome, false);
}

/// A retry for each ten calls.
#[test]
fn processes_share_a_budget() {
    let (_folder, url) = file();
    let mut paid = 0;
    for _ in 0..20 {
        let mut process = sharing(&url);
        assert_eq!(process.ask(true, Duration::ZERO), Leave::Go);
        process.ended(Outcome::Success, false);
        paid += u32::from(process.pay());
        assert!(process.take_remarks().is_empty());
    }
    assert_eq!(paid, 2);
}

#[test]
fn processes_share_a_breaker() {
    let (_folder, url) = file();
    let mut refused = 0;
    for _ in 0..30 {
        let mut process = sharing(&url);
        match process.ask(true, Duration::ZERO) {
            Leave::Go => process.ended(FAILED, false),
            Leave::Wait(_) => panic!("there is no rate"),
            Leave::No(reason, why) => {
                assert_eq!(reason, Reason::Open);
                assert_eq!(why, "20 attempts in a row have failed, of all processes");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 10);
}

/// What the far side has answered is no failure of it, whatever it said, and of what was dropped nothing is known.
#[test]
fn what_is_no_sign_of_trouble_opens_no_breaker() {
    let (_folder, url) = file();
    let ends = |outcome: Outcome, times: usize| {
        for nth in 0..times {
            let mut process = sharing(&url);
            assert_eq!(process.ask(true, Duration::ZERO), Leave::Go, "{outcome:?} {nth}");
            process.ended(outcome, false);
        }
    };
    ends(Outcome::Failure(Verdict::Permanent), 21);
    ends(FAILED, 19);
    ends(Outcome::Dropped, 21);
    ends(FAILED, 1);
    assert!(matches!(sharing(&url).ask(true, Duration::ZERO), Leave::No(Reason::Open, _)), "20 in a row");
}

/// One of a burst that is not used is there for others.
#[test]
fn what_is_refused_uses_up_no_burst() {
    let (_folder, url) = file();
    let mut draft = UpstreamDraft::default();
    draft.set("limit", "rate=5,per=1d,burst=5").unwrap();
    draft.set("breaker", "consecutive=2,open_for=1s").unwrap();
    let start = || by(Rules::of(&draft.settings()), &url);
    for _ in 0..2 {
        ends(start(), FAILED);
    }
    for _ in 0..6 {
        assert!(matches!(start().ask(true, Duration::ZERO), Leave::No(Reason::Open, _)));
    }
    thread::sleep(Duration::from_millis(2100));
    for nth in 0..3 {
        let mut process = start();
        assert_eq!(process.ask(true, Duration::ZERO), Leave::Go, "{nth}");
        process.ended(Outcome::Success, false);
    }
    assert!(matches!(start().ask(true, Duration::ZERO), Leave::No(Reason::Shed, _)));
}

/// Those that failed before the last time for which it would be open count in the window of shares.
#[test]
fn a_breaker_of_several_looks_back_for_each_of_them() {
    let (_folder, url) = file();
    let mut draft = UpstreamDraft::default();
    draft.set("breaker", "consecutive=100,failures=3,window=60s,open_for=1s").unwrap();
    let start = || by(Rules::of(&draft.settings()), &url);
    for _ in 0..3 {
        ends(start(), FAILED);
    }
    assert!(matches!(start().ask(true, Duration::ZERO), Leave::No(Reason::Open, _)));
    thread::sleep(Duration::from_millis(2100));
    assert!(matches!(start().ask(true, Duration::ZERO), Leave::No(Reason::Open, _)), "they count for a minute");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hold = async {
        let store = Store::open(&url).await.unwrap();
        store.hold(&Key::new("bank").unwrap(), Some(relent_store::Held::Closed)).await.unwrap();
    };
    runtime.block_on(hold);
    assert_eq!(start().ask(true, Duration::ZERO), Leave::Go, "a hand wins");
    // Nor is it tried whether it is well as long as they count.
    draft.set("breaker", "consecutive=3,failures=3,window=60s,open_for=1s").unwrap();
    runtime.block_on(async {
        let store = Store::open(&url).await.unwrap();
        store.hold(&Key::new("bank").unwrap(), None).await.unwrap();
    });
    let mut process = by(Rules::of(&draft.settings()), &url);
    assert!(matches!(process.ask(true, Duration::ZERO), Leave::No(Reason::Open, _)));
}

#[test]
fn processes_share_a_rate_and_what_is_not_used_goes_back() {
    let (_folder, url) = file();
    let (minute, no) = (Duration::from_secs(60), Duration::ZERO);
    let mut draft = UpstreamDraft::default();
    draft.set("limit", "rate=1,per=1m,burst=3").unwrap();
    let start = || by(Rules::of(&draft.settings()), &url);
    for _ in 0..3 {
        let mut process = start();
        assert_eq!(process.ask(true, no), Leave::Go);
        process.ended(Outcome::Success, false);
    }
    let Leave::No(Reason::Shed, why) = start().ask(true, no) else { panic!("it is used up") };
    assert!(why.starts_with("the rate of all processes, 1 each 1m, is used up; ask again in "), "{why}");
    let mut patient = start();
    let Leave::Wait(wait) = patient.ask(true, minute) else { panic!("it is worth waiting for") };
    assert!(wait > minute / 2 && wait <= minute, "{wait:?}");
    let Leave::Wait(again) = patient.ask(true, no) else { panic!("it is booked") };
    assert!(again <= wait);
    assert!(matches!(start().ask(true, minute), Leave::No(..)), "somebody else has booked it");
    // Whoever does not wait after all leaves it to others.
    drop(patient);
    assert!(matches!(start().ask(true, minute), Leave::Wait(_)));
}

/// Each comes when it was told to: who comes next is never told the same time as who waits already.
#[test]
fn what_another_has_booked_is_nobody_elses_when_somebody_goes() {
    let (_folder, url) = file();
    let mut draft = UpstreamDraft::default();
    draft.set("limit", "rate=1,per=1m").unwrap();
    let hour = Duration::from_secs(3600);
    let start = || {
        let rules = Rules::of(&draft.settings());
        let mut process = by(rules, &url);
        let minutes = match process.ask(true, hour) {
            Leave::Go => 0,
            // What has passed since the first began.
            Leave::Wait(wait) => wait.as_secs().div_ceil(60),
            Leave::No(_, why) => panic!("{why}"),
        };
        (process, minutes)
    };
    let mut line: Vec<_> = (0..5).map(|_| start()).collect();
    assert!(line.iter().map(|(_, minutes)| *minutes).eq(0..5));
    drop(line.remove(2));
    assert_eq!(line.last().unwrap().1, 4);
    line.push(start());
    assert_eq!(line.last().unwrap().1, 5, "another has the fourth");
    drop(line.pop());
    line.push(start());
    assert_eq!(line.last().unwrap().1, 5, "nobody has the fifth any more");
}

#[test]
fn without_its_store_a_process_goes_on_alone_and_says_so_once() {
    let mut process = sharing("sqlite:/no/such/folder/state.db");
    for _ in 0..10 {
        assert_eq!(process.ask(true, Duration::ZERO), Leave::Go);
        process.ended(FAILED, false);
        assert!(process.pay());
    }
    let remarks = process.take_remarks();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].starts_with("bank: its store is away, going on alone: "), "{remarks:?}");
}
