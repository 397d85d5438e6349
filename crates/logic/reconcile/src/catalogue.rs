//! The catalogue: what may be selected, and which pods count as what.

use std::collections::{BTreeMap, BTreeSet};

use scantling_image::{Digest, Reference, Sameness};
use scantling_observed::{
    NotebookImage, NotebookImageSpec, NotebookImageStatus, Observed, PackageVersion, SpecError, View as _,
};

use crate::context::Context;
use crate::crds::{Column, Definition, Scope, schema_of};

/// The definition of [`NotebookImage`].
pub(crate) const NOTEBOOK_IMAGE_DEFINITION: Definition = Definition {
    about: "One image that a notebook can be made from. Written by an upgrade, read by spawners.",
    group: "scantling.dev",
    version: "v1alpha1",
    kind: "NotebookImage",
    plural: "notebookimages",
    short_names: &["nbi"],
    categories: &["scantling"],
    scope: Scope::Namespaced,
    columns: &[
        Column::text("Selection", ".spec.selection"),
        Column::text("Title", ".spec.title"),
        Column { kind: "boolean", ..Column::text("Recommended", ".spec.recommended") },
        Column { kind: "boolean", ..Column::text("Outdated", ".spec.outdated") },
        Column::number("In use", ".status.inUse"),
        Column::text("Release", ".spec.release"),
        Column::text("Image", ".spec.image").wide(),
    ],
    rules: &[],
    spec: schema_of::<NotebookImageSpec>,
    status: Some(schema_of::<NotebookImageStatus>),
};

/// One entry that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it says.
    pub spec: NotebookImageSpec,
}

/// Why a selection stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unresolved {
    Unknown { known: Vec<String> },
    Broken { name: String, reason: String },
    Ambiguous { names: Vec<String> },
}

/// The entries of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    entries: Vec<Entry>,
    /// Entries that cannot be used: (namespace, selection as written, name, why).
    broken: Vec<(String, String, String, String)>,
    /// Positions by the canonical text of every name that counts.
    by_name: BTreeMap<String, usize>,
    by_digest: BTreeMap<Digest, usize>,
}

impl Catalogue {
    /// Reads the catalogue of a cluster.
    pub fn of(observed: &Observed) -> Self {
        let mut catalogue = Self::default();
        for image in observed.notebook_images().filter(|image| !image.is_being_deleted()) {
            match image.spec() {
                Ok(spec) => catalogue.add(image, spec),
                Err(error) => catalogue.add_broken(image, &error),
            }
        }
        catalogue
    }

    fn add(&mut self, image: NotebookImage<'_>, spec: NotebookImageSpec) {
        let position = self.entries.len();
        let names = spec.aliases.iter().filter_map(|alias| Reference::parse(alias).ok());
        for name in names.chain([spec.image.clone()]) {
            self.by_name.entry(name.canonical()).or_insert(position);
        }
        for digest in spec.identity() {
            self.by_digest.entry(digest.clone()).or_insert(position);
        }
        let (namespace, name) = (image.namespace().to_owned(), image.name().to_owned());
        self.entries.push(Entry { namespace, name, spec });
    }

    fn add_broken(&mut self, image: NotebookImage<'_>, error: &SpecError) {
        let selection = image.object().pointer("/spec/selection").and_then(serde_json::Value::as_str);
        self.broken.push((
            image.namespace().to_owned(),
            selection.unwrap_or_default().to_owned(),
            image.name().to_owned(),
            error.to_string(),
        ));
    }

    /// The entries that can be used, in the order of their keys.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Is this a name that counts as an entry?
    pub fn is_named(&self, reference: &Reference) -> bool {
        self.by_name.contains_key(&reference.canonical())
    }

    /// Every written name, in its canonical text, that counts as an entry.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// What a selection stands for.
    pub(crate) fn select(&self, namespace: &str, selection: &str) -> Result<&Entry, Unresolved> {
        let here = || self.entries.iter().filter(|entry| entry.namespace == namespace);
        let found: Vec<&Entry> = here().filter(|entry| entry.spec.selection == selection).collect();
        match found.as_slice() {
            [only] => Ok(only),
            [] => {
                let broken =
                    self.broken.iter().find(|(ns, written, ..)| ns == namespace && written == selection);
                Err(match broken {
                    Some((_, _, name, reason)) => {
                        Unresolved::Broken { name: name.clone(), reason: reason.clone() }
                    }
                    None => Unresolved::Unknown {
                        known: here().map(|entry| entry.spec.selection.clone()).collect(),
                    },
                })
            }
            several => {
                Err(Unresolved::Ambiguous { names: several.iter().map(|entry| entry.name.clone()).collect() })
            }
        }
    }

    /// The entry as which a pod with this written image counts.
    pub fn named(&self, written: &Reference) -> Option<&Entry> {
        self.entries.get(*self.by_name.get(&written.canonical())?)
    }

    /// The entry that this digest is of.
    pub(crate) fn with_digest(&self, digest: &Digest) -> Option<&Entry> {
        self.entries.get(*self.by_digest.get(digest)?)
    }

    /// The packages of a digest: from the catalogue, else from what the context knows.
    pub fn packages<'a>(&'a self, digest: &Digest, context: &Context<'a>) -> Option<&'a [PackageVersion]> {
        let entry = self.by_digest.get(digest).and_then(|position| self.entries.get(*position));
        match entry {
            Some(entry) if !entry.spec.packages.is_empty() => Some(&entry.spec.packages),
            _ => context.images.get(digest).map(|image| image.packages.as_slice()),
        }
    }

    /// Is the image with this digest the entry's? Unknown, when nothing tells whose digest it is: runtimes may name an image by a digest
    /// of another repository.
    pub fn compare(&self, entry: &Entry, seen: &Digest, context: &Context<'_>) -> Sameness {
        let identity = entry.spec.identity();
        if identity.contains(seen) {
            return Sameness::Same;
        }
        let shares = |digests: BTreeSet<&Digest>| {
            if digests.is_disjoint(&identity) { Sameness::Different } else { Sameness::Same }
        };
        let other = self.by_digest.get(seen).and_then(|position| self.entries.get(*position));
        let known = context.images.get(seen);
        match (other, known) {
            (_, Some(image)) => shares(image.identity.digests()),
            (Some(other), None) => shares(other.spec.identity()),
            (None, None) => Sameness::Unknown,
        }
    }
}
