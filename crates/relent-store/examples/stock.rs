//! A hundred books, sold one at a time by four processes at once, one of which is killed between its read and its write:
//! the version of the stock lets each change build on the one before, so that none is lost and none is sold twice.
//!
//! ```sh
//! cargo run -p relent-store --example stock                              # in a new SQLite file
//! cargo run -p relent-store --example stock -- redis://localhost
//! ```

#![expect(clippy::print_stdout, reason = "it is an example")]

use relent::Policy;
use relent_store::{Key, Nonce, Store, UpdateError};
use std::{
    env,
    error::Error,
    io::Read,
    process::{Command, Stdio},
    time::Duration,
};

const BOOKS: u32 = 100;
const SELLERS: usize = 4;
/// The first seller is killed in its fifth sale.
const SALES_UNTIL_KILLED: u32 = 4;

/// How a sale that somebody else was quicker than is tried again: at once or a little later, by chance.
const QUICK: Policy = Policy::exponential(Duration::from_millis(1))
    .cap(Duration::from_millis(50))
    .max_attempts(1000)
    .timeout(Duration::from_secs(20));

/// What there is: how many books are left, and how many each seller sold. Both change together.
fn parse(value: Option<&[u8]>) -> Vec<u32> {
    let text = String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
    let numbers: Vec<u32> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
    if numbers.len() == 1 + SELLERS { numbers } else { [&[BOOKS][..], &[0; SELLERS]].concat() }
}

fn text(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ").into_bytes()
}

/// Sells until there is nothing left. Prints how often somebody else was quicker.
async fn sell(store: &Store, stock: &Key, seller: usize) -> Result<(), Box<dyn Error>> {
    let (mut asked, mut sold) = (0_u32, 0);
    loop {
        let sale = store.update(stock, QUICK, |value| {
            let mut numbers = parse(value);
            if numbers[0] == 0 {
                return Err("sold out");
            }
            if seller == 0 && sold == SALES_UNTIL_KILLED {
                // It has read, and will not write.
                let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
            }
            asked += 1;
            numbers[0] -= 1;
            numbers[1 + seller] += 1;
            Ok(text(&numbers))
        });
        match sale.await {
            Ok(_) => {
                sold += 1;
                // The next customer comes.
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            Err(UpdateError::Refused(_)) => break,
            Err(err) => return Err(err.to_string().into()),
        }
    }
    println!("{}", asked - sold);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [child, url, stock, seller] = &args[..]
        && child == "--child"
    {
        let store = Store::open(url).await?;
        // The shop opens when all are there.
        println!("there");
        std::io::stdin().read_line(&mut String::new())?;
        return sell(&store, &Key::new(stock)?, seller.parse()?).await;
    }
    let folder = tempfile::tempdir()?;
    let url = args.first().cloned().unwrap_or(format!("sqlite:{}", folder.path().join("state.db").display()));
    if url == "memory:" {
        return Err("a store that outlives a process wants sqlite:FILE, redis://.. or postgres://..".into());
    }
    let stock = format!("books-{:?}", Nonce::random());
    let start = |seller: usize| {
        let mut child = Command::new(env::current_exe()?);
        child.args(["--child", &url, &stock, &seller.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    };
    println!("{BOOKS} books, {SELLERS} processes");
    let mut sellers = (0..SELLERS).map(start).collect::<Result<Vec<_>, _>>()?;
    for seller in &mut sellers {
        let there = seller.stdout.as_mut().ok_or("it is piped")?;
        // What it says, or that it ended.
        let _ = there.read(&mut [0; "there\n".len()])?;
    }
    sellers.iter_mut().for_each(|seller| drop(seller.stdin.take()));
    let mut conflicts = vec![];
    for seller in sellers {
        let ended = seller.wait_with_output()?;
        conflicts.push((ended.status, String::from_utf8_lossy(&ended.stdout).trim().to_owned()));
    }
    let value = Store::open(&url).await?.read(&Key::new(&stock)?).await?;
    let numbers = parse(value.value.as_deref());
    for ((nth, (status, conflicts)), sold) in (1..).zip(conflicts).zip(&numbers[1..]) {
        let comment = match status.code() {
            Some(0) => format!("; {conflicts} times another was quicker, and it read again"),
            Some(_) => format!(", and failed: {status}"),
            None if nth == 1 && *sold == SALES_UNTIL_KILLED => {
                format!(", and was killed between read and write: {status}")
            }
            None => format!(", and was killed by somebody else: {status}"),
        };
        println!("process {nth} sold {sold}{comment}");
    }
    println!("left: {}, sold: {} of {BOOKS}", numbers[0], numbers[1..].iter().sum::<u32>());
    Ok(())
}
