//! Public reports about stale caches and about what nodes and pods show, replayed: each ends in a verdict, a sentence and a remedy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Cluster, Pod, at, commands, digest, lines, tag, verdicts};
use scantling_audit::{Section, Verdict};
use serde_json::json;

/// keel-hq/keel#803: a watcher restarts a pod because its tag has moved, and it comes back on the old digest.
#[test]
fn a_restart_is_never_the_remedy() {
    let app = tag("app", "main");
    let audit = Cluster::default()
        .pod(Pod::new("lab/app-1", "n1", &app, "IfNotPresent").runs(&at("app", "new and old"), 60).of(
            "apps/v1",
            "StatefulSet",
            "app",
        ))
        .present("lab/app-1", "n1", 59, &app)
        .node("n1", 200, &[&[at("app", "new and old"), app.clone()], &[at("pause", "p"), tag("pause", "1")]])
        .answers(&app, "moved", Some("config of moved"))
        .answers(&at("app", "new and old"), "new and old", Some("config of old"))
        .audit();
    assert_eq!(lines(&audit), ["Next start: stale app-1 app:main", "Running: different app-1 app:main"]);
    let all = commands(&audit);
    assert!(
        all.iter().all(|command| !command.contains("rollout restart") && !command.contains("delete pod")),
        "{all:?}"
    );
    assert!(
        all.iter().any(|command| command.contains("set image") && command.contains(&digest("moved"))),
        "{all:?}"
    );
}

/// kubernetes/kubernetes#116867: with `Always`, new pods get the newest or the previous digest, as a cache on the way has it.
#[test]
fn pulls_that_go_to_and_fro_have_no_newest() {
    let app = tag("app", "rolling");
    let mut cluster = Cluster::default();
    for (number, word) in ["old", "new", "old", "new"].into_iter().enumerate() {
        let (pod, node) = (format!("lab/p{number}"), format!("n{}", number % 2));
        let second = 100 * i64::try_from(number).unwrap() + 10;
        cluster = cluster
            .pod(
                Pod::new(&pod, &node, &app, "Always")
                    .runs(&at("app", word), second)
                    .config(&format!("config of {word}")),
            )
            .pulled(&pod, &node, second, &app);
    }
    let audit = cluster.audit();
    // That one name stands for two images is said; which of them is right is not, without the registry.
    assert_eq!(verdicts(&audit, Section::Replicas), [Verdict::Different]);
    assert_eq!(verdicts(&audit, Section::Running), []);
}

/// infinispan/infinispan-operator#1171: replicas of one set run two builds that share a tag.
#[test]
fn replicas_of_one_set_on_two_builds() {
    let image = tag("server", "12.1");
    let pod = |number: usize, word: &str| {
        Pod::new(&format!("grid/data-grid-{number}"), &format!("n{number}"), &image, "IfNotPresent")
            .runs(&at("server", word), 50)
            .of("apps/v1", "StatefulSet", "data-grid")
    };
    let audit = Cluster::default().pod(pod(0, "a")).pod(pod(1, "b")).pod(pod(2, "a")).audit();
    let [row] = audit.rows.as_slice() else { panic!("{:#?}", audit.rows) };
    assert_eq!((row.section, row.verdict, row.found.len()), (Section::Replicas, Verdict::Moved, 2));
    assert!(row.is_broken() && row.why.contains("2 digests"), "{}", row.why);
    assert_eq!(row.subjects.len(), 3);
}

/// 2i2c-org/infrastructure#3801: an exact version's tag is rebuilt; only digests stay.
#[test]
fn a_version_is_a_tag_like_any_other() {
    let images = [
        tag("rstudio", "4.3.3"),
        tag("rstudio", "4.3.3-20240314"),
        at("rstudio", "kept"),
        format!("{}@{}", tag("rstudio", "4.3.3"), digest("kept")),
    ];
    let mut cluster = Cluster::default();
    for (number, image) in images.iter().enumerate() {
        cluster = cluster.pod(
            Pod::new(&format!("hub/p{number}"), "n1", image, "IfNotPresent").runs(&at("rstudio", "kept"), 50),
        );
    }
    let audit = cluster
        .answers(&images[0], "rebuilt", Some("config of rebuilt"))
        .answers(&images[1], "rebuilt", Some("config of rebuilt"))
        .answers(&at("rstudio", "kept"), "kept", Some("config of kept"))
        .audit();
    let running: Vec<String> = lines(&audit).into_iter().filter(|line| line.starts_with("Running")).collect();
    assert_eq!(
        running,
        ["Running: different p0 rstudio:4.3.3", "Running: different p1 rstudio:4.3.3-20240314"]
    );
}

/// `TonicAI/tonic_helm_charts#16`: the policy that the server filled in when the object was made stays, whatever the image is later.
#[test]
fn the_policy_of_the_live_object_decides() {
    let latest = tag("ui", "latest");
    let node = |cluster: Cluster| {
        cluster
            .node("n1", 300, &[&[at("ui", "old"), latest.clone()], &[at("ui", "new")], &[at("pause", "p")]])
            .answers(&latest, "new", None)
    };
    let deployment = |policy: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "ui", "namespace": "lab"},
            "spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "ui", "image": latest, "imagePullPolicy": policy}]}}}})
    };
    let kept = node(Cluster::default().object(deployment("IfNotPresent"))).audit();
    assert_eq!(lines(&kept), ["Next start: stale ui ui:latest"]);
    // A fresh object of this image has no policy written and gets `Always`.
    let mut fresh = deployment("");
    fresh["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("imagePullPolicy");
    assert_eq!(lines(&node(Cluster::default().object(fresh)).audit()), [""; 0]);
}

/// operator-framework/operator-registry#292: a catalogue's index is pushed again under its tag; its pod keeps the old one.
#[test]
fn pods_of_catalogues_are_pods() {
    let image = tag("catalog-index", "v1.0.0");
    let audit = Cluster::default()
        .object(json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "lab-catalog", "namespace": "marketplace", "uid": "uid-CatalogSource-lab-catalog"},
            "spec": {"sourceType": "grpc", "image": image}}))
        .pod(
            Pod::new("marketplace/lab-catalog-x", "n1", &image, "IfNotPresent")
                .runs(&at("catalog-index", "old"), 50)
                .of("operators.coreos.com/v1alpha1", "CatalogSource", "lab-catalog"),
        )
        .answers(&image, "new", None)
        .audit();
    let [next, running] = audit.rows.as_slice() else { panic!("{:#?}", audit.rows) };
    assert!([next, running].iter().all(|row| row.verdict == Verdict::Moved && row.is_broken()));
    assert_eq!(running.subjects[0].object, "CatalogSource marketplace/lab-catalog");
}

/// spegel-org/spegel#295: the tag has moved since the digest was written beside it.
#[test]
fn a_digest_decides_and_the_tag_beside_it_does_not() {
    let image = format!("{}@{}", tag("app", "stable"), digest("pinned"));
    let audit = Cluster::default()
        .pod(Pod::new("home/app", "n1", &image, "IfNotPresent").runs(&at("app", "pinned"), 50))
        .answers(&tag("app", "stable"), "moved", Some("config of moved"))
        .audit();
    assert_eq!(lines(&audit), [""; 0]);
}

/// kubernetes/kubernetes#93488: a node's list ends at fifty images.
#[test]
fn what_is_not_in_a_full_list_may_be_there() {
    let wanted = tag("minimal", "1");
    let names: Vec<Vec<String>> = (0..50).map(|number| vec![at(&format!("big-{number}"), "x")]).collect();
    let list = |count: usize| -> Vec<&[String]> { names.iter().take(count).map(Vec::as_slice).collect() };
    let audit = |count: usize| {
        Cluster::default()
            .object(json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "lab"},
                "spec": {"suspend": true, "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": wanted, "imagePullPolicy": "IfNotPresent"}]}}}}}}))
            .node("n1", 100, &list(count))
            .answers(&wanted, "new", None)
            .audit()
    };
    let full = audit(50);
    let [row] = full.rows.as_slice() else { panic!("{:#?}", full.rows) };
    assert_eq!((row.verdict, row.is_broken()), (Verdict::Unknown, false));
    assert!(row.why.contains("n1"), "{}", row.why);
    assert_eq!(lines(&audit(49)), [""; 0]);
}

/// kubernetes/kubernetes#32908: of an image's names only five are listed.
#[test]
fn a_tag_that_is_cut_off_is_not_missing() {
    let image = tag("y", "t7");
    let names: Vec<String> =
        std::iter::once(at("y", "it")).chain((1..5).map(|number| tag("y", &format!("t{number}")))).collect();
    let audit = |names: &[String]| {
        Cluster::default()
            .pod(Pod::new("lab/y", "n1", &image, "IfNotPresent").runs(&at("y", "it"), 10))
            .event("lab/other", "n1", 5, "Pulling", "x")
            .node("n1", 200, &[names])
            .answers(&image, "it", None)
            .audit()
    };
    assert_eq!(lines(&audit(&names)), [""; 0]);
    // Four names are all names: then the tag leads elsewhere, and what it leads to is not shown.
    assert_eq!(verdicts(&audit(&names[..4]), Section::NextStart), []);
}

/// kubernetes/kubernetes#51017: two tags of one image, and every pod's status shows the same one.
#[test]
fn the_name_in_a_status_decides_nothing() {
    let (staging, production) = (tag("test", "staging"), tag("test", "production"));
    let pod = |name: &str, image: &str| {
        let mut pod = Pod::new(name, "n1", image, "IfNotPresent").runs(&at("test", "one"), 50);
        pod.0["status"]["containerStatuses"][0]["image"] = json!(production);
        pod
    };
    let audit = Cluster::default()
        .pod(pod("lab/p1", &staging))
        .pod(pod("lab/p2", &production))
        .answers(&staging, "one", None)
        .answers(&production, "one", None)
        .audit();
    assert_eq!(lines(&audit), [""; 0]);
}

/// openkruise/kruise#2572: an image ID is a bare digest, which is the configuration's.
#[test]
fn a_bare_digest_is_looked_up_and_never_called_different() {
    let image = tag("b", "1");
    let audit = |image_id: &str| {
        Cluster::default()
            .pod(Pod::new("lab/b", "n1", &image, "IfNotPresent").runs(image_id, 50))
            .answers(&image, "manifest", Some("config"))
            .audit()
    };
    for known in [
        digest("config"),
        format!("docker-pullable://{}", at("b", "manifest")),
        digest("config").replace("sha256:", "docker://sha256:"),
    ] {
        assert_eq!(lines(&audit(&known)), [""; 0], "{known}");
    }
    let other = audit(&digest("something else"));
    assert_eq!(verdicts(&other, Section::Running), [Verdict::Unknown]);
    assert_eq!(other.broken(), 0);
    assert!(other.rows.iter().all(|row| row.why.contains("configuration")), "{:#?}", other.rows);
}

/// openkruise/kruise#1419: an earlier success stands for what the node has now.
#[test]
fn what_a_node_lists_now_goes_before_what_was_started() {
    let image = tag("app", "1");
    let audit = Cluster::default()
        .pod(Pod::new("lab/app", "n1", &image, "IfNotPresent").runs(&at("app", "good"), 10))
        .pulled("lab/app", "n1", 9, &image)
        .node("n1", 200, &[&[at("app", "good")], &[at("app", "bad"), image.clone()], &[at("pause", "p")]])
        .answers(&image, "good", None)
        .audit();
    assert_eq!(
        lines(&audit),
        [
            "Next start: restart changes app app:1",
            "Next start: stale app app:1",
            "Replicas: different app app:1",
            "Replicas: different n1 app:1",
        ]
    );
}
