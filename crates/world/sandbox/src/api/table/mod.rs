//! Tables: objects as the rows that people see in `kubectl get`.
//!
//! The columns of the built-in kinds are typed by hand from `pkg/printers/internalversion/printers.go` of
//! `k8s.io/kubernetes` v1.35.4, those of OpenShift's from `pkg/printers` of its API server; a recording of a real server
//! can replace them.

mod age;
mod network;
mod openshift;
mod path;
mod plain;
mod pod;
mod storage;
mod workload;

use scantling_api::{KindFacts, object};
use serde_json::{Value, json};

use super::accept::Include;
use super::answer::metadata_only;

use age::{ago, human_duration, since};
pub(super) use path::JsonPath;

/// A column: name, type, and 0 if it is always shown or 1 if only in wide tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column(&'static str, &'static str, u8);

/// How the cells of a built-in kind are made.
type Cells = fn(&Value, jiff::Timestamp) -> Vec<Value>;

/// A printer column of a custom resource.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CustomColumn {
    /// Definition as tables carry it.
    pub(super) definition: Value,
    /// `date` columns show an age.
    pub(super) is_date: bool,
    /// Where the value stands.
    pub(super) path: JsonPath,
}

/// The columns of a kind.
#[derive(Clone, Debug)]
pub(super) enum Columns<'a> {
    /// A built-in kind.
    BuiltIn(&'static [Column], Cells),
    /// A custom resource with printer columns of its own.
    Custom(&'a [CustomColumn]),
    /// A custom resource without: name and age.
    NameAndAge,
    /// A built-in kind without: name and the time of its creation.
    NameAndTime,
}

const NAME: Column = Column("Name", "string", 0);
const AGE: Column = Column("Age", "string", 0);

/// The columns of a kind that is not a custom resource.
pub(super) fn built_in(facts: &KindFacts) -> Columns<'static> {
    let (group, kind) = (facts.gvk.group.as_str(), facts.gvk.kind.as_str());
    let found = workload::columns(group, kind)
        .or_else(|| network::columns(group, kind))
        .or_else(|| storage::columns(group, kind))
        .or_else(|| plain::columns(group, kind))
        .or_else(|| openshift::columns(group, kind));
    match found {
        Some((columns, cells)) => Columns::BuiltIn(columns, cells),
        None if matches!(group, "config.openshift.io" | "operator.openshift.io") => Columns::NameAndAge,
        None => Columns::NameAndTime,
    }
}

/// A table of objects.
pub(super) fn of<'v>(
    columns: &Columns<'_>,
    objects: impl Iterator<Item = &'v Value>,
    metadata: &Value,
    with_columns: bool,
    include: Include,
    now: jiff::Timestamp,
) -> Value {
    let rows: Vec<Value> = objects
        .map(|object| {
            let mut row = json!({"cells": cells(columns, object, now)});
            if let Some(condition) = pod::completed(object) {
                row["conditions"] = json!([condition]);
            }
            match include {
                Include::None => row["object"] = Value::Null,
                Include::Metadata => row["object"] = metadata_only(object),
                Include::Object => row["object"] = object.clone(),
            }
            row
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": if with_columns { json!(definitions(columns)) } else { Value::Null },
        "rows": rows,
    })
}

fn definitions(columns: &Columns<'_>) -> Vec<Value> {
    let definition = |Column(name, kind, priority): &Column| {
        let format = if *name == "Name" { "name" } else { "" };
        json!({"name": name, "type": kind, "format": format, "description": "", "priority": priority})
    };
    match columns {
        Columns::BuiltIn(columns, _) => columns.iter().map(definition).collect(),
        Columns::NameAndAge => vec![definition(&NAME), definition(&Column("Age", "date", 0))],
        Columns::NameAndTime => vec![definition(&NAME), definition(&Column("Created At", "date", 0))],
        Columns::Custom(columns) => std::iter::once(definition(&NAME))
            .chain(columns.iter().map(|column| column.definition.clone()))
            .collect(),
    }
}

fn cells(columns: &Columns<'_>, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let name = json!(object::name(object));
    match columns {
        Columns::BuiltIn(_, cells) => cells(object, now),
        Columns::NameAndAge => vec![name, since(object, now)],
        Columns::NameAndTime => {
            vec![name, object.pointer("/metadata/creationTimestamp").cloned().unwrap_or(Value::Null)]
        }
        Columns::Custom(columns) => {
            let custom = columns.iter().map(|column| {
                let found = column.path.first(object);
                match found {
                    Some(Value::String(time)) if column.is_date => json!(ago(time, now)),
                    Some(value @ (Value::Object(_) | Value::Array(_))) => json!(value.to_string()),
                    Some(value) => value.clone(),
                    None => Value::Null,
                }
            });
            std::iter::once(name).chain(custom).collect()
        }
    }
}

/// The text at a pointer, or another.
fn text_or<'v>(object: &'v Value, pointer: &str, otherwise: &'v str) -> &'v str {
    Some(object::text(object, pointer)).filter(|text| !text.is_empty()).unwrap_or(otherwise)
}

/// The integer at a pointer, 0 if there is none.
fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// The list at a pointer, empty if there is none.
fn items<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A scalar as text.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How many entries a mapping has.
fn count(object: &Value, pointer: &str) -> usize {
    object::mapping(object, pointer).map_or(0, serde_json::Map::len)
}

/// Names and images of the containers of a pod's spec, each separated by commas.
fn containers(pod_spec: Option<&Value>) -> [Value; 2] {
    let list = pod_spec.and_then(|spec| spec.get("containers")).and_then(Value::as_array);
    let texts = |field: &str| {
        let texts = list.into_iter().flatten().map(|container| object::text(container, field));
        json!(texts.collect::<Vec<_>>().join(","))
    };
    [texts("/name"), texts("/image")]
}

/// `a=b,c=d`, or `<none>`.
pub(super) fn labels(map: Option<&Value>) -> Value {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    let texts: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", plain_text(value))).collect();
    json!(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
}

/// A label selector as people write it.
pub(super) fn selector(selector: Option<&Value>) -> Value {
    let Some(selector) = selector else { return json!("<none>") };
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut texts: Vec<String> = equal.map(|(name, value)| format!("{name}={}", plain_text(value))).collect();
    for expression in items(selector, "/matchExpressions") {
        let key = object::text(expression, "/key");
        let mut values: Vec<String> = items(expression, "/values").iter().map(plain_text).collect();
        values.sort();
        let values = values.join(",");
        texts.push(match object::text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    // The selector is ordered by its keys.
    texts.sort();
    json!(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use scantling_api::Kinds;

    use super::*;

    #[test]
    fn every_kind_has_as_many_cells_as_columns() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        for facts in Kinds::kubernetes().iter().chain(Kinds::openshift().iter()) {
            for object in [json!({}), json!({"metadata": 1, "spec": [], "status": {"conditions": {}}})] {
                let columns = built_in(facts);
                let table = of(&columns, [&object].into_iter(), &json!({}), true, Include::None, now);
                let width = |pointer: &str| table.pointer(pointer).and_then(Value::as_array).unwrap().len();
                assert_eq!(width("/columnDefinitions"), width("/rows/0/cells"), "{}", facts.gvk);
            }
        }
    }

    #[test]
    fn selectors_are_written_as_people_write_them() {
        for (value, text) in [
            (json!({}), "<none>"),
            (json!({"matchLabels": {"b": "1", "a": "2"}}), "a=2,b=1"),
            (
                json!({"matchExpressions": [
                    {"key": "x", "operator": "NotIn", "values": ["c", "b"]},
                    {"key": "y", "operator": "DoesNotExist"},
                    {"key": "z", "operator": "Exists"},
                ]}),
                "!y,x notin (b,c),z",
            ),
        ] {
            assert_eq!(selector(Some(&value)), json!(text));
        }
        assert_eq!(selector(None), json!("<none>"));
    }
}
