//! Whether the run may do what it is about to do, asked before it begins.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use scantling_api::object;
use scantling_cluster::{ClusterError, Write};
use scantling_finding::{Finding, codes};
use scantling_plan::{PolicyRule, rights};
use serde_json::{Value, json};

use crate::apply::AT_ONCE;
use crate::report::{MissingRight, Stop};
use crate::session::Session;

/// How often a question is asked when no answer comes. Each attempt has the client's own retries already.
const ATTEMPTS: usize = 4;
/// Missing rights that the refusal names; all are in the report.
const NAMED: usize = 3;

/// One action that access control decides about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Action {
    namespace: Option<String>,
    group: String,
    resource: String,
    name: Option<String>,
    verb: String,
}

impl Action {
    fn review(&self) -> Value {
        let (resource, subresource) =
            self.resource.split_once('/').map_or((self.resource.as_str(), None), |(r, s)| (r, Some(s)));
        let mut attributes = json!({"group": self.group, "resource": resource, "verb": self.verb});
        for (field, value) in [
            ("namespace", self.namespace.as_deref()),
            ("name", self.name.as_deref()),
            ("subresource", subresource),
        ] {
            if let Some(value) = value {
                attributes[field] = json!(value);
            }
        }
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "metadata": {}, "spec": {"resourceAttributes": attributes},
        })
    }

    /// The resource as kubectl writes it.
    fn resource(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

fn actions(rules: &[PolicyRule]) -> BTreeSet<Action> {
    let mut all = BTreeSet::new();
    for rule in rules {
        for (group, resource, verb) in rule.api_groups.iter().flat_map(|group| {
            rule.resources.iter().flat_map(move |r| rule.verbs.iter().map(move |v| (group, r, v)))
        }) {
            let action = |name: Option<&String>| Action {
                namespace: rule.namespace.clone(),
                group: group.clone(),
                resource: resource.clone(),
                name: name.cloned(),
                verb: verb.clone(),
            };
            if rule.resource_names.is_empty() {
                all.insert(action(None));
            }
            all.extend(rule.resource_names.iter().map(|name| action(Some(name))));
        }
    }
    all
}

impl Session<'_> {
    /// Asks the API server about every right that the release needs, and refuses when one is missing. Nothing is written.
    pub(crate) async fn check_rights(&mut self) -> Result<(), Stop> {
        if self.may_do_anything().await? {
            return Ok(());
        }
        let wanted = actions(&rights(self.release));
        let mut missing = self.denied(wanted).await?;
        missing = self.without_those_held(missing).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let who = self.who().await;
        self.report.missing_rights = grants(&missing, &who);
        let named: Vec<&str> =
            self.report.missing_rights.iter().take(NAMED).map(|m| m.what.as_str()).collect();
        let more = match self.report.missing_rights.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why = format!(
            "{} may not do what the release needs: {}{more}; `scantling rbac` prints the roles, the report names a command for each",
            who.name,
            named.join("; ")
        );
        for right in self.report.missing_rights.clone() {
            let place = self.release.place.clone();
            let message = format!("{} may not {}", who.name, right.what);
            self.report
                .findings
                .push(Finding::new(codes::run::RIGHT_MISSING, message, place).with_remedy(right.grant));
        }
        Err(self.refuse(why))
    }

    /// Whether everything is allowed, which spares some hundred questions: administrators bring most releases.
    async fn may_do_anything(&self) -> Result<bool, ClusterError> {
        let any = || "*".to_owned();
        self.ask(&Action { namespace: None, group: any(), resource: any(), name: None, verb: any() }).await
    }

    /// Those of some actions that are not allowed.
    async fn denied(&self, wanted: BTreeSet<Action>) -> Result<BTreeSet<Action>, ClusterError> {
        let answers: Vec<(Action, Result<bool, ClusterError>)> = futures::stream::iter(wanted)
            .map(|action| async move {
                let answer = self.ask(&action).await;
                (action, answer)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut denied = BTreeSet::new();
        for (action, allowed) in answers {
            if !allowed? {
                denied.insert(action);
            }
        }
        Ok(denied)
    }

    /// Whether an action is allowed. A question can be asked again when its answer is lost.
    async fn ask(&self, action: &Action) -> Result<bool, ClusterError> {
        let write = Write::Create { object: action.review() };
        let mut attempts = 1;
        loop {
            match self.env.cluster.write(&self.served, &write).await {
                Ok(review) => {
                    let allowed = review.object.pointer("/status/allowed").and_then(Value::as_bool);
                    return Ok(allowed.unwrap_or_default());
                }
                Err(ClusterError::Status { .. } | ClusterError::Unreachable { .. })
                    if attempts < ATTEMPTS =>
                {
                    attempts += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A role may also be written, and bound, by somebody who has all that it allows.
    async fn without_those_held(&self, missing: BTreeSet<Action>) -> Result<BTreeSet<Action>, ClusterError> {
        let (special, mut left): (BTreeSet<Action>, BTreeSet<Action>) =
            missing.into_iter().partition(|action| matches!(action.verb.as_str(), "escalate" | "bind"));
        for action in special {
            let role = self.release.objects.iter().map(|o| &o.value).find(|value| {
                let kind = if action.resource == "roles" { "Role" } else { "ClusterRole" };
                object::text(value, "/kind") == kind
                    && Some(object::name(value)) == action.name.as_deref()
                    && object::namespace(value) == action.namespace.as_deref()
            });
            let Some(role) = role else {
                left.insert(action);
                continue;
            };
            let texts = |rule: &Value, field: &str| -> Vec<String> {
                let list = rule.get(field).and_then(Value::as_array).into_iter().flatten();
                list.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            };
            let rules = role.get("rules").and_then(Value::as_array).into_iter().flatten();
            let rules: Vec<PolicyRule> = rules
                .map(|rule| PolicyRule {
                    namespace: action.namespace.clone(),
                    api_groups: texts(rule, "apiGroups"),
                    resources: texts(rule, "resources"),
                    resource_names: texts(rule, "resourceNames"),
                    verbs: texts(rule, "verbs"),
                })
                .collect();
            if !self.denied(actions(&rules)).await?.is_empty() {
                left.insert(action);
            }
        }
        Ok(left)
    }

    /// Who the API server says we are.
    async fn who(&self) -> Who {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
        });
        let answer = self.env.cluster.write(&self.served, &Write::Create { object: review }).await;
        let name = answer.ok().map(|w| object::text(&w.object, "/status/userInfo/username").to_owned());
        let name = name.filter(|n| !n.is_empty()).unwrap_or_else(|| "whoever runs it".to_owned());
        let account = name.strip_prefix("system:serviceaccount:").map(|a| format!("--serviceaccount={a}"));
        let subject = account.unwrap_or_else(|| format!("--user={name}"));
        Who { name, subject }
    }
}

struct Who {
    name: String,
    /// As `kubectl create rolebinding` takes it.
    subject: String,
}

/// Missing actions in words, each with the command that grants it: one for each resource.
fn grants(missing: &BTreeSet<Action>, who: &Who) -> Vec<MissingRight> {
    let mut verbs: BTreeMap<(Option<String>, String, Option<String>), Vec<String>> = BTreeMap::new();
    for action in missing {
        let at = (action.namespace.clone(), action.resource(), action.name.clone());
        verbs.entry(at).or_default().push(action.verb.clone());
    }
    verbs
        .into_iter()
        .map(|((namespace, resource, name), verbs)| {
            let verbs = verbs.join(",");
            let role = format!("scantling-{}", resource.replace(['.', '/'], "-"));
            let role = name.as_ref().map_or(role.clone(), |_| format!("{role}-{}", verbs.replace(',', "-")));
            let names = name.as_ref().map(|n| format!(" --resource-name={n}")).unwrap_or_default();
            let of = name.as_ref().map(|n| format!(" {n}")).unwrap_or_default();
            let subject = &who.subject;
            match namespace {
                Some(ns) => MissingRight {
                    what: format!("{verbs} {resource}{of} in namespace {ns}"),
                    grant: format!(
                        "kubectl -n {ns} create role {role} --verb={verbs} --resource={resource}{names} && kubectl -n {ns} create rolebinding {role} --role={role} {subject}"
                    ),
                },
                None => MissingRight {
                    what: format!("{verbs} {resource}{of}"),
                    grant: format!(
                        "kubectl create clusterrole {role} --verb={verbs} --resource={resource}{names} && kubectl create clusterrolebinding {role} --clusterrole={role} {subject}"
                    ),
                },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_command() {
        let action = |namespace: Option<&str>, name: Option<&str>, verb: &str| Action {
            namespace: namespace.map(ToOwned::to_owned),
            group: "apps".into(),
            resource: "deployments".into(),
            name: name.map(ToOwned::to_owned),
            verb: verb.into(),
        };
        let missing = BTreeSet::from([
            action(Some("a"), None, "get"),
            action(Some("a"), None, "patch"),
            action(None, Some("x"), "bind"),
        ]);
        let who = Who { name: "anna".into(), subject: "--user=anna".into() };
        let grants = grants(&missing, &who);
        let lines: Vec<(&str, &str)> = grants.iter().map(|g| (g.what.as_str(), g.grant.as_str())).collect();
        assert_eq!(
            lines,
            [
                (
                    "bind deployments.apps x",
                    "kubectl create clusterrole scantling-deployments-apps-bind --verb=bind --resource=deployments.apps --resource-name=x && kubectl create clusterrolebinding scantling-deployments-apps-bind --clusterrole=scantling-deployments-apps-bind --user=anna"
                ),
                (
                    "get,patch deployments.apps in namespace a",
                    "kubectl -n a create role scantling-deployments-apps --verb=get,patch --resource=deployments.apps && kubectl -n a create rolebinding scantling-deployments-apps --role=scantling-deployments-apps --user=anna"
                ),
            ]
        );
    }
}
