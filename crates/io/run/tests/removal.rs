//! What is written and deleted while others write as well, and what is kept of a release.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{
    HOST, brought, key, of_people, one, options, outcomes, sandbox, taken_away, tree, two, well,
};
use common::{Sandbox, push};
use http::Method;
use scantling_api::{ObjectKey, object};
use scantling_plan::Outcome;
use scantling_run::{What, uninstall};
use serde_json::{Value, json};
use std::time::Duration;

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
