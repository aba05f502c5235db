//! A real nginx in front of what a test serves.

use super::nginx_process::NginxProcess;
use std::net::SocketAddr;
use tempfile::TempDir;

/// A running nginx.
pub(super) struct Nginx {
    process: NginxProcess,
    _folder: TempDir,
}

impl Nginx {
    /// Passes requests on to `below`, which stands there as three servers, and goes on to the next one as `next_upstream` says,
    /// with three tries.
    pub(super) fn before(below: SocketAddr, next_upstream: &str) -> Nginx {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let process = NginxProcess::start(folder.path(), |port| {
            format!(
                "access_log off;
  upstream below {{ server {below} max_fails=0; server {below} max_fails=0; server {below} max_fails=0; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://below; proxy_next_upstream {next_upstream}; proxy_next_upstream_tries 3;
    }}
  }}"
            )
        });
        Nginx { process, _folder: folder }
    }

    /// A URL on it.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.process.port())
    }
}
