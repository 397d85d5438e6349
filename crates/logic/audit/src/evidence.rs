//! Facts as evidence: object, field, value, version, time.

use crate::facts::{Facts, Start};
use crate::row::Evidence;
use crate::seen::{ContainerSeen, PodSeen};

/// What a container's status says of its image.
pub(crate) fn of_start(facts: &Facts<'_>, start: &Start) -> Option<Evidence> {
    let (pod, container) = facts.container(start.pod, start.container)?;
    Some(of_container(pod, container))
}

/// What a container's status says of its image.
pub(crate) fn of_container(pod: &PodSeen, container: &ContainerSeen) -> Evidence {
    Evidence {
        time: time(&container.started_text),
        object: pod.key.to_string(),
        field: container.part.status_field(&container.name),
        value: container.image_id.to_string(),
        resource_version: pod.resource_version.to_string(),
    }
}

/// An entry of a node's list.
pub(crate) fn of_entry(facts: &Facts<'_>, node: usize, entry: usize) -> Option<Evidence> {
    let seen = facts.seen.nodes.get(node)?;
    let names: Vec<&str> = seen.images.get(entry)?.names.iter().map(AsRef::as_ref).collect();
    Some(Evidence {
        time: time(&seen.reported_text),
        object: format!("Node {}", seen.name),
        field: format!(".status.images[{entry}].names"),
        value: names.join(", "),
        resource_version: seen.resource_version.to_string(),
    })
}

/// An event about an image.
pub(crate) fn of_pull(facts: &Facts<'_>, number: usize) -> Option<Evidence> {
    let pull = facts.seen.pulls.get(number)?;
    Some(Evidence {
        time: time(&pull.at_text),
        object: format!("Event about Pod {}/{}", pull.pod.0, pull.pod.1),
        field: ".message".to_owned(),
        value: pull.message.to_string(),
        resource_version: pull.resource_version.to_string(),
    })
}

fn time(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}
