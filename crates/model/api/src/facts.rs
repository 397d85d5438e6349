//! The facts files that are part of the program.

use std::sync::OnceLock;

use crate::kinds::Kinds;
use crate::schema::{Schema, SchemaError};

/// Facts about Kubernetes 1.35, generated from its own documents.
pub(crate) const KUBERNETES: &str = include_str!("../facts/kubernetes-1.35.json");
/// Facts about the kinds of OpenShift that matter here, typed by hand.
const OPENSHIFT: &str = include_str!("../facts/openshift.json");

impl Kinds {
    /// The kinds of Kubernetes 1.35, from the generated facts.
    pub fn kubernetes() -> &'static Kinds {
        static KINDS: OnceLock<Kinds> = OnceLock::new();
        // The file is part of the program and a test reads it, so the empty answer never happens.
        KINDS.get_or_init(|| Kinds::from_facts(KUBERNETES).unwrap_or_default())
    }

    /// The kinds of OpenShift that Scantling knows, from the table typed by hand.
    pub fn openshift() -> &'static Kinds {
        static KINDS: OnceLock<Kinds> = OnceLock::new();
        KINDS.get_or_init(|| Kinds::from_facts(OPENSHIFT).unwrap_or_default())
    }
}

impl Schema {
    /// The types of Kubernetes 1.35, from the generated facts.
    pub fn kubernetes() -> &'static Schema {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        // The file is part of the program and a test reads it, so the schema without types never happens.
        SCHEMA.get_or_init(|| read(KUBERNETES).unwrap_or_else(|_| Schema::deduced()))
    }

    /// The types of the kinds of OpenShift that Scantling knows. They refer to types of `Schema::kubernetes`.
    pub fn openshift() -> &'static Schema {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| read(OPENSHIFT).unwrap_or_else(|_| Schema::deduced()))
    }
}

fn read(text: &str) -> Result<Schema, SchemaError> {
    // Text that is no JSON becomes null, which is refused as "not an object".
    Schema::from_json(&serde_json::from_str(text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_read() {
        assert!(Kinds::from_facts(KUBERNETES).unwrap().iter().count() > 80);
        assert!(Kinds::from_facts(OPENSHIFT).unwrap().iter().count() >= 10);
        read(KUBERNETES).unwrap();
        read(OPENSHIFT).unwrap();
        assert!(read("{").is_err());
    }

    #[test]
    fn every_kind_has_a_type() {
        for (kinds, schema) in
            [(Kinds::kubernetes(), Schema::kubernetes()), (Kinds::openshift(), Schema::openshift())]
        {
            for facts in kinds.iter() {
                let gvk = &facts.gvk;
                assert_eq!(
                    schema.type_of(&gvk.group, &gvk.version, &gvk.kind),
                    Some(facts.type_name.as_str())
                );
                assert!(schema.type_def(&facts.type_name).is_some(), "{gvk}");
            }
        }
    }
}
