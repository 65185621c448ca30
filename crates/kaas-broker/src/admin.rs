//! The admin port: `/healthz`, `/readyz`, `/metrics` and `/assignment` over HTTP/1. It shares nothing with the way of a
//! Kafka request but the runtime, and what anyone on it can take is bounded.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, warn};

use crate::metrics::{Metrics, Sources};

/// Connections served at one time; further ones wait.
const MAX_CONNECTIONS: usize = 32;
/// The largest request, headers and all.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// How long a request may take to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may last, whatever is done with it.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);
/// How long accepting pauses after a failure that is not the connection's own, such as no descriptor left.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
/// How long answers under way may take when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// What the pages show.
pub trait Pages: Send + Sync + 'static {
    /// Whether clients are served; if not, why not yet or no longer.
    fn ready(&self) -> Result<(), String>;

    /// The assignment that is applied, as JSON; `None` before the first.
    fn assignment(&self) -> Option<String>;

    fn metrics(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;
}

/// The page of metrics, made where it holds nobody up.
pub async fn metrics_page(metrics: Arc<Metrics>, sources: &dyn Sources) -> String {
    let snapshot = sources.snapshot().await;
    let page = tokio::task::spawn_blocking(move || metrics.page(&snapshot));
    page.await.expect("making the page does not panic")
}

/// A running admin port.
pub struct AdminServer {
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl AdminServer {
    /// Serves on the current runtime.
    pub fn start(listener: TcpListener, pages: Arc<dyn Pages>) -> AdminServer {
        let (stopping, stopped) = watch::channel(false);
        AdminServer {
            stopping,
            task: tokio::spawn(accept(listener, pages, stopped)),
        }
    }

    /// Accepts no more, lets answers under way go out, and closes what is left.
    pub async fn stop(self) {
        self.stopping.send_replace(true);
        if let Err(error) = self.task.await {
            warn!(%error, "the admin port ended badly");
        }
    }
}

async fn accept(listener: TcpListener, pages: Arc<dyn Pages>, mut stopped: watch::Receiver<bool>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => break,
            Some(_) = connections.join_next() => continue,
            accepted = next(&listener, &slots) => accepted,
        };
        match accepted {
            Ok((stream, slot)) => {
                let (pages, stopped) = (pages.clone(), stopped.clone());
                connections.spawn(async move {
                    serve(stream, pages, stopped).await;
                    drop(slot);
                });
            }
            Err(error) => {
                warn!(%error, "the admin port cannot accept a connection");
                tokio::time::sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_TIMEOUT, all_ended).await.is_err() {
        connections.shutdown().await;
    }
}

async fn next(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = slots
        .clone()
        .acquire_owned()
        .await
        .expect("the semaphore is never closed");
    let (stream, _) = listener.accept().await?;
    Ok((stream, slot))
}

async fn serve(stream: TcpStream, pages: Arc<dyn Pages>, mut stopped: watch::Receiver<bool>) {
    let service = service_fn(move |request| {
        let pages = pages.clone();
        async move { Ok::<_, Infallible>(answer(&*pages, &request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(MAX_REQUEST_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let served = async {
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => connection.as_mut().graceful_shutdown(),
            outcome = connection.as_mut() => return outcome,
        }
        connection.as_mut().await
    };
    match tokio::time::timeout(CONNECTION_TIMEOUT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection to the admin port failed"),
        Err(_) => debug!("a connection to the admin port lasted too long"),
    }
}

async fn answer(pages: &dyn Pages, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    let path = request.uri().path();
    if !["/healthz", "/readyz", "/metrics", "/assignment"].contains(&path) {
        let text = "there are /healthz, /readyz, /metrics and /assignment\n".to_owned();
        return page(StatusCode::NOT_FOUND, TEXT, text);
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = page(
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "only GET and HEAD\n".to_owned(),
        );
        refused
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match path {
        "/healthz" => page(StatusCode::OK, TEXT, "ok\n".to_owned()),
        "/readyz" => match pages.ready() {
            Ok(()) => page(StatusCode::OK, TEXT, "ready\n".to_owned()),
            Err(reason) => page(
                StatusCode::SERVICE_UNAVAILABLE,
                TEXT,
                format!("not ready: {reason}\n"),
            ),
        },
        "/metrics" => page(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            pages.metrics().await,
        ),
        _ => match pages.assignment() {
            Some(json) => page(StatusCode::OK, "application/json", json),
            None => page(
                StatusCode::SERVICE_UNAVAILABLE,
                TEXT,
                "no assignment is applied yet\n".to_owned(),
            ),
        },
    }
}

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[derive(Default)]
    struct Fixed {
        ready: AtomicBool,
    }

    impl Pages for Fixed {
        fn ready(&self) -> Result<(), String> {
            if self.ready.load(Ordering::SeqCst) {
                Ok(())
            } else {
                Err("no grant yet".to_owned())
            }
        }

        fn assignment(&self) -> Option<String> {
            self.ready.load(Ordering::SeqCst).then(|| "{}".to_owned())
        }

        fn metrics(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
            Box::pin(async { "up 1\n".to_owned() })
        }
    }

    async fn start() -> (AdminServer, SocketAddr, Arc<Fixed>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pages = Arc::new(Fixed::default());
        (AdminServer::start(listener, pages.clone()), address, pages)
    }

    /// Status, and all that came back until the server closed.
    async fn send(address: SocketAddr, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let status = text
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        (status, text)
    }

    async fn get(address: SocketAddr, path: &str) -> (u16, String) {
        send(
            address,
            &format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        )
        .await
    }

    #[tokio::test]
    async fn a_broker_is_healthy_at_once_and_ready_when_it_serves() {
        let (_server, address, pages) = start().await;
        assert_eq!(get(address, "/healthz").await.0, 200);
        let (status, text) = get(address, "/readyz").await;
        assert_eq!(status, 503);
        assert!(
            text.ends_with("\r\n\r\nnot ready: no grant yet\n"),
            "{text}"
        );
        assert_eq!(get(address, "/assignment").await.0, 503);
        pages.ready.store(true, Ordering::SeqCst);
        assert_eq!(get(address, "/readyz?verbose").await.0, 200);
        let (status, text) = get(address, "/assignment").await;
        assert!(
            status == 200
                && text.contains("content-type: application/json")
                && text.ends_with("{}"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn metrics_are_prometheus_text() {
        let (_server, address, _) = start().await;
        let (status, text) = get(address, "/metrics").await;
        assert_eq!(status, 200);
        assert!(
            text.contains("content-type: text/plain; version=0.0.4; charset=utf-8")
                && text.ends_with("up 1\n")
        );
    }

    #[tokio::test]
    async fn other_paths_are_not_found_and_other_methods_not_allowed() {
        let (_server, address, _) = start().await;
        assert_eq!(get(address, "/").await.0, 404);
        assert_eq!(get(address, "/metrics/").await.0, 404);
        let post = "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
        let (status, text) = send(address, post).await;
        assert!(status == 405 && text.contains("allow: GET, HEAD"), "{text}");
        let head = "HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let (status, text) = send(address, head).await;
        assert!(status == 200 && text.ends_with("\r\n\r\n"), "{text}");
    }

    #[tokio::test]
    async fn a_request_that_is_too_large_or_no_http_is_refused_and_the_next_served() {
        let (_server, address, _) = start().await;
        let large = format!(
            "GET /healthz HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "x".repeat(2 * MAX_REQUEST_BYTES)
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may close before it has read all of it.
        let _ = stream.write_all(large.as_bytes()).await;
        let mut head = [0; 12];
        if stream.read_exact(&mut head).await.is_ok() {
            assert_eq!(&head, b"HTTP/1.1 431");
        }
        let headers = "X: y\r\n".repeat(MAX_HEADERS + 1);
        let (status, _) = send(address, &format!("GET /healthz HTTP/1.1\r\n{headers}\r\n")).await;
        assert_eq!(status, 431);
        let (status, _) = send(address, "\0\0\0\x0c\0\x12\0\0 kafka\r\n\r\n").await;
        assert_eq!(status, 400);
        assert_eq!(get(address, "/healthz").await.0, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_asks_for_nothing_is_closed() {
        let (_server, address, _) = start().await;
        let (_, text) = send(address, "GET /healthz HTTP/1.1\r\nHo").await;
        assert!(
            text.is_empty() || text.starts_with("HTTP/1.1 408"),
            "{text}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn more_connections_than_there_are_places_wait_and_are_served_then() {
        let (_server, address, _) = start().await;
        let mut idle = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(get(address, "/healthz").await.0, 200);
    }

    #[tokio::test]
    async fn stopping_ends_idle_connections_and_frees_the_port() {
        let (server, address, _) = start().await;
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let mut head = [0; 15];
        idle.read_exact(&mut head).await.unwrap();
        server.stop().await;
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.unwrap();
        TcpListener::bind(address).await.unwrap();
    }
}
