//! People and models through an upgrade, with the real images on real nodes.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use scantling_cluster::Cluster;
use scantling_real_tests::{RealCluster, why_not};
use serde_json::{Value, json};

use crate::common::{binary, block_on, done, get, kubectl, made, operators, push_made, recipes, soon};
use crate::inference::{Asking, ask, endpoints};
use crate::jupyter::Kernel;

/// The images that the releases need here, the operator's aside.
const IMAGES: [&str; 3] = ["minimal", "datascience", "mlserver"];
/// How long a pod of a large image may take on a machine that does other things too.
const LONG: u64 = 420;

fn notebook(cluster: &RealCluster, name: &str, node: &str) {
    kubectl(
        cluster,
        "create",
        &json!({
            "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
            "metadata": {
                "name": name, "namespace": "anna",
                "annotations": {"notebooks.opendatahub.io/last-image-selection": "datascience:2026"},
            },
            "spec": {"template": {"spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "containers": [{
                    "name": name, "image": "whatever-the-catalogue-says",
                    "volumeMounts": [{"name": "work", "mountPath": "/work"}],
                }],
                "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}],
            }}},
        }),
    );
}

/// The pod of a notebook when it is ready, another one than `not`.
fn pod(cluster: &RealCluster, notebook: &str, not: Option<&Value>) -> Value {
    soon(&format!("the pod of {notebook}"), LONG, || {
        let pods = get(cluster, &["pods", "-n", "anna", "-l", &format!("notebook-name={notebook}")]);
        let pod = pods["items"].get(0)?.clone();
        let is_ready = pod["status"]["conditions"]
            .as_array()?
            .iter()
            .any(|it| it["type"] == "Ready" && it["status"] == "True");
        let other = not.is_none_or(|not| not["metadata"]["uid"] != pod["metadata"]["uid"]);
        (is_ready && other && pod["metadata"]["deletionTimestamp"].is_null()).then_some(pod)
    })
}

fn kernel(pod: &Value, notebook: &str) -> Kernel {
    let address: SocketAddr = format!("{}:8888", pod["status"]["podIP"].as_str().unwrap()).parse().unwrap();
    Kernel::start(address, "anna", notebook)
}

/// The version of scikit-learn that a kernel of a notebook imports.
fn imported(pod: &Value, notebook: &str) -> String {
    kernel(pod, notebook).run("import sklearn; print(sklearn.__version__)")
}

/// The version of scikit-learn that the catalogue shows for what notebooks choose.
fn shown(cluster: &RealCluster) -> String {
    let list = get(cluster, &["notebookimages.scantling.dev", "-n", "scantling"]);
    let items = list["items"].as_array().unwrap();
    let chosen = items.iter().find(|it| it["spec"]["selection"] == "datascience:2026").unwrap();
    let packages = chosen["spec"]["packages"].as_array().unwrap();
    let of: BTreeMap<String, &str> = packages
        .iter()
        .map(|it| (it["name"].as_str().unwrap().to_lowercase(), it["version"].as_str().unwrap()))
        .collect();
    of["scikit-learn"].to_owned()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a story is told from its beginning to its end")]
fn people_and_models_through_an_upgrade() {
    if let Some(why) = why_not() {
        println!("skipped: {why}");
        return;
    }
    binary();
    let Some(images) = made(&recipes(), &IMAGES) else { return };
    let Some(operators) = operators() else { return };
    let Some(cluster) = RealCluster::up(2).unwrap() else { return };
    let registry = cluster.registry();
    push_made(&cluster, &images);
    push_made(&cluster, operators);
    let upgrade = |release| ["upgrade", release, "--yes", "--registry", registry];
    println!("{}", done(&cluster, &upgrade("releases/2026.1")));
    let endpoints_file = cluster.endpoints();
    let from = format!("--from-file=endpoints.json={}", endpoints_file.display());
    cluster.run(&["create", "configmap", "scantling-registries", "-n", "scantling-system", &from]).unwrap();

    // Anna opens a notebook: what she imports is what the catalogue says.
    kubectl(
        &cluster,
        "create",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "anna"}}),
    );
    kubectl(
        &cluster,
        "create",
        &json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "work", "namespace": "anna"},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        }),
    );
    notebook(&cluster, "old", "node-1");
    let before = pod(&cluster, "old", None);
    let first = shown(&cluster);
    assert_eq!(imported(&before, "old"), first);

    // She trains a model, and serves it.
    let trained = kernel(&before, "old").run(
        "import os, joblib\nfrom sklearn.datasets import load_iris\nfrom sklearn.linear_model import LogisticRegression\n\
         os.makedirs('/work/iris', exist_ok=True)\n\
         model = LogisticRegression(max_iter=500).fit(*load_iris(return_X_y=True))\n\
         joblib.dump(model, '/work/iris/model.joblib')\nprint('trained')",
    );
    assert_eq!(trained, "trained");
    kubectl(
        &cluster,
        "create",
        &json!({
            "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
            "metadata": {"name": "iris", "namespace": "anna"},
            "spec": {"predictor": {"model": {
                "modelFormat": {"name": "sklearn"}, "protocolVersion": "v2", "storageUri": "pvc://work/iris",
            }}},
        }),
    );
    let model = soon("the model", LONG, || {
        block_on(async {
            let (client, _) = Cluster::from_kubeconfig(&[cluster.kubeconfig()], None, 1).await.unwrap();
            endpoints(&client, "anna", "iris-predictor").await.first().copied()
        })
    });
    assert_eq!(block_on(ask(model, "iris")), Ok(vec![0, 2]));

    // The upgrade, while a client asks twenty times a second.
    let asking = Asking::start(&cluster, "anna", "iris");
    println!("{}", done(&cluster, &upgrade("releases/2026.2")));
    let second = shown(&cluster);
    assert_ne!(first, second);
    soon("the model's new runtime", LONG, || {
        let deployment = get(&cluster, &["deployment", "iris-predictor", "-n", "anna"]);
        let runtime = get(&cluster, &["clusterservingruntime", "mlserver"]);
        let image = |object: &Value, path: &str| object.pointer(path).cloned();
        let wanted = image(&runtime, "/spec/containers/0/image");
        let has = image(&deployment, "/spec/template/spec/containers/0/image");
        let status = &deployment["status"];
        (wanted == has
            && status["updatedReplicas"] == status["replicas"]
            && status["availableReplicas"] == status["replicas"]
            && status["observedGeneration"] == deployment["metadata"]["generation"])
            .then_some(())
    });
    std::thread::sleep(std::time::Duration::from_secs(3));
    let (asked, failures) = asking.stop();
    println!("the model was asked {asked} times");
    assert!(asked > 50 && failures.is_empty(), "{} of {asked} failed: {failures:#?}", failures.len());

    // Anna's notebook was not touched, and is marked; a new one on the same node has the new version.
    let same = pod(&cluster, "old", None);
    for path in ["/metadata/uid", "/status/containerStatuses/0/restartCount", "/spec/containers/0/image"] {
        assert_eq!(before.pointer(path), same.pointer(path), "{path}");
    }
    assert_eq!(imported(&same, "old"), first);
    let marked = soon("the mark", 60, || {
        let old = get(&cluster, &["notebook", "old", "-n", "anna"]);
        let conditions = old["status"]["conditions"].as_array()?.clone();
        conditions.into_iter().find(|it| it["type"] == "UpdatePending" && it["status"] == "True")
    });
    let message = marked["message"].as_str().unwrap();
    assert!(message.contains(&first) && message.contains(&second), "{message}");
    notebook(&cluster, "new", "node-1");
    assert_eq!(imported(&pod(&cluster, "new", None), "new"), second);

    // She restarts hers, and has it too.
    let restart = "notebooks.opendatahub.io/notebook-restart=true";
    cluster.run(&["annotate", "notebook", "old", "-n", "anna", restart]).unwrap();
    let after = pod(&cluster, "old", Some(&before));
    assert_eq!(imported(&after, "old"), second);

    // Back, forward again and away: what is hers stays.
    println!("{}", done(&cluster, &["rollback", "--yes"]));
    assert_eq!(shown(&cluster), first);
    assert_eq!(imported(&pod(&cluster, "old", None), "old"), second, "nobody restarted it");
    println!("{}", done(&cluster, &upgrade("releases/2026.2")));
    assert_eq!(shown(&cluster), second);
    let text = done(&cluster, &["uninstall", "--yes"]);
    println!("{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Each thing that stays has its cause: somebody's objects, and what the admin put beside the operator.
    for cause in
        ["Notebook anna/new", "InferenceService anna/iris", "ConfigMap scantling-system/scantling-registries"]
    {
        assert!(text.contains(cause), "{cause} is not named:\n{text}");
    }
    let claim = get(&cluster, &["persistentvolumeclaim", "work", "-n", "anna"]);
    assert_eq!(claim["status"]["phase"], "Bound");
    let left = cluster.run(&["get", "deployments", "-n", "scantling-system", "-o", "name"]).unwrap();
    assert_eq!(left, "");
    assert!(cluster.run(&["get", "namespace", "scantling"]).is_err());
}
