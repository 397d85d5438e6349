//! What a file is, by its name.

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// YAML or JSON.
    Documents,
    /// Lines of `key=value`.
    Assignments,
    /// A program's source.
    Code,
    /// A recipe for an image.
    Dockerfile,
    /// Text for people.
    Prose,
    /// A script, a list, or nobody knows.
    Text,
}

/// What a file is, by its name.
pub(crate) fn format(path: &str) -> Format {
    let name = path.rsplit('/').next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("dockerfile") || lower.starts_with("containerfile") || lower.ends_with(".dockerfile")
    {
        return Format::Dockerfile;
    }
    match lower.rsplit_once('.').map(|(_, extension)| extension) {
        Some("yaml" | "yml" | "json") => Format::Documents,
        Some("env" | "properties" | "ini" | "conf" | "cfg") => Format::Assignments,
        Some(
            "ts" | "tsx" | "js" | "jsx" | "mjs" | "cjs" | "py" | "go" | "rs" | "java" | "kt" | "scala" | "rb"
            | "cs" | "c" | "h" | "cpp" | "tf" | "hcl" | "groovy" | "gradle" | "ipynb" | "jsonnet"
            | "libsonnet" | "cue" | "toml",
        ) => Format::Code,
        Some("md" | "rst" | "adoc" | "html" | "htm") => Format::Prose,
        _ => Format::Text,
    }
}

/// Whether the file is a kustomization.
pub(crate) fn is_kustomization(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("kustomization.yaml" | "kustomization.yml" | "Kustomization"))
}
