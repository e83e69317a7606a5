//! Variables whose values stand in files: `environment_files`, and `{file: ...}` in `environment`. The files are found when the
//! config is read, and read before each start: a changed secret holds from a worker's next start on. No message ever shows
//! what is in them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::ProcessSettings;
use crate::config::{
    launch::{RESERVED, is_variable},
    section::Section,
    yaml::{Entry, Value},
};

/// Reads `environment_files`.
pub(super) fn files(section: &Section<'_>) -> Vec<PathBuf> {
    let files = section.texts("environment_files").unwrap_or_default();
    files.iter().filter_map(|file| found(section, "environment_files", file)).collect()
}

/// Reads those of `environment` that are in files.
pub(super) fn variables_in_files(section: &Section<'_>) -> BTreeMap<String, PathBuf> {
    let entries = section.entries("environment");
    entries.iter().filter_map(|entry| Some((entry.key.clone(), in_file(section, entry)?))).collect()
}

/// `NAME: {file: PATH}`; anything else is somebody else's to complain of.
fn in_file(section: &Section<'_>, Entry { key, at, node }: &Entry) -> Option<PathBuf> {
    let map = node.map()?;
    let name = format!("environment.{key}");
    match map.as_slice() {
        [Entry { key, node, .. }] if key == "file" => match &node.value {
            Value::Text(file) if !file.is_empty() => found(section, &name, file),
            _ => {
                section.complain_at(*at, &name, format!("expected the path of a file, got {}", node.seen()));
                None
            }
        },
        _ => {
            section.complain_at(*at, &name, "expected text, or {file: PATH} with the file that holds it");
            None
        }
    }
}

/// A file, relative to the config's folder.
fn found(section: &Section<'_>, key: &str, file: &str) -> Option<PathBuf> {
    let own = key.split('.').next().unwrap_or(key);
    let path = section.beside(own).join(file);
    // A pipe or a device would be read once, and workers are started again.
    if path.is_file() {
        return Some(path);
    }
    section.complain_beside(own, key, format!("there is no file {}", path.display()));
    None
}

/// The variables of the files, in the order in which a later one wins.
///
/// # Errors
/// A file that cannot be read, or holds something else; with its path, never with what is in it.
pub(crate) fn from_files(settings: &ProcessSettings) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for file in &settings.environment_files {
        let text = text_of(file).map_err(|why| format!("`environment_files`: {why}"))?;
        for (index, line) in text.lines().enumerate() {
            let variable = assignment(line)
                .map_err(|why| format!("`environment_files`: {}:{}: {why}", file.display(), index + 1))?;
            variables.extend(variable);
        }
    }
    for (name, file) in &settings.variables_in_files {
        let text = text_of(file).map_err(|why| format!("`environment.{name}`: {why}"))?;
        // Its last line's end is the editor's.
        let value = text.strip_suffix('\n').unwrap_or(&text);
        variables.push((name.clone(), value.strip_suffix('\r').unwrap_or(value).to_owned()));
    }
    Ok(variables)
}

fn text_of(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|error| {
        format!("cannot read {}: {error}; the gateway's own user must be able to", file.display())
    })?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", file.display()))?;
    if text.contains('\0') {
        return Err(format!("{} holds a NUL byte, which no variable can", file.display()));
    }
    Ok(text)
}

/// `NAME=value`, as systemd and container engines take it: without expansion; quotes around the whole value fall away.
/// `None`: an empty line or a comment.
fn assignment(line: &str) -> Result<Option<(String, String)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').ok_or("expected NAME=value, and there is no `=`")?;
    let name = name.trim();
    if !is_variable(name) || name.contains(char::is_whitespace) {
        return Err("what stands before the `=` cannot be a variable's name".into());
    }
    if RESERVED.contains(&name) {
        return Err(format!("{name} is set by the gateway for each worker: take it out"));
    }
    let value = value.trim();
    let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Ok(Some((name.to_owned(), unquoted.unwrap_or(value).to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_variable_a_comment_or_wrong() {
        for (line, name, value) in [
            ("A=b", "A", "b"),
            ("  export A = b c  ", "A", "b c"),
            ("A='b=c'", "A", "b=c"),
            ("A=\"$B\"", "A", "$B"),
            ("A=\"b'", "A", "\"b'"),
            ("A=\"", "A", "\""),
            ("A=", "A", ""),
        ] {
            assert_eq!(assignment(line), Ok(Some((name.into(), value.into()))), "{line}");
        }
        for line in ["", "  ", "# A=b", "; A=b"] {
            assert_eq!(assignment(line), Ok(None), "{line}");
        }
        for (line, why) in [
            ("canary", "no `=`"),
            ("=canary", "cannot be a variable's name"),
            ("a canary=1", "cannot be a variable's name"),
            ("GYM_SESSION_SECRET=canary", "set by the gateway"),
        ] {
            let said = assignment(line).unwrap_err();
            assert!(said.contains(why) && !said.contains("canary"), "{said}");
        }
    }
}
