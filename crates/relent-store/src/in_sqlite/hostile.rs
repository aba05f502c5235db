//! Files that were made to do harm.

use super::*;
use crate::{Key, Kind, MAX_VALUE, Scope, Store, Version};
use relent::Policy;
use rusqlite::Connection;
use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

/// A store's file after somebody has been at it.
fn tampered(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(sql).unwrap_or_else(|err| panic!("{sql}: {err}"));
    (folder, path)
}

fn refused(sql: &str) -> String {
    let (_folder, path) = tampered(sql);
    let error = Sqlite::open(&path).expect_err(sql);
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{sql}: {error:?}");
    error.to_string()
}

#[test]
fn what_would_be_run_with_our_tables_is_refused() {
    let endless = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c";
    for (sql, says) in [
        (
            format!("DROP TABLE relent_value; CREATE VIEW relent_value AS SELECT x'61' AS key, ({endless}) AS version"),
            "the file has a view 'relent_value' that no relent made",
        ),
        (
            format!(
                "DROP TABLE relent_meta; CREATE VIEW relent_meta AS SELECT 'version' AS name, ({endless}) AS value"
            ),
            "the file has a view 'relent_meta' that no relent made",
        ),
        (
            format!(
                "CREATE TRIGGER bomb BEFORE UPDATE ON relent_meta BEGIN INSERT INTO relent_seen SELECT *, 1, 1, 1, 1 FROM ({endless}); END"
            ),
            "the file has a trigger 'bomb' of 'relent_meta' that no relent made",
        ),
        (
            "ALTER TABLE relent_lease ADD COLUMN boom TEXT AS (hex(zeroblob(100000000)))".into(),
            "the file has a table 'relent_lease' that no relent made",
        ),
        (
            "CREATE INDEX slow ON relent_value (hex(replace(key, x'00', zeroblob(1000000))))".into(),
            "the file has an index 'slow' of 'relent_value' that no relent made",
        ),
        ("DROP TABLE relent_seen".into(), "the index 'relent_seen_expires' of the store is gone"),
        (
            "DROP TABLE relent_meta; CREATE TABLE RELENT_META (name, value)".into(),
            "the file has a table 'RELENT_META' that no relent made",
        ),
        (
            "DELETE FROM relent_meta; DROP TABLE relent_meta".into(),
            "the file has an index 'relent_once_expires' of 'relent_once' that no relent made",
        ),
    ] {
        assert_eq!(refused(&sql), says, "{sql}");
    }
}

#[test]
fn an_index_that_says_it_belongs_elsewhere_is_refused_too() {
    let says = refused(
        "CREATE TABLE innocent (a); CREATE INDEX hidden ON relent_value (hex(key));
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET tbl_name = 'innocent' WHERE name = 'hidden';
         PRAGMA writable_schema = OFF",
    );
    assert_eq!(says, "the file is no store, or is damaged", "SQLite sees it by itself");
}

#[test]
fn tables_of_the_users_own_stay_beside_ours() {
    let (_folder, path) = tampered(
        "CREATE TABLE orders (item TEXT, upper TEXT AS (upper(item))); CREATE VIEW books AS SELECT * FROM orders;
         CREATE TRIGGER noted AFTER INSERT ON orders BEGIN DELETE FROM orders WHERE item = ''; END",
    );
    drop(Sqlite::open(&path).unwrap());
}

#[tokio::test]
async fn a_value_that_no_store_keeps_is_not_read() {
    let (_folder, path) = tampered(&format!(
        "INSERT INTO relent_value VALUES (x'61', 1, zeroblob(16), 0, zeroblob({}));
         INSERT INTO relent_lease VALUES (x'62', hex(zeroblob(9000000)), 1, zeroblob(16), 0, 99999999999999);
         INSERT INTO relent_seen VALUES (zeroblob(2000), x'63', zeroblob(16), 0, 99999999999999);
         INSERT INTO relent_once VALUES (x'64', x'64', x'01', 1, zeroblob(16), 0, 0, 0, 0, NULL, 0, x'00', NULL)",
        MAX_VALUE + 100_000
    ));
    let store = Store::new(Sqlite::open(&path).unwrap());
    assert_eq!(store.read(&Key::new("a").unwrap()).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(store.holder(&Key::new("b").unwrap()).await.is_err(), "a name of 18 MB");
    for kind in [Kind::Leases, Kind::Seen] {
        assert!(store.list(kind, 10).await.is_err(), "{kind:?}");
    }
    let error = store.once(&Scope::new("d").unwrap(), &Key::new("d").unwrap()).run(async |_| Ok::<_, String>("")).await;
    assert!(error.unwrap_err().to_string().contains("a row that no relent wrote"));
    // What is ours works.
    let largest = vec![7; MAX_VALUE];
    let store = store.max_value(usize::MAX);
    let key = Key::new("e").unwrap();
    let _ = store.replace(&key, Version::ABSENT, Some(&largest)).await.unwrap();
    assert_eq!(store.read(&key).await.unwrap().value.unwrap().len(), MAX_VALUE);
    let larger = vec![7; MAX_VALUE + 1];
    assert_eq!(store.replace(&key, Version::ABSENT, Some(&larger)).await.unwrap_err().kind(), ErrorKind::Invalid);
}

/// A file of some pages whose table `relent_seen` has more rows than can ever be read: each inner page leads to the next one
/// from every cell.
fn endless(path: &Path) {
    const PAGE: usize = 4096;
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < 2500)
         INSERT INTO relent_seen SELECT x'61', CAST(printf('%020d', x) AS BLOB), zeroblob(16), 0, 0 FROM c;
         PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE",
    )
    .unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'relent_seen'";
    let root = conn.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    drop(conn);
    let mut file = fs::read(path).unwrap();
    let inner = file[(root - 1) * PAGE..root * PAGE].to_vec();
    assert_eq!(inner[0], 2, "an inner page of an index");
    let cells = usize::from(u16::from_be_bytes([inner[3], inner[4]]));
    assert!(cells > 20, "{cells}");
    let cell = |nth: usize| usize::from(u16::from_be_bytes([inner[12 + 2 * nth], inner[13 + 2 * nth]]));
    let leads_to = |next: usize| {
        let (mut page, next) = (inner.clone(), u32::try_from(next).unwrap().to_be_bytes());
        page[8..12].copy_from_slice(&next);
        (0..cells).for_each(|nth| page[cell(nth)..cell(nth) + 4].copy_from_slice(&next));
        page
    };
    let leaf = u32::from_be_bytes(inner[cell(0)..cell(0) + 4].try_into().unwrap()) as usize;
    assert_eq!(file[(leaf - 1) * PAGE], 10, "a leaf of an index");
    let pages = file.len() / PAGE;
    let first = leads_to(pages + 1);
    file[(root - 1) * PAGE..root * PAGE].copy_from_slice(&first);
    for nth in 1..=8 {
        file.extend(leads_to(if nth == 8 { leaf } else { pages + nth + 1 }));
    }
    let pages = u32::try_from(file.len() / PAGE).unwrap().to_be_bytes();
    file[28..32].copy_from_slice(&pages);
    fs::write(path, file).unwrap();
}

#[tokio::test]
async fn work_without_end_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    endless(&path);
    let engine = Sqlite::open(&path).unwrap();
    let hasty = Policy::constant(Duration::from_millis(10)).timeout(Duration::from_millis(300));
    let begin = Instant::now();
    let error = Store::new(engine.clone()).patience(hasty).list(Kind::Seen, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
    assert!(begin.elapsed() < Duration::from_millis(1500), "{:?}", begin.elapsed());
    // The thread that is at it stops, too, and goes on with what else there is to do.
    let read = Store::new(engine.clone()).read(&Key::new("a").unwrap()).await;
    assert!(read.is_ok_and(|read| read.value.is_none()));
    let error = crate::Engine::list(&engine, Kind::Seen, 10).await.unwrap_err();
    assert_eq!(error.to_string(), "the store takes too long for what it was asked");
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
}

#[test]
fn a_schema_as_it_is_made_is_found_as_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    for prefix in ["relent_", "my_", "a"] {
        let path = folder.path().join(format!("{prefix}.db"));
        let settings = SqliteSettings { prefix: prefix.into(), ..SqliteSettings::default() };
        drop(settings.clone().open(&path).unwrap());
        drop(settings.open(&path).unwrap());
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = Sqlite::open(&pipe).unwrap_err();
    assert_eq!((error.kind(), error.to_string().ends_with("is no regular file")), (ErrorKind::Refused, true));
    assert_eq!(Sqlite::open("/dev/null").unwrap_err().kind(), ErrorKind::Refused);
    for end in ["-wal", "-shm", "-journal"] {
        let path = folder.path().join("state.db");
        let beside = folder.path().join(format!("state.db{end}"));
        assert!(Command::new("mkfifo").arg(&beside).status().unwrap().success());
        assert_eq!(Sqlite::open(&path).unwrap_err().kind(), ErrorKind::Refused, "{end}");
        fs::remove_file(&beside).unwrap();
    }
}

/// Whoever may give a private file of the caller's another name there would have it written over.
#[cfg(unix)]
#[test]
fn another_files_name_beside_a_file_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let (path, private) = (folder.path().join("state.db"), folder.path().join("private"));
    for end in ["-wal", "-shm", "-journal"] {
        for any_owner in [false, true] {
            let beside = folder.path().join(format!("state.db{end}"));
            fs::write(&private, "secret").unwrap();
            fs::hard_link(&private, &beside).unwrap();
            let settings = SqliteSettings { any_owner, ..SqliteSettings::default() };
            let error = settings.open(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{end}");
            assert!(error.to_string().contains("has another name elsewhere"), "{end}: {error}");
            fs::remove_file(&beside).unwrap();
            assert_eq!(fs::read_to_string(&private).unwrap(), "secret", "{end}");
        }
    }
    drop(Sqlite::open(&path).unwrap());
}

/// SQLite follows links to the file first, and looks beside that.
#[cfg(unix)]
#[test]
fn what_lies_beside_a_file_is_looked_for_where_links_lead() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, link) = (folder.path().join("state.db"), elsewhere.path().join("link.db"));
    drop(Sqlite::open(&path).unwrap());
    std::os::unix::fs::symlink(&path, &link).unwrap();
    drop(Sqlite::open(&link).unwrap());
    for end in ["-wal", "-shm", "-journal"] {
        let beside = folder.path().join(format!("state.db{end}"));
        assert!(Command::new("mkfifo").arg(&beside).status().unwrap().success());
        for path in [&path, &link] {
            assert_eq!(in_time(path), Some(ErrorKind::Refused), "{end}, {}", path.display());
        }
        fs::remove_file(&beside).unwrap();
    }
}

/// Who has laid it there has it open, could read what is written to it, and cut off what is mapped into memory. It takes root to give
/// something away.
#[cfg(unix)]
#[test]
fn what_somebody_else_laid_beside_a_file_is_not_used() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for end in ["-wal", "-shm", "-journal"] {
        let beside = folder.path().join(format!("state.db{end}"));
        fs::write(&beside, "").unwrap();
        mode(&beside, 0o666);
        assert_eq!(in_time(&path), Some(ErrorKind::Refused), "{end}");
        mode(&beside, 0o600);
        if chown(&beside, Some(65_534), None).is_err() {
            eprintln!("SKIPPED what_somebody_else_laid_beside_a_file_is_not_used: it takes root");
            return;
        }
        assert_eq!(in_time(&path), Some(ErrorKind::Refused), "{end}");
        assert!(Sqlite::open_url(&format!("sqlite:{}?owner=any", path.display())).is_ok());
        let _ = fs::remove_file(&beside);
        // Who may write to the file may make what is beside it, too.
        fs::write(&beside, "").unwrap();
        chown(&beside, Some(65_534), None).unwrap();
        mode(&path, 0o660);
        assert_eq!(in_time(&path), None, "{end}");
        mode(&path, 0o600);
        let _ = fs::remove_file(&beside);
        assert_eq!(in_time(&path), None);
    }
}

/// What comes of opening a file; a panic, if nothing does.
#[cfg(unix)]
fn in_time(path: &Path) -> Option<ErrorKind> {
    let ((tell, told), path) = (std::sync::mpsc::channel(), path.to_owned());
    std::thread::spawn(move || tell.send(Sqlite::open(&path).err().map(|error| error.kind())));
    told.recv_timeout(Duration::from_secs(20)).expect("it is not waited for without end")
}

/// A journal of a transaction over several files names one that has all their names, and SQLite reads it: a pipe for ever, a large
/// file into memory as a whole.
#[cfg(unix)]
#[test]
fn a_journal_that_names_a_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    let pipe = folder.path().join("pipe-mj00000090C");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let name = pipe.to_str().unwrap().as_bytes();
    let magic = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    // A head that says: no pages, of a file of one page, sectors of 512 bytes, pages of 4096.
    let mut journal = magic.to_vec();
    for number in [0_u32, 7, 1, 512, 4096] {
        journal.extend(number.to_be_bytes());
    }
    journal.resize(512, 0);
    // The lock's page, the name, its length and sum, and the end.
    journal.extend(((0x4000_0000_u32 / 4096) + 1).to_be_bytes());
    journal.extend(name);
    journal.extend((name.len() as u32).to_be_bytes());
    journal.extend(name.iter().map(|byte| u32::from(*byte)).sum::<u32>().to_be_bytes());
    journal.extend(magic);
    let beside = folder.path().join("state.db-journal");
    fs::write(&beside, journal).unwrap();
    assert_eq!(in_time(&path), Some(ErrorKind::Refused));
    // One that undoes what was not committed is as good as ever.
    fs::write(&beside, "").unwrap();
    assert_eq!(in_time(&path), None);
}

/// However long somebody has it locked.
#[test]
fn the_database_of_another_program_gets_no_tables_unless_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.db");
    let theirs = Connection::open(&path).unwrap();
    theirs.execute_batch("CREATE TABLE places (url TEXT); BEGIN EXCLUSIVE").unwrap();
    let url = format!("sqlite:{}?others=no", path.display());
    let opening = std::thread::spawn(move || Sqlite::open_url(&url).map(drop).unwrap_err());
    std::thread::sleep(Duration::from_millis(1500));
    theirs.execute_batch("COMMIT").unwrap();
    let before = fs::read(&path).unwrap();
    let error = opening.join().unwrap();
    assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Refused, "it is the database of another program"));
    assert!(fs::read(&path).unwrap() == before);
    assert!(Sqlite::open(&path).is_ok());
    assert!(Sqlite::open_url(&format!("sqlite:{}?others=no", path.display())).is_ok(), "ours are there, too");
}

/// Whoever has followed all links may know of none.
#[cfg(unix)]
#[test]
fn no_link_is_followed_where_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (file, victim) = (root.join("state.db"), root.join("own/victim"));
    fs::create_dir(root.join("own")).unwrap();
    fs::write(&victim, "").unwrap();
    let opened = |path: &Path, more: &str| Sqlite::open_url(&format!("sqlite:{}?links=no{more}", path.display()));
    std::os::unix::fs::symlink(&victim, &file).unwrap();
    std::os::unix::fs::symlink("own", root.join("link")).unwrap();
    for path in [&file, &root.join("link/victim")] {
        for more in ["", "&owner=any"] {
            assert!(opened(path, more).is_err(), "{}{more}", path.display());
            assert_eq!(fs::read(&victim).unwrap(), b"", "{}{more}", path.display());
        }
        assert!(is_of_others(&format!("sqlite:{}?links=no", path.display())).is_ok_and(|is_theirs| !is_theirs));
    }
    fs::remove_file(&file).unwrap();
    fs::hard_link(&victim, &file).unwrap();
    assert_eq!(opened(&file, "&owner=any").unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(fs::read(&victim).unwrap(), b"");
    fs::remove_file(&file).unwrap();
    assert!(opened(&file, "").is_ok() && opened(&file, "&owner=any").is_ok());
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_decide_about_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let believing = format!("sqlite:{}?owner=any", path.display());

    let cautions = async || Store::new(Sqlite::open(&path).unwrap()).about().await.unwrap().cautions;
    assert_eq!(cautions().await.len(), 1, "that it is for one machine");
    for (open, said) in
        [(0o660, "group can write"), (0o664, "group can write"), (0o640, "can read"), (0o604, "can read")]
    {
        mode(open);
        assert!(cautions().await.iter().any(|caution| caution.contains(said)), "{open:o}");
    }
    #[cfg(target_os = "linux")]
    {
        mode(0o600);
        match lists::tests::give(&path) {
            Ok(()) => {
                let all = cautions().await;
                assert!(
                    all.len() == 2 && all.iter().any(|caution| caution.contains("An access list says who")),
                    "{all:?}"
                );
            }
            Err(error) => eprintln!("SKIPPED a_file_that_others_decide_about_is_not_believed in part: {error}"),
        }
        rustix::fs::removexattr(&path, "system.posix_acl_access").unwrap();
    }
    mode(0o602);
    let error = Sqlite::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().ends_with("can be written by everybody"), "{error}");
    assert!(Sqlite::open_url(&believing).is_ok());
    mode(0o600);
    assert!(Sqlite::open(&path).is_ok());

    if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
        eprintln!("skipped: only root can give a file to another user");
        return;
    }
    let error = Sqlite::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().ends_with("belongs to another user, number 65534"), "{error}");
    assert!(Sqlite::open_url(&believing).is_ok());
}

/// A journal that makes of whatever file it lies beside a copy of this one.
fn journal_of(file: &[u8]) -> Vec<u8> {
    const PAGE: usize = 4096;
    let (pages, nonce) = (u32::try_from(file.len() / PAGE).unwrap(), 0x1234_u32);
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for number in [pages, nonce, pages, 512, 4096] {
        journal.extend(number.to_be_bytes());
    }
    journal.resize(512, 0);
    for (number, page) in (1_u32..).zip(file.chunks(PAGE)) {
        let sum = (1..PAGE.div_ceil(200)).map(|nth| u32::from(page[PAGE - 200 * nth])).sum::<u32>();
        journal.extend(number.to_be_bytes());
        journal.extend(page);
        journal.extend((nonce + sum).to_be_bytes());
    }
    journal
}

/// SQLite looks for a journal beside a file that has a log, too. It takes root to give something away.
#[cfg(target_os = "linux")]
#[test]
fn no_journal_of_a_strangers_is_written_into_a_file() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("state.db"), folder.path().join("other.db"));
    drop((Sqlite::open(&path).unwrap(), Sqlite::open(&other).unwrap()));
    Connection::open(&other).unwrap().execute_batch("UPDATE relent_meta SET value = 99 WHERE name = 'fence'").unwrap();
    let journal = journal_of(&fs::read(&other).unwrap());
    let (before, beside) = (fs::read(&path).unwrap(), folder.path().join("state.db-journal"));
    let url = |more: &str| format!("sqlite:{}?owner=any{more}", path.display());
    for (shared, more) in [(0o1777, ""), (0o777, ""), (0o1777, "&make=no"), (0o1777, "&others=no"), (0o1770, "")] {
        fs::write(&beside, &journal).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(shared)).unwrap();
        if chown(&beside, Some(65_534), None).is_err() {
            eprintln!("SKIPPED no_journal_of_a_strangers_is_written_into_a_file: it takes root");
            return;
        }
        let error = Sqlite::open_url(&url(more)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{shared:o}{more}: {error}");
        assert!(fs::read(&path).unwrap() == before, "{shared:o}{more}");
        fs::remove_file(&beside).unwrap();
        drop(Sqlite::open_url(&url(more)).unwrap());
        assert!(fs::symlink_metadata(&beside).is_err(), "{shared:o}{more}: nothing is left");
    }
    // It is one that counts: the caller's own is written into the file, which undoes what was not committed.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&beside, &journal).unwrap();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
    drop(Sqlite::open(&path).unwrap());
    assert!(fs::read(&path).unwrap() != before);
}

/// Where others may write, what SQLite needs beside a file would stay there.
#[cfg(unix)]
#[test]
fn nothing_is_made_beside_a_file_that_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    for sql in ["CREATE TABLE places (url TEXT)", "PRAGMA journal_mode = WAL; CREATE TABLE places (url TEXT)"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("theirs.db");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        for shared in [0o1777, 0o777, 0o700] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(shared)).unwrap();
            for (more, kind) in [("others=no", ErrorKind::Refused), ("make=no", ErrorKind::Missing)] {
                let error = Sqlite::open_url(&format!("sqlite:{}?owner=any&{more}", path.display())).unwrap_err();
                assert_eq!(error.kind(), kind, "{shared:o} {more}: {error}");
                let there = fs::read_dir(folder.path()).unwrap().count();
                assert_eq!(there, 1, "{shared:o} {more}, {sql}");
            }
        }
    }
}

/// SQLite takes apart what a file says of its tables before anything can be asked about it.
#[test]
fn what_a_file_says_of_its_tables_is_short() {
    let checks = |bytes: usize| format!("CHECK(a IN(1{}))", ",1".repeat(bytes / 2));
    let say = |name: &str, bytes: usize| {
        format!(
            "INSERT INTO sqlite_schema VALUES ('table', '{name}', '{name}', 2, 'CREATE TABLE {name}(a,{})');",
            checks(bytes)
        )
    };
    let tampered = |rows: &str| tampered(&format!("PRAGMA writable_schema = ON; {rows} PRAGMA writable_schema = OFF"));
    let (_folder, path) = tampered(&say("long", 70_000));
    let error = Sqlite::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let (_folder, path) = tampered(&say("short", 60_000));
    assert!(Sqlite::open(&path).is_ok());
    // All of it together is bounded for the whole process. Other tests in it need less.
    bound_memory(64 << 20).unwrap();
    let rows: String = (0..40).map(|nth| say(&format!("t{nth}"), 60_000)).collect();
    let (_folder, path) = tampered(&rows);
    let error = Sqlite::open(&path).unwrap_err();
    assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Unavailable, "no memory is left"));
}

/// Each of these names is 16 MB long.
#[test]
fn names_without_end_are_not_read() {
    for column in ["type", "name", "tbl_name"] {
        let (_folder, path) = tampered(&format!(
            "CREATE TABLE mine (a PRIMARY KEY, b UNIQUE);
             PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET {column} = {column} || hex(zeroblob(8000000)) WHERE name LIKE 'sqlite_autoindex_mine%';
             PRAGMA writable_schema = OFF"
        ));
        let error = Sqlite::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{column}: {error}");
    }
}
