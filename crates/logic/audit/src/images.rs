//! Which digests are the same image, as far as it can be known.
//!
//! A digest is the digest of an index, of a manifest or of a configuration, and runtimes show any of them. What a node runs of an image
//! is decided by its platform, so that all of this is kept by platform: two indexes may share the one platform and differ in another.

use std::collections::{BTreeMap, BTreeSet};

use scantling_image::{Digest, Platform, Sameness};
use scantling_release::LockedImage;

/// A digest, by number.
pub(crate) type DigestId = u32;
/// A platform, by number.
pub(crate) type PlatformId = usize;

/// Classes of digests, by platform.
#[derive(Debug, Default)]
pub(crate) struct Images {
    ids: BTreeMap<Digest, DigestId>,
    digests: Vec<Digest>,
    platforms: Vec<Option<Platform>>,
    worlds: Vec<World>,
}

#[derive(Debug, Default)]
struct World {
    parent: Vec<DigestId>,
    /// Digests that are known to be configurations.
    configs: BTreeSet<DigestId>,
    /// Where a digest stands in a node's list: node and entry. Two entries of one list are two images.
    places: Vec<(DigestId, (u32, u32))>,
    configs_of: BTreeMap<DigestId, BTreeSet<DigestId>>,
    places_of: BTreeMap<DigestId, BTreeMap<u32, BTreeSet<u32>>>,
}

impl World {
    fn root(&self, of: DigestId) -> DigestId {
        let mut at = of;
        while let Some(next) = self.parent.get(at as usize).copied().filter(|next| *next != at) {
            at = next;
        }
        at
    }

    fn grow(&mut self, to: DigestId) {
        let known = u32::try_from(self.parent.len()).unwrap_or(u32::MAX);
        self.parent.extend(known..=to);
    }

    fn join(&mut self, a: DigestId, b: DigestId) {
        self.grow(a.max(b));
        let (a, b) = (self.root(a), self.root(b));
        // The older number is the root: chains stay short because classes have a handful of digests.
        if let Some(parent) = self.parent.get_mut(a.max(b) as usize) {
            *parent = a.min(b);
        }
    }

    fn finish(&mut self) {
        for config in &self.configs {
            let root = self.root(*config);
            self.configs_of.entry(root).or_default().insert(*config);
        }
        for (digest, (node, entry)) in std::mem::take(&mut self.places) {
            let root = self.root(digest);
            self.places_of.entry(root).or_default().entry(node).or_default().insert(entry);
        }
    }

    fn relation(&self, a: DigestId, b: DigestId) -> Sameness {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Sameness::Same;
        }
        if let (Some(one), Some(other)) = (self.configs_of.get(&a), self.configs_of.get(&b)) {
            return if one.is_disjoint(other) { Sameness::Different } else { Sameness::Unknown };
        }
        let (Some(one), Some(other)) = (self.places_of.get(&a), self.places_of.get(&b)) else {
            return Sameness::Unknown;
        };
        let (few, many) = if one.len() <= other.len() { (one, other) } else { (other, one) };
        let apart =
            few.iter().any(|(node, entries)| many.get(node).is_some_and(|them| them.is_disjoint(entries)));
        if apart { Sameness::Different } else { Sameness::Unknown }
    }
}

impl Images {
    /// The number of a digest.
    pub(crate) fn id(&mut self, digest: &Digest) -> DigestId {
        if let Some(id) = self.ids.get(digest) {
            return *id;
        }
        let id = u32::try_from(self.digests.len()).unwrap_or(u32::MAX);
        self.ids.insert(digest.clone(), id);
        self.digests.push(digest.clone());
        id
    }

    /// The number of a digest that was met before.
    pub(crate) fn known(&self, digest: &Digest) -> Option<DigestId> {
        self.ids.get(digest).copied()
    }

    /// The digest of a number.
    pub(crate) fn digest(&self, id: DigestId) -> Option<&Digest> {
        self.digests.get(id as usize)
    }

    /// The number of a platform; `None` is a platform that nobody says.
    pub(crate) fn platform(&mut self, platform: Option<&Platform>) -> PlatformId {
        let found = self.platforms.iter().position(|known| known.as_ref() == platform);
        found.unwrap_or_else(|| {
            self.platforms.push(platform.cloned());
            self.worlds.push(World::default());
            self.platforms.len() - 1
        })
    }

    /// How many platforms there are.
    pub(crate) fn platforms(&self) -> usize {
        self.platforms.len()
    }

    /// Digests that are one image on a platform.
    pub(crate) fn join(&mut self, platform: PlatformId, digests: &[DigestId]) {
        let Some(world) = self.worlds.get_mut(platform) else { return };
        for pair in digests.windows(2) {
            if let [a, b] = pair {
                world.join(*a, *b);
            }
        }
    }

    /// A digest is the one of a configuration, and this is an image that has it.
    pub(crate) fn config(&mut self, platform: PlatformId, image: DigestId, config: DigestId) {
        self.join(platform, &[image, config]);
        if let Some(world) = self.worlds.get_mut(platform) {
            world.configs.insert(config);
        }
    }

    /// A digest stands in an entry of a node's list.
    pub(crate) fn place(&mut self, platform: PlatformId, digest: DigestId, node: u32, entry: u32) {
        if let Some(world) = self.worlds.get_mut(platform) {
            world.grow(digest);
            world.places.push((digest, (node, entry)));
        }
    }

    /// What a lock knows of an image, for every platform that there is.
    pub(crate) fn locked(&mut self, image: &LockedImage) {
        let whole = self.id(&image.digest);
        for platform in 0..self.platforms.len() {
            let chosen = match self.platforms.get(platform).and_then(Option::as_ref) {
                Some(wanted) => Platform::select(image.platforms.iter().map(|it| &it.platform), wanted),
                None if image.platforms.len() == 1 => Some(0),
                None => None,
            };
            let Some(chosen) = chosen.and_then(|chosen| image.platforms.get(chosen)) else { continue };
            let (manifest, config) = (self.id(&chosen.manifest), self.id(&chosen.config));
            self.join(platform, &[whole, manifest]);
            self.config(platform, manifest, config);
        }
    }

    /// What a registry answered, which is so on every platform.
    pub(crate) fn answered(&mut self, digest: &Digest, config: Option<&Digest>) {
        let Some(config) = config else { return };
        let (digest, config) = (self.id(digest), self.id(config));
        for platform in 0..self.platforms.len() {
            self.config(platform, digest, config);
        }
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        for world in &mut self.worlds {
            world.finish();
        }
    }

    /// Are these the same image? Each digest was seen on a node of its platform.
    pub(crate) fn relation(&self, a: (PlatformId, DigestId), b: (PlatformId, DigestId)) -> Sameness {
        if a.1 == b.1 {
            return Sameness::Same;
        }
        match self.worlds.get(a.0) {
            Some(world) if a.0 == b.0 => world.relation(a.1, b.1),
            _ => Sameness::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_one_image_depends_on_the_platform() {
        let mut images = Images::default();
        let platforms = ["linux/amd64", "linux/arm64"].map(|text| Platform::parse(text).unwrap());
        let [amd, arm] = [0, 1].map(|at: usize| images.platform(platforms.get(at)));
        let mut id = |name: &str| images.id(&Digest::of(name.as_bytes()));
        let [i1, i2, m, c, other] = ["i1", "i2", "m", "c", "other"].map(&mut id);
        // On amd64 one list has both indexes in one entry.
        images.join(amd, &[i1, i2]);
        images.config(amd, m, c);
        images.config(amd, i1, other);
        images.finish();
        assert_eq!(images.relation((amd, i1), (amd, i2)), Sameness::Same);
        assert_eq!(images.relation((arm, i1), (arm, i2)), Sameness::Unknown);
        assert_eq!(images.relation((amd, i2), (amd, m)), Sameness::Different);
        assert_eq!(images.relation((amd, i1), (arm, i1)), Sameness::Same);
        assert_eq!(images.relation((amd, i1), (arm, i2)), Sameness::Unknown);
    }

    #[test]
    fn two_entries_of_one_list_are_two_images() {
        let mut images = Images::default();
        let platform = images.platform(None);
        let mut id = |name: &str| images.id(&Digest::of(name.as_bytes()));
        let [a, b, c] = ["a", "b", "c"].map(&mut id);
        images.place(platform, a, 0, 0);
        images.place(platform, b, 0, 1);
        images.place(platform, c, 1, 0);
        images.finish();
        assert_eq!(images.relation((platform, a), (platform, b)), Sameness::Different);
        assert_eq!(images.relation((platform, a), (platform, c)), Sameness::Unknown);
    }
}
