//! The filter of the task list: from the address of a page, to its form, to the calls of bulk actions.

use maud::{Markup, html};
use serde_json::{Map, Value};
use windlass_core::State;

use super::viewer::{Viewer, encoded};

/// Fields of a filter besides the state, with what the form says.
const FIELDS: [(&str, &str); 5] = [
    ("kind", "Kind"),
    ("queue", "Queue"),
    ("job", "Job"),
    ("workflow", "Workflow"),
    ("since", "Added since (RFC 3339)"),
];

/// The filter of a page, as its address has it. The operation checks it.
pub(super) struct Chosen {
    pairs: Vec<(&'static str, String)>,
}

impl Chosen {
    /// Reads a query. A name that is not a field of a filter is for the caller.
    pub(super) fn read(query: &str) -> Self {
        let pairs = form_pairs(query).filter_map(|(name, value)| {
            let name =
                ["state"].into_iter().chain(FIELDS.map(|(name, _)| name)).find(|known| *known == name)?;
            (!value.is_empty()).then_some((name, value))
        });
        Self { pairs: pairs.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The filter as the API's JSON has it.
    pub(super) fn json(&self) -> Value {
        let fields =
            self.pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::String(value.clone())));
        Value::Object(fields.collect::<Map<_, _>>())
    }

    /// The filter as a query, with more pairs behind it.
    pub(super) fn query(&self, more: &[(&str, &str)]) -> String {
        let own = self.pairs.iter().map(|(name, value)| (*name, value.as_str()));
        let pairs: Vec<_> = own
            .chain(more.iter().copied())
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect();
        pairs.join("&")
    }

    /// The form. Its script leads to the address with what was chosen.
    pub(super) fn form(&self, viewer: &Viewer, page: &str) -> Markup {
        html! {
            form.filters data-navigate data-keep="filters" action=(viewer.link(page)) role="search" {
                label { "State"
                    select name="state" {
                        option value="" { "any" }
                        @for state in State::ALL {
                            option value=(state.as_str()) selected[self.get("state") == Some(state.as_str())] { (state.as_str()) }
                        }
                    }
                }
                @for (name, label) in FIELDS {
                    label { (label) input name=(name) value=[self.get(name)] autocomplete="off" spellcheck="false"; }
                }
                button type="submit" { "Filter" }
                @if !self.is_empty() { a.button href=(viewer.link(page)) { "Clear" } }
            }
        }
    }
}

/// Names and values of a query string.
pub(super) fn form_pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut ahead = rest.clone();
                let digits = [ahead.next(), ahead.next()]
                    .map(|digit| digit.and_then(|digit| char::from(digit).to_digit(16)));
                if let [Some(high), Some(low)] = digits {
                    bytes.push((high * 16 + low) as u8);
                    rest = ahead;
                } else {
                    bytes.push(byte);
                }
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_survives_the_way_through_the_address() {
        let chosen = Chosen::read("state=dead&kind=a%26b+c&limit=5&queue=&job=%zz");
        assert_eq!(chosen.get("kind"), Some("a&b c"));
        assert_eq!((chosen.get("queue"), chosen.get("job")), (None, Some("%zz")));
        assert_eq!(chosen.json().to_string(), r#"{"job":"%zz","kind":"a&b c","state":"dead"}"#);
        let query = chosen.query(&[("after", "01AB")]);
        assert_eq!(query, "state=dead&kind=a%26b%20c&job=%25zz&after=01AB");
        assert_eq!(Chosen::read(&query).json(), chosen.json());
    }
}
