//! What the pods of models run, held against the runtimes of the release.
//!
//! The operator brings a runtime's image to models by the policy of each, also after the run has ended. A pod that has not
//! got it yet waits for its update; one that runs another image although its Deployment has the wanted one is wrong.

use scantling_api::{ObjectKey, object};
use scantling_cluster::ClusterError;
use scantling_image::Sameness;
use scantling_observed::{InferenceService, Observed, Pod, Rollout, View};
use scantling_reconcile::{Forecast, Roll};
use serde_json::Value;

use crate::report::Verified;
use crate::session::{Session, slashed};
use crate::verify::{images, is_current, is_selected, selector};

/// The answer about a container of a pod that is to be replaced.
pub(crate) const PENDING: &str = "update pending";

impl Session<'_> {
    /// Holds every pod of a model that a runtime of the release serves against the release. Nothing is waited for.
    pub(crate) async fn verify_predictors(&mut self) -> Result<(), ClusterError> {
        let Some(observed) = self.around_models().await? else { return Ok(()) };
        for service in observed.all::<InferenceService<'_>>() {
            let forecast = scantling_reconcile::rollout(&observed, service);
            for (pod, container, wanted, is_old) in containers(&observed, &forecast) {
                // Images of runtimes that are not the release's are not its business.
                if !self.identities.contains_key(&wanted) {
                    continue;
                }
                let view = Pod::of(pod);
                let Some(seen) = view.containers().into_iter().find(|seen| seen.name == container) else {
                    continue;
                };
                let answer = self.hold_against(seen, &wanted).await;
                if is_old && !matches!(answer, Some(Sameness::Same) | None) {
                    let running = seen.image_id().and_then(Result::ok);
                    self.report.verified.push(Verified {
                        pod: slashed(pod),
                        container,
                        wanted,
                        running: running.map(|id| id.written().to_owned()).unwrap_or_default(),
                        answer: PENDING.to_owned(),
                    });
                } else if answer.is_some() {
                    self.note(pod, seen, &wanted, answer);
                }
            }
        }
        Ok(())
    }
}

/// The containers of a model's pods, each with the image that it is to run, and whether its pod is one that is to be replaced.
fn containers<'o>(observed: &'o Observed, forecast: &Forecast) -> Vec<(&'o Value, String, String, bool)> {
    let Some(roll) = &forecast.roll else { return Vec::new() };
    let service = &forecast.service;
    let key = ObjectKey { name: format!("{}-predictor", service.name), ..service.clone() };
    let key = ObjectKey { group: "apps".to_owned(), kind: "Deployment".to_owned(), ..key };
    let Some(deployment) = observed.get(&key) else { return Vec::new() };
    let selects = deployment.pointer("/spec/selector").cloned().unwrap_or_default();
    if selector(&selects).is_none() {
        return Vec::new();
    }
    let waits = !matches!(roll, Roll::Unchanged);
    let is_old = waits || matches!(scantling_observed::rollout(deployment), Rollout::Progressing(_));
    let templates = images(deployment);
    let of_model = observed
        .of_kind("", "Pod")
        .map(|(_, pod)| pod)
        .filter(|pod| object::namespace(pod) == service.namespace.as_deref())
        .filter(|pod| is_current(pod) && is_selected(&selects, pod));
    let mut found = Vec::new();
    for pod in of_model {
        for (container, image) in &templates {
            let serves = forecast.image.as_ref() == Some(image);
            let wanted = match &forecast.wanted_image {
                Some(wanted) if waits && serves => wanted.clone(),
                _ => image.clone(),
            };
            found.push((pod, container.clone(), wanted, is_old));
        }
    }
    found
}
