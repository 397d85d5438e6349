//! The kubelet's loop for one pod. It is level-triggered: it looks at the pod and at what runs, does what
//! can be done now, writes the status, and says when to look again.

use scantling_api::ObjectKey;
use serde_json::Value;

use crate::node::container::{Container, PodRuntime, State};
use crate::node::process::container_name;
use crate::node::start::{self, Started};
use crate::node::status::{self, is_sidecar};
use crate::node::{Node, needs, stop};
use crate::queue::Controller;
use crate::time::Time;
use crate::trace::What;
use crate::value::{deleting, list, nonempty, text, uid};
use crate::world::World;

/// The least time that a pod's network takes, in milliseconds; up to as much again is added from the seed.
const NETWORK_MILLIS: u64 = 200;

/// Looks at one pod.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let pod = world.object(key).cloned();
    let Some(name) = node_of(world, key, pod.as_ref()) else { return };
    // The node is taken out while its pod is looked at; nothing that this calls looks at nodes.
    let Some(mut node) = world.nodes.remove(&name) else { return };
    if node.up {
        match &pod {
            Some(pod) if nonempty(pod, "/spec/nodeName") == Some(name.as_str()) => {
                let wake = sync(world, &mut node, key, pod);
                if let Some(at) = wake {
                    world.wake(Controller::Kubelet, key, at);
                }
            }
            _ => forget(world, &mut node, key),
        }
    }
    world.nodes.insert(name, node);
}

/// The node that has the pod, by its own memory or by the pod's word.
fn node_of(world: &World, key: &ObjectKey, pod: Option<&Value>) -> Option<String> {
    if let Some(name) = pod.and_then(|pod| nonempty(pod, "/spec/nodeName")) {
        return Some(name.to_owned());
    }
    world.nodes.iter().find(|(_, node)| node.pods.contains_key(key)).map(|(name, _)| name.clone())
}

/// The pod is gone from the API: its containers end.
fn forget(world: &mut World, node: &mut Node, key: &ObjectKey) {
    let Some(runtime) = node.pods.remove(key) else { return };
    let actor = actor(node);
    for (name, container) in &runtime.containers {
        if container.is_running() {
            let what = What::ContainerExited { container: name.clone(), code: 137 };
            world.note(&actor, what, Some(key.clone()));
        }
    }
    stop::drop_downloads(world, node, key);
}

/// What the node is called in the trace.
pub(crate) fn actor(node: &Node) -> String {
    format!("kubelet/{}", node.config.name)
}

/// One round. Gives the time of the next one, if time alone will change something.
fn sync(world: &mut World, node: &mut Node, key: &ObjectKey, pod: &Value) -> Option<Time> {
    let now = world.now();
    if node.pods.get(key).is_some_and(|runtime| runtime.uid != uid(pod)) {
        forget(world, node, key);
    }
    if !node.pods.contains_key(key) {
        if matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed")) && !deleting(pod) {
            return None;
        }
        let network = now.plus_millis(NETWORK_MILLIS + world.jitter(NETWORK_MILLIS));
        node.pods.insert(key.clone(), PodRuntime::new(uid(pod), now, network));
    }
    // Taken out, so that the node's store and the pod can be changed side by side.
    let mut runtime = node.pods.remove(key)?;
    let mut wake = Wake::default();
    end_processes(world, node, key, &mut runtime, &mut wake);
    let finished = matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
    if deleting(pod) {
        if stop::step(world, node, key, pod, &mut runtime, &mut wake) {
            publish(world, node, key, pod, &runtime);
            stop::drop_downloads(world, node, key);
            world.delete_now(&actor(node), key);
            return None;
        }
    } else if !finished {
        advance(world, node, key, pod, &mut runtime, &mut wake);
    }
    for container in runtime.containers.values() {
        if let State::Running { ends, ready, .. } = &container.state {
            wake.at(ends.map(|(at, _)| at));
            wake.at(ready.filter(|ready| *ready > now));
        }
    }
    publish(world, node, key, pod, &runtime);
    node.pods.insert(key.clone(), runtime);
    wake.time(now)
}

/// The earliest of several times.
#[derive(Debug, Default)]
pub(crate) struct Wake(Option<Time>);

impl Wake {
    pub(crate) fn at(&mut self, time: Option<Time>) {
        if let Some(time) = time
            && self.0.is_none_or(|earliest| time < earliest)
        {
            self.0 = Some(time);
        }
    }

    fn time(&self, now: Time) -> Option<Time> {
        // A time that is over would spin; the next moment is early enough.
        self.0.map(|time| time.max(now.plus_millis(1)))
    }
}

/// Processes that end by themselves.
fn end_processes(world: &mut World, node: &Node, key: &ObjectKey, runtime: &mut PodRuntime, wake: &mut Wake) {
    let now = world.now();
    for (name, container) in &mut runtime.containers {
        if let State::Running { ends: Some((at, code)), .. } = container.state
            && at <= now
        {
            container.end(at, code);
            let what = What::ContainerExited { container: name.clone(), code };
            world.note(&actor(node), what, Some(key.clone()));
            wake.at(Some(now.plus_millis(1)));
        }
    }
}

/// Brings the pod on: network, what it needs, init containers in order, containers.
fn advance(
    world: &mut World,
    node: &mut Node,
    key: &ObjectKey,
    pod: &Value,
    runtime: &mut PodRuntime,
    wake: &mut Wake,
) {
    let now = world.now();
    if let Some(missing) = needs::missing_volume(world, pod) {
        if runtime.missing.as_deref() != Some(missing.as_str()) {
            world.event(&actor(node), pod, "Warning", "FailedMount", &missing);
            runtime.missing = Some(missing);
        }
        fill_waiting(pod, runtime);
        return;
    }
    runtime.missing = None;
    if now < runtime.network_at {
        wake.at(Some(runtime.network_at));
        fill_waiting(pod, runtime);
        return;
    }
    if runtime.address.is_none() {
        runtime.address = Some(if crate::value::flag(pod, "/spec/hostNetwork") {
            node.address()
        } else {
            node.next_pod_address()
        });
    }
    fill_waiting(pod, runtime);
    let policy = text(pod, "/spec/restartPolicy").unwrap_or("Always");
    for spec in list(pod, "/spec/initContainers") {
        let name = container_name(spec);
        let Some(container) = runtime.containers.get(name) else { return };
        let sidecar = is_sidecar(spec);
        let passed = if sidecar { container.is_running() } else { container.has_succeeded() };
        if passed {
            continue;
        }
        let again = sidecar || policy != "Never";
        step(world, node, key, pod, spec, runtime, again, wake);
        let passed = runtime.containers.get(name).is_some_and(|container| sidecar && container.is_running());
        if !passed {
            return;
        }
    }
    for spec in list(pod, "/spec/containers") {
        let Some(container) = runtime.containers.get(container_name(spec)) else { return };
        let again = match (policy, container.last_end()) {
            ("Always", _) | (_, None) => true,
            ("OnFailure", Some(ended)) => ended.code != 0,
            _ => false,
        };
        if container.is_running() {
            continue;
        }
        if !step(world, node, key, pod, spec, runtime, again, wake) {
            // The kubelet starts containers one after the other and waits for each image.
            return;
        }
    }
}

/// Brings one container that does not run on. Says whether the next one may be looked at.
#[expect(clippy::too_many_arguments, reason = "the parts of one node that are borrowed side by side")]
fn step(
    world: &mut World,
    node: &mut Node,
    key: &ObjectKey,
    pod: &Value,
    spec: &Value,
    runtime: &mut PodRuntime,
    again: bool,
    wake: &mut Wake,
) -> bool {
    let now = world.now();
    let name = container_name(spec);
    let Some(container) = runtime.containers.get_mut(name) else { return true };
    if container.is_running() {
        return true;
    }
    if container.last_end().is_some() {
        if !again {
            return true;
        }
        let at = container.restart_at();
        if now < at {
            if let State::Ended(ended) = container.state.clone() {
                let delay = container.crash_delay_text();
                let message = format!(
                    "back-off {delay} restarting failed container={name} pod={}_{}({})",
                    key.name,
                    key.namespace.as_deref().unwrap_or_default(),
                    runtime.uid
                );
                let event = format!(
                    "Back-off restarting failed container {name} in pod {}_{}({})",
                    key.name,
                    key.namespace.as_deref().unwrap_or_default(),
                    runtime.uid
                );
                container.last = Some(ended);
                container.state = State::Waiting { reason: "CrashLoopBackOff", message };
                world.event(&actor(node), pod, "Warning", "BackOff", &event);
            }
            wake.at(Some(at));
            return true;
        }
    }
    match start::start(world, node, key, pod, spec, runtime) {
        Started::Running | Started::Blocked => true,
        Started::Downloading => false,
        Started::Later(at) => {
            wake.at(Some(at));
            true
        }
    }
}

/// Containers that have not been looked at yet wait.
fn fill_waiting(pod: &Value, runtime: &mut PodRuntime) {
    let init = list(pod, "/spec/initContainers");
    let reason = if init.is_empty() { "ContainerCreating" } else { "PodInitializing" };
    for spec in init.iter().chain(list(pod, "/spec/containers")) {
        let name = container_name(spec);
        if !runtime.containers.contains_key(name) {
            let image = text(spec, "/image").unwrap_or_default();
            runtime.containers.insert(name.to_owned(), Container::new(image, reason));
        }
    }
}

/// Writes the status, if it differs.
fn publish(world: &mut World, node: &Node, key: &ObjectKey, pod: &Value, runtime: &PodRuntime) {
    let now = world.now();
    let status = {
        let stamp = |time: Time| world.stamp(time);
        status::pod_status(pod, runtime, &node.address(), now, &stamp)
    };
    world.change_status(&actor(node), key, |object| {
        if uid(object) == runtime.uid
            && let Some(map) = object.as_object_mut()
        {
            map.insert("status".into(), Value::Object(status));
        }
    });
}
