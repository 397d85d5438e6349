//! Unowned: images in no release.

use std::collections::BTreeMap;

use scantling_finding::codes::audit::UNOWNED;
use scantling_image::Sameness;

use crate::builder::{Builder, Draft, subject as subject_of};
use crate::facts::Facts;
use crate::images::{DigestId, PlatformId};
use crate::row::{Row, Section, Verdict};

/// The rows of this section, one for each written reference. Without a lock there is no question.
pub(crate) fn rows(facts: &Facts<'_>, builder: &Builder<'_>) -> Vec<Row> {
    if facts.knowledge.releases.iter().all(|release| release.lock.is_none()) {
        return Vec::new();
    }
    let locked: Vec<_> = facts
        .knowledge
        .releases
        .iter()
        .flat_map(crate::knowledge::KnownRelease::images)
        .filter_map(|image| facts.images.known(&image.digest))
        .collect();
    // Thousands of containers run the same few images.
    let mut known: BTreeMap<(PlatformId, DigestId), bool> = BTreeMap::new();
    let mut drafts: BTreeMap<&str, Draft> = BTreeMap::new();
    for pod in &facts.seen.pods {
        if !builder.options.wants(pod.key.namespace.as_deref()) || pod.ended {
            continue;
        }
        let Some(node) = pod.node else { continue };
        for container in &pod.containers {
            let Some(digest) = container.digest.as_ref().and_then(|digest| facts.images.known(digest)) else {
                continue;
            };
            let meant = facts.id(&container.image).and_then(|id| facts.meant.get(id)?.as_ref());
            let is_ours = meant
                .is_some_and(|meant| matches!(meant.basis, crate::wanted::Basis::Release { .. }))
                || *known.entry((facts.platform(node), digest)).or_insert_with(|| {
                    locked.iter().any(|locked| facts.relation_on(node, digest, *locked) == Sameness::Same)
                });
            if is_ours {
                continue;
            }
            let draft = drafts.entry(&container.image).or_insert_with(|| {
                let mut draft = Draft::new(Section::Unowned, Verdict::Unknown, UNOWNED);
                draft.reference = Some(container.image.to_string());
                draft.why.push_str("no lock that was given has it");
                draft.evidence.push(crate::evidence::of_container(pod, container));
                draft
            });
            draft.subjects.push(subject_of(pod, &container.name, None));
        }
    }
    drafts.into_values().map(Draft::row).collect()
}
