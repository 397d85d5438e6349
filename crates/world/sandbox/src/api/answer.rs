//! Answers: a value in the form that was asked for, as an HTTP response.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, WARNING};
use http::{Response, StatusCode};
use scantling_api::KindFacts;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use super::accept::{Accept, Form};
use super::{ApiServer, Status, table};

/// Longest warning text that goes into a header.
const MAX_WARNING: usize = 512;

/// What is answered, before it gets its form.
#[derive(Debug)]
pub(super) enum Content {
    /// A document that has one form only.
    Document(Value),
    /// An object of a kind.
    Object(KindFacts, Value),
    /// Objects of a kind.
    List(KindFacts, List),
    /// Text for people.
    Text(&'static str),
}

/// A page of a list.
#[derive(Debug, Default)]
pub(super) struct List {
    /// The objects.
    pub(super) items: Vec<Arc<Value>>,
    /// Version of the list.
    pub(super) version: u64,
    /// How to ask for the next page.
    pub(super) proceed: Option<String>,
    /// How many objects are on later pages, where that is known.
    pub(super) remaining: Option<usize>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// HTTP status code.
    pub(super) code: u16,
    /// What is answered.
    pub(super) content: Content,
    /// Warnings for the person who asked.
    pub(super) warnings: Vec<String>,
}

impl Answer {
    /// A document with status 200.
    pub(super) fn document(value: Value) -> Self {
        Self { code: 200, content: Content::Document(value), warnings: Vec::new() }
    }

    /// An object.
    pub(super) fn object(code: u16, facts: &KindFacts, value: Value) -> Self {
        Self { code, content: Content::Object(facts.clone(), value), warnings: Vec::new() }
    }

    /// A page of objects.
    pub(super) fn list(facts: &KindFacts, list: List) -> Self {
        Self { code: 200, content: Content::List(facts.clone(), list), warnings: Vec::new() }
    }
}

impl ApiServer {
    /// Gives an answer its form and writes it.
    pub(super) fn respond(&self, answer: Answer, accept: Accept, now: jiff::Timestamp) -> Response<Bytes> {
        let (bytes, content_type) = match answer.content {
            Content::Text(text) => (Bytes::from_static(text.as_bytes()), "text/plain"),
            Content::Document(value) => written(&value, accept.yaml, aggregated_type(accept)),
            Content::Object(facts, value) => {
                written(&self.object_in_form(&facts, value, accept, now), accept.yaml, None)
            }
            Content::List(facts, list) => match accept.form {
                Form::Whole | Form::AggregatedDiscovery => {
                    written(&self.whole_list(&facts, &list), accept.yaml, None)
                }
                Form::Table => {
                    let (metadata, items) = (list.metadata(), list.items());
                    let columns = self.columns(&facts);
                    let table = table::of(&columns, items, &metadata, true, accept.include, now);
                    written(&table, accept.yaml, None)
                }
                Form::Metadata => {
                    let items: Vec<Value> = list.items().map(metadata_only).collect();
                    let list = WholeList {
                        kind: "PartialObjectMetadataList".to_owned(),
                        api_version: "meta.k8s.io/v1".to_owned(),
                        metadata: list.metadata(),
                        items,
                    };
                    written(&list, accept.yaml, None)
                }
            },
        };
        response(answer.code, bytes, content_type, &answer.warnings)
    }

    /// An object as a client of one version sees it.
    pub(super) fn object_in_form(
        &self,
        facts: &KindFacts,
        mut value: Value,
        accept: Accept,
        now: jiff::Timestamp,
    ) -> Value {
        // Refusals and the like have no form.
        if value.get("kind").and_then(Value::as_str) == Some("Status") {
            return value;
        }
        match accept.form {
            Form::Table => {
                let version = value.pointer("/metadata/resourceVersion").cloned().unwrap_or(json!(""));
                let metadata = json!({"resourceVersion": version});
                table::of(&self.columns(facts), [&value].into_iter(), &metadata, true, accept.include, now)
            }
            Form::Metadata => metadata_only(&value),
            Form::Whole | Form::AggregatedDiscovery => {
                if let Some(fields) = value.as_object_mut()
                    && fields.get("kind").and_then(Value::as_str) == Some(facts.gvk.kind.as_str())
                {
                    fields.insert("apiVersion".into(), json!(facts.gvk.api_version()));
                }
                value
            }
        }
    }

    fn whole_list<'a>(&self, facts: &KindFacts, list: &'a List) -> WholeList<Vec<Item<'a>>> {
        let api_version = facts.gvk.api_version();
        let of_items = self.is_custom(facts).then(|| Arc::from(api_version.as_str()));
        WholeList {
            kind: format!("{}List", facts.gvk.kind),
            api_version,
            metadata: list.metadata(),
            items: list.items().map(|object| Item { object, api_version: of_items.clone() }).collect(),
        }
    }
}

impl List {
    fn items(&self) -> impl Iterator<Item = &Value> {
        self.items.iter().map(Arc::as_ref)
    }

    fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if let Some(proceed) = &self.proceed {
            metadata["continue"] = json!(proceed);
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}

/// A list as it is written. Its items are borrowed: lists are most of what is answered, and copies of their items would
/// be most of the work. Its fields stand in the order of their names, as in every other document.
#[derive(serde::Serialize)]
struct WholeList<Items> {
    #[serde(rename = "apiVersion")]
    api_version: String,
    items: Items,
    kind: String,
    metadata: Value,
}

/// An object in a list. Items of built-in kinds carry neither `apiVersion` nor `kind`: Go leaves the type out within a
/// typed list. Custom ones have that of the list.
struct Item<'a> {
    object: &'a Value,
    api_version: Option<Arc<str>>,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.object else { return self.object.serialize(serializer) };
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in fields {
            match (name.as_str(), &self.api_version) {
                ("apiVersion", Some(api_version)) => map.serialize_entry(name, api_version.as_ref())?,
                ("apiVersion" | "kind", None) => {}
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// A document as bytes, and their content type: that given, if it is JSON.
fn written(document: &impl Serialize, yaml: bool, json_type: Option<&'static str>) -> (Bytes, &'static str) {
    if yaml {
        let value = serde_json::to_value(document).unwrap_or_default();
        return (scantling_yaml::to_yaml(&value).into(), "application/yaml");
    }
    let mut bytes = serde_json::to_vec(document).unwrap_or_default();
    bytes.push(b'\n');
    (bytes.into(), json_type.unwrap_or("application/json"))
}

/// `PartialObjectMetadata`.
pub(super) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or(json!({})),
    })
}

/// A refusal as a response.
pub(super) fn refusal(status: &Status) -> Response<Bytes> {
    if *status == Status::no_such_path() {
        let text = Bytes::from(format!("{}\n", status.message));
        return response(status.code, text, "text/plain; charset=utf-8", &[]);
    }
    let mut response = response(status.code, status.to_value().to_string().into(), "application/json", &[]);
    if let Some(seconds) = status.details.get("retryAfterSeconds").and_then(Value::as_u64) {
        response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn response(code: u16, body: Bytes, content_type: &'static str, warnings: &[String]) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for warning in warnings {
        // RFC 7234: code, agent, quoted text. What no header can hold is replaced.
        let text: String = warning
            .chars()
            .take(MAX_WARNING)
            .map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' })
            .collect();
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(WARNING, value);
        }
    }
    response
}

fn aggregated_type(accept: Accept) -> Option<&'static str> {
    (accept.form == Form::AggregatedDiscovery)
        .then_some("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
}
