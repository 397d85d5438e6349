//! Which versions of Scantling may bring a release, such as `>=0.1.0, <0.3.0`.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::{Version, VersionError};

/// Most conditions of one requirement: a lower bound, an upper bound, and a few versions left out.
const MAX_CONDITIONS: usize = 8;

/// Conditions on a version; all of them must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    written: String,
    conditions: Vec<(Operator, Version)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    AtLeast,
    AtMost,
    Above,
    Below,
    Exactly,
}

/// Operators by how they are written, longer ones first.
const OPERATORS: [(&str, Operator); 5] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("=", Operator::Exactly),
];

/// Why a text is no requirement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequirementError {
    /// A condition begins with no operator.
    #[error(
        "{condition:?} begins with none of >=, >, <=, < and = (a requirement looks like \">=0.1.0, <0.3.0\")"
    )]
    Operator {
        /// The condition.
        condition: String,
    },
    /// What follows the operator is no version.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// There are too many conditions.
    #[error("more than {MAX_CONDITIONS} conditions")]
    TooMany,
}

impl Requirement {
    /// Reads a requirement: conditions joined by commas.
    ///
    /// # Errors
    /// When a condition has no operator or no version.
    pub fn parse(text: &str) -> Result<Self, RequirementError> {
        if text.split(',').count() > MAX_CONDITIONS {
            return Err(RequirementError::TooMany);
        }
        let conditions = text
            .split(',')
            .map(|condition| {
                let condition = condition.trim();
                let (version, operator) = OPERATORS
                    .iter()
                    .find_map(|(sign, operator)| Some((condition.strip_prefix(sign)?, *operator)))
                    .ok_or_else(|| RequirementError::Operator {
                        condition: condition.chars().take(64).collect(),
                    })?;
                Ok((operator, Version::parse(version.trim())?))
            })
            .collect::<Result<_, RequirementError>>()?;
        Ok(Self { written: text.to_owned(), conditions })
    }

    /// Whether a version fulfils every condition.
    pub fn holds(&self, version: &Version) -> bool {
        self.conditions.iter().all(|(operator, bound)| {
            let order = version.cmp(bound);
            match operator {
                Operator::AtLeast => order != Ordering::Less,
                Operator::AtMost => order != Ordering::Greater,
                Operator::Above => order == Ordering::Greater,
                Operator::Below => order == Ordering::Less,
                Operator::Exactly => order == Ordering::Equal,
            }
        })
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Serialize for Requirement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for Requirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_condition_must_hold() {
        let cases = [
            (">=0.1.0", "0.1.0", true),
            (">=0.1.0", "0.0.9", false),
            (">0.1.0", "0.1.0", false),
            ("<=0.1", "0.1.0", true),
            ("<0.3.0", "0.3.0", false),
            (">=0.1.0, <0.3.0", "0.2.7", true),
            (">=0.1.0,<0.3.0", "0.3.1", false),
            ("= 0.1.0", "0.1.0", true),
            ("=0.1.0", "0.1.1", false),
        ];
        for (requirement, version, wanted) in cases {
            let holds = Requirement::parse(requirement).unwrap().holds(&Version::parse(version).unwrap());
            assert_eq!(holds, wanted, "{version} {requirement}");
        }
    }

    #[test]
    fn what_is_none_is_refused_with_its_reason() {
        let many = [">=1"; MAX_CONDITIONS + 1].join(",");
        for (text, reason) in [
            ("", "begins with none"),
            ("0.1.0", "begins with none"),
            ("^0.1.0", "begins with none"),
            (">=0.1.0,", "begins with none"),
            (">=v1", "a leading v"),
            (">=", "nothing"),
            (&many, "more than 8"),
        ] {
            let error = Requirement::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }
}
