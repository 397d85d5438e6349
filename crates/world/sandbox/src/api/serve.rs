//! From a request to an answer.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Method, Request};
use scantling_api::{GroupVersionKind, KindFacts, ObjectKey};
use serde_json::{Value, json};

use super::accept::{Accept, Include};
use super::answer::{Answer, Content, refusal};
use super::body::{self, MAX_BODY};
use super::path::{Path, Query, Target};
use super::views::{self, View};
use super::write::{FieldValidation, Options};
use super::{ApiServer, Cause, DeleteOptions, Deleted, Moment, Propagation, Reply, Status};

/// Longest field manager, as on a real server.
const MAX_MANAGER: usize = 128;

/// What every handler needs to know about a request.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    /// Method.
    pub(super) method: &'a Method,
    /// Query.
    pub(super) query: Query,
    /// Form of the answer.
    pub(super) accept: Accept,
    /// `Content-Type`.
    pub(super) content_type: &'a str,
    /// `User-Agent`.
    pub(super) agent: &'a str,
    /// Body.
    pub(super) body: &'a Bytes,
    /// The request is about another look at the stored kind: the look, and the kind that the client knows.
    pub(super) view: Option<(&'static View, KindFacts)>,
}

impl ApiServer {
    /// Answers a request.
    pub(crate) fn handle(&mut self, request: &Request<Bytes>, at: &mut Moment<'_>) -> Reply {
        let header =
            |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let answered = Query::parse(request.uri().query().unwrap_or_default()).and_then(|query| {
            let path = Path::parse(request.uri().path())?;
            if request.body().len() > MAX_BODY {
                return Err(Status::too_large(MAX_BODY));
            }
            let include = Include::parse(query.get("includeObject"))?;
            let call = Call {
                method: request.method(),
                query,
                accept: Accept { include, ..Accept::parse(header(ACCEPT))? },
                content_type: header(CONTENT_TYPE),
                agent: header(USER_AGENT),
                body: request.body(),
                view: None,
            };
            self.route(&call, &path, at)
        });
        answered.unwrap_or_else(|status| Reply::Once(refusal(&status)))
    }

    fn route(&mut self, call: &Call<'_>, path: &Path, at: &mut Moment<'_>) -> Result<Reply, Status> {
        if let Path::Objects(target) = path {
            return self.objects(call, target, at);
        }
        if call.method != Method::GET {
            return Err(Status::method_not_allowed());
        }
        let answer = match path {
            Path::Health => Answer { code: 200, content: Content::Text("ok"), warnings: Vec::new() },
            Path::Version => Answer::document(super::discovery::version()),
            Path::OpenApiV2 => Answer::document(Self::openapi_v2()),
            Path::OpenApiV3(document) => Answer::document(self.openapi_v3(document.as_deref())?),
            other => Answer::document(self.discover(other, call.accept)?),
        };
        Ok(Reply::Once(self.respond(answer, call.accept, at.now)))
    }

    fn objects(&mut self, call: &Call<'_>, target: &Target, at: &mut Moment<'_>) -> Result<Reply, Status> {
        let facts = self
            .kinds
            .by_plural(&target.group, &target.version, &target.plural)
            .cloned()
            .ok_or_else(|| self.unknown(target))?;
        if target.namespace.is_some() && !facts.namespaced {
            return Err(Status::no_such_resource());
        }
        let namespace = target.namespace.as_deref();
        let shown = facts;
        let view = views::of(&shown.gvk);
        let facts = view.map_or_else(|| Ok(shown.clone()), |view| self.facts(&view.stored()))?;
        self.conversion(&facts)?;
        let call = &Call { view: view.map(|view| (view, shown.clone())), ..call.clone() };
        let answer = match (target.name.as_deref(), target.subresource.as_deref()) {
            (None, _) => match *call.method {
                Method::GET if call.query.flag("watch") => {
                    permit(&shown, "watch")?;
                    return self.watch(call, &facts, namespace, None, at).map(Reply::Watch);
                }
                Method::GET => {
                    permit(&shown, "list")?;
                    self.list(call, &facts, namespace)?
                }
                Method::POST if namespace.is_some() == facts.namespaced => {
                    permit(&shown, "create")?;
                    self.post(call, &facts, namespace, at)?
                }
                Method::DELETE if namespace.is_some() == facts.namespaced => {
                    permit(&shown, "deletecollection")?;
                    self.delete_collection(call, &facts, namespace, at)?
                }
                _ => return Err(Status::method_not_allowed()),
            },
            (Some(_), _) if namespace.is_some() != facts.namespaced => return Err(Status::no_such_resource()),
            (Some(name), Some(subresource)) => {
                self.subresource(call, &facts, namespace, name, subresource, at)?
            }
            (Some(name), None) => {
                let key = key(&facts, namespace, name);
                match *call.method {
                    Method::GET if call.query.flag("watch") => {
                        permit(&shown, "watch")?;
                        return self.watch(call, &facts, namespace, Some(name), at).map(Reply::Watch);
                    }
                    Method::GET => {
                        permit(&shown, "get")?;
                        Answer::object(200, &facts, self.live(&facts, &key)?.as_ref().clone())
                    }
                    Method::PUT => {
                        permit(&shown, "update")?;
                        self.put(call, &facts, &key, None, at)?
                    }
                    Method::PATCH => {
                        permit(&shown, "patch")?;
                        self.patch(call, &facts, &key, None, at)?
                    }
                    Method::DELETE => {
                        permit(&shown, "delete")?;
                        self.delete_one(call, &facts, &key, at)?
                    }
                    _ => return Err(Status::method_not_allowed()),
                }
            }
        };
        let mut answer = match view {
            Some(view) => view.answer(&shown, answer)?,
            None => answer,
        };
        answer.warnings.extend(super::warnings::of_deprecated(&shown).map(str::to_owned));
        answer.warnings.extend(self.custom_version(&facts).and_then(|version| version.deprecation.clone()));
        Ok(Reply::Once(self.respond(answer, call.accept, at.now)))
    }

    /// A version that is not served is no path at all; one that is lacks the resource.
    fn unknown(&self, target: &Target) -> Status {
        match self.kinds.in_version(&target.group, &target.version).next() {
            Some(_) => Status::no_such_resource(),
            None => Status::no_such_path(),
        }
    }

    fn post(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        namespace: Option<&str>,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        if let Some(answer) = Self::review(call, facts)? {
            return Ok(answer);
        }
        let options = call.options()?;
        let (object, mut warnings) = self.decode(call, facts, &options)?;
        warnings.extend(super::warnings::of_created(facts));
        if super::custom::is_definition(&facts.gvk.group, &facts.gvk.kind) {
            warnings.extend(super::custom::warnings(&object));
        }
        let created = self.create_object(at, facts, namespace, object, &options)?;
        Ok(Answer { warnings, ..Answer::object(201, facts, created) })
    }

    pub(super) fn put(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        subresource: Option<&str>,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        let options = call.options()?;
        let (mut object, warnings) = self.decode(call, facts, &options)?;
        require_same_identity(&mut object, key)?;
        if scantling_api::object::resource_version(&object).is_empty() && self.needs_version(facts) {
            let cause =
                Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            let named = GroupVersionKind::new(
                facts.gvk.group.as_str(),
                facts.gvk.version.as_str(),
                facts.plural.as_str(),
            );
            self.live(facts, key)?;
            return Err(Status::invalid(&named, &key.name, vec![cause]));
        }
        let updated = self.update_object(at, facts, key, subresource, object, &options)?;
        Ok(Answer { warnings, ..Answer::object(200, facts, updated) })
    }

    /// Kinds whose objects are never replaced without saying which version (`AllowUnconditionalUpdate` of their
    /// strategies).
    fn needs_version(&self, facts: &KindFacts) -> bool {
        self.is_custom(facts)
            || matches!(
                facts.gvk.kind.as_str(),
                "CustomResourceDefinition"
                    | "Lease"
                    | "EndpointSlice"
                    | "PodDisruptionBudget"
                    | "RuntimeClass"
                    | "APIService"
            )
    }

    fn delete_one(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        key: &ObjectKey,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        let options = call.delete_options()?;
        if super::admission::is_protected_namespace(key) {
            return Err(Status::forbidden(facts, &key.name, "this namespace may not be deleted"));
        }
        Ok(match self.delete_object(at, facts, key, &options)? {
            Deleted::Pending(object) => Answer::object(200, facts, object),
            Deleted::Gone(object) if returns_deleted_object(facts) => Answer::object(200, facts, object),
            Deleted::Gone(object) => {
                let mut details =
                    json!({"name": key.name, "kind": facts.plural, "uid": object.pointer("/metadata/uid")});
                if !key.group.is_empty() {
                    details["group"] = json!(key.group);
                }
                Answer::document(json!({
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": details,
                }))
            }
        })
    }

    fn delete_collection(
        &mut self,
        call: &Call<'_>,
        facts: &KindFacts,
        namespace: Option<&str>,
        at: &mut Moment<'_>,
    ) -> Result<Answer, Status> {
        let options = call.delete_options()?;
        let selector = self.selector(call, facts)?;
        let keys: Vec<ObjectKey> = self
            .store
            .list(&facts.gvk.group, &facts.gvk.kind, namespace)
            .filter(|(_, object)| selector.matches(object))
            .map(|(key, _)| key.clone())
            .collect();
        let mut deleted = Vec::new();
        for key in &keys {
            let (Deleted::Gone(object) | Deleted::Pending(object)) =
                self.delete_object(at, facts, key, &options)?;
            deleted.push(std::sync::Arc::new(object));
        }
        let version = self.store.version();
        Ok(Answer::list(facts, super::answer::List { items: deleted, version, ..Default::default() }))
    }
}

impl Call<'_> {
    /// Who writes, and how.
    pub(super) fn options(&self) -> Result<Options, Status> {
        let dry_run = self.dry_run()?;
        let validation = match self.query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                let cause =
                    Cause::unsupported("fieldValidation", &json!(other), &["Ignore", "Strict", "Warn"]);
                return Err(self.options_invalid(cause));
            }
        };
        Ok(Options { manager: self.manager()?, dry_run, validation, ..Options::default() })
    }

    fn options_invalid(&self, cause: Cause) -> Status {
        let kind = match *self.method {
            Method::POST => "CreateOptions",
            Method::PUT => "UpdateOptions",
            Method::DELETE => "DeleteOptions",
            _ => "PatchOptions",
        };
        Status::options(kind, cause)
    }

    fn dry_run(&self) -> Result<bool, Status> {
        let mut dry_run = false;
        for value in self.query.all("dryRun").filter(|value| !value.is_empty()) {
            if value != "All" {
                return Err(self.options_invalid(Cause::unsupported("dryRun", &json!([value]), &["All"])));
            }
            dry_run = true;
        }
        Ok(dry_run)
    }

    /// The field manager: as given, or what the user agent begins with.
    fn manager(&self) -> Result<String, Status> {
        if let Some(manager) = self.query.get("fieldManager") {
            if manager.len() > MAX_MANAGER {
                let cause = Cause::invalid(
                    "fieldManager",
                    &json!(manager),
                    format!("may not be longer than {MAX_MANAGER}"),
                );
                return Err(self.options_invalid(cause));
            }
            if let Some(c) = manager.chars().find(|c| c.is_control()) {
                let cause = Cause::invalid(
                    "fieldManager",
                    &json!(manager),
                    format!("should only contain printable characters (found {c:?})"),
                );
                return Err(self.options_invalid(cause));
            }
            return Ok(manager.to_owned());
        }
        let agent = self.agent.split('/').next().unwrap_or_default();
        let name: String = agent.chars().filter(|c| !c.is_control()).take(MAX_MANAGER).collect();
        Ok(if name.is_empty() { "unknown".to_owned() } else { name })
    }

    /// What a deletion is told: in its body, or, if there is none, in its query.
    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let body =
            if self.body.is_empty() { json!({}) } else { body::read(self.body, self.content_type)?.value };
        let given = |name: &str| {
            if self.body.is_empty() {
                return self.query.get(name).map(|text| json!(text));
            }
            body.get(name).filter(|value| !value.is_null()).cloned()
        };
        let propagation = match given("propagationPolicy")
            .as_ref()
            .map(|value| value.as_str().unwrap_or_default())
        {
            None => match given("orphanDependents") {
                Some(value) if value == json!(true) || value == json!("true") => Some(Propagation::Orphan),
                _ => None,
            },
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                return Err(self.options_invalid(Cause::unsupported(
                    "propagationPolicy",
                    &json!(other),
                    &known,
                )));
            }
        };
        let seconds = given("gracePeriodSeconds").map(|value| {
            value
                .as_i64()
                .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
                .ok_or_else(|| Status::bad_request(format!("gracePeriodSeconds {value} is no number")))
        });
        let text = |pointer| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let dry_run = match body.get("dryRun").and_then(Value::as_array).map(Vec::as_slice) {
            None | Some([]) => self.body.is_empty() && self.dry_run()?,
            Some(values) if values.iter().all(|value| value == "All") => true,
            Some(values) => {
                return Err(self.options_invalid(Cause::unsupported("dryRun", &json!(values), &["All"])));
            }
        };
        Ok(DeleteOptions {
            grace_period_seconds: seconds.transpose()?,
            propagation,
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
            dry_run,
        })
    }
}

/// The key of an object that a path names.
pub(super) fn key(facts: &KindFacts, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        group: facts.gvk.group.clone(),
        kind: facts.gvk.kind.clone(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}

fn permit(facts: &KindFacts, verb: &str) -> Result<(), Status> {
    if facts.verbs.iter().any(|known| known == verb) { Ok(()) } else { Err(Status::method_not_allowed()) }
}

/// A body that names an object must name that of the path; one that names none gets the name.
fn require_same_identity(object: &mut Value, key: &ObjectKey) -> Result<(), Status> {
    let name = scantling_api::object::name(object);
    if name.is_empty() {
        return Err(Status::bad_request("name must be provided"));
    }
    if name != key.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        )));
    }
    match (scantling_api::object::namespace(object), key.namespace.as_deref()) {
        (Some(written), namespace) if Some(written) != namespace => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
        _ => {
            if let (Some(namespace), Some(metadata)) =
                (&key.namespace, object.get_mut("metadata").and_then(Value::as_object_mut))
            {
                metadata.insert("namespace".into(), json!(namespace));
            }
            Ok(())
        }
    }
}

/// Kinds whose deletion answers with the object (`ReturnDeletedObject` of the registry's stores); the others answer with
/// a `Status`.
fn returns_deleted_object(facts: &KindFacts) -> bool {
    facts.gvk.group.is_empty()
        && matches!(
            facts.gvk.kind.as_str(),
            "Pod"
                | "Service"
                | "ServiceAccount"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "PodTemplate"
                | "ResourceQuota"
        )
}
