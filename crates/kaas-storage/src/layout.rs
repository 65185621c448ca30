//! Where things lie on the volume, and how ids become file names.

use crate::error::StorageError;
use crate::volume::Volume;

pub const CLUSTER: &str = "__cluster";
/// One directory per live incarnation of a broker or controller.
pub const SESSIONS: &str = "__cluster/sessions";
/// Journal segments of fenced sessions, `<session>.<n>`, until their keys are absorbed.
pub const JOURNALS: &str = "__cluster/journals";
/// What fencing drained and nobody needs; anyone may empty it.
pub const TRASH: &str = "__cluster/trash";
/// One directory per controller epoch ever claimed.
pub const EPOCHS: &str = "__cluster/epochs";
pub const ASSIGNMENT: &str = "__cluster/assignment.json";
pub const GROUPS: &str = "__cluster/__consumer_offsets";
pub const TRANSACTIONS: &str = "__cluster/__transaction_state";
pub const TOPIC_FILES: &str = "__cluster/topics";
/// Partition data, `topics/<topic id>/<partition>/`.
pub const TOPICS: &str = "topics";

pub(crate) const DIRECTORIES: [&str; 9] = [
    CLUSTER,
    SESSIONS,
    JOURNALS,
    TRASH,
    EPOCHS,
    GROUPS,
    TRANSACTIONS,
    TOPIC_FILES,
    TOPICS,
];

/// Makes the fixed directories that are missing, durably.
pub fn create(volume: &dyn Volume) -> Result<(), StorageError> {
    for directory in DIRECTORIES {
        volume
            .create_dir_all(directory)
            .map_err(|error| StorageError::from_io("create", directory, error))?;
    }
    Ok(())
}

/// The longest escaped name that is used as it is.
const MAX_NAME: usize = 200;
/// What is kept of a longer one before its hash.
const NAME_PREFIX: usize = 160;

/// The file name, without extension, of a group, topic or transactional id.
///
/// `[A-Za-z0-9_-]` and a `.` that does not lead stand for themselves and every other byte is `%XX`, so different ids
/// have different names, none leaves its directory, none is hidden, and `orders` is just `orders`. A name over 200 bytes
/// is cut and ends in `~` and a 128-bit hash of the id; `~` stands in no other name. The document holds the true id.
/// Ids that differ only in case have names that differ only in case, which is why a mount that folds case is refused.
pub fn file_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            b'.' if at > 0 => name.push('.'),
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                name.push('%');
                name.push(char::from(HEX[usize::from(byte >> 4)]));
                name.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    if name.len() > MAX_NAME {
        name.truncate(NAME_PREFIX);
        name.push_str(&format!("~{:032x}", fnv1a_128(id.as_bytes())));
    }
    name
}

/// FNV-1a with 128 bits, as published by Fowler, Noll and Vo. Collisions among ids that also share 160 bytes of prefix
/// need not be hard to construct to be harmless: a document whose id is not the one asked for is refused on load.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fnv1a_128_gives_the_published_vectors() {
        assert_eq!(fnv1a_128(b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(fnv1a_128(b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
        assert_eq!(fnv1a_128(b"foobar"), 0x343e1662793c64bf6f0d3597ba446f18);
    }

    #[test]
    fn a_plain_id_is_its_own_file_name() {
        assert_eq!(file_name("orders"), "orders");
        assert_eq!(file_name("my-app_2.v1"), "my-app_2.v1");
    }

    #[test]
    fn no_id_leaves_its_directory_or_hides_in_it() {
        assert_eq!(file_name("../assignment"), "%2E.%2Fassignment");
        assert_eq!(file_name(".."), "%2E.");
        assert_eq!(file_name(".hidden"), "%2Ehidden");
        assert_eq!(file_name("a/b"), "a%2Fb");
        assert_eq!(file_name("100%"), "100%25");
        assert_eq!(file_name("größe"), "gr%C3%B6%C3%9Fe");
    }

    #[test]
    fn ids_that_differ_only_in_case_have_different_names() {
        assert_ne!(file_name("Orders"), file_name("orders"));
    }

    #[test]
    fn a_long_id_is_cut_and_told_apart_by_its_hash() {
        let (old, new) = (
            file_name(&("a".repeat(2048) + "1")),
            file_name(&("a".repeat(2048) + "2")),
        );
        assert_ne!(old, new);
        assert_eq!(old.len(), 160 + 1 + 32);
        assert_eq!(file_name(&"a".repeat(200)).len(), 200);
        assert_eq!(file_name(&"a".repeat(201)).len(), 193);
    }

    #[test]
    fn the_names_of_all_short_ids_are_distinct() {
        let bytes = [".", "/", "%", "~", "a", "A", "2", "F", "\0", "é"];
        let mut names = HashSet::new();
        for a in bytes {
            for b in bytes {
                for c in bytes {
                    assert!(names.insert(file_name(&format!("{a}{b}{c}"))));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_file_name_is_always_safe_and_short(id in "\\PC{0,300}|[./%~]{0,8}") {
            let name = file_name(&id);
            prop_assert!(name.len() <= MAX_NAME);
            prop_assert!(!name.contains('/') && !name.contains('\0') && !name.starts_with('.'));
        }
    }
}
