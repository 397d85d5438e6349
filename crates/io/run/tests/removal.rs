//! Taking a release away while something goes wrong: nothing of people goes on a guess.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{
    HOST, brought, key, of_people, one, options, outcomes, sandbox, taken_away, tree, two, well,
};
use common::{Sandbox, push};
use http::Method;
use scantling_api::{ObjectKey, object};
use scantling_plan::Outcome;
use scantling_run::{Options, RunError, RunReport, SYSTEM_NAMESPACE, What, uninstall};
use serde_json::{Value, json};
use std::time::Duration;

fn thing() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}})
}

fn cause<'r>(report: &'r RunReport, name: &str) -> (Outcome, &'r str) {
    let found = report.outcomes.iter().find(|o| o.key.to_string() == name);
    found.map_or_else(|| panic!("{name}: {:#?}", report.outcomes), |o| (o.outcome, o.cause.as_str()))
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_listed_counts_as_somebodys() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    of_people(
        &sandbox,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "anna"}}),
    );
    of_people(&sandbox, "/apis/example.com/v1/namespaces/anna/things", &thing());
    sandbox
        .break_reads(&["/apis/example.com/v1/things", "/api/v1/namespaces/platform/persistentvolumeclaims"]);
    let report = well(taken_away(&sandbox).await.unwrap());
    let (outcome, why) = cause(&report, "CustomResourceDefinition things.example.com");
    assert!(outcome == Outcome::Kept && why.contains("it cannot be told which Thing"), "{why}");
    let (outcome, why) = cause(&report, "Namespace platform");
    assert!(outcome == Outcome::Kept && why.contains("PersistentVolumeClaim"), "{why}");
    let there = ObjectKey::namespaced("example.com", "Thing", "anna", "t");
    assert!(sandbox.object(&there).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_group_that_does_not_answer_ends_a_removal_before_it_begins() {
    let sandbox = sandbox();
    let with_thing =
        ("manifests/t.yaml", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: ours}\nspec: {}\n");
    brought(&sandbox, &tree("1.0.0", "", &[with_thing])).await;
    sandbox.take_all_writes();
    sandbox.break_reads(&["/apis/example.com/v1"]);
    let Err(RunError::Refused { why, .. }) = taken_away(&sandbox).await.unwrap() else {
        panic!("not refused")
    };
    assert!(why.contains("it cannot be told whether Thing platform/ours is there"), "{why}");
    assert!(sandbox.take_all_writes().is_empty());
    sandbox.break_reads(&[]);
    well(taken_away(&sandbox).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_people_make_while_a_removal_goes_on_stays() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let environment = sandbox.environment(1);
    let mut made = false;
    let report = uninstall(&environment, &options(&one()), &mut |event| {
        if !made && event.to_string().contains("only-in-1.0.0") {
            made = true;
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
            of_people(&sandbox, "/api/v1/namespaces/platform/configmaps", &map);
        }
    })
    .await;
    let report = well(report);
    assert!(made);
    let (outcome, why) = cause(&report, "Namespace platform");
    assert!(outcome == Outcome::Kept && why.contains("ConfigMap platform/late"), "{why}");
    assert!(sandbox.object(&key("ConfigMap", "late")).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_admins_own_map_beside_the_bookkeeping_stays() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scantling-registries"}});
    of_people(&sandbox, &format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps"), &map);
    let report = well(taken_away(&sandbox).await.unwrap());
    let (outcome, why) = cause(&report, "Namespace scantling-system");
    assert!(outcome == Outcome::Kept && why.contains("scantling-registries"), "{why}");
    let left: Vec<String> = sandbox.now(|world| {
        let of_system = |key: &&ObjectKey| key.namespace.as_deref() == Some(SYSTEM_NAMESPACE);
        let keys = world.objects().map(|(key, _)| key).filter(of_system);
        keys.filter(|key| matches!(key.kind.as_str(), "ConfigMap" | "Secret"))
            .map(|key| key.name.clone())
            .collect()
    });
    assert_eq!(left, ["kube-root-ca.crt", "scantling-registries"]);
}

#[tokio::test(start_paused = true)]
async fn a_removal_does_what_was_agreed_to_or_nothing() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let environment = sandbox.environment(1);
    let dry = Options { dry_run: true, ..options(&one()) };
    let shown = well(uninstall(&environment, &dry, &mut |_| {}).await).plan.unwrap().digest();
    brought(&sandbox, &two()).await;
    sandbox.take_all_writes();
    let agreed = Options { approved: Some(shown), ..options(&one()) };
    let Err(RunError::Refused { why, .. }) = uninstall(&environment, &agreed, &mut |_| {}).await else {
        panic!("not refused")
    };
    assert!(why.contains("the cluster has moved since the plan was shown"), "{why}");
    assert!(sandbox.take_all_writes().is_empty());
}

/// Sixteen at a time, by what was read at the beginning: an object is read again only if it has moved.
#[tokio::test(start_paused = true)]
async fn objects_are_deleted_by_what_was_read_of_them() {
    let maps: Vec<String> = (0..100)
        .map(|n| {
            format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: many-{n}}}\ndata: {{a: b}}\n")
        })
        .collect();
    let maps = maps.concat();
    let sandbox = sandbox();
    brought(&sandbox, &tree("1.0.0", "", &[("manifests/many.yaml", &maps)])).await;
    let environment = sandbox.environment(1);
    sandbox.take_reads();
    let mut touched = false;
    let report = uninstall(&environment, &options(&one()), &mut |event| {
        // Between reading and deleting, somebody edits one of them.
        if !touched && matches!(event.what, What::Planned { .. }) {
            touched = true;
            let (status, _) = sandbox.act(
                Method::PATCH,
                "/api/v1/namespaces/platform/configmaps/many-7?fieldManager=kubectl-edit",
                "application/merge-patch+json",
                &json!({"data": {"mine": "x"}}),
            );
            assert_eq!(status, 200);
        }
    })
    .await;
    let report = well(report);
    assert!(touched);
    assert_eq!(outcomes(&report)["ConfigMap platform/many-7"], Outcome::Pruned);
    let reads = sandbox.take_reads();
    let single: Vec<&String> = reads.iter().filter(|read| read.contains("/configmaps/many-")).collect();
    assert_eq!(single, ["/api/v1/namespaces/platform/configmaps/many-7"]);
    assert_eq!(sandbox.object(&ObjectKey::cluster("", "Namespace", "platform")), None);
}

#[tokio::test(start_paused = true)]
async fn no_value_of_a_secret_is_in_what_everybody_may_read() {
    let sandbox = sandbox();
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: literal}\nstringData: {token: a-value-of-a-secret}\n";
    brought(&sandbox, &tree("1.0.0", "", &[("manifests/literal.yaml", secret)])).await;
    let maps = sandbox.now(|world| {
        let maps = world.objects().filter(|(key, _)| key.kind == "ConfigMap");
        maps.map(|(_, map)| map.clone()).collect::<Vec<_>>()
    });
    let mut looked_at = 0;
    for map in &maps {
        for (name, value) in map.get("binaryData").and_then(Value::as_object).into_iter().flatten() {
            let text = unpacked(value.as_str().unwrap());
            assert!(!text.contains("a-value-of-a-secret"), "{} {name}", object::name(map));
            looked_at += 1;
        }
        assert!(!map.to_string().contains("a-value-of-a-secret"), "{}", object::name(map));
    }
    assert!(looked_at >= 2, "{looked_at}");
    // What is stored is whole: it can be gone back to.
    brought(&sandbox, &two()).await;
    well(common::platform::gone_back(&sandbox, None).await.unwrap());
    assert!(sandbox.object(&key("Secret", "literal")).is_some());
}

fn unpacked(base64: &str) -> String {
    use base64::Engine as _;
    use std::io::Read as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    text
}

/// What an answer that was lost has made is ours, although controllers have written to it since.
#[tokio::test(start_paused = true)]
async fn what_was_made_by_a_request_whose_answer_was_lost_is_ours() {
    let sandbox: Sandbox = sandbox();
    sandbox.lose_answer("/apis/apps/v1/namespaces/platform/deployments/a-controller");
    let report = brought(&sandbox, &one()).await;
    assert_eq!(outcomes(&report)["Deployment platform/a-controller"], Outcome::Created);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let report = well(taken_away(&sandbox).await.unwrap());
    assert!(report.outcomes.iter().all(|o| o.outcome == Outcome::Pruned), "{:#?}", report.outcomes);
}

/// The operator's status and controllers write between reading and writing: an object that is taken over is read again.
#[tokio::test(start_paused = true)]
async fn what_moves_while_it_is_adopted_is_decided_again() {
    let sandbox = sandbox();
    sandbox.now(|world| push(world.registry(), HOST, "x", "1", &[]));
    of_people(
        &sandbox,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}}),
    );
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"version": "1.0.0"},
    });
    of_people(&sandbox, "/api/v1/namespaces/platform/configmaps", &map);
    sandbox.before(Method::PATCH, "/configmaps/config", |sandbox| {
        sandbox.act(
            Method::PATCH,
            "/api/v1/namespaces/platform/configmaps/config?fieldManager=somebody",
            "application/merge-patch+json",
            &json!({"metadata": {"labels": {"touched": "yes"}}}),
        );
    });
    let report = brought(&sandbox, &one()).await;
    assert_eq!(outcomes(&report)["ConfigMap platform/config"], Outcome::Adopted);
    let map = sandbox.object(&key("ConfigMap", "config")).unwrap();
    assert_eq!(map["metadata"]["labels"]["touched"], json!("yes"));
}

/// What could not be read of a release would be taken for gone, and pruned.
#[tokio::test(start_paused = true)]
async fn a_release_with_errors_is_refused_before_anything_is_written() {
    for (broken, said) in [
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {nam: config2}\n", "name"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: 'quay.io/Team/x:1'}]}\n",
            "quay.io/Team/x:1",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: $(MLSERVER_IMAGE)}]}\n",
            "MLSERVER_IMAGE",
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {version: twice}\n", "config"),
    ] {
        let sandbox = sandbox();
        brought(&sandbox, &one()).await;
        sandbox.take_all_writes();
        let tree = tree("2.0.0", "1.0.0", &[("manifests/broken.yaml", broken)]);
        let (ended, _) =
            sandbox.upgrade(&common::platform::release(&tree), &options(&tree), 1).await.unwrap();
        let Err(RunError::Refused { why, report }) = ended else { panic!("{broken}: not refused") };
        assert!(why.contains("the release has errors") && why.contains(said), "{why}");
        assert!(!report.findings.is_empty());
        assert!(sandbox.take_all_writes().is_empty());
    }
}
