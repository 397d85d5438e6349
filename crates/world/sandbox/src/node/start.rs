//! Starting one container: the image first, by the kubelet's pull rules, then the process.
//!
//! | policy | the written name is in the node's store | what happens |
//! |---|---|---|
//! | `IfNotPresent` | yes | that image is started, whatever the registry says today |
//! | `IfNotPresent` | no | pull |
//! | `Always` | either | pull: the tag is resolved at the registry and the node's name moves |
//! | `Never` | yes | that image is started |
//! | `Never` | no | `ErrImageNeverPull` |
//!
//! Kubernetes 1.35 adds: an image that the kubelet has pulled with a pod's credential counts as absent for
//! a pod without that credential (OpenShift has this switched off).

use scantling_api::ObjectKey;
use scantling_image::{Digest, PullPolicy, Reference};
use serde_json::Value;

use crate::node::container::{PodRuntime, PullWait, State};
use crate::node::kubelet::actor;
use crate::node::process::{Process, container_name, process, ready_after};
use crate::node::pull::{Download, Pull};
use crate::node::{DownloadKey, Downloaded, Node, credentials, needs, status};
use crate::queue::Controller;
use crate::time::Time;
use crate::trace::What;
use crate::value::{nonempty, text, uid};
use crate::world::{Flavour, World};

/// How long after a failed pull the kubelet looks again and says that it waits, in milliseconds.
const BACKOFF_NOTICED_MILLIS: u64 = 1_000;

/// What became of an attempt to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    Running,
    /// The image is on its way.
    Downloading,
    /// To be tried again at a time.
    Later(Time),
    /// Only a change of something else can help.
    Blocked,
}

/// Starts a container, or does the next thing that starting it needs.
pub(crate) fn start(
    world: &mut World,
    node: &mut Node,
    key: &ObjectKey,
    pod: &Value,
    spec: &Value,
    runtime: &mut PodRuntime,
) -> Started {
    match ensure_image(world, node, key, pod, spec, runtime) {
        Err(started) => started,
        Ok(config) => run(world, node, key, pod, spec, runtime, &config),
    }
}

/// The image that the container is to be made from, or what stands in the way.
fn ensure_image(
    world: &mut World,
    node: &mut Node,
    key: &ObjectKey,
    pod: &Value,
    spec: &Value,
    runtime: &mut PodRuntime,
) -> Result<Digest, Started> {
    let actor = actor(node);
    let name = container_name(spec);
    let written = text(spec, "/image").unwrap_or_default();
    let Ok(reference) = Reference::parse(written) else {
        let message = format!(
            "Failed to apply default image tag \"{written}\": couldn't parse image name \"{written}\": invalid reference format"
        );
        if wait(runtime, name, "InvalidImageName", &message) {
            world.event(&actor, pod, "Warning", "InspectFailed", &message);
            world.event(&actor, pod, "Warning", "Failed", "Error: InvalidImageName");
        }
        return Err(Started::Blocked);
    };
    let download = DownloadKey { pod: key.clone(), uid: uid(pod).to_owned(), container: name.to_owned() };
    if node.downloads.contains_key(&download) {
        return Err(Started::Downloading);
    }
    if let Some(finished) = node.finished.remove(&download) {
        return finish(world, node, key, pod, spec, runtime, written, finished);
    }
    let policy = nonempty(spec, "/imagePullPolicy")
        .and_then(|policy| PullPolicy::parse(policy).ok())
        .unwrap_or_else(|| PullPolicy::defaulted(&reference));
    let keyring = credentials::of_pod(world, pod);
    let present = node.images.find(&reference).map(|image| image.config.clone());
    if policy != PullPolicy::Always {
        let usable =
            present.as_ref().is_some_and(|config| may_use(world, node, config, &reference, &keyring));
        match (present, usable) {
            (Some(config), true) => {
                let checked = match world.flavour() {
                    Flavour::Kubernetes => " and can be accessed by the pod",
                    Flavour::OpenShift => "",
                };
                let message = format!("Container image \"{written}\" already present on machine{checked}");
                world.event(&actor, pod, "Normal", "Pulled", &message);
                let what = What::CacheHit { reference: written.to_owned(), config: config.to_string() };
                world.note(&actor, what, Some(key.clone()));
                return Ok(config);
            }
            _ if policy == PullPolicy::Never => {
                let message =
                    format!("Container image \"{written}\" is not present with pull policy of Never");
                if wait(runtime, name, "ErrImageNeverPull", &message) {
                    world.event(&actor, pod, "Warning", "ErrImageNeverPull", &message);
                    world.event(&actor, pod, "Warning", "Failed", "Error: ErrImageNeverPull");
                }
                return Err(Started::Later(world.now().plus_millis(10 * BACKOFF_NOTICED_MILLIS)));
            }
            _ => {}
        }
    }
    let now = world.now();
    if let Some(pull_wait) = runtime.pull_waits.get(written)
        && now < pull_wait.until
    {
        let until = pull_wait.until;
        let message = format!("Back-off pulling image \"{written}\": {}", pull_wait.error);
        if wait(runtime, name, "ImagePullBackOff", &message) {
            world.event(&actor, pod, "Normal", "BackOff", &format!("Back-off pulling image \"{written}\""));
            world.event(&actor, pod, "Warning", "Failed", "Error: ImagePullBackOff");
        }
        return Err(Started::Later(until));
    }
    begin(world, node, key, pod, written, reference, &keyring, download);
    Err(Started::Downloading)
}

/// Asks for a download.
#[expect(clippy::too_many_arguments, reason = "the parts of one node that are borrowed side by side")]
fn begin(
    world: &mut World,
    node: &mut Node,
    key: &ObjectKey,
    pod: &Value,
    written: &str,
    reference: Reference,
    keyring: &credentials::PodKeyring,
    download: DownloadKey,
) {
    let actor = actor(node);
    world.event(&actor, pod, "Normal", "Pulling", &format!("Pulling image \"{written}\""));
    world.note(&actor, What::PullStarted { reference: written.to_owned() }, Some(key.clone()));
    let now = world.now();
    let sources = credentials::sources(world, &reference, keyring);
    let pull = Pull::new(reference, node.config.platform.clone(), sources);
    node.downloads.insert(download.clone(), Download { pull, asked: now, started: None, due: now });
    node.waiting.push(download);
    let node_key = ObjectKey::cluster("", "Node", &node.config.name);
    world.wake(Controller::Puller, &node_key, now);
}

/// Takes the result of a download.
#[expect(clippy::too_many_arguments, reason = "the parts of one node that are borrowed side by side")]
fn finish(
    world: &mut World,
    node: &Node,
    key: &ObjectKey,
    pod: &Value,
    spec: &Value,
    runtime: &mut PodRuntime,
    written: &str,
    finished: Downloaded,
) -> Result<Digest, Started> {
    let actor = actor(node);
    let now = world.now();
    match finished {
        Downloaded::Image { config, asked, pulled, size } => {
            runtime.pull_waits.remove(written);
            let message = format!(
                "Successfully pulled image \"{written}\" in {} ({} including waiting). Image size: {size} bytes.",
                status::go_duration(pulled),
                status::go_duration(asked)
            );
            world.event(&actor, pod, "Normal", "Pulled", &message);
            Ok(config)
        }
        Downloaded::Failed { message } => {
            let what = What::PullFailed { reference: written.to_owned(), message: message.clone() };
            world.note(&actor, what, Some(key.clone()));
            world.event(
                &actor,
                pod,
                "Warning",
                "Failed",
                &format!("Failed to pull image \"{written}\": {message}"),
            );
            world.event(&actor, pod, "Warning", "Failed", "Error: ErrImagePull");
            wait(runtime, container_name(spec), "ErrImagePull", &message);
            let error = format!("ErrImagePull: {message}");
            let next = PullWait::after(runtime.pull_waits.get(written), now, error);
            runtime.pull_waits.insert(written.to_owned(), next);
            Err(Started::Later(now.plus_millis(BACKOFF_NOTICED_MILLIS)))
        }
    }
}

/// Whether a pod may use an image that is on the node.
fn may_use(
    world: &World,
    node: &Node,
    config: &Digest,
    reference: &Reference,
    keyring: &credentials::PodKeyring,
) -> bool {
    if world.flavour() == Flavour::OpenShift {
        return true;
    }
    let Some(record) = node.images.get(config).and_then(|image| image.record.as_ref()) else { return true };
    let repository = reference.name();
    record.open.contains(&repository)
        || record
            .credentials
            .get(&repository)
            .is_some_and(|hashes| keyring.hashes(reference).iter().any(|hash| hashes.contains(hash)))
}

/// Puts a container into a waiting state; says whether that is new.
fn wait(runtime: &mut PodRuntime, name: &str, reason: &'static str, message: &str) -> bool {
    let Some(container) = runtime.containers.get_mut(name) else { return false };
    let new = State::Waiting { reason, message: message.to_owned() };
    if container.state == new {
        return false;
    }
    if let State::Ended(ended) = &container.state {
        container.last = Some(ended.clone());
    }
    container.state = new;
    true
}

/// Starts the process from the image.
fn run(
    world: &mut World,
    node: &mut Node,
    key: &ObjectKey,
    pod: &Value,
    spec: &Value,
    runtime: &mut PodRuntime,
    config: &Digest,
) -> Started {
    let actor = actor(node);
    let name = container_name(spec);
    if let Some(missing) = needs::missing_environment(world, pod, spec) {
        if wait(runtime, name, "CreateContainerConfigError", &missing) {
            world.event(&actor, pod, "Warning", "Failed", &format!("Error: {missing}"));
        }
        return Started::Blocked;
    }
    let now = world.now();
    let image_id = node.images.status_image_id(config);
    let image = node.images.status_image(config);
    let description = match node.images.get_mut(config) {
        Some(image) => {
            image.last_used = now;
            image.description.clone()
        }
        None => Value::Null,
    };
    let id = world.container_id();
    let Some(container) = runtime.containers.get_mut(name) else { return Started::Blocked };
    if container.last_end().is_some() {
        container.restarted();
    }
    let ends = match process(spec, &description) {
        Process::Runs => None,
        Process::Ends { after, code } => Some((now.plus_millis(after), code)),
    };
    let ready = ready_after(spec, &description).map(|after| now.plus_millis(after));
    container.state = State::Running { since: now, ends, ready };
    container.image = image;
    container.image_id.clone_from(&image_id);
    container.id = id;
    container.config = Some(config.clone());
    world.event(&actor, pod, "Normal", "Created", "Container created");
    world.event(&actor, pod, "Normal", "Started", "Container started");
    world.note(&actor, What::ContainerStarted { container: name.to_owned(), image_id }, Some(key.clone()));
    Started::Running
}
