//! What is opened, refused and told.

use relent_store::{Error, ErrorKind, Key, Memory, Notice, Store, Version, conformance};
use std::sync::{Arc, Mutex};

#[tokio::test(start_paused = true)]
async fn memory_conforms() {
    conformance::check(&Memory::new()).await.unwrap();
}

#[tokio::test]
async fn urls_name_engines() {
    assert!(Store::open("memory:").await.is_ok());
    for url in ["", "memory", "memory:x", "mysql://a:secret@b", "/tmp/x", "sqlite", "http:"] {
        let error = Store::open(url).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported), "{url}: {error:?}");
        assert!(!format!("{error} {error:?} {:?}", error.hint_text()).contains("secret"));
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused_with_a_sentence() {
    let store = Store::new(Memory::new()).max_value(10);
    let key = Key::new("a").unwrap();
    let error = store.replace(&key, Version::ABSENT, Some(&[0; 11])).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Invalid, "the value has 11 bytes, which is more than 10".into())
    );
    assert!(store.replace(&key, Version::ABSENT, Some(&[0; 10])).await.is_ok());
}

#[tokio::test]
async fn a_store_that_is_full_says_so() {
    let store = Store::new(Memory::new().at_most(2));
    for name in ["a", "b"] {
        let _ = store.replace(&Key::new(name).unwrap(), Version::ABSENT, Some(b"x")).await.unwrap();
    }
    let error = store.replace(&Key::new("c").unwrap(), Version::ABSENT, Some(b"x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
}

#[cfg(feature = "sqlite")]
#[tokio::test(start_paused = true)]
async fn a_store_that_is_locked_is_waited_for_and_told_of_once() {
    use relent::Policy;
    use relent_store::in_sqlite::Sqlite;
    use std::time::Duration;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let hasty = Policy::immediate().max_attempts(1);
    let store = Store::new(Sqlite::open(&path).unwrap()).patience(hasty);
    let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let tell = told.clone();
    store.listen(move |notice| tell.lock().unwrap().push(notice.clone()));

    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let key = Key::new("a").unwrap();
    let begin = std::time::Instant::now();
    let error = store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contended);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    other.execute_batch("ROLLBACK").unwrap();
    let _ = store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap();
    let told = told.lock().unwrap();
    assert!(matches!(&told[..], [Notice::Away(_), Notice::Back]), "{told:?}");
}

#[test]
fn errors_show_what_to_do() {
    let error = Error::new(ErrorKind::Full, "the disk is full").hint("make room");
    assert_eq!((error.to_string(), error.hint_text()), ("the disk is full".to_owned(), Some("make room")));
}
