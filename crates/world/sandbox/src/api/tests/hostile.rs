//! Whatever is sent, the server answers.

use bytes::Bytes;
use http::Request;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Server, config_map};
use crate::api::Reply;

/// Words that mean something to the server, in any order and place.
const WORDS: [&str; 44] = [
    "api",
    "apis",
    "v1",
    "apps",
    "batch",
    "namespaces",
    "default",
    "pods",
    "deployments",
    "configmaps",
    "secrets",
    "status",
    "scale",
    "eviction",
    "binding",
    "finalize",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    "widgets.example.com",
    "metadata",
    "name",
    "spec",
    "template",
    "containers",
    "labels",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "replicas",
    "selector",
    "matchLabels",
    "apiVersion",
    "kind",
    "ConfigMap",
    "Pod",
    "Deployment",
    "data",
    "a",
    "x",
    "versions",
    "schema",
    "openAPIV3Schema",
    "properties",
    "type",
];
const CONTENT_TYPES: [&str; 7] = [
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
];
const ACCEPTED: [&str; 4] = [
    "",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
];
const QUERIES: [&str; 10] = [
    "",
    "watch=1",
    "limit=1",
    "dryRun=All",
    "fieldManager=m&force=true",
    "fieldValidation=Strict&fieldManager=m",
    "labelSelector=a%3Db",
    "fieldSelector=metadata.name%3Da",
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "resourceVersion=1&resourceVersionMatch=Exact",
];
/// Paths that exist.
const PATHS: [&str; 14] = [
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/a",
    "/api/v1/namespaces/default/pods/a/status",
    "/api/v1/namespaces/default/pods/a/eviction",
    "/api/v1/namespaces/default/services/a",
    "/api/v1/namespaces/default",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/deployments/a",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com",
    "/apis/example.com/v1/namespaces/default/widgets/a",
];

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(&WORDS[..]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|flag| json!(flag)),
        any::<i32>().prop_map(|number| json!(number)),
        word().prop_map(|text| json!(text)),
        "\\PC{0,6}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            proptest::collection::btree_map(word(), inner, 0..6).prop_map(|fields| json!(fields)),
        ]
    })
}

/// An object that passes the first checks, with a random part somewhere in it.
fn object() -> impl Strategy<Value = Value> {
    (0..6_usize, value(), 0..10_usize).prop_map(|(which, random, place)| {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
        let mut object = match which {
            0 => config_map("a", &json!({"k": "v"})),
            1 => json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": template["spec"]}),
            2 => json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
            3 => json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
            4 => json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}}),
            _ => json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets"}, "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}),
        };
        let pointer = [
            "/metadata/labels", "/metadata/finalizers", "/spec", "/spec/template", "/metadata/ownerReferences",
            "/spec/versions/0/schema/openAPIV3Schema/properties", "/metadata/managedFields", "/status", "/data", "/spec/nothing",
        ][place];
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.insert(field.to_owned(), random);
        }
        object
    })
}

/// The collection that an object belongs to.
fn collection(object: &Value) -> &'static str {
    match object["kind"].as_str() {
        Some("ConfigMap") => "/api/v1/namespaces/default/configmaps",
        Some("Pod") => "/api/v1/namespaces/default/pods",
        Some("Service") => "/api/v1/namespaces/default/services",
        Some("Deployment") => "/apis/apps/v1/namespaces/default/deployments",
        Some("Widget") => "/apis/example.com/v1/namespaces/default/widgets",
        _ => "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    }
}

fn build(method: &str, uri: &str, content_type: &str, accept: &str, body: Vec<u8>) -> Request<Bytes> {
    let builder = Request::builder().method(method).uri(uri);
    builder.header("content-type", content_type).header("accept", accept).body(Bytes::from(body)).unwrap()
}

/// A request that could well succeed.
fn plausible() -> impl Strategy<Value = Request<Bytes>> {
    let verb = proptest::sample::select(
        &[
            "create",
            "create",
            "update",
            "apply",
            "merge",
            "strategic",
            "status",
            "get",
            "table",
            "watch",
            "delete",
        ][..],
    );
    (verb, object(), value(), proptest::sample::select(&QUERIES[..])).prop_map(
        |(verb, object, part, query)| {
            let all = collection(&object);
            let one = format!("{all}/{}", object["metadata"]["name"].as_str().unwrap_or("a"));
            let whole = object.to_string().into_bytes();
            let patch = json!({"metadata": {"labels": {"x": "y"}}, "spec": part, "status": part})
                .to_string()
                .into_bytes();
            match verb {
                "create" => build("POST", all, "application/json", "", whole),
                "update" => build("PUT", &one, "application/json", "", whole),
                "apply" => {
                    build("PATCH", &format!("{one}?fieldManager=m&force=true"), CONTENT_TYPES[5], "", whole)
                }
                "merge" => build("PATCH", &one, CONTENT_TYPES[2], "", patch),
                "strategic" => build("PATCH", &one, CONTENT_TYPES[4], "", patch),
                "status" => build("PATCH", &format!("{one}/status"), CONTENT_TYPES[2], "", patch),
                "get" => build("GET", &one, "", "", Vec::new()),
                "table" => build("GET", &format!("{all}?{query}"), "", ACCEPTED[2], Vec::new()),
                "watch" => build("GET", &format!("{all}?watch=1"), "", ACCEPTED[2], Vec::new()),
                _ => build("DELETE", &one, "application/json", "", Vec::new()),
            }
        },
    )
}

/// A request of parts that have nothing to do with each other.
fn wild() -> impl Strategy<Value = Request<Bytes>> {
    let path = prop_oneof![
        4 => proptest::sample::select(&PATHS[..]).prop_map(str::to_owned),
        1 => proptest::collection::vec(word(), 0..8).prop_map(|words| format!("/{}", words.join("/"))),
    ];
    let body = prop_oneof![
        3 => object().prop_map(|value| value.to_string().into_bytes()),
        2 => value().prop_map(|value| value.to_string().into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..60),
    ];
    (
        proptest::sample::select(&["GET", "POST", "PUT", "PATCH", "DELETE"][..]),
        path,
        proptest::sample::select(&QUERIES[..]),
        body,
        proptest::sample::select(&CONTENT_TYPES[..]),
        proptest::sample::select(&ACCEPTED[..]),
    )
        .prop_map(|(method, path, query, body, content_type, accept)| {
            build(method, &format!("{path}?{query}"), content_type, accept, body)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered(requests in proptest::collection::vec(prop_oneof![3 => plausible(), 1 => wild()], 1..25)) {
        let mut server = Server::of(true);
        let mut version = server.api.store.version();
        for request in requests {
            match server.send(&request) {
                Reply::Watch(id) => { server.api.watch_poll(id, server.now); }
                Reply::Once(response) => {
                    let code = response.status().as_u16();
                    prop_assert!((200..=599).contains(&code));
                    let writes = server.api.store.version() > version;
                    // A refusal changes nothing.
                    prop_assert!(!(writes && code >= 400), "{request:?}: {response:?}");
                    version = server.api.store.version();
                }
            }
            server.later(1);
        }
        // What is stored can be read, listed and shown.
        for (key, object) in server.api.store.objects() {
            prop_assert_eq!(&scantling_api::object::key(object).unwrap(), key);
            prop_assert!(!scantling_api::object::uid(object).is_empty());
        }
    }
}
