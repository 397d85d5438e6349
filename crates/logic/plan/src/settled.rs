//! When a value in the cluster is what the release wants, although the server has filled in more.

use serde_json::Value;

/// Whether `live` is what was asked for with `desired`.
///
/// Servers complete what they store: inside a list that is merged as one value (`atomic`), every item may come back
/// with defaults. Such additions are not a difference. What we wrote ourselves earlier, and no longer want, is: a
/// field that is in `base` (what was last applied) but not in `desired` must be gone.
pub(crate) fn settled(live: &Value, desired: &Value, base: Option<&Value>) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            desired.iter().all(|(key, wanted)| match live.get(key) {
                Some(found) => settled(found, wanted, base.and_then(|b| b.get(key))),
                // An empty value and an absent one are the same to a server that drops empty fields.
                None => empty(wanted),
            }) && live
                .keys()
                .all(|key| desired.contains_key(key) || base.is_none_or(|b| b.get(key).is_none_or(empty)))
        }
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len()
                && live
                    .iter()
                    .zip(desired)
                    .enumerate()
                    .all(|(index, (found, wanted))| settled(found, wanted, base.and_then(|b| b.get(index))))
        }
        (Value::Number(live), Value::Number(desired)) => live == desired || live.as_f64() == desired.as_f64(),
        _ => live == desired,
    }
}

fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_server_adds_is_no_difference_and_what_we_dropped_is() {
        let cases = [
            (json!("a"), json!("a"), None, true),
            (json!("a"), json!("b"), None, false),
            (json!(1), json!(1.0), None, true),
            (json!([{"n": 1, "generation": 2}]), json!([{"n": 1}]), None, true),
            (json!([{"n": 1}, {"n": 2}]), json!([{"n": 1}]), None, false),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"a": 1, "b": 2})), false),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"a": 0})), true),
            (json!({"a": 1}), json!({"a": 1, "e": {}}), None, true),
            (json!({"a": 1}), json!({"a": 1, "e": {"x": 1}}), None, false),
        ];
        for (live, desired, base, expected) in cases {
            assert_eq!(settled(&live, &desired, base.as_ref()), expected, "{live} {desired} {base:?}");
        }
    }
}
