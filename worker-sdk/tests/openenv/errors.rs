//! What fails, and how that is told.

use gym_worker_sdk::openenv::{Environment, EnvironmentApp};
use gym_worker_sdk::{Failure, Settings};
use serde_json::json;

use crate::client::Server;
use crate::probe::{Log, Probe, router};

#[tokio::test]
async fn errors_and_panics_are_told_and_the_session_goes_on() {
    let log = Log::new();
    let server = Server::start(router(&log, 1)).await;
    let mut socket = server.connect("/ws").await;
    for (what, words) in [("fail", "it failed"), ("panic", "the handler panicked: it panicked")] {
        let frame = socket.step(json!({"what": what})).await;
        assert_eq!(frame, json!({"type": "error", "data": {"message": words, "code": "EXECUTION_ERROR"}}));
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "does", "arguments": {"what": what}}});
        let reply = socket.ask(json!({"type": "mcp", "data": call})).await;
        let error =
            json!({"code": -32603, "message": format!("Error calling tool 'does': {words}"), "data": null});
        assert_eq!(reply["data"]["error"], error);
        let (status, text) = server.post("/step", &json!({"action": {"what": what}})).await;
        assert_eq!((status.as_u16(), text.as_str()), (500, "Internal Server Error"));
    }
    let seen = socket.step(json!({"what": "ok"})).await;
    assert_eq!(seen["data"]["observation"]["asked"], json!(["fail", "fail", "panic", "panic", "ok"]));
    assert_eq!(log.open(), 1);
    // A close that fails is no reason to keep the place.
    socket.step(json!({"what": "close badly"})).await;
    socket.close().await;
    assert_eq!(log.open(), 0);
    server.connect("/ws").await.close().await;
}

#[tokio::test]
async fn an_environment_that_cannot_be_made_takes_no_place() {
    let fails =
        EnvironmentApp::new(|| Err::<Probe, _>(Failure::fault("out of boxes"))).max_concurrent_envs(1);
    let panics = EnvironmentApp::new(|| -> Probe { panic!("out of boxes") }).max_concurrent_envs(1);
    for app in [fails, panics] {
        let server = Server::start(app.settings(Settings::new("x")).into_router().unwrap()).await;
        for _ in 0..3 {
            let mut socket = server.connect("/ws").await;
            let error = json!({
                "message": "Environment factory 'Probe' failed to create instance.", "code": "FACTORY_ERROR",
                "factory_name": "Probe",
            });
            assert_eq!(socket.next().await.unwrap()["data"], error);
            assert_eq!(socket.next().await, Err(1000));
            let refused = server.rpc("openenv/session/create", json!({})).await.unwrap_err();
            assert_eq!(refused["data"], json!({"factory_name": "Probe"}));
        }
        assert_eq!(server.get("/health").await.0, 200);
        for (path, body) in [
            ("/reset", json!({})),
            ("/mcp", json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "tells"}})),
        ] {
            assert_eq!(
                server.post(path, &body).await,
                (reqwest::StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error".to_owned())
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_session_or_no_websocket_is_told() {
    let log = Log::new();
    let server = Server::start(router(&log, 2)).await;
    assert_eq!(server.refused("/nothing").await, "HTTP/1.1 403 Forbidden");
    assert_eq!(server.refused("/health").await, "HTTP/1.1 403 Forbidden");
    assert_eq!(server.get("/ws").await.0, 404);
    let mut socket = server.connect("/ws?session_id=nope&x=1").await;
    let error = json!({"message": "Unknown session_id: nope", "code": "SESSION_ERROR"});
    assert_eq!(socket.next().await.unwrap()["data"], error);
    assert_eq!(socket.next().await, Err(1000));
    // An ID is whatever is not empty, and is decoded.
    let mut socket = server.connect("/ws?session_id=a%20b").await;
    assert_eq!(socket.next().await.unwrap()["data"]["message"], "Unknown session_id: a b");
    assert_eq!(log.made(), 0);
}

#[test]
fn what_cannot_be_served_is_told_before_it_is() {
    let log = Log::new();
    let probe = || crate::probe::app(&log, 0).into_router().map(drop).unwrap_err().to_string();
    assert!(probe().contains("max_concurrent_envs must be above 0"), "{}", probe());
    assert_eq!(Probe::tools().names().collect::<Vec<_>>(), ["does", "tells"]);
    let reserved = EnvironmentApp::new(reserved::Reserved::default).settings(Settings::new("x"));
    let told = reserved.into_router().map(drop).unwrap_err().to_string();
    assert!(told.contains("step is no name for a tool"), "{told}");
    let alone =
        EnvironmentApp::new(reserved::Alone::default).settings(Settings::new("x")).max_concurrent_envs(2);
    let told = alone.into_router().map(drop).unwrap_err().to_string();
    assert!(told.contains("several sessions at a time"), "{told}");
}

mod reserved {
    use gym_worker_sdk::openenv::{Environment, Observed, Reset, State, StepInfo};
    use gym_worker_sdk::tools::Tools;
    use gym_worker_sdk::{Empty, Result};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Act {}

    #[derive(Serialize, JsonSchema)]
    pub(super) struct See {}

    macro_rules! environment {
        ($name:ident, $($item:item)?) => {
            #[derive(Default)]
            pub(super) struct $name;

            impl Environment for $name {
                type Action = Act;
                type Observation = See;
                type State = ();
                type Params = Empty;

                async fn reset(&mut self, _: Reset) -> Result<Observed<See>> {
                    Ok(Observed::new(See {}))
                }

                async fn step(&mut self, _: Act, _: StepInfo) -> Result<Observed<See>> {
                    Ok(Observed::new(See {}))
                }

                async fn state(&mut self) -> Result<State<()>> {
                    Ok(State::default())
                }

                $($item)?
            }
        };
    }

    async fn step(_: &mut Reserved) -> Result<()> {
        Ok(())
    }

    environment!(
        Reserved,
        fn tools() -> Tools<Self> {
            Tools::new().add("step", "", step)
        }
    );
    environment!(Alone, const SUPPORTS_CONCURRENT_SESSIONS: bool = false;);
}
