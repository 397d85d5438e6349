//! What the namespace of the product says about runs, read in one go: for whoever watches over them.

use scantling_api::{GroupVersionKind, object};
use scantling_cluster::{Cluster, Resource};
use scantling_observed::{Observed, PlatformComponent};
use scantling_reconcile::KnownImages;
use serde_json::Value;

use crate::bundle::kept;
use crate::history::{self, PastRun};
use crate::journal::{JOURNAL_NAME, Journal};
use crate::report::RunError;
use crate::state::{SYSTEM_NAMESPACE, State};
use crate::status::OpenRun;

/// The bookkeeping of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Books {
    /// The version that was last brought to its end.
    pub installed: Option<String>,
    /// The workloads of that release, with the images that they were given.
    pub components: Vec<PlatformComponent>,
    /// Images whose contents were read by a run.
    pub images: KnownImages,
    /// A run that has begun and not ended.
    pub open: Option<OpenRun>,
    /// The runs that changed something, newest first.
    pub past: Vec<PastRun>,
    /// The versions whose files are stored.
    pub kept: Vec<String>,
}

impl Books {
    /// Reads them: one list, nothing else.
    ///
    /// # Errors
    /// When the cluster cannot be read, or what is stored there is damaged.
    pub async fn of(cluster: &Cluster) -> Result<Self, RunError> {
        // Every server has this kind, so that discovery need not be waited for.
        let resource = Resource {
            gvk: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".to_owned(),
            namespaced: true,
            verbs: Vec::new(),
        };
        let maps = cluster.list(&resource, Some(SYSTEM_NAMESPACE), None).await.map_err(RunError::unread)?;
        let state = State::from_config_maps(&maps).map_err(RunError::unread)?;
        let journal = maps.iter().find(|m| object::name(m) == JOURNAL_NAME).map(Journal::read).transpose();
        let journal = journal.map_err(RunError::unread)?.filter(|journal| journal.open);
        Ok(Self {
            installed: state.as_ref().map(|state| state.version.clone()),
            components: state.as_ref().map(components).unwrap_or_default(),
            images: state.as_ref().map(State::known).unwrap_or_default(),
            open: journal.map(OpenRun::from),
            past: history::read(&maps),
            kept: kept(&maps),
        })
    }
}

/// The workloads of a release, as far as their images can be named.
fn components(state: &State) -> Vec<PlatformComponent> {
    let Ok(observed) = Observed::from_objects(state.objects.iter().cloned()) else { return Vec::new() };
    let mut components: Vec<PlatformComponent> = ["Deployment", "StatefulSet", "DaemonSet"]
        .into_iter()
        .flat_map(|kind| observed.of_kind("apps", kind).map(|(key, workload)| (key.clone(), workload)))
        .map(|(key, workload)| PlatformComponent {
            name: format!("{}/{}", key.namespace.unwrap_or_default(), key.name),
            version: state.version.clone(),
            image: workload
                .pointer("/spec/template/spec/containers/0/image")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        })
        .collect();
    components.sort();
    components
}
