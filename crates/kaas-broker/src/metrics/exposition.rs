//! Prometheus' text format.

use std::fmt::{Display, Write};

use super::counters::{BUCKETS_US, Totals};

/// Label names and values.
pub type Labels<'a> = &'a [(&'a str, &'a dyn Display)];

/// A page of metrics. The samples of a family follow its head.
#[derive(Default)]
pub struct Page {
    text: String,
}

impl Page {
    pub fn into_text(self) -> String {
        self.text
    }

    /// A family of one sample without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help).sample(name, &[], value);
    }

    /// A family of one sample without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help).sample(name, &[], value);
    }

    /// Begins a family. `help` is text of ours, on one line.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) -> &mut Page {
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        self
    }

    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(name);
        self.labels(labels, None);
        self.write(format_args!(" {value}\n"));
    }

    /// The samples of a histogram, in seconds.
    pub fn histogram(&mut self, name: &str, labels: Labels<'_>, totals: &Totals) {
        let mut cumulated = 0;
        for (at, count) in totals.buckets.iter().enumerate() {
            cumulated += count;
            self.write(format_args!("{name}_bucket"));
            match BUCKETS_US.get(at) {
                Some(end_us) => self.labels(labels, Some(&(*end_us as f64 / 1e6))),
                None => self.labels(labels, Some(&"+Inf")),
            }
            self.write(format_args!(" {cumulated}\n"));
        }
        self.write(format_args!("{name}_sum"));
        self.labels(labels, None);
        self.write(format_args!(
            " {}\n{name}_count",
            totals.sum_us as f64 / 1e6
        ));
        self.labels(labels, None);
        self.write(format_args!(" {cumulated}\n"));
    }

    fn labels(&mut self, labels: Labels<'_>, bucket_end: Option<&dyn Display>) {
        let mut before = '{';
        let bucket_end = bucket_end.map(|end| ("le", end));
        for (name, value) in labels.iter().copied().chain(bucket_end) {
            self.text.push(before);
            before = ',';
            self.text.push_str(name);
            self.text.push_str("=\"");
            write!(Escaped(&mut self.text), "{value}").expect("a string takes any text");
            self.text.push('"');
        }
        if before == ',' {
            self.text.push('}');
        }
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes any text");
    }
}

/// Client ids, group ids and the like are any text: what would end a label or a line is escaped.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for c in text.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::counters::Histogram;
    use super::*;

    #[test]
    fn label_values_are_any_text() {
        let mut page = Page::default();
        page.head("a", "gauge", "What it is.").sample(
            "a",
            &[("group", &"x\"y\\z\nw é{}"), ("n", &1)],
            2.5,
        );
        page.sample("a", &[], -1);
        let expected = "# HELP a What it is.\n# TYPE a gauge\na{group=\"x\\\"y\\\\z\\nw é{}\",n=\"1\"} 2.5\na -1\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn the_buckets_of_a_histogram_are_cumulated_and_in_seconds() {
        let histogram = Histogram::default();
        for took_us in [40, 60, 1_000_000, 400_000_000] {
            histogram.observe(took_us);
        }
        let mut page = Page::default();
        page.histogram("t", &[("api", &"Fetch")], &histogram.totals());
        let text = page.into_text();
        for line in [
            "t_bucket{api=\"Fetch\",le=\"0.00005\"} 1",
            "t_bucket{api=\"Fetch\",le=\"0.0001\"} 2",
            "t_bucket{api=\"Fetch\",le=\"1\"} 3",
            "t_bucket{api=\"Fetch\",le=\"300\"} 3",
            "t_bucket{api=\"Fetch\",le=\"+Inf\"} 4",
            "t_sum{api=\"Fetch\"} 401.0001",
            "t_count{api=\"Fetch\"} 4",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
    }
}
