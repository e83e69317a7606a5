//! `user`, `group`, `supplementary_groups`: looked up when the config is read, so that a name that is not there is found
//! before anything starts.

use std::ffi::CString;

use nix::unistd;

use super::User;
use crate::config::{
    interpolate::reread,
    section::Section,
    yaml::{Node, Value},
};

/// Whose processes workers are.
#[derive(Default)]
pub(super) struct Identity {
    pub(super) user: Option<User>,
    pub(super) gid: Option<u32>,
    pub(super) groups: Option<Vec<u32>>,
}

pub(super) fn read(section: &Section<'_>) -> Identity {
    let complain = |key: &str, why: String| section.complain(key, why);
    let gid = section.node("group").and_then(|node| group(&node).map_err(|why| complain("group", why)).ok());
    let user =
        section.node("user").and_then(|node| user(&node, gid).map_err(|why| complain("user", why)).ok());
    let groups = section
        .node("supplementary_groups")
        .and_then(|node| supplementary(&node).map_err(|why| complain("supplementary_groups", why)).ok());
    Identity { user, gid, groups }
}

/// A number that may be an ID, or a name. The highest ID means "none" to the system.
enum Named {
    Id(u32),
    Name(String),
}

fn named(node: &Node, what: &str) -> Result<Named, String> {
    let wrong = || format!("expected a {what}'s name or number, got {}", node.seen());
    match reread(node.clone()).value {
        Value::Whole(id) => {
            u32::try_from(id).ok().filter(|id| *id != u32::MAX).map(Named::Id).ok_or_else(wrong)
        }
        Value::Text(name) if !name.is_empty() && !name.contains(['\0', ':']) => Ok(Named::Name(name)),
        _ => Err(wrong()),
    }
}

fn user(node: &Node, gid: Option<u32>) -> Result<User, String> {
    let failed = |error| format!("cannot look it up: {error}");
    let (found, name) = match named(node, "user")? {
        Named::Id(id) => (unistd::User::from_uid(id.into()).map_err(failed)?, Named::Id(id)),
        Named::Name(name) => (unistd::User::from_name(&name).map_err(failed)?, Named::Name(name)),
    };
    match (found, name, gid) {
        (Some(found), ..) => Ok(User {
            groups: groups_of(&found).map_err(failed)?,
            name: found.name,
            uid: found.uid.as_raw(),
            gid: found.gid.as_raw(),
            home: found.dir,
        }),
        (None, Named::Id(uid), Some(gid)) => {
            Ok(User { name: uid.to_string(), uid, gid, groups: vec![gid], home: "/".into() })
        }
        (None, Named::Id(uid), None) => {
            Err(format!("this system has no user {uid}, and so no group for it: give `group` as well"))
        }
        (None, Named::Name(name), _) => Err(format!(
            "this system has no user {name}: create it (useradd --system {name}), or correct the name"
        )),
    }
}

fn groups_of(user: &unistd::User) -> nix::Result<Vec<u32>> {
    let name = CString::new(user.name.as_str()).map_err(|_| nix::errno::Errno::EINVAL)?;
    Ok(unistd::getgrouplist(&name, user.gid)?.into_iter().map(unistd::Gid::as_raw).collect())
}

fn group(node: &Node) -> Result<u32, String> {
    match named(node, "group")? {
        Named::Id(id) => Ok(id),
        Named::Name(name) => match unistd::Group::from_name(&name) {
            Ok(Some(group)) => Ok(group.gid.as_raw()),
            Ok(None) => Err(format!(
                "this system has no group {name}: create it (groupadd --system {name}), or correct the name"
            )),
            Err(error) => Err(format!("cannot look it up: {error}")),
        },
    }
}

fn supplementary(node: &Node) -> Result<Vec<u32>, String> {
    let Value::List(list) = &node.value else {
        return Err(format!("expected a list of groups, like [video, render], got {}", node.seen()));
    };
    list.iter().map(group).collect()
}
