//! A nightly job on one machine of many: its holder is killed, and the next takes over under a higher fence; its holder is
//! stopped for longer than its lease, and what it writes when it wakes up is refused.
//!
//! ```sh
//! cargo run -p relent-store --example nightly                            # in a new SQLite file
//! cargo run -p relent-store --example nightly -- redis://localhost
//! ```

#![expect(clippy::print_stdout, reason = "it is an example")]

use relent::Policy;
use relent_store::{Kept, Key, Nonce, Store, UpdateError};
use std::{
    env,
    error::Error,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    time::Duration,
};

const TTL: Duration = Duration::from_secs(1);
const PATIENT: Policy = Policy::exponential(Duration::from_millis(50))
    .cap(Duration::from_millis(200))
    .timeout(Duration::from_secs(30))
    .max_attempts(1000);

/// Sends a signal by its name.
fn signal(name: &str, process: u32) -> std::io::Result<()> {
    Command::new("kill").args([name, &process.to_string()]).status().map(|_| ())
}

/// What the job leaves: a report, which remembers the greatest fence it saw and refuses lower ones.
async fn write(store: &Store, report: &Key, fence: u64) -> Result<String, Box<dyn Error>> {
    let written = store.update(report, PATIENT, |value| {
        let seen = value.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok()).unwrap_or(0_u64);
        if fence < seen { Err(seen) } else { Ok(fence.to_string().into_bytes()) }
    });
    match written.await {
        Ok(_) => Ok(format!("its report is taken under fence {fence}")),
        Err(UpdateError::Refused(seen)) => Ok(format!("its report is refused: fence {fence} is older than {seen}")),
        Err(err) => Err(err.to_string().into()),
    }
}

/// One machine: takes the lease, has its fate, writes the report.
async fn job(url: &str, name: &str, fate: &str) -> Result<(), Box<dyn Error>> {
    let (store, report) = (Store::open(url).await?, Key::new(format!("{name}-report"))?);
    let guard = store.lease(&Key::new(name)?).ttl(TTL).wait(PATIENT).acquire().await?;
    println!("holds the lease under fence {}", guard.fence());
    if fate != "lives" {
        signal(fate, std::process::id())?;
    }
    // A job asks `guard.is_lost()`, or runs beside `guard.lost()`; this one is careless, and the fence saves the report.
    let is_lost = guard.is_lost();
    println!(
        "{}{}",
        if is_lost { "wakes up and has lost the lease; " } else { "" },
        write(&store, &report, guard.fence().0).await?
    );
    println!(
        "lets go{}",
        if guard.release().await? == Kept::Fenced { ", and is told that it held nothing" } else { "" }
    );
    Ok(())
}

/// A machine, and what it says.
struct Machine {
    name: &'static str,
    process: Child,
    says: BufReader<std::process::ChildStdout>,
}

impl Machine {
    fn start(name: &'static str, url: &str, lease: &str, fate: &str) -> Result<Machine, Box<dyn Error>> {
        let mut command = Command::new(env::current_exe()?);
        let mut process = command.args(["--child", url, lease, fate]).stdout(Stdio::piped()).spawn()?;
        let says = BufReader::new(process.stdout.take().ok_or("it is piped")?);
        Ok(Machine { name, process, says })
    }

    /// Passes on the next line.
    fn says(&mut self) -> Result<(), Box<dyn Error>> {
        let mut line = String::new();
        if self.says.read_line(&mut line)? == 0 {
            return Err(format!("{} ended before it held the lease", self.name).into());
        }
        println!("{}: {}", self.name, line.trim_end());
        Ok(())
    }

    fn ends(mut self) -> Result<(), Box<dyn Error>> {
        for line in self.says.by_ref().lines() {
            println!("{}: {}", self.name, line?);
        }
        let status = self.process.wait()?;
        match status.code() {
            Some(0) => {}
            Some(_) => return Err(format!("{} failed: {status}", self.name).into()),
            None => println!("{}: killed: {status}", self.name),
        }
        Ok(())
    }
}

impl Drop for Machine {
    /// None is left behind, least of all one that is stopped.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [child, url, name, fate] = &args[..]
        && child == "--child"
    {
        return job(url, name, fate).await;
    }
    let folder = tempfile::tempdir()?;
    let url = args.first().cloned().unwrap_or(format!("sqlite:{}", folder.path().join("state.db").display()));
    if url == "memory:" {
        return Err("a store that outlives a process wants sqlite:FILE, redis://.. or postgres://..".into());
    }
    let name = format!("nightly-{:?}", Nonce::random());

    let mut first = Machine::start("web-1", &url, &name, "-KILL")?;
    first.says()?;
    first.ends()?;
    Machine::start("web-2", &url, &name, "lives")?.ends()?;

    let mut third = Machine::start("web-3", &url, &name, "-STOP")?;
    third.says()?;
    println!("web-3: stopped, longer than its lease");
    Machine::start("web-4", &url, &name, "lives")?.ends()?;
    signal("-CONT", third.process.id())?;
    third.ends()
}
