//! Producer ids for idempotent producers, out of blocks claimed on the volume.
//!
//! A block belongs to whoever made its directory (`mkdir`, so exactly one of several brokers), and is durable before an
//! id is given out of it. What a broker did not use of a block when it ended is never used: no id comes twice.

use std::ops::Range;
use std::sync::Arc;

use kaas_storage::error::StorageError;
use kaas_storage::session::Session;
use kaas_storage::volume::Volume;
use parking_lot::Mutex;

/// One directory a claimed block.
pub const PRODUCER_IDS: &str = "__cluster/producer_ids";
/// Kafka's block size.
const BLOCK: i64 = 1_000;
/// Claimed blocks that are kept as names, so that a listing stays short; those below go.
const KEPT: i64 = 16;

pub struct ProducerIds {
    volume: Arc<dyn Volume>,
    session: Arc<Session>,
    block: Mutex<Range<i64>>,
}

impl ProducerIds {
    pub fn new(volume: Arc<dyn Volume>, session: Arc<Session>) -> ProducerIds {
        ProducerIds {
            volume,
            session,
            block: Mutex::new(0..0),
        }
    }

    /// An id if the current block has one left.
    pub fn next_at_hand(&self) -> Option<i64> {
        self.block.lock().next()
    }

    /// An id that nobody was ever given. Blocks on the disk when the block is used up.
    pub fn next(&self) -> Result<i64, StorageError> {
        let mut block = self.block.lock();
        if let Some(id) = block.next() {
            return Ok(id);
        }
        *block = self.claim()?;
        Ok(block.next().expect("a block is not empty"))
    }

    fn claim(&self) -> Result<Range<i64>, StorageError> {
        let fail = |op: &'static str| move |error| StorageError::from_io(op, PRODUCER_IDS, error);
        self.volume
            .create_dir_all(PRODUCER_IDS)
            .map_err(fail("create"))?;
        loop {
            let claimed = self.claimed()?;
            let number = claimed.last().map_or(0, |last| last + 1);
            match self.volume.create_dir(&path(number)) {
                Ok(()) => {}
                // Another broker was quicker.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(fail("claim a block in")(error)),
            }
            self.volume
                .sync_dir(PRODUCER_IDS)
                .map_err(fail("sync the directory"))?;
            self.session.verify()?;
            for old in claimed.into_iter().filter(|old| *old < number - KEPT) {
                // The highest one alone says which blocks are taken; what cannot be removed now is tried again.
                let _ = self.volume.remove_dir(&path(old));
            }
            let first = number * BLOCK;
            return Ok(first..first + BLOCK);
        }
    }

    /// The numbers of the claimed blocks that are still there, in their order.
    fn claimed(&self) -> Result<Vec<i64>, StorageError> {
        let entries = self
            .volume
            .list_fresh(PRODUCER_IDS)
            .map_err(|error| StorageError::from_io("list", PRODUCER_IDS, error))?;
        let mut numbers: Vec<i64> = entries
            .iter()
            .filter_map(|entry| entry.name.parse().ok())
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

fn path(number: i64) -> String {
    format!("{PRODUCER_IDS}/{number}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use kaas_storage::layout;
    use kaas_storage::session::SessionKind;
    use kaas_storage::volume::memory::MemoryVolume;

    use super::*;

    fn on(volume: &MemoryVolume, incarnation: u128) -> ProducerIds {
        let volume: Arc<dyn Volume> = Arc::new(volume.clone());
        layout::create(&*volume).unwrap();
        let uuid = uuid::Uuid::from_u128(incarnation);
        let session = Session::create(
            volume.clone(),
            SessionKind::Broker,
            incarnation as i32,
            uuid,
        )
        .unwrap();
        ProducerIds::new(volume, Arc::new(session))
    }

    #[test]
    fn no_id_is_given_twice_by_several_brokers_restarts_and_power_cuts() {
        let mut volume = MemoryVolume::new();
        let mut seen = HashSet::new();
        for life in 0..30 {
            let brokers = [on(&volume, 2 * life + 1), on(&volume, 2 * life + 2)];
            for broker in &brokers {
                for _ in 0..BLOCK + 5 {
                    assert!(seen.insert(broker.next().unwrap()));
                }
            }
            volume = volume.power_cut(life as u64);
        }
    }

    #[test]
    fn names_of_blocks_do_not_pile_up() {
        let volume = MemoryVolume::new();
        let ids = on(&volume, 1);
        for _ in 0..BLOCK * 40 {
            ids.next().unwrap();
        }
        assert!(volume.list(PRODUCER_IDS).unwrap().len() as i64 <= KEPT + 2);
    }
}
