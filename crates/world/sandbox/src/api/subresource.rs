//! Subresources: status, scale, binding, eviction, finalize.

use http::Method;
use scantling_api::{GroupVersionKind, KindFacts, ObjectKey, object};
use serde_json::{Value, json};

use super::answer::Answer;
use super::body::{self, Body};
use super::meta::as_mapping;
use super::serve::{Call, key};
use super::write::{FieldValidation, Options};
use super::{ApiServer, Cause, DeleteOptions, Moment, Status, validate};

/// Type of `Scale` in the schema.
const SCALE_TYPE: &str = "io.k8s.api.autoscaling.v1.Scale";
/// Seconds after which a client may ask again whether a disruption is allowed.
const RETRY_SECONDS: u32 = 10;

impl ApiServer {
    /// Answers a request to a subresource.
    pub(super) fn subresource(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        namespace: Option<&str>,
        name: &str,
        path: &str,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        let subresource = path.split('/').next().unwrap_or_default();
        let known = facts.subresource(subresource).ok_or_else(Status::no_such_resource)?;
        let verb = match *call.method {
            Method::GET => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::POST => "create",
            Method::DELETE => "delete",
            _ => return Err(Status::method_not_allowed()),
        };
        if !known.verbs.iter().any(|known| known == verb) {
            return Err(Status::method_not_allowed());
        }
        let key = key(facts, namespace, name);
        match (facts.gvk.kind.as_str(), subresource, verb) {
            (_, "status", "get") => {
                self.live(facts, &key).map(|live| Answer::object(200, facts, live.as_ref().clone()))
            }
            (_, "status", "update") => self.put(call, facts, &key, Some("status"), at),
            (_, "status" | "scale", "patch") => self.patch(call, facts, &key, Some(subresource), at),
            (_, "scale", "get") => {
                let scale = self.live_part(facts, &key, Some("scale"))?;
                Ok(Self::answer_part(200, facts, Some("scale"), scale))
            }
            (_, "scale", "update") => self.put_scale(call, facts, &key, at),
            ("Pod", "binding", _) => self.bind(call, facts, &key, at),
            ("Pod", "eviction", _) => self.evict(call, facts, &key, at),
            ("Namespace", "finalize", _) => self.finalize(call, facts, &key, at),
            (kind, subresource, _) => {
                self.live(facts, &key)?;
                Err(Status::not_modelled(format_args!("{subresource} of a {kind}")))
            }
        }
    }

    /// The object that a patch of a part starts from: the object itself, or its scale.
    pub(super) fn live_part(
        &self,
        facts: &KindFacts,
        key: &ObjectKey,
        subresource: Option<&str>,
    ) -> Result<Value, Status> {
        let live = self.live(facts, key)?;
        if subresource == Some("scale") {
            return Ok(self.scale_of(facts, &live));
        }
        let mut live = live.as_ref().clone();
        // All versions of a kind show the same object; the patch sees that of its own version.
        as_mapping(&mut live).insert("apiVersion".into(), json!(facts.gvk.api_version()));
        Ok(live)
    }

    /// Name of the type of a part.
    pub(super) fn type_of_part(facts: &KindFacts, subresource: Option<&str>) -> String {
        if subresource == Some("scale") { SCALE_TYPE.to_owned() } else { facts.type_name.clone() }
    }

    /// Makes a patched part fit its type.
    pub(super) fn fit_part(
        &self,
        call: &Call<'_>,
        facts: &KindFacts,
        subresource: Option<&str>,
        body: Body,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), Status> {
        if subresource == Some("scale") {
            return Ok((body.value, Vec::new()));
        }
        self.fit_view(call, facts, body, validation)
    }

    /// Writes a part.
    pub(super) fn update_part(
        &mut self,
        at: &mut Moment<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        subresource: Option<&str>,
        part: Value,
        options: &Options,
    ) -> Result<Value, Status> {
        if subresource != Some("scale") {
            return self.update_object(at, facts, key, subresource, part, options);
        }
        let live = self.live(facts, key)?;
        let mut object = live.as_ref().clone();
        let version = object::resource_version(&part);
        as_mapping(as_mapping(&mut object).entry("metadata").or_insert(Value::Null))
            .insert("resourceVersion".into(), json!(version));
        let replicas = part.pointer("/spec/replicas").cloned().unwrap_or(json!(0));
        if replicas.as_i64().is_none_or(|replicas| replicas < 0) {
            let cause = Cause::invalid("spec.replicas", &replicas, "must be greater than or equal to 0");
            return Err(Status::invalid(
                &GroupVersionKind::new("autoscaling", "v1", "Scale"),
                &key.name,
                vec![cause],
            ));
        }
        set_pointer(&mut object, &self.replicas_pointer(facts), replicas);
        let updated = self.update_object(at, facts, key, subresource, object, options)?;
        Ok(self.scale_of(facts, &updated))
    }

    /// Answers with a part.
    pub(super) fn answer_part(
        code: u16,
        facts: &KindFacts,
        subresource: Option<&str>,
        part: Value,
    ) -> Answer {
        match subresource {
            Some("scale") => Answer { code, ..Answer::document(part) },
            _ => Answer::object(code, facts, part),
        }
    }

    fn put_scale(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        let options = call.options()?;
        let part = body::read(call.body, call.content_type)?.value;
        let scale = self.update_part(at, facts, key, Some("scale"), part, &options)?;
        Ok(Self::answer_part(200, facts, Some("scale"), scale))
    }

    fn replicas_pointer(&self, facts: &KindFacts) -> String {
        let scale = self.custom_version(facts).and_then(|version| version.scale.as_ref());
        scale.map_or_else(|| "/spec/replicas".to_owned(), |scale| scale.replicas.clone())
    }

    fn scale_of(&self, facts: &KindFacts, object: &Value) -> Value {
        let custom = self.custom_version(facts).and_then(|version| version.scale.as_ref());
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
        let status = custom.map_or("/status/replicas", |scale| scale.status_replicas.as_str());
        let selector = match custom {
            Some(scale) => scale.selector.as_deref().map(|pointer| object::text(object, pointer).to_owned()),
            None => object.pointer("/spec/selector").map(selector_text),
        };
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let mut shown = json!({});
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = metadata.get(field) {
                shown[field] = value.clone();
            }
        }
        let mut status = json!({"replicas": number(status)});
        if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
            status["selector"] = json!(selector);
        }
        // Go leaves a zero out.
        let replicas = number(&self.replicas_pointer(facts));
        json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": shown,
            "spec": if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) },
            "status": status,
        })
    }

    /// Puts a pod on a node, as a scheduler asks for it.
    fn bind(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        let binding = body::read(call.body, call.content_type)?.value;
        let node = object::text(&binding, "/target/name");
        if node.is_empty() {
            let gvk = GroupVersionKind::new("", "v1", "Binding");
            return Err(Status::invalid(&gvk, &key.name, vec![Cause::required("target.name", "")]));
        }
        let live = self.live(facts, key)?;
        let assigned = object::text(&live, "/spec/nodeName");
        if !assigned.is_empty() {
            let detail = format!("pod {} is already assigned to node \"{assigned}\"", key.name);
            return Err(Status::conflict(facts, &key.name, &detail));
        }
        if !object::text(&live, "/metadata/deletionTimestamp").is_empty() {
            let detail = format!("pod {} is being deleted, cannot be assigned to a host", key.name);
            return Err(Status::conflict(facts, &key.name, &detail));
        }
        let mut pod = live.as_ref().clone();
        set_pointer(&mut pod, "/spec/nodeName", json!(node));
        let now = at.seconds();
        let status = as_mapping(as_mapping(&mut pod).entry("status").or_insert(Value::Null));
        let conditions = as_list(status.entry("conditions").or_insert(Value::Null));
        conditions.retain(|condition| object::text(condition, "/type") != "PodScheduled");
        conditions.push(json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now}));
        self.update_object(at, facts, key, Some("binding"), pod, &call.options()?)?;
        Ok(success(201))
    }

    /// Deletes a pod if the disruption budgets allow it.
    fn evict(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        let eviction =
            if call.body.is_empty() { json!({}) } else { body::read(call.body, call.content_type)?.value };
        let live = self.live(facts, key)?;
        let dry_run = call.options()?.dry_run
            || eviction
                .pointer("/deleteOptions/dryRun")
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty());
        let options = DeleteOptions {
            grace_period_seconds: eviction
                .pointer("/deleteOptions/gracePeriodSeconds")
                .and_then(Value::as_i64),
            dry_run,
            ..DeleteOptions::default()
        };
        let running = !matches!(object::text(&live, "/status/phase"), "Pending" | "Succeeded" | "Failed");
        let begun = !object::text(&live, "/metadata/deletionTimestamp").is_empty();
        if running && !begun {
            self.allow_disruption(at, key, &live, dry_run)?;
        }
        self.delete_object(at, facts, key, &options)?;
        Ok(success(201))
    }

    fn allow_disruption(
        &mut self,
        at: &mut Moment<'_>,
        key: &ObjectKey,
        pod: &Value,
        dry_run: bool,
    ) -> Result<(), Status> {
        let budgets: Vec<ObjectKey> = self
            .store
            .list("policy", "PodDisruptionBudget", key.namespace.as_deref())
            .filter(|(_, budget)| {
                let selector = budget.pointer("/spec/selector");
                selector.is_some_and(|selector| validate::selects(selector, pod.pointer("/metadata/labels")))
            })
            .map(|(key, _)| key.clone())
            .collect();
        let budget = match budgets.as_slice() {
            [] => return Ok(()),
            [only] => only,
            _ => {
                return Err(Status::internal(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        let facts = self.facts_of_key(budget)?;
        let live = self.live(&facts, budget)?;
        let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
        let behind = number("/status/observedGeneration") < number("/metadata/generation");
        let allowed = number("/status/disruptionsAllowed");
        if behind || allowed <= 0 {
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            let mut status = Status::too_many_requests(message, RETRY_SECONDS);
            let detail = format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                budget.name,
                number("/status/desiredHealthy"),
                number("/status/currentHealthy")
            );
            status.details["causes"] = json!([{"reason": "DisruptionBudget", "message": detail}]);
            return Err(status);
        }
        let mut new = live.as_ref().clone();
        let now = at.seconds();
        set_pointer(&mut new, "/status/disruptionsAllowed", json!(allowed - 1));
        set_pointer(&mut new, &format!("/status/disruptedPods/{}", key.name), json!(now));
        let options = Options { dry_run, ..Options::by("kube-apiserver") };
        self.update_object(at, &facts, budget, Some("status"), new, &options).map(|_| ())
    }

    /// Takes finalizers off a namespace's spec, as its controller does once everything in it is gone.
    fn finalize(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        let body = body::read(call.body, call.content_type)?.value;
        let mut namespace = self.live(facts, key)?.as_ref().clone();
        let version = object::resource_version(&body).to_owned();
        set_pointer(&mut namespace, "/metadata/resourceVersion", json!(version));
        let left = body.pointer("/spec/finalizers").cloned().unwrap_or(Value::Null);
        set_pointer(&mut namespace, "/spec/finalizers", left);
        let options = call.options()?;
        let updated = self.update_object(at, facts, key, Some("finalize"), namespace, &options)?;
        Ok(Answer::object(200, facts, updated))
    }
}

fn success(code: u16) -> Answer {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code});
    Answer { code, ..Answer::document(status) }
}

/// Sets what a JSON pointer of field names leads to.
fn set_pointer(object: &mut Value, pointer: &str, value: Value) {
    let mut current = object;
    for name in pointer.split('/').skip(1) {
        current = as_mapping(current).entry(name).or_insert(Value::Null);
    }
    *current = value;
}

fn as_list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = json!([]);
    }
    match value {
        Value::Array(items) => items,
        _ => unreachable!("made a list above"),
    }
}

/// A selector as text; that of a replication controller is a plain mapping.
fn selector_text(selector: &Value) -> String {
    let structured = selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    let shown = if structured {
        super::table::selector(Some(selector))
    } else {
        super::table::labels(Some(selector))
    };
    shown.as_str().filter(|text| *text != "<none>").unwrap_or_default().to_owned()
}
