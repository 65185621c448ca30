//! A look into the opaque bytes of the "consumer" protocol type, as far as the broker needs it. What does not parse is
//! nobody's fault: members may put anything there.

use std::collections::BTreeMap;

/// The topics of a subscription, read by the v0 layout (topics, user data) whatever version it claims (OF-61). What
/// follows that (owned partitions, fields yet to be invented) is not looked at.
pub fn subscribed_topics(metadata: &[u8]) -> Option<Vec<&str>> {
    let mut input = Input(metadata);
    input.i16()?;
    let count = input.count()?;
    let topics = (0..count)
        .map(|_| input.string())
        .collect::<Option<Vec<&str>>>()?;
    let user_data_len = input.i32()?;
    input.take(usize::try_from(user_data_len).unwrap_or(0))?;
    Some(topics)
}

/// The partitions of an assignment by topic, for people to read.
pub fn assigned_partitions(assignment: &[u8]) -> Option<BTreeMap<String, Vec<i32>>> {
    let mut input = Input(assignment);
    input.version()?;
    let mut topics = BTreeMap::new();
    for _ in 0..input.count()? {
        let topic = input.string()?.to_owned();
        let count = input.count()?;
        let partitions = (0..count)
            .map(|_| input.i32())
            .collect::<Option<Vec<i32>>>()?;
        topics.insert(topic, partitions);
    }
    Some(topics)
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take(2)?.try_into().ok().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }

    fn version(&mut self) -> Option<i16> {
        self.i16().filter(|version| *version >= 0)
    }

    /// An element takes two bytes at least, so a count beyond what is left is refused before anything is reserved.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.i32()?).ok()?;
        (count <= self.0.len() / 2).then_some(count)
    }

    fn string(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.i16()?).ok()?;
        str::from_utf8(self.take(len)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(version: i16, topics: &[&str], tail: &[u8]) -> Vec<u8> {
        let mut bytes = version.to_be_bytes().to_vec();
        bytes.extend((topics.len() as i32).to_be_bytes());
        for topic in topics {
            bytes.extend((topic.len() as i16).to_be_bytes());
            bytes.extend(topic.as_bytes());
        }
        bytes.extend(tail);
        bytes
    }

    #[test]
    fn of_61_topics_are_read_whatever_version_and_tail() {
        let null_user_data = (-1i32).to_be_bytes();
        for bytes in [
            subscription(0, &["a", "b"], &null_user_data),
            subscription(1, &["a", "b"], &null_user_data),
            subscription(3, &["a", "b"], b"\0\0\0\x02ab and anything at all"),
            subscription(99, &["a", "b"], &[0; 4]),
            subscription(-1, &["a", "b"], &null_user_data),
        ] {
            assert_eq!(subscribed_topics(&bytes), Some(vec!["a", "b"]));
        }
        let nothing = subscription(0, &[], &null_user_data);
        assert_eq!(subscribed_topics(&nothing), Some(vec![]));
    }

    #[test]
    fn of_61_bytes_that_are_no_subscription_are_unknown() {
        let huge_count = [0, 0, 0x7f, 0xff, 0xff, 0xff];
        let negative_count = [0, 0, 0xff, 0xff, 0xff, 0xff];
        let cut = &subscription(0, &["topic"], &[])[..9];
        let not_utf8 = [0, 0, 0, 0, 0, 1, 0, 1, 0xff];
        let no_user_data = subscription(0, &["a"], &[]);
        let cut_user_data = subscription(0, &["a"], b"\0\0\0\x05ab");
        for bytes in [
            &[][..],
            b"x",
            b"range",
            &huge_count,
            &negative_count,
            cut,
            &not_utf8,
            &no_user_data,
            &cut_user_data,
        ] {
            assert_eq!(subscribed_topics(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn assignments_are_read_by_topic() {
        let bytes = [
            0, 1, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0xff,
            0xff,
        ];
        assert_eq!(
            assigned_partitions(&bytes),
            Some(BTreeMap::from([("t".to_owned(), vec![0, 7])]))
        );
        assert_eq!(assigned_partitions(b""), None);
    }
}
