//! Custom resource definitions and what they define.

use serde_json::{Value, json};

use super::Server;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}},
        }}},
    })
}

fn definition(versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}, "versions": versions},
    })
}

fn widget(version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": {"name": name}, "spec": {}})
}

#[test]
fn a_definition_makes_its_kind_served_in_all_versions() {
    let mut server = Server::new();
    assert_eq!(server.ask("GET", WIDGETS, &Value::Null).0, 404);
    server.post(DEFINITIONS, &definition(&json!([version("v1", true), version("v1beta1", false)])));
    let stored = server.get(&format!("{DEFINITIONS}/widgets.example.com"));
    let established =
        stored["status"]["conditions"].as_array().unwrap().iter().any(|condition| {
            condition["type"] == json!("Established") && condition["status"] == json!("True")
        });
    assert!(established, "{stored}");
    assert_eq!(server.get("/apis/example.com")["preferredVersion"]["version"], json!("v1"));
    server.post(WIDGETS, &widget("v1", "a"));
    let older = WIDGETS.replace("/v1/", "/v1beta1/");
    let shown = server.get(&format!("{older}/a"));
    assert_eq!((&shown["apiVersion"], &shown["spec"]["size"]), (&json!("example.com/v1beta1"), &json!(1)));
    assert_eq!(server.get(&older)["items"][0]["apiVersion"], json!("example.com/v1beta1"));
    let (code, _) = server.ask("PATCH", &format!("{older}/a"), &json!({"spec": {"size": 2}}));
    assert_eq!((code, &server.get(&format!("{WIDGETS}/a"))["spec"]["size"]), (200, &json!(2)));
    // A version that is no longer served is gone; the objects stay.
    let patch = json!({"spec": {"versions": [version("v1", true)]}});
    assert_eq!(server.ask("PATCH", &format!("{DEFINITIONS}/widgets.example.com"), &patch).0, 200);
    assert_eq!(server.ask("GET", &older, &Value::Null).0, 404);
    assert_eq!(server.get(WIDGETS)["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_definition_goes_with_its_objects() {
    let mut server = Server::new();
    server.post(DEFINITIONS, &definition(&json!([version("v1", true)])));
    let mut held = widget("v1", "held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(WIDGETS, &held);
    server.post(WIDGETS, &widget("v1", "free"));
    let watch = server.watch(&format!("{WIDGETS}?watch=1"));
    server.poll(watch);
    server.ask("DELETE", &format!("{DEFINITIONS}/widgets.example.com"), &Value::Null);
    assert_eq!(server.ask("GET", &format!("{WIDGETS}/free"), &Value::Null).0, 404);
    let waiting = server.get(&format!("{DEFINITIONS}/widgets.example.com"));
    assert_eq!(waiting["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    server.ask("PATCH", &format!("{WIDGETS}/held"), &json!({"metadata": {"finalizers": null}}));
    assert_eq!(server.ask("GET", &format!("{DEFINITIONS}/widgets.example.com"), &Value::Null).0, 404);
    assert_eq!(server.ask("GET", WIDGETS, &Value::Null).0, 404);
    let (events, closed) = server.poll(watch);
    assert_eq!(events.last().map(|(kind, _)| kind.as_str()), Some("DELETED"));
    assert!(closed);
    // The names are free again.
    server.post(DEFINITIONS, &definition(&json!([version("v2", true)])));
}

#[test]
fn names_that_are_taken_are_not_accepted() {
    let mut server = Server::new();
    server.post(DEFINITIONS, &definition(&json!([version("v1", true)])));
    let mut second = definition(&json!([version("v1", true)]));
    second["metadata"]["name"] = json!("gadgets.example.com");
    second["spec"]["names"]["plural"] = json!("gadgets");
    server.post(DEFINITIONS, &second);
    let status = &server.get(&format!("{DEFINITIONS}/gadgets.example.com"))["status"];
    assert_eq!(status["conditions"][0]["status"], json!("False"), "{status}");
    assert_eq!(server.ask("GET", "/apis/example.com/v1/namespaces/default/gadgets", &Value::Null).0, 404);
}

/// Found by fuzzing: such definitions were stored, and answered with an internal error.
#[test]
fn a_schema_that_no_type_can_be_made_of_is_refused() {
    let spec = "/schema/openAPIV3Schema/properties/spec";
    let cases = [
        (json!({"type": "intcger"}), "openAPIV3Schema.properties[spec].type: Unsupported value: \"intcger\""),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}),
            "unknown `x-kubernetes-list-type` `bag`",
        ),
    ];
    for (schema, wanted) in cases {
        let mut server = Server::new();
        let mut version = version("v1", true);
        *version.pointer_mut(spec).unwrap() = schema;
        let (code, answer) = server.ask("POST", DEFINITIONS, &definition(&json!([version])));
        assert_eq!(code, 422, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(wanted), "{answer}");
        assert_eq!(server.ask("GET", &format!("{DEFINITIONS}/widgets.example.com"), &Value::Null).0, 404);
    }
}
