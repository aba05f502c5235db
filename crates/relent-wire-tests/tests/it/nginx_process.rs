//! A real nginx for one test, of the layers' and of the program's: on a free port, with what it writes in the test's folder, and
//! ended with the test.

use std::{
    env, fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A running nginx.
pub(crate) struct NginxProcess {
    child: Child,
    port: u16,
}

impl NginxProcess {
    /// Starts nginx with this inside of `http { }`, on the port that it is told.
    ///
    /// Without nginx the test fails: whoever leaves it out says so to the test runner, which counts what it skips.
    pub(crate) fn start(folder: &Path, http: impl Fn(u16) -> String) -> NginxProcess {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]);
        let program = folders.map(|folder| folder.join("nginx")).find(|file| file.is_file()).expect(
            "there is no nginx: `cargo xtask test` installs it, and `cargo xtask test --without nginx` does without",
        );
        // Another process may take the port between the question and the start.
        for _ in 0..5 {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
            let port = free.expect("loopback has a free port").port();
            fs::write(folder.join("nginx.conf"), config(&http(port))).expect("the folder is writable");
            let mut child = Command::new(&program)
                .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
                .arg(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("nginx is executable");
            if is_up(&mut child, port) {
                return NginxProcess { child, port };
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("nginx does not start: {}", fs::read_to_string(folder.join("error.log")).unwrap_or_default());
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for NginxProcess {
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
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// One process in the foreground, everything it writes in its own folder.
fn config(http: &str) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log;
events {{ worker_connections 256; }}
http {{
  client_body_temp_path tmp-body; proxy_temp_path tmp-proxy;
  fastcgi_temp_path tmp-fastcgi; uwsgi_temp_path tmp-uwsgi; scgi_temp_path tmp-scgi;
{http}
}}
"
    )
}
