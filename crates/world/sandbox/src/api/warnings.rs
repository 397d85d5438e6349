//! What a person who creates an object should know about the sandbox.

use scantling_api::KindFacts;

/// Kinds that are stored like any other, though what they bring about on a real server is not modelled.
pub(super) fn of_created(facts: &KindFacts) -> Option<String> {
    let effect = match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "ResourceQuota" | "LimitRange") => "does not enforce it",
        ("admissionregistration.k8s.io", _) => "never calls it",
        ("apiregistration.k8s.io", "APIService") => "serves nothing through it",
        ("networking.k8s.io", "NetworkPolicy") => "has no network that it could restrict",
        _ => return None,
    };
    Some(format!("the sandbox stores this {} but {effect}", facts.gvk.kind))
}
