//! One table: what is known of every (written reference, node).
//!
//! Containers say what a node's name led to when they were started, a node's list what it led to when the list was sent, events when the
//! registry was asked. Each fact keeps its time; [`crate::meaning`] decides what they come to.

use std::collections::{BTreeMap, BTreeSet};

use scantling_image::{Digest, PullPolicy, Reference, ReferenceError, Sameness};
use scantling_observed::Observed;

use crate::images::{DigestId, Images, PlatformId};
use crate::knowledge::{Knowledge, Options};
use crate::seen::{ContainerSeen, Doing, PodSeen, PullSeen, Pulling, Seen, Text};
use crate::uses::{Use, templates};
use crate::wanted::{Meant, meant};

/// A written reference, by number; all that ask for the same thing have the same.
pub(crate) type RefId = usize;

/// Names of one image that a node lists at most (`MaxNamesPerImageInNodeStatus` of the kubelet). Digests come first, so tags are cut.
pub(crate) const LISTED_NAMES: usize = 5;
/// Seconds by which a node's list may be older than the time that it was sent: the kubelet keeps its list of images for 30 s, and a
/// pull that ends just then is in the next one.
pub(crate) const LIST_LAG: i64 = 40;
/// Seconds between looking an image up and the start of its container, and half a second of rounding at both ends.
pub(crate) const START_SLACK: i64 = 5;

/// Seconds by which an event may seem to come after what it comes before: times are cut to seconds, and an event has the time at which it
/// was sent.
pub(crate) const EVENT_ROUNDING: i64 = 2;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) reference: Reference,
    pub(crate) canonical: Text,
    /// The digest, if one is written: then nothing can be stale.
    pub(crate) pinned: Option<DigestId>,
}

/// A container that was started under a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) pod: usize,
    pub(crate) container: usize,
    pub(crate) at: i64,
    pub(crate) digest: DigestId,
    /// The registry was asked for it.
    pub(crate) pulled: bool,
}

/// What is known of one reference on one node.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// In the order of time.
    pub(crate) starts: Vec<Start>,
    /// Events, by number, in the order of time.
    pub(crate) pulls: Vec<usize>,
    /// The entry of the node's list that has the name.
    pub(crate) listed: Option<usize>,
    /// Containers that wait for the image in vain: pod and container.
    pub(crate) failing: Vec<(usize, usize)>,
}

/// A node's list, as far as it can be trusted.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) platform: PlatformId,
    /// Digests of each entry.
    pub(crate) entries: Vec<Vec<DigestId>>,
    /// Nothing is missing in it, so that what is not there was not on the node.
    pub(crate) complete: bool,
}

/// Everything that is known, in one table.
#[derive(Debug)]
pub(crate) struct Facts<'k> {
    pub(crate) seen: Seen,
    pub(crate) templates: Vec<Use>,
    pub(crate) images: Images,
    pub(crate) lists: Vec<List>,
    pub(crate) asked: Vec<Asked>,
    ids: BTreeMap<Text, Result<RefId, ReferenceError>>,
    pub(crate) table: BTreeMap<(RefId, usize), Held>,
    pub(crate) meant: Vec<Option<Meant>>,
    /// What registries answer for a reference now, if somebody knows.
    pub(crate) answers: Vec<Option<DigestId>>,
    /// When a container was started last on each node.
    started: Vec<Option<i64>>,
    /// Digests under which repositories are shown.
    own: BTreeSet<(String, DigestId)>,
    /// Repositories that some pod pulls with a secret.
    private: BTreeSet<String>,
    pub(crate) knowledge: &'k Knowledge,
}

/// Reasons of the kubelet for a container that has no image (`pkg/kubelet/images`).
const NO_IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
];

/// Does a container wait for its image in vain?
pub(crate) fn lacks_image(container: &ContainerSeen) -> bool {
    matches!(&container.doing, Doing::Waiting { reason, .. } if NO_IMAGE.contains(&reason.as_ref()))
}

/// A name in a node's list.
#[derive(Debug, Clone, Copy)]
enum Name {
    Digest(DigestId),
    Tag(RefId),
    /// Nothing that anybody asks for.
    Other,
}

impl Name {
    fn read(
        text: &str,
        asked: &BTreeMap<Text, RefId>,
        images: &mut Images,
        own: &mut BTreeSet<(String, DigestId)>,
    ) -> Self {
        let Ok(reference) = Reference::parse(text) else { return Self::Other };
        match reference.digest() {
            Some(digest) => {
                let id = images.id(digest);
                own.insert((reference.name(), id));
                Self::Digest(id)
            }
            None => asked.get(reference.canonical().as_str()).map_or(Self::Other, |id| Self::Tag(*id)),
        }
    }
}

/// What kubelets said of images: by namespace, pod and image, in the order of time.
type Said<'s> = BTreeMap<(&'s str, &'s str, &'s str), Vec<&'s PullSeen>>;

impl<'k> Facts<'k> {
    /// Gathers the facts.
    pub(crate) fn gather(observed: &Observed, knowledge: &'k Knowledge, options: &Options) -> Self {
        let mut facts = Self {
            seen: Seen::of(observed),
            templates: templates(observed),
            images: Images::default(),
            lists: Vec::new(),
            asked: Vec::new(),
            ids: BTreeMap::new(),
            table: BTreeMap::new(),
            meant: Vec::new(),
            answers: Vec::new(),
            started: Vec::new(),
            own: BTreeSet::new(),
            private: BTreeSet::new(),
            knowledge,
        };
        facts.ask();
        facts.read_lists();
        facts.learn();
        facts.trust_lists(options);
        facts.read_starts();
        facts.find_meant(observed);
        facts
    }

    /// The number of a reference.
    pub(crate) fn id(&self, written: &str) -> Option<RefId> {
        self.ids.get(written)?.as_ref().ok().copied()
    }

    /// Why a text is no reference.
    pub(crate) fn malformed(&self, written: &str) -> Option<&ReferenceError> {
        self.ids.get(written)?.as_ref().err()
    }

    /// The platform of a node.
    pub(crate) fn platform(&self, node: usize) -> PlatformId {
        self.lists.get(node).map(|list| list.platform).unwrap_or_default()
    }

    /// Are these one image, both seen on this node?
    pub(crate) fn relation_on(&self, node: usize, a: DigestId, b: DigestId) -> Sameness {
        let platform = self.platform(node);
        self.images.relation((platform, a), (platform, b))
    }

    /// A container by its numbers.
    pub(crate) fn container(&self, pod: usize, container: usize) -> Option<(&PodSeen, &ContainerSeen)> {
        let pod = self.seen.pods.get(pod)?;
        Some((pod, pod.containers.get(container)?))
    }

    /// Was this digest seen as one of the repository that is asked for? Runtimes show another repository's digest where they know the
    /// image under both, and some show none.
    pub(crate) fn is_of_repository(&self, reference: RefId, digest: DigestId) -> bool {
        self.asked.get(reference).is_some_and(|asked| self.own.contains(&(asked.reference.name(), digest)))
    }

    /// Has the node pulled anything that its list may not show yet?
    pub(crate) fn has_pulled_since_its_list(&self, node: usize) -> bool {
        let Some(sent) = self.seen.nodes.get(node).and_then(|node| node.reported) else { return true };
        let since = sent - LIST_LAG;
        let pulled =
            |pull: &PullSeen| pull.at > since && pull.node == Some(node) && pull.what == Pulling::Pulled;
        self.seen.pulls.iter().rev().take_while(|pull| pull.at > since).any(pulled)
            || self.started.get(node).copied().flatten().is_some_and(|at| at > since)
    }

    /// Can this pod use the copy that the node has, or does its kubelet ask the registry for this pod's credentials first?
    pub(crate) fn may_use(
        &self,
        reference: RefId,
        node: usize,
        digest: DigestId,
        namespace: Option<&str>,
        secrets: &[Text],
    ) -> bool {
        if !self.seen.nodes.get(node).is_some_and(|node| node.asks_for_credentials) {
            return true;
        }
        let Some(asked) = self.asked.get(reference) else { return false };
        if !self.private.contains(&asked.reference.name()) {
            return true;
        }
        let Some(held) = self.table.get(&(reference, node)) else { return false };
        held.starts.iter().any(|start| {
            self.relation_on(node, start.digest, digest) == Sameness::Same
                && self.seen.pods.get(start.pod).is_some_and(|pod| {
                    pod.secrets.is_empty()
                        || (pod.key.namespace.as_deref() == namespace
                            && pod.secrets.iter().all(|secret| secrets.contains(secret)))
                })
        })
    }

    fn ask(&mut self) {
        let mut by_canonical: BTreeMap<Text, RefId> = BTreeMap::new();
        let written: BTreeSet<Text> = self
            .seen
            .pods
            .iter()
            .flat_map(|pod| pod.containers.iter().map(|container| &container.image))
            .chain(self.templates.iter().map(|used| &used.image))
            .filter(|image| !image.is_empty())
            .cloned()
            .collect();
        for text in written {
            let id = Reference::parse(&text).map(|reference| {
                let canonical: Text = Text::from(reference.canonical());
                *by_canonical.entry(canonical.clone()).or_insert_with(|| {
                    let pinned = reference.digest().map(|digest| self.images.id(digest));
                    self.asked.push(Asked { reference, canonical, pinned });
                    self.asked.len() - 1
                })
            });
            self.ids.insert(text, id);
        }
        let with_secret = self
            .seen
            .pods
            .iter()
            .filter(|pod| !pod.secrets.is_empty())
            .flat_map(|pod| pod.containers.iter().map(|container| &container.image))
            .chain(self.templates.iter().filter(|used| !used.secrets.is_empty()).map(|used| &used.image));
        let with_secret: BTreeSet<RefId> = with_secret.filter_map(|image| self.id(image)).collect();
        self.private = with_secret
            .into_iter()
            .filter_map(|id| self.asked.get(id))
            .map(|asked| asked.reference.name())
            .collect();
    }

    fn read_lists(&mut self) {
        let canonicals: BTreeMap<Text, RefId> =
            self.asked.iter().enumerate().map(|(id, asked)| (asked.canonical.clone(), id)).collect();
        // Nodes list the same images: each name is read once.
        let mut names: BTreeMap<Text, Name> = BTreeMap::new();
        for number in 0..self.seen.nodes.len() {
            let Some(node) = self.seen.nodes.get(number) else { continue };
            let platform = self.images.platform(node.platform.as_ref());
            let mut entries = Vec::with_capacity(node.images.len());
            for (entry, image) in node.images.iter().enumerate() {
                let mut digests = Vec::new();
                for text in &image.names {
                    let name = *names
                        .entry(text.clone())
                        .or_insert_with(|| Name::read(text, &canonicals, &mut self.images, &mut self.own));
                    match name {
                        Name::Digest(id) if digests.contains(&id) => {}
                        Name::Digest(id) => digests.push(id),
                        Name::Tag(id) => {
                            self.table.entry((id, number)).or_default().listed = Some(entry);
                        }
                        Name::Other => {}
                    }
                }
                self.images.join(platform, &digests);
                let place = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                for digest in &digests {
                    self.images.place(platform, *digest, place(number), place(entry));
                }
                entries.push(digests);
            }
            self.lists.push(List { platform, entries, complete: false });
        }
        // Pods that are on no node have a platform too: none.
        self.images.platform(None);
    }

    /// What locks, registries and runtimes say about which digests are one image.
    fn learn(&mut self) {
        for release in &self.knowledge.releases {
            for image in release.images() {
                self.images.locked(image);
            }
        }
        for (_, answer) in self.knowledge.registry.iter().flat_map(crate::knowledge::RegistryAnswers::iter) {
            self.images.answered(&answer.digest, answer.config.as_ref());
        }
        for pod in &self.seen.pods {
            let Some(node) = pod.node else { continue };
            let platform = self.lists.get(node).map(|list| list.platform).unwrap_or_default();
            for container in &pod.containers {
                let Some(digest) = container.digest.as_ref().map(|digest| self.images.id(digest)) else {
                    continue;
                };
                if let Some(repository) = &container.repository {
                    self.own.insert((repository.clone(), digest));
                }
                if let Some(config) = &container.config {
                    let config = self.images.id(config);
                    self.images.config(platform, digest, config);
                }
            }
        }
        self.images.finish();
    }

    /// A list that is not full, and that has all that runs there, is taken for whole.
    fn trust_lists(&mut self, options: &Options) {
        for (number, node) in self.seen.nodes.iter().enumerate() {
            let Some(list) = self.lists.get_mut(number) else { continue };
            let count = node.images.len();
            list.complete = count > 0 && count < options.listed_images && node.reported.is_some();
        }
        for pod in &self.seen.pods {
            let Some(number) = pod.node else { continue };
            let Some(sent) = self.seen.nodes.get(number).and_then(|node| node.reported) else { continue };
            let platform = self.platform(number);
            let Some(list) = self.lists.get(number).filter(|list| list.complete) else { continue };
            let hides = pod.containers.iter().any(|container| {
                let Some(digest) = container.digest.as_ref().filter(|_| container.doing == Doing::Running)
                else {
                    return false;
                };
                let Some(id) = self.images.known(digest) else { return true };
                container.started.is_some_and(|at| at + LIST_LAG <= sent)
                    && !list.entries.iter().flatten().any(|listed| {
                        self.images.relation((platform, id), (platform, *listed)) == Sameness::Same
                    })
            });
            if hides && let Some(list) = self.lists.get_mut(number) {
                list.complete = false;
            }
        }
    }

    fn read_starts(&mut self) {
        // The last thing that a kubelet said of each container's image.
        let mut said = Said::new();
        for (number, pull) in self.seen.pulls.iter().enumerate() {
            said.entry((&pull.pod.0, &pull.pod.1, &pull.image)).or_default().push(pull);
            if let (Some(id), Some(node)) = (canonical_id(&self.ids, &pull.image), pull.node) {
                self.table.entry((id, node)).or_default().pulls.push(number);
            }
        }
        for (pod_number, pod) in self.seen.pods.iter().enumerate() {
            let Some(node) = pod.node else { continue };
            for (number, container) in pod.containers.iter().enumerate() {
                let Some(id) = canonical_id(&self.ids, &container.image) else { continue };
                if lacks_image(container) {
                    self.table.entry((id, node)).or_default().failing.push((pod_number, number));
                }
                let (Some(digest), Some(at)) = (&container.digest, container.started) else { continue };
                let Some(digest) = self.images.known(digest) else { continue };
                let key = (pod.key.namespace.as_deref().unwrap_or_default(), pod.key.name.as_str());
                let events = said.get(&(key.0, key.1, container.image.as_ref()));
                let last = events.into_iter().flatten().rfind(|pull| {
                    pull.at <= at + EVENT_ROUNDING
                        && pull.what != Pulling::Failed
                        && pull.is_about(&container.name)
                });
                let pulled = last.is_some_and(|pull| pull.what == Pulling::Pulled)
                    || container.policy == Some(PullPolicy::Always);
                let held = self.table.entry((id, node)).or_default();
                held.starts.push(Start { pod: pod_number, container: number, at, digest, pulled });
            }
        }
        self.started = vec![None; self.seen.nodes.len()];
        for ((_, node), held) in &mut self.table {
            if let Some(started) = self.started.get_mut(*node) {
                *started = held.starts.iter().map(|start| Some(start.at)).max().flatten().max(*started);
            }
            held.starts.sort_by_key(|start| (start.at, start.pod, start.container));
        }
    }

    fn find_meant(&mut self, observed: &Observed) {
        let registry = self.knowledge.registry.as_ref();
        let answers = self.asked.iter().map(|asked| {
            let answer = registry.and_then(|answers| answers.get(&asked.canonical))?;
            Some(answer.digest.clone())
        });
        let answers: Vec<Option<Digest>> = answers.collect();
        self.answers =
            answers.into_iter().map(|digest| digest.map(|digest| self.images.id(&digest))).collect();
        self.meant = meant(self, observed);
    }
}

fn canonical_id(ids: &BTreeMap<Text, Result<RefId, ReferenceError>>, written: &str) -> Option<RefId> {
    ids.get(written)?.as_ref().ok().copied()
}
