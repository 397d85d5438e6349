//! A release's life on a cluster: brought, gone back from, taken away; killed at any write.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{
    HOST, as_before, brought, comparable, gone_back, key, of_people, one, options, outcomes, release,
    sandbox, taken_away, tree, two, well,
};
use common::{Cut, Sandbox, push};
use scantling_api::{ObjectKey, object};
use scantling_plan::Outcome;
use scantling_run::{
    Action, Bundle, Ended, Options, SYSTEM_NAMESPACE, history, plan, rollback, status, uninstall,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_release_is_gone_back_from_by_what_the_cluster_keeps() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let before = comparable(&sandbox);
    let error = gone_back(&sandbox, None).await.unwrap().unwrap_err().to_string();
    assert!(error.contains("there is none before it"), "{error}");
    brought(&sandbox, &two()).await;

    let report = well(gone_back(&sandbox, None).await.unwrap());
    assert_eq!((report.version.as_str(), report.from.as_deref()), ("1.0.0", Some("2.0.0")));
    let outcomes = outcomes(&report);
    assert_eq!(outcomes["ConfigMap platform/only-in-2.0.0"], Outcome::Pruned);
    assert_eq!(outcomes["ConfigMap platform/only-in-1.0.0"], Outcome::Created);
    let definition = report.outcomes.iter().find(|o| o.key.name == "things.example.com").unwrap();
    assert_eq!(definition.outcome, Outcome::Kept);
    assert!(definition.cause.contains("not taken back"), "{}", definition.cause);
    as_before(before, &sandbox);

    let environment = sandbox.environment(1);
    let now = status(&environment).await.unwrap();
    assert_eq!(now.installed.unwrap().version, "1.0.0");
    assert_eq!(
        now.kept.into_iter().collect::<BTreeSet<_>>(),
        BTreeSet::from(["1.0.0".into(), "2.0.0".into()])
    );
    assert!(now.missing.is_empty() && now.unhealthy.is_empty() && now.open.is_none() && now.holder.is_none());
    let runs = history(&environment).await.unwrap();
    let told: Vec<_> = runs.iter().map(|r| (r.action, r.version.as_str(), r.outcome)).collect();
    assert_eq!(
        told,
        [
            (Action::Rollback, "1.0.0", Ended::Finished),
            (Action::Upgrade, "2.0.0", Ended::Finished),
            (Action::Upgrade, "1.0.0", Ended::Finished),
        ]
    );
    // Where it was gone back to has none before it, and a name is asked for.
    let error = gone_back(&sandbox, None).await.unwrap().unwrap_err().to_string();
    assert!(error.contains("2.0.0"), "{error}");
    well(gone_back(&sandbox, Some("2.0.0")).await.unwrap());
    sandbox.take_writes();
    assert_eq!(brought(&sandbox, &two()).await.writes, 0, "{:?}", sandbox.take_writes());
    let error = gone_back(&sandbox, Some("9.9.9")).await.unwrap().unwrap_err().to_string();
    assert!(error.contains("does not keep release 9.9.9"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn going_back_brings_the_digests_that_ran_wherever_their_tags_lead_by_then() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let before = comparable(&sandbox);
    brought(&sandbox, &two()).await;
    let moved = sandbox.now(|world| {
        push(world.registry(), HOST, "controller", "1.0.0", &[("controller", "1.0.0"), ("moved", "1")])
    });
    well(gone_back(&sandbox, None).await.unwrap());
    as_before(before, &sandbox);
    let written = sandbox.object(&key("Deployment", "a-controller")).unwrap().to_string();
    assert!(written.contains("@sha256:") && !written.contains(moved.hex()), "{written}");
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_stopped_is_gone_back_from() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let before = comparable(&sandbox);
    sandbox.take_all_writes();
    sandbox.cut(Some(Cut::After(9)));
    assert!(sandbox.upgrade(&release(&two()), &options(&two()), 1).await.is_none());
    sandbox.cut(None);
    let report = well(gone_back(&sandbox, None).await.unwrap());
    assert_eq!(report.version, "1.0.0");
    as_before(before, &sandbox);
}

#[tokio::test(start_paused = true)]
async fn going_back_is_continued_wherever_it_was_killed() {
    let whole = sandbox();
    brought(&whole, &one()).await;
    brought(&whole, &two()).await;
    whole.take_all_writes();
    well(gone_back(&whole, None).await.unwrap());
    let writes = whole.take_all_writes().len();
    let expected = comparable(&whole);
    assert!(writes > 8, "{writes}");
    for n in 1..writes {
        let sandbox = sandbox();
        brought(&sandbox, &one()).await;
        brought(&sandbox, &two()).await;
        sandbox.cut(Some(Cut::After(n)));
        assert!(gone_back(&sandbox, None).await.is_none(), "{n}");
        sandbox.cut(None);
        // Before the journal was written nobody can know; after it, the same command continues.
        well(gone_back(&sandbox, Some("1.0.0")).await.unwrap());
        assert_eq!(comparable(&sandbox), expected, "{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_ours_stays_wherever_an_uninstall_was_killed() {
    let whole = sandbox();
    // What every cluster has comes with its controllers.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let empty = comparable(&whole);
    brought(&whole, &one()).await;
    whole.take_all_writes();
    let report = well(taken_away(&whole).await.unwrap());
    assert!(report.outcomes.iter().all(|o| o.outcome == Outcome::Pruned), "{:#?}", report.outcomes);
    let writes = whole.take_all_writes().len();
    let left = |sandbox: &Sandbox| {
        let left: Vec<ObjectKey> =
            comparable(sandbox).into_keys().filter(|key| !empty.contains_key(key)).collect();
        let system = ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE);
        assert!(left.is_empty() && sandbox.object(&system).is_none(), "{left:?}");
    };
    left(&whole);
    for n in 1..writes {
        let sandbox = sandbox();
        brought(&sandbox, &one()).await;
        sandbox.cut(Some(Cut::After(n)));
        assert!(taken_away(&sandbox).await.is_none(), "{n}");
        sandbox.cut(None);
        well(taken_away(&sandbox).await.unwrap());
        left(&sandbox);
    }
    // Nothing there: nothing to do.
    let again = well(taken_away(&whole).await.unwrap());
    assert_eq!(again.writes, 0);
    brought(&whole, &one()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_peoples_stays_with_its_cause() {
    let sandbox = sandbox();
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    of_people(&sandbox, "/api/v1/namespaces", &namespace("anna"));
    brought(&sandbox, &tree("1.0.0", "", &[("manifests/n.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: anna}\ndata: {version: '1.0.0'}\n")])).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    of_people(&sandbox, "/api/v1/namespaces/platform/persistentvolumeclaims", &claim);
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}});
    of_people(&sandbox, "/apis/example.com/v1/namespaces/anna/things", &thing);
    let report = well(taken_away(&sandbox).await.unwrap());
    let kept: BTreeMap<String, &str> = report
        .outcomes
        .iter()
        .filter(|o| o.outcome == Outcome::Kept)
        .map(|o| (o.key.to_string(), o.cause.as_str()))
        .collect();
    assert_eq!(
        kept,
        BTreeMap::from([
            (
                "CustomResourceDefinition things.example.com".to_owned(),
                "objects of this kind are other people's: Thing anna/t"
            ),
            ("Namespace platform".to_owned(), "it holds what stays: PersistentVolumeClaim platform/data"),
        ])
    );
    assert!(sandbox.object(&key("PersistentVolumeClaim", "data")).is_some());
    assert!(sandbox.object(&ObjectKey::cluster("", "Namespace", "anna")).is_some());
    assert_eq!(sandbox.object(&key("ConfigMap", "config")), None);
    assert_eq!(sandbox.object(&ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE)), None);
    // It comes back upon what stayed.
    brought(&sandbox, &one()).await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_writes_nothing_and_says_what_the_run_does() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    sandbox.take_writes();
    let environment = sandbox.environment(1);
    let planned = well(plan(&environment, &release(&two()), &options(&two()), &mut |_| {}).await);
    assert!(sandbox.take_all_writes().is_empty());
    let counts = planned.plan.unwrap().counts();
    let done = brought(&sandbox, &two()).await;
    assert_eq!(done.plan.unwrap().counts(), counts);
    let dry = Options { dry_run: true, ..options(&one()) };
    sandbox.take_writes();
    well(rollback(&environment, None, &dry, &mut |_| {}).await);
    let removal = well(uninstall(&environment, &dry, &mut |_| {}).await);
    assert!(removal.plan.unwrap().counts().pruned > 5);
    assert!(sandbox.take_all_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_bundles_are_kept() {
    let sandbox = sandbox();
    for tree in [one(), two(), tree("3.0.0", "2.0.0", &[])] {
        brought(&sandbox, &tree).await;
    }
    let environment = sandbox.environment(1);
    let kept: BTreeSet<String> = status(&environment).await.unwrap().kept.into_iter().collect();
    assert_eq!(kept, BTreeSet::from(["2.0.0".to_owned(), "3.0.0".to_owned()]));
    assert_eq!(Bundle::load(&environment, "2.0.0").await.unwrap().files, two());
    let parts = sandbox.now(|w| {
        let maps =
            w.objects().filter(|(k, _)| k.kind == "Secret" && k.name.starts_with("scantling-release-"));
        maps.filter(|(_, o)| object::label(o, "scantling.dev/part-of").is_some()).count()
    });
    assert_eq!(parts, 2);
}
