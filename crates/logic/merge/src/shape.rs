//! Which form of a type applies to a value, and how items of lists are identified.

use scantling_api::schema::{ListKind, ListType, MapType, Scalar, Schema, TypeRef};
use serde_json::Value;

use crate::path::{Element, KeyValue};

/// The form of a type that is used for a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape<'a> {
    /// A map or structure; true if it is one value.
    Map(&'a MapType, bool),
    /// A scalar.
    Scalar(Scalar),
    /// A list; true if it is one value.
    List(&'a ListType, bool),
}

impl Shape<'_> {
    /// Whether two shapes of the same type are the same form.
    pub(crate) fn same_form(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Shape::Map(..), Shape::Map(..))
                | (Shape::Scalar(_), Shape::Scalar(_))
                | (Shape::List(..), Shape::List(..))
        )
    }
}

/// The form of type `t` that fits `value`. Where none fits, or for null or nothing, the first form the type
/// has of map, scalar and list; none for a field that is not declared.
pub(crate) fn shape<'a>(
    schema: &'a Schema,
    t: Option<&'a TypeRef>,
    value: Option<&Value>,
) -> Option<Shape<'a>> {
    let t = t?;
    let def = schema.resolve(t)?;
    let map = def.map.as_ref().map(|map| Shape::Map(map, map.atomic || t.atomic));
    let list = def.list.as_ref().map(|list| Shape::List(list, list.kind == ListKind::Atomic || t.atomic));
    let scalar = def.scalar.map(Shape::Scalar);
    let fitting = match value {
        Some(Value::Object(_)) => map,
        Some(Value::Array(_)) => list,
        Some(Value::String(_) | Value::Number(_) | Value::Bool(_)) => scalar,
        Some(Value::Null) | None => None,
    };
    fitting.or(map).or(scalar).or(list)
}

/// The type of a key of a map: the declared field's, or that of undeclared keys.
pub(crate) fn field_type<'a>(map: &'a MapType, name: &str) -> Option<&'a TypeRef> {
    map.fields.get(name).map(|field| &field.t).or(map.element.as_ref())
}

/// Whether a scalar type accepts a value; null always fits.
pub(crate) fn scalar_fits(scalar: Scalar, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(_) => matches!(scalar, Scalar::String | Scalar::Untyped),
        Value::Number(_) => matches!(scalar, Scalar::Number | Scalar::Untyped),
        Value::Bool(_) => matches!(scalar, Scalar::Boolean | Scalar::Untyped),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// How an item of a set or of a list with keys is identified.
///
/// A missing key takes its declared default. A key that is missing and has none is left out; an item where
/// that leaves nothing cannot be identified.
pub(crate) fn item_element(schema: &Schema, list: &ListType, item: &Value) -> Result<Element, String> {
    match &list.kind {
        ListKind::Atomic => Err("items of an atomic list have no identity".to_owned()),
        ListKind::Set => match item {
            Value::Object(_) => Err("a set cannot hold a map".to_owned()),
            Value::Array(_) => Err("a set cannot hold a list".to_owned()),
            Value::Null => Err("a set cannot hold null".to_owned()),
            scalar => Ok(Element::Value(KeyValue(scalar.clone()))),
        },
        ListKind::Map(names) => {
            let Value::Object(item) = item else {
                return Err("an item of a list with keys must be a map".to_owned());
            };
            let fields =
                schema.resolve(&list.element).and_then(|def| def.map.as_ref()).map(|map| &map.fields);
            let mut keys = Vec::with_capacity(names.len());
            for name in names {
                let default = || fields.and_then(|fields| fields.get(name)).and_then(|f| f.default.as_ref());
                if let Some(value) = item.get(name).or_else(default) {
                    keys.push((name.clone(), KeyValue(value.clone())));
                }
            }
            if keys.is_empty() {
                return Err(format!("an item has none of its keys ({})", names.join(", ")));
            }
            keys.sort_by(|a, b| a.0.cmp(&b.0));
            Ok(Element::Key(keys))
        }
    }
}
