//! `relent store check` and `relent store migrate`: what the engine says of itself, and whether it can be written.

use super::{
    args::StoreArgs,
    open::{IfMissing, with},
    place,
};
use crate::{
    breaks::{answer, wrap},
    brief,
    escape::escape,
    json::{Object, array, quoted},
    redact::within_reach,
    talk::{Fault, write_out},
};
use relent::duration::Human;
use relent_store::{About, Acquired, Engine, Error, Holding, Key, Lease, Nonce, Owner, Store};
use std::{
    fmt::Write,
    process::ExitCode,
    time::{Duration, Instant},
};

/// A skew of the clocks that is worth a warning.
const SKEW_MS: u64 = 1000;

struct Checked {
    url: String,
    about: About,
    /// Of who else decides about its file.
    of_others: Vec<String>,
    read: Duration,
    write: Duration,
}

pub(super) fn run(args: &StoreArgs) -> Result<ExitCode, Fault> {
    let checked = with(args, IfMissing::Say, async |url, store| {
        let (about, read) = timed(store.about()).await?;
        // Once to warm up what is slow the first time.
        written(&store).await?;
        let ((), write) = timed(written(&store)).await?;
        let of_others = place::cautions(args.store.as_deref(), &url);
        Ok(Checked { url, about, of_others, read, write })
    })?;
    let text = if args.json { checked.json() } else { checked.text() };
    write_out(answer(&text, args.json).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn migrate(args: &StoreArgs) -> Result<ExitCode, Fault> {
    let (url, about) = with(args, IfMissing::MakeAnywhere, async |url, store| Ok((url, store.about().await?)))?;
    let shown = place::shown(&url);
    let text = match (args.json, about.schema) {
        (true, schema) => {
            let schema = schema.map_or("null".to_owned(), |schema| schema.to_string());
            Object::new()
                .text("store", &place::shown(&url))
                .text("engine", about.engine)
                .raw("schema", &schema)
                .finish()
                + "\n"
        }
        (false, Some(schema)) => format!("{}: its tables are up to date, version {schema}\n", escape(&shown)),
        (false, None) => format!("{}: it has no tables to bring up to date\n", escape(&shown)),
    };
    write_out(answer(&text, args.json).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

async fn timed<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<(T, Duration), Error> {
    let began = Instant::now();
    let answer = asked.await?;
    Ok((answer, began.elapsed()))
}

/// Takes a lease and lets it go: two writes, which leave nothing behind but a fence.
async fn written(store: &Store) -> Result<(), Error> {
    let name = Key::new("relent store check").map_err(Error::from)?;
    let (owner, nonce, ttl) = (Owner::here(), Nonce::random(), Duration::from_secs(1));
    let lease = Lease { name: name.clone(), owner, nonce, ttl };
    // Somebody who checks at the same time has it: then that was a write, too.
    if let Acquired::Acquired { fence, .. } = store.engine().acquire(&lease).await? {
        let _ = store.engine().release(&Holding { name, fence }).await?;
    }
    Ok(())
}

impl Checked {
    fn clock(&self) -> String {
        match self.about.skew_ms {
            0 => "the store's clock is this machine's".to_owned(),
            skew => {
                let (by, which) =
                    (Duration::from_millis(skew.unsigned_abs()), if skew > 0 { "ahead of" } else { "behind" });
                format!("the store's clock is {} {which} this machine's", Human(by))
            }
        }
    }

    /// What the server says that it is, in a few words.
    fn version(&self) -> String {
        brief::first(within_reach(&self.about.version), 100)
    }

    /// What to know before relying on it.
    fn cautions(&self) -> Vec<String> {
        let all = self.about.cautions.iter().chain(&self.of_others);
        let mut cautions: Vec<String> = all.map(|text| brief::lines(within_reach(text)).into_owned()).collect();
        if self.about.skew_ms.unsigned_abs() >= SKEW_MS {
            cautions.insert(
                0,
                format!("Clocks differ: {}. Leases count on the store's; set this machine's by NTP.", self.clock()),
            );
        }
        cautions
    }

    fn text(&self) -> String {
        let about = &self.about;
        let mut out = String::new();
        let schema = about.schema.map_or(String::new(), |schema| format!(", tables of version {schema}"));
        let row = |out: &mut String, name: &str, text: &str| {
            let text = wrap(&escape(text), 88);
            for (nth, line) in text.lines().enumerate() {
                let _ = writeln!(out, "{:<9} {line}", if nth == 0 { name } else { "" });
            }
        };
        row(&mut out, "store", &place::shown(&self.url));
        row(&mut out, "engine", &format!("{} {}{schema}", about.engine, self.version()));
        row(&mut out, "promises", &brief::lines(within_reach(&about.durability)));
        for caution in self.cautions() {
            row(&mut out, "caution", &caution);
        }
        row(&mut out, "clock", &format!("{}, {}", about.now, self.clock()));
        let (read, write) = (Human(self.read), Human(self.write / 2));
        row(&mut out, "answers", &format!("a question in {read:.1}, a write in {write:.1}"));
        out
    }

    fn json(&self) -> String {
        let about = &self.about;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let cautions = self.cautions();
        let mut object = Object::new();
        object
            .text("store", &place::shown(&self.url))
            .text("engine", about.engine)
            .text("version", &self.version())
            .raw("schema", &about.schema.map_or("null".to_owned(), |schema| schema.to_string()))
            .text("promises", &brief::lines(within_reach(&about.durability)))
            .raw("cautions", &array(cautions.iter().map(|caution| quoted(caution))))
            .text("now", &about.now.to_string())
            .raw("skew_ms", &about.skew_ms.to_string())
            .number("read_us", micros(self.read))
            .number("write_us", micros(self.write / 2));
        object.finish() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access;
    use crate::{redact, store::owners};
    use nix::unistd::getegid;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
        path::Path,
    };

    /// One that the caller made, for somebody who is in no group of it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_an_access_list_opens_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |mode| fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let file = folder.path().join("state.db");
        if let Err(error) = access::give_list(folder.path(), 7) {
            eprintln!(
                "SKIPPED a_folder_that_an_access_list_opens_is_told_of: the temporary folder takes none: {error}"
            );
            return;
        }
        assert!(is_shared(&file));
        let cautions = checked(&file).cautions();
        assert!(cautions.iter().any(|caution| caution.contains("setfacl -b")), "{cautions:?}");
        // The list says what is given at most, and that is no writing.
        mode(0o750);
        assert!(!is_shared(&file));
        assert_eq!(checked(&file).cautions(), Vec::<String>::new());
    }

    fn is_shared(file: &Path) -> bool {
        owners::of_a_group(file).is_some()
    }

    #[cfg(target_os = "linux")]
    fn checked(file: &Path) -> Checked {
        let url = format!("sqlite:{}", file.display());
        let about = crate::runtime::builder().unwrap().build().unwrap().block_on(async {
            let mut about = Store::open("memory:").await.unwrap().about().await.unwrap();
            (about.skew_ms, about.cautions) = (0, Vec::new());
            about
        });
        let of_others = place::cautions(Some(&url), &url);
        Checked { url, about, of_others, read: Duration::ZERO, write: Duration::ZERO }
    }

    /// A server may say again what it was sent, wherever it says something of itself.
    #[test]
    fn the_password_of_a_store_is_hidden_where_its_server_says_it() {
        for (url, said) in [
            ("redis://ann:hunter2%2Fredis@127.0.0.1:1/0", "hunter2/redis"),
            ("postgres://127.0.0.1:1/db?user=ann&password=hunter2param", "HUNTER2param"),
            ("redis://ann:hunter2whole@127.0.0.1:1/0", "redis://ann:hunter2whole@h"),
        ] {
            let url = place::any_url(Some(url)).unwrap();
            let said = format!("7 {said} 7");
            let mut about = crate::runtime::builder()
                .unwrap()
                .build()
                .unwrap()
                .block_on(async { Store::open("memory:").await.unwrap().about().await.unwrap() });
            (about.version, about.durability) = (said.clone(), said.clone());
            about.cautions = vec![said.clone()];
            let checked = Checked { url, about, of_others: vec![], read: Duration::ZERO, write: Duration::ZERO };
            for told in [checked.text(), checked.json(), redact::text(&said).into_owned()] {
                assert!(told.contains("***") && !told.to_lowercase().contains("hunter2"), "{told}");
            }
        }
    }

    /// It takes root to give a folder to another group.
    #[test]
    fn a_folder_that_a_group_may_write_to_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |mode| fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let file = folder.path().join("state.db");
        mode(0o770);
        assert_eq!(is_shared(&file), !access::is_own_group(getegid().as_raw()));
        if std::os::unix::fs::chown(folder.path(), None, Some(65_534)).is_err() {
            eprintln!("SKIPPED a_folder_that_a_group_may_write_to_is_told_of: it takes root");
            return;
        }
        mode(0o770);
        assert!(is_shared(&file));
        fs::create_dir(folder.path().join("a")).unwrap();
        assert!(is_shared(&folder.path().join("a/state.db")), "somebody else can exchange a");
        mode(0o1770);
        assert!(is_shared(&file) && !is_shared(&folder.path().join("a/state.db")));
        mode(0o750);
        assert!(!is_shared(&file));
    }
}
