//! A payment that survives `kill -9`: it is begun by a process that dies in the middle, and looked up by the next.
//!
//! ```sh
//! cargo run -p relent-store --example payment                         # in a new SQLite file
//! cargo run -p relent-store --example payment --features redis -- redis://localhost
//! ```

#![expect(clippy::print_stdout, reason = "it is an example")]

use relent_store::{Done, Key, Nonce, OnceError, Scope, Store};
use std::{env, error::Error, fs, io::Write, process::Command, time::Duration};

type Outcome = Result<Done, OnceError<std::io::Error>>;

/// What the bank has booked: a line in a file. It dies after that, if it is told to.
fn pay(ledger: &str, dies: bool) -> std::io::Result<&'static str> {
    fs::OpenOptions::new().create(true).append(true).open(ledger)?.write_all(b"100 EUR\n")?;
    if dies {
        Command::new("kill").args(["-9", &std::process::id().to_string()]).status()?;
    }
    Ok("receipt")
}

async fn once(store: &Store, order: &Key, ledger: &str, dies: bool, looks: bool) -> Result<Outcome, Box<dyn Error>> {
    let scope = Scope::of(["bank", "pay"])?;
    let once = store.once(&scope, order).lease(Duration::from_secs(1));
    let look = async |_since| {
        fs::read_to_string(ledger).map(|booked| (!booked.is_empty()).then_some("receipt that was found"))
    };
    Ok(match looks {
        true => once.reconcile(look).run(async |_| pay(ledger, dies)).await,
        false => once.run(async |_| pay(ledger, dies)).await,
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [child, url, order, ledger] = &args[..]
        && child == "--child"
    {
        once(&Store::open(url).await?, &Key::new(order)?, ledger, true, false).await??;
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (url, ledger) = (args.first().cloned().unwrap_or(format!("sqlite:{}", at("state.db"))), at("booked"));
    if url == "memory:" {
        return Err("a store that outlives a process wants sqlite:FILE, redis://.. or postgres://..".into());
    }
    let order = format!("order-{:?}", Nonce::random());

    let ended = Command::new(env::current_exe()?).args(["--child", &url, &order, &ledger]).status()?;
    if ended.code().is_some() {
        return Err(format!("the process that pays was not killed, but ended by itself: {ended}").into());
    }
    println!("a process paid, and was killed before it could tell: {ended}");
    let (store, order) = (Store::open(&url).await?, Key::new(order)?);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    for looks in [false, true, false] {
        match once(&store, &order, &ledger, false, looks).await? {
            Ok(done) => println!("paid: {} (replayed: {})", String::from_utf8_lossy(done.bytes()), done.is_replayed),
            Err(err) => println!("not paid again: {err}"),
        }
    }
    println!("booked {} time(s)", fs::read_to_string(&ledger)?.lines().count());
    Ok(())
}
