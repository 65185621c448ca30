//! The asking half of a connection: one task that reads frames and hands requests to the service.
//!
//! A connection that is idle holds no buffer: bytes are first read into one that belongs to the thread, and only a
//! request whose rest has not come yet is kept. The buffer of a large one grows as its bytes come, not as it was
//! announced. The answering half is in `answers`.

pub(crate) mod answers;
pub(crate) mod quota;

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kaas_wire::api_key::ApiKey;
use kaas_wire::header::{HeaderError, RequestHeader, decode_request_header};
use kaas_wire::{DecodeError, Reader};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tracing::{debug, warn};

use self::answers::{Answers, Opening, Standing};
pub use self::answers::{FileRegion, ReplySlot, Turn, together};
use crate::Ctx;
use crate::server::{Listener, Registration, Shared};

/// What a thread reads into.
const READ_BUFFER: usize = 64 * 1024;

/// Requests up to this size are bounded by their number alone.
pub(crate) const SMALL: usize = 4 * 1024;

/// After a request of at least this size the next one is expected to be as large, and read where it will stay.
const LARGE: usize = 32 * 1024;

/// The least that decoding a request may take, however much its connection holds already.
const LEAST_BUDGET: usize = 1024 * 1024;

/// How long requests that were taken may still be answered when the peer has broken the protocol or sends no more.
const ANSWERING_MS: u64 = 10_000;

/// How long and how much is read after our side is closed, so that the peer gets to read what was sent to it.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// What handlers may know of a connection.
#[derive(Debug)]
pub struct ConnectionInfo {
    pub id: u64,
    pub peer: SocketAddr,
    /// The listener it came in through: what clients are told about addresses depends on it.
    pub listener: Arc<Listener>,
    /// Name and version, as ApiVersions announced them.
    pub client_software: OnceLock<(String, String)>,
}

impl ConnectionInfo {
    pub fn new(id: u64, peer: SocketAddr, listener: Arc<Listener>) -> ConnectionInfo {
        ConnectionInfo {
            id,
            peer,
            listener,
            client_software: OnceLock::new(),
        }
    }

    /// The peer as Kafka shows it in group descriptions: `/127.0.0.1`.
    pub fn client_host(&self) -> String {
        format!("/{}", self.peer.ip().to_canonical())
    }
}

/// What a server serves.
pub trait Service: Send + Sync + 'static {
    /// How many connections may be open: further ones wait to be accepted until one closes.
    fn max_connections(&self) -> usize;

    /// How many of them may come from one address: further ones are closed at once.
    fn max_connections_from(&self, ip: IpAddr) -> usize;

    /// How requests of this key and version take turns; `None` if it is not served.
    fn turn(&self, api_key: i16, version: i16) -> Option<Turn>;

    /// Takes one request, whose header has been read. If it cannot be decoded, the slot is withdrawn.
    fn call(
        self: &Arc<Self>,
        ctx: &Ctx,
        request: Reader,
        reply: ReplySlot,
    ) -> Result<Progress, DecodeError>;
}

/// What became of a request.
pub enum Progress {
    /// It is answered, or whoever holds its slot will answer it.
    Taken,
    /// It is answered by the end of this future, which ends early if the peer goes away.
    Running(Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The peer sends no more.
    Eof,
    /// The peer is gone, or the connection was closed from outside.
    Gone,
    Stopping,
    /// A handler closes it.
    Abandoned,
    Offence(Offence),
}

/// What a client may not send.
#[derive(Debug)]
enum Offence {
    Length {
        prefix: [u8; 4],
        limit: usize,
    },
    Header(HeaderError),
    NotServed {
        api_key: i16,
        version: i16,
    },
    Body {
        api_key: i16,
        version: i16,
        error: DecodeError,
    },
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Offence::Length {
                prefix: [0x16, 3, _, _],
                ..
            } => {
                write!(
                    f,
                    "it speaks TLS and this listener does not; set security.protocol=PLAINTEXT"
                )
            }
            Offence::Length { prefix, .. } if is_http(prefix) => {
                write!(
                    f,
                    "it speaks HTTP and this is the port for Kafka's protocol"
                )
            }
            Offence::Length { prefix, limit } => {
                let length = i32::from_be_bytes(*prefix);
                write!(
                    f,
                    "it announces a request of {length} bytes; possible are 1 to {limit} (socket.request.max.bytes)"
                )
            }
            Offence::Header(error) => write!(f, "{error}"),
            Offence::NotServed { api_key, version } => {
                write!(
                    f,
                    "it asks for {} ({api_key}) in version {version}, which is not served",
                    ApiKey(*api_key)
                )
            }
            Offence::Body {
                api_key,
                version,
                error,
            } => {
                write!(
                    f,
                    "its request for {} ({api_key}) in version {version} does not decode: {error}",
                    ApiKey(*api_key)
                )
            }
        }
    }
}

fn is_http(prefix: &[u8; 4]) -> bool {
    [
        b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"PRI ",
    ]
    .contains(&prefix)
}

/// A request whose body has not been decoded.
struct Request {
    header: RequestHeader,
    body: Reader,
    bytes: usize,
    charge: usize,
    started_us: u64,
}

/// What the task does next.
enum Next {
    Read,
    /// Look again when an answer went out, or when what was short is given back.
    Wait,
    Run(Pin<Box<dyn Future<Output = ()> + Send>>),
    End(End),
}

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BUFFER].into_boxed_slice());
}

pub(crate) struct Connection<S> {
    service: Arc<S>,
    shared: Arc<Shared>,
    answers: Arc<Answers>,
    reader: OwnedReadHalf,
    ctx: Ctx,
    /// Bytes that were read and are not a whole request, or whose turn has not come.
    pending: BytesMut,
    /// Bytes of `pending` that are counted in the quota.
    held: usize,
    /// The size of the last request if it was large, else 0.
    expected: usize,
    /// The request whose turn has not come.
    next: Option<Request>,
    /// Set while a request that goes alone is not answered.
    alone: bool,
    /// Set while the socket has not taken all that is to be written.
    outbox: bool,
    /// Set once the peer is known to have sent more while its last request was not answered.
    has_more: bool,
}

impl<S: Service> Connection<S> {
    pub(crate) fn new(
        service: Arc<S>,
        shared: Arc<Shared>,
        answers: Arc<Answers>,
        reader: OwnedReadHalf,
        info: Arc<ConnectionInfo>,
    ) -> Connection<S> {
        Connection {
            service,
            shared,
            answers,
            reader,
            ctx: Ctx {
                version: 0,
                client_id: None,
                connection: info,
            },
            pending: BytesMut::new(),
            held: 0,
            expected: 0,
            next: None,
            alone: false,
            outbox: false,
            has_more: false,
        }
    }

    pub(crate) async fn run(mut self, registration: Registration) {
        poll_fn(|cx| {
            self.answers.set_waker(cx.waker());
            Poll::Ready(())
        })
        .await;
        let mut next = Next::Read;
        let end = loop {
            next = match next {
                Next::Read => self.read().await,
                Next::Wait => self.wait().await,
                Next::Run(handler) => self.run_handler(handler).await,
                Next::End(end) => break end,
            };
        };
        self.leave(end).await;
        drop(registration);
    }

    fn socket(&self) -> &TcpStream {
        self.reader.as_ref()
    }

    /// Sees to what happened meanwhile: writes what the socket takes, and says if the connection must end.
    fn look(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if self.answers.take_attention() {
            let standing = self.answers.standing();
            self.note(standing)?;
            if self.answers.is_stopping() {
                return Err(End::Stopping);
            }
        }
        self.write(cx)?;
        Ok(())
    }

    /// Writes what the socket takes of what it could not take before. `true`: it took something.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if !self.outbox || self.socket().poll_write_ready(cx).is_pending() {
            return Ok(false);
        }
        // If something is left, the task has been woken already to go on.
        let standing = self.answers.drain(self.shared.clock.mono_ms());
        self.note(standing)?;
        Ok(true)
    }

    fn note(&mut self, standing: Standing) -> Result<(), End> {
        self.outbox = standing.outbox;
        if standing.closed {
            return Err(End::Gone);
        }
        if standing.closing {
            return Err(End::Abandoned);
        }
        Ok(())
    }

    /// Reads once and takes the requests that have come.
    async fn read(&mut self) -> Next {
        enum Came {
            /// So many bytes, into the thread's buffer.
            Fresh(usize),
            /// Bytes, into `pending`.
            Kept,
        }
        let came = poll_fn(|cx| {
            if let Err(end) = self.look(cx) {
                return Poll::Ready(Err(Next::End(end)));
            }
            let Some(room) = self.room() else {
                return Poll::Ready(Err(Next::Wait));
            };
            let read = if room == 0 {
                READ.with_borrow_mut(|buffer| {
                    let mut buffer = ReadBuf::new(buffer);
                    Pin::new(&mut self.reader)
                        .poll_read(cx, &mut buffer)
                        .map_ok(|()| buffer.filled().len())
                })
                .map_ok(Came::Fresh)
            } else {
                self.pending.reserve(room);
                let mut into = (&mut self.pending).limit(room);
                let read = pin!(self.reader.read_buf(&mut into)).poll(cx);
                read.map_ok(|bytes| {
                    if bytes == 0 {
                        Came::Fresh(0)
                    } else {
                        Came::Kept
                    }
                })
            };
            match read {
                Poll::Pending => {
                    if self.pending.is_empty() {
                        self.give_back_buffer();
                    }
                    Poll::Pending
                }
                Poll::Ready(Ok(came)) => Poll::Ready(Ok(came)),
                Poll::Ready(Err(_)) => Poll::Ready(Err(Next::End(End::Gone))),
            }
        })
        .await;
        match came {
            Ok(Came::Fresh(0)) => Next::End(End::Eof),
            Ok(Came::Fresh(bytes)) => READ.with_borrow(|buffer| self.take(&buffer[..bytes])),
            Ok(Came::Kept) => {
                self.answers.touch(self.shared.clock.mono_ms());
                self.take(&[])
            }
            Err(next) => next,
        }
    }

    /// How much to read into `pending`; 0 to read into the thread's buffer. `None` while there is no memory.
    fn room(&mut self) -> Option<usize> {
        let kept = self.pending.len();
        let room = match self.pending.first_chunk::<4>() {
            Some(prefix) => {
                let whole = 4 + i32::from_be_bytes(*prefix) as usize;
                // As much again as has come, so that what is announced costs nothing.
                (whole - kept).min(kept.max(READ_BUFFER))
            }
            None if kept == 0 && self.expected > 0 => 4 + self.expected,
            None => 0,
        };
        let needed = (kept + room).saturating_sub(SMALL.max(self.held));
        if needed == 0 && (kept > 0 || self.shared.request_bytes.has_left()) {
            return Some(room);
        }
        let quota = &self.shared.request_bytes;
        let has_overdraft = kept > 0 && self.take_overdraft();
        if !has_overdraft && !quota.try_take(needed) {
            quota.wait(&self.answers);
            if !quota.try_take(needed) {
                return None;
            }
        }
        if has_overdraft {
            quota.take(needed);
        }
        self.held += needed;
        quota.wake_next();
        Some(room)
    }

    /// Of the requests that have come in part when memory runs out, one may go on.
    fn take_overdraft(&self) -> bool {
        if self.shared.request_bytes.has_left() {
            return false;
        }
        let holder = &self.shared.overdraft;
        let id = self.answers.id;
        match holder.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(current) => current == id,
        }
    }

    fn give_back_buffer(&mut self) {
        self.pending = BytesMut::new();
        if self.held > 0 {
            self.shared
                .request_bytes
                .give(std::mem::take(&mut self.held));
        }
    }

    /// Keeps bytes for later.
    fn keep(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let uncounted = self.pending.len().saturating_sub(SMALL.max(self.held));
        if uncounted > 0 {
            self.shared.request_bytes.take(uncounted);
            self.held += uncounted;
        }
    }

    /// Takes requests out of what was kept and of `fresh`, for as long as it is their turn.
    fn take(&mut self, mut fresh: &[u8]) -> Next {
        if self.alone {
            self.alone = self.answers.wait_for_turn();
        }
        let next = if self.alone {
            Next::Wait
        } else {
            self.take_all(&mut fresh)
        };
        if !fresh.is_empty() {
            self.keep(fresh);
        }
        self.answers.set_receiving(!self.pending.is_empty());
        next
    }

    fn take_all(&mut self, fresh: &mut &[u8]) -> Next {
        if let Some(request) = self.next.take()
            && let Some(next) = self.dispatch(request)
        {
            return next;
        }
        loop {
            let frame = match self.frame(fresh) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Next::Read,
                Err(offence) => return Next::End(End::Offence(offence)),
            };
            let request = match self.request(frame) {
                Ok(request) => request,
                Err(offence) => return Next::End(End::Offence(offence)),
            };
            if let Some(next) = self.dispatch(request) {
                return next;
            }
        }
    }

    /// The next whole frame, without its length.
    fn frame(&mut self, fresh: &mut &[u8]) -> Result<Option<Bytes>, Offence> {
        if self.pending.is_empty() {
            let Some(prefix) = fresh.first_chunk::<4>() else {
                return Ok(None);
            };
            let whole = 4 + self.length(prefix)?;
            if fresh.len() < whole {
                return Ok(None);
            }
            let frame = Bytes::copy_from_slice(&fresh[4..whole]);
            fresh.advance(whole);
            return Ok(Some(frame));
        }
        let missing = 4usize.saturating_sub(self.pending.len()).min(fresh.len());
        self.pending.extend_from_slice(&fresh[..missing]);
        fresh.advance(missing);
        let Some(prefix) = self.pending.first_chunk::<4>() else {
            return Ok(None);
        };
        let whole = 4 + self.length(prefix)?;
        let missing = whole.saturating_sub(self.pending.len()).min(fresh.len());
        self.keep(&fresh[..missing]);
        fresh.advance(missing);
        if self.pending.len() < whole {
            return Ok(None);
        }
        if self.pending.len() == whole {
            // Its own allocation, handed on as it is.
            let mut frame = std::mem::take(&mut self.pending).freeze();
            frame.advance(4);
            return Ok(Some(frame));
        }
        let frame = if whole >= LARGE {
            let mut frame = self.pending.split_to(whole).freeze();
            frame.advance(4);
            frame
        } else {
            // A copy, so that a small request that is kept does not pin its neighbours.
            let frame = Bytes::copy_from_slice(&self.pending[4..whole]);
            self.pending.advance(whole);
            frame
        };
        Ok(Some(frame))
    }

    fn length(&self, prefix: &[u8; 4]) -> Result<usize, Offence> {
        let limit = self.shared.limits.frame;
        match usize::try_from(i32::from_be_bytes(*prefix)) {
            Ok(length) if (1..=limit).contains(&length) => Ok(length),
            _ => Err(Offence::Length {
                prefix: *prefix,
                limit,
            }),
        }
    }

    fn request(&mut self, frame: Bytes) -> Result<Request, Offence> {
        let bytes = frame.len();
        self.expected = if bytes >= LARGE { bytes } else { 0 };
        let quota = &self.shared.request_bytes;
        let mut charge = 0;
        if bytes > SMALL {
            charge = self.held.min(bytes);
            self.held -= charge;
            quota.take(bytes - charge);
            charge = bytes;
        }
        if self.pending.is_empty() && self.held > 0 {
            quota.give(std::mem::take(&mut self.held));
        }
        self.give_overdraft();
        let mut body = Reader::new(
            frame,
            self.shared
                .limits
                .request_memory_per_request
                .max(LEAST_BUDGET),
        );
        let started_us = self.shared.clock.mono_us();
        self.answers.touch(started_us / 1_000);
        match decode_request_header(&mut body) {
            Ok(header) => Ok(Request {
                header,
                body,
                bytes,
                charge,
                started_us,
            }),
            Err(error) => {
                if charge > 0 {
                    quota.give(charge);
                }
                Err(Offence::Header(error))
            }
        }
    }

    /// Hands a request to the service. `None`: the next one may be taken.
    fn dispatch(&mut self, request: Request) -> Option<Next> {
        let (api_key, version) = (request.header.api_key.0, request.header.api_version);
        let Some(turn) = self.service.turn(api_key, version) else {
            self.shared.request_bytes.give(request.charge);
            let offence = Offence::NotServed { api_key, version };
            return Some(Next::End(End::Offence(offence)));
        };
        if turn == Turn::Pipelined && !self.shared.requests.try_take(1) {
            self.shared.requests.wait(&self.answers);
            if !self.shared.requests.try_take(1) {
                self.next = Some(request);
                return Some(Next::Wait);
            }
        }
        let slot = self.answers.open(&Opening {
            turn,
            api_key,
            version,
            correlation_id: request.header.correlation_id,
            request_bytes: request.bytes,
            charge: request.charge,
            started_us: request.started_us,
        });
        let Some(slot) = slot else {
            if turn == Turn::Pipelined {
                self.shared.requests.give(1);
            }
            self.next = Some(request);
            return Some(Next::Wait);
        };
        if turn == Turn::Pipelined {
            self.shared.requests.wake_next();
        }
        self.ctx.version = version;
        self.ctx.client_id = request.header.client_id;
        match self.service.call(&self.ctx, request.body, slot) {
            Ok(Progress::Taken) => {
                self.alone = turn == Turn::Alone && self.answers.wait_for_turn();
                self.alone.then_some(Next::Wait)
            }
            Ok(Progress::Running(handler)) => {
                self.alone = turn == Turn::Alone;
                Some(Next::Run(handler))
            }
            Err(error) => Some(Next::End(End::Offence(Offence::Body {
                api_key,
                version,
                error,
            }))),
        }
    }

    /// Waits until it is worth looking again whether the next request may be taken.
    async fn wait(&mut self) -> Next {
        let end = poll_fn(|cx| {
            let looks = self.answers.take_attention();
            if looks {
                let standing = self.answers.standing();
                if let Err(end) = self.note(standing) {
                    return Poll::Ready(Some(end));
                }
                if self.answers.is_stopping() {
                    return Poll::Ready(Some(End::Stopping));
                }
            }
            match self.write(cx) {
                Err(end) => return Poll::Ready(Some(end)),
                Ok(wrote) if wrote || looks => return Poll::Ready(None),
                Ok(_) => {}
            }
            self.poll_gone(cx).map(Some)
        })
        .await;
        match end {
            None => {
                self.has_more = false;
                self.take(&[])
            }
            Some(end) => Next::End(end),
        }
    }

    /// Runs a handler to its end, or until nobody is there to read its answer.
    async fn run_handler(&mut self, mut handler: Pin<Box<dyn Future<Output = ()> + Send>>) -> Next {
        let end = poll_fn(|cx| {
            if self.answers.take_attention() {
                let standing = self.answers.standing();
                if let Err(end) = self.note(standing) {
                    return Poll::Ready(Some(end));
                }
            }
            if let Err(end) = self.write(cx) {
                return Poll::Ready(Some(end));
            }
            if handler.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            self.poll_gone(cx).map(Some)
        })
        .await;
        self.has_more = false;
        if let Some(end) = end {
            // Before the handler goes, so that its slot goes quietly.
            self.answers.close();
            return Next::End(end);
        }
        if self.answers.is_stopping() {
            return Next::End(End::Stopping);
        }
        // What the handler has sent may have left something to write.
        self.take(&[])
    }

    /// Ready when the peer has gone while a request is not answered. Of a peer that has sent more it is not known.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.has_more {
            return Poll::Pending;
        }
        let mut byte = [0];
        match self.socket().poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(End::Gone),
            Poll::Ready(Ok(_)) => {
                self.has_more = true;
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Lets what was taken be answered, says goodbye, and waits for the peer to have read it.
    async fn leave(&mut self, end: End) {
        self.next = None;
        let now_ms = self.shared.clock.mono_ms();
        match &end {
            End::Gone => return,
            End::Stopping | End::Abandoned => {}
            End::Eof => self.answers.set_deadline(now_ms + ANSWERING_MS),
            End::Offence(offence) => {
                self.shared.meter.protocol_error();
                let peer = self.ctx.connection.peer;
                match self.shared.may_complain() {
                    Some(left_out) => warn!(%peer, left_out, "connection closed: {offence}"),
                    None => debug!(%peer, "connection closed: {offence}"),
                }
                self.answers.set_deadline(now_ms + ANSWERING_MS);
            }
        }
        if !matches!(end, End::Abandoned) {
            let all_answered = poll_fn(|cx| {
                self.answers.take_attention();
                let standing = self.answers.standing_until_answered();
                if let Err(end) = self.note(standing).and_then(|()| self.write(cx).map(drop)) {
                    return Poll::Ready(!matches!(end, End::Gone));
                }
                let standing = self.answers.standing_until_answered();
                if standing.unanswered == 0 && !standing.outbox {
                    return Poll::Ready(true);
                }
                Poll::Pending
            })
            .await;
            if !all_answered {
                return;
            }
        }
        self.give_back_buffer();
        self.answers.finish(self.shared.clock.mono_ms() + LINGER_MS);
        match end {
            End::Eof => {}
            // Nothing unread is left behind by most, and those need not be waited for.
            End::Stopping if !self.has_unread().await => {}
            _ => self.linger().await,
        }
    }

    /// Whether the peer has sent something that was not read.
    async fn has_unread(&self) -> bool {
        let mut byte = [0];
        poll_fn(|cx| {
            let peeked = self.socket().poll_peek(cx, &mut ReadBuf::new(&mut byte));
            Poll::Ready(matches!(peeked, Poll::Ready(Ok(bytes)) if bytes > 0))
        })
        .await
    }

    /// Reads to the end: a socket closed with bytes unread sends a reset, and the peer may lose what it has not read.
    async fn linger(&mut self) {
        let mut left = LINGER_BYTES;
        poll_fn(|cx| {
            loop {
                let now_ms = self.shared.clock.mono_ms();
                if left == 0 || self.answers.is_overdue(now_ms) {
                    return Poll::Ready(());
                }
                let read = READ.with_borrow_mut(|buffer| {
                    let mut buffer = ReadBuf::new(buffer);
                    Pin::new(&mut self.reader)
                        .poll_read(cx, &mut buffer)
                        .map_ok(|()| buffer.filled().len())
                });
                match read {
                    Poll::Ready(Ok(bytes)) if bytes > 0 => left = left.saturating_sub(bytes),
                    Poll::Ready(Ok(_) | Err::<_, io::Error>(_)) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }
}

impl<S> Connection<S> {
    fn give_overdraft(&self) {
        // Someone else's overdraft is left alone.
        let _ = self.shared.overdraft.compare_exchange(
            self.answers.id,
            0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        self.give_overdraft();
        let quota = &self.shared.request_bytes;
        let waiting = self.next.as_ref().map_or(0, |request| request.charge);
        if self.held + waiting > 0 {
            quota.give(self.held + waiting);
        }
    }
}
