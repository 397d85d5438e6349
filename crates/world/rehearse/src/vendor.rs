//! Carries out the vendor's way: the steps of a scenario, call by call.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use scantling_api::ObjectKey;
use scantling_image::{Digest, Reference};
use scantling_release::RELEASE_FILE;
use serde_json::Value;

use crate::bridge::InProcess;
use crate::images::BuiltImages;
use crate::kubectl::{Kubectl, KubectlError};
use crate::record::{Actor, Recorder};
use crate::scenario::{Awaited, Condition, Read, ScenarioRelease, Selection, Step, Wait, Which, Write};

/// How often a script looks again while it waits, in virtual time.
const POLL: Duration = Duration::from_secs(5);

/// The longest text that substitution makes; a longer one is a variable that contains itself.
const TEXT_MAX: usize = 4 * 1024 * 1024;

/// What the steps of a scenario need.
pub(crate) struct Script<'a> {
    /// The cluster.
    pub sandbox: InProcess,
    /// The release that the steps are about.
    pub release: &'a ScenarioRelease,
    /// The example's images.
    pub images: &'a BuiltImages,
    /// Where events go.
    pub recorder: Recorder,
    /// Who acts.
    pub actor: Actor,
    /// Random texts come from here.
    pub random: fastrand::Rng,
    /// The cluster's nodes.
    pub nodes: BTreeSet<String>,
    /// What was created so far.
    pub created: Vec<ObjectKey>,
}

/// Why a script ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    /// A call failed.
    #[error("{0}")]
    Call(#[from] KubectlError),
    /// The script asks for something that isn't there.
    #[error("{0}")]
    Meaning(String),
    /// It waited in vain.
    #[error("waited {waited} for {what}: {left}")]
    Waited {
        /// For what.
        what: String,
        /// How long.
        waited: jiff::SignedDuration,
        /// What isn't ready yet.
        left: String,
    },
}

/// Variables of a script.
pub(crate) type Variables = BTreeMap<String, String>;

impl Script<'_> {
    /// Runs the steps in order.
    pub(crate) async fn run(&mut self, steps: &[Step], variables: &mut Variables) -> Result<(), ScriptError> {
        let mut kubectl = Kubectl::new(self.sandbox.clone());
        self.run_steps(steps, variables, &mut kubectl).await
    }

    fn run_steps<'s>(
        &'s mut self,
        steps: &'s [Step],
        variables: &'s mut Variables,
        kubectl: &'s mut Kubectl,
    ) -> Pin<Box<dyn Future<Output = Result<(), ScriptError>> + 's>> {
        Box::pin(async move {
            for step in steps {
                self.step(step, variables, kubectl).await?;
            }
            Ok(())
        })
    }

    async fn step(
        &mut self,
        step: &Step,
        variables: &mut Variables,
        kubectl: &mut Kubectl,
    ) -> Result<(), ScriptError> {
        match step {
            Step::Apply(write) => {
                let namespace = self.namespace(write, variables)?;
                for object in self.objects(write, variables)? {
                    let applied = kubectl.apply(&object, &namespace).await?;
                    let label = kubectl.label(&object).await?;
                    self.say(format!("{label} {applied}"));
                }
            }
            Step::Create { write, on_exists } => {
                let namespace = self.namespace(write, variables)?;
                for object in self.objects(write, variables)? {
                    match (kubectl.create(&object, &namespace).await, on_exists) {
                        (Ok(made), _) => {
                            self.created.extend(scantling_api::object::key(&made).ok());
                            let label = kubectl.label(&object).await?;
                            self.say(format!("{label} created"));
                        }
                        (Err(error), Some(text)) if error.already_exists() => {
                            if !text.is_empty() {
                                self.say(error.to_string());
                                self.say(text.clone());
                            }
                        }
                        (Err(error), _) => return Err(error.into()),
                    }
                }
            }
            Step::Delete(selection) => self.delete(selection, variables, kubectl).await?,
            Step::Patch { target, merge, replace } => {
                let merge = self.fill(merge, variables, replace)?;
                let name = match &target.which {
                    Which::Name(name) => self.text(name, variables)?,
                    Which::Selector(_) => return Err(ScriptError::Meaning("patch needs a name".to_owned())),
                };
                let namespace = self.optional(target.namespace.as_deref(), variables)?;
                let object = kubectl.patch(&target.kind, namespace.as_deref(), &name, &merge).await?;
                let label = kubectl.label(&object).await?;
                self.say(format!("{label} patched"));
            }
            Step::Read(read) => {
                let value = self.read(read, variables, kubectl).await?;
                variables.insert(read.variable.clone(), value);
            }
            Step::If { condition, then, otherwise } => {
                let steps = if self.holds(condition, variables)? { then } else { otherwise };
                self.run_steps(steps, variables, kubectl).await?;
            }
            Step::Random { length, variable } => {
                let text = (0..*length).map(|_| self.random.alphanumeric()).collect();
                variables.insert(variable.clone(), text);
            }
            Step::Wait(wait) => self.wait(wait, variables, kubectl).await?,
            Step::RemoveCachedImages { nodes, repository } => {
                let repository = self.text(repository, variables)?;
                for node in nodes {
                    if !self.nodes.contains(node) {
                        return Err(ScriptError::Meaning(format!(
                            "removeCachedImages: there is no node {node}"
                        )));
                    }
                    let removed = self.sandbox.with(|world| remove_cached(world, node, &repository));
                    self.say(format!("{node}: {removed} cached images removed"));
                }
            }
            Step::Promote { image, to } => {
                let target = Reference::parse(&self.text(to, variables)?)
                    .map_err(|error| ScriptError::Meaning(format!("promote: {error}")))?;
                let digest = self
                    .sandbox
                    .with(|world| self.images.push(world.registry(), image, &target))
                    .map_err(ScriptError::Meaning)?;
                self.say(format!("{} promoted as {digest}", target.written()));
            }
        }
        Ok(())
    }

    fn say(&self, text: String) {
        self.recorder.say(&self.actor, text);
    }

    async fn delete(
        &mut self,
        selection: &Selection,
        variables: &Variables,
        kubectl: &mut Kubectl,
    ) -> Result<(), ScriptError> {
        let namespace = self.optional(selection.namespace.as_deref(), variables)?;
        let namespace = namespace.as_deref();
        let names: Vec<String> = match &selection.which {
            Which::Name(name) => vec![self.text(name, variables)?],
            Which::Selector(selector) => {
                let selector = self.text(selector, variables)?;
                let objects = kubectl.list(&selection.kind, namespace, Some(&selector)).await?;
                objects
                    .iter()
                    .filter_map(|object| Some(object.pointer("/metadata/name")?.as_str()?.to_owned()))
                    .collect()
            }
        };
        for name in names {
            match kubectl.delete(&selection.kind, namespace, &name).await {
                Ok(()) => self.say(format!("{} {name:?} deleted", selection.kind.to_lowercase())),
                Err(error) if error.not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn read(
        &mut self,
        read: &Read,
        variables: &Variables,
        kubectl: &mut Kubectl,
    ) -> Result<String, ScriptError> {
        let namespace = self.optional(read.namespace.as_deref(), variables)?;
        let name = self.text(&read.name, variables)?;
        let found = match kubectl.get(&read.kind, namespace.as_deref(), &name).await {
            Ok(object) => match &read.field {
                None => Some("present".to_owned()),
                Some(field) => at(&object, field).map(text_of),
            },
            // As in the scripts of the time, any failure counts as absence where a default is given.
            Err(_) if read.absent.is_some() => None,
            Err(error) => return Err(error.into()),
        };
        match (found, &read.absent) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => self.text(default, variables),
            (None, None) => Err(ScriptError::Meaning(format!(
                "{} {name} has no {}",
                read.kind,
                read.field.as_deref().unwrap_or("content")
            ))),
        }
    }

    fn holds(&self, condition: &Condition, variables: &Variables) -> Result<bool, ScriptError> {
        Ok(match condition {
            Condition::Equal(a, b) => self.text(a, variables)? == self.text(b, variables)?,
            Condition::NotEqual(a, b) => self.text(a, variables)? != self.text(b, variables)?,
            Condition::AnyOf(conditions) => {
                for condition in conditions {
                    if self.holds(condition, variables)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }

    async fn wait(
        &mut self,
        wait: &Wait,
        variables: &Variables,
        kubectl: &mut Kubectl,
    ) -> Result<(), ScriptError> {
        let namespace = self.text(&wait.namespace, variables)?;
        let mut waited = Duration::ZERO;
        loop {
            let left = match wait.what {
                Awaited::Builds => unfinished_builds(kubectl, &namespace).await?,
                Awaited::Rollouts => unfinished_rollouts(kubectl, &namespace).await?,
            };
            let Some(first) = left.first() else { return Ok(()) };
            if waited >= wait.at_most.unsigned_abs() {
                let what = match wait.what {
                    Awaited::Builds => "builds",
                    Awaited::Rollouts => "rollouts",
                };
                return Err(ScriptError::Waited {
                    what: what.to_owned(),
                    waited: wait.at_most,
                    left: format!("{first} ({} in all)", left.len()),
                });
            }
            tokio::time::sleep(POLL).await;
            waited += POLL;
        }
    }

    fn namespace(&self, write: &Write, variables: &Variables) -> Result<String, ScriptError> {
        match &write.namespace {
            Some(namespace) => self.text(namespace, variables),
            None => {
                self.release.release.namespace.clone().ok_or_else(|| {
                    ScriptError::Meaning(format!("{} names no namespace", self.release.folder))
                })
            }
        }
    }

    fn optional(&self, text: Option<&str>, variables: &Variables) -> Result<Option<String>, ScriptError> {
        text.map(|text| self.text(text, variables)).transpose()
    }

    /// The objects of a file, of a variable, or the object itself.
    fn objects(&self, write: &Write, variables: &Variables) -> Result<Vec<Value>, ScriptError> {
        let Some(source) = write.body.as_str() else {
            return Ok(vec![self.fill(&write.body, variables, &write.replace)?]);
        };
        if let Some(name) = source.strip_prefix("${yaml:").and_then(|rest| rest.strip_suffix('}')) {
            let text = variables
                .get(name)
                .ok_or_else(|| ScriptError::Meaning(format!("there is no variable {name}")))?;
            return documents(name, text.as_bytes());
        }
        let text = self.replaced(self.file(source)?, variables, &write.replace)?;
        documents(source, text.as_bytes())
    }

    /// What the release itself puts in the place of a placeholder.
    fn substitution(&self, placeholder: &str) -> Result<String, ScriptError> {
        let file = documents(RELEASE_FILE, self.file(RELEASE_FILE)?.as_bytes())?
            .into_iter()
            .next()
            .unwrap_or_default();
        file.get("substitutions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .find(|it| it.get("placeholder").and_then(Value::as_str) == Some(placeholder))
            .and_then(|it| it.get("value")?.as_str().map(str::to_owned))
            .ok_or_else(|| ScriptError::Meaning(format!("the release substitutes nothing for {placeholder}")))
    }

    fn file(&self, path: &str) -> Result<&str, ScriptError> {
        let bytes = self
            .release
            .tree
            .get(path)
            .ok_or_else(|| ScriptError::Meaning(format!("{path} is not in {}", self.release.folder)))?;
        std::str::from_utf8(bytes).map_err(|_| ScriptError::Meaning(format!("{path} is not UTF-8")))
    }

    fn replaced(
        &self,
        text: &str,
        variables: &Variables,
        replace: &BTreeMap<String, String>,
    ) -> Result<String, ScriptError> {
        let mut text = text.to_owned();
        for (from, to) in replace {
            text = text.replace(from.as_str(), &self.text(to, variables)?);
            bounded(&text)?;
        }
        Ok(text)
    }

    /// Fills in variables in every text of a value.
    fn fill(
        &self,
        value: &Value,
        variables: &Variables,
        replace: &BTreeMap<String, String>,
    ) -> Result<Value, ScriptError> {
        Ok(match value {
            Value::String(text) => {
                let filled = self.text(text, variables)?;
                Value::String(self.replaced(&filled, variables, replace)?)
            }
            Value::Array(items) => Value::Array(
                items.iter().map(|item| self.fill(item, variables, replace)).collect::<Result<_, _>>()?,
            ),
            Value::Object(map) => {
                let mut filled = serde_json::Map::new();
                for (key, value) in map {
                    let value = self.fill(value, variables, replace)?;
                    // `nodeSelector: {…: ${node}}` of somebody who doesn't care on which node is no selector at all.
                    if value != Value::String(String::new()) || !is_variable(map.get(key)) {
                        filled.insert(self.text(key, variables)?, value);
                    }
                }
                Value::Object(filled)
            }
            other => other.clone(),
        })
    }

    /// Fills in the variables of a text.
    fn text(&self, text: &str, variables: &Variables) -> Result<String, ScriptError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            out.push_str(before);
            let end = from
                .find('}')
                .ok_or_else(|| ScriptError::Meaning(format!("{text:?}: a ${{ is not closed")))?;
            let name = from.get(2..end).unwrap_or_default();
            out.push_str(&self.variable(name, variables)?);
            bounded(&out)?;
            rest = from.get(end + 1..).unwrap_or_default();
        }
        out.push_str(rest);
        Ok(out)
    }

    fn variable(&self, name: &str, variables: &Variables) -> Result<String, ScriptError> {
        if let Some(value) = variables.get(name) {
            return Ok(value.clone());
        }
        if name == "release.version" {
            return Ok(self.release.release.version.as_ref().map(ToString::to_string).unwrap_or_default());
        }
        if let Some(placeholder) = name.strip_prefix("release.substitution:") {
            return self.substitution(placeholder);
        }
        if let Some(path) = name.strip_prefix("checksum:") {
            return Ok(Digest::of(self.file(path)?.as_bytes()).hex().to_owned());
        }
        if let Some((path, field)) = name.strip_prefix("file:").and_then(|rest| rest.split_once(':')) {
            let object = documents(path, self.file(path)?.as_bytes())?.into_iter().next().unwrap_or_default();
            return at(&object, field)
                .map(text_of)
                .ok_or_else(|| ScriptError::Meaning(format!("{path} has no {field}")));
        }
        if let Some((path, constant)) = name.strip_prefix("constant:").and_then(|rest| rest.split_once(':')) {
            return template_literal(self.file(path)?, constant)
                .map(str::to_owned)
                .ok_or_else(|| ScriptError::Meaning(format!("{path} has no constant {constant}")));
        }
        Err(ScriptError::Meaning(format!("there is no variable {name}")))
    }
}

fn is_variable(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| text.starts_with("${"))
}

fn bounded(text: &str) -> Result<(), ScriptError> {
    if text.len() > TEXT_MAX {
        return Err(ScriptError::Meaning(format!("a text grows over {TEXT_MAX} bytes")));
    }
    Ok(())
}

fn documents(name: &str, text: &[u8]) -> Result<Vec<Value>, ScriptError> {
    let documents = scantling_yaml::parse(text).map_err(|error| {
        ScriptError::Meaning(format!("{name}:{}:{}: {}", error.line, error.column, error.message))
    })?;
    Ok(documents.iter().map(|document| document.root.to_json()).filter(|value| !value.is_null()).collect())
}

/// The text of a template literal in source code, by the name of its constant.
fn template_literal<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = source.split_once(&format!("{name} = `"))?;
    rest.split_once('`').map(|(literal, _)| literal)
}

/// The value at keys and indexes joined with dots. A key that holds a dot can't be named, which no script here needs.
fn at<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('.').try_fold(value, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    })
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn remove_cached(world: &mut scantling_sandbox::World, node: &str, repository: &str) -> usize {
    let names: Vec<String> = world
        .node_images(node)
        .into_iter()
        .flat_map(|image| image.names)
        .filter(|name| name.starts_with(repository))
        .collect();
    names.iter().filter(|name| world.remove_cached_image(node, name).is_ok()).count()
}

async fn unfinished_builds(kubectl: &mut Kubectl, namespace: &str) -> Result<Vec<String>, KubectlError> {
    let configs = kubectl.list("BuildConfig.build.openshift.io", Some(namespace), None).await?;
    let builds = kubectl.list("Build.build.openshift.io", Some(namespace), None).await?;
    let phase =
        |build: &Value| build.pointer("/status/phase").and_then(Value::as_str).unwrap_or("New").to_owned();
    let config_of =
        |build: &Value| build.pointer("/status/config/name").and_then(Value::as_str).map(str::to_owned);
    let mut left = Vec::new();
    for config in &configs {
        let name = config.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let mut its = builds.iter().filter(|build| config_of(build).as_deref() == Some(name)).peekable();
        if its.peek().is_none() {
            left.push(format!("{name} has not begun"));
        }
        left.extend(
            its.map(phase)
                .filter(|phase| matches!(phase.as_str(), "New" | "Pending" | "Running"))
                .map(|phase| format!("{name} is {phase}")),
        );
    }
    Ok(left)
}

async fn unfinished_rollouts(kubectl: &mut Kubectl, namespace: &str) -> Result<Vec<String>, KubectlError> {
    let number =
        |object: &Value, path: &str| object.pointer(path).and_then(Value::as_u64).unwrap_or_default();
    let mut left = Vec::new();
    for deployment in kubectl.list("Deployment", Some(namespace), None).await? {
        let wanted = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        let ready = number(&deployment, "/status/updatedReplicas")
            .min(number(&deployment, "/status/availableReplicas"));
        let seen =
            number(&deployment, "/status/observedGeneration") >= number(&deployment, "/metadata/generation");
        if !seen || ready < wanted || number(&deployment, "/status/replicas") > wanted {
            let name = deployment.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            left.push(format!("{name} has {ready} of {wanted} replicas available"));
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{at, template_literal};

    #[test]
    fn fields_are_found_through_maps_and_lists() {
        let value = json!({"spec": {"containers": [{"image": "a/b:c"}]}});
        assert_eq!(at(&value, "spec.containers.0.image"), Some(&json!("a/b:c")));
        assert_eq!(at(&value, "spec.containers.1.image"), None);
    }

    #[test]
    fn template_literals_are_taken_from_source_code() {
        assert_eq!(template_literal("export const A = `x\ny`;\nconst B = `z`;", "A"), Some("x\ny"));
        assert_eq!(template_literal("const B = `z`", "A"), None);
    }
}
