//! Secrets that are made once per cluster: what their declarations must fulfil.

use std::collections::BTreeMap;

use crate::Generated;

/// Fewest characters of a generated value: 62^12 guesses are out of reach.
pub const MIN_LENGTH: usize = 12;
/// Most characters; far below what a Secret may hold.
pub const MAX_LENGTH: usize = 4_096;

/// What is wrong with a declaration: its number, the field, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) number: usize,
    pub(crate) field: &'static str,
    pub(crate) reason: String,
}

/// Checks every declaration against its own rules and against the others.
pub(crate) fn check(generated: &[Generated]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |number, field, reason: String| faults.push(Fault { number, field, reason });
    let by_name: BTreeMap<String, &Generated> =
        generated.iter().map(|entry| (format!("{}/{}", entry.name, entry.key), entry)).collect();
    let mut seen = BTreeMap::new();
    for (number, entry) in generated.iter().enumerate() {
        if entry.kind != "Secret" {
            fault(number, "kind", format!("only a Secret can be generated, not a {}", entry.kind));
        }
        match (&entry.length, &entry.same_as) {
            (Some(_), Some(_)) => {
                fault(
                    number,
                    "length",
                    "a value that repeats another one has no length of its own".to_owned(),
                );
            }
            (None, None) => {
                fault(number, "key", "either `length` or `sameAs` must say what the value is".to_owned());
            }
            (Some(length), None) if !(MIN_LENGTH..=MAX_LENGTH).contains(length) => {
                fault(
                    number,
                    "length",
                    format!("{length} characters; allowed are {MIN_LENGTH} to {MAX_LENGTH}"),
                );
            }
            (None, Some(other)) => match by_name.get(other) {
                None => fault(
                    number,
                    "sameAs",
                    format!("{other} is not generated; write NAME/KEY of an entry that is"),
                ),
                Some(target) if target.same_as.is_some() || target.json_pointer.is_some() => {
                    fault(number, "sameAs", format!("{other} is itself no plain generated value"));
                }
                Some(_) => {}
            },
            (Some(_), None) => {}
        }
        if entry.json_pointer.as_ref().is_some_and(|pointer| !pointer.starts_with('/')) {
            fault(number, "jsonPointer", "a JSON pointer begins with /".to_owned());
        }
        let place = (&entry.namespace, &entry.name, &entry.key, &entry.json_pointer);
        if let Some(first) = seen.insert(place, number) {
            fault(number, "key", format!("entry {} declares the same value", first + 1));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, length: Option<usize>, same_as: Option<&str>) -> Generated {
        Generated {
            kind: "Secret".to_owned(),
            namespace: None,
            name: name.to_owned(),
            key: "k".to_owned(),
            length,
            json_pointer: None,
            same_as: same_as.map(str::to_owned),
        }
    }

    #[test]
    fn declarations_are_held_against_each_other() {
        assert_eq!(check(&[entry("a", Some(20), None), entry("b", None, Some("a/k"))]), []);
        let cases: &[(Vec<Generated>, &str, &str)] = &[
            (vec![entry("a", None, None)], "key", "length"),
            (vec![entry("a", Some(20), Some("a/k"))], "length", "no length"),
            (vec![entry("a", Some(3), None)], "length", "3 characters"),
            (vec![entry("b", None, Some("a/k"))], "sameAs", "not generated"),
            (vec![entry("a", None, Some("a/k"))], "sameAs", "no plain"),
            (vec![entry("a", Some(20), None), entry("a", Some(20), None)], "key", "entry 1"),
        ];
        for (entries, field, reason) in cases {
            let faults = check(entries);
            assert!(
                faults.iter().any(|fault| fault.field == *field && fault.reason.contains(reason)),
                "{field} {reason}: {faults:?}"
            );
        }
        let mut wrong = entry("a", Some(20), None);
        wrong.kind = "ConfigMap".to_owned();
        wrong.json_pointer = Some("password".to_owned());
        assert_eq!(check(&[wrong]).len(), 2);
    }
}
