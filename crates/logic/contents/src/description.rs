//! The description of a small image.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use scantling_image::Platform;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::package::normalised;

/// Most bytes of text that one description may put into files: descriptions are read whole and kept in memory.
pub const MAX_DESCRIBED_BYTES: usize = 64 << 20;

/// An image to be built: `platforms`, `layers` from the bottom, and the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ImageDescription {
    /// The platforms, such as `linux/amd64`. Empty on a base: those of the base; without one: `linux/amd64`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
    /// Make an index even for one platform. Several platforms always have one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub index: bool,
    /// The layers, from the bottom.
    pub layers: Vec<LayerDescription>,
    /// Labels of the configuration; on a base they are added to its labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Environment, `NAME=value`; on a base they are added to its environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The command; empty: that of the base.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// The entrypoint; empty: that of the base.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum LayerDescription {
    /// Files by absolute path, with their text.
    Files(BTreeMap<String, String>),
    /// Files or folders of lower layers that this one takes away, by absolute path.
    Remove(Vec<String>),
    /// Python distributions, as pip leaves them. One that a lower layer has in the same folder is replaced.
    Python {
        /// The `site-packages` folder.
        path: String,
        /// Version by name.
        #[serde(deserialize_with = "versions")]
        packages: BTreeMap<String, String>,
    },
    /// Conda packages. One that a lower layer has in the same prefix is replaced.
    Conda {
        /// The prefix, `/opt/conda`.
        path: String,
        /// Version by name.
        #[serde(deserialize_with = "versions")]
        packages: BTreeMap<String, String>,
    },
    /// Debian packages, added to those of the lower layers in dpkg's list.
    Dpkg {
        /// Version by name.
        #[serde(deserialize_with = "versions")]
        packages: BTreeMap<String, String>,
    },
}

/// Why a description describes no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// A path that is not absolute and plain.
    #[error("layers[{layer}]: path {path:?} {reason}; write an absolute path such as \"/etc/os-release\"")]
    Path {
        /// The layer, counted from 0.
        layer: usize,
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two paths of one layer that cannot both be.
    #[error("layers[{layer}]: {path:?} is both a file and a folder; rename one of them")]
    FileAndFolder {
        /// The layer, counted from 0.
        layer: usize,
        /// The path.
        path: String,
    },
    /// A package name that the ecosystem does not allow.
    #[error("layers[{layer}]: package name {name:?}: {reason}")]
    Name {
        /// The layer, counted from 0.
        layer: usize,
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A version that the ecosystem does not allow.
    #[error("layers[{layer}]: version {version:?} of {name}: {reason}")]
    Version {
        /// The layer, counted from 0.
        layer: usize,
        /// The package.
        name: String,
        /// The version.
        version: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two names of one layer that are the same package.
    #[error("layers[{layer}]: {name:?} and {other:?} are the same package; keep one")]
    Twice {
        /// The layer, counted from 0.
        layer: usize,
        /// One name.
        name: String,
        /// The other.
        other: String,
    },
    /// An environment entry without a name or a value.
    #[error("env[{index}]: {entry:?} is no assignment; write NAME=value")]
    Env {
        /// Counted from 0.
        index: usize,
        /// The entry.
        entry: String,
    },
    /// A platform that is listed twice.
    #[error("platforms: {0} is listed twice; keep one")]
    Platform(String),
    /// Too much text.
    #[error(
        "the files of the description have more than {MAX_DESCRIBED_BYTES} bytes; describe a smaller image"
    )]
    Size,
}

impl ImageDescription {
    /// Checks what the types do not say. [`crate::build`] does it too.
    pub fn check(&self) -> Result<(), DescriptionError> {
        let mut size = 0usize;
        for (index, layer) in self.layers.iter().enumerate() {
            size = size.saturating_add(layer.check(index)?);
        }
        if size > MAX_DESCRIBED_BYTES {
            return Err(DescriptionError::Size);
        }
        for (index, entry) in self.env.iter().enumerate() {
            if entry.split_once('=').is_none_or(|(name, _)| name.is_empty()) || entry.contains('\0') {
                return Err(DescriptionError::Env { index, entry: entry.clone() });
            }
        }
        let mut seen = BTreeSet::new();
        match self.platforms.iter().find(|platform| !seen.insert(*platform)) {
            Some(platform) => Err(DescriptionError::Platform(platform.to_string())),
            None => Ok(()),
        }
    }
}

impl LayerDescription {
    /// What the layer is, in a few words, for the history of the image.
    pub(crate) fn summary(&self) -> String {
        let list = |packages: &BTreeMap<String, String>| {
            let words: Vec<String> =
                packages.iter().map(|(name, version)| format!("{name}={version}")).collect();
            words.join(" ")
        };
        match self {
            Self::Files(files) => {
                format!("files {}", files.keys().map(String::as_str).collect::<Vec<_>>().join(" "))
            }
            Self::Remove(paths) => format!("remove {}", paths.join(" ")),
            Self::Python { packages, .. } => format!("python {}", list(packages)),
            Self::Conda { packages, .. } => format!("conda {}", list(packages)),
            Self::Dpkg { packages } => format!("dpkg {}", list(packages)),
        }
    }

    /// Checks one layer; gives the bytes of text that it holds.
    fn check(&self, layer: usize) -> Result<usize, DescriptionError> {
        match self {
            Self::Files(files) => {
                for path in files.keys() {
                    check_path(layer, path)?;
                    let inside = format!("{path}/");
                    if files.range(inside.clone()..).next().is_some_and(|(next, _)| next.starts_with(&inside))
                    {
                        return Err(DescriptionError::FileAndFolder { layer, path: path.clone() });
                    }
                }
                Ok(files.values().map(String::len).sum())
            }
            Self::Remove(paths) => {
                paths.iter().try_for_each(|path| check_path(layer, path))?;
                Ok(0)
            }
            Self::Python { path, packages } | Self::Conda { path, packages } => {
                check_path(layer, path)?;
                check_packages(layer, packages, &PYTHON)
            }
            Self::Dpkg { packages } => check_packages(layer, packages, &DPKG),
        }
    }
}

/// What an ecosystem allows.
struct Grammar {
    name: fn(char) -> bool,
    name_reason: &'static str,
    version: fn(char) -> bool,
    version_reason: &'static str,
}

/// Python's rules, which are also good for conda.
const PYTHON: Grammar = Grammar {
    name: |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'),
    name_reason: "it has letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
    version: |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '!' | '+' | '_'),
    version_reason: "it has letters, digits, '.', '!', '+' and '_', and begins with a letter or digit",
};

/// Debian's rules.
const DPKG: Grammar = Grammar {
    name: |c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '+' | '.'),
    name_reason: "it has lower-case letters, digits, '-', '+' and '.', and begins and ends with a letter or digit",
    version: |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '~' | ':' | '-'),
    version_reason: "it has letters, digits, '.', '+', '~', ':' and '-', and begins with a letter or digit",
};

fn check_packages(
    layer: usize,
    packages: &BTreeMap<String, String>,
    grammar: &Grammar,
) -> Result<usize, DescriptionError> {
    let mut seen: BTreeMap<String, &String> = BTreeMap::new();
    for (name, version) in packages {
        let framed = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '+');
        if !framed || !name.chars().all(grammar.name) {
            return Err(DescriptionError::Name { layer, name: name.clone(), reason: grammar.name_reason });
        }
        if !version.starts_with(|c: char| c.is_ascii_alphanumeric()) || !version.chars().all(grammar.version)
        {
            let (name, version) = (name.clone(), version.clone());
            return Err(DescriptionError::Version { layer, name, version, reason: grammar.version_reason });
        }
        if let Some(other) = seen.insert(normalised(name), name) {
            return Err(DescriptionError::Twice { layer, name: name.clone(), other: other.clone() });
        }
    }
    Ok(packages.iter().map(|(name, version)| name.len() + version.len()).sum())
}

fn check_path(layer: usize, path: &str) -> Result<(), DescriptionError> {
    let reason = match path.strip_prefix('/') {
        None => "is not absolute",
        Some(_) if path.len() > MAX_PATH => "is longer than 4000 bytes",
        Some(rest) => match rest.split('/').find_map(component_fault) {
            Some(reason) => reason,
            None => return Ok(()),
        },
    };
    Err(DescriptionError::Path { layer, path: path.chars().take(200).collect(), reason })
}

fn component_fault(component: &str) -> Option<&'static str> {
    match component {
        "" => Some("has an empty component"),
        "." | ".." => Some("is not plain: it has a \".\" or \"..\" component"),
        c if c.contains('\0') => Some("has a zero byte"),
        c if c.starts_with(".wh.") => Some("would be a whiteout; use a \"remove\" layer instead"),
        _ => None,
    }
}

/// Longest path of a description, in bytes: below every system's limit, with room for the names of metadata files.
const MAX_PATH: usize = 4000;

/// Reads versions by name. A number is refused with the reason: YAML reads 2.10 as 2.1.
fn versions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Packages;
    impl<'de> Visitor<'de> for Packages {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of package names to versions")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut packages = BTreeMap::new();
            while let Some((name, version)) = map.next_entry::<String, serde_json::Value>()? {
                let serde_json::Value::String(version) = version else {
                    return Err(de::Error::custom(format_args!(
                        "the version of {name} is {version}, not text: put it in quotes, because as a number 2.10 is 2.1"
                    )));
                };
                packages.insert(name, version);
            }
            Ok(packages)
        }
    }
    deserializer.deserialize_map(Packages)
}
