//! A release's life on a cluster: brought, gone back from, taken away; by several clients, killed at any write.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use common::{Cut, Sandbox, push, world};
use http::Method;
use scantling_api::{ObjectKey, object};
use scantling_plan::Outcome;
use scantling_registry_server::RegistryServer;
use scantling_release::{Release, Settings, Tree};
use scantling_run::{
    Action, Bundle, Ended, Options, RunError, RunReport, SYSTEM_NAMESPACE, history, plan, rollback, status,
    uninstall, upgrade,
};
use scantling_sandbox::{ApiFaults, Flavour};
use serde_json::{Value, json};

const HOST: &str = "registry.example.com";

fn tree(version: &str, follows: &str, extra: &[(&str, &str)]) -> Tree {
    let file = format!(
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: platform\nversion: {version}\nfollows: [{follows}]\nnamespace: platform\nmanifests: [manifests]\noperator: {{kind: Deployment, name: zz-operator}}\ngenerated:\n- {{kind: Secret, name: password, key: root, length: 24}}\n"
    );
    let workload = |name: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - {{name: main, image: '{HOST}/controller:{version}'}}\n"
        )
    };
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.example.com}}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {{kind: Thing, plural: things}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{f{}: {{type: string}}}}}}}}}}}}\n",
        version.replace('.', "")
    );
    let mut files: Vec<(String, String)> = vec![
        ("release.yaml".into(), file),
        ("manifests/crd.yaml".into(), definition),
        ("manifests/secret.yaml".into(), "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\n".into()),
        (
            "manifests/config.yaml".into(),
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config}}\ndata: {{version: '{version}'}}\n"
            ),
        ),
        (
            "manifests/renamed.yaml".into(),
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: only-in-{version}}}\ndata: {{a: b}}\n"
            ),
        ),
        ("manifests/a.yaml".into(), workload("a-controller")),
        ("manifests/z.yaml".into(), workload("zz-operator")),
    ];
    files.extend(extra.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect()
}

fn release(tree: &Tree) -> Release {
    Release::read(tree, &Settings::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn one() -> Tree {
    tree("1.0.0", "", &[])
}

fn two() -> Tree {
    tree("2.0.0", "1.0.0", &[])
}

fn sandbox() -> Sandbox {
    let mut registry = RegistryServer::new();
    for version in ["1.0.0", "2.0.0", "3.0.0"] {
        push(&mut registry, HOST, "controller", version, &[("controller", version)]);
    }
    Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry)
}

fn options(tree: &Tree) -> Options {
    Options {
        bundle: Some(Bundle::of(tree.clone(), Settings::default(), None)),
        holder: "cli/test".to_owned(),
        ..Options::default()
    }
}

fn well(ended: Result<RunReport, RunError>) -> RunReport {
    match ended {
        Ok(report) => report,
        Err(error) => {
            for event in &error.report().events {
                println!("{event}");
            }
            panic!("{error}: {:#?}", error.report().findings)
        }
    }
}

async fn brought(sandbox: &Sandbox, tree: &Tree) -> RunReport {
    let (ended, _) = sandbox.upgrade(&release(tree), &options(tree), 1).await.expect("cut off");
    well(ended)
}

async fn gone_back(sandbox: &Sandbox, to: Option<&str>) -> Option<Result<RunReport, RunError>> {
    let environment = sandbox.environment(1);
    let options = options(&one());
    sandbox.until_killed(rollback(&environment, to, &options, &mut |_| {})).await
}

async fn taken_away(sandbox: &Sandbox) -> Option<Result<RunReport, RunError>> {
    let environment = sandbox.environment(1);
    sandbox.until_killed(uninstall(&environment, &options(&one()), &mut |_| {})).await
}

fn key(kind: &str, name: &str) -> ObjectKey {
    let group = if kind == "Deployment" { "apps" } else { "" };
    ObjectKey::namespaced(group, kind, "platform", name)
}

fn outcomes(report: &RunReport) -> BTreeMap<String, Outcome> {
    report.outcomes.iter().map(|o| (o.key.to_string(), o.outcome)).collect()
}

/// Every object but for what differs from run to run, and what the cluster makes of itself.
fn comparable(sandbox: &Sandbox) -> BTreeMap<ObjectKey, Value> {
    let all = sandbox.now(|w| w.objects().map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>());
    let noise = ["Event", "Pod", "ReplicaSet", "Node", "Lease", "EndpointSlice", "Endpoints"];
    all.into_iter()
        .filter(|(key, _)| !noise.contains(&key.kind.as_str()))
        .filter(|(key, _)| key.namespace.as_deref() != Some(SYSTEM_NAMESPACE))
        .map(|(key, mut object)| {
            let metadata = object["metadata"].as_object_mut().unwrap();
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
                metadata.remove(field);
            }
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove("deployment.kubernetes.io/revision");
            }
            object.as_object_mut().unwrap().remove("status");
            (key, object)
        })
        .collect()
}

fn of_people(sandbox: &Sandbox, path: &str, object: &Value) {
    let (status, answer) =
        sandbox.act(Method::POST, &format!("{path}?fieldManager=kubectl-create"), "application/json", object);
    assert_eq!(status, 201, "{answer}");
}

/// What is there when the release has been gone back to: as before, but for definitions.
fn as_before(mut expected: BTreeMap<ObjectKey, Value>, sandbox: &Sandbox) {
    let definition =
        ObjectKey::cluster("apiextensions.k8s.io", "CustomResourceDefinition", "things.example.com");
    let mut found = comparable(sandbox);
    let kept = found.remove(&definition).unwrap();
    assert!(kept.to_string().contains("f200"), "the newer definition stays");
    expected.remove(&definition);
    assert_eq!(found, expected);
}

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
async fn of_two_clients_one_is_refused_and_the_lease_of_a_dead_one_is_taken_over() {
    let sandbox = sandbox();
    let (one, two) = (one(), two());
    let environments = (sandbox.environment(1), sandbox.environment(2));
    let first = Options { holder: "cli/first".to_owned(), ..options(&one) };
    let second = Options { holder: "operator/second".to_owned(), ..options(&one) };
    let release_one = release(&one);
    let mut nothing = (|_| {}, |_| {});
    let late = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
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
        tokio::time::sleep(Duration::from_millis(1500)).await;
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
    let at = |name: &str| {
        sandbox.object(&key("Deployment", name)).unwrap()["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(at("zz-operator") < at("a-controller"), "it is waited for");
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
    // Discovery aside, every read is a list, and none is made twice but for the wait between waves.
    let lists: Vec<&String> = reads.iter().filter(|r| r.contains("?limit=")).collect();
    let others: Vec<&String> =
        reads.iter().filter(|r| !r.contains("?limit=") && r.matches('/').count() > 3).collect();
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
            w.objects().filter(|(k, _)| k.kind == "ConfigMap" && k.name.starts_with("scantling-release-"));
        maps.filter(|(_, o)| object::label(o, "scantling.dev/part-of").is_some()).count()
    });
    assert_eq!(parts, 2);
}
