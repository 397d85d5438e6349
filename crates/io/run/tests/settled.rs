//! What the server keeps in a form of its own is written once, and never again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{HOST, brought, key, one, outcomes, sandbox, tree, two};
use scantling_plan::Outcome;
use serde_json::{Value, json};

/// Zero values that the server's types drop, quantities in many words, a `null` of a generator.
const ODD: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: odd, creationTimestamp: null, annotations: {}, labels: {empty: ""}}
spec:
  paused: false
  minReadySeconds: 0
  selector: {matchLabels: {app: odd}}
  template:
    metadata: {labels: {app: odd}, creationTimestamp: null}
    spec:
      hostNetwork: false
      hostname: ""
      initContainers: []
      tolerations: []
      securityContext: {}
      containers:
      - name: main
        image: HOST/controller:1.0.0
        args: []
        stdin: false
        ports: [{containerPort: 80, hostPort: 0, name: ""}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: "0.5", memory: 0.5Gi}}
status: {}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: HOST/controller:1.0.0, resources: {limits: {cpu: 2000m}}, tty: false}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {requests.cpu: 4000m, pods: "10"}, scopes: []}
---
apiVersion: v1
kind: Service
metadata: {name: service}
spec: {selector: {app: odd}, publishNotReadyAddresses: false, ports: [{port: 80, nodePort: 0, targetPort: 1}]}
"#;

#[tokio::test(start_paused = true)]
async fn what_the_server_drops_or_writes_in_other_words_is_not_written_again() {
    let sandbox = sandbox();
    let odd = tree("1.0.0", "", &[("manifests/odd.yaml", &ODD.replace("HOST", HOST))]);
    brought(&sandbox, &odd).await;
    sandbox.take_all_writes();
    sandbox.take_reads();
    let again = brought(&sandbox, &odd).await;
    assert!(sandbox.take_all_writes().is_empty(), "{:#?}", again.outcomes);
    assert!(again.outcomes.iter().all(|o| o.outcome == Outcome::Unchanged), "{:#?}", again.outcomes);
    let asked = sandbox.take_reads();
    assert!(!asked.iter().any(|read| read.contains("dryRun")), "{asked:#?}");
    // What differs is seen all the same.
    let other = ODD
        .replace("HOST", HOST)
        .replace("cpu: 1000m", "cpu: 1001m")
        .replace("targetPort: 1", "targetPort: 2");
    let changed = brought(&sandbox, &tree("1.0.0", "", &[("manifests/odd.yaml", &other)])).await;
    let outcomes = outcomes(&changed);
    for name in ["Deployment platform/odd", "Service platform/service"] {
        assert_eq!(outcomes[name], Outcome::Updated, "{outcomes:#?}");
    }
    let service = sandbox.object(&key("Service", "service")).unwrap();
    assert_eq!(service["spec"]["ports"][0]["targetPort"], json!(2));
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_rewrites_is_settled_by_a_dry_run() {
    let sandbox = sandbox();
    sandbox.mutate("/configmaps/config", |object: &mut Value| {
        object["data"]["version"] = json!("rewritten");
    });
    brought(&sandbox, &one()).await;
    sandbox.take_all_writes();
    sandbox.take_reads();
    let again = brought(&sandbox, &one()).await;
    assert!(sandbox.take_all_writes().is_empty(), "{:#?}", again.outcomes);
    let asked = sandbox.take_reads();
    assert_eq!(asked.iter().filter(|read| read.contains("dryRun=All")).count(), 1, "{asked:#?}");
    // What a new release changes is written without being asked about.
    sandbox.take_reads();
    brought(&sandbox, &two()).await;
    let asked = sandbox.take_reads();
    assert!(!asked.iter().any(|read| read.contains("dryRun")), "{asked:#?}");
    assert_eq!(sandbox.object(&key("ConfigMap", "config")).unwrap()["data"]["version"], json!("rewritten"));
}
