//! Two-tier ownership of groups and transactional ids, and the actor that runs the coordination core.
//!
//! `Coordinator` is the only answer to "who coordinates this group": FindCoordinator, every group API, the takeover and
//! the sweep ask it. The core itself (`kaas-coordinator`) never knows who owns what.

pub mod actor;
mod behind;
mod facts;
mod files;
pub mod recovery;
mod unsettled;
mod waiter;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use fnv::{FnvHashMap, FnvHasher};

use crate::assignment::{Assignment, BrokerState, GroupAssignmentSource};
use crate::group_hash::{self, Slot};

/// Ownership under one version of the assignment.
pub struct Coordinator {
    node_id: i32,
    version: u64,
    slots: Vec<Slot>,
    explicit: FnvHashMap<String, i32>,
    routing: u64,
    journals_named: bool,
}

impl Coordinator {
    pub fn new(node_id: i32, assignment: Arc<Assignment>) -> Coordinator {
        let slots: Vec<Slot> = assignment
            .brokers
            .iter()
            .map(|broker| Slot {
                id: broker.id,
                alive: broker.state == BrokerState::Alive,
            })
            .collect();
        let explicit: FnvHashMap<String, i32> = assignment
            .consumer_groups
            .iter()
            .filter(|entry| {
                slots
                    .iter()
                    .any(|slot| slot.id == entry.broker && slot.alive)
            })
            .map(|entry| (entry.group.clone(), entry.broker))
            .collect();
        Coordinator {
            node_id,
            version: assignment.version,
            routing: fingerprint(&slots, &assignment),
            journals_named: !assignment.journals.is_empty(),
            slots,
            explicit,
        }
    }
}

/// Equal for two versions that route alike; may differ for some that do.
fn fingerprint(slots: &[Slot], assignment: &Assignment) -> u64 {
    let mut hasher = FnvHasher::default();
    for slot in slots {
        (slot.id, slot.alive).hash(&mut hasher);
    }
    for entry in &assignment.consumer_groups {
        (&entry.group, entry.broker).hash(&mut hasher);
    }
    hasher.finish()
}

impl GroupAssignmentSource for Coordinator {
    fn coordinator(&self, key: &str) -> Option<i32> {
        match self.explicit.get(key) {
            Some(broker) => Some(*broker),
            None => group_hash::broker_of(key, &self.slots),
        }
    }

    fn owns_group(&self, group: &str) -> bool {
        self.coordinator(group) == Some(self.node_id)
    }

    fn grant(&self) -> Option<u64> {
        Some(self.version)
    }

    fn routing(&self) -> u64 {
        self.routing
    }

    fn journals_named(&self) -> bool {
        self.journals_named
    }
}
