//! Real loopback sockets against a service that answers when the test says so.

use std::sync::Weak;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use kaas_storage::volume::memory::MemoryVolume;
use kaas_storage::volume::{DiskVolume, Volume};
use kaas_wire::api_key::ApiKey;
use kaas_wire::header::{RequestHeader, decode_response_header, encode_request_header};
use kaas_wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use kaas_wire::messages::fetch::{
    FetchRequest, FetchResponse, FetchableTopicResponse, PartitionData,
};
use kaas_wire::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use kaas_wire::messages::join_group::{JoinGroupRequest, JoinGroupResponse};
use kaas_wire::messages::list_offsets::{ListOffsetsRequest, ListOffsetsResponse};
use kaas_wire::messages::metadata::MetadataRequest;
use kaas_wire::messages::produce::ProduceRequest;
use kaas_wire::{DecodeError, Message, Reader, Records, Writer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::Ctx;
use crate::connection::{FileRegion, Progress, ReplySlot, Turn, together};

const MIB: usize = 1024 * 1024;

struct NoMeter;

impl Meter for NoMeter {
    fn answered(&self, _: i16, _: i16, _: u64, _: usize, _: usize) {}
}

/// Heartbeat and Produce are pipelined and JoinGroup goes alone, all three answered by the test; Fetch is answered at
/// once with `records`; ListOffsets is a handler that ends when it may, Metadata one that never does.
struct TestService {
    max_connections: AtomicUsize,
    max_connections_from_one: AtomicUsize,
    slots: UnboundedSender<ReplySlot>,
    records: Mutex<(Records, Vec<FileRegion>)>,
    fetches: AtomicUsize,
    running: Arc<()>,
    may_end: Arc<Notify>,
}

impl Service for TestService {
    fn max_connections(&self) -> usize {
        self.max_connections.load(Ordering::SeqCst)
    }

    fn max_connections_from(&self, _: IpAddr) -> usize {
        self.max_connections_from_one.load(Ordering::SeqCst)
    }

    fn turn(&self, api_key: i16, version: i16) -> Option<Turn> {
        let api_key = ApiKey(api_key);
        if !api_key.versions()?.contains(&version) {
            return None;
        }
        match api_key {
            ApiKey::HEARTBEAT | ApiKey::PRODUCE => Some(Turn::Pipelined),
            ApiKey::JOIN_GROUP
            | ApiKey::FETCH
            | ApiKey::LIST_OFFSETS
            | ApiKey::METADATA
            | ApiKey::API_VERSIONS => Some(Turn::Alone),
            _ => None,
        }
    }

    fn call(
        self: &Arc<Self>,
        ctx: &Ctx,
        mut body: Reader,
        reply: ReplySlot,
    ) -> Result<Progress, DecodeError> {
        let decoded = match ApiKey(reply.api_key()) {
            ApiKey::HEARTBEAT => HeartbeatRequest::decode(&mut body, ctx.version).map(drop),
            ApiKey::PRODUCE => ProduceRequest::decode(&mut body, ctx.version).map(drop),
            ApiKey::JOIN_GROUP => JoinGroupRequest::decode(&mut body, ctx.version).map(drop),
            _ => Ok(()),
        };
        if let Err(error) = decoded {
            reply.withdraw();
            return Err(error);
        }
        match ApiKey(reply.api_key()) {
            ApiKey::API_VERSIONS => reply.send(&ApiVersionsResponse::default()),
            ApiKey::FETCH => {
                self.fetches.fetch_add(1, Ordering::SeqCst);
                let (records, files) = self.records.lock().clone();
                reply.send_with_files(&fetched(records), files);
            }
            ApiKey::LIST_OFFSETS => {
                let may_end = self.may_end.clone();
                return Ok(Progress::Running(Box::pin(async move {
                    may_end.notified().await;
                    reply.send(&ListOffsetsResponse::default());
                })));
            }
            ApiKey::METADATA => {
                let running = self.running.clone();
                return Ok(Progress::Running(Box::pin(async move {
                    let _running = (running, reply);
                    std::future::pending::<()>().await;
                })));
            }
            // A test that has ended no longer answers.
            _ => drop(self.slots.send(reply)),
        }
        Ok(Progress::Taken)
    }
}

fn fetched(records: Records) -> FetchResponse {
    FetchResponse {
        responses: vec![FetchableTopicResponse {
            topic: "t".to_owned(),
            partitions: vec![PartitionData {
                records,
                ..PartitionData::default()
            }],
            ..FetchableTopicResponse::default()
        }],
        ..FetchResponse::default()
    }
}

struct Tested {
    server: Server,
    service: Arc<TestService>,
    clock: Clock,
    slots: UnboundedReceiver<ReplySlot>,
}

impl Tested {
    async fn new(limits: Limits) -> Tested {
        let (sender, slots) = unbounded_channel();
        let service = Arc::new(TestService {
            max_connections: AtomicUsize::new(1000),
            max_connections_from_one: AtomicUsize::new(1000),
            slots: sender,
            records: Mutex::default(),
            fetches: AtomicUsize::new(0),
            running: Arc::new(()),
            may_end: Arc::default(),
        });
        let clock = Clock::manual(0);
        let bound = Bound::bind("127.0.0.1:0", None).await.unwrap();
        let server = bound.serve(service.clone(), limits, clock.clone(), Arc::new(NoMeter));
        Tested {
            server,
            service,
            clock,
            slots,
        }
    }

    async fn client(&self) -> Client {
        Client::connect(self.server.local_addr()).await
    }

    async fn slot(&mut self) -> ReplySlot {
        self.slots.recv().await.unwrap()
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.server.shared.sweep(self.clock.mono_ms());
    }

    async fn until(&self, what: impl Fn(&Shared) -> bool) {
        while !what(&self.server.shared) {
            tokio::task::yield_now().await;
        }
    }
}

struct Client {
    stream: TcpStream,
}

impl Client {
    async fn connect(address: SocketAddr) -> Client {
        Client {
            stream: TcpStream::connect(address).await.unwrap(),
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The correlation id of the next answer; `None` at the end of the stream.
    async fn answer(&mut self, api_key: ApiKey, version: i16) -> Option<i32> {
        Some(self.answer_frame(api_key, version).await?.0)
    }

    async fn answer_frame(&mut self, api_key: ApiKey, version: i16) -> Option<(i32, Reader)> {
        let len = match self.stream.read_i32().await {
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return None,
            Err(error) => panic!("{error}"),
        };
        let mut frame = vec![0; len as usize];
        self.stream.read_exact(&mut frame).await.unwrap();
        let mut reader = Reader::new(Bytes::from(frame), 10 * MIB);
        let id = decode_response_header(api_key, version, &mut reader).unwrap();
        Some((id, reader))
    }

    async fn heartbeat_answer(&mut self) -> Option<i32> {
        self.answer(ApiKey::HEARTBEAT, 4).await
    }

    async fn is_closed(&mut self) -> bool {
        matches!(self.stream.read_u8().await, Err(error) if error.kind() == io::ErrorKind::UnexpectedEof)
    }
}

fn frame<M: Message>(request: &M, version: i16, correlation_id: i32) -> Vec<u8> {
    let mut writer = Writer::default();
    let header = RequestHeader {
        api_key: ApiKey(M::API_KEY),
        api_version: version,
        correlation_id,
        client_id: Some("c".to_owned()),
    };
    encode_request_header(&header, &mut writer);
    request.encode(&mut writer, version);
    framed(&writer.into_vec())
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut frame = (bytes.len() as i32).to_be_bytes().to_vec();
    frame.extend_from_slice(bytes);
    frame
}

fn heartbeat(correlation_id: i32) -> Vec<u8> {
    frame(&HeartbeatRequest::default(), 4, correlation_id)
}

fn answer(slot: ReplySlot) {
    match ApiKey(slot.api_key()) {
        ApiKey::JOIN_GROUP => slot.send(&JoinGroupResponse::default()),
        _ => slot.send(&HeartbeatResponse::default()),
    }
}

#[tokio::test]
async fn answers_leave_in_request_order_whoever_is_answered_first() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    let requests: Vec<u8> = (0..5).flat_map(heartbeat).collect();
    client.send(&requests).await;
    let mut slots = Vec::new();
    for _ in 0..5 {
        slots.push(Some(tested.slot().await));
    }
    for at in [4, 2, 0, 3, 1] {
        let slot = slots[at].take().unwrap();
        std::thread::spawn(move || answer(slot)).join().unwrap();
    }
    for id in 0..5 {
        assert_eq!(client.heartbeat_answer().await, Some(id));
    }
}

#[tokio::test]
async fn answers_released_together_keep_their_order() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut clients = [tested.client().await, tested.client().await];
    let mut slots = Vec::new();
    for id in 0..40 {
        for client in &mut clients {
            client.send(&heartbeat(id)).await;
            slots.push(tested.slot().await);
        }
    }
    slots.rotate_left(7);
    together(|| slots.into_iter().for_each(answer));
    for client in &mut clients {
        for id in 0..40 {
            assert_eq!(client.heartbeat_answer().await, Some(id));
        }
    }
}

#[tokio::test]
async fn behind_a_parked_join_nothing_is_taken_until_its_answer_is_out() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    let mut requests = heartbeat(0);
    requests.extend(frame(&JoinGroupRequest::default(), 5, 1));
    requests.extend(heartbeat(2));
    client.send(&requests).await;
    let first = tested.slot().await;
    client.send(&heartbeat(3)).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(tested.slots.try_recv().is_err(), "a join goes alone");
    answer(first);
    let join = tested.slot().await;
    assert_eq!(join.api_key(), ApiKey::JOIN_GROUP.0);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(tested.slots.try_recv().is_err(), "a join is waited for");
    answer(join);
    let (third, fourth) = (tested.slot().await, tested.slot().await);
    answer(third);
    answer(fourth);
    assert_eq!(client.heartbeat_answer().await, Some(0));
    assert_eq!(client.answer(ApiKey::JOIN_GROUP, 5).await, Some(1));
    assert_eq!(client.heartbeat_answer().await, Some(2));
    assert_eq!(client.heartbeat_answer().await, Some(3));
}

#[tokio::test]
async fn requests_arrive_whole_however_they_are_cut() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    let sizes = [10, 300_000, 1, 70_000, 65_536, 5_000];
    let requests: Vec<u8> = sizes
        .iter()
        .zip(0..)
        .flat_map(|(size, id)| padded_heartbeat(*size, id))
        .collect();
    let heads = requests[..30].chunks(1).chain([&requests[30..]]);
    let cuts = [
        heads.collect(),
        requests.chunks(1_000).collect(),
        requests.chunks(66_000).collect(),
        vec![&requests[..]],
    ];
    for cut in cuts as [Vec<&[u8]>; 4] {
        for chunk in cut {
            client.send(chunk).await;
            tokio::task::yield_now().await;
        }
        for id in 0..6 {
            answer(tested.slot().await);
            assert_eq!(client.heartbeat_answer().await, Some(id));
        }
    }
}

/// A heartbeat with `size` bytes behind it: they are tolerated, as with Kafka.
fn padded_heartbeat(size: usize, correlation_id: i32) -> Vec<u8> {
    let mut padded = heartbeat(correlation_id)[4..].to_vec();
    padded.resize(padded.len() + size, 7);
    framed(&padded)
}

#[tokio::test]
async fn frames_of_impossible_length_and_other_protocols_close_the_connection() {
    let tested = Tested::new(Limits {
        frame: 1000,
        ..Limits::default()
    })
    .await;
    let tls_hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc];
    let starts: [&[u8]; 7] = [
        &0i32.to_be_bytes(),
        &(-1i32).to_be_bytes(),
        &i32::MIN.to_be_bytes(),
        &i32::MAX.to_be_bytes(),
        &1001i32.to_be_bytes(),
        b"GET / HTTP/1.1\r\n\r\n",
        &tls_hello,
    ];
    for start in starts {
        let mut client = tested.client().await;
        client.send(start).await;
        assert!(client.is_closed().await, "{start:?}");
    }
    tested.until(|shared| shared.all().is_empty()).await;
}

#[tokio::test]
async fn headers_and_bodies_that_do_not_decode_close_the_connection() {
    let tested = Tested::new(Limits::default()).await;
    let short_body = framed(&[0, 12, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0, 9]);
    let huge_array = framed(
        &[
            &[
                0, 11, 0, 5, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0,
            ][..],
            &[0xff, 0xff, 0, 0, 0x7f, 0xff, 0xff, 0xff],
        ]
        .concat(),
    );
    for bad in [
        framed(&[0]),
        framed(&[0, 12, 0, 4]),
        framed(&[0, 12, 0, 4, 0, 0, 0, 1]),
        framed(&[0, 12, 0, 4, 0, 0, 0, 1, 0, 50, b'x']),
        short_body,
        huge_array,
        framed(&[0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff]),
        framed(&[0, 12, 0xff, 0xff, 0, 0, 0, 1, 0xff, 0xff]),
        framed(&[3, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff]),
    ] {
        let mut client = tested.client().await;
        client.send(&bad).await;
        assert!(client.is_closed().await, "{bad:?}");
    }
    assert_eq!(tested.server.shared.request_bytes.left(), 1024 * MIB as i64);
}

#[tokio::test]
async fn requests_before_one_that_is_not_served_are_answered_first() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    let mut requests = heartbeat(7);
    requests.extend(framed(&[3, 0xe7, 0, 0, 0, 0, 0, 8, 0xff, 0xff]));
    requests.extend(heartbeat(9));
    client.send(&requests).await;
    let slot = tested.slot().await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    answer(slot);
    assert_eq!(client.heartbeat_answer().await, Some(7));
    assert!(client.is_closed().await);
    assert!(
        tested.slots.try_recv().is_err(),
        "nothing after it is taken"
    );
}

#[tokio::test]
async fn what_is_announced_but_not_sent_costs_nothing() {
    let tested = Tested::new(Limits::default()).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = tested.client().await;
        client.send(&(100 * MIB as i32).to_be_bytes()).await;
        client.send(&[0; 10]).await;
        clients.push(client);
    }
    let receiving = |shared: &Shared| shared.all().iter().all(|one| one.is_receiving());
    tested
        .until(|shared| shared.all().len() == 20 && receiving(shared))
        .await;
    let taken = 1024 * MIB as i64 - tested.server.shared.request_bytes.left();
    assert!(taken <= 20 * 2 * 64 * 1024, "{taken} bytes are reserved");
}

#[tokio::test]
async fn half_a_request_and_then_silence_closes_the_connection() {
    let tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    client.send(&heartbeat(0)[..20]).await;
    tested
        .until(|shared| shared.all().iter().any(|one| one.is_receiving()))
        .await;
    tested.pass(Duration::from_secs(599));
    assert_eq!(tested.server.connections(), 1);
    tested.pass(Duration::from_secs(1));
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_connection_is_not_idle_while_its_request_is_parked() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    client
        .send(&frame(&JoinGroupRequest::default(), 5, 1))
        .await;
    let join = tested.slot().await;
    tested.pass(Duration::from_secs(3600));
    answer(join);
    assert_eq!(client.answer(ApiKey::JOIN_GROUP, 5).await, Some(1));
    tested.pass(Duration::from_secs(3600));
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_either() {
    let tested = Tested::new(Limits::default()).await;
    *tested.service.records.lock() = (Records::Inline(Bytes::from(vec![7; MIB])), Vec::new());
    let mut client = tested.client().await;
    for id in 0..100 {
        client.send(&frame(&FetchRequest::default(), 12, id)).await;
    }
    tested
        .until(|shared| shared.all().iter().any(|one| one.waits()))
        .await;
    let unsent = tested.server.shared.all()[0].unsent();
    assert!(unsent < MIB + 1000, "{unsent} bytes wait");
    assert!(tested.service.fetches.load(Ordering::SeqCst) < 100);
    for id in 0..100 {
        assert_eq!(client.answer(ApiKey::FETCH, 12).await, Some(id));
    }
    assert_eq!(tested.server.shared.all()[0].unsent(), 0);
}

#[tokio::test]
async fn a_client_that_pipelines_and_does_not_read_is_not_read_either() {
    let mut tested = Tested::new(Limits {
        response_memory_per_connection: 2 * MIB,
        requests_in_flight_per_connection: 2,
        ..Limits::default()
    })
    .await;
    let big = fetched(Records::Inline(Bytes::from(vec![7; MIB])));
    let mut client = tested.client().await;
    let requests: Vec<u8> = (0..100).flat_map(heartbeat).collect();
    client.send(&requests).await;
    let mut answered = 0;
    loop {
        tested.slot().await.send(&big);
        answered += 1;
        if tested.server.shared.all()[0].unsent() > 2 * MIB {
            break;
        }
    }
    while let Ok(slot) = tested.slots.try_recv() {
        slot.send(&big);
        answered += 1;
    }
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(tested.slots.try_recv().is_err());
    for id in 0..100 {
        if id >= answered {
            tested.slot().await.send(&big);
        }
        assert_eq!(client.heartbeat_answer().await, Some(id));
    }
}

#[tokio::test]
async fn records_sent_from_a_file_are_the_bytes_of_the_file() {
    let tested = Tested::new(Limits::default()).await;
    let directory = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..3 * MIB + 17).map(|at| ((at * at) >> 7) as u8).collect();
    let disk = DiskVolume::open(directory.path()).unwrap();
    let memory = MemoryVolume::new();
    let volumes: [&dyn Volume; 2] = [&disk, &memory];
    let mut answers = Vec::new();
    let fetch = frame(&FetchRequest::default(), 12, 1);
    let inline = Records::Inline(Bytes::copy_from_slice(&content[11..]));
    *tested.service.records.lock() = (inline, Vec::new());
    let mut client = tested.client().await;
    client.send(&fetch).await;
    answers.push(client.answer_frame(ApiKey::FETCH, 12).await.unwrap().1);
    for volume in volumes {
        let file = volume.create("f").unwrap();
        file.write_at(&content, 0).unwrap();
        let region = FileRegion {
            file,
            position: 11,
            len: content.len() - 11,
        };
        let external = Records::External {
            len: region.len,
            id: 0,
        };
        *tested.service.records.lock() = (external, vec![region]);
        client.send(&fetch).await;
        answers.push(client.answer_frame(ApiKey::FETCH, 12).await.unwrap().1);
    }
    for reader in &mut answers {
        let response = FetchResponse::decode(reader, 12).unwrap();
        let Records::Inline(records) = &response.responses[0].partitions[0].records else {
            panic!("records come inline");
        };
        assert!(records[..] == content[11..]);
    }
}

#[tokio::test]
async fn a_connection_that_ends_takes_its_parked_requests_with_it() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut weak: Vec<Weak<Answers>> = Vec::new();
    let mut slots = Vec::new();
    for _ in 0..10 {
        let mut client = tested.client().await;
        let join = JoinGroupRequest {
            group_id: "g".repeat(20_000),
            ..JoinGroupRequest::default()
        };
        client.send(&heartbeat(0)).await;
        slots.push(tested.slot().await);
        client.send(&heartbeat(1)).await;
        slots.push(tested.slot().await);
        let mut client = tested.client().await;
        client.send(&frame(&join, 5, 1)).await;
        slots.push(tested.slot().await);
        weak.extend(tested.server.shared.all().iter().map(Arc::downgrade));
    }
    // Heartbeats of a client that sends no more may be answered for a while.
    while tested.server.connections() > 0 {
        tested.pass(Duration::from_secs(10));
        tokio::task::yield_now().await;
    }
    assert_eq!(tested.server.shared.request_bytes.left(), 1024 * MIB as i64);
    assert_eq!(tested.server.shared.requests.left(), 500);
    assert!(slots.iter().all(ReplySlot::is_closed));
    slots.drain(..5).for_each(answer);
    drop(slots);
    assert!(weak.iter().all(|answers| answers.upgrade().is_none()));
}

#[tokio::test]
async fn a_handler_ends_when_its_client_goes() {
    let tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    client
        .send(&frame(&MetadataRequest::default(), 12, 1))
        .await;
    while Arc::strong_count(&tested.service.running) == 1 {
        tokio::task::yield_now().await;
    }
    drop(client);
    tested.until(|shared| shared.all().is_empty()).await;
    assert_eq!(Arc::strong_count(&tested.service.running), 1);
}

#[tokio::test]
async fn a_request_without_answer_does_not_hold_up_the_next() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    client.send(&frame(&ProduceRequest::default(), 9, 1)).await;
    client.send(&heartbeat(2)).await;
    let (produce, beat) = (tested.slot().await, tested.slot().await);
    answer(beat);
    produce.send_nothing();
    assert_eq!(client.heartbeat_answer().await, Some(2));
}

#[tokio::test]
async fn an_abandoned_request_closes_behind_the_answers_before_it() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    client
        .send(&[heartbeat(1), heartbeat(2), heartbeat(3)].concat())
        .await;
    let slots = [
        tested.slot().await,
        tested.slot().await,
        tested.slot().await,
    ];
    let [first, second, third] = slots;
    answer(third);
    second.abandon();
    answer(first);
    assert_eq!(client.heartbeat_answer().await, Some(1));
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn clients_that_come_all_at_once_find_room_before_they_are_accepted() {
    let bound = Bound::bind("127.0.0.1:0", None).await.unwrap();
    // One that finds none would try again after a second.
    let patience = Duration::from_millis(900);
    let connect = |_| std::net::TcpStream::connect_timeout(&bound.local_addr(), patience);
    let clients: Vec<_> = (0..300).map(connect).collect();
    assert!(clients.iter().all(|client| client.is_ok()));
}

#[tokio::test]
async fn a_connection_over_the_total_waits_and_one_over_its_address_is_closed() {
    let tested = Tested::new(Limits::default()).await;
    let limits = &tested.service;
    limits.max_connections.store(2, Ordering::SeqCst);
    let ask = frame(&ApiVersionsRequest::default(), 2, 1);
    let mut first = tested.client().await;
    first.send(&ask).await;
    assert_eq!(first.answer(ApiKey::API_VERSIONS, 2).await, Some(1));
    let mut second = tested.client().await;
    second.send(&ask).await;
    assert_eq!(second.answer(ApiKey::API_VERSIONS, 2).await, Some(1));
    let mut third = tested.client().await;
    third.send(&ask).await;
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert_eq!(tested.server.connections(), 2);
    drop(first);
    assert_eq!(third.answer(ApiKey::API_VERSIONS, 2).await, Some(1));
    limits.max_connections.store(1000, Ordering::SeqCst);
    limits.max_connections_from_one.store(2, Ordering::SeqCst);
    drop(second);
    tested.until(|shared| shared.all().len() == 1).await;
    let mut fourth = tested.client().await;
    fourth.send(&ask).await;
    assert_eq!(fourth.answer(ApiKey::API_VERSIONS, 2).await, Some(1));
    let mut fifth = tested.client().await;
    assert!(fifth.stream.read_u8().await.is_err());
}

#[tokio::test]
async fn beyond_the_requests_in_flight_nothing_is_taken() {
    let mut tested = Tested::new(Limits {
        requests_in_flight: 3,
        ..Limits::default()
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = tested.client().await;
        client.send(&heartbeat(1)).await;
        clients.push(client);
    }
    let mut slots = Vec::new();
    for _ in 0..3 {
        slots.push(tested.slot().await);
    }
    tested.until(|shared| shared.requests.waiting() == 5).await;
    assert!(tested.slots.try_recv().is_err());
    for _ in 0..5 {
        answer(slots.remove(0));
        slots.push(tested.slot().await);
    }
    slots.into_iter().for_each(answer);
    assert_eq!(tested.server.shared.requests.left(), 3);
}

#[tokio::test]
async fn one_connection_has_so_many_requests_in_flight_at_most() {
    let mut tested = Tested::new(Limits {
        requests_in_flight_per_connection: 2,
        ..Limits::default()
    })
    .await;
    let mut client = tested.client().await;
    let requests: Vec<u8> = (0..51).flat_map(heartbeat).collect();
    client.send(&requests).await;
    for id in 0..25 {
        let (first, second) = (tested.slot().await, tested.slot().await);
        tested.until(|shared| shared.all()[0].waits()).await;
        assert!(tested.slots.try_recv().is_err());
        // Out of order, so that both must be answered.
        answer(second);
        answer(first);
        assert_eq!(client.heartbeat_answer().await, Some(2 * id));
        assert_eq!(client.heartbeat_answer().await, Some(2 * id + 1));
    }
}

#[tokio::test]
async fn when_memory_is_short_one_request_at_a_time_still_completes() {
    let mut tested = Tested::new(Limits {
        request_memory: 200 * 1024,
        ..Limits::default()
    })
    .await;
    let big = padded_heartbeat(MIB, 1);
    let address = tested.server.local_addr();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let big = big.clone();
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            for _ in 0..3 {
                client.send(&big).await;
                assert_eq!(client.heartbeat_answer().await, Some(1));
            }
        });
    }
    for _ in 0..18 {
        let slot = tested.slot().await;
        let used = 200 * 1024 - tested.server.shared.request_bytes.left();
        assert!(used < 4 * MIB as i64, "{used} bytes are held");
        answer(slot);
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    tested
        .until(|shared| shared.request_bytes.left() == 200 * 1024)
        .await;
}

#[tokio::test]
async fn a_client_that_goes_gives_back_the_memory_of_half_a_request() {
    let mut tested = Tested::new(Limits {
        request_memory: 200 * 1024,
        ..Limits::default()
    })
    .await;
    for _ in 0..3 {
        let mut client = tested.client().await;
        client.send(&padded_heartbeat(MIB, 1)[..600 * 1024]).await;
        tested
            .until(|shared| shared.overdraft.load(Ordering::Relaxed) > 0)
            .await;
        drop(client);
        tested
            .until(|shared| shared.request_bytes.left() == 200 * 1024)
            .await;
    }
    let mut client = tested.client().await;
    let big = padded_heartbeat(MIB, 1);
    let sending = tokio::spawn(async move {
        client.send(&big).await;
        client.heartbeat_answer().await
    });
    answer(tested.slot().await);
    assert_eq!(sending.await.unwrap(), Some(1));
}

#[tokio::test]
async fn who_holds_memory_and_sends_nothing_gives_way_when_it_is_short() {
    let mut tested = Tested::new(Limits {
        request_memory: 200 * 1024,
        ..Limits::default()
    })
    .await;
    let mut lazy = tested.client().await;
    lazy.send(&(50 * MIB as i32).to_be_bytes()).await;
    lazy.send(&vec![0; 300 * 1024]).await;
    tested
        .until(|shared| !shared.request_bytes.has_left())
        .await;
    let mut client = tested.client().await;
    client.send(&heartbeat(1)).await;
    tested
        .until(|shared| shared.request_bytes.is_waited_for())
        .await;
    tested.pass(Duration::from_secs(10));
    answer(tested.slot().await);
    assert_eq!(client.heartbeat_answer().await, Some(1));
    assert!(lazy.stream.read_u8().await.is_err());
}

#[tokio::test]
async fn a_graceful_stop_answers_what_was_taken_and_takes_no_more() {
    let mut tested = Tested::new(Limits::default()).await;
    let address = tested.server.local_addr();
    let mut idle = tested.client().await;
    let mut client = tested.client().await;
    client
        .send(&frame(&JoinGroupRequest::default(), 5, 1))
        .await;
    let join = tested.slot().await;
    tested.until(|shared| shared.all().len() == 2).await;
    let stopping = tokio::spawn(async move {
        tested.server.stop(Duration::from_secs(5)).await;
        tested.slots
    });
    assert!(idle.is_closed().await);
    client.send(&heartbeat(2)).await;
    answer(join);
    assert_eq!(client.answer(ApiKey::JOIN_GROUP, 5).await, Some(1));
    assert!(client.is_closed().await);
    drop((idle, client));
    let mut slots = stopping.await.unwrap();
    assert!(slots.try_recv().is_err(), "nothing is taken after the stop");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_graceful_stop_lets_a_handler_end() {
    let tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    let requests = [frame(&ListOffsetsRequest::default(), 7, 1), heartbeat(2)].concat();
    client.send(&requests).await;
    tested
        .until(|shared| {
            shared
                .all()
                .iter()
                .any(|one| one.standing().unanswered == 1)
        })
        .await;
    let may_end = tested.service.may_end.clone();
    let stopping = tokio::spawn(async move { tested.server.stop(Duration::from_secs(5)).await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    may_end.notify_one();
    assert_eq!(client.answer(ApiKey::LIST_OFFSETS, 7).await, Some(1));
    assert!(client.is_closed().await);
    drop(client);
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_longer_than_its_grace() {
    let mut tested = Tested::new(Limits::default()).await;
    let mut client = tested.client().await;
    client.send(&heartbeat(1)).await;
    let slot = tested.slot().await;
    tested.server.stop(Duration::ZERO).await;
    assert_eq!(tested.server.connections(), 0);
    assert!(slot.is_closed());
    answer(slot);
    assert!(client.stream.read_u8().await.is_err());
}

#[test]
fn complaints_are_counted_when_they_are_not_logged() {
    let clock = Clock::manual(0);
    let shared = Shared::new(Limits::default(), clock.clone(), Arc::new(NoMeter));
    assert_eq!(shared.may_complain(), Some(0));
    assert_eq!(shared.may_complain(), None);
    assert_eq!(shared.may_complain(), None);
    clock.advance(Duration::from_secs(1));
    assert_eq!(shared.may_complain(), Some(2));
}
