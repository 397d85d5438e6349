//! What is in the way of a release: somebody else's definitions, and what is about to go.

use std::collections::BTreeSet;

use scantling_api::object;
use scantling_finding::{Finding, Place, codes};
use scantling_merge::field_owners;
use scantling_plan::{Outcome, Step, is_applied};
use serde_json::Value;

use crate::report::Stop;
use crate::session::Session;
use crate::state::SYSTEM_NAMESPACE;

/// Labels and annotations by which tools say that an object is theirs, with the words for them.
const OWNERS: [(&str, &str); 4] = [
    ("meta.helm.sh/release-name", "the Helm release"),
    ("app.kubernetes.io/managed-by", "the manager"),
    ("olm.owner", "the operator"),
    ("app.kubernetes.io/part-of", "the application"),
];

impl Session<'_> {
    /// Refuses when something is in the way, before anything is written. Each such object ends in a conflict with its
    /// cause.
    pub(crate) fn refuse_what_is_in_the_way(&mut self, steps: &mut [Step]) -> Result<(), Stop> {
        let going: Vec<String> = self
            .namespaces
            .iter()
            .filter(|(name, namespace)| {
                let needed = name.as_str() == SYSTEM_NAMESPACE
                    || steps.iter().any(|s| {
                        s.key.namespace.as_ref() == Some(*name)
                            || s.key.kind == "Namespace" && s.key.name == **name
                    });
                needed && is_going(namespace)
            })
            .map(|(name, namespace)| {
                format!("namespace {name} is being deleted ({}); wait until it is gone", held_by(namespace))
            })
            .collect();
        if let Some(first) = going.first().cloned() {
            for why in &going {
                self.in_the_way(None, why);
            }
            return Err(self.refuse(first));
        }
        let mut first = None;
        let brought = |s: &&mut Step| {
            s.key.kind == "CustomResourceDefinition" && (s.writes() || s.outcome == Outcome::Conflict)
        };
        for step in steps.iter_mut().filter(brought) {
            let Some(live) = self.live.get(&step.key) else { continue };
            let why = if is_going(live) {
                format!("it is being deleted ({}); wait until it is gone", held_by(live))
            } else if self.previous.inventory.contains_key(&step.key)
                || self.previous.objects.contains_key(&step.key)
                || is_applied(live)
                || step.outcome == Outcome::Pruned
                || !differs(step)
            {
                continue;
            } else {
                format!(
                    "it belongs to {}, and differs from what the release declares ({}): two that write one definition undo each other; remove the other installation, or leave out what needs the kind",
                    owner(live),
                    step.cause
                )
            };
            step.outcome = Outcome::Conflict;
            step.cause.clone_from(&why);
            first.get_or_insert_with(|| format!("{}: {why}", step.key));
        }
        let Some(first) = first else { return Ok(()) };
        for step in steps.iter().filter(|s| s.outcome == Outcome::Conflict) {
            self.in_the_way(Some(step), &step.cause);
            self.ended(step, Outcome::Conflict, step.cause.clone());
        }
        Err(self.refuse(first))
    }

    fn in_the_way(&mut self, step: Option<&Step>, why: &str) {
        let place = match step {
            Some(step) => Place { object: Some(step.key.to_string()), ..Place::default() },
            None => self.release.place.clone(),
        };
        let message = match step {
            Some(step) => format!("{} is in the way", step.key),
            None => why.to_owned(),
        };
        self.report
            .findings
            .push(Finding::new(codes::run::NOT_ADOPTABLE, message, place).with_cause(why.to_owned()));
    }
}

/// Whether what the kind is would change.
fn differs(step: &Step) -> bool {
    let changed = step.changes.iter().map(|c| &c.field);
    let stopped = step.conflicts.iter().map(|c| &c.field);
    changed.chain(stopped).chain(&step.immutable).any(|field| field.starts_with(".spec"))
}

fn is_going(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
        || object::text(object, "/status/phase") == "Terminating"
}

/// What holds an object that is being deleted.
fn held_by(object: &Value) -> String {
    let finalizers = ["/metadata/finalizers", "/spec/finalizers"]
        .into_iter()
        .filter_map(|pointer| object.pointer(pointer)?.as_array())
        .flatten()
        .filter_map(Value::as_str);
    let finalizers: Vec<&str> = finalizers.collect();
    if finalizers.is_empty() {
        "nothing holds it".to_owned()
    } else {
        format!("held by {}", finalizers.join(", "))
    }
}

/// Whose an object is, as far as it says so.
fn owner(object: &Value) -> String {
    for (name, words) in OWNERS {
        if let Some(value) = object::annotation(object, name).or_else(|| object::label(object, name)) {
            return format!("{words} {value}");
        }
    }
    let managers: BTreeSet<String> = field_owners(object)
        .into_iter()
        .filter(|o| o.subresource.is_none() && o.manager != "kube-apiserver")
        .map(|o| o.manager)
        .collect();
    let managers: Vec<String> = managers.into_iter().collect();
    if managers.is_empty() { "somebody".to_owned() } else { managers.join(", ") }
}
