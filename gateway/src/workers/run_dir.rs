//! The folder of a server's worker sockets.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use nix::unistd::geteuid;

use crate::{config::User, worker_id::WorkerId};

/// Socket paths may have 107 bytes; longer names than this get no folder.
const MAX_PATH: usize = 99;

/// `gym-gateway-PID-RANDOM` with mode 0700, the workers' user's own, in `$XDG_RUNTIME_DIR` or else `/tmp`; removed when dropped.
#[derive(Debug)]
pub(crate) struct RunDir(PathBuf);

impl RunDir {
    /// # Errors
    /// The system's, with the path: neither place can be written to.
    pub(crate) fn create(user: Option<&User>) -> io::Result<Self> {
        let runtime =
            std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let runtime = runtime.filter(|path| user.is_none_or(|user| may_enter(user, path)));
        let name = format!("gym-gateway-{}-{:06x}", std::process::id(), fastrand::u32(..1 << 24));
        let created = runtime.into_iter().find_map(|base| Self::create_in(&base, &name).ok());
        let created = created.map_or_else(|| Self::create_in(Path::new("/tmp"), &name), Ok)?;
        created.give_to(user)?;
        Ok(created)
    }

    /// The workers make their sockets in it.
    fn give_to(&self, user: Option<&User>) -> io::Result<()> {
        let Some(user) = user.filter(|user| user.uid != geteuid().as_raw()) else { return Ok(()) };
        chown(&self.0, Some(user.uid), None).map_err(|error| {
            let what = format!(
                "cannot give the folder {} to the workers' user {}: {error}; only a gateway that runs as root can start \
                 workers as another `user`",
                self.0.display(),
                user.name
            );
            io::Error::new(error.kind(), what)
        })
    }

    fn create_in(base: &Path, name: &str) -> io::Result<Self> {
        let dir = base.join(name);
        let longest = socket_in(&dir, WorkerId { slot: u16::MAX, generation: u32::MAX });
        if longest.as_os_str().len() > MAX_PATH {
            return Err(io::Error::other(format!("{}: too long for a socket's path", longest.display())));
        }
        // Fails if it is there already, whoever made it.
        match DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => Ok(Self(dir)),
            Err(e) => Err(io::Error::new(e.kind(), format!("cannot create {}: {e}", dir.display()))),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Whether a user may pass through a folder and all above it, as far as the permissions for everyone and for its owner tell.
fn may_enter(user: &User, path: &Path) -> bool {
    path.ancestors().all(|folder| {
        folder.metadata().is_ok_and(|meta| {
            let mode = meta.permissions().mode();
            mode & 0o001 != 0 || (meta.uid() == user.uid && mode & 0o100 != 0)
        })
    })
}

/// The socket of one worker.
pub(crate) fn socket_in(dir: &Path, id: WorkerId) -> PathBuf {
    dir.join(format!("s{}-g{}.sock", id.slot, id.generation))
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_short_and_removed() {
        let dir = RunDir::create(None).unwrap();
        let path = dir.0.clone();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let socket = socket_in(dir.path(), WorkerId { slot: 3, generation: 12 });
        assert!(socket.ends_with("s3-g12.sock"));
        std::fs::write(socket, "").unwrap();
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn a_user_gets_the_folder_if_the_gateway_may_give_it() {
        let me = geteuid().as_raw();
        let other = User { name: "other".into(), uid: me + 1, gid: 1, groups: vec![], home: "/".into() };
        match RunDir::create(Some(&other)) {
            Ok(dir) => assert_eq!(dir.0.metadata().unwrap().uid(), other.uid),
            Err(error) => {
                assert_ne!(me, 0, "{error}");
                assert!(error.to_string().contains("only a gateway that runs as root"), "{error}");
            }
        }
        let closed = tempfile::tempdir().unwrap();
        std::fs::set_permissions(closed.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!may_enter(&other, closed.path()));
        assert!(may_enter(&User { uid: me, ..other }, closed.path()));
    }

    #[test]
    fn a_long_or_missing_base_is_refused() {
        let long = tempfile::tempdir().unwrap();
        let base = long.path().join("x".repeat(90));
        std::fs::create_dir(&base).unwrap();
        assert!(RunDir::create_in(&base, "name").unwrap_err().to_string().contains("too long"));
        assert!(
            RunDir::create_in(Path::new("/no/such"), "name")
                .unwrap_err()
                .to_string()
                .contains("/no/such/name")
        );
    }

    #[test]
    fn a_folder_that_is_there_already_is_not_taken() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("n")).unwrap();
        assert_eq!(RunDir::create_in(base.path(), "n").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(base.path().join("n").exists());
    }
}
