#![expect(clippy::disallowed_methods, reason = "the transcripts are files")]
//! Runs the scripts under `tests/transcripts/`. A script begins with `== <rules> <fact>`; a line that is not indented is
//! a command to a fresh coordinator, the indented lines below it are all that the command brings about. The commands
//! are the functions of [`World`]. `KAAS_TRANSCRIPTS=rewrite` writes what happened into the files: for a new script,
//! and then for a careful reader.
//!
//! After every command the journal so far is replayed onto documents, which must equal what the coordinator says it
//! holds, and every reply must be the first to its request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use kaas_coordinator::effect::{Effect, GroupRemovalReason, OffsetRemovalReason};
use kaas_coordinator::{
    Call, Change, ChangeKind, GroupConfig, GroupDocument, Manager, Now, Output, Reply, Request,
    Revision, Status, coordinator_error,
};
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use kaas_wire::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kaas_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kaas_wire::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponseGroup,
};
use kaas_wire::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use kaas_wire::{ErrorCode, Uuid};

const WALL_START_MS: i64 = 1_700_000_000_000;

#[test]
fn every_transcript_holds() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let rewrite = std::env::var("KAAS_TRANSCRIPTS").is_ok_and(|mode| mode == "rewrite");
    let mut failures = String::new();
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut rewritten = String::new();
        for script in scripts(&text) {
            let title = script.lines().next().unwrap_or_default().to_owned();
            if !title.starts_with("==") {
                rewritten.push_str(script);
                continue;
            }
            let actual = play(script);
            let told = actual.lines().any(|line| line.starts_with("  "));
            assert!(told, "{}: nothing is expected of {title:?}", file.display());
            assert!(
                names.insert(title.clone()),
                "{}: {title:?} is there twice",
                file.display()
            );
            if actual != script {
                let name = file.file_name().unwrap().to_string_lossy();
                writeln!(failures, "{name}: {title}\n{}", difference(script, &actual)).unwrap();
            }
            rewritten.push_str(&actual);
        }
        if rewrite && rewritten != text {
            std::fs::write(&file, rewritten).unwrap();
        }
    }
    assert!(names.len() > 50, "the transcripts are there");
    assert!(rewrite || failures.is_empty(), "\n{failures}");
}

/// What comes before the first title is the file's own comment.
fn scripts(text: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = text
        .match_indices("\n== ")
        .map(|(newline, _)| newline + 1)
        .collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| &text[start..end])
        .collect()
}

/// The script with what really happened in place of what it expects.
fn play(script: &str) -> String {
    let mut world = World::new();
    let mut actual = String::new();
    for line in script.lines() {
        if line.starts_with("  ") {
            continue;
        }
        actual.push_str(line);
        actual.push('\n');
        if line.is_empty() || line.starts_with("==") || line.starts_with('#') {
            continue;
        }
        world.command(line);
        for told in world.told.drain(..) {
            writeln!(actual, "  {told}").unwrap();
        }
    }
    actual
}

/// Common lines once; lines missing marked `-`, lines too many marked `+`.
fn difference(expected: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            writeln!(text, "    {}", old[i]).unwrap();
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            writeln!(text, "  - {}", old[i]).unwrap();
            i += 1;
        } else {
            writeln!(text, "  + {}", new[j]).unwrap();
            j += 1;
        }
    }
    text
}

struct World {
    manager: Manager<u32>,
    config: GroupConfig,
    now_ms: u64,
    out: Output<u32>,
    /// Who waits for which reply.
    asked: BTreeMap<u32, (String, i16)>,
    next_call: u32,
    next_fresh_id: u32,
    clients: BTreeMap<String, Client>,
    /// What the journal amounts to, and what of it is durable.
    disk: BTreeMap<String, (Revision, Option<GroupDocument>)>,
    durable_disk: BTreeMap<String, (Revision, Option<GroupDocument>)>,
    /// Whether every change is durable as soon as its command is over.
    durable_at_once: bool,
    last_change: u64,
    log: bool,
    /// Set while time passes.
    stamp: bool,
    told: Vec<String>,
}

#[derive(Default, Clone)]
struct Client {
    member_id: String,
    generation: i32,
}

/// `word word key=value key=value`
struct Args<'a> {
    words: Vec<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Args<'a> {
    fn parse(line: &'a str) -> Args<'a> {
        let mut args = Args {
            words: Vec::new(),
            named: BTreeMap::new(),
        };
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) => {
                    args.named.insert(key, value);
                }
                None => args.words.push(word),
            }
        }
        args
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.named.get(key).copied()
    }

    fn number<T: std::str::FromStr>(&self, key: &str, default: T) -> T {
        self.get(key).map_or(default, |value| {
            value
                .parse()
                .unwrap_or_else(|_| panic!("{key}={value} is no number"))
        })
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(unescape)
    }

    fn version(&self, default: i16) -> i16 {
        self.number("v", default)
    }

    fn group(&self) -> String {
        self.text("group").unwrap_or_else(|| "g".to_owned())
    }
}

/// `\s`, `\n` and `\0` for what a word cannot hold; `text*3` for `texttexttext`.
fn unescape(text: &str) -> String {
    let text = text
        .replace("\\s", " ")
        .replace("\\n", "\n")
        .replace("\\0", "\0");
    match text
        .rsplit_once('*')
        .map(|(part, times)| (part.to_owned(), times.parse::<usize>()))
    {
        Some((part, Ok(times))) => part.repeat(times),
        _ => text,
    }
}

fn milliseconds(text: &str) -> u64 {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        other => panic!("{other:?} is no unit of time"),
    };
    digits.parse::<u64>().unwrap() * unit
}

fn topic_id(text: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes[0] = text.parse().unwrap();
    Uuid::from_bytes(bytes)
}

impl World {
    fn new() -> World {
        let config = GroupConfig::default();
        let mut manager = Manager::new(config.clone());
        manager.set_term(1);
        World {
            manager,
            config,
            now_ms: 0,
            out: Output::default(),
            asked: BTreeMap::new(),
            next_call: 0,
            next_fresh_id: 0,
            clients: BTreeMap::new(),
            disk: BTreeMap::new(),
            durable_disk: BTreeMap::new(),
            durable_at_once: true,
            last_change: 0,
            log: false,
            stamp: false,
            told: Vec::new(),
        }
    }

    fn now(&self) -> Now {
        Now {
            mono_ms: self.now_ms,
            wall_ms: WALL_START_MS + self.now_ms as i64,
        }
    }

    fn command(&mut self, line: &str) {
        let args = Args::parse(line);
        match args.words[0] {
            "config" => self.configure(&args),
            "join" => self.join(&args),
            "sync" => self.sync(&args),
            "heartbeat" => self.heartbeat(&args),
            "leave" => self.leave(&args),
            "commit" => self.commit(&args),
            "delete-offsets" => self.delete_offsets(&args),
            "fetch" => self.fetch(&args),
            "describe" => self.describe(&args),
            "list" => self.list(&args),
            "delete" => self.delete(&args),
            "stable" => self.stable(&args),
            "after" => self.after(&args),
            "sweep" => {
                let now = self.now();
                self.manager.sweep_expired(now, &mut self.out);
            }
            "topic-deleted" => {
                let id = args.get("id").map_or(Uuid::ZERO, topic_id);
                self.manager.topic_deleted(args.words[1], id, &mut self.out);
            }
            "hold" => self.durable_at_once = false,
            "durable" => self.durable(),
            "fail" => self.fail(&args),
            "unload" => self.manager.unload(&args.group(), &mut self.out),
            "reload" => self.reload(&args),
            "file-gone" => self.manager.file_gone(&args.group()),
            "checkpoint" => self.manager.checkpoint(&args.group(), &mut self.out),
            "term" => self.manager.set_term(args.words[1].parse().unwrap()),
            "status" => self
                .told
                .push(format!("{:?}", self.manager.status(&args.group()))),
            "pending" => self
                .told
                .push(match self.manager.pending_change(&args.group()) {
                    Some(change) => format!("change {change} is not durable yet"),
                    None => "all is durable".to_owned(),
                }),
            "document" => self.document(&args),
            "states" => self
                .told
                .push(format!("{:?}", self.manager.groups_by_state())),
            "log" => self.log = true,
            other => panic!("no command {other:?}"),
        }
        self.tell();
        self.check();
    }

    fn configure(&mut self, args: &Args<'_>) {
        for (key, value) in &args.named {
            let number = || value.parse::<i32>().unwrap();
            match *key {
                "delay" => self.config.group_initial_rebalance_delay_ms = number(),
                "max" => self.config.group_max_size = number(),
                "min_session" => self.config.group_min_session_timeout_ms = number(),
                "max_session" => self.config.group_max_session_timeout_ms = number(),
                "metadata_max" => self.config.offset_metadata_max_bytes = number(),
                "retention_minutes" => self.config.offsets_retention_minutes = number(),
                "durable_membership" => {
                    self.config.kaas_group_membership_durable = value.parse().unwrap()
                }
                other => panic!("no setting {other:?}"),
            }
        }
        self.manager.set_config(self.config.clone());
    }

    /// A client of that name: its id, and what it knows from answers to it.
    fn client(&mut self, args: &Args<'_>) -> (String, Client) {
        let name = args.words.get(1).expect("a client").to_string();
        let client = self.clients.entry(name.clone()).or_default().clone();
        (name, client)
    }

    fn member_id(&self, args: &Args<'_>, client: &Client) -> String {
        match args.get("id") {
            Some(id) => self.named_id(id),
            None => client.member_id.clone(),
        }
    }

    /// `$a` is the id that client a has.
    fn named_id(&self, id: &str) -> String {
        match id.strip_prefix('$') {
            Some(name) => self.clients[name].member_id.clone(),
            None => unescape(id),
        }
    }

    fn call(&mut self, name: &str, version: i16, request: Request) {
        let group_id = request.group_id().to_owned();
        let refused = self.manager.check(version, &request).is_some();
        if !refused && !self.manager.is_loaded(&group_id) {
            assert!(
                !self.disk.contains_key(&group_id),
                "reload {group_id:?} first"
            );
            let now = self.now();
            self.manager
                .load(now, &group_id, None, &mut self.out)
                .unwrap();
        }
        let reply_to = self.next_call;
        self.next_call += 1;
        self.asked.insert(reply_to, (name.to_owned(), version));
        let fresh_id = (self.next_fresh_id + 1).to_string();
        if let Request::JoinGroup(join) = &request
            && join.member_id.is_empty()
        {
            self.next_fresh_id += 1;
        }
        let client_id = if name == "-" { "" } else { name };
        let call = Call {
            reply_to,
            version,
            client_id,
            client_host: "/127.0.0.1",
            fresh_id: &fresh_id,
            request,
        };
        let now = self.now();
        self.manager.handle(now, call, &mut self.out);
    }

    /// `join a v=9 id=… instance=… type=consumer protocols=range:t1+t2,roundrobin~raw session=10000 rebalance=60000`
    fn join(&mut self, args: &Args<'_>) {
        let (name, client) = self.client(args);
        let version = args.version(9);
        let protocols = args
            .get("protocols")
            .unwrap_or("range:t")
            .split(',')
            .filter(|p| !p.is_empty());
        let request = JoinGroupRequest {
            group_id: args.group(),
            session_timeout_ms: args.number("session", 10_000),
            rebalance_timeout_ms: args.number("rebalance", 60_000),
            member_id: self.member_id(args, &client),
            group_instance_id: args.text("instance"),
            protocol_type: args.text("type").unwrap_or_else(|| "consumer".to_owned()),
            protocols: protocols.map(protocol).collect(),
            reason: args.text("reason"),
        };
        self.call(&name, version, Request::JoinGroup(request));
    }

    /// `sync a v=5 id=… gen=… instance=… type=… name=… assign=a:p0,b:p1`, where `type=null` sends none.
    fn sync(&mut self, args: &Args<'_>) {
        let (name, client) = self.client(args);
        let version = args.version(5);
        let assignments = args
            .get("assign")
            .unwrap_or("")
            .split(',')
            .filter(|a| !a.is_empty());
        let assignments = assignments.map(|assignment| {
            let (member, text) = assignment.split_once(':').expect("assign=member:text");
            let known = self
                .clients
                .get(member)
                .map(|client| client.member_id.clone());
            SyncGroupRequestAssignment {
                member_id: known.unwrap_or_else(|| member.to_owned()),
                assignment: Bytes::from(unescape(text)),
            }
        });
        let assignments = assignments.collect();
        let nullable = |key: &str, default: &str| match args.get(key) {
            Some("null") => None,
            Some(value) => Some(value.to_owned()),
            None => (version >= 5).then(|| default.to_owned()),
        };
        let request = SyncGroupRequest {
            group_id: args.group(),
            generation_id: args.number("gen", client.generation),
            member_id: self.member_id(args, &client),
            group_instance_id: args.text("instance"),
            protocol_type: nullable("type", "consumer"),
            protocol_name: nullable("name", "range"),
            assignments,
        };
        self.call(&name, version, Request::SyncGroup(request));
    }

    /// `heartbeat a v=4 id=… gen=… instance=…`
    fn heartbeat(&mut self, args: &Args<'_>) {
        let (name, client) = self.client(args);
        let request = HeartbeatRequest {
            group_id: args.group(),
            generation_id: args.number("gen", client.generation),
            member_id: self.member_id(args, &client),
            group_instance_id: args.text("instance"),
        };
        self.call(&name, args.version(4), Request::Heartbeat(request));
    }

    /// `leave a v=5 id=…`, or `leave a members=id/instance,/instance,$b`
    fn leave(&mut self, args: &Args<'_>) {
        let (name, client) = self.client(args);
        let version = args.version(5);
        let member_id = self.member_id(args, &client);
        let members = match args.get("members") {
            Some(members) => members.split(',').filter(|m| !m.is_empty()).collect(),
            None => vec![],
        };
        let mut members: Vec<MemberIdentity> = members
            .into_iter()
            .map(|member| {
                let (id, instance_id) = match member.split_once('/') {
                    Some((id, instance_id)) => (id, Some(instance_id.to_owned())),
                    None => (member, None),
                };
                MemberIdentity {
                    member_id: self.named_id(id),
                    group_instance_id: instance_id,
                    reason: args.text("reason"),
                }
            })
            .collect();
        if args.get("members").is_none() && version >= 3 {
            members.push(MemberIdentity {
                member_id: member_id.clone(),
                group_instance_id: args.text("instance"),
                reason: args.text("reason"),
            });
        }
        let request = LeaveGroupRequest {
            group_id: args.group(),
            member_id,
            members,
        };
        self.call(&name, version, Request::LeaveGroup(request));
    }

    /// `commit a t:0=100,u:1=7 v=9 gen=… id=… instance=… epoch=… meta=… retention=… topic_id=…`. A client without a
    /// member id commits without a generation.
    fn commit(&mut self, args: &Args<'_>) {
        let (name, client) = self.client(args);
        let generation = if client.member_id.is_empty() {
            -1
        } else {
            client.generation
        };
        let mut topics: Vec<OffsetCommitRequestTopic> = Vec::new();
        for (key, value) in &args.named {
            let Some((topic, partition)) = key.split_once(':') else {
                continue;
            };
            let (offset, metadata) = match value.split_once('/') {
                Some((offset, metadata)) => (offset, Some(unescape(metadata))),
                None => (*value, args.text("meta")),
            };
            let partition = OffsetCommitRequestPartition {
                partition_index: partition.parse().unwrap(),
                committed_offset: offset.parse().unwrap(),
                committed_leader_epoch: args.number("epoch", -1),
                committed_metadata: metadata,
            };
            match topics.iter_mut().find(|known| known.name == *topic) {
                Some(known) => known.partitions.push(partition),
                None => topics.push(OffsetCommitRequestTopic {
                    name: topic.to_string(),
                    topic_id: args.get("topic_id").map_or(Uuid::ZERO, topic_id),
                    partitions: vec![partition],
                }),
            }
        }
        let request = OffsetCommitRequest {
            group_id: args.group(),
            generation_id_or_member_epoch: args.number("gen", generation),
            member_id: self.member_id(args, &client),
            group_instance_id: args.text("instance"),
            retention_time_ms: args.number("retention", -1),
            topics,
        };
        self.call(&name, args.version(9), Request::OffsetCommit(request));
    }

    /// `delete-offsets admin t:0 t:1 u:0`
    fn delete_offsets(&mut self, args: &Args<'_>) {
        let mut topics: Vec<OffsetDeleteRequestTopic> = Vec::new();
        for word in &args.words[2..] {
            let (topic, partition) = word.split_once(':').expect("topic:partition");
            let partition = OffsetDeleteRequestPartition {
                partition_index: partition.parse().unwrap(),
            };
            match topics.iter_mut().find(|known| known.name == topic) {
                Some(known) => known.partitions.push(partition),
                None => topics.push(OffsetDeleteRequestTopic {
                    name: topic.to_owned(),
                    partitions: vec![partition],
                }),
            }
        }
        let request = OffsetDeleteRequest {
            group_id: args.group(),
            topics,
        };
        self.call(args.words[1], 0, Request::OffsetDelete(request));
    }

    /// `fetch t:0 t:1 v=8`, `fetch all`, with `stable=true` and `topic_id=…`
    fn fetch(&mut self, args: &Args<'_>) {
        let topics = match &args.words[1..] {
            ["all"] => None,
            words => {
                let mut topics: Vec<OffsetFetchRequestTopics> = Vec::new();
                for word in words {
                    let (topic, partition) = word.split_once(':').expect("topic:partition");
                    let partition = partition.parse().unwrap();
                    match topics.iter_mut().find(|known| known.name == topic) {
                        Some(known) => known.partition_indexes.push(partition),
                        None => topics.push(OffsetFetchRequestTopics {
                            name: topic.to_owned(),
                            topic_id: args.get("topic_id").map_or(Uuid::ZERO, topic_id),
                            partition_indexes: vec![partition],
                        }),
                    }
                }
                Some(topics)
            }
        };
        let request = OffsetFetchRequestGroup {
            group_id: args.group(),
            member_id: args.text("id"),
            member_epoch: args.number("epoch", -1),
            topics,
        };
        let response =
            self.manager
                .fetch_offsets(&request, args.number("stable", false), args.version(9));
        self.told.push(fetched(&response));
    }

    /// `describe v=5 operations=true`
    fn describe(&mut self, args: &Args<'_>) {
        let group = self.manager.describe(
            &args.group(),
            args.version(5),
            args.number("operations", false),
        );
        assert_eq!(group.group_id, args.group());
        let mut line = format!(
            "{} state={} type={:?} protocol={:?}",
            error(group.error_code),
            group.group_state,
            group.protocol_type,
            group.protocol_data
        );
        if group.authorized_operations != i32::MIN {
            write!(line, " operations={}", group.authorized_operations).unwrap();
        }
        if let Some(message) = group.error_message {
            write!(line, " message={message:?}").unwrap();
        }
        self.told.push(line);
        for member in group.members {
            self.told.push(format!(
                "- {} client={} host={} metadata={} assignment={:?}",
                with_instance(&member.member_id, member.group_instance_id.as_deref()),
                member.client_id,
                member.client_host,
                metadata(&member.member_metadata),
                String::from_utf8_lossy(&member.member_assignment)
            ));
        }
    }

    /// `list states=empty,\sStable types=classic`
    fn list(&mut self, args: &Args<'_>) {
        let filter = |key: &str| match args.get(key) {
            Some(filter) => filter.split(',').map(unescape).collect(),
            None => Vec::new(),
        };
        for group in self.manager.list(&filter("states"), &filter("types")) {
            self.told.push(format!(
                "{:?} type={:?} {} {}",
                group.group_id, group.protocol_type, group.group_state, group.group_type
            ));
        }
        if self.told.is_empty() {
            self.told.push("no group".to_owned());
        }
    }

    fn delete(&mut self, args: &Args<'_>) {
        let code = self.manager.delete_group(&args.group(), &mut self.out);
        self.told.push(error(code));
    }

    /// `stable a b/instance`: these join in this order, wait and sync, each assigned `<name>'s`.
    fn stable(&mut self, args: &Args<'_>) {
        let rest: Vec<String> = args
            .named
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let rest = rest.join(" ");
        let names: Vec<&str> = args.words[1..].to_vec();
        for member in &names {
            match member.split_once('/') {
                Some((name, instance)) => {
                    self.silently(&format!("join {name} id= instance={instance} {rest}"));
                }
                None => {
                    self.silently(&format!("join {member} id= {rest}"));
                    if args.version(9) >= 4 {
                        self.silently(&format!("join {member} {rest}"));
                    }
                }
            }
        }
        self.silently(&format!(
            "after {}ms",
            self.config.group_initial_rebalance_delay_ms
        ));
        if names.len() > 1 {
            self.silently(&format!(
                "after {}ms",
                self.config.group_initial_rebalance_delay_ms
            ));
        }
        let names: Vec<&str> = names
            .iter()
            .map(|member| member.split('/').next().unwrap())
            .collect();
        let assign: Vec<String> = names
            .iter()
            .map(|name| format!("{name}:{name}'s"))
            .collect();
        let (group, kind) = (args.group(), args.get("type").unwrap_or("consumer"));
        for name in &names {
            let assign = assign.join(",");
            self.silently(&format!(
                "sync {name} v=4 group={group} type={kind} assign={assign}"
            ));
        }
        let generation = self.clients[names[0]].generation;
        let ids = names
            .iter()
            .map(|name| self.clients[*name].member_id.as_str());
        let ids = ids.collect::<Vec<_>>().join(" ");
        self.told.push(format!(
            "generation {generation} of {ids}, led by {}",
            names[0]
        ));
    }

    fn silently(&mut self, line: &str) {
        self.command(line);
        self.told.clear();
    }

    /// `after 3s`: time passes, timers fire at their moments.
    fn after(&mut self, args: &Args<'_>) {
        let end = self.now_ms + milliseconds(args.words[1]);
        self.stamp = true;
        let mut steps = 0;
        while let Some(deadline) = self
            .manager
            .next_timeout()
            .filter(|deadline| *deadline <= end)
        {
            self.now_ms = self.now_ms.max(deadline);
            let now = self.now();
            self.manager.handle_timeout(now, &mut self.out);
            self.tell();
            self.check();
            steps += 1;
            assert!(steps < 10_000, "time stands still");
        }
        self.stamp = false;
        self.now_ms = end;
    }

    fn durable(&mut self) {
        self.manager.durable(self.last_change);
        self.durable_disk = self.disk.clone();
    }

    /// `fail error=56`: what was not durable is lost, or with `found=true` turns out to be in the journal after all;
    /// the group is loaded again and what it is now is journaled anew.
    fn fail(&mut self, args: &Args<'_>) {
        let group_id = args.group();
        let code = ErrorCode(args.number("error", 56));
        self.manager.append_failed(&group_id, code, &mut self.out);
        self.told.push(format!(
            "the failed answers say {}",
            error(coordinator_error(code))
        ));
        self.tell();
        if !args.number("found", false) {
            self.disk = self.durable_disk.clone();
        }
        self.reload(args);
        self.manager.checkpoint(&group_id, &mut self.out);
    }

    /// The group leaves memory and comes back from its journal, by way of its JSON.
    fn reload(&mut self, args: &Args<'_>) {
        let group_id = args.group();
        self.manager.unload(&group_id, &mut self.out);
        let document = self
            .disk
            .get(&group_id)
            .and_then(|(_, document)| document.clone());
        let document =
            document.map(|document| GroupDocument::from_json(&document.to_json()).unwrap());
        let now = self.now();
        self.manager
            .load(now, &group_id, document, &mut self.out)
            .unwrap();
    }

    fn document(&mut self, args: &Args<'_>) {
        match self.manager.document(&args.group()) {
            Some(document) => {
                let json = String::from_utf8(document.to_json()).unwrap();
                self.told.extend(json.lines().map(str::to_owned));
            }
            None => self.told.push("none".to_owned()),
        }
    }

    /// Moves what the core put out into lines.
    fn tell(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        let stamp = if self.stamp {
            format!("@{} ", self.now_ms)
        } else {
            String::new()
        };
        for effect in out.effects.drain(..) {
            if self.log {
                self.told.push(format!("{stamp}log: {}", logged(&effect)));
            }
        }
        for change in out.changes.drain(..) {
            self.last_change = change.number;
            let group_id = match change.group_id.len() {
                0..=40 => format!("{:?}", change.group_id),
                len => format!("a name of {len} bytes"),
            };
            self.told.push(format!(
                "{stamp}#{} {:?} of {group_id}, revision {}.{}",
                change.number, change.kind, change.revision.term, change.revision.n
            ));
            self.store(change);
        }
        for (reply_to, reply, wait) in out.replies.drain(..) {
            let asked = self.asked.remove(&reply_to);
            let (name, version) = asked.expect("a reply answers a request that waits for it");
            let wait = wait.map_or(String::new(), |change| format!(" after #{change}"));
            self.told
                .push(format!("{stamp}{name}: {}{wait}", replied(version, &reply)));
            self.learn(&name, &reply);
        }
        if self.durable_at_once {
            self.durable();
        }
        self.out = out;
    }

    fn learn(&mut self, name: &str, reply: &Reply) {
        if let Reply::JoinGroup(response) = reply
            && !response.member_id.is_empty()
            && (response.error_code.is_ok() || response.error_code == ErrorCode::MEMBER_ID_REQUIRED)
        {
            let client = self.clients.entry(name.to_owned()).or_default();
            client.member_id = response.member_id.clone();
            if response.error_code.is_ok() {
                client.generation = response.generation_id;
            }
        }
    }

    fn store(&mut self, change: Change) {
        let key = change.group_id.as_ref().to_owned();
        let last = self.disk.get(&key).map(|(revision, _)| *revision);
        assert!(
            last.is_none_or(|last| last < change.revision),
            "revisions rise"
        );
        let document = match change.kind {
            ChangeKind::Document => {
                let document = GroupDocument::from_json(&change.payload).unwrap();
                assert_eq!(document.revision, change.revision);
                Some(document)
            }
            ChangeKind::Offsets => {
                let held = self.disk.remove(&key).and_then(|(_, document)| document);
                let mut document = held.expect("a delta follows a document");
                document.apply(change.revision, &change.payload).unwrap();
                Some(document)
            }
            ChangeKind::Removed => None,
        };
        self.disk.insert(key, (change.revision, document));
    }

    /// The journal replayed is what the core holds.
    fn check(&self) {
        for (group_id, (revision, stored)) in &self.disk {
            match self.manager.status(group_id) {
                Status::Present => {
                    let mut stored = stored.clone().expect("a group that is there is stored");
                    let held = self.manager.document(group_id).unwrap();
                    assert_eq!(stored.revision, *revision);
                    if !self.config.kaas_group_membership_durable {
                        stored.state = held.state.clone();
                    }
                    assert_eq!(stored, held, "the journal and memory agree on {group_id:?}");
                }
                Status::Removed | Status::Absent => assert!(stored.is_none()),
                Status::NotLoaded => {}
            }
        }
    }
}

fn protocol(text: &str) -> JoinGroupRequestProtocol {
    let (name, metadata) = match text.split_once('~') {
        Some((name, raw)) => (name, Bytes::from(unescape(raw))),
        None => {
            let (name, topics) = text.split_once(':').unwrap_or((text, "t"));
            (name, subscription(topics))
        }
    };
    JoinGroupRequestProtocol {
        name: name.to_owned(),
        metadata,
    }
}

fn subscription(topics: &str) -> Bytes {
    let topics: Vec<&str> = topics
        .split('+')
        .filter(|topic| !topic.is_empty())
        .collect();
    let mut bytes = vec![0, 0];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in &topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend((-1i32).to_be_bytes());
    bytes.into()
}

/// The topics of what [`subscription`] made; other bytes as they are.
fn metadata(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "none".to_owned();
    }
    let mut topics = Vec::new();
    let mut rest = bytes.get(6..).unwrap_or_default();
    while let Some((len, more)) = rest.split_at_checked(2) {
        let len = usize::from(u16::from_be_bytes([len[0], len[1]]));
        let Some((topic, more)) = more.split_at_checked(len) else {
            break;
        };
        topics.push(String::from_utf8_lossy(topic).into_owned());
        rest = more;
    }
    let topics = topics.join("+");
    if subscription(&topics) == bytes {
        topics
    } else {
        format!("~{}", bytes.escape_ascii())
    }
}

fn error(code: ErrorCode) -> String {
    if code.is_ok() {
        "ok".to_owned()
    } else {
        format!("{code}({})", code.0)
    }
}

fn with_instance(member_id: &str, instance_id: Option<&str>) -> String {
    match instance_id {
        Some(instance_id) => format!("{member_id}/{instance_id}"),
        None => member_id.to_owned(),
    }
}

fn replied(version: i16, reply: &Reply) -> String {
    match reply {
        Reply::JoinGroup(response) => {
            let name = match response.protocol_name.as_deref() {
                Some(name) => format!("{name:?}"),
                None => "null".to_owned(),
            };
            if !response.error_code.is_ok() {
                assert_eq!((response.generation_id, response.leader.as_str()), (-1, ""));
                assert!(response.members.is_empty() && !response.skip_assignment);
                assert_eq!(response.protocol_type, None);
                return format!(
                    "join {} id={:?} protocol={name}",
                    error(response.error_code),
                    response.member_id
                );
            }
            let mut line = format!(
                "joined generation {} as {}, leader {}, {}/{name}",
                response.generation_id,
                response.member_id,
                response.leader,
                response.protocol_type.as_deref().unwrap_or("null"),
            );
            let members = response.members.iter().map(|member| {
                let id = with_instance(&member.member_id, member.group_instance_id.as_deref());
                format!("{id}:{}", metadata(&member.metadata))
            });
            let members = members.collect::<Vec<_>>().join(" ");
            if !members.is_empty() {
                write!(line, ", members [{members}]").unwrap();
            }
            if response.skip_assignment {
                line.push_str(", skip assignment");
            }
            line
        }
        Reply::SyncGroup(response) if response.error_code.is_ok() => format!(
            "synced {:?} {}/{}",
            String::from_utf8_lossy(&response.assignment),
            response.protocol_type.as_deref().unwrap_or("null"),
            response.protocol_name.as_deref().unwrap_or("null"),
        ),
        Reply::SyncGroup(response) => {
            assert!(response.assignment.is_empty());
            assert_eq!(
                (&response.protocol_type, &response.protocol_name),
                (&None, &None)
            );
            format!("sync {}", error(response.error_code))
        }
        Reply::Heartbeat(response) => format!("heartbeat {}", error(response.error_code)),
        Reply::LeaveGroup(response) => {
            assert!(version >= 3 || response.members.is_empty());
            let members = response.members.iter().map(|member| {
                let id = with_instance(&member.member_id, member.group_instance_id.as_deref());
                format!(" {id:?}={}", error(member.error_code))
            });
            format!(
                "leave {}{}",
                error(response.error_code),
                members.collect::<String>()
            )
        }
        Reply::OffsetCommit(response) => {
            let topics = response.topics.iter().flat_map(|topic| {
                topic.partitions.iter().map(|partition| {
                    let error = error(partition.error_code);
                    format!(" {}:{}={error}", topic.name, partition.partition_index)
                })
            });
            format!("commit{}", topics.collect::<String>())
        }
        Reply::OffsetDelete(response) => {
            let topics = response.topics.iter().flat_map(|topic| {
                topic.partitions.iter().map(|partition| {
                    let error = error(partition.error_code);
                    format!(" {}:{}={error}", topic.name, partition.partition_index)
                })
            });
            format!(
                "delete-offsets {}{}",
                error(response.error_code),
                topics.collect::<String>()
            )
        }
    }
}

fn fetched(response: &OffsetFetchResponseGroup) -> String {
    let mut line = error(response.error_code);
    for topic in &response.topics {
        for partition in &topic.partitions {
            write!(
                line,
                " {}:{}={}",
                topic.name, partition.partition_index, partition.committed_offset
            )
            .unwrap();
            if partition.committed_leader_epoch != -1 {
                write!(line, " epoch {}", partition.committed_leader_epoch).unwrap();
            }
            match partition.metadata.as_deref() {
                Some("") => {}
                Some(text) if text.len() > 20 => {
                    write!(line, " metadata {} bytes", text.len()).unwrap()
                }
                other => write!(line, " metadata {other:?}").unwrap(),
            }
            if !partition.error_code.is_ok() {
                write!(line, " {}", error(partition.error_code)).unwrap();
            }
        }
    }
    line
}

fn logged(effect: &Effect) -> String {
    let names = |ids: &[std::sync::Arc<str>]| {
        ids.iter()
            .map(|id| id.as_ref().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    match effect {
        Effect::GroupCreated { group_id } => format!("group {group_id} is there"),
        Effect::MemberAdded {
            member_id,
            instance_id,
            client_host,
            members,
            ..
        } => {
            let member = with_instance(member_id, instance_id.as_deref());
            format!("{member} from {client_host} is in, {members} members")
        }
        Effect::MemberRemoved {
            member_id,
            instance_id,
            reason,
            members,
            ..
        } => {
            let member = with_instance(member_id, instance_id.as_deref());
            format!("{member} is out: {reason}, {members} members")
        }
        Effect::StaticMemberReplaced {
            instance_id,
            old_member_id,
            new_member_id,
            ..
        } => {
            format!("{instance_id} is {new_member_id} instead of {old_member_id}")
        }
        Effect::RebalanceStarted {
            generation,
            reason,
            client_reason,
            members,
            waiting_for,
            waiting_count,
            timeout_ms,
            ..
        } => {
            let client_reason = client_reason.as_ref().map(|text| format!(" ({text})"));
            format!(
                "rebalance of generation {generation}, {}: {reason}{}; of {members} members waits up to {timeout_ms} ms for {waiting_count} [{}]",
                reason.label(),
                client_reason.unwrap_or_default(),
                names(waiting_for)
            )
        }
        Effect::GenerationFormed {
            generation,
            protocol,
            leader,
            members,
            ..
        } => {
            format!("generation {generation} of {members} members, {protocol}, led by {leader}")
        }
        Effect::RebalanceComplete {
            generation,
            members,
            took_ms,
            ..
        } => {
            format!("generation {generation} of {members} members is stable after {took_ms} ms")
        }
        Effect::GroupEmptied { generation, .. } => format!("empty at generation {generation}"),
        Effect::GroupLoaded {
            generation,
            members,
            offsets,
            ..
        } => {
            format!(
                "loaded at generation {generation} with {members} members and {offsets} offsets"
            )
        }
        Effect::GroupRemoved { group_id, reason } => match reason {
            GroupRemovalReason::Deleted => format!("group {group_id} is deleted"),
            GroupRemovalReason::Expired => format!("group {group_id} has expired"),
        },
        Effect::OffsetsRemoved { count, reason, .. } => match reason {
            OffsetRemovalReason::Expired => format!("{count} offsets have expired"),
            OffsetRemovalReason::Deleted => format!("{count} offsets are deleted"),
            OffsetRemovalReason::TopicDeleted => {
                format!("{count} offsets are gone with their topic")
            }
        },
    }
}
