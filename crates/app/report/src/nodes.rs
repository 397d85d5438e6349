//! What nodes are given.

use std::collections::BTreeMap;

use scantling_plan::{Plan, PlannedNode};

use crate::objects::Detail;
use crate::page::Page;
use crate::style::{bytes, count};

/// Names of nodes in one line.
const NODES: usize = 5;

/// What the nodes pull, nodes with the same needs together.
pub(crate) fn nodes(out: &mut Page, plan: &Plan, detail: Detail) {
    let mut alike: BTreeMap<(&[String], Option<&str>), Vec<&PlannedNode>> = BTreeMap::new();
    for node in &plan.nodes {
        alike.entry((&node.pulls, node.left_out.as_deref())).or_default().push(node);
    }
    if alike.keys().all(|(pulls, left_out)| pulls.is_empty() && left_out.is_none()) {
        return;
    }
    out.section("Nodes");
    for ((pulls, left_out), nodes) in alike {
        let names: Vec<&str> = nodes.iter().take(NODES).map(|node| node.node.as_str()).collect();
        let more = nodes.len().saturating_sub(NODES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (each, verb) = if nodes.len() == 1 { ("", "pulls") } else { (" each", "pull") };
        let text = match left_out {
            Some(why) => format!("left out: {why}"),
            None if pulls.is_empty() => {
                format!("{} what the release needs", if nodes.len() == 1 { "has" } else { "have" })
            }
            None => format!("{verb} {}{}{each}", count(pulls.len(), "image"), size(plan, pulls)),
        };
        out.put(2, 2, &format!("{}{more}: {text}", names.join(", ")));
        if detail == Detail::All {
            for image in pulls {
                out.put(4, 2, image);
            }
        }
    }
}

/// What images take together, if that is known of all.
fn size(plan: &Plan, pulls: &[String]) -> String {
    let sizes: Option<Vec<u64>> = pulls
        .iter()
        .map(|image| plan.images.iter().find(|it| it.pinned.as_ref() == Some(image))?.size_bytes)
        .collect();
    sizes.map_or_else(String::new, |sizes| format!(", {}", bytes(sizes.iter().sum())))
}
