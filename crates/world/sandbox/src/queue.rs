//! The queue of work to come, ordered by time, then class, then order of arrival.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::ObjectKey;

use crate::time::Time;

/// Who works. The order is the class order at one instant: nodes first (what happened in a pod is known
/// before anyone decides on it), then what makes pods, then what decides about groups of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    /// The downloads of one node; keyed by the Node.
    Puller,
    /// One pod on its node.
    Kubelet,
    /// One node's own object: condition and list of images.
    NodeStatus,
    /// Taints and evictions of nodes that do not answer.
    NodeLifecycle,
    /// Namespaces' default objects.
    ServiceAccount,
    /// Image streams: import of tags.
    ImageStream,
    /// Builds that run.
    Build,
    /// Build configurations: triggers.
    BuildConfig,
    /// Claims of volumes.
    Volume,
    /// Jobs.
    Job,
    /// Daemon sets.
    DaemonSet,
    /// Stateful sets.
    StatefulSet,
    /// Replica sets.
    ReplicaSet,
    /// Deployments.
    Deployment,
    /// Pods without a node.
    Scheduler,
    /// Disruption budgets.
    Disruption,
    /// Addresses behind services.
    Endpoints,
    /// Hosts of routes.
    Route,
    /// Objects whose owner is gone.
    Collector,
    /// Namespaces that are being deleted.
    Namespace,
}

/// One piece of work: a controller looks at one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Work {
    pub(crate) controller: Controller,
    pub(crate) key: ObjectKey,
}

/// Work in order of time. Every reconcile is level-triggered and arms its own next timer; therefore one
/// pending entry not later than the wanted time is enough.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: BTreeMap<(Time, Controller, u64), ObjectKey>,
    pending: BTreeMap<Work, BTreeSet<Time>>,
    sequence: u64,
}

impl Queue {
    /// Adds work at `at`, unless the same work is already due at that time or before.
    pub(crate) fn add(&mut self, at: Time, work: Work) {
        let times = self.pending.entry(work.clone()).or_default();
        if times.first().is_some_and(|first| *first <= at) {
            return;
        }
        times.insert(at);
        self.sequence += 1;
        self.entries.insert((at, work.controller, self.sequence), work.key);
    }

    /// The time of the next work.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.entries.first_key_value().map(|((time, _, _), _)| *time)
    }

    /// Takes the next work that is due at `until` or before.
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, Work)> {
        if self.next_time()? > until {
            return None;
        }
        let ((time, controller, _), key) = self.entries.pop_first()?;
        let work = Work { controller, key };
        if let Some(times) = self.pending.get_mut(&work) {
            times.remove(&time);
            if times.is_empty() {
                self.pending.remove(&work);
            }
        }
        Some((time, work))
    }

    /// How many pieces of work wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(controller: Controller, name: &str) -> Work {
        Work {
            controller,
            key: ObjectKey { group: String::new(), kind: "Pod".into(), namespace: None, name: name.into() },
        }
    }

    #[test]
    fn order_is_time_then_class_then_arrival() {
        let mut queue = Queue::default();
        queue.add(Time::from_millis(5), work(Controller::Namespace, "a"));
        queue.add(Time::from_millis(5), work(Controller::Kubelet, "c"));
        queue.add(Time::from_millis(5), work(Controller::Kubelet, "b"));
        queue.add(Time::from_millis(1), work(Controller::Namespace, "d"));
        let mut names = Vec::new();
        while let Some((_, work)) = queue.pop(Time::from_millis(5)) {
            names.push(work.key.name);
        }
        assert_eq!(names, ["d", "c", "b", "a"]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn an_earlier_entry_covers_a_later_one_but_not_the_other_way_round() {
        let mut queue = Queue::default();
        queue.add(Time::from_millis(10), work(Controller::Kubelet, "a"));
        queue.add(Time::from_millis(20), work(Controller::Kubelet, "a"));
        assert_eq!(queue.len(), 1);
        queue.add(Time::from_millis(5), work(Controller::Kubelet, "a"));
        assert_eq!(queue.len(), 2);
        assert!(queue.pop(Time::from_millis(4)).is_none());
        assert_eq!(queue.pop(Time::from_millis(9)).map(|(time, _)| time), Some(Time::from_millis(5)));
        assert!(queue.pop(Time::from_millis(9)).is_none());
    }
}
