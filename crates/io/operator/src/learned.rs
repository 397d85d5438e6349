//! What was learned besides the bookkeeping: contents of images, and what notebooks say of themselves.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use scantling_api::ObjectKey;
use scantling_image::Reference;
use scantling_reconcile::{Activity, Known, KnownImage, KnownImages, PlatformFacts};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::known::{Contents, Seen};

#[derive(Debug, Default)]
struct State {
    contents: Contents,
    /// None until the bookkeeping was read.
    images_of_runs: Option<KnownImages>,
    /// Whether everything that can be read has been, as far as is known.
    all_read: bool,
    activity: BTreeMap<ObjectKey, Activity>,
}

/// What was learned, for whoever tells the reconcilers.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    state: Mutex<State>,
    something: Notify,
    images: Notify,
    read: Notify,
}

impl Learned {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of images that runs have read, which need not be read again.
    pub(crate) fn images_of_runs(&self, images: KnownImages) {
        let mut state = self.state();
        if state.images_of_runs.as_ref() != Some(&images) {
            state.images_of_runs = Some(images);
            drop(state);
            self.images.notify_one();
        }
    }

    /// The next image to be read.
    pub(crate) fn next_image(&self, seen: &Seen) -> Option<Reference> {
        let mut state = self.state();
        let state = &mut *state;
        let next = state.contents.missing(seen, state.images_of_runs.as_ref()?);
        state.all_read = next.is_none();
        if state.all_read {
            self.read.notify_one();
        }
        next
    }

    /// When an image that could not be read is to be tried again.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.state().contents.next_due()
    }

    /// Takes note of what an image contains; why nothing is known of it, if so.
    pub(crate) fn took(&self, image: Reference, contents: Result<KnownImage, String>) -> Option<String> {
        let why = self.state().contents.took(image, contents);
        self.something.notify_one();
        why
    }

    /// Takes note of what notebooks have said. Those that were not asked, or were silent, have said what they said before.
    pub(crate) fn heard(&self, heard: impl Iterator<Item = (ObjectKey, Activity)>, asked: &[ObjectKey]) {
        let mut state = self.state();
        state.activity.retain(|key, _| asked.contains(key));
        state.activity.extend(heard);
        drop(state);
        self.something.notify_one();
    }

    /// Everything that is known.
    pub(crate) fn known(&self, platform: PlatformFacts, images: &KnownImages) -> Known {
        let state = self.state();
        Known {
            images: state.contents.with(images),
            platform: Some(platform),
            activity: state.activity.clone(),
        }
    }

    /// Waits until something was learned since this was asked last.
    pub(crate) async fn something(&self) {
        self.something.notified().await;
    }

    /// Waits until other images are known from runs.
    pub(crate) async fn images_changed(&self) {
        self.images.notified().await;
    }

    /// Waits until there is no image that is being read or waits for it.
    pub(crate) async fn nothing_is_read(&self) {
        while !self.state().all_read {
            self.read.notified().await;
        }
    }
}
