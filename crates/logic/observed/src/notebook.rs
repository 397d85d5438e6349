//! Notebooks (kubeflow.org).

use scantling_api::object::{self, Container};
use serde_json::Value;

use crate::view::{View as _, view};

/// Annotations of notebooks that existing clients write and read.
pub mod annotations {
    /// `stream:tag`, what the owner chose.
    pub const SELECTION: &str = "notebooks.opendatahub.io/last-image-selection";
    /// Where the catalogue entry of the selection is, if not in the platform's namespace.
    pub const IMAGE_NAMESPACE: &str = "opendatahub.io/workbench-image-namespace";
    /// There (with any value) while the notebook is stopped.
    pub const STOPPED: &str = "kubeflow-resource-stopped";
    /// `true` when the owner wants a restart, which takes pending updates.
    pub const RESTART: &str = "notebooks.opendatahub.io/notebook-restart";
    /// Ours: when the last restart was asked for (RFC 3339).
    pub const RESTART_REQUESTED: &str = "scantling.dev/restart-requested-at";
    /// The hardware profile that was chosen.
    pub const PROFILE: &str = "opendatahub.io/hardware-profile-name";
    /// Where that profile is, if not in the platform's namespace.
    pub const PROFILE_NAMESPACE: &str = "opendatahub.io/hardware-profile-namespace";
    /// Which server runs: `jupyter` (also where nothing is written), `group-one` or `group-two`.
    pub const SERVER_TYPE: &str = "notebooks.kubeflow.org/server-type";
    /// When somebody last did something in the notebook (RFC 3339).
    pub const LAST_ACTIVITY: &str = "notebooks.kubeflow.org/last-activity";
    /// Ours: how large a volume the notebook is to have, such as `10Gi`.
    pub const VOLUME_SIZE: &str = "scantling.dev/volume-size";
    /// Ours: of which storage class the volume is, if not of the cluster's default.
    pub const VOLUME_CLASS: &str = "scantling.dev/volume-class";
    /// Ours, on pods: what a restart would change.
    pub const UPDATE_PENDING: &str = "scantling.dev/update-pending";
}

view!(
    /// A notebook.
    Notebook, "kubeflow.org", "Notebook"
);

impl<'a> Notebook<'a> {
    /// What the owner chose, `stream:tag`.
    pub fn selection(self) -> Option<&'a str> {
        self.annotation(annotations::SELECTION).filter(|selection| !selection.is_empty())
    }

    /// Where the catalogue is that it is chosen from, if its owner says so.
    pub fn catalogue_namespace(self) -> Option<&'a str> {
        self.annotation(annotations::IMAGE_NAMESPACE).filter(|namespace| !namespace.is_empty())
    }

    /// Is it stopped?
    pub fn is_stopped(self) -> bool {
        self.annotation(annotations::STOPPED).is_some()
    }

    /// Has the owner asked for a restart that nobody has answered yet?
    pub fn wants_restart(self) -> bool {
        self.annotation(annotations::RESTART) == Some("true")
    }

    /// The spec of its pods.
    pub fn pod_spec(self) -> Option<&'a Value> {
        self.object().pointer("/spec/template/spec").filter(|spec| spec.is_object())
    }

    /// The container that is the notebook: the one of the same name, or the only one.
    pub fn container(self) -> Option<Container<'a>> {
        let regular: Vec<Container<'a>> = object::pod_containers(self.pod_spec()?)
            .into_iter()
            .filter(|container| container.kind == object::ContainerKind::Regular)
            .collect();
        match regular.as_slice() {
            [only] => Some(*only),
            several => several.iter().find(|container| container.name() == self.name()).copied(),
        }
    }
}
