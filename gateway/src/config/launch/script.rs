//! Where an unmodified NeMo Gym server is, and the interpreter that runs it.

use std::path::{Path, PathBuf};

use super::working_directory;
use crate::config::{
    section::Section,
    surroundings::{Surroundings, is_executable},
};

/// An unmodified server's place.
pub(crate) struct Script {
    /// The interpreter.
    pub(crate) python: PathBuf,
    /// The folder that has the entrypoint.
    pub(crate) directory: PathBuf,
}

/// Finds the folder and the interpreter. `own` holds the settings, `relative` is `<kind>/<implementation>`, `beside`
/// the folder of the server's file.
pub(crate) fn script(own: &Section<'_>, relative: &Path, entrypoint: &str, beside: &Path) -> Option<Script> {
    let configured = match own.text("python") {
        Some(written) => Some(noted(own, "python", interpreter(own, &written))?),
        None if own.has("python") => return None,
        None => None,
    };
    let directory = if own.has("directory") {
        let directory = working_directory(own, "directory")?;
        let file = directory.join(entrypoint);
        let missing = || format!("there is no entrypoint {}", file.display());
        noted(own, "directory", file.is_file().then_some(directory).ok_or_else(missing))?
    } else {
        noted(
            own,
            "directory",
            find(own.surroundings(), configured.as_deref(), relative, entrypoint, beside),
        )?
    };
    let python = match configured {
        Some(python) => python,
        None => noted(own, "python", default_interpreter(own.surroundings(), Some(&directory)))?,
    };
    Some(Script { python, directory })
}

fn noted<T>(own: &Section<'_>, key: &str, found: Result<T, String>) -> Option<T> {
    found.map_err(|why| own.complain(key, why)).ok()
}

/// Beside the config, in the working directory, in the interpreter's site-packages.
fn find(
    surroundings: &Surroundings,
    python: Option<&Path>,
    relative: &Path,
    entrypoint: &str,
    beside: &Path,
) -> Result<PathBuf, String> {
    let mut looked = vec![beside.join(relative), surroundings.directory().join(relative)];
    looked.dedup();
    let has_it = |folder: &&PathBuf| folder.join(entrypoint).is_file();
    if let Some(folder) = looked.iter().find(has_it) {
        return Ok(folder.clone());
    }
    // Asked last: it starts an interpreter.
    let python = python.map_or_else(|| default_interpreter(surroundings, None), |python| Ok(python.into()));
    let hint = match python.and_then(|python| surroundings.packages(&python)) {
        Ok(packages) => {
            looked.push(packages.join(relative));
            String::new()
        }
        Err(why) => format!(" (not in site-packages: {why})"),
    };
    if let Some(folder) = looked.last().filter(has_it) {
        return Ok(folder.clone());
    }
    let looked: Vec<_> = looked.iter().map(|folder| folder.join(entrypoint).display().to_string()).collect();
    Err(format!(
        "found no entrypoint; looked for {}{hint}. Give `directory`, or `python` of the environment that has the server",
        looked.join(", ")
    ))
}

/// A configured interpreter: with a slash relative to the file it stands in, else on `PATH`.
fn interpreter(own: &Section<'_>, written: &str) -> Result<PathBuf, String> {
    if !written.contains('/') {
        let found = own.surroundings().on_path(written);
        return found.map_err(|looked| format!("found no interpreter {looked}"));
    }
    let python = own.beside("python").join(written);
    if is_executable(&python) {
        return Ok(python);
    }
    let python = python.display();
    Err(format!("there is no interpreter {python}: correct the path, or make the environment"))
}

/// The folder's `.venv`, then the active environment, then `python3`.
fn default_interpreter(surroundings: &Surroundings, directory: Option<&Path>) -> Result<PathBuf, String> {
    let active = surroundings.variable("VIRTUAL_ENV").filter(|folder| !folder.is_empty());
    let places = directory.map(|folder| folder.join(".venv/bin/python")).into_iter();
    let places: Vec<_> = places.chain(active.map(|folder| Path::new(&folder).join("bin/python"))).collect();
    if let Some(python) = places.iter().find(|python| is_executable(python)) {
        return Ok(python.clone());
    }
    surroundings.on_path("python3").map_err(|path| {
        let looked: Vec<_> = places.iter().map(|python| python.display().to_string()).chain([path]).collect();
        format!("found no interpreter; looked for {}. Give `python`", looked.join(", "))
    })
}
