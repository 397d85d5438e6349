//! Whose a field is when it is not as the last release left it.

use scantling_api::ObjectKey;

use crate::path::{FieldPath, PathError};
use crate::{OwnershipRule, Rule};

/// The ownership rules of a release. What no rule covers is [`Rule::Stop`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ownership {
    rules: Vec<(OwnershipRule, FieldPath)>,
}

impl Ownership {
    /// Takes rules; an error comes with the number of the rule.
    pub(crate) fn new(rules: Vec<OwnershipRule>) -> Result<Self, (usize, PathError)> {
        let rules = rules
            .into_iter()
            .enumerate()
            .map(|(number, rule)| match FieldPath::parse(&rule.field) {
                Ok(path) => Ok((rule, path)),
                Err(error) => Err((number, error)),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    /// The rule for a field of an object. A rule for the object's own name goes before one for `*`, then the longest
    /// path wins, then the last rule.
    ///
    /// # Errors
    /// When `field` is not a path.
    pub fn rule(&self, key: &ObjectKey, field: &str) -> Result<Rule, PathError> {
        let field = FieldPath::parse(field)?;
        Ok(self
            .rules
            .iter()
            .filter(|(rule, path)| {
                rule.kind == key.kind && (rule.name == "*" || rule.name == key.name) && path.covers(&field)
            })
            .max_by_key(|(rule, path)| (rule.name != "*", path.len()))
            .map_or(Rule::Stop, |(rule, _)| rule.rule))
    }

    /// All rules, as written.
    pub fn rules(&self) -> impl Iterator<Item = &OwnershipRule> {
        self.rules.iter().map(|(rule, _)| rule)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_most_particular_rule_wins() {
        let rule = |name: &str, field: &str, rule| OwnershipRule {
            kind: "ConfigMap".to_owned(),
            name: name.to_owned(),
            field: field.to_owned(),
            rule,
        };
        let ownership = Ownership::new(vec![
            rule("config", ".data[\"override-config\"]", Rule::Keep),
            rule("*", ".data", Rule::Take),
            rule("*", ".data[\"a.b\"]", Rule::Keep),
            rule("config", ".data", Rule::Stop),
        ])
        .unwrap();
        let cases = [
            ("ConfigMap", "config", ".data[\"override-config\"]", Rule::Keep),
            ("ConfigMap", "config", ".data.override-config", Rule::Keep),
            ("ConfigMap", "config", ".data.other", Rule::Stop),
            ("ConfigMap", "other", ".data.other", Rule::Take),
            ("ConfigMap", "other", ".data[\"a.b\"]", Rule::Keep),
            ("ConfigMap", "other", ".metadata.labels.x", Rule::Stop),
            ("Secret", "other", ".data.x", Rule::Stop),
        ];
        for (kind, name, field, wanted) in cases {
            let key = ObjectKey::namespaced("", kind, "ns", name);
            assert_eq!(ownership.rule(&key, field).unwrap(), wanted, "{kind} {name} {field}");
        }
        assert!(ownership.rule(&ObjectKey::cluster("", "ConfigMap", "x"), "data").is_err());
    }
}
