//! Whether an image can be pulled, place by place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::stream::{self, StreamExt as _};
use http::{Method, StatusCode, header};
use scantling_endpoint::{Attempt, Selector};
use scantling_image::{Digest, Platform, Reference};
use serde::Serialize;
use tokio::sync::OnceCell;

use crate::client::{Inner, RegistryClient};
use crate::document::{CONFIG_MAX, Content, Descriptor, Document};
use crate::error::{Place, Problem, RegistryError};
use crate::fetch::short;
use crate::hosts::lock;
use crate::resolve::{Resolved, as_manifest, empty, platform_in};
use crate::verdict::Verdict;

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What holds for a node with these rules and credentials: pullable if any place serves the image.
    pub verdict: Verdict,
    /// Every place, in order, each judged by itself. All are asked: that a later place serves the image must not hide that a
    /// mirror lacks it.
    pub attempts: Vec<ProbeAttempt>,
    /// The image with the wanted platforms only: as the registry has it that the reference names, else as the first mirror
    /// that serves it. A mirror may keep what a tag led to long ago.
    pub resolved: Option<Resolved>,
}

impl Probe {
    /// The places that serve the image, each with its digest, if they do not all serve the same.
    pub fn disagreement(&self) -> Vec<(&ProbeAttempt, &Digest)> {
        let served: Vec<_> = self.attempts.iter().filter_map(|a| Some((a, a.digest.as_ref()?))).collect();
        let same = served.windows(2).all(|pair| matches!(pair, [(_, one), (_, other)] if one == other));
        if same { Vec::new() } else { served }
    }
}

/// One place, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProbeAttempt {
    /// What was asked for there: `host/repository:tag` or `host/repository@digest`.
    pub endpoint: String,
    /// The mirror rule that leads there; none for the registry that the reference names.
    pub via: Option<String>,
    /// Where the credential came from, if one was used.
    pub credential: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// The digest of what is served there, if it is.
    pub digest: Option<Digest>,
    /// What was found, for people.
    pub detail: String,
}

impl RegistryClient {
    /// Asks every place that a node would ask for the image: manifest, configuration, and one byte of each layer, for every wanted
    /// platform (all that the image has, if none is wanted). A registry answers `HEAD` and even manifests from its database; only
    /// bytes show that the bytes are there.
    pub async fn probe(&self, reference: &Reference, wanted: &[Platform]) -> Probe {
        self.inner.probe(reference, wanted, &[], &Seen::default()).await
    }

    /// The same for an image that is known already, from a lock for instance: where its index is missing, its images by platform
    /// are looked for, so that a copy of one platform is recognised as such.
    pub async fn probe_known(
        &self,
        reference: &Reference,
        wanted: &[Platform],
        known: &[(Platform, Digest)],
    ) -> Probe {
        self.inner.probe(reference, wanted, known, &Seen::default()).await
    }

    /// Probes several references, several at a time, and asks for what they share only once. The results are in the order of the
    /// references.
    pub async fn probe_all(&self, references: &[(Reference, Vec<Platform>)]) -> Vec<Probe> {
        let seen = Seen::default();
        let probes: Vec<_> = references
            .iter()
            .map(|(reference, wanted)| self.inner.probe(reference, wanted, &[], &seen))
            .collect();
        stream::iter(probes).buffered(self.inner.options.parallel.max(1)).collect().await
    }
}

type Place3 = (String, String, Digest);
type Answer = Arc<OnceCell<Result<(), RegistryError>>>;

/// Layers that were asked for, by registry, repository and digest.
#[derive(Default)]
pub(crate) struct Seen(Mutex<BTreeMap<Place3, Answer>>);

impl Seen {
    fn layer(&self, attempt: &Attempt, digest: &Digest) -> Answer {
        let key = (attempt.host.clone(), attempt.repository.clone(), digest.clone());
        Arc::clone(lock(&self.0).entry(key).or_default())
    }
}

impl Inner {
    async fn probe(
        &self,
        reference: &Reference,
        wanted: &[Platform],
        known: &[(Platform, Digest)],
        seen: &Seen,
    ) -> Probe {
        let places = match self.attempts(reference) {
            Ok(places) => places,
            Err(error) => {
                let attempt = ProbeAttempt {
                    endpoint: reference.canonical(),
                    via: None,
                    credential: None,
                    verdict: error.verdict(),
                    digest: None,
                    detail: error.problem.to_string(),
                };
                return Probe { verdict: error.verdict(), attempts: vec![attempt], resolved: None };
            }
        };
        let mut found = Vec::with_capacity(places.len());
        for place in &places {
            found.push(self.probe_at(place, wanted, seen).await);
        }
        let served =
            || places.iter().zip(&found).filter_map(|(place, found)| Some((place, found.as_ref().ok()?)));
        let named = served().find(|(place, _)| place.via.is_none());
        let resolved = named.or_else(|| served().next()).map(|(_, found)| found.clone());
        let children = if known.is_empty() { self.children(reference) } else { known.to_vec() };
        let mut attempts = Vec::with_capacity(places.len());
        for (place, found) in places.iter().zip(found) {
            let digest = found.as_ref().ok().map(|found| found.digest.clone());
            let (verdict, detail) = match found {
                Ok(found) => (Verdict::Pullable, pullable(&found)),
                Err(error) => {
                    let error = self.with_nearby(place, reference.tag(), &children, error).await;
                    (error.verdict(), error.detail())
                }
            };
            let credential = place.credential.and_then(|id| self.keyring.credential(id));
            attempts.push(ProbeAttempt {
                endpoint: place.name(),
                via: place.via.clone(),
                credential: credential.map(ToString::to_string),
                verdict,
                digest,
                detail,
            });
        }
        let verdict = Verdict::joined(attempts.iter().map(|attempt| attempt.verdict));
        Probe { verdict, attempts, resolved }
    }

    /// The images of the index that the reference pins, if it was read before, from another place for instance.
    fn children(&self, reference: &Reference) -> Vec<(Platform, Digest)> {
        let document = reference.digest().and_then(|digest| lock(&self.documents).get(digest));
        match document.as_ref().map(|document| &document.content) {
            Some(Content::Index(entries)) => entries
                .iter()
                .filter_map(|entry| Some((entry.platform.clone()?, entry.descriptor.digest.clone())))
                .collect(),
            _ => Vec::new(),
        }
    }

    async fn probe_at(
        &self,
        attempt: &Attempt,
        wanted: &[Platform],
        seen: &Seen,
    ) -> Result<Resolved, RegistryError> {
        // The bytes of the manifest are fetched in any case; by digest, once that is known.
        let root = match self.head(attempt, &attempt.selector).await? {
            Some(digest) => self.manifest(attempt, &Selector::Digest(digest)).await?,
            None => self.manifest(attempt, &attempt.selector).await?,
        };
        let place = Place::new(&attempt.host, &attempt.repository, format!("manifest {}", attempt.selector));
        let mut resolved = empty(attempt, &root);
        let mut images: Vec<(Option<Platform>, Arc<Document>)> = Vec::new();
        match &root.content {
            Content::Manifest(_) => images.push((None, Arc::clone(&root))),
            Content::Index(entries) => {
                let there: Vec<(&Platform, &Digest)> = entries
                    .iter()
                    .filter_map(|entry| Some((entry.platform.as_ref()?, &entry.descriptor.digest)))
                    .collect();
                resolved.identity.manifests.extend(there.iter().map(|(_, digest)| (*digest).clone()));
                let chosen = chosen(&there, wanted).map_err(|problem| place.error(problem))?;
                let asked: Vec<_> = chosen
                    .into_iter()
                    .map(|(platform, digest)| async move {
                        (platform, self.manifest(attempt, &Selector::Digest(digest.clone())).await)
                    })
                    .collect();
                let mut fetched = stream::iter(asked).buffered(self.options.parallel.max(1));
                while let Some((platform, document)) = fetched.next().await {
                    images.push((Some(platform.clone()), document?));
                }
            }
        }
        for (stated, document) in &images {
            let manifest = as_manifest(attempt, document)?;
            let config = self.blob(attempt, &manifest.config, "configuration", CONFIG_MAX).await?;
            let platform = if let Some(platform) = stated {
                platform.clone()
            } else {
                let platform = platform_in(attempt, manifest, &config)?;
                let missing: Vec<Platform> =
                    wanted.iter().filter(|wanted| !platform.matches(wanted)).cloned().collect();
                if !missing.is_empty() {
                    let found = vec![platform];
                    return Err(place.error(Problem::WrongPlatform { wanted: missing, found }));
                }
                platform
            };
            resolved.add(platform, document, manifest);
            let own = manifest.layers.iter().filter(|layer| !layer.is_foreign());
            let asked: Vec<_> = own.map(|layer| self.layer_once(attempt, layer, seen)).collect();
            let mut layers = stream::iter(asked).buffered(self.options.parallel.max(1));
            while let Some(answer) = layers.next().await {
                answer?;
            }
        }
        Ok(resolved)
    }

    async fn layer_once(
        &self,
        attempt: &Attempt,
        layer: &Descriptor,
        seen: &Seen,
    ) -> Result<(), RegistryError> {
        let answer = seen.layer(attempt, &layer.digest);
        answer.get_or_init(|| self.layer(attempt, layer)).await.clone()
    }

    /// Asks for the first byte of a layer.
    async fn layer(&self, attempt: &Attempt, layer: &Descriptor) -> Result<(), RegistryError> {
        let place = Place::new(&attempt.host, &attempt.repository, format!("layer {}", layer.digest));
        let range = (layer.size > 0).then_some("bytes=0-0");
        let answered = self.blob_request(&place, attempt, &layer.digest, Method::GET, range).await?;
        let status = answered.response.status();
        if status != StatusCode::OK && status != StatusCode::PARTIAL_CONTENT {
            return Err(self.refused(&place, attempt, answered).await);
        }
        let header = |name| answered.response.headers().get(name).and_then(|value| value.to_str().ok());
        // `bytes 0-0/1234`, or the length of the whole where ranges are not served.
        let stored = match status {
            StatusCode::PARTIAL_CONTENT => {
                header(header::CONTENT_RANGE).and_then(|text| text.rsplit('/').next())
            }
            _ => header(header::CONTENT_LENGTH),
        };
        if let Some(stored) = stored.and_then(|text| text.parse::<u64>().ok())
            && stored != layer.size
        {
            return Err(place.error(short(layer, stored)));
        }
        let mut body = answered.response.into_body();
        if self.piece(&place, &mut body).await?.is_none() && layer.size > 0 {
            return Err(place.error(short(layer, 0)));
        }
        Ok(())
    }
}

/// The entries that serve the wanted platforms, each once, in the order of the index; all if none is wanted.
fn chosen<'a>(
    there: &[(&'a Platform, &'a Digest)],
    wanted: &[Platform],
) -> Result<Vec<(&'a Platform, &'a Digest)>, Problem> {
    let platforms = || there.iter().map(|(platform, _)| *platform);
    if wanted.is_empty() {
        return Ok(there.to_vec());
    }
    let found: Vec<Option<usize>> =
        wanted.iter().map(|wanted| Platform::select(platforms(), wanted)).collect();
    if found.contains(&None) {
        let missing = wanted.iter().zip(&found).filter(|(_, place)| place.is_none());
        return Err(Problem::WrongPlatform {
            wanted: missing.map(|(platform, _)| platform.clone()).collect(),
            found: platforms().cloned().collect(),
        });
    }
    let takes = |place: usize| found.contains(&Some(place));
    Ok(there.iter().enumerate().filter(|(place, _)| takes(*place)).map(|(_, entry)| *entry).collect())
}

fn pullable(resolved: &Resolved) -> String {
    let platforms: Vec<String> = resolved.platforms.iter().map(|image| image.platform.to_string()).collect();
    let mut layers: Vec<&Digest> =
        resolved.platforms.iter().flat_map(|image| image.layers.iter().map(|layer| &layer.digest)).collect();
    layers.sort_unstable();
    layers.dedup();
    format!(
        "{} for {}: manifest, configuration and {} layers",
        resolved.digest,
        platforms.join(", "),
        layers.len()
    )
}
