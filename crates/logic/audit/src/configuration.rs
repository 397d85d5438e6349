//! Configuration: is it what the release means?
//!
//! Only what can be proven is said: a key that the release has and the cluster lacks, an image that a workload of the release names
//! otherwise, a value that an older release had, a fallback whose condition holds. A value that is neither this release's nor an older
//! one's is somebody's own, and theirs.

use std::collections::BTreeSet;

use scantling_api::{ObjectKey, object};
use scantling_finding::codes::audit::CONFIGURATION_LAGS;
use scantling_observed::{Observed, View as _};
use scantling_release::{Condition, LiveWhen, Reach, Release, ReleaseObject, Rule};
use serde_json::Value;

use crate::builder::{Builder, Draft};
use crate::differences::{Written, differences};
use crate::facts::Facts;
use crate::remedy::{Holder, quoted};
use crate::row::{Evidence, Remedy, Row, Section, Subject, Verdict};
use crate::secrets;
use crate::seen::Doing;

/// Longest value that a command repeats; a longer one is taken from the release's file.
const MAX_VALUE: usize = 1500;

/// The rows of this section.
pub(crate) fn rows(facts: &Facts<'_>, builder: &Builder<'_>, observed: &Observed) -> Vec<Row> {
    let mut rows = imports(builder, observed);
    rows.extend(waiting(facts, builder));
    let releases: Vec<&Release> =
        facts.knowledge.releases.iter().filter_map(|known| known.release.as_ref()).collect();
    if let Some((release, older)) = releases.split_first() {
        rows.extend(fallbacks(builder, observed, release));
        rows.extend(objects(builder, observed, release, older));
        rows.extend(secrets::rows(builder, observed, release));
    }
    rows
}

/// A row about an object.
pub(crate) fn draft(key: &ObjectKey) -> Draft {
    let mut draft = Draft::new(Section::Configuration, Verdict::Different, CONFIGURATION_LAGS);
    draft.subjects.push(Subject {
        object: key.to_string(),
        namespace: key.namespace.clone(),
        pod: None,
        container: None,
        node: None,
    });
    draft
}

fn evidence(key: &ObjectKey, object: Option<&Value>, field: &str, value: String) -> Evidence {
    Evidence {
        time: None,
        object: key.to_string(),
        field: field.to_owned(),
        value,
        resource_version: object.map(object::resource_version).unwrap_or_default().to_owned(),
    }
}

/// Kinds of which a snapshot has all objects or none in a namespace. Of others it may have only those with images.
const WHOLE_KINDS: [(&str, &str); 9] = [
    ("", "ConfigMap"),
    ("", "Secret"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("image.openshift.io", "ImageStream"),
    ("serving.kserve.io", "ClusterServingRuntime"),
    ("serving.kserve.io", "ServingRuntime"),
];

/// Does the snapshot have objects of this kind where this one should be? If not, nothing is known to be missing.
fn is_seen(observed: &Observed, key: &ObjectKey) -> bool {
    WHOLE_KINDS.contains(&(key.group.as_str(), key.kind.as_str()))
        && observed.of_kind(&key.group, &key.kind).any(|(other, _)| other.namespace == key.namespace)
}

/// Fallbacks in code that are live, since what the code reads is missing.
fn fallbacks(builder: &Builder<'_>, observed: &Observed, release: &Release) -> Vec<Row> {
    let mut rows = Vec::new();
    for used in &release.references {
        let Reach::Fallback(Condition { declared: Some(when), .. }) = &used.reach else { continue };
        let key = key_of(when, release);
        if !is_seen(observed, &key) || !builder.options.wants(key.namespace.as_deref()) {
            continue;
        }
        let live = observed.get(&key);
        let has_key = |object: &Value, name: &str| {
            ["data", "stringData", "binaryData"].iter().any(|field| {
                object.get(field).and_then(|data| data.get(name)).is_some_and(|value| !value.is_null())
            })
        };
        let holds = match (live, &when.missing_key) {
            (None, _) => true,
            (Some(object), Some(name)) => !has_key(object, name),
            (Some(_), None) => false,
        };
        if !holds {
            continue;
        }
        let mut draft = draft(&key);
        draft.reference = Some(used.reference.written().to_owned());
        draft.why = format!(
            "{} {}, so that the fallback at {} is live",
            key,
            match &when.missing_key {
                Some(name) if live.is_some() => format!("has no key `{name}`"),
                _ => "is not there".to_owned(),
            },
            used.place
        );
        let keys = live.map(|object| {
            object::mapping(object, "/data")
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>()
        });
        let value = keys.map_or_else(
            || "there is no such object".to_owned(),
            |keys| format!("keys: {}", keys.join(", ")),
        );
        draft.evidence.push(evidence(&key, live, ".data", value));
        let declared = release.objects.iter().find(|object| object.key == key);
        draft.remedies.push(match (declared, &when.missing_key) {
            (Some(declared), Some(name)) if live.is_some() => bring_key(declared, name),
            (Some(declared), _) => bring(declared),
            (None, _) => Remedy {
                what: format!("the release does not bring {key}: make it as the code expects it, or correct the fallback"),
                command: None,
            },
        });
        rows.push(draft.row());
    }
    rows
}

fn key_of(when: &LiveWhen, release: &Release) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: when.kind.clone(),
        namespace: when.namespace.clone().or_else(|| release.namespace.clone()),
        name: when.name.clone(),
    }
}

/// Writes one key as the release has it.
fn bring_key(declared: &ReleaseObject, name: &str) -> Remedy {
    let value = declared.value.get("data").and_then(|data| data.get(name)).and_then(Value::as_str);
    let Some(value) = value.filter(|value| value.len() <= MAX_VALUE && declared.key.kind == "ConfigMap")
    else {
        return bring(declared);
    };
    let patch = serde_json::json!({"data": {name: value}});
    let namespace = declared.key.namespace.as_deref().unwrap_or_default();
    Remedy {
        what: format!("bring the key `{name}` up to date; every other key stays"),
        command: Some(format!(
            "kubectl -n {} patch configmap {} --type=merge -p {}",
            quoted(namespace),
            quoted(&declared.key.name),
            quoted(&patch.to_string())
        )),
    }
}

/// Writes one image as the release has it.
fn patch(key: &ObjectKey, pointer: &str, image: &str) -> Remedy {
    // A patch by place needs no name of a container: every kind has one.
    let holder = Holder { object: key, pointer: Some(pointer), container: "", is_static: false };
    Remedy {
        what: "write the image of the release; every other field stays".to_owned(),
        command: crate::remedy::patch(&holder, image),
    }
}

/// Applies the release's object.
fn bring(declared: &ReleaseObject) -> Remedy {
    let file = declared.place.file.as_ref().map(|file| file.path.clone());
    Remedy {
        what: format!("apply {} as the release has it (its file holds other objects too)", declared.key),
        command: file.map(|file| {
            let namespace = declared.key.namespace.as_ref();
            let namespace = namespace.map(|name| format!(" -n {}", quoted(name))).unwrap_or_default();
            format!("kubectl{namespace} apply --server-side -f {}", quoted(&file))
        }),
    }
}

/// Objects of the release that are missing, or that name other images or lack keys.
fn objects(builder: &Builder<'_>, observed: &Observed, release: &Release, older: &[&Release]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut told: BTreeSet<(ObjectKey, String)> = BTreeSet::new();
    for declared in &release.objects {
        let key = &declared.key;
        if !builder.options.wants(key.namespace.as_deref()) {
            continue;
        }
        let Some(live) = observed.get(key) else {
            if !is_seen(observed, key) {
                continue;
            }
            let mut draft = draft(key);
            draft.why = format!("{} has it, and it is not there", release.title());
            draft.evidence.push(evidence(key, None, "", "there is no such object".to_owned()));
            draft.remedies.push(bring(declared));
            rows.push(draft.row());
            continue;
        };
        for difference in differences(&declared.value, live) {
            let kept = release.ownership.rule(key, &difference.field).is_ok_and(|rule| rule == Rule::Keep);
            if kept || !told.insert((key.clone(), difference.field.clone())) {
                continue;
            }
            // Somebody's own value is theirs, unless it is what a release before had.
            let of = older.iter().find(|release| {
                let before = release.objects.iter().find(|object| object.key == *key);
                before.is_some_and(|before| {
                    !differences(&before.value, live).iter().any(|other| other.field == difference.field)
                })
            });
            if difference.what == Written::Value && of.is_none() {
                continue;
            }
            let mut draft = draft(key);
            draft.subjects.iter_mut().for_each(|subject| subject.container = Some(difference.field.clone()));
            draft.found.extend(difference.found.clone());
            draft.why = match (&difference.found, of) {
                (Some(_), Some(before)) => {
                    format!(
                        "{} is as {} had it, not as {}",
                        difference.field,
                        before.title(),
                        release.title()
                    )
                }
                (Some(_), None) => format!("{} is not as {} has it", difference.field, release.title()),
                (None, _) => format!("{} is missing; {} has it", difference.field, release.title()),
            };
            draft.evidence.push(evidence(
                key,
                Some(live),
                &difference.field,
                difference.found.unwrap_or_else(|| "there is no such field".to_owned()),
            ));
            draft.remedies.push(match (&difference.key, &difference.image) {
                (Some(name), _) => bring_key(declared, name),
                (None, Some((pointer, image))) => {
                    draft.why = format!("{}: {image}", draft.why);
                    patch(key, pointer, image)
                }
                (None, None) => bring(declared),
            });
            rows.push(draft.row());
        }
    }
    rows
}

/// Imports of image streams that failed.
fn imports(builder: &Builder<'_>, observed: &Observed) -> Vec<Row> {
    let mut rows = Vec::new();
    for stream in observed.image_streams() {
        if !builder.options.wants(Some(stream.namespace())) {
            continue;
        }
        for tag in stream.tags() {
            let failed =
                tag.conditions().into_iter().find(|it| it.kind == "ImportSuccess" && it.status == "False");
            let Some(failed) = failed else { continue };
            let mut draft = draft(&stream.key());
            draft.subjects.iter_mut().for_each(|subject| subject.container = Some(tag.name.to_owned()));
            draft.reference = tag.from().map(|(_, name)| name.to_owned());
            draft.why = format!("the import of tag {} failed: {}", tag.name, failed.message);
            draft.evidence.push(evidence(
                &stream.key(),
                Some(stream.object()),
                &format!(".status.tags[{}].conditions[ImportSuccess]", tag.name),
                format!("{}: {}", failed.reason, failed.message),
            ));
            draft.remedies.push(Remedy {
                what: "import the tag again when the way to its registry is mended".to_owned(),
                command: Some(format!(
                    "oc -n {} import-image {} --import-mode=PreserveOriginal",
                    quoted(stream.namespace()),
                    quoted(&format!("{}:{}", stream.name(), tag.name))
                )),
            });
            rows.push(draft.row());
        }
    }
    rows
}

/// Containers that are not made because a config map, a secret or a key is missing.
fn waiting(facts: &Facts<'_>, builder: &Builder<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for pod in facts.seen.pods.iter().filter(|pod| builder.options.wants(pod.key.namespace.as_deref())) {
        for container in &pod.containers {
            let Doing::Waiting { reason, message } = &container.doing else { continue };
            if &**reason != "CreateContainerConfigError" {
                continue;
            }
            let mut draft = Draft::new(Section::Configuration, Verdict::Different, CONFIGURATION_LAGS);
            draft.subjects.push(crate::builder::subject(pod, &container.name, None));
            draft.why = format!("the container is not made: {message}");
            draft.evidence.push(Evidence {
                time: None,
                object: pod.key.to_string(),
                field: container.part.status_field(&container.name).replace(".imageID", ".state.waiting"),
                value: format!("{reason}: {message}"),
                resource_version: pod.resource_version.to_string(),
            });
            draft.remedies.push(Remedy {
                what: "bring what is named as missing; the kubelet tries again by itself".to_owned(),
                command: None,
            });
            rows.push(draft.row());
        }
    }
    rows
}
