//! Builds: source and base make an image, after some time.
//!
//! What a build makes is looked up by its source (repository, reference, folder) among the recipes of the
//! world's configuration; the recipe's layers come on top of the base image as it was resolved when the build
//! was made. The result is pushed to the registry in the cluster and becomes the newest item of the output
//! tag.

use std::collections::BTreeMap;

use bytes::Bytes;
use scantling_api::ObjectKey;
use scantling_contents::BuiltImage;
use scantling_image::Digest;
use scantling_registry_server::Pushed;
use serde_json::{Value, json};

use crate::controllers::pods;
use crate::openshift::build_config::{number_of, strategy_from};
use crate::openshift::image_stream::{add_item, split_tag, stream_key};
use crate::openshift::{BUILD, import};
use crate::queue::Controller;
use crate::trace::What;
use crate::value::{controller_of, flag, int, namespace, nonempty, set, text};
use crate::world::{BuildRecipe, World};

const ACTOR: &str = "build";
/// How long a build waits for its place before it runs, in milliseconds.
const START_MILLIS: u64 = 15_000;

/// Why a build failed, in OpenShift's words.
struct Failure {
    reason: &'static str,
    message: String,
}

/// Looks at one build.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(build) = world.object(key).cloned() else { return };
    if crate::value::deleting(&build) {
        return;
    }
    let phase = text(&build, "/status/phase").unwrap_or("New");
    if flag(&build, "/status/cancelled") && matches!(phase, "New" | "Pending" | "Running") {
        end(world, key, "Cancelled", "CancelledBuild", "The build was cancelled by the user.");
        return;
    }
    match phase {
        "New" => queue(world, key, &build),
        "Pending" => run(world, key, &build),
        "Running" => finish_when_due(world, key, &build),
        _ => {}
    }
}

/// Builds of one configuration run one after the other, unless it says `Parallel`.
fn queue(world: &mut World, key: &ObjectKey, build: &Value) {
    let policy = build
        .pointer("/metadata/labels/openshift.io~1build.start-policy")
        .and_then(Value::as_str)
        .unwrap_or("Serial")
        .to_owned();
    let siblings: Vec<(ObjectKey, Value)> = controller_of(build)
        .map(|(kind, name, _)| ObjectKey::namespaced(BUILD, kind, namespace(build), name))
        .and_then(|owner| world.object(&owner).cloned())
        .map(|owner| pods::owned(world, &owner, (BUILD, "Build")))
        .unwrap_or_default();
    let of_phase = |phases: &[&str]| -> Vec<&(ObjectKey, Value)> {
        siblings
            .iter()
            .filter(|(other, _)| other != key)
            .filter(|(_, other)| phases.contains(&text(other, "/status/phase").unwrap_or("New")))
            .collect()
    };
    if policy != "Parallel" {
        if !of_phase(&["Pending", "Running"]).is_empty() {
            // The one that runs wakes the configuration, and this one, when it ends.
            return;
        }
        let waiting = of_phase(&["New"]);
        if policy == "SerialLatestOnly" {
            let older: Vec<ObjectKey> = waiting
                .iter()
                .filter(|(_, other)| number_of(other) < number_of(build))
                .map(|(key, _)| key.clone())
                .collect();
            for older in older {
                end(
                    world,
                    &older,
                    "Cancelled",
                    "CancelledBuild",
                    "The build was cancelled because a newer one waits.",
                );
            }
        } else if waiting.iter().any(|(_, other)| number_of(other) < number_of(build)) {
            return;
        }
    }
    let (stream_name, _) = split_tag(text(build, "/spec/output/to/name").unwrap_or_default());
    let to_stream = text(build, "/spec/output/to/kind") == Some("ImageStreamTag");
    let space = nonempty(build, "/spec/output/to/namespace").unwrap_or(namespace(build)).to_owned();
    if to_stream && world.object(&stream_key(&space, stream_name)).is_none() {
        // As on a real cluster the build stays new until the stream is there.
        let reason = "InvalidOutputReference";
        world.change_status(ACTOR, key, |object| {
            set(object, &["status"], "reason", json!(reason));
            set(object, &["status"], "message", json!("Output image could not be resolved."));
        });
        let at = world.now().plus_millis(START_MILLIS);
        world.wake(Controller::Build, key, at);
        return;
    }
    let at = world.now().plus_millis(START_MILLIS + world.ids.delay(START_MILLIS));
    phase(world, key, "Pending", |_| {});
    world.wake(Controller::Build, key, at);
    world.openshift.due.insert(key.clone(), at);
}

fn run(world: &mut World, key: &ObjectKey, build: &Value) {
    let now = world.now();
    if let Some(due) = world.openshift.due.get(key).copied()
        && now < due
    {
        world.wake(Controller::Build, key, due);
        return;
    }
    let stamp = world.stamp_now();
    let minutes = recipe(world, build).map_or(1, |recipe| recipe.minutes);
    let at = now.plus_millis(minutes.saturating_mul(60_000).max(1000));
    world.openshift.due.insert(key.clone(), at);
    phase(world, key, "Running", |object| set(object, &["status"], "startTimestamp", json!(stamp)));
    world.note(ACTOR, What::Build { phase: "running", detail: source_text(build) }, Some(key.clone()));
    world.event(
        ACTOR,
        build,
        "Normal",
        "BuildStarted",
        &format!("Build {}/{} is now running", namespace(build), key.name),
    );
    world.wake(Controller::Build, key, at);
}

fn finish_when_due(world: &mut World, key: &ObjectKey, build: &Value) {
    let due = world.openshift.due.get(key).copied();
    if let Some(due) = due
        && world.now() < due
    {
        world.wake(Controller::Build, key, due);
        return;
    }
    match make(world, build) {
        Ok((reference, digest)) => {
            let stamp = world.stamp_now();
            phase(world, key, "Complete", |object| {
                set(object, &["status"], "completionTimestamp", json!(stamp));
                set(object, &["status"], "outputDockerImageReference", json!(reference));
                set(object, &["status", "output", "to"], "imageDigest", json!(digest.to_string()));
                set(object, &["status"], "reason", Value::Null);
                set(object, &["status"], "message", Value::Null);
            });
            world.openshift.due.remove(key);
            world.note(
                ACTOR,
                What::Build { phase: "complete", detail: format!("{reference} {digest}") },
                Some(key.clone()),
            );
            world.event(
                ACTOR,
                build,
                "Normal",
                "BuildCompleted",
                &format!("Build {}/{} completed successfully", namespace(build), key.name),
            );
            wake_siblings(world, build);
        }
        Err(failure) => {
            end(world, key, "Failed", failure.reason, &failure.message);
            world.event(
                ACTOR,
                build,
                "Normal",
                "BuildFailed",
                &format!("Build {}/{} failed", namespace(build), key.name),
            );
        }
    }
}

/// Ends a build without a result.
fn end(world: &mut World, key: &ObjectKey, to: &'static str, reason: &'static str, message: &str) {
    let stamp = world.stamp_now();
    phase(world, key, to, |object| {
        set(object, &["status"], "completionTimestamp", json!(stamp));
        set(object, &["status"], "reason", json!(reason));
        set(object, &["status"], "message", json!(message));
    });
    world.openshift.due.remove(key);
    let outcome = if to == "Failed" { "failed" } else { "cancelled" };
    world.note(ACTOR, What::Build { phase: outcome, detail: message.to_owned() }, Some(key.clone()));
    if let Some(build) = world.object(key).cloned() {
        wake_siblings(world, &build);
    }
}

fn phase(world: &mut World, key: &ObjectKey, to: &str, edit: impl FnOnce(&mut Value)) {
    world.change_status(ACTOR, key, |object| {
        set(object, &["status"], "phase", json!(to));
        edit(object);
    });
}

/// Builds of the same configuration that wait look again.
fn wake_siblings(world: &mut World, build: &Value) {
    let Some((kind, name, _)) = controller_of(build) else { return };
    let owner = ObjectKey::namespaced(BUILD, kind, namespace(build), name);
    let Some(owner) = world.object(&owner).cloned() else { return };
    for (key, _) in pods::owned(world, &owner, (BUILD, "Build")) {
        world.wake_soon(Controller::Build, &key);
    }
}

fn source_text(build: &Value) -> String {
    format!(
        "{} {} {}",
        text(build, "/spec/source/git/uri").unwrap_or_default(),
        text(build, "/spec/source/git/ref").unwrap_or_default(),
        text(build, "/spec/source/contextDir").unwrap_or_default()
    )
    .trim_end()
    .to_owned()
}

fn recipe<'a>(world: &'a World, build: &Value) -> Option<&'a BuildRecipe> {
    let uri = text(build, "/spec/source/git/uri")?;
    let source_ref = text(build, "/spec/source/git/ref").unwrap_or_default();
    let folder = text(build, "/spec/source/contextDir").unwrap_or_default().trim_matches('/');
    let bare = |uri: &str| uri.trim_end_matches('/').trim_end_matches(".git").to_owned();
    world.config.builds.iter().find(|recipe| {
        bare(&recipe.uri) == bare(uri)
            && recipe.ref_ == source_ref
            && recipe.context_dir.trim_matches('/') == folder
    })
}

/// Makes the image and pushes it. Gives where it was pushed to, and its digest.
fn make(world: &mut World, build: &Value) -> Result<(String, Digest), Failure> {
    let fail = |reason: &'static str, message: String| Failure { reason, message };
    let recipe = recipe(world, build).cloned().ok_or_else(|| {
        fail(
            "FetchSourceFailed",
            format!(
                "Failed to fetch the input source. No recipe of this world is for {}",
                source_text(build)
            ),
        )
    })?;
    let base = match strategy_from(build).and_then(|from| text(from, "/name")) {
        None => None,
        Some(reference) => {
            let reason = if build.pointer("/spec/strategy/sourceStrategy").is_some() {
                "PullBuilderImageFailed"
            } else {
                "DockerBuildFailed"
            };
            let pulled = import::whole(world, namespace(build), reference).map_err(|error| {
                fail(reason, format!("Failed to pull builder image {reference}: {error}"))
            })?;
            let blobs: BTreeMap<Digest, (String, Vec<u8>)> = pulled
                .blobs
                .into_iter()
                .map(|(digest, media_type, bytes)| (digest, (media_type, bytes.to_vec())))
                .collect();
            let read =
                BuiltImage::read(&pulled.media_type, &pulled.root, |digest| blobs.get(digest).cloned());
            Some(read.map_err(|error| {
                fail(reason, format!("Failed to read builder image {reference}: {error}"))
            })?)
        }
    };
    let image = scantling_contents::build(&recipe.description, base.as_ref()).map_err(|error| {
        fail("GenericBuildFailed", format!("Generic Build failure - check logs for details: {error}"))
    })?;
    let digest = image.root.clone();
    let pushed = Pushed {
        media_type: image.media_type,
        root: image.root,
        blobs: image
            .blobs
            .into_iter()
            .map(|(digest, (media_type, bytes))| (digest, media_type, Bytes::from(bytes)))
            .collect(),
    };
    let push_failed = |detail: &str| {
        fail("PushImageToRegistryFailed", format!("Failed to push the image to the registry. {detail}"))
    };
    let output = text(build, "/spec/output/to/name").unwrap_or_default();
    match text(build, "/spec/output/to/kind") {
        Some("ImageStreamTag") => {
            let space = nonempty(build, "/spec/output/to/namespace").unwrap_or(namespace(build)).to_owned();
            let (stream_name, tag) = split_tag(output);
            let host = world
                .config
                .internal_registry
                .clone()
                .ok_or_else(|| push_failed("The cluster has no registry."))?;
            let key = stream_key(&space, stream_name);
            let Some(stream) = world.object(&key).filter(|stream| !crate::value::deleting(stream)) else {
                return Err(push_failed(&format!(
                    "imagestreams.image.openshift.io \"{stream_name}\" not found"
                )));
            };
            let generation = int(stream, "/metadata/generation").unwrap_or(1);
            let repository = format!("{space}/{stream_name}");
            world
                .registry
                .push(&host, &repository, Some(tag), &pushed)
                .map_err(|error| push_failed(&error.to_string()))?;
            let reference = format!("{host}/{repository}@{digest}");
            add_item(world, ACTOR, &key, tag, &reference, digest.as_str(), generation);
            Ok((format!("{host}/{repository}:{tag}"), digest))
        }
        Some("DockerImage") => {
            let reference =
                scantling_image::Reference::parse(output).map_err(|error| push_failed(&error.to_string()))?;
            world
                .registry
                .push(reference.registry(), reference.repository(), reference.effective_tag(), &pushed)
                .map_err(|error| push_failed(&error.to_string()))?;
            Ok((output.to_owned(), digest))
        }
        // A build without output only shows that it builds.
        _ => Ok((String::new(), digest)),
    }
}
