//! What a release says about the content behind each name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use scantling_finding::Place;
use scantling_image::{ImageIdentity, Reference};
use serde::Serialize;

use crate::{ImageName, Lock, Release, Written};

/// One thing that decides, or tells, what an image holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Aspect {
    /// The digest that the lock holds.
    Digest,
    /// What an image stream's tag is imported from.
    Import,
    /// The image that a build begins with.
    Base,
    /// The repository that it is built from.
    SourceUri,
    /// The branch, tag or commit that it is built from.
    SourceRef,
    /// The folder of the repository that it is built from.
    SourceFolder,
    /// The Dockerfile that it is built with.
    Dockerfile,
    /// The version of a package that is claimed.
    Claim(String),
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digest => "digest",
            Self::Import => "imported from",
            Self::Base => "base image",
            Self::SourceUri => "git repository",
            Self::SourceRef => "git ref",
            Self::SourceFolder => "source folder",
            Self::Dockerfile => "Dockerfile",
            Self::Claim(name) => name,
        })
    }
}

/// Everything that a release says about one name.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// Where the name is given its meaning.
    pub(crate) place: Place,
    pub(crate) aspects: BTreeMap<Aspect, Written>,
    pub(crate) identity: Option<ImageIdentity>,
    /// The name it is built upon.
    pub(crate) base: Option<(ImageName, Place)>,
    /// Whether what stands behind the name can change although the release says nothing new.
    pub(crate) movable: bool,
    /// Whether the release lists it for people to choose: then nodes never see the name, only a digest.
    pub(crate) listed: bool,
}

/// Everything that a release says about the names in it. `namespace` stands for the one that names leave out.
pub(crate) fn of(
    release: &Release,
    lock: Option<&Lock>,
    namespace: Option<&str>,
) -> BTreeMap<ImageName, Content> {
    let mut contents = BTreeMap::new();
    for tag in &release.streams {
        let mut content = Content::at(tag.place.clone());
        if let (Some(from), Some(place)) = (&tag.from, &tag.from_place) {
            content.add(Aspect::Import, from.short(), place);
            content.movable = !pinned(from);
            content.resolve(from, lock, place);
            if matches!(from, ImageName::StreamTag { .. }) {
                content.base = Some((from.clone().in_namespace(namespace), place.clone()));
            }
        }
        for claim in &tag.claims {
            content.add(Aspect::Claim(claim.claim.name.clone()), claim.claim.version.clone(), &claim.place);
        }
        contents.insert(tag.name.clone().in_namespace(namespace), content);
    }
    for build in &release.builds {
        let name = build.output.clone().in_namespace(namespace);
        let content = contents.entry(name).or_insert_with(|| Content::at(build.place.clone()));
        content.movable = true;
        let source = &build.source;
        for (aspect, written) in [
            (Aspect::SourceUri, &source.uri),
            (Aspect::SourceRef, &source.git_ref),
            (Aspect::SourceFolder, &source.context_dir),
            (Aspect::Dockerfile, &source.dockerfile),
        ] {
            if let Some(written) = written {
                content.add(aspect, written.text.clone(), &written.place);
            }
        }
        if let (Some(base), Some(place)) = (&build.base, &build.base_place) {
            content.add(Aspect::Base, base.short(), place);
            content.base = Some((base.clone().in_namespace(namespace), place.clone()));
        }
    }
    for image in &release.images {
        let mut content = Content::at(image.place.clone());
        let from = ImageName::Reference(image.reference.written().to_owned());
        content.add(Aspect::Import, from.short(), &image.place);
        content.listed = true;
        content.resolve(&from, lock, &image.place);
        let name =
            ImageName::StreamTag { namespace: None, stream: image.stream.clone(), tag: image.tag.clone() };
        contents.insert(name.in_namespace(namespace), content);
    }
    let imported: BTreeSet<String> = release
        .streams
        .iter()
        .filter_map(|tag| tag.from.as_ref())
        .map(ImageName::short)
        .chain(release.images.iter().map(|image| image.reference.written().to_owned()))
        .collect();
    for used in &release.references {
        // What is imported is compared under the name that it is imported to.
        if used.reference.is_pinned() || imported.contains(used.reference.written()) {
            continue;
        }
        let name = ImageName::Reference(used.reference.written().to_owned());
        contents.entry(name.clone()).or_insert_with(|| {
            let mut content = Content::at(used.place.clone());
            content.movable = true;
            content.resolve(&name, lock, &used.place);
            content
        });
    }
    contents
}

impl Content {
    fn at(place: Place) -> Self {
        Self { place, aspects: BTreeMap::new(), identity: None, base: None, movable: false, listed: false }
    }

    /// The first one stays: two annotations may claim the same thing.
    fn add(&mut self, aspect: Aspect, text: String, place: &Place) {
        self.aspects.entry(aspect).or_insert_with(|| Written { text, place: place.clone() });
    }

    fn resolve(&mut self, name: &ImageName, lock: Option<&Lock>, place: &Place) {
        let ImageName::Reference(written) = name else { return };
        let Ok(reference) = Reference::parse(written) else { return };
        match lock.and_then(|lock| lock.image(&reference)) {
            Some(image) => {
                self.add(Aspect::Digest, image.digest.short(), place);
                self.identity = Some(image.identity());
            }
            None => {
                if let Some(digest) = reference.digest() {
                    self.identity = Some(ImageIdentity::of_manifest(digest.clone(), None));
                }
            }
        }
    }
}

fn pinned(name: &ImageName) -> bool {
    match name {
        ImageName::StreamTag { .. } => false,
        ImageName::Reference(written) => {
            Reference::parse(written).is_ok_and(|reference| reference.is_pinned())
        }
    }
}
