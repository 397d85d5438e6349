//! Scantling's controllers: the reconcilers on the driver, with what is known of images.

use std::collections::BTreeSet;
use std::sync::Arc;

use scantling_api::GroupVersionKind;
use scantling_cluster::{Clock, Cluster, DriveSettings, Driven};
use scantling_contents::shown_version;
use scantling_image::{Platform, Reference};
use scantling_observed::{Observed, PackageVersion};
use scantling_reconcile::{Known, KnownImage, KnownImages, RECONCILERS};
use scantling_registry::RegistryClient;

use crate::record::{Actor, Recorder};

/// What the controllers need.
pub(crate) struct Controllers {
    /// The cluster.
    pub cluster: Cluster,
    /// Where contents of images are read.
    pub registry: RegistryClient,
    /// The platform's namespace.
    pub namespace: String,
    /// The present time.
    pub clock: Clock,
    /// Where writes are told.
    pub recorder: Recorder,
}

impl Controllers {
    /// Runs for as long as it is polled; returns why it can't go on.
    pub(crate) async fn run(&self) -> String {
        let images = match self.known_images().await {
            Ok(images) => images,
            Err(error) => return error,
        };
        let settings = DriveSettings {
            reconcilers: RECONCILERS,
            namespace: &self.namespace,
            known: tokio::sync::watch::channel(Some(Arc::new(Known { images, platform: None }))).1,
            look: &|_| {},
            clock: self.clock,
        };
        let mut tell = |event: scantling_cluster::DriveEvent| match event.what {
            Driven::Wrote { write } => self.recorder.say(&Actor::Scantling, format!("controllers: {write}")),
            Driven::Failed { write, why, .. } => {
                self.recorder.say(&Actor::Scantling, format!("controllers: {write} failed: {why}"));
            }
            _ => {}
        };
        match self.cluster.drive(&settings, &mut tell, std::future::pending()).await {
            Ok(()) => "they were told to".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Reads the contents of every image that runs, so that a mark can say which packages differ.
    async fn known_images(&self) -> Result<KnownImages, String> {
        let failed = |error: scantling_cluster::ClusterError| error.to_string();
        let served = self.cluster.served().await.map_err(failed)?;
        let kinds = [
            GroupVersionKind::new("", "v1", "Pod"),
            GroupVersionKind::new("scantling.dev", "v1alpha1", "NotebookImage"),
        ];
        let observed = self.cluster.observe(&served, &kinds, None).await.map_err(failed)?;
        let shown = shown_names(&observed);
        let mut known = KnownImages::new();
        for reference in running(&observed) {
            let Ok(resolved) = self.registry.resolve(&reference).await else { continue };
            let platform =
                resolved.platforms.first().map_or_else(Platform::linux_amd64, |it| it.platform.clone());
            let Ok(contents) = self.registry.contents(&reference, &platform).await else { continue };
            known.insert(KnownImage {
                identity: resolved.identity,
                packages: shown
                    .iter()
                    .filter_map(|name| {
                        let version = shown_version(&contents, name)?;
                        Some(PackageVersion { name: name.clone(), version })
                    })
                    .collect(),
            });
        }
        Ok(known)
    }
}

/// Every name that the catalogue shows a version for.
fn shown_names(observed: &Observed) -> BTreeSet<String> {
    let entries = observed.notebook_images().filter_map(|entry| entry.spec().ok());
    entries.flat_map(|spec| spec.packages.into_iter().map(|package| package.name)).collect()
}

fn running(observed: &Observed) -> Vec<Reference> {
    let mut found: Vec<Reference> = observed
        .pods()
        .flat_map(scantling_observed::Pod::containers)
        .filter_map(|container| container.image_id()?.ok()?.reference().cloned())
        .collect();
    found.sort();
    found.dedup();
    found
}
