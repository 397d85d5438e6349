//! Locks: the same release gives the same bytes, and what is not resolved gives none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;

use common::{inline, lines, release};
use scantling_contents::{Contents, Ecosystem, Package};
use scantling_image::{Digest, Platform, Reference, Sameness};
use scantling_release::{
    Against, Answer, Lock, LockError, LockedImage, LockedPlatform, Release, Settings, check,
};

fn locked(reference: &str, content: &str) -> LockedImage {
    LockedImage {
        reference: Reference::parse(reference).unwrap(),
        digest: Digest::of(format!("{content} index").as_bytes()),
        media_type: "application/vnd.oci.image.index.v1+json".to_owned(),
        found_at: "registry.example.org".to_owned(),
        platforms: ["linux/arm64", "linux/amd64"]
            .iter()
            .map(|platform| LockedPlatform {
                platform: Platform::parse(platform).unwrap(),
                manifest: Digest::of(format!("{content} {platform} manifest").as_bytes()),
                config: Digest::of(format!("{content} {platform} config").as_bytes()),
                size: 1234,
                contents: None,
            })
            .collect(),
    }
}

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: \"r.example/b:1\"}, {name: d, image: \"r.example/a:1\"}]}\n";

fn pod() -> Release {
    Release::read(&inline(&[("pod.yaml", POD)]), &Settings::default()).unwrap()
}

#[test]
fn a_lock_is_written_and_read_again() {
    let release = pod();
    let images =
        [locked("r.example/b:1", "b"), locked("r.example/a:1", "a"), locked("r.example/unused:1", "x")];
    let lock = Lock::from_resolved(&release, images.clone()).unwrap();
    let text = lock.to_text();
    let again = Lock::parse("release.lock", text.as_bytes()).unwrap();
    assert_eq!(again, lock);
    assert_eq!(again.to_text(), text);
    let mut reversed = images;
    reversed.reverse();
    assert_eq!(Lock::from_resolved(&release, reversed).unwrap().to_text(), text);
    let names: Vec<&str> = lock.images.iter().map(|image| image.reference.written()).collect();
    assert_eq!(names, ["r.example/a:1", "r.example/b:1"]);
    let platforms: Vec<String> = lock.images[0].platforms.iter().map(|p| p.platform.to_string()).collect();
    assert_eq!(platforms, ["linux/amd64", "linux/arm64"]);
}

#[test]
fn a_lock_knows_an_image_by_each_of_its_digests() {
    let lock =
        Lock::from_resolved(&pod(), [locked("r.example/b:1", "b"), locked("r.example/a:1", "a")]).unwrap();
    let identity = lock.identity(&Reference::parse("r.example/a:1").unwrap()).unwrap();
    for seen in ["a index", "a linux/arm64 manifest", "a linux/amd64 config"] {
        assert_eq!(identity.compare(&Digest::of(seen.as_bytes())), Sameness::Same, "{seen}");
    }
    assert!(!identity.contains(&Digest::of(b"b index")));
    assert!(lock.identity(&Reference::parse("r.example/c:1").unwrap()).is_none());
}

#[test]
fn an_incomplete_lock_is_none() {
    let error = Lock::from_resolved(&pod(), [locked("r.example/a:1", "a")]).unwrap_err();
    assert_eq!(error, LockError::Incomplete { count: 1, first: "r.example/b:1".to_owned() });
}

#[test]
fn what_is_no_lock_is_refused_with_its_place() {
    for (text, place, message) in [
        ("kind: Lock\n", "1:1", "apiVersion"),
        ("kind: Release\n", "1:7", "kind is not Lock"),
        ("apiVersion: scantling.dev/v9\nkind: Lock\n", "1:13", "is not known"),
        (
            "apiVersion: scantling.dev/v1alpha1\nkind: Lock\nrelease: {name: x}\nimages: []\nmore: 1\n",
            "5:1",
            "unknown field",
        ),
        ("a: [", "1:", ""),
        ("", "1:1", "one document"),
    ] {
        let error = Lock::parse("release.lock", text.as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("release.lock:{place}")) && error.contains(message),
            "{text:?}: {error}"
        );
    }
}

#[test]
fn builds_on_the_cluster_are_locked_by_source_and_base() {
    let release = release("gpu-1.5");
    let images = release.distinct_references().into_iter().map(|reference| locked(reference.written(), "x"));
    let lock = Lock::from_resolved(&release, images.collect::<Vec<_>>()).unwrap();
    let tensorflow = lock.built.iter().find(|build| build.output == "tensorflow:py3.8-cuda-11").unwrap();
    assert_eq!(tensorflow.uri.as_deref(), Some("https://git.example.org/tensorflow-notebook"));
    assert_eq!(tensorflow.git_ref.as_deref(), Some("nb-5"));
    assert_eq!(tensorflow.base.as_deref(), Some("minimal-gpu:py3.8-cuda-11"));
}

#[test]
fn with_locks_the_digests_decide() {
    let release = pod();
    let lock = |content: &str| {
        Lock::from_resolved(&release, [locked("r.example/b:1", content), locked("r.example/a:1", "a")])
            .unwrap()
    };
    let (old, new) = (lock("before"), lock("after"));
    let against =
        |new| Against { lock: Some(new), previous: Some((&release, Some(&old))), ..Against::default() };
    let changed = lines(&check(&release, against(&new)).findings);
    assert_eq!(changed.iter().filter(|line| line.starts_with("SCN0301")).count(), 1, "{changed:?}");
    assert!(changed[0].contains("r.example/b:1 keeps its name and gets new content"), "{changed:?}");
    let same = lines(&check(&release, against(&old)).findings);
    assert!(same.iter().all(|line| !line.starts_with("SCN0301")), "{same:?}");
}

#[test]
fn claims_are_held_against_what_the_lock_found() {
    let text = "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {name: s}\nspec:\n  tags:\n  - name: t\n    from: {kind: DockerImage, name: \"r.example/i:1\"}\n    annotations:\n      opendatahub.io/notebook-python-dependencies: '[{\"name\":\"TensorFlow\",\"version\":\"2.7\"},{\"name\":\"Numpy\",\"version\":\"1.19\"},{\"name\":\"Nothing\",\"version\":\"1\"}]'\n";
    let release = Release::read(&inline(&[("s.yaml", text)]), &Settings::default()).unwrap();
    let mut image = locked("r.example/i:1", "i");
    let package = |name: &str, version: &str| Package {
        ecosystem: Ecosystem::Python,
        name: name.to_owned(),
        version: version.to_owned(),
        path: String::new(),
        layer: 0,
    };
    for platform in &mut image.platforms {
        let packages = vec![package("numpy", "1.19.2"), package("tensorflow", "2.4.1")];
        platform.contents = Some(Contents { packages, ..Contents::default() });
    }
    let lock = Lock::from_resolved(&release, [image]).unwrap();
    let again = Lock::parse("release.lock", lock.to_text().as_bytes()).unwrap();
    assert_eq!(again, lock);
    let shown = lines(&check(&release, Against { lock: Some(&again), ..Against::default() }).findings);
    assert_eq!(
        shown,
        [
            "SCN0501 s.yaml:9:86 s:t claims TensorFlow 2.7, its image holds 2.4.1",
            "SCN0502 s.yaml:9:155 s:t claims Nothing 1, and its image does not show Nothing",
        ]
    );
}

#[test]
fn what_registries_answer_becomes_findings() {
    let release = pod();
    let (a, b) = (Reference::parse("r.example/a:1").unwrap(), Reference::parse("r.example/b:1").unwrap());
    let detail = "r.example answered".to_owned();
    let cases = [
        (Answer::Pullable, None),
        (Answer::Absent { detail: detail.clone() }, Some("SCN0202")),
        (Answer::Refused { verdict: "wrong platform".to_owned(), detail: detail.clone() }, Some("SCN0203")),
        (Answer::Undecided { verdict: "unreachable".to_owned(), detail }, Some("SCN0204")),
    ];
    for (answer, code) in cases {
        let answers = BTreeMap::from([(a.clone(), Answer::Pullable), (b.clone(), answer.clone())]);
        let checked = check(&release, Against { answers: Some(&answers), ..Against::default() });
        let codes: Vec<&str> = checked
            .findings
            .iter()
            .map(|f| f.code.as_str())
            .filter(|code| code.starts_with("SCN02"))
            .collect();
        assert_eq!(codes, code.into_iter().collect::<Vec<_>>(), "{answer:?}");
    }
}

#[test]
fn references_that_the_lock_does_not_hold_are_found_once() {
    let lock =
        Lock::from_resolved(&pod(), [locked("r.example/b:1", "b"), locked("r.example/a:1", "a")]).unwrap();
    let text = POD.replace("r.example/a:1", "r.example/c:1")
        + "---\n"
        + &POD.replace("r.example/a:1", "r.example/c:1");
    let release = Release::read(&inline(&[("pod.yaml", &text)]), &Settings::default()).unwrap();
    let shown = lines(&lock.missing(&release));
    assert_eq!(shown, ["SCN0207 pod.yaml:4:74 r.example/c:1 is not in the lock"]);
}
