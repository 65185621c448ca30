//! Reads Kafka's primitive types from one frame, within a budget of memory.
//!
//! Every read checks the bytes that are left first, so no input can make it panic or allocate more than the budget.

use bytes::Bytes;

/// The longest string Kafka allows, in bytes, in every version.
pub const MAX_STRING_LEN: usize = i16::MAX as usize;

/// Elements of an array that are reserved before the first is decoded.
const MAX_RESERVED: usize = 1024;

/// Why bytes are not the message they should be. Positions are bytes from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("frame ends {missing} bytes too early at byte {at}")]
    Truncated { at: usize, missing: usize },
    #[error("length {length} at byte {at} is not possible")]
    InvalidLength { at: usize, length: i64 },
    #[error("null at byte {at} where a value must stand")]
    Null { at: usize },
    #[error("varint at byte {at} is too long")]
    InvalidVarint { at: usize },
    #[error("tagged field {tag} at byte {at} does not end where its size says")]
    TaggedSize { at: usize, tag: u32 },
    #[error("decoding to byte {at} would need more memory than the budget for one frame")]
    OverBudget { at: usize },
    #[error("{message} has no version {version}")]
    UnsupportedVersion { message: &'static str, version: i16 },
}

/// A position in one frame, and the memory that decoding it may still take.
#[derive(Debug)]
pub struct Reader {
    frame: Bytes,
    at: usize,
    budget: usize,
}

impl Reader {
    /// `budget` is how many bytes the decoded structs, strings and byte fields may take together. Records are slices of
    /// the frame and cost nothing.
    pub fn new(frame: Bytes, budget: usize) -> Reader {
        Reader {
            frame,
            at: 0,
            budget,
        }
    }

    /// Bytes from the start of the frame.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.frame.len() - self.at
    }

    /// Memory that decoding may still take.
    pub fn budget(&self) -> usize {
        self.budget
    }

    fn advance(&mut self, length: usize) -> Result<usize, DecodeError> {
        let left = self.remaining();
        if length > left {
            return Err(DecodeError::Truncated {
                at: self.frame.len(),
                missing: length - left,
            });
        }
        let start = self.at;
        self.at += length;
        Ok(start)
    }

    fn take(&mut self, length: usize) -> Result<&[u8], DecodeError> {
        let start = self.advance(length)?;
        Ok(&self.frame[start..self.at])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn charge(&mut self, cost: usize) -> Result<(), DecodeError> {
        match self.budget.checked_sub(cost) {
            Some(left) => self.budget = left,
            None => return Err(DecodeError::OverBudget { at: self.at }),
        }
        Ok(())
    }

    /// Passes over `length` bytes.
    pub fn skip(&mut self, length: usize) -> Result<(), DecodeError> {
        self.advance(length)?;
        Ok(())
    }

    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.i8()? != 0)
    }

    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    pub(crate) fn uuid(&mut self) -> Result<[u8; 16], DecodeError> {
        self.array()
    }

    /// An unsigned varint of up to 32 bits.
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        let at = self.at;
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::InvalidVarint { at })
    }

    /// A length: in the compact form a varint one too large, otherwise signed 32 bits. `None` is null.
    pub(crate) fn length(&mut self, compact: bool) -> Result<Option<usize>, DecodeError> {
        let at = self.at;
        if compact {
            return Ok((self.uvarint()? as usize).checked_sub(1));
        }
        match self.i32()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => Ok(Some(length)),
                Err(_) => Err(DecodeError::InvalidLength {
                    at,
                    length: i64::from(length),
                }),
            },
        }
    }

    /// A string; its length has 16 bits in the old form. Bytes that are no UTF-8 become U+FFFD, as with Kafka: a client
    /// id in some old encoding is no reason to turn a client away.
    pub(crate) fn nullable_string(&mut self, compact: bool) -> Result<Option<String>, DecodeError> {
        let at = self.at;
        let length = if compact {
            self.length(true)?
        } else {
            match self.i16()? {
                -1 => None,
                length => match usize::try_from(length) {
                    Ok(length) => Some(length),
                    Err(_) => {
                        return Err(DecodeError::InvalidLength {
                            at,
                            length: i64::from(length),
                        });
                    }
                },
            }
        };
        let Some(length) = length else {
            return Ok(None);
        };
        if length > MAX_STRING_LEN {
            return Err(DecodeError::InvalidLength {
                at,
                length: length as i64,
            });
        }
        self.charge(length)?;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        if text.len() > MAX_STRING_LEN {
            return Err(DecodeError::InvalidLength {
                at,
                length: text.len() as i64,
            });
        }
        self.charge(text.len() - length)?;
        Ok(Some(text))
    }

    /// A byte field, copied so that it does not pin the frame.
    pub(crate) fn nullable_bytes(&mut self, compact: bool) -> Result<Option<Bytes>, DecodeError> {
        let Some(length) = self.length(compact)? else {
            return Ok(None);
        };
        let start = self.advance(length)?;
        self.charge(length)?;
        Ok(Some(Bytes::copy_from_slice(&self.frame[start..self.at])))
    }

    /// Records: a slice of the frame.
    pub(crate) fn nullable_records(&mut self, compact: bool) -> Result<Option<Bytes>, DecodeError> {
        let Some(length) = self.length(compact)? else {
            return Ok(None);
        };
        let start = self.advance(length)?;
        Ok(Some(self.frame.slice(start..self.at)))
    }

    /// The elements of an array. Every element takes at least one byte, so a count above the bytes left is refused before
    /// anything is reserved; then all elements are charged, and only then are some reserved.
    pub(crate) fn nullable_array<T>(
        &mut self,
        compact: bool,
        element: impl Fn(&mut Reader) -> Result<T, DecodeError>,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let at = self.at;
        let Some(count) = self.length(compact)? else {
            return Ok(None);
        };
        if count > self.remaining() {
            return Err(DecodeError::InvalidLength {
                at,
                length: count as i64,
            });
        }
        self.charge(count.saturating_mul(size_of::<T>()))?;
        let mut elements = Vec::with_capacity(count.min(MAX_RESERVED));
        for _ in 0..count {
            elements.push(element(self)?);
        }
        Ok(Some(elements))
    }

    /// The tagged fields at the end of a flexible struct: `field` gets the tag and the size of each, and decodes or skips
    /// it.
    pub(crate) fn tagged_fields(
        &mut self,
        mut field: impl FnMut(u32, usize, &mut Reader) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let start = self.advance(size)?;
            self.at = start;
            field(tag, size, self)?;
            if self.at != start + size {
                return Err(DecodeError::TaggedSize { at: start, tag });
            }
        }
        Ok(())
    }
}
