//! The journal: durable at the price of one fsync a batch.
