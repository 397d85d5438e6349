//! Reading, defaulting and checking a custom resource definition.

use scantling_api::schema::Schema;
use scantling_api::{GroupVersionKind, KindFacts, Subresource, object};
use serde_json::{Map, Value, json};

use super::super::Cause;
use super::super::names::{is_dns_1035_label, is_dns_subdomain};
use super::super::table::{CustomColumn, JsonPath};
use super::CustomVersion;

/// Verbs of custom resources.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Verbs of their subresources.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];
/// Versions of one definition; the real server's objects are bounded by their size only.
const MAX_VERSIONS: usize = 100;

/// Where the scale subresource finds its numbers, as JSON pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::api) struct ScalePaths {
    /// Wanted number.
    pub(in crate::api) replicas: String,
    /// Found number.
    pub(in crate::api) status_replicas: String,
    /// Selector of the pods, as text.
    pub(in crate::api) selector: Option<String>,
}

/// The served versions of a definition.
pub(super) fn versions(definition: &Value) -> Vec<(KindFacts, CustomVersion)> {
    let text = |pointer: &str| object::text(definition, pointer);
    let texts = |pointer: &str| -> Vec<String> {
        let list = definition.pointer(pointer).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let all = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = all.into_iter().flatten().filter(|version| version.get("served") == Some(&json!(true)));
    served
        .map(|version| {
            let name = object::text(version, "/name");
            let gvk = GroupVersionKind::new(text("/spec/group"), name, text("/spec/names/kind"));
            let verbs = |list: &[&str]| list.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>();
            let mut subresources = Vec::new();
            let status = version.pointer("/subresources/status").is_some();
            if status {
                let verbs = verbs(&SUBRESOURCE_VERBS);
                subresources.push(Subresource { name: "status".into(), gvk: gvk.clone(), verbs });
            }
            let scale = version.pointer("/subresources/scale").and_then(scale_paths);
            if scale.is_some() {
                let kind = GroupVersionKind::new("autoscaling", "v1", "Scale");
                subresources.push(Subresource {
                    name: "scale".into(),
                    gvk: kind,
                    verbs: verbs(&SUBRESOURCE_VERBS),
                });
            }
            let mut group: Vec<&str> = gvk.group.rsplit('.').collect();
            group.extend([name, gvk.kind.as_str()]);
            let facts = KindFacts {
                plural: text("/spec/names/plural").to_owned(),
                singular: text("/spec/names/singular").to_owned(),
                short_names: texts("/spec/names/shortNames"),
                categories: texts("/spec/names/categories"),
                namespaced: text("/spec/scope") == "Namespaced",
                verbs: verbs(&VERBS),
                subresources,
                status,
                // The name that the schema of a definition gives to its types.
                type_name: group.join("."),
                gvk,
            };
            (facts, custom_version(definition, version, scale))
        })
        .collect()
}

fn custom_version(definition: &Value, version: &Value, scale: Option<ScalePaths>) -> CustomVersion {
    let list = |name: &str| version.get(name).and_then(Value::as_array);
    let columns = list("additionalPrinterColumns")
        .map(|columns| columns.iter().filter_map(column).collect::<Vec<_>>())
        .filter(|columns| !columns.is_empty());
    let selectable = list("selectableFields").into_iter().flatten();
    let deprecated = version.get("deprecated") == Some(&json!(true));
    CustomVersion {
        schema: version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(|| json!({})),
        columns,
        selectable: selectable.map(|field| object::text(field, "/jsonPath").to_owned()).collect(),
        scale,
        deprecation: deprecated.then(|| match object::text(version, "/deprecationWarning") {
            "" => format!(
                "{}/{} {} is deprecated",
                object::text(definition, "/spec/group"),
                object::text(version, "/name"),
                object::text(definition, "/spec/names/kind")
            ),
            text => text.to_owned(),
        }),
    }
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    let pointer = |name: &str| {
        let path = scale.get(name).and_then(Value::as_str).filter(|path| path.starts_with('.'))?;
        Some(path.replace('.', "/"))
    };
    Some(ScalePaths {
        replicas: pointer("specReplicasPath")?,
        status_replicas: pointer("statusReplicasPath")?,
        selector: pointer("labelSelectorPath"),
    })
}

fn column(column: &Value) -> Option<CustomColumn> {
    let path = JsonPath::parse(object::text(column, "/jsonPath"))?;
    let kind = object::text(column, "/type");
    Some(CustomColumn {
        definition: json!({
            "name": object::text(column, "/name"),
            "type": kind,
            "format": object::text(column, "/format"),
            "description": object::text(column, "/description"),
            "priority": column.get("priority").and_then(Value::as_i64).unwrap_or(0),
        }),
        is_date: kind == "date",
        path,
    })
}

/// `SetDefaults_CustomResourceDefinition` and its kin.
pub(super) fn default(definition: &mut Value) {
    let kind = object::text(definition, "/spec/names/kind").to_owned();
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let fill = |names: &mut Map<String, Value>, field: &str, value: String| {
            let missing = names.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
            if missing && !kind.is_empty() {
                names.insert(field.to_owned(), json!(value));
            }
        };
        fill(names, "singular", kind.to_lowercase());
        fill(names, "listKind", format!("{kind}List"));
    }
}

/// What `ValidateCustomResourceDefinition` refuses, as far as it matters to what is modelled here.
pub(super) fn validate(definition: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let text = |pointer: &str| object::text(definition, pointer);
    let (group, plural, kind) = (text("/spec/group"), text("/spec/names/plural"), text("/spec/names/kind"));
    let name = object::name(definition);
    if name != format!("{plural}.{group}") {
        causes.push(Cause::invalid(
            "metadata.name",
            &json!(name),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
    } else if !is_dns_subdomain(group) || !group.contains('.') {
        causes.push(Cause::invalid("spec.group", &json!(group), "should be a domain with at least one dot"));
    }
    match text("/spec/scope") {
        "" => causes.push(Cause::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => causes.push(Cause::unsupported("spec.scope", &json!(other), &["Cluster", "Namespaced"])),
    }
    for (field, value) in [("plural", plural), ("singular", text("/spec/names/singular"))] {
        if value.is_empty() {
            causes.push(Cause::required(format!("spec.names.{field}"), ""));
        } else if !is_dns_1035_label(value) {
            causes.push(Cause::invalid(
                format!("spec.names.{field}"),
                &json!(value),
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-'",
            ));
        }
    }
    if kind.is_empty() {
        causes.push(Cause::required("spec.names.kind", ""));
    } else if !is_dns_1035_label(&kind.to_lowercase()) {
        causes.push(Cause::invalid(
            "spec.names.kind",
            &json!(kind),
            "may have mixed case, but should otherwise match a DNS-1035 label",
        ));
    }
    validate_conversion(definition, &mut causes);
    validate_versions(definition, &mut causes);
    if causes.is_empty()
        && let Err(error) = Schema::from_crd(definition)
    {
        // What the types cannot say must not be stored: it could not be served.
        causes.push(Cause::invalid("spec.versions", &Value::Null, error));
    }
    causes
}

/// `validateCustomResourceConversion`.
fn validate_conversion(definition: &Value, causes: &mut Vec<Cause>) {
    match object::text(definition, "/spec/conversion/strategy") {
        "None" => {}
        "Webhook" => {
            let client = definition.pointer("/spec/conversion/webhook/clientConfig");
            let given = |field: &str| client.and_then(|client| client.get(field)).is_some();
            if given("url") == given("service") {
                let field = "spec.conversion.webhook.clientConfig";
                causes.push(Cause::required(field, "exactly one of url or service is required"));
            }
            let reviews = definition.pointer("/spec/conversion/webhook/conversionReviewVersions");
            if reviews.and_then(Value::as_array).is_none_or(Vec::is_empty) {
                causes.push(Cause::required("spec.conversion.webhook.conversionReviewVersions", ""));
            }
        }
        other => {
            let field = "spec.conversion.strategy";
            causes.push(Cause::unsupported(field, &json!(other), &["None", "Webhook"]));
        }
    }
}

fn validate_versions(definition: &Value, causes: &mut Vec<Cause>) {
    let none = Vec::new();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).unwrap_or(&none);
    if versions.is_empty() || versions.len() > MAX_VERSIONS {
        causes.push(Cause::required(
            "spec.versions",
            "must have at least one version and not more than a hundred",
        ));
    }
    let mut names = std::collections::BTreeSet::new();
    let mut stored = 0;
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let name = object::text(version, "/name");
        if !is_dns_1035_label(name) {
            causes.push(Cause::invalid(format!("{at}.name"), &json!(name), "must be a DNS-1035 label"));
        }
        if !names.insert(name) {
            causes.push(Cause::duplicate(format!("{at}.name"), &json!(name)));
        }
        stored += usize::from(version.get("storage") == Some(&json!(true)));
        match version.pointer("/schema/openAPIV3Schema") {
            None => {
                causes.push(Cause::required(format!("{at}.schema.openAPIV3Schema"), ""));
            }
            Some(schema) => {
                super::structure::validate_schema(schema, &format!("{at}.schema.openAPIV3Schema"), causes);
            }
        }
        if version.pointer("/subresources/scale").is_some_and(|scale| scale_paths(scale).is_none()) {
            let field = format!("{at}.subresources.scale");
            causes
                .push(Cause::required(field, "specReplicasPath and statusReplicasPath must be simple paths"));
        }
        let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
        for (place, printed) in columns.into_iter().flatten().enumerate() {
            if column(printed).is_none() {
                let field = format!("{at}.additionalPrinterColumns[{place}].jsonPath");
                let path = printed.get("jsonPath").unwrap_or(&Value::Null);
                causes.push(Cause::invalid(
                    field,
                    path,
                    "the sandbox models fields, indices and filters by equality",
                ));
            }
        }
    }
    if !versions.is_empty() && stored != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &json!(versions.len()), detail));
    }
}

/// What a new definition's status says.
pub(super) fn status_of_created(definition: &mut Value) {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let stored: Vec<&str> = versions
        .filter(|version| version.get("storage") == Some(&json!(true)))
        .map(|version| object::text(version, "/name"))
        .collect();
    let names = json!({"kind": "", "plural": ""});
    let status = json!({"acceptedNames": names, "conditions": null, "storedVersions": stored});
    if let Some(fields) = definition.as_object_mut() {
        fields.insert("status".into(), status);
    }
}

/// The status that the controllers of a real server give to a definition.
pub(super) fn set_status(definition: &mut Value, now: &str, conflict: Option<&str>) {
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let before = definition.pointer("/status/conditions").and_then(Value::as_array);
        let before = before.into_iter().flatten().find(|condition| object::text(condition, "/type") == kind);
        let status = if holds { "True" } else { "False" };
        let since = match before {
            Some(before) if object::text(before, "/status") == status => {
                object::text(before, "/lastTransitionTime")
            }
            _ => now,
        };
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    };
    let conditions = match conflict {
        None => vec![
            condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
            condition("Established", true, "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        Some(message) => vec![
            condition("NamesAccepted", false, "KindConflict", message),
            condition("Established", false, "NotAccepted", "not all names are accepted"),
        ],
    };
    let storage = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let storage: Vec<Value> = storage
        .filter(|version| version.get("storage") == Some(&json!(true)))
        .map(|version| version["name"].clone())
        .collect();
    let mut stored =
        definition.pointer("/status/storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    stored.extend(storage.into_iter().filter(|name| !stored.contains(name)).collect::<Vec<_>>());
    let names = if conflict.is_none() { definition.pointer("/spec/names").cloned() } else { None };
    let status = json!({
        "acceptedNames": names.unwrap_or_else(|| json!({"kind": "", "plural": ""})),
        "conditions": conditions,
        "storedVersions": stored,
    });
    if let Some(fields) = definition.as_object_mut() {
        fields.insert("status".into(), status);
    }
}
