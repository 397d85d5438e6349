//! Reading a release from its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use scantling_api::ObjectKey;
use scantling_finding::{Finding, Place, codes};
use scantling_yaml::{Document, Node};

use crate::acceptable;
use crate::faults::{faults, normal};
use crate::format::{API_VERSION, KIND, ManifestEntry, Operator, RELEASE_FILE, ReleaseFile};
use crate::object::{self, Item, ObjectReader, ReleaseObject, Scopes};
use crate::settings::{self, Chosen, Settings};
use crate::source::Source;
use crate::substitution::Substitutions;
use crate::{
    LOCK_FILE, Ownership, Release, Requirement, Version, build, leftover, offer, references, stream,
};

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
    /// When `release.yaml` or, beside one, a manifest cannot be read, and when the settings are not for this release.
    pub fn read(tree: &Tree, settings: &Settings) -> Result<Self, Unreadable> {
        Self::read_at("", tree, settings)
    }

    /// The same, for a tree that was read from `root`: places name files with it.
    pub fn read_at(root: &str, tree: &Tree, settings: &Settings) -> Result<Self, Unreadable> {
        Self::read_with(root, tree, settings, false)
    }

    /// The same for the release before another one, with the settings of that one: what it does not know of them is left out.
    pub fn read_previous_at(root: &str, tree: &Tree, settings: &Settings) -> Result<Self, Unreadable> {
        Self::read_with(root, tree, settings, true)
    }

    fn read_with(root: &str, tree: &Tree, settings: &Settings, lenient: bool) -> Result<Self, Unreadable> {
        let mut findings = Vec::new();
        let declared = match tree.get(RELEASE_FILE) {
            Some(bytes) => Some(declaration(&shown(root, RELEASE_FILE), bytes)?),
            None => None,
        };
        let (plan, release_source) = match declared {
            Some((plan, source)) => (plan, Some(source)),
            None => (anonymous(root), None),
        };
        let chosen = match &release_source {
            Some((source, node)) => settings::resolve(settings, &plan.file, source, node, lenient),
            None if lenient => Ok(Chosen::default()),
            None => settings::for_folder(settings, &plan.place),
        };
        let chosen = chosen.map_err(|findings| Unreadable { findings })?;
        let manifests = manifests(tree, &plan.file.manifests, &chosen);
        let sources = select(tree, &plan.file.sources);
        if let Some((source, root_node)) = &release_source {
            findings.extend(missing(source, root_node, tree));
        }
        let files = texts(root, tree, &manifests, plan.strict, &mut findings);
        if plan.strict && !findings.is_empty() {
            return Err(Unreadable { findings });
        }
        let ReleaseFile {
            name,
            version,
            follows,
            requires,
            namespace,
            components,
            catalogue,
            fallbacks,
            mut environments,
            ..
        } = plan.file.clone();
        if let Some(only) = &settings.environment {
            environments.retain(|environment| environment.name == *only);
        }
        let registry = chosen.registry.as_ref().map(|registry| registry.value.clone());
        let filled = plan.file.substitutions.iter().cloned().chain(chosen.registry.clone());
        let substitutions = Substitutions::new(filled.collect());
        let mut release = Release {
            name,
            version: plan.strict.then_some(version),
            follows,
            requires,
            namespace,
            registry,
            components,
            selected: chosen.components.clone(),
            operator: None,
            objects: Vec::new(),
            references: Vec::new(),
            generated: plan.file.generated.clone(),
            ownership: Ownership::default(),
            catalogue,
            images: Vec::new(),
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
            let mut faults = Vec::new();
            release.images = offer::read(source, node, &plan.file, &chosen, &substitutions, &mut faults);
            release.references.extend(release.images.iter().map(offer::OfferedImage::used));
            if let Some(operator) = &plan.file.operator {
                match operator_key(operator, &release) {
                    Ok(key) => release.operator = Some(key),
                    Err(message) => {
                        let place = at(source, node, "/operator/name");
                        faults.push(Finding::new(codes::release::BAD_RELEASE_FILE, message, place));
                    }
                }
            }
            if !faults.is_empty() {
                return Err(Unreadable { findings: faults });
            }
            for (number, entry) in substitutions.unused() {
                let pointer = match plan.file.substitutions.get(number) {
                    Some(_) => format!("/substitutions/{number}/placeholder"),
                    None => "/registry/placeholder".to_owned(),
                };
                let at = at(source, node, &pointer);
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
    if let Some(finding) = other_program(&source, &root) {
        return Err(refuse(finding));
    }
    let file: ReleaseFile = scantling_yaml::decode(&root).map_err(|error| {
        let finding = bad(error.message.clone(), source.place(error.span).with_field(error.path.clone()));
        refuse(match error.hint {
            Some(hint) => finding.with_remedy(hint),
            // A version such as 2026.1 is a number to YAML.
            None if error.message.ends_with("expected a string") => finding.with_remedy("put it in quotes"),
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

/// A release for another version of this program may have fields that this one does not know: this is said first.
fn other_program(source: &Source<'_>, root: &Node) -> Option<Finding> {
    let node = root.get("requires")?;
    let requirement = Requirement::parse(node.as_str()?).ok()?;
    let own = Version::parse(env!("CARGO_PKG_VERSION")).ok()?;
    if requirement.holds(&own) {
        return None;
    }
    let message = format!("the release requires Scantling {requirement}, and this is {own}");
    Some(Finding::new(codes::release::OTHER_SCANTLING, message, source.value_place(node)))
}

/// The object that is the operator.
fn operator_key(operator: &Operator, release: &Release) -> Result<ObjectKey, String> {
    let Operator { kind, name, namespace } = operator;
    let found: Vec<&ObjectKey> = release
        .objects
        .iter()
        .map(|object| &object.key)
        .filter(|key| key.kind == *kind && key.name == *name)
        .filter(|key| namespace.is_none() || key.namespace == *namespace)
        .collect();
    match found.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(format!("the release brings no {kind} {name}")),
        _ => Err(format!("the release brings several of {kind} {name}; write the namespace")),
    }
}

/// The place of what a pointer leads to, or of what comes nearest above it.
pub(crate) fn at(source: &Source<'_>, root: &Node, pointer: &str) -> Place {
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
    files(tree).filter(|file| paths.iter().any(|path| below(file, path))).collect()
}

/// The files that are applied with the components chosen. Of several entries that cover a file the longest path decides.
fn manifests<'t>(tree: &'t Tree, entries: &[ManifestEntry], chosen: &Chosen) -> BTreeSet<&'t str> {
    files(tree)
        .filter(|file| {
            entries
                .iter()
                .filter(|entry| below(file, &entry.path))
                .max_by_key(|entry| normal(&entry.path).len())
                .is_some_and(|entry| chosen.has(entry.component.as_ref()))
        })
        .collect()
}

/// The files of a release that are not about it.
fn files(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.keys().map(String::as_str).filter(|file| *file != RELEASE_FILE && *file != LOCK_FILE)
}

fn below(file: &str, path: &str) -> bool {
    let path = normal(path);
    path.is_empty() || file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Paths of the release file that name nothing.
fn missing(source: &Source<'_>, root: &Node, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let listed = ["manifests", "sources"].into_iter().flat_map(|list| {
        root.get(list)
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .map(|node| node.get("path").unwrap_or(node))
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
            release.findings.extend(acceptable::faults(&object));
        }
        objects.push(object);
    }
    release.findings.extend(object::duplicates(&objects));
    objects.sort_by_key(|object| object.wave);
    release.objects = objects;
}
