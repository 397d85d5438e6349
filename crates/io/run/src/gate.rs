//! Stage 2: can everything that the release can ever ask for be pulled, on every platform of the nodes?

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use scantling_finding::{Code, Finding, Severity, codes};
use scantling_image::{Platform, Reference};
use scantling_registry::{Probe, Resolved, Verdict};
use scantling_release::{ImageName, LockedImage, LockedPlatform, Reach, Release};

use crate::event::{Stage, What};
use crate::report::{GateVerdict, Stop};
use crate::session::Session;

/// References asked for at the same time. The registry client has limits of its own for each host; this one bounds
/// what is kept in memory.
const AT_ONCE: usize = 8;

impl Session<'_> {
    /// Asks for every reference of the release and refuses when one cannot be pulled. Nothing is written here.
    pub(crate) async fn gate(&mut self) -> Result<(), Stop> {
        self.stage = Stage::Gate;
        let platforms: BTreeSet<Platform> = self.nodes.iter().filter_map(|n| n.platform.clone()).collect();
        let platforms: Vec<Platform> = platforms.into_iter().collect();
        let on_cluster = made_on_cluster(self.release);
        if let Some(lock) = &self.options.lock {
            let missing = lock.missing(self.release);
            if !missing.is_empty() {
                let count = missing.len();
                self.report.findings.extend(missing);
                return Err(self.refuse(format!(
                    "{count} references of the release are not in its lock; lock it again"
                )));
            }
        }
        let wanted: Vec<(Reference, Reference)> = self
            .release
            .distinct_references()
            .into_iter()
            .filter(|reference| !names_stream(&on_cluster, reference))
            .map(|reference| {
                let locked = self.options.lock.as_ref().and_then(|lock| lock.image(&reference));
                let asked = locked.map_or_else(|| reference.clone(), LockedImage::pinned);
                (reference, asked)
            })
            .collect();
        let registry = self.registry.clone();
        let mut answers = futures::stream::iter(wanted)
            .map(|(written, asked)| {
                let (platforms, registry) = (platforms.clone(), registry.clone());
                async move {
                    let probe = registry.probe(&asked, &platforms).await;
                    // What is written is a digest, for which other places may be asked than for the tag.
                    let pinned = match &probe.resolved {
                        Some(resolved) if !probe.disagreement().is_empty() => {
                            let pinned = asked.with_digest(&resolved.digest);
                            Some(registry.probe(&pinned, &platforms).await)
                        }
                        _ => None,
                    };
                    (written, probe, pinned)
                }
            })
            .buffered(AT_ONCE);
        let mut images = Vec::new();
        let mut refused: BTreeMap<Reference, String> = BTreeMap::new();
        while let Some((reference, probe, pinned)) = answers.next().await {
            self.judge(&reference, &probe, &mut refused);
            if let Some(pinned) = pinned {
                self.judge_places(&reference, &probe, &pinned, &mut refused);
            }
            if let Some(resolved) = &probe.resolved {
                images.push(locked(&reference, resolved));
            }
        }
        drop(answers);
        if !refused.is_empty() {
            let first = refused
                .first_key_value()
                .map(|(r, why)| format!("{} ({why})", r.written()))
                .unwrap_or_default();
            let more = refused.len() - 1;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return Err(
                self.refuse(format!("the release can ask for images that cannot be pulled: {first}{more}"))
            );
        }
        self.settle_lock(images);
        Ok(())
    }

    fn judge(&mut self, reference: &Reference, probe: &Probe, refused: &mut BTreeMap<Reference, String>) {
        let passes = probe.verdict == Verdict::Pullable;
        let verdict =
            if passes { format!("ok from {}", self.env.vantage) } else { probe.verdict.to_string() };
        let digest = probe.resolved.as_ref().map(|r| r.digest.clone());
        let attempts: Vec<String> =
            probe.attempts.iter().map(|a| format!("{}: {} ({})", a.endpoint, a.verdict, a.detail)).collect();
        self.tell(What::Probed {
            reference: reference.written().to_owned(),
            verdict: verdict.clone(),
            digest: digest.clone(),
        });
        if !passes {
            refused.insert(reference.clone(), probe.verdict.to_string());
            self.report.findings.extend(self.cannot_be_pulled(reference, probe, &attempts));
        }
        self.report.gate.push(GateVerdict {
            reference: reference.written().to_owned(),
            verdict,
            passes,
            digest,
            attempts,
        });
    }

    /// Places that do not lead to the same image. The registry that the release names decides which one it is; mirrors that
    /// differ among themselves do not.
    fn judge_places(
        &mut self,
        reference: &Reference,
        probe: &Probe,
        pinned: &Probe,
        refused: &mut BTreeMap<Reference, String>,
    ) {
        let places = probe.disagreement();
        let said: Vec<String> =
            places.iter().map(|(place, digest)| format!("{} is {digest}", place.endpoint)).collect();
        let is_named = places.iter().any(|(place, _)| place.via.is_none());
        let used = self.release.references.iter().find(|used| used.reference == *reference);
        let place = used.map(|used| used.place.clone()).unwrap_or_default();
        let message =
            format!("{} is not the same image everywhere: {}", reference.written(), said.join(", "));
        let finding = Finding::new(codes::publication::PLACES_DISAGREE, message, place);
        if is_named && pinned.verdict == Verdict::Pullable {
            let digest = probe.resolved.as_ref().map(|r| r.digest.to_string()).unwrap_or_default();
            let cause = format!("what is written is {digest}, which the registry has that the release names");
            self.report.findings.push(finding.with_cause(cause));
            return;
        }
        let why = if is_named {
            format!("the digest that its tag leads to: {}", pinned.verdict)
        } else {
            "mirrors disagree, and the registry that the release names does not answer".to_owned()
        };
        refused.insert(reference.clone(), why.clone());
        self.report.findings.push(finding.with_severity(Severity::Error).with_cause(why));
    }

    /// A finding at the first place that names the reference; the other places are related.
    fn cannot_be_pulled(&self, reference: &Reference, probe: &Probe, attempts: &[String]) -> Option<Finding> {
        let mut uses = self.release.references.iter().filter(|used| used.reference == *reference);
        let first = uses.next()?;
        let code: Code = match (probe.verdict, &first.reach) {
            (Verdict::Absent, Reach::Fallback(_)) => codes::fallbacks::FALLBACK_UNPUBLISHED,
            (Verdict::Absent, _) => codes::publication::NEVER_PUBLISHED,
            (Verdict::Unknown, _) => codes::publication::NOT_DECIDED,
            _ => codes::publication::CANNOT_BE_PULLED,
        };
        let mut cause = format!("asked from {}: {}", self.env.vantage, attempts.join("; "));
        if let Reach::Fallback(when) = &first.reach {
            cause = format!("it is used when {when}; {cause}");
        }
        let message = format!("{} cannot be pulled: {}", reference.written(), probe.verdict);
        let mut finding = Finding::new(code, message, first.place.clone()).with_cause(cause);
        for other in uses {
            finding = finding.with_related(other.place.clone(), "also used here");
        }
        Some(finding)
    }

    /// From what the references lead to come the digests that are written.
    fn settle_lock(&mut self, images: Vec<LockedImage>) {
        for image in &images {
            let pinned = image.pinned();
            let written = image.reference.written().to_owned();
            self.report.images.insert(written.clone(), pinned.written().to_owned());
            self.identities.insert(pinned.written().to_owned(), image.identity());
            self.pins.insert(written, pinned);
        }
        self.images = images;
    }
}

fn locked(reference: &Reference, resolved: &Resolved) -> LockedImage {
    LockedImage {
        reference: reference.clone(),
        digest: resolved.digest.clone(),
        media_type: resolved.media_type.clone(),
        found_at: resolved.host.clone(),
        platforms: resolved
            .platforms
            .iter()
            .map(|p| LockedPlatform {
                platform: p.platform.clone(),
                manifest: p.manifest.clone(),
                config: p.config.clone(),
                size: p.size,
                contents: None,
            })
            .collect(),
    }
}

/// Tags that come to be on the cluster, as `namespace/stream:tag`: built there or imported there.
fn made_on_cluster(release: &Release) -> BTreeSet<String> {
    let outputs = release.builds.iter().map(|b| &b.output).chain(release.streams.iter().map(|s| &s.name));
    outputs
        .filter_map(|name| match name {
            ImageName::StreamTag { namespace, stream, tag } => {
                let namespace = namespace.as_deref().or(release.namespace.as_deref())?;
                Some(format!("{namespace}/{stream}:{tag}"))
            }
            ImageName::Reference(_) => None,
        })
        .collect()
}

/// The address of OpenShift's internal registry inside the cluster.
pub(crate) const INTERNAL_REGISTRY: &str = "image-registry.openshift-image-registry.svc:5000";

/// Whether a reference names a tag of the release in the cluster's internal registry. Another tag of the same stream, or a
/// digest, has to be there already.
fn names_stream(on_cluster: &BTreeSet<String>, reference: &Reference) -> bool {
    reference.registry() == INTERNAL_REGISTRY
        && reference.effective_tag().is_some_and(|tag| {
            reference.digest().is_none() && on_cluster.contains(&format!("{}:{tag}", reference.repository()))
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_very_tag_that_the_release_makes_need_not_be_there() {
        let made = BTreeSet::from(["ns/stream:py3.8".to_owned(), "ns/other:latest".to_owned()]);
        let digest = format!("ns/stream@sha256:{}", "0".repeat(64));
        let both = format!("ns/stream:py3.8@sha256:{}", "0".repeat(64));
        for (rest, expected) in [
            ("ns/stream:py3.8", true),
            ("ns/other", true),
            ("ns/stream:typo", false),
            ("ns/stream", false),
            ("ns2/stream:py3.8", false),
            (&*digest, false),
            (&*both, false),
        ] {
            let reference = Reference::parse(&format!("{INTERNAL_REGISTRY}/{rest}")).unwrap();
            assert_eq!(names_stream(&made, &reference), expected, "{rest}");
        }
        assert!(!names_stream(&made, &Reference::parse("quay.io/ns/stream:py3.8").unwrap()));
    }
}
