//! The built-in controllers: who looks at what when something changes.

pub(crate) mod collector;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod deployment_rollout;
pub(crate) mod disruption;
pub(crate) mod endpoints;
pub(crate) mod job;
pub(crate) mod namespace;
pub(crate) mod node_lifecycle;
pub(crate) mod pods;
pub(crate) mod replica_set;
pub(crate) mod scheduler;
pub(crate) mod scheduler_fit;
pub(crate) mod service_account;
pub(crate) mod stateful_set;
pub(crate) mod volume;

use scantling_api::ObjectKey;
use serde_json::Value;

use crate::node::{kubelet, object, puller};
use crate::openshift;
use crate::queue::{Controller, Work};
use crate::store::{Change, ChangeKind};
use crate::value::{controller_of, deleting, list, nonempty, text};
use crate::world::{Flavour, World};

/// Lets a controller look at an object.
pub(crate) fn reconcile(world: &mut World, work: &Work) {
    let key = &work.key;
    match work.controller {
        Controller::Puller => puller::reconcile(world, key),
        Controller::Kubelet => kubelet::reconcile(world, key),
        Controller::NodeStatus => object::reconcile(world, key),
        Controller::NodeLifecycle => node_lifecycle::reconcile(world, key),
        Controller::ServiceAccount => service_account::reconcile(world, key),
        Controller::ImageStream => openshift::image_stream::reconcile(world, key),
        Controller::Build => openshift::build::reconcile(world, key),
        Controller::BuildConfig => openshift::build_config::reconcile(world, key),
        Controller::Volume => volume::reconcile(world, key),
        Controller::Job => job::reconcile(world, key),
        Controller::DaemonSet => daemon_set::reconcile(world, key),
        Controller::StatefulSet => stateful_set::reconcile(world, key),
        Controller::ReplicaSet => replica_set::reconcile(world, key),
        Controller::Deployment => deployment::reconcile(world, key),
        Controller::Scheduler => scheduler::reconcile(world, key),
        Controller::Disruption => disruption::reconcile(world, key),
        Controller::Endpoints => endpoints::reconcile(world, key),
        Controller::Route => openshift::route::reconcile(world, key),
        Controller::Collector => collector::reconcile(world, key),
        Controller::Namespace => namespace::reconcile(world, key),
    }
}

/// Puts the work that follows from a change into the queue.
pub(crate) fn notice(world: &mut World, change: &Change) {
    let key = &change.key;
    collector::remember(world, change);
    let object = change.object.as_ref();
    if change.kind == ChangeKind::Deleted || deleting(object) {
        world.wake_soon(Controller::Collector, key);
        if let Some(namespace) = &key.namespace {
            let namespace = ObjectKey::cluster("", "Namespace", namespace);
            if change.kind == ChangeKind::Deleted && world.object(&namespace).is_some_and(deleting) {
                world.wake_soon(Controller::Namespace, &namespace);
            }
        }
    }
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "Pod") => pod(world, change),
        ("", "Node") => node(world, change),
        ("", "Namespace") => {
            world.wake_soon(Controller::ServiceAccount, key);
            if deleting(object) || change.kind == ChangeKind::Deleted {
                world.wake_soon(Controller::Namespace, key);
            }
        }
        ("", "ServiceAccount") if change.kind == ChangeKind::Deleted => {
            if let Some(namespace) = &key.namespace {
                let namespace = ObjectKey::cluster("", "Namespace", namespace);
                world.wake_soon(Controller::ServiceAccount, &namespace);
            }
        }
        ("", "ConfigMap" | "Secret") => waiting_pods(world, key, change.kind),
        ("", "PersistentVolumeClaim") => {
            world.wake_soon(Controller::Volume, key);
            waiting_pods(world, key, ChangeKind::Added);
        }
        ("", "Service") => world.wake_soon(Controller::Endpoints, key),
        ("apps", "Deployment") => world.wake_soon(Controller::Deployment, key),
        ("apps", "StatefulSet") => world.wake_soon(Controller::StatefulSet, key),
        ("apps", "DaemonSet") => world.wake_soon(Controller::DaemonSet, key),
        ("apps", "ReplicaSet") => {
            world.wake_soon(Controller::ReplicaSet, key);
            owner(world, key, object);
        }
        ("batch", "Job") => world.wake_soon(Controller::Job, key),
        ("policy", "PodDisruptionBudget") => world.wake_soon(Controller::Disruption, key),
        _ if world.flavour() == Flavour::OpenShift => openshift::notice(world, change),
        _ => {}
    }
}

/// Wakes the controller of the object's owner.
fn owner(world: &mut World, key: &ObjectKey, object: &Value) {
    let Some((kind, name, _)) = controller_of(object) else { return };
    let (group, controller) = match kind {
        "ReplicaSet" => ("apps", Controller::ReplicaSet),
        "Deployment" => ("apps", Controller::Deployment),
        "StatefulSet" => ("apps", Controller::StatefulSet),
        "DaemonSet" => ("apps", Controller::DaemonSet),
        "Job" => ("batch", Controller::Job),
        _ => return,
    };
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let owner = ObjectKey::namespaced(group, kind, namespace, name);
    world.wake_soon(controller, &owner);
}

fn pod(world: &mut World, change: &Change) {
    let key = &change.key;
    let object = change.object.as_ref();
    let gone = change.kind == ChangeKind::Deleted;
    owner(world, key, object);
    if gone
        && let Some(("ReplicaSet", name, _)) = controller_of(object)
        && let Some(namespace) = &key.namespace
    {
        // A `Recreate` waits for the last old pod, which no status counts any more.
        let set = ObjectKey::namespaced("apps", "ReplicaSet", namespace, name);
        if let Some(set_object) = world.object(&set).cloned() {
            owner(world, &set, &set_object);
        }
    }
    if nonempty(object, "/spec/nodeName").is_some() {
        // The kubelet itself writes the status; it is told of everything else.
        let told = |pod: &Value| {
            let metadata = |field: &str| pod.pointer(&format!("/metadata/{field}")).cloned();
            (pod.get("spec").cloned(), metadata("deletionTimestamp"), metadata("deletionGracePeriodSeconds"))
        };
        if gone || change.previous.as_ref().is_none_or(|previous| told(previous) != told(object)) {
            world.wake_soon(Controller::Kubelet, key);
        }
    } else if !gone && !deleting(object) {
        world.wake_soon(Controller::Scheduler, key);
    }
    let finished = |pod: &Value| matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
    let frees = gone || (finished(object) && !change.previous.as_ref().is_some_and(|pod| finished(pod)));
    if frees {
        world.unschedulable.remove(key);
        retry_unschedulable(world);
    }
    if gone {
        // A claim that is being deleted may have waited for its last pod.
        for volume in list(object, "/spec/volumes") {
            if let (Some(claim), Some(namespace)) =
                (text(volume, "/persistentVolumeClaim/claimName"), key.namespace.as_deref())
            {
                let claim = ObjectKey::namespaced("", "PersistentVolumeClaim", namespace, claim);
                world.wake_soon(Controller::Volume, &claim);
            }
        }
    }
    let ready =
        |pod: &Value| (crate::value::pod_ready(pod), nonempty(pod, "/status/podIP").map(str::to_owned));
    if gone || change.previous.as_ref().is_none_or(|previous| ready(previous) != ready(object)) {
        let namespace = key.namespace.clone();
        let services: Vec<ObjectKey> =
            world.list("", "Service", namespace.as_deref()).into_iter().map(|(key, _)| key).collect();
        for service in services {
            world.wake_soon(Controller::Endpoints, &service);
        }
        let budgets: Vec<ObjectKey> = world
            .list("policy", "PodDisruptionBudget", namespace.as_deref())
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        for budget in budgets {
            world.wake_soon(Controller::Disruption, &budget);
        }
    }
}

fn node(world: &mut World, change: &Change) {
    let object = change.object.as_ref();
    // What the kubelet reports about images is of no interest to controllers.
    let of_interest = |node: &Value| {
        (
            node.get("spec").cloned(),
            node.pointer("/metadata/labels").cloned(),
            crate::value::condition(node, "Ready").map(str::to_owned),
            node.pointer("/status/allocatable").cloned(),
        )
    };
    if change.kind == ChangeKind::Modified
        && change.previous.as_ref().is_some_and(|previous| of_interest(previous) == of_interest(object))
    {
        return;
    }
    world.wake_soon(Controller::NodeLifecycle, &change.key);
    retry_unschedulable(world);
    let sets: Vec<ObjectKey> =
        world.list("apps", "DaemonSet", None).into_iter().map(|(key, _)| key).collect();
    for set in sets {
        world.wake_soon(Controller::DaemonSet, &set);
    }
}

/// Pods without a node are tried again.
fn retry_unschedulable(world: &mut World) {
    let pods: Vec<ObjectKey> = world.unschedulable.iter().cloned().collect();
    for pod in pods {
        world.wake_soon(Controller::Scheduler, &pod);
    }
}

/// Pods of the namespace that are on a node and may wait for what has come.
fn waiting_pods(world: &mut World, key: &ObjectKey, kind: ChangeKind) {
    if kind == ChangeKind::Deleted {
        return;
    }
    let waiting: Vec<ObjectKey> = world
        .list("", "Pod", key.namespace.as_deref())
        .into_iter()
        .filter(|(_, pod)| nonempty(pod, "/spec/nodeName").is_some() && is_waiting(pod))
        .map(|(key, _)| key)
        .collect();
    for pod in waiting {
        world.wake_soon(Controller::Kubelet, &pod);
    }
}

fn is_waiting(pod: &Value) -> bool {
    let waits =
        |pointer: &str| list(pod, pointer).iter().any(|status| status.pointer("/state/waiting").is_some());
    text(pod, "/status/phase").unwrap_or("Pending") == "Pending"
        || waits("/status/containerStatuses")
        || waits("/status/initContainerStatuses")
}
