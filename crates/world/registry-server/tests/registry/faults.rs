use http::Method;
use scantling_image::Digest;
use scantling_registry_server::{Effect, Fault, Requests, Subject, Unreachable};

use crate::client::*;

fn fault(text: &str) -> Fault {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_status_for_the_next_requests() {
    let (mut server, _) = server();
    server.faults().add(fault(r#"{"requests": {"subject": "manifest"}, "effect": {"kind": "status", "status": 429, "retryAfter": 7}, "after": 1, "times": 2}"#));
    let path = "/v2/team/app/manifests/1";
    let seen: Vec<u16> = (0..4).map(|_| get(&mut server, path).status).collect();
    assert_eq!(seen, [200, 429, 429, 200]);
    assert_eq!(server.faults().waiting().count(), 0);
    server.faults().add(fault(r#"{"effect": {"kind": "status", "status": 429, "retryAfter": 7}}"#));
    let seen = get(&mut server, path);
    assert_eq!((seen.header("retry-after"), seen.code().as_str()), ("7", "TOOMANYREQUESTS"));
}

#[test]
fn faults_are_for_the_requests_they_name() {
    let (mut server, image) = server();
    let layer = Digest::of(&image.layer);
    let blob = format!("/v2/team/app/blobs/{layer}");
    let by_digest = format!("/v2/team/app/manifests/{}", image.digest());
    let status = |requests| Fault {
        requests,
        effect: Effect::Status { status: 500, retry_after: None },
        after: 0,
        times: None,
    };
    let some = |text: &str| Some(text.to_owned());
    let all = Requests::default();
    for (requests, method, path, hit) in [
        (Requests { host: some("REGISTRY.example:5000"), ..all.clone() }, Method::GET, blob.as_str(), true),
        (Requests { host: some("else"), ..all.clone() }, Method::GET, &blob, false),
        (Requests { repository: some("team"), ..all.clone() }, Method::GET, &blob, true),
        (Requests { repository: some("tea"), ..all.clone() }, Method::GET, &blob, false),
        (Requests { repository: some("team"), ..all.clone() }, Method::GET, "/v2/", false),
        (Requests { subject: Some(Subject::Blob), ..all.clone() }, Method::GET, &blob, true),
        (Requests { subject: Some(Subject::Manifest), ..all.clone() }, Method::GET, &blob, false),
        (Requests { method: some("head"), ..all.clone() }, Method::HEAD, &blob, true),
        (Requests { method: some("HEAD"), ..all.clone() }, Method::GET, &blob, false),
        (Requests { reference: some("1"), ..all.clone() }, Method::GET, "/v2/team/app/manifests/1", true),
        (Requests { reference: some("1"), ..all.clone() }, Method::GET, &by_digest, false),
        (Requests { reference: Some(layer.to_string()), ..all }, Method::GET, &blob, true),
    ] {
        let id = server.faults().add(status(requests.clone()));
        let seen = ask(&mut server, &method, path, &[("accept", OCI_MANIFEST)], b"");
        assert_eq!(seen.status == 500, hit, "{requests:?} {method} {path}");
        assert!(server.faults().clear(id).is_some());
    }
}

#[test]
fn lost_bytes() {
    let (mut server, image) = server();
    let path = format!("/v2/team/app/blobs/{}", Digest::of(&image.layer));
    server.faults().add(Fault {
        requests: Requests::default(),
        effect: Effect::Truncate { bytes: 4 },
        after: 0,
        times: None,
    });
    assert_eq!(get(&mut server, &path).body(), b"0123");
    // HEAD knows nothing of it, and a range that is short enough is whole.
    assert_eq!(ask(&mut server, &Method::HEAD, &path, &[], b"").header("content-length"), "10");
    assert_eq!(ask(&mut server, &Method::GET, &path, &[("range", "bytes=0-0")], b"").body(), b"0");
    server.faults().clear_all();
    // The manifest is there, its layer is not.
    server
        .faults()
        .add(fault(r#"{"requests": {"subject": "blob", "method": "GET"}, "effect": {"kind": "missing"}}"#));
    assert_eq!(get(&mut server, "/v2/team/app/manifests/1").status, 200);
    assert_eq!(ask(&mut server, &Method::HEAD, &path, &[], b"").status, 200);
    let seen = get(&mut server, &path);
    assert_eq!((seen.status, seen.code().as_str()), (404, "BLOB_UNKNOWN"));
}

#[test]
fn an_outage_of_a_host() {
    let (mut server, image) = server();
    server.push("mirror.example", "team/app", Some("1"), &image.pushed()).unwrap();
    let id = server
        .faults()
        .add(fault(&format!(r#"{{"requests": {{"host": "{HOST}"}}, "effect": {{"kind": "outage"}}}}"#)));
    let seen = get(&mut server, "/v2/");
    assert!(seen.response.extensions().get::<Unreachable>().is_some());
    let other = ask_at(&mut server, "mirror.example", &Method::GET, "/v2/", &[], b"");
    assert!(other.status == 200 && other.response.extensions().get::<Unreachable>().is_none());
    server.faults().clear(id);
    assert_eq!(get(&mut server, "/v2/").status, 200);
}

#[test]
fn a_fault_that_is_written_wrongly_is_refused() {
    for text in [
        r#"{"effect": {"kind": "status"}}"#,
        r#"{"effect": {"kind": "explode"}}"#,
        r#"{"effect": {"kind": "missing"}, "for": 1}"#,
    ] {
        assert!(serde_json::from_str::<Fault>(text).is_err(), "{text}");
    }
}
