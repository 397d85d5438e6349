//! What holds for every text.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::format_push_string,
    clippy::format_collect
)]

use proptest::prelude::*;
use scantling_yaml::{LineIndex, Node, NodeKind, parse, replace_scalar, to_yaml};
use serde_json::{Map, Number, Value};

/// Texts that come near to YAML: pieces that mean something to a YAML reader, in any order.
fn yaml_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-c]{1,3}",
        6 => proptest::sample::select(vec![
            ":", ": ", "- ", "\n", "\n  ", "\n    ", "\r\n", "[", "]", "{", "}", ", ", "\"", "'", "|", ">", "|-\n  ", ">\n  ",
            "#", " #", "&a ", "*a", "!!str ", "! ", "<<: ", "---\n", "...\n", "\t", "\\", "\\n", "\\u00e9", "é", "😀", "~",
            "0644", "1.0", "yes", "?", "%", "@", "\u{feff}", "\u{2028}", "\0", "x/y:1@sha256:00",
        ]).prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[a-z0-9./:@_-]{0,20}",
        "\\PC{0,8}",
        "([a-z #:'\"\\\\|>-]{0,6}\n){0,4}[a-z]{0,3}",
        any::<String>(),
        proptest::sample::select(vec![
            "yes",
            "null",
            "0644",
            "1e3",
            "~",
            "",
            " ",
            "-",
            "a: b",
            "a #b",
            "2024-01-01",
            "<<",
            "=",
            "\n",
            "x\n\n",
            "---",
            "12:30",
        ])
        .prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| Value::Number(number.into())),
        any::<u64>().prop_map(|number| Value::Number(number.into())),
        // Whole numbers come back as integers, as from Kubernetes' own reader.
        any::<f64>()
            .prop_filter("JSON holds it, and it has a fraction", |number| number.is_finite()
                && number.fract() != 0.0)
            .prop_map(|number| Value::Number(Number::from_f64(number).unwrap())),
        string().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            proptest::collection::btree_map(string(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn every<'tree>(node: &'tree Node, out: &mut Vec<&'tree Node>) {
    out.push(node);
    for entry in node.entries() {
        every(&entry.value, out);
    }
    for item in node.items() {
        every(item, out);
    }
}

/// All scalars of a value with their JSON pointers.
fn scalars(value: &Value, pointer: &str, out: &mut Vec<String>) {
    let step = |key: &str| format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| scalars(item, &step(&at.to_string()), out));
        }
        Value::Object(map) => map.iter().for_each(|(key, item)| scalars(item, &step(key), out)),
        _ => out.push(pointer.to_owned()),
    }
}

fn check_spans(text: &str) {
    let lines = LineIndex::new(text);
    match parse(text.as_bytes()) {
        Ok(documents) => {
            for document in documents {
                let mut nodes = Vec::new();
                every(&document.root, &mut nodes);
                for node in nodes {
                    let spans = node
                        .entries()
                        .iter()
                        .map(|entry| entry.key_span)
                        .chain([node.span])
                        .chain(node.alias);
                    for span in spans {
                        assert!(
                            span.start <= span.end && text.get(span.start..span.end).is_some(),
                            "{span:?} in {text:?}"
                        );
                        lines.position(span.start);
                    }
                    if let Some(string) = node.as_str() {
                        let map = node.source_map(text);
                        for (offset, character) in string.char_indices() {
                            let source = map.source(offset).unwrap();
                            assert!(source <= text.len(), "{source} in {text:?}");
                            // A letter or digit that is not escaped stands where the map says.
                            if character.is_ascii_digit() && !node.written(text).contains('\\') {
                                assert_eq!(
                                    text[source..].chars().next(),
                                    Some(character),
                                    "{offset} in {string:?} of {text:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
        Err(error) => {
            assert!(error.span.start <= text.len(), "{error:?} in {text:?}");
            assert!(error.line >= 1 && error.column >= 1, "{error:?} in {text:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn places_lie_in_the_text(text in yaml_like()) {
        check_spans(&text);
    }

    #[test]
    fn what_is_written_is_read_again(value in value()) {
        let text = to_yaml(&value);
        let documents = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let read = documents.first().map_or(Value::Null, |document| document.root.to_json());
        prop_assert_eq!(read, value, "{}", text);
    }

    #[test]
    fn json_is_read(value in value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let text = format!("[{text}]");
        let documents = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(documents[0].root.to_json(), Value::Array(vec![value]));
    }

    #[test]
    fn an_edit_changes_one_value_and_nothing_else(value in value(), new in string(), pick in any::<prop::sample::Index>(), flow in any::<bool>()) {
        let text = if flow { serde_json::to_string_pretty(&value).unwrap() } else { to_yaml(&value) };
        check_edit(&text, &new, pick)?;
    }

    #[test]
    fn edits_of_hand_written_text_hold(text in yaml_like(), new in string(), pick in any::<prop::sample::Index>()) {
        // Anchors, tags and merge keys have rules of their own.
        check_edit(&text.replace(['&', '*', '!', '<'], "x"), &new, pick)?;
    }
}

/// Replaces one scalar and compares with the same change in the value.
fn check_edit(text: &str, new: &str, pick: prop::sample::Index) -> Result<(), TestCaseError> {
    let Ok(documents) = parse(text.as_bytes()) else { return Ok(()) };
    let Some(document) = documents.first() else { return Ok(()) };
    let mut wanted: Vec<Value> = documents.iter().map(|document| document.root.to_json()).collect();
    let mut pointers = Vec::new();
    scalars(&wanted[0], "", &mut pointers);
    if pointers.is_empty() {
        return Ok(());
    }
    let pointer = &pointers[pick.index(pointers.len())];
    let Some(node) = document.root.pointer(pointer) else { return Ok(()) };
    let Ok(edited) = replace_scalar(text, node, new) else { return Ok(()) };
    *wanted[0].pointer_mut(pointer).unwrap() = Value::String(new.to_owned());
    let read =
        parse(edited.as_bytes()).unwrap_or_else(|error| panic!("{error}\nbefore:\n{text}\nafter:\n{edited}"));
    let read: Vec<Value> = read.iter().map(|document| document.root.to_json()).collect();
    prop_assert_eq!(read, wanted, "before:\n{}\nafter:\n{}", text, edited);
    prop_assert_eq!(&edited[..node.span.start], &text[..node.span.start]);
    prop_assert!(edited.ends_with(&text[node.span.end..]));
    Ok(())
}

const NESTED: &str = "collections are nested more than 128 deep";

#[test]
fn nothing_grows_without_bound() {
    let deep = "[".repeat(5000);
    let error = parse(deep.as_bytes()).unwrap_err();
    assert!(error.message == NESTED || error.message == "recursion limit exceeded", "{error}");
    let deep: String = (0..500).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let error = parse(deep.as_bytes()).unwrap_err();
    assert!(error.message == NESTED || error.message == "recursion limit exceeded", "{error}");
    let mut laughs = String::from("a0: &a0 lol\n");
    for level in 1..30 {
        let last = level - 1;
        laughs.push_str(&format!("a{level}: &a{level} [*a{last}, *a{last}, *a{last}, *a{last}]\n"));
    }
    assert!(parse(laughs.as_bytes()).unwrap_err().message.contains("aliases expand"));
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a, ".repeat(40));
    assert!(parse(long.as_bytes()).unwrap_err().message.contains("aliases expand"));
    let deep = (0..40).fold(String::from("a0: &a0 []\n"), |text, level| {
        format!("{text}a{}: &a{} [[[[*a{level}]]]]\n", level + 1, level + 1)
    });
    let error = parse(deep.as_bytes()).unwrap_err();
    assert!(error.message == NESTED || error.message == "recursion limit exceeded", "{error}");
    let node = &parse(b"a: &x {b: *x}").unwrap_err();
    assert!(node.message.contains("inside the value"), "{node}");
    assert!(matches!(parse(b"a: 1").unwrap()[0].root.kind, NodeKind::Mapping(_)));
}

/// Found by fuzzing: a carriage return alone ends a line, also the last one of a block scalar.
#[test]
fn what_follows_a_block_scalar_of_old_line_ends_stays() {
    for text in ["b: |2\n  one\rc: 1\n", "b: |-\r  one\r  two\rc: 1\r", "b: >\r\n  one\rc: 1\r\n"] {
        let documents = parse(text.as_bytes()).unwrap();
        let edited = replace_scalar(text, documents[0].root.get("b").unwrap(), "new").unwrap();
        let documents = parse(edited.as_bytes()).unwrap_or_else(|error| panic!("{edited:?}: {error}"));
        assert_eq!(documents[0].root.to_json(), serde_json::json!({"b": "new", "c": 1}), "{edited:?}");
    }
}

/// A value that is not written is put behind its indicator, not into the comment behind that.
#[test]
fn a_missing_value_is_written_before_the_comment() {
    for (text, wanted) in [
        ("- #:\n", "- new #:\n"),
        ("- # c\n- b\n", "- new # c\n- b\n"),
        ("a: # c\n  # d\nb: 1\n", "a: new # c\n  # d\nb: 1\n"),
        ("- a\n-\n", "- a\n- new\n"),
    ] {
        let documents = parse(text.as_bytes()).unwrap();
        let Some(document) = documents.first() else { panic!("{text:?} has no document") };
        let mut nodes = vec![&document.root];
        let mut empty = None;
        while let Some(node) = nodes.pop() {
            nodes.extend(node.items().iter().chain(node.entries().iter().map(|entry| &entry.value)));
            if node.kind == NodeKind::Null {
                empty = Some(node);
            }
        }
        assert_eq!(replace_scalar(text, empty.unwrap(), "new").as_deref(), Ok(wanted), "{text:?}");
    }
}
