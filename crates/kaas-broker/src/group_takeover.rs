//! What a new assignment means for the groups this broker holds: pure.
//!
//! A group leaves when the assignment in force does not route it here, whatever the difference to the version before
//! says: the sweep over *all* local groups is the diff. Gained groups are not moved; the first request loads them.

use crate::assignment::GroupAssignmentSource;

/// The groups among `local` (everything in memory, unfiltered) that `next` routes elsewhere, in order.
pub fn leaving<'a>(
    local: impl IntoIterator<Item = &'a str>,
    next: &dyn GroupAssignmentSource,
) -> Vec<String> {
    local
        .into_iter()
        .filter(|group| !next.owns_group(group))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::{Assignment, BrokerEntry, BrokerState, GroupEntry};
    use crate::coordinator::Coordinator;
    use std::sync::Arc;

    fn assignment(states: &[BrokerState], explicit: &[(&str, i32)]) -> Arc<Assignment> {
        Arc::new(Assignment {
            version: 1,
            brokers: states
                .iter()
                .enumerate()
                .map(|(id, state)| BrokerEntry {
                    id: id as i32,
                    host: "127.0.0.1".into(),
                    port: 1,
                    session: format!("b{id}.x"),
                    state: *state,
                })
                .collect(),
            consumer_groups: explicit
                .iter()
                .map(|(group, broker)| GroupEntry {
                    group: (*group).into(),
                    broker: *broker,
                })
                .collect(),
            ..Assignment::default()
        })
    }

    #[test]
    fn the_sweep_never_evicts_a_group_the_hash_still_routes_here() {
        use BrokerState::{Alive, Dead};
        let next = Coordinator::new(0, assignment(&[Alive, Dead, Alive], &[("pinned", 2)]));
        let groups: Vec<String> = (0..500)
            .map(|n| format!("group-{n}"))
            .chain(["pinned".to_owned()])
            .collect();
        let gone = leaving(groups.iter().map(String::as_str), &next);
        for group in &groups {
            assert_eq!(
                gone.contains(group),
                next.coordinator(group) != Some(0),
                "{group}"
            );
        }
        assert!(gone.contains(&"pinned".to_owned()));
        assert!(gone.len() < groups.len());
    }

    #[test]
    fn explicit_entries_of_a_dead_broker_fall_back_to_the_hash() {
        use BrokerState::{Alive, Dead};
        let next = Coordinator::new(0, assignment(&[Alive, Dead], &[("pinned", 1)]));
        assert!(leaving(["pinned"], &next).is_empty());
    }
}
