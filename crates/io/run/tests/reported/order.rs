//! In which order things come and go, and runs that were cut off.

use std::time::Duration;

use http::Method;
use scantling_api::ObjectKey;
use scantling_plan::Outcome;
use scantling_registry_server::RegistryServer;
use scantling_run::{Options, RunError, What};
use scantling_sandbox::Flavour;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::common::platform::{
    HOST, brought, comparable, key, of_people, one, options, outcomes, release, sandbox, taken_away, tree,
    two, well,
};
use crate::common::{Cut, Sandbox, push, world};
use crate::{definition, deployment, lab};

/// jupyterhub/zero-to-jupyterhub-k8s#2690: an upgrade that was interrupted leaves a lock that keeps every later one out.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_killed_keeps_nobody_out() {
    let whole = sandbox();
    brought(&whole, &one()).await;
    whole.take_all_writes();
    brought(&whole, &two()).await;
    let writes = whole.take_all_writes();
    let config =
        writes.iter().rposition(|w| w.starts_with("PATCH") && w.contains("/platform/configmaps/")).unwrap()
            + 1;
    let killed = async || {
        let sandbox = sandbox();
        brought(&sandbox, &one()).await;
        sandbox.cut(Some(Cut::After(config)));
        assert!(sandbox.upgrade(&release(&two()), &options(&two()), 1).await.is_none());
        sandbox.cut(None);
        sandbox
    };
    // The same release, by somebody else.
    let same = killed().await;
    let started = Instant::now();
    let second = Options { holder: "cli/second".to_owned(), ..options(&two()) };
    let report = well(same.upgrade(&release(&two()), &second, 2).await.unwrap().0);
    assert!(report.continued);
    assert!(started.elapsed() >= Duration::from_secs(14), "{:?}", started.elapsed());
    let outcomes = outcomes(&report);
    assert_eq!(outcomes["ConfigMap platform/config"], Outcome::Unchanged);
    assert_eq!(outcomes["Deployment platform/a-controller"], Outcome::Updated);
    assert_eq!(comparable(&same), comparable(&whole));
    // Another release.
    let third = tree("3.0.0", "1.0.0, 2.0.0", &[]);
    let other = killed().await;
    let report = brought(&other, &third).await;
    assert_eq!((report.continued, report.from.as_deref()), (false, Some("1.0.0")));
    let direct = sandbox();
    brought(&direct, &one()).await;
    brought(&direct, &third).await;
    assert_eq!(comparable(&other), comparable(&direct));
}

/// open-telemetry/opentelemetry-operator#4367: the operator goes before what it has finalizers on, which then never goes.
#[tokio::test(start_paused = true)]
async fn what_an_operator_looks_after_goes_before_it() {
    const FINALIZER: &str = "collector.example.com/finalizer";
    let collector = format!(
        "apiVersion: lab.example.com/v1\nkind: Collector\nmetadata: {{name: c1, finalizers: [{FINALIZER}]}}\n"
    );
    let files = [
        ("c1.yaml", collector),
        ("crd.yaml", definition("Collector")),
        ("operator.yaml", deployment("collector-operator", "controller:1", "")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let tree = lab("1.0.0", "", "", &files);
    let fresh = || {
        let mut registry = RegistryServer::new();
        push(&mut registry, HOST, "controller", "1", &[("c", "1")]);
        Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry)
    };
    let c1 = ObjectKey::namespaced("lab.example.com", "Collector", "platform", "c1");
    let operator = key("Deployment", "collector-operator");
    let release_it = |sandbox: &Sandbox| {
        let at = "/apis/lab.example.com/v1/namespaces/platform/collectors/c1";
        let patch = json!({"metadata": {"finalizers": null}});
        sandbox.act(Method::PATCH, at, "application/merge-patch+json", &patch)
    };

    let sandbox = fresh();
    brought(&sandbox, &tree).await;
    sandbox.take_all_writes();
    let works = async {
        // The operator takes its finalizer off as long as it is there itself.
        while let Some(object) = sandbox.object(&c1) {
            let is_going = object.pointer("/metadata/deletionTimestamp").is_some();
            if is_going && sandbox.object(&operator).is_some() {
                release_it(&sandbox);
            }
            sleep(Duration::from_millis(500)).await;
        }
    };
    let (ended, ()) = futures::join!(taken_away(&sandbox), works);
    well(ended.unwrap());
    let writes = sandbox.take_all_writes();
    let at = |end: &str| writes.iter().position(|w| w.starts_with("DELETE") && w.ends_with(end)).unwrap();
    let order = [
        at("/collectors/c1"),
        at("/deployments/collector-operator"),
        at("/customresourcedefinitions/collectors.lab.example.com"),
    ];
    assert!(order.is_sorted(), "{writes:#?}");
    assert!(sandbox.object(&c1).is_none() && sandbox.object(&operator).is_none());

    // Where it does not, the operator stays until somebody has looked.
    let stuck = fresh();
    brought(&stuck, &tree).await;
    let Err(RunError::Stopped { why, .. }) = taken_away(&stuck).await.unwrap() else {
        panic!("it ended well")
    };
    assert!(why.contains(&format!("finalizers hold it: {FINALIZER}")), "{why}");
    assert!(stuck.object(&operator).is_some());
    release_it(&stuck);
    well(taken_away(&stuck).await.unwrap());
    assert!(stuck.object(&operator).is_none());
}

/// kserve/kserve#5037: the webhook that guards an object does not answer yet, and the installation ends in an error.
#[tokio::test(start_paused = true)]
async fn an_object_waits_for_the_webhook_that_guards_it() {
    const WORDS: &str = "failed calling webhook \"rt.lab.example.com\": failed to call webhook: Post \"https://rt.platform.svc:443/v\": dial tcp 10.96.0.9:443: connect: connection refused";
    let webhook = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: rt}\nwebhooks:\n- name: rt.lab.example.com\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  clientConfig: {service: {name: rt, namespace: platform, path: /v}}\n  rules: [{apiGroups: [other.example.com], apiVersions: [v1], resources: [nothing], operations: [CREATE]}]\n";
    let files = [
        ("crd.yaml", definition("Runtime")),
        ("controller.yaml", deployment("serve-controller", "controller:1", "")),
        ("sk.yaml", "apiVersion: lab.example.com/v1\nkind: Runtime\nmetadata: {name: sk}\n".to_owned()),
        ("webhook.yaml", webhook.to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let tree = lab("1.0.0", "", "", &files);
    let fresh = || {
        let mut registry = RegistryServer::new();
        push(&mut registry, HOST, "controller", "1", &[("c", "1")]);
        Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry)
    };
    let sk = ObjectKey::namespaced("lab.example.com", "Runtime", "platform", "sk");

    let sandbox = fresh();
    let start = Instant::now();
    sandbox.webhook_away("/runtimes/", Duration::from_secs(25), WORDS);
    let report = brought(&sandbox, &tree).await;
    assert!(start.elapsed() >= Duration::from_secs(25), "{:?}", start.elapsed());
    assert!(sandbox.object(&sk).is_some());
    assert_eq!(outcomes(&report)["Runtime platform/sk"], Outcome::Created);
    let waited = report.events.iter().find_map(|e| match &e.what {
        What::Waiting { until, .. } if until.contains("failed calling webhook") => Some(until),
        _ => None,
    });
    assert!(waited.is_some(), "{:#?}", report.events);
    assert_eq!(brought(&sandbox, &tree).await.writes, 0);

    // One that never answers ends the run, in the server's words.
    let never = fresh();
    never.webhook_away("/runtimes/", Duration::from_hours(24), WORDS);
    let mut patient = options(&tree);
    patient.waits.rollout = Duration::from_secs(90);
    let (ended, _) = never.upgrade(&release(&tree), &patient, 1).await.unwrap();
    let Err(RunError::Stopped { report, .. }) = ended else { panic!("{ended:?}") };
    let finding = report.findings.iter().find(|f| f.code.as_str() == "SCN0807").unwrap();
    assert!(finding.cause.contains("connection refused"), "{finding:?}");
}

/// opendatahub-io/opendatahub-operator#3962: a definition names the webhook of an operator that does not run yet, and its
/// objects cannot even be read.
#[tokio::test(start_paused = true)]
async fn a_conversion_is_set_when_what_answers_it_is_ready() {
    let parts = |versions: &str, conversion: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: parts.lab.example.com}}\nspec:\n  group: lab.example.com\n  scope: Namespaced\n  names: {{kind: Part, plural: parts}}\n{conversion}  versions:\n{versions}"
        )
    };
    let version = |name: &str, stored: bool| {
        format!(
            "  - {{name: {name}, served: true, storage: {stored}, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}\n"
        )
    };
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: new-operator}\nspec: {selector: {app: new-operator}, ports: [{port: 443, targetPort: 8443}]}\n";
    let conversion = "  conversion:\n    strategy: Webhook\n    webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: Y2E=, service: {namespace: platform, name: new-operator, path: /convert}}}\n";
    let first = lab("1.0.0", "", "", &[("parts.yaml", &parts(&version("v1", true), ""))]);
    let both = parts(&format!("{}{}", version("v1", false), version("v2", true)), conversion);
    let operator = deployment("new-operator", "controller:1", "");
    let files = [("operator.yaml", operator.as_str()), ("parts.yaml", &both), ("service.yaml", service)];
    let second = lab("2.0.0", "1.0.0", "", &files);

    let mut registry = RegistryServer::new();
    push(&mut registry, HOST, "controller", "1", &[("c", "1")]);
    let sandbox = Sandbox::new(world(Flavour::Kubernetes, &["node-1"]), registry);
    brought(&sandbox, &first).await;
    let one = json!({"apiVersion": "lab.example.com/v1", "kind": "Part", "metadata": {"name": "one"}});
    of_people(&sandbox, "/apis/lab.example.com/v1/namespaces/platform/parts", &one);

    let definition =
        ObjectKey::cluster("apiextensions.k8s.io", "CustomResourceDefinition", "parts.lab.example.com");
    let ended = std::cell::Cell::new(false);
    let watches = async {
        // Somebody reads the objects all the time, in the version in which they are stored.
        let mut early = 0;
        while !ended.get() {
            let found = sandbox.object(&definition).unwrap();
            let is_armed = found.pointer("/spec/conversion/strategy").unwrap() == "Webhook";
            let available = sandbox.object(&key("Deployment", "new-operator"));
            let available = available.and_then(|d| d.pointer("/status/availableReplicas").cloned());
            assert!(!is_armed || available == Some(json!(1)), "{found}");
            let path = "/apis/lab.example.com/v1/namespaces/platform/parts";
            let (status, answer) = sandbox.act(Method::GET, path, "application/json", &json!(null));
            assert!(is_armed || status == 200, "{answer}");
            early += usize::from(!is_armed);
            sleep(Duration::from_millis(100)).await;
        }
        early
    };
    let run = async {
        let report = brought(&sandbox, &second).await;
        ended.set(true);
        report
    };
    let (report, early) = futures::join!(run, watches);
    assert!(early > 5, "{early}");
    let told = report.events.iter().map(|e| e.what.to_string());
    let told: Vec<String> = told.filter(|t| t.contains("after platform/new-operator is ready")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let found = sandbox.object(&definition).unwrap();
    assert_eq!(found["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"], "new-operator");
    assert_eq!(found["spec"]["versions"][1]["storage"], true);
    assert_eq!(brought(&sandbox, &second).await.writes, 0);
}
