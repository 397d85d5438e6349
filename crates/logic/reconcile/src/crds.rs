//! The definitions of the kinds that this project serves.

/// `NotebookImage` (scantling.dev/v1alpha1), YAML.
pub const NOTEBOOK_IMAGE_CRD: &str = include_str!("../crds/notebookimages.yaml");

/// `Notebook` (kubeflow.org/v1), YAML.
pub const NOTEBOOK_CRD: &str = include_str!("../crds/notebooks.yaml");

/// Every definition: its name, and its YAML.
pub const CRDS: &[(&str, &str)] =
    &[("notebookimages.scantling.dev", NOTEBOOK_IMAGE_CRD), ("notebooks.kubeflow.org", NOTEBOOK_CRD)];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use serde_json::Value;

    #[test]
    fn definitions_are_structural_and_say_their_name() {
        for (name, text) in CRDS {
            let documents = scantling_yaml::parse(text.as_bytes()).unwrap();
            let crd = documents[0].root.to_json();
            assert_eq!(crd["metadata"]["name"], *name);
            let (plural, group) = name.split_once('.').unwrap();
            assert_eq!(
                (&crd["spec"]["names"]["plural"], &crd["spec"]["group"]),
                (&plural.into(), &group.into())
            );
            scantling_api::schema::Schema::from_crd(&crd).unwrap();
            check(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], name);
        }
    }

    /// A structural schema has a type everywhere.
    fn check(schema: &Value, at: &str) {
        assert!(schema["type"].is_string(), "{at} has no type");
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            check(inner, &format!("{at}.{name}"));
        }
        if !schema["items"].is_null() {
            check(&schema["items"], &format!("{at}[]"));
        }
    }
}
