//! Registry, environments, components, the operator and the catalogue's images: what the file may say, and what an admin
//! decides.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;

use common::{inline, lines};
use scantling_finding::codes;
use scantling_manifest::Route;
use scantling_release::{Against, Change, Release, Settings, Tree, check, diff};

const HEAD: &str =
    "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: p\nversion: \"2026.1\"\nnamespace: ns\n";
const REST: &str = r#"
requires: ">=0.1.0"
registry: {placeholder: "${REGISTRY}"}
manifests:
- m
- {path: m/extra, component: extra}
components:
- {name: extra, about: More., default: false, offeredFor: nvidia.com/gpu}
- {name: usual, default: true}
operator: {kind: Deployment, name: op}
environments:
- {name: stage, registry: stage.example.com/team}
- {name: production, registries: [registry.example.com]}
catalogue:
  images:
  - name: datascience
    title: Data science
    tags:
    - {name: "2026.1", image: "${REGISTRY}/datascience:2026.1", shows: [Python, pandas], recommended: true}
    - {name: "2025.3", image: "${REGISTRY}/datascience:2025.3", outdated: true}
  - name: cuda
    title: CUDA
    component: extra
    accelerator: nvidia.com/gpu
    tags:
    - {name: "2026.1", image: "${REGISTRY}/cuda:2026.1"}
"#;
const OPERATOR: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: op, namespace: system}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: "${REGISTRY}/operator:2026.1"}]}
"#;
const EXTRA: &str = r#"apiVersion: v1
kind: Pod
metadata: {name: extra}
spec: {containers: [{name: c, image: "${REGISTRY}/extra:2026.1"}]}
"#;

fn tree(rest: &str) -> Tree {
    let text = format!("{HEAD}{rest}");
    inline(&[("release.yaml", text.as_str()), ("m/op.yaml", OPERATOR), ("m/extra/pod.yaml", EXTRA)])
}

fn registry(text: &str) -> Settings {
    Settings { registry: Some(text.to_owned()), ..Settings::default() }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn written(release: &Release) -> Vec<String> {
    release.references.iter().map(|used| used.reference.written().to_owned()).collect()
}

#[test]
fn what_is_not_asked_for_is_not_there() {
    let release = Release::read(&tree(REST), &registry("r.example.com/x")).unwrap();
    assert_eq!(lines(&release.findings), Vec::<String>::new());
    assert_eq!(release.registry.as_deref(), Some("r.example.com/x"));
    assert_eq!(release.selected, names(&["usual"]));
    assert_eq!(release.operator.as_ref().unwrap().to_string(), "Deployment system/op");
    assert_eq!(release.objects.len(), 1);
    assert_eq!(
        written(&release),
        [
            "r.example.com/x/operator:2026.1",
            "r.example.com/x/datascience:2026.1",
            "r.example.com/x/datascience:2025.3"
        ]
    );
    let old = &release.images[1];
    assert_eq!(
        (old.selection().as_str(), old.outdated, old.recommended),
        ("datascience:2025.3", true, false)
    );
    let used = release.references.last().unwrap();
    assert_eq!(used.route, Route::Catalogue("datascience:2025.3".to_owned()));
    assert_eq!(used.place.to_string(), "release.yaml:25:32 .catalogue.images[0].tags[1].image");
}

#[test]
fn what_is_asked_for_is_there() {
    let settings =
        Settings { with: names(&["extra"]), without: names(&["usual"]), ..registry("r.example.com") };
    let release = Release::read(&tree(REST), &settings).unwrap();
    assert_eq!(release.selected, names(&["extra"]));
    assert_eq!(release.objects.len(), 2);
    let cuda = release.images.last().unwrap();
    assert_eq!(
        (cuda.selection().as_str(), cuda.accelerator.as_deref()),
        ("cuda:2026.1", Some("nvidia.com/gpu"))
    );
    assert!(written(&release).contains(&"r.example.com/extra:2026.1".to_owned()));
}

#[test]
fn an_environment_gives_the_registry_and_the_flag_goes_before_it() {
    let stage = Settings { environment: Some("stage".to_owned()), ..Settings::default() };
    let release = Release::read(&tree(REST), &stage).unwrap();
    assert_eq!(release.registry.as_deref(), Some("stage.example.com/team"));
    assert_eq!(release.environments.len(), 1);
    let flag = Settings { registry: Some("r.example.com".to_owned()), ..stage };
    assert_eq!(Release::read(&tree(REST), &flag).unwrap().registry.as_deref(), Some("r.example.com"));
}

#[test]
fn every_wrong_setting_has_place_and_fix() {
    let with = |with: &[&str], without: &[&str]| Settings {
        with: names(with),
        without: names(without),
        ..registry("r.example.com")
    };
    let environment = |name: &str| Settings { environment: Some(name.to_owned()), ..Settings::default() };
    let cases = [
        (
            Settings::default(),
            codes::release::REGISTRY_MISSING,
            "8:26",
            "which registry ${REGISTRY}",
            "one of stage",
        ),
        (environment("production"), codes::release::REGISTRY_MISSING, "8:26", "which registry", "--registry"),
        (
            environment("stag"),
            codes::release::UNKNOWN_SETTING,
            "17:3",
            "has stage, production",
            "did you mean stage?",
        ),
        (registry("https://r.example.com"), codes::release::BAD_REGISTRY, "8:26", "a scheme", "HOST"),
        (registry("team"), codes::release::BAD_REGISTRY, "8:26", "not as a host", "HOST"),
        (
            with(&["extr"], &[]),
            codes::release::UNKNOWN_SETTING,
            "13:3",
            "has extra, usual",
            "did you mean extra?",
        ),
        (with(&["extra"], &["extra"]), codes::release::UNKNOWN_SETTING, "13:3", "both", "one of --with"),
    ];
    for (settings, code, place, message, remedy) in cases {
        let error = Release::read(&tree(REST), &settings).expect_err(message);
        let finding = error.findings.iter().find(|finding| finding.code == code);
        let finding = finding.unwrap_or_else(|| panic!("{settings:?}: {:?}", lines(&error.findings)));
        assert!(finding.place.to_string().starts_with(&format!("release.yaml:{place}")), "{}", finding.place);
        assert!(finding.message.contains(message), "{}", finding.message);
        assert!(finding.remedy.contains(remedy), "{}", finding.remedy);
    }
}

#[test]
fn a_setting_that_reaches_nothing_is_refused_except_by_the_release_before() {
    let plain = inline(&[("pod.yaml", EXTRA)]);
    let old = tree(
        "manifests: [m/op.yaml]\nsubstitutions: [{placeholder: \"${REGISTRY}\", value: q.example.com}]\n",
    );
    let settings = Settings { with: names(&["extra"]), ..registry("r.example.com") };
    for files in [&plain, &old] {
        let error = Release::read(files, &settings).unwrap_err();
        assert!(error.findings.iter().all(|f| f.code == codes::release::UNKNOWN_SETTING), "{error}");
        assert!(Release::read_previous_at("", files, &settings).is_ok());
    }
}

#[test]
fn every_fault_of_the_file_has_its_place() {
    let image = "catalogue:\n  images:\n  - name: a\n    title: A\n    tags:\n";
    let cases = [
        ("requires: \"0.1\"\nmanifests: [m]\n".to_owned(), "6:11", "begins with none"),
        ("requires: \">=7\"\nnew: 1\nmanifests: [m]\n".to_owned(), "6:12", "requires Scantling >=7"),
        ("manifests: [{path: m, componen: x}]\n".to_owned(), "6:23", "unknown field `componen`"),
        ("manifests: [3]\n".to_owned(), "6:13", "a path, or a mapping"),
        ("manifests: [{path: m, component: x}]\n".to_owned(), "6:34", "not declared"),
        ("manifests: [m, ./m/]\n".to_owned(), "6:16", "listed twice"),
        ("manifests: [{path: no-such}]\n".to_owned(), "6:20", "not in the release"),
        ("manifests: [m]\ncomponents: [{name: a}, {name: a}]\n".to_owned(), "7:32", "declared twice"),
        ("manifests: [m]\ncomponents: [{name: A}]\n".to_owned(), "7:21", "is no name"),
        ("manifests: [m]\nregistry: {placeholder: ''}\n".to_owned(), "7:25", "an empty placeholder"),
        ("manifests: [m]\nenvironments: [{name: a}]\n".to_owned(), "7:16", "nothing could be pulled"),
        (
            "manifests: [m]\nenvironments: [{name: a, registry: x.y}]\n".to_owned(),
            "7:36",
            "nothing stands for it",
        ),
        (
            "manifests: [m]\noperator: {kind: Deployment, name: none}\n".to_owned(),
            "7:36",
            "brings no Deployment none",
        ),
        ("manifests: [m]\ncatalogue: {}\n".to_owned(), "7:12", "offers nothing"),
        (format!("manifests: [m]\n{image}    - {{name: x, image: 'a b'}}\n"), "12:25", "a space in it"),
        (format!("manifests: [m]\n{image}    - {{name: X, image: a}}\n"), "12:14", "is no tag"),
        (
            // opendatahub-io/notebooks#373
            format!(
                "manifests: [m]\n{image}    - {{name: x, image: a, recommended: true}}\n    - {{name: z, image: b, recommended: true}}\n"
            ),
            "13:40",
            "a:x is recommended as well",
        ),
        (
            format!(
                "manifests: [m]\n{image}    - {{name: x, image: a, recommended: true, outdated: true}}\n"
            ),
            "12:40",
            "outdated as well",
        ),
        (
            format!("manifests: [m]\n{image}    - {{name: x, image: a}}\n    - {{name: x, image: b}}\n"),
            "13:14",
            "listed twice",
        ),
        (
            format!("manifests: [m]\n{image}    - {{name: x, image: a}}\n  imageStreamLabel: a=b\n"),
            "9:5",
            "one of both",
        ),
    ];
    for (rest, place, message) in cases {
        let error = Release::read(&tree(&rest), &Settings::default()).expect_err(&rest);
        let shown = lines(&error.findings);
        assert!(
            shown
                .iter()
                .any(|line| line.contains(&format!("release.yaml:{place} ")) && line.contains(message)),
            "{rest}\nwanted {place} {message}, got {shown:?}"
        );
    }
}

#[test]
fn the_catalogue_is_compared_by_what_people_choose() {
    let old = Release::read(&tree(REST), &registry("r.example.com")).unwrap();
    let moved = REST.replace("datascience:2026.1\", shows", "datascience:2026.1-2\", shows");
    let new = Release::read(&tree(&moved), &registry("r.example.com")).unwrap();
    let changes = diff((&old, None), (&new, None));
    let same: Vec<String> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Moved { name, changed, .. } => Some(format!("{name}: {}", changed.first()?.text())),
            _ => None,
        })
        .collect();
    assert_eq!(same, ["ns/datascience:2026.1: imported from :2026.1 → :2026.1-2"]);
    let unused = REST.replace("${REGISTRY}/", "q.example.com/");
    let files = inline(&[
        ("release.yaml", format!("{HEAD}{unused}").as_str()),
        ("m/op.yaml", &OPERATOR.replace("${REGISTRY}", "q.example.com")),
        ("m/extra/pod.yaml", "# nothing\n"),
    ]);
    let release = Release::read(&files, &registry("r.example.com")).unwrap();
    assert!(
        check(&release, Against::default())
            .findings
            .iter()
            .any(|f| f.code == codes::release::SUBSTITUTION_UNUSED && f.place.to_string().contains(":8:26")),
        "{:?}",
        lines(&release.findings)
    );
}
