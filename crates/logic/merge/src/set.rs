//! Sets of fields, and their encoded form in `metadata.managedFields`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::path::{Element, MAX_DEPTH, Path};

/// A set of fields of an object: a sorted tree. A field can be a member without its children, and the
/// other way round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: BTreeMap<Element, Node>,
}

/// One step below a set: never both not a member and without children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    below: FieldSet,
}

/// Why an encoded field set cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field set: {0}")]
pub struct FieldSetError(String);

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no field is a member.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many fields are members.
    pub fn len(&self) -> usize {
        self.nodes.values().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    /// Adds one field. The root itself cannot be a member.
    pub fn insert(&mut self, path: &Path) {
        if let Some((last, parents)) = path.0.split_last() {
            let mut set = self;
            for element in parents {
                set = &mut set.nodes.entry(element.clone()).or_default().below;
            }
            set.nodes.entry(last.clone()).or_default().member = true;
        }
    }

    /// Adds one step below this set, with everything under it.
    pub(crate) fn graft(&mut self, element: Element, member: bool, below: Self) {
        if !member && below.is_empty() {
            return;
        }
        let node = self.nodes.entry(element).or_default();
        node.member |= member;
        if node.below.is_empty() {
            node.below = below;
        } else if !below.is_empty() {
            node.below = node.below.union(&below);
        }
    }

    /// Whether this very field is a member.
    pub fn contains(&self, path: &Path) -> bool {
        let Some((last, parents)) = path.0.split_last() else { return false };
        let mut set = self;
        for element in parents {
            match set.nodes.get(element) {
                Some(node) => set = &node.below,
                None => return false,
            }
        }
        set.has(last)
    }

    /// Whether something that lies in the field is a member.
    pub fn reaches(&self, path: &Path) -> bool {
        let mut set = self;
        for element in &path.0 {
            match set.nodes.get(element) {
                Some(node) => set = &node.below,
                None => return false,
            }
        }
        !set.is_empty()
    }

    /// Whether the field, one it lies in, or one that lies in it is a member: some part of it is owned.
    pub fn touches(&self, path: &Path) -> bool {
        let mut set = self;
        for element in &path.0 {
            match set.nodes.get(element) {
                Some(node) if node.member && node.below.is_empty() => return true,
                Some(node) => set = &node.below,
                None => return false,
            }
        }
        !set.is_empty()
    }

    /// Whether the step is a member.
    pub(crate) fn has(&self, element: &Element) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// What lies below a step, unless nothing does.
    pub(crate) fn below(&self, element: &Element) -> Option<&Self> {
        self.nodes.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// All steps with whether each is a member, and what lies below.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&Element, bool, &Self)> {
        self.nodes.iter().map(|(element, node)| (element, node.member, &node.below))
    }

    /// Members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (mut result, smaller) =
            if self.nodes.len() >= other.nodes.len() { (self.clone(), other) } else { (other.clone(), self) };
        for (element, node) in &smaller.nodes {
            result.graft(element.clone(), node.member, node.below.clone());
        }
        result
    }

    /// Members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut result = Self::new();
        for (element, node) in &self.nodes {
            if let Some(counterpart) = other.nodes.get(element) {
                let below = node.below.intersection(&counterpart.below);
                result.graft(element.clone(), node.member && counterpart.member, below);
            }
        }
        result
    }

    /// Members of this set that are not members of `other`. A parent and its children are different
    /// members: taking away the one leaves the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.subtract(other, false)
    }

    /// Members of this set that are neither members of `other` nor lie below one.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.subtract(other, true)
    }

    fn subtract(&self, other: &Self, recursive: bool) -> Self {
        let mut result = Self::new();
        for (element, node) in &self.nodes {
            match other.nodes.get(element) {
                None => {
                    result.nodes.insert(element.clone(), node.clone());
                }
                Some(counterpart) if recursive && counterpart.member => {}
                Some(counterpart) => {
                    let below = node.below.subtract(&counterpart.below, recursive);
                    result.graft(element.clone(), node.member && !counterpart.member, below);
                }
            }
        }
        result
    }

    /// Members that have no member below them.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let mut result = Self::new();
        for (element, node) in &self.nodes {
            result.graft(element.clone(), node.member && node.below.is_empty(), node.below.leaves());
        }
        result
    }

    /// All members as paths, parents before children.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Path>) {
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            if node.member {
                paths.push(Path(prefix.clone()));
            }
            node.below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// Reads the `FieldsV1` form: nested objects whose keys are `f:…`, `k:…`, `v:…`, `i:…` and `.`.
    pub fn from_fields_v1(json: &Value) -> Result<Self, FieldSetError> {
        Ok(read(json, 0)?.1)
    }

    /// Writes the `FieldsV1` form.
    pub fn to_fields_v1(&self) -> Value {
        let mut map = Map::new();
        for (element, node) in &self.nodes {
            let mut below = node.below.to_fields_v1();
            if node.member
                && !node.below.is_empty()
                && let Value::Object(below) = &mut below
            {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(element.encode(), below);
        }
        Value::Object(map)
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&path);
        }
        set
    }
}

/// One member per line.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.paths().iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fmt::Display::fmt(path, f)?;
        }
        Ok(())
    }
}

/// Reads one level; says too whether the level itself is a member.
fn read(json: &Value, depth: usize) -> Result<(bool, FieldSet), FieldSetError> {
    if depth > MAX_DEPTH {
        return Err(FieldSetError(format!("nests deeper than {MAX_DEPTH}")));
    }
    let map = match json {
        Value::Object(map) => map,
        Value::Null => return Ok((true, FieldSet::new())),
        _ => return Err(FieldSetError("expected an object".to_owned())),
    };
    let mut set = FieldSet::new();
    let mut member = false;
    for (key, json) in map {
        if key == "." {
            member = true;
            continue;
        }
        // A kind of step that is not known is left out, with all below it.
        let Some(element) = Element::decode(key).map_err(FieldSetError)? else { continue };
        let (is_member, below) = read(json, depth + 1)?;
        set.graft(element, is_member, below);
    }
    Ok((member || set.is_empty(), set))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    fn set(paths: &[&str]) -> FieldSet {
        paths.iter().map(|path| path.parse::<Path>().unwrap()).collect()
    }

    #[test]
    fn combines_sets() {
        let (a, b) = (set(&[".a", ".a.b", ".a.c", ".d"]), set(&[".a", ".a.c", ".e.f"]));
        assert_eq!(a.union(&b), set(&[".a", ".a.b", ".a.c", ".d", ".e.f"]));
        assert_eq!(b.union(&a), a.union(&b));
        assert_eq!(a.intersection(&b), set(&[".a", ".a.c"]));
        assert_eq!(a.difference(&b), set(&[".a.b", ".d"]));
        assert_eq!(a.recursive_difference(&b), set(&[".d"]));
        assert_eq!(set(&[".a.b.c"]).difference(&set(&[".a.b"])), set(&[".a.b.c"]));
        assert_eq!(set(&[".a.b.c"]).recursive_difference(&set(&[".a.b"])), FieldSet::new());
        assert_eq!(a.leaves(), set(&[".a.b", ".a.c", ".d"]));
        assert_eq!((a.len(), a.is_empty(), FieldSet::new().is_empty()), (4, false, true));
    }

    #[test]
    fn answers_membership() {
        let a = set(&[".a.b", ".l[name=\"x\"]", ".l[name=\"x\"].v", ".atom"]);
        for (path, member, touched) in [
            (".a", false, true),
            (".a.b", true, true),
            (".a.b.deeper", false, true),
            (".a.c", false, false),
            (".l[name=\"x\"].w", false, false),
            (".atom.inner", false, true),
            (".z", false, false),
        ] {
            let path: Path = path.parse().unwrap();
            assert_eq!((a.contains(&path), a.touches(&path)), (member, touched), "{path}");
        }
    }

    #[test]
    fn reads_and_writes_the_encoded_form() {
        let json = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:l": {"k:{\"name\":\"x\"}": {".": {}, "f:v": {}}, "v:1": {}}}});
        let read = FieldSet::from_fields_v1(&json).unwrap();
        assert_eq!(
            read,
            set(&[
                ".metadata.labels",
                ".metadata.labels.a",
                ".spec.l[name=\"x\"]",
                ".spec.l[name=\"x\"].v",
                ".spec.l[=1]"
            ])
        );
        assert_eq!(read.to_fields_v1(), json);
        assert_eq!(
            FieldSet::from_fields_v1(&json!({"x:1": {"f:a": {}}, "f:b": null})).unwrap(),
            set(&[".b"])
        );
        for bad in [json!([]), json!({"f:a": 1}), json!({"nonsense": {}})] {
            assert!(FieldSet::from_fields_v1(&bad).is_err());
        }
    }
}
