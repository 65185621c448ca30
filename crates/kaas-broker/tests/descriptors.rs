//! A process without free file descriptors. In a process of its own, because the limit is the process's.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use kaas_broker::Ctx;
use kaas_broker::clock::Clock;
use kaas_broker::connection::{Progress, ReplySlot, Service, Turn};
use kaas_broker::server::{Bound, Limits, Meter};
use kaas_wire::messages::api_versions::ApiVersionsResponse;
use kaas_wire::{DecodeError, Reader};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CLIENTS: usize = 40;
const ROOM: u64 = 12;

struct Answering;

impl Service for Answering {
    fn max_connections(&self) -> usize {
        usize::MAX
    }

    fn max_connections_from(&self, _: IpAddr) -> usize {
        usize::MAX
    }

    fn turn(&self, _: i16, _: i16) -> Option<Turn> {
        Some(Turn::Alone)
    }

    fn call(
        self: &Arc<Self>,
        _: &Ctx,
        _: Reader,
        reply: ReplySlot,
    ) -> Result<Progress, DecodeError> {
        reply.send(&ApiVersionsResponse::default());
        Ok(Progress::Taken)
    }
}

struct NoMeter;

impl Meter for NoMeter {
    fn answered(&self, _: i16, _: i16, _: u64, _: usize, _: usize) {}
}

/// ApiVersions v0 without a client id.
const REQUEST: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];

async fn ask(client: &mut TcpStream) {
    client.write_all(&REQUEST).await.unwrap();
    let len = client.read_i32().await.unwrap();
    client.read_exact(&mut vec![0; len as usize]).await.unwrap();
}

#[tokio::test]
async fn when_descriptors_run_out_those_who_are_in_are_served_and_others_wait() {
    let bound = Bound::bind("127.0.0.1:0", None).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(TcpStream::connect(bound.local_addr()).await.unwrap());
    }
    let last = clients.iter().map(AsRawFd::as_raw_fd).max().unwrap();
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(last as u64 + ROOM);
    setrlimit(Resource::Nofile, limit).unwrap();
    let server = bound.serve(
        Arc::new(Answering),
        Limits::default(),
        Clock::system(),
        Arc::new(NoMeter),
    );
    for _ in 0..3 {
        ask(&mut clients[0]).await;
    }
    assert!(server.connections() < CLIENTS);
    for mut client in clients {
        ask(&mut client).await;
    }
}
