//! Which fields one object has changed compared with another.

use std::collections::BTreeMap;

use scantling_api::schema::{ListType, Schema, TypeRef};
use serde_json::Value;

use crate::path::{Element, MAX_DEPTH};
use crate::set::FieldSet;
use crate::shape::{Shape, field_type, item_element, scalar_fits, shape};
use crate::validate::Misfit;
use crate::value::equal;

/// The difference between two objects of one type. No field is in more than one of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields only the old object has; containers too.
    pub removed: FieldSet,
    /// Leaves both have, with different values.
    pub modified: FieldSet,
    /// Fields only the new object has; containers too.
    pub added: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Modified and added fields.
    pub fn written(&self) -> FieldSet {
        self.modified.union(&self.added)
    }

    /// The comparison without the fields in `hidden` and all below them.
    #[must_use]
    pub fn without(&self, hidden: &FieldSet) -> Self {
        Self {
            removed: self.removed.recursive_difference(hidden),
            modified: self.modified.recursive_difference(hidden),
            added: self.added.recursive_difference(hidden),
        }
    }
}

/// Compares two values of type `t`.
pub(crate) fn compare(
    schema: &Schema,
    t: Option<&TypeRef>,
    old: &Value,
    new: &Value,
) -> Result<Comparison, Misfit> {
    let level = Walk { schema }.walk(t, Some(old), Some(new), 0)?;
    Ok(level.below)
}

/// How one field changed itself, apart from what lies below it.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    removed: bool,
    modified: bool,
    added: bool,
}

/// The result for one field and all below it.
#[derive(Debug, Default)]
struct Level {
    marks: Marks,
    below: Comparison,
}

impl Level {
    fn take(&mut self, element: Element, child: Self) {
        self.below.removed.graft(element.clone(), child.marks.removed, child.below.removed);
        self.below.modified.graft(element.clone(), child.marks.modified, child.below.modified);
        self.below.added.graft(element, child.marks.added, child.below.added);
    }

    /// Compares as one value.
    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.marks.added = true,
            (_, None) => self.marks.removed = true,
            (Some(old), Some(new)) => self.marks.modified |= !equal(old, new),
        }
    }
}

struct Walk<'a> {
    schema: &'a Schema,
}

impl Walk<'_> {
    fn walk(
        &self,
        t: Option<&TypeRef>,
        old: Option<&Value>,
        new: Option<&Value>,
        depth: usize,
    ) -> Result<Level, Misfit> {
        if depth > MAX_DEPTH {
            return Err(Misfit::here(format!("nests deeper than {MAX_DEPTH}")));
        }
        let unknown = || Misfit::here("the schema does not know the type of this field");
        let before = shape(self.schema, t, old.or(new)).ok_or_else(unknown)?;
        let after = shape(self.schema, t, new.or(old)).ok_or_else(unknown)?;
        let mut level = Level::default();
        let mut is_leaf = self.shaped(before, old, new, depth, &mut level)?;
        if !before.same_form(after) {
            // The value changed its form: what each form sees is a change.
            is_leaf = self.shaped(after, old, new, depth, &mut level)?;
        }
        if !is_leaf {
            level.marks.added |= old.is_none();
            level.marks.removed |= new.is_none();
        }
        Ok(level)
    }

    /// Compares as one form; says whether the field is a leaf.
    fn shaped(
        &self,
        shape: Shape<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
        depth: usize,
        level: &mut Level,
    ) -> Result<bool, Misfit> {
        match shape {
            Shape::Scalar(scalar) => {
                let fits = |value: Option<&Value>| value.is_none_or(|value| scalar_fits(scalar, value));
                if !fits(old) && !fits(new) {
                    return Err(Misfit::here("neither the old nor the new value is a scalar of this type"));
                }
                level.leaf(old, new);
                Ok(true)
            }
            Shape::Map(map, atomic) => {
                let left = old.and_then(Value::as_object).filter(|entries| !entries.is_empty());
                let right = new.and_then(Value::as_object).filter(|entries| !entries.is_empty());
                if atomic || (left.is_none() && right.is_none()) {
                    level.leaf(old, new);
                    return Ok(true);
                }
                for (name, value) in left.into_iter().flatten() {
                    let counterpart = right.and_then(|right| right.get(name));
                    let child = self.walk(field_type(map, name), Some(value), counterpart, depth + 1)?;
                    level.take(Element::field(name.as_str()), child);
                }
                for (name, value) in right.into_iter().flatten() {
                    if left.is_none_or(|left| !left.contains_key(name)) {
                        let child = self.walk(field_type(map, name), None, Some(value), depth + 1)?;
                        level.take(Element::field(name.as_str()), child);
                    }
                }
                Ok(false)
            }
            Shape::List(list, atomic) => {
                let left = old.and_then(Value::as_array).filter(|items| !items.is_empty());
                let right = new.and_then(Value::as_array).filter(|items| !items.is_empty());
                if atomic || (left.is_none() && right.is_none()) {
                    level.leaf(old, new);
                    return Ok(true);
                }
                let none = Vec::new();
                self.items(list, left.unwrap_or(&none), right.unwrap_or(&none), depth, level)?;
                Ok(false)
            }
        }
    }

    fn items(
        &self,
        list: &ListType,
        old: &[Value],
        new: &[Value],
        depth: usize,
        level: &mut Level,
    ) -> Result<(), Misfit> {
        let mut items: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        let element = |item: &Value, index: usize| {
            item_element(self.schema, list, item)
                .map_err(|problem| Misfit::here(format!("item {index}: {problem}")))
        };
        for (index, item) in old.iter().enumerate() {
            items.entry(element(item, index)?).or_default().0.push(item);
        }
        for (index, item) in new.iter().enumerate() {
            items.entry(element(item, index)?).or_default().1.push(item);
        }
        for (element, (old, new)) in items {
            let one = |old, new| self.walk(Some(&list.element), old, new, depth + 1);
            let child = match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => one(old.first().copied(), new.first().copied())?,
                // An item that occurs several times is one value.
                ([_, _, ..], [_, _, ..]) => {
                    let same = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| equal(a, b));
                    Level { marks: Marks { modified: !same, ..Marks::default() }, ..Level::default() }
                }
                ([_, _, ..], rest) => {
                    let mut child = match rest.first() {
                        Some(item) => one(None, Some(*item))?,
                        None => Level::default(),
                    };
                    child.marks.removed = true;
                    child
                }
                (rest, _) => {
                    let mut child = match rest.first() {
                        Some(item) => one(Some(*item), None)?,
                        None => Level::default(),
                    };
                    child.marks.added = true;
                    child
                }
            };
            level.take(element, child);
        }
        Ok(())
    }
}
