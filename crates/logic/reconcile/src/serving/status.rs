//! What a service's status says.

use scantling_api::object;
use scantling_observed::{Deployment, Pod, Rollout, View as _};
use serde_json::{Value, json};

use super::desired::{CONTAINER, TEMPLATE};
use super::refusal::{Failure, Refusal};
use super::storage::FETCHER;

/// Whether a runtime serves the model.
pub(crate) const RUNTIME_RESOLVED: &str = "RuntimeResolved";
/// Whether its images can be read.
pub(crate) const IMAGE_RESOLVED: &str = "ImageResolved";
/// Whether its images cannot change under their names.
pub(crate) const PINNED: &str = "Pinned";
/// Whether the model is where the runtime looks for it.
pub(crate) const STORAGE_READY: &str = "StorageReady";
/// Whether pods run something older than what is declared.
pub(crate) const ROLLOUT_PENDING: &str = "RolloutPending";
/// Whether something is written that changes nothing.
pub(crate) const FIELDS_IGNORED: &str = "FieldsIgnored";
/// KServe's: whether pods answer.
pub(crate) const PREDICTOR_READY: &str = "PredictorReady";
/// KServe's: whether there is an address.
pub(crate) const INGRESS_READY: &str = "IngressReady";
/// KServe's: all of its own.
pub(crate) const READY: &str = "Ready";
/// KServe's: whether it was stopped.
pub(crate) const STOPPED: &str = "Stopped";

/// Longest message of a failure that is repeated, in bytes: the rest is in the pod's log.
const MAX_MESSAGE: usize = 1024;

/// A condition to be set. Without a status it is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    pub(crate) status: Option<bool>,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Told {
    pub(crate) fn new(
        kind: &'static str,
        status: Option<bool>,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, status, reason: reason.to_owned(), message: message.into() }
    }

    pub(crate) fn of(refusal: &Refusal) -> Self {
        Self::new(refusal.condition, Some(false), refusal.reason, refusal.message.clone())
    }

    fn word(&self) -> &'static str {
        match self.status {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        }
    }

    /// As it goes into the status: the time is that of the last change of `status`.
    pub(crate) fn to_json(&self, live: Option<&Value>, now: &str) -> Value {
        let since = live
            .filter(|live| live.get("status").and_then(Value::as_str) == Some(self.word()))
            .and_then(|live| live.get("lastTransitionTime"))
            .and_then(Value::as_str)
            .unwrap_or(now);
        json!({
            "type": self.kind, "status": self.word(), "reason": self.reason, "message": self.message,
            "lastTransitionTime": since,
        })
    }

    /// Does the live condition say something else?
    pub(crate) fn is_news(&self, live: Option<&Value>) -> bool {
        let text = |name: &str| live.and_then(|live| live.get(name)).and_then(Value::as_str);
        text("status") != Some(self.word()) || text("reason") != Some(self.reason.as_str())
    }
}

/// What is wrong with a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) pod: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) exit_code: Option<i64>,
    /// It is the init container that fetches.
    pub(crate) fetching: bool,
}

impl Trouble {
    pub(crate) fn failure(&self) -> Failure {
        if self.exit_code.is_some() { Failure::ModelLoadFailed } else { Failure::RuntimeUnhealthy }
    }
}

/// The pods of a predictor, told apart by their template.
#[derive(Debug, Default)]
pub(crate) struct Pods {
    pub(crate) total: usize,
    pub(crate) ready: usize,
    /// Of the newest template.
    pub(crate) newest: usize,
    pub(crate) newest_ready: usize,
    /// Of the newest template, and their init containers are through.
    pub(crate) newest_initialized: usize,
    /// Of the newest template, in name order.
    pub(crate) troubles: Vec<Trouble>,
}

impl Pods {
    pub(crate) fn of<'a>(pods: impl Iterator<Item = Pod<'a>>, newest: &str) -> Self {
        let mut found = Self::default();
        for pod in pods {
            let ready = pod.is_ready();
            found.total += 1;
            found.ready += usize::from(ready);
            if pod.annotation(TEMPLATE).unwrap_or_default() != newest {
                continue;
            }
            found.newest += 1;
            found.newest_ready += usize::from(ready);
            let has_status = |kind: &str| condition(pod.object(), kind) == Some("True");
            found.newest_initialized += usize::from(has_status("Initialized"));
            if !ready {
                found.troubles.extend(trouble(pod));
            }
        }
        found
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|condition| object::text(condition, "/type") == kind)?;
    found.get("status")?.as_str()
}

/// Why a pod does not become ready, if it is more than that it has not yet.
fn trouble(pod: Pod<'_>) -> Option<Trouble> {
    let statuses = ["initContainerStatuses", "containerStatuses"].into_iter().flat_map(|list| {
        pod.object().pointer(&format!("/status/{list}")).and_then(Value::as_array).into_iter().flatten()
    });
    for status in statuses {
        let name = object::text(status, "/name");
        let waiting = object::text(status, "/state/waiting/reason");
        let ended = [status.pointer("/state/terminated"), status.pointer("/lastState/terminated")]
            .into_iter()
            .flatten()
            .find(|ended| ended.get("exitCode").and_then(Value::as_i64).unwrap_or_default() != 0);
        let waits = !matches!(waiting, "" | "ContainerCreating" | "PodInitializing");
        let runs = status.pointer("/state/running").is_some_and(|state| !state.is_null());
        if !waits && (runs || ended.is_none()) {
            continue;
        }
        let exit_code = ended.and_then(|ended| ended.get("exitCode")).and_then(Value::as_i64);
        let text = ended.map(|ended| object::text(ended, "/message")).filter(|text| !text.is_empty());
        let text = text.unwrap_or_else(|| object::text(status, "/state/waiting/message"));
        let reason =
            if waits { waiting } else { ended.map_or("Error", |ended| object::text(ended, "/reason")) };
        let back_off = if waits { format!(" ({waiting})") } else { String::new() };
        let what = match (exit_code, name) {
            (Some(code), _) => format!("container {name} ended with {code}{back_off}: {}", shortened(text)),
            (None, _) => format!("container {name}: {waiting}: {}", shortened(text)),
        };
        return Some(Trouble {
            pod: pod.name().to_owned(),
            reason: reason.to_owned(),
            message: what,
            exit_code: exit_code.filter(|_| matches!(name, CONTAINER | FETCHER)),
            fetching: name == FETCHER,
        });
    }
    let (reason, message) = pod.trouble()?;
    Some(Trouble {
        pod: pod.name().to_owned(),
        reason: reason.to_owned(),
        message: format!("{reason}: {}", shortened(message)),
        exit_code: None,
        fetching: false,
    })
}

/// One line of a text: the last that says what the error is, else the last, which is where programs say why they ended.
fn shortened(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines().filter_map(|line| line.strip_prefix("error: ")).next_back();
    let last = last.or_else(|| lines().next_back()).unwrap_or_default();
    let mut end = last.len().min(MAX_MESSAGE);
    while !last.is_char_boundary(end) {
        end -= 1;
    }
    last.get(..end).unwrap_or_default().to_owned()
}

/// Do pods answer?
pub(crate) fn predictor_ready(
    live: Option<Deployment<'_>>,
    refusal: Option<&Refusal>,
    refused: Option<&(&'static str, String)>,
    stopped: bool,
    pods: &Pods,
) -> Told {
    let told = |status, reason: &str, message: &str| Told::new(PREDICTOR_READY, status, reason, message);
    let Some(live) = live else {
        return match refusal {
            Some(refusal) => told(Some(false), refusal.reason, &refusal.message),
            None if let Some((reason, why)) = refused => told(Some(false), reason, why),
            None => told(None, "Deploying", "its Deployment is being made"),
        };
    };
    if stopped && live.replicas() == 0 {
        return told(Some(false), "Stopped", "it was stopped by the annotation serving.kserve.io/stop");
    }
    let find = |kind: &str| {
        let conditions = live.object().pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().find(|condition| object::text(condition, "/type") == kind)
    };
    let is = |condition: &Value, status: &str| object::text(condition, "/status") == status;
    let available = find("Available");
    if let Some(available) = available.filter(|condition| is(condition, "True")) {
        return told(Some(true), object::text(available, "/reason"), object::text(available, "/message"));
    }
    if let Some(failure) = find("ReplicaFailure").filter(|condition| is(condition, "True")) {
        let message = object::text(failure, "/message");
        return if message.contains("exceeded quota") {
            told(
                Some(false),
                "QuotaExceeded",
                &format!("{}; ask for less in model.resources, or have the quota raised", shortened(message)),
            )
        } else {
            told(Some(false), "PodsNotMade", &shortened(message))
        };
    }
    if let Some(trouble) = pods.troubles.first() {
        return told(Some(false), &trouble.reason, &format!("pod {}: {}", trouble.pod, trouble.message));
    }
    match available {
        Some(available) => {
            told(Some(false), object::text(available, "/reason"), object::text(available, "/message"))
        }
        None => told(None, "Deploying", "its pods are being made"),
    }
}

/// KServe's aggregate: pods answer, and there is an address.
pub(crate) fn ready(predictor: &Told, ingress: &Told) -> Told {
    let blamed = [predictor, ingress].into_iter().find(|told| told.status == Some(false));
    let blamed = blamed.or_else(|| [predictor, ingress].into_iter().find(|told| told.status.is_none()));
    match blamed {
        Some(blamed) => Told::new(READY, blamed.status, &blamed.reason, blamed.message.clone()),
        None => Told::new(READY, Some(true), "Ready", ""),
    }
}

/// The state of the model, as KServe's clients know it.
pub(crate) fn model_status(refusal: Option<&Refusal>, live: Option<Deployment<'_>>, pods: &Pods) -> Value {
    let failed =
        pods.troubles.iter().any(|trouble| trouble.exit_code.is_some() || is_hopeless(&trouble.reason));
    let active = if pods.ready > 0 { "Loaded" } else { "Pending" };
    let target = match live {
        Some(_) if pods.newest > 0 && pods.newest_ready > 0 => "Loaded",
        Some(_) if failed => "FailedToLoad",
        Some(_) if pods.newest > 0 => "Loading",
        Some(_) | None => "Pending",
    };
    let done = live.is_some_and(|live| live.rollout() == Rollout::Complete);
    let transition = match refusal {
        Some(_) => "InvalidSpec",
        None if done => "UpToDate",
        None if failed => "BlockedByFailedLoad",
        None => "InProgress",
    };
    let failure = match (refusal, pods.troubles.first().filter(|_| failed)) {
        (Some(refusal), _) => json!({"reason": refusal.failure.word(), "message": refusal.message}),
        (None, Some(trouble)) => json!({
            "location": trouble.pod, "reason": trouble.failure().word(), "message": trouble.message,
            "exitCode": trouble.exit_code,
        }),
        (None, None) => Value::Null,
    };
    json!({
        "transitionStatus": transition,
        "states": {"activeModelState": active, "targetModelState": target},
        "copies": {"failedCopies": if failed { pods.troubles.len() } else { 0 }, "totalCopies": pods.total},
        "lastFailureInfo": failure,
    })
}

/// Reasons that do not pass by waiting.
pub(crate) fn is_hopeless(reason: &str) -> bool {
    matches!(
        reason,
        "CrashLoopBackOff"
            | "ImagePullBackOff"
            | "ErrImagePull"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "CreateContainerConfigError"
            | "CreateContainerError"
            | "RunContainerError"
    )
}
