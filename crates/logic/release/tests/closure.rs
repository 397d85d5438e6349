//! Whether everything that a release can ask for has been published: the shape of the second incident.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;

use common::{data, inline, lines, real_inputs, release, tree};
use scantling_finding::Finding;
use scantling_release::{Against, PublishedList, Release, Settings, check};

fn list(complete: bool) -> PublishedList {
    let text = fs::read_to_string(data("serving/published.txt")).unwrap();
    let text = if complete { format!("# complete: the shop, 2023-01-12\n{text}") } else { text };
    let (list, findings) = PublishedList::parse("published.txt", &text);
    assert!(findings.is_empty(), "{findings:?}");
    list
}

fn against(release: &Release, list: &PublishedList) -> Vec<Finding> {
    check(release, Against { published: Some(list), ..Against::default() }).findings
}

#[test]
fn a_digest_in_a_nested_document_is_held_against_the_list() {
    let findings = against(&release("serving"), &list(false));
    let shown = lines(&findings);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(
        shown[0]
            .starts_with("SCN0201 serving/runtimes.yaml:17:13 registry.example.org/serving/runtime@sha256:"),
        "{shown:?}"
    );
    assert!(shown[0].ends_with("is not in published.txt"), "{shown:?}");
    assert!(findings[0].cause.contains("does not declare itself complete"), "{}", findings[0].cause);
    assert!(
        findings[0].cause.contains("2 images of registry.example.org/serving/runtime"),
        "{}",
        findings[0].cause
    );
}

#[test]
fn never_published_is_said_only_of_a_complete_list() {
    let findings = against(&release("serving"), &list(true));
    let shown = lines(&findings);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].starts_with("SCN0202 ") && shown[0].ends_with("was never published"), "{shown:?}");
    assert!(findings[0].cause.contains("the shop, 2023-01-12"), "{}", findings[0].cause);
}

#[test]
fn a_declared_fallback_is_named_with_its_condition() {
    let findings = against(&release("platform"), &list(true));
    let shown = lines(&findings);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(
        shown[0].starts_with(
            "SCN0401 platform/dashboard/const.ts:8:12 fallback registry.example.org/serving/runtime@sha256:"
        ),
        "{shown:?}"
    );
    let cause = &findings[0].cause;
    assert!(
        cause.starts_with("it becomes live when ConfigMap runtimes is absent or has no key `default-config`"),
        "{cause}"
    );
    assert!(
        cause.contains("a fresh installation has the key (platform/manifests/runtimes.yaml:1:7)"),
        "{cause}"
    );
}

#[test]
fn an_undeclared_fallback_is_a_finding_of_its_own() {
    let mut files = tree(&data("platform"));
    let text = String::from_utf8(files["release.yaml"].clone()).unwrap();
    let (before, after) = (text.find("fallbacks:").unwrap(), text.find("generated:").unwrap());
    let text = format!("{}{}", &text[..before], &text[after..]);
    files.insert("release.yaml".to_owned(), text.into_bytes());
    let release = Release::read(&files, &Settings::default()).unwrap();
    let shown = lines(&against(&release, &list(false)));
    assert_eq!(
        shown.iter().filter(|line| line.starts_with("SCN0201 dashboard/const.ts:8:12")).count(),
        1,
        "{shown:?}"
    );
    assert_eq!(
        shown.iter().filter(|line| line.starts_with("SCN0402 dashboard/const.ts:8:12")).count(),
        1,
        "{shown:?}"
    );
}

#[test]
fn placeholders_are_filled_or_found() {
    let mut files = tree(&data("platform"));
    let text = String::from_utf8(files["release.yaml"].clone()).unwrap();
    let whole = release("platform");
    assert!(whole.findings.is_empty(), "{:?}", lines(&whole.findings));
    files.insert("release.yaml".to_owned(), text.replace("<runtime_image>", "<other_image>").into_bytes());
    let shown = lines(&Release::read(&files, &Settings::default()).unwrap().findings);
    assert!(shown.iter().any(|line| line.starts_with("SCN0102 manifests/runtimes.yaml:12:18")), "{shown:?}");
    assert!(shown.iter().any(|line| line.starts_with("SCN0707 release.yaml:21:20")), "{shown:?}");
}

#[test]
fn tags_and_foreign_registries_are_found() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ns}\nspec: {containers: [{name: c, image: \"other.example/b:1\"}, {name: d, image: \"r.example/a\"}]}\n";
    let file = "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: p\nversion: 1.0.0\nmanifests: [m]\nenvironments: [{name: production, registries: [r.example]}]\n";
    let release =
        Release::read(&inline(&[("release.yaml", file), ("m/pod.yaml", pod)]), &Settings::default()).unwrap();
    let shown = lines(&check(&release, Against::default()).findings);
    let wanted = [
        "SCN0205 m/pod.yaml:4:39 other.example/b:1 is outside the registries of environment production",
        "SCN0303 m/pod.yaml:4:39 other.example/b:1 can lead to another image at any time",
        "SCN0303 m/pod.yaml:4:78 r.example/a has no tag and no digest, which means :latest",
    ];
    assert_eq!(shown, wanted);
}

#[test]
fn a_release_follows_only_what_it_names() {
    let read = |name: &str, version: &str, follows: &str| {
        let file = format!(
            "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: {name}\nversion: {version}\nfollows: {follows}\nmanifests: [m]\n"
        );
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\n";
        Release::read(&inline(&[("release.yaml", &file), ("m/c.yaml", object)]), &Settings::default())
            .unwrap()
    };
    let old = read("shop", "1.3.0-6", "[]");
    let cases = [
        (read("shop", "1.5.0-7", "[1.3.0-6]"), None),
        (read("shop", "1.5.0-7", "[1.4.0-1]"), Some("shop 1.5.0-7 was not made to follow 1.3.0-6")),
        (read("shop", "1.5.0-7", "[]"), Some("shop 1.5.0-7 was not made to follow 1.3.0-6")),
        (read("other", "1.5.0-7", "[1.3.0-6]"), Some("other is another platform than shop")),
    ];
    for (new, message) in cases {
        let checked = check(&new, Against { previous: Some((&old, None)), ..Against::default() });
        let messages: Vec<&str> = checked.findings.iter().map(|f| f.message.as_str()).collect();
        assert_eq!(messages, message.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_fallback_that_is_declared_for_nothing_is_found() {
    let mut files = tree(&data("platform"));
    files.insert("dashboard/const.ts".to_owned(), b"export const NOTHING = 1;\n".to_vec());
    let shown = lines(&Release::read(&files, &Settings::default()).unwrap().findings);
    assert_eq!(
        shown,
        ["SCN0403 release.yaml:3:7 dashboard/const.ts is declared as a fallback and holds no reference"]
    );
}

#[test]
fn lists_are_read_line_by_line() {
    let digest = "1".repeat(64);
    let (list, findings) = PublishedList::parse(
        "l",
        &format!("# complete: \n\nr.example/a@sha256:{digest}  # first\nr.example/a:1\nnot a reference\n"),
    );
    assert_eq!(list.len(), 2);
    assert_eq!(list.complete, None);
    assert_eq!(
        lines(&findings).iter().map(|line| &line[..12]).collect::<Vec<_>>(),
        ["SCN0206 l:5:", "SCN0206 l:1:"]
    );
}

#[test]
fn the_published_digest_of_1_21_is_not_in_the_published_list() {
    let Some(root) = real_inputs() else { return };
    let folder = root.join("red-hat-data-services");
    let path = folder.join("odh-dashboard@v1.21.0-20/manifests/modelserving/servingruntimes-config.yaml");
    let text =
        fs::read_to_string(folder.join("RHOAI-Build-Config/derived/all-published-images.txt")).unwrap();
    let (list, findings) = PublishedList::parse("all-published-images.txt", &text);
    assert!(findings.is_empty(), "{:?}", lines(&findings));
    let release = Release::read(&tree(&path), &Settings::default()).unwrap();
    assert_eq!(
        lines(&against(&release, &list)),
        [
            "SCN0201 servingruntimes-config.yaml:35:13 registry.redhat.io/rhods/odh-openvino-servingruntime-rhel8@sha256:7ef272bc7be866257b8126620e139d6e915ee962304d3eceba9c9d50d4e79767 is not in all-published-images.txt"
        ]
    );
    let catalogue = folder.join("RHOAI-Build-Config/derived/catalog-slice-1.20-1.26.yaml");
    let published = Release::read(&tree(&catalogue), &Settings::default()).unwrap();
    assert!(published.distinct_references().len() > 50);
    let shown = lines(&against(&published, &list));
    assert!(shown.iter().all(|line| !line.starts_with("SCN02") && !line.starts_with("SCN04")), "{shown:?}");
}

fn of(files: &[(&str, &str)]) -> Release {
    Release::read(&inline(files), &Settings::default()).unwrap()
}

/// 2i2c-org/infrastructure#3801: tags that look as if they never moved are trusted like digests.
#[test]
fn only_a_digest_is_for_ever() {
    let digest = format!("sha256:{}", "65fd89cd".repeat(8));
    let names = [":4.3.3", ":4.3.3-20240314", ":latest", &format!("@{digest}"), &format!(":4.3.3@{digest}")];
    let mut containers = String::new();
    for (number, name) in names.iter().enumerate() {
        let container = format!("  - {{name: c{number}, image: 'registry.example.com/hub/rstudio{name}'}}\n");
        containers.push_str(&container);
    }
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: n}}\nspec:\n  containers:\n{containers}"
    );
    let findings = check(&of(&[("pod.yaml", &pod)]), Against::default()).findings;
    let of_tags: Vec<&Finding> = findings.iter().filter(|f| f.code.as_str() == "SCN0303").collect();
    let lines: Vec<u32> = of_tags.iter().map(|f| f.place.file.as_ref().unwrap().line).collect();
    assert_eq!(lines, [6, 7, 8], "{:?}", crate::lines(&findings));
}

/// operator-framework/operator-registry#292: the index of a catalogue is given by a tag, and nobody sees an image in it.
#[test]
fn the_index_of_a_catalogue_is_by_digest_too() {
    let source = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: c, namespace: n}\nspec: {sourceType: grpc, image: 'registry.example.com/lab/catalog-index:v1.0.0'}\n";
    let findings = check(&of(&[("source.yaml", source)]), Against::default()).findings;
    let of_tags = findings.iter().filter(|f| f.code.as_str() == "SCN0303").count();
    assert_eq!(of_tags, 1, "{:?}", lines(&findings));
}
