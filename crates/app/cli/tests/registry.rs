//! Locking and checking against a registry.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::path::Path;

use scantling_registry_server::RegistryServer;
use support::{push, run, scantling, serve};
use tempfile::TempDir;

const HOST: &str = "registry.example.org";

fn description(tensorflow: &str) -> String {
    format!(
        "platforms: [linux/amd64, linux/arm64]\nlayers:\n- python: {{path: /opt/app-root/lib/python3.8/site-packages, packages: {{tensorflow: \"{tensorflow}\"}}}}\n"
    )
}

/// A release whose notebook image is referred to as given, claiming TensorFlow 2.7.
fn release(folder: &Path, image: &str) {
    fs::create_dir_all(folder.join("manifests")).unwrap();
    fs::write(
        folder.join("release.yaml"),
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: shop\nversion: 1.5.0-7\nnamespace: apps\nmanifests: [manifests]\n",
    )
    .unwrap();
    fs::write(
        folder.join("manifests/stream.yaml"),
        format!(
            "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata:\n  name: tensorflow\nspec:\n  tags:\n  - name: \"1\"\n    from:\n      kind: DockerImage\n      name: {image}\n    annotations:\n      opendatahub.io/notebook-python-dependencies: '[{{\"name\":\"TensorFlow\",\"version\":\"2.7\"}}]'\n"
        ),
    )
    .unwrap();
}

#[test]
fn a_lock_holds_what_the_registry_has_and_claims_are_held_against_it() {
    let folder = TempDir::new().unwrap();
    let endpoints = folder.path().join("endpoints.yaml");
    let mut server = RegistryServer::new();
    let digest = push(&mut server, HOST, "notebooks/tensorflow", Some("1"), &description("2.4.1"));
    serve(server, HOST, &endpoints);
    let path = folder.path().join("shop");
    release(&path, &format!("{HOST}/notebooks/tensorflow:1"));

    let (out, err, code) = run(scantling().env("SCANTLING_MIRRORS", &endpoints).arg("lock").arg(&path));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains(&digest) && out.contains("linux/arm64"), "{out}");
    let lock = fs::read_to_string(path.join("release.lock")).unwrap();
    assert!(lock.contains(&digest) && lock.contains("2.4.1"), "{lock}");

    let (again, _, _) = run(scantling().arg("lock").arg(&path).arg("--mirrors").arg(&endpoints));
    assert_eq!(again, out);
    assert_eq!(fs::read_to_string(path.join("release.lock")).unwrap(), lock);

    let (out, err, code) = run(scantling().arg("check").arg(&path).arg("--offline"));
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("SCN0501") && out.contains("TensorFlow 2.7, its image holds 2.4.1"), "{out}");
    assert!(!out.contains("SCN0303"), "a locked tag is tied down: {out}");
}

#[test]
fn an_image_that_no_registry_has_is_named_with_its_place() {
    let folder = TempDir::new().unwrap();
    let endpoints = folder.path().join("endpoints.yaml");
    let mut server = RegistryServer::new();
    push(&mut server, HOST, "notebooks/tensorflow", Some("1"), &description("2.7.0"));
    serve(server, HOST, &endpoints);
    let path = folder.path().join("shop");
    let absent = format!("{HOST}/notebooks/tensorflow@sha256:{}", "7".repeat(64));
    release(&path, &absent);

    let (out, err, code) = run(scantling().arg("check").arg(&path).arg("--mirrors").arg(&endpoints));
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("error[SCN0202]") && out.contains(&absent), "{out}");
    assert!(out.contains("manifests/stream.yaml:10:13"), "{out}");

    let (out, err, code) = run(scantling().arg("lock").arg(&path).arg("--mirrors").arg(&endpoints));
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("nothing was written"), "{out}");
    assert!(!path.join("release.lock").exists());
}

#[test]
fn a_platform_that_is_asked_for_must_be_there() {
    let folder = TempDir::new().unwrap();
    let endpoints = folder.path().join("endpoints.yaml");
    let mut server = RegistryServer::new();
    let digest = push(&mut server, HOST, "notebooks/tensorflow", None, &description("2.7.0"));
    serve(server, HOST, &endpoints);
    let path = folder.path().join("shop");
    release(&path, &format!("{HOST}/notebooks/tensorflow@{digest}"));
    for (platform, wanted) in [("linux/arm64", 0), ("linux/s390x", 1)] {
        let mut command = scantling();
        command.args(["--color", "never", "check"]).arg(&path).arg("--mirrors").arg(&endpoints);
        let (out, _, code) = run(command.args(["--platform", platform]));
        assert_eq!(code, wanted, "{platform}: {out}");
        assert_eq!(out.contains("wrong platform"), wanted == 1, "{out}");
    }
}

#[test]
fn a_registry_that_does_not_answer_decides_nothing() {
    let folder = TempDir::new().unwrap();
    let endpoints = folder.path().join("endpoints.yaml");
    // Nobody listens at this port: it was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    fs::write(
        &endpoints,
        format!(
            "version: 1\nendpoints: [{{registry: {HOST}, address: \"127.0.0.1:{port}\", insecure: true}}]\n"
        ),
    )
    .unwrap();
    let path = folder.path().join("shop");
    release(&path, &format!("{HOST}/notebooks/tensorflow@sha256:{}", "7".repeat(64)));
    for command in ["check", "lock"] {
        let (out, err, code) = run(scantling().arg(command).arg(&path).arg("--mirrors").arg(&endpoints));
        assert_eq!(code, 3, "{command}: {out}");
        assert!(out.contains("[SCN0204]") && out.contains("unreachable"), "{out}");
        assert!(err.contains("no registry could be reached") && err.contains("hint:"), "{err}");
    }
}
