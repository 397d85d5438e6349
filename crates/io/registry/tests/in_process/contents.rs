//! What is inside.

use scantling_registry::Verdict;
use scantling_registry_server::{Effect, Subject};

use crate::support::{Registries, image, layer, platforms, reference};

#[tokio::test(start_paused = true)]
async fn versions_come_from_the_bytes() {
    let registries = Registries::new();
    let two = image("2.4.1", &["linux/amd64", "linux/arm64"]);
    registries.push("quay.io/modh/tensorflow:2.7", &two);
    let pinned = reference("quay.io/modh/tensorflow:2.7").with_digest(&two.root);
    for platform in platforms(&["linux/amd64", "linux/arm64"]) {
        let contents = registries.client().contents(&pinned, &platform).await.unwrap();
        assert_eq!(contents.version_of("TensorFlow"), Some("2.4.1"));
        assert_eq!(contents.os.unwrap().id, "rhel");
    }
    let error = registries.client().contents(&pinned, &platforms(&["linux/s390x"])[0]).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::WrongPlatform);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_of_damaged_layers() {
    let registries = Registries::new();
    let one = image("2.4.1", &["linux/amd64"]);
    registries.push("quay.io/modh/tensorflow:1", &one);
    let damaged = layer(&one, 1);
    registries.fault(Subject::Blob, Some(damaged.as_str()), None, Effect::Truncate { bytes: 20 });
    let platform = &one.platforms[0].platform;
    let error =
        registries.client().contents(&reference("quay.io/modh/tensorflow:1"), platform).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::DigestMismatch);
    assert_eq!(error.subject, format!("layer {damaged}"));
}

/// A layer above the limit for memory goes through a thread; what is found is the same, and so are the checks.
#[tokio::test]
async fn large_layers_are_read_as_they_come() {
    let mut registries = Registries::new();
    registries.options.in_memory = 100;
    let one = image("2.4.1", &["linux/amd64"]);
    let damaged = layer(&one, 1);
    assert!(one.blobs[&damaged].1.len() > 150);
    registries.push("quay.io/modh/tensorflow:1", &one);
    let (name, platform) = (reference("quay.io/modh/tensorflow:1"), &one.platforms[0].platform);
    let contents = registries.client().contents(&name, platform).await.unwrap();
    assert_eq!(contents.version_of("tensorflow"), Some("2.4.1"));

    registries.fault(Subject::Blob, Some(damaged.as_str()), None, Effect::Truncate { bytes: 150 });
    let error = registries.client().contents(&name, platform).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::DigestMismatch, "{error}");
    assert!(error.to_string().contains("150 bytes came"), "{error}");
}
