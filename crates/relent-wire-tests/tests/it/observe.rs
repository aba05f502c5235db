//! What is seen of calls: by a real exporter for Prometheus, and by a subscriber of `tracing`.

use http::{Request, Response};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use relent::{
    Admission, Answer, Arrival, Breaker, Budget, Cancel, Jitter, Limit, Pacer, Policy, Priority, Reason, Timestamp,
    Upstream, Verdict, layer::AdmissionLayer, observe,
};
use std::{
    collections::BTreeSet,
    convert::Infallible,
    future::{Ready, ready},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};
use tower::{Layer, ServiceExt, service_fn};
use tracing::{
    Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

const SEC: Duration = Duration::from_secs(1);
const EXACT: Policy = Policy::constant(SEC).jitter(Jitter::None).max_attempts(3);

fn exporter() -> (PrometheusRecorder, PrometheusHandle) {
    let named = |name: &str| Matcher::Full(name.to_owned());
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(named("relent_call_attempts"), &observe::ATTEMPTS)
        .unwrap()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &observe::SECONDS)
        .unwrap()
        .build_recorder();
    let handle = recorder.handle();
    (recorder, handle)
}

/// The value of a series, given by its name and some of its labels.
fn value(text: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has = |line: &str| labels.iter().all(|(key, value)| line.contains(&format!("{key}=\"{value}\"")));
    let mut lines = text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name) && has(line));
    let line = lines.next()?;
    assert!(lines.next().is_none(), "more than one {name} {labels:?} in\n{text}");
    line.rsplit(' ').next()?.parse().ok()
}

/// Every way that a call can end, so that whatever can be exported is.
async fn a_day_in_a_life() {
    let bank = Upstream::new("bank")
        .budget(Budget::ratio(0.1).min_per_second(1))
        .breaker(Breaker::consecutive(4).open_for(30 * SEC))
        .limit(Limit::concurrency(10));
    let read = EXACT.on(&bank).observe("read");
    assert_eq!(read.retry(async |_| Ok::<_, &str>(1)).await.unwrap(), 1);
    let second = read.retry(async |nth| if nth.number() < 2 { Err("down") } else { Ok(2) }).await;
    assert_eq!(second.unwrap(), 2);
    assert_eq!(read.retry(async |_| Err::<(), _>("down")).await.unwrap_err().reason, Reason::Attempts);
    read.retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert_eq!(read.retry(async |_| Ok::<_, &str>(1)).await.unwrap_err().reason, Reason::Open);
    let layer = AdmissionLayer::new(Admission::new()).observe();
    let late = Request::builder().header("relent-deadline", "0").body(String::new()).unwrap();
    assert_eq!(layer.layer(service_fn(hello)).oneshot(late).await.unwrap().status(), 429);
}

async fn hello(_: Request<String>) -> Result<Response<String>, Infallible> {
    Ok(Response::new("hello".to_owned()))
}

/// What a layer answers to a request with this header.
async fn asked(layer: &AdmissionLayer, path: &str, (name, value): (&str, &str)) -> u16 {
    let request = Request::get(path).header(name, value).body(String::new()).unwrap();
    layer.layer(service_fn(hello)).oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_refused_are_counted_by_their_reason() {
    let (recorder, exporter) = exporter();
    let _here = metrics::set_default_local_recorder(&recorder);
    let door = || Admission::new().limit(Limit::concurrency(2));
    let plain = AdmissionLayer::new(door()).observe().priority(|_, uri, _| match uri.path() {
        "/export" => Priority::Low,
        _ => Priority::Normal,
    });
    let first = ("relent-attempt", "1");
    assert_eq!(asked(&plain, "/", ("relent-deadline", "0")).await, 429);
    let _one = plain.admission().permit(Timestamp::ZERO, &Arrival::default()).unwrap();
    assert_eq!(asked(&plain, "/export", first).await, 429, "half of the room is in use");
    assert_eq!(asked(&plain, "/", first).await, 200);
    let _two = plain.admission().permit(Timestamp::ZERO, &Arrival::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(asked(&plain, "/", first).await, 429, "all of it");
    }
    let many_retries = ("relent-attempts", "1=100,2=300");
    assert_eq!(asked(&plain, "/", many_retries).await, 429);

    let turns = AdmissionLayer::new(door().pacer(Pacer::capacity(1.0))).observe();
    let _inside =
        [(), ()].map(|()| turns.admission().permit(Timestamp::ZERO, &Arrival { attempt: 2, ..Arrival::default() }));
    assert_eq!(asked(&turns, "/", first).await, 429);
    assert_eq!(asked(&turns, "/", first).await, 429);

    let unseen = AdmissionLayer::new(Admission::new());
    assert_eq!(asked(&unseen, "/", ("relent-deadline", "0")).await, 429);

    let text = exporter.render();
    for (reason, times) in [("hopeless", 1.0), ("low", 1.0), ("full", 3.0), ("retries", 1.0), ("turns", 2.0)] {
        assert_eq!(value(&text, "relent_shed_total", &[("reason", reason)]), Some(times), "{reason} in\n{text}");
    }
    let of = plain.snapshot();
    assert_eq!((of.hopeless, of.low, of.full, of.retries, turns.snapshot().turns), (1, 1, 3, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_how_they_end() {
    let (recorder, exporter) = exporter();
    let _here = metrics::set_default_local_recorder(&recorder);
    a_day_in_a_life().await;
    let text = exporter.render();
    let of = |name, labels: &[(&str, &str)]| value(&text, name, &[labels, &[("upstream", "bank")]].concat());
    assert_eq!(of("relent_calls_total", &[("outcome", "success")]), Some(2.0), "{text}");
    assert_eq!(of("relent_calls_total", &[("outcome", "failure"), ("reason", "attempts")]), Some(1.0));
    assert_eq!(of("relent_calls_total", &[("outcome", "failure"), ("reason", "open")]), Some(2.0), "{text}");
    assert_eq!(of("relent_attempts_total", &[("verdict", "success"), ("policy", "read")]), Some(2.0));
    assert_eq!(of("relent_attempts_total", &[("verdict", "transient")]), Some(5.0), "{text}");
    assert_eq!(of("relent_retries_total", &[("policy", "read")]), Some(4.0));
    assert_eq!(of("relent_call_attempts_sum", &[]), Some(7.0));
    assert_eq!(of("relent_call_attempts_count", &[]), Some(5.0));
    assert_eq!(of("relent_call_attempts_bucket", &[("le", "2")]), Some(4.0));
    assert_eq!(of("relent_call_elapsed_seconds_bucket", &[("le", "0.005")]), Some(2.0));
    assert_eq!(of("relent_breaker_state", &[]), Some(2.0));
    assert!(of("relent_budget_balance", &[]).is_some_and(|left| left > 0.0 && left < 10.0));
    assert_eq!(of("relent_limiter_limit", &[]), Some(10.0));
    assert!(of("relent_call_delay_seconds_sum", &[]).is_some_and(|waited| (3.0..=4.0).contains(&waited)), "{text}");
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_told_once() {
    let (recorder, exporter) = exporter();
    let _here = metrics::set_default_local_recorder(&recorder);
    let policy = EXACT.attempt_timeout(2 * SEC).max_pushback(60 * SEC).max_attempts(8);
    let verdicts = [Verdict::Transient, Verdict::After(3 * SEC), Verdict::Turn(3 * SEC), Verdict::Overloaded];
    let err = policy
        .when(|verdict: &u32| verdicts[*verdict as usize])
        .observe("any")
        .retry(async |nth| match nth.number() {
            2 => std::future::pending().await,
            n @ 3.. => Err::<(), _>(n - 2),
            _ => Err(0),
        })
        .await;
    assert_eq!(err.unwrap_err().reason, Reason::Overloaded);
    let inner = || Policy::immediate().retry_blocking(|_| Err::<(), _>("no"));
    let nested = Policy::immediate().observe("outer").retry_blocking(|_| inner());
    assert_eq!(nested.unwrap_err().attempts, 1);
    let poll = EXACT.max_attempts(9).observe("poll");
    let mut asked = 0;
    let done = poll.poll(|_| {
        asked += 1;
        let answer = if asked < 4 {
            Ok(Answer::Still)
        } else if asked == 4 {
            Err("reset")
        } else {
            Ok(Answer::Done(()))
        };
        async move { answer }
    });
    done.await.unwrap();
    let text = exporter.render();
    for verdict in ["transient", "timeout", "after", "turn", "overloaded"] {
        let labels = [("policy", "any"), ("verdict", verdict)];
        assert_eq!(value(&text, "relent_attempts_total", &labels), Some(1.0), "{verdict} in\n{text}");
    }
    assert_eq!(value(&text, "relent_attempts_total", &[("policy", "outer")]), Some(1.0), "{text}");
    assert_eq!(value(&text, "relent_attempts_total", &[("policy", "outer"), ("verdict", "permanent")]), Some(1.0));
    assert_eq!(value(&text, "relent_attempts_total", &[("policy", "poll"), ("verdict", "success")]), Some(4.0));
    assert_eq!(value(&text, "relent_call_attempts_sum", &[("policy", "poll")]), Some(5.0));
    assert_eq!(value(&text, "relent_call_elapsed_seconds_sum", &[("policy", "poll")]), Some(4.0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_told_too() {
    let (recorder, exporter) = exporter();
    let _here = metrics::set_default_local_recorder(&recorder);
    let read = EXACT.observe("read");
    let hangs = read.retry(async |_| std::future::pending::<Result<(), &str>>().await);
    tokio::time::timeout(SEC, hangs).await.unwrap_err();
    drop(read.retry(async |_| Ok::<_, &str>(1)));
    let switch = Cancel::new();
    switch.cancel();
    let err = EXACT.cancel(&switch).observe("read").retry(async |_| Ok::<_, &str>(1)).await.unwrap_err();
    assert_eq!(err.reason, Reason::Cancelled);
    let text = exporter.render();
    assert_eq!(value(&text, "relent_calls_total", &[("outcome", "dropped")]), Some(1.0), "{text}");
    assert_eq!(value(&text, "relent_attempts_total", &[("verdict", "dropped")]), Some(1.0));
    assert_eq!(value(&text, "relent_calls_total", &[("reason", "cancelled")]), Some(1.0));
}

#[test]
fn without_a_recorder_nothing_is_registered_and_nothing_changes() {
    let read = EXACT.max_attempts(1).observe("read");
    assert_eq!(read.retry_blocking(|_| Ok::<_, &str>(1)).unwrap(), 1);
    let (recorder, exporter) = exporter();
    drop(recorder);
    assert_eq!(exporter.render(), "");
}

#[tokio::test]
async fn observed_calls_are_spawned_and_notified() {
    let told = Arc::new(Mutex::new(0));
    let tell = told.clone();
    let call = Policy::immediate()
        .max_attempts(3)
        .notify(move |_| *tell.lock().unwrap() += 1)
        .observe("read")
        .retry(async |_| Err::<(), _>("down"));
    assert_eq!(tokio::spawn(call).await.unwrap().unwrap_err().attempts, 3);
    assert_eq!(*told.lock().unwrap(), 2);
}

fn grafana() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana")
}

/// All names of ours in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("relent_")).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn the_dashboard_and_the_alerts_name_what_is_exported_and_nothing_else() {
    let (recorder, exporter) = exporter();
    let _here = metrics::set_default_local_recorder(&recorder);
    a_day_in_a_life().await;
    let exported = names(&exporter.render());
    for file in ["relent.json", "alerts.yml", "alerts.test.yml"] {
        let text = std::fs::read_to_string(grafana().join(file)).unwrap();
        let unknown: Vec<_> = names(&text).difference(&exported).cloned().collect();
        assert!(names(&text).len() > 3 && unknown.is_empty(), "{file} names {unknown:?}, which nobody exports");
    }
    let text = std::fs::read_to_string(grafana().join("relent.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(panel["targets"][0]["expr"].as_str().unwrap().contains("relent_"), "{}", panel["title"]);
    }
}

/// `promtool` if it is here; said aloud if not.
fn promtool(args: &[&str], input: &str) -> Option<(bool, String)> {
    let mut tool = Command::new("promtool");
    tool.args(args).current_dir(grafana()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match tool.spawn() {
        Ok(child) => child,
        Err(err) => {
            eprintln!("SKIPPED promtool {}: {err} (it is in the Debian package prometheus)", args.join(" "));
            return None;
        }
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    Some((output.status.success(), said))
}

#[tokio::test(start_paused = true)]
async fn promtool_finds_no_fault_in_what_is_exported() {
    let (recorder, exporter) = exporter();
    let _here = metrics::set_default_local_recorder(&recorder);
    a_day_in_a_life().await;
    let Some((_, said)) = promtool(&["check", "metrics"], &exporter.render()) else { return };
    // What it says besides is a matter of taste: a name with a `count` or `total` in it.
    assert!(!said.contains("error while linting") && !said.contains("no help text"), "{said}\n{}", exporter.render());
}

#[test]
fn promtool_finds_the_alerts_right() {
    for args in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]] {
        let Some((is_right, said)) = promtool(&args, "") else { return };
        assert!(is_right, "{said}");
    }
}

/// What a subscriber heard: a line for each span and event.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    lines: Vec<String>,
    spans: u64,
    inside: Vec<u64>,
}

impl Visit for Heard {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if let Some(line) = self.lines.last_mut() {
            line.push_str(&format!(" {}={value:?}", field.name()));
        }
    }
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "relent" || metadata.target() == module_path!()
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut heard = self.0.lock().unwrap();
        heard.spans += 1;
        let line = format!("span {}", span.metadata().name());
        heard.lines.push(line);
        span.record(&mut *heard);
        span::Id::from_u64(heard.spans)
    }
    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        let mut heard = self.0.lock().unwrap();
        let line = format!("of {}", span.into_u64());
        heard.lines.push(line);
        values.record(&mut *heard);
    }
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut heard = self.0.lock().unwrap();
        let line = format!("{} in {:?}", event.metadata().level(), heard.inside);
        heard.lines.push(line);
        event.record(&mut *heard);
    }
    fn enter(&self, span: &span::Id) {
        self.0.lock().unwrap().inside.push(span.into_u64());
    }
    fn exit(&self, _: &span::Id) {
        self.0.lock().unwrap().inside.pop();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_a_span_and_a_retry_an_event_in_it() {
    let ear = Ear::default();
    let _here = tracing::subscriber::set_default(ear.clone());
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(2));
    bank.observe();
    let call = EXACT.max_attempts(2).on(&bank).observe("read").retry(async |_| {
        tracing::event!(Level::INFO, "asking");
        tokio::time::sleep(SEC).await;
        Err::<(), _>("reset by peer")
    });
    call.await.unwrap_err();
    assert_eq!(
        ear.0.lock().unwrap().lines,
        [
            "span call policy=\"read\" upstream=\"bank\"",
            "INFO in [1] message=asking",
            "WARN in [1] message=will try again attempt=1 delay=1s error=reset by peer reason=transient",
            "INFO in [1] message=asking",
            "WARN in [1] message=breaker changed upstream=\"bank\" from=\"closed\" to=\"open\"",
            "of 1 attempts=2",
            "of 1 outcome=\"failure\"",
            "of 1 reason=\"attempts\"",
        ]
    );
}

/// Busy until the third request.
fn busy() -> impl Fn(Request<String>) -> Ready<Result<Response<String>, Infallible>> + Clone {
    let came = Arc::new(Mutex::new(0));
    move |_| {
        tracing::event!(Level::INFO, "asking");
        let mut came = came.lock().unwrap();
        *came += 1;
        ready(Ok(Response::builder().status(if *came < 3 { 503 } else { 200 }).body(String::new()).unwrap()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_through_a_layer_is_seen_as_others_are() {
    let (recorder, exporter) = exporter();
    let _figures = metrics::set_default_local_recorder(&recorder);
    let ear = Ear::default();
    let _logs = tracing::subscriber::set_default(ear.clone());
    let bank = Arc::new(Upstream::new("bank").budget(Budget::ratio(0.5).min_per_second(10)));
    let ask = async |policy: Policy, service| {
        let layer = policy.on(bank.clone()).observe("read").layer();
        layer.layer(service_fn(service)).oneshot(Request::new(String::new())).await.unwrap().status().as_u16()
    };
    assert_eq!(ask(EXACT, busy()).await, 200);
    assert_eq!(
        ear.0.lock().unwrap().lines,
        [
            "span call policy=\"read\" upstream=\"bank\"",
            "INFO in [1] message=asking",
            "WARN in [1] message=will try again attempt=1 delay=1s error=503 Service Unavailable reason=transient",
            "INFO in [1] message=asking",
            "WARN in [1] message=will try again attempt=2 delay=1s error=503 Service Unavailable reason=transient",
            "INFO in [1] message=asking",
            "of 1 attempts=3",
            "of 1 outcome=\"success\"",
        ]
    );
    assert_eq!(ask(EXACT.max_attempts(2), busy()).await, 503, "handed over as it came, and a failure still");
    let lines = ear.0.lock().unwrap().lines.clone();
    assert_eq!(lines[lines.len() - 2..], ["of 2 outcome=\"failure\"", "of 2 reason=\"attempts\""]);
    let text = exporter.render();
    let of = |name, labels: &[(&str, &str)]| value(&text, name, &[labels, &[("upstream", "bank")]].concat());
    assert_eq!(of("relent_calls_total", &[("outcome", "success"), ("policy", "read")]), Some(1.0), "{text}");
    assert_eq!(of("relent_calls_total", &[("outcome", "failure"), ("reason", "attempts")]), Some(1.0), "{text}");
    assert_eq!(of("relent_attempts_total", &[("verdict", "transient")]), Some(4.0), "{text}");
    assert_eq!(of("relent_attempts_total", &[("verdict", "success")]), Some(1.0), "{text}");
    assert_eq!(of("relent_retries_total", &[]), Some(3.0), "{text}");
    assert_eq!(of("relent_call_delay_seconds_sum", &[]), Some(3.0), "{text}");
    assert!(of("relent_budget_balance", &[]).is_some(), "{text}");
}
