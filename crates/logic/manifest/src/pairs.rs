//! References that are written in several fields.

use scantling_yaml::{Entry, NodeKind, Style};

use crate::candidate::Role;
use crate::names::{Expect, expect};

/// One reference in several fields of a mapping.
#[derive(Debug)]
pub(crate) struct Pair<'tree> {
    /// The fields with their roles and texts, in the order registry, name, tag, digest.
    pub(crate) parts: Vec<PartOf<'tree>>,
    /// What they make.
    pub(crate) text: String,
    /// Whether neither a tag nor a digest is given.
    pub(crate) incomplete: bool,
}

/// A field of a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartOf<'tree> {
    pub(crate) role: Role,
    /// The entry's number in the mapping.
    pub(crate) at: usize,
    pub(crate) entry: &'tree Entry,
    /// The value as it is written, without quotes.
    pub(crate) text: &'tree str,
    /// Whether it is a number or boolean that was meant as text.
    pub(crate) unquoted: bool,
}

const NAMES: &[&str] =
    &["newName", "repository", "imageRepository", "imageName", "image_name", "base", "repo", "image", "name"];
const REGISTRIES: &[&str] = &["registry", "imageRegistry"];
const TAGS: &[&str] = &["newTag", "tag", "imageTag", "image_tag"];
const DIGESTS: &[&str] = &["digest", "newDigest", "imageDigest", "image_digest", "sha", "sha256"];

/// The references that fields of a mapping make together. `key` is the key that the mapping stands under.
pub(crate) fn pairs<'tree>(entries: &'tree [Entry], key: &str, text: &'tree str) -> Vec<Pair<'tree>> {
    if entries.len() < 2 {
        return Vec::new();
    }
    let find = |keys: &[&str], role: Role| {
        keys.iter().find_map(|wanted| {
            let at = entries.iter().position(|entry| entry.key == *wanted)?;
            part(role, at, entries.get(at)?, text)
        })
    };
    let Some(name) = find(NAMES, Role::Name) else { return Vec::new() };
    if name.text.is_empty() || name.text.contains(char::is_whitespace) || name.unquoted {
        return Vec::new();
    }
    let has_own = name.text.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
    let variables = name.text.contains(['$', '{', '<']);
    if has_own && !variables {
        return Vec::new();
    }
    let registry = find(REGISTRIES, Role::Registry).filter(|part| !part.text.is_empty());
    let digest = find(DIGESTS, Role::Digest).filter(|part| is_digest(part.text));
    let tag = find(TAGS, Role::Tag)
        .filter(|part| !part.text.is_empty() && !part.text.contains(char::is_whitespace));
    let about_image = expect(key) >= Expect::Perhaps;
    let name_key = name.entry.key.as_str();
    let sure = match name_key {
        "newName" | "imageRepository" | "imageName" | "image_name" | "image" => true,
        "repository" | "repo" => about_image || registry.is_some() || tag.is_some() || digest.is_some(),
        "base" => digest.is_some() || (tag.is_some() && name.text.contains('/')),
        // `name` is everybody's key.
        _ => {
            digest.is_some()
                || tag.is_some_and(|tag| tag.entry.key == "newTag")
                || about_image
                || name.text.contains('/')
        }
    };
    if !sure {
        return Vec::new();
    }
    let mut result = Vec::new();
    let mut push = |tag: Option<PartOf<'tree>>, digest: Option<PartOf<'tree>>| {
        let parts: Vec<PartOf<'tree>> = [registry, Some(name), tag, digest].into_iter().flatten().collect();
        let mut text = String::new();
        for part in &parts {
            match part.role {
                Role::Registry => {
                    text.push_str(part.text.trim_end_matches('/'));
                    text.push('/');
                }
                Role::Name => text.push_str(part.text.trim_start_matches('/')),
                Role::Tag => {
                    text.push(':');
                    text.push_str(part.text);
                }
                Role::Digest => {
                    text.push('@');
                    if !part.text.contains(':') {
                        text.push_str("sha256:");
                    }
                    text.push_str(part.text);
                }
            }
        }
        result.push(Pair { parts, text, incomplete: tag.is_none() && digest.is_none() });
    };
    if tag.is_some() || digest.is_some() {
        push(tag, digest);
        return result;
    }
    // KServe's configuration: one image with a default version per kind of hardware.
    for (at, entry) in entries.iter().enumerate() {
        let is_version = entry.key.starts_with("default") && entry.key.ends_with("ImageVersion");
        if is_version && let Some(version) = part(Role::Tag, at, entry, text) {
            push(Some(version), None);
        }
    }
    if result.is_empty()
        && (registry.is_some() || name_key == "newName" || (about_image && name_key == "repository"))
    {
        let parts = [registry, Some(name)].into_iter().flatten().collect::<Vec<_>>();
        let prefix = registry.map(|part| format!("{}/", part.text.trim_end_matches('/'))).unwrap_or_default();
        result.push(Pair {
            parts,
            text: format!("{prefix}{}", name.text.trim_start_matches('/')),
            incomplete: true,
        });
    }
    result
}

/// A scalar's text as it was written: the tag `14.10` is not 14.1.
fn part<'tree>(role: Role, at: usize, entry: &'tree Entry, text: &'tree str) -> Option<PartOf<'tree>> {
    let (text, unquoted) = match &entry.value.kind {
        NodeKind::String(string) => (string.as_str(), false),
        NodeKind::Number(_) | NodeKind::Bool(_) if entry.value.style == Style::Plain => {
            (entry.value.written(text), true)
        }
        _ => return None,
    };
    Some(PartOf { role, at, entry, text, unquoted })
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").or_else(|| text.strip_prefix("sha512:"));
    hex.is_some_and(|hex| !hex.is_empty())
        || (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn joined(text: &str, key: &str) -> Vec<String> {
        let documents = scantling_yaml::parse(text.as_bytes()).unwrap();
        pairs(documents[0].root.entries(), key, text).into_iter().map(|pair| pair.text).collect()
    }

    #[test]
    fn parts_are_joined() {
        const HEX: &str = "7dd5aa540ddce2e323e2209cb9f50cf4948cb79f17eed96b7bbc33b31a0eca5d";
        for (text, key, wanted) in [
            ("{repository: quay.io/a/b, tag: 14.10}", "image", vec!["quay.io/a/b:14.10".to_owned()]),
            (
                "{repository: a/b, tag: 20190612073634, registry: quay.io}",
                "",
                vec!["quay.io/a/b:20190612073634".to_owned()],
            ),
            (
                &format!("{{base: quay.io/a/b, digest: 'sha256:{HEX}'}}"),
                "",
                vec![format!("quay.io/a/b@sha256:{HEX}")],
            ),
            (&format!("{{repository: a/b, sha: {HEX}}}"), "", vec![format!("a/b@sha256:{HEX}")]),
            ("{name: x, newName: quay.io/a/b, newTag: '1'}", "", vec!["quay.io/a/b:1".to_owned()]),
            ("{name: quay.io/a/b, newTag: '1'}", "", vec!["quay.io/a/b:1".to_owned()]),
            ("{name: kserve/modelmesh, tag: v1}", "modelMeshImage", vec!["kserve/modelmesh:v1".to_owned()]),
            (
                "{image: q.io/s/tf, defaultImageVersion: 2.6.2, defaultGpuImageVersion: 2.6.2-gpu}",
                "tensorflow",
                vec!["q.io/s/tf:2.6.2".to_owned(), "q.io/s/tf:2.6.2-gpu".to_owned()],
            ),
            ("{registry: quay.io, repository: a/b}", "image", vec!["quay.io/a/b".to_owned()]),
            ("{name: app, version: '1.2'}", "", vec![]),
            ("{name: app, tag: v1}", "git", vec![]),
            ("{image: quay.io/a/b:1, tag: x}", "", vec![]),
            ("{repository: 'https://x', branch: main}", "", vec![]),
        ] {
            assert_eq!(joined(text, key), wanted, "{text}");
        }
    }
}
