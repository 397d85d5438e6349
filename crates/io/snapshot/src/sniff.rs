//! What a file holds, from its first bytes.

/// Before the log of a container in the stream of `kubectl cluster-info dump`.
pub(crate) const LOG_START: &[u8] = b"==== START logs for ";
/// After it.
pub(crate) const LOG_END: &[u8] = b"==== END logs for ";

/// What a file looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    Json,
    Yaml,
    Archive,
    Other,
}

/// Begins a line of YAML that can begin an object.
const YAML: [&[u8]; 9] = [
    b"apiVersion:",
    b"kind:",
    b"items:",
    b"metadata:",
    b"- apiVersion:",
    b"- kind:",
    b"- metadata:",
    b"\"apiVersion\":",
    b"spec:",
];
/// Where a tar archive has its name.
const TAR: (usize, &[u8]) = (257, b"ustar");
/// Lines that are looked at before a file is taken for something else.
const LINES: usize = 200;

/// Tells by the first line that begins an object.
pub(crate) fn looks(begin: &[u8]) -> Looks {
    if begin.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
        return Looks::Archive;
    }
    if begin.contains(&0) {
        return Looks::Other;
    }
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    let mut in_log = false;
    for line in begin.split(|byte| *byte == b'\n').take(LINES) {
        let text = line.trim_ascii_start();
        if in_log {
            in_log = !line.starts_with(LOG_END);
        } else if line.starts_with(LOG_START) {
            in_log = true;
        } else if matches!(text.first(), Some(b'{' | b'[')) {
            return Looks::Json;
        } else if YAML.iter().any(|known| line.starts_with(known)) {
            return Looks::Yaml;
        }
    }
    // All that is seen may be one log in front of the first object.
    if in_log { Looks::Json } else { Looks::Other }
}

/// Whether a file is a log by its name. Logs are the most of a must-gather, and those in JSON would look like objects.
pub(crate) fn is_log(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let parts = || name.split('.').skip(1);
    parts().any(|part| matches!(part, "log" | "logs"))
        || path.contains("/logs/")
        || path.starts_with("logs/")
        || name == "logs.txt"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_and_not_the_name() {
        for (text, wanted) in [
            (&b"{\n \"apiVersion\""[..], Looks::Json),
            (b"\xef\xbb\xbf[{", Looks::Json),
            (b"Warning: v1 is old\n{}", Looks::Json),
            (b"---\napiVersion: v1\nitems:\n- apiVersion: v1\n", Looks::Yaml),
            (b"# a comment\n\nkind: Pod\n", Looks::Yaml),
            (b"items:\n- {}\n", Looks::Yaml),
            (b"==== START logs for container a of pod b/c ====\nkind: Pod\n==== END logs for container a of pod b/c ====\n{", Looks::Json),
            (b"==== START logs for container a of pod b/c ====\nkind: Pod\n", Looks::Json),
            (b"# Read me\n", Looks::Other),
            (b"I1130 10:00:00 started\n", Looks::Other),
            (b"", Looks::Other),
            (b"\x7fELF\0\0{", Looks::Other),
        ] {
            assert_eq!(looks(text), wanted, "{}", String::from_utf8_lossy(text));
        }
        let mut tar = vec![b'a'; 257];
        tar.extend_from_slice(b"ustar\0");
        assert_eq!(looks(&tar), Looks::Archive);
        for (path, wanted) in [
            ("namespaces/a/pods/b/c/c/logs/current.log", true),
            ("previous.log.gz", true),
            ("host_service_logs/masters/kubelet_service.log", true),
            ("namespaces/a/core/pods.yaml", false),
            ("catalog.yaml", false),
            ("a/logs.txt", true),
        ] {
            assert_eq!(is_log(path), wanted, "{path}");
        }
    }
}
