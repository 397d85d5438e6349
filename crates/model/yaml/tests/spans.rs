//! Places: every key and value knows its bytes, and places inside strings lead back to the file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use scantling_yaml::{LineIndex, Node, NodeKind, Style, parse};

fn at<'a>(text: &'a str, root: &Node, pointer: &str) -> &'a str {
    root.pointer(pointer).unwrap_or_else(|| panic!("nothing at {pointer}")).written(text)
}

#[test]
fn keys_and_values_know_their_bytes() {
    let text = "# é\nkind: Pod # ü\n'quoted key': \"é\\n\"\nlist:\n- plain text\n-   'it''s'\n- {a: 1, b: [x, yes]}\n- |2\n   two\n  lines\n\n# end\nempty:\nlast: >-\n  folded\n  text\n";
    let documents = parse(text.as_bytes()).unwrap();
    let root = &documents[0].root;
    for (pointer, wanted) in [
        ("/kind", "Pod"),
        ("/quoted key", "\"é\\n\""),
        ("/list/0", "plain text"),
        ("/list/1", "'it''s'"),
        ("/list/2", "{a: 1, b: [x, yes]}"),
        ("/list/2/a", "1"),
        ("/list/2/b/1", "yes"),
        ("/list/3", "|2\n   two\n  lines\n\n"),
        ("/empty", ""),
        ("/last", ">-\n  folded\n  text\n"),
    ] {
        assert_eq!(at(text, root, pointer), wanted, "{pointer}");
    }
    let keys: Vec<_> = root.entries().iter().map(|entry| entry.key_span.of(text)).collect();
    assert_eq!(keys, ["kind", "'quoted key'", "list", "empty", "last"]);
    let empty = root.get("empty").unwrap();
    assert!(text[..empty.span.start].ends_with("empty:"));
    assert_eq!(root.get("list").unwrap().index(3).unwrap().as_str(), Some(" two\nlines\n"));
    assert_eq!(text[root.span.start..root.span.end].trim_end(), text["# é\n".len()..].trim_end());
}

#[test]
fn empty_values_stand_behind_their_indicator() {
    for (text, pointer, before) in [
        ("a:\nb: 1\n", "/a", "a:"),
        ("a:   # comment\nb: 1\n", "/a", "a:"),
        ("- \n- x\n", "/0", "-"),
        ("- a\n-\n", "/1", "- a\n-"),
        ("a: !!str\nb: 1", "/a", "a: !!str"),
        ("a:", "/a", "a:"),
        ("{a: , b: c}", "/a", "{a:"),
        ("x:\n  w:\n\n# c\nz: 1", "/x/w", "x:\n  w:"),
    ] {
        let documents = parse(text.as_bytes()).unwrap();
        let node = documents[0].root.pointer(pointer).unwrap_or_else(|| panic!("{text:?} {documents:?}"));
        assert_eq!(&text[..node.span.start], before, "{text:?}");
        assert!(node.span.is_empty(), "{text:?}");
    }
}

#[test]
fn places_inside_strings_lead_back_to_the_file() {
    // Every `N` in a string is looked for: it must stand at an `N` of the text, each at another one.
    let texts = [
        "a: |\n  N1\n    N2 N3\n\n  N4\nb: N5",
        "a: |2-\n     N1\n   N2\nb: x",
        "a: |\r\n  N1\r\n  x N2\r\nb: x\r\n",
        "a: >\n  N1 b\n  c N2\n\n  N3\n    N4\n\n\n  N5\n",
        "a: >-\n\n  N1\n  N2\n",
        "a: |\n\n\n  N1\n  N2\n",
        "a: 'N1 ''N2''\n  N3\n\n  N4'\n",
        "a: \"N1 \\\"N2\\\" \\u00e9 N3 \\\n   N4\n   N5\n\n\n   N6\\t\\x41N7\"\n",
        "a: \"\\U0001F600N1\\N\\LN2\"\n",
        "a: N1\n  N2 é N3\n\n  N4\n",
        "{\"a\": \"N1\\u00e9N2\\ud83d\\ude00N3\\/N4\\nN5\"}",
        "\u{feff}a: ü N1\n",
        "ü: |+\n N1 ü\n ü N2\n\n\n",
        "- |\n N1\n-  >\n  N2",
        // Found by fuzzing: line breaks of a third kind.
        "a: |\r  N1\r\r  N2 é\r  N3\rb: x\r",
        "a: >\n  N1\n\r  N2\r\n\r\n  N3\n",
        "a: |2\n  N1\n\r  ü N2\n",
        "a: |2\n   \n    ü N1\n  N2\n",
        "a: >2\n\n   \n    N1\n  N2\n",
    ];
    for text in texts {
        let documents = parse(text.as_bytes()).unwrap();
        let mut found = Vec::new();
        let mut nodes = vec![&documents[0].root];
        while let Some(node) = nodes.pop() {
            nodes.extend(node.entries().iter().map(|entry| &entry.value));
            nodes.extend(node.items());
            let Some(string) = node.as_str() else { continue };
            for (offset, _) in string.match_indices('N') {
                let source = node.source_offset(text, offset).unwrap();
                assert_eq!(
                    text[source..].chars().take(2).collect::<String>(),
                    string[offset..offset + 2],
                    "{text:?}"
                );
                found.push(source);
            }
        }
        found.sort_unstable();
        found.dedup();
        let wanted: Vec<usize> = text
            .match_indices('N')
            .map(|(at, _)| at)
            .filter(|at| text[at + 1..].starts_with(|next: char| next.is_ascii_digit()))
            .collect();
        assert_eq!(found, wanted, "{text:?}");
    }
}

#[test]
fn aliases_stand_where_they_are_used_and_where_they_are_defined() {
    let text = "a: {image: &img x/y}\nb: *img\nbase: &base {k: 1}\nc: *base\nd: {<<: *base, l: 2}\n";
    let documents = parse(text.as_bytes()).unwrap();
    let root = &documents[0].root;
    let alias = root.get("b").unwrap();
    assert_eq!((alias.written(text), alias.alias.unwrap().of(text)), ("x/y", "*img"));
    assert_eq!(root.pointer("/c/k").unwrap().written(text), "1");
    assert_eq!(root.get("d").unwrap().to_json(), serde_json::json!({"k": 1, "l": 2}));
}

#[test]
fn line_and_column_of_errors() {
    for (text, place, words) in [
        ("a: 1\nb: [1, 2\nc: 3\n", (3, 2), ""),
        ("a: é\nb: \u{7}\n", (2, 4), "control character"),
        ("a: 1\na: 2\n", (2, 1), "given twice"),
        ("a: .inf\n", (1, 4), "JSON cannot hold"),
        ("x: *nowhere\n", (1, 4), ""),
        ("{\"a\": 1,\n \"a\": 2}", (2, 2), "given twice"),
    ] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.message.contains(words), "{text:?}: {error}");
        assert_eq!((error.line, error.column), place, "{text:?}: {error}");
        assert_eq!(LineIndex::new(text).position(error.span.start), place, "{text:?}");
    }
}

#[test]
fn duplicate_keys_name_both_places_and_the_path() {
    let text = "spec:\n  containers:\n  - name: web\n    env: [{name: A}]\n    env: [{name: B}]\n";
    let error = parse(text.as_bytes()).unwrap_err();
    assert_eq!(error.path.as_deref(), Some(".spec.containers[0].env"));
    assert_eq!((error.line, error.column, error.hint.as_deref()), (5, 5, Some("first given at 4:5")));
    let (documents, duplicates) = scantling_yaml::parse_tolerant(text.as_bytes()).unwrap();
    assert_eq!(duplicates, [error]);
    assert_eq!(documents[0].root.pointer("/spec/containers/0/env/0/name").unwrap().as_str(), Some("A"));
}

#[test]
fn styles_and_tags_are_kept() {
    let text = "a: x\nb: 'x'\nc: \"x\"\nd: |\n  x\ne: >\n  x\nf: !!str 5\ng: [1]\nh: !custom v\n";
    let documents = parse(text.as_bytes()).unwrap();
    let styles: Vec<Style> = documents[0].root.entries().iter().map(|entry| entry.value.style).collect();
    assert_eq!(
        styles,
        [
            Style::Plain,
            Style::SingleQuoted,
            Style::DoubleQuoted,
            Style::Literal,
            Style::Folded,
            Style::Plain,
            Style::Collection,
            Style::Plain
        ]
    );
    assert_eq!(documents[0].root.get("f").unwrap().tag.as_deref(), Some("tag:yaml.org,2002:str"));
    assert_eq!(documents[0].root.get("f").unwrap().kind, NodeKind::String("5".to_owned()));
    assert_eq!(documents[0].root.get("h").unwrap().tag.as_deref(), Some("!custom"));
}

/// Found by fuzzing: a tag ends where a flow collection begins.
#[test]
fn values_begin_behind_their_tags_and_anchors() {
    for (text, wanted) in [
        ("{\"a\":![1,02r)e]}", "[1,02r)e]"),
        ("a: !x {b: 1}", "{b: 1}"),
        ("a: &x [1]", "[1]"),
        ("a: !<tag:yaml.org,2002:str> x", "x"),
        ("a: &x !!str 5", "5"),
        ("a: !!str &x\n  5", "5"),
        ("a: ! # c\r  x", "x"),
    ] {
        let documents = parse(text.as_bytes()).unwrap();
        assert_eq!(at(text, &documents[0].root, "/a"), wanted, "{text:?}");
    }
}

/// Found by fuzzing: what Kubernetes' reader takes between brackets, and the directives that it does not take.
#[test]
fn lines_between_brackets_need_no_indentation() {
    for (text, wanted) in [
        ("a: [\n\"x\"\n]\n", "[\n\"x\"\n]"),
        ("a: [\"x\"\n, y]\nb: 1\n", "[\"x\"\n, y]"),
        ("a: {\r\n\"b\": 1,\r\n\r\n  c: 2\r\n}\r\n", "{\r\n\"b\": 1,\r\n\r\n  c: 2\r\n}"),
        ("k:\n  a: [1,\n2,\n  3]\n", "[1,\n2,\n  3]"),
    ] {
        let documents = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let root = &documents[0].root;
        let node = root.get("a").or_else(|| root.pointer("/k/a")).unwrap();
        assert_eq!(node.written(text), wanted, "{text:?}");
    }
    let error = parse(b"a: [1, # one\n2]\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 1), "{error}");
    // A tab before a header is as wrong as one before any other value.
    assert!(parse(b"\t|-\n  a\n").unwrap_err().message.contains("a tab"));
    for text in ["%x\n---\na: 1\n", "# c\n\n%\u{9e79e}\n---\na: 1\n", "a: 1\n...\n%é y\n---\nb: 2\n"] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.message.contains("no directive"), "{text:?}: {error}");
        assert_eq!(text.as_bytes()[error.span.start], b'%');
    }
    assert_eq!(parse("%YAML 1.1 # é\n---\na: 1\n".as_bytes()).unwrap().len(), 1);
    assert_eq!(parse(b"a: |\n  x\n  %y\n").unwrap()[0].root.get("a").unwrap().as_str(), Some("x\n%y\n"));
}
