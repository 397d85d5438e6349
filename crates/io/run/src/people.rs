//! What a plan says about people: their notebooks and their models.

use scantling_api::object;
use scantling_cluster::ClusterError;
use scantling_observed::{InferenceService, Observed};
use scantling_plan::{Offer, PlannedNotebook, notebooks};
use scantling_reconcile::{Forecast, KnownImages, Roll, rollout};
use serde_json::Value;

use crate::session::Session;

/// What else decides how a model's pods are replaced.
const AROUND_MODELS: [(&str, &str); 6] = [
    ("serving.kserve.io", "ServingRuntime"),
    ("serving.kserve.io", "ClusterServingRuntime"),
    ("apps", "Deployment"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("scantling.dev", "Platform"),
];

impl Session<'_> {
    /// The notebooks for which something changes. One list, where the kind is served.
    pub(crate) async fn plan_notebooks(&mut self) -> Result<Vec<PlannedNotebook>, ClusterError> {
        if self.release.images.is_empty() && self.release.catalogue.is_none() {
            return Ok(Vec::new());
        }
        let live = self.list("kubeflow.org", "Notebook", None).await?;
        self.people.saw_notebooks(&live);
        if live.is_empty() {
            return Ok(Vec::new());
        }
        let known: KnownImages = self.known_images.iter().cloned().collect();
        let offers: Vec<Offer> = self
            .release
            .images
            .iter()
            .filter_map(|offer| {
                let pinned = self.pins.get(offer.reference.written())?;
                let digest = pinned.digest()?;
                let identity = self.identity(pinned.written());
                Some(Offer {
                    selection: offer.selection(),
                    image: pinned.written().to_owned(),
                    digests: identity.digests().into_iter().cloned().collect(),
                    packages: known.get(digest).map(|image| image.packages.clone()),
                })
            })
            .collect();
        Ok(notebooks(&live, &offers, &known))
    }

    /// What happens to models: how the release's runtimes reach their pods.
    pub(crate) async fn plan_models(&mut self) -> Result<Vec<Forecast>, ClusterError> {
        let Some(observed) = self.around_models().await? else { return Ok(Vec::new()) };
        let mut forecasts: Vec<Forecast> =
            observed.all::<InferenceService<'_>>().map(|service| rollout(&observed, service)).collect();
        forecasts.retain(|f| !matches!(f.roll, Some(Roll::Unchanged)));
        forecasts.sort_by(|a, b| a.service.cmp(&b.service));
        Ok(forecasts)
    }

    /// Models and what decides about their pods, with the runtimes as the release has them; none if there are no models or
    /// the release has no runtimes.
    pub(crate) async fn around_models(&mut self) -> Result<Option<Observed>, ClusterError> {
        let of_runtimes =
            |group: &str, kind: &str| group == "serving.kserve.io" && kind.ends_with("ServingRuntime");
        if !self.desired.iter().any(|d| of_runtimes(&d.key.group, &d.key.kind)) {
            return Ok(None);
        }
        let services = self.list("serving.kserve.io", "InferenceService", None).await?;
        if services.is_empty() {
            self.people.saw_models(&services, &[]);
            return Ok(None);
        }
        let mut objects = services.clone();
        for (group, kind) in AROUND_MODELS {
            objects.extend(self.list(group, kind, None).await?);
        }
        self.people.saw_models(&services, &objects);
        objects.extend(self.list("", "Node", None).await?);
        // What the release brings is there already, and what it no longer has is gone.
        objects.retain(|object| {
            object::key(object).is_ok_and(|key| {
                let ours = self.previous.inventory.contains_key(&key);
                !(ours && of_runtimes(&key.group, &key.kind))
            })
        });
        objects.extend(
            self.desired.iter().filter(|d| of_runtimes(&d.key.group, &d.key.kind)).map(|d| d.value.clone()),
        );
        observed(objects).map(Some)
    }
}

fn observed(objects: Vec<Value>) -> Result<Observed, ClusterError> {
    Observed::from_objects(objects).map_err(|error| ClusterError::Malformed {
        what: "list what surrounds models".to_owned(),
        message: error.to_string(),
    })
}
