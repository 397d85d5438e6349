//! The platform's two releases on a real cluster, with small images in place of the real ones: installed, upgraded by runs
//! that are killed, taken back, removed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use scantling_real_tests::RealCluster;
use serde_json::{Value, json};

use crate::common::{binary, done, get, kubectl, scantling, soon, writes_since};
use crate::stand_ins::push_stand_ins;

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
    let Some(cluster) = RealCluster::up(2).unwrap() else { return };
    push_stand_ins(&cluster, "2026.1");
    push_stand_ins(&cluster, "2026.2");
    let before = everything(&cluster);
    let registry = ["--registry", cluster.registry()];
    let (one, two) = ("releases/2026.1", "releases/2026.2");
    let upgrade = |release| [&["upgrade", release, "--yes"][..], &registry].concat();

    println!("{}", done(&cluster, &upgrade(one)));
    let images = offered(&cluster);
    assert!(images.values().any(|it| it.contains("1.7.2")), "{images:#?}");
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
    // The other way round: the operator is killed when it has taken over, and the command ends it.
    kill_after(&cluster, &upgrade(two), 8);
    kill_operator(&cluster);
    let text = done(&cluster, &upgrade(two));
    println!("{text}");
    let (runs, platform) = (past(&cluster), get(&cluster, &["platform", "platform"]));
    let holder = runs[0]["holder"].as_str().unwrap();
    assert!(holder.starts_with("cli/"), "{:#}", runs[0]);
    assert_eq!((&runs[0]["action"], &runs[0]["outcome"]), (&json!("upgrade"), &json!("finished")));
    assert_eq!(platform["spec"]["release"]["version"], "2026.2");
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

/// Starts a run and kills it when it has written so often.
fn kill_after(cluster: &RealCluster, arguments: &[&str], writes: usize) {
    let seen = cluster.requests().unwrap().len();
    let mut child =
        scantling(cluster, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = std::time::Instant::now();
    while writes_since(cluster, seen).len() < writes {
        assert!(child.try_wait().unwrap().is_none(), "{arguments:?} ended before it was killed");
        assert!(started.elapsed().as_secs() < 90, "{arguments:?} writes nothing");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    println!("killed after {} writes", writes_since(cluster, seen).len());
}

/// The runs that the cluster has seen, newest first.
fn past(cluster: &RealCluster) -> Vec<Value> {
    let text = done(cluster, &["history", "--output", "json"]);
    serde_json::from_str::<Value>(&text).unwrap()["runs"].as_array().unwrap().clone()
}

/// Waits until the operator has brought a run to its end: while it does so the platform says so, and afterwards the history.
fn finished_by_the_operator(cluster: &RealCluster, action: &str, version: &str) {
    let before = past(cluster).len();
    let mut holders = BTreeSet::new();
    let run = soon("the end of the run", 240, || {
        let status = get(cluster, &["platform", "platform"])["status"].clone();
        holders.extend(status["run"]["holder"].as_str().map(ToOwned::to_owned));
        let settled = status["release"] == version && status["run"].is_null();
        let runs = past(cluster);
        (settled && runs.len() > before).then(|| runs[0].clone())
    });
    println!("{run:#}\nheld by {holders:?}");
    assert_eq!((&run["action"], &run["version"]), (&json!(action), &json!(version)));
    assert_eq!(run["outcome"], "finished");
    let holder = run["holder"].as_str().unwrap();
    assert!(holder.starts_with("operator/"), "{run:#}");
    assert!(holders.iter().any(|it| it.starts_with("operator/")), "{holders:?}");
}

/// Kills the operator, without a word to it, when it has begun to write for a run that it took over.
fn kill_operator(cluster: &RealCluster) {
    let seen = cluster.requests().unwrap().len();
    let started = std::time::Instant::now();
    let continues = |cluster: &RealCluster| {
        let requests = cluster.requests().unwrap();
        requests.iter().skip(seen).any(|it| {
            it.is_write() && it.user.ends_with(":scantling-operator") && it.uri.contains("/scantling-journal")
        })
    };
    while !continues(cluster) {
        assert!(started.elapsed().as_secs() < 120, "the operator takes nothing over");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // It must neither hear that it is to end, which would give its leases back, nor come back under its name, to which they belong.
    let signal = |signal: &str| {
        for node in cluster.nodes() {
            let script = format!("pkill -{signal} -f '^/usr/bin/[s]cantling operator' || true");
            cluster.node_run(node, &script).unwrap();
        }
    };
    signal("STOP");
    let lease = get(cluster, &["lease", "scantling-run", "-n", "scantling-system"]);
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap();
    let pod = holder.strip_prefix("operator/").expect("the operator holds the lease");
    cluster.run(&["delete", "pod", pod, "-n", "scantling-system", "--force", "--grace-period=0"]).unwrap();
    signal("KILL");
    println!("killed {holder}");
}
