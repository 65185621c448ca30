//! `docs/configs.md`, made from the tables. `cargo run -p kaas-broker --example configs > docs/configs.md` writes it anew.

use std::fmt::Write;

use super::group::{ClientMetricsConfig, GroupConfig};
use super::table::{Configuration, Key, Update};
use super::topic::{self, TopicConfig};
use super::{Config, ignored};

const INTRODUCTION: &str = "\
# Configuration

Made from the tables in `crates/kaas-broker/src/config*`; change those, then run
`cargo run -p kaas-broker --example configs > docs/configs.md`.

The keys are Kafka's, with Kafka's types, ranges and, unless noted, defaults. Keys that start with `kaas.` are our own.

Where a value comes from, the strongest first:

1. what a client altered for this broker, then for all brokers (`kafka-configs --alter --entity-type brokers`);
2. an argument of the command line (`--listen` and its like), then its environment variable (`KAAS_LISTEN`);
3. `--set KEY=VALUE`, the last one for a key;
4. the file of `--config FILE.properties`, the last line for a key;
5. the default.

A file is in Java's `.properties` syntax. An unknown key is an error. A key of Kafka that has no effect here is accepted,
and all of them are named in one warning.
";

pub fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    out.push_str(
        "\n## Brokers\n\n*Live* keys can be altered while the broker runs. `broker.id` is taken for `node.id`, and `log.dir` \
         for `log.dirs`.\n\n| key | type | default | allowed | live | |\n|---|---|---|---|---|---|\n",
    );
    for key in Config::keys() {
        let live = if key.update == Update::Dynamic {
            "yes"
        } else {
            ""
        };
        row(&mut out, key, &[live, key.doc]);
    }
    out.push_str(
        "\n## Topics\n\nA topic takes what it does not override from the broker key named.\n\n\
         | key | type | default | allowed | broker key | |\n|---|---|---|---|---|---|\n",
    );
    for key in TopicConfig::keys() {
        let broker_key = match topic::broker_key(key.name) {
            Some(name) if Config::key(name).is_some() => format!("`{name}`"),
            _ => String::new(),
        };
        row(&mut out, key, &[&broker_key, key.doc]);
    }
    out.push_str(
        "\n## Groups and client metrics\n\n\
         Nothing of this is served yet; `DescribeConfigs` answers with these defaults.\n\n\
         | key | type | default | allowed |\n|---|---|---|---|\n",
    );
    GroupConfig::keys()
        .iter()
        .for_each(|key| row(&mut out, key, &[]));
    ClientMetricsConfig::keys()
        .iter()
        .for_each(|key| row(&mut out, key, &[]));
    out.push_str("\n## Keys of Kafka without effect\n");
    for reason in ignored::REASONS {
        let names: Vec<String> = reason
            .keys
            .iter()
            .map(|key| format!("`{}`", key.name))
            .collect();
        paragraph(&mut out, reason.why, &names);
    }
    let removed: Vec<String> = ignored::REMOVED
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    paragraph(&mut out, "Kafka 4 no longer has them.", &removed);
    let families: Vec<String> = ignored::PREFIXES
        .iter()
        .map(|prefix| format!("`{prefix}*`"))
        .collect();
    paragraph(
        &mut out,
        "Families of keys that belong to the above.",
        &families,
    );
    out
}

fn row<C>(out: &mut String, key: &Key<C>, more: &[&str]) {
    let default = match key.default.as_deref() {
        None => "none".to_owned(),
        Some("") => "empty".to_owned(),
        Some(default) => format!("`{default}`"),
    };
    let allowed = key.valid.describe().unwrap_or_default();
    write!(
        out,
        "| `{}` | {} | {default} | {allowed} |",
        key.name,
        key.kind.name()
    )
    .expect("a string takes any text");
    for cell in more {
        write!(out, " {cell} |").expect("a string takes any text");
    }
    out.push('\n');
}

fn paragraph(out: &mut String, why: &str, names: &[String]) {
    write!(out, "\n{why}\n{}\n", names.join(", ")).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_in_docs_is_what_the_tables_say() {
        let page = include_str!("../../../../docs/configs.md");
        assert!(
            page == super::markdown(),
            "write it anew: cargo run -p kaas-broker --example configs > docs/configs.md"
        );
    }
}
