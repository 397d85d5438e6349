//! What watches say, and when they end.

use serde_json::{Value, json};

use super::{CONFIG_MAPS, Server, config_map};

fn seen(events: &[(String, Value)]) -> Vec<String> {
    events
        .iter()
        .map(|(kind, object)| format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or("-")))
        .collect()
}

#[test]
fn changes_are_told_from_a_version_on() {
    let mut server = Server::new();
    let first = server.post(CONFIG_MAPS, &config_map("a", &json!({})));
    let version = first["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    server.post(CONFIG_MAPS, &config_map("b", &json!({})));
    let id = server.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}"));
    server.post("/api/v1/namespaces/kube-system/configmaps", &config_map("elsewhere", &json!({})));
    server.ask("PATCH", &format!("{CONFIG_MAPS}/a"), &json!({"data": {"k": "1"}}));
    server.ask("DELETE", &format!("{CONFIG_MAPS}/b"), &Value::Null);
    let (events, closed) = server.poll(id);
    assert_eq!(seen(&events), ["ADDED b", "MODIFIED a", "DELETED b"]);
    let versions: Vec<u64> = events
        .iter()
        .map(|(_, object)| object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(versions.is_sorted() && !closed, "{versions:?}");
    assert_eq!(server.poll(id), (vec![], false));
    server.api.watch_close(id);
    assert_eq!(server.poll(id), (vec![], true));
}

#[test]
fn a_watch_without_a_version_begins_with_what_there_is() {
    let mut server = Server::new();
    server.post(CONFIG_MAPS, &config_map("a", &json!({})));
    for version in ["", "&resourceVersion=0"] {
        let id = server.watch(&format!("{CONFIG_MAPS}?watch=1{version}"));
        assert_eq!(seen(&server.poll(id).0), ["ADDED a"]);
    }
}

#[test]
fn a_streamed_list_ends_with_a_bookmark() {
    let mut server = Server::new();
    server.post(CONFIG_MAPS, &config_map("a", &json!({})));
    let id = server.watch(&format!(
        "{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    ));
    let (events, _) = server.poll(id);
    assert_eq!(seen(&events), ["ADDED a", "BOOKMARK -"]);
    let bookmark = &events.last().unwrap().1;
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], json!("true"));
    assert_eq!(bookmark["metadata"]["resourceVersion"], json!(server.api.store.version().to_string()));
    let path = format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=true");
    assert_eq!(server.ask("GET", &path, &Value::Null).0, 422);
}

#[test]
fn selectors_make_objects_come_and_go() {
    let mut server = Server::new();
    let mut labelled = config_map("a", &json!({}));
    labelled["metadata"]["labels"] = json!({"t": "1"});
    server.post(CONFIG_MAPS, &labelled);
    let id = server.watch(&format!("{CONFIG_MAPS}?watch=1&labelSelector=t%3D1"));
    server.post(CONFIG_MAPS, &config_map("b", &json!({})));
    let path = |name: &str| format!("{CONFIG_MAPS}/{name}");
    let label = |value: &str| json!({"metadata": {"labels": {"t": value}}});
    server.ask("PATCH", &path("b"), &label("1"));
    server.ask("PATCH", &path("a"), &label("2"));
    server.ask("DELETE", &path("a"), &Value::Null);
    let (events, _) = server.poll(id);
    assert_eq!(seen(&events), ["ADDED a", "ADDED b", "DELETED a"]);
    // The object that left is told in the last state that was selected.
    assert_eq!(events.last().unwrap().1["metadata"]["labels"]["t"], json!("1"));
    let id = server.watch(&format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Db"));
    assert_eq!(seen(&server.poll(id).0), ["ADDED b"]);
    let id = server.watch(&format!("{CONFIG_MAPS}/b?watch=1"));
    assert_eq!(seen(&server.poll(id).0), ["ADDED b"]);
}

#[test]
fn what_is_forgotten_cannot_be_watched() {
    let mut server = Server::new();
    server.post(CONFIG_MAPS, &config_map("a", &json!({})));
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=1");
    let id = server.watch(&path);
    let version = server.api.store.version();
    server.api.store.compact(version);
    let (events, closed) = server.poll(id);
    assert_eq!((events[0].0.as_str(), &events[0].1["code"], closed), ("ERROR", &json!(410), true));
    assert_eq!(server.ask("GET", &path, &Value::Null).0, 410);
    assert_eq!(
        server.ask("GET", &format!("{CONFIG_MAPS}?watch=1&resourceVersion=9999"), &Value::Null).0,
        504
    );
}

#[test]
fn watches_end_and_bookmarks_come_by_the_clock() {
    let mut server = Server::new();
    let id = server.watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=100&allowWatchBookmarks=true"));
    assert_eq!(server.poll(id), (vec![], false));
    assert_eq!(server.api.next_watch_time(), "2024-05-01T10:01:00Z".parse().ok());
    server.later(60);
    assert_eq!(seen(&server.poll(id).0), ["BOOKMARK -"]);
    assert_eq!(server.api.next_watch_time(), "2024-05-01T10:01:40Z".parse().ok());
    server.later(40);
    assert_eq!(server.poll(id), (vec![], true));
    assert_eq!(server.api.next_watch_time(), None);
}

#[test]
fn tables_and_metadata_are_watched_too() {
    let mut server = Server::new();
    for name in ["a", "b"] {
        server.post(CONFIG_MAPS, &config_map(name, &json!({"k": "v"})));
    }
    let begin = |server: &mut Server, accept: &str| {
        let request = http::Request::builder()
            .uri(format!("{CONFIG_MAPS}?watch=1"))
            .header("accept", accept)
            .body(bytes::Bytes::new())
            .unwrap();
        match server.send(&request) {
            super::Reply::Watch(id) => id,
            super::Reply::Once(response) => panic!("{response:?}"),
        }
    };
    let id = begin(&mut server, "application/json;as=Table;v=v1;g=meta.k8s.io");
    let (events, _) = server.poll(id);
    let columns: Vec<bool> = events.iter().map(|(_, table)| table["columnDefinitions"].is_array()).collect();
    assert_eq!(columns, [true, false], "columns come once");
    assert_eq!(events[1].1["rows"][0]["cells"], json!(["b", 1, "0s"]));
    let id = begin(&mut server, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    let (events, _) = server.poll(id);
    assert_eq!((&events[0].1["kind"], events[0].1.get("data")), (&json!("PartialObjectMetadata"), None));
}
