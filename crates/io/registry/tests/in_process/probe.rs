//! The gate's question: can this be pulled?

use http::Method;
use scantling_image::Digest;
use scantling_registry::Verdict;
use scantling_registry_server::{Effect, Subject};

use crate::support::{Registries, image, layer, platforms, reference};

#[tokio::test(start_paused = true)]
async fn manifest_configuration_and_a_byte_of_each_layer_are_asked_for() {
    let registries = Registries::new();
    let two = image("1.0", &["linux/amd64", "linux/arm64"]);
    registries.push("quay.io/team/nb:1", &two);
    let probe =
        registries.client().probe(&reference("quay.io/team/nb:1"), &platforms(&["linux/amd64"])).await;
    assert_eq!(probe.verdict, Verdict::Pullable);
    let amd64 = &two.platforms[0];
    let path = |kind: &str, digest: &Digest| format!("GET quay.io/v2/team/nb/{kind}/{digest}");
    let mut expected = vec!["HEAD quay.io/v2/team/nb/manifests/1".to_owned()];
    expected.push(path("manifests", &two.root));
    expected.push(path("manifests", &amd64.manifest));
    expected.push(path("blobs", &amd64.config));
    expected.extend(amd64.layers.iter().map(|(digest, _)| path("blobs", digest)));
    assert_eq!(registries.asked(), expected);
    let resolved = probe.resolved.unwrap();
    assert_eq!(resolved.platforms.len(), 1);
    assert_eq!(
        probe.attempts[0].detail,
        format!("{} for linux/amd64: manifest, configuration and 2 layers", two.root)
    );
}

/// The second incident of this field: a digest that was never published.
#[tokio::test(start_paused = true)]
async fn a_digest_that_was_never_published_is_absent() {
    let registries = Registries::new();
    registries.push("quay.io/modh/openvino:1", &image("1.0", &["linux/amd64"]));
    let name = format!("quay.io/modh/openvino@{}", Digest::of(b"never published"));
    let probe = registries.client().probe(&reference(&name), &platforms(&["linux/amd64"])).await;
    assert_eq!((probe.verdict, probe.resolved), (Verdict::Absent, None));
    assert!(probe.attempts[0].detail.contains("MANIFEST_UNKNOWN"), "{}", probe.attempts[0].detail);
}

#[tokio::test(start_paused = true)]
async fn a_piece_that_is_gone_makes_the_image_absent() {
    let one = image("1.0", &["linux/amd64"]);
    let name = reference("quay.io/team/nb:1");
    let wanted = platforms(&["linux/amd64"]);
    for (piece, word) in [(layer(&one, 1), "layer"), (one.platforms[0].config.clone(), "configuration")] {
        let registries = Registries::new();
        registries.push("quay.io/team/nb:1", &one);
        // HEAD still answers from the descriptor.
        let digest = piece.clone();
        registries.twist(move |_, request, mut response| {
            if request.method() == Method::GET && request.uri().path().ends_with(digest.as_str()) {
                *response.status_mut() = http::StatusCode::NOT_FOUND;
                *response.body_mut() =
                    r#"{"errors":[{"code":"BLOB_UNKNOWN","message":"blob unknown"}]}"#.into();
            }
            response
        });
        let probe = registries.client().probe(&name, &wanted).await;
        assert_eq!(probe.verdict, Verdict::Absent);
        let detail = &probe.attempts[0].detail;
        assert!(detail.starts_with(&format!("{word} {piece}: not there: HTTP 404 BLOB_UNKNOWN")), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn damaged_content_is_found() {
    let one = image("1.0", &["linux/amd64"]);
    let check = async |subject: Subject, digest: &Digest, bytes: usize, part: &str| {
        let registries = Registries::new();
        registries.push("quay.io/team/nb:1", &one);
        registries.fault(subject, Some(digest.as_str()), None, Effect::Truncate { bytes });
        let probe = registries.client().probe(&reference("quay.io/team/nb:1"), &[]).await;
        assert_eq!(probe.verdict, Verdict::DigestMismatch);
        assert!(probe.attempts[0].detail.contains(part), "{}", probe.attempts[0].detail);
    };
    check(Subject::Manifest, &one.root, 40, "40 bytes with the digest").await;
    check(Subject::Blob, &one.platforms[0].config, 10, "10 bytes came").await;
    check(Subject::Blob, &layer(&one, 0), 0, "0 bytes came").await;
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_answers_with_another_digest_is_found() {
    let one = image("1.0", &["linux/amd64"]);
    let other = image("2.0", &["linux/amd64"]);
    // By HEAD, by the header of GET, and by other bytes altogether.
    for lie in [Method::HEAD, Method::GET] {
        let registries = Registries::new();
        registries.push("quay.io/team/nb:1", &one);
        let (method, claimed) = (lie.clone(), other.root.to_string());
        registries.twist(move |_, request, mut response| {
            if request.uri().path().contains("/manifests/") {
                if *request.method() == method {
                    response.headers_mut().insert("docker-content-digest", claimed.parse().unwrap());
                } else {
                    response.headers_mut().remove("docker-content-digest");
                }
            }
            response
        });
        let name = match lie {
            Method::HEAD => format!("quay.io/team/nb@{}", one.root),
            _ => "quay.io/team/nb:1".to_owned(),
        };
        let probe = registries.client().probe(&reference(&name), &[]).await;
        assert_eq!(probe.verdict, Verdict::DigestMismatch, "{lie} {:?}", probe.attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_of_another_size_is_found() {
    let registries = Registries::new();
    let one = image("1.0", &["linux/amd64"]);
    registries.push("quay.io/team/nb:1", &one);
    registries.twist(|_, _, mut response| {
        if let Some(range) = response.headers_mut().get_mut("content-range") {
            *range = "bytes 0-0/7".parse().unwrap();
        }
        response
    });
    let probe = registries.client().probe(&reference("quay.io/team/nb:1"), &[]).await;
    assert_eq!(probe.verdict, Verdict::DigestMismatch);
    assert!(probe.attempts[0].detail.contains("7 bytes came"), "{}", probe.attempts[0].detail);
}

// C019, oauth2-proxy/oauth2-proxy#2218: an index has two 32-bit arm entries and no arm64.
#[tokio::test(start_paused = true)]
async fn every_wanted_platform_must_be_there() {
    let registries = Registries::new();
    let index = image("1.0", &["linux/amd64", "linux/arm/v6", "linux/arm/v7", "linux/ppc64le"]);
    registries.push("quay.io/o/proxy:7", &index);
    registries.push("quay.io/o/single:7", &image("1.0", &["linux/amd64"]));
    let check = async |name: &str, wanted: &[&str], verdict: Verdict, part: &str| {
        let probe = registries.client().probe(&reference(name), &platforms(wanted)).await;
        assert_eq!(probe.verdict, verdict, "{name} {wanted:?}");
        assert!(probe.attempts[0].detail.contains(part), "{}", probe.attempts[0].detail);
    };
    check("quay.io/o/proxy:7", &["linux/amd64"], Verdict::Pullable, "for linux/amd64").await;
    check(
        "quay.io/o/proxy:7",
        &["linux/amd64", "linux/arm64"],
        Verdict::WrongPlatform,
        "nothing for linux/arm64; it is for linux/amd64, linux/arm/v6, linux/arm/v7, linux/ppc64le",
    )
    .await;
    check("quay.io/o/proxy:7", &["linux/arm/v8"], Verdict::Pullable, "for linux/arm/v7").await;
    check("quay.io/o/single:7", &["linux/arm64"], Verdict::WrongPlatform, "it is for linux/amd64").await;
}

// C023, containerd/containerd#9206: the fallback to the origin hides a gap in the mirror.
#[tokio::test(start_paused = true)]
async fn every_place_is_judged_by_itself() {
    let mut registries = Registries::new();
    registries.push("docker.io/some/image:1", &image("1.0", &["linux/amd64"]));
    registries.server.lock().unwrap().add_host("mirror.example.net");
    registries
        .mirrors
        .add_registries_conf(
            "registries.conf",
            "[[registry]]\nlocation = 'docker.io'\n[[registry.mirror]]\nlocation = 'mirror.example.net'\n",
        )
        .unwrap();
    let probe = registries.client().probe(&reference("some/image:1"), &[]).await;
    assert_eq!(probe.verdict, Verdict::Pullable);
    let found: Vec<_> = probe
        .attempts
        .iter()
        .map(|attempt| (attempt.endpoint.as_str(), attempt.verdict, attempt.via.is_some()))
        .collect();
    assert_eq!(
        found,
        [
            ("mirror.example.net/some/image:1", Verdict::Absent, true),
            ("docker.io/some/image:1", Verdict::Pullable, false)
        ]
    );
    // A source that is down does not make the gap certain.
    registries.outage("docker.io");
    let probe = registries.client().probe(&reference("some/image:1"), &[]).await;
    assert_eq!(probe.verdict, Verdict::Unreachable);
}

const MIRRORED: &str =
    "[[registry]]\nlocation = 'registry.example.com'\n[[registry.mirror]]\nlocation = 'cache.example.net'\n";

/// kubernetes/kubernetes#116867: a cache keeps what a tag led to, and nodes run one or the other image.
#[tokio::test(start_paused = true)]
async fn a_mirror_that_keeps_an_older_image_under_a_tag_is_named() {
    let mut registries = Registries::new();
    let (old, new) = (image("1.0", &["linux/amd64"]), image("2.0", &["linux/amd64"]));
    registries.push("registry.example.com/lab/app:rolling", &new);
    registries.push("cache.example.net/lab/app:rolling", &old);
    registries.mirrors.add_registries_conf("registries.conf", MIRRORED).unwrap();
    let name = reference("registry.example.com/lab/app:rolling");
    let probe = registries.client().probe(&name, &[]).await;
    assert_eq!(probe.verdict, Verdict::Pullable);
    let places: Vec<(&str, &Digest)> =
        probe.disagreement().into_iter().map(|(place, digest)| (place.endpoint.as_str(), digest)).collect();
    assert_eq!(
        places,
        [
            ("cache.example.net/lab/app:rolling", &old.root),
            ("registry.example.com/lab/app:rolling", &new.root)
        ]
    );
    // What is pinned is what the registry has that the release names.
    assert_eq!(probe.resolved.unwrap().digest, new.root);
    assert_eq!(registries.client().resolve_as_named(&name).await.unwrap().digest, new.root);
    // Where it cannot be reached there is only the mirror's word.
    registries.outage("registry.example.com");
    let probe = registries.client().probe(&name, &[]).await;
    assert_eq!(probe.disagreement(), []);
    assert_eq!(probe.resolved.unwrap().digest, old.root);
    assert_eq!(registries.client().resolve_as_named(&name).await.unwrap().digest, old.root);
}

/// goharbor/harbor#19429: a cache answers a tag with another image than the one it serves by digest.
#[tokio::test(start_paused = true)]
async fn by_digest_a_mirror_cannot_be_behind() {
    let mut registries = Registries::new();
    let (old, new) = (image("1.0", &["linux/amd64"]), image("2.0", &["linux/amd64"]));
    registries.push("registry.example.com/lab/app:1", &new);
    registries.push("cache.example.net/lab/app:1", &new);
    registries.push("cache.example.net/lab/app:1", &old);
    registries.mirrors.add_registries_conf("registries.conf", MIRRORED).unwrap();
    let client = registries.client();
    let pinned = client.probe(&reference(&format!("registry.example.com/lab/app@{}", new.root)), &[]).await;
    assert_eq!((pinned.verdict, pinned.disagreement()), (Verdict::Pullable, vec![]));
    let tagged = client.probe(&reference("registry.example.com/lab/app:1"), &[]).await;
    assert_eq!(tagged.disagreement().len(), 2);
}

/// NetApp/trident#1177: a tag was pushed again after the release named it with its first digest, which only a mirror kept.
#[tokio::test(start_paused = true)]
async fn a_mirror_that_kept_the_first_digest_serves_it_and_is_not_written_to() {
    let mut registries = Registries::new();
    let (old, new) = (image("1.0", &["linux/amd64"]), image("2.0", &["linux/amd64"]));
    registries.push("registry.example.com/st/operator:26.06.1", &new);
    registries.push("mirror.example.net/st/operator:26.06.1", &old);
    let name = reference(&format!("registry.example.com/st/operator:26.06.1@{}", old.root));
    let alone = registries.client().probe(&name, &[]).await;
    assert_eq!(alone.verdict, Verdict::Absent);
    let detail = &alone.attempts[0].detail;
    assert!(detail.ends_with(&format!("the tag 26.06.1 leads to {} there", new.root)), "{detail}");
    let rules = "[[registry]]\nlocation = 'registry.example.com'\nblocked = true\n[[registry.mirror]]\nlocation = 'mirror.example.net'\n";
    registries.mirrors.add_registries_conf("registries.conf", rules).unwrap();
    let mirrored = registries.client().probe(&name, &[]).await;
    assert_eq!(mirrored.verdict, Verdict::Pullable, "{:?}", mirrored.attempts);
    assert_eq!(mirrored.resolved.unwrap().digest, old.root);
    let asked = registries.asked();
    assert!(asked.iter().all(|a| a.starts_with("HEAD ") || a.starts_with("GET ")), "{asked:?}");
}

// C118, attune-io/attune#554: the default tag and the published tag differ by a prefix.
#[tokio::test(start_paused = true)]
async fn a_nearly_equal_tag_is_named_and_not_taken() {
    let registries = Registries::new();
    for tag in ["v0.1.22", "v0.1.23", "latest"] {
        registries.push(&format!("registry.example.com/at/app:{tag}"), &image(tag, &["linux/amd64"]));
    }
    let probe = registries.client().probe(&reference("registry.example.com/at/app:0.1.23"), &[]).await;
    assert_eq!(probe.verdict, Verdict::Absent);
    let detail = &probe.attempts[0].detail;
    assert!(detail.ends_with("; there is v0.1.23"), "{detail}");
}

// C109, operator-framework/operator-lifecycle-manager#2942: a bundle image that cannot be reached, and its corrected successor.
#[tokio::test(start_paused = true)]
async fn a_forbidden_image_does_not_touch_its_successor() {
    let registries = Registries::new();
    registries.push("registry.example.com/b/bundle:v2", &image("2", &["linux/amd64"]));
    registries.push("registry.example.com/b/bundle:v2.1", &image("2.1", &["linux/amd64"]));
    registries.fault(Subject::Manifest, Some("v2"), None, Effect::Status { status: 403, retry_after: None });
    let client = registries.client();
    let names =
        [reference("registry.example.com/b/bundle:v2"), reference("registry.example.com/b/bundle:v2.1")];
    let probes = client.probe_all(&names.map(|name| (name, platforms(&["linux/amd64"])))).await;
    assert_eq!(
        probes.iter().map(|probe| probe.verdict).collect::<Vec<_>>(),
        [Verdict::Forbidden, Verdict::Pullable]
    );
}

#[tokio::test(start_paused = true)]
async fn shared_layers_are_asked_for_once() {
    let registries = Registries::new();
    let (one, two) = (image("1.0", &["linux/amd64"]), image("2.0", &["linux/amd64"]));
    assert_eq!(layer(&one, 0), layer(&two, 0));
    registries.push("quay.io/team/nb:1", &one);
    registries.push("quay.io/team/nb:2", &two);
    let all = [(reference("quay.io/team/nb:1"), vec![]), (reference("quay.io/team/nb:2"), vec![])];
    let probes = registries.client().probe_all(&all).await;
    assert!(probes.iter().all(|probe| probe.verdict == Verdict::Pullable));
    let shared =
        registries.asked().iter().filter(|request| request.contains(layer(&one, 0).as_str())).count();
    assert_eq!(shared, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_image_is_malformed() {
    let registries = Registries::new();
    registries.push("quay.io/team/nb:1", &image("1.0", &["linux/amd64"]));
    let check = async |body: &'static str, part: &str| {
        registries.twist(move |_, request, mut response| {
            if request.uri().path().contains("/manifests/") {
                response.headers_mut().remove("docker-content-digest");
                *response.body_mut() = body.into();
            }
            response
        });
        let probe = registries.client().probe(&reference("quay.io/team/nb:1"), &[]).await;
        assert_eq!(probe.verdict, Verdict::Malformed);
        assert!(probe.attempts[0].detail.contains(part), "{}", probe.attempts[0].detail);
    };
    check("<html>", "no manifest").await;
    check("{\"schemaVersion\": 1}", "schema 1").await;
}

// C016, openshift/openshift-docs#22268: a copy of one platform does not have the index's digest.
#[tokio::test(start_paused = true)]
async fn a_copy_of_one_platform_is_recognised() {
    let mut registries = Registries::new();
    let two = image("8.4", &["linux/amd64", "linux/arm64"]);
    registries.push("registry.example.com/base/ubi:1", &two);
    registries.push("mirror.example.net/base/ubi:1", &image("8.4", &["linux/amd64"]));
    let rules = "[[registry]]\nlocation = 'registry.example.com'\n[[registry.mirror]]\nlocation = 'mirror.example.net'\n";
    registries.mirrors.add_registries_conf("registries.conf", rules).unwrap();
    let pinned = reference("registry.example.com/base/ubi").with_digest(&two.root);
    let known: Vec<_> =
        two.platforms.iter().map(|built| (built.platform.clone(), built.manifest.clone())).collect();
    let hint = format!(
        "only images of the index are there, for linux/amd64 ({}): the copy left the index out",
        two.platforms[0].manifest.short()
    );
    // The source, which has the index, tells what is in it; where it is away, what was known before does.
    for source_is_away in [false, true] {
        let client = registries.client();
        if source_is_away {
            registries.outage("registry.example.com");
        }
        let known = if source_is_away { known.as_slice() } else { &[] };
        let probe = client.probe_known(&pinned, &platforms(&["linux/amd64"]), known).await;
        assert_eq!(probe.attempts[0].verdict, Verdict::Absent);
        assert!(probe.attempts[0].detail.ends_with(&hint), "{}", probe.attempts[0].detail);
        assert_eq!(probe.verdict, if source_is_away { Verdict::Unreachable } else { Verdict::Pullable });
    }
}

// C017, near/mpc#4183: a digest that was read from a moving tag is collected as garbage.
#[tokio::test(start_paused = true)]
async fn a_digest_that_no_tag_holds_is_recognised() {
    let registries = Registries::new();
    let (old, new) = (image("1", &["linux/amd64"]), image("2", &["linux/amd64"]));
    registries.push("registry.example.com/copy/tool:v1.22.2", &old);
    registries.push("registry.example.com/copy/tool:v1.22.2", &new);
    registries.push("registry.example.com/copy/tool:v1.22.2-immutable", &new);
    let client = registries.client();
    let pinned = reference("registry.example.com/copy/tool").with_digest(&old.root);
    let tags = client.tags(&pinned).await.unwrap();
    assert_eq!(tags, ["v1.22.2", "v1.22.2-immutable"]);
    for tag in tags {
        assert_eq!(client.digest(&pinned.with_tag(&tag).unwrap()).await.unwrap(), new.root);
    }
    assert_eq!(client.digest(&pinned).await.unwrap(), old.root);
    assert!(registries.server.lock().unwrap().remove("registry.example.com", "copy/tool", old.root.as_str()));
    assert_eq!(client.probe(&pinned, &[]).await.verdict, Verdict::Absent);
}

#[tokio::test(start_paused = true)]
async fn long_lists_of_tags_come_in_pages() {
    let registries = Registries::new();
    let one = image("1", &["linux/amd64"]);
    registries.push("quay.io/team/nb:t", &one);
    for number in 0..2500 {
        registries
            .server
            .lock()
            .unwrap()
            .tag("quay.io", "team/nb", &format!("t{number:04}"), &one.root)
            .unwrap();
    }
    let tags = registries.client().tags(&reference("quay.io/team/nb")).await.unwrap();
    assert_eq!((tags.len(), tags[0].as_str(), tags[2500].as_str()), (2501, "t", "t2499"));
    assert_eq!(registries.asked().len(), 3);
}
