//! The report is not the input said again: one thing is changed in an example, and the report changes accordingly.

use scantling_rehearse::Options;
use scantling_rehearse::people::NotebookOutcome;
use scantling_rehearse::promises::{Promise, Verdict};

use crate::support::{
    STALE, UNPUBLISHED, broken, change, example, model, notebook, play, promise, runs, scantling, shipped,
};

#[test]
fn a_version_inside_a_layer() {
    let mut tree = example(STALE);
    change(&mut tree, "images.yaml", "tensorflow: 2.7.0", "tensorflow: 2.6.3");
    let seen = play(&tree, &shipped());
    let grace = notebook(&seen, "grace");
    assert_eq!((grace.outcome, runs(grace, "TensorFlow")), (NotebookOutcome::ClaimFalse, "2.6.3"));
    // Scantling's screen says what is in the image, and the release's false claim is a finding.
    let seen = play(&tree, &scantling());
    assert_eq!(runs(notebook(&seen, "grace"), "tensorflow"), "2.6.3");
    let report = seen.attempts.last().unwrap().report.as_ref().unwrap();
    assert!(report.findings.iter().any(|it| it.code.as_str().starts_with("SCN05")), "{:#?}", report.findings);
}

#[test]
fn the_pull_policy() {
    let mut tree = example(STALE);
    change(&mut tree, "rehearsal.yaml", "imagePullPolicy: IfNotPresent", "imagePullPolicy: Always");
    let seen = play(&tree, &shipped());
    for person in ["ben", "chloe", "dmitri", "emre", "farah", "grace"] {
        assert_eq!(notebook(&seen, person).outcome, NotebookOutcome::AsPromised, "{person}");
    }
    // A tag it is all the same.
    assert_eq!(promise(&seen, Promise::Pinned).verdict, Verdict::Broken);
}

#[test]
fn the_cache_of_one_node() {
    let mut tree = example(STALE);
    change(
        &mut tree,
        "rehearsal.yaml",
        "person: farah, image: \"tensorflow:py3.8-cuda-11.0.3\", node: worker-b",
        "person: farah, image: \"tensorflow:py3.8-cuda-11.0.3\", node: worker-c",
    );
    let seen = play(&tree, &shipped());
    // Her first notebook was on worker-c: now that node has the old image, and grace gets it.
    assert_eq!(notebook(&seen, "grace").outcome, NotebookOutcome::Stale);
}

#[test]
fn one_digest() {
    let tree = example(UNPUBLISHED);
    let fallback = "sha256:eb858a7dfeb185fc05143e1d78730c944ce622e6e7267e844d03d7e0969b71b8";
    let text = String::from_utf8(tree.get("releases/1.21.1/dashboard/const.ts").unwrap().clone()).unwrap();
    let good = text.split('@').nth(1).and_then(|rest| rest.lines().next()).unwrap().to_owned();
    assert_ne!(good, fallback);

    let mut mended = tree.clone();
    change(&mut mended, "releases/1.21/dashboard/const.ts", fallback, &good);
    assert!(model(&play(&mended, &shipped())).serves);
    let seen = play(&mended, &scantling());
    assert_eq!(seen.attempts.len(), 1, "nothing to refuse");
    assert!(seen.ended_well(), "{:?}", broken(&seen));

    let mut worse = tree;
    change(
        &mut worse,
        "releases/1.21.1/manifests/dashboard.yaml",
        "odh-dashboard-rhel8@sha256:82",
        "odh-dashboard-rhel8@sha256:00",
    );
    let seen = play(&worse, &scantling());
    let last = seen.attempts.last().unwrap();
    assert!(last.refused && last.writes == 0, "the corrected release is refused as well");
}

#[test]
fn one_user_edit() {
    let mut tree = example(UNPUBLISHED);
    // With the release's own key in it, the vendor's script brings the config map up to date.
    change(&mut tree, "rehearsal.yaml", "data: {team-notes:", "data: {default-config: old, team-notes:");
    let seen = play(&tree, &shipped());
    assert!(model(&seen).serves);
    assert!(!broken(&seen).contains(&Promise::NothingSilent));
}

#[test]
fn who_installed_the_old_release() {
    let mut tree = example(STALE);
    change(&mut tree, "rehearsal.yaml", "by: vendor", "by: scantling");
    let seen = play(&tree, &scantling());
    assert!(seen.ended_well(), "{:?}", broken(&seen));
    // Opened on Scantling's own spawner, by digest: it stays what it is, and is marked.
    let anna = notebook(&seen, "anna");
    assert!(anna.written.contains("@sha256:"), "{}", anna.written);
    assert_eq!(anna.outcome, NotebookOutcome::KeptAndMarked);
}

#[test]
fn the_platform_of_an_image() {
    let mut tree = example(UNPUBLISHED);
    change(
        &mut tree,
        "images.yaml",
        "      - registry.redhat.io/rhods/etcd-rhel8:3.5.4\n    image:\n      platforms: [linux/amd64]",
        "      - registry.redhat.io/rhods/etcd-rhel8:3.5.4\n    image:\n      platforms: [linux/arm64]",
    );
    // Its digest is another now; the manifests follow.
    let images = scantling_rehearse::BuiltImages::build(
        &scantling_rehearse::scenario::Scenario::read(&tree).unwrap().images,
    )
    .unwrap();
    let (_, _, digest) = images.names().find(|(id, _, _)| *id == Some("etcd-3.5.4")).unwrap();
    for release in ["1.20", "1.21", "1.21.1"] {
        let file = format!("releases/{release}/manifests/model-mesh.yaml");
        let old = "sha256:5a598b84ba3ba6113e5e763f6e7116ada1ef1fa5dfd3092ef3f2129daa7bcd17";
        change(&mut tree, &file, old, &digest.to_string());
    }
    let seen = play(&tree, &Options { fresh: true, ..scantling() });
    assert!(seen.attempts.iter().all(|attempt| attempt.refused && attempt.writes == 0));
    assert!(broken(&seen).contains(&Promise::Pullable));
}
