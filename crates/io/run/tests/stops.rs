//! Runs that are killed or stopped by a person: what is told of them, and who goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::Duration;

use common::Cut;
use common::platform::{
    as_before, brought, comparable, gone_back, one, options, release, sandbox, two, well,
};
use scantling_run::{Books, Options, RunError, What, status, upgrade};
use tokio::sync::watch;

#[tokio::test(start_paused = true)]
async fn a_run_that_was_killed_is_named_for_as_long_as_its_lease_lasts() {
    let sandbox = sandbox();
    sandbox.cut(Some(Cut::After(9)));
    assert!(sandbox.upgrade(&release(&one()), &options(&one()), 1).await.is_none());
    sandbox.cut(None);
    let environment = sandbox.environment(2);
    let soon = status(&environment).await.unwrap();
    assert_eq!((soon.open.is_some(), soon.holder.as_deref()), (true, Some("cli/test")));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let later = status(&environment).await.unwrap();
    assert_eq!((later.open.is_some(), later.holder.as_deref()), (true, None));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_person_stops_ends_between_two_writes_and_waits_for_a_person() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    for pauses in [true, false] {
        sandbox.take_all_writes();
        let environment = sandbox.environment(1);
        let (ask, stop) = watch::channel(false);
        let stopped = Options { stop: Some(stop), pauses, ..options(&two()) };
        let ended = upgrade(&environment, &release(&two()), &stopped, &mut |event| {
            if matches!(event.what, What::Object { .. }) {
                let _ = ask.send(true);
            }
        })
        .await;
        let Err(RunError::Stopped { report, .. }) = ended else { panic!("not stopped") };
        let writes = sandbox.take_writes();
        // The note that it was stopped is none of the run's own.
        assert_eq!(report.writes + usize::from(pauses), writes.len(), "{writes:#?}");
        let open = Books::of(&environment.cluster).await.unwrap().open.unwrap();
        assert_eq!((open.paused, open.version.as_str()), (pauses, "2.0.0"));
    }
    let report = brought(&sandbox, &two()).await;
    assert!(report.continued);
    assert_eq!(Books::of(&sandbox.environment(1).cluster).await.unwrap().open, None);
}

/// The release in which one workload never runs: no node has what it asks for.
fn broken() -> scantling_release::Tree {
    let mut tree = two();
    let workload = String::from_utf8(tree["manifests/a.yaml"].clone()).unwrap();
    let workload =
        workload.replace("      containers:", "      nodeSelector: {gpu: 'yes'}\n      containers:");
    tree.insert("manifests/a.yaml".to_owned(), workload.into_bytes());
    tree
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_does_not_run_is_told_with_what_its_pods_say() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let before = comparable(&sandbox);
    let mut impatient = options(&broken());
    impatient.waits.rollout = Duration::from_mins(2);
    let (ended, events) = sandbox.upgrade(&release(&broken()), &impatient, 1).await.unwrap();
    let Err(RunError::Stopped { why, report, .. }) = ended else { panic!("not stopped") };
    assert!(why.contains("Deployment platform/a-controller is not healthy"), "{why}");
    assert!(why.contains("Unschedulable: 0/1 nodes are available"), "{why}");
    let finding = report.findings.iter().find(|finding| finding.code.as_str() == "SCN0805").unwrap();
    assert!(finding.message.contains("Unschedulable"), "{}", finding.message);
    // Whoever watches is told before the wait is over.
    let told = events.iter().filter(|event| event.to_string().contains("Unschedulable"));
    assert!(told.count() >= 1, "{events:#?}");
    let environment = sandbox.environment(1);
    let found = status(&environment).await.unwrap();
    assert!(found.unhealthy.iter().any(|it| it.why.contains("Unschedulable")), "{:?}", found.unhealthy);
    // It is gone back from, to what ran.
    let report = well(gone_back(&sandbox, None).await.unwrap());
    assert_eq!((report.version.as_str(), report.from.as_deref()), ("1.0.0", Some("2.0.0")));
    as_before(before, &sandbox);
}
