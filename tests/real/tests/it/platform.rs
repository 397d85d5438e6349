//! The platform's two releases on a real cluster, with small images in place of the real ones: installed, upgraded by runs
//! that are killed, taken back, removed.

use std::collections::BTreeMap;

use scantling_real_tests::RealCluster;
use serde_json::{Value, json};

use crate::common::{binary, done, get, kubectl, operators, push_made, writes_since};
use crate::killing::{finished_by_the_operator, kill_after, past};
use crate::stand_ins::push_stand_ins;

/// The operator's process is nobody in particular, and can write nothing of its image.
fn confined(cluster: &RealCluster) {
    let pods =
        get(cluster, &["pods", "-n", "scantling-system", "-l", "app.kubernetes.io/name=scantling-operator"]);
    let node = pods["items"][0]["spec"]["nodeName"].as_str().unwrap();
    let about = cluster
        .node_run(
            node,
            "pid=$(pgrep -f '^/usr/bin/[s]cantling operator' | head -1)
             awk '/^(Uid|CapEff|NoNewPrivs|Seccomp):/ {print $1, $2}' /proc/$pid/status
             awk '$2 == \"/\" {print \"root\", substr($4, 1, 2)}' /proc/$pid/mounts
             ls /proc/$pid/root/usr/bin /proc/$pid/root/lib 2>/dev/null || true",
        )
        .unwrap();
    println!("{about}");
    for line in ["Uid: 1001", "CapEff: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2", "root ro"] {
        assert!(about.lines().any(|it| it == line), "{line}: {about}");
    }
    let namespace = get(cluster, &["namespace", "scantling-system"]);
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
}

/// The images that people are offered: `name:tag`, with what is shown of each.
fn offered(cluster: &RealCluster) -> BTreeMap<String, String> {
    let list = get(cluster, &["notebookimages.scantling.dev", "--namespace", "scantling"]);
    let items = list["items"].as_array().unwrap().clone();
    items.iter().map(|it| (it["metadata"]["name"].as_str().unwrap().to_owned(), it.to_string())).collect()
}

/// Everything in the cluster that is not Kubernetes' own, by kind and name.
fn everything(cluster: &RealCluster) -> Vec<String> {
    let kinds = cluster.run(&["api-resources", "--verbs=list,delete", "-o", "name"]).unwrap();
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let names = cluster
        .run(&[
            "get",
            &kinds.join(","),
            "--all-namespaces",
            "--ignore-not-found",
            "-o",
            "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}",
        ])
        .unwrap();
    let mut names: Vec<String> = names.lines().map(ToOwned::to_owned).collect();
    names.sort();
    names
}

#[test]
fn both_releases_with_small_images() {
    binary();
    let Some(operators) = operators() else { return };
    let Some(cluster) = RealCluster::up(2).unwrap() else { return };
    push_made(&cluster, operators);
    push_stand_ins(&cluster, "2026.1");
    push_stand_ins(&cluster, "2026.2");
    let before = everything(&cluster);
    let registry = ["--registry", cluster.registry()];
    let (one, two) = ("releases/2026.1", "releases/2026.2");
    let upgrade = |release| [&["upgrade", release, "--yes"][..], &registry].concat();

    println!("{}", done(&cluster, &upgrade(one)));
    let images = offered(&cluster);
    assert!(images.values().any(|it| it.contains("1.7.2")), "{images:#?}");
    confined(&cluster);
    // Once more: nothing to do.
    let seen = cluster.requests().unwrap().len();
    let text = done(&cluster, &[&upgrade(one)[..], &["--verbose"]].concat());
    assert_eq!(writes_since(&cluster, seen), [""; 0], "{text}");
    done(&cluster, &[&["plan", two][..], &registry].concat());
    assert_eq!(writes_since(&cluster, seen), [""; 0]);

    // A person's namespace, with something in it.
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
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }),
    );

    // The command is killed on the way there and on the way back: the operator brings its runs to the end.
    let from = format!("--from-file=endpoints.json={}", cluster.endpoints().display());
    cluster.run(&["create", "configmap", "scantling-registries", "-n", "scantling-system", &from]).unwrap();
    kill_after(&cluster, &upgrade(two), 8);
    finished_by_the_operator(&cluster, "upgrade", "2026.2");
    kill_after(&cluster, &["rollback", "--yes"], 8);
    finished_by_the_operator(&cluster, "rollback", "2026.1");
    // Whoever brings it to its end is the one that the history names.
    println!("{}", done(&cluster, &upgrade(two)));
    let runs = past(&cluster);
    assert!(runs[0]["holder"].as_str().unwrap().starts_with("cli/"), "{:#}", runs[0]);
    assert_eq!((&runs[0]["action"], &runs[0]["outcome"]), (&json!("upgrade"), &json!("finished")));
    let images = offered(&cluster);
    assert!(images.values().any(|it| it.contains("1.8.0")), "{images:#?}");
    let seen = cluster.requests().unwrap().len();
    done(&cluster, &upgrade(two));
    assert_eq!(writes_since(&cluster, seen), [""; 0]);
    let status = done(&cluster, &["status"]);
    assert!(status.contains("2026.2"), "{status}");

    println!("{}", done(&cluster, &["rollback", "--yes"]));
    assert!(done(&cluster, &["status"]).contains("2026.1"));
    done(&cluster, &upgrade(two));
    cluster.run(&["delete", "configmap", "scantling-registries", "-n", "scantling-system"]).unwrap();
    println!("{}", done(&cluster, &["uninstall", "--yes"]));
    let mine = |it: &&String| {
        !before.contains(it) && ![" anna/", " kube-node-lease/"].iter().any(|of| it.contains(of))
    };
    let left: Vec<String> = everything(&cluster).iter().filter(mine).cloned().collect();
    assert_eq!(left, ["Namespace /anna"], "uninstall left something");
    let claim: Value = get(&cluster, &["persistentvolumeclaim", "work", "--namespace", "anna"]);
    assert_eq!(claim["status"]["phase"], "Bound");
}
