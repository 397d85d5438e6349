//! Rows of kinds whose cells are just fields.

use scantling_api::object;
use serde_json::{Value, json};

use super::{AGE, Cells, Column, NAME, containers, items, labels, plain_text, since, text_or};

pub(super) fn columns(group: &str, kind: &str) -> Option<(&'static [Column], Cells)> {
    let found: (&'static [Column], Cells) = match (group, kind) {
        ("networking.k8s.io", "IngressClass") => (
            &[NAME, Column("Controller", "string", 0), Column("Parameters", "string", 0), AGE],
            |class, now| {
                let parameters = class.pointer("/spec/parameters").map_or_else(
                    || "<none>".to_owned(),
                    |found| {
                        let kind = object::text(found, "/kind");
                        let group = object::text(found, "/apiGroup");
                        let dot = if group.is_empty() { "" } else { "." };
                        format!("{kind}{dot}{group}/{}", object::text(found, "/name"))
                    },
                );
                row(class, now, [json!(object::text(class, "/spec/controller")), json!(parameters)])
            },
        ),
        ("networking.k8s.io", "ServiceCIDR") => (&[NAME, Column("CIDRs", "string", 0), AGE], |range, now| {
            let ranges: Vec<String> = items(range, "/spec/cidrs").iter().map(plain_text).collect();
            row(range, now, [json!(ranges.join(","))])
        }),
        ("node.k8s.io", "RuntimeClass") => (&[NAME, Column("Handler", "string", 0), AGE], |class, now| {
            row(class, now, [json!(object::text(class, "/handler"))])
        }),
        ("storage.k8s.io", "VolumeAttributesClass") => {
            (&[NAME, Column("DriverName", "string", 0), AGE], |class, now| {
                row(class, now, [json!(object::text(class, "/driverName"))])
            })
        }
        ("storage.k8s.io", "CSINode") => (&[NAME, Column("Drivers", "integer", 0), AGE], |node, now| {
            row(node, now, [json!(items(node, "/spec/drivers").len())])
        }),
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => {
            (&[NAME, AGE], |object, now| row(object, now, []))
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => (
            &[NAME, Column("Validations", "integer", 0), Column("ParamKind", "string", 0), AGE],
            |policy, now| {
                let kind = policy.pointer("/spec/paramKind").map_or_else(
                    || "<unset>".to_owned(),
                    |kind| format!("{}/{}", object::text(kind, "/apiVersion"), object::text(kind, "/kind")),
                );
                row(policy, now, [json!(items(policy, "/spec/validations").len()), json!(kind)])
            },
        ),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => (
            &[NAME, Column("PolicyName", "string", 0), Column("ParamRef", "string", 0), AGE],
            |binding, now| {
                let parameter = match object::text(binding, "/spec/paramRef/namespace") {
                    "" => text_or(binding, "/spec/paramRef/name", "<unset>").to_owned(),
                    namespace => format!("{namespace}/{}", object::text(binding, "/spec/paramRef/name")),
                };
                row(binding, now, [json!(object::text(binding, "/spec/policyName")), json!(parameter)])
            },
        ),
        ("apiregistration.k8s.io", "APIService") => (
            &[NAME, Column("Service", "string", 0), Column("Available", "string", 0), AGE],
            |service, now| {
                let behind = service.pointer("/spec/service").map_or_else(
                    || "Local".to_owned(),
                    |found| format!("{}/{}", object::text(found, "/namespace"), object::text(found, "/name")),
                );
                let conditions = items(service, "/status/conditions");
                let available = conditions.iter().find(|entry| object::text(entry, "/type") == "Available");
                let available = match available.map(|entry| (object::text(entry, "/status"), entry)) {
                    None => "Unknown".to_owned(),
                    Some(("True", _)) => "True".to_owned(),
                    Some((status, entry)) => format!("{status} ({})", object::text(entry, "/reason")),
                };
                row(service, now, [json!(behind), json!(available)])
            },
        ),
        ("", "PodTemplate") => (
            &[
                NAME,
                Column("Containers", "string", 0),
                Column("Images", "string", 0),
                Column("Pod Labels", "string", 0),
            ],
            |template, _| {
                let [names, images] = containers(template.pointer("/template/spec"));
                let labels = labels(template.pointer("/template/metadata/labels"));
                vec![json!(object::name(template)), names, images, labels]
            },
        ),
        _ => return None,
    };
    Some(found)
}

/// Name, the cells, age.
fn row<const N: usize>(object: &Value, now: jiff::Timestamp, cells: [Value; N]) -> Vec<Value> {
    std::iter::once(json!(object::name(object))).chain(cells).chain([since(object, now)]).collect()
}
