//! Public bug reports about references, as tables, and the parts of the grammar one by one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

const D1: &str = "sha256:cc25d4b09480366580ba3d46e1481add3b2f80e3ae1fbef026878197f26959e0";

fn parsed(text: &str) -> Reference {
    Reference::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> ReferenceError {
    Reference::parse(text).expect_err(text)
}

fn check(text: &str, registry: &str, repository: &str, tag: Option<&str>, digest: Option<&str>) {
    let reference = parsed(text);
    assert_eq!(reference.registry(), registry, "{text}");
    assert_eq!(reference.repository(), repository, "{text}");
    assert_eq!(reference.tag(), tag, "{text}");
    assert_eq!(reference.digest().map(Digest::as_str), digest, "{text}");
    assert_eq!(reference.to_string(), text);
}

// C049, konflux-ci/rpm-lockfile-prototype#156: the port in the host is read as the tag.
#[test]
fn a_colon_before_the_last_slash_is_a_port() {
    check("localhost:5000/image:tag", "localhost:5000", "image", Some("tag"), None);
    check("localhost:5000/image", "localhost:5000", "image", None, None);
    check(&format!("localhost:5000/image:tag@{D1}"), "localhost:5000", "image", Some("tag"), Some(D1));
    check("localhost/image", "localhost", "image", None, None);
    check("10.1.2.3:5001/gearman", "10.1.2.3:5001", "gearman", None, None);
    check("registry:5000/a/b", "registry:5000", "a/b", None, None);
    check("[::1]:5000/a/b:1", "[::1]:5000", "a/b", Some("1"), None);
    check("[2001:DB8::1]/a", "[2001:db8::1]", "a", None, None);
    check("myhost/a/b", "docker.io", "myhost/a/b", None, None);
    assert_eq!(parsed("myhost/a/b").domain(), None);
    assert_eq!(parsed("myhost/a/b").effective_tag(), Some("latest"));
}

// C050, containers/skopeo#2745: tag and digest together.
#[test]
fn tag_and_digest_together_pull_by_digest() {
    let digest = "sha256:4ea19c646f338724480af85299ec54e88513c1285f83e26809aefa940e772269";
    for name in ["docker.io/library/alpine", "registry.example.com:5000/t/app"] {
        let reference = parsed(&format!("{name}:3.12.1@{digest}"));
        assert_eq!(reference.tag(), Some("3.12.1"));
        assert!(reference.is_pinned());
        assert_eq!(reference.canonical(), format!("{name}@{digest}"));
        assert_eq!(reference.with_digest(reference.digest().unwrap()).written(), format!("{name}@{digest}"));
    }
}

// C052, argoproj-labs/argocd-image-updater#245: a digest written with a colon as if it were a tag.
#[test]
fn digest_as_tag_is_refused_with_the_right_form() {
    let error = refused(&format!("registry.example.com/team/app:{D1}"));
    assert_eq!((error.part(), error.reason()), (Part::Tag, &Reason::DigestAsTag));
    assert_eq!(error.suggestion(), Some(&*format!("registry.example.com/team/app@{D1}")));
    let error = refused("registry.example.com/team/app:sha256:12ab");
    assert_eq!((error.reason(), error.suggestion()), (&Reason::DigestAsTag, None));
}

// C053, opendatahub-io/odh-dashboard#3430: a doubled digest prefix.
#[test]
fn doubled_algorithm_is_refused_with_the_right_form() {
    let error = refused(&format!("registry.example.com/nb/conda@sha256:{D1}"));
    assert_eq!((error.part(), error.reason()), (Part::Digest, &Reason::DoubledAlgorithm));
    assert_eq!(error.suggestion(), Some(&*format!("registry.example.com/nb/conda@{D1}")));
}

// C055, opendatahub-io/odh-dashboard#911: an empty repository before the tag.
#[test]
fn empty_parts_are_named() {
    let check = |text: &str, part| {
        let error = refused(text);
        assert_eq!((error.part(), error.reason()), (part, &Reason::Empty), "{text}");
    };
    check(":py3.8-v1", Part::Repository);
    check("registry.example.com/:1", Part::Repository);
    check("registry.example.com/", Part::Repository);
    check("registry.example.com/a//b", Part::Repository);
    check("/a", Part::Repository);
    check(&format!("@{D1}"), Part::Repository);
    check("quay.io/a/b:", Part::Tag);
    check("quay.io/a/b@", Part::Digest);
    check("", Part::Whole);
    check(":5000/a", Part::Registry);
}

// C056, google/go-containerregistry#68: two names of one public registry.
#[test]
fn aliases_of_docker_hub_have_one_canonical_text() {
    for text in [
        "docker.io/acct/app:1",
        "index.docker.io/acct/app:1",
        "registry-1.docker.io/acct/app:1",
        "acct/app:1",
    ] {
        assert_eq!(parsed(text).canonical(), "docker.io/acct/app:1");
        assert_eq!(parsed(text).written(), text);
    }
    check("python", "docker.io", "library/python", None, None);
    check("index.docker.io/python:3", "docker.io", "library/python", Some("3"), None);
    check("docker.io/python", "docker.io", "library/python", None, None);
}

// Found by fuzzing: a registry that only its upper-case letters show.
#[test]
fn a_registry_without_a_dot_stays_one_when_the_reference_is_written_anew() {
    let reference = parsed("A0/h0h");
    assert_eq!((reference.registry(), reference.repository()), ("a0", "h0h"));
    let digest = Digest::of(b"");
    for anew in [reference.with_digest(&digest), reference.with_tag("1").unwrap()] {
        let again = parsed(anew.written());
        assert_eq!((again.registry(), again.repository()), ("a0", "h0h"), "{anew}");
        assert_eq!(again, anew);
    }
}

// C058, SwissDataScienceCenter/renku#281: upper-case letters in the path.
#[test]
fn upper_case_in_the_path_is_refused_and_shown() {
    let error = refused("registry.example.com/TeamA/challenge:e75f5d6");
    assert_eq!(error.part(), Part::Repository);
    assert_eq!(error.reason(), &Reason::UpperCase { component: "TeamA".into() });
    check(
        "registry.example.com/teama/challenge:E75F5D6",
        "registry.example.com",
        "teama/challenge",
        Some("E75F5D6"),
        None,
    );
    check(
        "Registry.Example.com/teama/challenge:1",
        "registry.example.com",
        "teama/challenge",
        Some("1"),
        None,
    );
}

// C059, helm/helm#10250: characters and length that a tag cannot have.
#[test]
fn tags_follow_their_grammar() {
    let name = "registry.example.com/c/app";
    let check = |tag: &str, reason: Option<Reason>| {
        let result = Reference::parse(&format!("{name}:{tag}"));
        assert_eq!(result.err().map(|error| error.reason().clone()), reason, "{tag}");
        let joined = parsed(name).with_tag(tag);
        assert_eq!(joined.is_ok(), Reference::parse(&format!("{name}:{tag}")).is_ok(), "{tag}");
    };
    check("8.7.3+unicode", Some(Reason::Character { character: '+' }));
    check("8.7.3_unicode", None);
    check("-1", Some(Reason::Start { character: '-' }));
    check(".1", Some(Reason::Start { character: '.' }));
    check("_1", None);
    check(&"a".repeat(128), None);
    check(&"a".repeat(129), Some(Reason::TooLong { most: 128, found: 129 }));
    check("1:2", Some(Reason::TwoTags));
}

// C071, opendatahub-io/odh-manifests#809: a placeholder left unreplaced in a reference.
#[test]
fn placeholders_are_named_as_such() {
    for text in
        ["quay.io/a/b:${TAG}", "$(image)", "quay.io/a/b:{{ .Values.tag }}", "quay.io/<org>/b", "a/b:%s"]
    {
        let reason = refused(text).reason().clone();
        assert!(
            matches!(reason, Reason::Placeholder { .. } | Reason::Space { at_end: false, .. }),
            "{text}: {reason:?}"
        );
    }
}

// C110, DataDog/datadog-agent#51319: a prefix test mixes up repositories.
#[test]
fn repositories_are_compared_by_parts() {
    let first = parsed("myregistry.local:443/team/service:2.54.3");
    assert_eq!((first.registry(), first.repository()), ("myregistry.local:443", "team/service"));
    assert!(!first.same_repository(&parsed("myregistry.local:443/team/service-extra:1")));
    assert!(!parsed("foo:bar").same_repository(&parsed("foo.example.com:5000/foo:bar")));
    assert!(parsed("foo:bar").same_repository(&parsed("docker.io/library/foo")));
}

#[test]
fn what_stands_around_a_reference_is_named() {
    let check = |text: &str, reason: Reason, suggestion: Option<&str>| {
        let error = refused(text);
        assert_eq!((error.reason(), error.suggestion()), (&reason, suggestion), "{text:?}");
    };
    let space = |character, at_end| Reason::Space { character, at_end };
    check("quay.io/a/b:1\n", space('\n', true), Some("quay.io/a/b:1"));
    check(" quay.io/a/b:1", space(' ', true), Some("quay.io/a/b:1"));
    check("quay.io/a/b:1\r\n", space('\r', true), Some("quay.io/a/b:1"));
    check("\u{feff}quay.io/a/b:1", space('\u{feff}', true), Some("quay.io/a/b:1"));
    check("quay.io/a b:1", space(' ', false), None);
    check("quay.io/a\u{0}b:1", space('\0', false), None);
    let scheme = |scheme: &str| Reason::Scheme { scheme: scheme.into() };
    check("https://quay.io/a/b:1", scheme("https://"), Some("quay.io/a/b:1"));
    check("docker://quay.io/a/b", scheme("docker://"), Some("quay.io/a/b"));
    check("docker://Quay.io/A", scheme("docker://"), None);
    check("https://", scheme("https://"), None);
    check(&"a".repeat(64), Reason::BareId, None);
    check(D1, Reason::BareId, None);
}

#[test]
fn hosts_ports_paths_and_digests_are_checked() {
    let check = |text: &str, part, reason: Reason| {
        let error = refused(text);
        assert_eq!((error.part(), error.reason()), (part, &reason), "{text}");
    };
    let character = |character| Reason::Character { character };
    let separator = |component: &str| Reason::Separator { component: component.into() };
    check("host:50x0/app", Part::Port, Reason::Port { port: "50x0".into() });
    check("host:/app", Part::Port, Reason::Port { port: String::new() });
    check("host:65536/app", Part::Port, Reason::Port { port: "65536".into() });
    check("host:0/app", Part::Port, Reason::Port { port: "0".into() });
    check("host:+80/app", Part::Port, Reason::Port { port: "+80".into() });
    check("-host.example/app", Part::Registry, separator("-host"));
    check("host..example/app", Part::Registry, separator(""));
    check("ho_st.example/app", Part::Registry, character('_'));
    check("[::1/app", Part::Registry, character('['));
    check("[::g]/app", Part::Registry, character('g'));
    check("[::1]x/app", Part::Registry, character('x'));
    check("quay.io/a/b:1/c", Part::Repository, character(':'));
    check("a..b", Part::Repository, separator("a..b"));
    check("a___b", Part::Repository, separator("a___b"));
    check("a-/b", Part::Repository, separator("a-"));
    check("a/b?c", Part::Repository, character('?'));
    check("é/b", Part::Repository, character('é'));
    check(&format!("a@{D1}@{D1}"), Part::Digest, Reason::TwoDigests);
    check(&format!("a@{D1}:1"), Part::Digest, Reason::TagAfterDigest);
    check(
        "a@latest",
        Part::Digest,
        Reason::Digest(crate::DigestError::NoAlgorithm { text: "latest".into() }),
    );
    check(
        "a@sha256:12",
        Part::Digest,
        Reason::Digest(crate::DigestError::Length { algorithm: "sha256", wanted: 64, found: 2 }),
    );
    let long = format!("quay.io/{}", "a".repeat(256));
    check(&long, Part::Repository, Reason::TooLong { most: 255, found: 256 });
    // `library/` counts.
    check(&"a".repeat(248), Part::Repository, Reason::TooLong { most: 255, found: 256 });
    check(&"a".repeat(2000), Part::Whole, Reason::TooLong { most: 1024, found: 2000 });
    for text in ["a--b/c__d/e.f", "a.b-c/d", "1/2:3", "xn--n3h.com/a"] {
        parsed(text);
    }
}

#[test]
fn messages_name_part_reason_and_cure() {
    let check = |text: &str, message: &str| assert_eq!(refused(text).to_string(), message);
    check(
        "quay.io/TeamA/b",
        "`quay.io/TeamA/b` is no image reference: `TeamA` has upper-case letters, the repository must be \
         lower-case; use the repository's name as the registry has it",
    );
    check(
        "quay.io/a:1\n",
        "`quay.io/a:1\\n` is no image reference: the reference has a line break at its end or beginning; \
         write quay.io/a:1",
    );
    check(
        "quay.io/a:1:2",
        "`quay.io/a:1:2` is no image reference: there are two tags; \
         keep one tag; a registry's port stands before the first slash",
    );
}

#[test]
fn doubts() {
    let check = |text: &str, doubt: Option<Doubt>| assert_eq!(parsed(text).doubt(), doubt, "{text}");
    let port_as_tag = |name: &str| Doubt::PortAsTag { name: name.into(), port: "5000".into() };
    check("localhost:5000", Some(port_as_tag("localhost")));
    check("registry.example.com:5000", Some(port_as_tag("registry.example.com")));
    check("registry.example.com", Some(Doubt::HostAsRepository { name: "registry.example.com".into() }));
    check("TeamA/app", Some(Doubt::PathAsHost { name: "TeamA".into() }));
    check(&format!("quay.io/a/b:{}", "0".repeat(64)), Some(Doubt::HashAsTag));
    for text in ["python:3", "python3.8", "redis:6379", "Docker.io/a/b", "localhost/a", "quay.io/a/b:5000"] {
        check(text, None);
    }
}
