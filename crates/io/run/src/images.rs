//! Stage 6a: images that come to be on the cluster, by import or by build.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_api::{ObjectKey, object};
use scantling_cluster::Write;
use scantling_finding::{Finding, Place, codes};
use scantling_image::{Digest, Reference};
use scantling_observed::{ImageStream, View};
use scantling_plan::pin;
use scantling_release::{Build, ImageName, StreamTag};
use serde_json::{Value, json};

use crate::build_state::{BuildState, build_state};
use crate::event::{Stage, What};
use crate::gate::INTERNAL_REGISTRY;
use crate::report::Stop;
use crate::session::Session;
use crate::state::RecordedImage;
use crate::wait::Wait;

/// Between two looks at an import.
const IMPORT_PAUSE: Duration = Duration::from_secs(2);
/// Between two looks at a build, which takes minutes to hours.
const BUILD_PAUSE: Duration = Duration::from_secs(10);
/// How long a build that the cluster starts itself (a trigger) may take to show up, before we start one. Triggers act
/// within a second or two; starting a second build of the same source would waste an hour of a node.
const TRIGGER_GRACE: Duration = Duration::from_secs(20);

/// An image stream tag as it is written in states and events: `ns/stream:tag`.
pub(crate) fn tag_text(name: &ImageName, namespace: Option<&str>) -> Option<(String, String, String)> {
    match name {
        ImageName::StreamTag { namespace: own, stream, tag } => {
            let namespace = own.as_deref().or(namespace)?;
            Some((namespace.to_owned(), stream.clone(), tag.clone()))
        }
        ImageName::Reference(_) => None,
    }
}

pub(crate) fn stream_key(namespace: &str, stream: &str) -> ObjectKey {
    ObjectKey::namespaced("image.openshift.io", "ImageStream", namespace, stream)
}

impl Session<'_> {
    /// Waits for imports and builds, and records what each image stream tag of the release leads to.
    pub(crate) async fn settle_images(&mut self) -> Result<(), Stop> {
        self.stage = Stage::Images;
        let release = self.release;
        for tag in &release.streams {
            if matches!(tag.from, Some(ImageName::Reference(_))) {
                self.settle_import(tag).await?;
            }
        }
        for build in in_order(&release.builds, release.namespace.as_deref()) {
            self.settle_build(build).await?;
        }
        // Tags that point to other tags, and outputs that are in no spec.
        for tag in &release.streams {
            if let Some((namespace, stream, name)) = tag_text(&tag.name, release.namespace.as_deref())
                && !self.recorded_now.contains(&format!("{namespace}/{stream}:{name}"))
                && let Some(found) = self.read(&stream_key(&namespace, &stream)).await?
            {
                self.record(&found, &namespace, &stream, &name, "tagged");
            }
        }
        self.pin_workloads();
        Ok(())
    }

    async fn settle_import(&mut self, tag: &StreamTag) -> Result<(), Stop> {
        let Some((namespace, stream, name)) = tag_text(&tag.name, self.release.namespace.as_deref()) else {
            return Ok(());
        };
        let text = format!("{namespace}/{stream}:{name}");
        let Some(ImageName::Reference(from)) = &tag.from else { return Ok(()) };
        let pinned = self.pins.get(from).map_or_else(|| from.clone(), |p| p.written().to_owned());
        let identity = self.identity(&pinned);
        let mut wait = Wait::new(format!("import of {text}"), self.options.waits.imports, IMPORT_PAUSE);
        loop {
            let object = self.read(&stream_key(&namespace, &stream)).await?;
            let tags = object.as_ref().map(|o| ImageStream::of(o).tags()).unwrap_or_default();
            let found = tags.iter().find(|t| t.name == name);
            let newest = found.and_then(|t| t.newest()).and_then(|item| item.digest().ok());
            if let (Some(object), Some(digest)) = (&object, newest)
                && (identity.is_empty() || identity.contains(&digest))
            {
                let object = object.clone();
                self.record(&object, &namespace, &stream, &name, "imported");
                return Ok(());
            }
            let why = found
                .and_then(|t| {
                    t.conditions().into_iter().find(|c| c.kind == "ImportSuccess" && c.status == "False")
                })
                .map_or_else(|| "not imported yet".to_owned(), |c| format!("{}: {}", c.reason, c.message));
            if wait.is_over() {
                return Err(self.image_missing(&text, &tag.place, &why, codes::run::NOT_HEALTHY));
            }
            self.pause(&mut wait, why).await;
        }
    }

    /// Waits for a build of the current source upon the current base, and starts one if there is none.
    async fn settle_build(&mut self, build: &Build) -> Result<(), Stop> {
        let namespace =
            build.namespace.as_deref().or(self.release.namespace.as_deref()).unwrap_or_default().to_owned();
        let key = ObjectKey::namespaced("build.openshift.io", "BuildConfig", &namespace, &build.name);
        let text = format!("{namespace}/{}", build.name);
        let started = tokio::time::Instant::now();
        let mut wait = Wait::new(format!("build of {text}"), self.options.waits.build, BUILD_PAUSE);
        // What the build that we have started stands upon.
        let mut ours: Option<Option<Digest>> = None;
        loop {
            // It may move while a build runs: then that build is of the past.
            let base = self.base_digest(build).await?;
            let Some(config) = self.read(&key).await? else {
                return Err(self.image_missing(
                    &text,
                    &build.place,
                    "the BuildConfig is gone",
                    codes::run::BUILD_FAILED,
                ));
            };
            let builds = self.list("build.openshift.io", "Build", Some(&namespace)).await?;
            let waiting = match build_state(&config, &builds, base.as_ref()) {
                BuildState::Complete { digest } => {
                    if self.built(build, digest.as_ref()).await? {
                        return Ok(());
                    }
                    "the image stream does not show the result yet".to_owned()
                }
                BuildState::Running { name } => format!("build {name} runs"),
                BuildState::Failed { name, why } if ours.is_some() => {
                    let why = format!("build {name} failed: {why}");
                    return Err(self.image_missing(&text, &build.place, &why, codes::run::BUILD_FAILED));
                }
                BuildState::None if ours.as_ref() == Some(&base) => {
                    "the build that was started is not there yet".to_owned()
                }
                state => {
                    let failed = matches!(state, BuildState::Failed { .. });
                    let triggered = !failed && has_trigger(&config);
                    if triggered && started.elapsed() < TRIGGER_GRACE {
                        "a trigger is to start a build".to_owned()
                    } else {
                        self.instantiate(&config, &text, failed).await?;
                        if ours.is_none() {
                            wait.extend(self.options.waits.build);
                        }
                        ours = Some(base);
                        "the build that was started".to_owned()
                    }
                }
            };
            if wait.is_over() {
                let why = format!("no result in time: {waiting}");
                return Err(self.image_missing(&text, &build.place, &why, codes::run::BUILD_FAILED));
            }
            self.pause(&mut wait, waiting).await;
        }
    }

    async fn instantiate(&mut self, config: &Value, text: &str, failed: bool) -> Result<(), Stop> {
        let why =
            if failed { "the last build of this source failed" } else { "no build of this source and base" };
        self.tell(What::BuildStarted { config: text.to_owned(), why: why.to_owned() });
        let body = json!({
            "apiVersion": "build.openshift.io/v1", "kind": "BuildRequest",
            "metadata": {"name": object::name(config)},
            "triggeredBy": [{"message": "Scantling"}],
        });
        self.write(Write::Post { object: config.clone(), subresource: "instantiate".to_owned(), body })
            .await?;
        Ok(())
    }

    /// Records a build's output. False as long as the stream does not show it.
    async fn built(&mut self, build: &Build, digest: Option<&Digest>) -> Result<bool, Stop> {
        let Some((namespace, stream, tag)) = tag_text(&build.output, self.release.namespace.as_deref())
        else {
            return Ok(true);
        };
        let Some(found) = self.read(&stream_key(&namespace, &stream)).await? else { return Ok(false) };
        let newest = ImageStream::of(&found)
            .tag(&tag)
            .and_then(scantling_observed::StreamTag::newest)
            .and_then(|item| item.digest().ok());
        let shown = match (digest, &newest) {
            (Some(wanted), Some(newest)) => wanted == newest,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if shown {
            self.record(&found, &namespace, &stream, &tag, "built");
        }
        Ok(shown)
    }

    /// The digest of what a build stands upon: what a tag leads to now, or a reference of the lock.
    async fn base_digest(&self, build: &Build) -> Result<Option<Digest>, Stop> {
        let Some(name) = &build.base else { return Ok(None) };
        if let ImageName::Reference(written) = name {
            let pinned = self.pins.get(written).and_then(|p| p.digest().cloned());
            return Ok(pinned.or_else(|| Reference::parse(written).ok().and_then(|r| r.digest().cloned())));
        }
        let own = build.namespace.as_deref().or(self.release.namespace.as_deref());
        let Some((namespace, stream, tag)) = tag_text(name, own) else { return Ok(None) };
        let found = self.read(&stream_key(&namespace, &stream)).await?;
        let tags = found.as_ref().map(|found| ImageStream::of(found).tags()).unwrap_or_default();
        let newest = tags.iter().find(|found| found.name == tag).and_then(|found| found.newest());
        Ok(newest.and_then(|item| item.digest().ok()))
    }

    fn record(&mut self, stream_object: &Value, namespace: &str, stream: &str, tag: &str, how: &str) {
        let view = ImageStream::of(stream_object);
        let Some(found) = view.tag(tag) else { return };
        let Some(item) = found.newest() else { return };
        let Ok(digest) = item.digest() else { return };
        let text = format!("{namespace}/{stream}:{tag}");
        // What pods pull: the registry of the cluster, unless the tag says that the source is asked.
        let local =
            found.from().is_none() || found.reference_policy() == "Local" || item.reference.is_empty();
        let reference = match view.repository().filter(|_| local) {
            Some(repository) => format!("{repository}@{digest}"),
            None => item.reference.to_owned(),
        };
        let known = self.recorded.get(&text);
        let claims = match known {
            Some(known) if known.digest == digest && known.reference == reference => known.claims.clone(),
            _ => {
                let (tag, digest, how) = (text.clone(), digest.clone(), how.to_owned());
                self.tell(What::ImageRecorded { tag, digest, how });
                Vec::new()
            }
        };
        self.report.images.insert(text.clone(), reference.clone());
        self.recorded_now.insert(text.clone());
        self.recorded.insert(text.clone(), RecordedImage { tag: text, digest, reference, claims });
    }

    /// Workloads that name a tag in the cluster's own registry get its digest, too.
    fn pin_workloads(&mut self) {
        let pins: BTreeMap<String, Reference> = self
            .recorded
            .iter()
            .filter(|(text, _)| self.recorded_now.contains(*text))
            .filter_map(|(text, image)| {
                Some((format!("{INTERNAL_REGISTRY}/{text}"), Reference::parse(&image.reference).ok()?))
            })
            .collect();
        for desired in &mut self.desired {
            if object::gvk(&desired.value).is_ok_and(|gvk| object::pod_spec_pointer(&gvk).is_some()) {
                let adjusted = pin(&mut desired.value, &pins);
                desired.adjusted.extend(adjusted);
            }
        }
    }

    fn image_missing(&mut self, what: &str, place: &Place, why: &str, code: scantling_finding::Code) -> Stop {
        let message = format!("{what}: {why}");
        self.report.findings.push(Finding::new(code, message.clone(), place.clone()));
        Stop::Halt(message)
    }
}

fn has_trigger(config: &Value) -> bool {
    let triggers = config.pointer("/spec/triggers").and_then(Value::as_array);
    triggers
        .into_iter()
        .flatten()
        .any(|t| matches!(t.get("type").and_then(Value::as_str), Some("ConfigChange" | "ImageChange")))
}

/// Builds in the order in which they stand upon each other; what is in a circle comes last, in the order given.
fn in_order<'b>(builds: &'b [Build], namespace: Option<&str>) -> Vec<&'b Build> {
    let named = |name: &ImageName, own: Option<&str>| tag_text(name, own.or(namespace));
    let mut left: Vec<&Build> = builds.iter().collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let open: BTreeSet<_> =
            left.iter().filter_map(|b| named(&b.output, b.namespace.as_deref())).collect();
        let waits = |b: &Build| {
            b.base
                .as_ref()
                .and_then(|base| named(base, b.namespace.as_deref()))
                .is_some_and(|base| open.contains(&base))
        };
        let (blocked, ready): (Vec<&Build>, Vec<&Build>) = left.iter().partition(|b| waits(b));
        if ready.is_empty() {
            ordered.extend(blocked);
            break;
        }
        ordered.extend(ready);
        left = blocked;
    }
    ordered
}
