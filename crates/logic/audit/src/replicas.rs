//! Replicas: do the pods of one workload, and all nodes under one name, have one image? No lock is needed to see that they do not.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::ObjectKey;
use scantling_finding::Severity;
use scantling_finding::codes::audit::{NAME_OF_TWO, REPLICAS_DIFFER};
use scantling_image::{Digest, Sameness};

use crate::builder::{Builder, Draft, subject as subject_of};
use crate::evidence::{of_container, of_entry};
use crate::facts::{Facts, RefId};
use crate::images::{DigestId, PlatformId};
use crate::meaning::{Meaning, Proof, meaning};
use crate::row::{Evidence, Row, Section, Subject, Verdict};
use crate::seen::Doing;

/// Somebody who has an image under a name: a running container, or a node's list.
#[derive(Debug, Clone, Copy)]
struct Member {
    platform: PlatformId,
    digest: DigestId,
    node: usize,
    /// Pod and container, or the entry of the node's list.
    container: Option<(usize, usize)>,
    entry: Option<usize>,
}

/// The rows of this section.
pub(crate) fn rows(facts: &Facts<'_>, builder: &Builder<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut by_reference: BTreeMap<RefId, Vec<Member>> = BTreeMap::new();
    for ((reference, node), held) in &facts.table {
        if facts.asked.get(*reference).is_none_or(|asked| asked.pinned.is_some()) {
            continue;
        }
        let platform = facts.platform(*node);
        let members = by_reference.entry(*reference).or_default();
        members.extend(held.starts.iter().filter_map(|start| {
            let (pod, container) = facts.container(start.pod, start.container)?;
            (container.doing == Doing::Running && !pod.deleting).then_some(Member {
                platform,
                digest: start.digest,
                node: *node,
                container: Some((start.pod, start.container)),
                entry: None,
            })
        }));
        // A list that is older than what was started says what the name led to before.
        if let Meaning::Is { digest, proof: Proof::Listed(entry) } = meaning(facts, *reference, *node) {
            members.push(Member { platform, digest, node: *node, container: None, entry: Some(entry) });
        }
    }
    for (reference, members) in by_reference {
        let mut told: BTreeSet<DigestId> = BTreeSet::new();
        let mut by_workload: BTreeMap<(&ObjectKey, &str), Vec<Member>> = BTreeMap::new();
        for member in &members {
            let Some((pod, container)) = member.container.and_then(|it| facts.container(it.0, it.1)) else {
                continue;
            };
            if pod.workload != pod.key {
                by_workload.entry((&pod.workload, &container.name)).or_default().push(*member);
            }
        }
        for ((workload, _), members) in &by_workload {
            if builder.options.wants(workload.namespace.as_deref())
                && let Some(row) = row(facts, builder, reference, members, true)
            {
                told.extend(members.iter().map(|member| member.digest));
                rows.push(row);
            }
        }
        // What a workload's row says already is not said again of the name.
        if members.iter().any(|member| !told.contains(&member.digest)) && concerns(facts, builder, &members) {
            rows.extend(row(facts, builder, reference, &members, false));
        }
    }
    rows
}

/// Is one of the containers in a namespace that is looked at?
fn concerns(facts: &Facts<'_>, builder: &Builder<'_>, members: &[Member]) -> bool {
    members.iter().any(|member| {
        let pod = member.container.and_then(|(pod, _)| facts.seen.pods.get(pod));
        pod.is_some_and(|pod| builder.options.wants(pod.key.namespace.as_deref()))
    })
}

/// The members of each image. Images of two platforms are not compared: they are never the same bytes.
fn classes(facts: &Facts<'_>, members: &[Member]) -> Vec<Vec<Member>> {
    let mut classes: Vec<Vec<Member>> = Vec::new();
    for member in members {
        let own = classes.iter_mut().find(|class| {
            class.first().is_some_and(|first| {
                facts.images.relation((first.platform, first.digest), (member.platform, member.digest))
                    == Sameness::Same
            })
        });
        match own {
            Some(class) => class.push(*member),
            None => classes.push(vec![*member]),
        }
    }
    classes
}

fn row(
    facts: &Facts<'_>,
    builder: &Builder<'_>,
    reference: RefId,
    members: &[Member],
    of_workload: bool,
) -> Option<Row> {
    let classes = classes(facts, members);
    let firsts: Vec<Member> = classes.iter().filter_map(|class| class.first().copied()).collect();
    let mut pairs = firsts.iter().enumerate().flat_map(|(at, a)| {
        firsts.iter().skip(at + 1).filter(|b| b.platform == a.platform).map(move |b| (*a, *b))
    });
    let mut apart =
        pairs.clone().filter(|(a, b)| facts.relation_on(a.node, a.digest, b.digest) == Sameness::Different);
    let proven = apart.next();
    let (a, b) = match proven {
        Some(pair) => pair,
        None => pairs.next()?,
    };
    let asked = facts.asked.get(reference)?;
    let code = if of_workload { REPLICAS_DIFFER } else { NAME_OF_TWO };
    // A name whose own repository shows two digests has been moved, whatever is in them.
    let own = [a, b].iter().all(|member| facts.is_of_repository(reference, member.digest));
    let verdict = match (proven, own) {
        (Some(_), _) => Verdict::Different,
        (None, true) => Verdict::Moved,
        (None, false) => Verdict::Unknown,
    };
    let mut draft = Draft::new(Section::Replicas, verdict, code);
    draft.reference = Some(asked.reference.written().to_owned());
    // Fewer first: they are the ones that somebody looks for.
    let mut ordered: Vec<&Vec<Member>> = classes.iter().collect();
    ordered.sort_by_key(|class| class.len());
    for class in &ordered {
        draft
            .found
            .extend(class.first().and_then(|it| facts.images.digest(it.digest)).map(Digest::to_string));
        draft.evidence.extend(class.iter().filter_map(|member| evidence(facts, member)).take(2));
    }
    let subjects: Vec<Subject> =
        ordered.iter().flat_map(|class| class.iter()).filter_map(|member| subject(facts, member)).collect();
    draft.subjects.extend(subjects);
    // The id must not depend on which of them is in the minority just now.
    draft.subjects.sort();
    draft.subjects.dedup();
    let counts: Vec<String> = ordered.iter().map(|class| count(facts, class)).collect();
    let counts = counts.join(", ");
    if proven.is_some() {
        draft.why = if of_workload {
            format!("its pods run {} images: {counts}", classes.len())
        } else {
            format!("{} images go by this name: {counts}", classes.len())
        };
    } else {
        draft.why = format!(
            "{} digests go by this name ({counts}); {}",
            classes.len(),
            crate::verdict::undecided(facts, a.digest, b.digest)
        );
        if verdict == Verdict::Unknown {
            draft.severity = Severity::Warning;
        }
    }
    let meant = facts.meant.get(reference).and_then(Option::as_ref);
    if let Some(meant) = meant {
        draft.want(facts, meant);
        draft.evidence.extend(meant.evidence(facts));
        let digest = facts.images.digest(meant.digest)?;
        let mut done = BTreeSet::new();
        for member in members {
            let Some((pod, container)) = member.container.and_then(|it| facts.container(it.0, it.1)) else {
                continue;
            };
            if done.insert((&pod.workload, &container.name)) {
                let holder = builder.holder(facts, pod, container);
                draft.remedies.push(crate::remedy::pin(&holder, &asked.reference, digest));
            }
        }
    }
    Some(draft.row())
}

fn count(facts: &Facts<'_>, class: &[Member]) -> String {
    let digest = class.first().and_then(|member| facts.images.digest(member.digest));
    let pods = class.iter().filter(|member| member.container.is_some()).count();
    let nodes: BTreeSet<usize> = class.iter().map(|member| member.node).collect();
    let word = |number: usize, one: &str| {
        if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
    };
    let who = match pods {
        0 => String::new(),
        pods => format!("{} on ", word(pods, "container")),
    };
    format!("{} {who}{}", digest.map(Digest::short).unwrap_or_default(), word(nodes.len(), "node"))
}

fn evidence(facts: &Facts<'_>, member: &Member) -> Option<Evidence> {
    match member.container {
        Some((pod, container)) => {
            facts.container(pod, container).map(|(pod, container)| of_container(pod, container))
        }
        None => of_entry(facts, member.node, member.entry?),
    }
}

fn subject(facts: &Facts<'_>, member: &Member) -> Option<Subject> {
    let node = facts.seen.nodes.get(member.node).map(|node| node.name.as_ref());
    match member.container {
        Some((pod, container)) => {
            facts.container(pod, container).map(|(pod, container)| subject_of(pod, &container.name, node))
        }
        None => Some(Subject {
            object: format!("Node {}", node?),
            namespace: None,
            pod: None,
            container: None,
            node: node.map(str::to_owned),
        }),
    }
}
