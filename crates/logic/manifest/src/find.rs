//! Looking through documents and texts.

use std::collections::{BTreeMap, BTreeSet};

use scantling_finding::{Finding, Place, codes};
use scantling_yaml::{Entry, Node, NodeKind, Style};

use crate::Options;
use crate::candidate::{Candidate, Filling, Part, Route, What};
use crate::classify::{Verdict, classify};
use crate::lines;
use crate::names::{Expect, expect, is_never, is_secret};
use crate::pairs::{Pair, pairs};
use crate::scan::{Text, scan};
use crate::source::Source;
use crate::trail::{Setting, Trail};

/// Documents in strings in documents are opened this deep.
const NESTING: usize = 4;

/// Documents in strings that use aliases are opened this often: each may expand to megabytes. Real manifests have none.
const NESTED_ALIASES: usize = 200;

/// What looks, and what it has found.
pub(crate) struct Finder<'o> {
    pub(crate) options: &'o Options,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) findings: Vec<Finding>,
    /// How many more documents with aliases in strings are opened.
    pub(crate) nested_aliases: usize,
    /// Values that names of variables and parameters are given somewhere.
    pub(crate) given: BTreeMap<String, Vec<Filling>>,
}

/// The document that is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'s> {
    pub(crate) source: &'s Source<'s>,
    pub(crate) object: Option<&'s str>,
    pub(crate) kind: &'s str,
    /// The path up to the string that holds the document, with its separator.
    pub(crate) outer: &'s str,
    pub(crate) depth: usize,
}

impl Scope<'_> {
    pub(crate) fn place(&self, trail: &Trail<'_>, place: Place) -> Place {
        Place {
            object: self.object.map(str::to_owned),
            field: Some(format!("{}{}", self.outer, trail.path())),
            ..place
        }
    }

    pub(crate) fn node_place(&self, trail: &Trail<'_>, node: &Node) -> Place {
        self.place(trail, self.source.place(node.span.start, node.span.end))
    }
}

impl<'o> Finder<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        Self {
            options,
            candidates: Vec::new(),
            findings: Vec::new(),
            nested_aliases: NESTED_ALIASES,
            given: BTreeMap::new(),
        }
    }

    /// Looks through an object.
    pub(crate) fn object(&mut self, scope: &Scope<'_>, root: &Node) {
        let hook = root
            .get("metadata")
            .and_then(|metadata| metadata.get("annotations")?.get("helm.sh/hook")?.as_str());
        let condition = hook.map(|phase| format!("Helm runs the hook {phase}"));
        self.node(scope, &Trail::root(), root, &Setting::new(condition));
    }

    fn node<'t>(&mut self, scope: &Scope<'_>, trail: &'t Trail<'t>, node: &'t Node, setting: &Setting<'t>) {
        match &node.kind {
            NodeKind::String(string) => self.string(scope, trail, node, string, setting, expected(setting)),
            NodeKind::Sequence(items) if matches!(setting.key, "args" | "command") && !setting.never => {
                self.arguments(scope, trail, items, setting);
            }
            NodeKind::Sequence(items) => {
                let container = setting.key.ends_with("ontainers");
                for (index, item) in items.iter().enumerate() {
                    let setting = Setting { container, ..setting.clone() };
                    self.node(scope, &trail.index(index), item, &setting);
                }
            }
            NodeKind::Mapping(entries) => self.mapping(scope, trail, entries, setting),
            NodeKind::Null if expected(setting) == Expect::Image && setting.container => {
                self.empty(scope, trail, node, setting);
            }
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) => {}
        }
    }

    fn mapping<'t>(
        &mut self,
        scope: &Scope<'_>,
        trail: &'t Trail<'t>,
        entries: &'t [Entry],
        setting: &Setting<'t>,
    ) {
        let text =
            |key: &str| entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.as_str());
        let mut setting = setting.clone();
        setting.pull_policy = text("imagePullPolicy").or_else(|| text("pullPolicy")).or(None);
        let mut done = BTreeSet::new();
        if !setting.never {
            self.pairs(scope, trail, entries, &setting, &mut done);
            self.object_reference(scope, trail, entries, &setting, &mut done);
        }
        let subject = text("name").or_else(|| text("key"));
        for (at, entry) in entries.iter().enumerate() {
            if done.contains(&at) {
                continue;
            }
            let trail = trail.key(&entry.key);
            let mut below = setting.below(&entry.key, scope.kind, trail.depth() == 1);
            if let (Some(subject), "value" | "default", NodeKind::String(string)) =
                (subject, entry.key.as_str(), &entry.value.kind)
            {
                below.route = subject_route(scope, &setting, subject).unwrap_or(below.route);
                if let Route::TemplateDefault(name) = &below.route {
                    below.condition = Some(format!("parameter {name} is not given"));
                }
                below.never |= is_secret(subject);
                self.give(subject, string, &below.route, || scope.node_place(&trail, &entry.value));
                self.string(scope, &trail, &entry.value, string, &below, expect(subject));
                continue;
            }
            below.container = setting.container;
            if entry.key == "default" && entries.iter().any(|entry| entry.key == "type") {
                below.route = Route::TemplateDefault(setting.key.to_owned());
                below.condition = Some(format!("the field {} is not given", setting.key));
            }
            below.never |= scope.kind == "Secret" && setting.key == "stringData";
            if matches!(setting.key, "data" | "stringData" | "literals") && setting.route == Route::Direct {
                below.route = Route::Parameter(entry.key.clone());
                if let Some(string) = entry.value.as_str() {
                    self.give(&entry.key, string, &below.route, || scope.node_place(&trail, &entry.value));
                }
            }
            if setting.key == "data" && scope.kind == "Secret" {
                // Base64, and not ours to look into.
                continue;
            }
            self.node(scope, &trail, &entry.value, &below);
        }
        if scope.kind == "Template"
            && setting.key == "parameters"
            && let Some(name) = text("name")
        {
            // A parameter without a default is filled by whoever processes the template.
            self.give_empty(name, scope, trail, entries);
        }
    }

    /// `{kind: ImageStreamTag, name: x:y}` and its like.
    fn object_reference<'t>(
        &mut self,
        scope: &Scope<'_>,
        trail: &'t Trail<'t>,
        entries: &'t [Entry],
        setting: &Setting<'t>,
        done: &mut BTreeSet<usize>,
    ) {
        let text =
            |key: &str| entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.as_str());
        let Some(at) = entries.iter().position(|entry| entry.key == "name") else { return };
        let (Some(kind), Some(entry)) = (text("kind"), entries.get(at)) else { return };
        let Some(name) = entry.value.as_str() else { return };
        let trail = trail.key("name");
        match kind {
            "ImageStreamTag" | "ImageStreamImage" => {
                done.insert(at);
                let separator = if kind == "ImageStreamImage" { '@' } else { ':' };
                let (stream, tag) = name.split_once(separator).unwrap_or((name, "latest"));
                let what = if classify(name, Expect::Nothing, &self.options.values)
                    == (Verdict::Placeholder { names: vec![name.to_owned()] })
                {
                    What::Placeholder { names: vec![name.to_owned()], filled_by: Vec::new() }
                } else {
                    What::ImageStreamTag {
                        namespace: text("namespace").map(str::to_owned),
                        stream: stream.to_owned(),
                        tag: tag.to_owned(),
                    }
                };
                let place = scope.node_place(&trail, &entry.value);
                self.push(scope, setting, what, name, place);
            }
            "DockerImage" => {
                done.insert(at);
                self.string(scope, &trail, &entry.value, name, setting, Expect::Image);
            }
            _ => {}
        }
    }

    fn pairs<'t>(
        &mut self,
        scope: &Scope<'_>,
        trail: &'t Trail<'t>,
        entries: &'t [Entry],
        setting: &Setting<'t>,
        done: &mut BTreeSet<usize>,
    ) {
        let kustomize = scope.kind == "Kustomization" && setting.key == "images";
        for pair in pairs(entries, setting.key, scope.source.text()) {
            done.extend(pair.parts.iter().map(|part| part.at));
            let mut setting = setting.clone();
            if kustomize {
                if let Some((at, name)) = entries.iter().enumerate().find(|(_, entry)| entry.key == "name") {
                    done.insert(at);
                    let name = name.value.as_str().unwrap_or_default();
                    setting.route = Route::Parameter(name.to_owned());
                    setting.condition =
                        Some(format!("a manifest of this kustomization names the image {name}"));
                }
            } else if setting.route == Route::Direct && scope.kind.is_empty() {
                setting.route = Route::Parameter(trail.path().trim_start_matches('.').to_owned());
            }
            self.pair(scope, trail, &pair, &setting);
        }
    }

    fn pair<'t>(&mut self, scope: &Scope<'_>, trail: &'t Trail<'t>, pair: &Pair<'t>, setting: &Setting<'t>) {
        let place = |part: &crate::pairs::PartOf<'t>| {
            scope.node_place(&trail.key(&part.entry.key), &part.entry.value)
        };
        let Some(first) = pair.parts.first() else { return };
        for part in &pair.parts {
            if part.unquoted {
                let message =
                    format!("the tag {} is not quoted, and YAML takes it for a number or boolean", part.text);
                self.findings.push(Finding::new(codes::references::UNQUOTED_TAG, message, place(part)));
            }
        }
        let what = match classify(&pair.text, Expect::Image, &self.options.values) {
            Verdict::Reference { reference, .. } | Verdict::Defaulted { reference, .. } => {
                if pair.incomplete && scope.kind != "Kustomization" {
                    let message = format!("{} has neither a tag nor a digest beside it", pair.text);
                    self.findings.push(Finding::new(
                        codes::references::INCOMPLETE_PAIR,
                        message,
                        place(first),
                    ));
                }
                let parts = pair
                    .parts
                    .iter()
                    .map(|part| Part { role: part.role, written: part.text.to_owned(), place: place(part) })
                    .collect();
                What::Joined { reference, parts }
            }
            Verdict::Placeholder { names } => What::Placeholder { names, filled_by: Vec::new() },
            Verdict::Malformed { reason, suggestion } => What::Malformed { reason, suggestion },
            Verdict::Decoy { reason } => What::Decoy { reason },
            _ => return,
        };
        let place = place(first);
        self.push(scope, setting, what, &pair.text, place);
    }

    fn arguments<'t>(
        &mut self,
        scope: &Scope<'_>,
        trail: &'t Trail<'t>,
        items: &'t [Node],
        setting: &Setting<'t>,
    ) {
        let mut flag = "";
        for (index, item) in items.iter().enumerate() {
            let trail = trail.index(index);
            let Some(string) = item.as_str() else {
                self.node(scope, &trail, item, setting);
                flag = "";
                continue;
            };
            let mut below = setting.clone();
            if string.starts_with('-') && !string.contains('\n') {
                let name = string.trim_start_matches('-');
                match name.split_once('=') {
                    Some((name, value)) if !name.contains(char::is_whitespace) => {
                        below.route = Route::Argument(name.to_owned());
                        let start = string.len() - value.len();
                        self.text(scope, &trail, item, string, start, value, &below, expect_flag(name));
                        flag = "";
                    }
                    _ => flag = name,
                }
                continue;
            }
            below.route = Route::Argument(flag.to_owned());
            let expect = if flag.is_empty() { Expect::Nothing } else { expect_flag(flag) };
            self.string(scope, &trail, item, string, &below, expect);
            flag = "";
        }
    }

    /// A whole string of a document.
    fn string<'t>(
        &mut self,
        scope: &Scope<'_>,
        trail: &'t Trail<'t>,
        node: &'t Node,
        string: &'t str,
        setting: &Setting<'t>,
        expect: Expect,
    ) {
        let inner = string.trim();
        let opens = inner.starts_with(['{', '[']) && inner.len() > 2 && !inner.starts_with("{{");
        let block = matches!(node.style, Style::Literal | Style::Folded) && looks_like_yaml(inner);
        if inner.contains('\n') || opens || block {
            self.compound(scope, trail, node, string, setting);
        } else {
            self.text(scope, trail, node, string, 0, string, setting, expect);
        }
    }

    /// A text on one line: `value`, which begins at `start` of the node's `string`.
    #[allow(clippy::too_many_arguments)]
    fn text<'t>(
        &mut self,
        scope: &Scope<'_>,
        trail: &'t Trail<'t>,
        node: &'t Node,
        string: &'t str,
        start: usize,
        value: &'t str,
        setting: &Setting<'t>,
        expect: Expect,
    ) {
        let never =
            setting.never || is_never(setting.key) || (setting.key == "name" && setting.above == "metadata");
        if never && !value.contains("@sha") {
            return;
        }
        if setting.annotations
            && setting.key.ends_with("image-selection")
            && let Some((stream, tag)) = value.split_once(':')
        {
            // The dashboard's note of the image that a notebook was started with.
            let what =
                What::ImageStreamTag { namespace: None, stream: stream.to_owned(), tag: tag.to_owned() };
            let place = scope.node_place(trail, node);
            self.push(scope, setting, what, value, place);
            return;
        }
        let mut setting = setting.clone();
        let mut expect = expect;
        if setting.annotations && expect >= Expect::Perhaps {
            if setting.route == Route::Noted && setting.key != "containerImage" {
                setting.route = Route::Parameter(setting.key.to_owned());
                setting.condition = Some("a controller reads the annotation".to_owned());
            }
            expect = Expect::Perhaps;
        }
        let source = Source::inner(string, node, scope.source);
        let place = |from: usize, to: usize| scope.place(trail, source.place(start + from, start + to));
        match classify(value, expect, &self.options.values) {
            Verdict::Nothing => {
                let several = value.contains([' ', ',', ';', '=', '|', '"']) || value.contains("@sha");
                if several {
                    self.words(scope, trail, &source, start, value, &setting);
                }
            }
            Verdict::Empty => {
                if setting.container || matches!(setting.route, Route::Environment(_)) {
                    self.empty(scope, trail, node, &setting);
                }
            }
            // Runtimes report the image's ID where they know no name.
            Verdict::Malformed { .. } if setting.route == Route::Observed && value.starts_with("sha256:") => {
                let reason = "the ID of an image on one machine".to_owned();
                self.push(scope, &setting, What::Decoy { reason }, value, place(0, value.len()));
            }
            Verdict::Malformed { reason, suggestion } => {
                let shaped = !value.contains(' ') && value.contains(['/', ':', '@']);
                if setting.container || shaped {
                    self.push(
                        scope,
                        &setting,
                        What::Malformed { reason, suggestion },
                        value,
                        place(0, value.len()),
                    );
                } else {
                    self.words(scope, trail, &source, start, value, &setting);
                }
            }
            Verdict::Reference { reference, start, end } => {
                let written = value.get(start..end).unwrap_or(value);
                self.push(scope, &setting, What::Reference { reference }, written, place(start, end));
            }
            Verdict::Defaulted { reference, defaulted } => {
                let (route, condition) = fallback(&defaulted);
                let setting = Setting { route, condition: Some(condition), ..setting };
                self.push(scope, &setting, What::Reference { reference }, value, place(0, value.len()));
            }
            Verdict::Placeholder { names } => {
                let what = What::Placeholder { names, filled_by: Vec::new() };
                self.push(scope, &setting, what, value, place(0, value.len()));
            }
            Verdict::Decoy { reason } => {
                self.push(scope, &setting, What::Decoy { reason }, value, place(0, value.len()));
            }
            Verdict::Unclassified { reason } => {
                self.push(scope, &setting, What::Unclassified { reason }, value, place(0, value.len()));
            }
        }
    }

    /// References among the words of a text on one line.
    fn words(
        &mut self,
        scope: &Scope<'_>,
        trail: &Trail<'_>,
        source: &Source<'_>,
        start: usize,
        value: &str,
        setting: &Setting<'_>,
    ) {
        for hit in scan(value, Text::Script, &self.options.values) {
            let place = scope.place(trail, source.place(start + hit.start, start + hit.end));
            let written = value.get(hit.start..hit.end).unwrap_or_default();
            self.hit(scope, setting, hit.verdict, None, written, place);
        }
    }

    /// A string that may be a document: JSON, YAML, assignments, a script.
    fn compound<'t>(
        &mut self,
        scope: &Scope<'_>,
        trail: &'t Trail<'t>,
        node: &'t Node,
        string: &'t str,
        setting: &Setting<'t>,
    ) {
        // What has neither is nothing that could be pulled or be filled.
        if !string.contains(['/', '@', '$', '{', '<'])
            && !string.to_ascii_lowercase().contains("image")
            && !string.contains("_PLACEHOLDER")
        {
            return;
        }
        let source = Source::inner(string, node, scope.source);
        let outer = format!("{}{} › ", scope.outer, trail.path());
        let inner = Scope { source: &source, outer: &outer, kind: "", depth: scope.depth + 1, ..*scope };
        let begin = string.trim_start();
        let json = begin.starts_with(['{', '[']);
        let aliases = string.contains('&') && string.contains('*');
        if aliases {
            self.nested_aliases = self.nested_aliases.saturating_sub(1);
        }
        let opened = inner.depth <= NESTING && !(aliases && self.nested_aliases == 0);
        if opened && (json || looks_like_yaml(string)) {
            match scantling_yaml::parse_tolerant(string.as_bytes()) {
                Ok((documents, _)) if documents.iter().any(|document| document.root.is_collection()) => {
                    for document in &documents {
                        let kind = document.root.get("kind").and_then(Node::as_str).unwrap_or_default();
                        let setting = Setting {
                            key: "",
                            above: "",
                            container: false,
                            annotations: false,
                            ..setting.clone()
                        };
                        let setting = Setting { route: nested_route(&setting.route), ..setting };
                        self.node(&Scope { kind, ..inner }, &Trail::root(), &document.root, &setting);
                    }
                    return;
                }
                Ok(_) => {}
                Err(error) => {
                    let named = [".yaml", ".yml", ".json"].iter().any(|ending| setting.key.ends_with(ending));
                    if named || begin.starts_with("apiVersion:") || begin.starts_with("---") {
                        let place = scope.place(trail, source.place(error.span.start, error.span.end));
                        let message = format!("the document in this text cannot be read: {}", error.message);
                        self.findings.push(Finding::new(codes::input::NESTED_UNREADABLE, message, place));
                    }
                }
            }
        }
        if lines::is_assignments(string) {
            self.assignments(&inner, string, setting);
        } else {
            self.script(&inner, string, Text::Script, setting);
        }
    }
}

/// What the place of a value says about it.
fn expected(setting: &Setting<'_>) -> Expect {
    match (setting.key, setting.above) {
        ("reference", "image") | ("image", _) => Expect::Image,
        ("name" | "url" | "icon", _) => Expect::Nothing,
        (key, _) => expect(key),
    }
}

/// A flag's value may be anything, even if the flag speaks of an image.
fn expect_flag(name: &str) -> Expect {
    expect(name).min(Expect::Perhaps)
}

/// How a value that has a name beside it becomes live.
fn subject_route(scope: &Scope<'_>, setting: &Setting<'_>, subject: &str) -> Option<Route> {
    if setting.route != Route::Direct {
        return None;
    }
    match setting.key {
        "env" => Some(Route::Environment(subject.to_owned())),
        "parameters" if scope.kind == "Template" => Some(Route::TemplateDefault(subject.to_owned())),
        "parameters" | "params" | "arguments" | "vars" => Some(Route::Parameter(subject.to_owned())),
        _ => None,
    }
}

/// The route of fields in a document in a string: what is written there is used as such by whoever reads the document.
fn nested_route(route: &Route) -> Route {
    match route {
        Route::Parameter(_) | Route::Environment(_) | Route::Argument(_) => Route::Direct,
        other => other.clone(),
    }
}

/// Route and condition of a reference that is used when variables have no value.
pub(crate) fn fallback(variables: &[String]) -> (Route, String) {
    let names = variables.join(", ");
    let condition = match variables {
        [_] => format!("environment variable {names} is unset or empty"),
        _ => format!("environment variables {names} are unset or empty"),
    };
    (Route::Fallback(names), condition)
}

fn looks_like_yaml(text: &str) -> bool {
    text.contains(": ")
        || text.contains(":\n")
        || text.contains(":\r\n")
        || text.starts_with("- ")
        || text.contains("\n- ")
}
