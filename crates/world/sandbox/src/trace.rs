//! The trace: what happened, one line per event, the same bytes for the same seed.
//!
//! ```text
//!      TIME  ACTOR                 EVENT              OBJECT                      DETAIL
//!     2.014  kubelet/node-1        pull-started       Pod ns/first                R/app:2.7
//! ```
//!
//! | column | meaning |
//! |---|---|
//! | TIME | seconds since the world began, three decimals |
//! | ACTOR | who did it: a client's name, a controller, `kubelet/NODE`, `image-import`, `build`, `admin` |
//! | EVENT | the kind of event, one word from [`What::kind`] |
//! | OBJECT | the object that it happened to, `-` when there is none |
//! | DETAIL | the rest, in words of the kind of event |

use std::fmt::Write as _;

use scantling_api::ObjectKey;

use crate::time::Time;

/// Most events that a trace keeps; a world that runs away must not eat the machine's memory. Later
/// events are counted, not kept.
const MAX_EVENTS: usize = 2_000_000;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A client's request was answered; reads that succeed are not traced.
    Request {
        /// The HTTP method.
        method: String,
        /// Path and query.
        path: String,
        /// The status code of the answer.
        status: u16,
    },
    /// An object of the API was written.
    Write {
        /// `create`, `update`, `status`, `patch` or `delete`.
        verb: &'static str,
    },
    /// A write of a controller was refused.
    Refused {
        /// The verb.
        verb: &'static str,
        /// The API server's message.
        message: String,
    },
    /// A pod got its node.
    Scheduled {
        /// The node's name.
        node: String,
    },
    /// A pod fits on no node.
    Unschedulable {
        /// The scheduler's message.
        message: String,
    },
    /// A node found an image in its cache and did not ask a registry.
    CacheHit {
        /// The reference as written.
        reference: String,
        /// The image's config digest.
        config: String,
    },
    /// A node began to pull.
    PullStarted {
        /// The reference as written.
        reference: String,
    },
    /// A node has pulled.
    Pulled {
        /// The reference as written.
        reference: String,
        /// The digest that the registry named (an index's own digest for an index).
        digest: String,
        /// Bytes that were downloaded; what the node had already is not counted.
        bytes: u64,
    },
    /// A pull failed.
    PullFailed {
        /// The reference as written.
        reference: String,
        /// The container runtime's message.
        message: String,
    },
    /// A name of a node's cache was moved from one image to another.
    TagMoved {
        /// The name.
        name: String,
        /// Config digest before.
        from: String,
        /// Config digest after.
        to: String,
    },
    /// An image left a node's cache.
    ImageRemoved {
        /// The name, or the config digest.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// A container runs.
    ContainerStarted {
        /// The container's name.
        container: String,
        /// What the pod's status says as `imageID`.
        image_id: String,
    },
    /// A container ended.
    ContainerExited {
        /// The container's name.
        container: String,
        /// Its exit code.
        code: i32,
    },
    /// An image stream's tag was imported.
    Imported {
        /// The tag.
        tag: String,
        /// The digest.
        digest: String,
    },
    /// An import failed.
    ImportFailed {
        /// The tag.
        tag: String,
        /// The message of the condition.
        message: String,
    },
    /// A build began, pushed or failed.
    Build {
        /// The build's phase.
        phase: &'static str,
        /// Digest or message.
        detail: String,
    },
    /// Something was done to the world from outside: a fault, an admin's act on a node.
    Outside {
        /// The act, in words.
        act: String,
    },
}

impl What {
    /// One word for the kind of event.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::Write { verb } => verb,
            Self::Refused { .. } => "refused",
            Self::Scheduled { .. } => "scheduled",
            Self::Unschedulable { .. } => "unschedulable",
            Self::CacheHit { .. } => "cache-hit",
            Self::PullStarted { .. } => "pull-started",
            Self::Pulled { .. } => "pulled",
            Self::PullFailed { .. } => "pull-failed",
            Self::TagMoved { .. } => "tag-moved",
            Self::ImageRemoved { .. } => "image-removed",
            Self::ContainerStarted { .. } => "started",
            Self::ContainerExited { .. } => "exited",
            Self::Imported { .. } => "imported",
            Self::ImportFailed { .. } => "import-failed",
            Self::Build { .. } => "build",
            Self::Outside { .. } => "outside",
        }
    }

    /// The last column.
    pub fn detail(&self) -> String {
        match self {
            Self::Write { .. } => String::new(),
            Self::Request { method, path, status } => format!("{method} {path} {status}"),
            Self::Refused { verb, message } => format!("{verb}: {message}"),
            Self::Scheduled { node } => node.clone(),
            Self::Unschedulable { message } => message.clone(),
            Self::CacheHit { reference, config } => format!("{reference} {config}"),
            Self::PullStarted { reference } => reference.clone(),
            Self::Pulled { reference, digest, bytes } => format!("{reference} {digest} {bytes} bytes"),
            Self::PullFailed { reference, message } => format!("{reference}: {message}"),
            Self::TagMoved { name, from, to } => format!("{name} {from} -> {to}"),
            Self::ImageRemoved { name, reason } => format!("{name} ({reason})"),
            Self::ContainerStarted { container, image_id } => format!("{container} {image_id}"),
            Self::ContainerExited { container, code } => format!("{container} {code}"),
            Self::Imported { tag, digest } => format!("{tag} {digest}"),
            Self::ImportFailed { tag, message } => format!("{tag}: {message}"),
            Self::Build { phase, detail } => format!("{phase} {detail}"),
            Self::Outside { act } => act.clone(),
        }
    }
}

/// One event of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    /// When it happened.
    pub time: Time,
    /// Who did it.
    pub actor: String,
    /// What happened.
    pub what: What,
    /// The object that it happened to.
    pub object: Option<ObjectKey>,
}

impl TraceEvent {
    /// The event as one line, without its newline; see the module's legend.
    pub fn line(&self) -> String {
        let object = self.object.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        let line = format!(
            "{:>10}  {:<22} {:<18} {:<36} {}",
            self.time,
            self.actor,
            self.what.kind(),
            object,
            self.what.detail().replace(['\n', '\r'], " "),
        );
        line.trim_end().to_owned()
    }
}

/// Renders events, one line each, below the legend's heading.
pub fn render(events: &[TraceEvent]) -> String {
    let mut text = format!("{:>10}  {:<22} {:<18} {:<36} {}\n", "TIME", "ACTOR", "EVENT", "OBJECT", "DETAIL");
    for event in events {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", event.line());
    }
    text
}

/// The events so far.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    events: Vec<TraceEvent>,
    dropped: u64,
}

impl Trace {
    pub(crate) fn add(&mut self, time: Time, actor: &str, what: What, object: Option<ObjectKey>) {
        if self.events.len() >= MAX_EVENTS {
            self.dropped += 1;
            return;
        }
        self.events.push(TraceEvent { time, actor: actor.to_owned(), what, object });
    }

    pub(crate) fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    /// Events that were not kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_five_columns_and_no_newline_inside() {
        let event = TraceEvent {
            time: Time::from_millis(2014),
            actor: "kubelet/node-1".into(),
            what: What::PullFailed { reference: "r/app:1".into(), message: "two\nlines".into() },
            object: Some(ObjectKey {
                group: String::new(),
                kind: "Pod".into(),
                namespace: Some("ns".into()),
                name: "first".into(),
            }),
        };
        assert_eq!(
            event.line(),
            "     2.014  kubelet/node-1         pull-failed        Pod ns/first                         r/app:1: two lines"
        );
    }

    #[test]
    fn the_heading_names_the_columns() {
        assert_eq!(
            render(&[]).split_whitespace().collect::<Vec<_>>(),
            ["TIME", "ACTOR", "EVENT", "OBJECT", "DETAIL"]
        );
    }
}
