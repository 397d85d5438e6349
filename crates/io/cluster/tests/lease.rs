//! Leases between several possible holders, on a sandbox' API server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{Clock, Cluster, ClusterError, Held, Lease, Write};
use scantling_registry_server::RegistryServer;
use scantling_rehearse::{Gate, InProcess};
use scantling_sandbox::{Flavour, World, WorldConfig};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

const SYSTEM: &str = "scantling-system";
const LASTS: Duration = Duration::from_secs(15);

struct Cell {
    sandbox: InProcess,
}

impl Cell {
    async fn new() -> Self {
        let world = World::new(WorldConfig::new(7, Flavour::Kubernetes), RegistryServer::new());
        let cell = Self { sandbox: InProcess::new(world) };
        let cluster = cell.client(&Arc::default());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}});
        let served = cluster.served().await.unwrap();
        cluster.write(&served, &Write::Create { object: namespace }).await.unwrap();
        cell
    }

    /// A client whose requests never arrive while `cut` is set.
    fn client(&self, cut: &Arc<AtomicBool>) -> Cluster {
        let (inner, cut) = (self.sandbox.kubernetes(Gate::default()), cut.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (inner, cut) = (inner.clone(), cut.clone());
            async move {
                if cut.load(Ordering::Relaxed) {
                    return std::future::pending().await;
                }
                inner.oneshot(request).await
            }
        });
        Cluster::over(service, 1)
    }

    /// A possible holder whose clock is wrong by `skew`.
    fn holder(&self, name: &str, skew: i64, cut: &Arc<AtomicBool>) -> Lease {
        let now = self.sandbox.with(|world| world.timestamp());
        let clock = Clock::starting_at(now.checked_add(SignedDuration::from_secs(skew)).unwrap());
        self.client(cut).lease(SYSTEM, "scantling-run", name, LASTS, clock)
    }

    fn lease(&self) -> Value {
        let key = ObjectKey::namespaced("coordination.k8s.io", "Lease", SYSTEM, "scantling-run");
        self.sandbox.with(|world| world.objects().find(|(k, _)| **k == key).unwrap().1.clone())
    }

    fn claimed_by(&self) -> String {
        self.lease().pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap().to_owned()
    }
}

fn by(held: Held) -> (String, Timestamp) {
    match held {
        Held::By { holder, expires } => (holder, expires),
        Held::Mine => panic!("it was given to the second"),
    }
}

/// Runs a test on a sandbox with virtual time.
fn play(test: impl AsyncFnOnce(&Cell)) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let cell = Cell::new().await;
        let sandbox = cell.sandbox.clone();
        sandbox.pace(test(&cell)).await;
    });
}

#[test]
fn it_is_kept_given_back_and_taken() {
    play(async |cell| {
        let up = Arc::default();
        let (mut one, mut two) = (cell.holder("cli/a", 0, &up), cell.holder("operator/b", 0, &up));
        assert_eq!(one.try_acquire().await.unwrap(), Held::Mine);
        assert_eq!(by(two.try_acquire().await.unwrap()).0, "cli/a");
        for _ in 0..10 {
            sleep(LASTS / 3).await;
            assert_eq!(one.renew().await.unwrap(), Held::Mine);
            assert_eq!(by(two.try_acquire().await.unwrap()).0, "cli/a");
        }
        one.release().await.unwrap();
        assert_eq!(two.try_acquire().await.unwrap(), Held::Mine);
        assert_eq!(by(one.renew().await.unwrap()).0, "operator/b");
        assert_eq!(cell.lease().pointer("/spec/leaseTransitions"), Some(&json!(1)));
        // Giving back what another one holds does nothing.
        one.release().await.unwrap();
        assert_eq!(cell.claimed_by(), "operator/b");
    });
}

#[test]
fn a_dead_holder_is_followed_after_its_time_whatever_the_clocks_say() {
    for skew in [0, -3600 * 24, 3600 * 24] {
        play(async move |cell| {
            let up = Arc::default();
            let (mut dead, mut next) = (cell.holder("dead", skew, &up), cell.holder("next", 0, &up));
            assert_eq!(dead.try_acquire().await.unwrap(), Held::Mine);
            sleep(Duration::from_secs(100)).await;
            // Nobody renews, but the newcomer cannot know since when.
            let first = Instant::now();
            let (_, expires) = by(next.try_acquire().await.unwrap());
            let mut tries = 0;
            while let Held::By { holder, expires: now } = next.try_acquire().await.unwrap() {
                assert_eq!((holder.as_str(), now.as_second()), ("dead", expires.as_second()));
                sleep(Duration::from_secs(2)).await;
                tries += 1;
            }
            let waited = first.elapsed();
            assert!(tries > 5 && waited >= LASTS && waited < LASTS + Duration::from_secs(3), "{waited:?}");
            // Whoever was thought dead learns of it.
            assert_eq!(by(dead.renew().await.unwrap()).0, "next");
            assert_eq!(dead.trusted_until(), None);
        });
    }
}

#[test]
fn a_holder_that_is_cut_off_stops_before_another_one_starts() {
    play(async |cell| {
        let (cut, up) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (mut one, mut two) = (cell.holder("one", 0, &cut), cell.holder("two", 0, &up));
        assert_eq!(one.try_acquire().await.unwrap(), Held::Mine);
        let works = async {
            let why = one.keep().await;
            (Instant::now(), why)
        };
        let rival = async {
            sleep(Duration::from_mins(1)).await;
            assert_eq!(by(two.try_acquire().await.unwrap()).0, "one");
            cut.store(true, Ordering::Relaxed);
            while two.try_acquire().await.unwrap() != Held::Mine {
                sleep(Duration::from_millis(100)).await;
            }
            Instant::now()
        };
        let ((stopped, why), taken) = tokio::join!(works, rival);
        assert!(stopped < taken, "{why}: both for {:?}", stopped - taken);
        assert_eq!(why, "it could not be renewed: the API server does not answer in time");
        assert_eq!(one.trusted_until(), None);
    });
}

#[test]
fn of_many_at_once_one_gets_it() {
    play(async |cell| {
        let up = Arc::default();
        let mut all: Vec<Lease> = (0..5).map(|n| cell.holder(&format!("h{n}"), 0, &up)).collect();
        for round in 0..2 {
            let tries = futures::future::join_all(all.iter_mut().map(Lease::try_acquire)).await;
            let mine = tries.iter().filter(|held| matches!(held, Ok(Held::Mine))).count();
            assert_eq!((round, mine), (round, 1), "{tries:?}");
            let holder = cell.claimed_by();
            for (lease, held) in all.iter().zip(&tries) {
                assert_eq!(*lease.holder() == holder, matches!(held, Ok(Held::Mine)));
            }
            // Everybody forgets whose it was, and its time passes: all try to take it over at once.
            sleep(LASTS + Duration::from_secs(1)).await;
        }
    });
}

#[test]
fn what_others_do_to_the_object_is_lived_with() {
    play(async |cell| {
        let up = Arc::default();
        let mut lease = cell.holder("one", 0, &up);
        let cluster = cell.client(&up);
        let served = cluster.served().await.unwrap();
        assert_eq!(lease.try_acquire().await.unwrap(), Held::Mine);
        let touched = Write::MergePatch {
            object: cell.lease(),
            subresource: None,
            patch: json!({"metadata": {"labels": {"team": "a"}}}),
        };
        cluster.write(&served, &touched).await.unwrap();
        assert_eq!(lease.renew().await.unwrap(), Held::Mine);
        assert_eq!(object::label(&cell.lease(), "team"), Some("a"));

        let deleted = Write::Delete { object: cell.lease(), uid: None, grace_seconds: None };
        cluster.write(&served, &deleted).await.unwrap();
        // Somebody else may have had it meanwhile, so this one no longer trusts in it; it may take it anew.
        assert!(!matches!(lease.renew().await, Ok(Held::Mine)));
        assert_eq!(lease.trusted_until(), None);
        assert_eq!(lease.try_acquire().await.unwrap(), Held::Mine);

        // A record that claims to last for good, or nothing at all.
        for (seconds, patience) in [(i64::from(i32::MAX), 3600), (1, 1)] {
            let patch = json!({"spec": {"holderIdentity": "odd", "leaseDurationSeconds": seconds}});
            let odd = Write::MergePatch { object: cell.lease(), subresource: None, patch };
            cluster.write(&served, &odd).await.unwrap();
            let asked = Instant::now();
            while lease.try_acquire().await.unwrap() != Held::Mine {
                sleep(Duration::from_secs(1)).await;
            }
            let waited = asked.elapsed().as_secs();
            assert!(waited >= patience && waited < patience + 3, "{seconds}: {waited}");
        }
    });
}

#[test]
fn without_its_namespace_there_is_none() {
    play(async |cell| {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let mut lease = cell.client(&Arc::default()).lease("absent", "x", "one", LASTS, clock);
        assert!(matches!(lease.try_acquire().await, Err(ClusterError::NotFound { .. })));
    });
}
