//! From a table of fields to a codec: the `message!` macro, and how each type of field is read and written.
//!
//! A table declares the message, then each struct of it:
//!
//! ```text
//! message! {
//!     JoinGroupRequest: key 11, versions 0..=9, flexible 6..;
//!
//!     struct JoinGroupRequest {
//!         group_id:             String,                        0..;
//!         rebalance_timeout_ms: i32,                           1.., = -1;
//!         protocols:            Vec<JoinGroupRequestProtocol>, 0..;
//!     }
//!     ...
//! }
//! ```
//!
//! A row is name, type, the versions that have the field, and where they say more than the type does: `null 7..` (the
//! versions in which an `Option` may be null), `= -1` (the default when it is not Rust's). A struct's tagged fields
//! stand in a `tagged { }` after it, with their tag. `as frame_slice` marks records of a request.
//!
//! A field that the version lacks is dropped by encode and has its default after decode. `None` in a version in which
//! the field cannot be null is written as the empty value.

#[cfg(test)]
pub(crate) mod probe;

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::reader::{DecodeError, Reader};
use crate::records::Records;
use crate::uuid::Uuid;
use crate::writer::{Writer, length_size, string_size, uvarint_size};

/// A request, a response, or data in Kafka's message format.
pub trait Message: Default {
    /// The api key; -1 for data.
    const API_KEY: i16;
    const NAME: &'static str;
    /// The versions that can be decoded and encoded.
    const VERSIONS: RangeInclusive<i16>;
    /// The first version with compact lengths and tagged fields; `i16::MAX` if none.
    const FLEXIBLE_FROM: i16;

    /// Reads the message and leaves `reader` behind it.
    fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError>;

    /// Appends the message. `version` is one of [`VERSIONS`](Message::VERSIONS).
    fn encode(&self, writer: &mut Writer, version: i16);

    /// Bytes that [`encode`](Message::encode) makes, those of the gaps included.
    fn size(&self, version: i16) -> usize;
}

/// How much more memory data may take than bytes. An empty string of two bytes makes twelve times that.
const DATA_EXPANSION: usize = 32;

/// Decodes data that carries its version in 16 bits in front, as members' metadata and transaction markers do. A version
/// above the known ones is read as the newest: it only has more behind.
pub fn decode_versioned<M: Message>(data: &Bytes) -> Result<M, DecodeError> {
    let mut reader = Reader::new(data.clone(), DATA_EXPANSION * data.len());
    let version = reader.i16()?;
    M::decode(&mut reader, version.min(*M::VERSIONS.end()))
}

/// Encodes data with its version in front.
pub fn encode_versioned<M: Message>(message: &M, version: i16) -> Bytes {
    let mut writer = Writer::with_capacity(2 + message.size(version));
    writer.i16(version);
    message.encode(&mut writer, version);
    Bytes::from(writer.into_vec())
}

/// What decides how a field is laid out.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) version: i16,
    pub(crate) flexible: bool,
}

/// A type that can be a field.
pub(crate) trait Field: Sized {
    fn decode(reader: &mut Reader, layout: Layout) -> Result<Self, DecodeError>;
    fn encode(&self, writer: &mut Writer, layout: Layout);
    fn size(&self, layout: Layout) -> usize;
}

/// A type that has a null. What is given here holds for structs: a byte in front, negative for null.
pub(crate) trait Nullable: Field {
    fn decode_nullable(reader: &mut Reader, layout: Layout) -> Result<Option<Self>, DecodeError> {
        if reader.i8()? < 0 {
            Ok(None)
        } else {
            Self::decode(reader, layout).map(Some)
        }
    }

    fn encode_nullable(value: Option<&Self>, writer: &mut Writer, layout: Layout) {
        match value {
            None => writer.i8(-1),
            Some(value) => {
                writer.i8(1);
                value.encode(writer, layout);
            }
        }
    }

    fn size_nullable(value: Option<&Self>, layout: Layout) -> usize {
        1 + value.map_or(0, |value| value.size(layout))
    }
}

impl<T: Nullable> Field for Option<T> {
    fn decode(reader: &mut Reader, layout: Layout) -> Result<Self, DecodeError> {
        T::decode_nullable(reader, layout)
    }

    fn encode(&self, writer: &mut Writer, layout: Layout) {
        T::encode_nullable(self.as_ref(), writer, layout);
    }

    fn size(&self, layout: Layout) -> usize {
        T::size_nullable(self.as_ref(), layout)
    }
}

/// Decodes, in a version in which it cannot be null, a field that some version allows to be null.
pub(crate) fn decode_not_null<T: Nullable>(
    reader: &mut Reader,
    layout: Layout,
) -> Result<Option<T>, DecodeError> {
    let at = reader.position();
    match T::decode_nullable(reader, layout)? {
        None => Err(DecodeError::Null { at }),
        value => Ok(value),
    }
}

/// Encodes such a field: `None` is written as the empty value.
pub(crate) fn encode_not_null<T: Nullable + Default>(
    value: &Option<T>,
    writer: &mut Writer,
    layout: Layout,
) {
    match value {
        None => T::encode_nullable(Some(&T::default()), writer, layout),
        value => T::encode_nullable(value.as_ref(), writer, layout),
    }
}

/// Bytes that [`encode_not_null`] makes.
pub(crate) fn size_not_null<T: Nullable + Default>(value: &Option<T>, layout: Layout) -> usize {
    match value {
        None => T::size_nullable(Some(&T::default()), layout),
        value => T::size_nullable(value.as_ref(), layout),
    }
}

macro_rules! fixed_size_fields {
    ($($type:ident $bytes:literal,)*) => { $(
        impl Field for $type {
            #[inline]
            fn decode(reader: &mut Reader, _: Layout) -> Result<Self, DecodeError> {
                reader.$type()
            }

            #[inline]
            fn encode(&self, writer: &mut Writer, _: Layout) {
                writer.$type(*self);
            }

            #[inline]
            fn size(&self, _: Layout) -> usize {
                $bytes
            }
        }
    )* };
}

fixed_size_fields! { bool 1, i8 1, i16 2, u16 2, i32 4, u32 4, i64 8, f64 8, }

impl Field for ErrorCode {
    #[inline]
    fn decode(reader: &mut Reader, _: Layout) -> Result<Self, DecodeError> {
        reader.i16().map(ErrorCode)
    }

    #[inline]
    fn encode(&self, writer: &mut Writer, _: Layout) {
        writer.error_code(*self);
    }

    #[inline]
    fn size(&self, _: Layout) -> usize {
        2
    }
}

impl Field for Uuid {
    #[inline]
    fn decode(reader: &mut Reader, _: Layout) -> Result<Self, DecodeError> {
        reader.uuid().map(Uuid::from_bytes)
    }

    #[inline]
    fn encode(&self, writer: &mut Writer, _: Layout) {
        writer.raw(self.as_bytes());
    }

    #[inline]
    fn size(&self, _: Layout) -> usize {
        16
    }
}

impl Nullable for String {
    fn decode_nullable(reader: &mut Reader, layout: Layout) -> Result<Option<Self>, DecodeError> {
        reader.nullable_string(layout.flexible)
    }

    fn encode_nullable(value: Option<&Self>, writer: &mut Writer, layout: Layout) {
        writer.nullable_string(value.map(String::as_str), layout.flexible);
    }

    fn size_nullable(value: Option<&Self>, layout: Layout) -> usize {
        string_size(value.map(String::as_str), layout.flexible)
    }
}

impl Nullable for Bytes {
    fn decode_nullable(reader: &mut Reader, layout: Layout) -> Result<Option<Self>, DecodeError> {
        reader.nullable_bytes(layout.flexible)
    }

    fn encode_nullable(value: Option<&Self>, writer: &mut Writer, layout: Layout) {
        writer.length(value.map(Bytes::len), layout.flexible);
        writer.raw(value.map_or(&[], |bytes| bytes));
    }

    fn size_nullable(value: Option<&Self>, layout: Layout) -> usize {
        length_size(value.map(Bytes::len), layout.flexible) + value.map_or(0, Bytes::len)
    }
}

impl<T: Field> Nullable for Vec<T> {
    fn decode_nullable(reader: &mut Reader, layout: Layout) -> Result<Option<Self>, DecodeError> {
        reader.nullable_array(layout.flexible, |reader| T::decode(reader, layout))
    }

    fn encode_nullable(value: Option<&Self>, writer: &mut Writer, layout: Layout) {
        writer.length(value.map(Vec::len), layout.flexible);
        for element in value.into_iter().flatten() {
            element.encode(writer, layout);
        }
    }

    fn size_nullable(value: Option<&Self>, layout: Layout) -> usize {
        let elements: usize = value
            .into_iter()
            .flatten()
            .map(|element| element.size(layout))
            .sum();
        length_size(value.map(Vec::len), layout.flexible) + elements
    }
}

/// A field that cannot be null, of a type that can.
macro_rules! non_null_fields {
    ($([$($generic:tt)*] $type:ty,)*) => { $(
        impl<$($generic)*> Field for $type {
            fn decode(reader: &mut Reader, layout: Layout) -> Result<Self, DecodeError> {
                let at = reader.position();
                Self::decode_nullable(reader, layout)?.ok_or(DecodeError::Null { at })
            }

            fn encode(&self, writer: &mut Writer, layout: Layout) {
                Self::encode_nullable(Some(self), writer, layout);
            }

            fn size(&self, layout: Layout) -> usize {
                Self::size_nullable(Some(self), layout)
            }
        }
    )* };
}

non_null_fields! { [] String, [] Bytes, [T: Field] Vec<T>, }

impl Field for Records {
    fn decode(reader: &mut Reader, layout: Layout) -> Result<Self, DecodeError> {
        Ok(reader
            .nullable_records(layout.flexible)?
            .map_or(Records::Absent, Records::Inline))
    }

    fn encode(&self, writer: &mut Writer, layout: Layout) {
        match self {
            Records::Absent => writer.length(None, layout.flexible),
            Records::Inline(bytes) => {
                writer.length(Some(bytes.len()), layout.flexible);
                writer.raw(bytes);
            }
            Records::External { len, id } => {
                writer.length(Some(*len), layout.flexible);
                writer.gap(*len, *id);
            }
        }
    }

    fn size(&self, layout: Layout) -> usize {
        let length = if matches!(self, Records::Absent) {
            None
        } else {
            Some(self.len())
        };
        length_size(length, layout.flexible) + self.len()
    }
}

/// Bytes of a tagged field: tag, size, value.
pub(crate) fn tagged_size(tag: u32, value: usize) -> usize {
    uvarint_size(tag) + uvarint_size(value as u32) + value
}

/// The first fragment that is there.
macro_rules! first {
    ([] $otherwise:expr) => {
        $otherwise
    };
    ([$given:expr] $otherwise:expr) => {
        $given
    };
}

macro_rules! decode_field {
    ($reader:ident, $layout:ident, $type:ty) => {
        <$type as $crate::message::Field>::decode($reader, $layout)?
    };
    ($reader:ident, $layout:ident, $type:ty, null $null:expr) => {
        if $null.contains(&$layout.version) {
            <$type as $crate::message::Field>::decode($reader, $layout)?
        } else {
            $crate::message::decode_not_null($reader, $layout)?
        }
    };
    ($reader:ident, $layout:ident, $type:ty, frame_slice) => {
        $reader.nullable_records($layout.flexible)?
    };
}

macro_rules! encode_field {
    ($value:expr, $writer:ident, $layout:ident) => {
        $crate::message::Field::encode(&$value, $writer, $layout)
    };
    ($value:expr, $writer:ident, $layout:ident, null $null:expr) => {
        if $null.contains(&$layout.version) {
            $crate::message::Field::encode(&$value, $writer, $layout)
        } else {
            $crate::message::encode_not_null(&$value, $writer, $layout)
        }
    };
}

macro_rules! size_field {
    ($value:expr, $layout:ident) => {
        $crate::message::Field::size(&$value, $layout)
    };
    ($value:expr, $layout:ident, null $null:expr) => {
        if $null.contains(&$layout.version) {
            $crate::message::Field::size(&$value, $layout)
        } else {
            $crate::message::size_not_null(&$value, $layout)
        }
    };
}

macro_rules! message {
    (
        $message:ident: $(key $key:literal,)? versions $versions:expr $(, flexible $flexible:literal..)?;
        $(
            $(#[$meta:meta])*
            struct $struct:ident {
                $(
                    $(#[$field_meta:meta])*
                    $field:ident: $type:ty $(as $slice:ident)?, $in:expr $(, null $null:expr)? $(, = $default:expr)?;
                )*
            }
            $(tagged {
                $(
                    $(#[$tag_meta:meta])*
                    $tag:literal: $tag_field:ident: $tag_type:ty, $tag_in:expr $(, = $tag_default:expr)?;
                )*
            })?
        )*
    ) => {
        impl $crate::message::Message for $message {
            const API_KEY: i16 = $crate::message::first!([$($key)?] -1);
            const NAME: &'static str = stringify!($message);
            const VERSIONS: std::ops::RangeInclusive<i16> = $versions;
            const FLEXIBLE_FROM: i16 = $crate::message::first!([$($flexible)?] i16::MAX);

            fn decode(reader: &mut $crate::reader::Reader, version: i16) -> Result<Self, $crate::reader::DecodeError> {
                if !Self::VERSIONS.contains(&version) {
                    return Err($crate::reader::DecodeError::UnsupportedVersion { message: Self::NAME, version });
                }
                let layout = $crate::message::Layout { version, flexible: version >= Self::FLEXIBLE_FROM };
                $crate::message::Field::decode(reader, layout)
            }

            fn encode(&self, writer: &mut $crate::writer::Writer, version: i16) {
                debug_assert!(Self::VERSIONS.contains(&version), "{} has no version {version}", Self::NAME);
                let layout = $crate::message::Layout { version, flexible: version >= Self::FLEXIBLE_FROM };
                $crate::message::Field::encode(self, writer, layout);
            }

            fn size(&self, version: i16) -> usize {
                let layout = $crate::message::Layout { version, flexible: version >= Self::FLEXIBLE_FROM };
                $crate::message::Field::size(self, layout)
            }
        }

        $(
            $(#[$meta])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $struct {
                $( $(#[$field_meta])* pub $field: $type, )*
                $( $( $(#[$tag_meta])* pub $tag_field: $tag_type, )* )?
            }

            impl Default for $struct {
                fn default() -> Self {
                    $struct {
                        $( $field: $crate::message::first!([$($default)?] Default::default()), )*
                        $( $( $tag_field: $crate::message::first!([$($tag_default)?] Default::default()), )* )?
                    }
                }
            }

            impl $crate::message::Field for $struct {
                fn decode(
                    reader: &mut $crate::reader::Reader,
                    layout: $crate::message::Layout,
                ) -> Result<Self, $crate::reader::DecodeError> {
                    let mut value = $struct {
                        $( $field: if ($in).contains(&layout.version) {
                            $crate::message::decode_field!(reader, layout, $type $(, null ($null))? $(, $slice)?)
                        } else {
                            $crate::message::first!([$($default)?] Default::default())
                        }, )*
                        $( $( $tag_field: $crate::message::first!([$($tag_default)?] Default::default()), )* )?
                    };
                    if layout.flexible {
                        value.decode_tagged_fields(reader, layout)?;
                    }
                    Ok(value)
                }

                fn encode(&self, writer: &mut $crate::writer::Writer, layout: $crate::message::Layout) {
                    $( if ($in).contains(&layout.version) {
                        $crate::message::encode_field!(self.$field, writer, layout $(, null ($null))?);
                    } )*
                    if layout.flexible {
                        let count = 0 $($( + u32::from(
                            ($tag_in).contains(&layout.version)
                                && self.$tag_field != $crate::message::first!([$($tag_default)?] <$tag_type>::default())
                        ) )*)?;
                        writer.uvarint(count);
                        $($( if ($tag_in).contains(&layout.version)
                            && self.$tag_field != $crate::message::first!([$($tag_default)?] <$tag_type>::default())
                        {
                            writer.uvarint($tag);
                            writer.uvarint($crate::message::Field::size(&self.$tag_field, layout) as u32);
                            $crate::message::Field::encode(&self.$tag_field, writer, layout);
                        } )*)?
                    }
                }

                fn size(&self, layout: $crate::message::Layout) -> usize {
                    let mut size = 0;
                    $( if ($in).contains(&layout.version) {
                        size += $crate::message::size_field!(self.$field, layout $(, null ($null))?);
                    } )*
                    if layout.flexible {
                        // The count of tagged fields: no struct has more than 127.
                        size += 1;
                        $($( if ($tag_in).contains(&layout.version)
                            && self.$tag_field != $crate::message::first!([$($tag_default)?] <$tag_type>::default())
                        {
                            let value = $crate::message::Field::size(&self.$tag_field, layout);
                            size += $crate::message::tagged_size($tag, value);
                        } )*)?
                    }
                    size
                }
            }

            impl $crate::message::Nullable for $struct {}

            #[cfg(test)]
            impl $crate::message::probe::Probe for $struct {
                fn arbitrary(
                    dice: &mut $crate::message::probe::Dice,
                    layout: $crate::message::Layout,
                ) -> Self {
                    let mut value = $struct::default();
                    $( if ($in).contains(&layout.version) {
                        value.$field =
                            $crate::message::probe::arbitrary_field!(dice, layout, $type $(, null ($null))?);
                    } )*
                    $($( if layout.flexible && ($tag_in).contains(&layout.version) && dice.below(2) == 0 {
                        value.$tag_field = $crate::message::probe::arbitrary_field!(dice, layout, $tag_type);
                    } )*)?
                    value
                }

                fn heap(&self) -> usize {
                    0 $( + $crate::message::probe::heap_of_field!(self.$field $(, $slice)?) )*
                        $($( + $crate::message::probe::heap_of_field!(self.$tag_field) )*)?
                }
            }

            impl $struct {
                fn decode_tagged_fields(
                    &mut self,
                    reader: &mut $crate::reader::Reader,
                    layout: $crate::message::Layout,
                ) -> Result<(), $crate::reader::DecodeError> {
                    reader.tagged_fields(|tag, size, reader| match (tag, layout.version) {
                        $($( ($tag, version) if ($tag_in).contains(&version) => {
                            self.$tag_field = $crate::message::Field::decode(reader, layout)?;
                            Ok(())
                        } )*)?
                        _ => reader.skip(size),
                    })
                }
            }
        )*
    };
}

pub(crate) use {decode_field, encode_field, first, message, size_field};
