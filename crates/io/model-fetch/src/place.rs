//! Paths inside the folder.

use std::path::PathBuf;

use crate::error::FetchError;
use crate::limits::{MAX_DEPTH, MAX_NAME, MAX_PATH};

/// A path that stays in its folder: relative, without `.` and `..`.
///
/// # Errors
/// Why it cannot be one.
pub(crate) fn inside(name: &str) -> Result<PathBuf, FetchError> {
    let refuse = |why| Err(FetchError::Name { name: shown(name), why });
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.len() > MAX_PATH {
        return refuse("it is too long");
    }
    if name.starts_with('/') {
        return refuse("it begins with a slash, so it leaves the folder");
    }
    let mut path = PathBuf::new();
    let mut depth = 0;
    for part in name.split('/') {
        match part {
            "" => return refuse("a part of it is empty"),
            "." | ".." => return refuse("it leaves the folder"),
            part if part.len() > MAX_NAME => return refuse("a part of it is too long"),
            part if part.contains(['\\', '\0']) || part.chars().any(char::is_control) => {
                return refuse("it has characters that file systems do not take");
            }
            part => path.push(part),
        }
        depth += 1;
    }
    if depth > MAX_DEPTH {
        return refuse("it is too deep");
    }
    if name.split('/').next().is_some_and(|first| first.starts_with(crate::manifest::OWN)) {
        return refuse("it begins like our own files");
    }
    Ok(path)
}

/// The beginning of a name, for messages.
fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            ".",
            "./a",
            "a//b",
            "a/",
            "a\\b",
            "a\0",
            "a\nb",
            ".scantling-fetch/x",
            ".scantling-fetch.json",
            &"x".repeat(256),
            &"x/".repeat(40),
            &"a/b".repeat(400),
        ] {
            assert!(inside(name).is_err(), "{name:?}");
        }
        for name in ["a", "a/b.c", "...", "a..b/c", "ä/ö", &"x".repeat(255)] {
            assert_eq!(inside(name).unwrap(), Path::new(name));
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_stays_inside(name in "[a./\\\\ ]{0,12}|\\PC{0,20}") {
            if let Ok(path) = inside(&name) {
                prop_assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}
