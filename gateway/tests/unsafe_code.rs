//! Where unsafe code may stand.
//!
//! The workspace's lint denies it, which a file can lift: this names the one that does.
#![allow(clippy::unwrap_used, reason = "a file that cannot be read is to fail the test where it stands")]

use std::{
    fs,
    path::{Path, PathBuf},
};

const ALLOWED: &str = "gateway/src/session/prefetch.rs";

#[test]
fn one_file_lifts_the_lint() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // Written apart, so that this file does not name it.
    let lint = ["unsafe", "_code"].concat();
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains(&format!("{lint} = \"deny\"")),
        "the workspace's lint table denies it elsewhere"
    );
    let mut files = Vec::new();
    for part in ["gateway", "worker-sdk", "tests"] {
        find(&root.join(part), &mut files);
    }
    let lift = files.iter().filter(|file| fs::read_to_string(file).unwrap().contains(&lint));
    let lift: Vec<_> = lift.map(|file| file.strip_prefix(root).unwrap()).collect();
    assert_eq!(lift, [Path::new(ALLOWED)], "of {} files", files.len());
    for member in ["gateway", "worker-sdk", "worker-sdk/wire", "tests"] {
        let manifest = fs::read_to_string(root.join(member).join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{member} has the workspace's lints");
    }
}

/// All Rust files below a folder, but for what a build or a virtual environment made.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
