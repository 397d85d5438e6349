//! Laying an applied configuration over a live object.
//!
//! Nothing is removed here. Where both sides have a leaf, the applied one is kept. Items that only the live
//! list has keep their place relative to their neighbours; the applied side decides the order of its own
//! items.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::schema::{ListType, MapType, Schema, TypeRef};
use serde_json::{Map, Value};

use crate::path::{Element, MAX_DEPTH};
use crate::shape::{Shape, field_type, item_element, scalar_fits, shape};
use crate::validate::Misfit;

/// The live value with the applied one laid over it; none if nothing is left to say.
pub(crate) fn overlay(
    schema: &Schema,
    t: Option<&TypeRef>,
    live: Option<&Value>,
    applied: Option<&Value>,
) -> Result<Option<Value>, Misfit> {
    Overlay { schema }.walk(t, live, applied, 0)
}

struct Overlay<'a> {
    schema: &'a Schema,
}

type Overlaid = Result<Option<Value>, Misfit>;

impl Overlay<'_> {
    fn walk(
        &self,
        t: Option<&TypeRef>,
        live: Option<&Value>,
        applied: Option<&Value>,
        depth: usize,
    ) -> Overlaid {
        if depth > MAX_DEPTH {
            return Err(Misfit::here(format!("nests deeper than {MAX_DEPTH}")));
        }
        // The result follows the form of the applied value, or of the live one where nothing is applied.
        let Some(shape) = shape(self.schema, t, applied.or(live)) else {
            return Err(Misfit::here("the schema does not know the type of this field"));
        };
        let winner = || applied.or(live).cloned();
        match shape {
            Shape::Scalar(scalar) => {
                let fits = |value: Option<&Value>| value.is_none_or(|value| scalar_fits(scalar, value));
                if fits(live) || fits(applied) {
                    Ok(winner())
                } else {
                    Err(Misfit::here("neither the live nor the applied value is a scalar of this type"))
                }
            }
            Shape::Map(map, atomic) => {
                let live = live.and_then(Value::as_object).filter(|entries| !entries.is_empty());
                let applied = applied.and_then(Value::as_object).filter(|entries| !entries.is_empty());
                if atomic || (live.is_none() && applied.is_none()) {
                    return Ok(winner());
                }
                self.maps(map, live, applied, depth)
            }
            Shape::List(list, atomic) => {
                let live = live.and_then(Value::as_array).filter(|items| !items.is_empty());
                let applied = applied.and_then(Value::as_array).filter(|items| !items.is_empty());
                if atomic || (live.is_none() && applied.is_none()) {
                    return Ok(winner());
                }
                let none = Vec::new();
                self.lists(list, live.unwrap_or(&none), applied.unwrap_or(&none), depth)
            }
        }
    }

    fn maps(
        &self,
        map: &MapType,
        live: Option<&Map<String, Value>>,
        applied: Option<&Map<String, Value>>,
        depth: usize,
    ) -> Overlaid {
        let mut out = Map::new();
        let mut visit = |name: &str, live: Option<&Value>, applied: Option<&Value>| {
            if let Some(value) = self.walk(field_type(map, name), live, applied, depth + 1)? {
                out.insert(name.to_owned(), value);
            }
            Ok::<(), Misfit>(())
        };
        for (name, value) in live.into_iter().flatten() {
            visit(name, Some(value), applied.and_then(|applied| applied.get(name)))?;
        }
        for (name, value) in applied.into_iter().flatten() {
            if live.is_none_or(|live| !live.contains_key(name)) {
                visit(name, None, Some(value))?;
            }
        }
        Ok(if out.is_empty() { None } else { Some(Value::Object(out)) })
    }

    fn lists(&self, list: &ListType, live: &[Value], applied: &[Value], depth: usize) -> Overlaid {
        let right = self.index(list, applied, false)?;
        let left = self.index(list, live, true)?;
        let mut out = Vec::with_capacity(live.len().max(applied.len()));
        let mut push = |live: Option<&Value>, applied: Option<&Value>| {
            // An item that cannot be laid over is left out.
            if let Ok(Some(value)) = self.walk(Some(&list.element), live, applied, depth + 1) {
                out.push(value);
            }
        };

        // Items on both sides, in the applied order: the live list is read up to the next of them.
        let mut shared = right.order.iter().filter(|element| left.items.contains_key(*element));
        let mut next = shared.next();
        let mut merged = BTreeSet::new();
        let (mut l, mut r) = (0, 0);
        loop {
            let (live_at, applied_at) = (left.order.get(l), right.order.get(r));
            if let (Some(a), Some(b)) = (live_at, applied_at) {
                if a == b {
                    merged.insert(a);
                    push(left.get(a), right.get(a));
                    (l, r) = (l + 1, r + 1);
                    next = shared.next();
                    continue;
                }
                if right.items.contains_key(a) && next.is_some_and(|next| next != a) {
                    l += 1;
                    continue;
                }
            }
            if let Some(a) = live_at {
                if !right.items.contains_key(a) {
                    push(live.get(l), None);
                    l += 1;
                    continue;
                }
                if merged.contains(a) {
                    l += 1;
                }
            }
            if let Some(b) = applied_at {
                merged.insert(b);
                push(left.get(b), right.get(b));
                r += 1;
                if next == Some(b) {
                    next = shared.next();
                }
            } else if live_at.is_none() {
                break;
            }
        }
        Ok(if out.is_empty() { None } else { Some(Value::Array(out)) })
    }

    fn index<'v>(&self, list: &ListType, items: &'v [Value], duplicates: bool) -> Result<Index<'v>, Misfit> {
        let mut index = Index { order: Vec::with_capacity(items.len()), items: BTreeMap::new() };
        for (at, item) in items.iter().enumerate() {
            let element = item_element(self.schema, list, item)
                .map_err(|problem| Misfit::here(format!("item {at}: {problem}")))?;
            if index.items.contains_key(&element) {
                if !duplicates {
                    return Err(Misfit::here(format!("item {element} occurs more than once")));
                }
                // Items that occur twice are not merged with an applied one, which replaces them.
                index.items.insert(element.clone(), &Value::Null);
            } else {
                index.items.insert(element.clone(), item);
            }
            index.order.push(element);
        }
        Ok(index)
    }
}

/// Items of a list by identity, and their order.
struct Index<'v> {
    order: Vec<Element>,
    items: BTreeMap<Element, &'v Value>,
}

impl<'v> Index<'v> {
    fn get(&self, element: &Element) -> Option<&'v Value> {
        self.items.get(element).copied()
    }
}
