use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// A worker that answers each path with what `replies` has for it (else 404), and notes what it was asked.
async fn worker(replies: &'static [(&'static str, &'static str)]) -> (Address, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let path = String::from_utf8(request).unwrap().split(' ').nth(1).unwrap().to_owned();
            let reply = replies.iter().find(|(of, _)| *of == path);
            notes.lock().unwrap().push(path);
            let reply =
                reply.map_or("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", |(_, reply)| reply);
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    (address, asked)
}

fn not_ready(probed: Probed) -> String {
    match probed {
        Probed::NotReady(seen) => seen,
        other => panic!("{other:?}"),
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 2\r\n\r\nok";
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn the_first_path_that_the_worker_has_counts() {
    for (path, asked_for) in PATHS.iter().zip(1..) {
        let replies: &'static [(&str, &str)] = match *path {
            "/readyz" => &[("/readyz", OK), ("/", UNAVAILABLE)],
            "/healthz" => &[
                ("/readyz", "HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n"),
                ("/healthz", OK),
                ("/", UNAVAILABLE),
            ],
            "/health" => &[("/health", OK), ("/", UNAVAILABLE)],
            _ => &[("/", OK)],
        };
        let (address, asked) = worker(replies).await;
        let Probed::Ready(headers) = probe(&address).await else { panic!("{path}: not ready") };
        assert_eq!(headers["set-cookie"], "a=b");
        assert_eq!(*asked.lock().unwrap(), PATHS[..asked_for]);
    }
}

#[tokio::test]
async fn a_server_without_any_of_the_paths_is_ready_when_it_answers() {
    let (address, _) = worker(&[]).await;
    assert!(matches!(probe(&address).await, Probed::Ready(_)));
    let (address, _) =
        worker(&[("/", "HTTP/1.1 302 Found\r\nlocation: /docs\r\ncontent-length: 0\r\n\r\n")]).await;
    assert!(matches!(probe(&address).await, Probed::Ready(_)));
}

#[tokio::test]
async fn a_worker_that_says_no_is_not_ready_whatever_its_other_paths_say() {
    let (address, asked) = worker(&[("/readyz", UNAVAILABLE), ("/healthz", OK), ("/", OK)]).await;
    assert_eq!(not_ready(probe(&address).await), "GET /readyz was answered with 503 Service Unavailable");
    assert_eq!(*asked.lock().unwrap(), ["/readyz"]);
    let (address, _) = worker(&[("/", UNAVAILABLE)]).await;
    assert_eq!(not_ready(probe(&address).await), "GET / was answered with 503 Service Unavailable");
    let (address, _) = worker(&[("/readyz", "HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n")]).await;
    assert!(not_ready(probe(&address).await).contains("401"));
}

#[tokio::test]
async fn nonsense_and_broken_connections_are_not_readiness() {
    for reply in ["I am no web server\r\n\r\n", "", "HTTP/1.1 2"] {
        let replies: &'static [(&str, &str)] = vec![("/readyz", reply)].leak();
        let (address, _) = worker(replies).await;
        assert!(not_ready(probe(&address).await).starts_with("GET /readyz failed: "), "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_never_answers_is_given_up_on_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    assert_eq!(not_ready(probe(&address).await), "GET /readyz was not answered within 2 s");
}

#[tokio::test]
async fn nobody_listening_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let socket = Address::Unix(dir.path().join("s"));
    assert!(matches!(probe(&socket).await, Probed::NotListening));
    assert!(!is_listening(&socket).await);
    // Left behind by a process that is gone.
    drop(std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap());
    assert!(!is_listening(&socket).await);
}
