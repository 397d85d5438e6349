//! `scantling audit` as an admin uses it: a dump, a table, an exit code.

use serde_json::{Value, json};

use crate::command::{Ran, scantling};

const OLD: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";
const NEW: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

fn pod(name: &str, node: &str, digest: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": node, "containers": [{"name": "lab", "image": "quay.io/team/lab:py3", "imagePullPolicy": "IfNotPresent"}]},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [{
            "name": "lab", "image": "quay.io/team/lab:py3", "imageID": format!("quay.io/team/lab@{digest}"),
            "ready": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:10Z"}},
        }]},
    })
}

fn node(name: &str, digest: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T01:00:00Z"}],
            "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64"},
            "images": [{"names": [format!("quay.io/team/lab@{digest}"), "quay.io/team/lab:py3"], "sizeBytes": 1}],
        },
    })
}

/// A dump of two nodes that have different images under one name.
fn dump(folder: &tempfile::TempDir, digests: [&str; 2]) -> String {
    let items: Vec<Value> = [("a", digests[0]), ("b", digests[1])]
        .into_iter()
        .flat_map(|(name, digest)| [pod(&format!("lab-{name}"), name, digest), node(name, digest)])
        .collect();
    let path = folder.path().join("dump.json");
    std::fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn audit(arguments: &[&str]) -> Ran {
    Ran::of(scantling(&[&["audit"], arguments].concat()).env("COLUMNS", "100"))
}

#[test]
fn nodes_that_differ_are_found_without_anything_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let ran = audit(&["--snapshot", &dump(&folder, [OLD, NEW])]);
    let text = ran.report(1);
    assert!(text.contains("Replicas") && text.contains("quay.io/team/lab:py3"), "{text}");
    assert!(text.contains("sha256:111111111111") && text.contains("sha256:222222222222"), "{text}");
    let rows = audit(&["--snapshot", &dump(&folder, [OLD, NEW]), "--output", "json"]);
    let rows: Value = serde_json::from_str(&rows.report(1)).unwrap();
    let id = rows["rows"][0]["id"].as_str().unwrap().to_owned();
    let story = audit(&["--snapshot", &dump(&folder, [OLD, NEW]), "--explain", &id]);
    assert!(story.report(1).contains(&id), "a row is told by its name");
}

#[test]
fn a_sound_cluster_is_exit_code_0() {
    let folder = tempfile::tempdir().unwrap();
    let ran = audit(&["--snapshot", &dump(&folder, [OLD, OLD]), "-n", "team"]);
    assert!(ran.report(0).contains("sound:"), "nothing is wrong");
}

#[test]
fn what_shows_nothing_is_not_sound() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let empty_list = br#"{"apiVersion": "v1", "kind": "List", "items": []}"#;
    for (name, text) in [("empty", &b""[..]), ("random", &[0xff, 0, 7, b'{'][..]), ("list.json", empty_list)]
    {
        let ran = audit(&["--snapshot", &path(name, text)]);
        assert_eq!(ran.code, 3, "{name}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains("the snapshot shows no pods"), "{name}: {}", ran.err);
    }
    let ran = audit(&["--snapshot", &dump(&folder, [OLD, OLD]), "-n", "nowhere"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("nothing in namespace nowhere"), "{}", ran.err);
}
