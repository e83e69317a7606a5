//! How workers are started: commands, interpreters, folders. Whatever is missing is named with where it was looked for.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    files::folder,
    section::{Context, Section},
    surroundings::is_executable,
};

/// Variables that the gateway sets for each worker.
const RESERVED: [&str; 8] = [
    "GYM_NUM_WORKERS",
    "GYM_SERVER_CONFIG",
    "GYM_SERVER_NAME",
    "GYM_WORKER_GENERATION",
    "GYM_WORKER_SLOT",
    "GYM_WORKER_SOCKET",
    "NEMO_GYM_CONFIG_DICT",
    "NEMO_GYM_CONFIG_PATH",
];

/// An unmodified server's place.
pub(crate) struct Script {
    pub(crate) python: PathBuf,
    pub(crate) directory: PathBuf,
}

/// Reads `environment`.
pub(crate) fn environment(section: &Section<'_>) -> BTreeMap<String, String> {
    let variables = section.text_map("environment").unwrap_or_default();
    for (name, value) in &variables {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            section.complain("environment", format!("{name:?} cannot be an environment variable"));
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
pub(crate) fn command(context: &Context<'_>, section: &Section<'_>, beside: &Path) -> Option<Vec<String>> {
    if let Some((node, _)) = section.raw("command")
        && matches!(node.value, super::yaml::Value::Text(_))
    {
        section.complain(
            "command",
            format!("expected a list, like [./server, \"{{socket}}\"], got {}", node.seen()),
        );
        return None;
    }
    let argv = section.texts("command")?;
    match program(context, &argv, beside) {
        Ok(argv) => Some(argv),
        Err(why) => {
            section.complain("command", why);
            None
        }
    }
}

/// Finds the program of a command: with a slash it is relative to `beside`, else on `PATH`.
pub(crate) fn program(context: &Context<'_>, argv: &[String], beside: &Path) -> Result<Vec<String>, String> {
    let Some((program, arguments)) = argv.split_first().filter(|(program, _)| !program.is_empty()) else {
        return Err("empty: give a program and its arguments, like [./server, \"{socket}\"]".into());
    };
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err("a NUL byte in an argument: take it out".into());
    }
    let file = if program.contains('/') {
        beside.join(program)
    } else {
        context.surroundings.on_path(program).map_err(|where_to| format!("found no program {where_to}"))?
    };
    if !is_executable(&file) {
        return Err(format!(
            "{} is not a program that can be run: build it, or correct the path",
            file.display()
        ));
    }
    let file =
        file.into_os_string().into_string().map_err(|file| format!("{file:?} is not UTF-8: move it"))?;
    Ok([file].into_iter().chain(arguments.iter().cloned()).collect())
}

/// Reads the folder that workers start in.
pub(crate) fn working_directory(section: &Section<'_>, key: &str, beside: &Path) -> Option<PathBuf> {
    let Some(written) = section.text(key) else { return Some(beside.into()) };
    let directory = beside.join(written);
    if directory.is_dir() {
        return Some(directory);
    }
    section.complain(key, format!("there is no folder {}", directory.display()));
    None
}

/// Finds the folder and the interpreter of an unmodified NeMo Gym server.
pub(crate) fn script(
    context: &Context<'_>,
    own: &Section<'_>,
    server: (&str, &str, &str),
    beside: &Path,
) -> Option<Script> {
    let (kind, implementation, entrypoint) = server;
    let settings_beside = match context.problems.file(own.at()) {
        Some(file) => folder(file, context.surroundings.directory()),
        None => beside.into(),
    };
    let written = own.text("python").map(|written| interpreter(context, &written, &settings_beside));
    let configured = match written {
        Some(Err(why)) => {
            own.complain("python", why);
            return None;
        }
        Some(Ok(python)) => Some(python),
        None => None,
    };
    let default_python = || default_interpreter(context, None);
    let directory = if own.has("directory") {
        let directory = working_directory(own, "directory", &settings_beside)?;
        if !directory.join(entrypoint).is_file() {
            let missing = directory.join(entrypoint);
            own.complain("directory", format!("there is no entrypoint {}", missing.display()));
            return None;
        }
        directory
    } else {
        let relative = Path::new(kind).join(implementation);
        let mut looked = vec![beside.join(&relative), context.surroundings.directory().join(&relative)];
        looked.dedup();
        match looked.iter().find(|folder| folder.join(entrypoint).is_file()) {
            Some(folder) => folder.clone(),
            None => {
                let packages = configured.clone().map_or_else(default_python, Ok);
                let packages = packages.and_then(|python| context.surroundings.packages(&python));
                let hint = match packages.map(|packages| packages.join(&relative)) {
                    Ok(folder) if folder.join(entrypoint).is_file() => {
                        return finish(context, own, configured, folder);
                    }
                    Ok(folder) => {
                        looked.push(folder);
                        String::new()
                    }
                    Err(why) => format!(" (and not in site-packages: {why})"),
                };
                let looked: Vec<_> =
                    looked.iter().map(|folder| folder.join(entrypoint).display().to_string()).collect();
                own.complain("directory", format!(
                    "found no entrypoint; looked for {}{hint}. Give `directory`, or `python` of the environment that has the server",
                    looked.join(", ")
                ));
                return None;
            }
        }
    };
    finish(context, own, configured, directory)
}

fn finish(
    context: &Context<'_>,
    own: &Section<'_>,
    python: Option<PathBuf>,
    directory: PathBuf,
) -> Option<Script> {
    match python.map_or_else(|| default_interpreter(context, Some(&directory)), Ok) {
        Ok(python) => Some(Script { python, directory }),
        Err(why) => {
            own.complain("python", why);
            None
        }
    }
}

/// A configured interpreter: with a slash relative to the file it stands in, else on `PATH`.
fn interpreter(context: &Context<'_>, written: &str, beside: &Path) -> Result<PathBuf, String> {
    if !written.contains('/') {
        return context
            .surroundings
            .on_path(written)
            .map_err(|looked| format!("found no interpreter {looked}"));
    }
    let python = beside.join(written);
    if is_executable(&python) {
        Ok(python)
    } else {
        Err(format!(
            "there is no interpreter {}: correct the path, or make the environment",
            python.display()
        ))
    }
}

/// The folder's `.venv`, then the active environment, then `python3`.
fn default_interpreter(context: &Context<'_>, directory: Option<&Path>) -> Result<PathBuf, String> {
    let active = context.surroundings.variable("VIRTUAL_ENV").filter(|folder| !folder.is_empty());
    let places = directory.map(|folder| folder.join(".venv/bin/python")).into_iter();
    let places: Vec<_> = places.chain(active.map(|folder| Path::new(&folder).join("bin/python"))).collect();
    if let Some(python) = places.iter().find(|python| is_executable(python)) {
        return Ok(python.clone());
    }
    context.surroundings.on_path("python3").map_err(|path| {
        let looked: Vec<_> = places.iter().map(|python| python.display().to_string()).chain([path]).collect();
        format!("found no interpreter; looked for {}. Give `python`", looked.join(", "))
    })
}
