//! Images that the release no longer offers and somebody still uses: they stay in the catalogue, outdated, so that who drains a node or
//! restarts by mistake comes back to an image that has a name, and so that nobody is told that theirs was deleted.

use std::collections::BTreeSet;

use scantling_api::{ObjectKey, object};
use scantling_finding::{Finding, codes};
use scantling_image::Reference;
use scantling_observed::Observed;
use scantling_plan::Desired;
use scantling_release::Wave;
use serde_json::json;

use crate::report::Stop;
use crate::session::Session;

impl Session<'_> {
    /// The entries of the catalogue that came with an earlier release, are not among the `coming` ones and are in use.
    pub(crate) async fn retired_in_use(&self, coming: &BTreeSet<ObjectKey>) -> Result<Vec<Desired>, Stop> {
        let is_entry = |key: &&ObjectKey| key.group == "scantling.dev" && key.kind == "NotebookImage";
        let gone: Vec<&ObjectKey> =
            self.previous.inventory.keys().filter(is_entry).filter(|key| !coming.contains(*key)).collect();
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let mut observed = Observed::new();
        for (group, kind) in [("kubeflow.org", "Notebook"), ("scantling.dev", "NotebookImage"), ("", "Pod")] {
            for found in self.list(group, kind, None).await? {
                // An object without kind and name is none; the server gives none such.
                let _ = observed.insert(found);
            }
        }
        let namespace = self.release.namespace.as_deref().unwrap_or_default();
        let users = scantling_reconcile::catalogue_users(&observed, namespace);
        let mut kept = Vec::new();
        for key in gone {
            let name = (key.namespace.clone().unwrap_or_default(), key.name.clone());
            let Some(live) = observed.get(key).filter(|_| users.get(&name).is_some_and(|count| *count > 0))
            else {
                continue;
            };
            let mut spec = live.get("spec").cloned().unwrap_or_else(|| json!({}));
            spec["outdated"] = json!(true);
            if let Some(fields) = spec.as_object_mut() {
                fields.remove("recommended");
            }
            let value = json!({
                "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
                "metadata": {"name": key.name, "namespace": key.namespace},
                "spec": spec,
            });
            kept.push(Desired { key: key.clone(), wave: Wave::Resources, value, adjusted: Vec::new() });
        }
        Ok(kept)
    }

    /// Says of a retired image whether it can still be pulled: a node that does not have it will ask.
    pub(crate) async fn check_retired(&mut self, retired: &Desired) {
        let written = object::text(&retired.value, "/spec/image").to_owned();
        let Ok(reference) = Reference::parse(&written) else { return };
        if let Err(error) = self.registry.resolve(&reference).await {
            let selection = object::text(&retired.value, "/spec/selection");
            self.report.findings.push(Finding::new(
                codes::run::RETIRED_UNPULLABLE,
                format!("{selection} is used by somebody and can no longer be pulled: {error}"),
                self.release.place.clone(),
            ));
        }
    }
}
