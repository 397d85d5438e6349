//! The catalogue as image streams, for clients that choose from those.

use std::collections::BTreeMap;

use scantling_api::{ObjectKey, object};
use scantling_observed::{NotebookImageSpec, PackageVersion};
use scantling_plan::Desired;
use scantling_release::Wave;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::gate::INTERNAL_REGISTRY;
use crate::images::stream_key;

/// What clients show beside the Python packages.
const SOFTWARE: [&str; 4] = ["CUDA", "Python", "R", "ROCm"];

/// Namespace, stream, tag and spec of an entry of the catalogue.
struct Entry {
    namespace: String,
    stream: String,
    tag: String,
    spec: NotebookImageSpec,
}

fn entry(desired: &Desired) -> Option<Entry> {
    let spec = NotebookImageSpec::deserialize(desired.value.get("spec")?).ok()?;
    let (stream, tag) = spec.selection.rsplit_once(':')?;
    let (stream, tag) = (stream.to_owned(), tag.to_owned());
    Some(Entry { namespace: desired.key.namespace.clone()?, stream, tag, spec })
}

/// The image streams of entries of the catalogue.
pub(crate) fn stream_keys<'d>(entries: impl IntoIterator<Item = &'d Desired>) -> Vec<ObjectKey> {
    let entries = entries.into_iter().filter_map(entry);
    entries.map(|entry| stream_key(&entry.namespace, &entry.stream)).collect()
}

/// One image stream for each stream of the catalogue. Versions in it are those of the entries, which come from the bytes of the images.
pub(crate) fn streams(entries: &[Desired]) -> Vec<Desired> {
    let mut grouped: BTreeMap<(String, String), Vec<Entry>> = BTreeMap::new();
    for entry in entries.iter().filter_map(entry) {
        grouped.entry((entry.namespace.clone(), entry.stream.clone())).or_default().push(entry);
    }
    grouped
        .into_iter()
        .filter_map(|((namespace, stream), entries)| {
            // The texts of the stream are those of what it offers, if it still offers anything.
            let first = entries.iter().find(|entry| !entry.spec.outdated).or_else(|| entries.first())?;
            let value = json!({
                "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
                "metadata": {
                    "name": stream, "namespace": namespace,
                    "labels": {"opendatahub.io/notebook-image": "true"},
                    "annotations": {
                        "opendatahub.io/notebook-image-name": first.spec.title,
                        "opendatahub.io/notebook-image-desc": first.spec.about,
                    },
                },
                "spec": {"lookupPolicy": {"local": true}, "tags": entries.iter().map(tag).collect::<Vec<Value>>()},
            });
            let key = object::key(&value).ok()?;
            Some(Desired { key, wave: Wave::Resources, value, adjusted: Vec::new() })
        })
        .collect()
}

/// A tag. An import keeps the whole index, so that the digest is the one that was locked and every platform has its manifest.
fn tag(entry: &Entry) -> Value {
    let spec = &entry.spec;
    let is_software =
        |package: &&PackageVersion| SOFTWARE.iter().any(|name| name.eq_ignore_ascii_case(&package.name));
    let (software, dependencies): (Vec<&PackageVersion>, Vec<&PackageVersion>) =
        spec.packages.iter().partition(is_software);
    let mut annotations = json!({
        "opendatahub.io/notebook-software": json!(software).to_string(),
        "opendatahub.io/notebook-python-dependencies": json!(dependencies).to_string(),
        "openshift.io/imported-from": spec.image.written(),
    });
    if spec.recommended {
        annotations["opendatahub.io/workbench-image-recommended"] = json!("true");
    }
    if spec.outdated {
        annotations["opendatahub.io/image-tag-outdated"] = json!("true");
    }
    json!({
        "name": entry.tag, "annotations": annotations,
        "from": {"kind": "DockerImage", "name": spec.image.written()},
        "importPolicy": {"importMode": "PreserveOriginal"},
        "referencePolicy": {"type": "Source"},
    })
}

/// Adds the name by which the cluster's own registry has each image, which clients of image streams write into notebooks.
pub(crate) fn add_aliases(entries: &mut [Desired]) {
    for desired in entries {
        let Some(entry) = entry(desired) else { continue };
        let alias = json!(format!("{INTERNAL_REGISTRY}/{}/{}:{}", entry.namespace, entry.stream, entry.tag));
        let spec = &mut desired.value["spec"];
        match spec.get_mut("aliases").and_then(Value::as_array_mut) {
            Some(aliases) if aliases.contains(&alias) => {}
            Some(aliases) => {
                aliases.push(alias);
                aliases.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            }
            None => spec["aliases"] = json!([alias]),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn of(selection: &str, more: &Value) -> Desired {
        let digest = scantling_image::Digest::of(selection.as_bytes());
        let mut spec = json!({
            "selection": selection, "title": "Data science", "about": "scikit-learn and pandas",
            "image": format!("registry.test/datascience@{digest}"), "release": "1",
            "packages": [{"name": "Python", "version": "3.11.2"}, {"name": "pandas", "version": "2.2.3"}],
        });
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let value = json!({
            "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
            "metadata": {"name": selection.replace(':', "-"), "namespace": "scantling"}, "spec": spec,
        });
        Desired { key: object::key(&value).unwrap(), wave: Wave::Resources, value, adjusted: Vec::new() }
    }

    #[test]
    fn a_stream_says_of_each_tag_what_its_bytes_hold() {
        let entries = [
            of("datascience:2026.2", &json!({"recommended": true})),
            of("datascience:2026.1", &json!({"outdated": true, "title": "Data science (old)"})),
            of("minimal:2026.2", &json!({})),
        ];
        let found = streams(&entries);
        assert_eq!(found.iter().map(|d| d.key.name.as_str()).collect::<Vec<_>>(), ["datascience", "minimal"]);
        let stream = &found[0].value;
        assert_eq!(stream["metadata"]["annotations"]["opendatahub.io/notebook-image-name"], "Data science");
        let tags = stream["spec"]["tags"].as_array().unwrap();
        assert_eq!(tags[0]["importPolicy"]["importMode"], "PreserveOriginal");
        let annotations = &tags[0]["annotations"];
        assert_eq!(
            annotations["opendatahub.io/notebook-software"],
            r#"[{"name":"Python","version":"3.11.2"}]"#
        );
        assert_eq!(
            annotations["opendatahub.io/notebook-python-dependencies"],
            r#"[{"name":"pandas","version":"2.2.3"}]"#
        );
        let marks = |name: &str| -> Vec<bool> {
            tags.iter().map(|tag| tag["annotations"].get(name).is_some()).collect()
        };
        assert_eq!(marks("opendatahub.io/workbench-image-recommended"), [true, false]);
        assert_eq!(marks("opendatahub.io/image-tag-outdated"), [false, true]);
        assert_eq!(stream_keys(&entries).len(), 3);
    }

    #[test]
    fn what_clients_of_streams_write_counts_as_the_image() {
        let mut entries = [of("minimal:1", &json!({"aliases": ["registry.test/minimal:1"]}))];
        for _ in 0..2 {
            add_aliases(&mut entries);
            let spec = NotebookImageSpec::deserialize(&entries[0].value["spec"]).unwrap();
            assert_eq!(
                spec.aliases,
                [format!("{INTERNAL_REGISTRY}/scantling/minimal:1"), "registry.test/minimal:1".to_owned()]
            );
        }
    }
}
