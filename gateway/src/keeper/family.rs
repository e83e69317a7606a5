//! Who is whose child, read from `/proc`.

use std::{fs, io};

use nix::unistd::Pid;

/// A process and its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Relative {
    pid: Pid,
    parent: Pid,
}

/// The processes whose parent is `parent`.
pub(crate) fn children_of(parent: Pid) -> io::Result<Vec<Pid>> {
    Ok(everyone()?.into_iter().filter(|one| one.parent == parent).map(|one| one.pid).collect())
}

/// The processes that descend from `ancestor`, itself included.
pub(crate) fn tree_of(ancestor: Pid) -> io::Result<Vec<Pid>> {
    let everyone = everyone()?;
    let mut tree = vec![ancestor];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(
            everyone.iter().filter(|one| one.parent == parent && one.pid != parent).map(|one| one.pid),
        );
        next += 1;
    }
    Ok(tree)
}

fn everyone() -> io::Result<Vec<Relative>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that ended meanwhile is nobody's child any more.
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { continue };
        found.extend(parse(pid, &stat));
    }
    Ok(found)
}

/// `PID (NAME) STATE PPID ...`, where the name may hold spaces, parentheses and newlines.
fn parse(pid: i32, stat: &[u8]) -> Option<Relative> {
    let after_name = stat.iter().rposition(|&b| b == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
    let _state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Relative { pid: Pid::from_raw(pid), parent: Pid::from_raw(parent) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let one = parse(7, b"7 (a) Z 1 (b) S 3 7 7 0").unwrap();
        assert_eq!(one, Relative { pid: Pid::from_raw(7), parent: Pid::from_raw(3) });
        assert_eq!(parse(7, b""), None);
    }

    #[test]
    fn this_process_is_its_parents_child() {
        let me = nix::unistd::getpid();
        let found = children_of(nix::unistd::getppid()).unwrap();
        assert!(found.contains(&me));
        assert!(tree_of(nix::unistd::getppid()).unwrap().contains(&me));
    }
}
