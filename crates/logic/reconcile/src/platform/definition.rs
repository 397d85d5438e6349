//! The kind `Platform`.

use scantling_observed::{PlatformSpec, PlatformStatus};

use crate::crds::{Column, Definition, Rule, Scope, schema_of};

/// The definition of [`scantling_observed::Platform`].
pub(crate) const PLATFORM_DEFINITION: Definition = Definition {
    about: "The platform of this cluster: the release that it is to have, by which policy, and how it is.",
    group: "scantling.dev",
    version: "v1alpha1",
    kind: "Platform",
    plural: "platforms",
    short_names: &[],
    categories: &["scantling"],
    scope: Scope::Cluster,
    columns: &[
        Column::text("Release", ".status.release"),
        Column::text("Ready", r#".status.conditions[?(@.type=="Ready")].status"#),
        Column::text("Run", ".status.run.version"),
        Column::text("Stage", ".status.run.stage"),
        Column::age("Age", ".metadata.creationTimestamp"),
        Column::text("Wanted", ".spec.release.version").wide(),
        Column::text("Why", r#".status.conditions[?(@.type=="Ready")].message"#).wide(),
    ],
    rules: &[Rule {
        rule: "self.metadata.name == 'platform'",
        message: "there is one platform in a cluster, and it is called platform",
    }],
    spec: schema_of::<PlatformSpec>,
    status: Some(schema_of::<PlatformStatus>),
};
