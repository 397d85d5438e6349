//! A cluster of a few lines: writes actions into what is observed, and plays the controllers and the node that make pods.
//! It is held to what the reconcilers depend on, nothing more.

use std::collections::BTreeMap;

use scantling_api::schema::Schema;
use scantling_api::{ObjectKey, object};
use scantling_image::{Digest, ImageIdentity, Reference};
use scantling_merge::Request;
use scantling_observed::{Observed, PackageVersion};
use scantling_reconcile::{Action, Context, KnownImage, KnownImages, LastUses, Met, RECONCILERS};
use serde_json::{Value, json};

pub(crate) const PLATFORM: &str = "redhat-ods-applications";
pub(crate) const SELECTION: &str = "tensorflow:py3.8-cuda-11.0.3";
pub(crate) const ALIAS: &str =
    "image-registry.openshift-image-registry.svc:5000/redhat-ods-applications/tensorflow:py3.8-cuda-11.0.3";

/// An image whose digests follow from its name.
pub(crate) fn digest(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

pub(crate) fn image(name: &str) -> String {
    format!("quay.io/modh/tensorflow@{}", digest(name))
}

pub(crate) fn packages(versions: &[(&str, &str)]) -> Vec<PackageVersion> {
    versions
        .iter()
        .map(|(name, version)| PackageVersion { name: (*name).into(), version: (*version).into() })
        .collect()
}

pub(crate) fn known(name: &str, versions: &[(&str, &str)]) -> KnownImage {
    let identity = ImageIdentity::of_manifest(digest(name), Some(digest(&format!("{name} config"))));
    KnownImage { identity, packages: packages(versions) }
}

#[derive(Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) observed: Observed,
    pub(crate) images: KnownImages,
    /// What was met when writing.
    pub(crate) met: Met,
    /// What becomes of the image of a pod that is admitted: where it is replaced, and with what.
    pub(crate) rewritten: Option<(String, String)>,
    /// What notebooks answered.
    pub(crate) last_uses: LastUses,
    pub(crate) events: Vec<(String, String)>,
    /// Images that cannot be pulled.
    pub(crate) unpullable: Vec<String>,
    pub(crate) now: u64,
    uids: u64,
    /// Every template that was written over one that had started: (set, pods at that time).
    pub(crate) restarts: Vec<String>,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn put(&mut self, mut object: Value) -> ObjectKey {
        if object::uid(&object).is_empty() {
            self.uids += 1;
            object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        }
        self.observed.insert(object).unwrap()
    }

    pub(crate) fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.observed.get(&ObjectKey::namespaced(group, kind, namespace, name))
    }

    pub(crate) fn edit(&mut self, group: &str, kind: &str, namespace: &str, name: &str, patch: &Value) {
        let key = ObjectKey::namespaced(group, kind, namespace, name);
        let mut object = self.observed.get(&key).unwrap().clone();
        merge(&mut object, patch);
        self.observed.insert(object).unwrap();
    }

    pub(crate) fn remove(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        self.observed.remove(&ObjectKey::namespaced(group, kind, namespace, name)).unwrap();
    }

    pub(crate) fn catalogue(&mut self, name: &str, versions: &[(&str, &str)]) {
        self.put(json!({
            "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
            "metadata": {"name": "tensorflow-py3.8-cuda-11.0.3", "namespace": PLATFORM},
            "spec": {
                "selection": SELECTION, "title": "TensorFlow", "image": image(name), "aliases": [ALIAS],
                "packages": packages(versions), "digests": [digest(name), digest(&format!("{name} config"))],
                "release": "1",
            },
        }));
    }

    pub(crate) fn notebook(&mut self, name: &str, selection: Option<&str>) {
        let mut notebook = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
            "metadata": {"name": name, "namespace": "anna", "labels": {"opendatahub.io/dashboard": "true"}, "annotations": {}},
            "spec": {"template": {"spec": {"containers": [{
                "name": name, "image": "whatever:latest",
                "env": [{"name": "JUPYTER_IMAGE", "value": "whatever:latest"}],
                "resources": {"limits": {"cpu": "1000m"}},
            }]}}},
        });
        if let Some(selection) = selection {
            notebook["metadata"]["annotations"]["notebooks.opendatahub.io/last-image-selection"] =
                json!(selection);
        }
        self.put(notebook);
    }

    pub(crate) fn annotate(&mut self, notebook: &str, name: &str, value: &Value) {
        self.edit(
            "kubeflow.org",
            "Notebook",
            "anna",
            notebook,
            &json!({"metadata": {"annotations": {name: value}}}),
        );
    }

    /// The notebook answers that it was used last at a time.
    pub(crate) fn answers(&mut self, notebook: &str, last_use: &str) {
        let uid = object::uid(self.get("kubeflow.org", "Notebook", "anna", notebook).unwrap()).to_owned();
        self.last_uses.insert(uid, scantling_observed::unix_seconds(last_use).unwrap());
    }

    fn time(&self) -> String {
        format!("2026-01-01T00:{:02}:{:02}Z", self.now / 60, self.now % 60)
    }

    /// What the reconcilers want now.
    pub(crate) fn wanted(&self) -> Vec<Action> {
        let now = self.time();
        let context = Context {
            now: &now,
            namespace: PLATFORM,
            images: &self.images,
            platform: None,
            last_uses: &self.last_uses,
            met: &self.met,
        };
        RECONCILERS.iter().flat_map(|reconciler| (reconciler.reconcile)(&self.observed, &context)).collect()
    }

    /// Reconciles and plays the cluster until nothing moves. Gives the number of actions written.
    pub(crate) fn settle(&mut self) -> usize {
        let mut written = 0;
        for _ in 0..50 {
            self.now += 1;
            let actions = self.wanted();
            let before = self.observed.clone();
            for action in &actions {
                self.write(action);
            }
            self.controllers();
            written += actions.len();
            if actions.is_empty() && before == self.observed {
                return written;
            }
        }
        panic!("the cluster does not come to rest: {:#?}", self.wanted());
    }

    pub(crate) fn write(&mut self, action: &Action) {
        let key = action.key().unwrap();
        // It would need a right to the owner's finalizers where the cluster holds to that, and nobody waits for it.
        assert!(!serde_json::to_string(action).unwrap().contains("blockOwnerDeletion"), "{action:?}");
        match action {
            Action::Apply { object, manager, force } => {
                assert!(force);
                let gvk = object::gvk(object).unwrap();
                let api_version = gvk.api_version();
                let schema = Schema::kubernetes();
                let request = Request::new(schema, &api_version, &gvk.kind, manager, "2026-01-01T00:00:00Z");
                let live = self.observed.get(&key);
                let merged = scantling_merge::apply(&request, live, object, true).unwrap();
                if let Some(live) = live {
                    let was = live.pointer("/spec/template");
                    if was.is_some() && was != merged.pointer("/spec/template") && self.has_started(live) {
                        self.restarts.push(key.name.clone());
                    }
                }
                self.put(merged);
            }
            Action::Create { object, .. } => {
                assert!(!self.observed.contains(&key));
                self.put(object.clone());
            }
            Action::Delete { target, .. } => {
                let live = self.observed.remove(&key).unwrap();
                assert_eq!(Some(object::uid(&live)), target.uid.as_deref());
            }
            Action::PatchStatus { .. } | Action::Annotate { .. } => {
                let mut object = self.observed.get(&key).unwrap().clone();
                merge(&mut object, &action.merge_patch().unwrap());
                self.observed.insert(object).unwrap();
            }
            Action::Event { reason, message, .. } => self.events.push((reason.clone(), message.clone())),
        }
    }

    fn has_started(&self, set: &Value) -> bool {
        let pod = self.get("", "Pod", object::namespace(set).unwrap(), &format!("{}-0", object::name(set)));
        pod.is_some_and(|pod| pod.pointer("/status/containerStatuses/0/state/running").is_some())
    }

    /// The controller of stateful sets, and a node.
    fn controllers(&mut self) {
        let sets: Vec<Value> =
            self.observed.of_kind("apps", "StatefulSet").map(|(_, set)| set.clone()).collect();
        for set in sets {
            let (namespace, name) =
                (object::namespace(&set).unwrap().to_owned(), object::name(&set).to_owned());
            let key = ObjectKey::namespaced("", "Pod", &namespace, format!("{name}-0"));
            let revision = Digest::of(set["spec"]["template"].to_string().as_bytes()).hex()[..10].to_owned();
            let live = self.observed.get(&key);
            let is_current =
                live.and_then(|pod| object::label(pod, "controller-revision-hash")) == Some(&revision);
            if set["spec"]["replicas"] == 0 {
                self.observed.remove(&key);
            } else if !is_current {
                self.observed.remove(&key);
                let mut pod =
                    json!({"apiVersion": "v1", "kind": "Pod", "spec": set["spec"]["template"]["spec"]});
                pod["metadata"] = set["spec"]["template"]["metadata"].clone();
                pod["metadata"]["name"] = json!(key.name);
                pod["metadata"]["namespace"] = json!(namespace);
                pod["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
                if let Some((from, to)) = &self.rewritten {
                    let image = pod["spec"]["containers"][0]["image"].as_str().unwrap().replace(from, to);
                    pod["spec"]["containers"][0]["image"] = json!(image);
                }
                pod["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": object::uid(&set), "controller": true,
                }]);
                self.put(pod);
            }
        }
        let pods: Vec<Value> =
            self.observed.pods().map(|pod| scantling_observed::View::object(pod).clone()).collect();
        for mut pod in pods.into_iter().filter(|pod| pod["status"].is_null()) {
            let written = pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
            let name = pod["spec"]["containers"][0]["name"].clone();
            if self.unpullable.contains(&written) {
                pod["status"] = json!({"phase": "Pending", "containerStatuses": [{
                    "name": name, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "manifest unknown"}},
                }]});
            } else {
                let reference = Reference::parse(&written).unwrap();
                let digest = reference.digest().cloned().unwrap_or_else(|| digest(&written));
                pod["spec"]["nodeName"] = json!("worker-a");
                pod["status"] = json!({"phase": "Running", "containerStatuses": [{
                    "name": name, "ready": true, "restartCount": 0, "image": written,
                    "imageID": format!("{}@{digest}", reference.name()),
                    "state": {"running": {"startedAt": self.time()}},
                }]});
            }
            self.observed.insert(pod).unwrap();
        }
    }
}

pub(crate) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let fields = into.as_object_mut().unwrap();
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The condition of a notebook: status, reason, message.
pub(crate) fn condition(cluster: &Cluster, notebook: &str, kind: &str) -> (String, String, String) {
    let object = cluster.get("kubeflow.org", "Notebook", "anna", notebook).unwrap();
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
    let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

pub(crate) fn annotations(object: &Value) -> BTreeMap<&str, &str> {
    object::annotations(object).collect()
}
