//! What a run found of the promises, as evidence for the platform's status.

use std::collections::BTreeMap;

use scantling_plan::Outcome;
use scantling_reconcile::{Evidence, Promise};

use crate::predictors::PENDING;
use crate::report::RunReport;

/// The evidence that a report holds. A run that had nothing to look at says so.
pub(crate) fn promises(report: &RunReport) -> BTreeMap<Promise, Evidence> {
    let mut found = BTreeMap::new();
    let mut say = |promise, holds, text: String| found.insert(promise, Evidence { holds, text });

    let pullable = report.gate.iter().filter(|verdict| verdict.passes).count();
    let refused = report.gate.iter().find(|verdict| !verdict.passes);
    let first = refused.map(|verdict| format!("; {}: {}", verdict.reference, verdict.verdict));
    say(
        Promise::Pullable,
        (!report.gate.is_empty()).then_some(refused.is_none()),
        format!("{pullable} of {} references can be pulled{}", report.gate.len(), first.unwrap_or_default()),
    );

    let judged: Vec<_> = report
        .verified
        .iter()
        .filter(|seen| !["not started", PENDING].contains(&seen.answer.as_str()))
        .collect();
    let pending = match report.verified.iter().filter(|seen| seen.answer == PENDING).count() {
        0 => String::new(),
        pending => format!("; {pending} containers of models wait for their update"),
    };
    let same = judged.iter().filter(|seen| seen.answer == "same").count();
    let other = judged.iter().find(|seen| seen.answer != "same");
    let first = other.map(|seen| format!("; {} ({}) is {}", seen.pod, seen.container, seen.answer));
    say(
        Promise::Pinned,
        (!judged.is_empty()).then_some(other.is_none()),
        format!(
            "{same} of {} containers of the platform run what the lock says{}",
            judged.len(),
            first.unwrap_or_default()
        ),
    );

    let ended =
        |outcomes: &[Outcome]| report.outcomes.iter().filter(|o| outcomes.contains(&o.outcome)).count();
    let conflicts = ended(&[Outcome::Conflict, Outcome::Failed]);
    let kept_fields: usize = report.outcomes.iter().map(|outcome| outcome.kept.len()).sum();
    say(
        Promise::Converged,
        (!report.outcomes.is_empty()).then_some(conflicts == 0),
        format!(
            "{} of {} objects are as declared; {kept_fields} fields of others stay by the release's rules{pending}",
            report.outcomes.len() - conflicts,
            report.outcomes.len()
        ),
    );

    let claims: Vec<_> = report.catalogue.iter().flat_map(|entry| &entry.claims).collect();
    let false_one = claims.iter().find(|claim| !claim.holds);
    let held = claims.iter().filter(|claim| claim.holds).count();
    let first = false_one.map(|claim| format!("; {} {} is not in its image", claim.name, claim.claimed));
    say(
        Promise::Truthful,
        (!claims.is_empty()).then_some(false_one.is_none()),
        format!(
            "{held} of {} versions that the catalogue shows are in their images{}",
            claims.len(),
            first.unwrap_or_default()
        ),
    );

    say(
        Promise::NothingLost,
        (!report.outcomes.is_empty()).then_some(true),
        format!(
            "objects of the platform taken away: {}, kept: {}",
            ended(&[Outcome::Pruned]),
            ended(&[Outcome::Kept])
        ),
    );
    // What was created, updated or left alone as the release has it says so by its outcome alone.
    let plain = [Outcome::Created, Outcome::Updated, Outcome::Unchanged];
    let silent = report.outcomes.iter().find(|it| it.cause.is_empty() && !plain.contains(&it.outcome));
    let first = silent.map(|it| format!("; {} is {} without a cause", it.key, it.outcome));
    say(
        Promise::NothingSilent,
        (!report.outcomes.is_empty()).then_some(silent.is_none()),
        format!(
            "objects with an outcome: {}, findings: {}{}",
            report.outcomes.len(),
            report.findings.len(),
            first.unwrap_or_default()
        ),
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CatalogueEntry, CheckedClaim, GateVerdict, ObjectOutcome, Verified};

    fn verdict(passes: bool) -> GateVerdict {
        GateVerdict {
            reference: "registry.example/a:1".to_owned(),
            verdict: "absent".to_owned(),
            passes,
            digest: None,
            attempts: Vec::new(),
        }
    }

    fn seen(answer: &str) -> Verified {
        Verified {
            pod: "n/a".to_owned(),
            container: "c".to_owned(),
            wanted: String::new(),
            running: String::new(),
            answer: answer.to_owned(),
        }
    }

    #[test]
    fn evidence_has_numbers_and_the_first_that_is_wrong() {
        let claim = |holds| CheckedClaim {
            name: "Python".to_owned(),
            claimed: "3.13".to_owned(),
            found: None,
            holds,
        };
        let entry = |claims| CatalogueEntry {
            name: "a".to_owned(),
            tag: "a:1".to_owned(),
            image: "a".to_owned(),
            claims,
        };
        let good = RunReport {
            gate: vec![verdict(true), verdict(true)],
            verified: vec![seen("same"), seen("not started")],
            catalogue: vec![entry(vec![claim(true)])],
            ..RunReport::default()
        };
        let ended = |outcome, cause: &str| ObjectOutcome {
            key: scantling_api::ObjectKey::namespaced("", "ConfigMap", "n", "m"),
            outcome,
            cause: cause.to_owned(),
            changes: Vec::new(),
            adjusted: Vec::new(),
            kept: Vec::new(),
            taken: Vec::new(),
        };
        let told = RunReport {
            outcomes: vec![
                ended(Outcome::Updated, ""),
                ended(Outcome::Pruned, "the release no longer has it"),
            ],
            ..RunReport::default()
        };
        let silent = RunReport { outcomes: vec![ended(Outcome::KeptByUser, "")], ..RunReport::default() };
        let bad = RunReport {
            gate: vec![verdict(true), verdict(false)],
            verified: vec![seen("same"), seen("different")],
            catalogue: vec![entry(vec![claim(true), claim(false)])],
            ..RunReport::default()
        };
        for (report, promise, holds, text) in [
            (&good, Promise::Pullable, Some(true), "2 of 2 references can be pulled"),
            (
                &bad,
                Promise::Pullable,
                Some(false),
                "1 of 2 references can be pulled; registry.example/a:1: absent",
            ),
            (&good, Promise::Pinned, Some(true), "1 of 1 containers of the platform run what the lock says"),
            (
                &bad,
                Promise::Pinned,
                Some(false),
                "1 of 2 containers of the platform run what the lock says; n/a (c) is different",
            ),
            (
                &good,
                Promise::Truthful,
                Some(true),
                "1 of 1 versions that the catalogue shows are in their images",
            ),
            (
                &bad,
                Promise::Truthful,
                Some(false),
                "1 of 2 versions that the catalogue shows are in their images; Python 3.13 is not in its image",
            ),
            (&told, Promise::NothingLost, Some(true), "objects of the platform taken away: 1, kept: 0"),
            (&told, Promise::NothingSilent, Some(true), "objects with an outcome: 2, findings: 0"),
            (
                &silent,
                Promise::NothingSilent,
                Some(false),
                "objects with an outcome: 1, findings: 0; ConfigMap n/m is kept by user without a cause",
            ),
            (
                &good,
                Promise::Converged,
                None,
                "0 of 0 objects are as declared; 0 fields of others stay by the release's rules",
            ),
        ] {
            let found = promises(report);
            assert_eq!(found.get(&promise), Some(&Evidence { holds, text: text.to_owned() }));
            assert_eq!(found.len(), 6);
        }
    }
}
