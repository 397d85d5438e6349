//! What is told of a platform that somebody has changed, and of one whose state is gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::Duration;

use common::Sandbox;
use common::platform::{brought, key, of_people, one, outcomes, sandbox, taken_away, tree, two, well};
use http::Method;
use scantling_api::ObjectKey;
use scantling_plan::Outcome;
use scantling_run::{Edited, RunError, SYSTEM_NAMESPACE, Status, status};
use serde_json::{Value, json};

/// What the product guards and what people may have their way with, by a rule of the release.
const GUARDS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: nothing-answers}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: knobs}
data: {size: small}
---
apiVersion: v1
kind: Secret
metadata: {name: literal}
stringData: {token: declared}
";

fn guarded() -> scantling_release::Tree {
    let mut tree = tree("1.0.0", "", &[("manifests/guards.yaml", GUARDS)]);
    let file = tree.get_mut("release.yaml").unwrap();
    file.extend(b"ownership:\n- {kind: ConfigMap, name: knobs, field: .data.size, rule: keep}\n");
    tree
}

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/viewer";
const POLICY: &str = "/apis/networking.k8s.io/v1/namespaces/platform/networkpolicies/nothing-answers";

async fn told(sandbox: &Sandbox) -> Status {
    status(&sandbox.environment(1)).await.unwrap()
}

fn edit(sandbox: &Sandbox, path: &str, change: &Value) {
    let path = format!("{path}?fieldManager=kubectl-edit");
    let (code, answer) = sandbox.act(Method::PATCH, &path, "application/merge-patch+json", change);
    assert_eq!(code, 200, "{answer}");
}

fn lines(edited: &[Edited]) -> Vec<String> {
    let lines = edited
        .iter()
        .flat_map(|it| it.fields.iter().map(|f| format!("{} {} ({})", it.key, f.field, f.owners.join(", "))));
    lines.collect()
}

#[tokio::test(start_paused = true)]
async fn what_somebody_has_changed_is_told_with_field_and_owner_and_nothing_is_written() {
    let sandbox = sandbox();
    brought(&sandbox, &guarded()).await;
    let whole = told(&sandbox).await;
    assert_eq!((whole.uncompared, lines(&whole.edited), lines(&whole.left)), (None, vec![], vec![]));

    edit(&sandbox, ROLE, &json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}));
    edit(&sandbox, POLICY, &json!({"spec": {"ingress": [{}]}}));
    edit(&sandbox, POLICY, &json!({"spec": {"policyTypes": ["Egress"]}}));
    edit(&sandbox, "/api/v1/namespaces/platform/configmaps/config", &json!({"data": {"version": null}}));
    edit(&sandbox, "/api/v1/namespaces/platform/configmaps/knobs", &json!({"data": {"size": "large"}}));
    edit(&sandbox, "/api/v1/namespaces/platform/secrets/literal", &json!({"data": {"token": "bWluZQ=="}}));
    let deployment = "/apis/apps/v1/namespaces/platform/deployments/a-controller";
    edit(&sandbox, deployment, &json!({"metadata": {"labels": {"mine": "x"}}}));
    sandbox.take_all_writes();
    sandbox.take_reads();
    let found = told(&sandbox).await;
    assert_eq!(
        lines(&found.edited),
        [
            "ConfigMap platform/config .data.version ()",
            "Secret platform/literal .data.token (kubectl-edit)",
            "NetworkPolicy platform/nothing-answers .spec.policyTypes (kubectl-edit)",
            "ClusterRole viewer .rules (kubectl-edit)",
        ]
    );
    // What the release leaves to others, by a rule or because it says nothing of it.
    assert_eq!(
        lines(&found.left),
        [
            "ConfigMap platform/knobs .data.size (kubectl-edit)",
            "Deployment platform/a-controller .metadata.labels.mine (kubectl-edit)",
            "NetworkPolicy platform/nothing-answers .spec.ingress (kubectl-edit)",
        ]
    );
    assert!(sandbox.take_all_writes().is_empty());
    assert!(!sandbox.take_reads().iter().any(|read| read.contains("dryRun")));
}

/// Controllers and the server's own words are nobody's edits, also after an upgrade and going back.
#[tokio::test(start_paused = true)]
async fn a_platform_that_nobody_has_touched_is_as_the_release_wants_it() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    brought(&sandbox, &two()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let found = told(&sandbox).await;
    assert_eq!((found.uncompared, lines(&found.edited), lines(&found.left)), (None, vec![], vec![]));
    well(common::platform::gone_back(&sandbox, None).await.unwrap());
    let found = told(&sandbox).await;
    assert_eq!((found.uncompared, lines(&found.edited), lines(&found.left)), (None, vec![], vec![]));
}

/// Who may not read the stored release is told that nobody has looked, not that all is well.
#[tokio::test(start_paused = true)]
async fn what_could_not_be_compared_is_told() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let secrets = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets?");
    sandbox.fail_reads(&[(&secrets, 403)]);
    let found = told(&sandbox).await;
    assert!(found.uncompared.is_some(), "{found:?}");
    assert!(found.missing.is_empty() && found.unhealthy.is_empty());
}

fn forget(sandbox: &Sandbox, path: &str) {
    let (code, answer) = sandbox.act(Method::DELETE, path, "application/json", &json!({}));
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn without_a_state_nothing_is_taken_away_and_an_upgrade_heals() {
    for everything in [false, true] {
        let sandbox = sandbox();
        // What was there before stays what it was.
        let mine = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"version": "1.0.0"},
        });
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}});
        of_people(&sandbox, "/api/v1/namespaces", &namespace);
        of_people(&sandbox, "/api/v1/namespaces/platform/configmaps", &mine);
        tokio::time::sleep(Duration::from_secs(5)).await;
        brought(&sandbox, &one()).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        if everything {
            forget(&sandbox, &format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}"));
            tokio::time::sleep(Duration::from_secs(5)).await;
        } else {
            forget(&sandbox, &format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/scantling-state"));
        }
        let found = told(&sandbox).await;
        assert!(found.installed.is_none() && found.lost.is_some(), "{found:?}");
        sandbox.take_all_writes();
        let refused = taken_away(&sandbox).await.unwrap().unwrap_err();
        assert!(matches!(&refused, RunError::Refused { why, .. } if why.contains("the state is gone")));
        assert!(sandbox.take_all_writes().is_empty());

        let after = brought(&sandbox, &one()).await;
        assert!(after.outcomes.iter().all(|o| o.outcome == Outcome::Unchanged), "{:#?}", after.outcomes);
        let found = told(&sandbox).await;
        assert!(found.lost.is_none() && found.edited.is_empty() && found.missing.is_empty());
        let report = well(taken_away(&sandbox).await.unwrap());
        let outcomes = outcomes(&report);
        assert_eq!(outcomes["Deployment platform/a-controller"], Outcome::Pruned, "{outcomes:#?}");
        assert_eq!(outcomes["ConfigMap platform/config"], Outcome::Kept);
        assert!(sandbox.object(&key("ConfigMap", "config")).is_some());
        assert!(sandbox.object(&ObjectKey::cluster("", "Namespace", "platform")).is_some());
        assert!(sandbox.object(&key("Deployment", "a-controller")).is_none());
        // What it has left is no reason to refuse the next one.
        assert!(told(&sandbox).await.lost.is_none());
        well(taken_away(&sandbox).await.unwrap());
    }
}
