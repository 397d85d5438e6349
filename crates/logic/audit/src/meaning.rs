//! What a node has under a name now, by the newest evidence.

use scantling_image::Sameness;

use crate::facts::{EVENT_ROUNDING, Facts, Held, LIST_LAG, LISTED_NAMES, RefId, START_SLACK, Start};
use crate::images::DigestId;
use crate::seen::{PullSeen, Pulling};

/// What a name leads to on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// To this image.
    Is { digest: DigestId, proof: Proof },
    /// To nothing: the list is whole and does not have it.
    Nothing,
    /// What is known does not decide it.
    Unknown(String),
}

/// Why it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// A container was started from it.
    Started { pod: usize, container: usize },
    /// The list has it in this entry.
    Listed(usize),
}

/// What a name leads to on a node. Total: for a reference or node that nobody has heard of it is unknown.
pub(crate) fn meaning(facts: &Facts<'_>, reference: RefId, node: usize) -> Meaning {
    let nothing = Held::default();
    let held = facts.table.get(&(reference, node)).unwrap_or(&nothing);
    let Some(seen) = facts.seen.nodes.get(node) else {
        return Meaning::Unknown("the node is not in the snapshot".to_owned());
    };
    let name = &seen.name;
    let last = held.starts.last().copied();
    // A pull by a pod that is gone moves the name without leaving a container to look at.
    let newest = last.map(|start| start.at - START_SLACK).max(seen.reported.map(|sent| sent - LIST_LAG));
    if let Some(pull) = later_pull(facts, held, newest) {
        return Meaning::Unknown(format!(
            "{name} pulled it again at {} for Pod {}/{}, and neither that pod nor the node's list shows what it got",
            pull.0, pull.1, pull.2
        ));
    }
    match (last, seen.reported) {
        (Some(start), Some(sent)) if start.at + LIST_LAG <= sent => by_list(facts, node, held, Some(start)),
        (Some(start), Some(sent)) if start.at <= sent + START_SLACK => {
            let listed = by_list(facts, node, held, None);
            match (by_starts(facts, node, held, start), listed) {
                (Meaning::Is { digest, proof }, Meaning::Is { digest: other, .. }) => {
                    if facts.relation_on(node, digest, other) == Sameness::Same {
                        Meaning::Is { digest, proof }
                    } else {
                        Meaning::Unknown(format!(
                            "the list that {name} sent at {} and what was started at about that time disagree",
                            seen.reported_text
                        ))
                    }
                }
                (started, _) => started,
            }
        }
        (Some(start), _) => by_starts(facts, node, held, start),
        (None, _) => by_list(facts, node, held, None),
    }
}

/// A pull after the newest other evidence, of a pod that does not show the outcome: time and pod.
fn later_pull(facts: &Facts<'_>, held: &Held, newest: Option<i64>) -> Option<(String, String, String)> {
    let newest = newest.unwrap_or(i64::MIN);
    let mut after = held
        .pulls
        .iter()
        .rev()
        .filter_map(|number| facts.seen.pulls.get(*number))
        .take_while(|pull| pull.at > newest);
    let shows = |pull: &PullSeen| {
        held.starts.iter().rev().take_while(|start| start.at + EVENT_ROUNDING >= pull.at).any(|start| {
            facts.container(start.pod, start.container).is_some_and(|(pod, container)| {
                pod.key.namespace.as_deref() == Some(&*pull.pod.0)
                    && *pod.key.name == *pull.pod.1
                    && pull.is_about(&container.name)
            })
        })
    };
    let pull = after.find(|pull| pull.what == Pulling::Pulled && !shows(pull))?;
    Some((pull.at_text.to_string(), pull.pod.0.to_string(), pull.pod.1.to_string()))
}

/// By the containers that were started last. Two starts within a few seconds are not in order; if one of them asked the registry, the
/// other cannot have come after it with something else.
fn by_starts(facts: &Facts<'_>, node: usize, held: &Held, last: Start) -> Meaning {
    let recent: Vec<Start> =
        held.starts.iter().filter(|start| start.at + START_SLACK >= last.at).copied().collect();
    let pulled: Vec<Start> = recent.iter().filter(|start| start.pulled).copied().collect();
    match agreed(facts, node, &recent).or_else(|| agreed(facts, node, &pulled)) {
        Some(start) => Meaning::Is {
            digest: start.digest,
            proof: Proof::Started { pod: start.pod, container: start.container },
        },
        None => Meaning::Unknown(
            "containers that were started within the same seconds run different images".to_owned(),
        ),
    }
}

/// The last of some starts, if all have one image.
fn agreed(facts: &Facts<'_>, node: usize, starts: &[Start]) -> Option<Start> {
    let last = starts.last()?;
    let same = |start: &Start| facts.relation_on(node, start.digest, last.digest) == Sameness::Same;
    starts.iter().all(same).then_some(*last)
}

/// By the node's list; `older` is the newest start if it is surely older than the list.
fn by_list(facts: &Facts<'_>, node: usize, held: &Held, older: Option<Start>) -> Meaning {
    let name = facts.seen.nodes.get(node).map(|seen| seen.name.as_ref()).unwrap_or_default();
    let Some(list) = facts.lists.get(node) else {
        return Meaning::Unknown(format!("{name} is not in the snapshot"));
    };
    if let Some(entry) = held.listed {
        return match list.entries.get(entry).and_then(|digests| digests.first()) {
            Some(digest) => Meaning::Is { digest: *digest, proof: Proof::Listed(entry) },
            None => Meaning::Unknown(format!("{name} lists it without a digest")),
        };
    }
    let names = facts.seen.nodes.get(node).map(|seen| seen.images.as_slice()).unwrap_or_default();
    let is_cut = |entry: usize| names.get(entry).is_none_or(|image| image.names.len() >= LISTED_NAMES);
    if list.complete && !(0..list.entries.len()).any(is_cut) {
        return Meaning::Nothing;
    }
    let Some(start) = older else {
        return Meaning::Unknown(if list.entries.is_empty() {
            format!("{name} shows no list of its images")
        } else {
            format!("the list of {name} is cut, so that a name that is not in it may be there")
        });
    };
    let entry = list.entries.iter().position(|digests| {
        digests.iter().any(|digest| facts.relation_on(node, *digest, start.digest) == Sameness::Same)
    });
    if entry.is_some_and(|entry| !is_cut(entry)) {
        return Meaning::Unknown(format!(
            "{name} no longer has this name for what was started under it, and its list does not show what it has it for"
        ));
    }
    // The list does not say. Events tell of every pull since, if they reach back so far.
    if facts.seen.events_since.is_some_and(|oldest| oldest <= start.at) {
        return by_starts(facts, node, held, start);
    }
    Meaning::Unknown(format!(
        "the list of {name} is cut, and events do not reach back to the last start under this name"
    ))
}
