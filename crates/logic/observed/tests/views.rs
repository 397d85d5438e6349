//! Views of objects as clusters write them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use scantling_api::ObjectKey;
use scantling_image::{Digest, Platform, PullPolicy, Reference};
use scantling_observed::{
    ConfigMap, ContainerState, Deployment, ImageStream, Notebook, NotebookImage, Observed, Pod, Rollout,
    Secret, StatefulSet, View, rollout,
};
use serde_json::{Value, json};

const D: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn observed(objects: &[Value]) -> Observed {
    Observed::from_objects(objects.iter().cloned()).unwrap()
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "ns"}})
}

#[test]
fn snapshots_as_kubectl_writes_them() {
    let pod = object("v1", "Pod", "a");
    let bare = json!({"metadata": {"name": "b", "namespace": "ns"}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let list = |items: &[&Value]| json!({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {"resourceVersion": ""}});
    let typed = json!({"apiVersion": "v1", "kind": "PodList", "items": [bare]});
    // A kind whose name ends in List but that holds no items is an object.
    let wish = object("example.com/v1", "WishList", "w");
    for (text, keys) in [
        (list(&[&pod, &node]).to_string(), vec!["Node n", "Pod ns/a"]),
        (typed.to_string(), vec!["Pod ns/b"]),
        (pod.to_string(), vec!["Pod ns/a"]),
        (format!("{pod}\n{node}"), vec!["Node n", "Pod ns/a"]),
        (list(&[&list(&[&pod]), &typed]).to_string(), vec!["Pod ns/a", "Pod ns/b"]),
        (json!([pod, [node]]).to_string(), vec!["Node n", "Pod ns/a"]),
        (list(&[]).to_string(), vec![]),
        (String::new(), vec![]),
        (wish.to_string(), vec!["WishList ns/w"]),
    ] {
        let observed = Observed::from_list_json(text.as_bytes()).unwrap();
        assert_eq!(observed.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>(), keys, "{text}");
    }
    let mut deep = pod.clone();
    for _ in 0..6 {
        deep = list(&[&deep]);
    }
    for (text, says) in [
        ("{".to_owned(), "does not parse"),
        (json!({"kind": "Pod"}).to_string(), "item 0 is no Kubernetes object"),
        (list(&[&pod, &json!(1)]).to_string(), "item 1 is no Kubernetes object"),
        (deep.to_string(), "nested more than 4 deep"),
    ] {
        let error = Observed::from_list_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn objects_are_found_by_key_and_kind() {
    let mut all = observed(&[
        object("v1", "Pod", "b"),
        object("v1", "Pod", "a"),
        object("v1", "PodTemplate", "c"),
        object("apps/v1", "Deployment", "d"),
        object("apps/v1beta1", "Deployment", "d"),
    ]);
    assert_eq!(all.len(), 4, "versions of a group show the same object");
    assert_eq!(all.pods().map(View::name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(all.one::<Pod<'_>>("ns", "a").unwrap().key(), ObjectKey::namespaced("", "Pod", "ns", "a"));
    assert!(all.one::<Pod<'_>>("", "a").is_none());
    assert!(all.remove(&ObjectKey::namespaced("", "Pod", "ns", "a")).is_some());
    assert_eq!(all.pods().count(), 1);
    assert_eq!(format!("{all:?}"), r#"{"Pod ns/b", "PodTemplate ns/c", "Deployment.apps ns/d"}"#);
}

#[test]
fn what_a_pod_was_told_and_what_it_runs() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns", "annotations": {"a": "b"}},
        "spec": {
            "nodeName": "worker-a",
            "initContainers": [{"name": "init", "image": "busybox"}],
            "containers": [
                {"name": "one", "image": "registry:5000/ns/tensorflow:py3.8"},
                {"name": "two", "image": format!("quay.io/x@{D}"), "imagePullPolicy": "Never"},
                {"name": "three", "image": "Bad Image"},
                {"name": "four"},
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "initContainerStatuses": [{"name": "init", "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}],
            "containerStatuses": [
                {"name": "two", "imageID": "", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}},
                {"name": "one", "ready": true, "imageID": format!("registry:5000/ns/tensorflow@{D}"), "state": {"running": {"startedAt": "t"}}},
            ],
        },
    });
    let all = observed(&[pod]);
    let pod = all.pods().next().unwrap();
    assert_eq!((pod.node(), pod.phase(), pod.annotation("a")), (Some("worker-a"), "Running", Some("b")));
    assert!(pod.is_running() && pod.is_ready() && pod.has_started() && !pod.is_being_deleted());
    assert_eq!(pod.trouble(), Some(("CrashLoopBackOff", "m")));
    let containers = pod.containers();
    let names: Vec<&str> = containers.iter().map(|container| container.name).collect();
    assert_eq!(names, ["init", "one", "two", "three", "four"]);
    let policies: Vec<_> = containers.iter().map(|container| container.pull_policy()).collect();
    let (always, never) = (Some(PullPolicy::Always), Some(PullPolicy::Never));
    assert_eq!(policies, [always, Some(PullPolicy::IfNotPresent), never, None, None]);
    assert_eq!(containers[0].state(), ContainerState::Terminated { reason: "Completed", exit_code: 0 });
    assert_eq!(containers[1].state(), ContainerState::Running { since: "t" });
    assert_eq!(containers[1].image_id().unwrap().unwrap().digest(), &Digest::parse(D).unwrap());
    assert_eq!(containers[1].reference().unwrap().tag(), Some("py3.8"));
    assert!(
        containers[2].image_id().is_none() && containers[2].has_started() && containers[2].restarts() == 2
    );
    assert_eq!(containers[3].state(), ContainerState::Unreported);
    assert!(containers[3].reference().is_err());
}

#[test]
fn why_a_pod_does_not_run() {
    let pod = |status: Value| {
        let mut pod = object("v1", "Pod", "p");
        pod["spec"] = json!({"containers": [{"name": "c", "image": "x"}]});
        pod["status"] = status;
        pod
    };
    let waiting = |reason: &str| json!({"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": reason, "message": "m"}}}]});
    for (status, trouble) in [
        (json!({}), None),
        (waiting("ContainerCreating"), None),
        (waiting("ImagePullBackOff"), Some(("ImagePullBackOff", "m"))),
        (
            json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}]}),
            Some(("Unschedulable", "no")),
        ),
        (json!({"conditions": [{"type": "PodScheduled", "status": "True"}]}), None),
    ] {
        let all = observed(&[pod(status.clone())]);
        let pod = all.pods().next().unwrap();
        assert_eq!(pod.trouble(), trouble, "{status}");
        assert!(!pod.is_running() && !pod.has_started());
    }
}

#[test]
fn nodes() {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": true},
        "status": {
            "nodeInfo": {"operatingSystem": "linux", "architecture": "aarch64"},
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}],
            "images": [{"names": [format!("quay.io/x@{D}"), "quay.io/x:1"], "sizeBytes": 7}, {"names": null}],
        },
    });
    let all = observed(&[node]);
    let node = all.nodes().next().unwrap();
    assert_eq!(node.platform().unwrap(), Platform::parse("linux/arm64").unwrap());
    assert!(node.is_ready() && !node.is_schedulable() && node.has_disk_pressure());
    let images = node.images();
    assert_eq!((images[0].names[1], images[0].size_bytes, images[1].names.len()), ("quay.io/x:1", 7, 0));
    let empty = observed(&[json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})]);
    assert!(empty.nodes().next().unwrap().platform().is_err());
}

#[test]
fn image_streams() {
    let mut stream = object("image.openshift.io/v1", "ImageStream", "tensorflow");
    stream["spec"] = json!({"tags": [
        {"name": "both", "annotations": {"a": "b"}, "from": {"kind": "DockerImage", "name": "quay.io/x:1"},
         "referencePolicy": {"type": "Local"}, "importPolicy": {"importMode": "PreserveOriginal"}},
        {"name": "spec-only"},
    ]});
    stream["status"] = json!({
        "dockerImageRepository": "registry:5000/ns/tensorflow",
        "tags": [
            {"tag": "status-only", "items": []},
            {"tag": "both", "items": [
                {"created": "t2", "dockerImageReference": format!("registry:5000/ns/tensorflow@{D}"), "image": D, "generation": 2},
                {"created": "t1", "image": "bad", "generation": 1},
            ], "conditions": [{"type": "ImportSuccess", "status": "False", "reason": "NotFound", "message": "m"}]},
        ],
    });
    let all = observed(&[stream]);
    let stream: ImageStream<'_> = all.image_streams().next().unwrap();
    assert_eq!(stream.repository(), Some("registry:5000/ns/tensorflow"));
    let names: Vec<(&str, bool)> = stream.tags().iter().map(|tag| (tag.name, tag.is_offered())).collect();
    assert_eq!(names, [("both", true), ("spec-only", false), ("status-only", false)]);
    let both = stream.tag("both").unwrap();
    assert_eq!(both.from(), Some(("DockerImage", "quay.io/x:1")));
    assert_eq!(
        (both.annotation("a"), both.reference_policy(), both.import_mode()),
        (Some("b"), "Local", "PreserveOriginal")
    );
    assert_eq!(both.newest().unwrap().digest().unwrap(), Digest::parse(D).unwrap());
    assert!(both.items()[1].digest().is_err());
    assert_eq!((both.items()[0].generation, both.conditions()[0].reason), (2, "NotFound"));
    let other = stream.tag("spec-only").unwrap();
    assert_eq!(
        (other.from(), other.newest(), other.reference_policy(), other.import_mode()),
        (None, None, "Source", "Legacy")
    );
    assert!(stream.tag("none").is_none());
}

#[test]
fn secrets_are_not_shown() {
    let mut secret = object("v1", "Secret", "s");
    secret["data"] = json!({"password": "aHVudGVyMg==", "bad": "%"});
    let all = observed(&[secret]);
    let secret: Secret<'_> = all.secrets().next().unwrap();
    assert_eq!(secret.value("password").unwrap().expose(), b"hunter2");
    assert!(secret.value("bad").is_none() && secret.value("none").is_none());
    assert_eq!(secret.kind(), "Opaque");
    let shown = format!("{all:?} {secret:?} {:?}", secret.value("password"));
    assert!(
        shown.contains("password") && !shown.contains("hunter2") && !shown.contains("aHVudGVyMg"),
        "{shown}"
    );
    let mut map = object("v1", "ConfigMap", "m");
    map["data"] = json!({"a": "1", "b": "2"});
    map["binaryData"] = json!({"c": "AA=="});
    let all = observed(&[map]);
    let map: ConfigMap<'_> = all.config_maps().next().unwrap();
    assert_eq!(map.data().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
    assert_eq!((map.get("b"), map.get("c"), map.binary_keys().next()), (Some("2"), None, Some("c")));
}

#[test]
fn notebooks_and_their_images() {
    let mut notebook = object("kubeflow.org/v1", "Notebook", "nb");
    notebook["metadata"]["annotations"] = json!({
        "notebooks.opendatahub.io/last-image-selection": "a:1", "notebooks.opendatahub.io/notebook-restart": "true",
    });
    let container = |name: &str| json!({"name": name, "image": "x"});
    for (containers, index) in [
        (json!([container("other")]), Some(0)),
        (json!([container("oauth"), container("nb")]), Some(1)),
        (json!([container("oauth"), container("other")]), None),
        (json!([]), None),
        (json!(null), None),
    ] {
        notebook["spec"] = json!({"template": {"spec": {"containers": containers}}});
        let all = observed(&[notebook.clone()]);
        let seen: Notebook<'_> = all.notebooks().next().unwrap();
        assert_eq!(seen.container().map(|container| container.index), index);
        assert_eq!((seen.selection(), seen.is_stopped(), seen.wants_restart()), (Some("a:1"), false, true));
    }
    let mut image = object("scantling.dev/v1alpha1", "NotebookImage", "a-1");
    image["spec"] = json!({"selection": "a:1", "image": format!("quay.io/x@{D}"), "aliases": ["registry:5000/ns/a:1", "busybox", "Bad Name"]});
    let all = observed(&[image.clone()]);
    let spec = all.notebook_images().next().map(NotebookImage::spec).unwrap().unwrap();
    for (written, named) in [
        (format!("quay.io/x@{D}"), true),
        (format!("quay.io/x:any@{D}"), true),
        ("registry:5000/ns/a:1".to_owned(), true),
        ("registry:5000/ns/a:2".to_owned(), false),
        ("docker.io/library/busybox:latest".to_owned(), true),
        ("quay.io/x:1".to_owned(), false),
    ] {
        assert_eq!(spec.is_named(&Reference::parse(&written).unwrap()), named, "{written}");
    }
    assert!(spec.identity().contains(&Digest::parse(D).unwrap()));
    for (spec, says) in [
        (json!({"selection": "a:1", "image": "quay.io/x:1"}), "has no digest"),
        (json!({"selection": "a:1"}), "missing field `image`"),
        (json!(null), "does not parse"),
    ] {
        image["spec"] = spec;
        let all = observed(&[image.clone()]);
        let error = all.notebook_images().next().unwrap().spec().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// An object with a uid, controlled by another.
fn owned(api_version: &str, kind: &str, name: &str, owner: Option<(&str, &str, &str, &str)>) -> Value {
    let mut object = object(api_version, kind, name);
    object["metadata"]["uid"] = json!(format!("uid of {name}"));
    if let Some((api_version, kind, name, uid)) = owner {
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}]);
    }
    object
}

#[test]
fn who_made_a_pod() {
    let all = observed(&[
        owned("apps/v1", "Deployment", "d", None),
        owned("apps/v1", "ReplicaSet", "r", Some(("apps/v1", "Deployment", "d", "uid of d"))),
        owned("v1", "Pod", "p", Some(("apps/v1", "ReplicaSet", "r", "uid of r"))),
        owned("v1", "Pod", "alone", None),
        owned("v1", "Pod", "stale", Some(("apps/v1", "ReplicaSet", "r", "uid of an older r"))),
        owned("v1", "Pod", "orphan", Some(("apps/v1", "ReplicaSet", "gone", "uid of gone"))),
        owned("v1", "Pod", "loop", Some(("v1", "Pod", "loop", "uid of loop"))),
    ]);
    for (pod, workload) in
        [("p", Some("d")), ("alone", None), ("stale", None), ("orphan", None), ("loop", Some("loop"))]
    {
        let pod: Pod<'_> = all.one("ns", pod).unwrap();
        assert_eq!(all.workload_of(pod).map(scantling_api::object::name), workload, "{}", pod.name());
    }
    let pods = |kind: &str, name: &str| -> Vec<String> {
        let key = ObjectKey::namespaced("apps", kind, "ns", name);
        all.pods_of(&key).into_iter().map(|pod| pod.name().to_owned()).collect()
    };
    assert_eq!(pods("Deployment", "d"), ["p"]);
    assert_eq!(pods("ReplicaSet", "r"), ["p"]);
    assert!(pods("Deployment", "none").is_empty());
}

/// helm/helm#8660: a rollout is called over while a pod of the old template still runs.
#[test]
fn a_rollout_is_over_when_no_old_pod_is_left() {
    for ((observed, updated, available, all), over) in
        [((6, 1, 1, 1), false), ((7, 1, 0, 2), false), ((7, 1, 1, 2), false), ((7, 1, 1, 1), true)]
    {
        let mut deployment = object("apps/v1", "Deployment", "d");
        deployment["metadata"]["generation"] = json!(7);
        deployment["spec"] = json!({"replicas": 1, "strategy": {"rollingUpdate": {"maxUnavailable": 1}}});
        deployment["status"] = json!({"observedGeneration": observed, "updatedReplicas": updated,
            "readyReplicas": available, "availableReplicas": available, "replicas": all});
        let state = rollout(&deployment);
        assert_eq!(state == Rollout::Complete, over, "{observed} {updated} {available} {all}: {state:?}");
        assert_eq!(matches!(state, Rollout::Progressing(_)), !over);
    }
}

#[test]
fn rollouts_by_kubectls_rules() {
    let cases = [
        ("Deployment", json!({"replicas": 2}), json!({"observedGeneration": 1}), "progressing"),
        (
            "Deployment",
            json!({"replicas": 2}),
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}),
            "progressing",
        ),
        (
            "Deployment",
            json!({"replicas": 2}),
            json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}),
            "progressing",
        ),
        (
            "Deployment",
            json!({"replicas": 2}),
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}),
            "progressing",
        ),
        (
            "Deployment",
            json!({"replicas": 2}),
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}),
            "complete",
        ),
        ("Deployment", json!({"replicas": 0}), json!({"observedGeneration": 2}), "complete"),
        (
            "Deployment",
            json!({}),
            json!({"observedGeneration": 2, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "late"}]}),
            "failed",
        ),
        ("StatefulSet", json!({}), json!({"observedGeneration": 2, "readyReplicas": 0}), "progressing"),
        (
            "StatefulSet",
            json!({}),
            json!({"observedGeneration": 2, "readyReplicas": 1, "currentRevision": "a", "updateRevision": "b"}),
            "progressing",
        ),
        (
            "StatefulSet",
            json!({}),
            json!({"observedGeneration": 2, "readyReplicas": 1, "currentRevision": "a", "updateRevision": "a"}),
            "complete",
        ),
        (
            "StatefulSet",
            json!({"updateStrategy": {"type": "OnDelete"}}),
            json!({"observedGeneration": 2}),
            "not applicable",
        ),
        (
            "StatefulSet",
            json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}),
            json!({"observedGeneration": 2, "readyReplicas": 3, "currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1}),
            "complete",
        ),
        (
            "StatefulSet",
            json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}),
            json!({"observedGeneration": 2, "readyReplicas": 3, "currentRevision": "a", "updateRevision": "b"}),
            "progressing",
        ),
        (
            "DaemonSet",
            json!({}),
            json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 2}),
            "progressing",
        ),
        (
            "DaemonSet",
            json!({}),
            json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 2, "numberAvailable": 3}),
            "progressing",
        ),
        (
            "DaemonSet",
            json!({}),
            json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}),
            "complete",
        ),
        ("ConfigMap", json!({}), json!({}), "not applicable"),
    ];
    for (kind, spec, status, want) in cases {
        let mut workload = object("apps/v1", kind, "w");
        workload["metadata"]["generation"] = json!(2);
        workload["spec"] = spec;
        workload["status"] = status;
        let found = rollout(&workload);
        let word = match &found {
            Rollout::Complete => "complete",
            Rollout::Progressing(_) => "progressing",
            Rollout::Failed(_) => "failed",
            Rollout::NotApplicable(_) => "not applicable",
        };
        assert_eq!(word, want, "{workload}");
        assert_eq!(found.is_done(), matches!(want, "complete" | "not applicable"));
    }
}

#[test]
fn workloads() {
    let mut set = object("apps/v1", "StatefulSet", "s");
    set["spec"] = json!({"template": {"spec": {"containers": [{"name": "c", "image": "x:1"}]}}});
    let mut deployment = object("apps/v1", "Deployment", "d");
    deployment["spec"] = json!({"replicas": 3});
    let all = observed(&[set, deployment]);
    let set: StatefulSet<'_> = all.stateful_sets().next().unwrap();
    assert_eq!((set.replicas(), set.image_of("c"), set.image_of("d")), (1, Some("x:1"), None));
    let deployment: Deployment<'_> = all.deployments().next().unwrap();
    assert_eq!((deployment.replicas(), deployment.template()), (3, None));
}

/// Any JSON, with the field names that views look for.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z:@/.]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let key = prop_oneof![
            Just("spec"),
            Just("status"),
            Just("metadata"),
            Just("template"),
            Just("containers"),
            Just("containerStatuses"),
            Just("name"),
            Just("image"),
            Just("imageID"),
            Just("state"),
            Just("running"),
            Just("waiting"),
            Just("tags"),
            Just("items"),
            Just("conditions"),
            Just("data"),
            Just("annotations"),
            Just("images"),
            Just("names"),
            Just("ownerReferences"),
            Just("replicas"),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..6).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn views_look_at_anything(spec in json_value(), status in json_value()) {
        for (api_version, kind) in [
            ("v1", "Pod"), ("v1", "Node"), ("v1", "ConfigMap"), ("v1", "Secret"), ("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"),
            ("image.openshift.io/v1", "ImageStream"), ("kubeflow.org/v1", "Notebook"), ("scantling.dev/v1alpha1", "NotebookImage"),
        ] {
            let mut object = object(api_version, kind, "x");
            object["spec"] = spec.clone();
            object["data"] = spec.clone();
            object["status"] = status.clone();
            let text = object.to_string();
            let all = Observed::from_list_json(text.as_bytes()).unwrap();
            for pod in all.pods() {
                prop_assert!(!pod.is_running() || pod.has_started());
                let _ = (pod.trouble(), pod.node(), pod.is_ready(), all.workload_of(pod));
                for container in pod.containers() {
                    let _ = (container.image_id(), container.pull_policy(), container.reference());
                }
            }
            for stream in all.image_streams() {
                for tag in stream.tags() {
                    let _ = (tag.from(), tag.conditions(), tag.newest().map(scantling_observed::TagItem::digest));
                }
            }
            for node in all.nodes() {
                let _ = (node.images(), node.platform(), node.is_ready());
            }
            for secret in all.secrets() {
                prop_assert!(secret.keys().all(|key| secret.value(key).is_none_or(|value| !value.expose().is_empty()) || secret.object()["data"][key] == ""));
            }
            for map in all.config_maps() {
                prop_assert!(map.data().all(|(key, text)| map.get(key) == Some(text)));
            }
            for notebook in all.notebooks() {
                let _ = (notebook.container(), notebook.selection());
            }
            for image in all.notebook_images() {
                prop_assert!(image.spec().is_ok_and(|spec| spec.image.is_pinned()) || image.spec().is_err());
            }
            let _ = rollout(&object);
        }
    }
}
