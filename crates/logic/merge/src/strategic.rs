//! Strategic merge patch: lists are merged by the key that the schema names, and directives in the patch
//! delete, replace and order.
//!
//! Rules:
//! <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::schema::{FieldFacts, PatchStrategy, Schema, TypeRef};
use serde_json::{Map, Value};

use crate::error::MergeError;
use crate::patch::as_map;
use crate::path::{KeyValue, MAX_DEPTH};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

type Entries = Map<String, Value>;
type Merged<T> = Result<T, MergeError>;

fn problem<T>(text: impl Into<String>) -> Merged<T> {
    Err(MergeError::Patch(text.into()))
}

/// The object that a strategic merge patch makes of `live`. Only built-in kinds have such patches.
pub fn strategic_merge_patch(
    schema: &Schema,
    type_name: &str,
    live: &Value,
    patch: &Value,
) -> Result<Value, MergeError> {
    let root = TypeRef::named(type_name);
    let merge = Strategic { schema };
    merge.maps(as_map(live)?, as_map(patch)?, Some(&root), 0).map(Value::Object)
}

struct Strategic<'a> {
    schema: &'a Schema,
}

/// What the schema says about one field.
#[derive(Clone, Copy)]
struct Facts<'a> {
    t: Option<&'a TypeRef>,
    field: Option<&'a FieldFacts>,
}

impl Facts<'_> {
    /// Only declared fields can be merged.
    fn known(&self, name: &str) -> Merged<()> {
        match self.field {
            Some(_) => Ok(()),
            None => problem(format!("the schema declares no field `{name}` to merge")),
        }
    }

    fn merges(&self) -> bool {
        self.field.is_some_and(|field| field.patch_strategy.contains(&PatchStrategy::Merge))
    }

    fn replaces(&self) -> bool {
        self.field.is_some_and(|field| field.patch_strategy.contains(&PatchStrategy::Replace))
    }

    fn key(&self) -> Option<&str> {
        self.field.and_then(|field| field.patch_merge_key.as_deref())
    }
}

impl<'a> Strategic<'a> {
    fn facts(&self, t: Option<&'a TypeRef>, name: &str) -> Facts<'a> {
        let map = t.and_then(|t| self.schema.resolve(t)).and_then(|def| def.map.as_ref());
        let field = map.and_then(|map| map.fields.get(name));
        Facts { t: field.map(|field| &field.t).or(map.and_then(|map| map.element.as_ref())), field }
    }

    fn element(&self, t: Option<&'a TypeRef>) -> Option<&'a TypeRef> {
        t.and_then(|t| self.schema.resolve(t)).and_then(|def| def.list.as_ref()).map(|list| &list.element)
    }

    fn maps(
        &self,
        mut live: Entries,
        mut patch: Entries,
        t: Option<&'a TypeRef>,
        depth: usize,
    ) -> Merged<Entries> {
        if depth > MAX_DEPTH {
            return problem(format!("nests deeper than {MAX_DEPTH}"));
        }
        if let Some(directive) = patch.remove(DIRECTIVE) {
            return match directive.as_str() {
                Some("replace") => Ok(patch),
                Some("delete") => Ok(Map::new()),
                _ => problem("`$patch` of a map must be `replace` or `delete`"),
            };
        }
        retain_keys(&mut live, &mut patch)?;
        self.ordered_lists(&mut live, &mut patch, t, depth)?;
        for (key, mut value) in patch {
            let deletes = key.strip_prefix(DELETE_VALUES);
            let name = deletes.unwrap_or(&key).to_owned();
            if value.is_null() {
                live.remove(&name);
                continue;
            }
            let facts = self.facts(t, &name);
            let present = live.remove(&name);
            let result = match (present, deletes.is_some()) {
                (Some(Value::Object(present)), false) if value.is_object() => {
                    facts.known(&name)?;
                    let patch = as_map(&value)?;
                    let merged =
                        if facts.replaces() { patch } else { self.maps(present, patch, facts.t, depth + 1)? };
                    Some(Value::Object(merged))
                }
                (Some(Value::Array(present)), deletes) => match value {
                    Value::Array(patch) if deletes || facts.merges() => {
                        Some(Value::Array(self.lists(present, patch, facts, deletes, depth)?))
                    }
                    value if deletes => {
                        return problem(format!("`{key}` is not a list: {}", value.is_array()));
                    }
                    Value::Array(patch) => Some(Value::Array(patch)),
                    mut value => {
                        discard_nulls(&mut value);
                        without_directives(value)
                    }
                },
                (present, true) => present,
                (_, false) => {
                    discard_nulls(&mut value);
                    without_directives(value)
                }
            };
            if let Some(result) = result {
                live.insert(name, result);
            }
        }
        Ok(live)
    }

    /// Lists whose order the patch sets: merged, then put in that order.
    fn ordered_lists(
        &self,
        live: &mut Entries,
        patch: &mut Entries,
        t: Option<&'a TypeRef>,
        depth: usize,
    ) -> Merged<()> {
        let names: Vec<String> =
            patch.keys().filter_map(|key| key.strip_prefix(ELEMENT_ORDER)).map(str::to_owned).collect();
        for name in names {
            let Some(Value::Array(order)) = patch.remove(&format!("{ELEMENT_ORDER}{name}")) else {
                return problem(format!("`{ELEMENT_ORDER}{name}` is not a list"));
            };
            let facts = self.facts(t, &name);
            facts.known(&name)?;
            let (present, changes) = (list_at(live, &name)?, list_at(patch, &name)?);
            check_order(changes.as_deref().unwrap_or_default(), &order, facts.key())?;
            let items = |list: &Option<Vec<Value>>| list.as_ref().is_some_and(|list| !list.is_empty());
            if (present.is_some() || changes.is_some()) && !items(&present) && !items(&changes) {
                return problem(format!("`{name}` has no items to order"));
            }
            let merged = match (present.clone(), changes) {
                (None, None) => continue,
                (Some(present), None) => present,
                (None, Some(changes)) => changes.into_iter().filter_map(without_directives).collect(),
                (Some(present), Some(changes)) if facts.merges() => {
                    self.lists(present, changes, facts, false, depth)?
                }
                (Some(_), Some(changes)) => changes,
            };
            let sorted = in_order(merged, &order, &present.unwrap_or_default(), facts.key())?;
            patch.remove(&name);
            live.insert(name, Value::Array(sorted));
        }
        Ok(())
    }

    fn lists(
        &self,
        live: Vec<Value>,
        patch: Vec<Value>,
        facts: Facts<'a>,
        deletes: bool,
        depth: usize,
    ) -> Merged<Vec<Value>> {
        if live.is_empty() && patch.is_empty() {
            return Ok(live);
        }
        let maps = all_maps(live.iter().chain(&patch))?;
        if !maps {
            let named: BTreeSet<KeyValue> = patch.iter().cloned().map(KeyValue).collect();
            if deletes {
                let kept = live.into_iter().filter(|item| !named.contains(&KeyValue(item.clone())));
                return Ok(kept.collect());
            }
            let mut seen = BTreeSet::new();
            let mut merged = Vec::with_capacity(live.len() + patch.len());
            for item in live.iter().chain(&patch) {
                if seen.insert(KeyValue(item.clone())) {
                    merged.push(item.clone());
                }
            }
            return in_order(merged, &patch, &live, None);
        }
        let Some(key) = facts.key() else {
            return problem("a list of maps has no key to merge it by");
        };
        let (live, patch) = directives(live, patch, key)?;
        let mut merged = live.clone();
        let mut places = positions(&merged, Some(key));
        let t = self.element(facts.t);
        for item in &patch {
            let id = identified(item, Some(key))?;
            if let Some(place) = places.get(&id).copied().and_then(|place| merged.get_mut(place)) {
                *place = Value::Object(self.maps(as_map(place)?, as_map(item)?, t, depth + 1)?);
            } else {
                places.insert(id, merged.len());
                merged.push(item.clone());
            }
        }
        in_order(merged, &patch, &live, Some(key))
    }
}

/// Whether the items of a list are maps; they must all be of one kind, and neither lists nor null.
fn all_maps<'v>(items: impl Iterator<Item = &'v Value>) -> Merged<bool> {
    let mut first: Option<&Value> = None;
    for item in items {
        let alike = first.is_none_or(|first| std::mem::discriminant(first) == std::mem::discriminant(item));
        if !alike || item.is_array() || item.is_null() {
            return problem("a list mixes values of several kinds, or holds lists or null");
        }
        first = Some(item);
    }
    Ok(first.is_some_and(Value::is_object))
}

/// Carries out `$patch` items of a list: the live items that stay, and the patch items left to merge.
fn directives(mut live: Vec<Value>, patch: Vec<Value>, key: &str) -> Merged<(Vec<Value>, Vec<Value>)> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut deleted = BTreeSet::new();
    let mut replaces = false;
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            rest.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                deleted.insert(identified(&item, Some(key))?);
            }
            Some("replace") => replaces = true,
            _ => return problem("`$patch` of a list item must be `replace` or `delete`"),
        }
    }
    live.retain(|kept| identity(kept, Some(key)).is_none_or(|id| !deleted.contains(&id)));
    Ok(if replaces { (rest, Vec::new()) } else { (live, rest) })
}

/// What identifies an item of a list: its key, or the item itself.
fn identity(item: &Value, key: Option<&str>) -> Option<KeyValue> {
    match key {
        Some(key) => item.get(key).cloned().map(KeyValue),
        None => Some(KeyValue(item.clone())),
    }
}

/// Where in a list each item is first.
fn positions(list: &[Value], key: Option<&str>) -> BTreeMap<KeyValue, usize> {
    let mut positions = BTreeMap::new();
    for (index, item) in list.iter().enumerate() {
        if let Some(id) = identity(item, key) {
            positions.entry(id).or_insert(index);
        }
    }
    positions
}

fn list_at(entries: &Entries, name: &str) -> Merged<Option<Vec<Value>>> {
    match entries.get(name) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(_) => problem(format!("`{name}` is not a list")),
    }
}

/// Removes the live keys that `$retainKeys` does not name.
fn retain_keys(live: &mut Entries, patch: &mut Entries) -> Merged<()> {
    let Some(kept) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(kept) = kept else { return problem("`$retainKeys` is not a list") };
    let names = |name: &str| kept.iter().any(|value| value.as_str() == Some(name));
    for (name, value) in patch.iter() {
        let directive = name.starts_with(DELETE_VALUES) || name.starts_with(ELEMENT_ORDER);
        if !value.is_null() && !directive && !names(name) {
            return problem(format!("`$retainKeys` does not name `{name}`, which the patch sets"));
        }
    }
    live.retain(|name, _| names(name));
    Ok(())
}

/// Checks that the items a patch has for a list come in the order that it sets.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Merged<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut order = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let id = identified(item, key)?;
        loop {
            match order.next() {
                Some(wanted) if identified(wanted, key)? == id => break,
                Some(_) => {}
                None => return problem("the items of a list are not in the order the patch sets"),
            }
        }
    }
    Ok(())
}

fn identified(item: &Value, key: Option<&str>) -> Merged<KeyValue> {
    match identity(item, key) {
        Some(id) => Ok(id),
        None => problem("a list item has no key to merge it by"),
    }
}

/// Items that `order` names, in that order, with the others put in where the live order has them.
fn in_order(items: Vec<Value>, order: &[Value], live: &[Value], key: Option<&str>) -> Merged<Vec<Value>> {
    for item in order.iter().chain(live) {
        identified(item, key)?;
    }
    let (order, live) = (positions(order, key), positions(live, key));
    let mut named = Vec::with_capacity(items.len());
    let mut others = Vec::new();
    for item in items {
        let id = identified(&item, key)?;
        let at = live.get(&id).copied();
        match order.get(&id) {
            Some(place) => named.push((*place, at, item)),
            None => others.push((at.unwrap_or(usize::MAX), at, item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(place, ..)| *place);
    let mut result = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (named.peek(), others.peek()) {
            (None, None) => return Ok(result),
            (None, Some(_)) => true,
            (Some((_, Some(named), _)), Some((_, Some(other), _))) => other < named,
            (Some(_), _) => false,
        };
        let next = if other_first { others.next() } else { named.next() };
        result.extend(next.map(|(_, _, item)| item));
    }
}

/// A value of the patch that is taken as it is: maps with `$patch` in them are left out.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?))).collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::from_json(&json!({"types": {"T": {"fields": {
            "list": {"t": {"list": "#I", "type": "map", "keys": ["name"]}, "patchStrategy": "merge", "patchMergeKey": "name"},
            "set": {"t": {"list": "string", "type": "set"}, "patchStrategy": "merge"},
            "atom": {"t": {"list": "string", "type": "atomic"}},
            "whole": {"t": {"map": "string"}, "patchStrategy": "replace"},
            "how": {"t": {"map": "string"}, "patchStrategy": "retainKeys"}}},
            "I": {"fields": {"name": {"t": "string"}, "v": {"t": "number"}, "w": {"t": "number"}}}}}))
        .unwrap()
    }

    #[test]
    fn merges_by_strategy() {
        let live = json!({"list": [{"name": "a", "v": 1}, {"name": "b", "v": 2}], "set": ["x", "y"], "atom": ["1"],
                          "whole": {"a": "1"}, "how": {"type": "A", "x": "1"}});
        for (patch, pointer, wanted) in [
            (
                json!({"list": [{"name": "b", "w": 3}]}),
                "/list",
                json!([{"name": "a", "v": 1}, {"name": "b", "v": 2, "w": 3}]),
            ),
            (
                json!({"list": [{"name": "c"}, {"name": "a", "v": null}]}),
                "/list",
                json!([{"name": "c"}, {"name": "a"}, {"name": "b", "v": 2}]),
            ),
            (json!({"list": [{"name": "a", "$patch": "delete"}]}), "/list", json!([{"name": "b", "v": 2}])),
            (json!({"list": [{"$patch": "replace"}, {"name": "z"}]}), "/list", json!([{"name": "z"}])),
            (
                json!({"$setElementOrder/list": [{"name": "b"}, {"name": "a"}]}),
                "/list",
                json!([{"name": "b", "v": 2}, {"name": "a", "v": 1}]),
            ),
            (json!({"set": ["z", "x"]}), "/set", json!(["z", "x", "y"])),
            (json!({"$deleteFromPrimitiveList/set": ["x"]}), "/set", json!(["y"])),
            (json!({"atom": ["2"]}), "/atom", json!(["2"])),
            (json!({"whole": {"b": "2"}}), "/whole", json!({"b": "2"})),
            (json!({"how": {"$retainKeys": ["type"], "type": "B"}}), "/how", json!({"type": "B"})),
            (json!({"how": {"$patch": "replace", "z": "1"}}), "/how", json!({"z": "1"})),
            (json!({"how": {"$patch": "delete"}}), "/how", json!({})),
            (json!({"fresh": {"a": null, "b": [{"$patch": "delete"}]}}), "/fresh", json!({"b": []})),
        ] {
            let result = strategic_merge_patch(&schema(), "T", &live, &patch).unwrap();
            assert_eq!(result.pointer(pointer), Some(&wanted), "{patch}");
        }
    }

    #[test]
    fn refuses_what_cannot_be_merged() {
        let live = json!({"list": [{"name": "a"}], "how": {}});
        for (patch, wanted) in [
            (json!([]), "must be a JSON object"),
            (json!({"list": [{"v": 1}]}), "no key to merge it by"),
            (json!({"$setElementOrder/list": [{"name": "a"}], "list": [{"name": "b"}]}), "not in the order"),
            (json!({"$setElementOrder/other": []}), "no field `other`"),
            (json!({"list": ["x"]}), "mixes"),
            (json!({"how": {"$patch": "swap"}}), "`replace` or `delete`"),
            (json!({"how": {"$retainKeys": ["a"], "b": "1"}}), "does not name `b`"),
            (json!({"$setElementOrder/list": 1}), "not a list"),
        ] {
            let message = strategic_merge_patch(&schema(), "T", &live, &patch).unwrap_err().to_string();
            assert!(message.contains(wanted), "{message}");
        }
    }
}
