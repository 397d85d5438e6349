//! When two images are the same image.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// All digests under which one image may be reported.
///
/// Runtimes do not agree on what they show for an image: containerd names it by its configuration and answers with
/// some repository digest that it knows for that configuration, which may be another manifest than the one asked for;
/// for an index it shows the index. So an image is a class of digests, joined by the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageIdentity {
    /// Digests of indexes (several platforms).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub index: BTreeSet<Digest>,
    /// Digests of the platforms' manifests.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub manifests: BTreeSet<Digest>,
    /// Digests of the platforms' configurations.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub configs: BTreeSet<Digest>,
}

/// The answer to "is this the same image?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sameness {
    /// Surely the same content.
    Same,
    /// Surely other content.
    Different,
    /// What is known does not decide it.
    Unknown,
}

impl ImageIdentity {
    /// The identity of which only one digest of an unknown kind is known. It is taken as a manifest.
    pub fn of_manifest(manifest: Digest, config: Option<Digest>) -> Self {
        Self {
            index: BTreeSet::new(),
            manifests: BTreeSet::from([manifest]),
            configs: config.into_iter().collect(),
        }
    }

    /// True if no digest is known.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty() && self.manifests.is_empty() && self.configs.is_empty()
    }

    /// True if the digest is one of this image's.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.index.contains(digest) || self.manifests.contains(digest) || self.configs.contains(digest)
    }

    /// Every digest, each once, in order.
    pub fn digests(&self) -> BTreeSet<&Digest> {
        self.index.iter().chain(&self.manifests).chain(&self.configs).collect()
    }

    /// Compares with a digest seen in an image ID. A digest that is not in the class is [`Sameness::Unknown`], not
    /// different: it can be another manifest of the same configuration. Look the digest up and use
    /// [`ImageIdentity::relation`], or give the known images to [`ImageIdentity::compare_among`].
    pub fn compare(&self, seen: &Digest) -> Sameness {
        if self.contains(seen) { Sameness::Same } else { Sameness::Unknown }
    }

    /// Compares with a digest seen in an image ID, with the help of other images that are known: if one of them has
    /// the digest, its configurations decide.
    pub fn compare_among<'a>(
        &self,
        seen: &Digest,
        known: impl IntoIterator<Item = &'a ImageIdentity>,
    ) -> Sameness {
        if self.contains(seen) {
            return Sameness::Same;
        }
        let mut answer = Sameness::Unknown;
        for other in known.into_iter().filter(|other| other.contains(seen)) {
            match self.relation(other) {
                Sameness::Same => return Sameness::Same,
                Sameness::Different => answer = Sameness::Different,
                Sameness::Unknown => {}
            }
        }
        answer
    }

    /// Compares two images.
    ///
    /// *Same*: they share an index, or one's configurations are all among the other's (a copy of one platform is the
    /// same image on that platform), or they share a manifest and no configuration speaks against it.
    /// *Different*: both know configurations and share none.
    /// *Unknown*: everything else, such as two indexes that agree on some platforms only.
    pub fn relation(&self, other: &Self) -> Sameness {
        let shares = |a: &BTreeSet<Digest>, b: &BTreeSet<Digest>| !a.is_disjoint(b);
        if shares(&self.index, &other.index) {
            return Sameness::Same;
        }
        if self.configs.is_empty() || other.configs.is_empty() {
            let some = self.digests().into_iter().any(|digest| other.contains(digest));
            return if some { Sameness::Same } else { Sameness::Unknown };
        }
        if self.configs.is_subset(&other.configs) || other.configs.is_subset(&self.configs) {
            Sameness::Same
        } else if shares(&self.configs, &other.configs) {
            Sameness::Unknown
        } else {
            Sameness::Different
        }
    }

    /// Joins what is known of the same image from another source.
    pub fn absorb(&mut self, other: &Self) {
        self.index.extend(other.index.iter().cloned());
        self.manifests.extend(other.manifests.iter().cloned());
        self.configs.extend(other.configs.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ImageId;
    use proptest::prelude::*;

    fn set(names: &str) -> BTreeSet<Digest> {
        names.split_whitespace().map(|name| Digest::of(name.as_bytes())).collect()
    }

    fn image(index: &str, manifests: &str, configs: &str) -> ImageIdentity {
        ImageIdentity { index: set(index), manifests: set(manifests), configs: set(configs) }
    }

    #[test]
    fn relations() {
        let check = |a: &ImageIdentity, b: &ImageIdentity, expected| {
            assert_eq!(a.relation(b), expected, "{a:?} {b:?}");
            assert_eq!(b.relation(a), expected, "{b:?} {a:?}");
        };
        let two = image("i1", "m1 m2", "c1 c2");
        check(&two, &two, Sameness::Same);
        // Another registry compressed the layers anew: other manifests, same configuration.
        check(&two, &image("i9", "m8 m9", "c1 c2"), Sameness::Same);
        // One platform was copied.
        check(&two, &image("", "m1", "c1"), Sameness::Same);
        check(&two, &image("", "m7", "c1"), Sameness::Same);
        check(&two, &image("i2", "m3 m4", "c3 c4"), Sameness::Different);
        check(&two, &image("i2", "m1 m4", "c1 c4"), Sameness::Unknown);
        check(&two, &image("", "m3", ""), Sameness::Unknown);
        check(&two, &image("", "m1", ""), Sameness::Same);
        check(&image("", "", ""), &image("", "", ""), Sameness::Unknown);
    }

    /// openkruise/kruise#2572: a runtime reports a bare digest, which is that of the configuration and of no manifest.
    #[test]
    fn a_bare_digest_may_be_the_configurations() {
        let locked = image("", "manifest", "configuration");
        let id = |text: &str| ImageId::parse(text).unwrap();
        let digest = |name: &str| Digest::of(name.as_bytes());
        for (text, expected) in [
            (digest("configuration").to_string(), Sameness::Same),
            (digest("something else").to_string(), Sameness::Unknown),
            (format!("docker-pullable://registry.example.com/a/b@{}", digest("manifest")), Sameness::Same),
        ] {
            assert_eq!(locked.compare(id(&text).digest()), expected, "{text}");
        }
    }

    #[test]
    fn a_digest_that_no_one_knows_is_unknown() {
        let locked = image("i1", "m1", "c1");
        let old = image("i0", "m0", "c0");
        let copy = image("", "m5", "c1");
        let seen = |name: &str| Digest::of(name.as_bytes());
        assert_eq!(locked.compare(&seen("c1")), Sameness::Same);
        assert_eq!(locked.compare(&seen("i0")), Sameness::Unknown);
        assert_eq!(locked.compare_among(&seen("i0"), [&old, &copy]), Sameness::Different);
        assert_eq!(locked.compare_among(&seen("m5"), [&old, &copy]), Sameness::Same);
        assert_eq!(locked.compare_among(&seen("x"), [&old, &copy]), Sameness::Unknown);
    }

    proptest! {
        #[test]
        fn relation_is_symmetric_and_reflexive(a in "[a-d]( [a-d]){0,2}", b in "[c-f]( [c-f]){0,2}", c in "[a-f]{0,1}", d in "[a-f]{0,1}") {
            let (x, y) = (image(&c, "", &a), image(&d, "", &b));
            prop_assert_eq!(x.relation(&y), y.relation(&x));
            prop_assert_eq!(x.relation(&x), Sameness::Same);
            for digest in x.digests() {
                prop_assert_eq!(x.compare(digest), Sameness::Same);
            }
        }
    }

    #[test]
    fn stored_form_leaves_out_what_is_empty() {
        let json = serde_json::to_value(image("", "m1", "")).unwrap();
        assert_eq!(json, serde_json::json!({"manifests": [Digest::of(b"m1")]}));
        assert_eq!(serde_json::from_value::<ImageIdentity>(json).unwrap(), image("", "m1", ""));
    }
}
