//! Two thousand objects, as a release, as a folder for kubectl and as a chart for Helm.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Namespaces, and objects in each of them, the namespace included.
const NAMESPACES: usize = 20;
const EACH: usize = 100;

/// All objects.
pub(crate) const COUNT: usize = NAMESPACES * EACH;

/// What differs from the first release.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// One object in a hundred.
    OnePercent,
}

/// The objects on disk, for one who brings them, in namespaces of its own.
pub(crate) struct Objects {
    /// A folder with a release.yaml.
    pub(crate) release: PathBuf,
    /// Its manifests.
    pub(crate) manifests: PathBuf,
    /// A Helm chart of the same manifests.
    pub(crate) chart: PathBuf,
}

impl Objects {
    /// Writes them below a folder.
    pub(crate) fn write(folder: &Path, owner: &str, change: Change) -> anyhow::Result<Self> {
        let version = if change == Change::Nothing { "1.0.0" } else { "2.0.0" };
        let release = folder.join(format!("{owner}-{version}"));
        let (manifests, chart) = (release.join("manifests"), release.join("chart"));
        std::fs::create_dir_all(&manifests)?;
        std::fs::create_dir_all(chart.join("templates"))?;
        let follows = if change == Change::Nothing { json!([]) } else { json!(["1.0.0"]) };
        let about = json!({
            "apiVersion": "scantling.dev/v1alpha1", "kind": "Release", "name": owner, "version": version,
            "follows": follows, "manifests": ["manifests"],
        });
        std::fs::write(release.join("release.yaml"), about.to_string())?;
        let about = json!({"apiVersion": "v2", "name": owner, "version": version});
        std::fs::write(chart.join("Chart.yaml"), about.to_string())?;
        for number in 0..NAMESPACES {
            let name = format!("{owner}-{number:02}");
            let documents: Vec<String> =
                namespace(&name, change).iter().map(|object| format!("---\n{object}\n")).collect();
            let file = format!("{number:02}.yaml");
            std::fs::write(manifests.join(&file), documents.concat())?;
            std::fs::write(chart.join("templates").join(&file), documents.concat())?;
        }
        Ok(Self { release, manifests, chart })
    }
}

/// Every object of one who brings them: the namespaces first.
pub(crate) fn all(owner: &str, change: Change) -> (Vec<Value>, Vec<Value>) {
    (0..NAMESPACES)
        .flat_map(|number| namespace(&format!("{owner}-{number:02}"), change))
        .partition(|object| object["kind"] == "Namespace")
}

/// A namespace and what is in it.
fn namespace(namespace: &str, change: Change) -> Vec<Value> {
    let of = |api: &str, kind: &str, name: String, rest: Value| {
        let mut object = json!({
            "apiVersion": api, "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/part-of": "bench"}},
        });
        for (key, value) in rest.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        object
    };
    let rbac = "rbac.authorization.k8s.io/v1";
    let mut objects = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})];
    for number in 0..EACH - 1 {
        let text = "a line of a configuration file that somebody wrote once\n".repeat(10);
        objects.push(match number % 10 {
            0..=5 => {
                let colour = if change == Change::OnePercent && number == 0 { "green" } else { "red" };
                let data = json!({"data": {"colour": colour, "file.conf": text, "number": number.to_string()}});
                of("v1", "ConfigMap", format!("config-{number}"), data)
            }
            6 => of("v1", "Secret", format!("secret-{number}"), json!({"data": {"password": "c2VjcmV0"}})),
            7 => of("v1", "ServiceAccount", format!("account-{number}"), json!({})),
            8 => {
                let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]);
                of(rbac, "Role", format!("role-{number}"), json!({"rules": rules}))
            }
            _ => {
                let binding = json!({
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": format!("role-{}", number - 1)},
                    "subjects": [{"kind": "ServiceAccount", "name": format!("account-{}", number - 2), "namespace": namespace}],
                });
                of(rbac, "RoleBinding", format!("binding-{number}"), binding)
            }
        });
    }
    objects
}
