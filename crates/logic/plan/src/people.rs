//! Whom an upgrade concerns: notebooks that would be out of date.

use scantling_image::Digest;
use scantling_observed::{Notebook, PackageVersion, View as _};
use scantling_reconcile::{KnownImages, difference};
use serde::Serialize;
use serde_json::Value;

/// What becomes of one notebook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNotebook {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What its owner chose, `stream:tag`.
    pub selection: String,
    /// The digest that its pod runs; none when it does not run.
    pub running: Option<String>,
    /// The image that the choice stands for in the release; none when the release does not offer it.
    pub wanted: Option<String>,
    /// The versions that differ, `scikit-learn 1.6.1 → 1.7.2`, where the contents of both are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// What happens, in words.
    pub why: String,
}

/// An image that the release offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// What people choose, `stream:tag`.
    pub selection: String,
    /// The image, by digest.
    pub image: String,
    /// Every digest by which a node may name it.
    pub digests: Vec<Digest>,
    /// The packages that are shown; none if its contents have not been read yet.
    pub packages: Option<Vec<PackageVersion>>,
}

/// The notebooks for which something changes. Those that run keep running as they are.
pub fn notebooks(live: &[Value], offers: &[Offer], known: &KnownImages) -> Vec<PlannedNotebook> {
    let mut planned: Vec<PlannedNotebook> =
        live.iter().filter_map(|object| one(object, offers, known)).collect();
    planned.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    planned
}

fn one(object: &Value, offers: &[Offer], known: &KnownImages) -> Option<PlannedNotebook> {
    let notebook = Notebook::of(object);
    let selection = notebook.selection()?;
    let digest = object.pointer("/status/running/digest").and_then(Value::as_str);
    let running = digest.filter(|_| !notebook.is_stopped()).and_then(|d| Digest::parse(d).ok());
    let offer = offers.iter().find(|offer| offer.selection == selection);
    let (wanted, difference, why) = match (offer, &running) {
        (Some(offer), Some(running)) => {
            if offer.digests.contains(running) || offer.image.ends_with(&format!("@{running}")) {
                return None;
            }
            let packages = |digest: &Digest| known.get(digest).map(|image| image.packages.as_slice());
            let difference = match (packages(running), &offer.packages) {
                (Some(running), Some(wanted)) => self::difference(running, wanted),
                _ => None,
            };
            (
                Some(offer.image.clone()),
                difference,
                "it keeps running and is marked as outdated; it takes the new image when its owner restarts it",
            )
        }
        (Some(offer), None) => {
            let before = object.pointer("/status/desired/image").and_then(Value::as_str)?;
            if before == offer.image {
                return None;
            }
            (Some(offer.image.clone()), None, "it is stopped, and gets the new image when it is started")
        }
        // Nothing is offered by the release at all: its catalogue is somebody else's.
        (None, _) if offers.is_empty() => return None,
        (None, _) => (
            None,
            None,
            "the release no longer offers what it was made from; it keeps that image, and its owner should choose another",
        ),
    };
    Some(PlannedNotebook {
        namespace: notebook.namespace().to_owned(),
        name: notebook.name().to_owned(),
        selection: selection.to_owned(),
        running: running.map(|r| r.to_string()),
        wanted,
        difference,
        why: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use scantling_image::ImageIdentity;
    use scantling_reconcile::KnownImage;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn packages(version: &str) -> Vec<PackageVersion> {
        vec![PackageVersion { name: "pandas".into(), version: version.into() }]
    }

    #[test]
    fn who_is_concerned_and_how() {
        let digest = |text: &str| Digest::of(text.as_bytes());
        let offer = Offer {
            selection: "ds:1".into(),
            image: format!("r.io/ds@{}", digest("new")),
            digests: vec![digest("new"), digest("new platform")],
            packages: Some(packages("2.2.0")),
        };
        let identity = ImageIdentity { index: BTreeSet::from([digest("old")]), ..ImageIdentity::default() };
        let known: KnownImages = [KnownImage { identity, packages: packages("1.5.3") }].into_iter().collect();
        let notebook = |selection: &str, running: Option<&str>, stopped: bool, desired: &str| {
            let mut annotations = json!({"notebooks.opendatahub.io/last-image-selection": selection});
            if stopped {
                annotations["kubeflow-resource-stopped"] = json!("now");
            }
            json!({
                "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
                "metadata": {"name": "n", "namespace": "anna", "annotations": annotations},
                "status": {
                    "running": running.map(|r| json!({"digest": digest(r).to_string()})),
                    "desired": {"image": format!("r.io/ds@{}", digest(desired))},
                },
            })
        };
        let plan = |object: Value, offers: &[Offer]| notebooks(&[object], offers, &known).pop();
        let offers = [offer];
        let changed = plan(notebook("ds:1", Some("old"), false, "old"), &offers).unwrap();
        assert_eq!(changed.difference.as_deref(), Some("pandas 1.5.3 → 2.2.0"));
        assert!(changed.why.contains("restarts"));
        for same in ["new", "new platform"] {
            assert_eq!(plan(notebook("ds:1", Some(same), false, "new"), &offers), None);
        }
        let unknown = plan(notebook("ds:1", Some("other"), false, "old"), &offers).unwrap();
        assert_eq!(unknown.difference, None);
        let stopped = plan(notebook("ds:1", Some("old"), true, "old"), &offers).unwrap();
        assert!(stopped.why.contains("stopped") && stopped.running.is_none());
        assert_eq!(plan(notebook("ds:1", None, true, "new"), &offers), None);
        let gone = plan(notebook("ds:0", Some("old"), false, "old"), &offers).unwrap();
        assert!(gone.wanted.is_none() && gone.why.contains("no longer offers"));
        assert_eq!(plan(notebook("ds:0", Some("old"), false, "old"), &[]), None);
    }
}
