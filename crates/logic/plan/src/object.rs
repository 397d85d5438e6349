//! The decision about one object: three ways for every field.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::schema::Schema;
use scantling_api::{GroupVersionKind, ObjectKey, object};
use scantling_image::Digest;
use scantling_merge::{Element, FieldSet, MergeError, Operation, Owner, Path, Request, apply, field_owners};
use scantling_release::{Ownership, Rule, Wave};
use serde_json::Value;

use crate::PlanError;
use crate::adopt::{Adoption, adopt, is_controller, last_applied};
use crate::cause::{adopted_cause, changed_cause, conflict_cause, fixed_cause, replaced_cause};
use crate::immutable::{immutable_changes, may_be_replaced, runs_pods};
use crate::remains::{Namesake, hand_over, namesakes, owned_below, torsos};
use crate::settled::settled;
use crate::step::{Change, FieldChange, ForeignField, Outcome, Step};
use crate::trace::{Traces, left_away};
use crate::value::{Typed, canonical, without_nulls};

/// The field manager under which the product applies.
pub const MANAGER: &str = "scantling";

/// Time is needed to predict an apply, but no decision depends on it.
const ANY_TIME: &str = "2000-01-01T00:00:00Z";

/// What was read of an object that is not there.
const ABSENT: &str = "absent\n";

/// What all decisions of one plan have in common.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    /// Types of all kinds involved.
    pub schema: &'a Schema,
    /// The release's rules.
    pub rules: &'a Ownership,
    /// Field managers of the means by which the platform may have been installed. What they wrote is taken over when it
    /// is what the release wants; a value that differs is theirs all the same, for people use the same tools.
    pub legacy_managers: &'a BTreeSet<String>,
}

impl Frame<'_> {
    /// The release's rule for a field; a field whose path cannot be said is never moved without asking.
    fn rule(&self, key: &ObjectKey, path: &Path) -> Rule {
        self.rules.rule(key, &format!("{path:#}")).unwrap_or(Rule::Stop)
    }
}

/// One object as the three sides see it.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// What the release wants, images by digest, generated values filled in.
    pub desired: &'a Value,
    /// What was last applied, by us or, if known, by the vendor.
    pub base: Option<&'a Value>,
    /// What runs that did not end have made of its fields since.
    pub traces: Option<&'a Traces>,
    /// What the cluster has.
    pub live: Option<&'a Value>,
    /// Whether the inventory says that the object is ours.
    pub ours: bool,
    /// Whether we created it: then it may be deleted to be created anew.
    pub created: bool,
}

/// Decides what happens to one object. Pure: the same sides give the same step, so that it can be decided again just
/// before the write, on what is there by then.
///
/// # Errors
/// [`PlanError`] if the object cannot be merged at all, as when a field has a type that its kind does not allow.
pub fn decide(frame: &Frame<'_>, key: &ObjectKey, wave: Wave, sides: Sides<'_>) -> Result<Step, PlanError> {
    let Some(live) = sides.live else {
        return Ok(Step {
            outcome: Outcome::Created,
            cause: if sides.ours && sides.base.is_some() {
                "it is gone from the cluster".to_owned()
            } else {
                String::new()
            },
            body: sides.desired.clone(),
            traces: left_away(frame, key, sides)?,
            ..blank(key, wave, Digest::of(ABSENT.as_bytes()))
        });
    };
    Decision::new(frame, key, sides, live)?.step(wave)
}

pub(crate) fn blank(key: &ObjectKey, wave: Wave, precondition: Digest) -> Step {
    Step {
        key: key.clone(),
        wave,
        outcome: Outcome::Unchanged,
        cause: String::new(),
        changes: Vec::new(),
        adjusted: Vec::new(),
        kept: Vec::new(),
        taken: Vec::new(),
        conflicts: Vec::new(),
        immutable: Vec::new(),
        taken_over: Vec::new(),
        precondition,
        body: Value::Null,
        managed_fields: None,
        repeats: false,
        traces: Traces::default(),
    }
}

/// An object as a server would keep it if we created it, quantities and times in the server's words and zero values
/// dropped where its type drops them, with the fields of it that would be ours.
pub(crate) fn created(
    frame: &Frame<'_>,
    key: &ObjectKey,
    value: &Value,
) -> Result<(Value, FieldSet), PlanError> {
    let merged = merge(frame, key, None, value, true)?;
    let fields = owned(&field_owners(&merged), is_ours);
    Ok((merged, fields))
}

fn gvk(key: &ObjectKey, value: &Value) -> Result<GroupVersionKind, PlanError> {
    object::gvk(value).map_err(|e| PlanError::NotAnObject { object: key.to_string(), reason: e.to_string() })
}

/// The types of an object's fields.
fn typed<'a>(frame: &Frame<'a>, key: &ObjectKey, value: &Value) -> Result<Typed<'a>, PlanError> {
    let gvk = gvk(key, value)?;
    let facts = frame.schema.kind(&gvk.group, &gvk.version, &gvk.kind);
    Ok(Typed::of(frame.schema, facts))
}

fn merge(
    frame: &Frame<'_>,
    key: &ObjectKey,
    live: Option<&Value>,
    body: &Value,
    force: bool,
) -> Result<Value, PlanError> {
    let gvk = gvk(key, body)?;
    let api_version = gvk.api_version();
    let request = Request::new(frame.schema, &api_version, &gvk.kind, MANAGER, ANY_TIME);
    apply(&request, live, body, force).map_err(|error: MergeError| PlanError::CannotMerge {
        object: key.to_string(),
        reason: error.to_string(),
    })
}

pub(crate) fn is_ours(owner: &Owner) -> bool {
    owner.manager == MANAGER && owner.operation == Operation::Apply && owner.subresource.is_none()
}

/// Whether we have applied an object: its `managedFields` say so.
pub fn is_applied(object: &Value) -> bool {
    field_owners(object).iter().any(is_ours)
}

fn is_secret(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Secret"
}

fn owned(owners: &[Owner], which: impl Fn(&Owner) -> bool) -> FieldSet {
    owners.iter().filter(|o| which(o)).fold(FieldSet::new(), |all, o| all.union(&o.fields))
}

/// Identity of an object is not a field that anybody can own or change, and neither is what the server alone writes,
/// which generators of manifests leave as `null`.
fn is_identity(path: &Path) -> bool {
    matches!(
        path.to_string().as_str(),
        ".apiVersion"
            | ".kind"
            | ".metadata.name"
            | ".metadata.namespace"
            | ".metadata.creationTimestamp"
            | ".metadata.generation"
            | ".metadata.resourceVersion"
            | ".metadata.selfLink"
            | ".metadata.uid"
    )
}

struct Decision<'a> {
    frame: &'a Frame<'a>,
    key: &'a ObjectKey,
    sides: Sides<'a>,
    typed: Typed<'a>,
    /// What was last applied, as far as it is known from anywhere.
    base: Option<Value>,
    adoption: Option<Adoption>,
    /// The live object with its fields handed over.
    live: Value,
    owners: Vec<Owner>,
    /// What is desired, in the form in which a server keeps it.
    wanted: Value,
    desired_fields: FieldSet,
}

/// The fields of a decision, each with what becomes of it.
struct Fields {
    /// What is applied.
    body: Value,
    /// The object as it is created anew, if it has to be.
    whole: Value,
    changes: Vec<FieldChange>,
    taken: Vec<ForeignField>,
    kept: Vec<ForeignField>,
    conflicts: Vec<ForeignField>,
    /// Whether every field that stops is one that somebody has taken away.
    gone: bool,
    /// Those that a rule leaves to others.
    left: BTreeSet<String>,
    /// Whether every field that would be written is one that we have applied already with this value.
    repeats: bool,
    /// Those that get another value.
    written: Vec<Path>,
    /// What becomes of those that were there.
    traces: Traces,
}

impl<'a> Decision<'a> {
    fn new(
        frame: &'a Frame<'a>,
        key: &'a ObjectKey,
        sides: Sides<'a>,
        live: &'a Value,
    ) -> Result<Self, PlanError> {
        let typed = typed(frame, key, sides.desired)?;
        let (wanted, desired_fields) = created(frame, key, sides.desired)?;
        let owners = field_owners(live);
        let known = owners.iter().any(is_ours);
        let base = match sides.base {
            None if !known && !sides.ours => last_applied(live),
            base => base.cloned(),
        };
        let adoption = if known || sides.ours {
            None
        } else {
            // A base that can no longer be merged (its kind's schema changed) is no base.
            let applied = base.as_ref().and_then(|base| created(frame, key, base).ok());
            let (base_form, base_fields) = applied.unzip();
            let base = if is_secret(key) { base.as_ref() } else { base_form.as_ref() };
            let kept = |path: &Path| frame.rule(key, path) == Rule::Keep;
            let base_fields = base_fields.unwrap_or_default();
            adopt(live, &wanted, typed, base, &base_fields, frame.legacy_managers, &kept)
        };
        let mut live = live.clone();
        if let Some(adoption) = &adoption
            && let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("managedFields".to_owned(), adoption.managed_fields.clone());
        }
        let owners = if adoption.is_some() { field_owners(&live) } else { owners };
        Ok(Self { frame, key, sides, typed, base, adoption, live, owners, wanted, desired_fields })
    }

    fn foreign(&self, path: &Path, rule: Option<Rule>) -> ForeignField {
        let owners: BTreeSet<String> = self
            .owners
            .iter()
            .filter(|o| !is_ours(o) && o.fields.touches(path))
            .map(|o| o.manager.clone())
            .collect();
        ForeignField { field: format!("{path:#}"), owners: owners.into_iter().collect(), rule }
    }

    /// Holds every field against what is there.
    fn judge(&self, leaves: &[Path], ours: &FieldSet) -> Fields {
        let secret = is_secret(self.key);
        let mut fields = Fields {
            body: self.sides.desired.clone(),
            whole: self.sides.desired.clone(),
            changes: Vec::new(),
            taken: Vec::new(),
            kept: Vec::new(),
            conflicts: Vec::new(),
            gone: true,
            left: BTreeSet::new(),
            repeats: true,
            written: Vec::new(),
            traces: Traces::default(),
        };
        for path in leaves {
            let Some(declared) = self.typed.find(self.sides.desired, path) else { continue };
            let base = self
                .base
                .as_ref()
                .and_then(|b| self.typed.find(b, path))
                .filter(|b| !(secret && b.is_null()));
            let found = self.typed.find(&self.live, path);
            // An empty mapping is merged with what is there, whether or not the server would keep it.
            let empty = declared.as_object().filter(|fields| found.is_some() && fields.is_empty());
            let wanted = self.typed.find(&self.wanted, path).or(empty.map(|_| declared));
            match (found, wanted) {
                (Some(found), Some(wanted))
                    if settled(found, wanted, base)
                        && !self.traces(|t| t.is_left_in(path, found, wanted)) =>
                {
                    // What the server has put beside it stays: a list that is written as one value would lose it.
                    if found != wanted {
                        self.typed.replace(&mut fields.body, path, without_nulls(found));
                    }
                    continue;
                }
                // A `false` or an empty list that the server does not keep.
                (None, None) => continue,
                _ => {}
            }
            fields.repeats &= ours.contains(path) && base == Some(declared);
            let change = if found.is_some() { Change::Set } else { Change::Add };
            if self.may_move(path, base, found, ours) {
                fields.written.push(path.clone());
                fields.changes.push(FieldChange { field: format!("{path:#}"), change });
                continue;
            }
            let rule = self.frame.rule(self.key, path);
            match rule {
                Rule::Take => {
                    fields.written.push(path.clone());
                    fields.changes.push(FieldChange { field: format!("{path:#}"), change });
                    fields.taken.push(self.foreign(path, Some(rule)));
                }
                Rule::Keep => {
                    fields.kept.push(self.foreign(path, Some(rule)));
                    fields.left.insert(format!("{path:#}"));
                    let left = self.left_out(path);
                    if let Some(found) = found {
                        self.typed.replace(&mut fields.whole, path, without_nulls(found));
                    } else {
                        self.typed.remove(&mut fields.whole, &left);
                    }
                    self.typed.remove(&mut fields.body, &left);
                }
                Rule::Stop => {
                    fields.gone &= found.is_none();
                    fields.conflicts.push(self.foreign(path, Some(rule)));
                }
            }
        }
        fields
    }

    fn step(self, wave: Wave) -> Result<Step, PlanError> {
        let ours = owned(&self.owners, is_ours);
        let mut leaves: Vec<Path> = self.desired_fields.leaves().paths();
        leaves.retain(|path| !is_identity(path));
        let mut fields = self.judge(&leaves, &ours);
        let (result, given) = self.merged(&mut fields)?;
        for path in ours.union(&given).leaves().paths() {
            let select = |object| self.typed.find(object, &path);
            if select(&self.live).is_some() && select(&result).is_none() {
                fields.repeats = false;
                fields.traces.note_removed(&path);
                fields.changes.push(FieldChange { field: format!("{path:#}"), change: Change::Remove });
            }
        }
        self.others(&mut fields, &result, &given);
        for path in fields.written.iter().filter(|_| !is_secret(self.key)) {
            if let Some(value) = self.typed.find(&result, path) {
                fields.traces.note_value(path, value);
            }
        }
        fields.changes.sort();
        fields.changes.dedup();
        fields.kept.sort();
        let Fields { mut body, whole, changes, taken, kept, conflicts, gone, repeats, traces, .. } = fields;

        let owns_all = if body == *self.sides.desired {
            self.desired_fields.difference(&ours)
        } else {
            created(self.frame, self.key, &body)?.1.difference(&ours)
        };
        let owns_all = owns_all.leaves().paths();
        let unowned = owns_all.iter().any(|path| !is_identity(path) && !self.is_a_controllers(path));
        let (outcome, cause) = if !conflicts.is_empty() {
            (Outcome::Conflict, conflict_cause(&conflicts, gone))
        } else if self.adoption.is_some() || (!self.sides.ours && ours.is_empty()) {
            (Outcome::Adopted, adopted_cause(&changes, self.adoption.as_ref()))
        } else if !changes.is_empty() {
            (Outcome::Updated, changed_cause(&changes))
        } else if unowned {
            (Outcome::Updated, "the fields have the release's values and become Scantling's".to_owned())
        } else {
            (Outcome::Unchanged, String::new())
        };
        let immutable = immutable_changes(self.key, &self.live, &self.wanted);
        let (outcome, cause) = match outcome {
            _ if immutable.is_empty() => (outcome, cause),
            Outcome::Conflict => (outcome, cause),
            _ if self.sides.created && self.may_be_replaced(&immutable) => {
                body = whole;
                (Outcome::Replaced, replaced_cause(self.key, &immutable, &kept))
            }
            _ => (Outcome::Conflict, fixed_cause(self.key, &immutable, self.sides.created)),
        };
        let handed = (!given.is_empty()).then(|| hand_over(&self.live, &given, self.api_version()));
        let (taken_over, adopted) = match self.adoption {
            Some(adoption) => (adoption.managers, Some(adoption.managed_fields).filter(|_| adoption.changed)),
            None => (Vec::new(), None),
        };
        let precondition = precondition(&leaves, &self.live, self.typed, &self.owners, is_secret(self.key));
        Ok(Step {
            outcome,
            cause,
            changes,
            kept,
            taken,
            conflicts,
            immutable,
            taken_over,
            body,
            managed_fields: handed.or(adopted),
            repeats: repeats && outcome == Outcome::Updated,
            traces,
            ..blank(self.key, wave, precondition)
        })
    }

    /// The fields that were last applied, if somebody else has fields that could be left of them.
    fn base_fields(&self) -> FieldSet {
        let others = self.owners.iter().any(|o| !is_ours(o) && o.subresource.is_none());
        let base = self.base.as_ref().filter(|_| others);
        let fields = base.and_then(|base| created(self.frame, self.key, base).ok());
        fields.map(|(_, fields)| fields).unwrap_or_default()
    }

    fn api_version(&self) -> &str {
        object::text(self.sides.desired, "/apiVersion")
    }

    /// What is left out when a field is left to others: the item that it lies in, if all of that is theirs and gone. An
    /// item without its key would be another one.
    fn left_out(&self, path: &Path) -> Path {
        let items = path.0.iter().enumerate().filter(|(_, e)| matches!(e, Element::Key(_)));
        let mut items = items.map(|(at, _)| Path(path.0.iter().take(at + 1).cloned().collect()));
        let gone = items.find(|item| {
            self.typed.find(&self.live, item).is_none() && self.frame.rule(self.key, item) == Rule::Keep
        });
        gone.unwrap_or_else(|| path.clone())
    }

    /// What the object is after the step, and the fields of others that are ours before it, so that they go.
    fn merged(&self, fields: &mut Fields) -> Result<(Value, FieldSet), PlanError> {
        let mut given = FieldSet::new();
        let mut left = false;
        let result = merge(self.frame, self.key, Some(&self.live), &fields.body, true)?;
        for Namesake { theirs, ours } in namesakes(self.key, self.typed, &fields.body, &result) {
            let rule = self.frame.rule(self.key, &ours);
            let foreign = self.foreign(&theirs, Some(rule));
            match rule {
                Rule::Take => {
                    given = given.union(&owned_below(&self.owners, &theirs));
                    fields.taken.push(foreign);
                }
                Rule::Keep => {
                    left = true;
                    self.typed.remove(&mut fields.body, &ours);
                    self.typed.remove(&mut fields.whole, &ours);
                    fields.left.insert(foreign.field.clone());
                    fields.kept.push(foreign);
                }
                Rule::Stop => {
                    fields.gone = false;
                    fields.conflicts.push(foreign);
                }
            }
        }
        let base = self.base_fields();
        for path in torsos(self.key, self.typed, &base, self.sides.desired, &self.live, &result) {
            let rule = self.frame.rule(self.key, &path);
            let below = owned_below(&self.owners, &path);
            let others = below.leaves().paths();
            let others = others.iter().filter(|leaf| self.typed.find(&result, leaf).is_some());
            let said = Some(rule).filter(|rule| *rule != Rule::Stop);
            let foreign = others.map(|leaf| self.foreign(leaf, said)).filter(|f| !f.owners.is_empty());
            if rule == Rule::Keep {
                fields.gone = false;
                fields.conflicts.extend(foreign);
            } else {
                fields.taken.extend(foreign);
                given = given.union(&below);
            }
        }
        if given.is_empty() && !left {
            return Ok((result, given));
        }
        let mut live = self.live.clone();
        if let (false, Some(metadata)) =
            (given.is_empty(), live.get_mut("metadata").and_then(Value::as_object_mut))
        {
            let fields = hand_over(&self.live, &given, self.api_version());
            metadata.insert("managedFields".to_owned(), fields);
        }
        Ok((merge(self.frame, self.key, Some(&live), &fields.body, true)?, given))
    }

    /// Whether the object may be deleted to be created again. What runs pods takes them with it, so that the release has
    /// to say that it may.
    fn may_be_replaced(&self, immutable: &[String]) -> bool {
        let consented = |field: &String| self.frame.rules.rule(self.key, field) == Ok(Rule::Take);
        may_be_replaced(self.key) && (!runs_pods(self.key) || immutable.iter().all(consented))
    }

    /// What is known of runs that did not end.
    fn traces(&self, tell: impl FnOnce(&Traces) -> bool) -> bool {
        self.sides.traces.is_some_and(tell)
    }

    /// What was last applied at a path, in the form in which a server keeps it.
    fn last_kept(&self, path: &Path) -> Option<Value> {
        let base = self.base.as_ref()?;
        let kept = created(self.frame, self.key, base).map(|(kept, _)| kept);
        self.typed.find(kept.as_ref().unwrap_or(base), path).cloned()
    }

    /// Whether the release may change a field without asking: nobody else has touched it since it was last applied.
    fn may_move(&self, path: &Path, base: Option<&Value>, found: Option<&Value>, ours: &FieldSet) -> bool {
        let others = || self.owners.iter().any(|o| !is_ours(o) && o.fields.touches(path));
        match (base, found) {
            // A run that did not end has left it so.
            _ if self.traces(|traces| traces.made(path, found)) => true,
            // It is as it was last applied.
            (Some(base), Some(found)) if settled(found, base, None) => true,
            (Some(_), Some(found))
                if self.last_kept(path).is_some_and(|base| settled(found, &base, None)) =>
            {
                true
            }
            // Somebody has taken away what was applied.
            (Some(_), None) => ours.contains(path),
            // It is new in the release, and nobody has it.
            (None, None) => true,
            // It has a value that we did not apply: a server's default if nobody owns it, else somebody's. Who wrote
            // it proves nothing: the tools that install platforms are those that people use. An object that is not
            // ours and says nothing about its owners may be all somebody's.
            (_, Some(_)) => !others() && (self.sides.ours || !self.owners.is_empty()),
        }
    }

    /// Whether a field that is as the release wants it was last written by a controller. Its ownership does not
    /// matter: the controller completes the value, and taking it would only undo that.
    fn is_a_controllers(&self, path: &Path) -> bool {
        self.owners.iter().any(|o| o.fields.touches(path) && is_controller(&self.owners, &o.manager))
    }

    /// Fields of people that the release does not have. They stay, unless what they lie in goes: then they are told.
    fn others(&self, fields: &mut Fields, result: &Value, given: &FieldSet) {
        let mut kept: BTreeMap<String, ForeignField> = BTreeMap::new();
        for owner in &self.owners {
            if is_ours(owner) || owner.subresource.is_some() || is_controller(&self.owners, &owner.manager) {
                continue;
            }
            for path in owner.fields.leaves().paths() {
                let text = format!("{path:#}");
                if text.starts_with(".status") || is_identity(&path) || fields.left.contains(&text) {
                    continue;
                }
                if self.desired_fields.touches(&path) {
                    continue;
                }
                if self.typed.find(result, &path).is_some() {
                    kept.entry(text).or_insert_with(|| self.foreign(&path, None));
                } else if self.typed.find(&self.live, &path).is_some() && !given.contains(&path) {
                    let rule = self.frame.rule(self.key, &path);
                    if rule == Rule::Keep {
                        fields.gone = false;
                        fields.conflicts.push(self.foreign(&path, Some(rule)));
                    } else {
                        let said = Some(rule).filter(|rule| *rule == Rule::Take);
                        fields.taken.push(self.foreign(&path, said));
                        fields.changes.push(FieldChange { field: text, change: Change::Remove });
                    }
                }
            }
        }
        fields.kept.extend(kept.into_values());
        fields.taken.sort();
        fields.taken.dedup();
    }
}

/// The digest of what a decision was based on: for each field its value (for Secrets only whether there is one) and
/// its owners. Two objects with the same digest lead to the same step.
fn precondition(fields: &[Path], live: &Value, typed: Typed<'_>, owners: &[Owner], secret: bool) -> Digest {
    let mut read = String::from("present\n");
    for path in fields {
        let value = match typed.find(live, path) {
            None => "none".to_owned(),
            Some(_) if secret => "some".to_owned(),
            Some(value) => canonical(value),
        };
        let owners: BTreeSet<&str> =
            owners.iter().filter(|o| o.fields.touches(path)).map(|o| o.manager.as_str()).collect();
        let owners: Vec<&str> = owners.into_iter().collect();
        read.push_str(&[&format!("{path:#}="), &value, " ", &owners.join(","), "\n"].concat());
    }
    Digest::of(read.as_bytes())
}
