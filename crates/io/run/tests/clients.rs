//! What a run meets: other clients, faults, what is in the way; what it reads, and in which order it writes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{
    HOST, brought, comparable, of_people, one, options, outcomes, release, sandbox, taken_away, tree, two,
    well,
};
use common::{Cut, Sandbox, push, world};
use http::Method;
use scantling_api::ObjectKey;
use scantling_plan::Outcome;
use scantling_registry_server::RegistryServer;
use scantling_release::Tree;
use scantling_run::{Options, RunError, SYSTEM_NAMESPACE, What, history, plan, status, upgrade};
use scantling_sandbox::{ApiFaults, Flavour};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn of_two_clients_one_is_refused_and_the_lease_of_a_dead_one_is_taken_over() {
    let sandbox = sandbox();
    let (one, two) = (one(), two());
    let environments = (sandbox.environment(1), sandbox.environment(2));
    let first = Options { holder: "cli/first".to_owned(), ..options(&one) };
    let second = Options { holder: "operator/second".to_owned(), ..options(&one) };
    let release_one = release(&one);
    let mut nothing = (|_| {}, |_| {});
    let late = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        upgrade(&environments.1, &release_one, &second, &mut nothing.1).await
    };
    let (a, b) = futures::join!(upgrade(&environments.0, &release_one, &first, &mut nothing.0), late);
    well(a);
    match b {
        // It came to writing while the other one was, or the other had ended by then.
        Err(RunError::Refused { why, report }) => {
            assert!(why.contains("cli/first") || why.contains("since this one read it"), "{why}");
            assert_eq!(report.writes, 0);
        }
        b => panic!("{b:?}"),
    }
    // Killed in the middle: the lease keeps others out for its time, then the journal is continued.
    sandbox.take_all_writes();
    sandbox.cut(Some(Cut::After(9)));
    let first = Options { holder: "cli/first".to_owned(), ..options(&two) };
    assert!(sandbox.upgrade(&release(&two), &first, 1).await.is_none());
    sandbox.cut(None);
    let open = status(&environments.0).await.unwrap();
    assert_eq!(open.holder.as_deref(), Some("cli/first"));
    assert_eq!(open.open.unwrap().version, "2.0.0");
    let started = tokio::time::Instant::now();
    let second = Options { holder: "operator/second".to_owned(), ..options(&two) };
    let (ended, _) = sandbox.upgrade(&release(&two), &second, 2).await.unwrap();
    let report = well(ended);
    assert!(report.continued);
    assert!(started.elapsed() >= Duration::from_secs(14), "{:?}", started.elapsed());
    let runs = history(&environments.0).await.unwrap();
    assert_eq!(runs[0].holder, "operator/second");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_loses_its_lease_stops_writing() {
    let sandbox = sandbox();
    let tree = one();
    let release = release(&tree);
    let environment = sandbox.environment(1);
    let options = options(&tree);
    let mut sink = |_| {};
    let run = upgrade(&environment, &release, &options, &mut sink);
    let thief = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        // Nothing starts any more, so that the run is still under way when the lease is to be renewed.
        sandbox.now(|world| world.set_node_up("node-1", false)).unwrap();
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/scantling-run");
        let stolen = json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}});
        let (status, answer) = sandbox.act(Method::PATCH, &path, "application/merge-patch+json", &stolen);
        assert_eq!(status, 200, "{answer}");
    };
    let (ended, ()) = futures::join!(run, thief);
    let Err(RunError::Stopped { why, .. }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("thief has taken it"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_changed_is_replaced_if_it_is_ours_and_told_otherwise() {
    let binding = |role: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: b}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\nsubjects: [{{kind: User, name: anna, apiGroup: rbac.authorization.k8s.io}}]\n"
        )
    };
    let first = tree("1.0.0", "", &[("manifests/b.yaml", &binding("view"))]);
    let second = tree("2.0.0", "1.0.0", &[("manifests/b.yaml", &binding("edit"))]);
    let name = "RoleBinding platform/b";
    let at = ObjectKey::namespaced("rbac.authorization.k8s.io", "RoleBinding", "platform", "b");
    let whole = sandbox();
    brought(&whole, &first).await;
    whole.take_all_writes();
    let report = brought(&whole, &second).await;
    assert_eq!(outcomes(&report).get(name), Some(&Outcome::Replaced), "{:#?}", outcomes(&report));
    assert_eq!(whole.object(&at).unwrap()["roleRef"]["name"], "edit");
    let delete =
        whole.take_all_writes().iter().position(|w| w.starts_with("DELETE") && w.ends_with("/b")).unwrap()
            + 1;
    for cut in [Cut::Before(delete), Cut::After(delete), Cut::Before(delete + 1), Cut::After(delete + 1)] {
        let sandbox = sandbox();
        brought(&sandbox, &first).await;
        sandbox.cut(Some(cut));
        assert!(sandbox.upgrade(&release(&second), &options(&second), 1).await.is_none());
        sandbox.cut(None);
        brought(&sandbox, &second).await;
        assert_eq!(sandbox.object(&at).unwrap()["roleRef"]["name"], "edit", "{cut:?}");
        well(taken_away(&sandbox).await.unwrap());
        assert_eq!(sandbox.object(&at), None);
    }
    // Somebody else's.
    let sandbox = sandbox();
    of_people(
        &sandbox,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}}),
    );
    of_people(
        &sandbox,
        "/apis/rbac.authorization.k8s.io/v1/namespaces/platform/rolebindings",
        &json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        }),
    );
    sandbox.take_writes();
    let (ended, _) = sandbox.upgrade(&release(&first), &options(&first), 1).await.unwrap();
    let Err(RunError::Refused { report, .. }) = ended else { panic!("{ended:?}") };
    assert!(sandbox.take_writes().is_empty());
    let told = report.outcomes.iter().find(|o| o.key == at).unwrap();
    assert_eq!(told.outcome, Outcome::Conflict, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn the_operator_comes_before_every_other_workload() {
    let sandbox = sandbox();
    let report = brought(&sandbox, &one()).await;
    let order: Vec<&str> =
        report.outcomes.iter().filter(|o| o.key.kind == "Deployment").map(|o| o.key.name.as_str()).collect();
    assert_eq!(order, ["zz-operator", "a-controller"]);
    let first =
        |what: &dyn Fn(&What) -> bool| report.events.iter().position(|event| what(&event.what)).unwrap();
    let ready = first(&|what| matches!(what, What::Ready { on, .. } if on.contains("zz-operator")));
    let next = first(&|what| matches!(what, What::Object { key, .. } if key.name == "a-controller"));
    assert!(ready < next, "it is waited for");
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_way_is_told_before_anything_is_written() {
    let definition = |field: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com", "annotations": {"meta.helm.sh/release-name": "their-things"}},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "properties": {"spec": {"type": "object", "properties": {field: {"type": "string"}}}}}}}],
            },
        })
    };
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let theirs = sandbox();
    of_people(&theirs, path, &definition("other"));
    theirs.take_writes();
    let (ended, _) = theirs.upgrade(&release(&one()), &options(&one()), 1).await.unwrap();
    let Err(RunError::Refused { why, report }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("the Helm release their-things"), "{why}");
    assert_eq!(report.findings[0].code.as_str(), "SCN0811");
    assert!(theirs.take_writes().is_empty());
    // The same definition can be shared.
    let same = sandbox();
    of_people(&same, path, &definition("f100"));
    brought(&same, &one()).await;

    let going = sandbox();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}});
    of_people(&going, "/api/v1/namespaces", &namespace);
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    of_people(&going, "/api/v1/namespaces/platform/configmaps", &held);
    going.act(Method::DELETE, "/api/v1/namespaces/platform", "application/json", &json!({}));
    going.take_writes();
    let (ended, _) = going.upgrade(&release(&one()), &options(&one()), 1).await.unwrap();
    let Err(RunError::Refused { why, .. }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("namespace platform is being deleted"), "{why}");
    assert!(going.take_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn rights_that_are_missing_are_named_with_the_command_that_grants_them() {
    let sandbox = sandbox();
    sandbox.deny(&["patch deployments", "create deployments", "list nodes"]);
    let (ended, _) = sandbox.upgrade(&release(&one()), &options(&one()), 1).await.unwrap();
    let Err(RunError::Refused { why, report }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("create,patch deployments.apps in namespace platform"), "{why}");
    assert!(sandbox.take_writes().is_empty());
    let grants: Vec<&str> = report.missing_rights.iter().map(|m| m.grant.as_str()).collect();
    assert!(grants.iter().any(|g| g.starts_with("kubectl create clusterrole scantling-nodes --verb=list --resource=nodes")), "{grants:?}");
    sandbox.deny(&[]);
    brought(&sandbox, &one()).await;
    // With nothing to do nothing is asked.
    sandbox.deny(&["patch deployments"]);
    assert_eq!(brought(&sandbox, &one()).await.writes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_with_nothing_to_do_only_lists() {
    let sandbox = sandbox();
    let many: Vec<(String, String)> = (0..40)
        .map(|n| {
            (
                format!("manifests/many-{n}.yaml"),
                format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: many-{n}}}\ndata: {{a: b}}\n"),
            )
        })
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let tree = tree("1.0.0", "", &many);
    let fresh = brought(&sandbox, &tree).await;
    assert_eq!(fresh.plan.unwrap().counts().created, fresh.outcomes.len());
    sandbox.take_writes();
    sandbox.take_reads();
    let report = brought(&sandbox, &tree).await;
    assert_eq!(report.writes, 0, "{:?}", sandbox.take_writes());
    let reads = sandbox.take_reads();
    // Discovery and what people want of the platform aside, every read is a list, and none is made twice but for the wait between waves.
    let lists: Vec<&String> = reads.iter().filter(|r| r.contains("?limit=")).collect();
    let others: Vec<&String> =
        reads.iter().filter(|r| !r.contains("?limit=") && r.matches('/').count() > 3).collect();
    let others: Vec<&&String> = others.iter().filter(|r| !r.ends_with("/platforms/platform")).collect();
    assert!(others.is_empty(), "{others:?}");
    let distinct: BTreeSet<&&String> = lists.iter().collect();
    assert_eq!(distinct.len(), lists.len(), "{lists:#?}");
    assert!(lists.len() < 16, "{lists:#?}");
}

/// An image of the catalogue.
fn offered(tags: &str) -> String {
    format!(
        "catalogue:\n  images:\n  - name: datascience\n    title: Data science\n    about: Tables and models\n    tags:\n{tags}"
    )
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_shows_what_the_bytes_hold() {
    let mut registry = RegistryServer::new();
    for version in ["1.0.0", "2.0.0"] {
        push(&mut registry, HOST, "controller", version, &[("controller", version)]);
        let pandas = if version == "1.0.0" { "1.5.3" } else { "2.2.0" };
        push(&mut registry, HOST, "datascience", version, &[("pandas", pandas), ("hidden", "1")]);
    }
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry);
    let with = |mut tree: Tree, tags: &str| {
        tree.get_mut("release.yaml").unwrap().extend(offered(tags).into_bytes());
        tree
    };
    let tag = |version: &str, more: &str| {
        format!("    - {{name: '{version}', image: '{HOST}/datascience:{version}', shows: [pandas]{more}}}\n")
    };
    let first = with(one(), &tag("1.0.0", ", recommended: true"));
    let report = brought(&sandbox, &first).await;
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    let entry = |name: &str| {
        sandbox.object(&ObjectKey::namespaced("scantling.dev", "NotebookImage", "platform", name))
    };
    let spec = entry("datascience-1.0.0").unwrap()["spec"].clone();
    assert_eq!(spec["packages"], json!([{"name": "pandas", "version": "1.5.3"}]));
    assert_eq!((&spec["title"], &spec["recommended"]), (&json!("Data science"), &json!(true)));
    assert!(spec["image"].as_str().unwrap().contains("datascience@sha256:"), "{spec}");
    let given = &report.prepulled["node-1"];
    assert!(given.iter().any(|image| image.contains("datascience@")), "{given:?}");
    assert_eq!(brought(&sandbox, &first).await.writes, 0);

    // Somebody works with it; the next release retires it.
    let digest = spec["image"].as_str().unwrap().rsplit_once('@').unwrap().1.to_owned();
    let notebook = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
        "metadata": {"name": "anna", "annotations": {"notebooks.opendatahub.io/last-image-selection": "datascience:1.0.0"}},
        "spec": {"template": {"spec": {"containers": [{"name": "anna", "image": spec["image"]}]}}},
    });
    of_people(&sandbox, "/apis/kubeflow.org/v1/namespaces/platform/notebooks", &notebook);
    let running = json!({"status": {"running": {"digest": digest}}});
    let path = "/apis/kubeflow.org/v1/namespaces/platform/notebooks/anna/status";
    let (code, answer) = sandbox.act(Method::PATCH, path, "application/merge-patch+json", &running);
    assert_eq!(code, 200, "{answer}");
    let second = with(two(), &tag("2.0.0", ", recommended: true"));
    let environment = sandbox.environment(1);
    let planned = well(plan(&environment, &release(&second), &options(&second), &mut |_| {}).await);
    let concerned = &planned.plan.unwrap().notebooks;
    assert_eq!(concerned.len(), 1);
    assert!(concerned[0].why.contains("no longer offers"), "{concerned:?}");
    let kept = with(two(), &(tag("2.0.0", ", recommended: true") + &tag("1.0.0", ", outdated: true")));
    let report = brought(&sandbox, &kept).await;
    assert_eq!(entry("datascience-1.0.0").unwrap()["spec"]["outdated"], true);
    assert_eq!(entry("datascience-2.0.0").unwrap()["spec"]["packages"][0]["version"], "2.2.0");
    assert!(report.plan.unwrap().notebooks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_change_nothing_about_whose_an_object_is() {
    let quiet = sandbox();
    brought(&quiet, &one()).await;
    brought(&quiet, &two()).await;
    let expected = comparable(&quiet);
    let sandbox = sandbox();
    let faults = ApiFaults { unavailable: 40, lost_responses: 150, ..ApiFaults::default() };
    for client in ["scantling", "client"] {
        sandbox.now(|w| w.faults().set(client, faults.clone()));
    }
    for tree in [one(), two()] {
        // A run may stop over it; another one goes on.
        let mut tries = 0;
        loop {
            let (ended, _) = sandbox.upgrade(&release(&tree), &options(&tree), 1).await.unwrap();
            tries += 1;
            match ended {
                Ok(_) => break,
                Err(error) => assert!(tries < 10, "{error}"),
            }
        }
    }
    assert_eq!(comparable(&sandbox), expected);
}
