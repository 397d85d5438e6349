//! What a release adds to what is found in its files.

use scantling_manifest::{Candidate, Discovery, Filling, What};

use crate::references::position;
use crate::{Reach, Release};

impl Release {
    /// Completes what was found in this release's files by what the release says about it: when a fallback is live, what
    /// fills a placeholder, and the images of its catalogue. Findings about these files that the release settles are taken
    /// out.
    ///
    /// `owns` tells the paths of this release's files; `discovery` may hold others too.
    pub fn annotate(&self, discovery: &mut Discovery, owns: impl Fn(&str) -> bool) {
        for candidate in &mut discovery.candidates {
            let at = position(&candidate.place);
            let Some(used) = self.references.iter().find(|used| position(&used.place) == at) else {
                continue;
            };
            if let Reach::Fallback(condition) = &used.reach {
                candidate.condition = Some(condition.words.clone());
            }
            if let What::Placeholder { filled_by, .. } = &mut candidate.what
                && filled_by.is_empty()
            {
                let registry = self
                    .registry
                    .as_ref()
                    .is_some_and(|it| used.reference.written().starts_with(it.as_str()));
                filled_by.push(Filling {
                    by: if registry { "the registry given" } else { "the release's substitution" }.to_owned(),
                    value: used.reference.written().to_owned(),
                    place: self.place.clone(),
                });
            }
        }
        discovery.candidates.extend(self.images.iter().map(|image| {
            let used = image.used();
            Candidate {
                what: What::Reference { reference: used.reference.clone() },
                written: used.reference.written().to_owned(),
                place: used.place,
                route: used.route,
                condition: None,
                nested: false,
                pull_policy: None,
            }
        }));
        discovery.findings.retain(|finding| {
            let path = finding.place.file.as_ref().map(|file| file.path.as_str());
            let known =
                |own: &scantling_finding::Finding| own.code == finding.code && own.place == finding.place;
            !path.is_some_and(&owns) || self.findings.iter().any(known)
        });
    }
}
