//! Golden vectors: numbers that other systems produce, and the profiles of `relent::compat` must reproduce.
//!
//! Runs every case of every file in `vectors/`, or in the folder that `RELENT_VECTORS` names, and fails on a file or a
//! case that it does not know, so that nothing is left out silently. What belongs to budgets, throttles, breakers and
//! other protections that relent does not have yet is counted as "later". Equality is that of `vectors/README.md`.
#![cfg(feature = "std")]

#[path = "vectors/aws.rs"]
mod aws;
#[path = "vectors/breakers.rs"]
mod breakers;
#[path = "vectors/case.rs"]
mod case;
#[path = "vectors/cenkalti.rs"]
mod cenkalti;
#[path = "vectors/drive.rs"]
mod drive;
#[path = "vectors/go.rs"]
mod go;
#[path = "vectors/jvm.rs"]
mod jvm;
#[path = "vectors/node.rs"]
mod node;
#[path = "vectors/protect.rs"]
mod protect;
#[path = "vectors/python.rs"]
mod python;
#[path = "vectors/rpc.rs"]
mod rpc;
#[path = "vectors/specs.rs"]
mod specs;

use case::{Case, Outcome, Verified};
use serde_json::Value;
use std::{env, fs, path::PathBuf};

type Check = fn(&Case) -> Outcome;

/// Which check knows the cases of a file.
fn check_of(file: &str) -> Option<Check> {
    Some(match file {
        "aws_blog_jitter" => specs::aws_blog,
        "botocore_legacy_v2_1_2026" => aws::legacy,
        "botocore_standard_adaptive_v2_0_2020" => aws::standard_2020,
        "botocore_standard_adaptive_v2_1_2026" => aws::standard_2026,
        "celery_autoretry_trace" => python::celery_autoretry,
        "celery_get_exponential_backoff_interval" => python::celery_interval,
        "cenkalti_backoff_v4" => cenkalti::v4,
        "cenkalti_backoff_v5_v7_traces" => cenkalti::v5_to_v7,
        "cockatiel_backoff" => node::cockatiel,
        "cockatiel_circuit_breaker_trace" => breakers::cockatiel,
        "gobreaker_trace" => breakers::gobreaker,
        "envoy" => rpc::envoy,
        "ethernet_beb" => specs::ethernet,
        "failsafe_go" => go::failsafe,
        "failsafe_java" => jvm::failsafe,
        "finagle_budget_backoff" => jvm::finagle,
        "go_retryablehttp" => go::retryablehttp,
        "google_api_core_retry" => python::google_api_core,
        "google_cloud_truncated_exponential" => specs::google_cloud,
        "grpc_a6_spec" => rpc::a6,
        "grpc_go_and_gax" => rpc::grpc_go_and_gax,
        "grpc_js_retry" => rpc::grpc_js,
        "jpillora_backoff" => go::jpillora,
        "kombu_retry_over_time" => python::kombu,
        "linkerd_exp_backoff" => rpc::linkerd,
        "litl_backoff" => python::litl,
        "npm_axios_retry" => node::axios,
        "npm_exponential_backoff" => node::exponential_backoff,
        "npm_got_retry" => node::got,
        "npm_reconnecting_websocket" => node::reconnecting_websocket,
        "npm_retry_timeouts" => node::retry,
        "polly_v8_retry_delay" => jvm::polly,
        "resilience4j_interval_function" => jvm::resilience4j,
        "sdk_stripe_openai" => python::stripe_and_openai,
        "smithy_js_retry" => aws::smithy_js,
        "sre_adaptive_throttling" => protect::sre,
        "stamina_compute_backoff" => python::stamina,
        "tenacity_stop_trace" => python::tenacity_stop,
        "tenacity_wait" => python::tenacity_wait,
        "urllib3_retry" => python::urllib3,
        _ => return None,
    })
}

/// What became of the cases of one file.
#[derive(Default)]
struct Count {
    ran: usize,
    later: usize,
    skipped: usize,
    failed: usize,
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.ran += other.ran;
        self.later += other.later;
        self.skipped += other.skipped;
        self.failed += other.failed;
    }

    fn row(&self, name: &str) -> String {
        format!("{name:42} {:>6} {:>6} {:>8} {:>7}", self.ran, self.later, self.skipped, self.failed)
    }
}

/// Cases of `vectors/` that run, that are for later and that are skipped: none goes away silently.
const PINNED: (usize, usize, usize) = (2747, 0, 1);

#[test]
fn every_case_of_every_file_is_reproduced() {
    let folder = env::var_os("RELENT_VECTORS")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors")), PathBuf::from);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let (mut total, mut problems, mut table) = (Count::default(), Vec::new(), Vec::new());
    for path in &files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let count = run_file(path, &name, &mut problems);
        table.push(count.row(&name));
        total.add(&count);
    }
    println!("{:42} {:>6} {:>6} {:>8} {:>7}", "file", "ran", "later", "skipped", "failed");
    println!("{}\n{}", table.join("\n"), total.row("all"));
    assert!(total.ran > 0, "no cases in {}", folder.display());
    if env::var_os("RELENT_VECTORS").is_none() {
        assert_eq!((total.ran, total.later, total.skipped), PINNED, "cases that ran, are for later, were skipped");
    }
    let shown = problems.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(problems.is_empty(), "{} problems, the first:\n{shown}", problems.len());
}

fn run_file(path: &PathBuf, name: &str, problems: &mut Vec<String>) -> Count {
    let mut count = Count::default();
    let text = fs::read_to_string(path).expect("a file that was listed can be read");
    let file: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let cases = file["cases"].as_array().unwrap_or_else(|| panic!("{name}: no cases"));
    let Some(check) = check_of(name) else {
        problems.push(format!("{name}: a file that this test does not know"));
        count.failed = cases.len();
        return count;
    };
    for (index, case) in cases.iter().enumerate() {
        match check(&Case(case)) {
            Ok(Verified::Ran) => count.ran += 1,
            Ok(Verified::Later) => count.later += 1,
            Ok(Verified::Skipped) => count.skipped += 1,
            Err(problem) => {
                count.failed += 1;
                problems.push(format!("{name}[{index}]: {problem}\n    {case}"));
            }
        }
    }
    count
}
