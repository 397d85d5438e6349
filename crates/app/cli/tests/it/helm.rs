//! The real Helm on a sandbox.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Ran, UNPUBLISHED, run};
use crate::sandbox::{Open, tool};

const CHART: &str = "apiVersion: v2\nname: tiny\nversion: 0.1.0\n";

const VALUES: &str = "note: hello\nimage: registry.redhat.io/rhods/etcd-rhel8:3.5.4\n";

const TEMPLATE: &str = r"apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-notes}
data: {note: {{ .Values.note | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: 2
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: c, image: {{ .Values.image | quote }}}]}
";

fn helm() -> Option<PathBuf> {
    tool("helm", "SCANTLING_TEST_HELM")
}

fn chart(folder: &Path) -> String {
    let chart = folder.join("tiny");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(chart.join("Chart.yaml"), CHART).unwrap();
    fs::write(chart.join("values.yaml"), VALUES).unwrap();
    fs::write(chart.join("templates/all.yaml"), TEMPLATE).unwrap();
    chart.to_str().unwrap().to_owned()
}

#[test]
fn helm_runs_as_a_command_of_the_sandbox() {
    let Some(helm) = helm() else { return };
    let ran = run(&["sandbox", UNPUBLISHED, "--", helm.to_str().unwrap(), "version"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.says(&["version.BuildInfo{Version:\"v4."]);
}

#[test]
fn a_chart_is_installed_upgraded_rolled_back_and_removed() {
    let Some(helm) = helm() else { return };
    let open = Open::new(UNPUBLISHED, &[]);
    let chart = chart(open.home());
    let helm = |arguments: &[&str]| -> Ran { open.run(&helm, arguments) };

    let ran = helm(&["install", "one", &chart, "--wait", "--timeout", "60s"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.says(&["NAME: one", "STATUS: deployed", "REVISION: 1"]);
    let listed: serde_json::Value = serde_json::from_str(&helm(&["list", "-o", "json"]).report(0)).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["status"]), (&"one".into(), &"deployed".into()), "{listed}");
    // Helm waited: both pods run.
    let status = helm(&["status", "one"]).report(0);
    assert!(status.contains("one    2/2     2            2"), "{status}");

    let ran = helm(&["upgrade", "one", &chart, "--set", "note=again", "--wait", "--timeout", "60s"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.says(&["REVISION: 2"]);
    assert!(helm(&["get", "manifest", "one"]).report(0).contains("note: \"again\""));
    let ran = helm(&["rollback", "one", "1", "--wait"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(helm(&["get", "manifest", "one"]).report(0).contains("note: \"hello\""));
    let history: serde_json::Value =
        serde_json::from_str(&helm(&["history", "one", "-o", "json"]).report(0)).unwrap();
    assert_eq!(history.as_array().map(Vec::len), Some(3), "{history}");

    helm(&["uninstall", "one", "--wait"]).says(&["release \"one\" uninstalled"]);
    assert_eq!(helm(&["list", "-o", "json"]).report(0).trim(), "[]");
}

#[test]
fn a_chart_whose_image_is_nowhere_does_not_become_ready() {
    let Some(helm) = helm() else { return };
    let open = Open::new(UNPUBLISHED, &[]);
    let chart = chart(open.home());
    let image = "image=registry.redhat.io/rhods/etcd-rhel8:0.0.0";
    let ran = open.run(&helm, &["install", "two", &chart, "--set", image, "--wait", "--timeout", "2s"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    let status = open.run(&helm, &["status", "two"]).report(0);
    assert!(status.contains("STATUS: failed") && status.contains("two    0/2"), "{status}");
}
