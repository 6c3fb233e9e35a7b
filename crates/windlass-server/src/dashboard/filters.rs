//! The filter of the task list: from the address of a page, to its form, to the calls of bulk actions.

use maud::{Markup, html};
use serde_json::{Map, Value};
use windlass_core::State;

use super::viewer::{Viewer, encoded};

/// Fields of the form besides the state, with what the form says.
const FIELDS: [(&str, &str); 5] =
    [("kind", "Kind"), ("queue", "Queue"), ("job", "Job"), ("workflow", "Workflow"), ("key", "Key")];
/// Fields that are seldom needed.
const MORE: [(&str, &str); 5] = [
    ("worker", "Worker"),
    ("cause", "Cause of death"),
    ("since", "Added since (RFC 3339)"),
    ("until", "Added before (RFC 3339)"),
    ("ids", "Ids, with commas between"),
];

/// The filter of a page, as its address has it. The operation checks it.
pub(super) struct Chosen {
    pairs: Vec<(&'static str, String)>,
}

impl Chosen {
    /// Reads a query. A name that is not a field of a filter is for the caller.
    pub(super) fn read(query: &str) -> Self {
        let known = |name: &str| {
            let fields = FIELDS.iter().chain(&MORE).map(|(field, _)| *field);
            ["state"].into_iter().chain(fields).find(|field| *field == name)
        };
        let pairs = form_pairs(query)
            .filter(|(_, value)| !value.is_empty())
            .filter_map(|(name, value)| known(&name).map(|name| (name, value)));
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
        let fields = self.pairs.iter().map(|(name, value)| {
            let value = match *name {
                "ids" => value.split(',').map(|id| Value::String(id.trim().to_owned())).collect(),
                _ => Value::String(value.clone()),
            };
            ((*name).to_owned(), value)
        });
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
                @for (name, label) in FIELDS { (self.field(name, label)) }
                details open[MORE.iter().any(|(name, _)| self.get(name).is_some())] {
                    summary { "More" }
                    @for (name, label) in MORE { (self.field(name, label)) }
                }
                button type="submit" { "Filter" }
                @if !self.is_empty() { a.button href=(viewer.link(page)) { "Clear" } }
            }
        }
    }

    fn field(&self, name: &str, label: &str) -> Markup {
        html! { label { (label) input name=(name) value=[self.get(name)] autocomplete="off" spellcheck="false"; } }
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
