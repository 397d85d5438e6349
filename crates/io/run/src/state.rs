//! What the cluster remembers of the release last applied.
//!
//! Kept in `ConfigMaps` of the namespace `scantling-system` under the head `scantling-state`.

use std::collections::BTreeMap;

use scantling_api::{ObjectKey, object};
use scantling_image::Digest;
use scantling_plan::{Inventory, Origin, Previous};
use scantling_reconcile::KnownImage;
use scantling_release::LockedImage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::packed::{FORMAT, PackError, Parts, pack, unpack};

/// The namespace of everything that the product keeps for itself.
pub const SYSTEM_NAMESPACE: &str = "scantling-system";
/// The head of the state.
pub const STATE_NAME: &str = "scantling-state";
/// A release as it was applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct State {
    /// Name of the release.
    pub release: String,
    /// Its version.
    pub version: String,
    /// Its objects as they were applied, Secrets without values.
    pub objects: Vec<Value>,
    /// What its references lead to, as the lock says.
    pub lock: Vec<LockedImage>,
    /// The objects that are ours, with how they came to us.
    pub inventory: Vec<InventoryEntry>,
    /// Image stream tags, `ns/stream:tag`, with the digest that was recorded after import or build and the claims that
    /// were checked for it.
    pub images: Vec<RecordedImage>,
    /// Images whose contents were read, those of earlier releases included: pods of them may still run.
    pub known_images: Vec<KnownImage>,
    /// References by digest that each node was given, by the node's uid.
    pub prepulled: BTreeMap<String, Vec<String>>,
}

/// One object of the inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InventoryEntry {
    /// The object.
    pub key: ObjectKey,
    /// How it came to us.
    pub origin: Origin,
}

/// An image that exists on the cluster only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedImage {
    /// `ns/stream:tag`.
    pub tag: String,
    /// The digest.
    pub digest: Digest,
    /// The reference by digest that pods pull.
    pub reference: String,
    /// Claims with what the layers hold, as they were checked for this digest.
    pub claims: Vec<RecordedClaim>,
}

/// A claim as it was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedClaim {
    /// The software.
    pub name: String,
    /// The version that is claimed.
    pub claimed: String,
    /// The version in the layers.
    pub found: Option<String>,
    /// Whether the claim holds.
    pub holds: bool,
}

/// Why a stored state cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Another program version wrote it.
    #[error(
        "the state in ConfigMap {SYSTEM_NAMESPACE}/{STATE_NAME} has format {found}, this program knows {FORMAT}; use the program that wrote it, or a newer one"
    )]
    Format {
        /// The format found.
        found: String,
    },
    /// It cannot be put into bytes.
    #[error(
        "the state cannot be written: {reason}; what is stored in {SYSTEM_NAMESPACE}/{STATE_NAME} stays as it was"
    )]
    NotWritable {
        /// What is wrong.
        reason: String,
    },
    /// A part is missing or damaged.
    #[error(
        "the state in ConfigMap {SYSTEM_NAMESPACE}/{name} cannot be read: {reason}; restore the ConfigMap, or delete {STATE_NAME} to have the objects adopted anew"
    )]
    Damaged {
        /// The part.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl From<PackError> for StateError {
    fn from(error: PackError) -> Self {
        match error {
            PackError::Format(found) => Self::Format { found },
            PackError::NotWritable(reason) => Self::NotWritable { reason },
            PackError::Damaged { name, reason } => Self::Damaged { name, reason },
        }
    }
}

impl State {
    /// What a plan needs of it.
    pub fn previous(&self) -> Previous {
        let objects = self.objects.iter().filter_map(|o| Some((object::key(o).ok()?, o.clone()))).collect();
        let inventory: Inventory = self.inventory.iter().map(|e| (e.key.clone(), e.origin)).collect();
        Previous { version: Some(self.version.clone()), objects, inventory, ..Previous::default() }
    }

    /// The `ConfigMaps` that hold it: parts first, head last.
    ///
    /// # Errors
    /// [`StateError::NotWritable`] if it cannot be put into bytes: then nothing must be stored.
    pub fn to_config_maps(&self) -> Result<Vec<Value>, StateError> {
        let text = serde_json::to_vec(self).map_err(|e| StateError::NotWritable { reason: e.to_string() })?;
        Ok(pack(Parts::Open, STATE_NAME, &[("release", &self.release), ("version", &self.version)], &text)?)
    }

    /// Reads it from the `ConfigMaps` of the system namespace. None if there is no head.
    pub fn from_config_maps(maps: &[Value]) -> Result<Option<Self>, StateError> {
        let Some(text) = unpack(maps, STATE_NAME)? else { return Ok(None) };
        let damaged = |reason: String| StateError::Damaged { name: STATE_NAME.to_owned(), reason };
        serde_json::from_slice(&text).map(Some).map_err(|e| damaged(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn state() -> State {
        State {
            release: "r".into(),
            version: "1.0".into(),
            objects: vec![
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}),
            ],
            lock: Vec::new(),
            inventory: vec![InventoryEntry {
                key: ObjectKey::namespaced("", "ConfigMap", "b", "a"),
                origin: Origin::Created,
            }],
            images: Vec::new(),
            known_images: Vec::new(),
            prepulled: BTreeMap::from([("uid".into(), vec!["x@sha256:1".into()])]),
        }
    }

    #[test]
    fn what_is_stored_is_read_again_and_the_same_state_gives_the_same_bytes() {
        let maps = state().to_config_maps().unwrap();
        assert_eq!(State::from_config_maps(&maps).unwrap().unwrap(), state());
        assert_eq!(maps, state().to_config_maps().unwrap());
        assert_eq!(State::from_config_maps(&[]).unwrap(), None);
        assert_eq!(state().previous().objects.len(), 1);
    }

    #[test]
    fn damage_and_other_formats_are_refused() {
        let whole = state().to_config_maps().unwrap();
        let headless_part = &whole[1..];
        assert!(matches!(State::from_config_maps(headless_part), Err(StateError::Damaged { .. })));
        let mut flipped = whole.clone();
        flipped[0]["binaryData"]["part"] = json!(STANDARD.encode(b"other"));
        assert!(matches!(State::from_config_maps(&flipped), Err(StateError::Damaged { .. })));
        let mut newer = whole;
        newer[1]["data"]["format"] = json!("2");
        assert_eq!(State::from_config_maps(&newer), Err(StateError::Format { found: "2".into() }));
    }
}
