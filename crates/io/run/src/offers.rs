//! The catalogue as the release lists it: each image's contents are read, and only then is it offered.

use std::collections::BTreeSet;

use scantling_api::object;
use scantling_finding::{Finding, codes};
use scantling_image::Digest;
use scantling_observed::NotebookImageSpec;
use scantling_plan::Desired;
use scantling_reconcile::KnownImage;
use scantling_release::{OfferedImage, Wave};
use serde_json::{Value, json};

use crate::catalogue::{known_image, object_name};
use crate::event::What;
use crate::prepull::Needs;
use crate::report::{CatalogueEntry, CheckedClaim, Stop};
use crate::session::Session;
use crate::state::{RecordedClaim, RecordedImage};

impl Session<'_> {
    /// Whether the cluster has image streams.
    pub(crate) fn has_streams(&self) -> bool {
        self.served.by_kind("image.openshift.io", "ImageStream").is_some()
    }

    /// Reads the contents of every image that the release lists. Gives the objects of the catalogue, and what nodes need
    /// before people see them.
    pub(crate) async fn offer_images(
        &mut self,
        shown: &BTreeSet<String>,
    ) -> Result<(Vec<Desired>, Needs), Stop> {
        let release = self.release;
        let namespace = release.namespace.clone().unwrap_or_default();
        let mut objects = Vec::new();
        let mut needs = Needs::new();
        for offer in &release.images {
            let written = offer.reference.written();
            let Some(pinned) = self.pins.get(written).cloned() else {
                return Err(Stop::Halt(format!("{written} is offered to users and the gate did not see it")));
            };
            let tag = format!("{namespace}/{}", offer.selection());
            let known = self.look_into(offer, &tag, &pinned, shown).await?;
            self.identities.insert(pinned.written().to_owned(), known.identity.clone());
            // A retired image is where it is used; nobody new gets it.
            if !offer.outdated {
                needs.push((places(offer), BTreeSet::from([pinned.written().to_owned()])));
            }
            objects.push(self.offer_entry(offer, &namespace, &pinned, &known)?);
        }
        Ok((objects, needs))
    }

    /// What an image holds, read once for each digest and each set of packages that are shown.
    async fn look_into(
        &mut self,
        offer: &OfferedImage,
        tag: &str,
        pinned: &scantling_image::Reference,
        shown: &BTreeSet<String>,
    ) -> Result<KnownImage, Stop> {
        let digest = pinned.digest().cloned().unwrap_or_else(|| Digest::of(b""));
        let recorded = self.recorded.get(tag);
        let same = recorded
            .filter(|r| r.digest == digest && r.claims.iter().map(|c| &c.name).eq(offer.shows.iter()));
        let known = if let (Some(claims), Some(known)) = (same.map(|r| r.claims.clone()), self.known(&digest))
        {
            self.conclude_offer(offer, tag, pinned, &claims);
            known
        } else {
            let (resolved, contents) = self.read_image(pinned).await?;
            let known = known_image(&resolved, &contents, shown);
            let claims: Vec<RecordedClaim> = offer
                .shows
                .iter()
                .map(|name| {
                    let found = known.packages.iter().find(|p| p.name == *name).map(|p| p.version.clone());
                    RecordedClaim {
                        name: name.clone(),
                        claimed: found.clone().unwrap_or_default(),
                        holds: found.is_some(),
                        found,
                    }
                })
                .collect();
            self.tell(What::ContentsRead {
                tag: tag.to_owned(),
                hold: claims.iter().filter(|c| c.holds).count(),
                differ: claims.iter().filter(|c| !c.holds).count(),
            });
            self.known_images.retain(|k| !k.identity.contains(&digest));
            self.known_images.push(known.clone());
            self.conclude_offer(offer, tag, pinned, &claims);
            let image =
                RecordedImage { tag: tag.to_owned(), digest, reference: pinned.written().to_owned(), claims };
            self.recorded.insert(tag.to_owned(), image);
            known
        };
        self.recorded_now.insert(tag.to_owned());
        Ok(known)
    }

    /// Puts what an image shows into the report, and a finding for what it is to show and does not have.
    fn conclude_offer(
        &mut self,
        offer: &OfferedImage,
        tag: &str,
        pinned: &scantling_image::Reference,
        claims: &[RecordedClaim],
    ) {
        for claim in claims.iter().filter(|c| !c.holds) {
            self.report.findings.push(Finding::new(
                codes::contents::CLAIM_ABSENT,
                format!("{tag} is to show {} and does not have it", claim.name),
                offer.place.clone(),
            ));
        }
        self.report.catalogue.push(CatalogueEntry {
            name: object_name(&offer.selection()),
            tag: tag.to_owned(),
            image: pinned.written().to_owned(),
            claims: claims
                .iter()
                .map(|c| CheckedClaim {
                    name: c.name.clone(),
                    claimed: c.claimed.clone(),
                    found: c.found.clone(),
                    holds: c.holds,
                })
                .collect(),
        });
    }

    fn offer_entry(
        &self,
        offer: &OfferedImage,
        namespace: &str,
        pinned: &scantling_image::Reference,
        known: &KnownImage,
    ) -> Result<Desired, Stop> {
        let shows = |name: &str| offer.shows.iter().any(|s| s == name);
        let spec = NotebookImageSpec {
            selection: offer.selection(),
            title: offer.title.clone(),
            about: offer.about.clone().unwrap_or_default(),
            image: pinned.clone(),
            aliases: vec![offer.reference.written().to_owned()],
            packages: known.packages.iter().filter(|p| shows(&p.name)).cloned().collect(),
            digests: known.identity.digests().into_iter().cloned().collect(),
            release: self.release.title(),
            recommended: offer.recommended,
            outdated: offer.outdated,
            accelerator: offer.accelerator.clone(),
        };
        let value = json!({
            "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
            "metadata": {"name": object_name(&offer.selection()), "namespace": namespace},
            "spec": spec,
        });
        desired(value)
    }
}

/// What a pod of an image asks of its node: an accelerator, if it needs one. Such nodes keep other pods away.
fn places(offer: &OfferedImage) -> Value {
    match &offer.accelerator {
        None => json!({}),
        Some(resource) => json!({
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "notebook", "resources": {"limits": {resource: "1"}}}],
        }),
    }
}

fn desired(value: Value) -> Result<Desired, Stop> {
    let key = object::key(&value).map_err(|e| Stop::Halt(e.to_string()))?;
    Ok(Desired { key, wave: Wave::Resources, value, adjusted: Vec::new() })
}
