//! Items of lists whose key has a default that nobody writes: the port of a Service has a protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Case, applied, carried_out, changes, kept, step, written};
use scantling_plan::{Change, Outcome};
use serde_json::{Value, json};

#[allow(clippy::needless_pass_by_value)]
fn service(port: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
        "spec": {"selector": {"a": "b"}, "ports": [port]}})
}

/// As a server keeps it: with the defaults that it fills in.
fn stored(mut object: Value) -> Value {
    for port in object["spec"]["ports"].as_array_mut().unwrap() {
        port["protocol"] = json!("TCP");
    }
    object
}

const TARGET: &str = ".spec.ports[port=80,protocol=\"TCP\"].targetPort";

#[test]
fn a_port_that_says_no_protocol_is_moved() {
    let base = service(json!({"name": "http", "port": 80, "targetPort": 8080}));
    let live = stored(applied(None, &base));
    let desired = service(json!({"name": "web", "port": 80, "targetPort": 8081}));
    let case = Case { desired: &desired, base: Some(&base), live: Some(&live), ours: true, rules: "[]" };
    let moved = step(&case);
    assert_eq!(moved.outcome, Outcome::Updated);
    assert_eq!(
        changes(&moved),
        [
            (".spec.ports[port=80,protocol=\"TCP\"].name".to_owned(), Change::Set),
            (TARGET.to_owned(), Change::Set)
        ]
    );
    let after = carried_out(&moved, &live);
    assert_eq!(
        after["spec"]["ports"],
        json!([{"name": "web", "port": 80, "protocol": "TCP", "targetPort": 8081}])
    );
    let again = step(&Case { base: Some(&desired), live: Some(&after), ..case });
    assert_eq!(again.outcome, Outcome::Unchanged, "{again:?}");
}

#[test]
fn what_somebody_made_of_a_port_stops_or_follows_the_rule() {
    let base = service(json!({"name": "http", "port": 80, "targetPort": 8080}));
    let ours = stored(applied(None, &base));
    let mut edited = ours.clone();
    edited["spec"]["ports"][0]["targetPort"] = json!(9090);
    let live = written(Some(&ours), &edited, "kubectl-edit");
    let desired = service(json!({"name": "http", "port": 80, "targetPort": 8081}));
    // The release's value need not move for that to be somebody's change.
    for desired in [&desired, &base] {
        let run =
            |rules: &str| step(&Case { desired, base: Some(&base), live: Some(&live), ours: true, rules });
        let stopped = run("[]");
        assert_eq!(stopped.outcome, Outcome::Conflict);
        assert_eq!(stopped.cause, format!("{TARGET} was changed by kubectl-edit"));
        // A rule need not say the protocol either.
        for field in [TARGET, ".spec.ports", ".spec.ports[port=80].targetPort", ".spec.ports[port=80]"] {
            let rule = |rule: &str| format!("[{{kind: Service, name: s, field: '{field}', rule: {rule}}}]");
            let left = run(&rule("keep"));
            assert_eq!(kept(&left)[0], (TARGET.to_owned(), vec!["kubectl-edit".to_owned()]), "{field}");
            assert_eq!(left.body["spec"]["ports"], json!([{"name": "http", "port": 80}]), "{field}");
            assert_eq!(carried_out(&left, &live)["spec"]["ports"][0]["targetPort"], json!(9090));

            let taken = run(&rule("take"));
            assert_eq!(taken.taken[0].owners, ["kubectl-edit"], "{field}");
            assert_eq!(
                carried_out(&taken, &live)["spec"]["ports"][0]["targetPort"],
                desired["spec"]["ports"][0]["targetPort"]
            );
        }
    }
}

#[test]
fn a_port_that_somebody_took_away_is_not_brought_back_silently() {
    let mut base = service(json!({"name": "http", "port": 80, "targetPort": 8080}));
    base["spec"]["ports"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "metrics", "port": 81, "targetPort": 81}));
    let ours = stored(applied(None, &base));
    let mut edited = ours.clone();
    edited["spec"]["ports"].as_array_mut().unwrap().pop();
    let live = written(Some(&ours), &edited, "kubectl-edit");
    let step = step(&Case { desired: &base, base: Some(&base), live: Some(&live), ours: true, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Conflict, "{step:?}");
    assert!(step.cause.contains("port=81"), "{}", step.cause);
}

#[test]
fn ports_that_differ_in_their_protocol_are_two() {
    let both = |tcp: u16, udp: u16| {
        let mut object = service(json!({"name": "dns", "port": 53, "targetPort": tcp}));
        let udp = json!({"name": "dns-udp", "port": 53, "protocol": "UDP", "targetPort": udp});
        object["spec"]["ports"].as_array_mut().unwrap().insert(0, udp);
        object
    };
    let base = both(53, 53);
    let mut live = applied(None, &base);
    live["spec"]["ports"][1]["protocol"] = json!("TCP");
    let desired = both(5353, 53);
    let step =
        step(&Case { desired: &desired, base: Some(&base), live: Some(&live), ours: true, rules: "[]" });
    assert_eq!(
        changes(&step),
        [(".spec.ports[port=53,protocol=\"TCP\"].targetPort".to_owned(), Change::Set)]
    );
}

#[test]
fn adoption_sees_the_ports_too() {
    let vendors = service(json!({"name": "http", "port": 80, "targetPort": 8080}));
    let live = stored(vendors.clone());
    let live = written(None, &live, "kubectl-client-side-apply");
    let desired = service(json!({"name": "http", "port": 80, "targetPort": 8081}));
    let run = |base| step(&Case { desired: &desired, base, live: Some(&live), ours: false, rules: "[]" });
    let proven = run(Some(&vendors));
    assert_eq!(proven.outcome, Outcome::Adopted);
    assert!(changes(&proven).contains(&(TARGET.to_owned(), Change::Set)), "{proven:?}");
    assert_eq!(carried_out(&proven, &live)["spec"]["ports"][0]["targetPort"], json!(8081));
    let unknown = run(None);
    assert_eq!(unknown.outcome, Outcome::Conflict, "{unknown:?}");
}
