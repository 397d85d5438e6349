//! Build configurations: when a build begins.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::openshift::BUILD;
use crate::openshift::image_stream::consumer_reference;
use crate::queue::Controller;
use crate::value::{
    controller_reference, deleting, int, list, map, name, namespace, nonempty, object_mut, set, text,
};
use crate::world::World;

const ACTOR: &str = "build-controller";
/// How many builds of one kind are kept when the configuration does not say.
const DEFAULT_HISTORY: i64 = 5;

/// The strategies and where each says what it starts from.
const STRATEGIES: [&str; 3] = ["dockerStrategy", "sourceStrategy", "customStrategy"];

/// Looks at one build configuration.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(config) = world.object(key).cloned() else { return };
    if deleting(&config) {
        return;
    }
    prune(world, &config);
    let mut changed: Option<(Value, String)> = None;
    let mut by_config = false;
    for trigger in list(&config, "/spec/triggers") {
        match text(trigger, "/type") {
            Some("ImageChange" | "imageChange") => {
                if crate::value::flag(trigger, "/imageChange/paused") {
                    continue;
                }
                let Some(from) = from_of(trigger.pointer("/imageChange/from"), &config) else { continue };
                let Some(reference) = resolve(world, &config, &from) else { continue };
                let last =
                    last_triggered(&config, &from).and_then(|entry| text(entry, "/lastTriggeredImageID"));
                if last != Some(reference.as_str()) && changed.is_none() {
                    changed = Some((from, reference));
                }
            }
            Some("ConfigChange") => {
                by_config = int(&config, "/status/lastVersion").unwrap_or(0) == 0;
            }
            _ => {}
        }
    }
    if let Some((from, reference)) = changed {
        let cause = json!({
            "message": "Image change",
            "imageChangeBuild": {"imageID": reference, "fromRef": from},
        });
        if instantiate(world, key, &config, Some((&from, &reference)), &cause).is_some() {
            // Another trigger may have fired as well; it is looked at in a new round.
            world.wake_soon(Controller::BuildConfig, key);
        }
    } else if by_config {
        let cause = json!({"message": "Build configuration change"});
        instantiate(world, key, &config, None, &cause);
    }
}

/// What the status remembers of a trigger, by what it follows.
fn last_triggered<'a>(config: &'a Value, from: &Value) -> Option<&'a Value> {
    let space = nonempty(from, "/namespace").unwrap_or(namespace(config));
    list(config, "/status/imageChangeTriggers").iter().find(|entry| {
        text(entry, "/from/name") == text(from, "/name")
            && nonempty(entry, "/from/namespace").unwrap_or(namespace(config)) == space
    })
}

/// What a trigger, or the strategy, starts from.
fn from_of(trigger: Option<&Value>, config: &Value) -> Option<Value> {
    let given = trigger.filter(|from| nonempty(from, "/name").is_some());
    given.or_else(|| strategy_from(config)).cloned()
}

/// The `from` of the strategy.
pub(crate) fn strategy_from(object: &Value) -> Option<&Value> {
    STRATEGIES.iter().find_map(|strategy| object.pointer(&format!("/spec/strategy/{strategy}/from")))
}

/// Where the image of a `from` is pulled.
pub(crate) fn resolve(world: &World, object: &Value, from: &Value) -> Option<String> {
    let space = nonempty(from, "/namespace").unwrap_or(namespace(object));
    let from_name = text(from, "/name")?;
    match text(from, "/kind") {
        Some("DockerImage") => Some(from_name.to_owned()),
        Some("ImageStreamImage") => {
            let host = world.config.internal_registry.as_deref()?;
            Some(format!("{host}/{space}/{from_name}"))
        }
        _ => consumer_reference(world, space, from_name),
    }
}

/// Makes a build from a configuration. `trigger` is what the trigger that fired follows, and the image there.
pub(crate) fn instantiate(
    world: &mut World,
    key: &ObjectKey,
    config: &Value,
    trigger: Option<(&Value, &str)>,
    cause: &Value,
) -> Option<Value> {
    let base = strategy_from(config).cloned();
    let resolved = base.as_ref().map(|from| resolve(world, config, from));
    if let (Some(from), Some(None)) = (&base, &resolved) {
        let message = format!(
            "error instantiating Build from BuildConfig {}/{} (0): Error resolving ImageStreamTag {} in namespace {}: unable to find latest tagged image",
            namespace(config),
            key.name,
            text(from, "/name").unwrap_or_default(),
            nonempty(from, "/namespace").unwrap_or(namespace(config))
        );
        world.event(ACTOR, config, "Warning", "BuildConfigInstantiateFailed", &message);
        return None;
    }
    let number = int(config, "/status/lastVersion").unwrap_or(0) + 1;
    let build_name = format!("{}-{number}", key.name);
    let mut spec = config.get("spec").cloned().unwrap_or_else(|| json!({}));
    for field in ["triggers", "runPolicy", "successfulBuildsHistoryLimit", "failedBuildsHistoryLimit"] {
        object_mut(&mut spec, &[]).remove(field);
    }
    set(&mut spec, &[], "triggeredBy", json!([cause]));
    if let Some(Some(reference)) = resolved {
        for strategy in STRATEGIES {
            if let Some(from) = spec.pointer_mut(&format!("/strategy/{strategy}/from")) {
                *from = json!({"kind": "DockerImage", "name": reference});
            }
        }
    }
    let mut labels = map(config, "/metadata/labels").cloned().unwrap_or_default();
    for (label, value) in [
        ("buildconfig", key.name.as_str()),
        ("openshift.io/build-config.name", &key.name),
        ("openshift.io/build.start-policy", text(config, "/spec/runPolicy").unwrap_or("Serial")),
    ] {
        labels.insert(label.into(), value.into());
    }
    let build = json!({
        "apiVersion": "build.openshift.io/v1",
        "kind": "Build",
        "metadata": {
            "name": build_name,
            "namespace": namespace(config),
            "labels": labels,
            "annotations": {
                "openshift.io/build-config.name": key.name,
                "openshift.io/build.number": number.to_string(),
            },
            "ownerReferences": [controller_reference(config)],
        },
        "spec": spec,
        "status": {"phase": "New", "config": {"kind": "BuildConfig", "name": key.name, "namespace": namespace(config)}},
    });
    let created = world.create(ACTOR, build).ok()?;
    let stamp = world.stamp_now();
    world.change_status(ACTOR, key, |object| {
        set(object, &["status"], "lastVersion", json!(number));
        let Some((from, reference)) = trigger else { return };
        let space = nonempty(from, "/namespace").unwrap_or(namespace(object)).to_owned();
        let mut entries = list(object, "/status/imageChangeTriggers").to_vec();
        entries.retain(|entry| {
            text(entry, "/from/name") != text(from, "/name")
                || text(entry, "/from/namespace") != Some(space.as_str())
        });
        entries.push(json!({
            "from": {"name": text(from, "/name"), "namespace": space},
            "lastTriggeredImageID": reference,
            "lastTriggerTime": stamp,
        }));
        set(object, &["status"], "imageChangeTriggers", Value::Array(entries));
    });
    Some(created)
}

/// Removes finished builds beyond the history limits, the oldest first.
fn prune(world: &mut World, config: &Value) {
    let builds = crate::controllers::pods::owned(world, config, (BUILD, "Build"));
    for (phases, field) in [
        (&["Complete"][..], "successfulBuildsHistoryLimit"),
        (&["Failed", "Cancelled", "Error"][..], "failedBuildsHistoryLimit"),
    ] {
        let limit = int(config, &format!("/spec/{field}")).unwrap_or(DEFAULT_HISTORY).max(0);
        let mut finished: Vec<&(ObjectKey, Value)> = builds
            .iter()
            .filter(|(_, build)| text(build, "/status/phase").is_some_and(|phase| phases.contains(&phase)))
            .collect();
        finished.sort_by_key(|(_, build)| number_of(build));
        let surplus = finished.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for (key, _) in finished.into_iter().take(surplus) {
            world.delete(ACTOR, key, None);
        }
    }
}

/// The number of a build of its configuration.
pub(crate) fn number_of(build: &Value) -> u64 {
    name(build).rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
