//! `recipe.yaml`: what an image is made of.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::name::ImageName;

/// The file that says what an image is made of. Paths have no slash in front.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Recipe {
    /// Always `scantling.dev/v1alpha1`.
    pub(crate) api_version: String,
    /// Always `ImageRecipe`.
    pub(crate) kind: String,
    /// What the image is for, in a few words.
    pub(crate) about: String,
    /// The image that it stands on, as `NAME:VERSION` of another recipe. Its layers are shared.
    #[serde(default)]
    pub(crate) from: Option<ImageName>,
    /// Only made when it is asked for by name: large, or made of something that is built before.
    #[serde(default)]
    pub(crate) on_request: bool,
    /// Debian packages, by name. What they depend on comes along.
    #[serde(default)]
    pub(crate) debian: Vec<String>,
    /// Paths of Debian packages that are left out. A `/` at the end means all that is in the folder; `*` means any name.
    #[serde(default)]
    pub(crate) leave_out: Vec<String>,
    /// Paths that are kept though `leaveOut` names them.
    #[serde(default)]
    pub(crate) keep: Vec<String>,
    /// Python packages, as pip's requirements. What they depend on comes along.
    #[serde(default)]
    pub(crate) python: Vec<String>,
    /// Files that are all files of a folder, one behind the other: path → folder.
    #[serde(default)]
    pub(crate) concatenate: BTreeMap<String, String>,
    /// Symbolic links: path → target.
    #[serde(default)]
    pub(crate) links: BTreeMap<String, String>,
    /// Folders, where they must be there or belong to somebody: path → owner and permissions.
    #[serde(default)]
    pub(crate) folders: BTreeMap<String, RecipeFolder>,
    /// Files: path → text and permissions.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, RecipeFile>,
    /// Programs that are built before the image and handed over, by path.
    #[serde(default)]
    pub(crate) programs: Vec<String>,
    /// If given, the only paths of Debian packages that stay, as in `leaveOut`.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// `UID` or `UID:GID`. Empty: that of the image below.
    #[serde(default)]
    pub(crate) user: String,
    /// The folder in which it starts. Empty: that of the image below.
    #[serde(default)]
    pub(crate) working_dir: String,
    /// Environment variables, added to those of the image below. `${OWN}` in a value becomes digits that are different for images that
    /// are made of different things.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The program and its first arguments. Empty: those of the image below.
    #[serde(default)]
    pub(crate) entrypoint: Vec<String>,
    /// What follows the entrypoint if nothing else is given. Empty: that of the image below, unless the entrypoint is another.
    #[serde(default)]
    pub(crate) cmd: Vec<String>,
    /// Ports that it listens on, such as `8888/tcp`. Empty: those of the image below.
    #[serde(default)]
    pub(crate) ports: Vec<String>,
    /// Labels, added to those of the image below.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

/// A folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RecipeFolder {
    /// Permissions; octal if written with a `0` in front.
    #[serde(default = "folder_mode")]
    pub(crate) mode: u32,
    /// Its owner's number.
    #[serde(default)]
    pub(crate) user: u64,
    /// Its group's number.
    #[serde(default)]
    pub(crate) group: u64,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RecipeFile {
    /// Permissions; octal if written with a `0` in front.
    #[serde(default = "file_mode")]
    pub(crate) mode: u32,
    /// What is in it.
    pub(crate) text: String,
}

fn folder_mode() -> u32 {
    0o755
}

fn file_mode() -> u32 {
    0o644
}

const API_VERSION: &str = "scantling.dev/v1alpha1";
const KIND: &str = "ImageRecipe";

impl Recipe {
    /// Reads a recipe; says what is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let recipe: Self = crate::one_document(bytes)?;
        if recipe.api_version != API_VERSION || recipe.kind != KIND {
            return Err(format!(
                "it is a {} of {}; a {KIND} of {API_VERSION} is needed",
                recipe.kind, recipe.api_version
            ));
        }
        let paths = recipe
            .links
            .keys()
            .chain(recipe.folders.keys())
            .chain(recipe.files.keys())
            .chain(&recipe.programs)
            .chain(recipe.concatenate.keys());
        for path in paths {
            if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
                return Err(format!(
                    "{path:?} is no path from the root: write it without a slash in front, `.` or `..`"
                ));
            }
        }
        // They go into commands of apt and pip, which must not take them for options.
        for package in recipe.debian.iter().chain(&recipe.python) {
            if !package.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                return Err(format!("{package:?} is no name of a package"));
            }
        }
        Ok(recipe)
    }
}

/// Whether a path is meant by one of the patterns.
pub(crate) fn is_meant(path: &str, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| {
        let (pattern, below) = match pattern.strip_suffix('/') {
            Some(folder) => (folder, true),
            None => (pattern.as_str(), false),
        };
        let (mut parts, mut wanted) = (path.split('/'), pattern.split('/'));
        let matches = wanted.by_ref().all(|wanted| parts.next().is_some_and(|part| fits(part, wanted)));
        matches && (parts.next().is_some() == below)
    })
}

/// Whether a name fits a pattern with at most one `*`.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn patterns_of_paths() {
        let check = |path: &str, pattern: &str, expected: bool| {
            assert_eq!(is_meant(path, &[pattern.to_owned()]), expected, "{path} {pattern}");
        };
        check("usr/share/man/man1/ls.1.gz", "usr/share/man/", true);
        check("usr/share/man", "usr/share/man/", false);
        check("usr/share/manual/x", "usr/share/man/", false);
        check("usr/share/doc/bash/copyright", "usr/share/doc/*/copyright", true);
        check("usr/share/doc/bash/NEWS", "usr/share/doc/*/copyright", false);
        check("usr/lib/a.so.1", "usr/lib/a.so*", true);
        check("usr/lib", "usr/lib/*", false);
        check("usr/lib/x/y", "usr/lib/*", false);
    }

    #[test]
    fn recipes_are_checked() {
        let head = "apiVersion: scantling.dev/v1alpha1\nkind: ImageRecipe\nabout: a\n";
        let check = |text: &str, expected: &str| {
            let error = Recipe::read(format!("{head}{text}").as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        };
        let recipe = Recipe::read(format!("{head}folders: {{tmp: {{mode: 01777}}}}\n").as_bytes()).unwrap();
        assert_eq!(recipe.folders["tmp"].mode, 0o1777);
        check("links: {/bin/sh: dash}\n", "no path from the root");
        check("files: {a/../b: {text: ''}}\n", "no path from the root");
        check("python: ['--index-url=x']\n", "no name of a package");
        check("from: base\n", "names no image");
        check("pyhton: []\n", "did you mean \"python\"?");
    }
}
