//! Holds the end of a rehearsal against the six promises. The checkers read the sandbox itself, not what a run says of it;
//! only the outcomes, which are a run's to tell, come from its report.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::{ObjectKey, object};
use scantling_endpoint::{Keyring, Mirrors};
use scantling_image::{Digest, Platform, Reference};
use scantling_plan::Outcome;
use scantling_registry_server::RegistryServer;
use scantling_release::{LiveWhen, Reach};
use serde_json::Value;

use crate::cluster_view::{self, Trouble, UPDATE_PENDING};
use crate::compare::{Comparison, Generated, Objects};
use crate::images;
use crate::people::{ModelSeen, NotebookOutcome, NotebookSeen};
use crate::promises::{Checked, Promise};
use crate::scenario::ScenarioRelease;

/// Namespaces of the cluster itself.
const SYSTEM_NAMESPACES: [&str; 4] =
    ["kube-system", "kube-public", "kube-node-lease", "openshift-image-registry"];

/// What the checkers look at.
pub(crate) struct Evidence<'a> {
    /// The release that the cluster is meant to be at.
    pub release: &'a ScenarioRelease,
    /// Everything in the cluster at the end.
    pub objects: &'a Objects,
    /// Everything in it just before the upgrade; empty for a fresh install.
    pub before: &'a Objects,
    /// What registries hold at the end.
    pub registry: &'a RegistryServer,
    /// The cluster's mirrors.
    pub mirrors: &'a Mirrors,
    /// What its nodes run.
    pub platforms: &'a BTreeSet<Platform>,
    /// Objects that people made, and who.
    pub people: &'a BTreeMap<ObjectKey, String>,
    /// Notebooks at the end.
    pub notebooks: &'a [NotebookSeen],
    /// Models at the end.
    pub models: &'a [ModelSeen],
    /// The upgraded cluster held against a fresh one; absent for a fresh install.
    pub comparison: Option<&'a Comparison>,
    /// How each object ended, as the one who upgraded says; empty for a script that says nothing of the kind.
    pub told: &'a BTreeMap<ObjectKey, Outcome>,
    /// The fields that were left to people, as the one who upgraded says.
    pub kept: &'a BTreeSet<(ObjectKey, String)>,
    /// Claims of the release that its images do not hold, a line each.
    pub false_claims: &'a [String],
    /// Why a fresh install of the same release did not come to its end, if it did not.
    pub fresh_failure: Option<&'a str>,
    /// A fresh install of the same release, for what a node would start there.
    pub fresh: Option<&'a Objects>,
    /// Why the upgrade did not come to its end, if it did not.
    pub failure: Option<&'a str>,
}

/// Checks every promise, the six in their order and then the people.
pub(crate) fn check(evidence: &Evidence<'_>) -> Vec<Checked> {
    vec![
        pullable(evidence),
        pinned(evidence),
        converged(evidence),
        truthful(evidence),
        nothing_lost(evidence),
        nothing_silent(evidence),
        people(evidence),
    ]
}

fn pullable(evidence: &Evidence<'_>) -> Checked {
    let release = &evidence.release.release;
    let (mut broken, mut at_risk) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for used in &release.references {
        let (live, how) = match &used.reach {
            Reach::Applied => (true, String::new()),
            Reach::Fallback(when) => (
                when.declared
                    .as_ref()
                    .is_some_and(|it| is_live(it, release.namespace.as_deref(), evidence.objects)),
                format!(", a fallback in {} for when {when}", used.place),
            ),
            Reach::Undeclared => {
                (false, format!(", a fallback in {} that the release doesn't declare", used.place))
            }
        };
        if !seen.insert((used.reference.clone(), live)) {
            continue;
        }
        let Some(why) = why_not_pullable(evidence, &used.reference) else { continue };
        let text = format!("{}{how}: {why}", used.reference.written());
        if live { broken.push(text) } else { at_risk.push(format!("{text}; not live on this cluster")) }
    }
    for pod in pods(evidence.objects) {
        let view = cluster_view::pod(pod);
        if let Some(trouble) = view.trouble.filter(Trouble::is_about_the_image) {
            broken.push(format!("pod {} can't start: {trouble}", view.name));
        }
    }
    let count = seen.iter().map(|(reference, _)| reference).collect::<BTreeSet<_>>().len();
    Checked::new(Promise::Pullable, format!("{count} references, fallbacks included"), broken, at_risk)
}

/// Whether the condition of a fallback holds on the cluster.
fn is_live(when: &LiveWhen, namespace: Option<&str>, objects: &Objects) -> bool {
    let namespace = when.namespace.as_deref().or(namespace);
    let found = objects.iter().find(|(key, _)| {
        key.kind == when.kind
            && key.name == when.name
            && (key.namespace.is_none() || key.namespace.as_deref() == namespace)
    });
    match (found, &when.missing_key) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((_, object)), Some(key)) => object
            .get("data")
            .and_then(|data| data.get(key))
            .and_then(Value::as_str)
            .is_none_or(str::is_empty),
    }
}

/// Why a reference can't be pulled, by what registries hold; absent if it can.
fn why_not_pullable(evidence: &Evidence<'_>, reference: &Reference) -> Option<String> {
    let mut answers = Vec::new();
    for attempt in scantling_endpoint::attempts(reference, evidence.mirrors, &Keyring::default()) {
        let selector = attempt.selector.to_string();
        let Some(digest) = evidence.registry.resolve(&attempt.host, &attempt.repository, &selector) else {
            answers.push(format!("{} does not have it", attempt.host));
            continue;
        };
        match images::read(evidence.registry, &attempt.host, &attempt.repository, &digest) {
            Some(held) if held.missing.is_empty() => {
                let lacking = evidence
                    .platforms
                    .iter()
                    .find(|wanted| !held.platforms.iter().any(|platform| platform.matches(wanted)));
                match lacking {
                    None => return None,
                    Some(wanted) => answers.push(format!("{} has it, but not for {wanted}", attempt.host)),
                }
            }
            Some(held) => answers.push(format!("{} lacks {}", attempt.host, held.missing.join(", "))),
            None => answers.push(format!("{} does not have {}", attempt.host, digest.short())),
        }
    }
    Some(answers.join("; "))
}

fn pinned(evidence: &Evidence<'_>) -> Checked {
    let (mut broken, mut marked) = (Vec::new(), 0);
    let mut count = 0;
    for pod in pods(evidence.objects) {
        let view = cluster_view::pod(pod);
        let was_there = object::key(pod)
            .ok()
            .and_then(|key| evidence.before.get(&key))
            .is_some_and(|before| object::uid(before) == object::uid(pod));
        let running = view.running.as_ref().map_or("nothing yet".to_owned(), Digest::short);
        for container in object::pod_containers(pod.get("spec").unwrap_or(&Value::Null)) {
            count += 1;
            let Some(written) = container.image() else { continue };
            if Reference::parse(written).is_ok_and(|reference| reference.is_pinned()) {
                continue;
            }
            if was_there && object::annotation(pod, UPDATE_PENDING).is_some() {
                marked += 1;
                continue;
            }
            broken.push(format!("pod {} names {written}, a tag; it runs {running}", view.name));
        }
    }
    for (key, workload) in evidence.objects.iter().filter(|(key, _)| !is_system(key)) {
        let Some(template) = object::gvk(workload).ok().and_then(|gvk| object::pod_spec_pointer(&gvk)) else {
            continue;
        };
        if key.kind == "Pod" || key.kind == "ReplicaSet" {
            continue;
        }
        for container in object::pod_containers(workload.pointer(template).unwrap_or(&Value::Null)) {
            count += 1;
            let Some(written) = container.image() else { continue };
            if !Reference::parse(written).is_ok_and(|reference| reference.is_pinned()) {
                broken.push(format!("{key} names {written}, a tag"));
            }
        }
    }
    let mut summary = format!("{count} containers");
    if marked > 0 {
        summary =
            format!("{summary}, {marked} of a notebook from before, marked until its owner restarts it");
    }
    Checked::new(Promise::Pinned, summary, broken, Vec::new())
}

fn converged(evidence: &Evidence<'_>) -> Checked {
    let mut broken: Vec<String> =
        evidence.failure.iter().map(|why| format!("the upgrade did not end: {why}")).collect();
    broken.extend(evidence.fresh_failure.iter().map(|why| format!("a fresh install does not end: {why}")));
    let namespace = evidence.release.release.namespace.as_deref().unwrap_or_default();
    for notebook in evidence.notebooks.iter().filter(|notebook| notebook.outcome == NotebookOutcome::Stale) {
        let fresh = evidence.fresh.unwrap_or(evidence.objects);
        let there = cluster_view::wanted(fresh, namespace, &notebook.selection);
        if there == notebook.running {
            continue;
        }
        let short = |digest: &Option<Digest>| digest.as_ref().map_or("nothing".to_owned(), Digest::short);
        broken.push(format!(
            "{} starts {} for {}; after a fresh install it starts {}",
            notebook.node.as_deref().unwrap_or("a node"),
            short(&notebook.running),
            notebook.selection,
            short(&there),
        ));
    }
    let Some(comparison) = evidence.comparison else {
        return Checked::new(Promise::Converged, "a fresh install".to_owned(), broken, Vec::new());
    };
    let excused = comparison.differences.iter().filter(|difference| difference.excused).count();
    for difference in comparison.differences.iter().filter(|difference| !difference.excused) {
        let absent = || "absent".to_owned();
        broken.push(format!(
            "{}{}: upgraded {}, fresh {} (owner: {})",
            difference.object,
            difference.field.as_deref().map(|field| format!(" {field}")).unwrap_or_default(),
            difference.upgraded.clone().unwrap_or_else(absent),
            difference.fresh.clone().unwrap_or_else(absent),
            difference.owner,
        ));
    }
    let compared = comparison.objects;
    let summary = match excused {
        0 => format!("{compared} objects compared with a fresh install, no difference"),
        1 => format!(
            "{compared} objects compared with a fresh install, 1 difference that isn't the platform's"
        ),
        n => format!(
            "{compared} objects compared with a fresh install, {n} differences that aren't the platform's"
        ),
    };
    Checked::new(Promise::Converged, summary, broken, Vec::new())
}

fn truthful(evidence: &Evidence<'_>) -> Checked {
    let mut broken = Vec::new();
    let mut count = 0;
    for notebook in evidence.notebooks.iter().filter(|notebook| !notebook.since_before_upgrade) {
        for claim in &notebook.claims {
            count += 1;
            if !claim.holds && notebook.running.is_some() {
                broken.push(format!(
                    "{}'s {}: the screen says {} {}, the pod has {}",
                    notebook.person,
                    notebook.selection,
                    claim.name,
                    claim.screen,
                    claim.runs.as_deref().unwrap_or("none"),
                ));
            }
        }
    }
    if count == 0 && evidence.false_claims.is_empty() {
        return Checked::unchecked(Promise::Truthful, "nobody was shown a version".to_owned());
    }
    let summary = format!("{count} claims compared with the bytes of what runs");
    Checked::new(Promise::Truthful, summary, broken, evidence.false_claims.to_vec())
}

fn nothing_lost(evidence: &Evidence<'_>) -> Checked {
    let mut broken = Vec::new();
    let (mut objects, mut pods_kept) = (0, 0);
    for (key, person) in evidence.people {
        let Some(before) = evidence.before.get(key) else { continue };
        if key.kind == "Pod" || is_passing(key) {
            continue;
        }
        objects += 1;
        match evidence.objects.get(key) {
            None => broken.push(format!("{key}, made by {person}, is gone")),
            Some(after) => {
                for part in ["data", "spec", "stringData"] {
                    let Some(wanted) = before.get(part) else { continue };
                    if let Some(field) = missing(
                        wanted,
                        after.get(part).unwrap_or(&Value::Null),
                        format!(".{part}"),
                        &|_, _, _| false,
                    ) {
                        broken.push(format!("{key}, made by {person}: {field} is not as it was"));
                    }
                }
            }
        }
    }
    for notebook in evidence.notebooks.iter().filter(|notebook| notebook.since_before_upgrade) {
        let state = |objects: &Objects| {
            let pod = pods(objects).find(|pod| cluster_view::pod(pod).name == notebook.pod)?;
            let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
            let restarts = statuses.into_iter().flatten().filter_map(|it| it.get("restartCount")?.as_u64());
            Some((object::uid(pod).to_owned(), restarts.sum::<u64>()))
        };
        pods_kept += 1;
        if state(evidence.before) != state(evidence.objects) {
            broken.push(format!("{}'s notebook was restarted", notebook.person));
        }
    }
    let mut secrets = 0;
    for generated in generated_values(evidence.release) {
        let value = |objects: &Objects| {
            objects.get(&generated.key)?.get("data")?.get(&generated.data_key)?.as_str().map(str::to_owned)
        };
        secrets += 1;
        if let Some(before) = value(evidence.before)
            && value(evidence.objects) != Some(before)
        {
            broken
                .push(format!("{} {}: the generated value was replaced", generated.key, generated.data_key));
        }
    }
    broken.extend(disagreeing_secrets(evidence));
    let summary = format!(
        "{objects} objects of people, {pods_kept} running notebooks, {secrets} generated secret values"
    );
    Checked::new(Promise::NothingLost, summary, broken, Vec::new())
}

fn nothing_silent(evidence: &Evidence<'_>) -> Checked {
    let mut broken = Vec::new();
    let mut counts: BTreeMap<Outcome, usize> = BTreeMap::new();
    let release = &evidence.release.release;
    let generated: BTreeSet<Generated> = generated_values(evidence.release).collect();
    for declared in &release.objects {
        let told = evidence.told.get(&declared.key);
        if let Some(outcome) = told {
            *counts.entry(*outcome).or_default() += 1;
        }
        let wrong = match evidence.objects.get(&declared.key) {
            None => Some("is not there".to_owned()),
            Some(live) => not_as_declared(evidence, &declared.key, &declared.value, live, &generated)
                .map(|field| format!("{field} is not as the release declares it")),
        };
        let excused = matches!(told, Some(Outcome::KeptByUser | Outcome::Conflict | Outcome::Failed));
        match wrong {
            Some(what) if !excused && evidence.failure.is_none() => {
                broken.push(format!("{} {what}, and nothing said so", declared.key));
            }
            _ if !evidence.told.is_empty() && told.is_none() => {
                broken.push(format!("{} has no outcome", declared.key));
            }
            _ => {}
        }
    }
    let objects = release.objects.len();
    let summary = if counts.is_empty() {
        format!("{objects} objects of the release looked at; the script gives no outcomes")
    } else {
        let each: Vec<String> = counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        format!("{objects} objects of the release: {}", each.join(", "))
    };
    Checked::new(Promise::NothingSilent, summary, broken, Vec::new())
}

fn people(evidence: &Evidence<'_>) -> Checked {
    let (mut broken, mut at_risk) = (Vec::new(), Vec::new());
    for notebook in evidence.notebooks {
        let whose = format!("{}'s {}", notebook.person, notebook.selection);
        match notebook.outcome {
            NotebookOutcome::AsPromised | NotebookOutcome::KeptAndMarked => {}
            NotebookOutcome::KeptUnmarked => {
                at_risk.push(format!("{whose} is outdated, and nothing tells so"));
            }
            NotebookOutcome::Stale => {
                broken.push(format!("{whose} runs another image than the screen promised"));
            }
            NotebookOutcome::ClaimFalse => broken.push(format!("{whose} is not what the screen says it is")),
            NotebookOutcome::NotRunning => broken.push(format!("{whose} does not run")),
        }
    }
    for model in evidence.models.iter().filter(|model| !model.serves) {
        broken.push(format!(
            "{}'s model {} can't answer: {}",
            model.person,
            model.model,
            model.trouble.as_deref().unwrap_or("it has no pod")
        ));
    }
    let summary = format!("{} notebooks, {} models", evidence.notebooks.len(), evidence.models.len());
    Checked::new(Promise::People, summary, broken, at_risk)
}

/// The generated values that a release declares.
pub(crate) fn generated_values(release: &ScenarioRelease) -> impl Iterator<Item = Generated> {
    let namespace = release.release.namespace.clone();
    release.release.generated.iter().filter_map(move |generated| {
        let namespace = generated.namespace.clone().or_else(|| namespace.clone())?;
        Some(Generated {
            key: ObjectKey::namespaced("", "Secret", namespace, generated.name.clone()),
            data_key: generated.key.clone(),
        })
    })
}

fn disagreeing_secrets(evidence: &Evidence<'_>) -> Vec<String> {
    use base64::Engine as _;
    let release = &evidence.release.release;
    let decoded = |namespace: Option<&str>, name: &str, key: &str, pointer: Option<&str>| {
        let namespace = namespace.or(release.namespace.as_deref())?;
        let secret = evidence.objects.get(&ObjectKey::namespaced("", "Secret", namespace, name))?;
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(secret.get("data")?.get(key)?.as_str()?).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        match pointer {
            None => Some(text),
            Some(pointer) => {
                let json: Value = serde_json::from_str(&text).ok()?;
                json.pointer(pointer)?.as_str().map(str::to_owned)
            }
        }
    };
    release
        .generated
        .iter()
        .filter_map(|generated| {
            let (name, key) = generated.same_as.as_deref()?.split_once('/')?;
            let pointer = generated.json_pointer.as_deref();
            let one = decoded(generated.namespace.as_deref(), &generated.name, &generated.key, pointer);
            let leader = release.generated.iter().find(|it| it.name == name && it.key == key)?;
            (one.is_none() || one != decoded(leader.namespace.as_deref(), name, key, None))
                .then(|| format!("Secrets {} and {name} do not hold the same password", generated.name))
        })
        .collect()
}

/// The first field of a declared object that the live one does not have as declared.
fn not_as_declared(
    evidence: &Evidence<'_>,
    key: &ObjectKey,
    declared: &Value,
    live: &Value,
    generated: &BTreeSet<Generated>,
) -> Option<String> {
    use base64::Engine as _;
    let mut declared = declared.clone();
    let map = declared.as_object_mut()?;
    map.remove("status");
    if let Some(Value::Object(texts)) = map.remove("stringData") {
        let data = map.entry("data").or_insert_with(|| Value::Object(serde_json::Map::new()));
        for (name, text) in texts {
            let encoded = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
            data.as_object_mut()?.insert(name, Value::String(encoded));
        }
    }
    if let Some(data) = map.get_mut("data").and_then(Value::as_object_mut) {
        data.retain(|name, _| !generated.contains(&Generated { key: key.clone(), data_key: name.clone() }));
    }
    let same = |declared: &Value, live: &Value, path: &str| {
        // A field that was left to somebody, and said to be.
        evidence.kept.contains(&(key.clone(), path.to_owned())) || is_the_same_image(evidence, declared, live)
    };
    missing(&declared, live, String::new(), &same)
}

/// Whether one text is a reference by tag and the other the same image, by the digest that the tag stands for.
fn is_the_same_image(evidence: &Evidence<'_>, declared: &Value, live: &Value) -> bool {
    let reference = |value: &Value| Reference::parse(value.as_str()?).ok();
    let (Some(declared), Some(live)) = (reference(declared), reference(live)) else { return false };
    let attempts = scantling_endpoint::attempts(&declared, evidence.mirrors, &Keyring::default());
    declared.same_repository(&live)
        && live.digest().is_some_and(|digest| {
            attempts.iter().any(|attempt| {
                let selector = attempt.selector.to_string();
                evidence.registry.resolve(&attempt.host, &attempt.repository, &selector).as_ref()
                    == Some(digest)
            })
        })
}

/// Whether what is not equal is as good as equal.
type Equivalent<'e> = dyn Fn(&Value, &Value, &str) -> bool + 'e;

/// The first part of `wanted` that `live` does not have; a live object may have more.
fn missing(wanted: &Value, live: &Value, path: String, equivalent: &Equivalent<'_>) -> Option<String> {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().find_map(|(key, value)| {
            let path = if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                format!("{path}.{key}")
            } else {
                format!("{path}[\"{key}\"]")
            };
            match live.get(key) {
                Some(live) => missing(value, live, path, equivalent),
                // What is empty is as good as absent: servers drop it.
                None if value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty) => None,
                None => Some(path),
            }
        }),
        (Value::Array(wanted), Value::Array(live)) => {
            if wanted.len() > live.len() {
                return Some(path);
            }
            wanted.iter().zip(live).enumerate().find_map(|(index, (value, live))| {
                missing(value, live, format!("{path}[{index}]"), equivalent)
            })
        }
        (wanted, live) => (wanted != live && !equivalent(wanted, live, &path)).then_some(path),
    }
}

/// Whether an object is the cluster's own.
fn is_system(key: &ObjectKey) -> bool {
    key.namespace.as_deref().is_some_and(|name| SYSTEM_NAMESPACES.contains(&name))
}

fn is_passing(key: &ObjectKey) -> bool {
    matches!(key.kind.as_str(), "Event" | "ReplicaSet" | "Lease")
}

fn pods(objects: &Objects) -> impl Iterator<Item = &Value> {
    objects
        .iter()
        .filter(|(key, _)| key.kind == "Pod" && key.group.is_empty())
        .filter(|(key, _)| !is_system(key))
        .filter(|(_, pod)| !matches!(object::text(pod, "/status/phase"), "Succeeded" | "Failed"))
        .map(|(_, pod)| pod)
}
