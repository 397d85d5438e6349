//! The commands that work on a cluster, from an empty one to an empty one: what an admin sees of each.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::command::{Ran, UNPUBLISHED, scantling};
use crate::golden::compare;
use crate::sandbox::Open;

/// The outputs that are kept.
pub(crate) const KEPT: &[&str] = &[
    "cluster-status-empty",
    "cluster-history-empty",
    "cluster-plan-install",
    "cluster-plan-install-80",
    "cluster-install",
    "cluster-install-progress",
    "cluster-upgrade-refused",
    "cluster-plan-conflict",
    "cluster-plan-upgrade-verbose",
    "cluster-upgrade",
    "cluster-upgrade-again",
    "cluster-status",
    "cluster-history",
    "cluster-rollback-plan",
    "cluster-rollback",
    "cluster-uninstall-plan",
    "cluster-uninstall",
    "cluster-unreachable",
];

fn release(name: &str) -> String {
    format!("{UNPUBLISHED}/releases/{name}")
}

/// The admin of a sandbox.
struct Admin(Open);

impl Admin {
    fn run(&self, arguments: &[&str]) -> Ran {
        self.at(arguments, "100")
    }

    fn at(&self, arguments: &[&str], columns: &str) -> Ran {
        let mut command = scantling(arguments);
        command
            .env("COLUMNS", columns)
            .env("KUBECONFIG", self.0.kubeconfig())
            .env("SCANTLING_MIRRORS", self.0.mirrors());
        Ran::of(&mut command)
    }

    /// A report, in which nothing is left of when, where and by whom.
    #[track_caller]
    fn keep(&self, name: &str, arguments: &[&str], code: i32) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
        let text = self.plain(&ran.out);
        compare(name, &text);
        text
    }

    /// A text without its address, times and holders; the address keeps its length, which lines depend on.
    fn plain(&self, text: &str) -> String {
        let host = self.0.url().trim_start_matches("http://");
        let text = text.replace(host, &"127.0.0.1:PORT0"[..host.len().min(15)]);
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines() {
            let line = match line.split_once(" UTC ") {
                Some((_, after)) => format!("  YYYY-MM-DD HH:MM UTC {after}"),
                None => line.to_owned(),
            };
            lines.push(match line.split_once(", by cli/") {
                Some((before, _)) => format!("{before}, by cli/HOST/PID/RANDOM"),
                None => line,
            });
        }
        lines.join("\n") + "\n"
    }

    /// Changes the cluster as a person does.
    fn patch(&self, path: &str, body: &str) {
        let host = self.0.url().trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "PATCH {path}?fieldManager=kubectl-edit HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/merge-patch+json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

/// What a run says while it works, without times and waits: those depend on the machine.
fn progress(err: &str) -> String {
    let is_wait = |line: &str| line.contains(" waiting for ") || line.ends_with(": rolled out");
    let lines = err.lines().filter(|line| !is_wait(line));
    let lines = lines.map(|line| line.split_once(' ').map_or(line, |(_, after)| after));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn a_platform_comes_is_upgraded_goes_back_and_goes() {
    let admin = Admin(Open::new(UNPUBLISHED, &["--empty"]));
    admin.keep("cluster-status-empty", &["status"], 0);
    admin.keep("cluster-history-empty", &["history"], 0);
    admin.keep("cluster-plan-install", &["plan", &release("1.20")], 0);
    let narrow = admin.at(&["plan", &release("1.20")], "80").report(0);
    compare("cluster-plan-install-80", &admin.plain(&narrow));

    let installed = admin.run(&["upgrade", &release("1.20")]);
    assert_eq!(installed.code, 0, "{}", installed.out);
    compare("cluster-install", &admin.plain(&installed.out));
    compare("cluster-install-progress", &progress(&installed.err));

    // What was never published is refused, and nothing is written.
    let writes = |admin: &Admin| admin.run(&["history"]).report(0);
    let before = writes(&admin);
    admin.keep("cluster-upgrade-refused", &["upgrade", &release("1.21")], 1);
    assert_eq!(writes(&admin), before);

    let deployment = "/apis/apps/v1/namespaces/redhat-ods-applications/deployments/etcd";
    admin.patch(deployment, r#"{"spec": {"replicas": 3}}"#);
    admin.keep("cluster-plan-conflict", &["plan", &release("1.21.1")], 1);
    admin.patch(deployment, r#"{"spec": {"replicas": 1}}"#);

    admin.keep("cluster-plan-upgrade-verbose", &["plan", &release("1.21.1"), "--verbose"], 0);
    admin.keep("cluster-upgrade", &["upgrade", &release("1.21.1"), "--yes"], 0);
    admin.keep("cluster-upgrade-again", &["upgrade", &release("1.21.1")], 0);
    admin.keep("cluster-status", &["status"], 0);
    admin.keep("cluster-history", &["history"], 0);
    admin.keep("cluster-rollback-plan", &["rollback", "--dry-run"], 0);
    admin.keep("cluster-rollback", &["rollback"], 0);

    for arguments in
        [&["status"][..], &["history"], &["plan", &release("1.21.1")], &["rollback", "1.21.1-1", "--dry-run"]]
    {
        let ran = admin.run(&[arguments, &["--output", "json"]].concat());
        let value: Value = serde_json::from_str(&ran.report(0)).unwrap();
        assert_eq!(value["format"], "scantling.dev/v1alpha1", "{arguments:?}");
        assert!(value["cluster"].as_str().unwrap().starts_with("sandbox ("), "{arguments:?}");
    }

    let alone = admin.run(&["uninstall"]).complaint(2);
    assert!(alone.contains("--yes"), "{alone}");
    admin.keep("cluster-uninstall-plan", &["uninstall", "--dry-run"], 0);
    admin.keep("cluster-uninstall", &["uninstall", "--yes"], 0);
    admin.keep("cluster-status-empty", &["status"], 0);
}

#[test]
fn a_cluster_that_goes_away_in_mid_run_is_told_with_what_continues() {
    let admin = Admin(Open::new(UNPUBLISHED, &["--empty"]));
    let folder = release("1.20");
    let mut command = std::process::Command::new(crate::command::BINARY);
    let mut child = command
        .args(["upgrade", &folder])
        .current_dir(crate::command::repository())
        .env("COLUMNS", "200")
        .env("NO_COLOR", "1")
        .env("KUBECONFIG", admin.0.kubeconfig())
        .env("SCANTLING_MIRRORS", admin.0.mirrors())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(" apply ")), "it never wrote");
    // The cluster is gone, and nobody gives an answer any more.
    drop(admin);
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(3), "{out}");
    let expected = format!("when the cluster answers again, `scantling upgrade {folder}` continues the run");
    assert!(out.contains("what is written stays (at least ") && out.contains(&expected), "{out}");
}

#[test]
fn a_cluster_that_is_not_there_is_told_at_once_and_without_credentials() {
    let home = tempfile::TempDir::new().unwrap();
    let file = home.path().join("kubeconfig");
    let kubeconfig = |server: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\nclusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
             contexts: [{{name: here, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{token: sesame}}}}]\n"
        )
    };
    let status = |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        Ran::of(scantling(&["status"]).arg("--kubeconfig").arg(&file).args(more))
    };
    let complaint = status(&kubeconfig("https://127.0.0.1:1"), &[]).complaint(3);
    compare("cluster-unreachable", &complaint);
    let complaint = status(&kubeconfig("https://127.0.0.1:1"), &["--context", "there"]).complaint(2);
    assert!(complaint.contains("no context \"there\"; it has here"), "{complaint}");
    for broken in
        [format!("{}\nmore: [\n", kubeconfig("https://127.0.0.1:1")), kubeconfig("no address at all")]
    {
        let complaint = status(&broken, &[]).complaint(2);
        assert!(complaint.contains("kubeconfig") && !complaint.contains("sesame"), "{complaint}");
    }
    let plugin =
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: /nosuch/aws, interactiveMode: Never}";
    for (credentials, blamed) in [
        (plugin, "the credential plugin /nosuch/aws"),
        ("tokenFile: /nosuch/token", "the token file /nosuch/token"),
    ] {
        let text = kubeconfig("https://127.0.0.1:1").replace("token: sesame", credentials);
        let complaint = status(&text, &[]).complaint(2);
        assert!(complaint.contains(blamed), "{complaint}");
    }
    let complaint = Ran::of(scantling(&["status"]).env("HOME", home.path())).complaint(2);
    assert!(complaint.contains("no kubeconfig") && complaint.contains("--kubeconfig"), "{complaint}");
}
