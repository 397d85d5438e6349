//! Findings: what is wrong or risky in a release, a cluster or a file.
//!
//! A [`Finding`] is data only: a stable [`Code`], a [`Severity`], a [`Place`], and in words what is wrong, why, and what to
//! do. Every code is registered in one of the tables under [`codes`]; renderers, `scantling explain` and the reference
//! documentation read [`CODES`].

mod code;
pub mod codes;
mod place;

pub use code::{Code, CodeInfo, InUpgrade, Severity, info};
pub use codes::CODES;
pub use place::{FilePlace, Place};

use serde::Serialize;

/// One thing that is wrong or risky.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The stable code of the kind of fault.
    pub code: Code,
    /// How bad this one is; the code's own severity unless the finder knows better.
    pub severity: Severity,
    /// What is wrong, in one sentence fragment.
    pub message: String,
    /// Where it is.
    pub place: Place,
    /// Other places that belong to it, each with what it contributes ("first defined here").
    pub related: Vec<(Place, String)>,
    /// Why it is wrong, in this case.
    pub cause: String,
    /// What to do about it, in this case.
    pub remedy: String,
}

impl Finding {
    /// A finding with the severity, explanation and remedy that its code is registered with.
    pub fn new(code: Code, message: impl Into<String>, place: Place) -> Self {
        let info = code.info();
        Self {
            code,
            severity: info.severity,
            message: message.into(),
            place,
            related: Vec::new(),
            cause: info.explanation.to_owned(),
            remedy: info.remedy.to_owned(),
        }
    }

    /// Replaces the severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Replaces the cause by one that speaks of this case.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = cause.into();
        self
    }

    /// Replaces the remedy by one that speaks of this case.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Adds a place that belongs to the finding.
    #[must_use]
    pub fn with_related(mut self, place: Place, what: impl Into<String>) -> Self {
        self.related.push((place, what.into()));
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_finding_takes_what_its_code_says() {
        let place = Place::file("a.yaml", 3, 7);
        let finding = Finding::new(codes::input::DUPLICATE_KEY, "key \"a\" is given twice", place.clone())
            .with_related(Place::file("a.yaml", 1, 1), "first given here");
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(finding.remedy, codes::input::DUPLICATE_KEY.info().remedy);
        assert_eq!(finding.place.to_string(), "a.yaml:3:7");
        let json = serde_json::to_value(&finding).unwrap();
        assert_eq!(json["code"], codes::input::DUPLICATE_KEY.as_str());
        assert_eq!(json["severity"], "error");
        assert_eq!(json["place"]["file"]["line"], 3);
    }
}
