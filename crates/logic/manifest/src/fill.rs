//! What fills the placeholders, and those that nothing fills.

use std::collections::BTreeMap;

use scantling_finding::{Finding, Place, Severity, codes};

use crate::candidate::{Candidate, Filling, Route, What};
use crate::source::File;
use crate::{FileDocument, Options};

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

/// Gives expressions of Helm templates the values that stand in their chart's `values.yaml`.
pub(crate) fn by_chart(
    candidates: &mut [Candidate],
    documents: &[FileDocument],
    files: &BTreeMap<String, Vec<u8>>,
) {
    for candidate in candidates {
        let Some(file) = &candidate.place.file else { continue };
        let Some((chart, _)) = file.path.split_once("templates/") else { continue };
        let What::Placeholder { names, filled_by } = &mut candidate.what else { continue };
        let path = format!("{chart}values.yaml");
        let Some(document) = documents.iter().find(|document| document.file == path) else { continue };
        let text = files.get(&path).and_then(|bytes| scantling_yaml::text(bytes).ok()).unwrap_or_default();
        for name in names.iter() {
            let way = name.split_whitespace().find_map(|word| word.strip_prefix(".Values."));
            let value =
                way.and_then(|way| way.split('.').try_fold(&document.root, |node, key| node.get(key)));
            if let Some(node) = value.filter(|node| !node.is_collection()) {
                let value = node.as_str().unwrap_or_else(|| node.written(&text)).to_owned();
                let place = File::new(&path, &text).place(node.span.start, node.span.end);
                filled_by.push(Filling { by: format!("value of {path}"), value, place });
            }
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
