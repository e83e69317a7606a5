//! What the loader looks at outside of the files: environment, working directory, interpreters.

use std::{
    collections::BTreeMap,
    env,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::children::{KnownChild, spawn_known};

/// Asks an interpreter for its site-packages folder.
type AskPackages = fn(&Path) -> Result<PathBuf, String>;

/// The process's surroundings; tests give their own.
pub(crate) struct Surroundings {
    directory: PathBuf,
    variables: BTreeMap<String, String>,
    ask_packages: AskPackages,
}

impl Surroundings {
    /// The real ones.
    pub(crate) fn real() -> Self {
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self {
            directory: env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            variables,
            ask_packages: site_packages,
        }
    }

    /// Made-up ones.
    #[cfg(test)]
    pub(crate) fn made_up(directory: &Path, variables: &[(&str, &str)], ask_packages: AskPackages) -> Self {
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Self { directory: directory.into(), variables, ask_packages }
    }

    /// The working directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// An environment variable.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    /// The site-packages folder of `python`.
    pub(crate) fn packages(&self, python: &Path) -> Result<PathBuf, String> {
        (self.ask_packages)(python)
    }

    /// Finds a program by its bare name on `PATH`.
    ///
    /// # Errors
    /// The folders that were searched.
    pub(crate) fn on_path(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.variable("PATH").unwrap_or_default();
        env::split_paths(&path)
            .map(|folder| self.directory.join(folder).join(name))
            .find(|file| is_executable(file))
            .ok_or_else(|| format!("{name} in PATH ({path})"))
    }
}

/// Whether `file` is a file that may be executed.
pub(crate) fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn site_packages(python: &Path) -> Result<PathBuf, String> {
    let script = "import sysconfig;print(sysconfig.get_paths()['purelib'])";
    let mut command = Command::new(python);
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A running gateway reads its config again on a reload, and kills strays.
    let output = spawn_known(&mut command)
        .and_then(KnownChild::output)
        .map_err(|error| format!("cannot run {}: {error}", python.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} -c \"{script}\" failed: {}", python.display(), said.trim()));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
