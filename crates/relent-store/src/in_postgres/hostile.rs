//! Servers that were made to do harm.

use super::*;
use crate::{Store, flood::Flood};
use relent::Policy;
use std::{
    fs::{self, Permissions},
    io::{Read, Write},
    os::unix::{
        fs::{PermissionsExt, chown},
        net::UnixListener,
    },
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    sync::mpsc,
    thread,
    time::Instant,
};

/// "You are in", and "ask".
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// A server that floods whoever asks, at once or when it has been trusted.
fn server(is_polite: bool, flood: Flood) -> (String, Arc<AtomicU64>) {
    let (port, sent) = flood.serve(move |socket| {
        let mut buf = [0; 4096];
        let mut has_asked = socket.read(&mut buf)? > 0;
        if is_polite {
            socket.write_all(WELCOME)?;
            has_asked = socket.read(&mut buf)? > 0;
        }
        Ok(has_asked)
    });
    (format!("postgres://relent@127.0.0.1:{port}/shop"), sent)
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    for flood in [
        Flood(b"D\x7f\xff\xff\xff", b"0"),
        Flood(b"R\xff\xff\xff\xff", b"0"),
        Flood(b"", b"1\0\0\0\x04"),
        Flood(b"1\0\0\0\x042\0\0\0\x04T\0\0\0\x06\0\0", b"D\0\0\0\x06\0\0"),
        Flood(b"", b"S\0\0\0\x08a\0b\0"),
        Flood(b"", b"N\0\0\0\x05\0"),
        Flood(b"", b"HTTP/1.1 400 Bad Request\r\n"),
    ] {
        for is_polite in [false, true] {
            let (url, sent) = server(is_polite, flood);
            let begin = Instant::now();
            let policy = Policy::constant(Duration::from_millis(10)).timeout(Duration::from_secs(30));
            let error = Store::open_with(&url, policy).await.unwrap_err();
            let what = format!("{} {is_polite}: {error:?}", flood.0.escape_ascii());
            assert!(!error.is_transient(), "{what}");
            // On a busy machine it takes a second or more to read what is read.
            assert!(begin.elapsed() < Duration::from_secs(29), "{what}: {:?}", begin.elapsed());
            let sent = sent.load(Ordering::Relaxed);
            assert!(sent < 100 << 20, "{what}: {sent} bytes");
        }
    }
}

/// Postgres' own way to read a URL takes what is before the `@` for the password, `?` and all: its settings would be none of ours, and TLS off.
#[tokio::test]
async fn a_question_mark_in_a_password_does_not_hide_the_settings() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    for settings in
        ["", "?sslmode=require", "?sslmode=require&sslrootcert=/no/ca.pem", "?owner=any", "?options=-crole=eve"]
    {
        let error =
            Postgres::open_url(&format!("postgres://app:hunter2?secret99@{address}/db{settings}")).await.unwrap_err();
        assert!(
            error.kind() == ErrorKind::Invalid && error.to_string().contains("`?` before its host"),
            "{settings}: {error}"
        );
        assert!(!format!("{error:?}").contains("secret99"), "{error:?}");
    }
    assert!(listener.accept().is_err(), "nobody is told anything");
}

#[tokio::test]
async fn who_listens_is_not_flooded_either() {
    let (url, sent) = server(true, Flood(b"A\x7f\xff\xff\xff", b"0"));
    let mut config: tokio_postgres::Config = url.parse().unwrap();
    let wire = Wire::new(&mut config, &Ssl::default(), false).unwrap();
    let (client, connection) = config.connect(wire.clone()).await.unwrap();
    let ended = tokio::join!(client.batch_execute("LISTEN relent_freed"), connection);
    assert!(ended.0.is_err() && ended.1.is_err() && wire.took_nonsense());
    assert!(sent.load(Ordering::Relaxed) < 40 << 20);
}

/// A server that a user makes where a folder has Postgres' socket. How many bytes it is sent is told for each who comes.
fn server_of(user: u32, folder: &Path) -> mpsc::Receiver<usize> {
    let (socket, (tell, told)) = (folder.join(".s.PGSQL.5432"), mpsc::channel());
    let (ready, is_ready) = mpsc::channel();
    thread::spawn(move || {
        let user = rustix::thread::Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        let listener = UnixListener::bind(socket).unwrap();
        ready.send(()).unwrap();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // "The password, in plain text." Whoever has gone away already has said nothing.
            let _ = stream.write_all(b"R\0\0\0\x08\0\0\0\x03");
            let sent = stream.read(&mut [0; 4096]).unwrap_or_default();
            if tell.send(sent).is_err() {
                return;
            }
        }
    });
    is_ready.recv().unwrap();
    told
}

/// Who may make something in the folder could wait there until the server is down. It takes root, who can be anybody.
#[tokio::test]
async fn another_user_on_a_socket_is_told_nothing_unless_it_owns_the_folder() {
    const OTHER: u32 = 65534;
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    for (name, user, owner, mode, any, is_asked) in [
        ("shared", OTHER, 0, 0o1777, "", false),
        ("believed", OTHER, 0, 0o1777, "&owner=any", true),
        // A role of the database is no user of the machine.
        ("role", OTHER, 0, 0o1777, "&owner=nobody", false),
        ("theirs", OTHER, OTHER, 0o2775, "", true),
        ("ours", 0, 0, 0o1777, "", true),
    ] {
        let folder = place.path().join(name);
        fs::create_dir(&folder).unwrap();
        chown(&folder, Some(owner), None).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let told = server_of(user, &folder);
        let whole = folder.display().to_string();
        for url in [
            format!("postgres://ann:hunter2@{}/db?connect_timeout=2{any}", whole.replace('/', "%2F")),
            format!("postgresql:///db?host={whole}&user=ann&password=hunter2{any}"),
        ] {
            let error = Postgres::open_url(&url).await.unwrap_err();
            let sent = told.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!(sent > 0, is_asked, "{name}: {sent} bytes, {error}");
            assert_eq!(error.kind() == ErrorKind::Refused, !is_asked, "{name}: {error}");
            let is_told = error.hint_text().is_some_and(|hint| hint.contains("`?owner=any` believes"));
            assert_eq!(is_told, !is_asked, "{name}");
        }
    }
    // Of a host it says whose tables are believed.
    let error = Postgres::open_url("postgres://127.0.0.1:1/db?owner=any").await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains("cannot be reached"), "{error}");
    let gone = format!("postgresql:///db?host={}/none&user=ann", place.path().display());
    let error = Postgres::open_url(&gone).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains("cannot be reached"), "{error}");
}
