//! A sandbox in the test's process, reached by the product's own clients.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, unreachable_pub, missing_docs)]

pub mod platform;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{Clock, Cluster};
use scantling_contents::{ImageDescription, build};
use scantling_endpoint::{Keyring, Mirrors};
use scantling_image::{Digest, Platform};
use scantling_registry::{RegistryClient, transport_from_fn};
use scantling_registry_server::{Pushed, RegistryServer};
use scantling_release::{Release, Settings};
use scantling_run::{Entropy, Environment, Options, RunError, RunEvent, RunReport, upgrade};
use scantling_sandbox::{Flavour, NodeConfig, Reply, Time, World, WorldConfig};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::{BoxError, Service};

pub const INTERNAL: &str = "image-registry.openshift-image-registry.svc:5000";

/// A part of a path, and what happens to objects that are applied there.
type Mutation = (String, fn(&mut Value));
/// Method and ending of the path of a request, and what somebody does just before it.
type Interlude = (Method, String, fn(&Sandbox));
type Answer = UnsyncBoxBody<Bytes, BoxError>;

/// After how many writes everybody is turned away, and with which status.
type Away = (usize, Option<u16>);

/// When the client is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Instead of its n-th write (from 1): the server never sees it.
    Before(usize),
    /// After its n-th write: the client never sees the answer.
    After(usize),
}

struct Gate {
    writes: usize,
    cut: Option<Cut>,
    log: Vec<String>,
    reads: Vec<String>,
}

/// A world, its clock tied to tokio's paused one.
#[derive(Clone)]
pub struct Sandbox {
    pub world: Arc<Mutex<World>>,
    origin: Instant,
    gate: Arc<Mutex<Gate>>,
    /// Actions, `verb resource`, that the API server denies.
    denied: Arc<Mutex<Vec<String>>>,
    /// Writes to paths that contain a text which are answered with 500 and a message, up to a time.
    unasked: Arc<Mutex<Vec<(String, Instant, String)>>>,
    mutations: Arc<Mutex<Vec<Mutation>>>,
    /// Paths of writes that are done and not answered, once.
    lost: Arc<Mutex<Vec<String>>>,
    /// What others do just before a write, once.
    interludes: Arc<Mutex<Vec<Interlude>>>,
    /// Reads that fail, and the status of the answer.
    failing: Arc<Mutex<Vec<(String, u16)>>>,
    /// After how many writes everybody is turned away, with which status; without one no answer comes.
    away: Arc<Mutex<Option<Away>>>,
    killed: Arc<Notify>,
}

impl Sandbox {
    pub fn new(config: WorldConfig, registry: RegistryServer) -> Self {
        Self {
            world: Arc::new(Mutex::new(World::new(config, registry))),
            origin: Instant::now(),
            gate: Arc::new(Mutex::new(Gate { writes: 0, cut: None, log: Vec::new(), reads: Vec::new() })),
            denied: Arc::default(),
            away: Arc::default(),
            unasked: Arc::default(),
            mutations: Arc::default(),
            lost: Arc::default(),
            interludes: Arc::default(),
            failing: Arc::default(),
            killed: Arc::new(Notify::new()),
        }
    }

    /// The world as it is at tokio's present.
    pub fn now<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world.lock().unwrap();
        let millis = u64::try_from(self.origin.elapsed().as_millis()).unwrap();
        world.run_until(Time::from_millis(millis));
        act(&mut world)
    }

    pub fn object(&self, key: &ObjectKey) -> Option<Value> {
        self.now(|world| world.objects().find(|(k, _)| *k == key).map(|(_, v)| v.clone()))
    }

    /// Writes seen since the last call, those to the run's lease left out.
    pub fn take_writes(&self) -> Vec<String> {
        let mut writes = self.take_all_writes();
        writes.retain(|w| !w.contains("/leases"));
        writes
    }

    /// Reads seen since the last call, with their queries.
    pub fn take_reads(&self) -> Vec<String> {
        std::mem::take(&mut self.gate.lock().unwrap().reads)
    }

    /// The same with those to the lease.
    pub fn take_all_writes(&self) -> Vec<String> {
        let mut gate = self.gate.lock().unwrap();
        gate.writes = 0;
        std::mem::take(&mut gate.log)
    }

    /// The next write to a path is done, and its answer is lost.
    pub fn lose_answer(&self, path: &str) {
        self.lost.lock().unwrap().push(path.to_owned());
    }

    /// Just before the next such request to a path with this ending, somebody acts.
    pub fn before(&self, method: Method, ending: &str, act: fn(&Self)) {
        self.interludes.lock().unwrap().push((method, ending.to_owned(), act));
    }

    fn interrupted(&self, parts: &http::request::Parts) {
        let due = {
            let mut waiting = self.interludes.lock().unwrap();
            let due = |(method, ending, _): &Interlude| {
                *method == parts.method && parts.uri.path().ends_with(ending.as_str())
            };
            waiting.iter().position(due).map(|at| waiting.remove(at))
        };
        if let Some((_, _, act)) = due {
            act(self);
        }
    }

    /// From now on a webhook changes every object that is applied to a path with this part.
    pub fn mutate(&self, part: &str, change: fn(&mut Value)) {
        self.mutations.lock().unwrap().push((part.to_owned(), change));
    }

    fn admitted(&self, parts: &http::request::Parts, bytes: Bytes) -> Bytes {
        let mutations = self.mutations.lock().unwrap();
        let of_path = |(part, _): &&Mutation| parts.uri.path().contains(part.as_str());
        let Some((_, change)) = mutations.iter().find(|m| parts.method == Method::PATCH && of_path(m)) else {
            return bytes;
        };
        let mut object: Value = serde_json::from_slice(&bytes).unwrap();
        change(&mut object);
        Bytes::from(object.to_string())
    }

    pub fn deny(&self, actions: &[&str]) {
        *self.denied.lock().unwrap() = actions.iter().map(|a| (*a).to_owned()).collect();
    }

    /// Lets reads fail whose address is a text, or has it in it if it ends with `?`.
    pub fn fail_reads(&self, failing: &[(&str, u16)]) {
        *self.failing.lock().unwrap() = failing.iter().map(|(text, s)| ((*text).to_owned(), *s)).collect();
    }

    /// Turns everybody away after some more writes.
    pub fn turn_away(&self, away: Option<(usize, Option<u16>)>) {
        self.gate.lock().unwrap().writes = 0;
        *self.away.lock().unwrap() = away;
    }

    fn fails(&self, address: &str) -> Option<Response<Answer>> {
        let failing = self.failing.lock().unwrap();
        let status = failing.iter().find(|(text, _)| {
            if text.ends_with('?') { address.contains(text.as_str()) } else { address == text }
        })?;
        Some(Self::failure(status.1))
    }

    fn failure(status: u16) -> Response<Answer> {
        let body = serde_json::json!({"kind": "Status", "reason": "Test", "message": "a test says so"});
        let body = Answer::new(Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}));
        Response::builder().status(status).body(body).unwrap()
    }

    fn denies(&self, path: &str, body: &[u8]) -> Option<Value> {
        if !path.ends_with("/selfsubjectaccessreviews") {
            return None;
        }
        let mut review: Value = serde_json::from_slice(body).unwrap();
        let text =
            |field: &str| object::text(&review, &format!("/spec/resourceAttributes/{field}")).to_owned();
        let action = format!("{} {}", text("verb"), text("resource"));
        let denied = self.denied.lock().unwrap();
        // Who may not do one thing may not do everything.
        if !denied.contains(&action) && (action != "* *" || denied.is_empty()) {
            return None;
        }
        review["status"] = serde_json::json!({"allowed": false});
        Some(review)
    }

    /// Lets the server say, for a while, that it cannot ask the webhook that guards writes to a path.
    pub fn webhook_away(&self, path: &str, time: Duration, words: &str) {
        self.unasked.lock().unwrap().push((path.to_owned(), Instant::now() + time, words.to_owned()));
    }

    fn unguarded(&self, path: &str) -> Option<Value> {
        let unasked = self.unasked.lock().unwrap();
        let (.., words) =
            unasked.iter().find(|(part, until, _)| path.contains(part) && Instant::now() < *until)?;
        Some(serde_json::json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "reason": "InternalError", "code": 500, "message": format!("Internal error occurred: {words}"),
        }))
    }

    pub fn cut(&self, cut: Option<Cut>) {
        let mut gate = self.gate.lock().unwrap();
        gate.cut = cut;
        gate.writes = 0;
    }

    /// Ends when the client is cut off.
    pub async fn killed(&self) {
        self.killed.notified().await;
    }

    pub fn environment(&self, seed: u64) -> Environment {
        let start = self.now(|world| world.timestamp());
        let world = self.clone();
        let transport =
            transport_from_fn(move |host, request| Ok(world.now(|w| w.registry().handle(host, request))));
        let options = scantling_registry::Options { seed, ..Default::default() };
        Environment {
            cluster: Cluster::over(self.clone(), seed),
            registry: RegistryClient::new(transport, Mirrors::new(), Keyring::new(), options),
            clock: Clock::starting_at(start),
            entropy: Entropy::from_seed(seed),
            vantage: "here".to_owned(),
        }
    }

    /// A raw request, as a person with a tool of another name would make it.
    pub fn act(&self, method: Method, path: &str, media_type: &str, body: &Value) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type)
            .body(Bytes::from(body.to_string()))
            .unwrap();
        self.now(|world| match world.handle(&request) {
            Reply::Once(response) => {
                let status = response.status().as_u16();
                (status, serde_json::from_slice(response.body()).unwrap_or_default())
            }
            Reply::Watch(_) => panic!("a watch"),
        })
    }

    /// Runs an upgrade until it ends or is cut off. None if it was cut off.
    pub async fn upgrade(
        &self,
        release: &Release,
        options: &Options,
        seed: u64,
    ) -> Option<(Result<RunReport, RunError>, Vec<RunEvent>)> {
        let environment = self.environment(seed);
        let mut events = Vec::new();
        let mut sink = |event: RunEvent| events.push(event);
        let ended = Box::pin(self.until_killed(upgrade(&environment, release, options, &mut sink))).await;
        ended.map(|ended| (ended, events))
    }

    /// What a run came to. None if it was cut off.
    pub async fn until_killed<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.killed.notified() => None,
            ended = run => Some(ended),
        }
    }

    fn watch_body(&self, id: scantling_sandbox::WatchId) -> Answer {
        let sandbox = self.clone();
        let stream = futures::stream::unfold((sandbox, false), move |(sandbox, closed)| async move {
            if closed {
                return None;
            }
            loop {
                let (chunk, next) = sandbox.now(|w| (w.watch_poll(id), w.next_event()));
                if !chunk.bytes.is_empty() {
                    let bytes: Vec<u8> = chunk.bytes.concat();
                    let frame: Result<Frame<Bytes>, BoxError> = Ok(Frame::data(Bytes::from(bytes)));
                    return Some((frame, (sandbox, chunk.closed)));
                }
                if chunk.closed {
                    return None;
                }
                // Requests of others change the world at times that no event announces.
                let soon = Instant::now() + Duration::from_millis(250);
                let due = next.map_or(soon, |t| sandbox.origin + Duration::from_millis(t.as_millis()));
                tokio::time::sleep_until(due.clamp(Instant::now() + Duration::from_millis(1), soon)).await;
            }
        });
        Answer::new(StreamBody::new(stream))
    }
}

impl Service<Request<Body>> for Sandbox {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let sandbox = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            // A question about rights is posted and changes nothing, as a dry run does.
            let writes = parts.method != Method::GET
                && !parts.uri.path().contains("/selfsubject")
                && !parts.uri.query().unwrap_or_default().contains("dryRun=All");
            let cut = {
                let mut gate = sandbox.gate.lock().unwrap();
                if writes {
                    gate.writes += 1;
                } else {
                    gate.reads.push(parts.uri.to_string());
                }
                let (count, cut) = (gate.writes, gate.cut);
                let before = writes && cut == Some(Cut::Before(count));
                if writes && !before {
                    gate.log.push(format!("{} {}", parts.method, parts.uri.path()));
                }
                let after = writes && cut == Some(Cut::After(count));
                (before, after)
            };
            if let Some(review) = sandbox.denies(parts.uri.path(), &bytes) {
                let body = Bytes::from(review.to_string());
                let body = Answer::new(Full::new(body).map_err(|never| match never {}));
                return Ok(Response::builder().status(201).body(body)?);
            }
            if let Some(status) = sandbox.unguarded(parts.uri.path()).filter(|_| writes) {
                let body = Bytes::from(status.to_string());
                let body = Answer::new(Full::new(body).map_err(|never| match never {}));
                return Ok(Response::builder()
                    .status(500)
                    .header("content-type", "application/json")
                    .body(body)?);
            }
            let away = *sandbox.away.lock().unwrap();
            let written = sandbox.gate.lock().unwrap().writes;
            match away.filter(|(after, _)| written > *after) {
                Some((_, Some(status))) => return Ok(Self::failure(status)),
                Some((_, None)) => return Err("connection refused".into()),
                None => {}
            }
            if !writes && let Some(answer) = sandbox.fails(&parts.uri.to_string()) {
                return Ok(answer);
            }
            let never = || std::future::pending::<Result<Response<Answer>, BoxError>>();
            if cut.0 {
                sandbox.killed.notify_one();
                return never().await;
            }
            sandbox.interrupted(&parts);
            let bytes = sandbox.admitted(&parts, bytes);
            let lost = {
                let mut lost = sandbox.lost.lock().unwrap();
                let at = lost.iter().position(|path| writes && path == parts.uri.path());
                at.map(|at| lost.remove(at))
            };
            let reply = sandbox.now(|world| world.handle(&Request::from_parts(parts, bytes)));
            if cut.1 {
                sandbox.killed.notify_one();
                return never().await;
            }
            if lost.is_some() {
                return Err("the connection was closed".into());
            }
            Ok(match reply {
                Reply::Once(response) => {
                    response.map(|bytes| Answer::new(Full::new(bytes).map_err(|never| match never {})))
                }
                Reply::Watch(id) => Response::new(sandbox.watch_body(id)),
            })
        })
    }
}

/// A release from its files.
pub fn release(files: &[(&str, &str)]) -> Release {
    let tree: BTreeMap<String, Vec<u8>> =
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
    match Release::read(&tree, &Settings::default()) {
        Ok(release) => release,
        Err(error) => panic!("{error:?}"),
    }
}

/// Puts an image of some Python packages into a registry.
pub fn push(
    registry: &mut RegistryServer,
    host: &str,
    repository: &str,
    tag: &str,
    packages: &[(&str, &str)],
) -> Digest {
    let pushed = image(packages);
    registry.push(host, repository, Some(tag), &pushed).unwrap();
    pushed.root
}

pub fn description(packages: &[(&str, &str)]) -> ImageDescription {
    let packages: BTreeMap<&str, &str> = packages.iter().copied().collect();
    serde_json::from_value(serde_json::json!({
        "platforms": [],
        "layers": [{"python": {"path": "/opt/lib/python3.8/site-packages", "packages": packages}}],
    }))
    .unwrap()
}

pub fn image(packages: &[(&str, &str)]) -> Pushed {
    let built = build(&description(packages), None).unwrap();
    Pushed {
        media_type: built.media_type,
        root: built.root,
        blobs: built.blobs.into_iter().map(|(d, (m, b))| (d, m, Bytes::from(b))).collect(),
    }
}

pub fn world(flavour: Flavour, nodes: &[&str]) -> WorldConfig {
    let mut config = WorldConfig::new(7, flavour);
    config.nodes = nodes.iter().map(|name| NodeConfig::new(*name, Platform::linux_amd64())).collect();
    config
}

pub fn key(object: &Value) -> ObjectKey {
    object::key(object).unwrap()
}
