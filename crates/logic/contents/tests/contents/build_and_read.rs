//! Images built from descriptions and read back.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scantling_contents::{
    BuildError, BuiltImage, Ecosystem, ImageDescription, LayerDescription, build, normalised,
};
use scantling_image::{Digest, Platform, Sameness};

const SITE: &str = "/opt/app-root/lib/python3.8/site-packages";

fn python(packages: &[(&str, &str)]) -> LayerDescription {
    LayerDescription::Python { path: SITE.to_owned(), packages: map(packages) }
}

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

fn image(layers: Vec<LayerDescription>) -> ImageDescription {
    ImageDescription { layers, ..ImageDescription::default() }
}

fn packages(image: &BuiltImage) -> BTreeMap<(Ecosystem, String), String> {
    let contents = image.contents(&image.platforms[0]).unwrap();
    let count = contents.packages.len();
    let found: BTreeMap<_, _> =
        contents.packages.into_iter().map(|p| ((p.ecosystem, p.name), p.version)).collect();
    assert_eq!(found.len(), count, "a package is there twice");
    found
}

#[test]
fn a_description_is_read_as_written() {
    let text = r#"{
        "platforms": ["linux/amd64", "linux/arm64"],
        "layers": [
            {"files": {"/etc/os-release": "ID=rhel\nVERSION_ID=\"8.4\"\n"}},
            {"python": {"path": "/opt/app-root/lib/python3.8/site-packages", "packages": {"tensorflow": "2.4.1"}}},
            {"dpkg": {"packages": {"libssl3": "3.0.11-1~deb12u2"}}},
            {"conda": {"path": "/opt/conda", "packages": {"numpy": "1.19.2"}}},
            {"remove": ["/etc/motd"]}
        ],
        "labels": {"a": "b"}, "env": ["PYTHON_VERSION=3.8.6"], "cmd": ["/run"]
    }"#;
    let description: ImageDescription = serde_json::from_str(text).unwrap();
    let built = build(&description, None).unwrap();
    assert_eq!(built.media_type, "application/vnd.oci.image.index.v1+json");
    assert_eq!(built.platforms.len(), 2);
    let contents = built.contents(&built.platforms[1]).unwrap();
    let found: Vec<_> =
        contents.packages.iter().map(|p| (p.name.as_str(), p.version.as_str(), p.layer)).collect();
    assert_eq!(
        found,
        [("tensorflow", "2.4.1", 1), ("numpy", "1.19.2", 3), ("libssl3", "3.0.11-1~deb12u2", 2)]
    );
    assert_eq!(contents.os.unwrap().id, "rhel");
    assert_eq!(contents.env["PYTHON_VERSION"], "3.8.6");
    assert_eq!(contents.runtimes[0].version, "3.8");
    assert!(contents.notes.is_empty());
    // Layers are shared between platforms, configurations are not.
    assert_eq!(built.platforms[0].layers, built.platforms[1].layers);
    assert_ne!(built.platforms[0].config, built.platforms[1].config);
    let again: ImageDescription =
        serde_json::from_value(serde_json::to_value(&description).unwrap()).unwrap();
    assert_eq!(again, description);
}

#[test]
fn faults_of_a_description_are_explained() {
    for (text, says) in [
        (r#"{"layer": []}"#, "unknown field `layer`"),
        (r#"{"layers": [{"pyhton": {}}]}"#, "unknown variant `pyhton`"),
        (r#"{"layers": [{"python": {"path": "/x", "packages": {"a": 2.1}}}]}"#, "put it in quotes"),
        (r#"{"layers": [{"python": {"path": "/x", "packages": {}, "more": 1}}]}"#, "unknown field `more`"),
        (r#"{"layers": [{"python": {"packages": {}}}]}"#, "missing field `path`"),
        (r#"{"platforms": ["linux"]}"#, "linux/amd64"),
    ] {
        let error = serde_json::from_str::<ImageDescription>(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    let file = |path: &str| LayerDescription::Files(map(&[(path, "")]));
    for (layer, says) in [
        (file("etc/x"), "is not absolute"),
        (file("/a/../b"), "not plain"),
        (file("/a//b"), "empty component"),
        (file("/a/"), "empty component"),
        (file("/"), "empty component"),
        (file("/a/.wh.b"), "\"remove\" layer"),
        (file("/a\0"), "zero byte"),
        (LayerDescription::Files(map(&[("/a", ""), ("/a.b", ""), ("/a/b", "")])), "both a file and a folder"),
        (LayerDescription::Remove(vec!["a".to_owned()]), "is not absolute"),
        (python(&[("../x", "1")]), "package name"),
        (python(&[("a", "1/2")]), "version \"1/2\" of a"),
        (python(&[("a", "")]), "version \"\" of a"),
        (python(&[("a-b", "1"), ("A_b", "1")]), "the same package"),
        (LayerDescription::Dpkg { packages: map(&[("A", "1")]) }, "package name"),
        (LayerDescription::Dpkg { packages: map(&[("a", "1\nPackage: b")]) }, "version"),
    ] {
        let error = build(&image(vec![layer.clone()]), None).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("layers[0]"), "{layer:?}: {error}");
    }
    let env = ImageDescription { env: vec!["A=1".to_owned(), "B".to_owned()], ..ImageDescription::default() };
    assert!(build(&env, None).unwrap_err().to_string().contains("env[1]"));
}

#[test]
fn a_layer_replaces_what_is_below_as_the_package_manager_does() {
    let old =
        build(&image(vec![python(&[("tensorflow", "2.4.1"), ("scikit-learn", "0.24.1")])]), None).unwrap();
    let new = build(&image(vec![python(&[("TensorFlow", "2.7.0")])]), Some(&old)).unwrap();
    let found = packages(&new);
    assert_eq!(found[&(Ecosystem::Python, "TensorFlow".to_owned())], "2.7.0");
    assert_eq!(found[&(Ecosystem::Python, "scikit-learn".to_owned())], "0.24.1");
    assert_eq!(found.len(), 2);
    // The base's layer is still there, byte for byte.
    assert_eq!(new.platforms[0].layers[0], old.platforms[0].layers[0]);
    let dpkg = |packages: &[(&str, &str)]| LayerDescription::Dpkg { packages: map(packages) };
    let stacked = build(&image(vec![dpkg(&[("a1", "1"), ("b1", "1")]), dpkg(&[("a1", "2")])]), None).unwrap();
    let found = packages(&stacked);
    assert_eq!(found[&(Ecosystem::Dpkg, "a1".to_owned())], "2");
    assert_eq!(found[&(Ecosystem::Dpkg, "b1".to_owned())], "1");
}

#[test]
fn removing_hides_files_and_folders() {
    let built = build(
        &image(vec![
            python(&[("a", "1"), ("b", "1")]),
            LayerDescription::Remove(vec![format!("{SITE}/a-1.dist-info")]),
        ]),
        None,
    )
    .unwrap();
    assert_eq!(packages(&built).keys().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["b"]);
    let all =
        build(&image(vec![python(&[("a", "1")]), LayerDescription::Remove(vec!["/opt".to_owned()])]), None)
            .unwrap();
    let contents = all.contents(&all.platforms[0]).unwrap();
    assert!(contents.packages.is_empty() && contents.runtimes.is_empty());
}

#[test]
fn environment_and_labels_are_merged_by_name() {
    let base = ImageDescription {
        env: vec!["PATH=/bin".to_owned(), "PYTHON_VERSION=3.8.6".to_owned()],
        labels: map(&[("a", "1"), ("b", "1")]),
        cmd: vec!["run".to_owned()],
        ..ImageDescription::default()
    };
    let base = build(&base, None).unwrap();
    let top = ImageDescription {
        env: vec!["PYTHON_VERSION=3.8.8".to_owned(), "X=".to_owned()],
        labels: map(&[("b", "2")]),
        ..ImageDescription::default()
    };
    let top = build(&top, Some(&base)).unwrap();
    let (_, config) = &top.blobs[&top.platforms[0].config];
    let config: serde_json::Value = serde_json::from_slice(config).unwrap();
    assert_eq!(config["config"]["Env"], serde_json::json!(["PATH=/bin", "PYTHON_VERSION=3.8.8", "X="]));
    assert_eq!(config["config"]["Labels"], serde_json::json!({"a": "1", "b": "2"}));
    assert_eq!(config["config"]["Cmd"], serde_json::json!(["run"]));
}

#[test]
fn one_platform_is_a_manifest_unless_an_index_is_wanted() {
    let plain = build(&image(vec![python(&[("a", "1")])]), None).unwrap();
    assert_eq!(plain.media_type, "application/vnd.oci.image.manifest.v1+json");
    assert_eq!(plain.root, plain.platforms[0].manifest);
    let index = build(&ImageDescription { index: true, ..image(vec![python(&[("a", "1")])]) }, None).unwrap();
    assert_eq!(index.media_type, "application/vnd.oci.image.index.v1+json");
    assert_eq!(index.platforms[0].manifest, plain.root);
    assert_eq!(index.identity().compare(&plain.root), Sameness::Same);
    let on_top = build(&image(vec![python(&[("b", "1")])]), Some(&index)).unwrap();
    assert_eq!(on_top.media_type, index.media_type);
}

#[test]
fn a_platform_that_the_base_lacks_is_refused() {
    let base = build(&image(vec![]), None).unwrap();
    let wanted = ImageDescription {
        platforms: vec![Platform::parse("linux/arm64").unwrap()],
        ..ImageDescription::default()
    };
    let error = build(&wanted, Some(&base)).unwrap_err();
    assert!(matches!(error, BuildError::Platform { .. }), "{error}");
    assert!(error.to_string().contains("it has linux/amd64"), "{error}");
}

#[test]
fn a_stored_image_is_read_back_or_refused() {
    let description = ImageDescription {
        platforms: vec![Platform::parse("linux/amd64").unwrap(), Platform::parse("linux/arm64/v8").unwrap()],
        ..image(vec![python(&[("a", "1")])])
    };
    let built = build(&description, None).unwrap();
    let fetch = |digest: &Digest| built.blobs.get(digest).cloned();
    let read = BuiltImage::read(&built.media_type, &built.root, fetch).unwrap();
    assert_eq!(read, built);
    let layer = &built.platforms[0].layers[0].0;
    let gone = |digest: &Digest| (digest != layer).then(|| built.blobs[digest].clone());
    let error = BuiltImage::read(&built.media_type, &built.root, gone).unwrap_err().to_string();
    assert!(error.contains("is missing"), "{error}");
    let swapped = |digest: &Digest| {
        Some(if digest == layer { ("x".to_owned(), vec![1]) } else { built.blobs[digest].clone() })
    };
    let error = BuiltImage::read(&built.media_type, &built.root, swapped).unwrap_err().to_string();
    assert!(error.contains("another digest"), "{error}");
}

fn versions() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map(
        "[a-zA-Z0-9]([a-zA-Z0-9._-]{0,12}[a-zA-Z0-9])?",
        "[0-9]{1,2}(\\.[0-9]{1,3}){0,3}(rc[0-9])?(\\+[a-z0-9]{1,6})?",
        0..6,
    )
    .prop_filter("one spelling for each package", |packages| {
        packages.keys().map(|name| normalised(name)).collect::<BTreeSet<_>>().len() == packages.len()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_was_described_is_what_is_read(layers in proptest::collection::vec(versions(), 1..4)) {
        let description = image(layers.iter().map(|packages| LayerDescription::Python {
            path: SITE.to_owned(), packages: packages.clone(),
        }).collect());
        let built = build(&description, None).unwrap();
        prop_assert_eq!(&build(&description, None).unwrap(), &built);
        let mut wanted = BTreeMap::new();
        for packages in &layers {
            for (name, version) in packages {
                wanted.insert(normalised(name), (name.clone(), version.clone()));
            }
        }
        let found: BTreeMap<_, _> = packages(&built)
            .into_iter()
            .map(|((_, name), version)| (normalised(&name), (name, version)))
            .collect();
        prop_assert_eq!(found, wanted);
        // Every blob is what its digest says, and the same in layers built one on another.
        for (digest, (_, bytes)) in &built.blobs {
            prop_assert_eq!(&Digest::of(bytes), digest);
        }
        let mut on_bases: Option<BuiltImage> = None;
        for layer in &description.layers {
            on_bases = Some(build(&image(vec![layer.clone()]), on_bases.as_ref()).unwrap());
        }
        prop_assert_eq!(on_bases.unwrap().root, built.root);
    }

    #[test]
    fn other_contents_have_other_digests(a in versions(), b in versions()) {
        let digest = |packages: &BTreeMap<String, String>| build(
            &image(vec![LayerDescription::Python { path: SITE.to_owned(), packages: packages.clone() }]), None,
        ).unwrap().root;
        prop_assert_eq!(digest(&a) == digest(&b), a == b);
    }
}
