//! The broker: server, handlers, ownership, and the actors that run the core.
