//! The forms of names, as `k8s.io/apimachinery/pkg/util/validation` has them.

/// Longest DNS subdomain.
pub(super) const MAX_SUBDOMAIN: usize = 253;
/// Longest DNS label, label value and name part of a qualified name.
pub(super) const MAX_LABEL: usize = 63;

/// RFC 1123 label: lower-case letters, digits and inner hyphens.
pub(super) fn is_dns_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && is_label_characters(text)
}

fn is_label_characters(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// RFC 1035 label: as the above, but it begins with a letter.
pub(super) fn is_dns_1035_label(text: &str) -> bool {
    is_dns_label(text) && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
}

/// RFC 1123 subdomain: labels between dots.
pub(super) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN && text.split('.').all(is_label_characters)
}

/// A name that may be a segment of a path: no `/` or `%`, and neither `.` nor `..`.
pub(super) fn is_path_segment(text: &str) -> bool {
    !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '%'])
}

/// A key of labels and annotations: an optional DNS subdomain and `/`, then at most 63 letters, digits, `-_.` that begin
/// and end with a letter or digit.
pub(super) fn is_qualified_name(text: &str) -> bool {
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) if is_dns_subdomain(prefix) => name,
        Some(_) => return false,
    };
    !name.is_empty() && is_label_value(name)
}

/// The value of a label: empty, or as the name part of its key.
pub(super) fn is_label_value(text: &str) -> bool {
    let outer = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    text.len() <= MAX_LABEL
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && outer(text.bytes().next())
        && outer(text.bytes().last())
}

/// A key of a config map or secret.
pub(super) fn is_config_key(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_SUBDOMAIN
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && text != "."
        && !text.starts_with("..")
}

/// The name of an environment variable, under the rules of 1.35: any printable ASCII but `=`.
pub(super) fn is_environment_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
}

/// The name of a port: at most 15 lower-case letters, digits and single inner hyphens, at least one letter.
pub(super) fn is_port_name(text: &str) -> bool {
    const MAX_PORT_NAME: usize = 15;
    text.len() <= MAX_PORT_NAME
        && is_label_characters(text)
        && !text.contains("--")
        && text.bytes().any(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let long = "a".repeat(64);
        for (check, good, bad) in [
            (
                is_dns_label as fn(&str) -> bool,
                vec!["a", "1-b"],
                vec!["", "-a", "a-", "A", "a.b", "ä", long.as_str()],
            ),
            (is_dns_1035_label, vec!["a1"], vec!["1a", ""]),
            (is_dns_subdomain, vec!["a.b-c.1", long.as_str()], vec!["", "a..b", ".a", "a_b"]),
            (is_path_segment, vec!["A:b", "system:node"], vec!["", ".", "..", "a/b", "a%b"]),
            (
                is_qualified_name,
                vec!["a", "A_b.c", "example.com/a"],
                vec!["", "/a", "a/", "a/b/c", "-a", "Ex/a"],
            ),
            (is_label_value, vec!["", "a_B-1"], vec!["-a", "a.", "a b", long.as_str()]),
            (is_config_key, vec!["a.b", "_x", ".x"], vec!["", ".", "..a", "a/b"]),
            (is_environment_name, vec!["A_b", "a.b-c", "1"], vec!["", "a=b", "ä", "a\n"]),
            (is_port_name, vec!["http", "a-1"], vec!["", "1-2", "a--b", "-a", "sixteen-letters-x"]),
        ] {
            for text in good {
                assert!(check(text), "{text:?}");
            }
            for text in bad {
                assert!(!check(text), "{text:?}");
            }
        }
    }
}
