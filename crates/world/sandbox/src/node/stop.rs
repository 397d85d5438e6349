//! Ending a pod that is being deleted, within its grace period.

use scantling_api::ObjectKey;
use serde_json::Value;

use crate::node::Node;
use crate::node::container::{PodRuntime, State};
use crate::node::kubelet::{Wake, actor};
use crate::queue::Controller;
use crate::trace::What;
use crate::value::int;
use crate::world::World;

/// The label of an image whose process does not heed the signal to stop.
const IGNORES_STOP: &str = "scantling.dev/sandbox-ignores-stop";
/// How long a process takes to stop after the signal, in milliseconds; up to as much again is added.
const STOP_MILLIS: u64 = 300;

/// One round of stopping. Says whether nothing runs any more.
pub(crate) fn step(
    world: &mut World,
    node: &Node,
    key: &ObjectKey,
    pod: &Value,
    runtime: &mut PodRuntime,
    wake: &mut Wake,
) -> bool {
    let now = world.now();
    let actor = actor(node);
    if runtime.stopping.is_none() {
        let seconds = int(pod, "/metadata/deletionGracePeriodSeconds")
            .or_else(|| int(pod, "/spec/terminationGracePeriodSeconds"))
            .unwrap_or(30);
        let grace = u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
        let killed_at = now.plus_millis(grace);
        runtime.stopping = Some(killed_at);
        let names: Vec<String> = runtime
            .containers
            .iter()
            .filter(|(_, container)| container.is_running())
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            world.event(&actor, pod, "Normal", "Killing", &format!("Stopping container {name}"));
            let stops = now.plus_millis(STOP_MILLIS + world.jitter(STOP_MILLIS));
            let Some(container) = runtime.containers.get_mut(&name) else { continue };
            let ignores = container
                .config
                .as_ref()
                .and_then(|config| node.images.get(config))
                .and_then(|image| image.description.get("config")?.get("Labels")?.get(IGNORES_STOP)?.as_str())
                .is_some_and(|value| value == "true");
            let (at, code) = if ignores || stops > killed_at { (killed_at, 137) } else { (stops, 0) };
            if let State::Running { ends, ready, .. } = &mut container.state {
                if ends.is_none_or(|(end, _)| end > at) {
                    *ends = Some((at, code));
                }
                *ready = None;
            }
        }
    }
    let mut running = false;
    for (name, container) in &mut runtime.containers {
        if let State::Running { ends: Some((at, code)), .. } = container.state {
            if at <= now {
                container.end(at, code);
                let what = What::ContainerExited { container: name.clone(), code };
                world.note(&actor, what, Some(key.clone()));
            } else {
                wake.at(Some(at));
                running = true;
            }
        }
    }
    !running
}

/// Gives up the downloads of a pod.
pub(crate) fn drop_downloads(world: &mut World, node: &mut Node, key: &ObjectKey) {
    node.downloads.retain(|download, _| download.pod != *key);
    node.waiting.retain(|download| download.pod != *key);
    node.finished.retain(|download, _| download.pod != *key);
    let node_key = ObjectKey::cluster("", "Node", &node.config.name);
    let now = world.now();
    world.wake(Controller::Puller, &node_key, now);
}
