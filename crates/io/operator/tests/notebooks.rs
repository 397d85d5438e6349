//! Notebooks beside registries and servers that do not answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cell;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cell::{Cell, one, play};
use http::Uri;
use scantling_api::ObjectKey;
use scantling_cluster::Write;
use scantling_operator::Operator;
use scantling_rehearse::Gate;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

const LIMIT: Duration = Duration::from_mins(2);
const STOPPED: &str = "kubeflow-resource-stopped";

async fn create(cell: &Cell, object: Value) {
    let cluster = cell.cluster(&Gate::default());
    let served = cluster.served().await.unwrap();
    cluster.write(&served, &Write::Create { object }).await.unwrap();
}

async fn create_notebook(cell: &Cell, name: &str, port: u16) {
    create(
        cell,
        json!({
            "apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": name, "namespace": "ours"},
            "spec": {"template": {"spec": {"containers": [{
                "name": name, "image": cell.controller(), "ports": [{"containerPort": port}],
            }]}}},
        }),
    )
    .await;
}

fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(group, kind, "ours", name)
}

fn runs(cell: &Cell, name: &str) -> bool {
    let pod = cell.object(&key("", "Pod", &format!("{name}-0")));
    pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
}

fn is_stopped(cell: &Cell, name: &str) -> bool {
    let notebook = cell.object(&key("kubeflow.org", "Notebook", name)).unwrap();
    notebook["metadata"]["annotations"].get(STOPPED).is_some()
}

#[test]
fn registries_that_do_not_answer_hold_up_nothing() {
    play(|cell| async move {
        cell.upgrade("first", &one(), None).await.unwrap().unwrap();
        let mut parts = cell.parts("a", &Gate::default());
        parts.registries = Box::new(|| Box::pin(std::future::pending()));
        let operator = Operator::new(parts);
        let (_goes_on, stop) = watch::channel(false);
        let story = async {
            for name in ["one", "two"] {
                create_notebook(&cell, name, 8888).await;
                cell.until("the notebook runs", LIMIT, async || runs(&cell, name)).await;
            }
            for _ in 0..20 {
                sleep(Duration::from_mins(1)).await;
                assert_eq!(operator.answer("/healthz").status, 200);
            }
            assert_eq!(cell.status().release.as_deref(), Some("1.0.0"));
        };
        tokio::select! {
            () = operator.run(stop) => panic!("the operator ended"),
            () = story => {}
        }
    });
}

#[test]
fn only_notebooks_that_say_so_are_idle() {
    play(|cell| async move {
        cell.upgrade("first", &one(), None).await.unwrap().unwrap();
        cell.specify(json!({"notebooks": {"culling": {"enabled": true, "idleAfter": "10m"}}})).await;
        let asked = Arc::new(Mutex::new(BTreeMap::<u16, usize>::new()));
        let (questions, clock) = (asked.clone(), cell.clock());
        let mut parts = cell.parts("a", &Gate::default());
        parts.ask = Box::new(move |uri: Uri| {
            let port = uri.port_u16().unwrap();
            *questions.lock().unwrap().entry(port).or_default() += 1;
            let kernels = uri.path().ends_with("/kernels");
            let answer = match port {
                // Nobody has done anything since it started.
                8001 if kernels => Ok("[]".to_owned()),
                // Somebody works in it all the time.
                8002 if kernels => Ok(r#"[{"execution_state": "busy"}]"#.to_owned()),
                8001 | 8002 => Ok(r#"{"last_activity": "2020-01-01T00:00:00Z"}"#.to_owned()),
                // It answered once, half an hour before, and is out of reach since.
                8003 if questions.lock().unwrap().get(&port) > Some(&2) => Err("it is silent".to_owned()),
                8003 if kernels => Ok("[]".to_owned()),
                8003 => Ok(json!({"last_activity": clock.now().to_string()}).to_string()),
                _ => Err("nobody listens".to_owned()),
            };
            Box::pin(std::future::ready(answer.map(Bytes::from)))
        });
        let operator = Operator::new(parts);
        let (_goes_on, stop) = watch::channel(false);
        let story = async {
            for (name, port) in [("idle", 8001), ("busy", 8002), ("silent", 8003)] {
                create_notebook(&cell, name, port).await;
                cell.until("the notebook runs", LIMIT, async || runs(&cell, name)).await;
            }
            cell.until("the idle one is stopped", Duration::from_mins(15), async || {
                is_stopped(&cell, "idle")
            })
            .await;
            sleep(Duration::from_mins(30)).await;
            assert!(!is_stopped(&cell, "busy"), "somebody works in it");
            assert!(!is_stopped(&cell, "silent"), "nobody knows whether it is used");
            assert!(asked.lock().unwrap().get(&8003) > Some(&20), "it is asked again and again");
        };
        tokio::select! {
            () = operator.run(stop) => panic!("the operator ended"),
            () = story => {}
        }
    });
}
