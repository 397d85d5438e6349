//! Documents to references.
//!
//! [`discover`] looks at every string of every file, not at fields called `image`, opens the documents inside strings, and
//! says of everything that is a reference or looks like one what it is, where it stands, how the cluster comes to use it
//! and under which condition. What cannot be classified becomes a finding.

mod broken;
mod bundle;
mod candidate;
mod classify;
mod collect;
mod files;
mod fill;
mod find;
mod hosts;
mod kustomize;
mod lines;
mod names;
mod pairs;
mod placeholder;
mod rewrite;
mod scan;
mod source;
mod text;
mod trail;

pub use bundle::{Listing, listings};
pub use candidate::{Candidate, Filling, Part, Role, Route, What};
pub use rewrite::{RewriteError, rewrite};

use std::collections::BTreeMap;

use scantling_finding::{Finding, Place, Severity, codes};
use scantling_yaml::{Node, YamlError};

use crate::files::Format;
use crate::find::{Finder, Scope};
use crate::scan::Text;
use crate::source::{File, Source};
use crate::trail::Setting;

/// How to look.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Values of variables and parameters that are known from elsewhere, by name.
    pub values: BTreeMap<String, String>,
}

/// What a set of files refers to.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// What was found, by file and in the order in which it is written.
    pub candidates: Vec<Candidate>,
    /// What is wrong or in doubt.
    pub findings: Vec<Finding>,
    /// The documents of the YAML and JSON files.
    pub documents: Vec<FileDocument>,
}

/// A document of a file.
#[derive(Debug, Clone)]
pub struct FileDocument {
    /// The file's path.
    pub file: String,
    /// The document's number in the file, from 0.
    pub index: usize,
    /// The object that the document is, as `Deployment ns/name`, if it is one.
    pub object: Option<String>,
    /// Its content.
    pub root: Node,
}

/// Finds what a set of files refers to. The map's keys are paths with `/`, which relate kustomize files to each other.
pub fn discover(files: &BTreeMap<String, Vec<u8>>, options: &Options) -> Discovery {
    let mut finder = Finder::new(options);
    let mut documents = Vec::new();
    for (path, bytes) in files {
        match scantling_yaml::text(bytes) {
            Ok(text) => file(path, bytes, &text, &mut finder, &mut documents),
            Err(error) => {
                let place = Place::file(path, error.line, error.column);
                finder.findings.push(Finding::new(codes::input::NOT_TEXT, error.message, place));
            }
        }
    }
    let Finder { mut candidates, mut findings, given, .. } = finder;
    kustomize::apply(files, &documents, &mut candidates, &mut findings);
    fill::by_chart(&mut candidates, &documents, files);
    fill::by_name(&mut candidates, &given, options);
    fill::unfilled(&candidates, &mut findings);
    Discovery { candidates, findings, documents }
}

fn file(path: &str, bytes: &[u8], text: &str, finder: &mut Finder<'_>, documents: &mut Vec<FileDocument>) {
    let file = File::new(path, text);
    let source = Source::File(&file);
    let scope = Scope { source: &source, object: None, kind: "", outer: "", depth: 0 };
    let setting = Setting::new(None);
    match files::format(path) {
        Format::Documents => match read(&file, bytes, finder) {
            Ok(read) => {
                for (index, root) in read.into_iter().enumerate() {
                    let object = document(&scope, path, &root, finder);
                    documents.push(FileDocument { file: path.to_owned(), index, object, root });
                }
            }
            Err(error) => {
                finder.findings.push(unreadable(
                    &file,
                    &error,
                    path.contains("templates/") && text.contains("{{"),
                ));
                finder.broken_document(&scope, text, &setting);
            }
        },
        Format::Assignments => finder.assignments(&scope, text, &setting),
        Format::Code => finder.script(&scope, text, Text::Code, &setting),
        Format::Dockerfile => finder.dockerfile(&scope, text, &setting),
        Format::Prose => {
            finder.script(&scope, text, Text::Script, &Setting { route: Route::Noted, ..setting });
        }
        Format::Text if lines::is_assignments(text) => finder.assignments(&scope, text, &setting),
        Format::Text => {
            let condition = Some("the text is used".to_owned());
            let setting = Setting { route: Route::SourceText, condition, ..setting };
            finder.script(&scope, text, Text::Script, &setting);
        }
    }
}

/// Looks through one document; a list's items are objects of their own.
fn document(scope: &Scope<'_>, path: &str, root: &Node, finder: &mut Finder<'_>) -> Option<String> {
    let kind = root.get("kind").and_then(Node::as_str);
    if kind.is_some_and(|kind| kind.ends_with("List"))
        && let Some(items) = root.get("items")
    {
        for item in items.items() {
            let name = object_name(item);
            let kind = item.get("kind").and_then(Node::as_str).unwrap_or_default();
            finder.object(&Scope { object: name.as_deref(), kind, ..*scope }, item);
        }
        return kind.map(str::to_owned);
    }
    let name = object_name(root);
    let kind = if files::is_kustomization(path) { "Kustomization" } else { kind.unwrap_or_default() };
    finder.object(&Scope { object: name.as_deref(), kind, ..*scope }, root);
    name
}

/// An object's kind, namespace and name, as `Deployment ns/name`; of a catalog's entry, its schema and name.
fn object_name(root: &Node) -> Option<String> {
    let text = |node: &Node, key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
    if let Some(schema) = text(root, "schema") {
        return Some(format!("{schema} {}", text(root, "name").unwrap_or_default()).trim_end().to_owned());
    }
    let kind = text(root, "kind")?;
    let metadata = root.get("metadata");
    let name = metadata.and_then(|metadata| text(metadata, "name"));
    let namespace =
        metadata.and_then(|metadata| text(metadata, "namespace")).filter(|namespace| !namespace.is_empty());
    Some(match (namespace, name) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        (_, None) => kind,
    })
}

fn read(file: &File<'_>, bytes: &[u8], finder: &mut Finder<'_>) -> Result<Vec<Node>, YamlError> {
    let (documents, duplicates) = scantling_yaml::parse_tolerant(bytes)?;
    for duplicate in duplicates {
        let owner = documents.iter().find(|document| {
            document.span.start <= duplicate.span.start && duplicate.span.start < document.span.end
        });
        let place = Place {
            object: owner.and_then(|document| object_name(&document.root)),
            field: duplicate.path.clone(),
            ..file.place(duplicate.span.start, duplicate.span.end)
        };
        let mut finding = Finding::new(codes::input::DUPLICATE_KEY, duplicate.message, place);
        if let Some(first) = duplicate.first {
            finding = finding.with_related(file.place(first.start, first.end), "first given here");
        }
        finder.findings.push(finding);
    }
    Ok(documents.into_iter().map(|document| document.root).collect())
}

/// `template`: it is a template of a Helm chart, which is no YAML before it is rendered.
fn unreadable(file: &File<'_>, error: &YamlError, template: bool) -> Finding {
    let place = file.place(error.span.start, error.span.end);
    let finding = Finding::new(codes::input::UNREADABLE_YAML, error.message.clone(), place);
    if template {
        return finding
            .with_severity(Severity::Warning)
            .with_cause("the file is a template, and was looked through line by line only")
            .with_remedy("render the chart and give the result to the release");
    }
    match &error.hint {
        Some(hint) => finding.with_remedy(hint.clone()),
        None => finding,
    }
}
