//! What others do while a run is under way: the run says what it did about each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Sandbox;
use common::platform::{brought, key, one, options, release, sandbox, two, well};
use http::Method;
use scantling_endpoint::{Keyring, Mirrors};
use scantling_registry::{RegistryClient, transport_from_fn};
use scantling_registry_server::{Access, Account, Rights};
use scantling_release::{Tree, Wave};
use scantling_run::{Doing, Meanwhile, RunError, RunReport, Stage, What, read_registry_rules, upgrade};
use serde_json::{Value, json};

const MERGE: &str = "application/merge-patch+json";
const CONFIG: &str = "/api/v1/namespaces/platform/configmaps/config?fieldManager=kubectl-edit";

/// The second release, with a rule for the config map.
fn two_with(rule: Option<&str>) -> Tree {
    let mut tree = two();
    if let Some(rule) = rule {
        let file = tree.get_mut("release.yaml").unwrap();
        file.extend(
            format!("ownership:\n- {{kind: ConfigMap, name: config, field: .data, rule: {rule}}}\n").bytes(),
        );
    }
    tree
}

/// Upgrades to a release while somebody acts once, when an event comes.
async fn disturbed(
    sandbox: &Sandbox,
    tree: &Tree,
    when: impl Fn(&What) -> bool,
    act: impl Fn(&Sandbox),
) -> Result<RunReport, RunError> {
    let environment = sandbox.environment(1);
    let mut done = false;
    let ended = upgrade(&environment, &release(tree), &options(tree), &mut |event| {
        if !done && when(&event.what) {
            done = true;
            act(sandbox);
        }
    })
    .await;
    assert!(done, "nobody acted");
    ended
}

/// When everything but workloads is written.
fn before_workloads(what: &What) -> bool {
    matches!(what, What::Wave { wave: Wave::Workloads, .. })
}

fn edit(sandbox: &Sandbox, patch: &Value) {
    let (status, answer) = sandbox.act(Method::PATCH, CONFIG, MERGE, patch);
    assert_eq!(status, 200, "{answer}");
}

fn only(report: &RunReport) -> &Meanwhile {
    let [only] = report.meanwhile.as_slice() else { panic!("{:#?}", report.meanwhile) };
    only
}

#[tokio::test(start_paused = true)]
async fn what_somebody_edits_after_it_was_written_follows_the_rules_of_the_release() {
    for (rule, patch, expected, did) in [
        (
            Some("take"),
            json!({"data": {"version": "mine"}}),
            "2.0.0",
            "written again, for the release's rule is `take`",
        ),
        (
            Some("keep"),
            json!({"data": {"version": "mine"}}),
            "mine",
            "kept, for the release's rule is `keep`",
        ),
        (None, json!({"data": {"version": "mine"}}), "mine", "the run stopped"),
        // What nobody has a rule for and the release does not have is theirs.
        (None, json!({"data": {"theirs": "mine"}}), "2.0.0", ""),
    ] {
        let sandbox = sandbox();
        brought(&sandbox, &one()).await;
        let ended =
            disturbed(&sandbox, &two_with(rule), before_workloads, |sandbox| edit(sandbox, &patch)).await;
        let data = &sandbox.object(&key("ConfigMap", "config")).unwrap()["data"];
        assert_eq!(data["version"], expected, "{rule:?}");
        if did == "the run stopped" {
            let error = ended.unwrap_err();
            assert!(
                matches!(
                    &error,
                    RunError::Stopped {
                        stage: Stage::Prune | Stage::Apply | Stage::Catalogue | Stage::Verify,
                        ..
                    }
                ),
                "{error}"
            );
            let report = error.report();
            assert!(report.findings.iter().any(|f| f.code.as_str() == "SCN0801"), "{:#?}", report.findings);
            assert!(only(report).what.contains("kubectl-edit"), "{:#?}", report.meanwhile);
            // What somebody decides ends it: the same command continues.
            edit(&sandbox, &json!({"data": {"version": "2.0.0"}}));
            brought(&sandbox, &two()).await;
            continue;
        }
        let report = well(ended);
        if did.is_empty() {
            assert_eq!(report.meanwhile, []);
            continue;
        }
        let found = only(&report);
        assert_eq!((found.doing, &found.object), (Doing::Edit, &key("ConfigMap", "config")));
        assert!(found.what.contains(".data.version was changed by kubectl-edit"), "{found:?}");
        assert!(found.did.contains(did), "{found:?}");
        // It is at rest: the next run has nothing to do.
        assert_eq!(brought(&sandbox, &two_with(rule)).await.writes, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_deletes_after_it_was_written_is_made_again() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let ended = disturbed(&sandbox, &two(), before_workloads, |sandbox| {
        let (status, answer) = sandbox.act(Method::DELETE, CONFIG, "application/json", &json!({}));
        assert_eq!(status, 200, "{answer}");
    })
    .await;
    let report = well(ended);
    assert_eq!(
        (only(&report).what.as_str(), only(&report).did.as_str()),
        ("it was deleted", "it was created again")
    );
    assert_eq!(sandbox.object(&key("ConfigMap", "config")).unwrap()["data"]["version"], "2.0.0");
}

/// Removes the pod that brings images to the node, as a drain does.
fn evict_prepull(sandbox: &Sandbox) {
    let pods = sandbox.now(|world| {
        let pods =
            world.objects().filter(|(key, _)| key.kind == "Pod" && key.name.starts_with("scantling-prepull"));
        pods.map(|(key, _)| key.name.clone()).collect::<Vec<_>>()
    });
    assert_eq!(pods.len(), 1, "{pods:?}");
    let path = format!("/api/v1/namespaces/platform/pods/{}?gracePeriodSeconds=0", pods[0]);
    let (status, answer) = sandbox.act(Method::DELETE, &path, "application/json", &json!({}));
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_run_that_is_removed_comes_again_unless_its_node_is_drained() {
    // The event comes before the pod is made: the removal follows from a task beside the run.
    for drained in [false, true] {
        let sandbox = sandbox();
        brought(&sandbox, &one()).await;
        let environment = sandbox.environment(1);
        let (release, options) = (release(&two()), options(&two()));
        let mut sink = |_| ();
        let run = Box::pin(upgrade(&environment, &release, &options, &mut sink));
        let drain = async {
            loop {
                let there = sandbox.now(|world| {
                    world
                        .objects()
                        .any(|(key, _)| key.kind == "Pod" && key.name.starts_with("scantling-prepull"))
                });
                if there {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            if drained {
                let cordon = json!({"spec": {"unschedulable": true}});
                sandbox.act(Method::PATCH, "/api/v1/nodes/node-1", MERGE, &cordon);
            }
            evict_prepull(&sandbox);
            if drained {
                // The work on the node is done some time later.
                tokio::time::sleep(std::time::Duration::from_mins(2)).await;
                let open = json!({"spec": {"unschedulable": false}});
                sandbox.act(Method::PATCH, "/api/v1/nodes/node-1", MERGE, &open);
            }
        };
        let (ended, ()) = tokio::join!(run, drain);
        if drained {
            // It was the only node.
            let error = ended.unwrap_err();
            assert!(error.to_string().contains("no node could pull"), "{error}");
            let report = error.report();
            assert_eq!(only(report).doing, Doing::Eviction);
            assert!(only(report).did.contains("cordoned"), "{:#?}", report.meanwhile);
            assert!(report.findings.iter().any(|f| f.code.as_str() == "SCN0804"), "{:#?}", report.findings);
            brought(&sandbox, &two()).await;
        } else {
            let report = well(ended);
            assert_eq!(only(&report).doing, Doing::Eviction);
            assert!(only(&report).did.contains("made again"), "{:#?}", report.meanwhile);
            assert_eq!(report.prepulled["node-1"].len(), 1);
        }
    }
}

/// A pull secret with a password, and the registry that takes only it.
fn rotate(sandbox: &Sandbox, password: &str) {
    let config =
        json!({"auths": {common::platform::HOST: {"username": "u", "password": password}}}).to_string();
    let secret = json!({"stringData": {".dockerconfigjson": config}});
    let path = "/api/v1/namespaces/platform/secrets/pull";
    let (status, answer) = sandbox.act(Method::PATCH, path, MERGE, &secret);
    assert_eq!(status, 200, "{answer}");
    let account = Account { password: password.to_owned(), rights: Rights::default() };
    let accounts = [("u".to_owned(), account)].into_iter().collect();
    sandbox.now(|world| world.registry().access(common::platform::HOST, "", Access::Basic { accounts }));
}

#[tokio::test(start_paused = true)]
async fn a_pull_secret_that_is_rotated_is_used_as_it_is_then() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "{\"auths\": {}}"},
    });
    sandbox.act(Method::POST, "/api/v1/namespaces/platform/secrets", "application/json", &secret);
    let account = "/api/v1/namespaces/platform/serviceaccounts/default";
    let (status, answer) =
        sandbox.act(Method::PATCH, account, MERGE, &json!({"imagePullSecrets": [{"name": "pull"}]}));
    assert_eq!(status, 200, "{answer}");
    rotate(&sandbox, "old-pw-4711");

    let mut environment = sandbox.environment(1);
    let (mut mirrors, mut keyring) = (Mirrors::new(), Keyring::new());
    read_registry_rules(&environment.cluster, Some("platform"), &mut mirrors, &mut keyring).await.unwrap();
    let world = sandbox.clone();
    let transport =
        transport_from_fn(move |host, request| Ok(world.now(|w| w.registry().handle(host, request))));
    environment.registry =
        RegistryClient::new(transport, mirrors, keyring, scantling_registry::Options::default());
    let mut done = false;
    let (tree, events) = (two(), std::cell::RefCell::new(Vec::new()));
    let ended = upgrade(&environment, &release(&tree), &options(&tree), &mut |event| {
        events.borrow_mut().push(event.to_string());
        if !done && matches!(event.what, What::Planned { .. }) {
            done = true;
            rotate(&sandbox, "new-pw-4712");
        }
    })
    .await;
    let report = well(ended);
    let found = only(&report);
    assert_eq!((found.doing, &found.object), (Doing::PullSecret, &key("Secret", "pull")));
    assert!(found.did.contains("1 of 1 images can be pulled with it"), "{found:?}");
    let told = format!("{report:?} {}", events.borrow().join("\n"));
    assert!(!told.contains("-pw-471"), "passwords are told");
}
