//! Paths of fields as people read them: `.spec.containers[0].image`, `.data["default-config"]`.

use std::fmt::Write as _;

/// Appends a key: `.key`, or `["key"]` if it is not a plain word.
pub fn push_key(path: &mut String, key: &str) {
    let mut bytes = key.bytes();
    let starts_well =
        bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$'));
    if starts_well && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        path.push('.');
        path.push_str(key);
    } else {
        // Writing to a string cannot fail.
        let _ = write!(path, "[{key:?}]");
    }
}

/// Appends an index: `[0]`.
pub fn push_index(path: &mut String, index: usize) {
    let _ = write!(path, "[{index}]");
}
