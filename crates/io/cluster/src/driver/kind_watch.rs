//! The watch of one kind, listed first, opened again when it breaks.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use kube::Api;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use scantling_api::GroupVersionKind;
use scantling_observed::slim;
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep};

use super::cache::Change;
use crate::served::Resource;
use crate::stack::Jitter;

/// The pause after a watch broke, doubled each time it breaks again without a change in between.
const FIRST: Duration = Duration::from_millis(800);
/// The longest pause, as `kube` has it.
const LONGEST: Duration = Duration::from_secs(30);
/// Objects of one page of the list.
const PAGE: u32 = 250;

pub(crate) struct KindWatch {
    gvk: GroupVersionKind,
    stream: BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>>,
    pause: Option<Pin<Box<Sleep>>>,
    breaks: u32,
    listed: bool,
    /// When it is to be listed anew.
    due: Option<Instant>,
    jitter: Jitter,
}

impl KindWatch {
    /// Watches all objects of a kind, in all namespaces or in one; only some, if a field selector says which.
    pub(crate) fn open(
        client: kube::Client,
        resource: &Resource,
        namespace: Option<&str>,
        fields: Option<&str>,
        jitter: Jitter,
    ) -> Self {
        let api_resource = ApiResource {
            group: resource.gvk.group.clone(),
            version: resource.gvk.version.clone(),
            api_version: resource.gvk.api_version(),
            kind: resource.gvk.kind.clone(),
            plural: resource.plural.clone(),
        };
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &api_resource),
            None => Api::all_with(client, &api_resource),
        };
        let mut config = watcher::Config::default().page_size(PAGE);
        if let Some(fields) = fields {
            config = config.fields(fields);
        }
        let stream = watcher(api, config).boxed();
        Self { gvk: resource.gvk.clone(), stream, pause: None, breaks: 0, listed: false, due: None, jitter }
    }

    /// From then on it is due to be listed anew.
    pub(crate) fn list_again_after(&mut self, time: Duration) {
        self.due = Some(Instant::now() + time);
    }

    /// Is it to be listed anew?
    pub(crate) fn is_due(&self) -> bool {
        self.listed && self.due.is_some_and(|due| due <= Instant::now())
    }

    /// Takes the place of another one, whose list stands until there is a new one.
    pub(crate) fn continues(&mut self, other: &Self) {
        self.listed = other.listed;
    }

    pub(crate) fn gvk(&self) -> &GroupVersionKind {
        &self.gvk
    }

    /// Whether the kind has been listed once.
    pub(crate) fn is_listed(&self) -> bool {
        self.listed
    }

    /// The next change, or why the watch broke. It is opened again after a pause.
    pub(crate) fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<Result<Change, String>> {
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.poll_unpin(cx));
            self.pause = None;
        }
        match std::task::ready!(self.stream.poll_next_unpin(cx)) {
            Some(Ok(event)) => {
                self.breaks = 0;
                Poll::Ready(Ok(self.change(event)))
            }
            Some(Err(error)) => {
                self.breaks = self.breaks.saturating_add(1);
                self.pause = Some(Box::pin(sleep(self.jitter.backoff(FIRST, LONGEST, self.breaks))));
                Poll::Ready(Err(error.to_string()))
            }
            // The watcher's stream has no end.
            None => Poll::Pending,
        }
    }

    fn change(&mut self, event: Event<DynamicObject>) -> Change {
        match event {
            Event::Init => Change::ListBegins,
            Event::InitApply(object) => Change::Listed(self.whole(object)),
            Event::InitDone => {
                self.listed = true;
                Change::ListEnds
            }
            Event::Apply(object) => Change::Present(self.whole(object)),
            Event::Delete(object) => Change::Gone(self.whole(object)),
        }
    }

    /// The object as JSON; items of a list do not say their kind themselves.
    fn whole(&self, object: DynamicObject) -> Value {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("apiVersion".to_owned(), Value::String(self.gvk.api_version()));
            fields.insert("kind".to_owned(), Value::String(self.gvk.kind.clone()));
        }
        slim(&mut value);
        value
    }
}
