//! What a notebook's pod is made of, and what keeps it from being made.

use crate::small_cluster::*;
use scantling_reconcile::Action;
use serde_json::{Value, json};

const V: &[(&str, &str)] = &[("numpy", "1")];

/// What is done to a cluster before it is looked at.
type Change<'a> = &'a dyn Fn(&mut Cluster);

fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.catalogue("old", V);
    cluster.notebook("nb", Some(SELECTION));
    cluster
}

fn notebook(cluster: &mut Cluster, patch: &Value) {
    cluster.edit("kubeflow.org", "Notebook", "anna", "nb", patch);
}

fn template(cluster: &Cluster) -> Value {
    cluster.get("apps", "StatefulSet", "anna", "nb").unwrap()["spec"]["template"].clone()
}

fn container(fields: &Value) -> Value {
    let mut container = json!({"name": "nb", "image": "x:1"});
    merge(&mut container, fields);
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

#[test]
fn the_servers_own_api_says_whether_it_is_ready() {
    for (fields, server, probe) in [
        (
            json!({}),
            None,
            json!({"httpGet": {"path": "/notebook/anna/nb/api", "port": 8888, "scheme": "HTTP"}}),
        ),
        (
            json!({"ports": [{"containerPort": 80}]}),
            Some("jupyter"),
            json!({"httpGet": {"path": "/notebook/anna/nb/api", "port": 80, "scheme": "HTTP"}}),
        ),
        (json!({}), Some("group-one"), json!({"tcpSocket": {"port": 8888}})),
    ] {
        let mut cluster = cluster();
        notebook(&mut cluster, &container(&fields));
        if let Some(server) = server {
            cluster.annotate("nb", "notebooks.kubeflow.org/server-type", &json!(server));
        }
        cluster.settle();
        let found = template(&cluster)["spec"]["containers"][0].clone();
        for (field, value) in probe.as_object().unwrap() {
            assert_eq!(&found["readinessProbe"][field], value);
        }
        assert!(found["livenessProbe"].is_null(), "nothing may kill a session");
    }
    let mut cluster = cluster();
    let own = json!({"exec": {"command": ["true"]}});
    notebook(&mut cluster, &container(&json!({"readinessProbe": own})));
    cluster.settle();
    assert_eq!(template(&cluster)["spec"]["containers"][0]["readinessProbe"], own);
}

#[test]
fn a_group_and_a_working_folder_are_given_as_clients_expect() {
    let mount = json!({"volumeMounts": [{"name": "home", "mountPath": "/home/jovyan"}]});
    for (what, fields, pod, assigned, group, folder) in [
        ("nothing mounted", json!({}), json!({}), false, json!({"fsGroup": 100}), Value::Null),
        ("the home mounted", mount.clone(), json!({}), false, json!({"fsGroup": 100}), json!("/home/jovyan")),
        ("OpenShift hands out groups", mount.clone(), json!({}), true, Value::Null, json!("/home/jovyan")),
        (
            "the owner says what it is",
            json!({"workingDir": "/work"}),
            json!({"securityContext": {"runAsUser": 7}}),
            false,
            json!({"runAsUser": 7}),
            json!("/work"),
        ),
    ] {
        let mut cluster = cluster();
        let mut annotations = json!({});
        if assigned {
            annotations["openshift.io/sa.scc.uid-range"] = json!("1000/1000");
        }
        cluster.put(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "anna", "annotations": annotations},
        }));
        notebook(&mut cluster, &container(&fields));
        notebook(&mut cluster, &json!({"spec": {"template": {"spec": pod}}}));
        cluster.settle();
        let spec = &template(&cluster)["spec"];
        assert_eq!(spec["securityContext"], group, "{what}");
        assert_eq!(spec["containers"][0]["workingDir"], folder, "{what}");
    }
}

#[test]
fn labels_and_annotations_reach_the_pod_but_those_about_the_notebook_itself() {
    let mut cluster = cluster();
    for (name, value) in [
        ("sidecar.istio.io/inject", "false"),
        ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ("notebooks.kubeflow.org/last-activity", "2026-01-01T00:00:00Z"),
        ("scantling.dev/allow-from", "berta"),
    ] {
        cluster.annotate("nb", name, &json!(value));
    }
    cluster.settle();
    let mut metadata = template(&cluster)["metadata"].clone();
    metadata["annotations"].as_object_mut().unwrap().remove("scantling.dev/pod");
    assert_eq!(
        metadata["annotations"],
        json!({"sidecar.istio.io/inject": "false", "notebooks.opendatahub.io/last-image-selection": SELECTION})
    );
    assert_eq!(metadata["labels"]["opendatahub.io/dashboard"], "true");
    // While it runs, an annotation that clients write is no reason to speak of an update.
    cluster.annotate("nb", "openshift.io/display-name", &json!("My notebook"));
    cluster.settle();
    let mut now = template(&cluster)["metadata"].clone();
    now["annotations"].as_object_mut().unwrap().remove("scantling.dev/pod");
    assert_eq!(now, metadata);
    assert_eq!(condition(&cluster, "nb", "UpdatePending").0, "False");
    assert_eq!(cluster.settle(), 0);
}

#[test]
fn a_volume_of_its_own_is_made_mounted_and_kept() {
    let mut cluster = cluster();
    cluster.annotate("nb", "scantling.dev/volume-size", &json!("10Gi"));
    cluster.annotate("nb", "scantling.dev/volume-class", &json!("fast"));
    cluster.settle();
    let claim = cluster.get("", "PersistentVolumeClaim", "anna", "nb-volume").unwrap().clone();
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "10Gi");
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    assert!(claim["metadata"]["ownerReferences"].is_null(), "nobody owns it, so nobody deletes it");
    let spec = &template(&cluster)["spec"];
    assert_eq!(
        spec["volumes"],
        json!([{"name": "nb-volume", "persistentVolumeClaim": {"claimName": "nb-volume"}}])
    );
    assert_eq!(
        spec["containers"][0]["volumeMounts"],
        json!([{"name": "nb-volume", "mountPath": "/home/jovyan"}])
    );
    assert_eq!(spec["containers"][0]["workingDir"], "/home/jovyan");
    // It is not written to again, and a notebook of the same name finds it.
    cluster.annotate("nb", "scantling.dev/volume-size", &json!("20Gi"));
    cluster.annotate("nb", "kubeflow-resource-stopped", &json!("now"));
    cluster.settle();
    assert_eq!(cluster.get("", "PersistentVolumeClaim", "anna", "nb-volume"), Some(&claim));
}

fn profile(identifiers: &Value) -> Value {
    json!({
        "apiVersion": "infrastructure.opendatahub.io/v1", "kind": "HardwareProfile",
        "metadata": {"name": "small", "namespace": PLATFORM},
        "spec": {
            "identifiers": identifiers,
            "scheduling": {"type": "Node", "node": {
                "nodeSelector": {"gpu": "a100"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
            }},
        },
    })
}

#[test]
fn a_hardware_profile_gives_what_the_owner_did_not_ask_for() {
    let mut cluster = cluster();
    cluster.put(profile(&json!([
        {"identifier": "cpu", "minCount": 1, "maxCount": "4", "defaultCount": "2"},
        {"identifier": "memory", "minCount": "1Gi", "defaultCount": "8Gi"},
        {"identifier": "nvidia.com/gpu", "minCount": 1, "defaultCount": 1},
    ])));
    notebook(&mut cluster, &container(&json!({"resources": {"requests": {"memory": "1Gi"}}})));
    cluster.annotate("nb", "opendatahub.io/hardware-profile-name", &json!("small"));
    cluster.settle();
    let spec = &template(&cluster)["spec"];
    assert_eq!(
        spec["containers"][0]["resources"],
        json!({"requests": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}, "limits": {"cpu": "2", "nvidia.com/gpu": "1"}})
    );
    assert_eq!(spec["nodeSelector"], json!({"gpu": "a100"}));
    assert_eq!(spec["tolerations"], json!([{"key": "gpu", "operator": "Exists"}]));
    // The admin changes the profile: what runs is left alone and told.
    cluster.put(profile(&json!([{"identifier": "cpu", "defaultCount": "1"}])));
    cluster.settle();
    assert_eq!(condition(&cluster, "nb", "UpdatePending").1, "NotebookChanged");
    assert!(cluster.restarts.is_empty());
}

#[test]
fn what_cannot_be_given_says_why_and_nothing_is_made() {
    let small = |cluster: &mut Cluster| {
        cluster.put(profile(&json!([{"identifier": "cpu", "defaultCount": "2"}])));
        cluster.annotate("nb", "opendatahub.io/hardware-profile-name", &json!("big"));
    };
    let none = |cluster: &mut Cluster| {
        cluster.annotate("nb", "opendatahub.io/hardware-profile-name", &json!("big"));
    };
    let broken = |cluster: &mut Cluster| {
        cluster.put(profile(&json!([{"identifier": "cpu", "defaultCount": "two"}])));
        cluster.annotate("nb", "opendatahub.io/hardware-profile-name", &json!("small"));
    };
    let size = |cluster: &mut Cluster| {
        cluster.annotate("nb", "scantling.dev/volume-size", &json!("large"));
    };
    let from = |cluster: &mut Cluster| {
        cluster.annotate("nb", "scantling.dev/allow-from", &json!("Berta"));
    };
    let claim = |cluster: &mut Cluster| {
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]);
        notebook(cluster, &json!({"spec": {"template": {"spec": {"volumes": volumes}}}}));
    };
    let cases: [(Change<'_>, &str, &str); 6] = [
        (&small, "UnknownProfile", "which has small"),
        (&none, "UnknownProfile", "no profile"),
        (&broken, "BrokenProfile", "default count of cpu"),
        (&size, "InvalidAnnotation", "such as 10Gi"),
        (&from, "InvalidAnnotation", "Berta"),
        (&claim, "VolumeMissing", "no PersistentVolumeClaim gone in namespace anna"),
    ];
    for (prepare, reason, says) in cases {
        let mut cluster = cluster();
        prepare(&mut cluster);
        // Somebody else's notebook is not held up.
        cluster.notebook("other", Some(SELECTION));
        cluster.settle();
        let (is, found, message) = condition(&cluster, "nb", "Startable");
        assert_eq!((is.as_str(), found.as_str()), ("False", reason), "{message}");
        assert!(message.contains(says), "{message}");
        for (group, kind) in
            [("apps", "StatefulSet"), ("", "Service"), ("networking.k8s.io", "NetworkPolicy")]
        {
            assert!(
                cluster.get(group, kind, "anna", "nb").is_none(),
                "{reason}: half-made, there is a {kind}"
            );
        }
        assert_eq!(cluster.events, [(reason.to_owned(), message)]);
        assert!(cluster.get("", "Pod", "anna", "other-0").is_some());
    }
}

#[test]
fn a_volume_that_comes_later_is_waited_for() {
    let mut cluster = cluster();
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "late"}}]);
    notebook(&mut cluster, &json!({"spec": {"template": {"spec": {"volumes": volumes}}}}));
    cluster.settle();
    assert!(cluster.get("", "Pod", "anna", "nb-0").is_none());
    cluster.put(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "late", "namespace": "anna"},
    }));
    cluster.settle();
    assert!(cluster.get("", "Pod", "anna", "nb-0").is_some());
    assert_eq!(condition(&cluster, "nb", "Startable").0, "True");
}

#[test]
fn a_broken_setting_keeps_what_runs_and_can_still_be_stopped() {
    let mut cluster = cluster();
    cluster.settle();
    let before = template(&cluster);
    cluster.annotate("nb", "opendatahub.io/hardware-profile-name", &json!("gone"));
    cluster.settle();
    assert_eq!(template(&cluster), before);
    assert!(cluster.get("", "Pod", "anna", "nb-0").is_some());
    cluster.annotate("nb", "kubeflow-resource-stopped", &json!("now"));
    cluster.settle();
    assert!(cluster.get("", "Pod", "anna", "nb-0").is_none());
    // It does not start without what it asks for.
    cluster.annotate("nb", "kubeflow-resource-stopped", &Value::Null);
    cluster.settle();
    assert!(cluster.get("", "Pod", "anna", "nb-0").is_none());
    assert_eq!(condition(&cluster, "nb", "Startable").1, "UnknownProfile");
}

/// A cluster whose stateful sets get no pods, and the event that says why.
fn refused(message: &str) -> Cluster {
    let mut cluster = cluster();
    // The set is there, and its controller was refused the pod.
    while let Some(action) = cluster.wanted().into_iter().next() {
        cluster.write(&action);
        cluster.now += 1;
    }
    let set = cluster.get("apps", "StatefulSet", "anna", "nb").unwrap();
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "nb.1", "namespace": "anna"},
        "type": "Warning", "reason": "FailedCreate", "message": message, "lastTimestamp": "2026-01-01T00:00:05Z",
        "involvedObject": {"kind": "StatefulSet", "name": "nb", "uid": set["metadata"]["uid"]},
    });
    cluster.put(event);
    cluster
}

#[test]
fn what_the_sets_events_say_is_said_of_the_notebook() {
    for (message, reason, says) in [
        (
            "create Pod nb-0 in StatefulSet nb failed error: pods \"nb-0\" is forbidden: exceeded quota: team, requested: cpu=2, used: cpu=7, limited: cpu=8",
            "QuotaExceeded",
            "have the quota raised",
        ),
        (
            "create Pod nb-0 in StatefulSet nb failed error: pods \"nb-0\" is forbidden: violates PodSecurity \"restricted:latest\"",
            "NotAdmitted",
            "security context",
        ),
        ("create Pod nb-0 in StatefulSet nb failed error: no", "PodNotCreated", "tried again"),
    ] {
        let mut cluster = refused(message);
        for action in cluster.wanted() {
            cluster.write(&action);
        }
        let (is, found, text) = condition(&cluster, "nb", "Startable");
        assert_eq!((is.as_str(), found.as_str()), ("False", reason));
        assert!(text.contains(says) && text.contains(message), "{text}");
        assert_eq!(cluster.events, [(reason.to_owned(), text)]);
        // The cluster forgets the event, and nothing has changed.
        cluster.remove("", "Event", "anna", "nb.1");
        assert_eq!(cluster.wanted(), Vec::<Action>::new());
        // The quota is raised: there is a pod.
        cluster.settle();
        assert_eq!(condition(&cluster, "nb", "Startable").0, "True");
    }
}

#[test]
fn an_event_about_an_earlier_set_says_nothing() {
    let mut cluster = refused("exceeded quota");
    cluster.edit("", "Event", "anna", "nb.1", &json!({"involvedObject": {"uid": "another"}}));
    for action in cluster.wanted() {
        cluster.write(&action);
    }
    assert_eq!(condition(&cluster, "nb", "Startable").0, "True");
}

#[test]
fn a_pod_that_does_not_start_says_why() {
    let mut cluster = cluster();
    cluster.unpullable.push(image("old"));
    cluster.settle();
    let (is, reason, message) = condition(&cluster, "nb", "Startable");
    assert_eq!((is.as_str(), reason.as_str()), ("False", "ImagePull"));
    assert!(message.contains("manifest unknown"), "{message}");
    // The kubelet's two words for it take turns; that is no news.
    let state = json!([{"name": "nb", "state": {"waiting": {"reason": "ErrImagePull", "message": "manifest unknown"}}}]);
    cluster.edit("", "Pod", "anna", "nb-0", &json!({"status": {"containerStatuses": state}}));
    cluster.settle();
    assert_eq!(cluster.events.len(), 1, "{:?}", cluster.events);
}

/// What a client of notebooks makes of a status: the first thing that it finds to say.
fn as_a_client_reads_it(notebook: &Value) -> String {
    let status = &notebook["status"];
    let stopped = notebook["metadata"]["annotations"].get("kubeflow-resource-stopped").is_some();
    if stopped {
        return if status["readyReplicas"] == 0 { "stopped" } else { "stopping" }.to_owned();
    }
    if status["readyReplicas"] == 1 {
        return "ready".to_owned();
    }
    if let Some(waiting) = status["containerState"].get("waiting") {
        return format!(
            "warning {}: {}",
            waiting["reason"].as_str().unwrap(),
            waiting["message"].as_str().unwrap()
        );
    }
    let warned =
        status["conditions"].as_array().unwrap().iter().find(|condition| condition.get("reason").is_some());
    match warned {
        Some(condition) => {
            format!(
                "warning {}: {}",
                condition["reason"].as_str().unwrap(),
                condition["message"].as_str().unwrap()
            )
        }
        None => "nothing to say yet".to_owned(),
    }
}

#[test]
fn clients_of_notebooks_read_the_status_as_it_is_meant() {
    let read = |cluster: &Cluster| {
        as_a_client_reads_it(cluster.get("kubeflow.org", "Notebook", "anna", "nb").unwrap())
    };
    let mut cluster = cluster();
    for action in cluster.wanted() {
        cluster.write(&action);
    }
    assert_eq!(
        read(&cluster),
        "nothing to say yet",
        "a notebook that is being made is no cause for a warning"
    );
    cluster.settle();
    assert_eq!(read(&cluster), "ready");
    let scheduled = json!({"phase": "Pending", "containerStatuses": null, "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"},
    ]});
    cluster.edit("", "Pod", "anna", "nb-0", &json!({"status": scheduled}));
    cluster.settle();
    assert_eq!(read(&cluster), "warning Unschedulable: 0/3 nodes are available");
    cluster.annotate("nb", "kubeflow-resource-stopped", &json!("now"));
    cluster.settle();
    assert_eq!(read(&cluster), "stopped");
    cluster.annotate("nb", "kubeflow-resource-stopped", &Value::Null);
    cluster.annotate("nb", "notebooks.opendatahub.io/last-image-selection", &json!("gone:1"));
    cluster.remove("apps", "StatefulSet", "anna", "nb");
    cluster.settle();
    assert!(read(&cluster).starts_with("warning UnknownStream: no image"), "{}", read(&cluster));
}

#[test]
fn what_is_deleted_underneath_comes_back_without_a_restart() {
    let mut cluster = cluster();
    cluster.settle();
    cluster.catalogue("new", &[("numpy", "2")]);
    cluster.settle();
    let pod = cluster.get("", "Pod", "anna", "nb-0").unwrap().clone();
    for (group, kind) in [("", "Service"), ("networking.k8s.io", "NetworkPolicy")] {
        cluster.remove(group, kind, "anna", "nb");
        cluster.settle();
        assert!(cluster.get(group, kind, "anna", "nb").is_some(), "{kind}");
        assert_eq!(cluster.get("", "Pod", "anna", "nb-0").unwrap()["metadata"], pod["metadata"]);
    }
    // Whoever deletes the set takes the pod with it. The notebook comes back with the image it had, and its update still waits.
    cluster.remove("apps", "StatefulSet", "anna", "nb");
    cluster.remove("", "Pod", "anna", "nb-0");
    cluster.settle();
    let found = &cluster.get("", "Pod", "anna", "nb-0").unwrap()["spec"]["containers"][0]["image"];
    assert_eq!(found, &json!(image("old")));
    assert_eq!(condition(&cluster, "nb", "UpdatePending").1, "NewImage");
}
