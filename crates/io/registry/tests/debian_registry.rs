//! The client against Debian's `docker-registry`, over the network, where that program is installed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use scantling_contents::{BuiltImage, ImageDescription, LayerDescription, build};
use scantling_endpoint::{Address, Keyring, Mirrors, Secret};
use scantling_image::{Digest, Platform, Reference};
use scantling_registry::{Options, RegistryClient, Verdict, tcp_transport};

/// A registry on a free loopback port, stopped at the end of its test.
struct Registry {
    child: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Registry {
    /// `None` if the program is not installed.
    async fn start(htpasswd: Option<&str>) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let address = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().to_string()
        };
        let root = folder.path().join("data");
        let mut config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage:\n  filesystem: {{rootdirectory: {}}}\n  delete: {{enabled: true}}\nhttp: {{addr: '{address}'}}\n",
            root.display()
        );
        if let Some(htpasswd) = htpasswd {
            let path = folder.path().join("htpasswd");
            std::fs::write(&path, htpasswd).unwrap();
            let auth = format!("auth: {{htpasswd: {{realm: test, path: {}}}}}\n", path.display());
            config.push_str(&auth);
        }
        let path = folder.path().join("config.yml");
        std::fs::write(&path, config).unwrap();
        let program = std::env::var_os("SCANTLING_TEST_DOCKER_REGISTRY").unwrap_or("docker-registry".into());
        let started = Command::new(program)
            .args([Path::new("serve"), path.as_path()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            println!("skipped: docker-registry is not installed");
            return None;
        };
        let registry = Self { child, address, folder };
        for _ in 0..200 {
            if tokio::net::TcpStream::connect(&registry.address).await.is_ok() {
                return Some(registry);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the registry does not listen on {}", registry.address);
    }

    /// A client for which the names of these hosts lead here.
    fn client(&self, hosts: &[&str], keyring: Keyring, options: Options) -> RegistryClient {
        let mut mirrors = Mirrors::new();
        for host in hosts {
            mirrors.set_address(host, Address { address: self.address.clone(), insecure: true });
        }
        let transport = tcp_transport(&mirrors, b"").unwrap();
        RegistryClient::new(transport, mirrors, keyring, options)
    }
}

fn image(version: &str) -> BuiltImage {
    let packages = BTreeMap::from([("tensorflow".to_owned(), version.to_owned())]);
    let description = ImageDescription {
        platforms: vec![Platform::linux_amd64(), Platform::parse("linux/arm64").unwrap()],
        layers: vec![LayerDescription::Python {
            path: "/usr/lib/python3.8/site-packages".to_owned(),
            packages,
        }],
        ..ImageDescription::default()
    };
    build(&description, None).unwrap()
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

#[tokio::test]
async fn push_resolve_probe_contents_copy() {
    let Some(registry) = Registry::start(None).await else { return };
    // Small pieces, so that blobs go by PATCH too.
    let options = Options { chunk: 200, ..Options::default() };
    let client = registry.client(&["registry.example.com", "docker.io"], Keyring::new(), options);
    let two = image("2.4.1");
    let name = reference("registry.example.com/modh/tensorflow:2.7");
    let pushed = client.push(&two, &name).await.unwrap();
    assert_eq!((pushed.digest.clone(), pushed.manifests), (two.root.clone(), 3));
    assert!(pushed.sent > 0);

    let resolved = client.resolve(&name).await.unwrap();
    assert_eq!((resolved.digest.clone(), resolved.identity.clone()), (two.root.clone(), two.identity()));
    let wanted = [Platform::linux_amd64(), Platform::parse("linux/arm64").unwrap()];
    let probe = client.probe(&name, &wanted).await;
    assert_eq!(probe.verdict, Verdict::Pullable, "{:?}", probe.attempts);
    for platform in &wanted {
        let contents = client.contents(&name.with_digest(&two.root), platform).await.unwrap();
        assert_eq!(contents.version_of("tensorflow"), Some("2.4.1"));
    }

    // Docker Hub's short names lead to the same server under the name of Docker Hub.
    let promoted = client.copy(&name, &reference("released/tensorflow:1.5")).await.unwrap();
    assert_eq!((promoted.digest, promoted.manifests), (two.root.clone(), 3));
    let within = client.copy(&name, &reference("registry.example.com/released/other:1.5")).await.unwrap();
    assert_eq!((within.sent, within.bytes), (0, 0), "blobs are mounted within a registry");
    assert_eq!(client.probe(&reference("released/tensorflow:1.5"), &wanted).await.verdict, Verdict::Pullable);
}

#[tokio::test]
async fn what_is_missing_is_said_as_a_registry_says_it() {
    let Some(registry) = Registry::start(None).await else { return };
    let client = registry.client(&["registry.example.com"], Keyring::new(), Options::default());
    let two = image("2.4.1");
    client.push(&two, &reference("registry.example.com/modh/tensorflow:v2.7")).await.unwrap();
    let check = async |name: &str, verdict: Verdict, part: &str| {
        let probe = client.probe(&reference(name), &[Platform::linux_amd64()]).await;
        assert_eq!(probe.verdict, verdict, "{:?}", probe.attempts);
        assert!(probe.attempts[0].detail.contains(part), "{}", probe.attempts[0].detail);
    };
    check("registry.example.com/modh/tensorflow:2.7", Verdict::Absent, "there is v2.7").await;
    let never = format!("registry.example.com/modh/tensorflow@{}", Digest::of(b"never published"));
    check(&never, Verdict::Absent, "MANIFEST_UNKNOWN").await;
    check("registry.example.com/modh/no:1", Verdict::Absent, "HTTP 404").await;
    let name = "registry.example.com/modh/tensorflow:v2.7";
    let elsewhere = [Platform::parse("linux/s390x").unwrap()];
    assert_eq!(client.probe(&reference(name), &elsewhere).await.verdict, Verdict::WrongPlatform);

    // The bytes of a layer get lost; the manifest, and HEAD on the layer, may still answer.
    let layer = two.platforms[0].layers[0].0.hex();
    let blob =
        registry.folder.path().join("data/docker/registry/v2/blobs/sha256").join(&layer[..2]).join(layer);
    std::fs::remove_file(blob.join("data")).unwrap();
    let probe = client.probe(&reference(name), &[Platform::linux_amd64()]).await;
    assert_ne!(probe.verdict, Verdict::Pullable);
    assert!(probe.attempts[0].detail.contains(layer), "{}", probe.attempts[0].detail);
}

#[tokio::test]
async fn basic_credentials_over_the_network() {
    // bcrypt of "correct-horse", at the least cost.
    let htpasswd = "robot:$2b$05$abcdefghijklmnopqrstuuZ0Fx87Pb/Aqb0E90lfvCwzXnaFKUHpS\n";
    let Some(registry) = Registry::start(Some(htpasswd)).await else { return };
    let name = reference("registry.example.com/modh/tensorflow:1");
    let hosts = ["registry.example.com"];
    let error = registry.client(&hosts, Keyring::new(), Options::default()).resolve(&name).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::Unauthenticated, "{error}");
    let keyring = |password: &str| {
        let mut keyring = Keyring::new();
        keyring.add("test", "registry.example.com", Secret::new("robot"), Secret::new(password));
        keyring
    };
    let client = registry.client(&hosts, keyring("correct-horse"), Options::default());
    let two = image("2.4.1");
    client.push(&two, &name).await.unwrap();
    assert_eq!(client.resolve(&name).await.unwrap().digest, two.root);
    let keyring = keyring("wrong-password");
    let error = registry.client(&hosts, keyring, Options::default()).resolve(&name).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::Unauthenticated);
    assert!(error.to_string().contains("refused the credential test (registry.example.com)"), "{error}");
    assert!(!format!("{error:?}").contains("wrong-password"));
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let mut mirrors = Mirrors::new();
    mirrors.set_address("quay.io", Address { address, insecure: true });
    let transport = tcp_transport(&mirrors, b"").unwrap();
    let options = Options { retries: 1, first_delay: Duration::from_millis(1), ..Options::default() };
    let client = RegistryClient::new(transport, mirrors, Keyring::new(), options);
    let error = client.resolve(&reference("quay.io/a/b:1")).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::Unreachable);
    assert!(error.to_string().to_lowercase().contains("connection refused"), "{error}");
}
