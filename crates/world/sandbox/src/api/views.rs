//! Kinds that are another look at objects of a stored kind: OpenShift's projects are namespaces, the events of
//! `events.k8s.io` are those of the core group, the first version of an autoscaler is the second one with CPU only.
//!
//! `managedFields` name the fields as they are stored, whichever look they were written through.

use scantling_api::{GroupVersionKind, object};
use serde_json::{Map, Value, json};

use super::meta::as_mapping;
use super::{Status, answer};

/// A look at a stored kind.
#[derive(Debug)]
pub(super) struct View {
    shown: (&'static str, &'static str, &'static str),
    stored: (&'static str, &'static str, &'static str),
    /// Names of fields: in the shown object, and in the stored one.
    fields: &'static [(&'static str, &'static str)],
}

const VIEWS: [View; 3] = [
    View { shown: ("project.openshift.io", "v1", "Project"), stored: ("", "v1", "Namespace"), fields: &[] },
    View {
        shown: ("events.k8s.io", "v1", "Event"),
        stored: ("", "v1", "Event"),
        fields: &[
            ("reportingController", "reportingComponent"),
            ("regarding", "involvedObject"),
            ("note", "message"),
            ("deprecatedSource", "source"),
            ("deprecatedFirstTimestamp", "firstTimestamp"),
            ("deprecatedLastTimestamp", "lastTimestamp"),
            ("deprecatedCount", "count"),
        ],
    },
    View {
        shown: ("autoscaling", "v1", "HorizontalPodAutoscaler"),
        stored: ("autoscaling", "v2", "HorizontalPodAutoscaler"),
        fields: &[],
    },
];

/// The view that a kind is, if it is one.
pub(super) fn of(gvk: &GroupVersionKind) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.shown == (gvk.group.as_str(), gvk.version.as_str(), gvk.kind.as_str()))
}

impl View {
    /// The kind that is stored.
    pub(super) fn stored(&self) -> GroupVersionKind {
        let (group, version, kind) = self.stored;
        GroupVersionKind::new(group, version, kind)
    }

    fn autoscaler_spec<'f>(&self, fields: &'f mut Map<String, Value>) -> Option<&'f mut Map<String, Value>> {
        let spec = fields.get_mut("spec").and_then(Value::as_object_mut);
        spec.filter(|_| self.stored.2 == "HorizontalPodAutoscaler")
    }

    /// An object as it is stored.
    pub(super) fn store(&self, mut shown: Value) -> Value {
        let fields = as_mapping(&mut shown);
        rename(fields, self.fields.iter().map(|(shown, stored)| (*shown, *stored)));
        identify(fields, &self.stored());
        if let Some(spec) = self.autoscaler_spec(fields)
            && let Some(percent) = spec.remove("targetCPUUtilizationPercentage")
        {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
            spec.insert("metrics".into(), json!([cpu]));
        }
        shown
    }

    /// An object as it is shown; refused if this view cannot show it whole.
    pub(super) fn show(&self, mut stored: Value) -> Result<Value, Status> {
        if object::text(&stored, "/kind") == "Status" {
            return Ok(stored);
        }
        let fields = as_mapping(&mut stored);
        rename(fields, self.fields.iter().map(|(shown, stored)| (*stored, *shown)));
        let (group, version, kind) = self.shown;
        identify(fields, &GroupVersionKind::new(group, version, kind));
        if let Some(spec) = self.autoscaler_spec(fields) {
            let metrics = spec.remove("metrics").unwrap_or_default();
            match metrics.as_array().map(Vec::as_slice).unwrap_or_default() {
                [] => {}
                [metric]
                    if object::text(metric, "/resource/name") == "cpu"
                        && metric.pointer("/resource/target/averageUtilization").is_some() =>
                {
                    let percent = metric.pointer("/resource/target/averageUtilization").cloned();
                    spec.insert("targetCPUUtilizationPercentage".into(), percent.unwrap_or_default());
                }
                _ => {
                    return Err(Status::not_modelled(
                        "autoscalers with other metrics than CPU in autoscaling/v1",
                    ));
                }
            }
            if spec.contains_key("behavior") {
                return Err(Status::not_modelled("autoscalers with a behavior in autoscaling/v1"));
            }
            if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
                status.remove("currentMetrics");
                status.remove("conditions");
            }
        }
        Ok(stored)
    }

    /// An answer about stored objects as one about shown ones.
    pub(super) fn answer(
        &self,
        facts: &scantling_api::KindFacts,
        mut answer: answer::Answer,
    ) -> Result<answer::Answer, Status> {
        answer.content = match answer.content {
            answer::Content::Object(_, object) => answer::Content::Object(facts.clone(), self.show(object)?),
            answer::Content::List(_, mut list) => {
                for item in &mut list.items {
                    *item = std::sync::Arc::new(self.show(item.as_ref().clone())?);
                }
                answer::Content::List(facts.clone(), list)
            }
            other => other,
        };
        Ok(answer)
    }
}

fn identify(fields: &mut Map<String, Value>, gvk: &GroupVersionKind) {
    fields.insert("apiVersion".into(), json!(gvk.api_version()));
    fields.insert("kind".into(), json!(gvk.kind));
}

fn rename<'n>(fields: &mut Map<String, Value>, names: impl Iterator<Item = (&'n str, &'n str)>) {
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_stored_is_shown_again() {
        for shown in [
            json!({"apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": {"name": "p"}, "status": {"phase": "Active"}}),
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "regarding": {"kind": "Pod"},
                "note": "n", "reportingController": "c", "deprecatedCount": 2}),
            json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
                "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}}),
        ] {
            let view = of(&object::gvk(&shown).unwrap()).unwrap();
            let stored = view.store(shown.clone());
            assert_eq!(object::gvk(&stored).unwrap(), view.stored());
            assert_eq!(view.show(stored), Ok(shown));
        }
    }

    #[test]
    fn an_autoscaler_that_the_first_version_cannot_show_is_refused() {
        let stored = json!({"spec": {"metrics": [{"type": "Pods"}]}});
        let view = of(&GroupVersionKind::new("autoscaling", "v1", "HorizontalPodAutoscaler")).unwrap();
        assert_eq!(view.show(stored).unwrap_err().code, 501);
    }
}
