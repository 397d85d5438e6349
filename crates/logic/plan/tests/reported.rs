//! Public bug reports about fields that several parties write, replayed on one decision.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Case, applied, carried_out, changes, kept, step, written};
use scantling_plan::{Change, Outcome, Step};
use serde_json::{Value, json};

const POD: &str = ".spec.template.spec";

/// A Deployment with one container.
#[allow(clippy::needless_pass_by_value)]
fn deployment(container: Value) -> Value {
    let mut main = json!({"name": "main", "image": "registry.example.com/a/b:1"});
    main.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [main]}}}})
}

fn containers(object: &Value) -> &Vec<Value> {
    object["spec"]["template"]["spec"]["containers"].as_array().unwrap()
}

/// The objects as a server answers: ports have their protocol.
fn stored(mut object: Value) -> Value {
    for container in object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap() {
        for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port["protocol"] = json!("TCP");
        }
    }
    object
}

fn rules(kind: &str, name: &str, field: &str, rule: &str) -> String {
    format!("[{{kind: {kind}, name: {name}, field: '{field}', rule: {rule}}}]")
}

fn taken(step: &Step) -> Vec<(String, Vec<String>)> {
    step.taken.iter().map(|t| (t.field.clone(), t.owners.clone())).collect()
}

/// argoproj/argo-cd#25474: somebody gives a named port another number; merged, both have the name, which no server takes.
#[test]
fn a_port_of_the_same_name_is_no_second_one() {
    let port = |number: u16| deployment(json!({"ports": [{"name": "http", "containerPort": number}]}));
    let base = port(8080);
    let ours = stored(applied(None, &base));
    let field = format!("{POD}.containers[name=\"main\"].ports");
    let theirs = format!("{field}[containerPort=8081,protocol=\"TCP\"]");
    // The port was moved, or another one of the same name was put beside a port that the release renames.
    let moved = written(Some(&ours), &stored(port(8081)), "console");
    for (base, live) in [(Some(&base), &moved), (None, &moved)] {
        let run = |rules: &str| {
            step(&Case { desired: base.unwrap_or(&port(8080)), base, live: Some(live), ours: true, rules })
        };
        let stopped = run("[]");
        assert_eq!(stopped.outcome, Outcome::Conflict, "{stopped:?}");
        assert!(!stopped.writes());
        assert!(stopped.cause.contains(&theirs) && stopped.cause.contains("console"), "{}", stopped.cause);

        let take = run(&rules("Deployment", "d", &field, "take"));
        assert!(taken(&take).contains(&(theirs.clone(), vec!["console".to_owned()])), "{take:?}");
        let name = format!("{theirs}.name");
        assert!(changes(&take).contains(&(name, Change::Remove)), "{:?}", changes(&take));
        let after = carried_out(&take, live);
        let ports = &containers(&after)[0]["ports"];
        assert_eq!(ports.as_array().unwrap().len(), 1, "{ports}");
        assert_eq!(ports[0]["containerPort"], 8080);
        let again = step(&Case {
            desired: &port(8080),
            base: Some(&port(8080)),
            live: Some(&stored(after)),
            ours: true,
            rules: "[]",
        });
        assert_eq!(again.outcome, Outcome::Unchanged, "{again:?}");

        let keep = run(&rules("Deployment", "d", &field, "keep"));
        assert_eq!(keep.conflicts, []);
        let after = carried_out(&keep, live);
        assert_eq!(containers(&after)[0]["ports"].as_array().unwrap().len(), 1);
        assert_eq!(containers(&after)[0]["ports"][0]["containerPort"], 8081);
    }
}

/// argoproj/argo-cd#25474, the ports of a Service: the name and the port of the nodes are there once each.
#[test]
fn a_service_has_every_name_and_node_port_once() {
    let service = |port: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
            "spec": {"type": "NodePort", "selector": {"a": "b"}, "ports": [port]}})
    };
    for (ours, theirs, clash) in [
        (json!({"name": "http", "port": 80}), json!({"name": "http", "port": 81}), true),
        (
            json!({"name": "a", "port": 80, "nodePort": 30080}),
            json!({"name": "b", "port": 81, "nodePort": 30080}),
            true,
        ),
        (json!({"name": "a", "port": 80}), json!({"name": "b", "port": 81}), false),
        (json!({"name": "a", "port": 80}), json!({"port": 81}), false),
    ] {
        let (desired, other) = (service(ours), service(theirs));
        let live = written(None, &other, "console");
        let case = Case { desired: &desired, base: None, live: Some(&live), ours: false, rules: "[]" };
        let step = step(&case);
        assert_eq!(step.outcome == Outcome::Conflict, clash, "{step:?}");
    }
}

/// kubernetes/kubernetes#108081: somebody's field lies in a block that the release drops; what is left is refused.
#[test]
fn what_others_put_into_a_block_goes_with_it_and_is_named() {
    let definition = |conversion: Option<Value>| {
        let mut object = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
        if let Some(conversion) = conversion {
            object["spec"]["conversion"] = conversion;
        }
        object
    };
    let with = |bundle: Option<&str>| {
        let mut client = json!({"service": {"name": "hook", "namespace": "n", "path": "/convert"}});
        if let Some(bundle) = bundle {
            client["caBundle"] = json!(bundle);
        }
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        definition(Some(json!({"strategy": "Webhook", "webhook": webhook})))
    };
    let base = with(None);
    let live = written(Some(&applied(None, &base)), &with(Some("Y2E=")), "injector");
    let desired = definition(None);
    let bundle = ".spec.conversion.webhook.clientConfig.caBundle";
    let run = |rules: &str| {
        step(&Case { desired: &desired, base: Some(&base), live: Some(&live), ours: true, rules })
    };
    let dropped = run("[]");
    assert_eq!(dropped.outcome, Outcome::Updated, "{dropped:?}");
    assert_eq!(taken(&dropped), [(bundle.to_owned(), vec!["injector".to_owned()])]);
    assert!(kept(&dropped).is_empty(), "{:?}", dropped.kept);
    assert!(changes(&dropped).contains(&(bundle.to_owned(), Change::Remove)));
    let after = carried_out(&dropped, &live);
    assert_eq!(after["spec"].get("conversion"), None, "{after}");

    let rule = rules("CustomResourceDefinition", "things.example.com", ".spec.conversion", "keep");
    assert_eq!(run(&rule).outcome, Outcome::Conflict);
}

/// kubernetes/kubernetes#108081, a container: nobody's setting keeps one alive that the release no longer has.
#[test]
fn a_container_that_the_release_drops_takes_what_was_set_on_it() {
    let with = |extra: Option<Value>| {
        let mut object = deployment(json!({}));
        object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().extend(extra);
        object
    };
    let base = with(Some(json!({"name": "side", "image": "registry.example.com/a/side:1"})));
    let ours = applied(None, &base);
    let limited = with(Some(json!({"name": "side", "image": "registry.example.com/a/side:1",
        "resources": {"limits": {"cpu": "2"}}})));
    let live = written(Some(&ours), &limited, "kubectl-edit");
    let desired = with(None);
    let run = |live: &Value| {
        step(&Case { desired: &desired, base: Some(&base), live: Some(live), ours: true, rules: "[]" })
    };
    let dropped = run(&live);
    assert_eq!(dropped.outcome, Outcome::Updated);
    let field = format!("{POD}.containers[name=\"side\"].resources.limits.cpu");
    assert_eq!(taken(&dropped), [(field, vec!["kubectl-edit".to_owned()])]);
    assert_eq!(containers(&carried_out(&dropped, &live)).len(), 1);
    // Whoever has made the container theirs keeps it.
    let theirs = with(Some(json!({"name": "side", "image": "registry.example.com/a/side:2"})));
    let mut live = written(Some(&ours), &theirs, "kubectl-edit");
    live = apply_as(&live, &theirs, "kubectl");
    let left = run(&live);
    assert!(left.taken.is_empty(), "{left:?}");
    assert_eq!(containers(&carried_out(&left, &live)).len(), 2);
}

/// The object after somebody applied it.
fn apply_as(live: &Value, object: &Value, manager: &str) -> Value {
    let request = scantling_merge::Request::new(
        scantling_api::schema::Schema::kubernetes(),
        "apps/v1",
        "Deployment",
        manager,
        "2022-01-01T00:00:00Z",
    );
    scantling_merge::apply(&request, Some(live), object, true).unwrap()
}

/// jetstack/version-checker#140: the labels by which a Deployment finds its pods hold the version.
#[test]
fn a_selector_that_cannot_change_ends_no_pods_unless_the_release_says_so() {
    let version = |version: &str| {
        let labels = json!({"app": "ctl", "version": version});
        let mut object = deployment(json!({}));
        object["spec"]["selector"]["matchLabels"] = labels.clone();
        object["spec"]["template"]["metadata"]["labels"] = labels;
        object
    };
    let (base, desired) = (version("v0.3.1"), version("v0.3.2"));
    let live = applied(None, &base);
    let run = |rules: &str| {
        step(&Case { desired: &desired, base: Some(&base), live: Some(&live), ours: true, rules })
    };
    let stopped = run("[]");
    assert_eq!((stopped.outcome, &*stopped.immutable[0]), (Outcome::Conflict, ".spec.selector"));
    assert!(stopped.cause.contains("ends all its pods at once"), "{}", stopped.cause);
    assert!(stopped.cause.contains("{kind: Deployment, name: d, field: .spec.selector, rule: take}"));

    let consented = run(&rules("Deployment", "d", ".spec.selector", "take"));
    assert_eq!(consented.outcome, Outcome::Replaced);
    assert!(consented.cause.ends_with("; its pods are deleted with it"), "{}", consented.cause);
    assert_eq!(run(&rules("Deployment", "other", ".spec.selector", "take")).outcome, Outcome::Conflict);
}

/// kubernetes/kubernetes#99003: what client-side apply wrote stays behind after the move to server-side apply.
#[test]
fn a_move_from_client_side_apply_leaves_nothing_behind() {
    const NOTE: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let env = |env: Value| deployment(json!({ "env": env }));
    let mut old = env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]));
    let note = old.to_string();
    old["metadata"]["annotations"] = json!({ NOTE: note });
    let live = written(None, &old, "kubectl-client-side-apply");
    let desired = env(json!([{"name": "A", "value": "1"}]));
    let run = |base, live: &Value, ours| {
        step(&Case { desired: &desired, base, live: Some(live), ours, rules: "[]" })
    };
    let adopted = run(None, &live, false);
    assert_eq!(adopted.outcome, Outcome::Adopted);
    let gone = format!("{POD}.containers[name=\"main\"].env[name=\"B\"].value");
    assert!(changes(&adopted).contains(&(gone, Change::Remove)), "{:?}", changes(&adopted));
    assert_eq!(adopted.taken_over, ["kubectl-client-side-apply"]);
    let after = carried_out(&adopted, &live);
    assert_eq!(containers(&after)[0]["env"], json!([{"name": "A", "value": "1"}]));
    let again = run(Some(&desired), &after, true);
    assert_eq!(again.outcome, Outcome::Unchanged, "{again:?}");
}

/// opendatahub-io/opendatahub-operator#1157: what somebody has set is kept, and given back it is the release's again.
#[test]
fn what_is_given_back_gets_the_releases_value() {
    let sized = |replicas: u8, cpu: &str| {
        let mut object = deployment(json!({"resources": {"limits": {"cpu": cpu}}}));
        object["spec"]["replicas"] = json!(replicas);
        object
    };
    let base = sized(1, "500m");
    let live = written(Some(&applied(None, &base)), &sized(5, "4"), "kubectl-edit");
    let fields = [".spec.replicas", ".spec.template.spec.containers"];
    let run = |live: &Value, rule: &str| {
        let rules: Vec<String> = fields
            .iter()
            .map(|field| format!("{{kind: Deployment, name: d, field: {field}, rule: {rule}}}"))
            .collect();
        let rules = if rule.is_empty() { "[]".to_owned() } else { format!("[{}]", rules.join(", ")) };
        step(&Case { desired: &base, base: Some(&base), live: Some(live), ours: true, rules: &rules })
    };
    let marked = carried_out(&run(&live, "keep"), &live);
    let size = |object: &Value| {
        (object["spec"]["replicas"].clone(), containers(object)[0]["resources"]["limits"]["cpu"].clone())
    };
    assert_eq!(size(&marked), (json!(5), json!("4")));

    let names_both = |found: Vec<&str>| {
        assert!(found.contains(&".spec.replicas"), "{found:?}");
        assert!(found.iter().any(|field| field.ends_with(".resources.limits.cpu")), "{found:?}");
    };
    let stopped = run(&marked, "");
    assert_eq!(stopped.outcome, Outcome::Conflict);
    names_both(stopped.conflicts.iter().map(|c| c.field.as_str()).collect());
    let given_back = run(&marked, "take");
    names_both(given_back.taken.iter().map(|t| t.field.as_str()).collect());
    assert!(given_back.taken.iter().all(|t| t.owners == ["kubectl-edit"]), "{:?}", given_back.taken);
    let after = carried_out(&given_back, &marked);
    assert_eq!(size(&after), (json!(1), json!("500m")));
    assert_eq!(run(&after, "").outcome, Outcome::Unchanged);
}
