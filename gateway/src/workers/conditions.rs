//! From a server's config to what a worker's process is besides its command.

use std::io;

use nix::unistd::geteuid;

use super::cgroup;
use crate::{
    config::{ProcessSettings, from_files},
    keeper::{Cgroup, Conditions, StartSpec},
    worker_id::WorkerId,
};

/// Adds what every process of a server is besides its command.
///
/// # Errors
/// A file with variables that cannot be read.
pub(super) fn apply(settings: &ProcessSettings, spec: &mut StartSpec) -> io::Result<()> {
    let mut env: Vec<(String, String)> = Vec::new();
    if let Some(user) = &settings.user {
        let home = user.home.to_string_lossy().into_owned();
        env.extend([
            ("HOME".into(), home),
            ("USER".into(), user.name.clone()),
            ("LOGNAME".into(), user.name.clone()),
        ]);
    }
    env.extend(from_files(settings).map_err(io::Error::other)?);
    // What is given later wins: the config's own variables, then what the gateway tells a worker.
    env.append(&mut spec.env);
    spec.env = env;
    *spec.conditions = conditions(settings);
    Ok(())
}

fn conditions(settings: &ProcessSettings) -> Conditions {
    // A gateway that is that user already may keep its groups, which it may be unable to change.
    let user = settings.user.as_ref().filter(|user| user.uid != geteuid().as_raw());
    Conditions {
        uid: user.map(|user| user.uid),
        gid: settings.gid.or(settings.user.as_ref().map(|user| user.gid)),
        groups: settings.groups.clone().or(user.map(|user| user.groups.clone())),
        nice: settings.nice,
        rlimits: settings.rlimits.iter().map(|(limit, value)| (*limit, *value)).collect(),
        cgroup: None,
    }
}

/// A worker's own cgroup, if its server has any; the one around it is ready when this returns.
///
/// # Errors
/// What cannot be done, why, and what to do.
pub(super) fn own_cgroup(
    settings: &ProcessSettings,
    server: &str,
    id: WorkerId,
) -> Result<Option<Cgroup>, String> {
    let Some(wanted) = &settings.cgroup else { return Ok(None) };
    let parent = cgroup::prepare(wanted.parent.as_deref())?;
    let safe: String =
        server.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect();
    // Another gateway's workers may have the same names.
    let name = format!("{safe}-{id}-{}", std::process::id());
    Ok(Some(Cgroup { path: parent.join(name), memory_max: wanted.memory_max }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::User;

    fn user(uid: u32) -> User {
        User { name: "worker".into(), uid, gid: 70, groups: vec![70, 71], home: "/srv/worker".into() }
    }

    #[test]
    fn a_user_brings_groups_and_a_home() {
        let me = geteuid().as_raw();
        let mut settings = ProcessSettings { user: Some(user(me + 1)), ..ProcessSettings::default() };
        let mut spec = StartSpec {
            argv: vec!["true".into()],
            directory: "/".into(),
            env: vec![("HOME".into(), "/mine".into())],
            nofile: None,
            conditions: Box::default(),
            socket: None,
        };
        apply(&settings, &mut spec).unwrap();
        let home: Vec<_> =
            spec.env.iter().filter(|(name, _)| name == "HOME").map(|(_, value)| value).collect();
        assert_eq!(home, ["/srv/worker", "/mine"], "the config's own comes later, and wins");
        let expected = Conditions {
            uid: Some(me + 1),
            gid: Some(70),
            groups: Some(vec![70, 71]),
            ..Conditions::default()
        };
        assert_eq!(*spec.conditions, expected);
        (settings.gid, settings.groups) = (Some(5), Some(vec![6]));
        assert_eq!(
            conditions(&settings),
            Conditions { uid: Some(me + 1), gid: Some(5), groups: Some(vec![6]), ..Conditions::default() }
        );
    }

    #[test]
    fn who_is_that_user_already_keeps_its_groups() {
        let settings = ProcessSettings { user: Some(user(geteuid().as_raw())), ..ProcessSettings::default() };
        assert_eq!(conditions(&settings), Conditions { gid: Some(70), ..Conditions::default() });
    }
}
