//! One pure, total function for each question.

use scantling_image::{PullPolicy, Sameness};

use crate::facts::{Asked, Facts, RefId, START_SLACK};
use crate::images::DigestId;
use crate::meaning::{Meaning, Proof, meaning};
use crate::seen::{Doing, Text};
use crate::wanted::{Basis, Meant};

/// Is what a container runs what its name means?
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The same image.
    Same,
    /// Another one.
    Different,
    /// Another digest of its repository: the name has moved, and whether the bytes differ is not known.
    Moved(String),
    /// What is missing to say.
    Unknown(String),
    /// Nobody says what the name means, so that there is no question.
    Unasked,
}

/// What a node would start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Starts {
    /// What is meant; for a name that nobody says a meaning of, what is written.
    Fresh,
    /// Something else.
    Stale { has: DigestId, proof: Option<Proof> },
    /// Another digest of the repository, of which it is not known whether its bytes differ.
    Moved { has: DigestId, proof: Option<Proof>, why: String },
    /// What the registry answers then.
    MustPull,
    /// Nothing: the kubelet has said why.
    CannotPull(String),
    /// What is missing to say.
    Unknown(String),
    /// The node's copy, of which nobody says whether it is what is meant.
    Unasked,
}

/// Who starts a container.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Consumer<'a> {
    pub(crate) policy: PullPolicy,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) secrets: &'a [Text],
}

/// What is missing to tell two digests apart.
pub(crate) fn undecided(facts: &Facts<'_>, a: DigestId, b: DigestId) -> String {
    let short = |id| facts.images.digest(id).map(scantling_image::Digest::short).unwrap_or_default();
    format!(
        "{} and {} may be two manifests of one image: the configuration of at least one of them is not known from here",
        short(a),
        short(b)
    )
}

/// Is what this container runs what its name means? `None` before it has an image.
pub(crate) fn runs(facts: &Facts<'_>, pod: usize, container: usize) -> Option<Runs> {
    let (pod, container) = facts.container(pod, container)?;
    let digest = facts.images.known(container.digest.as_ref()?)?;
    let reference = facts.id(&container.image)?;
    let node = pod.node?;
    // A digest decides by itself: whatever the runtime shows is a manifest of the same image.
    if facts.asked.get(reference)?.pinned.is_some() {
        return Some(Runs::Same);
    }
    let Some(meant) = facts.meant.get(reference).and_then(Option::as_ref) else { return Some(Runs::Unasked) };
    Some(match against(facts, node, digest, meant) {
        Sameness::Same => Runs::Same,
        Sameness::Different => match &meant.basis {
            // Only what was there before the pull is older than the pull.
            Basis::Pull { start, .. } if !held_before(facts, reference, node, digest, start.at) => {
                Runs::Unknown("which of the two the registry means now is not known from here".to_owned())
            }
            _ => Runs::Different,
        },
        Sameness::Unknown => {
            let why = undecided(facts, digest, meant.digest);
            if has_moved(facts, reference, digest, meant) { Runs::Moved(why) } else { Runs::Unknown(why) }
        }
    })
}

/// Compares an image on a node with what is meant. A pull on a node of another platform is compared across platforms.
fn against(facts: &Facts<'_>, node: usize, digest: DigestId, meant: &Meant) -> Sameness {
    let here = facts.platform(node);
    let there = match &meant.basis {
        Basis::Pull { node, .. } => facts.platform(*node),
        _ => here,
    };
    facts.images.relation((here, digest), (there, meant.digest))
}

/// Is the digest one of the repository, and another than the one that is meant? A last pull is no measure for that: which of the two came
/// later is not known.
fn has_moved(facts: &Facts<'_>, reference: RefId, digest: DigestId, meant: &Meant) -> bool {
    !matches!(meant.basis, Basis::Pull { .. }) && facts.is_of_repository(reference, digest)
}

/// Was this image started on the node under this name before that time?
fn held_before(facts: &Facts<'_>, reference: RefId, node: usize, digest: DigestId, before: i64) -> bool {
    let starts = facts.table.get(&(reference, node)).map(|held| held.starts.as_slice()).unwrap_or_default();
    starts.iter().any(|start| {
        start.at + START_SLACK < before && facts.relation_on(node, start.digest, digest) == Sameness::Same
    })
}

/// What would this node start for this consumer under this reference? Total.
pub(crate) fn next_start(facts: &Facts<'_>, reference: RefId, node: usize, consumer: Consumer<'_>) -> Starts {
    let Some(asked) = facts.asked.get(reference) else {
        return Starts::Unknown("the reference is not in the snapshot".to_owned());
    };
    if let Some(why) = failure(facts, reference, node, consumer) {
        return Starts::CannotPull(why);
    }
    if let Some(digest) = asked.pinned {
        return pinned(facts, reference, node, digest, consumer);
    }
    if consumer.policy == PullPolicy::Always {
        return from_registry(facts, reference, node);
    }
    match meaning(facts, reference, node) {
        Meaning::Is { digest, proof } => from_node(facts, (reference, asked), node, digest, proof, consumer),
        Meaning::Nothing if consumer.policy == PullPolicy::Never => {
            Starts::CannotPull("the node does not have it, and the policy is Never".to_owned())
        }
        Meaning::Nothing => from_registry(facts, reference, node),
        Meaning::Unknown(why) => Starts::Unknown(why),
    }
}

/// What the kubelet said of a pod that has the same credentials and asks for the same.
fn failure(facts: &Facts<'_>, reference: RefId, node: usize, consumer: Consumer<'_>) -> Option<String> {
    let held = facts.table.get(&(reference, node))?;
    held.failing.iter().find_map(|(pod, container)| {
        let (pod, container) = facts.container(*pod, *container)?;
        let same = pod.key.namespace.as_deref() == consumer.namespace
            && pod.secrets == consumer.secrets
            && container.policy == Some(consumer.policy);
        let Doing::Waiting { reason, message } = &container.doing else { return None };
        same.then(|| if message.is_empty() { reason.to_string() } else { format!("{reason}: {message}") })
    })
}

fn pinned(
    facts: &Facts<'_>,
    reference: RefId,
    node: usize,
    digest: DigestId,
    consumer: Consumer<'_>,
) -> Starts {
    if consumer.policy == PullPolicy::Always {
        return Starts::MustPull;
    }
    let here = |other: DigestId| facts.relation_on(node, digest, other) == Sameness::Same;
    let list = facts.lists.get(node);
    let listed = list.is_some_and(|list| list.entries.iter().flatten().any(|other| here(*other)));
    let started = facts.table.get(&(reference, node)).is_some_and(|held| {
        held.starts.iter().any(|start| {
            facts
                .container(start.pod, start.container)
                .is_some_and(|(_, container)| container.doing == Doing::Running)
        })
    });
    if listed || started {
        let allowed = facts.may_use(reference, node, digest, consumer.namespace, consumer.secrets);
        return if allowed { Starts::Fresh } else { Starts::MustPull };
    }
    // Any pull since the list was sent may have brought it, under this name or another.
    let is_absent = list.is_some_and(|list| list.complete) && !facts.has_pulled_since_its_list(node);
    match (is_absent, consumer.policy) {
        (true, PullPolicy::Never) => {
            Starts::CannotPull("the node does not have it, and the policy is Never".to_owned())
        }
        (true, _) => Starts::MustPull,
        (false, _) => Starts::Unknown(
            "the node's list is cut or old, so that an image that is not in it may be there; the digest decides what starts"
                .to_owned(),
        ),
    }
}

/// The node asks the registry: what would that answer?
fn from_registry(facts: &Facts<'_>, reference: RefId, node: usize) -> Starts {
    let Some(meant) = facts.meant.get(reference).and_then(Option::as_ref) else { return Starts::MustPull };
    match &meant.basis {
        Basis::Release { .. } => match facts.answers.get(reference).copied().flatten() {
            Some(answer) => match facts.relation_on(node, answer, meant.digest) {
                Sameness::Same => Starts::Fresh,
                Sameness::Different => Starts::Stale { has: answer, proof: None },
                Sameness::Unknown => {
                    Starts::Moved { has: answer, proof: None, why: undecided(facts, answer, meant.digest) }
                }
            },
            None => Starts::MustPull,
        },
        Basis::Registry { .. } | Basis::Stream { .. } => Starts::Fresh,
        Basis::Pull { .. } => Starts::MustPull,
    }
}

fn from_node(
    facts: &Facts<'_>,
    (reference, asked): (RefId, &Asked),
    node: usize,
    digest: DigestId,
    proof: Proof,
    consumer: Consumer<'_>,
) -> Starts {
    let Some(meant) = facts.meant.get(reference).and_then(Option::as_ref) else { return Starts::Unasked };
    let sameness = against(facts, node, digest, meant);
    if !facts.may_use(reference, node, digest, consumer.namespace, consumer.secrets) {
        if sameness == Sameness::Same && matches!(meant.basis, Basis::Registry { .. } | Basis::Stream { .. })
        {
            return Starts::Fresh;
        }
        return Starts::Unknown(format!(
            "the kubelet has {} for other credentials and may ask the registry again for these",
            asked.canonical
        ));
    }
    match sameness {
        Sameness::Same => Starts::Fresh,
        Sameness::Unknown => {
            let why = undecided(facts, digest, meant.digest);
            if has_moved(facts, reference, digest, meant) {
                Starts::Moved { has: digest, proof: Some(proof), why }
            } else {
                Starts::Unknown(why)
            }
        }
        Sameness::Different => match &meant.basis {
            Basis::Pull { start, .. } if !held_before(facts, reference, node, digest, start.at) => {
                Starts::Unknown("which of the two the registry means now is not known from here".to_owned())
            }
            _ => Starts::Stale { has: digest, proof: Some(proof) },
        },
    }
}

/// What a mere restart of a running container would bring, if that is another image than it runs now.
pub(crate) fn restart_changes(facts: &Facts<'_>, pod: usize, container: usize) -> Option<(DigestId, Proof)> {
    let (pod, container) = facts.container(pod, container)?;
    if container.doing != Doing::Running || pod.deleting {
        return None;
    }
    let reference = facts.id(&container.image)?;
    if facts.asked.get(reference)?.pinned.is_some() {
        return None;
    }
    let (node, runs) = (pod.node?, facts.images.known(container.digest.as_ref()?)?);
    if container.policy? == PullPolicy::Always {
        return None;
    }
    let Meaning::Is { digest, proof } = meaning(facts, reference, node) else { return None };
    if facts.relation_on(node, runs, digest) != Sameness::Different {
        return None;
    }
    // Without the credentials the registry is asked; that may bring back what runs.
    if !facts.may_use(reference, node, digest, pod.key.namespace.as_deref(), &pod.secrets) {
        let answer = facts.answers.get(reference).copied().flatten()?;
        if facts.relation_on(node, runs, answer) != Sameness::Different {
            return None;
        }
    }
    Some((digest, proof))
}
