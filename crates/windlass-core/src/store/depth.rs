//! How many tasks of a lane are in each state, and how sure each figure is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::state::State;

/// How many tasks of a lane are in each state. Done and cancelled tasks leave the lane and are not counted.
///
/// A store may count up to a bound only. `at_least` and `about` name the states whose figures are not exact;
/// [`Depth::count`] gives a figure together with that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Depth {
    /// Not due yet.
    pub scheduled: u64,
    /// Waits for an earlier step of its workflow.
    pub waiting: u64,
    /// Held by its job, or because no live worker can take it.
    pub held: u64,
    /// May be claimed.
    pub ready: u64,
    /// Leased.
    pub running: u64,
    /// Dead.
    pub dead: u64,
    /// States that were counted up to a bound: the true figure may be higher.
    #[serde(default, skip_serializing_if = "States::is_empty")]
    pub at_least: States,
    /// States that were counted a while ago: the figure is approximate.
    #[serde(default, skip_serializing_if = "States::is_empty")]
    pub about: States,
}

impl Depth {
    /// Adds or takes away tasks of a state; done and cancelled are not counted.
    pub fn change(&mut self, state: State, by: i64) {
        if let Some(figure) = self.figure(state) {
            *figure = figure.saturating_add_signed(by);
        }
    }

    /// Adds the figures of another lane. A sum is as sure as the least sure of its parts.
    pub fn add(&mut self, other: &Self) {
        for state in State::ALL {
            let n = other.count(state).n;
            if let Some(figure) = self.figure(state) {
                *figure = figure.saturating_add(n);
            }
        }
        self.at_least.0 |= other.at_least.0;
        self.about.0 |= other.about.0;
    }

    /// The figure of a state with its precision; zero for done and cancelled tasks, which are not counted.
    pub fn count(&self, state: State) -> Count {
        let n = match state {
            State::Scheduled => self.scheduled,
            State::Waiting => self.waiting,
            State::Held => self.held,
            State::Ready => self.ready,
            State::Running => self.running,
            State::Dead => self.dead,
            State::Done | State::Cancelled => 0,
        };
        let precision = if self.at_least.contains(state) {
            Precision::AtLeast
        } else if self.about.contains(state) {
            Precision::About
        } else {
            Precision::Exact
        };
        Count { n, precision }
    }

    fn figure(&mut self, state: State) -> Option<&mut u64> {
        match state {
            State::Scheduled => Some(&mut self.scheduled),
            State::Waiting => Some(&mut self.waiting),
            State::Held => Some(&mut self.held),
            State::Ready => Some(&mut self.ready),
            State::Running => Some(&mut self.running),
            State::Dead => Some(&mut self.dead),
            State::Done | State::Cancelled => None,
        }
    }
}

/// A number of tasks, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The number.
    pub n: u64,
    /// How sure it is.
    pub precision: Precision,
}

/// How sure a number of tasks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// The exact number at the time of the answer.
    Exact,
    /// This number or more: counting stopped at a bound.
    AtLeast,
    /// The number of an earlier count.
    About,
}

impl Count {
    /// A number that was counted up to a bound.
    pub fn up_to(n: u64, bound: u64) -> Self {
        let precision = if n >= bound { Precision::AtLeast } else { Precision::Exact };
        Self { n: n.min(bound), precision }
    }
}

impl fmt::Display for Count {
    /// `7`; `10,000+` means at least that; `~45,120` means about that.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.n.to_string();
        let mut text = String::new();
        if self.precision == Precision::About {
            text.push('~');
        }
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        if self.precision == Precision::AtLeast {
            text.push('+');
        }
        f.pad(&text)
    }
}

/// A set of states; as JSON a list of their names.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<State>", into = "Vec<State>")]
pub struct States(u16);

impl States {
    /// Adds a state.
    pub fn insert(&mut self, state: State) {
        self.0 |= Self::bit(state);
    }

    /// Whether the set contains a state.
    pub fn contains(self, state: State) -> bool {
        self.0 & Self::bit(state) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// The states in the set.
    pub fn iter(self) -> impl Iterator<Item = State> {
        State::ALL.into_iter().filter(move |state| self.contains(*state))
    }

    fn bit(state: State) -> u16 {
        1 << state.code()
    }
}

impl From<Vec<State>> for States {
    fn from(states: Vec<State>) -> Self {
        states.into_iter().collect()
    }
}

impl From<States> for Vec<State> {
    fn from(states: States) -> Self {
        states.iter().collect()
    }
}

impl FromIterator<State> for States {
    fn from_iter<I: IntoIterator<Item = State>>(states: I) -> Self {
        states.into_iter().fold(Self::default(), |mut set, state| {
            set.insert(state);
            set
        })
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_says_how_sure_it_is() {
        let (at_least, about) = ([State::Ready].into_iter().collect(), [State::Dead].into_iter().collect());
        let depth = Depth { ready: 10_000, dead: 45_120, held: 7, at_least, about, ..Depth::default() };
        let shown = [State::Ready, State::Dead, State::Held].map(|state| depth.count(state).to_string());
        assert_eq!(shown, ["10,000+", "~45,120", "7"]);
        assert_eq!(Count::up_to(9_999, 10_000).precision, Precision::Exact);
        assert_eq!(Count::up_to(10_001, 10_000).to_string(), "10,000+");
    }

    #[test]
    fn a_sum_is_no_surer_than_its_parts() {
        let mut sum = Depth { ready: 3, ..Depth::default() };
        let at_least = [State::Ready].into_iter().collect();
        sum.add(&Depth { ready: 10_000, running: 2, at_least, ..Depth::default() });
        assert_eq!((sum.count(State::Ready).to_string(), sum.running), ("10,003+".to_owned(), 2));
        assert_eq!(sum.count(State::Running).precision, Precision::Exact);
    }

    #[test]
    fn the_states_that_are_not_exact_are_names_in_json() {
        let about = [State::Held, State::Ready].into_iter().collect();
        let depth = Depth { held: 1, ready: 2, about, ..Depth::default() };
        let text = serde_json::to_string(&depth).unwrap();
        assert_eq!(
            text,
            r#"{"scheduled":0,"waiting":0,"held":1,"ready":2,"running":0,"dead":0,"about":["held","ready"]}"#
        );
        assert_eq!(serde_json::from_str::<Depth>(&text).unwrap(), depth);
    }
}
