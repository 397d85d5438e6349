//! Running: does each container run what it names?

use scantling_finding::codes::audit::{NOT_DECIDED, RUNS_OTHER};
use scantling_release::LockedImage;

use crate::builder::{Builder, Draft, events, subject as subject_of};
use crate::facts::{Facts, RefId};
use crate::images::DigestId;
use crate::row::{Row, Section, Verdict};
use crate::verdict::{Runs, runs};
use crate::wanted::Basis;

/// The rows of this section.
pub(crate) fn rows(facts: &Facts<'_>, builder: &Builder<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (pod_number, pod) in facts.seen.pods.iter().enumerate() {
        if !builder.options.wants(pod.key.namespace.as_deref()) || pod.ended {
            continue;
        }
        for number in 0..pod.containers.len() {
            rows.extend(row(facts, builder, pod_number, number));
        }
    }
    rows
}

fn row(facts: &Facts<'_>, builder: &Builder<'_>, pod_number: usize, number: usize) -> Option<Row> {
    let (verdict, code, why) = match runs(facts, pod_number, number)? {
        Runs::Same | Runs::Unasked => return None,
        Runs::Different => (Verdict::Different, RUNS_OTHER, None),
        Runs::Moved(why) => (Verdict::Moved, RUNS_OTHER, Some(why)),
        Runs::Unknown(why) => (Verdict::Unknown, NOT_DECIDED, Some(why)),
    };
    let (pod, container) = facts.container(pod_number, number)?;
    let reference = facts.id(&container.image)?;
    let asked = facts.asked.get(reference)?;
    let meant = facts.meant.get(reference).and_then(Option::as_ref)?;
    // That two nodes have two images is said where replicas are compared.
    if verdict == Verdict::Unknown && matches!(meant.basis, Basis::Pull { .. }) {
        return None;
    }
    let runs = facts.images.known(container.digest.as_ref()?)?;
    let mut draft = Draft::new(Section::Running, verdict, code);
    draft.subjects.push(subject_of(pod, &container.name, None));
    draft.reference = Some(container.image.to_string());
    draft.found(facts, runs);
    draft.want(facts, meant);
    let node = pod.node?;
    draft.why = why.unwrap_or_else(|| how(facts, reference, node, (pod_number, number)));
    if let Some(what) = instead(facts, Some(node), runs) {
        draft.why = format!("it is {what}; {}", draft.why);
    }
    draft.evidence.push(crate::evidence::of_container(pod, container));
    draft.evidence.extend(meant.evidence(facts));
    draft.evidence.extend(events(facts, reference, pod, container));
    if verdict.is_broken() {
        draft.remedies.extend(builder.pin(facts, pod, container, asked, meant));
    }
    Some(draft.row())
}

/// How a container came to run what it runs.
fn how(facts: &Facts<'_>, reference: RefId, node: usize, of: (usize, usize)) -> String {
    let name = facts.seen.nodes.get(node).map(|node| node.name.as_ref()).unwrap_or_default();
    let held = facts.table.get(&(reference, node));
    let start = held.and_then(|held| held.starts.iter().find(|start| (start.pod, start.container) == of));
    let Some((start, (_, container))) = start.and_then(|start| Some((start, facts.container(of.0, of.1)?)))
    else {
        return format!("{name} had it under this name");
    };
    if start.pulled {
        return format!("it was pulled at {}, and the name has moved since", container.started_text);
    }
    let policy = container.policy.map(|policy| format!(" (policy {policy})")).unwrap_or_default();
    format!(
        "{name} had it under this name at {} and did not ask the registry{policy}",
        container.started_text
    )
}

/// Which known release's image a digest is.
pub(crate) fn instead(facts: &Facts<'_>, node: Option<usize>, digest: DigestId) -> Option<String> {
    let node = node?;
    let named = |image: &LockedImage| {
        facts
            .images
            .known(&image.digest)
            .is_some_and(|known| facts.relation_on(node, digest, known) == scantling_image::Sameness::Same)
    };
    facts.knowledge.releases.iter().find_map(|release| {
        let image = release.images().find(|image| named(image))?;
        Some(format!("{} of {}", image.reference.written(), release.title))
    })
}
