//! Whether a pod fits on a node: the scheduler's filters, with the words of its messages.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::value::{condition, expression_matches, flag, list, map, name, nonempty, text};

/// Why the pod may not go to the node, resources aside.
pub(crate) fn placement(pod: &Value, node: &Value) -> Option<String> {
    if let Some(wanted) = nonempty(pod, "/spec/nodeName")
        && wanted != name(node)
    {
        return Some("node(s) didn't match the requested node name".to_owned());
    }
    if flag(node, "/spec/unschedulable")
        && !tolerates(pod, "node.kubernetes.io/unschedulable", "", "NoSchedule")
    {
        return Some("node(s) were unschedulable".to_owned());
    }
    let ready = condition(node, "Ready");
    for (status, taint) in
        [("False", "node.kubernetes.io/not-ready"), ("Unknown", "node.kubernetes.io/unreachable")]
    {
        if ready == Some(status)
            && !tolerates(pod, taint, "", "NoSchedule")
            && !tolerates(pod, taint, "", "NoExecute")
        {
            return Some(format!("node(s) had untolerated taint {{{taint}: }}"));
        }
    }
    for taint in list(node, "/spec/taints") {
        let (key, value) =
            (text(taint, "/key").unwrap_or_default(), text(taint, "/value").unwrap_or_default());
        let effect = text(taint, "/effect").unwrap_or_default();
        if matches!(effect, "NoSchedule" | "NoExecute") && !tolerates(pod, key, value, effect) {
            return Some(format!("node(s) had untolerated taint {{{key}: {value}}}"));
        }
    }
    (!selected(pod, node)).then(|| "node(s) didn't match Pod's node affinity/selector".to_owned())
}

/// Whether the pod tolerates a taint.
pub(crate) fn tolerates(pod: &Value, key: &str, value: &str, effect: &str) -> bool {
    list(pod, "/spec/tolerations").iter().any(|toleration| {
        let of_effect = nonempty(toleration, "/effect").is_none_or(|own| own == effect);
        let exists = text(toleration, "/operator") == Some("Exists");
        let of_key = match nonempty(toleration, "/key") {
            Some(own) => own == key,
            None => exists,
        };
        of_effect && of_key && (exists || text(toleration, "/value").unwrap_or_default() == value)
    })
}

fn selected(pod: &Value, node: &Value) -> bool {
    let label = |name: &str| {
        node.pointer("/metadata/labels").and_then(|labels| labels.get(name)).and_then(Value::as_str)
    };
    let by_selector = map(pod, "/spec/nodeSelector")
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| value.as_str() == label(key)));
    if !by_selector {
        return false;
    }
    let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let Some(required) = pod.pointer(required).filter(|value| value.is_object()) else { return true };
    let field = |field: &str| (field == "metadata.name").then(|| name(node));
    list(required, "/nodeSelectorTerms").iter().any(|term| {
        let expressions = list(term, "/matchExpressions");
        let fields = list(term, "/matchFields");
        // A term without any requirement selects nothing.
        (!expressions.is_empty() || !fields.is_empty())
            && expressions.iter().all(|expression| expression_matches(expression, &label))
            && fields.iter().all(|expression| expression_matches(expression, &field))
    })
}

/// Amounts of resources, in thousandths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resources(BTreeMap<String, i128>);

impl Resources {
    /// What a pod asks for: the sum of its containers, or the most of one init container, and itself.
    pub(crate) fn of_pod(pod: &Value) -> Self {
        let mut sum = Self::default();
        for container in list(pod, "/spec/containers") {
            sum.add(&Self::of_container(container));
        }
        for container in list(pod, "/spec/initContainers") {
            let own = Self::of_container(container);
            if text(container, "/restartPolicy") == Some("Always") {
                sum.add(&own);
                continue;
            }
            for (resource, amount) in own.0 {
                let entry = sum.0.entry(resource).or_default();
                *entry = (*entry).max(amount);
            }
        }
        sum.0.insert("pods".to_owned(), 1000);
        sum
    }

    fn of_container(container: &Value) -> Self {
        let mut amounts = BTreeMap::new();
        // A limit without a request is a request.
        for field in ["/resources/limits", "/resources/requests"] {
            for (resource, amount) in map(container, field).into_iter().flatten() {
                if let Some(amount) = quantity(amount) {
                    amounts.insert(resource.clone(), amount);
                }
            }
        }
        Self(amounts)
    }

    /// Adds other amounts.
    pub(crate) fn add(&mut self, other: &Self) {
        for (resource, amount) in &other.0 {
            let entry = self.0.entry(resource.clone()).or_default();
            *entry = entry.saturating_add(*amount);
        }
    }

    /// The first resource that the node has too little of, beside what is taken already.
    pub(crate) fn shortage(&self, taken: &Self, node: &Value) -> Option<String> {
        for (resource, wanted) in &self.0 {
            if *wanted == 0 {
                continue;
            }
            let all = node
                .pointer("/status/allocatable")
                .and_then(|allocatable| allocatable.get(resource))
                .and_then(quantity)
                .unwrap_or(0);
            let used = taken.0.get(resource).copied().unwrap_or(0);
            if used.saturating_add(*wanted) > all {
                return Some(if resource == "pods" {
                    "Too many pods".to_owned()
                } else {
                    format!("Insufficient {resource}")
                });
            }
        }
        None
    }
}

/// A quantity in thousandths: `500m`, `2`, `1.5`, `64Gi`, `1e3`.
pub(crate) fn quantity(value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let text = text.trim();
    let split =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(split)?;
    let factor: i128 = match suffix {
        "" => 1000,
        "m" => 1,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "P" => 1_000_000_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        "Pi" => 1000 << 50,
        exponent => {
            let power =
                exponent.strip_prefix(['e', 'E'])?.parse::<u32>().ok().filter(|power| *power <= 18)?;
            1000 * 10_i128.checked_pow(power)?
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let negative = whole.starts_with('-');
    let whole: i128 =
        if whole.is_empty() || whole == "-" || whole == "+" { 0 } else { whole.parse().ok()? };
    let mut result = whole.checked_mul(factor)?;
    let mut scale: i128 = 1;
    for digit in fraction.chars().take(9) {
        scale *= 10;
        let part = i128::from(digit.to_digit(10)?) * factor / scale;
        result = if negative { result - part } else { result + part };
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities() {
        for (text, thousandths) in [
            ("1", Some(1000)),
            ("500m", Some(500)),
            ("1.5", Some(1500)),
            ("0.25", Some(250)),
            ("1Ki", Some(1_024_000)),
            ("2k", Some(2_000_000)),
            ("1e3", Some(1_000_000)),
            ("1E2", Some(100_000)),
            ("-1.5", Some(-1500)),
            ("x", None),
            ("1Xi", None),
            ("1e99", None),
        ] {
            assert_eq!(quantity(&json!(text)), thousandths, "{text}");
        }
        assert_eq!(quantity(&json!(2)), Some(2000));
        assert_eq!(quantity(&json!(null)), None);
    }

    #[test]
    fn filters() {
        let node = json!({
            "metadata": {"name": "a", "labels": {"zone": "1"}},
            "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        });
        let tolerations =
            json!([{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]);
        let affinity = |values: Value| {
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
                [{"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]}]}}})
        };
        for (spec, reason) in [
            (json!({}), Some("node(s) had untolerated taint {gpu: yes}")),
            (json!({"tolerations": tolerations}), None),
            (json!({"tolerations": [{"operator": "Exists"}]}), None),
            (
                json!({"tolerations": tolerations, "nodeSelector": {"zone": "2"}}),
                Some("node(s) didn't match Pod's node affinity/selector"),
            ),
            (json!({"tolerations": tolerations, "nodeSelector": {"zone": "1"}}), None),
            (json!({"tolerations": tolerations, "affinity": affinity(json!(["1", "2"]))}), None),
            (
                json!({"tolerations": tolerations, "affinity": affinity(json!(["3"]))}),
                Some("node(s) didn't match Pod's node affinity/selector"),
            ),
            (
                json!({"tolerations": tolerations, "nodeName": "b"}),
                Some("node(s) didn't match the requested node name"),
            ),
        ] {
            assert_eq!(placement(&json!({"spec": spec}), &node).as_deref(), reason, "{spec}");
        }
        let cordoned = json!({"metadata": {"name": "a"}, "spec": {"unschedulable": true}});
        assert_eq!(placement(&json!({}), &cordoned).as_deref(), Some("node(s) were unschedulable"));
    }

    #[test]
    fn resources_count_limits_as_requests_and_the_largest_init_container() {
        let node = json!({"status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"}}});
        let pod = |cpu: &str, init: &str| {
            json!({"spec": {
                "containers": [{"resources": {"limits": {"cpu": cpu}}}],
                "initContainers": [{"resources": {"requests": {"cpu": init}}}],
            }})
        };
        let empty = Resources::default();
        for (cpu, init, reason) in [
            ("1", "2", None),
            ("2", "1", None),
            ("2100m", "1", Some("Insufficient cpu")),
            ("1", "3", Some("Insufficient cpu")),
        ] {
            let wanted = Resources::of_pod(&pod(cpu, init));
            assert_eq!(wanted.shortage(&empty, &node).as_deref(), reason, "{cpu} {init}");
        }
        let mut taken = Resources::of_pod(&pod("1500m", "1m"));
        assert!(Resources::of_pod(&pod("1", "1m")).shortage(&taken, &node).is_some());
        for _ in 0..9 {
            taken.add(&Resources::of_pod(&json!({})));
        }
        assert_eq!(Resources::of_pod(&json!({})).shortage(&taken, &node).as_deref(), Some("Too many pods"));
    }
}
