//! Has an object been applied as it should be?

use scantling_api::object;
use scantling_image::Digest;
use serde_json::{Value, json};

use crate::action::{Action, MANAGER};

/// Holds the digest of what was applied last. Fields that are no longer wanted are seen by it: they are in the live object, and leaving
/// them out of a comparison by fields would keep them for ever.
pub(crate) const APPLIED: &str = "scantling.dev/applied";

/// Writes the digest of an object into it.
pub(crate) fn sealed(mut object: Value) -> Value {
    let digest = digest_of(&object);
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][APPLIED] = json!(digest);
    object
}

/// The digest of a value.
pub(crate) fn digest_of(value: &Value) -> String {
    Digest::of(value.to_string().as_bytes()).to_string()
}

/// Was this (sealed) object applied, and is it still so?
pub(crate) fn is_applied(wanted: &Value, live: &Value) -> bool {
    object::annotation(wanted, APPLIED) == object::annotation(live, APPLIED) && holds(live, wanted)
}

/// Does the live value have every wanted field? Servers add defaults, drop empty values and write quantities their own way; others add
/// items of their own to lists of objects (a sidecar), and merging may put those in another order.
fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| match live.get(key) {
                Some(live) => holds(live, wanted),
                None => is_empty(wanted),
            })
        }
        (Value::Array(live), Value::Array(wanted)) if wanted.iter().all(Value::is_object) => {
            wanted.iter().all(|wanted| live.iter().any(|live| holds(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| holds(live, wanted))
        }
        (Value::String(live), Value::String(wanted)) => live == wanted || is_same_quantity(live, wanted),
        // A quantity may be written as a number; the server gives it back as a text.
        (Value::String(live), Value::Number(wanted)) => is_same_quantity(live, &wanted.to_string()),
        (live, wanted) => live == wanted,
    }
}

fn is_same_quantity(live: &str, wanted: &str) -> bool {
    quantity(live).zip(quantity(wanted)).is_some_and(|(live, wanted)| live == wanted)
}

/// The apply of a sealed object, unless it is done already.
pub(crate) fn apply_unless_done(wanted: Value, live: Option<&Value>) -> Option<Action> {
    let done = live.is_some_and(|live| is_applied(&wanted, live));
    (!done).then(|| Action::Apply { object: wanted, manager: MANAGER.to_owned(), force: true })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

/// A resource quantity in thousandths, as far as it fits: `1`, `500m`, `1.5Gi`, `100M`.
pub(crate) fn quantity(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || whole.len() > 15 || fraction.len() > 3 {
        return None;
    }
    let thousandths: i128 = format!("{whole}{fraction:0<3}").parse().ok()?;
    let power = |base: i128, exponent: u32| base.checked_pow(exponent);
    let scale = match suffix {
        "m" => return (thousandths % 1000 == 0).then_some(thousandths / 1000),
        "" => 1,
        "k" => power(1000, 1)?,
        "M" => power(1000, 2)?,
        "G" => power(1000, 3)?,
        "T" => power(1000, 4)?,
        "P" => power(1000, 5)?,
        "Ki" => power(1024, 1)?,
        "Mi" => power(1024, 2)?,
        "Gi" => power(1024, 3)?,
        "Ti" => power(1024, 4)?,
        "Pi" => power(1024, 5)?,
        _ => return None,
    };
    thousandths.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn servers_write_things_their_own_way() {
        let wanted = json!({
            "a": {"cpu": "1000m", "memory": "1Gi"}, "list": [{"x": 1}, {"y": 1}], "args": ["a", "b"], "gone": [], "no": false,
            "number": {"cpu": 2, "half": 0.5},
        });
        let with = |a: &Value, list: &Value, args: &Value| json!({"a": a, "list": list, "args": args, "more": 1, "number": {"cpu": "2", "half": "500m"}});
        let (a, list, args) =
            (json!({"cpu": "1", "memory": "1024Mi"}), json!([{"x": 1}, {"y": 1}]), json!(["a", "b"]));
        for (live, same) in [
            (with(&a, &list, &args), true),
            (with(&a, &json!([{"y": 1, "d": 2}, {"z": 1}, {"x": 1}]), &args), true),
            (with(&a, &json!([{"x": 1}, {"y": "2"}]), &args), false),
            (with(&a, &json!([{"x": 1}]), &args), false),
            (with(&a, &list, &json!(["b", "a"])), false),
            (with(&a, &list, &json!(["a", "b", "c"])), false),
            (with(&json!({"cpu": "2", "memory": "1Gi"}), &list, &args), false),
            (with(&json!({"cpu": "1"}), &list, &args), false),
        ] {
            assert_eq!(holds(&live, &wanted), same, "{live}");
        }
    }

    #[test]
    fn a_field_that_is_no_longer_wanted_is_seen() {
        let metadata = json!({"name": "a"});
        let old = sealed(json!({"metadata": metadata, "spec": {"a": 1, "b": 2}}));
        let new = sealed(json!({"metadata": metadata, "spec": {"a": 1}}));
        assert!(is_applied(&old, &old));
        assert!(!is_applied(&new, &old));
    }
}
