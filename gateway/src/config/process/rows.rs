//! What `check` shows of a worker's process.

use super::ProcessSettings;

/// Each key with its value.
pub(crate) fn rows(settings: &ProcessSettings) -> Vec<(&'static str, String)> {
    let ids = |ids: &[u32]| format!("[{}]", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
    let limit = |(limit, value): (&crate::rlimit::Rlimit, &crate::rlimit::RlimitValue)| {
        format!("{}: {value}", limit.name())
    };
    let limits: Vec<_> = settings.rlimits.iter().map(limit).collect();
    let files: Vec<_> = settings.environment_files.iter().map(|file| file.display().to_string()).collect();
    let gateways = || "the gateway's".to_owned();
    vec![
        ("environment_files", format!("[{}]", files.join(", "))),
        (
            "user",
            settings.user.as_ref().map_or_else(gateways, |user| format!("{} ({})", user.name, user.uid)),
        ),
        ("group", settings.gid.map_or("the user's own".into(), |gid| gid.to_string())),
        (
            "supplementary_groups",
            settings.groups.as_ref().map_or("the user's own".into(), |groups| ids(groups)),
        ),
        ("nice", settings.nice.map_or_else(gateways, |nice| nice.to_string())),
        ("limits", if limits.is_empty() { gateways() } else { format!("{{{}}}", limits.join(", ")) }),
        (
            "cgroup",
            settings.cgroup.as_ref().map_or("none".into(), |cgroup| {
                let parent = cgroup.parent.as_ref().map(|parent| format!(", parent: {}", parent.display()));
                format!("{{memory_max: {}{}}}", cgroup.memory_max, parent.unwrap_or_default())
            }),
        ),
        (
            "log_file",
            settings.log_file.as_ref().map_or("none".into(), |file| {
                format!("{{path: {}, max_bytes: {}, keep: {}}}", file.path, file.max_bytes, file.keep)
            }),
        ),
    ]
}
