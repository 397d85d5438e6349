//! Noting what was found, and the findings that come with it.

use std::collections::BTreeMap;

use scantling_finding::{Finding, Place, codes};
use scantling_image::Reference;
use scantling_yaml::{Entry, Node};

use crate::candidate::{Candidate, Filling, Route, What};
use crate::classify::{Verdict, classify};
use crate::find::{Finder, Scope};
use crate::names::{Expect, expect, speaks_of_image};
use crate::trail::{Setting, Trail};

impl Finder<'_> {
    pub(crate) fn push(
        &mut self,
        scope: &Scope<'_>,
        setting: &Setting<'_>,
        what: What,
        written: &str,
        place: Place,
    ) {
        let pulled = setting.route.is_pulled();
        let finding = match &what {
            // What was seen is not what the release says.
            _ if setting.route == Route::Observed => None,
            What::Malformed { reason, suggestion } => {
                let finding = Finding::new(
                    codes::references::MALFORMED_REFERENCE,
                    format!("{written:?}: {reason}"),
                    place.clone(),
                );
                Some(match suggestion {
                    Some(suggestion) => finding.with_remedy(format!("write {suggestion}")),
                    None => finding,
                })
            }
            What::Unclassified { reason } => {
                let message = format!("{written:?} looks like an image reference: {reason}");
                Some(Finding::new(codes::references::UNCLASSIFIED, message, place.clone()))
            }
            What::Reference { reference } | What::Joined { reference, .. }
                if pulled && has_both(reference) =>
            {
                let message = format!("{reference} has a tag and a digest");
                Some(Finding::new(codes::references::DISAGREEING_PARTS, message, place.clone()))
            }
            _ => None,
        };
        self.findings.extend(finding);
        self.candidates.push(Candidate {
            what,
            written: written.to_owned(),
            place,
            route: setting.route.clone(),
            condition: setting.condition.clone(),
            nested: scope.depth > 0,
            pull_policy: setting.pull_policy.map(str::to_owned),
        });
    }

    pub(crate) fn empty(&mut self, scope: &Scope<'_>, trail: &Trail<'_>, node: &Node, setting: &Setting<'_>) {
        let what = match &setting.route {
            Route::Environment(name) => format!("the variable {name} is empty"),
            _ => format!("the field {} is empty", setting.key),
        };
        let place = scope.node_place(trail, node);
        self.findings.push(Finding::new(codes::references::EMPTY_REFERENCE, what, place));
    }

    /// Notes that a name is given a value. Only values that have to do with images are kept: others may be secret.
    pub(crate) fn give(&mut self, name: &str, value: &str, route: &Route, place: impl FnOnce() -> Place) {
        if value.is_empty() || value.len() > 1024 || value.contains('\n') {
            return;
        }
        let is_reference =
            matches!(classify(value, expect(name), &self.options.values), Verdict::Reference { .. });
        if !is_reference && !speaks_of_image(name) {
            return;
        }
        if matches!(classify(value, Expect::Image, &BTreeMap::new()), Verdict::Placeholder { .. }) {
            return;
        }
        let filling = Filling { by: route.to_string(), value: value.to_owned(), place: place() };
        self.given.entry(name.to_owned()).or_default().push(filling);
    }

    pub(crate) fn give_empty(&mut self, name: &str, scope: &Scope<'_>, trail: &Trail<'_>, entries: &[Entry]) {
        let given = self.given.entry(name.to_owned()).or_default();
        if given.is_empty()
            && let Some(entry) = entries.first()
        {
            let place = scope.place(trail, scope.source.place(entry.key_span.start, entry.value.span.end));
            given.push(Filling { by: format!("parameter {name}"), value: String::new(), place });
        }
    }
}

fn has_both(reference: &Reference) -> bool {
    reference.tag().is_some() && reference.digest().is_some()
}
