//! Next start: what would a node start under the names that workloads write, and what would a mere restart change?

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::ObjectKey;
use scantling_finding::codes::audit::{NOT_DECIDED, NOT_PULLED, RESTART_CHANGES, STARTS_STALE};
use scantling_image::{Digest, PullPolicy};

use crate::builder::{Builder, Draft, events, subject as subject_of};
use crate::evidence::{of_container, of_entry, of_pull};
use crate::facts::{Facts, RefId, lacks_image};
use crate::images::DigestId;
use crate::meaning::{Meaning, Proof, meaning};
use crate::remedy::{Holder, of_failure, pin, pull_again};
use crate::row::{Evidence, Remedy, Row, Section, Subject, Verdict};
use crate::seen::{ContainerSeen, Doing, PodSeen, Pulling};
use crate::uses::Use;
use crate::verdict::{Consumer, Starts, next_start, restart_changes};
use crate::wanted::Basis;

/// Nodes that a sentence names.
const SHOWN_NODES: usize = 5;

/// Who would start a container on a node.
#[derive(Clone, Copy)]
enum Who<'f> {
    Pod(&'f PodSeen, &'f ContainerSeen),
    Template(&'f Use),
}

impl<'f> Who<'f> {
    fn object(self) -> &'f ObjectKey {
        match self {
            Self::Pod(pod, _) => &pod.workload,
            Self::Template(used) => &used.object,
        }
    }

    fn container(self) -> &'f str {
        match self {
            Self::Pod(_, container) => &container.name,
            Self::Template(used) => &used.name,
        }
    }

    fn consumer(self) -> Option<Consumer<'f>> {
        Some(match self {
            Self::Pod(pod, container) => Consumer {
                policy: container.policy?,
                namespace: pod.key.namespace.as_deref(),
                secrets: &pod.secrets,
            },
            Self::Template(used) => Consumer {
                policy: used.policy?,
                namespace: used.object.namespace.as_deref(),
                secrets: &used.secrets,
            },
        })
    }
}

/// The rows of this section.
pub(crate) fn rows(facts: &Facts<'_>, builder: &Builder<'_>) -> Vec<Row> {
    let mut by_reference: BTreeMap<RefId, Vec<&Use>> = BTreeMap::new();
    for used in &facts.templates {
        if let Some(reference) = facts.id(&used.image) {
            by_reference.entry(reference).or_default().push(used);
        }
    }
    let mut on_node: BTreeMap<(RefId, usize), Vec<Who<'_>>> = BTreeMap::new();
    for pod in facts.seen.pods.iter().filter(|pod| !pod.ended && !pod.deleting) {
        let Some(node) = pod.node else { continue };
        for container in &pod.containers {
            if let Some(reference) = facts.id(&container.image) {
                on_node.entry((reference, node)).or_default().push(Who::Pod(pod, container));
            }
        }
    }
    let mut rows = Vec::new();
    let keys: BTreeSet<(RefId, usize)> = facts.table.keys().chain(on_node.keys()).copied().collect();
    for (reference, node) in keys {
        let pods = on_node.get(&(reference, node)).map(Vec::as_slice).unwrap_or_default();
        let templates = by_reference.get(&reference).map(Vec::as_slice).unwrap_or_default();
        let landing = templates
            .iter()
            .filter(|used| lands(facts, used, node) && !pods.iter().any(|who| *who.object() == used.object));
        let all: Vec<Who<'_>> = pods.iter().copied().chain(landing.map(|used| Who::Template(used))).collect();
        let wanted: Vec<Who<'_>> =
            all.into_iter().filter(|who| builder.options.wants(who.object().namespace.as_deref())).collect();
        rows.extend(of_pair(facts, builder, reference, node, &wanted));
    }
    for (reference, uses) in &by_reference {
        rows.extend(out_of_sight(facts, builder, *reference, uses));
    }
    rows.extend(restarts(facts, builder));
    rows.extend(malformed(facts, builder));
    rows
}

/// May a pod of this template land on the node?
fn lands(facts: &Facts<'_>, used: &Use, node: usize) -> bool {
    facts.seen.nodes.get(node).is_some_and(|node| {
        node.schedulable
            && used
                .node_selector
                .iter()
                .all(|(key, value)| node.labels.iter().any(|(own, has)| **own == **key && **has == **value))
    })
}

/// The rows of one reference on one node: one for each answer.
fn of_pair(
    facts: &Facts<'_>,
    builder: &Builder<'_>,
    reference: RefId,
    node: usize,
    all: &[Who<'_>],
) -> Vec<Row> {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum Answer {
        Stale(DigestId),
        Moved(DigestId, String),
        CannotPull(String),
        Unknown(String),
    }
    let mut answers: BTreeMap<Answer, (Option<Proof>, Vec<Who<'_>>)> = BTreeMap::new();
    for who in all {
        let Some(consumer) = who.consumer() else { continue };
        let (answer, proof) = match next_start(facts, reference, node, consumer) {
            Starts::Stale { has, proof } => (Answer::Stale(has), proof),
            Starts::Moved { has, proof, why } => (Answer::Moved(has, why), proof),
            Starts::CannotPull(why) => (Answer::CannotPull(why), None),
            Starts::Unknown(why) => (Answer::Unknown(why), None),
            Starts::Fresh | Starts::MustPull | Starts::Unasked => continue,
        };
        answers.entry(answer).or_insert_with(|| (proof, Vec::new())).1.push(*who);
    }
    answers
        .into_iter()
        .filter_map(|(answer, (proof, who))| match answer {
            Answer::Stale(has) => stale(facts, builder, (reference, node), has, proof, None, &who),
            Answer::Moved(has, why) => stale(facts, builder, (reference, node), has, proof, Some(why), &who),
            Answer::CannotPull(why) => cannot_pull(facts, builder, reference, node, &why, &who),
            Answer::Unknown(why) => unknown(facts, reference, node, &why, &who),
        })
        .collect()
}

fn draft(
    facts: &Facts<'_>,
    (reference, node): (RefId, usize),
    verdict: Verdict,
    code: scantling_finding::Code,
    who: &[Who<'_>],
) -> Option<Draft> {
    let asked = facts.asked.get(reference)?;
    let name = &facts.seen.nodes.get(node)?.name;
    let mut draft = Draft::new(Section::NextStart, verdict, code);
    let subjects: BTreeSet<Subject> = who.iter().map(|who| subject(*who, name)).collect();
    draft.subjects.extend(subjects);
    draft.reference = Some(asked.reference.written().to_owned());
    if let Some(meant) = facts.meant.get(reference).and_then(Option::as_ref) {
        draft.want(facts, meant);
        draft.evidence.extend(meant.evidence(facts));
    }
    Some(draft)
}

fn subject(who: Who<'_>, node: &str) -> Subject {
    match who {
        Who::Pod(pod, container) => subject_of(pod, &container.name, Some(node)),
        Who::Template(used) => Subject {
            object: used.object.to_string(),
            namespace: used.object.namespace.clone(),
            pod: None,
            container: Some(used.name.clone()),
            node: Some(node.to_owned()),
        },
    }
}

fn stale(
    facts: &Facts<'_>,
    builder: &Builder<'_>,
    (reference, node): (RefId, usize),
    has: DigestId,
    proof: Option<Proof>,
    undecided: Option<String>,
    who: &[Who<'_>],
) -> Option<Row> {
    let verdict = if undecided.is_some() { Verdict::Moved } else { Verdict::Stale };
    let mut draft = draft(facts, (reference, node), verdict, STARTS_STALE, who)?;
    let asked = facts.asked.get(reference)?;
    let meant = facts.meant.get(reference).and_then(Option::as_ref)?;
    let name = &facts.seen.nodes.get(node)?.name;
    draft.found(facts, has);
    let what = crate::running::instead(facts, Some(node), has)
        .map(|what| format!(", which is {what}"))
        .unwrap_or_default();
    draft.why = match proof {
        Some(_) => format!("{name} has {} under this name{what}", short(facts, has)),
        None => format!("the registry now answers {} for this name{what}", short(facts, has)),
    };
    if let Some(why) = undecided {
        draft.why = format!("{}; {why}", draft.why);
    }
    draft.evidence.extend(proof.and_then(|proof| evidence(facts, node, proof)));
    let digest = facts.images.digest(meant.digest)?;
    draft.remedies.extend(pins(facts, builder, who, |holder| pin(holder, &asked.reference, digest)));
    // Asking again helps only where the registry is the one who says what is meant.
    let registry_says = matches!(meant.basis, Basis::Registry { .. } | Basis::Stream { .. })
        || facts.answers.get(reference).copied().flatten().is_some_and(|answer| {
            facts.relation_on(node, answer, meant.digest) == scantling_image::Sameness::Same
        });
    if registry_says {
        draft.remedies.push(pull_again(&asked.reference, name));
    }
    Some(draft.row())
}

/// One remedy for each object and container.
fn pins(
    facts: &Facts<'_>,
    builder: &Builder<'_>,
    who: &[Who<'_>],
    make: impl Fn(&Holder<'_>) -> Remedy,
) -> Vec<Remedy> {
    let mut seen = BTreeSet::new();
    who.iter()
        .filter(|who| seen.insert((who.object(), who.container())))
        .map(|who| match who {
            Who::Pod(pod, container) => make(&builder.holder(facts, pod, container)),
            Who::Template(used) => make(&Holder {
                object: &used.object,
                pointer: Some(&used.pointer),
                container: &used.name,
                is_static: false,
            }),
        })
        .collect()
}

fn evidence(facts: &Facts<'_>, node: usize, proof: Proof) -> Option<Evidence> {
    match proof {
        Proof::Started { pod, container } => {
            facts.container(pod, container).map(|(pod, container)| of_container(pod, container))
        }
        Proof::Listed(entry) => of_entry(facts, node, entry),
    }
}

fn cannot_pull(
    facts: &Facts<'_>,
    builder: &Builder<'_>,
    reference: RefId,
    node: usize,
    why: &str,
    who: &[Who<'_>],
) -> Option<Row> {
    let mut draft = draft(facts, (reference, node), Verdict::CannotPull, NOT_PULLED, who)?;
    let asked = facts.asked.get(reference)?;
    why.clone_into(&mut draft.why);
    for who in who {
        if let Who::Pod(pod, container) = who
            && lacks_image(container)
        {
            draft.evidence.push(waiting(pod, container));
            draft.evidence.extend(events(facts, reference, pod, container));
        }
    }
    let wanted = facts
        .meant
        .get(reference)
        .and_then(Option::as_ref)
        .and_then(|meant| facts.images.digest(meant.digest))
        .map(|digest| asked.reference.with_digest(digest));
    // What a release locks can be pulled; what the name means is what could not be.
    let image = facts.knowledge.releases.first().and_then(|release| {
        let mut own = release.images().filter(|it| it.reference.same_repository(&asked.reference));
        own.next().filter(|_| own.next().is_none())
    });
    let image = image.map(scantling_release::LockedImage::pinned).or(wanted);
    if let Some(remedy) = of_failure(why) {
        draft.remedies.push(remedy);
        return Some(draft.row());
    }
    draft.remedies.extend(pins(facts, builder, who, |holder| match &image {
        Some(image) if Some(image.written()) != draft.reference.as_deref() => {
            crate::remedy::write(holder, image.written(), "write the image that is known".to_owned())
        }
        _ => crate::remedy::write(
            holder,
            &format!("{}@DIGEST", asked.reference.name()),
            "push the image to its registry, or write a DIGEST that the registry has".to_owned(),
        ),
    }));
    Some(draft.row())
}

fn waiting(pod: &PodSeen, container: &ContainerSeen) -> Evidence {
    let value = match &container.doing {
        Doing::Waiting { reason, message } => format!("{reason}: {message}"),
        _ => String::new(),
    };
    Evidence {
        time: None,
        object: pod.key.to_string(),
        field: container.part.status_field(&container.name).replace(".imageID", ".state.waiting"),
        value,
        resource_version: pod.resource_version.to_string(),
    }
}

fn unknown(facts: &Facts<'_>, reference: RefId, node: usize, why: &str, who: &[Who<'_>]) -> Option<Row> {
    // A digest decides what starts, whether it is there or not; and where nobody says what a name means there is nothing to be stale.
    if facts.asked.get(reference)?.pinned.is_some() {
        return None;
    }
    let meant = facts.meant.get(reference).and_then(Option::as_ref)?;
    if matches!(meant.basis, Basis::Pull { .. }) {
        return None;
    }
    let mut draft = draft(facts, (reference, node), Verdict::Unknown, NOT_DECIDED, who)?;
    why.clone_into(&mut draft.why);
    Some(draft.row())
}

/// Nodes of which nothing is known under a name: their lists are cut, and no pod shows it. One row for all of them.
fn out_of_sight(facts: &Facts<'_>, builder: &Builder<'_>, reference: RefId, uses: &[&Use]) -> Option<Row> {
    let asked = facts.asked.get(reference)?;
    let meant = facts.meant.get(reference).and_then(Option::as_ref)?;
    if asked.pinned.is_some() || matches!(meant.basis, Basis::Pull { .. }) {
        return None;
    }
    let uses: Vec<&&Use> = uses
        .iter()
        .filter(|used| {
            used.policy != Some(PullPolicy::Always) && builder.options.wants(used.object.namespace.as_deref())
        })
        .collect();
    let nodes: Vec<&str> = (0..facts.seen.nodes.len())
        .filter(|node| {
            !facts.table.contains_key(&(reference, *node))
                && matches!(meaning(facts, reference, *node), Meaning::Unknown(_))
                && uses.iter().any(|used| lands(facts, used, *node))
        })
        .filter_map(|node| facts.seen.nodes.get(node).map(|node| node.name.as_ref()))
        .collect();
    let first = nodes.first()?;
    let mut draft = Draft::new(Section::NextStart, Verdict::Unknown, NOT_DECIDED);
    draft.subjects.extend(uses.iter().map(|used| Subject {
        object: used.object.to_string(),
        namespace: used.object.namespace.clone(),
        pod: None,
        container: Some(used.name.clone()),
        node: None,
    }));
    // The workloads and the nodes, not each with each: that would be millions.
    draft.subjects.extend(nodes.iter().map(|node| Subject {
        object: format!("Node {node}"),
        namespace: None,
        pod: None,
        container: None,
        node: Some((*node).to_owned()),
    }));
    draft.reference = Some(asked.reference.written().to_owned());
    draft.want(facts, meant);
    draft.why = match nodes.len() {
        1 => format!("the list of {first} does not show whether it has something under this name"),
        more => format!(
            "the lists of {more} nodes do not show whether they have something under this name: {}{}",
            nodes.iter().take(SHOWN_NODES).copied().collect::<Vec<_>>().join(", "),
            if more > SHOWN_NODES { " …" } else { "" }
        ),
    };
    Some(draft.row())
}

/// Containers that would run something else after a mere restart.
fn restarts(facts: &Facts<'_>, builder: &Builder<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (pod_number, pod) in facts.seen.pods.iter().enumerate() {
        if !builder.options.wants(pod.key.namespace.as_deref()) {
            continue;
        }
        for number in 0..pod.containers.len() {
            let Some((digest, proof)) = restart_changes(facts, pod_number, number) else { continue };
            rows.extend(restart(facts, builder, pod, number, digest, proof));
        }
    }
    rows
}

fn restart(
    facts: &Facts<'_>,
    builder: &Builder<'_>,
    pod: &PodSeen,
    number: usize,
    digest: DigestId,
    proof: Proof,
) -> Option<Row> {
    let container = pod.containers.get(number)?;
    let node = pod.node?;
    let name = &facts.seen.nodes.get(node)?.name;
    let reference = facts.id(&container.image)?;
    let asked = facts.asked.get(reference)?;
    let mut draft = Draft::new(Section::NextStart, Verdict::Changes, RESTART_CHANGES);
    draft.subjects.push(subject_of(pod, &container.name, Some(name)));
    draft.reference = Some(container.image.to_string());
    draft.found.extend(container.digest.as_ref().map(Digest::to_string));
    draft.why = format!(
        "{name} has {} under this name now: when the process ends, the same pod goes on with that",
        short(facts, digest)
    );
    draft.evidence.push(of_container(pod, container));
    draft.evidence.extend(evidence(facts, node, proof));
    if let Proof::Started { pod, container } = proof {
        let started = facts.container(pod, container);
        let events = started.map(|(pod, container)| events(facts, reference, pod, container));
        draft.evidence.extend(events.into_iter().flatten());
    }
    // Who moved the name.
    let pulls = facts.table.get(&(reference, node)).map(|held| held.pulls.as_slice()).unwrap_or_default();
    let is_pull =
        |number: &&usize| facts.seen.pulls.get(**number).is_some_and(|pull| pull.what == Pulling::Pulled);
    let moved = pulls.iter().rev().find(is_pull);
    draft.evidence.extend(moved.and_then(|number| of_pull(facts, *number)));
    let meant = facts.meant.get(reference).and_then(Option::as_ref);
    if let Some(meant) = meant {
        draft.want(facts, meant);
        draft.evidence.extend(meant.evidence(facts));
        draft.remedies.extend(builder.pin(facts, pod, container, asked, meant));
    } else {
        let now = facts.images.digest(digest)?;
        draft.remedies.push(pin(&builder.holder(facts, pod, container), &asked.reference, now));
    }
    Some(draft.row())
}

/// Images that are no references: no kubelet can ask for them.
fn malformed(facts: &Facts<'_>, builder: &Builder<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for pod in &facts.seen.pods {
        if !builder.options.wants(pod.key.namespace.as_deref()) || pod.ended {
            continue;
        }
        for container in pod.containers.iter().filter(|container| lacks_image(container)) {
            let Some(error) = facts.malformed(&container.image) else { continue };
            let mut draft = Draft::new(Section::NextStart, Verdict::CannotPull, NOT_PULLED);
            draft.subjects.push(subject_of(pod, &container.name, None));
            draft.reference = Some(container.image.to_string());
            draft.why = error.to_string();
            draft.evidence.push(waiting(pod, container));
            draft.remedies.push(crate::remedy::write(
                &builder.holder(facts, pod, container),
                "IMAGE",
                "write a reference to an IMAGE".to_owned(),
            ));
            rows.push(draft.row());
        }
    }
    rows
}

fn short(facts: &Facts<'_>, digest: DigestId) -> String {
    facts.images.digest(digest).map(Digest::short).unwrap_or_default()
}
