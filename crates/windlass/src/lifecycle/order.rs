//! An order in which every component comes after its dependencies.

use std::collections::HashMap;

use super::LifecycleError;

/// Indices of `parts` (name, dependencies) such that dependencies come first; otherwise in the given order.
pub(super) fn order(parts: &[(&str, &[String])]) -> Result<Vec<usize>, LifecycleError> {
    let mut places = HashMap::with_capacity(parts.len());
    for (place, (name, _)) in parts.iter().enumerate() {
        if places.insert(*name, place).is_some() {
            return Err(LifecycleError::Duplicate((*name).to_owned()));
        }
    }
    let mut walk = Walk { parts, places, path: Vec::new(), order: Vec::with_capacity(parts.len()) };
    for place in 0..parts.len() {
        walk.visit(place)?;
    }
    Ok(walk.order)
}

struct Walk<'a> {
    parts: &'a [(&'a str, &'a [String])],
    places: HashMap<&'a str, usize>,
    /// The path from the start of the walk to its current place, each part depending on the next.
    path: Vec<usize>,
    order: Vec<usize>,
}

impl Walk<'_> {
    fn visit(&mut self, place: usize) -> Result<(), LifecycleError> {
        if self.order.contains(&place) {
            return Ok(());
        }
        if let Some(first) = self.path.iter().position(|&on_path| on_path == place) {
            let circle = self.path.iter().skip(first).copied().chain([place]);
            return Err(LifecycleError::Cycle(circle.map(|place| self.name(place)).collect()));
        }
        self.path.push(place);
        let parts = self.parts;
        for dependency in parts.get(place).map_or(&[][..], |(_, after)| after) {
            let Some(&next) = self.places.get(dependency.as_str()) else {
                let component = self.name(place);
                return Err(LifecycleError::Unknown { component, dependency: dependency.clone() });
            };
            self.visit(next)?;
        }
        self.path.pop();
        self.order.push(place);
        Ok(())
    }

    fn name(&self, place: usize) -> String {
        self.parts.get(place).map_or_else(String::new, |(name, _)| (*name).to_owned())
    }
}
