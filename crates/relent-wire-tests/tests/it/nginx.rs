//! A real nginx for one test, in front of what the test serves: its own configuration, port and folder; ended with the test.

use std::{
    env, fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A running nginx.
pub(super) struct Nginx {
    child: Child,
    _folder: TempDir,
    address: SocketAddr,
}

impl Nginx {
    /// Passes requests on to `below`, which stands there as three servers, and goes on to the next one as `next_upstream` says,
    /// with three tries.
    ///
    /// Without nginx the test fails: whoever leaves it out says so to the test runner, which counts what it skips.
    pub(super) fn before(below: SocketAddr, next_upstream: &str) -> Nginx {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]);
        let program = folders.map(|folder| folder.join("nginx")).find(|file| file.is_file()).expect(
            "there is no nginx: `cargo xtask test` installs it, and `cargo xtask test --without nginx` does without",
        );
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        // Another process may take the port between the question and the start.
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let config = format!(
                "daemon off; master_process off; pid nginx.pid; error_log error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path tmp-body; proxy_temp_path tmp-proxy;
  fastcgi_temp_path tmp-fastcgi; uwsgi_temp_path tmp-uwsgi; scgi_temp_path tmp-scgi;
  upstream below {{ server {below} max_fails=0; server {below} max_fails=0; server {below} max_fails=0; }}
  server {{
    listen {free};
    location / {{
      proxy_pass http://below; proxy_next_upstream {next_upstream}; proxy_next_upstream_tries 3;
    }}
  }}
}}
"
            );
            fs::write(folder.path().join("nginx.conf"), config).expect("the folder is writable");
            let mut child = Command::new(&program)
                .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
                .arg(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("nginx is executable");
            if is_up(&mut child, free) {
                return Nginx { child, _folder: folder, address: free };
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("nginx does not start: {}", fs::read_to_string(folder.path().join("error.log")).unwrap_or_default());
    }

    /// A URL on it.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_up(child: &mut Child, address: SocketAddr) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return false;
        }
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}
