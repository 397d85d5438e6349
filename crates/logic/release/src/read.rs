//! Reading a release from its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use scantling_finding::{Finding, Place, codes};
use scantling_yaml::{Document, Node};

use crate::format::{API_VERSION, KIND, RELEASE_FILE, ReleaseFile};
use crate::object::{self, Item, ObjectReader, ReleaseObject, Scopes};
use crate::source::Source;
use crate::substitution::Substitutions;
use crate::{LOCK_FILE, Ownership, Release, build, generated, leftover, references, stream};

/// Files by their path relative to the release, with `/` between the parts.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// Why a folder cannot be read as a release: at least one finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong, each with its place.
    pub findings: Vec<Finding>,
}

impl std::error::Error for Unreadable {}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.findings.first() else { return f.write_str("the release cannot be read") };
        write!(f, "{}: {}", first.place, first.message)?;
        match self.findings.len() {
            0 | 1 => Ok(()),
            more => write!(f, " (and {} more)", more - 1),
        }
    }
}

/// What `release.yaml` says, or what stands for it in a plain folder.
struct Plan {
    file: ReleaseFile,
    place: Place,
    strict: bool,
}

impl Release {
    /// Reads a release: the files beside a `release.yaml`, or any files, as a release without name, version and rules.
    ///
    /// # Errors
    /// When `release.yaml` or, beside one, a manifest cannot be read.
    pub fn read(tree: &Tree) -> Result<Self, Unreadable> {
        Self::read_at("", tree)
    }

    /// The same, for a tree that was read from `root`: places name files with it.
    pub fn read_at(root: &str, tree: &Tree) -> Result<Self, Unreadable> {
        let mut findings = Vec::new();
        let declared = match tree.get(RELEASE_FILE) {
            Some(bytes) => Some(declaration(&shown(root, RELEASE_FILE), bytes)?),
            None => None,
        };
        let (plan, release_source) = match declared {
            Some((plan, source)) => (plan, Some(source)),
            None => (anonymous(root), None),
        };
        let manifests = select(tree, &plan.file.manifests);
        let sources = select(tree, &plan.file.sources);
        if let Some((source, root_node)) = &release_source {
            findings.extend(missing(source, root_node, tree));
        }
        let files = texts(root, tree, &manifests, plan.strict, &mut findings);
        if plan.strict && !findings.is_empty() {
            return Err(Unreadable { findings });
        }
        let ReleaseFile { name, version, follows, namespace, catalogue, fallbacks, environments, .. } =
            plan.file.clone();
        let substitutions = Substitutions::new(plan.file.substitutions.clone());
        let mut release = Release {
            name,
            version: plan.strict.then_some(version),
            follows,
            namespace,
            objects: Vec::new(),
            references: Vec::new(),
            generated: plan.file.generated.clone(),
            ownership: Ownership::default(),
            catalogue,
            streams: Vec::new(),
            builds: Vec::new(),
            environments,
            findings,
            place: plan.place.clone(),
        };
        if let Some((source, node)) = &release_source {
            release.ownership = rules(source, node, &plan.file)?;
        }
        read_objects(&mut release, &plan, &files, &substitutions);
        references::read(&mut release, root, tree, &manifests, &sources, &fallbacks, &substitutions);
        if let Some((source, node)) = &release_source {
            for (number, entry) in substitutions.unused() {
                let at = at(source, node, &format!("/substitutions/{number}/placeholder"));
                let message = format!("no manifest holds the placeholder {:?}", entry.placeholder);
                release.findings.push(Finding::new(codes::release::SUBSTITUTION_UNUSED, message, at));
            }
        }
        distinct(&mut release.findings);
        Ok(release)
    }
}

/// Keeps the first of several findings of one code at one place: fields are looked at from more than one side.
fn distinct(findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    findings.retain(|finding| {
        let at =
            references::position(&finding.place).map(|(path, line, column)| (path.to_owned(), line, column));
        at.is_none_or(|at| seen.insert((finding.code, at)))
    });
}

/// A path of a tree that was read from `root`, as places name it.
pub fn shown(root: &str, path: &str) -> String {
    match root.trim_end_matches('/') {
        "" if root.starts_with('/') => format!("/{path}"),
        "" | "." => path.to_owned(),
        root => format!("{root}/{path}"),
    }
}

fn anonymous(root: &str) -> Plan {
    let place = Place::file(if root.is_empty() { "." } else { root }, 1, 1);
    Plan { file: ReleaseFile::anonymous(), place, strict: false }
}

type Declared<'t> = (Plan, (Source<'t>, Node));

/// Reads `release.yaml` itself.
fn declaration<'t>(path: &str, bytes: &'t [u8]) -> Result<Declared<'t>, Unreadable> {
    let refuse = |finding: Finding| Unreadable { findings: vec![finding] };
    let bad = |message: String, place| Finding::new(codes::release::BAD_RELEASE_FILE, message, place);
    let source = Source::new(path.to_owned(), bytes).map_err(|finding| refuse(*finding))?;
    let documents = source.documents().map_err(|finding| refuse(*finding))?;
    let mut documents = documents.into_iter();
    let (Some(document), None) = (documents.next(), documents.next()) else {
        let message = "a release file holds exactly one document".to_owned();
        return Err(refuse(bad(message, source.start())));
    };
    let root = document.root;
    for (field, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        let node = root.get(field);
        if node.and_then(Node::as_str) != Some(wanted) {
            let place = node.map_or_else(|| source.start(), |node| source.value_place(node));
            let message = match node {
                Some(_) => format!("{field} must be {wanted}"),
                None => format!("{field} is missing; it must be {wanted}"),
            };
            return Err(refuse(bad(message, place).with_remedy(format!("write `{field}: {wanted}`"))));
        }
    }
    let file: ReleaseFile = scantling_yaml::decode(&root).map_err(|error| {
        let finding = bad(error.message.clone(), source.place(error.span).with_field(error.path.clone()));
        refuse(match error.hint {
            Some(hint) => finding.with_remedy(hint),
            None => finding,
        })
    })?;
    let findings = faults(&source, &root, &file);
    if !findings.is_empty() {
        return Err(Unreadable { findings });
    }
    let place = root.get("name").map_or_else(|| source.start(), |node| source.value_place(node));
    Ok((Plan { file, place, strict: true }, (source, root)))
}

/// The place of what a pointer leads to, or of what comes nearest above it.
fn at(source: &Source<'_>, root: &Node, pointer: &str) -> Place {
    let mut pointer = pointer;
    loop {
        if let Some(node) = root.pointer(pointer) {
            return source.value_place(node);
        }
        match pointer.rfind('/') {
            Some(end) => pointer = pointer.get(..end).unwrap_or_default(),
            None => return source.start(),
        }
    }
}

/// What is wrong with a release file although it decodes.
fn faults(source: &Source<'_>, root: &Node, file: &ReleaseFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut bad = |pointer: &str, message: String| {
        findings.push(Finding::new(codes::release::BAD_RELEASE_FILE, message, at(source, root, pointer)));
    };
    if !is_name(&file.name) {
        bad("/name", format!("{:?} is no name: write lower-case letters, digits and -", file.name));
    }
    if file.namespace.as_deref().is_some_and(|namespace| !is_name(namespace)) {
        bad("/namespace", "not the name of a namespace".to_owned());
    }
    for (number, version) in file.follows.iter().enumerate() {
        if *version >= file.version {
            bad(
                &format!("/follows/{number}"),
                format!("{} cannot follow {version}, which is not older", file.version),
            );
        }
    }
    for (list, paths) in [("manifests", &file.manifests), ("sources", &file.sources)] {
        for (number, path) in paths.iter().enumerate() {
            if path.starts_with('/') || path.contains('\\') || path.split('/').any(|part| part == "..") {
                let message = format!("{path:?} leads out of the release; write a path below it, with /");
                bad(&format!("/{list}/{number}"), message);
            }
        }
    }
    if file.manifests.is_empty() {
        bad("/manifests", "no manifests: there is nothing to apply".to_owned());
    }
    for (number, substitution) in file.substitutions.iter().enumerate() {
        if substitution.placeholder.trim().is_empty() {
            bad(&format!("/substitutions/{number}/placeholder"), "an empty placeholder".to_owned());
        }
        if substitution.value.trim().is_empty() {
            bad(
                &format!("/substitutions/{number}/value"),
                format!("{:?} would be replaced by nothing", substitution.placeholder),
            );
        }
    }
    for (number, entry) in file.environments.iter().enumerate() {
        if entry.registries.is_empty() {
            bad(
                &format!("/environments/{number}/registries"),
                "no registry: nothing could be pulled".to_owned(),
            );
        }
    }
    if let Some(catalogue) = &file.catalogue
        && !catalogue.image_stream_label.contains('=')
    {
        bad("/catalogue/imageStreamLabel", "write the label as key=value".to_owned());
    }
    for fault in generated::check(&file.generated) {
        bad(&format!("/generated/{}/{}", fault.number, fault.field), fault.reason);
    }
    findings
}

/// A DNS label, which names of namespaces are.
fn is_name(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn rules(source: &Source<'_>, root: &Node, file: &ReleaseFile) -> Result<Ownership, Unreadable> {
    Ownership::new(file.ownership.clone()).map_err(|(number, error)| {
        let place = at(source, root, &format!("/ownership/{number}/field"));
        Unreadable {
            findings: vec![Finding::new(codes::release::BAD_RELEASE_FILE, error.to_string(), place)],
        }
    })
}

/// The files that are meant by a list of paths, in order, each once.
fn select<'t>(tree: &'t Tree, paths: &[String]) -> BTreeSet<&'t str> {
    tree.keys()
        .map(String::as_str)
        .filter(|file| *file != RELEASE_FILE && *file != LOCK_FILE)
        .filter(|file| paths.iter().any(|path| below(file, path)))
        .collect()
}

fn below(file: &str, path: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    path.is_empty()
        || path == "."
        || file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Paths of the release file that name nothing.
fn missing(source: &Source<'_>, root: &Node, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let listed = ["manifests", "sources"].into_iter().flat_map(|list| {
        root.get(list)
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(|node| Some((node, node.as_str()?)))
    });
    let fallbacks = root.get("fallbacks").map(Node::items).unwrap_or_default();
    let files = fallbacks
        .iter()
        .filter_map(|entry| entry.get("file"))
        .filter_map(|node| Some((node, node.as_str()?)));
    for (node, path) in listed.chain(files) {
        if !tree.keys().any(|file| below(file, path)) {
            let message = format!("{path} is not in the release");
            let mut finding = Finding::new(codes::release::FILE_MISSING, message, source.value_place(node));
            if let Some(near) = scantling_yaml::nearest(path, tree.keys().map(String::as_str)) {
                finding = finding.with_remedy(format!("did you mean {near}?"));
            }
            findings.push(finding);
        }
    }
    findings
}

/// Files whose documents are objects.
fn is_manifest(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("yaml" | "yml" | "json"))
}

/// The manifests, parsed. What cannot be read becomes a finding.
fn texts<'t>(
    root: &str,
    tree: &'t Tree,
    files: &BTreeSet<&str>,
    strict: bool,
    findings: &mut Vec<Finding>,
) -> Vec<(Source<'t>, Vec<Document>)> {
    let mut parsed = Vec::new();
    for file in files.iter().filter(|file| is_manifest(file)) {
        let Some(bytes) = tree.get(*file) else { continue };
        let read = Source::new(shown(root, file), bytes).and_then(|source| {
            let documents = if strict { source.documents()? } else { source.documents_if_readable() };
            Ok((source, documents))
        });
        match read {
            Ok(read) => parsed.push(read),
            // In a plain folder the search for references reports what it cannot read.
            Err(finding) if strict => findings.push(*finding),
            Err(_) => {}
        }
    }
    parsed
}

fn read_objects(
    release: &mut Release,
    plan: &Plan,
    files: &[(Source<'_>, Vec<Document>)],
    substitutions: &Substitutions,
) {
    let items: Vec<(&Source<'_>, Item<'_>)> = files
        .iter()
        .flat_map(|(source, documents)| documents.iter().map(move |document| (source, document)))
        .flat_map(|(source, document)| {
            object::items(&document.root).into_iter().map(move |item| (source, item))
        })
        .collect();
    let scopes = Scopes::of(items.iter().map(|(_, item)| item.node));
    let namespace = release.namespace.clone();
    let reader =
        ObjectReader { scopes: &scopes, substitutions, namespace: namespace.as_deref(), strict: plan.strict };
    let mut objects: Vec<ReleaseObject> = Vec::new();
    for (source, item) in items {
        let Some(object) = reader.read(source, item, &mut release.findings) else { continue };
        release.streams.extend(stream::read(
            source,
            item,
            &object,
            release.catalogue.as_ref(),
            &mut release.findings,
        ));
        release.builds.extend(build::read(source, item, &object));
        if plan.strict {
            let left = leftover::find(source, item, &object, substitutions, &plan.file.generated);
            release.findings.extend(left);
        }
        objects.push(object);
    }
    release.findings.extend(object::duplicates(&objects));
    objects.sort_by_key(|object| object.wave);
    release.objects = objects;
}
