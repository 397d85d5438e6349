//! What happened on a real node, in reduced form: a tag moves, a node keeps the old image under it, `Always` moves the node's tag, a
//! restarted container changes in place.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Cluster, Pod, at, commands, digest, lines, tag};

const NODE: &str = "node-1";

/// Ann's notebook and a stateful set by tag, a deployment by digest; the node has sent no list yet.
fn before() -> Cluster {
    let (tf, web) = (tag("tf", "py3.8"), tag("web", "1"));
    Cluster::default()
        .pod(Pod::new("d/ann", NODE, &tf, "IfNotPresent").runs(&at("tf", "2.4.1"), 46))
        .pulled("d/ann", NODE, 46, &tf)
        .pod(Pod::new("d/model-0", NODE, &web, "IfNotPresent").runs(&at("web", "one"), 49).of(
            "apps/v1",
            "StatefulSet",
            "model",
        ))
        .pulled("d/model-0", NODE, 49, &web)
        .pod(
            Pod::new("d/web-1", NODE, &at("web", "one"), "IfNotPresent")
                .runs(&at("web", "one"), 47)
                .config("config of one")
                .of("apps/v1", "ReplicaSet", "web"),
        )
}

/// Both tags have moved. Bob starts by tag, Cleo by digest; a fallback names what no registry has.
fn moved() -> Cluster {
    let missing = at("ovms", "nowhere");
    let message = format!("failed to pull and unpack image \"{missing}\": {missing}: not found");
    before()
        .pod(Pod::new("d/bob", NODE, &tag("tf", "py3.8"), "IfNotPresent").runs(&at("tf", "2.4.1"), 52))
        .present("d/bob", NODE, 52, &tag("tf", "py3.8"))
        .pod(
            Pod::new("d/cleo", NODE, &at("tf", "2.7.0"), "IfNotPresent")
                .runs(&at("tf", "2.7.0"), 53)
                .config("config of 2.7.0"),
        )
        .pulled("d/cleo", NODE, 53, &at("tf", "2.7.0"))
        .pod(Pod::new("d/fallback-1", NODE, &missing, "IfNotPresent").waits("ErrImagePull", &message).of(
            "apps/v1",
            "ReplicaSet",
            "fallback",
        ))
        .node(
            NODE,
            71,
            &[
                &[at("web", "one"), tag("web", "1")],
                &[at("tf", "2.7.0")],
                &[at("tf", "2.4.1"), tag("tf", "py3.8")],
            ],
        )
}

/// Dan starts with `Always`, which moves the node's tag; then Ann's container ends and starts again in its pod. The list is older.
fn restarted() -> Cluster {
    let tf = tag("tf", "py3.8");
    let mut cluster = moved();
    cluster.objects.retain(|object| object["kind"] != "Pod" || object["metadata"]["name"] != "ann");
    cluster
        .pod(Pod::new("d/dan", NODE, &tf, "Always").runs(&at("tf", "2.7.0"), 82))
        .pulled("d/dan", NODE, 82, &tf)
        .pod(Pod::new("d/ann", NODE, &tf, "IfNotPresent").runs(&at("tf", "2.7.0"), 83))
        .present("d/ann", NODE, 83, &tf)
}

fn with_registry(cluster: Cluster) -> Cluster {
    cluster.answers(&tag("tf", "py3.8"), "2.7.0", Some("config of 2.7.0")).answers(
        &tag("web", "1"),
        "two",
        Some("config of two"),
    )
}

#[test]
fn nothing_is_wrong_before() {
    let audit =
        before().answers(&tag("tf", "py3.8"), "2.4.1", None).answers(&tag("web", "1"), "one", None).audit();
    assert_eq!(lines(&audit), [""; 0]);
    assert_eq!(audit.unseen.len(), 1, "the node is not there: {:?}", audit.unseen);
}

#[test]
fn after_the_tag_moved_what_is_stale_is_found() {
    let audit = with_registry(moved()).audit();
    assert_eq!(
        lines(&audit),
        [
            "Next start: cannot pull fallback-1 ovms",
            "Next start: stale ann tf:py3.8",
            "Next start: stale bob tf:py3.8",
            "Next start: stale model-0 web:1",
            "Running: different ann tf:py3.8",
            "Running: different bob tf:py3.8",
            "Running: different model-0 web:1",
        ]
    );
    // Worst first: what does not start at all.
    assert_eq!(audit.rows.first().unwrap().reference.as_deref(), Some(at("ovms", "nowhere").as_str()));
    assert_eq!(audit.unseen, [""; 0]);
}

#[test]
fn without_a_registry_only_what_contradicts_itself_is_said() {
    let audit = moved().audit();
    assert_eq!(lines(&audit), ["Next start: cannot pull fallback-1 ovms"]);
    assert!(
        audit.unseen.iter().any(|line| line.starts_with("what 2 written tags mean")),
        "{:?}",
        audit.unseen
    );
}

#[test]
fn what_a_restart_would_change_is_found_without_a_lock() {
    let audit = restarted().audit();
    assert_eq!(
        lines(&audit),
        [
            "Next start: cannot pull fallback-1 ovms",
            "Next start: restart changes bob tf:py3.8",
            "Replicas: different ann tf:py3.8",
            "Replicas: different bob tf:py3.8",
            "Replicas: different dan tf:py3.8",
            "Running: different bob tf:py3.8",
        ]
    );
    let audit = with_registry(restarted()).audit();
    assert_eq!(
        lines(&audit).iter().filter(|line| !line.starts_with("Replicas")).collect::<Vec<_>>(),
        [
            "Next start: cannot pull fallback-1 ovms",
            "Next start: restart changes bob tf:py3.8",
            "Next start: stale model-0 web:1",
            "Running: different bob tf:py3.8",
            "Running: different model-0 web:1",
        ]
    );
}

#[test]
fn no_remedy_leaves_the_next_start_stale() {
    for cluster in [with_registry(moved()), with_registry(restarted()), restarted()] {
        let audit = cluster.audit();
        assert!(!commands(&audit).is_empty());
        for command in commands(&audit) {
            let pins = command.contains("set image") && command.contains("@sha256:");
            let asks = command.contains("--image-pull-policy=Always") && !command.contains("@sha256:");
            let is_told = command.ends_with("@DIGEST");
            assert!(pins || asks || is_told, "{command}");
            assert!(
                !pins || [digest("2.7.0"), digest("two")].iter().any(|digest| command.contains(digest)),
                "{command}"
            );
        }
    }
}

#[test]
fn ids_stay_while_a_fault_lasts() {
    let ids = |cluster: Cluster| {
        let audit = cluster.audit();
        let mut ids: Vec<String> = audit.rows.iter().map(|row| row.id.clone()).collect();
        ids.sort();
        ids
    };
    let first = ids(with_registry(moved()));
    assert_eq!(first, ids(with_registry(moved())));
    let later = ids(with_registry(restarted()));
    // The deployment, the model and Bob are as they were.
    assert_eq!(first.iter().filter(|id| later.contains(id)).count(), 4, "{first:?} {later:?}");
}

#[test]
fn the_story_of_a_restart_names_who_moved_the_name() {
    let audit = restarted().audit();
    let row = audit.rows.iter().find(|row| row.verdict == scantling_audit::Verdict::Changes).unwrap();
    assert!(
        row.evidence.iter().any(|it| it.object.ends_with("d/dan") && it.value.starts_with("Successfully")),
        "{row:#?}"
    );
    assert!(audit.find(&row.id) == [row] && audit.find("next-").is_empty());
}

#[test]
fn thousands_of_equal_rows_are_one_line() {
    const PODS: usize = 2000;
    let image = tag("tf", "py3.8");
    let mut cluster = Cluster::default();
    for number in 0..PODS {
        let (pod, node) = (format!("team-{}/lab-{number}", number % 7), format!("n{number}"));
        cluster = cluster
            .pod(Pod::new(&pod, &node, &image, "IfNotPresent").runs(&at("tf", "2.4.1"), 50).config("old"));
    }
    let audit = cluster.answers(&image, "2.7.0", Some("new")).audit();
    assert_eq!(audit.rows.len(), 2 * PODS);
    assert_eq!(audit.groups.iter().map(|group| group.subjects).collect::<Vec<_>>(), [PODS, PODS]);
}

#[test]
fn what_keeps_an_image_away_decides_the_remedy() {
    let remedy = |message: &str, policy: &str, reason: &str| {
        let pod = Pod::new("d/a", NODE, &tag("tf", "1"), policy).waits(reason, message);
        let audit = Cluster::default().pod(pod).audit();
        let row = audit.rows.first().unwrap().clone();
        assert_eq!(row.verdict, scantling_audit::Verdict::CannotPull);
        row.remedies.first().unwrap().what.clone()
    };
    let always = |message: &str| remedy(message, "Always", "ErrImagePull");
    assert!(
        always("pull access denied, repository does not exist or may require authorization")
            .contains("pull secret")
    );
    assert!(always("dial tcp: lookup registry.example.com: no such host").contains("way from the node"));
    assert!(always("manifest unknown").contains("push the image"));
    assert!(remedy("", "Never", "ErrImageNeverPull").contains("imagePullPolicy"));
}
