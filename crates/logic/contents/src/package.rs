//! Packages, and what an image contains in all.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::os_release::OsRelease;
use crate::runtime::Runtime;

/// Who manages a package. The order is the order in which a claim is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecosystem {
    /// Python distributions: `*.dist-info`, `*.egg-info`.
    Python,
    /// Conda packages: `conda-meta/*.json`.
    Conda,
    /// Debian packages: `var/lib/dpkg/status`, `var/lib/dpkg/status.d`.
    Dpkg,
    /// RPM packages. Their databases are not read yet; the kind exists so that notes and locks can name it.
    Rpm,
}

impl fmt::Display for Ecosystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Python => "python",
            Self::Conda => "conda",
            Self::Dpkg => "dpkg",
            Self::Rpm => "rpm",
        })
    }
}

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Who manages it.
    pub ecosystem: Ecosystem,
    /// Its name as its metadata writes it.
    pub name: String,
    /// Its version as its metadata writes it.
    pub version: String,
    /// The metadata file, from the root of the image, without a leading slash.
    pub path: String,
    /// The layer that wrote the metadata, counted from 0 at the bottom.
    pub layer: usize,
}

/// Something in the image that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Note {
    /// Where, from the root of the image.
    pub path: String,
    /// What, and why.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// What an image contains. Every list is sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Every package.
    pub packages: Vec<Package>,
    /// Interpreters and toolkits that files give away, without being a package: Python by its library folder, CUDA by its own.
    pub runtimes: Vec<Runtime>,
    /// Environment variables of the image's configuration.
    pub env: BTreeMap<String, String>,
    /// The distribution.
    pub os: Option<OsRelease>,
    /// What is there but could not be read.
    pub notes: Vec<Note>,
}

impl Contents {
    /// The package of this name that counts: language packages before the system's, then the copy that the highest layer wrote, then the
    /// first path. Names are compared [`normalised`].
    pub fn find(&self, name: &str) -> Option<&Package> {
        let wanted = normalised(name);
        self.packages
            .iter()
            .filter(|package| normalised(&package.name) == wanted)
            .min_by_key(|package| (package.ecosystem, std::cmp::Reverse(package.layer), &package.path))
    }

    /// The version of the package that counts; see [`Self::find`].
    pub fn version_of(&self, name: &str) -> Option<&str> {
        self.find(name).map(|package| package.version.as_str())
    }
}

/// A package name for comparison: lower case, runs of `-`, `_` and `.` as one `-` (PEP 503).
pub fn normalised(name: &str) -> String {
    let mut result = String::with_capacity(name.len());
    for c in name.trim().chars() {
        if matches!(c, '-' | '_' | '.') {
            if !result.ends_with('-') {
                result.push('-');
            }
        } else {
            result.extend(c.to_lowercase());
        }
    }
    result
}
