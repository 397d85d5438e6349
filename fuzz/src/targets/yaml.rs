//! YAML and JSON: trees, spans, edits, our own output.

use scantling_yaml::{LineIndex, Node, NodeKind, parse, replace_scalar, text, to_yaml};

/// Scalars of one input that are edited: each edit reads the whole text again.
const EDITS_MAX: usize = 4;

/// What the parser says of lines between brackets that are not indented and that it could not be helped with.
const STRICT: &str = "invalid indentation";

/// What must hold of all bytes.
pub fn run(data: &[u8]) {
    let documents = match parse(data) {
        Ok(documents) => documents,
        Err(error) => {
            // An error has a place in the text, if it is text.
            if let Ok(text) = text(data) {
                assert!(error.span.start <= text.len());
            }
            return;
        }
    };
    let text = text(data).expect("what was read is text");
    let lines = LineIndex::new(&text);
    let mut edits = 0;
    for document in &documents {
        walk(&document.root, &text, &lines, &mut edits);
        // What we write, we read as the same.
        let value = document.root.to_json();
        let written = to_yaml(&value);
        let again = parse(written.as_bytes()).expect("our own output is readable");
        let [again] = again.as_slice() else { panic!("our own output is one document: {written:?}") };
        assert_eq!(again.root.to_json(), value, "{written:?}");
    }
}

fn walk(node: &Node, text: &str, lines: &LineIndex, edits: &mut usize) {
    assert!(text.get(node.span.start..node.span.end).is_some(), "a span is a part of the text");
    let (line, column) = lines.position(node.span.start);
    assert!(line >= 1 && column >= 1);
    match &node.kind {
        NodeKind::Sequence(items) => items.iter().for_each(|item| walk(item, text, lines, edits)),
        NodeKind::Mapping(entries) => {
            for entry in entries {
                assert!(text.get(entry.key_span.start..entry.key_span.end).is_some());
                walk(&entry.value, text, lines, edits);
            }
        }
        NodeKind::String(value) => {
            let map = node.source_map(text);
            for (at, _) in value.char_indices() {
                if let Some(source) = map.source(at) {
                    assert!(text.is_char_boundary(source), "a source place is between characters");
                }
            }
            if *edits < EDITS_MAX {
                *edits += 1;
                edit(node, text);
            }
        }
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) => {}
    }
}

/// An edit that succeeds leaves a readable text with the new value in it.
fn edit(node: &Node, text: &str) {
    const NEW: &str = "registry.example.com/a: b #c";
    if let Ok(edited) = replace_scalar(text, node, NEW) {
        match parse(edited.as_bytes()) {
            Ok(documents) => {
                assert!(documents.iter().any(|document| holds(&document.root, NEW)), "{edited:?}");
            }
            // Behind a comment, lines of a flow collection that are not indented are read after a plain scalar and refused after
            // a quoted one.
            Err(error) => assert!(error.message.starts_with(STRICT), "{error}: {edited:?}"),
        }
    }
}

fn holds(node: &Node, wanted: &str) -> bool {
    node.as_str() == Some(wanted)
        || node.items().iter().any(|item| holds(item, wanted))
        || node.entries().iter().any(|entry| entry.key == wanted || holds(&entry.value, wanted))
}
