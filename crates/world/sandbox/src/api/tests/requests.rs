//! What single requests and short histories of them do.

use serde_json::{Value, json};

use super::{CONFIG_MAPS, Server, config_map};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}})
}

#[test]
fn pages_show_one_moment() {
    let mut server = Server::new();
    for name in ["a", "b", "c", "d"] {
        server.post(CONFIG_MAPS, &config_map(name, &json!({})));
    }
    let first = server.get(&format!("{CONFIG_MAPS}?limit=2"));
    assert_eq!(first["metadata"]["remainingItemCount"], json!(2));
    assert_eq!((&first["kind"], first["items"].as_array().unwrap().len()), (&json!("ConfigMapList"), 2));
    assert_eq!(first.pointer("/items/0/kind"), None, "items of built-in kinds carry no kind");
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    // What happens between the pages is not seen.
    server.ask("DELETE", &format!("{CONFIG_MAPS}/c"), &Value::Null);
    server.post(CONFIG_MAPS, &config_map("e", &json!({})));
    let second = server.get(&format!("{CONFIG_MAPS}?limit=5&continue={token}"));
    let names: Vec<&str> = second["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert_eq!(second["metadata"]["continue"], Value::Null);
    // A token that is too old is refused.
    let version = server.api.store.version();
    server.api.store.compact(version);
    assert_eq!(server.ask("GET", &format!("{CONFIG_MAPS}?continue={token}"), &Value::Null).0, 410);
}

#[test]
fn versions_of_the_past_and_the_future() {
    let mut server = Server::new();
    let first = server.post(CONFIG_MAPS, &config_map("a", &json!({"k": "1"})));
    let version = first["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    server.ask("PATCH", &format!("{CONFIG_MAPS}/a"), &json!({"data": {"k": "2"}}));
    let exact = format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(server.get(&exact)["items"][0]["data"]["k"], json!("1"));
    assert_eq!(
        server.get(&format!("{CONFIG_MAPS}?resourceVersion={version}"))["items"][0]["data"]["k"],
        json!("2")
    );
    for (query, code) in [
        ("resourceVersion=999999", 504),
        ("resourceVersion=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=1&resourceVersionMatch=Other", 422),
        ("continue=x", 400),
        ("limit=x", 400),
    ] {
        assert_eq!(server.ask("GET", &format!("{CONFIG_MAPS}?{query}"), &Value::Null).0, code, "{query}");
    }
}

#[test]
fn writes_that_change_nothing_make_no_version() {
    let mut server = Server::new();
    let created = server.post(CONFIG_MAPS, &config_map("a", &json!({"k": "1"})));
    server.later(60);
    let path = format!("{CONFIG_MAPS}/a");
    let (code, same) = server.ask("PUT", &path, &config_map("a", &json!({"k": "1"})));
    assert_eq!((code, &same), (200, &created));
    assert_eq!(server.ask("PATCH", &path, &json!({"data": {"k": "1"}})), (200, created.clone()));
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "1"}});
    let apply = "application/apply-patch+yaml";
    let (_, first) = server.ask_as("PATCH", &format!("{path}?fieldManager=m"), &applied, apply, "");
    assert_ne!(first["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    server.later(60);
    assert_eq!(server.ask_as("PATCH", &format!("{path}?fieldManager=m"), &applied, apply, ""), (200, first));
}

#[test]
fn dry_runs_store_nothing() {
    let mut server = Server::new();
    server.post(CONFIG_MAPS, &config_map("a", &json!({"k": "1"})));
    let before = server.api.store.version();
    for (method, path, body) in [
        ("POST", format!("{CONFIG_MAPS}?dryRun=All"), config_map("b", &json!({}))),
        ("PUT", format!("{CONFIG_MAPS}/a?dryRun=All"), config_map("a", &json!({}))),
        ("PATCH", format!("{CONFIG_MAPS}/a?dryRun=All"), json!({"data": {"k": "2"}})),
        ("DELETE", format!("{CONFIG_MAPS}/a?dryRun=All"), Value::Null),
        ("DELETE", format!("{CONFIG_MAPS}/a"), json!({"dryRun": ["All"]})),
        ("DELETE", format!("{CONFIG_MAPS}?dryRun=All"), Value::Null),
    ] {
        let (code, answer) = server.ask(method, &path, &body);
        assert!(code == 200 || code == 201, "{path}: {answer}");
    }
    assert_eq!(server.api.store.version(), before);
}

#[test]
fn generations_count_what_is_wanted() {
    let mut server = Server::new();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    server.post(deployments, &body);
    let path = format!("{deployments}/d");
    for (path, patch, generation) in [
        (path.clone(), json!({"metadata": {"labels": {"x": "y"}}}), 1),
        (format!("{path}/status"), json!({"status": {"replicas": 1}}), 1),
        (path.clone(), json!({"status": {"replicas": 5}}), 1),
        (path.clone(), json!({"metadata": {"annotations": {"x": "y"}}}), 2),
        (path.clone(), json!({"spec": {"replicas": 2}}), 3),
        (format!("{path}/scale"), json!({"spec": {"replicas": 3}}), 4),
    ] {
        let (code, _) = server.ask("PATCH", &path, &patch);
        assert_eq!(
            (code, &server.get(&format!("{deployments}/d"))["metadata"]["generation"]),
            (200, &json!(generation)),
            "{patch}"
        );
    }
    let stored = server.get(&path);
    assert_eq!((&stored["status"]["replicas"], &stored["spec"]["replicas"]), (&json!(1), &json!(3)));
}

#[test]
fn pods_end_in_their_time() {
    let mut server = Server::new();
    server.post(PODS, &pod("waiting"));
    let (_, gone) = server.ask("DELETE", &format!("{PODS}/waiting"), &Value::Null);
    assert_eq!(gone["kind"], json!("Pod"), "a pod that no node has goes at once");
    assert_eq!(server.ask("GET", &format!("{PODS}/waiting"), &Value::Null).0, 404);
    server.post(PODS, &pod("p"));
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    server.post(&format!("{PODS}/p/binding"), &binding);
    assert_eq!(server.ask("POST", &format!("{PODS}/p/binding"), &binding).0, 409);
    for (body, seconds) in
        [(Value::Null, 30), (json!({"gracePeriodSeconds": 60}), 30), (json!({"gracePeriodSeconds": 5}), 5)]
    {
        let (code, pod) = server.ask("DELETE", &format!("{PODS}/p"), &body);
        assert_eq!((code, &pod["metadata"]["deletionGracePeriodSeconds"]), (200, &json!(seconds)));
    }
    let deleted = server.get(&format!("{PODS}/p"))["metadata"]["deletionTimestamp"].clone();
    assert_eq!(deleted, json!("2024-05-01T10:00:05Z"));
    server.ask("DELETE", &format!("{PODS}/p"), &json!({"gracePeriodSeconds": 0}));
    assert_eq!(server.ask("GET", &format!("{PODS}/p"), &Value::Null).0, 404);
}

#[test]
fn evictions_ask_the_budgets() {
    let mut server = Server::new();
    let mut running = pod("p");
    running["metadata"]["labels"] = json!({"app": "a"});
    server.post(PODS, &running);
    server.ask("PATCH", &format!("{PODS}/p/status"), &json!({"status": {"phase": "Running"}}));
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    server.post(budgets, &budget);
    let evict = format!("{PODS}/p/eviction");
    let (code, refused) = server.ask("POST", &evict, &json!({}));
    assert_eq!((code, &refused["details"]["causes"][0]["reason"]), (429, &json!("DisruptionBudget")));
    let status = json!({"status": {"disruptionsAllowed": 1, "observedGeneration": 1}});
    assert_eq!(server.ask("PATCH", &format!("{budgets}/b/status"), &status).0, 200);
    server.post(&evict, &json!({}));
    assert_eq!(server.get(&format!("{budgets}/b"))["status"]["disruptionsAllowed"], json!(0));
    assert_eq!(server.ask("GET", &format!("{PODS}/p"), &Value::Null).0, 404);
}

#[test]
fn namespaces_wait_for_their_finalizer() {
    let mut server = Server::new();
    server.post(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}),
    );
    let maps = "/api/v1/namespaces/n/configmaps";
    server.post(maps, &config_map("a", &json!({})));
    let (_, namespace) = server.ask("DELETE", "/api/v1/namespaces/n", &Value::Null);
    assert_eq!(namespace["status"]["phase"], json!("Terminating"));
    let (code, refused) = server.ask("POST", maps, &config_map("b", &json!({})));
    assert_eq!((code, &refused["details"]["causes"][0]["reason"]), (403, &json!("NamespaceTerminating")));
    // A plain update does not take the finalizer away, `finalize` does.
    assert_eq!(server.ask("PATCH", "/api/v1/namespaces/n", &json!({"spec": {"finalizers": []}})).0, 200);
    assert_eq!(server.get("/api/v1/namespaces/n")["spec"]["finalizers"], json!(["kubernetes"]));
    let mut done = server.get("/api/v1/namespaces/n");
    done["spec"]["finalizers"] = json!([]);
    assert_eq!(server.ask("PUT", "/api/v1/namespaces/n/finalize", &done).0, 200);
    assert_eq!(server.ask("GET", "/api/v1/namespaces/n", &Value::Null).0, 404);
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let mut server = Server::new();
    server.post(PODS, &pod("p"));
    for (method, path, part) in [
        ("GET", "p/log", "log of a Pod"),
        ("POST", "p/exec", "exec of a Pod"),
        ("GET", "p/portforward", "portforward of a Pod"),
        ("PATCH", "p/ephemeralcontainers", "ephemeralcontainers of a Pod"),
    ] {
        let (code, refused) = server.ask(method, &format!("{PODS}/{path}"), &json!({}));
        assert_eq!(code, 501);
        assert!(refused["message"].as_str().unwrap().contains(part), "{refused}");
    }
    for (method, path, code) in [
        ("GET", format!("{PODS}/p/nosuch"), 404),
        ("PUT", format!("{PODS}/p/binding"), 405),
        ("GET", "/api/v1/watch/pods".to_owned(), 501),
        ("POST", "/api/v1/pods".to_owned(), 405),
        ("GET", "/api/v1/pods/p".to_owned(), 404),
        ("GET", "/api/v1/namespaces/default/nodes".to_owned(), 404),
        ("OPTIONS", "/api/v1/pods".to_owned(), 405),
        ("DELETE", "/version".to_owned(), 405),
    ] {
        assert_eq!(server.ask(method, &path, &Value::Null).0, code, "{method} {path}");
    }
}

#[test]
fn other_kinds_than_kubernetes_are_served_on_openshift_only() {
    let streams = "/apis/image.openshift.io/v1/namespaces/default/imagestreams";
    assert_eq!(Server::of(false).ask("GET", streams, &Value::Null).0, 404);
    let mut server = Server::of(true);
    let stream = json!({"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "s"},
        "spec": {"tags": [{"name": "1", "from": {"kind": "DockerImage", "name": "r/x:1"}}]}});
    let created = server.post(streams, &stream);
    assert_eq!(created.pointer("/spec/tags/0/referencePolicy/type"), Some(&json!("Source")));
    // Tags merge by name in a strategic patch, and are one value for server-side apply.
    let patch = json!({"spec": {"tags": [{"name": "2", "from": {"kind": "DockerImage", "name": "r/x:2"}}]}});
    let strategic = "application/strategic-merge-patch+json";
    let (_, patched) = server.ask_as("PATCH", &format!("{streams}/s"), &patch, strategic, "");
    assert_eq!(patched["spec"]["tags"].as_array().map(Vec::len), Some(2));
    let names = server.get("/apis")["groups"].to_string();
    assert!(names.contains("route.openshift.io"));
}

#[test]
fn discovery_and_openapi_name_every_kind() {
    let mut server = Server::of(true);
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let mut aggregated = 0;
    for path in ["/api", "/apis"] {
        let (code, document) = server.ask_as("GET", path, &Value::Null, "", accept);
        assert_eq!((code, &document["kind"]), (200, &json!("APIGroupDiscoveryList")));
        for group in document["items"].as_array().unwrap() {
            let resources = group["versions"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|version| version["resources"].as_array().unwrap());
            aggregated += resources.count();
        }
    }
    let paths = server.get("/openapi/v3")["paths"].as_object().unwrap().clone();
    let mut listed = 0;
    for (path, document) in paths {
        let resources = server.get(&format!("/{path}"))["resources"].as_array().unwrap().clone();
        listed +=
            resources.iter().filter(|resource| !resource["name"].as_str().unwrap().contains('/')).count();
        let document = server.get(document["serverRelativeURL"].as_str().unwrap());
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{path}: {name}");
        }
    }
    assert_eq!(listed, aggregated);
    assert!(listed > 70);
}

#[test]
fn yaml_is_taken_and_given() {
    let mut server = Server::new();
    let body = json!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: \"yes\"\n");
    let (code, text) = server.ask_as("POST", CONFIG_MAPS, &body, "application/yaml", "application/yaml");
    assert_eq!(code, 201);
    assert!(text.as_str().unwrap().contains("k: \"yes\""), "{text}");
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a"))["data"]["k"], json!("yes"));
}

#[test]
fn some_kinds_are_other_looks_at_stored_ones() {
    let mut server = Server::of(true);
    // A project is a namespace.
    let projects = "/apis/project.openshift.io/v1/projects";
    let watch = server.watch(&format!("{projects}?watch=1&resourceVersion={}", server.api.store.version()));
    let project =
        json!({"apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": {"name": "p"}});
    assert_eq!(server.post(projects, &project)["kind"], json!("Project"));
    assert_eq!(server.get("/api/v1/namespaces/p")["status"]["phase"], json!("Active"));
    assert_eq!(server.get(projects)["items"].as_array().map(Vec::len), Some(3));
    let (code, gone) = server.ask("DELETE", &format!("{projects}/p"), &Value::Null);
    assert_eq!(
        (code, &gone["kind"], &gone["status"]["phase"]),
        (200, &json!("Project"), &json!("Terminating"))
    );
    let (events, _) = server.poll(watch);
    let kinds: Vec<_> =
        events.iter().map(|(event, object)| (event.as_str(), object["kind"].as_str().unwrap())).collect();
    assert_eq!(kinds, [("ADDED", "Project"), ("MODIFIED", "Project")]);
    // An event of one group is seen in the other.
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "n",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "R", "type": "Normal"});
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    assert_eq!(server.post(events, &event)["note"], json!("n"));
    let seen = server.get("/api/v1/namespaces/default/events/e");
    assert_eq!((&seen["message"], &seen["involvedObject"]["name"]), (&json!("n"), &json!("p")));
    let (_, patched) = server.ask("PATCH", &format!("{events}/e"), &json!({"note": "m"}));
    assert_eq!((&patched["note"], &patched["regarding"]["kind"]), (&json!("m"), &json!("Pod")));
    let misspelt =
        json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "f"}, "message": "n"});
    assert_eq!(server.ask("POST", &format!("{events}?fieldValidation=Strict"), &misspelt).0, 400);
    // The first version of an autoscaler.
    let first = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let scaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "targetCPUUtilizationPercentage": 50}});
    assert_eq!(server.post(first, &scaler)["spec"]["targetCPUUtilizationPercentage"], json!(50));
    let second = first.replace("/v1/", "/v2/");
    let stored = server.get(&format!("{second}/h"));
    assert_eq!(stored.pointer("/spec/metrics/0/resource/target/averageUtilization"), Some(&json!(50)));
}
