//! In which order objects are applied.

use scantling_api::GroupVersionKind;
use serde::Serialize;

/// A step of applying; everything of one wave is applied, and healthy where it can be, before the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wave {
    /// Custom resource definitions: nothing of their kinds can be written before them.
    Definitions,
    /// Namespaces and projects.
    Namespaces,
    /// Service accounts, roles and bindings; quotas and limits, which need their namespace as well.
    Access,
    /// Everything that workloads read when they start: configuration, secrets, storage, services, image streams.
    Configuration,
    /// Everything that runs pods.
    Workloads,
    /// Webhooks and aggregated APIs: they refuse writes as long as what answers them does not run.
    Webhooks,
    /// Objects of custom kinds: what they are for is done by the workloads before.
    Resources,
}

impl Wave {
    /// All waves in order.
    pub const ALL: [Self; 7] = [
        Self::Definitions,
        Self::Namespaces,
        Self::Access,
        Self::Configuration,
        Self::Workloads,
        Self::Webhooks,
        Self::Resources,
    ];

    /// The wave of a kind. `built_in` says whether Kubernetes or OpenShift themselves serve it.
    pub fn of(gvk: &GroupVersionKind, built_in: bool) -> Self {
        match (gvk.group.as_str(), gvk.kind.as_str()) {
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Definitions,
            ("", "Namespace") | ("project.openshift.io", _) => Self::Namespaces,
            ("", "ServiceAccount" | "ResourceQuota" | "LimitRange")
            | ("rbac.authorization.k8s.io" | "authorization.openshift.io" | "security.openshift.io", _) => {
                Self::Access
            }
            ("", "Pod" | "ReplicationController")
            | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | ("apps.openshift.io", "DeploymentConfig")
            | ("batch", "Job" | "CronJob") => Self::Workloads,
            ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Self::Webhooks,
            _ if built_in => Self::Configuration,
            _ => Self::Resources,
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Definitions => "definitions",
            Self::Namespaces => "namespaces",
            Self::Access => "access",
            Self::Configuration => "configuration",
            Self::Workloads => "workloads",
            Self::Webhooks => "webhooks",
            Self::Resources => "resources",
        }
    }
}

impl std::fmt::Display for Wave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_comes_first() {
        let order = [
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", true),
            ("v1", "Namespace", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", true),
            ("v1", "ConfigMap", true),
            ("apps/v1", "Deployment", true),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", true),
            ("serving.kserve.io/v1alpha1", "ServingRuntime", false),
        ];
        let waves: Vec<Wave> = order
            .iter()
            .map(|(version, kind, built_in)| {
                Wave::of(&GroupVersionKind::from_api_version(version, kind), *built_in)
            })
            .collect();
        assert_eq!(waves, Wave::ALL);
        let stream = GroupVersionKind::from_api_version("image.openshift.io/v1", "ImageStream");
        assert_eq!(Wave::of(&stream, true), Wave::Configuration);
        // Objects of one wave are applied side by side, and a quota needs its namespace.
        let quota = GroupVersionKind::from_api_version("v1", "ResourceQuota");
        assert_eq!(Wave::of(&quota, true), Wave::Access);
    }
}
