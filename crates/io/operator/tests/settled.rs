//! A platform at rest costs nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cell;

use std::time::Duration;

use cell::{Cell, one, play_on};
use scantling_cluster::Write;
use scantling_rehearse::Gate;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

const NOTEBOOKS: usize = 200;
const MODELS: usize = 50;
const NAMESPACES: usize = 10;

fn objects(image: &str) -> Vec<Value> {
    let container = json!({"name": "kserve-container", "image": image});
    let mut objects = vec![json!({
        "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ClusterServingRuntime", "metadata": {"name": "any"},
        "spec": {"supportedModelFormats": [{"name": "any", "autoSelect": true}], "containers": [container]},
    })];
    let keys = json!({"AWS_ACCESS_KEY_ID": "aQ==", "AWS_SECRET_ACCESS_KEY": "aQ==", "AWS_S3_BUCKET": "Yg=="});
    for n in 0..NAMESPACES {
        let team = format!("team-{n}");
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}}));
        let metadata = json!({"name": "store", "namespace": team});
        objects.push(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": keys}));
    }
    let about =
        |name: String, n: usize| json!({"name": name, "namespace": format!("team-{}", n % NAMESPACES)});
    objects.extend((0..NOTEBOOKS).map(|n| {
        let name = format!("lab-{n}");
        let template = json!({"spec": {"containers": [{"name": name, "image": image}]}});
        json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": about(name, n), "spec": {"template": template}})
    }));
    objects.extend((0..MODELS).map(|n| {
        let mut model = json!({"modelFormat": {"name": "any"}});
        // Some have their model from a store whose secret is read again and again.
        if n % 2 == 0 {
            model["storage"] = json!({"key": "store", "path": "model"});
        }
        json!({
            "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": about(format!("model-{n}"), n),
            "spec": {"predictor": {"model": model}},
        })
    }));
    objects
}

fn ready(cell: &Cell) -> (usize, usize) {
    cell.sandbox.with(|world| {
        let is_ready = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
        };
        let count = |kind: &str, is: &dyn Fn(&Value) -> bool| {
            world.objects().filter(|(key, object)| key.kind == kind && is(object)).count()
        };
        let notebooks = count("Notebook", &|notebook| notebook["status"]["readyReplicas"] == 1);
        (notebooks, count("InferenceService", &is_ready))
    })
}

#[test]
fn two_hundred_notebooks_and_fifty_models_are_not_written_to_but_for_six_renewals_a_minute() {
    play_on(4, |cell| async move {
        cell.upgrade("first", &one(), None).await.unwrap().unwrap();
        let people = cell.cluster(&Gate::default());
        let served = people.served().await.unwrap();
        for object in objects(&cell.controller()) {
            people.write(&served, &Write::Create { object }).await.unwrap();
        }
        let (_goes_on, stop) = watch::channel(false);
        let gate = Gate::default();
        let story = async {
            let all_ready = async || ready(&cell) == (NOTEBOOKS, MODELS);
            cell.until("everything is ready", Duration::from_mins(10), all_ready).await;
            sleep(Duration::from_secs(90)).await;
            let before = gate.writes();
            sleep(Duration::from_mins(10)).await;
            let renewals = gate.writes() - before;
            assert!((55..=60).contains(&renewals), "{renewals}");
            assert_eq!(ready(&cell), (NOTEBOOKS, MODELS));
            assert!(!cell.told().contains("failed"), "{}", cell.told());
        };
        tokio::select! {
            () = cell.operates("a", &gate, stop) => panic!("the operator ended"),
            () = story => {}
        }
    });
}
