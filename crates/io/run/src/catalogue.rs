//! Stage 6c: the catalogue. Claims are held against the bytes, the nodes get the images, and only then users see them.

use std::collections::BTreeSet;

use scantling_api::{ObjectKey, object};
use scantling_contents::{Claim, ClaimVerdict, Contents, check_claim, shown_version};
use scantling_finding::{Finding, codes};
use scantling_image::{Digest, Platform, Reference};
use scantling_observed::{ImageStream, NotebookImageSpec, PackageVersion, View};
use scantling_plan::Desired;
use scantling_reconcile::KnownImage;
use scantling_registry::{RegistryError, Resolved, Verdict};
use scantling_release::{ImageName, PlacedClaim, Release, StreamTag, Wave};
use serde::Serialize;
use serde_json::json;

use crate::event::{Stage, What};
use crate::gate::INTERNAL_REGISTRY;
use crate::images::{stream_key, tag_text};
use crate::report::{CatalogueEntry, CheckedClaim, Stop};
use crate::session::Session;
use crate::state::{RecordedClaim, RecordedImage};
use crate::streams::{add_aliases, streams};

/// Where an entry of the catalogue comes from: the tag and its three names.
struct Offered<'r> {
    tag: &'r StreamTag,
    namespace: String,
    stream: String,
    name: String,
}

impl Offered<'_> {
    fn text(&self) -> String {
        format!("{}/{}:{}", self.namespace, self.stream, self.name)
    }

    fn selection(&self) -> String {
        format!("{}:{}", self.stream, self.name)
    }
}

fn offered(release: &Release) -> Vec<Offered<'_>> {
    let named = release.offered().filter_map(|tag| {
        let (namespace, stream, name) = tag_text(&tag.name, release.namespace.as_deref())?;
        Some(Offered { tag, namespace, stream, name })
    });
    named.collect()
}

/// A reference to a pull secret, as pods have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct PullSecret {
    name: String,
}

/// The keys of the catalogue's objects, which are known before the images are.
pub(crate) fn catalogue_keys(release: &Release, has_streams: bool) -> BTreeSet<ObjectKey> {
    let entry = |namespace: &str, selection: &str| {
        ObjectKey::namespaced("scantling.dev", "NotebookImage", namespace, object_name(selection))
    };
    let mut keys: BTreeSet<ObjectKey> =
        offered(release).iter().map(|o| entry(&o.namespace, &o.selection())).collect();
    let namespace = release.namespace.as_deref().unwrap_or_default();
    for image in &release.images {
        keys.insert(entry(namespace, &image.selection()));
        if has_streams {
            keys.insert(stream_key(namespace, &image.stream));
        }
    }
    keys
}

/// A selection as an object's name: lower-case letters, digits, `-` and `.`.
pub(crate) fn object_name(selection: &str) -> String {
    let name: String = selection
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' { c } else { '-' })
        .collect();
    name.trim_matches(['-', '.']).chars().take(253).collect()
}

impl Session<'_> {
    /// Checks, prepulls and publishes every image that the release offers.
    pub(crate) async fn publish_catalogue(&mut self) -> Result<(), Stop> {
        let release = self.release;
        let offers = offered(release);
        let retired = self.retired_in_use(&catalogue_keys(release, self.has_streams())).await?;
        if offers.is_empty() && release.images.is_empty() && retired.is_empty() {
            return Ok(());
        }
        self.stage = Stage::Catalogue;
        let shown: BTreeSet<String> = offers
            .iter()
            .flat_map(|o| o.tag.claims.iter().map(|c| c.claim.name.clone()))
            .chain(release.images.iter().flat_map(|i| i.shows.iter().cloned()))
            .collect();
        let (mut objects, mut needs) = self.offer_images(&shown).await?;
        for entry in retired {
            self.check_retired(&entry).await;
            objects.push(entry);
        }
        if self.has_streams() && !release.images.is_empty() {
            add_aliases(&mut objects);
            let streams = streams(&objects);
            objects.extend(streams);
        }
        let mut images = BTreeSet::new();
        for offer in &offers {
            let text = offer.text();
            let Some(recorded) = self.recorded.get(&text).cloned() else {
                let message = format!("{text} is offered to users and has no image");
                self.report.findings.push(Finding::new(
                    codes::run::BUILD_FAILED,
                    message.clone(),
                    offer.tag.place.clone(),
                ));
                return Err(Stop::Halt(message));
            };
            let known = self.look_inside(&recorded, offer, &shown).await?;
            self.remember_history(offer, &shown).await?;
            images.insert(recorded.reference.clone());
            objects.push(self.entry(offer, &recorded, &known)?);
        }
        let namespace = offers
            .first()
            .map(|o| o.namespace.clone())
            .or_else(|| release.namespace.clone())
            .unwrap_or_default();
        needs.push((json!({}), images));
        let secrets = json!(self.pull_secrets(&namespace));
        for (spec, _) in &mut needs {
            spec["imagePullSecrets"] = secrets.clone();
        }
        self.prepull(&namespace, &needs).await?;
        self.stage = Stage::Catalogue;
        self.announce(&objects)?;
        for desired in objects {
            let image = object::text(&desired.value, "/spec/image").to_owned();
            let name = desired.key.name.clone();
            let before = self.traffic.writes();
            self.apply(&desired).await?;
            if self.traffic.writes() != before && !image.is_empty() {
                self.tell(What::Published { name, image });
            }
            self.desired.push(desired);
        }
        Ok(())
    }

    /// The pull secrets that the platform's own pods use in a namespace: users' pods get theirs from there, too.
    fn pull_secrets(&self, namespace: &str) -> BTreeSet<PullSecret> {
        self.desired
            .iter()
            .filter(|d| d.key.namespace.as_deref() == Some(namespace))
            .filter_map(|d| {
                let at = match d.key.kind.as_str() {
                    "ServiceAccount" => "",
                    _ => object::pod_spec_pointer(&object::gvk(&d.value).ok()?)?,
                };
                d.value.pointer(at)?.get("imagePullSecrets")?.as_array()
            })
            .flatten()
            .filter_map(|secret| Some(PullSecret { name: secret.get("name")?.as_str()?.to_owned() }))
            .collect()
    }

    /// What an image holds, read once for each digest, and its claims held against that.
    async fn look_inside(
        &mut self,
        recorded: &RecordedImage,
        offer: &Offered<'_>,
        shown: &BTreeSet<String>,
    ) -> Result<KnownImage, Stop> {
        let claimed: Vec<(&str, &str)> =
            offer.tag.claims.iter().map(|c| (c.claim.name.as_str(), c.claim.version.as_str())).collect();
        let checked: Vec<(&str, &str)> =
            recorded.claims.iter().map(|c| (c.name.as_str(), c.claimed.as_str())).collect();
        let known = self.known(&recorded.digest);
        if let Some(known) = known.filter(|_| claimed == checked) {
            let claims = recorded.claims.clone();
            self.conclude(recorded, offer, &claims, &known);
            return Ok(known);
        }
        let reference = Reference::parse(&recorded.reference).map_err(|e| Stop::Halt(e.to_string()))?;
        let (resolved, contents) = self.read_image(&reference).await?;
        let known = known_image(&resolved, &contents, shown);
        let claims: Vec<RecordedClaim> =
            offer.tag.claims.iter().map(|c| check(&contents, &c.claim)).collect();
        self.tell(What::ContentsRead {
            tag: offer.text(),
            hold: claims.iter().filter(|c| c.holds).count(),
            differ: claims.iter().filter(|c| !c.holds).count(),
        });
        self.known_images.retain(|k| !k.identity.contains(&recorded.digest));
        self.known_images.push(known.clone());
        if let Some(entry) = self.recorded.get_mut(&recorded.tag) {
            entry.claims.clone_from(&claims);
        }
        self.conclude(recorded, offer, &claims, &known);
        Ok(known)
    }

    /// Puts what was found out into the report: now, or in an earlier run for the same digest.
    fn conclude(
        &mut self,
        recorded: &RecordedImage,
        offer: &Offered<'_>,
        claims: &[RecordedClaim],
        known: &KnownImage,
    ) {
        self.identities.insert(recorded.reference.clone(), known.identity.clone());
        let wrong: Vec<Finding> = offer
            .tag
            .claims
            .iter()
            .zip(claims)
            .filter(|(_, checked)| !checked.holds)
            .map(|(placed, checked)| claim_finding(&recorded.tag, placed, checked))
            .collect();
        self.report.findings.extend(wrong);
        self.report.catalogue.push(CatalogueEntry {
            name: object_name(&offer.selection()),
            tag: recorded.tag.clone(),
            image: recorded.reference.clone(),
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

    pub(crate) fn known(&self, digest: &Digest) -> Option<KnownImage> {
        self.known_images.iter().find(|k| k.identity.contains(digest)).cloned()
    }

    /// Reads an image. A registry that refuses is asked once more if the cluster has other credentials by now.
    pub(crate) async fn read_image(&mut self, reference: &Reference) -> Result<(Resolved, Contents), Stop> {
        let refused =
            |e: &RegistryError| matches!(e.verdict(), Verdict::Unauthenticated | Verdict::Forbidden);
        let read = match self.try_read_image(reference).await? {
            Err(error) if refused(&error) && self.renew_credentials().await => {
                self.try_read_image(reference).await?
            }
            read => read,
        };
        read.map_err(|e| Stop::Halt(format!("the image {reference} cannot be read: {e}")))
    }

    async fn try_read_image(
        &self,
        reference: &Reference,
    ) -> Result<Result<(Resolved, Contents), RegistryError>, Stop> {
        let registry = &self.registry;
        let resolved = match registry.resolve(reference).await {
            Ok(resolved) => resolved,
            Err(error) => return Ok(Err(error)),
        };
        let platforms: BTreeSet<&Platform> = self.nodes.iter().filter_map(|n| n.platform.as_ref()).collect();
        let platform = resolved
            .platforms
            .iter()
            .find(|p| platforms.iter().any(|wanted| p.platform.matches(wanted)))
            .or(resolved.platforms.first())
            .map(|p| p.platform.clone());
        let Some(platform) = platform else {
            return Err(Stop::Halt(format!("the image {reference} has no platform")));
        };
        Ok(registry.contents(reference, &platform).await.map(|contents| (resolved, contents)))
    }

    /// Pods of earlier images keep running. What they hold is read while the images are still there, so that users can
    /// be told what a restart would change.
    async fn remember_history(&mut self, offer: &Offered<'_>, shown: &BTreeSet<String>) -> Result<(), Stop> {
        let key = ObjectKey::namespaced(
            "image.openshift.io",
            "ImageStream",
            offer.namespace.as_str(),
            offer.stream.as_str(),
        );
        let Some(stream) = self.read(&key).await? else { return Ok(()) };
        let view = ImageStream::of(&stream);
        let repository = view.repository().map(ToOwned::to_owned);
        let items = view.tag(&offer.name).map(scantling_observed::StreamTag::items).unwrap_or_default();
        let earlier: Vec<(Digest, String)> = items
            .iter()
            .skip(1)
            .filter_map(|item| Some((item.digest().ok()?, item.reference.to_owned())))
            .collect();
        for (digest, source) in earlier {
            if self.known(&digest).is_some() {
                continue;
            }
            let local = repository.as_ref().map(|repository| format!("{repository}@{digest}"));
            for written in local.into_iter().chain([source]) {
                let Ok(reference) = Reference::parse(&written) else { continue };
                match self.read_image(&reference).await {
                    Ok((resolved, contents)) => {
                        self.known_images.push(known_image(&resolved, &contents, shown));
                        break;
                    }
                    // Nothing depends on it: a pod of it is then told apart by its digest alone.
                    Err(stop) => self.tell(What::Waiting {
                        on: format!("the contents of the earlier {}", offer.text()),
                        until: format!("not readable any more: {stop}"),
                    }),
                }
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        offer: &Offered<'_>,
        recorded: &RecordedImage,
        known: &KnownImage,
    ) -> Result<Desired, Stop> {
        let image = Reference::parse(&recorded.reference).map_err(|e| Stop::Halt(e.to_string()))?;
        let mut aliases = BTreeSet::from([format!("{INTERNAL_REGISTRY}/{}", recorded.tag)]);
        if let Some(ImageName::Reference(from)) = &offer.tag.from {
            aliases.insert(from.clone());
        }
        let names: BTreeSet<&str> = offer.tag.claims.iter().map(|c| c.claim.name.as_str()).collect();
        let spec = NotebookImageSpec {
            selection: offer.selection(),
            title: offer.tag.display_name.clone().unwrap_or_else(|| offer.stream.clone()),
            about: String::new(),
            recommended: false,
            outdated: false,
            accelerator: None,
            image,
            aliases: aliases.into_iter().collect(),
            packages: known.packages.iter().filter(|p| names.contains(p.name.as_str())).cloned().collect(),
            digests: known.identity.digests().into_iter().cloned().collect(),
            release: self.release.title(),
        };
        let name = object_name(&offer.selection());
        let value = json!({
            "apiVersion": "scantling.dev/v1alpha1", "kind": "NotebookImage",
            "metadata": {"name": name, "namespace": offer.namespace},
            "spec": spec,
        });
        let key = object::key(&value).map_err(|e| Stop::Halt(e.to_string()))?;
        Ok(Desired { key, wave: Wave::Resources, value, adjusted: Vec::new() })
    }
}

pub(crate) fn known_image(resolved: &Resolved, contents: &Contents, shown: &BTreeSet<String>) -> KnownImage {
    let packages = shown
        .iter()
        .filter_map(|name| {
            Some(PackageVersion { name: name.clone(), version: shown_version(contents, name)? })
        })
        .collect();
    KnownImage { identity: resolved.identity.clone(), packages }
}

fn check(contents: &Contents, claim: &Claim) -> RecordedClaim {
    let verdict = check_claim(contents, claim);
    let holds = verdict == ClaimVerdict::Holds;
    let found = match verdict {
        ClaimVerdict::Differs { found } => Some(found),
        ClaimVerdict::Holds | ClaimVerdict::Absent => shown_version(contents, &claim.name),
    };
    RecordedClaim { name: claim.name.clone(), claimed: claim.version.clone(), found, holds }
}

fn claim_finding(tag: &str, placed: &PlacedClaim, checked: &RecordedClaim) -> Finding {
    let (code, message) = match &checked.found {
        Some(found) => (
            codes::contents::CLAIM_DIFFERS,
            format!("{tag} claims {} {} and holds {found}", checked.name, checked.claimed),
        ),
        None => (
            codes::contents::CLAIM_ABSENT,
            format!("{tag} claims {} {} and does not show it", checked.name, checked.claimed),
        ),
    };
    Finding::new(code, message, placed.place.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_become_names_of_objects() {
        assert_eq!(object_name("tensorflow:py3.8-cuda-11.0.3"), "tensorflow-py3.8-cuda-11.0.3");
        assert_eq!(object_name("s2i_Minimal:1_"), "s2i-minimal-1");
    }
}
