//! The vendor's way of doing something, as a list of API calls.
//!
//! | step | what it does |
//! |---|---|
//! | `apply: FILE` | client-side apply, as `kubectl apply` does it |
//! | `create: FILE` or an object | POST; `onExists: TEXT` logs TEXT and goes on if the object exists |
//! | `delete: {kind, namespace, name}` or `{…, selector}` | DELETE; what is not there is no error |
//! | `patch: {kind, namespace, name, merge}` | JSON merge patch |
//! | `read: {kind, namespace, name, field, as, absent}` | puts a field (or `present`) into a variable |
//! | `if: CONDITION`, `then:`, `else:` | `{equal: [A, B]}`, `{notEqual: [A, B]}`, `{anyOf: […]}` |
//! | `random: {length, as}` | puts a random text into a variable |
//! | `wait: {builds: NS, atMost}` or `{rollouts: NS, atMost}` | until nothing is under way any more |
//! | `removeCachedImages: {nodes, repository}` | what an admin does on the nodes themselves |
//! | `promote: {image, to}` | pushes an image of the example under one more name |
//!
//! `replace: {TEXT: VALUE}` is `sed` on a file before it is read; `namespace:` is kubectl's `-n`. A text may hold
//! `${NAME}`, `${release.version}`, `${release.substitution:PLACEHOLDER}`, `${checksum:FILE}`, `${file:FILE:FIELD}`,
//! `${constant:FILE:NAME}` (a template literal in source code) and `${yaml:NAME}` (a variable, read as YAML).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One step of the vendor's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Client-side apply.
    Apply(Write),
    /// POST.
    Create {
        /// What.
        write: Write,
        /// What to log when it exists already; without it that is an error that ends the script.
        on_exists: Option<String>,
    },
    /// DELETE.
    Delete(Selection),
    /// JSON merge patch.
    Patch {
        /// Of what.
        target: Selection,
        /// The patch.
        merge: Value,
        /// Text to replace in files that the patch takes from.
        replace: BTreeMap<String, String>,
    },
    /// Puts something of the cluster into a variable.
    Read(Read),
    /// Does one thing or the other.
    If {
        /// What decides.
        condition: Condition,
        /// If it holds.
        then: Vec<Step>,
        /// If it doesn't.
        otherwise: Vec<Step>,
    },
    /// A random text.
    Random {
        /// Characters.
        length: usize,
        /// The variable.
        variable: String,
    },
    /// Waits for the cluster.
    Wait(Wait),
    /// Removes images from the caches of nodes.
    RemoveCachedImages {
        /// Which nodes.
        nodes: Vec<String>,
        /// Names that begin like this.
        repository: String,
    },
    /// Publishes an image of the example.
    Promote {
        /// Its `id`.
        image: String,
        /// The name it gets, with a tag.
        to: String,
    },
}

/// An object, or a file of objects, that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// A file of the release, a variable (`${yaml:…}`), or the object itself.
    pub body: Value,
    /// Where objects without a namespace go; the release's namespace if absent.
    pub namespace: Option<String>,
    /// Text to replace in the file.
    pub replace: BTreeMap<String, String>,
}

/// Objects of one kind: one by name, or several by label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// `Kind` or `Kind.group`.
    pub kind: String,
    /// Where.
    pub namespace: Option<String>,
    /// Which.
    pub which: Which,
}

/// One by name, or several by label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// By name.
    Name(String),
    /// By a label selector.
    Selector(String),
}

/// Puts something of the cluster into a variable.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Read {
    /// `Kind` or `Kind.group`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Keys and indexes joined with dots; absent: the variable becomes `present`.
    #[serde(default)]
    pub field: Option<String>,
    /// The variable.
    #[serde(rename = "as")]
    pub variable: String,
    /// What the variable becomes when the object or the field is absent, or can't be read; without it that is an error.
    #[serde(default)]
    pub absent: Option<String>,
}

/// What decides an `if`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Both texts are equal.
    Equal(String, String),
    /// They are not.
    NotEqual(String, String),
    /// One of several holds.
    AnyOf(Vec<Condition>),
}

/// What to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Builds, or rollouts.
    pub what: Awaited,
    /// In which namespace.
    pub namespace: String,
    /// How long at most, in virtual time.
    pub at_most: jiff::SignedDuration,
}

/// What a script can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// No build is running, and every build config has run.
    Builds,
    /// Every Deployment is rolled out.
    Rollouts,
}

/// What is wrong with a step.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StepError(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StepFile {
    /// Client-side apply of a file of the release or of an object written here.
    apply: Option<Value>,
    /// Creates the objects of a file of the release, or an object written here.
    create: Option<Value>,
    /// Deletes one object by name or several by label; what is not there is no error.
    delete: Option<SelectionFile>,
    /// A JSON merge patch of one object.
    patch: Option<PatchFile>,
    /// Puts a field of an object into a variable.
    read: Option<Read>,
    /// Decides between `then` and `else`.
    #[serde(rename = "if")]
    condition: Option<ConditionFile>,
    /// Beside `if`: done if the condition holds.
    #[serde(default)]
    then: Vec<StepFile>,
    /// Beside `if`: done if it does not.
    #[serde(default, rename = "else")]
    otherwise: Vec<StepFile>,
    /// Puts a random text, made from the seed, into a variable.
    random: Option<RandomFile>,
    /// Waits, in virtual time, until nothing is under way any more.
    wait: Option<WaitFile>,
    /// Removes images from the caches of nodes.
    remove_cached_images: Option<RemoveFile>,
    /// Publishes an image of the example under one more name.
    promote: Option<PromoteFile>,
    /// Beside `apply` and `create`: where objects without a namespace go; the release's namespace if not given.
    namespace: Option<String>,
    /// Beside `apply`, `create` and `patch`: text to replace in the file before it is read.
    #[serde(default)]
    replace: BTreeMap<String, String>,
    /// Beside `create`: what to log when the object exists already; without it that ends the script.
    on_exists: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectionFile {
    /// `Kind` or `Kind.group`.
    kind: String,
    /// Where.
    namespace: Option<String>,
    /// The name; either this or `selector`.
    name: Option<String>,
    /// A label selector; either this or `name`.
    selector: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchFile {
    /// `Kind` or `Kind.group`.
    kind: String,
    /// Where.
    namespace: Option<String>,
    /// Its name.
    name: String,
    /// The patch.
    merge: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConditionFile {
    /// Both texts are equal.
    equal: Option<(String, String)>,
    /// The texts differ.
    not_equal: Option<(String, String)>,
    /// One of several conditions of this form holds.
    any_of: Option<Vec<ConditionFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RandomFile {
    /// Characters, from 1 to 4096.
    length: usize,
    /// The variable.
    #[serde(rename = "as")]
    variable: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WaitFile {
    /// The namespace whose builds are waited for; either this or `rollouts`.
    builds: Option<String>,
    /// The namespace whose Deployments are waited for; either this or `builds`.
    rollouts: Option<String>,
    /// How long at most, in virtual time, such as `4h`.
    at_most: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveFile {
    /// Which nodes.
    nodes: Vec<String>,
    /// The beginning of the names of the images.
    repository: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromoteFile {
    /// The image's `id`.
    image: String,
    /// The name that it gets, with a tag.
    to: String,
}

/// A script's `if`s are nested this deeply at most; deeper ones are a mistake, and recursion has to end.
const NESTING_MAX: usize = 16;

/// The longest random text that a script may ask for.
const RANDOM_MAX: usize = 4096;

impl StepFile {
    pub(super) fn check(self) -> Result<Step, StepError> {
        self.check_nested(0)
    }

    fn check_nested(self, depth: usize) -> Result<Step, StepError> {
        if depth > NESTING_MAX {
            return Err(StepError(format!("steps are nested more than {NESTING_MAX} deep")));
        }
        let Self { namespace, replace, on_exists, then, otherwise, .. } = self;
        let modifies_write = namespace.is_some() || on_exists.is_some();
        let mut replace = Some(replace);
        let mut found = Vec::new();
        if let Some(body) = self.apply {
            if on_exists.is_some() {
                return Err(StepError("onExists belongs to create; apply changes what exists".to_owned()));
            }
            let replace = replace.take().unwrap_or_default();
            found.push(Step::Apply(Write { body, namespace: namespace.clone(), replace }));
        }
        if let Some(body) = self.create {
            let replace = replace.take().unwrap_or_default();
            found.push(Step::Create { write: Write { body, namespace, replace }, on_exists });
        }
        if modifies_write && found.is_empty() {
            return Err(StepError("namespace and onExists belong to create and apply".to_owned()));
        }
        if let Some(delete) = self.delete {
            found.push(Step::Delete(delete.check()?));
        }
        if let Some(patch) = self.patch {
            found.push(Step::Patch {
                target: Selection {
                    kind: patch.kind,
                    namespace: patch.namespace,
                    which: Which::Name(patch.name),
                },
                merge: patch.merge,
                replace: replace.take().unwrap_or_default(),
            });
        }
        if let Some(read) = self.read {
            found.push(Step::Read(read));
        }
        let branches = |steps: Vec<Self>| -> Result<Vec<Step>, StepError> {
            steps.into_iter().map(|step| step.check_nested(depth + 1)).collect()
        };
        if let Some(condition) = self.condition {
            found.push(Step::If {
                condition: condition.check(0)?,
                then: branches(then)?,
                otherwise: branches(otherwise)?,
            });
        } else if !then.is_empty() || !otherwise.is_empty() {
            return Err(StepError("then and else belong to if".to_owned()));
        }
        if let Some(random) = self.random {
            if random.length == 0 || random.length > RANDOM_MAX {
                return Err(StepError(format!("random.length is not between 1 and {RANDOM_MAX}")));
            }
            found.push(Step::Random { length: random.length, variable: random.variable });
        }
        if let Some(wait) = self.wait {
            found.push(Step::Wait(wait.check()?));
        }
        if let Some(remove) = self.remove_cached_images {
            found.push(Step::RemoveCachedImages { nodes: remove.nodes, repository: remove.repository });
        }
        if let Some(promote) = self.promote {
            found.push(Step::Promote { image: promote.image, to: promote.to });
        }
        if replace.is_some_and(|replace| !replace.is_empty()) {
            return Err(StepError("replace belongs to create, apply and patch".to_owned()));
        }
        match <[Step; 1]>::try_from(found) {
            Ok([step]) => Ok(step),
            Err(found) if found.is_empty() => Err(StepError(
                "it is empty; write one of apply, create, delete, patch, read, if, random, wait, removeCachedImages, \
                 promote"
                    .to_owned(),
            )),
            Err(_) => Err(StepError("it does two things; write one thing a step".to_owned())),
        }
    }
}

impl SelectionFile {
    fn check(self) -> Result<Selection, StepError> {
        let which = match (self.name, self.selector) {
            (Some(name), None) => Which::Name(name),
            (None, Some(selector)) => Which::Selector(selector),
            _ => return Err(StepError("delete needs either name or selector".to_owned())),
        };
        Ok(Selection { kind: self.kind, namespace: self.namespace, which })
    }
}

impl ConditionFile {
    fn check(self, depth: usize) -> Result<Condition, StepError> {
        if depth > NESTING_MAX {
            return Err(StepError(format!("conditions are nested more than {NESTING_MAX} deep")));
        }
        match (self.equal, self.not_equal, self.any_of) {
            (Some((a, b)), None, None) => Ok(Condition::Equal(a, b)),
            (None, Some((a, b)), None) => Ok(Condition::NotEqual(a, b)),
            (None, None, Some(any)) => Ok(Condition::AnyOf(
                any.into_iter().map(|condition| condition.check(depth + 1)).collect::<Result<_, _>>()?,
            )),
            _ => Err(StepError("if needs exactly one of equal, notEqual, anyOf".to_owned())),
        }
    }
}

impl WaitFile {
    fn check(self) -> Result<Wait, StepError> {
        let (what, namespace) = match (self.builds, self.rollouts) {
            (Some(namespace), None) => (Awaited::Builds, namespace),
            (None, Some(namespace)) => (Awaited::Rollouts, namespace),
            _ => return Err(StepError("wait needs either builds or rollouts".to_owned())),
        };
        Ok(Wait { what, namespace, at_most: super::duration(&self.at_most).map_err(StepError)? })
    }
}
