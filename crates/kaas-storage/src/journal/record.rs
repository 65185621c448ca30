//! The journal's bytes: records, the marks between batches, and the head of a segment.
//!
//! ```text
//! segment = head batch*            batch = mark record*
//! record  = length u32 · crc32c u32 · kind u8 · key length u16 · term u64 · n u64 · key · payload
//! ```
//!
//! Integers are little-endian; `length` counts, and the CRC covers, what follows the CRC. Heads and marks have the frame
//! of a record. They are there for the reader who meets bad bytes: a mark further on, or a later segment's head, proves
//! that the bytes before it were on the disk when it was written, so they did not just fail to arrive.

use uuid::Uuid;

/// When a key's state was written, and by the leave of which assignment: states of one key are told apart and put in
/// order by it, whichever journal or file they are found in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    /// The assignment version that was applied when the key came into memory.
    pub term: u64,
    pub n: u64,
}

impl Revision {
    /// The revision of the delta that follows.
    pub fn next(self) -> Revision {
        Revision {
            term: self.term,
            n: self.n + 1,
        }
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.term, self.n)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A key's whole state; everything older is irrelevant.
    Document,
    /// A change to the state of the revision just before.
    Offsets,
    /// The key does not exist any more.
    Removed,
    /// Another broker has the key: voids every earlier record of it in the same session's journal. Has no revision.
    Released,
}

impl Kind {
    /// Whether nothing before this record matters to the key.
    pub fn is_whole(self) -> bool {
        matches!(self, Kind::Document | Kind::Removed)
    }
}

const DOCUMENT: u8 = 1;
const OFFSETS: u8 = 2;
const REMOVED: u8 = 3;
const RELEASED: u8 = 4;
const MARK: u8 = 5;
const HEAD: u8 = 6;

/// Length and CRC.
const FRAME: usize = 8;
/// Kind, key length, term and n.
const FIXED: usize = 1 + 2 + 8 + 8;
const UUID: usize = 16;
/// Bytes of a batch's mark.
pub(crate) const MARK_LEN: usize = FRAME + FIXED + UUID;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Record<'a> {
    pub kind: Kind,
    pub key: &'a str,
    pub revision: Revision,
    pub payload: &'a [u8],
}

/// Appends one record. `Released` takes `Revision::default()`. The key is at most 65,535 bytes, as on Kafka's wire.
pub fn encode(out: &mut Vec<u8>, kind: Kind, key: &str, revision: Revision, payload: &[u8]) {
    let kind = match kind {
        Kind::Document => DOCUMENT,
        Kind::Offsets => OFFSETS,
        Kind::Removed => REMOVED,
        Kind::Released => RELEASED,
    };
    frame(out, kind, key, revision, &[payload]);
}

fn frame(out: &mut Vec<u8>, kind: u8, key: &str, revision: Revision, payload: &[&[u8]]) {
    let key_len = u16::try_from(key.len()).expect("a key is at most 65,535 bytes");
    let length = FIXED + key.len() + payload.iter().map(|part| part.len()).sum::<usize>();
    let start = out.len();
    out.reserve(FRAME + length);
    out.extend_from_slice(
        &u32::try_from(length)
            .expect("a record is under 4 GiB")
            .to_le_bytes(),
    );
    out.extend_from_slice(&[0; 4]);
    out.push(kind);
    out.extend_from_slice(&key_len.to_le_bytes());
    out.extend_from_slice(&revision.term.to_le_bytes());
    out.extend_from_slice(&revision.n.to_le_bytes());
    out.extend_from_slice(key.as_bytes());
    for part in payload {
        out.extend_from_slice(part);
    }
    let crc = crc32c::crc32c(&out[start + FRAME..]);
    out[start + 4..start + FRAME].copy_from_slice(&crc.to_le_bytes());
}

/// The mark of the batch that is written at `offset` of its segment when the bytes before `durable` are on the disk. The
/// session's uuid keeps client data from passing for one.
pub(crate) fn encode_mark(session: Uuid, offset: u64, durable: u64) -> [u8; MARK_LEN] {
    let mut out = Vec::with_capacity(MARK_LEN);
    frame(
        &mut out,
        MARK,
        "",
        Revision {
            term: offset,
            n: durable,
        },
        &[session.as_bytes()],
    );
    out.try_into().expect("a mark has one size")
}

/// How much of an earlier segment was on the disk when this one began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub segment: u64,
    /// Bytes.
    pub durable: u64,
}

pub(crate) fn encode_head(session: Uuid, segment: u64, earlier: &[Extent]) -> Vec<u8> {
    let mut extents = Vec::with_capacity(earlier.len() * 16);
    for extent in earlier {
        extents.extend_from_slice(&extent.segment.to_le_bytes());
        extents.extend_from_slice(&extent.durable.to_le_bytes());
    }
    let mut out = Vec::new();
    frame(
        &mut out,
        HEAD,
        "",
        Revision {
            term: segment,
            n: 0,
        },
        &[session.as_bytes(), &extents],
    );
    out
}

/// One frame of a segment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item<'a> {
    Head {
        session: Uuid,
        segment: u64,
        earlier: Vec<Extent>,
    },
    Mark {
        session: Uuid,
        offset: u64,
        durable: u64,
    },
    Record(Record<'a>),
}

/// Takes the frame at the front of `bytes` and says how long it is; `None` when there is no whole, sound one.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Item<'_>, usize)> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let crc = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(FRAME..FRAME.checked_add(length)?)?;
    if length < FIXED || crc32c::crc32c(body) != crc {
        return None;
    }
    let item = decode_body(body)?;
    Some((item, FRAME + length))
}

fn decode_body(body: &[u8]) -> Option<Item<'_>> {
    let (fixed, rest) = body.split_at_checked(FIXED)?;
    let key_len = usize::from(u16::from_le_bytes(*fixed[1..].first_chunk()?));
    let revision = Revision {
        term: u64::from_le_bytes(*fixed[3..].first_chunk()?),
        n: u64::from_le_bytes(*fixed[11..].first_chunk()?),
    };
    let (key, payload) = rest.split_at_checked(key_len)?;
    let kind = match fixed[0] {
        DOCUMENT => Kind::Document,
        OFFSETS => Kind::Offsets,
        REMOVED => Kind::Removed,
        RELEASED => Kind::Released,
        MARK => {
            let session = Uuid::from_slice(payload).ok()?;
            return Some(Item::Mark {
                session,
                offset: revision.term,
                durable: revision.n,
            });
        }
        HEAD => {
            let (session, extents) = payload.split_at_checked(UUID)?;
            let (extents, []) = extents.as_chunks::<16>() else {
                return None;
            };
            let earlier = extents.iter().map(|extent| Extent {
                segment: u64::from_le_bytes(*extent.first_chunk().expect("16 bytes hold 8")),
                durable: u64::from_le_bytes(*extent.last_chunk().expect("16 bytes hold 8")),
            });
            return Some(Item::Head {
                session: Uuid::from_slice(session).ok()?,
                segment: revision.term,
                earlier: earlier.collect(),
            });
        }
        _ => return None,
    };
    let key = std::str::from_utf8(key).ok()?;
    Some(Item::Record(Record {
        kind,
        key,
        revision,
        payload,
    }))
}

/// The records of a batch just encoded, without its mark.
pub(crate) fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        // The bytes never left this process, so the CRC has nothing to say here.
        let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let (body, rest) = bytes[FRAME..].split_at(length);
        bytes = rest;
        match decode_body(body) {
            Some(Item::Record(record)) => Some(record),
            _ => unreachable!("a batch holds records that `encode` made"),
        }
    })
}

/// The sound marks that start at `from` or later: where they stand, and what they prove to be durable.
pub(crate) fn marks(
    bytes: &[u8],
    session: Uuid,
    mut from: usize,
) -> impl Iterator<Item = (usize, u64)> {
    let uuid = *session.as_bytes();
    std::iter::from_fn(move || {
        loop {
            // The uuid ends a mark, so the first one that can count ends a mark that starts at `from`.
            let searched = from + MARK_LEN - UUID;
            let hit = searched
                + bytes
                    .get(searched..)?
                    .windows(UUID)
                    .position(|window| window == uuid)?;
            let start = hit + UUID - MARK_LEN;
            from = start + 1;
            if let Some((
                Item::Mark {
                    session: found,
                    offset,
                    durable,
                },
                _,
            )) = decode(&bytes[start..])
                && (found, offset) == (session, start as u64)
            {
                return Some((start, durable));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SESSION: Uuid = Uuid::from_u128(7);

    #[test]
    fn a_mark_is_found_only_where_it_says_it_is() {
        let mut bytes = vec![0; 100];
        bytes.extend_from_slice(&encode_mark(SESSION, 100, 0));
        // One that lies: it was written to stand at 7.
        bytes.extend_from_slice(&encode_mark(SESSION, 7, 7));
        let place = bytes.len();
        bytes.extend_from_slice(&encode_mark(SESSION, place as u64, 99));
        let found = |session, from| marks(&bytes, session, from).collect::<Vec<_>>();
        assert_eq!(found(SESSION, 0), [(100, 0), (place, 99)]);
        assert_eq!(found(SESSION, 100), [(100, 0), (place, 99)]);
        assert_eq!(found(SESSION, 101), [(place, 99)]);
        assert_eq!(found(SESSION, place + 1), []);
        assert_eq!(found(Uuid::from_u128(8), 0), []);
    }

    #[test]
    fn a_head_tells_what_was_durable_before_it() {
        let earlier = [
            Extent {
                segment: 3,
                durable: 99,
            },
            Extent {
                segment: 4,
                durable: 0,
            },
        ];
        let bytes = encode_head(SESSION, 5, &earlier);
        let head = Item::Head {
            session: SESSION,
            segment: 5,
            earlier: earlier.to_vec(),
        };
        assert_eq!(decode(&bytes), Some((head, bytes.len())));
    }

    #[test]
    fn zeroes_are_no_record() {
        assert_eq!(decode(&[0; 64]), None);
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Document),
            Just(Kind::Offsets),
            Just(Kind::Removed),
            Just(Kind::Released)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_record_reads_as_it_was_written_and_no_flipped_bit_goes_unseen(
            kind in any_kind(),
            key in "\\PC{0,40}",
            term: u64,
            n: u64,
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            flipped: prop::sample::Index,
            bit in 0..8u8,
        ) {
            let revision = Revision { term, n };
            let mut bytes = Vec::new();
            encode(&mut bytes, kind, &key, revision, &payload);
            let record = Record { kind, key: &key, revision, payload: &payload };
            prop_assert_eq!(decode(&bytes), Some((Item::Record(record), bytes.len())));
            prop_assert_eq!(records(&bytes).collect::<Vec<_>>(), vec![record]);
            prop_assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
            let at = flipped.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(decode(&bytes), None);
        }

        #[test]
        fn arbitrary_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&bytes);
            let _ = marks(&bytes, SESSION, 0).count();
        }
    }
}
