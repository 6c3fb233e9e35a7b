//! Which names get their own series: the busiest, within a bound. The others are summed.
//!
//! A counter must never fall. So a name that gets a series starts at zero, and its earlier counts stay in the
//! sum; a name that loses its series to a busier one disappears with its counts. Rates are right before and
//! after the change.

use std::collections::{BTreeMap, HashMap};

use windlass_core::Name;

use super::OTHER;

/// The share of a name's load that is kept from one reading to the next.
const MEMORY: f64 = 0.7;
/// A name must be so many times as busy as the least busy one to replace it, so that names of similar load do
/// not alternate.
const BUSIER: f64 = 2.0;
/// Below this a name without a series is forgotten.
const FORGOTTEN: f64 = 0.1;

/// Counters by name, each with `N` figures.
#[derive(Debug)]
pub(super) struct Series<const N: usize> {
    max: usize,
    named: BTreeMap<Name, [u64; N]>,
    other: [u64; N],
    loads: HashMap<Name, f64>,
}

impl<const N: usize> Series<N> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, named: BTreeMap::new(), other: [0; N], loads: HashMap::new() }
    }

    /// Adds load to a name for activity that is not counted here.
    pub(super) fn weigh(&mut self, name: &Name, load: u64) {
        *self.loads.entry(name.clone()).or_default() += load as f64;
    }

    /// Adds the events since the last call; `rest` is of names that were not counted separately.
    pub(super) fn add(&mut self, news: &[(Name, [u64; N])], rest: [u64; N]) {
        for load in self.loads.values_mut() {
            *load *= MEMORY;
        }
        for (name, figures) in news {
            *self.loads.entry(name.clone()).or_default() += figures.iter().sum::<u64>() as f64;
        }
        let named = &self.named;
        self.loads.retain(|name, load| *load > FORGOTTEN || named.contains_key(name));
        self.choose();
        add(&mut self.other, rest);
        for (name, figures) in news {
            add(self.named.get_mut(name).unwrap_or(&mut self.other), *figures);
        }
    }

    /// Gives series to the busiest names that have none.
    fn choose(&mut self) {
        let unnamed = self.loads.iter().filter(|(name, load)| {
            // A name that equals the sum's label must not create a second series with it.
            **load > 0.0 && name.as_str() != OTHER && !self.named.contains_key(*name)
        });
        let mut waiting: Vec<(Name, f64)> = unnamed.map(|(name, load)| (name.clone(), *load)).collect();
        waiting.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        for (name, load) in waiting {
            if self.named.len() >= self.max {
                let load_of = |name: &Name| self.loads.get(name).copied().unwrap_or_default();
                let least = self.named.keys().min_by(|a, b| load_of(a).total_cmp(&load_of(b))).cloned();
                match least {
                    Some(least) if load > load_of(&least) * BUSIER => self.named.remove(&least),
                    _ => return,
                };
            }
            self.named.insert(name, [0; N]);
        }
    }

    /// The names that have series, and their figures.
    pub(super) fn named(&self) -> impl Iterator<Item = (&Name, &[u64; N])> {
        self.named.iter()
    }

    /// The sum of the others.
    pub(super) fn other(&self) -> &[u64; N] {
        &self.other
    }
}

fn add<const N: usize>(to: &mut [u64; N], figures: [u64; N]) {
    for (sum, figure) in to.iter_mut().zip(figures) {
        *sum += figure;
    }
}

/// The largest rows, at most `max`, and the sum of the others. For gauges, which may change from one reading
/// to the next.
pub(super) fn largest<const N: usize>(
    rows: BTreeMap<Name, [u64; N]>,
    max: usize,
) -> (Vec<(Name, [u64; N])>, [u64; N]) {
    let mut other = [0; N];
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.retain(|(name, figures)| {
        let is_name = name.as_str() != OTHER;
        if !is_name {
            add(&mut other, *figures);
        }
        is_name
    });
    // A stable sort, so that equals stay in the order of their names.
    rows.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.iter().sum::<u64>()));
    for (_, figures) in rows.split_off(max.min(rows.len())) {
        add(&mut other, figures);
    }
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    (rows, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new("job", text).unwrap()
    }

    fn news(rows: &[(&str, u64)]) -> Vec<(Name, [u64; 1])> {
        rows.iter().map(|(text, n)| (name(text), [*n])).collect()
    }

    fn shown(series: &Series<1>) -> Vec<(String, u64)> {
        let named = series.named().map(|(name, [n])| (name.to_string(), *n));
        named.chain([("_other".to_owned(), series.other()[0])]).collect()
    }

    #[test]
    fn names_beyond_the_bound_are_summed_and_nothing_is_lost() {
        let mut series = Series::new(2);
        series.add(&news(&[("a", 5), ("b", 9), ("c", 7), ("d", 1)]), [3]);
        assert_eq!(shown(&series), [("b".into(), 9), ("c".into(), 7), ("_other".into(), 9)]);
    }

    #[test]
    fn a_much_busier_name_gets_a_series_and_no_counter_falls() {
        let mut series = Series::new(1);
        series.add(&news(&[("a", 100), ("b", 1)]), [0]);
        series.add(&news(&[("a", 100), ("b", 120)]), [0]);
        assert_eq!(shown(&series), [("a".into(), 200), ("_other".into(), 121)], "twice as busy is needed");
        for _ in 0..5 {
            series.add(&news(&[("b", 100)]), [0]);
        }
        let [b, other] = <[_; 2]>::try_from(shown(&series)).unwrap();
        assert_eq!(b.0, "b");
        assert_eq!(b.1 + other.1, 621, "what b did is counted once, wherever");
        assert!(other.1 >= 121);
    }

    #[test]
    fn a_name_that_looks_like_the_sum_is_part_of_it() {
        let mut series = Series::new(2);
        series.add(&news(&[("_other", 5), ("a", 1)]), [0]);
        assert_eq!(shown(&series), [("a".into(), 1), ("_other".into(), 5)]);
        let (kept, other) = largest(BTreeMap::from([(name("_other"), [3]), (name("a"), [1])]), 2);
        assert_eq!((kept, other), (vec![(name("a"), [1])], [3]));
    }

    #[test]
    fn inactive_names_are_removed() {
        let mut series = Series::new(1);
        for round in 0..200 {
            series.add(&news(&[("always", 9), (&format!("once-{round}"), 1)]), [0]);
        }
        assert!(series.loads.len() < 12, "{}", series.loads.len());
    }

    #[test]
    fn the_largest_are_kept_in_the_order_of_their_names() {
        let rows = BTreeMap::from([(name("z"), [9, 0]), (name("a"), [1, 1]), (name("m"), [0, 5])]);
        let (kept, other) = largest(rows, 2);
        assert_eq!(kept, [(name("m"), [0, 5]), (name("z"), [9, 0])]);
        assert_eq!(other, [1, 1]);
    }
}
