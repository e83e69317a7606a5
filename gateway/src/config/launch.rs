//! How workers are started. Whatever is missing is named with where it was looked for.

mod script;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub(crate) use self::script::{Script, script};
use super::{
    section::Section,
    surroundings::{Surroundings, is_executable},
    yaml::Value,
};

/// Variables that the gateway sets for each worker.
pub(crate) const RESERVED: [&str; 9] = [
    "GYM_NUM_WORKERS",
    "GYM_SERVER_CONFIG",
    "GYM_SERVER_NAME",
    "GYM_SESSION_SECRET",
    "GYM_WORKER_GENERATION",
    "GYM_WORKER_SLOT",
    "GYM_WORKER_SOCKET",
    "NEMO_GYM_CONFIG_DICT",
    "NEMO_GYM_CONFIG_PATH",
];

/// Whether an environment variable may have this name.
pub(crate) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Reads `environment`, but for what is in files: that is in [`super::ProcessSettings`].
pub(crate) fn environment(section: &Section<'_>) -> BTreeMap<String, String> {
    let variables = section.text_map("environment").unwrap_or_default();
    let in_files = section.entries("environment").into_iter().filter(|entry| entry.node.map().is_some());
    let all: Vec<_> =
        variables.iter().cloned().chain(in_files.map(|entry| (entry.key, String::new()))).collect();
    for (name, value) in &all {
        if !is_variable(name) || value.contains('\0') {
            section.complain("environment", format!("{name:?} cannot be an environment variable"));
        } else if name == "GYM_SESSION_SECRET" {
            section.complain(
                "environment",
                "GYM_SESSION_SECRET is set by the gateway for each worker: give `session_secret` instead",
            );
        } else if RESERVED.contains(&name.as_str()) {
            section.complain(
                "environment",
                format!("{name} is set by the gateway for each worker: take it out"),
            );
        }
    }
    variables.into_iter().collect()
}

/// Reads `command`; the program is looked for now, so that a typing error is found before anything starts.
pub(crate) fn command(section: &Section<'_>) -> Option<Vec<String>> {
    if let Some((node, _)) = section.raw("command")
        && matches!(node.value, Value::Text(_))
    {
        let seen = node.seen();
        section.complain("command", format!("expected a list, like [./server, \"{{socket}}\"], got {seen}"));
        return None;
    }
    let argv = section.texts("command")?;
    match program(section.surroundings(), &argv, &section.beside("command")) {
        Ok(argv) => Some(argv),
        Err(why) => {
            section.complain("command", why);
            None
        }
    }
}

/// Finds the program of a command: with a slash it is relative to `beside`, else on `PATH`.
///
/// # Errors
/// There is none, or it cannot be run.
pub(crate) fn program(
    surroundings: &Surroundings,
    argv: &[String],
    beside: &Path,
) -> Result<Vec<String>, String> {
    let Some((program, arguments)) = argv.split_first().filter(|(program, _)| !program.is_empty()) else {
        return Err("empty: give a program and its arguments, like [./server, \"{socket}\"]".into());
    };
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err("a NUL byte in an argument: take it out".into());
    }
    let file = if program.contains('/') {
        beside.join(program)
    } else {
        surroundings.on_path(program).map_err(|looked| format!("found no program {looked}"))?
    };
    if !is_executable(&file) {
        let file = file.display();
        return Err(format!("{file} is not a program that can be run: build it, or correct the path"));
    }
    let file =
        file.into_os_string().into_string().map_err(|file| format!("{file:?} is not UTF-8: move it"))?;
    Ok([file].into_iter().chain(arguments.iter().cloned()).collect())
}

/// Reads the folder that workers start in; the default is that of the file in which `command` stands.
pub(crate) fn working_directory(section: &Section<'_>, key: &str) -> Option<PathBuf> {
    let Some(written) = section.text(key) else {
        // Present and wrong was noted by `text`; absent is the default.
        return (!section.has(key)).then(|| section.beside("command"));
    };
    let directory = section.beside(key).join(written);
    if directory.is_dir() {
        return Some(directory);
    }
    section.complain(key, format!("there is no folder {}", directory.display()));
    None
}
