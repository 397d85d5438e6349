//! The same as data.

use scantling_finding::{Finding, Severity};
use scantling_release::{Change, Checked, Release};
use serde::Serialize;

/// The version of the layout of everything that is written here; it changes when a field goes or changes its meaning.
const FORMAT: &str = "scantling.dev/v1alpha1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckReport<'a> {
    format: &'a str,
    release: Subject<'a>,
    summary: Summary,
    findings: &'a [Finding],
    #[serde(skip_serializing_if = "<[Change]>::is_empty")]
    changes: &'a [Change],
}

#[derive(Serialize)]
struct Subject<'a> {
    name: &'a str,
    version: Option<&'a str>,
}

#[derive(Serialize)]
struct Summary {
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// The outcome of a check.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn check(release: &Release, checked: &Checked) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&CheckReport {
        format: FORMAT,
        release: Subject {
            name: &release.name,
            version: release.version.as_ref().map(scantling_release::Version::as_str),
        },
        summary: Summary {
            errors: checked.count(Severity::Error),
            warnings: checked.count(Severity::Warning),
            notes: checked.count(Severity::Note),
        },
        findings: &checked.findings,
        changes: &checked.changes,
    })
}
