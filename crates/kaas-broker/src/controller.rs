//! The controller: the only writer of `assignment.json`.
//!
//! Each publish is a rename out of the controller's own session, so a controller that was overtaken cannot publish.
//! What a version means to a broker is applied by the callback given at the start, before a publish returns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use kaas_storage::error::StorageError;
use kaas_storage::journal::{self, JournalFile};
use kaas_storage::session::Session;
use kaas_storage::volume::Volume;
use kaas_wire::Uuid;
use tokio::sync::Mutex;
use tracing::info;

use crate::assignment::{ASSIGNMENT_PATH, Assignment, BrokerEntry, BrokerState, PartitionEntry};

/// Applies a published version to this process.
pub type Apply = Box<dyn Fn(&Arc<Assignment>) + Send + Sync>;

/// Partitions that need a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPartitions {
    pub topic: String,
    pub topic_id: Uuid,
    pub partitions: std::ops::Range<i32>,
}

/// The topics there are.
pub struct KnownTopics {
    pub topics: Vec<NewPartitions>,
    /// False while a topic's file does not parse: then an entry of no known topic may be that one's.
    pub complete: bool,
}

pub struct Controller {
    volume: Arc<dyn Volume>,
    session: Arc<Session>,
    node_id: i32,
    current: Mutex<Arc<Assignment>>,
    /// The same, for those who only look.
    published: ArcSwap<Assignment>,
    apply: Apply,
}

impl Controller {
    /// Takes over the table: `previous` as read from the volume, this broker's entry put in, its partitions led under
    /// the next leader epoch, brokers without a session dead, and what lies in `journals/` named. Published and applied
    /// before it returns. Blocks.
    pub fn start(
        volume: Arc<dyn Volume>,
        session: Arc<Session>,
        epoch: u32,
        previous: Assignment,
        me: BrokerEntry,
        known: &KnownTopics,
        apply: Apply,
    ) -> Result<Controller, StorageError> {
        let next = succeed(previous, epoch, me.clone(), known);
        let controller = Controller {
            volume,
            session,
            node_id: me.id,
            current: Mutex::new(Arc::new(Assignment::default())),
            published: ArcSwap::default(),
            apply,
        };
        let published = controller.write(next)?;
        *controller
            .current
            .try_lock()
            .expect("nobody else has the controller yet") = published;
        Ok(controller)
    }

    /// Makes a living broker leader of each partition: the one that leads the fewest.
    pub async fn assign(self: &Arc<Self>, new: Vec<NewPartitions>) -> Result<(), StorageError> {
        self.change(move |next| {
            for topic in new {
                for partition in topic.partitions {
                    let leader = least_loaded(next);
                    next.partitions.push(PartitionEntry {
                        topic: topic.topic.clone(),
                        topic_id: topic.topic_id.to_string(),
                        partition,
                        leader,
                        leader_epoch: 0,
                    });
                }
            }
        })
        .await
    }

    /// Forgets the partitions of deleted topics.
    pub async fn unassign(self: &Arc<Self>, topic_ids: &[Uuid]) -> Result<(), StorageError> {
        let ids: BTreeSet<String> = topic_ids.iter().map(Uuid::to_string).collect();
        self.change(move |next| {
            next.partitions
                .retain(|entry| !ids.contains(&entry.topic_id));
        })
        .await
    }

    /// Every key of the journals named so far is in the journals of those who own it now: removes the files, oldest
    /// first and durably, and then drops the names.
    pub async fn journals_absorbed(self: &Arc<Self>) -> Result<(), StorageError> {
        let named = self.current.lock().await.journals.clone();
        if named.is_empty() {
            return Ok(());
        }
        let session = Arc::clone(&self.session);
        let files: Vec<JournalFile> = named.iter().filter_map(|name| name.parse().ok()).collect();
        blocking(move || journal::remove_left_behind(&session, &files)).await?;
        self.change(|_| {}).await
    }

    /// The file's text in the version published last.
    pub fn current_json(&self) -> String {
        self.published.load().to_json()
    }

    pub async fn current(&self) -> Arc<Assignment> {
        Arc::clone(&*self.current.lock().await)
    }

    async fn change(
        self: &Arc<Self>,
        edit: impl FnOnce(&mut Assignment) + Send + 'static,
    ) -> Result<(), StorageError> {
        let mut current = self.current.lock().await;
        let mut next = Assignment::clone(&current);
        next.version += 1;
        edit(&mut next);
        let controller = Arc::clone(self);
        *current = blocking(move || controller.write(next)).await?;
        Ok(())
    }

    /// Publishes one version and applies it here. Journals are looked up afresh each time.
    fn write(&self, mut next: Assignment) -> Result<Arc<Assignment>, StorageError> {
        let alive: BTreeSet<&str> = next
            .brokers
            .iter()
            .filter(|broker| broker.state != BrokerState::Dead)
            .map(|broker| broker.session.as_str())
            .collect();
        next.journals = journal::list_left_behind(self.volume.as_ref())?
            .into_iter()
            .filter(|file| !alive.contains(file.session.to_string().as_str()))
            .map(|file| file.to_string())
            .collect();
        next.controller = self.node_id;
        self.session
            .publish(ASSIGNMENT_PATH, next.to_json().as_bytes())?;
        info!(
            version = next.version,
            partitions = next.partitions.len(),
            journals = next.journals.len(),
            "assignment published"
        );
        let next = Arc::new(next);
        (self.apply)(&next);
        self.published.store(Arc::clone(&next));
        Ok(next)
    }
}

/// The first version of a new controller.
fn succeed(mut next: Assignment, epoch: u32, me: BrokerEntry, known: &KnownTopics) -> Assignment {
    next.controller_epoch = epoch;
    next.version = Assignment::first_version(epoch);
    for broker in &mut next.brokers {
        broker.state = BrokerState::Dead;
    }
    let id = me.id;
    next.brokers.retain(|broker| broker.id != id);
    next.brokers.push(me);
    next.brokers.sort_by_key(|broker| broker.id);

    let wanted: BTreeMap<String, &NewPartitions> = known
        .topics
        .iter()
        .map(|topic| (topic.topic_id.to_string(), topic))
        .collect();
    next.partitions
        .retain(|entry| match wanted.get(&entry.topic_id) {
            Some(topic) => topic.partitions.contains(&entry.partition),
            None => !known.complete,
        });
    for entry in &mut next.partitions {
        entry.leader = id;
        entry.leader_epoch += 1;
    }
    let led: BTreeSet<(String, i32)> = next
        .partitions
        .iter()
        .map(|entry| (entry.topic_id.clone(), entry.partition))
        .collect();
    for (topic_id, topic) in wanted {
        for partition in topic.partitions.clone() {
            if !led.contains(&(topic_id.clone(), partition)) {
                next.partitions.push(PartitionEntry {
                    topic: topic.topic.clone(),
                    topic_id: topic_id.clone(),
                    partition,
                    leader: id,
                    leader_epoch: 0,
                });
            }
        }
    }
    next
}

fn least_loaded(assignment: &Assignment) -> i32 {
    let mut led: BTreeMap<i32, usize> = assignment
        .brokers
        .iter()
        .filter(|broker| broker.state == BrokerState::Alive)
        .map(|broker| (broker.id, 0))
        .collect();
    for entry in &assignment.partitions {
        if let Some(count) = led.get_mut(&entry.leader) {
            *count += 1;
        }
    }
    led.into_iter()
        .min_by_key(|(_, count)| *count)
        .map(|(id, _)| id)
        .expect("the controller's own broker is alive in every version it writes")
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    tokio::task::spawn_blocking(work)
        .await
        .expect("a blocking volume operation does not panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me(id: i32) -> BrokerEntry {
        BrokerEntry {
            id,
            host: "127.0.0.1".into(),
            port: 9092,
            session: format!("b{id}.new"),
            state: BrokerState::Alive,
        }
    }

    fn topic(name: &str, id: u8, partitions: i32) -> NewPartitions {
        NewPartitions {
            topic: name.into(),
            topic_id: Uuid::from_bytes([id; 16]),
            partitions: 0..partitions,
        }
    }

    fn known(topics: Vec<NewPartitions>) -> KnownTopics {
        KnownTopics {
            topics,
            complete: true,
        }
    }

    #[test]
    fn while_a_topic_file_does_not_parse_no_partition_is_forgotten() {
        let first = succeed(
            Assignment::default(),
            1,
            me(0),
            &known(vec![topic("t", 1, 2)]),
        );
        let torn = KnownTopics {
            topics: Vec::new(),
            complete: false,
        };
        let next = succeed(first, 2, me(0), &torn);
        assert_eq!(next.partitions.len(), 2);
        assert_eq!(next.partitions[0].leader_epoch, 1);
    }

    #[test]
    fn a_restart_leads_every_partition_under_the_next_epoch_and_never_goes_back_in_version() {
        let first = succeed(
            Assignment::default(),
            1,
            me(0),
            &known(vec![topic("t", 1, 2)]),
        );
        let again = succeed(first.clone(), 2, me(0), &known(vec![topic("t", 1, 3)]));
        assert!(again.version > first.version + 1_000_000);
        let epochs: Vec<i32> = again.partitions.iter().map(|p| p.leader_epoch).collect();
        assert_eq!(epochs, [1, 1, 0]);
    }

    #[test]
    fn partitions_of_topics_that_are_gone_are_forgotten() {
        let first = succeed(
            Assignment::default(),
            1,
            me(0),
            &known(vec![topic("t", 1, 2)]),
        );
        let again = succeed(first, 2, me(0), &known(vec![topic("t", 2, 1)]));
        assert_eq!(again.partitions.len(), 1);
        assert_eq!(again.partitions[0].leader_epoch, 0);
    }

    #[test]
    fn a_broker_that_is_absent_stays_in_the_set_as_dead() {
        let first = succeed(Assignment::default(), 1, me(0), &known(vec![]));
        let next = succeed(first, 2, me(1), &known(vec![]));
        let states: Vec<(i32, BrokerState)> =
            next.brokers.iter().map(|b| (b.id, b.state)).collect();
        assert_eq!(states, [(0, BrokerState::Dead), (1, BrokerState::Alive)]);
    }
}
