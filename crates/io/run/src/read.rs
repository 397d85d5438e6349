//! Stage 1: what the cluster is like.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use scantling_api::{GroupVersionKind, ObjectKey, object};
use scantling_cluster::{ClusterError, Resource};
use scantling_plan::{NodeFacts, Origin, Previous, encode_string_data, is_applied, is_made_by_us};
use serde_json::Value;

use crate::apply::AT_ONCE;
use crate::desired::{default_import_mode, types_of};
use crate::event::{Stage, What};
use crate::history::{self, Ended};
use crate::journal::{Action, JOURNAL_NAME, Journal};
use crate::report::Stop;
use crate::session::Session;
use crate::state::{SYSTEM_NAMESPACE, State};

impl Session<'_> {
    /// Reads nodes, stored state, journal, and every object that the release or the previous one names.
    pub(crate) async fn read_cluster(&mut self, kinds: &[(ObjectKey, GroupVersionKind)]) -> Result<(), Stop> {
        self.stage = Stage::Read;
        self.served = self.env.cluster.served().await?;
        self.read_state().await?;
        self.report.from = self.comes_from();
        self.tell(What::Started {
            release: self.report.release.clone(),
            version: self.report.version.clone(),
            from: self.report.from.clone(),
        });
        if self.report.continued {
            let (started, reached) = (self.journal.started.clone(), self.journal.reached.clone());
            self.tell(What::Continued { started, reached });
        }
        self.nodes = self.list("", "Node", None).await?.iter().map(NodeFacts::read).collect();
        self.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        self.read_objects(kinds).await?;
        self.claim_creates();
        self.read_schemas(kinds).await?;
        let platforms: BTreeSet<String> =
            self.nodes.iter().filter_map(|n| n.platform.as_ref().map(ToString::to_string)).collect();
        self.tell(What::ClusterRead {
            nodes: self.nodes.len(),
            platforms: platforms.into_iter().collect(),
            objects: self.live.len(),
        });
        Ok(())
    }

    /// The version that the run comes from: the one that is installed, but for going back from an upgrade that stopped, which
    /// was never installed whole.
    fn comes_from(&self) -> Option<String> {
        let installed = self.previous.version.clone();
        if self.journal.action != Action::Rollback || installed.as_ref() != Some(&self.report.version) {
            return installed;
        }
        let open = self.open_run().ok().flatten().map(|run| run.version);
        let last = history::read(&self.system_maps).into_iter().next();
        let stopped = last.filter(|run| run.outcome == Ended::Stopped).map(|run| run.version);
        [open, stopped].into_iter().flatten().find(|version| *version != self.report.version).or(installed)
    }

    /// Every object of a kind that the server serves; none if it does not.
    pub(crate) async fn list(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, ClusterError> {
        match self.served.by_kind(group, kind) {
            Some(resource) => self.env.cluster.list(resource, namespace, None).await,
            None => Ok(Vec::new()),
        }
    }

    pub(crate) async fn read_state(&mut self) -> Result<(), Stop> {
        let maps = self.list("", "ConfigMap", Some(SYSTEM_NAMESPACE)).await?;
        self.system_maps.clone_from(&maps);
        self.state = State::from_config_maps(&maps).map_err(|e| Stop::Refuse(e.to_string()))?;
        if let Some(state) = &self.state {
            self.previous = state.previous();
            self.prepulled =
                state.prepulled.iter().map(|(k, v)| (k.clone(), v.iter().cloned().collect())).collect();
            self.known_images.clone_from(&state.known_images);
            self.recorded = state.images.iter().map(|i| (i.tag.clone(), i.clone())).collect();
        } else if let Some(installed) = &self.options.installed {
            let objects = installed.objects.iter().map(|o| {
                let mut value = o.value.clone();
                encode_string_data(&mut value);
                default_import_mode(&mut value);
                (o.key.clone(), value)
            });
            self.previous = Previous { version: None, objects: objects.collect(), ..Previous::default() };
        }
        if self.state.is_none() {
            let last = self.last_journal().map_err(Stop::Refuse)?;
            self.journal.creates.extend(last.into_iter().flat_map(|journal| journal.creates));
        }
        if let Some(open) = self.open_run().map_err(Stop::Refuse)? {
            self.left_open = true;
            self.journal.creates.extend(open.creates.iter().cloned());
            self.journal.traces.clone_from(&open.traces);
            self.previous.traces.clone_from(&open.traces);
            let holder = self.journal.holder.clone();
            if open.action == self.journal.action
                && open.release == self.journal.release
                && open.version == self.journal.version
            {
                self.report.continued = true;
                self.journal = Journal { holder, paused: false, ..open };
            }
        }
        Ok(())
    }

    /// The journal of a run that has not ended.
    pub(crate) fn open_run(&self) -> Result<Option<Journal>, String> {
        Ok(self.last_journal()?.filter(|journal| journal.open))
    }

    /// The journal of the last run that wrote something.
    fn last_journal(&self) -> Result<Option<Journal>, String> {
        let map = self.system_maps.iter().find(|m| object::name(m) == JOURNAL_NAME);
        map.map(Journal::read).transpose().map_err(|e| e.to_string())
    }

    /// What an unfinished run created is ours, whichever release it was for. The journal says what that run set out to
    /// create; only an object that we have applied says that it got so far, and that nobody else was first.
    pub(crate) fn claim_creates(&mut self) {
        let ours: BTreeSet<ObjectKey> = std::mem::take(&mut self.journal.creates)
            .into_iter()
            .filter(|key| self.live.get(key).is_some_and(is_applied))
            .collect();
        // A run applies it only when it is not there, and before it has a journal.
        let own = ObjectKey::cluster("", "Namespace", SYSTEM_NAMESPACE);
        let own = Some(own).filter(|own| self.live.get(own).is_some_and(is_applied));
        for key in ours.iter().chain(&own) {
            self.previous.inventory.entry(key.clone()).or_insert(Origin::Created);
        }
        self.journal.creates = ours;
        // Without a state only the objects themselves can tell. A run that is open has it in its journal.
        if self.state.is_none() && !self.left_open {
            let made = self.live.iter().filter(|(_, object)| is_made_by_us(object));
            let made: Vec<ObjectKey> = made.map(|(key, _)| key.clone()).collect();
            for key in made {
                self.previous.inventory.entry(key).or_insert(Origin::Created);
            }
        }
    }

    /// One list for each kind and namespace in which something is looked for.
    pub(crate) async fn read_objects(&mut self, kinds: &[(ObjectKey, GroupVersionKind)]) -> Result<(), Stop> {
        let mut wanted: BTreeMap<ObjectKey, Option<GroupVersionKind>> =
            kinds.iter().map(|(key, gvk)| (key.clone(), Some(gvk.clone()))).collect();
        let known = self.previous.inventory.keys().chain(self.previous.objects.keys());
        for key in known.chain(&self.journal.creates) {
            wanted.entry(key.clone()).or_insert(None);
        }
        self.refuse_what_cannot_be_told(wanted.keys())?;
        let mut scopes: BTreeMap<(String, Option<String>), Resource> = BTreeMap::new();
        for (key, gvk) in &wanted {
            let exact = gvk.as_ref().and_then(|gvk| self.served.by_gvk(gvk));
            if let Some(resource) = exact.or_else(|| self.served.by_kind(&key.group, &key.kind)) {
                let namespace = key.namespace.clone().filter(|_| resource.namespaced);
                scopes.entry((format!("{:#}", resource.gvk), namespace)).or_insert_with(|| resource.clone());
            }
        }
        let session: &Self = self;
        let lists: Vec<(Resource, Result<Vec<Value>, ClusterError>)> = futures::stream::iter(scopes)
            .map(|((_, namespace), resource)| async move {
                let list = session.env.cluster.list(&resource, namespace.as_deref(), None).await;
                (resource, list)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (resource, list) in lists {
            for object in list? {
                if resource.gvk.group.is_empty() && resource.gvk.kind == "Namespace" {
                    self.namespaces.insert(object::name(&object).to_owned(), object.clone());
                }
                if let Ok(key) = object::key(&object)
                    && wanted.contains_key(&key)
                {
                    self.live.insert(key, object);
                }
            }
        }
        Ok(())
    }

    /// Objects of a kind that the server could not describe are not absent: who takes them for that forgets them.
    fn refuse_what_cannot_be_told<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k ObjectKey>,
    ) -> Result<(), Stop> {
        let mut unserved = keys.filter(|key| self.served.by_kind(&key.group, &key.kind).is_none());
        let found = unserved.find_map(|key| {
            let not = self.served.undescribed().iter().find(|not| not.group == key.group)?;
            Some(format!(
                "it cannot be told whether {key} is there ({}); run again when that answers",
                not.why
            ))
        });
        match found {
            Some(why) => Err(self.refuse(why)),
            None => Ok(()),
        }
    }

    /// The types of custom kinds, from the definitions that the cluster has.
    async fn read_schemas(&mut self, kinds: &[(ObjectKey, GroupVersionKind)]) -> Result<(), Stop> {
        let custom: BTreeSet<&GroupVersionKind> = kinds
            .iter()
            .map(|(_, gvk)| gvk)
            .filter(|gvk| self.schema.kind(&gvk.group, &gvk.version, &gvk.kind).is_none())
            .collect();
        let Some(definitions) = self.served.by_kind("apiextensions.k8s.io", "CustomResourceDefinition")
        else {
            return Ok(());
        };
        let mut schemas = Vec::new();
        for gvk in custom {
            let Some(resource) = self.served.by_gvk(gvk) else { continue };
            let name = format!("{}.{}", resource.plural, gvk.group);
            let key = definitions.key(None, &name);
            let definition = match self.live.get(&key) {
                Some(definition) => Some(definition.clone()),
                None => self.env.cluster.get(definitions, None, &name).await?,
            };
            if let Some(definition) = definition {
                schemas.push(types_of(&definition)?);
            }
        }
        for schema in schemas {
            self.schema.extend(schema);
        }
        Ok(())
    }
}
