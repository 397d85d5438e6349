//! A cluster that cannot be asked any more while a run is under way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{brought, comparable, one, options, release, sandbox, taken_away, two};
use scantling_run::{CutOff, RunError};

#[tokio::test(start_paused = true)]
async fn a_run_says_that_it_was_cut_off_and_is_continued() {
    let whole = sandbox();
    brought(&whole, &one()).await;
    brought(&whole, &two()).await;
    let expected = comparable(&whole);
    for (status, why) in
        [(None, CutOff::Unreachable), (Some(401), CutOff::Unauthenticated), (Some(403), CutOff::Forbidden)]
    {
        let sandbox = sandbox();
        brought(&sandbox, &one()).await;
        sandbox.turn_away(Some((9, status)));
        let (ended, _) = sandbox.upgrade(&release(&two()), &options(&two()), 1).await.unwrap();
        let Err(RunError::Stopped { why: words, report, .. }) = ended else { panic!("{status:?}") };
        assert_eq!(report.cut_off, Some(why), "{status:?}: {words}");
        // What was done until then is told, and nothing that was not.
        assert!((1..=9).contains(&report.writes), "{status:?}: {}", report.writes);
        sandbox.turn_away(None);
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        let report = brought(&sandbox, &two()).await;
        assert!(report.continued && report.cut_off.is_none());
        assert_eq!(comparable(&sandbox), expected, "{status:?}");

        sandbox.turn_away(Some((4, status)));
        let ended = taken_away(&sandbox).await.unwrap();
        let Err(RunError::Stopped { report, .. }) = ended else { panic!("{status:?}") };
        assert_eq!(report.cut_off, Some(why), "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_says_no_to_one_object_cuts_nobody_off() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    sandbox.turn_away(Some((9, Some(422))));
    let (ended, _) = sandbox.upgrade(&release(&two()), &options(&two()), 1).await.unwrap();
    assert_eq!(ended.unwrap_err().report().cut_off, None);
}
