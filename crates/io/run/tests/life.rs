//! A release's life on a cluster: brought, gone back from, taken away; killed at any write.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{
    HOST, as_before, brought, comparable, gone_back, key, of_people, one, options, outcomes, release,
    sandbox, taken_away, tree, two, well,
};
use common::{Cut, Sandbox, push};
use http::Method;
use scantling_api::{ObjectKey, object};
use scantling_plan::Outcome;
use scantling_run::{
    Action, Bundle, Ended, Options, RunEvent, RunReport, SYSTEM_NAMESPACE, What, history, plan, rollback,
    status, uninstall,
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

#[tokio::test(start_paused = true)]
async fn the_namespace_of_the_product_is_created_by_the_run_that_keeps_its_books_there() {
    let own = ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE);
    for labels in ["{a: b}", "{}"] {
        let file = format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: scantling-system, labels: {labels}}}\n"
        );
        let tree = tree("1.0.0", "", &[("manifests/ns.yaml", &file)]);
        // Killed at a write, from the one that creates it on: whoever continues knows whose it is.
        for cut in [None, Some(1), Some(2), Some(3), Some(4)] {
            let sandbox = sandbox();
            if let Some(n) = cut {
                sandbox.cut(Some(Cut::After(n)));
                assert!(sandbox.upgrade(&release(&tree), &options(&tree), 1).await.is_none());
                sandbox.cut(None);
            }
            let report = brought(&sandbox, &tree).await;
            let ended = report.outcomes.iter().find(|o| o.key == own).unwrap();
            assert!(ended.outcome != Outcome::Adopted, "{labels} {cut:?}: {ended:?}");
            assert!(!ended.cause.contains("somebody"), "{labels} {cut:?}: {ended:?}");
            assert_eq!(cut.is_none(), ended.outcome == Outcome::Created, "{labels} {cut:?}: {ended:?}");
            well(taken_away(&sandbox).await.unwrap());
            assert_eq!(sandbox.object(&own), None, "{labels} {cut:?}");
        }
    }
}

/// A platform with a kind and a namespace of its own, nobody's things in them yet.
async fn installed() -> Sandbox {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    sandbox.take_all_writes();
    sandbox
}

fn kept(report: &RunReport) -> BTreeMap<String, &str> {
    let kept = report.outcomes.iter().filter(|o| o.outcome == Outcome::Kept);
    kept.map(|o| (o.key.to_string(), o.cause.as_str())).collect()
}

/// A thing of Anna's, in a namespace that is hers.
fn thing(sandbox: &Sandbox) -> ObjectKey {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "anna"}});
    of_people(sandbox, "/api/v1/namespaces", &namespace);
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}});
    of_people(sandbox, "/apis/example.com/v1/namespaces/anna/things", &thing);
    ObjectKey::namespaced("example.com", "Thing", "anna", "t")
}

fn claim(sandbox: &Sandbox) -> ObjectKey {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    of_people(sandbox, "/api/v1/namespaces/platform/persistentvolumeclaims", &claim);
    key("PersistentVolumeClaim", "data")
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_listed_is_not_taken_for_nothing() {
    for status in [500, 403, 429] {
        let sandbox = installed().await;
        let (thing, claim) = (thing(&sandbox), claim(&sandbox));
        sandbox.fail_reads(&[("/things?", status), ("/persistentvolumeclaims?", status)]);
        let report = well(taken_away(&sandbox).await.unwrap());
        let kept = kept(&report);
        for name in ["CustomResourceDefinition things.example.com", "Namespace platform"] {
            assert!(kept[name].starts_with("it cannot be told whether others have"), "{status}: {kept:?}");
        }
        assert!(sandbox.object(&thing).is_some() && sandbox.object(&claim).is_some(), "{status}");
        // Once it answers, it says what they hold.
        sandbox.fail_reads(&[]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_discovered_is_not_taken_for_nothing() {
    // An API of others that is away: what the platform's namespace has of it is not known.
    let sandbox = installed().await;
    let thing = thing(&sandbox);
    sandbox.fail_reads(&[("/apis/policy/v1", 503)]);
    let report = well(taken_away(&sandbox).await.unwrap());
    let kept = kept(&report);
    assert!(kept["Namespace platform"].contains("discover /apis/policy/v1"), "{kept:?}");
    assert!(kept["CustomResourceDefinition things.example.com"].contains("Thing anna/t"), "{kept:?}");
    assert!(sandbox.object(&thing).is_some());

    // An API of the release that is away: its objects would be forgotten.
    let sandbox = installed().await;
    sandbox.fail_reads(&[("/apis/apps/v1", 503)]);
    let error = taken_away(&sandbox).await.unwrap().unwrap_err().to_string();
    assert!(error.contains("cannot be told whether Deployment platform/a-controller is there"), "{error}");
    let (ended, _) = sandbox.upgrade(&release(&two()), &options(&two()), 1).await.unwrap();
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("refused before anything was written: it cannot be told"), "{error}");
    assert_eq!(sandbox.take_all_writes(), Vec::<String>::new());
    sandbox.fail_reads(&[]);
    well(taken_away(&sandbox).await.unwrap());
    assert_eq!(sandbox.object(&key("Deployment", "a-controller")), None);

    // A kind of which no version is served at the moment has its objects all the same.
    let sandbox = installed().await;
    let thing = self::thing(&sandbox);
    sandbox.fail_reads(&[("/apis/example.com/v1", 404)]);
    let report = well(taken_away(&sandbox).await.unwrap());
    let kept = self::kept(&report);
    assert!(kept["CustomResourceDefinition things.example.com"].contains("does not serve"), "{kept:?}");
    assert!(sandbox.object(&thing).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_an_owner_elsewhere_has_does_not_go_along() {
    let sandbox = installed().await;
    let node = sandbox.object(&ObjectKey::cluster("", "Node", "node-1")).unwrap();
    let owned = |name: &str, api_version: &str, kind: &str, owner: &str, uid: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": api_version, "kind": kind, "name": owner, "uid": uid},
        ]}})
    };
    let maps = "/api/v1/namespaces/platform/configmaps";
    of_people(&sandbox, maps, &owned("of-node", "v1", "Node", "node-1", object::uid(&node)));
    of_people(&sandbox, maps, &owned("of-unknown", "far.example.com/v1", "Far", "f", "1-2-3"));
    let report = well(taken_away(&sandbox).await.unwrap());
    let kept = kept(&report);
    assert_eq!(
        kept["Namespace platform"],
        "it holds what stays: ConfigMap platform/of-node, ConfigMap platform/of-unknown"
    );
    assert!(sandbox.object(&key("ConfigMap", "of-node")).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_a_platform_is_taken_away_stays() {
    let sandbox = installed().await;
    let environment = sandbox.environment(1);
    let mut made = None;
    let mut sink = |event: RunEvent| {
        if matches!(event.what, What::Planned { .. }) {
            made = Some((thing(&sandbox), claim(&sandbox)));
        }
    };
    let report = well(uninstall(&environment, &options(&one()), &mut sink).await);
    let (thing, claim) = made.unwrap();
    let kept = kept(&report);
    assert!(kept["CustomResourceDefinition things.example.com"].contains("Thing anna/t"), "{kept:?}");
    assert!(kept["Namespace platform"].contains("PersistentVolumeClaim platform/data"), "{kept:?}");
    assert!(sandbox.object(&thing).is_some() && sandbox.object(&claim).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_an_admin_keeps_beside_the_books_stays() {
    let sandbox = installed().await;
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    of_people(&sandbox, "/api/v1/namespaces/scantling-system/configmaps", &map("scantling-registries"));
    let report = well(taken_away(&sandbox).await.unwrap());
    assert_eq!(
        kept(&report)["Namespace scantling-system"],
        "others have something in it: ConfigMap scantling-system/scantling-registries"
    );
    let left: Vec<String> = sandbox.now(|w| {
        let own = w.objects().filter(|(k, _)| k.namespace.as_deref() == Some(SYSTEM_NAMESPACE));
        own.map(|(k, _)| k.to_string()).collect()
    });
    let left: Vec<&str> = left
        .iter()
        .map(String::as_str)
        .filter(|k| !k.contains("root-ca") && !k.contains(" scantling-system/default"))
        .collect();
    assert_eq!(left, ["ConfigMap scantling-system/scantling-registries"]);
    // Nothing of ours is left, so that there is nothing to write.
    sandbox.take_all_writes();
    assert_eq!(well(taken_away(&sandbox).await.unwrap()).writes, 0);
    assert_eq!(sandbox.take_all_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn another_removal_than_the_approved_one_is_refused() {
    let sandbox = installed().await;
    let thing = thing(&sandbox);
    let environment = sandbox.environment(1);
    let planned = async || {
        let dry = Options { dry_run: true, ..options(&one()) };
        well(uninstall(&environment, &dry, &mut |_| {}).await).plan.unwrap().digest()
    };
    let approved = planned().await;
    assert_eq!(approved, planned().await, "the same plan twice");
    // The thing that held the definition goes, which would go with it now.
    let path = "/apis/example.com/v1/namespaces/anna/things/t";
    sandbox.act(Method::DELETE, path, "application/json", &serde_json::Value::Null);
    assert_eq!(sandbox.object(&thing), None);
    let agreed = Options { approved: Some(approved), ..options(&one()) };
    let error = uninstall(&environment, &agreed, &mut |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("moved since the plan was shown"), "{error}");
    assert_eq!(sandbox.take_all_writes(), Vec::<String>::new());
    let agreed = Options { approved: Some(planned().await), ..options(&one()) };
    well(uninstall(&environment, &agreed, &mut |_| {}).await);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_held_until_the_namespace_goes() {
    let sandbox = installed().await;
    well(taken_away(&sandbox).await.unwrap());
    let writes = sandbox.take_all_writes();
    let last = writes.iter().rposition(|w| w == "DELETE /api/v1/namespaces/scantling-system").unwrap();
    let released = writes.iter().rposition(|w| w.contains("/leases/")).unwrap();
    assert!(released > last, "{writes:#?}");
}
