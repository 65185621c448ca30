//! The broker: server, handlers, ownership, and the actors that run the core.
//!
//! A request's way: `connection` reads a frame, `api` decodes it and calls the handler of its API, the handler answers
//! at once, later, or through a `ReplySlot` from any thread, and `connection` sends the answers in request order.

pub mod api;
pub mod assignment;
pub mod clock;
pub mod config;
pub mod connection;
pub mod handlers;
pub mod ids;
pub mod server;

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::assignment::ClusterView;
use crate::clock::Clock;
use crate::config::Config;
use crate::connection::ConnectionInfo;
use crate::ids::Ids;

/// What handlers work with. Each part owns its field; nothing here is a global.
pub struct Broker {
    pub node_id: i32,
    pub config: Arc<ArcSwap<Config>>,
    /// Swapped whole at every assignment.
    pub cluster: Arc<ArcSwap<ClusterView>>,
    pub clock: Clock,
    pub ids: Ids,
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
