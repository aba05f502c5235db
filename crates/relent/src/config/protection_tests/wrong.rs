//! What makes no sense: what is said of it, and where.

use super::*;

/// The error of an upstream's line, its place, and its hint.
#[track_caller]
fn refuses(line: &str, column: usize, problem: &str, hint: &str) {
    refused(&format!("[upstream.x]\n{line}"), (2, column), problem, hint);
}

#[test]
fn what_is_wrong_stands_where_it_is() {
    refuses("bugdet = 'sre'", 1, "there is no key of an upstream \"bugdet\"", "did you mean \"budget\"?");
    refuses("budget = 'srw'", 10, "there is no budget \"srw\"", "did you mean \"sre\"?");
    refuses("budget = 5", 10, "a budget is a table or a name, and this is a number", BudgetSettings::LIKE);
    refuses("budget = {}", 10, "nothing says how many retries the budget allows", BudgetSettings::LIKE);
    refuses("budget = { rato = 0.1 }", 12, "there is no key of a budget \"rato\"", "did you mean \"ratio\"?");
    let nothing = "nothing says how many retries the budget allows";
    refuses("budget = { min_per_second = 1 }", 10, nothing, BudgetSettings::LIKE);
    refuses("limit = { bust = 5 }", 11, "there is no key of a limit \"bust\"", "did you mean \"burst\"?");
    refuses("limit = { burst = 5 }", 9, "nothing says what is limited", LimitSettings::LIKE);
    refuses("budget = ''", 10, "the budget says nothing", BudgetSettings::LIKE);
    refuses(
        "budget = { ratio = 1.5 }",
        20,
        "the ratio is not between 0 and 1",
        "0.1 allows a retry for every tenth call",
    );
    refuses(
        "budget = { ratio = nan }",
        20,
        "the ratio is not between 0 and 1",
        "0.1 allows a retry for every tenth call",
    );
    refuses("budget = { ratio = 0.1, window = '0s' }", 34, "the window is zero", "leave it out for the default");
    refuses("budget = { ratio = 0.1, window = 10 }", 34, "window: the duration has no unit", {
        crate::duration::BadDuration::NoUnit.hint()
    });
    refuses(
        "budget = { ratio = 0.1, min_per_sec = 1 }",
        25,
        "there is no key of a ratio budget \"min_per_sec\"",
        "did you mean \"min_per_second\"?",
    );
    refuses(
        "budget = { ratio = 0.1, grpc = 10 }",
        25,
        "a budget is of one kind, not ratio and grpc",
        "leave one of them out",
    );
    refuses(
        "budget = { compat = 'grpc-a6', ratio = 0.1 }",
        10,
        "this budget is of kind grpc, and ratio is another",
        "leave one of them out",
    );
    refuses("budget = { compat = 5 }", 21, "compat is a text, and this is a number", "write it in quotes");
    refuses("budget = { grpc = 0 }", 19, "the tokens are not between 1 and 1000", "gRFC A6 suggests 10");
    refuses("budget = { finagle = -1 }", 22, "the ratio is not between 0 and 1000", "Finagle's default is 0.2");
    refuses("budget = { aws_quota = 0 }", 24, "the quota is empty", "the AWS SDKs have 500 tokens");
    refuses(
        "budget = { aws_quota = 9, timeout_cost = 0 }",
        42,
        "a retry costs nothing",
        "version 2.1 takes 14 tokens, 5 after throttling",
    );
    refuses("breaker = 'poly'", 11, "there is no breaker \"poly\"", "did you mean \"polly\"?");
    refuses(
        "breaker = { open_for = '30s' }",
        11,
        "nothing trips the breaker",
        "say consecutive, failures, share or slow_after",
    );
    refuses(
        "breaker = { share = 0.5, window = '1s', window_calls = 5 }",
        41,
        "a breaker has one window, not window and window_calls",
        "leave one of them out",
    );
    refuses(
        "breaker = { consecutive = 5, open_for = '0s' }",
        41,
        "the open time is zero",
        "30s keeps attempts away for thirty seconds",
    );
    refuses("breaker = { consecutive = 5, quirks = 'pollie' }", 39, "there is no quirks \"pollie\"", {
        "there are none, gobreaker, cockatiel"
    });
    refuses("limit = {}", 9, "nothing says what is limited", LimitSettings::LIKE);
    refuses("limit = 'fast'", 9, "there is no limit \"fast\"", "there are aws_adaptive, aimd, gradient");
    refuses("limit = { rate = 0 }", 18, "the rate is not between 1 and a million", "100 is a hundred a second");
    refuses(
        "limit = { aimd = 5, rat = 3 }",
        21,
        "there is no key of an aimd limit \"rat\"",
        "there are aimd, min, max, slow_after",
    );
    refuses("limit = { aimd = 5000 }", 18, "the limit does not start between its least and its most", "20 is usual");
    refuses("hedge = { at_most = 2 }", 9, "nothing says when a hedge starts", "say after or quantile");
    refuses("hedge = 'fast'", 9, "there is no hedge \"fast\"", "there are none");
    refuses("hedge = { quantile = 95 }", 22, "the quantile is not between 0 and 1", "0.95 hedges one call in twenty");
}

/// The shown error has the line and a caret under what is wrong.
#[test]
fn the_caret_stands_under_the_value() {
    let error = Config::parse("[upstream.bank]\nbreaker = { consecutive = 5, jitter = 2.5 }").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the jitter is not between 0 and 1\n --> 2:39\n  |\n\
         2 | breaker = { consecutive = 5, jitter = 2.5 }\n  |                                       ^^^"
    );
}

#[test]
fn absurd_numbers_are_errors() {
    let problem = |line: &str| {
        Config::parse(&format!("[upstream.x]\n{line}")).err().map_or("none".to_string(), |e| e.problem().to_string())
    };
    assert_eq!(problem("limit = { rate = 18446744073709551616 }"), "rate: 18446744073709551616 is too large", "2^64");
    assert_eq!(problem("limit = { rate = 4294967296 }"), "rate: 4294967296 is too large");
    assert_eq!(problem("limit = { rate = -1 }"), "rate: \"-1\" is not a whole number from 0 on");
    assert_eq!(problem("limit = { rate = 1.5 }"), "rate: \"1.5\" is not a whole number from 0 on");
    assert_eq!(problem("limit = { rate = true }"), "rate is a whole number, and this is true or false");
    assert_eq!(problem("limit = { rate = 1, per = '0s' }"), "the rate is not over 1 ms to a day");
    assert_eq!(problem("limit = { rate = 1, per = '2d' }"), "the rate is not over 1 ms to a day");
    assert_eq!(problem("limit = { rate = 1, burst = 0 }"), "no permit may come at once");
    assert_eq!(problem("limit = { concurrency = 0 }"), "nothing may be in flight");
    assert_eq!(problem("limit = { concurrency = 1, queue = 1, longest = '0s' }"), "nobody may wait in the queue");
    assert_eq!(problem("budget = { throttle = inf }"), "k is less than 1 or not finite");
    assert_eq!(problem("budget = { throttle = 0.5 }"), "k is less than 1 or not finite");
    assert_eq!(problem("budget = { in_flight = -0.1 }"), "the share is not between 0 and 1");
    assert_eq!(problem("budget = { ratio = 1e400 }"), "the ratio is not between 0 and 1");
    assert_eq!(problem("budget = { ratio = 0, min_per_second = 0 }"), "the budget never allows a retry");
    assert_eq!(
        problem("budget = { ratio = 0, min_per_second = 9999999 }"),
        "more than a million retries a second are always allowed"
    );
    assert_eq!(problem("breaker = { share = 0.5, window = '1ns' }"), "the window is zero");
    assert_eq!(problem("breaker = { share = nan }"), "the share of failures is not above 0 and up to 1");
    assert_eq!(problem("breaker = { consecutive = 1, probes = 5000 }"), "the probes are not 1 to 4095");
    assert_eq!(problem("breaker = { consecutive = 1, factor = inf }"), "the factor is less than 1 or not finite");
    assert_eq!(problem("breaker = { share = 1, window_calls = 0 }"), "the window is not 1 to 1024 calls");
    assert_eq!(problem("hedge = { after = '0s' }"), "a hedge would start with the first attempt");
    assert_eq!(problem("hedge = { after = '50ms', at_most = 300 }"), "the hedges of a call are not 1 to 255");
    let server = |line: &str| Config::parse(&format!("[server.x]\n{line}")).unwrap_err().problem().to_string();
    assert_eq!(server("pacer = { capacity = 0 }"), "the capacity is not above 0 and up to 10^9 a second");
    assert_eq!(server("pacer = { capacity = nan }"), "the capacity is not above 0 and up to 10^9 a second");
    assert_eq!(
        server("pacer = { capacity = 18446744073709551616 }"),
        "the capacity is not above 0 and up to 10^9 a second"
    );
    assert_eq!(server("pacer = { horizon = '60s' }"), "the pacer has no capacity");
    assert_eq!(server("pacer = { capacity = 1, horizon = '0s' }"), "the horizon is zero: there would be no turns");
    assert_eq!(
        server("pacer = { capacity = 1, kept = 0 }"),
        "the share of turns that are kept is not above 0 and up to 1"
    );
    assert_eq!(server("admission = { max_retry_share = 0 }"), "the share of retries is not above 0 and up to 1");
    assert_eq!(server("admission = { order = 'random' }"), "there is no order \"random\"");
    assert_eq!(server("admission = 7"), "an admission is a table or a name, and this is a number");
}

#[test]
fn flags_say_the_same() {
    let set = |key: &str, value: &str| {
        let mut draft = UpstreamDraft::default();
        draft.set(key, value).map(|()| draft)
    };
    let problem = |key: &str, value: &str| set(key, value).unwrap_err().problem;
    assert_eq!(
        set("budget", "ratio=0.1,min_per_second=1"),
        Ok(upstream("budget = { ratio = 0.1, min_per_second = 1 }"))
    );
    assert_eq!(set("budget", " aws-2.1 "), Ok(upstream("budget = 'aws-2.1'")));
    assert_eq!(
        set("breaker", "consecutive=5, open_for=30s"),
        Ok(upstream("breaker = { consecutive = 5, open_for = '30s' }"))
    );
    assert_eq!(set("limit", "rate=100,burst=10"), Ok(upstream("limit = { rate = 100, burst = 10 }")));
    assert_eq!(set("hedge", "after=50ms"), Ok(upstream("hedge = { after = '50ms' }")));
    assert_eq!(
        set("budget", "in_flight=0.2,sleeping=false"),
        Ok(upstream("budget = { in_flight = 0.2, sleeping = false }"))
    );
    assert_eq!(problem("budget", "ratio=0.1,0.2"), "\"0.2\" is not KEY=VALUE");
    assert_eq!(problem("budget", "ratio=0.1,ratio=0.2"), "ratio is given twice");
    assert_eq!(problem("budget", "ratio="), "ratio: \"\" is not a number");
    assert_eq!(problem("budget", ""), "the budget says nothing");
    assert_eq!(problem("limit", "rate="), "rate: \"\" is not a whole number from 0 on");
    assert_eq!(problem("breaker", "consecutive=5,open_for=30"), "open_for: the duration has no unit");
    assert_eq!(problem("fuse", "x"), "there is no key of an upstream \"fuse\"");
    assert_eq!(set("budget", "none").unwrap().budget, Part::Without);
}
