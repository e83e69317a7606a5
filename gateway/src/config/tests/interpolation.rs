//! Interpolation, against what OmegaConf 2.3.1 makes of the same texts.

use super::Folder;
use crate::config::Launch;

const TREE: &str = r"
a: {b: {c: 1, r: '${.c}', rr: '${..u}', s: 'x${a.b.c}y'}, u: 7, l: [10, 20, '${.1}']}
k: u
yes_please: on
";

fn resolve(expression: &str) -> Result<serde_json::Value, String> {
    let folder = Folder::new();
    let text = format!(
        "{TREE}\nweb: {{http_servers: {{web: {{port: 0, command: [./server], config: {{x: {expression}}}}}}}}}\n"
    );
    match folder.load_with(&[&text], &[("FIVE", "5"), ("EMPTY", "")]) {
        Ok(config) => match &config.servers[0].launch {
            Launch::Command { server_config, .. } => Ok(server_config["x"].clone()),
            other => panic!("{other:?}"),
        },
        Err(errors) => Err(errors.to_string()),
    }
}

#[test]
fn values_resolve_as_omegaconf_resolves_them() {
    let table = [
        ("${a.b.c}", serde_json::json!(1)),
        ("${ a.u }", serde_json::json!(7)),
        ("${a.b.r}", serde_json::json!(1)),
        ("${a.b.rr}", serde_json::json!(7)),
        ("${a.b.s}", serde_json::json!("x1y")),
        ("${a.l[1]}", serde_json::json!(20)),
        ("${a.l.1}", serde_json::json!(20)),
        ("${a.l}", serde_json::json!([10, 20, 20])),
        ("${a.${k}}", serde_json::json!(7)),
        ("${yes_please}-${oc.env:NOPE,null}", serde_json::json!("True-None")),
        ("${oc.env:FIVE}", serde_json::json!("5")),
        ("${oc.env:EMPTY,full}", serde_json::json!("")),
        ("${oc.env:NOPE,8000}", serde_json::json!("8000")),
        ("${oc.env:NOPE,null}", serde_json::json!(null)),
        ("${oc.env:NOPE,\"a b\"}", serde_json::json!("a b")),
        ("${oc.env:NOPE,http://x:1/y}", serde_json::json!("http://x:1/y")),
        ("${oc.env:NOPE,${oc.env:FIVE}}", serde_json::json!("5")),
        (r"\${a}", serde_json::json!("${a}")),
        (r"a\\${a.u}", serde_json::json!(r"a\7")),
        (r"\\\${a}", serde_json::json!(r"\${a}")),
        (r"c:\d ${a.u}", serde_json::json!(r"c:\d 7")),
        ("http://h:${a.u}/", serde_json::json!("http://h:7/")),
    ];
    for (expression, expected) in table {
        assert_eq!(resolve(&format!("'{expression}'")), Ok(expected), "{expression}");
    }
}

#[test]
fn what_does_not_resolve_says_why() {
    let table = [
        ("${a.nope}", "`${a.nope}` names `a.nope`, which does not exist"),
        ("${........up}", "leads above the top of the file"),
        (
            "${oc.env:NOPE}",
            "the environment variable NOPE is not set: set it, or write `${oc.env:NOPE,default}`",
        ),
        ("${oc.decode:1}", "the gateway does not know the resolver `oc.decode`"),
        ("${a", "`${` without its `}`"),
        ("x${a}", "`${a}` stands inside of a text but is a map of 3 keys"),
        (
            "${.x}",
            "interpolations in a circle: web.http_servers.web.config.x → web.http_servers.web.config.x",
        ),
        ("${web.http_servers.web}", "interpolations that contain themselves"),
    ];
    for (expression, expected) in table {
        let seen = resolve(&format!("'{expression}'")).unwrap_err();
        assert!(seen.contains(expected), "{expression}: {seen}");
        assert!(seen.contains("a.yaml:6: web.http_servers.web.config: "), "{expression}: {seen}");
    }
}

#[test]
fn a_number_may_come_out_of_the_environment() {
    let folder = Folder::new();
    let text = "
counter:
  resources_servers:
    counter: {entrypoint: app.py, port: '${oc.env:PORT,8000}', num_workers: '${n}'}
n: ${oc.env:WORKERS}
gateway: {access_log: '${oc.env:LOG,no}', shutdown_timeout_seconds: '${oc.env:WAIT}', servers: '${mine}'}
mine: {counter: {queue_timeout_seconds: '${n}'}}
";
    let config = folder.load_with(&[text], &[("WORKERS", "4"), ("WAIT", "1.5")]).unwrap();
    let server = &config.servers[0];
    assert_eq!((server.listen.address.port(), server.num_workers), (8000, 4));
    assert!(!config.gateway.access_log);
    assert_eq!(config.gateway.shutdown_timeout.as_secs_f64(), 1.5);
    assert_eq!(server.settings.queue_timeout.as_secs(), 4);
    let wrong = folder.load_with(&[text], &[("WORKERS", "many"), ("WAIT", "1")]).unwrap_err().to_string();
    assert!(wrong.contains("num_workers: expected a whole number, got the text \"many\""), "{wrong}");
}

#[test]
fn maps_that_hold_each_other_do_not_fill_the_memory() {
    let mut text = "web: {http_servers: {web: {port: 0, command: [./server], config: '${a0}'}}}\n".to_owned();
    for level in 0..60 {
        let next = level + 1;
        text += &format!("a{level}: {{x: '${{a{next}}}', y: '${{a{next}}}'}}\n");
    }
    let errors = Folder::new().errors(&[&(text + "a60: 1\n")]);
    assert!(
        errors[0].contains("web.http_servers.web.config: interpolations that contain themselves"),
        "{errors:?}"
    );
}
