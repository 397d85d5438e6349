//! Edits in place: the bytes of the reference and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use scantling_image::Reference;
use scantling_manifest::{Candidate, Options, RewriteError, discover, listings, rewrite};

const HEX: &str = "48d571da8f5d4b128badeacf52cd95ff63d2d4ce6d8ec84af90be364cd85ca7a";
const OLD: &str = "7dd5aa540ddce2e323e2209cb9f50cf4948cb79f17eed96b7bbc33b31a0eca5d";

fn look(path: &str, text: &str) -> Vec<Candidate> {
    discover(&BTreeMap::from([(path.to_owned(), text.as_bytes().to_vec())]), &Options::default()).candidates
}

/// Rewrites every reference of a text.
fn all(path: &str, text: &str, new: &str) -> Result<String, RewriteError> {
    let found = look(path, text);
    let new = Reference::parse(new).unwrap();
    let edits: Vec<(&Candidate, &Reference)> = found
        .iter()
        .filter(|candidate| candidate.reference().is_some())
        .map(|candidate| (candidate, &new))
        .collect();
    rewrite(text, &edits)
}

#[test]
fn comments_order_and_quotes_stay() {
    let text = "# head\nspec:\n  containers:\n  - image: 'quay.io/a/b:1' # why\n    name: x\n  - {name: y, image: quay.io/a/b:1}\n";
    let new = format!("quay.io/a/b@sha256:{HEX}");
    assert_eq!(all("a.yaml", text, &new).unwrap(), text.replace("quay.io/a/b:1", &new));
    let text = "A=1\nOVMS_IMAGE=\"quay.io/a/b:1\"\n";
    assert_eq!(all("a.env", text, &new).unwrap(), text.replace("quay.io/a/b:1", &new));
}

#[test]
fn the_fields_of_a_joined_reference_are_written_each() {
    let text = format!("images:\n- name: x # one\n  newName: quay.io/a/b\n  digest: sha256:{OLD}\n");
    let edited = all("kustomization.yaml", &text, &format!("registry.example.com/c@sha256:{HEX}")).unwrap();
    assert_eq!(edited, text.replace("quay.io/a/b", "registry.example.com/c").replace(OLD, HEX));

    let text = "image:\n  registry: quay.io\n  repository: a/b\n  tag: 1.10\n";
    let edited = all("values.yaml", text, "registry.example.com/a/c:1.20").unwrap();
    assert_eq!(edited, "image:\n  registry: registry.example.com\n  repository: a/c\n  tag: \"1.20\"\n");

    let error = all("values.yaml", text, &format!("quay.io/a/b@sha256:{HEX}")).unwrap_err();
    assert!(matches!(error, RewriteError::NoField { missing: "digest", .. }), "{error}");
    let text = format!("image: {{repository: quay.io/a/b, tag: v1, digest: 'sha256:{OLD}'}}\n");
    let error = all("values.yaml", &text, "quay.io/a/b:v2").unwrap_err();
    assert!(matches!(error, RewriteError::NoField { .. }), "{error}");
}

#[test]
fn aliases_are_written_once() {
    let text = "a: {image: &i quay.io/a/b:1}\nb: {image: *i}\n";
    assert_eq!(all("a.yaml", text, "quay.io/a/b:2").unwrap(), text.replace(":1", ":2"));
    let found = look("a.yaml", text);
    let (two, three) =
        (Reference::parse("quay.io/a/b:2").unwrap(), Reference::parse("quay.io/a/b:3").unwrap());
    let error = rewrite(text, &[(&found[0], &two), (&found[1], &three)]).unwrap_err();
    assert!(matches!(error, RewriteError::Conflict { .. }), "{error}");
}

#[test]
fn another_text_is_refused() {
    let found = look("a.yaml", "image: quay.io/a/b:1\n");
    let new = Reference::parse("quay.io/a/b:2").unwrap();
    let error = rewrite("image: quay.io/a/c:1\n", &[(&found[0], &new)]).unwrap_err();
    assert!(matches!(error, RewriteError::OtherText { .. }), "{error}");
    let found = look("a.yaml", "image: $(x)\n");
    let error = rewrite("image: $(x)\n", &[(&found[0], &new)]).unwrap_err();
    assert!(matches!(error, RewriteError::NoReference { .. }), "{error}");
}

/// redhat-openshift-ecosystem/certified-operators#1514: images that a bundle uses and does not list.
#[test]
fn a_bundle_is_held_against_its_list() {
    let used = format!("registry.example.com/lab/op@sha256:{OLD}");
    let text = format!(
        "kind: ClusterServiceVersion\nmetadata: {{name: lab.v1, annotations: {{containerImage: 'registry.example.com/lab/op:9'}}}}\nspec:\n  \
         relatedImages:\n  - {{name: op, image: '{used}'}}\n  - {{name: old, image: 'registry.example.com/lab/old@sha256:{HEX}'}}\n  install: \
         {{spec: {{deployments: [{{spec: {{template: {{spec: {{containers: [{{name: m, image: '{used}', env: [{{name: RELATED_IMAGE_S, value: \
         'registry.example.com/lab/side@sha256:{HEX}'}}, {{name: RELATED_IMAGE_D, value: 'registry.example.com/lab/daemon:2.1'}}]}}]}}}}}}}}]}}}}\n"
    );
    let found = look("csv.yaml", &text);
    let bundles = listings(&found);
    let names = |candidates: &[&Candidate]| {
        candidates.iter().map(|candidate| candidate.reference().unwrap().name()).collect::<Vec<_>>()
    };
    assert_eq!(bundles.len(), 1);
    assert_eq!(bundles[0].object, "ClusterServiceVersion lab.v1");
    assert_eq!(
        names(&bundles[0].unlisted),
        ["registry.example.com/lab/side", "registry.example.com/lab/daemon"]
    );
    assert_eq!(names(&bundles[0].unused), ["registry.example.com/lab/old"]);
    assert_eq!(names(&bundles[0].unpinned), ["registry.example.com/lab/daemon"]);
}
