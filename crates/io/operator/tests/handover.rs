//! Runs that pass from one to another: the command line, an operator, the next operator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cell;

use std::time::Duration;

use cell::{Cell, files, one, play, two};
use scantling_api::ObjectKey;
use scantling_rehearse::{Gate, Kill};
use scantling_run::RunError;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How long a run of the small release may take, with both leases to be waited for.
const LIMIT: Duration = Duration::from_mins(10);

/// The write of an upgrade after which the cluster knows which release is wanted: lease, journal and stored release come before it.
fn early() -> u64 {
    let knows = |n: u64| {
        play(|cell| async move {
            installed(&cell).await;
            assert!(cell.upgrade("killed", &two(), Some(Kill::After(n))).await.is_none());
            let platform = cell.object(&ObjectKey::cluster("scantling.dev", "Platform", "platform")).unwrap();
            platform["spec"]["release"]["version"] == "2.0.0"
        })
    };
    (4..40).find(|n| knows(*n)).unwrap()
}

async fn installed(cell: &Cell) {
    let report = cell.upgrade("first", &one(), None).await.unwrap().unwrap();
    assert!(report.writes > 0);
}

/// Writes of an undisturbed upgrade, so that kills can be spread over them.
fn writes_of_an_upgrade() -> u64 {
    play(|cell| async move {
        installed(&cell).await;
        let report = cell.upgrade("second", &two(), None).await.unwrap().unwrap();
        u64::try_from(report.writes).unwrap() + 2
    })
}

fn points(writes: u64) -> Vec<Kill> {
    let early = early();
    let spread = [1, 2, 3]
        .map(|part| early + (writes - early) * part / 4)
        .map(|at| if at % 2 == 0 { Kill::After(at) } else { Kill::Before(at) });
    [Kill::After(early)].into_iter().chain(spread).collect()
}

#[test]
fn a_killed_command_line_is_followed_by_the_operator() {
    let writes = writes_of_an_upgrade();
    for kill in points(writes) {
        play(|cell| async move {
            installed(&cell).await;
            let (_goes_on, stop) = watch::channel(false);
            let gate = Gate::default();
            let story = async {
                cell.settled_on("1.0.0", LIMIT).await;
                let killed = cell.upgrade("killed", &two(), Some(kill)).await;
                assert!(killed.is_none(), "{kill:?} of {writes}");
                let took = cell.settled_on("2.0.0", LIMIT).await;
                assert!(took < Duration::from_mins(3), "{kill:?}: {took:?}\n{}", cell.told());
                assert!(cell.controller().contains("@sha256:"));
                // The command line finds nothing left to do.
                let again = cell.upgrade("again", &two(), None).await.unwrap().unwrap();
                assert_eq!(again.writes, 0, "{kill:?}");
            };
            tokio::select! {
                () = cell.operates("a", &gate, stop) => panic!("the operator ended"),
                () = story => {}
            }
        });
    }
}

#[test]
fn a_command_line_that_is_killed_before_it_told_anybody_has_changed_nothing() {
    for kill in [Kill::Before(2), Kill::After(2), Kill::Before(4)] {
        play(|cell| async move {
            installed(&cell).await;
            let (_goes_on, stop) = watch::channel(false);
            let gate = Gate::default();
            let story = async {
                cell.settled_on("1.0.0", LIMIT).await;
                let before = cell.controller();
                assert!(cell.upgrade("killed", &two(), Some(kill)).await.is_none());
                sleep(Duration::from_mins(2)).await;
                cell.settled_on("1.0.0", LIMIT).await;
                assert_eq!(cell.controller(), before, "{kill:?}");
            };
            tokio::select! {
                () = cell.operates("a", &gate, stop) => panic!("the operator ended"),
                () = story => {}
            }
        });
    }
}

#[test]
fn a_killed_operator_is_followed_by_the_next_one_and_by_the_command_line() {
    let early = early();
    for (kill, by_hand) in [(6, false), (9, true), (12, false), (16, true)] {
        play(|cell| async move {
            installed(&cell).await;
            // The files of the second release come into the cluster by a command line that is killed soon after.
            assert!(cell.upgrade("early", &two(), Some(Kill::After(early))).await.is_none());
            let (_goes_on, stop) = watch::channel(false);
            let (dies, lives) = (Gate::killing(Kill::Before(kill)), Gate::default());
            let started = Instant::now();
            cell.operates("dies", &dies, stop.clone()).await;
            assert!(started.elapsed() < LIMIT && dies.writes() < kill);
            if by_hand {
                cell.upgrade("by-hand", &two(), None).await.unwrap().unwrap();
            }
            let story = async {
                cell.settled_on("2.0.0", LIMIT).await;
                let again = cell.upgrade("again", &two(), None).await.unwrap().unwrap();
                assert_eq!(again.writes, 0);
            };
            tokio::select! {
                () = cell.operates("lives", &lives, stop) => panic!("the operator ended"),
                () = story => {}
            }
        });
    }
}

#[test]
fn one_that_is_told_to_stop_hands_over_at_once() {
    let early = early();
    play(|cell| async move {
        installed(&cell).await;
        assert!(cell.upgrade("early", &two(), Some(Kill::After(early))).await.is_none());
        let (tell, stop) = watch::channel(false);
        let (_goes_on, never) = watch::channel(false);
        let (old, new) = (Gate::default(), Gate::default());
        let first = async {
            cell.operates("old", &old, stop).await;
            let writes = old.writes();
            sleep(Duration::from_secs(20)).await;
            assert_eq!(old.writes(), writes, "it writes after its end");
            Instant::now() - Duration::from_secs(20)
        };
        let story = async {
            cell.until("the old one does the run", LIMIT, async || cell.told().contains("run-begins")).await;
            sleep(Duration::from_millis(300)).await;
            let told = Instant::now();
            tell.send_replace(true);
            cell.until("the new one leads", LIMIT, async || {
                cell.told().contains("new {\"event\":\"leads\"}")
            })
            .await;
            let handed = told.elapsed();
            assert!(handed < Duration::from_secs(4), "{handed:?}");
            let took = cell.settled_on("2.0.0", LIMIT).await;
            assert!(
                took < Duration::from_mins(1),
                "no lease had to be waited for: {took:?}\n{}",
                cell.told()
            );
        };
        tokio::select! {
            () = cell.operates("new", &new, never) => panic!("the operator ended"),
            _ = async { tokio::join!(first, story) } => {}
        }
    });
}

#[test]
fn two_that_both_think_that_they_lead_do_no_harm() {
    let early = early();
    play(|cell| async move {
        installed(&cell).await;
        assert!(cell.upgrade("early", &two(), Some(Kill::After(early))).await.is_none());
        let (_goes_on, end) = watch::channel(false);
        let (a, b) = (cell.operator("a", &Gate::default()), cell.operator("b", &Gate::default()));
        let story = async {
            cell.settled_on("2.0.0", LIMIT).await;
            sleep(Duration::from_mins(2)).await;
            assert_eq!(cell.condition("Degraded").0, "False", "{:?}", cell.condition("Degraded"));
            let again = cell.upgrade("again", &two(), None).await.unwrap().unwrap();
            assert_eq!(again.writes, 0);
        };
        tokio::select! {
            _ = async { tokio::join!(a.work(end.clone()), b.work(end.clone())) } => panic!("they ended"),
            () = story => {}
        }
    });
}

#[test]
fn a_settled_platform_is_not_written_to_but_for_six_renewals_a_minute() {
    play(|cell| async move {
        installed(&cell).await;
        let (_goes_on, stop) = watch::channel(false);
        let gate = Gate::default();
        let story = async {
            cell.settled_on("1.0.0", LIMIT).await;
            sleep(Duration::from_secs(30)).await;
            let before = gate.writes();
            sleep(Duration::from_mins(10)).await;
            let renewals = gate.writes() - before;
            assert!((55..=60).contains(&renewals), "{renewals}\n{}", cell.told());
            let (is, _, evidence) = cell.condition("Pullable");
            let said = evidence.starts_with("as of the last run, which ended 2026-")
                && evidence.ends_with("Z: 2 of 2 references can be pulled");
            assert!(is == "True" && said, "{evidence}");
            assert_eq!(cell.status().components.len(), 2);
        };
        tokio::select! {
            () = cell.operates("a", &gate, stop) => panic!("the operator ended"),
            () = story => {}
        }
    });
}

#[test]
fn a_release_that_stops_is_rolled_back_once_where_the_policy_says_so() {
    play(|cell| async move {
        installed(&cell).await;
        let (_goes_on, stop) = watch::channel(false);
        let gate = Gate::default();
        // Its image is there when the gate asks, and gone when the nodes pull.
        let story = async {
            cell.settled_on("1.0.0", LIMIT).await;
            cell.specify(json!({"onFailure": "rollback"})).await;
            assert!(
                cell.upgrade("early", &files("2.0.0", "1.0.0", "controller:absent"), None)
                    .await
                    .unwrap()
                    .is_err()
            );
            let (_, why, message) = cell.condition("Ready");
            assert_eq!(
                (why.as_str(), message.contains("1.0.0 is installed")),
                ("Settled", true),
                "a refusal writes nothing"
            );
        };
        tokio::select! {
            () = cell.operates("a", &gate, stop) => panic!("the operator ended"),
            () = story => {}
        }
    });
}

/// The release in which one workload never runs: no node has what it asks for.
fn never_running() -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut files = two();
    let path = "manifests/controller.yaml";
    let workload: serde_json::Value = serde_yaml_of(&files[path]);
    let mut workload = workload;
    workload["spec"]["template"]["spec"]["nodeSelector"] = json!({"gpu": "yes"});
    files.insert(path.to_owned(), workload.to_string().into_bytes());
    files
}

/// The object of a manifest, as the release reads it.
fn serde_yaml_of(manifest: &[u8]) -> serde_json::Value {
    let release = scantling_release::Release::read(
        &[
            ("release.yaml".to_owned(), b"apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: a\nversion: 1.0.0\nnamespace: ours\nmanifests: [m.yaml]\n".to_vec()),
            ("m.yaml".to_owned(), manifest.to_vec()),
        ]
        .into_iter()
        .collect(),
        &scantling_release::Settings::default(),
    )
    .unwrap();
    release.objects[0].value.clone()
}

#[test]
fn a_release_that_never_works_is_rolled_back_once_and_the_platform_says_why() {
    play(|cell| async move {
        installed(&cell).await;
        let (_goes_on, stop) = watch::channel(false);
        let gate = Gate::default();
        let story = async {
            cell.settled_on("1.0.0", LIMIT).await;
            cell.specify(json!({"onFailure": "rollback"})).await;
            let before = cell.controller();
            let ended = cell.upgrade("broken", &never_running(), None).await.unwrap();
            let Err(RunError::Stopped { why, .. }) = ended else { panic!("{ended:?}") };
            assert!(why.contains("Deployment ours/controller is not healthy"), "{why}");
            assert!(why.contains("Unschedulable"), "{why}");
            cell.until("2.0.0 was rolled back", LIMIT, async || cell.condition("Ready").1 == "RolledBack")
                .await;
            assert_eq!(cell.installed().await.as_deref(), Some("1.0.0"));
            assert_eq!(cell.controller(), before);
            let (_, _, message) = cell.condition("Ready");
            assert!(
                message.contains("2.0.0 was rolled back") && message.contains("Unschedulable"),
                "{message}"
            );
            // Not again and again.
            let writes = gate.writes();
            sleep(Duration::from_mins(30)).await;
            assert_eq!(cell.condition("Ready").1, "RolledBack");
            assert!(gate.writes() - writes < 200, "{}", gate.writes() - writes);
        };
        tokio::select! {
            () = cell.operates("a", &gate, stop) => panic!("the operator ended"),
            () = story => {}
        }
    });
}
