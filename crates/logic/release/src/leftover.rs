//! Placeholders that are left in what is applied, outside of image references.

use scantling_finding::{Finding, codes};
use scantling_yaml::{Node, NodeKind};

use crate::Generated;
use crate::object::{Item, ReleaseObject};
use crate::source::Source;
use crate::substitution::Substitutions;

/// What a text of nothing but a placeholder stands for.
#[derive(Debug, PartialEq, Eq)]
enum Leftover<'t> {
    /// `<name>`: someone has to write the value there.
    Named(&'t str),
    /// `${NAME:-}`: becomes nothing when the variable is not set.
    EmptyDefault(&'t str),
}

/// Findings about strings of an object that are nothing but a placeholder that the release does not fill. Values that
/// are generated are filled on the cluster.
pub(crate) fn find(
    source: &Source<'_>,
    item: Item<'_>,
    object: &ReleaseObject,
    substitutions: &Substitutions,
    generated: &[Generated],
) -> Vec<Finding> {
    // A template's parameters are filled when it is instantiated.
    if object.gvk.group == "template.openshift.io" {
        return Vec::new();
    }
    let mut found = Vec::new();
    walk(item.node, &mut Vec::new(), &mut |node, path| {
        let Some(leftover) =
            node.as_str().filter(|text| substitutions.filled(text).is_none()).and_then(leftover)
        else {
            return;
        };
        if is_generated(object, path, generated) {
            return;
        }
        let place = source.value_place(node).with_object(object.key.to_string()).with_field(shown(path));
        found.push(match leftover {
            Leftover::Named(name) => Finding::new(
                codes::references::UNRESOLVED_PLACEHOLDER,
                format!("nothing fills <{name}>"),
                place,
            )
            .with_remedy(format!(
                "give <{name}> a value under `substitutions:` or `generated:` in release.yaml"
            )),
            Leftover::EmptyDefault(name) => Finding::new(
                codes::release::EMPTY_DEFAULT,
                format!("{name} has an empty default, and nothing sets it"),
                place,
            ),
        });
    });
    found
}

fn leftover(text: &str) -> Option<Leftover<'_>> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    let text = text.trim();
    if let Some(name) = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
        return is_name(name).then_some(Leftover::Named(name));
    }
    let inside = text.strip_prefix("${")?.strip_suffix('}')?;
    let name = inside.strip_suffix(":-").or_else(|| inside.strip_suffix('-'))?;
    is_name(name).then_some(Leftover::EmptyDefault(name))
}

/// Whether the path is a key of a Secret whose value is generated.
fn is_generated(object: &ReleaseObject, path: &[&str], generated: &[Generated]) -> bool {
    let [map, key] = path else { return false };
    matches!(*map, "data" | "stringData")
        && generated.iter().any(|entry| {
            entry.kind == object.key.kind
                && entry.name == object.key.name
                && entry.key == *key
                && entry.namespace.as_ref().is_none_or(|ns| object.key.namespace.as_ref() == Some(ns))
        })
}

/// Visits every scalar with the keys that lead to it; elements of lists have no key of their own.
fn walk<'n>(node: &'n Node, path: &mut Vec<&'n str>, visit: &mut impl FnMut(&'n Node, &[&'n str])) {
    match &node.kind {
        NodeKind::Mapping(entries) => {
            for entry in entries {
                path.push(&entry.key);
                walk(&entry.value, path, visit);
                path.pop();
            }
        }
        NodeKind::Sequence(items) => {
            path.push("[]");
            for item in items {
                walk(item, path, visit);
            }
            path.pop();
        }
        _ => visit(node, path),
    }
}

fn shown(path: &[&str]) -> String {
    path.iter().map(|step| if *step == "[]" { "[]".to_owned() } else { format!(".{step}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_texts_are_placeholders() {
        let cases = [
            ("<etcd_password>", Some(Leftover::Named("etcd_password"))),
            (" <a-b>\n", Some(Leftover::Named("a-b"))),
            ("${PASSWORD:-}", Some(Leftover::EmptyDefault("PASSWORD"))),
            ("${PASSWORD-}", Some(Leftover::EmptyDefault("PASSWORD"))),
            ("${PASSWORD:-x}", None),
            ("${PASSWORD}", None),
            ("a <b> c", None),
            ("<b c>", None),
            ("<3>", None),
            ("<>", None),
            ("<a>, <b>", None),
            ("<html></html>", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(leftover(text), wanted, "{text:?}");
        }
    }
}
