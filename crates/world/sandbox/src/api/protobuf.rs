//! Bodies in Protocol Buffers, as Go clients (kubectl's generators, operators) send built-in kinds.
//!
//! The envelope is `runtime.Unknown` of `k8s.io/apimachinery` behind four magic bytes; the numbers of the fields come
//! with the facts about the types. Only requests are read; answers are JSON, which every client takes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::schema::{ATOMIC, FieldFacts, Scalar, Schema, TypeDef, TypeRef};
use scantling_api::{GroupVersionKind, Wire, WireField, WireMessage};
use serde_json::{Map, Value, json};

use super::Status;

/// Media type of these bodies.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// First bytes of every body.
const MAGIC: &[u8] = b"k8s\0";
/// Deepest nesting of messages.
const MAX_DEPTH: usize = 100;
/// Bodies of deletions are of this type in every group.
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Types that have a form of their own in JSON.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const FIELDS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

/// Reads a body.
pub(super) fn read(bytes: &[u8]) -> Result<Value, Status> {
    envelope(bytes, 0).map_err(|Broken(problem)| {
        Status::bad_request(format!("the object provided is unrecognized: protobuf: {problem}"))
    })
}

/// Why bytes cannot be read.
struct Broken(String);

fn broken<T>(problem: impl Into<String>) -> Result<T, Broken> {
    Err(Broken(problem.into()))
}

/// One field as it stands in a message.
enum Wired<'b> {
    Number(u64),
    Double(f64),
    Bytes(&'b [u8]),
}

/// The fields of a message in their order.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn varint(&mut self) -> Result<u64, Broken> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some((byte, rest)) = self.0.split_first() else { return broken("a number is cut off") };
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        broken("a number is too long")
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], Broken> {
        let Some((taken, rest)) = self.0.split_at_checked(length) else {
            return broken("a field is cut off");
        };
        self.0 = rest;
        Ok(taken)
    }

    fn next(&mut self) -> Result<Option<(u32, Wired<'b>)>, Broken> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let Ok(number) = u32::try_from(tag >> 3) else { return broken("a field's number is too large") };
        let value = match tag & 7 {
            0 => Wired::Number(self.varint()?),
            1 => Wired::Double(f64::from_le_bytes(self.take(8)?.try_into().unwrap_or_default())),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                Wired::Bytes(self.take(length)?)
            }
            5 => {
                let bytes: [u8; 4] = self.take(4)?.try_into().unwrap_or_default();
                Wired::Double(f64::from(f32::from_le_bytes(bytes)))
            }
            other => return broken(format!("field {number} has the unknown form {other}")),
        };
        Ok(Some((number, value)))
    }

    /// The bytes of the last field of a number; empty if there is none.
    fn bytes_of(mut self, wanted: u32) -> Result<&'b [u8], Broken> {
        let mut found: &[u8] = &[];
        while let Some((number, value)) = self.next()? {
            if let (true, Wired::Bytes(bytes)) = (number == wanted, value) {
                found = bytes;
            }
        }
        Ok(found)
    }

    /// The number in the last field of a number; 0 if there is none.
    fn number_of(mut self, wanted: u32) -> Result<u64, Broken> {
        let mut found = 0;
        while let Some((number, value)) = self.next()? {
            if let (true, Wired::Number(value)) = (number == wanted, value) {
                found = value;
            }
        }
        Ok(found)
    }
}

fn envelope(bytes: &[u8], depth: usize) -> Result<Value, Broken> {
    let Some(unknown) = bytes.strip_prefix(MAGIC) else { return broken("the magic bytes are missing") };
    let kind = Fields(unknown).bytes_of(1)?;
    let raw = Fields(unknown).bytes_of(2)?;
    let api_version = text(Fields(kind).bytes_of(1)?)?;
    let kind = text(Fields(kind).bytes_of(2)?)?;
    let gvk = GroupVersionKind::from_api_version(&api_version, &kind);
    let schema = Schema::kubernetes();
    let type_name = match schema.type_of(&gvk.group, &gvk.version, &gvk.kind) {
        Some(name) => name,
        None if kind == "DeleteOptions" => DELETE_OPTIONS,
        None => return broken(format!("no kind \"{kind}\" is registered for version \"{api_version}\"")),
    };
    let mut object = message(type_name, raw, depth)?;
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".into(), json!(api_version));
        fields.insert("kind".into(), json!(kind));
    }
    Ok(object)
}

fn text(bytes: &[u8]) -> Result<String, Broken> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => broken("a text is not UTF-8"),
    }
}

/// A message of a named type.
fn message(type_name: &str, bytes: &[u8], depth: usize) -> Result<Value, Broken> {
    if depth > MAX_DEPTH {
        return broken("messages nest too deep");
    }
    if let Some(value) = special(type_name, bytes, depth)? {
        return Ok(value);
    }
    let def = Schema::kubernetes().type_def(type_name);
    let (Some(def), Some(numbers)) = (def, Wire::kubernetes().message(type_name)) else {
        return broken(format!("the form of {type_name} is not known"));
    };
    let mut object = Map::new();
    fill(def, numbers, bytes, &mut object, depth)?;
    if let Some(map) = &def.map {
        object.retain(|name, value| map.fields.get(name).is_none_or(|facts| !is_left_out(facts, value)));
    }
    Ok(Value::Object(object))
}

/// Go writes every field that is no pointer, set or not; what its JSON would leave out is left out here, too.
fn is_left_out(facts: &FieldFacts, value: &Value) -> bool {
    let zero = match value {
        Value::Null => return true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    };
    facts.omitzero && zero
}

fn fill(
    def: &TypeDef,
    numbers: &WireMessage,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), Broken> {
    if depth > MAX_DEPTH {
        return broken("messages nest too deep");
    }
    let mut fields = Fields(bytes);
    while let Some((number, wired)) = fields.next()? {
        match (numbers.get(&number), wired) {
            (Some(WireField::Inline(inner)), Wired::Bytes(bytes)) => {
                fill(def, inner, bytes, object, depth + 1)?;
            }
            (Some(WireField::Field { name, bytes }), wired) => {
                let facts = def.map.as_ref().and_then(|map| map.fields.get(name));
                if let Some(facts) = facts {
                    let slot = object.entry(name.clone()).or_insert(Value::Null);
                    add(&facts.t, *bytes, &wired, slot, depth + 1)?;
                }
            }
            // A newer client's field is unknown to this version.
            _ => {}
        }
    }
    Ok(())
}

/// Adds what one field holds to the value of the field: another item, another entry, or the value itself.
fn add(t: &TypeRef, bytes: bool, wired: &Wired<'_>, slot: &mut Value, depth: usize) -> Result<(), Broken> {
    let named = t.name().is_some_and(|name| Wire::kubernetes().message(name).is_some());
    let def = Schema::kubernetes().resolve(t).filter(|_| !named);
    match def {
        Some(TypeDef { list: Some(list), map: None, .. }) => {
            if !slot.is_array() {
                *slot = json!([]);
            }
            let Some(items) = slot.as_array_mut() else { return Ok(()) };
            let number = Schema::kubernetes().resolve(&list.element).and_then(|def| def.scalar)
                == Some(Scalar::Number);
            if let (true, Wired::Bytes(packed)) = (number, wired) {
                let mut packed = Fields(packed);
                while !packed.0.is_empty() {
                    items.push(integer(packed.varint()?));
                }
                return Ok(());
            }
            items.push(single(&list.element, bytes, wired, depth)?);
            Ok(())
        }
        Some(TypeDef { map: Some(map), list: None, .. }) if map.fields.is_empty() => {
            let (Some(element), Wired::Bytes(entry)) = (&map.element, wired) else { return Ok(()) };
            let key = text(Fields(entry).bytes_of(1)?)?;
            let value = entry_value(element, bytes, entry, depth)?;
            if !slot.is_object() {
                *slot = json!({});
            }
            if let Some(entries) = slot.as_object_mut() {
                entries.insert(key, value);
            }
            Ok(())
        }
        _ => {
            *slot = single(t, bytes, wired, depth)?;
            Ok(())
        }
    }
}

/// The value of an entry of a map: its field 2.
fn entry_value(element: &TypeRef, bytes: bool, entry: &[u8], depth: usize) -> Result<Value, Broken> {
    let mut fields = Fields(entry);
    let mut value = None;
    while let Some((number, wired)) = fields.next()? {
        if number == 2 {
            value = Some(wired);
        }
    }
    let def = Schema::kubernetes().resolve(element);
    match (def, value) {
        // A list as a value is a message with the items in field 1.
        (Some(TypeDef { list: Some(_), map: None, .. }), Some(Wired::Bytes(list))) => {
            let mut slot = json!([]);
            let mut items = Fields(list);
            while let Some((_, wired)) = items.next()? {
                add(element, bytes, &wired, &mut slot, depth + 1)?;
            }
            Ok(slot)
        }
        (_, Some(wired)) => single(element, bytes, &wired, depth),
        (_, None) => single(element, bytes, &Wired::Bytes(&[]), depth),
    }
}

/// One value.
fn single(t: &TypeRef, bytes: bool, wired: &Wired<'_>, depth: usize) -> Result<Value, Broken> {
    let scalar = Schema::kubernetes().resolve(t).and_then(|def| def.scalar);
    match wired {
        Wired::Number(number) if scalar == Some(Scalar::Boolean) => Ok(json!(*number != 0)),
        Wired::Number(number) => Ok(integer(*number)),
        Wired::Double(number) => Ok(json!(number)),
        Wired::Bytes(raw) => match t.name() {
            Some(ATOMIC) => raw_object(raw, depth),
            Some(name) => message(name, raw, depth + 1),
            None if bytes => Ok(json!(STANDARD.encode(raw))),
            None => text(raw).map(Value::String),
        },
    }
}

/// Numbers are signed; negative ones are written with all 64 bits.
fn integer(number: u64) -> Value {
    json!(number.cast_signed())
}

/// An object within an object: `RawExtension`.
fn raw_object(bytes: &[u8], depth: usize) -> Result<Value, Broken> {
    let raw = Fields(bytes).bytes_of(1)?;
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    if raw.starts_with(MAGIC) {
        return envelope(raw, depth + 1);
    }
    json_text(raw)
}

fn json_text(raw: &[u8]) -> Result<Value, Broken> {
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw).or_else(|error| broken(format!("JSON within a message: {error}")))
}

/// Types that have a form of their own in JSON.
fn special(type_name: &str, bytes: &[u8], depth: usize) -> Result<Option<Value>, Broken> {
    let fields = || Fields(bytes);
    Ok(Some(match type_name {
        QUANTITY => Value::String(text(fields().bytes_of(1)?)?),
        TIME | MICRO_TIME => {
            let (seconds, nanos) =
                (fields().number_of(1)?.cast_signed(), fields().number_of(2)?.cast_signed());
            if bytes.is_empty() || (seconds, nanos) == (0, 0) {
                return Ok(Some(Value::Null));
            }
            let nanos = i32::try_from(nanos).unwrap_or(0);
            let Ok(time) = jiff::Timestamp::new(seconds, nanos) else {
                return broken("a time is out of range");
            };
            let format = if type_name == TIME { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
            Value::String(time.strftime(format).to_string())
        }
        INT_OR_STRING if fields().number_of(1)? == 0 => integer(fields().number_of(2)?),
        INT_OR_STRING => Value::String(text(fields().bytes_of(3)?)?),
        FIELDS => json_text(fields().bytes_of(1)?)?,
        _ => {
            let Some(name) = type_name.strip_prefix(EXTENSIONS) else { return Ok(None) };
            let schema = format!("{EXTENSIONS}JSONSchemaProps");
            let one = fields().bytes_of(if name == "JSONSchemaPropsOrBool" { 2 } else { 1 })?;
            match name {
                "JSON" => json_text(one)?,
                "JSONSchemaPropsOrBool" if one.is_empty() => json!(fields().number_of(1)? != 0),
                "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" if one.is_empty() => {
                    let mut all = fields();
                    let mut items = Vec::new();
                    while let Some((number, wired)) = all.next()? {
                        match (number, wired, name) {
                            (2, Wired::Bytes(item), "JSONSchemaPropsOrArray") => {
                                items.push(message(&schema, item, depth + 1)?);
                            }
                            (2, Wired::Bytes(item), _) => items.push(Value::String(text(item)?)),
                            _ => {}
                        }
                    }
                    Value::Array(items)
                }
                "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => {
                    message(&schema, one, depth + 1)?
                }
                _ => return Ok(None),
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    /// A field of bytes.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        bytes.extend(content);
        bytes
    }

    fn number(number: u8, value: u8) -> Vec<u8> {
        vec![number << 3, value]
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let kind = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &kind), field(2, raw)].concat()
    }

    #[test]
    fn objects_are_read_as_their_json_would_be() {
        let name = field(1, &field(1, b"x"));
        let entry = |key: &str, value: &[u8]| [field(1, key.as_bytes()), field(2, value)].concat();
        for (bytes, object) in [
            (
                body(
                    "v1",
                    "Secret",
                    &[name.clone(), field(2, &entry("a", b"b\xff")), field(3, b"")].concat(),
                ),
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": {"a": "Yv8="}}),
            ),
            (
                // Replicas, and a template whose container has a port that is a number.
                body(
                    "apps/v1",
                    "Deployment",
                    &field(
                        2,
                        &[
                            number(1, 3),
                            field(
                                3,
                                &field(2, &field(2, &[field(1, b"c"), field(6, &number(3, 80))].concat())),
                            ),
                        ]
                        .concat(),
                    ),
                ),
                json!({"apiVersion": "apps/v1", "kind": "Deployment",
                    "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}}}}),
            ),
            (
                // An inlined source, and a quantity in a map.
                body(
                    "v1",
                    "Pod",
                    &field(
                        2,
                        &field(
                            1,
                            &[field(1, b"v"), field(2, &field(2, &field(2, &field(1, b"1Gi"))))].concat(),
                        ),
                    ),
                ),
                json!({"apiVersion": "v1", "kind": "Pod", "spec": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]}}),
            ),
            (
                body(
                    "policy/v1",
                    "PodDisruptionBudget",
                    &field(2, &field(1, &[number(1, 1), field(3, b"50%")].concat())),
                ),
                json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": "50%"}}),
            ),
            (
                body("apps/v1", "DeleteOptions", &number(1, 5)),
                json!({"apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 5}),
            ),
        ] {
            assert_eq!(read(&bytes).unwrap(), object);
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for bytes in [
            b"".to_vec(),
            b"{}".to_vec(),
            body("v1", "NoSuch", b""),
            body("v1", "Pod", &[0xff]),
            body("v1", "Pod", &[0x0a, 0x7f]),
        ] {
            assert_eq!(read(&bytes).unwrap_err().code, 400);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(raw in proptest::collection::vec(any::<u8>(), 0..120), kind in 0..4_usize) {
            let (api_version, kind) = [("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "Secret"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")][kind];
            if let Err(status) = read(&body(api_version, kind, &raw)) {
                prop_assert_eq!(status.code, 400);
            }
        }
    }
}
