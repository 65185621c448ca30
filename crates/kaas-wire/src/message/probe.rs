//! Makes arbitrary messages and weighs them, for the tests of tables and batches.

use bytes::Bytes;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};

use super::Layout;
use crate::error_code::ErrorCode;
use crate::records::Records;
use crate::uuid::Uuid;

/// A stream of numbers that its seed determines (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Often short, sometimes past the first byte of a varint.
    fn length(&mut self) -> usize {
        match self.below(8) {
            0 => 120 + self.below(20),
            _ => self.below(6),
        }
    }

    /// Bits with many zeros and ones at the ends, where encodings break.
    fn bits(&mut self) -> u64 {
        let bits = self.next();
        match bits % 6 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << 63 | 1 << 31 | 1 << 15 | 1 << 7,
            3 => bits >> 56,
            _ => bits,
        }
    }
}

/// Runs `test` for as many seeds; a failure tells its seed.
pub(crate) fn for_seeds(cases: u32, test: &dyn Fn(&mut Dice)) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&any::<u64>(), |seed| {
            test(&mut Dice(seed));
            Ok(())
        })
        .unwrap();
}

/// The bytes that `text` writes in hexadecimal.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    text.as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// What the tests of the tables need of a field.
pub(crate) trait Probe: Sized {
    /// A value that this layout can hold.
    fn arbitrary(dice: &mut Dice, layout: Layout) -> Self;

    /// Bytes on the heap that decoding the value took and the budget must cover.
    fn heap(&self) -> usize;
}

macro_rules! probe_numbers {
    ($($type:ty: $from:expr,)*) => { $(
        impl Probe for $type {
            fn arbitrary(dice: &mut Dice, _: Layout) -> Self {
                let from: fn(u64) -> $type = $from;
                from(dice.bits())
            }

            fn heap(&self) -> usize {
                0
            }
        }
    )* };
}

probe_numbers! {
    bool: |bits| bits & 1 == 1,
    i8: |bits| bits as i8,
    i16: |bits| bits as i16,
    u16: |bits| bits as u16,
    i32: |bits| bits as i32,
    u32: |bits| bits as u32,
    i64: |bits| bits as i64,
    f64: |bits| bits as i64 as f64 / 7.0,
    ErrorCode: |bits| ErrorCode(bits as i16),
    Uuid: |bits| Uuid::from_bytes((u128::from(bits) * 0x1_0001).to_be_bytes()),
}

impl Probe for String {
    fn arbitrary(dice: &mut Dice, _: Layout) -> Self {
        (0..dice.length())
            .map(|_| ['a', '/', '\0', 'é', '𝄞'][dice.below(5)])
            .collect()
    }

    fn heap(&self) -> usize {
        self.len()
    }
}

impl Probe for Bytes {
    fn arbitrary(dice: &mut Dice, _: Layout) -> Self {
        (0..dice.length()).map(|_| dice.next() as u8).collect()
    }

    fn heap(&self) -> usize {
        self.len()
    }
}

/// Never absent: some messages have no null for their records.
impl Probe for Records {
    fn arbitrary(dice: &mut Dice, layout: Layout) -> Self {
        Records::Inline(Bytes::arbitrary(dice, layout))
    }

    fn heap(&self) -> usize {
        0
    }
}

impl<T: Probe> Probe for Option<T> {
    fn arbitrary(dice: &mut Dice, layout: Layout) -> Self {
        (dice.below(4) > 0).then(|| T::arbitrary(dice, layout))
    }

    fn heap(&self) -> usize {
        self.as_ref().map_or(0, T::heap)
    }
}

impl<T: Probe> Probe for Vec<T> {
    fn arbitrary(dice: &mut Dice, layout: Layout) -> Self {
        (0..[0, 1, 1, 2, 3][dice.below(5)])
            .map(|_| T::arbitrary(dice, layout))
            .collect()
    }

    fn heap(&self) -> usize {
        size_of::<T>() * self.len() + self.iter().map(T::heap).sum::<usize>()
    }
}

macro_rules! arbitrary_field {
    ($dice:ident, $layout:ident, $type:ty) => {
        <$type as $crate::message::probe::Probe>::arbitrary($dice, $layout)
    };
    ($dice:ident, $layout:ident, $type:ty, null $null:expr) => {
        if $null.contains(&$layout.version) {
            <$type as $crate::message::probe::Probe>::arbitrary($dice, $layout)
        } else {
            Some($crate::message::probe::Probe::arbitrary($dice, $layout))
        }
    };
}

/// Records of a request stay in the frame and cost nothing.
macro_rules! heap_of_field {
    ($value:expr) => {
        $crate::message::probe::Probe::heap(&$value)
    };
    ($value:expr, frame_slice) => {
        0
    };
}

pub(crate) use {arbitrary_field, heap_of_field};
