//! Names that keep their tag and get new content, and how they should have been renamed: the shape of the first incident.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{inline, lines, real_inputs, release, tree};
use scantling_finding::{Finding, Severity};
use scantling_release::{Against, Change, Release, Settings, change_findings, check, diff};

fn between(old: &Release, new: &Release) -> Vec<Finding> {
    change_findings(&diff((old, None), (new, None)))
}

fn related(finding: &Finding) -> Vec<&str> {
    finding.related.iter().map(|(_, what)| what.as_str()).collect()
}

#[test]
fn every_changed_thing_behind_a_kept_name_is_named() {
    let findings = between(&release("gpu-1.3"), &release("gpu-1.5"));
    let errors: Vec<&Finding> = findings.iter().filter(|f| f.severity == Severity::Error).collect();
    let messages: Vec<&str> = errors.iter().map(|f| f.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "minimal-gpu:py3.8-cuda-11 keeps its name and gets new content",
            "plain-gpu:py3.8-cuda-11 keeps its name and gets new content",
            "pytorch:py3.8-cuda-11 keeps its name and gets new content",
            "tensorflow:py3.8-cuda-11 keeps its name and gets new content",
        ]
    );
    assert_eq!(related(errors[0]), ["git ref nb-2 → nb-6", "JupyterLab 3.0.16 → 3.2.4"]);
    assert_eq!(
        related(errors[3]),
        [
            "minimal-gpu:py3.8-cuda-11 changes too",
            "git ref nb-4 → nb-5",
            "TensorFlow 2.4.1 → 2.7",
            "Tensorboard 2.4.1 → 2.6"
        ]
    );
    // PyTorch is claimed as 1.8.1 and then as 1.8: less exact, not different.
    assert_eq!(related(errors[2]), ["minimal-gpu:py3.8-cuda-11 changes too", "git ref nb-3 → nb-4"]);
}

#[test]
fn a_changed_base_changes_what_is_built_upon_it() {
    let findings = between(&release("gpu-1.3"), &release("gpu-1.5"));
    let plain = findings.iter().find(|f| f.message.starts_with("plain-gpu")).unwrap();
    assert_eq!(related(plain), ["minimal-gpu:py3.8-cuda-11 changes too"]);
    assert!(plain.cause.starts_with("it is built upon minimal-gpu:py3.8-cuda-11"), "{}", plain.cause);
    assert!(plain.remedy.contains("py3.8-cuda-11-1"), "{}", plain.remedy);
}

#[test]
fn a_new_tag_is_right_and_what_remains_is_said() {
    let findings = between(&release("gpu-1.5"), &release("gpu-1.6"));
    assert_eq!(
        lines(&findings),
        [
            "SCN0302 gpu-1.6/manifests.yaml:78:14 pytorch moves from tag py3.8-cuda-11 to py3.8-cuda-11-1",
            "SCN0302 gpu-1.6/manifests.yaml:61:14 tensorflow moves from tag py3.8-cuda-11 to py3.8-cuda-11-1",
            "SCN0304 - 4 names stay, and so does what is declared about them",
        ]
    );
    assert!(findings.iter().all(|f| f.severity == Severity::Note));
    assert_eq!(
        related(&findings[2]),
        ["cuda:latest", "cuda-py38:latest", "minimal-gpu:py3.8-cuda-11", "plain-gpu:py3.8-cuda-11"]
    );
}

#[test]
fn a_release_does_not_differ_from_itself() {
    for name in ["gpu-1.3", "gpu-1.5", "gpu-1.6"] {
        let findings = between(&release(name), &release(name));
        assert!(findings.iter().all(|f| f.code.as_str() == "SCN0304"), "{:?}", lines(&findings));
    }
}

fn stream(tags: &str) -> Release {
    let text = format!(
        "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {{name: s}}\nspec:\n  tags:\n{tags}"
    );
    Release::read(&inline(&[("s.yaml", &text)]), &Settings::default()).unwrap()
}

fn tag(name: &str, digit: &str) -> String {
    format!(
        "  - {{name: \"{name}\", from: {{kind: DockerImage, name: \"r.example/i@sha256:{}\"}}}}\n",
        digit.repeat(64)
    )
}

#[test]
fn tags_that_are_imported_by_digest_are_compared_by_digest() {
    let cases: &[(&str, String, String, &[&str])] = &[
        ("same", tag("a", "1"), tag("a", "1"), &[]),
        ("moved", tag("a", "1"), tag("a", "2"), &["SCN0301"]),
        ("renamed", tag("a", "1"), tag("b", "2"), &["SCN0302"]),
        ("one more", tag("a", "1"), tag("a", "1") + &tag("b", "2"), &[]),
        ("rolled on", tag("a", "1") + &tag("b", "2"), tag("b", "2") + &tag("c", "3"), &["SCN0302"]),
        ("gone", tag("a", "1") + &tag("b", "2"), tag("b", "2"), &["SCN0305"]),
    ];
    for (what, old, new, wanted) in cases {
        let findings = between(&stream(old), &stream(new));
        let codes: Vec<&str> = findings.iter().map(|f| f.code.as_str()).collect();
        assert_eq!(codes, *wanted, "{what}: {:?}", lines(&findings));
    }
}

#[test]
fn builds_upon_each_other_in_a_circle_end() {
    let build = |name: &str, base: &str, git: &str| {
        format!(
            "---\napiVersion: build.openshift.io/v1\nkind: BuildConfig\nmetadata: {{name: {name}}}\nspec:\n  output: {{to: {{kind: ImageStreamTag, name: \"{name}:t\"}}}}\n  source: {{git: {{uri: u, ref: {git}}}}}\n  strategy: {{dockerStrategy: {{from: {{kind: ImageStreamTag, name: \"{base}:t\"}}}}}}\n"
        )
    };
    let read = |git: &str| {
        let text = build("a", "b", git) + &build("b", "a", "x");
        Release::read(&inline(&[("b.yaml", &text)]), &Settings::default()).unwrap()
    };
    let changes = diff((&read("old"), None), (&read("new"), None));
    assert_eq!(changes.len(), 2);
    assert!(changes.iter().all(|change| matches!(change, Change::SameName { .. })), "{changes:?}");
}

#[test]
fn published_manifests_of_1_3_1_5_and_1_6() {
    let Some(root) = real_inputs() else { return };
    let read = |version: &str| {
        let path =
            format!("red-hat-data-services/odh-deployer@{version}/jupyterhub/cuda-11.0.3/manifests.yaml");
        Release::read(&tree(&root.join(path)), &Settings::default()).unwrap()
    };
    let (old, stale, renamed) = (read("v1.3.0-6"), read("v1.5.0-7"), read("v1.6.0-8"));
    let checked = check(&stale, Against { previous: Some((&old, None)), ..Against::default() });
    let named: Vec<String> =
        lines(&checked.findings).into_iter().filter(|line| line.starts_with("SCN0301")).collect();
    assert_eq!(
        named,
        [
            "SCN0301 manifests.yaml:97:14 minimal-gpu:py3.8-cuda-11.0.3 keeps its name and gets new content",
            "SCN0301 manifests.yaml:121:14 tensorflow:py3.8-cuda-11.0.3 keeps its name and gets new content",
            "SCN0301 manifests.yaml:145:14 pytorch:py3.8-cuda-11.0.3 keeps its name and gets new content",
        ]
    );
    let of = |name: &str| checked.findings.iter().find(|f| f.message.starts_with(name)).unwrap();
    let tensorflow = related(of("tensorflow:"));
    for wanted in ["git ref nb-4 → nb-5", "TensorFlow 2.4.1 → 2.7", "Tensorboard 2.4.1 → 2.6"] {
        assert!(tensorflow.contains(&wanted), "{wanted}: {tensorflow:?}");
    }
    assert!(related(of("minimal-gpu:")).contains(&"JupyterLab 3.0.16 → 3.2.4"));
    assert!(related(of("pytorch:")).contains(&"git ref nb-3 → nb-4"));

    let after = between(&stale, &renamed);
    let messages: Vec<&str> = after.iter().map(|f| f.message.as_str()).collect();
    assert!(
        messages.contains(&"tensorflow moves from tag py3.8-cuda-11.0.3 to py3.8-cuda-11.0.3-1"),
        "{messages:?}"
    );
    assert!(
        messages.contains(&"pytorch moves from tag py3.8-cuda-11.0.3 to py3.8-cuda-11.0.3-1"),
        "{messages:?}"
    );
    let kept = after.iter().find(|f| f.code.as_str() == "SCN0304").unwrap();
    assert!(related(kept).contains(&"minimal-gpu:py3.8-cuda-11.0.3"), "{:?}", related(kept));
    assert!(related(kept).contains(&"nvidia-cuda-11.0.3:latest"), "{:?}", related(kept));
    assert!(after.iter().all(|f| f.severity == Severity::Note), "{:?}", lines(&after));
}
