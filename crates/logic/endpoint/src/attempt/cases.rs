//! Mirror rules and policies, with public bug reports as a table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value)]

use serde_json::{Value, json};

use super::*;
use crate::mirrors::Address;

const D: &str = "sha256:101f51f937a2f2be88920322bb61377e027b934e37356f6ba850c683a464ea7e";

fn objects(objects: &[Value]) -> Mirrors {
    let mut mirrors = Mirrors::new();
    for object in objects {
        assert!(mirrors.add_object(object).unwrap());
    }
    mirrors
}

fn conf(text: &str) -> Mirrors {
    let mut mirrors = Mirrors::new();
    mirrors.add_registries_conf("registries.conf", text).unwrap_or_else(|error| panic!("{error}"));
    mirrors
}

fn idms(name: &str, sets: Value) -> Value {
    json!({"apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": {"name": name},
        "spec": {"imageDigestMirrors": sets}})
}

fn itms(name: &str, sets: Value) -> Value {
    json!({"apiVersion": "config.openshift.io/v1", "kind": "ImageTagMirrorSet", "metadata": {"name": name},
        "spec": {"imageTagMirrors": sets}})
}

fn check(mirrors: &Mirrors, reference: &str, expected: &[&str]) {
    let found = attempts(&Reference::parse(reference).unwrap(), mirrors, &Keyring::new());
    let found: Vec<String> = found.iter().map(Attempt::name).collect();
    assert_eq!(found, expected, "{reference}");
}

// C013, okd-project/okd#226: a digest-only mirror rule is not used for a tag reference.
#[test]
fn digest_mirrors_do_not_serve_tags() {
    let mirrors = objects(&[idms(
        "lab",
        json!([{"source": "registry.example.com/lab", "mirrors": ["mirror.example.net:5000/lab"]}]),
    )]);
    check(&mirrors, "registry.example.com/lab/tool:0.10.7", &["registry.example.com/lab/tool:0.10.7"]);
    check(
        &mirrors,
        &format!("registry.example.com/lab/tool@{D}"),
        &[&format!("mirror.example.net:5000/lab/tool@{D}"), &format!("registry.example.com/lab/tool@{D}")],
    );
}

// C014, openshift/oc-mirror#1424: name:tag@digest is a pull by digest, which tag mirrors do not serve.
#[test]
fn tag_mirrors_do_not_serve_tag_and_digest() {
    let mirrors = objects(&[itms(
        "gpu",
        json!([{"source": "vendor.example.com/k8s", "mirrors": ["mirror.example.net:5000/k8s"]}]),
    )]);
    check(
        &mirrors,
        &format!("vendor.example.com/k8s/toolkit:v1.19.1@{D}"),
        &[&format!("vendor.example.com/k8s/toolkit@{D}")],
    );
    check(
        &mirrors,
        "vendor.example.com/k8s/toolkit:v1.19.1",
        &["mirror.example.net:5000/k8s/toolkit:v1.19.1", "vendor.example.com/k8s/toolkit:v1.19.1"],
    );
}

// C119, containers/image#775: normalise first, then rewrite.
#[test]
fn names_are_normalised_before_they_are_rewritten() {
    let mirrors = conf(
        "[[registry]]\nlocation = 'docker.io'\n[[registry.mirror]]\nlocation = 'localhost:5000/docker.io'\n",
    );
    for (reference, name) in [
        ("docker.io/image:1", "library/image"),
        ("image:1", "library/image"),
        ("docker.io/org/image:1", "org/image"),
    ] {
        check(
            &mirrors,
            reference,
            &[&format!("localhost:5000/docker.io/{name}:1"), &format!("docker.io/{name}:1")],
        );
    }
}

#[test]
fn only_the_longest_scope_counts() {
    let mirrors = objects(&[
        idms(
            "a",
            json!([{"source": "quay.io/a", "mirrors": ["m.example/short"]}, {"source": "quay.io/a/b", "mirrors": ["m.example/long"]}]),
        ),
        itms("t", json!([{"source": "quay.io", "mirrors": ["m.example/quay"]}])),
    ]);
    check(
        &mirrors,
        &format!("quay.io/a/b@{D}"),
        &[&format!("m.example/long@{D}"), &format!("quay.io/a/b@{D}")],
    );
    check(
        &mirrors,
        &format!("quay.io/a/c@{D}"),
        &[&format!("m.example/short/c@{D}"), &format!("quay.io/a/c@{D}")],
    );
    check(&mirrors, &format!("quay.io/ab@{D}"), &[&format!("quay.io/ab@{D}")]);
    // The longer scope has mirrors for digests only; the shorter one with mirrors for tags is not looked at.
    check(&mirrors, "quay.io/a/b:1", &["quay.io/a/b:1"]);
    check(&mirrors, "quay.io/z:1", &["m.example/quay/z:1", "quay.io/z:1"]);
}

#[test]
fn a_source_that_must_not_be_contacted_is_left_out() {
    let mirrors = objects(&[idms(
        "closed",
        json!([{"source": "quay.io/a", "mirrors": ["m.example/a"], "mirrorSourcePolicy": "NeverContactSource"}]),
    )]);
    check(&mirrors, &format!("quay.io/a/b@{D}"), &[&format!("m.example/a/b@{D}")]);
    check(&mirrors, "quay.io/a/b:1", &[]);
    assert_eq!(
        mirrors.refusal(&Reference::parse("quay.io/a/b:1").unwrap()).as_deref(),
        Some("ImageDigestMirrorSet closed says never to contact quay.io/a")
    );
    assert_eq!(mirrors.refusal(&Reference::parse("quay.io/c/b:1").unwrap()), None);
}

#[test]
fn rules_of_several_objects_are_joined() {
    let policy = json!({"apiVersion": "operator.openshift.io/v1alpha1", "kind": "ImageContentSourcePolicy",
        "metadata": {"name": "old"},
        "spec": {"repositoryDigestMirrors": [{"source": "quay.io/a", "mirrors": ["b.example/a", "c.example/a"]}]}});
    let mirrors = objects(&[
        policy,
        idms("new", json!([{"source": "quay.io/a", "mirrors": ["a.example/a", "b.example/a"]}])),
        // A set that only repeats its source is no rule, and its policy does not count.
        idms(
            "self",
            json!([{"source": "quay.io/a", "mirrors": ["quay.io/a"], "mirrorSourcePolicy": "NeverContactSource"}]),
        ),
    ]);
    check(
        &mirrors,
        &format!("quay.io/a/x@{D}"),
        &[
            &format!("a.example/a/x@{D}"),
            &format!("b.example/a/x@{D}"),
            &format!("c.example/a/x@{D}"),
            &format!("quay.io/a/x@{D}"),
        ],
    );
    let found = attempts(&Reference::parse(&format!("quay.io/a/x@{D}")).unwrap(), &mirrors, &Keyring::new());
    assert_eq!(
        found[0].via.as_deref(),
        Some("ImageContentSourcePolicy old, ImageDigestMirrorSet new: quay.io/a → a.example/a")
    );
    assert_eq!(found[3].via, None);
}

#[test]
fn image_configuration_blocks_allows_and_marks_insecure() {
    let image = |sources: Value| {
        json!({"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"},
            "spec": {"registrySources": sources}})
    };
    let mirrors = objects(&[
        image(
            json!({"blockedRegistries": ["quay.io/bad", "*.evil.example"], "insecureRegistries": ["lab.example:5000"]}),
        ),
        idms("m", json!([{"source": "quay.io/bad/b", "mirrors": ["m.example/b", "a.evil.example/b"]}])),
    ]);
    // Blocking holds for everything nested, even where a longer rule with mirrors exists, and for mirrors too.
    check(&mirrors, &format!("quay.io/bad/b@{D}"), &[&format!("m.example/b@{D}")]);
    check(&mirrors, "quay.io/bad/c:1", &[]);
    let insecure = |reference: &str| {
        attempts(&Reference::parse(reference).unwrap(), &mirrors, &Keyring::new())[0].insecure
    };
    assert!(insecure("lab.example:5000/a"));
    assert!(!insecure("quay.io/a"));

    let mirrors = objects(&[
        image(json!({"allowedRegistries": ["quay.io"]})),
        idms("m", json!([{"source": "other.example", "mirrors": ["quay.io/m"]}])),
    ]);
    check(&mirrors, "quay.io/a:1", &["quay.io/a:1"]);
    check(&mirrors, &format!("other.example/a@{D}"), &[]);
    assert_eq!(
        mirrors.refusal(&Reference::parse("other.example/a").unwrap()).as_deref(),
        Some("Image cluster does not allow other.example/a")
    );
}

#[test]
fn registries_conf() {
    let mirrors = conf(
        r#"
unqualified-search-registries = ["registry.example.com", "docker.io"]
short-name-mode = "disabled"

[[registry]]
prefix = "example.com/foo"
location = "internal.example.com/bar"
insecure = true

[[registry.mirror]]
location = "mirror.example.net:5000/t"
pull-from-mirror = "tag-only"
[[registry.mirror]]
location = "mirror.example.net:5000/d"
pull-from-mirror = "digest-only"
[[registry.mirror]]
location = "mirror.example.net/any"

[[registry]]
location = "blocked.example"
blocked = true

[[registry]]
prefix = "*.wild.example"
location = "caught.example/wild"

[[registry]]
location = "digests.example"
mirror-by-digest-only = true
[[registry.mirror]]
location = "mirror.example.net/digests"
"#,
    );
    check(
        &mirrors,
        "example.com/foo/x:1",
        &["mirror.example.net:5000/t/x:1", "mirror.example.net/any/x:1", "internal.example.com/bar/x:1"],
    );
    check(
        &mirrors,
        &format!("example.com/foo/x@{D}"),
        &[
            &format!("mirror.example.net:5000/d/x@{D}"),
            &format!("mirror.example.net/any/x@{D}"),
            &format!("internal.example.com/bar/x@{D}"),
        ],
    );
    check(&mirrors, "example.com/foobar/x:1", &["example.com/foobar/x:1"]);
    check(&mirrors, "blocked.example/a:1", &[]);
    check(&mirrors, "a.b.wild.example/a:1", &["caught.example/wild/a:1"]);
    check(&mirrors, "digests.example/a:1", &["digests.example/a:1"]);
    check(&mirrors, "tool:1", &["registry.example.com/tool:1", "docker.io/library/tool:1"]);
    let found = attempts(&Reference::parse("example.com/foo/x:1").unwrap(), &mirrors, &Keyring::new());
    assert_eq!(found.iter().map(|attempt| attempt.insecure).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(found[2].via.as_deref(), Some("registries.conf: example.com/foo → internal.example.com/bar"));
}

#[test]
fn a_later_file_replaces_entries_with_the_same_prefix() {
    let mut mirrors =
        conf("[[registry]]\nlocation='a.example'\n[[registry.mirror]]\nlocation='m1.example'\n");
    mirrors
        .add_registries_conf(
            "drop-in",
            "[[registry]]\nlocation='a.example'\n[[registry.mirror]]\nlocation='m2.example'\n",
        )
        .unwrap();
    check(&mirrors, "a.example/x:1", &["m2.example/x:1", "a.example/x:1"]);
}

#[test]
fn malformed_rules_name_the_field() {
    let object = |object: Value| Mirrors::new().add_object(&object).unwrap_err().to_string();
    let file = |text: &str| Mirrors::new().add_registries_conf("f", text).unwrap_err().to_string();
    assert_eq!(
        object(idms("x", json!([{"mirrors": []}]))),
        "ImageDigestMirrorSet x: .spec.imageDigestMirrors[0].source: a text is needed"
    );
    assert_eq!(
        object(idms("x", json!([{"source": "quay.io/a", "mirrors": ["m.example/a:1"]}]))),
        "ImageDigestMirrorSet x: .spec.imageDigestMirrors[0].mirrors[0]: a tag or digest does not belong in a rule"
    );
    assert!(
        object(itms(
            "x",
            json!([{"source": "quay.io/a", "mirrors": ["m.example"], "mirrorSourcePolicy": "Never"}])
        ))
        .contains(".spec.imageTagMirrors[0].mirrorSourcePolicy: `Never` is neither")
    );
    assert!(object(itms("x", json!({}))).contains(".spec.imageTagMirrors: a list is needed"));
    assert_eq!(file("[[registry]]\nblocked = true"), "f: registry[0]: prefix or location is needed");
    assert_eq!(file("[[registry]]\nlocatoin = 'a.b'"), "f: registry[0].locatoin: no such setting is known");
    assert!(file("[registries.search]\nregistries = ['a.b']").contains("version 1"));
    assert!(file("[[registry]]\nprefix = 'a.b'").contains("location is needed"));
    assert!(
        file("[[registry]]\nlocation='a.b'\n[[registry.mirror]]\nlocation='m.b'\npull-from-mirror='x'")
            .contains("registry[0].mirror[0].pull-from-mirror: `x` is none of")
    );
    assert_eq!(file("a = "), "f: line 1: a value is needed");
    assert_eq!(Mirrors::new().add_object(&json!({"apiVersion": "v1", "kind": "Pod"})), Ok(false));
}

#[test]
fn an_endpoints_file_gives_addresses() {
    let mut mirrors = Mirrors::new();
    let yaml = b"version: 1\nendpoints:\n- {registry: index.docker.io, address: '127.0.0.1:34567', insecure: true}\n- registry: quay.io\n  address: '[::1]:5000'\n";
    mirrors.add_endpoints("endpoints.yaml", yaml).unwrap();
    assert_eq!(
        mirrors.address("docker.io"),
        Some(&Address { address: "127.0.0.1:34567".into(), insecure: true })
    );
    assert_eq!(mirrors.address("quay.io"), Some(&Address { address: "[::1]:5000".into(), insecure: false }));
    assert_eq!(mirrors.address("quay.io:443"), None);
    // The name stays; only whether plain HTTP is allowed follows from the address.
    let found = attempts(&Reference::parse("python:3").unwrap(), &mirrors, &Keyring::new());
    assert_eq!((found[0].name().as_str(), found[0].insecure), ("docker.io/library/python:3", true));

    let refused = |text: &str| Mirrors::new().add_endpoints("e", text.as_bytes()).unwrap_err().to_string();
    assert!(refused("version: 2\nendpoints: []").contains("version 2 is not known"));
    assert!(refused("version: 1\nendpoints: []\nmirrors: []").contains("mirrors"));
    assert!(
        refused("version: 1\nendpoints: [{registry: quay.io/a, address: 'b.c'}]")
            .contains("endpoints[0].registry")
    );
    assert!(
        refused("version: 1\nendpoints: [{registry: a.b, address: 'http://c.d'}]")
            .contains("endpoints[0].address")
    );
    assert!(
        refused("version: 1\nendpoints: [{registry: a.b, address: c.d}, {registry: a.b, address: e.f}]")
            .contains("endpoints[1].registry: a.b has an address already")
    );
}

#[test]
fn credentials_go_with_attempts() {
    let mut keyring = Keyring::new();
    let config = |entries: Value| json!({"auths": entries}).to_string();
    keyring
        .add_docker_config(
            "pod",
            config(json!({"quay.io": {"auth": "dTpw"}, "quay.io/a": {"auth": "dTpw"}, "m.example": {"auth": "dTpw"}})).as_bytes(),
        )
        .unwrap();
    keyring
        .add_node_config(
            "node",
            config(json!({"quay.io": {"auth": "dTpw"}, "m.example/x": {"auth": "dTpw"}})).as_bytes(),
        )
        .unwrap();
    let mirrors =
        objects(&[idms("m", json!([{"source": "quay.io/a", "mirrors": ["m.example/x/y", "n.example"]}]))]);
    let found = attempts(&Reference::parse(&format!("quay.io/a/b@{D}")).unwrap(), &mirrors, &keyring);
    let found: Vec<String> = found
        .iter()
        .map(|attempt| {
            let credential = attempt.credential.and_then(|id| keyring.credential(id));
            format!("{} {}", attempt.host, credential.map_or("-".into(), ToString::to_string))
        })
        .collect();
    // A pod's credentials are not sent to a mirror on another host.
    assert_eq!(
        found,
        [
            "m.example node (m.example/x)",
            "n.example -",
            "quay.io pod (quay.io/a)",
            "quay.io pod (quay.io)",
            "quay.io node (quay.io)"
        ]
    );
}

fn hosts(registry: &str, text: &str) -> Mirrors {
    let mut mirrors = Mirrors::new();
    mirrors.add_containerd_hosts("hosts.toml", registry, text).unwrap_or_else(|error| panic!("{error}"));
    mirrors
}

#[test]
fn containerd_asks_hosts_in_the_order_of_the_file_and_then_the_server() {
    let text = r#"
server = "https://registry-1.docker.io"

[host."https://z.example.net"]
  capabilities = ["pull", "resolve"]
[host."http://a.example.net:5000"]
  capabilities = ["pull"]
  skip_verify = true
[host."https://harbor.example.net/v2/proxy"]
  override_path = true
[host."https://push.example.net"]
  capabilities = ["push"]
[host."https://b.example.net".header]
  x-custom = "1"
"#;
    let mirrors = hosts("docker.io", text);
    check(
        &mirrors,
        &format!("python@{D}"),
        &[
            &format!("z.example.net/library/python@{D}"),
            &format!("a.example.net:5000/library/python@{D}"),
            &format!("harbor.example.net/proxy/library/python@{D}"),
            &format!("b.example.net/library/python@{D}"),
            &format!("docker.io/library/python@{D}"),
        ],
    );
    // Without `resolve` a host is not asked what a tag stands for.
    check(
        &mirrors,
        "python:3",
        &[
            "z.example.net/library/python:3",
            "harbor.example.net/proxy/library/python:3",
            "b.example.net/library/python:3",
            "docker.io/library/python:3",
        ],
    );
    check(&mirrors, "quay.io/a/b:1", &["quay.io/a/b:1"]);
    let found = attempts(&Reference::parse(&format!("python@{D}")).unwrap(), &mirrors, &Keyring::new());
    assert_eq!(
        found.iter().map(|attempt| attempt.insecure).collect::<Vec<_>>(),
        [false, true, false, false, false]
    );
    let namespaces: Vec<_> = found.iter().map(|attempt| attempt.namespace.as_deref()).collect();
    assert_eq!(
        namespaces,
        [Some("docker.io"), Some("docker.io"), Some("docker.io"), Some("docker.io"), None]
    );
}

// C023, containerd/containerd#9206: the origin is added as the last endpoint, unless `server` names another one.
#[test]
fn containerd_falls_back_to_the_origin() {
    let mut mirrors = hosts("_default", "[host.\"https://mirror.example.net\"]\n");
    check(&mirrors, "some/image:1", &["mirror.example.net/some/image:1", "docker.io/some/image:1"]);
    check(&mirrors, "quay.io/a/b:1", &["mirror.example.net/a/b:1", "quay.io/a/b:1"]);
    let own = "server = \"http://only.example.net:5000\"\n";
    mirrors.add_containerd_hosts("hosts.toml", "quay.io", own).unwrap();
    check(&mirrors, "quay.io/a/b:1", &["only.example.net:5000/a/b:1"]);
    let written = source(&Reference::parse("quay.io/a/b:1").unwrap(), &mirrors, &Keyring::new());
    assert_eq!((written.host.as_str(), written.insecure), ("quay.io", false));
}

#[test]
fn containerd_sends_the_pods_credential_to_mirrors() {
    let mut keyring = Keyring::new();
    let secret = |text: &str| crate::Secret::new(text);
    keyring.add("pod", "quay.io", secret("u"), secret("p"));
    let mirrors = hosts("quay.io", "[host.\"https://mirror.example.net\"]\n");
    let found = attempts(&Reference::parse("quay.io/a/b:1").unwrap(), &mirrors, &keyring);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|attempt| attempt.credential.is_some()));
}

#[test]
fn malformed_hosts_files_name_the_field() {
    let refused = |registry: &str, text: &str| {
        Mirrors::new().add_containerd_hosts("h", registry, text).unwrap_err().to_string()
    };
    assert!(
        refused("docker.io", "[host.\"https://a.b\"]\ncapabilities = ['delete']")
            .contains("`delete` is none of")
    );
    assert!(refused("docker.io", "[host.\"https://a.b/path\"]").contains("below /v2/"));
    assert!(
        refused("docker.io", "[host.\"https://a.b\"]\nskip = true")
            .contains("host.\"https://a.b\".skip: no such setting")
    );
    assert!(refused("docker.io", "host = 1").contains("host: write"));
    assert!(refused("docker.io", "host = {\"https://a.b\" = {}}").contains("has no order"));
    assert!(refused("docker.io", "server = 1").contains("server: a text"));
    assert!(refused("a/b", "").contains("folder"));
    assert!(refused("*.b.c", "").contains("folder"));
}
