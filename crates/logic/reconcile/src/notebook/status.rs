//! What a notebook's status says.

use scantling_image::{Digest, Sameness};
use scantling_observed::{Notebook, PackageVersion, Pod, PodContainer, View as _};
use serde_json::{Map, Value, json};

use crate::catalogue::{Catalogue, Entry};
use crate::condition::{Condition, live};
use crate::context::Context;
use crate::difference::difference;

/// Whether the catalogue has what was selected.
pub(super) const IMAGE_RESOLVED: &str = "ImageResolved";
/// Whether a restart would bring something else.
pub(super) const UPDATE_PENDING: &str = "UpdatePending";

/// What the pod of a notebook runs, from its image ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) digest: Digest,
    pub(super) node: Option<String>,
}

impl Running {
    pub(super) fn of(pod: Pod<'_>, container: PodContainer<'_>) -> Option<Self> {
        if !pod.is_running() {
            return None;
        }
        let id = container.image_id()?.ok()?;
        Some(Self { digest: id.digest().clone(), node: pod.node().map(str::to_owned) })
    }
}

/// What a restart would change, for an entry that the running digest is not.
pub(crate) fn pending(
    catalogue: &Catalogue,
    entry: &Entry,
    running: &Digest,
    context: &Context<'_>,
) -> Option<String> {
    let sameness = catalogue.compare(entry, running, context);
    if sameness == Sameness::Same {
        return None;
    }
    let packages = catalogue.packages(running, context);
    let differing = packages.and_then(|packages| difference(packages, &entry.spec.packages));
    let target = entry.spec.image.digest().map(Digest::short).unwrap_or_default();
    Some(match differing {
        Some(text) => text,
        None if sameness == Sameness::Unknown => {
            format!("{} → {target} (the running image is not known)", running.short())
        }
        None => format!("{} → {target}", running.short()),
    })
}

/// Everything that the status is made from.
pub(super) struct Facts<'a> {
    pub(super) entry: Option<&'a Entry>,
    /// The image that the owner wrote, without an entry.
    pub(super) image: Option<&'a str>,
    pub(super) running: Option<Running>,
    pub(super) ready: bool,
    pub(super) container_state: Option<Value>,
    pub(super) started_image: Option<String>,
    pub(super) conditions: Vec<Condition>,
}

impl Facts<'_> {
    /// The status; `null` where there is nothing to say.
    pub(super) fn to_json(
        &self,
        notebook: Notebook<'_>,
        catalogue: &Catalogue,
        context: &Context<'_>,
    ) -> Value {
        let conditions: Vec<Value> = self
            .conditions
            .iter()
            .map(|condition| condition.to_json(live(notebook.object(), condition.kind), context.now))
            .collect();
        let claimed = self.entry.map(|entry| {
            json!({
                "selection": entry.spec.selection, "title": entry.spec.title, "packages": entry.spec.packages,
            })
        });
        let desired = match (self.entry, self.image) {
            (Some(entry), _) => {
                let known = entry.spec.image.digest().and_then(|digest| catalogue.packages(digest, context));
                let packages = shown(known.unwrap_or(&entry.spec.packages), &entry.spec.packages);
                Some(json!({"image": entry.spec.image.written(), "packages": packages}))
            }
            (None, Some(image)) => Some(json!({"image": image, "packages": null})),
            (None, None) => None,
        };
        let running = self.running.as_ref().map(|running| {
            let known = catalogue.packages(&running.digest, context);
            let wanted = self.entry.map_or(&[][..], |entry| &entry.spec.packages);
            json!({
                "digest": running.digest.to_string(),
                "node": running.node,
                "packages": known.map(|known| shown(known, wanted)),
            })
        });
        json!({
            "conditions": conditions,
            "readyReplicas": i32::from(self.ready),
            "containerState": self.container_state,
            "claimed": claimed,
            "desired": desired,
            "running": running,
            "startedImage": self.started_image,
        })
    }
}

/// The packages that the screen shows, with their versions in this image; all, where the screen names none.
fn shown(packages: &[PackageVersion], named: &[PackageVersion]) -> Vec<PackageVersion> {
    let key = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
    packages
        .iter()
        .filter(|package| {
            named.is_empty() || named.iter().any(|wanted| key(&wanted.name) == key(&package.name))
        })
        .cloned()
        .collect()
}

/// The merge patch that makes a live status this one; `None` when nothing differs. A server drops the nulls of a merge patch, and a merge
/// patch cannot take fields out of a map that it does not name, so whole fields are replaced through `null`s for what has to go.
pub(crate) fn patch(live: Option<&Value>, wanted: &Value) -> Option<Value> {
    let empty = json!({});
    let live = live.filter(|live| live.is_object()).unwrap_or(&empty);
    let mut changes = Map::new();
    for (name, wanted) in wanted.as_object()? {
        let wanted = without_nulls(wanted);
        let have = live.get(name).unwrap_or(&Value::Null);
        if *have != wanted {
            changes.insert(name.clone(), merge(have, &wanted));
        }
    }
    (!changes.is_empty()).then_some(Value::Object(changes))
}

/// The merge patch from one value to another.
fn merge(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut changes = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        changes.insert(name.clone(), Value::Null);
    }
    for (name, to) in to {
        match from.get(name) {
            Some(from) if from == to => {}
            Some(from) => {
                changes.insert(name.clone(), merge(from, to));
            }
            None => {
                changes.insert(name.clone(), to.clone());
            }
        }
    }
    Value::Object(changes)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        value => value.clone(),
    }
}
