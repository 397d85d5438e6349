//! Looking through texts that are no documents.

use scantling_finding::{Finding, Place, codes};

use crate::candidate::{Route, What};
use crate::classify::{Verdict, classify};
use crate::find::{Finder, Scope, fallback};
use crate::lines;
use crate::names::{expect, is_secret};
use crate::scan::{Text, scan};
use crate::trail::{Setting, Trail};

impl Finder<'_> {
    /// A text of `key=value` lines.
    pub(crate) fn assignments(&mut self, scope: &Scope<'_>, text: &str, setting: &Setting<'_>) {
        for line in lines::assignments(text) {
            if is_secret(line.key) {
                continue;
            }
            let trail = Trail::root();
            let trail = trail.key(line.key);
            let place = |from: usize, to: usize| {
                scope.place(&trail, scope.source.place(line.start + from, line.start + to))
            };
            let setting = Setting { route: Route::Parameter(line.key.to_owned()), ..setting.clone() };
            let expect = expect(line.key);
            self.give(line.key, line.value, &setting.route, || place(0, line.value.len()));
            match classify(line.value, expect, &self.options.values) {
                Verdict::Nothing if crate::placeholder::is_marker(line.value) => {
                    let what = What::Placeholder { names: vec![line.key.to_owned()], filled_by: Vec::new() };
                    self.push(scope, &setting, what, line.value, place(0, line.value.len()));
                }
                Verdict::Nothing => {
                    for hit in scan(line.value, Text::Script, &self.options.values) {
                        let written = line.value.get(hit.start..hit.end).unwrap_or_default();
                        self.hit(scope, &setting, hit.verdict, None, written, place(hit.start, hit.end));
                    }
                }
                Verdict::Empty => {
                    let message = format!("{} is empty", line.key);
                    self.findings.push(Finding::new(
                        codes::references::EMPTY_REFERENCE,
                        message,
                        place(0, 0),
                    ));
                }
                Verdict::Reference { reference, start, end } => {
                    let written = line.value.get(start..end).unwrap_or_default();
                    self.push(scope, &setting, What::Reference { reference }, written, place(start, end));
                }
                verdict => self.hit(scope, &setting, verdict, None, line.value, place(0, line.value.len())),
            }
        }
    }

    /// A text that is no document.
    pub(crate) fn script(&mut self, scope: &Scope<'_>, text: &str, kind: Text, setting: &Setting<'_>) {
        for hit in scan(text, kind, &self.options.values) {
            let place = scope.source.place(hit.start, hit.end);
            let field = scope.outer.trim_end_matches(" › ");
            let place = Place {
                object: scope.object.map(str::to_owned),
                field: (!field.is_empty()).then(|| field.to_owned()),
                ..place
            };
            let written = text.get(hit.start..hit.end).unwrap_or_default();
            let mut setting = setting.clone();
            if kind == Text::Code {
                (setting.route, setting.condition) = match (hit.variable, hit.assigned) {
                    (Some(variable), _) => {
                        let (route, condition) = fallback(&[variable.to_owned()]);
                        (route, Some(condition))
                    }
                    (None, Some(name)) => (Route::SourceText, Some(format!("the code uses {name}"))),
                    (None, None) => {
                        (Route::SourceText, Some("the code takes the path to this text".to_owned()))
                    }
                };
            }
            self.hit(scope, &setting, hit.verdict, hit.variable, written, place);
        }
    }

    /// Notes what stands in a word.
    pub(crate) fn hit(
        &mut self,
        scope: &Scope<'_>,
        setting: &Setting<'_>,
        verdict: Verdict,
        variable: Option<&str>,
        written: &str,
        place: Place,
    ) {
        let mut setting = setting.clone();
        let what = match verdict {
            Verdict::Nothing | Verdict::Empty => return,
            Verdict::Reference { reference, .. } => What::Reference { reference },
            Verdict::Defaulted { reference, mut defaulted } => {
                defaulted.extend(variable.map(str::to_owned));
                let (route, condition) = fallback(&defaulted);
                (setting.route, setting.condition) = (route, Some(condition));
                What::Reference { reference }
            }
            Verdict::Placeholder { names } => What::Placeholder { names, filled_by: Vec::new() },
            Verdict::Malformed { reason, suggestion } => What::Malformed { reason, suggestion },
            Verdict::Decoy { reason } => What::Decoy { reason },
            Verdict::Unclassified { reason } => What::Unclassified { reason },
        };
        self.push(scope, &setting, what, written, place);
    }
}
