//! The end states of incidents, as an admin would dump them, held against what the audit says.

use std::collections::BTreeSet;

use scantling_audit::{Audit, Knowledge, KnownRelease, Options, Section, Verdict, audit};
use scantling_observed::Observed;
use scantling_rehearse::scenario::Tree;
use scantling_release::{Release, Settings};

use crate::support::{STALE, UNPUBLISHED, example, model, play, scantling, shipped};

/// A release of an example, without a lock: it has none.
fn release(tree: &Tree, folder: &str) -> KnownRelease {
    let prefix = format!("{folder}/");
    let files: Tree = tree
        .iter()
        .filter_map(|(path, bytes)| Some((path.strip_prefix(&prefix)?.to_owned(), bytes.clone())))
        .collect();
    let release = Release::read_at(folder, &files, &Settings::default()).unwrap();
    KnownRelease { title: release.title(), lock: None, release: Some(release) }
}

fn audited(rehearsal: &scantling_rehearse::Rehearsal, releases: Vec<KnownRelease>) -> Audit {
    let observed = Observed::from_objects(rehearsal.objects.values().cloned()).unwrap();
    audit(&observed, &Knowledge { releases, registry: None }, &Options::default())
}

/// The pods that rows of a section and verdict name.
fn pods(audit: &Audit, section: Section, verdicts: &[Verdict]) -> BTreeSet<String> {
    audit
        .rows
        .iter()
        .filter(|row| row.section == section && verdicts.contains(&row.verdict))
        .flat_map(|row| &row.subjects)
        .filter_map(|subject| {
            let name =
                subject.pod.clone().or_else(|| subject.object.rsplit('/').next().map(str::to_owned))?;
            Some(format!("{}/{name}", subject.namespace.as_deref()?))
        })
        .collect()
}

/// `node reference` where a node lists another digest under a stream's tag than the stream has.
fn listed_stale(rehearsal: &scantling_rehearse::Rehearsal, used: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut stale = BTreeSet::new();
    let of_kind = |kind: &'static str| rehearsal.objects.iter().filter(move |(key, _)| key.kind == kind);
    for (_, stream) in of_kind("ImageStream") {
        let repository = stream.pointer("/status/dockerImageRepository").and_then(|it| it.as_str()).unwrap();
        for tag in stream.pointer("/status/tags").and_then(|tags| tags.as_array()).into_iter().flatten() {
            let name = format!("{repository}:{}", tag["tag"].as_str().unwrap());
            let newest = format!("{repository}@{}", tag["items"][0]["image"].as_str().unwrap());
            for (node, object) in of_kind("Node") {
                for image in
                    object.pointer("/status/images").and_then(|it| it.as_array()).into_iter().flatten()
                {
                    let names: Vec<&str> = image["names"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(|it| it.as_str())
                        .collect();
                    if used.contains(name.as_str())
                        && names.contains(&name.as_str())
                        && !names.contains(&newest.as_str())
                    {
                        stale.insert(format!("{} {name}", node.name));
                    }
                }
            }
        }
    }
    stale
}

#[test]
fn the_stale_pods_of_the_first_incident_are_found_and_no_others() {
    let rehearsal = play(&example(STALE), &shipped());
    let audit = audited(&rehearsal, Vec::new());
    let stale: BTreeSet<String> = rehearsal
        .notebooks
        .iter()
        .filter(|notebook| notebook.as_wanted == Some(false))
        .map(|notebook| notebook.pod.clone())
        .collect();
    assert!(!stale.is_empty());
    assert_eq!(
        pods(&audit, Section::Running, &[Verdict::Different, Verdict::Moved]),
        stale,
        "{:#?}",
        audit.rows
    );

    // The nodes that would start the old image next, read from what nodes list and streams have.
    let next: BTreeSet<String> = audit
        .rows
        .iter()
        .filter(|row| row.section == Section::NextStart && row.is_broken())
        .filter_map(|row| Some(format!("{} {}", row.subjects.first()?.node.clone()?, row.reference.clone()?)))
        .collect();
    assert!(!next.is_empty());
    let used: BTreeSet<&str> = audit.rows.iter().filter_map(|row| row.reference.as_deref()).collect();
    assert_eq!(next, listed_stale(&rehearsal, &used), "{:#?}", audit.rows);
}

#[test]
fn the_live_fallback_of_the_second_incident_is_found() {
    let tree = example(UNPUBLISHED);
    let rehearsal = play(&tree, &shipped());
    assert!(!model(&rehearsal).serves);
    let audit = audited(&rehearsal, vec![release(&tree, "releases/1.21"), release(&tree, "releases/1.20")]);
    let fallback: Vec<_> = audit
        .rows
        .iter()
        .filter(|row| row.section == Section::Configuration && row.why.contains("the fallback at"))
        .collect();
    let [fallback] = fallback.as_slice() else { panic!("{:#?}", audit.rows) };
    assert_eq!(fallback.subjects[0].object, "ConfigMap redhat-ods-applications/servingruntimes-config");
    assert!(fallback.remedies[0].command.as_deref().unwrap().contains("--type=merge"), "{fallback:#?}");
    let rehearsal = play(&tree, &scantling());
    let audit = audited(&rehearsal, vec![release(&tree, "releases/1.21.1"), release(&tree, "releases/1.20")]);
    assert_eq!(audit.broken(), 0, "{:#?}", audit.rows);
}
