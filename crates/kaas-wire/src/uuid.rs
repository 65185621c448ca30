//! Kafka's uuid: sixteen bytes, as text in base64.

use std::fmt;
use std::str::FromStr;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Characters of a uuid's text.
const TEXT_LEN: usize = 22;

/// A topic id, directory id or incarnation id. Its text is url-safe base64 without padding, as Kafka prints it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// No id.
    pub const ZERO: Uuid = Uuid([0; 16]);

    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    pub fn is_zero(&self) -> bool {
        *self == Uuid::ZERO
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 22 characters of 6 bits hold 132: the last 4 are zero.
        let bits = u128::from_be_bytes(self.0);
        let mut text = String::with_capacity(TEXT_LEN);
        for index in 0..TEXT_LEN {
            let shift = 122 - 6 * index as i32;
            let six = if shift >= 0 {
                bits >> shift
            } else {
                bits << -shift
            } & 0x3f;
            text.push(char::from(ALPHABET[six as usize]));
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not a uuid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a uuid: it takes 22 characters of url-safe base64")]
pub struct InvalidUuid(String);

impl FromStr for Uuid {
    type Err = InvalidUuid;

    fn from_str(text: &str) -> Result<Uuid, InvalidUuid> {
        let invalid = || InvalidUuid(text.chars().take(2 * TEXT_LEN).collect());
        let digits = text.strip_suffix("==").unwrap_or(text);
        if digits.len() != TEXT_LEN {
            return Err(invalid());
        }
        let mut bits = 0u128;
        for (index, character) in digits.bytes().enumerate() {
            let six = ALPHABET
                .iter()
                .position(|&a| a == character)
                .ok_or_else(invalid)? as u128;
            if index < TEXT_LEN - 1 {
                bits = bits << 6 | six;
            } else if six & 0xf == 0 {
                bits = bits << 2 | six >> 4;
            } else {
                return Err(invalid());
            }
        }
        Ok(Uuid(bits.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_base64_that_kafka_prints() {
        let mut bytes = [0; 16];
        assert_eq!(Uuid(bytes).to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        bytes[15] = 1;
        assert_eq!(Uuid(bytes).to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(Uuid([0xff; 16]).to_string(), "_____________________w");
    }

    #[test]
    fn text_parses_back() {
        for text in [
            "AAAAAAAAAAAAAAAAAAAAAQ",
            "_____________________w",
            "JTw7Mkv3QC2bLkvdWxKkgQ",
        ] {
            assert_eq!(text.parse::<Uuid>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "AAAA",
            "AAAAAAAAAAAAAAAAAAAAAB",
            "AAAAAAAAAAAAAAAAAAAAA+",
            "é".repeat(11).as_str(),
        ] {
            assert!(text.parse::<Uuid>().is_err(), "{text}");
        }
    }
}
