//! What the name of a field or variable says about its value.

/// How surely a value is an image reference, by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expect {
    /// It is known to be something else.
    Never,
    /// The name says nothing.
    Nothing,
    /// The name speaks of an image; the value may be one, its display name, a switch, …
    Perhaps,
    /// The value is an image, or the object is wrong.
    Image,
}

/// The words of a name: split at signs and where lower case turns to upper, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut lower_before = false;
    let mut begin = true;
    for character in name.chars() {
        if !character.is_ascii_alphanumeric() {
            begin = true;
            lower_before = false;
            continue;
        }
        if begin || (character.is_ascii_uppercase() && lower_before) {
            words.push(String::new());
            begin = false;
        }
        if let Some(word) = words.last_mut() {
            word.push(character.to_ascii_lowercase());
        }
        lower_before = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    words
}

fn is_image_word(word: &str) -> bool {
    matches!(
        word,
        "image" | "images" | "img" | "pullspec" | "imageref" | "imagename" | "dockerimage" | "containerimage"
    )
}

/// Words that, at the end of a name, make it speak of something about the image.
const ABOUT: &[&str] = &[
    "policy",
    "secret",
    "secrets",
    "url",
    "uri",
    "desc",
    "description",
    "order",
    "creator",
    "display",
    "recommended",
    "outdated",
    "version",
    "tag",
    "digest",
    "commit",
    "hash",
    "id",
    "size",
    "type",
    "count",
    "timeout",
    "pull",
    "registry",
    "repository",
    "stream",
    "selection",
    "software",
    "dependencies",
    "puller",
    "signature",
    "origin",
    "phase",
    "messages",
    "title",
    "label",
    "enabled",
    "namespace",
    "format",
    "quality",
    "width",
    "height",
    "path",
    "dir",
    "file",
    "prefix",
    "suffix",
    "key",
    "server",
];

/// What a key of a mapping, an environment variable or a parameter says about its value.
pub(crate) fn expect(name: &str) -> Expect {
    // The part of a label or annotation behind its domain.
    let name = name.rsplit('/').next().unwrap_or_default();
    match name {
        "image" | "dockerImageReference" | "containerImage" => return Expect::Image,
        _ => {}
    }
    let words = words(name);
    let Some(last) = words.last() else { return Expect::Nothing };
    if !words.iter().any(|word| is_image_word(word)) {
        return Expect::Nothing;
    }
    if words.first().is_some_and(|word| word == "related") {
        return if matches!(last.as_str(), "version" | "tag") { Expect::Never } else { Expect::Image };
    }
    if ABOUT.contains(&last.as_str()) {
        return Expect::Nothing;
    }
    Expect::Perhaps
}

/// Whether the name of a variable or placeholder speaks of an image.
pub(crate) fn speaks_of_image(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| is_image_word(word)) && words.last().is_none_or(|last| last != "version")
}

/// Whether the name says that the value is secret. Such a value is looked at only for digests, so that nothing of it can be
/// shown.
pub(crate) fn is_secret(name: &str) -> bool {
    words(name).iter().any(|word| {
        matches!(
            word.as_str(),
            "password" | "passwd" | "secret" | "token" | "credential" | "credentials" | "apikey"
        )
    })
}

/// Keys whose values are never references, whatever they look like.
pub(crate) fn is_never(key: &str) -> bool {
    matches!(
        key,
        "apiVersion"
            | "apiGroup"
            | "kind"
            | "namespace"
            | "uid"
            | "resourceVersion"
            | "creationTimestamp"
            | "mountPath"
            | "subPath"
            | "schedule"
            | "serviceAccountName"
            | "topologyKey"
            | "storageClassName"
            | "clusterIP"
            | "priorityClassName"
            | "runtimeClassName"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_speak_of_images() {
        for (name, wanted) in [
            ("image", Expect::Image),
            ("RELATED_IMAGE_ODH_OPENVINO_IMAGE", Expect::Image),
            ("RELATED_IMAGE_VLLM_UPSTREAM_VERSION", Expect::Never),
            ("ovms-image", Expect::Perhaps),
            ("vllm-cuda-image-fast-1", Expect::Perhaps),
            ("sidecarImage", Expect::Perhaps),
            ("OVMS_IMAGE", Expect::Perhaps),
            ("openshift.io/imageName", Expect::Perhaps),
            ("imagePullPolicy", Expect::Nothing),
            ("opendatahub.io/notebook-image-url", Expect::Nothing),
            ("opendatahub.io/notebook-image-desc", Expect::Nothing),
            ("imageTag", Expect::Nothing),
            ("imagine", Expect::Nothing),
            ("name", Expect::Nothing),
            ("", Expect::Nothing),
        ] {
            assert_eq!(expect(name), wanted, "{name}");
        }
        assert!(speaks_of_image("openvino_image"));
        assert!(!speaks_of_image("RELATED_IMAGE_X_UPSTREAM_VERSION"));
        assert!(!speaks_of_image("etcd_password"));
    }
}
