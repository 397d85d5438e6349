//! Properties that hold for every object: applies are idempotent, encodings round-trip, and nothing panics.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use scantling_api::schema::Schema;
use scantling_merge::{
    FieldSet, MergeError, Path, Request, Store, apply, field_owners, json_patch, leaves_of, merge_patch,
    owner_of, remove_at, strategic_merge_patch, update, value_at,
};
use serde_json::{Map, Value, json};

/// A kind with every form of list and map.
fn schema() -> Schema {
    Schema::from_json(&json!({
        "kinds": {"x.io/v1/Thing": {"type": "Thing", "status": true}, "x.io/v2/Thing": {"type": "Thing"}},
        "types": {
            "Thing": {"fields": {
                "apiVersion": {"t": "string"}, "kind": {"t": "string"},
                "metadata": {"t": {"fields": {"name": {"t": "string"}, "uid": {"t": "string"},
                    "managedFields": {"t": {"list": "#Any", "type": "atomic"}},
                    "labels": {"t": {"map": "string"}}, "annotations": {"t": {"map": "string"}}}}},
                "spec": {"t": "#Spec", "zero": {"n": 0}}, "status": {"t": {"map": "string"}, "omitzero": true}}},
            "Spec": {"fields": {
                "n": {"t": "number", "zero": 0}, "text": {"t": "string", "omitzero": true},
                "set": {"t": {"list": "string", "type": "set"}, "patchStrategy": "merge"},
                "items": {"t": {"list": "#Item", "type": "map", "keys": ["key", "proto"], "nullable": true},
                          "patchStrategy": "merge", "patchMergeKey": "key"},
                "args": {"t": {"list": "string", "type": "atomic"}},
                "free": {"t": {"map": "string"}},
                "any": {"t": "#Any"},
                "atom": {"t": {"fields": {"a": {"t": "number"}}, "atomic": true}}}},
            "Item": {"fields": {"key": {"t": "string"}, "proto": {"t": "string", "default": "TCP"},
                                "v": {"t": "number"}, "in": {"t": "#Spec"}}},
            "Any": {"scalar": "untyped", "list": "#Any", "type": "atomic", "map": "#Any"}}
    }))
    .unwrap()
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "b", "c.d/e", "~", "\"", "é"]).prop_map(str::to_owned)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    let name = prop_oneof![
        text(),
        prop::sample::select(vec![
            "spec",
            "items",
            "set",
            "any",
            "args",
            "key",
            "proto",
            "v",
            "in",
            "metadata",
            "managedFields",
            "labels",
            "status",
            "apiVersion",
            "kind",
            "manager",
            "operation",
            "fieldsType",
            "fieldsV1",
            "time",
            "f:spec",
            ".",
            "k:{\"key\":\"a\"}",
            "v:1",
            "$patch",
            "$retainKeys",
            "$setElementOrder/items",
            "op",
            "path",
            "value",
            "from",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(name.clone(), inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A spec that fits the type.
fn spec() -> impl Strategy<Value = Value> {
    let number = || (0i64..3).prop_map(Value::from);
    let item = (prop::sample::select(vec!["TCP", "UDP"]), proptest::option::of(number()), any::<bool>());
    let items = btree_map(prop::sample::select(vec!["a", "b", "c", "d"]), item, 0..4).prop_map(|items| {
        let mut list: Vec<Value> = Vec::new();
        for (key, (proto, v, written)) in items {
            let mut item = json!({"key": key});
            if written || proto != "TCP" {
                item["proto"] = json!(proto);
            }
            if let Some(v) = v {
                item["v"] = v;
            }
            list.push(item);
        }
        Value::Array(list)
    });
    let set =
        proptest::sample::subsequence(vec!["x", "y", "z"], 0..=3).prop_shuffle().prop_map(|set| json!(set));
    let free =
        btree_map(prop::sample::select(vec!["a", "b.c", "d/e"]), "[xy]", 0..3).prop_map(|map| json!(map));
    let fields = (
        proptest::option::of(number()),
        proptest::option::of(set),
        proptest::option::of(items),
        proptest::option::of(vec("[ab]", 0..3).prop_map(|args| json!(args))),
        proptest::option::of(free),
        proptest::option::of(prop_oneof![
            number(),
            Just(json!({"a": {"b": 1}})),
            Just(json!([1, {"c": 2}])),
            Just(Value::Null)
        ]),
        proptest::option::of(number().prop_map(|a| json!({"a": a}))),
    );
    fields.prop_map(|(n, set, items, args, free, any, atom)| {
        let mut spec = Map::new();
        for (name, value) in [
            ("n", n),
            ("set", set),
            ("items", items),
            ("args", args),
            ("free", free),
            ("any", any),
            ("atom", atom),
        ] {
            if let Some(value) = value {
                spec.insert(name.to_owned(), value);
            }
        }
        Value::Object(spec)
    })
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
}

fn request<'a>(schema: &'a Schema, manager: &'a str, store: Store, minute: u8) -> Request<'a> {
    const TIMES: [&str; 4] =
        ["2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z", "2024-01-01T00:02:00Z", "2024-01-01T00:03:00Z"];
    let mut request = Request::new(schema, "x.io/v1", "Thing", manager, TIMES[usize::from(minute) % 4]);
    request.store = store;
    request
}

fn without_ownership(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    object
}

fn fields_of(object: &Value, manager: &str) -> FieldSet {
    field_owners(object)
        .into_iter()
        .filter(|owner| owner.manager == manager)
        .fold(FieldSet::new(), |all, owner| all.union(&owner.fields))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_apply_is_idempotent(first in spec(), other in spec()) {
        let schema = schema();
        let live = apply(&request(&schema, "b", Store::Json, 0), None, &thing(&other), false).unwrap();
        let once = apply(&request(&schema, "a", Store::Json, 1), Some(&live), &thing(&first), true).unwrap();
        let twice = apply(&request(&schema, "a", Store::Json, 2), Some(&once), &thing(&first), false).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn an_applied_value_is_in_the_object(mine in spec(), other in spec()) {
        let schema = schema();
        let live = apply(&request(&schema, "b", Store::Json, 0), None, &thing(&other), false).unwrap();
        let object = apply(&request(&schema, "a", Store::Json, 1), Some(&live), &thing(&mine), true).unwrap();
        for path in leaves_of(&schema, "Thing", &thing(&mine)).leaves().paths() {
            let applied = thing(&mine);
            let wanted = value_at(&schema, "Thing", &applied, &path);
            // Null and the empty map do not replace a map that has keys.
            if wanted.is_none_or(|wanted| !wanted.is_object() && !wanted.is_null()) {
                prop_assert_eq!(value_at(&schema, "Thing", &object, &path), wanted, "{}", path);
                let mut without = object.clone();
                let removed = remove_at(&schema, "Thing", &mut without, &path);
                prop_assert_eq!(removed.as_ref(), wanted, "{}", path);
            }
        }
    }

    #[test]
    fn a_field_goes_with_its_only_owner(mut mine in spec(), mut other in spec()) {
        // No one owns an empty list, so that it goes with what is around it, even if that is owned.
        for spec in [&mut mine, &mut other] {
            spec.as_object_mut().unwrap().retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
        }
        let schema = schema();
        let live = apply(&request(&schema, "b", Store::Json, 0), None, &thing(&other), false).unwrap();
        let both = apply(&request(&schema, "a", Store::Json, 1), Some(&live), &thing(&mine), true).unwrap();
        let left = apply(&request(&schema, "a", Store::Json, 2), Some(&both), &thing(&json!({})), true).unwrap();
        let (was, kept) = (fields_of(&both, "a"), fields_of(&both, "b"));
        for path in was.difference(&kept).leaves().paths() {
            if !kept.touches(&path) {
                prop_assert!(value_at(&schema, "Thing", &left, &path).is_none(), "{} is still in {}", path, left);
            }
        }
        for path in kept.paths() {
            prop_assert!(value_at(&schema, "Thing", &left, &path).is_some(), "{} is gone from {}", path, left);
        }
    }

    #[test]
    fn force_moves_ownership(mine in spec(), other in spec()) {
        let schema = schema();
        let live = apply(&request(&schema, "b", Store::Json, 0), None, &thing(&other), false).unwrap();
        let polite = apply(&request(&schema, "a", Store::Json, 1), Some(&live), &thing(&mine), false);
        let forced = apply(&request(&schema, "a", Store::Json, 1), Some(&live), &thing(&mine), true).unwrap();
        match polite {
            Ok(object) => prop_assert_eq!(object, forced),
            Err(MergeError::Conflicts(conflicts)) => {
                prop_assert!(!conflicts.is_empty());
                for conflict in conflicts {
                    prop_assert_eq!(conflict.manager.as_str(), "b");
                    prop_assert!(fields_of(&live, "b").contains(&conflict.field));
                    prop_assert!(!fields_of(&forced, "b").contains(&conflict.field));
                }
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn an_update_takes_what_it_changes(before in spec(), after in spec()) {
        let schema = schema();
        let live = apply(&request(&schema, "a", Store::Json, 0), None, &thing(&before), false).unwrap();
        let object = update(&request(&schema, "b", Store::Json, 1), Some(&live), &thing(&after)).unwrap();
        prop_assert_eq!(without_ownership(&object), thing(&after));
        let (a, b) = (fields_of(&object, "a"), fields_of(&object, "b"));
        prop_assert!(a.intersection(&b).is_empty(), "{} and {}", a, b);
        if before == after {
            prop_assert_eq!(object, live);
        }
    }

    #[test]
    fn every_leaf_of_a_created_object_has_its_creator(spec in spec()) {
        let schema = schema();
        let object = update(&request(&schema, "a", Store::Json, 0), None, &thing(&spec)).unwrap();
        for path in leaves_of(&schema, "Thing", &json!({"spec": spec})).paths() {
            prop_assert_eq!(owner_of(&object, &path), ["a"], "{}", path);
        }
    }

    #[test]
    fn the_kept_form_is_stable(first in spec()) {
        let schema = schema();
        let object = apply(&request(&schema, "a", Store::Typed, 0), None, &thing(&first), false).unwrap();
        let again = update(&request(&schema, "b", Store::Typed, 1), Some(&object), &object).unwrap();
        prop_assert_eq!(object, again);
    }

    #[test]
    fn field_sets_round_trip(json in any_json(), spec in spec()) {
        if let Ok(set) = FieldSet::from_fields_v1(&json) {
            prop_assert_eq!(&FieldSet::from_fields_v1(&set.to_fields_v1()).unwrap(), &set);
            let again: FieldSet = set.paths().into_iter().collect();
            prop_assert_eq!(again, set);
        }
        let leaves = leaves_of(&schema(), "Thing", &thing(&spec));
        prop_assert_eq!(&FieldSet::from_fields_v1(&leaves.to_fields_v1()).unwrap(), &leaves);
        for path in leaves.paths() {
            prop_assert_eq!(&format!("{path:#}").parse::<Path>().unwrap(), &path);
        }
    }

    #[test]
    fn paths_are_read_or_refused(text in "[.a\\[\\]=\"0,\\\\-]{0,16}") {
        if let Ok(path) = text.parse::<Path>() {
            prop_assert_eq!(format!("{path:#}").parse::<Path>().unwrap(), path);
        }
    }

    #[test]
    fn nothing_panics(live in any_json(), body in any_json(), typed in any::<bool>(), status in any::<bool>()) {
        let schema = schema();
        let store = if typed { Store::Typed } else { Store::Json };
        let mut request = request(&schema, "kubectl", store, 0);
        if status {
            request = request.to_subresource("status");
        }
        let mut named = body.clone();
        if let Some(map) = named.as_object_mut() {
            map.insert("apiVersion".into(), json!("x.io/v1"));
            map.insert("kind".into(), json!("Thing"));
        }
        for body in [&body, &named] {
            for force in [false, true] {
                let _ = apply(&request, Some(&live), body, force);
            }
            let _ = apply(&request, None, body, false);
            let _ = update(&request, Some(&live), body);
            let _ = merge_patch(&live, body);
            let _ = json_patch(&live, body);
            let _ = strategic_merge_patch(&schema, "Thing", &live, body);
        }
        let _ = field_owners(&live);
        let _ = Schema::from_json(&live);
        let _ = Schema::from_crd(&live);
    }
}

#[test]
fn endless_nesting_is_refused() {
    let mut deep = json!({});
    for _ in 0..2_000 {
        deep = json!({"a": deep});
    }
    let schema = Schema::deduced();
    let request = Request::new(&schema, "x.io/v1", "Thing", "a", "2024-01-01T00:00:00Z");
    let body = json!({"apiVersion": "x.io/v1", "kind": "Thing", "spec": deep});
    assert_eq!(apply(&request, None, &body, false).unwrap_err().code(), 500);
    assert!(update(&request, None, &body).is_err());
    assert!(merge_patch(&json!({}), &body).is_err());
    // The value is taken apart level by level: dropping it whole would need a deep stack as well.
    let mut rest = deep;
    while let Some(inner) = rest.get_mut("a").map(Value::take) {
        rest = inner;
    }
}

#[test]
fn two_thousand_keys_take_no_quadratic_time() {
    let data: Map<String, Value> = (0..2_000).map(|i| (format!("key-{i:05}"), json!("value"))).collect();
    let schema = Schema::deduced();
    let request = |manager| Request::new(&schema, "v1", "Big", manager, "2024-01-01T00:00:00Z");
    let body = json!({"apiVersion": "v1", "kind": "Big", "metadata": {"name": "x"}, "data": data});
    let mut live = apply(&request("a"), None, &body, false).unwrap();
    for round in 0..5 {
        let mut body = body.clone();
        body["data"].as_object_mut().unwrap().remove(&format!("key-{round:05}"));
        live = apply(&request("a"), Some(&live), &body, false).unwrap();
        assert_eq!(live["data"].as_object().unwrap().len(), 1_999);
    }
}
