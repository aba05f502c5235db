//! Real servers, each on a port of its own, in a folder of its own, ended when the test ends.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
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

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("it runs").0.id()
    }

    /// Where it keeps what it accepts.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
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

/// A Postgres server: of the newest version that is installed, as the user `relent` with any password.
pub(crate) struct PostgresServer {
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    settings: Vec<String>,
    running: Option<Running>,
}

impl PostgresServer {
    pub(crate) fn start() -> PostgresServer {
        PostgresServer::start_with(|_| vec![])
    }

    /// Starts one with these settings besides. Whoever says which may put files into its folder first.
    pub(crate) fn start_with(settings: impl FnOnce(&Path) -> Vec<String>) -> PostgresServer {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        std::fs::create_dir(folder.path().join("data")).expect("it is ours");
        let settings = settings(folder.path());
        if is_root() {
            // Postgres does not run as root.
            let own = Command::new("chown").arg("-R").arg("postgres").arg(folder.path()).status();
            assert!(own.is_ok_and(|own| own.success()), "the user postgres is there with its package");
        }
        let mut server = PostgresServer { port: free_port(), folder, settings, running: None };
        let mut init = server.program("initdb");
        init.args(["-U", "relent", "-A", "trust", "--no-sync", "-D"]).arg(server.folder.path().join("data"));
        let init = init.stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(init.is_ok_and(|init| init.success()), "initdb is installed: cargo xtask test does it");
        server.again();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://relent:hunter2@127.0.0.1:{}/postgres", self.port)
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("it runs").0.id()
    }

    /// Where its data are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it again on what it left, and waits until it is ready.
    pub(crate) fn again(&mut self) {
        let mut command = self.program("postgres");
        command
            .args(["-p", &self.port.to_string(), "-h", "127.0.0.1", "-k", "", "-D"])
            .arg(self.folder.path().join("data"));
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            let mut running = Running(command.spawn().expect("postgres is installed"));
            // It ends at once while children of one that was killed hold what they shared with it.
            while Instant::now() < end && running.0.try_wait().is_ok_and(|ended| ended.is_none()) {
                if self.is_ready(&running) {
                    self.running = Some(running);
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the server does not listen");
    }

    /// Whether it listens at all places and is started up, as its own file says. That a port takes connections is not yet that.
    fn is_ready(&self, running: &Running) -> bool {
        let told = std::fs::read_to_string(self.folder.path().join("data/postmaster.pid")).unwrap_or_default();
        let (process, state) = (told.lines().next(), told.lines().nth(7));
        process == Some(&running.0.id().to_string()) && state.is_some_and(|state| state.trim() == "ready")
    }

    /// A program of Postgres, as somebody who is not root.
    fn program(&self, name: &str) -> Command {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut programs: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(name)).collect();
        programs.retain(|program| program.is_file());
        programs.sort();
        let program = programs.pop().unwrap_or_else(|| name.into());
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(program);
        command
    }
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
