//! The records inside a batch.

use super::{BatchError, BatchHeader, TimestampType};

/// The least a record takes: length, attributes, four deltas and lengths, and a count of headers.
const MIN_RECORD_LEN: usize = 7;

/// One record. `timestamp` is milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Vec<RecordHeader<'a>>,
}

/// A header of a record. Kafka writes keys as UTF-8 and does not insist on it; one key may come several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

/// The records of one batch in order. An error is the last item, and the batch is one that Kafka refuses too: a record
/// does not parse, or there are fewer or more of them than the header says.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    rest: &'a [u8],
    index: usize,
    count: usize,
    base_offset: i64,
    base_timestamp: i64,
    append_time: Option<i64>,
    failed: bool,
}

impl<'a> RecordIter<'a> {
    pub(super) fn new(header: &BatchHeader, body: &'a [u8]) -> RecordIter<'a> {
        let append_time = match header.timestamp_type() {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(header.max_timestamp),
        };
        RecordIter {
            rest: body,
            index: 0,
            // A negative count is taken for none; then the bytes that are left are the error.
            count: usize::try_from(header.record_count).unwrap_or(0),
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time,
            failed: false,
        }
    }

    fn record(&mut self) -> Result<Record<'a>, &'static str> {
        let length = varint(&mut self.rest)?;
        let length = usize::try_from(length).map_err(|_| "has a negative length")?;
        let mut bytes = take(&mut self.rest, length)?;
        let bytes = &mut bytes;
        take(bytes, 1)?;
        let timestamp_delta = varlong(bytes)?;
        let offset_delta = varint(bytes)?;
        let key = nullable(bytes)?;
        let value = nullable(bytes)?;
        let count =
            usize::try_from(varint(bytes)?).map_err(|_| "has a negative count of headers")?;
        // A header takes two bytes at least.
        if count > bytes.len() / 2 {
            return Err("has more headers than bytes");
        }
        let mut headers = Vec::with_capacity(count);
        for _ in 0..count {
            let key = nullable(bytes)?.ok_or("has a header without a key")?;
            headers.push(RecordHeader {
                key,
                value: nullable(bytes)?,
            });
        }
        if !bytes.is_empty() {
            return Err("is longer than its fields");
        }
        Ok(Record {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            timestamp: match self.append_time {
                Some(append_time) => append_time,
                None => self.base_timestamp.wrapping_add(timestamp_delta),
            },
            key,
            value,
            headers,
        })
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = if self.index < self.count {
            self.record()
        } else if self.rest.is_empty() {
            return None;
        } else {
            Err("is one more than the header says")
        };
        self.failed = record.is_err();
        let index = self.index;
        self.index += 1;
        Some(record.map_err(|reason| BatchError::InvalidRecord { index, reason }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.rest.len() / MIN_RECORD_LEN + 1))
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], &'static str> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or("is cut off")?;
    *bytes = rest;
    Ok(taken)
}

fn nullable<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, &'static str> {
    match varint(bytes)? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| "has a field of negative length")?;
            take(bytes, length).map(Some)
        }
    }
}

/// A zigzag varint of 32 bits.
fn varint(bytes: &mut &[u8]) -> Result<i32, &'static str> {
    i32::try_from(varlong(bytes)?).map_err(|_| "has a varint of more than 32 bits")
}

/// A zigzag varint of 64 bits.
fn varlong(bytes: &mut &[u8]) -> Result<i64, &'static str> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("is cut off")?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err("has a varint of more than 64 bits")
}

/// Appends the record as [`RecordIter`] reads it; timestamp and offset are relative to those of the batch.
pub(super) fn encode(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    base_offset: i64,
    base_timestamp: i64,
) {
    let mut body = Vec::with_capacity(
        32 + record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len),
    );
    body.push(0);
    put_varlong(&mut body, record.timestamp.wrapping_sub(base_timestamp));
    put_varlong(&mut body, record.offset - base_offset);
    put_nullable(&mut body, record.key);
    put_nullable(&mut body, record.value);
    put_varlong(&mut body, record.headers.len() as i64);
    for header in &record.headers {
        put_nullable(&mut body, Some(header.key));
        put_nullable(&mut body, header.value);
    }
    put_varlong(out, body.len() as i64);
    out.extend_from_slice(&body);
}

fn put_nullable(out: &mut Vec<u8>, field: Option<&[u8]>) {
    put_varlong(out, field.map_or(-1, |field| field.len() as i64));
    out.extend_from_slice(field.unwrap_or(&[]));
}

fn put_varlong(out: &mut Vec<u8>, value: i64) {
    let mut value = (value << 1 ^ value >> 63) as u64;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
