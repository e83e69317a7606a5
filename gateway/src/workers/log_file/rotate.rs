//! A file that is rotated by its size.
//!
//! The crates that do this print to standard error, or panic, when a disk fails; here every failure is the caller's to
//! tell, and a file that cannot be rotated is written on.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use nix::fcntl::OFlag;

/// `PATH`, and behind it `PATH.1` (the newest) to `PATH.keep`.
#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    open: Option<Open>,
    rotation_failed: bool,
    rotation_failure: Option<io::Error>,
}

#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
    /// Which file it is: another program may have moved it.
    identity: (u64, u64),
}

impl RotatingFile {
    /// Nothing is opened before the first write.
    pub(super) fn new(path: PathBuf, max_bytes: u64, keep: u32) -> Self {
        Self { path, max_bytes, keep, open: None, rotation_failed: false, rotation_failure: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The size up to which it is filled, but for a line that is longer; `None`: no end.
    pub(super) fn max_bytes(&self) -> Option<usize> {
        usize::try_from(self.max_bytes).ok().filter(|max| *max > 0)
    }

    /// Why it could not be rotated; given once, until it could be.
    pub(super) fn take_rotation_failure(&mut self) -> Option<io::Error> {
        self.rotation_failure.take()
    }

    /// Appends whole lines, after a rotation if they would make the file too long.
    ///
    /// # Errors
    /// The system's. A part of the lines may be written; the file is opened anew at the next write.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut open = self.take_open()?;
        if self.max_bytes > 0 && open.size > 0 && open.size + lines.len() as u64 > self.max_bytes {
            match self.rotate() {
                Ok(()) => {
                    self.rotation_failed = false;
                    open = Open::at(&self.path)?;
                }
                Err(error) if !self.rotation_failed => {
                    self.rotation_failed = true;
                    self.rotation_failure = Some(error);
                }
                Err(_) => {}
            }
        }
        open.file.write_all(lines)?;
        open.size += lines.len() as u64;
        self.open = Some(open);
        Ok(())
    }

    /// The open file, if it still is the one at the path.
    fn take_open(&mut self) -> io::Result<Open> {
        let there = fs::symlink_metadata(&self.path).ok().map(|meta| (meta.dev(), meta.ino()));
        match self.open.take() {
            Some(open) if Some(open.identity) == there => Ok(open),
            _ => Open::at(&self.path),
        }
    }

    fn rotate(&self) -> io::Result<()> {
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        for number in (1..self.keep).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.numbered(1))
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

impl Open {
    /// Opens the file at `path`, and makes it and its folder if need be. What workers write may be private: others may not
    /// read it.
    fn at(path: &Path) -> io::Result<Self> {
        // A link in its place might be a trap of whoever can write to the folder.
        let no_link = OFlag::O_NOFOLLOW.bits();
        let open =
            || OpenOptions::new().append(true).create(true).mode(0o640).custom_flags(no_link).open(path);
        let file = match (open(), path.parent()) {
            (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(folder)?;
                open()?
            }
            (opened, _) => opened?,
        };
        let meta = file.metadata()?;
        Ok(Self { file, size: meta.len(), identity: (meta.dev(), meta.ino()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(folder: &Path, name: &str) -> Option<String> {
        fs::read_to_string(folder.join(name)).ok()
    }

    #[test]
    fn it_is_rotated_before_it_grows_too_long_and_the_last_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut file = RotatingFile::new(path.join("new/w.log"), 8, 2);
        for line in ["one\n", "two\n", "three\n", "much longer\n", "four\n"] {
            file.write(line.as_bytes()).unwrap();
        }
        let found = ["w.log", "w.log.1", "w.log.2", "w.log.3"].map(|name| text(&path.join("new"), name));
        assert_eq!(found.map(Option::unwrap_or_default), ["four\n", "much longer\n", "three\n", ""]);
        assert_eq!(fs::metadata(path.join("new/w.log")).unwrap().mode() & 0o137, 0);
    }

    #[test]
    fn what_is_there_is_appended_to_and_counts() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("w"), "before\n").unwrap();
        let mut file = RotatingFile::new(folder.path().join("w"), 12, 0);
        file.write(b"one\n").unwrap();
        assert_eq!(text(folder.path(), "w").unwrap(), "before\none\n");
        file.write(b"two\n").unwrap();
        assert_eq!(text(folder.path(), "w").unwrap(), "two\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RotatingFile::new(folder.path().join("w"), 0, 1);
        file.write(b"one\n").unwrap();
        fs::rename(folder.path().join("w"), folder.path().join("w-today")).unwrap();
        file.write(b"two\n").unwrap();
        assert_eq!(text(folder.path(), "w").unwrap(), "two\n");
    }

    #[test]
    fn one_that_cannot_be_rotated_is_written_on_and_it_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("w.1/full")).unwrap();
        let mut file = RotatingFile::new(folder.path().join("w"), 4, 1);
        for _ in 0..3 {
            file.write(b"line\n").unwrap();
        }
        assert_eq!(text(folder.path(), "w").unwrap(), "line\nline\nline\n");
        assert!(file.take_rotation_failure().is_some());
        file.write(b"line\n").unwrap();
        assert!(file.take_rotation_failure().is_none());
        fs::remove_dir_all(folder.path().join("w.1")).unwrap();
        file.write(b"new\n").unwrap();
        assert_eq!(text(folder.path(), "w").unwrap(), "new\n");
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join("w")).unwrap();
        assert!(RotatingFile::new(folder.path().join("w"), 0, 1).write(b"x\n").is_err());
    }
}
