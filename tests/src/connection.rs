//! A raw connection: any message in any version, many at once, or bytes as they are.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::marker::PhantomData;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use kaas_wire::header::{RequestHeader, decode_response_header, encode_request_header};
use kaas_wire::{ApiKey, Message, Reader, Writer};

use crate::requests::Request;
use crate::time::{SOON, Stopwatch};

/// Memory that decoding one answer may take.
const BUDGET: usize = 256 * 1024 * 1024;

/// A connection of a client called `test`.
pub struct Connection {
    stream: TcpStream,
    pub client_id: Option<String>,
    next_correlation_id: i32,
    unanswered: VecDeque<i32>,
    buffer: Vec<u8>,
}

/// A request that was sent; its answer is still to be taken.
#[must_use]
pub struct Sent<Q> {
    version: i16,
    correlation_id: i32,
    request: PhantomData<Q>,
}

/// What came instead of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFrame {
    /// Nothing, in the time that was given.
    Silence,
    /// The end of the connection.
    Closed,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Connection {
        Connection::try_open(address)
            .unwrap_or_else(|error| panic!("connect to {address}: {error}"))
    }

    pub fn try_open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, SOON)?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            client_id: Some("test".to_owned()),
            next_correlation_id: 0,
            unanswered: VecDeque::new(),
            buffer: Vec::new(),
        })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The frame of a request, its length in front.
    pub fn frame<Q: Message>(&self, version: i16, correlation_id: i32, request: &Q) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.i32(0);
        let header = RequestHeader {
            api_key: ApiKey(Q::API_KEY),
            api_version: version,
            correlation_id,
            client_id: self.client_id.clone(),
        };
        encode_request_header(&header, &mut writer);
        request.encode(&mut writer, version);
        let mut frame = writer.into_vec();
        let length = (frame.len() - 4) as u32;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        frame
    }

    /// Sends and does not wait.
    pub fn send<Q: Request>(&mut self, version: i16, request: &Q) -> Sent<Q> {
        self.try_send(version, request)
            .unwrap_or_else(|error| panic!("send {}: {error}", Q::NAME))
    }

    pub fn try_send<Q: Request>(&mut self, version: i16, request: &Q) -> io::Result<Sent<Q>> {
        let correlation_id = self.next_correlation_id;
        let frame = self.frame(version, correlation_id, request);
        self.stream.write_all(&frame)?;
        self.next_correlation_id += 1;
        self.unanswered.push_back(correlation_id);
        Ok(Sent {
            version,
            correlation_id,
            request: PhantomData,
        })
    }

    /// The answer, which must be the next that comes.
    pub fn receive<Q: Request>(&mut self, sent: Sent<Q>) -> Q::Response {
        self.receive_within(sent, SOON)
            .unwrap_or_else(|no_frame| panic!("no answer to {}: {no_frame:?}", Q::NAME))
    }

    pub fn receive_within<Q: Request>(
        &mut self,
        sent: Sent<Q>,
        limit: Duration,
    ) -> Result<Q::Response, NoFrame> {
        let frame = self.next_frame(limit)?;
        let first = self.unanswered.pop_front();
        assert_eq!(
            first,
            Some(sent.correlation_id),
            "answers are taken in the order of the requests"
        );
        Ok(decode_answer::<Q>(frame, sent.version, sent.correlation_id))
    }

    pub fn call<Q: Request>(&mut self, version: i16, request: &Q) -> Q::Response {
        let sent = self.send(version, request);
        self.receive(sent)
    }

    /// As `call`; `None` when the connection fails.
    pub fn try_call<Q: Request>(&mut self, version: i16, request: &Q) -> Option<Q::Response> {
        let sent = self.try_send(version, request).ok()?;
        self.receive_within(sent, SOON).ok()
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// A frame around `body`.
    pub fn send_frame(&mut self, body: &[u8]) -> io::Result<()> {
        let mut frame = (body.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        self.stream.write_all(&frame)
    }

    /// The next frame that comes, without its length.
    pub fn next_frame(&mut self, limit: Duration) -> Result<Bytes, NoFrame> {
        let watch = Stopwatch::start();
        loop {
            if let Some(length) = self.buffer.first_chunk::<4>() {
                let end = 4 + u32::from_be_bytes(*length) as usize;
                if self.buffer.len() >= end {
                    let rest = self.buffer.split_off(end);
                    let frame = std::mem::replace(&mut self.buffer, rest);
                    return Ok(Bytes::from(frame).slice(4..));
                }
            }
            let left = watch.left_of(limit).ok_or(NoFrame::Silence)?;
            self.read_some(left)?;
        }
    }

    fn read_some(&mut self, limit: Duration) -> Result<(), NoFrame> {
        let set = self.stream.set_read_timeout(Some(limit));
        set.expect("the limit is not zero");
        let mut chunk = [0; 64 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(NoFrame::Closed),
            Ok(read) => {
                self.buffer.extend_from_slice(&chunk[..read]);
                Ok(())
            }
            Err(error) if is_timeout(&error) => Err(NoFrame::Silence),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(_) => Err(NoFrame::Closed),
        }
    }

    /// Asserts that the broker closes the connection and sends nothing before.
    pub fn assert_closed(&mut self) {
        assert_eq!(self.next_frame(SOON), Err(NoFrame::Closed));
        assert!(self.buffer.is_empty(), "bytes came before the end");
    }

    /// Asserts that nothing comes for some time.
    pub fn assert_silent(&mut self, duration: Duration) {
        assert_eq!(self.next_frame(duration), Err(NoFrame::Silence));
    }

    /// No more is sent; answers can still be read.
    pub fn finish_sending(&self) {
        // An error means that the connection is gone, which whoever reads it sees.
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Decodes an answer, which must be whole and have no byte too many.
fn decode_answer<Q: Request>(frame: Bytes, version: i16, correlation_id: i32) -> Q::Response {
    let mut reader = Reader::new(frame, BUDGET);
    let found = decode_response_header(ApiKey(Q::API_KEY), version, &mut reader)
        .unwrap_or_else(|error| panic!("header of the answer to {}: {error}", Q::NAME));
    assert_eq!(found, correlation_id, "the answer is to another request");
    let response = Q::Response::decode(&mut reader, version)
        .unwrap_or_else(|error| panic!("answer to {} v{version}: {error}", Q::NAME));
    assert_eq!(
        reader.remaining(),
        0,
        "the answer to {} v{version} has bytes too many",
        Q::NAME
    );
    response
}
