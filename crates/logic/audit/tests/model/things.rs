//! What there is in a world.

use std::collections::{BTreeMap, BTreeSet};

/// Who says what names mean, in what the audit is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Nobody.
    None,
    /// The registry, with or without configurations.
    Registry { configs: bool },
    /// A lock of what the names meant at some time.
    Lock,
}

/// A content: an image's configuration. Two manifests may have one.
pub(crate) type Content = usize;

/// A manifest in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) repository: usize,
    pub(crate) content: Content,
}

/// What a node has of a content.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    /// Manifests that it was pulled by.
    pub(crate) manifests: BTreeSet<usize>,
    /// Tags that lead to it.
    pub(crate) tags: BTreeSet<usize>,
    /// Anybody may use it.
    pub(crate) open: bool,
    /// Secrets whose pods may use it.
    pub(crate) secrets: BTreeSet<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Named by configuration, shown by the first repository digest.
    Containerd,
    /// The digest that it was pulled by.
    Plain,
    /// `docker-pullable://`.
    Docker,
    /// The bare id of the configuration.
    Bare,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) dialect: Dialect,
    pub(crate) asks_for_credentials: bool,
    pub(crate) store: BTreeMap<Content, Stored>,
    /// The last list: when it was sent, and the store as it was then.
    pub(crate) list: Option<(i64, BTreeMap<Content, Stored>)>,
    /// What the kubelet has read of the store, and when.
    pub(crate) cache: Option<(i64, BTreeMap<Content, Stored>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Always,
    IfNotPresent,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Tag(usize),
    Manifest(usize),
    /// A digest that no registry has.
    Nowhere,
}

#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) node: usize,
    pub(crate) ask: Ask,
    pub(crate) policy: Policy,
    pub(crate) secret: Option<usize>,
    /// Content, when it was started, and the manifest that it was pulled by.
    pub(crate) runs: Option<(Content, i64, usize)>,
    /// What the kubelet wrote of it when it was started.
    pub(crate) written: String,
}

/// A deployment that is scaled to zero.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) ask: Ask,
    pub(crate) policy: Policy,
    pub(crate) secret: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) at: i64,
    pub(crate) node: usize,
    pub(crate) pod: String,
    pub(crate) ask: Ask,
    pub(crate) pulled: bool,
}

/// What would be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// What is meant, or nobody says what is.
    Wanted,
    Other,
    Nothing,
}
