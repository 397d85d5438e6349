//! What would happen to a service, for a plan.

use scantling_api::ObjectKey;
use scantling_observed::{Deployment, InferenceService, Observed, View as _};
use serde::Serialize;

use super::One;
use super::rollout::{self, Roll, Rolling};
use crate::context::Met;

/// What a cluster would do about a service, as a plan shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// The service.
    pub service: ObjectKey,
    /// The runtime that serves it: `ServingRuntime NAME` or `ClusterServingRuntime NAME`.
    pub runtime: Option<String>,
    /// The name of the runtime that it had, when that one is gone or no longer serves the model.
    pub instead_of: Option<String>,
    /// The image that its Deployment has.
    pub image: Option<String>,
    /// The image that it is to have.
    pub wanted_image: Option<String>,
    /// What changes for its pods, in words.
    pub difference: Option<String>,
    /// How its pods get it. None when it is refused.
    pub roll: Option<Roll>,
    /// Why it is not served as it is written; its pods, if it has any, stay.
    pub refused: Option<String>,
}

/// What would happen to a service in a cluster that holds `observed`. To ask about a change, put the changed objects into `observed` first.
/// Secrets are not needed: what they say about a model's storage is taken to be what it was.
pub fn rollout(observed: &Observed, service: InferenceService<'_>) -> Forecast {
    let one = One { observed, service, is_forecast: true };
    let live = one.live();
    let (chosen, wish) = one.wish(&Met::default());
    let live_template = live.and_then(Deployment::template);
    let mut forecast = Forecast {
        service: service.key(),
        runtime: chosen.as_ref().map(|chosen| chosen.runtime.described()),
        instead_of: chosen.as_ref().and_then(|chosen| chosen.instead_of.clone()),
        image: live_template.and_then(rollout::image_of).map(str::to_owned),
        wanted_image: None,
        difference: None,
        roll: None,
        refused: None,
    };
    match (wish, chosen) {
        (Ok(wish), Some(chosen)) => {
            let written_for = rollout::written_for(service);
            let roll = one.change(&chosen, &wish, live, &written_for, &Rolling::new()).roll();
            if let Some(live_template) = live_template.filter(|_| roll != Roll::Unchanged) {
                forecast.difference = Some(rollout::difference(live_template, &wish.template.value));
            }
            forecast.wanted_image = Some(wish.template.image);
            forecast.roll = Some(roll);
        }
        (Err(refusal), _) => forecast.refused = Some(refusal.message),
        (Ok(_), None) => {}
    }
    forecast
}
