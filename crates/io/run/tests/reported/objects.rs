//! Objects that are there already, and what becomes of them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use scantling_api::ObjectKey;
use scantling_plan::Outcome;
use scantling_registry_server::RegistryServer;
use scantling_run::{Options, RunError, SYSTEM_NAMESPACE};
use scantling_sandbox::Flavour;
use serde_json::{Value, json};

use crate::common::platform::{
    HOST, brought, gone_back, key, of_people, options, outcomes, release, sandbox, tree, well,
};
use crate::common::{Cut, Sandbox, push, world};
use crate::{DEPLOYMENTS, definition, deployment, deployment_of_people, lab, namespace};

/// opendatahub-io/opendatahub-operator#603: what the version before made is "there already", and is not merged.
#[tokio::test(start_paused = true)]
async fn what_the_release_before_made_is_merged_and_generated_values_stay() {
    let runtimes = |tag: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: runtimes}}\ndata: {{ovms: '{HOST}/rt/ovms:{tag}'}}\n"
        )
    };
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: store-conn}\nstringData: {user: a}\n";
    let more = "generated:\n- {kind: Secret, name: store-conn, key: password, length: 12}\n";
    let release_of = |version: &str, follows: &str, tag: &str| {
        lab(version, follows, more, &[("runtimes.yaml", &runtimes(tag)), ("secret.yaml", secret)])
    };
    let mut pushed = None;
    let mut before = || {
        let mut registry = RegistryServer::new();
        push(&mut registry, HOST, "rt/ovms", "1.20", &[("ovms", "1.20")]);
        pushed = Some(push(&mut registry, HOST, "rt/ovms", "1.21", &[("ovms", "1.21")]));
        let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry);
        namespace(&sandbox);
        for (plural, object) in [
            (
                "secrets",
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store-conn"},
                "data": {"user": STANDARD.encode("a"), "password": STANDARD.encode("generated-1")}}),
            ),
            (
                "configmaps",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "runtimes"},
                "data": {"ovms": format!("{HOST}/rt/ovms:1.20")}}),
            ),
        ] {
            let path = format!("/api/v1/namespaces/platform/{plural}?fieldManager=v1");
            let (status, answer) = sandbox.act(Method::POST, &path, "application/json", &object);
            assert_eq!(status, 201, "{answer}");
        }
        sandbox.take_writes();
        sandbox
    };
    let second = release_of("2.0.0", "1.0.0", "1.21");
    let unknown = before();
    let (ended, _) = unknown.upgrade(&release(&second), &options(&second), 1).await.unwrap();
    let Err(RunError::Refused { report, .. }) = ended else { panic!("{ended:?}") };
    let finding = &report.findings[0];
    assert_eq!((finding.code.as_str(), finding.place.field.as_deref()), ("SCN0801", Some(".data.ovms")));
    assert!(unknown.take_writes().is_empty());

    let sandbox = before();
    let installed = Some(release(&release_of("1.0.0", "", "1.20")));
    let with = Options { installed, ..options(&second) };
    let report = well(sandbox.upgrade(&release(&second), &with, 1).await.unwrap().0);
    let outcomes = outcomes(&report);
    for name in ["ConfigMap platform/runtimes", "Secret platform/store-conn"] {
        assert_eq!(outcomes[name], Outcome::Adopted, "{name}");
    }
    let secret = sandbox.object(&key("Secret", "store-conn")).unwrap();
    assert_eq!(secret["data"]["password"], STANDARD.encode("generated-1"));
    let digest = pushed.unwrap();
    let runtimes = sandbox.object(&key("ConfigMap", "runtimes")).unwrap();
    assert_eq!(runtimes["data"]["ovms"], format!("{HOST}/rt/ovms@{digest}"));
    assert_eq!(brought(&sandbox, &second).await.writes, 0);
}

/// jetstack/version-checker#140: the selector holds the version; the upgrade fails half way.
#[tokio::test(start_paused = true)]
async fn a_selector_that_cannot_change_is_told_before_anything_is_written() {
    let controller = |version: &str| {
        deployment("ctl", "controller:1", "")
            .replace("{app: ctl}", &format!("{{app: ctl, version: {version}}}"))
    };
    let settings = |version: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{version: {version}}}\n"
        )
    };
    let files = |version: &str| [("ctl.yaml", controller(version)), ("settings.yaml", settings(version))];
    let of = |release: &str, follows: &str, more: &str, version: &str| {
        let files = files(version);
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        lab(release, follows, more, &files)
    };
    let fresh = || {
        let mut registry = RegistryServer::new();
        push(&mut registry, HOST, "controller", "1", &[("c", "1")]);
        Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry)
    };
    let refused = async |sandbox: &Sandbox, tree| {
        sandbox.take_writes();
        let (ended, _) = sandbox.upgrade(&release(&tree), &options(&tree), 1).await.unwrap();
        let Err(RunError::Refused { report, .. }) = ended else { panic!("{ended:?}") };
        let fixed = report.findings.iter().find(|f| f.code.as_str() == "SCN0809").unwrap();
        assert_eq!(fixed.place.field.as_deref(), Some(".spec.selector"));
        assert!(sandbox.take_writes().is_empty());
    };
    // Somebody else's.
    let theirs = fresh();
    namespace(&theirs);
    let mut old = deployment_of_people("ctl", "controller:1");
    let labels = json!({"app": "ctl", "version": "v0.3.1"});
    old["spec"]["selector"]["matchLabels"] = labels.clone();
    old["spec"]["template"]["metadata"]["labels"] = labels;
    of_people(&theirs, DEPLOYMENTS, &old);
    refused(&theirs, of("1.0.0", "", "", "v0.3.2")).await;
    assert_eq!(theirs.object(&key("ConfigMap", "settings")), None);
    // Ours: the release has to say that the pods may go.
    let ours = fresh();
    brought(&ours, &of("1.0.0", "", "", "v0.3.1")).await;
    refused(&ours, of("2.0.0", "1.0.0", "", "v0.3.2")).await;
    let settings = ours.object(&key("ConfigMap", "settings")).unwrap();
    assert_eq!(settings["data"]["version"], "v0.3.1");
    let rule = "ownership: [{kind: Deployment, name: ctl, field: .spec.selector, rule: take}]\n";
    let report = brought(&ours, &of("2.0.0", "1.0.0", rule, "v0.3.2")).await;
    assert_eq!(outcomes(&report)["Deployment platform/ctl"], Outcome::Replaced);
}

/// helm/helm#8972: an upgrade does not bring the definition that is new in it.
#[tokio::test(start_paused = true)]
async fn a_definition_that_is_new_comes_before_its_objects() {
    let gadget = "apiVersion: lab.example.com/v1\nkind: Gadget\nmetadata: {name: g1}\n";
    let widgets = definition("Widget");
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), RegistryServer::new());
    brought(&sandbox, &lab("1.0.0", "", "", &[("widgets.yaml", &widgets)])).await;
    sandbox.take_writes();
    let files =
        [("0-g1.yaml", gadget), ("widgets.yaml", widgets.as_str()), ("z.yaml", &definition("Gadget"))];
    let second = lab("2.0.0", "1.0.0", "", &files);
    brought(&sandbox, &second).await;
    let writes = sandbox.take_writes();
    let at = |end: &str| writes.iter().position(|w| w.starts_with("PATCH") && w.ends_with(end)).unwrap();
    assert!(at("/customresourcedefinitions/gadgets.lab.example.com") < at("/gadgets/g1"), "{writes:#?}");
    let g1 = ObjectKey::namespaced("lab.example.com", "Gadget", "platform", "g1");
    assert!(sandbox.object(&g1).is_some());
    assert_eq!(brought(&sandbox, &second).await.writes, 0);
}

/// Text that does not repeat itself, so that packing it tells its true size.
fn prose(length: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).unwrap())
    };
    (0..length).map(|_| letter()).collect()
}

/// NVIDIA/gpu-operator#194: a definition is larger than the note that client-side apply leaves may be.
#[tokio::test(start_paused = true)]
async fn a_definition_of_three_hundred_thousand_bytes_is_applied_twice() {
    const NOTE: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let large = |length: usize| {
        let schema = format!(
            "{{type: object, properties: {{spec: {{type: object, description: {}}}}}}}",
            prose(length)
        );
        definition("Policy").replace("{type: object, x-kubernetes-preserve-unknown-fields: true}", &schema)
    };
    let at =
        ObjectKey::cluster("apiextensions.k8s.io", "CustomResourceDefinition", "policys.lab.example.com");
    let note = |sandbox: &Sandbox| {
        let annotations = sandbox.object(&at).unwrap()["metadata"].get("annotations").cloned();
        annotations.and_then(|a| a.get(NOTE).cloned())
    };
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), RegistryServer::new());
    let tree = lab("1.0.0", "", "", &[("crd.yaml", &large(300_000))]);
    brought(&sandbox, &tree).await;
    assert_eq!(note(&sandbox), None);
    assert_eq!(brought(&sandbox, &tree).await.writes, 0);
    let largest = sandbox.now(|w| {
        let kept = w.objects().filter(|(k, _)| k.namespace.as_deref() == Some(SYSTEM_NAMESPACE));
        kept.map(|(_, object)| object.to_string().len()).max().unwrap()
    });
    assert!(largest < 1_048_576, "{largest}");
    // What was kept of it can be read again.
    brought(&sandbox, &lab("2.0.0", "1.0.0", "", &[("crd.yaml", &large(299_000))])).await;
    well(gone_back(&sandbox, None).await.unwrap());

    // Adopted from client-side apply, whose note goes.
    let adopted = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), RegistryServer::new());
    let tree = lab("1.0.0", "", "", &[("crd.yaml", &large(100_000))]);
    let mut theirs: Value = release(&tree).objects.iter().find(|o| o.key == at).unwrap().value.clone();
    let text = theirs.to_string();
    theirs["metadata"]["annotations"] = json!({ NOTE: text });
    let path =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=kubectl-client-side-apply";
    let (status, answer) = adopted.act(Method::POST, path, "application/json", &theirs);
    assert_eq!(status, 201, "{answer}");
    let report = brought(&adopted, &tree).await;
    assert_eq!(outcomes(&report)["CustomResourceDefinition policys.lab.example.com"], Outcome::Adopted);
    assert_eq!(note(&adopted), None);
}

/// tektoncd/operator#374: a kind of object that only the version before had stays behind for ever.
#[tokio::test(start_paused = true)]
async fn a_kind_that_only_the_release_before_had_is_pruned() {
    let budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {maxUnavailable: 1, selector: {matchLabels: {app: a}}}\n";
    let at = ObjectKey::namespaced("policy", "PodDisruptionBudget", "platform", "a");
    let first = tree("1.0.0", "", &[("manifests/budget.yaml", budget)]);
    let second = tree("2.0.0", "1.0.0", &[]);
    let whole = sandbox();
    brought(&whole, &first).await;
    assert!(whole.object(&at).is_some());
    whole.take_all_writes();
    let report = brought(&whole, &second).await;
    let step = report.plan.as_ref().unwrap().steps.iter().find(|s| s.key == at).unwrap();
    assert_eq!((step.outcome, step.cause.as_str()), (Outcome::Pruned, "the release no longer has it"));
    assert_eq!(whole.object(&at), None);
    let writes = whole.take_all_writes();
    let delete = writes
        .iter()
        .position(|w| w.starts_with("DELETE") && w.ends_with("/poddisruptionbudgets/a"))
        .unwrap();
    assert_eq!(brought(&whole, &second).await.writes, 0);

    // Killed before that; the release after the next one still knows.
    let sandbox = sandbox();
    brought(&sandbox, &first).await;
    sandbox.take_all_writes();
    sandbox.cut(Some(Cut::Before(delete + 1)));
    assert!(sandbox.upgrade(&release(&second), &options(&second), 1).await.is_none());
    sandbox.cut(None);
    assert!(sandbox.object(&at).is_some());
    brought(&sandbox, &tree("3.0.0", "1.0.0, 2.0.0", &[])).await;
    assert_eq!(sandbox.object(&at), None);
}

/// argoproj/argo-cd#25474: an upgraded port equals the port of a fresh installation, whether or not its protocol is written.
#[tokio::test(start_paused = true)]
async fn an_upgraded_service_is_a_fresh_one() {
    let service = |port: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{selector: {{app: s}}, ports: [{port}]}}\n"
        )
    };
    let with =
        |version: &str, follows: &str, port: &str| lab(version, follows, "", &[("s.yaml", &service(port))]);
    let fresh_world = || Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), RegistryServer::new());
    let second = with("2.0.0", "1.0.0", "{name: web, port: 80, targetPort: 8081}");
    let (upgraded, fresh) = (fresh_world(), fresh_world());
    brought(&upgraded, &with("1.0.0", "", "{name: http, port: 80, targetPort: 8080}")).await;
    let report = brought(&upgraded, &second).await;
    assert_eq!(outcomes(&report)["Service platform/s"], Outcome::Updated);
    brought(&fresh, &second).await;
    let ports = |sandbox: &Sandbox| sandbox.object(&key("Service", "s")).unwrap()["spec"]["ports"].clone();
    assert_eq!(ports(&upgraded), ports(&fresh));
    // Somebody puts another port of that name in its place: refused, and taken if the release says so.
    let edited = json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]);
    let path = "/api/v1/namespaces/platform/services/s?fieldManager=console";
    let (status, answer) = upgraded.act(Method::PATCH, path, "application/json-patch+json", &edited);
    assert_eq!(status, 200, "{answer}");
    upgraded.take_writes();
    let (ended, _) = upgraded.upgrade(&release(&second), &options(&second), 1).await.unwrap();
    let Err(RunError::Refused { why, .. }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("console") && why.contains("port=81"), "{why}");
    assert!(upgraded.take_writes().is_empty());
    let rule = "ownership: [{kind: Service, name: s, field: .spec.ports, rule: take}]\n";
    let port = "{name: web, port: 80, targetPort: 8081}";
    let taking = lab("2.0.0", "1.0.0", rule, &[("s.yaml", &service(port))]);
    let report = brought(&upgraded, &taking).await;
    let taken: BTreeMap<&str, &Vec<String>> =
        report.outcomes.iter().flat_map(|o| &o.taken).map(|t| (t.field.as_str(), &t.owners)).collect();
    assert_eq!(taken[".spec.ports[port=81,protocol=\"TCP\"]"], &["console"]);
    assert_eq!(ports(&upgraded), ports(&fresh));
    assert_eq!(brought(&upgraded, &taking).await.writes, 0);
}

/// kubernetes/kubernetes#108081: the release's fields and somebody's are valid alone and refused together, on every run.
#[tokio::test(start_paused = true)]
async fn what_the_server_would_refuse_is_told_before_anything_is_written() {
    let budget = |limit: &str| {
        format!(
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: a}}\nspec: {{selector: {{matchLabels: {{app: a}}}}{limit}}}\n"
        )
    };
    let config = |text: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{a: '{text}'}}\n")
    };
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), RegistryServer::new());
    let first = lab("1.0.0", "", "", &[("budget.yaml", &budget("")), ("c.yaml", &config("1"))]);
    brought(&sandbox, &first).await;
    let at = "/apis/policy/v1/namespaces/platform/poddisruptionbudgets/a?fieldManager=console";
    let patch = json!({"spec": {"minAvailable": 1}});
    let (status, answer) = sandbox.act(Method::PATCH, at, "application/merge-patch+json", &patch);
    assert_eq!(status, 200, "{answer}");
    sandbox.take_writes();

    let limit = budget(", maxUnavailable: 1");
    let second = lab("2.0.0", "1.0.0", "", &[("budget.yaml", &limit), ("c.yaml", &config("2"))]);
    let (ended, _) = sandbox.upgrade(&release(&second), &options(&second), 1).await.unwrap();
    let Err(RunError::Refused { why, report }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("PodDisruptionBudget platform/a") && why.contains("cannot be both set"), "{why}");
    let finding = report.findings.iter().find(|f| f.code.as_str() == "SCN0807").unwrap();
    assert_eq!(finding.place.object.as_deref(), Some("PodDisruptionBudget platform/a"));
    let writes: Vec<String> =
        sandbox.take_writes().into_iter().filter(|w| !w.contains("/poddisruptionbudgets/")).collect();
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(sandbox.object(&key("ConfigMap", "c")).unwrap()["data"]["a"], "1");
    // When that field is gone it goes on.
    let patch = json!({"spec": {"minAvailable": null}});
    sandbox.act(Method::PATCH, at, "application/merge-patch+json", &patch);
    brought(&sandbox, &second).await;
    assert_eq!(sandbox.object(&key("ConfigMap", "c")).unwrap()["data"]["a"], "2");
}
