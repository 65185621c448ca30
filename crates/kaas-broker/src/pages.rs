//! What the admin port shows of a broker: whether it serves, the assignment it applies, and what the metrics ask of the
//! other parts.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;

use crate::Broker;
use crate::admin::{Pages, metrics_page};
use crate::metrics::{Metrics, PartitionSnapshot, Snapshot, Sources};

/// The pages of a process: there before its broker is, so that a probe can tell a slow start from a dead one.
pub struct BrokerPages {
    metrics: Arc<Metrics>,
    broker: ArcSwapOption<Broker>,
    stopping: AtomicBool,
}

impl BrokerPages {
    pub fn new(metrics: Arc<Metrics>) -> BrokerPages {
        BrokerPages {
            metrics,
            broker: ArcSwapOption::empty(),
            stopping: AtomicBool::new(false),
        }
    }

    /// The broker serves from now on.
    pub fn serving(&self, broker: Arc<Broker>) {
        self.broker.store(Some(broker));
    }

    pub fn stopping(&self) {
        self.stopping.store(true, Ordering::Release);
    }
}

impl Pages for BrokerPages {
    fn ready(&self) -> Result<(), String> {
        if self.stopping.load(Ordering::Acquire) {
            return Err("the broker is stopping".to_owned());
        }
        match &*self.broker.load() {
            Some(_) => Ok(()),
            None => Err("the broker has not taken up its assignment yet".to_owned()),
        }
    }

    fn assignment(&self) -> Option<String> {
        Some(self.broker.load().as_ref()?.controller.current_json())
    }

    fn metrics(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(metrics_page(Arc::clone(&self.metrics), self))
    }
}

impl Sources for BrokerPages {
    fn snapshot(&self) -> Pin<Box<dyn Future<Output = Snapshot> + Send + '_>> {
        Box::pin(async move {
            match self.broker.load_full() {
                Some(broker) => broker_snapshot(&broker).await,
                None => Snapshot::default(),
            }
        })
    }
}

async fn broker_snapshot(broker: &Broker) -> Snapshot {
    let groups = broker.groups.snapshot().await.unwrap_or_default();
    let partitions = Arc::clone(&broker.partitions);
    let logs = tokio::task::spawn_blocking(move || {
        for partition in partitions.all() {
            // A log nobody has asked for yet has numbers too. One that does not open is logged there and left out here.
            let _ = partition.log();
        }
        partitions.snapshots()
    });
    let config = broker.config.load();
    Snapshot {
        node_id: broker.node_id,
        brokers: broker
            .cluster
            .load()
            .alive()
            .map(|entry| (entry.id, format!("{}:{}", entry.host, entry.port)))
            .collect(),
        topics: broker
            .topics
            .table()
            .iter()
            .map(|topic| (Arc::from(topic.name.as_str()), topic.partitions))
            .collect(),
        partitions: logs
            .await
            .unwrap_or_default()
            .into_iter()
            .map(|partition| PartitionSnapshot {
                topic: partition.topic,
                partition: partition.partition,
                log_start_offset: partition.log_start_offset,
                high_watermark: partition.high_watermark,
                size: partition.size,
            })
            .collect(),
        groups_by_state: groups.by_state,
        groups: groups.groups,
        connection_limits: vec![
            ("max.connections", i64::from(config.max_connections)),
            (
                "max.connections.per.ip",
                i64::from(config.max_connections_per_ip),
            ),
        ],
    }
}
