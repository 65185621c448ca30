//! Which broker a key hashes to: pure, the same on every broker, for groups and transactional ids alike.
//!
//! The slot divides by the *full* set of brokers, so a restart moves nothing but what the absent broker had.
//! Explicit entries, liveness and grants are not known here; `coordinator.rs` adds them.

/// One broker of the full set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub id: i32,
    pub alive: bool,
}

/// FNV-1a, 32 bit.
pub fn fnv1a_32(key: &[u8]) -> u32 {
    key.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// The broker that coordinates `key`: the one in the key's slot while it is alive, otherwise the living one with the
/// highest rendezvous score, so that one broker's keys spread over all survivors. `brokers` is sorted by id.
/// `None` only when nobody is alive.
pub fn broker_of(key: &str, brokers: &[Slot]) -> Option<i32> {
    debug_assert!(
        brokers.is_sorted_by(|a, b| a.id < b.id),
        "brokers are sorted by id"
    );
    if brokers.is_empty() {
        return None;
    }
    let hash = fnv1a_32(key.as_bytes());
    let home = brokers[hash as usize % brokers.len()];
    if home.alive {
        return Some(home.id);
    }
    let mut best: Option<(u32, i32)> = None;
    for broker in brokers.iter().filter(|broker| broker.alive) {
        let score = mix(hash ^ mix((broker.id as u32).wrapping_add(1)));
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, broker.id));
        }
    }
    best.map(|(_, id)| id)
}

/// MurmurHash3's 32-bit finaliser: without it the low bits of FNV follow the slot's, and one survivor takes all.
fn mix(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn brokers(count: i32, dead: &[i32]) -> Vec<Slot> {
        (0..count)
            .map(|id| Slot {
                id,
                alive: !dead.contains(&id),
            })
            .collect()
    }

    fn keys() -> Vec<String> {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let random = (0..10_000).map(move |_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            format!("{seed:x}")
        });
        random
            .chain((1..=10_000).map(|n| format!("group-{n}")))
            .collect()
    }

    #[test]
    fn the_published_fnv1a_vectors_hold() {
        let vectors = [
            ("", 0x811c_9dc5),
            ("a", 0xe40c_292c),
            ("b", 0xe70c_2de5),
            ("foobar", 0xbf9c_f968),
            ("foob", 0x3f50_76ef),
            ("hello", 0x4f9f_2cab),
        ];
        for (text, hash) in vectors {
            assert_eq!(fnv1a_32(text.as_bytes()), hash, "{text:?}");
        }
    }

    #[test]
    fn a_key_whose_broker_is_alive_never_moves() {
        let keys = keys();
        let all = brokers(7, &[]);
        for mask in 1..(1 << 7) {
            let dead: Vec<i32> = (0..7).filter(|id| mask & (1 << id) == 0).collect();
            let some = brokers(7, &dead);
            for key in keys.iter().step_by(16) {
                let home = broker_of(key, &all).unwrap();
                if !dead.contains(&home) {
                    assert_eq!(broker_of(key, &some), Some(home));
                }
            }
        }
    }

    #[test]
    fn the_keys_of_a_dead_broker_spread_over_all_survivors_within_a_fifth_of_even() {
        let keys = keys();
        let (random, sequential) = keys.split_at(10_000);
        for set in [random, sequential] {
            for count in 2..=7 {
                let all = brokers(count, &[]);
                for dead in 0..count {
                    let some = brokers(count, &[dead]);
                    let mut shares: BTreeMap<i32, f64> = BTreeMap::new();
                    for key in set.iter().filter(|key| broker_of(key, &all) == Some(dead)) {
                        *shares.entry(broker_of(key, &some).unwrap()).or_default() += 1.0;
                    }
                    assert_eq!(shares.len() as i32, count - 1);
                    let even = shares.values().sum::<f64>() / f64::from(count - 1);
                    for (id, share) in shares {
                        assert!(
                            (share / even - 1.0).abs() < 0.2,
                            "{count} brokers, {dead} dead: broker {id} has {share}, even is {even}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_second_death_moves_only_that_brokers_keys() {
        let keys = keys();
        for first in 0..7 {
            for second in (0..7).filter(|second| *second != first) {
                let one = brokers(7, &[first]);
                let two = brokers(7, &[first, second]);
                for key in keys.iter().step_by(8) {
                    let before = broker_of(key, &one).unwrap();
                    if before != second {
                        assert_eq!(broker_of(key, &two), Some(before));
                    }
                }
            }
        }
    }

    #[test]
    fn nobody_alive_is_nobody() {
        assert_eq!(broker_of("orders", &brokers(3, &[0, 1, 2])), None);
        assert_eq!(broker_of("orders", &[]), None);
    }
}
