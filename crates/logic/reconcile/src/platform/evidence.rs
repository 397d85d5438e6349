//! What runs now, held against what the catalogue says.

use scantling_image::Sameness;
use scantling_observed::{Notebook, Observed, Pod, View as _, annotations};

use super::facts::Evidence;
use crate::catalogue::Catalogue;
use crate::context::Context;

/// What the pods of notebooks say.
#[derive(Debug, Default)]
pub(super) struct Running {
    containers: usize,
    pinned: usize,
    loose: Option<String>,
    same: usize,
    marked: usize,
    silent: Option<String>,
    silents: usize,
}

impl Running {
    /// Looks at the pods of all notebooks.
    pub(super) fn of(observed: &Observed, context: &Context<'_>) -> Self {
        let catalogue = Catalogue::of(observed);
        let mut running = Self::default();
        for pod in observed.pods().filter(|pod| pod.is_running()) {
            if let Some(notebook) = observed.notebook_of(pod) {
                running.add(pod, notebook, &catalogue, context);
            }
        }
        running
    }

    fn add(&mut self, pod: Pod<'_>, notebook: Notebook<'_>, catalogue: &Catalogue, context: &Context<'_>) {
        let Some(name) = notebook.container().map(|container| container.name().to_owned()) else { return };
        let Some(container) = pod.regular_containers().find(|container| container.name == name) else {
            return;
        };
        let place = format!("{}/{}", pod.namespace(), pod.name());
        self.containers += 1;
        if container.reference().is_ok_and(|reference| reference.is_pinned()) {
            self.pinned += 1;
        } else {
            self.loose.get_or_insert_with(|| place.clone());
        }
        let at = notebook.catalogue_namespace();
        let entry = notebook
            .selection()
            .and_then(|selection| catalogue.select(at.unwrap_or(context.namespace), selection).ok());
        let Some((entry, Some(Ok(id)))) = entry.map(|entry| (entry, container.image_id())) else { return };
        if catalogue.compare(entry, id.digest(), context) == Sameness::Same {
            self.same += 1;
        } else if pod.annotation(annotations::UPDATE_PENDING).is_some() {
            self.marked += 1;
        } else {
            self.silents += 1;
            self.silent.get_or_insert(place);
        }
    }

    /// Whether their images are written by digest.
    pub(super) fn pinned(&self) -> Option<Evidence> {
        (self.containers > 0).then(|| Evidence {
            holds: Some(self.loose.is_none()),
            text: match &self.loose {
                None => format!("{} of {} notebooks run an image by digest", self.pinned, self.containers),
                Some(place) => format!(
                    "{} of {} notebooks run an image by digest; {place} does not",
                    self.pinned, self.containers
                ),
            },
        })
    }

    /// Whether they run what the catalogue says, or are marked.
    pub(super) fn truthful(&self) -> Option<Evidence> {
        let judged = self.same + self.marked + self.silents;
        (judged > 0).then(|| {
            let marked = match self.marked {
                0 => String::new(),
                n => format!(", {n} are marked with what a restart changes"),
            };
            let silent = match &self.silent {
                None => String::new(),
                Some(place) => {
                    format!(", {} run something else and are not marked (yet), {place} first", self.silents)
                }
            };
            Evidence {
                holds: Some(self.silents == 0),
                text: format!(
                    "{} of {judged} notebooks run what the catalogue shows{marked}{silent}",
                    self.same
                ),
            }
        })
    }
}
