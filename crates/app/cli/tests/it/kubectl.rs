//! The real kubectl on a sandbox.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::command::{Ran, STALE, UNPUBLISHED, replace, run};
use crate::sandbox::{Open, tool};

const NAMESPACE: &str = "redhat-ods-applications";

/// The release that the unpublished image was corrected in.
const CORRECTED: &str = "examples/unpublished-runtime-image/releases/1.21.1/manifests";

/// An image of the example, and one of no registry.
const ETCD: &str = "registry.redhat.io/rhods/etcd-rhel8:3.5.4";
const NOWHERE: &str = "registry.redhat.io/rhods/etcd-rhel8:0.0.0";

fn kubectl() -> Option<PathBuf> {
    tool("kubectl", "SCANTLING_TEST_KUBECTL")
}

/// An open sandbox and kubectl.
struct Session {
    open: Open,
    kubectl: PathBuf,
}

impl Session {
    /// Nothing, if there is no kubectl.
    fn new(example: &str, options: &[&str]) -> Option<Self> {
        let kubectl = kubectl()?;
        Some(Self { open: Open::new(example, options), kubectl })
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.open.run(&self.kubectl, arguments)
    }

    /// Runs with the example's namespace as default.
    fn in_namespace(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["-n", NAMESPACE], arguments].concat())
    }

    /// Its output, which must be all it says.
    #[track_caller]
    fn out(&self, arguments: &[&str]) -> String {
        self.in_namespace(arguments).report(0)
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.out(&[arguments, &["-o", "json"]].concat())).unwrap()
    }

    /// The resource versions of everything that the corrected release writes.
    #[track_caller]
    fn versions(&self) -> Vec<(String, String)> {
        let list = self.json(&["get", "-f", CORRECTED]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = list["items"].as_array().expect("a list");
        items
            .iter()
            .map(|item| {
                // What their controllers say of deployments changes by itself.
                let version = if item["kind"] == "Deployment" { "generation" } else { "resourceVersion" };
                let version = &item["metadata"][version];
                (format!("{}/{}", text(&item["kind"]), text(&item["metadata"]["name"])), version.to_string())
            })
            .collect()
    }
}

/// The cells of a table's first column.
fn names(table: &str) -> Vec<&str> {
    table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn kubectl_runs_as_a_command_of_the_sandbox() {
    let Some(kubectl) = kubectl() else { return };
    let kubectl = kubectl.to_str().unwrap();
    let nodes = run(&["sandbox", UNPUBLISHED, "--", kubectl, "get", "nodes"]).report(0);
    assert_eq!(names(&nodes), ["worker-1", "worker-2"], "{nodes}");
    assert!(nodes.lines().skip(1).all(|line| line.contains(" Ready ")), "{nodes}");
    let ran = run(&["sandbox", UNPUBLISHED, "--", kubectl, "get", "pod", "nobody"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert_eq!(ran.err, "Error from server (NotFound): pods \"nobody\" not found\n");
    let pods = run(&["sandbox", UNPUBLISHED, "--empty", "--", kubectl, "get", "pods", "-A"]);
    assert_eq!((pods.code, pods.out.as_str(), pods.err.as_str()), (0, "", "No resources found\n"));
}

#[test]
fn what_is_there_is_shown_in_every_format() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let table = session.run(&["get", "pods", "-A"]).report(0);
    assert_eq!(table.lines().count(), 6, "{table}");
    assert!(table.lines().skip(1).all(|line| line.contains("1/1     Running   0")), "{table}");

    let wide = session.out(&["get", "deploy", "etcd", "-o", "wide"]);
    assert!(
        wide.contains("CONTAINERS") && wide.contains("registry.redhat.io/rhods/etcd-rhel8@sha256:"),
        "{wide}"
    );

    let yaml = session.out(&["get", "deploy", "etcd", "-o", "yaml"]);
    for line in ["apiVersion: apps/v1\n", "  name: etcd\n", "  readyReplicas: 1\n", "  uid: "] {
        assert!(yaml.contains(line), "{line:?} is not in\n{yaml}");
    }

    // A pod runs what it was told to: the digest of its image is the one of its status.
    let pod = &session.json(&["get", "pods", "-l", "app=etcd"])["items"][0];
    let written = pod["spec"]["containers"][0]["image"].as_str().unwrap();
    let runs = pod["status"]["containerStatuses"][0]["imageID"].as_str().unwrap();
    let digest = |reference: &str| reference.split_once('@').unwrap().1.to_owned();
    assert_eq!(digest(written), digest(runs));

    let sorted = session.out(&["get", "deploy", "--sort-by=.metadata.name", "-o", "name"]);
    let wanted = ["etcd", "modelmesh-controller", "odh-model-controller", "rhods-dashboard"];
    assert_eq!(sorted, wanted.map(|name| format!("deployment.apps/{name}\n")).concat());
    let selected = session.run(&["get", "pods", "-A", "--field-selector", "spec.nodeName=nowhere"]);
    assert_eq!((selected.out.as_str(), selected.err.as_str()), ("", "No resources found\n"));

    let described = session.out(&["describe", "pod", "-l", "app=etcd"]);
    assert!(described.contains("Successfully pulled image") && described.contains(runs), "{described}");
    let kinds = session.run(&["api-resources", "--no-headers", "-o", "name"]).report(0);
    for kind in
        ["pods", "deployments.apps", "imagestreams.image.openshift.io", "servingruntimes.serving.kserve.io"]
    {
        assert!(kinds.lines().any(|line| line == kind), "{kind} is not in\n{kinds}");
    }
}

#[test]
fn fields_are_explained() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    for (field, wanted) in [
        ("deployment.spec.strategy", "FIELD: strategy <DeploymentStrategy>"),
        ("pods.spec.containers.imagePullPolicy", "FIELD: imagePullPolicy <string>"),
        ("imagestream.spec.tags", "FIELD: tags <[]TagReference>"),
        ("servingruntime.spec", "GROUP:      serving.kserve.io"),
    ] {
        let explained = session.out(&["explain", field]);
        assert!(explained.contains(wanted), "{wanted:?} is not in\n{explained}");
    }
    let ran = session.in_namespace(&["explain", "pods.spec.contaners"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    ran.says(&["field \"contaners\" does not exist"]);
}

#[test]
fn applying_on_the_server_twice_changes_nothing_the_second_time() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let apply = ["apply", "--server-side", "-f", CORRECTED];
    let first = session.out(&apply);
    assert_eq!(first.lines().count(), 11, "{first}");
    assert!(first.lines().all(|line| line.ends_with(" serverside-applied")), "{first}");
    let image = session.out(&["get", "cm", "servingruntimes-config", "-o", "jsonpath={.data}"]);
    assert!(image.contains("default-config") && image.contains("team-notes"), "{image}");

    let before = session.versions();
    assert_eq!(before.len(), 11, "{before:?}");
    assert_eq!(session.out(&apply), first);
    assert_eq!(session.versions(), before);
}

#[test]
fn a_field_of_somebody_elses_is_a_conflict() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let dashboard = session.open.home().join("dashboard.yaml");
    fs::copy(crate::command::repository().join(CORRECTED).join("dashboard.yaml"), &dashboard).unwrap();
    let path = dashboard.to_str().unwrap();
    session.out(&["apply", "--server-side", "-f", path]);
    replace(&dashboard, "replicas: 2", "replicas: 3");
    let other = ["apply", "--server-side", "--field-manager=other", "-f", path];
    let ran = session.in_namespace(&other);
    assert_eq!(ran.code, 1, "{}", ran.out);
    ran.says(&[
        "Apply failed with 1 conflict: conflict with \"kubectl\"",
        ".spec.replicas",
        "--force-conflicts",
    ]);
    assert_eq!(session.out(&["get", "deploy", "rhods-dashboard", "-o", "jsonpath={.spec.replicas}"]), "2");

    session.out(&[&other[..], &["--force-conflicts"]].concat());
    assert_eq!(session.out(&["get", "deploy", "rhods-dashboard", "-o", "jsonpath={.spec.replicas}"]), "3");
    let managers = &session.json(&["get", "deploy", "rhods-dashboard", "--show-managed-fields"])["metadata"]
        ["managedFields"];
    let owner = managers
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null())
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(owner, ["other"], "{managers}");
}

#[test]
fn applying_on_the_client_says_what_it_did() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let runtime = session.open.home().join("notes.yaml");
    fs::write(&runtime, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {a: one, b: two}\n")
        .unwrap();
    let path = runtime.to_str().unwrap();
    let apply = ["apply", "-f", path];
    let diff = ["diff", "-f", path];

    let ran = session.in_namespace(&diff);
    assert_eq!(ran.code, 1, "{}", ran.err);
    ran.says(&["+kind: ConfigMap", "+  a: one"]);
    assert_eq!(session.out(&apply), "configmap/notes created\n");
    assert_eq!(session.out(&apply), "configmap/notes unchanged\n");
    assert_eq!(session.out(&diff), "");
    session.out(&["patch", "cm", "notes", "-p", r#"{"data":{"c":"somebody's"}}"#]);
    fs::write(&runtime, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {a: other}\n")
        .unwrap();
    let ran = session.in_namespace(&diff);
    assert_eq!(ran.code, 1, "{}", ran.err);
    ran.says(&["-  a: one", "+  a: other", "-  b: two", "   c: somebody's"]);
    assert_eq!(session.out(&apply), "configmap/notes configured\n");
    assert_eq!(
        session.out(&["get", "cm", "notes", "-o", "jsonpath={.data}"]),
        r#"{"a":"other","c":"somebody's"}"#
    );
    // The example's own manifests; what the vendor's script created by hand gets a warning from kubectl.
    let ran = session.in_namespace(&["apply", "-f", CORRECTED]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.says(&["deployment.apps/rhods-dashboard configured", "configmap/servingruntimes-config configured"]);
    ran.says(&["Warning: resource configmaps/servingruntimes-config is missing"]);
    let diff = session.in_namespace(&["diff", "-f", CORRECTED]).report(0);
    assert_eq!(diff, "");
}

#[test]
fn what_is_deleted_is_gone_with_what_it_owns() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let deleted = session.out(&["delete", "-f", &format!("{CORRECTED}/dashboard.yaml")]);
    assert_eq!(
        deleted,
        format!(
            "deployment.apps \"rhods-dashboard\" deleted from {NAMESPACE} namespace\n\
             secret \"odh-segment-key\" deleted from {NAMESPACE} namespace\n"
        )
    );
    session.out(&["wait", "--for=delete", "pod", "-l", "app=rhods-dashboard", "--timeout=60s"]);
    let left = session.in_namespace(&["get", "deploy,rs,pods", "-l", "app=rhods-dashboard"]);
    assert_eq!((left.out.as_str(), left.err.lines().count()), ("", 1), "{}", left.err);
    let again = session.in_namespace(&["delete", "deploy", "rhods-dashboard"]);
    assert_eq!((again.code, again.out.as_str()), (1, ""));
    assert_eq!(again.err, "Error from server (NotFound): deployments.apps \"rhods-dashboard\" not found\n");
    // A namespace takes all with it.
    assert_eq!(
        session.run(&["delete", "ns", NAMESPACE, "--timeout=60s"]).report(0),
        format!("namespace \"{NAMESPACE}\" deleted\n")
    );
    let pods = session.run(&["get", "pods", "-A"]);
    assert_eq!((pods.out.as_str(), pods.err.as_str()), ("", "No resources found\n"));
}

#[test]
fn changes_are_watched_as_they_happen() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let mut watch = session
        .open
        .client(
            &session.kubectl,
            &["-n", NAMESPACE, "get", "cm", "--watch-only", "--output-watch-events", "--no-headers"],
        )
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let (sender, received) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    // What happens before the watch begins is not seen: changes are made until one is.
    let mut seen = Vec::new();
    for round in 0..100 {
        session.out(&[
            "patch",
            "cm",
            "servingruntimes-config",
            "-p",
            &format!(r#"{{"data":{{"round":"{round}"}}}}"#),
        ]);
        if let Ok(line) = received.recv_timeout(std::time::Duration::from_millis(100)) {
            seen.push(line);
            break;
        }
    }
    session.out(&["create", "cm", "one", "--from-literal=a=b"]);
    session.out(&["delete", "cm", "one"]);
    while seen.last().is_some_and(|line| !line.starts_with("DELETED")) {
        seen.push(received.recv_timeout(std::time::Duration::from_secs(30)).expect("an event"));
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    reader.join().unwrap();
    let mut found: Vec<Vec<&str>> =
        seen.iter().map(|line| line.split_whitespace().take(2).collect()).collect();
    found.dedup();
    assert_eq!(found, [["MODIFIED", "servingruntimes-config"], ["ADDED", "one"], ["DELETED", "one"]]);
}

#[test]
fn a_rollout_ends_when_new_pods_run_and_not_before() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let status = ["rollout", "status", "deploy/etcd", "--timeout=60s"];
    assert_eq!(session.out(&status), "deployment \"etcd\" successfully rolled out\n");

    session.out(&["set", "image", "deploy/etcd", &format!("etcd={ETCD}")]);
    let out = session.out(&status);
    assert!(out.ends_with("deployment \"etcd\" successfully rolled out\n"), "{out}");
    let pod = &session.json(&["get", "pods", "-l", "app=etcd", "--field-selector", "status.phase=Running"])["items"]
        [0];
    assert_eq!(pod["spec"]["containers"][0]["image"], ETCD);

    session.out(&["set", "image", "deploy/etcd", &format!("etcd={NOWHERE}")]);
    let ran = session.in_namespace(&["rollout", "status", "deploy/etcd", "--timeout=1s"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    ran.says(&["Waiting for deployment \"etcd\" rollout to finish", "timed out"]);
    let waiting = "jsonpath={.items[*].status.containerStatuses[?(@.state.waiting)].state.waiting.reason}";
    let reason = session.out(&["get", "pods", "-l", "app=etcd", "-o", waiting]);
    assert!(reason == "ImagePullBackOff" || reason == "ErrImagePull", "{reason}");
    let available = "jsonpath={.status.availableReplicas}";
    assert_eq!(session.out(&["get", "deploy", "etcd", "-o", available]), "1", "the old pod stays");

    assert_eq!(session.out(&["rollout", "undo", "deploy/etcd"]), "deployment.apps/etcd rolled back\n");
    session.out(&status);
    assert_eq!(session.out(&["get", "deploy", "etcd", "-o", "jsonpath={..containers[0].image}"]), ETCD);
    assert!(session.out(&["rollout", "history", "deploy/etcd"]).contains("\n4 "), "the fourth revision");
}

#[test]
fn waiting_ends_with_what_is_waited_for() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let dashboard = "deploy/rhods-dashboard";
    assert_eq!(
        session.out(&["wait", "--for=condition=Available", dashboard, "--timeout=60s"]),
        "deployment.apps/rhods-dashboard condition met\n"
    );
    session.out(&["scale", dashboard, "--replicas=3"]);
    session.out(&["wait", "--for=jsonpath={.status.readyReplicas}=3", dashboard, "--timeout=60s"]);
    let pods = session.out(&["get", "pods", "-l", "app=rhods-dashboard"]);
    assert_eq!(pods.matches("Running").count(), 3, "{pods}");
    let ran = session.in_namespace(&["wait", "--for=condition=Never", dashboard, "--timeout=1s"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    ran.says(&["timed out waiting for the condition on deployments/rhods-dashboard"]);
}

#[test]
fn a_kind_of_the_examples_is_as_good_as_any() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let path = session.open.home().join("runtime.yaml");
    let runtime = "apiVersion: serving.kserve.io/v1alpha1\nkind: ServingRuntime\nmetadata: {name: ovms}\nspec: {containers: [{name: ovms, image: a/b:1}]}\n";
    fs::write(&path, runtime).unwrap();
    let path = path.to_str().unwrap();
    let name = "servingruntime.serving.kserve.io/ovms";
    assert_eq!(session.out(&["apply", "--server-side", "-f", path]), format!("{name} serverside-applied\n"));
    assert_eq!(
        session.out(&["patch", name, "--type=merge", "-p", r#"{"spec":{"replicas":2}}"#]),
        format!("{name} patched\n")
    );
    let spec = session.out(&["get", name, "-o", "jsonpath={.spec}"]);
    assert_eq!(spec, r#"{"containers":[{"image":"a/b:1","name":"ovms"}],"replicas":2}"#);
    session.run(&["delete", "crd", "servingruntimes.serving.kserve.io", "--timeout=60s"]).report(0);
    let ran = session.in_namespace(&["get", "servingruntimes"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    ran.says(&["Error from server (NotFound)", "servingruntimes"]);
    // Its objects went with it.
    session.out(&["apply", "-f", &format!("{CORRECTED}/serving-runtimes-crd.yaml")]);
    let again = session.in_namespace(&["get", "servingruntimes"]);
    assert_eq!((again.out.as_str(), again.err.lines().count()), ("", 1), "{}", again.err);
    again.says(&["No resources found"]);
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let Some(session) = Session::new(UNPUBLISHED, &[]) else { return };
    let ran = session.in_namespace(&["logs", "deploy/etcd"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    ran.says(&["(NotImplemented)", "the sandbox does not model log of a Pod"]);
    let ran = session.in_namespace(&["exec", "deploy/etcd", "--", "true"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    ran.says(&["the sandbox does not model exec of a Pod"]);
}

#[test]
fn image_streams_and_builds_are_shown_and_move() {
    let Some(session) = Session::new(STALE, &[]) else { return };
    let wide = session.run(&["get", "imagestreams", "-A", "-o", "wide"]).report(0);
    assert_eq!(wide.lines().count(), 11, "{wide}");
    for text in [
        "IMAGE REPOSITORY",
        "py3.8-cuda-11.0.3",
        "/redhat-ods-applications/tensorflow ",
        "s2i-minimal-notebook",
    ] {
        assert!(wide.contains(text), "{text:?} is not in\n{wide}");
    }
    let stream = session.out(&["get", "imagestream", "s2i-minimal-notebook", "-o", "yaml"]);
    for text in [
        "kind: ImageStream\n",
        "    tag: py3.8\n",
        "dockerImageReference: quay.io/modh/s2i-minimal-notebook@sha256:",
    ] {
        assert!(stream.contains(text), "{text:?} is not in\n{stream}");
    }
    let builds = session.out(&["get", "builds"]);
    assert_eq!((builds.lines().count(), builds.matches("Complete").count()), (8, 7), "{builds}");

    // A release moves the tag: the stream gets the new image in front of the old one.
    let items = |session: &Session| {
        let stream = session.json(&["get", "imagestream", "s2i-minimal-notebook"]);
        let items = stream["status"]["tags"][0]["items"].as_array().expect("items").clone();
        items.iter().map(|item| item["image"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before = items(&session);
    assert_eq!(before.len(), 1);
    let manifests = format!("{STALE}/releases/1.5/manifests/cpu-notebooks.yaml");
    let applied = session.out(&["apply", "--server-side", "-f", &manifests]);
    assert!(
        applied.contains("imagestream.image.openshift.io/s2i-minimal-notebook serverside-applied"),
        "{applied}"
    );
    let moved = "--for=jsonpath={.status.tags[0].items[1].image}";
    session.out(&["wait", moved, "imagestream/s2i-minimal-notebook", "--timeout=60s"]);
    let after = items(&session);
    assert_eq!((after.len(), &after[1]), (2, &before[0]), "{after:?}");
    let images = run(&["sandbox", STALE, "--images"]).report(0);
    let new =
        images.lines().find(|line| line.ends_with("s2i-minimal-notebook:v0.0.20")).expect("in the list");
    assert!(new.starts_with(&after[0]), "{new}");
}
