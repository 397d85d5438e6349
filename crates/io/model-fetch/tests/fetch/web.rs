//! From a web server.

use std::collections::BTreeMap;

use scantling_model_fetch::{FetchError, Limits};

use crate::server::{File, Server};
use crate::{bytes, files, get, limits, sha256};

async fn started(file: File) -> (Server, String, tempfile::TempDir) {
    let server = Server::default();
    server.put("/m/iris.joblib", file);
    let address = server.start().await;
    (server, format!("{address}/m/iris.joblib"), tempfile::tempdir().unwrap())
}

#[tokio::test]
async fn a_file_arrives_and_is_not_fetched_again() {
    let content = bytes(25_000);
    let file = File { content: content.clone(), etag: Some("\"1\"".to_owned()), ..File::default() };
    let (server, uri, folder) = started(file).await;
    let done = get(&format!("{uri}?signature=geheim"), folder.path(), Some(&sha256(&content)), &limits())
        .await
        .unwrap();
    assert_eq!((done.files, done.bytes, done.reused), (1, 25_000, 0));
    assert_eq!(files(folder.path()), BTreeMap::from([("iris.joblib".to_owned(), content)]));
    let manifest = std::fs::read_to_string(folder.path().join(".scantling-fetch.json")).unwrap();
    assert!(manifest.contains("sha256") && !manifest.contains("geheim"), "{manifest}");
    let again = get(&uri, folder.path(), None, &limits()).await.unwrap();
    assert_eq!(again.reused, 1);
    // A file that somebody has changed here is fetched again, and so is one that has changed there.
    std::fs::write(
        folder.path().join("iris.joblib"),
        bytes(25_000).iter().rev().copied().collect::<Vec<_>>(),
    )
    .unwrap();
    assert_eq!(get(&uri, folder.path(), None, &limits()).await.unwrap().reused, 0);
    server.put(
        "/m/iris.joblib",
        File { content: b"new".to_vec(), etag: Some("\"2\"".to_owned()), ..File::default() },
    );
    assert_eq!(get(&uri, folder.path(), None, &limits()).await.unwrap().reused, 0);
    assert_eq!(files(folder.path())["iris.joblib"], b"new");
}

#[tokio::test]
async fn a_cut_connection_goes_on_where_it_ended() {
    let content = bytes(30_000);
    let etag = Some("\"1\"".to_owned());
    let file = File {
        content: content.clone(),
        etag,
        cuts: vec![12_000, 5000, 0],
        statuses: vec![503],
        ..File::default()
    };
    let (server, uri, folder) = started(file).await;
    get(&uri, folder.path(), Some(&sha256(&content)), &limits()).await.unwrap();
    assert_eq!(files(folder.path())["iris.joblib"], content);
    let seen = server.take_seen();
    let ranges: Vec<&str> =
        seen.iter().filter_map(|line| line.split_once("bytes=").map(|(_, range)| range)).collect();
    // The last bytes before a cut may be lost with it.
    assert!(ranges.len() >= 2, "{seen:?}");
    assert!(ranges.iter().all(|range| range.trim_end_matches('-').parse::<u64>().unwrap() > 0));
}

#[tokio::test]
async fn another_process_goes_on_with_the_part_that_one_left() {
    let content = bytes(30_000);
    let file = File {
        content: content.clone(),
        etag: Some("\"1\"".to_owned()),
        cuts: vec![10_000, 0, 0],
        ..File::default()
    };
    let (server, uri, folder) = started(file).await;
    let error = get(&uri, folder.path(), None, &limits()).await.unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
    assert!(!folder.path().join("iris.joblib").exists(), "nothing half-made is in its place");
    server.take_seen();
    get(&uri, folder.path(), Some(&sha256(&content)), &limits()).await.unwrap();
    assert!(server.take_seen()[0].contains("bytes="), "it begins where the first has ended");
}

#[tokio::test]
async fn a_part_of_another_version_is_not_continued() {
    for whole_only in [false, true] {
        let old = File {
            content: bytes(30_000),
            etag: Some("\"1\"".to_owned()),
            cuts: vec![10_000, 0, 0],
            ..File::default()
        };
        let (server, uri, folder) = started(old).await;
        get(&uri, folder.path(), None, &limits()).await.unwrap_err();
        let content: Vec<u8> = bytes(20_000).into_iter().rev().collect();
        let etag = Some("\"2\"".to_owned());
        server.put("/m/iris.joblib", File { content: content.clone(), etag, whole_only, ..File::default() });
        get(&uri, folder.path(), Some(&sha256(&content)), &limits()).await.unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_had_is_told_with_the_fix() {
    let small = Limits { bytes: 10_000, ..limits() };
    for (what, file, limits, expected) in [
        (
            "rights",
            File { statuses: vec![403], ..File::default() },
            limits(),
            "give the data connection the right key",
        ),
        ("absence", File { statuses: vec![404], ..File::default() }, limits(), "put the model there"),
        (
            "a broken server",
            File { statuses: vec![500; 9], ..File::default() },
            limits(),
            "after 3 attempts: it answers 500",
        ),
        ("silence", File { silent: true, content: bytes(9), ..File::default() }, limits(), "nothing came"),
        (
            "too much, announced",
            File { content: bytes(20_000), ..File::default() },
            small,
            "more than 10000 bytes",
        ),
        (
            "too much, not announced",
            File { endless: true, ..File::default() },
            small,
            "more than 10000 bytes",
        ),
        (
            "a circle",
            File { location: Some("/m/iris.joblib".to_owned()), ..File::default() },
            limits(),
            "redirects more than",
        ),
        (
            "no address",
            File { location: Some("ftp://x/".to_owned()), ..File::default() },
            limits(),
            "address that is none",
        ),
    ] {
        let (_server, uri, folder) = started(file).await;
        let error = get(&uri, folder.path(), None, &limits).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{what}: {error}");
        assert!(!folder.path().join("iris.joblib").exists(), "{what}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = get("http://127.0.0.1:1/m", folder.path(), None, &limits()).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn another_content_than_was_asked_for_is_refused() {
    let (_server, uri, folder) = started(File { content: bytes(10), ..File::default() }).await;
    let error = get(&uri, folder.path(), Some(&sha256(b"x")), &limits()).await.unwrap_err();
    assert!(matches!(error, FetchError::Checksum { .. }), "{error}");
    assert!(!folder.path().join("iris.joblib").exists());
}

#[tokio::test]
async fn redirects_are_followed() {
    let server = Server::default();
    server.put("/latest", File { location: Some("/v2".to_owned()), ..File::default() });
    server.put("/v2", File { content: b"two".to_vec(), ..File::default() });
    let address = server.start().await;
    let folder = tempfile::tempdir().unwrap();
    get(&format!("{address}/latest"), folder.path(), None, &limits()).await.unwrap();
    // It keeps the name by which it was asked for.
    assert_eq!(files(folder.path())["latest"], b"two");
}
