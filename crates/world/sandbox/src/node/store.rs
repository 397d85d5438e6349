//! A node's image store, as containerd keeps it.
//!
//! An image is what its config digest says. Names point to images: tags (`registry/repo:tag`) and
//! repository digests (`registry/repo@sha256:…`), in the reference's normal form. A pull by tag moves the
//! tag's name; a pull by digest adds a name and moves none. What has lost its tag stays, with its digests.

use std::collections::{BTreeMap, BTreeSet};

use scantling_image::{Digest, Reference};

use crate::time::Time;

/// Most images that `Node.status.images` lists (the kubelet's `nodeStatusMaxImages`).
pub(crate) const MAX_LISTED_IMAGES: usize = 50;
/// Most names of one image that it lists (`MaxNamesPerImageInNodeStatus`).
pub(crate) const MAX_LISTED_NAMES: usize = 5;

/// The name under which a store keeps a written reference: full registry and repository, with the digest
/// if there is one, else with the tag.
pub(crate) fn store_name(reference: &Reference) -> String {
    match reference.digest() {
        Some(digest) => format!("{}@{digest}", reference.name()),
        None => format!("{}:{}", reference.name(), reference.effective_tag().unwrap_or("latest")),
    }
}

/// Who may use an image that the kubelet pulled (Kubernetes 1.35, `NeverVerifyPreloadedImages`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PullRecord {
    /// Repositories that were pulled without a pod's secret, by anyone.
    pub(crate) open: BTreeSet<String>,
    /// Repository → hashes of the credentials that pulled it.
    pub(crate) credentials: BTreeMap<String, BTreeSet<Digest>>,
}

/// One image of a node.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// The config digest, the image's identity on a node.
    pub(crate) config: Digest,
    /// Indexes and manifests that led to it.
    pub(crate) manifests: BTreeSet<Digest>,
    /// Names by tag.
    pub(crate) tags: BTreeSet<String>,
    /// Names by digest.
    pub(crate) digests: BTreeSet<String>,
    /// Layers and their sizes in bytes.
    pub(crate) layers: Vec<(Digest, u64)>,
    /// Bytes of manifest, config and layers.
    pub(crate) size: u64,
    /// The image's config: labels, entrypoint, environment.
    pub(crate) description: serde_json::Value,
    /// Pulled by the kubelet, and for whom; `None`: it came by another way, and every pod may use it.
    pub(crate) record: Option<PullRecord>,
    /// When a container was last started from it, or when it came.
    pub(crate) last_used: Time,
}

/// What a finished pull brings.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    /// The reference as it was asked for.
    pub(crate) reference: Reference,
    /// The digest that the registry named for it: the index's for an index.
    pub(crate) root: Digest,
    /// The platform's manifest.
    pub(crate) manifest: Digest,
    pub(crate) config: Digest,
    pub(crate) layers: Vec<(Digest, u64)>,
    /// Bytes of manifest and config.
    pub(crate) overhead: u64,
    pub(crate) description: serde_json::Value,
}

/// The images of one node.
#[derive(Debug, Default)]
pub(crate) struct ImageStore {
    images: BTreeMap<Digest, Image>,
    names: BTreeMap<String, Digest>,
}

impl ImageStore {
    /// The image that a written reference leads to. The digest decides where there is one.
    pub(crate) fn find(&self, reference: &Reference) -> Option<&Image> {
        self.names.get(&store_name(reference)).and_then(|config| self.images.get(config))
    }

    /// The image with this config digest.
    pub(crate) fn get(&self, config: &Digest) -> Option<&Image> {
        self.images.get(config)
    }

    /// The image with this config digest, to be changed.
    pub(crate) fn get_mut(&mut self, config: &Digest) -> Option<&mut Image> {
        self.images.get_mut(config)
    }

    /// All images, by config digest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Image> {
        self.images.values()
    }

    /// Whether a layer is here.
    pub(crate) fn has_layer(&self, layer: &Digest) -> bool {
        self.images.values().any(|image| image.layers.iter().any(|(digest, _)| digest == layer))
    }

    /// Bytes on disk; a layer that images share counts once.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let mut layers: BTreeMap<&Digest, u64> = BTreeMap::new();
        let mut overhead: u64 = 0;
        for image in self.images.values() {
            let mut own: u64 = 0;
            for (digest, size) in &image.layers {
                layers.insert(digest, *size);
                own = own.saturating_add(*size);
            }
            overhead = overhead.saturating_add(image.size.saturating_sub(own));
        }
        layers.values().fold(overhead, |sum, size| sum.saturating_add(*size))
    }

    /// Takes in what a pull brought. Gives the tag's name and the image that it named before, when the
    /// pull moved it.
    pub(crate) fn arrive(&mut self, arrival: &Arrival, now: Time) -> Option<(String, Digest)> {
        let config = arrival.config.clone();
        let image = self.images.entry(config.clone()).or_insert_with(|| {
            let layers: u64 = arrival.layers.iter().map(|(_, size)| size).sum();
            Image {
                config: config.clone(),
                manifests: BTreeSet::new(),
                tags: BTreeSet::new(),
                digests: BTreeSet::new(),
                layers: arrival.layers.clone(),
                size: layers.saturating_add(arrival.overhead),
                description: arrival.description.clone(),
                record: None,
                last_used: now,
            }
        });
        image.last_used = now;
        image.manifests.insert(arrival.root.clone());
        image.manifests.insert(arrival.manifest.clone());
        let by_digest = format!("{}@{}", arrival.reference.name(), arrival.root);
        image.digests.insert(by_digest.clone());
        self.point(&by_digest, &config);
        if arrival.reference.digest().is_some() {
            return None;
        }
        let by_tag = store_name(&arrival.reference);
        if let Some(image) = self.images.get_mut(&config) {
            image.tags.insert(by_tag.clone());
        }
        self.point(&by_tag, &config).map(|before| (by_tag, before))
    }

    /// Lets a name point to an image; gives the one it pointed to before, if that was another.
    fn point(&mut self, name: &str, config: &Digest) -> Option<Digest> {
        let before = self.names.insert(name.to_owned(), config.clone()).filter(|before| before != config)?;
        if let Some(old) = self.images.get_mut(&before) {
            old.tags.remove(name);
            old.digests.remove(name);
        }
        Some(before)
    }

    /// The config digest of what a text names: a reference as written, a config digest, a manifest
    /// digest or an index digest.
    pub(crate) fn resolve(&self, text: &str) -> Option<Digest> {
        if let Ok(digest) = Digest::parse(text) {
            if self.images.contains_key(&digest) {
                return Some(digest);
            }
            return self
                .images
                .values()
                .find(|image| image.manifests.contains(&digest))
                .map(|image| image.config.clone());
        }
        let reference = Reference::parse(text).ok()?;
        self.names.get(&store_name(&reference)).cloned()
    }

    /// Removes an image with all its names, as the runtime's `RemoveImage` does.
    pub(crate) fn remove(&mut self, config: &Digest) -> Option<Image> {
        let image = self.images.remove(config)?;
        self.names.retain(|_, target| target != config);
        Some(image)
    }

    /// Removes one name only; the image goes with its last name.
    pub(crate) fn untag(&mut self, name: &str) -> Option<Digest> {
        let config = self.names.remove(name)?;
        if let Some(image) = self.images.get_mut(&config) {
            image.tags.remove(name);
            image.digests.remove(name);
            if image.tags.is_empty() && image.digests.is_empty() {
                self.images.remove(&config);
            }
        }
        Some(config)
    }

    /// What a pod's status says as `image`: the alphabetically first tag, or the config digest when the
    /// image has none.
    pub(crate) fn status_image(&self, config: &Digest) -> String {
        self.images
            .get(config)
            .and_then(|image| image.tags.first().cloned())
            .unwrap_or_else(|| config.to_string())
    }

    /// What a pod's status says as `imageID`: the alphabetically first repository digest, whichever
    /// repository was asked for, or the config digest when the image has none.
    pub(crate) fn status_image_id(&self, config: &Digest) -> String {
        self.images
            .get(config)
            .and_then(|image| image.digests.first().cloned())
            .unwrap_or_else(|| config.to_string())
    }

    /// `Node.status.images`: largest first, digests before tags, cut to the kubelet's limits.
    pub(crate) fn listed(&self) -> Vec<(Vec<String>, u64)> {
        let mut images: Vec<&Image> = self.images.values().collect();
        images.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.config.cmp(&b.config)));
        images
            .into_iter()
            .take(MAX_LISTED_IMAGES)
            .map(|image| {
                let names = image.digests.iter().chain(&image.tags).take(MAX_LISTED_NAMES).cloned().collect();
                (names, image.size)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn digest(label: &str) -> Digest {
        Digest::of(label.as_bytes())
    }

    fn pull(store: &mut ImageStore, reference: &str, content: &str) -> Option<(String, Digest)> {
        let arrival = Arrival {
            reference: Reference::parse(reference).unwrap(),
            root: digest(&format!("manifest {content}")),
            manifest: digest(&format!("manifest {content}")),
            config: digest(&format!("config {content}")),
            layers: vec![(digest("base"), 100), (digest(&format!("layer {content}")), 10)],
            overhead: 1,
            description: serde_json::Value::Null,
        };
        store.arrive(&arrival, Time::ZERO)
    }

    fn content(store: &ImageStore, reference: &str) -> Option<Digest> {
        store.find(&Reference::parse(reference).unwrap()).map(|image| image.config.clone())
    }

    #[test]
    fn a_pull_by_tag_moves_the_tag_and_leaves_the_old_image_its_digest() {
        let mut store = ImageStore::default();
        assert_eq!(pull(&mut store, "r/app:2.7", "v1"), None);
        let moved = pull(&mut store, "r/app:2.7", "v2").unwrap();
        assert_eq!(moved.1, digest("config v1"));
        assert_eq!(content(&store, "r/app:2.7"), Some(digest("config v2")));
        let old = store.get(&digest("config v1")).unwrap();
        assert!(old.tags.is_empty());
        assert_eq!(old.digests.len(), 1);
        assert_eq!(store.status_image(&old.config), old.config.to_string());
    }

    #[test]
    fn a_pull_by_digest_moves_no_tag() {
        let mut store = ImageStore::default();
        pull(&mut store, "r/app:2.7", "v1");
        let by_digest = format!("r/app:2.7@{}", digest("manifest v2"));
        assert_eq!(pull(&mut store, &by_digest, "v2"), None);
        assert_eq!(content(&store, "r/app:2.7"), Some(digest("config v1")));
        assert_eq!(content(&store, &by_digest), Some(digest("config v2")));
        assert_eq!(store.status_image(&digest("config v2")), digest("config v2").to_string());
    }

    #[test]
    fn image_id_is_the_alphabetically_first_repository_digest() {
        let mut store = ImageStore::default();
        pull(&mut store, "registry.example/web:1", "v1");
        pull(&mut store, "registry.example/aaa:1", "v1");
        assert_eq!(
            store.status_image_id(&digest("config v1")),
            format!("registry.example/aaa@{}", digest("manifest v1"))
        );
        assert_eq!(store.status_image(&digest("config v1")), "registry.example/aaa:1");
    }

    #[test]
    fn layers_that_images_share_count_once_on_disk() {
        let mut store = ImageStore::default();
        pull(&mut store, "r/a:1", "v1");
        pull(&mut store, "r/b:1", "v2");
        assert_eq!(store.disk_bytes(), 100 + 10 + 10 + 2);
        assert!(store.has_layer(&digest("base")));
    }

    #[test]
    fn names_are_found_in_every_spelling() {
        let mut store = ImageStore::default();
        pull(&mut store, "docker.io/library/nginx:latest", "v1");
        for written in ["nginx", "nginx:latest", "docker.io/nginx", "library/nginx"] {
            assert_eq!(content(&store, written), Some(digest("config v1")), "{written}");
        }
        for (text, found) in [
            ("nginx", true),
            (digest("config v1").as_str(), true),
            (digest("manifest v1").as_str(), true),
            (digest("other").as_str(), false),
            ("nginx:2", false),
        ] {
            assert_eq!(store.resolve(text).is_some(), found, "{text}");
        }
    }

    #[test]
    fn removing_takes_all_names_and_untagging_takes_one() {
        let mut store = ImageStore::default();
        pull(&mut store, "r/a:1", "v1");
        pull(&mut store, "r/b:1", "v1");
        store.untag("docker.io/r/a:1").unwrap();
        assert!(content(&store, "r/a:1").is_none());
        assert!(content(&store, "r/b:1").is_some());
        store.remove(&digest("config v1")).unwrap();
        assert!(content(&store, "r/b:1").is_none());
        assert_eq!(store.disk_bytes(), 0);
    }

    #[test]
    fn the_list_has_the_kubelets_order_and_limits() {
        let mut store = ImageStore::default();
        for index in 0..4 {
            pull(&mut store, &format!("r/z{index}:1"), "v7");
        }
        assert_eq!(store.listed()[0].0.len(), MAX_LISTED_NAMES);
        for index in 0..60 {
            pull(&mut store, &format!("r/app{index}:1"), &format!("v{index}"));
        }
        let listed = store.listed();
        assert_eq!(listed.len(), MAX_LISTED_IMAGES);
        assert!(listed.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        assert!(listed.iter().all(|(names, _)| names[0].contains('@')));
    }
}
