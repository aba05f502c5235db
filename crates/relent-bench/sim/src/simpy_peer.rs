//! SimPy, in a virtual environment that is made for the run and removed after it.

use crate::case::{Taken, read};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const VERSION: &str = "simpy==4.1.1";

pub(crate) struct SimPy {
    folder: PathBuf,
}

impl SimPy {
    pub(crate) fn install() -> Result<SimPy, String> {
        let simpy = SimPy { folder: env::temp_dir().join(format!("relent-simpy-{}", std::process::id())) };
        done(Command::new("python3").args(["-m", "venv"]).arg(&simpy.folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", VERSION];
        done(Command::new(simpy.python()).args(pip))?;
        Ok(simpy)
    }

    fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    pub(crate) fn measure(&self, clients: u64) -> Result<Taken, String> {
        let mut command = Command::new(self.python());
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("simpy_herd.py")).args([&clients.to_string(), "1"]);
        read(command)
    }
}

impl Drop for SimPy {
    fn drop(&mut self) {
        // Left behind, it is only a temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|err| format!("{command:?}: {err}"))?;
    let why = || format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    output.status.success().then_some(()).ok_or_else(why)
}
