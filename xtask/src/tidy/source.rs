//! Source files as the paths that their code names, without comments, strings and what only tests see.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A source file.
pub(super) struct Source {
    /// Where it is, from the root of the repository, with `/`.
    pub(super) path: String,
    /// So many lines it has.
    pub(super) lines: usize,
    /// Whether it is compiled for tests only.
    pub(super) is_test: bool,
    /// What its code names, tests left out.
    pub(super) code: Vec<Name>,
    /// What its tests name.
    pub(super) tests: Vec<Name>,
}

/// A path such as `std::fs::read`, as it would be written in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
    /// What the file calls it, if a `use` brings it in.
    imported: Option<String>,
}

/// Words that begin an item which ends with `;` or its block.
const ITEMS: [&str; 17] = [
    "pub",
    "mod",
    "fn",
    "use",
    "struct",
    "enum",
    "union",
    "impl",
    "trait",
    "type",
    "const",
    "static",
    "unsafe",
    "async",
    "extern",
    "macro_rules",
    "let",
];

/// Reads the files.
pub(super) fn read(root: &Path, files: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut test_modules = BTreeSet::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {path}"))?;
        let mut parts = parts(&text).map_err(|error| anyhow!("{path}: {error}"))?;
        let folder = module_folder(&path);
        test_modules.extend(parts.test_modules.iter().map(|name| format!("{folder}/{name}")));
        let imports = imports(&parts.code);
        parts.code.iter_mut().for_each(|name| expand(name, &imports));
        sources.push(Source {
            lines: text.lines().count(),
            is_test: parts.is_test || path.contains("/tests/") || path.contains("/benches/"),
            code: parts.code,
            tests: parts.tests,
            path,
        });
    }
    for source in &mut sources {
        let stem = source.path.strip_suffix(".rs").unwrap_or(&source.path);
        source.is_test |= stem.match_indices('/').any(|(at, _)| test_modules.contains(&stem[..at]))
            || test_modules.contains(stem);
    }
    Ok(sources)
}

/// The folder in which the modules of a file are.
fn module_folder(path: &str) -> &str {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    match stem.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder,
        _ => stem,
    }
}

#[derive(Default)]
struct Parts {
    is_test: bool,
    code: Vec<Name>,
    tests: Vec<Name>,
    test_modules: Vec<String>,
}

/// The names of a text, by whether tests alone see them.
fn parts(text: &str) -> Result<Parts, proc_macro2::LexError> {
    let stream: TokenStream = text.parse()?;
    let mut parts = Parts::default();
    walk(stream, false, &mut parts);
    Ok(parts)
}

fn walk(stream: TokenStream, in_tests: bool, parts: &mut Parts) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut in_tests = in_tests;
    let mut at = 0;
    while let Some(rest) = trees.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some((length, attribute, is_inner)) = attribute(rest)
            && !in_tests
            && is_cfg_test(attribute)
        {
            if is_inner {
                parts.is_test = true;
                in_tests = true;
            } else {
                let item = &rest[length..];
                let item = &item[..item_length(item)];
                parts.test_modules.extend(declared_module(item));
                walk(item.iter().cloned().collect(), true, parts);
                at += length + item.len();
                continue;
            }
        }
        let names = if in_tests { &mut parts.tests } else { &mut parts.code };
        if is_word(rest.first(), "use") {
            let length = rest.iter().position(|tree| is_punct(tree, ';')).unwrap_or(rest.len());
            // `use<'a>` in a type is no import.
            if !rest.get(1).is_some_and(|tree| is_punct(tree, '<')) {
                imported(&rest[1..length], &[], names);
                at += length;
                continue;
            }
        }
        match &rest[0] {
            TokenTree::Ident(ident) => {
                let (name, length) = path(rest);
                if name.len() > 1 {
                    names.push(Name { line: line(ident), segments: name, imported: None });
                }
                at += length;
            }
            TokenTree::Group(group) => {
                walk(group.stream(), in_tests, parts);
                at += 1;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
        }
    }
}

/// An attribute at the beginning: how many trees it is, what it says, and whether it is about what it stands in.
fn attribute(trees: &[TokenTree]) -> Option<(usize, &Group, bool)> {
    let brackets =
        |tree: &TokenTree| matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
    let inner = match trees {
        [hash, group, ..] if is_punct(hash, '#') && brackets(group) => false,
        [hash, bang, group, ..] if is_punct(hash, '#') && is_punct(bang, '!') && brackets(group) => true,
        _ => return None,
    };
    let length = if inner { 3 } else { 2 };
    match trees.get(length - 1) {
        Some(TokenTree::Group(group)) => Some((length, group, inner)),
        _ => None,
    }
}

/// Whether an attribute is `cfg(test)` or `cfg(all(test, …))`.
fn is_cfg_test(attribute: &Group) -> bool {
    let trees: Vec<TokenTree> = attribute.stream().into_iter().collect();
    let [name, TokenTree::Group(condition)] = trees.as_slice() else { return false };
    is_word(Some(name), "cfg") && demands_test(condition.stream())
}

fn demands_test(condition: TokenStream) -> bool {
    let trees: Vec<TokenTree> = condition.into_iter().collect();
    trees.split(|tree| is_punct(tree, ',')).any(|part| match part {
        [word] => is_word(Some(word), "test"),
        [word, TokenTree::Group(all)] => is_word(Some(word), "all") && demands_test(all.stream()),
        _ => false,
    })
}

/// How many trees belong to what an attribute stands before: an item, a statement, an arm or a field.
fn item_length(trees: &[TokenTree]) -> usize {
    let mut start = 0;
    while let Some((length, _, false)) = attribute(&trees[start..]) {
        start += length;
    }
    let is_item = matches!(trees.get(start), Some(TokenTree::Ident(word)) if ITEMS.contains(&word.to_string().as_str()));
    let mut after_arrow = false;
    for (at, tree) in trees.iter().enumerate().skip(start) {
        let is_block = matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        let ends = is_punct(tree, ';')
            || (is_item
                && is_block
                && !is_word(trees.get(start), "use")
                && !is_word(trees.get(start), "let"))
            || (!is_item && (is_punct(tree, ',') || is_block && after_arrow));
        if ends {
            return at + 1;
        }
        after_arrow =
            is_punct(tree, '>') && trees.get(at.wrapping_sub(1)).is_some_and(|tree| is_punct(tree, '='));
    }
    trees.len()
}

/// The file of a `mod name;`.
fn declared_module(item: &[TokenTree]) -> Option<String> {
    let at = item.iter().position(|tree| is_word(Some(tree), "mod"))?;
    match item.get(at + 1..)? {
        [TokenTree::Ident(name), end] if is_punct(end, ';') => Some(name.to_string()),
        _ => None,
    }
}

/// The path at the beginning, and how many trees it is.
fn path(trees: &[TokenTree]) -> (Vec<String>, usize) {
    let mut segments = Vec::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(ident)) = trees.get(at) {
        segments.push(ident.to_string());
        at += 1;
        match trees.get(at..) {
            Some([one, two, TokenTree::Ident(_), ..]) if is_punct(one, ':') && is_punct(two, ':') => at += 2,
            _ => break,
        }
    }
    (segments, at)
}

/// The paths of a `use`, in full.
fn imported(tree: &[TokenTree], before: &[String], names: &mut Vec<Name>) {
    for part in tree.split(|tree| is_punct(tree, ',')) {
        let mut segments = before.to_vec();
        let mut words = part.iter();
        let mut at = 0;
        let mut alias = None;
        while let Some(tree) = words.next() {
            match tree {
                TokenTree::Ident(word) if word == "as" => {
                    alias = words.next().map(ToString::to_string);
                }
                TokenTree::Ident(word) => {
                    at = line(word);
                    if word != "self" || segments.is_empty() {
                        segments.push(word.to_string());
                    }
                }
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    imported(&inner, &segments, names);
                    segments.clear();
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        let called = alias.or_else(|| segments.last().cloned());
        if called.is_some() && !part.is_empty() {
            names.push(Name { line: at, segments, imported: called });
        }
    }
}

/// What the imports of a file call what, in full.
fn imports(names: &[Name]) -> BTreeMap<String, Vec<String>> {
    names.iter().filter_map(|name| Some((name.imported.clone()?, name.segments.clone()))).collect()
}

/// Writes a path in full that begins with an imported name.
fn expand(name: &mut Name, imports: &BTreeMap<String, Vec<String>>) {
    if name.imported.is_some() {
        return;
    }
    if let Some(full) = name.segments.first().and_then(|first| imports.get(first)) {
        name.segments.splice(..1, full.iter().cloned());
    }
}

fn line(word: &proc_macro2::Ident) -> usize {
    word.span().start().line
}

fn is_punct(tree: &TokenTree, wanted: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_word(tree: Option<&TokenTree>, wanted: &str) -> bool {
    matches!(tree, Some(TokenTree::Ident(word)) if word == wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{expand, imports, parts};

    /// The names of the code and of the tests, as `line path`.
    fn names(text: &str) -> (Vec<String>, Vec<String>) {
        let mut parts = parts(text).unwrap();
        let imports = imports(&parts.code);
        parts.code.iter_mut().for_each(|name| expand(name, &imports));
        let shown = |names: &[super::Name]| {
            names.iter().map(|name| format!("{} {}", name.line, name.segments.join("::"))).collect()
        };
        (shown(&parts.code), shown(&parts.tests))
    }

    #[test]
    fn code_is_told_from_tests_comments_and_strings() {
        let cases = [
            (
                "use std::{env, fs::{self, File as F}};",
                &["1 std::env", "1 std::fs", "1 std::fs::File"][..],
                &[][..],
            ),
            (
                "use std::time as t;\nfn f() { t::Instant::now(); }",
                &["1 std::time", "2 std::time::Instant::now"],
                &[],
            ),
            ("// std::fs\n/* std::env */ const A: &str = \"std::fs }\";", &[], &[]),
            ("#[cfg(test)]\nmod tests;\nfn f() { a::b(); }", &["3 a::b"], &[]),
            ("#[cfg(test)]\n#[allow(x)]\nmod tests { use a::b; }\nuse c::d;", &["4 c::d"], &["3 a::b"]),
            ("#[cfg(test)]\nuse a::{b};\nuse c::d;", &["3 c::d"], &["2 a::b"]),
            ("#[cfg(test)]\nconst A: [u8; 2] = a::b(S { x: 1 });\nuse c::d;", &["3 c::d"], &["2 a::b"]),
            ("fn f() { match x { #[cfg(test)] A => a::b(), B => c::d() } }", &["1 c::d"], &["1 a::b"]),
            ("fn f() { match x { #[cfg(test)] A => { a::b() } B => c::d() } }", &["1 c::d"], &["1 a::b"]),
            ("struct S { #[cfg(test)] a: a::B, c: c::D }", &["1 c::D"], &["1 a::B"]),
            (
                "#[cfg(all(test, unix))] fn f() -> a::B { a::b() } fn g() { c::d() }",
                &["1 c::d"],
                &["1 a::B", "1 a::b"],
            ),
            ("#[cfg(not(test))] fn f() { c::d() }", &["1 c::d"], &[]),
            ("#![cfg(test)]\nuse a::b;", &[], &["2 a::b"]),
            (
                "#[tokio::main] fn f() { select! { _ = tokio::spawn(x) => {} } }",
                &["1 tokio::main", "1 tokio::spawn"],
                &[],
            ),
        ];
        for (text, code, tests) in cases {
            let (found_code, found_tests) = names(text);
            assert_eq!(found_code, code, "{text}");
            assert_eq!(found_tests, tests, "{text}");
        }
    }

    #[test]
    fn modules_for_tests_are_found() {
        assert_eq!(parts("#[cfg(test)] mod a; mod b; #[cfg(test)] mod c {}").unwrap().test_modules, ["a"]);
        assert_eq!(super::module_folder("a/src/lib.rs"), "a/src");
        assert_eq!(super::module_folder("a/src/b/mod.rs"), "a/src/b");
        assert_eq!(super::module_folder("a/src/b.rs"), "a/src/b");
    }
}
