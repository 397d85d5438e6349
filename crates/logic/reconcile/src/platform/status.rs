//! The status of the platform.

use scantling_api::ObjectKey;
use scantling_observed::{Observed, Platform, PlatformCondition, PlatformStatus, Rollout, rollout};

use super::evidence::Running;
use super::facts::{Evidence, Outcome, PlatformFacts, Promise};
use super::next::{Next, next};
use crate::context::Context;

/// The longest message of a condition: the server refuses more than 32,768 bytes, and people read no more than this.
const LONGEST: usize = 1024;

/// What a condition says.
struct Said {
    status: Option<bool>,
    reason: &'static str,
    message: String,
}

impl Said {
    fn new(status: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status: Some(status), reason, message: message.into() }
    }
}

/// The status as it should be.
pub(super) fn status(
    platform: Platform<'_>,
    observed: &Observed,
    facts: &PlatformFacts,
    context: &Context<'_>,
) -> PlatformStatus {
    let before = platform.status();
    let next = next(Some(platform), facts, "");
    let upgrading = upgrading(facts);
    let degraded = degraded(observed, facts, &next);
    let ready = ready(platform, facts, &upgrading, &degraded);
    let mut conditions = vec![("Ready", ready), ("Upgrading", upgrading), ("Degraded", degraded)];
    let running = Running::of(observed, context);
    let promises: Vec<(String, Said)> = Promise::ALL
        .into_iter()
        .map(|promise| {
            let then = facts.last.as_ref().and_then(|last| last.promises.get(&promise));
            let now = match promise {
                Promise::Pinned => running.pinned(),
                Promise::Truthful => running.truthful(),
                _ => None,
            };
            // What only a run looks at may be otherwise by now.
            let then = then.map(|then| Evidence {
                text: match facts.last.as_ref().map(|last| &last.ended).filter(|ended| !ended.is_empty()) {
                    Some(ended) => format!("as of the last run, which ended {ended}: {}", then.text),
                    None => then.text.clone(),
                },
                ..then.clone()
            });
            (promise.to_string(), kept(then.as_ref(), now.as_ref()))
        })
        .collect();
    conditions.extend(promises.iter().map(|(name, said)| {
        (name.as_str(), Said { status: said.status, reason: said.reason, message: said.message.clone() })
    }));
    let generation = platform.generation();
    let conditions = conditions
        .into_iter()
        .map(|(kind, said)| {
            let status = match said.status {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            };
            let live = before.conditions.iter().find(|c| c.kind == kind && c.status == status);
            PlatformCondition {
                kind: kind.to_owned(),
                status: status.to_owned(),
                reason: said.reason.to_owned(),
                message: shortened(said.message),
                last_transition_time: live.map_or(context.now, |c| &c.last_transition_time).to_owned(),
                observed_generation: generation,
            }
        })
        .collect();
    PlatformStatus {
        observed_generation: generation,
        release: facts.installed.clone(),
        run: facts.run.clone(),
        components: facts.components.clone(),
        conditions,
    }
}

fn shortened(mut message: String) -> String {
    if message.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| message.is_char_boundary(*at)).unwrap_or_default();
        message.truncate(end);
        message.push('…');
    }
    message
}

fn kept(then: Option<&Evidence>, now: Option<&Evidence>) -> Said {
    let seen: Vec<&Evidence> = then.into_iter().chain(now).collect();
    let message: Vec<String> = seen.iter().map(|evidence| evidence.text.clone()).collect();
    let answers: Vec<bool> = seen.iter().filter_map(|evidence| evidence.holds).collect();
    if answers.contains(&false) {
        Said::new(false, "Broken", message.join("; "))
    } else if answers.is_empty() {
        let text = if message.is_empty() { "nobody has looked yet".to_owned() } else { message.join("; ") };
        Said { status: None, reason: "NotChecked", message: text }
    } else {
        Said::new(true, "Kept", message.join("; "))
    }
}

fn upgrading(facts: &PlatformFacts) -> Said {
    let Some(run) = &facts.run else {
        return Said::new(false, "NoRun", "no run is under way");
    };
    let way = match &facts.installed {
        Some(installed) if *installed != run.version => format!("{installed} → {}", run.version),
        _ => run.version.clone(),
    };
    let stage = if run.stage.is_empty() { "begun".to_owned() } else { format!("stage {}", run.stage) };
    if run.holder.is_empty() {
        let text = format!("{way}: {stage}; nobody does it at the moment, it will be continued");
        return Said::new(true, "Waiting", text);
    }
    Said::new(true, "Running", format!("{way}: {stage}, done by {}", run.holder))
}

fn degraded(observed: &Observed, facts: &PlatformFacts, next: &Next) -> Said {
    match next {
        Next::Blocked { why } => return Said::new(true, "Blocked", why.clone()),
        Next::WasRolledBack { version } => {
            let why = facts.rolled_back_because.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let text = format!(
                "{version} was rolled back{why}; write another version into spec.release.version, or try this one again with `scantling upgrade`"
            );
            return Said::new(true, "RolledBack", text);
        }
        Next::NotStored { version } if facts.run.is_none() => {
            let text = format!(
                "the files of {version} are not stored in this cluster; `scantling upgrade RELEASE` stores and brings them"
            );
            return Said::new(true, "ReleaseNotStored", text);
        }
        _ => {}
    }
    if let Some(last) = &facts.last {
        let told = match &last.outcome {
            Outcome::Succeeded => None,
            Outcome::Refused { why } => Some((
                "RunRefused",
                format!("{} was refused before anything was written: {why}", last.version),
            )),
            Outcome::Stopped { stage, why } => {
                Some(("RunStopped", format!("{} stopped in stage {stage}: {why}", last.version)))
            }
        };
        if let Some((reason, message)) = told {
            return Said::new(true, reason, message);
        }
    }
    let down: Vec<String> = facts
        .components
        .iter()
        .filter_map(|component| {
            let (namespace, name) = component.name.split_once('/')?;
            let workload = ["Deployment", "StatefulSet", "DaemonSet"]
                .into_iter()
                .find_map(|kind| observed.get(&ObjectKey::namespaced("apps", kind, namespace, name)))?;
            match rollout(workload) {
                Rollout::Complete | Rollout::NotApplicable(_) => None,
                Rollout::Progressing(why) | Rollout::Failed(why) => {
                    Some(format!("{}: {why}", component.name))
                }
            }
        })
        .collect();
    match down.first() {
        Some(first) if facts.run.is_none() => Said::new(
            true,
            "ComponentsUnavailable",
            format!("{} of {} components are not available; {first}", down.len(), facts.components.len()),
        ),
        _ => Said::new(false, "AsItShouldBe", "nothing is known to be wrong"),
    }
}

fn ready(platform: Platform<'_>, facts: &PlatformFacts, upgrading: &Said, degraded: &Said) -> Said {
    let wanted = platform.spec().ok().and_then(|spec| spec.release).map(|release| release.version);
    let wanted = wanted.filter(|version| !version.is_empty());
    if degraded.status == Some(true) {
        return Said::new(false, degraded.reason, degraded.message.clone());
    }
    if upgrading.status == Some(true) {
        return Said::new(false, "Upgrading", upgrading.message.clone());
    }
    match (&facts.installed, &wanted) {
        (Some(installed), Some(wanted)) if installed == wanted => Said::new(
            true,
            "Settled",
            format!("{installed} is installed; {} components", facts.components.len()),
        ),
        (Some(installed), None) => {
            Said::new(true, "Settled", format!("{installed} is installed; the spec asks for no other"))
        }
        (None, None) => Said::new(false, "NoRelease", "no release is installed, and none is asked for"),
        (_, Some(wanted)) => match next(Some(platform), facts, "") {
            Next::Approve { version } => Said::new(
                false,
                "WaitsForApproval",
                format!(
                    "{version} waits for somebody to allow it: kubectl annotate platform platform {}={version}",
                    scantling_observed::APPROVED
                ),
            ),
            _ => Said::new(false, "Due", format!("{wanted} is about to be brought")),
        },
    }
}
