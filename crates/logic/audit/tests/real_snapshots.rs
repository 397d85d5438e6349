//! Dumps of a real cluster: what really ran there is known.
//!
//! The folder is given by the variable `SCANTLING_REAL_INPUTS`; without it the tests say so and end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::path::{Path, PathBuf};

use scantling_audit::{Audit, Knowledge, Options, RegistryAnswers, audit};
use scantling_observed::Observed;

fn folder() -> Option<PathBuf> {
    let folder =
        std::env::var_os("SCANTLING_REAL_INPUTS").map(PathBuf::from)?.join("snapshots/stale-tag-one-node");
    folder.is_dir().then_some(folder)
}

fn read(folder: &Path, with_registry: bool) -> Audit {
    let mut observed = Observed::new();
    let mut knowledge = Knowledge::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if path.ends_with("registry.json") {
            if with_registry {
                knowledge.registry = Some(RegistryAnswers::parse("registry.json", &bytes).unwrap());
            }
            continue;
        }
        let part = Observed::from_list_json(&bytes).unwrap();
        observed.extend(part.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    audit(&observed, &knowledge, &Options::default())
}

/// Each subject of a broken row as `verdict pod`.
fn said(audit: &Audit) -> Vec<String> {
    let mut said: Vec<String> = audit
        .rows
        .iter()
        .filter(|row| row.is_broken())
        .flat_map(|row| {
            row.subjects.iter().map(move |subject| {
                let name = subject.pod.as_deref().unwrap_or(&subject.object);
                format!("{} {}", row.verdict.word(), name.rsplit('/').next().unwrap_or_default())
            })
        })
        .collect();
    said.sort();
    said.dedup();
    said
}

#[test]
fn what_really_ran_is_what_is_said() {
    let Some(folder) = folder() else {
        println!("skipped: SCANTLING_REAL_INPUTS is not set");
        return;
    };
    let fallback = "cannot pull fallback-c6775b947-rg4kc";
    let cases: [(&str, bool, &[&str]); 6] = [
        ("before", false, &[]),
        ("before", true, &[]),
        ("after-tag-moved", false, &[fallback]),
        (
            "after-tag-moved",
            true,
            &[
                fallback,
                "different model-0",
                "different notebook-ann",
                "different notebook-bob",
                "stale model-0",
                "stale notebook-ann",
                "stale notebook-bob",
            ],
        ),
        (
            "after-always-and-restart",
            false,
            &[
                fallback,
                // One name, two images: bob has the old one, ann and dan the new one.
                "different notebook-ann",
                "different notebook-bob",
                "different notebook-dan",
                "restart changes notebook-bob",
            ],
        ),
        (
            "after-always-and-restart",
            true,
            &[
                fallback,
                "different model-0",
                "different notebook-ann",
                "different notebook-bob",
                "different notebook-dan",
                "restart changes notebook-bob",
                "stale model-0",
            ],
        ),
    ];
    for (name, with_registry, expected) in cases {
        assert_eq!(
            said(&read(&folder.join(name), with_registry)),
            expected,
            "{name}, registry {with_registry}"
        );
    }
}
