//! The audit as a whole.

use scantling_image::PullPolicy;
use scantling_observed::Observed;
use serde::Serialize;

use crate::builder::Builder;
use crate::facts::Facts;
use crate::group::{Group, group};
use crate::knowledge::{Knowledge, Options};
use crate::row::Row;
use crate::{configuration, next_start, replicas, running, screen, unowned};

/// What was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Looked {
    /// Nodes.
    pub nodes: usize,
    /// Pods.
    pub pods: usize,
    /// Containers that have an image.
    pub containers: usize,
    /// Templates of workloads, by image.
    pub templates: usize,
    /// Written references, each once.
    pub references: usize,
}

/// What an audit says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// What was looked at.
    pub looked: Looked,
    /// Everything that it says, worst for people first.
    pub rows: Vec<Row>,
    /// The same with equal rows joined.
    pub groups: Vec<Group>,
    /// What could not be seen, and what would show it.
    pub unseen: Vec<String>,
}

impl Audit {
    /// How many rows are broken promises.
    pub fn broken(&self) -> usize {
        self.rows.iter().filter(|row| row.is_broken()).count()
    }

    /// The rows of a row's or a group's id, or of the beginning of one if it is the only one that begins so.
    pub fn find(&self, id: &str) -> Vec<&Row> {
        let rows = |group: &Group| group.rows.iter().filter_map(|number| self.rows.get(*number)).collect();
        if let Some(group) = self.groups.iter().find(|group| group.id == id) {
            return rows(group);
        }
        if let Some(row) = self.rows.iter().find(|row| row.id == id) {
            return vec![row];
        }
        let mut groups = self.groups.iter().filter(|group| group.id.starts_with(id));
        match (groups.next(), groups.next()) {
            (Some(group), None) => rows(group),
            _ => Vec::new(),
        }
    }
}

/// Audits a cluster.
pub fn audit(observed: &Observed, knowledge: &Knowledge, options: &Options) -> Audit {
    let facts = Facts::gather(observed, knowledge, options);
    let builder = Builder::new(&facts, options);
    let mut rows = next_start::rows(&facts, &builder);
    rows.extend(running::rows(&facts, &builder));
    rows.extend(replicas::rows(&facts, &builder));
    rows.extend(screen::rows(&facts, &builder, observed));
    rows.extend(configuration::rows(&facts, &builder, observed));
    rows.extend(unowned::rows(&facts, &builder));
    let groups = group(&mut rows);
    Audit { looked: looked(&facts), groups, unseen: unseen(&facts), rows }
}

fn looked(facts: &Facts<'_>) -> Looked {
    let containers = facts.seen.pods.iter().flat_map(|pod| &pod.containers);
    Looked {
        nodes: facts.seen.nodes.len(),
        pods: facts.seen.pods.len(),
        containers: containers.filter(|container| container.digest.is_some()).count(),
        templates: facts.templates.len(),
        references: facts.asked.len(),
    }
}

/// What is missing to say more.
fn unseen(facts: &Facts<'_>) -> Vec<String> {
    let mut unseen = facts.seen.unread.clone();
    let unasked = facts
        .asked
        .iter()
        .zip(&facts.meant)
        .filter(|(asked, meant)| {
            asked.pinned.is_none()
                && meant.as_ref().is_none_or(|meant| matches!(meant.basis, crate::wanted::Basis::Pull { .. }))
        })
        .count();
    if unasked > 0 {
        unseen.push(format!(
            "what {unasked} written {} in the registry now: no lock and no recorded answer has {} (--release, --answers)",
            if unasked == 1 { "tag means" } else { "tags mean" },
            if unasked == 1 { "it" } else { "them" },
        ));
    }
    if facts.seen.pods.is_empty() {
        unseen.push("pods: the snapshot has none, so that nothing is said of what runs".to_owned());
    }
    if facts.seen.events_since.is_none() {
        unseen.push(
            "events: the snapshot has none, so that a pull for a pod that is gone is not noticed".to_owned(),
        );
    }
    let nodes = |number: usize| if number == 1 { "1 node".to_owned() } else { format!("{number} nodes") };
    let blind = facts.seen.nodes.iter().filter(|node| !node.is_here).count();
    if blind > 0 {
        unseen.push(format!(
            "{} that pods name and that the snapshot does not have: what is there is known from pods only",
            nodes(blind)
        ));
    }
    let silent = facts.seen.nodes.iter().filter(|node| node.is_here && node.reported.is_none()).count();
    if silent > 0 {
        unseen.push(format!(
            "when {} sent the list of images (no lastHeartbeatTime): what is not in it may be there",
            nodes(silent)
        ));
    }
    for release in facts.knowledge.releases.iter().filter(|release| release.lock.is_none()) {
        unseen.push(format!(
            "what the names of {} mean: it has no release.lock (`scantling lock` makes it)",
            release.title
        ));
    }
    let odd = facts.seen.pods.iter().flat_map(|pod| &pod.containers);
    let odd = odd.filter(|container| container.policy.is_none() && !container.image.is_empty()).count();
    if odd > 0 {
        unseen.push(format!(
            "{odd} pull policies that are none of {}, {} and {}",
            PullPolicy::Always,
            PullPolicy::IfNotPresent,
            PullPolicy::Never
        ));
    }
    unseen
}
