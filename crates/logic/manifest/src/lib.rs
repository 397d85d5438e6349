//! Documents to references.
//!
//! [`discover`] looks at every string of every file, not at fields called `image`, opens the documents inside strings, and
//! says of everything that is a reference or looks like one what it is, where it stands, how the cluster comes to use it
//! and under which condition. What cannot be classified becomes a finding.

mod candidate;
mod source;

pub use candidate::{Candidate, Filling, Part, Role, Route, What};

use std::collections::BTreeMap;

use scantling_finding::{Finding, Place, codes};
use scantling_yaml::{Node, YamlError};
use source::File;

/// How to look.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Values of variables and parameters that are known from elsewhere, by name.
    pub values: BTreeMap<String, String>,
}

/// What a set of files refers to.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// What was found, by file and place.
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
pub fn discover(files: &BTreeMap<String, Vec<u8>>, _options: &Options) -> Discovery {
    let mut discovery = Discovery::default();
    for (path, bytes) in files {
        let Ok(text) = scantling_yaml::text(bytes) else { continue };
        let file = File::new(path, &text);
        if let Err(error) = read(&file, bytes, &mut discovery) {
            discovery.findings.push(unreadable(&file, &error));
        }
    }
    discovery
}

fn read(file: &File<'_>, bytes: &[u8], discovery: &mut Discovery) -> Result<(), YamlError> {
    let (documents, duplicates) = scantling_yaml::parse_tolerant(bytes)?;
    for duplicate in duplicates {
        let place =
            Place { field: duplicate.path.clone(), ..file.place(duplicate.span.start, duplicate.span.end) };
        let mut finding = Finding::new(codes::input::DUPLICATE_KEY, duplicate.message, place);
        if let Some(first) = duplicate.first {
            finding = finding.with_related(file.place(first.start, first.end), "first given here");
        }
        discovery.findings.push(finding);
    }
    for (index, document) in documents.into_iter().enumerate() {
        discovery.documents.push(FileDocument {
            file: file.path().to_owned(),
            index,
            object: None,
            root: document.root,
        });
    }
    Ok(())
}

fn unreadable(file: &File<'_>, error: &YamlError) -> Finding {
    let place = file.place(error.span.start, error.span.end);
    let finding = Finding::new(codes::input::UNREADABLE_YAML, error.message.clone(), place);
    match &error.hint {
        Some(hint) => finding.with_remedy(hint.clone()),
        None => finding,
    }
}
