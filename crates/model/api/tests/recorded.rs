//! The generated facts against a schema that was recorded from Kubernetes' own field manager: list types and keys, patch
//! keys, defaults, zero values.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use scantling_api::schema::{Schema, TypeTarget};
use serde_json::Value;

fn recorded() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../logic/merge/tests/data/schema-1.35.json.gz");
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn types_are_those_of_the_field_manager() {
    let recorded = Schema::from_json(&recorded()).unwrap();
    let generated = Schema::kubernetes();
    let mut compared = 0;
    for (name, def) in
        recorded.types().filter(|(name, _)| name.starts_with("io.k8s.") || name.starts_with("__"))
    {
        let ours = generated.type_def(name).unwrap_or_else(|| panic!("{name} is missing"));
        // One type is written in place there and by name here; what it points at is the same.
        if name.ends_with(".FieldsV1") {
            let element = |schema: &Schema, def: &scantling_api::schema::TypeDef| {
                let element = def.map.as_ref().unwrap().element.clone().unwrap();
                assert!(
                    !matches!(&element.target, TypeTarget::Named(name) if schema.type_def(name).is_none())
                );
                schema.resolve(&element).cloned().unwrap()
            };
            assert_eq!(element(generated, ours), element(&recorded, def));
        } else {
            assert_eq!(ours, def, "{name}");
        }
        compared += 1;
    }
    assert!(compared > 400, "only {compared} types were compared");
}

#[test]
fn kinds_are_those_of_the_field_manager() {
    let recorded = Schema::from_json(&recorded()).unwrap();
    let generated = Schema::kubernetes();
    let mut compared = 0;
    for (group, version, kind, facts) in recorded.kinds().filter(|(.., facts)| !facts.custom) {
        if !facts.type_name.starts_with("io.k8s.") {
            continue;
        }
        assert_eq!(generated.kind(group, version, kind), Some(facts), "{group}/{version} {kind}");
        compared += 1;
    }
    assert!(compared > 50, "only {compared} kinds were compared");
}
