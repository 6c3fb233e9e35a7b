//! A parsed page of metrics.

use std::collections::{BTreeMap, BTreeSet};

/// One line that is not a comment.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// A page of metrics.
#[derive(Debug, Clone)]
pub struct Page {
    pub lines: Vec<Line>,
    /// The type of each metric.
    pub types: BTreeMap<String, String>,
    pub helps: BTreeMap<String, String>,
}

impl Page {
    /// Parses a page; any fault in it fails the test.
    pub fn read(text: &str) -> Self {
        let (mut lines, mut types, mut helps) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(types.insert(name.to_owned(), kind.to_owned()), None, "{name} twice");
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                helps.insert(name.to_owned(), help.to_owned());
            } else {
                lines.push(read_line(line));
            }
        }
        Self { lines, types, helps }
    }

    /// The metric of a line: a histogram has three sorts of lines.
    pub fn metric<'a>(&self, line: &'a Line) -> &'a str {
        let suffixes = ["_bucket", "_sum", "_count"];
        let base = suffixes.iter().find_map(|suffix| line.name.strip_suffix(suffix));
        base.filter(|base| self.types.get(*base).is_some_and(|kind| kind == "histogram"))
            .unwrap_or(&line.name)
    }

    /// The labels that the lines of each metric have, without the bounds of histograms.
    pub fn labels(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in &self.lines {
            let labels = found.entry(self.metric(line).to_owned()).or_default();
            labels.extend(line.labels.keys().filter(|label| *label != "le").cloned());
        }
        found
    }

    /// The sum of the lines with this name and these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let is_meant = |line: &&Line| {
            line.name == name
                && labels.iter().all(|(label, value)| line.labels.get(*label).is_some_and(|v| v == value))
        };
        self.lines.iter().filter(is_meant).map(|line| line.value).sum()
    }
}

fn read_line(line: &str) -> Line {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?} has no value"));
    let value = value.parse().unwrap_or_else(|_| panic!("{line:?} has no number"));
    let Some((name, labels)) = series.split_once('{') else {
        return Line { name: series.to_owned(), labels: BTreeMap::new(), value };
    };
    let mut rest = labels.strip_suffix('}').unwrap_or_else(|| panic!("{line:?} is open"));
    let mut labels = BTreeMap::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").unwrap();
        let (text, after) = read_value(after);
        labels.insert(label.to_owned(), text);
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    Line { name: name.to_owned(), labels, value }
}

/// The text up to its closing quote, and the rest.
fn read_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => match letters.next().unwrap().1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            letter => value.push(letter),
        }
    }
    panic!("{text:?} does not end");
}
