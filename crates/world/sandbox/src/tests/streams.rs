//! Image streams: what is imported, when, and what it is called then.

use scantling_api::ObjectKey;
use scantling_registry_server::{Access, RegistryServer};
use serde_json::{Value, json};

use super::{R, described, field, image, pod, push};
use crate::openshift::IMAGE;
use crate::value::{int, list, text};
use crate::{Flavour, NodeConfig, World, WorldConfig};
use scantling_image::Platform;

pub(crate) const INTERNAL: &str = "image-registry.openshift-image-registry.svc:5000";

pub(crate) fn openshift(registry: RegistryServer) -> World {
    let mut config = WorldConfig::new(3, Flavour::OpenShift);
    config.nodes = vec![NodeConfig::new("worker-a", Platform::linux_amd64())];
    config.internal_registry = Some(INTERNAL.to_owned());
    World::new(config, registry)
}

pub(crate) fn stream(name: &str, tags: &Value) -> Value {
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"lookupPolicy": {"local": true}, "tags": tags},
    })
}

fn tag(name: &str, from: &str, mode: Option<&str>) -> Value {
    let policy = mode.map_or_else(|| json!({}), |mode| json!({"importMode": mode}));
    json!({"name": name, "from": {"kind": "DockerImage", "name": from}, "importPolicy": policy,
        "referencePolicy": {"type": "Local"}})
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(IMAGE, "ImageStream", "default", name)
}

fn items(world: &World, name: &str) -> Vec<(String, String)> {
    list(world.object(&key(name)).unwrap(), "/status/tags/0/items")
        .iter()
        .map(|item| {
            (
                text(item, "/image").unwrap().to_owned(),
                text(item, "/dockerImageReference").unwrap().to_owned(),
            )
        })
        .collect()
}

#[test]
fn a_tag_is_imported_once_and_again_when_it_changes() {
    let (one, two) = (image("one"), image("two"));
    let mut registry = RegistryServer::new();
    push(&mut registry, "nb", "v1", &one);
    let mut world = openshift(registry);
    world.put(stream("nb", &json!([tag("py3.8", &format!("{R}/nb:v1"), None)])));
    world.pass(5);
    let item =
        |image: &scantling_contents::BuiltImage| (image.root.to_string(), format!("{R}/nb@{}", image.root));
    assert_eq!(items(&world, "nb"), [item(&one)], "{}", world.story());
    let object = world.object(&key("nb")).unwrap();
    assert_eq!(
        text(object, "/status/dockerImageRepository"),
        Some(format!("{INTERNAL}/default/nb").as_str())
    );
    // The origin moves its tag; the stream does not follow.
    push(world.registry(), "nb", "v1", &two);
    world.change("user", &key("nb"), |object| object["metadata"]["labels"] = json!({"a": "b"}));
    world.pass(5);
    assert_eq!(items(&world, "nb"), [item(&one)]);
    // A pod gets the imported image from the registry in the cluster.
    world.put(pod("p", &format!("{INTERNAL}/default/nb:py3.8"), "IfNotPresent"));
    world.pass(5);
    assert_eq!(
        field(&world.pod("p"), "/imageID"),
        format!("{INTERNAL}/default/nb@{}", one.root),
        "{}",
        world.story()
    );
    // What it is imported from changes: imported, the newest first.
    push(world.registry(), "nb", "v2", &two);
    world.change("user", &key("nb"), |object| {
        object["spec"]["tags"][0]["from"]["name"] = json!(format!("{R}/nb:v2"));
    });
    world.pass(5);
    assert_eq!(items(&world, "nb"), [item(&two), item(&one)]);
    assert_eq!(world.registry.resolve(INTERNAL, "default/nb", "py3.8"), Some(two.root));
    // The stream goes, and the registry in the cluster serves it no more.
    world.delete_as_user(&key("nb"));
    world.pass(5);
    assert_eq!(world.registry.resolve(INTERNAL, "default/nb", "py3.8"), None);
    assert!(world.list(IMAGE, "ImageStreamTag", None).is_empty());
}

#[test]
fn import_modes_keep_or_lose_the_index() {
    let many = described(&json!({
        "platforms": ["linux/amd64", "linux/arm64"], "layers": [{"files": {"/content": "multi"}}],
    }));
    let amd64 = many.platforms.iter().find(|built| built.platform == Platform::linux_amd64()).unwrap();
    for (mode, digest) in
        [(None, &amd64.manifest), (Some("Legacy"), &amd64.manifest), (Some("PreserveOriginal"), &many.root)]
    {
        let mut registry = RegistryServer::new();
        push(&mut registry, "multi", "1", &many);
        let mut world = openshift(registry);
        world.put(stream("multi", &json!([tag("1", &format!("{R}/multi:1"), mode)])));
        world.pass(5);
        assert_eq!(items(&world, "multi")[0].0, digest.to_string(), "{mode:?}\n{}", world.story());
        assert_eq!(world.registry.resolve(INTERNAL, "default/multi", "1").as_ref(), Some(digest));
        world.put(pod("p", &format!("{INTERNAL}/default/multi:1"), "IfNotPresent"));
        world.pass(5);
        assert_eq!(text(&world.pod("p"), "/status/phase"), Some("Running"), "{}", world.story());
    }
}

#[test]
fn a_failed_import_says_why_and_keeps_the_history() {
    let one = image("one");
    let mut registry = RegistryServer::new();
    push(&mut registry, "nb", "v1", &one);
    push(&mut registry, "private/nb", "v1", &one);
    registry.access(R, "private", Access::Basic { accounts: std::collections::BTreeMap::new() });
    for (from, reason, message) in [
        (format!("{R}/nb:v9"), "NotFound", format!("dockerimage.image.openshift.io \"{R}/nb:v9\" not found")),
        (
            format!("{R}/private/nb:v1"),
            "Unauthorized",
            format!("you may not have access to the container image \"{R}/private/nb:v1\""),
        ),
    ] {
        let mut world = openshift(registry.clone());
        world.put(stream("nb", &json!([tag("t", &format!("{R}/nb:v1"), None)])));
        world.pass(5);
        world.change("user", &key("nb"), |object| object["spec"]["tags"][0]["from"]["name"] = json!(from));
        world.pass(5);
        let object = world.object(&key("nb")).unwrap();
        let condition = object.pointer("/status/tags/0/conditions/0").unwrap();
        assert_eq!(text(condition, "/type"), Some("ImportSuccess"));
        assert_eq!(text(condition, "/status"), Some("False"));
        assert_eq!(text(condition, "/reason"), Some(reason));
        assert_eq!(text(condition, "/message"), Some(message.as_str()));
        assert_eq!(items(&world, "nb").len(), 1);
    }
}

#[test]
fn tags_of_tags_follow_and_image_stream_tags_show_and_delete() {
    let (one, two) = (image("one"), image("two"));
    let mut registry = RegistryServer::new();
    push(&mut registry, "nb", "v1", &one);
    push(&mut registry, "nb", "v2", &two);
    let mut world = openshift(registry);
    world.put(stream(
        "nb",
        &json!([
            tag("v1", &format!("{R}/nb:v1"), None),
            {"name": "stable", "from": {"kind": "ImageStreamTag", "name": "v1"}},
        ]),
    ));
    world.put(stream("copy", &json!([{"name": "c", "from": {"kind": "ImageStreamTag", "name": "nb:v1"}}])));
    world.pass(5);
    assert_eq!(items(&world, "copy")[0].0, one.root.to_string(), "{}", world.story());
    let names: Vec<String> =
        world.list(IMAGE, "ImageStreamTag", None).into_iter().map(|(key, _)| key.name).collect();
    assert_eq!(names, ["copy:c", "nb:stable", "nb:v1"]);
    world.change("user", &key("nb"), |object| {
        object["spec"]["tags"][0]["from"]["name"] = json!(format!("{R}/nb:v2"));
    });
    world.pass(5);
    assert_eq!(items(&world, "copy")[0].0, two.root.to_string(), "{}", world.story());
    world.delete_as_user(&ObjectKey::namespaced(IMAGE, "ImageStreamTag", "default", "nb:stable"));
    world.pass(5);
    let object = world.object(&key("nb")).unwrap();
    assert_eq!(list(object, "/spec/tags").len(), 1, "{object}");
    assert_eq!(list(object, "/status/tags").len(), 1);
    assert!(int(object, "/status/tags/0/items/0/generation").is_some());
}

#[test]
fn a_short_name_means_the_stream_when_its_lookup_policy_is_local() {
    let one = image("one");
    for (local, expected) in [(true, format!("{R}/nb@{}", one.root)), (false, "nb:v1".to_owned())] {
        let mut registry = RegistryServer::new();
        push(&mut registry, "nb", "v1", &one);
        let mut world = openshift(registry);
        let mut object = stream(
            "nb",
            &json!([{"name": "v1", "from": {"kind": "DockerImage", "name": format!("{R}/nb:v1")}}]),
        );
        object["spec"]["lookupPolicy"]["local"] = json!(local);
        world.put(object);
        world.pass(5);
        world.put(pod("p", "nb:v1", "IfNotPresent"));
        world.pass(5);
        assert_eq!(text(&world.pod("p"), "/spec/containers/0/image"), Some(expected.as_str()));
    }
}

#[test]
fn the_importer_does_not_take_fields_from_whoever_applied_the_stream() {
    let mut registry = RegistryServer::new();
    for (content, name) in [("one", "v1"), ("two", "v2")] {
        push(&mut registry, "nb", name, &image(content));
    }
    let mut world = openshift(registry);
    world.pass(1);
    for name in ["v1", "v2"] {
        let object = stream("nb", &json!([tag("py", &format!("{R}/nb:{name}"), None)]));
        let request = http::Request::builder()
            .method(http::Method::PATCH)
            .uri("/apis/image.openshift.io/v1/namespaces/default/imagestreams/nb?fieldManager=scantling")
            .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
            .body(bytes::Bytes::from(object.to_string()))
            .unwrap();
        let crate::Reply::Once(response) = world.handle(&request) else { panic!("a watch") };
        assert!(response.status().is_success(), "{name}: {response:?}");
        world.pass(5);
    }
    assert_eq!(items(&world, "nb").len(), 2, "{}", world.story());
}
