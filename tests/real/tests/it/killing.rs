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

/// Waits until the operator has brought a run to its end, by the platform's status and the history. Whom the status named meanwhile is
/// printed only: what is left to do may be done between two looks.
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
}
