//! `nice`, `limits` and `cgroup`.

use std::collections::BTreeMap;

use super::{CgroupSettings, entries, size};
use crate::{
    config::{
        interpolate::reread,
        keys::nearest,
        section::Section,
        yaml::{Entry, Node, Value},
    },
    rlimit::{Rlimit, RlimitValue},
};

/// The least memory that a process can be given: below it nothing starts.
const LEAST_MEMORY: u64 = 1 << 20;

pub(super) fn nice(section: &Section<'_>) -> Option<i32> {
    let node = reread(section.node("nice")?);
    match node.value {
        Value::Whole(value @ -20..=19) => i32::try_from(value).ok(),
        _ => {
            let seen = node.seen();
            section.complain(
                "nice",
                format!("expected a whole number from -20 (first) to 19 (last), got {seen}"),
            );
            None
        }
    }
}

pub(super) fn rlimits(section: &Section<'_>) -> BTreeMap<Rlimit, RlimitValue> {
    let Some(node) = section.node("limits") else { return BTreeMap::new() };
    let Value::Map(map) = &node.value else {
        section.complain("limits", format!("expected a map, like {{nofile: 65536}}, got {}", node.seen()));
        return BTreeMap::new();
    };
    map.iter().filter_map(|entry| rlimit(section, entry)).collect()
}

fn rlimit(section: &Section<'_>, entry: &Entry) -> Option<(Rlimit, RlimitValue)> {
    let complain = |what: String| section.complain_at(entry.at, &format!("limits.{}", entry.key), what);
    let Some(limit) = Rlimit::ALL.into_iter().find(|limit| limit.name() == entry.key) else {
        let names = Rlimit::ALL.map(Rlimit::name);
        // `NOFILE`, `LimitNOFILE` and `RLIMIT_NOFILE` are other programs' words for it.
        let bare = entry.key.to_lowercase().replace("rlimit_", "").replace("limit", "");
        let right =
            names.into_iter().find(|name| *name == bare).or_else(|| nearest(&bare, names.into_iter()));
        complain(match right {
            Some(right) => format!("no such limit: did you mean `{right}`?"),
            None => format!("no such limit: there are {}", names.join(", ")),
        });
        return None;
    };
    let value = match &entry.node.value {
        Value::Map(map) => soft_and_hard(limit, map),
        _ => one(limit, &entry.node).map(RlimitValue::both),
    };
    let Some(value) = value else {
        let what = if limit.is_bytes() { size::EXPECTED } else { "a whole number" };
        complain(format!(
            "expected {what}, `unlimited`, or a map of `soft` and `hard`, got {}",
            entry.node.seen()
        ));
        return None;
    };
    if value.soft > value.hard {
        complain(format!("{value}: what holds (`soft`) is above how far it may be raised (`hard`)"));
        return None;
    }
    Some((limit, value))
}

fn soft_and_hard(limit: Rlimit, map: &[Entry]) -> Option<RlimitValue> {
    let value = |key: &str| one(limit, &map.iter().find(|entry| entry.key == key)?.node);
    (map.len() == 2).then_some(RlimitValue { soft: value("soft")?, hard: value("hard")? })
}

fn one(limit: Rlimit, node: &Node) -> Option<u64> {
    match &node.value {
        Value::Text(text) if text == "unlimited" || text == "infinity" => Some(RlimitValue::UNLIMITED),
        Value::Text(_) if limit.is_bytes() => size::read(node.clone()),
        _ => match reread(node.clone()).value {
            Value::Whole(value) => u64::try_from(value).ok(),
            _ => None,
        },
    }
}

pub(super) fn cgroup(section: &Section<'_>) -> Option<CgroupSettings> {
    let (mut memory_max, mut parent) = (None, None);
    let found = entries(section, "cgroup", &["memory_max", "parent"])?;
    for Entry { key, at, node } in found {
        let name = format!("cgroup.{key}");
        let seen = node.seen();
        if key == "memory_max" {
            memory_max = size::read(node).filter(|bytes| *bytes >= LEAST_MEMORY);
            if memory_max.is_none() {
                let what = format!("expected {}, at least 1MiB, got {seen}", size::EXPECTED);
                section.complain_at(at, &name, what);
                return None;
            }
        } else {
            match node.value {
                Value::Text(path) if path.starts_with('/') => parent = Some(path.into()),
                _ => {
                    let what =
                        format!("expected the folder of a cgroup, like /sys/fs/cgroup/gym, got {seen}");
                    section.complain_at(at, &name, what);
                }
            }
        }
    }
    if memory_max.is_none() {
        section.complain("cgroup", "has no `memory_max`: give it, like {memory_max: 8GiB}");
    }
    Some(CgroupSettings { memory_max: memory_max?, parent })
}
