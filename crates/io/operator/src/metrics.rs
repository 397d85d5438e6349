//! What is counted, in the text format of Prometheus.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI64, AtomicU64};

use jiff::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use scantling_cluster::Driven;
use scantling_run::What;

use crate::told::Told;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReconciler {
    reconciler: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStage {
    version: String,
    stage: String,
}

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<ByReconciler, Counter>,
    wanted: Family<ByReconciler, Gauge>,
    writes: Counter,
    failures: Counter,
    fights: Counter,
    postponed: Counter,
    unread: Counter,
    watch_restarts: Family<ByKind, Counter>,
    objects: Gauge,
    leading: Gauge,
    runs: Family<ByOutcome, Counter>,
    run_stage: Mutex<Option<ByStage>>,
    stage: Family<ByStage, Gauge>,
    run_writes: Counter<u64, AtomicU64>,
    silent_notebooks: Gauge,
    /// Seconds since 1970 at which something was last done.
    beat: Gauge<i64, AtomicI64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("scantling"),
            reconciles: Family::default(),
            wanted: Family::default(),
            writes: Counter::default(),
            failures: Counter::default(),
            fights: Counter::default(),
            postponed: Counter::default(),
            unread: Counter::default(),
            watch_restarts: Family::default(),
            objects: Gauge::default(),
            leading: Gauge::default(),
            runs: Family::default(),
            run_stage: Mutex::default(),
            stage: Family::default(),
            run_writes: Counter::default(),
            silent_notebooks: Gauge::default(),
            beat: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "reconciles",
            "How often a reconciler was asked what is missing",
            metrics.reconciles.clone(),
        );
        registry.register(
            "wanted_writes",
            "Writes that a reconciler wanted when it was last asked; 0 when all is as it should be",
            metrics.wanted.clone(),
        );
        registry.register("writes", "Writes that reconcilers made", metrics.writes.clone());
        registry.register(
            "write_failures",
            "Writes that failed and are tried again after a growing pause",
            metrics.failures.clone(),
        );
        registry.register(
            "fights",
            "Writes that were made again and again because somebody undoes them",
            metrics.fights.clone(),
        );
        registry.register(
            "postponed_writes",
            "Writes that were left for the next pass because one pass had too many",
            metrics.postponed.clone(),
        );
        registry.register(
            "unread_objects",
            "Reads of secrets that models name which failed and are tried again",
            metrics.unread.clone(),
        );
        registry.register(
            "watch_restarts",
            "Watches that broke and were opened again",
            metrics.watch_restarts.clone(),
        );
        registry.register("objects", "Objects that are kept in memory", metrics.objects.clone());
        registry.register("leading", "1 if this process leads, 0 if it waits", metrics.leading.clone());
        registry.register("runs", "Runs that ended, by outcome", metrics.runs.clone());
        registry.register(
            "run_stage",
            "1 for the version and the stage of the run that this process does",
            metrics.stage.clone(),
        );
        registry.register(
            "run_objects",
            "Objects that runs of this process have written",
            metrics.run_writes.clone(),
        );
        registry.register(
            "silent_notebooks",
            "Running notebooks that gave no answer when they were asked for their last use",
            metrics.silent_notebooks.clone(),
        );
        registry.register(
            "last_progress_timestamp_seconds",
            "When something was last done, in seconds since 1970",
            metrics.beat.clone(),
        );
        metrics
    }

    /// Counts what was told.
    pub(crate) fn count(&self, told: &Told) {
        match told {
            Told::Leads => {
                self.leading.set(1);
            }
            Told::LeadLost { .. } | Told::Stops => {
                self.leading.set(0);
            }
            Told::Driver { what } => self.count_driven(what),
            Told::RunBegins { version, .. } => self.reach(Some((version, "begin"))),
            Told::Run { what } => {
                let version = self.running();
                if let Some(version) = version {
                    self.reach(Some((&version, &what.stage.to_string())));
                }
                if matches!(what.what, What::Object { .. }) {
                    self.run_writes.inc();
                }
            }
            Told::RunEnds { brought, .. } => {
                let outcome = if *brought { "brought" } else { "failed" };
                self.runs.get_or_create(&ByOutcome { outcome }).inc();
                self.reach(None);
            }
            Told::Asked { silent, .. } => {
                self.silent_notebooks.set(i64::try_from(*silent).unwrap_or(i64::MAX));
            }
            _ => {}
        }
    }

    fn count_driven(&self, what: &Driven) {
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        match what {
            Driven::Synced { objects } => {
                self.objects.set(number(*objects));
            }
            Driven::Reconciled { reconciler, wants } => {
                self.reconciles.get_or_create(&ByReconciler { reconciler }).inc();
                self.wanted.get_or_create(&ByReconciler { reconciler }).set(number(*wants));
            }
            Driven::Wrote { .. } => {
                self.writes.inc();
            }
            Driven::Failed { .. } => {
                self.failures.inc();
            }
            Driven::Fought { .. } => {
                self.writes.inc();
                self.fights.inc();
            }
            Driven::WatchBroken { watched, .. } => {
                self.watch_restarts.get_or_create(&ByKind { kind: watched.kind.clone() }).inc();
            }
            Driven::Postponed { writes } => {
                self.postponed.inc_by(u64::try_from(*writes).unwrap_or(u64::MAX));
            }
            Driven::Unread { .. } => {
                self.unread.inc();
            }
            Driven::KindsUnknown { .. } => {}
        }
    }

    fn running(&self) -> Option<String> {
        let stage = self.run_stage.lock().unwrap_or_else(PoisonError::into_inner);
        stage.as_ref().map(|stage| stage.version.clone())
    }

    /// Only the present stage of the present run is shown.
    fn reach(&self, now: Option<(&str, &str)>) {
        let now =
            now.map(|(version, stage)| ByStage { version: version.to_owned(), stage: stage.to_owned() });
        let mut shown = self.run_stage.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown == now {
            return;
        }
        if let Some(before) = shown.as_ref() {
            self.stage.remove(before);
        }
        if let Some(now) = &now {
            self.stage.get_or_create(now).set(1);
        }
        *shown = now;
    }

    /// Notes that the process is alive.
    pub(crate) fn beat(&self, now: Timestamp) {
        self.beat.set(now.as_second());
    }

    /// Seconds since 1970 at which something was last done; 0 before.
    pub fn last_beat(&self) -> i64 {
        self.beat.get()
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing into a string does not fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_api::GroupVersionKind;

    #[test]
    fn what_is_told_is_counted_with_help() {
        let metrics = Metrics::new();
        let driver = |what| Told::Driver { what };
        let begins =
            |version: &str| Told::RunBegins { version: version.to_owned(), continued: false, back: false };
        for told in [
            Told::Leads,
            driver(Driven::Reconciled { reconciler: "notebooks", wants: 2 }),
            driver(Driven::Wrote { write: "a".to_owned() }),
            driver(Driven::Wrote { write: "b".to_owned() }),
            driver(Driven::Failed { write: "a".to_owned(), why: "x".to_owned(), again_in_seconds: 1 }),
            driver(Driven::Postponed { writes: 7 }),
            driver(Driven::WatchBroken {
                watched: GroupVersionKind::new("", "v1", "Pod"),
                why: "x".to_owned(),
            }),
            begins("2026.1"),
            begins("2026.2"),
        ] {
            metrics.count(&told);
        }
        let text = metrics.text();
        for line in [
            "# HELP scantling_writes Writes that reconcilers made.",
            "scantling_writes_total 2",
            "scantling_write_failures_total 1",
            "scantling_postponed_writes_total 7",
            "scantling_watch_restarts_total{kind=\"Pod\"} 1",
            "scantling_reconciles_total{reconciler=\"notebooks\"} 1",
            "scantling_wanted_writes{reconciler=\"notebooks\"} 2",
            "scantling_leading 1",
            "scantling_run_stage{version=\"2026.2\",stage=\"begin\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(!text.contains("2026.1"), "only the present run has a stage");
        let ends = Told::RunEnds {
            version: "2026.2".to_owned(),
            brought: true,
            how: String::new(),
            again_in_seconds: None,
        };
        metrics.count(&ends);
        assert!(!metrics.text().contains("2026.2"));
    }
}
