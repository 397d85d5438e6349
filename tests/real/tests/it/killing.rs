//! Runs that are killed, and who brings them to their end.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use scantling_real_tests::RealCluster;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::{done, get, scantling, soon, writes_since};

/// Starts a run and kills it when it has written so often.
pub(crate) fn kill_after(cluster: &RealCluster, arguments: &[&str], writes: usize) {
    let seen = cluster.requests().unwrap().len();
    let mut child =
        scantling(cluster, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while writes_since(cluster, seen).len() < writes {
        assert!(child.try_wait().unwrap().is_none(), "{arguments:?} ended before it was killed");
        assert!(started.elapsed().as_secs() < 90, "{arguments:?} writes nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    println!("killed after {} writes", writes_since(cluster, seen).len());
}

/// The runs that the cluster has seen, newest first.
pub(crate) fn past(cluster: &RealCluster) -> Vec<Value> {
    let text = done(cluster, &["history", "--output", "json"]);
    serde_json::from_str::<Value>(&text).unwrap()["runs"].as_array().unwrap().clone()
}

/// Waits until the operator has brought a run to its end: while it does so the platform says so, and afterwards the history.
pub(crate) fn finished_by_the_operator(cluster: &RealCluster, action: &str, version: &str) {
    let before = past(cluster).len();
    let mut holders = BTreeSet::new();
    let run = soon("the end of the run", 240, || {
        let status = get(cluster, &["platform", "platform"])["status"].clone();
        holders.extend(status["run"]["holder"].as_str().map(ToOwned::to_owned));
        let settled = status["release"] == version && status["run"].is_null();
        let runs = past(cluster);
        (settled && runs.len() > before).then(|| runs[0].clone())
    });
    println!("{run:#}\nheld by {holders:?}");
    assert_eq!((&run["action"], &run["version"]), (&json!(action), &json!(version)));
    assert_eq!(run["outcome"], "finished");
    let holder = run["holder"].as_str().unwrap();
    assert!(holder.starts_with("operator/"), "{run:#}");
    assert!(holders.iter().any(|it| it.starts_with("operator/")), "{holders:?}");
}

/// Kills the operator, without a word to it, when it has begun to write for a run that it took over.
pub(crate) fn kill_operator(cluster: &RealCluster) {
    let seen = cluster.requests().unwrap().len();
    let started = Instant::now();
    let continues = |cluster: &RealCluster| {
        let requests = cluster.requests().unwrap();
        requests.iter().skip(seen).any(|it| {
            it.is_write() && it.user.ends_with(":scantling-operator") && it.uri.contains("/scantling-journal")
        })
    };
    while !continues(cluster) {
        assert!(started.elapsed().as_secs() < 120, "the operator takes nothing over");
        std::thread::sleep(Duration::from_millis(20));
    }
    // It must neither hear that it is to end, which would give its leases back, nor come back under its name, to which they belong.
    let signal = |signal: &str| {
        for node in cluster.nodes() {
            let script = format!("pkill -{signal} -f '^/usr/bin/[s]cantling operator' || true");
            cluster.node_run(node, &script).unwrap();
        }
    };
    signal("STOP");
    let lease = get(cluster, &["lease", "scantling-run", "-n", "scantling-system"]);
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap();
    let pod = holder.strip_prefix("operator/").expect("the operator holds the lease");
    cluster.run(&["delete", "pod", pod, "-n", "scantling-system", "--force", "--grace-period=0"]).unwrap();
    signal("KILL");
    println!("killed {holder}");
}
