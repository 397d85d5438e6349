//! Workloads that this project makes or waits for.

use scantling_api::object;
use serde_json::Value;

use crate::rollout::{Rollout, rollout};
use crate::view::{View as _, field, items, number, view};

view!(
    /// A stateful set.
    StatefulSet, "apps", "StatefulSet"
);

view!(
    /// A deployment.
    Deployment, "apps", "Deployment"
);

view!(
    /// A service.
    Service, "", "Service"
);

view!(
    /// A claim to a volume.
    PersistentVolumeClaim, "", "PersistentVolumeClaim"
);

view!(
    /// An account of pods.
    ServiceAccount, "", "ServiceAccount"
);

view!(
    /// Who gets answers of some pods.
    NetworkPolicy, "networking.k8s.io", "NetworkPolicy"
);

impl PersistentVolumeClaim<'_> {
    /// Is its volume gone?
    pub fn is_lost(self) -> bool {
        object::text(self.object(), "/status/phase") == "Lost"
    }

    /// Can only one node use it at a time?
    pub fn is_of_one_node(self) -> bool {
        let mut modes = items(self.object(), "/spec/accessModes").filter_map(Value::as_str).peekable();
        modes.peek().is_some() && modes.all(|mode| matches!(mode, "ReadWriteOnce" | "ReadWriteOncePod"))
    }
}

impl<'a> ServiceAccount<'a> {
    /// Names of its secrets.
    pub fn secrets(self) -> impl Iterator<Item = &'a str> {
        items(self.object(), "/secrets").map(|secret| field(secret, "name")).filter(|name| !name.is_empty())
    }
}

impl<'a> StatefulSet<'a> {
    /// How many pods it wants; 1 where nothing is written.
    pub fn replicas(self) -> i64 {
        number(self.object(), "/spec/replicas").unwrap_or(1)
    }

    /// The template of its pods.
    pub fn template(self) -> Option<&'a Value> {
        self.object().pointer("/spec/template")
    }

    /// The image written for a container of its template.
    pub fn image_of(self, container: &str) -> Option<&'a str> {
        let spec = self.object().pointer("/spec/template/spec")?;
        object::pod_containers(spec).into_iter().find(|found| found.name() == container)?.image()
    }

    /// How far its rollout is.
    pub fn rollout(self) -> Rollout {
        rollout(self.object())
    }
}

impl<'a> Deployment<'a> {
    /// How many pods it wants; 1 where nothing is written.
    pub fn replicas(self) -> i64 {
        number(self.object(), "/spec/replicas").unwrap_or(1)
    }

    /// The template of its pods.
    pub fn template(self) -> Option<&'a Value> {
        self.object().pointer("/spec/template")
    }

    /// How far its rollout is.
    pub fn rollout(self) -> Rollout {
        rollout(self.object())
    }
}
