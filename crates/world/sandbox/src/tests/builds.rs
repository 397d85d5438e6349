//! Chains of builds, as the first incident has them.

use scantling_api::ObjectKey;
use scantling_contents::ImageDescription;
use scantling_registry_server::RegistryServer;
use serde_json::{Value, json};

use super::streams::{INTERNAL, stream};
use super::{R, field, image, pod, push};
use crate::openshift::{BUILD, IMAGE};
use crate::value::{int, list, text};
use crate::{BuildRecipe, Flavour, NodeConfig, World, WorldConfig};
use scantling_image::Platform;

fn recipe(repository: &str, source_ref: &str, content: &str) -> BuildRecipe {
    let description: ImageDescription =
        serde_json::from_value(json!({"layers": [{"files": {format!("/{repository}"): content}}]})).unwrap();
    BuildRecipe {
        uri: format!("https://git.example/{repository}"),
        ref_: source_ref.to_owned(),
        context_dir: String::new(),
        minutes: 5,
        description,
    }
}

fn world() -> World {
    let mut registry = RegistryServer::new();
    push(&mut registry, "cuda", "11", &image("cuda"));
    let mut config = WorldConfig::new(5, Flavour::OpenShift);
    config.nodes = vec![NodeConfig::new("worker-a", Platform::linux_amd64())];
    config.internal_registry = Some(INTERNAL.to_owned());
    config.builds = vec![
        recipe("base", "nb-2", "base"),
        recipe("minimal", "nb-2", "jupyterlab 3.0.16"),
        recipe("minimal", "nb-6", "jupyterlab 3.2.4"),
        recipe("tensorflow", "nb-4", "tensorflow 2.4.1"),
        recipe("tensorflow", "nb-5", "tensorflow 2.7.0"),
    ];
    World::new(config, registry)
}

fn build_config(name: &str, source: (&str, &str), strategy: &str, from: &str, to: &str) -> Value {
    json!({
        "apiVersion": "build.openshift.io/v1", "kind": "BuildConfig",
        "metadata": {"name": name, "namespace": "default", "labels": {"rhods/buildchain": "cuda"}},
        "spec": {
            "runPolicy": "SerialLatestOnly",
            "source": {"type": "Git", "git": {"uri": format!("https://git.example/{}", source.0), "ref": source.1}},
            "strategy": {strategy: {"from": {"kind": "ImageStreamTag", "name": from}}},
            "output": {"to": {"kind": "ImageStreamTag", "name": to}},
            "triggers": [{"type": "ImageChange", "imageChange": {}}],
        },
    })
}

/// The chain of a release: cuda → base → minimal → tensorflow.
fn apply(world: &mut World, minimal: &str, tensorflow: &str) {
    world.put(stream(
        "cuda",
        &json!([{"name": "latest", "from": {"kind": "DockerImage", "name": format!("{R}/cuda:11")}}]),
    ));
    for (name, tag) in [("base", "latest"), ("minimal", "py"), ("tensorflow", "py")] {
        world.put(stream(name, &json!([{"name": tag, "referencePolicy": {"type": "Local"}}])));
    }
    world.put(build_config("base", ("base", "nb-2"), "dockerStrategy", "cuda:latest", "base:latest"));
    world.put(build_config("minimal", ("minimal", minimal), "dockerStrategy", "base:latest", "minimal:py"));
    world.put(build_config(
        "tensorflow",
        ("tensorflow", tensorflow),
        "sourceStrategy",
        "minimal:py",
        "tensorflow:py",
    ));
}

fn remove(world: &mut World) {
    for (group, kind) in [(BUILD, "BuildConfig"), (IMAGE, "ImageStream")] {
        let keys: Vec<ObjectKey> = world.list(group, kind, None).into_iter().map(|(key, _)| key).collect();
        for key in keys {
            world.delete_as_user(&key);
        }
    }
}

fn digest(world: &World, name: &str) -> Option<String> {
    let key = ObjectKey::namespaced(IMAGE, "ImageStream", "default", name);
    text(world.object(&key)?, "/status/tags/0/items/0/image").map(ToOwned::to_owned)
}

fn phases(world: &World) -> Vec<String> {
    world
        .list(BUILD, "Build", None)
        .into_iter()
        .map(|(key, build)| format!("{} {}", key.name, text(build, "/status/phase").unwrap_or_default()))
        .collect()
}

#[test]
fn a_chain_of_builds_fills_its_streams_one_after_the_other() {
    let mut world = world();
    apply(&mut world, "nb-2", "nb-4");
    world.pass(60);
    assert_eq!(phases(&world), ["base-1 Running"], "{}", world.story());
    assert_eq!(digest(&world, "base"), None);
    world.pass(30 * 60);
    assert_eq!(
        phases(&world),
        ["base-1 Complete", "minimal-1 Complete", "tensorflow-1 Complete"],
        "{}",
        world.story()
    );
    let built = digest(&world, "tensorflow").unwrap();
    let key = ObjectKey::namespaced(BUILD, "Build", "default", "tensorflow-1");
    let last = world.object(&key).unwrap();
    assert_eq!(text(last, "/status/output/to/imageDigest"), Some(built.as_str()));
    assert!(
        text(last, "/spec/strategy/sourceStrategy/from/name").unwrap().contains("/default/minimal@sha256:")
    );
    // Layers of the whole chain are in it.
    let root = scantling_image::Digest::parse(&built).unwrap();
    let (_, manifest) = world.registry.manifest(INTERNAL, "default/tensorflow", &root).unwrap();
    let manifest: Value = serde_json::from_slice(manifest).unwrap();
    assert_eq!(list(&manifest, "/layers").len(), 4);
    // Nothing changes, nothing is built.
    world.pass(3600);
    assert_eq!(phases(&world).len(), 3);
}

#[test]
fn an_upgrade_by_deleting_the_chain_leaves_a_stale_node() {
    let mut world = world();
    apply(&mut world, "nb-2", "nb-4");
    world.pass(3600);
    let old = digest(&world, "tensorflow").unwrap();
    let written = format!("{INTERNAL}/default/tensorflow:py");
    world.put(pod("anna", &written, "IfNotPresent"));
    world.pass(10);
    assert_eq!(
        field(&world.pod("anna"), "/imageID"),
        format!("{INTERNAL}/default/tensorflow@{old}"),
        "{}",
        world.story()
    );
    remove(&mut world);
    world.pass(5);
    assert!(phases(&world).is_empty(), "{}", world.story());
    apply(&mut world, "nb-6", "nb-5");
    // While the builds run the tag is not there.
    world.pass(120);
    assert_eq!(digest(&world, "tensorflow"), None);
    world.pass(3600);
    let new = digest(&world, "tensorflow").unwrap();
    assert_ne!(old, new);
    assert_eq!(world.registry.resolve(INTERNAL, "default/tensorflow", "py").unwrap().to_string(), new);
    world.put(pod("ben", &written, "IfNotPresent"));
    world.put(pod("chloe", &format!("{INTERNAL}/default/tensorflow@{new}"), "IfNotPresent"));
    world.pass(10);
    assert_eq!(field(&world.pod("ben"), "/imageID"), format!("{INTERNAL}/default/tensorflow@{old}"));
    assert_eq!(
        field(&world.pod("chloe"), "/imageID"),
        format!("{INTERNAL}/default/tensorflow@{new}"),
        "{}",
        world.story()
    );
}

#[test]
fn a_stream_deleted_under_a_running_build_fails_the_push() {
    let mut world = world();
    apply(&mut world, "nb-2", "nb-4");
    world.pass(120);
    world.delete_as_user(&ObjectKey::namespaced(IMAGE, "ImageStream", "default", "base"));
    world.pass(600);
    let build = ObjectKey::namespaced(BUILD, "Build", "default", "base-1");
    let found = world.object(&build).unwrap();
    assert_eq!(text(found, "/status/phase"), Some("Failed"), "{}", world.story());
    assert_eq!(text(found, "/status/reason"), Some("PushImageToRegistryFailed"));
}

#[test]
fn a_source_without_recipe_fails() {
    let mut world = world();
    apply(&mut world, "nb-99", "nb-4");
    world.pass(3600);
    assert_eq!(phases(&world), ["base-1 Complete", "minimal-1 Failed"], "{}", world.story());
    let build = ObjectKey::namespaced(BUILD, "Build", "default", "minimal-1");
    assert_eq!(text(world.object(&build).unwrap(), "/status/reason"), Some("FetchSourceFailed"));
}

#[test]
fn a_new_base_builds_what_is_on_top_of_it() {
    let mut world = world();
    apply(&mut world, "nb-2", "nb-4");
    world.pass(3600);
    let before = digest(&world, "tensorflow").unwrap();
    push(world.registry(), "cuda", "12", &image("cuda 12"));
    let key = ObjectKey::namespaced(IMAGE, "ImageStream", "default", "cuda");
    world.change("user", &key, |stream| {
        stream["spec"]["tags"][0]["from"]["name"] = json!(format!("{R}/cuda:12"));
    });
    world.pass(3600);
    assert_ne!(digest(&world, "tensorflow").unwrap(), before);
    assert_eq!(phases(&world).len(), 6, "{}", world.story());
    let config = ObjectKey::namespaced(BUILD, "BuildConfig", "default", "tensorflow");
    assert_eq!(int(world.object(&config).unwrap(), "/status/lastVersion"), Some(2));
}
