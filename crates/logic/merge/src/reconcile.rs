//! Field sets under a schema: parents that are implied, and sets written under an older schema.

use scantling_api::schema::{DEDUCED, MapType, Scalar, Schema, TypeRef, TypeTarget};

use crate::path::{Element, MAX_DEPTH};
use crate::set::FieldSet;
use crate::shape::{Shape, field_type, shape};

/// `set` with every declared field that has a member below it as a member too.
pub(crate) fn with_parents(schema: &Schema, t: Option<&TypeRef>, set: &FieldSet) -> FieldSet {
    let def = t.and_then(|t| schema.resolve(t));
    let map = def.and_then(|def| def.map.as_ref());
    let list = def.and_then(|def| def.list.as_ref());
    let mut out = FieldSet::new();
    for (element, member, below) in set.steps() {
        let (declared, t) = match element {
            Element::Field(name) => (
                map.is_some_and(|map| map.fields.contains_key(name)),
                map.and_then(|map| field_type(map, name)),
            ),
            Element::Key(_) => (false, list.map(|list| &list.element)),
            Element::Value(_) | Element::Index(_) => (false, None),
        };
        let implied = declared && !below.is_empty();
        out.graft(element.clone(), member || implied, with_parents(schema, t, below));
    }
    out
}

/// `set` as its owner would own it now: fields below what the schema calls one value are replaced by that
/// value.
pub(crate) fn reconcile(schema: &Schema, t: &TypeRef, set: &FieldSet) -> FieldSet {
    walk(schema, Some(t), set, false, 0).unwrap_or_default()
}

/// The set below one step; none if the step has become one value, which is then to be a member itself.
/// `leaf` says that the set owns the step and nothing below it.
fn walk(schema: &Schema, t: Option<&TypeRef>, set: &FieldSet, leaf: bool, depth: usize) -> Option<FieldSet> {
    if depth > MAX_DEPTH {
        return Some(set.clone());
    }
    match shape(schema, t, None) {
        Some(Shape::Map(map, _)) if is_deduced(map) => Some(set.clone()),
        Some(Shape::Map(_, true)) if !leaf && !set.is_empty() && depth > 0 => None,
        Some(Shape::List(_, true)) if !leaf && depth > 0 => None,
        Some(Shape::Map(_, true) | Shape::List(_, true) | Shape::Scalar(_)) | None => Some(set.clone()),
        Some(Shape::Map(map, false)) => Some(children(set, |element, below, leaf| {
            let t = match element {
                Element::Field(name) => field_type(map, name),
                _ => map.element.as_ref(),
            };
            match t {
                Some(t) => walk(schema, Some(t), below, leaf, depth + 1),
                None => Some(below.clone()),
            }
        })),
        Some(Shape::List(list, false)) => {
            Some(children(set, |_, below, leaf| walk(schema, Some(&list.element), below, leaf, depth + 1)))
        }
    }
}

fn children(
    set: &FieldSet,
    mut visit: impl FnMut(&Element, &FieldSet, bool) -> Option<FieldSet>,
) -> FieldSet {
    let mut out = FieldSet::new();
    for (element, member, below) in set.steps() {
        match visit(element, below, member && below.is_empty()) {
            Some(below) => out.graft(element.clone(), member, below),
            None => out.graft(element.clone(), true, FieldSet::new()),
        }
    }
    out
}

/// Whether a map keeps unknown fields and declares none: its owners are left as they are.
fn is_deduced(map: &MapType) -> bool {
    map.fields.is_empty()
        && map.element.as_ref().is_some_and(|element| match &element.target {
            TypeTarget::Named(name) => name == DEDUCED,
            TypeTarget::Inline(def) => def.scalar == Some(Scalar::Untyped),
        })
}
