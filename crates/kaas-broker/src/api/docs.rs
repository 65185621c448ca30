//! The first part of `docs/compatibility.md`, made from the table of APIs. The example `compatibility` makes it anew and
//! leaves what is written by hand below it alone.

use std::fmt::Write;

use kaas_wire::api_key::ApiKey;

use super::{all, api};

/// Where the part that is made ends.
pub const WRITTEN_BY_HAND: &str = "<!-- made up to here; below, written by hand -->\n";

/// Characters of a line.
const WIDTH: usize = 120;

const INTRODUCTION: &str = "\
# Compatibility

kaas speaks the protocol of Apache Kafka 4.4. Clients learn the versions below from ApiVersions; a request outside of them
closes its connection, as with Kafka.

The table is made from `crates/kaas-broker/src/api.rs`; change that, then write this page with what the example says:
`cargo run -p kaas-broker --example compatibility < docs/compatibility.md`.

";

/// The page with its first part made anew: all of it, if there was none.
pub fn renew(page: &str) -> String {
    let by_hand = page
        .split_once(WRITTEN_BY_HAND)
        .map_or("", |(_, by_hand)| by_hand);
    format!("{}{WRITTEN_BY_HAND}{by_hand}", markdown())
}

fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    out.push_str("| key | API | served | Kafka 4.4 | |\n|---:|---|---|---|---|\n");
    for api in all() {
        let kafka = api.key.versions().expect("a served key is known");
        let note = if api.key == ApiKey::PRODUCE {
            "advertised from 0, as Kafka does for old librdkafka"
        } else if api.key == ApiKey::INIT_PRODUCER_ID {
            "6 is not stable, and Kafka does not advertise it either"
        } else if api.served != kafka {
            "not all versions"
        } else {
            ""
        };
        row(
            &mut out,
            &[
                &api.key.0.to_string(),
                &api.key.to_string(),
                &format!("{}–{}", api.served.start(), api.served.end()),
                &format!("{}–{}", kafka.start(), kafka.end()),
                note,
            ],
        );
    }
    let missing: Vec<String> = ApiKey::ALL
        .iter()
        .filter(|key| api(key.0).is_none())
        .map(|key| format!("{key} ({})", key.0))
        .collect();
    out.push_str("\nNot served:\n");
    let mut column = WIDTH;
    for (index, name) in missing.iter().enumerate() {
        let end = if index + 1 == missing.len() { "." } else { "," };
        column += name.len() + 2;
        if column > WIDTH {
            column = name.len() + 1;
            out.push('\n');
        } else {
            out.push(' ');
        }
        write!(out, "{name}{end}").expect("a string takes any text");
    }
    out.push_str("\n\n");
    out
}

fn row(out: &mut String, cells: &[&str]) {
    for cell in cells {
        write!(out, "| {cell} ").expect("a string takes any text");
    }
    out.push_str("|\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_what_the_table_says() {
        let page = include_str!("../../../../docs/compatibility.md");
        assert!(
            page == renew(page),
            "write it with what this says: cargo run -p kaas-broker --example compatibility < docs/compatibility.md"
        );
    }

    #[test]
    fn what_is_written_by_hand_stays() {
        let page = format!("old\n{WRITTEN_BY_HAND}by hand\n");
        let renewed = renew(&page);
        assert!(renewed.starts_with(INTRODUCTION));
        assert!(renewed.ends_with("by hand\n"));
        assert_eq!(renew(&renewed), renewed);
    }
}
