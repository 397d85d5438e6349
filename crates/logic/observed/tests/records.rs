//! Records say what views say, in few bytes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use scantling_observed::{Names, Node, NodeRecord, Observed, Pod, PodRecord, View as _};
use serde_json::{Value, json};

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "lab-0", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"b": "2", "a": "1"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"x": "y", "notebooks.opendatahub.io/last-image-selection": "tf:1", "kubernetes.io/config.source": "api"},
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:spec": {}}}],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "n"},
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "lab", "uid": "v", "controller": true}]},
        "spec": {"nodeName": "a", "serviceAccountName": "sa", "imagePullSecrets": [{"name": "s"}], "tolerations": [{}],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "m", "image": {"reference": "m:1", "pullPolicy": "Never"}}],
            "containers": [
                {"name": "lab", "image": "x:1", "imagePullPolicy": "Always", "env": [{"name": "A"}]},
                {"name": "other", "image": "quay.io/a/b"}],
            "initContainers": [{"name": "i", "image": "y:1", "restartPolicy": "Always"}],
            "ephemeralContainers": null},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null}],
            "containerStatuses": [
                {"name": "other", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "m"}}},
                {"name": "lab", "image": "x:1", "imageID": "quay.io/x@sha256:83585bb5dabb00000000000000000000000000000000000000000000000000aa",
                 "ready": true, "restartCount": 2, "lastState": {}, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]},
    })
}

/// What both forms of a container say.
macro_rules! said {
    ($container:expr) => {{
        let c = $container;
        let id = c.image_id().map(|id| id.unwrap().digest().to_string());
        (
            c.kind,
            c.name.to_string(),
            c.image.to_string(),
            c.pull_policy(),
            id,
            format!("{:?}", c.state()),
            c.has_started(),
        )
    }};
}

#[test]
fn a_pods_record_says_what_the_view_says() {
    let object = pod();
    let view = Pod::of(&object);
    let record = PodRecord::of(&object, &mut Names::new()).unwrap();
    assert_eq!(
        (&*record.namespace, &*record.name, &*record.uid),
        (view.namespace(), view.name(), view.uid())
    );
    assert_eq!((record.node.as_deref(), &*record.phase), (view.node(), view.phase()));
    assert_eq!((record.ready, record.is_running()), (view.is_ready(), view.is_running()));
    let views: Vec<_> = view.containers().into_iter().map(|c| said!(c)).collect();
    let records: Vec<_> = record.containers.iter().map(|c| said!(c)).collect();
    assert_eq!(records, views);
    assert_eq!(records.len(), 3);
    assert!(record.containers.iter().any(|c| c.is_sidecar && &*c.name == "i"));
    assert_eq!((record.label("a"), record.label("b"), record.label("c")), (Some("1"), Some("2"), None));
    assert_eq!(record.annotation("notebooks.opendatahub.io/last-image-selection"), Some("tf:1"));
    assert_eq!((record.annotation("x"), record.is_static()), (None, false));
    let owner = record.owner.as_ref().unwrap();
    assert_eq!(
        (&*owner.group, &*owner.version, &*owner.kind, &*owner.name),
        ("apps", "v1", "StatefulSet", "lab")
    );
    assert_eq!(record.pull_secrets.iter().map(|s| &**s).collect::<Vec<_>>(), ["s"]);
    let volume = record.image_volumes.first().unwrap();
    assert_eq!(
        (&*volume.name, &*volume.reference, volume.pull_policy().map(scantling_image::PullPolicy::as_str)),
        ("m", "m:1", Some("Never"))
    );
    // From text as from a tree.
    let text = serde_json::to_string_pretty(&object).unwrap();
    let wire: scantling_observed::PodWire<'_> = serde_json::from_str(&text).unwrap();
    assert_eq!(wire.record(&mut Names::new()), record);
}

#[test]
fn a_nodes_record_says_what_the_view_says() {
    let object = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "5", "labels": {"z": "1"}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "Unknown", "lastHeartbeatTime": "2026-01-01T00:00:09Z"}],
            "images": [{"names": ["x@sha256:a", "x:1"], "sizeBytes": 5}, {"sizeBytes": 1, "names": null}],
            "nodeInfo": {"operatingSystem": "linux", "architecture": "arm64", "containerRuntimeVersion": "cri-o://1.33", "kubeletVersion": "v1.35.1", "osImage": "Linux"}}});
    let view = Node::of(&object);
    let record = NodeRecord::of(&object, &mut Names::new()).unwrap();
    assert_eq!(record.platform().unwrap(), view.platform().unwrap());
    assert_eq!(
        (record.ready, record.schedulable, record.disk_pressure),
        (view.is_ready(), view.is_schedulable(), view.has_disk_pressure())
    );
    let images: Vec<(Vec<&str>, i64)> =
        record.images.iter().map(|i| (i.names.iter().map(|n| &**n).collect(), i.size_bytes)).collect();
    let wanted: Vec<(Vec<&str>, i64)> = view.images().into_iter().map(|i| (i.names, i.size_bytes)).collect();
    assert_eq!(images, wanted);
    assert_eq!((&*record.runtime, &*record.kubelet), ("cri-o://1.33", "v1.35.1"));
    assert_eq!((&*record.os_image, &*record.reported), ("Linux", "2026-01-01T00:00:09Z"));
}

#[test]
fn all_pods_are_given_however_they_are_held() {
    let mut other = pod();
    other["metadata"]["name"] = json!("lab-1");
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "lab", "namespace": "n", "uid": "v",
        "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "name": "lab", "uid": "w", "controller": true}]}});
    let top = json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "lab", "namespace": "n", "uid": "w"}});
    let wrong = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd", "namespace": "n"}, "spec": {"containers": 5}});
    let mut observed = Observed::from_objects([other, owner, top, wrong]).unwrap();
    assert!(observed.insert_pod(PodRecord::of(&pod(), &mut Names::new()).unwrap()).is_none());
    let (read, failed): (Vec<_>, Vec<_>) = observed.pod_records().partition(Result::is_ok);
    let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
    assert_eq!(read.iter().map(|pod| &*pod.name).collect::<Vec<_>>(), ["lab-0", "lab-1"]);
    let failed = failed.into_iter().next().unwrap().unwrap_err().to_string();
    assert!(failed.contains("Pod n/odd"), "{failed}");
    for pod in &read {
        assert_eq!(observed.workload_of_record(pod).map(|o| o["kind"].clone()), Some(json!("Notebook")));
    }
    assert!(observed.held_pod("n", "lab-0").is_some() && observed.held_pod("n", "lab-1").is_none());
}

#[test]
fn a_container_says_when_it_was_started_last() {
    let started = |status: serde_json::Value| {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"},
            "spec": {"containers": [{"name": "c", "image": "x:1"}]},
            "status": {"containerStatuses": [status]}});
        let record = PodRecord::of(&object, &mut Names::new()).unwrap();
        record.containers.first().unwrap().started.to_string()
    };
    let at = |second: u32| format!("2026-01-01T00:00:0{second}Z");
    let running = json!({"running": {"startedAt": at(1)}});
    let ended = json!({"terminated": {"startedAt": at(2), "exitCode": 1}});
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    assert_eq!(started(json!({"name": "c", "state": running, "lastState": ended})), at(1));
    assert_eq!(started(json!({"name": "c", "state": ended, "lastState": {}})), at(2));
    assert_eq!(started(json!({"name": "c", "state": waiting, "lastState": ended})), at(2));
    assert_eq!(started(json!({"name": "c", "state": waiting})), "");
}
