//! The Kafka protocol: messages, frames, headers, error codes, record batches. No I/O, no clock.
