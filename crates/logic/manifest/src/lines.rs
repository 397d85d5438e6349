//! Lines of `key=value`: env files, properties, INI.

/// A key and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'text> {
    pub(crate) key: &'text str,
    /// Without quotes around it.
    pub(crate) value: &'text str,
    /// Where the value stands.
    pub(crate) start: usize,
}

/// The assignments of a text.
pub(crate) fn assignments(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        assignment(line, start)
    })
}

fn assignment(line: &str, start: usize) -> Option<Line<'_>> {
    let content = line.trim_start_matches(['\u{feff}', ' ', '\t']);
    if content.starts_with(['#', ';', '[', '/']) {
        return None;
    }
    let content = content.strip_prefix("export ").unwrap_or(content);
    let (key, value) = content.split_once('=')?;
    let key = key.trim_end();
    if !is_key(key) {
        return None;
    }
    let trimmed = value.trim();
    let unquoted = ['"', '\'']
        .iter()
        .find_map(|quote| trimmed.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote)))
        .unwrap_or(trimmed);
    let offset = line.len() - value.len() + value.find(unquoted)?;
    Some(Line { key, value: unquoted, start: start + offset })
}

fn is_key(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= 256
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/'))
}

/// Whether a text is made of assignments: every line that is not empty, a comment or a section's heading.
pub(crate) fn is_assignments(text: &str) -> bool {
    let mut any = false;
    for line in text.lines() {
        let content = line.trim();
        if content.is_empty()
            || content.starts_with(['#', ';'])
            || (content.starts_with('[') && content.ends_with(']'))
        {
            continue;
        }
        if assignment(line, 0).is_none() {
            return false;
        }
        any = true;
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_with_their_place() {
        let text = "# c=d\na=x/y:1\r\nexport B = \"q r\" \n[s]\n c-d= \nnot one\ne=f=g\n";
        let lines: Vec<_> = assignments(text).map(|line| (line.key, line.value)).collect();
        assert_eq!(lines, [("a", "x/y:1"), ("B", "q r"), ("c-d", ""), ("e", "f=g")]);
        for line in assignments(text) {
            assert!(text[line.start..].starts_with(line.value), "{line:?}");
        }
        assert!(!is_assignments(text));
        assert!(is_assignments("# c\n[s]\na=b\n\nc=d"));
        assert!(!is_assignments("# only\n"));
    }
}
