//! A real nginx for one test: its own configuration, port and folder; ended with the test.

use super::server::free_port;
use crate::binary::Folder;
use std::{
    env, fs,
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A running nginx.
pub(super) struct Nginx {
    child: Child,
    folder: Folder,
    port: u16,
}

fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]);
    folders.map(|folder| folder.join("nginx")).find(|file| file.is_file())
}

impl Nginx {
    /// Starts nginx with this inside of `http { server { ... } }`; `PORT` is its port, files are served from `www`.
    ///
    /// Without nginx the test fails: whoever leaves it out says so to the test runner, which counts what it skips.
    pub(super) fn start(outer: &str, server: &str) -> Nginx {
        Nginx::start_in(Folder::new(), outer, server)
    }

    /// The same in a folder that has files already.
    pub(super) fn start_in(folder: Folder, outer: &str, server: &str) -> Nginx {
        let program = program().expect(
            "there is no nginx: `cargo xtask test` installs it, and `cargo xtask test --without nginx` does without",
        );
        fs::create_dir_all(folder.path().join("www")).expect("the folder is writable");
        // Another process may take the port between the question and the start.
        for _ in 0..5 {
            let port = free_port();
            let config = config(outer, server).replace("PORT", &port.to_string());
            fs::write(folder.path().join("nginx.conf"), config).expect("the folder is writable");
            let mut child = Command::new(&program)
                .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
                .arg(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("nginx is executable");
            if is_up(&mut child, port) {
                return Nginx { child, folder, port };
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("nginx does not start: {}", fs::read_to_string(folder.path().join("error.log")).unwrap_or_default());
    }

    /// A URL on it, by address.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// A URL on it, by name and with TLS.
    pub(super) fn tls_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// Its port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// What it logged: a line a request, of protocol, status and content encoding. Waits until there are `lines`.
    pub(super) fn log(&self, lines: usize) -> Vec<String> {
        let began = Instant::now();
        loop {
            let log = fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default();
            if log.lines().count() >= lines || began.elapsed() > Duration::from_secs(10) {
                return log.lines().map(str::to_owned).collect();
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_up(child: &mut Child, port: u16) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return false;
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// One process in the foreground, everything it writes in its own folder.
fn config(outer: &str, server: &str) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log;
events {{ worker_connections 64; }}
http {{
  log_format test '$server_protocol $status $sent_http_content_encoding';
  access_log access.log test;
  client_body_temp_path tmp-body; proxy_temp_path tmp-proxy;
  fastcgi_temp_path tmp-fastcgi; uwsgi_temp_path tmp-uwsgi; scgi_temp_path tmp-scgi;
  {outer}
  server {{ root www; {server} }}
}}
"
    )
}
