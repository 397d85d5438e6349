//! The pull rules against a second, much simpler statement of them, over random histories of one node.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scantling_contents::BuiltImage;
use scantling_registry_server::{Effect, Fault, RegistryServer, Requests};

use super::{R, field, image, pod, pod_key, push, status, world_of};
use crate::{Flavour, World};

#[derive(Debug, Clone)]
enum Step {
    /// A tag gets a content.
    Push(usize, usize),
    /// A pod is made: policy, tag or none, content by digest or none.
    Run(&'static str, Option<usize>, Option<usize>),
    /// The container of one of the running pods ends and is started again.
    Restart(usize),
    /// The name of a tag is removed from the node, and the image with all its names.
    Remove(usize),
    /// The registry goes away, or comes back.
    Outage(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let policy = prop_oneof![Just("IfNotPresent"), Just("Always"), Just("Never")];
    let step = prop_oneof![
        3 => (0..2_usize, 0..3_usize).prop_map(|(tag, content)| Step::Push(tag, content)),
        5 => (policy, proptest::option::weighted(0.8, 0..2_usize), proptest::option::weighted(0.3, 0..3_usize))
            .prop_map(|(policy, tag, content)| Step::Run(policy, tag, content)),
        2 => (0..4_usize).prop_map(Step::Restart),
        1 => (0..2_usize).prop_map(Step::Remove),
        1 => any::<bool>().prop_map(Step::Outage),
    ];
    proptest::collection::vec(step, 1..25)
}

/// What a pod asks for.
#[derive(Debug, Clone, Copy)]
struct Wish {
    policy: &'static str,
    tag: Option<usize>,
    content: Option<usize>,
}

/// The rules, for one repository: names on the node and in the registry.
#[derive(Debug, Default)]
struct Model {
    registry_tags: BTreeMap<usize, usize>,
    published: BTreeSet<usize>,
    node_tags: BTreeMap<usize, usize>,
    node_digests: BTreeSet<usize>,
    outage: bool,
}

impl Model {
    /// The content that starts, if any does.
    fn start(&mut self, wish: Wish) -> Option<usize> {
        let cached = match (wish.content, wish.tag) {
            (Some(content), _) => self.node_digests.contains(&content).then_some(content),
            (None, Some(tag)) => self.node_tags.get(&tag).copied(),
            (None, None) => None,
        };
        match (wish.policy, cached) {
            ("Never", cached) => cached,
            ("IfNotPresent", Some(content)) => Some(content),
            _ if self.outage => None,
            _ => {
                let content = match (wish.content, wish.tag) {
                    (Some(content), _) => self.published.contains(&content).then_some(content)?,
                    (None, Some(tag)) => *self.registry_tags.get(&tag)?,
                    (None, None) => return None,
                };
                self.node_digests.insert(content);
                if let (None, Some(tag)) = (wish.content, wish.tag) {
                    self.node_tags.insert(tag, content);
                }
                Some(content)
            }
        }
    }

    fn remove(&mut self, tag: usize) {
        if let Some(content) = self.node_tags.get(&tag).copied() {
            self.node_digests.remove(&content);
            self.node_tags.retain(|_, other| *other != content);
        }
    }
}

fn written(wish: Wish, images: &[BuiltImage]) -> String {
    let tag = wish.tag.map_or_else(String::new, |tag| format!(":t{tag}"));
    let digest = wish.content.map_or_else(String::new, |content| format!("@{}", images[content].root));
    format!("{R}/app{tag}{digest}")
}

/// What runs in the pod, by its imageID; nothing if it waits.
fn seen(world: &World, name: &str, images: &[BuiltImage]) -> Option<usize> {
    let object = world.pod(name);
    status(&object).pointer("/state/running")?;
    let id = field(&object, "/imageID");
    images.iter().position(|image| id == format!("{R}/app@{}", image.root))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn nodes_keep_to_the_rules(steps in steps()) {
        let images: Vec<BuiltImage> = (0..3).map(|content| image(&format!("content {content}"))).collect();
        let mut world = world_of(Flavour::Kubernetes, 1, RegistryServer::new());
        world.registry().add_host(R);
        let mut model = Model::default();
        let mut pods: Vec<(String, Wish)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(tag, content) => {
                    push(world.registry(), "app", &format!("t{tag}"), &images[content]);
                    model.registry_tags.insert(tag, content);
                    model.published.insert(content);
                }
                Step::Outage(outage) => {
                    model.outage = outage;
                    world.registry().faults().clear_all();
                    if outage {
                        world.registry().faults().add(Fault {
                            requests: Requests::default(), effect: Effect::Outage, after: 0, times: None,
                        });
                    }
                }
                Step::Remove(tag) => {
                    let _ = world.remove_cached_image("node-1", &format!("{R}/app:t{tag}"));
                    model.remove(tag);
                }
                Step::Run(policy, tag, content) => {
                    let wish = Wish { policy, tag, content };
                    // Neither tag nor digest is the tag `latest`, which nobody pushes.
                    let name = format!("p{number}");
                    world.put(pod(&name, &written(wish, &images), policy));
                    world.pass(4);
                    let expected = model.start(wish);
                    prop_assert_eq!(seen(&world, &name, &images), expected, "{:?}\n{}", wish, world.story());
                    if expected.is_some() {
                        pods.push((name, wish));
                    } else {
                        world.delete_as_user(&pod_key(&name));
                    }
                }
                Step::Restart(which) => {
                    if pods.is_empty() {
                        continue;
                    }
                    let place = which % pods.len();
                    let (name, wish) = pods.remove(place);
                    prop_assert!(world.end_container(&pod_key(&name), "main", 1));
                    world.pass(4);
                    let expected = model.start(wish);
                    prop_assert_eq!(seen(&world, &name, &images), expected, "restart {:?}\n{}", wish, world.story());
                    world.delete_as_user(&pod_key(&name));
                }
            }
            world.pass(2);
        }
    }
}

#[test]
fn a_world_can_be_sent_to_another_thread() {
    fn sendable<T: Send>(_: &T) {}
    sendable(&world_of(Flavour::Kubernetes, 1, RegistryServer::new()));
}
