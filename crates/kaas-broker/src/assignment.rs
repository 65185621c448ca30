//! `assignment.json`: the versioned table of who owns what, and the trait through which ownership of groups is asked.
//!
//! Written by the controller only (`controller.rs`), read by brokers and by people with `jq`. What a version means for
//! one group is decided in `coordinator.rs`.

use std::fmt::Write as _;

use fnv::FnvHashMap;
use kaas_wire::Uuid;
use serde::{Deserialize, Serialize};

/// Where the table lives on the volume.
pub const ASSIGNMENT_PATH: &str = "__cluster/assignment.json";

/// One version of the table. `version` carries the controller's epoch in its high half, so versions never go back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub version: u64,
    pub controller_epoch: u32,
    pub cluster_id: String,
    /// The node id of the controller that wrote this version.
    pub controller: i32,
    /// The full set, sorted by id: draining and dead brokers stay until they are unregistered.
    pub brokers: Vec<BrokerEntry>,
    pub partitions: Vec<PartitionEntry>,
    /// Explicit owners; they win over the hash while their broker is alive.
    #[serde(rename = "consumerGroups")]
    pub consumer_groups: Vec<GroupEntry>,
    /// Journals of dead sessions that whoever gained their keys must absorb.
    pub journals: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerEntry {
    pub id: i32,
    pub host: String,
    pub port: u16,
    pub session: String,
    pub state: BrokerState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BrokerState {
    Alive,
    Draining,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionEntry {
    pub topic: String,
    pub topic_id: String,
    pub partition: i32,
    pub leader: i32,
    pub leader_epoch: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEntry {
    pub group: String,
    pub broker: i32,
}

impl Assignment {
    /// The first version a controller of `epoch` may publish.
    pub fn first_version(epoch: u32) -> u64 {
        u64::from(epoch) << 32
    }

    /// The file's text: one broker, partition, group or journal a line, so that a diff of two versions says what moved.
    pub fn to_json(&self) -> String {
        let mut text = String::with_capacity(256 + self.partitions.len() * 112);
        text.push_str("{\n");
        let _ = writeln!(text, "  \"version\": {},", self.version);
        let _ = writeln!(text, "  \"controller_epoch\": {},", self.controller_epoch);
        let _ = writeln!(text, "  \"cluster_id\": {},", json(&self.cluster_id));
        let _ = writeln!(text, "  \"controller\": {},", self.controller);
        lines(&mut text, "brokers", &self.brokers, ",");
        lines(&mut text, "partitions", &self.partitions, ",");
        lines(&mut text, "consumerGroups", &self.consumer_groups, ",");
        lines(&mut text, "journals", &self.journals, "");
        text.push_str("}\n");
        text
    }

    /// Parses the file; the error names the line and column.
    pub fn from_json(text: &[u8]) -> Result<Assignment, serde_json::Error> {
        serde_json::from_slice(text)
    }

    pub fn broker(&self, id: i32) -> Option<&BrokerEntry> {
        self.brokers.iter().find(|broker| broker.id == id)
    }
}

fn lines<T: Serialize>(text: &mut String, name: &str, entries: &[T], end: &str) {
    let _ = write!(text, "  \"{name}\": [");
    for (at, entry) in entries.iter().enumerate() {
        text.push_str(if at == 0 { "\n    " } else { ",\n    " });
        text.push_str(&json(entry));
    }
    text.push_str(if entries.is_empty() { "]" } else { "\n  ]" });
    text.push_str(end);
    text.push('\n');
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("strings and integers always serialise")
}

/// What one assignment says about brokers and partition leaders, laid out for look-ups. Handlers read it through an
/// `ArcSwap`.
#[derive(Clone, Debug, Default)]
pub struct ClusterView {
    pub version: u64,
    pub cluster_id: String,
    pub controller_id: i32,
    pub brokers: Vec<BrokerEntry>,
    leaders: FnvHashMap<(Uuid, i32), Leader>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    pub id: i32,
    pub epoch: i32,
}

impl ClusterView {
    /// Entries whose topic id does not parse are left out: such a partition has no leader.
    pub fn of(assignment: &Assignment) -> ClusterView {
        let leaders = assignment.partitions.iter().filter_map(|entry| {
            let topic_id = entry.topic_id.parse().ok()?;
            let leader = Leader {
                id: entry.leader,
                epoch: entry.leader_epoch,
            };
            Some(((topic_id, entry.partition), leader))
        });
        ClusterView {
            version: assignment.version,
            cluster_id: assignment.cluster_id.clone(),
            controller_id: assignment.controller,
            brokers: assignment.brokers.clone(),
            leaders: leaders.collect(),
        }
    }

    pub fn leader(&self, topic_id: Uuid, partition: i32) -> Option<Leader> {
        self.leaders.get(&(topic_id, partition)).copied()
    }

    /// Brokers that clients may be sent to.
    pub fn alive(&self) -> impl Iterator<Item = &BrokerEntry> {
        self.brokers
            .iter()
            .filter(|broker| broker.state != BrokerState::Dead)
    }

    pub fn broker(&self, id: i32) -> Option<&BrokerEntry> {
        self.brokers.iter().find(|broker| broker.id == id)
    }
}

/// Who coordinates a group, as far as this broker knows. Swapped whole at every assignment.
pub trait GroupAssignmentSource: Send + Sync {
    /// The broker that coordinates the group or transactional id; `None` when nobody is alive or nothing is known yet.
    fn coordinator(&self, key: &str) -> Option<i32>;

    /// Whether this broker is that one.
    fn owns_group(&self, group: &str) -> bool;

    /// The assignment version under which groups may be served; `None` while nothing was granted. Routing is not
    /// serving: a source may route everything here and grant nothing.
    fn grant(&self) -> Option<u64>;

    /// A fingerprint of who coordinates what: while it stays, a new version moves no group.
    fn routing(&self) -> u64;

    /// Whether this version names journals of dead sessions.
    fn journals_named(&self) -> bool;
}

/// The source at boot: everything routes here and nothing may be served.
pub struct NotYetAssigned {
    pub node_id: i32,
}

impl GroupAssignmentSource for NotYetAssigned {
    fn coordinator(&self, _key: &str) -> Option<i32> {
        Some(self.node_id)
    }

    fn owns_group(&self, _group: &str) -> bool {
        true
    }

    fn grant(&self) -> Option<u64> {
        None
    }

    fn routing(&self) -> u64 {
        0
    }

    fn journals_named(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_reads_back_as_it_was_written_one_entry_a_line() {
        let assignment = Assignment {
            version: Assignment::first_version(3) + 7,
            controller_epoch: 3,
            cluster_id: "c\"1".into(),
            controller: 1,
            brokers: vec![BrokerEntry {
                id: 1,
                host: "127.0.0.1".into(),
                port: 9092,
                session: "b1.x".into(),
                state: BrokerState::Alive,
            }],
            partitions: (0..2)
                .map(|partition| PartitionEntry {
                    topic: "t".into(),
                    topic_id: "AAAAAAAAAAAAAAAAAAAAAQ".into(),
                    partition,
                    leader: 1,
                    leader_epoch: 4,
                })
                .collect(),
            consumer_groups: vec![GroupEntry {
                group: "orders\n".into(),
                broker: 1,
            }],
            journals: vec![],
        };
        let text = assignment.to_json();
        assert_eq!(Assignment::from_json(text.as_bytes()).unwrap(), assignment);
        assert!(text.contains("\n    {\"group\":\"orders\\n\",\"broker\":1}\n"));
        assert!(text.contains("\"journals\": []\n"));
    }

    #[test]
    fn at_boot_everything_routes_here_and_nothing_is_granted() {
        let boot = NotYetAssigned { node_id: 4 };
        assert!(boot.owns_group("any"));
        assert_eq!(boot.coordinator("any"), Some(4));
        assert_eq!(boot.grant(), None);
    }
}
