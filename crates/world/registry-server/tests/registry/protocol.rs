use http::Method;
use proptest::prelude::*;
use scantling_image::Digest;
use scantling_registry_server::{MAX_MANIFEST_BYTES, PushError, RegistryServer};
use serde_json::json;

use crate::client::*;

#[test]
fn a_pushed_image_is_served() {
    let (mut server, image) = server();
    let digest = image.digest().to_string();
    for reference in ["1", digest.as_str()] {
        let path = format!("/v2/team/app/manifests/{reference}");
        let seen = get(&mut server, &path);
        assert_eq!((seen.status, seen.body()), (200, image.manifest.as_slice()));
        assert_eq!(seen.header("docker-content-digest"), digest);
        assert_eq!(seen.header("content-type"), OCI_MANIFEST);
        let head = ask(&mut server, &Method::HEAD, &path, &[("accept", OCI_MANIFEST)], b"");
        assert_eq!((head.status, head.body().len()), (200, 0));
        assert_eq!(head.header("content-length"), image.manifest.len().to_string());
        assert_eq!(head.header("docker-content-digest"), digest);
    }
    let layer = Digest::of(&image.layer);
    let seen = get(&mut server, &format!("/v2/team/app/blobs/{layer}"));
    assert_eq!((seen.status, seen.body()), (200, image.layer.as_slice()));
    assert_eq!(seen.header("docker-content-digest"), layer.to_string());
    // Escaped characters of a path are read.
    assert_eq!(
        get(&mut server, &format!("/v2/team%2Fapp/blobs/{}", layer.to_string().replace(':', "%3A"))).status,
        200
    );
    assert_eq!(get(&mut server, "/v2/").status, 200);
    assert_eq!(server.resolve(HOST, "team/app", "1"), Some(image.digest()));
    assert_eq!(
        server.manifest(HOST, "team/app", &image.digest()),
        Some((OCI_MANIFEST, image.manifest.as_slice()))
    );
    assert_eq!(server.blob("REGISTRY.example:5000", "team/app", &layer), Some(image.layer.as_slice()));
}

#[test]
fn what_is_not_there_is_named() {
    let (mut server, image) = server();
    let absent = Digest::of(b"absent");
    let config = Digest::of(&image.config);
    for (path, status, code) in [
        (format!("/v2/team/app/manifests/{absent}"), 404, "MANIFEST_UNKNOWN"),
        ("/v2/team/app/manifests/2".to_owned(), 404, "MANIFEST_UNKNOWN"),
        (format!("/v2/team/app/manifests/{config}"), 404, "MANIFEST_UNKNOWN"),
        (format!("/v2/team/app/blobs/{absent}"), 404, "BLOB_UNKNOWN"),
        ("/v2/team/other/manifests/1".to_owned(), 404, "NAME_UNKNOWN"),
        ("/v2/team/other/tags/list".to_owned(), 404, "NAME_UNKNOWN"),
        ("/v2/Team/app/manifests/1".to_owned(), 400, "NAME_INVALID"),
        ("/v2/team/app/manifests/sha256:12".to_owned(), 400, "DIGEST_INVALID"),
        ("/v2/team/app/manifests/-".to_owned(), 400, "TAG_INVALID"),
        ("/v2/team/app/tags/list?n=x".to_owned(), 400, "PAGINATION_NUMBER_INVALID"),
        ("/v3/".to_owned(), 404, "UNSUPPORTED"),
        ("/v2/team/app/blobs/uploads/none".to_owned(), 404, "BLOB_UPLOAD_UNKNOWN"),
    ] {
        let seen = get(&mut server, &path);
        assert_eq!((seen.status, seen.code().as_str()), (status, code), "{path}");
    }
    let elsewhere = ask_at(&mut server, "else.example", &Method::GET, "/v2/", &[], b"");
    assert_eq!(elsewhere.status, 421);
    for (method, path) in [
        (Method::POST, "/v2/team/app/manifests/1"),
        (Method::PUT, "/v2/"),
        (Method::PATCH, "/v2/team/app/blobs/uploads/"),
        (Method::GET, "/v2/team/app/blobs/uploads/"),
        (Method::DELETE, "/v2/team/app/tags/list"),
        (Method::DELETE, "/token"),
    ] {
        assert_eq!(ask(&mut server, &method, path, &[], b"").status, 405, "{method} {path}");
    }
}

#[test]
fn ranges_of_a_blob() {
    let (mut server, image) = server();
    let path = format!("/v2/team/app/blobs/{}", Digest::of(&image.layer));
    for (range, status, body, content_range) in [
        ("bytes=0-0", 206, "0", "bytes 0-0/10"),
        ("bytes=8-", 206, "89", "bytes 8-9/10"),
        ("bytes=-2", 206, "89", "bytes 8-9/10"),
        ("bytes=0-1,4-5", 200, "0123456789", ""),
        ("bytes=5-4", 200, "0123456789", ""),
    ] {
        let seen = ask(&mut server, &Method::GET, &path, &[("range", range)], b"");
        assert_eq!((seen.status, seen.body()), (status, body.as_bytes()), "{range}");
        assert_eq!(seen.header("content-range"), content_range, "{range}");
    }
    let seen = ask(&mut server, &Method::GET, &path, &[("range", "bytes=10-")], b"");
    assert_eq!((seen.status, seen.header("content-range")), (416, "bytes */10"));
    let head = ask(&mut server, &Method::HEAD, &path, &[("range", "bytes=0-0")], b"");
    assert_eq!((head.status, head.header("content-length")), (206, "1"));
}

/// Puts the image's blobs and manifest through the protocol.
fn upload(server: &mut RegistryServer, name: &str, image: &Small, reference: &str) -> Seen {
    for bytes in [&image.config, &image.layer] {
        let path = format!("/v2/{name}/blobs/uploads/?digest={}", Digest::of(bytes));
        let seen = ask(server, &Method::POST, &path, &[], bytes);
        assert_eq!(seen.status, 201);
        assert_eq!(seen.header("location"), format!("/v2/{name}/blobs/{}", Digest::of(bytes)));
    }
    let path = format!("/v2/{name}/manifests/{reference}");
    ask(server, &Method::PUT, &path, &[("content-type", image.media_type)], &image.manifest)
}

#[test]
fn an_upload_in_one_piece() {
    let mut server = RegistryServer::new();
    server.add_host(HOST);
    let image = Small::new(b"layer");
    let seen = upload(&mut server, "new/app", &image, "v1");
    assert_eq!(
        (seen.status, seen.header("docker-content-digest")),
        (201, image.digest().to_string().as_str())
    );
    assert_eq!(get(&mut server, "/v2/new/app/manifests/v1").body(), image.manifest);
    // The same bytes again are no error.
    assert_eq!(upload(&mut server, "new/app", &image, &image.digest().to_string()).status, 201);
}

#[test]
fn an_upload_in_chunks() {
    let mut server = RegistryServer::new();
    server.add_host(HOST);
    let begun = ask(&mut server, &Method::POST, "/v2/a/blobs/uploads/", &[], b"");
    assert_eq!((begun.status, begun.header("range")), (202, "0-0"));
    let place = begun.header("location").to_owned();
    let chunk = |server: &mut RegistryServer, range: &str, bytes: &[u8]| {
        ask(server, &Method::PATCH, &place, &[("content-range", range)], bytes)
    };
    assert_eq!(chunk(&mut server, "0-3", b"0123").header("range"), "0-3");
    for (range, bytes) in [("5-6", "56"), ("0-1", "01"), ("4-9", "45"), ("x", "4"), ("9-4", "4")] {
        let seen = chunk(&mut server, range, bytes.as_bytes());
        assert_eq!((seen.status, seen.header("range")), (416, "0-3"), "{range}");
    }
    assert_eq!(chunk(&mut server, "4-5", b"45").status, 202);
    let asked = ask(&mut server, &Method::GET, &place, &[], b"");
    assert_eq!((asked.status, asked.header("range")), (204, "0-5"));
    // The wrong digest ends the upload without storing anything.
    let digest = Digest::of(b"0123456");
    let done = ask(&mut server, &Method::PUT, &format!("{place}?digest={digest}"), &[], b"6");
    assert_eq!(done.status, 201);
    assert_eq!(get(&mut server, &format!("/v2/a/blobs/{digest}")).body(), b"0123456");
    assert_eq!(ask(&mut server, &Method::PATCH, &place, &[], b"7").code(), "BLOB_UPLOAD_UNKNOWN");

    let second = ask(&mut server, &Method::POST, "/v2/a/blobs/uploads/", &[], b"");
    let place = second.header("location").to_owned();
    assert_eq!(ask(&mut server, &Method::PUT, &place, &[], b"x").code(), "DIGEST_INVALID");
    let wrong = ask(&mut server, &Method::PUT, &format!("{place}?digest={digest}"), &[], b"other");
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "DIGEST_INVALID"));
    let third = ask(&mut server, &Method::POST, "/v2/a/blobs/uploads/", &[], b"");
    let place = third.header("location").to_owned();
    assert_eq!(ask(&mut server, &Method::DELETE, &place, &[], b"").status, 204);
    assert_eq!(ask(&mut server, &Method::GET, &place, &[], b"").status, 404);
}

#[test]
fn a_blob_is_mounted_from_another_repository() {
    let (mut server, image) = server();
    let layer = Digest::of(&image.layer);
    let path = |from: &str| format!("/v2/b/blobs/uploads/?mount={layer}&from={from}");
    for (from, status) in [("team/app", 201), ("team/none", 202)] {
        assert_eq!(ask(&mut server, &Method::POST, &path(from), &[], b"").status, status, "{from}");
    }
    assert_eq!(get(&mut server, &format!("/v2/b/blobs/{layer}")).body(), image.layer);
}

#[test]
fn a_manifest_is_checked_when_it_comes() {
    let mut server = RegistryServer::new();
    server.add_host(HOST);
    let image = Small::new(b"layer");
    assert_eq!(upload(&mut server, "a", &image, "1").status, 201);
    let absent = descriptor("application/vnd.oci.image.layer.v1.tar", b"absent");
    let foreign = {
        let mut layer = descriptor("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", b"absent");
        layer["urls"] = json!(["https://elsewhere.example/layer"]);
        layer
    };
    let config = descriptor("application/vnd.oci.image.config.v1+json", &image.config);
    let manifest = |layers: serde_json::Value| {
        json!({"schemaVersion": 2, "config": config, "layers": layers}).to_string()
    };
    let index =
        |manifests: serde_json::Value| json!({"schemaVersion": 2, "manifests": manifests}).to_string();
    let here = descriptor(OCI_MANIFEST, &image.manifest);
    for (what, media_type, body, status, code) in [
        ("a layer that is not here", OCI_MANIFEST, manifest(json!([absent])), 400, "MANIFEST_BLOB_UNKNOWN"),
        ("a layer from elsewhere", OCI_MANIFEST, manifest(json!([foreign])), 201, ""),
        ("an index of what is here", OCI_INDEX, index(json!([here])), 201, ""),
        ("an index of what is not", OCI_INDEX, index(json!([absent])), 400, "MANIFEST_BLOB_UNKNOWN"),
        ("no JSON", OCI_MANIFEST, "{".to_owned(), 400, "MANIFEST_INVALID"),
        ("no manifest", OCI_MANIFEST, "{}".to_owned(), 400, "MANIFEST_INVALID"),
        ("an old schema", OCI_MANIFEST, json!({"schemaVersion": 1}).to_string(), 400, "MANIFEST_INVALID"),
        ("an index sent as a manifest", OCI_MANIFEST, index(json!([here])), 400, "MANIFEST_INVALID"),
        ("a manifest sent as an index", OCI_INDEX, manifest(json!([])), 400, "MANIFEST_INVALID"),
        (
            "another media type inside",
            OCI_MANIFEST,
            json!({"schemaVersion": 2, "mediaType": OCI_INDEX}).to_string(),
            400,
            "MANIFEST_INVALID",
        ),
        ("no media type", "text/plain", manifest(json!([])), 400, "MANIFEST_INVALID"),
        ("too large", OCI_MANIFEST, " ".repeat(MAX_MANIFEST_BYTES + 1), 413, "SIZE_INVALID"),
    ] {
        let seen = ask(
            &mut server,
            &Method::PUT,
            "/v2/a/manifests/2",
            &[("content-type", media_type)],
            body.as_bytes(),
        );
        assert_eq!(seen.status, status, "{what}");
        if !code.is_empty() {
            assert_eq!(seen.code(), code, "{what}");
        }
    }
    let path = format!("/v2/a/manifests/{}", Digest::of(b"other"));
    let wrong = ask(&mut server, &Method::PUT, &path, &[("content-type", OCI_MANIFEST)], &image.manifest);
    assert_eq!(wrong.code(), "DIGEST_INVALID");
}

#[test]
fn clients_get_what_they_say_they_understand() {
    let mut server = RegistryServer::new();
    let oci = Small::new(b"oci");
    server.push(HOST, "oci", Some("1"), &oci.pushed()).unwrap();
    let docker = Small::of_type(b"docker", DOCKER_MANIFEST);
    server.push(HOST, "docker", Some("plain"), &docker.pushed()).unwrap();
    let mut entry = descriptor(DOCKER_MANIFEST, &docker.manifest);
    entry["platform"] = json!({"os": "linux", "architecture": "amd64"});
    let list = json!({"schemaVersion": 2, "mediaType": DOCKER_LIST, "manifests": [entry]}).to_string();
    let put = ask(
        &mut server,
        &Method::PUT,
        "/v2/docker/manifests/list",
        &[("content-type", DOCKER_LIST)],
        list.as_bytes(),
    );
    assert_eq!(put.status, 201);
    let list_digest = Digest::of(list.as_bytes());
    for (path, accept, status, kind) in [
        ("/v2/oci/manifests/1", OCI_MANIFEST, 200, OCI_MANIFEST),
        ("/v2/oci/manifests/1", &format!("{OCI_INDEX};q=0.5, {OCI_MANIFEST}"), 200, OCI_MANIFEST),
        ("/v2/oci/manifests/1", "*/*", 404, "application/json"),
        ("/v2/oci/manifests/1", DOCKER_MANIFEST, 404, "application/json"),
        ("/v2/docker/manifests/plain", "", 200, DOCKER_MANIFEST),
        ("/v2/docker/manifests/list", DOCKER_LIST, 200, DOCKER_LIST),
        ("/v2/docker/manifests/list", DOCKER_MANIFEST, 200, DOCKER_MANIFEST),
        (&format!("/v2/docker/manifests/{list_digest}"), DOCKER_MANIFEST, 404, "application/json"),
    ] {
        let seen = ask(&mut server, &Method::GET, path, &[("accept", accept)], b"");
        assert_eq!((seen.status, seen.header("content-type")), (status, kind), "{path} {accept}");
    }
}

#[test]
fn listings_come_in_pages() {
    let (mut server, image) = server();
    for tag in ["c", "a", "b"] {
        server.tag(HOST, "team/app", tag, &image.digest()).unwrap();
    }
    server.push(HOST, "zoo", None, &image.pushed()).unwrap();
    for (query, tags, more) in [
        ("", json!(["1", "a", "b", "c"]), ""),
        ("?n=2", json!(["1", "a"]), "</v2/team/app/tags/list?last=a&n=2>; rel=\"next\""),
        ("?last=a&n=2", json!(["b", "c"]), ""),
        ("?n=3&last=aa", json!(["b", "c"]), ""),
        ("?n=0", json!([]), ""),
        ("?n=99999999999", json!(["1", "a", "b", "c"]), ""),
    ] {
        let seen = get(&mut server, &format!("/v2/team/app/tags/list{query}"));
        assert_eq!(seen.json(), json!({"name": "team/app", "tags": tags}), "{query}");
        assert_eq!(seen.header("link"), more, "{query}");
    }
    assert_eq!(get(&mut server, "/v2/_catalog").json(), json!({"repositories": ["team/app", "zoo"]}));
    let first = get(&mut server, "/v2/_catalog?n=1");
    assert_eq!(first.header("link"), "</v2/_catalog?last=team%2Fapp&n=1>; rel=\"next\"");
    assert_eq!(get(&mut server, "/v2/_catalog?last=team%2Fapp&n=1").json(), json!({"repositories": ["zoo"]}));
}

#[test]
fn deleting() {
    let (mut server, image) = server();
    server.tag(HOST, "team/app", "2", &image.digest()).unwrap();
    let delete =
        |server: &mut RegistryServer, path: &str| ask(server, &Method::DELETE, path, &[], b"").status;
    assert_eq!(delete(&mut server, "/v2/team/app/manifests/2"), 202);
    assert_eq!(delete(&mut server, "/v2/team/app/manifests/2"), 404);
    assert_eq!(get(&mut server, "/v2/team/app/manifests/1").status, 200);
    let by_digest = format!("/v2/team/app/manifests/{}", image.digest());
    assert_eq!(delete(&mut server, &by_digest), 202);
    assert_eq!(delete(&mut server, &by_digest), 404);
    assert_eq!(get(&mut server, "/v2/team/app/manifests/1").status, 404);
    let blob = format!("/v2/team/app/blobs/{}", Digest::of(&image.layer));
    assert_eq!(delete(&mut server, &blob), 202);
    assert_eq!(delete(&mut server, &blob), 404);
}

#[test]
fn referrers_of_an_image() {
    let (mut server, image) = server();
    let subject = image.digest();
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "application/vnd.example.sbom",
        "config": descriptor("application/vnd.oci.empty.v1+json", &image.config), "layers": [],
        "subject": descriptor(OCI_MANIFEST, &image.manifest), "annotations": {"a": "b"},
    })
    .to_string();
    let path = format!("/v2/team/app/manifests/{}", Digest::of(manifest.as_bytes()));
    let put = ask(&mut server, &Method::PUT, &path, &[("content-type", OCI_MANIFEST)], manifest.as_bytes());
    assert_eq!((put.status, put.header("oci-subject")), (201, subject.to_string().as_str()));
    let list = get(&mut server, &format!("/v2/team/app/referrers/{subject}"));
    assert_eq!(list.header("content-type"), OCI_INDEX);
    assert_eq!(list.json()["manifests"][0]["artifactType"], "application/vnd.example.sbom");
    assert_eq!(list.json()["manifests"][0]["annotations"], json!({"a": "b"}));
    let none = get(&mut server, &format!("/v2/team/app/referrers/{subject}?artifactType=x"));
    assert_eq!(
        (none.json()["manifests"].clone(), none.header("oci-filters-applied")),
        (json!([]), "artifactType")
    );
    let unknown = get(&mut server, &format!("/v2/never/heard/referrers/{subject}"));
    assert_eq!((unknown.status, unknown.json()["manifests"].clone()), (200, json!([])));
}

#[test]
fn pushing_from_rust_is_checked_and_all_or_nothing() {
    let image = Small::new(b"x");
    let mut server = RegistryServer::new();
    let mut wrong = image.pushed();
    wrong.blobs[1].2 = "other".into();
    assert!(matches!(server.push(HOST, "a", Some("1"), &wrong), Err(PushError::Digest { .. })));
    let mut rootless = image.pushed();
    rootless.blobs.pop();
    assert!(matches!(server.push(HOST, "a", Some("1"), &rootless), Err(PushError::Root { .. })));
    assert!(matches!(server.push(HOST, "A", Some("1"), &image.pushed()), Err(PushError::Repository(_))));
    assert!(matches!(server.push(HOST, "a", Some("a b"), &image.pushed()), Err(PushError::Tag { .. })));
    assert!(matches!(server.tag(HOST, "a", "1", &image.digest()), Err(PushError::Missing { .. })));
    assert_eq!(server.repositories(HOST).count(), 0);
    server.push(HOST, "a", Some("1"), &image.pushed()).unwrap();
    assert_eq!(server.tags(HOST, "a").collect::<Vec<_>>(), [("1", &image.digest())]);
    assert!(server.remove(HOST, "a", "1"));
    assert!(!server.remove(HOST, "a", "1"));
    assert!(server.remove(HOST, "a", &Digest::of(b"x").to_string()));
    assert_eq!(server.blob(HOST, "a", &Digest::of(b"x")), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_request_gets_an_answer_and_the_same_one_every_time(
        requests in proptest::collection::vec(
            (0usize..6, "(/v2/)?(team/app|a|_catalog)?(/manifests/|/blobs/|/blobs/uploads/|/tags/list|/referrers/)?[a-z0-9:@%?=&-]{0,20}", "[ -~]{0,30}", "[ -~]{0,20}"),
            0..8,
        ),
    ) {
        let play = || {
            let (mut server, _) = server();
            requests.iter().map(|(method, path, header, body)| {
                let methods = [Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::PATCH, Method::DELETE];
                let request = http::Request::builder()
                    .method(&methods[*method])
                    .uri(format!("/{}", path.trim_start_matches('/')))
                    .header("range", header).header("content-range", header).header("authorization", header).header("content-type", header)
                    .body(body.clone().into());
                request.map(|request| {
                    let response = server.handle(HOST, &request);
                    (response.status(), response.headers().clone(), response.body().clone())
                }).ok()
            }).collect::<Vec<_>>()
        };
        let (first, second) = (play(), play());
        prop_assert!(first.iter().flatten().all(|(status, ..)| !status.is_server_error()));
        prop_assert_eq!(first, second);
    }
}
