//! The Kafka protocol: messages, headers, error codes and record batches, as bytes and back.
//!
//! Each message is declared once, as a table of fields with their versions ([`messages`]); decode, encode and size
//! follow from the table. What comes off the wire is not trusted: counts are checked against the bytes that are left,
//! decoded memory is budgeted ([`Reader::new`]) and decompression is capped ([`batch`]).
//! No I/O, no clock and no policy live here: which versions are served is the broker's business.

pub mod api_key;
pub mod batch;
pub mod error_code;
pub mod header;
pub mod message;
pub mod messages;
pub mod reader;
pub mod records;
pub mod uuid;
pub mod writer;

pub use api_key::ApiKey;
pub use error_code::ErrorCode;
pub use message::Message;
pub use reader::{DecodeError, Reader};
pub use records::Records;
pub use uuid::Uuid;
pub use writer::{Gap, Writer};
