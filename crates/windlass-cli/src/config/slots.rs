//! Decides how many tasks a process runs at once, and names the rule that decided.

use std::fmt;

use super::settings::Origin;

/// Slots if no setting gives a number.
pub const DEFAULT: u32 = 1_000;

/// A named size of a process: the source documents give a number of workers and of tasks at once for
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub env: &'static str,
    /// Workers of the source documents. Here they are one process.
    pub workers: u32,
    /// Tasks at once of each worker.
    pub concurrency: u32,
}

/// Every preset.
pub const PRESETS: [Preset; 3] = [
    Preset { env: "production", workers: 100, concurrency: 5 },
    Preset { env: "staging", workers: 20, concurrency: 3 },
    Preset { env: "development", workers: 5, concurrency: 2 },
];

impl Preset {
    /// The preset of this name.
    pub fn named(env: &str) -> Option<Self> {
        PRESETS.into_iter().find(|preset| preset.env == env)
    }
}

/// The settings about slots. `None` means that the setting was not given.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// `slots`, under any of its names.
    pub slots: Option<(u32, Origin)>,
    /// `env`.
    pub preset: Option<Preset>,
    /// `worker_concurrency`, under any of its names.
    pub concurrency: Option<(u32, Origin)>,
}

/// The slots in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots {
    /// How many.
    pub number: u32,
    /// The rule that gave the number.
    pub rule: Rule,
}

impl Default for Slots {
    fn default() -> Self {
        Self { number: DEFAULT, rule: Rule::Default }
    }
}

/// The rule that gave the number of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// No setting gave a number.
    Default,
    /// `slots` was given.
    Given(Origin),
    /// A preset.
    Preset {
        /// Which.
        preset: Preset,
        /// The number of tasks at once that replaces the preset's own, and its origin.
        concurrency: Option<(u32, Origin)>,
        /// The variable whose bound lowered the product.
        cut_by: Option<&'static str>,
    },
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default; --slots or --env to change"),
            Self::Given(origin) => origin.fmt(f),
            Self::Preset { preset, concurrency, cut_by } => {
                write!(f, "{}: {} × ", preset.env, preset.workers)?;
                match concurrency {
                    None => write!(f, "{}", preset.concurrency)?,
                    Some((concurrency, origin)) => write!(f, "{concurrency} from {origin}")?,
                }
                match cut_by {
                    None => Ok(()),
                    Some(bound) => write!(f, ", cut by {bound}"),
                }
            }
        }
    }
}

/// Decides how many slots there are; the second value is a warning for the user.
///
/// `slots` if it was given; else the preset's workers × `worker_concurrency` or the preset's own number;
/// else 1000. The source documents' variable MAX_CONCURRENT_TASKS gives the number of slots if there is
/// no preset, and is an upper bound if there is one.
pub fn decide(said: Said) -> (Slots, Option<String>) {
    let Said { slots, preset, concurrency } = said;
    let Some(preset) = preset else {
        let warning = concurrency
            .map(|(_, origin)| format!("worker_concurrency has no effect without env or --env ({origin})"));
        let slots = match slots {
            Some((number, origin)) => Slots { number, rule: Rule::Given(origin) },
            None => Slots::default(),
        };
        return (slots, warning);
    };
    let bound = match slots {
        Some((number, Origin::Document(name))) => Some((number, name)),
        Some((number, origin)) => return (Slots { number, rule: Rule::Given(origin) }, None),
        None => None,
    };
    let each = concurrency.as_ref().map_or(preset.concurrency, |(each, _)| *each);
    let product = preset.workers.saturating_mul(each);
    let cut = bound.filter(|(most, _)| *most < product);
    let warning = cut.map(|(most, name)| {
        format!("env {} asks for {product} slots; {name} allows {most}, so {most} are used", preset.env)
    });
    let rule = Rule::Preset { preset, concurrency, cut_by: cut.map(|(_, name)| name) };
    (Slots { number: cut.map_or(product, |(most, _)| most), rule }, warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Origin = Origin::Document("MAX_CONCURRENT_TASKS");
    const EACH: Origin = Origin::Document("WORKER_CONCURRENCY");

    #[test]
    fn the_rule_of_the_slots() {
        let flag = |n| Some((n, Origin::Flag("--slots")));
        let bound = |n| Some((n, BOUND));
        let each = |n| Some((n, EACH));
        for (slots, env, concurrency, number, rule, warns) in [
            (None, "", None, 1_000, "default; --slots or --env to change", false),
            (flag(7), "", None, 7, "--slots", false),
            (bound(7), "", None, 7, "MAX_CONCURRENT_TASKS", false),
            (None, "", each(10), 1_000, "default; --slots or --env to change", true),
            (None, "production", None, 500, "production: 100 × 5", false),
            (None, "staging", None, 60, "staging: 20 × 3", false),
            (None, "development", None, 10, "development: 5 × 2", false),
            (None, "production", each(2), 200, "production: 100 × 2 from WORKER_CONCURRENCY", false),
            (None, "production", each(10), 1_000, "production: 100 × 10 from WORKER_CONCURRENCY", false),
            (
                None,
                "production",
                each(1_000),
                100_000,
                "production: 100 × 1000 from WORKER_CONCURRENCY",
                false,
            ),
            (flag(7), "production", None, 7, "--slots", false),
            (flag(9_000), "production", each(2), 9_000, "--slots", false),
            (bound(9_000), "production", None, 500, "production: 100 × 5", false),
            (bound(500), "production", None, 500, "production: 100 × 5", false),
            (bound(300), "production", None, 300, "production: 100 × 5, cut by MAX_CONCURRENT_TASKS", true),
            (
                bound(50),
                "staging",
                each(4),
                50,
                "staging: 20 × 4 from WORKER_CONCURRENCY, cut by MAX_CONCURRENT_TASKS",
                true,
            ),
        ] {
            let (found, warning) = decide(Said { slots, preset: Preset::named(env), concurrency });
            assert_eq!((found.number, found.rule.to_string().as_str()), (number, rule));
            assert_eq!(warning.is_some(), warns, "{rule}: {warning:?}");
        }
    }

    #[test]
    fn a_cut_names_both_numbers() {
        let said = Said { slots: Some((300, BOUND)), preset: Preset::named("production"), concurrency: None };
        assert_eq!(
            decide(said).1.unwrap(),
            "env production asks for 500 slots; MAX_CONCURRENT_TASKS allows 300, so 300 are used"
        );
    }
}
