//! What a cluster holds, as one value.
//!
//! # Flow
//! A reader of a live cluster or of a snapshot puts whole objects into [`Observed`]; everything that decides (plan, audit, reconcilers)
//! reads them through views: [`Pod`], [`Node`], [`ImageStream`], [`Notebook`] …
//!
//! # Guarantees
//! - Objects are kept as they came; a view computes, it stores nothing. What a view cannot read it gives as `None` or as an error with the
//!   text that it could not read.
//! - Iteration is in the order of keys, so that the same cluster always gives the same decisions.
//! - Values of secrets are in no `Debug` output.
//!
//! # Assumptions
//! There is one object for each key. Objects of several versions of one group are the same object.
//!
//! # Caveats
//! It is a picture: the cluster may have moved since. Whoever acts on it names the uid that was seen.
//!
//! # Errors
//! [`ObservedError`] says which item is no object of the API, and why.

mod config;
mod device;
mod hardware_profile;
mod image_stream;
mod node;
mod notebook;
mod notebook_image;
mod ownership;
mod platform;
mod pod;
mod record;
mod rollout;
mod serving;
mod slim;
mod snapshot;
mod state;
mod time;
mod view;
mod workload;

pub use config::{ConfigMap, Secret, SecretValue};
pub use device::{devices, is_device, whole};
pub use hardware_profile::{
    HardwareProfile, HardwareProfileSpec, HardwareResource, HardwareScheduling, NodePlacement, QueuePlacement,
};
pub use image_stream::{Condition, ImageStream, StreamTag, TagItem};
pub use node::{Node, NodeImage};
pub use notebook::{Notebook, annotations};
pub use notebook_image::{NotebookImage, NotebookImageSpec, NotebookImageStatus, PackageVersion, SpecError};
pub use platform::{
    APPROVED, Approval, Culling, ModelPolicy, ModelRoll, NotebookPolicy, NotebookRestart, OnFailure,
    PLATFORM_NAME, Platform, PlatformComponent, PlatformCondition, PlatformRun, PlatformSpec, PlatformStatus,
    WantedRelease,
};
pub use pod::{ContainerState, Pod, PodContainer};
pub use record::{
    ContainerRecord, ImageVolume, Names, NodeImageRecord, NodeRecord, NodeWire, OwnerRecord, PodRecord,
    PodWire, RecordError, RunState, Text,
};
pub use rollout::{Rollout, rollout};
pub use serving::{ClusterServingRuntime, InferenceService, ServingRuntime};
pub use slim::{slim, slim_secret};
pub use snapshot::MAX_LIST_DEPTH;
pub use state::{Observed, ObservedError};
pub use time::unix_seconds;
pub use view::View;
pub use workload::{Deployment, NetworkPolicy, PersistentVolumeClaim, Service, ServiceAccount, StatefulSet};
