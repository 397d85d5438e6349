//! What is kept of an object, while it is read.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What is kept of a value.
#[derive(Debug)]
pub(crate) enum Rule {
    /// All of it.
    Whole,
    /// Nothing.
    Nothing,
    /// Of a mapping these fields by their rules, the others whole.
    But(&'static [(&'static str, &'static Rule)]),
    /// Of a mapping these fields by their rules, and no others.
    Only(&'static [(&'static str, &'static Rule)]),
    /// Of a list each element by this rule.
    Each(&'static Rule),
}

use Rule::{But, Each, Nothing, Only, Whole};

/// Who owns which field, and the copies of objects that tools keep in annotations.
static METADATA: Rule = But(&[("managedFields", &Nothing), ("annotations", &ANNOTATIONS)]);
static ANNOTATIONS: Rule = But(&[
    ("kubectl.kubernetes.io/last-applied-configuration", &Nothing),
    ("alm-examples", &Nothing),
    ("operatorframework.io/suggested-namespace-template", &Nothing),
]);
pub(crate) static OBJECT: Rule = But(&[("metadata", &METADATA)]);
/// Of what there are many old ones of, whose pods say the rest: the images.
static OLD_TEMPLATES: Rule = Only(&[
    ("apiVersion", &Whole),
    ("kind", &Whole),
    ("metadata", &METADATA),
    ("spec", &Only(&[("replicas", &Whole), ("template", &Only(&[("spec", &POD_IMAGES)]))])),
    ("status", &Only(&[("replicas", &Whole), ("readyReplicas", &Whole)])),
]);
static POD_IMAGES: Rule = Only(&[
    ("containers", &CONTAINERS),
    ("initContainers", &CONTAINERS),
    ("volumes", &Each(&Only(&[("name", &Whole), ("image", &Whole)]))),
    ("imagePullSecrets", &Whole),
    ("serviceAccountName", &Whole),
    ("nodeSelector", &Whole),
    ("nodeName", &Whole),
]);
static CONTAINERS: Rule = Each(&Only(&[
    ("name", &Whole),
    ("image", &Whole),
    ("imagePullPolicy", &Whole),
    ("restartPolicy", &Whole),
]));
/// The schema of a kind is a hundred times the rest of its definition.
static DEFINITION: Rule = But(&[
    ("metadata", &METADATA),
    (
        "spec",
        &But(&[
            ("conversion", &Nothing),
            ("validation", &Nothing),
            ("versions", &Each(&Only(&[("name", &Whole), ("served", &Whole), ("storage", &Whole)]))),
        ]),
    ),
]);
/// OLM copies these into every namespace, with icons and prose.
static CLUSTER_SERVICE_VERSION: Rule = But(&[
    ("metadata", &METADATA),
    (
        "spec",
        &Only(&[
            ("version", &Whole),
            ("replaces", &Whole),
            ("skips", &Whole),
            ("displayName", &Whole),
            ("relatedImages", &Whole),
            ("install", &Whole),
        ]),
    ),
    ("status", &Only(&[("phase", &Whole), ("reason", &Whole), ("message", &Whole)])),
]);

/// Does nothing of a kind say anything about images or configuration?
pub(crate) fn is_passed_over(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("coordination.k8s.io", "Lease")
            | ("discovery.k8s.io", "EndpointSlice")
            | ("", "Endpoints" | "ComponentStatus")
            | ("apps", "ControllerRevision")
            | ("apiregistration.k8s.io" | "metrics.k8s.io" | "packages.operators.coreos.com", _)
    )
}

/// The rule of a kind; none if it is passed over.
pub(crate) fn rule(group: &str, kind: &str) -> Option<&'static Rule> {
    if is_passed_over(group, kind) {
        return None;
    }
    Some(match (group, kind) {
        ("apps", "ReplicaSet") => &OLD_TEMPLATES,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &DEFINITION,
        ("operators.coreos.com", "ClusterServiceVersion") => &CLUSTER_SERVICE_VERSION,
        _ => &OBJECT,
    })
}

/// What is known about a kind well enough to keep all of its objects that the rule leaves; of others only what carries images.
pub(crate) fn is_known(group: &str) -> bool {
    const DOMAINS: [&str; 7] = [
        "k8s.io",
        "openshift.io",
        "opendatahub.io",
        "kubeflow.org",
        "kserve.io",
        "scantling.dev",
        "operators.coreos.com",
    ];
    !group.contains('.')
        || DOMAINS.iter().any(|domain| {
            group.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
}

/// Reads a value and keeps of it what a rule says.
pub(crate) struct Keep(pub(crate) &'static Rule);

impl<'de> DeserializeSeed<'de> for Keep {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keep {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let rule = if let Each(rule) = self.0 { rule } else { &Whole };
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(Keep(rule))? {
            list.push(element);
        }
        list.shrink_to_fit();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let of = |fields: &'static [(&'static str, &'static Rule)]| {
                fields.iter().find(|(name, _)| *name == key).map(|(_, rule)| *rule)
            };
            let rule = match self.0 {
                But(fields) => of(fields).unwrap_or(&Whole),
                Only(fields) => of(fields).unwrap_or(&Nothing),
                Nothing => &Nothing,
                Whole | Each(_) => &Whole,
            };
            if matches!(rule, Nothing) {
                entries.next_value::<IgnoredAny>()?;
            } else {
                let value = entries.next_value_seed(Keep(rule))?;
                map.insert(key, value);
            }
        }
        Ok(Value::Object(map))
    }
}
