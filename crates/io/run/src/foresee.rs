//! Steps that would only repeat what was applied before, settled by the server's own word.
//!
//! A server keeps some values in a form of its own: it drops what its type leaves out, its webhooks rewrite, a newer or
//! older version has another type than the one that is known here. Such a field differs from the release for ever, and
//! writing it again changes nothing. Only where every field of a step is one that we have applied already is the server
//! asked, by a dry run; where nothing differs, which is the usual case, it is not.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use scantling_api::ObjectKey;
use scantling_cluster::ClusterError;
use scantling_plan::Step;
use serde_json::Value;

use crate::apply::AT_ONCE;
use crate::report::Stop;
use crate::session::Session;

impl Session<'_> {
    /// Steps of which the server says that they would change nothing become unchanged.
    pub(crate) async fn settle_repeats(&self, steps: Vec<Step>) -> Result<Vec<Step>, Stop> {
        let repeats: Vec<&Step> = steps.iter().filter(|step| step.repeats).collect();
        let answers: BTreeMap<ObjectKey, Result<bool, ClusterError>> = futures::stream::iter(repeats)
            .map(|step| async move { (step.key.clone(), self.changes_nothing(step).await) })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut settled = Vec::with_capacity(steps.len());
        let mut answers = answers;
        for step in steps {
            settled.push(match answers.remove(&step.key).transpose()? {
                Some(true) => step.settled(),
                Some(false) | None => step,
            });
        }
        Ok(settled)
    }

    /// Whether the server says that applying a step would leave the object as it is. A server that will not say leaves the
    /// step as it was.
    async fn changes_nothing(&self, step: &Step) -> Result<bool, ClusterError> {
        let Some(live) = self.live.get(&step.key) else { return Ok(false) };
        match self.env.cluster.foresee(&self.served, &step.body).await {
            Ok(foreseen) => Ok(comparable(&foreseen) == comparable(live)),
            Err(error @ (ClusterError::Unreachable { .. } | ClusterError::Unauthenticated { .. })) => {
                Err(error)
            }
            Err(_) => Ok(false),
        }
    }
}

/// An object without what an apply that changes nothing changes all the same.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
        for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(entry) = entry.as_object_mut() {
                entry.remove("time");
            }
        }
    }
    object
}
