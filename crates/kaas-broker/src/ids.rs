#![expect(
    clippy::disallowed_methods,
    reason = "the one source of randomness: ids are drawn here and handed on"
)]
//! Identifiers nobody can guess or repeat: topic ids, member ids, session names, node-local numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cheap to clone; clones of a counted source draw from one count.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    /// Set in tests: ids then come from a count, so that a run repeats.
    counted: Option<Arc<AtomicU64>>,
}

impl Ids {
    pub fn random() -> Ids {
        Ids { counted: None }
    }

    /// Ids 1, 2, 3 … in the form of random ones, for tests.
    pub fn counted() -> Ids {
        Ids {
            counted: Some(Arc::new(AtomicU64::new(0))),
        }
    }

    /// The 16 bytes of a version 4 UUID.
    pub fn uuid_bytes(&self) -> [u8; 16] {
        self.draw().into_bytes()
    }

    /// A version 4 UUID as Java prints it (`9ccf3f62-…`): what Kafka appends to a client id to make a member id.
    pub fn uuid_text(&self) -> String {
        self.draw().to_string()
    }

    /// A topic, cluster or directory id. Kafka's own ids never begin with `-` in text form, because tools would take
    /// such an id for an option; neither do these.
    pub fn kafka_uuid(&self) -> kaas_wire::Uuid {
        loop {
            let id = kaas_wire::Uuid::from_bytes(self.uuid_bytes());
            if !id.to_string().starts_with('-') {
                return id;
            }
        }
    }

    /// Any 32-bit number.
    pub fn any_i32(&self) -> i32 {
        let [a, b, c, d, ..] = self.uuid_bytes();
        i32::from_be_bytes([a, b, c, d])
    }

    fn draw(&self) -> uuid::Uuid {
        match &self.counted {
            None => uuid::Uuid::new_v4(),
            Some(count) => {
                let n = u128::from(count.fetch_add(1, Ordering::SeqCst) + 1);
                uuid::Builder::from_random_bytes(((n << 96) | n).to_be_bytes()).into_uuid()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_ids_differ_and_repeat_from_run_to_run() {
        let (a, b) = (Ids::counted(), Ids::counted());
        let first = a.uuid_text();
        assert_ne!(first, a.uuid_text());
        assert_eq!(first, b.uuid_text());
    }

    #[test]
    fn random_ids_differ() {
        let ids = Ids::random();
        assert_ne!(ids.uuid_bytes(), ids.uuid_bytes());
        assert!(!ids.kafka_uuid().to_string().starts_with('-'));
    }
}
