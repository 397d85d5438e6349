//! Label and field selectors of lists and watches.
//!
//! Grammar and rules: `k8s.io/apimachinery/pkg/labels` and `pkg/fields`; which fields a kind knows:
//! `pkg/apis/*/v1/conversion.go` of `k8s.io/kubernetes`.

use scantling_api::KindFacts;
use serde_json::Value;

use super::Status;

/// Requirements of one selector; more are a mistake or an attack.
const MAX_REQUIREMENTS: usize = 1000;

/// What objects a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(Field, bool, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// Where a selectable field stands, and what it is when it is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    pointer: String,
    missing: &'static str,
}

impl Selector {
    /// From the parameters `labelSelector` and `fieldSelector`. `custom` holds the selectable fields (`.spec.x`) of a
    /// custom resource.
    pub(super) fn parse(
        labels: Option<&str>,
        fields: Option<&str>,
        facts: &KindFacts,
        custom: &[String],
    ) -> Result<Self, Status> {
        Ok(Self {
            labels: parse_labels(labels.unwrap_or_default())?,
            fields: parse_fields(fields.unwrap_or_default(), facts, custom)?,
        })
    }

    /// Restricts to one name.
    pub(super) fn with_name(mut self, name: &str) -> Self {
        let field = Field { pointer: "/metadata/name".to_owned(), missing: "" };
        self.fields.push((field, true, name.to_owned()));
        self
    }

    /// Whether everything is selected.
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the object is selected.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.labels.iter().all(|requirement| requirement.matches(label(&requirement.key)))
            && self.fields.iter().all(|(field, equal, wanted)| (field.of(object) == *wanted) == *equal)
    }
}

impl Field {
    fn of(&self, object: &Value) -> String {
        match object.pointer(&self.pointer) {
            None | Some(Value::Null) => self.missing.to_owned(),
            Some(Value::String(text)) if text.is_empty() => self.missing.to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

impl Requirement {
    fn matches(&self, label: Option<&str>) -> bool {
        let any = |label: &str| self.values.iter().any(|value| value == label);
        let number = || self.values.first().and_then(|value| value.parse::<i64>().ok());
        match self.operator {
            Operator::In => label.is_some_and(any),
            Operator::NotIn => !label.is_some_and(any),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                match (label.and_then(|label| label.parse::<i64>().ok()), number()) {
                    (Some(label), Some(limit)) if self.operator == Operator::GreaterThan => label > limit,
                    (Some(label), Some(limit)) => label < limit,
                    _ => false,
                }
            }
        }
    }
}

fn parse_fields(
    text: &str,
    facts: &KindFacts,
    custom: &[String],
) -> Result<Vec<(Field, bool, String)>, Status> {
    let mut fields = Vec::new();
    for term in split_terms(text).into_iter().filter(|term| !term.is_empty()) {
        let (name, equal, value) = split_field(&term).ok_or_else(|| {
            Status::bad_request(format!(
                "invalid field selector {term:?}: it must be FIELD=VALUE or FIELD!=VALUE"
            ))
        })?;
        let field = field(facts, name, custom).ok_or_else(|| unknown_field(facts, name, custom))?;
        if fields.len() >= MAX_REQUIREMENTS {
            return Err(Status::bad_request("the field selector has too many terms"));
        }
        fields.push((field, equal, unescape(value)));
    }
    Ok(fields)
}

/// Terms between commas; a backslash keeps a comma within its term.
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(String::new());
        } else if let Some(last) = terms.last_mut() {
            last.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    terms
}

fn split_field(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=')?;
    let (name, rest) = term.split_at(at);
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    match name.strip_suffix('!') {
        Some(name) => Some((name, false, value)),
        None => Some((name, true, value)),
    }
}

fn unescape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut escaped = false;
    for c in value.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            text.push(c);
            escaped = false;
        }
    }
    text
}

/// Kinds without fields of their own are refused in other words than those with some.
fn unknown_field(facts: &KindFacts, name: &str, custom: &[String]) -> Status {
    if !of_kind(facts).is_empty() || !custom.is_empty() {
        return Status::bad_request(format!("field label not supported: {name}"));
    }
    let known =
        if facts.namespaced { "\"metadata.name\", \"metadata.namespace\"" } else { "\"metadata.name\"" };
    Status::bad_request(format!("\"{name}\" is not a known field selector: only {known}"))
}

/// The fields that a kind knows beside its name and namespace.
fn of_kind(facts: &KindFacts) -> &'static [&'static str] {
    match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "Secret") => &["type"],
        ("", "Namespace") => &["status.phase"],
        ("", "Node") => &["spec.unschedulable"],
        ("", "ReplicationController") | ("apps", "ReplicaSet") => &["status.replicas"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        ("build.openshift.io", "Build") => &["status", "podName"],
        _ => &[],
    }
}

fn field(facts: &KindFacts, name: &str, custom: &[String]) -> Option<Field> {
    let known = name == "metadata.name"
        || name == "metadata.namespace" && facts.namespaced
        || of_kind(facts).contains(&name)
        || custom.iter().any(|path| path.trim_start_matches('.') == name);
    if !known {
        return None;
    }
    let (pointer, missing) = match (facts.gvk.kind.as_str(), name) {
        ("Event", "source") => ("/source/component".to_owned(), ""),
        ("Job", "status.successful") => ("/status/succeeded".to_owned(), "0"),
        ("Build", "status") => ("/status/phase".to_owned(), ""),
        (_, "status.replicas") => ("/status/replicas".to_owned(), "0"),
        (_, "spec.unschedulable" | "spec.hostNetwork") => (format!("/{}", name.replace('.', "/")), "false"),
        _ => (format!("/{}", name.replace('.', "/")), ""),
    };
    Some(Field { pointer, missing })
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, Status> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    parser.skip_spaces();
    while !parser.rest.is_empty() {
        let requirement = parser
            .requirement()
            .map_err(|problem| Status::bad_request(format!("unable to parse requirement: {problem}")))?;
        if requirements.len() >= MAX_REQUIREMENTS {
            return Err(Status::bad_request("the label selector has too many requirements"));
        }
        requirements.push(requirement);
        parser.skip_spaces();
        match parser.rest.strip_prefix(',') {
            Some(rest) => parser.rest = rest,
            None if parser.rest.is_empty() => break,
            None => {
                return Err(Status::bad_request(format!(
                    "unable to parse requirement: found '{}', expected: ',' or the end",
                    parser.rest
                )));
            }
        }
        parser.skip_spaces();
        if parser.rest.is_empty() {
            return Err(Status::bad_request(
                "unable to parse requirement: found '', expected: identifier after ','",
            ));
        }
    }
    Ok(requirements)
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'a str {
        let special = |c: char| c.is_ascii_whitespace() || "=!(),<>".contains(c);
        let end = self.rest.find(special).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.take("!");
        self.skip_spaces();
        let key = self.word().to_owned();
        if key.is_empty() {
            return Err(format!("found '{}', expected: identifier", self.rest));
        }
        if !super::names::is_qualified_name(&key) {
            return Err(format!("the label key {key:?} is not valid"));
        }
        self.skip_spaces();
        let make = |operator, values| Requirement { key: key.clone(), operator, values };
        if absent {
            return Ok(make(Operator::DoesNotExist, Vec::new()));
        }
        if self.rest.is_empty() || self.rest.starts_with(',') {
            return Ok(make(Operator::Exists, Vec::new()));
        }
        let (operator, set) = if self.take("==") || self.take("=") {
            (Operator::In, false)
        } else if self.take("!=") {
            (Operator::NotIn, false)
        } else if self.take(">") {
            (Operator::GreaterThan, false)
        } else if self.take("<") {
            (Operator::LessThan, false)
        } else {
            match self.word() {
                "in" => (Operator::In, true),
                "notin" => (Operator::NotIn, true),
                other => {
                    return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt"));
                }
            }
        };
        let values = if set { self.set()? } else { vec![self.value()] };
        if matches!(operator, Operator::GreaterThan | Operator::LessThan)
            && values.iter().any(|value| value.parse::<i64>().is_err())
        {
            return Err(format!("for 'Gt', 'Lt' operators, the value must be an integer: {values:?}"));
        }
        if let Some(value) = values.iter().find(|value| !super::names::is_label_value(value)) {
            return Err(format!("the label value {value:?} is not valid"));
        }
        Ok(make(operator, values))
    }

    fn value(&mut self) -> String {
        self.skip_spaces();
        self.word().to_owned()
    }

    fn set(&mut self) -> Result<Vec<String>, String> {
        self.skip_spaces();
        if !self.take("(") {
            return Err(format!("found '{}', expected: '('", self.rest));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value());
            if values.len() > MAX_REQUIREMENTS {
                return Err("the set has too many values".to_owned());
            }
            self.skip_spaces();
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return Err(format!("found '{}', expected: ',' or ')'", self.rest));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use scantling_api::Kinds;
    use serde_json::json;

    use super::*;

    fn pods() -> &'static KindFacts {
        Kinds::kubernetes().by_kind("", "Pod").unwrap()
    }

    #[test]
    fn label_selectors_select() {
        let object =
            json!({"metadata": {"labels": {"app": "a", "tier": "3", "empty": "", "example.com/x": "y"}}});
        for (selector, selected) in [
            ("", true),
            ("app=a", true),
            ("app==a,tier=3", true),
            ("app=b", false),
            ("app!=b", true),
            ("no!=b", true),
            ("app in (a, b)", true),
            ("app in (b,c)", false),
            ("app notin (b,c)", true),
            ("no notin (b)", true),
            ("app", true),
            ("!app", false),
            ("! no", true),
            ("tier>2", true),
            ("tier > 3", false),
            ("tier<4", true),
            ("app<4", false),
            ("empty=", true),
            ("empty in (,x)", true),
            ("example.com/x=y", true),
        ] {
            let parsed = Selector::parse(Some(selector), None, pods(), &[]).unwrap();
            assert_eq!(parsed.matches(&object), selected, "{selector}");
        }
    }

    #[test]
    fn wrong_label_selectors_are_refused() {
        for selector in
            ["a=b,", ",", "a in b", "a in (b", "a in (b))", "a~b", "a b", "-a=b", "a=b c", "a>x", "a=-b-"]
        {
            let parsed = Selector::parse(Some(selector), None, pods(), &[]);
            assert_eq!(parsed.unwrap_err().code, 400, "{selector}");
        }
    }

    #[test]
    fn field_selectors_select_or_are_refused() {
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": "x"}, "status": {"phase": "Running"}});
        for (selector, selected) in [
            ("metadata.name=p", true),
            ("metadata.name!=p", false),
            ("metadata.namespace==n,spec.nodeName=x", true),
            ("status.phase!=Running", false),
            ("spec.hostNetwork=false", true),
            ("status.podIP=", true),
        ] {
            let parsed = Selector::parse(None, Some(selector), pods(), &[]).unwrap();
            assert_eq!(parsed.matches(&pod), selected, "{selector}");
        }
        for selector in ["spec.x=y", "metadata.name", "status.phase"] {
            assert_eq!(
                Selector::parse(None, Some(selector), pods(), &[]).unwrap_err().code,
                400,
                "{selector}"
            );
        }
        let custom = [".spec.colour".to_owned()];
        let parsed = Selector::parse(None, Some("spec.colour=r\\,g"), pods(), &custom).unwrap();
        assert!(parsed.matches(&json!({"spec": {"colour": "r,g"}})));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(labels in "[a-z=!(),<> \\\\in]{0,30}|\\PC{0,20}", fields in "[a-z.=!,\\\\]{0,30}|\\PC{0,20}") {
            let selector = Selector::parse(Some(&labels), Some(&fields), pods(), &[]);
            match selector {
                Ok(selector) => { selector.matches(&json!({})); }
                Err(status) => prop_assert_eq!(status.code, 400),
            }
        }
    }
}
