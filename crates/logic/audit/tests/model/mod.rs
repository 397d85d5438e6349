//! Nodes, a registry and pods, as they really are; see `oracle.rs`.

mod chance;
mod shown;
mod things;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use chance::Chance;
pub(crate) use things::{
    Ask, Basis, Content, Dialect, Event, Manifest, Node, Outcome, Pod, Policy, Stored, Template,
};

/// What would come of a start.
enum Got {
    Has(Content, usize),
    Pulls(usize),
    Fails,
}

pub(crate) struct World {
    chance: Chance,
    pub(crate) now: i64,
    pub(crate) basis: Basis,
    /// Nothing is cut, late or shown by another name.
    clear: bool,
    pub(crate) listed_images: usize,
    pub(crate) manifests: Vec<Manifest>,
    /// Of each tag: its repository, and the manifest that it leads to now.
    pub(crate) tags: Vec<(usize, usize)>,
    pub(crate) locked: Vec<usize>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) templates: Vec<Template>,
    pub(crate) events: Vec<Event>,
    /// The last pulls of each tag: when, and what it was.
    pulls: Vec<Vec<(i64, Content)>>,
    story: String,
    made: usize,
}

const REPOSITORIES: usize = 2;
const TAGS: usize = 6;
const NODES: usize = 4;

impl World {
    pub(crate) fn play(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let basis = match chance.below(5) {
            0 | 1 => Basis::Registry { configs: chance.one_in(2) },
            2 | 3 => Basis::Lock,
            _ => Basis::None,
        };
        let clear = chance.one_in(4);
        let mut world = Self {
            now: 0,
            basis: if clear { Basis::Registry { configs: true } } else { basis },
            clear,
            listed_images: if clear { 50 } else { [50, 50, 4, 3][chance.below(4)] },
            manifests: Vec::new(),
            tags: Vec::new(),
            locked: Vec::new(),
            nodes: Vec::new(),
            pods: Vec::new(),
            templates: Vec::new(),
            events: Vec::new(),
            pulls: vec![Vec::new(); TAGS],
            story: String::new(),
            made: 0,
            chance,
        };
        world.set_up();
        let steps = 10 + world.chance.below(30);
        for _ in 0..steps {
            let most = [5, 50][world.chance.below(2)];
            world.now += 1 + i64::try_from(world.chance.below(most)).unwrap();
            world.read_stores();
            world.step();
            world.try_again();
        }
        if world.clear {
            world.now += 100;
            for node in 0..NODES {
                world.read_store(node);
                world.send_list(node);
            }
            world.now += 1;
        } else {
            world.now += 5 + i64::try_from(world.chance.below(60)).unwrap();
        }
        world
    }

    fn set_up(&mut self) {
        let one = self.chance.one_in(2);
        for repository in 0..REPOSITORIES {
            for _ in 0..2 {
                self.push(repository, None);
            }
        }
        for tag in 0..TAGS {
            // Half of the worlds have one repository, so that images get more names than a list shows.
            let repository = if one { 0 } else { tag % REPOSITORIES };
            let manifest = self.any_manifest(repository);
            self.tags.push((repository, manifest));
        }
        for _ in 0..NODES {
            let dialect = match self.chance.below(6) {
                _ if self.clear => Dialect::Containerd,
                0 => Dialect::Plain,
                1 => Dialect::Docker,
                2 => Dialect::Bare,
                _ => Dialect::Containerd,
            };
            let asks_for_credentials = !self.clear && self.chance.one_in(3);
            self.nodes.push(Node {
                dialect,
                asks_for_credentials,
                store: BTreeMap::new(),
                list: None,
                cache: None,
            });
        }
        for number in 0..6 {
            let template = Template {
                name: format!("template-{number}"),
                ask: self.ask(),
                policy: self.policy(),
                secret: self.secret(),
            };
            self.templates.push(template);
        }
        self.locked = self.tags.iter().map(|(_, manifest)| *manifest).collect();
    }

    /// A new manifest of a content, new or known.
    fn push(&mut self, repository: usize, content: Option<Content>) -> usize {
        let new = self.manifests.iter().map(|manifest| manifest.content + 1).max().unwrap_or(0);
        self.manifests.push(Manifest { repository, content: content.unwrap_or(new) });
        self.manifests.len() - 1
    }

    fn any_manifest(&mut self, repository: usize) -> usize {
        let own: Vec<usize> =
            (0..self.manifests.len()).filter(|it| self.manifests[*it].repository == repository).collect();
        own[self.chance.below(own.len())]
    }

    fn ask(&mut self) -> Ask {
        match self.chance.below(8) {
            0 => Ask::Manifest(self.chance.below(self.manifests.len())),
            _ => Ask::Tag(self.chance.below(TAGS)),
        }
    }

    fn policy(&mut self) -> Policy {
        match self.chance.below(8) {
            0 => Policy::Always,
            1 => Policy::Never,
            _ => Policy::IfNotPresent,
        }
    }

    fn secret(&mut self) -> Option<usize> {
        (!self.clear && self.chance.one_in(4)).then(|| self.chance.below(2))
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.story, "{:>5} {what}", self.now).unwrap();
    }

    fn step(&mut self) {
        match self.chance.below(20) {
            0..=2 => self.move_tag(),
            3..=9 => self.start_pod(),
            10..=12 => self.restart_pod(),
            13 => self.delete_pod(),
            14 => self.burst(),
            15 => self.collect(),
            16 if !self.clear => {
                self.locked = self.tags.iter().map(|(_, manifest)| *manifest).collect();
                self.tell("the lock is made");
            }
            _ => {
                let node = self.chance.below(NODES);
                self.send_list(node);
            }
        }
    }

    fn move_tag(&mut self) {
        let tag = self.chance.below(TAGS);
        self.move_this_tag(tag);
    }

    fn move_this_tag(&mut self, tag: usize) {
        let (repository, before) = self.tags[tag];
        let manifest = match self.chance.below(4) {
            // The same content, compressed anew.
            0 => self.push(repository, Some(self.manifests[before].content)),
            // To and fro.
            1 => self.any_manifest(repository),
            _ => self.push(repository, None),
        };
        self.tags[tag].1 = manifest;
        let content = self.manifests[manifest].content;
        self.tell(&format!("tag {tag} means manifest {manifest} of content {content}"));
    }

    /// Two pods in the same seconds, and the tag moves between them: the first one's image is looked up before, its process runs after.
    fn burst(&mut self) {
        let Some(pod) = self.pods.last().cloned() else { return };
        let Ask::Tag(tag) = pod.ask else { return };
        let again = |policy: Policy, name: String| Pod { name, policy, ..pod.clone() };
        self.made += 2;
        self.pods.push(again(Policy::IfNotPresent, format!("pod-{}", self.made - 2)));
        self.start_after(self.pods.len() - 1, 4);
        self.move_this_tag(tag);
        self.now += 1;
        self.pods.push(again(Policy::Always, format!("pod-{}", self.made - 1)));
        self.start_after(self.pods.len() - 1, 0);
    }

    fn start_pod(&mut self) {
        let ask = if self.chance.one_in(25) { Ask::Nowhere } else { self.ask() };
        let (policy, secret) = (self.policy(), self.secret());
        let node = self.chance.below(NODES);
        let name = format!("pod-{}", self.made);
        self.made += 1;
        self.pods.push(Pod { name, node, ask, policy, secret, runs: None, written: String::new() });
        self.start(self.pods.len() - 1);
    }

    /// What a kubelet does for a container.
    fn start(&mut self, number: usize) {
        // The next pod's image may be looked up before this one's process runs.
        let after = self.chance.below(5);
        self.start_after(number, after);
    }

    fn start_after(&mut self, number: usize, seconds: usize) {
        let pod = self.pods[number].clone();
        let got = self.get(pod.node, pod.ask, pod.policy, pod.secret);
        let started = self.now + i64::try_from(seconds).unwrap();
        let event =
            Event { at: self.now, node: pod.node, pod: pod.name.clone(), ask: pod.ask, pulled: false };
        let runs = match got {
            Got::Has(content, manifest) => {
                self.events.push(event);
                let stored = self.nodes[pod.node].store.get_mut(&content).unwrap();
                if let Some(secret) = pod.secret.filter(|_| !stored.open) {
                    stored.secrets.insert(secret);
                }
                Some((content, started, manifest))
            }
            Got::Pulls(manifest) => {
                self.events.push(Event { pulled: true, ..event });
                self.pull(pod.node, pod.ask, manifest, pod.secret);
                Some((self.manifests[manifest].content, started, manifest))
            }
            Got::Fails => None,
        };
        self.pods[number].runs = runs;
        self.pods[number].written = match runs {
            Some((content, _, manifest)) => self.image_id(pod.node, content, manifest),
            None => String::new(),
        };
        let word = if matches!(got, Got::Pulls(_)) { "pulls and runs" } else { "runs" };
        self.tell(&format!(
            "{} on node {} asks {:?} {:?} with {:?}, {word} {runs:?}",
            pod.name, pod.node, pod.ask, pod.policy, pod.secret
        ));
    }

    /// What a kubelet would do: the rules of its image manager.
    fn get(&self, node: usize, ask: Ask, policy: Policy, secret: Option<usize>) -> Got {
        let node = &self.nodes[node];
        let there = node.store.iter().find(|(_, stored)| match ask {
            Ask::Tag(tag) => stored.tags.contains(&tag),
            Ask::Manifest(manifest) => stored.manifests.contains(&manifest),
            Ask::Nowhere => false,
        });
        let there = there.filter(|(_, stored)| {
            !node.asks_for_credentials || stored.open || secret.is_some_and(|it| stored.secrets.contains(&it))
        });
        match (policy, there, ask) {
            (Policy::IfNotPresent | Policy::Never, Some((content, stored)), _) => {
                let manifest = match ask {
                    Ask::Manifest(manifest) => manifest,
                    _ => *stored.manifests.iter().next().unwrap(),
                };
                Got::Has(*content, manifest)
            }
            (Policy::Never, None, _) | (_, _, Ask::Nowhere) => Got::Fails,
            (_, _, Ask::Tag(tag)) => Got::Pulls(self.tags[tag].1),
            (_, _, Ask::Manifest(manifest)) => Got::Pulls(manifest),
        }
    }

    fn pull(&mut self, node: usize, ask: Ask, manifest: usize, secret: Option<usize>) {
        let content = self.manifests[manifest].content;
        let now = self.now;
        let store = &mut self.nodes[node].store;
        if let Ask::Tag(tag) = ask {
            for stored in store.values_mut() {
                stored.tags.remove(&tag);
            }
            self.pulls[tag].push((now, content));
        }
        let stored = store.entry(content).or_default();
        stored.manifests.insert(manifest);
        if let Ask::Tag(tag) = ask {
            stored.tags.insert(tag);
        }
        match secret {
            Some(secret) if !stored.open => {
                stored.secrets.insert(secret);
            }
            _ => stored.open = true,
        }
    }

    fn restart_pod(&mut self) {
        let running: Vec<usize> = (0..self.pods.len()).filter(|it| self.pods[*it].runs.is_some()).collect();
        if !running.is_empty() {
            let number = running[self.chance.below(running.len())];
            let before = self.pods[number].clone();
            self.start(number);
            if self.pods[number].runs.is_none() {
                // It waits; what it ran before is still shown.
                self.pods[number].written = before.written;
            }
        }
    }

    /// Kubelets try again what they could not get.
    fn try_again(&mut self) {
        for number in 0..self.pods.len() {
            let pod = &self.pods[number];
            let waits = pod.runs.is_none();
            if waits && !matches!(self.get(pod.node, pod.ask, pod.policy, pod.secret), Got::Fails) {
                self.start(number);
            }
        }
    }

    fn delete_pod(&mut self) {
        if !self.pods.is_empty() {
            let number = self.chance.below(self.pods.len());
            let pod = self.pods.remove(number);
            self.tell(&format!("{} is deleted", pod.name));
        }
    }

    /// Nodes throw away what nothing runs.
    fn collect(&mut self) {
        let node = self.chance.below(NODES);
        let used: BTreeSet<Content> = self
            .pods
            .iter()
            .filter(|pod| pod.node == node)
            .filter_map(|pod| pod.runs.map(|runs| runs.0))
            .collect();
        self.nodes[node].store.retain(|content, _| used.contains(content));
        self.tell(&format!("node {node} collects images"));
        // It collects from the list that it has just read, and reports that.
        self.read_store(node);
        self.send_list(node);
    }

    /// Kubelets read their stores anew when what they have is half a minute old.
    fn read_stores(&mut self) {
        for node in 0..NODES {
            if self.nodes[node].cache.as_ref().is_none_or(|(at, _)| at + 30 <= self.now) {
                self.read_store(node);
            }
        }
    }

    fn read_store(&mut self, node: usize) {
        self.nodes[node].cache = Some((self.now, self.nodes[node].store.clone()));
    }

    /// A node sends what its kubelet has read last.
    fn send_list(&mut self, node: usize) {
        let seen = &mut self.nodes[node];
        seen.list = seen.cache.clone().map(|(_, store)| (self.now, store));
        self.tell(&format!("node {node} sends its list"));
    }

    /// What is meant by a tag, for those to whom somebody says it.
    fn meant(&self, tag: usize) -> Option<Content> {
        match self.basis {
            Basis::None => None,
            Basis::Registry { .. } => Some(self.manifests[self.tags[tag].1].content),
            Basis::Lock => Some(self.manifests[self.locked[tag]].content),
        }
    }

    fn outcome(&self, node: usize, ask: Ask, policy: Policy, secret: Option<usize>) -> Outcome {
        let content = match self.get(node, ask, policy, secret) {
            Got::Has(content, _) => content,
            Got::Pulls(manifest) => self.manifests[manifest].content,
            Got::Fails => return Outcome::Nothing,
        };
        let Ask::Tag(tag) = ask else { return Outcome::Wanted };
        // What the registry will answer is known to nobody who has only a lock.
        let asks = matches!(self.get(node, ask, policy, secret), Got::Pulls(_));
        match self.meant(tag) {
            Some(meant) if meant != content && !(asks && self.basis == Basis::Lock) => Outcome::Other,
            _ => Outcome::Wanted,
        }
    }

    /// Workloads on nodes, and what would be started there. Without somebody who says what names mean nothing is missed, but the last
    /// pull of a name may be taken for it.
    pub(crate) fn next_starts(&self) -> Vec<(String, String, Outcome)> {
        let mut all = Vec::new();
        let mut add = |name: &str, node: usize, outcome: Outcome| {
            all.push((name.to_owned(), format!("node-{node}"), outcome));
        };
        for pod in &self.pods {
            let mut outcome = self.outcome(pod.node, pod.ask, pod.policy, pod.secret);
            if self.basis == Basis::None && self.is_behind(pod.node, pod.ask, pod.policy, pod.secret) {
                outcome = Outcome::Nothing;
            }
            if !(self.basis == Basis::None && outcome == Outcome::Nothing) {
                add(&pod.name, pod.node, outcome);
            }
        }
        for template in &self.templates {
            for node in 0..NODES {
                if self.basis == Basis::None
                    && self.is_behind(node, template.ask, template.policy, template.secret)
                {
                    continue;
                }
                add(&template.name, node, self.outcome(node, template.ask, template.policy, template.secret));
            }
        }
        all
    }

    /// Would a node start something else than what the name was pulled as last?
    fn is_behind(&self, node: usize, ask: Ask, policy: Policy, secret: Option<usize>) -> bool {
        let Ask::Tag(tag) = ask else { return false };
        let last = self.pulls[tag].last().map(|(_, content)| *content);
        match self.get(node, ask, policy, secret) {
            Got::Has(content, _) => last.is_some_and(|last| last != content),
            _ => false,
        }
    }

    /// Running pods, and whether they run what is meant; without somebody who says it, whether they run what was pulled last.
    pub(crate) fn running(&self) -> Vec<(String, String, Option<bool>)> {
        self.pods
            .iter()
            .filter_map(|pod| {
                let (content, ..) = pod.runs?;
                let wanted = match pod.ask {
                    Ask::Tag(tag) => match self.basis {
                        // A pull that no pod shows any more is not known; what differs from some pull is allowed to be said.
                        Basis::None => {
                            let same = self.pulls[tag].iter().all(|(_, pulled)| *pulled == content);
                            return same.then(|| (pod.name.clone(), String::new(), Some(true)));
                        }
                        _ => self.meant(tag).map(|meant| meant == content),
                    },
                    _ => None,
                };
                Some((pod.name.clone(), format!("node-{}", pod.node), wanted))
            })
            .collect()
    }

    /// Would a restart of this pod's container bring another content?
    pub(crate) fn restart_changes(&self, name: &str) -> bool {
        self.pods.iter().filter(|pod| pod.name == name).any(|pod| {
            let Some((content, ..)) = pod.runs else { return false };
            match self.get(pod.node, pod.ask, pod.policy, pod.secret) {
                Got::Has(next, _) => next != content,
                Got::Pulls(manifest) => self.manifests[manifest].content != content,
                Got::Fails => true,
            }
        })
    }

    /// Tags, and whether pods and nodes, as they are or as their last lists were, have several contents under them.
    pub(crate) fn names(&self) -> Vec<(String, bool)> {
        (0..TAGS)
            .map(|tag| {
                let lists = self.nodes.iter().filter_map(|node| node.list.as_ref()).map(|(_, store)| store);
                let stores = self.nodes.iter().map(|node| &node.store).chain(lists);
                let held = stores.flat_map(|store| {
                    store.iter().filter(|(_, it)| it.tags.contains(&tag)).map(|(it, _)| *it)
                });
                let all: BTreeSet<Content> = held.chain(self.contents(tag)).collect();
                (shown::tag(self, tag), all.len() > 1)
            })
            .collect()
    }

    /// Tags, and whether running pods have several contents under them.
    pub(crate) fn running_names(&self) -> Vec<(String, bool)> {
        (0..TAGS)
            .map(|tag| {
                let all: BTreeSet<Content> = self.contents(tag).collect();
                (shown::tag(self, tag), all.len() > 1)
            })
            .collect()
    }

    fn contents(&self, tag: usize) -> impl Iterator<Item = Content> + '_ {
        self.pods.iter().filter(move |pod| pod.ask == Ask::Tag(tag)).filter_map(|pod| Some(pod.runs?.0))
    }

    /// Is there nothing that the API hides?
    pub(crate) fn shows_everything(&self) -> bool {
        // Of five names nobody knows whether they are all.
        let few = |stored: &Stored| stored.manifests.len() + stored.tags.len() < 5;
        self.clear && self.nodes.iter().flat_map(|node| node.store.values()).all(few)
    }

    /// What happened.
    pub(crate) fn story(&self) -> String {
        format!("{:?}, lists of {} images\n{}", self.basis, self.listed_images, self.story)
    }
}
