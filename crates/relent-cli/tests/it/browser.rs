//! A real browser without a window, spoken to over pipes (Chrome DevTools Protocol, messages that end with a zero byte).
//!
//! It is Debian's package `chromium`, which `cargo xtask test` installs.

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// No answer takes longer than this.
const PATIENCE: Duration = Duration::from_secs(120);

/// A page in a browser of its own.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    last: u64,
    /// Errors and warnings that the page logged.
    pub(crate) complaints: Vec<String>,
    profile: PathBuf,
}

impl Browser {
    pub(crate) fn start() -> Browser {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let program = program();
        let unique = format!("relent-browser-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let profile = std::env::temp_dir().join(unique);
        fs::create_dir(&profile).expect("the temporary folder is writable");
        // The pipes are descriptors 3 and 4 by the browser's rules; the shell moves them there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null", "sh"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--remote-debugging-pipe", "--hide-scrollbars", "--window-size=1280,1000"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a shell");
        let to = child.stdin.take().expect("it is piped");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        let (send, from) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if send.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let complaints = Vec::new();
        let mut browser = Browser { child, to, from, session: String::new(), last: 0, complaints, profile };
        let target = browser.ask("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().expect("a session has an id").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Opens a file and waits until the report in it says that it is ready.
    pub(crate) fn open(&mut self, file: &Path) {
        let file = fs::canonicalize(file).expect("the file is there");
        self.ask("Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        let ready = "document.readyState === 'complete' && document.documentElement.dataset.ready !== undefined";
        let begin = Instant::now();
        while self.value(ready) != true {
            assert!(begin.elapsed() < PATIENCE, "the page is never ready: {:?}", self.complaints);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.ask("Runtime.evaluate", &ask);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Sends a command and waits for its answer; complaints that arrive in between are kept.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser runs");
        loop {
            let mut answer = match self.from.recv_timeout(PATIENCE) {
                Ok(answer) => answer,
                Err(RecvTimeoutError::Timeout) => panic!("{method}: no answer within {PATIENCE:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("{method}: the browser has ended"),
            };
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.note(&answer);
        }
    }

    /// Keeps what should not be there: exceptions, errors, warnings, and anything fetched from elsewhere.
    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let url = params["request"]["url"].as_str().unwrap_or_default();
        let bad = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => params["type"] == "error" || params["type"] == "warning",
            "Log.entryAdded" => params["entry"]["level"] == "error" || params["entry"]["level"] == "warning",
            "Network.requestWillBeSent" => !["file:", "data:", "about:"].iter().any(|own| url.starts_with(own)),
            _ => false,
        };
        if bad {
            let text =
                [&params["entry"]["text"], &params["exceptionDetails"], &params["args"], &params["request"]["url"]];
            let said = text.iter().find(|said| !said.is_null()).map_or_else(String::new, ToString::to_string);
            self.complaints.push(format!("{}: {said}", event["method"]));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closed over the protocol, it takes its own children with it.
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > Duration::from_secs(5) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ = fs::remove_dir_all(&self.profile);
    }
}

fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    places.find(|place| place.is_file()).expect(
        "there is no chromium: `cargo xtask test` installs it, and `cargo xtask test --without chromium` does without",
    )
}
