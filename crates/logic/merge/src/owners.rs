//! Who owns which fields of an object.

use scantling_api::schema::{Schema, TypeRef};
use serde_json::Value;

use crate::extract::owned_fields;
use crate::managers::{Managers, Operation};
use crate::path::Path;
use crate::set::FieldSet;

/// One entry of an object's `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Name of the field manager.
    pub manager: String,
    /// How it came to own the fields.
    pub operation: Operation,
    /// The subresource it wrote to, if any.
    pub subresource: Option<String>,
    /// The API version of the fields.
    pub api_version: String,
    /// The fields.
    pub fields: FieldSet,
}

/// All entries of an object that can be read, in the order of operation, manager and version. An object
/// whose entries are malformed has no known owners.
pub fn field_owners(object: &Value) -> Vec<Owner> {
    let managers = Managers::of(object).unwrap_or_default();
    let owned = managers.owned.into_iter();
    let mut owners: Vec<Owner> = owned
        .map(|(id, owned)| Owner {
            manager: id.manager,
            operation: id.operation,
            subresource: (!id.subresource.is_empty()).then_some(id.subresource),
            api_version: owned.api_version,
            fields: owned.fields,
        })
        .collect();
    owners.sort_by(|a, b| (a.operation, &a.manager).cmp(&(b.operation, &b.manager)));
    owners
}

/// Names of the managers that own the field at `path`, sorted: those that own it or something in it, or
/// else those that own the value it lies in as a whole.
pub fn owner_of(object: &Value, path: &Path) -> Vec<String> {
    let owners = field_owners(object);
    let names = |owns: &dyn Fn(&FieldSet) -> bool| {
        let mut names: Vec<String> =
            owners.iter().filter(|owner| owns(&owner.fields)).map(|owner| owner.manager.clone()).collect();
        names.sort();
        names.dedup();
        names
    };
    let direct = names(&|fields| fields.contains(path) || fields.reaches(path));
    if direct.is_empty() { names(&|fields| fields.touches(path)) } else { direct }
}

/// The leaves of `object` under the named type: what someone who applied it would own.
pub fn leaves_of(schema: &Schema, type_name: &str, object: &Value) -> FieldSet {
    owned_fields(schema, Some(&TypeRef::named(type_name)), object)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    #[test]
    fn names_owners_of_fields() {
        let entry = |manager: &str, operation: &str, fields: Value| {
            json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
                   "fieldsV1": fields})
        };
        let object = json!({"metadata": {"managedFields": [
            entry("b", "Update", json!({"f:spec": {"f:x": {}, "f:args": {}}})),
            entry("a", "Apply", json!({"f:spec": {"f:x": {}}})),
        ]}});
        let owners = field_owners(&object);
        assert_eq!(owners.iter().map(|owner| owner.manager.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        for (path, wanted) in [
            (".spec.x", vec!["a", "b"]),
            (".spec", vec!["a", "b"]),
            (".spec.args[0]", vec!["b"]),
            (".spec.y", vec![]),
        ] {
            assert_eq!(owner_of(&object, &path.parse().unwrap()), wanted, "{path}");
        }
    }
}
