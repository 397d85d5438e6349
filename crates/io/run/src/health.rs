//! Waiting until what was written works, before the next wave builds on it.

use std::time::Duration;

use scantling_api::{ObjectKey, object};
use scantling_finding::{Finding, Place, codes};
use scantling_observed::{Rollout, rollout};
use scantling_release::Wave;
use serde_json::Value;

use crate::event::What;
use crate::report::Stop;
use crate::session::Session;
use crate::wait::Wait;
use crate::why::why_not_ready;

/// Between two looks at an object. Rollouts take seconds to minutes.
const PAUSE: Duration = Duration::from_secs(2);

/// Whether an object is as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    /// It is, in words.
    Healthy(String),
    /// Not yet; what is missing.
    NotYet(String),
    /// It will not become so by waiting.
    Failed(String),
}

impl Session<'_> {
    /// Waits for everything of a wave that can be unhealthy.
    pub(crate) async fn settle_wave(&mut self, wave: Wave) -> Result<(), Stop> {
        let limit = match wave {
            Wave::Definitions | Wave::Namespaces => self.options.waits.definitions,
            _ => self.options.waits.rollout,
        };
        let keys: Vec<ObjectKey> =
            self.desired.iter().filter(|d| d.wave == wave).map(|d| d.key.clone()).filter(judged).collect();
        for key in keys {
            self.settle(&key, limit, health).await?;
        }
        if wave == Wave::Definitions {
            self.served = self.env.cluster.served().await?;
        }
        Ok(())
    }

    /// Waits until an object is healthy.
    pub(crate) async fn settle(
        &mut self,
        key: &ObjectKey,
        limit: Duration,
        judge: fn(&Value) -> Health,
    ) -> Result<(), Stop> {
        let mut wait = Wait::new(key.to_string(), limit, PAUSE);
        let mut object = self.current(key).await?;
        loop {
            let health =
                object.as_ref().map_or_else(|| Health::NotYet("it does not exist".to_owned()), judge);
            match health {
                Health::Healthy(state) => {
                    if wait.has_waited() {
                        self.tell(What::Ready { on: key.to_string(), state });
                    }
                    return Ok(());
                }
                Health::NotYet(missing) if !wait.is_over() => {
                    if let Some(set) = &object {
                        self.replace_stuck_pod(key, set).await?;
                    }
                    let missing = match &object {
                        Some(object) if wait.is_long() => self.with_reason(object, missing).await,
                        _ => missing,
                    };
                    self.pause(&mut wait, missing).await;
                    object = self.read(key).await?;
                }
                Health::NotYet(why) | Health::Failed(why) => {
                    let why = match &object {
                        Some(object) => self.with_reason(object, why).await,
                        None => why,
                    };
                    let place = Place { object: Some(key.to_string()), ..Place::default() };
                    let waited = limit.as_secs();
                    self.report.findings.push(
                        Finding::new(codes::run::NOT_HEALTHY, format!("{key} is not healthy: {why}"), place)
                            .with_cause(format!(
                                "waited up to {waited} seconds; the next wave depends on it"
                            )),
                    );
                    return Err(Stop::Halt(format!("{key} is not healthy: {why}")));
                }
            }
        }
    }
}

impl Session<'_> {
    /// What is missing of an object, with what its pods say.
    async fn with_reason(&self, object: &Value, missing: String) -> String {
        match why_not_ready(&self.env.cluster, &self.served, object).await {
            Some(why) => format!("{missing}; {why}"),
            None => missing,
        }
    }
}

/// Kinds whose health says something about whether one can go on.
pub(crate) fn judged(key: &ObjectKey) -> bool {
    matches!(
        (key.group.as_str(), key.kind.as_str()),
        ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("", "Namespace")
            | ("apps", "Deployment" | "StatefulSet" | "DaemonSet")
    )
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|c| c.get("type").and_then(Value::as_str) == Some(kind))
}

fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).and_then(|c| c.get("status")).and_then(Value::as_str) == Some("True")
}

/// The health of an object.
pub(crate) fn health(object: &Value) -> Health {
    match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "CustomResourceDefinition" => {
            if holds(object, "Established") {
                Health::Healthy("established".to_owned())
            } else if let Some(refused) =
                condition(object, "NamesAccepted").filter(|_| !holds(object, "NamesAccepted"))
            {
                Health::NotYet(format!("names not accepted: {}", object::text(refused, "/message")))
            } else {
                Health::NotYet("not established".to_owned())
            }
        }
        "Namespace" => match object::text(object, "/status/phase") {
            "Terminating" => {
                Health::NotYet("an earlier namespace of this name is still being deleted".to_owned())
            }
            _ => Health::Healthy("active".to_owned()),
        },
        _ => match rollout(object) {
            Rollout::Complete => Health::Healthy("rolled out".to_owned()),
            Rollout::NotApplicable(why) => Health::Healthy(why),
            Rollout::Progressing(missing) => Health::NotYet(missing),
            Rollout::Failed(why) => Health::Failed(why),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn word(object: &Value) -> &'static str {
        match health(object) {
            Health::Healthy(_) => "healthy",
            Health::NotYet(_) => "not yet",
            Health::Failed(_) => "failed",
        }
    }

    #[test]
    fn health_follows_the_controllers_words() {
        let definition = |conditions: Value| json!({"kind": "CustomResourceDefinition", "status": {"conditions": conditions}});
        let cases = [
            (json!({"kind": "CustomResourceDefinition"}), "not yet"),
            (
                definition(json!([{"type": "NamesAccepted", "status": "False", "message": "taken"}])),
                "not yet",
            ),
            (definition(json!([{"type": "Established", "status": "True"}])), "healthy"),
            (json!({"kind": "Namespace", "status": {"phase": "Terminating"}}), "not yet"),
            (json!({"kind": "Namespace", "status": {"phase": "Active"}}), "healthy"),
            (json!({"kind": "Deployment", "metadata": {"generation": 1}, "status": {}}), "not yet"),
        ];
        for (object, expected) in cases {
            assert_eq!(word(&object), expected, "{object}");
        }
    }
}
