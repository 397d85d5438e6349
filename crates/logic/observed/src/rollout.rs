//! How far a workload's rollout is, by the rules of `kubectl rollout status`.

use scantling_api::object;
use serde_json::Value;

use crate::view::{field, items, number};

/// The state of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rollout {
    /// Every pod is of the newest template and available.
    Complete,
    /// Not yet; why.
    Progressing(String),
    /// It will not end by itself; why.
    Failed(String),
    /// The kind has no rollout to wait for, or its strategy waits for people (`OnDelete`).
    NotApplicable(String),
}

impl Rollout {
    /// Is nothing left to wait for?
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Complete | Self::NotApplicable(_))
    }
}

/// The rollout of a `Deployment`, `StatefulSet` or `DaemonSet`.
pub fn rollout(object: &Value) -> Rollout {
    let kind = object::text(object, "/kind");
    if !matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet") {
        return Rollout::NotApplicable(format!("{kind} has no rollout"));
    }
    let generation = number(object, "/metadata/generation").unwrap_or_default();
    if number(object, "/status/observedGeneration").unwrap_or_default() < generation {
        return Rollout::Progressing("its controller has not seen the newest spec".to_owned());
    }
    match kind {
        "Deployment" => deployment(object),
        "StatefulSet" => stateful_set(object),
        _ => daemon_set(object),
    }
}

fn status(object: &Value, name: &str) -> i64 {
    number(object, &format!("/status/{name}")).unwrap_or_default()
}

fn deployment(object: &Value) -> Rollout {
    let stuck = items(object, "/status/conditions").find(|condition| {
        field(condition, "type") == "Progressing" && field(condition, "reason") == "ProgressDeadlineExceeded"
    });
    if let Some(condition) = stuck {
        return Rollout::Failed(format!("its progress deadline has passed: {}", field(condition, "message")));
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let (updated, all) = (status(object, "updatedReplicas"), status(object, "replicas"));
    let available = status(object, "availableReplicas");
    if updated < wanted {
        Rollout::Progressing(format!("{updated} of {wanted} pods are of the newest template"))
    } else if all > updated {
        Rollout::Progressing(format!("{} old pods have not ended", all - updated))
    } else if available < updated {
        Rollout::Progressing(format!("{available} of {updated} pods are available"))
    } else {
        Rollout::Complete
    }
}

fn stateful_set(object: &Value) -> Rollout {
    if object::text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return Rollout::NotApplicable(
            "its pods are replaced when somebody deletes them (OnDelete)".to_owned(),
        );
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let ready = status(object, "readyReplicas");
    if ready < wanted {
        return Rollout::Progressing(format!("{ready} of {wanted} pods are ready"));
    }
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or_default();
    let updated = status(object, "updatedReplicas");
    if partition > 0 {
        let moving = (wanted - partition).max(0);
        return if updated < moving {
            Rollout::Progressing(format!(
                "{updated} of {moving} pods above the partition are of the newest template"
            ))
        } else {
            Rollout::Complete
        };
    }
    let (current, update) =
        (object::text(object, "/status/currentRevision"), object::text(object, "/status/updateRevision"));
    if update == current {
        Rollout::Complete
    } else {
        Rollout::Progressing(format!("{updated} of {wanted} pods are of the newest template"))
    }
}

fn daemon_set(object: &Value) -> Rollout {
    if object::text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return Rollout::NotApplicable(
            "its pods are replaced when somebody deletes them (OnDelete)".to_owned(),
        );
    }
    let wanted = status(object, "desiredNumberScheduled");
    let (updated, available) = (status(object, "updatedNumberScheduled"), status(object, "numberAvailable"));
    if updated < wanted {
        Rollout::Progressing(format!("{updated} of {wanted} pods are of the newest template"))
    } else if available < wanted {
        Rollout::Progressing(format!("{available} of {wanted} pods are available"))
    } else {
        Rollout::Complete
    }
}
