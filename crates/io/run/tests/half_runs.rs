//! Runs over runs that did not end: what those have made of fields is no person's edit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{
    HOST, brought, comparable, gone_back, key, of_people, one, options, release, two, well,
};
use common::{Cut, Sandbox, push, world};
use http::Method;
use scantling_api::ObjectKey;
use scantling_plan::Outcome;
use scantling_registry_server::RegistryServer;
use scantling_release::Tree;
use scantling_run::Books;
use scantling_sandbox::Flavour;
use serde_json::{Value, json};

/// A release whose objects have fields that the other one does not have, in every way: keys under each rule, items of lists,
/// fields within a list that is one value, marks of the catalogue.
fn with_more(mut tree: Tree, own: &str, toleration: &str, marked: &str, other: &str) -> Tree {
    let config = |name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, annotations: {{{own}: 'yes'}}}}\ndata: {{both: of {own}, {own}: 'yes'}}\n"
        )
    };
    for name in ["plain", "left", "taken"] {
        tree.insert(format!("manifests/{name}.yaml"), config(name).into_bytes());
    }
    let workload = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: more}}\nspec:\n  selector: {{matchLabels: {{app: more}}}}\n  template:\n    metadata: {{labels: {{app: more}}}}\n    spec:\n      tolerations: [{toleration}]\n      containers:\n      - name: main\n        image: '{HOST}/controller:1.0.0'\n        env: [{{name: BOTH, value: {own}}}, {{name: {own}, value: a}}]\n"
    );
    tree.insert("manifests/more.yaml".to_owned(), workload.into_bytes());
    let release = tree.get_mut("release.yaml").unwrap();
    release.extend(
        format!(
            "ownership:\n- {{kind: ConfigMap, name: left, field: .data, rule: keep}}\n- {{kind: ConfigMap, name: left, field: .metadata, rule: keep}}\n- {{kind: ConfigMap, name: taken, field: .data, rule: take}}\n\
             catalogue:\n  images:\n  - name: lab\n    title: Lab\n    about: numbers\n    tags:\n    - {{name: \"{marked}\", image: \"{HOST}/lab:{marked}\", shows: [numpy], recommended: true}}\n    - {{name: \"{other}\", image: \"{HOST}/lab:{other}\", shows: [numpy]}}\n"
        )
        .bytes(),
    );
    tree
}

fn older() -> Tree {
    with_more(one(), "old", "{key: a, operator: Exists}", "a", "b")
}

fn newer() -> Tree {
    with_more(two(), "new", "{key: a, operator: Exists, effect: NoSchedule}", "b", "a")
}

fn sandbox() -> Sandbox {
    let mut registry = RegistryServer::new();
    for version in ["1.0.0", "2.0.0"] {
        push(&mut registry, HOST, "controller", version, &[("controller", version)]);
    }
    for tag in ["a", "b"] {
        push(&mut registry, HOST, "lab", tag, &[("numpy", tag)]);
    }
    Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry)
}

/// Whether the cluster knows of a run that has not ended.
async fn is_open(sandbox: &Sandbox) -> bool {
    Books::of(&sandbox.environment(1).cluster).await.unwrap().open.is_some()
}

fn nobody_is_blamed(report: &scantling_run::RunReport, n: usize) {
    for outcome in &report.outcomes {
        assert!(outcome.kept.is_empty() && outcome.outcome != Outcome::Conflict, "{n}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollback_that_was_killed_at_any_write_is_upgraded_from_as_if_it_had_never_begun() {
    let whole = sandbox();
    brought(&whole, &older()).await;
    brought(&whole, &newer()).await;
    let expected = comparable(&whole);
    whole.take_all_writes();
    well(gone_back(&whole, None).await.unwrap());
    let writes = whole.take_all_writes().len();
    assert!(writes > 15, "{writes}");
    for n in 1..=writes {
        let sandbox = sandbox();
        brought(&sandbox, &older()).await;
        brought(&sandbox, &newer()).await;
        sandbox.cut(Some(Cut::After(n)));
        assert!(gone_back(&sandbox, None).await.is_none(), "{n}");
        sandbox.cut(None);
        let report = brought(&sandbox, &newer()).await;
        nobody_is_blamed(&report, n);
        assert_eq!(comparable(&sandbox), expected, "{n}");
        assert!(!is_open(&sandbox).await, "{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_was_killed_at_any_write_is_gone_back_from_and_not_upgraded_over() {
    let whole = sandbox();
    brought(&whole, &older()).await;
    let before = comparable(&whole);
    let definition = before.keys().find(|key| key.name == "things.example.com").unwrap().clone();
    whole.take_all_writes();
    brought(&whole, &newer()).await;
    let writes = whole.take_all_writes().len();
    let mut refused = 0;
    for n in 1..writes {
        let sandbox = sandbox();
        brought(&sandbox, &older()).await;
        sandbox.cut(Some(Cut::After(n)));
        assert!(sandbox.upgrade(&release(&newer()), &options(&newer()), 1).await.is_none(), "{n}");
        sandbox.cut(None);
        // Before the journal is there nothing of the platform is written, and after the state it has the newer release.
        let books = Books::of(&sandbox.environment(1).cluster).await.unwrap();
        let is_older = books.installed.as_ref().is_some_and(|installed| installed == "1.0.0");
        if books.open.is_none() || !is_older {
            continue;
        }
        let is_newer = sandbox.object(&definition).unwrap().to_string().contains("f200");
        sandbox.take_all_writes();
        let (ended, _) = sandbox.upgrade(&release(&older()), &options(&older()), 1).await.unwrap();
        // One that had only its plan has written nothing of the platform, and may be taken back in any way.
        if books.open.as_ref().is_some_and(|open| open.reached == "plan") {
            well(ended);
            assert_eq!(comparable(&sandbox), before, "{n}");
            continue;
        }
        let why = ended.unwrap_err().to_string();
        assert!(
            why.contains("an upgrade to 2.0.0 is open; `scantling rollback` goes back to 1.0.0"),
            "{n}: {why}"
        );
        assert_eq!(sandbox.take_all_writes(), Vec::<String>::new(), "{n}");
        refused += 1;
        // Half of those that go back are killed, too, and gone on with.
        if n % 2 == 0 {
            sandbox.cut(Some(Cut::After(n.min(12))));
            if gone_back(&sandbox, None).await.is_none() && is_open(&sandbox).await {
                sandbox.cut(None);
                let (ended, _) = sandbox.upgrade(&release(&older()), &options(&older()), 1).await.unwrap();
                let why = ended.unwrap_err().to_string();
                assert!(why.contains("`scantling rollback` goes"), "{n}: {why}");
            }
            sandbox.cut(None);
        }
        let report = well(gone_back(&sandbox, Some("1.0.0")).await.unwrap());
        nobody_is_blamed(&report, n);
        // The definition stays as the upgrade left it, if it came so far.
        let mut expected = before.clone();
        let mut found = comparable(&sandbox);
        let kept = found.remove(&definition).unwrap().to_string();
        assert_eq!(kept.contains("f200"), is_newer, "{n}");
        expected.remove(&definition);
        assert_eq!(found, expected, "{n}");
        assert!(!is_open(&sandbox).await, "{n}");
    }
    assert!(refused > 15, "{refused} of {writes}");
}

/// What a person did beside a run that was killed stays the person's.
#[tokio::test(start_paused = true)]
async fn a_persons_edit_beside_a_killed_run_is_still_theirs() {
    let sandbox = sandbox();
    brought(&sandbox, &older()).await;
    brought(&sandbox, &newer()).await;
    let whole = comparable(&sandbox);
    let edit = |data: &Value| {
        let path = "/api/v1/namespaces/platform/configmaps/left?fieldManager=kubectl-edit";
        let (status, answer) =
            sandbox.act(Method::PATCH, path, "application/merge-patch+json", &json!({"data": data}));
        assert_eq!(status, 200, "{answer}");
    };
    let of_nobody = ObjectKey::namespaced("", "ConfigMap", "platform", "of-anna");
    of_people(
        &sandbox,
        "/api/v1/namespaces/platform/configmaps",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-anna"}}),
    );
    edit(&json!({"both": "Anna's"}));
    sandbox.take_all_writes();
    // Past the configuration, before the workloads.
    let environment = sandbox.environment(1);
    let ended = {
        let mut sink = |event: scantling_run::RunEvent| {
            if event.to_string().contains("more") {
                sandbox.cut(Some(Cut::Before(1)));
            }
        };
        let options = options(&older());
        let run = scantling_run::rollback(&environment, None, &options, &mut sink);
        sandbox.until_killed(run).await
    };
    assert!(ended.is_none());
    sandbox.cut(None);
    let data = |name: &str| sandbox.object(&key("ConfigMap", name)).unwrap()["data"].clone();
    assert_eq!(data("left"), json!({"both": "Anna's", "old": "yes"}));
    let report = brought(&sandbox, &newer()).await;
    let left = report.outcomes.iter().find(|o| o.key.name == "left").unwrap();
    let kept: Vec<&str> = left.kept.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(kept, [".data.both"]);
    assert_eq!(data("left"), json!({"both": "Anna's", "new": "yes"}));
    assert!(sandbox.object(&of_nobody).is_some());
    // Once a run has ended whole, a field that is taken away is a person's doing again.
    edit(&json!({"both": "of new", "new": null}));
    let report = brought(&sandbox, &newer()).await;
    let left = report.outcomes.iter().find(|o| o.key.name == "left").unwrap();
    assert!(left.kept.iter().any(|field| field.field == ".data.new"), "{left:?}");
    assert_eq!(data("left"), json!({"both": "of new"}));
    assert_eq!(comparable(&sandbox).len(), whole.len() + 1);
}
