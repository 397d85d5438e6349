//! Mirror rules and credentials: registries.conf, hosts.toml, endpoints files, OpenShift's objects, Docker's config.json.

use scantling_endpoint::{Keyring, Mirrors, attempts};
use scantling_image::{Digest, Reference};

use super::{part, parts};

/// Most places that one reference can lead to; far above what the inputs' sizes allow rules for.
const ATTEMPTS_MAX: usize = 100_000;

/// What must hold of all rules. The parts: registries.conf, hosts.toml, YAML of objects or endpoints, config.json, a reference.
pub fn run(data: &[u8]) {
    let parts = parts(data);
    let text = |index| String::from_utf8_lossy(part(&parts, index)).into_owned();
    let mut mirrors = Mirrors::new();
    // What is refused may have left rules behind; they must be as harmless as others.
    let _ = mirrors.add_registries_conf("registries.conf", &text(0));
    let _ = mirrors.add_containerd_hosts("hosts.toml", "registry.example.com", &text(1));
    let _ = mirrors.add_containerd_hosts("hosts.toml", "_default", &text(1));
    if let Ok(documents) = scantling_yaml::parse(part(&parts, 2)) {
        for document in &documents {
            let _ = mirrors.add_object(&document.root.to_json());
        }
    }
    let _ = mirrors.add_endpoints("endpoints.yaml", part(&parts, 2));
    let mut keyring = Keyring::new();
    let _ = keyring.add_docker_config("config.json", part(&parts, 3));
    let mut references = vec![
        Reference::parse("registry.example.com/a/b:1").expect("this is a reference"),
        Reference::parse("c").expect("this is a reference"),
    ];
    references.extend(Reference::parse(&text(4)).ok());
    for reference in references {
        for reference in [reference.with_digest(&Digest::of(b"")), reference] {
            let found = attempts(&reference, &mirrors, &keyring);
            assert!(found.len() <= ATTEMPTS_MAX);
            for attempt in &found {
                assert!(!attempt.host.is_empty() && !attempt.host.contains('/'), "{attempt:?}");
                assert!(!attempt.repository.is_empty(), "{attempt:?}");
                if let Some(id) = attempt.credential {
                    assert!(keyring.credential(id).is_some());
                }
            }
        }
    }
}
