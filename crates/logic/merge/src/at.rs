//! The value at a path, found as the field manager finds it.
//!
//! A key of a list item that nobody wrote has its declared default: `[port=80,protocol="TCP"]` is the item that says
//! only `port: 80`. Only the type of the list knows that.

use scantling_api::schema::{ListKind, ListType, Schema, TypeRef};
use serde_json::Value;

use crate::path::{Element, Path};
use crate::shape::{Shape, field_type, shape};
use crate::value::equal;

/// What `path` selects in `object` under the named type.
pub fn value_at<'v>(schema: &Schema, type_name: &str, object: &'v Value, path: &Path) -> Option<&'v Value> {
    if !needs_types(path) {
        return path.select(object);
    }
    let root = TypeRef::named(type_name);
    let mut t = Some(&root);
    let mut value = object;
    for element in &path.0 {
        let (place, inner) = step(schema, t, value, element)?;
        value = match place {
            Place::Field(name) => value.get(name),
            Place::Index(index) => value.get(index),
        }?;
        t = inner;
    }
    Some(value)
}

/// What `path` selects in `object` under the named type, to be changed.
pub fn value_at_mut<'v>(
    schema: &Schema,
    type_name: &str,
    object: &'v mut Value,
    path: &Path,
) -> Option<&'v mut Value> {
    walk(schema, &TypeRef::named(type_name), object, &path.0).map(|(value, _)| value)
}

/// Takes what `path` selects out of `object`; none if it is not there.
pub fn remove_at(schema: &Schema, type_name: &str, object: &mut Value, path: &Path) -> Option<Value> {
    let (last, parents) = path.0.split_last()?;
    let root = TypeRef::named(type_name);
    let (parent, t) = walk(schema, &root, object, parents)?;
    let (place, _) = step(schema, t, parent, last)?;
    match (place, parent) {
        (Place::Field(name), Value::Object(fields)) => fields.remove(name),
        (Place::Index(index), Value::Array(items)) if index < items.len() => Some(items.remove(index)),
        _ => None,
    }
}

/// The value that a path leads to, and its type.
fn walk<'s, 'v>(
    schema: &'s Schema,
    root: &'s TypeRef,
    object: &'v mut Value,
    path: &[Element],
) -> Option<(&'v mut Value, Option<&'s TypeRef>)> {
    let mut at = (object, Some(root));
    for element in path {
        let (place, inner) = step(schema, at.1, at.0, element)?;
        let value = match place {
            Place::Field(name) => at.0.get_mut(name),
            Place::Index(index) => at.0.get_mut(index),
        }?;
        at = (value, inner);
    }
    Some(at)
}

/// Where one step leads.
enum Place<'e> {
    Field(&'e str),
    Index(usize),
}

/// Where `element` leads in `value`, and the type of what is there.
fn step<'s, 'e>(
    schema: &'s Schema,
    t: Option<&'s TypeRef>,
    value: &Value,
    element: &'e Element,
) -> Option<(Place<'e>, Option<&'s TypeRef>)> {
    let shape = shape(schema, t, Some(value));
    match element {
        Element::Field(name) => {
            let inner = match shape {
                Some(Shape::Map(map, _)) => field_type(map, name),
                _ => None,
            };
            Some((Place::Field(name), inner))
        }
        Element::Index(index) => {
            let inner = match shape {
                Some(Shape::List(list, _)) => Some(&list.element),
                _ => None,
            };
            Some((Place::Index(usize::try_from(*index).ok()?), inner))
        }
        Element::Key(_) | Element::Value(_) => {
            let items = value.as_array()?;
            let (at, inner) = match shape {
                Some(Shape::List(list, _)) => {
                    (items.iter().position(|item| is_item(schema, list, item, element)), Some(&list.element))
                }
                _ => (items.iter().position(|item| element.names(item)), None),
            };
            Some((Place::Index(at?), inner))
        }
    }
}

/// Whether a step names an item: the same as `item_element` equal to the step, but nothing is built for it.
fn is_item(schema: &Schema, list: &ListType, item: &Value, element: &Element) -> bool {
    let (ListKind::Map(names), Element::Key(keys)) = (&list.kind, element) else {
        return element.names(item);
    };
    let fields = schema.resolve(&list.element).and_then(|def| def.map.as_ref()).map(|map| &map.fields);
    let mut known = 0;
    names.iter().all(|name| {
        let default = || fields.and_then(|fields| fields.get(name)).and_then(|f| f.default.as_ref());
        let wanted = keys.iter().find(|(key, _)| key == name).map(|(_, wanted)| &wanted.0);
        known += usize::from(wanted.is_some());
        match (item.get(name).or_else(default), wanted) {
            (Some(found), Some(wanted)) => equal(found, wanted),
            (None, None) => true,
            _ => false,
        }
    }) && known == keys.len()
}

/// Only a key can stand for what is not written.
fn needs_types(path: &Path) -> bool {
    path.0.iter().any(|element| matches!(element, Element::Key(_)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_is_not_written_has_its_default() {
        const SERVICE: &str = "io.k8s.api.core.v1.Service";
        let object = json!({"spec": {"ports": [
            {"name": "u", "port": 53, "protocol": "UDP"}, {"name": "t", "port": 53}, {"name": "w", "port": 80}]},
            "metadata": {"finalizers": ["a", "b"]}});
        let schema = Schema::kubernetes();
        for (path, wanted) in [
            (".spec.ports[port=53,protocol=\"TCP\"].name", Some("t")),
            (".spec.ports[port=53,protocol=\"UDP\"].name", Some("u")),
            (".spec.ports[port=80,protocol=\"TCP\"].name", Some("w")),
            (".spec.ports[port=80,protocol=\"UDP\"].name", None),
            // No item has less than all its keys.
            (".spec.ports[port=53].name", None),
            (".spec.ports[port=80,protocol=\"TCP\",name=\"w\"].name", None),
            (".spec.ports[1].name", Some("t")),
            (".metadata.finalizers[=\"b\"]", Some("b")),
        ] {
            let path: Path = path.parse().unwrap();
            let wanted = wanted.map(|w| json!(w));
            assert_eq!(value_at(schema, SERVICE, &object, &path), wanted.as_ref(), "{path}");
            let mut changed = object.clone();
            if let Some(value) = value_at_mut(schema, SERVICE, &mut changed, &path) {
                *value = json!("new");
            }
            let now = wanted.as_ref().map(|_| json!("new"));
            if path.0.last() != Some(&Element::Value(crate::KeyValue(json!("b")))) {
                assert_eq!(value_at(schema, SERVICE, &changed, &path), now.as_ref(), "{path}");
            }
            let mut without = object.clone();
            assert_eq!(remove_at(schema, SERVICE, &mut without, &path), wanted, "{path}");
            assert_eq!(value_at(schema, SERVICE, &without, &path), None, "{path}");
            assert_eq!(without == object, wanted.is_none(), "{path}");
        }
    }
}
