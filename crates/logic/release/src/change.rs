//! What stands behind each name in one release and in the next.

use std::collections::{BTreeMap, BTreeSet};

use scantling_finding::{Finding, Place, codes};
use scantling_image::{Reference, Sameness};
use serde::Serialize;

use crate::content::{self, Aspect, Content};
use crate::{ImageName, Lock, Release, Written};

/// What happens to a name from one release to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "camelCase")]
pub enum Change {
    /// The name stays and means something else.
    SameName {
        /// The name.
        name: ImageName,
        /// Where the new release gives it its meaning.
        place: Place,
        /// What changes about it.
        changed: Vec<Changed>,
        /// The changed names that it is built upon, nearest first.
        through: Vec<ImageName>,
        /// Where the nearest of them is named.
        base_place: Option<Place>,
    },
    /// What people choose stays and means another image, which nodes get by its digest.
    Moved {
        /// The name.
        name: ImageName,
        /// Where the new release gives it its meaning.
        place: Place,
        /// What changes about it.
        changed: Vec<Changed>,
    },
    /// An image stream's content moves to new tags.
    Renamed {
        /// Namespace and name of the stream.
        stream: String,
        /// The tags that are gone, and where the old release has them.
        from: Vec<Written>,
        /// The tags that are new.
        to: Vec<Written>,
        /// What changes, if one tag became one other.
        changed: Vec<Changed>,
    },
    /// A tag is gone and none has come instead.
    Removed {
        /// The name.
        name: ImageName,
        /// Where the old release has it.
        place: Place,
    },
    /// The name stays, what is declared about it stays, but nothing ties it to its content.
    Kept {
        /// The name.
        name: ImageName,
        /// Where the new release gives it its meaning.
        place: Place,
    },
}

/// A difference between what two releases say about a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// What differs.
    pub aspect: Aspect,
    /// What the old release says; nothing if it does not say anything.
    pub from: Option<Written>,
    /// What the new release says.
    pub to: Option<Written>,
}

impl Changed {
    /// `git ref nb-4 → nb-5`. Of two references to one repository only what differs is shown.
    pub fn text(&self) -> String {
        let side =
            |written: &Option<Written>| written.as_ref().map_or("none", |w| w.text.as_str()).to_owned();
        let (from, to) = (side(&self.from), side(&self.to));
        if let (Aspect::Import | Aspect::Base, Ok(old), Ok(new)) =
            (&self.aspect, Reference::parse(&from), Reference::parse(&to))
            && old.same_repository(&new)
        {
            return format!("{} {} → {}", self.aspect, selector(&old), selector(&new));
        }
        format!("{} {from} → {to}", self.aspect)
    }
}

/// What a reference says beside its repository.
fn selector(reference: &Reference) -> String {
    match (reference.digest(), reference.effective_tag()) {
        (Some(digest), _) => digest.short(),
        (None, tag) => format!(":{}", tag.unwrap_or_default()),
    }
}

/// Compares two releases name by name. With locks on both sides the digests decide, else what the manifests declare.
pub fn diff(old: (&Release, Option<&Lock>), new: (&Release, Option<&Lock>)) -> Vec<Change> {
    let namespace = old.0.namespace.as_deref().or(new.0.namespace.as_deref());
    let before = content::of(old.0, old.1, namespace);
    let after = content::of(new.0, new.1, namespace);
    let own: BTreeMap<&ImageName, Vec<Changed>> = after
        .iter()
        .filter_map(|(name, content)| Some((name, differences(before.get(name)?, content))))
        .collect();
    let changed_names = spread(&own, &after);
    let mut changes = Vec::new();
    for (name, content) in &after {
        let Some(differences) = own.get(name) else { continue };
        let moved = || differences.iter().any(|changed| changed.aspect == Aspect::Import);
        if content.listed && moved() {
            changes.push(Change::Moved {
                name: name.clone(),
                place: content.place.clone(),
                changed: differences.clone(),
            });
        } else if changed_names.contains(name) {
            let through = chain(name, &after, &changed_names);
            changes.push(Change::SameName {
                name: name.clone(),
                place: content.place.clone(),
                changed: differences.clone(),
                base_place: content
                    .base
                    .as_ref()
                    .filter(|_| !through.is_empty())
                    .map(|(_, place)| place.clone()),
                through,
            });
        } else if content.movable {
            changes.push(Change::Kept { name: name.clone(), place: content.place.clone() });
        }
    }
    changes.extend(tags(&before, &after));
    changes
}

/// What two releases say differently about one name.
fn differences(before: &Content, after: &Content) -> Vec<Changed> {
    if let (Some(old), Some(new)) = (&before.identity, &after.identity)
        && old.relation(new) == Sameness::Same
    {
        return Vec::new();
    }
    let aspects: BTreeSet<&Aspect> = before.aspects.keys().chain(after.aspects.keys()).collect();
    aspects
        .into_iter()
        .filter_map(|aspect| {
            let (from, to) = (before.aspects.get(aspect), after.aspects.get(aspect));
            let same = match (aspect, from, to) {
                // One release says 3.8.6 and the other 3.8: that is no contradiction.
                (Aspect::Claim(_), Some(from), Some(to)) => agree(&from.text, &to.text),
                // Saying nothing about a package does not change the image, nor does having no lock.
                (Aspect::Claim(_), _, _) | (Aspect::Digest, None, _) | (Aspect::Digest, _, None) => true,
                _ => from.map(|w| &w.text) == to.map(|w| &w.text),
            };
            (!same).then(|| Changed { aspect: aspect.clone(), from: from.cloned(), to: to.cloned() })
        })
        .collect()
}

/// Whether two claimed versions can be of the same image: equal as far as both go.
pub(crate) fn agree(left: &str, right: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        text.trim().trim_start_matches(['v', 'V']).split('.').map(str::to_owned).collect()
    };
    let (left, right) = (parts(left), parts(right));
    left.starts_with(&right) || right.starts_with(&left)
}

/// The names that change themselves, and those that are built upon them.
fn spread(
    own: &BTreeMap<&ImageName, Vec<Changed>>,
    after: &BTreeMap<ImageName, Content>,
) -> BTreeSet<ImageName> {
    let mut changed: BTreeSet<ImageName> =
        own.iter().filter(|(_, changed)| !changed.is_empty()).map(|(name, _)| (*name).clone()).collect();
    loop {
        let more: Vec<ImageName> = after
            .iter()
            .filter(|(name, content)| {
                own.contains_key(name)
                    && !changed.contains(*name)
                    && content.base.as_ref().is_some_and(|(base, _)| changed.contains(base))
            })
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            return changed;
        }
        changed.extend(more);
    }
}

/// The changed names that a name is built upon, nearest first.
fn chain(
    name: &ImageName,
    after: &BTreeMap<ImageName, Content>,
    changed: &BTreeSet<ImageName>,
) -> Vec<ImageName> {
    let mut found = Vec::new();
    let mut at = name;
    while let Some((base, _)) = after.get(at).and_then(|content| content.base.as_ref()) {
        if !changed.contains(base) || found.contains(base) || base == name {
            break;
        }
        found.push(base.clone());
        at = base;
    }
    found
}

/// The tags of one stream, each with its full name.
type Tags = BTreeMap<String, ImageName>;

fn by_stream(contents: &BTreeMap<ImageName, Content>) -> BTreeMap<String, Tags> {
    let mut streams: BTreeMap<String, Tags> = BTreeMap::new();
    for name in contents.keys() {
        if let ImageName::StreamTag { namespace, stream, tag } = name {
            let stream = namespace.as_ref().map_or_else(|| stream.clone(), |ns| format!("{ns}/{stream}"));
            streams.entry(stream).or_default().insert(tag.clone(), name.clone());
        }
    }
    streams
}

/// Tags of image streams that came and went.
fn tags(before: &BTreeMap<ImageName, Content>, after: &BTreeMap<ImageName, Content>) -> Vec<Change> {
    let (old, new) = (by_stream(before), by_stream(after));
    let mut changes = Vec::new();
    for (stream, new_tags) in new {
        let Some(old_tags) = old.get(&stream) else { continue };
        let gone = only(old_tags, &new_tags, before);
        let come = only(&new_tags, old_tags, after);
        if gone.is_empty() {
            continue;
        }
        if come.is_empty() {
            let removed = |(name, content): &(&ImageName, &Content)| Change::Removed {
                name: (*name).clone(),
                place: content.place.clone(),
            };
            changes.extend(gone.iter().map(removed));
            continue;
        }
        let differing = match (gone.as_slice(), come.as_slice()) {
            ([(_, from)], [(_, to)]) => differences(from, to),
            _ => Vec::new(),
        };
        let (from, to) = (written(&gone), written(&come));
        changes.push(Change::Renamed { stream, from, to, changed: differing });
    }
    changes
}

/// The tags that one side has and the other has not.
fn only<'c>(
    these: &Tags,
    others: &Tags,
    contents: &'c BTreeMap<ImageName, Content>,
) -> Vec<(&'c ImageName, &'c Content)> {
    let missing = these.iter().filter(|(tag, _)| !others.contains_key(*tag));
    missing.filter_map(|(_, name)| contents.get_key_value(name)).collect()
}

fn written(tags: &[(&ImageName, &Content)]) -> Vec<Written> {
    let tag_of = |name: &ImageName| match name {
        ImageName::StreamTag { tag, .. } => tag.clone(),
        ImageName::Reference(written) => written.clone(),
    };
    tags.iter().map(|(name, content)| Written { text: tag_of(name), place: content.place.clone() }).collect()
}

/// Findings about changes: same name and new content is a fault, a new name is what should be.
pub fn change_findings(changes: &[Change]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = changes.iter().filter_map(finding).collect();
    let mut kept: Vec<(&Place, &ImageName)> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Kept { name, place } => Some((place, name)),
            _ => None,
        })
        .collect();
    kept.sort();
    if let Some((place, first)) = kept.first() {
        let message = match kept.len() {
            1 => format!("{} keeps its name", first.short()),
            n => format!("{n} names stay, and so does what is declared about them"),
        };
        let mut finding =
            Finding::new(codes::identity::TAGS_KEPT, message, Place { file: None, ..(*place).clone() });
        if kept.len() > 1 {
            finding.place = Place::default();
        }
        for (place, name) in &kept {
            finding = finding.with_related((*place).clone(), name.short());
        }
        findings.push(finding);
    }
    findings
}

fn finding(change: &Change) -> Option<Finding> {
    match change {
        Change::SameName { name, place, changed, through, base_place } => {
            Some(same_name(name, place, changed, through, base_place.as_ref()))
        }
        Change::Moved { name, place, changed } => {
            let message = format!("{} is another image from now on", name.short());
            Some(with_changed(
                Finding::new(codes::identity::CATALOGUE_MOVES, message, place.clone()),
                changed,
            ))
        }
        Change::Renamed { stream, from, to, changed } => {
            let names =
                |tags: &[Written]| tags.iter().map(|tag| tag.text.as_str()).collect::<Vec<_>>().join(", ");
            let place = to.first().map(|tag| tag.place.clone()).unwrap_or_default();
            let message = format!("{stream} moves from tag {} to {}", names(from), names(to));
            let mut finding = Finding::new(codes::identity::RENAMED, message, place);
            for tag in from {
                finding = finding.with_related(tag.place.clone(), "the old tag");
            }
            Some(with_changed(finding, changed))
        }
        Change::Removed { name, place } => {
            let message = format!("{} is gone", name.short());
            Some(Finding::new(codes::identity::TAG_REMOVED, message, place.clone()))
        }
        Change::Kept { .. } => None,
    }
}

fn same_name(
    name: &ImageName,
    place: &Place,
    changed: &[Changed],
    through: &[ImageName],
    base_place: Option<&Place>,
) -> Finding {
    let message = format!("{} keeps its name and gets new content", name.short());
    let mut finding = Finding::new(codes::identity::SAME_NAME_NEW_CONTENT, message, place.clone());
    let general = finding.cause.clone();
    let only_claims = changed.iter().all(|changed| matches!(changed.aspect, Aspect::Claim(_)));
    if let Some(nearest) = through.first() {
        let names: Vec<String> = through.iter().map(ImageName::short).collect();
        let why = if changed.is_empty() {
            format!("it is built upon {}, which gets new content; {general}", names.join(", built upon "))
        } else {
            general
        };
        finding = finding.with_cause(why);
        if let Some(base) = base_place {
            finding = finding.with_related(base.clone(), format!("{} changes too", nearest.short()));
        }
    } else if only_claims {
        finding = finding.with_cause(format!(
            "only the claims differ: either one of them is wrong, or the image changes behind its name, and then {general}"
        ));
    }
    if let ImageName::StreamTag { tag, .. } = name {
        let advice = format!(
            "give the new content a tag of its own, such as {}, or refer to it by digest",
            next_tag(tag)
        );
        finding = finding.with_remedy(advice);
    }
    with_changed(finding, changed)
}

/// Adds what changed, the claims of one annotation together.
fn with_changed(mut finding: Finding, changed: &[Changed]) -> Finding {
    let mut claims: BTreeMap<(String, u32), (Place, Vec<String>)> = BTreeMap::new();
    for changed in changed {
        let Some(at) = changed.to.as_ref().or(changed.from.as_ref()) else { continue };
        match (&changed.aspect, &at.place.file) {
            (Aspect::Claim(_), Some(file)) => {
                let key = (file.path.clone(), file.line);
                claims.entry(key).or_insert_with(|| (at.place.clone(), Vec::new())).1.push(changed.text());
            }
            _ => finding = finding.with_related(at.place.clone(), changed.text()),
        }
    }
    for (place, texts) in claims.into_values() {
        finding = finding.with_related(place, texts.join(", "));
    }
    finding
}

/// A tag that nobody has cached: the old one with a counter. More than one digit is taken for a version, not a counter.
fn next_tag(tag: &str) -> String {
    let counted = tag.rsplit_once('-').filter(|(_, count)| count.len() == 1);
    match counted.and_then(|(head, count)| Some((head, count.parse::<u32>().ok()?))) {
        Some((head, count)) => format!("{head}-{}", count + 1),
        None => format!("{tag}-1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_tag_counts_counters_and_leaves_versions_alone() {
        let cases = [
            ("py3.8-cuda-11.0.3", "py3.8-cuda-11.0.3-1"),
            ("py3.8-cuda-11.0.3-1", "py3.8-cuda-11.0.3-2"),
            ("py3.8-cuda-11", "py3.8-cuda-11-1"),
            ("latest", "latest-1"),
        ];
        for (old, new) in cases {
            assert_eq!(next_tag(old), new);
        }
    }

    #[test]
    fn claims_agree_as_far_as_both_go() {
        for (left, right, wanted) in
            [("v3.8.6", "v3.8", true), ("2.4.1", "2.7", false), ("1.8", "1.80", false), ("3", "v3", true)]
        {
            assert_eq!(agree(left, right), wanted, "{left} {right}");
            assert_eq!(agree(right, left), wanted, "{right} {left}");
        }
    }
}
