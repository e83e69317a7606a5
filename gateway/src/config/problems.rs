//! Everything that is wrong, collected: a user sees all of it at once.

use std::{cell::RefCell, path::PathBuf};

use super::{model::ErrorList, yaml::Position};

/// The list of problems, and the files that they name.
pub(crate) struct Problems {
    files: Vec<PathBuf>,
    found: RefCell<Vec<(Position, String)>>,
}

impl Problems {
    /// An empty list.
    pub(crate) fn new(files: &[PathBuf]) -> Self {
        Self { files: files.to_vec(), found: RefCell::default() }
    }

    /// `counter.yaml:7`.
    pub(crate) fn place(&self, at: Position) -> String {
        match self.files.get(at.file) {
            Some(file) => format!("{}:{}", file.display(), at.line),
            None => "the command line".into(),
        }
    }

    /// The file at a position.
    pub(crate) fn file(&self, at: Position) -> Option<&PathBuf> {
        self.files.get(at.file)
    }

    /// Notes a problem with the value of `key` (dots between its parts) at a place.
    pub(crate) fn at(&self, at: Position, key: &str, what: impl std::fmt::Display) {
        let colon = if key.is_empty() { "" } else { ": " };
        self.found.borrow_mut().push((at, format!("{}: {key}{colon}{what}", self.place(at))));
    }

    /// Notes a problem without a place.
    pub(crate) fn general(&self, what: impl Into<String>) {
        self.found.borrow_mut().push((Position::default(), what.into()));
    }

    /// The files, as they were named.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether nothing is wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// `value` if nothing is wrong, else everything that is, in the order of the files.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, ErrorList> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(at, _)| *at);
        found.dedup();
        match value {
            Some(value) if found.is_empty() => Ok(value),
            _ => Err(ErrorList(found.into_iter().map(|(_, what)| what).collect())),
        }
    }
}
