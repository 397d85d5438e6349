//! Whether there is a build of what a `BuildConfig` says now.

use scantling_image::{Digest, Reference};
use serde_json::Value;

/// How far the newest build of the current source and base is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BuildState {
    /// There is none.
    None,
    /// It has not ended.
    Running {
        /// Its name.
        name: String,
    },
    /// It has ended well.
    Complete {
        /// The digest that was pushed, if the build says so.
        digest: Option<Digest>,
    },
    /// It has ended otherwise.
    Failed {
        /// Its name.
        name: String,
        /// The server's words.
        why: String,
    },
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Looks at all builds of a namespace. `base` is the digest that a current build must stand upon, if it is known.
pub(crate) fn build_state(config: &Value, builds: &[Value], base: Option<&Digest>) -> BuildState {
    let name = text(config, "/metadata/name");
    let mut current: Vec<&Value> = builds
        .iter()
        .filter(|b| belongs(b, name) && same_source(config, b) && same_base(config, b, base))
        .collect();
    current.sort_by_key(|b| number(b));
    let Some(newest) = current.last() else { return BuildState::None };
    let build = text(newest, "/metadata/name").to_owned();
    match text(newest, "/status/phase") {
        "Complete" => {
            BuildState::Complete { digest: Digest::parse(text(newest, "/status/output/to/imageDigest")).ok() }
        }
        "Failed" | "Error" | "Cancelled" => {
            let why = [text(newest, "/status/reason"), text(newest, "/status/message")].join(" ");
            BuildState::Failed { name: build, why: why.trim().to_owned() }
        }
        _ => BuildState::Running { name: build },
    }
}

fn belongs(build: &Value, config: &str) -> bool {
    let label =
        |name: &str| build.pointer("/metadata/labels").and_then(|l| l.get(name)).and_then(Value::as_str);
    text(build, "/status/config/name") == config
        || label("openshift.io/build-config.name") == Some(config)
        || label("buildconfig") == Some(config)
}

/// Builds are numbered; the number is in an annotation and at the end of the name.
fn number(build: &Value) -> u64 {
    let annotation = build.pointer("/metadata/annotations").and_then(|a| a.get("openshift.io/build.number"));
    let written = annotation
        .and_then(Value::as_str)
        .or_else(|| text(build, "/metadata/name").rsplit('-').next())
        .unwrap_or_default();
    written.parse().unwrap_or(0)
}

fn same_source(config: &Value, build: &Value) -> bool {
    [
        "/spec/source/git/uri",
        "/spec/source/git/ref",
        "/spec/source/contextDir",
        "/spec/source/dockerfile",
        "/spec/strategy/dockerStrategy/dockerfilePath",
    ]
    .iter()
    .all(|pointer| text(config, pointer) == text(build, pointer))
}

/// A build names its base by digest once it has been started; one that names none cannot be told to be old.
fn same_base(config: &Value, build: &Value, base: Option<&Digest>) -> bool {
    let Some(base) = base else { return true };
    ["dockerStrategy", "sourceStrategy", "customStrategy"]
        .iter()
        .filter(|strategy| config.pointer(&format!("/spec/strategy/{strategy}/from")).is_some())
        .filter_map(|strategy| build.pointer(&format!("/spec/strategy/{strategy}/from")))
        .filter_map(|from| Reference::parse(text(from, "/name")).ok())
        .all(|from| from.digest().is_none_or(|digest| digest == base))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(git_ref: &str) -> Value {
        json!({"metadata": {"name": "b"}, "spec": {
            "source": {"git": {"uri": "u", "ref": git_ref}},
            "strategy": {"sourceStrategy": {"from": {"kind": "ImageStreamTag", "name": "base:1"}}}}})
    }

    fn build(number: u64, git_ref: &str, base: &Digest, phase: &str) -> Value {
        json!({"metadata": {"name": format!("b-{number}"), "labels": {"buildconfig": "b"}},
            "spec": {"source": {"git": {"uri": "u", "ref": git_ref}}, "strategy": {"sourceStrategy":
                {"from": {"kind": "DockerImage", "name": format!("r.io/base@{base}")}}}},
            "status": {"phase": phase, "output": {"to": {"imageDigest": Digest::of(b"out")}}}})
    }

    #[test]
    fn only_a_build_of_the_current_source_and_base_counts() {
        let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
        let complete = BuildState::Complete { digest: Some(Digest::of(b"out")) };
        let running = |name: &str| BuildState::Running { name: name.into() };
        let cases = [
            (vec![], BuildState::None),
            (vec![build(1, "v1", &new, "Complete")], BuildState::None),
            (vec![build(1, "v2", &old, "Complete")], BuildState::None),
            (vec![build(1, "v2", &new, "Complete")], complete.clone()),
            (vec![build(10, "v2", &new, "Running"), build(9, "v2", &new, "Complete")], running("b-10")),
            (vec![build(2, "v2", &new, "Complete"), build(3, "v1", &new, "Running")], complete),
        ];
        for (builds, expected) in cases {
            assert_eq!(build_state(&config("v2"), &builds, Some(&new)), expected, "{builds:?}");
        }
        let failed = build_state(&config("v2"), &[build(1, "v2", &new, "Failed")], Some(&new));
        assert!(matches!(failed, BuildState::Failed { .. }));
    }
}
