//! Writes Kafka's primitive types into one growing buffer, with gaps for records that are sent straight from files.

use crate::error_code::ErrorCode;
use crate::reader::MAX_STRING_LEN;

/// Where bytes that are not in the buffer belong: the records of [`Records::External`](crate::Records::External).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The bytes go in front of this position of the buffer.
    pub at: usize,
    /// How many bytes go there.
    pub len: usize,
    /// The id the records carried.
    pub id: usize,
}

/// The bytes of encoded messages, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    buffer: Vec<u8>,
    gaps: Vec<Gap>,
    errors: Vec<(ErrorCode, u64)>,
}

impl Writer {
    pub fn with_capacity(capacity: usize) -> Writer {
        Writer {
            buffer: Vec::with_capacity(capacity),
            ..Writer::default()
        }
    }

    /// Appends to what `buffer` holds.
    pub fn from_vec(buffer: Vec<u8>) -> Writer {
        Writer {
            buffer,
            ..Writer::default()
        }
    }

    /// The buffer without the bytes of the gaps.
    pub fn into_vec(self) -> Vec<u8> {
        self.buffer
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.buffer
    }

    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The gaps in the order of their positions.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The error codes that were written, `NONE` left out, with how often each came in a row.
    pub fn errors(&self) -> &[(ErrorCode, u64)] {
        &self.errors
    }

    /// Forgets what was written and keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.gaps.clear();
        self.errors.clear();
    }

    pub fn reserve(&mut self, additional: usize) {
        self.buffer.reserve(additional);
    }

    /// Leaves room for `len` bytes that are not in the buffer.
    pub fn gap(&mut self, len: usize, id: usize) {
        self.gaps.push(Gap {
            at: self.buffer.len(),
            len,
            id,
        });
    }

    pub fn error_code(&mut self, code: ErrorCode) {
        self.i16(code.0);
        if code.is_ok() {
            return;
        }
        match self.errors.last_mut() {
            Some((last, count)) if *last == code => *count += 1,
            _ => self.errors.push((code, 1)),
        }
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub fn bool(&mut self, value: bool) {
        self.buffer.push(u8::from(value));
    }

    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned varint.
    pub fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.buffer.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.push(value as u8);
    }

    /// A length as [`Reader::length`](crate::Reader) reads it.
    pub(crate) fn length(&mut self, length: Option<usize>, compact: bool) {
        let length = match length {
            None => -1,
            Some(length) => i32::try_from(length).expect("a message is smaller than 2 GiB"),
        };
        if compact {
            self.uvarint((length + 1) as u32);
        } else {
            self.i32(length);
        }
    }

    /// A string. What is longer than Kafka allows is cut at a character.
    pub(crate) fn nullable_string(&mut self, text: Option<&str>, compact: bool) {
        let text = text.map(clip);
        let length = text.map(str::len);
        if compact {
            self.length(length, true);
        } else {
            self.i16(length.map_or(-1, |length| length as i16));
        }
        self.raw(text.unwrap_or("").as_bytes());
    }
}

/// `text`, or as much of it as Kafka's longest string holds.
fn clip(text: &str) -> &str {
    if text.len() <= MAX_STRING_LEN {
        text
    } else {
        &text[..text.floor_char_boundary(MAX_STRING_LEN)]
    }
}

/// Bytes that [`Writer::nullable_string`] makes.
pub(crate) fn string_size(text: Option<&str>, compact: bool) -> usize {
    let length = text.map(|text| clip(text).len());
    let prefix = if compact {
        length_size(length, true)
    } else {
        2
    };
    prefix + length.unwrap_or(0)
}

/// Bytes that [`Writer::uvarint`] takes for `value`.
pub(crate) fn uvarint_size(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// Bytes that a length takes in front of an array, bytes or records.
pub(crate) fn length_size(length: Option<usize>, compact: bool) -> usize {
    match length {
        _ if !compact => 4,
        None => 1,
        Some(length) => uvarint_size(length as u32 + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_written_as_numbers_and_counted_but_for_none() {
        let mut writer = Writer::default();
        for code in [27, 27, 0, 27, -1] {
            writer.error_code(ErrorCode(code));
        }
        assert_eq!(writer.as_slice(), [0, 27, 0, 27, 0, 0, 0, 27, 255, 255]);
        assert_eq!(writer.errors(), [(ErrorCode(27), 3), (ErrorCode(-1), 1)]);
        writer.clear();
        assert_eq!(writer.errors(), []);
    }
}
