//! Stage 7: what runs, held against what the release says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_api::{ObjectKey, object};
use scantling_finding::{Finding, Place, Severity, codes};
use scantling_image::{Digest, Reference, Sameness};
use scantling_observed::{Pod, PodContainer, View};
use serde_json::Value;

use crate::event::{Stage, What};
use crate::report::{Stop, Verified};
use crate::session::{Session, slashed};
use crate::wait::Wait;

/// Between two looks at pods that have not started.
const PAUSE: Duration = Duration::from_secs(2);

/// What the containers of one workload run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    same: usize,
    different: usize,
    unknown: usize,
    not_started: usize,
    pods: usize,
}

impl Session<'_> {
    /// Compares the image IDs of the containers of the release's Deployments, `StatefulSets` and `DaemonSets` with the
    /// release, and the templates of its Jobs and `CronJobs`. A container that runs another image, one of which it cannot
    /// be said, one that does not start, and a workload without the pods that it wants stop the run.
    pub(crate) async fn verify(&mut self) -> Result<(), Stop> {
        self.stage = Stage::Verify;
        let mut wrong = Vec::new();
        let kinds = ["Deployment", "StatefulSet", "DaemonSet"];
        let workloads: Vec<Value> = kinds.iter().flat_map(|kind| self.desired_of("apps", kind)).collect();
        // As long as nothing was changed nothing starts, and one look at a namespace is enough for all its workloads.
        let mut seen: BTreeMap<Option<String>, Vec<Value>> = BTreeMap::new();
        if self.journal_written.is_none() {
            let namespaces: BTreeSet<Option<String>> =
                workloads.iter().map(|w| object::namespace(w).map(ToOwned::to_owned)).collect();
            for namespace in namespaces {
                let pods = self.list("", "Pod", namespace.as_deref()).await?;
                seen.insert(namespace, pods);
            }
        }
        for workload in &workloads {
            let seen = seen.get(&object::namespace(workload).map(ToOwned::to_owned));
            wrong.extend(self.verify_workload(workload, seen).await?);
        }
        for kind in ["Job", "CronJob"] {
            for workload in self.desired_of("batch", kind) {
                wrong.extend(self.verify_template(&workload).await?);
            }
        }
        self.verify_predictors().await?;
        match wrong.first() {
            None => Ok(()),
            Some(first) => Err(Stop::Halt(format!(
                "what runs is not what the release says, or cannot be told, for {} of its workloads; {first}",
                wrong.len()
            ))),
        }
    }

    /// What is wrong with a workload, if something is.
    async fn verify_workload(
        &mut self,
        workload: &Value,
        seen: Option<&Vec<Value>>,
    ) -> Result<Option<String>, Stop> {
        let Ok(key) = object::key(workload) else { return Ok(None) };
        let Some(resource) = self.served.by_kind("", "Pod").cloned() else { return Ok(None) };
        let live = self.current(&key).await?;
        let selects =
            live.as_ref().and_then(|live| live.pointer("/spec/selector")).cloned().unwrap_or_default();
        let Some(selector) = selector(&selects) else {
            return Ok(Some(self.undecided(&key, "its selector cannot be read")));
        };
        let expects = live.as_ref().is_some_and(wants_pods);
        let wanted = images(workload);
        let mut wait = Wait::new(format!("the containers of {key}"), self.options.waits.rollout, PAUSE);
        let mut seen = seen;
        loop {
            let pods = match seen.take() {
                Some(seen) => seen.iter().filter(|pod| is_selected(&selects, pod)).cloned().collect(),
                None => self.env.cluster.list(&resource, key.namespace.as_deref(), Some(&selector)).await?,
            };
            let pods: Vec<&Value> = pods.iter().filter(|pod| is_current(pod)).collect();
            let mut answers = Vec::new();
            let mut tally = Tally { pods: pods.len(), ..Tally::default() };
            for pod in pods {
                for container in Pod::of(pod).containers() {
                    // Containers that the template does not have were put in by others (a mesh, a proxy).
                    let Some(wanted) = wanted.get(container.name) else { continue };
                    let answer = self.hold_against(container, wanted).await;
                    *match answer {
                        Some(Sameness::Same) => &mut tally.same,
                        Some(Sameness::Different) => &mut tally.different,
                        Some(Sameness::Unknown) => &mut tally.unknown,
                        None => &mut tally.not_started,
                    } += 1;
                    answers.push((pod, container, wanted, answer));
                }
            }
            let missing = expects && tally.pods == 0;
            if (tally.not_started > 0 || missing) && !wait.is_over() {
                let until = if missing { "it has no pods" } else { "some have not started" };
                self.pause(&mut wait, until.to_owned()).await;
                continue;
            }
            for (pod, container, wanted, answer) in answers {
                self.note(pod, container, wanted, answer);
            }
            self.tell(What::Verified {
                workload: key.to_string(),
                same: tally.same,
                different: tally.different,
            });
            return Ok(match tally {
                _ if missing => Some(self.undecided(&key, "it wants pods and has none")),
                Tally { different: 0, unknown: 0, not_started: 0, .. } => None,
                Tally { different, unknown, not_started, .. } => Some(format!(
                    "{key}: {different} containers run another image than the release says, {unknown} one that is not known, {not_started} have not started"
                )),
            });
        }
    }

    /// The pods of a Job may have gone or not come yet; what they are made from is there.
    async fn verify_template(&mut self, workload: &Value) -> Result<Option<String>, Stop> {
        let Ok(key) = object::key(workload) else { return Ok(None) };
        // A Job may remove itself when it has ended.
        let Some(live) = self.current(&key).await? else { return Ok(None) };
        let found = images(&live);
        for (name, wanted) in images(workload) {
            let found = found.get(&name).map_or("nothing", String::as_str);
            let pinned = Reference::parse(found).is_ok_and(|r| r.is_pinned());
            if found == wanted && pinned {
                continue;
            }
            let place = Place { object: Some(key.to_string()), ..Place::default() };
            let message =
                format!("container {name} of {key} is to run {found}, wanted is {wanted} by digest");
            self.report.findings.push(Finding::new(codes::run::RUNNING_DIFFERS, message.clone(), place));
            return Ok(Some(message));
        }
        Ok(None)
    }

    /// A finding that it cannot be said what a workload runs.
    fn undecided(&mut self, key: &ObjectKey, why: &str) -> String {
        let place = Place { object: Some(key.to_string()), ..Place::default() };
        let message = format!("it cannot be told what {key} runs: {why}");
        let mut finding = Finding::new(codes::run::IDENTITY_UNKNOWN, message.clone(), place);
        finding.severity = Severity::Error;
        self.report.findings.push(finding.with_cause(why.to_owned()));
        message
    }

    /// None as long as the node has not said what it runs.
    pub(crate) async fn hold_against(&self, container: PodContainer<'_>, wanted: &str) -> Option<Sameness> {
        let running = container.image_id()?.ok()?;
        let identity = self.identity(wanted);
        if identity.is_empty() {
            return Some(Sameness::Unknown);
        }
        if identity.contains(running.digest()) {
            return Some(Sameness::Same);
        }
        // A runtime may name an image by another digest of its class: what it names is looked up before it is called
        // different.
        let looked_up = self.look_up(running.reference(), running.digest(), wanted).await;
        Some(looked_up.map_or(Sameness::Unknown, |class| identity.relation(&class)))
    }

    async fn look_up(
        &self,
        seen: Option<&Reference>,
        digest: &Digest,
        wanted: &str,
    ) -> Option<scantling_image::ImageIdentity> {
        let elsewhere = Reference::parse(wanted).ok().map(|r| r.with_digest(digest));
        for reference in seen.cloned().into_iter().chain(elsewhere) {
            if let Ok(resolved) = self.registry.resolve(&reference).await {
                return Some(resolved.identity);
            }
        }
        None
    }

    pub(crate) fn note(
        &mut self,
        pod: &Value,
        container: PodContainer<'_>,
        wanted: &str,
        answer: Option<Sameness>,
    ) {
        let running = match container.image_id() {
            Some(Ok(id)) => id.written().to_owned(),
            _ => String::new(),
        };
        let (word, code) = match answer {
            Some(Sameness::Same) => ("same", None),
            Some(Sameness::Different) => ("different", Some(codes::run::RUNNING_DIFFERS)),
            Some(Sameness::Unknown) => ("unknown", Some(codes::run::IDENTITY_UNKNOWN)),
            None => ("not started", Some(codes::run::IDENTITY_UNKNOWN)),
        };
        let name = slashed(pod);
        if let Some(code) = code {
            let place = Place {
                object: Some(format!("Pod {name}")),
                field: Some(format!(".status.containerStatuses[name=\"{}\"].imageID", container.name)),
                ..Place::default()
            };
            let runs =
                if answer.is_none() { "has not started".to_owned() } else { format!("runs {running}") };
            let message = format!("container {} {runs}, wanted is {wanted}", container.name);
            let mut finding = Finding::new(code, message, place);
            // After a rollout it has to be known.
            finding.severity = Severity::Error;
            self.report.findings.push(finding);
        }
        self.report.verified.push(Verified {
            pod: name,
            container: container.name.to_owned(),
            wanted: wanted.to_owned(),
            running,
            answer: word.to_owned(),
        });
    }
}

/// Pods that are on their way out run what they ran before.
pub(crate) fn is_current(pod: &Value) -> bool {
    let view = Pod::of(pod);
    !view.is_being_deleted() && !matches!(view.phase(), "Succeeded" | "Failed")
}

/// The images of a workload's template, by container.
pub(crate) fn images(workload: &Value) -> BTreeMap<String, String> {
    let spec = object::gvk(workload).ok().and_then(|gvk| workload.pointer(object::pod_spec_pointer(&gvk)?));
    let containers = spec.map(object::pod_containers).unwrap_or_default();
    containers.iter().filter_map(|c| Some((c.name().to_owned(), c.image()?.to_owned()))).collect()
}

/// Whether a workload, as it is in the cluster, wants pods at all. A `DaemonSet` wants as many as there are nodes for it.
fn wants_pods(live: &Value) -> bool {
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64);
    match object::text(live, "/kind") {
        "DaemonSet" => number("/status/desiredNumberScheduled").unwrap_or_default() > 0,
        _ => number("/spec/replicas").unwrap_or(1) > 0,
    }
}

/// A label selector in the words of a query; none if it is empty, which would select everything, or not one.
pub(crate) fn selector(selector: &Value) -> Option<String> {
    let mut terms = Vec::new();
    for (key, value) in object::mapping(selector, "/matchLabels").into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str()?));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression.get("key")?.as_str()?;
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.map(Value::as_str).collect::<Option<Vec<_>>>()?.join(",");
        terms.push(match expression.get("operator")?.as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!terms.is_empty()).then(|| terms.join(","))
}

/// Whether a selector, which has been found to be one, selects an object.
pub(crate) fn is_selected(selector: &Value, candidate: &Value) -> bool {
    let by_label = object::mapping(selector, "/matchLabels")
        .into_iter()
        .flatten()
        .all(|(name, value)| object::label(candidate, name) == value.as_str());
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    by_label
        && expressions.into_iter().all(|expression| {
            let label = object::label(candidate, object::text(expression, "/key"));
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let is_one = label.is_some_and(|label| values.into_iter().any(|v| v.as_str() == Some(label)));
            match object::text(expression, "/operator") {
                "In" => is_one,
                "NotIn" => !is_one,
                "Exists" => label.is_some(),
                "DoesNotExist" => label.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_in_the_words_of_a_query() {
        let expression = |e: Value| json!({"matchExpressions": [e]});
        for (given, expected) in [
            (json!({"matchLabels": {"a": "b", "c": "d"}}), Some("a=b,c=d")),
            (expression(json!({"key": "a", "operator": "In", "values": ["b", "c"]})), Some("a in (b,c)")),
            (expression(json!({"key": "a", "operator": "NotIn", "values": ["b"]})), Some("a notin (b)")),
            (expression(json!({"key": "a", "operator": "Exists"})), Some("a")),
            (expression(json!({"key": "a", "operator": "DoesNotExist"})), Some("!a")),
            (
                json!({"matchLabels": {"x": "y"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                Some("x=y,a"),
            ),
            (expression(json!({"key": "a", "operator": "Near"})), None),
            (json!({"matchLabels": {"a": 1}}), None),
            (json!({}), None),
        ] {
            assert_eq!(selector(&given).as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn what_a_selector_selects() {
        let pod = json!({"metadata": {"labels": {"a": "b", "c": "d"}}});
        let expression = |e: Value| json!({"matchExpressions": [e]});
        for (given, expected) in [
            (json!({"matchLabels": {"a": "b"}}), true),
            (json!({"matchLabels": {"a": "b", "x": "y"}}), false),
            (expression(json!({"key": "a", "operator": "In", "values": ["b", "c"]})), true),
            (expression(json!({"key": "x", "operator": "In", "values": ["b"]})), false),
            (expression(json!({"key": "a", "operator": "NotIn", "values": ["b"]})), false),
            (expression(json!({"key": "x", "operator": "NotIn", "values": ["b"]})), true),
            (expression(json!({"key": "c", "operator": "Exists"})), true),
            (expression(json!({"key": "c", "operator": "DoesNotExist"})), false),
        ] {
            assert_eq!(is_selected(&given, &pod), expected, "{given}");
        }
    }

    #[test]
    fn who_wants_pods() {
        for (live, expected) in [
            (json!({"kind": "Deployment", "spec": {}}), true),
            (json!({"kind": "Deployment", "spec": {"replicas": 0}}), false),
            (json!({"kind": "StatefulSet", "spec": {"replicas": 2}}), true),
            (json!({"kind": "DaemonSet", "status": {"desiredNumberScheduled": 0}}), false),
            (json!({"kind": "DaemonSet", "status": {"desiredNumberScheduled": 3}}), true),
        ] {
            assert_eq!(wants_pods(&live), expected, "{live}");
        }
    }
}
