//! The way to a value in a document, and what was learnt on it.

use scantling_yaml::{push_index, push_key};

use crate::candidate::Route;

/// The way from a document's root, as a list that lives on the stack.
#[derive(Clone, Copy)]
pub(crate) struct Trail<'t> {
    parent: Option<&'t Trail<'t>>,
    step: Step<'t>,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Step<'t> {
    Root,
    Key(&'t str),
    Index(usize),
}

impl<'t> Trail<'t> {
    pub(crate) fn root() -> Self {
        Self { parent: None, step: Step::Root, depth: 0 }
    }

    pub(crate) fn key(&'t self, key: &'t str) -> Self {
        Self { parent: Some(self), step: Step::Key(key), depth: self.depth + 1 }
    }

    pub(crate) fn index(&'t self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index), depth: self.depth + 1 }
    }

    /// The number of steps.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The way as a path, `.spec.containers[0].image`.
    pub(crate) fn path(&self) -> String {
        let mut path = self.parent.map(Trail::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key) => push_key(&mut path, key),
            Step::Index(index) => push_index(&mut path, index),
        }
        path
    }
}

/// What the way to a value says about it.
#[derive(Clone)]
pub(crate) struct Setting<'t> {
    /// The nearest key above the value.
    pub(crate) key: &'t str,
    /// The key above that.
    pub(crate) above: &'t str,
    /// How a reference here becomes live.
    pub(crate) route: Route,
    pub(crate) condition: Option<String>,
    pub(crate) pull_policy: Option<&'t str>,
    /// No value below is a reference, unless it has a digest.
    pub(crate) never: bool,
    /// The values below are annotations.
    pub(crate) annotations: bool,
    /// The value belongs to a container.
    pub(crate) container: bool,
}

impl<'t> Setting<'t> {
    pub(crate) fn new(condition: Option<String>) -> Self {
        Self {
            key: "",
            above: "",
            route: Route::Direct,
            condition,
            pull_policy: None,
            never: false,
            annotations: false,
            container: false,
        }
    }

    /// What holds for the value of a key. `first` if the key is at the root of an object of some `kind`.
    pub(crate) fn below(&self, key: &'t str, kind: &str, first: bool) -> Self {
        let mut next = Self { key, above: self.key, container: false, annotations: false, ..self.clone() };
        match key {
            "status" if first && !kind.is_empty() => next.route = Route::Observed,
            "annotations" => {
                next.annotations = true;
                // Those of a pod are read by what injects containers.
                if self.above != "template" && self.route == Route::Direct {
                    next.route = Route::Noted;
                }
            }
            "labels" | "matchLabels" | "nodeSelector" | "selector" | "roleRef" | "subjects"
            | "permissions" | "clusterPermissions" | "matchExpressions" | "tolerations" => next.never = true,
            "rules" if kind.ends_with("Role") => next.never = true,
            "relatedImages" => next.route = Route::Listed,
            "output" if kind == "BuildConfig" => next.route = Route::Pushed,
            "description" | "documentation" | "longDescription" | "title" | "summary" | "displayName" => {
                next.route = Route::Noted;
            }
            _ => {}
        }
        next
    }
}
