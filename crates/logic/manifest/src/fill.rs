//! What fills the placeholders, and those that nothing fills.

use std::collections::BTreeMap;

use scantling_finding::{Finding, Place, Severity, codes};

use crate::Options;
use crate::candidate::{Candidate, Filling, Route, What};

/// Gives placeholders the values that variables, parameters and the caller give to their names.
pub(crate) fn by_name(
    candidates: &mut [Candidate],
    given: &BTreeMap<String, Vec<Filling>>,
    options: &Options,
) {
    for candidate in candidates {
        let own = candidate.place.clone();
        let What::Placeholder { names, filled_by } = &mut candidate.what else { continue };
        for name in names.iter() {
            if let Some(value) = options.values.get(name) {
                filled_by.push(Filling {
                    by: "given value".to_owned(),
                    value: value.clone(),
                    place: Place::default(),
                });
            }
            // An entry that says `dummy` is filled by who rewrites its file, not by an entry of the same name elsewhere.
            if matches!(&candidate.route, Route::Parameter(own) if own == name) {
                continue;
            }
            let fillings = given.get(name).map(Vec::as_slice).unwrap_or_default();
            filled_by.extend(fillings.iter().filter(|filling| filling.place != own).cloned());
        }
    }
}

/// A finding for every placeholder that nothing fills.
pub(crate) fn unfilled(candidates: &[Candidate], findings: &mut Vec<Finding>) {
    for candidate in candidates {
        let What::Placeholder { names, filled_by } = &candidate.what else { continue };
        if !filled_by.is_empty() || candidate.route == Route::Observed {
            continue;
        }
        let message = if names.len() == 1 && names.first() == Some(&candidate.written) {
            format!("nothing fills {}", candidate.written)
        } else {
            format!("nothing fills {} in {}", names.join(", "), candidate.written)
        };
        let mut finding =
            Finding::new(codes::references::UNRESOLVED_PLACEHOLDER, message, candidate.place.clone());
        if !candidate.route.is_pulled() {
            finding = finding.with_severity(Severity::Warning);
        }
        findings.push(finding);
    }
}
