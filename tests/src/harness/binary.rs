//! Finds the binaries under test, and builds those of other packages if cargo says that they are stale.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The gateway: `GYM_GATEWAY_BIN`, or the one that cargo builds for this profile.
pub fn gateway() -> &'static Path {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    // A failed build is kept too: every other test would only repeat it.
    let path = PATH.get_or_init(|| match std::env::var_os("GYM_GATEWAY_BIN") {
        Some(path) => Some(PathBuf::from(path)),
        None => build(&["-p", "gym-gateway", "--bin", "gym-gateway"]).map(|built| built.join("gym-gateway")),
    });
    path.as_deref().expect("the gateway does not build")
}

/// The stub worker: cargo builds it before this package's tests.
pub fn stub_worker() -> PathBuf {
    own("stub-worker")
}

/// The server of the worker SDK with routes named like those of the other protocol: cargo builds it before, too.
pub fn namesake_worker() -> PathBuf {
    own("namesake-worker")
}

fn own(name: &str) -> PathBuf {
    let path = profile_directory().join(name);
    assert!(path.exists(), "{} is not built: cargo build -p gym-gateway-tests", path.display());
    path
}

/// An example server of the worker SDK, as cargo builds it for this profile.
///
/// # Panics
/// If it does not build.
pub fn example(name: &str) -> PathBuf {
    let built = build(&["-p", "gym-worker-sdk", "--example", name]);
    built.unwrap_or_else(|| panic!("the example {name} does not build")).join("examples").join(name)
}

/// `target/debug`, say: tests run from its `deps`.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("own path");
    test.parent().and_then(Path::parent).expect("target/PROFILE/deps").to_owned()
}

/// Builds for this profile; returns its folder.
fn build(what: &[&str]) -> Option<PathBuf> {
    let directory = profile_directory();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet"]).args(what);
    if directory.ends_with("release") {
        command.arg("--release");
    }
    let status = command.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("run cargo");
    status.success().then_some(directory)
}
