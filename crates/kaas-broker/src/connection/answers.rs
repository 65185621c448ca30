//! The answering half of a connection: slots in request order, and the socket they are written to.
//!
//! Each request that is taken opens a slot. Whoever answers it (a handler, the coordinator's actor, the journal's
//! release task, a flusher's thread) holds a `ReplySlot` and fills it from its own thread: the answer is encoded there
//! and, when no earlier one is missing, written to the socket at once. Only what the socket does not take goes to the
//! outbox, which the connection's task drains. So an answer costs no switch to another task.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use bytes::{Buf, Bytes};
use kaas_storage::volume::VolumeFile;
use kaas_wire::api_key::ApiKey;
use kaas_wire::header::encode_response_header;
use kaas_wire::{Message, Writer};
use parking_lot::Mutex;
use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use super::SMALL;
use crate::server::Shared;

/// The buffer in which a thread encodes is given back when an answer made it larger than this.
const ENCODER_KEPT: usize = 256 * 1024;

/// Pieces handed to the kernel in one call.
const GATHERED: usize = 32;

/// What is read at a time from a file that has no descriptor.
const COPIED: usize = 64 * 1024;

/// Bytes of files sent before other connections of the thread get their turn.
const SENT_IN_A_TURN: usize = 1024 * 1024;

/// A part of a file that is sent as it lies there.
#[derive(Clone)]
pub struct FileRegion {
    pub file: Arc<dyn VolumeFile>,
    pub position: u64,
    pub len: usize,
}

/// The duty to answer one request, and the place its answer takes among those of its connection. May be sent to and
/// used from any thread. Dropping it unused is a bug unless the connection is gone, and closes the connection.
pub struct ReplySlot {
    answers: Arc<Answers>,
    number: u64,
    started_us: u64,
    request_bytes: u32,
    correlation_id: i32,
    api_key: i16,
    version: i16,
}

impl ReplySlot {
    pub fn api_key(&self) -> i16 {
        self.api_key
    }

    pub fn version(&self) -> i16 {
        self.version
    }

    /// Whether nobody is left to read the answer. It may be sent all the same.
    pub fn is_closed(&self) -> bool {
        self.answers.is_closed()
    }

    /// Answers in the layout of another version than the request's: ApiVersions does when it cannot serve the version
    /// that was asked.
    pub fn at_version(mut self, version: i16) -> ReplySlot {
        self.version = version;
        self
    }

    /// Answers the request.
    pub fn send<M: Message>(self, response: &M) {
        self.send_with_files(response, Vec::new());
    }

    /// Answers with records that lie in files: `Records::External { id, len }` stands for `files[id]`, whose length it
    /// must give.
    pub fn send_with_files<M: Message>(self, response: &M, files: Vec<FileRegion>) {
        ENCODER.with_borrow_mut(|buffer| {
            let mut writer = Writer::from_vec(std::mem::take(buffer));
            writer.clear();
            writer.i32(0);
            let api_key = ApiKey(self.api_key);
            encode_response_header(api_key, self.version, self.correlation_id, &mut writer);
            response.encode(&mut writer, self.version);
            let cuts: Vec<Cut> = writer
                .gaps()
                .iter()
                .map(|gap| {
                    let region = files[gap.id].clone();
                    debug_assert_eq!(region.len, gap.len, "a gap is as long as its region");
                    Cut { at: gap.at, region }
                })
                .collect();
            for (code, count) in writer.errors() {
                let meter = &self.answers.shared.meter;
                meter.error(self.api_key, *code, *count);
            }
            let mut frame = writer.into_vec();
            let in_files: usize = cuts.iter().map(|cut| cut.region.len).sum();
            let len = frame.len() + in_files - 4;
            frame[..4].copy_from_slice(
                &i32::try_from(len)
                    .expect("an answer is smaller than 2 GiB")
                    .to_be_bytes(),
            );
            self.answers.answered(&self, len + 4);
            if cuts.is_empty() {
                self.answers.fill(self.number, Filling::Frame(&frame));
            } else {
                self.answers
                    .fill(self.number, Filling::Pieces(pieces(&frame, cuts)));
            }
            if frame.capacity() <= ENCODER_KEPT {
                *buffer = frame;
            }
        });
        self.forget();
    }

    /// The request wants no answer (a Produce with acks=0): those after it take its place.
    pub fn send_nothing(self) {
        self.answers.answered(&self, 0);
        self.answers.fill(self.number, Filling::Nothing);
        self.forget();
    }

    /// Closes the connection instead of answering, once the requests before this one are answered.
    pub fn abandon(self) {
        self.answers.answered(&self, 0);
        self.answers.fill(self.number, Filling::Close);
        self.forget();
    }

    /// Counts memory that the request holds until it is answered, besides its frame.
    pub(crate) fn charge(&self, bytes: usize) {
        if bytes > SMALL {
            self.answers.charge(self.number, bytes);
        }
    }

    /// Undoes `Answers::open` for a request that turned out not to be one.
    pub(crate) fn withdraw(self) {
        self.answers.withdraw(self.number);
        self.forget();
    }

    fn forget(mut self) {
        self.number = SPENT;
    }
}

/// The number of a slot that has been answered.
const SPENT: u64 = u64::MAX;

impl Drop for ReplySlot {
    fn drop(&mut self) {
        if self.number == SPENT {
            return;
        }
        debug_assert!(
            self.answers.is_closed() || std::thread::panicking(),
            "a request of api {} was dropped without an answer",
            self.api_key
        );
        self.answers.fill(self.number, Filling::Close);
    }
}

thread_local! {
    static ENCODER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };

    /// Connections written to when the thread's `together` ends.
    static TOGETHER: RefCell<Vec<Arc<Answers>>> = const { RefCell::new(Vec::new()) };
    static IN_TOGETHER: Cell<bool> = const { Cell::new(false) };
}

/// Runs `send_many`, which answers many requests: answers to one connection are written with one system call. For
/// whoever releases a batch.
pub fn together<T>(send_many: impl FnOnce() -> T) -> T {
    struct Written;
    impl Drop for Written {
        fn drop(&mut self) {
            IN_TOGETHER.set(false);
            for answers in TOGETHER.take() {
                answers.write_filled();
            }
        }
    }
    if IN_TOGETHER.replace(true) {
        return send_many();
    }
    let _written = Written;
    send_many()
}

struct Cut {
    at: usize,
    region: FileRegion,
}

fn pieces(frame: &[u8], cuts: Vec<Cut>) -> Vec<Piece> {
    let frame = Bytes::copy_from_slice(frame);
    let mut pieces = Vec::with_capacity(2 * cuts.len() + 1);
    let mut from = 0;
    for cut in cuts {
        pieces.push(Piece::Bytes(frame.slice(from..cut.at)));
        pieces.push(Piece::File(cut.region));
        from = cut.at;
    }
    pieces.push(Piece::Bytes(frame.slice(from..)));
    pieces.retain(|piece| piece.remaining() > 0);
    pieces
}

enum Piece {
    Bytes(Bytes),
    File(FileRegion),
}

impl Piece {
    fn remaining(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::File(region) => region.len,
        }
    }
}

enum Filling<'a> {
    Frame(&'a [u8]),
    Pieces(Vec<Piece>),
    Nothing,
    Close,
}

/// The answers of one connection: those that are waited for, and those the socket has not taken yet.
pub(crate) struct Answers {
    shared: Arc<Shared>,
    /// The connection's number, from 1.
    pub(crate) id: u64,
    state: Mutex<State>,
    /// Something happened that the connection's task should look at.
    attention: AtomicBool,
    /// Take no more requests; close when all are answered.
    stopping: AtomicBool,
    /// When a request came or the socket took bytes last, in milliseconds of the clock.
    last_active_ms: AtomicU64,
    closed: AtomicBool,
    receiving: AtomicBool,
    /// Whether the connection waits for a quota, by `QuotaKind`.
    pub(crate) queued: [AtomicBool; 2],
    /// Wakes the connection's task. Locked last and briefly.
    waker: Mutex<Option<Waker>>,
}

struct State {
    /// `None` once the connection is closed.
    socket: Option<OwnedWriteHalf>,
    /// Set while the task waits for an answer to go out before it takes the next request.
    task_waits: bool,
    /// Answers not handed to the outbox yet, in request order.
    slots: VecDeque<Slot>,
    /// The number of the first of `slots`.
    first: u64,
    /// Set while a request that goes alone is among `slots`.
    alone: bool,
    outbox: VecDeque<Piece>,
    /// Bytes in memory in `outbox` and in filled `slots`.
    unsent: usize,
    /// Bytes that requests in `slots` hold.
    charged: usize,
    /// Set when the answer that closes the connection has come to its turn.
    closing: bool,
    /// Half-closed by us or by the peer: closed for good when this time has passed, in milliseconds of the clock.
    close_at_ms: Option<u64>,
}

struct Slot {
    answer: Option<Answer>,
    charge: usize,
    counted: bool,
}

enum Answer {
    Bytes(Bytes),
    Pieces(Vec<Piece>),
    Nothing,
    Close,
}

/// Whether a request shares the connection with those before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Taken while earlier ones are still unanswered; later ones are taken before it is answered.
    Pipelined,
    /// Taken when all earlier ones are answered; later ones wait until its answer is out.
    Alone,
}

/// What a slot is opened for.
pub(crate) struct Opening {
    pub(crate) turn: Turn,
    pub(crate) api_key: i16,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    pub(crate) request_bytes: usize,
    /// Bytes already counted in the quota for this request.
    pub(crate) charge: usize,
    pub(crate) started_us: u64,
}

/// How things stand, for the connection's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) closed: bool,
    pub(crate) closing: bool,
    pub(crate) unanswered: usize,
    pub(crate) outbox: bool,
}

impl Answers {
    pub(crate) fn new(shared: Arc<Shared>, id: u64, socket: OwnedWriteHalf) -> Arc<Answers> {
        let now_ms = shared.clock.mono_ms();
        Arc::new(Answers {
            shared,
            id,
            state: Mutex::new(State {
                socket: Some(socket),
                task_waits: false,
                slots: VecDeque::new(),
                first: 0,
                alone: false,
                outbox: VecDeque::new(),
                unsent: 0,
                charged: 0,
                closing: false,
                close_at_ms: None,
            }),
            attention: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            last_active_ms: AtomicU64::new(now_ms),
            closed: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
            queued: [const { AtomicBool::new(false) }; 2],
            waker: Mutex::new(None),
        })
    }

    /// The waker of the connection's task: it stays the same for the life of a task.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    /// Lets the task look again.
    pub(crate) fn wake(&self) {
        self.attention.store(true, Ordering::Release);
        if let Some(waker) = &*self.waker.lock() {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn take_attention(&self) -> bool {
        self.attention.load(Ordering::Relaxed) && self.attention.swap(false, Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn touch(&self, now_ms: u64) {
        self.last_active_ms.store(now_ms, Ordering::Relaxed);
    }

    pub(crate) fn last_active_ms(&self) -> u64 {
        self.last_active_ms.load(Ordering::Relaxed)
    }

    /// Opens the slot of the next request, unless it must wait: then the task is woken when that may have changed.
    pub(crate) fn open(self: &Arc<Self>, opening: &Opening) -> Option<ReplySlot> {
        let limits = &self.shared.limits;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let blocked = match opening.turn {
            _ if state.alone => true,
            Turn::Alone => !state.slots.is_empty() || !state.outbox.is_empty(),
            Turn::Pipelined => {
                let is_full = state.slots.len() >= limits.requests_in_flight_per_connection;
                let holds_much = state.charged > limits.request_memory_per_connection;
                is_full || (holds_much && !state.slots.is_empty())
            }
        };
        if blocked || state.unsent > limits.response_memory_per_connection {
            state.task_waits = true;
            return None;
        }
        state.task_waits = false;
        state.alone = opening.turn == Turn::Alone;
        let number = state.first + state.slots.len() as u64;
        state.charged += opening.charge;
        state.slots.push_back(Slot {
            answer: None,
            charge: opening.charge,
            counted: opening.turn == Turn::Pipelined,
        });
        Some(ReplySlot {
            answers: self.clone(),
            number,
            started_us: opening.started_us,
            request_bytes: opening.request_bytes.min(u32::MAX as usize) as u32,
            correlation_id: opening.correlation_id,
            api_key: opening.api_key,
            version: opening.version,
        })
    }

    /// Asks to be woken when the next answer goes out, unless the next request may be taken already.
    pub(crate) fn wait_for_turn(&self) -> bool {
        let mut state = self.state.lock();
        state.task_waits = state.alone;
        state.alone
    }

    fn charge(&self, number: u64, bytes: usize) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.socket.is_none() {
            return;
        }
        let slot = &mut state.slots[(number - state.first) as usize];
        slot.charge += bytes;
        state.charged += bytes;
        self.shared.request_bytes.take(bytes);
    }

    fn withdraw(&self, number: u64) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.socket.is_none() {
            return;
        }
        assert_eq!(
            number + 1,
            state.first + state.slots.len() as u64,
            "only the last request is withdrawn"
        );
        let slot = state.slots.pop_back().expect("a slot was opened");
        state.alone = false;
        state.charged -= slot.charge;
        drop(guard);
        self.release(slot.charge, slot.counted);
    }

    fn release(&self, charge: usize, counted: bool) {
        if charge > 0 {
            self.shared.request_bytes.give(charge);
        }
        if counted {
            self.shared.requests.give(1);
        }
    }

    fn answered(&self, slot: &ReplySlot, response_bytes: usize) {
        let took_us = self.shared.clock.mono_us().saturating_sub(slot.started_us);
        self.shared.meter.answered(
            slot.api_key,
            slot.version,
            took_us,
            slot.request_bytes as usize,
            response_bytes,
        );
    }

    fn fill(self: &Arc<Self>, number: u64, filling: Filling<'_>) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.socket.is_none() {
            return;
        }
        let at = (number - state.first) as usize;
        let slot = &mut state.slots[at];
        assert!(slot.answer.is_none(), "a request is answered once");
        let (charge, counted) = (
            std::mem::take(&mut slot.charge),
            std::mem::take(&mut slot.counted),
        );
        state.charged -= charge;
        let is_next = at == 0 && state.outbox.is_empty();
        let next_is_filled = matches!(
            state.slots.get(1),
            Some(Slot {
                answer: Some(_),
                ..
            })
        );
        let later = state.slots.len() > 1 && IN_TOGETHER.get();
        match filling {
            // The common case: nobody else's answer is touched and nothing is copied.
            Filling::Frame(frame) if is_next && !next_is_filled && !later => {
                state.pop_first();
                match state.send(frame, SendFlags::empty()) {
                    Ok(sent) if sent == frame.len() => {}
                    Ok(sent) => {
                        state.unsent += frame.len() - sent;
                        let rest = Bytes::copy_from_slice(&frame[sent..]);
                        state.outbox.push_back(Piece::Bytes(rest));
                        self.wake();
                    }
                    Err(_) => self.fail(state),
                }
            }
            filling => {
                let answer = match filling {
                    Filling::Frame(frame) => Answer::Bytes(Bytes::copy_from_slice(frame)),
                    Filling::Pieces(pieces) => Answer::Pieces(pieces),
                    Filling::Nothing => Answer::Nothing,
                    Filling::Close => Answer::Close,
                };
                state.unsent += answer.in_memory();
                state.slots[at].answer = Some(answer);
                if later {
                    TOGETHER.with_borrow_mut(|connections| {
                        if !connections
                            .last()
                            .is_some_and(|last| Arc::ptr_eq(last, self))
                        {
                            connections.push(self.clone());
                        }
                    });
                } else {
                    self.advance(state);
                }
            }
        }
        if state.task_waits {
            self.wake();
        }
        drop(guard);
        self.release(charge, counted);
    }

    fn write_filled(&self) {
        let mut state = self.state.lock();
        self.advance(&mut state);
        if state.task_waits {
            self.wake();
        }
    }

    /// Moves the filled heads to the outbox and writes what the socket takes.
    fn advance(&self, state: &mut State) {
        while let Some(Slot {
            answer: Some(_), ..
        }) = state.slots.front()
        {
            match state.pop_first() {
                Answer::Bytes(bytes) => state.outbox.push_back(Piece::Bytes(bytes)),
                Answer::Pieces(pieces) => state.outbox.extend(pieces),
                Answer::Nothing => {}
                Answer::Close => {
                    state.closing = true;
                    self.wake();
                    break;
                }
            }
        }
        self.flush(state);
    }

    /// Writes from the outbox until it is empty or the socket is full.
    fn flush(&self, state: &mut State) {
        let mut turn = SENT_IN_A_TURN;
        while !state.outbox.is_empty() && state.socket.is_some() {
            match state.send_some(&mut turn) {
                Ok(true) => {}
                Ok(false) => {
                    self.wake();
                    return;
                }
                Err(_) => {
                    self.fail(state);
                    return;
                }
            }
        }
    }

    /// The socket is broken: nothing more will be read or written.
    fn fail(&self, state: &mut State) {
        self.clear(state);
        self.wake();
    }

    /// For the connection's task, when the socket takes bytes again.
    pub(crate) fn drain(&self, now_ms: u64) -> Standing {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let before = state.outbox.len() + state.unsent;
        self.flush(state);
        if state.outbox.len() + state.unsent != before {
            self.touch(now_ms);
        }
        state.standing()
    }

    pub(crate) fn standing(&self) -> Standing {
        self.state.lock().standing()
    }

    /// How things stand, and the task is woken as they change.
    pub(crate) fn standing_until_answered(&self) -> Standing {
        let mut state = self.state.lock();
        state.task_waits = true;
        state.standing()
    }

    pub(crate) fn set_receiving(&self, receiving: bool) {
        if self.receiving.load(Ordering::Relaxed) != receiving {
            self.receiving.store(receiving, Ordering::Relaxed);
        }
    }

    /// Whether a request has come in part.
    pub(crate) fn is_receiving(&self) -> bool {
        self.receiving.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Says that nothing more will be written, so that the peer reads to the end. The connection is closed for good
    /// at `deadline_ms` at the latest.
    pub(crate) fn finish(&self, deadline_ms: u64) {
        let mut state = self.state.lock();
        // Dropping the writing half sends the FIN.
        self.clear(&mut state);
        state.close_at_ms = Some(deadline_ms);
    }

    /// The peer sends no more: what is unanswered may still be answered until `deadline_ms`.
    pub(crate) fn set_deadline(&self, deadline_ms: u64) {
        let mut state = self.state.lock();
        state.close_at_ms.get_or_insert(deadline_ms);
    }

    /// Closes at once and forgets what was not sent. Slots that are still out there answer into the void.
    pub(crate) fn close(&self) {
        self.clear(&mut self.state.lock());
        *self.waker.lock() = None;
        self.shared.request_bytes.wake_next();
        self.shared.requests.wake_next();
    }

    /// Closes from outside of the task.
    pub(crate) fn kill(&self) {
        let mut state = self.state.lock();
        state.close_at_ms = Some(0);
        self.fail(&mut state);
    }

    /// Whether the time to wait for the peer has passed.
    pub(crate) fn is_overdue(&self, now_ms: u64) -> bool {
        self.state.lock().close_at_ms.is_some_and(|at| at <= now_ms)
    }

    /// Whether the peer has asked nothing that is unanswered; if it only fails to read, that does not count as waiting.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.lock().slots.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn unsent(&self) -> usize {
        self.state.lock().unsent
    }

    /// Whether the next request waits for an answer to go out.
    #[cfg(test)]
    pub(crate) fn waits(&self) -> bool {
        self.state.lock().task_waits
    }

    fn clear(&self, state: &mut State) {
        self.closed.store(true, Ordering::SeqCst);
        state.socket = None;
        state.first += state.slots.len() as u64;
        for slot in std::mem::take(&mut state.slots) {
            self.release(slot.charge, slot.counted);
        }
        state.outbox = VecDeque::new();
        state.alone = false;
        state.unsent = 0;
        state.charged = 0;
    }
}

impl Answer {
    fn in_memory(&self) -> usize {
        match self {
            Answer::Bytes(bytes) => bytes.len(),
            Answer::Pieces(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Bytes(bytes) => bytes.len(),
                    Piece::File(_) => 0,
                })
                .sum(),
            Answer::Nothing | Answer::Close => 0,
        }
    }
}

impl State {
    fn standing(&self) -> Standing {
        Standing {
            closed: self.socket.is_none(),
            closing: self.closing,
            unanswered: self.slots.len(),
            outbox: !self.outbox.is_empty(),
        }
    }

    fn pop_first(&mut self) -> Answer {
        let slot = self.slots.pop_front().expect("there is a first slot");
        self.first += 1;
        self.alone = false;
        if self.slots.is_empty() && self.slots.capacity() > 16 {
            self.slots = VecDeque::new();
        }
        slot.answer.unwrap_or(Answer::Nothing)
    }

    /// Sends as much of `bytes` as the socket takes now.
    fn send(&self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        let socket: &TcpStream = match &self.socket {
            Some(socket) => socket.as_ref(),
            None => return Err(io::ErrorKind::NotConnected.into()),
        };
        would_block_is_none(socket.try_io(Interest::WRITABLE, || {
            Ok(rustix::net::send(
                socket,
                bytes,
                flags | SendFlags::NOSIGNAL,
            )?)
        }))
        .map(|sent| sent.unwrap_or(0))
    }

    /// Sends from the front of the outbox. `false`: the socket is full, or enough was sent for one turn.
    fn send_some(&mut self, turn: &mut usize) -> io::Result<bool> {
        let socket: &TcpStream = match &self.socket {
            Some(socket) => socket.as_ref(),
            None => return Err(io::ErrorKind::NotConnected.into()),
        };
        let sent = match &self.outbox[0] {
            Piece::Bytes(first) => {
                let run = self
                    .outbox
                    .iter()
                    .map_while(|piece| match piece {
                        Piece::Bytes(bytes) => Some(IoSlice::new(bytes)),
                        Piece::File(_) => None,
                    })
                    .take(GATHERED)
                    .collect::<Vec<_>>();
                let sent = if run.len() == 1 {
                    // A file's bytes go into the packet of those that announce them.
                    let more = if self.outbox.len() > 1 {
                        SendFlags::MORE
                    } else {
                        SendFlags::empty()
                    };
                    self.send(first, more)?
                } else {
                    would_block_is_none(socket.try_write_vectored(&run))?.unwrap_or(0)
                };
                self.unsent -= sent;
                sent
            }
            Piece::File(region) => {
                if *turn == 0 {
                    return Ok(false);
                }
                let sent = send_file(socket, region, region.len.min(*turn))?;
                *turn -= sent;
                sent
            }
        };
        let mut left = sent;
        while left > 0 {
            let front = self.outbox.front_mut().expect("what was sent was there");
            let of_front = left.min(front.remaining());
            left -= of_front;
            match front {
                Piece::Bytes(bytes) => bytes.advance(of_front),
                Piece::File(region) => {
                    region.position += of_front as u64;
                    region.len -= of_front;
                }
            }
            if front.remaining() == 0 {
                self.outbox.pop_front();
            }
        }
        if self.outbox.is_empty() && self.outbox.capacity() > 16 {
            self.outbox = VecDeque::new();
        }
        Ok(sent > 0)
    }
}

/// Sends up to `len` bytes of the region; 0 when the socket is full.
fn send_file(socket: &TcpStream, region: &FileRegion, len: usize) -> io::Result<usize> {
    let sent = socket.try_io(Interest::WRITABLE, || {
        let sent = match region.file.fd() {
            Some(file) => {
                let mut position = region.position;
                rustix::fs::sendfile(socket, file, Some(&mut position), len)?
            }
            None => {
                let mut buffer = vec![0; len.min(COPIED)];
                region.file.read_at(&mut buffer, region.position)?;
                rustix::net::send(socket, &buffer, SendFlags::NOSIGNAL)?
            }
        };
        if sent == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "a file ends before records that were promised from it",
            ));
        }
        Ok(sent)
    });
    would_block_is_none(sent).map(|sent| sent.unwrap_or(0))
}

fn would_block_is_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}
