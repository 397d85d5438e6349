//! Rows of services, ingresses, endpoints, policies and bindings.

use std::collections::BTreeSet;

use scantling_api::object;
use serde_json::{Value, json};

use super::{AGE, Cells, Column, NAME, items, labels, number, plain_text, selector, since, text_or};

/// Hosts and endpoints that are named before the rest is only counted.
const MAX_NAMED: usize = 3;

pub(super) fn columns(group: &str, kind: &str) -> Option<(&'static [Column], Cells)> {
    let found: (&'static [Column], Cells) = match (group, kind) {
        ("", "Service") => (
            &[
                NAME,
                Column("Type", "string", 0),
                Column("Cluster-IP", "string", 0),
                Column("External-IP", "string", 0),
                Column("Port(s)", "string", 0),
                AGE,
                Column("Selector", "string", 1),
            ],
            service,
        ),
        ("networking.k8s.io", "Ingress") => (
            &[
                NAME,
                Column("Class", "string", 0),
                Column("Hosts", "string", 0),
                Column("Address", "string", 0),
                Column("Ports", "string", 0),
                AGE,
            ],
            ingress,
        ),
        ("networking.k8s.io", "NetworkPolicy") => {
            (&[NAME, Column("Pod-Selector", "string", 0), AGE], |policy, now| {
                vec![
                    json!(object::name(policy)),
                    selector(policy.pointer("/spec/podSelector")),
                    since(policy, now),
                ]
            })
        }
        ("", "Endpoints") => (&[NAME, Column("Endpoints", "string", 0), AGE], endpoints),
        ("discovery.k8s.io", "EndpointSlice") => (
            &[
                NAME,
                Column("AddressType", "string", 0),
                Column("Ports", "string", 0),
                Column("Endpoints", "string", 0),
                AGE,
            ],
            endpoint_slice,
        ),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => (
            &[
                NAME,
                Column("Role", "string", 0),
                AGE,
                Column("Users", "string", 1),
                Column("Groups", "string", 1),
                Column("ServiceAccounts", "string", 1),
            ],
            role_binding,
        ),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => (&[NAME, Column("Webhooks", "integer", 0), AGE], |object, now| {
            vec![json!(object::name(object)), json!(items(object, "/webhooks").len()), since(object, now)]
        }),
        _ => return None,
    };
    Some(found)
}

fn service(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let kind = object::text(object, "/spec/type");
    let external: Vec<String> = items(object, "/spec/externalIPs").iter().map(plain_text).collect();
    let balanced = addresses(object);
    let external_ip = match kind {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" if external.is_empty() && balanced.is_empty() => "<pending>".to_owned(),
        "LoadBalancer" => balanced.into_iter().chain(external).collect::<Vec<_>>().join(","),
        "ExternalName" => object::text(object, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    };
    let ports: Vec<String> = items(object, "/spec/ports")
        .iter()
        .map(|port| {
            let (number, protocol) = (number(port, "/port"), object::text(port, "/protocol"));
            match port.get("nodePort").and_then(Value::as_i64) {
                Some(on_node) if on_node > 0 => format!("{number}:{on_node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    vec![
        json!(object::name(object)),
        json!(kind),
        json!(text_or(object, "/spec/clusterIPs/0", "<none>")),
        json!(external_ip),
        json!(if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }),
        since(object, now),
        labels(object.pointer("/spec/selector")),
    ]
}

/// What a load balancer answers on: addresses, else names, in order.
fn addresses(object: &Value) -> Vec<String> {
    let found: BTreeSet<&str> = items(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|entry| text_or(entry, "/ip", object::text(entry, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    found.into_iter().map(str::to_owned).collect()
}

fn ingress(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let rules = items(object, "/spec/rules");
    let named: Vec<&str> =
        rules.iter().map(|rule| object::text(rule, "/host")).filter(|host| !host.is_empty()).collect();
    let hosts = match named.get(..MAX_NAMED) {
        Some(first) if rules.len() > MAX_NAMED => {
            format!("{} + {} more...", first.join(","), rules.len() - MAX_NAMED)
        }
        _ if named.is_empty() => "*".to_owned(),
        _ => named.join(","),
    };
    vec![
        json!(object::name(object)),
        json!(text_or(object, "/spec/ingressClassName", "<none>")),
        json!(hosts),
        json!(addresses(object).join(",")),
        json!(if items(object, "/spec/tls").is_empty() { "80" } else { "80, 443" }),
        since(object, now),
    ]
}

fn endpoints(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let mut list = Vec::new();
    for subset in items(object, "/subsets") {
        let ports = items(subset, "/ports");
        for address in items(subset, "/addresses") {
            let ip = object::text(address, "/ip");
            if ports.is_empty() {
                list.push(ip.to_owned());
            }
            list.extend(ports.iter().map(|port| format!("{ip}:{}", number(port, "/port"))));
        }
    }
    vec![json!(object::name(object)), json!(some_of(&list, "<none>")), since(object, now)]
}

fn endpoint_slice(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let port = |port: &Value| match port.get("port").and_then(Value::as_i64) {
        Some(number) => number.to_string(),
        None => text_or(port, "/name", "*").to_owned(),
    };
    let ports: Vec<String> = items(object, "/ports").iter().map(port).collect();
    let endpoints: Vec<String> = items(object, "/endpoints")
        .iter()
        .flat_map(|entry| items(entry, "/addresses"))
        .map(plain_text)
        .collect();
    vec![
        json!(object::name(object)),
        json!(object::text(object, "/addressType")),
        json!(some_of(&ports, "<unset>")),
        json!(some_of(&endpoints, "<unset>")),
        since(object, now),
    ]
}

fn some_of(list: &[String], none: &str) -> String {
    match list.get(..MAX_NAMED) {
        Some(first) if list.len() > MAX_NAMED => {
            format!("{} + {} more...", first.join(","), list.len() - MAX_NAMED)
        }
        _ if list.is_empty() => none.to_owned(),
        _ => list.join(","),
    }
}

fn role_binding(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let subjects = |kind: &str| {
        let found =
            items(object, "/subjects").iter().filter(|subject| object::text(subject, "/kind") == kind);
        let names = found.map(|subject| match (kind, object::text(subject, "/namespace")) {
            ("ServiceAccount", namespace) => format!("{namespace}/{}", object::text(subject, "/name")),
            _ => object::text(subject, "/name").to_owned(),
        });
        json!(names.collect::<Vec<_>>().join(", "))
    };
    vec![
        json!(object::name(object)),
        json!(format!("{}/{}", object::text(object, "/roleRef/kind"), object::text(object, "/roleRef/name"))),
        since(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
