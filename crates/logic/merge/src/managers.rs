//! The entries of `metadata.managedFields`: who owns which fields, in which order they are kept, and how
//! many of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::set::FieldSet;

/// Most entries of updaters; above it the oldest are merged into one.
const MAX_UPDATERS: usize = 10;
/// Manager of the entry that the oldest updates are merged into.
const ANCIENT: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Create, update or another kind of patch.
    Update,
}

impl Operation {
    /// The word used in `managedFields`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells entries apart. The API version counts for updates only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerId {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) subresource: String,
    /// Empty for [`Operation::Apply`].
    pub(crate) api_version: String,
}

impl ManagerId {
    pub(crate) fn new(manager: &str, operation: Operation, subresource: &str, api_version: &str) -> Self {
        let version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            manager: manager.to_owned(),
            operation,
            subresource: subresource.to_owned(),
            api_version: version.to_owned(),
        }
    }

    /// The text by which the server orders updaters of the same second.
    fn sort_text(&self) -> String {
        let mut out = String::new();
        for (name, value) in [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ] {
            if !value.is_empty() {
                out.push_str(if out.is_empty() { "{" } else { "," });
                crate::value::write_json_text(name, &mut out);
                out.push(':');
                crate::value::write_json_text(value, &mut out);
            }
        }
        out.push('}');
        out
    }
}

/// Fields at one API version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) fields: FieldSet,
    pub(crate) api_version: String,
}

/// All entries of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managers {
    pub(crate) owned: BTreeMap<ManagerId, Owned>,
    /// Seconds since 1970. An entry that lost its fields keeps its time until it is written again.
    pub(crate) times: BTreeMap<ManagerId, i64>,
}

/// One entry as it is written in an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Entry {
    manager: String,
    operation: String,
    api_version: String,
    time: Option<i64>,
    fields_type: String,
    fields: Option<Value>,
    subresource: String,
}

impl Entry {
    /// Reads an entry; none if a part has the wrong type.
    fn read(json: &Value) -> Option<Self> {
        let map = json.as_object()?;
        let text = |name: &str| match map.get(name) {
            None | Some(Value::Null) => Some(String::new()),
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => None,
        };
        let time = match map.get("time") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(seconds(text)?),
            Some(_) => return None,
        };
        Some(Self {
            manager: text("manager")?,
            operation: text("operation")?,
            api_version: text("apiVersion")?,
            time,
            fields_type: text("fieldsType")?,
            fields: map.get("fieldsV1").filter(|fields| !fields.is_null()).cloned(),
            subresource: text("subresource")?,
        })
    }
}

/// The entries written in an object, as far as its own accessor would see them: none if there is no list
/// or one of its items is no entry.
pub(crate) fn entries(object: &Value) -> Option<Vec<Entry>> {
    let items = object.get("metadata")?.get("managedFields")?.as_array()?;
    items.iter().map(Entry::read).collect()
}

/// Whether the entries ask to forget all ownership: an empty list, or one empty entry.
pub(crate) fn is_reset(entries: &[Entry]) -> bool {
    match entries {
        [] => true,
        [entry] => *entry == Entry::default(),
        _ => false,
    }
}

/// Takes the entries out of an object.
pub(crate) fn strip(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

impl Managers {
    /// Reads entries; an error says which one is malformed.
    pub(crate) fn decode(entries: &[Entry]) -> Result<Self, String> {
        let mut managers = Self::default();
        for (index, entry) in entries.iter().enumerate() {
            let bad = |what: &str| format!("managedFields[{index}]: {what}");
            let operation = match entry.operation.as_str() {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err(bad("`operation` must be `Apply` or `Update`")),
            };
            if entry.api_version.is_empty() {
                return Err(bad("`apiVersion` is missing"));
            }
            if entry.fields_type != "FieldsV1" {
                return Err(bad("`fieldsType` must be `FieldsV1`"));
            }
            let fields = match &entry.fields {
                Some(fields) => FieldSet::from_fields_v1(fields).map_err(|error| bad(&error.to_string()))?,
                None => FieldSet::new(),
            };
            let id = ManagerId::new(&entry.manager, operation, &entry.subresource, &entry.api_version);
            match entry.time {
                Some(time) => managers.times.insert(id.clone(), time),
                None => managers.times.remove(&id),
            };
            managers.owned.insert(id, Owned { fields, api_version: entry.api_version.clone() });
        }
        Ok(managers)
    }

    /// The entries of a live object; an error if they are malformed.
    pub(crate) fn of(object: &Value) -> Result<Self, String> {
        Self::decode(&entries(object).unwrap_or_default())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    /// Drops entries without fields.
    pub(crate) fn drop_empty(&mut self) {
        self.owned.retain(|_, owned| !owned.fields.is_empty());
    }

    /// Merges the oldest updaters, so that at most [`MAX_UPDATERS`] remain: one bucket per API version.
    pub(crate) fn cap_updaters(&mut self) {
        let mut updaters: Vec<ManagerId> =
            self.owned.keys().filter(|id| id.operation == Operation::Update).cloned().collect();
        if updaters.len() <= MAX_UPDATERS {
            return;
        }
        updaters.sort_by_cached_key(|id| (self.times.get(id).copied().unwrap_or(0), id.sort_text()));
        let mut left = updaters.len();
        let mut first: BTreeMap<String, ManagerId> = BTreeMap::new();
        for id in updaters {
            if left <= MAX_UPDATERS {
                break;
            }
            let Some(version) = self.owned.get(&id).map(|owned| owned.api_version.clone()) else { continue };
            let Some(oldest) = first.get(&version).cloned() else {
                first.insert(version, id);
                continue;
            };
            let bucket = ManagerId::new(ANCIENT, Operation::Update, "", &version);
            if !self.owned.contains_key(&bucket)
                && let Some(owned) = self.owned.remove(&oldest)
            {
                self.owned.insert(bucket.clone(), owned);
            }
            let Some(owned) = self.owned.get(&id).cloned() else { continue };
            let fields = match self.owned.get(&bucket) {
                Some(kept) => owned.fields.union(&kept.fields),
                None => owned.fields,
            };
            self.owned.insert(bucket.clone(), Owned { fields, api_version: owned.api_version });
            if id != bucket {
                self.owned.remove(&id);
            }
            left -= 1;
            // The merged entry is as young as the youngest update in it.
            match self.times.get(&id).copied() {
                Some(time) => self.times.insert(bucket, time),
                None => self.times.remove(&bucket),
            };
        }
    }

    /// Writes the entries into `metadata.managedFields`: appliers first, then by time, manager, API version
    /// and subresource.
    pub(crate) fn encode_into(&self, object: &mut Value) {
        let mut entries: Vec<(&ManagerId, &Owned)> = self.owned.iter().collect();
        entries.sort_by(|(a, x), (b, y)| {
            let time = |id: &ManagerId| self.times.get(id).copied().unwrap_or(0);
            (a.operation, time(a), &a.manager, &x.api_version, &a.subresource).cmp(&(
                b.operation,
                time(b),
                &b.manager,
                &y.api_version,
                &b.subresource,
            ))
        });
        let entries: Vec<Value> = entries
            .into_iter()
            .map(|(id, owned)| {
                let mut entry = Map::new();
                entry.insert("apiVersion".to_owned(), json!(owned.api_version));
                entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
                entry.insert("fieldsV1".to_owned(), owned.fields.to_fields_v1());
                if !id.manager.is_empty() {
                    entry.insert("manager".to_owned(), json!(id.manager));
                }
                entry.insert("operation".to_owned(), json!(id.operation.as_str()));
                if !id.subresource.is_empty() {
                    entry.insert("subresource".to_owned(), json!(id.subresource));
                }
                if let Some(time) = self.times.get(id) {
                    entry.insert("time".to_owned(), json!(timestamp(*time)));
                }
                Value::Object(entry)
            })
            .collect();
        let Some(object) = object.as_object_mut() else { return };
        if entries.is_empty() {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            return;
        }
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        // Where metadata is no map there is no place for ownership.
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }
}

/// Seconds since 1970 of an RFC 3339 time.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// The RFC 3339 form of a time, in UTC.
pub(crate) fn timestamp(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn entry(manager: &str, operation: &str, time: Option<&str>, field: &str) -> Value {
        let mut entry = json!({"manager": manager, "operation": operation, "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {format!("f:{field}"): {}}});
        if let Some(time) = time {
            entry["time"] = json!(time);
        }
        entry
    }

    fn order(entries: &[Value]) -> Vec<String> {
        let mut object = json!({"metadata": {"managedFields": entries}});
        let mut managers = Managers::of(&object).unwrap();
        managers.cap_updaters();
        managers.encode_into(&mut object);
        let names = object["metadata"]["managedFields"].as_array().unwrap().iter();
        names.map(|entry| entry["manager"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn keeps_the_order_of_entries() {
        let (early, late) = (Some("2024-01-01T00:00:00Z"), Some("2024-01-01T02:00:00+01:00"));
        assert_eq!(
            order(&[
                entry("u", "Update", None, "a"),
                entry("late", "Apply", late, "a"),
                entry("early", "Apply", early, "a"),
                entry("none", "Apply", None, "a"),
                entry("also", "Apply", early, "a"),
            ]),
            ["none", "also", "early", "late", "u"]
        );
    }

    #[test]
    fn merges_the_oldest_updaters() {
        let entries = (0..12)
            .map(|i| entry(&format!("m{i:02}"), "Update", Some(&format!("2024-01-01T00:{i:02}:00Z")), "a"));
        let names = order(&entries.collect::<Vec<_>>());
        assert_eq!(names.len(), 10);
        assert_eq!(names[0], "ancient-changes");
        assert_eq!(names[1], "m03");
    }

    #[test]
    fn reads_only_well_formed_entries() {
        let of = |entry: Value| Managers::of(&json!({"metadata": {"managedFields": [entry]}}));
        assert!(of(entry("a", "Patch", None, "x")).unwrap_err().contains("operation"));
        assert!(of(json!({"operation": "Apply"})).unwrap_err().contains("apiVersion"));
        assert!(of(json!({"operation": "Apply", "apiVersion": "v1"})).unwrap_err().contains("fieldsType"));
        // A part of the wrong type hides the list, as the server's accessor does.
        assert!(of(json!({"operation": 1})).unwrap().is_empty());
        assert!(is_reset(&entries(&json!({"metadata": {"managedFields": [{}]}})).unwrap()));
        assert!(is_reset(&entries(&json!({"metadata": {"managedFields": []}})).unwrap()));
        assert_eq!(entries(&json!({"metadata": {"managedFields": null}})), None);
    }
}
