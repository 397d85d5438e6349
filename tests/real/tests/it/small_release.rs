//! Two small releases on a real API server and two real nodes: installed, planned, upgraded, refused.

use scantling_image::Digest;
use scantling_plan::Outcome;
use scantling_real_tests::RealCluster;
use scantling_release::Settings;
use scantling_run::{Bundle, Options, RunError, RunReport, plan, rollback, uninstall, upgrade};
use serde_json::{Value, json};

use crate::common::{
    binary, block_on, environment, get, kubectl, push, release, said, scantling, tree, writes_since,
};

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";

fn release_file(version: &str, follows: &str, more: &str) -> String {
    format!(
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: shop\nversion: {version}\nfollows: [{follows}]\n\
         namespace: shop\nmanifests: [manifests]\n{more}"
    )
}

fn config(name: &str, key: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: value}})
        .to_string()
}

/// Two pods that must be on different nodes.
fn deployment(image: &str) -> String {
    let labels = json!({"app": "web"});
    let apart = json!({"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"},
    ]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            // On two nodes there is no third place: an old pod goes before a new one comes.
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "affinity": {"podAntiAffinity": apart},
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "web", "image": image}],
            }},
        },
    })
    .to_string()
}

type Files = Vec<(&'static str, String)>;

fn one(image: &str) -> Files {
    vec![
        ("release.yaml", release_file("1.0.0", "", "")),
        ("manifests/namespace.yaml", NAMESPACE.to_owned()),
        ("manifests/config.yaml", config("settings", "colour", "red")),
        ("manifests/old.yaml", config("only-in-one", "a", "b")),
        ("manifests/web.yaml", deployment(image)),
    ]
}

fn two(image: &str) -> Files {
    vec![
        ("release.yaml", release_file("2.0.0", "1.0.0", "")),
        ("manifests/namespace.yaml", NAMESPACE.to_owned()),
        ("manifests/config.yaml", config("settings", "colour", "green")),
        ("manifests/web.yaml", deployment(image)),
    ]
}

/// Like the second, with code that falls back on an image when a key is missing: and the key is.
fn three(image: &str, fallback: &str) -> Files {
    let rule = "sources: [code]\nfallbacks:\n- {file: code/main.py, liveWhen: {kind: ConfigMap, name: settings, \
                missingKey: image}}\n";
    vec![
        ("release.yaml", release_file("3.0.0", "2.0.0", rule)),
        ("manifests/namespace.yaml", NAMESPACE.to_owned()),
        ("manifests/config.yaml", config("settings", "colour", "blue")),
        ("manifests/web.yaml", deployment(image)),
        ("code/main.py", format!("IMAGE = settings.get('image', '{fallback}')\n")),
    ]
}

/// What whoever brings a release chooses.
fn options(files: &Files) -> Options {
    let bundle = Bundle::of(tree(files), Settings::default(), None);
    Options { holder: "cli/test".to_owned(), bundle: Some(bundle), ..Options::default() }
}

/// Plans a release, which writes nothing, and gives how many objects would be written.
fn planned(cluster: &RealCluster, files: &Files) -> usize {
    let seen = cluster.requests().unwrap().len();
    let report = block_on(async {
        plan(&environment(cluster).await, &release(files), &options(files), &mut |_| ()).await.unwrap()
    });
    assert_eq!(report.writes, 0);
    assert_eq!(writes_since(cluster, seen), [""; 0]);
    report.plan.unwrap().steps.iter().filter(|step| step.writes()).count()
}

fn run(cluster: &RealCluster, files: &Files) -> Result<RunReport, RunError> {
    block_on(async {
        let environment = environment(cluster).await;
        upgrade(&environment, &release(files), &options(files), &mut |event| println!("{event}")).await
    })
}

/// What a person put beside it is a person's.
fn people(cluster: &RealCluster) {
    kubectl(
        cluster,
        "create",
        &json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "work", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }),
    );
}

/// What the pods of the deployment run, by node.
fn running(cluster: &RealCluster) -> Vec<(String, Digest)> {
    let pods = get(cluster, &["pods", "--namespace", "shop", "--selector", "app=web"]);
    let mut running: Vec<_> = pods["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
        .map(|pod| {
            let id = pod["status"]["containerStatuses"][0]["imageID"].as_str().unwrap();
            let (_, digest) = id.split_once('@').unwrap();
            (pod["spec"]["nodeName"].as_str().unwrap().to_owned(), Digest::parse(digest).unwrap())
        })
        .collect();
    running.sort();
    running
}

/// Every object of the namespace and of Scantling's own, by name, with its version.
fn versions(cluster: &RealCluster) -> Vec<String> {
    let objects = "configmaps,secrets,deployments,replicasets,services,serviceaccounts";
    let mut all = Vec::new();
    for namespace in ["shop", "scantling-system"] {
        let list = get(cluster, &[objects, "--namespace", namespace]);
        all.extend(list["items"].as_array().unwrap().iter().map(|object: &Value| {
            let text = |path: &str| object.pointer(path).unwrap().as_str().unwrap().to_owned();
            format!(
                "{} {namespace}/{} {}",
                text("/kind"),
                text("/metadata/name"),
                text("/metadata/resourceVersion")
            )
        }));
    }
    all
}

/// Everything in the cluster with its version, but for what the cluster itself renews all the time.
fn all_versions(cluster: &RealCluster) -> Vec<String> {
    let kinds = cluster.run(&["api-resources", "--verbs=list,create", "-o", "name"]).unwrap();
    let renewed = ["events", "leases.", "nodes", "endpointslices."];
    let kinds: Vec<&str> =
        kinds.lines().filter(|kind| !renewed.iter().any(|start| kind.starts_with(start))).collect();
    let line = "{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}";
    let all = cluster
        .run(&["get", &kinds.join(","), "--all-namespaces", "-o", &format!("jsonpath={line}")])
        .unwrap();
    let mut all: Vec<String> = all.lines().map(ToOwned::to_owned).collect();
    all.sort();
    all
}

/// Whoever may nothing is told so, under their own name: the kubeconfig's user acts for them.
fn nobody_may_look(cluster: &RealCluster) {
    let kubeconfig = cluster.kubeconfig_of("nobody").unwrap();
    let mut command = scantling(cluster, &["status"]);
    command.env("KUBECONFIG", kubeconfig);
    let (text, code) = said(command);
    assert!(code != 0 && text.contains("nobody"), "{code}: {text}");
}

/// The same release from a folder, as a person brings it: refused with the reference and the exit code, and not one request was a write.
fn refused_as_a_command(cluster: &RealCluster, files: &Files, fallback: &str) {
    let folder = cluster.folder().join("three");
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let (before, seen) = (all_versions(cluster), cluster.requests().unwrap().len());
    for verb in [&["plan"][..], &["upgrade", "--yes"]] {
        let (text, code) = said(scantling(cluster, &[verb, &[folder.to_str().unwrap()]].concat()));
        assert_eq!(code, 1, "{text}");
        let words: String = text.split_whitespace().collect();
        assert!(words.contains(fallback) && words.contains("SCN0401"), "{text}");
        assert!(text.contains("nothing was written"), "{text}");
    }
    let requests = cluster.requests().unwrap();
    let written: Vec<_> = requests.iter().skip(seen).filter(|it| it.is_write()).collect();
    assert!(written.is_empty(), "{written:#?}");
    assert_eq!(all_versions(cluster), before);
}

#[test]
fn a_release_is_installed_upgraded_refused_taken_back_and_removed() {
    binary();
    let Some(cluster) = RealCluster::up(2).unwrap() else { return };
    let image = format!("{}/shop/web:stable", cluster.registry());
    let nodes =
        |digest: &Digest| vec![("node-1".to_owned(), digest.clone()), ("node-2".to_owned(), digest.clone())];

    let old = push(&image, "one");
    let seen = cluster.requests().unwrap().len();
    let report = run(&cluster, &one(&image)).unwrap();
    // What the run counts is what the API server counts.
    let written = writes_since(&cluster, seen);
    assert_eq!(written.len(), report.writes, "{written:#?}");
    assert_eq!(running(&cluster), nodes(&old));
    assert!(report.outcomes.iter().all(|it| it.outcome == Outcome::Created), "{:#?}", report.outcomes);
    assert_eq!(report.verified.iter().filter(|it| it.answer == "same").count(), 2, "{:#?}", report.verified);

    // Once more: nothing is written, as far as the run and as far as the API server know.
    let seen = cluster.requests().unwrap().len();
    let before = versions(&cluster);
    let report = run(&cluster, &one(&image)).unwrap();
    assert_eq!((report.writes, versions(&cluster)), (0, before));
    assert_eq!(writes_since(&cluster, seen), [""; 0]);

    // The tag moves, both nodes have it: the upgrade brings its new content to both all the same.
    let new = push(&image, "two");
    assert_eq!(planned(&cluster, &two(&image)), 3);
    let report = run(&cluster, &two(&image)).unwrap();
    assert_eq!(running(&cluster), nodes(&new));
    assert_eq!(get(&cluster, &["configmap", "settings", "-n", "shop"])["data"]["colour"], "green");
    assert!(cluster.run(&["get", "configmap", "only-in-one", "-n", "shop"]).is_err());
    assert!(report.outcomes.iter().any(|it| it.outcome == Outcome::Pruned && it.key.name == "only-in-one"));

    // The second incident: a fallback that was never published is live, because nobody wrote the key.
    let seen = cluster.requests().unwrap().len();
    let before = versions(&cluster);
    let fallback = format!("{}/shop/web@{}", cluster.registry(), Digest::of(b"never published"));
    let error = run(&cluster, &three(&image, &fallback)).unwrap_err();
    assert!(matches!(&error, RunError::Refused { .. }), "{error}");
    let finding = error.report().findings.iter().find(|it| it.message.contains(&fallback));
    assert!(finding.is_some(), "{:#?}", error.report().findings);
    assert_eq!((error.report().writes, versions(&cluster)), (0, before));
    assert_eq!(writes_since(&cluster, seen), [""; 0]);
    assert_eq!(running(&cluster), nodes(&new));
    refused_as_a_command(&cluster, &three(&image, &fallback), &fallback);
    nobody_may_look(&cluster);

    // Back, forward again, and away.
    people(&cluster);
    let back = Options { holder: "cli/test".to_owned(), ..Options::default() };
    block_on(async { rollback(&environment(&cluster).await, None, &back, &mut |_| ()).await }).unwrap();
    assert_eq!(get(&cluster, &["configmap", "settings", "-n", "shop"])["data"]["colour"], "red");
    assert_eq!(get(&cluster, &["configmap", "only-in-one", "-n", "shop"])["data"]["a"], "b");
    run(&cluster, &two(&image)).unwrap();
    assert_eq!(running(&cluster), nodes(&new));

    let report =
        block_on(async { uninstall(&environment(&cluster).await, &back, &mut |_| ()).await }).unwrap();
    let kept: Vec<_> = report.outcomes.iter().filter(|it| it.outcome != Outcome::Pruned).collect();
    assert!(kept.iter().any(|it| it.key.name == "shop" && it.cause.contains("work")), "{kept:#?}");
    assert_eq!(get(&cluster, &["pvc", "work", "-n", "shop"])["status"]["phase"], "Bound");
    let left = get(&cluster, &["configmaps,secrets,deployments,pods,services", "--namespace", "shop"]);
    let left: Vec<_> = left["items"].as_array().unwrap().iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(left, ["kube-root-ca.crt"]);
    assert!(cluster.run(&["get", "namespace", "scantling-system"]).is_err());
    let kinds = cluster.run(&["get", "customresourcedefinitions", "-o", "name"]).unwrap();
    assert_eq!(kinds, "");
}
