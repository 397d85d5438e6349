//! Devices that pods ask for: GPUs and what else plugins offer in whole pieces.

use std::collections::BTreeMap;

use scantling_api::object;
use serde_json::Value;

/// Is this the name of a device? Extended resources have a domain that is not Kubernetes' own.
pub fn is_device(resource: &str) -> bool {
    resource.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"))
}

/// Devices that a pod with this spec holds, by the names of their resources.
pub fn devices(pod_spec: &Value) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for container in pod_spec.get("containers").and_then(Value::as_array).into_iter().flatten() {
        for (name, amount) in object::mapping(container, "/resources/limits").into_iter().flatten() {
            if let Some(amount) = whole(amount).filter(|amount| *amount > 0 && is_device(name)) {
                *sum.entry(name.clone()).or_default() += amount;
            }
        }
    }
    sum
}

/// A number of pieces, as an object has it.
pub fn whole(amount: &Value) -> Option<u64> {
    amount.as_u64().or_else(|| amount.as_str()?.parse().ok())
}
