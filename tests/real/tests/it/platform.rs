//! The platform's two releases on a real cluster, with small images in place of the real ones: installed, upgraded by runs
//! that are killed, taken back, removed.

use std::collections::BTreeMap;
use std::process::Stdio;

use scantling_real_tests::RealCluster;
use serde_json::{Value, json};

use crate::common::{binary, done, get, kubectl, said, scantling, soon, writes_since};
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

    // The upgrade is killed three times, ever later, and the last one ends it.
    for writes in [3, 8, 20] {
        kill_after(&cluster, &upgrade(two), writes);
    }
    let text = continued(&cluster, &upgrade(two));
    println!("{text}");
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
    soon("the moment to kill", 90, || {
        let ended = child.try_wait().unwrap().is_some();
        (ended || writes_since(cluster, seen).len() >= writes).then_some(())
    });
    let _ = child.kill();
    child.wait().unwrap();
    println!("killed after {} writes", writes_since(cluster, seen).len());
    // Its lease has to run out before another one takes over.
    std::thread::sleep(std::time::Duration::from_secs(16));
}

/// Runs until the lease of a run that was killed has expired, and gives what it prints then.
fn continued(cluster: &RealCluster, arguments: &[&str]) -> String {
    soon("the end of the run", 300, || {
        let (text, code) = said(scantling(cluster, arguments));
        if code != 0 {
            println!("not yet: {text}");
        }
        (code == 0).then_some(text)
    })
}
