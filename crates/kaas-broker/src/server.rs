//! The listening socket, the connections that came in through it, and what they share.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fnv::FnvHashMap;
use kaas_wire::ErrorCode;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use crate::clock::Clock;
use crate::connection::answers::Answers;
use crate::connection::quota::{Quota, QuotaKind};
use crate::connection::{Connection, ConnectionInfo, Service};

/// How often connections are looked at for having been idle too long, at most.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// How long accepting pauses when the process has no descriptor left and no connection closes meanwhile.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// While requests wait for memory, one that holds some and has sent nothing for this long is given up.
const STALLED_MS: u64 = 10_000;

/// At most one complaint about what clients send is logged in this time.
const COMPLAINT_INTERVAL_MS: u64 = 1_000;

/// Connections that may wait to be accepted, as far as the system allows. After a restart all clients come at once, and
/// one that finds no room tries again only a second later.
const BACKLOG: i32 = 4_096;

/// Where clients are told to connect to by those that came in here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    pub host: String,
    pub port: u16,
}

/// A socket that is bound but accepts nothing yet: who connects waits.
pub struct Bound {
    socket: TcpListener,
    local: SocketAddr,
    listener: Arc<Listener>,
}

impl Bound {
    /// Binds `HOST:PORT`; port 0 takes a free one. Without `advertised`, clients are told the host of `address` and the
    /// port that was bound; port 0 in it stands for the bound one too.
    pub async fn bind(address: &str, advertised: Option<(&str, u16)>) -> io::Result<Bound> {
        let socket = TcpListener::bind(address).await?;
        // To listen again changes how many may wait; the library's own number is 128.
        rustix::net::listen(&socket, BACKLOG)?;
        let local = socket.local_addr()?;
        let (host, port) = advertised.unwrap_or_else(|| {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            (host.trim_start_matches('[').trim_end_matches(']'), 0)
        });
        let listener = Arc::new(Listener {
            host: host.to_owned(),
            port: if port == 0 { local.port() } else { port },
        });
        Ok(Bound {
            socket,
            local,
            listener,
        })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub fn listener(&self) -> &Arc<Listener> {
        &self.listener
    }

    /// Accepts from now on.
    pub fn serve<S: Service>(
        self,
        service: Arc<S>,
        limits: Limits,
        clock: Clock,
        meter: Arc<dyn Meter>,
    ) -> Server {
        let shared = Arc::new(Shared::new(limits, clock, meter));
        let (stop_accepting, stopped) = watch::channel(false);
        info!(address = %self.local, host = %self.listener.host, port = self.listener.port, "accepting connections");
        let local = self.local;
        tokio::spawn(accept(self, service, shared.clone(), stopped));
        tokio::spawn(sweep(Arc::downgrade(&shared)));
        Server {
            shared,
            local,
            stop_accepting,
        }
    }
}

/// A server that accepts. Dropped without `stop`, it stops accepting; connections go on.
pub struct Server {
    shared: Arc<Shared>,
    local: SocketAddr,
    stop_accepting: watch::Sender<bool>,
}

impl Server {
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub fn connections(&self) -> usize {
        self.shared.registry.lock().connections.len()
    }

    /// Closes the listening socket. Connections that are open are served on.
    pub fn stop_accepting(&self) {
        self.stop_accepting.send_replace(true);
    }

    /// Takes no more requests, lets those that were taken be answered, and closes every connection when its answers
    /// are out, all of them when `grace` has passed.
    pub async fn stop(&self, grace: Duration) {
        self.stop_accepting();
        for answers in self.shared.all() {
            answers.stop();
        }
        if tokio::time::timeout(grace, self.shared.all_closed())
            .await
            .is_ok()
        {
            return;
        }
        let left = self.shared.all();
        warn!(
            connections = left.len(),
            "closing connections whose requests are not answered in time"
        );
        for answers in left {
            answers.kill();
        }
        self.shared.all_closed().await;
    }
}

/// Bounds of a server. Those on requests count from the first byte to the answer.
#[derive(Clone, Debug)]
pub struct Limits {
    pub frame: usize,
    pub requests_in_flight: usize,
    pub requests_in_flight_per_connection: usize,
    pub request_memory: usize,
    pub request_memory_per_connection: usize,
    pub request_memory_per_request: usize,
    pub response_memory_per_connection: usize,
    /// `None`: connections may be idle for ever.
    pub idle_ms: Option<u64>,
}

impl Default for Limits {
    fn default() -> Limits {
        const MIB: usize = 1024 * 1024;
        Limits {
            frame: 100 * MIB,
            requests_in_flight: 500,
            requests_in_flight_per_connection: 128,
            request_memory: 1024 * MIB,
            request_memory_per_connection: 128 * MIB,
            request_memory_per_request: 64 * MIB,
            response_memory_per_connection: 16 * MIB,
            idle_ms: Some(600_000),
        }
    }
}

/// Who counts what the server does.
pub trait Meter: Send + Sync + 'static {
    fn connection_opened(&self) {}
    fn connection_closed(&self) {}
    /// Closed on being accepted: the address has too many already.
    fn connection_refused(&self) {}
    /// Closed for what it sent.
    fn protocol_error(&self) {}
    /// An error code that came `count` times in an answer.
    fn error(&self, _api_key: i16, _code: ErrorCode, _count: u64) {}
    /// `response_bytes` is 0 if no answer was sent.
    fn answered(
        &self,
        api_key: i16,
        version: i16,
        took_us: u64,
        request_bytes: usize,
        response_bytes: usize,
    );
}

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) meter: Arc<dyn Meter>,
    pub(crate) request_bytes: Quota,
    pub(crate) requests: Quota,
    /// The connection that may take memory although none is left, so that at least one request always completes.
    pub(crate) overdraft: AtomicU64,
    registry: Mutex<Registry>,
    closed: Notify,
    complained_ms: AtomicU64,
    complaints: AtomicU64,
}

#[derive(Default)]
struct Registry {
    last_id: u64,
    connections: FnvHashMap<u64, Arc<Answers>>,
    by_address: FnvHashMap<IpAddr, usize>,
}

impl Shared {
    fn new(limits: Limits, clock: Clock, meter: Arc<dyn Meter>) -> Shared {
        Shared {
            request_bytes: Quota::new(QuotaKind::Bytes, limits.request_memory),
            requests: Quota::new(QuotaKind::Requests, limits.requests_in_flight),
            overdraft: AtomicU64::new(0),
            registry: Mutex::default(),
            closed: Notify::new(),
            complained_ms: AtomicU64::new(0),
            complaints: AtomicU64::new(0),
            limits,
            clock,
            meter,
        }
    }

    fn all(&self) -> Vec<Arc<Answers>> {
        self.registry.lock().connections.values().cloned().collect()
    }

    async fn all_closed(&self) {
        loop {
            let closed = self.closed.notified();
            if self.registry.lock().connections.is_empty() {
                return;
            }
            closed.await;
        }
    }

    /// Closes connections that were idle or stalled too long at `now_ms`.
    fn sweep(&self, now_ms: u64) {
        let memory_is_short = self.request_bytes.is_waited_for();
        for answers in self.all() {
            let quiet_ms = now_ms.saturating_sub(answers.last_active_ms());
            let idle = self.limits.idle_ms.is_some_and(|limit| quiet_ms >= limit);
            let stalled = memory_is_short && answers.is_receiving() && quiet_ms >= STALLED_MS;
            if answers.is_overdue(now_ms) || stalled || (idle && answers.is_idle()) {
                answers.kill();
            }
        }
        self.request_bytes.wake_next();
        self.requests.wake_next();
    }

    /// Whether a complaint about what a client sent may be logged now, and how many were left out before it.
    pub(crate) fn may_complain(&self) -> Option<u64> {
        let now_ms = self.clock.mono_ms() + COMPLAINT_INTERVAL_MS;
        let last_ms = self.complained_ms.load(Ordering::Relaxed);
        let is_mine = now_ms >= last_ms + COMPLAINT_INTERVAL_MS
            && self
                .complained_ms
                .compare_exchange(last_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_mine {
            return Some(self.complaints.swap(0, Ordering::Relaxed));
        }
        self.complaints.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// A connection's place in the registry; given back when dropped.
pub(crate) struct Registration {
    shared: Arc<Shared>,
    answers: Arc<Answers>,
    ip: IpAddr,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.answers.close();
        let mut registry = self.shared.registry.lock();
        registry.connections.remove(&self.answers.id);
        if let Some(count) = registry.by_address.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                registry.by_address.remove(&self.ip);
            }
        }
        drop(registry);
        self.shared.meter.connection_closed();
        self.shared.closed.notify_waiters();
    }
}

async fn accept<S: Service>(
    bound: Bound,
    service: Arc<S>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        // Registered before the count is looked at, so that no closing is missed.
        let mut one_closed = std::pin::pin!(shared.closed.notified());
        one_closed.as_mut().enable();
        let open = shared.registry.lock().connections.len();
        if open >= service.max_connections() {
            tokio::select! {
                biased;
                _ = stopped.changed() => return,
                () = one_closed => continue,
            }
        }
        let accepted = tokio::select! {
            biased;
            _ = stopped.changed() => return,
            accepted = bound.socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => welcome(stream, peer, &bound.listener, &service, &shared),
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                if let Some(left_out) = shared.may_complain() {
                    warn!(%error, open, left_out, "cannot accept connections; raise the limit of open files if it is reached");
                }
                tokio::select! {
                    biased;
                    _ = stopped.changed() => return,
                    () = one_closed => {}
                    () = tokio::time::sleep(ACCEPT_BACKOFF) => {}
                }
            }
        }
    }
}

/// Whether only the connection that was to be accepted is lost.
fn is_about_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

fn welcome<S: Service>(
    stream: TcpStream,
    peer: SocketAddr,
    listener: &Arc<Listener>,
    service: &Arc<S>,
    shared: &Arc<Shared>,
) {
    let ip = peer.ip().to_canonical();
    // A socket that refuses an option is about to fail in a way that its reader sees.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
    let (reader, writer) = stream.into_split();
    let mut registry = shared.registry.lock();
    let of_address = registry.by_address.get(&ip).copied().unwrap_or(0);
    if of_address >= service.max_connections_from(ip) {
        drop(registry);
        shared.meter.connection_refused();
        if let Some(left_out) = shared.may_complain() {
            warn!(%ip, open = of_address, left_out, "connection refused: max.connections.per.ip is reached");
        }
        return;
    }
    registry.last_id += 1;
    let id = registry.last_id;
    let answers = Answers::new(shared.clone(), id, writer);
    registry.connections.insert(id, answers.clone());
    *registry.by_address.entry(ip).or_default() += 1;
    drop(registry);
    shared.meter.connection_opened();
    let registration = Registration {
        shared: shared.clone(),
        answers: answers.clone(),
        ip,
    };
    let info = Arc::new(ConnectionInfo::new(id, peer, listener.clone()));
    let connection = Connection::new(service.clone(), shared.clone(), answers, reader, info);
    tokio::spawn(connection.run(registration));
}

/// Looks for idle connections until the server is gone.
async fn sweep(shared: std::sync::Weak<Shared>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.sweep(shared.clock.mono_ms());
    }
}

#[cfg(test)]
mod tests;
