//! How a run is to go.

use std::collections::BTreeSet;
use std::time::Duration;

use scantling_image::Digest;
use scantling_release::{Lock, Release};
use tokio::sync::watch;

use crate::bundle::Bundle;

/// Choices of whoever starts the run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The release's lock. Without one the gate resolves every reference itself, and what it finds is the lock.
    pub lock: Option<Lock>,
    /// The release that was installed by other means, if that is known. It tells the platform's own fields from
    /// people's; without it, only fields that the new release has are taken over.
    pub installed: Option<Release>,
    /// Field managers of the means by which the platform may have been installed before. Values of theirs that are as the
    /// release wants them become the release's; those that differ follow its rules, as anybody's do.
    pub legacy_managers: BTreeSet<String>,
    /// How long to wait for what.
    pub waits: Waits,
    /// Who does the run, as the run's lease names it: `cli/HOST/PID/RANDOM` or `operator/POD`. Two that run at the same
    /// time must be called differently.
    pub holder: String,
    /// The release itself, which the cluster keeps so that it can be gone back to. Without it, it cannot.
    pub bundle: Option<Bundle>,
    /// Only say what would be done: nothing is written.
    pub dry_run: bool,
    /// The plan that somebody has seen and agreed to, by [`scantling_plan::Plan::digest`]. A run that would do anything
    /// else is refused.
    pub approved: Option<Digest>,
    /// Becomes true when the run is to stop: it is left where it is, as if it had been killed, but the lease is given back
    /// so that it can be continued at once.
    pub stop: Option<watch::Receiver<bool>>,
    /// Whether it is a person who stops it: then nobody goes on with it but a person.
    pub pauses: bool,
    /// Whether the platform is told that it is to have this release. The operator, which does what the platform is told, does
    /// not tell it anything.
    pub announce: bool,
}

/// How long the run waits until it stops and says what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// For `CustomResourceDefinitions` and namespaces.
    pub definitions: Duration,
    /// For imports of image streams.
    pub imports: Duration,
    /// For one build on the cluster. GPU images are built for an hour and more.
    pub build: Duration,
    /// For one node to pull the images of one stage.
    pub prepull: Duration,
    /// For one workload to roll out.
    pub rollout: Duration,
    /// For objects to be gone after they were deleted. Finalizers of others may hold them.
    pub removal: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        let minutes = |m: u64| Duration::from_secs(m * 60);
        Self {
            definitions: minutes(2),
            imports: minutes(15),
            build: minutes(180),
            prepull: minutes(60),
            rollout: minutes(20),
            removal: minutes(5),
        }
    }
}

/// What `kubectl`, `oc` and the scripts around them call themselves.
const LEGACY_MANAGERS: [&str; 9] = [
    "kubectl-client-side-apply",
    "kubectl-create",
    "kubectl-replace",
    "kubectl",
    "before-first-apply",
    "oc",
    "oc-client-side-apply",
    "oc-create",
    "oc-replace",
];

impl Default for Options {
    fn default() -> Self {
        Self {
            lock: None,
            installed: None,
            legacy_managers: LEGACY_MANAGERS.into_iter().map(ToOwned::to_owned).collect(),
            waits: Waits::default(),
            holder: "scantling".to_owned(),
            bundle: None,
            dry_run: false,
            approved: None,
            stop: None,
            pauses: false,
            announce: true,
        }
    }
}
