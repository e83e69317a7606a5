//! Which routes there are, and what is told of them.

use gym_worker_sdk::openenv::Mode;
use serde_json::{Value, json};

use crate::client::Server;
use crate::probe::{Log, app, router};

const CONTROL: [&str; 3] = ["/reset", "/step", "/state"];
const TASKS: [&str; 6] = [
    "/list_environments",
    "/{env_name}/splits",
    "/{env_name}/tasks",
    "/{env_name}/num_tasks",
    "/{env_name}/task",
    "/{env_name}/task_range",
];

async fn document(server: &Server) -> Value {
    serde_json::from_str(&server.get("/openapi.json").await.1).unwrap()
}

/// Every `$ref` in it.
fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(object) => {
            let own = object.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(object.values().flat_map(references)).collect()
        }
        Value::Array(array) => array.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn the_document_tells_of_the_routes_that_are_there() {
    let log = Log::new();
    let server = Server::start(router(&log, 1)).await;
    let document = document(&server).await;
    assert_eq!(document["openapi"], "3.1.0");
    let tagged = |tag: &str| -> Vec<&str> {
        let paths = document["paths"].as_object().unwrap();
        let has = |operations: &Value| {
            operations.as_object().unwrap().values().all(|one| one["tags"] == json!([tag]))
        };
        paths.iter().filter(|(_, operations)| has(operations)).map(|(path, _)| path.as_str()).collect()
    };
    assert_eq!(tagged("Task API"), TASKS);
    assert!(document["tags"].as_array().unwrap().iter().any(|tag| tag["name"] == "Task API"));
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.replace("{env_name}", "probe");
        for method in operations.as_object().unwrap().keys() {
            let status = match method.as_str() {
                "get" => server.get(&path).await.0,
                _ => server.post(&path, &json!({})).await.0,
            };
            assert!(![404, 405].contains(&status.as_u16()), "{method} {path}: {status}");
        }
    }
    for reference in references(&document) {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
    let (status, page) = server.get("/docs").await;
    assert!(status == 200 && page.contains("POST /{env_name}/task_range"), "{page}");
}

#[tokio::test]
async fn production_has_no_control_over_http() {
    let log = Log::new();
    let router = app(&log, 1).mode(Mode::Production).into_router().unwrap();
    let server = Server::start(router).await;
    let document = document(&server).await;
    for path in CONTROL {
        assert_eq!(
            (server.get(path).await.0, server.post(path, &json!({})).await.0),
            (404.try_into().unwrap(), 404.try_into().unwrap())
        );
        assert_eq!(document["paths"][path], Value::Null);
    }
    for path in ["/health", "/metadata", "/schema", "/list_environments"] {
        assert_eq!(server.get(path).await.0, 200, "{path}");
    }
    let mut socket = server.connect("/ws").await;
    assert_eq!(socket.ask(json!({"type": "reset"})).await["type"], "observation");
    socket.close().await;
    assert!(server.rpc("tools/list", json!({})).await.is_ok());
}

#[tokio::test]
async fn parameters_and_what_comes_with_an_action_reach_the_environment() {
    let log = Log::new();
    let server = Server::start(router(&log, 1)).await;
    let mut socket = server.connect("/ws").await;
    let reset = json!({"seed": 3, "colour": "red", "x": [1]});
    let seen = socket.ask(json!({"type": "reset", "data": reset})).await;
    assert_eq!(
        seen["data"]["metadata"]["params"],
        json!({"colour": "red", "x": [1]}),
        "kept, as the author says"
    );
    let seen = socket.step(json!({"what": "a", "metadata": {"by": "me"}})).await;
    assert_eq!(
        seen["data"]["metadata"]["info"],
        json!({"metadata": {"by": "me"}, "timeout_s": null, "more": {}})
    );
    let body = json!({"action": {"what": "a"}, "timeout_s": 2, "request_id": "r", "render": true});
    let seen: Value = serde_json::from_str(&server.post("/step", &body).await.1).unwrap();
    assert_eq!(seen["metadata"]["info"], json!({"metadata": {}, "timeout_s": 2.0, "more": {"render": true}}));
    for (action, kind, key) in [
        (json!({"what": "a", "x": 1}), "extra_forbidden", "x"),
        (json!({"what": "a", "metadata": 1}), "dict_type", "metadata"),
        (json!({}), "missing", "what"),
    ] {
        let frame = socket.step(action).await;
        let error = &frame["data"]["errors"][0];
        assert_eq!((&error["type"], &error["loc"]), (&json!(kind), &json!([key])), "{frame}");
    }
}
