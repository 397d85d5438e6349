//! The contents of images that notebooks run, read from registries.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_contents::shown_version;
use scantling_image::{Digest, Platform as ImagePlatform, Reference};
use scantling_observed::PackageVersion;
use scantling_reconcile::{KnownImage, KnownImages};
use scantling_registry::RegistryClient;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::books::Booked;
use crate::operator::Operator;
use crate::seen::Seen;
use crate::told::Told;

/// After this time an image whose contents could not be read is tried again.
const UNREAD_FOR: Duration = Duration::from_mins(10);
/// Images that are read one after the other before anything else is looked at again.
const AT_A_TIME: usize = 16;
/// How long one image may take. The largest have some gigabytes.
const PATIENCE: Duration = Duration::from_mins(10);

/// The contents of images that no run has read.
#[derive(Debug, Default)]
struct Contents {
    read: BTreeMap<Reference, KnownImage>,
    unread: BTreeMap<Reference, Instant>,
    /// What was shown when they were read.
    shown: BTreeSet<String>,
}

impl Contents {
    /// What runs, whose contents nobody knows and were not tried lately: a few.
    fn missing(&mut self, seen: &Seen, images: &KnownImages) -> Vec<Reference> {
        if self.shown != seen.shown {
            self.shown.clone_from(&seen.shown);
            self.read.clear();
        }
        let now = Instant::now();
        self.unread.retain(|image, since| seen.running.contains(image) && now - *since < UNREAD_FOR);
        self.read.retain(|image, _| seen.running.contains(image));
        let known = |digest: Option<&Digest>| digest.is_none_or(|digest| images.get(digest).is_some());
        let wanted = seen.running.iter().filter(|image| {
            !known(image.digest()) && !self.read.contains_key(*image) && !self.unread.contains_key(*image)
        });
        wanted.take(AT_A_TIME).cloned().collect()
    }

    fn took(&mut self, image: Reference, contents: Result<KnownImage, String>) -> Option<String> {
        match contents {
            Ok(known) => {
                self.read.insert(image, known);
                None
            }
            Err(why) => {
                self.unread.insert(image, Instant::now());
                Some(why)
            }
        }
    }

    /// When something is to be tried again.
    fn next_due(&self) -> Option<Instant> {
        self.unread.values().map(|since| *since + UNREAD_FOR).min()
    }
}

impl Operator {
    /// Reads the contents of images that notebooks run and no run has read, for as long as it is polled, and sends what it knows.
    /// Registries may take their time: nothing else waits for this.
    pub(crate) async fn read_contents(
        &self,
        read: &watch::Sender<Option<Vec<KnownImage>>>,
        mut books: watch::Receiver<Option<Booked>>,
        mut seen: watch::Receiver<Option<Seen>>,
    ) {
        let mut contents = Contents::default();
        if seen.wait_for(Option::is_some).await.is_err() || books.wait_for(Option::is_some).await.is_err() {
            return;
        }
        loop {
            let now = seen.borrow_and_update().clone().unwrap_or_default();
            let images = books.borrow_and_update().as_ref().map(|booked| booked.images.clone());
            let missing = contents.missing(&now, &images.unwrap_or_default());
            let more = missing.len() == AT_A_TIME;
            self.read_all(&mut contents, missing, &now.shown).await;
            read.send_if_modified(|known| {
                let new = Some(contents.read.values().cloned().collect());
                let news = *known != new;
                *known = new;
                news
            });
            if more {
                continue;
            }
            let again = contents.next_due().unwrap_or_else(|| Instant::now() + UNREAD_FOR);
            tokio::select! {
                biased;
                open = seen.changed() => if open.is_err() { return },
                open = books.changed() => if open.is_err() { return },
                () = sleep_until(again) => {}
            }
        }
    }

    async fn read_all(&self, contents: &mut Contents, missing: Vec<Reference>, shown: &BTreeSet<String>) {
        if missing.is_empty() {
            return;
        }
        let registry = self.registry().await;
        for image in missing {
            let result = match &registry {
                Ok(registry) => match timeout(PATIENCE, contents_of(registry, &image, shown)).await {
                    Ok(result) => result,
                    Err(_) => Err(format!("it could not be read in {} minutes", PATIENCE.as_secs() / 60)),
                },
                Err(why) => Err(why.clone()),
            };
            if let Some(why) = contents.took(image.clone(), result) {
                self.tell(Told::ImageUnread { image: image.to_string(), why });
            }
        }
    }
}

/// What an image contains, of what screens show.
///
/// # Errors
/// In words, when the registry cannot be asked or the image cannot be read.
pub async fn contents_of(
    registry: &RegistryClient,
    image: &Reference,
    shown: &BTreeSet<String>,
) -> Result<KnownImage, String> {
    let resolved = registry.resolve(image).await.map_err(|error| error.to_string())?;
    let platform =
        resolved.platforms.first().map_or_else(ImagePlatform::linux_amd64, |it| it.platform.clone());
    let contents = registry.contents(image, &platform).await.map_err(|error| error.to_string())?;
    let packages = shown.iter().filter_map(|name| {
        let version = shown_version(&contents, name)?;
        Some(PackageVersion { name: name.clone(), version })
    });
    Ok(KnownImage { identity: resolved.identity, packages: packages.collect() })
}
