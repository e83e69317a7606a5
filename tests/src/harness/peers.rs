//! The real servers and clients, in Python: where the interpreters are that have them.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// A family of real peers: what one virtual environment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// NeMo Gym's servers and agents.
    NemoGym,
    /// OpenEnv's and Open Reward Standard's servers and clients, and MCP's.
    OpenEnvs,
}

impl Peers {
    /// The family's Python; `None`, after saying so where nobody overlooks it, if there is none to be had.
    ///
    /// It is `GYM_PEERS_VENV`'s or `OPEN_ENVS_VENV`'s, or that of the environment that `scripts/python-peers.sh` makes.
    pub fn python(self, test: &str) -> Option<&'static Path> {
        static NEMO_GYM: OnceLock<Option<PathBuf>> = OnceLock::new();
        static OPEN_ENVS: OnceLock<Option<PathBuf>> = OnceLock::new();
        let place = match self {
            Self::NemoGym => &NEMO_GYM,
            Self::OpenEnvs => &OPEN_ENVS,
        };
        let found = place.get_or_init(|| self.find()).as_deref();
        if found.is_none() {
            let oldest = self.oldest_python();
            // Straight to the descriptor: the test runner hides what a passing test prints. scripts/test.sh counts the
            // line.
            let _ = writeln!(
                std::io::stderr(),
                "\nSKIPPED: {test}: no Python {oldest} or newer for the real {}",
                self.folder()
            );
        }
        found
    }

    /// A program of the family's folder, `tests/python/<family>/`.
    pub fn script(self, name: &str) -> PathBuf {
        repository().join("tests/python").join(self.folder()).join(name)
    }

    fn folder(self) -> &'static str {
        match self {
            Self::NemoGym => "nemo_gym",
            Self::OpenEnvs => "open_envs",
        }
    }

    fn oldest_python(self) -> &'static str {
        match self {
            Self::NemoGym => "3.12",
            Self::OpenEnvs => "3.11",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Self::NemoGym => "GYM_PEERS_VENV",
            Self::OpenEnvs => "OPEN_ENVS_VENV",
        }
    }

    fn find(self) -> Option<PathBuf> {
        match std::env::var(self.variable()) {
            // scripts/test.sh has looked already.
            Ok(venv) if venv.is_empty() => return None,
            Ok(venv) => return Some(Path::new(&venv).join("bin/python")),
            Err(_) => {}
        }
        let script = repository().join("scripts/python-peers.sh");
        let made = Command::new("bash")
            .arg(script)
            .arg(self.folder())
            .stderr(Stdio::inherit())
            .output()
            .expect("run python-peers.sh");
        match made.status.code() {
            Some(0) => {
                let venv = String::from_utf8(made.stdout).expect("a path");
                Some(Path::new(venv.trim_end()).join("bin/python"))
            }
            Some(3) => None,
            _ => panic!("python-peers.sh failed, its own words are above: {}", made.status),
        }
    }
}

/// The repository's folder.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}
