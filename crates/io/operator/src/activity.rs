//! When notebooks were used last: their own answer, for the culler, and written down for clients.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::{SignedDuration, Timestamp};
use scantling_api::object;
use scantling_cluster::{Served, Write};
use scantling_observed::{Notebook, Pod, View as _, annotations};
use scantling_reconcile::LastUses;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::operator::Operator;
use crate::seen::Seen;
use crate::told::Told;

/// Between two rounds.
const EVERY: Duration = Duration::from_mins(1);
/// How long one notebook is waited for. It is a request inside the cluster, answered from memory.
const PATIENCE: Duration = Duration::from_secs(4);
/// Notebooks that are asked at the same time.
const AT_A_TIME: usize = 8;
/// Notebooks of one round: as many as can be waited for in the time of a round if every tenth is silent.
const PER_ROUND: usize = 1000;
/// The longest answer that is read. A list of kernels has some hundred bytes for each.
const ANSWER_BYTES: usize = 256 << 10;
/// The port on which notebooks listen that name none.
const PORT: u16 = 8888;
/// Tells Jupyter Server that the question is no activity. Without it, whatever is asked of its API counts as use
/// (`jupyter_server.base.handlers.APIHandler.update_api_activity`), and no notebook that is asked would ever be idle.
const NO_ACTIVITY: &str = "no_track_activity=1";
/// By how much the last use must have moved to be written down: a notebook in use would otherwise be a write every round.
const MOVED: SignedDuration = SignedDuration::from_mins(5);

/// Asks an address; gives the body of a good answer.
pub type Ask = dyn Fn(Uri) -> BoxFuture<'static, Result<Bytes, String>> + Send + Sync;

/// Asks over HTTP, straight to the pod.
pub fn ask_over_http() -> Box<Ask> {
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(PATIENCE));
    let client: Client<_, Empty<Bytes>> =
        Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(tcp);
    Box::new(move |uri| {
        let client = client.clone();
        Box::pin(async move {
            let request = Request::get(uri)
                .header(http::header::ACCEPT, "application/json")
                .body(Empty::new())
                .map_err(|error| error.to_string())?;
            let answer = client.request(request).await.map_err(|error| error.to_string())?;
            if !answer.status().is_success() {
                return Err(format!("it answered {}", answer.status().as_u16()));
            }
            let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
            body.map(http_body_util::Collected::to_bytes).map_err(|error| error.to_string())
        })
    })
}

/// A notebook that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    namespace: String,
    name: String,
    uid: String,
    api_version: String,
    ip: String,
    port: u16,
    last: Option<Timestamp>,
}

impl Target {
    pub(crate) fn of(notebook: Notebook<'_>, pod: Pod<'_>) -> Option<Self> {
        let ip = object::text(pod.object(), "/status/podIP");
        if ip.is_empty() || notebook.is_being_deleted() || notebook.is_stopped() {
            return None;
        }
        Some(Self {
            namespace: notebook.namespace().to_owned(),
            name: notebook.name().to_owned(),
            uid: notebook.uid().to_owned(),
            api_version: object::text(notebook.object(), "/apiVersion").to_owned(),
            ip: ip.to_owned(),
            port: notebook.container().and_then(|own| pod.port(own.name())).unwrap_or(PORT),
            last: notebook.annotation(annotations::LAST_ACTIVITY).and_then(|text| text.parse().ok()),
        })
    }

    fn uri(&self, what: &str) -> Option<Uri> {
        let host = if self.ip.contains(':') { format!("[{}]", self.ip) } else { self.ip.clone() };
        let Self { namespace, name, port, .. } = self;
        format!("http://{host}:{port}/notebook/{namespace}/{name}/api/{what}?{NO_ACTIVITY}").parse().ok()
    }
}

/// What Jupyter says of its kernels.
#[derive(Debug, Deserialize)]
struct Kernel {
    #[serde(default)]
    execution_state: String,
}

/// What Jupyter says of itself.
#[derive(Debug, Deserialize)]
struct Status {
    last_activity: Timestamp,
}

/// When a notebook was used last: now, if one of its kernels computes.
async fn last_use(ask: &Ask, target: &Target, now: Timestamp) -> Result<Timestamp, String> {
    let get = async |what: &str| {
        let uri = target.uri(what).ok_or("its address is none")?;
        timeout(PATIENCE, ask(uri)).await.map_err(|_| "it is silent".to_owned())?
    };
    let kernels: Vec<Kernel> =
        serde_json::from_slice(&get("kernels").await?).map_err(|error| error.to_string())?;
    // One that nobody is connected to may stay "starting" for good; one that computes says so.
    if kernels.iter().any(|kernel| kernel.execution_state == "busy") {
        return Ok(now);
    }
    let status: Status = serde_json::from_slice(&get("status").await?).map_err(|error| error.to_string())?;
    // Its clock may be ahead.
    Ok(status.last_activity.min(now))
}

/// The write that notes it down, if it says something new.
fn note(target: &Target, last: Timestamp) -> Option<Write> {
    let moved = target.last.is_none_or(|known| last.duration_since(known) >= MOVED);
    moved.then(|| Write::MergePatch {
        object: json!({"apiVersion": target.api_version, "kind": "Notebook",
            "metadata": {"name": target.name, "namespace": target.namespace}}),
        subresource: None,
        patch: json!({"metadata": {"uid": target.uid, "annotations": {(annotations::LAST_ACTIVITY): whole_seconds(last)}}}),
    })
}

fn whole_seconds(time: Timestamp) -> Value {
    Value::String(Timestamp::from_second(time.as_second()).unwrap_or(time).to_string())
}

impl Operator {
    /// Asks all running notebooks, round after round, for as long as it is polled, and sends what they answered.
    pub(crate) async fn watch_activity(
        &self,
        last_uses: &watch::Sender<LastUses>,
        seen: watch::Receiver<Option<Seen>>,
    ) {
        let mut next = 0;
        loop {
            sleep(self.cluster.jitter().around(EVERY)).await;
            let targets = seen.borrow().as_ref().map(|seen| seen.targets.clone()).unwrap_or_default();
            // Whoever runs no longer is forgotten.
            let running: BTreeSet<&str> = targets.iter().map(|target| target.uid.as_str()).collect();
            last_uses.send_if_modified(|known| {
                let before = known.len();
                known.retain(|uid, _| running.contains(uid.as_str()));
                known.len() != before
            });
            if targets.is_empty() {
                continue;
            }
            // Where there are too many, the next round goes on where this one ends.
            let from = next % targets.len();
            let round: Vec<&Target> =
                targets.iter().cycle().skip(from).take(targets.len().min(PER_ROUND)).collect();
            next = from + round.len();
            self.ask_all(&round, targets.len() - round.len(), last_uses).await;
        }
    }

    async fn ask_all(&self, round: &[&Target], left: usize, last_uses: &watch::Sender<LastUses>) {
        let now = self.clock.now();
        let answers: Vec<(&Target, Result<Timestamp, String>)> = stream::iter(round)
            .map(|target| async move { (*target, last_use(&*self.ask, target, now).await) })
            .buffered(AT_A_TIME)
            .collect()
            .await;
        let silent = answers.iter().filter(|(_, answer)| answer.is_err()).count();
        self.tell(Told::Asked { notebooks: round.len(), silent, left });
        last_uses.send_if_modified(|known| {
            let mut news = false;
            for (target, answer) in &answers {
                let new = answer.as_ref().ok().map(|last| last.as_second());
                news |= known.get(&target.uid).copied() != new;
                match new {
                    Some(new) => known.insert(target.uid.clone(), new),
                    None => known.remove(&target.uid),
                };
            }
            news
        });
        let mut served: Option<Served> = None;
        for (target, last) in answers.into_iter().filter_map(|(target, last)| Some((target, last.ok()?))) {
            let Some(write) = note(target, last) else { continue };
            let written = match &served {
                Some(served) => self.cluster.write(served, &write).await,
                None => match self.cluster.served().await {
                    Ok(asked) => self.cluster.write(served.insert(asked), &write).await,
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = written {
                let notebook = format!("{}/{}", target.namespace, target.name);
                self.tell(Told::ActivityUnwritten { notebook, why: error.to_string() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn target(last: Option<&str>) -> Target {
        Target {
            namespace: "n".to_owned(),
            name: "lab".to_owned(),
            uid: "u".to_owned(),
            api_version: "kubeflow.org/v1".to_owned(),
            ip: "fd00::1".to_owned(),
            port: 8889,
            last: last.map(|text| text.parse().unwrap()),
        }
    }

    fn answers(kernels: &'static str, status: &'static str) -> Box<Ask> {
        Box::new(move |uri| {
            assert!(uri.to_string().starts_with("http://[fd00::1]:8889/notebook/n/lab/api/"), "{uri}");
            assert_eq!(uri.query(), Some("no_track_activity=1"), "a question is no activity");
            let answer = if uri.path().ends_with("kernels") { kernels } else { status };
            Box::pin(std::future::ready(Ok(Bytes::from_static(answer.as_bytes()))))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_use_is_what_jupyter_says() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let idle = r#"[{"id": "a", "execution_state": "idle", "connections": 1}]"#;
        let busy = r#"[{"execution_state": "idle"}, {"execution_state": "busy"}]"#;
        let then = r#"{"last_activity": "2026-01-01T10:30:00.123456Z", "kernels": 1, "connections": 0}"#;
        let ahead = r#"{"last_activity": "2026-01-02T10:30:00Z"}"#;
        for (kernels, status, expected) in [
            ("[]", then, Some("2026-01-01T10:30:00.123456Z")),
            (idle, then, Some("2026-01-01T10:30:00.123456Z")),
            (busy, then, Some("2026-01-01T12:00:00Z")),
            (idle, ahead, Some("2026-01-01T12:00:00Z")),
            ("<html>", then, None),
            ("[]", "{}", None),
            ("{}", then, None),
            ("[]", r#"{"last_activity": "yesterday"}"#, None),
        ] {
            let found = last_use(&*answers(kernels, status), &target(None), now).await.ok();
            assert_eq!(found, expected.map(|text| text.parse().unwrap()), "{kernels} {status}");
        }
        let silent: Box<Ask> = Box::new(|_| Box::pin(std::future::pending()));
        assert_eq!(last_use(&*silent, &target(None), now).await, Err("it is silent".to_owned()));
    }

    #[test]
    fn only_what_has_moved_is_written() {
        let last: Timestamp = "2026-01-01T10:30:00.5Z".parse().unwrap();
        for (known, expected) in [
            (None, true),
            (Some("2026-01-01T10:25:00Z"), true),
            (Some("2026-01-01T10:26:00Z"), false),
            (Some("2026-01-01T11:00:00Z"), false),
        ] {
            assert_eq!(note(&target(known), last).is_some(), expected, "{known:?}");
        }
        let Some(Write::MergePatch { patch, .. }) = note(&target(None), last) else {
            return assert_eq!(1, 2);
        };
        assert_eq!(patch["metadata"]["annotations"][annotations::LAST_ACTIVITY], "2026-01-01T10:30:00Z");
        assert_eq!(patch["metadata"]["uid"], "u");
    }
}
