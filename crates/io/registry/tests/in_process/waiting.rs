//! Rate limits, failing servers, broken connections, on virtual time.

use std::time::Duration;

use scantling_registry::{Problem, Verdict};
use scantling_registry_server::{Effect, Subject};
use tokio::time::Instant;

use crate::support::{Registries, image, layer, reference, seconds_since};

fn limited(retry_after: Option<u32>) -> Effect {
    Effect::Status { status: 429, retry_after }
}

fn registries() -> Registries {
    let registries = Registries::new();
    registries.push("hub.example/charmed/argoexec:3.4.16", &image("1.0", &["linux/amd64"]));
    registries
}

const NAME: &str = "hub.example/charmed/argoexec:3.4.16";

// C020, canonical/bundle-kubeflow#1274: 429 on a manifest HEAD is not a missing image.
#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_waited_for() {
    let registries = registries();
    registries.fault(Subject::Manifest, None, Some(1), limited(Some(120)));
    let start = Instant::now();
    let probe = registries.client().probe(&reference(NAME), &[]).await;
    assert_eq!(probe.verdict, Verdict::Pullable);
    assert_eq!(seconds_since(start), 120);
    let asked = registries.asked();
    let by_tag = asked.iter().filter(|request| request.contains("3.4.16")).count();
    assert_eq!(by_tag, 2, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_that_lasts_is_said_as_such() {
    for (retry_after, waited) in [(Some(3600), 0), (Some(10), 40)] {
        let registries = registries();
        registries.fault(Subject::Manifest, None, None, limited(retry_after));
        let start = Instant::now();
        let probe = registries.client().probe(&reference(NAME), &[]).await;
        assert_eq!(probe.verdict, Verdict::RateLimited);
        let elapsed = seconds_since(start);
        assert!((waited..=waited + 2).contains(&elapsed), "{elapsed}");
        let detail = &probe.attempts[0].detail;
        assert!(detail.contains(&format!("rate limited for {} s", retry_after.unwrap())), "{detail}");
        assert!(detail.contains("HTTP 429"), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_holds_for_every_request_to_the_registry() {
    let registries = registries();
    registries.push("hub.example/other:1", &image("2.0", &["linux/amd64"]));
    registries.push("elsewhere.example/other:1", &image("2.0", &["linux/amd64"]));
    registries.fault(Subject::Manifest, Some("3.4.16"), Some(1), limited(Some(60)));
    let client = registries.client();
    let start = Instant::now();
    let at = async |name: &str| {
        client.resolve(&reference(name)).await.unwrap();
        seconds_since(start)
    };
    let (limited, same, elsewhere) =
        tokio::join!(at(NAME), at("hub.example/other:1"), at("elsewhere.example/other:1"));
    assert_eq!((limited, elsewhere), (60, 0));
    assert_eq!(same, 60);
}

#[tokio::test(start_paused = true)]
async fn failing_servers_and_broken_connections_are_asked_again() {
    for effect in [Effect::Status { status: 503, retry_after: None }, Effect::Outage] {
        let registries = registries();
        registries.fault(Subject::Manifest, None, Some(2), effect.clone());
        assert_eq!(registries.client().probe(&reference(NAME), &[]).await.verdict, Verdict::Pullable);

        registries.fault(Subject::Manifest, None, None, effect);
        registries.asked();
        let probe = registries.client().probe(&reference(NAME), &[]).await;
        assert_eq!(probe.verdict, Verdict::Unreachable);
        assert_eq!(registries.asked().len(), 5);
    }
    let registries = registries();
    registries.outage("hub.example");
    let error = registries.client().resolve(&reference(NAME)).await.unwrap_err();
    assert_eq!(error.to_string(), "hub.example/charmed/argoexec: manifest 3.4.16: connection refused");
}

#[tokio::test(start_paused = true)]
async fn never_absent_for_what_is_no_answer() {
    for status in [401, 403, 429, 500, 502, 503, 504] {
        for subject in [Subject::Manifest, Subject::Blob] {
            let registries = registries();
            registries.fault(subject, None, None, Effect::Status { status, retry_after: None });
            let verdict = registries.client().probe(&reference(NAME), &[]).await.verdict;
            let expected = match status {
                401 => Verdict::Unauthenticated,
                403 => Verdict::Forbidden,
                429 => Verdict::RateLimited,
                _ => Verdict::Unreachable,
            };
            assert_eq!(verdict, expected, "{status} {subject:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_waits_the_same() {
    let run = async |seed: u64| {
        let mut registries = registries();
        registries.options.seed = seed;
        registries.fault(Subject::Manifest, None, Some(3), Effect::Status { status: 503, retry_after: None });
        let start = Instant::now();
        registries.client().resolve(&reference(NAME)).await.unwrap();
        start.elapsed()
    };
    let (first, again, other) = (run(1).await, run(1).await, run(2).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!(first > Duration::from_millis(800) && first < Duration::from_millis(1760), "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_never_answers_is_given_up() {
    let options = scantling_registry::Options { retries: 0, ..Default::default() };
    let silent = tower::service_fn(|_: http::Request<bytes::Bytes>| {
        std::future::pending::<Result<http::Response<scantling_registry::Body>, scantling_registry::BoxError>>(
        )
    });
    let client = scantling_registry::RegistryClient::new(
        silent,
        scantling_endpoint::Mirrors::new(),
        scantling_endpoint::Keyring::new(),
        options,
    );
    let start = Instant::now();
    let error = client.resolve(&reference(NAME)).await.unwrap_err();
    assert_eq!(*error.problem, Problem::Unreachable { detail: "no answer within 30 s".to_owned() });
    assert_eq!(seconds_since(start), 30);
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_at_the_same_time_than_allowed() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let slow = tower::service_fn(move |_: http::Request<bytes::Bytes>| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, scantling_registry::BoxError>(
                http::Response::builder()
                    .status(400)
                    .body(scantling_registry::full(bytes::Bytes::new()))
                    .unwrap(),
            )
        }
    });
    let options = scantling_registry::Options { parallel: 3, ..Default::default() };
    let client = scantling_registry::RegistryClient::new(
        slow,
        scantling_endpoint::Mirrors::new(),
        scantling_endpoint::Keyring::new(),
        options,
    );
    let names: Vec<_> = (0..20).map(|n| reference(&format!("quay.io/a/b:{n}"))).collect();
    futures::future::join_all(names.iter().map(|name| client.resolve(name))).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn content_that_breaks_off_once_is_asked_for_again() {
    let registries = registries();
    let one = image("1.0", &["linux/amd64"]);
    registries.fault(Subject::Blob, Some(layer(&one, 0).as_str()), Some(1), Effect::Truncate { bytes: 5 });
    let contents = registries.client().contents(&reference(NAME), &one.platforms[0].platform).await.unwrap();
    assert_eq!(contents.version_of("tensorflow"), Some("1.0"));
}
