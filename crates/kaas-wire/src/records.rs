//! The records of a response: in memory, or in a file that the server sends from.

use bytes::Bytes;

/// Record batches as a field of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Records {
    /// Null on the wire.
    #[default]
    Absent,
    Inline(Bytes),
    /// `len` bytes that the encoder leaves out: it writes their length and notes a [`Gap`](crate::Gap) with this `id`.
    External {
        len: usize,
        id: usize,
    },
}

impl Records {
    /// Bytes of record batches; 0 when absent.
    pub fn len(&self) -> usize {
        match self {
            Records::Absent => 0,
            Records::Inline(bytes) => bytes.len(),
            Records::External { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
