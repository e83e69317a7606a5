//! The reference says what the reader does.

use super::{Folder, counter};
use crate::config::{Place, reference, reference_markdown};

#[test]
fn documented_defaults_are_the_real_ones() {
    let folder = Folder::new();
    let text = |gateway: &str, server: &str, block: &str| {
        counter(&format!("port: 8000\n{block}"))
            + &format!("gateway: {{{gateway}, servers: {{counter: {{{server}}}}}}}\n")
    };
    let plain = folder.load(&[&text("access_log: false", "", "")]).unwrap();
    let mut compared = 0;
    for doc in reference() {
        let line = format!("{}: {}", doc.key, doc.default);
        let written = doc.default.starts_with(|c: char| c.is_ascii_digit())
            || ["true", "false", "[]", "{}", "kill"].contains(&doc.default);
        if !written || doc.key == "servers" {
            continue;
        }
        let text = match doc.places {
            [Place::Gateway] => text(&line, "", ""),
            places if places.contains(&Place::Server) => text("access_log: false", &line, ""),
            places if places.contains(&Place::Gym) => text("access_log: false", "", &line),
            _ => continue,
        };
        let config = folder.load(&[&text]).unwrap();
        assert_eq!(config.gateway, plain.gateway, "{}", doc.key);
        assert_eq!(config.servers[0].settings, plain.servers[0].settings, "{}", doc.key);
        assert_eq!(config.servers[0].listen, plain.servers[0].listen, "{}", doc.key);
        assert_eq!(config.servers[0].num_workers, plain.servers[0].num_workers, "{}", doc.key);
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn every_documented_key_is_read() {
    // A wrong value is noticed only by a reader: a key that nothing reads would pass.
    for doc in reference() {
        let wrong = "{wrong: [1]}";
        let folder = Folder::new();
        let text = match doc.places[0] {
            Place::Gateway => counter("port: 8000") + &format!("gateway: {{{}: {wrong}}}\n", doc.key),
            Place::Server => {
                counter("port: 8000")
                    + &format!("gateway: {{servers: {{counter: {{{}: {wrong}}}}}}}\n", doc.key)
            }
            Place::Gym if ["port", "entrypoint"].contains(&doc.key) => {
                format!(
                    "counter: {{resources_servers: {{counter: {{{}: {wrong}, {}}}}}}}\n",
                    doc.key,
                    if doc.key == "port" { "entrypoint: app.py" } else { "port: 1" }
                )
            }
            Place::Gym => counter(&format!("port: 8000\n{}: {wrong}", doc.key)),
            // `config` takes any map.
            Place::Own => {
                let wrong = if doc.key == "config" { "7" } else { wrong };
                format!(
                    "web: {{http_servers: {{web: {{port: 1, command: [./server], {}: {wrong}}}}}}}\n",
                    doc.key
                )
            }
        };
        let errors = folder.errors(&[&text]);
        assert!(errors.iter().any(|error| error.contains(doc.key)), "{}: {errors:?}", doc.key);
    }
}

#[test]
fn the_reference_has_a_row_for_every_key_and_place() {
    let markdown = reference_markdown();
    let rows = markdown.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, reference().iter().map(|doc| doc.places.len()).sum::<usize>());
}
