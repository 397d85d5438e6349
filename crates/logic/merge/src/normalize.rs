//! The form in which a server keeps objects of built-in kinds.
//!
//! Such an object passes through the server's own type: quantities, times and encoded bytes are written in
//! their canonical form, fields that are always written get their zero value, empty ones that are omitted
//! disappear, and fields the type does not know are lost.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use scantling_api::schema::{FieldFacts, MapType, Scalar, Schema, TypeRef};
use serde_json::{Map, Value, json};

use crate::managers::{seconds, timestamp};
use crate::path::{Element, MAX_DEPTH};
use crate::quantity;
use crate::shape::{Shape, field_type, scalar_fits, shape};
use crate::validate::Misfit;

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// Fields that hold bytes, or maps of bytes, written in base64. Their schema says no more than text.
const BYTES: [(&str, &str); 8] = [
    ("io.k8s.api.core.v1.Secret", "data"),
    ("io.k8s.api.core.v1.ConfigMap", "binaryData"),
    ("io.k8s.api.admissionregistration.v1.WebhookClientConfig", "caBundle"),
    ("io.k8s.api.certificates.v1.CertificateSigningRequestSpec", "request"),
    ("io.k8s.api.certificates.v1.CertificateSigningRequestStatus", "certificate"),
    ("io.k8s.api.core.v1.SerializedReference", "data"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookClientConfig", "caBundle"),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec", "caBundle"),
];

/// Bits beyond the last byte are ignored, as the server's decoder does.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Brings `value` of type `t` into the form that is kept, or says what the server's type cannot hold.
pub(crate) fn normalize(schema: &Schema, t: &TypeRef, value: &mut Value) -> Result<(), Misfit> {
    Walk { schema, held: false }.walk(Some(t), value, Place::default())
}

/// Brings `value` into the form in which the server's type holds it when it compares it with another.
///
/// This is the form that is kept, except where lists are compared as one value: there an empty list or map
/// differs from none, and a quantity can differ from its canonical form.
pub(crate) fn as_held(schema: &Schema, t: &TypeRef, value: &mut Value) -> Result<(), Misfit> {
    Walk { schema, held: true }.walk(Some(t), value, Place::default())
}

/// Where in an object the walk is.
#[derive(Clone, Copy, Default)]
struct Place {
    depth: usize,
    /// Inside a value that is owned as one.
    atomic: bool,
    /// Inside a list that is compared as one value.
    whole: bool,
}

impl Place {
    fn inside(self, atomic: bool, list: bool) -> Self {
        let atomic = self.atomic || atomic;
        Self { depth: self.depth + 1, atomic, whole: self.whole || (list && atomic) }
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    held: bool,
}

impl Walk<'_> {
    fn walk(&self, t: Option<&TypeRef>, value: &mut Value, place: Place) -> Result<(), Misfit> {
        let schema = self.schema;
        if place.depth > MAX_DEPTH {
            return Err(Misfit::here(format!("nests deeper than {MAX_DEPTH}")));
        }
        let raw = self.held && place.whole;
        match t.and_then(TypeRef::name) {
            Some(QUANTITY) => return quantity_value(value, raw),
            Some(TIME) => return time_value(value),
            Some(INT_OR_STRING) if value.is_boolean() => {
                return Err(Misfit::here("expected a number or text"));
            }
            _ => {}
        }
        match (shape(schema, t, Some(value)), value) {
            (None, _) | (_, Value::Null) => Ok(()),
            (Some(Shape::Map(map, atomic)), Value::Object(entries)) => {
                let place = place.inside(atomic, false);
                if map.fields.is_empty() {
                    for (name, value) in entries.iter_mut() {
                        let t = field_type(map, name);
                        if value.is_null() {
                            *value = zero_of(schema, t);
                        }
                        let element = || Element::field(name.as_str());
                        self.walk(t, value, place).map_err(|misfit| misfit.under(&element()))?;
                    }
                    return Ok(());
                }
                self.structure(t.and_then(TypeRef::name).unwrap_or(""), map, entries, place)
            }
            (Some(Shape::List(list, atomic)), Value::Array(items)) => {
                let place = place.inside(atomic, true);
                for (index, item) in items.iter_mut().enumerate() {
                    if item.is_null() {
                        *item = zero_of(schema, Some(&list.element));
                    }
                    let element = || Element::Index(i64::try_from(index).unwrap_or(i64::MAX));
                    self.walk(Some(&list.element), item, place).map_err(|misfit| misfit.under(&element()))?;
                }
                Ok(())
            }
            (Some(Shape::Scalar(scalar)), value) if scalar_fits(scalar, value) => {
                whole_number(value);
                Ok(())
            }
            _ => Err(Misfit::here("the value has another form than its type")),
        }
    }

    fn structure(
        &self,
        type_name: &str,
        map: &MapType,
        entries: &mut Map<String, Value>,
        place: Place,
    ) -> Result<(), Misfit> {
        if map.element.is_none() {
            entries.retain(|name, _| map.fields.contains_key(name));
        }
        for (name, facts) in &map.fields {
            match entries.get_mut(name) {
                None | Some(Value::Null) => match &facts.zero {
                    Some(zero) => {
                        entries.insert(name.clone(), zero.clone());
                    }
                    None => {
                        entries.remove(name);
                    }
                },
                Some(value) => {
                    let done = if BYTES.contains(&(type_name, name.as_str())) {
                        bytes_value(value)
                    } else {
                        self.walk(Some(&facts.t), value, place)
                    };
                    done.map_err(|misfit| misfit.under(&Element::field(name.as_str())))?;
                    let kept = self.held && place.whole && (value.is_array() || value.is_object());
                    if !kept && omitted(facts, value) {
                        entries.remove(name);
                    }
                }
            }
        }
        Ok(())
    }
}

fn omitted(facts: &FieldFacts, value: &Value) -> bool {
    facts.omitzero
        && match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            Value::Bool(true) => false,
        }
}

/// What the server's type makes of a null in a list or in a map.
fn zero_of(schema: &Schema, t: Option<&TypeRef>) -> Value {
    if t.and_then(TypeRef::name) == Some(QUANTITY) {
        return json!("0");
    }
    match shape(schema, t, None) {
        Some(Shape::Scalar(Scalar::String)) => json!(""),
        Some(Shape::Scalar(Scalar::Number)) => json!(0),
        Some(Shape::Scalar(Scalar::Boolean)) => json!(false),
        Some(Shape::Map(map, _)) if !map.fields.is_empty() => json!({}),
        _ => Value::Null,
    }
}

/// The server's types write whole numbers without a fraction.
fn whole_number(value: &mut Value) {
    if let Value::Number(number) = value
        && !number.is_i64()
        && !number.is_u64()
        && let Some(float) = number.as_f64()
        && float.fract() == 0.0
        && let Ok(int) = format!("{float:.0}").parse::<i64>()
    {
        *number = int.into();
    }
}

/// `raw` keeps a quantity that the server's type holds in another way than its canonical form.
fn quantity_value(value: &mut Value, raw: bool) -> Result<(), Misfit> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => crate::value::number_text(number),
        _ => return Err(Misfit::here("expected a quantity, such as 500m or 2Gi")),
    };
    let Some(canonical) = quantity::canonical(&text) else {
        return Err(Misfit::here("expected a quantity, such as 500m or 2Gi"));
    };
    let kept = raw && !quantity::same_inside(&text, &canonical);
    *value = Value::String(if kept { text } else { canonical });
    Ok(())
}

/// Times are kept in UTC and whole seconds.
fn time_value(value: &mut Value) -> Result<(), Misfit> {
    let Value::String(text) = value else {
        return if value.is_null() { Ok(()) } else { Err(Misfit::here("expected a time")) };
    };
    let Some(seconds) = seconds(text) else {
        return Err(Misfit::here("expected an RFC 3339 time, such as 2024-01-31T12:00:00Z"));
    };
    *value = Value::String(timestamp(seconds));
    Ok(())
}

fn bytes_value(value: &mut Value) -> Result<(), Misfit> {
    match value {
        Value::Null => Ok(()),
        Value::Object(entries) => {
            for (name, value) in entries {
                bytes_value(value).map_err(|misfit| misfit.under(&Element::field(name.as_str())))?;
            }
            Ok(())
        }
        Value::String(text) => {
            let compact: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
            match BASE64.decode(compact) {
                Ok(bytes) => {
                    *text = BASE64.encode(bytes);
                    Ok(())
                }
                Err(_) => Err(Misfit::here("expected text in base64")),
            }
        }
        _ => Err(Misfit::here("expected text in base64")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn schema() -> Schema {
        Schema::from_json(&json!({"types": {
            "T": {"fields": {
                "always": {"t": "string", "zero": ""}, "n": {"t": "number", "omitzero": true},
                "list": {"t": {"list": "string", "type": "atomic"}, "zero": null},
                "map": {"t": {"map": "string"}, "omitzero": true}, "ptr": {"t": "#In"},
                "cpu": {"t": {"map": format!("#{QUANTITY}")}}, "at": {"t": format!("#{TIME}")},
                "port": {"t": format!("#{INT_OR_STRING}")}}},
            "In": {"fields": {"x": {"t": "number", "zero": 0}}},
            "io.k8s.api.core.v1.Secret": {"fields": {"data": {"t": {"map": "string"}}}},
            QUANTITY: "untyped", TIME: "untyped", INT_OR_STRING: "untyped"}}))
        .unwrap()
    }

    #[test]
    fn keeps_the_servers_form() {
        for (t, given, kept) in [
            ("T", json!({}), json!({"always": "", "list": null})),
            ("T", json!({"always": null, "n": 0, "list": [], "map": {}}), json!({"always": "", "list": []})),
            (
                "T",
                json!({"always": "a", "unknown": 1, "ptr": {}}),
                json!({"always": "a", "list": null, "ptr": {"x": 0}}),
            ),
            (
                "T",
                json!({"map": {"a": null}, "n": 2.0}),
                json!({"always": "", "list": null, "map": {"a": ""}, "n": 2}),
            ),
            (
                "T",
                json!({"cpu": {"a": "1000m", "b": 2, "c": null}, "at": "2024-01-01T01:00:00.5+01:00"}),
                json!({"always": "", "list": null, "cpu": {"a": "1", "b": "2", "c": "0"}, "at": "2024-01-01T00:00:00Z"}),
            ),
            (
                "io.k8s.api.core.v1.Secret",
                json!({"data": {"a": "YQ\n==", "b": null, "c": "YR=="}}),
                json!({"data": {"a": "YQ==", "b": null, "c": "YQ=="}}),
            ),
        ] {
            let mut value = given.clone();
            normalize(&schema(), &TypeRef::named(t), &mut value).unwrap();
            assert_eq!(value, kept, "{given}");
            normalize(&schema(), &TypeRef::named(t), &mut value).unwrap();
            assert_eq!(value, kept, "{given}, twice");
        }
    }

    #[test]
    fn holds_lists_apart_that_are_kept_alike() {
        let schema = Schema::from_json(&json!({"types": {
            "T": {"fields": {"list": {"t": {"list": "#In", "type": "atomic"}}, "one": {"t": "#In"}}},
            "In": {"fields": {"q": {"t": format!("#{QUANTITY}")}, "l": {"t": {"list": "string", "type": "set"}, "omitzero": true}}},
            QUANTITY: "untyped"}}))
        .unwrap();
        let item = json!({"q": "1024Mi", "l": []});
        let mut value = json!({"list": [item], "one": item});
        as_held(&schema, &TypeRef::named("T"), &mut value).unwrap();
        assert_eq!(value, json!({"list": [item], "one": {"q": "1Gi"}}));
        normalize(&schema, &TypeRef::named("T"), &mut value).unwrap();
        assert_eq!(value, json!({"list": [{"q": "1Gi"}], "one": {"q": "1Gi"}}));
    }

    #[test]
    fn refuses_what_the_type_cannot_hold() {
        for (t, given, wanted) in [
            ("T", json!({"cpu": {"a": "lots"}}), ".cpu.a: expected a quantity"),
            ("T", json!({"at": "noon"}), ".at: expected an RFC 3339 time"),
            ("T", json!({"port": true}), ".port: expected a number or text"),
            ("T", json!({"list": ["a", 1]}), ".list[1]: the value has another form"),
            ("T", json!({"ptr": "x"}), ".ptr: the value has another form"),
            ("io.k8s.api.core.v1.Secret", json!({"data": {"a": "%"}}), ".data.a: expected text in base64"),
        ] {
            let mut value = given.clone();
            let message = normalize(&schema(), &TypeRef::named(t), &mut value).unwrap_err().to_string();
            assert!(message.starts_with(wanted), "{message}");
        }
    }
}
