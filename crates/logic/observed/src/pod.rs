//! Pods and what runs in them.

use scantling_api::object::{self, ContainerKind};
use scantling_image::{ImageId, ImageIdError, PullPolicy, Reference, ReferenceError};
use serde_json::Value;

use crate::view::{View as _, field, items, view};

view!(
    /// A pod.
    Pod, "", "Pod"
);

/// What a container is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerState<'a> {
    /// Not yet, or not any more: `ImagePullBackOff`, `CrashLoopBackOff`, `ContainerCreating` …
    Waiting {
        /// The kubelet's word.
        reason: &'a str,
        /// The kubelet's sentence.
        message: &'a str,
    },
    /// Since then (RFC 3339).
    Running {
        /// When it started.
        since: &'a str,
    },
    /// It has ended.
    Terminated {
        /// The kubelet's word: `Completed`, `Error`, `OOMKilled` …
        reason: &'a str,
        /// Exit code of its process.
        exit_code: i64,
    },
    /// The kubelet has not reported on it.
    Unreported,
}

/// A container of a pod: what was asked for and what is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PodContainer<'a> {
    /// Which list it stands in.
    pub kind: ContainerKind,
    /// Its name.
    pub name: &'a str,
    /// The image as written in the spec; empty if there is none.
    pub image: &'a str,
    spec: &'a Value,
    status: Option<&'a Value>,
}

impl<'a> Pod<'a> {
    /// Its containers: init, regular, ephemeral.
    pub fn containers(self) -> Vec<PodContainer<'a>> {
        let Some(spec) = self.object().get("spec") else { return Vec::new() };
        object::pod_containers(spec)
            .into_iter()
            .map(|container| {
                let name = container.name();
                let list = format!("/status/{}", container.kind.status_field());
                PodContainer {
                    kind: container.kind,
                    name,
                    image: container.image().unwrap_or_default(),
                    spec: container.value,
                    status: items(self.object(), &list).find(|status| field(status, "name") == name),
                }
            })
            .collect()
    }

    /// Its regular containers.
    pub fn regular_containers(self) -> impl Iterator<Item = PodContainer<'a>> {
        self.containers().into_iter().filter(|container| container.kind == ContainerKind::Regular)
    }

    /// The first port of a regular container, if it names one.
    pub fn port(self, container: &str) -> Option<u16> {
        let spec = self.regular_containers().find(|own| own.name == container)?.spec;
        u16::try_from(spec.pointer("/ports/0/containerPort")?.as_u64()?).ok()
    }

    /// The node that it is bound to.
    pub fn node(self) -> Option<&'a str> {
        Some(object::text(self.object(), "/spec/nodeName")).filter(|name| !name.is_empty())
    }

    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`; empty before anybody has said.
    pub fn phase(self) -> &'a str {
        object::text(self.object(), "/status/phase")
    }

    /// Is a container of it running, and nobody deleting it?
    pub fn is_running(self) -> bool {
        !self.is_being_deleted()
            && self
                .regular_containers()
                .any(|container| matches!(container.state(), ContainerState::Running { .. }))
    }

    /// Has a regular container of it ever run?
    pub fn has_started(self) -> bool {
        self.regular_containers().any(PodContainer::has_started)
    }

    /// Is it ready to serve?
    pub fn is_ready(self) -> bool {
        items(self.object(), "/status/conditions")
            .any(|condition| field(condition, "type") == "Ready" && field(condition, "status") == "True")
    }

    /// Why it does not run: the first container that waits for another reason than being made, else what the scheduler says.
    pub fn trouble(self) -> Option<(&'a str, &'a str)> {
        let waiting = self.containers().into_iter().find_map(|container| match container.state() {
            ContainerState::Waiting { reason, message }
                if !matches!(reason, "" | "ContainerCreating" | "PodInitializing") =>
            {
                Some((reason, message))
            }
            _ => None,
        });
        waiting.or_else(|| {
            items(self.object(), "/status/conditions")
                .find(|c| field(c, "type") == "PodScheduled" && field(c, "status") == "False")
                .map(|condition| (field(condition, "reason"), field(condition, "message")))
        })
    }
}

impl<'a> PodContainer<'a> {
    /// The written image, read.
    pub fn reference(self) -> Result<Reference, ReferenceError> {
        Reference::parse(self.image)
    }

    /// The pull policy: the written one, else what the API server's default makes of the image.
    pub fn pull_policy(self) -> Option<PullPolicy> {
        match field(self.spec, "imagePullPolicy") {
            "" => self.reference().ok().map(|reference| PullPolicy::defaulted(&reference)),
            written => PullPolicy::parse(written).ok(),
        }
    }

    /// What the runtime says it runs. `None` before it has said anything.
    pub fn image_id(self) -> Option<Result<ImageId, ImageIdError>> {
        let written =
            self.status.map(|status| field(status, "imageID")).filter(|written| !written.is_empty())?;
        Some(ImageId::parse(written))
    }

    /// What it is doing.
    pub fn state(self) -> ContainerState<'a> {
        let Some(state) = self.status.and_then(|status| status.get("state")) else {
            return ContainerState::Unreported;
        };
        if let Some(running) = state.get("running") {
            ContainerState::Running { since: field(running, "startedAt") }
        } else if let Some(ended) = state.get("terminated") {
            let exit_code = ended.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
            ContainerState::Terminated { reason: field(ended, "reason"), exit_code }
        } else if let Some(waiting) = state.get("waiting") {
            ContainerState::Waiting { reason: field(waiting, "reason"), message: field(waiting, "message") }
        } else {
            ContainerState::Unreported
        }
    }

    /// How often it was restarted.
    pub fn restarts(self) -> i64 {
        self.status.and_then(|status| status.get("restartCount")).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Is it ready?
    pub fn is_ready(self) -> bool {
        self.status.and_then(|status| status.get("ready")).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Has it ever run?
    pub fn has_started(self) -> bool {
        self.restarts() > 0
            || matches!(self.state(), ContainerState::Running { .. } | ContainerState::Terminated { .. })
    }
}
