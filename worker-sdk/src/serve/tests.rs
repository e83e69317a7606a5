use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

use super::*;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n";

#[tokio::test]
async fn requests_in_flight_finish_after_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let address = Address::Unix(folder.path().join("s"));
    let (entered, mut enters) = tokio::sync::mpsc::channel::<()>(1);
    let (finish, finished) = oneshot::channel::<()>();
    let finished = std::sync::Arc::new(tokio::sync::Mutex::new(Some(finished)));
    let handler = move || {
        let (entered, finished) = (entered.clone(), finished.clone());
        async move {
            entered.send(()).await.unwrap();
            finished.lock().await.take().unwrap().await.unwrap();
            "done"
        }
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let router = Router::new().route("/", get(handler));
    let listening = address.clone();
    let server =
        tokio::spawn(async move { listen(&listening, router, async move { stopped.await.unwrap() }).await });
    let path = folder.path().join("s");
    let mut client = loop {
        match UnixStream::connect(&path).await {
            Ok(client) => break client,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    client.write_all(REQUEST).await.unwrap();
    enters.recv().await.unwrap();
    stop.send(()).unwrap();
    while UnixStream::connect(&path).await.is_ok() {
        tokio::task::yield_now().await;
    }
    finish.send(()).unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200") && reply.ends_with("done"), "{reply}");
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced_and_a_living_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    listen(&Address::Unix(path.clone()), Router::new(), std::future::ready(())).await.unwrap();

    std::fs::remove_file(&path).unwrap();
    let _living = UnixListener::bind(&path).unwrap();
    let refused = listen(&Address::Unix(path.clone()), Router::new(), std::future::ready(())).await;
    assert!(refused.unwrap_err().to_string().starts_with(&format!("cannot listen on {}", path.display())));
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    std::fs::write(&path, "mine").unwrap();
    let refused = listen(&Address::Unix(path.clone()), Router::new(), std::future::ready(())).await;
    assert!(refused.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}
