//! Puts together what was read: one object for each key, and a list of what was not read.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use scantling_api::{ObjectKey, object};
use scantling_observed::{Names, PodRecord};
use serde::Deserialize as _;
use serde_json::Value;

use crate::error::{Skipped, Why};
use crate::index::{INDEX_VERSION, Index};
use crate::limits::Limits;
use crate::parse::{Parsed, parse};
use crate::piece::{Form, ItemKind};
use crate::snapshot::{NotSeen, Repeated, Snapshot};

/// Longest name that an object can have.
const MAX_NAME: usize = 253;

/// The text of an object that waits for the end of its list.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) form: Form,
    pub(crate) text: Vec<u8>,
    pub(crate) offset: u64,
}

/// A part of a file, read.
#[derive(Debug)]
pub(crate) enum Done {
    /// An object and where it begins.
    Object { offset: u64, parsed: Parsed },
    /// One of a list that has not said yet what its items are.
    Waiting { list: u32, waiting: Waiting },
    /// The end of a list.
    ListEnd { list: u32, kind: Option<ItemKind> },
    /// Something that is not read.
    Bad { offset: Option<u64>, why: Why },
}

/// Collects a snapshot.
pub(crate) struct Collector<'a> {
    limits: &'a Limits,
    snapshot: Snapshot,
    /// Objects whose list has not ended, by list.
    waiting: BTreeMap<u32, Vec<Waiting>>,
    waiting_bytes: usize,
    names: Names,
    is_full: bool,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            snapshot: Snapshot::default(),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            names: Names::new(),
            is_full: false,
        }
    }

    /// Are there as many objects as are kept?
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn objects(&self) -> usize {
        self.snapshot.observed.len() + self.snapshot.observed.held_records()
    }

    pub(crate) fn bytes(&mut self, bytes: u64) -> u64 {
        self.snapshot.bytes += bytes;
        self.snapshot.bytes
    }

    pub(crate) fn log(&mut self) {
        self.snapshot.logs += 1;
    }

    pub(crate) fn file(&mut self) {
        self.snapshot.files += 1;
    }

    pub(crate) fn skip(&mut self, path: &str, offset: Option<u64>, why: Why) {
        if self.snapshot.skipped.len() < self.limits.skipped {
            self.snapshot.skipped.push(Skipped { path: path.to_owned(), offset, why });
        } else {
            self.snapshot.skipped_more += 1;
        }
    }

    /// Takes a part of a file, in its order.
    pub(crate) fn take(&mut self, path: &str, done: Done) {
        match done {
            Done::Object { offset, parsed } => self.parsed(path, offset, parsed),
            Done::Bad { offset, why } => self.skip(path, offset, why),
            Done::Waiting { list, waiting } => {
                if self.waiting_bytes + waiting.text.len() > self.limits.waiting_bytes {
                    return self.skip(path, Some(waiting.offset), Why::NoKind);
                }
                self.waiting_bytes += waiting.text.len();
                self.waiting.entry(list).or_default().push(waiting);
            }
            Done::ListEnd { list, kind } => {
                for waiting in self.waiting.remove(&list).unwrap_or_default() {
                    self.waiting_bytes -= waiting.text.len();
                    let parsed = parse(waiting.form, &waiting.text, kind.as_ref(), &mut self.names);
                    self.parsed(path, waiting.offset, parsed);
                }
            }
        }
    }

    /// A file is over: what still waits for a list's end waits in vain.
    pub(crate) fn end_of_file(&mut self, path: &str) {
        for waiting in std::mem::take(&mut self.waiting).into_values().flatten() {
            self.skip(path, Some(waiting.offset), Why::NoKind);
        }
        self.waiting_bytes = 0;
    }

    fn parsed(&mut self, path: &str, offset: u64, parsed: Parsed) {
        if self.objects() >= self.limits.objects {
            if !self.is_full {
                self.is_full = true;
                self.skip(path, Some(offset), Why::TooMany(self.limits.objects));
            }
            return;
        }
        match parsed {
            Parsed::Pod(pod) => self.pod(path, offset, *pod),
            Parsed::Node(node) => {
                if !is_name(&node.name) {
                    return self.skip(path, Some(offset), Why::BadName);
                }
                let held = self
                    .snapshot
                    .observed
                    .held_node(&node.name)
                    .map(|held| held.resource_version.to_string());
                let key = || ObjectKey {
                    group: String::new(),
                    kind: "Node".to_owned(),
                    namespace: None,
                    name: node.name.to_string(),
                };
                if self.is_newer(path, held.as_deref(), &node.resource_version, key) {
                    self.snapshot.observed.insert_node(*node);
                }
            }
            Parsed::Object(value) => self.object(path, offset, value),
            Parsed::Many(all) => all.into_iter().for_each(|one| self.parsed(path, offset, one)),
            Parsed::Index(index) => self.index(path, &index),
            Parsed::NoKind => self.skip(path, Some(offset), Why::NoKind),
            Parsed::PassedOver => self.snapshot.passed_over += 1,
            Parsed::Bad(why) => self.skip(path, Some(offset), why),
        }
    }

    fn pod(&mut self, path: &str, offset: u64, pod: PodRecord) {
        if !is_name(&pod.name) || !is_name(&pod.namespace) {
            return self.skip(path, Some(offset), Why::BadName);
        }
        let held = self.snapshot.observed.held_pod(&pod.namespace, &pod.name);
        let held = held.map(|held| held.resource_version.to_string());
        let key = || ObjectKey::namespaced("", "Pod", &*pod.namespace, &*pod.name);
        if self.is_newer(path, held.as_deref(), &pod.resource_version, key) {
            self.snapshot.observed.insert_pod(pod);
        }
    }

    fn object(&mut self, path: &str, offset: u64, value: Value) {
        let key = match object::key(&value) {
            Ok(key) => key,
            Err(error) => return self.skip(path, Some(offset), Why::NotAnObject(error.to_string())),
        };
        if !is_name(&key.name) || !key.namespace.as_deref().is_none_or(is_name) || !is_name(&key.kind) {
            return self.skip(path, Some(offset), Why::BadName);
        }
        let held = self.snapshot.observed.get(&key).map(|held| object::resource_version(held).to_owned());
        let version = object::resource_version(&value).to_owned();
        if self.is_newer(path, held.as_deref(), &version, || key.clone()) {
            self.snapshot.observed.extend([(key, value)]);
        }
    }

    /// Is an object to be taken, given the version of the one that is held?
    fn is_newer(
        &mut self,
        path: &str,
        held: Option<&str>,
        new: &str,
        key: impl FnOnce() -> ObjectKey,
    ) -> bool {
        let Some(held) = held else { return true };
        if held == new && !held.is_empty() {
            return false;
        }
        let order = compare(held, new);
        let newer = order == Some(Ordering::Less);
        let (kept, dropped) = if newer { (new, held) } else { (held, new) };
        if self.snapshot.repeated.len() < self.limits.skipped {
            self.snapshot.repeated.push(Repeated {
                key: key(),
                kept: kept.to_owned(),
                dropped: dropped.to_owned(),
                path: path.to_owned(),
                comparable: order.is_some(),
            });
        } else {
            self.snapshot.skipped_more += 1;
        }
        newer
    }

    fn index(&mut self, path: &str, index: &Value) {
        let version = object::text(index, "/apiVersion");
        if version != INDEX_VERSION {
            let why = format!("its form is `{version}`, and `{INDEX_VERSION}` is known");
            return self.skip(path, None, Why::Index(why));
        }
        let index = match Index::deserialize(index) {
            Ok(index) => index,
            Err(error) => return self.skip(path, None, Why::Index(error.to_string())),
        };
        if index.finished.is_empty() {
            self.skip(path, None, Why::Unfinished);
        }
        self.snapshot.taken = Some(index.taken).filter(|taken| !taken.is_empty());
        for resource in index.resources.into_iter().filter(|resource| !resource.not_seen.is_empty()) {
            let missing = Some(resource.missing_right).filter(|right| !right.is_empty());
            self.snapshot.not_seen.push(NotSeen {
                resource: resource.resource,
                why: resource.not_seen,
                missing,
            });
        }
    }

    /// The snapshot.
    pub(crate) fn finish(mut self) -> Snapshot {
        self.snapshot.skipped.sort();
        self.snapshot
    }
}

/// Which of two versions is newer, if that can be said: both are numbers, as all servers make them.
fn compare(left: &str, right: &str) -> Option<Ordering> {
    let number = |text: &str| text.parse::<u64>().ok();
    Some(number(left)?.cmp(&number(right)?))
}

/// Can an object have this name? The rule of path segments, the widest that any kind has.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && !matches!(name, "." | "..")
        && !name.chars().any(|c| {
            c.is_control() || matches!(c, '/' | '%' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_names() {
        assert_eq!(compare("9", "10"), Some(Ordering::Less));
        assert_eq!(compare("10", "10"), Some(Ordering::Equal));
        assert_eq!(compare("", "10"), None);
        assert_eq!(compare("a", "b"), None);
        for (name, wanted) in [
            ("web-1", true),
            ("system:node", true),
            ("Größe", true),
            ("", false),
            (".", false),
            ("..", false),
            ("../x", false),
            ("a%2fb", false),
            ("\x1b[31mred", false),
            ("a\nb", false),
            ("a\u{202e}b", false),
        ] {
            assert_eq!(is_name(name), wanted, "{name:?}");
        }
        assert!(!is_name(&"a".repeat(254)));
    }
}
