//! The world by its API alone, as clients see it: requests, watches, faults.

use bytes::Bytes;
use http::{Method, Request, Response, header};
use scantling_registry_server::RegistryServer;
use serde_json::{Value, json};

use super::{R, image, pod, push, world_of};
use crate::value::{int, list, text};
use crate::{ApiFaults, Flavour, Lost, Reply, World};

/// Sends a request as a client of this name.
pub(crate) fn send(
    world: &mut World,
    client: &str,
    method: &Method,
    path: &str,
    body: Option<&Value>,
) -> Response<Bytes> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::USER_AGENT, format!("{client}/1.0 (test)"));
    if body.is_some() {
        let kind = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        request = request.header(header::CONTENT_TYPE, kind);
    }
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    match world.handle(&request.body(body).unwrap()) {
        Reply::Once(response) => response,
        Reply::Watch(_) => panic!("a watch"),
    }
}

pub(crate) fn json_of(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

fn world() -> World {
    let mut registry = RegistryServer::new();
    push(&mut registry, "app", "1", &image("content"));
    push(&mut registry, "app", "2", &image("other"));
    world_of(Flavour::Kubernetes, 2, registry)
}

fn deployment(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "main", "image": format!("{R}/app:1")}]}},
        },
    })
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[test]
fn a_deployment_by_requests_alone() {
    let mut world = world();
    world.pass(1);
    let response = send(&mut world, "kubectl", &Method::POST, DEPLOYMENTS, Some(&deployment(3)));
    assert_eq!(response.status(), 201, "{response:?}");
    world.pass(10);
    let got = json_of(&send(&mut world, "kubectl", &Method::GET, &format!("{DEPLOYMENTS}/d"), None));
    assert_eq!(int(&got, "/status/availableReplicas"), Some(3), "{got}\n{}", world.story());
    assert_eq!(int(&got, "/status/observedGeneration"), int(&got, "/metadata/generation"));
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": format!("{R}/app:2")}]}}}});
    let response = send(&mut world, "kubectl", &Method::PATCH, &format!("{DEPLOYMENTS}/d"), Some(&patch));
    assert_eq!(response.status(), 200, "{response:?}");
    world.pass(30);
    let pods = json_of(&send(&mut world, "kubectl", &Method::GET, PODS, None));
    let images: Vec<&str> =
        list(&pods, "/items").iter().filter_map(|pod| text(pod, "/spec/containers/0/image")).collect();
    assert_eq!(images, [format!("{R}/app:2").as_str(); 3], "{}", world.story());
    let got = json_of(&send(&mut world, "kubectl", &Method::GET, &format!("{DEPLOYMENTS}/d"), None));
    assert_eq!(int(&got, "/status/updatedReplicas"), Some(3));
    assert_eq!(int(&got, "/status/observedGeneration"), int(&got, "/metadata/generation"));
}

#[test]
fn a_watch_hears_of_what_controllers_do() {
    let mut world = world();
    let request = Request::builder().uri(format!("{PODS}?watch=1")).body(Bytes::new()).unwrap();
    let Reply::Watch(id) = world.handle(&request) else { panic!("no watch") };
    world.put(pod("p", &format!("{R}/app:1"), "IfNotPresent"));
    world.pass(5);
    let chunk = world.watch_poll(id);
    assert!(!chunk.closed);
    let events: Vec<Value> = chunk.bytes.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert_eq!(text(&events[0], "/type"), Some("ADDED"));
    let last = events.last().unwrap();
    assert_eq!(text(last, "/object/status/phase"), Some("Running"), "{last}");
    assert!(world.watch_poll(id).bytes.is_empty());
    world.watch_close(id);
    assert!(world.watch_poll(id).closed);
}

#[test]
fn a_cut_watch_ends_and_the_clock_knows_when_watches_are_due() {
    let mut world = world();
    let faults = ApiFaults { watch_cut_after: Some(5000), ..ApiFaults::default() };
    world.faults().set("scantling", faults);
    let watch = |world: &mut World, client: &str| {
        let request = Request::builder()
            .uri(format!("{PODS}?watch=1&timeoutSeconds=60&allowWatchBookmarks=true"))
            .header(header::USER_AGENT, format!("{client}/1"));
        match world.handle(&request.body(Bytes::new()).unwrap()) {
            Reply::Watch(id) => id,
            Reply::Once(response) => panic!("{response:?}"),
        }
    };
    world.pass(2);
    let (cut, whole) = (watch(&mut world, "scantling"), watch(&mut world, "kubectl"));
    world.pass(6);
    assert!(world.watch_poll(cut).closed);
    assert!(!world.watch_poll(whole).closed);
    assert!(world.next_event().is_some_and(|next| next <= world.now().plus_millis(60_000)));
    world.pass(60);
    assert!(world.watch_poll(whole).closed);
}

#[test]
fn a_client_can_lose_answers_but_not_writes() {
    let mut world = world();
    world.pass(1);
    world.faults().set("scantling", ApiFaults { unavailable: 1000, ..ApiFaults::default() });
    let response = send(&mut world, "scantling", &Method::POST, DEPLOYMENTS, Some(&deployment(0)));
    assert_eq!(response.status(), 503);
    assert!(response.extensions().get::<Lost>().is_none());
    assert!(world.list("apps", "Deployment", None).is_empty());
    world.faults().set("scantling", ApiFaults { lost_responses: 1000, ..ApiFaults::default() });
    let response = send(&mut world, "scantling", &Method::POST, DEPLOYMENTS, Some(&deployment(0)));
    assert!(response.extensions().get::<Lost>().is_some());
    assert_eq!(world.list("apps", "Deployment", None).len(), 1);
    let response = send(&mut world, "kubectl", &Method::GET, &format!("{DEPLOYMENTS}/d"), None);
    assert_eq!(response.status(), 200);
}

#[test]
fn evictions_keep_to_the_budget() {
    let mut world = world();
    world.pass(1);
    send(&mut world, "kubectl", &Method::POST, DEPLOYMENTS, Some(&deployment(2)));
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "d"}}},
    });
    let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    assert_eq!(send(&mut world, "kubectl", &Method::POST, path, Some(&budget)).status(), 201);
    world.pass(10);
    let names = world.pod_names();
    let evict = |world: &mut World, name: &str| {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        send(world, "kubectl", &Method::POST, &format!("{PODS}/{name}/eviction"), Some(&body)).status()
    };
    assert_eq!(evict(&mut world, &names[0]), 201, "{}", world.story());
    assert_eq!(evict(&mut world, &names[1]), 429);
    world.pass(20);
    assert_eq!(evict(&mut world, &names[1]), 201, "{}", world.story());
}

#[test]
fn everything_in_a_namespace_goes_with_it_claims_included() {
    let mut world = world();
    let namespaces = "/api/v1/namespaces";
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    assert_eq!(send(&mut world, "kubectl", &Method::POST, namespaces, Some(&body)).status(), 201);
    world.pass(1);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let claims = "/api/v1/namespaces/team/persistentvolumeclaims";
    assert_eq!(send(&mut world, "kubectl", &Method::POST, claims, Some(&claim)).status(), 201);
    let mut object = pod("p", &format!("{R}/app:1"), "IfNotPresent");
    object["metadata"] = json!({"name": "p"});
    object["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    let pods = "/api/v1/namespaces/team/pods";
    assert_eq!(send(&mut world, "kubectl", &Method::POST, pods, Some(&object)).status(), 201);
    world.pass(10);
    // The claim is in use: it waits for the pod.
    send(&mut world, "kubectl", &Method::DELETE, &format!("{claims}/c"), None);
    world.pass(5);
    assert_eq!(send(&mut world, "kubectl", &Method::GET, &format!("{claims}/c"), None).status(), 200);
    assert_eq!(send(&mut world, "kubectl", &Method::DELETE, "/api/v1/namespaces/team", None).status(), 200);
    world.pass(60);
    assert_eq!(
        send(&mut world, "kubectl", &Method::GET, "/api/v1/namespaces/team", None).status(),
        404,
        "{}",
        world.story()
    );
    assert!(world.list("", "PersistentVolume", None).is_empty(), "{}", world.story());
    assert!(world.objects().all(|(key, _)| key.namespace.as_deref() != Some("team")));
}
