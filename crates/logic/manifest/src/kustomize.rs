//! What kustomizations put in the place of what: `images`, `replacements`, `vars`, generated config maps.

use std::collections::{BTreeMap, BTreeSet};

use scantling_finding::{Finding, Place, codes};
use scantling_yaml::{Node, NodeKind};

use crate::FileDocument;
use crate::candidate::{Candidate, Filling, Route, What};
use crate::files::is_kustomization;
use crate::lines;
use crate::source::File;

/// Applies every kustomization among the files to what was found in the files that it covers.
pub(crate) fn apply(
    files: &BTreeMap<String, Vec<u8>>,
    documents: &[FileDocument],
    candidates: &mut [Candidate],
    findings: &mut Vec<Finding>,
) {
    let all: BTreeMap<&str, &Node> = documents
        .iter()
        .filter(|document| is_kustomization(&document.file))
        .map(|document| (document.file.as_str(), &document.root))
        .collect();
    for (path, root) in &all {
        let mut covered = BTreeSet::new();
        let complete = cover(path, &all, files, &mut covered, 0);
        let kustomization = Kustomization { path, root, files, documents, covered, complete };
        kustomization.images(candidates);
        kustomization.replacements(candidates, findings);
    }
}

/// Bases of bases are followed this deep.
const BASES: usize = 16;

/// Collects the files that a kustomization builds from. False if some of them are not among the files.
fn cover<'f>(
    path: &str,
    all: &BTreeMap<&'f str, &'f Node>,
    files: &'f BTreeMap<String, Vec<u8>>,
    covered: &mut BTreeSet<&'f str>,
    depth: usize,
) -> bool {
    let Some((own, root)) = all.get_key_value(path) else { return false };
    if depth > BASES {
        return false;
    }
    if !covered.insert(own) {
        return true;
    }
    let mut complete = true;
    for list in ["resources", "bases", "components", "configurations", "crds"] {
        for entry in root.get(list).map(Node::items).unwrap_or_default() {
            let Some(target) = entry.as_str().and_then(|entry| join(path, entry)) else {
                complete = false;
                continue;
            };
            if let Some((file, _)) = files.get_key_value(&target) {
                covered.insert(file);
                continue;
            }
            let inner =
                ["kustomization.yaml", "kustomization.yml", "Kustomization"].into_iter().find_map(|name| {
                    let inner = if target.is_empty() { name.to_owned() } else { format!("{target}/{name}") };
                    all.contains_key(inner.as_str()).then_some(inner)
                });
            complete &= inner.is_some_and(|inner| cover(&inner, all, files, covered, depth + 1));
        }
    }
    complete
}

/// A path that is written in the file `from`, as a key of the files' map. None if it leads out of the tree.
fn join(from: &str, path: &str) -> Option<String> {
    if path.contains("://") {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

struct Kustomization<'f> {
    path: &'f str,
    root: &'f Node,
    files: &'f BTreeMap<String, Vec<u8>>,
    documents: &'f [FileDocument],
    covered: BTreeSet<&'f str>,
    /// Whether everything that it builds from is among the files.
    complete: bool,
}

/// A value of a generated or written config map.
struct Value {
    text: String,
    place: Place,
}

impl Kustomization<'_> {
    /// The place of a node of a file.
    fn place(&self, path: &str, node: &Node) -> Place {
        let text =
            self.files.get(path).and_then(|bytes| scantling_yaml::text(bytes).ok()).unwrap_or_default();
        File::new(path, &text).place(node.span.start, node.span.end)
    }

    /// Fills the images that the entries of `images` name.
    fn images(&self, candidates: &mut [Candidate]) {
        let mut entries = Vec::new();
        for candidate in candidates.iter() {
            let own = candidate.place.file.as_ref().is_some_and(|file| file.path == self.path);
            if let (true, Route::Parameter(name), Some(reference)) =
                (own, &candidate.route, candidate.reference())
            {
                entries.push((name.clone(), reference.clone(), candidate.place.clone()));
            }
        }
        for candidate in candidates.iter_mut() {
            let inside = candidate
                .place
                .file
                .as_ref()
                .is_some_and(|file| file.path != self.path && self.covered.contains(file.path.as_str()));
            let What::Reference { reference } = &candidate.what else { continue };
            let written = reference.written();
            let Some((name, new, place)) = entries.iter().find(|(name, _, _)| inside && is_of(written, name))
            else {
                continue;
            };
            let by = format!("image {name} of {}", self.path);
            if reference.domain().is_none() && !written.contains('/') {
                let filling = Filling { by, value: new.to_string(), place: place.clone() };
                candidate.what = What::Placeholder { names: vec![name.clone()], filled_by: vec![filling] };
            } else {
                candidate.condition =
                    Some(format!("{} is not applied, which puts {new} in its place", self.path));
            }
        }
    }

    fn replacements(&self, candidates: &mut [Candidate], findings: &mut Vec<Finding>) {
        let maps = self.config_maps();
        let mut used: BTreeSet<(String, String)> = BTreeSet::new();
        for var in self.root.get("vars").map(Node::items).unwrap_or_default() {
            let text = |pointer: &str| var.pointer(pointer).and_then(Node::as_str).unwrap_or_default();
            let (map, key) = (text("/objref/name"), text("/fieldref/fieldpath").trim_start_matches("data."));
            used.insert((map.to_owned(), key.to_owned()));
            if let Some(value) = maps.get(map).and_then(|map| map.get(key)) {
                self.fill_named(candidates, text("/name"), value);
            }
        }
        for replacement in self.root.get("replacements").map(Node::items).unwrap_or_default() {
            let text =
                |pointer: &str| replacement.pointer(pointer).and_then(Node::as_str).unwrap_or_default();
            let (map, field) = (text("/source/name"), text("/source/fieldPath"));
            let source = if text("/source/kind") == "ConfigMap" { field.strip_prefix("data.") } else { None };
            let value = source.and_then(|key| maps.get(map).and_then(|map| map.get(key)));
            if let (Some(key), Some(map_entries)) = (source, maps.get(map)) {
                used.insert((map.to_owned(), key.to_owned()));
                if !map_entries.contains_key(key)
                    && let Some(node) = replacement.pointer("/source/fieldPath")
                {
                    let message = format!("the config map {map} has no key {key}");
                    findings.push(Finding::new(
                        codes::references::MISSING_SOURCE,
                        message,
                        self.place(self.path, node),
                    ));
                }
            }
            // A value that is read from a file that is not at hand fills too, whatever it is.
            let unknown = Value { text: String::new(), place: self.place(self.path, replacement) };
            let lacking = source.is_some() && maps.contains_key(map);
            let value = if lacking { value } else { value.or(Some(&unknown)) };
            for target in replacement.get("targets").map(Node::items).unwrap_or_default() {
                self.target(target, value, candidates, findings);
            }
        }
        if self.complete {
            self.unused(&maps, &used, candidates, findings);
        }
    }

    /// Fills what a replacement writes to.
    fn target(
        &self,
        target: &Node,
        value: Option<&Value>,
        candidates: &mut [Candidate],
        findings: &mut Vec<Finding>,
    ) {
        let select = |key: &str| target.get("select").and_then(|select| select.get(key)?.as_str());
        for document in self.documents.iter().filter(|document| self.covered.contains(document.file.as_str()))
        {
            let text = |pointer: &str| document.root.pointer(pointer).and_then(Node::as_str);
            let selected =
                |key: &str, pointer: &str| select(key).is_none_or(|wanted| text(pointer) == Some(wanted));
            if select("kind").is_none() && select("name").is_none() {
                continue;
            }
            if !selected("kind", "/kind")
                || !selected("name", "/metadata/name")
                || !selected("namespace", "/metadata/namespace")
            {
                continue;
            }
            for path in target.get("fieldPaths").map(Node::items).unwrap_or_default() {
                let Some(written) = path.as_str() else { continue };
                match follow(&document.root, written) {
                    Ok(nodes) => {
                        for node in nodes {
                            let Some(value) = value else { continue };
                            self.fill_at(candidates, &document.file, node, value);
                        }
                    }
                    Err(Missing { list, index }) => {
                        let message = format!(
                            "{written} leads to element {index}, and the list has {}",
                            list.items().len()
                        );
                        let place = self.place(self.path, path);
                        let related = self.place(&document.file, list);
                        let related = match &document.object {
                            Some(object) => related.with_object(object.clone()),
                            None => related,
                        };
                        findings.push(
                            Finding::new(codes::references::INDEX_OUT_OF_RANGE, message, place)
                                .with_related(related, "the list"),
                        );
                    }
                }
            }
        }
    }

    fn fill_at(&self, candidates: &mut [Candidate], file: &str, node: &Node, value: &Value) {
        for candidate in candidates {
            let here = candidate.place.file.as_ref().is_some_and(|place| {
                place.path == file
                    && place.span.is_some_and(|(start, end)| node.span.start <= start && end <= node.span.end)
            });
            if let (true, What::Placeholder { filled_by, .. }) = (here, &mut candidate.what) {
                let by = format!("replacement of {}", self.path);
                filled_by.push(Filling { by, value: value.text.clone(), place: value.place.clone() });
            }
        }
    }

    fn fill_named(&self, candidates: &mut [Candidate], name: &str, value: &Value) {
        for candidate in candidates {
            let inside =
                candidate.place.file.as_ref().is_some_and(|file| self.covered.contains(file.path.as_str()));
            if let (true, What::Placeholder { names, filled_by }) = (inside, &mut candidate.what)
                && names.iter().any(|placeholder| placeholder == name)
            {
                let by = format!("variable of {}", self.path);
                filled_by.push(Filling { by, value: value.text.clone(), place: value.place.clone() });
            }
        }
    }

    /// The values of the config maps that the kustomization generates or covers, by name and key. A map of which a file
    /// is not among the files is left out: nothing can be said about what it lacks.
    fn config_maps(&self) -> BTreeMap<String, BTreeMap<String, Value>> {
        let mut maps: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        for document in self.documents.iter().filter(|document| self.covered.contains(document.file.as_str()))
        {
            if document.root.get("kind").and_then(Node::as_str) != Some("ConfigMap") {
                continue;
            }
            let Some(name) = document.root.pointer("/metadata/name").and_then(Node::as_str) else { continue };
            let map = maps.entry(name.to_owned()).or_default();
            for entry in document.root.get("data").map(Node::entries).unwrap_or_default() {
                if let Some(text) = entry.value.as_str() {
                    let place = self.place(&document.file, &entry.value);
                    map.insert(entry.key.clone(), Value { text: text.to_owned(), place });
                }
            }
        }
        let generators = self.covered.iter().filter(|path| is_kustomization(path)).filter_map(|path| {
            let document = self.documents.iter().find(|document| document.file == **path)?;
            Some((*path, document.root.get("configMapGenerator")?.items()))
        });
        for (path, generators) in generators {
            for generator in generators {
                self.generate(path, generator, &mut maps);
            }
        }
        maps
    }

    fn generate(&self, path: &str, generator: &Node, maps: &mut BTreeMap<String, BTreeMap<String, Value>>) {
        let Some(name) = generator.get("name").and_then(Node::as_str) else { return };
        let mut map = BTreeMap::new();
        let env = generator.get("env").into_iter();
        for written in generator.get("envs").map(Node::items).unwrap_or_default().iter().chain(env) {
            let file = written.as_str().and_then(|written| join(path, written));
            let Some((file, bytes)) = file.and_then(|file| self.files.get_key_value(&file)) else { return };
            let Ok(text) = scantling_yaml::text(bytes) else { return };
            let lines = File::new(file, &text);
            for line in lines::assignments(&text) {
                let place = lines.place(line.start, line.start + line.value.len());
                map.insert(line.key.to_owned(), Value { text: line.value.to_owned(), place });
            }
        }
        for literal in generator.get("literals").map(Node::items).unwrap_or_default() {
            if let Some((key, value)) = literal.as_str().and_then(|literal| literal.split_once('=')) {
                map.insert(
                    key.to_owned(),
                    Value { text: value.to_owned(), place: self.place(path, literal) },
                );
            }
        }
        if generator.get("files").is_none() {
            maps.entry(name.to_owned()).or_default().extend(map);
        }
    }

    /// Parameters with images that no replacement of this kustomization reads, where others of the same map are read.
    fn unused(
        &self,
        maps: &BTreeMap<String, BTreeMap<String, Value>>,
        used: &BTreeSet<(String, String)>,
        candidates: &[Candidate],
        findings: &mut Vec<Finding>,
    ) {
        for (name, map) in maps {
            if !used.iter().any(|(map, _)| map == name) {
                continue;
            }
            for (key, value) in map {
                let named = candidates
                    .iter()
                    .any(|candidate| candidate.place.file == value.place.file && candidate.is_pulled());
                let read = used.contains(&(name.clone(), key.clone()))
                    || candidates.iter().any(|candidate| {
                        matches!(&candidate.what, What::Placeholder { names, .. } if names.contains(key) && !matches!(&candidate.route, Route::Parameter(own) if own == key))
                    });
                if named && !read {
                    let message = format!("no replacement of {} reads {key}", self.path);
                    findings.push(Finding::new(
                        codes::references::UNUSED_PARAMETER,
                        message,
                        value.place.clone(),
                    ));
                }
            }
        }
    }
}

/// Whether a reference is of the image that a kustomize entry names: the name alone, or with tag and digest.
fn is_of(written: &str, name: &str) -> bool {
    written.strip_prefix(name).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('@') || (rest.starts_with(':') && !rest.contains('/'))
    })
}

/// A list that is shorter than a path wants it.
struct Missing<'n> {
    list: &'n Node,
    index: usize,
}

/// Follows a kustomize field path such as `spec.tags.0.from.name` or `spec.containers.[name=x].image`.
fn follow<'n>(root: &'n Node, path: &str) -> Result<Vec<&'n Node>, Missing<'n>> {
    let mut nodes = vec![root];
    for step in steps(path) {
        let mut next = Vec::new();
        for node in nodes {
            match &node.kind {
                // A key with dots stands in brackets.
                NodeKind::Mapping(_) => {
                    let key = step.strip_prefix('[').and_then(|step| step.strip_suffix(']')).unwrap_or(&step);
                    next.extend(node.get(key));
                }
                NodeKind::Sequence(items) => {
                    let selector = step.strip_prefix('[').and_then(|step| step.strip_suffix(']'));
                    if step == "*" {
                        next.extend(items);
                    } else if let Some((key, wanted)) = selector.and_then(|selector| selector.split_once('='))
                    {
                        next.extend(
                            items.iter().filter(|item| item.get(key).and_then(Node::as_str) == Some(wanted)),
                        );
                    } else if let Ok(index) = step.parse::<usize>() {
                        match items.get(index) {
                            Some(item) => next.push(item),
                            None => return Err(Missing { list: node, index }),
                        }
                    }
                }
                _ => {}
            }
        }
        nodes = next;
    }
    Ok(nodes)
}

/// The steps of a field path: dots separate, `\.` and what stands in brackets does not.
fn steps(path: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut characters = path.chars();
    let mut bracket = false;
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => characters.next().unwrap_or('\\'),
            '.' if !bracket => {
                steps.push(String::new());
                continue;
            }
            other => other,
        };
        match character {
            '[' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
        if let Some(step) = steps.last_mut() {
            step.push(character);
        }
    }
    steps.retain(|step| !step.is_empty());
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_within_the_tree() {
        for (from, path, wanted) in [
            ("a/b/kustomization.yaml", "../c/x.yaml", Some("a/c/x.yaml")),
            ("kustomization.yaml", "./x.yaml", Some("x.yaml")),
            ("kustomization.yaml", "../x.yaml", None),
            ("a/kustomization.yaml", "https://example.com/x?ref=1", None),
            ("a/kustomization.yaml", "..", Some("")),
        ] {
            assert_eq!(join(from, path).as_deref(), wanted, "{from} {path}");
        }
    }

    #[test]
    fn field_paths_have_steps() {
        assert_eq!(steps("spec.tags.0.from.name"), ["spec", "tags", "0", "from", "name"]);
        assert_eq!(steps(r"metadata.annotations.a\.b/c"), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(steps("spec.containers.[name=a.b].image"), ["spec", "containers", "[name=a.b]", "image"]);
    }
}
