//! Jobs: pods until so many have ended well, or too many have not.

use scantling_api::ObjectKey;
use serde_json::{Value, json};

use crate::api::Propagation;
use crate::controllers::pods;
use crate::queue::Controller;
use crate::value::{deleting, flag, int, list, pod_ready, set, set_condition, text};
use crate::world::World;

const ACTOR: &str = "job-controller";
const DEFAULT_BACKOFF_LIMIT: i64 = 6;
/// First wait before a failed pod is replaced, in seconds; doubles each time.
const RETRY_SECONDS: i64 = 10;
/// Longest wait.
const RETRY_MOST_SECONDS: i64 = 600;

/// Looks at one job.
pub(crate) fn reconcile(world: &mut World, key: &ObjectKey) {
    let Some(job) = world.object(key).cloned() else { return };
    if deleting(&job) {
        return;
    }
    if finished(&job) {
        expire(world, key, &job);
        return;
    }
    let completions = int(&job, "/spec/completions");
    let parallelism = int(&job, "/spec/parallelism").unwrap_or(1).max(0);
    let owned = pods::owned(world, &job, ("", "Pod"));
    let count = |phase: &str| {
        let found = owned.iter().filter(|(_, pod)| text(pod, "/status/phase") == Some(phase)).count();
        i64::try_from(found).unwrap_or(i64::MAX)
    };
    let (succeeded, failed) = (count("Succeeded"), count("Failed"));
    let restarts: i64 = owned
        .iter()
        .filter(|(_, pod)| pods::is_active(pod))
        .flat_map(|(_, pod)| list(pod, "/status/containerStatuses"))
        .map(|status| int(status, "/restartCount").unwrap_or(0))
        .sum();
    let active: Vec<&(ObjectKey, Value)> = owned.iter().filter(|(_, pod)| pods::is_active(pod)).collect();
    let limit = int(&job, "/spec/backoffLimit").unwrap_or(DEFAULT_BACKOFF_LIMIT);
    let started = text(&job, "/status/startTime").map(ToOwned::to_owned);
    let age = started
        .as_deref()
        .and_then(|text| text.parse::<jiff::Timestamp>().ok())
        .map_or(0, |start| world.timestamp().as_second() - start.as_second());
    let deadline = int(&job, "/spec/activeDeadlineSeconds");
    let wanted = completions.unwrap_or(1);
    let verdict = if deadline.is_some_and(|deadline| started.is_some() && age >= deadline) {
        Some(("Failed", "DeadlineExceeded", "Job was active longer than specified deadline"))
    } else if failed + restarts > limit {
        Some(("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"))
    } else if completions.map_or(succeeded > 0 && active.is_empty(), |wanted| succeeded >= wanted) {
        Some(("Complete", "CompletionsReached", "Reached expected number of succeeded pods"))
    } else {
        None
    };
    let mut running = i64::try_from(active.len()).unwrap_or(i64::MAX);
    if verdict.is_some() || flag(&job, "/spec/suspend") {
        for (pod_key, _) in &active {
            pods::delete(world, ACTOR, &job, pod_key);
        }
        running = 0;
    } else {
        let wait = retry_wait(world, failed, &owned);
        if wait > 0 {
            let at = world.now().plus_millis(wait);
            world.wake(Controller::Job, key, at);
        } else {
            let missing = (wanted - succeeded - running).max(0).min(parallelism - running);
            for _ in 0..missing.max(0) {
                let mut pod = pods::from_template(
                    &job,
                    &[("batch.kubernetes.io/job-name", &key.name), ("job-name", &key.name)],
                );
                set(&mut pod, &["metadata"], "generateName", json!(format!("{}-", key.name)));
                if pods::create(world, ACTOR, &job, pod).is_err() {
                    let at = world.now().plus_millis(10_000);
                    world.wake(Controller::Job, key, at);
                    break;
                }
                running += 1;
            }
        }
        if let Some(deadline) = deadline {
            let left = u64::try_from((deadline - age).max(1)).unwrap_or(1);
            let at = world.now().plus_millis(left.saturating_mul(1000));
            world.wake(Controller::Job, key, at);
        }
    }
    let ready = active.iter().filter(|(_, pod)| pod_ready(pod)).count();
    let stamp = world.stamp_now();
    world.change_status(ACTOR, key, |object| {
        set(object, &["status"], "startTime", json!(started.unwrap_or_else(|| stamp.clone())));
        let ready = if verdict.is_some() { 0 } else { ready };
        for (field, value) in [("active", running), ("succeeded", succeeded), ("failed", failed)] {
            set(object, &["status"], field, if value == 0 { Value::Null } else { json!(value) });
        }
        set(object, &["status"], "ready", json!(ready));
        if let Some((kind, reason, message)) = verdict {
            let mut conditions = list(object, "/status/conditions").to_vec();
            let criteria = if kind == "Complete" { "SuccessCriteriaMet" } else { "FailureTarget" };
            set_condition(&mut conditions, criteria, "True", reason, message, &stamp);
            set_condition(&mut conditions, kind, "True", reason, message, &stamp);
            set(object, &["status"], "conditions", Value::Array(conditions));
            if kind == "Complete" {
                set(object, &["status"], "completionTime", json!(stamp));
            }
        }
    });
    match verdict {
        Some(("Complete", ..)) => world.event(ACTOR, &job, "Normal", "Completed", "Job completed"),
        Some((_, reason, message)) => world.event(ACTOR, &job, "Warning", reason, message),
        None => {}
    }
}

fn finished(job: &Value) -> bool {
    list(job, "/status/conditions").iter().any(|condition| {
        matches!(text(condition, "/type"), Some("Complete" | "Failed"))
            && text(condition, "/status") == Some("True")
    })
}

/// Milliseconds until a failed pod may be replaced.
fn retry_wait(world: &World, failed: i64, owned: &[(ObjectKey, Value)]) -> u64 {
    if failed == 0 {
        return 0;
    }
    let shift = u32::try_from(failed - 1).unwrap_or(u32::MAX).min(10);
    let delay = (RETRY_SECONDS << shift).min(RETRY_MOST_SECONDS);
    let last = owned
        .iter()
        .filter(|(_, pod)| text(pod, "/status/phase") == Some("Failed"))
        .flat_map(|(_, pod)| list(pod, "/status/containerStatuses"))
        .filter_map(|status| text(status, "/state/terminated/finishedAt"))
        .filter_map(|text| text.parse::<jiff::Timestamp>().ok())
        .max();
    let Some(last) = last else { return 0 };
    let left = last.as_second() + delay - world.timestamp().as_second();
    u64::try_from(left).unwrap_or(0).saturating_mul(1000)
}

/// A finished job goes when its time to live is over.
fn expire(world: &mut World, key: &ObjectKey, job: &Value) {
    let Some(ttl) = int(job, "/spec/ttlSecondsAfterFinished") else { return };
    let since = list(job, "/status/conditions")
        .iter()
        .filter(|condition| matches!(text(condition, "/type"), Some("Complete" | "Failed")))
        .filter_map(|condition| text(condition, "/lastTransitionTime"))
        .filter_map(|text| text.parse::<jiff::Timestamp>().ok())
        .max();
    let Some(since) = since else { return };
    let left = since.as_second() + ttl - world.timestamp().as_second();
    if left <= 0 {
        world.delete("ttl-after-finished-controller", key, Some(Propagation::Foreground));
    } else {
        let at = world.now().plus_millis(u64::try_from(left).unwrap_or(1).saturating_mul(1000));
        world.wake(Controller::Job, key, at);
    }
}
