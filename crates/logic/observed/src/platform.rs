//! The platform itself: which release is wanted, by which policy, and how it is.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::Observed;
use crate::view::{View as _, view};

/// The name of the only object of this kind.
pub const PLATFORM_NAME: &str = "platform";

view!(
    /// The platform, one for each cluster.
    Platform, "scantling.dev", "Platform"
);

/// What an admin wants of the platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlatformSpec {
    /// The release that the cluster is to have. `scantling upgrade` writes it and stores the release's files in the
    /// cluster, from which the operator continues a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<WantedRelease>,
    /// Whether the operator begins a run by itself. A run that somebody has begun is always continued.
    pub approval: Approval,
    /// What is done when a run stops in the middle.
    pub on_failure: OnFailure,
    /// How notebooks are treated.
    pub notebooks: NotebookPolicy,
    /// How models are treated.
    pub models: ModelPolicy,
}

/// The release that is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WantedRelease {
    /// Its version, such as `2026.2`.
    pub version: String,
}

/// Whether a run begins by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// The operator begins it as soon as the wanted release differs from the present one.
    #[default]
    Automatic,
    /// Somebody annotates the platform with `scantling.dev/approved-release: VERSION`, or runs `scantling upgrade`.
    Manual,
}

/// What follows a run that stopped in the middle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It stays where it is, the cause is told, and it is tried again after growing pauses.
    #[default]
    Stop,
    /// The release before is brought back, once.
    Rollback,
}

/// How notebooks are treated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NotebookPolicy {
    /// When a notebook with a pending update takes it.
    pub restart: NotebookRestart,
    /// Whether idle notebooks are stopped.
    pub culling: Culling,
}

/// When a running notebook takes a pending update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NotebookRestart {
    /// When its owner restarts or stops it, and never before.
    #[default]
    Owner,
    /// Also when it has been idle for as long as culling would wait.
    Idle,
}

/// Whether idle notebooks are stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Culling {
    /// Stop them.
    pub enabled: bool,
    /// How long nothing may have happened: hours, minutes and seconds, such as `24h` or `1h30m`. At least a minute.
    #[schemars(
        length(max = 24),
        regex(pattern = r"^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$"),
        extend("x-kubernetes-validations" = [{
            "rule": "duration(self) >= duration('1m') && duration(self) <= duration('87600h')",
            "message": "at least a minute, at most ten years, such as 24h or 1h30m",
        }])
    )]
    pub idle_after: String,
}

impl Default for Culling {
    fn default() -> Self {
        Self { enabled: false, idle_after: "24h".to_owned() }
    }
}

/// How models are treated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelPolicy {
    /// Whether a new image of a runtime reaches models that are served.
    pub roll: ModelRoll,
}

/// How a new image of a runtime reaches models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelRoll {
    /// At once, one model after the other, without a moment in which none answers.
    #[default]
    Auto,
    /// When the owner of the model changes it.
    Manual,
}

/// How the platform is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlatformStatus {
    /// The generation of the spec that the rest speaks of.
    pub observed_generation: i64,
    /// The version of the release that was last brought to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The run that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<PlatformRun>,
    /// The workloads of the release.
    pub components: Vec<PlatformComponent>,
    /// `Ready`, `Upgrading`, `Degraded`, and one for each promise, with its evidence.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<PlatformCondition>,
}

/// A run that is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlatformRun {
    /// The version that it brings.
    pub version: String,
    /// The stage that it has reached.
    pub stage: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// Who does it: `cli/HOST/…` or `operator/POD`; nothing while it waits for somebody to continue it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub holder: String,
}

/// A workload of the release.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlatformComponent {
    /// Its name, with its namespace.
    pub name: String,
    /// The version of the release that it comes from.
    pub version: String,
    /// Its image, by digest.
    pub image: String,
}

/// A condition, in the shape that Kubernetes' own conditions have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A word in `CamelCase`.
    pub reason: String,
    /// A sentence: for promises, the evidence.
    pub message: String,
    /// When the status last changed (RFC 3339).
    pub last_transition_time: String,
    /// The generation of the spec that it speaks of.
    #[serde(default)]
    pub observed_generation: i64,
}

/// The longest time that an idle notebook may be let be: beyond it nobody means what they wrote.
const LONGEST_IDLE_SECONDS: u64 = 87_600 * 3600;

impl Culling {
    /// How long nothing may have happened; none when it is not written as it should be.
    pub fn idle(&self) -> Option<Duration> {
        let mut rest = self.idle_after.trim();
        let mut seconds = 0u64;
        let mut units = [('h', 3600), ('m', 60), ('s', 1)].into_iter();
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            let (number, unit) = rest.split_at(end);
            let mut letters = unit.chars();
            let letter = letters.next()?;
            // In this order, each at most once.
            let (_, each) = units.by_ref().find(|(name, _)| *name == letter)?;
            seconds = seconds.checked_add(number.parse::<u64>().ok()?.checked_mul(each)?)?;
            rest = letters.as_str();
        }
        (60..=LONGEST_IDLE_SECONDS).contains(&seconds).then(|| Duration::from_secs(seconds))
    }
}

impl<'a> Platform<'a> {
    /// Its spec, with defaults for what is not written.
    ///
    /// # Errors
    /// When a field does not have one of its values; the server refuses such an object where the definition is in place.
    pub fn spec(self) -> Result<PlatformSpec, serde_json::Error> {
        match self.object().get("spec") {
            Some(spec) => PlatformSpec::deserialize(spec),
            None => Ok(PlatformSpec::default()),
        }
    }

    /// Its status as it was last written; empty if it cannot be read.
    pub fn status(self) -> PlatformStatus {
        let status = self.object().get("status");
        status.and_then(|status| PlatformStatus::deserialize(status).ok()).unwrap_or_default()
    }

    /// The version that somebody allowed to be brought, where that is asked for.
    pub fn approved(self) -> Option<&'a str> {
        self.annotation(APPROVED)
    }

    /// The generation of its spec.
    pub fn generation(self) -> i64 {
        crate::view::number(self.object(), "/metadata/generation").unwrap_or_default()
    }
}

/// On a platform with manual approval: the version that may be brought.
pub const APPROVED: &str = "scantling.dev/approved-release";

impl Observed {
    /// The platform, if there is one.
    pub fn platform(&self) -> Option<Platform<'_>> {
        self.one("", PLATFORM_NAME)
    }

    /// What the platform's admin wants. Without a platform, or with one that cannot be read, the defaults, which stop no
    /// notebook.
    pub fn policy(&self) -> PlatformSpec {
        self.platform().and_then(|platform| platform.spec().ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_written_has_a_default_and_what_is_wrong_an_error() {
        for (spec, policy, release) in [
            (json!({}), (Approval::Automatic, OnFailure::Stop, false, ModelRoll::Auto), None),
            (
                json!({"release": {"version": "2026.2"}, "approval": "manual", "onFailure": "rollback",
                    "notebooks": {"restart": "idle", "culling": {"enabled": true}}, "models": {"roll": "manual"}}),
                (Approval::Manual, OnFailure::Rollback, true, ModelRoll::Manual),
                Some("2026.2"),
            ),
        ] {
            let object = json!({"apiVersion": "scantling.dev/v1alpha1", "kind": "Platform",
                "metadata": {"name": "platform", "generation": 3}, "spec": spec});
            let observed = Observed::from_objects([object]).unwrap();
            let spec = observed.policy();
            let found = (spec.approval, spec.on_failure, spec.notebooks.culling.enabled, spec.models.roll);
            assert_eq!(found, policy);
            assert_eq!(spec.release.as_ref().map(|r| r.version.as_str()), release);
            assert_eq!(spec.notebooks.culling.idle(), Some(Duration::from_hours(24)));
            assert_eq!(observed.platform().unwrap().generation(), 3);
        }
        let odd = json!({"apiVersion": "scantling.dev/v1alpha1", "kind": "Platform",
            "metadata": {"name": "platform"}, "spec": {"approval": "maybe", "notebooks": {"culling": {"enabled": true}}}});
        let observed = Observed::from_objects([odd]).unwrap();
        assert!(observed.platform().unwrap().spec().is_err());
        assert!(!observed.policy().notebooks.culling.enabled);
    }

    #[test]
    fn idle_times() {
        for (text, seconds) in [
            ("24h", Some(86400)),
            ("1h30m", Some(5400)),
            ("90m", Some(5400)),
            ("60s", Some(60)),
            ("59s", None),
            ("0h", None),
            ("", None),
            ("h", None),
            ("30", None),
            ("30m1h", None),
            ("1h1h", None),
            ("-1h", None),
            ("1 h", None),
            ("99999999999999999999h", None),
            ("5124095576030431h", None),
            ("87601h", None),
            ("1é", None),
        ] {
            let culling = Culling { enabled: true, idle_after: text.to_owned() };
            assert_eq!(culling.idle(), seconds.map(Duration::from_secs), "{text:?}");
        }
    }
}
