//! Prometheus' text format, version 0.0.4.

use std::fmt::Write as _;

use super::{histogram::Reading, names::Metric};

/// A page of metrics under construction.
#[derive(Debug, Default)]
pub(super) struct Text {
    out: String,
}

/// One metric with its series.
pub(super) struct Family<'a> {
    out: &'a mut String,
    metric: &'static Metric,
}

impl Text {
    /// Starts a metric.
    pub(super) fn family(&mut self, metric: &'static Metric) -> Family<'_> {
        let (name, kind) = (metric.name, metric.kind.as_str());
        let help = metric.help.replace('\\', "\\\\");
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { out: &mut self.out, metric }
    }

    /// A metric with one series and no labels.
    pub(super) fn one(&mut self, metric: &'static Metric, value: f64) {
        self.family(metric).value(&[], value);
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.out
    }
}

impl Family<'_> {
    /// Writes a series; the label values in the order of the table.
    pub(super) fn value(&mut self, labels: &[&str], value: f64) {
        self.line("", labels, None, value);
    }

    /// A series of a histogram.
    pub(super) fn histogram(&mut self, labels: &[&str], reading: &Reading) {
        for (bound, count) in &reading.buckets {
            self.line("_bucket", labels, Some(&bound.to_string()), *count as f64);
        }
        self.line("_bucket", labels, Some("+Inf"), reading.count as f64);
        self.line("_sum", labels, None, reading.sum);
        self.line("_count", labels, None, reading.count as f64);
    }

    fn line(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>, value: f64) {
        debug_assert_eq!(labels.len(), self.metric.labels.len(), "labels of {}", self.metric.name);
        let _ = write!(self.out, "{}{suffix}", self.metric.name);
        let named = self.metric.labels.iter().copied().zip(labels.iter().copied());
        let mut opened = false;
        for (name, value) in named.chain(bound.map(|bound| ("le", bound))) {
            self.out.push(if opened { ',' } else { '{' });
            opened = true;
            let _ = write!(self.out, "{name}=\"");
            escape(self.out, value);
            self.out.push('"');
        }
        if opened {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {value}");
    }
}

/// A name may contain any printable text: three characters would end or change the label.
fn escape(out: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            letter => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{Histogram, names};

    #[test]
    fn a_hostile_name_stays_inside_of_its_label() {
        let mut text = Text::default();
        text.family(&names::JOB_RUNNING).value(&["a\"} 1\nb{c=\"\\"], 2.0);
        let page = text.finish();
        assert_eq!(page.lines().count(), 3);
        assert!(
            page.ends_with("windlass_job_running_tasks{job_name=\"a\\\"} 1\\nb{c=\\\"\\\\\"} 2\n"),
            "{page}"
        );
    }

    #[test]
    fn a_histogram_is_cumulative_and_ends_in_infinity() {
        let sizes = Histogram::of_numbers(&names::CLAIM_SIZE);
        sizes.observe_number(3);
        sizes.observe_number(5_000);
        let mut text = Text::default();
        text.family(&names::CLAIM_SIZE).histogram(&[], &sizes.read());
        let page = text.finish();
        for line in [
            "# TYPE worker_claim_size histogram",
            "worker_claim_size_bucket{le=\"2\"} 0",
            "worker_claim_size_bucket{le=\"5\"} 1",
            "worker_claim_size_bucket{le=\"1000\"} 1",
            "worker_claim_size_bucket{le=\"+Inf\"} 2",
            "worker_claim_size_sum 5003",
            "worker_claim_size_count 2",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
        }
    }
}
