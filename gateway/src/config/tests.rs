//! YAML in; typed values, or the error's words, out.

mod errors;
mod interpolation;
mod limits;
mod load;
mod process;
mod reference;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::{Config, ErrorList, load_in, surroundings::Surroundings};

/// A folder with an interpreter, a server of every kind to run, and a program.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Folder(TempDir::new().unwrap());
        folder.write("resources_servers/counter/app.py", "");
        folder.program("bin/python3");
        folder.program("server");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn program(&self, name: &str) -> PathBuf {
        let path = self.write(name, "#!/bin/sh\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Loads the texts as the files `a.yaml`, `b.yaml`, ...
    fn load(&self, texts: &[&str]) -> Result<Config, ErrorList> {
        self.load_with(texts, &[])
    }

    fn load_with(&self, texts: &[&str], variables: &[(&str, &str)]) -> Result<Config, ErrorList> {
        let name = |index: usize| format!("{}.yaml", ["a", "b", "c"][index]);
        let files: Vec<_> =
            texts.iter().enumerate().map(|(index, text)| self.write(&name(index), text)).collect();
        let path = self.path("bin").display().to_string();
        let variables = [&[("PATH", path.as_str())], variables].concat();
        load_in(&files, &Surroundings::made_up(self.0.path(), &variables, packages))
    }

    /// The errors, with the folder's name taken out.
    fn errors(&self, texts: &[&str]) -> Vec<String> {
        let folder = format!("{}/", self.0.path().display());
        let errors = self.load(texts).expect_err("no error");
        errors.0.iter().map(|error| error.replace(&folder, "")).collect()
    }
}

/// The site-packages of a made-up interpreter: `packages` beside its `bin`.
fn packages(python: &Path) -> Result<PathBuf, String> {
    Ok(python.parent().and_then(Path::parent).unwrap().join("packages"))
}

/// A counter server with more keys in its block, one a line.
fn counter(keys: &str) -> String {
    let keys: String = keys.lines().map(|line| format!("      {}\n", line.trim())).collect();
    format!("counter:\n  resources_servers:\n    counter:\n      entrypoint: app.py\n{keys}")
}
