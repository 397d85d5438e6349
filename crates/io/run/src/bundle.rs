//! The release itself, kept in the cluster, so that going back needs nothing but the cluster.
//!
//! A bundle is stored before the first wave of the run that brings it. The last two are kept: what is installed, and what
//! was installed before. The files of a release may hold values of its Secrets, so that they are kept in Secrets; which
//! releases there are stands in `ConfigMaps`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scantling_api::object;
use scantling_cluster::Write;
use scantling_release::{Lock, Release, Settings, Tree, Unreadable};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::environment::Environment;
use crate::packed::{PART_LABEL, PackError, Parts, pack, stale_parts, unpack};
use crate::report::Stop;
use crate::session::Session;
use crate::state::SYSTEM_NAMESPACE;
use crate::store::StoredError;

/// What the names of all heads begin with; the version follows.
const PREFIX: &str = "scantling-release-";
/// The longest version that stands in a head's name as it is: parts are labelled with the name, and a label's value has at
/// most 63 characters.
const LONGEST: usize = 63 - PREFIX.len();
/// Bundles that are kept: the installed release and the one before.
const KEPT: usize = 2;

/// A release with everything that is needed to bring it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The files of the release.
    pub files: Tree,
    /// What the admin decided about it.
    pub settings: Settings,
    /// What its references led to. A run that is given none stores what its gate found; it stays away only where
    /// references can be resolved by the cluster alone.
    pub lock: Option<Lock>,
}

/// One file as it is written down.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum File {
    Text(String),
    Base64(String),
}

/// A bundle as it is written down.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    files: BTreeMap<String, File>,
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    settings: Settings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lock: Option<Lock>,
}

/// Why a stored release cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The cluster does not have it.
    #[error(
        "the cluster does not keep release {version}; it keeps {}; bring it from its folder with an upgrade instead",
        words(kept)
    )]
    NotKept {
        /// The version asked for.
        version: String,
        /// The versions that are kept.
        kept: Vec<String>,
    },
    /// It is there and cannot be read.
    #[error(
        "the release in {SYSTEM_NAMESPACE}/{name} cannot be read: {reason}; bring it from its folder with an upgrade instead"
    )]
    Damaged {
        /// The head or the part.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// It cannot be put into bytes.
    #[error("the release cannot be stored: {reason}")]
    NotWritable {
        /// What is wrong.
        reason: String,
    },
    /// Its files are no release.
    #[error("the stored files of release {version} cannot be read: {error}")]
    Unreadable {
        /// The version.
        version: String,
        /// What is wrong with them.
        error: Unreadable,
    },
    /// The cluster cannot be read.
    #[error(transparent)]
    Stored(#[from] StoredError),
}

fn words(versions: &[String]) -> String {
    if versions.is_empty() { "none".to_owned() } else { versions.join(" and ") }
}

impl From<PackError> for BundleError {
    fn from(error: PackError) -> Self {
        match error {
            PackError::Format(found) => Self::Damaged {
                name: format!("{PREFIX}*"),
                reason: format!("it has format {found}, which this program does not know"),
            },
            PackError::NotWritable(reason) => Self::NotWritable { reason },
            PackError::Damaged { name, reason } => Self::Damaged { name, reason },
        }
    }
}

impl Bundle {
    /// A bundle of a release's files, with what was decided about it.
    pub fn of(files: Tree, settings: Settings, lock: Option<Lock>) -> Self {
        Self { files, settings, lock }
    }

    /// The bundle of a version that a cluster keeps.
    ///
    /// # Errors
    /// When the cluster cannot be read, does not keep it, or what it keeps is damaged.
    pub async fn load(env: &Environment, version: &str) -> Result<Self, BundleError> {
        let stored = env.stored().await.map_err(StoredError::from)?;
        Self::from_objects(&stored, version)
    }

    /// The bundle of a version among the `ConfigMaps` and Secrets of the system namespace.
    pub(crate) fn from_objects(maps: &[Value], version: &str) -> Result<Self, BundleError> {
        let head = head_name(version);
        let Some(bytes) = unpack(maps, &head)? else {
            return Err(BundleError::NotKept { version: version.to_owned(), kept: kept(maps) });
        };
        let damaged = |reason: String| BundleError::Damaged { name: head.clone(), reason };
        let written: Written = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        let mut files = Tree::new();
        for (path, file) in written.files {
            let bytes = match file {
                File::Text(text) => text.into_bytes(),
                File::Base64(text) => STANDARD.decode(text).map_err(|e| damaged(format!("{path}: {e}")))?,
            };
            files.insert(path, bytes);
        }
        Ok(Self { files, settings: written.settings, lock: written.lock })
    }

    /// The release that the files are.
    ///
    /// # Errors
    /// When they are none.
    pub fn release(&self) -> Result<Release, Unreadable> {
        Release::read(&self.files, &self.settings)
    }

    /// The objects that hold it: parts first, head last.
    pub(crate) fn to_objects(&self, name: &str, version: &str) -> Result<Vec<Value>, BundleError> {
        let files = self.files.iter().map(|(path, bytes)| {
            let file = match std::str::from_utf8(bytes) {
                Ok(text) => File::Text(text.to_owned()),
                Err(_) => File::Base64(STANDARD.encode(bytes)),
            };
            (path.clone(), file)
        });
        let written =
            Written { files: files.collect(), settings: self.settings.clone(), lock: self.lock.clone() };
        let text =
            serde_json::to_vec(&written).map_err(|e| BundleError::NotWritable { reason: e.to_string() })?;
        Ok(pack(Parts::Secret, &head_name(version), &[("release", name), ("version", version)], &text)?)
    }
}

/// The versions whose bundles are among the `ConfigMaps` of the system namespace.
pub(crate) fn kept(maps: &[Value]) -> Vec<String> {
    heads(maps).map(|head| object::text(head, "/data/version").to_owned()).collect()
}

fn heads(maps: &[Value]) -> impl Iterator<Item = &Value> {
    maps.iter().filter(|map| is_of_a_bundle(map))
}

/// Whether a `ConfigMap` is the head of a bundle.
pub(crate) fn is_of_a_bundle(map: &Value) -> bool {
    object::name(map).starts_with(PREFIX) && map.pointer("/data/parts").is_some()
}

/// A version as the name of a head: lower-case letters, digits, `-` and `.`; versions that differ have different names.
fn head_name(version: &str) -> String {
    let plain = !version.is_empty()
        && version.len() <= LONGEST
        && version.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-')
        && version.bytes().last().is_some_and(|b| b.is_ascii_alphanumeric());
    if plain {
        return format!("{PREFIX}{version}");
    }
    let digest = scantling_image::Digest::of(version.as_bytes());
    format!("{PREFIX}x{}", digest.hex().get(..20).unwrap_or_default())
}

impl Session<'_> {
    /// Whether the cluster keeps this very bundle already.
    pub(crate) fn bundle_to_store(&self) -> Result<Option<Vec<Value>>, Stop> {
        let Some(mut bundle) = self.options.bundle.clone().filter(|_| !self.bundle_stored) else {
            return Ok(None);
        };
        // What the gate found is what runs: going back must bring that, wherever a tag leads by then. References that
        // only the cluster can resolve make no lock; they are recorded with the state.
        bundle.lock = bundle.lock.or_else(|| Lock::from_resolved(self.release, self.images.clone()).ok());
        let (name, version) = (&self.report.release, &self.report.version);
        let maps = bundle.to_objects(name, version).map_err(|e| Stop::Halt(e.to_string()))?;
        let known = maps.last().is_some_and(|head| {
            let stored = self.system_maps.iter().find(|m| object::name(m) == object::name(head));
            stored.is_some_and(|s| s.pointer("/data/digest") == head.pointer("/data/digest"))
        });
        Ok((!known).then_some(maps))
    }

    /// Stores the bundle if the cluster does not have it, and lets go of those that are no longer needed: what is
    /// installed and what is being brought are kept.
    pub(crate) async fn store_bundle(&mut self) -> Result<(), Stop> {
        let Some(maps) = self.bundle_to_store()? else { return Ok(()) };
        let head = maps.last().cloned().unwrap_or_default();
        let there = match self.served.by_kind("", "Secret") {
            Some(secrets) => self.env.cluster.list(secrets, Some(SYSTEM_NAMESPACE), Some(PART_LABEL)).await?,
            None => Vec::new(),
        };
        for map in maps {
            self.send(Write::Apply { object: map, force: true }).await?;
        }
        let name = object::name(&head).to_owned();
        let mut gone: Vec<Value> = stale_parts(&there, &name, &head).into_iter().cloned().collect();
        let installed = self.state.as_ref().map(|s| head_name(&s.version));
        let mut others: Vec<Value> = heads(&self.system_maps)
            .filter(|h| object::name(h) != name && Some(object::name(h)) != installed.as_deref())
            .cloned()
            .collect();
        // Those that were stored last stay as long as there is room.
        others.sort_by(|a, b| {
            let stored = |m: &Value| object::text(m, "/metadata/creationTimestamp").to_owned();
            stored(b).cmp(&stored(a))
        });
        let room = KEPT.saturating_sub(1 + usize::from(installed.is_some_and(|i| i != name)));
        for old in others.into_iter().skip(room) {
            let parts = stale_parts(&there, object::name(&old), &Value::Null);
            let parts: Vec<Value> = parts.into_iter().cloned().collect();
            // The head first: parts without a head are nothing, a head without parts is damage.
            gone.push(old);
            gone.extend(parts);
        }
        for object in gone {
            self.send(Write::Delete { object, uid: None, grace_seconds: None }).await?;
        }
        self.bundle_stored = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_stored_is_read_again() {
        let files = Tree::from([
            ("release.yaml".to_owned(), b"a: b".to_vec()),
            ("logo.png".to_owned(), vec![0xff, 0x00, 0x80]),
        ]);
        let settings = Settings { registry: Some("r.example.com".to_owned()), ..Settings::default() };
        let bundle = Bundle::of(files, settings, None);
        let maps = bundle.to_objects("r", "1.0").unwrap();
        let kinds: Vec<&str> = maps.iter().map(|object| object::text(object, "/kind")).collect();
        assert_eq!(kinds, ["Secret", "ConfigMap"]);
        assert_eq!(Bundle::from_objects(&maps, "1.0").unwrap(), bundle);
        let why = Bundle::from_objects(&maps, "2.0").unwrap_err().to_string();
        assert!(why.contains("2.0") && why.contains("it keeps 1.0"), "{why}");
        let why = Bundle::from_objects(&maps[1..], "1.0").unwrap_err().to_string();
        assert!(why.contains("it is missing"), "{why}");
    }

    #[test]
    fn versions_that_differ_have_names_that_differ() {
        let long = ["1.0.0-", &"a".repeat(58)].concat();
        let longer = ["1.0.0-", &"b".repeat(58)].concat();
        for version in [&long, &longer] {
            assert!(head_name(version).len() <= 63, "{}", head_name(version));
        }
        let mut names: Vec<String> =
            [&*long, &*longer, "2026.1", "2026.2", "1.0.0-rc.1", "1.0.0+a", "1.0.0+b", "V1", "v1", ""]
                .map(head_name)
                .into();
        assert!(
            names.iter().all(|n| n
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b)))
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10);
    }
}
