//! What is around the objects of a release when it is taken away: whether a namespace or a kind that could go holds something
//! of others.
//!
//! # Guarantees
//! Unknown is not empty: what the server does not list, or does not describe, keeps the namespace or the definition.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::{GroupVersionKind, ObjectKey, object};
use scantling_cluster::{ClusterError, Resource};
use scantling_plan::{Outcome, Step, is_applied};
use serde_json::Value;

use crate::session::Session;
use crate::state::SYSTEM_NAMESPACE;

/// Objects that are named when something is kept because of them; the rest is counted.
const NAMED: usize = 3;
/// How many owners of owners are followed: deeper than any chain that controllers make, and an end for one that is a circle.
const OWNERS: usize = 8;
/// Kinds that a server or its controllers keep for themselves, or show without storing them: nobody's data.
const NOBODYS: [(&str, &str); 8] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
    ("metrics.k8s.io", "PodMetrics"),
    ("packages.operators.coreos.com", "PackageManifest"),
    ("authorization.openshift.io", "RoleBindingRestriction"),
];
/// Groups of which nothing is stored: their servers compute what they show, and are away on many a cluster.
const COMPUTED: [&str; 4] =
    ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io", "packages.operators.coreos.com"];
/// Objects that controllers put into every namespace.
const EVERYWHERE: [(&str, &str); 8] = [
    ("ServiceAccount", "default"),
    ("ServiceAccount", "builder"),
    ("ServiceAccount", "deployer"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("RoleBinding", "system:image-pullers"),
    ("RoleBinding", "system:image-builders"),
    ("RoleBinding", "system:deployers"),
];
/// The group of the product's own kinds: their objects go with the product.
pub(crate) const OWN_GROUP: &str = "scantling.dev";

/// What goes as a whole, with everything that is in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// A namespace.
    Namespace(String),
    /// Every object of a kind, which goes with its definition.
    Kind { definition: String, group: String, kind: String, established: bool },
}

impl Scope {
    /// What goes with an object; none if it goes alone.
    pub(crate) fn of(key: &ObjectKey, object: &Value) -> Option<Self> {
        match (key.group.as_str(), key.kind.as_str()) {
            ("", "Namespace") => Some(Self::Namespace(key.name.clone())),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
                let established = conditions.into_iter().flatten().any(|condition| {
                    object::text(condition, "/type") == "Established"
                        && object::text(condition, "/status") == "True"
                });
                Some(Self::Kind {
                    definition: key.name.clone(),
                    group: object::text(object, "/spec/group").to_owned(),
                    kind: object::text(object, "/spec/names/kind").to_owned(),
                    established,
                })
            }
            _ => None,
        }
    }

    fn holds(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Namespace(name) => key.namespace.as_ref() == Some(name),
            Self::Kind { group, kind, .. } => key.group == *group && key.kind == *kind,
        }
    }
}

/// What goes and what stays, by what was decided so far.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    going: BTreeSet<ObjectKey>,
    staying: BTreeSet<ObjectKey>,
    uids: BTreeSet<String>,
}

impl Decided {
    pub(crate) fn of(steps: &[Step]) -> Self {
        let mut decided = Self::default();
        for step in steps {
            if step.outcome == Outcome::Pruned {
                decided.uids.insert(object::uid(&step.body).to_owned());
                decided.going.insert(step.key.clone());
            } else {
                decided.staying.insert(step.key.clone());
            }
        }
        decided
    }
}

/// What is known of the objects in scopes that might go.
#[derive(Debug, Default)]
pub(crate) struct Around {
    pub(crate) objects: BTreeMap<ObjectKey, Value>,
    by_uid: BTreeMap<String, ObjectKey>,
    /// Uids of owners that are there no more: what they own goes by itself.
    absent: BTreeSet<String>,
    /// What could not be found out of a scope.
    unknown: Vec<(Scope, String)>,
}

impl Around {
    /// Why a scope stays: it holds what is somebody's, or it cannot be told whether it does.
    pub(crate) fn stays(&self, scope: &Scope, decided: &Decided) -> Option<String> {
        let others: Vec<&ObjectKey> = self
            .objects
            .iter()
            .filter(|(key, object)| scope.holds(key) && self.is_somebodys(key, object, decided))
            .map(|(key, _)| key)
            .collect();
        if !others.is_empty() {
            let others = list_of(&others);
            return Some(match scope {
                Scope::Namespace(name) if name == SYSTEM_NAMESPACE => {
                    format!("others have something in it: {others}")
                }
                Scope::Namespace(_) => format!("it holds what stays: {others}"),
                Scope::Kind { .. } => format!("objects of this kind are other people's: {others}"),
            });
        }
        let mut unknown = self.unknown.iter().filter(|(of, _)| of == scope).map(|(_, why)| why);
        let first = unknown.next()?;
        let more = match unknown.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let whose = match scope {
            Scope::Namespace(_) => "whether others have something in it",
            Scope::Kind { .. } => "whether others have objects of this kind",
        };
        Some(format!("it cannot be told {whose} ({first}{more}); uninstall again when that answers"))
    }

    fn is_somebodys(&self, key: &ObjectKey, object: &Value, decided: &Decided) -> bool {
        if decided.staying.contains(key) {
            return true;
        }
        let nobodys = is_nobodys(&key.group, &key.kind)
            || EVERYWHERE.contains(&(key.kind.as_str(), key.name.as_str()))
            || object::label(object, "endpointslice.kubernetes.io/managed-by").is_some()
            || object::annotation(object, "kubernetes.io/service-account.name").is_some();
        let ours = decided.going.contains(key)
            || key.group == OWN_GROUP
            || key.kind == "Pod"
                && object::label(object, "app.kubernetes.io/managed-by") == Some("scantling")
            || key.namespace.as_deref() == Some(SYSTEM_NAMESPACE) && is_applied(object);
        // Somebody has ordered already that it goes.
        let is_going = object.pointer("/metadata/deletionTimestamp").is_some();
        !(nobodys || ours || is_going || self.goes_along(object, decided, OWNERS))
    }

    /// Whether an object goes with its owners, directly or by others. An owner that was not found may be anywhere.
    fn goes_along(&self, object: &Value, decided: &Decided, further: usize) -> bool {
        let owners = object::owner_references(object);
        !owners.is_empty()
            && owners.iter().all(|owner| {
                decided.uids.contains(&owner.uid)
                    || self.absent.contains(&owner.uid)
                    || further > 0
                        && self
                            .by_uid
                            .get(&owner.uid)
                            .and_then(|key| self.objects.get(key))
                            .is_some_and(|found| self.goes_along(found, decided, further - 1))
            })
    }
}

fn is_nobodys(group: &str, kind: &str) -> bool {
    NOBODYS.contains(&(group, kind))
}

fn list_of(others: &[&ObjectKey]) -> String {
    let named: Vec<String> = others.iter().take(NAMED).map(ToString::to_string).collect();
    match others.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

impl Session<'_> {
    /// Reads every object in some scopes.
    pub(crate) async fn read_around(&self, scopes: &[Scope]) -> Result<Around, ClusterError> {
        let mut around = Around::default();
        let mut lists: Vec<(&Scope, Resource, Option<&str>)> = Vec::new();
        for scope in scopes {
            match scope {
                Scope::Namespace(name) => {
                    let of_it = self.served.iter().filter(|r| r.namespaced && r.offers("list"));
                    lists.extend(of_it.map(|r| (scope, r.clone(), Some(name.as_str()))));
                    for not in self.served.undescribed() {
                        if !COMPUTED.contains(&not.group.as_str()) {
                            around.unknown.push((scope.clone(), not.why.clone()));
                        }
                    }
                }
                Scope::Kind { definition, established, .. } => {
                    let of_it = |r: &&Resource| format!("{}.{}", r.plural, r.gvk.group) == *definition;
                    match self.served.iter().find(of_it) {
                        Some(resource) => lists.push((scope, resource.clone(), None)),
                        // There may be objects of a kind of which no version is served.
                        None if *established => {
                            let why = "the server does not serve the kind at the moment".to_owned();
                            around.unknown.push((scope.clone(), why));
                        }
                        None => {}
                    }
                }
            }
        }
        for (scope, resource, namespace) in lists {
            if is_nobodys(&resource.gvk.group, &resource.gvk.kind) {
                continue;
            }
            let found = match self.env.cluster.list(&resource, namespace, None).await {
                Ok(found) => found,
                // The kind has gone since the server was asked which there are.
                Err(ClusterError::NotFound { .. }) => continue,
                Err(error) if is_about_this(&error) => {
                    if !COMPUTED.contains(&resource.gvk.group.as_str()) {
                        around.unknown.push((scope.clone(), error.to_string()));
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            for object in found {
                let key = resource.key(object::namespace(&object), object::name(&object));
                around.by_uid.insert(object::uid(&object).to_owned(), key.clone());
                around.objects.insert(key, object);
            }
        }
        self.look_for_owners(&mut around).await?;
        Ok(around)
    }

    /// Asks for owners that were not among what was listed, as the garbage collector does: what they own goes if they are gone.
    async fn look_for_owners(&self, around: &mut Around) -> Result<(), ClusterError> {
        let mut owners: BTreeMap<String, (GroupVersionKind, Option<String>, String)> = BTreeMap::new();
        for (key, object) in &around.objects {
            for owner in object::owner_references(object) {
                if !around.by_uid.contains_key(&owner.uid) {
                    owners.insert(owner.uid, (owner.gvk, key.namespace.clone(), owner.name));
                }
            }
        }
        for (uid, (gvk, namespace, name)) in owners {
            let Some(resource) = self.served.by_gvk(&gvk) else { continue };
            let namespace = namespace.filter(|_| resource.namespaced);
            match self.env.cluster.get(resource, namespace.as_deref(), &name).await {
                Ok(found) if found.as_ref().is_none_or(|found| object::uid(found) != uid) => {
                    around.absent.insert(uid);
                }
                Ok(_) => {}
                Err(error) if is_about_this(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether an error says something of what was asked for, and not that nobody can be asked anything.
fn is_about_this(error: &ClusterError) -> bool {
    !matches!(
        error,
        ClusterError::Unreachable { .. }
            | ClusterError::Unauthenticated { .. }
            | ClusterError::Configuration { .. }
    )
}
