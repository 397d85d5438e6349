//! An upgrade while everybody does what people do: an admin drains a node, a script scales a model, somebody edits what the release
//! manages, a notebook is opened, a pull secret is rotated. The run's report says what it did about each, and the cluster shows it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;

use http::Method;
use scantling_cluster::Cluster;
use scantling_endpoint::{Keyring, Mirrors};
use scantling_plan::Outcome;
use scantling_real_tests::{PASSWORDS, Password, RealCluster, puller};
use scantling_release::{Release, Settings, Wave};
use scantling_run::{Bundle, Environment, Options, RunError, RunReport, What, read_registry_rules, upgrade};
use serde_json::{Value, json};

use crate::common::{
    binary, block_on, done, environment, get, kubectl, operators, push_made, repository, soon,
};
use crate::inference::endpoints;
use crate::jupyter::try_request;
use crate::stand_ins::{MODEL, push_stand_ins};

/// Where pods of the platform and of Anna get what they pull with: namespace and account.
const ACCOUNTS: [(&str, &str); 3] =
    [("scantling", "default"), ("scantling-system", "scantling-operator"), ("anna", "default")];

/// The files of a folder, by path.
fn folder(root: &Path, below: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            folder(root, &path, into);
        } else {
            into.insert(path.to_str().unwrap().to_owned(), std::fs::read(entry.path()).unwrap());
        }
    }
}

fn notebook(cluster: &RealCluster, name: &str, node: Option<&str>) {
    let places = node.map_or_else(|| json!({}), |node| json!({"kubernetes.io/hostname": node}));
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
                "nodeSelector": places, "terminationGracePeriodSeconds": 1,
                "containers": [{"name": name, "image": "whatever-the-catalogue-says"}],
            }}},
        }),
    );
}

/// A pod of a notebook when it is ready: its node and the digest that it runs.
fn runs(cluster: &RealCluster, notebook: &str) -> Option<(String, String)> {
    let pods = get(cluster, &["pods", "-n", "anna", "-l", &format!("notebook-name={notebook}")]);
    let pod = pods["items"].get(0)?;
    let status = &pod["status"]["containerStatuses"][0];
    let ready = status["ready"] == true && pod["metadata"]["deletionTimestamp"].is_null();
    let digest = status["imageID"].as_str()?.rsplit_once('@')?.1.to_owned();
    ready.then(|| (pod["spec"]["nodeName"].as_str().unwrap().to_owned(), digest))
}

/// What the catalogue has for what notebooks here choose.
fn offered(cluster: &RealCluster) -> String {
    let list = get(cluster, &["notebookimages.scantling.dev", "-n", "scantling"]);
    let chosen =
        list["items"].as_array().unwrap().iter().find(|it| it["spec"]["selection"] == "datascience:2026");
    chosen.unwrap()["spec"]["image"].as_str().unwrap().rsplit_once('@').unwrap().1.to_owned()
}

/// What the model says, from each of its pods.
fn answers(cluster: &RealCluster) -> Vec<String> {
    block_on(async {
        let (client, _) = Cluster::from_kubeconfig(&[cluster.kubeconfig()], None, 1).await.unwrap();
        let mut answers = Vec::new();
        let addresses: Vec<SocketAddr> = endpoints(&client, "anna", "iris-predictor").await;
        for address in addresses {
            let path = format!("/{MODEL}");
            answers.push(match try_request(address, Method::GET, &path, None, &Value::Null).await {
                Ok(answer) => String::from_utf8_lossy(answer.body()).into_owned(),
                Err(error) => format!("{address}: {error:#}"),
            });
        }
        answers
    })
}

/// Whether the pods of the model, as many as there are, say this.
fn said_by_model(cluster: &RealCluster, wanted: &[&str]) -> Option<()> {
    let said = answers(cluster);
    if said != wanted && !said.is_empty() {
        println!("the model says {said:?}");
    }
    (said == wanted).then_some(())
}

/// Everything that Anna has before the upgrade.
fn annas(cluster: &RealCluster) {
    cluster.run(&["create", "namespace", "anna"]).unwrap();
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "work", "namespace": "anna"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    kubectl(cluster, "create", &claim);
    let volume = soon("Anna's volume", 30, || {
        let claim = get(cluster, &["pvc", "work", "-n", "anna"]);
        claim["spec"]["volumeName"].as_str().map(ToOwned::to_owned)
    });
    let volume = get(cluster, &["pv", &volume]);
    let model = Path::new(volume["spec"]["hostPath"]["path"].as_str().unwrap()).join("iris");
    std::fs::create_dir(&model).unwrap();
    std::fs::write(model.join("model.joblib"), "a model").unwrap();
    notebook(cluster, "old", None);
    kubectl(
        cluster,
        "create",
        &json!({
            "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
            "metadata": {"name": "iris", "namespace": "anna"},
            "spec": {"predictor": {"model": {
                "modelFormat": {"name": "sklearn"}, "protocolVersion": "v2", "storageUri": "pvc://work/iris",
            }}},
        }),
    );
}

/// Changes the registry's password and every secret with it.
fn rotate(cluster: &mut RealCluster, password: Password) -> &'static str {
    let registry = cluster.locked_registry(password).unwrap();
    for (namespace, _) in ACCOUNTS {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": namespace},
            "type": "kubernetes.io/dockerconfigjson", "stringData": password.pull_secret(),
        });
        kubectl(cluster, "apply", &secret);
    }
    registry
}

/// Drains a node once a pod is there that brings images to it.
fn drain(cluster: &RealCluster, node: &str) -> JoinHandle<()> {
    let (mut cordon, mut pods) = (cluster.kubectl(&["cordon", node]), Vec::new());
    for _ in 0..40 {
        let of_node = format!("--field-selector=spec.nodeName={node}");
        pods.push(cluster.kubectl(&[
            "get",
            "pods",
            "-n",
            "scantling",
            "-l",
            "scantling.dev/prepull=true",
            &of_node,
            "-o",
            "name",
        ]));
    }
    let mut drain = cluster.kubectl(&[
        "drain",
        node,
        "--force",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--timeout=60s",
    ]);
    std::thread::spawn(move || {
        assert!(cordon.output().unwrap().status.success());
        // It may have been there for a moment only.
        let _ = pods.iter_mut().any(|get| !get.output().unwrap().stdout.is_empty());
        let drained = drain.output().unwrap();
        println!("{}", String::from_utf8_lossy(&drained.stdout));
        assert!(drained.status.success(), "{}", String::from_utf8_lossy(&drained.stderr));
    })
}

/// The environment of a run that pulls with the cluster's own secrets.
async fn environment_with_secrets(cluster: &RealCluster) -> Environment {
    let mut environment = environment(cluster).await;
    let (mut mirrors, mut keyring) = (Mirrors::new(), Keyring::new());
    read_registry_rules(&environment.cluster, Some("scantling"), &mut mirrors, &mut keyring).await.unwrap();
    environment.registry = puller(keyring).unwrap();
    environment
}

/// The upgrade, and everything that happens beside it. Gives the report and who was drained.
fn disturbed_upgrade(cluster: &mut RealCluster, registry: &str, node: &str) -> Result<RunReport, RunError> {
    let mut files = BTreeMap::new();
    folder(&repository().join("releases/2026.2"), Path::new(""), &mut files);
    let settings = Settings { registry: Some(registry.to_owned()), ..Settings::default() };
    let release = Release::read(&files, &settings).unwrap_or_else(|error| panic!("{error:?}"));
    let options = Options {
        holder: "cli/test".to_owned(),
        bundle: Some(Bundle::of(files, settings, None)),
        ..Options::default()
    };
    let mut draining = None;
    let (mut planned, mut rotated, mut published) = (false, false, false);
    let ended = block_on(async {
        let environment = environment_with_secrets(cluster).await;
        upgrade(&environment, &release, &options, &mut |event| {
            println!("{event}");
            match &event.what {
                // Before anything is written: a value of the release's, with a rule that lets people have it.
                What::Planned { .. } if !planned => {
                    planned = true;
                    edit(
                        cluster,
                        &["configmap", "spawner-settings"],
                        "scantling",
                        &json!({"data": {"volumeSize": "20Gi"}}),
                    );
                }
                What::Pulling { .. } if !rotated => {
                    rotated = true;
                    rotate(cluster, PASSWORDS[1]);
                }
                // The operator is new; images for people come next.
                What::Wave { wave: Wave::Resources, .. } if draining.is_none() => {
                    draining = Some(drain(cluster, node));
                }
                // All else is written by now.
                What::Published { .. } if !published => {
                    published = true;
                    edit(
                        cluster,
                        &["configmap", "spawner-settings"],
                        "scantling",
                        &json!({"data": {"hardwareProfile": "large"}}),
                    );
                    let mut containers =
                        get(cluster, &["clusterservingruntime", "mlserver"])["spec"]["containers"].clone();
                    containers[0]["resources"]["limits"]["memory"] = json!("4Gi");
                    edit(
                        cluster,
                        &["clusterservingruntime", "mlserver"],
                        "",
                        &json!({"spec": {"containers": containers}}),
                    );
                    notebook(cluster, "new", None);
                    let two = json!({"spec": {"predictor": {"minReplicas": 2}}});
                    edit(cluster, &["inferenceservice", "iris"], "anna", &two);
                }
                _ => {}
            }
        })
        .await
    });
    if let Some(draining) = draining {
        draining.join().unwrap();
    }
    assert!(planned && rotated && published, "not everything was done");
    ended
}

/// Edits an object as a person does.
fn edit(cluster: &RealCluster, object: &[&str], namespace: &str, patch: &Value) {
    let patch = patch.to_string();
    let mut arguments = [&["patch"][..], object, &["--type=merge", "-p", &patch]].concat();
    if !namespace.is_empty() {
        arguments.extend(["-n", namespace]);
    }
    cluster.run(&arguments).unwrap();
}

/// What the report says of an object in its section about others, as `doing: what; did`.
fn said_of(report: &Value, object: &str) -> String {
    let entries = report["meanwhile"].as_array().cloned().unwrap_or_default();
    let of = |entry: &Value| {
        let text = |field: &str| entry["object"][field].as_str().unwrap_or_default().to_owned();
        format!("{} {}/{}", text("kind"), text("namespace"), text("name"))
    };
    let found: Vec<String> = entries
        .iter()
        .filter(|entry| of(entry) == object)
        .map(|entry| format!("{}: {}; {}", entry["doing"], entry["what"], entry["did"]))
        .collect();
    assert!(!found.is_empty(), "nothing is said of {object}:\n{:#}", report["meanwhile"]);
    found.join("\n")
}

#[test]
fn an_upgrade_amid_people_says_what_it_did_about_each_of_them() {
    binary();
    let Some(operators) = operators() else { return };
    let Some(mut cluster) = RealCluster::up(2).unwrap() else { return };
    push_made(&cluster, operators);
    for release in ["2026.1", "2026.2"] {
        push_stand_ins(&cluster, release);
    }
    done(&cluster, &["upgrade", "releases/2026.1", "--yes", "--registry", cluster.registry()]);
    let from = format!("--from-file=endpoints.json={}", cluster.endpoints().display());
    cluster.run(&["create", "configmap", "scantling-registries", "-n", "scantling-system", &from]).unwrap();
    annas(&cluster);
    let (node, before) = soon("Anna's notebook", 120, || runs(&cluster, "old"));
    soon("Anna's model", 120, || said_by_model(&cluster, &["2026.1"]));

    // The images of the second release are behind a password.
    let registry = rotate(&mut cluster, PASSWORDS[0]);
    let secrets = json!({"imagePullSecrets": [{"name": "pull"}]});
    for (namespace, account) in ACCOUNTS {
        edit(&cluster, &["serviceaccount", account], namespace, &secrets);
    }
    let report = disturbed_upgrade(&mut cluster, registry, &node).unwrap_or_else(|error| panic!("{error}"));
    let json = serde_json::to_value(&report).unwrap();
    println!("{:#}", json["meanwhile"]);

    // The drain: said, and what could not be prepared is a finding, not the end.
    let said = said_of(&json, &format!("Node /{node}"));
    assert!(said.contains("it was cordoned"), "{said}");
    let given = json["prepulled"][&node].as_array().map_or(0, Vec::len);
    let skipped =
        report.findings.iter().any(|it| it.code.as_str() == "SCN0804" && it.message.contains(&node));
    assert!(skipped || given > 0, "{:#?}", report.findings);
    // The model takes its update by its own policy, before or after the run looks.
    let pending =
        |pod: &str, answer: &str| pod.starts_with("anna/iris-predictor") && answer == "update pending";
    assert!(
        report.verified.iter().all(|it| it.answer == "same" || pending(&it.pod, &it.answer)),
        "{:#?}",
        report.verified
    );
    // The edits: by the rules, whether before or after the run had written the object.
    let settings = report.outcomes.iter().find(|it| it.key.name == "spawner-settings").unwrap();
    assert_eq!(settings.outcome, Outcome::Updated);
    assert!(settings.kept.iter().any(|it| it.field == ".data.volumeSize"), "{settings:#?}");
    let said = said_of(&json, "ConfigMap scantling/spawner-settings");
    assert!(
        said.contains(".data.hardwareProfile") && said.contains("`keep`") && said.contains("kubectl-patch"),
        "{said}"
    );
    let said = said_of(&json, "ClusterServingRuntime /mlserver");
    assert!(said.contains(".spec.containers") && said.contains("`take`"), "{said}");
    let data = get(&cluster, &["configmap", "spawner-settings", "-n", "scantling"])["data"].clone();
    assert_eq!(
        data,
        json!({"selection": "datascience:2026", "hardwareProfile": "large", "volumeSize": "20Gi", "restart": "owner"})
    );
    let runtime = get(&cluster, &["clusterservingruntime", "mlserver"]);
    assert_eq!(runtime["spec"]["containers"][0]["resources"]["limits"]["memory"], "2Gi");
    // The model and the new notebook.
    assert!(said_of(&json, "InferenceService anna/iris").contains("its spec was changed"));
    assert!(said_of(&json, "Notebook anna/new").contains("it was made"));
    // The secret.
    let said = said_of(&json, "Secret scantling/pull");
    assert!(said.contains(&format!("{0} of {0} images", report.images.len())), "{said}");
    for text in [json.to_string(), format!("{report:?}")] {
        assert!(!text.contains("-4711") && !text.contains("-4712"), "a password is told");
    }

    // What came of it. The notebook that was drained has what it had, and says what a restart brings.
    let after = offered(&cluster);
    assert_ne!(before, after);
    let (moved, still) =
        soon("the notebook elsewhere", 120, || runs(&cluster, "old").filter(|(now, _)| *now != node));
    assert_eq!(still, before, "{moved}");
    soon("its mark", 60, || {
        let old = get(&cluster, &["notebook", "old", "-n", "anna"]);
        let conditions = old["status"]["conditions"].as_array()?.clone();
        conditions.iter().any(|it| it["type"] == "UpdatePending" && it["status"] == "True").then_some(())
    });
    let (_, new) = soon("the new notebook", 120, || runs(&cluster, "new"));
    assert_eq!(new, after);
    // The node is let in again: what lands there is pulled with the new password, and runs the new digest.
    cluster.run(&["uncordon", &node]).unwrap();
    cluster.run(&["delete", "notebook", "new", "-n", "anna"]).unwrap();
    soon("the end of the notebook", 60, || runs(&cluster, "new").is_none().then_some(()));
    notebook(&cluster, "new", Some(&node));
    assert_eq!(soon("a notebook on the node", 120, || runs(&cluster, "new")), (node.clone(), after));
    // Two pods of the model answer, with the new runtime.
    soon("the model", 180, || said_by_model(&cluster, &["2026.2", "2026.2"]));
    let predictor = get(&cluster, &["deployment", "iris-predictor", "-n", "anna"]);
    assert_eq!(predictor["spec"]["replicas"], 2);
    // The same release again brings the node what it missed, if its pods have not pulled that since, and nothing else; then there is
    // nothing to do.
    let again = ["upgrade", "releases/2026.2", "--yes", "--registry", registry];
    let text = done(&cluster, &again);
    assert!(text.contains("44 unchanged"), "{text}");
    assert!(skipped || !text.contains(&format!("{node}: ")), "{text}");
    let text = done(&cluster, &again);
    assert!(text.contains("nothing was written"), "{text}");
}
