//! What `release.yaml` may say, and how it is told that it may not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{inline, lines, release};
use scantling_api::ObjectKey;
use scantling_release::{Release, Rule, Settings, Tree, Wave};

const HEAD: &str = "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: p\nversion: 1.5.0-7\n";
const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\n";

fn with(release_file: &str) -> Tree {
    inline(&[("release.yaml", release_file), ("m/c.yaml", OBJECT)])
}

#[test]
fn a_whole_release_is_read() {
    let release = release("platform");
    assert_eq!(release.title(), "platform 1.21.0-20");
    assert_eq!(release.follows.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1.20.1-5"]);
    let keys: Vec<String> = release.objects.iter().map(|object| object.key.to_string()).collect();
    assert_eq!(
        keys,
        [
            "Secret applications/model-serving-etcd",
            "Secret applications/etcd-passwords",
            "ConfigMap applications/runtimes"
        ]
    );
    let config = &release.objects[2];
    assert_eq!(config.wave, Wave::Configuration);
    assert_eq!(
        config.place.to_string(),
        "platform/manifests/runtimes.yaml:1:7 ConfigMap applications/runtimes"
    );
    assert_eq!(config.value["metadata"]["namespace"], "applications");
    let text = config.value["data"]["default-config"].as_str().unwrap();
    assert!(text.contains("image: registry.example.org/serving/runtime@sha256:"), "{text}");
    let key = ObjectKey::namespaced("", "ConfigMap", "applications", "runtimes");
    assert_eq!(release.ownership.rule(&key, ".data[\"override-config\"]").unwrap(), Rule::Keep);
    assert_eq!(release.ownership.rule(&key, ".data[\"default-config\"]").unwrap(), Rule::Take);
    assert_eq!(release.generated.len(), 2);
}

#[test]
fn every_fault_of_a_release_file_has_its_place() {
    let cases = [
        ("name: p\n", "1:1", "apiVersion is missing"),
        (
            "apiVersion: scantling.dev/v2\nkind: Release\n",
            "1:13",
            "apiVersion must be scantling.dev/v1alpha1",
        ),
        (&format!("{HEAD}manifest: [m]\n"), "5:1", "unknown field `manifest`"),
        (&format!("{HEAD}manifests: [m]\nfollows: [\"1.6.0\"]\n"), "6:12", "not older"),
        (&format!("{HEAD}manifests: [m, ../x]\n"), "5:16", "leads out of the release"),
        (&format!("{HEAD}manifests: []\n"), "5:12", "nothing to apply"),
        (&format!("{HEAD}manifests: [nothing]\n"), "5:13", "nothing is not in the release"),
        (&format!("{HEAD}manifests: m\n"), "5:12", "invalid type"),
        (&format!("{HEAD}manifests: [m]\nversion2: 1\n"), "6:1", "unknown field"),
        (&HEAD.replace("1.5.0-7", "v1.5"), "4:10", "a leading v"),
        (&HEAD.replace("name: p", "name: P x"), "1:1", "missing field `manifests`"),
        (&format!("{}manifests: [m]\n", HEAD.replace("name: p", "name: P x")), "3:7", "is no name"),
        (
            &format!("{HEAD}manifests: [m]\nsubstitutions: [{{placeholder: <x>, value: ''}}]\n"),
            "6:43",
            "by nothing",
        ),
        (
            &format!("{HEAD}manifests: [m]\ngenerated: [{{kind: Secret, name: a, key: k, length: 3}}]\n"),
            "6:53",
            "3 characters",
        ),
        (
            &format!(
                "{HEAD}manifests: [m]\nownership:\n- {{kind: ConfigMap, name: c, field: data, rule: keep}}\n"
            ),
            "7:37",
            "a name without a leading dot",
        ),
        (
            &format!(
                "{HEAD}manifests: [m]\nownership:\n- {{kind: ConfigMap, name: c, field: .data, rule: kep}}\n"
            ),
            "7:50",
            "unknown variant `kep`",
        ),
        (&format!("{HEAD}manifests: [m]\ncatalogue: {{imageStreamLabel: x}}\n"), "6:31", "key=value"),
        (&format!("{HEAD}manifests: [m]\nname: q\n"), "6:1", "given twice"),
        (&format!("{HEAD}manifests: [m\n"), "6:1", ""),
        ("", "1:1", "exactly one document"),
        (&format!("{HEAD}manifests: [m]\n---\n{HEAD}"), "1:1", "exactly one document"),
    ];
    for (text, place, message) in cases {
        let error = Release::read(&with(text), &Settings::default()).expect_err(text);
        let shown = lines(&error.findings);
        assert!(
            shown
                .iter()
                .any(|line| line.contains(&format!("release.yaml:{place} ")) && line.contains(message)),
            "{text}\nwanted {place} {message}, got {shown:?}"
        );
    }
}

#[test]
fn a_misspelt_field_is_met_with_the_right_one() {
    let error = Release::read(&with(&format!("{HEAD}manifest: [m]\n")), &Settings::default()).unwrap_err();
    assert!(error.findings[0].remedy.contains("manifests"), "{}", error.findings[0].remedy);
    assert!(error.to_string().starts_with("release.yaml:5:1"), "{error}");
}

#[test]
fn every_broken_manifest_is_reported() {
    let tree = inline(&[
        ("release.yaml", &format!("{HEAD}manifests: [m]\n")),
        ("m/a.yaml", "a: [1\n"),
        ("m/b.yaml", "a: 1\na: 2\n"),
        ("m/c.yaml", OBJECT),
    ]);
    let error = Release::read(&tree, &Settings::default()).unwrap_err();
    let codes: Vec<&str> = error.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["SCN0601", "SCN0602"]);
    assert_eq!(error.findings[1].related[0].0.to_string(), "m/b.yaml:1:1");
}

#[test]
fn objects_are_checked_when_there_is_a_release_file() {
    let cases = [
        ("just: data\n", "SCN0702"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", "SCN0702"),
        (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: x}\n",
            "SCN0702",
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n", "SCN0704"),
        ("apiVersion: shop.example/v1\nkind: Basket\nmetadata: {name: d}\n", "SCN0705"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\n", "SCN0703"),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData: {k: <k_value>}\n",
            "SCN0102",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s, namespace: ns}\ndata: {k: \"${K:-}\"}\n",
            "SCN0706",
        ),
    ];
    for (text, code) in cases {
        let tree = inline(&[
            ("release.yaml", &format!("{HEAD}manifests: [m]\n")),
            ("m/c.yaml", OBJECT),
            ("m/d.yaml", text),
        ]);
        let release = Release::read(&tree, &Settings::default()).unwrap();
        let codes: Vec<&str> = release.findings.iter().map(|finding| finding.code.as_str()).collect();
        assert!(codes.contains(&code), "{text}: {:?}", lines(&release.findings));
    }
}

#[test]
fn cluster_kinds_and_defined_kinds_get_no_namespace_when_they_have_none() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: plans.shop.example}\nspec: {group: shop.example, scope: Cluster, names: {kind: Plan, plural: plans}}\n---\napiVersion: shop.example/v1\nkind: Plan\nmetadata: {name: p}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa}\n";
    let tree =
        inline(&[("release.yaml", &format!("{HEAD}namespace: apps\nmanifests: [m]\n")), ("m/c.yaml", crd)]);
    let release = Release::read(&tree, &Settings::default()).unwrap();
    let shown: Vec<String> =
        release.objects.iter().map(|object| format!("{} {}", object.wave, object.key)).collect();
    assert_eq!(
        shown,
        [
            "definitions CustomResourceDefinition plans.shop.example",
            "namespaces Namespace apps",
            "access ServiceAccount apps/sa",
            "resources Plan p",
        ]
    );
    assert!(release.findings.is_empty(), "{:?}", lines(&release.findings));
}

#[test]
fn a_plain_folder_is_a_release_without_rules() {
    let tree = inline(&[
        ("a.yaml", "just: data\n"),
        ("b/c.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"),
    ]);
    let release = Release::read_at("some/folder", &tree, &Settings::default()).unwrap();
    assert_eq!(release.version, None);
    assert_eq!(release.objects.len(), 1);
    assert_eq!(release.objects[0].place.file.as_ref().unwrap().path, "some/folder/b/c.yaml");
    assert_eq!(release.objects[0].key.namespace, None);
}

#[test]
fn claims_are_read_with_their_places() {
    let release = release("gpu-1.5");
    let tag = release.streams.iter().find(|tag| tag.name.short() == "tensorflow:py3.8-cuda-11").unwrap();
    let claims: Vec<String> = tag
        .claims
        .iter()
        .map(|claim| {
            let place = claim.place.file.as_ref().unwrap();
            format!("{}:{} {} {}", place.line, place.column, claim.claim.name, claim.claim.version)
        })
        .collect();
    assert_eq!(
        claims,
        [
            "63:73 Python v3.8",
            "63:112 TensorFlow 2.7",
            "64:88 TensorFlow 2.7",
            "64:127 Tensorboard 2.6",
            "64:160 Numpy 1.19"
        ]
    );
}

#[test]
fn a_claim_that_is_no_list_is_a_finding() {
    for (claim, reason) in [
        ("'[{\"name\":\"Python\"}]'", "Python has no version"),
        ("'{\"name\":\"Python\"}'", "not a JSON list"),
        ("'[{'", "cannot be read"),
        ("3", "not a string"),
    ] {
        let text = format!(
            "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {{name: s}}\nspec:\n  tags:\n  - name: t\n    annotations:\n      opendatahub.io/notebook-software: {claim}\n"
        );
        let release = Release::read(&inline(&[("s.yaml", &text)]), &Settings::default()).unwrap();
        let shown = lines(&release.findings);
        assert!(
            shown.iter().any(|line| line.starts_with("SCN0503 s.yaml:8:") && line.contains(reason)),
            "{claim}: {shown:?}"
        );
    }
}

#[test]
fn an_object_that_no_cluster_takes_is_found_before_one_is_asked() {
    let large = format!("{OBJECT}data: {{a: {}, b: {}}}\n", "x".repeat(700_000), "y".repeat(700_000));
    let thing = |size: usize| {
        let text = "x".repeat(size);
        format!(
            "apiVersion: example.com/v1\nkind: Thing\nmetadata: {{name: t, namespace: ns}}\nspec: {{text: {text}}}\n"
        )
    };
    for (file, expected) in [
        (OBJECT.replace("name: c", "name: X_Y"), "2:7 \"X_Y\" is no name of a ConfigMap"),
        (OBJECT.replace("name: c", "name: ../../evil"), "2:7 \"../../evil\" is no name of a ConfigMap"),
        (OBJECT.replace("name: c", "name: \"a\\u202eb\""), "2:7 \"a\\u{202e}b\" is no name of a ConfigMap"),
        (OBJECT.replace("namespace: ns", "namespace: Ns"), "2:7 \"Ns\" is no name of a namespace"),
        (large, "2:7 the values have 1400000 bytes"),
        (thing(1_600_000), "2:7 the object has 1600"),
        (thing(1_500_000), ""),
        (OBJECT.to_owned(), ""),
    ] {
        let head = format!("{HEAD}manifests: [m]\n");
        let tree = inline(&[("release.yaml", &head), ("m/c.yaml", &file)]);
        let release = Release::read(&tree, &Settings::default()).unwrap();
        let found: Vec<String> =
            lines(&release.findings).into_iter().filter(|line| line.starts_with("SCN0714")).collect();
        match found.as_slice() {
            [line] => assert!(!expected.is_empty() && line.contains(expected), "{line}"),
            lines => assert!(expected.is_empty() && lines.is_empty(), "{expected}: {lines:?}"),
        }
    }
}
