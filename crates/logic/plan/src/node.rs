//! What a plan needs to know of a node, and on which nodes a pod can land.

use std::collections::{BTreeMap, BTreeSet};

use scantling_image::{Digest, Platform};
use serde::Serialize;
use serde_json::Value;

/// How many images a kubelet reports by default (`nodeStatusMaxImages`).
const REPORTED_IMAGES: usize = 50;

/// A node, read from its `Node` object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeFacts {
    /// The node's name.
    pub name: String,
    /// The object's uid: a node that is built again under its old name starts with an empty image store.
    pub uid: String,
    /// Operating system and architecture; none if the node does not report them.
    pub platform: Option<Platform>,
    /// Whether the kubelet reports `Ready`.
    pub ready: bool,
    /// Whether the kubelet reports `DiskPressure`.
    pub disk_pressure: bool,
    /// Whether the node is cordoned.
    pub unschedulable: bool,
    /// The node's labels.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
    /// Taints that keep pods away.
    #[serde(skip)]
    pub taints: Vec<Taint>,
    /// Resources beyond CPU, memory and storage that the node offers, such as `nvidia.com/gpu`.
    #[serde(skip)]
    pub offers: BTreeSet<String>,
    /// Bytes of storage that pods and images may use, if reported.
    pub storage_bytes: Option<u64>,
    /// Bytes of the images that the node reports. It reports at most 50 images by default, so this is a lower bound.
    pub image_bytes: u64,
    /// How many images the node reports.
    #[serde(skip)]
    pub images: usize,
    /// Digests that the node reports to hold. A digest that is missing here proves nothing (see above).
    #[serde(skip)]
    pub digests: BTreeSet<Digest>,
}

/// A taint with an effect that keeps new pods away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    key: String,
    value: String,
    effect: String,
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn strings(value: Option<&Value>) -> BTreeMap<String, String> {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect()
}

fn condition(node: &Value, kind: &str) -> bool {
    list(node, "/status/conditions").iter().any(|c| text(c, "/type") == kind && text(c, "/status") == "True")
}

impl NodeFacts {
    /// Reads a `Node` object. What the object does not say is left open, never guessed.
    pub fn read(node: &Value) -> Self {
        let platform = match (
            text(node, "/status/nodeInfo/operatingSystem"),
            text(node, "/status/nodeInfo/architecture"),
        ) {
            ("", _) | (_, "") => None,
            (os, architecture) => Platform::parse(&format!("{os}/{architecture}")).ok(),
        };
        let storage = node
            .pointer("/status/allocatable/ephemeral-storage")
            .or_else(|| node.pointer("/status/capacity/ephemeral-storage"));
        let images = list(node, "/status/images");
        let digests = images
            .iter()
            .flat_map(|image| list(image, "/names"))
            .filter_map(|name| name.as_str()?.rsplit_once('@').and_then(|(_, d)| Digest::parse(d).ok()))
            .collect();
        let taints = list(node, "/spec/taints")
            .iter()
            .map(|t| Taint {
                key: text(t, "/key").to_owned(),
                value: text(t, "/value").to_owned(),
                effect: text(t, "/effect").to_owned(),
            })
            .filter(|t| t.effect == "NoSchedule" || t.effect == "NoExecute")
            .collect();
        Self {
            name: text(node, "/metadata/name").to_owned(),
            uid: text(node, "/metadata/uid").to_owned(),
            platform,
            ready: condition(node, "Ready"),
            disk_pressure: condition(node, "DiskPressure"),
            unschedulable: node.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or(false),
            labels: strings(node.pointer("/metadata/labels")),
            taints,
            offers: offers(node),
            storage_bytes: storage.and_then(bytes),
            images: images.len(),
            image_bytes: images
                .iter()
                .filter_map(|image| image.get("sizeBytes").and_then(Value::as_u64))
                .fold(0, u64::saturating_add),
            digests,
        }
    }

    /// Whether what the node reports of its images is all of them.
    pub fn reports_all(&self) -> bool {
        self.images > 0 && self.images < REPORTED_IMAGES
    }

    /// Bytes that are free for images as far as the node reports; none if it does not report its storage.
    pub fn free_bytes(&self) -> Option<u64> {
        self.storage_bytes.map(|all| all.saturating_sub(self.image_bytes))
    }

    /// Whether a pod with this spec can be placed here: cordon, taints, `nodeName`, `nodeSelector` and required node
    /// affinity, and resources such as accelerators. Free CPU and memory are left out on purpose: they change by the minute, and an image that is there in
    /// vain costs less than one that is missing.
    pub fn admits(&self, pod_spec: &Value) -> bool {
        let name = text(pod_spec, "/nodeName");
        if !name.is_empty() && name != self.name {
            return false;
        }
        let tolerations = list(pod_spec, "/tolerations");
        if self.unschedulable && !tolerated(tolerations, "node.kubernetes.io/unschedulable", "", "NoSchedule")
        {
            return false;
        }
        if !self.taints.iter().all(|t| tolerated(tolerations, &t.key, &t.value, &t.effect)) {
            return false;
        }
        if !extended(pod_spec).all(|resource| self.offers.contains(resource)) {
            return false;
        }
        let selector = strings(pod_spec.get("nodeSelector"));
        if !selector.iter().all(|(k, v)| self.labels.get(k) == Some(v)) {
            return false;
        }
        let required =
            "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        match pod_spec.pointer(required) {
            None => true,
            // The terms are alternatives; an empty term matches nothing.
            Some(terms) => terms.as_array().is_some_and(|terms| terms.iter().any(|term| self.matches(term))),
        }
    }

    fn matches(&self, term: &Value) -> bool {
        let expressions = list(term, "/matchExpressions");
        let fields = list(term, "/matchFields");
        if expressions.is_empty() && fields.is_empty() {
            return false;
        }
        expressions.iter().all(|e| holds(e, self.labels.get(text(e, "/key")).map(String::as_str)))
            && fields.iter().all(|e| text(e, "/key") == "metadata.name" && holds(e, Some(&self.name)))
    }
}

/// The resources with a domain in their names that a node can give to pods.
fn offers(node: &Value) -> BTreeSet<String> {
    let resources = node.pointer("/status/allocatable").and_then(Value::as_object).into_iter().flatten();
    resources
        .filter(|(name, amount)| name.contains('/') && bytes(amount).is_some_and(|amount| amount > 0))
        .map(|(name, _)| name.clone())
        .collect()
}

/// The resources with a domain in their names that a pod's containers ask for.
fn extended(pod_spec: &Value) -> impl Iterator<Item = &str> {
    let limits =
        list(pod_spec, "/containers").iter().filter_map(|c| c.pointer("/resources/limits")?.as_object());
    limits.flatten().map(|(name, _)| name.as_str()).filter(|name| name.contains('/'))
}

/// A toleration with an empty key and `Exists` tolerates everything; an empty effect matches all effects.
fn tolerated(tolerations: &[Value], key: &str, value: &str, effect: &str) -> bool {
    tolerations.iter().any(|t| {
        let wanted = text(t, "/effect");
        if !wanted.is_empty() && wanted != effect {
            return false;
        }
        let exists = text(t, "/operator") == "Exists";
        match text(t, "/key") {
            "" => exists,
            k => k == key && (exists || text(t, "/value") == value),
        }
    })
}

/// A node selector requirement against the value of its label, if the node has it.
fn holds(requirement: &Value, label: Option<&str>) -> bool {
    let values = || list(requirement, "/values").iter().filter_map(Value::as_str);
    let number = |text: &str| text.parse::<i64>().ok();
    match text(requirement, "/operator") {
        "In" => label.is_some_and(|l| values().any(|v| v == l)),
        "NotIn" => label.is_none_or(|l| values().all(|v| v != l)),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        "Gt" => {
            matches!((label.and_then(number), values().next().and_then(number)), (Some(l), Some(v)) if l > v)
        }
        "Lt" => {
            matches!((label.and_then(number), values().next().and_then(number)), (Some(l), Some(v)) if l < v)
        }
        _ => false,
    }
}

/// A Kubernetes quantity in whole bytes, rounded down; none if it is not one or does not fit.
fn bytes(quantity: &Value) -> Option<u64> {
    let written = match quantity {
        Value::Number(n) => return n.as_u64(),
        Value::String(s) => s.trim(),
        _ => return None,
    };
    let digits = written.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(written.len());
    let (number, suffix) = written.split_at(digits);
    let factor: u64 = match suffix {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "P" => 1_000_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        "m" => return number.parse::<u64>().ok().map(|milli| milli / 1000),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut total = whole.checked_mul(factor)?;
    if !fraction.is_empty() {
        // Nine digits decide more than a byte of any size that a disk has.
        let kept: String = fraction.chars().take(9).collect();
        let part: u128 = kept.parse().ok()?;
        let scale = 10u128.checked_pow(u32::try_from(kept.len()).ok()?)?;
        total = total.checked_add(u64::try_from(part.checked_mul(u128::from(factor))? / scale).ok()?)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn node() -> NodeFacts {
        NodeFacts::read(&json!({
            "metadata": {"name": "n1", "uid": "u", "labels": {"zone": "a", "gpus": "2"}},
            "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                                {"key": "soft", "effect": "PreferNoSchedule"}]},
            "status": {
                "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64"},
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}],
                "allocatable": {"ephemeral-storage": "10Gi", "x.com/gpu": "2", "x.com/none": "0"},
                "images": [{"names": [format!("q.io/a@sha256:{}", "a".repeat(64)), "q.io/a:1"], "sizeBytes": 1_000}],
            },
        }))
    }

    #[test]
    fn reads_a_node() {
        let node = node();
        assert!(node.ready && !node.disk_pressure && !node.unschedulable);
        assert_eq!(node.free_bytes(), Some((10 << 30) - 1_000));
        assert_eq!(node.digests.len(), 1);
        assert_eq!(node.platform.unwrap().to_string(), "linux/amd64");
    }

    #[test]
    fn a_pod_lands_where_the_scheduler_would_let_it() {
        let tolerant = |mut spec: Value| {
            spec["tolerations"] = json!([{"key": "gpu", "operator": "Exists"}]);
            spec
        };
        let affinity = |expression: Value| {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}})
        };
        let cases = [
            (json!({}), false),
            (json!({"tolerations": [{"operator": "Exists"}]}), true),
            (json!({"tolerations": [{"key": "gpu", "value": "no"}]}), false),
            (json!({"tolerations": [{"key": "gpu", "value": "yes", "effect": "NoExecute"}]}), false),
            (tolerant(json!({})), true),
            (tolerant(json!({"nodeSelector": {"zone": "a"}})), true),
            (tolerant(json!({"nodeSelector": {"zone": "b"}})), false),
            (tolerant(json!({"nodeName": "n2"})), false),
            (
                tolerant(json!({"containers": [{"resources": {"limits": {"x.com/gpu": "1", "cpu": "1"}}}]})),
                true,
            ),
            (tolerant(json!({"containers": [{"resources": {"limits": {"x.com/none": "1"}}}]})), false),
            (tolerant(affinity(json!({"key": "zone", "operator": "In", "values": ["b", "a"]}))), true),
            (tolerant(affinity(json!({"key": "zone", "operator": "NotIn", "values": ["a"]}))), false),
            (tolerant(affinity(json!({"key": "gpus", "operator": "Gt", "values": ["1"]}))), true),
            (tolerant(affinity(json!({"key": "gpus", "operator": "Lt", "values": ["2"]}))), false),
            (tolerant(affinity(json!({"key": "other", "operator": "DoesNotExist"}))), true),
        ];
        for (spec, expected) in cases {
            assert_eq!(node().admits(&spec), expected, "{spec}");
        }
    }

    #[test]
    fn quantities_in_bytes() {
        for (written, expected) in [
            (json!("1"), Some(1)),
            (json!(7), Some(7)),
            (json!("1.5Gi"), Some(3 << 29)),
            (json!("100k"), Some(100_000)),
            (json!("1500m"), Some(1)),
            (json!("93915772Ki"), Some(93_915_772 << 10)),
            (json!("x"), None),
            (json!("1X"), None),
            (json!("99999999999999999999"), None),
        ] {
            assert_eq!(bytes(&written), expected, "{written}");
        }
    }
}
