//! What a reference is meant to be, and who says so.
//!
//! The release says it, else the registry, else the image stream that the internal registry answers from, else the last pull that the
//! cluster shows. A verdict names its source: against a lock, "stale" means "not what the release means"; against a pull, "not what the
//! name was last seen to mean".

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_image::{Reference, Sameness};
use scantling_observed::{ImageStream, Observed, View as _};

use crate::facts::{Facts, RefId, START_SLACK, Start};
use crate::images::DigestId;
use crate::row::Evidence;

/// Where OpenShift's internal registry is, on every cluster that has one.
pub(crate) const INTERNAL_REGISTRY: &str = "image-registry.openshift-image-registry.svc:5000";

/// Who says what a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The release that the cluster is held against.
    Release { title: String },
    /// A recorded answer of a registry.
    Registry { origin: String },
    /// An image stream: the internal registry answers from it.
    Stream { key: ObjectKey, tag: String, created: String, resource_version: String },
    /// The last time that the cluster shows somebody asking the registry.
    Pull { start: Start, node: usize },
}

/// What a reference means.
#[derive(Debug, Clone)]
pub(crate) struct Meant {
    pub(crate) digest: DigestId,
    pub(crate) basis: Basis,
}

impl Meant {
    /// Who says so, in words.
    pub(crate) fn words(&self, facts: &Facts<'_>) -> String {
        match &self.basis {
            Basis::Release { title } => format!("as {title} locks it"),
            Basis::Registry { .. } => "as the registry answered".to_owned(),
            Basis::Stream { key, tag, .. } => format!("as {key}, tag {tag}, has it"),
            Basis::Pull { start, .. } => match facts.container(start.pod, start.container) {
                Some((pod, container)) => {
                    format!("as it was pulled for {} at {}", pod.key, container.started_text)
                }
                None => "as it was pulled last".to_owned(),
            },
        }
    }

    /// Where that is written.
    pub(crate) fn evidence(&self, facts: &Facts<'_>) -> Option<Evidence> {
        let digest = facts.images.digest(self.digest)?.to_string();
        Some(match &self.basis {
            Basis::Release { title } => Evidence {
                time: None,
                object: title.clone(),
                field: "release.lock".to_owned(),
                value: digest,
                resource_version: String::new(),
            },
            Basis::Registry { origin } => Evidence {
                time: None,
                object: origin.clone(),
                field: String::new(),
                value: digest,
                resource_version: String::new(),
            },
            Basis::Stream { key, tag, created, resource_version } => Evidence {
                time: Some(created.clone()).filter(|time| !time.is_empty()),
                object: key.to_string(),
                field: format!(".status.tags[{tag}].items[0].image"),
                value: digest,
                resource_version: resource_version.clone(),
            },
            Basis::Pull { start, .. } => crate::evidence::of_start(facts, start)?,
        })
    }
}

/// What each reference means; nothing where nobody says, and for those with a digest, which mean themselves.
pub(crate) fn meant(facts: &mut Facts<'_>, observed: &Observed) -> Vec<Option<Meant>> {
    let locked = locked(facts);
    let streams = streams(observed);
    let mut by_reference: BTreeMap<RefId, Vec<(usize, Start)>> = BTreeMap::new();
    for ((reference, node), held) in &facts.table {
        let pulled = held.starts.iter().filter(|start| start.pulled).map(|start| (*node, *start));
        by_reference.entry(*reference).or_default().extend(pulled);
    }
    (0..facts.asked.len())
        .map(|id| {
            let asked = facts.asked.get(id)?;
            if asked.pinned.is_some() {
                return None;
            }
            if let Some(digest) = locked.get(asked.canonical.as_ref()) {
                let title = facts.knowledge.releases.first().map(|it| it.title.clone()).unwrap_or_default();
                return Some(Meant { digest: *digest, basis: Basis::Release { title } });
            }
            if let Some(Some(digest)) = facts.answers.get(id) {
                let origin =
                    facts.knowledge.registry.as_ref().map(|it| it.origin.clone()).unwrap_or_default();
                return Some(Meant { digest: *digest, basis: Basis::Registry { origin } });
            }
            if let Some((stream, tag)) = stream_of(&asked.reference, &streams)
                && let Some(item) = stream.tag(tag).and_then(scantling_observed::StreamTag::newest)
                && let Ok(digest) = item.digest()
            {
                let basis = Basis::Stream {
                    key: stream.key(),
                    tag: tag.to_owned(),
                    created: item.created.to_owned(),
                    resource_version: scantling_api::object::resource_version(stream.object()).to_owned(),
                };
                return Some(Meant { digest: facts.images.id(&digest), basis });
            }
            let (node, start) =
                last_pull(facts, by_reference.get(&id).map(Vec::as_slice).unwrap_or_default())?;
            Some(Meant { digest: start.digest, basis: Basis::Pull { start, node } })
        })
        .collect()
}

fn locked(facts: &mut Facts<'_>) -> BTreeMap<String, DigestId> {
    let Some(release) = facts.knowledge.releases.first() else { return BTreeMap::new() };
    release.images().map(|image| (image.reference.canonical(), facts.images.id(&image.digest))).collect()
}

/// Streams by the repository that the internal registry shows them under.
fn streams(observed: &Observed) -> BTreeMap<String, ImageStream<'_>> {
    let name = |stream: &ImageStream<'_>| match stream.repository() {
        Some(repository) => repository.to_owned(),
        None => format!("{INTERNAL_REGISTRY}/{}/{}", stream.namespace(), stream.name()),
    };
    observed.image_streams().map(|stream| (name(&stream), stream)).collect()
}

fn stream_of<'a, 'o>(
    reference: &'a Reference,
    streams: &BTreeMap<String, ImageStream<'o>>,
) -> Option<(ImageStream<'o>, &'a str)> {
    let stream = streams.get(&reference.name())?;
    Some((*stream, reference.effective_tag()?))
}

/// The newest pull, if the pulls show a name that moves forward: a name that went to and fro, or that two nodes saw differently at the
/// same time (a registry behind a cache that lags), has no newest meaning.
fn last_pull(facts: &Facts<'_>, pulls: &[(usize, Start)]) -> Option<(usize, Start)> {
    let mut pulls: Vec<(usize, Start)> = pulls.to_vec();
    pulls.sort_by_key(|(node, start)| (start.at, *node, start.pod, start.container));
    let same = |a: &(usize, Start), b: &(usize, Start)| {
        let (one, other) = ((facts.platform(a.0), a.1.digest), (facts.platform(b.0), b.1.digest));
        facts.images.relation(one, other) == Sameness::Same
    };
    let last = *pulls.last()?;
    let mut left = false;
    for pull in pulls.iter().rev() {
        if same(pull, &last) {
            if left {
                return None;
            }
        } else {
            if pull.1.at + START_SLACK >= last.1.at {
                return None;
            }
            left = true;
        }
    }
    Some(last)
}
