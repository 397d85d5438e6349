//! Parts of a release that fit the cluster and that nobody has asked for.

use scantling_release::Release;
use serde::Serialize;

use crate::node::NodeFacts;

/// A component that was not asked for although nodes have what it is made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OnOffer {
    /// Its name, as `--with` takes it.
    pub component: String,
    /// What it brings, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The resource that it is made for.
    pub resource: String,
    /// How many nodes have it.
    pub nodes: usize,
}

/// The components of a release that nodes are made for and nobody has asked for, in the order of the release.
pub fn on_offer(release: &Release, nodes: &[NodeFacts]) -> Vec<OnOffer> {
    let open = release.components.iter().filter(|component| !release.selected.contains(&component.name));
    open.filter_map(|component| {
        let resource = component.offered_for.clone()?;
        let nodes = nodes.iter().filter(|node| node.offers.contains(&resource)).count();
        (nodes > 0).then(|| OnOffer {
            component: component.name.clone(),
            about: component.about.clone(),
            resource,
            nodes,
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use scantling_release::Settings;
    use serde_json::json;

    #[test]
    fn what_nodes_have_and_nobody_asked_for_is_on_offer() {
        let text = "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: p\nversion: 1.0.0\nnamespace: p\nmanifests: [a.yaml]\n\
            components:\n- {name: gpu, about: For GPUs., default: false, offeredFor: nvidia.com/gpu}\n\
            - {name: usual, default: true, offeredFor: nvidia.com/gpu}\n- {name: other, default: false}\n";
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";
        let files = [("release.yaml", text), ("a.yaml", map)];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into();
        let node = |offers: serde_json::Value| {
            NodeFacts::read(&json!({"metadata": {"name": "n"}, "status": {"allocatable": offers}}))
        };
        let nodes = [
            node(json!({"cpu": "4", "nvidia.com/gpu": "2"})),
            node(json!({"nvidia.com/gpu": "0"})),
            node(json!({"nvidia.com/gpu": "1"})),
        ];
        let found = |with: &[&str], nodes: &[NodeFacts]| {
            let with = with.iter().map(|name| (*name).to_owned()).collect();
            let release = Release::read(&files, &Settings { with, ..Settings::default() }).unwrap();
            on_offer(&release, nodes).into_iter().map(|it| (it.component, it.nodes)).collect::<Vec<_>>()
        };
        assert_eq!(found(&[], &nodes), [("gpu".to_owned(), 2)]);
        assert_eq!(found(&["gpu"], &nodes), []);
        assert_eq!(found(&[], &nodes[1..2]), []);
    }
}
