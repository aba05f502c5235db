//! The first act: one request to a service that fails, by the real client, attempt by attempt, with the reasons.

use super::{
    Stop,
    port::Port,
    service::{Answer, WORD, serve},
    stage::Stage,
};
use crate::talk::Fault;
use relent::wire::IdempotencyKey;
use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

const BODY: &str = "{\"order\": 42, \"state\": \"paid\"}\n";

/// What the service does once it is there.
const SCRIPT: &[Answer] = &[Answer::Busy, Answer::Silent(Duration::from_secs(2)), Answer::Healthy(BODY)];

const FLAGS: [&str; 6] = ["--base", "200ms", "--jitter", "equal", "--attempt-timeout", "500ms"];

/// Environment that would lead the client past the service.
const PROXIES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// Tells it; so many files are there for connections of others.
pub(super) fn tell(stage: &Stage, files: u64) -> Result<(), Stop> {
    let port = Port::closed()?;
    let url = format!("http://{}/orders/42", port.address());
    let shown = format!("$ relent http {} {url}", FLAGS.join(" "));
    stage.line(&shown)?;

    let program = env::current_exe().map_err(|error| Fault::new(format!("cannot find relent itself: {error}")))?;
    let mut client = Command::new(program);
    client.arg("http").args(FLAGS).arg(&url).current_dir("/");
    PROXIES.iter().for_each(|name| {
        client.env_remove(name);
    });
    // Any user of the machine sees the port, and arguments: what the service knows its client by is in neither.
    let word = IdempotencyKey::random();
    client.args(["-H", "@-"]);
    let client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let client = client.spawn().map_err(|error| Fault::new(format!("cannot start relent http: {error}")))?;
    let mut client = Ended(client);
    if let Some(mut stdin) = client.0.stdin.take() {
        // Where nobody reads it, the client says why.
        let _ = writeln!(stdin, "{WORD}: {}", word.as_str());
    }

    let (mut port, mut service) = (Some(port), None);
    let talk = client.0.stderr.take().map(BufReader::new);
    for line in talk.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        stage.line(&line)?;
        if let Some(reason) = reason(&line) {
            stage.aside(reason)?;
        }
        // The first attempt has been refused: now the service comes up.
        if let Some(port) = port.take() {
            let cannot = |error| Fault::new(format!("cannot start the service: {error}"));
            service = Some(serve(port.open()?, SCRIPT, word.as_str(), files).map_err(cannot)?);
        }
    }
    drop(service);
    let mut body = String::new();
    if let Some(mut stdout) = client.0.stdout.take() {
        let _ = stdout.read_to_string(&mut body);
    }
    stage.line(body.trim_end())?;
    match client.0.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Fault::new(format!("the client did not get through: {status}")).into()),
        Err(error) => Err(Fault::new(format!("cannot wait for the client: {error}")).into()),
    }
}

/// Why it went on as it did.
fn reason(line: &str) -> Option<&'static str> {
    const REASONS: [(&str, &str); 4] = [
        ("Connection refused", "Nothing listens yet. Not a byte was sent, so it is safe to try again."),
        ("503", "It is busy and says for how long. Never earlier than told, and a little spread after it."),
        ("no answer", "It accepts and then says nothing: --attempt-timeout ends that. A GET may be sent again."),
        ("succeeded", "Healthy. Standard output gets this answer and nothing of the failed ones:"),
    ];
    REASONS.iter().find(|(word, _)| line.contains(word)).map(|(_, reason)| *reason)
}

/// A process that does not outlive its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
