//! Files that are read line by line: documents that do not parse, such as templates, and image recipes.

use crate::candidate::{Route, What};
use crate::classify::{Verdict, classify};
use crate::find::{Finder, Scope};
use crate::names::{Expect, expect};
use crate::scan::{Text, scan};
use crate::trail::{Setting, Trail};

impl Finder<'_> {
    /// A YAML file that cannot be read as such: `key: value` lines whose key speaks of an image, and words.
    pub(crate) fn broken_document(&mut self, scope: &Scope<'_>, text: &str, setting: &Setting<'_>) {
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let content = line.trim_end();
            if content.trim_start().starts_with('#') {
                continue;
            }
            let key_value = content.split_once(": ").map(|(key, value)| {
                (key.trim_start_matches([' ', '-']).trim_matches(['"', '\'']), value.trim())
            });
            let found = match key_value {
                Some((key, value)) if expect(key) == Expect::Image => {
                    let bare = value.trim_matches(['"', '\'']);
                    let from = start + line.find(value).unwrap_or(0) + value.find(bare).unwrap_or(0);
                    let root = Trail::root();
                    let trail = root.key(key);
                    let place = scope.place(&trail, scope.source.place(from, from + bare.len()));
                    let what = match classify(bare, Expect::Image, &self.options.values) {
                        Verdict::Reference { reference, .. } => Some(What::Reference { reference }),
                        Verdict::Placeholder { names } => {
                            Some(What::Placeholder { names, filled_by: Vec::new() })
                        }
                        _ => None,
                    };
                    what.map(|what| self.push(scope, setting, what, bare, place)).is_some()
                }
                _ => false,
            };
            if !found {
                self.line(scope, line, start, setting);
            }
        }
    }

    /// The words of one line.
    fn line(&mut self, scope: &Scope<'_>, line: &str, start: usize, setting: &Setting<'_>) {
        for hit in scan(line, Text::Script, &self.options.values) {
            let place = scope.source.place(start + hit.start, start + hit.end);
            let written = line.get(hit.start..hit.end).unwrap_or_default();
            self.hit(scope, setting, hit.verdict, hit.variable, written, place);
        }
    }

    /// An image recipe: what it is built from, and words.
    pub(crate) fn dockerfile(&mut self, scope: &Scope<'_>, text: &str, setting: &Setting<'_>) {
        let mut stages: Vec<String> = vec!["scratch".to_owned()];
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let mut words = line.split_whitespace();
            let instruction = words.next().unwrap_or_default();
            if !instruction.eq_ignore_ascii_case("from") {
                self.line(scope, line, start, setting);
                continue;
            }
            let Some(base) = words.by_ref().find(|word| !word.starts_with("--")) else { continue };
            if words.next().is_some_and(|word| word.eq_ignore_ascii_case("as")) {
                stages.extend(words.next().map(str::to_ascii_lowercase));
            }
            if stages.iter().any(|stage| stage.eq_ignore_ascii_case(base)) {
                continue;
            }
            let from = start + line.find(base).unwrap_or(0);
            let place = scope.source.place(from, from + base.len());
            let setting = Setting {
                route: Route::Direct,
                condition: Some("the image is built".to_owned()),
                ..setting.clone()
            };
            let verdict = classify(base, Expect::Image, &self.options.values);
            self.hit(scope, &setting, verdict, None, base, place);
        }
    }
}
