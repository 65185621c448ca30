//! The broker: server, handlers, ownership, and the actors that run the core.
//!
//! A request's way: `connection` reads a frame, `api` decodes it and calls the handler of its API, the handler answers
//! at once, later, or through a `ReplySlot` from any thread, and `connection` sends the answers in request order.

pub mod admin;
pub mod api;
pub mod assignment;
pub mod clock;
pub mod config;
pub mod connection;
pub mod controller;
pub mod coordinator;
pub mod group_hash;
pub mod group_takeover;
pub mod handlers;
pub mod ids;
pub mod metrics;
pub mod pages;
pub mod partitions;
pub mod resource_configs;
pub mod server;
pub mod topics;

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::assignment::{BrokerEntry, ClusterView};
use crate::clock::Clock;
use crate::config::live::LiveConfig;
use crate::connection::ConnectionInfo;
use crate::controller::Controller;
use crate::coordinator::actor::Groups;
use crate::ids::Ids;
use crate::metrics::Metrics;
use crate::partitions::Partitions;
use crate::resource_configs::ResourceConfigs;
use crate::topics::Topics;

/// What handlers work with. Each part owns its field; nothing here is a global.
pub struct Broker {
    pub node_id: i32,
    pub config: Arc<LiveConfig>,
    /// Swapped whole at every assignment.
    pub cluster: Arc<ArcSwap<ClusterView>>,
    pub clock: Clock,
    pub ids: Ids,
    pub topics: Arc<Topics>,
    pub resource_configs: Arc<ResourceConfigs>,
    pub partitions: Arc<Partitions>,
    pub groups: Groups,
    pub controller: Arc<Controller>,
    pub metrics: Arc<Metrics>,
}

impl Broker {
    /// Host and port at which whoever asked on this connection reaches a broker: of this one the listener they came in
    /// through.
    pub fn address_of(&self, connection: &ConnectionInfo, broker: &BrokerEntry) -> (String, i32) {
        if broker.id == self.node_id {
            let listener = &connection.listener;
            (listener.host.clone(), i32::from(listener.port))
        } else {
            (broker.host.clone(), i32::from(broker.port))
        }
    }
}

/// What a handler knows of a request besides its body.
#[derive(Clone, Debug)]
pub struct Ctx {
    /// The request's version: within the handler's `SERVED`.
    pub version: i16,
    /// Opaque: may be absent, empty or any text.
    pub client_id: Option<String>,
    pub connection: Arc<ConnectionInfo>,
}
