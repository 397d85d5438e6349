//! Promotion.

use std::collections::BTreeMap;

use scantling_image::Digest;
use scantling_registry::{StoredImage, Verdict};
use scantling_registry_server::{Access, Account, Effect, Rights, Subject};

use crate::support::{Registries, image, reference};

#[tokio::test(start_paused = true)]
async fn a_copy_keeps_the_digest_and_every_platform() {
    let registries = Registries::new();
    let two = image("1.0", &["linux/amd64", "linux/arm64"]);
    registries.push("stage.example/team/nb:1", &two);
    registries.server.lock().unwrap().add_host("prod.example");
    let client = registries.client();
    let (from, to) = (reference("stage.example/team/nb:1"), reference("prod.example/released/nb:1.5"));
    let copied = client.copy(&from, &to).await.unwrap();
    assert_eq!((copied.digest.clone(), copied.manifests, copied.present), (two.root.clone(), 3, 2));
    let probe = client.probe(&to, &[]).await;
    assert_eq!(probe.verdict, Verdict::Pullable);
    assert_eq!(probe.resolved.unwrap().identity, two.identity());
    // Again: nothing is sent.
    let again = client.copy(&from, &to).await.unwrap();
    assert_eq!((again.sent, again.bytes), (0, 0));
    assert!(registries.asked().iter().filter(|request| request.contains("uploads")).count() > 0);
}

#[tokio::test(start_paused = true)]
async fn within_a_registry_blobs_are_mounted() {
    let mut registries = Registries::new();
    let one = image("1.0", &["linux/amd64"]);
    registries.push("quay.io/stage/nb:1", &one);
    let account = Account { password: "p".to_owned(), rights: Rights::Push };
    let accounts = BTreeMap::from([("robot".to_owned(), account)]);
    registries.server.lock().unwrap().access(
        "quay.io",
        "",
        Access::Token { accounts, anonymous_pull: false },
    );
    registries.credential("quay.io", "robot", "p");
    let client = registries.client();
    let to = reference("quay.io/prod/nb").with_digest(&one.root);
    let copied = client.copy(&reference("quay.io/stage/nb:1"), &to).await.unwrap();
    assert_eq!((copied.sent, copied.present), (0, 3));
    assert!(registries.asked().iter().any(|request| request.contains("mount=")));
    let server = registries.server.lock().unwrap();
    assert!(server.resolve("quay.io", "prod/nb", one.root.as_str()).is_some());
    // By digest: no tag is set.
    assert_eq!(server.tags("quay.io", "prod/nb").count(), 0);
}

#[tokio::test(start_paused = true)]
async fn large_blobs_go_in_pieces() {
    let mut registries = Registries::new();
    let one = image("1.0", &["linux/amd64"]);
    registries.push("a.example/nb:1", &one);
    registries.server.lock().unwrap().add_host("b.example");
    registries.options.chunk = 100;
    let client = registries.client();
    client.copy(&reference("a.example/nb:1"), &reference("b.example/nb:1")).await.unwrap();
    assert!(registries.asked().iter().filter(|request| request.starts_with("PATCH")).count() > 4);
    client.push(&one, &reference("b.example/again:1")).await.unwrap();
    for name in ["b.example/nb:1", "b.example/again:1"] {
        assert_eq!(client.probe(&reference(name), &[]).await.verdict, Verdict::Pullable);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_elsewhere_is_read_piece_by_piece() {
    let mut registries = Registries::new();
    registries.server.lock().unwrap().add_host("b.example");
    registries.options.chunk = 100;
    let client = registries.client();
    let one = image("1.0", &["linux/amd64"]);
    let platform = &one.platforms[0];
    let blobs: Vec<(Digest, u64)> = platform
        .layers
        .iter()
        .map(|(digest, _)| digest)
        .chain([&platform.config])
        .map(|digest| (digest.clone(), one.blobs[digest].1.len() as u64))
        .collect();
    let (media_type, manifest) = &one.blobs[&one.root];
    let stored = StoredImage { media_type, manifest, blobs: &blobs };
    let open = |digest: &Digest| Ok(one.blobs[digest].1.as_slice());
    let to = reference("b.example/nb:1");
    let pushed = client.push_stored(&stored, open, None, &to).await.unwrap();
    assert_eq!((&pushed.digest, pushed.sent), (&one.root, 3));
    assert!(registries.asked().iter().filter(|request| request.starts_with("PATCH")).count() > 4);
    assert_eq!(client.probe(&to, &[]).await.verdict, Verdict::Pullable);
    let mounted =
        client.push_stored(&stored, open, Some("nb"), &reference("b.example/other:1")).await.unwrap();
    assert_eq!((mounted.sent, mounted.present), (0, 3));

    // What ends early, or cannot be opened, is never announced by a manifest.
    let short = |digest: &Digest| Ok(&one.blobs[digest].1[..5]);
    let to = reference("c.example/nb:1");
    registries.server.lock().unwrap().add_host("c.example");
    let error = client.push_stored(&stored, short, None, &to).await.unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
    let closed = |_: &Digest| Err::<&[u8], _>(std::io::Error::other("gone"));
    let error = client.push_stored(&stored, closed, None, &to).await.unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
    assert_eq!(registries.server.lock().unwrap().resolve("c.example", "nb", "1"), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_wrong_is_written() {
    let registries = Registries::new();
    let one = image("1.0", &["linux/amd64"]);
    registries.push("a.example/nb:1", &one);
    registries.server.lock().unwrap().add_host("b.example");
    let client = registries.client();
    let from = reference("a.example/nb:1");
    let other = reference("b.example/nb").with_digest(&Digest::of(b"other"));
    let error = client.copy(&from, &other).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::DigestMismatch);
    // A damaged blob is never announced by a manifest.
    let config = one.platforms[0].config.to_string();
    registries.fault(Subject::Blob, Some(&config), None, Effect::Truncate { bytes: 3 });
    let error = client.copy(&from, &reference("b.example/nb:1")).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::DigestMismatch);
    assert_eq!(registries.server.lock().unwrap().resolve("b.example", "nb", "1"), None);
}

#[tokio::test(start_paused = true)]
async fn writing_needs_the_right() {
    let mut registries = Registries::new();
    let one = image("1.0", &["linux/amd64"]);
    let account = Account { password: "p".to_owned(), rights: Rights::Pull };
    let accounts = BTreeMap::from([("reader".to_owned(), account)]);
    registries.server.lock().unwrap().access(
        "b.example",
        "",
        Access::Token { accounts, anonymous_pull: true },
    );
    let error = registries.client().push(&one, &reference("b.example/nb:1")).await.unwrap_err();
    assert!(matches!(error.verdict(), Verdict::Unauthenticated | Verdict::Forbidden), "{error}");
    registries.credential("b.example", "reader", "p");
    let error = registries.client().push(&one, &reference("b.example/nb:1")).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::Forbidden, "{error}");
}
