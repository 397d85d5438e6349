//! Watches that break, forget, repeat themselves or lag behind, processes that die or are two: notebooks and models end the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use scantling_cluster::Cluster;
use scantling_reconcile::RECONCILERS;
use scantling_rehearse::{BoxError, Gate, Kill};
use serde_json::{Value, json};
use tower::Service;

use crate::stage::*;

/// What is done to what the API server says.
#[derive(Default)]
struct Lies {
    /// Events of watches that get lost: type, kind.
    lost: Vec<(&'static str, &'static str)>,
    /// Every event is told twice, and the one before once more.
    repeats: bool,
    /// Every watch ends with 410 after so many events.
    gone_after: Option<usize>,
    /// Every watch begins so much later.
    watches_late: Duration,
    /// Lists are remembered as they are now, by path.
    records: bool,
    /// Every request: verb, group and resource.
    requests: BTreeSet<(String, String, String)>,
    /// What was remembered is told once instead of what is.
    old_lists: BTreeMap<String, Bytes>,
}

/// Stands between a client and the sandbox.
#[derive(Clone)]
struct Liar<S> {
    inner: S,
    lies: Arc<Mutex<Lies>>,
}

type Body = UnsyncBoxBody<Bytes, BoxError>;

impl<S, B> Service<Request<B>> for Liar<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let lies = self.lies.clone();
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_list = request.method() == http::Method::GET && query.contains("limit=");
        let is_watch = query.contains("watch=true");
        lies.lock().unwrap().requests.extend(asked(request.method(), &path, is_watch));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if is_watch {
                let late = lies.lock().unwrap().watches_late;
                tokio::time::sleep(late).await;
                return Ok(answer
                    .map(|inner| Told { inner, lies, events: 0, before: None, over: false }.boxed_unsync()));
            }
            if !is_list {
                return Ok(answer);
            }
            let (parts, body) = answer.into_parts();
            let mut bytes = body.collect().await?.to_bytes();
            let mut lies = lies.lock().unwrap();
            if lies.records {
                lies.old_lists.insert(path, bytes.clone());
            } else if let Some(old) = lies.old_lists.remove(&path) {
                bytes = old;
            }
            drop(lies);
            Ok(Response::from_parts(parts, Full::new(bytes).map_err(|never| match never {}).boxed_unsync()))
        })
    }
}

/// What a request asks to be allowed: verb, group and resource. Nothing for discovery.
fn asked(method: &http::Method, path: &str, is_watch: bool) -> Option<(String, String, String)> {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, mut parts) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    if let ["namespaces", _, rest @ ..] = parts
        && !rest.is_empty()
    {
        parts = rest;
    }
    if parts.is_empty() {
        return None;
    }
    let resource = parts.get(2).map_or(parts[0].to_owned(), |sub| format!("{}/{sub}", parts[0]));
    let verb = match method.as_str() {
        "GET" if is_watch => "watch",
        "GET" if parts.len() == 1 => "list",
        "GET" => "get",
        "POST" => "create",
        "PATCH" => "patch",
        "DELETE" => "delete",
        other => other,
    };
    Some((verb.to_owned(), group.to_owned(), resource))
}

/// A watch, as it is told.
struct Told {
    inner: Body,
    lies: Arc<Mutex<Lies>>,
    events: usize,
    before: Option<Value>,
    over: bool,
}

impl Told {
    fn told(&mut self, frame: &Bytes) -> Bytes {
        let lies = self.lies.lock().unwrap();
        let frames = frame.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let events: VecDeque<Value> = frames.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let mut told = Vec::new();
        for event in events {
            let is = |(kind, of): &(&str, &str)| event["type"] == *kind && event["object"]["kind"] == *of;
            if lies.lost.iter().any(is) {
                continue;
            }
            if event["type"] != "BOOKMARK" {
                self.events += 1;
                if lies.repeats {
                    told.push(event.clone());
                    // An event of the past is told again: not that something came or went, but how it was.
                    told.extend(
                        self.before.replace(event.clone()).filter(|before| before["type"] == "MODIFIED"),
                    );
                }
            }
            told.push(event);
            if lies.gone_after.is_some_and(|after| self.events >= after) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "too old resource version", "reason": "Expired", "code": 410});
                told.push(json!({"type": "ERROR", "object": status}));
                self.over = true;
                break;
            }
        }
        told.iter().fold(String::new(), |text, event| text + &event.to_string() + "\n").into()
    }
}

impl http_body::Body for Told {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while !self.over {
            match std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let told = self.told(&frame.into_data().unwrap_or_default());
                    if !told.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(told))));
                    }
                }
                other => return Poll::Ready(other),
            }
        }
        Poll::Ready(None)
    }
}

fn liar(stage: &Stage, lies: &Arc<Mutex<Lies>>) -> Cluster {
    let inner = stage.sandbox.kubernetes(Gate::default());
    Cluster::over(Liar { inner, lies: lies.clone() }, 5)
}

const MINUTE: Duration = Duration::from_mins(1);

async fn run(stage: &Stage, cluster: &Cluster, time: Duration) -> Vec<String> {
    stage.run_over(cluster, RECONCILERS, &Gate::default(), time).await
}

/// Runs undisturbed.
async fn rest(stage: &Stage, time: Duration) -> Vec<String> {
    run(stage, &Cluster::over(stage.sandbox.kubernetes(Gate::default()), 6), time).await
}

fn choice(stage: &Stage, tag: &str) -> Value {
    json!({
        "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage", "metadata": {"name": "lab", "namespace": "scantling"},
        "spec": {"selection": "lab:1", "title": "Lab", "image": stage.image("mlserver", tag)},
    })
}

/// Two notebooks, one with a volume, and two models.
async fn story(stage: &Stage) {
    stage.put(choice(stage, "1")).await;
    for (name, size) in [("anna", None), ("berta", Some("1Gi"))] {
        let mut annotations = json!({"notebooks.opendatahub.io/last-image-selection": "lab:1"});
        if let Some(size) = size {
            annotations["scantling.dev/volume-size"] = json!(size);
        }
        let metadata = json!({"name": name, "namespace": TEAM, "annotations": annotations});
        let spec = json!({"template": {"spec": {"containers": [{"name": name}]}}});
        stage.put(json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": metadata, "spec": spec})).await;
    }
    stage.put(stage.model("iris")).await;
    stage.put(stage.model("wine")).await;
}

/// What there is in the end, and what was written for it.
async fn undisturbed() -> (Vec<(scantling_api::ObjectKey, Value)>, Vec<String>) {
    let stage = Stage::new().await;
    story(&stage).await;
    let written = rest(&stage, MINUTE).await;
    let pods = stage.find("", "Pod", "anna-0").zip(stage.find("", "Pod", "berta-0")).unwrap();
    assert!(pods.0["status"]["phase"] == "Running" && pods.1["status"]["phase"] == "Running");
    assert!(stage.answers("iris") && stage.answers("wine"));
    (stage.made(), written)
}

fn same(stage: &Stage, expected: &[(scantling_api::ObjectKey, Value)], what: &str) {
    let made = stage.made();
    let keys = |all: &[(scantling_api::ObjectKey, Value)]| {
        all.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&made), keys(expected), "{what}");
    for ((key, made), (_, expected)) in made.iter().zip(expected) {
        assert_eq!(made, expected, "{what}: {key}");
    }
}

fn notebook(stage: &Stage) -> (Value, Value) {
    let set = stage.find("apps", "StatefulSet", "anna").unwrap();
    let pod = stage.find("", "Pod", "anna-0").unwrap();
    (set["metadata"]["generation"].clone(), pod["metadata"]["uid"].clone())
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_repeat_or_forget_lead_to_the_same() {
    let (expected, written) = undisturbed().await;
    for (what, lies) in [
        ("410 after every second event", Lies { gone_after: Some(2), ..Lies::default() }),
        ("410 after every event", Lies { gone_after: Some(1), ..Lies::default() }),
        ("everything twice, and the past once more", Lies { repeats: true, ..Lies::default() }),
        (
            "no word of what was made",
            Lies {
                lost: vec![
                    ("ADDED", "StatefulSet"),
                    ("ADDED", "Service"),
                    ("MODIFIED", "InferenceService"),
                    ("MODIFIED", "Notebook"),
                ],
                ..Lies::default()
            },
        ),
    ] {
        let (repeats, lies) = (lies.repeats, Arc::new(Mutex::new(lies)));
        let stage = Stage::new().await;
        story(&stage).await;
        let told = run(&stage, &liar(&stage, &lies), MINUTE * 3).await;
        same(&stage, &expected, what);
        if repeats {
            assert_eq!(told, written, "{what}: not one write more");
        }
        assert_eq!(rest(&stage, MINUTE * 2).await, Vec::<String>::new(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_watch_tells_is_found_by_the_next_list() {
    let lies = Arc::new(Mutex::new(Lies {
        lost: vec![("DELETED", "Service"), ("DELETED", "StatefulSet"), ("MODIFIED", "Deployment")],
        ..Lies::default()
    }));
    let stage = Stage::new().await;
    story(&stage).await;
    rest(&stage, MINUTE).await;
    let expected = stage.made();
    let disturb = async {
        tokio::time::sleep(MINUTE).await;
        stage.delete("", "Service", "iris-predictor").await;
        stage.delete("", "Service", "berta").await;
        stage.edit_own(("apps/v1", "Deployment"), "wine-predictor", json!({"spec": {"replicas": 3}})).await;
        tokio::time::sleep(MINUTE * 5).await;
        assert_ne!(stage.made(), expected, "nobody has said so yet");
        // What changes from now on is told; what has got lost is not told again.
        lies.lock().unwrap().lost.clear();
    };
    let cluster = liar(&stage, &lies);
    tokio::join!(disturb, run(&stage, &cluster, MINUTE * 40));
    same(&stage, &expected, "after 40 minutes");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_older_than_what_was_made_makes_nothing_twice() {
    let stage = Stage::new().await;
    let lies = Arc::new(Mutex::new(Lies { records: true, ..Lies::default() }));
    let cluster = liar(&stage, &lies);
    // The lists of before anything was made.
    run(&stage, &cluster, Duration::from_secs(5)).await;
    lies.lock().unwrap().records = false;
    let old = std::mem::take(&mut lies.lock().unwrap().old_lists);
    story(&stage).await;
    rest(&stage, MINUTE).await;
    // An update waits, so that a notebook whose set seems to be missing would be made anew as something else.
    let edit = json!({"spec": {"template": {"spec": {"serviceAccountName": "default"}}}});
    let stub = json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "anna", "namespace": TEAM}});
    stage.patch(stub, edit).await;
    stage.put(choice(&stage, "2")).await;
    rest(&stage, MINUTE).await;
    let (before, expected) = (notebook(&stage), stage.made());
    let made = ["/statefulsets", "/deployments", "/services", "/networkpolicies", "/persistentvolumeclaims"];
    let of_made = old.into_iter().filter(|(path, _)| made.iter().any(|plural| path.ends_with(plural)));
    lies.lock().unwrap().old_lists = of_made.collect();
    assert_eq!(lies.lock().unwrap().old_lists.len(), made.len());
    // No watch puts it right before something is decided.
    lies.lock().unwrap().watches_late = Duration::from_secs(20);
    let written = run(&stage, &cluster, MINUTE).await;
    assert!(lies.lock().unwrap().old_lists.is_empty(), "the old lists were told");
    // What was believed for a moment was said; nothing was made.
    assert!(written.iter().all(|write| write.starts_with("patch ")), "{written:?}");
    assert_eq!(notebook(&stage), before);
    same(&stage, &expected, "in the end");
}

#[tokio::test(start_paused = true)]
async fn two_that_lead_for_a_moment_answer_a_restart_once() {
    let (expected, _) = undisturbed().await;
    let stage = Stage::new().await;
    story(&stage).await;
    let two = [7, 8].map(|seed| Cluster::over(stage.sandbox.kubernetes(Gate::default()), seed));
    tokio::join!(run(&stage, &two[0], MINUTE), run(&stage, &two[1], MINUTE));
    assert_eq!(stage.made(), expected);
    let before = notebook(&stage);
    let ask = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let stub = json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "anna", "namespace": TEAM}});
        let restart =
            json!({"metadata": {"annotations": {"notebooks.opendatahub.io/notebook-restart": "true"}}});
        stage.patch(stub, restart).await;
    };
    tokio::join!(ask, run(&stage, &two[0], MINUTE * 2), run(&stage, &two[1], MINUTE * 2));
    let after = notebook(&stage);
    assert_ne!(after.1, before.1, "it has a new pod");
    assert_eq!(after.0.as_i64().unwrap(), before.0.as_i64().unwrap() + 1, "its template was written once");
    assert_eq!(rest(&stage, MINUTE).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn whoever_dies_at_a_write_is_continued() {
    let (expected, written) = undisturbed().await;
    let writes = u64::try_from(written.len()).unwrap();
    assert!(writes > 15, "{written:?}");
    let spread = (1..=writes).map(|n| if n % 2 == 0 { Kill::Before(n) } else { Kill::After(n) });
    for kill in spread {
        let stage = Stage::new().await;
        story(&stage).await;
        let gate = Gate::killing(kill);
        let cluster = Cluster::over(stage.sandbox.kubernetes(gate.clone()), 5);
        stage.run_over(&cluster, RECONCILERS, &gate, MINUTE).await;
        rest(&stage, MINUTE).await;
        same(&stage, &expected, &format!("{kill:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_that_the_operators_rights_do_not_allow() {
    let lies = Arc::new(Mutex::new(Lies::default()));
    let stage = Stage::new().await;
    story(&stage).await;
    // A choice that cannot be pulled, whose pod has to go when it is put right.
    let absent = format!("{HOST}/mlserver@sha256:{}", "0".repeat(64));
    let mut broken = choice(&stage, "1");
    broken["spec"]["image"] = json!(absent);
    stage.put(broken).await;
    let mut of_store = stage.model("stored");
    of_store["spec"]["predictor"]["model"]["storageUri"] = Value::Null;
    of_store["spec"]["predictor"]["model"]["storage"] = json!({"key": "store", "path": "x"});
    stage.put(of_store).await;
    let cluster = liar(&stage, &lies);
    let people = async {
        tokio::time::sleep(MINUTE).await;
        stage.put(choice(&stage, "1")).await;
        tokio::time::sleep(MINUTE).await;
        stage.put(choice(&stage, "2")).await;
        let stub = json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "anna", "namespace": TEAM}});
        tokio::time::sleep(MINUTE).await;
        stage
            .patch(
                stub,
                json!({"metadata": {"annotations": {"notebooks.opendatahub.io/notebook-restart": "true"}}}),
            )
            .await;
        stage.put(stage.runtime("mlserver", "2")).await;
    };
    tokio::join!(people, run(&stage, &cluster, MINUTE * 5));
    let asked = std::mem::take(&mut lies.lock().unwrap().requests);
    let rules = scantling_operator::rights();
    let is_allowed = |(verb, group, resource): &(String, String, String)| {
        rules.iter().filter(|rule| rule.namespace.is_none() && rule.resource_names.is_empty()).any(|rule| {
            rule.api_groups.contains(group) && rule.resources.contains(resource) && rule.verbs.contains(verb)
        })
    };
    let refused: Vec<_> = asked.iter().filter(|right| !is_allowed(right)).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let has = |verb: &str, group: &str, resource: &str| {
        asked.contains(&(verb.to_owned(), group.to_owned(), resource.to_owned()))
    };
    for (verb, group, resource) in [
        ("get", "", "secrets"),
        ("create", "", "events"),
        ("create", "", "persistentvolumeclaims"),
        ("patch", "apps", "statefulsets"),
        ("patch", "kubeflow.org", "notebooks"),
        ("patch", "serving.kserve.io", "inferenceservices/status"),
    ] {
        assert!(has(verb, group, resource), "{verb} {resource} is not among {asked:?}");
    }
    assert!(!has("list", "", "secrets") && !has("watch", "", "secrets"));
}
