//! Image streams of OpenShift.

use scantling_api::object;
use scantling_image::{Digest, DigestError};
use serde_json::Value;

use crate::view::{View as _, field, items, view};

view!(
    /// An image stream.
    ImageStream, "image.openshift.io", "ImageStream"
);

/// A condition, as most kinds have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition<'a> {
    /// What is said.
    pub kind: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// A word.
    pub reason: &'a str,
    /// A sentence.
    pub message: &'a str,
}

/// A tag of a stream: what the spec asks for and what the status has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamTag<'a> {
    /// Its name.
    pub name: &'a str,
    spec: Option<&'a Value>,
    status: Option<&'a Value>,
}

/// One image that a tag has pointed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagItem<'a> {
    /// Its digest as written.
    pub image: &'a str,
    /// Where it is pulled from.
    pub reference: &'a str,
    /// When it came (RFC 3339).
    pub created: &'a str,
    /// Which generation of the spec's tag brought it.
    pub generation: i64,
}

impl<'a> ImageStream<'a> {
    /// Its tags, those of the spec first, then those that only the status has.
    pub fn tags(self) -> Vec<StreamTag<'a>> {
        let status = |name: &str| items(self.object(), "/status/tags").find(|tag| field(tag, "tag") == name);
        let mut tags: Vec<StreamTag<'a>> = items(self.object(), "/spec/tags")
            .map(|spec| {
                let name = field(spec, "name");
                StreamTag { name, spec: Some(spec), status: status(name) }
            })
            .collect();
        for entry in items(self.object(), "/status/tags") {
            let name = field(entry, "tag");
            if !tags.iter().any(|tag| tag.name == name) {
                tags.push(StreamTag { name, spec: None, status: Some(entry) });
            }
        }
        tags
    }

    /// One tag.
    pub fn tag(self, name: &str) -> Option<StreamTag<'a>> {
        self.tags().into_iter().find(|tag| tag.name == name)
    }

    /// The repository in the internal registry; `None` on clusters without one.
    pub fn repository(self) -> Option<&'a str> {
        Some(object::text(self.object(), "/status/dockerImageRepository")).filter(|name| !name.is_empty())
    }
}

impl<'a> StreamTag<'a> {
    /// Is it in the spec and in the status? Spawners offer only such tags.
    pub fn is_offered(self) -> bool {
        self.spec.is_some() && self.status.is_some()
    }

    /// Where the spec takes it from: kind (`DockerImage`, `ImageStreamTag`, `ImageStreamImage`) and name. `None` for tags that builds push.
    pub fn from(self) -> Option<(&'a str, &'a str)> {
        let from = self.spec?.get("from")?;
        Some((field(from, "kind"), field(from, "name")))
    }

    /// An annotation of the spec's tag: what screens say.
    pub fn annotation(self, name: &str) -> Option<&'a str> {
        self.spec?.get("annotations")?.get(name)?.as_str()
    }

    /// `Local` (through the internal registry) or `Source`; the default is `Source`.
    pub fn reference_policy(self) -> &'a str {
        let policy = self.spec.map(|spec| object::text(spec, "/referencePolicy/type")).unwrap_or_default();
        if policy.is_empty() { "Source" } else { policy }
    }

    /// `Legacy` (one platform's manifest is kept, the index is lost) or `PreserveOriginal`; the default is `Legacy`.
    pub fn import_mode(self) -> &'a str {
        let mode = self.spec.map(|spec| object::text(spec, "/importPolicy/importMode")).unwrap_or_default();
        if mode.is_empty() { "Legacy" } else { mode }
    }

    /// Its images, the newest first.
    pub fn items(self) -> Vec<TagItem<'a>> {
        let entries = self.status.map(|status| items(status, "/items"));
        entries
            .into_iter()
            .flatten()
            .map(|item| TagItem {
                image: field(item, "image"),
                reference: field(item, "dockerImageReference"),
                created: field(item, "created"),
                generation: item.get("generation").and_then(Value::as_i64).unwrap_or_default(),
            })
            .collect()
    }

    /// The newest image.
    pub fn newest(self) -> Option<TagItem<'a>> {
        self.items().into_iter().next()
    }

    /// What the import says, mostly `ImportSuccess`.
    pub fn conditions(self) -> Vec<Condition<'a>> {
        self.status
            .map(|status| items(status, "/conditions"))
            .into_iter()
            .flatten()
            .map(Condition::of)
            .collect()
    }
}

impl TagItem<'_> {
    /// Its digest.
    pub fn digest(self) -> Result<Digest, DigestError> {
        Digest::parse(self.image)
    }
}

impl<'a> Condition<'a> {
    /// Reads one entry of a list of conditions.
    pub fn of(value: &'a Value) -> Self {
        Self {
            kind: field(value, "type"),
            status: field(value, "status"),
            reason: field(value, "reason"),
            message: field(value, "message"),
        }
    }
}
