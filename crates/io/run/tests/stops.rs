//! Runs that are killed or stopped by a person: what is told of them, and who goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::Duration;

use common::Cut;
use common::platform::{brought, one, options, release, sandbox, two};
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
