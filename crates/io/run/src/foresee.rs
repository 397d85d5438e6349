//! What the server says of steps before they are taken, by dry runs.
//!
//! Steps that would only repeat what was applied before are settled by it, and steps whose result the server refuses are
//! told before anything is written.
//!
//! A server keeps some values in a form of its own: it drops what its type leaves out, its webhooks rewrite, a newer or
//! older version has another type than the one that is known here. Such a field differs from the release for ever, and
//! writing it again changes nothing. Only where every field of a step is one that we have applied already is the server
//! asked, by a dry run; where nothing differs, which is the usual case, it is not.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use scantling_api::ObjectKey;
use scantling_cluster::ClusterError;
use scantling_plan::{Outcome, Step};
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

    /// Refuses steps that the server would refuse. Where nobody else has a field, the result of a step is what the release
    /// declares; where others have, the release alone does not tell whether a server takes it.
    pub(crate) async fn refuse_what_is_foreseen(&mut self, steps: &[Step]) -> Result<(), Stop> {
        let session: &Self = self;
        let refused: Vec<(&Step, ClusterError)> = futures::stream::iter(steps.iter().filter(|s| is_mixed(s)))
            .map(|step| async move { (step, session.env.cluster.foresee(&session.served, &step.body).await) })
            .buffered(AT_ONCE)
            .filter_map(|(step, foreseen)| async move { Some((step, foreseen.err().filter(is_refusal)?)) })
            .collect()
            .await;
        let Some((first, error)) = refused.first() else { return Ok(()) };
        let more = match refused.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let why = format!(
            "the server would refuse {}{more}, with the fields that others have in it: {error}",
            first.key
        );
        for (step, error) in &refused {
            self.will_not_be_written(step, error);
        }
        Err(self.refuse(why))
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

/// Whether a step leaves fields of others beside those of the release. What is handed over first cannot be foreseen: the
/// dry run of the second of two writes does not know the first.
fn is_mixed(step: &Step) -> bool {
    let merges = matches!(step.outcome, Outcome::Updated | Outcome::Adopted) && step.managed_fields.is_none();
    merges && !step.kept.is_empty()
}

/// Whether the server has refused the object, and not only to say what would become of it.
fn is_refusal(error: &ClusterError) -> bool {
    matches!(error, ClusterError::Invalid { message, .. } if !message.contains("dry run"))
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
