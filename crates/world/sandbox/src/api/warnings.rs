//! What a person who creates an object should know about the sandbox.

use scantling_api::KindFacts;

/// Warnings of kinds that are on their way out, as the real server words them.
pub(super) fn of_deprecated(facts: &KindFacts) -> Option<&'static str> {
    match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "Endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        ("", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        _ => None,
    }
}

/// Kinds that are stored like any other, though what they bring about on a real server is not modelled.
pub(super) fn of_created(facts: &KindFacts) -> Option<String> {
    let effect = match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "ResourceQuota" | "LimitRange") => "does not enforce it",
        ("admissionregistration.k8s.io", _) => "never calls it",
        ("apiregistration.k8s.io", "APIService") => "serves nothing through it",
        ("autoscaling", "HorizontalPodAutoscaler") => "scales nothing by it",
        ("batch", "CronJob") => "starts no jobs by it",
        ("networking.k8s.io", "NetworkPolicy") => "has no network that it could restrict",
        _ => return None,
    };
    Some(format!("the sandbox stores this {} but {effect}", facts.gvk.kind))
}
