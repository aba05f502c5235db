//! A real nginx for one test: its own configuration, port and folder; ended with the test.

#[path = "../../../../relent-wire-tests/tests/it/nginx_process.rs"]
mod nginx_process;

use self::nginx_process::NginxProcess;
use crate::binary::Folder;
use std::{
    fs, thread,
    time::{Duration, Instant},
};

/// A running nginx.
pub(super) struct Nginx {
    // Before its folder.
    process: NginxProcess,
    folder: Folder,
}

impl Nginx {
    /// Starts nginx with this inside of `http { server { ... } }`; `PORT` is its port, files are served from `www`.
    pub(super) fn start(outer: &str, server: &str) -> Nginx {
        Nginx::start_in(Folder::new(), outer, server)
    }

    /// The same in a folder that has files already.
    pub(super) fn start_in(folder: Folder, outer: &str, server: &str) -> Nginx {
        fs::create_dir_all(folder.path().join("www")).expect("the folder is writable");
        let process = NginxProcess::start(folder.path(), |port| {
            let http = format!(
                "log_format test '$server_protocol $status $sent_http_content_encoding';
  access_log access.log test;
  {outer}
  server {{ root www; {server} }}"
            );
            http.replace("PORT", &port.to_string())
        });
        Nginx { process, folder }
    }

    /// A URL on it, by address.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.process.port())
    }

    /// A URL on it, by name and with TLS.
    pub(super) fn tls_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.process.port())
    }

    /// Its port.
    pub(super) fn port(&self) -> u16 {
        self.process.port()
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
