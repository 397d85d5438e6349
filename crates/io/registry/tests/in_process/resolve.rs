//! References resolved.

use http::{Method, Response, StatusCode};
use scantling_endpoint::Mirrors;
use scantling_image::Sameness;
use scantling_registry::{RegistryClient, Verdict};
use scantling_registry_server::{Effect, Subject};

use crate::support::{Registries, image, platforms, reference};

#[tokio::test(start_paused = true)]
async fn an_index_becomes_an_identity() {
    let registries = Registries::new();
    let two = image("2.7.0", &["linux/amd64", "linux/arm64"]);
    registries.push("quay.io/team/nb:1.5", &two);
    let resolved = registries.client().resolve(&reference("quay.io/team/nb:1.5")).await.unwrap();
    assert_eq!(resolved.digest, two.root);
    assert_eq!((resolved.host.as_str(), resolved.repository.as_str()), ("quay.io", "team/nb"));
    assert_eq!(resolved.identity, two.identity());
    assert_eq!(resolved.missing, []);
    let found: Vec<_> = resolved
        .platforms
        .iter()
        .map(|image| (image.platform.clone(), image.manifest.clone(), image.config.clone()))
        .collect();
    let built: Vec<_> = two
        .platforms
        .iter()
        .map(|built| (built.platform.clone(), built.manifest.clone(), built.config.clone()))
        .collect();
    assert_eq!(found, built);
    for (image, built) in resolved.platforms.iter().zip(&two.platforms) {
        let stored = |digest| two.blobs[digest].1.len() as u64;
        let layers: u64 = built.layers.iter().map(|(digest, _)| stored(digest)).sum();
        assert_eq!(image.size, stored(&built.manifest) + stored(&built.config) + layers);
    }
    // The tag is read once, by HEAD; everything else goes by digest.
    let asked = registries.asked();
    assert_eq!(asked[0], "HEAD quay.io/v2/team/nb/manifests/1.5");
    assert!(asked[1..].iter().all(|request| request.contains("sha256:")), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_single_manifest_is_for_the_platform_of_its_configuration() {
    let registries = Registries::new();
    let one = image("2.4.1", &["linux/arm64"]);
    registries.push("quay.io/team/nb:1", &one);
    let resolved = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap();
    assert_eq!(resolved.platforms[0].platform, platforms(&["linux/arm64"])[0]);
    assert_eq!(resolved.identity, one.identity());
    let other = image("2.7.0", &["linux/arm64"]);
    assert_eq!(resolved.identity.relation(&other.identity()), Sameness::Different);
}

#[tokio::test(start_paused = true)]
async fn what_was_read_by_digest_is_not_read_again() {
    let registries = Registries::new();
    registries.push("quay.io/team/nb:1", &image("1.0", &["linux/amd64", "linux/arm64"]));
    let client = registries.client();
    client.resolve(&reference("quay.io/team/nb:1")).await.unwrap();
    registries.asked();
    client.resolve(&reference("quay.io/team/nb:1")).await.unwrap();
    assert_eq!(registries.asked(), ["HEAD quay.io/v2/team/nb/manifests/1"]);
}

#[tokio::test(start_paused = true)]
async fn head_that_is_refused_or_says_nothing_is_followed_by_get() {
    let check = async |change: fn(&mut Response<bytes::Bytes>)| {
        let registries = Registries::new();
        let one = image("1.0", &["linux/amd64"]);
        registries.push("quay.io/team/nb:1", &one);
        registries.twist(move |_, request, mut response| {
            if request.method() == Method::HEAD {
                change(&mut response);
            }
            response
        });
        let resolved = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap();
        assert_eq!(resolved.digest, one.root);
        assert_eq!(registries.asked()[1], "GET quay.io/v2/team/nb/manifests/1");
    };
    check(|response| *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED).await;
    check(|response| *response.status_mut() = StatusCode::NOT_FOUND).await;
    check(|response| {
        response.headers_mut().remove("docker-content-digest");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_index_with_a_platform_that_is_gone_is_resolved_without_it() {
    let registries = Registries::new();
    let two = image("1.0", &["linux/amd64", "linux/arm64"]);
    registries.push("quay.io/team/nb:1", &two);
    let gone = two.platforms[1].manifest.clone();
    registries.fault(Subject::Manifest, Some(gone.as_str()), None, Effect::Missing);
    let resolved = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap();
    assert_eq!(resolved.platforms.len(), 1);
    assert_eq!(resolved.missing, [(two.platforms[1].platform.clone(), gone)]);
}

#[tokio::test(start_paused = true)]
async fn errors_name_host_repository_subject_and_code() {
    let registries = Registries::new();
    registries.push("quay.io/team/nb:1", &image("1.0", &["linux/amd64"]));
    let client = registries.client();
    let check = async |text: &str, verdict: Verdict, message: &str| {
        let error = client.resolve(&reference(text)).await.unwrap_err();
        assert_eq!(error.verdict(), verdict);
        assert!(error.to_string().starts_with(message), "{error}");
    };
    check(
        "quay.io/team/nb:2",
        Verdict::Absent,
        "quay.io/team/nb: manifest 2: not there: HTTP 404 MANIFEST_UNKNOWN (",
    )
    .await;
    check(
        "quay.io/team/no:1",
        Verdict::Absent,
        "quay.io/team/no: manifest 1: not there: HTTP 404 NAME_UNKNOWN (",
    )
    .await;
    check(
        "ghost.example/a:1",
        Verdict::Unreachable,
        "ghost.example/a: manifest 1: no registry of this name answers there: HTTP 421",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_no_registrys_answer_proves_nothing() {
    let registries = Registries::new();
    registries.push("quay.io/team/nb:1", &image("1.0", &["linux/amd64"]));
    registries
        .twist(|_, _, _| Response::builder().status(404).body("<html>not found</html>".into()).unwrap());
    let error = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_leaves_no_place_is_named() {
    let mut registries = Registries::new();
    registries.mirrors = Mirrors::new();
    registries
        .mirrors
        .add_registries_conf("registries.conf", "[[registry]]\nlocation = 'quay.io'\nblocked = true\n")
        .unwrap();
    let error = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "quay.io/team/nb: 1: refused by a rule: registries.conf says never to contact quay.io"
    );
    assert_eq!(registries.asked(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_mirror_is_asked_before_the_source() {
    let mut registries = Registries::new();
    let one = image("1.0", &["linux/amd64"]);
    registries.push("mirror.example:5000/m/nb:1", &one);
    registries
        .mirrors
        .add_registries_conf(
            "registries.conf",
            "[[registry]]\nlocation = 'quay.io/team'\n[[registry.mirror]]\nlocation = 'mirror.example:5000/m'\n",
        )
        .unwrap();
    let resolved = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap();
    assert_eq!((resolved.host.as_str(), resolved.repository.as_str()), ("mirror.example:5000", "m/nb"));
    assert!(registries.asked().iter().all(|request| request.contains("mirror.example:5000/v2/m/nb")));
}

#[tokio::test(start_paused = true)]
async fn a_mirror_of_several_registries_is_told_which_one_is_meant() {
    let mut registries = Registries::new();
    registries.push("mirror.example:5000/team/nb:1", &image("1.0", &["linux/amd64"]));
    let rule = "[host.\"https://mirror.example:5000\"]\n";
    registries.mirrors.add_containerd_hosts("hosts.toml", "_default", rule).unwrap();
    registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap();
    let asked = registries.asked();
    assert_eq!(asked[0], "HEAD mirror.example:5000/v2/team/nb/manifests/1?ns=quay.io");
    assert!(asked.iter().all(|request| request.ends_with("?ns=quay.io")), "{asked:?}");
}

#[test]
fn work_can_be_sent_to_other_threads() {
    fn is_send<T: Send>(_: &T) {}
    fn is_sync<T: Sync>(_: &T) {}
    let client: RegistryClient = Registries::new().client();
    let name = reference("quay.io/a/b:1");
    is_send(&client.resolve(&name));
    is_send(&client.probe(&name, &[]));
    is_send(&client.probe_all(&[]));
    let platform = &platforms(&["linux/amd64"])[0];
    is_send(&client.contents(&name, platform));
    is_send(&client.copy(&name, &name));
    is_sync(&client);
}
