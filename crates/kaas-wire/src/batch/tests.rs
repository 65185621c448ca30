use kafka_protocol::records::RecordBatchDecoder;

use super::*;
use crate::message::probe::{Dice, for_seeds, hex};

const LIMIT: usize = 1 << 20;

/// What Kafka 4.4's `MemoryRecords.withRecords` makes of [`sample`], codec by codec.
const KAFKA_NONE: &str = "\
    000000000000002a000000760000000502c40ed5d200100000000200000000000003e800000000000003f2000000000000000700030000000b\
    0000000364000000046b314676616c75652076616c75652076616c75652076616c75652076616c75652076616c756504026802310268011000\
    1302010476320010001404046b330100";
const KAFKA_GZIP: &str = "\
    000000000000002a0000006f0000000502c2f08eeb00110000000200000000000003e800000000000003f2000000000000000700030000000b\
    000000031f8b08000000000000ff4b61606060c936742b4bcc294d55c04bb2306530193265300a30083331b2941931083088b0b0641b333200\
    00dd5b1f1e45000000";
const KAFKA_SNAPPY: &str = "\
    000000000000002a00000073000000050290243e3b00120000000200000000000003e800000000000003f2000000000000000700030000000b\
    0000000382534e415050590000000001000000010000002e453464000000046b314676616c7565207206006404026802310268011000130201\
    0476320010001404046b330100";
const KAFKA_LZ4: &str = "\
    000000000000002a0000006e0000000502d16d41a800130000000200000000000003e800000000000003f2000000000000000700030000000b\
    0000000304224d186040822e000000ef64000000046b314676616c75652006000af00b040268023102680110001302010476320010001404046b\
    33010000000000";
const KAFKA_ZSTD: &str = "\
    000000000000002a0000006c000000050261e2bb9c00140000000200000000000003e800000000000003f2000000000000000700030000000b\
    0000000328b52ffd00587c0100840264000000046b314676616c756520040268023102680110001302010476320010001404046b3301000100\
    b98b12010000";

/// Kafka's `MemoryRecords.withEndTransactionMarker`.
const KAFKA_MARKER: &str = "\
    000000000000002a000000420000000502b0c8a67900300000000000000000000004d200000000000004d200000000000000070003ffffffff\
    000000012000000008000000010c00000000000900";

fn sample() -> Vec<Record<'static>> {
    let headers = vec![
        RecordHeader {
            key: b"h",
            value: Some(b"1"),
        },
        RecordHeader {
            key: b"h",
            value: None,
        },
    ];
    vec![
        Record {
            offset: 42,
            timestamp: 1000,
            key: Some(b"k1"),
            value: Some(b"value value value value value value"),
            headers,
        },
        Record {
            offset: 43,
            timestamp: 990,
            key: None,
            value: Some(b"v2"),
            headers: vec![],
        },
        Record {
            offset: 44,
            timestamp: 1010,
            key: Some(b"k3"),
            value: None,
            headers: vec![],
        },
    ]
}

fn build(compression: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new(42)
        .compression(compression)
        .producer(7, 3, 11)
        .transactional()
        .partition_leader_epoch(5);
    for record in sample() {
        builder.append(&record);
    }
    builder.build().to_vec()
}

fn read(bytes: &[u8], limit: usize) -> Result<Vec<(i64, i64)>, BatchError> {
    let batch = Batch::parse(bytes)?;
    let body = batch.body(limit)?;
    batch
        .records(&body)
        .map(|record| record.map(|r| (r.offset, r.timestamp)))
        .collect()
}

const CODECS: [(Compression, &str); 5] = [
    (Compression::None, KAFKA_NONE),
    (Compression::Gzip, KAFKA_GZIP),
    (Compression::Snappy, KAFKA_SNAPPY),
    (Compression::Lz4, KAFKA_LZ4),
    (Compression::Zstd, KAFKA_ZSTD),
];

#[test]
fn the_batches_of_kafka_are_read_in_every_codec() {
    for (codec, text) in CODECS {
        let bytes = hex(text);
        let batch = Batch::parse(&bytes).unwrap();
        batch.verify_crc().unwrap();
        assert_eq!(batch.header.compression(), Ok(codec));
        assert!(batch.header.is_transactional() && !batch.header.is_control());
        assert_eq!(
            (batch.header.last_offset(), batch.header.last_sequence()),
            (44, 13)
        );
        let body = batch.body(LIMIT).unwrap();
        let records: Vec<_> = batch.records(&body).map(Result::unwrap).collect();
        assert_eq!(records, sample(), "{codec}");
    }
}

#[test]
fn a_batch_is_built_to_the_byte_as_kafka_builds_it() {
    assert_eq!(build(Compression::None), hex(KAFKA_NONE));
    assert_eq!(marker(), hex(KAFKA_MARKER));
}

fn marker() -> Vec<u8> {
    let mut marker = marker_batch(EndTxn::Commit, 7, 3, 9, 1234).to_vec();
    set_base_offset(&mut marker, 42);
    set_partition_leader_epoch(&mut marker, 5);
    marker
}

#[test]
fn every_codec_gives_back_what_it_took() {
    let text = b"ten bytes ".repeat(20_000);
    for (codec, _) in CODECS {
        for data in [&text[..], b"", b"x"] {
            let compressed = codec.compress(data);
            assert_eq!(
                codec.decompress(&compressed, data.len()).as_deref(),
                Ok(data),
                "{codec}"
            );
        }
        let compressed = codec.compress(&text);
        let limit = text.len() - 1;
        assert_eq!(
            codec.decompress(&compressed, limit),
            Err(BatchError::TooLarge { limit })
        );
    }
}

#[test]
fn snappy_without_the_framing_of_java_is_read() {
    let data = b"bare ".repeat(100);
    let bare = snap::raw::Encoder::new().compress_vec(&data).unwrap();
    assert_eq!(Compression::Snappy.decompress(&bare, LIMIT), Ok(data));
}

#[test]
fn a_control_batch_tells_how_the_transaction_ended() {
    let bytes = marker();
    let batch = Batch::parse(&bytes).unwrap();
    assert!(batch.header.is_control() && batch.header.is_transactional());
    let body = batch.body(LIMIT).unwrap();
    let record = batch.records(&body).next().unwrap().unwrap();
    assert_eq!(
        control_type(&record),
        Ok(ControlType::EndTxn(EndTxn::Commit))
    );
    assert_eq!(end_txn(&record).unwrap().coordinator_epoch, 9);
    assert!(control_type(&Record::default()).is_err());
    assert!(end_txn(&Record::default()).is_err());
}

#[test]
fn offset_and_leader_epoch_leave_the_crc_alone() {
    let mut bytes = build(Compression::Lz4);
    set_base_offset(&mut bytes, 1_000_000);
    set_partition_leader_epoch(&mut bytes, 77);
    verify_crc(&bytes).unwrap();
    let header = BatchHeader::parse(&bytes).unwrap();
    assert_eq!(
        (header.base_offset, header.partition_leader_epoch),
        (1_000_000, 77)
    );
    assert_eq!(header.to_bytes(), bytes[..HEADER_LEN]);
}

#[test]
fn append_time_replaces_every_timestamp_and_the_crc_follows() {
    let mut bytes = build(Compression::Gzip);
    let stamped = stamped_header(&Batch::parse(&bytes).unwrap(), 9, 8, Some(5000));
    set_timestamps(&mut bytes, TimestampType::LogAppendTime, 5000).unwrap();
    verify_crc(&bytes).unwrap();
    assert_eq!(
        read(&bytes, LIMIT).unwrap(),
        [(42, 5000), (43, 5000), (44, 5000)]
    );
    set_base_offset(&mut bytes, 9);
    set_partition_leader_epoch(&mut bytes, 8);
    assert_eq!(stamped, bytes[..HEADER_LEN]);
}

#[test]
fn a_compacted_batch_spans_the_offsets_it_had() {
    let bytes = build(Compression::Zstd);
    let header = BatchHeader::parse(&bytes).unwrap();
    let mut builder = BatchBuilder::remainder_of(&header, Compression::Zstd);
    builder.append(&sample()[1]);
    let rest = builder.build();
    let kept = Batch::parse(&rest).unwrap().header;
    assert_eq!(
        (kept.base_offset, kept.last_offset(), kept.record_count),
        (42, 44, 1)
    );
    assert_eq!(
        (kept.producer_id, kept.base_sequence, kept.max_timestamp),
        (7, 11, 990)
    );
    assert_eq!(read(&rest, LIMIT).unwrap(), [(43, 990)]);

    let empty = BatchBuilder::remainder_of(&header, Compression::Zstd).build();
    assert_eq!(empty.len(), HEADER_LEN);
    assert_eq!(BatchHeader::parse(&empty).unwrap().last_offset(), 44);
    assert_eq!(read(&empty, LIMIT).unwrap(), []);
}

#[test]
fn a_delete_horizon_takes_the_place_of_the_base_timestamp() {
    let batch = BatchBuilder::new(0)
        .delete_horizon_ms(9000)
        .record(1000, Some(b"k"), None)
        .build();
    assert_eq!(
        BatchHeader::parse(&batch).unwrap().delete_horizon_ms(),
        Some(9000)
    );
    assert_eq!(read(&batch, LIMIT).unwrap(), [(0, 1000)]);
}

#[test]
fn batches_are_walked_until_one_is_cut_off() {
    let mut bytes = build(Compression::None);
    let first = bytes.len();
    bytes.extend(build(Compression::Snappy));
    assert_eq!(batches(&bytes).filter(Result::is_ok).count(), 2);
    assert_eq!(
        batches(&bytes)
            .map(|batch| batch.unwrap().bytes.len())
            .sum::<usize>(),
        bytes.len()
    );
    for end in first + 1..bytes.len() {
        let mut walk = batches(&bytes[..end]);
        assert_eq!(walk.next().unwrap().unwrap().bytes.len(), first);
        assert!(matches!(
            walk.next(),
            Some(Err(BatchError::Truncated { .. }))
        ));
        assert_eq!(walk.next(), None);
    }
}

#[test]
fn a_flipped_bit_behind_the_crc_is_noticed() {
    let bytes = build(Compression::None);
    for index in CRC_AT..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[index] ^= 0x10;
        assert!(
            matches!(verify_crc(&flipped), Err(BatchError::Corrupt { .. })),
            "{index}"
        );
    }
}

#[test]
fn what_is_no_batch_of_format_2_is_named() {
    let mut bytes = build(Compression::None);
    bytes[16] = 1;
    assert_eq!(
        BatchHeader::parse(&bytes[..20]),
        Err(BatchError::UnsupportedMagic(1))
    );
    bytes[16] = 2;
    bytes[8..12].copy_from_slice(&48i32.to_be_bytes());
    assert_eq!(
        BatchHeader::parse(&bytes),
        Err(BatchError::InvalidLength(48))
    );
    bytes[8..12].copy_from_slice(&(-1i32).to_be_bytes());
    assert_eq!(
        BatchHeader::parse(&bytes),
        Err(BatchError::InvalidLength(-1))
    );
    assert_eq!(
        BatchHeader::parse(&[]),
        Err(BatchError::Truncated {
            needed: HEADER_LEN,
            have: 0
        })
    );
}

#[test]
fn a_wrong_count_of_records_is_an_error() {
    for (count, index) in [(2u8, 2), (4, 3), (0, 0), (0x80, 3)] {
        let mut bytes = build(Compression::None);
        bytes[57..61].copy_from_slice(&u32::from(count).to_be_bytes());
        assert!(
            matches!(read(&bytes, LIMIT), Err(BatchError::InvalidRecord { index: at, .. }) if at == index)
        );
    }
    let mut bytes = build(Compression::None);
    bytes[57..61].copy_from_slice(&(-1i32).to_be_bytes());
    assert!(read(&bytes, LIMIT).is_err());
}

/// What decompresses to 256 MiB stops at the limit.
#[test]
fn a_bomb_stops_at_the_limit() {
    let zeros = vec![0; 1 << 24];
    for codec in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
        let once = codec.compress(&zeros);
        let bomb = once.repeat(16);
        assert_eq!(
            codec.decompress(&bomb, LIMIT),
            Err(BatchError::TooLarge { limit: LIMIT }),
            "{codec}"
        );
    }
    let mut claim = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
    claim.extend([0; 16]);
    assert_eq!(
        Compression::Snappy.decompress(&claim, LIMIT),
        Err(BatchError::TooLarge { limit: LIMIT })
    );
}

/// Records of any shape at rising offsets.
fn arbitrary(dice: &mut Dice, base_offset: i64) -> Vec<OwnedRecord> {
    let mut offset = base_offset - 1;
    let field = |dice: &mut Dice| -> Option<Vec<u8>> {
        let length = [0, 1, 5, 63, 64, 200, 9000][dice.below(7)];
        (dice.below(4) > 0).then(|| (0..length).map(|_| dice.next() as u8 & 0x0f).collect())
    };
    (0..dice.below(5))
        .map(|_| {
            offset += 1 + dice.below(3) as i64;
            OwnedRecord {
                offset,
                timestamp: dice.next() as i64 >> dice.below(60),
                key: field(dice),
                value: field(dice),
                headers: (0..dice.below(3))
                    .map(|_| (vec![b'h'; dice.below(3)], field(dice)))
                    .collect(),
            }
        })
        .collect()
}

struct OwnedRecord {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl OwnedRecord {
    fn borrow(&self) -> Record<'_> {
        Record {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: self
                .headers
                .iter()
                .map(|(key, value)| RecordHeader {
                    key,
                    value: value.as_deref(),
                })
                .collect(),
        }
    }
}

#[test]
fn any_records_come_back_as_they_went_in_every_codec() {
    for_seeds(200, &|dice| {
        let base_offset = dice.next() as i64 >> (2 + dice.below(60));
        let records = arbitrary(dice, base_offset);
        for (codec, _) in CODECS {
            let mut builder = BatchBuilder::new(base_offset).compression(codec);
            for record in &records {
                builder.append(&record.borrow());
            }
            let bytes = builder.build();
            let batch = Batch::parse(&bytes).unwrap();
            batch.verify_crc().unwrap();
            assert_eq!(bytes.len(), batch.header.total_len());
            let body = batch.body(LIMIT).unwrap();
            let back: Vec<_> = batch.records(&body).map(Result::unwrap).collect();
            assert!(
                back.into_iter().eq(records.iter().map(OwnedRecord::borrow)),
                "{codec}"
            );
        }
    });
}

/// Only what the other side keeps is compared: it has no codecs here and one value for each header.
#[test]
fn another_implementation_reads_the_same_records() {
    for_seeds(200, &|dice| {
        let base_offset = dice.below(1 << 40) as i64;
        let mut records = arbitrary(dice, base_offset);
        if records.is_empty() {
            return;
        }
        for record in &mut records {
            // The other side adds timestamps without wrapping: their differences have to fit.
            record.timestamp >>= 2;
        }
        let mut builder = BatchBuilder::new(base_offset)
            .producer(7, 3, 11)
            .partition_leader_epoch(5);
        for record in &records {
            builder.append(&record.borrow());
        }
        let theirs = RecordBatchDecoder::decode(&mut builder.build())
            .unwrap()
            .records;
        assert_eq!(theirs.len(), records.len());
        for (theirs, ours) in theirs.iter().zip(&records) {
            assert_eq!(
                (theirs.offset, theirs.timestamp),
                (ours.offset, ours.timestamp)
            );
            assert_eq!(theirs.key.as_deref(), ours.key.as_deref());
            assert_eq!(theirs.value.as_deref(), ours.value.as_deref());
            assert_eq!((theirs.producer_id, theirs.producer_epoch), (7, 3));
            assert_eq!(theirs.partition_leader_epoch, 5);
        }
    });
}

/// Noise, cuts and flipped bytes behind a crc made to fit: an error or records, and never more than the limit.
#[test]
fn harmful_batches_end_in_an_error_or_within_the_limit() {
    const SMALL: usize = 10_000;
    for_seeds(4000, &|dice| {
        let codec = CODECS[dice.below(5)].0;
        let mut builder = BatchBuilder::new(0).compression(codec);
        for record in arbitrary(dice, 0) {
            builder.append(&record.borrow());
        }
        let mut bytes = builder.build().to_vec();
        if dice.below(3) == 0 {
            let noise = (0..dice.below(100)).map(|_| dice.next() as u8);
            bytes.splice(HEADER_LEN.., noise);
        }
        if dice.below(3) == 0 {
            bytes.truncate(HEADER_LEN + dice.below(bytes.len() - HEADER_LEN + 1));
        }
        for _ in 0..dice.below(4) {
            // Mostly behind the header, where the codecs are.
            let from = if dice.below(4) == 0 { 0 } else { HEADER_LEN };
            if from < bytes.len() {
                let at = from + dice.below(bytes.len() - from);
                bytes[at] = [0, 0xff, 0x7f, dice.next() as u8][dice.below(4)];
            }
        }
        let length = (bytes.len() - LENGTH_OVERHEAD) as i32;
        if dice.below(4) > 0 {
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
        }
        for batch in batches(&bytes) {
            let Ok(batch) = batch else { break };
            let Ok(body) = batch.body(SMALL) else {
                continue;
            };
            assert!(body.len() <= SMALL);
            let mut count = 0;
            for record in batch.records(&body) {
                count += 1;
                if let Ok(record) = record {
                    // What they say of noise does not matter, that they come back does.
                    let _ = (control_type(&record), end_txn(&record));
                }
            }
            assert!(count <= body.len() + 1);
        }
    });
}
