//! A connection to a broker: frames out, frames in, in order.
//!
//! A request that is sent often is encoded once, as a [`Frame`]; sending it copies its bytes and writes a correlation
//! id into them. Answers are slices of one buffer, which is used again once they are dropped.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::{Buf, Bytes, BytesMut};
use kaas_wire::header::{RequestHeader, decode_response_header, encode_request_header};
use kaas_wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use kaas_wire::{ApiKey, DecodeError, ErrorCode, Message, Reader, Writer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CLIENT_ID: &str = "kaas-bench";

/// Where the correlation id stands in a frame: behind length, api key and version.
const CORRELATION_AT: usize = 8;

/// Bytes that the receive buffer has room for at least.
const READ_AHEAD: usize = 16 * 1024;

/// Longest answer that is believed to be one.
const MAX_ANSWER: usize = 1 << 30;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("connection failed: {0}")]
    Io(#[from] std::io::Error),
    #[error("broker closed the connection")]
    Closed,
    #[error("broker answered what does not decode: {0}")]
    Undecodable(#[from] DecodeError),
    #[error("broker answered {got} where {expected} was to be answered")]
    OutOfOrder { expected: i32, got: i32 },
    #[error("broker announced an answer of {0} bytes")]
    TooLong(usize),
    #[error("broker does not serve {api} in a version that is known here")]
    NotServed { api: ApiKey },
    #[error("broker refused {api}: {code}")]
    Refused { api: ApiKey, code: ErrorCode },
}

/// The versions a broker serves.
#[derive(Clone, Debug, Default)]
pub struct Versions(BTreeMap<i16, (i16, i16)>);

impl Versions {
    /// The newest version of `M` that both sides know.
    pub fn of<M: Message>(&self) -> Result<i16, Failure> {
        let api = ApiKey(M::API_KEY);
        let (oldest, newest) = self
            .0
            .get(&api.0)
            .copied()
            .ok_or(Failure::NotServed { api })?;
        let version = newest.min(*M::VERSIONS.end());
        if version < oldest.max(*M::VERSIONS.start()) {
            return Err(Failure::NotServed { api });
        }
        Ok(version)
    }
}

/// A request, encoded.
#[derive(Clone, Debug)]
pub struct Frame {
    api: ApiKey,
    version: i16,
    bytes: Vec<u8>,
}

impl Frame {
    pub fn new<M: Message>(request: &M, version: i16) -> Frame {
        let mut writer = Writer::with_capacity(64 + request.size(version));
        writer.i32(0);
        let api = ApiKey(M::API_KEY);
        encode_request_header(
            &RequestHeader {
                api_key: api,
                api_version: version,
                correlation_id: 0,
                client_id: Some(CLIENT_ID.to_owned()),
            },
            &mut writer,
        );
        request.encode(&mut writer, version);
        let mut bytes = writer.into_vec();
        let length = (bytes.len() - 4) as i32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        Frame {
            api,
            version,
            bytes,
        }
    }

    pub fn version(&self) -> i16 {
        self.version
    }

    /// Where the eight bytes of `number` stand. The request was made with a number that occurs once.
    pub fn position_of(&self, number: i64) -> usize {
        let mut found = self
            .bytes
            .windows(8)
            .enumerate()
            .filter(|(_, window)| *window == number.to_be_bytes());
        let position = found.next().expect("the number is in the frame").0;
        assert!(found.next().is_none(), "the number occurs once");
        position
    }

    /// Writes `number` where [`position_of`](Frame::position_of) found another.
    pub fn set_number(&mut self, position: usize, number: i64) {
        self.bytes[position..position + 8].copy_from_slice(&number.to_be_bytes());
    }
}

/// An answer, without length and header.
pub struct Answer {
    pub version: i16,
    pub body: Bytes,
}

impl Answer {
    pub fn decode<M: Message>(&self) -> Result<M, Failure> {
        Ok(M::decode(
            &mut Reader::new(self.body.clone(), MAX_ANSWER),
            self.version,
        )?)
    }
}

pub struct Connection {
    stream: TcpStream,
    versions: Rc<Versions>,
    /// Received and not taken yet.
    received: BytesMut,
    /// To be sent with the next flush.
    unsent: Vec<u8>,
    unanswered: VecDeque<(i32, ApiKey, i16)>,
    next_correlation_id: i32,
}

thread_local! {
    /// Of all connections.
    static BYTES: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Bytes sent and received so far.
pub fn bytes_moved() -> (u64, u64) {
    BYTES.get()
}

impl Connection {
    /// Connects and asks what is served.
    pub async fn open(address: &str) -> Result<Connection, Failure> {
        let mut connection = Connection::open_knowing(address, Rc::default()).await?;
        // Version 0 is understood by every broker, and answered in full.
        connection.push(&Frame::new(&ApiVersionsRequest::default(), 0));
        let answer: ApiVersionsResponse = connection.next_answer().await?.decode()?;
        if !answer.error_code.is_ok() {
            return Err(Failure::Refused {
                api: ApiKey::API_VERSIONS,
                code: answer.error_code,
            });
        }
        let served = answer
            .api_keys
            .iter()
            .map(|api| (api.api_key, (api.min_version, api.max_version)));
        connection.versions = Rc::new(Versions(served.collect()));
        Ok(connection)
    }

    /// Connects to a broker of which it is known what it serves.
    pub async fn open_knowing(
        address: &str,
        versions: Rc<Versions>,
    ) -> Result<Connection, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            versions,
            received: BytesMut::new(),
            unsent: Vec::new(),
            unanswered: VecDeque::new(),
            next_correlation_id: 0,
        })
    }

    pub fn versions(&self) -> &Rc<Versions> {
        &self.versions
    }

    pub fn frame<M: Message>(&self, request: &M) -> Result<Frame, Failure> {
        Ok(Frame::new(request, self.versions.of::<M>()?))
    }

    /// One request and its answer.
    pub async fn call<Q: Message, A: Message>(&mut self, request: &Q) -> Result<A, Failure> {
        let frame = self.frame(request)?;
        self.exchange(&frame).await?.decode()
    }

    /// Any answer at all.
    pub async fn ping(&mut self) -> Result<(), Failure> {
        self.exchange(&Frame::new(&ApiVersionsRequest::default(), 0))
            .await?;
        Ok(())
    }

    /// One encoded request and its answer.
    pub async fn exchange(&mut self, frame: &Frame) -> Result<Answer, Failure> {
        self.push(frame);
        self.next_answer().await
    }

    /// Puts a request behind those that are to be sent.
    pub fn push(&mut self, frame: &Frame) {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        let at = self.unsent.len() + CORRELATION_AT;
        self.unsent.extend_from_slice(&frame.bytes);
        self.unsent[at..at + 4].copy_from_slice(&correlation_id.to_be_bytes());
        self.unanswered
            .push_back((correlation_id, frame.api, frame.version));
    }

    /// The same for a request that the broker does not answer.
    pub fn push_unanswered(&mut self, frame: &Frame) {
        self.unsent.extend_from_slice(&frame.bytes);
    }

    /// Sends what was pushed.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        if !self.unsent.is_empty() {
            self.stream.write_all(&self.unsent).await?;
            let (sent, received) = BYTES.get();
            BYTES.set((sent + self.unsent.len() as u64, received));
            self.unsent.clear();
        }
        Ok(())
    }

    /// The answer to the oldest request that has none. Sends what was pushed before it waits.
    pub async fn next_answer(&mut self) -> Result<Answer, Failure> {
        if let Some(answer) = self.buffered_answer()? {
            return Ok(answer);
        }
        self.flush().await?;
        loop {
            let wanted = match self.received.first_chunk::<4>() {
                Some(length) => 4 + u32::from_be_bytes(*length) as usize - self.received.len(),
                None => 0,
            };
            if wanted > MAX_ANSWER {
                return Err(Failure::TooLong(wanted));
            }
            self.received.reserve(wanted.max(READ_AHEAD));
            let count = self.stream.read_buf(&mut self.received).await?;
            if count == 0 {
                return Err(Failure::Closed);
            }
            let (sent, received) = BYTES.get();
            BYTES.set((sent, received + count as u64));
            if let Some(answer) = self.buffered_answer()? {
                return Ok(answer);
            }
        }
    }

    /// The next answer if it is here.
    pub fn buffered_answer(&mut self) -> Result<Option<Answer>, Failure> {
        let Some(length) = self.received.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if self.received.len() < 4 + length {
            return Ok(None);
        }
        let mut body = self.received.split_to(4 + length).freeze();
        body.advance(4);
        let (expected, api, version) = self.unanswered.pop_front().ok_or(Failure::Closed)?;
        let mut reader = Reader::new(body.clone(), MAX_ANSWER);
        let got = decode_response_header(api, version, &mut reader)?;
        if got != expected {
            return Err(Failure::OutOfOrder { expected, got });
        }
        body.advance(reader.position());
        Ok(Some(Answer { version, body }))
    }
}
