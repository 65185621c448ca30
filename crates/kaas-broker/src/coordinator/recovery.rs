//! What a group is by its file and by journals: for keys of brokers that are gone, and for own keys whose last append
//! failed. Blocks.

use kaas_coordinator::{DocumentError, GroupDocument, Revision};
use kaas_storage::StorageError;
use kaas_storage::journal::replay::{Base, Replay, Resolved};
use kaas_storage::journal::{self, JournalFile};
use kaas_storage::volume::Volume;
use tracing::error;

use super::files;

/// A group and the last word about it: its state, or `None` if it was removed; an error if that cannot be told.
pub type LastWord = (String, Result<Option<GroupDocument>, StorageError>);

/// The last words in the journals that the assignment `in_force` names, and whether anything in them could not be read.
pub fn read_journals(volume: &dyn Volume, named: &[JournalFile], in_force: u64) -> Recovered {
    let replay = Replay::read(journal::read_left_behind(volume, named));
    for damage in replay.damage() {
        error!(%damage, "a journal cannot be read whole; its groups are refused, and it stays where it is");
    }
    let groups = replay
        .keys()
        .into_iter()
        .map(|group| (group.to_owned(), resolve(&replay, volume, group, in_force)))
        .collect();
    Recovered {
        groups,
        named: named.to_vec(),
        replay,
    }
}

pub struct Recovered {
    pub groups: Vec<LastWord>,
    pub named: Vec<JournalFile>,
    replay: Replay,
}

impl Recovered {
    /// Whether the journals may go once their groups are absorbed.
    pub fn is_whole(&self) -> bool {
        self.replay.damage().next().is_none() && self.groups.iter().all(|(_, word)| word.is_ok())
    }

    /// The journals for groups that they do not mention: needed only while some of their bytes cannot be read.
    pub fn into_doubts(self) -> Option<Replay> {
        let damaged = self.replay.damage().next().is_some();
        damaged.then_some(self.replay)
    }
}

/// What a group is by its file and the records found.
pub fn resolve(
    replay: &Replay,
    volume: &dyn Volume,
    group: &str,
    in_force: u64,
) -> Result<Option<GroupDocument>, StorageError> {
    let file = files::read(volume, group)?;
    let have = file.as_ref().map(|document| for_journal(document.revision));
    let (base, deltas, revision) = match replay.resolve(group, have, in_force)? {
        Resolved::Absent | Resolved::Removed { .. } => return Ok(None),
        Resolved::State {
            base,
            deltas,
            revision,
        } => (base, deltas, revision),
    };
    let unusable = |error: DocumentError| StorageError::Corrupt {
        path: group.to_owned(),
        why: format!("what the journal holds of it cannot be used: {error}"),
        remedy: "restore its file, or the journal's segments".to_owned(),
    };
    let mut document = match base {
        Base::File => file.expect("a state based on the file has one"),
        Base::Document(json) => GroupDocument::from_json(&json).map_err(unusable)?,
    };
    for delta in deltas {
        let next = Revision {
            term: document.revision.term,
            n: document.revision.n + 1,
        };
        document.apply(next, &delta).map_err(unusable)?;
    }
    debug_assert_eq!(
        for_journal(document.revision),
        revision,
        "deltas follow one by one"
    );
    Ok(Some(document))
}

pub fn for_journal(revision: Revision) -> journal::Revision {
    journal::Revision {
        term: revision.term,
        n: revision.n,
    }
}
