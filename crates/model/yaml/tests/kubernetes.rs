//! Agreement with Kubernetes' reader.
//!
//! `kubernetes.jsonl` holds texts with what `YAMLToJSON` of `sigs.k8s.io/yaml` v1.6.0 (go-yaml v2.4.2) made of them: JSON or
//! an error. To add a text, run it through that function.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use scantling_yaml::parse;
use serde_json::Value;

/// Texts that are read differently on purpose or by the parser's nature, each with the reason. A text that is refused with
/// its place does no harm; one that is read differently must be something that nobody writes.
const DIFFERENT: &[(&str, &[&str])] = &[
    (
        "refused: Kubernetes keeps one of the two, depending on the reader",
        &["a: 1\na: 2\n", "{a: 1, a: 2}\n", "a: {b: 1}\na: {c: 2}\n", "\"1\": a\n1: b\n"],
    ),
    (
        "refused: the rest of the stream, which that function does not look at",
        &[
            " a: 1\nb: 2\n",
            "\"a\"\n\"b\"\n",
            "\"a\":1\n",
            "{a: 1}}\n",
            "{a: 1} b\n",
            "[a] b\n",
            "|\n  x\n y\n",
        ],
    ),
    (
        "refused: characters and tags that other readers take for something else",
        &["a: \u{feff}b\n", "a: \"x\u{2028}y\"\n", "# \u{2028} b: 1\n", "a: !!binary aGVsbG8=\n"],
    ),
    (
        "refused: indentation that YAML 1.2 does not allow",
        &[
            "a: \"x\ny\"\n",
            "a:\n  b: \"x\n y\"\n",
            "a: \"x\n\ty\"\n",
            "a: \"b\"#c\n",
            "a: [b]#c\n",
            "[-]\n",
            "v: !!str!5\n",
            "!!str!5: 1\n",
        ],
    ),
    (
        "read although Kubernetes refuses: another reader will say so, and nothing is read wrongly",
        &[
            "a: |\n  \tx\n",
            "%YAML 1.2\n---\na: 1\n",
            "a: 1\n\n\t\nb: 2\n",
            "a: 1\n\t# c\nb: 2\n",
            "...\na: 1\n",
            "[:a]\n",
        ],
    ),
    ("minus zero is written as 0", &["v: -0.0\n", "[-0.0]\n", "v: !!float -0.0\n", "-0.0: 1\n"]),
    ("an empty first document is left out", &["---\n# c\n---\na: 1\n"]),
    (
        "anchors with a colon, keys with a colon at their end, block scalars without indentation",
        &["a: &b:c d\n", "a: {b:}\n", "[?a]\n", "|\nx\n"],
    ),
];

#[test]
fn reads_what_kubernetes_reads() {
    let known: BTreeSet<&str> = DIFFERENT.iter().flat_map(|(_, texts)| texts.iter().copied()).collect();
    let mut differing = BTreeSet::new();
    let vectors = include_str!("kubernetes.jsonl");
    for line in vectors.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let text = vector["yaml"].as_str().unwrap();
        let read = parse(text.as_bytes())
            .map(|documents| documents.first().map_or(Value::Null, |document| document.root.to_json()));
        let same = match (&read, vector.get("json")) {
            (Ok(read), Some(wanted)) => read == wanted,
            (Err(_), None) => true,
            _ => false,
        };
        if !same {
            differing.insert(text.to_owned());
            assert!(known.contains(text), "{text:?} is read as {read:?}, Kubernetes has {vector}");
        }
    }
    assert!(vectors.lines().count() > 1000);
    for text in known {
        assert!(differing.contains(text), "{text:?} is read alike and need not be listed");
    }
}
