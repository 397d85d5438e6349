//! The same as data.

use scantling_finding::{Finding, Severity};
use scantling_manifest::Candidate;
use scantling_release::{Change, Checked, Lock, Release};
use scantling_run::{Action, PastRun, RunError, RunReport, Stage, Status};
use serde::Serialize;

use crate::run::{End, Frame, Purpose};

/// The version of the layout of everything that is written here; it changes when a field goes or changes its meaning.
const FORMAT: &str = "scantling.dev/v1alpha1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckReport<'a> {
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<Subject<'a>>,
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

impl Summary {
    fn of(findings: &[Finding]) -> Self {
        let number = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        Self {
            errors: number(Severity::Error),
            warnings: number(Severity::Warning),
            notes: number(Severity::Note),
        }
    }
}

/// The index of a snapshot, as it stands in the snapshot's folder: it has a format of its own.
///
/// # Errors
/// Never for values of this type; the signature is serde's.
pub fn snapshot(index: &scantling_snapshot::Index) -> serde_json::Result<String> {
    serde_json::to_string_pretty(index)
}

/// The outcome of a check.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn check(release: &Release, checked: &Checked) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&CheckReport {
        format: FORMAT,
        release: Some(Subject {
            name: &release.name,
            version: release.version.as_ref().map(scantling_release::Version::as_str),
        }),
        summary: Summary::of(&checked.findings),
        findings: &checked.findings,
        changes: &checked.changes,
    })
}

/// A rehearsal.
///
/// # Errors
/// Never for values of this type; the signature is serde's.
pub fn rehearsal(rehearsal: &scantling_rehearse::Rehearsal) -> serde_json::Result<String> {
    serde_json::to_string_pretty(rehearsal)
}

/// What is wrong with a release that cannot be read.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn unreadable(findings: &[Finding]) -> serde_json::Result<String> {
    let summary = Summary::of(findings);
    serde_json::to_string_pretty(&CheckReport {
        format: FORMAT,
        release: None,
        summary,
        findings,
        changes: &[],
    })
}

#[derive(Serialize)]
struct ReferencesReport<'a> {
    format: &'a str,
    references: &'a [Candidate],
    findings: &'a [Finding],
    skipped: Vec<Skipped<'a>>,
}

#[derive(Serialize)]
struct Skipped<'a> {
    path: &'a str,
    reason: &'a str,
}

/// What was found in a set of files; `skipped` holds paths and reasons.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn references(
    candidates: &[Candidate],
    findings: &[Finding],
    skipped: &[(String, String)],
) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&ReferencesReport {
        format: FORMAT,
        references: candidates,
        findings,
        skipped: skipped.iter().map(|(path, reason)| Skipped { path, reason }).collect(),
    })
}

/// A lock.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn lock(lock: &Lock) -> serde_json::Result<String> {
    serde_json::to_string_pretty(lock)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunDocument<'a> {
    format: &'a str,
    cluster: &'a str,
    action: Action,
    /// Whether nothing was to be written.
    dry_run: bool,
    #[serde(flatten)]
    end: EndOfRun<'a>,
    report: &'a RunReport,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
enum EndOfRun<'a> {
    Done,
    Refused { why: &'a str },
    Stopped { stage: Stage, why: &'a str },
}

/// A run or a plan.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn run(result: &Result<RunReport, RunError>, frame: &Frame<'_>) -> serde_json::Result<String> {
    let (end, report) = End::of(result);
    let end = match end {
        End::Done => EndOfRun::Done,
        End::Refused(why) => EndOfRun::Refused { why },
        End::Stopped(stage, why) => EndOfRun::Stopped { stage, why },
    };
    serde_json::to_string_pretty(&RunDocument {
        format: FORMAT,
        cluster: frame.place,
        action: frame.action,
        dry_run: frame.purpose != Purpose::Change,
        end,
        report,
    })
}

#[derive(Serialize)]
struct StatusDocument<'a> {
    format: &'a str,
    cluster: &'a str,
    #[serde(flatten)]
    status: &'a Status,
}

/// What a cluster has of the platform.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn status(status: &Status, place: &str) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&StatusDocument { format: FORMAT, cluster: place, status })
}

#[derive(Serialize)]
struct AuditDocument<'a> {
    format: &'a str,
    cluster: &'a str,
    broken: usize,
    #[serde(flatten)]
    audit: &'a scantling_audit::Audit,
}

/// What an audit says.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn audit(audit: &scantling_audit::Audit, place: &str) -> serde_json::Result<String> {
    let document = AuditDocument { format: FORMAT, cluster: place, broken: audit.broken(), audit };
    serde_json::to_string_pretty(&document)
}

/// Some rows of an audit.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn audit_rows(rows: &[&scantling_audit::Row]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(rows)
}

#[derive(Serialize)]
struct HistoryDocument<'a> {
    format: &'a str,
    cluster: &'a str,
    runs: &'a [PastRun],
}

/// The runs that a cluster has seen.
///
/// # Errors
/// Never for values of these types; the signature is serde's.
pub fn history(runs: &[PastRun], place: &str) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&HistoryDocument { format: FORMAT, cluster: place, runs })
}
