//! The codecs of record batches, with a cap on what comes out.

use std::fmt;
use std::io::{Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};

use super::BatchError;

/// What snappy-java writes in front of its blocks: a magic, a version and the oldest version that can read it.
const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const XERIAL_HEADER: [u8; 16] = [
    0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1,
];

/// Bytes that one block of snappy-java holds.
const XERIAL_BLOCK: usize = 32 * 1024;

/// Kafka's default level.
const ZSTD_LEVEL: i32 = 3;

/// Bytes reserved before anything is decompressed.
const MAX_RESERVED: usize = 64 * 1024;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    pub(super) fn from_id(id: i16) -> Result<Compression, BatchError> {
        match id {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            _ => Err(BatchError::UnknownCompression(id)),
        }
    }

    pub(super) fn id(self) -> i16 {
        self as i16
    }

    /// What `data` decompresses to, if that is at most `limit` bytes. Memory stays within the limit, the codec's window
    /// and a constant.
    pub fn decompress(self, data: &[u8], limit: usize) -> Result<Vec<u8>, BatchError> {
        let failed = |error: &dyn fmt::Display| BatchError::Undecompressable {
            codec: self,
            reason: error.to_string(),
        };
        match self {
            Compression::None => read_capped(data, limit, failed),
            Compression::Gzip => read_capped(MultiGzDecoder::new(data), limit, failed),
            Compression::Snappy => decompress_snappy(data, limit, failed),
            Compression::Lz4 => read_capped(FrameDecoder::new(data), limit, failed),
            Compression::Zstd => match zstd::stream::read::Decoder::with_buffer(data) {
                Ok(decoder) => read_capped(decoder, limit, failed),
                Err(error) => Err(failed(&error)),
            },
        }
    }

    /// `data` in the form that Kafka's Java client writes.
    pub fn compress(self, data: &[u8]) -> Vec<u8> {
        const IN_MEMORY: &str = "compressing in memory does not fail";
        match self {
            Compression::None => data.to_vec(),
            Compression::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(data).expect(IN_MEMORY);
                encoder.finish().expect(IN_MEMORY)
            }
            Compression::Snappy => {
                let mut out = XERIAL_HEADER.to_vec();
                let mut encoder = snap::raw::Encoder::new();
                for block in data.chunks(XERIAL_BLOCK) {
                    let block = encoder.compress_vec(block).expect(IN_MEMORY);
                    out.extend_from_slice(&(block.len() as u32).to_be_bytes());
                    out.extend_from_slice(&block);
                }
                out
            }
            Compression::Lz4 => {
                let mut encoder = FrameEncoder::new(Vec::new());
                encoder.write_all(data).expect(IN_MEMORY);
                encoder.finish().expect(IN_MEMORY)
            }
            Compression::Zstd => zstd::stream::encode_all(data, ZSTD_LEVEL).expect(IN_MEMORY),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        })
    }
}

fn read_capped(
    reader: impl Read,
    limit: usize,
    failed: impl Fn(&dyn fmt::Display) -> BatchError,
) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::with_capacity(limit.min(MAX_RESERVED));
    // One byte more than allowed tells too much from just enough.
    match reader
        .take((limit as u64).saturating_add(1))
        .read_to_end(&mut out)
    {
        Ok(_) if out.len() > limit => Err(BatchError::TooLarge { limit }),
        Ok(_) => Ok(out),
        Err(error) => Err(failed(&error)),
    }
}

/// Snappy comes bare from most clients and in blocks from Java.
fn decompress_snappy(
    data: &[u8],
    limit: usize,
    failed: impl Fn(&dyn fmt::Display) -> BatchError,
) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::new();
    if !data.starts_with(&XERIAL_MAGIC) {
        append_snappy(&mut out, data, limit, &failed)?;
        return Ok(out);
    }
    let mut rest = data
        .get(XERIAL_HEADER.len()..)
        .ok_or_else(|| failed(&"the header is cut off"))?;
    while !rest.is_empty() {
        let Some((length, behind)) = rest.split_first_chunk::<4>() else {
            return Err(failed(&"the length of a block is cut off"));
        };
        let Some((block, behind)) = behind.split_at_checked(u32::from_be_bytes(*length) as usize)
        else {
            return Err(failed(&"a block is cut off"));
        };
        append_snappy(&mut out, block, limit, &failed)?;
        rest = behind;
    }
    Ok(out)
}

fn append_snappy(
    out: &mut Vec<u8>,
    block: &[u8],
    limit: usize,
    failed: impl Fn(&dyn fmt::Display) -> BatchError,
) -> Result<(), BatchError> {
    let length = snap::raw::decompress_len(block).map_err(|error| failed(&error))?;
    let start = out.len();
    if length > limit - start {
        return Err(BatchError::TooLarge { limit });
    }
    out.resize(start + length, 0);
    snap::raw::Decoder::new()
        .decompress(block, &mut out[start..])
        .map_err(|error| failed(&error))?;
    Ok(())
}
