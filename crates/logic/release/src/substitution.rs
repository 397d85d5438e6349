//! Filling placeholders.

use std::cell::Cell;

use serde_json::Value;

use crate::Substitution;

/// The substitutions of a release, with a count of what each has filled.
#[derive(Debug, Default)]
pub(crate) struct Substitutions {
    entries: Vec<(Substitution, Cell<usize>)>,
}

impl Substitutions {
    pub(crate) fn new(substitutions: Vec<Substitution>) -> Self {
        Self { entries: substitutions.into_iter().map(|entry| (entry, Cell::new(0))).collect() }
    }

    /// Fills every string of a value; keys are left alone.
    pub(crate) fn fill(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(filled) = self.filled(text) {
                    *text = filled;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill(item)),
            Value::Object(entries) => entries.values_mut().for_each(|entry| self.fill(entry)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text with its placeholders filled, if it holds any. Each is replaced once: values are not searched again.
    pub(crate) fn filled(&self, text: &str) -> Option<String> {
        let mut rest = text;
        let mut filled = String::new();
        let mut any = false;
        while let Some((at, (entry, count))) = self.next(rest) {
            filled.push_str(rest.get(..at).unwrap_or_default());
            filled.push_str(&entry.value);
            rest = rest.get(at + entry.placeholder.len()..).unwrap_or_default();
            count.set(count.get() + 1);
            any = true;
        }
        filled.push_str(rest);
        any.then_some(filled)
    }

    /// The first placeholder in a text; of several at one place the longest.
    fn next(&self, text: &str) -> Option<(usize, &(Substitution, Cell<usize>))> {
        self.entries
            .iter()
            .filter_map(|entry| text.find(entry.0.placeholder.as_str()).map(|at| (at, entry)))
            .min_by_key(|(at, entry)| (*at, usize::MAX - entry.0.placeholder.len()))
    }

    /// The numbers of the substitutions that have filled nothing.
    pub(crate) fn unused(&self) -> impl Iterator<Item = (usize, &Substitution)> {
        self.entries
            .iter()
            .enumerate()
            .filter(|(_, (_, count))| count.get() == 0)
            .map(|(i, (entry, _))| (i, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn substitutions(pairs: &[(&str, &str)]) -> Substitutions {
        Substitutions::new(
            pairs
                .iter()
                .map(|(placeholder, value)| Substitution {
                    placeholder: (*placeholder).to_owned(),
                    value: (*value).to_owned(),
                })
                .collect(),
        )
    }

    #[test]
    fn fills_strings_at_every_depth_and_no_keys() {
        let substitutions = substitutions(&[("<a>", "1"), ("<b>", "<a>"), ("<a>x", "long")]);
        let mut value = json!({"<a>": ["<a>-<b>-<a>x", {"k": "image: <b>\n"}], "n": 3});
        substitutions.fill(&mut value);
        assert_eq!(value, json!({"<a>": ["1-<a>-long", {"k": "image: <a>\n"}], "n": 3}));
        assert_eq!(substitutions.unused().count(), 0);
        assert_eq!(substitutions.filled("nothing"), None);
    }

    #[test]
    fn remembers_what_filled_nothing() {
        let substitutions = substitutions(&[("<a>", "1"), ("<b>", "2")]);
        substitutions.fill(&mut json!("<a>"));
        assert_eq!(
            substitutions.unused().map(|(i, entry)| (i, entry.value.as_str())).collect::<Vec<_>>(),
            [(1, "2")]
        );
    }
}
