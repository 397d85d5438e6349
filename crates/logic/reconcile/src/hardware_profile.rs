//! The definition of hardware profiles.

use scantling_observed::HardwareProfileSpec;

use crate::crds::{Column, Definition, Scope, schema_of};

/// The definition of `HardwareProfile`.
pub(crate) const HARDWARE_PROFILE_DEFINITION: Definition = Definition {
    about: "How much of a node a notebook or a model gets, and on which nodes.",
    group: "infrastructure.opendatahub.io",
    version: "v1",
    kind: "HardwareProfile",
    plural: "hardwareprofiles",
    short_names: &["hwp"],
    categories: &["scantling"],
    scope: Scope::Namespaced,
    columns: &[
        Column::text("Title", r".metadata.annotations.opendatahub\.io/display-name"),
        Column::text("Resources", ".spec.identifiers[*].identifier"),
        Column::age("Age", ".metadata.creationTimestamp"),
    ],
    rules: &[],
    spec: schema_of::<HardwareProfileSpec>,
    status: None,
};
