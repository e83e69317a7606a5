//! What happens to headers on their way.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Answer, Setup};

/// The values that the worker got under a name.
fn received(answer: &Answer, name: &str) -> Vec<String> {
    let json = answer.json();
    let headers = json["headers"].as_array().expect("an echo");
    let named =
        headers.iter().filter(|pair| pair[0].as_str().is_some_and(|key| key.eq_ignore_ascii_case(name)));
    named.map(|pair| pair[1].as_str().expect("text").to_owned()).collect()
}

#[tokio::test]
async fn hop_by_hop_headers_end_at_the_gateway() {
    let gateway = Setup::resources().start().await;
    let call = gateway.post("/echo").header("connection", "keep-alive, x-mine").header("x-mine", "1");
    let call = call
        .header("keep-alive", "timeout=9")
        .header("proxy-connection", "keep-alive")
        .header("te", "trailers");
    let answer = call.header("x-kept", "2").send().await.assert(200);
    for name in ["x-mine", "keep-alive", "proxy-connection", "te", "upgrade"] {
        assert_eq!(received(&answer, name), Vec::<String>::new(), "{name}");
    }
    assert_eq!(received(&answer, "x-kept"), ["2"]);

    let fault = "header=Connection:x-theirs;header=X-Theirs:1;header=Keep-Alive:timeout=1;header=X-Kept:2";
    let answer = gateway.get("/echo").fault(fault).send().await.assert(200);
    assert_eq!([answer.text("x-theirs"), answer.text("keep-alive"), answer.text("x-kept")], ["", "", "2"]);
    gateway.finish().await;
}

#[tokio::test]
async fn the_worker_is_told_who_asks() {
    let gateway = Setup::resources().start().await;
    let answer = gateway.get("/echo").header("host", "gym.example:8000").send().await.assert(200);
    assert_eq!(received(&answer, "x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(received(&answer, "x-forwarded-proto"), ["http"]);
    assert_eq!(received(&answer, "x-forwarded-host"), ["gym.example:8000"]);
    assert_eq!(received(&answer, "host"), ["gym.example:8000"]);
    let call =
        gateway.get("/echo").header("x-forwarded-for", "10.1.1.1").header("x-forwarded-proto", "https");
    let answer = call.header("x-forwarded-host", "outer").send().await.assert(200);
    assert_eq!(received(&answer, "x-forwarded-for"), ["10.1.1.1, 127.0.0.1"]);
    assert_eq!(received(&answer, "x-forwarded-proto"), ["https"]);
    assert_eq!(received(&answer, "x-forwarded-host"), ["outer"]);
    gateway.finish().await;
}

#[tokio::test]
async fn values_pass_byte_for_byte_and_in_order() {
    let gateway = Setup::resources().start().await;
    let call =
        gateway.get("/echo").header("x-bytes", b"caf\xe9 \xff").header("x-many", "1").header("x-many", "2");
    let answer = call.send().await.assert(200);
    assert_eq!(received(&answer, "x-bytes"), ["caf\u{e9} \u{ff}"]);
    assert_eq!(received(&answer, "x-many"), ["1", "2"]);

    let fault = "header=X-Many:1;header=X-Many:2;header=Set-Cookie:other=1;header=Location:/elsewhere?a=b";
    let answer = gateway.get("/echo").session("s").fault(fault).send().await.assert(200);
    let many: Vec<_> = answer.headers.get_all("x-many").iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(many, ["1", "2"]);
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 2, "the session's and another");
    assert_eq!(answer.text("location"), "/elsewhere?a=b");
    gateway.finish().await;
}

#[tokio::test]
async fn the_target_passes_as_it_came() {
    let gateway = Setup::resources().start().await;
    for target in ["/echo", "/echo/%2F/a;b=c?d=%20&e=[]&&f", "/echo//double/../up/.", "/echo?"] {
        let answer = gateway.get(target).send().await.assert(200);
        assert_eq!(answer.json()["target"], target);
    }
    gateway.finish().await;
}
