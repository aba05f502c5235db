//! Real servers, each on a port of its own, in a folder of its own, ended when the test ends.

use std::{
    net::{Ipv4Addr, TcpListener},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A port that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}

/// A process that is ended, by its number, when this is dropped.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Redis server.
pub(crate) struct RedisServer {
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    settings: Vec<String>,
    running: Option<Running>,
}

impl RedisServer {
    /// Starts one that keeps what it accepts, with these settings besides.
    pub(crate) fn start(settings: &[&str]) -> RedisServer {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let settings = settings.iter().map(|&word| word.to_owned()).collect();
        let mut server = RedisServer { port: free_port(), folder, settings, running: None };
        server.again();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    /// Starts it again on what it left, and waits until it answers.
    pub(crate) fn again(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"]);
        command.args(&self.settings).arg("--dir").arg(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("redis-server is installed: cargo xtask test does it");
        self.running = Some(Running(child));
        wait_for_port(self.port);
    }
}

fn wait_for_port(port: u16) {
    let end = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(Instant::now() < end, "the server does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
}
