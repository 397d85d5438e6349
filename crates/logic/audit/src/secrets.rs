//! Secrets that must hold the same value. Values are compared and never shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::{ObjectKey, object};
use scantling_observed::Observed;
use scantling_release::{Generated, Release};
use serde_json::Value;

use crate::builder::Builder;
use crate::configuration::draft;
use crate::row::{Evidence, Remedy, Row};

/// Pairs that disagree. A value that cannot be read (a snapshot without it, or one that hides it inside JSON) is not compared.
pub(crate) fn rows(builder: &Builder<'_>, observed: &Observed, release: &Release) -> Vec<Row> {
    let mut rows = Vec::new();
    for entry in &release.generated {
        let Some((name, key)) = entry.same_as.as_deref().and_then(|same| same.split_once('/')) else {
            continue;
        };
        let Some(leader) = release.generated.iter().find(|it| it.name == name && it.key == key) else {
            continue;
        };
        let (one, other) = (object_of(leader, release), object_of(entry, release));
        if !builder.options.wants(other.namespace.as_deref()) {
            continue;
        }
        let (Some(wanted), Some(found)) = (value(observed, &one, leader), value(observed, &other, entry))
        else {
            continue;
        };
        if wanted == found {
            continue;
        }
        let mut draft = draft(&other);
        draft.subjects.iter_mut().for_each(|subject| subject.container = Some(entry.key.clone()));
        draft.why = format!(
            "its key `{}` must hold the same value as key `{}` of {one}, and does not",
            entry.key, leader.key
        );
        for (key, entry) in [(&one, leader), (&other, entry)] {
            draft.evidence.push(Evidence {
                time: None,
                object: key.to_string(),
                field: format!(
                    ".data[\"{}\"]{}",
                    entry.key,
                    entry.json_pointer.as_deref().unwrap_or_default()
                ),
                value: "(compared, not shown)".to_owned(),
                resource_version: observed
                    .get(key)
                    .map(object::resource_version)
                    .unwrap_or_default()
                    .to_owned(),
            });
        }
        draft.remedies.push(Remedy {
            what: "find out which of the two the running service uses, and write it into the other secret"
                .to_owned(),
            command: None,
        });
        rows.push(draft.row());
    }
    rows
}

fn object_of(entry: &Generated, release: &Release) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: entry.kind.clone(),
        namespace: entry.namespace.clone().or_else(|| release.namespace.clone()),
        name: entry.name.clone(),
    }
}

fn value(observed: &Observed, key: &ObjectKey, entry: &Generated) -> Option<Vec<u8>> {
    let written = observed.get(key)?.get("data")?.get(&entry.key)?.as_str()?;
    let decoded = STANDARD.decode(written).ok()?;
    let Some(pointer) = &entry.json_pointer else { return Some(decoded) };
    let inner: Value = serde_json::from_slice(&decoded).ok()?;
    Some(inner.pointer(pointer)?.as_str()?.as_bytes().to_vec())
}
