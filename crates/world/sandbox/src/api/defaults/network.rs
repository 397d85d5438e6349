//! Defaults of services, policies and endpoints, and the addresses that a server gives out.

use std::collections::BTreeSet;

use scantling_api::object;
use serde_json::{Value, json};

use super::{at, each, fill, fill_in, fill_text};
use crate::api::ApiServer;

/// The range of service addresses, `10.96.0.0/12`; the first is that of the service `kubernetes`.
const FIRST_ADDRESS: u32 = 0x0a60_0001;
/// Addresses in that range.
const ADDRESSES: u32 = 1 << 20;
/// The range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30_000..=32_767;

pub(super) fn service(object: &mut Value) {
    let spec = at(object, &["spec"]);
    fill_text(spec, "sessionAffinity", "None");
    fill_text(spec, "type", "ClusterIP");
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        fill_in(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        fill_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill_in(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    if spec.get("sessionAffinity") == Some(&json!("ClientIP")) {
        fill(object, &["spec", "sessionAffinityConfig", "clientIP"], "timeoutSeconds", json!(10_800));
    }
    for port in each(object, "/spec/ports") {
        fill_text(port, "protocol", "TCP");
        let missing = port
            .get("targetPort")
            .is_none_or(|target| target.is_null() || *target == json!(0) || *target == json!(""));
        if missing && let Some(number) = port.get("port").cloned() {
            port.insert("targetPort".into(), number);
        }
    }
}

pub(super) fn policy(object: &mut Value) {
    for list in ["/spec/ingress", "/spec/egress"] {
        for rule in each(object, list) {
            let ports = rule.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                fill_in(port, "protocol", json!("TCP"));
            }
        }
    }
    let egress =
        object.pointer("/spec/egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    fill(object, &["spec"], "policyTypes", types);
}

pub(super) fn endpoints(object: &mut Value) {
    for subset in each(object, "/subsets") {
        let ports = subset.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            fill_text(port, "protocol", "TCP");
        }
    }
}

pub(super) fn endpoint_slice(object: &mut Value) {
    for port in each(object, "/ports") {
        fill_in(port, "name", json!(""));
        fill_in(port, "protocol", json!("TCP"));
    }
}

/// Gives a new service its addresses and node ports.
pub(super) fn allocate(object: &mut Value, server: &ApiServer) {
    let kind = object::text(object, "/spec/type").to_owned();
    if kind == "ExternalName" {
        return;
    }
    let services = || server.store.list("", "Service", None).map(|(_, service)| service);
    let spec = at(object, &["spec"]);
    let wanted = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let address = if wanted.is_empty() {
        let used: BTreeSet<&str> =
            services().map(|service| object::text(service, "/spec/clusterIP")).collect();
        free_address(&used).unwrap_or_default()
    } else {
        wanted
    };
    spec.insert("clusterIP".into(), json!(address));
    fill_in(spec, "clusterIPs", json!([address]));
    let headless_without_selector = address == "None" && !spec.contains_key("selector");
    if headless_without_selector {
        fill_in(spec, "ipFamilies", json!(["IPv4"]));
        fill_in(spec, "ipFamilyPolicy", json!("RequireDualStack"));
    } else {
        fill_in(spec, "ipFamilies", json!(["IPv4"]));
        fill_in(spec, "ipFamilyPolicy", json!("SingleStack"));
    }
    if kind == "ClusterIP" || spec.get("allocateLoadBalancerNodePorts") == Some(&json!(false)) {
        return;
    }
    let mut used: BTreeSet<u64> = services()
        .filter_map(|service| service.pointer("/spec/ports").and_then(Value::as_array))
        .flatten()
        .filter_map(|port| port.get("nodePort").and_then(Value::as_u64))
        .collect();
    for port in each(object, "/spec/ports") {
        let given = port.get("nodePort").and_then(Value::as_u64).filter(|number| *number > 0);
        if let Some(number) = given.or_else(|| NODE_PORTS.into_iter().find(|number| !used.contains(number))) {
            used.insert(number);
            port.insert("nodePort".into(), json!(number));
        }
    }
}

fn free_address(used: &BTreeSet<&str>) -> Option<String> {
    let addresses = (0..ADDRESSES).map(|offset| {
        let [a, b, c, d] = (FIRST_ADDRESS + offset).to_be_bytes();
        format!("{a}.{b}.{c}.{d}")
    });
    addresses.into_iter().find(|address| !used.contains(address.as_str()))
}

/// What the server gave out stays when an update leaves it out and the type still has it.
pub(super) fn keep(live: &Value, new: &mut Value) {
    if object::text(new, "/spec/type") == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if let Some(value) = live.pointer("/spec").and_then(|spec| spec.get(field)) {
            fill(new, &["spec"], field, value.clone());
        }
    }
    if !matches!(object::text(new, "/spec/type"), "NodePort" | "LoadBalancer") {
        return;
    }
    let before = live.pointer("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    for port in each(new, "/spec/ports") {
        let same = |field: &str, old: &Value| old.get(field) == port.get(field);
        let old = before.iter().find(|old| same("port", old) && same("protocol", old));
        if let Some(number) = old.and_then(|old| old.get("nodePort")) {
            fill_in(port, "nodePort", number.clone());
        }
    }
}
