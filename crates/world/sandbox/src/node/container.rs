//! What a node knows of a pod and its containers.

use std::collections::BTreeMap;

use scantling_image::Digest;

use crate::time::Time;

/// First wait before another pull, in milliseconds.
const PULL_DELAY_FIRST: u64 = 10_000;
/// Longest wait before another pull.
const PULL_DELAY_MOST: u64 = 300_000;
/// First wait before a container that ended is started for the third time.
const CRASH_DELAY_FIRST: u64 = 10_000;
/// Longest wait before a container is started again.
const CRASH_DELAY_MOST: u64 = 300_000;
/// A container that ran so long is started again without wait.
const CRASH_FORGIVEN: u64 = 600_000;

/// A pod on its node.
#[derive(Debug, Clone)]
pub(crate) struct PodRuntime {
    pub(crate) uid: String,
    /// When the kubelet first saw it.
    pub(crate) seen: Time,
    /// When its network is ready.
    pub(crate) network_at: Time,
    /// Its address; given when the network is ready.
    pub(crate) address: Option<String>,
    /// Containers of all kinds, by name.
    pub(crate) containers: BTreeMap<String, Container>,
    /// Pulls that failed, by written reference.
    pub(crate) pull_waits: BTreeMap<String, PullWait>,
    /// When it was told to stop, and when what still runs is killed.
    pub(crate) stopping: Option<Time>,
    /// Whether a message says which volume is missing; it is said once.
    pub(crate) missing: Option<String>,
}

impl PodRuntime {
    pub(crate) fn new(uid: &str, seen: Time, network_at: Time) -> Self {
        Self {
            uid: uid.to_owned(),
            seen,
            network_at,
            address: None,
            containers: BTreeMap::new(),
            pull_waits: BTreeMap::new(),
            stopping: None,
            missing: None,
        }
    }
}

/// Waiting before the next pull of one reference in one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullWait {
    pub(crate) until: Time,
    delay: u64,
    /// The last error, with its reason in front.
    pub(crate) error: String,
}

impl PullWait {
    /// The wait after a failure: ten seconds, then twice the one before, five minutes at most.
    pub(crate) fn after(before: Option<&Self>, now: Time, error: String) -> Self {
        let delay = match before {
            // The kubelet forgets a wait that was over for longer than twice the longest.
            Some(before) if now.millis_since(before.until) <= 2 * PULL_DELAY_MOST => {
                (before.delay * 2).min(PULL_DELAY_MOST)
            }
            _ => PULL_DELAY_FIRST,
        };
        Self { until: now.plus_millis(delay), delay, error }
    }
}

/// Why a container does not run yet, or no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Waiting { reason: &'static str, message: String },
    Running { since: Time, ends: Option<(Time, i32)>, ready: Option<Time> },
    Ended(Ended),
}

/// A container that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
    pub(crate) since: Time,
    pub(crate) at: Time,
    pub(crate) id: String,
}

/// One container of a pod.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    pub(crate) state: State,
    pub(crate) last: Option<Ended>,
    pub(crate) restarts: u32,
    /// The status' `image`, as the runtime said at the last start.
    pub(crate) image: String,
    /// The status' `imageID`.
    pub(crate) image_id: String,
    pub(crate) id: String,
    /// The image it was made from.
    pub(crate) config: Option<Digest>,
    crash_delay: u64,
}

impl Container {
    pub(crate) fn new(image: &str, reason: &'static str) -> Self {
        Self {
            state: State::Waiting { reason, message: String::new() },
            last: None,
            restarts: 0,
            image: image.to_owned(),
            image_id: String::new(),
            id: String::new(),
            config: None,
            crash_delay: 0,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    pub(crate) fn has_succeeded(&self) -> bool {
        matches!(&self.state, State::Ended(ended) if ended.code == 0)
    }

    pub(crate) fn is_ready(&self, now: Time) -> bool {
        matches!(&self.state, State::Running { ready: Some(ready), .. } if *ready <= now)
    }

    /// How it ended last, in this state or the one before.
    pub(crate) fn last_end(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            _ => self.last.as_ref(),
        }
    }

    /// Lets the process of a running container end at a time. Says whether it runs.
    pub(crate) fn end_soon(&mut self, at: Time, code: i32) -> bool {
        match &mut self.state {
            State::Running { ends, .. } => {
                *ends = Some((at, code));
                true
            }
            _ => false,
        }
    }

    /// Lets it end.
    pub(crate) fn end(&mut self, at: Time, code: i32) {
        if let State::Running { since, .. } = self.state {
            let reason = if code == 0 { "Completed" } else { "Error" };
            self.state = State::Ended(Ended { code, reason, since, at, id: self.id.clone() });
        }
    }

    /// When it may start again after it ended. The first restart comes at once, the next after ten
    /// seconds, then twice the wait before, five minutes at most.
    pub(crate) fn restart_at(&self) -> Time {
        match self.last_end() {
            Some(ended) => ended.at.plus_millis(self.crash_delay),
            None => Time::ZERO,
        }
    }

    /// Seconds of the wait in force.
    pub(crate) fn crash_delay_text(&self) -> String {
        super::status::go_duration(self.crash_delay)
    }

    /// Takes note that it is started again now.
    pub(crate) fn restarted(&mut self) {
        let Some(ended) = self.last_end().cloned() else { return };
        self.restarts += 1;
        self.crash_delay = match self.crash_delay {
            _ if ended.at.millis_since(ended.since) >= CRASH_FORGIVEN => CRASH_DELAY_FIRST,
            0 => CRASH_DELAY_FIRST,
            delay => (delay * 2).min(CRASH_DELAY_MOST),
        };
        self.last = Some(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_waits_double_up_to_five_minutes() {
        let mut now = Time::ZERO;
        let mut wait: Option<PullWait> = None;
        let mut delays = Vec::new();
        for _ in 0..7 {
            let next = PullWait::after(wait.as_ref(), now, String::new());
            delays.push(next.until.millis_since(now) / 1000);
            now = next.until;
            wait = Some(next);
        }
        assert_eq!(delays, [10, 20, 40, 80, 160, 300, 300]);
        let much_later = now.plus_millis(3 * PULL_DELAY_MOST);
        let fresh = PullWait::after(wait.as_ref(), much_later, String::new());
        assert_eq!(fresh.until.millis_since(much_later), PULL_DELAY_FIRST);
    }

    #[test]
    fn restarts_wait_longer_and_longer() {
        let mut container = Container::new("a", "ContainerCreating");
        let mut now = Time::ZERO;
        let mut waits = Vec::new();
        for _ in 0..8 {
            container.state = State::Running { since: now, ends: None, ready: Some(now) };
            now = now.plus_millis(1);
            container.end(now, 1);
            waits.push(container.restart_at().millis_since(now) / 1000);
            now = container.restart_at();
            container.restarted();
        }
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(container.restarts, 8);
    }
}
