//! What holds for every input: nothing panics, places are true, edits change one reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use scantling_image::Reference;
use scantling_manifest::{Candidate, Discovery, Options, What, discover, rewrite};

const NAMES: &[&str] = &[
    "a.yaml",
    "a.json",
    "params.env",
    "const.ts",
    "deploy.sh",
    "Dockerfile",
    "README.md",
    "list.txt",
    "kustomization.yaml",
    "x",
];

fn look(path: &str, bytes: &[u8]) -> Discovery {
    discover(&BTreeMap::from([(path.to_owned(), bytes.to_vec())]), &Options::default())
}

/// Pieces of manifests, scripts and references, in any order.
fn manifest_like() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "kind: Pod\n",
        "spec:\n  ",
        "containers:\n",
        "- ",
        "image: ",
        "name: ",
        "value: ",
        "env:\n",
        "args: [",
        "data:\n  x: |\n    ",
        "registry.example.com/a/b",
        ":1.2",
        "@sha256:",
        "7dd5aa540ddce2e323e2209cb9f50cf4948cb79f17eed96b7bbc33b31a0eca5d",
        "quay.io/x/y:",
        "${",
        "}",
        "${IMAGE:-",
        "$(img)",
        "{{ .Values.image }}",
        "<img>",
        "dummy",
        "_PLACEHOLDER",
        "\"",
        "'",
        "\n",
        "\n    ",
        ": ",
        ", ",
        "]",
        "{",
        "[",
        "é",
        "\\",
        "\\n",
        "=",
        "--image=",
        "repository: ",
        "tag: ",
        "digest: ",
        "newName: ",
        "images:\n",
        "FROM ",
        " as b\n",
        "process.env.IMG || '",
        "#",
        "---\n",
        "port:8085",
        "system:auth",
        "://",
        "oci://",
        "\u{feff}",
        "\t",
        "&a ",
        "*a",
        "|\n      ",
        "replacements:\n",
        "resources: [a.yaml]\n",
        "\r\n",
        "{\"image\": \"",
        "ImageStreamTag",
        "kind: ",
        "metadata: {name: x}\n",
    ]);
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn check(path: &str, text: &str) {
    let found = look(path, text.as_bytes());
    for candidate in &found.candidates {
        let file = candidate.place.file.as_ref().expect("a candidate has a place");
        let (start, end) = file.span.expect("a candidate has bytes");
        assert!(start <= end && text.get(start..end).is_some(), "{candidate:?} in {text:?}");
        assert!(file.line >= 1 && file.column >= 1);
        if let What::Reference { reference } = &candidate.what {
            // A parsed reference stands in the text as it is, unless escapes cut it.
            let written = &text[start..end];
            assert!(
                written == candidate.written
                    || text.contains('\\')
                    || !candidate.written.contains(reference.written()),
                "{candidate:?} in {text:?}"
            );
        }
    }
    for finding in &found.findings {
        let place = finding.place.file.as_ref().expect("a finding has a place");
        assert_eq!(place.path, path);
        if let Some((start, end)) = place.span {
            assert!(start <= end && end <= text.len(), "{finding:?} in {text:?}");
        }
    }
    serde_json::to_string(&found.candidates).expect("candidates are data");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nothing_panics_and_places_are_true(text in manifest_like(), name in proptest::sample::select(NAMES)) {
        check(name, &text);
    }

    #[test]
    fn any_bytes_are_looked_at(bytes in proptest::collection::vec(any::<u8>(), 0..300), name in proptest::sample::select(NAMES)) {
        let _ = look(name, &bytes);
    }

    #[test]
    fn a_reference_is_found_in_every_style(
        path in "[a-z]{1,8}(/[a-z0-9]{1,8}){0,2}",
        tag in "[A-Za-z0-9_]([A-Za-z0-9_.-]{0,10}[A-Za-z0-9_-])?",
        digest in "[0-9a-f]{64}",
        pinned in any::<bool>(),
        style in 0..8_usize,
    ) {
        let name = format!("registry.example.com/{path}");
        let written = if pinned { format!("{name}@sha256:{digest}") } else { format!("{name}:{tag}") };
        let text = match style {
            0 => format!("spec: {{containers: [{{image: '{written}'}}]}}\n"),
            1 => format!("data:\n  x: |\n    # ü\n    a: 1\n    b:\n    - image: {written}\n"),
            2 => format!("{{\"metadata\": {{\"annotations\": {{\"x\": \"{{\\\"b\\\": [\\\"ü\\\", {{\\\"image\\\": \\\"{written}\\\"}}]}}\"}}}}}}"),
            3 => format!("data:\n  outer: |\n    kind: ConfigMap\n    data:\n      inner: |\n        image: \"{written}\"\n"),
            4 => format!("spec:\n  args: [--image={written}]\n"),
            5 => format!("spec:\n  env:\n  - name: X\n    value: \"{written}\"\n"),
            6 => format!("data:\n  run.sh: |-\n    set -e\n    podman pull {written} # ü\n"),
            _ => format!("data:\n  a.env: |\n    # ü\n    OVMS_IMAGE={written}\n    B=c\n"),
        };
        let found = look("a.yaml", text.as_bytes());
        let references: Vec<&Candidate> = found.candidates.iter().filter(|candidate| candidate.reference().is_some()).collect();
        prop_assert_eq!(references.len(), 1, "{} {:?}", text, found.candidates);
        prop_assert_eq!(&references[0].written, &written);
        let (start, end) = references[0].place.file.as_ref().unwrap().span.unwrap();
        prop_assert_eq!(&text[start..end], &written);

        let new = Reference::parse(&format!("mirror.example.net/{path}@sha256:{digest}")).unwrap();
        let edited = rewrite(&text, &[(references[0], &new)]).unwrap();
        prop_assert_eq!(&edited, &text.replace(&written, new.written()));
        let again = look("a.yaml", edited.as_bytes());
        let references: Vec<&Reference> = again.candidates.iter().filter_map(Candidate::reference).collect();
        prop_assert_eq!(references, vec![&new]);
    }
}

/// Deep documents in strings in deep documents, unclosed variables, long lines: all take their time and no more.
#[test]
fn hostile_texts_are_borne() {
    let mut text = String::from("quay.io/a/b:1");
    for _ in 0..6 {
        let inner = serde_json::to_string(&text).unwrap();
        text = format!("{}{inner}{}", "{\"a\":[".repeat(60), "]}".repeat(60));
    }
    look("a.json", text.as_bytes());
    for piece in
        ["${", "$(", "{{", "<a", "@sha256:", "a/b:", "x=${A:-", "*a &a: ", "- ", "[", "\"", "'", "|\n"]
    {
        let long = piece.repeat(8_000 / piece.len());
        for name in NAMES {
            look(name, long.as_bytes());
            look(name, format!("data:\n  x: |\n    {long}\n").as_bytes());
        }
    }
}
