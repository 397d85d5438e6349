//! Snapshots of a sandbox' API server: complete, continued, and with less than all rights.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use scantling_cluster::{Clock, Cluster, Write};
use scantling_observed::{SecretValue, View as _};
use scantling_registry_server::RegistryServer;
use scantling_rehearse::{Gate, InProcess};
use scantling_sandbox::{Flavour, World, WorldConfig};
use scantling_snapshot::{
    Index, Limits, Snapshot, TakeError, TakeEvent, TakeSettings, TokenKey, Why, read, take,
};
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt as _};

/// More than one page.
const CONFIG_MAPS: usize = 1_203;
const PASSWORD: &str = "correct horse battery staple";

/// How the server is stood in front of.
#[derive(Default)]
struct Between {
    /// Lists of config maps that are still answered.
    config_map_lists: AtomicUsize,
    /// Whether the place at which a list continues is forgotten, once.
    forgets: AtomicUsize,
}

struct Cell {
    sandbox: InProcess,
    between: Arc<Between>,
    folder: tempfile::TempDir,
}

impl Cell {
    async fn new() -> Self {
        let world = World::new(WorldConfig::new(7, Flavour::Kubernetes), RegistryServer::new());
        let between = Between { config_map_lists: AtomicUsize::new(usize::MAX), ..Between::default() };
        let cell = Self {
            sandbox: InProcess::new(world),
            between: Arc::new(between),
            folder: tempfile::tempdir().unwrap(),
        };
        let cluster = cell.cluster();
        let served = cluster.served().await.unwrap();
        let create = async |object: Value| {
            cluster.write(&served, &Write::Create { object }).await.unwrap();
        };
        create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})).await;
        for index in 0..CONFIG_MAPS {
            let metadata = json!({"name": format!("c-{index:05}"), "namespace": "a",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"again\":1}"}});
            create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"index": index.to_string()}})).await;
        }
        let secret = |name: &str, data: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                "metadata": {"name": name, "namespace": "a", "annotations": {"copy": PASSWORD}}})
        };
        let connection =
            json!({"endpoints": "https://etcd:2379", "userid": "root", "password": PASSWORD}).to_string();
        create(secret("etcd-passwords", json!({"root": STANDARD.encode(PASSWORD)}))).await;
        create(secret("model-serving-etcd", json!({"etcd_connection": STANDARD.encode(connection)}))).await;
        cell
    }

    /// A client whose requests go past what stands between. Service accounts may not be listed.
    fn cluster(&self) -> Cluster {
        let (inner, between) = (self.sandbox.kubernetes(Gate::default()), Arc::clone(&self.between));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, between) = (inner.clone(), Arc::clone(&between));
            async move {
                let path = request.uri().path_and_query().unwrap().to_string();
                let status = |code: u16, reason: &str, message: &str| {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message});
                    let body = Full::from(status.to_string()).map_err(BoxError::from).boxed_unsync();
                    Ok(Response::builder().status(StatusCode::from_u16(code).unwrap()).body(body).unwrap())
                };
                if path == "/apis/apps/v1" {
                    return status(500, "InternalError", "away");
                }
                if path.starts_with("/api/v1/serviceaccounts?") {
                    return status(
                        403,
                        "Forbidden",
                        "serviceaccounts is forbidden: User \"ann\" cannot list",
                    );
                }
                if path.starts_with("/api/v1/configmaps?") {
                    if path.contains("continue=") && between.forgets.swap(0, Ordering::Relaxed) > 0 {
                        return status(410, "Expired", "too old");
                    }
                    let left = between.config_map_lists.load(Ordering::Relaxed);
                    if left == 0 {
                        return Err(BoxError::from("the connection is gone"));
                    }
                    between.config_map_lists.store(left - 1, Ordering::Relaxed);
                }
                let mut answer =
                    inner.oneshot(request).await?.map(|body| body.map_err(BoxError::from).boxed_unsync());
                answer.headers_mut().insert("date", "Mon, 30 Nov 2026 10:00:30 GMT".parse().unwrap());
                Ok::<_, BoxError>(answer)
            }
        });
        Cluster::over(service, 1)
    }

    fn root(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.folder.path().join("snapshot")).unwrap()
    }

    async fn take(&self, events: &mut Vec<String>) -> Result<Index, TakeError> {
        let settings = TakeSettings {
            folder: self.root(),
            namespace: None,
            server: "https://example.com".to_owned(),
            key: TokenKey::new([events.len().try_into().unwrap_or(9); 32]),
            clock: Clock::starting_at("2026-11-30T10:00:00Z".parse().unwrap()),
        };
        let mut tell = |event: TakeEvent<'_>| {
            events.push(match event {
                TakeEvent::Continued => "continued".to_owned(),
                TakeEvent::Page(kind, objects) => format!("{kind} {objects}"),
                TakeEvent::Again(kind) => format!("{kind} again"),
                TakeEvent::NotSeen(resource) => format!("not {}", resource.missing_right),
            });
        };
        take(&self.cluster(), &settings, &mut tell).await
    }

    fn read(&self) -> Snapshot {
        read(&[self.root()], &Limits::default(), &mut |_| {}).unwrap()
    }
}

fn play(test: impl AsyncFnOnce(&Cell)) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let cell = Cell::new().await;
        let sandbox = cell.sandbox.clone();
        sandbox.pace(test(&cell)).await;
    });
}

/// Everything that was written.
fn texts(folder: &Utf8Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = Utf8PathBuf::from_path_buf(entry.unwrap().path()).unwrap();
        if path.is_dir() { texts(&path, into) } else { into.push_str(&fs::read_to_string(path).unwrap()) }
    }
}

fn value(snapshot: &Snapshot, name: &str, key: &str) -> String {
    let secret = snapshot.observed.secrets().find(|secret| secret.name() == name).unwrap();
    String::from_utf8(secret.value(key).as_ref().map(SecretValue::expose).unwrap().to_vec()).unwrap()
}

#[test]
fn it_holds_what_the_cluster_holds_and_no_secret() {
    play(async |cell| {
        let mut events = Vec::new();
        let index = cell.take(&mut events).await.unwrap();
        assert_eq!((index.taken.as_str(), index.clock_skew_seconds), ("2026-11-30T10:00:30Z", Some(30)));
        assert!(!index.finished.is_empty() && !index.cluster.is_empty() && !index.server_version.is_empty());
        let pages: Vec<_> = events.iter().filter(|event| event.starts_with("configmaps ")).collect();
        assert!(pages.len() == 3, "{pages:?}");

        let snapshot = cell.read();
        assert!(snapshot.skipped.is_empty(), "{:?}", snapshot.skipped);
        assert_eq!(snapshot.taken.as_deref(), Some("2026-11-30T10:00:30Z"));
        assert_eq!(
            snapshot
                .observed
                .config_maps()
                .filter(|map| map.namespace() == "a" && map.name().starts_with("c-"))
                .count(),
            CONFIG_MAPS
        );
        let missing: Vec<_> =
            snapshot.not_seen.iter().map(|it| (it.resource.as_str(), it.missing.as_deref())).collect();
        assert_eq!(missing, [("serviceaccounts", Some("list serviceaccounts")), ("*.apps", None)]);

        let root = value(&snapshot, "etcd-passwords", "root");
        let connection: Value =
            serde_json::from_str(&value(&snapshot, "model-serving-etcd", "etcd_connection")).unwrap();
        assert_eq!(connection["password"], json!(root), "coupled values still compare");
        let mut all = String::new();
        texts(&cell.root(), &mut all);
        assert!(!all.contains(PASSWORD) && !all.contains(&STANDARD.encode(PASSWORD)));
        assert!(!all.contains("managedFields") && !all.contains("last-applied"));
        assert!(matches!(cell.take(&mut events).await, Err(TakeError::Complete(_))));
    });
}

#[test]
fn a_second_run_continues_where_the_first_ended() {
    play(async |cell| {
        let mut events = Vec::new();
        cell.between.config_map_lists.store(2, Ordering::Relaxed);
        assert!(matches!(cell.take(&mut events).await, Err(TakeError::Cluster(_))));
        let half = cell.read();
        assert_eq!(half.skipped.iter().map(|it| it.why.clone()).collect::<Vec<_>>(), [Why::Unfinished]);

        // Only the third page is asked for.
        cell.between.config_map_lists.store(1, Ordering::Relaxed);
        let mut events = Vec::new();
        let index = cell.take(&mut events).await.unwrap();
        assert_eq!(events.first().map(String::as_str), Some("continued"));
        let pages: Vec<_> = events.iter().filter(|event| event.starts_with("configmaps ")).cloned().collect();
        let maps = index.resources.iter().find(|resource| resource.resource == "configmaps").unwrap();
        assert_eq!(pages, [format!("configmaps {}", maps.objects)]);
        let snapshot = cell.read();
        assert!(snapshot.skipped.is_empty());
        assert_eq!(snapshot.observed.config_maps().count(), maps.objects);
        assert!(maps.objects >= CONFIG_MAPS);
    });
}

#[test]
fn a_list_that_the_server_forgot_begins_again() {
    play(async |cell| {
        cell.between.forgets.store(1, Ordering::Relaxed);
        let mut events = Vec::new();
        cell.take(&mut events).await.unwrap();
        assert!(events.contains(&"configmaps again".to_owned()), "{events:?}");
        assert!(cell.read().observed.config_maps().count() >= CONFIG_MAPS);
    });
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    play(async |cell| {
        fs::create_dir(cell.root()).unwrap();
        fs::write(cell.root().join("letters.txt"), "dear ann").unwrap();
        assert!(matches!(cell.take(&mut Vec::new()).await, Err(TakeError::Occupied(_))));
        fs::write(
            cell.root().join("index.json"),
            r#"{"apiVersion":"scantling.dev/v9","kind":"SnapshotIndex"}"#,
        )
        .unwrap();
        assert!(matches!(cell.take(&mut Vec::new()).await, Err(TakeError::Foreign(..))));
        assert_eq!(fs::read_dir(cell.root()).unwrap().count(), 2);
    });
}
